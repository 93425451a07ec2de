"""The event log of a run inside this process: Dagster's own SQLite databases over connections that stay open.

Dagster's storage makes an engine for each event, which compiles its statements anew, and SQLite checkpoints its log
whenever the last connection closes: three quarters of what a small run takes to record its events. What stays out: the
UI and the daemon, which read the same files by Dagster's own storage.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dagster._core.storage.event_log.sqlite import SqliteEventLogStorage
from dagster._serdes import ConfigurableClassData
from sqlalchemy import Connection, Engine, create_engine

_INDEX = "index"  # the database that Dagster mirrors the events of all runs in
_BUSY_SECONDS = 30  # that a connection waits for another process, as in Dagster


class RunEventStorage(SqliteEventLogStorage):
    """Keeps one connection to the index of events and one to the events of one run.

    Args:
        base_dir: Folder of the databases.
        run_id: The run.
        inst_data: How the instance is configured.
    """

    def __init__(self, base_dir: str, run_id: str, inst_data: ConfigurableClassData | None = None) -> None:
        self._run_id = run_id
        self._engines: dict[str, Engine] = {}
        self._lock = threading.RLock()
        super().__init__(base_dir, inst_data)

    @classmethod
    def config_type(cls) -> Any:
        """What the configuration of the instance says of it."""
        return {"base_dir": str, "run_id": str}

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData | None, config_value: Any) -> "RunEventStorage":
        """The storage that the configuration of an instance names."""
        return cls(inst_data=inst_data, **config_value)

    def index_connection(self) -> Any:
        """A connection to the events of all runs, in a transaction."""
        return self._begin(_INDEX)

    def run_connection(self, run_id: str | None = None) -> Any:
        """A connection to the events of a run, in a transaction."""
        if run_id != self._run_id:
            return super().run_connection(run_id)
        if run_id not in self._engines:
            with super().run_connection(run_id):  # makes its tables
                pass
        return self._begin(run_id)

    @contextmanager
    def _begin(self, shard: str) -> Iterator[Connection]:
        with self._lock:
            if shard not in self._engines:
                place = self.conn_string_for_shard(shard)
                self._engines[shard] = create_engine(place, connect_args={"timeout": _BUSY_SECONDS})
            with self._engines[shard].begin() as connection:
                yield connection

    def dispose(self) -> None:
        """Close the connections."""
        for engine in self._engines.values():
            engine.dispose()
        super().dispose()
