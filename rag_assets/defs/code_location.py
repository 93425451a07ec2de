"""All definitions, gathered in the order of the pipeline."""

from dataclasses import replace

import dagster as dg

from rag_assets.defs.assets import STEP_ASSETS, snapshot
from rag_assets.defs.jobs import INDEX_JOB, build_reindex_job
from rag_assets.defs.resources import HomeResource, LogProgress, Progress, resources
from rag_assets.defs.sensors import build_full_check, build_schedule, build_sensor
from rag_assets.pipeline.steps import STEPS, graph_in_use


def build_definitions(home: HomeResource | None = None, progress: Progress | None = None) -> dg.Definitions:
    """All definitions; those of the entity graph where it is in use, since a step that does nothing costs as well, and
    those of evaluations and training where there is a question set.

    Args:
        home: The knowledge base; None for that of environment and file.
        progress: Where steps report how far they are; None for the log.
    """
    chosen = home or HomeResource()
    base = replace(chosen).look()
    graph = graph_in_use(base)
    steps = [*(STEP_ASSETS[step.name] for step in STEPS if graph or not step.graph), snapshot]
    jobs = [INDEX_JOB]
    if base.settings.evaluation.questions is not None:
        from rag_assets.defs.evaluation import EVALUATION_JOB, evaluation
        from rag_assets.defs.training import REWRITER_JOB, TRAINING_JOB, query_map, ranking_weights, rewriter_model

        steps += [evaluation, ranking_weights, query_map, rewriter_model]
        jobs += [EVALUATION_JOB, TRAINING_JOB, REWRITER_JOB]
    keys = {key for each in steps for key in each.keys}
    assets = dg.map_asset_specs(
        lambda spec: spec.replace_attributes(deps=[each for each in spec.deps if each.asset_key in keys]), steps
    )
    operation = base.settings.operation
    reindex_job = build_reindex_job(lambda opened: build_definitions(opened).resolve_job_def(INDEX_JOB.name))
    return dg.Definitions(
        assets=assets,
        jobs=[*jobs, reindex_job],
        sensors=[build_sensor(operation.sensor_seconds)],
        schedules=[build_schedule(operation.schedule_cron), build_full_check(operation.full_check_cron)],
        resources=resources(chosen, progress or LogProgress()),
        executor=dg.in_process_executor,
    )
