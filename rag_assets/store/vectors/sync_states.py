"""What the rows of each shard of a serving table were made from: written after the rows, taken away before they change.

A LanceDB table beside the serving tables, so that it is copied and restored together with them. A process that dies
between rows and record leaves no record, so that the shard counts as unfinished; doing it again changes no row.
"""

from collections.abc import Collection, Mapping
from functools import partial

import pyarrow as pa

from rag_assets.store.vectors.lance import LanceTable, lancedb
from rag_assets.store.vectors.upkeep import open_or_create, retried

NAME = "sync_states"
_PRIMARY_KEY = {"lance-schema:unenforced-primary-key": "true"}
_SCHEMA = pa.schema(
    [
        pa.field("key", pa.string(), nullable=False, metadata=_PRIMARY_KEY),
        pa.field("state", pa.string(), nullable=False),
    ]
)


class SyncStates:
    """The table `sync_states` of a vector store."""

    def __init__(self, database: lancedb.DBConnection) -> None:
        self.table: LanceTable = open_or_create(database, NAME, _SCHEMA)

    def of(self, name: str) -> dict[str, str]:
        """State of each shard of a serving table that has one."""
        rows = self.table.search().limit(None).to_arrow().to_pylist()
        parted = [(*row["key"].rsplit("/", 1), row["state"]) for row in rows]
        return {shard: state for table, shard, state in parted if table == name}

    def forget(self, name: str, shards: Collection[str]) -> None:
        """Take away the states of shards whose rows are about to change."""
        keys = [f"{name}/{shard}" for shard in sorted(self.of(name).keys() & set(shards))]
        if keys:
            listed = ", ".join(f"'{key}'" for key in keys)
            retried(partial(self.table.delete, f"key IN ({listed})"), self.table)

    def keep(self, name: str, states: Mapping[str, str]) -> None:
        """Write down the states of shards whose rows are written."""
        known = self.of(name)
        new = [
            {"key": f"{name}/{shard}", "state": state} for shard, state in states.items() if known.get(shard) != state
        ]
        if not new:
            return
        rows = pa.Table.from_pylist(new, schema=_SCHEMA)

        def write() -> None:
            self.table.merge_insert("key").when_matched_update_all().when_not_matched_insert_all().execute(rows)

        retried(write, self.table)
