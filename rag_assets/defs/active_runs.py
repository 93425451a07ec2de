"""Which runs of the index job are active, and the end of those whose process died.

A run inside `rag-assets index` holds the lock of its home as long as its process lives. One that is recorded as active
while the lock is free was killed: it is recorded as failed, and the places that it held in pools are given back, which
nothing else would do. A run that was created but not started within a minute was given up by who created it.
"""

from datetime import UTC, datetime, timedelta

import dagster as dg

from rag_assets.contracts.errors import StoreError
from rag_assets.defs.jobs import INDEX_JOB
from rag_assets.defs.partitions import shards_of_tags
from rag_assets.pipeline.home import Home
from rag_assets.pipeline.instance import dagster_folder
from rag_assets.pipeline.steps import STEPS
from rag_assets.store.lake import SHARDS

IN_PROCESS_TAG = "rag_assets/in_process"  # on runs inside `rag-assets index`: the folder of the home

_START = timedelta(minutes=1)  # that a run has to get from its record to a queue or a process
_ACTIVE = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]


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
    others = [run for run in instance.get_runs(dg.RunsFilter(statuses=_ACTIVE)) if run.run_id != run_id]
    return frozenset(shard for run in others if writes_our_tables(run) for shard in shards_of_tags(run.tags) or SHARDS)


def writes_our_tables(run: dg.DagsterRun) -> bool:
    """Whether it is a run of the index job, or one that the UI launched over some of its assets."""
    selected = {key.to_user_string() for key in run.asset_selection or ()}
    return run.job_name == INDEX_JOB.name or any(table.name in selected for step in STEPS for table in step.tables)


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
