"""What stands beside the texts of cells: formulas, links, lists to choose from, drawings; and what sheets are for."""

import time
from pathlib import Path

import openpyxl
import pytest
from excel_building import LIMITS, blocks_of, build
from hypothesis import given
from hypothesis import strategies as st
from office_building import parts_of, relations, saved, with_parts
from openpyxl.cell.rich_text import CellRichText, TextBlock
from openpyxl.cell.text import InlineFont
from openpyxl.chart import BarChart, Reference
from openpyxl.chart.series import SeriesLabel
from openpyxl.formula.translate import Translator
from openpyxl.styles import Font
from openpyxl.worksheet.datavalidation import DataValidation
from openpyxl.worksheet.worksheet import Worksheet

from rag_assets.contracts.causes import BlockKind, FailureCause, PageRole
from rag_assets.contracts.content import Block, Formula, ParsedDocument
from rag_assets.parsing.drawings.diagrams import find_diagrams
from rag_assets.parsing.drawings.drawings import Connector, Drawing, Shape
from rag_assets.parsing.excel.cells import shift
from rag_assets.parsing.excel.reader import parse_excel, sheet_role
from rag_assets.text.cells import Area, format_range

SHEET = "xl/worksheets/sheet1.xml"
MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
DRAWING = (
    '<xdr:wsDr xmlns:xdr="http://schemas.openxmlformats.org/drawingml/2006/spreadsheetDrawing" '
    'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main">{}</xdr:wsDr>'
)
ANCHOR = (
    "<xdr:twoCellAnchor><xdr:from><xdr:col>0</xdr:col><xdr:row>{0}</xdr:row></xdr:from>"
    "<xdr:to><xdr:col>9</xdr:col><xdr:row>{0}</xdr:row></xdr:to>{1}</xdr:twoCellAnchor>"
)
RELATIONS = relations(("rId1", "drawing", "../drawings/drawing1.xml"))
Place = tuple[int, int, int, int]


def leave_empty(sheet: Worksheet) -> None:
    pass


def sheet_of(*rows: str) -> tuple[Block, ...]:
    """Blocks of a sheet given as XML rows."""
    xml = f'<worksheet xmlns="{MAIN}"><sheetData>{"".join(rows)}</sheetData></worksheet>'
    return parse_excel(with_parts(build(leave_empty), {SHEET: xml}), LIMITS).pages[0].blocks


def drawn_document(*elements: str) -> ParsedDocument:
    """A workbook of an empty sheet with a drawing, each element in its own anchor."""
    drawing = DRAWING.format("".join(ANCHOR.format(row, element) for row, element in enumerate(elements)))
    parts = {"xl/drawings/drawing1.xml": drawing, "xl/worksheets/_rels/sheet1.xml.rels": RELATIONS}
    return parse_excel(with_parts(build(leave_empty), parts), LIMITS)


def drawn(*elements: str) -> tuple[Block, ...]:
    """Blocks of an empty sheet with a drawing."""
    return drawn_document(*elements).pages[0].blocks


def transform(place: Place, flips: str = "") -> str:
    x, y, width, height = (value * 100_000 for value in place)
    return f'<a:xfrm{flips}><a:off x="{x}" y="{y}"/><a:ext cx="{width}" cy="{height}"/></a:xfrm>'


def shape(number: int, text: str, place: Place, looks: str = "") -> str:
    return (
        f'<xdr:sp><xdr:nvSpPr><xdr:cNvPr id="{number}" name=""/></xdr:nvSpPr><xdr:spPr>{transform(place)}{looks}'
        f"</xdr:spPr><xdr:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></xdr:txBody></xdr:sp>"
    )


BARE = "<a:noFill/><a:ln><a:noFill/></a:ln>"


def connector(
    place: Place, ends: str = "", heads: str = '<a:tailEnd type="arrow"/>', flips: str = "", form: str = ""
) -> str:
    return (
        f'<xdr:cxnSp><xdr:nvCxnSpPr><xdr:cNvPr id="99" name=""/><xdr:cNvCxnSpPr>{ends}</xdr:cNvCxnSpPr></xdr:nvCxnSpPr>'
        f"<xdr:spPr>{transform(place, flips)}{form}<a:ln>{heads}</a:ln></xdr:spPr></xdr:cxnSp>"
    )


def test_formulas_stand_beside_the_results_that_are_shown() -> None:
    (table,) = sheet_of(
        '<row r="1"><c r="A1"><v>1</v></c><c r="B1"><f t="shared" ref="B1:B2" si="0">A1*2+$A$1</f><v>3</v></c></row>',
        '<row r="2"><c r="A2"><v>2</v></c><c r="B2"><f t="shared" si="0"/><v>5</v></c></row>',
    )
    assert table.text == "1 | 3\n2 | 5"
    assert table.formulas == (Formula("B1", "=A1*2+$A$1"), Formula("B2", "=A2*2+$A$1"))


@pytest.mark.parametrize("value", ["", "<v/>", "<v></v>"])
def test_formula_without_a_result_is_shown_as_such_and_recorded(value: str) -> None:
    xml = f'<worksheet xmlns="{MAIN}"><sheetData><row r="1"><c r="A1"><f>SUM(B1:B9)</f>{value}</c></row></sheetData>'
    document = parse_excel(with_parts(build(leave_empty), {SHEET: f"{xml}</worksheet>"}), LIMITS)
    (block,) = document.pages[0].blocks
    assert (block.text, block.formulas) == ("=SUM(B1:B9)（未計算）", (Formula("A1", "=SUM(B1:B9)"),))
    (failure,) = document.failures
    assert (failure.cause, failure.page_number) == (FailureCause.NOT_CALCULATED, 1)
    assert failure.message == 'sheet "Sheet": 1 formulas without a stored result, the first in A1'


@pytest.mark.parametrize(("to_calculate", "shown"), [("1", "=A1+1（未計算） 3"), ("0", "0 3")])
def test_zero_stored_where_a_workbook_is_to_be_calculated_is_no_result(to_calculate: str, shown: str) -> None:
    cells = '<c r="B1"><f>A1+1</f><v>0</v></c><c r="C1"><f>1+2</f><v>3</v></c>'
    sheet = f'<worksheet xmlns="{MAIN}"><sheetData><row r="1">{cells}</row></sheetData></worksheet>'
    data = build(leave_empty)
    stated = b'fullCalcOnLoad="%b"' % to_calculate.encode()
    book = parts_of(data)["xl/workbook.xml"].replace(b'fullCalcOnLoad="1"', stated)
    (block,) = parse_excel(with_parts(data, {SHEET: sheet, "xl/workbook.xml": book}), LIMITS).pages[0].blocks
    assert block.text == shown


@pytest.mark.parametrize(
    ("formula", "text"),
    [
        ('=HYPERLINK("https://example.jp/a","手順書")', "手順書 <https://example.jp/a>"),
        ('=HYPERLINK("https://example.jp/a")', "https://example.jp/a"),
        ('=HYPERLINK("#一覧!A1", "一覧へ (1,2)")', "一覧へ (1,2)"),
        ('=hyperlink(A1&"/b", "資料")', "資料"),
        ('=HYPERLINK("https://example.jp/a",B1)', '=HYPERLINK("https://example.jp/a",B1)（未計算）'),
        ('=HYPERLINK("a","b")&HYPERLINK("c","d")', '=HYPERLINK("a","b")&HYPERLINK("c","d")（未計算）'),
    ],
)
def test_link_made_by_a_formula_without_a_result_shows_what_it_names(formula: str, text: str) -> None:
    def fill(sheet: Worksheet) -> None:
        sheet["C3"] = formula

    (block,) = blocks_of(fill)
    assert (block.text, block.formulas) == (text, (Formula("C3", formula),))


def test_what_a_merged_range_covers_is_left_out() -> None:
    rows = (
        '<row r="1"><c r="A1" t="str"><v>コード名称</v></c><c r="B1" t="str"><v>顧客</v></c></row>',
        '<row r="2"><c r="A2" t="str"><f>A1</f><v>顧客</v></c><c r="B2"><f>SUM(C1:C9)</f></c></row>',
        '<row r="3" hidden="1"><c r="B3" t="str"><v>顧客</v></c></row>',
        '<row r="4"><c r="A4" t="str"><v>本文</v></c></row>',
    )
    merged = f'<sheetData>{"".join(rows)}</sheetData><mergeCells><mergeCell ref="A1:B3"/></mergeCells>'
    xml = f'<worksheet xmlns="{MAIN}">{merged}</worksheet>'
    document = parse_excel(with_parts(build(leave_empty), {SHEET: xml}), LIMITS)
    assert "".join(block.text for block in document.pages[0].blocks).split() == ["コード名称", "本文"]
    assert not any(block.formulas for block in document.pages[0].blocks)
    assert document.failures == ()


def test_struck_texts_are_marked() -> None:
    (table,) = blocks_of(write_struck)
    assert [row.cells for row in table.rows] == [("項目", "値"), ("~~旧名~~", "~~10~~"), ("新名", "30~~分~~秒")]


def write_struck(sheet: Worksheet) -> None:
    runs = ["30", TextBlock(InlineFont(strike=True), "分"), "秒"]
    for row in (["項目", "値"], ["旧名", 10], ["新名", CellRichText(*runs)]):
        sheet.append(row)
    for cell in sheet[2]:
        cell.font = Font(strike=True)


def test_what_is_printed_around_a_sheet_is_kept_and_not_searched() -> None:
    def fill(sheet: Worksheet) -> None:
        sheet["A1"] = "本文"
        sheet.oddHeader.left.text, sheet.oddHeader.center.text = "社外秘", "R&&D 設計書"
        sheet.oddHeader.right.text = "&D &T"
        sheet.oddFooter.center.text, sheet.oddFooter.center.font = "Page &P / &N", "ＭＳ 明朝,標準"
        sheet.evenHeader.left.text = "社外秘"

    body, *printed = blocks_of(fill)
    assert [(block.kind, block.text) for block in printed] == [
        (BlockKind.HEADER, "社外秘 | R&D 設計書"),
        (BlockKind.HEADER, "社外秘"),
    ]
    assert body.text == "本文"


def test_formula_with_an_empty_result_shows_nothing() -> None:
    assert sheet_of('<row r="1"><c r="A1" t="str"><f>IF(B1="","",B1)</f><v></v></c></row>') == ()


@given(
    st.lists(
        st.sampled_from(
            [
                "A1",
                "$B2",
                "C$3",
                "$D$4",
                "XFD1",
                "LOG10(B2)",
                "(A1)",
                "+",
                '"A1"',
                "'A1 b'!B3",
                "Sheet1!B7",
                "A1:B9",
                "1.5",
            ]
        ),
        min_size=1,
        max_size=8,
    ),
    st.integers(0, 50),
    st.integers(0, 3),
)
def test_shared_formulas_are_shifted_as_openpyxl_does(tokens: list[str], rows: int, columns: int) -> None:
    formula = " ".join(tokens).replace("! ", "!").replace("LOG10( ", "LOG10(B2)")
    if "XFD1" in formula and columns:
        return  # openpyxl names columns that no sheet has
    moved = Translator(f"={formula}", origin="A1").translate_formula(
        format_range(1 + rows, 1 + columns, 1 + rows, 1 + columns)
    )
    assert f"={shift(formula, rows, columns)}" == moved


def test_link_targets_stand_beside_the_text_unless_it_is_the_target() -> None:
    def fill(sheet: Worksheet) -> None:
        for row, (text, target) in enumerate(
            [
                ("手順書", "https://example.jp/manual"),
                ("https://example.jp/", "https://example.jp/"),
                ("宛先 a@example.jp", "mailto:a@example.jp"),
                ("内部", "#Sheet!A1"),
            ]
        ):
            cell = sheet.cell(1 + 3 * row, 1, text)
            cell.hyperlink = target
            cell.style = "Normal"

    texts = [block.text for block in blocks_of(fill)]
    assert texts == ["手順書 <https://example.jp/manual>", "https://example.jp/", "宛先 a@example.jp", "内部"]


def test_lists_to_choose_from_are_notes() -> None:
    workbook = openpyxl.Workbook()
    sheet, lists = workbook["Sheet"], workbook.create_sheet("一覧")
    sheet["A1"] = "値"
    sheet["H1"], sheet["I1"], sheet["I2"] = "状況", "区分", "甲"
    for row in range(14):
        lists.cell(row + 1, 2, f"項目{row}")
    for formula, places in [
        ('"有, 無"', "B2:B9 D4"),
        ("一覧!$B$1:$B$2", "E1"),
        ("一覧!$B$1:$B$14", "F1"),
        ("INDIRECT(A1)", "G1"),
        ('"未着手,完了"', "H3:H9"),
        ('"甲,乙"', "I3:I9"),
    ]:
        validation = DataValidation(type="list", formula1=formula)
        validation.sqref = openpyxl.worksheet.cell_range.MultiCellRange(places)
        sheet.add_data_validation(validation)
    notes = [block for block in parse_excel(saved(workbook), LIMITS).pages[0].blocks if block.kind is BlockKind.NOTE]
    assert [(note.cell_range, note.text) for note in notes] == [
        ("B2:D9", "選択肢（B2:B9, D4）: 有, 無"),
        ("E1", "選択肢: 項目0, 項目1"),
        ("F1", f"選択肢: {', '.join(f'項目{row}' for row in range(12))}, …（一覧!B1:B14）"),
        ("H3:H9", "状況の選択肢: 未着手, 完了"),
        ("I3:I9", "選択肢: 甲, 乙"),  # a value stands above, not a name
    ]


def test_hidden_rows_and_columns_are_kept_and_named() -> None:
    def fill(sheet: Worksheet) -> None:
        for row in range(1, 9):
            sheet.append([f"a{row}", f"b{row}", f"c{row}"])
        for row in (2, 3, 5, 90):
            sheet.row_dimensions[row].hidden = True
        for column in "BZ":
            sheet.column_dimensions[column].hidden = True

    table, note = blocks_of(fill)
    assert "a2 | b2 | c2" in table.text
    assert (note.kind, note.text, note.cell_range) == (BlockKind.NOTE, "非表示: 行 2-3, 5、列 B", "A1:C8")


def test_pictures_are_listed_with_their_alternative_text() -> None:
    picture = '<xdr:pic><xdr:nvPicPr><xdr:cNvPr id="2" name="図 1" descr="{}"/></xdr:nvPicPr></xdr:pic>'
    blocks = drawn(picture.format("構成図"), picture.format(""))
    assert [(block.kind, block.text, block.cell_range) for block in blocks] == [
        (BlockKind.CAPTION, "図: 構成図", "A1:J1"),
    ]


def edges(*elements: str) -> list[str]:
    (diagram,) = drawn(*elements)
    return [line for line in diagram.text.splitlines() if any(sign in line for sign in "→↔—")]


@pytest.mark.parametrize(
    ("place", "flips", "expected"),
    [
        ((10, 5, 10, 0), "", "左 → 右"),
        ((10, 5, 10, 0), ' flipH="1"', "右 → 左"),
        ((11, 5, 8, 0), "", "左 → 右"),
        ((10, 5, 10, 0), ' rot="10800000"', "右 → 左"),
    ],
)
def test_ends_that_the_file_does_not_join_are_joined_by_place(place: Place, flips: str, expected: str) -> None:
    found = edges(shape(1, "左", (0, 0, 10, 10)), shape(2, "右", (20, 0, 10, 10)), connector(place, flips=flips))
    assert found == [expected]


def test_ends_in_the_open_join_nothing() -> None:
    shapes = (shape(1, "左", (0, 0, 10, 10)), shape(2, "右", (20, 0, 10, 10)))
    assert edges(*shapes, connector((14, 5, 2, 0))) == []
    assert edges(*shapes, shape(3, "枠", (-5, -5, 50, 50)), connector((10, 5, 5, 0))) == []


def test_messages_between_lifelines_join_the_participants() -> None:
    line = connector((5, 10, 0, 90), heads="")
    other = connector((45, 10, 0, 90), heads="")
    found = edges(
        shape(1, "利用者", (0, 0, 10, 10)),
        shape(2, "認可サーバ", (40, 0, 10, 10)),
        line,
        other,
        connector((5, 30, 40, 0)),
        shape(3, "アクセストークン要求", (15, 26, 20, 4), BARE),
        connector((5, 60, 40, 0), flips=' flipH="1"'),
        shape(4, "応答", (15, 56, 20, 4), BARE),
    )
    assert found == ["利用者 → 認可サーバ: アクセストークン要求", "認可サーバ → 利用者: 応答"]


BOXES = (shape(1, "左", (0, 0, 10, 20)), shape(2, "右", (40, 0, 10, 20)))
FORTH = '<a:stCxn id="1" idx="3"/><a:endCxn id="2" idx="1"/>'
BACK = '<a:stCxn id="2" idx="1"/><a:endCxn id="1" idx="3"/>'


@pytest.mark.parametrize("reverse", [False, True])
def test_parallel_arrows_have_their_own_labels(*, reverse: bool) -> None:
    """The lower text lies as near to the upper arrow as to its own, whichever the file states first."""
    labels = [shape(3, "要求", (20, 4, 10, 3), BARE), shape(4, "応答", (20, 7, 10, 3), BARE)]
    found = edges(
        *BOXES,
        connector((10, 7, 30, 0), FORTH),
        connector((10, 10, 30, 0), BACK, flips=' flipH="1"'),
        *(labels[::-1] if reverse else labels),
    )
    assert found == ["左 → 右: 要求", "右 → 左: 応答"]


def bent(share: int) -> str:
    return f'<a:prstGeom prst="bentConnector3"><a:avLst><a:gd name="adj1" fmla="val {share}"/></a:avLst></a:prstGeom>'


@pytest.mark.parametrize(("flips", "shares"), [("", (20_000, 80_000)), (' flipH="1"', (80_000, 20_000))])
def test_labels_follow_the_bends_of_connectors(flips: str, shares: tuple[int, int]) -> None:
    """Two arrows with the same ends, of which the first bends near the left box and the second near the right one."""
    ends = BACK if flips else FORTH
    found = edges(
        *BOXES,
        connector((10, 2, 30, 16), ends, form=bent(shares[0]), flips=flips),
        connector((10, 2, 30, 16), ends, form=bent(shares[1]), flips=flips),
        shape(3, "右側", (33, 9, 2, 2), BARE),
        shape(4, "左側", (15, 9, 2, 2), BARE),
    )
    names = "右 → 左" if flips else "左 → 右"
    assert found == [f"{names}: 左側", f"{names}: 右側"]


def test_text_beside_an_upright_connector_is_its_label() -> None:
    found = edges(
        shape(1, "上", (0, 0, 10, 10)),
        shape(2, "下", (0, 40, 10, 10)),
        connector((5, 10, 0, 30)),
        shape(3, "企業コードを渡す", (5, 24, 20, 3), BARE),
        shape(4, "遠い注記", (8, 30, 20, 3), BARE),
    )
    assert found == ["上 → 下: 企業コードを渡す"]


@pytest.mark.parametrize(("flips", "expected"), [("", "左 → 右"), (' flipH="1"', "右 → 左")])
def test_connectors_in_turned_over_groups_run_the_other_way(flips: str, expected: str) -> None:
    frame = '<a:off x="{0}" y="0"/><a:ext cx="3000000" cy="1000000"/>'
    group = (
        f"<xdr:grpSp><xdr:grpSpPr><a:xfrm{flips}>{frame.format(0)}"
        '<a:chOff x="0" y="0"/><a:chExt cx="3000000" cy="1000000"/></a:xfrm></xdr:grpSpPr>'
        f"{connector((10, 5, 10, 0))}</xdr:grpSp>"
    )
    assert edges(shape(1, "左", (0, 0, 10, 10)), shape(2, "右", (20, 0, 10, 10)), group) == [expected]


def test_shapes_without_text_are_named_by_what_stands_on_or_below_them() -> None:
    ends = '<a:stCxn id="1" idx="0"/><a:endCxn id="2" idx="0"/>'
    found = edges(
        shape(1, "", (0, 0, 10, 10)),
        shape(3, "台帳", (2, 2, 4, 4), BARE),
        shape(2, "", (40, 0, 10, 10)),
        shape(4, "帳票", (40, 11, 10, 4), BARE),
        connector((10, 5, 30, 0), ends),
    )
    assert found == ["台帳 → 帳票"]


@pytest.mark.parametrize(
    ("text", "place", "looks", "names_it"),
    [
        ("41AC 請求停止", (42, 4, 12, 5), BARE, True),  # below
        ("顧客情報登録", (44, 0, 12, 4), BARE, True),  # beside
        ("請求照会", (40, -6, 14, 5), BARE, True),  # above
        ("41AD 請求確認", (44, 1, 8, 8), BARE, True),  # around
        ("請求停止", (46, 8, 4, 3), BARE, False),  # in the distance
        ("請求停止", (52, 4, 8, 4), BARE, False),  # not below the middle
        ("入力", (44, 4, 8, 5), "", False),  # another shape
        ("概要", (40, -8, 30, 30), "", False),  # a frame
        ("凡　例", (42, 4, 12, 5), BARE, False),
        ("※1 対象外", (42, 4, 12, 5), BARE, False),
        ("■ 処理の流れ", (42, 4, 12, 5), BARE, False),
        ("処理は夜間に終わる。", (42, 4, 12, 5), BARE, False),
    ],
)
def test_sign_without_text_is_named_by_its_caption_alone(
    text: str, place: Place, looks: str, *, names_it: bool
) -> None:
    ends = '<a:stCxn id="1" idx="0"/><a:endCxn id="2" idx="0"/>'
    boxes = (shape(1, "請求照会画面", (0, 0, 10, 10)), shape(2, "", (46, 0, 4, 4)), shape(3, text, place, looks))
    assert edges(*boxes, connector((10, 2, 36, 0), ends)) == [f"請求照会画面 → {text.replace('　', ' ')}"] * names_it


def test_text_names_one_sign_and_none_where_it_names_another_shape() -> None:
    ends = '<a:stCxn id="{}" idx="0"/><a:endCxn id="{}" idx="0"/>'
    signs = (shape(2, "", (40, 0, 2, 2)), shape(3, "", (40, 9, 2, 2)))
    lines = (connector((10, 1, 30, 0), ends.format(1, 2)), connector((10, 10, 30, 0), ends.format(1, 3)))
    left = shape(1, "左", (0, 0, 10, 12))
    assert edges(left, *signs, shape(4, "終了", (36, 3, 12, 5), BARE), *lines) == ["左 → 終了"]
    frame = (shape(5, "", (30, 2, 30, 20)), connector((10, 12, 20, 0), ends.format(1, 5)))
    assert edges(left, *signs, shape(4, "終了", (31, 3, 20, 5), BARE), *lines, *frame) == ["左 → 終了"]


def test_answer_at_the_sign_for_a_decision_is_no_name_of_it() -> None:
    ends = '<a:stCxn id="{}" idx="0"/><a:endCxn id="{}" idx="0"/>'
    found = edges(
        shape(1, "受付", (0, 0, 10, 10)),
        shape(2, "", (3, 20, 4, 4)),
        shape(3, "いいえ", (2, 25, 8, 4), BARE),
        shape(4, "却下", (0, 34, 10, 10)),
        connector((5, 10, 0, 10), ends.format(1, 2)),
        connector((5, 24, 0, 10), ends.format(2, 4)),
    )
    assert found == []


def test_watermarks_and_frames_are_no_labels() -> None:
    large = shape(7, "SAMPLE", (12, 2, 12, 6), "<a:noFill/>").replace("<a:t>", '<a:rPr sz="9600"/><a:t>')
    found = edges(
        shape(1, "左", (0, 0, 10, 10)),
        shape(2, "右", (30, 0, 10, 10)),
        connector((10, 5, 20, 0)),
        large,
        shape(8, "枠の題", (-5, -5, 60, 20)),
    )
    assert found == ["左 → 右"]


@pytest.mark.parametrize("looks", [BARE, ""])
@pytest.mark.parametrize("place", [(10, 3, 20, 4), (8, 2, 24, 6)])
def test_text_that_covers_its_arrow_and_no_end_of_it_is_its_label(place: Place, looks: str) -> None:
    ends = (shape(1, "左", (0, 0, 10, 10)), shape(2, "右", (30, 0, 10, 10)))
    assert edges(*ends, connector((10, 5, 20, 0)), shape(3, "送信", place, looks)) == ["左 → 右: 送信"]
    assert edges(*ends, connector((10, 5, 20, 0)), shape(3, "枠", (-1, -1, 42, 12), looks)) == ["左 → 右"]


def test_many_diagrams_of_a_drawing_are_found_in_time() -> None:
    """Pairs of shapes far apart, and a chain that joins as many."""
    count = 10_000
    shapes = tuple(Shape(Area(8 * number, 0, 8 * number, 1), str(number), f"箱{number}") for number in range(count))
    pairs = tuple(Connector(str(number), str(number + 1), "→", reverse=False) for number in range(0, count // 2, 2))
    chain = tuple(
        Connector(str(number), str(number + 1), "→", reverse=False) for number in range(count // 2, count - 1)
    )
    start = time.process_time()
    diagrams = find_diagrams(Drawing(shapes, pairs + chain), {})
    assert time.process_time() - start < 3
    assert [len(diagram.edges) for diagram in diagrams] == [1] * (count // 4) + [count // 2 - 1]
    assert diagrams[1].edges == ("箱2 → 箱3",)


def test_large_drawings_are_read_in_time() -> None:
    ends = '<a:stCxn id="{}" idx="0"/><a:endCxn id="{}" idx="0"/>'
    boxes = [shape(number, "" if number % 2 else f"箱{number}", (number, number, 4, 4)) for number in range(3000)]
    lines = [connector((number, 0, 5, 5), ends.format(number, number + 2)) for number in range(2998)]
    start = time.process_time()
    (diagram,) = drawn(*boxes, *lines)
    assert time.process_time() - start < 5
    assert "箱10 → 箱12" in diagram.text


def test_titles_and_series_of_charts_are_read() -> None:
    def fill(sheet: Worksheet) -> None:
        for row in (["月", "売上"], ["4月", 10], ["5月", 20]):
            sheet.append(row)
        chart = BarChart()
        chart.title = "月別の売上"
        chart.add_data(Reference(sheet, min_col=2, min_row=1, max_row=3), titles_from_data=True)
        chart.series[0].tx = SeriesLabel(v="今年度")
        sheet.add_chart(chart, "E5")

    diagram = blocks_of(fill)[-1]
    assert (diagram.kind, diagram.text) == (BlockKind.DIAGRAM, "月別の売上 今年度")


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("表紙", PageRole.COVER),
        ("変更履歴", PageRole.REVISION_HISTORY),
        ("改訂履歴（別紙）", None),
        ("0. 改版履歴", PageRole.REVISION_HISTORY),
        ("Revision History", PageRole.REVISION_HISTORY),
        ("目　次", PageRole.CONTENTS),
        ("1. 概要", None),
    ],
)
def test_roles_are_told_from_names_of_sheets(name: str, role: PageRole | None) -> None:
    assert sheet_role(name, ()) is role


@pytest.mark.parametrize(("sentences", "role"), [(2, PageRole.CONTENTS), (3, None)])
def test_a_table_of_contents_that_explains_more_is_content(sentences: int, role: PageRole | None) -> None:
    blocks = [
        Block(BlockKind.PARAGRAPH, f"第{n}部は、" + "読む順序と、各部を必ず読むべき人とを述べる。" * 3)
        for n in range(sentences)
    ]
    assert sheet_role("目次", blocks) is role


def test_revision_history_is_told_from_its_columns() -> None:
    def fill(sheet: Worksheet) -> None:
        sheet["A1"] = "改訂履歴"
        for row in (["版", "日付", "変更内容"], ["1.0", "2024-04-01", "新規作成"]):
            sheet.append(row)

    assert parse_excel(build(fill), LIMITS).pages[0].role is PageRole.REVISION_HISTORY


def test_sheets_of_the_design_document_have_their_roles() -> None:
    path = Path(__file__).parents[1] / "data" / "excel" / "customer_search_design.xlsx"
    roles = [page.role for page in parse_excel(path.read_bytes(), LIMITS).pages]
    assert roles[:4] == [PageRole.COVER, PageRole.REVISION_HISTORY, PageRole.CONTENTS, None]
