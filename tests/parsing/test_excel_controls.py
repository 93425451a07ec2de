"""Check boxes and option buttons stand with their state in the cells that they lie on."""

import pytest
from excel_building import LIMITS, build
from office_building import RELATIONSHIPS, relations, with_parts
from openpyxl.worksheet.worksheet import Worksheet

from rag_assets.contracts.causes import FailureCause
from rag_assets.contracts.content import ParsedDocument
from rag_assets.parsing.excel.reader import parse_excel

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
FORM = '<formControlPr xmlns="http://schemas.microsoft.com/office/spreadsheetml/2009/9/main" objectType="{}"{}/>'
ACTIVE = (
    '<ax:ocx xmlns:ax="http://schemas.microsoft.com/office/2006/activeX" '
    'ax:classid="{{8BD21D{}0-EC42-11CE-9E0D-00AA006002F3}}" ax:persistence="persistPropertyBag">'
    '<ax:ocxPr ax:name="Value" ax:value="{}"/><ax:ocxPr ax:name="Caption" ax:value="{}"/></ax:ocx>'
)
LEGACY = (
    '<xml xmlns:v="urn:schemas-microsoft-com:vml" xmlns:o="urn:schemas-microsoft-com:office:office" '
    'xmlns:x="urn:schemas-microsoft-com:office:excel">{}</xml>'
)
CELLS = {"A1": "区分", "A3": "備考"}
STATED = ' checked="Checked"'


def legacy(number: int, form: str, text: str, anchor: str, state: str = "") -> str:
    """A control in the older drawing, with a text that is no XML."""
    checked = f"<x:Checked>{state}</x:Checked>" if state else ""
    return (
        f'<v:shape id="_x0000_s{number}"><v:textbox><div>{text}<br></div></v:textbox>'
        f'<x:ClientData ObjectType="{form}"><x:Anchor>{anchor}</x:Anchor>{checked}</x:ClientData></v:shape>'
    )


def drawn(number: int, text: str) -> str:
    """A control in the newer drawing, on B1."""
    return (
        "<xdr:twoCellAnchor><xdr:from><xdr:col>1</xdr:col><xdr:row>0</xdr:row></xdr:from>"
        "<xdr:to><xdr:col>1</xdr:col><xdr:row>0</xdr:row></xdr:to><xdr:sp><xdr:nvSpPr>"
        f'<xdr:cNvPr id="{number}" name="" hidden="1"><a:extLst><a:ext><a14:compatExt spid="_x0000_s{number}"/></a:ext>'
        "</a:extLst></xdr:cNvPr></xdr:nvSpPr><xdr:spPr/>"
        f"<xdr:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></xdr:txBody></xdr:sp></xdr:twoCellAnchor>"
    )


def parse(properties: dict[int, str], old: str = "", new: str = "") -> ParsedDocument:
    """A sheet with some texts and controls: properties by their numbers, the older and the newer drawing."""

    def fill(sheet: Worksheet) -> None:
        for cell, text in CELLS.items():
            sheet[cell] = text

    rows = "".join(
        f'<row r="{cell[1:]}"><c r="{cell}" t="inlineStr"><is><t>{text}</t></is></c></row>'
        for cell, text in CELLS.items()
    )
    references = "".join(f'<control shapeId="{number}" r:id="c{number}"/>' for number in properties)
    sheet = f'<worksheet xmlns="{MAIN}" xmlns:r="{RELATIONSHIPS}"><sheetData>{rows}</sheetData>'
    listed = [("r1", "vmlDrawing", "../drawings/vmlDrawing1.vml")] if old else []
    listed += [("r2", "drawing", "../drawings/drawing1.xml")] if new else []
    parts = {
        "xl/worksheets/sheet1.xml": f"{sheet}<controls>{references}</controls></worksheet>",
        "xl/drawings/vmlDrawing1.vml": LEGACY.format(old),
    }
    parts["xl/drawings/drawing1.xml"] = (
        '<xdr:wsDr xmlns:xdr="http://schemas.openxmlformats.org/drawingml/2006/spreadsheetDrawing" '
        'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" '
        f'xmlns:a14="http://schemas.microsoft.com/office/drawing/2010/main">{new}</xdr:wsDr>'
    )
    for number, content in properties.items():
        kind = "control" if "ocx" in content else "ctrlProp"
        listed.append((f"c{number}", kind, f"../ctrlProps/{number}.xml"))
        parts[f"xl/ctrlProps/{number}.xml"] = content
    parts["xl/worksheets/_rels/sheet1.xml.rels"] = relations(*listed)
    return parse_excel(with_parts(build(fill), parts), LIMITS)


def texts(document: ParsedDocument) -> list[str]:
    assert not document.failures
    return [line for block in document.pages[0].blocks for line in block.text.splitlines()]


@pytest.mark.parametrize(
    ("form", "stated", "shown"),
    [
        ("CheckBox", STATED, "☑ 入力"),
        ("CheckBox", "", "☐ 入力"),
        ("CheckBox", ' checked="Mixed"', "☐ 入力"),
        ("Radio", STATED, "◉ 入力"),
        ("Radio", "", "○ 入力"),
    ],
)
def test_properties_tell_the_state(form: str, stated: str, shown: str) -> None:
    document = parse(
        {1025: FORM.format(form, stated)}, legacy(1025, "Checkbox", "x", "1,0,0,0,1,9,0,9"), drawn(1025, "入力")
    )
    assert texts(document) == [f"区分 {shown}", "備考"]


def test_old_workbooks_state_all_in_the_older_drawing() -> None:
    controls = [
        legacy(1025, "Checkbox", "入力", "1, 5, 0, 1, 1, 30, 0, 15", "1"),
        legacy(1026, "Radio", "出力", "1, 40, 0, 1, 2, 10, 0, 15"),
        legacy(1027, "Button", "実行", "1, 0, 5, 0, 2, 0, 6, 0"),
        legacy(1028, "Note", "注釈", "1, 0, 5, 0, 2, 0, 6, 0"),
    ]
    assert texts(parse({}, "".join(controls))) == ["区分 ☑ 入力 ○ 出力", "備考"]


@pytest.mark.parametrize(
    ("anchor", "shown"),
    [
        ("1, 5, 2, 0, 1, 30, 3, 0", ["区分", "備考 ☑ 可"]),
        ("0, 60, 2, 0, 1, 30, 2, 17", ["区分", "備考 ☑ 可"]),
        ("0, 3, 1, 16, 1, 30, 2, 16", ["区分", "備考 ☑ 可"]),
        ("0, 3, 0, 16, 1, 30, 2, 2", ["区分", "☑ 可", "備考"]),
    ],
)
def test_control_stands_in_the_cell_under_its_box(anchor: str, shown: list[str]) -> None:
    assert texts(parse({}, legacy(1025, "Checkbox", "可", anchor, "1"))) == shown


def test_control_without_a_text_marks_the_cell() -> None:
    assert texts(parse({}, legacy(1025, "Checkbox", "", "0, 2, 2, 0, 0, 14, 3, 0", "1"))) == ["区分", "☑ 備考"]


def test_covered_control_is_not_shown() -> None:
    place = "1, 5, 2, 0, 1, 30, 3, 0"
    below, above = legacy(1025, "Checkbox", "可", place), legacy(1026, "Checkbox", "可", place, "1")
    assert texts(parse({}, below + above)) == ["区分", "備考 ☑ 可"]


@pytest.mark.parametrize(
    ("kind", "value", "shown"), [("4", "1", "☑"), ("4", "0", "☐"), ("5", "1", "◉"), ("5", "0", "○")]
)
def test_active_x_controls_are_read_where_they_are_xml(kind: str, value: str, shown: str) -> None:
    document = parse({1025: ACTIVE.format(kind, value, "可")}, legacy(1025, "Pict", "", "1, 5, 2, 0, 1, 30, 3, 0"))
    assert texts(document) == ["区分", f"備考 {shown} 可"]


def test_damaged_properties_cost_themselves_only() -> None:
    document = parse({1025: "<formControlPr"}, legacy(1025, "Checkbox", "可", "1, 5, 2, 0, 1, 30, 3, 0", "1"))
    (failure,) = document.failures
    assert (failure.cause, failure.page_number) == (FailureCause.MALFORMED, 1)
    assert [block.text for block in document.pages[0].blocks] == ["区分", "備考 ☑ 可"]
