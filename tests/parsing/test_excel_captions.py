"""Titles of tables and notes on them: each table has its own, also beside another one."""

import time

import pytest
from excel_building import blocks_of, draw_box, use_graph_paper, write
from openpyxl.styles import Font
from openpyxl.worksheet.worksheet import Worksheet

from rag_assets.contracts.causes import BlockKind
from rag_assets.contracts.content import Block
from rag_assets.parsing.excel.layout.sections import is_unit

SALES = [("月", "東京", "大阪"), ("4月", 10, 20), ("5月", 20, 5)]


def tables(blocks: tuple[Block, ...]) -> list[tuple[str | None, tuple[str, ...]]]:
    return [(block.cell_range, block.section) for block in blocks if block.kind is BlockKind.TABLE]


@pytest.mark.parametrize("lined", [False, True])
@pytest.mark.parametrize("gap", [0, 1])
@pytest.mark.parametrize(("left", "right"), [("売上一覧", "仕入一覧"), ("■売上", "■仕入"), ("表1 売上", "表2 仕入")])
def test_tables_side_by_side_have_their_own_titles(left: str, right: str, gap: int, *, lined: bool) -> None:
    def fill(sheet: Worksheet) -> None:
        sheet["A1"], sheet["E1"] = left, right
        write(sheet, SALES, 2 + gap, lined=lined)
        write(sheet, SALES, 2 + gap, 5, lined=lined)

    blocks = blocks_of(fill)
    assert [block.text for block in blocks if block.kind is BlockKind.HEADING] == [left, right]
    assert tables(blocks) == [(f"A{2 + gap}:C{4 + gap}", (left,)), (f"E{2 + gap}:G{4 + gap}", (right,))]


def test_tables_side_by_side_have_their_own_units_on_graph_paper_too() -> None:
    def fill(sheet: Worksheet) -> None:
        use_graph_paper(sheet)
        for start, title, unit in [("B", "売上", "（単位：千円）"), ("J", "人員", "（単位：人）")]:
            left = ord(start) - 64
            sheet[f"{start}2"], sheet.cell(3, left + 2).value = title, unit
            write(sheet, SALES, 4, left, lined=True)

    assert [section for _, section in tables(blocks_of(fill))] == [("売上 （単位：千円）",), ("人員 （単位：人）",)]


def test_heading_of_a_section_stays_above_tables_side_by_side_below_it() -> None:
    def fill(sheet: Worksheet) -> None:
        sheet["A1"], sheet["E1"] = "2.1 一覧", "【補足】項目"
        write(sheet, SALES, 3, lined=True)
        write(sheet, SALES, 3, 5, lined=True)

    assert [section for _, section in tables(blocks_of(fill))] == [("2.1 一覧",), ("2.1 一覧", "【補足】項目")]


@pytest.mark.parametrize("lined", [False, True])
@pytest.mark.parametrize(("unit", "top"), [("A2", 3), ("C2", 3), ("C2", 4), ("D2", 3)])
def test_title_and_unit_in_rows_of_their_own_are_the_heading(unit: str, top: int, *, lined: bool) -> None:
    def fill(sheet: Worksheet) -> None:
        sheet["A1"], sheet[unit] = "売上一覧", "（単位：千円）"
        write(sheet, SALES, top, lined=lined)

    assert tables(blocks_of(fill)) == [(f"A{top}:C{top + 2}", ("売上一覧 （単位：千円）",))]


@pytest.mark.parametrize("lined", [False, True])
@pytest.mark.parametrize(
    ("lines", "title"),
    [
        (("産業連関表", "就業者係数表"), "産業連関表 就業者係数表"),
        (("別紙12", "償還計画書", "（単位：千円）"), "別紙12 償還計画書 （単位：千円）"),
        (("①勤怠入力",), "①勤怠入力"),
        (("Table 7 Revenues of branches in Tokyo and Osaka",), "Table 7 Revenues of branches in Tokyo and Osaka"),
    ],
)
def test_title_of_several_lines_or_with_a_mark_is_the_heading(
    lines: tuple[str, ...], title: str, *, lined: bool
) -> None:
    def fill(sheet: Worksheet) -> None:
        write(sheet, [(line,) for line in lines])
        write(sheet, SALES, len(lines) + 1, lined=lined)

    assert [section for _, section in tables(blocks_of(fill))] == [(title,)]


@pytest.mark.parametrize("lines", [("日付", "担当"), ("次の表を見る。", "売上")])
def test_lines_right_of_a_table_or_of_a_text_are_no_title(lines: tuple[str, ...]) -> None:
    def fill(sheet: Worksheet) -> None:
        write(sheet, [(line,) for line in lines], 1, 1 if lines[0].endswith("。") else 2)
        write(sheet, SALES, 3, lined=True)

    assert [section for _, section in tables(blocks_of(fill))] == [()]


def test_heading_right_above_another_holds_for_what_follows_both() -> None:
    def fill(sheet: Worksheet) -> None:
        for row, text in [(1, "一般"), (2, "遷移"), (7, "誤り"), (12, "管理"), (13, "遷移")]:
            sheet.cell(row, 1, text).font = Font(bold=True)
        for row in (3, 8, 14):
            write(sheet, SALES, row, lined=True)

    sections = [section for _, section in tables(blocks_of(fill))]
    assert sections == [("一般", "遷移"), ("一般", "誤り"), ("管理", "遷移")]


def test_headings_in_turn_are_a_list() -> None:
    def fill(sheet: Worksheet) -> None:
        for row, text in enumerate(("一般", "管理", "遷移"), 1):
            sheet.cell(row, 1, text).font = Font(bold=True)
        write(sheet, SALES, 5, lined=True)

    assert [section for _, section in tables(blocks_of(fill))] == [("遷移",)]


@pytest.mark.parametrize("lined", [False, True])
@pytest.mark.parametrize("unit", ["A2", "C2"])
@pytest.mark.parametrize("above", [None, "次の表は各支店の売上を示す。"])
def test_unit_alone_above_a_table_belongs_to_it(above: str | None, unit: str, *, lined: bool) -> None:
    def fill(sheet: Worksheet) -> None:
        sheet["A1"], sheet[unit] = above, "(単位:千円)"
        write(sheet, SALES, 3, lined=lined)
        sheet["A9"] = "以上。"

    *_, caption, table, last = blocks_of(fill)
    assert (caption.kind, caption.text, caption.cell_range) == (BlockKind.CAPTION, "(単位:千円)", unit)
    assert (table.section, table.header_row_count) == (("(単位:千円)",), 1)
    assert (last.kind, last.section) == (BlockKind.PARAGRAPH, ())


def test_unit_below_a_numbered_heading_holds_for_its_table_alone() -> None:
    def fill(sheet: Worksheet) -> None:
        sheet["A1"], sheet["C2"], sheet["C7"] = "1. 業績", "（単位：千円）", "（単位：人）"
        sheet["A1"].font = Font(bold=True)
        write(sheet, SALES, 3)
        write(sheet, SALES, 8)

    assert tables(blocks_of(fill)) == [
        ("A3:C5", ("1. 業績", "（単位：千円）")),
        ("A8:C10", ("1. 業績", "（単位：人）")),
    ]


def test_unit_within_the_lines_of_a_table_is_no_name_of_columns() -> None:
    def fill(sheet: Worksheet) -> None:
        draw_box(sheet, "A1:C1", "単位：千円")
        write(sheet, SALES, 2, lined=True)

    assert tables(blocks_of(fill)) == [("A2:C4", ("単位：千円",))]


@pytest.mark.parametrize(
    "title",
    [
        *("表1 権限一覧（単位：千円）", "2023年度 売上一覧（単位：千円）", "図表2-1 売上の推移（単位:人）"),
        *("売上一覧 2024/04/01現在", "第1四半期売上(百万円)", "表1（単位：千円）"),
    ],
)
def test_title_with_a_number_and_a_note_is_no_note(title: str) -> None:
    def fill(sheet: Worksheet) -> None:
        sheet["A1"] = title
        write(sheet, SALES, 2)

    heading, table = blocks_of(fill)
    assert (heading.kind, heading.text, table.section) == (BlockKind.HEADING, title, (title,))


@pytest.mark.parametrize(
    "note", ["2024年度 （単位：千円）", "2024年4月分～6月分（千円）", "令和6年4月1日現在", "2024年4月1日 総務部作成"]
)
def test_note_with_a_number_stands_below_its_title(note: str) -> None:
    def fill(sheet: Worksheet) -> None:
        sheet["A1"], sheet["B2"] = "売上一覧", note
        write(sheet, SALES, 3, lined=True)

    assert tables(blocks_of(fill)) == [("A3:C5", (f"売上一覧 {note}",))]


@pytest.mark.parametrize("text", ["あ （" * 10_000, "（1" * 16_000, "売上\n" * 8_000])
def test_long_text_above_a_table_is_read_in_time(text: str) -> None:
    def fill(sheet: Worksheet) -> None:
        sheet["A1"] = text
        write(sheet, SALES, 2)

    start = time.process_time()
    assert blocks_of(fill)[-1].header_row_count == 1
    assert time.process_time() - start < 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *(
            ("（単位：千円）", True),
            ("単位:％", True),
            ("[unit: 1,000 yen]", True),
            ("(百万円)", True),
            ("（千円、％）", True),
        ),
        *(
            ("in thousands of yen", True),
            ("単位", False),
            ("（内訳）", False),
            ("（2024年）", False),
            ("単価は千円です。", False),
        ),
    ],
)
def test_notes_on_units_are_told_from_other_lines(text: str, *, expected: bool) -> None:
    assert is_unit(text) is expected


def test_short_lines_above_what_begins_right_of_them_are_headings() -> None:
    def fill(sheet: Worksheet) -> None:
        for reference, text in {
            "A1": "用途",
            "B2": "取り消し",
            "C3": "処理をやめると、前の値に戻す。",
            "B5": "一貫性",
            "C6": "途中の値を見せない。",
            "A8": "保存",
            "B9": "期間を設ける。",
            "A11": "以上で終わる。",
        }.items():
            sheet[reference] = text

    sections = [(block.cell_range, block.section) for block in blocks_of(fill) if block.kind is BlockKind.PARAGRAPH]
    assert sections == [("C3", ("用途", "取り消し")), ("C6", ("用途", "一貫性")), ("B9", ("保存",)), ("A11", ())]


@pytest.mark.parametrize(
    ("line", "below"),
    [
        ("次のとおりである。", "B2"),
        ("if (is_ready) {", "B2"),
        ("用途", "A2"),
        ("用途", "G2"),
        ("用途", "B5"),
    ],
)
def test_other_lines_are_no_headings(line: str, below: str) -> None:
    def fill(sheet: Worksheet) -> None:
        sheet["A1"], sheet[below], sheet["A9"] = line, "前の値に戻す。", "2. 体制"

    assert BlockKind.HEADING not in {block.kind for block in blocks_of(fill) if block.text == line}
