"""The storages of a run inside this process: Dagster's own SQLite databases over connections that stay open.

Dagster's storages make an engine for each statement, which compiles it anew; SQLite checkpoints its log whenever the
last connection closes; and whatever opens a database reads all of Dagster's migrations to see whether it has been made:
most of what a small run takes to record its events. What stays out: the UI and the daemon, which read the same files by
Dagster's own storages.
"""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from dagster._core.storage.event_log.sqlite import SqliteEventLogStorage
from dagster._core.storage.runs.sqlite import SqliteRunStorage
from dagster._core.storage.schedules.sqlite.sqlite_schedule_storage import SqliteScheduleStorage
from sqlalchemy import Connection, Engine, create_engine, text

_INDEX = "index"  # the database that Dagster mirrors the events of all runs in
_BUSY_SECONDS = 30  # that a connection waits for another process, as in Dagster
_SCHEMA = "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite%' ORDER BY type = 'index'"


class RunTableStorage(SqliteRunStorage):
    """Keeps one connection to the table of runs."""

    def __init__(self, conn_string: str, inst_data: Any = None) -> None:
        super().__init__(conn_string, inst_data)
        self._engine = _engine(conn_string)

    @classmethod
    def from_config_value(cls, inst_data: Any, config_value: Any) -> "RunTableStorage":
        """The storage that the configuration of an instance names; its database is made where missing."""
        file = Path(config_value["base_dir"], "runs.db")
        if _is_made(file):
            return cls(f"sqlite:///{file}", inst_data)
        return cls.from_local(inst_data=inst_data, **config_value)

    @contextmanager
    def connect(self) -> Iterator[Connection]:
        """A connection, in a transaction."""
        with self._engine.begin() as connection:
            yield connection

    def dispose(self) -> None:
        """Close the connections."""
        self._engine.dispose()
        super().dispose()


class RunScheduleStorage(SqliteScheduleStorage):
    """Takes a database that is there as it is."""

    @classmethod
    def from_config_value(cls, inst_data: Any, config_value: Any) -> "RunScheduleStorage":
        """The storage that the configuration of an instance names; its database is made where missing."""
        file = Path(config_value["base_dir"], "schedules.db")
        if not _is_made(file):
            cls.from_local(**config_value)
        return cls(f"sqlite:///{file}", inst_data)


class RunEventStorage(SqliteEventLogStorage):
    """Keeps one connection to the index of events and one to the events of one run."""

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
                connection.executemany("INSERT INTO alembic_version VALUES (?)", [(each,) for each in revisions])

    @contextmanager
    def _begin(self, shard: str) -> Iterator[Connection]:
        with self._lock:
            if shard not in self._engines:
                self._engines[shard] = _engine(self.conn_string_for_shard(shard))
            with self._engines[shard].begin() as connection:
                yield connection

    def dispose(self) -> None:
        """Close the connections."""
        for engine in self._engines.values():
            engine.dispose()
        super().dispose()


def _engine(place: str) -> Engine:
    return create_engine(place, connect_args={"timeout": _BUSY_SECONDS})


def _is_made(database: Path) -> bool:
    """Whether Dagster has made the tables of a database; it marks it with a revision once it has."""
    if not database.exists():
        return False
    with closing(sqlite3.connect(database, timeout=_BUSY_SECONDS)) as connection:
        names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if "alembic_version" not in names or ("runs" in names and "instance_info" not in names):
            return False
        return bool(connection.execute("SELECT 1 FROM alembic_version").fetchall())
