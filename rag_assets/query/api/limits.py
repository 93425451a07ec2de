"""How much is taken in: requests of one client a minute, and requests of one kind at once."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from rag_assets.query.api.problems import Overloaded, Problem

_T = TypeVar("_T")
_CLIENTS = 10_000  # clients that are remembered
_BURST_SECONDS = 10.0  # requests of this time may come at once


class RateLimit:
    """Requests of one client a minute: a bucket of tokens that fills steadily. For one event loop.

    Args:
        per_minute: Requests a minute; 0 for no limit.
        clock: Tells the time in seconds.
    """

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = per_minute / 60
        self._size = max(5.0, self._rate * _BURST_SECONDS)
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def check(self, client: str) -> None:
        """Count a request.

        Raises:
            Problem: The client has asked too much.
        """
        if not self._rate:
            return
        now = self._clock()
        left, seen = self._buckets.pop(client, (self._size, now))
        left = min(self._size, left + (now - seen) * self._rate)
        self._buckets[client] = (max(left - 1, 0) if left >= 1 else left, now)
        if len(self._buckets) > _CLIENTS:
            self._buckets.popitem(last=False)
        if left < 1:
            wait = max(1, round((1 - left) / self._rate))
            raise Problem(429, f"more than {round(self._rate * 60)} requests a minute", {"Retry-After": str(wait)})


class Work:
    """Threads for one kind of work, and a queue before them that ends.

    Args:
        kind: What is done, for people.
        workers: How many are done at once.
        waiting: How many may wait.
    """

    def __init__(self, kind: str, workers: int, waiting: int) -> None:
        self.kind = kind
        self.in_flight = 0
        self._most = workers + waiting
        self._executor = ThreadPoolExecutor(workers, thread_name_prefix=kind.replace(" ", "-"))

    async def run(self, action: Callable[[], _T]) -> _T:
        """Do something in a thread.

        Raises:
            Overloaded: Too many wait already.
        """
        if self.in_flight >= self._most:
            raise Overloaded(self.kind)
        try:
            future = self._executor.submit(action)
        except RuntimeError as error:  # it is closed: the server ends
            raise Overloaded(self.kind) from error
        self.in_flight += 1
        future.add_done_callback(self._done(asyncio.get_running_loop()))
        return await asyncio.wrap_future(future)

    def _done(self, loop: asyncio.AbstractEventLoop) -> Callable[[object], None]:
        def leave() -> None:
            self.in_flight -= 1

        def done(_: object) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(leave)

        return done

    def count(self) -> float:
        """How many are under way or wait."""
        return self.in_flight

    def close(self) -> None:
        """Start nothing more."""
        self._executor.shutdown(wait=False, cancel_futures=True)
