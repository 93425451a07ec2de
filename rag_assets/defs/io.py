"""What the UI is told of the tables that a step wrote: rows, schema, lineage, a preview."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc

from rag_assets.contracts.tables import Table, VectorTable
from rag_assets.models.accounts.ledger import FIGURE_COLUMNS, call_figures
from rag_assets.pipeline.home import Home
from rag_assets.pipeline.steps import Step, StepOutcome, StepWork, TableDisplay
from rag_assets.store.incremental import ShardReport, stand_ins
from rag_assets.store.lake import Lake
from rag_assets.text.plain import markdown_table

Figures = dict[str, float]

_PREVIEW_ROWS = 5
_PREVIEW_CHARS = 60


def table_schema(fields: Iterable[pa.Field]) -> dg.TableSchema:
    """Columns as Dagster shows them."""
    return dg.TableSchema(
        columns=[
            dg.TableColumn(
                field.name,
                str(field.type),
                description=(field.metadata or {}).get(b"description", b"").decode(),
                constraints=dg.TableColumnConstraints(nullable=field.nullable),
            )
            for field in fields
        ]
    )


def asset_spec(
    name: str, table: Table | VectorTable, deps: Iterable[str], group: str, code_version: str
) -> dg.AssetSpec:
    """Asset of a stored table or of a serving table."""
    serves = isinstance(table, VectorTable)
    return dg.AssetSpec(
        name,
        deps=list(deps),
        description=table.description,
        group_name=group,
        kinds={"lancedb" if serves else "parquet"},
        owners=["team:rag_assets"],
        code_version=code_version,
        metadata={
            "dagster/column_schema": table_schema(table.fields),
            "dagster/table_name": f"lancedb.{table.name}" if serves else table.name,
        },
    )


def lineage(columns: Mapping[str, tuple[str, str]]) -> dg.TableColumnLineage:
    """Column lineage: which column of which asset each column comes from."""
    return dg.TableColumnLineage(
        deps_by_column={
            column: [dg.TableColumnDep(asset_key=dg.AssetKey(asset), column_name=source)]
            for column, (asset, source) in columns.items()
        }
    )


@dataclass
class StepFacts:
    """What is shown of a step besides its rows."""

    texts: dict[str, str] = field(default_factory=dict)  # shown as they are
    # figures of all partitions of the run together, by table name
    run: defaultdict[str, Figures] = field(default_factory=lambda: defaultdict(dict))
    # figures of one partition, by table name and shard
    shards: defaultdict[tuple[str, str], Figures] = field(default_factory=lambda: defaultdict(dict))


def table_result(
    context: dg.AssetExecutionContext, step: Step, table: Table, work: StepWork, outcome: StepOutcome, facts: StepFacts
) -> dg.MaterializeResult:  # type: ignore[type-arg]
    """Result of a step for one of its tables.

    Each partition is told its own figures, so that they can be summed; `run_totals` are those of the run, and the same
    for all its partitions.
    """
    lake, report = work.lake, outcome.report
    metadata: dict[str, dg.RawMetadataValue] = {
        "dagster/row_count": sum(lake.row_count(table, shard) for shard in lake.latest(table)),
        **facts.texts,
        **outcome.figures,
        **{name: dg.MetadataValue.md(text()) for name, text in outcome.texts.items()},
        **{name: dg.MetadataValue.json(data) for name, data in outcome.data.items()},
    }
    run = facts.run.get(table.name, {})
    if report is None:
        return dg.MaterializeResult(asset_key=table.name, metadata={**metadata, **run})
    display, counts = step.shown.get(table.name, TableDisplay()), report.row_counts.get(table.name, {})
    for shard in work.shards:
        figures = {"dagster/partition_row_count": counts.get(shard, 0), **_figures(report.of(shard))}
        figures |= facts.shards.get((table.name, shard), {})
        show_partition(context, table.name, shard, figures)
    totals = {"partitions": len(work.shards), **_figures(report.total()), **run}
    metadata["run_totals"] = dg.MetadataValue.json(totals)
    if display.columns:
        metadata["preview"] = dg.MetadataValue.md(preview(lake, table, work.shards, list(display.columns)))
    if display.lineage:
        metadata["dagster/column_lineage"] = lineage(display.lineage)
    return dg.MaterializeResult(asset_key=table.name, metadata=metadata)


def show_partition(context: dg.AssetExecutionContext, asset: str, shard: str, figures: Figures) -> None:
    """Show figures of one partition; of one that the run took on, in an event of its own."""
    if shard in context.partition_keys:
        context.add_asset_metadata(figures, asset_key=asset, partition_key=shard)
    else:
        context.log_event(dg.AssetMaterialization(asset, metadata=figures, partition=shard))


def _figures(report: ShardReport) -> Figures:
    return {
        "documents_computed": report.computed,
        "documents_kept": report.kept,
        "documents_removed": report.removed,
        "files_written": report.written,
    }


@contextmanager
def model_facts(base: Home, step: Step, run_id: str, shards: Sequence[str]) -> Iterator[StepFacts]:
    """What to show of the calls of a step, as the ledger says when it has ended; nothing where none are made."""
    facts = StepFacts({"language_model": step.writer(base)} if step.asks_model else {})
    yield facts
    if step.writer(base) == "extractive":
        return
    rows = base.ledger().rows(run_id=run_id, columns=["asset", "partition", *FIGURE_COLUMNS])
    for table in step.tables:
        if table in step.keyed_apart:
            continue
        of_table = rows.filter(pc.equal(rows["asset"], table.name))
        facts.run[table.name] |= {**call_figures(of_table), "stand_ins": stand_ins(base.lake, table).count}
        for shard in shards:
            of_shard = of_table.filter(pc.equal(of_table["partition"], shard))
            count = stand_ins(base.lake, table, [shard]).count
            facts.shards[table.name, shard] |= {**call_figures(of_shard), "stand_ins": count}


def preview(lake: Lake, table: Table, shards: Iterable[str], columns: list[str]) -> str:
    """The first rows of some shards as a Markdown table."""
    rows: list[dict[str, object]] = []
    for shard in shards:
        if len(rows) < _PREVIEW_ROWS and lake.row_count(table, shard):
            rows += lake.read(table, [shard], columns).slice(0, _PREVIEW_ROWS - len(rows)).to_pylist()
    cells = ([row[name] for name in columns] for row in rows)
    return markdown_table(columns, cells, most_chars=_PREVIEW_CHARS) if rows else "no rows"
