"""The event log of a run inside a process makes the databases that Dagster's own does."""

import sqlite3
from contextlib import closing
from pathlib import Path

from dagster._core.storage.event_log.sqlite import SqliteEventLogStorage

from rag_assets.defs.runs import RunEventStorage


def contents(database: Path) -> tuple[list[str], list[object], object]:
    """Schema, revision and journal of a database."""
    with closing(sqlite3.connect(database)) as connection:
        schema = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master").fetchall()
        revisions = connection.execute("SELECT * FROM alembic_version").fetchall()
        return sorted(map(str, schema)), revisions, connection.execute("PRAGMA journal_mode").fetchone()


def test_the_database_of_a_run_is_the_one_that_dagster_makes(tmp_path: Path) -> None:
    theirs, ours = SqliteEventLogStorage(str(tmp_path)), RunEventStorage(str(tmp_path), "ours")
    with theirs.run_connection("theirs"), ours.run_connection("ours"):
        pass
    ours.dispose()
    assert contents(tmp_path / "ours.db") == contents(tmp_path / "theirs.db")
