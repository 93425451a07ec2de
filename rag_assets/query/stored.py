"""The stored tables of one published version, for modes that read more than the serving tables hold."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from rag_assets.contracts.tables import Table
from rag_assets.store.lake import Lake, Versions


@dataclass(frozen=True)
class StoredTables:
    """The stored tables of one published version.

    Attributes:
        lake: Where they are.
        versions: Version of each shard, by table name, as a snapshot names them.
    """

    lake: Lake
    versions: Mapping[str, Versions]

    def read(self, table: Table, columns: Sequence[str]) -> pa.Table:
        """Columns of a table; no rows where the version does not name it.

        Raises:
            StoreError: A file is missing or damaged.
        """
        return self.lake.read(table, columns=columns, versions=self.versions.get(table.name, {}))
