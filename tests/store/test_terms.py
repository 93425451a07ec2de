"""The terms of texts, against lists worked by hand."""

import pytest

from rag_assets.text.terms import QUERY_TERMS, query_terms, search_terms


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("顧客登録", "顧 顧客 客 客登 登 登録 録"),
        ("エラー", "エラ ラー"),
        ("税", "税"),
        ("の", "の"),
        ("税の納付", "税 税の の納 納 納付 付"),
        ("ＡＢＣ１２３ ｶﾅ", "abc123 カナ"),
        ("B10103顧客", "b10103 顧 顧客 客"),
        ("E0004/E0005", "e0004 e0005"),
        ("clientName", "clientname client name"),
        ("client_name", "client_name client name"),
        ("HTTPServer", "httpserver"),
        ("__init__", "init"),
        ("Don't AND", "don t and"),
        ("\"'():*?", ""),
        ("🍣\0\t\n", ""),
        ("Größe naïve", "größe naïve"),
        ("한국어 text", "한국어 text"),
        ("x" * 100, "x" * 64),
    ],
)
def test_terms(text: str, terms: str) -> None:
    assert search_terms(text) == terms


def test_a_query_names_each_term_once_and_is_bounded() -> None:
    assert query_terms("a b a") == "a b"
    assert len(query_terms(" ".join(f"w{number}" for number in range(5000))).split()) == QUERY_TERMS
