"""How long runs are kept in the Dagster instance: so many of the newest, and those that the UI needs for what it shows.

A run goes with its events, the results of its checks and its logs, through what Dagster offers for that. Ticks of the
sensor and the schedule are dropped by Dagster itself (`retention` in `dagster.yaml`).
"""

import logging
import shutil
from collections.abc import Collection, Iterable
from pathlib import Path

import dagster as dg
from dagster._core.storage.event_log import SqlEventLogStorage
from dagster._core.storage.event_log.schema import AssetCheckExecutionsTable
from dagster._core.storage.event_log.sqlite import SqliteEventLogStorage
from sqlalchemy import func, select
from sqlalchemy.exc import SQLAlchemyError

from rag_assets.defs.active_runs import writes_our_tables
from rag_assets.defs.jobs import REINDEX_JOB_NAME

_LOG = logging.getLogger(__name__)

_FINISHED = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]


def drop_old_runs(instance: dg.DagsterInstance, kept_runs: int) -> int:
    """Delete finished runs of this project but the newest ones.

    A run that materialized something last, as a shard that has not changed since, stays: without it the UI would show
    that as missing. There are at most as many of these as there are shards and assets.

    Args:
        instance: Where runs are recorded.
        kept_runs: How many stay.

    Returns:
        Number of runs deleted.
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
        _delete_check_results(instance, dropped)
        _delete_files(instance, dropped)
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


def _delete_check_results(instance: dg.DagsterInstance, run_ids: Collection[str]) -> None:
    """Delete results of checks, which Dagster leaves behind, but the last one of each check."""
    storage, table = instance.event_log_storage, AssetCheckExecutionsTable
    if not isinstance(storage, SqlEventLogStorage) or not run_ids:
        return
    newest = select(func.max(table.c.id)).group_by(table.c.asset_key, table.c.check_name)
    with storage.index_connection() as connection:
        connection.execute(table.delete().where(table.c.run_id.in_(run_ids), table.c.id.not_in(newest)))


def _delete_files(instance: dg.DagsterInstance, run_ids: Iterable[str]) -> None:
    """Delete what is left on this machine: the database of a run's events, which is empty now, and its folder."""
    storage = instance.event_log_storage
    for run_id in run_ids:
        if isinstance(storage, SqliteEventLogStorage):
            path = Path(storage.path_for_shard(run_id))
            for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
                path.with_name(name).unlink(missing_ok=True)
        shutil.rmtree(Path(instance.storage_directory()) / run_id, ignore_errors=True)
