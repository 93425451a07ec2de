"""What passages state: questions with their answers, items within lines and within items, names of one thing."""

import time

import pytest

from rag_assets.query.ask.answers import Source
from rag_assets.query.ask.quoted.extracts import extracts
from rag_assets.query.ask.quoted.item_marks import counts_on
from rag_assets.query.ask.quoted.statements import StatementKind, statements
from rag_assets.query.results import Citation, Hit
from rag_assets.query.search.composite import Ask

FAQ = """
自社のOSSを商用利用できますか？
← 目次へ
Question
社内で開発したOSSを、他社に売る製品に入れて使いたいのですが、そのようなことをしても問題はありませんか？
Answer
いいえ
他社の貢献が入っている場合は、すべての貢献者の同意を得てください。
手順を見る →
"""
TRAVEL = """
第11条 交通手段
1. 出張時の移動は、原則として公共交通機関を利用する。
2. 有料の特急又は急行は、移動距離に応じて、次のとおり利用できるものとする。
1. 有料特急・・・移動距離120km以上
2. 有料急行・・・移動距離60km以上
3. 宿泊を伴う出張の日数は、次のとおりとする。
1. 出発日に午後出発・・・0.5日
2. 上記以外・・・1日
4. 座席は普通席を利用する。
"""


def source(text: str) -> Source:
    place = Citation("a.docx", 1, None, None, None, "docx", "a.docx#1.1")
    return Source.of(1, Hit(1, 1.0, "a.docx", "a.docx#1", 1, None, "a.docx#1.1", text, "a", place), text)


def lists_of(text: str) -> list[tuple[str, ...]]:
    return [each.lines for each in statements(text) if each.kind is StatementKind.LIST]


def test_a_question_heads_its_answer_and_a_verdict_goes_with_its_reason() -> None:
    found = [each for each in statements(FAQ) if each.kind is StatementKind.SENTENCE]
    assert [each.text for each in found] == [
        "いいえ 他社の貢献が入っている場合は、すべての貢献者の同意を得てください。"
    ]
    assert found[0].context.endswith("問題はありませんか？")
    told = " ".join(each.text for each in statements(FAQ))
    assert not any(word in told for word in ("Question", "Answer", "目次へ", "手順を見る"))


def test_questions_alone_state_nothing() -> None:
    assert statements("OSSを商用利用できる？\n動作しないならライセンスを守る必要はない？\n配布と同じですか？") == []
    assert statements("ライセンスの種類\n商用利用の条件") != []


def test_items_that_an_item_announces_are_its_own_list() -> None:
    lists = lists_of(TRAVEL)
    assert (
        "2. 有料の特急又は急行は、移動距離に応じて、次のとおり利用できるものとする。",
        "1. 有料特急・・・移動距離120km以上",
        "2. 有料急行・・・移動距離60km以上",
    ) in lists
    assert (
        "3. 宿泊を伴う出張の日数は、次のとおりとする。",
        "1. 出発日に午後出発・・・0.5日",
        "2. 上記以外・・・1日",
    ) in lists
    assert not any(lines[0].startswith("2. 有料急行") for lines in lists)
    kinds = {each.text: each.kind for each in statements(TRAVEL)}
    assert kinds["1. 有料特急・・・移動距離120km以上"] is StatementKind.SENTENCE


def test_a_table_that_an_item_announces_is_of_it() -> None:
    text = (
        "第12条 日当\n1. 日当は、移動距離に応じて、下の表のとおり支給する。\n移動距離 | 支給額\n50km以上 | 1,500円\n"
        "100km以上 | 3,000円\n2. 日当は出張日数に応じて支給する。"
    )
    (paid,) = [lines for lines in lists_of(text) if lines[0].startswith("1. 日当は")]
    assert paid[1:] == ("移動距離 | 支給額", "50km以上 | 1,500円", "100km以上 | 3,000円")


@pytest.mark.parametrize(
    ("line", "items"),
    [
        ("There shall be three classes of members: a. Regular members pay. b. Senior members do. c. Junior ones.", 3),
        ("区分は次のとおり。①正社員である者、②契約している者、③派遣された者とする。", 3),
        (
            "These are used: (1) the region under alert; (2) the region with infections; (3) the region without any.",
            3,
        ),
        ("Use (1) the region under alert; (2) the region with infections; and (3) the region without any.", 0),
        ("前項の(1)、(2)及び(3)は、第4条の(1)に準じる。", 0),
        ("See 1. or 2. or 3. of the manual.", 0),
        ("Version 1. 2 was replaced by 2. 1 and then by 3. 0 in the spring.", 0),
    ],
)
def test_items_within_a_line_stand_apart(line: str, items: int) -> None:
    lines = [part for each in lists_of(line) for part in each]
    assert len(lines) == (items + 1 if items else 0)


def test_lists_lettered_in_lower_case() -> None:
    (parts,) = lists_of("The project has three parts:\na) user interface\nb) a database\nc) health calculators")
    assert parts[1:] == ("a) user interface", "b) a database", "c) health calculators")


def test_names_of_one_thing_tell_of_each_other() -> None:
    form = "システム名 | 受注管理\n論理テーブル名 | 受注\n物理テーブル名 | T_ORDER\n作成日 | 2024-04-01"
    (names,) = [each for each in statements(form) if len(each.cells) > 2]
    assert names.cells == (("システム名", "受注管理"), ("論理テーブル名", "受注"), ("物理テーブル名", "T_ORDER"))


def test_questions_below_each_other_are_items() -> None:
    checks = ("退出時の確認事項", "電源は切りましたか？", "窓は閉めましたか？", "鍵は返しましたか？")
    assert lists_of("\n".join(checks)) == [checks]
    found = extracts([Ask("電源は切りましたか？")], [source("\n".join(checks))])
    assert not found.answers


@pytest.mark.parametrize("line", ["← 費用は5万円まで", "↑売上は前年比120%", "在庫を減らす → 費用"])
def test_what_arrows_tell_is_no_link(line: str) -> None:
    assert line in " ".join(each.text for each in statements(f"{line}\n今月の費用は予算の範囲に収まった。"))


def test_a_verdict_does_not_take_a_heading() -> None:
    text = "ビザは必要ですか？\n不要\n第2章 手続きの流れ\n手続きは窓口で行う。"
    (stated,) = [each for each in statements(text) if each.text == "手続きは窓口で行う。"]
    assert "第2章 手続きの流れ" in stated.context


@pytest.mark.parametrize(
    "text",
    ["\n".join(f"第{number}条 見出し" for number in range(8_000)), "_" * 30_000, "目次\n" + "章の名 3\n" * 8_000],
)
def test_long_texts_take_linear_time(text: str) -> None:
    began = time.process_time()
    statements(text)
    assert time.process_time() - began < 8


@pytest.mark.parametrize(
    ("item", "line", "goes_on"),
    [
        ("1. Design", "2. Music", True),
        ("A. Design", "B. Music", True),
        ("一．設計", "二．製造", True),
        ("A. Parts", "1. Design", False),  # of a list within it
        ("2. Music", "4. Law", False),
    ],
)
def test_an_item_goes_on_with_the_next_number_of_its_kind(item: str, line: str, *, goes_on: bool) -> None:
    assert counts_on(item, line) is goes_on
