"""The weights of mode `weighted`, as shipped and as learned on a collection, and the map of its query vectors.

What was learned is linear, or linear with boosted trees over the same signals on top, which LightGBM (extra `trees`)
evaluates. It is imported where trees are in force and nowhere else.
"""

import hashlib
import importlib
import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, astuple, dataclass, field, fields
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rag_assets.contracts.errors import ModelError, StoreError
from rag_assets.query.search.grouping import Granularity

if TYPE_CHECKING:
    from lightgbm import Booster

WEIGHTS_ASSET, MAP_ASSET = "ranking_weights", "query_map"
COVERAGE = "coverage"  # the signal for which the first passages are read
RERANKER = "reranker"  # the signal that only a configured reranker gives
TREES_EXTRA = "pip install 'rag-assets[trees]'"
_WEIGHTS_FILE, _TREES_FILE, _MAP_FILE = "weights.json", "trees.json", "map.npz"

Matrix: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class Weights:
    """Weight of each signal, 0 or more; those of 0 are not computed."""

    words: float = 1.0  # BM25 of the passage
    meaning: float = 0.5  # cosine of the passage
    page: float = 0.0  # the two above, of all passages of its page
    names: float = 0.0  # words of the document's path
    summary: float = 0.0  # cosine of the page's summary
    identifiers: float = 0.0  # BM25 of the identifiers in the query alone
    document: float = 0.0  # words and meaning of all passages of its document
    agreement: float = 0.0  # the lesser of words and meaning
    coverage: float = 0.0  # words of the query that the passage and its place hold, of the first passages
    graph: float = 0.0  # the walk over the entity graph, where there is one, times what it is worth for the query
    reranker: float = 0.0  # the configured reranker's score of the first passages

    @property
    def weights(self) -> "Weights":
        """Itself: the linear part."""
        return self

    @cached_property
    def signals(self) -> frozenset[str]:
        """The signals that count."""
        return frozenset(name for name, weight in asdict(self).items() if weight)

    def vector(self) -> Matrix:
        """The weights in the order of `SIGNALS`."""
        return np.array(astuple(self))

    def scores(self, values: Matrix) -> Matrix:
        """Scores of passages, float64 of shape `(passages,)`.

        Args:
            values: float64 of shape `(passages, signals)`, in the order of `SIGNALS`.
        """
        return values @ self.vector()


SIGNALS = tuple(weight.name for weight in fields(Weights))


@dataclass(frozen=True)
class BoostedWeights:
    """Weights, and boosted trees whose values are added to what the weights give."""

    weights: Weights  # the linear part
    trees: str  # the trees, as LightGBM writes them; their features are named as signals
    scale: float  # what values of the trees are divided by

    @cached_property
    def _booster(self) -> "Booster":
        lightgbm = lightgbm_module()
        try:
            booster: Booster = lightgbm.Booster(model_str=self.trees)
        except lightgbm.basic.LightGBMError as error:
            raise StoreError(f"LightGBM cannot read the trees: {error}") from error
        return booster

    @cached_property
    def _columns(self) -> list[int]:
        return [SIGNALS.index(name) for name in self._booster.feature_name()]

    @cached_property
    def _mean(self) -> float:
        """What is the same in all scores, and no signal's."""
        return float(self._contributions(np.zeros((1, len(SIGNALS))))[0, -1])

    @property
    def gains(self) -> dict[str, float]:
        """By how much splits on each signal make the loss less, as shares of the whole; of the signals that count."""
        gains = self._booster.feature_importance("gain")
        return {SIGNALS[at]: float(gain / gains.sum()) for at, gain in zip(self._columns, gains, strict=True) if gain}

    @property
    def rounds(self) -> int:
        """Trees."""
        return int(self._booster.num_trees())

    @cached_property
    def signals(self) -> frozenset[str]:
        """The signals that count."""
        return self.weights.signals | self.gains.keys()

    def scores(self, values: Matrix) -> Matrix:
        """Scores of passages, see `Weights.scores`."""
        if not len(values):
            return np.zeros(0)
        tree_scores = np.asarray(self._booster.predict(values[:, self._columns], raw_score=True, num_threads=1))
        return self.weights.scores(values) + (tree_scores - self._mean) / self.scale

    def contributions(self, values: Matrix) -> Matrix:
        """What each signal adds to the score of each passage, float64 of the shape of `values`; rows add up to scores.

        Source: the share of the trees: S. Lundberg et al., From local explanations to global understanding with
        explainable AI for trees, Nature Machine Intelligence 2, 2020 (TreeSHAP), as LightGBM computes it.
        """
        contributions = values * self.weights.vector()
        if len(values):
            contributions[:, self._columns] += self._contributions(values)[:, :-1] / self.scale
        return contributions

    def _contributions(self, values: Matrix) -> Matrix:
        return np.asarray(self._booster.predict(values[:, self._columns], pred_contrib=True, num_threads=1))


Scorer: TypeAlias = Weights | BoostedWeights
SHIPPED: Mapping[str, Weights] = {
    Granularity.CHUNK: Weights(meaning=1.25, summary=0.5, coverage=1.0, graph=5.0),
    Granularity.PAGE: Weights(meaning=1.0, page=0.3, graph=5.0),
    Granularity.DOCUMENT: Weights(meaning=1.0, names=0.75, summary=0.5, graph=12.0),
}


@dataclass(frozen=True, eq=False)
class QueryMap:
    """A map of query vectors: `q + left @ (right @ q)`, of length 1."""

    left: NDArray[np.float32]  # float32 of shape `(dimension, rank)`
    right: NDArray[np.float32]  # float32 of shape `(rank, dimension)`

    def mapped(self, vector: NDArray[np.float32]) -> NDArray[np.float32]:
        """A query vector as passages are searched by it; as it is where it has another length."""
        if vector.shape != (len(self.left),):
            return vector
        mapped_vector: NDArray[np.float32] = vector + self.left @ (self.right @ vector)
        length = float(np.linalg.norm(mapped_vector))
        return (mapped_vector / length).astype(np.float32) if length > 0 else vector


@dataclass(frozen=True, eq=False)
class Ranking:
    """How mode `weighted` ranks."""

    weights: Mapping[str, Scorer] = field(default_factory=lambda: SHIPPED)  # by granularity
    query_map: QueryMap | None = None  # of query vectors, or None


def weights_files(weights: Mapping[str, Scorer], reranker: str = "") -> dict[str, bytes]:
    """Weights as files.

    Args:
        weights: By granularity.
        reranker: Name of the reranker that they were learned with.
    """
    rows: dict[str, object] = {str(key): asdict(scorer.weights) for key, scorer in weights.items()}
    files = {_WEIGHTS_FILE: json.dumps({**rows, "reranker_name": reranker}, indent=1).encode()}
    tree_rows = {
        str(key): {"scale": scorer.scale, "trees": scorer.trees, "sha256": _sha256(scorer.trees)}
        for key, scorer in weights.items()
        if isinstance(scorer, BoostedWeights)
    }
    return files | ({_TREES_FILE: json.dumps(tree_rows).encode()} if tree_rows else {})


def map_files(query_map: QueryMap, embedder: str) -> dict[str, bytes]:
    """A map as files, with the embedder whose vectors it is of."""
    content = io.BytesIO()
    np.savez(content, left=query_map.left, right=query_map.right, embedder=np.array(embedder))
    return {_MAP_FILE: content.getvalue()}


def read_ranking(weights: Path | None, query_map: Path | None, embedder: str, reranker: str = "") -> Ranking:
    """What was learned, as shipped where a folder is None; a map of another embedder is none.

    Args:
        weights: Folder of `weights_files`.
        query_map: Folder of `map_files`.
        embedder: Name of the embedder of the version.
        reranker: Name of the reranker that the settings name, or empty.

    Raises:
        StoreError: A file is damaged.
        ModelError: LightGBM is not installed, or what was learned needs another reranker.
    """
    scorers: Mapping[str, Scorer] = SHIPPED
    stored_map = None
    try:
        if weights is not None:
            rows = json.loads((weights / _WEIGHTS_FILE).read_bytes())
            scorers = {granularity: Weights(**rows[granularity]) for granularity in Granularity}
            if (weights / _TREES_FILE).is_file():
                scorers |= _read_boosted(scorers, json.loads((weights / _TREES_FILE).read_bytes()))
            if any(RERANKER in scorer.signals for scorer in scorers.values()) and rows["reranker_name"] != reranker:
                statement = f"the settings name {reranker or 'none'}"
                raise ModelError(f"weights were learned with the reranker {rows['reranker_name']}, {statement}")
        if query_map is not None:
            with np.load(query_map / _MAP_FILE) as arrays:
                if str(arrays["embedder"]) == embedder:
                    stored_map = QueryMap(arrays["left"], arrays["right"])
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile) as error:
        raise StoreError(f"what was learned is damaged: {error}; `rag-assets train undo` goes back") from error
    return Ranking(scorers, stored_map)


def _read_boosted(scorers: Mapping[str, Scorer], rows: Mapping[str, Mapping[str, object]]) -> dict[str, Scorer]:
    """Weights with their trees, once their checksum is right: LightGBM may end the process over damaged ones."""
    boosted_scorers: dict[str, Scorer] = {}
    for key, row in rows.items():
        trees = str(row["trees"])
        if _sha256(trees) != row["sha256"]:
            raise ValueError("the trees have changed")
        boosted_scorers[key] = BoostedWeights(scorers[key].weights, trees, float(str(row["scale"])))
        boosted_scorers[key].signals  # noqa: B018 - reads them now, not in the midst of a search
    return boosted_scorers


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def lightgbm_module() -> ModuleType:
    """LightGBM.

    Raises:
        ModelError: It is not installed.
    """
    try:
        return importlib.import_module("lightgbm")
    except (ImportError, OSError) as error:  # OSError: without the OpenMP library of the system
        raise ModelError(
            f"trees can be neither learned nor read without the extra `trees`: {TREES_EXTRA} ({error})"
        ) from error
