"""Rows of whole tables that a question asks for: which, how many, the sum, the most, and the value of a key."""

from pathlib import Path
from typing import Any

import openpyxl
import pytest

from rag_assets.pipeline.home import Home
from rag_assets.pipeline.opening import knowledge_base
from rag_assets.pipeline.settings import load_settings
from rag_assets.query.ask.table_rows import RowsAsked, Selection, TableOfPage, told_rows

COLUMNS = ["請求番号", "取引先", "請求日", "金額", "状態", "担当"]
ROWS = [
    ["S-1001", "山田商事", "2026-02-06", "786,000円", "未入金", "佐藤"],
    ["S-1002", "青葉工業", "2026-09-27", "405,000円", "入金済", "鈴木"],
    ["S-1003", "北浜物産", "2026-01-10", "447,000円", "未入金", "鈴木"],
    ["S-1004", "緑川運輸", "2026-06-11", "378,000円", "保留", "佐藤"],
    ["S-1005", "山田商事", "2026-01-03", "900,000円", "入金済", "佐藤"],
    ["合計", "", "", "2,916,000円", "", ""],
]
PLACE = "請求管理.xlsx › 請求"


def block(rows: list[list[str]], headers: int = 1) -> dict[str, Any]:
    return {"header_row_count": headers, "rows": [{"cells": cells} for cells in rows], "section": ["請求一覧"]}


def selected(question: str) -> Selection | None:
    table = TableOfPage.of(block([COLUMNS, *ROWS]))
    assert table is not None
    return RowsAsked.of(question).select(table, PLACE)


def keys(question: str) -> list[str]:
    selection = selected(question)
    return [cells[0] for cells in selection.cells] if selection else []


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("未入金の請求の一覧", ["S-1001", "S-1003"]),
        ("状態が未入金の請求はどれですか", ["S-1001", "S-1003"]),
        ("鈴木さんが担当の請求は？", ["S-1002", "S-1003"]),
        ("未入金と保留の請求をすべて教えて", ["S-1001", "S-1003", "S-1004"]),
        ("金額が一番大きい請求はどれ？", ["S-1005"]),
        ("未入金の請求で金額が最も小さいのは？", ["S-1003"]),
        ("請求日が一番古い請求は？", ["S-1005"]),
        ("S-1002の金額は？", ["S-1002"]),
        ("2026年6月11日の請求の金額", ["S-1004"]),
        ("S-1002の税率は？", []),
        ("未払いの請求はどれですか", []),
        ("未入金の請求の承認者と督促の方法はどれですか", []),
        ("未入金の保留の請求はどれ？", []),
        ("請求書の書き方を教えてください", []),
        ("重さが一番大きい請求はどれ？", []),
    ],
)
def test_the_rows_that_a_question_asks_for(question: str, expected: list[str]) -> None:
    assert keys(question) == expected


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("未入金の請求は全部で何件ありますか", "2件 (状態: 未入金)"),
        ("佐藤さん担当の請求はいくつ？", "3件 (担当: 佐藤)"),
        ("未入金の請求の合計金額は？", "1,233,000円 (金額, 状態: 未入金)"),
        ("山田商事の入金済の請求は何件？", "1件 (取引先: 山田商事, 状態: 入金済)"),
    ],
)
def test_how_many_and_how_much_is_told_of_the_whole_table(question: str, said: str) -> None:
    selection = selected(question)
    assert selection is not None
    assert selection.said == said


def test_figures_of_several_units_have_no_sum() -> None:
    table = TableOfPage.of(block([["品名", "量", "棚"], ["米", "5kg", "A"], ["酒", "3本", "A"], ["水", "2本", "B"]]))
    assert table is not None
    assert RowsAsked.of("棚Aの量の合計は？").select(table, "倉庫の台帳") is None


@pytest.mark.parametrize("headers", [0, 3])
def test_a_table_without_names_or_rows_is_none(headers: int) -> None:
    assert TableOfPage.of(block([["a", "b"], ["c", "d"], ["e", "f"]], headers)) is None


def test_rows_are_told_with_the_passages_that_hold_them_as_far_as_there_is_room() -> None:
    rows = [[f"S-{number}", "未入金" if number % 2 else "済", f"説明{number}" * 20] for number in range(40)]
    table = TableOfPage.of(block([["請求番号", "状態", "備考"], *rows]))
    assert table is not None
    selection = RowsAsked.of("未入金の請求の一覧").select(table, PLACE)
    assert selection is not None
    assert len(selection.rows) == 20
    passages = [
        {"chunk_id": f"c{start}", "text": "\n".join(" | ".join(cells) for cells in rows[start : start + 4])}
        for start in range(0, 40, 4)
    ]

    sentences, ids = told_rows(selection, passages, "ja")

    assert sum(len(each.text) for each in sentences) < 1_000
    assert sentences[-1].text.endswith(f"（ほか {20 - len(sentences)} 件）")
    assert all(each.supported for each in sentences)
    assert ids == list(dict.fromkeys(ids))
    assert [each.citations[0].number for each in sentences][:3] == [1, 1, 2]
    assert "未入金" not in sentences[0].text, "what all rows have in common"


def test_what_is_told_of_a_table_of_the_sample_is_true(sample_home: Path) -> None:
    name = "住登外者宛名番号管理_項目定義書.xlsx"
    sheet = openpyxl.load_workbook(
        Path(__file__).parents[2] / "docs" / "sample" / "基準" / name, read_only=True
    ).worksheets[0]
    rows = [[str(cell or "") for cell in row] for row in sheet.iter_rows(values_only=True)]
    names = next(row for row in rows if "データ型" in row)
    of_type, digits, item = (names.index(each) for each in ("データ型", "桁数", "データ項目"))
    items = [row for row in rows if row[digits].isdecimal()]
    most = max(int(row[digits]) for row in items)
    base = knowledge_base(Home(load_settings(home=sample_home)))
    counted = base.ask("住登外者宛名番号管理の項目定義でデータ型がXのデータ項目は何件ありますか")
    longest = base.ask("住登外者宛名番号管理の項目定義で桁数が最も大きいデータ項目はどれですか")
    assert counted.answered
    assert counted.sentences[0].text == f"{sum(row[of_type] == 'X' for row in items)}件 (データ型: X)"
    assert longest.answered
    assert len(longest.sentences) == sum(int(row[digits]) == most for row in items)
    assert all(f"桁数: {most}" in each.text and each.supported for each in longest.sentences)
    assert {row[item] for row in items if int(row[digits]) == most} == {
        each.text.split("データ項目: ")[1].split(" | ")[0] for each in longest.sentences
    }
