"""Baseline, divergence and length penalty against an example worked by hand."""

import math

import pytest

from rag_assets.training.rewriter import Penalties, baseline_of


def test_the_reward_of_a_rewrite_is_that_worked_by_hand() -> None:
    """Two samples of one question. The first, of 3 tokens, is twice as likely as under the warmed-up policy, the
    second, of 6 tokens where 4 are not too long, half as likely; ln 2 is 0.6931.
    """
    penalties = Penalties(divergence=0.5, length=0.2, shortest_tokens=2, longest_tokens=4)
    first = penalties.reward(1.0, 3, math.log(0.2), math.log(0.1))
    second = penalties.reward(0.25, 6, math.log(0.05), math.log(0.1))
    assert first == pytest.approx(1 - 0.5 * 0.6931, abs=1e-4)  # 0.6534
    assert second == pytest.approx(0.25 + 0.5 * 0.6931 - 0.2 * 2 / 4, abs=1e-4)  # 0.4966
    baseline = baseline_of([0.1, 0.3], 100)
    assert baseline == pytest.approx(0.2)
    assert [first - baseline, second - baseline] == pytest.approx([0.4534, 0.2966], abs=1e-4)


@pytest.mark.parametrize(("tokens", "penalty"), [(0, 0.1), (1, 0.05), (2, 0), (48, 0), (60, 0.025), (96, 0.1)])
def test_only_extremes_of_length_are_penalised(tokens: int, penalty: float) -> None:
    assert Penalties(0.0, 0.1, 2, 48).of_length(tokens) == pytest.approx(penalty)


def test_the_baseline_is_the_mean_of_the_last_rewards() -> None:
    assert baseline_of([], 3) == 0
    assert baseline_of([1.0, 5.0], 3) == 3
    assert baseline_of([9.0, 1.0, 2.0, 3.0], 3) == 2
