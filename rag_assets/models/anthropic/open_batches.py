"""Batches under way: remembered, so that answers which are paid for outlast the process that asked; made, taken over
from other processes, looked at, read, forgotten.

A batch is written into the state database with its requests before the provider hears of it, and its id there right
after. A batch without an id means that its process died in between, or that the call got lost: whether there is such a
batch can then only be asked of the provider. With the requests stands what they may cost, so that a budget counts a
batch from the moment before it is sent until its results have been read. One that was read stays for a while, as other
processes may be waiting for it, too.

Which requests go into them, and what becomes of their results, is `batches`.
Source: https://platform.claude.com/docs/en/build-with-claude/batch-processing (results can be had for 29 days)
"""

import json
import logging
import secrets
import time
import zlib
from collections import defaultdict
from collections.abc import Collection, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import sqlalchemy as sa

from rag_assets.contracts.errors import ModelError
from rag_assets.contracts.generation import Message, Request, Tag
from rag_assets.models.accounts.budget import BATCH_RESULTS_SECONDS
from rag_assets.models.accounts.database import StateDatabase
from rag_assets.models.accounts.schema import BATCH_REQUESTS, BATCHES
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
_DIGITS = 40
_FINISHED_SECONDS = 2 * 86_400.0  # that a batch stays which was read; batches end within a day
_BATCH_COLUMNS = [column for column in BATCHES.columns if column is not BATCHES.c.finished_at]
_OF_NONCE = BATCHES.c.nonce == sa.bindparam("batch")


@dataclass
class OpenBatch:
    """A batch whose results have not been read to the end."""

    nonce: str  # begins the custom ids of its requests
    model_name: str  # provider and model
    base_url: str  # server that it was sent to
    created_at: float  # when it was about to be sent, seconds since 1970 UTC
    batch_id: str | None  # the provider's id; None where it is not known whether the provider has it
    attempts: dict[str, int]  # which attempt it is for each request, by custom id
    price_usd: float  # the most that it may cost
    seen: set[str] = field(default_factory=set)  # custom ids whose results a session has read
    again: dict[str, str] = field(default_factory=dict)  # why requests have no answer that was paid for, by custom id

    @property
    def label(self) -> str:
        """What to call it: the provider's id, or the nonce."""
        return self.batch_id or self.nonce

    @cached_property
    def digits(self) -> frozenset[str]:
        """What its custom ids hold of the keys of its requests."""
        return frozenset(map(digits_of, self.attempts))

    @property
    def lost(self) -> bool:
        """Whether its results can no longer be had."""
        return time.time() > self.created_at + BATCH_RESULTS_SECONDS

    @property
    def requests(self) -> int:
        """Number of its requests."""
        return len(self.attempts)


@dataclass(frozen=True)
class BatchEntry:
    """One request of a batch to be sent: its `key_digits`, and which attempt it is, from 1."""

    digits: str
    request: Request
    attempt: int


def key_digits(key: str) -> str:
    """The part of a request's key that stands in its custom id."""
    return key[:_DIGITS]


def digits_of(custom_id: str) -> str:
    """The part of the key that a custom id holds."""
    return custom_id.partition("-")[2]


class BatchStore:
    """Batches under way in the state database; methods raise `StoreError` where it does not work."""

    def __init__(self, database: StateDatabase) -> None:
        self._database = database

    def lock(self) -> AbstractContextManager[object]:
        """Held by whoever looks for open batches and sends new ones."""
        return self._database.lease("batches")

    def write(self, model_name: str, base_url: str, entries: Iterable[BatchEntry], price_usd: float) -> OpenBatch:
        """Write a batch down that is to be sent; it is on the disk when this returns. See `OpenBatch`."""
        nonce = secrets.token_hex(6)
        entries = list(entries)
        attempts = {f"{nonce}-{entry.digits}": entry.attempt for entry in entries}
        batch = OpenBatch(nonce, model_name, base_url, time.time(), None, attempts, price_usd)
        rows = [
            {
                "nonce": nonce,
                "digits": entry.digits,
                "position": position,
                "attempt": entry.attempt,
                "request": zlib.compress(json.dumps(asdict(replace(entry.request, progress=None))).encode(), 3),
            }
            for position, entry in enumerate(entries)
        ]
        with self._database.transaction(durable=True) as connection:
            values = {column.name: getattr(batch, column.name, None) for column in BATCHES.columns}
            connection.execute(self._database.insert(BATCHES), values)
            connection.execute(self._database.insert(BATCH_REQUESTS), rows)
        return batch

    def write_id(self, nonce: str, batch_id: str) -> None:
        """Write down the id that the provider gave; it is on the disk when this returns."""
        with self._database.transaction(durable=True) as connection:
            connection.execute(sa.update(BATCHES).where(_OF_NONCE).values(batch_id=batch_id), {"batch": nonce})

    def read_id(self, nonce: str) -> str | None:
        """The provider's id of a batch, as far as it is known."""
        rows = self._database.read(sa.select(BATCHES.c.batch_id).where(_OF_NONCE), {"batch": nonce})
        return rows[0].batch_id if rows else None

    def ids(self) -> set[str]:
        """The provider's ids of all batches, as far as they are known."""
        return {row.batch_id for row in self._database.read(sa.select(BATCHES.c.batch_id)) if row.batch_id}

    def open_batches(self, known: Collection[str] = ()) -> list[OpenBatch]:
        """Batches whose results have not been read to the end, oldest first, but for those of known nonces."""
        columns = (BATCH_REQUESTS.c.nonce, BATCH_REQUESTS.c.digits, BATCH_REQUESTS.c.attempt)
        is_open = (BATCHES.c.finished_at.is_(None), BATCHES.c.nonce.not_in(list(known)))
        order = (BATCHES.c.created_at, BATCHES.c.nonce)
        rows = self._database.read(sa.select(*_BATCH_COLUMNS).where(*is_open).order_by(*order))
        attempts: defaultdict[str, dict[str, int]] = defaultdict(dict)
        if rows:
            of_open = sa.select(*columns).join(BATCHES, BATCHES.c.nonce == BATCH_REQUESTS.c.nonce).where(*is_open)
            for row in self._database.read(of_open.order_by(BATCH_REQUESTS.c.nonce, BATCH_REQUESTS.c.position)):
                attempts[row.nonce][f"{row.nonce}-{row.digits}"] = row.attempt
        return [OpenBatch(**row._mapping, attempts=attempts[row.nonce]) for row in rows]  # noqa: SLF001 - public

    def requests(self, nonce: str) -> dict[str, Request]:
        """Requests of a batch by custom id, also of one that another process has read meanwhile."""
        columns = (BATCH_REQUESTS.c.digits, BATCH_REQUESTS.c.request)
        statement = sa.select(*columns).where(BATCH_REQUESTS.c.nonce == sa.bindparam("batch"))
        rows = self._database.read(statement.order_by(BATCH_REQUESTS.c.position), {"batch": nonce})
        try:
            return {f"{nonce}-{row.digits}": _request(json.loads(zlib.decompress(row.request))) for row in rows}
        except (zlib.error, ValueError, TypeError, KeyError) as error:
            raise ModelError(
                f"{self._database.place}: batch {nonce} is damaged; `rag-assets batches --cancel` forgets it"
            ) from error

    def remove(self, nonce: str) -> None:
        """Note that a batch was read, or never made, and forget what was read long ago."""
        with self._database.transaction(durable=True) as connection:
            statement = sa.update(BATCHES).where(_OF_NONCE).values(finished_at=sa.bindparam("now"))
            connection.execute(statement, {"batch": nonce, "now": time.time()})
            old = sa.select(BATCHES.c.nonce).where(BATCHES.c.finished_at < time.time() - _FINISHED_SECONDS)
            connection.execute(sa.delete(BATCH_REQUESTS).where(BATCH_REQUESTS.c.nonce.in_(old)))
            connection.execute(sa.delete(BATCHES).where(BATCHES.c.finished_at < time.time() - _FINISHED_SECONDS))


def _request(fields: dict[str, Any]) -> Request:
    """A request as it was written down."""
    messages = tuple(Message(**message) for message in fields["messages"])
    return Request(**{**fields, "messages": messages, "tag": Tag(**fields["tag"]), "stop": tuple(fields["stop"])})


@dataclass(frozen=True)
class BatchSettings:
    """How batches are made."""

    database: StateDatabase  # remembers batches under way
    batch_from: int  # requests from which a batch is made, where single calls are an alternative
    batch_requests: int  # requests of a batch at most
    poll_seconds: float  # seconds between two looks at batches under way
    # attempts at a request before it counts as failed, and at a call to the provider before it counts as unreachable
    attempts: int
    body_bytes: int = 240_000_000  # size of a batch at most; the provider takes 256 MB
    # seconds after which a batch whose creation was not confirmed would be in the provider's list
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
                is_certain = error.problem in _NOT_MADE or isinstance(error, UnsentError)
                if error.problem in FINAL or attempt >= self.attempts_after(error):
                    if is_certain:
                        self._store.remove(batch.nonce)
                    del self._batches[batch.nonce]
                    raise ModelError(f"{error}; a batch of {len(entries)} requests was not made") from None
                asked_seconds = min(error.retry_after_seconds or 0.0, _LONGEST_ASKED_SECONDS)
                pause = asked_seconds or min(_LONGEST_PAUSE_SECONDS, 2.0**attempt / 2)
                time.sleep(pause if is_certain else max(pause, self.settings.settle_seconds))
                if not is_certain and self._may_be_made(batch):
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
        is_deserted = error.problem is CallProblem.UNREACHABLE and not self._reached
        return min(self.settings.attempts, _DESERTED_ATTEMPTS) if is_deserted else self.settings.attempts

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
            created_batch = self._client.messages.batches.create(
                requests=cast("list[BatchRequest]", requests),
                extra_headers=version_headers(temperature=temperature),
                timeout=_TRANSFER_SECONDS,
            )
        return created_batch.id

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
        stored_ids = self._store.ids()
        may_be_listed = False
        for listed_batch in self._like(batch):
            if listed_batch.id in stored_ids:
                continue
            if listed_batch.processing_status != "ended":
                may_be_listed = True
            elif listed_batch.archived_at is None and self._nonce(listed_batch.id) == batch.nonce:
                self._adopt(batch, listed_batch.id)
                return True
        return may_be_listed

    def _like(self, batch: OpenBatch) -> "Iterator[MessageBatch]":
        """Batches that were made since one was written down, and have as many requests."""
        since = datetime.fromtimestamp(batch.created_at, UTC) - _CLOCK_SKEW
        with self._calling():
            for listed_batch in self._client.messages.batches.list(limit=_PAGE):  # the newest come first
                if listed_batch.created_at < since:
                    return
                counts = listed_batch.request_counts
                total = counts.processing + counts.succeeded + counts.errored + counts.canceled + counts.expired
                if total == batch.requests:
                    yield listed_batch

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
