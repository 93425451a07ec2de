"""The event log of a run inside this process: Dagster's own SQLite databases over connections that stay open.

Dagster's storage makes an engine for each statement, which compiles it anew, SQLite checkpoints its log whenever the
last connection closes, and the database of each run is made by all of Dagster's migrations: most of what a small run
takes to record its events. What stays out: runs and schedules, which are few statements; the UI and the daemon, which
read the same files by Dagster's own storage.
"""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from dagster._core.storage.event_log.sqlite import SqliteEventLogStorage
from sqlalchemy import Connection, Engine, create_engine, text

_INDEX = "index"  # the database that Dagster mirrors the events of all runs in
_BUSY_SECONDS = 30  # that a connection waits for another process, as in Dagster
_SCHEMA = "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite%' ORDER BY type = 'index'"


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
