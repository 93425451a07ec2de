"""The storages of a run inside a process make and take the databases that Dagster's own do."""

import sqlite3
from contextlib import closing
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.storage.event_log.sqlite import SqliteEventLogStorage
from dagster._core.storage.runs.sqlite import SqliteRunStorage

from rag_assets.defs.run_storages import RunEventStorage, RunTableStorage


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


@pytest.mark.parametrize("made", [b"", None])
def test_a_table_of_runs_that_is_missing_or_empty_is_made_as_dagster_makes_it(
    tmp_path: Path, made: bytes | None
) -> None:
    if made is not None:
        (tmp_path / "runs.db").write_bytes(made)
    SqliteRunStorage.from_local(str(tmp_path / "theirs")).dispose()
    for stored in ([], ["first"]):
        storage = RunTableStorage.from_config_value(None, {"base_dir": str(tmp_path)})
        assert [run.run_id for run in storage.get_runs()] == stored
        if not stored:
            storage.add_run(dg.DagsterRun("job", run_id="first"))
        storage.dispose()
    assert contents(tmp_path / "runs.db") == contents(tmp_path / "theirs" / "runs.db")
