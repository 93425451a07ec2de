"""How long runs are kept in the Dagster instance: so many of the newest, and those that the UI needs for what it shows.

A run goes with its events and its logs, through what Dagster offers for that. The results of its checks, some 10 KB a
run, Dagster itself keeps for good: they are deleted from its table. Ticks of the sensor and the schedule are dropped by
Dagster (`retention` in `dagster.yaml`).
"""

import logging
import shutil
from collections.abc import Iterable
from pathlib import Path

import dagster as dg
import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from rag_assets.defs.active_runs import writes_our_tables
from rag_assets.defs.jobs import REINDEX_JOB_NAME

_LOG = logging.getLogger(__name__)

_CHECK_RESULTS = sa.text("DELETE FROM asset_check_executions WHERE run_id IN :runs").bindparams(
    sa.bindparam("runs", expanding=True)
)
_FINISHED = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]


def drop_old_runs(instance: dg.DagsterInstance, kept_runs: int) -> int:
    """Delete finished runs of this project but the newest ones, and give their number.

    A run that materialized something last, as a shard that has not changed since, stays: without it the UI would show
    that as missing. There are at most as many of these as there are shards and assets.
    """
    try:
        finished = instance.get_runs(dg.RunsFilter(statuses=_FINISHED))
        runs = [run for run in finished if run.job_name == REINDEX_JOB_NAME or writes_our_tables(run)]
        old = runs[kept_runs:]
        needed = _runs_shown(instance) if old else frozenset()
        dropped = [run.run_id for run in old if run.run_id not in needed]
        for run_id in dropped:
            instance.delete_run(run_id)
            instance.compute_log_manager.delete_logs(prefix=[run_id])
        _delete_files(instance, dropped)
        if dropped and (connect := getattr(instance.event_log_storage, "index_connection", None)) is not None:
            with connect() as connection:
                connection.execute(_CHECK_RESULTS, {"runs": dropped})
    except (SQLAlchemyError, OSError) as error:  # the next run tries again
        _LOG.warning("old runs are not deleted from the Dagster instance: %s", error)
        return 0
    return len(dropped)


def _runs_shown(instance: dg.DagsterInstance) -> frozenset[str]:
    """Runs that materialized an asset, or a shard of one, last."""
    kind = dg.DagsterEventType.ASSET_MATERIALIZATION
    found: set[str] = set()
    for key in instance.get_asset_keys():
        newest = [*instance.get_latest_storage_id_by_partition(key, kind).values()]
        if newest:
            chosen = dg.AssetRecordsFilter(asset_key=key, storage_ids=newest)
            found |= {record.run_id for record in instance.fetch_materializations(chosen, limit=len(newest)).records}
        if event := instance.get_latest_materialization_event(key):
            found.add(event.run_id)
    return frozenset(found)


def _delete_files(instance: dg.DagsterInstance, run_ids: Iterable[str]) -> None:
    """Delete what is left on this machine: the database of a run's events, which is empty now, and its folder."""
    databases, folders = Path(instance.root_directory) / "history" / "runs", Path(instance.storage_directory())
    for run_id in run_ids:
        for name in (f"{run_id}.db", f"{run_id}.db-wal", f"{run_id}.db-shm"):
            (databases / name).unlink(missing_ok=True)
        shutil.rmtree(folders / run_id, ignore_errors=True)
