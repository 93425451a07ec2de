"""Assets made from the parsed pages: summaries, facets, questions."""

from collections.abc import Iterator

import dagster as dg

from rag_assets.contracts.tables import (
    BLOCKS,
    CHUNKS,
    DOCUMENT_FACETS,
    DOCUMENT_LINES,
    DOCUMENTS,
    FILE_SUMMARIES,
    PAGE_SUMMARIES,
    PAGES,
    SYNTHETIC_QA,
)
from rag_assets.defs.active_runs import shards_of_other_runs
from rag_assets.defs.io import materialized, model_facts, table_spec
from rag_assets.defs.partitions import BACKFILL_POLICY, SHARD_PARTITIONS, shards_of_step, take_on
from rag_assets.defs.resources import HomeResource, Progress, retried
from rag_assets.enrich.facets.tables import facets_fingerprint, update_facets
from rag_assets.enrich.questions.tables import questions_fingerprint, update_questions
from rag_assets.enrich.summaries.boilerplate import update_document_lines
from rag_assets.enrich.summaries.tables import summary_fingerprint, update_file_summaries, update_page_summaries

_GROUP = "enrichment"
_SHOWN = ("document_id", "language", "length_chars", "text")
_READ = [DOCUMENTS.name, PAGES.name, BLOCKS.name]


@dg.multi_asset(
    name="summarize_pages",
    specs=[table_spec(table, _READ, _GROUP, summary_fingerprint()) for table in (DOCUMENT_LINES, PAGE_SUMMARIES)],
    partitions_def=SHARD_PARTITIONS,
    backfill_policy=BACKFILL_POLICY,
)
def summarize_pages(
    context: dg.AssetExecutionContext, home: dg.ResourceParam[HomeResource], progress: dg.ResourceParam[Progress]
) -> Iterator[dg.MaterializeResult]:  # type: ignore[type-arg]
    """Summarizes each page: a little on its file, then what tells the page from others."""
    base, run_id = home.open(), context.run.run_id
    model = base.language_model(run_id)
    with retried():
        lines = update_document_lines(base.lake, shards_of_step(context), summary_fingerprint())
    again = base.shards_to_weigh_again()
    shards = take_on(context, again - shards_of_other_runs(context.instance, run_id) if again else ())
    with retried(), model_facts(base, [PAGE_SUMMARIES], run_id, shards) as facts:
        report = update_page_summaries(
            base.lake, shards, model, base.options.summaries, progress.step("summarize pages")
        )
    lines.row_counts |= report.row_counts
    yield materialized(context, base.lake, DOCUMENT_LINES, lines, ("document_id",), {})
    columns = {"page_id": ("pages", "page_id"), "text": ("blocks", "text")}
    yield materialized(context, base.lake, PAGE_SUMMARIES, report, _SHOWN, columns, facts)


@dg.multi_asset(
    name="summarize_files",
    specs=[table_spec(FILE_SUMMARIES, [*_READ, PAGE_SUMMARIES.name], _GROUP, summary_fingerprint())],
    partitions_def=SHARD_PARTITIONS,
    backfill_policy=BACKFILL_POLICY,
)
def summarize_files(
    context: dg.AssetExecutionContext, home: dg.ResourceParam[HomeResource], progress: dg.ResourceParam[Progress]
) -> dg.MaterializeResult:  # type: ignore[type-arg]
    """Summarizes each document: from its text, or from the summaries of its pages where it is long."""
    base = home.open()
    model = base.language_model(context.run.run_id)
    with retried(), model_facts(base, [FILE_SUMMARIES], context.run.run_id, shards_of_step(context)) as facts:
        report = update_file_summaries(
            base.lake, shards_of_step(context), model, base.options.summaries, progress.step("summarize files")
        )
    columns = {"document_id": ("documents", "document_id"), "text": ("blocks", "text")}
    return materialized(context, base.lake, FILE_SUMMARIES, report, _SHOWN, columns, facts)


@dg.multi_asset(
    name="classify_documents",
    specs=[table_spec(DOCUMENT_FACETS, [*_READ, FILE_SUMMARIES.name], _GROUP, facets_fingerprint())],
    partitions_def=SHARD_PARTITIONS,
    backfill_policy=BACKFILL_POLICY,
)
def classify_documents(
    context: dg.AssetExecutionContext, home: dg.ResourceParam[HomeResource], progress: dg.ResourceParam[Progress]
) -> dg.MaterializeResult:  # type: ignore[type-arg]
    """Tells what kind of document each one is, by the facets of the taxonomy."""
    base = home.open()
    with retried(), model_facts(base, [DOCUMENT_FACETS], context.run.run_id, shards_of_step(context)) as facts:
        report = update_facets(
            base.lake,
            shards_of_step(context),
            base.language_model(context.run.run_id),
            base.cached_embedder,
            base.taxonomy,
            base.settings.enrichment.read_tokens,
            progress.step("classify"),
        )
    shown = ("document_id", "facet", "value", "confidence")
    return materialized(context, base.lake, DOCUMENT_FACETS, report, shown, {}, facts)


@dg.multi_asset(
    name="ask_questions",
    specs=[
        table_spec(
            SYNTHETIC_QA,
            [CHUNKS.name, BLOCKS.name, DOCUMENT_FACETS.name, DOCUMENT_LINES.name],
            _GROUP,
            questions_fingerprint(),
        )
    ],
    partitions_def=SHARD_PARTITIONS,
    backfill_policy=BACKFILL_POLICY,
)
def ask_questions(
    context: dg.AssetExecutionContext, home: dg.ResourceParam[HomeResource], progress: dg.ResourceParam[Progress]
) -> dg.MaterializeResult:  # type: ignore[type-arg]
    """Makes questions that each document answers, with the passages that their answers rest on."""
    base = home.open()
    model = base.language_model(context.run.run_id)
    with retried(), model_facts(base, [SYNTHETIC_QA], context.run.run_id, shards_of_step(context)) as facts:
        report = update_questions(
            base.lake, shards_of_step(context), model, base.options.questions, progress.step("ask questions")
        )
    columns = {"chunk_ids": ("chunks", "chunk_id")}
    shown = ("document_id", "question", "answer", "grade")
    return materialized(context, base.lake, SYNTHETIC_QA, report, shown, columns, facts)
