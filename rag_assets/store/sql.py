"""The published tables as DuckDB views, for analysts: stored tables by name, and the queries of `sql/` on top."""

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import duckdb

from rag_assets.contracts.errors import StoreError
from rag_assets.contracts.tables import TABLES
from rag_assets.store.lake import Lake
from rag_assets.store.snapshots import Snapshot


def sql_folder() -> Path:
    """Folder of the SQL files: inside an installed package, or at the top of a checkout."""
    package = Path(__file__).parent.parent
    installed = package / "sql"
    return installed if installed.is_dir() else package.parent / "sql"


def read_queries(folder: Path) -> Mapping[str, str]:
    """SQL files of a folder by name, in the order in which views may build on each other."""
    return {path.stem: path.read_text("utf-8") for path in sorted(folder.glob("*.sql"))}


def open_database(
    lake: Lake, snapshot: Snapshot | None, settings: Mapping[str, str] = MappingProxyType({})
) -> duckdb.DuckDBPyConnection:
    """A DuckDB connection with a view for each stored table and each file of `sql/`.

    It reads the files of the snapshot and nothing else, and writes nothing: DuckDB itself may open no file and no
    network address and load no extension; the files are read for it. Tables that a query creates live in memory.

    Args:
        lake: Where the stored tables are.
        snapshot: The version to read; None gives empty tables.
        settings: Further settings of DuckDB, as of memory and threads.

    Raises:
        StoreError: A view cannot be made.
    """
    published = snapshot.tables if snapshot else {}
    files = {
        name: lake.dataset(table, published.get(name, {}) if table.published else None)
        for name, table in TABLES.items()
    }
    spill = str(lake.root.with_name("duckdb"))
    closed = {"enable_external_access": False, "python_enable_replacements": False}
    connection = duckdb.connect(config={**closed, "temp_directory": spill, **settings})
    try:
        for name, dataset in files.items():
            connection.register(name, dataset)
        for name, query in read_queries(sql_folder()).items():
            connection.execute(f"CREATE VIEW {name} AS {strip_comments(query)}")
    except duckdb.Error as error:
        connection.close()
        raise StoreError(f"SQL views: {error}") from error
    connection.execute("SET lock_configuration = true")
    return connection


def strip_comments(query: str) -> str:
    """A query without its leading comment lines and closing semicolon."""
    return re.sub(r"\A(?:\s*--[^\n]*\n)*", "", query).rstrip().removesuffix(";")
