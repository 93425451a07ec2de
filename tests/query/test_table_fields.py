"""The fields of a table that a question names: all of them, or those that it asks for, and nothing else."""

from typing import Any

import pytest

from rag_assets.query.ask.tables.page_tables import Selection
from rag_assets.query.ask.tables.rows_sharing import rules_out
from rag_assets.query.ask.tables.table_fields import asks_for_fields, fields_named
from rag_assets.query.several_asked import asks_for_several

HEADER = ["No", "論理名", "物理名", "型", "Not Null", "PK", "備考"]
USERS = [
    ["1", "ユーザーID", "user_id", "int", "○", "○", ""],
    ["2", "氏名", "name", "varchar", "○", "", ""],
    ["3", "部署ID", "dept_id", "int", "", "", ""],
    ["4", "合計", "total", "int", "", "", "月次"],
]
ORDERS = [["1", "受注ID", "order_id", "int", "○", "○", ""], ["2", "金額", "amount", "int", "", "", ""]]
SHEETS = {1: "テーブル一覧", 2: "1.ユーザー", 3: "受注"}


def table(page: int, rows: list[list[str]], headers: int = 1, section: tuple[str, ...] = ()) -> dict[str, Any]:
    return {
        "page_number": page,
        "kind": "table",
        "section": list(section),
        "text": "",
        "header_row_count": headers,
        "rows": [{"cells": row} for row in rows],
    }


BLOCKS = [
    table(1, [["No", "論理テーブル", "物理テーブル"], ["1", "ユーザー", "users"], ["2", "受注", "orders"]]),
    table(2, [["論理名称", "ユーザー"], ["物理名称", "users"]], headers=0),
    table(2, [HEADER, *USERS]),
    table(3, [["論理名称", "受注"], ["物理名称", "orders"]], headers=0),
    table(3, [HEADER, *ORDERS]),
]


def fields(question: str, blocks: list[dict[str, Any]] = BLOCKS) -> tuple[int, Selection] | None:
    return fields_named(question, blocks, SHEETS, ("テーブル定義書", "販売管理"), are_whole=True)


def names(question: str) -> list[str]:
    found = fields(question)
    return [row[2] for row in found[1].cells] if found else []


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("販売管理のユーザーテーブルにはどんな項目がありますか", ["user_id", "name", "dept_id", "total"]),
        ("usersテーブルのカラムを物理名で教えて", ["user_id", "name", "dept_id", "total"]),
        ("「受注」テーブルの列を全部", ["order_id", "amount"]),
        ("受注テーブル項目一覧", ["order_id", "amount"]),
        ("What columns does the orders table have?", ["order_id", "amount"]),
        ("usersテーブルで型がintの列名を全部教えて", ["user_id", "dept_id", "total"]),
        ("usersテーブルの項目のうち必須のものは？", []),
        ("usersテーブルでPKの項目は？", ["user_id"]),
        ("usersテーブルの主キーは何ですか", ["user_id"]),
        ("受注テーブルの主キーの項目はどれですか", ["order_id"]),
        ("受注テーブルのプライマリーキーを教えて", ["order_id"]),
        ("主キー、受注テーブルの場合は？", ["order_id"]),
        ("What is the primary key of the orders table?", ["order_id"]),
        ("usersテーブルの主キーの型は？", []),
        ("usersテーブルの主キー以外の項目は？", ["name", "dept_id", "total"]),
        ("usersテーブルの主キーは何番目の項目？", []),
        ("usersテーブルの外部キーは？", []),
        ("usersテーブルの氏名カラムの物理名は？", []),
        ("usersテーブルのname列の備考は？", []),
        ("usersテーブルに部署の項目はありますか？", []),
        ("個人情報として扱うのはusersテーブルのどの項目？", []),
        ("ordersを参照しているusersテーブルの項目は？", []),
        ("usersとordersテーブルの項目", []),
        ("usersテーブルの備考がある項目は？", []),
        ("usersテーブルの3番目の項目は？", []),
        ("customersテーブルの項目を教えて", []),
    ],
)
def test_the_fields_that_a_question_asks_for(question: str, expected: list[str]) -> None:
    assert names(question) == expected


def test_fields_are_said_by_their_names_and_by_what_is_asked_too() -> None:
    found = fields("usersテーブルの項目名と型を教えて")
    assert found is not None
    page, selection = found
    assert (page, selection.said) == (2, "4件 (users)")
    assert selection.rows[0] == (("論理名", "ユーザーID"), ("物理名", "user_id"), ("型", "int"))


def test_the_fields_of_a_key_may_be_numbered_in_their_order() -> None:
    rows = [
        ["1", "コードID", "code_id", "char", "○", "1", ""],
        ["2", "コード値", "code_value", "char", "○", "2", ""],
        ["3", "名称", "label", "varchar", "", "-", ""],
    ]
    found = fields("受注テーブルの主キーはどれですか", [table(3, [HEADER, *rows])])
    assert found is not None
    assert found[1].said == "2件 (受注, PK)"
    assert [dict(row) for row in found[1].rows] == [
        {"論理名": "コードID", "物理名": "code_id", "PK": "1"},
        {"論理名": "コード値", "物理名": "code_value", "PK": "2"},
    ]


def test_what_a_table_is_called_too_is_no_condition() -> None:
    """Each name is read by itself, whatever stands beside it in the order of names."""
    for names in (("users", "名簿"), ("名簿", "users"), ("名簿", "会員", "users")):
        above = [table(2, [[f"名称{number}", name] for number, name in enumerate(names)], headers=0)]
        found = fields(
            "usersテーブル（論理名：名簿）には、どんな項目がありますか", [*above, table(2, [HEADER, *USERS])]
        )
        assert found is not None
        assert [row[2] for row in found[1].cells] == ["user_id", "name", "dept_id", "total"]


def test_a_name_that_two_tables_have_names_none() -> None:
    again = [*BLOCKS, table(4, [["物理名称", "users"]], headers=0), table(4, [HEADER, *ORDERS])]
    assert fields("usersテーブルの項目を教えて", again) is None


@pytest.mark.parametrize(
    ("question", "asks"),
    [
        ("usersテーブルの列は？", True),
        ("usersテーブルの主キーは？", True),
        ("受注画面の項目は？", True),
        ("在庫の数は？", False),
        ("列車の時刻表", True),
    ],
)
def test_most_questions_are_not_looked_up(question: str, *, asks: bool) -> None:
    assert asks_for_fields(question) is asks


@pytest.mark.parametrize(
    ("question", "ruled_out"),
    [
        ("状態が未着手でも対応中でもない課題は？", True),
        ("状態が完了以外の課題は？", True),
        ("佐藤が担当していない課題は？", True),
        ("「未着手」ではない課題は？", True),
        ("佐藤に認められていない操作は？", False),
        ("状態が未着手の課題で、完了が近くないものは？", False),
        ("「未着手では進めません」と出るのはいつ？", False),
    ],
)
def test_a_row_with_what_is_not_asked_for_is_no_answer(question: str, *, ruled_out: bool) -> None:
    assert rules_out(question, ["K-1", "佐藤", "未着手", "完了"]) is ruled_out


@pytest.mark.parametrize(
    ("question", "several"),
    [
        ("主キーは何の組み合わせになってますか", True),
        ("申請に要る書類は？", True),
        ("対応ブラウザは？", True),
        ("主キーは何番目の列ですか", False),
        ("一番多い項目は？", False),
        ("What is the maximum file size?", False),
    ],
)
def test_several_things_are_told_by_what_a_question_is_like(question: str, *, several: bool) -> None:
    assert asks_for_several(question) is several


def test_the_fields_are_below_a_title_block_with_the_same_header_and_names_stand_in_brackets() -> None:
    blocks = [
        table(2, [["論理名", "物理名"], ["ユーザー", "users"]]),
        table(
            2, [["項目名(論理名)", "項目名(物理名)", "型"], ["ユーザーID", "user_id", "int"], ["氏名", "name", "text"]]
        ),
        table(3, [HEADER, *ORDERS]),
    ]
    found = fields_named("ユーザーMSTの項目は", blocks, SHEETS, (), are_whole=True)
    assert found is not None
    assert [row[1] for row in found[1].cells] == ["user_id", "name"]
    assert asks_for_fields("ユーザーMSTの項目は")


def test_each_table_of_a_sheet_has_its_own_fields() -> None:
    blocks = [
        table(2, [HEADER, *USERS], section=("ユーザーテーブル",)),
        table(2, [HEADER, *ORDERS], section=("注文テーブル",)),
    ]
    found = fields_named("注文テーブルの項目は", blocks, {2: "データベース定義"}, (), are_whole=True)
    assert found is not None
    assert [row[2] for row in found[1].cells] == ["order_id", "amount"]
