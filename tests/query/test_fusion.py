"""Fusion against values worked by hand, and against what ranx gives for the same rankings.

`ranx_fusion.json` holds random rankings without equal scores, and for them `ranx.normalization.min_max_norm` and
`ranx.fuse` with `norm="min-max"` and the methods `sum` and `mnz`, and with `norm=None` and `bordafuse` and `rrf`. Ids
are of one length, as ranx cuts those that are longer than all of a ranking.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from rag_assets.query.search.fusion import borda, comb_mnz, comb_sum, min_max, ranked, reciprocal_rank
from rag_assets.query.search.grouping import Granularity, grouped
from rag_assets.query.search.index import Candidate

RANX: dict[str, Any] = json.loads((Path(__file__).parent / "ranx_fusion.json").read_text())
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


@pytest.mark.parametrize("case", RANX["cases"])
def test_fusion_is_that_of_ranx(case: dict[str, Any]) -> None:
    rankings: list[dict[str, float]] = case["rankings"]
    scaled = [min_max(each) for each in rankings]
    for own, theirs in zip(scaled, case["min_max"], strict=True):
        assert own == pytest.approx(theirs)
    assert comb_sum(scaled) == pytest.approx(case["comb_sum"])
    assert comb_mnz(scaled) == pytest.approx(case["comb_mnz"])
    assert reciprocal_rank(rankings) == pytest.approx(case["rrf_60"])
    assert reciprocal_rank(rankings, 5) == pytest.approx(case["rrf_5"])
    # ranx counts ranks from 0, a point more for each ranking
    assert {key: score + len(rankings) for key, score in borda(rankings).items()} == pytest.approx(case["borda"])


def test_a_document_of_thousands_of_passages_found_is_scored() -> None:
    found = [Candidate(f"d#1.{place}", "d", "d#1", place, 1 - place / 4000) for place in range(3000)]
    best = grouped([*found, Candidate("e#1.0", "e", "e#1", 3000, 0.5)], Granularity.DOCUMENT)
    assert [each.document_id for each in best] == ["d", "e"]
