"""Fusion against values worked by hand."""

import pytest

from rag_assets.query.fusion import borda, comb_mnz, comb_sum, min_max, ranked, reciprocal_rank

A = {"x": 3.0, "y": 2.0, "z": 1.0}
B = {"y": 9.0, "w": 5.0}


def test_min_max() -> None:
    assert min_max({"x": 3.0, "y": 2.5, "z": 1.0}) == {"x": 1.0, "y": 0.75, "z": 0.0}
    assert min_max({"x": 2.0, "y": 2.0}) == {"x": 1.0, "y": 1.0}
    assert min_max({}) == {}


def test_comb_sum_and_mnz() -> None:
    scaled = [min_max(A), min_max(B)]
    assert comb_sum(scaled) == {"x": 1.0, "y": 1.5, "z": 0.0, "w": 0.0}
    assert comb_mnz(scaled) == {"x": 1.0, "y": 3.0, "z": 0.0, "w": 0.0}


def test_borda_shares_the_points_that_are_left() -> None:
    # Four ids. A gives 3, 2, 1 and leaves 0 to w; B gives y 3, w 2 and leaves 1 + 0 to x and z, half each.
    assert borda([A, B]) == {"x": 3.5, "y": 5.0, "z": 1.5, "w": 2.0}


@pytest.mark.parametrize("k", [0, 1, 60])
def test_reciprocal_rank(k: int) -> None:
    expected = {"x": 1 / (k + 1), "y": 1 / (k + 2) + 1 / (k + 1), "z": 1 / (k + 3), "w": 1 / (k + 2)}
    assert reciprocal_rank([A, B], k) == pytest.approx(expected)


def test_equal_scores_stand_by_id() -> None:
    assert ranked({"b": 1.0, "a": 1.0, "c": 2.0}) == [("c", 2.0), ("a", 1.0), ("b", 1.0)]


@pytest.mark.parametrize("fuse", [comb_sum, comb_mnz, borda, reciprocal_rank])
def test_nothing_fuses_to_nothing(fuse: object) -> None:
    assert callable(fuse)
    assert fuse([]) == {}
    assert fuse([{}, {}]) == {}
