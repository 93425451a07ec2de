"""Names of columns without colours: periods above numbers, groups and their parts, tables right below others."""

import datetime as dt
import time

import pytest
from excel_building import blocks_of, draw_box, write
from openpyxl.styles import Font, PatternFill
from openpyxl.worksheet.worksheet import Worksheet

from rag_assets.contracts.causes import BlockKind

Values = list[tuple[object, ...]]

SALES: Values = [("東京", 120, 250, 310), ("大阪", 35, 41, 17)]
FRUIT: Values = [("コード", "名称", "単価"), ("A", "りんご", 100), ("B", "みかん", 50)]
STAFF: Values = [("氏名", "部署", "年齢"), ("山田", "営業", 30), ("鈴木", "総務", 40)]


@pytest.mark.parametrize("lined", [False, True])
@pytest.mark.parametrize("corner", [None, "支店"])
@pytest.mark.parametrize(
    "periods",
    [
        (2021, 2022, 2023),
        ("2021年度", "2022年度", "2023年度"),
        ("FY21", "FY22", "FY23"),
        ("4月", "5月", "6月"),
        (11, 12, 1),
        tuple(dt.date(2024, 4, day) for day in (1, 8, 15)),
        (2022, 2023, "増減"),
    ],
    ids=str,
)
def test_periods_above_numbers_are_a_header(periods: tuple[object, ...], corner: str | None, *, lined: bool) -> None:
    (table,) = blocks_of(lambda sheet: write(sheet, [(corner, *periods), *SALES], lined=lined))
    assert (table.header_row_count, table.rows[1].cells) == (1, ("東京", "120", "250", "310"))


@pytest.mark.parametrize(
    "rows",
    [
        [("A社", 2001, 2002), ("B社", 1999, 2005), ("C社", 2010, 2011)],
        [(1, 2, 3), (40, None, 6), (10, 11, 12)],
        [("甲", 1, 2, 3), ("乙", 4, 5, 6), ("丙", 7, 8, 9)],
        [("開始", "2024-04-01", "2024-05-01"), ("完了", "2024-04-30", "2024-05-31")],
    ],
)
@pytest.mark.parametrize("lined", [False, True])
def test_rows_of_like_numbers_or_dates_are_no_header(rows: Values, *, lined: bool) -> None:
    (table,) = blocks_of(lambda sheet: write(sheet, rows, lined=lined))
    assert table.header_row_count == 0


def test_names_of_groups_and_their_parts_are_two_header_rows() -> None:
    def fill(sheet: Worksheet) -> None:
        groups = ("科目", "2022年度", None, "2023年度", None)
        parts = (None, "予算", "実績", "予算", "実績")
        write(sheet, [groups, parts, ("売上", 10, 12, 11, 9), ("利益", 3, 2, 4, 1)], lined=True)
        sheet.merge_cells("B1:C1")
        sheet.merge_cells("D1:E1")

    (table,) = blocks_of(fill)
    assert table.header_row_count == 2
    assert [row.cells[1] for row in table.rows] == ["2022年度", "予算", "10", "3"]


@pytest.mark.parametrize("corner", [None, "支店"])
def test_years_below_names_of_groups_are_header_rows_too(corner: str | None) -> None:
    def fill(sheet: Worksheet) -> None:
        groups = (None, "売上高", None, "利益", None)
        write(sheet, [groups, (corner, 2022, 2023, 2022, 2023), ("東京", 10, 20, 1, 2)], lined=True)
        sheet.merge_cells("B1:C1")
        sheet.merge_cells("D1:E1")

    (table,) = blocks_of(fill)
    assert (table.header_row_count, table.rows[1].cells) == (2, (corner or "", "2022", "2023", "2022", "2023"))


def test_a_name_that_is_written_in_each_row_of_its_room_is_read_once() -> None:
    def build(sheet: Worksheet) -> None:
        for area in ("A1:A2", "B1:B2", "A3", "B3", "A4", "B4"):
            draw_box(sheet, area)
        write(sheet, [("コード", "対処方法"), ("コード", "対処方法"), ("E01", "再送する"), ("E02", "待つ")])

    (table,) = blocks_of(build)
    assert [row.cells for row in table.rows] == [("コード", "対処方法"), ("E01", "再送する"), ("E02", "待つ")]


@pytest.mark.parametrize("merged", ["A1:A2", "A1:A3"])
def test_name_of_a_group_of_rows_makes_no_header_of_them(merged: str) -> None:
    rows: Values = [
        ("入力", "受注番号", "数値", "必須"),
        (None, "受注日", "日付", "必須"),
        ("出力" if merged == "A1:A2" else None, "備考", "文字", "任意"),
        ("結果", "件数", "数値", "任意"),
    ]

    def fill(sheet: Worksheet) -> None:
        write(sheet, rows, lined=True)
        sheet.merge_cells(merged)

    (table,) = blocks_of(fill)
    assert (table.header_row_count, table.rows[1].cells[:2]) == (0, ("入力", "受注日"))


@pytest.mark.parametrize(
    ("rows", "look"),
    [
        ([("支店", "売上高", "人員"), (None, "（千円）", "（人）"), ("東京", 10, 2), ("大阪", 20, 3)], ""),
        ([("支店", "売上高", "利益"), (None, 2022, 2023), ("東京", 10, 2), ("大阪", 20, 3)], ""),
        ([("No", "項目名", "型"), (None, "説明", "備考"), (1, "番号", "数値"), (None, "一意", "なし")], ""),
        ([("分類", "項目名", "型"), (None, "説明", "備考"), ("入力", "番号", "数値"), (None, "一意", "なし")], "bold"),
    ],
)
def test_names_of_columns_beside_one_over_two_rows_are_two_header_rows(rows: Values, look: str) -> None:
    def fill(sheet: Worksheet) -> None:
        write(sheet, rows, lined=True, look=look)
        if look:
            for column in "ABC":
                sheet[f"{column}2"].font = Font(bold=True)
        sheet.merge_cells("A1:A2")
        if rows[3][0] is None:
            sheet.merge_cells("A3:A4")

    (table,) = blocks_of(fill)
    assert table.header_row_count == 2


@pytest.mark.parametrize("title_colour", ["FF99CCFF", "FFCCCCCC"])
def test_coloured_titles_below_a_form_part_it_and_the_tables(title_colour: str) -> None:
    def fill(sheet: Worksheet) -> None:
        for column, text in zip("ABCD", ("クラス名", "Sample", "メソッド名", "execute"), strict=True):
            draw_box(sheet, f"{column}1", text, coloured=column in "AC")
        for top, title, names, values in (
            (2, "入出力パラメータ", ("項目名", "型", "説明"), ("request", "Req", "要求")),
            (5, "CRUD一覧", ("テーブル\n名", "C", "R"), ("受注", "○", "-")),
        ):
            draw_box(sheet, f"A{top}:D{top}", title)
            for column in "ABCD":
                sheet[f"{column}{top}"].fill = PatternFill("solid", fgColor=title_colour)
            for reference, name, value in zip(("A{0}", "B{0}", "C{0}:D{0}"), names, values, strict=True):
                draw_box(sheet, reference.format(top + 1), name, coloured=True)
                draw_box(sheet, reference.format(top + 2), value)

    form, first_title, first, second_title, second = blocks_of(fill)
    assert (form.cell_range, form.header_row_count) == ("A1:D1", 0)
    assert [title.text for title in (first_title, second_title)] == ["入出力パラメータ", "CRUD一覧"]
    assert [(table.cell_range, table.section, table.header_row_count) for table in (first, second)] == [
        ("A3:D4", ("入出力パラメータ",), 1),
        ("A6:D7", ("CRUD一覧",), 1),
    ]


@pytest.mark.parametrize("lined", [False, True])
@pytest.mark.parametrize("look", ["", "bold"])
def test_table_right_below_a_form_begins_at_its_names(look: str, *, lined: bool) -> None:
    form: Values = [("件名", "会員登録"), ("作成者", "山田"), ("作成日", "2024-04-01")]
    items: Values = [("No.", "項目", "内容"), (1, "目的", "効率化"), (2, "対象", "全社")]

    def fill(sheet: Worksheet) -> None:
        write(sheet, form, lined=lined)
        write(sheet, items, 4, lined=lined, look=look)

    first, second = blocks_of(fill)
    assert (first.cell_range, first.header_row_count) == ("A1:B3", 0)
    assert (second.cell_range, second.header_row_count) == ("A4:C6", 1)


@pytest.mark.parametrize("look", ["bold", "coloured"])
@pytest.mark.parametrize("lined", [False, True])
@pytest.mark.parametrize("title", [None, "社員一覧"])
def test_table_right_below_another_begins_at_names_that_look_so(title: str | None, look: str, *, lined: bool) -> None:
    start = 5 if title else 4

    def fill(sheet: Worksheet) -> None:
        write(sheet, FRUIT, lined=lined, look=look)
        write(sheet, STAFF, start, lined=lined, look=look)
        if title:
            draw_box(sheet, "A4:C4", title) if lined else sheet.__setitem__("A4", title)

    first, *headings, second = blocks_of(fill)
    assert [(block.cell_range, block.header_row_count) for block in (first, second)] == [
        ("A1:C3", 1),
        (f"A{start}:C{start + 2}", 1),
    ]
    assert [block.text for block in headings] == list(second.section) == ([title] if title else [])


@pytest.mark.parametrize(
    "names", [("氏名", "部署", "年齢", "住所", "電話"), ("氏名", "部署", "電話")], ids=["more columns", "fewer columns"]
)
def test_table_right_below_another_begins_at_names_of_other_columns(names: tuple[str, ...]) -> None:
    above: Values = [(*row, 1, 2)[: 8 - len(names)] for row in FRUIT[1:]]
    people: Values = [
        ("山田", "営業", 30, "東京", "03")[: len(names)],
        ("鈴木", "総務", 40, "大阪", "06")[: len(names)],
    ]

    def fill(sheet: Worksheet) -> None:
        write(sheet, [("コード", "名称", "単価", "数量", "金額")[: 8 - len(names)], *above])
        write(sheet, [names, *people], 4)

    assert [block.rows[0].cells[0] for block in blocks_of(fill)] == ["コード", "氏名"]
    assert [block.header_row_count for block in blocks_of(fill)] == [1, 1]


@pytest.mark.parametrize(
    "row", [("合計", "計", 150), ("C", "ぶどう", 300), ("果物", "国産", "在庫なし"), ("合計", None, 150)], ids=str
)
def test_bold_row_of_a_table_begins_no_other_table(row: tuple[object, ...]) -> None:
    def fill(sheet: Worksheet) -> None:
        write(sheet, FRUIT, look="bold")
        write(sheet, [row, ("D", "かき", 80)], 4, look="bold")

    (table,) = blocks_of(fill)
    assert (table.header_row_count, len(table.rows)) == (1, 5)


def test_long_tables_of_names_are_read_in_time() -> None:
    rows: Values = [("備考", "区分", "状態", number) for number in range(1_500)]
    start = time.process_time()
    (table,) = blocks_of(lambda sheet: write(sheet, [("備考", "区分", "状態", "金額"), *rows], look="bold"))
    assert time.process_time() - start < 10
    assert len(table.rows) == 1_501


def test_names_below_groups_of_some_columns_are_a_header() -> None:
    rows: Values = [
        (None, None, None, "必要個数", "必要個数", "必要個数"),
        ("種類", "備考", "備考", "単価", "基板A", "基板B"),
        ("抵抗", "10k", None, 5, 1, 2),
        ("抵抗", "1k", "薄型", 5, 3, None),
        ("センサ", None, None, 2450, 1, None),
    ]
    (table,) = blocks_of(lambda sheet: write(sheet, rows, lined=True))
    assert table.header_row_count == 2
    assert [row.cells[3] for row in table.rows[:3]] == ["必要個数", "単価", "5"]


def test_names_that_repeat_are_a_header_above_figures() -> None:
    rows: Values = [("全壊", "原単位", "半壊", "原単位"), ("木造", 0.6, "木造", 0.3), ("非木造", 1, "非木造", 0.5)]
    (table,) = blocks_of(lambda sheet: write(sheet, [*rows, ("焼失", 0.2, "浸水", 0.1)], lined=True))
    assert table.header_row_count == 1


def test_titles_above_names_stand_before_the_table() -> None:
    rows: Values = [
        ("保守部品", None, None, None),
        ("価格表", None, None, None),
        ("品名", "販売単位", "価格", "備考"),
        *((f"部品{number}", 1, number * 100, None) for number in range(1, 6)),
    ]
    *titles, table = blocks_of(lambda sheet: write(sheet, rows, lined=True))
    assert [block.text for block in titles] == ["保守部品", "価格表"]
    assert (table.header_row_count, table.rows[0].cells[0], table.section) == (1, "品名", ("保守部品", "価格表"))


@pytest.mark.parametrize(
    "rows",
    [
        [("ねじ", "ねじ", 4, None), ("軸", "V-slot", 1, None), ("板", "FLM", 1, None), ("輪", "B3", 3, None)],
        [
            ("申請額", "申請額", "～", "申請額"),
            ("×", 0, "～", 0),
            ("補助額", "補助額", "～", "補助額"),
            ("〇", 0, "～", 0),
        ],
    ],
)
def test_rows_without_names_have_no_header_below_them(rows: Values) -> None:
    (table,) = blocks_of(lambda sheet: write(sheet, rows, lined=True))
    assert table.header_row_count == 0


@pytest.mark.parametrize(
    "rows",
    [
        [("伝票番号", 12345, None, None), ("顧客", "山田商店", None, None), ("品名", "数量", "単価", "備考")],
        [("作成日", "2024-01-01", None, None), ("品名", "数量", "単価", "備考")],
    ],
)
def test_a_form_above_a_table_stands_by_itself(rows: Values) -> None:
    goods: Values = [("りんご", 1, 100, "青"), ("みかん", 2, 50, None), ("柿", 3, 70, "甘"), ("梨", 4, 90, None)]
    *form, table = blocks_of(lambda sheet: write(sheet, [*rows, *goods], lined=True))
    assert (table.header_row_count, table.rows[0].cells[0], len(table.rows)) == (1, "品名", 5)
    assert all(str(cell) in "\n".join(block.text for block in form) for row in rows[:-1] for cell in row if cell)


@pytest.mark.parametrize(
    "rows",
    [
        [
            ("関東",),
            ("東京", "未定", "田中"),
            ("横浜", 120, "鈴木"),
            ("千葉", 80, "高橋"),
            ("関西",),
            ("大阪", 100, "佐藤"),
        ],
        [("備品台帳",), ("机", "会議室", "未定", "良好"), ("椅子", "応接室", 12, "良好"), ("棚", "倉庫", 3, "傷")] * 2,
        [("基本情報",), ("氏名", "山田", "部署", "営業"), ("電話", "03-12", "内線", 123), ("住所", "東京", "階", 4)],
    ],
)
def test_rows_of_values_below_a_lone_one_are_no_names(rows: Values) -> None:
    width = max(map(len, rows))
    padded = [(*row, *[None] * (width - len(row))) for row in rows]
    blocks = blocks_of(lambda sheet: write(sheet, padded, lined=True))
    assert not any(block.header_row_count for block in blocks)


def test_a_heading_above_the_title_of_a_table_stays_one() -> None:
    def fill(sheet: Worksheet) -> None:
        sheet["A1"] = "受注情報"
        rows: Values = [("項目定義", None, None), ("品名", "数量", "単価")]
        write(sheet, [*rows, *((f"品{number}", number, number * 10) for number in range(1, 6))], top=3, lined=True)

    heading, *_, table = blocks_of(fill)
    assert (heading.kind, heading.text) == (BlockKind.HEADING, "受注情報")
    assert table.section == ("受注情報", "項目定義")


@pytest.mark.parametrize(
    ("rows", "headers"),
    [
        ([("社員", "一覧", "GET"), ("社員", "詳細", "GET"), ("勤怠", "一覧", "PUT")], 0),
        ([("品名", "場所", "個数"), ("りんご", "棚", 10), ("品名", "箱", 20)], 1),
        ([("氏名", "部署", "更新"), ("山田", "営業", "更新"), ("鈴木", "総務", "更新")], 1),
        ([("品目", "産地", "検査"), ("茶", "静岡", "合格"), ("品目", "産地", "検査"), ("米", "新潟", "保留")], 1),
        ([("検索", "数式", "不可"), (None, "数式", "不可")], 0),
        ([("茶葉", "静岡", "合格"), ("茶葉", "静岡", "合格")], 0),
        ([("作業", "社員", "派遣"), ("設計", "社員", None), ("入力", None, "派遣"), ("検査", "社員", "派遣")], 1),
    ],
)
@pytest.mark.parametrize("lined", [False, True])
def test_words_that_stand_in_their_columns_again_are_no_names(rows: Values, headers: int, *, lined: bool) -> None:
    (table,) = blocks_of(lambda sheet: write(sheet, rows, lined=lined))
    assert table.header_row_count == headers


@pytest.mark.parametrize(("bold", "headers"), [((1,), 1), ((1, 3), 0)])
def test_a_row_that_alone_is_bold_names_columns_whose_values_say_the_same(bold: tuple[int, ...], headers: int) -> None:
    def fill(sheet: Worksheet) -> None:
        write(
            sheet,
            [("画面", "操作", "動き"), ("画面", "押す", "開く"), ("帳票", "押す", "出る"), ("画面", "引く", "消す")],
        )
        for row in bold:
            for column in "ABC":
                sheet[f"{column}{row}"].font = Font(bold=True)

    (table,) = blocks_of(fill)
    assert table.header_row_count == headers


def test_two_rows_of_names_in_the_colour_of_sums_below_are_a_header() -> None:
    rows: Values = [
        ("店", "上期", None, "下期", None),
        (None, "売上", "利益", "売上", "利益"),
        *[(name, 1, 2, 3, 4) for name in ("東", "小計", "西", "小計", "北", "小計")],
    ]

    def fill(sheet: Worksheet) -> None:
        write(sheet, rows, lined=True)
        for row in (1, 2, 4, 6, 8):
            for column in "ABCDE":
                sheet[f"{column}{row}"].fill = PatternFill("solid", fgColor="FFBDD7EE")

    (table,) = blocks_of(fill)
    assert table.header_row_count == 2


def test_rows_of_two_colours_by_turns_have_no_header() -> None:
    rows: Values = [
        ("接続先", "本番"),
        ("概要", "登録する"),
        ("通信方式", "暗号化"),
        ("データ形式", "JSON"),
        ("文字", "UTF-8"),
    ]

    def fill(sheet: Worksheet) -> None:
        write(sheet, rows, lined=True)
        for row in range(1, 6):
            sheet[f"A{row}"].fill = PatternFill("solid", fgColor="FFBDD7EE")
            sheet[f"B{row}"].fill = PatternFill("solid", fgColor="FFDEE8F4" if row % 2 else "FFFFFFFF")

    (table,) = blocks_of(fill)
    assert table.header_row_count == 0


def test_bold_row_of_other_columns_that_go_on_below_begins_another_table() -> None:
    def fill(sheet: Worksheet) -> None:
        for row, boxes in enumerate(
            [
                {"A1:B1": "会議名", "C1": "日時", "D1": "場所"},
                {"A2:B2": "第一回", "C2": "六月", "D2": "本社"},
                {"A3:B3": "書き手", "C3:D3": "読み手"},
                {"A4:B4": "山田", "C4:D4": "鈴木"},
            ]
        ):
            for reference, text in boxes.items():
                draw_box(sheet, reference, text)
                sheet[reference.partition(":")[0]].font = Font(bold=row % 2 == 0)

    assert [(block.cell_range, block.header_row_count) for block in blocks_of(fill)] == [("A1:D2", 1), ("A3:D4", 1)]


STATISTICS: Values = [
    (None, None, None, "令和6年", "令和6年", "令和6年", "令和5年"),
    (None, None, None, "人口", "人口", "世帯数", "増減率"),
    (None, None, None, "男", "女", "世帯数", "増減率"),
    ("団体コード", "都道府県名", "市区町村名", "人", "人", "世帯", "％"),
    *((f"{code:06}", "北海道", f"町{code}", 900 + code, 1_041 + code, 1_104 + code, -0.13) for code in range(1, 12)),
]


@pytest.mark.parametrize("lined", [False, True])
def test_all_rows_above_figures_name_their_columns(*, lined: bool) -> None:
    """Groups, columns, their parts and units, of which the last row alone reaches the first columns."""

    def fill(sheet: Worksheet) -> None:
        write(sheet, [("住民基本台帳人口（総計）",)])
        write(sheet, STATISTICS, top=2, lined=lined)

    title, table = blocks_of(fill)
    assert title.text == "住民基本台帳人口（総計）"
    assert (table.header_row_count, len(table.rows)) == (4, 15)
    assert [row.cells[4] for row in table.rows[:5]] == ["令和6年", "人口", "女", "人", "1042"]


def test_a_title_with_its_unit_at_the_right_end_is_no_name_of_columns() -> None:
    rows: Values = [("平成31年人口動態", *[None] * 5, "（単位：人、世帯、％）"), *STATISTICS]
    _, table = blocks_of(lambda sheet: write(sheet, rows))
    assert (table.header_row_count, table.rows[4].cells[:2]) == (4, ("000001", "北海道"))


def test_a_row_of_values_below_the_names_is_no_header() -> None:
    rows: Values = [("区分", "4月", "5月", "6月"), *(("計", number, number, number) for number in range(5, 20))]
    (table,) = blocks_of(lambda sheet: write(sheet, rows, lined=True))
    assert table.header_row_count == 1


@pytest.mark.parametrize("above", [[], [(None, None, "第一案", None, "第二案")]])
def test_words_above_most_columns_of_figures_name_them(above: Values) -> None:
    names = (
        "富裕層",
        "成人",
        "基本",
        "追加",
        "After evasion and depreciation (% of regional income)",
    )
    figures: Values = [("全体", 848, 1.3, 0.7, 2.1), ("上位", 809, 0.6, "-", 0.6), ("中位", 38, 0.9, 0.3, 1.9)]

    (table,) = blocks_of(lambda sheet: write(sheet, [*above, names, *figures, ("下位", 3, 2.0, 0.3, 3.3)]))
    assert table.header_row_count == len(above) + 1
    assert table.rows[len(above)].cells == names


def test_years_at_any_distance_beside_words_name_columns() -> None:
    rows: Values = [("路線", "区", 2005, 1999, 1997, 1994)]
    rows += [(f"{number}号線", "北", *(1_000 * number + year for year in range(4))) for number in range(3, 9)]
    (table,) = blocks_of(lambda sheet: write(sheet, rows))
    assert table.header_row_count == 1


def test_names_of_a_group_of_columns_in_a_colour_of_their_own_are_a_header() -> None:
    def fill(sheet: Worksheet) -> None:
        groups = ("No", "列名", "制約", None, "備考")
        write(sheet, [groups, (None, None, "PK", "FK", None), (1, "id", "○", None, "番号"), (2, "name")], lined=True)
        for area in ("A1:A2", "B1:B2", "C1:D1", "E1:E2"):
            sheet.merge_cells(area)
        for row, colour in ((1, "FFF2CC"), (2, "D9EAD3")):
            for cell in sheet[row]:
                cell.fill = PatternFill("solid", fgColor=colour)

    (table,) = blocks_of(fill)
    assert table.header_row_count == 2
    assert table.rows[1].cells == ("No", "列名", "PK", "FK", "備考")


def test_title_and_name_of_the_first_column_without_a_line_between_are_two_cells() -> None:
    def fill(sheet: Worksheet) -> None:
        draw_box(sheet, "A1:C4", "経路")
        write(sheet, [("網", "領域"), ("10.0.1.0", 0), ("10.0.2.0", 1)], 2, 2, lined=True)
        sheet["A2"] = "ospf 1"

    title, table = blocks_of(fill)
    assert (title.kind, title.text) == (BlockKind.CAPTION, "経路")
    assert [row.cells for row in table.rows[:2]] == [("ospf 1", "網", "領域"), ("ospf 1", "10.0.1.0", "0")]


ORDERS: Values = [
    ("№", "品名", "メーカー", "単価"),
    (None, None, "型番", "小計"),
    (1, "試薬", "山田化学", 100),
    (None, None, "AC-1", 200),
    (2, "試験管", "鈴木硝子", 50),
    (None, None, None, 500),
    (3, "手袋", "佐藤商会", 10),
    (None, None, "G-7", 30),
]
ORDER_ROWS = [
    ("№", "品名", "メーカー", "型番", "単価", "小計"),
    ("1", "試薬", "山田化学", "AC-1", "100", "200"),
    ("2", "試験管", "鈴木硝子", "", "50", "500"),
    ("3", "手袋", "佐藤商会", "G-7", "10", "30"),
]


def _merged_by_two(sheet: Worksheet, rows: Values, *, lined: bool) -> None:
    write(sheet, rows, lined=lined, look="bold")
    for top in range(1, len(ORDERS), 2):
        for column in "AB":
            sheet.merge_cells(f"{column}{top}:{column}{top + 1}")


@pytest.mark.parametrize("lined", [False, True])
def test_a_record_of_several_rows_below_names_of_as_many_is_one_row(*, lined: bool) -> None:
    (table,) = blocks_of(lambda sheet: _merged_by_two(sheet, ORDERS, lined=lined))
    assert (table.header_row_count, [row.cells for row in table.rows]) == (1, ORDER_ROWS)
    assert [row.cell_range for row in table.rows] == ["A1:D2", "A3:D4", "A5:D6", "A7:D8"]
    assert table.text.splitlines()[2] == "2 | 試験管 | 鈴木硝子 |  | 50 | 500"


def test_a_sum_below_records_stands_below_their_amounts() -> None:
    rows = [*ORDERS, ("合計", None, None, 730)]
    (table,) = blocks_of(lambda sheet: _merged_by_two(sheet, rows, lined=True))
    assert [row.cells for row in table.rows] == [*ORDER_ROWS, ("合計", "", "", "", "", "730")]


@pytest.mark.parametrize("below", ["(個)", "2023年度"])
def test_a_group_of_two_rows_below_names_with_units_is_no_record(below: str) -> None:
    rows: Values = [("支店", "品名", "数量", "数量"), (None, None, below, below), *ORDERS[2:]]
    (table,) = blocks_of(lambda sheet: _merged_by_two(sheet, rows, lined=True))
    assert [row.cells[0] for row in table.rows[-2:]] == ["3", "3"]


@pytest.mark.parametrize(
    ("third", "headers"),
    [
        (("対象者", "全社員", "全社員", "経営層", "法務"), 3),
        (("受講者", 120, 35, 8, 2), 1),  # a row of values
    ],
)
def test_names_beside_an_empty_corner_above_a_group_of_all_rows_are_header_rows(
    third: tuple[object, ...], headers: int
) -> None:
    rows = [
        (None, "会社", "甲社", None, "乙社", None),
        (None, "教育", "基礎", "応用", "講演会", "法務教育"),
        (None, *third),
        ("内容", "導入", "はじめに", None, "背景", None),
        (None, "ライセンス", "概論", "演習", None, "条文"),
        (None, "まとめ", "質疑", "質疑", "質疑", "質疑"),
    ]

    def fill(sheet: Worksheet) -> None:
        write(sheet, rows, lined=True)
        for area in ("C1:D1", "E1:F1", "A4:A6"):
            sheet.merge_cells(area)

    (table,) = blocks_of(fill)
    assert (table.header_row_count, table.rows[1].cells[:4]) == (headers, ("", "教育", "基礎", "応用"))
