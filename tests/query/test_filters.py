"""Filters: what they let through in LanceDB, and what they make of odd values."""

from datetime import UTC, datetime

import pytest
from query_data import CHUNKS

from rag_assets.contracts.errors import QueryError
from rag_assets.query import Filters, KnowledgeBase, parse_filters


def found(base: KnowledgeBase, *expressions: str) -> set[str]:
    return {hit.page_id for hit in base.search("x", "vector", 100, parse_filters(expressions)).hits}


TOKEN = {"specs/token.xlsx#1", "specs/token.xlsx#2"}
PLAN = {"specs/old/plan.pdf#3"}
MEMO = {"notes/it's.md#1"}
TAX = {"notes/税.txt#1"}


@pytest.mark.parametrize(
    ("expressions", "pages"),
    [
        (["document=specs/token.xlsx"], TOKEN),
        (["document=specs/"], TOKEN | PLAN),
        (["document=*.xlsx"], TOKEN),
        (["document=notes/?.txt"], TAX),
        (["document=notes/it's.md"], MEMO),
        (["document=*it's*"], MEMO),
        (["document=nothing"], set()),
        (["folder=specs"], TOKEN | PLAN),
        (["folder=specs/old/"], PLAN),
        (["folder=spec"], set()),
        (["format=PDF"], PLAN),
        (["format=pdf", "format=md"], PLAN | MEMO),
        (["format=pdf", "document=notes/"], set()),
        (["language=ja"], TOKEN | TAX),
        (["page_name=画面"], {"specs/token.xlsx#1"}),
        (["page_name=項目's 100%_定義"], {"specs/token.xlsx#2"}),
        (["page_name=*100%_*"], {"specs/token.xlsx#2"}),
        (["page_name=*100__定義"], set()),
        (["modified=2024-01-02..2024-01-02"], {"specs/token.xlsx#2"}),
        (["modified=2024-01-03"], PLAN),
        (["modified=2024-01-02.."], {"specs/token.xlsx#2"} | PLAN),
        (["modified=..2024-01-01"], {"specs/token.xlsx#1"} | MEMO | TAX),
        (["modified=2024-01-03T21:00:00+09:00.."], PLAN),
        (["modified=2024-01-03T21:00:01+09:00.."], set()),
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
    if name in {"format", "language"}:
        with pytest.raises(QueryError, match=f"no document has {name}"):
            found(base, f"{name}={value}")
        return
    pages = found(base, f"{name}={value}")
    assert pages == (
        MEMO
        if (name, value) == ("document", "*'*")
        else {"specs/token.xlsx#2"}
        if value == "*'*" and name == "page_name"
        else set()
    )


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


def test_conditions_are_left_to_tables_that_have_the_column() -> None:
    filters = Filters(page_name=("画面",), format=("pdf",), modified_from=datetime(2024, 1, 1, tzinfo=UTC))
    assert filters.to_sql({"format"}) == "format IN ('pdf') AND modified_at >= TIMESTAMP '2024-01-01 00:00:00'"
    assert Filters().to_sql({"format"}) is None
