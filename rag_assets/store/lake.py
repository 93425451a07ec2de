"""The system of record: Parquet files, one for each table and shard, in numbered versions that are never overwritten.

`<root>/<table>/<shard>/<version>.parquet`. A file carries, beside its rows, the *inputs* that they were computed from:
a digest for each document, also for those that gave no row. So a shard's file says by itself what is done.

What stays out: which versions readers see (`rag_assets.store.snapshots`), and how rows are computed.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyarrow.fs import LocalFileSystem

from rag_assets.contracts.errors import SchemaError, StoreError
from rag_assets.contracts.tables import Table
from rag_assets.store.files import commit_new, remove_leftovers, sync_file, write_atomically, written_aside

SHARD_COUNT = 64
SHARDS: tuple[str, ...] = tuple(f"{index:02x}" for index in range(SHARD_COUNT))
WHOLE = "all"  # the one shard, and the one input, of a table that is made as a whole

_INPUTS = b"rag_assets:inputs"
_GROUP_ROWS = 4_096  # of a file, of which those of a few documents are read without the others
_FILE_NAME = re.compile(r"([0-9]{8,})\.parquet")
_LOST_NAME = re.compile(r"([0-9]{8,})\.lost")  # a version whose file was damaged: its number is not given again

Versions = Mapping[str, int]


def shard_of(document_id: str) -> str:
    """Shard of a document: SHA-256 of its id modulo the number of shards, as two hexadecimal digits."""
    return SHARDS[int.from_bytes(hashlib.sha256(document_id.encode()).digest()) % SHARD_COUNT]


@dataclass(frozen=True)
class ShardWrite:
    """What writing a shard did."""

    written: bool  # whether a new file was made; False where rows and inputs are what was stored
    row_count: int  # rows of the shard


class Lake:
    """Reads and writes the stored tables below one folder.

    Args:
        root: Folder of the tables; made at the first write.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def latest(self, table: Table, shards: Iterable[str] | None = None) -> dict[str, int]:
        """Latest version of each shard that has one, among some shards or all."""
        try:
            names = [entry.name for entry in os.scandir(self.root / table.name)] if shards is None else shards
        except FileNotFoundError:
            return {}
        versions = {name: max(self._versions(table, name), default=0) for name in names}
        return {shard: version for shard, version in sorted(versions.items()) if version}

    def paths(self, table: Table, versions: Versions | None = None) -> list[Path]:
        """Files of a table, in shard order: the latest ones, or those of given versions."""
        chosen_versions = self.latest(table) if versions is None else versions
        return [self._path(table, shard, version) for shard, version in sorted(chosen_versions.items())]

    def read(
        self,
        table: Table,
        shards: Iterable[str] | None = None,
        columns: Sequence[str] | None = None,
        versions: Versions | None = None,
        where: pc.Expression | None = None,
    ) -> pa.Table:
        """Rows of some shards, or of all, in shard and key order.

        A file with other columns than those declared counts as empty, so that its rows are computed anew.

        Args:
            table: The table.
            shards: Shards to read; all where None.
            columns: Columns to read; all where None.
            versions: Version of each shard; the latest ones where None.
            where: Rows to read; all where None. What is not wanted is never in memory as a whole.

        Raises:
            StoreError: A file is missing or damaged.
        """
        schema = table.schema if columns is None else pa.schema([table.schema.field(name) for name in columns])
        names = None if shards is None else set(shards)
        chosen_versions = self.latest(table, names) if versions is None else versions
        wanted_versions = {
            shard: version for shard, version in chosen_versions.items() if names is None or shard in names
        }
        parts = (self._read_file(path, table, columns, where) for path in self.paths(table, wanted_versions))
        return pa.concat_tables([schema.empty_table(), *(part.cast(schema) for part in parts if part is not None)])

    def dataset(self, table: Table, versions: Versions | None = None) -> ds.Dataset:
        """Files of a table, the latest ones or those of given versions, to be queried without being read as a whole.

        Paths are taken as they are: a home may hold any character, wildcards of query engines included.

        Raises:
            StoreError: A file is missing.
        """
        paths = [str(path) for path in self.paths(table, versions)]
        with readable(self.root / table.name):
            return ds.dataset(paths, schema=table.schema, format="parquet", filesystem=LocalFileSystem())

    def inputs(self, table: Table, shard: str) -> dict[str, str]:
        """Digest of what each document of a shard was computed from, by `document_id`."""
        version = max(self._versions(table, shard), default=0)
        if not version:
            return {}
        path = self._path(table, shard, version)
        schema = self._file_schema(path)
        if not schema.equals(table.schema):
            return {}
        with readable(path):
            inputs: dict[str, str] = json.loads((schema.metadata or {}).get(_INPUTS, b"{}"))
        return inputs

    def row_count(self, table: Table, shard: str) -> int:
        """Rows of a shard."""
        version = max(self._versions(table, shard), default=0)
        path = self._path(table, shard, version)
        with readable(path):
            return pq.read_metadata(path).num_rows if version else 0

    def write(self, table: Table, shard: str, rows: pa.Table, inputs: Mapping[str, str]) -> ShardWrite:
        """Make the rows of a shard those given.

        Args:
            table: The table.
            shard: The shard; every row must be of it.
            rows: All rows of the shard, in any order.
            inputs: Digest of what each document was computed from, documents without rows included.

        Raises:
            SchemaError: The rows do not fit the declared schema, or a key stands twice.
            StoreError: Another process wrote the shard at the same time.
        """
        rows = self._conform(table, shard, rows)
        schema = table.schema.with_metadata({_INPUTS: json.dumps(dict(sorted(inputs.items()))).encode()})
        version = max(self._versions(table, shard), default=0)
        if not version and not inputs:
            return ShardWrite(written=False, row_count=0)
        if version:
            path = self._path(table, shard, version)
            if _same_declaration(self._file_schema(path), schema) and self.read(table, [shard]).equals(rows):
                return ShardWrite(written=False, row_count=rows.num_rows)
        number = max([version, *self._numbers(table, shard, _LOST_NAME)]) + 1
        self._commit(self._path(table, shard, number), rows.cast(schema))
        return ShardWrite(written=True, row_count=rows.num_rows)

    def check(self, path: Path) -> None:
        """Read a file, part by part.

        Raises:
            StoreError: It cannot be read.
        """
        with readable(path), pq.ParquetFile(path) as file:
            for _ in file.iter_batches():
                pass

    def withdraw(self, path: Path) -> None:
        """Take note that a damaged file was taken away, or is gone: the version before it is the latest then.

        Its number is not given again, so that no other rows are ever read under it.
        """
        write_atomically(path.with_suffix(".lost"), b"")

    def prune(self, table: Table, kept: Iterable[Versions]) -> None:
        """Remove the files that are neither the latest of their shard nor among kept versions."""
        pinned_versions = {(shard, version) for versions in kept for shard, version in versions.items()}
        for shard, last in self.latest(table).items():
            for version in self._versions(table, shard):
                if version != last and (shard, version) not in pinned_versions:
                    self._path(table, shard, version).unlink(missing_ok=True)
            for number in self._numbers(table, shard, _LOST_NAME):
                if number < last:
                    self._path(table, shard, number).with_suffix(".lost").unlink(missing_ok=True)
            remove_leftovers(self.root / table.name / shard)

    def _conform(self, table: Table, shard: str, rows: pa.Table) -> pa.Table:
        if set(rows.column_names) != set(table.schema.names):
            raise SchemaError(f"{table.name}: expected columns {table.schema.names}, found {rows.column_names}")
        try:
            rows = rows.select(table.schema.names).cast(table.schema)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, ValueError) as error:
            raise SchemaError(f"{table.name}, shard {shard}: {error}") from error
        if table.sharded and pc.any(pc.not_equal(rows["shard"], shard)).as_py():
            raise SchemaError(f"{table.name}, shard {shard}: rows of another shard")
        rows = rows.sort_by([(name, "ascending") for name in table.key]).combine_chunks()
        keys = rows.select(list(table.key)).group_by(list(table.key)).aggregate([([], "count_all")])
        if keys.num_rows != rows.num_rows:
            duplicate = keys.filter(pc.greater(keys["count_all"], 1)).to_pylist()[0]
            raise SchemaError(f"{table.name}, shard {shard}: duplicate key {[duplicate[name] for name in table.key]}")
        return rows

    def _commit(self, path: Path, rows: pa.Table) -> None:
        with written_aside(path) as aside:
            pq.write_table(rows, aside, compression="zstd", row_group_size=_GROUP_ROWS)
            sync_file(aside)
            try:
                commit_new(aside, path)
            except FileExistsError as error:
                raise StoreError(f"{path}: another process wrote this shard at the same time; run again") from error

    def _versions(self, table: Table, shard: str) -> list[int]:
        return self._numbers(table, shard, _FILE_NAME)

    def _numbers(self, table: Table, shard: str, name: re.Pattern[str]) -> list[int]:
        try:
            names = [entry.name for entry in os.scandir(f"{self.root}/{table.name}/{shard}")]
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted(int(match[1]) for match in map(name.fullmatch, names) if match)

    def _path(self, table: Table, shard: str, version: int) -> Path:
        return self.root / table.name / shard / f"{version:08d}.parquet"

    def _file_schema(self, path: Path) -> pa.Schema:
        with readable(path):
            return pq.read_schema(path)

    def _read_file(
        self, path: Path, table: Table, columns: Sequence[str] | None, where: pc.Expression | None
    ) -> pa.Table | None:
        """Rows of a file; None where it was written with other columns."""
        column_names = None if columns is None else list(columns)
        with readable(path):
            with pq.ParquetFile(path) as file:
                if not file.schema_arrow.equals(table.schema):
                    return None
                if where is None:
                    return file.read(columns=column_names)
            return ds.dataset([str(path)], format="parquet", filesystem=LocalFileSystem()).to_table(column_names, where)


@contextmanager
def readable(place: Path) -> Iterator[None]:
    """Turn what Arrow says of a file or folder that it cannot read into one line.

    Raises:
        StoreError: A file is missing or damaged.
    """
    try:
        yield
    except FileNotFoundError as error:
        raise StoreError(f"{place}: a file is missing; `rag-assets index` makes it anew") from error
    except (OSError, pa.ArrowException, ValueError, EOFError) as error:
        raise StoreError(f"{place}: not readable as Parquet; `rag-assets index` makes it anew") from error


def _same_declaration(first: pa.Schema, second: pa.Schema) -> bool:
    """Whether schemas agree in types and metadata; Parquet names the items of lists in its own way."""
    of_fields = [[field.metadata for field in schema] for schema in (first, second)]
    return bool(first.equals(second)) and first.metadata == second.metadata and of_fields[0] == of_fields[1]
