"""Rows of a table that share with one that answers what a question names: all of them, and no others."""

import time
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from click.testing import CliRunner

from rag_assets.cli import main
from rag_assets.pipeline.home import Home
from rag_assets.pipeline.opening import knowledge_base
from rag_assets.pipeline.settings import load_settings
from rag_assets.query.ask.quoted.page_sections import sheets_named
from rag_assets.query.ask.tables.page_tables import Selection, TableOfPage
from rag_assets.query.ask.tables.rows_sharing import asks_for_none, denies, rows_sharing, rules_out

COLUMNS = ["No", "項目名", "型", "必須区分", "主キー", "桁数", "備考"]
ROWS = [
    ["1", "顧客番号", "X", "必須", "○", "10", "採番"],
    ["2", "氏名", "N", "必須", "", "40", ""],
    ["3", "電話", "X", "任意", "", "13", ""],
    ["4", "店番", "X", "必須", "○", "3", ""],
    ["5", "備考", "N", "", "", "200", ""],
]


def table(rows: list[list[str]], columns: list[str] = COLUMNS, section: str = "顧客") -> TableOfPage:
    block: dict[str, Any] = {
        "header_row_count": 1,
        "rows": [{"cells": cells} for cells in [columns, *rows]],
        "section": [section],
    }
    found = TableOfPage.of(block, ("項目定義書", "顧客"))
    assert found is not None
    return found


def shared(question: str, row: int = 0, rows: list[list[str]] = ROWS, columns: list[str] = COLUMNS) -> Selection | None:
    return rows_sharing(question, rows[row], [table(rows, columns)])


def numbers(question: str, row: int = 0) -> list[str]:
    selection = shared(question, row)
    return [cells[0] for cells in selection.cells] if selection else []


@pytest.mark.parametrize(
    ("question", "row", "expected"),
    [
        ("顧客の項目で必須になっているものはどれですか", 0, ["1", "2", "4"]),
        ("顧客で「必須」になっていない項目は？", 0, ["3", "5"]),
        ("必須区分が任意以外の項目を全部教えて", 2, ["1", "2", "4", "5"]),
        ("型がXの項目名を教えてください", 3, ["1", "3", "4"]),
        ("型がXで必須の項目は何ですか", 0, ["1", "4"]),
        ("主キーになっている項目はどれ？", 1, ["1", "4"]),
        ("主キーになっていない項目はどれ？", 1, ["2", "3", "5"]),
        ("桁数が13以上の項目はどれですか", 0, ["2", "3", "5"]),
        ("桁数が13未満の項目はどれですか", 1, ["1", "4"]),
        ("桁数が13桁より大きい項目は", 0, ["2", "5"]),
        ("必須の項目のうち備考が空でないもの以外は？", 0, []),  # which nothing here can tell
        ("桁数が13文字以上の項目は", 0, []),  # a unit that the column does not have
        ("氏名の桁数はいくつですか", 1, []),  # one row
        ("必須の「口座番号」はどれですか", 0, []),  # quotes what stands nowhere
        ("更新した項目はどれですか", 0, []),
    ],
)
def test_rows_that_have_what_the_question_names(question: str, row: int, expected: list[str]) -> None:
    assert numbers(question, row) == expected


ISSUES = [
    ["1", "佐藤", "佐藤", "対応中", "9:00"],
    ["2", "鈴木", "佐藤", "完了", "10:00"],
    ["3", "佐藤", "高橋", "未対応", "10:00"],
    ["4", "高橋", "佐藤", "対応中", "18:00"],
    ["5", "佐藤", "鈴木", "完了", "10:30"],
]


@pytest.mark.parametrize(
    ("question", "row", "expected"),
    [
        ("状態が完了の課題はどれですか", 1, ["2", "5"]),
        ("状態が完了になっていません、という課題はどれですか", 1, []),
        ("状態が完了とされていない課題はどれですか", 1, []),
        ("佐藤さんが担当していない課題はどれですか", 1, []),
        ("担当が佐藤の課題はどれですか", 0, ["1", "2", "4"]),
        ("起票者が佐藤の課題はどれですか", 0, ["1", "3", "5"]),
        ("佐藤さんの課題はどれですか", 1, []),  # of either column
        ("状態が未対応か対応中の課題はどれですか", 0, ["1", "3", "4"]),
        ("状態が未対応または対応中の課題はどれですか", 2, ["1", "3", "4"]),
        ("状態が未対応から対応中になった課題はどれですか", 0, []),
        ("状態が未対応と対応中のどちらの課題ですか", 0, []),
        ("状態が完了か佐藤の課題はどれですか", 1, []),  # of either column
        ("担当が完了の課題はどれですか", 1, []),  # which nobody is called
        ("佐藤と鈴木が一緒に担当している課題はどれですか", 4, []),
        ("「対応」を含む課題はどれですか", 0, ["1", "3", "4"]),
        ("「対応」で終わる課題はどれですか", 2, []),  # one row
        ("「対応」を含まない課題はどれですか", 1, []),
        ("「対応」を含み「未」を含む課題はどれですか", 0, []),
        ("状態が未対応と対応中でない課題はどれですか", 0, []),
        ("状態が完了ではなく未対応の課題はどれですか", 2, []),
        ("対応中の課題を完了にするにはどうすればいいですか", 0, []),
        ("対応中とはどういう意味ですか", 0, []),
        ("対応中の課題は何に使うために分けていますか", 0, []),
        ("状態が完了で期限が5月からの課題は", 1, []),
        ("10時に始まる課題は何ですか", 1, ["2", "3"]),
        ("10時に始まらない課題は何ですか", 1, []),
        ("10時に終わる課題は何ですか", 1, []),
        ("10時前に始まる課題は何ですか", 1, []),
        ("10時30分に始まる課題は何ですか", 1, []),
        ("午後10時に始まる課題は何ですか", 1, []),
        ("10時に始まっている課題は何ですか", 1, []),
        ("状態が未対応ではありません、という課題はどれですか", 2, []),  # though the cell is a negation itself
    ],
)
def test_what_is_not_understood_selects_nothing(question: str, row: int, expected: list[str]) -> None:
    columns = ["No", "起票者", "担当", "状態", "開始"]
    found = shared(question, row, ISSUES, columns)
    assert ([cells[0] for cells in found.cells] if found else []) == expected


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Which tickets are Open?", ["T-1", "T-3"]),
        ("Which tickets don't have the status Open?", []),
        ("Which tickets aren't Open?", []),
        ("Which tickets are Open or Held?", ["T-1", "T-3", "T-5"]),
        ("Which tickets are neither Open nor Held?", []),
        ("How do I open a ticket?", []),
    ],
)
def test_english_questions_are_taken_at_their_word(question: str, expected: list[str]) -> None:
    rows = [["T-1", "Open", "Alice"], ["T-2", "Closed", "Bob"], ["T-3", "Open", "Carol"], ["T-4", "Closed", "Dan"]]
    rows += [["T-5", "Held", "Eve"]]
    found = shared(question, 0, rows, ["ID", "Status", "Owner"])
    assert ([cells[0] for cells in found.cells] if found else []) == expected


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("在庫がある商品はどれですか", ["A1", "A3"]),
        ("在庫がない商品はどれですか", ["A2", "A4"]),
        ("在庫があるのに予約がない商品はどれですか", ["A1"]),
        ("予約が付いていない商品はどれですか", []),
        ("在庫がありませんという商品はどれですか", []),
        ("在庫がないと困る商品はどれですか", []),
        ("在庫でなくてはならない商品はどれですか", []),
        ("長さが20以上の商品はどれですか", ["A2", "A3", "A4"]),
        ("長さが20以上ではない商品はどれですか", []),
    ],
)
def test_marks_and_figures_and_their_absence(question: str, expected: list[str]) -> None:
    columns = ["品番", "商品", "在庫", "予約", "長さ"]
    rows = [["A1", "机", "○", "", "10"], ["A2", "棚", "×", "○", "20"], ["A3", "箱", "○", "○", "30"]]
    rows += [["A4", "椅子", "×", "", "40"]]
    found = shared(question, 1, rows, columns)
    several = [cells[0] for cells in found.cells] if found else []
    assert several == (expected if len(expected) != 1 else []), "one row is left to the quote of it"


def test_a_negation_is_explained_by_the_cell_in_brackets_behind_it() -> None:
    rows = [["MFA", "Not Implemented"], ["SIEM", "Not Implemented"], ["VPN", "Implemented"], ["Unit", "Unit test"]]
    columns = ["Control", "Status"]
    found = shared("まだ導入されていない（Not Implemented）ものはどれですか", 0, rows, columns)
    assert found is not None
    assert [row[0] for row in found.cells] == ["MFA", "SIEM"]
    assert shared("Not Implementedではありません、というものはどれですか", 0, rows, columns) is None


def test_a_long_table_of_figures_is_told_soon() -> None:
    rows = [[str(at), f"品{at}", f"{at * 3}", "特別" if at % 500 == 1 else "通常"] for at in range(1, 5001)]
    columns = ["番号", "品名", "数量", "区分"]
    began = time.process_time()
    found = shared("区分が特別で数量が900以上の品はどれですか", 0, rows, columns)
    assert found is not None
    assert len(found.rows) == 9
    assert time.process_time() - began < 5


def test_the_number_of_marks_is_said_beside_empty_cells() -> None:
    found = shared("主キーの項目はどれですか", 0)
    assert found is not None
    assert found.said == "2件 (主キー: ○。いずれも 必須区分: 必須)"


def test_what_all_rows_share_is_said_once_and_what_tells_them_apart_of_each() -> None:
    found = shared("顧客の項目で必須になっているものはどれですか")
    assert found is not None
    assert found.said == "3件 (必須区分: 必須)"
    assert found.rows[1] == (("No", "2"), ("項目名", "氏名"), ("型", "N"), ("桁数", "40"))
    without = shared("必須になっていない項目は？")
    assert without is not None
    assert without.said == "2件 (必須区分 ≠ 必須)"


def test_all_rows_of_a_code_are_told_by_what_tells_them_apart() -> None:
    columns = ["No.", "コードID", "コード名称", "コード値", "名称", "パターン"]
    names = ["農業", "建設業", "製造業", "卸売業", "小売業", "金融業"]
    rows = [[str(at), "C0100001", "業種分類", f"0{at}", name, "1"] for at, name in enumerate(names, start=1)]
    question = "コードID C0100001（業種分類）に登録されている業種を全部挙げてください。"
    found = shared(question, 2, rows, columns)
    assert found is not None
    assert [dict(row) for row in found.rows] == [{"No.": row[0], "コード値": row[3], "名称": row[4]} for row in rows]
    others = [[str(at), "C0200001", "会計区分", f"0{at}", f"勘定{at}", "1"] for at in range(1, 9)]
    found = shared(question, 2, [*rows, *others], columns)
    assert found is not None
    assert found.said == "6件 (コードID: C0100001, コード名称: 業種分類)"
    assert [row[4] for row in found.cells] == names


@pytest.mark.parametrize("listed", ["Aシステム Bシステム", "Bシステム、Aシステム", "Aシステム/Bシステム"])
def test_a_cell_that_lists_several_values_has_each_and_makes_the_number_unsure(listed: str) -> None:
    rows = [["1", "Aシステム"], ["2", listed], ["3", "Bシステム"], ["4", "Cシステム"], ["5", "Aシステム"]]
    found = shared("相手先がAシステムのインタフェースはどれですか", 0, rows, ["No", "相手先"])
    assert found is not None
    assert [dict(row) for row in found.rows] == [
        {"No": "1", "相手先": "Aシステム"},
        {"No": "2", "相手先": listed},
        {"No": "5", "相手先": "Aシステム"},
    ]
    assert not found.said


def test_a_number_is_not_said_where_other_cells_may_mean_the_same() -> None:
    columns = ["番号", "質問", "状況"]
    graded = [["Q1", "甲", "済"], ["Q2", "乙", "済（要確認）"], ["Q3", "丙", "未"], ["Q4", "丁", "済"]]
    found = shared("状況が済の質問はどれですか", 0, graded, columns)
    assert found is not None
    assert [row[0] for row in found.cells] == ["Q1", "Q4"]
    assert not found.said
    assert found.rows[0] == (("番号", "Q1"), ("質問", "甲"), ("状況", "済"))
    paged = rows_sharing("必須の項目を全部教えて", ROWS[0], [table(ROWS)], are_whole=False)
    assert paged is not None
    assert not paged.said
    going_on = [["J-1", "北斗", "筆"], ["", "", "紙"], ["J-2", "丸井", "墨"], ["J-3", "北斗", "糊"]]
    found = shared("得意先が北斗の受注はどれですか", 0, going_on, ["受注番号", "得意先", "商品"])
    assert found is not None
    assert not found.said
    assert shared("得意先が北斗でない受注はどれですか", 0, going_on, ["受注番号", "得意先", "商品"]) is None


def test_a_grade_with_a_sign_is_not_the_grade_without() -> None:
    columns, rows = ["社員", "評価"], [["佐藤", "A"], ["鈴木", "B"], ["高橋", "A"], ["渡辺", "A-"]]
    assert shared("評価がAの社員は？", 0, rows, columns) is not None
    assert shared("評価がA-の社員は？", 0, rows, columns) is None


def test_a_cell_that_all_rows_have_selects_none() -> None:
    rows = [["案件配信", "取込業務"], ["案件配信", "認証業務"], ["案件配信", "閲覧業務"]]
    question = "案件配信の統計グラフは、案件をどんなカテゴリに分けて集計しますか"
    assert shared(question, 0, rows, ["システム", "業務"]) is None


def test_a_time_of_day_is_told_by_the_only_column_that_has_it() -> None:
    columns = ["番号", "投票所", "開始", "終了"]
    rows = [["18", "一小", "7:00", "20:00"], ["19", "二小", "7:00", "18:00"], ["20", "三小", "7:00", "18:00"]]
    found = shared("投票が18時で終わる投票所はどこですか", 0, rows, columns)
    assert found is not None
    assert [row[1] for row in found.cells] == ["二小", "三小"]
    assert shared("18時間開いている投票所はどこですか", 0, rows, columns) is None


def test_a_table_in_parts_is_one_table_and_that_of_another_section_is_not() -> None:
    first, second, other = table(ROWS[:3]), table(ROWS[3:]), table(ROWS[3:], section="商品")
    question = "必須の項目を全部教えて"
    found = rows_sharing(question, ROWS[0], [first, second])
    assert found is not None
    assert [row[0] for row in found.cells] == ["1", "2", "4"]
    found = rows_sharing(question, ROWS[0], [first, other])
    assert found is not None
    assert [row[0] for row in found.cells] == ["1", "2"]


def test_rows_of_a_table_without_names_of_columns_share_a_cell_and_those_of_another_are_no_part() -> None:
    rows = [["A", "直接介護", "1", "移動"], ["B", "間接業務", "2", "記録"], ["B", "間接業務", "3", "清掃"]]
    block = {"header_row_count": 0, "rows": [{"cells": cells} for cells in rows], "section": []}
    assert TableOfPage.of(block, ("調査票",)) is None
    unnamed = TableOfPage.of(block, ("調査票",), named=False)
    assert unnamed is not None
    selection = rows_sharing("「間接業務」に入る項目を教えてください", rows[1], [unnamed, unnamed])
    assert selection is not None
    assert selection.rows == tuple((("", number), ("", name)) for number, name in (("2", "記録"), ("3", "清掃")))
    assert selection.said == "2件 (間接業務)"
    assert rows_sharing("「間接業務」以外の項目はどれですか", rows[0], [unnamed]) is None, "a row may name the columns"
    uneven = TableOfPage.of(
        {**block, "rows": [{"cells": ["A"]}, {"cells": rows[1]}, {"cells": rows[2]}]}, (), named=False
    )
    assert uneven is not None
    assert rows_sharing("「間接業務」の一覧を教えて", rows[1], [uneven]) is not None
    assert TableOfPage.of({**block, "rows": []}, (), named=False) is None


def test_the_tables_of_the_sheet_that_the_question_names_are_read_and_no_others() -> None:
    names = {1: "1 顧客", 2: "2. 顧客明細", 3: "コード名称", 4: "表紙"}
    assert sheets_named("顧客テーブルで必須の項目は？", names) == {1}
    assert sheets_named("顧客明細の項目は？", names) == {2}
    assert sheets_named("ユーザーマスタの項目は？", {1: "1.ユーザー", 2: "顧客"}) == {1}
    assert sheets_named("「コード名称」シートの項目は？", names) == {3}
    assert sheets_named("必須の項目は？", names) == frozenset()
    columns = ["No", "項目名", "型", "必須"]
    rows = [["1", "顧客番号", "X", "○"], ["2", "氏名", "N", "○"], ["3", "店番", "X", "○"]]
    of_sheet = table(rows, columns)
    for question, expected in (("型がXの項目は？", ["1", "3"]), ("必須の項目はどれですか", ["1", "2", "3"])):
        found = rows_sharing(question, (), [of_sheet])
        assert found is not None
        assert [row[0] for row in found.cells] == expected


def test_all_of_a_long_table_are_told_by_their_sheet(tmp_path: Path, models_folder: Path) -> None:
    docs, home = tmp_path / "docs", tmp_path / "home"
    docs.mkdir()
    home.mkdir()
    (home / "models").symlink_to(models_folder)
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.title = "成果物一覧"
    sheet.append(["No", "工程", "成果物名", "担当", "置き場所"])
    phases = ["要件定義", "基本設計", "詳細設計", "結合テスト", "総合テスト"]
    for number in range(1, 121):
        phase = phases[number * 7 % 5] if number != 60 else "移行"
        sheet.append(
            [number, phase, f"{phase}の資料{number:03}", f"第{number % 9}班", f"棚{number % 40}の{number}段目の箱"]
        )
    book.save(docs / "開発標準.xlsx")
    expected = [row[2] for row in sheet.iter_rows(min_row=2, values_only=True) if row[1] == "結合テスト"]
    result = CliRunner().invoke(main, ["--home", str(home), "index", str(docs)])
    assert result.exit_code == 0, result.output
    answer = knowledge_base(Home(load_settings(home=home))).ask(
        "成果物一覧では、結合テストの工程で何を作ることになっていますか"
    )
    assert answer.answered
    assert answer.sentences[0].text.startswith(f"{len(expected)}件 (工程: 結合テスト")
    shown = [each.text.split("成果物名: ")[1].split(" | ")[0] for each in answer.sentences[1:]]
    assert shown == expected[: len(shown)]
    for sentence, value in zip(answer.sentences[1:], shown, strict=True):
        assert all(value in answer.sources[each.number - 1].text for each in sentence.citations)


_TANKS = [
    ["1", "東第一配水池", "東灘区西岡本4丁目", "有"],
    ["2", "篠原配水池", "灘区篠原中町5丁目", "有"],
    ["3", "六甲山町貯水槽", "兵庫県神戸市灘区六甲山町", "無"],
    ["4", "北野配水池", "中央区北野町1丁目", "有"],
]


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("灘区の給水拠点の一覧", ["篠原配水池", "六甲山町貯水槽"]),
        ("所在地が灘区の給水拠点はどれですか", ["篠原配水池", "六甲山町貯水槽"]),
        ("灘区以外の給水拠点の一覧", None),
        ("神戸市の給水拠点の一覧", None),  # of which nearly all are, but few say so
        ("灘区役所の給水拠点の一覧", None),
        ("灘区に隣接する区の給水拠点の一覧", None),
        ("神戸市の灘区の給水拠点の一覧", None),  # of one of the two
    ],
)
def test_rows_of_a_ward_are_told_by_where_their_addresses_begin(question: str, names: list[str] | None) -> None:
    selection = shared(question, 0, _TANKS, ["No", "施設名", "所在地", "貯水"])
    assert (None if selection is None else [dict(row)["施設名"] for row in selection.rows]) == names


DEVICES = [["本館", "有", "稼働中", "90"], ["別館", "有", "停止", "40"], ["新館", "有", "稼働中", "70"]]
DEVICE_COLUMNS = ["場所", "小児対応設備の有無", "状態", "台数"]


@pytest.mark.parametrize(
    ("question", "is_denied"),
    [
        ("小児対応の機器がないところはどこですか", True),
        ("小児対応設備がない場所は", True),
        ("小児対応の機器があるところはどこですか", False),
        ("停止の理由がない場所は", False),
    ],
)
def test_a_row_with_a_mark_is_no_answer_to_what_has_none(question: str, is_denied: bool) -> None:
    assert (asks_for_none(question) and denies(question, DEVICES[0], [table(DEVICES, DEVICE_COLUMNS)])) is is_denied


def test_rows_of_the_other_values_and_of_comparisons() -> None:
    def places(question: str, row: int) -> list[str]:
        selection = shared(question, row, DEVICES, DEVICE_COLUMNS)
        return [cells[0] for cells in selection.cells] if selection else []

    assert places("停止していない場所はどれですか", 1) == ["本館", "新館"]
    assert rules_out("停止していない場所はどれですか", DEVICES[1])
    assert places("台数が70以上の場所", 0) == ["本館", "新館"]
