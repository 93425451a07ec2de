"""Batches under way as one session sees them: made, taken over from other processes, found again, forgotten.

What stays out: which requests go into them and what becomes of their results (`batches`), and what is remembered
(`batch_store`).
"""

import logging
import threading
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import Enum, auto

from rag_assets.contracts.errors import ModelError
from rag_assets.contracts.generation import Request
from rag_assets.models.accounts.database import StateDatabase
from rag_assets.models.anthropic.batch_client import BatchClient
from rag_assets.models.anthropic.batch_store import BatchEntry, BatchStore, OpenBatch, digits_of
from rag_assets.models.anthropic.messages import UnsentError
from rag_assets.models.providers import CallError, CallProblem

_LOG = logging.getLogger(__name__)

_LONGEST_PAUSE_SECONDS = 60.0
_LONGEST_ASKED_SECONDS = 300.0  # what of a wait is heeded that the provider asks for
_DESERTED_ATTEMPTS = 3  # at a provider that has never answered, and at whose address nobody listens
_FINAL = {CallProblem.DENIED, CallProblem.REJECTED}
_NOT_MADE = {CallProblem.DENIED, CallProblem.REJECTED, CallProblem.RATE_LIMITED}


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


class _Found(Enum):
    """Whether the provider has a batch whose creation was not confirmed."""

    ADOPTED = auto()
    PERHAPS = auto()  # one under way may be it
    ABSENT = auto()


@dataclass
class Batch:
    """An open batch as this session sees it.

    Attributes:
        open: What is written down.
        batch_id: The provider's id, once known.
        digits: Of the keys of its requests.
        seen: Custom ids whose results have been read.
        again: Why requests have no answer that was paid for, by custom id.
    """

    open: OpenBatch
    batch_id: str | None
    digits: frozenset[str]
    seen: set[str] = field(default_factory=set)
    again: dict[str, str] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """What to call it: the provider's id, or the nonce."""
        return self.batch_id or self.open.nonce


def attempts_at(client: BatchClient, error: CallError, attempts: int) -> int:
    """Attempts at a provider after an error, of the number that the settings allow."""
    deserted = error.problem is CallProblem.UNREACHABLE and not client.reached
    return min(attempts, _DESERTED_ATTEMPTS) if deserted else attempts


class OpenBatches:
    """The open batches of one model; for one thread.

    Args:
        client: The provider.
        model_name: Provider and model; batches of others are left alone.
        settings: How batches are made.
    """

    def __init__(self, client: BatchClient, model_name: str, settings: BatchSettings) -> None:
        self._client = client
        self._model_name = model_name
        self._settings = settings
        self._store = BatchStore(settings.database)
        self._batches: dict[str, Batch] = {}
        self._done: set[str] = set()
        self._nonces: dict[str, str] = {}
        self._pause = threading.Event()

    def all(self) -> list[Batch]:
        """Those that are open now."""
        return list(self._batches.values())

    def holds(self, batch: Batch) -> bool:
        """Whether a batch is still open."""
        return batch.open.nonce in self._batches

    def stands(self, digits: str) -> bool:
        """Whether a request is in one of them."""
        return any(digits in batch.digits for batch in self._batches.values())

    def requests(self, batch: Batch) -> dict[str, Request]:
        """Requests of a batch, by custom id."""
        return self._store.requests(batch.open.nonce)

    def lock(self) -> AbstractContextManager[object]:
        """Held from looking for batches until a new one is written down."""
        return self._store.lock()

    def look(self) -> None:
        """Take note of batches that are written down; only under the lock."""
        for found in self._store.open_batches(self._batches.keys() | self._done):
            if found.lost:
                self._store.remove(found.nonce)
            elif (found.model_name, found.base_url) == (self._model_name, self._client.base_url):
                self._add(found)

    def write(self, entries: Sequence[BatchEntry], price_usd: float) -> Batch:
        """Write a batch down that is to be sent; only under the lock.

        Args:
            entries: Its requests.
            price_usd: The most that it may cost.
        """
        return self._add(self._store.write(self._model_name, self._client.base_url, entries, price_usd))

    def send(self, batch: Batch, entries: Sequence[BatchEntry]) -> None:
        """Have the provider make a batch that is written down, or find that it did so unnoticed.

        Raises:
            ModelError: It did not, or that is not certain; then what is written down stays, and is found by the next
                `look`.
        """
        for attempt in range(1, self._settings.attempts + 1):
            try:
                made = self._client.create(batch.open, entries)
            except CallError as error:
                certain = error.problem in _NOT_MADE or isinstance(error, UnsentError)
                if error.problem in _FINAL or attempt >= attempts_at(self._client, error, self._settings.attempts):
                    if certain:
                        self._store.remove(batch.open.nonce)
                    self._let_go(batch)
                    raise ModelError(f"{error}; a batch of {len(entries)} requests was not made") from None
                asked = min(error.retry_after_seconds or 0.0, _LONGEST_ASKED_SECONDS)
                pause = asked or min(_LONGEST_PAUSE_SECONDS, 2.0**attempt / 2)
                self._pause.wait(pause if certain else max(pause, self._settings.settle_seconds))
                if not certain and self._may_be_made(batch):
                    return
            else:
                self._adopt(batch, made)
                _LOG.info("anthropic: batch %s made, requests: %d", made, len(entries))
                return

    def settle(self, batch: Batch) -> list[BatchEntry]:
        """Find out whether a batch was made whose creation was not confirmed.

        Returns:
            Its requests where it was not, and is forgotten; nothing where it was, or may have been.
        """
        if batch_id := self._store.read_id(batch.open.nonce):
            batch.batch_id = batch_id
            return []
        if (
            self._search(batch) is not _Found.ABSENT
            or time.time() < batch.open.created_at + self._settings.settle_seconds
        ):
            return []
        with self._store.lock():
            if self._store.read_id(batch.open.nonce):
                return []
            requests = self.requests(batch)
            self.finish(batch)
        attempts = batch.open.attempts.items()
        return [BatchEntry(digits_of(custom_id), requests[custom_id], attempt) for custom_id, attempt in attempts]

    def drop(self, batch: Batch) -> None:
        """Have no more to do with a batch in this session; what is written down stays."""
        self._let_go(batch)
        self._done.add(batch.open.nonce)

    def finish(self, batch: Batch) -> None:
        """Forget a batch of which everything has been kept."""
        self.drop(batch)
        self._store.remove(batch.open.nonce)

    def _let_go(self, batch: Batch) -> None:
        del self._batches[batch.open.nonce]

    def _add(self, found: OpenBatch) -> Batch:
        digits = frozenset(map(digits_of, found.attempts))
        batch = Batch(found, found.batch_id, digits)
        self._batches[found.nonce] = batch
        return batch

    def _adopt(self, batch: Batch, batch_id: str) -> None:
        self._store.write_id(batch.open.nonce, batch_id)
        batch.batch_id = batch_id

    def _may_be_made(self, batch: Batch) -> bool:
        try:
            return self._search(batch) is not _Found.ABSENT
        except CallError:
            return True

    def _search(self, batch: Batch) -> _Found:
        """Look for a batch at the provider; its results tell whose it is, and there are none before it has ended."""
        taken = self._store.ids()
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
