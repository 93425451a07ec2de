"""The terms of texts and the words that carry what they say, against lists worked by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assets.text.folding import (
    QUERY_TERMS,
    content_terms,
    content_words,
    held_share,
    query_terms,
    search_terms,
    shares_held,
    years_otherwise,
)


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
        ("2024-4-1", "2024/04/01 2024 4 1"),
        ("令和6年4月1日", "2024/04/01 令 令和 和 6 年 4 月 1 日"),
        ("20240401.xlsx", "2024/04/01 20240401 xlsx"),
        ("令和 6 年 4 月 1 日 R6.4.1", "2024/04/01 2024/04/01 令 令和 和 6 年 4 月 1 日 r6 4 1"),
        ("2024/4/1-2024.4.30", "2024/04/01 2024/04/30 2024 4 1 2024 4 30"),
        ("2024年5月9名", "2024 年 5 月 9 名"),
        ("v2024.1.10 2020.10.10.1 2000-1-2-3", "v2024 1 10 2020 10 10 1 2000 1 2 3"),
        ("2024\n-1\n-2 2024/4/1,500", "2024 1 2 2024 4 1 500"),
        ("昭和99年1月1日 2024-13-01", "昭 昭和 和 99 年 1 月 1 日 2024 13 01"),
    ],
)
def test_terms(text: str, terms: str) -> None:
    assert search_terms(text) == terms


def test_a_query_names_each_term_once_and_is_bounded() -> None:
    assert query_terms("a b a") == "a b"
    assert len(query_terms(" ".join(f"w{number}" for number in range(5000))).split()) == QUERY_TERMS


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("What is the price of it?", [("price",)]),
        ("顧客登録は何ですか", [("顧客", "客登", "登録")]),
        ("トークンを使う", [("トーク", "ークン"), ("使",)]),
        ("clientName, client_name", [("clien",), ("name",), ("clien",), ("name",)]),
        ("Ｅ０００４ は 1,250 円、30日", [("e0004",), ("1250",), ("円",), ("30",), ("日",)]),
        ("2024年4月1日の最高値", [("2024/04/01",), ("最高", "高値")]),
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
        ("2024年4月1日", "| 2024-04-01 | 3 |", 1.0),
        ("2024/4/1", "令和６年４月１日", 1.0),
        ("2024/4/1", "2024/4/10", 0.0),
        ("12", "1200", 0.0),
        ("the", "the", 0.0),
    ],
)
def test_shares(said: str, text: str, share: float) -> None:
    assert held_share(content_words(said), content_terms(text)) == pytest.approx(share)


@pytest.mark.parametrize(
    ("text", "years"),
    [
        ("令和元年度、平成３０年１月", ["2019年", "2018年"]),
        ("昭和64年 大正15年 明治1年", ["1989年", "1926年", "1868年"]),
        ("R3年度のごみ月報、H30年4月", ["2021年", "2018年"]),
        ("2019年と2026年度", ["平成31年", "令和元年", "令和8年"]),
        ("昭和99年 令和0年 平成32年 12019年", []),
        ("大会S3年目、M1年目、S1年契約、S3年保証、型番AB-R8年度、3R5年度、R8年式、CHR3年度", []),
    ],
)
def test_years_of_eras_and_of_the_western_calendar(text: str, years: list[str]) -> None:
    assert years_otherwise(text) == years


_CHARACTERS = st.text(st.sampled_from("顧客検索管理何件ーサービスキ第12,.:/abcXYZs_ 、。\nのを"), max_size=60)
_MIXED = st.tuples(_CHARACTERS, st.sampled_from(["", "2012/1/2", "平成24年1月2日"]), _CHARACTERS).map("".join)


@given(_MIXED, _MIXED)
def test_shares_are_those_by_all_terms_of_a_text(said: str, text: str) -> None:
    words, terms = content_words(said), content_terms(text)
    assert shares_held(words, text) == [held_share([word], terms) for word in words]


def test_a_number_that_counts_what_a_latin_word_names_makes_no_code_with_it() -> None:
    assert query_terms("グローバルIP1個").split()[-3:] == ["ip", "1", "個"]
    assert "b10101" in query_terms("B10101の件").split()
    assert "x1" in query_terms("X1本体").split()
