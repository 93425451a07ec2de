"""Measures against values worked by hand."""

import math

import numpy as np
import pytest

from rag_assets.evaluation.metrics import (
    bootstrap_interval,
    hit_at,
    ndcg_at,
    paired_bootstrap,
    recall_at,
    reciprocal_rank_at,
)

RANKING = ["d", "b", "a", "e", "c"]


@pytest.mark.parametrize(
    ("k", "recall", "hit", "reciprocal"),
    [(1, 0, 0, 0), (2, 1 / 3, 1, 1 / 2), (3, 2 / 3, 1, 1 / 2), (9, 2 / 3, 1, 1 / 2)],
)
def test_rank_measures(k: int, recall: float, hit: float, reciprocal: float) -> None:
    relevant = {"a", "b", "missing"}
    assert recall_at(RANKING, relevant, k) == pytest.approx(recall)
    assert hit_at(RANKING, relevant, k) == hit
    assert reciprocal_rank_at(RANKING, relevant, k) == pytest.approx(reciprocal)


def test_ndcg_with_grades() -> None:
    # Gains 0, 2, 3, 0, 0 at ranks 1 to 5; the best order is 3, 2, 1.
    gained = 2 / math.log2(3) + 3 / math.log2(4)
    best = 3 / math.log2(2) + 2 / math.log2(3) + 1 / math.log2(4)
    assert ndcg_at(RANKING, {"a": 3, "b": 2, "missing": 1}, 5) == pytest.approx(gained / best)
    assert ndcg_at(["a", "b", "missing"], {"a": 3, "b": 2, "missing": 1}, 3) == pytest.approx(1.0)
    assert ndcg_at(["b"], {"a": 1, "b": 1}, 1) == pytest.approx(1.0)


def test_a_repeated_id_gains_once() -> None:
    assert ndcg_at(["a", "a", "a"], {"a": 1, "b": 1}, 3) == pytest.approx(1 / (1 + 1 / math.log2(3)))


def test_nothing_relevant_is_not_a_number() -> None:
    assert all(math.isnan(measure(RANKING, set(), 5)) for measure in (recall_at, hit_at, reciprocal_rank_at))
    assert math.isnan(ndcg_at(RANKING, {}, 5))


def test_an_interval_is_seeded_and_covers_the_mean() -> None:
    values = [0.0, 1.0] * 50
    interval = bootstrap_interval(values, seed=7)
    assert interval == bootstrap_interval(values, seed=7)
    assert interval.mean == 0.5
    # The standard error of a mean of 100 fair coins is 0.05.
    assert interval.low == pytest.approx(0.5 - 1.96 * 0.05, abs=0.015)
    assert interval.high == pytest.approx(0.5 + 1.96 * 0.05, abs=0.015)
    assert bootstrap_interval([0.3, math.nan, 0.3]).count == 2
    assert bootstrap_interval([0.3, 0.3]).low == pytest.approx(0.3)


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


def test_wrong_numbers_of_values_are_refused() -> None:
    with pytest.raises(ValueError, match="no values"):
        bootstrap_interval([math.nan])
    with pytest.raises(ValueError, match="2 of the first, 1 of the second"):
        paired_bootstrap([0.1, 0.2], [0.1])
