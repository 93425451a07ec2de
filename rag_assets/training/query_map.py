"""A map of query vectors that moves a question towards what answers it, learned without embedding a passage again.

For each question, the direction from the passages that are nearest to it but hold no evidence to the one that does is
regressed on the question's vector, in closed form; of the map that comes out, the strongest components stay. How strong
the ridge is, is chosen by cross-validation over documents, no map at all being one of the choices.

Source: A. Hoerl and R. Kennard, Ridge regression, Technometrics 12(1), 1970; the reduced rank: A. Izenman, Reduced-rank
regression for the multivariate linear model, Journal of Multivariate Analysis 5(2), 1975 (singular values of the fit,
here of the map itself).
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rag_assets.evaluation.evidence import Level
from rag_assets.query.search.ranking_weights import QueryMap
from rag_assets.training.pairs import JudgedQuestion, document_folds
from rag_assets.training.ranking import strongest_pull

RANK = 32  # of the map: enough for what some hundred questions tell, and 100 KB at 384 dimensions
RIDGES = (math.inf, 300.0, 100.0, 30.0, 10.0, 3.0)  # in questions; strongest first
_TEMPERATURE = 0.05  # of the softmax over cosines, as embedders are trained with
_RIVALS = 20  # nearest passages without evidence that a question is moved away from
_FOLDS = 4
_LEAST_QUESTIONS = 8

_Matrix = NDArray[np.float64]


def learned_map(judged: Sequence[JudgedQuestion]) -> tuple[QueryMap | None, float]:
    """A map and its ridge; None and infinity where none is surely better.

    Args:
        judged: Questions with the vectors of their candidates.
    """
    usable = [question for question in judged if _evidence(question) is not None]
    if len(usable) < _LEAST_QUESTIONS:
        return None, math.inf
    losses = np.full((len(usable), len(RIDGES)), np.nan)
    folds = document_folds([question.documents for question in usable], _FOLDS)
    if len(folds) == 1:
        return None, math.inf
    for held_out in folds:
        rest = [question for position, question in enumerate(usable) if position not in set(held_out)]
        maps = _maps(rest, RIDGES)
        for position in held_out:
            losses[position] = [_loss(usable[position], query_map) for query_map in maps]
    column = strongest_pull(losses)
    return _reduced(_maps(usable, RIDGES)[column]), RIDGES[column]


def _evidence(judged: JudgedQuestion) -> NDArray[np.bool_] | None:
    """Which candidates hold evidence; None where none does, or all do."""
    pieces = judged.holding(Level.PASSAGE)
    holds = np.logical_or.reduce(pieces) if pieces else np.zeros(0, dtype=bool)
    return holds if holds.any() and not holds.all() else None


def _maps(judged: Sequence[JudgedQuestion], ridges: Sequence[float]) -> list[QueryMap | None]:
    """A map for each ridge; None for an infinite one."""
    queries = np.stack([question.query for question in judged]).astype(np.float64)
    directions = np.stack([_direction(question) for question in judged])
    # (Q'Q + r)^-1 Q' = Q' (QQ' + r)^-1: as large as there are questions, not dimensions
    kernel = queries @ queries.T
    maps: list[QueryMap | None] = []
    for ridge in ridges:
        if math.isinf(ridge):
            maps.append(None)
            continue
        right = np.linalg.solve(kernel + ridge * np.eye(len(judged)), queries)
        maps.append(QueryMap(directions.T.astype(np.float32), right.astype(np.float32)))
    return maps


def _reduced(query_map: QueryMap | None) -> QueryMap | None:
    """The strongest components of a map, of which there are as many as questions."""
    if query_map is None:
        return None
    outer, left = np.linalg.qr(query_map.left)
    inner, right = np.linalg.qr(query_map.right.T)
    vectors, values, components = np.linalg.svd(left @ right.T)
    rank = min(RANK, len(values))
    return QueryMap(outer @ (vectors[:, :rank] * values[:rank]), components[:rank] @ inner.T)


def _direction(judged: JudgedQuestion) -> _Matrix:
    """From the nearest passages without evidence to those with it, which count by how near they are."""
    holds = _evidence(judged)
    assert holds is not None
    vectors, cosines = judged.passages.astype(np.float64), (judged.passages @ judged.query).astype(np.float64)
    rivals = np.flatnonzero(~holds)
    rivals = rivals[np.argsort(-cosines[rivals], kind="stable")[:_RIVALS]]
    return _mean(vectors[holds], cosines[holds]) - _mean(vectors[rivals], cosines[rivals])


def _mean(vectors: _Matrix, cosines: _Matrix) -> _Matrix:
    shares = np.exp((cosines - cosines.max()) / _TEMPERATURE)
    mean: _Matrix = shares @ vectors / shares.sum()
    return mean


def _loss(judged: JudgedQuestion, query_map: QueryMap | None) -> float:
    """Negative log share of the softmax over cosines that the evidence gets."""
    holds = _evidence(judged)
    assert holds is not None
    query = judged.query if query_map is None else query_map.mapped(judged.query)
    scores = (judged.passages @ query).astype(np.float64) / _TEMPERATURE
    return float(np.logaddexp.reduce(scores) - np.logaddexp.reduce(scores[holds]))
