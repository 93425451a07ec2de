"""Runs of the index job inside this process, as `rag-assets index` makes them."""

import json
import os
import re
import signal
import sqlite3
import tempfile
import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import dagster as dg
from dagster._core.storage.event_log.sqlite import SqliteEventLogStorage
from sqlalchemy import Connection, Engine, create_engine, text
from sqlalchemy.exc import DatabaseError

from rag_assets.contracts import errors
from rag_assets.contracts.errors import StoreError
from rag_assets.contracts.tables import ENTITY_MENTIONS
from rag_assets.defs.code_location import build_definitions
from rag_assets.defs.job_runs import ANYWAY_TAG, IN_PROCESS_TAG, INDEX_JOB, active_runs, drop_old_runs, shard_tags
from rag_assets.defs.resources import HomeResource, RunProgress
from rag_assets.pipeline.home import Home
from rag_assets.pipeline.instance import instance_environment
from rag_assets.pipeline.steps import STEPS
from rag_assets.store.lake import SHARDS
from rag_assets.text.plain import one_line

_STORAGES = ("storage", "run_storage", "event_log_storage", "schedule_storage")  # in a `dagster.yaml`
_STEP_ENDS = {dg.DagsterEventType.STEP_SUCCESS, dg.DagsterEventType.STEP_FAILURE, dg.DagsterEventType.STEP_SKIPPED}
_INDEX = "index"  # the database that Dagster mirrors the events of all runs in
_BUSY_SECONDS = 30  # that a connection waits for another process, as in Dagster
_SCHEMA = "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite%' ORDER BY type = 'index'"
_SAID_CHARS = 300
_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


def index_in_process(
    home: Home, shards: tuple[str, ...], progress: RunProgress, *, allow_empty: bool = False, full_check: bool = False
) -> None:
    """Materialize all assets over some shards, recorded in the Dagster instance of the knowledge base.

    Args:
        home: The knowledge base.
        shards: Shards to bring in step.
        progress: Told which steps there are, and how far each one is.
        allow_empty: Believe a source that suddenly holds no file.
        full_check: Compare the bytes of every file in the shards.

    Raises:
        KeyboardInterrupt: The run was interrupted.
        StoreError: Another run is active, or a step or a blocking check failed; what was computed is kept, nothing is
            published.
    """
    _run(home, HomeResource(home.settings, allow_empty=allow_empty, full_check=full_check), shards, progress)


def drop_graph_in_process(home: Home, progress: RunProgress) -> None:
    """Empty the tables of the entity graph, publish that as a version, and store that the graph is switched off.

    Raises:
        StoreError: Another run is active, or a step or a blocking check failed; nothing is published.
    """
    without = home.having("graph", enabled=False)
    without.store_settings()
    shards = tuple(home.lake.latest(ENTITY_MENTIONS)) or SHARDS[:1]
    assets = [dg.AssetKey(name) for step in STEPS if step.graph for name in step.assets] + [dg.AssetKey("snapshot")]
    _run(without, HomeResource(without.settings), shards, progress, assets)


def publish_in_process(home: Home, progress: RunProgress, overridden_by: str | None) -> None:
    """Publish what is stored now.

    Args:
        home: The knowledge base.
        progress: Told how far it is.
        overridden_by: Who has it published whatever the gate says; None for nobody.

    Raises:
        StoreError: Another run is active, what is stored does not hold together, or the gate keeps it back.
    """
    tags = {ANYWAY_TAG: overridden_by} if overridden_by else {}
    _run(home, HomeResource(home.settings), SHARDS[:1], progress, [dg.AssetKey("snapshot")], tags)


def _run(
    home: Home,
    resource: HomeResource,
    shards: tuple[str, ...],
    progress: RunProgress,
    assets: Sequence[dg.AssetKey] | None = None,
    further_tags: Mapping[str, str] = MappingProxyType({}),
) -> None:
    os.environ.update(instance_environment(home))
    job = build_definitions(home=resource, progress=progress).resolve_job_def(INDEX_JOB.name)
    if assets is not None:
        job = job.get_subset(asset_selection=frozenset(assets))
    tags = {**shard_tags(shards), IN_PROCESS_TAG: str(home.path), **further_tags}
    run_id = str(uuid.uuid4())
    with _instance(run_id) as instance:
        if active := active_runs(instance, home):
            raise StoreError(
                f"{os.environ['DAGSTER_HOME']}: run {active[0].run_id} of {INDEX_JOB.name} is active: wait for it, or "
                "cancel it in the UI if it was killed"
            )
        _report_steps(instance, run_id, job, progress)
        with _termination_kept():
            try:
                result = job.execute_in_process(
                    instance=instance, tags=tags, run_config=_QUIET, raise_on_error=False, run_id=run_id
                )
            except dg.DagsterExecutionInterruptedError:  # between two steps
                raise KeyboardInterrupt from None
        if not result.success:  # a run that publishes has done so
            drop_old_runs(instance, home.settings.operation.kept_runs)
        if _interrupted(result):
            raise KeyboardInterrupt
        if not result.success:
            raise StoreError(f"run {result.run_id}: {_failure(result)}")


@contextmanager
def _instance(run_id: str) -> Iterator[dg.DagsterInstance]:
    """The Dagster instance, as it serves one run in this process; what its `dagster.yaml` states stays.

    Compute logs would send standard output and error to files; what a library prints is for the one who runs the
    command. Events are stored over connections that stay open.
    """
    folder = Path(os.environ["DAGSTER_HOME"])
    configuration = (folder / "dagster.yaml").read_text(encoding="utf-8")
    additions: dict[str, object] = {}
    if not _states(configuration, "compute_logs"):
        additions["compute_logs"] = {
            "module": "dagster._core.storage.noop_compute_log_manager",
            "class": "NoOpComputeLogManager",
        }
    if not _states(configuration, *_STORAGES):
        place = {"base_dir": str(folder / "history" / "runs"), "run_id": run_id}
        additions["event_log_storage"] = {"module": __name__, "class": RunEventStorage.__name__, "config": place}
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".yaml") as file:
        file.write(configuration + "".join(f"\n{name}: {json.dumps(value)}\n" for name, value in additions.items()))
        file.flush()
        with _instance_errors(folder), dg.DagsterInstance.from_config(str(folder), file.name) as instance:
            yield instance


def _states(configuration: str, *entries: str) -> bool:
    """Whether a `dagster.yaml` has one of some entries."""
    return re.search(rf"^({'|'.join(entries)})\s*:", configuration, re.MULTILINE) is not None


@contextmanager
def _instance_errors(folder: Path) -> Iterator[None]:
    """Say in one line that an instance cannot be used.

    Raises:
        StoreError: Its configuration does not fit, or its databases cannot be read or written.
    """
    try:
        yield
    except dg.DagsterError as error:
        message = one_line(error, _SAID_CHARS)
        raise StoreError(
            f"{folder}: the Dagster instance cannot be used; is dagster.yaml damaged? Correct or remove it: {message}"
        ) from error
    except (DatabaseError, sqlite3.DatabaseError) as error:
        message = one_line(error, _SAID_CHARS)
        raise StoreError(f"{folder}: the history of runs cannot be used; see `rag-assets verify`: {message}") from error


def _report_steps(instance: dg.DagsterInstance, run_id: str, job: dg.JobDefinition, progress: RunProgress) -> None:
    """Report the steps of a run as they begin and end."""

    def report(entry: dg.EventLogEntry) -> None:
        event = entry.dagster_event
        if event is None or event.step_key is None:
            return
        if event.event_type is dg.DagsterEventType.STEP_START:
            progress.begin_step(event.step_key)
        elif event.event_type in _STEP_ENDS:
            progress.end_step(event.step_key)

    progress.begin_run([node.name for node in job.nodes])
    instance.add_event_listener(run_id, report)


@contextmanager
def _termination_kept() -> Iterator[None]:
    """Put the handler of SIGTERM back: Dagster leaves that of SIGINT in its place, which ignores in the background."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, handler)


def _interrupted(result: dg.ExecuteInProcessResult) -> bool:
    errors = [event.step_failure_data.error for event in result.all_events if event.is_step_failure]
    return any(error is not None and error.cls_name == "DagsterExecutionInterruptedError" for error in errors)


def _failure(result: dg.ExecuteInProcessResult) -> str:
    for evaluation in result.get_asset_check_evaluations():
        if evaluation.blocking and not evaluation.passed:
            return f"check {evaluation.check_name} of {evaluation.asset_key.to_user_string()}: {evaluation.description}"
    for event in result.all_events:
        if event.is_step_failure:
            return f"step {event.step_key}: {_message(event.step_failure_data.error)}"
    return "failed"


def _message(error: Any) -> str:
    """Of a chain of errors, what the first of ours says, which is meant for people; else what the last says."""
    ours = {name for name, value in vars(errors).items() if isinstance(value, type)}
    while error is not None and error.cls_name not in ours and error.cause is not None:
        error = error.cause
    return error.message.strip().removeprefix(f"{errors.__name__}.{error.cls_name}: ") if error else "failed"


class RunEventStorage(SqliteEventLogStorage):
    """The event log of a run inside this process: Dagster's own SQLite databases over connections that stay open.

    Dagster's storage makes an engine for each statement, which compiles it anew, SQLite checkpoints its log whenever
    the last connection closes, and the database of each run is made by all of Dagster's migrations: most of what a
    small run takes to record its events. Here one connection to the index of events and one to those of the run are
    kept. What stays out: runs and schedules, which are few statements; the UI and the daemon, which read the same files
    by Dagster's own storage.
    """

    def __init__(self, base_dir: str, run_id: str, inst_data: Any = None) -> None:
        self._run_id = run_id
        self._engines: dict[str, Engine] = {}
        self._lock = threading.RLock()
        super().__init__(base_dir, inst_data)

    @classmethod
    def config_type(cls) -> Any:
        """What the configuration of the instance says of it."""
        return {"base_dir": str, "run_id": str}

    @classmethod
    def from_config_value(cls, inst_data: Any, config_value: Any) -> "RunEventStorage":
        """The storage that the configuration of an instance names."""
        return cls(inst_data=inst_data, **config_value)

    def index_connection(self) -> Any:
        """A connection to the events of all runs, in a transaction."""
        return self._begin(_INDEX)

    def run_connection(self, run_id: str | None = None) -> Any:
        """A connection to the events of a run, in a transaction."""
        if run_id != self._run_id:
            return super().run_connection(run_id)
        with self._lock:
            if run_id not in self._engines:
                self._make_tables(run_id)
        return self._begin(run_id)

    def _make_tables(self, run_id: str) -> None:
        """Give the database of a run the tables of the index, which are the same, and its revision."""
        with self._begin(_INDEX) as index:
            schema = index.scalars(text(_SCHEMA)).all()
            revisions = index.scalars(text("SELECT version_num FROM alembic_version")).all()
        with closing(sqlite3.connect(self.path_for_shard(run_id), timeout=_BUSY_SECONDS)) as connection:
            connection.execute("PRAGMA journal_mode=WAL")
            with connection:
                connection.execute("BEGIN")
                for statement in schema:
                    connection.execute(statement)
                connection.executemany(
                    "INSERT INTO alembic_version VALUES (?)", [(revision,) for revision in revisions]
                )

    @contextmanager
    def _begin(self, shard: str) -> Iterator[Connection]:
        with self._lock:
            if shard not in self._engines:
                place, arguments = self.conn_string_for_shard(shard), {"timeout": _BUSY_SECONDS}
                self._engines[shard] = create_engine(place, connect_args=arguments)
            with self._engines[shard].begin() as connection:
                yield connection

    def dispose(self) -> None:
        """Close the connections."""
        for engine in self._engines.values():
            engine.dispose()
        super().dispose()
