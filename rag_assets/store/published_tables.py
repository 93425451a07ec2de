"""The published tables as files for other programs: DuckDB, pandas, polars, BI tools, dbt.

```
<root>/current                        the version that readers see: a link to its folder
<root>/<number>/<table>/<shard>.parquet
<root>/<number>/rag_assets.duckdb     views of all tables and of the queries of `sql/`
```

A version's folder holds hard links to the files of the lake, so it takes no space of its own and outlives their removal
from the lake. It is made aside and never changed, but for records of evaluations, which are added; the views name its
files, so that a query reads one version. What stays out: which version readers see (`rag_assets.store.snapshots`), and
SQL for strangers (`rag_assets.serve.sql.database`).
"""

import glob
import os
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow.parquet as pq

from rag_assets.contracts.errors import StoreError
from rag_assets.contracts.tables import TABLES, Table
from rag_assets.store.files import NO_LINKS, remove, remove_leftovers, sync_folder, write_atomically, written_aside
from rag_assets.store.lake import Lake, Versions
from rag_assets.store.queries import describe_column, purpose_of, read_queries, sql_literal, strip_comments

CURRENT = "current"
DATABASE = "rag_assets.duckdb"
_LOCATION = ".location"  # where the folder was when its views were made: DuckDB has no paths relative to a database
_STORAGE_VERSION = "v1.0.0"  # of DuckDB files: BI tools bring DuckDB versions of their own


class PublishedTables:
    """The folders of the published versions below one folder."""

    def __init__(self, root: Path, lake: Lake) -> None:
        self.root = root
        self._lake = lake

    def make(self, number: int, published_at: str, tables: Mapping[str, Versions]) -> None:
        """Make the folder of a version, or what is missing of it; nothing is written where it is there.

        Args:
            number: Number of the version.
            published_at: Time of publishing, ISO 8601, UTC.
            tables: Version of each shard, by table name and shard.

        Raises:
            StoreError: A file cannot be made.
        """
        folder = self.root / str(number)
        try:
            if not folder.is_dir() or not self.is_whole(number, tables):
                remove(folder)
                with written_aside(folder) as aside:
                    for table in TABLES.values():
                        versions = tables.get(table.name, {}) if table.published else None
                        self._link(table, versions, aside / table.name)
                    aside.rename(folder)
            for table in TABLES.values():
                if table.recorded:
                    self._link(table, None, folder / table.name)
            location = folder / _LOCATION
            if not (location.exists() and location.read_text("utf-8") == str(folder)):
                _make_database(folder, number, published_at)
                write_atomically(location, str(folder).encode())
                sync_folder(folder.parent)
        except OSError as error:
            raise StoreError(f"{folder}: the tables of version {number} cannot be put there: {error}") from error

    def is_whole(self, number: int, tables: Mapping[str, Versions]) -> bool:
        """Whether the folder of a version holds its files: links to those of the lake, or copies of their size."""
        folder, is_linked = self.root / str(number), True
        for table in TABLES.values():
            if not table.published:  # it grows without new versions
                continue
            if table.name not in tables and not (folder / table.name).exists():  # the version is older than the table
                continue
            versions = tables.get(table.name, {})
            paths = dict(zip(sorted(versions), self._lake.paths(table, versions), strict=True))
            try:
                statuses = {entry.name: entry.stat() for entry in os.scandir(folder / table.name)}
            except OSError:
                return False
            if statuses.keys() != {f"{shard}.parquet" for shard in paths} and (
                paths or [*statuses] != ["empty.parquet"]
            ):
                return False
            for shard, path in paths.items():
                if not path.exists():  # it could not be linked again
                    continue
                stored_status, shown_status = path.stat(), statuses[f"{shard}.parquet"]
                is_linked = is_linked and shown_status.st_nlink > 1
                if stored_status.st_size != shown_status.st_size or (
                    is_linked and not os.path.samestat(stored_status, shown_status)
                ):
                    return False
        return True

    def shows(self, number: int) -> bool:
        """Whether the stable place leads to a version."""
        current = self.root / CURRENT
        try:
            return str(current.readlink()) == str(number)
        except FileNotFoundError:
            return False
        except OSError:  # no link: a file where there are no links, or a folder that a copy of the home made of it
            return current.is_file() and current.read_text().strip() == str(number)

    def show(self, number: int) -> None:
        """Lead the stable place to a version, at once.

        Raises:
            StoreError: It cannot be replaced.
        """
        current = self.root / CURRENT
        try:
            if current.is_dir() and not current.is_symlink():
                remove(current)
            with written_aside(current) as aside:
                try:
                    aside.symlink_to(str(number), target_is_directory=True)
                except OSError as error:
                    if error.errno not in NO_LINKS:
                        raise
                    write_atomically(current, f"{number}\n".encode())
                else:
                    aside.replace(current)
            sync_folder(self.root)
        except OSError as error:
            raise StoreError(f"{current}: cannot be moved to version {number}: {error}") from error

    def numbers(self) -> list[int]:
        """Numbers of the versions that have a folder, rising."""
        return sorted(int(path.name) for path in self.root.glob("[0-9]*") if path.name.isdecimal())

    def prune(self, kept: Collection[int]) -> None:
        """Remove the folders of all other versions, and what killed runs left."""
        for number in self.numbers():
            if number not in kept:
                remove(self.root / str(number))
        remove_leftovers(self.root)

    def _link(self, table: Table, versions: Versions | None, folder: Path) -> None:
        """Give a table's files the names of their shards; a table without rows gets one empty file, for its columns."""
        folder.mkdir(parents=True, exist_ok=True)
        chosen_versions = self._lake.latest(table) if versions is None else versions
        for shard, path in zip(sorted(chosen_versions), self._lake.paths(table, chosen_versions), strict=True):
            if (folder / f"{shard}.parquet").exists():  # a record that was linked before
                continue
            try:
                os.link(path, folder / f"{shard}.parquet")
            except OSError as error:
                if error.errno not in NO_LINKS:
                    raise
                shutil.copyfile(path, folder / f"{shard}.parquet")
        if not chosen_versions and not (folder / "empty.parquet").exists():
            pq.write_table(table.schema.empty_table(), folder / "empty.parquet")


def _make_database(folder: Path, number: int, published_at: str) -> None:
    """Make the DuckDB file of a version: views only, over the files of its folder."""
    import duckdb

    with TemporaryDirectory(prefix="rag-assets-") as scratch, duckdb.connect() as connection:
        database = Path(scratch) / DATABASE  # not in the home: DuckDB cannot write where a path holds a question mark
        try:
            connection.execute(f"ATTACH {sql_literal(str(database))} AS made (STORAGE_VERSION '{_STORAGE_VERSION}')")
            connection.execute("USE made; BEGIN")
            for table in TABLES.values():
                files = sql_literal(f"{glob.escape(str(folder / table.name))}/*.parquet")
                connection.execute(
                    f"CREATE VIEW {table.name} AS SELECT * FROM read_parquet({files}, hive_partitioning = false);"  # noqa: S608 - declared names
                    f"COMMENT ON VIEW {table.name} IS {sql_literal(table.description)};"
                )
                for field in table.fields:
                    comment = sql_literal(table.describe(field.name))
                    connection.execute(f'COMMENT ON COLUMN {table.name}."{field.name}" IS {comment}')
            for name, query in read_queries().items():
                purpose = sql_literal(purpose_of(query))
                connection.execute(
                    f"CREATE VIEW {name} AS {strip_comments(query)}; COMMENT ON VIEW {name} IS {purpose}"
                )
                for column, *_ in connection.execute(f"DESCRIBE {name}").fetchall():
                    comment = sql_literal(describe_column(query, column))
                    connection.execute(f'COMMENT ON COLUMN {name}."{column}" IS {comment}')
            connection.execute(
                f"CREATE VIEW snapshot AS SELECT {number} AS number, "
                f"TIMESTAMPTZ {sql_literal(published_at)} AS published_at;"
                "COMMENT ON VIEW snapshot IS 'The version that this file shows.'"
            )
            connection.execute("COMMIT; USE memory; DETACH made")
        except duckdb.Error as error:
            raise StoreError(f"{folder / DATABASE}: the views cannot be made: {error}") from error
        with written_aside(folder / DATABASE) as aside:
            shutil.copyfile(database, aside)
            aside.replace(folder / DATABASE)
