"""How much is taken in: requests of one client a minute, and requests of one kind at once."""

import asyncio
import queue
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from starlette.types import Receive

from rag_assets.query.cancellation import Cancellation
from rag_assets.serve.problems import Problem

_T = TypeVar("_T")
_CLIENTS = 10_000  # clients that are remembered
_BURST_SECONDS = 10.0  # requests of this time may come at once


class ClientLimit:
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
        left, last = self._buckets.pop(client, (self._size, now))
        left = min(self._size, left + (now - last) * self._rate)
        self._buckets[client] = (max(left - 1, 0) if left >= 1 else left, now)
        if len(self._buckets) > _CLIENTS:
            self._buckets.popitem(last=False)
        if left < 1:
            wait = max(1, round((1 - left) / self._rate))
            raise Problem(429, f"more than {round(self._rate * 60)} requests a minute", {"Retry-After": str(wait)})


async def read_body(receive: Receive, most_bytes: int, too_large: Problem) -> bytes:
    """The body of a request, as far as it comes; raises the problem where it is larger than it may be."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            break
        body += message.get("body", b"")
        if len(body) > most_bytes:
            raise too_large
        if not message.get("more_body", False):
            break
    return bytes(body)


class WorkerThreads:
    """Threads for one kind of work, so many at once, and a queue before them in which so many may wait."""

    def __init__(self, kind: str, workers: int, waiting: int) -> None:
        self.kind = kind
        self._most = workers + waiting
        self._workers = workers
        self._queue: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._guard = threading.Lock()
        # Guarded by `_guard`:
        self._under_way: dict[Future[Any], Cancellation] = {}
        self._closed = False

    async def run(self, action: Callable[[], _T], cancellation: Cancellation | None = None) -> _T:
        """Do something in a thread. Where the task that waits for it is cancelled, or the work is closed, it is dropped
        from the queue, or given up where it is under way.

        Args:
            action: What is done.
            cancellation: How it is given up; None where it ends soon by itself.

        Raises:
            Problem: Too many wait already.
        """
        given_up = cancellation or Cancellation()
        future = self._begun(action, given_up)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            given_up.cancel()
            raise

    def count(self) -> float:
        """How many are under way or wait."""
        return len(self._under_way)

    def close(self) -> None:
        """Start nothing more, and give up what is under way."""
        with self._guard:
            self._closed = True
            under_way = dict(self._under_way)
        for future, cancellation in under_way.items():
            future.cancel()
            cancellation.cancel()
        for _ in self._threads:
            self._queue.put(None)

    def join(self, deadline: float) -> None:
        """Wait for the threads to end, until a `time.monotonic`; the process does not wait for those that do not."""
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _begun(self, action: Callable[[], _T], cancellation: Cancellation) -> "Future[_T]":
        future: Future[_T] = Future()
        with self._guard:
            if self._closed or len(self._under_way) >= self._most:
                late = f"too many requests wait for {self.kind}; try again in a moment"
                raise Problem(503, late, {"Retry-After": "2"})
            self._under_way[future] = cancellation
            if len(self._threads) < self._workers:
                name = f"{self.kind.replace(' ', '-')}-{len(self._threads)}"
                self._threads.append(threading.Thread(target=self._work, name=name, daemon=True))
                self._threads[-1].start()
        future.add_done_callback(self._ended)
        self._queue.put(lambda: _do(future, action))
        return future

    def _work(self) -> None:
        while (task := self._queue.get()) is not None:
            task()
            del task  # what it holds is let go while the thread waits

    def _ended(self, future: "Future[_T]") -> None:
        with self._guard:
            self._under_way.pop(future, None)


def _do(future: "Future[_T]", action: Callable[[], _T]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = action()
    except BaseException as error:  # noqa: BLE001 - it is raised in the task that waits for it
        future.set_exception(error)
    else:
        future.set_result(result)
