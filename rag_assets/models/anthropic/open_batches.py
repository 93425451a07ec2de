"""Batches under way as one session sees them: made, taken over from other processes, looked at, read, forgotten.

Which requests go into them, and what becomes of their results, is `batches`; what is remembered of them, `batch_store`.
Source: https://platform.claude.com/docs/en/build-with-claude/batch-processing
"""

import logging
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, cast

from rag_assets.contracts.errors import ModelError
from rag_assets.contracts.generation import Request
from rag_assets.models.accounts.database import StateDatabase
from rag_assets.models.anthropic.batch_store import BatchEntry, BatchStore, OpenBatch, digits_of
from rag_assets.models.anthropic.messages import (
    UnsentError,
    call_errors,
    message_params,
    open_client,
    sampling,
    version_headers,
)
from rag_assets.models.catalogue import ModelFacts
from rag_assets.models.providers import CallError, CallProblem

if TYPE_CHECKING:
    from anthropic import Anthropic
    from anthropic.types.messages import MessageBatch, MessageBatchIndividualResponse
    from anthropic.types.messages.batch_create_params import Request as BatchRequest

_LOG = logging.getLogger(__name__)

_TRANSFER_SECONDS = 600.0  # a batch of 256 MB may take the provider longer than a single answer
_PAGE = 100
_CLOCK_SKEW = timedelta(hours=1)
_LONGEST_PAUSE_SECONDS = 60.0
_LONGEST_ASKED_SECONDS = 300.0  # what of a wait is heeded that the provider asks for
_DESERTED_ATTEMPTS = 3  # at a provider that has never answered, and at whose address nobody listens
FINAL = {CallProblem.DENIED, CallProblem.REJECTED}
_NOT_MADE = FINAL | {CallProblem.RATE_LIMITED}


@dataclass(frozen=True)
class BatchSettings:
    """How batches are made.

    Attributes:
        database: Remembers batches under way.
        batch_from: Requests from which a batch is made, where single calls are an alternative.
        batch_requests: Requests of a batch at most.
        poll_seconds: Seconds between two looks at batches under way.
        attempts: Attempts at a request before it counts as failed, and at a call to the provider before it counts as
            unreachable.
        body_bytes: Size of a batch at most; the provider takes 256 MB.
        settle_seconds: Seconds after which a batch whose creation was not confirmed would be in the provider's list.
    """

    database: StateDatabase
    batch_from: int
    batch_requests: int
    poll_seconds: float
    attempts: int
    body_bytes: int = 240_000_000
    settle_seconds: float = 60.0


class OpenBatches:
    """The open batches of one model; for one thread. Methods that ask the provider raise `CallError`."""

    def __init__(self, client: "Anthropic", name: str, model: str, facts: ModelFacts, settings: BatchSettings) -> None:
        self.name = name
        self.facts = facts
        self.settings = settings
        self._client = client
        self._model = model
        self._base_url = str(client.base_url).rstrip("/")
        self._store = BatchStore(settings.database)
        self._batches: dict[str, OpenBatch] = {}
        self._done: set[str] = set()
        self._nonces: dict[str, str] = {}
        self._reached = False

    @property
    def api_key(self) -> str | None:
        """The key that is sent, which no message may hold."""
        return self._client.api_key

    def all(self) -> list[OpenBatch]:
        """Those that are open now."""
        return list(self._batches.values())

    def holds(self, batch: OpenBatch) -> bool:
        """Whether a batch is still open."""
        return batch.nonce in self._batches

    def stands(self, digits: str) -> bool:
        """Whether a request is in one of them."""
        return any(digits in batch.digits for batch in self._batches.values())

    def requests(self, batch: OpenBatch) -> dict[str, Request]:
        """Requests of a batch, by custom id."""
        return self._store.requests(batch.nonce)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Take note of batches that are written down; meanwhile no other process writes a new one down."""
        with self._store.lock():
            for batch in self._store.open_batches(self._batches.keys() | self._done):
                if batch.lost:
                    self._store.remove(batch.nonce)
                elif (batch.model_name, batch.base_url) == (self.name, self._base_url):
                    self._batches[batch.nonce] = batch
            yield

    def write(self, entries: Sequence[BatchEntry], price_usd: float) -> OpenBatch:
        """Write a batch down that is to be sent, and the most that it may cost; only under the lock."""
        batch = self._store.write(self.name, self._base_url, entries, price_usd)
        self._batches[batch.nonce] = batch
        return batch

    def send(self, batch: OpenBatch, entries: Sequence[BatchEntry]) -> None:
        """Have the provider make a batch that is written down, or find that it did so unnoticed.

        Raises:
            ModelError: It did not, or that is not certain; then what is written down stays, and is found by the next
                process that takes the lock.
        """
        for attempt in range(1, self.settings.attempts + 1):
            try:
                batch_id = self._create(batch, entries)
            except CallError as error:
                certain = error.problem in _NOT_MADE or isinstance(error, UnsentError)
                if error.problem in FINAL or attempt >= self.attempts_after(error):
                    if certain:
                        self._store.remove(batch.nonce)
                    del self._batches[batch.nonce]
                    raise ModelError(f"{error}; a batch of {len(entries)} requests was not made") from None
                asked = min(error.retry_after_seconds or 0.0, _LONGEST_ASKED_SECONDS)
                pause = asked or min(_LONGEST_PAUSE_SECONDS, 2.0**attempt / 2)
                time.sleep(pause if certain else max(pause, self.settings.settle_seconds))
                if not certain and self._may_be_made(batch):
                    return
            else:
                self._adopt(batch, batch_id)
                _LOG.info("anthropic: batch %s made, requests: %d", batch_id, len(entries))
                return

    def settle(self, batch: OpenBatch) -> list[BatchEntry]:
        """Find out whether a batch was made whose creation was not confirmed.

        Returns:
            Its requests where it was not, and is forgotten; nothing where it was, or may have been.
        """
        if batch_id := self._store.read_id(batch.nonce):
            batch.batch_id = batch_id
            return []
        if self._is_listed(batch) or time.time() < batch.created_at + self.settings.settle_seconds:
            return []
        with self._store.lock():
            if self._store.read_id(batch.nonce):
                return []
            requests = self.requests(batch)
            self.finish(batch)
        return [BatchEntry(digits_of(name), requests[name], attempt) for name, attempt in batch.attempts.items()]

    def drop(self, batch: OpenBatch) -> None:
        """Have no more to do with a batch in this session; what is written down stays."""
        del self._batches[batch.nonce]
        self._done.add(batch.nonce)

    def finish(self, batch: OpenBatch) -> None:
        """Forget a batch of which everything has been kept."""
        self.drop(batch)
        self._store.remove(batch.nonce)

    # At the provider

    def attempts_after(self, error: CallError) -> int:
        """Attempts at the provider after an error, of the number that the settings allow."""
        deserted = error.problem is CallProblem.UNREACHABLE and not self._reached
        return min(self.settings.attempts, _DESERTED_ATTEMPTS) if deserted else self.settings.attempts

    def params(self, request: Request) -> dict[str, object]:
        """What a batch holds for a request."""
        return {**message_params(self._model, self.facts, request), **sampling(request)}

    def has_ended(self, batch_id: str) -> bool:
        """Whether the results of a batch can be read.

        Raises:
            ModelError: The account has no such batch.
        """
        from anthropic import NotFoundError

        with self._calling():
            try:
                return self._client.messages.batches.retrieve(batch_id).processing_status == "ended"
            except NotFoundError:
                raise ModelError(
                    f"anthropic: batch {batch_id} is not known to this account; "
                    f"`rag-assets batches --cancel {batch_id}` forgets it"
                ) from None

    def results(self, batch_id: str) -> "Generator[MessageBatchIndividualResponse, None, None]":
        """Results of a batch that has ended, in any order, as they are read from the connection."""
        with (
            call_errors(self._client, transfer_seconds=_TRANSFER_SECONDS),
            closing(self._client.messages.batches.results(batch_id, timeout=_TRANSFER_SECONDS)) as results,
        ):
            yield from results

    @contextmanager
    def _calling(self, transfer_seconds: float | None = None) -> Iterator[None]:
        with call_errors(self._client, transfer_seconds=transfer_seconds):
            yield
        self._reached = True

    def _create(self, batch: OpenBatch, entries: Sequence[BatchEntry]) -> str:
        """Have a batch made; the provider's id of it."""
        requests = [
            {"custom_id": custom_id, "params": self.params(entry.request)}
            for custom_id, entry in zip(batch.attempts, entries, strict=True)
        ]
        temperature = any(entry.request.temperature is not None for entry in entries)
        with self._calling(_TRANSFER_SECONDS):
            created = self._client.messages.batches.create(
                requests=cast("list[BatchRequest]", requests),
                extra_headers=version_headers(temperature=temperature),
                timeout=_TRANSFER_SECONDS,
            )
        return created.id

    def _adopt(self, batch: OpenBatch, batch_id: str) -> None:
        self._store.write_id(batch.nonce, batch_id)
        batch.batch_id = batch_id

    def _may_be_made(self, batch: OpenBatch) -> bool:
        try:
            return self._is_listed(batch)
        except CallError:
            return True

    def _is_listed(self, batch: OpenBatch) -> bool:
        """Whether the provider has a batch without a known id, or one under way that may be it.

        Its results tell whose a batch is, and there are none before it has ended; one that is found is adopted.
        """
        taken = self._store.ids()
        may_be_listed = False
        for listed in self._like(batch):
            if listed.id in taken:
                continue
            if listed.processing_status != "ended":
                may_be_listed = True
            elif listed.archived_at is None and self._nonce(listed.id) == batch.nonce:
                self._adopt(batch, listed.id)
                return True
        return may_be_listed

    def _like(self, batch: OpenBatch) -> "Iterator[MessageBatch]":
        """Batches that were made since one was written down, and have as many requests."""
        since = datetime.fromtimestamp(batch.created_at, UTC) - _CLOCK_SKEW
        with self._calling():
            for listed in self._client.messages.batches.list(limit=_PAGE):  # the newest come first
                if listed.created_at < since:
                    return
                counts = listed.request_counts
                total = counts.processing + counts.succeeded + counts.errored + counts.canceled + counts.expired
                if total == batch.requests:
                    yield listed

    def _nonce(self, batch_id: str) -> str:
        """What the custom ids of a batch that has ended begin with; of others' batches anything."""
        if batch_id not in self._nonces:
            with closing(self.results(batch_id)) as results:
                first = next(results, None)
            self._nonces[batch_id] = first.custom_id.partition("-")[0] if first else ""
        return self._nonces[batch_id]


def cancel_batch(
    database: StateDatabase, batch_id: str, *, api_key: str | None, base_url: str, timeout_seconds: float
) -> str:
    """End a batch. Answers that it has by then are paid for, and kept when the same work is started again.

    Args:
        database: Remembers batches under way.
        batch_id: The provider's id, or the nonce of a batch of which no id is known; that one is only forgotten.
        api_key: See `open_client`, as of the others.
        base_url: Address of the server.
        timeout_seconds: Seconds that the call may take.

    Returns:
        The state of the batch: `canceling`, `ended`, or `forgotten` where the provider does not know it.

    Raises:
        ModelError: The provider cannot be reached, or refuses.
        SettingsError: There is no key.
    """
    from anthropic import NotFoundError

    store = BatchStore(database)
    nonces = {batch.label: batch.nonce for batch in store.open_batches()}
    if nonces.get(batch_id) == batch_id:
        store.remove(batch_id)
        return "forgotten"
    client = open_client(api_key, base_url, timeout_seconds)
    try:
        with call_errors(client):
            try:
                state: str = client.messages.batches.cancel(batch_id).processing_status
            except NotFoundError:
                if batch_id not in nonces:
                    raise
                store.remove(nonces[batch_id])
                state = "forgotten"
    except CallError as error:
        raise ModelError(f"{error}; batch {batch_id} was not ended") from None
    return state
