"""Assets made from the parsed pages: `page_summaries`, `file_summaries`."""

import dagster as dg

from rag_assets.contracts.tables import BLOCKS, DOCUMENTS, FILE_SUMMARIES, PAGE_SUMMARIES, PAGES
from rag_assets.defs.io import materialized, model_facts, table_spec
from rag_assets.defs.partitions import BACKFILL_POLICY, SHARD_PARTITIONS
from rag_assets.defs.resources import HomeResource, Progress, retried
from rag_assets.enrich.summary_tables import summary_fingerprint, update_file_summaries, update_page_summaries

_GROUP = "enrichment"
_SHOWN = ("document_id", "language", "length_chars", "text")
_READ = [DOCUMENTS.name, PAGES.name, BLOCKS.name]


@dg.multi_asset(
    name="summarize_pages",
    specs=[table_spec(PAGE_SUMMARIES, _READ, _GROUP, summary_fingerprint())],
    partitions_def=SHARD_PARTITIONS,
    backfill_policy=BACKFILL_POLICY,
)
def summarize_pages(
    context: dg.AssetExecutionContext, home: HomeResource, progress: dg.ResourceParam[Progress]
) -> dg.MaterializeResult:  # type: ignore[type-arg]
    """Summarizes each page: a little on its file, then what the page holds."""
    base = home.open()
    model = base.language_model(context.run.run_id)
    with retried(), model_facts(base, PAGE_SUMMARIES, context.run.run_id, context.partition_keys) as facts:
        report = update_page_summaries(
            base.lake, context.partition_keys, model, base.summary_lengths, progress.step("summarize pages")
        )
    columns = {"page_id": ("pages", "page_id"), "text": ("blocks", "text")}
    return materialized(context, base.lake, PAGE_SUMMARIES, report, _SHOWN, columns, **facts)


@dg.multi_asset(
    name="summarize_files",
    specs=[table_spec(FILE_SUMMARIES, [*_READ, PAGE_SUMMARIES.name], _GROUP, summary_fingerprint())],
    partitions_def=SHARD_PARTITIONS,
    backfill_policy=BACKFILL_POLICY,
)
def summarize_files(
    context: dg.AssetExecutionContext, home: HomeResource, progress: dg.ResourceParam[Progress]
) -> dg.MaterializeResult:  # type: ignore[type-arg]
    """Summarizes each document: from its text, or from the summaries of its pages where it is long."""
    base = home.open()
    model = base.language_model(context.run.run_id)
    with retried(), model_facts(base, FILE_SUMMARIES, context.run.run_id, context.partition_keys) as facts:
        report = update_file_summaries(
            base.lake, context.partition_keys, model, base.summary_lengths, progress.step("summarize files")
        )
    columns = {"document_id": ("documents", "document_id"), "text": ("blocks", "text")}
    return materialized(context, base.lake, FILE_SUMMARIES, report, _SHOWN, columns, **facts)
