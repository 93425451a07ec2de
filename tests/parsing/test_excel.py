from dataclasses import replace
from io import BytesIO
from pathlib import Path

import openpyxl
import pytest
from excel_building import LIMITS, build, write
from office_building import relations, saved, with_parts, zipped
from openpyxl.worksheet.worksheet import Worksheet
from python_calamine import CalamineWorkbook

from rag_assets.contracts.causes import BlockKind, FailureCause, PageKind
from rag_assets.contracts.content import ParsedDocument
from rag_assets.contracts.errors import ParseError
from rag_assets.parsing.detect import detect_format
from rag_assets.parsing.excel import reader as excel
from rag_assets.parsing.excel.reader import parse_excel, read_values
from rag_assets.parsing.limits import ParsingLimits

DATA = Path(__file__).parents[1] / "data" / "excel"
SHEET = "xl/worksheets/sheet1.xml"
_OPEN_DOCUMENT = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in ("office", "style", "table", "text")
)


def parse(name: str) -> ParsedDocument:
    return parse_excel((DATA / name).read_bytes(), LIMITS)


def with_strings(strings: str, **parts: str) -> bytes:
    """A workbook with a table of shared strings, and parts replaced."""
    listed = relations(("rId1", "worksheet", "worksheets/sheet1.xml"), ("rId2", "sharedStrings", "sharedStrings.xml"))
    added = {"xl/_rels/workbook.xml.rels": listed, "xl/sharedStrings.xml": strings}
    return with_parts(build(one_cell), {**added, **parts})


def one_cell(sheet: Worksheet) -> None:
    sheet["A1"] = "値"


def test_pages_are_sheets_in_order_with_hidden_ones_marked() -> None:
    workbook = openpyxl.Workbook()
    for name, state in [("二", "hidden"), ("三", "veryHidden")]:
        workbook.create_sheet(name).sheet_state = state
    document = parse_excel(saved(workbook), LIMITS)
    assert [(page.number, page.name, page.hidden) for page in document.pages] == [
        (1, "Sheet", False),
        (2, "二", True),
        (3, "三", True),
    ]
    assert {page.kind for page in document.pages} == {PageKind.SHEET}
    assert not any(page.blocks for page in document.pages)


def test_design_document_gives_forms_tables_sections_and_drawings() -> None:
    document = parse("customer_search_design.xlsx")
    assert (document.format, document.title, len(document.pages), document.failures) == ("xlsx", None, 7, ())
    page = document.pages[5]
    tables = [block for block in page.blocks if block.kind is BlockKind.TABLE]
    edits = tables[-1]
    assert edits.cell_range == "E82:AH86"
    assert edits.section == ("2. B010101（顧客検索）", "2.5. 出力データ定義", "2.5.2. 編集仕様")
    assert edits.header_row_count == 2
    assert [row.cells for row in edits.rows][1:3] == [
        ("No.", "項目ID", "項目名", "電文/テーブル名", "項目名", "編集仕様", "備考"),
        ("1", "clientId", "顧客ID", "顧客", "顧客ID", "", ""),
    ]
    condition = next(block for block in tables if block.text.startswith("検索条件"))
    assert "顧客.顧客名 LIKE 顧客名%（入力値） AND 顧客.業種コード = 業種コード（入力値）" in condition.text


def test_running_header_is_searched_once() -> None:
    document = parse("customer_search_design.xlsx")
    headers = [page.blocks[0] for page in document.pages[1:6]]
    assert [header.kind for header in headers] == [BlockKind.TABLE, *[BlockKind.HEADER] * 4]
    assert {header.cell_range for header in headers} == {"A1:AI3"}
    assert headers[0].rows[2].cells[:4] == (
        "サブシステム名",
        "顧客管理システム",
        "成果物名",
        "システム機能設計書(Webサービス)",
    )


def test_connectors_join_the_texts_of_shapes() -> None:
    diagram = parse("flow_chart.xlsx").pages[0].blocks[-1]
    assert (diagram.kind, diagram.cell_range) == (BlockKind.DIAGRAM, "A6:E18")
    assert diagram.text.splitlines() == [
        *("開始", "処理A", "判断", "処理B", "終了"),
        *("開始 → 処理A", "処理A → 判断", "判断 → 処理B", "判断 → 終了", "処理B → 終了"),
    ]


def test_shapes_in_groups_lie_in_their_share_of_the_group() -> None:
    def shape(number: int, text: str, x: int) -> str:
        return (
            f'<xdr:sp><xdr:nvSpPr><xdr:cNvPr id="{number}" name=""/></xdr:nvSpPr><xdr:spPr><a:xfrm>'
            f'<a:off x="{x}" y="0"/><a:ext cx="100" cy="100"/></a:xfrm></xdr:spPr>'
            f"<xdr:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></xdr:txBody></xdr:sp>"
        )

    drawing = (
        '<xdr:wsDr xmlns:xdr="http://schemas.openxmlformats.org/drawingml/2006/spreadsheetDrawing" '
        'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"><xdr:twoCellAnchor>'
        "<xdr:from><xdr:col>1</xdr:col><xdr:row>2</xdr:row></xdr:from>"
        "<xdr:to><xdr:col>4</xdr:col><xdr:row>3</xdr:row></xdr:to><xdr:grpSp><xdr:grpSpPr><a:xfrm>"
        '<a:chOff x="0" y="0"/><a:chExt cx="400" cy="100"/></a:xfrm></xdr:grpSpPr>'
        f"{shape(2, '右', 300)}{shape(1, '左', 0)}</xdr:grpSp></xdr:twoCellAnchor></xdr:wsDr>"
    )
    listed = relations(("rId1", "drawing", "../drawings/drawing1.xml"))
    parts = {"xl/drawings/drawing1.xml": drawing, "xl/worksheets/_rels/sheet1.xml.rels": listed}
    data = with_parts(build(one_cell), parts)
    _, diagram = parse_excel(data, LIMITS).pages[0].blocks
    assert (diagram.text, diagram.cell_range) == ("左\n右", "B3:E4")


def test_old_format_is_read() -> None:
    document = parse("legacy_sample.xls")
    heading, table = document.pages[0].blocks
    assert document.format == "xls"
    assert (table.cell_range, table.header_row_count) == ("B4:C10", 1)
    assert table.rows[1].cells == ("2019", "120")
    assert table.section == (heading.text,) == ("Number of freshwater ducks per year",)


def open_document(content: str) -> bytes:
    return zipped(
        {
            "mimetype": "application/vnd.oasis.opendocument.spreadsheet",
            "META-INF/manifest.xml": '<manifest:manifest xmlns:manifest="urn:oasis"/>',
            "content.xml": content,
        }
    )


def test_open_document_spreadsheet_is_read() -> None:
    content = (
        f"<office:document-content {_OPEN_DOCUMENT}><office:body><office:spreadsheet>"
        '<table:table table:name="一覧"><table:table-row><table:table-cell office:value-type="string">'
        "<text:p>項目</text:p></table:table-cell></table:table-row></table:table>"
        "</office:spreadsheet></office:body></office:document-content>"
    )
    data = open_document(content)
    assert detect_format(data, "a").name == "ods"
    (page,) = parse_excel(data, LIMITS).pages
    assert (page.name, page.blocks[0].text) == ("一覧", "項目")


def test_hidden_sheets_of_other_formats_are_marked() -> None:
    sheet = (
        '<table:table table:name="{0}" table:style-name="{1}"><table:table-row><table:table-cell '
        'office:value-type="string"><text:p>{0}</text:p></table:table-cell></table:table-row></table:table>'
    )
    style = (
        '<style:style style:name="{}" style:family="table"><style:table-properties table:display="{}"/></style:style>'
    )
    content = (
        f"<office:document-content {_OPEN_DOCUMENT}><office:automatic-styles>{style.format('on', 'true')}"
        f"{style.format('off', 'false')}</office:automatic-styles><office:body><office:spreadsheet>"
        f"{sheet.format('表', 'on')}{sheet.format('裏', 'off')}</office:spreadsheet></office:body>"
        "</office:document-content>"
    )
    pages = parse_excel(open_document(content), LIMITS).pages
    assert [(page.name, page.hidden) for page in pages] == [("表", False), ("裏", True)]


def test_cells_and_merged_ranges_of_values_stand_where_they_are_in_the_sheet() -> None:
    def fill(sheet: Worksheet) -> None:
        write(sheet, [["題", "表題"], ["甲", "乙"]], top=4, left=2)
        sheet.merge_cells("B4:C4")

    cells = read_values(CalamineWorkbook.from_filelike(BytesIO(build(fill))), 0, 100)
    assert cells.texts == {3: {1: "題"}, 4: {1: "甲", 2: "乙"}}
    assert [area.label for area in cells.merges] == ["B4:C4"]


def test_panic_of_the_reader_of_old_formats_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    class PanicException(BaseException):
        pass

    def fail(data: bytes) -> None:
        raise PanicException("range start index 116 out of range")

    monkeypatch.setattr(excel, "open_values", fail)
    with pytest.raises(ParseError, match="its reader failed: range start") as caught:
        parse("legacy_sample.xls")
    assert caught.value.cause is FailureCause.MALFORMED


def test_default_password_opens() -> None:
    assert parse("default_password.xls").pages[0].blocks[0].text == "test cell value"


def test_password_is_asked_for() -> None:
    with pytest.raises(ParseError, match="a password is needed") as caught:
        parse("password.xlsx")
    assert caught.value.cause is FailureCause.ENCRYPTED


def test_comments_are_notes() -> None:
    notes = [block for block in parse("comments.xlsx").pages[0].blocks if block.kind is BlockKind.NOTE]
    assert [(note.cell_range, note.text.splitlines()[0]) for note in notes] == [("E5", "Sheet TS: Test3")]


def test_phonetic_guides_and_escapes_stay_out_of_texts() -> None:
    strings = (
        '<sst xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><si><r><t>顧客</t></r><r><t>名</t></r>'
        '<rPh sb="0" eb="2"><t>コキャク</t></rPh></si><si><t>一_x000D_\n二&#9;三</t></si></sst>'
    )
    sheet = (
        '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData><row r="1">'
        '<c r="A1" t="s"><v>0</v></c></row><row r="3"><c r="A3" t="s"><v>1</v></c></row></sheetData></worksheet>'
    )
    document = parse_excel(with_strings(strings, **{SHEET: sheet}), LIMITS)
    assert [block.text for block in document.pages[0].blocks] == ["顧客名", "一\n二\t三"]


@pytest.mark.parametrize(
    ("title", "kept"),
    [
        ("顧客管理 設計書", "顧客管理 設計書"),
        ("見積書", "見積書"),
        ("Excel 入門", "Excel 入門"),
        ("見積書.xlsx", None),
        ("Sheet1", None),
        ("sheet 2", None),
        ("Workbook", None),
        ("Microsoft Excel", None),
        ("2024/05", None),
        (" ", None),
    ],
)
def test_title_is_taken_only_where_a_person_wrote_one(title: str, kept: str | None) -> None:
    workbook = openpyxl.Workbook()
    workbook.properties.title = title
    assert parse_excel(saved(workbook), LIMITS).title == kept


def test_one_damaged_sheet_is_a_failure_of_its_page() -> None:
    workbook = openpyxl.Workbook()
    workbook.create_sheet("good")["A1"] = "値"
    document = parse_excel(with_parts(saved(workbook), {SHEET: "<worksheet><sheetData>"}), LIMITS)
    assert [(page.name, bool(page.blocks)) for page in document.pages] == [("Sheet", False), ("good", True)]
    (failure,) = document.failures
    assert (failure.cause, failure.page_number) == (FailureCause.MALFORMED, 1)
    assert failure.message.startswith('sheet "Sheet": ')


@pytest.mark.parametrize(
    "limits",
    [
        replace(LIMITS, cells=2),
        replace(LIMITS, expanded_bytes=500),
        replace(LIMITS, archive_entries=3),
        replace(LIMITS, pages=0),
    ],
)
def test_limits_are_kept(limits: ParsingLimits) -> None:
    def fill(sheet: Worksheet) -> None:
        sheet.append([1, 2, 3])

    with pytest.raises(ParseError) as caught:
        parse_excel(build(fill), limits)
    assert caught.value.cause is FailureCause.TOO_LARGE


def test_bomb_is_refused_before_it_expands() -> None:
    data = with_parts(build(one_cell), {"xl/bomb.xml": b" " * (100 << 20)})
    with pytest.raises(ParseError, match="bytes expand to") as caught:
        parse_excel(data, LIMITS)
    assert caught.value.cause is FailureCause.TOO_LARGE


@pytest.mark.parametrize("part", [SHEET, "xl/sharedStrings.xml", "xl/workbook.xml"])
def test_entities_are_refused(part: str) -> None:
    bomb = '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b SYSTEM "file:///etc/passwd">]><x>&a;&b;</x>'
    with pytest.raises(ParseError) as caught:
        parse_excel(with_strings(**{"strings": "<sst/>", part: bomb}), LIMITS)
    assert caught.value.cause is FailureCause.MALFORMED


def test_external_references_are_not_followed() -> None:
    address = "http://127.0.0.1:9/drawing.xml"
    listed = relations(("rId1", "drawing", address), ("rId2", "drawing", "../../../../etc/passwd"))
    listed = listed.replace(f'"{address}"', f'"{address}" TargetMode="External"')
    document = parse_excel(with_parts(build(one_cell), {"xl/worksheets/_rels/sheet1.xml.rels": listed}), LIMITS)
    assert [block.text for block in document.pages[0].blocks] == ["値"]


@pytest.mark.parametrize(
    ("data", "cause"),
    [
        (b"", FailureCause.MALFORMED),
        (b"no workbook", FailureCause.MALFORMED),
        (b"PK\x03\x04 broken", FailureCause.MALFORMED),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1 broken", FailureCause.MALFORMED),
        (zipped({"word/document.xml": "<x/>"}), FailureCause.UNSUPPORTED_FORMAT),
        (zipped({"xl/workbook.xml": "<x/>"}), FailureCause.UNSUPPORTED_FORMAT),
    ],
)
def test_what_is_no_workbook_is_refused(data: bytes, cause: FailureCause) -> None:
    with pytest.raises(ParseError) as caught:
        parse_excel(data, LIMITS)
    assert caught.value.cause is cause
