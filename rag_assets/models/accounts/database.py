"""The state database: what the processes that call language models share. SQLite in the home, or PostgreSQL by URL.

Every change is one short transaction; the tables are in `schema`.

Every transaction outlasts the death of its process. A *durable* one outlasts a power cut, too: batches at once, answers
within a second or so, since syncing each would hold up all that write. Reservations and rates need not: after a power
cut nobody holds them.
"""

import logging
import os
import socket
import sqlite3
import threading
import time
import uuid
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL, Connection, Engine, Row, make_url

from rag_assets.contracts.errors import SettingsError, StoreError
from rag_assets.models.accounts.schema import LEASES, LOCK, META, OWNERS, SCHEMA_VERSION, metadata
from rag_assets.store.files import write_new
from rag_assets.text.plain import one_line

_BUSY_SECONDS = 60.0  # that a transaction waits for those of other processes
_CONNECT_SECONDS = 10  # that a server may take to answer, unless its URL says otherwise
_LEASE_SECONDS = 120.0  # without a sign of life after which a process of another machine counts as dead
_SIGN_SECONDS = 15.0  # between two signs of life
_LOOK_SECONDS = 0.05  # between two looks at a lease that another holds
_MAKING_ATTEMPTS = 10  # while another process makes the tables
_ROWS_AT_ONCE = 500
_log = logging.getLogger(__name__)

Item = TypeVar("Item")

_HOME = "home"  # row of `meta` that names the knowledge base
_LOCKED = sa.select(META.c.value).where(META.c.name == LOCK).with_for_update()
_SEEN = sa.update(OWNERS).where(OWNERS.c.owner == sa.bindparam("me")).values(seen_at=sa.bindparam("now"))


@dataclass
class _Opened:
    """A database that this process has open."""

    engine: Engine
    inode: tuple[int, int] | None  # of the file, so that one that was moved away is noticed; None of a server
    owner: str = field(default_factory=lambda: uuid.uuid4().hex)  # names this process in it
    guard: threading.RLock = field(default_factory=threading.RLock)
    writing: threading.RLock = field(default_factory=threading.RLock)  # held by the thread that uses `writer`
    writer: Connection | None = None  # the one connection of this process that writes to SQLite
    synced_at: float = 0.0  # when it was last synced, by `time.monotonic`
    connections: list[Connection] = field(default_factory=list)  # those that stay: the writer and the readers
    # connections of SQLite that nobody reads with; each statement is a transaction of its own
    readers: deque[Connection] = field(default_factory=deque)
    present: int = 0  # number of sessions and leases, while which signs of life are given
    absent: threading.Event = field(default_factory=threading.Event)

    def connect(self) -> Connection:
        """A connection that stays."""
        self.connections.append(connection := self.engine.connect())
        return connection

    def close(self) -> None:
        """Close all connections."""
        with self.writing:
            for connection in self.connections:
                with suppress(sa.exc.SQLAlchemyError):
                    connection.close()
            self.engine.dispose()


_NO_FILE = (0, 0)
_opened: dict[tuple[int, str, Path | None], _Opened] = {}
_opening = threading.Lock()


class StateDatabase:
    """The state database of a knowledge base; for any number of threads. Made when something is first written.

    Methods raise `StoreError` where the database cannot be used, or belongs to another knowledge base.

    Args:
        location: File of SQLite, or URL of a PostgreSQL database that no other knowledge base uses.
        identity: File that names the knowledge base on all machines, made where it is missing. A server's database
            belongs to the first that uses it: calls of another would vanish into the ledger of the first.

    Attributes:
        path: Its file; None of a server.
    """

    def __init__(self, location: Path | str, identity: Path | None = None) -> None:
        self._url = _url(location)
        self._is_sqlite = self._url.get_backend_name() == "sqlite"
        self.path = Path(self._url.database or "") if self._is_sqlite else None
        self._name = self._url.render_as_string(hide_password=False)
        self._identity = identity

    @property
    def place(self) -> str:
        """What to call it."""
        return str(self.path or self._url.render_as_string(hide_password=True))

    def check(self) -> None:
        """Find out whether it can be used."""
        self._open()

    @contextmanager
    def transaction(
        self, *, durable: bool = False, is_synced: bool = True, exclusive: bool = False
    ) -> Iterator[Connection]:
        """A transaction that writes.

        Args:
            durable: Whether it outlasts a power cut.
            is_synced: Whether a durable one is synced at once; else `sync` is the caller's to call.
            exclusive: Whether no other exclusive transaction may run beside it; with SQLite none ever does.
        """
        with self._readable_errors(), self._writer() as connection:
            connection.begin()
            if not (durable or self._is_sqlite):
                connection.exec_driver_sql("SET LOCAL synchronous_commit = off")
            if exclusive and not self._is_sqlite:
                connection.execute(_LOCKED)
            try:
                yield connection
                connection.commit()
            except BaseException:
                connection.rollback()
                raise
        if durable and is_synced:
            self.sync()

    def sync(self, seconds: float = 0.0) -> bool:
        """Have what was written outlast a power cut, unless that was done in the last seconds; whether it does."""
        handle, now = _opened.get(self._key), time.monotonic()
        if self.path is None or handle is None:  # a server syncs with each transaction, SQLite when it is closed
            return True
        if now - handle.synced_at < seconds:
            return False
        handle.synced_at = now
        # only after the lock was let go: nobody waits for the disk who need not
        with self._readable_errors(), suppress(FileNotFoundError):  # not every file system has a write-ahead log
            log = os.open(f"{self.path}-wal", os.O_RDWR)
            try:
                os.fsync(log)
            finally:
                os.close(log)
        return True

    @contextmanager
    def _writer(self) -> Iterator[Connection]:
        """A connection that writes: with SQLite one for all threads, so that they wait in line rather than asleep."""
        handle = self._open()
        if not self._is_sqlite:
            with handle.engine.connect() as connection:
                yield connection
            return
        with handle.writing:
            if handle.writer is None:
                handle.writer = handle.connect().execution_options(writes=True)
            yield handle.writer

    def read(self, statement: Any, values: Mapping[str, Any] | None = None) -> Sequence[Any]:
        """Rows; none where there is no database yet."""
        with self._reader() as connection:
            return [] if connection is None else connection.execute(statement, values or {}).fetchall()

    def read_row(self, statement: Any, value: str) -> Sequence[Any] | None:
        """The row of a statement with one parameter; None where there is none.

        With SQLite the driver is asked itself, since SQLAlchemy takes several times as long as the look-up.
        """
        with self._reader() as connection:
            if connection is None:
                return None
            if not self._is_sqlite:
                return connection.execute(statement, {"key": value}).first()
            driver: Any = connection.connection.dbapi_connection
            row: Sequence[Any] | None = driver.execute(_compiled(statement), (value,)).fetchone()
            return row

    @contextmanager
    def _reader(self) -> Iterator[Connection | None]:
        """A connection that reads; None where there is no database yet."""
        with self._readable_errors():
            if not self._is_sqlite:
                with self._open().engine.connect() as connection:
                    yield connection
            elif (inode := self._inode()) == _NO_FILE:
                yield None
            else:
                handle = self._open(inode)
                try:
                    connection = handle.readers.pop()
                except IndexError:
                    connection = handle.connect()
                try:
                    yield connection
                finally:
                    handle.readers.append(connection)

    def read_keys(self, statement: Any, keys: Iterable[str]) -> list[Any]:
        """Rows of a statement with the parameter `keys`, for any number of them."""
        return [row for piece in pieces(keys) for row in self.read(statement, {"keys": piece})]

    def insert(self, table: sa.Table) -> Any:
        """An insertion that leaves rows as they are that are there already."""
        if self._is_sqlite:
            return sqlite.insert(table).on_conflict_do_nothing()
        return postgresql.insert(table).on_conflict_do_nothing()

    def insert_all(self, connection: Connection, table: sa.Table, rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert rows with a value for each column, and leave those as they are that are there already.

        With SQLite they go to the driver as they are, since SQLAlchemy takes several times as long as the database.
        """
        if self._is_sqlite:
            names = table.columns.keys()
            connection.exec_driver_sql(_insertion(table), [tuple([row[name] for name in names]) for row in rows])
        else:
            connection.execute(self.insert(table), rows)

    def hold(self, connection: Connection, table: sa.Table) -> None:
        """Let nobody else write to a table until a transaction ends, and wait for who does."""
        if not self._is_sqlite:  # where nobody ever does
            connection.exec_driver_sql(f"LOCK TABLE {table.name} IN SHARE ROW EXCLUSIVE MODE")

    def shrink(self) -> None:
        """Give space back that rows have left."""
        if self._is_sqlite:
            with self._readable_errors(), self._open().engine.connect() as connection:
                driver: Any = connection.connection.dbapi_connection
                driver.execute("PRAGMA incremental_vacuum").fetchall()

    def close(self) -> None:
        """Close the connections of this process, as before the file is moved."""
        with _opening:
            handle = _opened.pop(self._key, None)
        if handle is not None:
            handle.close()

    # Processes

    @property
    def owner(self) -> str:
        """Names this process."""
        return self._open().owner

    @contextmanager
    def presence(self) -> Iterator[None]:
        """While it lasts, others see that this process lives, and that what it holds is held."""
        handle = self._open()
        with handle.guard:
            if not handle.present:
                self._give_sign(handle.owner)
                handle.absent = threading.Event()
                arguments = (handle, handle.absent)
                threading.Thread(target=self._give_signs, args=arguments, name="state-database", daemon=True).start()
            handle.present += 1
        try:
            yield
        finally:
            with handle.guard:
                handle.present -= 1
                if not handle.present:
                    handle.absent.set()
                    with suppress(StoreError), self.transaction() as connection:
                        connection.execute(sa.delete(OWNERS).where(OWNERS.c.owner == handle.owner))

    @contextmanager
    def lease(self, name: str) -> Iterator[None]:
        """Hold something that one process, or thread, may do at a time; of a process that died it is taken over."""
        token = uuid.uuid4().hex
        with self.presence():
            while not self._lease(name, token):
                time.sleep(_LOOK_SECONDS)
            try:
                yield
            finally:
                with self.transaction() as connection:
                    connection.execute(sa.delete(LEASES).where(LEASES.c.token == token))

    def _lease(self, name: str, token: str) -> bool:
        with self.transaction(exclusive=True) as connection:
            lease_owner = connection.execute(
                sa.select(OWNERS).join(LEASES, LEASES.c.owner == OWNERS.c.owner).where(LEASES.c.name == name)
            ).first()
            if lease_owner is not None and is_alive(lease_owner):
                return False
            connection.execute(sa.delete(LEASES).where(LEASES.c.name == name))
            connection.execute(sa.insert(LEASES), {"name": name, "owner": self.owner, "token": token})
            return True

    def _give_sign(self, owner: str) -> None:
        """Say that this process lives, also where another one has taken it for dead."""
        now = time.time()
        with self.transaction() as connection:
            process = {"host": _host(), "pid": os.getpid(), "started": _started(os.getpid()) or ""}
            connection.execute(self.insert(OWNERS), {"owner": owner, **process, "seen_at": now})
            connection.execute(_SEEN, {"me": owner, "now": now})

    def _give_signs(self, handle: _Opened, absent: threading.Event) -> None:
        while not absent.wait(_SIGN_SECONDS):
            with handle.guard:
                if absent.is_set():
                    return
                try:
                    self._give_sign(handle.owner)
                except StoreError as error:
                    _log.warning("%s", error)

    # Opening

    @property
    def _key(self) -> tuple[int, str, Path | None]:
        return os.getpid(), self._name, self._identity

    def _open(self, inode: tuple[int, int] | None = None) -> _Opened:
        handle = _opened.get(self._key)
        if handle is not None and handle.inode == (inode or self._inode()):
            return handle
        with _opening:
            handle = _opened.get(self._key)
            if handle is not None and handle.inode == self._inode():
                return handle
            with self._readable_errors():
                engine = self._engine()
                try:
                    self._make_tables(engine)
                except BaseException:
                    engine.dispose()
                    raise
            _opened[self._key] = new_handle = _Opened(engine, self._inode())
        if handle is not None:
            handle.close()  # waits for who writes to it, who may wait to open the new one
        return new_handle

    def _engine(self) -> Engine:
        if self.path is None:
            limit = {} if "connect_timeout" in self._url.query else {"connect_timeout": _CONNECT_SECONDS}
            return sa.create_engine(self._url, pool_pre_ping=True, pool_size=4, max_overflow=60, connect_args=limit)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        url = self._url
        if self.path.exists() and not os.access(self.path.parent, os.W_OK):
            options = {"mode": "ro", "uri": "true"}
            if not Path(f"{self.path}-wal").exists():  # nobody writes to it
                options["immutable"] = "1"
            url = URL.create("sqlite", database=f"file:{quote(str(self.path))}", query=options)
        engine = sa.create_engine(
            url, poolclass=sa.NullPool, connect_args={"timeout": _BUSY_SECONDS, "isolation_level": None}
        )
        sa.event.listen(engine, "connect", _set_synchronous)
        sa.event.listen(engine, "begin", _begin_at_once)
        return engine

    def _inode(self) -> tuple[int, int] | None:
        if self.path is None:
            return None
        try:
            facts = os.stat(self.path)  # noqa: PTH116 - faster, and asked at every look-up
        except FileNotFoundError:
            return _NO_FILE
        return facts.st_dev, facts.st_ino

    def _make_tables(self, engine: Engine) -> None:
        deadline = time.monotonic() + _BUSY_SECONDS
        for attempt in range(_MAKING_ATTEMPTS):
            try:
                with engine.connect() as connection:
                    is_new = not sa.inspect(connection).has_table(META.name)
                    if is_new and self._is_sqlite:
                        connection.exec_driver_sql("PRAGMA auto_vacuum = INCREMENTAL")
                        connection.exec_driver_sql("PRAGMA journal_mode = WAL")
                        _set_synchronous(connection.connection.dbapi_connection)
                with engine.connect() as connection, connection.execution_options(writes=is_new).begin():
                    if is_new:
                        metadata.create_all(connection, checkfirst=True)
                        rows = [{"name": "schema", "value": SCHEMA_VERSION}, {"name": LOCK, "value": ""}]
                        connection.execute(self.insert(META), rows)
                    version = connection.execute(sa.select(META.c.value).where(META.c.name == "schema")).scalar()
                    if version == SCHEMA_VERSION and self._identity is not None and self.path is None:
                        self._check_identity(connection, self._identity)
                break
            except sa.exc.DBAPIError as error:
                is_last = attempt == _MAKING_ATTEMPTS - 1 or time.monotonic() > deadline
                if is_last or not _is_made_elsewhere(error):
                    raise
                time.sleep(0.05)
        if version != SCHEMA_VERSION:
            raise StoreError(f"{self.place}: written by another release of rag-assets; use that release, or a new home")

    def _check_identity(self, connection: Connection, path: Path) -> None:
        if not path.exists():
            with suppress(FileExistsError):
                write_new(path, uuid.uuid4().hex.encode())
        name = path.read_text("ascii").strip()
        connection.execute(self.insert(META), {"name": _HOME, "value": name})
        owner = connection.execute(sa.select(META.c.value).where(META.c.name == _HOME)).scalar()
        if owner != name:
            raise StoreError(
                f"{self.place}: belongs to another knowledge base ({owner}); set RAG_STATE_URL to a database of its "
                f"own, or write that id into {path} if it is the same"
            )

    @contextmanager
    def _readable_errors(self) -> Iterator[None]:
        """What the database says, in words for a person."""
        try:
            yield
        except (sa.exc.SQLAlchemyError, sqlite3.Error) as error:
            raise StoreError(f"{self.place}: {_problem(error)}") from error
        except OSError as error:
            raise StoreError(f"{self.place}: {error.strerror or type(error).__name__}") from error


def pieces(rows: Iterable[Item]) -> Iterator[list[Item]]:
    """Keys or rows, so many at a time as a statement takes."""
    iterator = iter(rows)
    while piece := list(islice(iterator, _ROWS_AT_ONCE)):
        yield piece


def _set_synchronous(connection: Any, *_: Any) -> None:
    (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
    connection.execute(f"PRAGMA synchronous = {'NORMAL' if mode == 'wal' else 'FULL'}")


def _begin_at_once(connection: Connection) -> None:
    if connection.get_execution_options().get("writes"):
        connection.exec_driver_sql("BEGIN IMMEDIATE")  # else each statement is a transaction of its own


@cache
def _compiled(statement: Any) -> str:
    return str(statement.compile(dialect=sqlite.dialect()))


@cache
def _insertion(table: sa.Table) -> str:
    return str(sqlite.insert(table).on_conflict_do_nothing().compile(dialect=sqlite.dialect()))


def _is_made_elsewhere(error: sa.exc.DBAPIError) -> bool:
    """Whether it may be that another process makes the tables at this moment."""
    return isinstance(error, sa.exc.ProgrammingError | sa.exc.IntegrityError) or "is locked" in str(error.orig)


def _problem(error: Exception) -> str:
    """What is wrong, and what to do."""
    original = getattr(error, "orig", None) or error
    line = one_line(original)
    for sign, problem in _PROBLEMS.items():
        if sign in line:
            return problem
    return f"the state database does not work: {line}"


_PROBLEMS = {
    "is locked": f"another process has held the state database for {_BUSY_SECONDS:.0f} s; end it, or try again",
    "disk is full": "no space is left on the disk",
    "malformed": "the state database is damaged; `rag-assets index` sets it aside and saves what can be read",
    "not a database": "the state database is damaged; `rag-assets index` sets it aside and saves what can be read",
    "readonly": "the state database cannot be written; look at its permissions",
    "unable to open": "the state database cannot be opened; look at its folder and permissions",
    "timeout expired": "the database server does not answer (RAG_STATE_URL)",
    "onnection refused": "the database server does not answer (RAG_STATE_URL)",
    "authentication failed": "the database server refuses the password (RAG_STATE_URL)",
    "does not exist": "the database server does not have it (RAG_STATE_URL)",
}


def _url(location: Path | str) -> URL:
    if isinstance(location, Path):
        return URL.create("sqlite", database=str(location.absolute()))
    try:
        url = make_url(location)
    except sa.exc.ArgumentError as error:
        raise SettingsError("RAG_STATE_URL: expected postgresql://user:password@host/database") from error
    if url.get_backend_name() in {"postgres", "postgresql"}:
        import importlib.util

        if importlib.util.find_spec("psycopg") is None:
            raise SettingsError("RAG_STATE_URL names PostgreSQL: pip install 'rag-assets[postgresql]'")
        return url.set(drivername="postgresql+psycopg")
    raise SettingsError(f"RAG_STATE_URL: expected postgresql://..., found {url.drivername}://...")


@cache
def _host() -> str:
    """Names this machine as far as its processes can be seen from here."""
    parts = [socket.gethostname()]
    with suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
        parts.append(os.readlink("/proc/self/ns/pid"))  # noqa: PTH115 - no path but a name
    return " ".join(parts)


def _started(pid: int) -> str | None:
    """When a process was started, in a form of its own; None where there is no such process."""
    if Path("/proc/self/stat").exists():
        with suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            return None if fields[0] in "ZX" else fields[19]
        return None
    try:
        with suppress(PermissionError):  # it runs, as another user
            os.kill(pid, 0)
    except ProcessLookupError:
        return None
    return ""


def is_alive(owner: "Row[Any]") -> bool:
    """Whether the process of a row of `owners` may still live; of another machine, whether it gave a sign lately."""
    if owner.host == _host():
        return bool(_started(owner.pid) == owner.started)
    return is_heard(owner)


def is_heard(owner: "Row[Any]") -> bool:
    """Whether a process gave a sign of life lately; one that is stopped gives none."""
    return bool(time.time() - owner.seen_at < _LEASE_SECONDS)
