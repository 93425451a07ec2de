"""The stored tables of one published version, for modes that read more than the serving tables hold."""

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from rag_assets.contracts.tables import Table
from rag_assets.store.lake import Lake, Versions, shard_of

_Value = TypeVar("_Value")


@dataclass(frozen=True)
class StoredTables:
    """The stored tables of one published version."""

    lake: Lake  # where they are
    versions: Mapping[str, Versions]  # version of each shard, by table name, as a snapshot names them

    def read(
        self,
        table: Table,
        columns: Sequence[str],
        documents: Collection[str] | None = None,
        where: pc.Expression | None = None,
    ) -> pa.Table:
        """Columns of a table in key order; no rows where the version does not name it.

        Args:
            table: The table.
            columns: Columns to read.
            documents: Documents whose rows are read, from the shards that hold them; None for all.
            where: Condition that rows must satisfy.

        Raises:
            StoreError: A file is missing or damaged.
        """
        versions = self.versions.get(table.name, {})
        if documents is None:
            return self.lake.read(table, columns=columns, versions=versions, where=where)
        condition = pc.field("document_id").isin(list(documents))
        condition = condition if where is None else condition & where
        return self.lake.read(table, {shard_of(document_id) for document_id in documents}, columns, versions, condition)


def once(make: Callable[[], _Value]) -> Callable[[], _Value]:
    """Give a value that is made when it is first asked for, by one thread while the others wait."""
    lock = threading.Lock()
    values: list[_Value] = []

    def get() -> _Value:
        with lock:
            if not values:
                values.append(make())
            return values[0]

    return get
