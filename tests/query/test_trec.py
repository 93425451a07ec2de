"""Queries in, runs out."""

from io import StringIO

import pytest

from rag_assets.contracts.errors import QueryError
from rag_assets.evaluation.questions import read_queries
from rag_assets.evaluation.trec import run_lines
from rag_assets.query import KnowledgeBase


def test_queries_are_read() -> None:
    lines = '{"_id": "q1", "text": "顧客", "metadata": {}}\n\n{"_id": 2, "text": "plan"}\n'
    assert list(read_queries(StringIO(lines))) == [("q1", "顧客"), ("2", "plan")]


@pytest.mark.parametrize("line", ["{", "[]", '{"_id": "q"}', '{"text": "x"}'])
def test_a_wrong_line_is_named(line: str) -> None:
    with pytest.raises(QueryError, match="queries, line 2"):
        list(read_queries(StringIO('{"_id": "q1", "text": "x"}\n' + line)))


@pytest.mark.parametrize(
    ("granularity", "target"),
    [("chunk", "specs/token.xlsx#1.1"), ("page", "specs/token.xlsx#1"), ("document", "specs/token.xlsx")],
)
def test_a_run_names_what_a_result_is(base: KnowledgeBase, granularity: str, target: str) -> None:
    [line] = run_lines(base.search_all([("q 1", "E0004")], "fulltext", 5, granularity=granularity))
    query, q0, document, rank, score, name = line.split()
    assert (query, q0, document, rank, name) == ("q_1", "Q0", target, "1", "rag_assets")
    assert float(score) > 0
