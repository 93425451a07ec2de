"""The budget: nothing is spent beyond it, all processes share it, and what is kept for calls comes free again."""

import itertools
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from scripted_provider import ScriptedProvider, answered, make_ledger, request

from rag_assets.contracts.errors import BudgetError
from rag_assets.contracts.generation import Message, Usage, request_key
from rag_assets.models.accounts.budget import Budget
from rag_assets.models.accounts.ledger import Entry
from rag_assets.models.catalogue import ModelFacts, Prices, Thinking, upper_price_usd
from rag_assets.models.providers import ClaimedError

MODEL = ScriptedProvider.name
KILLED = """
import sys
from pathlib import Path
from test_budget import *
budget = make_budget(Path(sys.argv[1]))
with budget.session():
    sent, unsent = reserved(budget, 0.5), reserved(budget, 0.4)
    budget.send([sent])
    print("reserved", flush=True)
    sys.stdin.read()
"""
numbers = itertools.count()


def make_budget(
    home: Path, month_usd: float | None = 1.0, run_usd: float | None = None, run_id: str | None = None
) -> Budget:
    return Budget(make_ledger(home, run_id), month_usd, run_usd)


def reserved(budget: Budget, price_usd: float) -> str:
    number = next(numbers)
    return budget.reserve(MODEL, f"{os.getpid()}-{number}", request(number), price_usd)


def refused(budget: Budget, price_usd: float) -> BudgetError:
    with pytest.raises(BudgetError) as refusal:
        reserved(budget, price_usd)
    return refusal.value


def spend(
    home: Path,
    cost_usd: float,
    number: int = 0,
    *,
    run_id: str | None = None,
    when: float = 0.0,
    settles: str | None = None,
) -> None:
    paid = replace(answered(request(number)), cost_usd=cost_usd, called_at=when or time.time())
    make_ledger(home, run_id).keep(MODEL, [Entry(paid, settles)])


def test_a_call_that_may_cost_too_much_is_refused(tmp_path: Path) -> None:
    spend(tmp_path, 0.6)
    budget = make_budget(tmp_path)
    with budget.session():
        reserved(budget, 0.4)
        refusal = refused(budget, 0.05)
    assert refusal.may_pass
    assert "$1.00" in str(refusal)
    assert "$0.6000 is spent" in str(refusal)
    assert "$0.4000 is kept" in str(refusal)
    assert "may cost $0.0500" in str(refusal)
    assert "RAG_BUDGET_USD" in str(refusal)
    with budget.session():
        assert not refused(budget, 0.41).may_pass


def test_what_a_call_did_not_cost_comes_free(tmp_path: Path) -> None:
    budget = make_budget(tmp_path)
    with budget.session():
        for number in range(30):
            spend(tmp_path, 0.01, number, settles=reserved(budget, 0.7))
        assert not refused(budget, 0.71).may_pass
        budget.release([reserved(budget, 0.7)])
        reserved(budget, 0.7)


def test_what_others_spend_counts_at_once(tmp_path: Path) -> None:
    budget = make_budget(tmp_path)
    with budget.session():
        budget.release([reserved(budget, 0.5)])
        spend(tmp_path, 0.95)
        reserved(budget, 0.04)
        assert not refused(budget, 0.1).may_pass


def test_processes_share_a_budget(tmp_path: Path) -> None:
    first, second = make_budget(tmp_path), make_budget(tmp_path)
    with first.session(), second.session():
        kept = reserved(first, 0.8)
        assert refused(second, 0.5).may_pass
        spend(tmp_path, 0.1, settles=kept)
        other = reserved(second, 0.5)
        assert refused(first, 0.5).may_pass
        second.release([other])
        reserved(first, 0.5)


def test_a_reservation_takes_the_place_of_an_earlier_one(tmp_path: Path) -> None:
    budget = make_budget(tmp_path)
    with budget.session():
        made = reserved(budget, 0.4)
        with pytest.raises(BudgetError):
            budget.reserve(MODEL, "k", request(0), 1.1, made)
        assert budget.reserve(MODEL, "k", request(0), 0.9, made) == made
        assert refused(budget, 0.2).may_pass
        reserved(budget, 0.1)


def test_what_a_killed_process_had_sent_stays_charged_and_shows_in_the_ledger(tmp_path: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parent,
    )
    assert child.stdin and child.stdout
    assert child.stdout.readline() == b"reserved\n"
    budget, ledger = make_budget(tmp_path), make_ledger(tmp_path)
    with budget.session():
        assert refused(budget, 0.2).may_pass
        assert ledger.spent_usd() == 0
    child.kill()
    child.wait()
    refused(budget, 0.2)  # it counts before anybody has found the process dead
    with budget.session():
        assert not refused(budget, 0.6).may_pass
        reserved(budget, 0.5)
        (row,) = ledger.rows().to_pylist()
        assert (row["outcome"], row["cost_usd"], row["cache_hit"]) == ("unknown", 0.5, False)
        assert "ended before the answer came" in row["error"]
    child.stdin.close()
    child.stdout.close()
    ledger.compact()
    with make_budget(tmp_path).session():
        assert ledger.spent_usd() == 0.5, "and is settled once"


def test_the_same_is_asked_by_one_at_a_time(tmp_path: Path) -> None:
    budget = make_budget(tmp_path, None)
    with budget.session(), ThreadPoolExecutor(1) as elsewhere:

        def ask() -> str:
            return elsewhere.submit(budget.reserve, MODEL, "key", request(0), 0.1).result()

        first = budget.reserve(MODEL, "key", request(0), 0.1)
        with pytest.raises(ClaimedError):
            ask()
        assert elsewhere.submit(budget.is_asked, ["key", "other"]).result() == {"key"}
        assert budget.is_asked(["key"]) == set(), "nobody waits for itself"
        budget.release([first])
        assert ask() != first
        spend(tmp_path, 0.1, 5)
        answered_key = request_key(MODEL, request(5))
        with pytest.raises(ClaimedError):  # it has just been answered
            budget.reserve(MODEL, answered_key, request(5), 0.1)


def test_last_month_does_not_count(tmp_path: Path) -> None:
    start = datetime.now(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0).timestamp()
    spend(tmp_path, 0.9, when=start - 1)
    spend(tmp_path, 0.3, 1, when=start)
    budget = make_budget(tmp_path)
    with budget.session():
        refused(budget, 0.8)
        reserved(budget, 0.6)


def test_a_month_that_ends_while_calls_are_under_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = datetime(2026, 11, 30, 23, 59, 59, tzinfo=UTC).timestamp()
    monkeypatch.setattr("rag_assets.models.accounts.budget.time.time", lambda: now)
    budget = make_budget(tmp_path)
    with budget.session():
        kept = reserved(budget, 0.9)
        monkeypatch.setattr("rag_assets.models.accounts.budget.time.time", lambda: now + 2)
        assert refused(budget, 0.9).may_pass
        spend(tmp_path, 0.7, when=now + 2, settles=kept)
        refused(budget, 0.4)
        reserved(budget, 0.2)


def test_a_run_has_a_budget_of_its_own(tmp_path: Path) -> None:
    spend(tmp_path, 0.8, 0, run_id="run 1")
    spend(tmp_path, 5.0, 1, run_id="run 2")
    spend(tmp_path, 5.0, 2)
    budget = make_budget(tmp_path, None, 1.0, "run 1")
    with budget.session():
        assert "this run" in str(refused(budget, 0.3))
        reserved(budget, 0.1)
    other = make_budget(tmp_path, None, 1.0)
    with other.session():
        paid = replace(answered(request(7)), cost_usd=0.7)
        other._ledger.keep(MODEL, [Entry(paid, reserved(other, 0.7))])
        refused(other, 0.7)
        reserved(other, 0.2)


def test_the_tighter_budget_holds(tmp_path: Path) -> None:
    budget = make_budget(tmp_path, 1.0, 0.5, "run 1")
    with budget.session():
        assert "this run" in str(refused(budget, 0.6))
        assert "for 20" in str(refused(budget, 1.1))
        reserved(budget, 0.5)


def test_without_a_limit_nothing_is_refused(tmp_path: Path) -> None:
    budget = make_budget(tmp_path, None, None)
    with budget.session():
        reserved(budget, 1e9)


def test_a_budget_of_nothing_lets_free_calls_pass(tmp_path: Path) -> None:
    budget = make_budget(tmp_path, 0.0)
    with budget.session():
        reserved(budget, 0.0)
        refused(budget, 0.0001)


def test_thinking_and_long_prompts_are_in_the_upper_price() -> None:
    prices = Prices(3.0, 15.0, long_prompt_tokens=100, long_prompt_factor=2.0)
    short, long = request(0), replace(request(0), messages=(Message("user", "検索" * 2000),))
    plain = ModelFacts(200_000, 8192, replace(prices, long_prompt_tokens=0))
    assert upper_price_usd(short, replace(plain, prices=prices)) == upper_price_usd(short, plain)
    assert upper_price_usd(long, replace(plain, prices=prices)) == pytest.approx(2 * upper_price_usd(long, plain))
    thinking = upper_price_usd(short, replace(plain, thinking=Thinking.ALWAYS)) - upper_price_usd(short, plain)
    assert thinking == pytest.approx(4096 * 15 / 1e6)


def test_the_upper_price_is_no_less_than_the_price() -> None:
    facts = ModelFacts(200_000, 8192, Prices(3.0, 15.0, 0.3, 3.75, 0.5))
    asked = replace(
        request(0), prefix="word " * 1000, messages=(Message("user", "検索" * 2000),), schema='{"type": "object"}'
    )
    upper = upper_price_usd(asked, facts)
    assert upper >= facts.prices.cost_usd(Usage(input_tokens=4000 + 16, output_tokens=100, cache_write_tokens=1300))
    assert upper_price_usd(asked, facts, batch=True) == pytest.approx(upper / 2)
    assert upper_price_usd(asked, ModelFacts()) == 0
    huge = replace(asked, messages=(Message("user", "x" * 10_000_000),))
    assert upper_price_usd(huge, facts) == pytest.approx((200_000 * 3.75 + 100 * 15) / 1_000_000)
