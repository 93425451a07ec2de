"""All definitions, gathered in the order of the pipeline."""

from dataclasses import replace

import dagster as dg

from rag_assets.defs.assets.enrichment import ask_questions, classify_documents, summarize_files, summarize_pages
from rag_assets.defs.assets.graph import (
    detect_communities,
    extract_mentions,
    graph_in_use,
    report_communities,
    resolve_entities,
)
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
from rag_assets.defs.jobs import INDEX_JOB, build_reindex_job
from rag_assets.defs.resources import HomeResource, LogProgress, Progress, resources
from rag_assets.defs.sensors import build_full_check, build_schedule, build_sensor

_STEPS = (
    parse,
    chunk,
    summarize_pages,
    summarize_files,
    classify_documents,
    ask_questions,
    cluster_questions,
    summarize_knowledge,
    record_model_calls,
    index_chunks,
    index_summaries,
    index_questions,
    snapshot,
)
GRAPH_STEPS = (
    extract_mentions,
    resolve_entities,
    detect_communities,
    report_communities,
    index_entities,
    index_reports,
)


def build_definitions(home: HomeResource | None = None, progress: Progress | None = None) -> dg.Definitions:
    """All definitions; those of the entity graph where it is in use, since a step that does nothing costs as well.

    Args:
        home: The knowledge base; None for that of environment and file.
        progress: Where steps report how far they are; None for the log.
    """
    chosen = home or HomeResource()
    base = replace(chosen).look()
    steps = (*_STEPS, *(GRAPH_STEPS if graph_in_use(base) else ()))
    keys = {key for each in steps for key in each.keys}
    assets = dg.map_asset_specs(
        lambda spec: spec.replace_attributes(deps=[each for each in spec.deps if each.asset_key in keys]), steps
    )
    operation = base.settings.operation
    reindex_job = build_reindex_job(lambda opened: build_definitions(opened).resolve_job_def(INDEX_JOB.name))
    return dg.Definitions(
        assets=assets,
        asset_checks=[check for check in CHECKS if {each.asset_key for each in check.check_specs} <= keys],
        jobs=[INDEX_JOB, reindex_job],
        sensors=[build_sensor(operation.sensor_seconds)],
        schedules=[build_schedule(operation.schedule_cron), build_full_check(operation.full_check_cron)],
        resources=resources(chosen, progress or LogProgress()),
        executor=dg.in_process_executor,
    )
