"""The kinds of values that a column of a table has: all of them, where that is asked and nothing else."""

from typing import Any

import pytest

from rag_assets.query.ask.tables.column_values import things_of_list, values_of_column
from rag_assets.query.ask.tables.page_tables import Selection, TableOfPage

COLUMNS = ["顧客ID", "事業者名", "契約区分", "比較上の位置づけ", "件数"]
ROWS = [
    ["C1", "鈴木工芸", "委託販売", "主要", "3"],
    ["C2", "井上民芸", "賃貸", "主要", "1"],
    ["C3", "山本染物", "委託販売", "補完", "3"],
    ["C4", "林窯", "講師契約", "補完", "2"],
    ["C5", "森漆器", "賃貸", "主要", "2"],
    ["C6", "谷和紙", "", "主要", "1"],
]


def values(question: str, rows: list[list[str]] = ROWS, columns: list[str] = COLUMNS) -> Selection | None:
    block: dict[str, Any] = {"header_row_count": 1, "rows": [{"cells": cells} for cells in [columns, *rows]]}
    table = TableOfPage.of({**block, "section": []}, ("顧客管理",))
    assert table is not None
    return values_of_column(question, [table])


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("工芸品の顧客管理データで、契約区分にはどんな種類がある？", "3種類 (契約区分)"),
        ("顧客の契約区分は何種類ありますか", "3種類 (契約区分)"),
        ("契約区分として使われている値を全部教えてください。", "3種類 (契約区分)"),
        ("候補につける「位置づけ」の区分を全部知りたい", "2種類 (比較上の位置づけ)"),
    ],
)
def test_each_value_is_told_once(question: str, said: str) -> None:
    selection = values(question)
    assert selection is not None and selection.said == said


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("What values of status are there?", "2 (Status)"),
        ("Which kinds of status does the ticket list have?", "2 (Status)"),
        ("What is the status of T-1?", ""),
        ("Which status does Bob have?", ""),
    ],
)
def test_english_questions(question: str, said: str) -> None:
    rows = [["T-1", "Open", "Alice"], ["T-2", "Closed", "Bob"], ["T-3", "Open", "Carol"]]
    selection = values(question, rows, ["ID", "Status", "Owner"])
    assert (selection.said if selection is not None else "") == said


def test_values_stand_in_the_order_of_the_table_with_the_first_row_that_has_them() -> None:
    selection = values("契約区分にはどんな種類がありますか")
    assert selection is not None
    assert selection.rows == tuple((("契約区分", value),) for value in ("委託販売", "賃貸", "講師契約"))
    assert [cells[0] for cells in selection.cells] == ["C1", "C2", "C4"]


def test_a_cell_that_lists_values_is_no_kind_of_its_own() -> None:
    rows = [["1", "甲"], ["2", "乙"], ["3", "甲 乙"], ["4", "甲"], ["5", "乙"]]
    selection = values("相手先の種類を全部", rows, ["No", "相手先"])
    assert selection is not None and selection.said == "2種類 (相手先)"


@pytest.mark.parametrize(
    "question",
    [
        "鈴木工芸の契約区分は何ですか",  # of one row
        "契約区分を教えてください",
        "鈴木工芸の契約区分にはどんな種類がありますか",  # a condition
        "契約区分が賃貸以外の種類は",
        "契約区分の種類を決めたのは誰ですか",
        "契約区分の種類ごとの手数料は",
        "事業者名にはどんな種類がありますか",  # which tell the rows apart
        "契約区分と比較上の位置づけの種類を全部",  # of two columns
        "手数料にはどんな種類がありますか",  # no column
    ],
)
def test_nothing_is_told_of_another_question(question: str) -> None:
    assert values(question) is None


SCREENS = [
    ["1", "W01", "企業情報一覧", "社員"],
    ["2", "W02", "企業情報詳細", "社員"],
    ["3", "W03", "顧客情報更新", "社員"],
]


def listed(question: str, names: tuple[str, ...] = ("顧客管理システム", "画面一覧")) -> Selection | None:
    cells = [["No", "画面ID", "画面名", "利用者"], *SCREENS]
    block: dict[str, Any] = {"header_row_count": 1, "rows": [{"cells": row} for row in cells], "section": []}
    table = TableOfPage.of(block, names)
    assert table is not None
    return things_of_list(question, table)


@pytest.mark.parametrize(
    "question",
    [
        "どんな画面がありますか",
        "顧客管理システムにはどのような画面が用意されていますか。",
        "画面の一覧を教えてください",
        "画面を全部教えて",
        "顧客管理システムの画面一覧は？",
    ],
)
def test_all_that_a_list_lists_is_told_by_name_and_identifier(question: str) -> None:
    selection = listed(question)
    assert selection is not None
    assert selection.said == "3件 (画面一覧)"
    assert selection.rows[0] == (("画面ID", "W01"), ("画面名", "企業情報一覧"))


@pytest.mark.parametrize(
    "question",
    [
        "管理者が使う画面の一覧を教えて",  # a condition
        "社員以外の画面の一覧",
        "在庫システムにはどんな画面がありますか",  # another one
        "どんな帳票がありますか",
        "画面名は何ですか",
        "画面の色はどんな種類がありますか",
    ],
)
def test_a_list_answers_for_no_other_question(question: str) -> None:
    assert listed(question) is None


@pytest.mark.parametrize(
    ("question", "is_told"),
    [
        ("顧客管理システムの画面の利用者は？", True),
        ("顧客管理システムに載っている画面の利用者を教えてください", True),
        ("画面の利用者は？", False),  # of no document that it names
        ("在庫システムの画面の利用者は？", False),
        ("顧客管理システムの企業情報一覧画面の利用者は？", False),  # of one of them
        ("顧客管理システムの画面の色は？", False),
    ],
)
def test_a_column_of_a_list_is_told_with_what_its_rows_are_called(question: str, *, is_told: bool) -> None:
    selection = listed(question)
    assert (selection is not None) is is_told
    if selection is not None:
        assert [[column for column, _ in row] for row in selection.rows] == [["画面名", "利用者"]] * len(SCREENS)


def test_a_table_that_is_called_no_list_lists_nothing() -> None:
    assert listed("どんな画面がありますか", ("画面設計書", "1 企業情報")) is None


def test_all_that_a_column_of_names_is_called() -> None:
    def table(rows: list[list[str]], name: str) -> TableOfPage:
        cells = [["工程", "担当"], *rows]
        block: dict[str, Any] = {"header_row_count": 1, "rows": [{"cells": row} for row in cells], "section": []}
        found = TableOfPage.of(block, ("分担", name))
        assert found is not None
        return found

    whole = table([["受付", "窓口"], ["審査", "審査課"], ["承認", "部長"]], "RACI")
    part, other = (
        table([["受付", "窓口"], ["承認", "部長"]], "抜粋"),
        table([["出荷", "倉庫"], ["検品", "倉庫"]], "物流"),
    )
    selection = things_of_list("RACIの工程をすべて教えて", whole, [whole, part])
    assert selection is not None
    assert selection.said == "3件 (RACI)"
    assert selection.rows[0] == (("工程", "受付"),)
    assert things_of_list("工程の一覧", whole, [whole, other]) is None
    assert things_of_list("窓口の工程の一覧", whole, [whole]) is None
