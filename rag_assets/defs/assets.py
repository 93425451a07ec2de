"""The assets, generated from the steps (`rag_assets.pipeline.steps`), and the asset `snapshot` that publishes them."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta

import dagster as dg

from rag_assets.contracts.errors import EvaluationError, InconsistencyError
from rag_assets.contracts.fingerprint import digest
from rag_assets.defs.checks import ACCEPTED, STRUCTURE, accepted_result, step_check_specs, step_checks, structure_result
from rag_assets.defs.io import StepFacts, asset_spec, model_facts, show_partition, table_result
from rag_assets.defs.job_runs import (
    ANYWAY_TAG,
    BACKFILL_POLICY,
    BACKFILL_TAG,
    FULL_CHECK_TAG,
    PARTITION_TAG,
    SHARD_PARTITIONS,
    add_shards,
    drop_old_runs,
    shards_of_other_runs,
    shards_of_step,
)
from rag_assets.defs.resources import HomeResource, Progress, retried
from rag_assets.models.language_models import ExtractiveModel
from rag_assets.pipeline.freshness import step_facts, unfinished_steps
from rag_assets.pipeline.gate import Gate
from rag_assets.pipeline.home import Home
from rag_assets.pipeline.language_models import language_model
from rag_assets.pipeline.steps import STEPS, Step, StepOutcome, StepWork
from rag_assets.store.incremental import clear_shard, clear_whole
from rag_assets.store.lake import WHOLE
from rag_assets.store.snapshots import Snapshot

Result = dg.MaterializeResult | dg.AssetCheckResult  # type: ignore[type-arg]

_OFF = {"switched_off": "graph.enabled"}


def step_assets(step: Step) -> dg.AssetsDefinition:
    """The assets of a step, with its checks."""
    deps = [table.name for table in step.reads]
    version = digest(step.its_code.digest, *(str(table.schema) for table in step.tables))
    tables = {step.asset: step.index} if step.index else {table.name: table for table in step.tables}
    specs = [asset_spec(name, table, deps, step.group, version) for name, table in tables.items()]

    @dg.multi_asset(
        name=step.name,
        description=step.description,
        specs=specs,
        check_specs=step_check_specs(step),
        partitions_def=SHARD_PARTITIONS if step.sharded else None,
        backfill_policy=BACKFILL_POLICY if step.sharded else None,
        pool=step.pool,
    )
    def run(
        context: dg.AssetExecutionContext, home: dg.ResourceParam[HomeResource], progress: dg.ResourceParam[Progress]
    ) -> Iterator[Result]:
        base = home.open()
        work = _work(context, home, base, step, progress)
        with retried():
            if step.graph and step.tables and not base.settings.graph.enabled:
                outcome, facts = _cleared(work, step), StepFacts(_OFF)
            else:
                if step.further is not None:
                    more_shards = step.further(work)
                    if more_shards and step.reads:  # other runs see to theirs
                        more_shards -= shards_of_other_runs(context.instance, context.run.run_id)
                    work = replace(work, shards=add_shards(context, more_shards))
                with model_facts(base, step, context.run.run_id, work.shards) as facts:
                    outcome = step.update(work)
        for table in step.tables:
            for reason, count in outcome.dropped.items():
                facts.run[table.name][f"dropped: {reason}"] = count
            yield table_result(context, step, table, work, outcome, facts)
        if step.index:
            yield _served(context, base, step, outcome)
        yield from step_checks(work, step)

    return run


def _work(
    context: dg.AssetExecutionContext, home: HomeResource, base: Home, step: Step, progress: Progress
) -> StepWork:
    run_id, listing, every = context.run.run_id, None, False
    model = language_model(base, run_id) if step.writer(base) != "extractive" else ExtractiveModel()
    if not step.reads and step.sharded:  # it reads the sources
        listing = base.listing(allow_empty=home.allow_empty)
        for problem in (*listing.unreachable.values(), *listing.omissions):
            context.log.warning(problem)
        # a person chooses shards, not all that changed
        every = not {BACKFILL_TAG, PARTITION_TAG} & context.run.tags.keys()
    return StepWork(
        base,
        base.lake,
        shards_of_step(context) if step.sharded else [WHOLE],
        model,
        progress.step(step.label or step.name.replace("_", " ")),
        listing=listing,
        full_check=home.full_check or FULL_CHECK_TAG in context.run.tags,
        every_change=every,
        run_id=run_id,
    )


def _cleared(work: StepWork, step: Step) -> StepOutcome:
    """Empty the tables of a step that is switched off."""
    if step.sharded:
        return StepOutcome(clear_shard(work.lake, step.tables, work.shards))
    clear_whole(work.lake, step.tables)
    return StepOutcome()


def _served(context: dg.AssetExecutionContext, base: Home, step: Step, outcome: StepOutcome) -> dg.MaterializeResult:  # type: ignore[type-arg]
    if step.sharded:
        for shard, count in outcome.counts.items():
            show_partition(context, step.asset, shard, {"dagster/partition_row_count": count})
    return dg.MaterializeResult(asset_key=step.asset, metadata={**outcome.figures, "embedder": base.embedder.name})


STEP_ASSETS: Mapping[str, dg.AssetsDefinition] = {step.name: step_assets(step) for step in STEPS}


@dg.asset(
    deps=[name for step in STEPS for name in step.assets],
    group_name="serving",
    kinds={"lancedb", "parquet"},
    owners=["team:rag_assets"],
    description="The version that readers see; they move to it once the blocking checks have passed.",
    pool="lancedb_write",
    check_specs=[STRUCTURE, ACCEPTED],
)
def snapshot(context: dg.AssetExecutionContext, home: dg.ResourceParam[HomeResource]) -> Iterator[Result]:
    """Compacts the serving tables, publishes what is stored now, and drops what is kept no longer."""
    base = home.open()
    gate = Gate(base, context.run.tags.get(ANYWAY_TAG))
    try:
        new_version = _published(base, gate)
    except InconsistencyError as error:
        yield structure_result(str(error))
        raise
    except EvaluationError as error:
        yield structure_result(None)
        yield accepted_result(gate, str(error))
        raise
    gate.keep(new_version)
    drop_old_runs(context.instance, base.settings.operation.kept_runs)
    yield dg.MaterializeResult(
        metadata={"snapshot": new_version.number, "published_at": new_version.published_at, **new_version.row_counts}
    )
    yield structure_result(None)
    yield accepted_result(gate)


def _published(base: Home, gate: Gate) -> Snapshot:
    from rag_assets.store.publish import publish

    operation, facts = base.settings.operation, step_facts(base)
    with retried():
        return publish(
            base.lake,
            base.vectors,
            base.snapshots,
            facts,
            base.embedder,
            operation.kept_snapshots,
            lambda: unfinished_steps(base),
            timedelta(seconds=operation.version_grace_seconds),
            gate.check,
        )
