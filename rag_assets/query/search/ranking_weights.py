"""The weights of mode `weighted`, as shipped and as learned on a collection, and the map of its query vectors."""

import io
import json
from collections.abc import Mapping
from dataclasses import asdict, astuple, dataclass, field, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rag_assets.contracts.errors import StoreError
from rag_assets.query.search.grouping import Granularity

WEIGHTS_ASSET, MAP_ASSET = "ranking_weights", "query_map"
_WEIGHTS_FILE, _MAP_FILE = "weights.json", "map.npz"


@dataclass(frozen=True)
class Weights:
    """Weight of each signal, 0 or more; those of 0 are not computed.

    Attributes:
        words: BM25 of the passage.
        meaning: Cosine of the passage.
        page: The two above, of all passages of its page.
        names: Words of the document's path.
        summary: Cosine of the page's summary.
        identifiers: BM25 of the identifiers in the query alone.
        document: Words and meaning of all passages of its document.
        agreement: The lesser of words and meaning.
        graph: The walk over the entity graph, where there is one, times what it is worth for the query.
    """

    words: float = 1.0
    meaning: float = 0.5
    page: float = 0.0
    names: float = 0.0
    summary: float = 0.0
    identifiers: float = 0.0
    document: float = 0.0
    agreement: float = 0.0
    graph: float = 0.0

    def vector(self) -> NDArray[np.float64]:
        """The weights in the order of `SIGNALS`."""
        return np.array(astuple(self))


SIGNALS = tuple(each.name for each in fields(Weights))
SHIPPED: Mapping[str, Weights] = {
    Granularity.CHUNK: Weights(page=0.2, graph=2.0),
    Granularity.PAGE: Weights(page=0.3, graph=2.0),
    Granularity.DOCUMENT: Weights(names=0.5, summary=0.3, graph=2.7),
}


@dataclass(frozen=True, eq=False)
class QueryMap:
    """A map of query vectors: `q + left @ (right @ q)`, of length 1.

    Attributes:
        left: float32 of shape `(dimension, rank)`.
        right: float32 of shape `(rank, dimension)`.
    """

    left: NDArray[np.float32]
    right: NDArray[np.float32]

    def mapped(self, vector: NDArray[np.float32]) -> NDArray[np.float32]:
        """A query vector as passages are searched by it; as it is where it has another length."""
        if vector.shape != (len(self.left),):
            return vector
        moved: NDArray[np.float32] = vector + self.left @ (self.right @ vector)
        length = float(np.linalg.norm(moved))
        return (moved / length).astype(np.float32) if length > 0 else vector


@dataclass(frozen=True, eq=False)
class Ranking:
    """How mode `weighted` ranks.

    Attributes:
        weights: By granularity.
        query_map: Of query vectors, or None.
    """

    weights: Mapping[str, Weights] = field(default_factory=lambda: SHIPPED)
    query_map: QueryMap | None = None


def weights_files(weights: Mapping[str, Weights]) -> dict[str, bytes]:
    """Weights as files."""
    return {_WEIGHTS_FILE: json.dumps({str(key): asdict(each) for key, each in weights.items()}, indent=1).encode()}


def map_files(query_map: QueryMap, embedder: str) -> dict[str, bytes]:
    """A map as files, with the embedder whose vectors it is of."""
    content = io.BytesIO()
    np.savez(content, left=query_map.left, right=query_map.right, embedder=np.array(embedder))
    return {_MAP_FILE: content.getvalue()}


def read_ranking(weights: Path | None, query_map: Path | None, embedder: str) -> Ranking:
    """What was learned, as shipped where a folder is None; a map of another embedder is none.

    Args:
        weights: Folder of `weights_files`.
        query_map: Folder of `map_files`.
        embedder: Name of the embedder of the version.

    Raises:
        StoreError: A file is damaged.
    """
    learned, found = SHIPPED, None
    try:
        if weights is not None:
            rows = json.loads((weights / _WEIGHTS_FILE).read_bytes())
            learned = {each: Weights(**rows[each]) for each in Granularity}
        if query_map is not None:
            with np.load(query_map / _MAP_FILE) as stored:
                if str(stored["embedder"]) == embedder:
                    found = QueryMap(stored["left"], stored["right"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(f"what was learned is damaged: {error}; `rag-assets train undo` goes back") from error
    return Ranking(learned, found)
