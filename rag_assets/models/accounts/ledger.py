"""The ledger: what was asked of language models, and what it cost.

A call is written down in one transaction with the answer that it gave and with what its account has spent; `compact`
brings calls into the table `model_calls` of the lake, one shard a calendar month. So nothing is lost with a process,
and what was spent is known at any time. What stays out: what may be spent (`rag_assets.models.accounts.budget`).
"""

import hashlib
import itertools
import logging
import math
import operator
import os
import threading
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from rag_assets.contracts.errors import StoreError
from rag_assets.contracts.generation import Completion, Outcome, Request, Usage, request_key
from rag_assets.contracts.tables import MODEL_CALLS
from rag_assets.models.accounts.answers import STORED_OUTCOMES, AnswerStore, StoredAnswer
from rag_assets.models.accounts.database import StateDatabase, pieces
from rag_assets.models.accounts.schema import ANSWERS, CALLS, RESERVATIONS, SPENDING, CallRecord, call_rows, month_of
from rag_assets.store.lake import Lake

_NOTES = (Outcome.INVALID.value, Outcome.REPEATED.value)  # outcomes of rows that are no calls
_READ_TOKENS = ("input_tokens", "cache_read_tokens", "cache_write_tokens")
FIGURE_COLUMNS = ("cache_hit", "outcome", *_READ_TOKENS, "output_tokens", "cost_usd")  # that `call_figures` needs

# What a row adds to the answers of use; an answer that broke its schema is a completed call, and has a row of its own.
_ANSWERS = {Outcome.COMPLETED.value: 1, Outcome.TRUNCATED.value: 1, Outcome.INVALID.value: -1}
_UNANSWERED = ("empty", "refused")  # outcomes after which a call is repeated that were not counted as such
_SLICE = 50_000  # records that are in memory at once when they are compacted
_NO_LENGTH = ("failed", "invalid", "repeated", "unknown")  # outcomes of rows that do not tell how long an answer is
_ATTEMPTS = 20  # at reading files of the lake, which an upkeep may remove once there are newer ones
_FLUSH_SECONDS = 1.0  # after which records of calls that cost nothing are written, and answers synced that were not
_FREE_RECORDS = 2000  # that wait at most
_SYNC_SECONDS = 1.0  # of answers that a power cut may lose
_BATCH_SECONDS = 40 * 86_400.0  # results of a batch can be read for 29 days, by anyone who waited for it
_log = logging.getLogger(__name__)

_FIELDS = [CALLS.c[name] for name in CallRecord.__dataclass_fields__]
_ADD_COST = (
    sa.update(SPENDING)
    .where(SPENDING.c.account == sa.bindparam("name"))
    .values(spent_usd=SPENDING.c.spent_usd + sa.bindparam("cost"), changed_at=sa.bindparam("now"))
)
_KNOWN = sa.select(CALLS.c.call_id).where(CALLS.c.call_id.in_(sa.bindparam("keys", expanding=True)))
_SETTLED = sa.delete(RESERVATIONS).where(RESERVATIONS.c.reservation.in_(sa.bindparam("keys", expanding=True)))
_MOVED = CALLS.c.call_id.in_(sa.bindparam("keys", expanding=True))


@dataclass(frozen=True)
class Entry:
    """A call that a provider answered, and the id of what was reserved for it, if anything is."""

    completion: Completion
    reservation: str | None = None


class Ledger:
    """Writes down calls of language models and tells what they cost.

    Methods raise `StoreError` where the database or the table cannot be read or written.

    Args:
        lake: Holds the table `model_calls`.
        database: Holds calls that are not in the table yet, and stored answers.
        run_id: Dagster run that this process works for; None outside a run.

    Attributes:
        account: What the calls of this ledger are added up in: the run, or outside a run this object.
    """

    def __init__(self, lake: Lake, database: StateDatabase, run_id: str | None = None) -> None:
        self.answers = AnswerStore(database)
        self.database = database
        self.run_id = run_id
        self._prefix = uuid.uuid4().hex
        self.account = f"run {run_id or self._prefix}"
        self._lake = lake
        self._numbers = itertools.count()
        self._guard = threading.Lock()
        self._free: list[CallRecord] = []
        self._unsynced = False
        self._timer: threading.Timer | None = None

    def next_id(self) -> str:
        """An id that no other call has, in any process."""
        return f"{self._prefix}-{os.getpid()}-{next(self._numbers)}"

    def keep(self, model_name: str, entries: Sequence[Entry]) -> list[StoredAnswer | None]:
        """Write down calls that a provider answered, their answers and what they cost, all in one transaction.

        It outlasts the process when this returns, and a power cut within a second.

        Returns:
            The answer to each that is stored now, that of an earlier call where there was one; None where none is.
        """
        if not entries:
            return []
        completions = [entry.completion for entry in entries]
        records = [self._record(model_name, completion) for completion in completions]
        answers = [
            (StoredAnswer(completion.text, completion.outcome, completion.error), record)
            for completion, record in zip(completions, records, strict=True)
            if completion.outcome in STORED_OUTCOMES
        ]
        reservations = [entry.reservation for entry in entries if entry.reservation]
        is_shared = any(record.batch_id for record in records)
        durable = bool(answers) or any(record.cost_usd > 0 for record in records)
        with self.database.transaction(durable=durable, is_synced=False, exclusive=is_shared) as connection:
            self.add(connection, records, [self.account])
            stored_answers = self.answers.add(connection, answers) if answers else {}
            if reservations:
                connection.execute(_SETTLED, {"keys": reservations})
        if durable and not self.database.sync(_SYNC_SECONDS):
            with self._guard:
                self._unsynced = True
                self._flush_soon()
        return [
            stored_answers.get(record.request_key) if completion.outcome in STORED_OUTCOMES else None
            for completion, record in zip(completions, records, strict=True)
        ]

    def add(self, connection: Connection, records: Sequence[CallRecord], accounts: Sequence[str] = ()) -> None:
        """Write down calls and what they cost, within a transaction, each once; `accounts` are charged besides
        their months.
        """
        call_ids = [record.call_id for record in records if not record.call_id.startswith(self._prefix)]  # ours are new
        known_ids = {row.call_id for keys in pieces(call_ids) for row in connection.execute(_KNOWN, {"keys": keys})}
        fresh = {record.call_id: record for record in records if record.call_id not in known_ids}
        if not fresh:
            return
        rows = [{**record.plain(), "in_table": False} for record in fresh.values()]
        self.database.insert_all(connection, CALLS, rows)
        costs: defaultdict[str, float] = defaultdict(float)
        for record in fresh.values():
            for account in (month_account(record.called_at), *accounts):
                costs[account] += record.cost_usd
        cost_rows = [{"name": name, "cost": cost, "now": time.time()} for name, cost in costs.items() if cost]
        if cost_rows:
            connection.execute(_ADD_COST, cost_rows)

    def note(self, model_name: str, completion: Completion, *, stored: bool = False) -> None:
        """Write down, within a second, what is no call: that an answer came from the store (`stored`), that one broke
        its schema for good, or that a call was made because an earlier answer was of no use. The calls that it took
        have rows of their own.
        """
        free = replace(completion, usage=Usage(), cost_usd=0.0, seconds=0.0, batch_id=None, stored=stored)
        record = self._record(model_name, free)
        with self._guard:
            self._free.append(record)
            is_full = len(self._free) >= _FREE_RECORDS
            if not is_full:
                self._flush_soon()
        if is_full:
            self.flush()

    def flush(self) -> None:
        """Write what waits in memory."""
        with self._guard:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            if self._free:
                with self.database.transaction() as connection:
                    self.add(connection, self._free)
                self._free = []
            if self._unsynced:
                self._unsynced = False
                self.database.sync()

    def compact(self) -> int:
        """Bring into the table what is not there yet; reads nothing else, and writes nothing where there is nothing.

        May be killed at any point and run by any number of processes at once. What was to be added stays where it is
        when it fails.

        Returns:
            Rows that were added.
        """
        self.flush()
        statement = sa.select(*_FIELDS).where(~CALLS.c.in_table).limit(_SLICE)
        if not self.database.read(statement.limit(1)):
            return 0
        added_count = 0
        with self.database.lease("ledger"):
            while records := [CallRecord(*row) for row in self.database.read(statement)]:
                months: defaultdict[str, list[CallRecord]] = defaultdict(list)
                for record in records:
                    months[record.month].append(record)
                added_count += sum(self._add_to_month(month, calls) for month, calls in sorted(months.items()))
                self._let_go(records)
        self.database.shrink()
        return added_count

    def rows(
        self, since: datetime | None = None, run_id: str | None = None, columns: Sequence[str] | None = None
    ) -> pa.Table:
        """Rows, those that are not in the table yet included, in order of `call_id`.

        What is not in the table is read before the table is: what moves there in between is seen twice, which its
        `call_id` tells, and never missed.

        Args:
            since: Only calls from then on.
            run_id: Only calls of this run.
            columns: Columns besides `call_id`; all where None.
        """
        self.flush()
        column_names = None if columns is None else ["call_id", *columns]
        where = _where(since, run_id)
        rows = self.database.read(sa.select(*_FIELDS).where(*_conditions(since, run_id)))
        waiting_rows = call_rows(CallRecord(*row) for row in rows)
        waiting_rows = waiting_rows if where is None else waiting_rows.filter(where)
        waiting_rows = waiting_rows if column_names is None else waiting_rows.select(column_names)
        stored_rows = self._read(column_names, since, where)
        fresh = waiting_rows.filter(pc.invert(pc.is_in(waiting_rows["call_id"], stored_rows["call_id"])))
        return pa.concat_tables([stored_rows, fresh]).sort_by("call_id").combine_chunks()

    def invalid_keys(self) -> frozenset[str]:
        """What answers are stored under that broke their schema for good."""
        rows = self.rows(columns=["request_key", "outcome"])
        return frozenset(rows.filter(pc.equal(rows["outcome"], "invalid"))["request_key"].to_pylist())

    def unusable_keys(self, documents: Sequence[str]) -> frozenset[str]:
        """What answers on some documents are stored under that were of no use."""
        rows = self.rows(columns=["document_id", "request_key", "outcome"])
        of_no_use = pc.is_in(rows["outcome"], pa.array(["refused", "empty", "truncated", "invalid"], pa.string()))
        mask = pc.and_(of_no_use, pc.is_in(rows["document_id"], pa.array(list(documents), pa.string())))
        return frozenset(rows.filter(mask)["request_key"].to_pylist())

    def spent_usd(
        self, since: datetime | None = None, run_id: str | None = None, connection: Connection | None = None
    ) -> float:
        """What calls have cost, since a time or in a run, those that are not in the table yet included.

        The latter are read within a transaction where its connection is given.
        """
        statement = sa.select(CALLS.c.call_id, CALLS.c.cost_usd).where(
            CALLS.c.cost_usd > 0, *_conditions(since, run_id)
        )
        rows = connection.execute(statement).fetchall() if connection else self.database.read(statement)
        costs = {row.call_id: row.cost_usd for row in rows}
        stored_rows = self._read(["call_id", "cost_usd"], since, _where(since, run_id))
        known_ids = set(
            stored_rows.filter(pc.is_in(stored_rows["call_id"], pa.array(costs, pa.string())))["call_id"].to_pylist()
        )
        fresh = [cost for call_id, cost in costs.items() if call_id not in known_ids]
        return math.fsum([*fresh, pc.sum(stored_rows["cost_usd"]).as_py() or 0.0])

    def has_answers(self) -> bool:
        """Whether the provider has answered a call of this run, in any process of it; never outside a run."""
        if self.run_id is None:
            return False
        rows = self.rows(run_id=self.run_id, columns=["cache_hit", "outcome"])
        calls = rows.filter(pc.invert(rows["cache_hit"]))
        return bool(pc.any(pc.is_in(calls["outcome"], pa.array(sorted(STORED_OUTCOMES), pa.string()))).as_py())

    def answer_counts(self, since: datetime) -> dict[str, tuple[int, int]]:
        """Calls since a time that gave an answer of use, and calls that were made because an earlier one did not, by
        asset.
        """
        answers: Counter[str] = Counter()
        repeats: Counter[str] = Counter()
        rows = self.rows(since, columns=["asset", "outcome", "cache_hit", "error"])
        for row in rows.filter(pc.invert(rows["cache_hit"])).to_pylist():
            answers[row["asset"]] += _ANSWERS.get(row["outcome"], 0)
            if row["outcome"] == Outcome.REPEATED.value:
                repeats[row["asset"]] += 1
                answers[row["asset"]] -= not (row["error"] or "").startswith(_UNANSWERED)
        return {asset: (max(0, answers[asset]), repeats[asset]) for asset in answers | repeats}

    def mean_output_tokens(self, model_name: str) -> dict[str, float]:
        """Mean tokens written by step, over the calls of a model that are in the table."""
        provider, _, model = model_name.partition(":")
        of_model = (pc.field("provider") == provider) & (pc.field("model") == model) & ~pc.field("cache_hit")
        rows = self._read(["step", "output_tokens"], None, of_model & ~pc.field("outcome").isin(_NO_LENGTH))
        means = rows.group_by("step").aggregate([("output_tokens", "mean")])
        return dict(zip(means["step"].to_pylist(), means["output_tokens_mean"].to_pylist(), strict=True))

    def restore(self, month: str) -> int:
        """Write the records of a month whose table was lost, as far as their answers are stored; number of rows
        added.
        """
        with self.database.lease("ledger"):
            fields = [ANSWERS.c[name] for name in CallRecord.__dataclass_fields__]
            records = [CallRecord(*row) for row in self.database.read(sa.select(*fields))]
            records = [record for record in records if record.month == month]
            return self._add_to_month(month, records) if records else 0

    def _flush_soon(self) -> None:
        def flush() -> None:
            try:
                self.flush()
            except StoreError as error:
                _log.warning("records of calls wait to be written: %s", error)

        if self._timer is None:
            self._timer = threading.Timer(_FLUSH_SECONDS, flush)
            self._timer.daemon = True
            self._timer.start()

    def _record(self, model_name: str, completion: Completion) -> CallRecord:
        provider, _, model = model_name.partition(":")
        tag, usage = completion.request.tag, completion.usage
        key = request_key(model_name, completion.request)
        return CallRecord(
            call_id=batch_call_id(completion.batch_id, key) if completion.batch_id else self.next_id(),
            called_at=completion.called_at or time.time(),
            run_id=self.run_id,
            asset=tag.asset,
            step=tag.step,
            partition=tag.partition,
            document_id=tag.document_id,
            provider=provider,
            model=model,
            request_key=key,
            outcome=completion.outcome.value,
            cache_hit=completion.stored,
            input_tokens=usage.input_tokens,
            cache_read_tokens=usage.cache_read_tokens,
            cache_write_tokens=usage.cache_write_tokens,
            output_tokens=usage.output_tokens,
            cost_usd=float(completion.cost_usd),
            seconds=float(completion.seconds),
            batch_id=completion.batch_id,
            error=completion.error,
        )

    def _let_go(self, records: Sequence[CallRecord]) -> None:
        """Remove records that are in the table; those of batches stay for a while, since another process may yet read
        the same results.
        """
        single = [record.call_id for record in records if not record.batch_id]
        call_ids = [record.call_id for record in records if record.batch_id]
        with self.database.transaction() as connection:
            for keys in pieces(single):
                connection.execute(sa.delete(CALLS).where(_MOVED), {"keys": keys})
            for keys in pieces(call_ids):
                connection.execute(sa.update(CALLS).where(_MOVED).values(in_table=True), {"keys": keys})
            old = time.time() - _BATCH_SECONDS
            connection.execute(sa.delete(CALLS).where(CALLS.c.in_table, CALLS.c.called_at < old))
            connection.execute(sa.delete(SPENDING).where(SPENDING.c.changed_at < old))

    def _add_to_month(self, month: str, records: Sequence[CallRecord]) -> int:
        stored_rows = self._lake.read(MODEL_CALLS, [month])
        if stored_rows.num_rows != self._lake.row_count(MODEL_CALLS, month):
            raise StoreError(
                f"{MODEL_CALLS.name}, {month}: written by another release, with other columns; move the folder "
                f"{self._lake.root / MODEL_CALLS.name / month} away to begin it anew"
            )
        rows = call_rows(records)
        fresh = rows.filter(pc.invert(pc.is_in(rows["call_id"], stored_rows["call_id"])))
        if fresh.num_rows:
            self._lake.write(MODEL_CALLS, month, pa.concat_tables([stored_rows, fresh]), {month: MODEL_CALLS.name})
        return int(fresh.num_rows)

    def _read(self, columns: Sequence[str] | None, since: datetime | None, where: pc.Expression | None) -> pa.Table:
        first = month_of(since.timestamp()) if since else ""

        def read() -> pa.Table:
            months = [month for month in self._lake.latest(MODEL_CALLS) if month >= first]
            return self._lake.read(MODEL_CALLS, months, columns, where=where)

        for _ in range(_ATTEMPTS - 1):
            with suppress(StoreError):
                return read()
            time.sleep(0.01)
        return read()


def _where(since: datetime | None, run_id: str | None) -> pc.Expression | None:
    """Which rows are wanted; None for all."""
    conditions = []
    if since is not None:
        conditions.append(pc.field("called_at") >= pa.scalar(since, pa.timestamp("us", "UTC")))
    if run_id is not None:
        conditions.append(pc.field("run_id") == run_id)
    return reduce(operator.and_, conditions) if conditions else None


def call_figures(rows: pa.Table) -> dict[str, float]:
    """Sums over rows of the ledger. An answer that was not usable has a row of its own, which is no call."""
    asked_rows = rows.filter(pc.invert(rows["cache_hit"]))
    calls = asked_rows.filter(pc.invert(pc.is_in(asked_rows["outcome"], pa.array(_NOTES, pa.string()))))
    is_repeat = pc.equal(asked_rows["outcome"], Outcome.REPEATED.value)
    is_completed = pc.equal(asked_rows["outcome"], Outcome.COMPLETED.value)
    return {
        "calls": calls.num_rows,
        "asked_again": pc.sum(is_repeat).as_py() or 0,
        "stored_answers": rows.num_rows - asked_rows.num_rows,
        "failed_calls": pc.sum(pc.invert(pc.or_(is_repeat, is_completed))).as_py() or 0,
        "tokens_read": sum(pc.sum(calls[name]).as_py() or 0 for name in _READ_TOKENS),
        "tokens_written": pc.sum(calls["output_tokens"]).as_py() or 0,
        "cost_usd": pc.sum(calls["cost_usd"]).as_py() or 0.0,
    }


def month_account(seconds: float) -> str:
    """Name of the account of the month of a time (seconds since 1970), in UTC."""
    return f"month {month_of(seconds)}"


def hit_of(request: Request, answer: StoredAnswer) -> Completion:
    """A stored answer as the answer to a request."""
    return Completion(
        request=request,
        outcome=answer.outcome,
        text=answer.text,
        called_at=time.time(),
        stored=True,
        error=answer.error,
    )


def batch_call_id(batch_id: str, key: str) -> str:
    """Names a result of a batch, whoever reads it."""
    return hashlib.sha256(f"{batch_id}\n{key}".encode()).hexdigest()[:40]


def _conditions(since: datetime | None, run_id: str | None) -> list[sa.ColumnElement[bool]]:
    """Which calls are wanted that are not in the table."""
    conditions: list[sa.ColumnElement[bool]] = [~CALLS.c.in_table]
    if since is not None:
        conditions.append(CALLS.c.called_at >= since.timestamp() - 1e-6)  # the table rounds
    if run_id is not None:
        conditions.append(CALLS.c.run_id == run_id)
    return conditions
