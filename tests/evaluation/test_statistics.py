"""Intervals and tests against values worked by hand, and against scipy."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from rag_assets.evaluation.statistics import (
    bootstrap_interval,
    bootstrap_intervals,
    compare,
    holm,
    paired_bootstrap,
    questions_needed,
    randomisation_test,
    visible_change,
    visible_difference,
    wilcoxon,
)


def test_an_interval_is_seeded_and_covers_the_mean() -> None:
    values = [0.0, 1.0] * 50
    interval = bootstrap_interval(values, seed=7)
    assert interval == bootstrap_interval(values, seed=7)
    assert interval.mean == 0.5
    # The standard error of a mean of 100 fair coins is 0.05.
    assert interval.low == pytest.approx(0.5 - 1.96 * 0.05, abs=0.015)
    assert interval.high == pytest.approx(0.5 + 1.96 * 0.05, abs=0.015)
    assert bootstrap_interval([0.3, math.nan, 0.3]).count == 2


def test_an_interval_equals_that_of_scipy() -> None:
    values = np.random.default_rng(5).beta(0.5, 0.5, 80)
    ours = bootstrap_interval(values.tolist(), resamples=20_000)
    rng = np.random.default_rng(6)
    theirs = stats.bootstrap((values,), np.mean, method="percentile", n_resamples=20_000, rng=rng).confidence_interval
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=0.004)


def test_columns_at_once_have_the_intervals_of_each_alone() -> None:
    random = np.random.default_rng(1)
    columns = [random.random(30).tolist(), random.random(30).tolist(), random.random(7).tolist()]
    columns[1][3] = math.nan
    for at_once, column in zip(bootstrap_intervals(columns, seed=3), columns, strict=True):
        alone = bootstrap_interval(column, seed=3)
        assert (at_once.low, at_once.high) == pytest.approx((alone.low, alone.high))


@pytest.mark.parametrize("count", [1, 5, 138])
def test_shares_without_variance_get_the_exact_interval(count: int) -> None:
    reference = stats.binomtest(count, count).proportion_ci(method="exact")
    all_right, none_right = bootstrap_interval([1.0] * count), bootstrap_interval([0.0] * count)
    assert (all_right.low, all_right.high) == pytest.approx((reference.low, 1.0))
    assert (none_right.low, none_right.high) == pytest.approx((0.0, 1 - reference.low))


def test_intervals_cover_as_often_as_they_claim() -> None:
    random = np.random.default_rng(1)
    covered = 0
    for trial in range(200):
        interval = bootstrap_interval(random.normal(0, 1, 50).tolist(), resamples=500, seed=trial)
        covered += interval.low <= 0 <= interval.high
    assert 0.88 <= covered / 200 <= 0.99


def test_paired_bootstrap_tells_a_difference_from_none() -> None:
    random = np.random.default_rng(2)
    second = random.random(80)
    better = paired_bootstrap((second + 0.1).tolist(), second.tolist())
    assert better.difference.mean == pytest.approx(0.1)
    assert better.p_value < 0.01
    same = paired_bootstrap(second.tolist(), second.tolist())
    assert same.p_value == 1.0
    noise = paired_bootstrap(random.random(80).tolist(), random.random(80).tolist())
    assert noise.p_value > 0.01
    assert noise.difference.low < noise.difference.mean < noise.difference.high


def test_questions_of_one_group_are_drawn_together() -> None:
    means = np.random.default_rng(4).random(30)
    of_groups = paired_bootstrap(means.tolist(), [0.0] * 30)
    values, groups = np.repeat(means, 5), np.repeat(np.arange(30), 5)
    grouped = paired_bootstrap(values.tolist(), [0.0] * 150, groups=groups.tolist())
    ends = (grouped.difference.low, grouped.difference.high, grouped.p_value)
    assert ends == pytest.approx((of_groups.difference.low, of_groups.difference.high, of_groups.p_value))
    assert grouped.difference.count == 150
    interval = bootstrap_interval([*values, math.nan], groups=[*groups.tolist(), 99])
    assert (interval.low, interval.high) == pytest.approx(ends[:2])
    alone = paired_bootstrap(values.tolist(), [0.0] * 150)
    assert alone == paired_bootstrap(values.tolist(), [0.0] * 150, groups=range(150))
    assert grouped.difference.low < alone.difference.low


def test_groups_of_other_sizes_weigh_by_their_questions() -> None:
    sizes, values = (1, 4, 2, 6, 3, 2), (0.1, 0.9, 0.4, 0.2, 0.7, 1.0)
    resamples = itertools.product(range(6), repeat=6)
    means = [
        sum(sizes[each] * values[each] for each in drawn) / sum(sizes[each] for each in drawn) for drawn in resamples
    ]
    groups = np.repeat(np.arange(6), sizes).tolist()
    ours = bootstrap_interval(np.repeat(values, sizes).tolist(), resamples=40_000, groups=groups)
    tail = stats.norm.cdf(-math.sqrt(6 / 5) * stats.t.ppf(0.975, 5))  # of 6 groups
    assert (ours.low, ours.high) == pytest.approx(np.quantile(means, [tail, 1 - tail]), abs=0.02)
    same = bootstrap_interval([1.0] * 18, groups=groups)
    assert (same.low, same.count) == (bootstrap_interval([1.0] * 6).low, 18), "room as for 6 questions, not 18"


@pytest.mark.parametrize(
    "sizes", [(8,) * 6, (20, *(4,) * 5), (54, *(1,) * 39)], ids=["even", "half in one", "most in one"]
)
def test_intervals_over_few_groups_hold_what_they_promise(sizes: tuple[int, ...]) -> None:
    """Where questions of a group go alike and nothing differs, an interval of 95 % leaves out 0 in about one of 20."""
    random, trials = np.random.default_rng(len(sizes)), 400
    groups = np.repeat(np.arange(len(sizes)), sizes).tolist()
    missed = 0
    for _ in range(trials):
        shared = np.repeat(random.normal(size=len(sizes)), sizes)
        values = math.sqrt(0.3) * shared + math.sqrt(0.7) * random.normal(size=len(groups))
        found = paired_bootstrap(values.tolist(), [0.0] * len(groups), 1000, bound=math.inf, groups=groups).difference
        missed += found.low > 0 or found.high < 0
    assert 0.01 < missed / trials < 0.095, "0.05, and its error by chance; percentiles as they are miss 0.13 to 0.16"


def test_groups_that_are_all_the_same_leave_room_for_others() -> None:
    values, groups = [1.0, 0.0, 0.0, 0.0] * 6, np.repeat(np.arange(6), 4).tolist()
    found = paired_bootstrap(values, [0.0] * 24, groups=groups).difference
    assert found.mean == 0.25
    assert found.low == pytest.approx(0.25 - (1 - 0.025 ** (1 / 6)) * 1.25)


@pytest.mark.parametrize("count", [4, 9, 12])
def test_randomisation_of_few_questions_is_exact_as_in_scipy(count: int) -> None:
    random = np.random.default_rng(count)
    first, second = random.integers(0, 4, count) / 3, random.integers(0, 4, count) / 3
    theirs = stats.permutation_test(
        (first, second), lambda one, other: np.mean(one - other), permutation_type="samples", n_resamples=np.inf
    )
    assert randomisation_test(first.tolist(), second.tolist()) == pytest.approx(theirs.pvalue)


@pytest.mark.parametrize(
    ("difference", "count", "low", "high"),
    [  # room for the share of others that so many may hold none of: 1 - 0.025 ** (1 / count)
        *((-1.0, 1, -1.0, 0.95), (-1.0, 2, -1.0, 0.684), (-1.0, 5, -1.0, 0.044), (-1.0, 6, -1.0, -0.081)),
        *((-0.5, 5, -0.761, 0.283), (-0.5, 12, -0.632, -0.103), (0.0, 5, -0.522, 0.522), (1.0, 6, 0.081, 1.0)),
    ],
)
def test_equal_differences_leave_room_for_those_of_other_questions(
    difference: float, count: int, low: float, high: float
) -> None:
    interval = paired_bootstrap([max(0.0, difference)] * count, [max(0.0, -difference)] * count).difference
    assert interval.mean == difference
    assert (interval.low, interval.high) == pytest.approx((low, high), abs=0.001)


def test_the_change_that_is_visible_is_seen_as_often_as_it_should() -> None:
    random = np.random.default_rng(13)
    visible = visible_change(np.zeros(80))
    assert visible == pytest.approx(5.5 / 80)
    seen = 0
    for trial in range(200):
        lost = (random.random(80) < visible).astype(float)
        seen += paired_bootstrap((1 - lost).tolist(), [1.0] * 80, resamples=500, seed=trial).difference.high < 0
    assert 0.7 <= seen / 200 <= 0.9
    spread = random.choice(np.array([-1.0, 0.0, 1.0]), 80)
    assert visible_change(spread) == visible_difference(80, float(spread.std(ddof=1)))
    assert visible_change(np.zeros(3)) == 1.0


def test_randomisation_of_many_questions_is_near_that_of_scipy() -> None:
    random = np.random.default_rng(8)
    first, second = random.random(90) + 0.06, random.random(90)
    theirs = stats.permutation_test(
        (first, second),
        lambda one, other, axis: np.mean(one - other, axis=axis),
        permutation_type="samples",
        n_resamples=20_000,
        vectorized=True,
        rng=np.random.default_rng(9),
    )
    assert randomisation_test(first.tolist(), second.tolist()) == pytest.approx(theirs.pvalue, abs=0.015)


def test_wilcoxon_is_that_of_scipy_and_says_nothing_without_a_difference() -> None:
    random = np.random.default_rng(10)
    first, second = random.random(40), random.random(40)
    assert wilcoxon(first.tolist(), second.tolist()) == stats.wilcoxon(first, second).pvalue
    assert wilcoxon([0.5, 0.5], [0.5, 0.5]) == 1.0


def test_holm_by_hand() -> None:
    # sorted .01, .03, .04: times 3, 2, 1, and never below the one before
    assert holm([0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.03, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0]


def test_the_questions_needed_show_the_difference_as_often_as_they_should() -> None:
    count = questions_needed(0.1, deviation=0.4)
    assert count == math.ceil((2.8016 * 4) ** 2)
    assert visible_difference(count, 0.4) == pytest.approx(0.1, abs=0.001)
    assert visible_difference(10, 0.1) == 0.55  # 5.5 questions lost, however small the spread
    assert questions_needed(0.05, deviation=0.1) == 110
    assert questions_needed(0.05, deviation=0.1, bound=math.inf) == math.ceil((2.8016 * 2) ** 2)
    random = np.random.default_rng(11)
    seen = [stats.ttest_1samp(random.normal(0.1, 0.4, count), 0).pvalue < 0.05 for _ in range(400)]
    assert 0.73 <= np.mean(seen) <= 0.87


def test_a_comparison_corrects_for_all_measures() -> None:
    random = np.random.default_rng(12)
    base = random.random(60)
    pairs = {f"m{number}": ((base + 0.05 * number).tolist(), random.random(60).tolist()) for number in range(3)}
    compared = compare(pairs)
    assert [each.p_holm for each in compared.values()] == holm([each.p_wilcoxon for each in compared.values()])
    assert all(each.wins + each.losses == 60 for each in compared.values())


def test_wrong_numbers_of_values_are_refused() -> None:
    with pytest.raises(ValueError, match="no values"):
        bootstrap_interval([math.nan])
    with pytest.raises(ValueError, match="2 of the first, 1 of the second"):
        paired_bootstrap([0.1, 0.2], [0.1])


def test_values_that_are_all_alike_have_the_interval_of_their_scale() -> None:
    shares, points, amounts, none = bootstrap_intervals(
        [[1.0] * 5, [100.0] * 5, [1.0] * 5, [0.0] * 5], bounds=[1.0, 100.0, math.inf, math.inf]
    )
    assert points.low == pytest.approx(100 * shares.low)
    assert (points.mean, points.high) == (100, 100)
    assert shares.low == pytest.approx(0.025 ** (1 / 5))
    assert (amounts.low, amounts.high) == (1, 1)
    (half,) = bootstrap_intervals([[0.5] * 5])
    assert (half.low, half.high) == pytest.approx((0.239, 0.761), abs=0.001)
    assert (none.low, none.high) == (0, 0)
