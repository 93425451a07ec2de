"""What stands around a provider: nothing is paid for twice, every call is written down, the budget holds, also when
processes are killed or work at the same time.
"""

import gc
import json
import random
import signal
import threading
import time
import weakref
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import sqlalchemy as sa
from forked import Child
from scripted_provider import (
    COST_USD,
    SECRET,
    BilledProvider,
    ScriptedProvider,
    answered,
    billed,
    make_ledger,
    request,
    said_by,
    work,
)

from rag_assets.contracts.errors import BudgetError, ModelError, StoreError
from rag_assets.contracts.generation import Completion, Outcome, Request, Usage, request_key
from rag_assets.contracts.ports import LanguageModel
from rag_assets.models.accounts.answers import AnswerStore
from rag_assets.models.accounts.budget import Budget
from rag_assets.models.accounts.ledger import Entry, Ledger
from rag_assets.models.accounts.schema import OWNERS, RESERVATIONS
from rag_assets.models.catalogue import upper_price_usd
from rag_assets.models.language_models import ExtractiveModel
from rag_assets.models.metered import MeteredModel


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return make_ledger(tmp_path, "run 1")


def ask(model: MeteredModel, *numbers: int) -> list[Completion]:
    return list(model.generate(request(number) for number in numbers))


def columns(ledger: Ledger, *names: str) -> list[tuple[object, ...]]:
    return sorted((tuple(row[name] for name in names) for row in ledger.rows().to_pylist()), key=repr)


def test_it_is_a_language_model(ledger: Ledger) -> None:
    model: LanguageModel = MeteredModel(ScriptedProvider(), ledger)
    assert (model.name, model.generative, model.context_tokens, model.output_tokens) == (
        "anthropic:scripted-1",
        True,
        8192,
        4096,
    )
    assert model.count_tokens([request(0)]) == [len(request(0).prefix)]


def test_what_was_paid_for_is_not_asked_again(ledger: Ledger) -> None:
    provider = ScriptedProvider()
    model = MeteredModel(provider, ledger)
    first = ask(model, 0, 1)
    again = list(model.generate(request(number, document_id="specs/b.xlsx") for number in range(2)))
    assert len(provider.asked) == 2
    assert {each.text for each in first} == {each.text for each in again} == {"answer to  0", "answer to  1"}
    assert [each.stored for each in (*first, *again)] == [False, False, True, True]
    assert all((each.usage, each.cost_usd) == (Usage(), 0.0) for each in again)
    assert {each.request.tag.document_id for each in again} == {"specs/b.xlsx"}
    assert columns(ledger, "cache_hit", "document_id", "cost_usd", "input_tokens", "run_id") == [
        *[(False, "specs/a.xlsx", COST_USD, 10, "run 1")] * 2,
        *[(True, "specs/b.xlsx", 0.0, 0, "run 1")] * 2,
    ]


def test_the_provider_is_opened_when_it_is_needed(ledger: Ledger) -> None:
    provider = ScriptedProvider()
    model = MeteredModel(provider, ledger)
    with model.session() as session:
        assert session.take(wait=True) is None
        assert provider.keeps == []
        session.submit(request(0))
        session.submit(request(1))
    assert len(provider.keeps) == 1
    ask(model, 0)
    assert len(provider.keeps) == 2


def test_an_answer_is_stored_before_it_is_handed_out(ledger: Ledger, tmp_path: Path) -> None:
    model = MeteredModel(ScriptedProvider(), ledger)
    for completion in model.generate(map(request, range(10))):
        found = make_ledger(tmp_path).answers.find(request_key(model.name, completion.request))
        assert found is not None
        assert found.text == completion.text


@pytest.mark.parametrize("keep_at_submit", [False, True])
def test_a_request_under_way_is_asked_once(ledger: Ledger, keep_at_submit: bool) -> None:
    provider = ScriptedProvider(at_once=8, keep_at_submit=keep_at_submit)
    names = [f"specs/{name}.xlsx" for name in "abc"]
    asked = [request(number, document_id=name) for name in names for number in range(3)]
    completions = list(MeteredModel(provider, ledger).generate(asked))
    assert len(provider.asked) == 3
    assert Counter((each.request.content_sha256, each.request.tag.document_id) for each in completions) == Counter(
        (each.content_sha256, each.tag.document_id) for each in asked
    )
    assert Counter(each.stored for each in completions) == {False: 3, True: 6}
    assert all(each.text == f"answer to {each.request.messages[0].text.removeprefix(SECRET)}" for each in completions)
    assert Counter(ledger.rows()["cache_hit"].to_pylist()) == {False: 3, True: 6}
    assert sum(each.cost_usd for each in completions) == pytest.approx(ledger.spent_usd())


@pytest.mark.parametrize("outcome", sorted({*Outcome} - {Outcome.REPEATED, Outcome.UNKNOWN}))
def test_answers_that_were_paid_for_are_stored(ledger: Ledger, outcome: Outcome) -> None:
    provider = ScriptedProvider(lambda asked: replace(answered(asked, "part", outcome), error="why"))
    model = MeteredModel(provider, ledger)
    first, follower = ask(model, 0, 0)
    (again,) = ask(model, 0)
    stored = outcome not in {Outcome.FAILED, Outcome.INVALID}
    assert (first.stored, follower.stored, again.stored) == (False, stored, stored)
    assert {(each.outcome, each.text, each.error) for each in (first, follower, again)} == {(outcome, "part", "why")}
    assert len(provider.asked) == (1 if stored else 2)
    assert ledger.spent_usd() == pytest.approx(COST_USD * len(provider.asked))
    assert Counter(row for row in columns(ledger, "outcome", "cache_hit")) == Counter(
        {(outcome.value, False): 1, (outcome.value, True): 2} if stored else {(outcome.value, False): 2}
    )


def test_failures_are_written_down_and_asked_again(ledger: Ledger) -> None:
    provider = ScriptedProvider(lambda asked: Completion(asked, Outcome.FAILED, called_at=time.time(), error="400"))
    model = MeteredModel(provider, ledger)
    assert [each.outcome for each in ask(model, 0, 1)] == [Outcome.FAILED] * 2
    provider.script = answered
    assert [each.outcome for each in ask(model, 0)] == [Outcome.COMPLETED]
    assert columns(ledger, "outcome", "error", "cost_usd") == [
        ("completed", None, COST_USD),
        *[("failed", "400", 0.0)] * 2,
    ]


def test_a_provider_that_keeps_nothing_loses_nothing(ledger: Ledger) -> None:
    provider = ScriptedProvider()
    provider.forgetful = True
    model = MeteredModel(provider, ledger)
    assert not ask(model, 0)[0].stored
    assert ledger.spent_usd() == pytest.approx(COST_USD)
    assert ask(model, 0)[0].stored


def test_answers_that_nobody_asks_for_now_are_kept(ledger: Ledger) -> None:
    provider = ScriptedProvider()
    budget = Budget(ledger, 1.0, None)
    model = MeteredModel(provider, ledger, budget)
    with model.session() as session:
        session.submit(request(0))
        provider.keeps[0]([answered(request(7))])
        assert session.take(wait=True) is not None
        assert session.take(wait=True) is None
    assert ask(model, 7)[0].stored
    assert ledger.spent_usd() == pytest.approx(2 * COST_USD)


def test_the_answer_that_was_stored_first_is_the_one_for_all(ledger: Ledger) -> None:
    def overtaken(asked: Request) -> Completion:
        ledger.keep(ScriptedProvider.name, [Entry(answered(asked, "first"))])
        return answered(asked, "second")

    (completion,) = ask(MeteredModel(ScriptedProvider(overtaken), ledger), 0)
    assert completion.text == "first"
    assert not completion.stored
    assert ledger.spent_usd() == pytest.approx(2 * COST_USD)


def test_an_answer_that_cannot_be_stored_ends_the_work(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object) -> None:
        raise StoreError("state.db: no space is left on the disk")

    monkeypatch.setattr(AnswerStore, "add", full)
    provider = ScriptedProvider()
    provider.forgetful = True
    with MeteredModel(provider, ledger).session() as session:
        session.submit(request(0))
        with pytest.raises(ModelError, match="cannot be stored: state.db: no space"):
            session.take(wait=True)


def test_answers_that_had_come_are_yielded_before_the_model_fails(ledger: Ledger) -> None:
    provider = ScriptedProvider()
    model = MeteredModel(provider, ledger)
    provider.calls_left = 3
    done: list[Completion] = []
    with pytest.raises(ModelError, match="no more calls"):
        collect(model, range(6), done)
    assert len(done) == 3
    provider.calls_left = None
    assert Counter(each.stored for each in ask(model, *range(6))) == {True: 3, False: 3}


def collect(model: MeteredModel, numbers: range, done: list[Completion]) -> None:
    for completion in model.generate(map(request, numbers)):
        done.append(completion)  # noqa: PERF402 - what came before an error is wanted


def test_no_prompt_is_written_anywhere(tmp_path: Path) -> None:
    ledger = make_ledger(tmp_path)
    budget = Budget(ledger, 1.0, 1.0)

    def mixed(asked: Request) -> Completion:
        outcome = Outcome.FAILED if asked.messages[0].text.endswith("1") else Outcome.COMPLETED
        return answered(asked, "said", outcome)

    model = MeteredModel(ScriptedProvider(mixed), ledger, budget)
    ask(model, 0, 1, 2, 0)
    ask(model, 0, 1)
    for _ in range(2):
        written = [path for path in tmp_path.rglob("*") if path.is_file()]
        assert tmp_path / "state.db" in written
        for path in written:
            content = path.read_bytes()
            for form in (SECRET.encode(), json.dumps(SECRET)[1:-1].encode(), b"prefix"):
                assert form not in content, path
        ledger.compact()


def live_requests(model: MeteredModel, numbers: Iterator[int]) -> int:
    """The most requests that were in memory at once."""
    alive: weakref.WeakValueDictionary[int, Request] = weakref.WeakValueDictionary()
    most = 0

    def made() -> Iterator[Request]:
        for number in numbers:
            alive[id(alive) + number] = asked = request(number % 600)
            yield asked

    for count, _ in enumerate(model.generate(made())):
        if count % 100 == 0:
            gc.collect(0)
            most = max(most, len(alive))
    return most


def test_requests_are_never_all_in_memory(ledger: Ledger) -> None:
    provider = ScriptedProvider(at_once=16)
    model = MeteredModel(provider, ledger)
    assert live_requests(model, iter(range(600))) < 100
    provider.asked.clear()
    assert live_requests(model, iter(range(1200))) < 100
    assert provider.asked == []


def test_many_that_wait_for_one_answer_are_let_through(ledger: Ledger) -> None:
    provider = ScriptedProvider()
    completions = ask(MeteredModel(provider, ledger), *[0] * 500)
    assert (len(completions), len(provider.asked)) == (500, 1)


# The budget


def reservations(ledger: Ledger) -> list[object]:
    return list(ledger.database.read(sa.select(RESERVATIONS)))


def price() -> float:
    return upper_price_usd(request(0), ScriptedProvider.facts)


def test_work_ends_before_it_costs_more_than_the_budget(tmp_path: Path) -> None:
    ledger = make_ledger(tmp_path)
    limit = price() + 6.5 * COST_USD
    assert price() > COST_USD
    done: list[Completion] = []
    provider = ScriptedProvider(at_once=100)
    model = MeteredModel(provider, ledger, Budget(ledger, limit, None))
    with pytest.raises(BudgetError, match="Paid answers are kept"):
        collect(model, range(20), done)
    assert len(done) == 7
    assert ledger.spent_usd() <= limit
    more = MeteredModel(provider, ledger, Budget(ledger, 1.0, None))
    assert Counter(each.stored for each in ask(more, *range(20))) == {True: 7, False: 13}


def test_calls_under_way_are_waited_for_before_the_budget_is_spent(tmp_path: Path) -> None:
    ledger = make_ledger(tmp_path)
    budget = Budget(ledger, 3.5 * price(), None)
    provider = ScriptedProvider(at_once=100)
    assert price() * 10 > 3.5 * price() > COST_USD * 3
    assert len(ask(MeteredModel(provider, ledger, budget), *range(3))) == 3
    assert len(ask(MeteredModel(provider, ledger, budget), *range(4))) == 4


def test_stored_answers_cost_no_budget(tmp_path: Path) -> None:
    ledger = make_ledger(tmp_path)
    ask(MeteredModel(ScriptedProvider(), ledger), 0, 1)
    spent = MeteredModel(ScriptedProvider(), ledger, Budget(ledger, 0.0, None))
    assert all(each.stored for each in ask(spent, 0, 1))
    with pytest.raises(BudgetError):
        ask(spent, 2)


def test_reservations_end_with_the_session(tmp_path: Path) -> None:
    ledger = make_ledger(tmp_path)
    budget = Budget(ledger, 1.5 * price(), None)
    model = MeteredModel(ScriptedProvider(), ledger, budget)
    with model.session() as session:
        session.submit(request(0))
    provider = ScriptedProvider()
    provider.calls_left = 0
    with pytest.raises(ModelError, match="no more calls"):
        ask(MeteredModel(provider, ledger, budget), 1)
    failing = ScriptedProvider(lambda asked: Completion(asked, Outcome.FAILED, error="400"))
    with MeteredModel(failing, ledger, budget).session() as session:
        for number in range(3):
            session.submit(request(number))
            assert session.take(wait=True) is not None
    assert reservations(ledger) == []


def test_what_other_processes_reserve_is_waited_for(tmp_path: Path) -> None:
    ledger = make_ledger(tmp_path)
    other = Budget(make_ledger(tmp_path), 1.5 * price(), None)
    model = MeteredModel(ScriptedProvider(), ledger, Budget(ledger, 1.5 * price(), None), patience_seconds=0.3)
    with other.session():
        kept = other.reserve(ScriptedProvider.name, "another", request(9), price())
        with pytest.raises(BudgetError, match="kept for calls under way"):
            ask(model, 0)
        timer = threading.Timer(0.5, other.release, ([kept],))
        timer.start()
        model._patience_seconds = 30.0
        assert len(ask(model, 0)) == 1
        timer.join()


# Processes


def run_and_kill(home: Path, chance: random.Random, times: int, *, batches: bool = False, prunes: bool = False) -> int:
    """Have processes work that are killed at random calls of the operating system.

    Returns:
        How many were; the others were done before.
    """
    kills = 0
    for _ in range(times):
        seed, moment = chance.randrange(1000), chance.randrange(1, 150)
        asking = partial(work, batches=batches, prunes=prunes, killed_at=moment)
        status = Child(asking, home, seed).wait()
        assert status in {0, -signal.SIGKILL}
        kills += status != 0
    return kills


def paid_keys(ledger: Ledger) -> Counter[str]:
    rows = ledger.rows().to_pylist()
    assert len({row["call_id"] for row in rows}) == len(rows)
    return Counter(row["request_key"] for row in rows if not row["cache_hit"])


def assert_tidy(home: Path) -> None:
    ledger = make_ledger(home)
    before = ledger.rows()
    spent = ledger.spent_usd()
    ledger.compact()
    assert ledger.rows().equals(before)
    assert ledger.spent_usd() == pytest.approx(spent)
    stats = ledger.answers.stats()
    assert (stats.pending, stats.damaged) == (0, 0)
    Budget(ledger).settle_dead()
    assert reservations(ledger) == []
    assert ledger.database.read(sa.select(OWNERS)) == []


@pytest.mark.parametrize("seed", [1, 2])
def test_kills_lose_no_paid_answer(tmp_path: Path, seed: int) -> None:
    assert run_and_kill(tmp_path, random.Random(seed), 6, batches=True, prunes=True) >= 3
    ledger = make_ledger(tmp_path)
    model = MeteredModel(BilledProvider(tmp_path / "provider", batches=True), ledger)
    ask(model, *range(12))
    ask(model, *range(12))
    assert paid_keys(ledger) == Counter(billed(tmp_path / "provider"))
    assert ledger.spent_usd() == pytest.approx(COST_USD * len(billed(tmp_path / "provider")))
    assert_tidy(tmp_path)


def test_kills_lose_at_most_what_was_not_on_the_disk(tmp_path: Path) -> None:
    kills = run_and_kill(tmp_path, random.Random(3), 5)
    assert kills >= 3
    ledger = make_ledger(tmp_path)
    ask(MeteredModel(BilledProvider(tmp_path / "provider", batches=False), ledger), *range(12))
    paid, bill = paid_keys(ledger), Counter(billed(tmp_path / "provider"))
    assert set(paid) == set(bill)
    assert not paid - bill
    assert (bill - paid).total() <= 4 * kills  # those under way when the process was killed
    assert bill.total() <= 12 + 4 * kills


def test_processes_that_ask_the_same_at_once_agree(tmp_path: Path) -> None:
    children = [Child(work, tmp_path, seed) for seed in range(4)]
    assert [child.wait() for child in children] == [0] * 4
    texts = [json.loads(said_by(tmp_path, seed).read_text("utf-8")) for seed in range(4)]
    ledger = make_ledger(tmp_path)
    assert paid_keys(ledger) == Counter(billed(tmp_path / "provider"))
    assert ledger.spent_usd() == pytest.approx(COST_USD * len(billed(tmp_path / "provider")))
    stored = {
        each.request.content_sha256: each.text for each in ask(MeteredModel(ScriptedProvider(), ledger), *range(12))
    }
    for said in texts:
        assert said.items() <= stored.items()
    assert ledger.rows().num_rows == 4 * 4 * 10 + 12
    assert_tidy(tmp_path)


# Without a language model


def test_who_has_no_model_is_told_the_setting() -> None:
    model: LanguageModel = ExtractiveModel()
    assert (model.name, model.generative) == ("extractive", False)
    for call in (model.session, lambda: model.generate([request(0)]), lambda: model.count_tokens([request(0)])):
        with pytest.raises(ModelError, match=r"language_model\.provider"):
            call()
