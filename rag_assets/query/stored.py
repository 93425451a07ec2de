"""The stored tables of one published version, for modes that read more than the serving tables hold."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from rag_assets.contracts.tables import Table
from rag_assets.store.lake import Lake, Versions, shard_of


@dataclass(frozen=True)
class StoredTables:
    """The stored tables of one published version.

    Attributes:
        lake: Where they are.
        versions: Version of each shard, by table name, as a snapshot names them.
    """

    lake: Lake
    versions: Mapping[str, Versions]

    def read(self, table: Table, columns: Sequence[str], documents: Collection[str] | None = None) -> pa.Table:
        """Columns of a table; no rows where the version does not name it.

        Args:
            table: The table.
            columns: Columns to read.
            documents: Documents whose rows are read; None for all.

        Raises:
            StoreError: A file is missing or damaged.
        """
        versions = self.versions.get(table.name, {})
        if documents is None:
            return self.lake.read(table, columns=columns, versions=versions)
        wanted = pc.field("document_id").isin(list(documents))
        return self.lake.read(table, {shard_of(each) for each in documents}, columns, versions, wanted)
