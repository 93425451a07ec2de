"""Assets of the parsed files: `documents`, `pages`, `blocks`, `parse_failures`, `chunks`."""

from collections.abc import Iterator

import dagster as dg

from rag_assets.contracts.tables import BLOCKS, CHUNKS, DOCUMENTS, PAGES, PARSE_FAILURES, Table
from rag_assets.defs.io import materialized, table_spec
from rag_assets.defs.partitions import (
    BACKFILL_POLICY,
    BACKFILL_TAG,
    FULL_CHECK_TAG,
    PARTITION_TAG,
    SHARD_PARTITIONS,
    shards_of_step,
    take_on,
)
from rag_assets.defs.resources import HomeResource, Progress, retried
from rag_assets.parsing.chunks import chunking_code, update_chunks
from rag_assets.parsing.documents import parsing_fingerprint, update_documents
from rag_assets.sources.changes import shards_of_one_change

_GROUP = "parsing"
# columns shown in the preview, and where columns come from
_PARSED: tuple[tuple[Table, tuple[str, ...], dict[str, tuple[str, str]]], ...] = (
    (DOCUMENTS, ("document_id", "format", "status", "title", "page_count"), {}),
    (PAGES, ("page_id", "page_name", "length_chars", "text"), {"document_id": ("documents", "document_id")}),
    (BLOCKS, ("block_id", "kind", "cell_range", "text"), {"page_id": ("pages", "page_id")}),
    (PARSE_FAILURES, ("document_id", "page_number", "cause", "message"), {"document_id": ("documents", "document_id")}),
)


@dg.multi_asset(
    name="parse",
    specs=[table_spec(table, [], _GROUP, parsing_fingerprint()) for table, _, _ in _PARSED],
    partitions_def=SHARD_PARTITIONS,
    backfill_policy=BACKFILL_POLICY,
    pool="parse",
)
def parse(
    context: dg.AssetExecutionContext, home: dg.ResourceParam[HomeResource], progress: dg.ResourceParam[Progress]
) -> Iterator[dg.MaterializeResult]:  # type: ignore[type-arg]
    """Reads the files of the sources that are new or changed into pages and blocks."""
    base = home.open()
    base.lake.check_shard_count()
    listing = base.listing(allow_empty=home.allow_empty)
    for problem in (*listing.unreachable.values(), *listing.omissions):
        context.log.warning(problem)
    chosen = {BACKFILL_TAG, PARTITION_TAG} & context.run.tags.keys()  # by a person: shards, not all that changed
    shards = take_on(context, shards_of_one_change(base.lake, listing, context.partition_keys, every=not chosen))
    with retried():
        report = update_documents(
            base.lake,
            listing,
            shards,
            base.options.parsing,
            base.parsing_workers,
            progress.step("parse"),
            base.parsing_passwords,
            full_check=home.full_check or FULL_CHECK_TAG in context.run.tags,
        )
    for table, shown, columns in _PARSED:
        yield materialized(context, base.lake, table, report, shown, columns)


@dg.multi_asset(
    name="chunk",
    specs=[table_spec(CHUNKS, [DOCUMENTS.name, PAGES.name, BLOCKS.name], _GROUP, chunking_code())],
    partitions_def=SHARD_PARTITIONS,
    backfill_policy=BACKFILL_POLICY,
)
def chunk(
    context: dg.AssetExecutionContext, home: dg.ResourceParam[HomeResource], progress: dg.ResourceParam[Progress]
) -> dg.MaterializeResult:  # type: ignore[type-arg]
    """Cuts the pages into passages."""
    base = home.open()
    chosen = base.settings.chunking
    with retried():
        report = update_chunks(
            base.lake,
            shards_of_step(context),
            base.embedder,
            base.chunking_fingerprint,
            chosen.size_tokens,
            chosen.overlap_share,
            progress.step("chunk (shards)"),
        )
    columns = {"page_id": ("pages", "page_id"), "text": ("blocks", "text"), "context": ("documents", "title")}
    return materialized(context, base.lake, CHUNKS, report, ("chunk_id", "context", "cell_range", "text"), columns)
