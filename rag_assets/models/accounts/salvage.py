"""Saving what can be read of a damaged state database in SQLite.

What stays out: finding the damage and setting the file aside, which is `rag_assets.pipeline.repair`.
"""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa

from rag_assets.contracts.errors import StoreError
from rag_assets.models.accounts.database import StateDatabase
from rag_assets.models.accounts.schema import LEASES, META, OWNERS, RATES, metadata

_AT_ONCE = 256
_LEFT_OUT = {META.name, OWNERS.name, LEASES.name, RATES.name}  # of the moment alone
_MOST_ROWS = 1 << 40  # looked for where a table does not tell how many it has

_ROWS = 'SELECT * FROM "{}" WHERE rowid >= ? AND rowid < ?'
_LAST = 'SELECT max(rowid) FROM "{}"'
_ANY = 'SELECT rowid FROM "{}" WHERE rowid >= ? LIMIT 1'


def salvage(damaged: Path, database: StateDatabase) -> int:
    """Bring what can be read of the file of a damaged database into a new one; number of rows.

    Raises:
        StoreError: The damaged one cannot be opened, or the new one cannot be written.
    """
    saved_count = 0
    try:
        damaged_connection = sqlite3.connect(f"file:{quote(str(damaged))}?mode=ro", uri=True)
    except sqlite3.Error as error:
        raise StoreError(f"{damaged}: cannot be opened: {error}") from error
    with closing(damaged_connection) as source:
        source.row_factory = sqlite3.Row
        for table in metadata.sorted_tables:
            if table.name in _LEFT_OUT:
                continue
            for rows in _readable_rows(source, table.name):
                sound = [values for row in rows if (values := _sound(table, dict(row))) is not None]
                if sound:
                    with database.transaction(durable=True) as connection:
                        connection.execute(database.insert(table), sound)
                    saved_count += len(sound)
    return saved_count


def _readable_rows(source: sqlite3.Connection, name: str) -> Iterator[list[sqlite3.Row]]:
    """Rows by pieces; a piece that cannot be read is halved until what is damaged is left out."""
    try:
        (last,) = source.execute(_LAST.format(name)).fetchone()
    except sqlite3.DatabaseError:
        last = _last_row(source, name)
    pieces = [(first, min(first + _AT_ONCE, last + 1)) for first in range(1, (last or 0) + 1, _AT_ONCE)]
    while pieces:
        first, end = pieces.pop()
        try:
            yield source.execute(_ROWS.format(name), (first, end)).fetchall()
        except (sqlite3.DatabaseError, UnicodeDecodeError):
            if end - first > 1:
                middle = (first + end) // 2
                pieces += [(first, middle), (middle, end)]


def _last_row(source: sqlite3.Connection, name: str) -> int:
    """The last row that can be found where the end of a table cannot be read."""
    last_row, step = 0, 1
    while step < _MOST_ROWS:
        try:
            if source.execute(_ANY.format(name), (step,)).fetchone() is None:
                break
            last_row = step
        except sqlite3.DatabaseError as error:
            if "no such table" in str(error) or "not a database" in str(error) or "malformed database" in str(error):
                return 0
        step *= 2
    return min(2 * last_row, last_row + (1 << 20))


def _sound(table: sa.Table, values: Mapping[str, Any]) -> dict[str, Any] | None:
    """Values of a row of the right kinds, or None."""
    row = {}
    for column in table.columns:
        value = values.get(column.name)
        if value is None:
            if not column.nullable:
                return None
        elif isinstance(column.type, sa.Boolean):
            value = bool(value)
        elif not isinstance(value, _kinds(column.type)):
            return None
        row[column.name] = value
    return row


def _kinds(kind: Any) -> tuple[type, ...]:
    if isinstance(kind, sa.LargeBinary):
        return (bytes,)
    return (int, float) if isinstance(kind, sa.Float | sa.Integer) else (str,)
