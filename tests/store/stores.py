"""Small stores for tests: a lake with summaries only and what is made from it, without Dagster and the embedder."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rag_assets.contracts.errors import ModelError
from rag_assets.contracts.ports import EmbeddingKind
from rag_assets.contracts.tables import DOCUMENTS, FILE_SUMMARIES, SUMMARY_INDEX, VECTOR_TABLES, Table
from rag_assets.store.lake import Lake
from rag_assets.store.publish import publish, stale_syncs
from rag_assets.store.serving import SERVING, serving_states
from rag_assets.store.snapshots import Snapshot, Snapshots
from rag_assets.store.vectors.store import VectorStore


class LettersEmbedder:
    name = "letters"
    dimension = 8
    window_tokens = 512

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.fails = False

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(text) for text in texts]

    def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> NDArray[np.float32]:  # noqa: ARG002
        if self.fails:
            raise ModelError("out of order")
        self.asked += texts
        vectors = np.array([[text.count(chr(97 + n)) + 1 for n in range(8)] for text in texts], dtype=np.float32)
        unit: NDArray[np.float32] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return unit


class Base:
    """A lake with summaries only, and what is made from it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.lake, self.snapshots = Lake(root / "lake"), Snapshots(root / "snapshots")
        self.vectors, self.embedder = VectorStore(root / "vectors"), LettersEmbedder()

    def open_vectors(self) -> VectorStore:
        """The serving tables."""
        return self.vectors

    def write(self, shard: str, **texts: str) -> None:
        inputs = dict(texts)
        for table in (DOCUMENTS, FILE_SUMMARIES):
            records = [{"document_id": name, "shard": shard, "text": text} for name, text in texts.items()]
            self.lake.write(table, shard, rows_of(table, *records), inputs)

    def sync(self, *shards: str) -> None:
        for table in VECTOR_TABLES.values():
            states = serving_states(self.lake, table.name, self.embedder.name)
            rows = {shard: SERVING[table.name][1](self.lake, shard) for shard in shards}
            self.vectors.sync(table, rows, self.embedder, states=states)

    def publish(self) -> Snapshot:
        return publish(self.lake, self.vectors, self.snapshots, {"step": {"code": "code"}}, self.embedder, 3, list)

    def served(self) -> list[str]:
        return sorted(self.vectors.column(SUMMARY_INDEX.name, "text").to_pylist())

    def unfinished(self) -> list[str]:
        stale = stale_syncs(self.lake, self.vectors, self.embedder.name)
        return [f"lancedb.{name}, shard {shard}" for name, shard in stale]


def rows_of(table: Table, *given: Mapping[str, object]) -> pa.Table:
    """Rows of a table, of what is given of them; the rest is empty."""
    records = [_record(table, **each) for each in given]
    return pa.Table.from_pylist([{n: r[n] for n in table.schema.names} for r in records], schema=table.schema)


def _record(table: Table, **given: object) -> dict[str, object]:
    record: dict[str, object] = {}
    for field in table.schema:
        if field.nullable:
            record[field.name] = None
        elif pa.types.is_string(field.type):
            record[field.name] = ""
        elif pa.types.is_list(field.type):
            record[field.name] = []
        else:
            record[field.name] = 0
    return record | given
