"""The first passages of a search, ordered anew; the reranker is scripted, real ones run in `tests/models`."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from query_data import BagOfWordsEmbedder, make_base
from query_fixtures import build, build_graph

from rag_assets.contracts.tables import CHUNK_INDEX, QUESTION_INDEX, SUMMARY_INDEX
from rag_assets.query import MODES, KnowledgeBase
from rag_assets.query.results import to_json

QUERY = "token 顧客登録 plan 画面"
Score = Callable[[str], float]


class ScriptedReranker:
    """Scores texts by a function."""

    name = "scripted"

    def __init__(self, score: Score) -> None:
        self.score = score
        self.read: list[list[str]] = []

    def rerank(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        assert query == QUERY
        self.read.append(list(texts))
        return np.array([self.score(text) for text in texts], np.float32)


Make = Callable[[ScriptedReranker | None, int], KnowledgeBase]


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Make:
    embedder = BagOfWordsEmbedder()
    folder: Path = tmp_path_factory.mktemp("reranked")
    store = build(folder, embedder)
    versions = {each.name: store.optimize(each) for each in (CHUNK_INDEX, QUESTION_INDEX, SUMMARY_INDEX)}
    stored, graph = build_graph(folder / "lake", store, embedder)
    return lambda reranker, count: make_base(
        store, embedder, versions | graph, stored, reranker=reranker, rerank_candidates=count
    )


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_is_ordered_by_the_reranker(make: Make, mode: str) -> None:
    plain = make(None, 50).search(QUERY, mode, 20)
    reranker = ScriptedReranker(lambda text: float(len(text)))
    result = make(reranker, 50).search(QUERY, mode, 20)
    assert {hit.chunk_id for hit in result.hits} == {hit.chunk_id for hit in plain.hits}
    (texts,) = reranker.read
    assert all(any(hit.text in text and hit.title in text for text in texts) for hit in result.hits)
    order = [(-hit.score, hit.chunk_id) for hit in result.hits]
    assert order == sorted(order)
    assert [hit.rank for hit in result.hits] == list(range(1, len(plain.hits) + 1))
    (step,) = (step for step in result.trace.steps if step.operation == "rerank")
    assert step.candidates == len(texts)
    assert [each.chunk_id for each in step.scores] == [hit.chunk_id for hit in result.hits]
    assert [each.after for each in step.scores] == [hit.score for hit in result.hits]
    assert {each.chunk_id: each.before for each in step.scores} == {hit.chunk_id: hit.score for hit in plain.hits}
    assert to_json(step)["scores"]


def test_equal_scores_stand_by_chunk_id(make: Make) -> None:
    hits = make(ScriptedReranker(lambda _: 0.5), 50).search(QUERY, "hybrid", 20).hits
    assert [hit.chunk_id for hit in hits] == sorted(hit.chunk_id for hit in hits)


def test_only_the_first_are_read_and_the_others_follow(make: Make) -> None:
    plain = [hit.chunk_id for hit in make(None, 0).search(QUERY, "vector", 20).hits]
    reranker = ScriptedReranker(lambda text: -100.0 - len(reranker.read) - len(text))
    hits = make(reranker, 2).search(QUERY, "vector", 20).hits
    assert [len(texts) for texts in reranker.read] == [2]
    assert {hit.chunk_id for hit in hits[:2]} == set(plain[:2])
    assert [hit.chunk_id for hit in hits[2:]] == plain[2:]
    scores = [hit.score for hit in hits]
    assert scores == sorted(scores, reverse=True)


def test_a_passage_beyond_k_can_come_first(make: Make) -> None:
    plain = make(None, 0).search(QUERY, "vector", 20).hits
    last = plain[-1]
    (hit,) = make(ScriptedReranker(lambda text: float(last.text in text)), 50).search(QUERY, "vector", 1).hits
    assert hit.chunk_id == last.chunk_id


@pytest.mark.parametrize("granularity", ["page", "document"])
def test_pages_and_documents_follow_their_passages(make: Make, granularity: str) -> None:
    last = make(None, 0).search(QUERY, "hybrid", 20).hits[-1]
    reranker = ScriptedReranker(lambda text: float(last.text in text))
    hits = make(reranker, 50).search(QUERY, "hybrid", 5, granularity=granularity).hits
    assert hits[0].document_id == last.document_id
    read = [text for texts in reranker.read for text in texts]
    assert len(read) == len(set(read)), "a passage is scored once"


def test_without_a_reranker_nothing_is_read(make: Make) -> None:
    assert "rerank" not in [step.operation for step in make(None, 50).search(QUERY).trace.steps]
    assert "scores" not in to_json(make(None, 50).search(QUERY).trace.steps[0])
