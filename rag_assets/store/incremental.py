"""Bring shards of stored tables in step with their inputs, computing only what changed.

One step of the pipeline is one call: for each shard it is told what every document should be computed from, keeps the
rows whose inputs are what they were, has the others computed, drops those that are gone, and writes.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from rag_assets.contracts.tables import Table
from rag_assets.store.lake import WHOLE, Lake

_MARK = re.compile(r"(?P<state>again|settled)\[(?P<causes>[^\]]*)\]:(?P<key>.*)", re.DOTALL)

Rows = Mapping[str, pa.Table]  # new rows by table name
Compute = Callable[[Sequence[str]], Rows]  # document ids of one shard -> their rows


@dataclass
class ShardReport:
    """What a step did in one shard."""

    computed: int = 0  # documents computed
    kept: int = 0  # documents whose rows were kept
    removed: int = 0  # documents whose rows were dropped because they are gone
    written: int = 0  # files written


@dataclass
class StepReport:
    """What a step did."""

    shards: dict[str, ShardReport] = field(default_factory=dict)  # by shard
    row_counts: dict[str, dict[str, int]] = field(default_factory=dict)  # rows of each shard, by table name and shard

    def of(self, shard: str) -> ShardReport:
        """What it did in a shard, to be added to."""
        return self.shards.setdefault(shard, ShardReport())

    def total(self) -> ShardReport:
        """What it did in all shards together."""
        facts = (
            (shard_report.computed, shard_report.kept, shard_report.removed, shard_report.written)
            for shard_report in self.shards.values()
        )
        return ShardReport(*map(sum, zip(*facts, strict=True)))


def marked_stand_ins(key: str, causes: Mapping[str, int], *, again: bool) -> str:
    """Input to note of rows of which some stand in for those that a language model did not write.

    Args:
        key: What the rows were computed from.
        causes: How many answers are missing, by cause; nothing is noted where there are none and `again` is not set.
        again: Whether the next run asks for them; the rows count as done in either case.
    """
    if not causes and not again:
        return key
    cause_list = ",".join(f"{cause}={count}" for cause, count in sorted(causes.items()))
    return f"{'again' if again else 'settled'}[{cause_list}]:{key}"


def finished(inputs: Mapping[str, str]) -> dict[str, str]:
    """Inputs without the marks of `marked_stand_ins`."""
    return {name: mark["key"] if (mark := _MARK.fullmatch(key)) else key for name, key in inputs.items()}


def settled(inputs: Mapping[str, str]) -> dict[str, str]:
    """Inputs without the marks of stand-ins that no run asks for again, so that they equal what is wanted."""
    return {
        name: mark["key"] if (mark := _MARK.fullmatch(key)) and mark["state"] == "settled" else key
        for name, key in inputs.items()
    }


@dataclass
class StandIns:
    """What stands in for answers that a language model did not give."""

    causes: Counter[str] = field(default_factory=Counter)  # how many answers are missing, by cause
    marked: int = 0  # documents with any; 1 of a table that is made as a whole
    again: int = 0  # of these: documents that the next run asks for again
    total: int = 0  # documents in all

    @property
    def count(self) -> int:
        """How many answers are missing."""
        return self.causes.total()

    @property
    def reasons(self) -> str:
        """The causes in words, the most frequent first."""
        return ", ".join(f"{cause} {count}" for cause, count in self.causes.most_common())


def stand_ins(lake: Lake, table: Table, shards: Sequence[str] | None = None) -> StandIns:
    """What stands in for answers of a language model in some shards of a table, or in all."""
    result = StandIns()
    for shard in lake.latest(table) if shards is None else shards:
        inputs = lake.inputs(table, shard)
        result.total += len(inputs)
        for key in inputs.values():
            if mark := _MARK.fullmatch(key):
                pairs = (item.partition("=") for item in mark["causes"].split(",") if item)
                result.causes.update({cause: int(count) for cause, _, count in pairs})
                result.marked += 1
                result.again += mark["state"] == "again"
    return result


def stale_documents(lake: Lake, tables: Sequence[Table], shard: str, wanted: Mapping[str, str]) -> list[str]:
    """Documents of a shard whose rows in any of the tables were computed from something else, in order of id."""
    stored_inputs = [settled(lake.inputs(table, shard)) for table in tables]
    return sorted(name for name, key in wanted.items() if any(inputs.get(name) != key for inputs in stored_inputs))


def update_shard(
    lake: Lake, tables: Sequence[Table], shard: str, wanted: Mapping[str, str], compute: Compute, report: StepReport
) -> None:
    """Bring one shard of tables that are computed together in step.

    `wanted` is a digest of what each document of the shard is to be computed from; `compute` gives, for some of them,
    the rows of every table, and is not called where nothing changed. The report is added to.
    """
    stale = stale_documents(lake, tables, shard, wanted)
    gone_ids = {name for table in tables for name in lake.inputs(table, shard)} - wanted.keys()
    fresh = compute(stale) if stale else {}
    for table in tables:
        if stale or gone_ids:
            replace_documents(
                lake, table, shard, fresh.get(table.name), {name: wanted[name] for name in stale}, gone_ids, report
            )
        else:
            report.row_counts.setdefault(table.name, {})[shard] = lake.row_count(table, shard)
    shard_report = report.of(shard)
    shard_report.computed += len(stale)
    shard_report.removed += len(gone_ids)
    shard_report.kept += len(wanted) - len(stale)


def replace_documents(
    lake: Lake,
    table: Table,
    shard: str,
    rows: pa.Table | None,
    inputs: Mapping[str, str],
    gone: Iterable[str],
    report: StepReport,
) -> None:
    """Replace the rows of some documents of a shard, computed from `inputs`, and drop those of others; all else stays.
    The report is added to.
    """
    dropped_ids = {*inputs, *gone}
    old_rows = lake.read(table, [shard])
    if dropped_ids:
        old_rows = old_rows.filter(pc.invert(pc.is_in(old_rows["document_id"], pa.array(dropped_ids, pa.string()))))
    all_rows = (
        old_rows
        if rows is None
        else pa.concat_tables([old_rows, rows.select(old_rows.column_names).cast(old_rows.schema)])
    )
    kept_inputs = {name: key for name, key in lake.inputs(table, shard).items() if name not in dropped_ids}
    result = lake.write(table, shard, all_rows, {**kept_inputs, **inputs})
    report.of(shard).written += result.written
    report.row_counts.setdefault(table.name, {})[shard] = result.row_count


def invalidate_documents(lake: Lake, tables: Sequence[Table], shard: str, documents: Iterable[str]) -> None:
    """Forget what some documents were computed from, so that the next update computes them anew; rows stay."""
    names = set(documents)
    for table in tables:
        inputs = lake.inputs(table, shard)
        if names & inputs.keys():
            forced_inputs = {name: ("forced" if name in names else key) for name, key in inputs.items()}
            lake.write(table, shard, lake.read(table, [shard]), forced_inputs)


def clear_shard(lake: Lake, tables: Sequence[Table], shards: Sequence[str]) -> StepReport:
    """Drop all rows of some shards of tables whose step is switched off."""
    report = StepReport()
    for shard in shards:
        update_shard(lake, tables, shard, {}, lambda documents: {}, report)  # noqa: ARG005 - never asked
    return report


def clear_whole(lake: Lake, tables: Sequence[Table]) -> None:
    """Drop all rows of tables that are made as a whole and whose step is switched off."""
    for table in tables:
        if lake.row_count(table, WHOLE):
            lake.write(table, WHOLE, table.schema.empty_table(), {WHOLE: "off"})
