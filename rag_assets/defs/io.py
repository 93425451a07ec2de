"""What the UI is told of the tables that a step wrote: rows, schema, lineage, a preview."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc

from rag_assets.contracts.tables import Table, VectorTable
from rag_assets.home import Home
from rag_assets.plan import plan_step
from rag_assets.store.incremental import StepReport
from rag_assets.store.lake import WHOLE, Lake

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


def table_spec(table: Table, deps: Iterable[str], group: str, code_version: str) -> dg.AssetSpec:
    """Asset of a stored table."""
    return dg.AssetSpec(
        table.name,
        deps=list(deps),
        description=table.description,
        group_name=group,
        kinds={"parquet"},
        owners=["team:rag_assets"],
        code_version=code_version,
        metadata={"dagster/column_schema": table_schema(table.fields), "dagster/table_name": table.name},
    )


def serving_spec(name: str, table: VectorTable, deps: Iterable[str], code_version: str) -> dg.AssetSpec:
    """Asset of a serving table."""
    return dg.AssetSpec(
        name,
        deps=list(deps),
        description=table.description,
        group_name="serving",
        kinds={"lancedb"},
        owners=["team:rag_assets"],
        code_version=code_version,
        metadata={"dagster/column_schema": table_schema(table.fields), "dagster/table_name": f"lancedb.{table.name}"},
    )


def lineage(columns: Mapping[str, tuple[str, str]]) -> dg.TableColumnLineage:
    """Column lineage: which column of which asset each column comes from."""
    return dg.TableColumnLineage(
        deps_by_column={
            column: [dg.TableColumnDep(asset_key=dg.AssetKey(asset), column_name=source)]
            for column, (asset, source) in columns.items()
        }
    )


def materialized(
    context: dg.AssetExecutionContext,
    lake: Lake,
    table: Table,
    report: StepReport,
    shown: Iterable[str],
    columns: Mapping[str, tuple[str, str]],
    **facts: float | str,
) -> dg.MaterializeResult:  # type: ignore[type-arg]
    """Result of a step for one of its tables.

    Args:
        context: Of the step.
        lake: Where the table is.
        table: The table.
        report: What the step did.
        shown: Columns of the preview.
        columns: Where columns come from, as for `lineage`.
        facts: Further figures to show.
    """
    counts = report.row_counts.get(table.name, {})
    for shard in context.partition_keys:
        metadata = {"dagster/partition_row_count": counts.get(shard, 0)}
        context.add_asset_metadata(metadata, asset_key=table.name, partition_key=shard)
    return dg.MaterializeResult(
        asset_key=table.name,
        metadata={
            "dagster/row_count": sum(lake.row_count(table, shard) for shard in lake.latest(table)),
            "documents_computed": report.computed,
            "documents_kept": report.kept,
            "documents_removed": report.removed,
            "files_written": report.written,
            **facts,
            "preview": dg.MetadataValue.md(preview(lake, table, context.partition_keys, list(shown))),
            **({"dagster/column_lineage": lineage(columns)} if columns else {}),
        },
    )


def whole_materialized(lake: Lake, table: Table, **facts: dg.MetadataValue) -> dg.MaterializeResult:  # type: ignore[type-arg]
    """Result of a step for a table that is made as a whole."""
    metadata = {"dagster/row_count": dg.MetadataValue.int(lake.row_count(table, WHOLE)), **facts}
    return dg.MaterializeResult(asset_key=table.name, metadata=metadata)


@contextmanager
def model_facts(base: Home, table: Table, run_id: str, shards: Sequence[str]) -> Iterator[dict[str, float | str]]:
    """Figures to show of the calls of a step: what was planned when it began, and what the ledger says when it ended.

    Args:
        base: The knowledge base.
        table: Table that the step writes.
        run_id: The run.
        shards: Shards of the step.
    """
    facts: dict[str, float | str] = {"language_model": base.language_model_name}
    if base.settings.language_model.provider == "extractive":
        yield facts
        return
    facts["planned_calls"], facts["planned_cost_usd"] = plan_step(base, table.name, shards)
    yield facts
    rows = base.ledger().rows()
    rows = rows.filter(pc.and_(pc.equal(rows["run_id"], run_id), pc.equal(rows["asset"], table.name)))
    paid = rows.filter(pc.invert(rows["cache_hit"]))
    facts |= {
        "calls": paid.num_rows,
        "stored_answers": rows.num_rows - paid.num_rows,
        "failed_calls": pc.sum(pc.not_equal(paid["outcome"], "completed")).as_py() or 0,
        "tokens_read": sum(
            pc.sum(paid[name]).as_py() or 0 for name in ("input_tokens", "cache_read_tokens", "cache_write_tokens")
        ),
        "tokens_written": pc.sum(paid["output_tokens"]).as_py() or 0,
        "cost_usd": pc.sum(paid["cost_usd"]).as_py() or 0.0,
    }


def preview(lake: Lake, table: Table, shards: Iterable[str], columns: list[str]) -> str:
    """The first rows of some shards as a Markdown table."""
    rows: list[dict[str, object]] = []
    for shard in shards:
        if len(rows) < _PREVIEW_ROWS and lake.row_count(table, shard):
            rows += lake.read(table, [shard], columns).slice(0, _PREVIEW_ROWS - len(rows)).to_pylist()
    lines = ["| " + " | ".join(columns) + " |", "|" + " --- |" * len(columns)]
    lines += ["| " + " | ".join(_cell(row[name]) for name in columns) + " |" for row in rows]
    return "\n".join(lines) if rows else "no rows"


def _cell(value: object) -> str:
    text = " ".join(str("" if value is None else value).split())
    text = text if len(text) <= _PREVIEW_CHARS else text[: _PREVIEW_CHARS - 1] + "…"
    escaped = text.replace("\\", "\\\\").replace("|", "\\|")
    return escaped.replace("<", "&lt;").replace("`", "&#96;").replace("[", "&#91;").replace("!", "&#33;")
