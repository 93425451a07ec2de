"""The budget: nothing is spent beyond it, all processes share it, and what is kept for calls comes free again."""

import json
import subprocess
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from scripted_provider import ScriptedProvider, answered, make_ledger, request

from rag_assets.contracts.generation import Message, Usage
from rag_assets.models.accounts.budget import Budget, Refusal, Reservation
from rag_assets.models.accounts.price_bounds import upper_price_usd
from rag_assets.models.catalogue import ModelFacts, Prices, Thinking

MODEL = ScriptedProvider.name
KILLED = """
import os, signal, sys
from pathlib import Path
from scripted_provider import make_ledger
from rag_assets.models.accounts.budget import Budget
home = Path(sys.argv[1])
budget = Budget(home / "budget", make_ledger(home), 1.0, None)
with budget.session():
    budget.reserve(0.9)
    print("reserved", flush=True)
    sys.stdin.read()
"""


def make_budget(
    home: Path, month_usd: float | None = 1.0, run_usd: float | None = None, run_id: str | None = None
) -> Budget:
    return Budget(home / "budget", make_ledger(home, run_id), month_usd, run_usd)


def reserved(budget: Budget, price_usd: float) -> Reservation:
    found = budget.reserve(price_usd)
    assert isinstance(found, Reservation), found
    return found


def refused(budget: Budget, price_usd: float) -> Refusal:
    found = budget.reserve(price_usd)
    assert isinstance(found, Refusal), found
    return found


def spend(home: Path, cost_usd: float, number: int = 0, *, run_id: str | None = None, when: float = 0.0) -> None:
    paid = replace(answered(request(number)), cost_usd=cost_usd, called_at=when or time.time())
    make_ledger(home, run_id).keep(MODEL, paid)


def test_a_call_that_may_cost_too_much_is_refused(tmp_path: Path) -> None:
    spend(tmp_path, 0.6)
    budget = make_budget(tmp_path)
    with budget.session():
        reserved(budget, 0.4)
        refusal = refused(budget, 0.05)
    assert refusal.waits
    assert "$1.00" in refusal.message
    assert "$0.6000 is spent" in refusal.message
    assert "$0.4000 is kept" in refusal.message
    assert "may cost $0.0500" in refusal.message
    assert "RAG_BUDGET_USD" in refusal.message
    with budget.session():
        assert not refused(budget, 0.41).waits


def test_what_a_call_did_not_cost_comes_free(tmp_path: Path) -> None:
    budget = make_budget(tmp_path)
    with budget.session():
        for number in range(30):
            spend(tmp_path, 0.01, number)
            budget.settle(reserved(budget, 0.7), 0.01)
        assert not refused(budget, 0.71).waits
        budget.settle(reserved(budget, 0.7), 0.0)
        reserved(budget, 0.7)


def test_the_ledger_is_asked_when_a_process_comes(tmp_path: Path) -> None:
    budget = make_budget(tmp_path)
    with budget.session():
        reserved(budget, 0.5)
    spend(tmp_path, 0.95)
    with budget.session():
        reserved(budget, 0.04)
        assert not refused(budget, 0.1).waits


def test_the_ledger_is_asked_before_a_call_is_refused(tmp_path: Path) -> None:
    spend(tmp_path, 0.1)
    budget = make_budget(tmp_path)
    with budget.session():
        budget.settle(reserved(budget, 0.8), 0.8)  # a cost that the ledger does not know
        reserved(budget, 0.9)


def test_processes_share_a_budget(tmp_path: Path) -> None:
    first, second = make_budget(tmp_path), make_budget(tmp_path)
    with first.session():
        with second.session():
            kept = reserved(first, 0.8)
            assert refused(second, 0.5).waits
            spend(tmp_path, 0.1)
            first.settle(kept, 0.1)
            reserved(second, 0.5)
            assert refused(first, 0.5).waits
        reserved(first, 0.5)


def test_threads_share_a_session(tmp_path: Path) -> None:
    budget = make_budget(tmp_path)
    with budget.session():
        with budget.session():
            kept = reserved(budget, 0.9)
        assert refused(budget, 0.9).waits
        budget.settle(kept, 0.0)
        reserved(budget, 0.9)


def test_what_a_killed_process_had_reserved_comes_free(tmp_path: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parent,
    )
    assert child.stdin and child.stdout
    assert child.stdout.readline() == b"reserved\n"
    budget = make_budget(tmp_path)
    with budget.session():
        assert refused(budget, 0.5).waits
        child.kill()
        child.wait()
        budget._refreshed = float("-inf")
        reserved(budget, 0.5)
    child.stdin.close()
    child.stdout.close()
    stored = json.loads((tmp_path / "budget" / "state.json").read_text())
    assert stored == {"spent": {}, "reserved": {}}
    assert [path.name for path in (tmp_path / "budget").glob("*.lock")] == ["state.lock"]


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
        other = reserved(budget, 0.9)
        spend(tmp_path, 0.7, when=now + 2)
        budget.settle(kept, 0.7, now + 2)
        budget.settle(other, 0.0)
        refused(budget, 0.4)
        reserved(budget, 0.2)


def test_a_run_has_a_budget_of_its_own(tmp_path: Path) -> None:
    spend(tmp_path, 0.8, 0, run_id="run 1")
    spend(tmp_path, 5.0, 1, run_id="run 2")
    spend(tmp_path, 5.0, 2)
    budget = make_budget(tmp_path, None, 1.0, "run 1")
    with budget.session():
        assert "this run" in refused(budget, 0.3).message
        reserved(budget, 0.1)
    other = make_budget(tmp_path, None, 1.0)
    with other.session():
        other.settle(reserved(other, 0.7), 0.7)
        refused(other, 0.7)
        reserved(other, 0.2)


def test_the_tighter_budget_holds(tmp_path: Path) -> None:
    budget = make_budget(tmp_path, 1.0, 0.5, "run 1")
    with budget.session():
        assert "this run" in refused(budget, 0.6).message
        assert "for 20" in refused(budget, 1.1).message
        reserved(budget, 0.5)


def test_without_a_limit_nothing_is_touched(tmp_path: Path) -> None:
    budget = make_budget(tmp_path, None, None)
    with budget.session():
        budget.settle(reserved(budget, 1e9), 1e9)
    assert list(tmp_path.iterdir()) == []


def test_a_budget_of_nothing_lets_free_calls_pass(tmp_path: Path) -> None:
    budget = make_budget(tmp_path, 0.0)
    with budget.session():
        reserved(budget, 0.0)
        refused(budget, 0.0001)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"spent": 1}', '{"spent": {"month": "x"}, "reserved": {}}'])
def test_a_damaged_state_is_made_anew(tmp_path: Path, content: str) -> None:
    spend(tmp_path, 0.6)
    (tmp_path / "budget").mkdir()
    (tmp_path / "budget" / "state.json").write_text(content)
    budget = make_budget(tmp_path)
    with budget.session():
        (tmp_path / "budget" / "state.json").write_text(content)
        refused(budget, 0.5)
        reserved(budget, 0.4)


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
