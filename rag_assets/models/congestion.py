"""How many attempts run at once: as many as the provider bears. Belongs to one event loop."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class CongestionWindow:
    """Lets so many attempts run at once: more after each that is answered, half as many when there are too many.

    Source: Chiu and Jain, "Analysis of the increase and decrease algorithms for congestion avoidance in computer
    networks", 1989 (additive increase, multiplicative decrease); RFC 5681, section 3.1 (slow start up to a threshold,
    one decrease a round trip). Deviations: it starts wide open, since the user has stated a number; an outage closes it
    to one attempt, but leaves the threshold, since it tells nothing of what the provider bears.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._limit = float(most)
        self._threshold = float(most)
        self._running = 0
        self._cut_at = -1.0
        self._paused_until = 0.0
        self._pause: asyncio.TimerHandle | None = None
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def limit(self) -> int:
        """Attempts that may run at once now."""
        return max(1, int(self._limit))

    @asynccontextmanager
    async def attempt(self) -> AsyncIterator[None]:
        """Wait for a place, in order of arrival, and hold it."""
        await self._enter()
        try:
            yield
        finally:
            self._leave()

    def grow(self) -> None:
        """An attempt was answered."""
        slow_start = self._limit < self._threshold
        self._limit = min(self._most, self._limit + (1.0 if slow_start else 1.0 / self._limit))
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
        until = time.monotonic() + seconds
        if until > self._paused_until:
            self._paused_until = until
            if self._pause is not None:
                self._pause.cancel()
            self._pause = asyncio.get_running_loop().call_later(seconds, self._resume)

    def _resume(self) -> None:
        self._pause = None
        self._admit()

    async def _enter(self) -> None:
        if not self._waiting and self._has_place():
            self._running += 1
            return
        place = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self._leave()
            raise

    def _leave(self) -> None:
        self._running -= 1
        self._admit()

    def _has_place(self) -> bool:
        return self._running < self.limit and self._pause is None

    def _admit(self) -> None:
        while self._waiting and self._has_place():
            place = self._waiting.popleft()
            if not place.done():
                self._running += 1
                place.set_result(None)
