"""Assets that readers see: the ledger `model_calls`, the serving tables, and the published `snapshot`."""

from collections.abc import Callable
from datetime import timedelta

import dagster as dg
import pyarrow as pa

from rag_assets.contracts.fingerprint import code_fingerprint
from rag_assets.contracts.tables import (
    CHUNK_INDEX,
    CHUNKS,
    COMMUNITY_REPORTS,
    DOCUMENT_FACETS,
    DOCUMENTS,
    ENTITIES,
    ENTITY_INDEX,
    ENTITY_MENTIONS,
    FILE_SUMMARIES,
    META_KNOWLEDGE,
    MODEL_CALLS,
    PAGE_SUMMARIES,
    QUESTION_INDEX,
    REPORT_INDEX,
    SUMMARY_INDEX,
    SYNTHETIC_QA,
    TABLES,
    VectorTable,
)
from rag_assets.defs.io import serving_spec, show_partition, table_spec
from rag_assets.defs.partitions import BACKFILL_POLICY, SHARD_PARTITIONS, shards_of_step
from rag_assets.defs.resources import HomeResource, Progress, retried
from rag_assets.defs.retention import drop_old_runs
from rag_assets.pipeline.freshness import unfinished_steps
from rag_assets.pipeline.home import Home
from rag_assets.store.lake import WHOLE, Lake
from rag_assets.store.publish import publish
from rag_assets.store.serving import (
    chunk_rows,
    entity_rows,
    question_rows,
    report_rows,
    serving_fingerprint,
    serving_states,
    summary_rows,
)
from rag_assets.store.vectors.store import SyncResult

LEDGER = "rag_assets.models.accounts.ledger"
WRITTEN_BY_MODELS = (
    PAGE_SUMMARIES.name,
    FILE_SUMMARIES.name,
    DOCUMENT_FACETS.name,
    SYNTHETIC_QA.name,
    META_KNOWLEDGE.name,
    ENTITY_MENTIONS.name,
    ENTITIES.name,
    COMMUNITY_REPORTS.name,
)


@dg.multi_asset(
    name="index_chunks",
    specs=[serving_spec("chunk_index", CHUNK_INDEX, [CHUNKS.name, DOCUMENTS.name], serving_fingerprint())],
    partitions_def=SHARD_PARTITIONS,
    backfill_policy=BACKFILL_POLICY,
    pool="lancedb_write",
)
def index_chunks(
    context: dg.AssetExecutionContext, home: dg.ResourceParam[HomeResource], progress: dg.ResourceParam[Progress]
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
    context: dg.AssetExecutionContext, home: dg.ResourceParam[HomeResource], progress: dg.ResourceParam[Progress]
) -> dg.MaterializeResult:  # type: ignore[type-arg]
    """Embeds summaries that changed and writes them to the serving table."""
    return _sync(context, home.open(), "summary_index", SUMMARY_INDEX, summary_rows, progress.step("embed summaries"))


@dg.multi_asset(
    name="index_questions",
    specs=[
        serving_spec(
            "question_index",
            QUESTION_INDEX,
            [SYNTHETIC_QA.name, DOCUMENT_FACETS.name, DOCUMENTS.name],
            serving_fingerprint(),
        )
    ],
    partitions_def=SHARD_PARTITIONS,
    backfill_policy=BACKFILL_POLICY,
    pool="lancedb_write",
)
def index_questions(
    context: dg.AssetExecutionContext, home: dg.ResourceParam[HomeResource], progress: dg.ResourceParam[Progress]
) -> dg.MaterializeResult:  # type: ignore[type-arg]
    """Embeds questions that changed and writes them to the serving table."""
    return _sync(
        context, home.open(), "question_index", QUESTION_INDEX, question_rows, progress.step("embed questions")
    )


@dg.multi_asset(
    name="index_entities",
    specs=[serving_spec("entity_index", ENTITY_INDEX, [ENTITIES.name], serving_fingerprint())],
    pool="lancedb_write",
)
def index_entities(home: dg.ResourceParam[HomeResource], progress: dg.ResourceParam[Progress]) -> dg.MaterializeResult:  # type: ignore[type-arg]
    """Embeds entities that changed and writes them to the serving table."""
    return _sync_whole(home.open(), "entity_index", ENTITY_INDEX, entity_rows, progress.step("embed entities"))


@dg.multi_asset(
    name="index_reports",
    specs=[serving_spec("report_index", REPORT_INDEX, [COMMUNITY_REPORTS.name], serving_fingerprint())],
    pool="lancedb_write",
)
def index_reports(home: dg.ResourceParam[HomeResource], progress: dg.ResourceParam[Progress]) -> dg.MaterializeResult:  # type: ignore[type-arg]
    """Embeds community reports that changed and writes them to the serving table."""
    return _sync_whole(home.open(), "report_index", REPORT_INDEX, report_rows, progress.step("embed reports"))


def _sync_whole(
    base: Home,
    asset: str,
    table: VectorTable,
    make_rows: Callable[[Lake, str], pa.Table],
    progress: Callable[[int, int], None],
) -> dg.MaterializeResult:  # type: ignore[type-arg]
    states = serving_states(base.lake, table.name, base.embedder.name)  # before the rows are read
    with retried():
        result = base.vectors.sync(table, {WHOLE: make_rows(base.lake, WHOLE)}, base.embedder, progress, states)
    return _synced(base, asset, table, result)


def _sync(
    context: dg.AssetExecutionContext,
    base: Home,
    asset: str,
    table: VectorTable,
    make_rows: Callable[[Lake, str], pa.Table],
    progress: Callable[[int, int], None],
) -> dg.MaterializeResult:  # type: ignore[type-arg]
    states = serving_states(base.lake, table.name, base.embedder.name)  # before the rows are read
    shards = {shard: make_rows(base.lake, shard) for shard in shards_of_step(context)}
    with retried():
        result = base.vectors.sync(table, shards, base.embedder, progress, states)
    for shard, rows in shards.items():
        show_partition(context, asset, shard, {"dagster/partition_row_count": rows.num_rows})
    return _synced(base, asset, table, result)


def _synced(base: Home, asset: str, table: VectorTable, result: SyncResult) -> dg.MaterializeResult:  # type: ignore[type-arg]
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
    specs=[table_spec(MODEL_CALLS, WRITTEN_BY_MODELS, "serving", code_fingerprint(LEDGER))],
    pool="lancedb_write",
)
def record_model_calls(context: dg.AssetExecutionContext, home: dg.ResourceParam[HomeResource]) -> dg.MaterializeResult:  # type: ignore[type-arg]
    """Moves the records of calls from the journals into the ledger."""
    base = home.open()
    with retried():
        added = base.ledger(context.run.run_id).compact()
    counts = [base.lake.row_count(MODEL_CALLS, month) for month in base.lake.latest(MODEL_CALLS)]
    return dg.MaterializeResult(
        asset_key=MODEL_CALLS.name, metadata={"dagster/row_count": sum(counts), "rows_added": added}
    )


@dg.asset(
    deps=[*TABLES, "chunk_index", "summary_index", "question_index", "entity_index", "report_index"],
    group_name="serving",
    kinds={"lancedb", "parquet"},
    owners=["team:rag_assets"],
    description="The version that readers see; they move to it once the blocking checks have passed.",
    pool="lancedb_write",
)
def snapshot(context: dg.AssetExecutionContext, home: dg.ResourceParam[HomeResource]) -> dg.MaterializeResult:  # type: ignore[type-arg]
    """Compacts the serving tables, publishes what is stored now, and drops what is kept no longer."""
    base = home.open()
    operation = base.settings.operation
    with retried():
        published = publish(
            base.lake,
            base.vectors,
            base.snapshots,
            base.pipeline,
            base.embedder,
            operation.kept_snapshots,
            lambda: unfinished_steps(base),
            timedelta(seconds=operation.version_grace_seconds),
        )
    drop_old_runs(context.instance, operation.kept_runs)
    return dg.MaterializeResult(
        metadata={"snapshot": published.number, "published_at": published.published_at, **published.row_counts}
    )
