"""Assets made from the parsed pages: `file_summaries`, `page_summaries`."""

import dagster as dg

from rag_assets.contracts.tables import BLOCKS, DOCUMENTS, FILE_SUMMARIES, PAGE_SUMMARIES, PAGES
from rag_assets.defs.io import materialized, table_spec
from rag_assets.defs.partitions import BACKFILL_POLICY, SHARD_PARTITIONS
from rag_assets.defs.resources import HomeResource, Progress, retried
from rag_assets.enrich.summary_tables import summary_fingerprint, update_file_summaries, update_page_summaries

_GROUP = "enrichment"
_SHOWN = ("document_id", "language", "length_chars", "text")


@dg.multi_asset(
    name="summarize_files",
    specs=[table_spec(FILE_SUMMARIES, [DOCUMENTS.name, PAGES.name, BLOCKS.name], _GROUP, summary_fingerprint())],
    partitions_def=SHARD_PARTITIONS,
    backfill_policy=BACKFILL_POLICY,
)
def summarize_files(
    context: dg.AssetExecutionContext, home: HomeResource, progress: dg.ResourceParam[Progress]
) -> dg.MaterializeResult:  # type: ignore[type-arg]
    """Summarizes each document."""
    base = home.open()
    chars = base.settings.enrichment.file_summary_chars
    with retried():
        report = update_file_summaries(
            base.lake, context.partition_keys, chars, progress.step("summarize files (shards)")
        )
    columns = {"document_id": ("documents", "document_id"), "text": ("blocks", "text")}
    return materialized(context, base.lake, FILE_SUMMARIES, report, _SHOWN, columns)


@dg.multi_asset(
    name="summarize_pages",
    specs=[table_spec(PAGE_SUMMARIES, [PAGES.name, BLOCKS.name, FILE_SUMMARIES.name], _GROUP, summary_fingerprint())],
    partitions_def=SHARD_PARTITIONS,
    backfill_policy=BACKFILL_POLICY,
)
def summarize_pages(
    context: dg.AssetExecutionContext, home: HomeResource, progress: dg.ResourceParam[Progress]
) -> dg.MaterializeResult:  # type: ignore[type-arg]
    """Summarizes each page: a little on its file, then what the page holds."""
    base = home.open()
    chosen = base.settings.enrichment
    with retried():
        report = update_page_summaries(
            base.lake,
            context.partition_keys,
            chosen.page_file_chars,
            chosen.page_summary_chars,
            progress.step("summarize pages (shards)"),
        )
    columns = {"page_id": ("pages", "page_id"), "text": ("blocks", "text")}
    return materialized(context, base.lake, PAGE_SUMMARIES, report, _SHOWN, columns)
