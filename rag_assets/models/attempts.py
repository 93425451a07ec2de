"""Attempts at requests until they are answered: priming, backoff, giving up, and how many run at once: as many as the
provider bears. Belongs to one event loop.
"""

import asyncio
import logging
import math
import random
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, TypeVar

from rag_assets.contracts.errors import AwayError, ModelError
from rag_assets.contracts.generation import Completion, Outcome, Request
from rag_assets.models.providers import Caller, CallError, CallProblem, timeout_message
from rag_assets.text.tokens import estimate_tokens

if TYPE_CHECKING:
    from rag_assets.models.rate_limit import RateLimit

Answer = TypeVar("Answer")

_GO_ON = "no answer that came is lost, and running again goes on from there"
_PROBES = 3  # asking at an address where nobody listens costs nothing: the pauses stop growing at this one
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Pacing:
    """How long is waited, in seconds."""

    backoff: float = 1.0  # the wait after a first failed attempt is at most this; it doubles with each further one
    backoff_most: float = 60.0  # where it stops doubling
    retry_after_most: float = 300.0  # what of a wait is heeded that the provider asks for
    failures: int = 8  # number of failed attempts in a row, of all requests, from which the provider counts as out
    deserted: float = 3.0  # how long nobody may listen at its address when it has not answered in this session
    unreachable: float = 20.0  # how long it may be out otherwise when it has not answered in this session
    outage: float = 120.0  # how long it may be out when it has, or when `known` says so
    # how long it may answer nothing but that there are too many requests, to all of them or to one
    limited: float = 900.0
    notice: float = 10.0  # from when on the log says so; again when that has lasted twice as long as the last time
    limited_attempts: int = 20  # number of attempts, besides, at one request that is told so while others are answered
    # how long a request may be waited for before an attempt at it begins, counted from when it came or the provider
    # last answered any; an attempt under way may end
    deadline: float = math.inf
    # tells whether the provider has answered in the same run before this session; asked from any thread, and only when
    # it is away
    known: Callable[[], bool] = lambda: False

    def backoff_seconds(self, failures: int) -> float:
        """Wait after so many failures in a row, drawn anew each time."""
        most = min(self.backoff_most, self.backoff * 2.0 ** min(failures - 1, 30))
        return random.uniform(0.0, most)  # noqa: S311 - spreads attempts

    def asked_seconds(self, error: CallError) -> float:
        """What is heeded of the wait that the provider asks for; 0 where it does not."""
        return min(max(0.0, error.retry_after_seconds or 0.0), self.retry_after_most)


def until_answered(ask: Callable[[], Answer], pacing: Pacing, name: str) -> Answer:
    """Ask a server something, again while it is away, for as long as the run that it has answered before has patience.

    Raises:
        AwayError: It is away still, or has answered nothing in this run.
    """
    began_at = time.monotonic()
    is_logged = False
    while True:
        try:
            return ask()
        except AwayError as error:
            if time.monotonic() - began_at >= pacing.outage or not pacing.known():
                raise
            if not is_logged:
                _log_waiting(name, pacing, error)
                is_logged = True
            time.sleep(pacing.backoff_seconds(_PROBES))


def _log_waiting(name: str, pacing: Pacing, error: Exception) -> None:
    message = "%s: waiting for the model server since %s, %g s at most (%s): %s"
    since = datetime.now(UTC).strftime("%H:%M:%S UTC")
    _log.warning(message, name, since, pacing.outage, "language_model.outage_seconds", error)


class CongestionWindow:
    """Lets so many attempts run at once: more after each that is answered, half as many when there are too many.

    Source: Chiu and Jain, "Analysis of the increase and decrease algorithms for congestion avoidance in computer
    networks", 1989 (additive increase, multiplicative decrease); RFC 5681, section 3.1 (slow start up to a threshold,
    one decrease a round trip). Deviations: it starts wide open, since the user has stated a number; an outage closes it
    to one attempt, but leaves the threshold, since it tells nothing of what the provider bears.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._limit = float(most)
        self._threshold = float(most)
        self._running = 0
        self._is_alone = False
        self._cut_at = -1.0
        self._paused_until = 0.0
        self._pause: asyncio.TimerHandle | None = None
        self._waiting: deque[tuple[asyncio.Future[None], bool]] = deque()

    @property
    def limit(self) -> int:
        """Attempts that may run at once now."""
        return max(1, int(self._limit))

    @asynccontextmanager
    async def attempt(self, *, alone: bool = False) -> AsyncIterator[None]:
        """Wait for a place, in order of arrival, and hold it; `alone`: with no other attempt beside it."""
        await self._enter(alone)
        try:
            yield
        finally:
            self._leave()

    def grow(self) -> None:
        """An attempt was answered."""
        slow_start = self._limit < self._threshold
        self._limit = min(self.most, self._limit + (1.0 if slow_start else 1.0 / self._limit))
        self._admit()

    def halve(self, sent_at: float) -> None:
        """The provider said that there is too much; heeded once a round trip, by when the attempt was sent
        (monotonic).
        """
        if sent_at > self._cut_at:
            self._cut_at = time.monotonic()
            self._limit = self._threshold = max(1.0, self._limit / 2)

    def close_to_one(self) -> None:
        """The provider does not answer: one attempt at a time finds out when it does again."""
        self._limit = 1.0

    def pause(self, seconds: float) -> None:
        """Let nothing begin for a while."""
        deadline = time.monotonic() + seconds
        if deadline > self._paused_until:
            self._paused_until = deadline
            if self._pause is not None:
                self._pause.cancel()
            self._pause = asyncio.get_running_loop().call_later(seconds, self._resume)

    def _resume(self) -> None:
        self._pause = None
        self._admit()

    async def _enter(self, alone: bool) -> None:
        if not self._waiting and self._has_place(alone):
            self._take(alone)
            return
        place = asyncio.get_running_loop().create_future()
        self._waiting.append((place, alone))
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self._leave()
            else:
                self._admit()
            raise

    def _leave(self) -> None:
        self._running -= 1
        self._is_alone = False
        self._admit()

    def _take(self, alone: bool) -> None:
        self._running += 1
        self._is_alone = alone

    def _has_place(self, alone: bool) -> bool:
        return self._pause is None and self._running < (1 if alone or self._is_alone else self.limit)

    def _admit(self) -> None:
        while self._waiting and (self._waiting[0][0].done() or self._has_place(self._waiting[0][1])):
            place, alone = self._waiting.popleft()
            if not place.done():  # else it was cancelled
                self._take(alone)
                place.set_result(None)


@dataclass
class _Streak:
    """Failed attempts since the last answer."""

    length: int = 0  # number of them
    began_at: float = 0.0  # when the first one failed
    away_at: float = 0.0  # when the first one failed since the provider last said anything
    deserted_at: float = 0.0  # when the first one failed since somebody last listened at its address
    probes: int = 0  # number of them that were made to see whether the provider is back
    probed_at: float = 0.0  # when the last of those failed
    is_logged: bool = False  # whether the log says that the provider is waited for
    noticed: float = 0.0  # seconds of limited rates of which the log has spoken


class Attempts:
    """Answers requests by as many attempts as it takes.

    An attempt that is rejected is a failed completion; one that is denied ends everything. Attempts that find the
    provider overloaded or away are made again after an exponential backoff with full jitter, up to `attempts` of a
    request. Being told of too many requests is no failure of a request: it costs time, not attempts; nor is finding
    nobody at the address, or a provider that is overloaded when it is out for all. A server whose calls share its
    context, and that has no room left in it, answers one at a time for a while; a request that found no room is made
    again alone, and only those attempts count. After `Pacing.failures` failed attempts
    in a row, one at a time probes the provider; when it has been out for longer than `Pacing` allows, it is given up.
    Then no new attempts are made, but those under way may be answered, since they are paid for.

    Source: M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015 (full jitter); M. Nygard, "Release
    It!", 2007, chapter 5 (circuit breaker; deviation: half open is one attempt a backoff).

    Arguments are those of `ConcurrentSession`; `note` writes down that a request is being sent, as part of the attempt.
    """

    def __init__(  # noqa: PLR0913 - functions take values
        self,
        caller: Caller,
        *,
        note: Callable[[Request], Awaitable[None]],
        name: str,
        concurrency: int,
        attempts: int,
        timeout_seconds: float,
        rate_limit: "RateLimit | None",
        prime_prefixes: bool,
        pacing: Pacing,
    ) -> None:
        self._caller = caller
        self._note = note
        self._name = name
        self._attempts = attempts
        self._timeout_seconds = timeout_seconds
        self._rate_limit = rate_limit
        self._prime_prefixes = prime_prefixes
        self._pacing = pacing
        self._window = CongestionWindow(concurrency)
        self._turn = asyncio.Lock()
        self._primed: set[str] = set()
        self._priming: dict[str, asyncio.Lock] = {}
        self._streak = _Streak()
        self._answered = self._asked_known = False
        self._heard_at = -math.inf
        self._trouble = "its limits on rates leave no room"
        self._failure: ModelError | None = None
        self._tasks: set[asyncio.Task[Completion]] = set()
        self._calling: set[asyncio.Task[Completion]] = set()

    def begin(self, request: Request) -> "asyncio.Task[Completion]":
        """A task that answers a request; it raises `ModelError`, or is cancelled, where the model is given up first."""
        task = asyncio.get_running_loop().create_task(self._answer(request))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def give_up(self, failure: ModelError) -> ModelError:
        """Make no new attempt; the first failure stands."""
        if self._failure is None:
            self._failure = failure
            for task in self._tasks - self._calling:
                if task is not asyncio.current_task():
                    task.cancel()
        return self._failure

    async def close(self, seconds: float) -> int:
        """Cancel what is under way; the number of tasks that have not ended after so many seconds."""
        for task in self._tasks:
            task.cancel()
        pending_tasks = (await asyncio.wait(self._tasks, timeout=seconds))[1] if self._tasks else set()
        return len(pending_tasks)

    async def _answer(self, request: Request) -> Completion:
        prefix = request.prefix
        if not self._prime_prefixes or not prefix or prefix in self._primed:
            return await self._try(request)
        async with self._priming.setdefault(prefix, asyncio.Lock()):
            if prefix not in self._primed:
                completion = await self._try(request)
                if completion.outcome is not Outcome.FAILED:
                    self._primed.add(prefix)
                return completion
        return await self._try(request)

    async def _try(self, request: Request) -> Completion:
        began_at = time.monotonic()
        attempts = failed_attempts = limited_attempts = 0
        alone = False
        while self._failure is None:
            try:
                return await self._attempt(request, self._patient_until(began_at), alone)
            except TimeoutError:
                self._check_patience(began_at, 0.0)
            except CallError as error:
                attempts += 1
                was_alone, alone = alone or self._window.most == 1, error.problem is CallProblem.FULL
                match error.problem:
                    case CallProblem.REJECTED:
                        return replace(_failed_completion(request, str(error), began_at), rejected=True)
                    case CallProblem.DENIED:
                        raise self.give_up(ModelError(f"{self._name}: {error}; {_GO_ON}")) from error
                    case CallProblem.RATE_LIMITED:
                        limited_attempts += 1
                    case CallProblem.UNREACHABLE:
                        pass
                    case CallProblem.OVERLOADED if self._answered and self._is_out:
                        pass
                    case CallProblem.FULL if not was_alone:
                        pass  # others may have taken the room
                    case _:
                        failed_attempts += 1
                seconds = time.monotonic() - began_at
                is_unlucky = limited_attempts >= self._pacing.limited_attempts and seconds >= self._pacing.limited
                if failed_attempts >= self._attempts or is_unlucky:
                    return _failed_completion(request, f"{error}; {attempts} attempts in {seconds:.0f} s", began_at)
                if self._failure is None:
                    wait_seconds = self._pacing.asked_seconds(error)
                    failures = 1 if wait_seconds else max(1, failed_attempts + limited_attempts)
                    wait_seconds += self._pacing.backoff_seconds(failures)
                    self._check_patience(began_at, wait_seconds)
                    await asyncio.sleep(wait_seconds)
        raise self._failure

    @property
    def _is_out(self) -> bool:
        return self._streak.length >= self._pacing.failures

    def _patient_until(self, began_at: float) -> float:
        return max(began_at, self._heard_at) + self._pacing.deadline

    def _check_patience(self, began_at: float, seconds: float) -> None:
        """Give the provider up where the next attempt would begin too late."""
        now = time.monotonic()
        if now + seconds >= self._patient_until(began_at):
            reason = f"no answer after {now - began_at:.0f} s, of {self._pacing.deadline:.0f} s at most"
            raise self.give_up(ModelError(f"{self._name}: {reason}: {self._trouble}; {_GO_ON}"))

    async def _attempt(self, request: Request, patient_until: float, alone: bool) -> Completion:
        """Make an attempt.

        Raises:
            CallError: It failed.
            TimeoutError: It could not begin in time.
        """
        deadline = None if math.isinf(patient_until) else patient_until
        async with asyncio.timeout_at(deadline) as timeout, self._window.attempt(alone=alone):
            tokens = 0
            if self._rate_limit is not None:
                tokens = _estimate(request) if self._rate_limit.counts_tokens else 0
                async with self._turn:
                    await self._rate_limit.wait(tokens)
            timeout.reschedule(None)
            sent_at = time.monotonic()
            try:
                completion = await self._call(request)
            except CallError as error:
                if error.problem is not CallProblem.UNAVAILABLE and self._rate_limit:
                    self._rate_limit.settle(tokens, 0)
                await self._learn(error, sent_at)
                raise
            called_at = time.time()
            seconds = time.monotonic() - sent_at
        if self._streak.is_logged or self._streak.noticed:
            _log.warning("%s: answers again after %.0f s", self._name, time.monotonic() - self._streak.began_at)
        self._streak = _Streak()
        self._answered = True
        self._heard_at = time.monotonic()
        self._window.grow()
        if self._rate_limit:
            usage = completion.usage
            input_tokens = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
            self._rate_limit.settle(tokens, input_tokens + usage.output_tokens)
        return replace(completion, seconds=seconds, called_at=called_at)

    async def _call(self, request: Request) -> Completion:
        task = asyncio.current_task()
        assert task is not None
        self._calling.add(task)
        try:
            async with asyncio.timeout(self._timeout_seconds):
                await self._note(request)
                return await self._caller.call(request)
        except TimeoutError as error:
            raise CallError(CallProblem.UNAVAILABLE, timeout_message(self._timeout_seconds)) from error
        finally:
            self._calling.discard(task)

    async def _learn(self, error: CallError, sent_at: float) -> None:
        """What a failed attempt says of the provider."""
        self._trouble = str(error)
        now = time.monotonic()
        if error.problem is CallProblem.DENIED:
            return
        if error.problem in {CallProblem.REJECTED, CallProblem.FULL}:
            self._heard_at, self._streak, self._answered = now, _Streak(), True
            if error.problem is CallProblem.FULL:
                self._window.halve(sent_at)
                self._window.close_to_one()
            return
        streak = self._streak
        if not streak.length:
            streak.began_at = streak.away_at = streak.deserted_at = streak.probed_at = now
        streak.length += 1
        if error.problem is CallProblem.RATE_LIMITED:
            streak.away_at = now
        if error.problem is not CallProblem.UNREACHABLE:
            streak.deserted_at = now
        if error.problem in {CallProblem.RATE_LIMITED, CallProblem.OVERLOADED}:
            self._window.halve(sent_at)
            if seconds := self._pacing.asked_seconds(error):
                self._window.pause(seconds)
                if self._rate_limit:
                    await self._rate_limit.hold(seconds)
            if error.problem is CallProblem.RATE_LIMITED and self._streak is streak:
                self._notice_limits(streak, error, now + seconds - streak.began_at)
        if not self._answered and not self._asked_known:
            self._asked_known = True
            self._answered = await asyncio.to_thread(self._pacing.known)
        self._judge(streak, error, now, sent_at)

    def _notice_limits(self, streak: _Streak, error: CallError, seconds: float) -> None:
        """Say once in a while that the provider limits the rate, where it answers nothing else for so many seconds."""
        if seconds < max(self._pacing.notice, 2 * streak.noticed):
            return
        streak.noticed = seconds
        since = datetime.now(UTC) - timedelta(seconds=time.monotonic() - streak.began_at)
        _log.warning(
            "%s: the provider limits the rate of calls: waiting since %s, %g s at most: %s",
            *(self._name, since.strftime("%H:%M:%S UTC"), self._pacing.limited, error),
        )

    def _judge(self, streak: _Streak, error: CallError, now: float, sent_at: float) -> None:
        """Give the provider up, or probe it."""
        is_away = error.problem is CallProblem.UNREACHABLE or self._is_out
        if self._answered and is_away and not streak.is_logged and self._streak is streak:
            streak.is_logged = True
            _log_waiting(self._name, self._pacing, error)
        is_deserted = not self._answered and now - streak.deserted_at >= self._pacing.deserted
        if not is_deserted and streak.length < self._pacing.failures:
            return
        patience = self._pacing.outage if self._answered else self._pacing.unreachable
        if is_deserted or now - streak.away_at >= patience or now - streak.began_at >= self._pacing.limited:
            seconds = now - streak.began_at
            reason = f"{streak.length} attempts in a row failed within {seconds:.0f} s, the last one by: {error}"
            raise self.give_up(ModelError(f"{self._name}: {reason}; {_GO_ON}")) from error
        if sent_at > streak.probed_at:
            streak.probes += 1
            streak.probed_at = now
            self._window.close_to_one()
            is_unreachable = error.problem is CallProblem.UNREACHABLE
            probes = min(streak.probes, _PROBES if self._answered else 1) if is_unreachable else streak.probes
            self._window.pause(self._pacing.backoff_seconds(probes))


def _estimate(request: Request) -> int:
    """Tokens that a request may take, its answer included."""
    texts = (request.prefix, request.system, *(message.text for message in request.messages))
    return sum(map(estimate_tokens, texts)) + request.max_tokens


def _failed_completion(request: Request, error: str, began_at: float) -> Completion:
    seconds = time.monotonic() - began_at
    return Completion(request, Outcome.FAILED, seconds=seconds, called_at=time.time(), error=error)
