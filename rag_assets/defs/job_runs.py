"""The job that indexes, and its runs in the Dagster instance: the shards that they work on, which of them are active,
and how long they are kept.

Assets are partitioned by a fixed number of hash shards of documents. A run starts with a range of shards and takes on
others: those that changed outside of the range, and in its first steps what the sources hold by then, files that moved
between shards, and lines that have become common, so that it publishes one change as a whole. Dagster fixes the
partitions of a run beforehand: what was taken on is a tag of the run.

A run inside `rag-assets index` holds the lock of its home as long as its process lives. One that is recorded as active
while the lock is free was killed: it is recorded as failed, and the places that it held in pools are given back, which
nothing else would do. A run that was created but not started within a minute was given up by who created it.

Finished runs are kept as far as the newest go, and those that the UI needs for what it shows. A run goes with its
events and its logs, through what Dagster offers for that. The results of its checks, some 10 KB a run, Dagster itself
keeps for good: they are deleted from its table. Ticks of the sensor and the schedule are dropped by Dagster
(`retention` in `dagster.yaml`).
"""

import logging
import shutil
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from rag_assets.contracts.errors import StoreError
from rag_assets.pipeline.home import Home
from rag_assets.pipeline.instance import dagster_folder
from rag_assets.pipeline.steps import STEPS
from rag_assets.store.lake import SHARDS

_LOG = logging.getLogger(__name__)

REINDEX_JOB_NAME = "reindex_documents"
INDEX_JOB = dg.define_asset_job(
    "index_sources",
    selection=dg.AssetSelection.all()
    - dg.AssetSelection.groups("evaluation", "training"),  # that measures what is published
    description="Brings the knowledge base in step with its sources. Shards in which nothing changed cost nothing.",
)

SHARD_PARTITIONS = dg.StaticPartitionsDefinition(list(SHARDS))
BACKFILL_POLICY = dg.BackfillPolicy.multi_run(max_partitions_per_run=16)

PARTITION_TAG = "dagster/partition"
BACKFILL_TAG = "dagster/backfill"
RANGE_START_TAG = "dagster/asset_partition_range_start"
RANGE_END_TAG = "dagster/asset_partition_range_end"
TAKEN_ON_TAG = "rag_assets/shards_taken_on"
FULL_CHECK_TAG = "rag_assets/full_check"  # on runs that compare the bytes of every file
ANYWAY_TAG = "rag_assets/publish_anyway"  # who has a version published whatever its check says
IN_PROCESS_TAG = "rag_assets/in_process"  # on runs inside `rag-assets index`: the folder of the home

_START = timedelta(minutes=1)  # that a run has to get from its record to a queue or a process
_ACTIVE = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]
_CHECK_RESULTS = sa.text("DELETE FROM asset_check_executions WHERE run_id IN :runs").bindparams(
    sa.bindparam("runs", expanding=True)
)
_FINISHED = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]


def shard_tags(shards: Collection[str]) -> dict[str, str]:
    """Tags of a run over some shards, at least one.

    Dagster records events for every partition of a range, so the range is the longest stretch without a gap, the first
    of those as long; the run takes on the others.
    """
    stretches: list[list[str]] = []
    for shard in sorted(shards):
        if stretches and SHARDS.index(shard) == SHARDS.index(stretches[-1][-1]) + 1:
            stretches[-1].append(shard)
        else:
            stretches.append([shard])
    longest = max(stretches, key=len)
    other_shards = sorted({*shards} - {*longest})
    taken_on = {TAKEN_ON_TAG: ",".join(other_shards)} if other_shards else {}
    return {RANGE_START_TAG: longest[0], RANGE_END_TAG: longest[-1], **taken_on}


def shards_of_tags(tags: Mapping[str, str]) -> list[str] | None:
    """Shards that the tags of a run name; None where they name none, which means all."""
    taken_on = _taken_on(tags)
    if only := tags.get(PARTITION_TAG):
        return sorted({only, *taken_on})
    if RANGE_START_TAG not in tags:
        return None
    span = dg.PartitionKeyRange(tags[RANGE_START_TAG], tags[RANGE_END_TAG])
    return sorted({*SHARD_PARTITIONS.get_partition_keys_in_range(span), *taken_on})


def shards_of_step(context: dg.AssetExecutionContext) -> list[str]:
    """Shards that a step works on: its partitions, and those that an earlier step of the run took on.

    Raises:
        Failure: The run was launched without any.
    """
    if not context.has_partition_key and not context.has_partition_key_range:
        raise dg.Failure("Choose partitions for this run, or launch it as a backfill.", allow_retries=False)
    # an earlier step may have added to the tags of the run
    run = context.instance.get_run_by_id(context.run.run_id) or context.run
    return sorted({*context.partition_keys, *_taken_on(run.tags)})


def add_shards(context: dg.AssetExecutionContext, shards: Collection[str]) -> list[str]:
    """Have this step and the later ones of the run work on further shards.

    Returns:
        The shards that the step works on now.
    """
    step_shards = shards_of_step(context)
    if not set(shards) <= set(step_shards):
        taken_on = sorted({*step_shards, *shards} - {*context.partition_keys})
        context.instance.add_run_tags(context.run.run_id, {TAKEN_ON_TAG: ",".join(taken_on)})
    return sorted({*step_shards, *shards})


def _taken_on(tags: Mapping[str, str]) -> set[str]:
    return set(filter(None, tags.get(TAKEN_ON_TAG, "").split(",")))


def active_runs(instance: dg.DagsterInstance, home: Home) -> list[dg.DagsterRun]:
    """Runs of the index job that are alive; those of this home whose process died are ended first."""
    try:
        with home.lock():
            _end_dead_runs(instance, home)
    except StoreError:
        pass  # `rag-assets index` is running: its run is alive
    return [run for run in instance.get_runs(dg.RunsFilter(statuses=_ACTIVE)) if writes_our_tables(run)]


def shards_of_other_runs(instance: dg.DagsterInstance, run_id: str) -> frozenset[str]:
    """Shards that the active runs beside one work on."""
    other_runs = [run for run in instance.get_runs(dg.RunsFilter(statuses=_ACTIVE)) if run.run_id != run_id]
    return frozenset(
        shard for run in other_runs if writes_our_tables(run) for shard in shards_of_tags(run.tags) or SHARDS
    )


def writes_our_tables(run: dg.DagsterRun) -> bool:
    """Whether it is a run of the index job, or one that the UI launched over some of its assets."""
    names = {key.to_user_string() for key in run.asset_selection or ()}
    return run.job_name == INDEX_JOB.name or any(table.name in names for step in STEPS for table in step.tables)


def _end_dead_runs(instance: dg.DagsterInstance, home: Home) -> None:
    never_started = dg.RunsFilter(statuses=[dg.DagsterRunStatus.NOT_STARTED], created_before=datetime.now(UTC) - _START)
    for run in instance.get_runs(never_started):
        if writes_our_tables(run):
            instance.report_run_failed(run, "This run was created, but never started.")
    own = dagster_folder(home).is_relative_to(home.path)  # else other homes may have runs there
    for run in instance.get_runs(dg.RunsFilter(job_name=INDEX_JOB.name, statuses=_ACTIVE)):
        of_home = run.tags.get(IN_PROCESS_TAG)
        if of_home is None or (of_home != str(home.path) and not own):  # a home that was copied has another path
            continue
        instance.report_run_failed(run, "The process of this run was killed.")
        instance.event_log_storage.free_concurrency_slots_for_run(run.run_id)


def drop_old_runs(instance: dg.DagsterInstance, kept_runs: int) -> None:
    """Delete finished runs of this project but the newest ones.

    A run that materialized something last, as a shard that has not changed since, stays: without it the UI would show
    that as missing. There are at most as many of these as there are shards and assets.
    """
    try:
        finished_runs = instance.get_runs(dg.RunsFilter(statuses=_FINISHED))
        runs = [run for run in finished_runs if run.job_name == REINDEX_JOB_NAME or writes_our_tables(run)]
        old = runs[kept_runs:]
        needed_ids = _runs_shown(instance) if old else frozenset()
        dropped_ids = [run.run_id for run in old if run.run_id not in needed_ids]
        for run_id in dropped_ids:
            instance.delete_run(run_id)
            instance.compute_log_manager.delete_logs(prefix=[run_id])
        _delete_files(instance, dropped_ids)
        if dropped_ids and (connect := getattr(instance.event_log_storage, "index_connection", None)) is not None:
            with connect() as connection:
                connection.execute(_CHECK_RESULTS, {"runs": dropped_ids})
    except (SQLAlchemyError, OSError) as error:  # the next run tries again
        _LOG.warning("old runs are not deleted from the Dagster instance: %s", error)


def _runs_shown(instance: dg.DagsterInstance) -> frozenset[str]:
    """Runs that materialized an asset, or a shard of one, last."""
    kind = dg.DagsterEventType.ASSET_MATERIALIZATION
    run_ids: set[str] = set()
    for key in instance.get_asset_keys():
        newest = [*instance.get_latest_storage_id_by_partition(key, kind).values()]
        if newest:
            record_filter = dg.AssetRecordsFilter(asset_key=key, storage_ids=newest)
            run_ids |= {
                record.run_id for record in instance.fetch_materializations(record_filter, limit=len(newest)).records
            }
        if event := instance.get_latest_materialization_event(key):
            run_ids.add(event.run_id)
    return frozenset(run_ids)


def _delete_files(instance: dg.DagsterInstance, run_ids: Iterable[str]) -> None:
    """Delete what is left on this machine: the database of a run's events, which is empty now, and its folder."""
    databases, folders = Path(instance.root_directory) / "history" / "runs", Path(instance.storage_directory())
    for run_id in run_ids:
        for name in (f"{run_id}.db", f"{run_id}.db-wal", f"{run_id}.db-shm"):
            (databases / name).unlink(missing_ok=True)
        shutil.rmtree(folders / run_id, ignore_errors=True)
