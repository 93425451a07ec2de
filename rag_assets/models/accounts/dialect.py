"""What differs between the databases that hold the state: SQLite and PostgreSQL."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL, Connection, Engine

from rag_assets.models.accounts.schema import LOCK, META

BUSY_SECONDS = 60.0  # that a transaction waits for those of other processes
_CONNECT_SECONDS = 10  # that a server may take to answer, unless its URL says otherwise
_HELD = sa.select(META.c.value).where(META.c.name == LOCK).with_for_update()


class Dialect:
    """One of the two databases, by its URL."""

    def __init__(self, url: URL) -> None:
        self.url = url
        self.is_sqlite = url.get_backend_name() == "sqlite"
        self.path = Path(url.database or "") if self.is_sqlite else None  # None of a server

    def engine(self) -> Engine:
        if not self.is_sqlite:
            limit = {} if "connect_timeout" in self.url.query else {"connect_timeout": _CONNECT_SECONDS}
            return sa.create_engine(self.url, pool_pre_ping=True, pool_size=4, max_overflow=60, connect_args=limit)
        assert self.path is not None
        self.path.parent.mkdir(parents=True, exist_ok=True)
        url = self.url
        if self.path.exists() and not os.access(self.path.parent, os.W_OK):
            options = {"mode": "ro", "uri": "true"}
            if not Path(f"{self.path}-wal").exists():  # nobody writes to it
                options["immutable"] = "1"
            url = URL.create("sqlite", database=f"file:{quote(str(self.path))}", query=options)
        engine = sa.create_engine(
            url, poolclass=sa.NullPool, connect_args={"timeout": BUSY_SECONDS, "isolation_level": None}
        )
        sa.event.listen(engine, "connect", self._connected)
        sa.event.listen(engine, "begin", self._begun)
        return engine

    @staticmethod
    def _connected(connection: Any, *_: Any) -> None:
        (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
        connection.execute(f"PRAGMA synchronous = {'NORMAL' if mode == 'wal' else 'FULL'}")

    @staticmethod
    def _begun(connection: Connection) -> None:
        if connection.get_execution_options().get("writes"):
            connection.exec_driver_sql("BEGIN IMMEDIATE")  # else each statement is a transaction of its own

    def prepare(self, connection: Connection) -> None:
        """Before the first table is made."""
        if self.is_sqlite:
            connection.exec_driver_sql("PRAGMA auto_vacuum = INCREMENTAL")
            connection.exec_driver_sql("PRAGMA journal_mode = WAL")
            self._connected(connection.connection.dbapi_connection)

    def begin(self, connection: Connection, *, durable: bool, exclusive: bool) -> None:
        """Begin a transaction that writes."""
        connection.begin()
        if self.is_sqlite:
            return
        if not durable:
            connection.exec_driver_sql("SET LOCAL synchronous_commit = off")
        if exclusive:
            connection.execute(_HELD)

    def sync(self) -> None:
        """Sync what was committed, after the lock was let go: nobody waits for the disk who need not."""
        if self.is_sqlite:
            with suppress(FileNotFoundError):  # not every file system has a write-ahead log
                opened = os.open(f"{self.path}-wal", os.O_RDWR)
                try:
                    os.fsync(opened)
                finally:
                    os.close(opened)

    def insert(self, table: sa.Table) -> Any:
        """An insertion that leaves rows as they are that are there already."""
        if self.is_sqlite:
            return sqlite.insert(table).on_conflict_do_nothing()
        return postgresql.insert(table).on_conflict_do_nothing()

    def hold(self, connection: Connection, table: sa.Table) -> None:
        """Let nobody else write to a table until the transaction ends, and wait for who does."""
        if not self.is_sqlite:  # where nobody ever does
            connection.exec_driver_sql(f"LOCK TABLE {table.name} IN SHARE ROW EXCLUSIVE MODE")

    def shrink(self, connection: Connection) -> None:
        """Give space back that rows have left."""
        if self.is_sqlite:
            raw: Any = connection.connection.dbapi_connection
            raw.execute("PRAGMA incremental_vacuum").fetchall()
