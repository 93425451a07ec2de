"""The ledger: what was asked of language models, and what it cost.

A paid call is written down in the file of the answer that it gave (`rag_assets.models.accounts.answers`), a failure or
an answer that came from the store in the journal of its process (`rag_assets.models.accounts.journal`); `compact`
brings both into the table `model_calls` of the lake, one shard a calendar month. So nothing is lost with a process, and
what was spent is known at any time. What stays out: what may be spent (`rag_assets.models.accounts.budget`).
"""

import hashlib
import math
import operator
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import reduce
from itertools import chain
from pathlib import Path
from typing import NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from filelock import FileLock

from rag_assets.contracts.errors import StoreError
from rag_assets.contracts.generation import Completion, Outcome, Request, Usage, request_key
from rag_assets.contracts.tables import MODEL_CALLS
from rag_assets.models.accounts.answers import STORED_OUTCOMES, AnswerStore, StoredAnswer
from rag_assets.models.accounts.calls import CallRecord, call_rows, month_of, neighbours
from rag_assets.models.accounts.journal import (
    Journal,
    journal_files,
    read_journal,
    remove_if_ended,
    remove_stray_locks,
)
from rag_assets.store.lake import Lake

Found = TypeVar("Found")

NOTES = (Outcome.INVALID.value, Outcome.REPEATED.value)  # outcomes of rows that are no calls

# What a row adds to the answers of use; an answer that broke its schema is a completed call, and has a row of its own.
_ANSWERS = {Outcome.COMPLETED.value: 1, Outcome.TRUNCATED.value: 1, Outcome.INVALID.value: -1}
_UNANSWERED = ("empty", "refused")  # outcomes after which a call is repeated that were not counted as such
_SLICE = 100_000  # records that are in memory at once when they are compacted
_MEAN_OUTPUT_TOKENS = """
    SELECT step, avg(output_tokens) FROM calls
    WHERE provider = ? AND model = ? AND NOT cache_hit AND outcome NOT IN ('failed', 'invalid', 'repeated')
    GROUP BY step
"""
_ATTEMPTS = 20  # at reading files of the lake, which an upkeep may remove once there are newer ones


class _PaidCall(NamedTuple):
    """What sums need of a call."""

    call_id: str
    called_at: float
    run_id: str | None
    cost_usd: float

    @classmethod
    def of(cls, record: CallRecord) -> "_PaidCall":
        return cls(record.call_id, record.called_at, record.run_id, record.cost_usd)


@dataclass
class _Slice:
    """Records on their way into the table, and the files that are not needed once they are there."""

    records: dict[str, CallRecord] = field(default_factory=dict)
    paid: list[Path] = field(default_factory=list)
    journals: list[tuple[Path, int]] = field(default_factory=list)

    @property
    def full(self) -> bool:
        return len(self.records) >= _SLICE

    def clear(self) -> None:
        self.records.clear()
        self.paid.clear()
        self.journals.clear()


class Ledger:
    """Writes down calls of language models and tells what they cost.

    Args:
        lake: Holds the table `model_calls`.
        answers: Holds paid calls with their answers.
        folder: Folder of the journals.
        run_id: Dagster run that this process works for; None outside a run.
    """

    def __init__(self, lake: Lake, answers: AnswerStore, folder: Path, run_id: str | None = None) -> None:
        self.answers = answers
        self.run_id = run_id
        self._lake = lake
        self._folder = folder
        self._journal = Journal(folder)
        self._seen: dict[str, _PaidCall] = {}  # pending calls by file, none of which ever changes

    def keep(self, model_name: str, completion: Completion) -> StoredAnswer | None:
        """Write down a call that a provider answered, with its answer where that is to be stored.

        Both are on the disk when this returns.

        Returns:
            The answer that is stored now, that of an earlier call where there was one; None where none is stored.

        Raises:
            OSError: It cannot be written.
        """
        record = self._record(model_name, completion)
        if completion.outcome in STORED_OUTCOMES:
            return self.answers.put(StoredAnswer(completion.text, record))
        self._journal.append(record, durable=completion.cost_usd > 0)
        return None

    def note_hit(self, model_name: str, completion: Completion) -> None:
        """Write down that an answer came from the store.

        Raises:
            OSError: It cannot be written.
        """
        free = replace(completion, usage=Usage(), cost_usd=0.0, seconds=0.0, batch_id=None, stored=True)
        self._journal.append(self._record(model_name, free))

    def note(self, model_name: str, completion: Completion) -> None:
        """Write down what is no call: that an answer broke its schema for good, or that a call was made because an
        earlier answer was of no use. The calls that it took have rows of their own.

        Raises:
            OSError: It cannot be written.
        """
        free = replace(completion, usage=Usage(), cost_usd=0.0, seconds=0.0, batch_id=None, stored=False)
        self._journal.append(self._record(model_name, free))

    def end_session(self) -> None:
        """Write what waits in memory.

        Raises:
            OSError: It cannot be written.
        """
        self._journal.seal()

    def compact(self) -> int:
        """Bring into the table what is not there yet; reads nothing else, and writes nothing where there is nothing.

        May be killed at any point and run by any number of processes at once.

        Returns:
            Rows that were added.

        Raises:
            StoreError: The table cannot be read or written; what was to be added stays where it is.
        """
        self._journal.seal()
        if not self._folder.is_dir() and next(self.answers.pending(), None) is None:
            return 0
        self._folder.mkdir(parents=True, exist_ok=True)
        with FileLock(self._folder / "compact.lock", thread_local=False):
            added = self._add_all()
            remove_stray_locks(self._folder)
        return added

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

        Raises:
            StoreError: The table cannot be read.
        """
        self._journal.flush()
        wanted = None if columns is None else ["call_id", *columns]
        where = _where(since, run_id)
        paid = filter(None, map(self.answers.pending_record, self.answers.pending()))
        journalled = chain.from_iterable(map(read_journal, journal_files(self._folder)))
        waiting = call_rows({record.call_id: record for record in chain(paid, journalled)}.values())
        waiting = waiting if where is None else waiting.filter(where)
        waiting = waiting if wanted is None else waiting.select(wanted)
        stored = self._read(wanted, since, where)
        fresh = waiting.filter(pc.invert(pc.is_in(waiting["call_id"], stored["call_id"])))
        return pa.concat_tables([stored, fresh]).sort_by("call_id").combine_chunks()

    def invalid_keys(self) -> frozenset[str]:
        """What answers are stored under that broke their schema for good.

        Raises:
            StoreError: The table cannot be read.
        """
        rows = self.rows(columns=["request_key", "outcome"])
        return frozenset(rows.filter(pc.equal(rows["outcome"], "invalid"))["request_key"].to_pylist())

    def unusable_keys(self, documents: Sequence[str]) -> frozenset[str]:
        """What answers on some documents are stored under that were of no use.

        Raises:
            StoreError: The table cannot be read.
        """
        rows = self.rows(columns=["document_id", "request_key", "outcome"])
        of_no_use = pc.is_in(rows["outcome"], pa.array(["refused", "empty", "truncated", "invalid"], pa.string()))
        chosen = pc.and_(of_no_use, pc.is_in(rows["document_id"], pa.array(list(documents), pa.string())))
        return frozenset(rows.filter(chosen)["request_key"].to_pylist())

    def spent_usd(self, since: datetime | None = None, run_id: str | None = None) -> float:
        """What calls have cost, those that are not in the table yet included.

        Args:
            since: Only calls from then on.
            run_id: Only calls of this run.

        Raises:
            StoreError: The table cannot be read.
        """
        start = since.timestamp() if since else -math.inf
        waiting = {
            call.call_id: call.cost_usd
            for call in self._unsettled()
            if call.called_at >= start and run_id in {None, call.run_id}
        }
        stored = self._read(["call_id", "cost_usd"], since, _where(since, run_id))
        known = set(stored.filter(pc.is_in(stored["call_id"], pa.array(waiting, pa.string())))["call_id"].to_pylist())
        fresh = [cost for call_id, cost in waiting.items() if call_id not in known]
        return math.fsum([*fresh, pc.sum(stored["cost_usd"]).as_py() or 0.0])

    def has_answers(self) -> bool:
        """Whether the provider has answered a call of this run, in any process of it; never outside a run.

        Raises:
            StoreError: The table cannot be read.
        """
        if self.run_id is None:
            return False
        rows = self.rows(run_id=self.run_id, columns=["cache_hit", "outcome"])
        made = rows.filter(pc.invert(rows["cache_hit"]))
        return bool(pc.any(pc.is_in(made["outcome"], pa.array(sorted(STORED_OUTCOMES), pa.string()))).as_py())

    def answer_counts(self, since: datetime | None = None, run_id: str | None = None) -> dict[str, tuple[int, int]]:
        """Calls that gave an answer of use, and calls that were made because an earlier one did not, by asset.

        Args:
            since: Only calls from then on.
            run_id: Only calls of this run.

        Raises:
            StoreError: The table cannot be read.
        """
        answered: Counter[str] = Counter()
        repeated: Counter[str] = Counter()
        rows = self.rows(since, run_id, ["asset", "outcome", "cache_hit", "error"])
        for row in rows.filter(pc.invert(rows["cache_hit"])).to_pylist():
            answered[row["asset"]] += _ANSWERS.get(row["outcome"], 0)
            if row["outcome"] == Outcome.REPEATED.value:
                repeated[row["asset"]] += 1
                answered[row["asset"]] -= not (row["error"] or "").startswith(_UNANSWERED)
        return {asset: (max(0, answered[asset]), repeated[asset]) for asset in answered | repeated}

    def mean_output_tokens(self, model_name: str) -> dict[str, float]:
        """Mean tokens written by step, over the calls of a model that are in the table.

        Raises:
            StoreError: The table cannot be read.
        """
        import duckdb

        provider, _, model = model_name.partition(":")

        def read() -> list[tuple[str, float]]:
            with duckdb.connect() as connection:
                connection.register("calls", self._lake.dataset(MODEL_CALLS))
                try:
                    return connection.execute(_MEAN_OUTPUT_TOKENS, [provider, model]).fetchall()
                except (duckdb.Error, OSError) as error:
                    raise StoreError(f"{MODEL_CALLS.name}: {error}") from error

        return dict(_until_read(read))

    def restore(self, month: str) -> int:
        """Write the records of a month whose table was lost, as far as answers that were paid for are stored.

        Returns:
            Rows that were added.

        Raises:
            StoreError: The table cannot be written.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        with FileLock(self._folder / "compact.lock", thread_local=False):
            records = list(self.answers.records(month))
            return self._add_to_month(month, records) if records else 0

    def _record(self, model_name: str, completion: Completion) -> CallRecord:
        provider, _, model = model_name.partition(":")
        tag, usage = completion.request.tag, completion.usage
        key = request_key(model_name, completion.request)
        return CallRecord(
            call_id=_batch_call_id(completion.batch_id, key) if completion.batch_id else self._journal.next_id(),
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

    def _unsettled(self) -> Iterator[_PaidCall]:
        """Paid calls that may not be in the table yet, some of them more than once."""
        seen: dict[str, _PaidCall] = {}
        for path in self.answers.pending():
            call = self._seen.get(path.name)
            if call is None and (record := self.answers.pending_record(path)):
                call = _PaidCall.of(record)
            if call is not None:
                seen[path.name] = call
        self._seen = seen
        yield from seen.values()
        for path in journal_files(self._folder):
            yield from map(_PaidCall.of, read_journal(path, paid=True))

    def _add_all(self) -> int:
        added, piece = 0, _Slice()
        for path in self.answers.pending():
            record = self.answers.pending_record(path)
            if record is None:
                self.answers.discard_torn(path)
                continue
            piece.records[record.call_id] = record
            piece.paid.append(path)
            added += self._add(piece) if piece.full else 0
        for path in journal_files(self._folder):
            size_bytes = path.stat().st_size
            for record in read_journal(path):
                piece.records[record.call_id] = record
                added += self._add(piece) if piece.full else 0
            piece.journals.append((path, size_bytes))
        return added + self._add(piece)

    def _add(self, piece: _Slice) -> int:
        """Add records to the table and then let go of where they came from; empties the slice."""
        months: defaultdict[str, list[CallRecord]] = defaultdict(list)
        for record in piece.records.values():
            months[record.month].append(record)
        added = sum(self._add_to_month(month, chosen) for month, chosen in sorted(months.items()))
        self.answers.release(piece.paid)
        for path, size_bytes in piece.journals:
            remove_if_ended(path, size_bytes)
        piece.clear()
        return added

    def _add_to_month(self, month: str, records: Sequence[CallRecord]) -> int:
        stored = self._lake.read(MODEL_CALLS, [month])
        if stored.num_rows != self._lake.row_count(MODEL_CALLS, month):
            raise StoreError(
                f"{MODEL_CALLS.name}, {month}: written by another release, with other columns; move the folder "
                f"{self._lake.root / MODEL_CALLS.name / month} away to begin it anew"
            )
        known = stored["call_id"]
        if any(record.batch_id for record in records):  # a batch may have been read before and after midnight
            near = self._lake.read(MODEL_CALLS, neighbours(month), ["call_id"])["call_id"]
            known = pa.chunked_array([*known.chunks, *near.chunks], pa.string())
        rows = call_rows(records)
        fresh = rows.filter(pc.invert(pc.is_in(rows["call_id"], known)))
        if fresh.num_rows:
            self._lake.write(MODEL_CALLS, month, pa.concat_tables([stored, fresh]), {month: MODEL_CALLS.name})
        return int(fresh.num_rows)

    def _read(self, columns: Sequence[str] | None, since: datetime | None, where: pc.Expression | None) -> pa.Table:
        first = month_of(since.timestamp()) if since else ""

        def read() -> pa.Table:
            months = [month for month in self._lake.latest(MODEL_CALLS) if month >= first]
            return self._lake.read(MODEL_CALLS, months, columns, where=where)

        return _until_read(read)


def _where(since: datetime | None, run_id: str | None) -> pc.Expression | None:
    """Which rows are wanted; None for all."""
    chosen = []
    if since is not None:
        chosen.append(pc.field("called_at") >= pa.scalar(since, pa.timestamp("us", "UTC")))
    if run_id is not None:
        chosen.append(pc.field("run_id") == run_id)
    return reduce(operator.and_, chosen) if chosen else None


def _until_read(read: Callable[[], Found]) -> Found:
    """Read from the lake, again where an upkeep removed a file in between."""
    for _ in range(_ATTEMPTS - 1):
        with suppress(StoreError):
            return read()
        time.sleep(0.01)
    return read()


def hit_of(request: Request, answer: StoredAnswer) -> Completion:
    """A stored answer as the answer to a request."""
    return Completion(
        request=request,
        outcome=Outcome(answer.record.outcome),
        text=answer.text,
        called_at=time.time(),
        stored=True,
        error=answer.record.error,
    )


def _batch_call_id(batch_id: str, key: str) -> str:
    """Names a result of a batch, whoever reads it."""
    return hashlib.sha256(f"{batch_id}\n{key}".encode()).hexdigest()[:40]
