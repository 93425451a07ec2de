"""Requests to scripted callers: order, blocking, retries, giving up, interrupts, memory."""

import _thread
import asyncio
import gc
import logging
import re
import threading
import time
import weakref
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import pytest
from scripted_provider import UNLIMITED

from rag_assets.contracts.errors import ModelError, SettingsError
from rag_assets.contracts.generation import Completion, Message, Outcome, Request, Tag, Usage
from rag_assets.models.attempts import CongestionWindow, Pacing
from rag_assets.models.dispatch import ConcurrentSession, answers
from rag_assets.models.providers import CallError, CallProblem, Keep

TAG = Tag("page_summaries", "summarize_page")
QUICK = Pacing(
    backoff=0.002, backoff_most=0.02, retry_after_most=0.5, failures=8, unreachable=0.15, outage=0.4, limited=0.6
)
Script = Callable[["ScriptedCaller", Request], Awaitable[str]]


def request(text: str, prefix: str = "") -> Request:
    return Request(prefix, (Message("user", text),), 100, TAG)


def text_of(asked: Request) -> str:
    return asked.messages[0].text


async def echo(caller: "ScriptedCaller", asked: Request) -> str:
    del caller
    await asyncio.sleep(0.002)
    return text_of(asked)


@dataclass
class ScriptedCaller:
    """Answers as a script says, and records what was asked of it."""

    script: Script = echo
    calls: list[tuple[float, Request]] = field(default_factory=list)
    running: int = 0
    most: int = 0
    ended: list[str] = field(default_factory=list)
    closed: int = 0
    thread: str = ""

    async def call(self, request: Request) -> Completion:
        self.calls.append((time.monotonic(), request))
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            text = await self.script(self, request)
        finally:
            self.running -= 1
            self.ended.append(text_of(request))
        return Completion(request, Outcome.COMPLETED, text, Usage(10, 5))

    async def close(self) -> None:
        self.closed += 1
        self.thread = threading.current_thread().name

    def attempts_at(self, text: str) -> int:
        return sum(text_of(asked) == text for _, asked in self.calls)


def session(
    caller: ScriptedCaller,
    keep: Keep = lambda _: None,
    concurrency: int = 4,
    attempts: int = 3,
    timeout_seconds: float = 5.0,
    prime_prefixes: bool = False,
    pacing: Pacing = QUICK,
) -> ConcurrentSession:
    return ConcurrentSession(
        lambda: caller,
        keep,
        UNLIMITED,
        name="scripted:one",
        concurrency=concurrency,
        attempts=attempts,
        timeout_seconds=timeout_seconds,
        prime_prefixes=prime_prefixes,
        pacing=pacing,
    )


def ask(opened: ConcurrentSession, *texts: str) -> dict[str, Completion]:
    with opened:
        return {text_of(each.request): each for each in answers(opened, map(request, texts))}


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    before = threading.active_count()
    yield
    deadline = time.monotonic() + 2
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() <= before


def failing(problem: CallProblem, times: int, retry_after: float | None = None) -> Script:
    """Each request fails so many times before it is answered."""
    seen: Counter[str] = Counter()

    async def script(caller: ScriptedCaller, asked: Request) -> str:
        seen[text_of(asked)] += 1
        if seen[text_of(asked)] <= times:
            raise CallError(problem, "scripted", retry_after)
        return await echo(caller, asked)

    return script


def test_every_request_is_answered_once_and_not_more_than_so_many_run() -> None:
    caller = ScriptedCaller()
    found = ask(session(caller, concurrency=8), *map(str, range(200)))
    assert {text: each.text for text, each in found.items()} == {str(n): str(n) for n in range(200)}
    assert len(caller.calls) == 200
    assert caller.most == 8
    assert caller.closed == 1
    assert caller.thread == "language-model"


def test_answers_come_in_the_order_in_which_they_arrive() -> None:
    async def later_first(caller: ScriptedCaller, asked: Request) -> str:
        await asyncio.sleep({"a": 0.15, "b": 0.1, "c": 0.05}[text_of(asked)])
        return ""

    with session(ScriptedCaller(later_first)) as opened:
        assert [text_of(each.request) for each in answers(opened, map(request, "abc"))] == ["c", "b", "a"]


def test_time_and_duration_are_those_of_the_attempt_that_was_answered() -> None:
    slow = failing(CallProblem.UNAVAILABLE, 1)

    async def script(caller: ScriptedCaller, asked: Request) -> str:
        text = await slow(caller, asked)
        await asyncio.sleep(0.05)
        return text

    before = time.time()
    found = ask(session(ScriptedCaller(script), pacing=Pacing(backoff=0.0)), "a")["a"]
    assert 0.05 <= found.seconds < 1
    assert before + 0.05 <= found.called_at <= time.time()


def test_submit_waits_for_room_and_take_for_answers() -> None:
    gate = threading.Event()

    async def gated(caller: ScriptedCaller, asked: Request) -> str:
        while not gate.is_set():
            await asyncio.sleep(0.005)
        return text_of(asked)

    caller = ScriptedCaller(gated)
    with session(caller, concurrency=4) as opened:
        assert opened.take(wait=False) is None
        assert opened.take(wait=True) is None
        for number in range(5):
            opened.submit(request(str(number)))
        assert opened.take(wait=False) is None
        blocked = threading.Thread(target=opened.submit, args=(request("5"),))
        blocked.start()
        blocked.join(0.1)
        assert blocked.is_alive()
        assert len(caller.calls) == 4
        gate.set()
        blocked.join(5)
        found = [opened.take(wait=True) for _ in range(6)]
        assert sorted(text_of(each.request) for each in found if each) == list("012345")
        assert opened.take(wait=True) is None


def test_a_hundred_thousand_requests_are_never_in_memory_together() -> None:
    class Counted(Request):
        """A request that can be counted while it lives."""

    alive: weakref.WeakSet[Request] = weakref.WeakSet()
    most = 0

    def produce() -> Iterator[Request]:
        for number in range(100_000):
            made = Counted("", (Message("user", str(number)),), 100, TAG)
            alive.add(made)
            yield made

    class Instant(ScriptedCaller):
        async def call(self, request: Request) -> Completion:
            return Completion(request, Outcome.COMPLETED)

    count = 0
    with session(Instant(), concurrency=16) as opened:
        for count, _ in enumerate(answers(opened, produce()), 1):
            if count % 1000 == 0:
                most = max(most, len(alive))
    gc.collect()
    assert count == 100_000
    assert most <= 4 * (16 + 4) + 10


@pytest.mark.parametrize("problem", [CallProblem.UNAVAILABLE, CallProblem.OVERLOADED])
def test_failed_attempts_are_made_again(problem: CallProblem) -> None:
    caller = ScriptedCaller(failing(problem, 2))
    found = ask(session(caller), *"abc")
    assert all(each.outcome is Outcome.COMPLETED for each in found.values())
    assert {text: caller.attempts_at(text) for text in "abc"} == dict.fromkeys("abc", 3)


def test_a_request_whose_attempts_are_used_up_fails_by_itself() -> None:
    async def one_bad(caller: ScriptedCaller, asked: Request) -> str:
        if text_of(asked) == "bad":
            raise CallError(CallProblem.UNAVAILABLE, "status 500")
        return await echo(caller, asked)

    caller = ScriptedCaller(one_bad)
    kept: list[Completion] = []
    found = ask(session(caller, kept.extend), "good", "bad", "fine")
    assert found["bad"].outcome is Outcome.FAILED
    assert (found["bad"].error or "").startswith("status 500; 3 attempts in ")
    assert caller.attempts_at("bad") == 3
    assert {text_of(each.request) for each in kept} == {"good", "fine"}


def test_calls_that_have_no_room_beside_each_other_are_answered_one_at_a_time() -> None:
    """As a llama.cpp server whose slots share one context: two long requests fit, three do not, and one never does."""

    async def script(caller: ScriptedCaller, asked: Request) -> str:
        await asyncio.sleep(0.002)
        if caller.running > 2 or text_of(asked) == "too long":
            raise CallError(CallProblem.FULL, "status 500: Context size has been exceeded.")
        return await echo(caller, asked)

    caller = ScriptedCaller(script)
    found = ask(session(caller, concurrency=16, attempts=1), *map(str, range(60)), "too long")
    assert found.pop("too long").outcome is Outcome.FAILED
    assert caller.attempts_at("too long") <= 2  # beside others, and alone
    assert len(found) == 60
    assert {each.outcome for each in found.values()} == {Outcome.COMPLETED}


def test_a_rejected_request_fails_at_once_and_alone() -> None:
    async def reject(caller: ScriptedCaller, asked: Request) -> str:
        if text_of(asked) == "long":
            raise CallError(CallProblem.REJECTED, "prompt is too long")
        return await echo(caller, asked)

    caller = ScriptedCaller(reject)
    found = ask(session(caller), "a", "long", "b")
    assert (found["long"].outcome, found["long"].error) == (Outcome.FAILED, "prompt is too long")
    assert caller.attempts_at("long") == 1
    assert found["b"].outcome is Outcome.COMPLETED


def test_what_a_caller_must_not_raise_fails_the_request_without_its_words(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(caller: ScriptedCaller, asked: Request) -> str:
        raise ValueError("secret document text")

    with caplog.at_level(logging.DEBUG):
        found = ask(session(ScriptedCaller(broken)), "a")["a"]
    assert (found.outcome, found.error) == (Outcome.FAILED, "scripted:one: unexpected ValueError")
    assert "secret" not in caplog.text
    assert "unexpected ValueError" in caplog.text


def test_a_caller_that_cancels_itself_loses_no_request() -> None:
    async def cancelled(caller: ScriptedCaller, asked: Request) -> str:
        raise asyncio.CancelledError

    assert ask(session(ScriptedCaller(cancelled)), "a")["a"].outcome is Outcome.FAILED


def test_too_many_requests_cost_time_but_no_attempts() -> None:
    caller = ScriptedCaller(failing(CallProblem.RATE_LIMITED, 6))
    found = ask(session(caller, attempts=2), "a")
    assert found["a"].outcome is Outcome.COMPLETED
    assert len(caller.calls) == 7


def test_a_request_that_is_always_limited_fails_in_the_end_while_others_are_answered() -> None:
    async def unfair(caller: ScriptedCaller, asked: Request) -> str:
        if text_of(asked) == "unlucky":
            raise CallError(CallProblem.RATE_LIMITED, "status 429")
        return await echo(caller, asked)

    with session(ScriptedCaller(unfair)) as opened:
        opened.submit(request("unlucky"))
        began = time.monotonic()
        found = None
        while found is None or text_of(found.request) != "unlucky":
            assert time.monotonic() - began < 10
            opened.submit(request("lucky"))
            found = opened.take(wait=True)
    assert found.outcome is Outcome.FAILED
    assert time.monotonic() - began >= QUICK.limited


@pytest.mark.parametrize(("asked", "heeded"), [(0.2, 0.2), (3600.0, 0.5)], ids=["heeded", "capped"])
def test_the_wait_that_a_provider_asks_for_holds_all_requests(asked: float, heeded: float) -> None:
    told = False

    async def once(caller: ScriptedCaller, one: Request) -> str:
        nonlocal told
        if not told:
            told = True
            raise CallError(CallProblem.RATE_LIMITED, "status 429", asked)
        return await echo(caller, one)

    caller = ScriptedCaller(once)
    found = ask(session(caller, concurrency=1), *"abc")
    times = [at for at, _ in caller.calls]
    assert all(each.outcome is Outcome.COMPLETED for each in found.values())
    assert heeded <= times[1] - times[0] < heeded + 0.3
    assert len(times) == 4


def test_backoff_doubles_up_to_its_cap_with_full_jitter() -> None:
    pacing = Pacing(backoff=1.0, backoff_most=8.0)
    for failures, most in ((1, 1.0), (2, 2.0), (3, 4.0), (4, 8.0), (5, 8.0), (5000, 8.0)):
        drawn = [pacing.backoff_seconds(failures) for _ in range(400)]
        assert 0 <= min(drawn) < most * 0.1
        assert most * 0.9 < max(drawn) <= most
        assert sum(drawn) / 400 == pytest.approx(most / 2, rel=0.15)


def test_no_answer_in_time_is_an_attempt_that_failed_and_leaves_nothing_behind() -> None:
    async def hang_once(caller: ScriptedCaller, asked: Request) -> str:
        if caller.attempts_at(text_of(asked)) == 1:
            await asyncio.sleep(60)
        return text_of(asked)

    caller = ScriptedCaller(hang_once)
    found = ask(session(caller, timeout_seconds=0.05), "a", "b")
    assert {each.outcome for each in found.values()} == {Outcome.COMPLETED}
    assert sorted(caller.ended) == ["a", "a", "b", "b"]
    assert caller.running == 0


def test_an_answer_that_comes_too_late_names_the_setting() -> None:
    async def hang(caller: ScriptedCaller, asked: Request) -> str:
        await asyncio.sleep(60)
        return ""

    found = ask(session(ScriptedCaller(hang), attempts=1, timeout_seconds=0.05), "a")["a"]
    assert (found.error or "").startswith("no answer within 0.05 s (language_model.timeout_seconds); 1 attempts")


def test_a_denied_request_ends_the_session_at_once() -> None:
    async def deny(caller: ScriptedCaller, asked: Request) -> str:
        raise CallError(CallProblem.DENIED, "status 401: invalid key")

    caller = ScriptedCaller(deny)
    with session(caller) as opened, pytest.raises(ModelError) as raised:
        list(answers(opened, map(request, map(str, range(1000)))))
    assert str(raised.value) == (
        "scripted:one: status 401: invalid key; no answer that came is lost, and running again goes on from there"
    )
    assert len(caller.calls) <= 4


def test_answers_that_came_and_calls_under_way_are_taken_before_the_error() -> None:
    async def script(caller: ScriptedCaller, asked: Request) -> str:
        if text_of(asked) == "denied":
            await asyncio.sleep(0.05)
            raise CallError(CallProblem.DENIED, "status 403")
        await asyncio.sleep(0.01 if text_of(asked) == "quick" else 0.2)
        return ""

    caller = ScriptedCaller(script)
    kept: list[Completion] = []
    found: list[str] = []
    with session(caller, kept.extend, concurrency=3) as opened, pytest.raises(ModelError, match="403"):
        requests = map(request, ["quick", "denied", "slow", *map(str, range(100))])
        found.extend(text_of(each.request) for each in answers(opened, requests))
    assert {"quick", "slow"} <= set(found)
    assert len(found) == len(kept) == len(set(found))
    assert len(caller.calls) <= 5


def test_a_provider_that_is_away_is_given_up() -> None:
    async def away(caller: ScriptedCaller, asked: Request) -> str:
        raise CallError(CallProblem.UNAVAILABLE, "connection refused")

    caller = ScriptedCaller(away)
    began = time.monotonic()
    found: list[Completion] = []
    with session(caller, attempts=50, concurrency=16) as opened, pytest.raises(ModelError) as raised:
        found.extend(answers(opened, map(request, map(str, range(10_000)))))
    assert QUICK.unreachable <= time.monotonic() - began < 2
    assert found == []
    said = str(raised.value)
    assert said.startswith("scripted:one: ")
    assert "attempts in a row failed within 0 s, the last one by: connection refused; " in said
    assert "\n" not in said
    # one after the other once it is known to be away
    assert 8 <= len(caller.calls) < 16 + 8 + 0.5 / (QUICK.backoff_most / 2)


async def nobody(caller: ScriptedCaller, asked: Request) -> str:
    raise CallError(CallProblem.UNREACHABLE, "connection refused")


@pytest.mark.parametrize("count", [1, 10_000])
def test_an_address_where_nobody_has_ever_answered_is_named_soon_whatever_the_attempts(count: int) -> None:
    caller = ScriptedCaller(nobody)
    pacing = Pacing(backoff=0.02, deserted=0.1, unreachable=60)
    began = time.monotonic()
    with (
        session(caller, attempts=1, pacing=pacing) as opened,
        pytest.raises(ModelError, match="connection refused; no"),
    ):
        list(answers(opened, map(request, map(str, range(count)))))
    assert 0.1 <= time.monotonic() - began < 5
    assert len(caller.calls) < 100


def test_a_server_that_is_just_starting_is_waited_for() -> None:
    async def starting(caller: ScriptedCaller, asked: Request) -> str:
        return await (nobody if len(caller.calls) < 20 else echo)(caller, asked)

    found = ask(session(ScriptedCaller(starting), attempts=1, pacing=Pacing(backoff=0.002, deserted=30)), *"abc")
    assert {each.outcome for each in found.values()} == {Outcome.COMPLETED}


def test_few_failures_in_a_long_time_are_no_outage() -> None:
    async def away(caller: ScriptedCaller, asked: Request) -> str:
        await asyncio.sleep(0.1)
        raise CallError(CallProblem.UNAVAILABLE, "status 500")

    found = ask(session(ScriptedCaller(away), attempts=3), "a", "b")
    assert {each.outcome for each in found.values()} == {Outcome.FAILED}


@pytest.mark.parametrize("problem", [CallProblem.UNAVAILABLE, CallProblem.UNREACHABLE])
def test_an_outage_is_waited_for_longer_where_the_provider_had_answered(problem: CallProblem) -> None:
    down: list[float] = []

    async def outage(caller: ScriptedCaller, asked: Request) -> str:
        if len(caller.calls) > 20 and not down:
            down.append(time.monotonic())
        if down and time.monotonic() - down[0] < 0.25:  # longer than `unreachable`, shorter than `outage`
            raise CallError(problem, "connection refused")
        return await echo(caller, asked)

    pacing = replace(QUICK, deserted=0.01)
    found = ask(session(ScriptedCaller(outage), attempts=50, pacing=pacing), *map(str, range(100)))
    assert Counter(each.outcome for each in found.values()) == {Outcome.COMPLETED: 100}


def test_nothing_but_too_many_requests_is_waited_for_longest_then_given_up() -> None:
    async def limited(caller: ScriptedCaller, asked: Request) -> str:
        raise CallError(CallProblem.RATE_LIMITED, "status 429")

    began = time.monotonic()
    with session(ScriptedCaller(limited), attempts=2) as opened, pytest.raises(ModelError, match="status 429"):
        for number in range(5):
            opened.submit(request(str(number)))
        while opened.take(wait=True):
            pass
    assert QUICK.limited <= time.monotonic() - began < QUICK.limited + 1


def test_the_log_says_once_in_a_while_that_the_provider_limits_the_rate(caplog: pytest.LogCaptureFixture) -> None:
    caller = ScriptedCaller(failing(CallProblem.RATE_LIMITED, 40))
    pacing = replace(QUICK, backoff=0.02, failures=10_000, limited=30.0, notice=0.05)
    found = ask(session(caller, pacing=pacing), "a")
    assert found["a"].outcome is Outcome.COMPLETED
    *notices, end = [record.getMessage() for record in caplog.records]
    assert 2 <= len(notices) < 10 < len(caller.calls)
    assert all(
        re.fullmatch(
            r".*: the provider limits the rate of calls: waiting since [\d:]{8} UTC, 30 s at most: scripted", notice
        )
        for notice in notices
    )
    assert "answers again after" in end


def test_a_long_wait_that_the_provider_asks_for_is_told_at_once(caplog: pytest.LogCaptureFixture) -> None:
    ask(session(ScriptedCaller(failing(CallProblem.RATE_LIMITED, 1, 0.2)), pacing=replace(QUICK, notice=0.1)), "a")
    assert "limits the rate" in caplog.records[0].getMessage()
    caplog.clear()
    ask(session(ScriptedCaller(failing(CallProblem.RATE_LIMITED, 1, 0.05)), pacing=replace(QUICK, notice=0.1)), "a")
    assert not caplog.records


def test_the_window_halves_once_a_round_trip_and_grows_by_one_a_round_trip() -> None:
    window = CongestionWindow(64)
    sent_at = time.monotonic()
    for _ in range(64):
        window.halve(sent_at)
    assert window.limit == 32
    for _ in range(33):
        window.grow()
    assert window.limit == 33
    window.halve(time.monotonic())
    assert window.limit == 16
    for _ in range(10_000):
        window.grow()
    assert window.limit == 64


def test_after_an_outage_the_window_opens_as_wide_as_before_in_a_few_round_trips() -> None:
    window = CongestionWindow(64)
    window.close_to_one()
    assert window.limit == 1
    for _ in range(63):
        window.grow()
    assert window.limit == 64


def test_who_wants_to_be_alone_waits_for_all_others_and_who_leaves_the_line_holds_nobody_up() -> None:
    async def scene() -> list[str]:
        window = CongestionWindow(4)
        seen: list[str] = []

        async def run(name: str, alone: bool) -> None:
            async with window.attempt(alone=alone):
                seen.append(f"{name} in")
                await asyncio.sleep(0.01)
                seen.append(f"{name} out")

        names = [("a", False), ("b", False), ("gone", True), ("c", True), ("d", False), ("e", False)]
        tasks = [asyncio.create_task(run(*each)) for each in names]
        await asyncio.sleep(0.001)
        tasks[2].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return seen

    seen = asyncio.run(scene())
    assert seen[4:6] == ["c in", "c out"]
    assert sorted(seen[:4]) == ["a in", "a out", "b in", "b out"]
    assert seen[6:8] == ["d in", "e in"]


def test_fewer_run_at_once_where_the_provider_has_room_for_fewer() -> None:
    room = 5
    refused = 0

    async def small(caller: ScriptedCaller, asked: Request) -> str:
        nonlocal refused
        if caller.running > room:
            refused += 1
            raise CallError(CallProblem.RATE_LIMITED, "status 429")
        await asyncio.sleep(0.01)
        return ""

    found = ask(session(ScriptedCaller(small), concurrency=64), *map(str, range(400)))
    assert {each.outcome for each in found.values()} == {Outcome.COMPLETED}
    assert refused < 300


def test_the_first_request_of_a_prefix_is_answered_before_others_of_it_go_out() -> None:
    running: Counter[str] = Counter()
    done: Counter[str] = Counter()
    alone: dict[str, list[bool]] = {"p": [], "q": []}

    async def script(caller: ScriptedCaller, asked: Request) -> str:
        prefix = asked.prefix
        if not done[prefix]:
            alone[prefix].append(running[prefix] == 0)
        running[prefix] += 1
        await asyncio.sleep(0.03)
        running[prefix] -= 1
        done[prefix] += 1
        return ""

    requests = [request(str(n), prefix) for n in range(6) for prefix in "pq"]
    caller = ScriptedCaller(script)
    with session(caller, concurrency=12, prime_prefixes=True) as opened:
        assert len(list(answers(opened, requests))) == 12
    assert alone == {"p": [True], "q": [True]}
    assert caller.most > 2


def test_where_the_first_request_of_a_prefix_fails_the_next_one_is_the_first() -> None:
    async def script(caller: ScriptedCaller, asked: Request) -> str:
        if text_of(asked) in "01":
            raise CallError(CallProblem.REJECTED, "no")
        await asyncio.sleep(0.02)
        return ""

    caller = ScriptedCaller(script)
    with session(caller, concurrency=8, prime_prefixes=True) as opened:
        found = list(answers(opened, [request(str(n), "p") for n in range(8)]))
    assert len(found) == 8
    starts = [at for at, _ in caller.calls]
    assert starts[3] - starts[2] >= 0.02
    assert max(after - before for before, after in pairwise(starts[3:])) < 0.02


def test_answers_are_kept_once_each_before_they_can_be_taken() -> None:
    kept: Counter[str] = Counter()
    guard = threading.Lock()

    def keep(completions: Sequence[Completion]) -> None:
        time.sleep(0.002)
        with guard:
            kept.update(text_of(each.request) for each in completions)

    with session(ScriptedCaller(failing(CallProblem.UNAVAILABLE, 1)), keep, concurrency=8) as opened:
        for each in answers(opened, map(request, map(str, range(100)))):
            with guard:
                assert kept[text_of(each.request)] == 1
    assert len(kept) == 100


def test_storing_slowly_holds_up_new_requests() -> None:
    release = threading.Event()
    caller = ScriptedCaller()

    def keep(completions: Sequence[Completion]) -> None:
        release.wait(5)

    with session(caller, keep, concurrency=4) as opened:
        for number in range(10):
            opened.submit(request(str(number)))
        blocked = threading.Thread(target=opened.submit, args=(request("one more"),))
        blocked.start()
        blocked.join(0.2)
        assert blocked.is_alive()
        assert len(caller.calls) == 10
        release.set()
        blocked.join(5)
        assert sum(1 for _ in iter(lambda: opened.take(wait=True), None)) == 11


def test_an_answer_that_cannot_be_stored_is_given_and_ends_the_session() -> None:
    def keep(completions: Sequence[Completion]) -> None:
        raise OSError(28, "No space left on device")

    found: list[Completion] = []
    caller = ScriptedCaller()
    with session(caller, keep) as opened, pytest.raises(ModelError, match="cannot be stored: .*No space left"):
        found.extend(answers(opened, map(request, map(str, range(1000)))))
    assert 1 <= len(found) == len(caller.calls) < 50


def test_leaving_by_an_error_cancels_what_is_under_way_and_keeps_what_came() -> None:
    async def script(caller: ScriptedCaller, asked: Request) -> str:
        await asyncio.sleep(0.0 if text_of(asked) == "quick" else 60)
        return ""

    kept: list[str] = []

    def keep(completions: Sequence[Completion]) -> None:
        time.sleep(0.1)
        kept.extend(text_of(each.request) for each in completions)

    caller = ScriptedCaller(script)
    began = time.monotonic()
    with pytest.raises(ZeroDivisionError), session(caller, keep) as opened:
        opened.submit(request("quick"))
        opened.submit(request("slow"))
        while not (caller.ended and caller.running):  # the slow one has begun
            time.sleep(0.005)
        _ = 1 / 0
    assert time.monotonic() - began < 2
    assert kept == ["quick"]
    assert sorted(caller.ended) == ["quick", "slow"]
    assert caller.closed == 1
    with pytest.raises(ModelError, match="has ended"):
        opened.submit(request("late"))


@pytest.mark.parametrize("doing", ["take", "submit"])
def test_control_c_ends_a_wait_and_the_session(doing: str) -> None:
    async def hang(caller: ScriptedCaller, asked: Request) -> str:
        await asyncio.sleep(60)
        return ""

    caller = ScriptedCaller(hang)
    timer = threading.Timer(0.2, _thread.interrupt_main)
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt), session(caller, concurrency=2) as opened:
        timer.start()
        opened.submit(request("a"))
        while doing == "submit":
            opened.submit(request("b"))
        opened.take(wait=True)
    assert time.monotonic() - began < 3
    assert caller.running == 0
    assert caller.closed == 1


def test_a_generator_that_is_dropped_leaves_the_session_usable() -> None:
    with session(ScriptedCaller()) as opened:
        first = next(answers(opened, map(request, "abcdef")))
        assert first.outcome is Outcome.COMPLETED
        rest = list(answers(opened, map(request, "xyz")))
        assert {"x", "y", "z"} <= {text_of(each.request) for each in rest}


def test_a_caller_that_does_not_close_does_not_hold_up_leaving(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Clinging(ScriptedCaller):
        async def close(self) -> None:
            await asyncio.sleep(60)

    monkeypatch.setattr("rag_assets.models.dispatch._CLOSE_SECONDS", 0.1)
    began = time.monotonic()
    ask(session(Clinging()), "a")
    assert time.monotonic() - began < 2
    assert "not closed cleanly" in caplog.text


def test_what_making_the_caller_raises_the_first_submit_raises() -> None:
    def make() -> ScriptedCaller:
        raise SettingsError("no key")

    opened = ConcurrentSession(make, print, UNLIMITED, name="x", concurrency=1, attempts=1, timeout_seconds=1)
    with opened:
        for _ in range(2):
            with pytest.raises(SettingsError, match="no key"):
                opened.submit(request("a"))
        assert opened.take(wait=True) is None


def test_a_session_without_requests_makes_no_caller() -> None:
    def make() -> ScriptedCaller:
        raise AssertionError("made")

    with ConcurrentSession(make, print, UNLIMITED, name="x", concurrency=1, attempts=1, timeout_seconds=1) as opened:
        assert list(answers(opened, [])) == []


def test_an_error_of_the_requests_themselves_passes_through() -> None:
    def broken() -> Iterator[Request]:
        yield request("a")
        raise LookupError("source")

    with pytest.raises(LookupError, match="source"), session(ScriptedCaller()) as opened:
        list(answers(opened, broken()))


async def limited(caller: ScriptedCaller, asked: Request) -> str:
    del caller, asked
    raise CallError(CallProblem.RATE_LIMITED, "too many requests")


async def limited_for_a_minute(caller: ScriptedCaller, asked: Request) -> str:
    del caller, asked
    raise CallError(CallProblem.RATE_LIMITED, "too many requests", 60.0)


@pytest.mark.parametrize("script", [limited, limited_for_a_minute])
def test_whoever_has_a_deadline_is_told_in_time_that_there_is_no_answer(script: Script) -> None:
    began = time.monotonic()
    with pytest.raises(ModelError, match="at most: too many requests"):
        ask(session(ScriptedCaller(script), pacing=Pacing(backoff=0.01, deadline=0.5)), "a")
    assert time.monotonic() - began < 2


def test_a_deadline_counts_from_the_last_answer() -> None:
    async def slow(caller: ScriptedCaller, asked: Request) -> str:
        del caller
        await asyncio.sleep(0.2)
        return text_of(asked)

    texts = [str(number) for number in range(8)]
    found = ask(session(ScriptedCaller(slow), concurrency=2, pacing=Pacing(deadline=0.3)), *texts)
    assert {each.outcome for each in found.values()} == {Outcome.COMPLETED}


def test_a_session_is_cancelled_from_another_thread() -> None:
    async def stuck(caller: ScriptedCaller, asked: Request) -> str:
        del caller, asked
        await asyncio.sleep(60)
        return ""

    caller = ScriptedCaller(stuck)
    began = time.monotonic()
    with session(caller, concurrency=1) as opened:
        opened.submit(request("a"))
        threading.Timer(0.2, opened.cancel).start()
        assert opened.take(wait=True) is None
        with pytest.raises(ModelError, match="ended"):
            opened.submit(request("b"))
    assert time.monotonic() - began < 3
    assert caller.ended == ["a"]
    assert caller.closed == 1
