"""Runs queries of strangers, in a process of its own, see `SqlReader`."""

import base64
import json
import math
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, date, datetime
from datetime import time as time_of_day
from pathlib import Path
from typing import Any

import duckdb

from rag_assets.contracts.errors import QueryError, RagAssetsError, StoreError
from rag_assets.contracts.tables import TABLES
from rag_assets.processes.workers import connect, limit_memory, serve
from rag_assets.serve.sql.database import check_select, damaged_table, duckdb_message, open_database
from rag_assets.store.lake import Lake
from rag_assets.store.queries import read_queries
from rag_assets.store.snapshots import Snapshot
from rag_assets.text.plain import message_of

_OVERHEAD_BYTES = 256 << 20  # of Python and Arrow beside what DuckDB counts
_MAX_SAFE_INTEGER = (1 << 53) - 1


class _Database:
    """The database of the version that was asked last."""

    def __init__(self) -> None:
        self._opened: tuple[object, duckdb.DuckDBPyConnection] | None = None
        self.tables = frozenset([*TABLES, *read_queries()])
        self._limited = False
        self.out_of_memory = False  # what is left of it may not do for the next query

    def of(self, lake: Path, snapshot: Snapshot, memory_bytes: int) -> duckdb.DuckDBPyConnection:
        """The database of a version."""
        key = (lake, snapshot, memory_bytes)
        if self._opened is not None and self._opened[0] == key:
            return self._opened[1]
        if self._opened is not None:
            self._opened[1].close()
            self._opened = None
        settings = {
            "memory_limit": f"{memory_bytes}B",
            "threads": "1",
            "temp_directory": "",
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
        }
        connection = open_database(Lake(lake), snapshot, settings)
        if not self._limited:
            connection.sql("SELECT count(*), max(title) FROM documents").fetchall()  # starts what reads files
            limit_memory(memory_bytes + _OVERHEAD_BYTES)
            self._limited = True
        self._opened = key, connection
        return connection


def answer(request: dict[str, Any], database: _Database) -> dict[str, Any]:
    """Run one query; `{"columns": ..., "rows": ...}`, or `{"error": ...}`."""
    connection = database.of(Path(request["lake"]), Snapshot(**request["snapshot"]), request["memory_bytes"])
    began = time.perf_counter()
    timer = threading.Timer(request["seconds"], connection.interrupt)
    timer.start()
    try:
        check_select(connection, request["query"], database.tables)
        connection.execute("BEGIN TRANSACTION READ ONLY")
        relation = connection.sql(request["query"])
        if relation is None:
            raise QueryError("expected a SELECT statement; nothing else is run here")
        columns = [
            {"name": name, "type": str(kind)} for name, kind in zip(relation.columns, relation.types, strict=True)
        ]
        left_bytes = request["result_bytes"] - len(json.dumps(columns, ensure_ascii=False).encode("utf-8", "replace"))
        rows, complete = _rows(relation, request["row_limit"], left_bytes, request["result_bytes"])
    except duckdb.InterruptException as error:
        raise QueryError(f"the query took longer than {request['seconds']:g} seconds") from error
    except (duckdb.OutOfMemoryException, MemoryError) as error:
        database.out_of_memory = True
        raise QueryError("the query took more memory than it may") from error
    except duckdb.Error as error:
        kind = StoreError if damaged_table(error) else QueryError
        raise kind(duckdb_message(error)) from error
    except (ValueError, OverflowError) as error:  # a value that Python has no type for
        raise QueryError(message_of(f"a value of the result cannot be told: {error}")) from error
    finally:
        timer.cancel()
        with suppress(duckdb.Error):  # none was begun
            connection.rollback()
    milliseconds = (time.perf_counter() - began) * 1000
    return {"columns": columns, "rows": rows, "complete": complete, "milliseconds": round(milliseconds, 3)}


def _rows(
    relation: duckdb.DuckDBPyRelation, row_limit: int, left_bytes: int, result_bytes: int
) -> tuple[list[list[object]], bool]:
    rows: list[list[object]] = []
    size = 0
    if left_bytes < 0:
        raise QueryError(f"the columns of the result take more than {result_bytes} bytes: ask for fewer")
    relation_rows = relation.limit(row_limit + 1).fetchall()
    for row in relation_rows[:row_limit]:
        values = [as_json(value) for value in row]
        size += len(json.dumps(values, ensure_ascii=False).encode("utf-8", "replace"))
        if size > left_bytes:
            raise QueryError(f"the result is larger than {result_bytes} bytes: ask for fewer or shorter columns")
        rows.append(values)
    return rows, len(relation_rows) <= row_limit


def as_json(value: object) -> object:  # noqa: PLR0911 - one line a kind
    """A value of a result for JSON: numbers that JSON cannot hold, and all other kinds, as text."""
    match value:
        case None | bool() | str():
            return value
        case int():
            return value if abs(value) <= _MAX_SAFE_INTEGER else str(value)
        case float():
            return value if math.isfinite(value) else str(value)
        case datetime():
            return (value.astimezone(UTC) if value.tzinfo else value).isoformat()
        case date() | time_of_day():
            return value.isoformat()
        case bytes() | bytearray() | memoryview():
            return base64.b64encode(bytes(value)).decode()
        case dict():
            return {str(name): as_json(item) for name, item in value.items()}
        case Sequence():
            return [as_json(item) for item in value]
        case _:
            return str(value)


def main(descriptor: int, lifeline: int) -> None:
    """Answer requests until there are no more, as a process of `Workers`."""
    database = _Database()

    def handle(request: bytes) -> bytes:
        try:
            reply = answer(json.loads(request), database)
        except RagAssetsError as error:
            reply = {"error": str(error), "refused": isinstance(error, QueryError)}
        except duckdb.Error as error:
            reply = {"error": duckdb_message(error), "refused": False}
        return json.dumps(reply, ensure_ascii=False).encode("utf-8", "replace")

    serve(connect(descriptor, lifeline), handle, lambda: database.out_of_memory)
