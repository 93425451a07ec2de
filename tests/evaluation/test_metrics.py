"""Measures against values worked by hand, and against trec_eval."""

import math
from collections.abc import Collection, Sequence

import numpy as np
import pytest

from rag_assets.contracts.errors import QueryError
from rag_assets.evaluation.metrics import Piece, measured, parse_measure

RANKING = [("d",), ("b",), ("a",), ("e",), ("c",)]


def value(name: str, ranking: Sequence[Collection[str]], ways: Sequence[Sequence[Piece]]) -> float:
    return measured([name], ranking, ways)[name]


def pieces(*ids: str) -> tuple[Piece, ...]:
    return tuple(Piece(frozenset({key})) for key in ids)


@pytest.mark.parametrize(
    ("k", "recall", "hit", "reciprocal", "precision", "average"),
    [(1, 0, 0, 0, 0, 0), (2, 1 / 3, 1, 1 / 2, 1 / 2, 1 / 6), (3, 2 / 3, 1, 1 / 2, 2 / 3, (1 / 2 + 2 / 3) / 3)],
)
def test_rank_measures(k: int, recall: float, hit: float, reciprocal: float, precision: float, average: float) -> None:
    expected = {"R": recall, "Hit": hit, "HitRate": hit, "MRR": reciprocal, "P": precision, "MAP": average, "All": 0}
    for name, wanted in expected.items():
        assert value(f"{name}@{k}", RANKING, [pieces("a", "b", "missing")]) == pytest.approx(wanted), name
    assert value("All@3", RANKING, [pieces("a", "b")]) == 1


def test_ndcg_with_grades() -> None:
    # Gains 0, 2, 3, 0, 0 at ranks 1 to 5; the best order is 3, 2, 1.
    gained = 2 / math.log2(3) + 3 / math.log2(4)
    best = 3 / math.log2(2) + 2 / math.log2(3) + 1 / math.log2(4)
    graded = [Piece(frozenset({key}), grade) for key, grade in (("a", 3), ("b", 2), ("missing", 1))]
    assert value("nDCG@5", RANKING, [graded]) == pytest.approx(gained / best)


def test_a_repeated_id_gains_once() -> None:
    wanted = pieces("a", "b")
    assert value("nDCG@3", [("a",), ("a",)], [wanted]) == pytest.approx(1 / (1 + 1 / math.log2(3)))
    assert value("R@2", [("a",), ("a",)], [wanted]) == 0.5


def test_any_id_that_holds_a_piece_reaches_it_and_one_place_may_hold_several() -> None:
    both = (Piece(frozenset({"x1", "x2"})), Piece(frozenset({"x2", "y"})))
    assert value("R@1", [("x2",)], [both]) == 1
    assert value("nDCG@1", [("x2",)], [both]) == 1
    assert value("MAP@1", [("x2",)], [both]) == 1
    assert value("R@2", [("other",), ("x1",)], [both]) == 0.5
    assert value("MRR@2", [("other",), ("x1",)], [both]) == 0.5


def test_a_passage_counts_as_its_page_and_document() -> None:
    ranking = [("a.xlsx", "a.xlsx#1", "a.xlsx#1.0"), ("b.xlsx", "b.xlsx#2", "b.xlsx#2.4")]
    assert value("MRR@10", ranking, [pieces("b.xlsx")]) == 0.5
    assert value("MRR@10", ranking, [pieces("b.xlsx#2")]) == 0.5


def test_the_best_of_several_full_answers_counts() -> None:
    assert value("R@1", [("c",)], [pieces("a", "b"), pieces("c")]) == 1
    assert value("R@2", [("a",), ("x",)], [pieces("a", "b"), pieces("c")]) == 0.5


def test_nothing_relevant_is_not_a_number_and_what_nothing_holds_is_not_reached() -> None:
    assert all(math.isnan(value(f"{name}@5", RANKING, ways)) for name in ("R", "MRR", "nDCG") for ways in ([], [()]))
    assert value("R@5", RANKING, [(Piece(frozenset()), *pieces("a"))]) == 0.5


@pytest.mark.parametrize("name", ["R", "R@0", "recall@5", "R@", "MRR@x"])
def test_unknown_measures_are_refused(name: str) -> None:
    with pytest.raises(QueryError, match="unknown measure"):
        parse_measure(name)


def test_measures_equal_those_of_trec_eval() -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval", reason="pytrec-eval-terrier is not installed")
    random = np.random.default_rng(4)
    qrels, runs = {}, {}
    for number in range(60):
        query = f"q{number}"
        documents = [f"d{each}" for each in random.permutation(40)]
        qrels[query] = {key: int(random.integers(0, 4)) for key in documents[: random.integers(2, 15)]}
        qrels[query]["d40"] = 1  # relevant, never found
        found = random.permutation(documents)[: random.integers(1, 25)]
        runs[query] = {key: float(len(found) - rank) for rank, key in enumerate(found)}
    names = {"R": "recall", "P": "P", "Hit": "success", "nDCG": "ndcg_cut", "MAP": "map_cut"}
    families = {f"{theirs}.1,3,5,10" for theirs in names.values()}
    judged = pytrec_eval.RelevanceEvaluator(qrels, families).evaluate(runs)
    first_ten = {query: dict(list(run.items())[:10]) for query, run in runs.items()}
    reciprocal = pytrec_eval.RelevanceEvaluator(qrels, {"recip_rank"}).evaluate(first_ten)
    for query, grades in qrels.items():
        wanted = [Piece(frozenset({key}), grade) for key, grade in grades.items() if grade]
        ranking = [(key,) for key in runs[query]]
        for ours, theirs in names.items():
            for k in (1, 3, 5, 10):
                assert value(f"{ours}@{k}", ranking, [wanted]) == pytest.approx(judged[query][f"{theirs}_{k}"])
        assert value("MRR@10", ranking, [wanted]) == pytest.approx(reciprocal[query]["recip_rank"])
