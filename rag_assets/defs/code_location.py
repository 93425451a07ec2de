"""All definitions, gathered in the order of the pipeline, and the job that computes chosen documents anew."""

from dataclasses import replace

import dagster as dg

from rag_assets.defs.assets import STEP_ASSETS, snapshot
from rag_assets.defs.job_runs import INDEX_JOB, REINDEX_JOB_NAME, shard_tags
from rag_assets.defs.resources import HomeResource, LogProgress, Progress, resources
from rag_assets.defs.sensors import build_full_check, build_schedule, build_sensor
from rag_assets.pipeline.freshness import force_documents
from rag_assets.pipeline.language_models import forget_unusable_answers
from rag_assets.pipeline.steps import FORCED, STEPS, graph_in_use

_STEP = dg.Enum("Step", [dg.EnumValue(name) for name in FORCED])
# plain strings: those of `dg.Config` may also name a variable of the environment, whose value a message would show
_REINDEX_CONFIG = {
    "documents": dg.Field([str], description="Document ids or globs, as in `specs/**/*.xlsx`; `*` for all."),
    "steps": dg.Field(
        [_STEP],
        default_value=list(FORCED),
        description="Steps to force for them; later steps follow by themselves.",
    ),
}


@dg.op(
    config_schema=_REINDEX_CONFIG,
    description="Forgets what the chosen documents were computed from and runs `index_sources` over their shards.",
)
def force_and_index(context: dg.OpExecutionContext, home: dg.ResourceParam[HomeResource]) -> list[str]:
    """Returns the ids of the documents."""
    base = home.open()
    result = force_documents(base.lake, context.op_config["documents"], context.op_config["steps"])
    forget_unusable_answers(base, result.documents)
    context.log.info("%d documents in %d shards", len(result.documents), len(result.shards))
    if result.shards:
        job = build_definitions(home).resolve_job_def(INDEX_JOB.name)
        job.execute_in_process(instance=context.instance, tags=shard_tags(result.shards))
    return list(result.documents)


@dg.job(
    name=REINDEX_JOB_NAME,
    description="Computes chosen documents anew, whether they changed or not, and publishes the result.",
)
def reindex() -> None:
    """One op; see its config."""
    force_and_index()


def build_definitions(home: HomeResource | None = None, progress: Progress | None = None) -> dg.Definitions:
    """All definitions; those of the entity graph where it is in use, since a step that does nothing costs as well, and
    those of evaluations and training where there is a question set.

    Args:
        home: The knowledge base; None for that of environment and file.
        progress: Where steps report how far they are; None for the log.
    """
    resource = home or HomeResource()
    base = replace(resource).look()
    graph = graph_in_use(base)
    steps = [*(STEP_ASSETS[step.name] for step in STEPS if graph or not step.graph), snapshot]
    jobs = [INDEX_JOB]
    if base.settings.evaluation.questions is not None:
        from rag_assets.defs import questions

        steps += [questions.evaluation, questions.ranking_weights, questions.query_map, questions.rewriter_model]
        jobs += [questions.EVALUATION_JOB, questions.TRAINING_JOB, questions.REWRITER_JOB]
    keys = {key for asset in steps for key in asset.keys}
    assets = dg.map_asset_specs(
        lambda spec: spec.replace_attributes(deps=[dep for dep in spec.deps if dep.asset_key in keys]), steps
    )
    operation = base.settings.operation
    return dg.Definitions(
        assets=assets,
        jobs=[*jobs, reindex],
        sensors=[build_sensor(operation.sensor_seconds)],
        schedules=[build_schedule(operation.schedule_cron), build_full_check(operation.full_check_cron)],
        resources=resources(resource, progress or LogProgress()),
        executor=dg.in_process_executor,
    )
