"""The row beside one that a question names, and the first and last of a table."""

from typing import Any

import pytest

from rag_assets.contracts.ports import Turn
from rag_assets.query.ask.tables.neighbours import NeighbourAsked
from rag_assets.query.ask.tables.page_tables import TableOfPage

STEPS = [
    ["1", "受付", "窓口", "申請書を受け取る"],
    ["2", "審査", "審査課", "条件を確かめる"],
    ["3", "承認", "部長", "可否を決める"],
    ["4", "通知", "窓口", "結果を知らせる"],
]
COLUMNS = ["No", "工程", "担当", "内容"]


def table(
    rows: list[list[str]], columns: list[str] = COLUMNS, names: tuple[str, ...] = ("申請の手引き", "申請手順")
) -> TableOfPage:
    block: dict[str, Any] = {"header_row_count": 1, "rows": [{"cells": row} for row in [columns, *rows]], "section": []}
    found = TableOfPage.of(block, names)
    assert found is not None
    return found


def beside(question: str, *tables: TableOfPage, history: tuple[Turn, ...] = ()) -> str | None:
    asked = NeighbourAsked.of(question)
    selected = asked.select(tables or [table(STEPS)], history) if asked else None
    return selected[1].cells[0][1] if selected else None


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("審査の次の工程は？", "承認"),
        ("審査の次は何ですか", "承認"),
        ("申請の手引きで「審査」の次は", "承認"),
        ("審査の前の工程を教えてください", "受付"),
        ("審査の直前は", "受付"),
        ("審査工程の次は", "承認"),
        ("承認の後に何をしますか", "通知"),
        ("承認が終わったら次は何をしますか", "通知"),
        ("申請手順の最後は何ですか", "通知"),
        ("最初の工程は何ですか（申請の手引き）", "受付"),
        ("通知の次の工程は？", None),  # at the end
        ("窓口の次の工程は？", None),  # in two rows
        ("決裁の次の工程は？", None),
        ("退職の手引きで「審査」の次は", None),  # another place
        ("審査の次の費目は", None),  # which rows are not
        ("審査の前に確認することは", None),
        ("3日前までに何をしますか", None),
        ("次の手順で登録してください", None),
        ("会議の後の懇親会はどこですか", None),
    ],
)
def test_the_row_beside_the_one_that_is_named(question: str, expected: str | None) -> None:
    assert beside(question) == expected


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What comes after review?", "Approve"),
        ("What is the next step after Review in the manual?", "Approve"),
        ("Which step comes before approve?", "Review"),
        ("What follows approve?", None),
        ("What must be checked before review?", None),
    ],
)
def test_neighbours_in_english(question: str, expected: str | None) -> None:
    rows = [["1", "Apply"], ["2", "Review"], ["3", "Approve"]]
    assert beside(question, table(rows, ["No", "Step"], ("Manual", "Steps"))) == expected


def test_rows_without_an_order_have_none_beside_them() -> None:
    goods = [["机", "900"], ["椅子", "400"], ["棚", "500"]]
    assert beside("椅子の次は", table(goods, ["品名", "金額"], ("在庫", "在庫"))) is None
    files = [["1", "顧客登録要求電文", "電文"], ["2", "顧客", "テーブル"], ["3", "業種", "テーブル"]]
    listed = table(files, ["No", "入出力名", "種別"], ("設計書", "入出力"))
    assert beside("顧客登録要求電文の次は", listed) is None  # which a diagram may tell
    assert beside("顧客登録要求電文の次の入出力は", listed) == "顧客"
    versions = [["3", "第3版", "2026-03-01"], ["2", "第2版", "2026-02-01"], ["1", "初版", "2026-01-01"]]
    assert beside("第2版の次は", table(versions, ["No", "版", "日付"], ("規程", "改訂履歴"))) is None


PRICES = (
    [["1", "鉛筆", "100"], ["2", "消しゴム", "150"], ["3", "定規", "200"]],
    ["No", "品名", "価格"],
    ("価格表", "価格表"),
)
SYSTEMS = (
    [["1", "人事", "CalcX"], ["2", "会計", "CalcY"], ["3", "在庫", "CalcZ"]],
    ["No", "名称", "システム名"],
    ("システム一覧", "一覧"),
)
PROJECTS = (
    [["1", "受注改修", "山田"], ["2", "在庫移行", "鈴木"], ["3", "会計更新", "佐藤"]],
    ["No", "案件名", "担当者"],
    ("案件一覧", "案件"),
)
STAFF = (
    [["1", "甲野", "総務"], ["2", "乙川", "経理"], ["3", "丙山", "営業"]],
    ["No", "氏名", "部署"],
    ("社員名簿", "名簿"),
)
OF_PARTS = ([[no, part, name] for no, name, part in STAFF[0]], ["No", "部署", "氏名"], STAFF[2])
PLAN = (
    [["1", "消しゴム", "100"], ["2", "定規", "200"]],
    ["No", "品名", "単価"],
    ("価格改定スケジュール", "価格改定スケジュール"),
)


@pytest.mark.parametrize(
    ("question", "of", "expected"),
    [
        ("消しゴムの前の価格は", PRICES, None),
        ("消しゴムの次の価格は", PRICES, None),
        ("消しゴムの前の品名は", PRICES, None),
        ("消しゴムの次の品名は", PRICES, "定規"),
        ("消しゴムの次の項目は", PRICES, "定規"),
        ("定規の前の価格は", PLAN, None),
        ("最後の価格は", PRICES, None),
        ("最後の品名は", PRICES, None),
        ("価格表の最後の品名は", PRICES, "定規"),
        ("会計の前の名称は", SYSTEMS, None),
        ("CalcYの前のシステム名は", SYSTEMS, None),
        ("鈴木の前の担当者は", PROJECTS, None),
        ("山田の次の担当者は", PROJECTS, None),
        ("受注改修の次の案件は", PROJECTS, "在庫移行"),
        ("総務の次の部署は", STAFF, None),
        ("総務の次の部署は", OF_PARTS, None),
        ("受付の次の担当者は", (STEPS, COLUMNS, ("申請の手引き", "申請手順")), None),
    ],
)
def test_numbers_of_rows_are_an_order_for_what_the_rows_are(
    question: str, of: tuple[list[list[str]], list[str], tuple[str, ...]], expected: str | None
) -> None:
    assert beside(question, table(*of)) == expected


def test_tables_with_the_same_row_beside_it_answer_and_others_do_not() -> None:
    other = [["1", "審査", "総務課", "書類を見る"], ["2", "承認", "部長", "印を押す"]]
    differing = [["1", "審査", "総務課", "書類を見る"], ["2", "差戻し", "窓口", "返す"]]
    asked = NeighbourAsked.of("審査の次の工程は？")
    assert asked is not None
    selected = asked.select([table(STEPS), table(other)])
    assert selected is not None
    assert selected[1].rows == ((("工程", "承認"), ("担当", "部長")),)
    assert asked.select([table(STEPS), table(differing)]) is None


def test_what_the_conversation_named_is_what_comes_before_the_next() -> None:
    history = (Turn("審査の担当は", "- 工程: 審査 | 担当: 審査課 [1]"), Turn("内容は", ""))
    assert beside("その次は？", history=history) == "承認"
    assert beside("その次は？") is None


@pytest.mark.parametrize(
    ("question", "said", "is_told"),
    [
        ("審査の次の工程は？", ["No: 2 | 工程: 審査 | 担当: 審査課"], False),
        ("審査の後に何をしますか", ["No: 2 | 工程: 審査 | 担当: 審査課"], False),
        ("審査の次は", ["受付 → 審査"], False),
        ("審査の次は", ["審査 → 承認"], True),
        ("審査の前は", ["受付 → 審査"], True),
        ("審査の次は", ["審査の次に部長が承認する。"], True),
        ("審査の次は", ["1. 受付\n2. 審査\n3. 承認"], True),
        ("審査の次は", ["1. 受付\n2. 審査"], True),  # no row: as it was
        ("会議の後の懇親会はどこですか", ["名称: 懇親会 | 場所: 本館"], True),
    ],
)
def test_the_row_itself_is_no_answer(question: str, said: list[str], is_told: bool) -> None:
    asked = NeighbourAsked.of(question)
    assert asked is not None
    assert asked.is_told_by(said) is is_told
