"""Measures of a ranking against what is relevant, by name as in `R@5`.

What is relevant to a question is a list of pieces, each with the ids that hold it: a quote may stand in two overlapping
passages. Where every piece is held by one id, the measures equal those of trec_eval.
"""

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

from rag_assets.contracts.errors import QueryError

_NAME = re.compile(r"(HitRate|Hit|MRR|MAP|nDCG|All|R|P)@([1-9]\d{0,3})")


@dataclass(frozen=True)
class Piece:
    """Something that an answer rests on."""

    ids: frozenset[str]  # what holds it; empty where nothing does, so that no ranking reaches it
    grade: float = 1.0  # how relevant it is, above 0; 1 where nobody graded


@dataclass(frozen=True)
class Ranks:
    """Where a ranking holds what is relevant."""

    # of each piece, the rank from 1 of the first id that holds it, infinite where none does; and its grade
    pieces: tuple[tuple[float, float], ...]
    relevant: tuple[int, ...]  # ranks of all places that hold any piece


Measure: TypeAlias = Callable[[Ranks, int], float]


def ranks_of(ranking: Sequence[Collection[str]], pieces: Sequence[Piece]) -> Ranks:
    """Where a ranking holds the pieces.

    Args:
        ranking: Best first, of each place the ids that it counts as: a passage counts as its page and document, too.
        pieces: What is relevant.
    """
    first: dict[str, int] = {}
    for rank, ids in enumerate(ranking, start=1):
        for key in ids:
            first.setdefault(key, rank)
    wanted_ids = frozenset[str]().union(*(piece.ids for piece in pieces))
    best_ranks = (min((first[key] for key in piece.ids if key in first), default=math.inf) for piece in pieces)
    return Ranks(
        tuple((rank, piece.grade) for rank, piece in zip(best_ranks, pieces, strict=True)),
        tuple(rank for rank, ids in enumerate(ranking, start=1) if not wanted_ids.isdisjoint(ids)),
    )


def recall_at(ranks: Ranks, k: int) -> float:
    """Share of the pieces that are among the first k."""
    return sum(rank <= k for rank, _ in ranks.pieces) / len(ranks.pieces)


def all_at(ranks: Ranks, k: int) -> float:
    """1 where all pieces are among the first k, else 0."""
    return float(all(rank <= k for rank, _ in ranks.pieces))


def hit_at(ranks: Ranks, k: int) -> float:
    """1 if any of the first k is relevant, else 0."""
    return float(any(rank <= k for rank in ranks.relevant))


def precision_at(ranks: Ranks, k: int) -> float:
    """Share of the first k places that are relevant; empty places are not."""
    return sum(rank <= k for rank in ranks.relevant) / k


def reciprocal_rank_at(ranks: Ranks, k: int) -> float:
    """One over the rank of the first relevant place among the first k, else 0; its mean over questions is MRR@k."""
    first = ranks.relevant[0] if ranks.relevant else math.inf
    return 1 / first if first <= k else 0.0


def average_precision_at(ranks: Ranks, k: int) -> float:
    """Mean over the pieces of the precision where each is reached, 0 for those beyond k; its mean is MAP@k.

    A place that holds several pieces reaches them at once; no precision is above 1.
    """
    top_ranks = sorted(rank for rank, _ in ranks.pieces if rank <= k)
    return sum(min(1.0, count / rank) for count, rank in enumerate(top_ranks, start=1)) / len(ranks.pieces)


def ndcg_at(ranks: Ranks, k: int) -> float:
    """Normalised discounted cumulative gain at k; at most 1, also where one place holds several pieces.

    Source: K. Järvelin and J. Kekäläinen, Cumulated gain-based evaluation of IR techniques, ACM TOIS 20(4), 2002, with
    the discount of trec_eval: the gain at rank r, from 1, is the grade over log2(r + 1).
    """
    gain = sum(grade / math.log2(rank + 1) for rank, grade in ranks.pieces if rank <= k)
    best = sorted((grade for _, grade in ranks.pieces), reverse=True)[:k]
    return min(1.0, gain / sum(grade / math.log2(rank + 1) for rank, grade in enumerate(best, start=1)))


_MEASURES: Mapping[str, Measure] = {
    "R": recall_at,
    "All": all_at,
    "Hit": hit_at,
    "HitRate": hit_at,
    "P": precision_at,
    "MRR": reciprocal_rank_at,
    "MAP": average_precision_at,
    "nDCG": ndcg_at,
}


@cache
def parse_measure(name: str) -> tuple[Measure, int]:
    """The measure that a name such as `nDCG@10` means, and its k.

    Raises:
        QueryError: There is no such measure.
    """
    if (match := _NAME.fullmatch(name)) is None:
        names = ", ".join(f"{measure}@5" for measure in _MEASURES)
        raise QueryError(f"unknown measure {name!r}: expected one of {names}, with any number after @")
    return _MEASURES[match[1]], int(match[2])


def measured(
    names: Iterable[str], ranking: Sequence[Collection[str]], ways: Sequence[Sequence[Piece]]
) -> dict[str, float]:
    """Measures of one ranking.

    Args:
        names: As in `R@5`.
        ranking: See `ranks_of`.
        ways: What is relevant: the pieces of one full answer, or of several, of which the best reached counts.

    Returns:
        By name, 0 to 1; nan where nothing is relevant.
    """
    ranks = [ranks_of(ranking, pieces) for pieces in ways if pieces]
    measures = {name: parse_measure(name) for name in names}
    return {
        name: max((measure(way_ranks, k) for way_ranks in ranks), default=math.nan)
        for name, (measure, k) in measures.items()
    }
