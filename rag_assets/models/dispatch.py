"""Requests to a provider that answers one request a call, handed over and taken from ordinary threads.

Attempts, backoff, giving up and how many attempts run at once are `attempts`, limits that processes share `rate_limit`;
stored answers, ledger and budget stand around it (`metered`).

```
submit ──► prime: one at a time per new prefix ──► window ──► rate limit ──► Caller.call ──► keep ──► take
                                                     ▲                            │
                                                     └── backoff, retry-after ◄───┘ CallError
```

All from `prime` to `Caller.call` runs in one event loop in a thread of its own. What touches the disk runs in two other
threads: one notes what is being sent, one keeps answers, each all at once that came while it was busy.
"""

import asyncio
import logging
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Self

from rag_assets.contracts.errors import ModelError, RagAssetsError
from rag_assets.contracts.generation import Completion, Outcome, Request
from rag_assets.contracts.ports import Session
from rag_assets.models.attempts import Attempts, Pacing
from rag_assets.models.providers import CallBudget, Caller, Keep

if TYPE_CHECKING:
    from rag_assets.models.rate_limit import RateLimit

logger = logging.getLogger(__name__)

_INTERRUPT_SECONDS = 1.0  # where waiting for a lock cannot be interrupted, Ctrl-C is heeded after this
_CANCEL_SECONDS = 3.0
_CLOSE_SECONDS = 2.0
_PACING = Pacing()


class ConcurrentSession:
    """Requests under way at a provider that is called one request at a time; a context manager.

    At most `concurrency` calls are under way. A quarter as many requests stand in line, so that the next call begins
    the moment one ends, whatever the consumer does then; while they do, or while twice that number is being stored,
    `submit` waits. Answers that nobody has taken do not count: whoever takes after each submit, as `answers` does,
    leaves no more than came since.

    Leaving it, also by an exception, cancels what is under way within a few seconds; answers that had come are kept.
    Threads and caller are made with the first request. Any thread may submit and take.

    Args:
        make_caller: Makes the caller, within the event loop; what it raises, the first submit raises.
        keep: Stores answers; called from one thread.
        budget: Asked for the price of each request that is submitted, and told before it is sent.
        concurrency: Calls under way, at most.
        attempts: Attempts at a request, at most; those not counted that were told of too many requests.
        timeout_seconds: Seconds that an attempt may take.
        name: Provider and model, for messages.
        rate_limit: Limits that processes share; None for none.
        prime_prefixes: Whether the first request of each prefix is answered before others of it go out, so that the
            provider's prompt cache is written once and then read.
        pacing: How long is waited between attempts, and until the provider is given up.
    """

    def __init__(  # noqa: PLR0913 - functions take values, not the settings
        self,
        make_caller: Callable[[], Caller],
        keep: Keep,
        budget: CallBudget,
        *,
        concurrency: int,
        attempts: int,
        timeout_seconds: float,
        name: str = "language model",
        rate_limit: "RateLimit | None" = None,
        prime_prefixes: bool = False,
        pacing: Pacing = _PACING,
    ) -> None:
        self._make_caller = make_caller
        self._keep = keep
        self._budget = budget
        self._name = name
        self._concurrency = concurrency
        self._rate_limit = rate_limit
        self._make_attempts = partial(
            Attempts,
            note=self._send,
            name=name,
            concurrency=concurrency,
            attempts=attempts,
            timeout_seconds=timeout_seconds,
            rate_limit=rate_limit,
            prime_prefixes=prime_prefixes,
            pacing=pacing,
        )
        self._unsent: list[tuple[Request, asyncio.Future[None]]] = []
        self._sending: asyncio.Task[None] | None = None
        self._changed = threading.Condition()
        self._stop = asyncio.Event()
        # Guarded by `_changed`:
        self._thread: threading.Thread | None = None
        self._closed = False
        self._line: deque[Request] = deque()
        self._woken = False
        self._begun = 0
        self._unkept = 0
        self._to_keep: list[Completion] = []
        self._arrived: deque[Completion] = deque()
        self._failure: ModelError | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.cancel()
        thread = self._thread
        if thread is None:
            return
        thread.join(_CANCEL_SECONDS + _CLOSE_SECONDS + 1)
        if thread.is_alive():
            logger.warning("%s: connections do not close; they are left behind", self._name)
        self._keeper.shutdown(wait=True)
        self._sender.shutdown(wait=True)

    def submit(self, request: Request) -> None:
        self._budget.reserve(request)
        with self._changed:
            while self._failure is None and not self._closed and self._is_full():
                self._changed.wait(_INTERRUPT_SECONDS)
            if self._failure is not None:
                raise self._failure
            if self._closed:
                raise ModelError(f"{self._name}: the session has ended")
            if self._thread is None:
                self._start()
            self._line.append(request)
            # Waking the loop costs a turn of Python's global lock, and where all places are taken it need not wake: the
            # next answer fetches from the line.
            if self._begun < self._concurrency and not self._woken:
                self._woken = True
                self._loop.call_soon_threadsafe(self._fill)

    def take(self, *, wait: bool) -> Completion | None:
        with self._changed:
            while True:
                if self._arrived:
                    return self._arrived.popleft()
                if not self._line and not self._begun and not self._unkept:
                    if self._failure is not None:
                        raise self._failure
                    return None
                if not wait or self._closed:
                    return None
                self._changed.wait(_INTERRUPT_SECONDS)

    def cancel(self) -> None:
        with self._changed:
            self._closed = True
            thread = self._thread
            self._changed.notify_all()
        if thread is not None:
            with suppress(RuntimeError):  # the loop has ended by itself
                self._loop.call_soon_threadsafe(self._stop.set)

    def _is_full(self) -> bool:
        most = self._concurrency + self._concurrency // 4
        unanswered_count = len(self._line) + self._begun
        return unanswered_count >= most or unanswered_count + self._unkept >= 2 * most

    def _start(self) -> None:
        """Make the loop and the caller; raises what making the caller raises."""
        self._loop = asyncio.new_event_loop()
        self._keeper = ThreadPoolExecutor(1, "keep-answers")
        self._sender = ThreadPoolExecutor(1, "note-calls")
        start: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, args=(start,), name="language-model", daemon=True)
        self._thread.start()
        try:
            start.result()
        finally:
            if start.done() and start.exception() is not None:
                self._thread.join()
                self._thread = None

    def _run(self, start: "Future[None]") -> None:
        # Not `asyncio.run`, which waits without limit for tasks that do not end.
        try:
            self._loop.run_until_complete(self._serve(start))
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        finally:
            self._loop.close()
            if start.exception() is None:
                with self._changed:  # nobody waits for a loop that has ended
                    self._line.clear()
                    self._begun = 0
                    if not self._closed:
                        self._failure = self._failure or ModelError(f"{self._name}: its event loop has ended")
                    self._changed.notify_all()

    async def _serve(self, start: "Future[None]") -> None:
        try:
            caller = self._make_caller()
        except BaseException as error:  # noqa: BLE001 - it is raised in the thread that waits for it
            start.set_exception(error)
            return
        self._attempts = self._make_attempts(caller)
        start.set_result(None)
        await self._stop.wait()
        left = await self._attempts.close(_CANCEL_SECONDS)
        if left:
            logger.warning("%s: %d calls do not end; they are left behind", self._name, left)
        for close in (caller.close, self._rate_limit.close if self._rate_limit is not None else None):
            try:
                async with asyncio.timeout(_CLOSE_SECONDS):
                    if close is not None:
                        await close()
            except (OSError, RuntimeError, RagAssetsError) as error:
                logger.warning("%s: not closed cleanly: %s", self._name, type(error).__name__)

    def _fill(self) -> None:
        """Begin requests while there are places and requests."""
        with self._changed:
            self._woken = False
            while self._line and self._begun < self._concurrency and not self._closed:
                request = self._line.popleft()
                self._begun += 1
                self._attempts.begin(request).add_done_callback(partial(self._answered, request))

    def _answered(self, request: Request, task: "asyncio.Task[Completion]") -> None:
        error = None if task.cancelled() else task.exception()
        with self._changed:
            self._begun -= 1
            if isinstance(error, ModelError):
                self._fail(error)
            elif error is not None:
                self._arrived.append(self._broken(request, error))
            elif not task.cancelled():
                self._keep_answer(task.result())
            elif not self._closed and self._failure is None:
                self._arrived.append(self._broken(request, asyncio.CancelledError()))
            self._fill()
            self._changed.notify_all()

    async def _send(self, request: Request) -> None:
        """Note that a request is being sent, together with all others that are sent while the last note is written."""
        future = asyncio.get_running_loop().create_future()
        self._unsent.append((request, future))
        if self._sending is None:
            self._sending = asyncio.get_running_loop().create_task(self._send_all())
        await future

    async def _send_all(self) -> None:
        while self._unsent:
            batch, self._unsent = self._unsent, []
            requests = [request for request, future in batch if not future.done()]
            error: Exception | None = None
            try:
                await asyncio.get_running_loop().run_in_executor(self._sender, self._budget.send, requests)
            except RagAssetsError as cause:
                error = ModelError(f"{self._name}: a call cannot be written down: {cause}")
            for _, future in batch:
                if future.done():
                    continue
                if error is None:
                    future.set_result(None)
                else:
                    future.set_exception(error)
        self._sending = None

    def _fail(self, error: ModelError) -> None:
        """End the session, but for calls that are under way."""
        if self._failure is None:
            self._failure = error
            self._line.clear()
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._attempts.give_up, error)

    def _broken(self, request: Request, error: BaseException) -> Completion:
        """A request whose caller raised what it must not; without the message, which may quote the document."""
        frames = traceback.extract_tb(error.__traceback__)
        place = f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""
        logger.error("%s: unexpected %s%s", self._name, type(error).__name__, place)
        text = f"{self._name}: unexpected {type(error).__name__}"
        return Completion(request, Outcome.FAILED, called_at=time.time(), error=text)

    def _keep_answer(self, completion: Completion) -> None:
        if completion.outcome is Outcome.FAILED:
            self._arrived.append(completion)
            return
        self._unkept += 1
        self._to_keep.append(completion)
        if len(self._to_keep) == 1:
            self._keeper.submit(self._keep_all)

    def _keep_all(self) -> None:
        """Keep what has arrived; while it is being kept, more gathers."""
        with self._changed:
            batch, self._to_keep = self._to_keep, []
        failure = None
        try:
            self._keep(batch)
        except Exception as error:  # noqa: BLE001 - it ends the session, whatever it is
            failure = ModelError(f"{self._name}: an answer cannot be stored: {error}")
            failure.__cause__ = error
        with self._changed:
            self._unkept -= len(batch)
            self._arrived.extend(batch)
            if failure is not None:
                self._fail(failure)
            self._changed.notify_all()


def answers(session: Session, requests: Iterable[Request]) -> Iterator[Completion]:
    """Hand over requests as they are needed, and give the answers as they come.

    Args:
        session: Where they go; left open.
        requests: Taken one by one, each when the model has room for it.

    Raises:
        ModelError: The model takes no more requests, or as a whole cannot be used; answers that had come are given
            before.
    """
    for request in requests:
        try:
            session.submit(request)
        except ModelError:
            with suppress(ModelError):
                while (completion := session.take(wait=True)) is not None:
                    yield completion
            raise
        while (completion := session.take(wait=False)) is not None:
            yield completion
    while (completion := session.take(wait=True)) is not None:
        yield completion
