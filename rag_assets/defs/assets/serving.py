"""Assets that readers see: the ledger `model_calls`, the serving tables, and the published `snapshot`."""

from collections.abc import Callable

import dagster as dg
import pyarrow as pa

from rag_assets.contracts.fingerprint import code_fingerprint
from rag_assets.contracts.tables import (
    CHUNK_INDEX,
    CHUNKS,
    DOCUMENTS,
    FILE_SUMMARIES,
    MODEL_CALLS,
    PAGE_SUMMARIES,
    SUMMARY_INDEX,
    TABLES,
    VectorTable,
)
from rag_assets.defs.io import serving_spec, table_spec
from rag_assets.defs.partitions import BACKFILL_POLICY, SHARD_PARTITIONS
from rag_assets.defs.resources import HomeResource, Progress, retried
from rag_assets.home import Home
from rag_assets.store.lake import Lake
from rag_assets.store.publish import publish
from rag_assets.store.serving import chunk_rows, serving_fingerprint, serving_states, summary_rows

LEDGER = "rag_assets.models.ledger"


@dg.multi_asset(
    name="index_chunks",
    specs=[serving_spec("chunk_index", CHUNK_INDEX, [CHUNKS.name, DOCUMENTS.name], serving_fingerprint())],
    partitions_def=SHARD_PARTITIONS,
    backfill_policy=BACKFILL_POLICY,
    pool="lancedb_write",
)
def index_chunks(
    context: dg.AssetExecutionContext, home: HomeResource, progress: dg.ResourceParam[Progress]
) -> dg.MaterializeResult:  # type: ignore[type-arg]
    """Embeds passages that changed and writes them to the serving table."""
    return _sync(context, home.open(), "chunk_index", CHUNK_INDEX, chunk_rows, progress.step("embed chunks"))


@dg.multi_asset(
    name="index_summaries",
    specs=[
        serving_spec(
            "summary_index",
            SUMMARY_INDEX,
            [FILE_SUMMARIES.name, PAGE_SUMMARIES.name, DOCUMENTS.name],
            serving_fingerprint(),
        )
    ],
    partitions_def=SHARD_PARTITIONS,
    backfill_policy=BACKFILL_POLICY,
    pool="lancedb_write",
)
def index_summaries(
    context: dg.AssetExecutionContext, home: HomeResource, progress: dg.ResourceParam[Progress]
) -> dg.MaterializeResult:  # type: ignore[type-arg]
    """Embeds summaries that changed and writes them to the serving table."""
    return _sync(context, home.open(), "summary_index", SUMMARY_INDEX, summary_rows, progress.step("embed summaries"))


def _sync(
    context: dg.AssetExecutionContext,
    base: Home,
    asset: str,
    table: VectorTable,
    make_rows: Callable[[Lake, str], pa.Table],
    progress: Callable[[int, int], None],
) -> dg.MaterializeResult:  # type: ignore[type-arg]
    states = serving_states(base.lake, table.name, base.embedder.name)  # before the rows are read
    shards = {shard: make_rows(base.lake, shard) for shard in context.partition_keys}
    with retried():
        result = base.vectors.sync(table, shards, base.embedder, progress, states)
    for shard, rows in shards.items():
        metadata = {"dagster/partition_row_count": rows.num_rows}
        context.add_asset_metadata(metadata, asset_key=asset, partition_key=shard)
    return dg.MaterializeResult(
        asset_key=asset,
        metadata={
            "dagster/row_count": base.vectors.count(table.name),
            "rows_written": result.upserted,
            "rows_deleted": result.deleted,
            "rows_unchanged": result.unchanged,
            "texts_embedded": result.embedded,
            "embedder": base.embedder.name,
            "lancedb_version": result.version,
        },
    )


@dg.multi_asset(
    name="record_model_calls",
    specs=[table_spec(MODEL_CALLS, [PAGE_SUMMARIES.name, FILE_SUMMARIES.name], "serving", code_fingerprint(LEDGER))],
    pool="lancedb_write",
)
def record_model_calls(context: dg.AssetExecutionContext, home: HomeResource) -> dg.MaterializeResult:  # type: ignore[type-arg]
    """Moves the records of calls from the journals into the ledger."""
    base = home.open()
    with retried():
        added = base.ledger(context.run.run_id).compact()
    counts = [base.lake.row_count(MODEL_CALLS, month) for month in base.lake.latest(MODEL_CALLS)]
    return dg.MaterializeResult(
        asset_key=MODEL_CALLS.name, metadata={"dagster/row_count": sum(counts), "rows_added": added}
    )


@dg.asset(
    deps=[*TABLES, "chunk_index", "summary_index"],
    group_name="serving",
    kinds={"lancedb", "parquet"},
    owners=["team:rag_assets"],
    description="The version that readers see; they move to it once the blocking checks have passed.",
    pool="lancedb_write",
)
def snapshot(home: HomeResource) -> dg.MaterializeResult:  # type: ignore[type-arg]
    """Compacts the serving tables and publishes what is stored now."""
    base = home.open()
    with retried():
        published = publish(
            base.lake,
            base.vectors,
            base.snapshots,
            base.pipeline,
            base.embedder,
            base.settings.operation.kept_snapshots,
            base.unfinished_steps,
        )
    return dg.MaterializeResult(
        metadata={"snapshot": published.number, "published_at": published.published_at, **published.row_counts}
    )
