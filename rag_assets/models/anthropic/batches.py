"""Message Batches of Anthropic: half the price, and up to a day until the answers come.

Every request is paid for once, whatever happens to this process: a batch is written down before it is sent, and who
asks for the same requests again waits for it instead of sending them.

How batches are remembered, made, found again and forgotten is `open_batches`.
Source: https://platform.claude.com/docs/en/build-with-claude/batch-processing
"""

import json
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing
from dataclasses import replace
from itertools import islice
from types import TracebackType
from typing import TYPE_CHECKING

from rag_assets.contracts.errors import BudgetError, ModelError
from rag_assets.contracts.generation import Completion, Outcome, Request, Tag, Usage, request_key
from rag_assets.contracts.ports import Session
from rag_assets.models.anthropic.messages import completion_of, error_line, problem_of
from rag_assets.models.anthropic.open_batches import (
    FINAL,
    BatchEntry,
    OpenBatch,
    OpenBatches,
    digits_of,
    key_digits,
)
from rag_assets.models.catalogue import upper_price_usd
from rag_assets.models.providers import CallBudget, CallError, ClaimedError, Keep

if TYPE_CHECKING:
    from anthropic.types.messages import MessageBatchIndividualResponse

_LOG = logging.getLogger(__name__)

OpenCalls = Callable[[Keep, CallBudget], AbstractContextManager[Session]]


class BatchSession:
    """Requests under way in batches; see `Session`. For one thread; leaving it leaves the batches running.

    The request of a completion equals the one submitted, tag included, but may be another object: requests under way
    are held in the state database.

    Args:
        batches: Those of the model.
        keep: See `Provider.open`. Also called with answers that nobody asks for now, from batches of earlier sessions.
        budget: See `Provider.open`. Not asked for requests that a batch under way holds.
        open_calls: Opens a session of single calls, for fewer requests than `batch_from`; None makes batches always.
    """

    def __init__(
        self, batches: OpenBatches, keep: Keep, budget: CallBudget, *, open_calls: OpenCalls | None = None
    ) -> None:
        self._open = batches
        self._name = batches.name
        self._settings = batches.settings
        self._keep = keep
        self._budget = budget
        self._open_calls = open_calls
        self._stack = ExitStack()
        self._calls: Session | None = None
        self._wanted: dict[str, list[Tag]] = {}
        self._gathered: dict[str, tuple[BatchEntry, int]] = {}
        self._gathered_bytes = 0
        self._looked = False
        self._ready: deque[Completion] = deque()
        self._claimed: deque[Request] = deque()  # left unanswered by a batch, and asked elsewhere since
        self._reading: Iterator[Completion] | None = None
        self._due: deque[OpenBatch] = deque()
        self._left_over: list[OpenBatch] | None = None
        self._next_poll = 0.0
        self._failures = 0
        self._refusal: ModelError | None = None
        self._cancelled = threading.Event()

    def __enter__(self) -> "BatchSession":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._reading = None
        left = [batch.label for batch in self._open.all() if not batch.digits.isdisjoint(self._wanted)]
        if left:
            _LOG.warning(
                "anthropic: batches continue at the provider: %s. Run the same again to use them; "
                "`rag-assets batches` lists them, `--cancel ID` ends one.",
                ", ".join(left),
            )
        self._stack.close()

    def submit(self, request: Request) -> None:
        if self._cancelled.is_set():
            raise ModelError(f"{self._name}: the session has ended")
        digits = self._digits(request)
        if digits in self._wanted:
            self._wanted[digits].append(request.tag)
            return
        if not self._looked:
            self._looked = True
            with self._open.lock():
                pass  # those that are written down are known now
        if self._open.stands(digits):
            self._wanted[digits] = [request.tag]
            return
        if self._calls is not None:
            self._calls.submit(request)
            self._wanted[digits] = [request.tag]
            return
        self._budget.reserve(request, batch=True)
        self._wanted[digits] = [request.tag]
        self._gather(BatchEntry(digits, request, 1))
        if len(self._gathered) >= self._settings.batch_requests or self._gathered_bytes >= self._settings.body_bytes:
            self._open_calls = None
            try:
                self._create()
            except ModelError as error:
                self._refusal = error
                del self._wanted[digits]
                raise

    def take(self, *, wait: bool) -> Completion | None:
        while True:
            if self._ready:
                return self._ready.popleft()
            if self._claimed:
                raise ClaimedError(self._claimed.popleft())
            if self._reading is not None:
                completion = next(self._reading, None)
                if completion is not None:
                    return completion
                self._reading = None
                continue
            if wait and self._gathered and not self._cancelled.is_set():
                self._send_gathered()
            if self._calls is not None and (answer := self._calls.take(wait=wait)):
                self._take_answer(answer)
                continue
            if self._cancelled.is_set():
                return None
            if not self._waiting():
                if wait and self._refusal:
                    raise self._refusal
                if wait and self._read_left_over():
                    continue
                return None
            if not self._poll(wait=wait):
                return None

    def cancel(self) -> None:
        """Give up what is under way, see `Session`; batches go on at the provider."""
        self._cancelled.set()
        if (calls := self._calls) is not None:
            calls.cancel()

    def _digits(self, request: Request) -> str:
        return key_digits(request_key(self._name, request))

    # Gathering and sending

    def _gather(self, entry: BatchEntry) -> None:
        size = len(json.dumps(self._open.params(entry.request), ensure_ascii=False).encode("utf-8"))
        self._gathered[entry.digits] = entry, size
        self._gathered_bytes += size

    def _gather_again(self, entry: BatchEntry) -> None:
        """Gather a request that was in a batch, whose price is no longer set aside."""
        try:
            self._budget.reserve(entry.request, batch=True)
        except BudgetError as error:
            self._refusal = error
        except ClaimedError:
            self._claimed.extend(replace(entry.request, tag=tag) for tag in self._wanted.pop(entry.digits))
        else:
            self._gather(entry)

    def _ungather(self, digits: str) -> None:
        _, size = self._gathered.pop(digits)
        self._gathered_bytes -= size

    def _send_gathered(self) -> None:
        """Send what was gathered: by single calls, where that was said and it is little, else as batches."""
        if self._refusal:
            return
        if self._open_calls is not None and len(self._gathered) < self._settings.batch_from:
            self._calls = self._stack.enter_context(self._open_calls(self._keep, self._budget))
            if self._cancelled.is_set():
                self._calls.cancel()
        self._open_calls = None
        try:
            if self._calls is not None:
                self._call_gathered(self._calls)
            while self._gathered:
                self._create()
        except ModelError as error:
            self._refusal = error

    def _call_gathered(self, calls: Session) -> None:
        while self._gathered:
            digits, (entry, _) = next(iter(self._gathered.items()))
            try:
                calls.submit(entry.request)
            except BudgetError as error:
                if not error.may_pass or (answer := calls.take(wait=True)) is None:
                    raise
                self._take_answer(answer)
            else:
                self._ungather(digits)

    def _take_answer(self, answer: Completion) -> None:
        self._ready.extend(self._answers(self._digits(answer.request), answer))

    def _create(self) -> None:
        """Send the first of what was gathered as a batch, but for what another process has sent.

        Raises:
            ModelError: The provider takes none.
        """
        with self._open.lock():
            foreign_digits = [digits for digits in self._gathered if self._open.stands(digits)]
            self._budget.release(self._gathered[digits][0].request for digits in foreign_digits)
            for digits in foreign_digits:
                self._ungather(digits)
            entries = self._first_entries()
            if not entries:
                return
            price = sum(upper_price_usd(entry.request, self._open.facts, batch=True) for entry in entries)
            batch = self._open.write(entries, price)
            self._budget.release(entry.request for entry in entries)
            self._open.send(batch, entries)
        for entry in entries:
            self._ungather(entry.digits)
        self._next_poll = time.monotonic() + self._settings.poll_seconds

    def _first_entries(self) -> list[BatchEntry]:
        entries: list[BatchEntry] = []
        total = 0
        for entry, size in islice(self._gathered.values(), self._settings.batch_requests):
            total += size
            if entries and total > self._settings.body_bytes:
                break
            entries.append(entry)
        return entries

    # Waiting and reading

    def _waiting(self) -> bool:
        return any(not batch.digits.isdisjoint(self._wanted) for batch in self._open.all())

    def _poll(self, *, wait: bool) -> bool:
        """Look at the next open batch.

        Returns:
            False where it is not yet time to, and `wait` says not to wait for it.

        Raises:
            ModelError: The provider cannot be reached, or refuses.
        """
        if not self._due:
            pause = self._next_poll - time.monotonic()
            if pause > 0 and not wait:
                return False
            if self._cancelled.wait(max(0.0, pause)):
                return False
            self._next_poll = time.monotonic() + self._settings.poll_seconds
            self._due.extend(self._open.all())
        batch = self._due.popleft()
        if not self._open.holds(batch):
            return True
        try:
            self._look_at(batch)
        except CallError as error:
            self._failed(error)
        else:
            if self._reading is None:
                self._failures = 0
        return True

    def _look_at(self, batch: OpenBatch) -> None:
        if batch.batch_id is None:
            for entry in self._open.settle(batch):
                if entry.digits in self._wanted and not self._open.stands(entry.digits):
                    self._gather_again(entry)
            return
        try:
            has_ended = self._open.has_ended(batch.batch_id)
        except ModelError as error:
            self._refusal = error  # raised when the answers of other batches have been taken
            self._open.drop(batch)
            for digits in batch.digits:
                self._wanted.pop(digits, None)
            return
        if has_ended:
            self._reading = self._read(batch, batch.batch_id)

    def _read_left_over(self) -> bool:
        """Begin to read a batch that nobody here waits for, so that its answers are kept and its price is counted.

        Returns:
            Whether there is one. Each is looked at once.
        """
        if self._left_over is None:
            self._left_over = [batch for batch in self._open.all() if batch.batch_id]
        while self._left_over:
            batch = self._left_over.pop()
            try:
                if self._open.holds(batch) and batch.batch_id and self._open.has_ended(batch.batch_id):
                    self._reading = self._read(batch, batch.batch_id)
                    return True
            except (CallError, ModelError) as error:
                _LOG.info("%s", error)
        return False

    def _failed(self, error: CallError) -> None:
        self._failures += 1
        attempts = self._open.attempts_after(error)
        most_failures = attempts * max(1, len(self._open.all()))
        if error.problem in FINAL or self._failures >= most_failures:
            raise ModelError(f"{error}; batches continue at the provider") from None
        if attempts < self._settings.attempts:
            self._next_poll = min(self._next_poll, time.monotonic() + 1.0)
        _LOG.info("%s; looked at again in %.0f s", error, self._next_poll - time.monotonic())

    def _read(self, batch: OpenBatch, batch_id: str) -> Iterator[Completion]:
        """Answers of a batch that has ended; all are kept, those that were asked for are returned."""
        requests = self._open.requests(batch)
        try:
            with closing(self._open.results(batch_id)) as results:
                for item in results:
                    if item.custom_id in requests and item.custom_id not in batch.seen:
                        batch.seen.add(item.custom_id)
                        yield from self._read_item(batch, batch_id, item, requests[item.custom_id])
        except CallError as error:
            if self._waiting():
                self._failed(error)
            return
        self._failures = 0
        for custom_id in requests.keys() - batch.seen:
            batch.again[custom_id] = "no result"
        self._open.finish(batch)
        for custom_id, reason in batch.again.items():
            yield from self._resend(batch, custom_id, requests[custom_id], reason)

    def _read_item(
        self, batch: OpenBatch, batch_id: str, item: "MessageBatchIndividualResponse", request: Request
    ) -> Iterator[Completion]:
        now = time.time()
        match item.result.type:
            case "succeeded":
                answer = completion_of(request, item.result.message, self._open.facts.prices, batch=True)
                answer = replace(answer, seconds=now - batch.created_at, called_at=now, batch_id=batch_id)
                self._keep([answer])
                yield from self._answers(digits_of(item.custom_id), answer)
            case "errored":
                error = item.result.error.error
                line = error_line(error.type, error.message, request, self._open.api_key)
                if problem_of(error.type) in FINAL:
                    failure = Completion(
                        request, Outcome.FAILED, called_at=now, batch_id=batch_id, error=line, rejected=True
                    )
                    yield from self._answers(digits_of(item.custom_id), failure)
                else:
                    batch.again[item.custom_id] = line
            case reason:
                batch.again[item.custom_id] = reason

    def _resend(self, batch: OpenBatch, custom_id: str, request: Request, reason: str) -> Iterator[Completion]:
        """Have a request sent again that a batch has no answer to and that was not paid for."""
        digits, attempt = digits_of(custom_id), batch.attempts[custom_id]
        if digits not in self._wanted or self._open.stands(digits):
            return
        if attempt < self._settings.attempts:
            self._gather_again(BatchEntry(digits, request, attempt + 1))
            return
        line = f"not answered in {attempt} batches: {reason}"
        failure = Completion(request, Outcome.FAILED, called_at=time.time(), batch_id=batch.batch_id, error=line)
        yield from self._answers(digits, failure)

    def _answers(self, digits: str, answer: Completion) -> Iterator[Completion]:
        """An answer for each time that it was asked for; it was paid for once."""
        for number, tag in enumerate(self._wanted.pop(digits, ())):
            again = replace(answer, request=replace(answer.request, tag=tag))
            yield again if number == 0 else replace(again, usage=Usage(), cost_usd=0.0, stored=True)
