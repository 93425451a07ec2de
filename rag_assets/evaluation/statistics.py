"""How sure a mean over questions is, and whether one system is better than another."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 10_000  # makes the ends of an interval repeat to about a hundredth of its width
LEVEL = 0.95  # share of the resampled means within an interval
_TAIL = (1 - LEVEL) / 2
POWER = 0.8  # chance that a difference is seen which `questions_needed` is asked for
_LOST_SEEN = 5.5  # questions lost on average, where four are in four of five cases: the fewest that intervals show
_WORSE_EACH = 3  # questions of which all are worse, whatever the interval of so few says
FEW = 20  # questions below which a bootstrap interval is known to be too narrow
_SAME = 1e-12  # difference of means that is one of rounding
_BLOCK = 2_000_000  # values drawn at a time

Values = NDArray[np.float64]
Labels = NDArray[np.intp]


@dataclass(frozen=True)
class Interval:
    """A mean with its interval."""

    mean: float
    low: float
    high: float
    count: int


def change_text(interval: Interval) -> str:
    """A difference with its interval, each with its sign."""
    return f"{interval.mean:+.3f} [{interval.low:+.3f}, {interval.high:+.3f}]"


@dataclass(frozen=True)
class PairedDifference:
    """How much better one system is than another on the same questions."""

    difference: Interval  # mean of first minus second, with its interval
    p_value: float  # two-sided, of no difference


@dataclass(frozen=True)
class Comparison:
    """Two systems on the same questions, by three tests."""

    difference: Interval  # mean of first minus second, with its bootstrap interval
    p_bootstrap: float  # of the paired bootstrap
    p_randomisation: float  # of the randomisation test
    p_wilcoxon: float  # of the signed-rank test; 1 where no question differs
    p_holm: float  # the same, by Holm for all comparisons that stand beside this one
    wins: int  # questions on which the first is better
    losses: int  # questions on which it is worse
    visible: float  # smallest difference that so many questions show with a chance of `POWER`


def bootstrap_interval(
    values: Sequence[float], resamples: int = RESAMPLES, seed: int = 0, groups: Sequence[int] | None = None
) -> Interval:
    """Mean of shares with a bootstrap interval over questions, see `bootstrap_intervals`."""
    present, labels = _grouped(np.asarray(values, dtype=np.float64), groups)
    means = _resampled_means(present[:, None], resamples, seed, labels)[:, 0]
    return _interval(present, means, 0.0, 1.0, labels)


def bootstrap_intervals(
    columns: Sequence[Sequence[float] | Values],
    resamples: int = RESAMPLES,
    seed: int = 0,
    bounds: Sequence[float] | None = None,
) -> list[Interval]:
    """Means of columns of values with expanded percentile bootstrap intervals; those of a length are resampled at once.

    Of values that are all the same every resample is the same; the interval then leaves room for the largest share of
    other values that so many questions may hold none of. Of shares that are all 0 or all 1 it is that of Clopper and
    Pearson.

    Args:
        columns: One value a question; nan (nothing to judge) is left out.
        resamples: Number of resamples.
        seed: Seed of the resampling; equal seeds give equal intervals, whatever columns stand beside.
        bounds: The largest possible value of each column, infinite where there is none; None for shares, 1.

    Raises:
        ValueError: A column has no values.

    Source: B. Efron and R. Tibshirani, An introduction to the bootstrap, 1993, chapter 13.
    """
    clean_columns = [_without_nan(values) for values in columns]
    intervals: dict[int, Interval] = {}
    for length in {len(values) for values in clean_columns}:
        indexes = [index for index, values in enumerate(clean_columns) if len(values) == length]
        means = _resampled_means(np.stack([clean_columns[index] for index in indexes], axis=1), resamples, seed)
        for index, of_column in zip(indexes, means.T, strict=True):
            intervals[index] = _interval(clean_columns[index], of_column, 0.0, bounds[index] if bounds else 1.0)
    return [intervals[index] for index in range(len(columns))]


def paired_bootstrap(
    first: Sequence[float],
    second: Sequence[float],
    resamples: int = RESAMPLES,
    seed: int = 0,
    bound: float = 1.0,
    groups: Sequence[int] | None = None,
) -> PairedDifference:
    """Compare two systems, question by question.

    The p value is the share of resampled mean differences, shifted to a mean of 0, that are at least as far from 0 as
    the one observed; one is added to both counts, so that it is never 0. Where all questions differ by the same, or
    none does, the interval leaves room for others, see `bootstrap_intervals`: they may differ as far as can be, the one
    way or the other.

    Args:
        first: One value a question.
        second: Values of the same questions in the same order.
        resamples: Number of resamples.
        seed: Seed of the resampling.
        bound: The largest possible value of a question; infinite where there is none.
        groups: A number for each question; those of one number, as of one document, are drawn together. None draws
            questions by themselves.

    Raises:
        ValueError: The numbers of values differ, or there are none.

    Source: T. Sakai, Evaluating evaluation metrics based on the bootstrap, SIGIR 2006; groups: A. Davison and
    D. Hinkley, Bootstrap methods and their application, 1997, section 3.8 (whole groups are drawn, none within).
    """
    differences, labels = _grouped(_all_differences(first, second), groups)
    observed = float(differences.mean())
    means = _resampled_means(differences[:, None], resamples, seed, labels)[:, 0]
    extreme = int(np.count_nonzero(np.abs(means - observed) >= abs(observed) - 1e-12))
    return PairedDifference(_interval(differences, means, -bound, bound, labels), (extreme + 1) / (resamples + 1))


def randomisation_test(first: Sequence[float], second: Sequence[float], seed: int = 0) -> float:
    """Two-sided p value of the mean difference where the two systems' values are exchanged at random, by question.

    Of few questions all exchanges are looked at, which makes it exact.

    Raises:
        ValueError: The numbers of values differ, or there are none.

    Source: M. Smucker, J. Allan and B. Carterette, A comparison of statistical significance tests for information
    retrieval evaluation, CIKM 2007.
    """
    differences = _differences(first, second)
    differences = differences[differences != 0]
    observed, count = abs(float(differences.sum())), len(differences)
    exact = 2**count <= RESAMPLES
    random = np.random.default_rng(seed)
    extreme = 0
    total = 2**count if exact else RESAMPLES
    block = max(1, _BLOCK // max(1, count))
    for start in range(0, total, block):
        size = min(block, total - start)
        if exact:
            signs = (np.arange(start, start + size)[:, None] >> np.arange(count) & 1).astype(np.float64)
        else:
            signs = random.integers(0, 2, (size, count)).astype(np.float64)
        extreme += int(np.count_nonzero(np.abs((2 * signs - 1) @ differences) >= observed - 1e-12))
    return extreme / total if exact else (extreme + 1) / (total + 1)


def wilcoxon(first: Sequence[float], second: Sequence[float]) -> float:
    """Two-sided p value of the signed-rank test; questions without a difference are left out.

    Raises:
        ValueError: The numbers of values differ, or there are none.
    """
    from scipy import stats

    differences = _differences(first, second)
    return float(stats.wilcoxon(differences).pvalue) if np.any(differences) else 1.0


def holm(p_values: Sequence[float]) -> list[float]:
    """P values by the step-down method for that many tests at once, in the order given.

    Source: S. Holm, A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics, 1979.
    """
    highest, adjusted = 0.0, [0.0] * len(p_values)
    for tests_before, index in enumerate(sorted(range(len(p_values)), key=lambda position: p_values[position])):
        highest = max(highest, min(1.0, (len(p_values) - tests_before) * p_values[index]))
        adjusted[index] = highest
    return adjusted


def questions_needed(difference: float, deviation: float, bound: float = 1.0) -> int:
    """Questions that show a difference of means, which is not 0; the inverse of `visible_difference`."""
    by_spread = (_reach() * deviation / difference) ** 2
    by_lost = _LOST_SEEN * bound / difference if math.isfinite(bound) else 0.0
    return max(2, math.ceil(by_spread), math.ceil(by_lost))


def visible_difference(count: int, deviation: float, bound: float = 1.0) -> float:
    """The smallest difference of means that a number of questions shows by its interval, with a chance of `POWER`.

    By a paired test, and not below the number of questions that has to be lost: where few differ, the spread seen says
    little.

    Args:
        count: Questions.
        deviation: Standard deviation of the differences by question.
        bound: The largest possible difference of a question; infinite where there is none.
    """
    by_spread = _reach() * deviation / math.sqrt(count)
    by_lost = min(bound, bound * _LOST_SEEN / count)
    return max(by_lost, by_spread) if math.isfinite(bound) or not deviation else by_spread


def unseen_share(count: int) -> float:
    """The largest share of questions of a kind that so many questions may hold none of, by Clopper and Pearson."""
    return float(1 - _TAIL ** (1 / count))


def visible_change(differences: Values, bound: float = 1.0) -> float:
    """The smallest mean difference that so many questions show, see `visible_difference`.

    Args:
        differences: One a question.
        bound: The largest possible difference of a question; infinite where there is none.
    """
    return visible_difference(len(differences), spread_of(differences), bound)


def spread_of(differences: Values) -> float:
    """Standard deviation of differences by question; 0 of a single one."""
    return float(differences.std(ddof=1)) if len(differences) > 1 else 0.0


def is_worse(difference: Interval, differences: Sequence[float]) -> bool:
    """Whether questions are worse by a change: beyond the interval, or each of them where they are three or more.

    The second is for so few questions that an interval says next to nothing.

    Args:
        difference: Mean of the differences, with its interval.
        differences: After minus before, one a question.
    """
    return difference.high < 0 or (len(differences) >= _WORSE_EACH and max(differences) < 0)


def compare(
    pairs: Mapping[str, tuple[Sequence[float], Sequence[float]]], seed: int = 0, bound: float = 1.0
) -> dict[str, Comparison]:
    """Compare systems by all tests; Holm takes all that are compared here as one family.

    Args:
        pairs: By name, the values of the first and of the second system on the same questions.
        seed: Seed of the resampling.
        bound: The largest possible value of a question; infinite where there is none.

    Raises:
        ValueError: The numbers of values of a pair differ, or there are none.
    """
    p_values = [wilcoxon(first, second) for first, second in pairs.values()]
    comparisons = {}
    for (name, (first, second)), p_value, p_holm in zip(pairs.items(), p_values, holm(p_values), strict=True):
        bootstrap = paired_bootstrap(first, second, seed=seed, bound=bound)
        differences = _differences(first, second)
        comparisons[name] = Comparison(
            bootstrap.difference,
            bootstrap.p_value,
            randomisation_test(first, second, seed=seed),
            p_value,
            p_holm,
            int(np.count_nonzero(differences > 0)),
            int(np.count_nonzero(differences < 0)),
            visible_change(differences, bound),
        )
    return comparisons


def _interval(values: Values, means: Values, least: float, most: float, labels: Labels | None = None) -> Interval:
    """Interval of the mean of values between two bounds, by the means of their resamples."""
    mean, count = float(values.mean()), len(values)
    draw_count = count if labels is None else int(labels.max()) + 1
    if math.isfinite(most) and float(np.ptp(means)) <= _SAME:
        missed_share = unseen_share(draw_count)
        return Interval(mean, mean - missed_share * (mean - least), mean + missed_share * (most - mean), count)
    tail = _expanded_tail(draw_count)
    low, high = np.quantile(means, [tail, 1 - tail])
    return Interval(mean, float(low), float(high), count)


@cache
def _expanded_tail(count: int) -> float:
    """Share of resampled means beyond either end of an interval; smaller for few values, whose means vary too little.

    Args:
        count: Values, or groups of them, that are drawn.

    Source: T. Hesterberg, What teachers should know about the bootstrap, The American Statistician 69, 2015 (expanded
    percentile interval).
    """
    if count == 1:
        return _TAIL
    from scipy import special  # loads in a third of the time of scipy.stats

    reach = math.sqrt(count / (count - 1)) * special.stdtrit(count - 1, 1 - _TAIL)
    return float(special.ndtr(-reach))


def _reach() -> float:
    """Standard errors that a difference must measure to be seen with a chance of `POWER`."""
    from scipy import stats

    return float(stats.norm.ppf((1 + LEVEL) / 2) + stats.norm.ppf(POWER))


def _differences(first: Sequence[float], second: Sequence[float]) -> Values:
    return _without_nan(_all_differences(first, second))


def _all_differences(first: Sequence[float], second: Sequence[float]) -> Values:
    if len(first) != len(second):
        raise ValueError(f"paired values: {len(first)} of the first, {len(second)} of the second")
    differences: Values = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    return differences


def _grouped(values: Values, groups: Sequence[int] | None) -> tuple[Values, Labels | None]:
    """Values that are there, and the groups of these, numbered from 0."""
    present = _without_nan(values)
    if groups is None:
        return present, None
    return present, np.unique(np.asarray(groups)[~np.isnan(values)], return_inverse=True)[1]


def _without_nan(values: Sequence[float] | Values) -> Values:
    array = np.asarray(values, dtype=np.float64)
    present: Values = array[~np.isnan(array)]
    if not len(present):
        raise ValueError("no values to average")
    return present


def _resampled_means(values: Values, resamples: int, seed: int, labels: Labels | None = None) -> Values:
    """Means of resamples of rows, or of groups of them, a column each; drawn in blocks, so that memory stays small."""
    random = np.random.default_rng(seed)
    sizes = np.ones(len(values)) if labels is None else np.bincount(labels).astype(np.float64)
    if labels is not None:
        sums = np.zeros((len(sizes), values.shape[1]))
        np.add.at(sums, labels, values)
        values = sums
    length = len(values)
    block = max(1, _BLOCK // length)
    means = []
    for start in range(0, resamples, block):
        size = min(block, resamples - start)
        draws = random.integers(0, length, (size, length)) + np.arange(size)[:, None] * length
        counts = np.bincount(draws.ravel(), minlength=size * length).reshape(size, length)
        means.append(counts @ values / (counts @ sizes)[:, None])
    return np.concatenate(means)
