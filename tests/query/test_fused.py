"""Rank fusion of modes: `hybrid,graph_local` and the like."""

from pathlib import Path
from typing import Any

import pytest
from query_data import PLAN, SPEC, BagOfWordsEmbedder, chunk, make_base, table
from scripted_model import ScriptedModel

from rag_assets.contracts.tables import CHUNK_INDEX
from rag_assets.models.structured import StructuredModel
from rag_assets.query import Filters, KnowledgeBase, SearchResult, Turn
from rag_assets.store.vectors.store import VectorStore

QUERY = "顧客 エラー clientName token 画面"


def parts(result: SearchResult) -> list[str]:
    return [step.texts[0] for step in result.trace.steps if step.operation == "part"]


@pytest.mark.parametrize(
    ("modes", "options"),
    [
        (("fulltext", "vector"), {}),
        (("hybrid", "graph_local", "meta_knowledge"), {}),
        (("two_step", "graph_global"), {"summaries": "file"}),
        (("hyde", "text_map_reduce"), {}),
        (("fulltext", "hybrid"), {"filters": Filters(document=("specs/",))}),
    ],
)
def test_passages_score_by_their_ranks_in_all_modes(
    base: KnowledgeBase, modes: tuple[str, ...], options: dict[str, Any]
) -> None:
    expected: dict[str, float] = {}
    for mode in modes:
        for hit in base.search(QUERY, mode, 100, **options).hits:
            expected[hit.chunk_id] = expected.get(hit.chunk_id, 0) + 1 / (60 + hit.rank)
    result = base.search(QUERY, ",".join(modes), 100, **options)
    assert {hit.chunk_id: hit.score for hit in result.hits} == pytest.approx(expected)
    assert [hit.chunk_id for hit in result.hits] == sorted(expected, key=lambda key: (-expected[key], key))
    assert result.mode == ",".join(modes)


def test_the_trace_names_each_part_and_its_scores(base: KnowledgeBase) -> None:
    result = base.search(QUERY, "fulltext,two_step", 2)
    operations = [step.operation for step in result.trace.steps]
    assert operations[:3] == ["embed", "matching", "part"]
    assert operations[-3:] == ["part", "fuse", "fetch"]
    assert parts(result) == ["fulltext", "two_step"]
    fuse = result.trace.steps[-2]
    assert fuse.texts == ("fulltext", "two_step")
    assert fuse.scores[0].chunk_id == result.hits[0].chunk_id
    assert len(fuse.scores[0].lists) == 2


@pytest.mark.parametrize("granularity", ["chunk", "page", "document"])
def test_many_queries_are_fused_like_one(base: KnowledgeBase, granularity: str) -> None:
    queries = [("q1", QUERY), ("q2", "annual plan")]
    together = dict(base.search_all(queries, "fulltext,vector", 2, granularity=granularity))
    for query_id, text in queries:
        assert together[query_id].hits == base.search(text, "fulltext,vector", 2, granularity=granularity).hits


@pytest.mark.parametrize("granularity", ["page", "document"])
def test_pages_and_documents_are_fused_by_their_own_ranks(base: KnowledgeBase, granularity: str) -> None:
    expected: dict[str, float] = {}
    for mode in ("fulltext", "vector"):
        found = base.search(QUERY, mode, 100, granularity=granularity)
        for hit in found.hits:
            expected[found.target(hit)] = expected.get(found.target(hit), 0) + 1 / (60 + hit.rank)
    fused = base.search(QUERY, "fulltext,vector", 100, granularity=granularity)
    order = [fused.target(hit) for hit in fused.hits]
    assert [expected[each] for each in order] == sorted(expected.values(), reverse=True)
    assert set(order) == set(expected)


def test_a_document_of_many_passages_leaves_room_for_others(tmp_path: Path, embedder: BagOfWordsEmbedder) -> None:
    store = VectorStore(tmp_path)
    rows = [chunk("a/long.txt", 1, number, "token token token") for number in range(300)]
    rows += [chunk(f"a/other{number}.txt", 1, 0, "token of something else entirely") for number in range(4)]
    store.sync(CHUNK_INDEX, {"00": table(CHUNK_INDEX, rows)}, embedder)
    base = make_base(store, embedder, {CHUNK_INDEX.name: store.optimize(CHUNK_INDEX)})
    hits = base.search("token", "fulltext,vector", 5, granularity="document").hits
    assert [hit.document_id for hit in hits] == ["a/long.txt", *(f"a/other{number}.txt" for number in range(4))]


def test_questions_that_led_to_a_passage_stay_with_it(base: KnowledgeBase) -> None:
    result = base.search("What does the annual plan mention?", "hybrid,meta_knowledge", 1)
    (hit,) = result.hits
    assert [each.qa_id for each in hit.questions][:1] == [f"{PLAN}#q0"]


def test_a_query_is_rewritten_once_for_all_that_follow(base: KnowledgeBase) -> None:
    history = [Turn("エラーコード E0004 は何ですか")]
    result = base.search("それはどの画面ですか", "rewrite+fulltext,vector", 1, history=history)
    assert [step.operation for step in result.trace.steps].count("rewrite") == 1
    assert parts(result) == ["fulltext", "vector"]
    assert result.hits[0].chunk_id == f"{SPEC}#1.1"


def test_a_conversation_is_resolved_once_where_one_part_rewrites(base: KnowledgeBase) -> None:
    history = [Turn("エラーコード E0004 は何ですか")]
    answer = base.ask("それはどの画面ですか", "rewrite,vector", 1, history=history)
    (rewrite,) = (step for step in answer.trace.steps if step.operation == "rewrite")
    assert rewrite.texts[2].count("E0004") == 1
    assert answer.sources[0].chunk_id == f"{SPEC}#1.1"


def test_a_hypothetical_passage_is_searched_by_all_that_follow(
    store: VectorStore, embedder: BagOfWordsEmbedder
) -> None:
    base = make_base(
        store,
        embedder,
        {CHUNK_INDEX.name: store.optimize(CHUNK_INDEX)},
        model=StructuredModel(ScriptedModel(lambda _: "annual plan token renewal")),
    )
    result = base.search("zzzz", "hyde+fulltext,vector", 1)
    assert result.hits[0].document_id == PLAN
    assert parts(result) == ["fulltext", "vector"]
