"""What is remembered of batches under way, so that answers which are paid for outlast the process that asked.

A batch is written into the state database with its requests before the provider hears of it, and its id there right
after. A batch without an id means that its process died in between, or that the call got lost: whether there is such a
batch can then only be asked of the provider. With the requests stands what they may cost, so that a budget counts a
batch from the moment before it is sent until its results have been read. One that was read stays for a while, as other
processes may be waiting for it, too.

Source: https://platform.claude.com/docs/en/build-with-claude/batch-processing (results can be had for 29 days)
"""

import json
import secrets
import time
import zlib
from collections import defaultdict
from collections.abc import Collection, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from typing import cast

import sqlalchemy as sa

from rag_assets.contracts.errors import ModelError
from rag_assets.contracts.generation import JsonValue, Message, Request, Tag
from rag_assets.models.accounts.budget import BATCH_RESULTS_SECONDS
from rag_assets.models.accounts.database import StateDatabase
from rag_assets.models.accounts.schema import BATCH_REQUESTS, BATCHES

_DIGITS = 40
_FINISHED_SECONDS = 2 * 86_400.0  # that a batch stays which was read; batches end within a day
_BATCH_COLUMNS = [column for column in BATCHES.columns if column is not BATCHES.c.finished_at]
_OF_NONCE = BATCHES.c.nonce == sa.bindparam("batch")


@dataclass
class OpenBatch:
    """A batch whose results have not been read to the end.

    Attributes:
        nonce: Begins the custom ids of its requests.
        model_name: Provider and model.
        base_url: Server that it was sent to.
        created_at: When it was about to be sent, seconds since 1970 UTC.
        batch_id: The provider's id; None where it is not known whether the provider has it.
        attempts: Which attempt it is for each request, by custom id.
        price_usd: The most that it may cost.
        seen: Custom ids whose results a session has read.
        again: Why requests have no answer that was paid for, by custom id.
    """

    nonce: str
    model_name: str
    base_url: str
    created_at: float
    batch_id: str | None
    attempts: dict[str, int]
    price_usd: float
    seen: set[str] = field(default_factory=set)
    again: dict[str, str] = field(default_factory=dict)

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
        self.add(batch, [entry.request for entry in entries])
        return batch

    def add(self, batch: OpenBatch, requests: Iterable[Request]) -> None:
        """Write a batch down with its requests, in the order of its attempts; nothing where it is known already."""
        rows = [
            {
                "nonce": batch.nonce,
                "digits": digits_of(custom_id),
                "position": position,
                "attempt": attempt,
                "request": zlib.compress(json.dumps(_fields(request)).encode(), 3),
            }
            for position, ((custom_id, attempt), request) in enumerate(
                zip(batch.attempts.items(), requests, strict=True)
            )
        ]
        with self._database.transaction(durable=True) as connection:
            values = {column.name: getattr(batch, column.name, None) for column in BATCHES.columns}
            connection.execute(self._database.insert(BATCHES), values)
            connection.execute(self._database.insert(BATCH_REQUESTS), rows)

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
            return {f"{nonce}-{row.digits}": request_from(json.loads(zlib.decompress(row.request))) for row in rows}
        except (zlib.error, ValueError, TypeError, KeyError) as error:
            raise ModelError(
                f"{self._database.place}: batch {nonce} is damaged; `rag-assets batches --cancel` forgets it"
            ) from error

    def remove(self, nonce: str) -> None:
        """Note that a batch was read, or never made, and forget what was read long ago."""
        with self._database.transaction(durable=True) as connection:
            finished = sa.update(BATCHES).where(_OF_NONCE).values(finished_at=sa.bindparam("now"))
            connection.execute(finished, {"batch": nonce, "now": time.time()})
            old = sa.select(BATCHES.c.nonce).where(BATCHES.c.finished_at < time.time() - _FINISHED_SECONDS)
            connection.execute(sa.delete(BATCH_REQUESTS).where(BATCH_REQUESTS.c.nonce.in_(old)))
            connection.execute(sa.delete(BATCHES).where(BATCHES.c.finished_at < time.time() - _FINISHED_SECONDS))


def _fields(request: Request) -> dict[str, object]:
    return {
        "prefix": request.prefix,
        "messages": [[message.role, message.text] for message in request.messages],
        "max_tokens": request.max_tokens,
        "tag": [request.tag.asset, request.tag.step, request.tag.document_id, request.tag.partition],
        "system": request.system,
        "schema": request.schema,
        "temperature": request.temperature,
        "seed": request.seed,
        "stop": request.stop,
        "attempt": request.attempt,
    }


def request_from(fields: dict[str, JsonValue]) -> Request:
    """A request from what is written of it."""
    messages = cast("list[list[str]]", fields["messages"])
    return Request(
        prefix=cast("str", fields["prefix"]),
        messages=tuple(Message("user" if role == "user" else "assistant", text) for role, text in messages),
        max_tokens=cast("int", fields["max_tokens"]),
        tag=Tag(*cast("list[str]", fields["tag"])),
        system=cast("str", fields["system"]),
        schema=cast("str | None", fields["schema"]),
        temperature=cast("float | None", fields["temperature"]),
        seed=cast("int | None", fields["seed"]),
        stop=tuple(cast("list[str]", fields["stop"])),
        attempt=cast("int", fields.get("attempt", 0)),
    )
