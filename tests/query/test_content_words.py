"""Words that carry what a text says, and how they are compared."""

import pytest

from rag_assets.text.content_words import content_terms, content_words, held_share


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("What is the price of it?", [("price",)]),
        ("顧客登録は何ですか", [("顧客", "客登", "登録")]),
        ("トークンを使う", [("トーク", "ークン"), ("使",)]),
        ("clientName, client_name", [("clien",), ("name",), ("clien",), ("name",)]),
        ("Ｅ０００４ は 1,250 円、30日", [("e0004",), ("1250",), ("円",), ("30",), ("日",)]),
        ("registered registrations", [("regis",), ("regis",)]),
        ("A U.S. B", []),
        ("です。", []),
    ],
)
def test_words(text: str, words: list[tuple[str, ...]]) -> None:
    assert content_words(text) == words


@pytest.mark.parametrize(
    ("said", "text", "share"),
    [
        ("cells of a table", "the cell in this table", 1.0),
        ("田", "水田がある", 1.0),
        ("有効期限", "有効な値", 1 / 3),
        ("E000", "E0004", 0.0),
        ("12", "1200", 0.0),
        ("the", "the", 0.0),
    ],
)
def test_shares(said: str, text: str, share: float) -> None:
    assert held_share(content_words(said), content_terms(text)) == pytest.approx(share)
