"""Tables of figures as statistics are published: their names stand apart from the figures, and are read with them."""

from collections.abc import Sequence

import pytest
from excel_building import blocks_of, draw_box, write
from openpyxl.styles import Font
from openpyxl.worksheet.worksheet import Worksheet

from rag_assets.contracts.causes import BlockKind
from rag_assets.contracts.content import Block
from rag_assets.parsing.names import Kind, kind_of

PREFECTURES = ("北海道", "青森県", "岩手県", "宮城県", "秋田県", "山形県", "福島県", "茨城県")


def tables(blocks: Sequence[Block]) -> list[Block]:
    return [block for block in blocks if block.kind is BlockKind.TABLE]


def header(block: Block) -> list[tuple[str, ...]]:
    return [row.cells for row in block.rows[: block.header_row_count]]


def body(block: Block) -> list[tuple[str, ...]]:
    return [row.cells for row in block.rows[block.header_row_count :]]


def population(sheet: Worksheet) -> None:
    """Labels in three columns, one without figures beside them, groups of names above names, empty rows between all."""
    sheet["A1"] = "第２表 都道府県、男女別人口－総人口、日本人人口"
    sheet["H3"] = "（単位 千人）"
    sheet["E5"], sheet["H5"] = "総人口", "日本人人口"
    sheet.merge_cells("E5:G5")
    sheet.merge_cells("H5:J5")
    sheet["A7"] = "都道府県"
    write(sheet, [["男女計", "男", "女"] * 2], 8, 5)
    write(sheet, [["全国", None, None, None, 90, 40, 50, 80, 36, 44]], 11)
    for number, name in enumerate(PREFECTURES):
        row = 13 + number + number // 4  # an empty row after each fourth
        write(sheet, [[f"{number + 1:02}", name, None, 1005 + number, 5, 6, 7, 8, 9]], row, 2)
    sheet["B24"] = "注) 人口は推計である。"


def test_figures_far_from_their_names_are_read_with_these() -> None:
    blocks = blocks_of(population)
    [table] = tables(blocks)
    assert header(table) == [
        ("", "", "", "総人口", "総人口", "総人口", "日本人人口", "日本人人口", "日本人人口"),
        ("都道府県", "", "", "男女計", "男", "女", "男女計", "男", "女"),
    ]
    assert body(table)[0] == ("全国", "", "", "90", "40", "50", "80", "36", "44")
    assert [row[:4] for row in body(table)[1:]] == [
        ("全国", f"{number + 1:02}", name, str(1005 + number)) for number, name in enumerate(PREFECTURES)
    ]
    assert table.rows[-1].cell_range == "A21:J21"
    assert table.section == ("（単位 千人）",)
    assert [block.text for block in blocks if block.cell_range == "B24"] == ["注) 人口は推計である。"]
    assert "全国 | 01 | 北海道" not in table.text, "what is written once stands once in the text"


def test_a_year_written_once_holds_for_the_months_below_it() -> None:
    def fill(sheet: Worksheet) -> None:
        write(sheet, [["年月", None, None, "就業者", "失業者"]])
        months = [
            [f"平成{year}年" if month == 1 else None, f"{month}月", None] for year in (6, 7) for month in (1, 2, 3)
        ]
        write(sheet, [[*names, 6400 + row, 190 + row] for row, names in enumerate(months)], 3)

    [table] = tables(blocks_of(fill))
    assert [row[:2] for row in body(table)] == [
        (f"平成{year}年", f"{month}月") for year in (6, 7) for month in (1, 2, 3)
    ]
    assert header(table) == [("年月", "", "就業者", "失業者")]


def test_names_of_groups_in_rows_of_their_own_become_a_column() -> None:
    states = ["Alabama", "Alaska", "Arizona", "Arkansas"]

    def fill(sheet: Worksheet) -> None:
        write(sheet, [[None, None, "2012", "2013"]])
        for top, group in ((4, "CURRENT DOLLARS"), (10, "2013 DOLLARS")):
            write(sheet, [[group], *([state, None, 44.5 + top, 47.3] for state in states)], top)
        write(sheet, [["Total", None, 50.1, 51.2]], 15)

    [table] = tables(blocks_of(fill))
    groups = ("CURRENT DOLLARS", "2013 DOLLARS")
    rows = [row for group in groups for row in (("", group), *((group, state) for state in states))]
    assert [row[:2] for row in body(table)] == [*rows, ("", "Total")]
    assert header(table) == [("", "", "2012", "2013")]


def test_a_name_above_the_middle_of_its_columns_names_them_all() -> None:
    def fill(sheet: Worksheet) -> None:
        sheet["D2"], sheet["G2"] = "自殺者", "自殺死亡率"
        write(sheet, [["西暦", None, *(["総数", "男性", "女性"] * 2)]], 3)
        write(sheet, [[1978 + year, None, 20_788, 12_859, 7_929, 18.1, 22.7, 13.6] for year in range(6)], 5)

    [table] = tables(blocks_of(fill))
    assert header(table) == [
        ("", "自殺者", "自殺者", "自殺者", "自殺死亡率", "自殺死亡率", "自殺死亡率"),
        ("西暦", "総数", "男性", "女性", "総数", "男性", "女性"),
    ]


def test_stacked_tables_keep_their_own_names() -> None:
    def fill(sheet: Worksheet) -> None:
        for top, years in ((1, ["2011年", "2012年"]), (9, ["2013年", "2014年"])):
            write(sheet, [["区分", None, *years]], top)
            write(sheet, [[name, None, 100 + top, 200 + top] for name in ("米", "麦", "豆", "芋")], top + 2)

    one, other = tables(blocks_of(fill))
    assert (header(one), header(other)) == ([("区分", "2011年", "2012年")], [("区分", "2013年", "2014年")])
    assert [row[0] for row in body(other)] == ["米", "麦", "豆", "芋"]


@pytest.mark.parametrize("columns", [3, 30])
def test_a_title_in_two_cells_and_a_unit_name_no_columns(columns: int) -> None:
    def fill(sheet: Worksheet) -> None:
        sheet["C1"], sheet["D1"] = "4-1 国勢調査による人口及び主要", "人口指標の推移（大正9～平成27年）"
        sheet["D2"] = "（単位：人，Km2，歳）"
        write(sheet, [["項目", None, *(f"{year}年" for year in range(1, columns + 1))]], 3)
        write(sheet, [[name, None, *([1000.5] * columns)] for name in PREFECTURES], 5)

    [table] = tables(blocks_of(fill))
    assert header(table) == [("項目", *(f"{year}年" for year in range(1, columns + 1)))]


def test_a_form_with_numbered_rows_is_not_parted() -> None:
    """Figures in some of its rows make no table within another one."""

    def fill(sheet: Worksheet) -> None:
        titles = ["No.", "項目名", "必須", "最小", "最大", "備考"]
        values = [
            ["1", "検索語", "-", "0", "255", ""],
            ["2", "下限", "-", "0", "99", ""],
            ["3", "上限", "-", "1", "99", ""],
        ]
        for number, row in enumerate([titles, *values, *([str(number)] + [""] * 5 for number in range(4, 11))]):
            for column, text in enumerate(row):
                draw_box(sheet, f"{'ABCDEF'[column]}{3 + number}", text or None)

    [table] = tables(blocks_of(fill))
    assert (table.cell_range, table.header_row_count, len(table.rows)) == ("A3:F13", 1, 11)


def test_one_row_of_figures_is_read_with_its_name_and_those_of_its_columns() -> None:
    def fill(sheet: Worksheet) -> None:
        sheet["B4"], sheet["C4"] = "外国人延べ", "国籍"
        sheet.merge_cells("A4:A6")
        sheet.merge_cells("B4:B6")
        sheet.merge_cells("C4:K4")
        write(sheet, [[*PREFECTURES, "その他"]], 5, 3)
        for column in "CDEFGHIJK":
            sheet.merge_cells(f"{column}5:{column}6")
        write(sheet, [["令和8年1月", *(1000 + number**2 for number in range(10))]], 7)
        for column in "CDEFGHIJ":  # lines around all but the name and the last column
            draw_box(sheet, f"{column}5", sheet[f"{column}5"].value)
            draw_box(sheet, f"{column}7", sheet[f"{column}7"].value)

    [table] = tables(blocks_of(fill))
    assert body(table) == [("令和8年1月", *(str(1000 + number**2) for number in range(10)))]
    assert header(table)[-1][2:] == (*PREFECTURES, "その他")


@pytest.mark.parametrize("absent", ["-", "...", "…"])
def test_a_row_without_any_figure_stays_among_those_with_some(absent: str) -> None:
    def fill(sheet: Worksheet) -> None:
        population(sheet)
        write(sheet, [[absent] * 6], 15, 5)

    [table] = tables(blocks_of(fill))
    assert [row[2] for row in body(table)[1:]] == list(PREFECTURES)
    assert body(table)[3] == ("全国", "03", "岩手県", *([absent] * 6))


@pytest.mark.parametrize(
    ("text", "kind"),
    [("<6,601>", Kind.NUMBER), ("(4122)", Kind.NUMBER), ("△3", Kind.NUMBER), ("…", Kind.MARK), ("<人>", Kind.WORDS)],
)
def test_figures_may_be_shown_in_brackets(text: str, kind: Kind) -> None:
    assert kind_of(text) is kind


def test_questions_of_a_survey_are_headings_of_the_tables_below_them() -> None:
    def fill(sheet: Worksheet) -> None:
        for top, question in ((1, "問5　課題と思われていること"), (9, "問6　会の運営について")):
            sheet.cell(top, 1, question)
            sheet.cell(top, 12, "≪複数回答≫").font = Font(bold=True)
            write(sheet, [["区別", "全市", "東灘", "灘"]], top + 1)
            write(sheet, [[name, 90, 40, 50] for name in PREFECTURES[:5]], top + 2)

    one, other = tables(blocks_of(fill))
    assert (one.section, other.section) == (("問5　課題と思われていること",), ("問6　会の運営について",))


def test_figures_without_any_name_stay_as_they_are() -> None:
    [table] = tables(blocks_of(lambda sheet: write(sheet, [[row, 10 + row, 20 + row] for row in range(12)])))
    assert len(table.rows) == 12


def test_an_unnamed_row_below_named_ones_gets_no_name() -> None:
    def fill(sheet: Worksheet) -> None:
        write(sheet, [["区分", None, "2011年", "2012年"]])
        write(sheet, [*([name, None, 100, 200] for name in PREFECTURES), [None, None, 800, 1600]], 3)

    [table] = tables(blocks_of(fill))
    assert body(table)[-1] == ("", "800", "1600")
