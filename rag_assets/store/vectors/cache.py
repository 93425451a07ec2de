"""Vectors kept by content: what was embedded once is not embedded again, whatever file it stands in.

A LanceDB table to which only batches are appended, so that writers do not conflict and a killed process loses at most
one batch. What stays out: which rows a text belongs to, which is `rag_assets.store.vectors.store`.
"""

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from hashlib import sha256

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rag_assets.contracts.ports import Embedder, EmbeddingKind
from rag_assets.store.vectors.lance import BTree, LanceTable, lancedb, open_or_create, retried

BATCH_TEXTS = 1024
_FIRST_TEXTS, _TOLD_SECONDS = 32, 2.0  # told after so many texts, and after more where they take less time
_LOOKUP_KEYS = 2048


def embedding_key(embedder_name: str, kind: EmbeddingKind, text: str) -> str:
    """Key of the vector of a text: SHA-256 over the embedder's name, the kind and the text, hexadecimal."""
    return sha256(f"{embedder_name}\0{kind}\0{text}".encode("utf-8", "surrogatepass")).hexdigest()


def fixed_vectors(vectors: NDArray[np.float32]) -> pa.FixedSizeListArray:
    """Vectors, shape `(count, dimension)`, as an Arrow column."""
    flat = pa.array(np.ascontiguousarray(vectors, dtype=np.float32).reshape(-1))
    return pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1])


def vector_matrix(column: pa.ChunkedArray, dimension: int) -> NDArray[np.float32]:
    """An Arrow column of vectors as float32 array of shape `(rows, dimension)`."""
    parts = [chunk.flatten().to_numpy(zero_copy_only=False) for chunk in column.chunks]
    flat = np.concatenate(parts) if parts else np.empty(0, dtype=np.float32)
    return flat.astype(np.float32, copy=False).reshape(-1, dimension)


class VectorCache:
    """The table `embeddings_<dimension>` of a vector store."""

    def __init__(self, database: lancedb.DBConnection, dimension: int) -> None:
        self._dimension = dimension
        self._schema = pa.schema(
            [
                pa.field("key", pa.string(), nullable=False),
                pa.field("vector", pa.list_(pa.float32(), dimension), nullable=False),
            ]
        )
        self.table: LanceTable = open_or_create(database, f"embeddings_{dimension}", self._schema)

    def embed(
        self,
        texts: Sequence[str],
        embedder: Embedder,
        embedded: Callable[[int], None] = lambda _: None,
    ) -> tuple[NDArray[np.float32], int]:
        """Vectors of passages, taken from the cache or computed and kept.

        Args:
            texts: Passages; repeated ones are embedded once.
            embedder: Computes what the cache does not hold; `BATCH_TEXTS` texts at a time are kept.
            embedded: Told how many texts were computed so far, every few seconds and after each batch.

        Returns:
            float32 array of shape `(len(texts), dimension)` in the order given, and the number of texts computed.

        Raises:
            ModelError: The embedder failed; batches computed before are kept.
        """
        keys = [embedding_key(embedder.name, EmbeddingKind.PASSAGE, text) for text in texts]
        vectors_by_key = self._lookup(set(keys))
        missing_texts = {key: text for key, text in zip(keys, texts, strict=True) if key not in vectors_by_key}
        # Neighbours of one length waste no padding; the order of embedding does not show in the vectors.
        todo = sorted(missing_texts.items(), key=lambda item: (len(item[1]), item[0]))
        count = _FIRST_TEXTS
        for start in range(0, len(todo), BATCH_TEXTS):
            batch = todo[start : start + BATCH_TEXTS]
            parts: list[NDArray[np.float32]] = []
            offset = 0
            while offset < len(batch):
                began_at = time.monotonic()
                part = [text for _, text in batch[offset : offset + count]]
                parts.append(embedder.embed(part, EmbeddingKind.PASSAGE))
                offset += len(part)
                if time.monotonic() - began_at < _TOLD_SECONDS:
                    count = min(2 * count, BATCH_TEXTS)
                if offset < len(batch):
                    embedded(start + offset)
            batch_keys, vectors = [key for key, _ in batch], np.concatenate(parts)
            rows = pa.table({"key": batch_keys, "vector": fixed_vectors(vectors)}, schema=self._schema)
            retried(partial(self.table.add, rows), self.table)
            vectors_by_key.update(zip(batch_keys, vectors, strict=True))
            embedded(start + len(batch))
        matrix = np.empty((len(keys), self._dimension), dtype=np.float32)
        for index, key in enumerate(keys):
            matrix[index] = vectors_by_key[key]
        return matrix, len(todo)

    def _lookup(self, keys: Collection[str]) -> dict[str, NDArray[np.float32]]:
        """Vectors that the cache holds, by key."""
        vectors_by_key: dict[str, NDArray[np.float32]] = {}
        if self.table.count_rows() == 0:
            return vectors_by_key
        ordered_keys = sorted(keys)
        for start in range(0, len(ordered_keys), _LOOKUP_KEYS):
            rows = (
                self.table.search()
                .where(_in_keys(ordered_keys[start : start + _LOOKUP_KEYS]))
                .select(["key", "vector"])
                .limit(None)
                .to_arrow()
            )
            matrix = vector_matrix(rows["vector"], self._dimension)
            vectors_by_key.update(zip(rows["key"].to_pylist(), matrix, strict=True))
        return vectors_by_key

    def prune(self, keep: Collection[str]) -> int:
        """Drop vectors but those of keys (`embedding_key`) to keep, and give their number."""
        stored_keys = self.table.search().select(["key"]).limit(None).to_arrow()["key"].to_pylist()
        kept_keys = set(keep)
        surplus_keys = sorted({key for key in stored_keys if key not in kept_keys})
        for start in range(0, len(surplus_keys), _LOOKUP_KEYS):
            retried(partial(self.table.delete, _in_keys(surplus_keys[start : start + _LOOKUP_KEYS])), self.table)
        return len(surplus_keys)

    def ensure_index(self) -> None:
        """Index the key once there is something to look up."""
        if not self.table.list_indices() and self.table.count_rows():
            self.table.create_index("key", config=BTree())


def _in_keys(keys: Iterable[str]) -> str:
    """SQL condition; keys are hexadecimal, so nothing needs escaping."""
    return f"key IN ({', '.join(repr(key) for key in keys)})"
