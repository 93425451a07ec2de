"""Message Batches of Anthropic: half the price, and up to a day until the answers come.

Every request is paid for once, whatever happens to this process: a batch is written down before it is sent
(`anthropic_batch_files`), and who asks for the same requests again waits for it instead of sending them.

What stays out: the mapping of requests and answers (`anthropic_messages`).
Source: https://platform.claude.com/docs/en/build-with-claude/batch-processing
"""

import json
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, BinaryIO

from rag_assets.contracts.errors import ModelError
from rag_assets.contracts.generation import Completion, Outcome, Request, Tag, Usage, request_key
from rag_assets.contracts.ports import Session
from rag_assets.models.anthropic_batch_client import BatchClient
from rag_assets.models.anthropic_batch_files import (
    BatchEntry,
    BatchFiles,
    OpenBatch,
    digits_of,
    key_digits,
    read_requests,
)
from rag_assets.models.anthropic_messages import UnsentError, completion_of, error_line, problem_of
from rag_assets.models.catalogue import ModelFacts
from rag_assets.models.providers import CallError, CallProblem, Keep

if TYPE_CHECKING:
    from anthropic import Anthropic
    from anthropic.types.messages import MessageBatchIndividualResponse

_LOG = logging.getLogger(__name__)

_LONGEST_PAUSE_SECONDS = 60.0
_FINAL = {CallProblem.DENIED, CallProblem.REJECTED}
_NOT_MADE = {CallProblem.DENIED, CallProblem.REJECTED, CallProblem.RATE_LIMITED}


@dataclass(frozen=True)
class BatchSettings:
    """How batches are made.

    Attributes:
        folder: Folder that remembers batches under way.
        batch_from: Requests from which a batch is made, where single calls are an alternative.
        batch_requests: Requests of a batch at most.
        poll_seconds: Seconds between two looks at batches under way.
        attempts: Attempts at a request before it counts as failed, and at a call to the provider before it counts as
            unreachable.
        body_bytes: Size of a batch at most; the provider takes 256 MB.
        settle_seconds: Seconds after which a batch whose creation was not confirmed would be in the provider's list.
    """

    folder: Path
    batch_from: int
    batch_requests: int
    poll_seconds: float
    attempts: int
    body_bytes: int = 240_000_000
    settle_seconds: float = 60.0


class _Found(Enum):
    """Whether the provider has a batch whose creation was not confirmed."""

    ADOPTED = auto()
    PERHAPS = auto()  # one under way may be it
    ABSENT = auto()


@dataclass
class _Batch:
    """An open batch as this session sees it.

    Attributes:
        open: What is written down.
        intent: The file that holds its requests.
        batch_id: The provider's id, once known.
        digits: Of the keys of its requests.
        seen: Custom ids whose results have been read.
        again: Why requests have no answer that was paid for, by custom id.
    """

    open: OpenBatch
    intent: BinaryIO
    batch_id: str | None
    digits: frozenset[str]
    seen: set[str] = field(default_factory=set)
    again: dict[str, str] = field(default_factory=dict)

    @property
    def label(self) -> str:
        return self.batch_id or self.open.nonce


class BatchSession:
    """Requests under way in batches; see `Session`. For one thread; leaving it leaves the batches running.

    The request of a completion equals the one submitted, tag included, but may be another object: requests under way
    are held on disk.

    Args:
        client: Client of the provider that makes one attempt a call.
        name: Provider and model, see `Provider`; answers of batches under way are used for it only.
        model: Name of the model at the provider.
        facts: Its limits and prices.
        settings: How batches are made.
        keep: See `Provider.open`. Also called with answers that nobody asks for now, from batches of earlier sessions.
        open_calls: Opens a session of single calls, for fewer requests than `batch_from`; None makes batches always.
    """

    def __init__(
        self,
        client: "Anthropic",
        name: str,
        model: str,
        facts: ModelFacts,
        settings: BatchSettings,
        keep: Keep,
        *,
        open_calls: Callable[[Keep], AbstractContextManager[Session]] | None = None,
    ) -> None:
        self._client = BatchClient(client, model, facts)
        self._name = name
        self._prices = facts.prices
        self._settings = settings
        self._keep = keep
        self._open_calls = open_calls
        self._files = BatchFiles(settings.folder)
        self._stack = ExitStack()
        self._calls: Session | None = None
        self._wanted: dict[str, list[Tag]] = {}
        self._gathered: dict[str, tuple[BatchEntry, int]] = {}
        self._gathered_bytes = 0
        self._batches: dict[str, _Batch] = {}
        self._nonces: dict[str, str] = {}
        self._done: set[str] = set()
        self._looked = False
        self._ready: deque[Completion] = deque()
        self._reading: Iterator[Completion] | None = None
        self._due: deque[_Batch] = deque()
        self._next_poll = 0.0
        self._failures = 0
        self._refusal: ModelError | None = None
        self._pause = threading.Event()

    def __enter__(self) -> "BatchSession":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._reading = None
        left = [batch.label for batch in self._batches.values() if not batch.digits.isdisjoint(self._wanted)]
        if left:
            _LOG.warning(
                "anthropic: batches go on at the provider: %s. The same work started again uses their results; "
                "`rag-assets batches` lists them, and `rag-assets batches --cancel ID` ends one.",
                ", ".join(left),
            )
        for batch in self._batches.values():
            batch.intent.close()
        self._stack.close()

    def submit(self, request: Request) -> None:
        digits = self._digits(request)
        if digits in self._wanted:
            self._wanted[digits].append(request.tag)
            return
        if not self._looked:
            with self._files.lock():
                self._look()
        self._wanted[digits] = [request.tag]
        if self._stands(digits):
            return
        if self._calls is not None:
            try:
                self._calls.submit(request)
            except ModelError:
                del self._wanted[digits]
                raise
            return
        self._gather(BatchEntry(digits, request, 1))
        if len(self._gathered) >= self._settings.batch_requests or self._gathered_bytes >= self._settings.body_bytes:
            self._open_calls = None
            self._create()

    def take(self, *, wait: bool) -> Completion | None:
        while True:
            if self._ready:
                return self._ready.popleft()
            if self._reading is not None:
                completion = next(self._reading, None)
                if completion is not None:
                    return completion
                self._reading = None
                continue
            if wait and self._gathered:
                self._send_gathered()
            if self._calls is not None and (called := self._calls.take(wait=wait)):
                self._ready.extend(self._answers(self._digits(called.request), called))
                continue
            if not self._waiting():
                if wait and self._refusal:
                    raise self._refusal
                return None
            if not self._poll(wait=wait):
                return None

    def _digits(self, request: Request) -> str:
        return key_digits(request_key(self._name, request))

    # Gathering and sending

    def _gather(self, entry: BatchEntry) -> None:
        size = len(json.dumps(self._client.params(entry.request), ensure_ascii=False).encode("utf-8"))
        self._gathered[entry.digits] = entry, size
        self._gathered_bytes += size

    def _send_gathered(self) -> None:
        """Send what was gathered: by single calls, where that was said and it is little, else as batches."""
        if self._refusal:
            return
        if self._open_calls is not None and len(self._gathered) < self._settings.batch_from:
            self._calls = self._stack.enter_context(self._open_calls(self._keep))
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
            calls.submit(entry.request)
            self._ungather(digits)

    def _ungather(self, digits: str) -> None:
        _, size = self._gathered.pop(digits)
        self._gathered_bytes -= size

    def _look(self) -> None:
        """Take note of batches that are written down; only under the lock."""
        self._looked = True
        self._files.tidy()
        for found in self._files.open_batches(self._batches.keys() | self._done):
            if (found.model_name, found.base_url) == (self._name, self._client.base_url):
                self._add(found)

    def _add(self, found: OpenBatch) -> _Batch:
        digits = frozenset(map(digits_of, found.attempts))
        batch = _Batch(found, self._files.hold(found.nonce), found.batch_id, digits)
        self._batches[found.nonce] = batch
        return batch

    def _stands(self, digits: str) -> bool:
        return any(digits in batch.digits for batch in self._batches.values())

    def _create(self) -> None:
        """Send the first of what was gathered as a batch, but for what another process has sent.

        Raises:
            ModelError: The provider takes none.
        """
        with self._files.lock():
            self._look()
            for digits in [digits for digits in self._gathered if self._stands(digits)]:
                self._ungather(digits)
            entries = self._first_entries()
            if not entries:
                return
            batch = self._add(self._files.write(self._name, self._client.base_url, entries))
            try:
                self._send(batch, entries)
            except ModelError:
                self._drop(batch)
                raise
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

    def _send(self, batch: _Batch, entries: list[BatchEntry]) -> None:
        """Have the provider make a batch, or find that it did so unnoticed.

        Raises:
            ModelError: It did not. What is written down stays where that is not certain.
        """
        for attempt in range(1, self._settings.attempts + 1):
            self._files.touch(batch.open.nonce)
            try:
                made = self._client.create(batch.open, entries)
            except CallError as error:
                certain = error.problem in _NOT_MADE or isinstance(error, UnsentError)
                if error.problem in _FINAL or attempt == self._settings.attempts:
                    if certain:
                        self._files.remove(batch.open.nonce)
                    raise ModelError(f"{error}; a batch of {len(entries)} requests was not made") from None
                pause = error.retry_after_seconds or min(_LONGEST_PAUSE_SECONDS, 2.0**attempt / 2)
                self._pause.wait(pause if certain else max(pause, self._settings.settle_seconds))
                if not certain and self._may_be_made(batch):
                    return
            else:
                self._adopt(batch, made)
                _LOG.info("anthropic: batch %s made, requests: %d", made, len(entries))
                return

    def _adopt(self, batch: _Batch, batch_id: str) -> None:
        self._files.write_id(batch.open.nonce, batch_id)
        batch.batch_id = batch_id

    def _drop(self, batch: _Batch) -> None:
        del self._batches[batch.open.nonce]
        batch.intent.close()

    # Batches whose creation was not confirmed

    def _may_be_made(self, batch: _Batch) -> bool:
        try:
            return self._search(batch) is not _Found.ABSENT
        except CallError:
            return True

    def _search(self, batch: _Batch) -> _Found:
        """Look for a batch at the provider; its results tell whose it is, and there are none before it has ended."""
        taken = self._files.ids()
        found = _Found.ABSENT
        for listed in self._client.like(batch.open):
            if listed.id in taken:
                continue
            if listed.processing_status != "ended":
                found = _Found.PERHAPS
            elif listed.archived_at is None and self._nonce(listed.id) == batch.open.nonce:
                self._adopt(batch, listed.id)
                return _Found.ADOPTED
        return found

    def _nonce(self, batch_id: str) -> str:
        if batch_id not in self._nonces:
            self._nonces[batch_id] = self._client.nonce(batch_id)
        return self._nonces[batch_id]

    def _settle(self, batch: _Batch) -> None:
        """Find out whether a batch was made; where it was not, its requests are sent again."""
        if batch_id := self._files.read_id(batch.open.nonce):
            batch.batch_id = batch_id
            return
        if (
            self._search(batch) is not _Found.ABSENT
            or time.time() < batch.open.created_at + self._settings.settle_seconds
        ):
            return
        with self._files.lock():
            if self._files.read_id(batch.open.nonce):
                return
            requests = dict(read_requests(batch.intent))
            self._finish(batch)
        for custom_id, attempt in batch.open.attempts.items():
            if digits_of(custom_id) in self._wanted and not self._stands(digits_of(custom_id)):
                self._gather(BatchEntry(digits_of(custom_id), requests[custom_id], attempt))

    # Waiting and reading

    def _waiting(self) -> bool:
        return any(not batch.digits.isdisjoint(self._wanted) for batch in self._batches.values())

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
            self._pause.wait(max(0.0, pause))
            self._next_poll = time.monotonic() + self._settings.poll_seconds
            self._due.extend(self._batches.values())
        batch = self._due.popleft()
        if batch.open.nonce not in self._batches:
            return True
        try:
            self._look_at(batch)
        except CallError as error:
            self._failed(error)
        else:
            if self._reading is None:
                self._failures = 0
        return True

    def _look_at(self, batch: _Batch) -> None:
        if batch.batch_id is None:
            self._settle(batch)
            return
        try:
            ended = self._client.has_ended(batch.batch_id)
        except ModelError as error:
            self._refusal = error  # raised when the answers of other batches have been taken
            self._done.add(batch.open.nonce)
            self._drop(batch)
            for digits in batch.digits:
                self._wanted.pop(digits, None)
            return
        if ended:
            self._reading = self._read(batch, batch.batch_id)

    def _failed(self, error: CallError) -> None:
        self._failures += 1
        enough = self._settings.attempts * max(1, len(self._batches))
        if error.problem in _FINAL or self._failures >= enough:
            raise ModelError(f"{error}; batches go on at the provider") from None
        _LOG.info("%s; looked at again in %g s", error, self._settings.poll_seconds)

    def _read(self, batch: _Batch, batch_id: str) -> Iterator[Completion]:
        """Answers of a batch that has ended; all are kept, those that were asked for are returned."""
        requests = dict(read_requests(batch.intent))
        try:
            with closing(self._client.results(batch_id)) as results:
                for item in results:
                    if item.custom_id in requests and item.custom_id not in batch.seen:
                        batch.seen.add(item.custom_id)
                        yield from self._read_item(batch, batch_id, item, requests[item.custom_id])
        except CallError as error:
            self._failed(error)
            return
        self._failures = 0
        for custom_id in requests.keys() - batch.seen:
            batch.again[custom_id] = "no result"
        self._finish(batch)
        for custom_id, reason in batch.again.items():
            yield from self._again(batch, custom_id, requests[custom_id], reason)

    def _read_item(
        self, batch: _Batch, batch_id: str, item: "MessageBatchIndividualResponse", request: Request
    ) -> Iterator[Completion]:
        now = time.time()
        match item.result.type:
            case "succeeded":
                answer = completion_of(request, item.result.message, self._prices, batch=True)
                answer = replace(answer, seconds=now - batch.open.created_at, called_at=now, batch_id=batch_id)
                self._keep(answer)
                yield from self._answers(digits_of(item.custom_id), answer)
            case "errored":
                error = item.result.error.error
                line = error_line(error.type, error.message, request, self._client.api_key)
                if problem_of(error.type) in _FINAL:
                    failed = Completion(
                        request, Outcome.FAILED, called_at=now, batch_id=batch_id, error=line, rejected=True
                    )
                    yield from self._answers(digits_of(item.custom_id), failed)
                else:
                    batch.again[item.custom_id] = line
            case reason:
                batch.again[item.custom_id] = reason

    def _again(self, batch: _Batch, custom_id: str, request: Request, reason: str) -> Iterator[Completion]:
        """Have a request sent again that a batch has no answer to and that was not paid for."""
        digits, attempt = digits_of(custom_id), batch.open.attempts[custom_id]
        if digits not in self._wanted or self._stands(digits):
            return
        if attempt < self._settings.attempts:
            self._gather(BatchEntry(digits, request, attempt + 1))
            return
        line = f"not answered in {attempt} batches: {reason}"
        failed = Completion(request, Outcome.FAILED, called_at=time.time(), batch_id=batch.batch_id, error=line)
        yield from self._answers(digits, failed)

    def _answers(self, digits: str, answer: Completion) -> Iterator[Completion]:
        """An answer for each time that it was asked for; it was paid for once."""
        for number, tag in enumerate(self._wanted.pop(digits, ())):
            again = replace(answer, request=replace(answer.request, tag=tag))
            yield again if number == 0 else replace(again, usage=Usage(), cost_usd=0.0, stored=True)

    def _finish(self, batch: _Batch) -> None:
        """Forget a batch of which everything has been kept."""
        self._drop(batch)
        self._done.add(batch.open.nonce)
        self._files.remove(batch.open.nonce)
