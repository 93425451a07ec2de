"""What there is no room for is a failure of its sheet, beside what was read; nothing is dropped in silence."""

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType

import pytest
from excel_building import LIMITS, build
from office_building import relations, with_parts
from openpyxl.worksheet.datavalidation import DataValidation
from openpyxl.worksheet.worksheet import Worksheet
from test_excel_extras import connector, drawn_document, shape, sheet_of

from rag_assets.contracts.causes import BlockKind, FailureCause
from rag_assets.contracts.content import ParsedDocument
from rag_assets.parsing.drawings import diagrams as excel_diagrams
from rag_assets.parsing.drawings import drawings as excel_drawings
from rag_assets.parsing.excel import cells as excel_cells
from rag_assets.parsing.excel.reader import parse_excel
from rag_assets.parsing.limits import current_limits, limited

Fill = Callable[[Worksheet], None]
DEEPEST = 240  # the XML of a part may be 256 deep, with what surrounds the groups


def write_formulas(sheet: Worksheet) -> None:
    for row in range(1, 4):
        sheet.cell(row, 1, f"=B{row}")


def write_links(sheet: Worksheet) -> None:
    for row in range(1, 4):
        sheet.cell(row, 1, "手順書").hyperlink = f"https://example.jp/{row}"


def write_long_link(sheet: Worksheet) -> None:
    sheet["A1"] = "手順書"
    sheet["A1"].hyperlink = f"https://example.jp/{'x' * 3_000}"


def write_lists(sheet: Worksheet) -> None:
    sheet["A1"] = "値"
    for row in range(1, 4):
        validation = DataValidation(type="list", formula1=f'"有, 無{row}"')
        validation.add(f"B{row}")
        sheet.add_data_validation(validation)


def left_out(document: ParsedDocument) -> list[str]:
    causes = {failure.cause for failure in document.failures}
    assert causes <= {FailureCause.TOO_LARGE, FailureCause.NOT_CALCULATED}  # openpyxl stores no results
    assert {failure.page_number for failure in document.failures} <= {1}
    assert len(document.pages) == 1
    return [failure.message for failure in document.failures if failure.cause is FailureCause.TOO_LARGE]


@pytest.mark.parametrize(
    ("module", "limit", "fill", "message"),
    [
        (excel_cells, "_MAXIMUM_FORMULAS", write_formulas, "2 formulas left out"),
        (excel_cells, "_FORMULA_CHARS", write_formulas, "3 formulas left out"),
        (excel_cells, "_MAXIMUM_LINKS", write_links, "2 links left out"),
        (excel_cells, "", write_long_link, "1 links left out"),
        (excel_cells, "_MAXIMUM_CHOICES", write_lists, "2 lists of values left out"),
    ],
)
def test_parts_of_a_sheet_that_are_left_out_are_counted(
    monkeypatch: pytest.MonkeyPatch, module: ModuleType, limit: str, fill: Fill, message: str
) -> None:
    if limit:
        assert not left_out(parse_excel(build(fill), LIMITS))
        monkeypatch.setattr(module, limit, 1)
    assert left_out(parse_excel(build(fill), LIMITS)) == [f'sheet "Sheet": {message}']


def test_shapes_over_the_limit_are_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(excel_drawings, "_MAXIMUM_MEMBERS", 2)
    document = drawn_document(*(shape(number, f"箱{number}", (number, 0, 1, 1)) for number in range(4)))
    (message,) = left_out(document)
    assert "more than 2 shapes and connectors" in message
    assert document.pages[0].blocks[0].text == "箱0\n箱1"


def test_groups_nested_too_deep_are_a_failure() -> None:
    def nested(depth: int) -> str:
        return "<xdr:grpSp>" * depth + shape(1, "内", (0, 0, 1, 1)) + "</xdr:grpSp>" * depth

    assert not drawn_document(nested(DEEPEST)).failures
    with limited(replace(current_limits(), nesting_depth=12)):
        assert not drawn_document(nested(12)).failures
        document = drawn_document(shape(2, "外", (0, 0, 1, 1)), nested(13))
    (message,) = left_out(document)
    assert "nested deeper than 12 (parsing.nesting_depth)" in message
    assert document.pages[0].blocks[0].text == "外"


def test_open_ends_of_a_large_drawing_are_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(excel_diagrams, "_GEOMETRY_MEMBERS", 2)
    shapes = (shape(1, "左", (0, 0, 10, 10)), shape(2, "右", (20, 0, 10, 10)))
    (message,) = left_out(drawn_document(*shapes, connector((10, 5, 10, 0))))
    assert "open ends are not joined" in message
    joined = connector((10, 5, 10, 0), '<a:stCxn id="1" idx="0"/><a:endCxn id="2" idx="0"/>')
    assert not drawn_document(*shapes, joined).failures


def test_long_lists_of_values_are_shown_whole() -> None:
    values = [f"値{number}" for number in range(60)]

    def fill(sheet: Worksheet) -> None:
        validation = DataValidation(type="list", formula1=f'"{",".join(values)}"')
        validation.add("A1")
        sheet.add_data_validation(validation)

    (note,) = parse_excel(build(fill), LIMITS).pages[0].blocks
    assert (note.kind, note.text) == (BlockKind.NOTE, f"選択肢: {', '.join(values)}")


def test_link_of_a_long_range_stands_at_its_first_text() -> None:
    def fill(sheet: Worksheet) -> None:
        sheet["B500"], sheet["D900"] = "手順書", "外"
        sheet["D900"].hyperlink = "https://example.jp/manual"
        sheet["D900"].hyperlink.ref = "A1:C900"

    texts = [block.text for block in parse_excel(build(fill), LIMITS).pages[0].blocks]
    assert texts == ["手順書 <https://example.jp/manual>", "外"]


def test_text_longer_than_a_cell_of_excel_is_kept() -> None:
    text = "長" * 40_000
    rows = f'<row r="1"><c r="A1" t="inlineStr"><is><t>{text}</t></is></c></row>'
    (block,) = sheet_of(rows)
    assert block.text == text


@pytest.mark.parametrize("kind", ["drawing", "comments"])
def test_damaged_drawings_and_comments_take_nothing_from_the_cells(kind: str) -> None:
    data = build(lambda sheet: sheet.append(["本文"]))
    parts = {
        "xl/damaged.xml": "<broken",
        "xl/worksheets/_rels/sheet1.xml.rels": relations(("rId1", kind, "../damaged.xml")),
    }
    document = parse_excel(with_parts(data, parts), LIMITS)
    assert [block.text for block in document.pages[0].blocks] == ["本文"]
    ((cause, page_number),) = ((failure.cause, failure.page_number) for failure in document.failures)
    assert (cause, page_number) == (FailureCause.MALFORMED, 1)
