"""The code location: gathers `rag_assets.defs`, in the order of the pipeline."""

from typing import Any

import dagster as dg

from rag_assets.defs.assets.enrichment import ask_questions, classify_documents, summarize_files, summarize_pages
from rag_assets.defs.assets.graph import detect_communities, extract_mentions, report_communities, resolve_entities
from rag_assets.defs.assets.knowledge import cluster_questions, summarize_knowledge
from rag_assets.defs.assets.parsing import chunk, parse
from rag_assets.defs.assets.serving import (
    index_chunks,
    index_entities,
    index_questions,
    index_reports,
    index_summaries,
    record_model_calls,
    snapshot,
)
from rag_assets.defs.checks import CHECKS
from rag_assets.defs.jobs import INDEX_JOB, reindex_documents
from rag_assets.defs.resources import HomeResource, KnowledgeBaseResource, LogProgress
from rag_assets.defs.sensors import build_schedule, build_sensor
from rag_assets.settings import load_settings


def build_definitions(**overrides: Any) -> dg.Definitions:
    """All definitions.

    Args:
        overrides: Resources by name that replace the ordinary ones.
    """
    operation = load_settings().operation
    home = HomeResource(settings={})
    return dg.Definitions(
        assets=[
            parse,
            chunk,
            summarize_pages,
            summarize_files,
            classify_documents,
            ask_questions,
            cluster_questions,
            summarize_knowledge,
            extract_mentions,
            resolve_entities,
            detect_communities,
            report_communities,
            record_model_calls,
            index_chunks,
            index_summaries,
            index_questions,
            index_entities,
            index_reports,
            snapshot,
        ],
        asset_checks=CHECKS,
        jobs=[INDEX_JOB, reindex_documents],
        sensors=[build_sensor(operation.sensor_seconds)],
        schedules=[build_schedule(operation.schedule_cron)],
        resources={
            "home": home,
            "knowledge_base": KnowledgeBaseResource(home=overrides.get("home", home)),
            "progress": LogProgress(),
            **overrides,
        },
        executor=dg.in_process_executor,
    )


defs = build_definitions()
