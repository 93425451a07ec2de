"""Clusters of questions: against SciPy on everything at once, by hand, in blocks; the report and the picture."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from qa_lake import DESIGN, FACETS, LONELY, MANUAL, OTHER, QUESTIONS, store_questions
from query_data import BagOfWordsEmbedder
from scipy.cluster.hierarchy import fcluster, linkage
from small_lake import ignore

from rag_assets.contracts.ports import EmbeddingKind
from rag_assets.contracts.tables import QUESTION_CLUSTERS
from rag_assets.enrich.knowledge import clusters as question_clusters
from rag_assets.enrich.knowledge.clusters import (
    ClusterUpdate,
    cluster_texts,
    condensed_distances,
    redundancy_report,
    update_question_clusters,
)
from rag_assets.models.embedding.embedders import E5Embedder
from rag_assets.store.lake import Lake
from rag_assets.store.vectors.store import VectorStore

CUT = 0.02


def words(texts: Sequence[str]) -> NDArray[np.float32]:
    return BagOfWordsEmbedder().embed(texts, EmbeddingKind.PASSAGE)


def update(lake: Lake, cut: float = CUT) -> ClusterUpdate:
    return update_question_clusters(lake, words, "words", cut, ignore)


def stored(lake: Lake) -> dict[tuple[str, str], dict[str, Any]]:
    return {(row["value"], row["qa_id"]): row for row in lake.read(QUESTION_CLUSTERS).to_pylist()}


def random_vectors(count: int, spread: float, seed: int = 3) -> NDArray[np.float32]:
    random = np.random.default_rng(seed)
    centres = random.normal(size=(count // 8, 16))
    vectors = centres[random.integers(0, len(centres), count)] + spread * random.normal(size=(count, 16))
    unit: NDArray[np.float32] = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    return unit


@pytest.mark.parametrize(("spread", "cut"), [(0.1, 0.02), (0.2, 0.05), (0.4, 0.2)])
def test_clusters_are_those_of_all_questions_at_once(
    spread: float, cut: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(question_clusters, "_PAIRS", 3000)  # many blocks
    vectors = random_vectors(300, spread)
    found = cluster_texts([str(index) for index in range(300)], lambda _: vectors, cut)
    numbers = fcluster(linkage(condensed_distances(vectors), "complete"), cut, criterion="distance")
    expected = {tuple(np.flatnonzero(numbers == number).tolist()) for number in set(numbers)}
    assert {cluster.members for cluster in found} == expected
    assert 1 < len(found) < 300
    for cluster in found:
        distances = 1 - vectors[list(cluster.members)].astype(np.float64) @ vectors[list(cluster.members)].T
        assert distances.max() <= cut + 1e-5
        assert distances.sum(axis=1).argmin() == cluster.members.index(cluster.medoid) or len(cluster.members) == 2


def test_equal_texts_are_one_point_and_weigh_by_their_number() -> None:
    angles = {"a": 0.0, "b": 0.1, "c": 0.18}
    embed = lambda texts: np.array([[np.cos(angles[t]), np.sin(angles[t])] for t in texts], dtype=np.float32)  # noqa: E731
    [cluster] = cluster_texts(["a", "b", "c"], embed, 0.02)
    assert cluster.medoid == 1
    [cluster] = cluster_texts(["a", "b", *"cccccc"], embed, 0.02)
    assert cluster.medoid == 2
    assert cluster.distances == pytest.approx([1 - np.cos(0.18), 1 - np.cos(0.08), *[0] * 6], abs=1e-5)
    assert cluster_texts([], embed, 0.02) == []


def test_a_part_that_is_too_large_is_taken_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(question_clusters, "_BLOCK", 10)
    vectors = random_vectors(60, 0.01)
    found = cluster_texts([str(index) for index in range(60)], lambda _: vectors, 1.9)
    assert sorted(member for cluster in found for member in cluster.members) == list(range(60))
    assert [len(cluster.members) for cluster in found] == [10] * 6


def test_each_facet_value_has_clusters_of_its_own(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    questions = {**QUESTIONS, OTHER: [QUESTIONS[DESIGN][0], *QUESTIONS[OTHER]]}
    store_questions(lake, questions, unindexed=[f"{MANUAL}#q1"])
    report = update(lake)
    rows = stored(lake)
    assert report == ClusterUpdate(1, len(rows), sum(row["is_representative"] for row in rows.values()))
    assert (rows["design", f"{DESIGN}#q0"]["is_representative"], rows["design", f"{DESIGN}#q0"]["distance"]) == (
        True,
        0,
    )
    assert rows["design", f"{DESIGN}#q0"]["cluster"] == rows["design", f"{OTHER}#q0"]["cluster"]
    assert not rows["design", f"{OTHER}#q0"]["is_representative"]
    assert rows["offices", f"{OTHER}#q0"]["is_representative"]
    assert ("manual", f"{MANUAL}#q1") not in rows
    assert update(lake).written == 0
    assert update(lake, 0.5).written == 1
    store_questions(lake, {**questions, LONELY: []}, FACETS)
    assert update(lake, 0.5).written == 1
    assert not [qa_id for _, qa_id in stored(lake) if qa_id.startswith(LONELY)]


def test_the_report(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    assert redundancy_report(lake) == "No questions are clustered."
    store_questions(lake, {**QUESTIONS, OTHER: [QUESTIONS[DESIGN][0], ("<顧客> は何ですか", "x")]})
    update(lake)
    lines = redundancy_report(lake).splitlines()
    assert lines[2:4] == [
        "| area | customers | 5 | 4 | 20.0% |",
        "| kind | design | 5 | 4 | 20.0% |",
    ]


def test_vectors_are_shared_with_the_question_index(tmp_path: Path) -> None:
    embedder, store = BagOfWordsEmbedder(), VectorStore(tmp_path / "vectors")
    lake = Lake(tmp_path / "lake")
    store_questions(lake)
    embed = partial(store.embed, embedder=embedder)
    update_question_clusters(lake, embed, embedder.name, CUT, ignore)
    count = sum(embedder.calls)
    assert count == sum(map(len, QUESTIONS.values()))
    update_question_clusters(lake, embed, embedder.name, 0.5, ignore)
    assert sum(embedder.calls) == count


def test_the_default_parts_paraphrases_from_other_questions(models_folder: Path) -> None:
    embed = partial(E5Embedder(models_folder).embed, kind=EmbeddingKind.PASSAGE)
    texts = [
        "エラーコード E0004 は何を表しますか",
        "エラーコード E0004 の意味は何ですか",
        "エラーコード E0005 は何を表しますか",
        "顧客登録の目的は何ですか",
        "顧客登録の目的は何ですか？",
        "顧客削除の目的は何ですか",
        "What does the red lamp mean?",
        "What is the meaning of the red lamp?",
        "What is the warranty period of SX-200?",
        "What is the warranty period of SX-450?",
    ]
    found = cluster_texts(texts, embed, CUT)
    assert [cluster.members for cluster in found] == [(0, 1), (2,), (3, 4), (5,), (6, 7), (8,), (9,)]
