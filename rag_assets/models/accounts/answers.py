"""Stored answers: what was paid for once is not asked again, whichever process or machine asks.

An answer is stored in one transaction with the record of its call (`rag_assets.models.accounts.ledger`). One whose text
does not match its checksum counts as absent. When it was last used is noted to the day. What stays out: prompts and
keys.
"""

import logging
import time
import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from rag_assets.contracts.generation import Outcome
from rag_assets.models.accounts.database import StateDatabase, pieces
from rag_assets.models.accounts.schema import ANSWERS, CALLS, CallRecord

STORED_OUTCOMES = frozenset({Outcome.COMPLETED, Outcome.TRUNCATED, Outcome.REFUSED, Outcome.EMPTY})

_DAY_SECONDS = 86_400.0
_ROWS_AT_ONCE = 500
_log = logging.getLogger(__name__)

_KEYS = ANSWERS.c.request_key.in_(sa.bindparam("keys", expanding=True))
_COLUMNS = [ANSWERS.c[name] for name in ("request_key", "text", "outcome", "error", "checksum", "used_at")]
_FIND = sa.select(*_COLUMNS).where(_KEYS)
_FIND_ONE = sa.select(*_COLUMNS).where(ANSWERS.c.request_key == sa.bindparam("key"))
_USED = sa.update(ANSWERS).where(_KEYS).values(used_at=sa.bindparam("now"))
_DROP = sa.delete(ANSWERS).where(_KEYS)
_PAYERS = sa.select(ANSWERS.c.request_key, ANSWERS.c.call_id).where(_KEYS)
_SIZE = sa.func.length(ANSWERS.c.text)


@dataclass(frozen=True)
class StoredAnswer:
    """An answer that was paid for: its text, how the call ended, and what was said beside it."""

    text: str
    outcome: Outcome
    error: str | None = None


@dataclass(frozen=True)
class AnswerGroup:
    """Stored answers that have provider, model, step and outcome in common."""

    provider: str
    model: str
    step: str
    outcome: str
    entries: int
    bytes: int
    cost_usd: float


@dataclass(frozen=True)
class AnswerStats:
    """What an answer store holds."""

    entries: int  # readable answers
    bytes: int  # size of their texts
    damaged: int  # answers that cannot be read; the next answer to their request replaces them
    pending: int  # paid calls that are not in the ledger's table yet
    oldest: float | None  # when the first of them was paid for, seconds since 1970 UTC; None where there are none
    newest: float | None  # when the last of them was
    groups: tuple[AnswerGroup, ...]  # sums by provider, model, step and outcome, in their order


@dataclass(frozen=True)
class PruneReport:
    """Answers that pruning removed, or would remove, and those that stay, with the size of their texts."""

    removed: int
    removed_bytes: int
    kept: int
    kept_bytes: int


class AnswerStore:
    """Paid answers by key. Any number of threads, processes and machines may use one at once.

    Methods raise `StoreError` where the database cannot be read or written.
    """

    def __init__(self, database: StateDatabase) -> None:
        self._database = database

    def find(self, key: str, *, touch: bool = True) -> StoredAnswer | None:
        """The stored answer to a request by its `request_key`, or None; `touch` counts this as use."""
        row = self._database.read_row(_FIND_ONE, key)
        return self._readable([row], touch=touch).get(key) if row else None

    def find_all(self, keys: Iterable[str]) -> dict[str, StoredAnswer]:
        """The stored answers to requests, by `request_key`, with few queries; this counts as use."""
        return self._readable(self._database.read_keys(_FIND, keys), touch=True)

    def add(
        self, connection: Connection, answers: Sequence[tuple[StoredAnswer, CallRecord]]
    ) -> dict[str, StoredAnswer]:
        """Store answers, within a transaction; what is stored now under each key is that of whoever came first."""
        self._database.insert_all(connection, ANSWERS, [_row(*pair) for pair in answers])
        keys = [record.request_key for _, record in answers]
        payers = {row.request_key: row.call_id for row in connection.execute(_PAYERS, {"keys": keys})}
        stored_answers = {
            record.request_key: answer for answer, record in answers if payers[record.request_key] == record.call_id
        }
        if earlier := sorted(payers.keys() - stored_answers.keys()):
            stored_answers |= self._readable(connection.execute(_FIND, {"keys": earlier}).fetchall(), touch=False)
        return stored_answers

    def stats(self) -> AnswerStats:
        """What is stored; reads every answer."""
        damaged = set(self.damaged())
        names = (ANSWERS.c.provider, ANSWERS.c.model, ANSWERS.c.step, ANSWERS.c.outcome)
        sums = (sa.func.count(), sa.func.sum(_SIZE), sa.func.sum(ANSWERS.c.cost_usd))
        times = (sa.func.min(ANSWERS.c.called_at), sa.func.max(ANSWERS.c.called_at))
        statement = sa.select(*names, *sums, *times).group_by(*names).order_by(*names)
        if damaged:
            statement = statement.where(ANSWERS.c.request_key.not_in(damaged))
        rows = self._database.read(statement)
        unmoved_calls = sa.select(sa.func.count()).where(~CALLS.c.in_table, CALLS.c.cost_usd > 0)
        return AnswerStats(
            entries=sum(row[4] for row in rows),
            bytes=sum(int(row[5]) for row in rows),
            damaged=len(damaged),
            pending=sum(row[0] for row in self._database.read(unmoved_calls)),
            oldest=min((row[7] for row in rows), default=None),
            newest=max((row[8] for row in rows), default=None),
            groups=tuple(AnswerGroup(row[0], row[1], row[2], row[3], row[4], int(row[5]), row[6]) for row in rows),
        )

    def damaged(self) -> list[str]:
        """Keys of answers that do not match their checksum; reads every answer."""
        last, damaged_keys = "", []
        page = sa.select(ANSWERS.c.request_key, ANSWERS.c.text, ANSWERS.c.checksum).order_by(ANSWERS.c.request_key)
        while rows := self._database.read(page.where(ANSWERS.c.request_key > last).limit(_ROWS_AT_ONCE)):
            damaged_keys += [row.request_key for row in rows if zlib.crc32(row.text) != row.checksum]
            last = rows[-1].request_key
        return damaged_keys

    def drop(self, keys: Iterable[str]) -> None:
        """Remove answers."""
        for piece in pieces(keys):
            with self._database.transaction() as connection:
                connection.execute(_DROP, {"keys": piece})

    def prune(
        self,
        max_bytes: int | None,
        max_days: float | None,
        outcomes: Collection[str] = (),
        keys: Collection[str] = frozenset(),
        *,
        dry_run: bool = False,
    ) -> PruneReport:
        """Remove answers, those first that were not used for longest. What they cost stays in the ledger.

        Others may read and write meanwhile: an answer that was used since it was looked at stays, and one that is
        removed while it is asked for is asked of the model again.

        Args:
            max_bytes: Bytes of texts to keep; None for no limit.
            max_days: Days without use after which an answer goes; None for no limit.
            outcomes: Outcomes whose answers go whatever their age, so that they are asked for again.
            keys: Answers that go likewise.
            dry_run: Only tell.
        """
        seen_at = time.time()
        columns = (ANSWERS.c.request_key, ANSWERS.c.used_at, ANSWERS.c.outcome, _SIZE.label("size"))
        rows = self._database.read(sa.select(*columns).order_by(ANSWERS.c.used_at.desc(), ANSWERS.c.request_key))
        oldest = -1.0 if max_days is None else seen_at - max_days * _DAY_SECONDS
        sizes, kept_bytes = {}, 0
        for row in rows:
            if row.outcome in outcomes or row.request_key in keys or row.used_at < oldest:
                sizes[row.request_key] = row.size
            elif max_bytes is not None and kept_bytes + row.size > max_bytes:
                sizes[row.request_key] = row.size
                max_bytes = -1  # nor is anything that was used before
            else:
                kept_bytes += row.size
        total = sum(row.size for row in rows)
        if sizes and not dry_run:
            sizes = self._remove(sizes, seen_at)
        removed_bytes = sum(sizes.values())
        return PruneReport(len(sizes), removed_bytes, len(rows) - len(sizes), total - removed_bytes)

    def _remove(self, sizes: Mapping[str, int], seen_at: float) -> dict[str, int]:
        """Remove answers, unless they were used meanwhile; those that were removed."""
        removed_sizes = {}
        statement = _DROP.where(ANSWERS.c.used_at <= seen_at).returning(ANSWERS.c.request_key)
        for piece in pieces(sizes):
            with self._database.transaction() as connection:
                rows = connection.execute(statement, {"keys": piece})
                removed_sizes.update({row.request_key: sizes[row.request_key] for row in rows})
        self._database.shrink()
        return removed_sizes

    def _readable(self, rows: Sequence[Sequence[Any]], *, touch: bool) -> dict[str, StoredAnswer]:
        """The answers of rows, but for damaged ones, which are removed where this counts as use."""
        answers, stale, damaged, now = {}, [], [], time.time()
        for key, text, outcome, error, checksum, used_at in rows:
            if zlib.crc32(text) != checksum:
                damaged.append(key)
                continue
            answers[key] = StoredAnswer(text.decode("utf-8", "surrogatepass"), Outcome(outcome), error)
            if now - used_at > _DAY_SECONDS:
                stale.append(key)
        if damaged:
            _log.warning("%s: damaged answers count as absent: %d", self._database.place, len(damaged))
        if touch and (stale or damaged):
            self.drop(damaged)
            for piece in pieces(stale):
                with self._database.transaction() as connection:
                    connection.execute(_USED, {"keys": piece, "now": now})
        return answers


def _row(answer: StoredAnswer, record: CallRecord) -> dict[str, Any]:
    text = answer.text.encode("utf-8", "surrogatepass")
    return {**record.plain(), "text": text, "checksum": zlib.crc32(text), "used_at": time.time()}
