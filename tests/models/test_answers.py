"""Stored answers: written once, read whole or not at all, removed by age of use."""

import errno
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted_provider import make_ledger, request

from rag_assets.contracts.generation import Outcome, request_key
from rag_assets.models.accounts.answers import AnswerStore, StoredAnswer
from rag_assets.models.accounts.calls import CallRecord

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


def stored(number: int = 0, text: str = "答え", **changes: object) -> StoredAnswer:
    return StoredAnswer(text, record(number, **changes))


def key(number: int = 0) -> str:
    return request_key(MODEL, request(number))


def path_of(store: AnswerStore, number: int = 0) -> Path:
    return store.folder / key(number)[:2] / f"{key(number)}.json"


def settle(store: AnswerStore) -> None:
    """What the ledger does once its table has the records."""
    store.release(list(store.pending()))


@pytest.fixture
def store(tmp_path: Path) -> AnswerStore:
    return AnswerStore(tmp_path / "answers")


def test_what_is_put_is_found_with_its_record(store: AnswerStore) -> None:
    assert store.find(key()) is None
    assert store.put(stored()) == stored()
    assert store.find(key()) == stored()
    assert AnswerStore(store.folder).find(key()) == stored()
    assert [store.pending_record(path) for path in store.pending()] == [record()]


@settings(max_examples=50, deadline=None)
@given(text=st.text(st.characters(codec=None, exclude_categories=())))
def test_any_text_comes_back(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    store = AnswerStore(tmp_path_factory.mktemp("answers"))
    store.put(stored(text=text))
    assert store.find(key()) == stored(text=text)


def test_a_long_text_comes_back(store: AnswerStore) -> None:
    text = "".join(chr(0x4E00 + number % 20_000) for number in range(1_000_000))
    store.put(stored(text=text))
    assert store.find(key()) == stored(text=text)


def test_the_first_answer_stays_and_both_payments_are_recorded(store: AnswerStore) -> None:
    store.put(stored(text="first"))
    second = stored(text="second", call_id="call-other")
    assert store.put(second).text == "first"
    assert store.find(key()) == stored(text="first")
    found = [store.pending_record(path) for path in store.pending()]
    assert sorted(each.call_id for each in found if each) == ["call-0", "call-other"]
    settle(store)
    assert list(store.pending()) == []
    assert store.find(key()) == stored(text="first")


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[: len(content) // 2],
        lambda content: content[:0],
        lambda content: content.replace("答え".encode(), "嘘え".encode()),
        lambda content: content[:-1] + b"]",
        lambda content: b"\xff" * len(content),
    ],
    ids=["torn", "empty", "edited", "end", "binary"],
)
def test_a_damaged_entry_counts_as_absent_and_is_replaced(
    store: AnswerStore, damage: object, caplog: pytest.LogCaptureFixture
) -> None:
    assert callable(damage)
    store.put(stored())
    settle(store)
    path_of(store).write_bytes(damage(path_of(store).read_bytes()))
    assert store.find(key()) is None
    assert "damaged" in caplog.text
    assert store.put(stored(text="again")).text == "again"
    assert store.find(key()) == stored(text="again")


def test_an_entry_under_the_name_of_another_counts_as_absent(store: AnswerStore) -> None:
    store.put(stored(0))
    path_of(store, 1).parent.mkdir(exist_ok=True)
    path_of(store, 1).write_bytes(path_of(store, 0).read_bytes())
    assert store.find(key(1)) is None


def test_an_answer_whose_writer_was_killed_before_the_link_is_found(store: AnswerStore) -> None:
    store.put(stored())
    path_of(store).unlink()
    assert store.find(key()) == stored()
    assert path_of(store).exists()


def test_a_torn_pending_file_is_no_answer_and_goes_once_nobody_can_be_writing_it(store: AnswerStore) -> None:
    store.put(stored())
    path_of(store).unlink()
    (pending,) = store.pending()
    pending.write_bytes(pending.read_bytes()[:-9])
    assert store.find(key()) is None
    store.discard_torn(pending)
    assert pending.exists()
    os.utime(pending, (0, 0))
    store.discard_torn(pending)
    assert not pending.exists()


def test_file_systems_without_links_do(store: AnswerStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object, **options: object) -> None:
        raise OSError(errno.EOPNOTSUPP, "no links")

    monkeypatch.setattr(os, "link", refuse)
    store.put(stored(text="first"))
    assert store.put(stored(text="second", call_id="call-other")).text == "first"
    settle(store)
    assert store.find(key()) == stored(text="first")
    assert list(store.pending()) == []


def test_a_full_disk_leaves_nothing_half_written(store: AnswerStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> int:
        raise OSError(errno.ENOSPC, "no space")

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", refuse)
        with pytest.raises(OSError, match="no space"):
            store.put(stored())
    assert list(store.pending()) == []
    assert store.find(key()) is None


def test_use_is_noted_once_a_day(store: AnswerStore) -> None:
    store.put(stored())
    now = time.time()
    for age, noted in ((3600.0, False), (2 * 86_400.0, True)):
        os.utime(path_of(store), (now - age, now - age))
        store.find(key(), touch=False)
        assert path_of(store).stat().st_mtime == pytest.approx(now - age, abs=1)
        store.find(key())
        assert (path_of(store).stat().st_mtime > now - 60) == noted


def aged(store: AnswerStore, *ages_days: float) -> None:
    for number in range(len(ages_days)):
        store.put(stored(number, text="x" * 100))
    settle(store)
    for number, age in enumerate(ages_days):
        at = time.time() - age * 86_400
        os.utime(path_of(store, number), (at, at))


def left(store: AnswerStore, count: int) -> list[int]:
    return [number for number in range(count) if path_of(store, number).exists()]


def test_pruning_drops_what_was_not_used_for_longest(store: AnswerStore) -> None:
    aged(store, 3, 30, 1, 300)
    size = path_of(store).stat().st_size
    report = store.prune(2 * size + 10, None)
    assert (report.removed, report.kept) == (2, 2)
    assert report.kept_bytes == pytest.approx(2 * size, abs=20)
    assert left(store, 4) == [0, 2]


def test_pruning_drops_what_was_not_used_for_days(store: AnswerStore) -> None:
    aged(store, 3, 30, 1, 300)
    assert store.prune(None, 20).removed == 2
    assert left(store, 4) == [0, 2]
    assert store.prune(1 << 30, 20).removed == 0


def test_pruning_drops_outcomes_whatever_their_age(store: AnswerStore) -> None:
    store.put(stored(0, outcome=Outcome.REFUSED.value))
    store.put(stored(1))
    store.put(stored(2))
    settle(store)
    assert store.prune(None, None, ["refused", "empty"]).removed == 1
    assert store.prune(None, None, keys={key(2)}).removed == 1
    assert left(store, 3) == [1]


def test_pruning_keeps_what_the_ledger_has_not_read(store: AnswerStore) -> None:
    aged(store, 30, 30)
    store.put(stored(2, outcome=Outcome.REFUSED.value))
    os.utime(path_of(store, 2), (0, 0))
    report = store.prune(0, 1, ["refused"])
    assert (report.removed, report.kept) == (2, 1)
    assert left(store, 3) == [2]


def test_a_trial_removes_nothing(store: AnswerStore) -> None:
    aged(store, 3, 30)
    trial = store.prune(None, 20, dry_run=True)
    assert left(store, 2) == [0, 1]
    assert store.prune(None, 20) == trial


def test_an_answer_that_is_used_while_others_are_removed_stays(
    store: AnswerStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    aged(store, 30, 30)
    remove = AnswerStore._remove

    def use_first(self: AnswerStore, name: str, used: float) -> bool:
        assert store.find(name) is not None
        return remove(self, name, used)

    monkeypatch.setattr(AnswerStore, "_remove", use_first)
    assert store.prune(None, 20).removed == 0
    assert left(store, 2) == [0, 1]


def test_pruning_an_empty_store_makes_nothing(store: AnswerStore) -> None:
    assert store.prune(0, 0).removed == 0
    assert not store.folder.exists()


def test_statistics_sum_by_model_step_and_outcome(tmp_path: Path) -> None:
    store = make_ledger(tmp_path).answers
    store.put(stored(0))
    store.put(stored(1, called_at=1_793_000_500.0))
    store.put(stored(2, outcome="refused", step="other"))
    settle(store)
    path_of(store, 1).with_name("stray.json").write_text("{}")
    found = store.stats()
    assert [(group.step, group.outcome, group.entries, group.cost_usd) for group in found.groups] == [
        ("other", "refused", 1, 0.25),
        ("summarize_page", "completed", 2, 0.5),
    ]
    assert (found.entries, found.damaged, found.pending) == (3, 0, 0)
    assert found.bytes == sum(path_of(store, number).stat().st_size for number in range(3))
    assert (found.oldest, found.newest) == (1_793_000_000.0, 1_793_000_500.0)
    path_of(store, 0).write_text("{}")
    assert (store.stats().entries, store.stats().damaged) == (2, 1)
