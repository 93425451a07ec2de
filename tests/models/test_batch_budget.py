"""The budget and Message Batches: a batch under way counts until its results are in the ledger, whoever lives or dies.

The server is the tests' own (`scripted_batches`).
"""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa
from forked import Child
from scripted_batches import FACTS, KEY, NAME, PAID, ScriptedBatches, batch_model, no_calls, nothing_happens
from scripted_provider import make_ledger, state_of

from rag_assets.contracts.errors import BudgetError
from rag_assets.contracts.generation import Completion, Message, Outcome, Request, Tag, request_key
from rag_assets.contracts.ports import Session
from rag_assets.models.accounts.budget import Budget, batches_usd
from rag_assets.models.accounts.schema import RESERVATIONS
from rag_assets.models.anthropic.batches import OpenCalls
from rag_assets.models.anthropic.open_batches import BatchStore, cancel_batch
from rag_assets.models.catalogue import upper_price_usd
from rag_assets.models.metered import MeteredModel
from rag_assets.models.providers import CallBudget, Keep


def ask(number: int) -> Request:
    return Request("prefix", (Message("user", f"document {number}"),), 100, Tag("documents", "summarize", f"d{number}"))


PRICE = upper_price_usd(ask(0), FACTS)
BATCH_PRICE = upper_price_usd(ask(0), FACTS, batch=True)


def under_way_usd(home: Path) -> float:
    with state_of(home).transaction() as connection:
        return batches_usd(connection)


def make_budget(home: Path, limit_usd: float, run_id: str | None = None) -> Budget:
    run_usd = limit_usd if run_id else None
    return Budget(make_ledger(home, run_id), limit_usd, run_usd)


def metered(
    home: Path, url: str, limit_usd: float, batch: str = "always", open_calls: OpenCalls = no_calls
) -> MeteredModel:
    ledger, model = make_ledger(home), batch_model(url, home, batch=batch, open_calls=open_calls)
    return MeteredModel(model, ledger, Budget(ledger, limit_usd), patience_seconds=0.1)


def answered(model: MeteredModel, count: int) -> list[Completion]:
    return list(model.generate(ask(number) for number in range(count)))


def ask_for_answers(home: Path, url: str, limit_usd: float, count: int) -> None:
    answered(metered(home, url, limit_usd), count)


def kill_at(server: ScriptedBatches, moment: str, home: Path, limit_usd: float, count: int) -> None:
    """Have a process ask for answers in a batch, and kill it at the first such moment of the server."""
    process = Child(ask_for_answers, home, server.url, limit_usd, count)

    def strike(event: str, number: int) -> None:
        if event == moment:
            server.on = nothing_happens
            process.kill()
            process.wait()

    server.on = strike
    assert process.wait(60) == -9


def end(server: ScriptedBatches) -> None:
    for batch in server.batches.values():
        batch.ends_at = time.monotonic()


def largest_reservation(budget: Budget, limit_usd: float) -> float:
    """What of a budget can be had for a call, to a hundredth of it."""
    with budget.session():
        for hundredths in range(100, 0, -1):
            price_usd = limit_usd * hundredths / 100
            with suppress(BudgetError):
                budget.release([budget.reserve(NAME, "key", ask(0), price_usd)])
                return price_usd
    return 0.0


@pytest.mark.parametrize("moment", ["create_arrives", "create_made", "retrieve"])
def test_a_batch_of_a_killed_process_counts_until_its_results_are_in_the_ledger(tmp_path: Path, moment: str) -> None:
    count, limit = 20, 25 * BATCH_PRICE
    with ScriptedBatches(seconds=60) as server:
        kill_at(server, moment, tmp_path, limit, count)
        for run_id in (None, "another run"):
            left = largest_reservation(make_budget(tmp_path, limit, run_id), limit)
            assert left == pytest.approx(5 * BATCH_PRICE, rel=0.06)
        budget = make_budget(tmp_path, limit)
        with budget.session():
            with pytest.raises(BudgetError, match=r"batches under way \(`rag-assets batches` lists them\)") as refusal:
                budget.reserve(NAME, "key", ask(0), 20 * BATCH_PRICE)
            assert refusal.value.may_pass
        end(server)
        if moment == "create_arrives":
            server.seconds = 0
        # the limit has no room for a second reservation of the same requests
        found = answered(metered(tmp_path, server.url, limit), count)
        assert {each.outcome for each in found} == {Outcome.COMPLETED}
        assert server.asked == {f"document {number}": 1 for number in range(count)}
    assert make_ledger(tmp_path).spent_usd() == pytest.approx(count * PAID)
    assert BatchStore(state_of(tmp_path)).open_batches() == []
    assert largest_reservation(make_budget(tmp_path, limit), limit) == pytest.approx(limit - count * PAID, rel=0.02)


def test_a_batch_is_reserved_at_its_price_also_where_few_calls_are_single_ones(tmp_path: Path) -> None:
    reserved: list[float] = []

    @contextmanager
    def open_calls(keep: Keep, budget: CallBudget) -> Iterator[Session]:
        yield SingleCalls(keep, budget, lambda: reserved.append(reserved_now(tmp_path)))

    with ScriptedBatches() as server:
        limit = 4.5 * BATCH_PRICE
        assert 2 * PRICE < limit < 3 * PRICE
        model = metered(tmp_path, server.url, limit, "auto", open_calls)
        assert len(answered(model, 4)) == 4
        assert [len(batch.requests) for batch in server.batches.values()] == [4]
        assert reserved == []
        found = list(model.generate(ask(number) for number in (7, 8)))
        assert [each.text for each in found] == ["called", "called"]
        assert reserved == pytest.approx([PRICE + BATCH_PRICE, 2 * PRICE])
        assert len(server.batches) == 1


def test_single_calls_that_do_not_fit_together_are_made_one_after_the_other(tmp_path: Path) -> None:
    reserved: list[float] = []

    @contextmanager
    def open_calls(keep: Keep, budget: CallBudget) -> Iterator[Session]:
        yield SingleCalls(keep, budget, lambda: reserved.append(reserved_now(tmp_path)))

    with ScriptedBatches() as server:
        model = metered(tmp_path, server.url, 1.6 * PRICE, "auto", open_calls)
        assert len(answered(model, 2)) == 2
        assert reserved == pytest.approx([PRICE + BATCH_PRICE, PRICE])
        spent = metered(tmp_path, server.url, 0.6 * PRICE, "auto", open_calls)
        with pytest.raises(BudgetError, match="may cost"):
            list(spent.generate([ask(7)]))
        assert len(reserved) == 2, "at the price of a batch it would have fitted"


def reserved_now(home: Path) -> float:
    return sum(float(row.price_usd) for row in state_of(home).read(sa.select(RESERVATIONS.c.price_usd)))


class SingleCalls:
    """Answers a request when its answer is taken."""

    def __init__(self, keep: Keep, budget: CallBudget, before: Callable[[], None]) -> None:
        self._keep, self._budget, self._before = keep, budget, before
        self._line: list[Request] = []

    def submit(self, request: Request) -> None:
        self._budget.reserve(request)
        self._before()
        self._line.append(request)

    def take(self, *, wait: bool) -> Completion | None:
        if not (wait and self._line):
            return None
        answer = Completion(self._line.pop(0), Outcome.COMPLETED, "called", cost_usd=PAID, called_at=time.time())
        self._keep([answer])
        return answer

    def cancel(self) -> None:
        self._line.clear()


def test_a_batch_that_is_ended_counts_until_it_is_read_and_one_that_is_unknown_no_longer(tmp_path: Path) -> None:
    def cancel(batch_id: str | None) -> str:
        assert batch_id
        return cancel_batch(state_of(tmp_path), batch_id, api_key=KEY, base_url=server.url, timeout_seconds=5)

    with ScriptedBatches(seconds=60) as server:
        kill_at(server, "retrieve", tmp_path, 1.0, 4)
        (found,) = BatchStore(state_of(tmp_path)).open_batches()
        assert cancel(found.batch_id) == "canceling"
        assert under_way_usd(tmp_path) == pytest.approx(4 * BATCH_PRICE)
        end(server)
        server.seconds = 0
        assert len(answered(metered(tmp_path, server.url, 1.0), 4)) == 4
        assert under_way_usd(tmp_path) == 0
        assert set(server.billed.values()) == {1}
        server.seconds = 60
        kill_at(server, "retrieve", tmp_path, 1.0, 8)
        assert under_way_usd(tmp_path) == pytest.approx(4 * BATCH_PRICE)
        (found,) = BatchStore(state_of(tmp_path)).open_batches()
        server.batches.clear()
        assert cancel(found.batch_id) == "forgotten"
        assert under_way_usd(tmp_path) == 0


def test_results_that_can_no_longer_be_had_do_not_count_and_are_asked_for_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ScriptedBatches(seconds=60) as server:
        kill_at(server, "retrieve", tmp_path, 1.0, 4)
        assert under_way_usd(tmp_path) > 0
        month_later = time.time() + 30 * 86_400
        monkeypatch.setattr("rag_assets.models.anthropic.open_batches.time.time", lambda: month_later)
        assert under_way_usd(tmp_path) == 0
        server.seconds = 0
        assert len(answered(metered(tmp_path, server.url, 1.0), 4)) == 4
        assert set(server.asked.values()) == {2}


def test_a_batch_that_nobody_asks_for_any_longer_is_read_and_paid_from_the_budget(tmp_path: Path) -> None:
    with ScriptedBatches(seconds=60) as server:
        kill_at(server, "retrieve", tmp_path, 1.0, 4)
        server.seconds = 0
        end(server)
        assert len(list(metered(tmp_path, server.url, 1.0).generate([ask(100)]))) == 1
    assert make_ledger(tmp_path).spent_usd() == pytest.approx(5 * PAID)
    assert BatchStore(state_of(tmp_path)).open_batches() == []


class CountedBudget:
    """Refuses after so many reservations."""

    def __init__(self, left: int) -> None:
        self.left = left

    def reserve(self, request: Request, *, batch: bool = False) -> None:
        assert request.prefix
        assert batch
        if not self.left:
            raise BudgetError("spent")
        self.left -= 1

    def send(self, requests: Iterable[Request]) -> None:
        raise AssertionError(f"no single calls are expected: {requests}")

    def release(self, requests: Iterable[Request]) -> None:
        for _ in requests:
            pass


def test_requests_that_a_batch_left_unanswered_are_reserved_again(tmp_path: Path) -> None:
    def outcome(text: str, before: int) -> str:
        return "expired" if text.endswith(("1", "2")) and not before else "succeeded"

    found: list[Completion] = []
    with ScriptedBatches(outcome) as server:
        with (
            batch_model(server.url, tmp_path).open(found.extend, CountedBudget(5)) as session,
            pytest.raises(BudgetError, match="spent"),
        ):
            for number in range(4):
                session.submit(ask(number))
            while session.take(wait=True):
                pass
        assert sorted(each.request.messages[0].text[-1] for each in found) == ["0", "3"]
        assert sum(server.asked.values()) == 4
        again = batch_model(server.url, tmp_path)
        with again.open(found.extend, CountedBudget(2)) as session:
            for number in (1, 2):
                session.submit(ask(number))
            assert session.take(wait=True)
            assert session.take(wait=True)
    assert len(found) == 4


def test_a_request_that_others_ask_again_first_is_answered_by_them(tmp_path: Path) -> None:
    """Two wait for one batch, which leaves some unanswered: one asks again, the other waits for the answer."""

    def outcome(text: str, before: int) -> str:
        return "expired" if text.endswith(("1", "2")) and not before else "succeeded"

    claimed: list[str] = []

    def claim(event: str, number: int) -> None:
        if event == "retrieve" and not claimed:
            claimed.extend(
                other.reserve(NAME, request_key(f"anthropic:{NAME}", each), each, BATCH_PRICE)
                for each in (ask(1), ask(2))
            )

    other = make_budget(tmp_path, 1.0)
    with ScriptedBatches(outcome) as server, other.session():
        server.seconds = 60.0
        with metered(tmp_path, server.url, 1.0).session() as left:
            server.on = lambda *_: left.cancel()
            for number in (0, 1, 2):
                left.submit(ask(number))
            assert left.take(wait=True) is None
        server.on, server.seconds = claim, 0.0
        end(server)
        with metered(tmp_path, server.url, 1.0).session() as session:
            for number in (0, 1, 2, 1):
                session.submit(replace(ask(number), tag=Tag("documents", "summarize", f"own {number}")))
            found = [session.take(wait=True)]
            assert session.take(wait=False) is None
            assert len(claimed) == 2
            other.release(claimed)
            while (completion := session.take(wait=True)) is not None:
                found.append(completion)
        texts = sorted((each.request.messages[0].text[-1], each.request.tag.document_id) for each in found if each)
        assert texts == [("0", "own 0"), ("1", "own 1"), ("1", "own 1"), ("2", "own 2")]
        assert sum(server.billed.values()) == 3
        assert reserved_now(tmp_path) == 0


def test_what_a_batch_may_cost_is_written_down_with_it(tmp_path: Path) -> None:
    requests = [ask(0), replace(ask(1), max_tokens=1000)]
    with ScriptedBatches(seconds=60) as server:

        def look(event: str, number: int) -> None:
            if event == "create_arrives":
                (found,) = BatchStore(state_of(tmp_path)).open_batches()
                prices.append(found.price_usd)
                server.seconds = 0

        prices: list[float] = []
        server.on = look
        list(metered(tmp_path, server.url, 1.0).generate(requests))
    assert prices == [pytest.approx(sum(upper_price_usd(each, FACTS, batch=True) for each in requests))]
    assert BatchStore(state_of(tmp_path)).open_batches() == []
