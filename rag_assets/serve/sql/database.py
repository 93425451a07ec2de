"""The published tables as DuckDB views, for analysts: stored tables by name, and the queries of `sql/` on top."""

from collections.abc import Mapping
from types import MappingProxyType

import duckdb

from rag_assets.contracts.errors import StoreError
from rag_assets.contracts.tables import TABLES
from rag_assets.store.lake import Lake
from rag_assets.store.queries import read_queries, strip_comments
from rag_assets.store.snapshots import Snapshot


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
        for name, query in read_queries().items():
            connection.execute(f"CREATE VIEW {name} AS {strip_comments(query)}")
    except duckdb.Error as error:
        connection.close()
        raise StoreError(f"SQL views: {error}") from error
    connection.execute("SET lock_configuration = true")
    return connection
