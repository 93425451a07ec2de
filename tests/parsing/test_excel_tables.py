import time

import pytest
from excel_building import COLOUR, blocks_of, draw_box, use_graph_paper, write
from openpyxl.comments import Comment
from openpyxl.styles import Border, Font, PatternFill, Side
from openpyxl.worksheet.worksheet import Worksheet

from rag_assets.contracts.causes import BlockKind
from rag_assets.parsing.excel.layout.bands import Box, make_bands
from rag_assets.parsing.excel.layout.sections import heading_level, states_value
from rag_assets.parsing.excel.layout.tables import table_block
from rag_assets.text.cells import Area


def test_graph_paper_table_has_logical_columns_and_two_header_rows() -> None:
    def fill(sheet: Worksheet) -> None:
        use_graph_paper(sheet)
        for reference, text in [("B2:C3", "No."), ("D2:K3", "項目名"), ("L2:S2", "編集元")]:
            draw_box(sheet, reference, text, coloured=True)
        for reference, text in [("L3:O3", "表"), ("P3:S3", "列")]:
            draw_box(sheet, reference, text, coloured=True)
        for row, (name, table, column) in enumerate([("顧客ID", "顧客", "ID"), ("顧客名", "顧客", "名称")], 4):
            draw_box(sheet, f"B{row}:C{row}", row - 3)
            draw_box(sheet, f"D{row}:K{row}", name)
            draw_box(sheet, f"L{row}:O{row}", table)
            draw_box(sheet, f"P{row}:S{row}", column)

    (table,) = blocks_of(fill)
    assert (table.kind, table.cell_range, table.header_row_count) == (BlockKind.TABLE, "B2:S5", 2)
    assert [row.cells for row in table.rows] == [
        ("No.", "項目名", "編集元", "編集元"),
        ("No.", "項目名", "表", "列"),
        ("1", "顧客ID", "顧客", "ID"),
        ("2", "顧客名", "顧客", "名称"),
    ]
    assert [row.cell_range for row in table.rows] == ["B2:S2", "B3:S3", "B4:S4", "B5:S5"]
    assert table.text == "No. | 項目名 | 編集元\n |  | 表 | 列\n1 | 顧客ID | 顧客 | ID\n2 | 顧客名 | 顧客 | 名称"


def test_merged_value_stands_in_each_row_and_once_in_the_text() -> None:
    def fill(sheet: Worksheet) -> None:
        write(sheet, [("分類", "値"), ("性別", "男"), (None, "女")], lined=True, look="coloured")
        sheet.merge_cells("A2:A3")

    (table,) = blocks_of(fill)
    assert [row.cells for row in table.rows] == [("分類", "値"), ("性別", "男"), ("性別", "女")]
    assert table.text.count("性別") == 1


def test_form_has_no_header_rows_and_keeps_empty_values_apart() -> None:
    def fill(sheet: Worksheet) -> None:
        for row, (first, value, second, other) in enumerate(
            [("PJ名", None, "作成", "TIS"), ("版", "1.0", "変更", None)], 1
        ):
            draw_box(sheet, f"A{row}", first, coloured=True)
            draw_box(sheet, f"B{row}", value)
            draw_box(sheet, f"C{row}", second, coloured=True)
            draw_box(sheet, f"D{row}", other)

    (table,) = blocks_of(fill)
    assert table.header_row_count == 0
    assert table.rows[0].cells == ("PJ名", "", "作成", "TIS")
    assert table.text == "PJ名 |  | 作成 | TIS\n版 | 1.0 | 変更"


def test_empty_cells_keep_their_places_in_the_text_of_a_table_without_header() -> None:
    def fill(sheet: Worksheet) -> None:
        write(sheet, [(1, 2, 3), (4, None, 6), (None, 8, None), (10, 11, 12)], lined=True)

    (table,) = blocks_of(fill)
    assert (table.kind, table.header_row_count) == (BlockKind.TABLE, 0)
    assert table.text == "1 | 2 | 3\n4 |  | 6\n | 8\n10 | 11 | 12"


def test_name_of_a_column_stays_off_neighbours_with_their_own_lines() -> None:
    """The line between `項目名` and the empty place right of `キー` is missing: one room reaches around `順`."""

    def fill(sheet: Worksheet) -> None:
        for reference, text in [("A1:B2", "No."), ("C1:D1", "キー"), ("G2:H2", "順")]:
            draw_box(sheet, reference, text, coloured=True)
        for place in ("E1:H1", "C2:F2"):
            draw_box(sheet, place, coloured=True)
        line = Side(style="thin")
        for column in "EF":
            sheet[f"{column}1"].border = Border(top=line, left=line if column == "E" else None)
            sheet[f"{column}2"].border = Border(bottom=line)
        sheet["C2"] = "項目名"
        for row in (3, 4):
            for reference, text in [(f"A{row}:B{row}", f"{row}"), (f"C{row}:F{row}", "ID"), (f"G{row}:H{row}", "昇")]:
                draw_box(sheet, reference, text)

    (table,) = blocks_of(fill)
    assert table.header_row_count == 2
    assert [row.cells for row in table.rows][:3] == [
        ("No.", "キー", "キー"),
        ("No.", "項目名", "順"),
        ("3", "ID", "昇"),
    ]


def test_tables_side_by_side_and_below_are_told_apart() -> None:
    def fill(sheet: Worksheet) -> None:
        for top, left in [(1, 1), (1, 5), (6, 1)]:
            write(sheet, [("name", "count"), ("x", 1), ("y", 2)], top, left)

    assert [block.cell_range for block in blocks_of(fill)] == ["A1:B3", "E1:F3", "A6:B8"]
    assert all(block.header_row_count == 1 for block in blocks_of(fill))


def test_empty_columns_between_columns_do_not_part_a_table() -> None:
    def fill(sheet: Worksheet) -> None:
        write(sheet, [("id", None, "name", None, "size"), (1, None, "x", None, 5), (2, None, "y", None, 6)])

    (table,) = blocks_of(fill)
    assert (table.cell_range, table.header_row_count) == ("A1:E3", 1)
    assert table.rows[2].cells == ("2", "y", "6")


def test_table_below_a_table_it_touches_begins_at_its_own_header() -> None:
    def fill(sheet: Worksheet) -> None:
        for reference, text in [("A1:B1", "表"), ("C1:D1", "列"), ("A3:D3", "条件")]:
            draw_box(sheet, reference, text, coloured=True)
        draw_box(sheet, "A2:B2", "顧客")
        draw_box(sheet, "C2:D2", "ID")
        draw_box(sheet, "A4:D5", "A = 1")
        sheet["B5"] = "AND B = 2"

    first, second = blocks_of(fill)
    assert (first.cell_range, second.cell_range) == ("A1:D2", "A3:D5")
    assert [row.cells for row in second.rows] == [("条件",), ("A = 1\nAND B = 2",)]
    assert second.header_row_count == 1


def test_data_without_lines_belongs_to_names_with_lines() -> None:
    def fill(sheet: Worksheet) -> None:
        for column in "ABC":
            draw_box(sheet, f"{column}1", f"name {column}", coloured=True)
            sheet[f"{column}2"], sheet[f"{column}3"] = f"{column} two", f"{column} three"

    (table,) = blocks_of(fill)
    assert (table.cell_range, table.header_row_count, len(table.rows)) == ("A1:C3", 1, 3)


def test_group_of_rows_is_no_header() -> None:
    def fill(sheet: Worksheet) -> None:
        for column in "ABC":
            draw_box(sheet, f"{column}1", f"name {column}", coloured=True)
            draw_box(sheet, f"{column}3", f"value {column}")
        draw_box(sheet, "A2:C2", "group", coloured=True)

    (table,) = blocks_of(fill)
    assert table.header_row_count == 1
    assert table.rows[1].cells == ("group",) * 3


def test_group_of_rows_right_below_names_that_span_two_rows_is_no_header() -> None:
    def fill(sheet: Worksheet) -> None:
        rows: list[tuple[object, ...]] = [
            ("番号", "施設名", "所在地", "緯度"),
            *((n, f"施設{n}号", f"北町{n}番地", 34.5 + n / 10) for n in range(1, 9)),
        ]
        rows[1:1], rows[6:6] = [(None, "都心地域", None, None)], [(None, "北地域", None, None)]
        write(sheet, rows)
        for column, letter in enumerate("ABCD", 1):
            if column != 2:
                draw_box(sheet, f"{letter}1:{letter}2", rows[0][column - 1])
        draw_box(sheet, "B1", "施設名")
        draw_box(sheet, "B2", "都心地域")
        for row in range(3, 12):
            for letter in "ABCD":
                draw_box(sheet, f"{letter}{row}", sheet[f"{letter}{row}"].value)

    (table,) = blocks_of(fill)
    assert table.header_row_count == 1
    assert table.rows[0].cells == ("番号", "施設名", "所在地", "緯度")


def test_table_below_a_narrow_one_it_touches_begins_at_its_own_names() -> None:
    names = ["ID", "名称", "開店時間", "閉店時間", "営業フラグ"]
    rows = [
        ["テーブル論理名", "テーブル物理名"],
        ["店舗マスタ", "tenpo_m"],
        names,
        ["id", "name", "open_at", "close_at", "is_open"],
    ]

    narrow, wide = blocks_of(
        lambda sheet: write(sheet, [*rows, ["INT", "VARCHAR", "TIME", "TIME", "TINYINT"]], lined=True)
    )
    assert (narrow.cell_range, wide.cell_range, wide.header_row_count) == ("A1:B2", "A3:E5", 1)
    assert list(wide.rows[0].cells) == names


def test_numbered_headings_make_sections() -> None:
    def fill(sheet: Worksheet) -> None:
        use_graph_paper(sheet)
        sheet["B2"], sheet["C3"], sheet["D4"] = "2. 検索", "2.1. 入力", "条件を入力する。"
        sheet["C6"], sheet["D7"] = "2.2. 出力", "結果を示す。"

    found = [(block.kind.value, block.text, block.section) for block in blocks_of(fill)]
    assert found == [
        ("heading", "2. 検索", ()),
        ("heading", "2.1. 入力", ("2. 検索",)),
        ("paragraph", "条件を入力する。", ("2. 検索", "2.1. 入力")),
        ("heading", "2.2. 出力", ("2. 検索",)),
        ("paragraph", "結果を示す。", ("2. 検索", "2.2. 出力")),
    ]


def test_numbers_in_brackets_nest() -> None:
    assert [heading_level(text) for text in ("(2) 成果物", "(2-1) 設計書", "（３）", "2.3.1. 項目", "■注意")] == [
        ("bracket", 1),
        ("bracket", 2),
        ("bracket", 1),
        ("number", 3),
        ("■", 1),
    ]


def test_table_of_contents_makes_no_sections() -> None:
    def fill(sheet: Worksheet) -> None:
        sheet["A1"] = "目次"
        for row, text in enumerate(["1. 概要", "1.1. 範囲", "2. 詳細", "2.1. 入力"], 3):
            sheet.cell(row, 1, text)

    blocks = blocks_of(fill)
    assert not any(block.kind is BlockKind.HEADING for block in blocks)
    assert not any(block.section for block in blocks)


def test_title_above_a_table_is_its_section() -> None:
    def fill(sheet: Worksheet) -> None:
        sheet["A1"] = "売上一覧"
        sheet["A1"].font = Font(bold=True)
        write(sheet, [("月", "額"), ("4月", 10), ("5月", 20)], 3)

    heading, table = blocks_of(fill)
    assert heading.kind is BlockKind.HEADING
    assert table.section == ("売上一覧",)


SALES = [("月", "東京", "大阪", "計"), ("4月", 10, 20, 30), ("5月", 20, 5, 25)]


@pytest.mark.parametrize("look", ["plain", "lined", "coloured"])
@pytest.mark.parametrize(
    ("line", "top"),
    [
        ({"A1": "売上一覧", "D1": "（単位：千円）"}, 2),
        ({"A1": "売上一覧", "D1": "単位：千円"}, 3),
        ({"A1": "売上一覧", "C1": "2024年度", "D1": "[unit: 1,000 yen]"}, 2),
        ({"A1": "売上一覧", "D1": "令和6年4月1日現在"}, 2),
        ({"A1": "売上一覧", "D2": "※税込"}, 3),
        ({"A1": "売上一覧（単位：千円）"}, 2),
    ],
)
def test_title_with_its_notes_is_the_section_of_the_table_below(line: dict[str, str], top: int, look: str) -> None:
    def fill(sheet: Worksheet) -> None:
        for reference, text in line.items():
            sheet[reference] = text
        write(sheet, SALES, top, lined=look != "plain", look=look)

    heading, table = blocks_of(fill)
    assert (heading.kind, heading.text) == (BlockKind.HEADING, " ".join(line.values()))
    assert (table.section, table.cell_range, table.header_row_count) == ((heading.text,), f"A{top}:D{top + 2}", 1)
    assert table.rows[0].cells == SALES[0]


@pytest.mark.parametrize("first", ["2014/6/6", "（税込）"])
def test_first_row_of_a_list_is_no_title(first: str) -> None:
    def fill(sheet: Worksheet) -> None:
        write(sheet, [("りんご", first), ("みかん", "300"), ("かき", "120")])

    (table,) = blocks_of(fill)
    assert (table.kind, table.cell_range) == (BlockKind.TABLE, "A1:B3")


def test_title_row_within_the_lines_of_a_table_is_its_section() -> None:
    def fill(sheet: Worksheet) -> None:
        draw_box(sheet, "A1:C1", "売上一覧")
        draw_box(sheet, "D1", "（単位：千円）")
        write(sheet, SALES, 2, lined=True)

    heading, table = blocks_of(fill)
    assert (heading.cell_range, table.cell_range, table.section) == ("A1:D1", "A2:D4", ("売上一覧 （単位：千円）",))


@pytest.mark.parametrize("look", ["plain", "lined", "coloured"])
@pytest.mark.parametrize(
    "groups",
    [{"A1": "期", "B1": "支店", "D1": "合計"}, {"A1": "期", "B1": "（内訳）"}, {"A1": "2023年度", "C1": "2024年度"}],
)
def test_names_of_groups_of_columns_are_no_title(groups: dict[str, str], look: str) -> None:
    def fill(sheet: Worksheet) -> None:
        for column in "ABCD":
            reference = f"{column}1"
            if look != "plain":
                draw_box(sheet, reference, coloured=look == "coloured")
            if reference in groups:
                sheet[reference] = groups[reference]
        write(sheet, SALES, 2, lined=look != "plain", look=look)

    (table,) = blocks_of(fill)
    assert table.cell_range == "A1:D4"
    assert [cell for cell in dict.fromkeys(table.rows[0].cells) if cell] == list(groups.values())


@pytest.mark.parametrize("bold", [False, True])
def test_value_given_to_a_name_is_no_heading(*, bold: bool) -> None:
    def fill(sheet: Worksheet) -> None:
        sheet["A1"] = "起動時刻：18:00"
        sheet["A1"].font = Font(bold=bold)
        write(sheet, [("月", "額"), ("4月", 10), ("5月", 20)], 3)

    paragraph, table = blocks_of(fill)
    assert (paragraph.kind, table.section) == (BlockKind.PARAGRAPH, ())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("起動時刻：18:00", True),
        ("Content-Type: application/json", True),
        ("作成日：2018/7/1", True),
        ("補足：記述方法の説明", False),
        ("ケース1：正常終了", False),
        ("パターンＡ：一括", False),
        ("Table 3: sales", False),
        ("検索条件：", False),
        ("検索条件", False),
    ],
)
def test_titles_with_a_colon_are_told_from_values(text: str, expected: bool) -> None:
    assert states_value(text) is expected


def test_values_are_shown_and_never_taken_for_missing_ones() -> None:
    def fill(sheet: Worksheet) -> None:
        sheet.append(["kind", "value"])
        for name, value in [("na", "NA"), ("null", "NULL"), ("yes", True), ("error", "#N/A"), ("int", 3.0)]:
            sheet.append([name, value])
        sheet.append(["share", 0.25])
        sheet["B7"].number_format = "0%"

    (table,) = blocks_of(fill)
    assert [row.cells[1] for row in table.rows[1:]] == ["NA", "NULL", "TRUE", "#N/A", "3", "25%"]


@pytest.mark.parametrize(
    ("text", "author", "expected"),
    [
        ("記入例", "山田", "山田: 記入例"),
        ("山田:\n記入例", "山田", "山田:\n記入例"),
        ("記入例", "作成者", "記入例"),
        ("記入例", "Windows User", "記入例"),
    ],
)
def test_comment_is_a_note_at_its_cell_with_its_author(text: str, author: str, expected: str) -> None:
    def fill(sheet: Worksheet) -> None:
        sheet["B2"] = "値"
        sheet["B2"].comment = Comment(text, author)

    note = next(block for block in blocks_of(fill) if block.kind is BlockKind.NOTE)
    assert (note.text, note.cell_range) == (expected, "B2")


def test_long_list_is_one_table() -> None:
    def fill(sheet: Worksheet) -> None:
        sheet.append(["no", "name", "note"])
        for number in range(1, 3_000):
            sheet.append([number, f"name {number}", None if number % 3 else "x"])

    (table,) = blocks_of(fill)
    assert (table.cell_range, table.header_row_count, len(table.rows)) == ("A1:C3000", 1, 3_000)
    assert table.rows[2_999].cells == ("2999", "name 2999", "")
    assert table.rows[2_999].cell_range == "A3000:C3000"
    assert table.text.splitlines()[2_997] == "2997 | name 2997 | x"


def test_value_around_its_name_leaves_the_name_its_column() -> None:
    boxes = [
        Box(Area(0, 0, 0, 3), "目的", "blue"),
        Box(Area(0, 0, 4, 9), "値"),
        Box(Area(5, 0, 5, 3), "名", "blue"),
        Box(Area(5, 4, 5, 9), "甲"),
    ]
    block = table_block(make_bands(boxes))
    assert block is not None
    assert [row.cells for row in block.rows] == [("目的", "値"), ("名", "甲")]


def test_rows_without_lines_between_them_are_rows_of_a_table_with_lines_between_its_columns() -> None:
    goods = [("軸受", 280, 1), ("歯車", 30, 3), ("ばね", 40, 2), ("座金", 5, None)]

    def fill(sheet: Worksheet) -> None:
        for column, name in zip("ABC", ("品目", "値段", "数量"), strict=True):
            draw_box(sheet, f"{column}1", name)
            draw_box(sheet, f"{column}2:{column}5", None)
        write(sheet, goods, top=2)

    (table,) = blocks_of(fill)
    assert (table.kind, table.cell_range, table.header_row_count) == (BlockKind.TABLE, "A1:C5", 1)
    assert table.text == "品目 | 値段 | 数量\n軸受 | 280 | 1\n歯車 | 30 | 3\nばね | 40 | 2\n座金 | 5"
    assert [row.cell_range for row in table.rows] == ["A1:C1", "A2:C2", "A3:C3", "A4:C4", "A5:C5"]


def test_lines_of_one_cell_are_no_rows() -> None:
    def fill(sheet: Worksheet) -> None:
        for column, name in zip("AB", ("処理", "備考"), strict=True):
            draw_box(sheet, f"{column}1", name)
            draw_box(sheet, f"{column}2:{column}4", None)
        for row, (process, note) in enumerate(
            [("顧客を読む。", "読めないときは"), ("誤りを出す。", "止める。"), ("終わる。", None)], 2
        ):
            sheet.cell(row, 1, process)
            sheet.cell(row, 2, note)

    (table,) = blocks_of(fill)
    assert table.text == "処理 | 備考\n顧客を読む。 誤りを出す。 終わる。 | 読めないときは 止める。"


def test_columns_that_several_empty_ones_part_are_one_table_where_their_rows_are_the_same() -> None:
    words = [
        ("英", "日", "説明"),
        ("Status", "状態", "今の状態を示す"),
        ("Expiry", "終了日", "終わる日"),
        ("Details", "詳細", "中身"),
    ]

    def fill(sheet: Worksheet) -> None:
        sheet["B2"], sheet["C2"] = "■", "項目"
        for row, texts in enumerate(words, 3):
            for column, text in zip("CFI", texts, strict=True):
                sheet[f"{column}{row}"] = text
        for row in range(3, 6):  # a list of its own
            sheet[f"L{row}"] = "他"

    heading, table, *_ = blocks_of(fill)
    assert (heading.kind, heading.text) == (BlockKind.HEADING, "■ 項目")
    assert (table.kind, table.cell_range, table.header_row_count) == (BlockKind.TABLE, "C3:I6", 1)
    assert [row.cells for row in table.rows] == words


def test_numbers_stand_in_the_rows_of_the_words_that_name_them() -> None:
    def fill(sheet: Worksheet) -> None:
        sheet["E1"], sheet["F1"] = "予想", "実績"
        for row, (name, part, guess, real) in enumerate(
            [("要件定義", None, 3, 6), ("デザイン", None, None, None), ("一覧", "顧客", 4, 8), ("詳細", "商品", 5, 9)],
            2,
        ):
            sheet.cell(row, 1, name)
            sheet.cell(row, 3, part)
            sheet.cell(row, 5, guess)
            sheet.cell(row, 6, real)

    (table,) = blocks_of(fill)
    assert (table.kind, table.cell_range) == (BlockKind.TABLE, "A1:F5")
    assert table.text.splitlines() == [
        " |  | 予想 | 実績",
        "要件定義 |  | 3 | 6",
        "デザイン",
        "一覧 | 顧客 | 4 | 8",
        "詳細 | 商品 | 5 | 9",
    ]


def test_numbers_beside_a_table_with_numbers_of_its_own_stay_apart() -> None:
    def fill(sheet: Worksheet) -> None:
        write(sheet, [("区分", "件数"), ("甲", 1), ("乙", 2)])
        write(sheet, [("率",), (10,), (20,)], left=5)

    first, second = blocks_of(fill)
    assert (first.text, second.text) == ("区分 | 件数\n甲 | 1\n乙 | 2", "率\n10\n20")


def draw_edges(sheet: Worksheet, row: int, columns: str, edges: str) -> None:
    """Draw lines at some edges of each cell of a row: `tblr`."""
    for column in columns:
        sheet[f"{column}{row}"].border = Border(
            top=Side("thin") if "t" in edges else None,
            bottom=Side("thin") if "b" in edges else None,
            left=Side("thin") if "l" in edges or column == columns[0] else None,
            right=Side("thin") if "r" in edges or column == columns[-1] else None,
        )


def test_rows_whose_columns_no_lines_part_have_the_columns_of_their_texts() -> None:
    goods = [("名前", "略称", "価格"), ("肉160g", "肉小", 1280), ("肉220g", "肉中", 1540), ("野菜", "野", 580)]

    def fill(sheet: Worksheet) -> None:
        write(sheet, goods)
        for row in range(1, 5):
            draw_edges(sheet, row, "ABC", "tb")

    (table,) = blocks_of(fill)
    assert [row.cells for row in table.rows][:2] == [("名前", "略称", "価格"), ("肉160g", "肉小", "1280")]


@pytest.mark.parametrize("between", ["→", "☐"])
def test_signs_between_texts_part_no_columns(between: str) -> None:
    def fill(sheet: Worksheet) -> None:
        for row, name in enumerate(("検索", "登録", "更新"), 1):
            write(sheet, [(name, f"{name}画面", between, f"{name}結果")], top=row)
            draw_edges(sheet, row, "A", "tblr")
            draw_edges(sheet, row, "BCD", "tb")

    (table,) = blocks_of(fill)
    assert table.rows[0].cells == ("検索", f"検索画面 {between} 検索結果")


def test_values_beside_rows_with_lines_stand_in_them() -> None:
    rows = [("1", "氏名", "s_name"), ("2", "住所", "s_address"), ("3", "電話", "s_phone"), ("4", "郵便", "s_mail")]

    def fill(sheet: Worksheet) -> None:
        write(sheet, [("No", "項目", "列"), *rows])
        for row in range(1, 6):
            draw_edges(sheet, row, "A", "tblr")
            draw_edges(sheet, row, "B", "tblr")
            draw_edges(sheet, row, "C", "lr" + "t" * (row < 3) + "b" * (row in {1, 5}))

    (table,) = blocks_of(fill)
    assert [row.cells for row in table.rows][1:] == rows


@pytest.mark.parametrize("column", ["A", "C"])
def test_words_in_a_room_of_their_own_beside_few_rows_stay_together(column: str) -> None:
    def fill(sheet: Worksheet) -> None:
        write(
            sheet,
            [
                ("分類", "項目", "備考"),
                ("非機能", "性能", "税抜"),
                ("要件", "可用性", "千円"),
                ("必須", "保守性", "速報"),
            ],
        )
        for row in range(1, 5):
            for each in "ABC":
                edges = "tblr" if each != column else "lr" + "t" * (row < 3) + "b" * (row in {1, 4})
                draw_edges(sheet, row, each, edges)

    (table,) = blocks_of(fill)
    assert "\n" in table.rows[1].cells["ABC".index(column)]


def test_the_only_remark_of_a_column_without_lines_stands_in_its_row() -> None:
    columns = [("机", "椅子", "棚", "箱"), (1, 2, 3, 4), (None, None, "特注", None)]

    def fill(sheet: Worksheet) -> None:
        for place, (column, name) in enumerate(zip("ABC", ("品目", "数量", "備考"), strict=True)):
            draw_box(sheet, f"{column}1", name)
            draw_box(sheet, f"{column}2:{column}5")
            for row, value in enumerate(columns[place], 2):
                sheet[f"{column}{row}"] = value

    (table,) = blocks_of(fill)
    assert [row.cells[2] for row in table.rows] == ["備考", "", "", "特注", ""]


def test_names_of_columns_without_lines_between_them_are_a_header() -> None:
    def fill(sheet: Worksheet) -> None:
        write(sheet, [("列名", "型", "説明"), ("id", "int", "番号"), ("name", "text", "名前")], lined=True)
        draw_edges(sheet, 1, "ABC", "tb")

    (table,) = blocks_of(fill)
    assert (table.header_row_count, table.rows[0].cells) == (1, ("列名", "型", "説明"))


STAFF = [("営業部", "佐藤"), ("開発部", "鈴木"), ("総務部", "高橋"), ("経理部", "田中")]


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (STAFF, [("凡例",), ("○ 可",), ("△ 条件付",), ("× 不可",)]),
        ([("部署", "責任者"), *STAFF[:3]], [("年度", "売上"), (2021, 120), (2022, 130), (2023, 150)]),
        ([("区分", "件数"), ("甲", 1), ("乙", 2), ("丙", 3)], [("率",), (10,), (20,), (30,)]),
    ],
)
def test_lists_and_tables_side_by_side_stay_apart(left: list[tuple[object]], right: list[tuple[object]]) -> None:
    def fill(sheet: Worksheet) -> None:
        write(sheet, left)
        write(sheet, right, left=6)

    assert len(blocks_of(fill)) == 2


def test_items_with_marks_of_their_own_are_no_heading() -> None:
    def fill(sheet: Worksheet) -> None:
        write(sheet, [("□", "電源を切る"), ("□", "鍵を掛ける"), ("□", "窓を閉める")])

    (table,) = blocks_of(fill)
    assert table.text.count("□") == 3


def test_a_text_set_downwards_heads_its_rows() -> None:
    def fill(sheet: Worksheet) -> None:
        for row, (sign, name) in enumerate(zip("概要欄", ("地域", "面積", "用途"), strict=True), 1):
            write(sheet, [(sign, name, "値")], top=row)
            draw_edges(sheet, row, "B", "tblr")
            draw_edges(sheet, row, "C", "tblr")
            draw_edges(sheet, row, "A", "lr" + "t" * (row == 1) + "b" * (row == 3))

    (table,) = blocks_of(fill)
    assert table.rows[0].cells[0] == "概\n要\n欄"


def test_a_text_over_all_columns_is_the_title_of_the_table() -> None:
    def fill(sheet: Worksheet) -> None:
        draw_box(sheet, "A1:C1", "利用者", coloured=True)
        draw_box(sheet, "A2:C2", "利用者の表")
        write(
            sheet,
            [("列", "型", "説明"), ("id", "int", "番号"), ("name", "text", "名前")],
            top=3,
            lined=True,
            look="coloured",
        )

    title, note, table = blocks_of(fill)
    assert [(title.kind, title.text), note.text] == [(BlockKind.CAPTION, "利用者"), "利用者の表"]
    assert (table.cell_range, table.header_row_count) == ("A3:C5", 1)


def test_a_title_that_comes_again_begins_another_table() -> None:
    def fill(sheet: Worksheet) -> None:
        for top, screen in ((1, "検索"), (6, "登録")):
            draw_box(sheet, f"A{top}:C{top}", "一覧")
            write(sheet, [("システム", "画面", "担当"), ("販売", screen, "田中")], top=top + 1, lined=True)
            write(sheet, [("操作", "処理", "備考"), (f"{screen}する", "読む", "無し")], top=top + 3, lined=True)

    texts = [block.text for block in blocks_of(fill)]
    assert texts[0] == "一覧"
    assert texts.count("一覧") == 2
    assert not any("検索" in text and "登録" in text for text in texts)


def test_what_stands_apart_below_names_of_columns_is_of_their_table() -> None:
    names = ("州", "期間", "性別", "組合", "備考", "出所")
    marks = [
        ("甲", "2015", None, None, None, None),
        ("乙", "2016", None, "X", None, None),
        ("丙", None, None, None, None, "役所"),
    ]

    def fill(sheet: Worksheet) -> None:
        write(sheet, [names, *marks])

    (table,) = blocks_of(fill)
    assert (table.kind, table.header_row_count) == (BlockKind.TABLE, 1)
    assert [row.cells for row in table.rows][2:] == [
        ("乙", "2016", "", "X", "", ""),
        ("丙", "", "", "", "", "役所"),
    ]


def test_the_name_of_a_group_goes_down_the_left_of_its_rows() -> None:
    def fill(sheet: Worksheet) -> None:
        write(sheet, [("区分", "項目", "値")], lined=True, look="coloured")
        write(
            sheet,
            [("基本", None, None), (None, "機器名", "C29"), (None, "所在", "本社"), ("別", "予備", "なし")],
            top=2,
        )
        draw_edges(sheet, 2, "ABC", "t")
        for row in (3, 4):
            draw_edges(sheet, row, "B", "tblr")
            draw_edges(sheet, row, "C", "tblr")
            sheet[f"A{row}"].border = Border(left=Side("thin"), bottom=Side("thin") if row == 4 else None)
        for column in "ABC":
            draw_edges(sheet, 5, column, "tblr")

    (table,) = blocks_of(fill)
    assert [row.cells for row in table.rows][1:] == [
        ("基本", "", ""),
        ("基本", "機器名", "C29"),
        ("基本", "所在", "本社"),
        ("別", "予備", "なし"),
    ]
    assert table.text.splitlines()[1:3] == ["基本", " | 機器名 | C29"]


def test_marks_apart_below_a_title_of_several_texts_are_of_the_table() -> None:
    names = ("No", "属性名", "型", "桁数", "キー", "空", "備考")
    rows = [(1, "番号", "INTEGER", 11, None, None, None), (2, "氏名", "VARCHAR", None, None, "○", None)]

    def fill(sheet: Worksheet) -> None:
        write(sheet, [(None, "利用者", "users", None, None, None, None), names, *rows])

    tables = [block for block in blocks_of(fill) if block.kind is BlockKind.TABLE]
    assert [row.cells for row in tables[-1].rows][-1] == ("2", "氏名", "VARCHAR", "", "", "○", "")


@pytest.mark.parametrize("values", [(2, "鈴木", "総務", None, "○"), ("乙", "鈴木", "営業", None, None)], ids=str)
def test_coloured_values_begin_no_other_table(values: tuple[object, ...]) -> None:
    def fill(sheet: Worksheet) -> None:
        write(sheet, [("記号", "氏名", "部署", "電話", "長")], look="coloured")
        write(sheet, [("甲", "山田", "営業", "03", None)], top=2)
        write(sheet, [values], top=3, look="coloured")
        write(sheet, [("丙", "佐藤", "営業", "06", None)], top=4)

    (table,) = blocks_of(fill)
    assert (table.header_row_count, len(table.rows)) == (1, 4)


def test_a_coloured_name_with_a_remark_ends_no_table() -> None:
    def fill(sheet: Worksheet) -> None:
        write(sheet, [("State", "Complete", "Checked", "Notes"), ("AK", True, False, "ask again"), ("AL", True, True)])
        write(sheet, [("MD", None, None, "no answer")], top=4, look="coloured")
        sheet["D4"].fill = PatternFill()
        write(sheet, [("ME",), ("MN", True, True), ("WI", False, True)], top=5)

    (table,) = blocks_of(fill)
    assert [row.cells[0] for row in table.rows] == ["State", "AK", "AL", "MD", "ME", "MN", "WI"]


def test_a_column_that_counts_its_rows_parts_the_others() -> None:
    def fill(sheet: Worksheet) -> None:
        write(sheet, [("日", "稼働", "備考")], lined=True, look="coloured")
        for row in range(2, 33):
            for column in "ABC":
                draw_edges(sheet, row, column, "lrb" if row == 32 else "lr")
            sheet[f"A{row}"] = f"{row - 1}（月）"
        sheet["B2"], sheet["C29"] = "出社", "祝日"

    (table,) = blocks_of(fill)
    assert [row.cells for row in table.rows][1:3] == [("1（月）", "出社", ""), ("2（月）", "", "")]
    assert table.rows[28].cells == ("28（月）", "", "祝日")
    assert len(table.rows) == 32


@pytest.mark.parametrize(("top", "headers"), [(5, 1), (4, 0)])
def test_names_of_columns_may_stand_beside_the_number_of_their_row(top: int, headers: int) -> None:
    rows = [("部品", "型番", "備考"), ("抵抗", "R-1", "予備"), ("電池", "B-2", "別売"), ("基板", "M-3", "緑")]
    (table,) = blocks_of(lambda sheet: write(sheet, [(5 + index, *row) for index, row in enumerate(rows)], top=top))
    assert table.header_row_count == headers


def test_a_list_that_is_numbered_from_the_first_row_of_a_sheet_has_no_names() -> None:
    rows = [
        ("起動", "鍵を押す", "速い"),
        ("受注", "受ける", "済む"),
        ("発注", "出す", "未だ"),
        ("検収", "見る", "済む"),
    ]
    (table,) = blocks_of(lambda sheet: write(sheet, [(index, *row) for index, row in enumerate(rows, 1)]))
    assert table.header_row_count == 0


def test_a_coloured_row_of_several_texts_is_the_title_of_the_names_below() -> None:
    def fill(sheet: Worksheet) -> None:
        write(sheet, [(None, "利用者", "users", None)], look="coloured")
        sheet["A1"].fill = sheet["D1"].fill = COLOUR
        write(sheet, [("No", "属性名", "型", "桁数"), (1, "番号", "INTEGER", 11), (2, "氏名", "VARCHAR", 9)], top=2)
        for column in "ABCD":
            sheet[f"{column}2"].fill = PatternFill("solid", fgColor="FFD9EAD3")

    title, table = blocks_of(fill)
    assert (title.kind, title.text) == (BlockKind.CAPTION, "利用者 users")
    assert (table.header_row_count, table.rows[0].cells[:2], table.section) == (1, ("No", "属性名"), (title.text,))


@pytest.mark.parametrize("lined", [False, True])
def test_rows_below_an_empty_one_are_of_the_table_whose_columns_they_have(*, lined: bool) -> None:
    def fill(sheet: Worksheet) -> None:
        write(
            sheet,
            [("分類", "機能名", "価格", "備考"), ("甲", "検索", 10, "先"), ("甲", "登録", 9, "後")],
            look="coloured",
        )
        write(sheet, [("乙", "印刷", 8), ("乙", "保存", 7)], top=5, lined=lined)
        write(sheet, [("丙", "削除", 6, "済"), ("丙", "変更", 5, "未")], top=8, lined=lined)

    (table,) = blocks_of(fill)
    assert (table.cell_range, table.header_row_count) == ("A1:D9", 1)
    assert [row.cells for row in table.rows][3:] == [
        ("乙", "印刷", "8", ""),
        ("乙", "保存", "7", ""),
        ("丙", "削除", "6", "済"),
        ("丙", "変更", "5", "未"),
    ]
    assert table.text.splitlines()[4] == "乙 | 保存 | 7"


@pytest.mark.parametrize(
    "rows",
    [
        [("氏名", "部署", "年齢", "電話"), ("山田", "営業", 30, "03")],
        [(1.5, 2.5, "高い", 10), (2.5, 3.5, "安い", 12)],
        [("乙", "印刷"), ("乙", "保存")],
        [("経費", "印刷", "四月", "五月"), ("旅費", "東京", 8, 7)],
        [("作成者", "山田", 20, "審査日"), ("承認者", "鈴木", 21, "審査日")],
        [("部長", "課長", None, "係長"), ("山田", "鈴木", None, "佐藤")],
    ],
    ids=["names", "other kinds", "few columns", "names above figures", "form", "words alone"],
)
def test_other_rows_below_an_empty_one_stay_apart(rows: list[tuple[object, ...]]) -> None:
    def fill(sheet: Worksheet) -> None:
        write(
            sheet, [("分類", "機能名", "価格", "備考"), ("甲", "検索", 10, "先"), ("甲", "登録", 9, "後")], look="bold"
        )
        write(sheet, rows, top=5)

    assert blocks_of(fill)[0].cell_range == "A1:D3"


def test_many_parts_of_a_table_are_joined_in_time() -> None:
    def fill(sheet: Worksheet) -> None:
        write(sheet, [("分類", "機能名", "価格"), ("甲", "検索", 10)], look="bold")
        for row in range(4, 1_500, 3):
            write(sheet, [("乙", "印刷", row), ("乙", "保存", row)], top=row)

    start = time.process_time()
    (table,) = blocks_of(fill)
    assert time.process_time() - start < 10
    assert len(table.rows) == 1_000


def test_signs_beside_a_table_are_in_its_rows() -> None:
    def fill(sheet: Worksheet) -> None:
        write(sheet, [("品名", "備考", "単価"), ("抵抗", "予備", 10), ("電池", "別売", 30)], left=3, lined=True)
        sheet["A3"] = "★"

    (table,) = blocks_of(fill)
    assert [row.cells for row in table.rows] == [
        ("", "品名", "備考", "単価"),
        ("", "抵抗", "予備", "10"),
        ("★", "電池", "別売", "30"),
    ]
    assert table.header_row_count == 1


@pytest.mark.parametrize("sign", ["→", "-"])
def test_arrows_and_dashes_are_no_signs_beside_a_table(sign: str) -> None:
    def fill(sheet: Worksheet) -> None:
        write(sheet, [("品名", "備考", "単価"), ("抵抗", "予備", 10), ("電池", "別売", 30)], lined=True)
        sheet["E2"] = sign

    assert [block.cell_range for block in blocks_of(fill)] == ["A1:C3", "E2"]


@pytest.mark.parametrize("look", ["", "bold"])
def test_a_table_below_an_empty_row_whose_names_look_otherwise_stays_apart(look: str) -> None:
    def fill(sheet: Worksheet) -> None:
        write(sheet, [("部門", "4月", "5月"), ("営業", 10, 20), ("開発", 11, 21)], look="coloured")
        write(sheet, [("経費", "4月", "5月"), ("旅費", 1, 2), ("交際費", 4, 5)], top=5, look=look)

    assert [(block.cell_range, block.header_row_count) for block in blocks_of(fill)] == [("A1:C3", 1), ("A5:C7", 1)]


def test_rows_below_a_heading_in_a_column_to_the_left_stay_below_it() -> None:
    def fill(sheet: Worksheet) -> None:
        sheet["A1"], sheet["A5"] = "■東京", "■大阪"
        write(sheet, [("氏名", "部署", "年齢"), ("山田", "営業", 30), ("鈴木", "総務", 40)], 2, 2, look="coloured")
        write(sheet, [("佐藤", "営業", 33), ("高橋", "総務", 44)], 6, 2)

    assert [block.cell_range for block in blocks_of(fill)] == ["A1", "B2:D4", "A5", "B6:D7"]
    assert blocks_of(fill)[-1].section == ("■大阪",)


def test_tables_side_by_side_both_go_on_below_an_empty_row() -> None:
    def fill(sheet: Worksheet) -> None:
        for left in (1, 5):
            write(sheet, [("品", "数", "額"), ("茶", 1, 2), ("米", 3, 4)], left=left, look="coloured")
            write(sheet, [("酒", 1, 2), ("酢", 3, 4)], 5, left)

    assert [block.cell_range for block in blocks_of(fill)] == ["A1:C6", "E1:G6"]


@pytest.mark.parametrize(
    "rows",
    [
        [("○", "対応する"), ("×", "対応しない")],
        [("・", "画面は共通部品を使う"), ("※", "帳票は月末に出す")],
        [("✓", "発注"), ("☐", "検品")],
        [("○",), ("再検",)],
    ],
    ids=["key", "notes", "other table", "values"],
)
@pytest.mark.parametrize("left", [1, 8])
def test_signs_of_a_key_or_of_another_table_stay_with_their_texts(rows: list[tuple[str, ...]], left: int) -> None:
    def fill(sheet: Worksheet) -> None:
        write(sheet, [("品名", "備考", "単価"), ("抵抗", "予備", 10), ("電池", "別売", 30)], left=4, lined=True)
        write(sheet, rows if left > 1 else [row[::-1] for row in rows], top=2, left=left)

    assert [block.text for block in blocks_of(fill) if block.cell_range == "D1:F3"]


def test_the_name_above_signs_beside_a_table_names_their_column() -> None:
    def fill(sheet: Worksheet) -> None:
        write(sheet, [("品名", "備考", "単価"), ("抵抗", "予備", 10), ("電池", "別売", 30)], lined=True)
        sheet["D1"], sheet["D2"] = "確認", "○"

    (table,) = blocks_of(fill)
    assert [row.cells[-1] for row in table.rows] == ["確認", "○", ""]


def test_a_bold_row_in_the_columns_of_a_sparse_table_ends_no_table() -> None:
    def fill(sheet: Worksheet) -> None:
        write(sheet, [("氏名", "部署", "役職", "備考"), ("山田", "営業")], look="bold")
        write(sheet, [("鈴木", "営業", "課長"), ("佐藤", "総務", "主任"), ("高橋", "総務")], top=3, look="bold")

    (table,) = blocks_of(fill)
    assert (table.header_row_count, len(table.rows)) == (1, 5)


def test_years_in_a_coloured_row_of_other_columns_begin_another_table() -> None:
    def fill(sheet: Worksheet) -> None:
        write(sheet, [("部門", 2022, 2023), ("営業", 10, 20)], lined=True, look="coloured")
        write(sheet, [("費目", 2022, 2023, "差額"), ("旅費", 1, 2, 1)], top=3, lined=True, look="coloured")

    assert [block.cell_range for block in blocks_of(fill)] == ["A1:C2", "A3:D4"]


ROWS: list[tuple[object, ...]] = [(120 + number, 250 + number) for number in range(6)]


@pytest.mark.parametrize("below", [None, "（注）外国人を含む。", "資料：住民基本台帳人口移動報告"])
def test_names_of_rows_beside_an_open_table_are_its_first_column(below: str | None) -> None:
    def fill(sheet: Worksheet) -> None:
        sheet["A8"] = below
        write(sheet, [(None,), *((name,) for name in ["北海道", "青森県", "岩手県", "宮城県", "秋田県", "山形県"])])
        write(sheet, [("転入者数", "転出者数"), *ROWS], left=2, lined=True)

    table, *notes = blocks_of(fill)
    assert (table.header_row_count, table.rows[1].cells) == (1, ("北海道", "120", "250"))
    assert [each.text for each in notes] == [text for text in [below] if text]


def test_a_named_column_without_lines_right_of_a_table_is_of_it_with_empty_cells() -> None:
    def fill(sheet: Worksheet) -> None:
        write(sheet, [("操作", "状態"), *((f"操作{number}", "済み") for number in range(6))], lined=True)
        write(sheet, [("備考",), ("確認後に実行する。",), (None,), (None,), ("一覧から選ぶ。",)], left=3)

    (table,) = blocks_of(fill)
    assert [row.cells[2] for row in table.rows[:5]] == ["備考", "確認後に実行する。", "", "", "一覧から選ぶ。"]


@pytest.mark.parametrize(
    "beside",
    [
        [(None,), *[("e",)] * 6],  # a sign that is the same in all rows
        [(None,), *((number,) for number in range(12))],  # goes on below
        [(f"{number}", f"{number} の説明", "値", "例", "注") for number in range(7)],  # wider than the table
    ],
    ids=["same", "longer", "wider"],
)
def test_other_texts_beside_a_table_are_not_of_it(beside: list[tuple[object, ...]]) -> None:
    def fill(sheet: Worksheet) -> None:
        write(sheet, [("転入者数", "転出者数"), *ROWS], lined=True)
        write(sheet, beside, left=3)

    table, *_ = blocks_of(fill)
    assert {len(row.cells) for row in table.rows} == {2}


@pytest.mark.parametrize("lined", [1, 2, 3])
def test_a_column_that_alone_has_lines_is_of_the_table_around_it(lined: int) -> None:
    events = [("役員会", "総務"), ("古本市", "図書部"), ("囲碁", "一般"), ("大掃除", "自治会"), ("映画会", "一般")]
    rows = [(number, *event) for number, event in enumerate(events, start=3)]

    def fill(sheet: Worksheet) -> None:
        write(sheet, rows)
        write(sheet, [(row[lined - 1],) for row in rows], left=lined, lined=True)

    (table,) = blocks_of(fill)
    assert [row.cells for row in table.rows] == [tuple(map(str, row)) for row in rows]


def test_a_column_with_lines_beside_few_texts_is_a_table_of_its_own() -> None:
    def fill(sheet: Worksheet) -> None:
        write(sheet, [(name,) for name in ["役員会", "古本市", "囲碁", "大掃除", "映画会"]], lined=True)
        write(sheet, [("行事",), (None,), (None,), ("年末のみ",)], left=2)

    table, *others = blocks_of(fill)
    assert table.cell_range == "A1:A5"
    assert [block.text for block in others] == ["行事", "年末のみ"]


def test_a_column_with_lines_beside_notes_is_a_table_of_its_own() -> None:
    def fill(sheet: Worksheet) -> None:
        write(sheet, [(name,) for name in ["品名", "鉛筆", "消しゴム", "定規"]], lined=True)
        write(sheet, [("※1 毎月数える",), ("※2 単位は本",), ("※3 単位は個",), ("※4 廃番",)], left=2)

    table, notes = blocks_of(fill)
    assert (table.cell_range, table.rows[0].cells) == ("A1:A4", ("品名",))
    assert (notes.cell_range, notes.kind) == ("B1:B4", BlockKind.LIST_ITEM)


def test_a_schedule_without_lines_is_a_table_below_its_title_block() -> None:
    days = [str(day) for day in range(1, 25)]
    tasks = [("設計", "山田"), ("製造", "佐々木"), ("検査", "田中"), ("納品", "山田"), ("支援", "佐々木")]

    def fill(sheet: Worksheet) -> None:
        write(sheet, [("名称", "顧客", "開始日", "作成者"), ("店舗案内", "丸山商店", "2024-04-01", "山田")])
        write(sheet, [(None, None, *days), ("内容", "担当", *"月火水木金土日" * 3, "月", "火", "水")], top=3)
        write(sheet, [(*task, None, "→") for task in tasks], top=5)

    *_, table = blocks_of(fill)
    assert (table.cell_range, table.header_row_count) == ("A4:Z9", 1)
    assert [row.cells[:2] for row in table.rows] == [("内容", "担当"), *tasks]
