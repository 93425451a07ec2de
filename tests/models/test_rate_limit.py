"""Limits that processes share: kept together, and survived by whoever is killed or set back."""

import asyncio
import multiprocessing
import os
import random
import signal
import time
from bisect import bisect_left
from pathlib import Path

import pytest
import sqlalchemy as sa
from forked import FORKED
from scripted_provider import UNLIMITED, state_of

from rag_assets.contracts.errors import ModelError
from rag_assets.contracts.generation import Completion, Message, Outcome, Request, Tag, Usage
from rag_assets.models.accounts.database import StateDatabase
from rag_assets.models.accounts.schema import RATES
from rag_assets.models.attempts import Pacing
from rag_assets.models.dispatch import ConcurrentSession, answers
from rag_assets.models.providers import CallError, CallProblem
from rag_assets.models.rate_limit import RateLimit

NAME = "anthropic:claude-haiku-4-5"


class Clock:
    """Time that passes only by sleeping."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1_800_000_000.0
        self.slept = 0.0
        monkeypatch.setattr(time, "time", lambda: self.now)

        async def sleep(seconds: float) -> None:
            self.now += seconds
            self.slept += seconds

        monkeypatch.setattr(asyncio, "sleep", sleep)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def spend(limit: RateLimit, clock: Clock, calls: int, tokens: int = 0) -> list[float]:
    """When each call began."""

    async def spent() -> list[float]:
        began = []
        for _ in range(calls):
            await limit.wait(tokens)
            began.append(clock.now)
        return began

    return asyncio.run(spent())


def most_in_a_minute(began: list[float], window: float = 60.0) -> int:
    return max(bisect_left(began, first + window) - start for start, first in enumerate(began))


@pytest.mark.parametrize("per_minute", [1, 2, 19, 60, 600])
def test_no_minute_sees_more_calls_than_the_limit_and_nearly_as_many_are_made(
    tmp_path: Path, clock: Clock, per_minute: int
) -> None:
    count = min(4 * per_minute, 1500) + 1
    began = spend(RateLimit(state_of(tmp_path), NAME, per_minute), clock, count)
    assert most_in_a_minute(began) <= per_minute
    paid = 60 * count / per_minute
    assert began[-1] - began[0] <= paid / 0.94
    burst = sum(at < began[0] + 0.001 for at in began)
    assert burst == max(1, per_minute // 20)


def test_no_minute_sees_more_tokens_than_the_limit_and_one_call(tmp_path: Path, clock: Clock) -> None:
    limit = RateLimit(state_of(tmp_path), NAME, tokens_per_minute=10_000)
    draw = random.Random(3)
    sizes = [draw.choice([1, 50, 400, 2500]) for _ in range(300)]
    began = [spend(limit, clock, 1, size)[0] for size in sizes]
    for start, first in enumerate(began):
        inside = [size for at, size in zip(began[start:], sizes[start:], strict=True) if at < first + 60]
        assert sum(inside[:-1]) <= 10_000
    assert sum(sizes) / (began[-1] - began[0]) * 60 >= 9_300


def test_a_call_larger_than_the_limit_is_made_and_paid_for_after(tmp_path: Path, clock: Clock) -> None:
    limit = RateLimit(state_of(tmp_path), NAME, tokens_per_minute=1000)
    began = spend(limit, clock, 2, 5000)
    assert 60 * 4.9 <= began[1] - began[0] <= 60 * 5.3


def test_tokens_that_were_not_used_are_given_back_and_others_taken(tmp_path: Path, clock: Clock) -> None:
    limit = RateLimit(state_of(tmp_path), NAME, tokens_per_minute=6000)
    began = spend(limit, clock, 1, 5000)
    limit.settle(5000, 500)
    began += spend(limit, clock, 1, 500)
    assert began[1] - began[0] < 3
    limit.settle(500, 6500)
    began += spend(limit, clock, 1, 500)
    assert began[2] - began[1] > 55


def test_what_was_not_used_reaches_other_processes_on_closing(tmp_path: Path, clock: Clock) -> None:
    limit = RateLimit(state_of(tmp_path), NAME, tokens_per_minute=6000)
    spend(limit, clock, 1, 6000)
    limit.settle(6000, 0)
    asyncio.run(limit.close())
    before = clock.now
    assert spend(RateLimit(state_of(tmp_path), NAME, tokens_per_minute=6000), clock, 1, 100)[0] == before


def test_both_limits_hold(tmp_path: Path, clock: Clock) -> None:
    began = spend(RateLimit(state_of(tmp_path), NAME, 600, 1000), clock, 50, 100)
    assert most_in_a_minute(began) <= 11
    began = spend(RateLimit(state_of(tmp_path), "other", 10, 1_000_000), clock, 50, 100)
    assert most_in_a_minute(began) <= 10


def test_names_have_limits_of_their_own(tmp_path: Path, clock: Clock) -> None:
    for name in ("a/b:c", "a_b:c", "ｍ", "x" * 300):
        before = clock.now
        assert spend(RateLimit(state_of(tmp_path), name, 1), clock, 1) == [before]
    assert len(state_of(tmp_path).read(sa.select(RATES))) == 4


def test_without_limits_nothing_is_written(tmp_path: Path, clock: Clock) -> None:
    folder = tmp_path / "limits"
    limit = RateLimit(state_of(folder), NAME)
    spend(limit, clock, 100, 10)
    limit.settle(10, 20)
    asyncio.run(limit.close())
    assert not folder.exists()
    assert clock.slept == 0


@pytest.mark.parametrize("per_minute", [0, 6000])
def test_a_wait_that_one_was_asked_for_holds_all(tmp_path: Path, clock: Clock, per_minute: int) -> None:
    first, second = (RateLimit(state_of(tmp_path), NAME, per_minute) for _ in range(2))
    spend(second, clock, 1)
    asyncio.run(first.hold(30))
    asyncio.run(first.hold(10))
    clock.now += 0.3  # others look at the state so often
    before = clock.now - 0.3
    assert 30 <= spend(second, clock, 1)[0] - before <= 30.3
    assert spend(first, clock, 1)[0] - before <= 30.6


@pytest.mark.parametrize("back", [100.0, 86_400.0 * 365])
def test_a_clock_that_was_set_back_makes_nobody_wait(tmp_path: Path, clock: Clock, back: float) -> None:
    limit = RateLimit(state_of(tmp_path), NAME, 60)
    spend(limit, clock, 10)
    clock.now -= back
    before = clock.now
    began = spend(limit, clock, 10)
    assert began[0] - before <= 2
    assert most_in_a_minute(began) <= 60
    asyncio.run(limit.hold(5))
    clock.now -= back
    before = clock.now
    assert spend(RateLimit(state_of(tmp_path), NAME), clock, 1)[0] - before <= 5.3


def write_state(home: Path, **values: float) -> None:
    with state_of(home).transaction() as connection:
        connection.execute(sa.update(RATES).values(**values))


def test_a_state_far_in_the_future_is_not_waited_for(tmp_path: Path, clock: Clock) -> None:
    limit = RateLimit(state_of(tmp_path), NAME, 60)
    spend(limit, clock, 1)
    write_state(tmp_path, requests_at=clock.now + 1e12, tokens_at=0.0, held_until=clock.now + 1e300)
    before = clock.now
    assert spend(limit, clock, 1)[0] - before <= 3601


@pytest.mark.skipif("RAG_STATE_URL" in os.environ, reason="a server has no folder")
def test_a_folder_that_cannot_be_used_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelError, match="limits cannot be shared"):
        asyncio.run(RateLimit(StateDatabase(tmp_path / "file" / "state.db"), NAME, 60).wait(1))


def _take_many(folder: str, name: str, per_minute: int, seconds: float, times: "multiprocessing.Queue[float]") -> None:
    async def run() -> None:
        limit = RateLimit(state_of(Path(folder)), name, per_minute)
        until = time.time() + seconds
        while True:
            await limit.wait(1)
            if (now := time.time()) > until:
                break
            times.put(now)

    asyncio.run(run())
    times.put(0.0)


def _die_holding(folder: str, name: str) -> None:
    limit = RateLimit(state_of(Path(folder)), name, 60)
    asyncio.run(limit.wait(1))
    with state_of(Path(folder)).transaction() as connection:
        connection.execute(sa.update(RATES).values(held_until=time.time() + 60))
        os.kill(os.getpid(), signal.SIGKILL)


def test_processes_together_stay_within_a_limit_and_use_it(tmp_path: Path) -> None:
    per_minute, seconds, workers = 6000, 3.0, 4
    times: multiprocessing.Queue[float] = FORKED.Queue()
    arguments = (str(tmp_path), NAME, per_minute, seconds, times)
    processes = [FORKED.Process(target=_take_many, args=arguments) for _ in range(workers)]
    for process in processes:
        process.start()
    began: list[float] = []
    ended = 0
    while ended < workers:
        at = times.get(timeout=60)
        ended += at == 0.0
        began += [at] if at else []
    for process in processes:
        process.join(10)
        assert process.exitcode == 0
    began.sort()
    # An interval longer, since the time is taken after the call was counted.
    for window in (0.5, 1.0, 2.0):
        assert most_in_a_minute(began, window) <= 300 + (window + 0.25) * 95 + 1
    assert len(began) >= (began[-1] - began[0]) * 95 * 0.8


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")
def test_a_killed_holder_leaves_the_limit_usable(tmp_path: Path) -> None:
    process = FORKED.Process(target=_die_holding, args=(str(tmp_path), NAME))
    process.start()
    process.join(30)
    assert process.exitcode == -signal.SIGKILL
    began = time.monotonic()
    asyncio.run(RateLimit(state_of(tmp_path), NAME, 60).wait(1))
    assert time.monotonic() - began < 3


def test_waiting_for_other_processes_does_not_hold_up_the_loop(tmp_path: Path) -> None:
    limit = RateLimit(state_of(tmp_path), NAME, 6000)
    asyncio.run(limit.wait(1))

    async def run() -> int:
        waiting = asyncio.create_task(limit.wait(1))
        turns = 0
        with state_of(tmp_path).transaction() as connection:
            connection.execute(sa.update(RATES).values(tokens_at=0.0))
            until = time.monotonic() + 0.2
            while time.monotonic() < until:
                await asyncio.sleep(0.005)
                turns += 1
            assert not waiting.done()
        await asyncio.wait_for(waiting, 5)
        return turns

    assert asyncio.run(run()) > 10


class CountingCaller:
    """Answers at once, tells the first of another object to come back later."""

    def __init__(self, refuse: int = 0) -> None:
        self.times: list[float] = []
        self.refuse = refuse

    async def call(self, request: Request) -> Completion:
        self.times.append(time.monotonic())
        if self.refuse:
            self.refuse -= 1
            raise CallError(CallProblem.RATE_LIMITED, "status 429", 0.4)
        return Completion(request, Outcome.COMPLETED, "x", Usage(10, 10))

    async def close(self) -> None:
        pass


def dispatched(caller: CountingCaller, limit: RateLimit, count: int) -> float:
    """Seconds that so many requests take."""
    requests = [Request("", (Message("user", str(n)),), 1000, Tag("a", "s")) for n in range(count)]
    began = time.monotonic()
    with ConcurrentSession(
        lambda: caller,
        lambda _: None,
        UNLIMITED,
        concurrency=8,
        attempts=2,
        timeout_seconds=5,
        rate_limit=limit,
        pacing=Pacing(backoff=0.001),
    ) as opened:
        assert sum(each.outcome is Outcome.COMPLETED for each in answers(opened, requests)) == count
    return time.monotonic() - began


def test_a_session_keeps_to_the_limit_on_calls(tmp_path: Path) -> None:
    # A twentieth of 2400 at once, then 38 a second.
    assert 0.7 <= dispatched(CountingCaller(), RateLimit(state_of(tmp_path), NAME, 2400), 150) < 3


def test_a_session_counts_the_tokens_that_were_used_not_those_that_might_have_been(tmp_path: Path) -> None:
    # Estimated at 1000 tokens each, 400 calls would take four minutes; used are 20 each.
    limit = RateLimit(state_of(tmp_path), NAME, tokens_per_minute=100_000)
    assert dispatched(CountingCaller(), limit, 400) < 8


def test_a_session_told_to_come_back_later_holds_the_other_ones(tmp_path: Path) -> None:
    first, second = CountingCaller(refuse=1), CountingCaller()
    dispatched(first, RateLimit(state_of(tmp_path), NAME), 1)
    asyncio.run(RateLimit(state_of(tmp_path), NAME).hold(0.3))
    began = time.monotonic()
    dispatched(second, RateLimit(state_of(tmp_path), NAME), 3)
    assert second.times[0] - began >= 0.25
    assert first.times[1] - first.times[0] >= 0.4
