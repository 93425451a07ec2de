"""Filters: what they let through in LanceDB, and what they make of odd values."""

import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from graph_data import record, write
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from query_data import CHUNKS, BagOfWordsEmbedder, make_base

from rag_assets.contracts.errors import QueryError
from rag_assets.contracts.tables import CHUNK_INDEX, DOCUMENTS, PAGES
from rag_assets.query import Filters, KnowledgeBase, StoredTables, parse_filters
from rag_assets.query.filters import check_known
from rag_assets.store.lake import Lake
from rag_assets.store.vectors.store import VectorStore


def found(base: KnowledgeBase, *expressions: str) -> set[str]:
    return {hit.page_id for hit in base.search("x", "vector", 100, parse_filters(expressions)).hits}


TOKEN = {"specs/token.xlsx#1", "specs/token.xlsx#2"}
PLAN = {"specs/old/plan.pdf#3"}
MEMO_NAME = "notes/it's.md"
MEMO = {f"{MEMO_NAME}#1"}
TAX = {"notes/税.txt#1"}
EVERY = "notes/税.txt, specs/old/plan.pdf, specs/token.xlsx"


@pytest.mark.parametrize(
    ("expressions", "pages"),
    [
        (["document=specs/token.xlsx"], TOKEN),
        (["document=specs/"], TOKEN | PLAN),
        (["document=*.xlsx"], TOKEN),
        (["document=notes/?.txt"], TAX),
        (["document=notes/it's.md"], MEMO),
        (["document=*it's*"], MEMO),
        (["folder=specs"], TOKEN | PLAN),
        (["folder=specs/old/"], PLAN),
        (["format=PDF"], PLAN),
        (["format=pdf", "format=md"], PLAN | MEMO),
        (["format=pdf", "document=notes/"], set()),
        (["folder=specs/old", "modified=..2024-01-01"], set()),
        (["document=nothing", "document=notes/税.txt"], TAX),
        (["page_name=*"], TOKEN),
        (["language=ja"], TOKEN | TAX),
        (["page_name=画面"], {"specs/token.xlsx#1"}),
        (["page_name=項目's 100%_定義"], {"specs/token.xlsx#2"}),
        (["page_name=*100%_*"], {"specs/token.xlsx#2"}),
        (["modified=2024-01-02..2024-01-02"], {"specs/token.xlsx#2"}),
        (["modified=2024-01-03"], PLAN),
        (["modified=2024-01-02.."], {"specs/token.xlsx#2"} | PLAN),
        (["modified=..2024-01-01"], {"specs/token.xlsx#1"} | MEMO | TAX),
        (["modified=2024-01-03T21:00:00+09:00.."], PLAN),
    ],
)
def test_what_filters_let_through(base: KnowledgeBase, expressions: list[str], pages: set[str]) -> None:
    assert found(base, *expressions) == pages
    filters = parse_filters(expressions)
    rows = [row for row in CHUNKS if filters.let_through(row)]
    assert {row["page_id"] for row in rows} == (set() if filters.page_name else pages)


@pytest.mark.parametrize(
    "value", ["' OR '1'='1", "x') OR (1=1", "\\' OR 1=1 --", "%", "_", "*'*", "\\", "\\*", '"', "a;DROP TABLE chunks"]
)
@pytest.mark.parametrize("name", ["document", "folder", "format", "language", "page_name"])
def test_values_never_become_syntax(base: KnowledgeBase, name: str, value: str) -> None:
    pages = {("document", "*'*"): MEMO, ("page_name", "*'*"): {"specs/token.xlsx#2"}}.get((name, value))
    if pages is not None:
        assert found(base, f"{name}={value}") == pages
        return
    with pytest.raises(QueryError, match="there is no document" if name == "document" else f"no document has {name}"):
        found(base, f"{name}={value}")


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("pdf", "expected FIELD=VALUE"),
        ("format=", "expected FIELD=VALUE"),
        ("colour=red", "unknown field, expected one of document, folder, format, language, page_name, modified"),
        ("modified=yesterday", "expected dates or times"),
        ("modified=9999-12-31", "expected dates or times"),
    ],
)
def test_wrong_filters_are_named(expression: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        parse_filters([expression])


@pytest.mark.parametrize(
    ("expressions", "told"),
    [
        (["format=excel"], "no document has format excel; did you mean xlsx? there are: "),
        (["format=エクセル"], "did you mean xlsx?"),
        (["format=xslx"], "did you mean xlsx?"),
        (["format=pptx"], "no document has format pptx; there are: md, pdf, txt, xlsx"),
        (["language=Japanese"], "did you mean ja? there are: "),
        (["document=nothing"], f"there is no document nothing; there are: notes/it's.md, {EVERY}"),
        (["document=token.xlsx"], "there is no document token.xlsx; did you mean specs/token.xlsx? there are: "),
        (["document=税*"], "there is no document 税*; did you mean */税*, notes/税.txt? there are: "),
        (["document=spec/tokens.xlsx"], "did you mean specs/token.xlsx?"),
        (["document=Specs/"], "did you mean specs/token.xlsx, specs/old/plan.pdf?"),
        (["folder=old"], "no document has folder old; did you mean specs/old? there are: notes, specs, specs/old"),
        (["folder=spec"], "no document has folder spec; did you mean specs, specs/old? there are: "),
        (["folder=spec", "folder=note"], "no document has folder spec, note; did you mean specs, specs/old, notes?"),
        (["format=pdf", "folder=nowhere"], "no document has folder nowhere; there are: "),
        (["page_name=定義"], "no document has page_name 定義; did you mean 項目's 100%_定義? there are: 画面, "),
        (["page_name=*100__定義"], "no document has page_name *100__定義; did you mean 項目's 100%_定義? "),
        (
            ["modified=2024-01-03T21:00:01+09:00.."],
            "modified 2024-01-03T12:00:01+00:00..; nearest: 2024-01-03T12:00:00",
        ),
        (
            ["modified=..2023-12-31"],
            "no document has modified ..2024-01-01T00:00:00+00:00; nearest: 2024-01-01T12:00:00",
        ),
        (
            ["modified=2024-01-02T13:00..2024-01-03T11:00"],
            "nearest: 2024-01-02T12:00:00+00:00, 2024-01-03T12:00:00+00:00",
        ),
    ],
)
def test_values_that_nothing_has_are_told_of_with_those_there_are(
    base: KnowledgeBase, expressions: list[str], told: str
) -> None:
    with pytest.raises(QueryError) as raised:
        found(base, *expressions)
    assert told in str(raised.value)


def test_one_known_value_of_several_will_do(base: KnowledgeBase) -> None:
    assert found(base, "format=excel", "format=pdf") == PLAN


@pytest.mark.parametrize("granularity", ["chunk", "document"])
@pytest.mark.parametrize("mode", ["weighted", "fulltext", "meta_knowledge", "graph_local"])
def test_every_way_of_asking_refuses_a_filter_that_nothing_satisfies(
    base: KnowledgeBase, mode: str, granularity: str
) -> None:
    filters = Filters(folder=("nowhere",))
    told = "no document has folder nowhere; there are: notes, specs, specs/old"
    with pytest.raises(QueryError, match=told):
        base.search("token", mode, filters=filters, granularity=granularity)
    with pytest.raises(QueryError, match=told):
        base.ask("token?", mode, filters=filters)
    with pytest.raises(QueryError, match=f"query q1: {told}"):
        next(base.search_all([("q1", "token")], mode, filters=filters, granularity=granularity))


@given(value=st.text("sto*?/ken.'%_\\[]!-", min_size=1, max_size=8))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.parametrize(
    ("name", "other", "pages"),
    [("document", MEMO_NAME, MEMO), ("folder", "specs/old", PLAN), ("page_name", "画面", {"specs/token.xlsx#1"})],
)
def test_what_is_refused_is_what_lets_nothing_through(
    base: KnowledgeBase, name: str, other: str, pages: set[str], value: str
) -> None:
    assume(value.strip())
    try:
        alone = found(base, f"{name}={value}")
    except QueryError:
        assert found(base, f"{name}={value}", f"{name}={other}") == pages
    else:
        assert alone


def test_a_filter_by_a_document_without_passages_finds_nothing(
    tmp_path: Path, store: VectorStore, embedder: BagOfWordsEmbedder
) -> None:
    lake, modified = Lake(tmp_path / "lake"), datetime(2025, 5, 5, tzinfo=UTC)
    empty = {"document_id": "scans/empty.docx", "folder": "scans", "format": "docx", "modified_at": modified}
    write(lake, DOCUMENTS, [record(DOCUMENTS, shard="00", **empty)])
    write(lake, PAGES, [record(PAGES, shard="00", document_id="scans/empty.docx", page_id="x", page_name="空白")])
    stored = StoredTables(lake, {each.name: lake.latest(each) for each in (DOCUMENTS, PAGES)})
    base = make_base(store, embedder, {CHUNK_INDEX.name: store.optimize(CHUNK_INDEX)}, stored)
    for known in ("document=*.docx", "folder=scans", "format=DOCX", "page_name=空白", "modified=2025-05-05"):
        assert found(base, known) == set()
    with pytest.raises(QueryError, match="no document has folder scan; there are: notes, specs, specs/old"):
        found(base, "folder=scan")


def test_many_wildcards_take_no_time() -> None:
    began = time.process_time()
    with pytest.raises(QueryError):
        check_known("document", ["*a" * 40 + "*b"], ["a" * 2000])
    assert time.process_time() - began < 1


def test_near_names_of_a_large_collection_are_found_in_time() -> None:
    known = [f"docs/部門{number % 97}/第{number}号_設計書.xlsx" for number in range(30_000)]
    began = time.process_time()
    with pytest.raises(QueryError, match=r"did you mean docs/部門12/第27172号_設計書.xlsx"):
        check_known("document", ["第27172号_設計所.xlsx"], known)
    assert time.process_time() - began < 5


def test_conditions_are_left_to_tables_that_have_the_column() -> None:
    filters = Filters(page_name=("画面",), format=("pdf",), modified_from=datetime(2024, 1, 1, tzinfo=UTC))
    assert filters.to_sql({"format"}) == "format IN ('pdf') AND modified_at >= TIMESTAMP '2024-01-01 00:00:00'"
    assert Filters().to_sql({"format"}) is None
