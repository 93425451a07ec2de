"""Mode `hyde`: scores and fusion against values worked by hand, generators that fail, feedback without a model."""

from collections.abc import Callable, Sequence
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from query_data import CHUNKS, SPEC, BagOfWordsEmbedder, make_base, table
from scripted_model import ScriptedModel

from rag_assets import open_knowledge_base
from rag_assets.contracts.errors import QueryError
from rag_assets.contracts.generation import Completion, Outcome, Request
from rag_assets.contracts.ports import EmbeddingKind
from rag_assets.contracts.tables import CHUNK_INDEX
from rag_assets.query import Fusion, Generator, HydeOptions, KnowledgeBase, SearchResult, parse_filters
from rag_assets.query.search.hyde import fused_scores, moved, scaled_similarities
from rag_assets.store.vectors.store import VectorStore

# Two generators at (1, 0) and (0.6, 0.8), passages a and b where they stand and c at (0, 1); lengths do not count.
GENERATED = np.array([[2, 0], [0.6, 0.8]], dtype=np.float32)
PASSAGES = np.array([[1, 0], [3, 4], [0, 5]], dtype=np.float32)
# Distances: 0, √0.8, √2 and √0.8, 0, √0.4. The furthest pair is √2 apart, so that 1 - distance / √2 is the score.
SCORES = [{"a": 1.0, "b": 1 - sqrt(0.4), "c": 0.0}, {"a": 1 - sqrt(0.4), "b": 1.0, "c": 1 - sqrt(0.2)}]
FOUND = [{"a", "b"}, {"b", "c"}]


class RecordingEmbedder(BagOfWordsEmbedder):
    def __init__(self) -> None:
        super().__init__()
        self.embedded: list[tuple[str, EmbeddingKind]] = []

    def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> NDArray[np.float32]:
        self.embedded += [(text, kind) for text in texts]
        return super().embed(texts, kind)


Build = Callable[..., KnowledgeBase]


@pytest.fixture(scope="module")
def embedder() -> RecordingEmbedder:
    return RecordingEmbedder()


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory, embedder: RecordingEmbedder) -> Build:
    folder: Path = tmp_path_factory.mktemp("base")
    store = VectorStore(folder)
    store.sync(CHUNK_INDEX, {"00": table(CHUNK_INDEX, CHUNKS)}, embedder)
    versions = {CHUNK_INDEX.name: store.optimize(CHUNK_INDEX)}

    def built(model: Any = None, **options: Any) -> KnowledgeBase:
        return make_base(store, embedder, versions, model=model, hyde=HydeOptions(**options))

    return built


def writer(name: str, script: Callable[[Request], Any], **changes: Any) -> ScriptedModel:
    model = ScriptedModel(script, **changes)
    model.name = name
    return model


def told(result: SearchResult, operation: str) -> list[tuple[str, ...]]:
    return [step.texts for step in result.trace.steps if step.operation == operation]


def test_scores_are_scaled_over_the_whole_matrix() -> None:
    scores = scaled_similarities(GENERATED, PASSAGES)
    np.testing.assert_allclose(scores, [list(each.values()) for each in SCORES], atol=1e-7)
    np.testing.assert_array_equal(scaled_similarities(GENERATED[:1], PASSAGES[:1]), [[1.0]])


@pytest.mark.parametrize(
    ("fusion", "rrf_k", "expected"),
    [
        (Fusion.COMB_SUM, 60, {"a": 2 - sqrt(0.4), "b": 2 - sqrt(0.4), "c": 1 - sqrt(0.2)}),
        # only b was found by both
        (Fusion.COMB_MNZ, 60, {"a": 2 - sqrt(0.4), "b": 4 - 2 * sqrt(0.4), "c": 1 - sqrt(0.2)}),
        # orders a b c and b c a, three passages: 2 1 0 and 2 1 0
        (Fusion.BORDA, 60, {"a": 2, "b": 3, "c": 1}),
        (Fusion.RRF, 0, {"a": 1 + 1 / 3, "b": 1 / 2 + 1, "c": 1 / 3 + 1 / 2}),
        (Fusion.RRF, 60, {"a": 1 / 61 + 1 / 63, "b": 1 / 62 + 1 / 61, "c": 1 / 63 + 1 / 62}),
    ],
)
def test_fusion_of_generators(fusion: Fusion, rrf_k: float, expected: dict[str, float]) -> None:
    assert fused_scores(SCORES, FOUND, fusion, rrf_k) == pytest.approx(expected)


def test_the_imagined_passage_is_searched_as_a_query(build: Build, embedder: RecordingEmbedder) -> None:
    passage = "エラーコード E0004 は重複を表す"
    model = writer("m", lambda _: passage)
    embedder.embedded.clear()
    result = build(model).search("同じ顧客があるとき", "hyde", k=1)
    assert result.hits[0].chunk_id == f"{SPEC}#1.1"
    assert result.hits[0].score == pytest.approx(1)
    assert embedder.embedded == [("同じ顧客があるとき", EmbeddingKind.QUERY), (passage, EmbeddingKind.QUERY)]
    assert told(result, "imagine") == [(f"m seed 0: {passage}",)]
    (asked,) = model.asked
    assert (asked.temperature, asked.max_tokens, asked.seed) == (0.2, 256, 0)
    assert "同じ顧客があるとき\n</query-" in asked.messages[-1].text
    assert "社内文書" in asked.prefix


def test_one_model_writes_several_passages_and_all_score_the_union(build: Build) -> None:
    passages = {0: "エラーコード E0004 は重複を表す", 1: "annual plan token renewal"}
    model = writer("m", lambda request: passages[request.seed or 0], reverse=True)
    result = build(model, passages=2, pool=1).search("token", "hyde", k=1)
    assert told(result, "imagine") == [tuple(f"m seed {seed}: {text}" for seed, text in passages.items())]
    near = [step for step in result.trace.steps if step.operation == "nearest"]
    assert [step.candidates for step in near] == [1, 1]
    (fuse,) = (step for step in result.trace.steps if step.operation == "fuse")
    assert (fuse.candidates, fuse.texts) == (2, ("comb_sum",))


@pytest.mark.parametrize("fusion", Fusion)
def test_passages_are_imagined_once_however_deep_the_search_goes(build: Build, fusion: Fusion) -> None:
    model = writer("m", lambda _: "顧客登録 token")
    result = build(model, passages=2, fusion=fusion).search("token", "hyde", k=50, granularity="document")
    assert len(model.asked) == 2
    assert {hit.document_id for hit in result.hits} == {row["document_id"] for row in CHUNKS}
    again = build(model, passages=2, fusion=fusion).search("token", "hyde", k=50, granularity="document")
    assert again.hits == result.hits


def test_generators_that_fail_are_left_out_and_named(build: Build) -> None:
    good = writer("good", lambda request: Completion(request, Outcome.TRUNCATED, "顧客登録の画面で顧客名を"))
    gone = writer("gone", lambda _: "", calls_left=0)
    silent = writer("silent", lambda request: Completion(request, Outcome.REFUSED))
    result = build(generators=tuple(map(Generator, (gone, good, silent)))).search("customer", "hyde", k=1)
    assert result.hits[0].chunk_id == f"{SPEC}#1.0"
    assert told(result, "imagine") == [("good: 顧客登録の画面で顧客名を",)]
    assert told(result, "left_out") == [("gone: scripted: no more calls", "silent: refused")]
    assert told(result, "feedback") == []


@pytest.mark.parametrize(
    ("model", "reason"), [(None, "no language model"), (writer("m", str, calls_left=0), "no generator answered")]
)
def test_without_an_answer_the_first_passages_are_taken_for_relevant(
    build: Build, embedder: RecordingEmbedder, model: ScriptedModel | None, reason: str
) -> None:
    result = build(model, pool=1).search("E0004", "hyde", k=6)
    assert told(result, "feedback") == [(reason,)]
    asked = embedder.embed(["E0004"], EmbeddingKind.QUERY)[0]
    passages = embedder.embed([hit.text for hit in result.hits], EmbeddingKind.PASSAGE)
    first = int(np.argmax(passages @ asked))
    wanted = asked + 0.75 * passages[first]
    both = [passages @ asked, passages @ (wanted / np.linalg.norm(wanted))]
    added = sum((each - each.min()) / np.ptp(each) for each in both)
    assert [hit.score for hit in result.hits] == pytest.approx(added.tolist(), abs=1e-4)
    assert len(result.hits) == len(CHUNKS)


def test_feedback_keeps_what_is_nearest_to_the_query_itself(sample_home: Path) -> None:
    base = open_knowledge_base(sample_home)
    question = "warranty"
    found, [nearest] = base.search(question, "hyde", 10), base.search(question, "vector", 1).hits
    assert nearest.document_id.endswith("B10103_顧客登録.xlsx")
    steps = (step for step in found.trace.steps if step.operation == "nearest")
    own, after = ([each.chunk_id for each in step.scores] for step in steps)
    assert own[0] == nearest.chunk_id
    assert nearest.chunk_id not in after[:4]  # others lie nearer to the mean of the first passages
    assert nearest.chunk_id in {hit.chunk_id for hit in found.hits[:3]}  # where exactly, processors differ in


def test_feedback_moves_the_query_by_three_quarters_of_the_mean() -> None:
    query = np.array([1, 0], dtype=np.float32)
    passages = np.array([[0, 2], [0, 1]], dtype=np.float32)
    np.testing.assert_allclose(moved(query, passages), [0.8, 0.6], rtol=1e-6)
    np.testing.assert_array_equal(moved(query, passages[:0]), query)


@pytest.mark.parametrize("model", [None, writer("m", lambda _: "annual plan token")])
@pytest.mark.parametrize("retriever", ["vector", "fulltext", "hybrid"])
def test_other_modes_find_the_passages(build: Build, model: ScriptedModel | None, retriever: str) -> None:
    base = build(model)
    filters = parse_filters(["format=pdf"])
    result = base.search("token", f"hyde+{retriever}", filters=filters)
    assert [hit.document_id for hit in result.hits] == ["specs/old/plan.pdf"]
    assert result.mode == f"hyde+{retriever}"
    assert ("matching" in {step.operation for step in result.trace.steps}) == (retriever != "vector")


@pytest.mark.parametrize("mode", ["hyde+", "hyde+rewrite", "hyde+magic", "vector+hybrid"])
def test_modes_that_cannot_be_put_together_are_refused(build: Build, mode: str) -> None:
    with pytest.raises(QueryError, match="expected hyde or rewrite before the plus sign and one of weighted, hybrid"):
        build().search("token", mode)
