"""SQL for strangers: one SELECT over a published version, within limits of time, memory and rows.

Queries run in processes of their own, because DuckDB cannot interrupt every function, nor count all memory that one
takes. What stays out: which statements are refused (`rag_assets.serve.sql.database`).
"""

import json
from dataclasses import asdict, dataclass
from functools import cache

from rag_assets.contracts.errors import QueryError, StoreError
from rag_assets.contracts.tables import TABLES
from rag_assets.processes.workers import WorkerEnded, Workers
from rag_assets.serve.sql.database import view_columns
from rag_assets.store.lake import Lake
from rag_assets.store.queries import describe_column, purpose_of, read_queries
from rag_assets.store.snapshots import Snapshot

_GRACE_SECONDS = 1.0  # for a query to end by itself once it is interrupted


@dataclass(frozen=True)
class SqlLimits:
    """What one query may take."""

    seconds: float  # time
    rows: int  # rows that are given, at most
    memory_bytes: int
    result_bytes: int  # size of the result as JSON


@dataclass(frozen=True)
class SqlColumn:
    """A column of a result.

    Attributes:
        name: Its name.
        type: Its type, as DuckDB names it.
    """

    name: str
    type: str


@dataclass(frozen=True)
class TableColumn:
    """A column of a table or view.

    Attributes:
        name: Its name.
        type: Its type, as DuckDB names it; of a stored table, as Arrow does.
        description: What it holds; empty in agents' list of all tables.
    """

    name: str
    type: str
    description: str


@dataclass(frozen=True)
class SqlResult:
    """The result of a query.

    Attributes:
        columns: Its columns.
        rows: Its rows; numbers that JSON cannot hold, times and the like as text, bytes as Base64.
        complete: Whether there are no more rows than these.
        milliseconds: Time that it took.
    """

    columns: tuple[SqlColumn, ...]
    rows: tuple[tuple[object, ...], ...]
    complete: bool
    milliseconds: float


@dataclass(frozen=True)
class SqlTable:
    """A table or view that can be asked.

    Attributes:
        name: Its name.
        description: What it holds.
        columns: Its columns.
    """

    name: str
    description: str
    columns: tuple[TableColumn, ...]


class SqlReader:
    """Runs queries of strangers. Safe to use from several threads."""

    def __init__(self, lake: Lake, limits: SqlLimits, workers: int) -> None:
        self.limits = limits
        self._lake = lake
        self._workers = Workers("rag_assets.serve.sql.worker", workers)

    def run(self, snapshot: Snapshot, query: str, row_limit: int | None = None) -> SqlResult:
        """Run a query.

        Args:
            snapshot: The version to read.
            query: One SELECT statement.
            row_limit: Rows to give, fewer than the limit allows; None for the limit.

        Raises:
            QueryError: The query is refused, wrong, or took more time, memory or rows than it may.
            StoreError: A stored file is gone.
        """
        limits = self.limits
        request = {
            "lake": str(self._lake.root),
            "snapshot": asdict(snapshot),
            "query": query.encode("utf-8", "replace").decode(),
            "seconds": limits.seconds,
            "row_limit": min(row_limit or limits.rows, limits.rows),
            "memory_bytes": limits.memory_bytes,
            "result_bytes": limits.result_bytes,
        }
        try:
            answer = json.loads(self._workers.ask(json.dumps(request).encode(), limits.seconds + _GRACE_SECONDS))
        except WorkerEnded as error:
            raise QueryError(f"the query was ended: {error}") from error
        if "error" in answer:
            raise (QueryError if answer["refused"] else StoreError)(answer["error"])
        return SqlResult(
            columns=tuple(SqlColumn(**column) for column in answer["columns"]),
            rows=tuple(map(tuple, answer["rows"])),
            complete=answer["complete"],
            milliseconds=answer["milliseconds"],
        )

    def close(self) -> None:
        """End the processes."""
        self._workers.close()


@cache
def sql_tables() -> tuple[SqlTable, ...]:
    """The tables and views that can be asked, by name."""
    stored_tables = [
        SqlTable(
            table.name,
            table.description,
            tuple(TableColumn(field.name, str(field.type), table.describe(field.name)) for field in table.fields),
        )
        for table in TABLES.values()
    ]
    columns_of = view_columns()
    views = [
        SqlTable(
            name,
            purpose_of(query),
            tuple(TableColumn(column, kind, describe_column(query, column)) for column, kind in columns_of[name]),
        )
        for name, query in read_queries().items()
    ]
    return tuple(sorted([*stored_tables, *views], key=lambda table: table.name))
