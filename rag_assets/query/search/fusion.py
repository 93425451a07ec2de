"""Putting several rankings of the same things into one. Pure functions over scores by id.

Every function takes, for each ranking, the scores of the ids that it holds (higher is better) and returns fused scores;
`ranked` orders them. What stays out: where rankings come from.

Source: CombSUM and CombMNZ: E. Fox and J. Shaw, Combination of multiple searches, TREC-2, 1994. Borda: J. Aslam and
M. Montague, Models for metasearch, SIGIR 2001. RRF: G. Cormack, C. Clarke and S. Büttcher, Reciprocal rank fusion
outperforms Condorcet and individual rank learning methods, SIGIR 2009.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import TypeVar

from rag_assets.contracts.modes import RRF_K

Id = TypeVar("Id", bound=str)
Ranking = Mapping[Id, float]


def ranked(scores: Ranking[Id]) -> list[tuple[Id, float]]:
    """Ids by falling score; equal scores by id."""
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))


def min_max(scores: Ranking[Id]) -> dict[Id, float]:
    """Scores scaled to 0 (lowest) up to 1 (highest); all 1 where they are equal."""
    if not scores:
        return {}
    lowest, highest = min(scores.values()), max(scores.values())
    if highest == lowest:
        return dict.fromkeys(scores, 1.0)
    return {key: (score - lowest) / (highest - lowest) for key, score in scores.items()}


def comb_sum(rankings: Sequence[Ranking[Id]]) -> dict[Id, float]:
    """Sum of the scores; a ranking that does not hold an id adds nothing. Scale scores before (`min_max`)."""
    scores: dict[Id, float] = {}
    for ranking in rankings:
        for key, score in ranking.items():
            scores[key] = scores.get(key, 0.0) + score
    return scores


def comb_mnz(rankings: Sequence[Ranking[Id]], held: Sequence[Collection[Id]] | None = None) -> dict[Id, float]:
    """Sum of the scores times the number of rankings that hold the id. Scale scores before (`min_max`).

    Args:
        rankings: The rankings.
        held: The ids that count as held by each, where rankings also score ids that they did not find; else their ids.
    """
    lists = rankings if held is None else held
    return {key: score * sum(key in keys for keys in lists) for key, score in comb_sum(rankings).items()}


def borda(rankings: Sequence[Ranking[Id]]) -> dict[Id, float]:
    """Sum of (m - rank), with m ids in all rankings together and ranks from 1.

    Ids that a ranking does not hold share the points that it leaves, as in Aslam and Montague.
    """
    candidates = set().union(*rankings) if rankings else set()
    count = len(candidates)
    scores: dict[Id, float] = dict.fromkeys(candidates, 0.0)
    for ranking in rankings:
        ordered_pairs = ranked(ranking)
        for rank, (key, _) in enumerate(ordered_pairs, start=1):
            scores[key] += count - rank
        absent = candidates.difference(ranking)
        for key in absent:
            scores[key] += (len(absent) - 1) / 2
    return scores


def reciprocal_rank(rankings: Sequence[Ranking[Id]], k: float = RRF_K) -> dict[Id, float]:
    """RRF: sum of 1 / (k + rank), ranks from 1; `k`, 60 in the paper, levels the first ranks."""
    scores: dict[Id, float] = {}
    for ranking in rankings:
        for rank, (key, _) in enumerate(ranked(ranking), start=1):
            scores[key] = scores.get(key, 0.0) + 1 / (k + rank)
    return scores
