"""Stored answers: written once, read whole or not at all, removed by age of use."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted_provider import request, state_of

from rag_assets.contracts.generation import Outcome, request_key
from rag_assets.models.accounts.answers import AnswerStore, StoredAnswer
from rag_assets.models.accounts.database import StateDatabase
from rag_assets.models.accounts.schema import ANSWERS, CallRecord

MODEL = "anthropic:scripted-1"


def record(number: int = 0, **changes: object) -> CallRecord:
    made = CallRecord(
        call_id=f"call-{number}",
        called_at=1_793_000_000.0,
        run_id=None,
        asset="page_summaries",
        step="summarize_page",
        partition="0a",
        document_id="specs/a.xlsx",
        provider="anthropic",
        model="scripted-1",
        request_key=request_key(MODEL, request(number)),
        outcome="completed",
        cache_hit=False,
        input_tokens=10,
        cache_read_tokens=0,
        cache_write_tokens=0,
        output_tokens=5,
        cost_usd=0.25,
        seconds=1.5,
        batch_id=None,
        error=None,
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def key(number: int = 0) -> str:
    return request_key(MODEL, request(number))


@pytest.fixture
def database(tmp_path: Path) -> StateDatabase:
    return state_of(tmp_path)


def put(database: StateDatabase, number: int = 0, text: str = "答え", **changes: object) -> StoredAnswer:
    """Store an answer; what is stored then."""
    made = record(number, **changes)
    with database.transaction() as connection:
        stored = AnswerStore(database).add(connection, [(StoredAnswer(text, Outcome(made.outcome), made.error), made)])
    return stored[key(number)]


def change(database: StateDatabase, number: int = 0, **values: object) -> None:
    with database.transaction() as connection:
        connection.execute(sa.update(ANSWERS).where(ANSWERS.c.request_key == key(number)).values(**values))


def test_what_is_put_is_found(database: StateDatabase) -> None:
    store = AnswerStore(database)
    assert store.find(key()) is None
    assert put(database, error="why") == store.find(key()) == StoredAnswer("答え", Outcome.COMPLETED, "why")
    put(database, 1, outcome="refused")
    assert {number: answer.outcome for number, answer in store.find_all([key(0), key(1), key(2)]).items()} == {
        key(0): Outcome.COMPLETED,
        key(1): Outcome.REFUSED,
    }


@settings(max_examples=50, deadline=None)
@given(text=st.text(st.characters(exclude_categories=[])))
def test_any_text_comes_back(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    database = state_of(tmp_path_factory.mktemp("answers"))
    AnswerStore(database).drop([key()])
    assert put(database, text=text).text == text
    found = AnswerStore(database).find(key())
    assert found is not None
    assert found.text == text


def test_more_keys_than_a_query_takes_are_found(database: StateDatabase) -> None:
    made = [record(number) for number in range(1200)]
    with database.transaction() as connection:
        AnswerStore(database).add(connection, [(StoredAnswer("x", Outcome.COMPLETED), each) for each in made])
    assert len(AnswerStore(database).find_all([each.request_key for each in made])) == 1200


def test_the_first_answer_stays(database: StateDatabase) -> None:
    put(database, text="first")
    assert put(database, text="second", call_id="call-9").text == "first"


@pytest.mark.parametrize("values", [{"checksum": 1}, {"text": b"another"}])
def test_a_damaged_answer_counts_as_absent_and_is_replaced(
    database: StateDatabase, values: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    store = AnswerStore(database)
    put(database)
    put(database, 1)
    change(database, **values)
    assert store.damaged() == [key()]
    assert (store.stats().damaged, store.stats().entries) == (1, 1)
    assert store.find(key(), touch=False) is None
    assert store.find(key()) is None
    assert "damaged" in caplog.text
    assert put(database, text="new", call_id="call-9").text == "new"
    assert store.damaged() == []


def test_use_is_noted_once_a_day(database: StateDatabase) -> None:
    def used() -> float:
        return float(database.read(sa.select(ANSWERS.c.used_at))[0].used_at)

    store = AnswerStore(database)
    put(database)
    for ago, noted in ((3600, False), (2 * 86_400, True)):
        at = time.time() - ago
        change(database, used_at=at)
        store.find(key(), touch=False)
        assert used() == at
        store.find(key())
        assert (used() > at + 1) is noted


def aged(database: StateDatabase, *ages_days: float) -> None:
    """Answers of a thousand bytes that were last used so many days ago."""
    for number, days in enumerate(ages_days):
        put(database, number, "x" * 1000)
        change(database, number, used_at=time.time() - days * 86_400)


def left(database: StateDatabase, count: int) -> list[int]:
    return [number for number in range(count) if AnswerStore(database).find(key(number), touch=False)]


def test_pruning_drops_what_was_not_used_for_longest(database: StateDatabase) -> None:
    aged(database, 1, 4, 2, 3)
    report = AnswerStore(database).prune(2500, None)
    assert left(database, 4) == [0, 2]
    assert (report.removed, report.removed_bytes, report.kept, report.kept_bytes) == (2, 2000, 2, 2000)


def test_pruning_drops_what_was_not_used_for_days(database: StateDatabase) -> None:
    aged(database, 1, 40, 20, 30)
    assert AnswerStore(database).prune(None, 25).removed == 2
    assert left(database, 4) == [0, 2]


def test_pruning_drops_outcomes_and_keys_whatever_their_age(database: StateDatabase) -> None:
    aged(database, 0, 0, 0)
    change(database, 1, outcome="refused")
    assert AnswerStore(database).prune(None, None, ["refused"], [key(2)]).removed == 2
    assert left(database, 3) == [0]


def test_a_trial_removes_nothing(database: StateDatabase) -> None:
    aged(database, 1, 2)
    assert AnswerStore(database).prune(0, None, dry_run=True).removed == 2
    assert left(database, 2) == [0, 1]


def test_an_answer_that_is_used_while_it_is_pruned_stays(
    database: StateDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    aged(database, 10, 20)
    remove = AnswerStore._remove

    def use_first(self: AnswerStore, sizes: dict[str, int], seen_at: float) -> dict[str, int]:
        self.find(key(0))
        return remove(self, sizes, seen_at)

    monkeypatch.setattr(AnswerStore, "_remove", use_first)
    assert AnswerStore(database).prune(0, None).removed == 1
    assert left(database, 2) == [0]


def test_pruning_an_empty_store_makes_nothing(tmp_path: Path) -> None:
    assert AnswerStore(StateDatabase(tmp_path / "state.db")).prune(0, 0).removed == 0
    assert list(tmp_path.iterdir()) == []
