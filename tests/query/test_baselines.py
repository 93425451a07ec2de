"""What the sources compare with: one and two steps over summaries, derived questions alone, and naive augmentation."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from query_data import CHUNKS, QUESTIONS, SUMMARIES, BagOfWordsEmbedder, make_base, table
from scripted_model import ScriptedModel

from rag_assets.contracts.errors import QueryError
from rag_assets.contracts.generation import Completion, Outcome
from rag_assets.contracts.ports import EmbeddingKind, LanguageModel
from rag_assets.contracts.tables import CHUNK_INDEX, QUESTION_INDEX, SUMMARY_INDEX
from rag_assets.models.structured import StructuredModel
from rag_assets.query import KnowledgeBase
from rag_assets.store.vectors.store import VectorStore


def open_base(store: VectorStore, embedder: BagOfWordsEmbedder, model: LanguageModel | None = None) -> KnowledgeBase:
    versions = {each.name: store.optimize(each) for each in (CHUNK_INDEX, SUMMARY_INDEX, QUESTION_INDEX)}
    return make_base(store, embedder, versions, model=model)


def nearest(embedder: BagOfWordsEmbedder, query: str, texts: dict[str, str]) -> list[str]:
    """Keys of texts by falling cosine."""
    vectors = embedder.embed([query, *texts.values()], EmbeddingKind.QUERY)
    scores = dict(zip(texts, np.round(vectors[1:] @ vectors[0], 5), strict=True))
    return sorted(texts, key=lambda key: (-scores[key], key))


@pytest.mark.parametrize(("summaries", "place"), [("page", "page_id"), ("file", "document_id")])
def test_steps_over_summaries_go_by_similarity_alone(
    store: VectorStore, embedder: BagOfWordsEmbedder, summaries: str, place: str
) -> None:
    base, query = open_base(store, embedder), "annual plan token"
    texts = {row[place]: row["text"] for row in SUMMARIES if row["content_format"] == f"{summaries}_summary"}
    order = nearest(embedder, query, texts)
    one = base.search(query, "summary", summaries=summaries).hits
    assert [getattr(hit, place) for hit in one] == order
    assert all(hit.chunk_id.endswith(".0") for hit in one)  # the first passage stands for the page
    two = base.search(query, "summary_text", summaries=summaries).hits
    inside = {row["chunk_id"]: row["text"] for row in CHUNKS if row[place] in order}
    assert [hit.chunk_id for hit in two] == nearest(embedder, query, inside)


def test_only_derived_questions_are_searched(store: VectorStore, embedder: BagOfWordsEmbedder) -> None:
    base, query = open_base(store, embedder), "重複はどう表されますか"
    hits = base.search(query, "questions").hits
    order = nearest(embedder, query, {row["qa_id"]: row["text"] for row in QUESTIONS})
    chunk_ids = {row["qa_id"]: row["chunk_ids"] for row in QUESTIONS}
    led = list(dict.fromkeys(chunk_id for key in order for chunk_id in chunk_ids[key]))
    assert {hit.chunk_id for hit in hits} == set(led)  # a passage that answers no question is not found
    assert hits[0].chunk_id in chunk_ids[order[0]]
    assert hits[0].questions[0].question == query
    inside = base.search(query, "questions", granularity="document").hits
    assert len(inside) == 3


def test_a_query_is_widened_once_and_passages_have_their_best_score(
    store: VectorStore, embedder: BagOfWordsEmbedder
) -> None:
    model = ScriptedModel(lambda _request: {"queries": ["annual plan", "税の納付", "税の納付"]})
    base = open_base(store, embedder, StructuredModel(model))
    for retriever in ("vector", "questions"):
        query, queries = f"E0004 {retriever}", (f"E0004 {retriever}", "annual plan", "税の納付")
        result = base.search(query, f"augment+{retriever}", k=6, granularity="document")
        assert [s.texts for s in result.trace.steps if s.operation == "sub_query"] == [(each,) for each in queries]
        found = base.search(query, f"augment+{retriever}", k=6)
        alone = [base.search(each, retriever, k=6).hits for each in queries]
        best: dict[str, float] = {}
        for hit in (hit for hits in alone for hit in hits):
            best[hit.chunk_id] = max(hit.score, best.get(hit.chunk_id, 0))
        assert {hit.chunk_id: hit.score for hit in found.hits} == pytest.approx(best)
    assert len(model.asked) == 4  # once a search
    request = model.asked[0]
    assert (request.tag.step, "E0004" in request.messages[-1].text) == ("augment_query", True)
    asked = {each.qa_id: each.asked for hit in found.hits for each in hit.questions}
    assert asked["specs/old/plan.pdf#q0"] == ("E0004 questions", "annual plan", "税の納付")


def test_a_query_that_cannot_be_widened_is_searched_as_it_is(store: VectorStore, embedder: BagOfWordsEmbedder) -> None:
    model = ScriptedModel(lambda request: Completion(request, Outcome.REFUSED))
    for asked in (None, StructuredModel(model)):
        base = open_base(store, embedder, asked)
        widened, plain = base.search("token", "augment+vector"), base.search("token", "vector")
        assert [hit.chunk_id for hit in widened.hits] == [hit.chunk_id for hit in plain.hits]


def test_the_reader_of_questions_gets_records(store: VectorStore, embedder: BagOfWordsEmbedder) -> None:
    model = ScriptedModel(lambda request: {"queries": ["annual plan"]} if request.tag.asset == "search" else {})
    base = open_base(store, embedder, StructuredModel(model))
    base.ask("What does the annual plan mention?", "augment+questions", 2)
    assert [request.tag.step for request in model.asked][:2] == ["augment_query", "answer_from_questions"]
    assert '"answer": "token renewal"' in model.asked[1].messages[-1].text


def test_what_is_missing_is_said(tmp_path: Path, embedder: BagOfWordsEmbedder) -> None:
    store = VectorStore(tmp_path)
    store.sync(CHUNK_INDEX, {"00": table(CHUNK_INDEX, CHUNKS)}, embedder)
    base = make_base(store, embedder, {CHUNK_INDEX.name: store.optimize(CHUNK_INDEX)})
    for mode, lacking in (("questions", "questions"), ("summary", "summaries"), ("summary_text", "summaries")):
        with pytest.raises(QueryError, match=f"need.* {lacking}, and none are indexed"):
            base.search("token", mode)


def test_a_variant_has_other_options_and_leaves_the_base(store: VectorStore, embedder: BagOfWordsEmbedder) -> None:
    base = open_base(store, embedder)
    defaults = replace(base.options.defaults, k=2, mode="fulltext")
    other = base.variant(replace(base.options, defaults=defaults))
    assert (len(other.search("token").hits), other.search("token").mode) == (1, "fulltext")
    assert base.search("token").mode == "weighted"
    assert other.row_counts == base.row_counts == {"chunks": 6, "summaries": 5, "questions": 5}
    assert base.writer is None
