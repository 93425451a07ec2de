"""The modes of search, end to end over LanceDB."""

import ast
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

import numpy as np
import pytest
from numpy.typing import NDArray
from query_data import CHUNKS, BagOfWordsEmbedder, chunk, make_base, table

import rag_assets.query
from rag_assets.contracts.errors import QueryError
from rag_assets.contracts.modes import NEEDS_NO_VECTOR
from rag_assets.contracts.ports import EmbeddingKind
from rag_assets.contracts.tables import CHUNK_INDEX, SUMMARY_INDEX
from rag_assets.query import MODES, Citation, Filters, KnowledgeBase, LevelChoice
from rag_assets.query.results import to_json
from rag_assets.store.vectors.lance import MatchQuery
from rag_assets.store.vectors.store import VectorStore

HOSTILE = [
    '"',
    "' OR 1=1 --",
    "AND",
    "OR NOT",
    'title:"x" AND (y OR z)~2^3',
    "a:b",
    "[1 TO 5]",
    "*",
    "?",
    "\\",
    "🍣",
    "👩‍👩‍👧",
    "\0",
    "顧客\0登録",
    "\ud800",
    "%_%",
    "(((",
    "{}",
    "/regex/",
    "\u202eRTL",
    "x" * 100_000,
    "顧客登録 token " * 10_000,
]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("query", HOSTILE, ids=range(len(HOSTILE)))
def test_any_text_is_only_text(base: KnowledgeBase, mode: str, query: str) -> None:
    if not query.replace("\0", " ").strip():
        with pytest.raises(QueryError, match="the query is empty"):
            base.search(query, mode)
        return
    result = base.search(query, mode, 3)
    assert len(result.hits) <= 3
    json.dumps(to_json(result))


@pytest.mark.parametrize("mode", ["vector", "fulltext", "hybrid", "two_step"])
def test_the_passage_that_says_it_comes_first(base: KnowledgeBase, mode: str) -> None:
    result = base.search("顧客登録の画面", mode, 3)
    assert result.hits[0].chunk_id == "specs/token.xlsx#1.0"
    assert [hit.rank for hit in result.hits] == list(range(1, len(result.hits) + 1))
    scores = [hit.score for hit in result.hits]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize(
    ("query", "chunk_id"),
    [
        ("E0004", "specs/token.xlsx#1.1"),
        ("e0004とは", "specs/token.xlsx#1.1"),
        ("Ｅ０００４", "specs/token.xlsx#1.1"),
        ("client name", "specs/token.xlsx#2.0"),
        ("clientname", "specs/token.xlsx#2.0"),
        ("税", "notes/税.txt#1.0"),
        ("AND", "notes/it's.md#1.0"),
        ("RENEWAL contract", "notes/it's.md#1.0"),
    ],
)
def test_full_text_finds_identifiers_short_words_and_words_that_look_like_operators(
    base: KnowledgeBase, query: str, chunk_id: str
) -> None:
    assert base.search(query, "fulltext", 1).hits[0].chunk_id == chunk_id


def test_full_text_adds_up_its_terms_by_the_weight_of_their_kind(
    store: VectorStore, embedder: BagOfWordsEmbedder
) -> None:
    """A word weighs 1, an identifier 5, a pair of characters 1/2, one of them 1/3."""
    rows = [*CHUNKS, chunk("specs/api.xlsx", 1, 0, "顧客の client_id と client")]
    store.sync(CHUNK_INDEX, {"00": table(CHUNK_INDEX, rows)}, embedder)
    version = store.optimize(CHUNK_INDEX)
    base, passages = make_base(store, embedder, {"chunks": version}), store.open_at(CHUNK_INDEX.name, version)
    shares = {"client_id": 5, "client": 1, "id": 1, "顧客": 1 / 2, "顧": 1 / 3, "客": 1 / 3}
    expected: dict[str, float] = {}
    for term, share in shares.items():
        asked = MatchQuery(term, "search_text")  # type: ignore[call-arg]
        found = passages.search(asked, query_type="fts").limit(1000).to_arrow()
        assert len(found), term
        for row in found.to_pylist():
            expected[row["chunk_id"]] = expected.get(row["chunk_id"], 0.0) + share * row["_score"]
    scores = {hit.chunk_id: hit.score for hit in base.search("顧客 client_id", "fulltext", 1000).hits}
    assert scores == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("mode", ["vector", "fulltext", "hybrid"])
def test_passages_are_cited_by_the_heading_above_them(
    store: VectorStore, embedder: BagOfWordsEmbedder, mode: str
) -> None:
    store.sync(CHUNK_INDEX, {"00": table(CHUNK_INDEX, [{**CHUNKS[4], "heading": "2. Term"}])}, embedder)
    base = make_base(store, embedder, {"chunks": store.optimize(CHUNK_INDEX)})
    assert str(base.search("renewal contract", mode, 1).hits[0].citation) == "notes/it's.md › 2. Term"


def test_full_text_leaves_out_what_shares_no_term(base: KnowledgeBase) -> None:
    assert base.search("zzzz 醤油", "fulltext").hits == ()


def test_hybrid_answers_where_no_term_is_known(base: KnowledgeBase) -> None:
    assert len(base.search("🍣", "hybrid", 4).hits) == 4


def test_the_json_form(base: KnowledgeBase) -> None:
    result = to_json(base.search("エラーコード E0004", "hybrid", 1))
    assert list(result) == ["query", "mode", "granularity", "hits", "trace"]
    hits = result["hits"]
    assert isinstance(hits, list)
    score = hits[0].pop("score")
    assert score == pytest.approx(2.0)
    assert hits == [
        {
            "rank": 1,
            "document_id": "specs/token.xlsx",
            "page_number": 1,
            "page_name": "画面",
            "chunk_id": "specs/token.xlsx#1.1",
            "title": "specs/token.xlsx",
            "text": "エラーコード E0004 は重複を表す",
            "citation": {
                "label": "specs/token.xlsx › 画面 › B21:F30",
                "link": "/pages/specs/token.xlsx?page=1#cells=B21:F30",
                "document_id": "specs/token.xlsx",
                "page_number": 1,
                "page_name": "画面",
                "cell_range": "B21:F30",
                "box": None,
                "heading": None,
            },
        }
    ]


def test_citations_name_the_page_where_the_format_has_pages(base: KnowledgeBase) -> None:
    hit = base.search("annual plan", "fulltext", 1).hits[0]
    assert str(hit.citation) == "specs/old/plan.pdf › p.3"
    assert hit.citation.box == (1.0, 2.0, 3.0, 4.0)
    assert hit.citation.link == "/pages/specs/old/plan.pdf?page=3#box=1,2,3,4"
    memo = base.search("contract", "fulltext", 1).hits[0]
    assert str(memo.citation) == "notes/it's.md"
    assert memo.citation.link == "/pages/notes/it%27s.md?page=1#passage=notes%2Fit%27s.md%231.0"


def test_links_hold_any_name() -> None:
    odd = Citation("仕様/a b?#%&.xlsx", 2, "表", "B4:F20,H1", None, "xlsx")
    address, _, place = odd.link.partition("#")
    parts = urlsplit(address)
    assert unquote(parts.path) == "/pages/仕様/a b?#%&.xlsx"
    assert (parts.query, place) == ("page=2", "cells=B4:F20,H1")
    assert replace(odd, cell_range=None).link == f"{parts.path}?page=2"
    exact = replace(odd, cell_range=None, box=(0.5, 841.8898, 0, 12.25)).link
    assert exact.endswith("#box=0.5,841.89,0,12.25")


def test_the_trace_says_what_was_asked(base: KnowledgeBase) -> None:
    trace = base.search("token", "hybrid", 2, Filters(format=("pdf",))).trace
    assert [step.operation for step in trace.steps] == ["embed", "nearest", "matching", "fuse", "fetch"]
    assert [step.filter for step in trace.steps[1:3]] == ["format IN ('pdf')"] * 2
    assert [step.index for step in trace.steps[1:3]] == ["chunks"] * 2
    assert trace.milliseconds >= max(step.milliseconds for step in trace.steps)


@pytest.mark.parametrize("mode", MODES)
def test_filters_hold_in_every_mode(base: KnowledgeBase, mode: str) -> None:
    filters, coarsest = Filters(document=("specs/old/",)), LevelChoice(0, dynamic=False)
    hits = base.search("顧客登録 plan token 画面", mode, 10, filters, levels=coarsest).hits
    assert {hit.document_id for hit in hits} == {"specs/old/plan.pdf"}


@pytest.mark.parametrize(
    ("summaries", "documents"), [("file", {"specs/old/plan.pdf"}), ("page", {"specs/old/plan.pdf"})]
)
def test_two_step_stays_within_the_places_that_summaries_chose(
    base: KnowledgeBase, summaries: str, documents: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rag_assets.query.search.passages.CHOSEN", {"file_summary": 1, "page_summary": 1})
    result = base.search("annual plan", "two_step", 10, summaries=summaries)
    assert {hit.document_id for hit in result.hits} == documents
    assert {step.index for step in result.trace.steps} == {None, "summaries", "chunks"}


def test_in_two_steps_a_passage_counts_with_the_summary_that_led_to_it(base: KnowledgeBase) -> None:
    result = base.search("annual plan", "two_step", 10)
    *_, fuse = (step for step in result.trace.steps if step.operation == "fuse")
    assert fuse.scores
    for each in fuse.scores:
        assert each.after == pytest.approx(sum(score or 0 for score in each.lists))
    assert fuse.scores[0].after == pytest.approx(4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"query": "  "}, "the query is empty"),
        ({"mode": "magic"}, "unknown mode 'magic', expected one of auto, weighted, hybrid, vector, fulltext"),
        ({"mode": "hybrid,magic"}, "unknown mode 'hybrid,magic', expected one of .*, or several with commas between"),
        ({"mode": "hybrid,"}, "unknown mode 'hybrid,'"),
        ({"mode": "hybrid,vector,hybrid"}, "names a mode twice: only different modes are fused"),
        ({"mode": "auto,hybrid"}, "auto chooses a mode by itself and cannot be fused"),
        ({"mode": "rewrite+auto"}, "expected hyde or rewrite before the plus sign and one of weighted"),
        ({"mode": "hybrid,hyde+vector"}, "expected hyde or rewrite before the plus sign"),
        ({"mode": "rewrite+hybrid,hyde"}, "expected hyde or rewrite before the plus sign"),
        ({"k": 0}, "k is 0, expected 1 to 1000"),
        ({"k": 1001}, "k is 1001, expected 1 to 1000"),
        ({"granularity": "word"}, "unknown granularity 'word'"),
        ({"summaries": "both"}, "unknown summaries 'both'"),
    ],
)
def test_wrong_arguments_are_named(base: KnowledgeBase, arguments: dict[str, object], message: str) -> None:
    with pytest.raises(QueryError, match=message):
        base.search(**{"query": "token", **arguments})  # type: ignore[arg-type]


def test_pages_score_as_their_best_passage(base: KnowledgeBase) -> None:
    chunks = base.search("顧客 エラー clientName token", "hybrid", 10)
    pages = base.search("顧客 エラー clientName token", "hybrid", 10, granularity="page")
    expected: dict[str, str] = {}
    for hit in chunks.hits:
        expected.setdefault(hit.page_id, hit.chunk_id)
    assert [hit.chunk_id for hit in pages.hits] == list(expected.values())
    assert [pages.target(hit) for hit in pages.hits] == list(expected)


@pytest.mark.parametrize("mode", ["vector", "fulltext", "hybrid"])
def test_documents_score_by_their_passages_each_at_half_the_weight_of_the_one_before(
    base: KnowledgeBase, mode: str
) -> None:
    query = "顧客 エラー clientName token"
    hits = base.search(query, mode, 10).hits
    lowest, highest = hits[-1].score, hits[0].score
    expected: dict[str, float] = {}
    places: dict[str, int] = {}
    for hit in hits:
        place = places[hit.document_id] = places.get(hit.document_id, -1) + 1
        scaled = (hit.score - lowest) / (highest - lowest)
        expected[hit.document_id] = expected.get(hit.document_id, 0) + scaled / 2**place
    documents = base.search(query, mode, 10, granularity="document")
    assert {hit.document_id: hit.score for hit in documents.hits} == pytest.approx(expected)
    assert [hit.score for hit in documents.hits] == sorted(expected.values(), reverse=True)


def test_one_document_cannot_crowd_out_the_others(tmp_path: Path, embedder: BagOfWordsEmbedder) -> None:
    store = VectorStore(tmp_path)
    rows = [chunk("a/long.txt", 1, number, "token token token") for number in range(300)]
    rows += [chunk(f"a/other{number}.txt", 1, 0, "token of something else entirely") for number in range(4)]
    store.sync(CHUNK_INDEX, {"00": table(CHUNK_INDEX, rows)}, embedder)
    base = make_base(store, embedder, {"chunks": store.optimize(CHUNK_INDEX)})
    for mode in ("vector", "fulltext", "hybrid"):
        hits = base.search("token", mode, 5, granularity="document").hits
        assert [hit.document_id for hit in hits] == ["a/long.txt", *(f"a/other{number}.txt" for number in range(4))]


def test_a_base_answers_from_its_version(store: VectorStore, embedder: BagOfWordsEmbedder) -> None:
    base = make_base(store, embedder, {"chunks": store.optimize(CHUNK_INDEX)})
    before = base.search("顧客登録", "hybrid", 10)
    store.sync(CHUNK_INDEX, {"00": table(CHUNK_INDEX, [])}, embedder)
    store.optimize(CHUNK_INDEX, keep_versions=[])
    assert base.search("顧客登録", "hybrid", 10).hits == before.hits


def test_nothing_indexed_is_said_plainly(tmp_path: Path, embedder: BagOfWordsEmbedder) -> None:
    store = VectorStore(tmp_path)
    with pytest.raises(QueryError, match="nothing is indexed yet"):
        make_base(store, embedder, {})
    store.open(CHUNK_INDEX, embedder.dimension)
    empty = make_base(store, embedder, {"chunks": store.optimize(CHUNK_INDEX)})
    with pytest.raises(QueryError, match="nothing is indexed yet"):
        empty.search("token")


def test_two_step_without_summaries_is_said_plainly(store: VectorStore, embedder: BagOfWordsEmbedder) -> None:
    base = make_base(store, embedder, {"chunks": store.optimize(CHUNK_INDEX)})
    with pytest.raises(QueryError, match="needs summaries"):
        base.search("token", "two_step")
    store.sync(SUMMARY_INDEX, {"00": table(SUMMARY_INDEX, [])}, embedder)
    versions = {each.name: store.optimize(each) for each in (CHUNK_INDEX, SUMMARY_INDEX)}
    with pytest.raises(QueryError, match="needs summaries"):
        make_base(store, embedder, versions).search("token", "two_step")


def test_vectors_of_another_length_are_refused(store: VectorStore) -> None:
    class Shorter(BagOfWordsEmbedder):
        def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> NDArray[np.float32]:
            return super().embed(texts, kind)[:, :8]

    base = make_base(store, Shorter(), {"chunks": store.optimize(CHUNK_INDEX)})
    with pytest.raises(QueryError, match="vectors of length 8, the table chunks holds 64"):
        base.search("token")


@pytest.mark.parametrize("mode", MODES)
def test_many_queries_are_answered_like_one_and_embedded_together(
    base: KnowledgeBase, embedder: BagOfWordsEmbedder, mode: str
) -> None:
    queries = [(f"q{number}", text) for number, text in enumerate(["顧客登録", "annual plan", "E0004"])]
    embedder.calls.clear()
    together = dict(base.search_all(queries, mode, 3))
    assert "fulltext" in NEEDS_NO_VECTOR
    assert embedder.calls == ([] if mode in NEEDS_NO_VECTOR else [3])
    for query_id, text in queries:
        assert together[query_id].hits == base.search(text, mode, 3).hits


def test_a_wrong_query_among_many_is_named(base: KnowledgeBase) -> None:
    with pytest.raises(QueryError, match="query q2: the query is empty"):
        list(base.search_all([("q1", "token"), ("q2", " ")]))


def test_results_do_not_depend_on_the_order_of_writing(tmp_path: Path, embedder: BagOfWordsEmbedder) -> None:
    found = []
    for name, rows in (("one", CHUNKS), ("two", CHUNKS[::-1])):
        store = VectorStore(tmp_path / name)
        store.sync(CHUNK_INDEX, {"00": table(CHUNK_INDEX, rows)}, embedder)
        base = make_base(store, embedder, {"chunks": store.optimize(CHUNK_INDEX)})
        found.append(
            [base.search("の 画面 token", mode, 10).hits for mode in ("vector", "fulltext", "hybrid", "weighted")]
        )
    assert found[0] == found[1]


def test_query_imports_neither_dagster_nor_the_dagster_side() -> None:
    for path in Path(rag_assets.query.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names.append(node.module or "")
            for name in names:
                assert not name.startswith(("dagster", "rag_assets.defs")), f"{path}: {name}"
