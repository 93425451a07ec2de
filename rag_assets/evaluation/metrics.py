"""Measures of rankings against relevance judgements, and how sure they are.

A ranking is a list of ids, best first; judgements are the ids that are relevant, or their grades. What stays out: data
sets, judging by models, and reports.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np


def recall_at(ranking: Sequence[str], relevant: Collection[str], k: int) -> float:
    """Share of the relevant ids that are among the first k; nan where nothing is relevant."""
    wanted = set(relevant)
    return len(wanted.intersection(ranking[:k])) / len(wanted) if wanted else math.nan


def hit_at(ranking: Sequence[str], relevant: Collection[str], k: int) -> float:
    """1 if any of the first k ids is relevant, else 0; nan where nothing is relevant."""
    wanted = set(relevant)
    return float(not wanted.isdisjoint(ranking[:k])) if wanted else math.nan


def reciprocal_rank_at(ranking: Sequence[str], relevant: Collection[str], k: int) -> float:
    """One over the rank of the first relevant id among the first k, else 0; its mean over queries is MRR@k."""
    wanted = set(relevant)
    if not wanted:
        return math.nan
    return next((1 / rank for rank, key in enumerate(ranking[:k], start=1) if key in wanted), 0.0)


def ndcg_at(ranking: Sequence[str], grades: Mapping[str, float], k: int) -> float:
    """Normalised discounted cumulative gain at k; nan where nothing is relevant.

    Source: K. Järvelin and J. Kekäläinen, Cumulated gain-based evaluation of IR techniques, ACM TOIS 20(4), 2002, with
    the discount of trec_eval: the gain at rank r, from 1, is the grade over log2(r + 1).
    """
    gains = [grades.get(key, 0.0) for key in dict.fromkeys(ranking)][:k]
    ideal = _discounted(sorted(grades.values(), reverse=True)[:k])
    return _discounted(gains) / ideal if ideal > 0 else math.nan


def _discounted(gains: Sequence[float]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))


@dataclass(frozen=True)
class Interval:
    """A mean with its bootstrap interval.

    Attributes:
        mean: Mean of the values.
        low: Lower end.
        high: Upper end.
        count: Number of values.
    """

    mean: float
    low: float
    high: float
    count: int


def bootstrap_interval(
    values: Sequence[float], level: float = 0.95, resamples: int = 10_000, seed: int = 0
) -> Interval:
    """Mean of values with a percentile bootstrap interval over queries.

    Args:
        values: One value a query; nan (nothing to judge) is left out.
        level: Share of the resampled means within the interval.
        resamples: Number of resamples.
        seed: Seed of the resampling; equal seeds give equal intervals.

    Raises:
        ValueError: There are no values.

    Source: B. Efron and R. Tibshirani, An introduction to the bootstrap, 1993, chapter 13.
    """
    kept = _without_nan(values)
    means = _resampled_means(kept, resamples, seed)
    tail = (1 - level) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    return Interval(float(kept.mean()), float(low), float(high), len(kept))


@dataclass(frozen=True)
class PairedDifference:
    """How much better one system is than another on the same queries.

    Attributes:
        difference: Mean of first minus second, with its interval.
        p_value: Two-sided, of no difference.
    """

    difference: Interval
    p_value: float


def paired_bootstrap(
    first: Sequence[float], second: Sequence[float], level: float = 0.95, resamples: int = 10_000, seed: int = 0
) -> PairedDifference:
    """Compare two systems, query by query.

    The p value is the share of resampled mean differences, shifted to a mean of 0, that are at least as far from 0 as
    the one observed; one is added to both counts, so that it is never 0.

    Args:
        first: One value a query.
        second: Values of the same queries in the same order.
        level: Share of the resampled means within the interval.
        resamples: Number of resamples.
        seed: Seed of the resampling.

    Raises:
        ValueError: The numbers of values differ, or there are none.

    Source: T. Sakai, Evaluating evaluation metrics based on the bootstrap, SIGIR 2006.
    """
    if len(first) != len(second):
        raise ValueError(f"paired values: {len(first)} of the first, {len(second)} of the second")
    differences = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    kept = _without_nan(differences.tolist())
    observed = float(kept.mean())
    shifted = _resampled_means(kept - observed, resamples, seed)
    extreme = int(np.count_nonzero(np.abs(shifted) >= abs(observed) - 1e-12))
    return PairedDifference(bootstrap_interval(kept.tolist(), level, resamples, seed), (extreme + 1) / (resamples + 1))


def _without_nan(values: Sequence[float]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    array = np.asarray(values, dtype=np.float64)
    kept = array[~np.isnan(array)]
    if not len(kept):
        raise ValueError("no values to average")
    return kept


def _resampled_means(
    values: np.ndarray[tuple[int], np.dtype[np.float64]], resamples: int, seed: int
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Means of resamples; drawn in blocks, so that memory stays small."""
    random = np.random.default_rng(seed)
    block = max(1, 2_000_000 // len(values))
    means = [
        values[random.integers(0, len(values), (min(block, resamples - start), len(values)))].mean(axis=1)
        for start in range(0, resamples, block)
    ]
    return np.concatenate(means)
