"""Extractive summaries: lengths, what they keep, and LexRank against a calculation by hand."""

import networkx as nx
import numpy as np
import pytest

from rag_assets.contracts.causes import BlockKind, PageKind, PageRole
from rag_assets.contracts.content import Block, Page, Row
from rag_assets.enrich.summaries.extraction import (
    content_pages,
    lexrank,
    select_diverse,
    summarize_file,
    summarize_page,
    summarize_role,
    terms,
    tf_idf,
)

HEADER = Row(("項目名", "型", "説明"))


def page(number: int = 1, name: str | None = "入力データ定義") -> Page:
    rows = tuple(Row((f"項目{n}", "文字列", f"顧客の属性その{n}を表す")) for n in range(30))
    blocks = (
        Block(BlockKind.HEADER, "社外秘"),
        Block(BlockKind.HEADING, "1. 処理概要"),
        Block(
            BlockKind.PARAGRAPH,
            "顧客名と業種コードを受け取り、顧客を登録する。登録した顧客の番号を返す。天気は晴れである。",
        ),
        Block(BlockKind.TABLE, "…", header_row_count=1, rows=(HEADER, *rows)),
    )
    return Page(number, PageKind.SHEET, blocks, name)


def test_a_page_summary_keeps_headings_columns_and_central_sentences() -> None:
    text = summarize_page(page(), "システム機能設計書", 200)
    assert text.startswith("システム機能設計書 / 入力データ定義 / 1. 処理概要 / 項目名、型、説明 / ")
    assert len(text) <= len("システム機能設計書 / ") + 200
    assert "社外秘" not in text


def test_a_file_summary_names_the_file_and_its_pages() -> None:
    text = summarize_file("システム機能設計書", [page(1, "表紙"), page(2, "処理詳細")], 250)
    assert text.startswith("システム機能設計書 / 表紙、処理詳細 / ")
    assert 100 < len(text) <= 250


HISTORY = Page(
    2,
    PageKind.SHEET,
    (Block(BlockKind.HEADING, "変更履歴"), Block(BlockKind.PARAGRAPH, "1.0版 新規作成 2022/09/21 TIS")),
    "変更履歴",
    role=PageRole.REVISION_HISTORY,
)


def test_a_file_summary_leaves_covers_and_histories_out() -> None:
    cover = Page(1, PageKind.SHEET, (Block(BlockKind.PARAGRAPH, "関係者限りの資料"),), "表紙", role=PageRole.COVER)
    text = summarize_file("設計書", [cover, HISTORY, page(3, "処理詳細")], 250)
    assert text.startswith("設計書 / 処理詳細 / 1. 処理概要 / ")
    assert not any(word in text for word in ("表紙", "関係者限り", "変更履歴", "新規作成"))


def test_a_file_of_nothing_but_a_history_is_summarised_from_it() -> None:
    empty = Page(3, PageKind.SHEET, (), "処理詳細")
    assert content_pages([HISTORY, empty]) == [HISTORY, empty]
    assert "新規作成" in summarize_file("設計書", [HISTORY, empty], 250)


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("変更履歴", "新規作成", "設計書 / 変更履歴"),
        ("改版", "変更履歴を記す", "設計書 / 改版 / 変更履歴"),
        ("Sheet1", "Initial version of the document", "設計書 / Sheet1 / revision history"),
        ("変更履歴", "", ""),
    ],
)
def test_the_summary_of_a_history_says_what_it_is(name: str, text: str, expected: str) -> None:
    history = Page(2, PageKind.SHEET, (Block(BlockKind.PARAGRAPH, text),), name)
    assert summarize_role(history, PageRole.REVISION_HISTORY, "設計書") == expected


def test_lines_that_many_documents_share_are_left_out_where_others_fill_half_of_a_summary() -> None:
    shared = "この機能の概要を記述する。"
    heading, note = Block(BlockKind.HEADING, "1. 概要"), Block(BlockKind.PARAGRAPH, shared)
    short, long = (
        Block(BlockKind.PARAGRAPH, text)
        for text in ("顧客を検索する。", "顧客を氏名、業種と登録日の範囲を条件として検索し、一覧に示す。")
    )
    common = {shared, "1. 概要"}
    assert summarize_page(Page(1, PageKind.SHEET, (heading, note, long)), "", 60, common) == long.text
    assert summarize_page(Page(1, PageKind.SHEET, (heading, note, short)), "", 60, common).startswith("1. 概要 / ")


TALK = (
    "ALEX MOORE, Example Bank: Great. Thanks very much. And how do you see that?",
    "(Operator direction.) So that's kind of one example of it. I think you saw that too.",
    "JANE DOE: Revenue of the storage division rose 12 percent to 310 million dollars. We appreciate it.",
    "The factory in Osaka opened in March and builds sensors for the storage division. Next question.",
)


def test_the_summary_of_a_talk_says_what_stands_by_itself() -> None:
    talk = Page(1, PageKind.BODY, tuple(Block(BlockKind.PARAGRAPH, text) for text in TALK))
    assert summarize_page(talk, "", 200) == (
        "Revenue of the storage division rose 12 percent to 310 million dollars."
        " / The factory in Osaka opened in March and builds sensors for the storage division."
    )
    assert summarize_page(Page(1, PageKind.BODY, talk.blocks[:2]), "", 200)  # nothing else is there


def test_a_page_without_text_has_no_summary() -> None:
    assert summarize_page(Page(1, PageKind.SHEET, (), "空"), "設計書", 200) == ""


@pytest.mark.parametrize("chars", [50, 250, 1000])
def test_a_summary_is_never_longer_than_asked(chars: int) -> None:
    assert len(summarize_file("題" * 40, [page(n) for n in range(1, 40)], chars)) <= chars


def test_one_long_sentence_is_cut_rather_than_lost() -> None:
    long = Page(1, PageKind.BODY, (Block(BlockKind.PARAGRAPH, "語" * 500),))
    assert summarize_page(long, "", 200) == "語" * 199 + "…"
    clauses = Page(1, PageKind.BODY, (Block(BlockKind.PARAGRAPH, "The scanner stops where the tray is empty, " * 9),))
    assert summarize_page(clauses, "", 70) == "The scanner stops where the tray is empty…"


def test_terms_are_words_and_bigrams() -> None:
    assert terms("ＡＰＩの E0004：顧客登録") == ["api", "の", "e0004", "顧客", "客登", "登録"]


def test_lexrank_equals_pagerank_of_the_similarity_graph() -> None:
    texts = ["顧客を登録する", "顧客を登録して返す", "顧客の番号を返す", "天気は晴れである", "a customer is added"]
    weights = tf_idf(texts)
    graph = nx.from_numpy_array(weights @ weights.T)
    values, vectors = np.linalg.eig(nx.google_matrix(graph, alpha=0.85).T)
    dominant = np.real(vectors[:, values.real.argmax()])
    assert lexrank(weights) == pytest.approx(dominant / dominant.sum(), abs=1e-6)


def test_sentences_too_similar_to_a_chosen_one_are_passed_over() -> None:
    weights = np.array([[1.0, 0.0], [0.9, np.sqrt(1 - 0.81)], [0.0, 1.0]])
    assert select_diverse(weights, np.array([0.5, 0.3, 0.2]), [10, 10, 10], 30) == [0, 2]
    assert select_diverse(weights, np.array([0.5, 0.3, 0.2]), [10, 10, 30], 30) == [0]
