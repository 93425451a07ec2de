"""The first passages of a search, ordered anew; the reranker is scripted, real ones run in `tests/models`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from query_data import BagOfWordsEmbedder, make_base
from query_fixtures import build, build_graph

from rag_assets.contracts.tables import CHUNK_INDEX, QUESTION_INDEX, SUMMARY_INDEX
from rag_assets.evaluation.clicks import Click
from rag_assets.evaluation.evidence import Level
from rag_assets.evaluation.questions import Question
from rag_assets.query import MODES, KnowledgeBase
from rag_assets.query.results import to_json
from rag_assets.query.search.ranking_weights import SHIPPED, SIGNALS, BoostedWeights, Ranking, Scorer
from rag_assets.training.pairs import clicked_questions, unjudged_questions

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


Make = Callable[..., KnowledgeBase]
WEIGHING = Ranking({each: replace(SHIPPED[each], reranker=3.0) for each in SHIPPED})


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Make:
    embedder = BagOfWordsEmbedder()
    folder: Path = tmp_path_factory.mktemp("reranked")
    store = build(folder, embedder)
    versions = {each.name: store.optimize(each) for each in (CHUNK_INDEX, QUESTION_INDEX, SUMMARY_INDEX)}
    stored, graph = build_graph(folder / "lake", store, embedder)
    return lambda reranker, count, **options: make_base(
        store, embedder, versions | graph, stored, reranker=reranker, rerank_candidates=count, **options
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


@pytest.mark.parametrize("mode", ["weighted", "rewrite+weighted", "auto"])
def test_a_reranker_that_weighs_is_a_signal_and_orders_nothing_again(make: Make, mode: str) -> None:
    reranker = ScriptedReranker(lambda text: float(len(text)))
    result = make(reranker, 3, ranking=WEIGHING).search(QUERY, mode, 20)
    assert [len(texts) for texts in reranker.read] == [3]
    operations = [step.operation for step in result.trace.steps]
    assert operations.count("rerank") == 1
    fused = [step for step in result.trace.steps if step.operation in {"fuse", "rerank"}][-1]
    assert fused.operation == "fuse"
    assert [each.chunk_id for each in fused.scores] == [hit.chunk_id for hit in result.hits]
    own = fused.texts.index("reranker")
    shares = sorted(share for each in fused.scores if (share := each.lists[own]) is not None)
    assert (len(shares), shares[0], shares[-1]) == (3, 0.0, 3.0)
    for each in fused.scores:
        assert each.after == pytest.approx(sum(share for share in each.lists if share is not None))


def test_a_reranker_that_weighs_is_not_asked_twice_where_rankings_are_fused(make: Make) -> None:
    reranker = ScriptedReranker(lambda text: float(len(text)))
    result = make(reranker, 50, ranking=WEIGHING).search(QUERY, "weighted,fulltext", 20)
    read = [text for texts in reranker.read for text in texts]
    assert len(read) == len(set(read))
    ordered = make(reranker, 50).search(QUERY, "weighted,fulltext", 20)
    assert [(hit.chunk_id, hit.score) for hit in result.hits] == [(hit.chunk_id, hit.score) for hit in ordered.hits]


def test_without_the_reranker_its_weight_adds_nothing(make: Make) -> None:
    plain, weighing = (make(None, 50, ranking=each).search(QUERY, "weighted", 20) for each in (Ranking(), WEIGHING))
    assert [(each.chunk_id, each.score) for each in plain.hits] == [
        (each.chunk_id, each.score) for each in weighing.hits
    ]


def boosted() -> BoostedWeights:
    """Trees that have learned that what stands first by meaning and by the reranker is best."""
    lightgbm = pytest.importorskip("lightgbm", reason="LightGBM is not installed")
    values = np.random.default_rng(0).random((400, len(SIGNALS)))
    wanted = values[:, SIGNALS.index("meaning")] * values[:, SIGNALS.index("reranker")] + 0.1 * values[:, 0]
    rows = lightgbm.Dataset(values, wanted, feature_name=[*SIGNALS])
    trees = lightgbm.train({"objective": "regression", "num_leaves": 4, "verbosity": -1, "num_threads": 1}, rows, 10)
    return BoostedWeights(SHIPPED["chunk"], trees.model_to_string(), 0.1)


def test_trees_score_as_learned_and_the_trace_says_what_each_signal_adds(make: Make) -> None:
    scorer = boosted()
    ranking = Ranking({**SHIPPED, "chunk": scorer})
    reranker = ScriptedReranker(lambda text: float(len(text)))
    base = make(reranker, 50, ranking=ranking)
    result = base.search(QUERY, "weighted", 20)
    signals = base.ranking_signals(QUERY)
    expected = dict(zip((each.key for each in signals.candidates), scorer.scores(signals.values), strict=True))
    assert {hit.chunk_id: hit.score for hit in result.hits} == pytest.approx(expected)
    fused = [step for step in result.trace.steps if step.operation == "fuse"][-1]
    assert {"words", "meaning", "reranker"} <= set(fused.texts)
    for each in fused.scores:
        assert each.after == pytest.approx(sum(share or 0.0 for share in each.lists))


@pytest.mark.parametrize("granularity", ["chunk", "page", "document"])
@pytest.mark.parametrize("weights", [SHIPPED, WEIGHING.weights], ids=["ordered", "weighed"])
def test_what_is_measured_is_what_is_found(make: Make, granularity: str, weights: Mapping[str, Scorer]) -> None:
    chosen = Ranking(dict.fromkeys(SHIPPED, weights["chunk"]))
    base = make(ScriptedReranker(lambda text: float(len(text))), 3, ranking=chosen)
    question = Question("q", QUERY, answerable=True)
    [judged] = unjudged_questions(base, [question])
    assert int((~np.isnan(judged.read)).sum()) == 3
    level = {"chunk": Level.PASSAGE, "page": Level.PAGE, "document": Level.DOCUMENT}[granularity]
    hits = base.search(QUERY, "weighted", 20, granularity=granularity).hits
    place = list(Level).index(level)
    found = [(hit.document_id, hit.page_id, hit.chunk_id)[place] for hit in hits]
    assert [each[place] for each in judged.ranked(chosen.weights["chunk"], level, 20)] == found


def test_clicks_compare_what_was_opened_with_what_was_passed_over(make: Make) -> None:
    base = make(None, 50)
    first, second, third, *_ = (hit.chunk_id for hit in base.search(QUERY, "weighted", 20).hits)
    clicks = [
        Click(QUERY, third, (first, second), "2026-11-01T10:00:00+00:00"),
        Click(f" {QUERY}", second, (first,), "2026-11-01T10:01:00+00:00"),
        Click(QUERY, "gone#1.0", (first,), "2026-11-01T10:02:00+00:00"),
        Click("annual plan", first, (), "2026-11-01T10:03:00+00:00"),
        Click("token renewal", second, (first,), "2026-11-01T10:04:00+00:00"),
    ]
    [judged] = clicked_questions(base, clicks, [Question("q", "Token  renewal")])
    assert judged.clicks == ((third, frozenset({first})), (second, frozenset({first})))
    assert not judged.is_measured
    assert judged.documents == {each.partition("#")[0] for each in (second, third)}
