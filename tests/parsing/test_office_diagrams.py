import io
from collections.abc import Callable
from typing import Any

import pptx
import pytest
from docx.oxml import parse_xml
from office_building import W, read_docx, saved, shown, zipped
from pptx.chart.data import CategoryChartData, XyChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.enum.shapes import MSO_CONNECTOR, MSO_SHAPE
from pptx.util import Pt

from rag_assets.contracts.causes import BlockKind
from rag_assets.contracts.content import Block
from rag_assets.parsing.archive import Archive
from rag_assets.parsing.drawings.graphics import graphic_blocks
from rag_assets.parsing.office.slides import parse_pptx

DRAWING = "http://schemas.openxmlformats.org/drawingml/2006"
OFFICE = "http://schemas.microsoft.com/office"
SPACES = (
    f"{W} "
    'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math" '
    'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006" '
    f'xmlns:a="{DRAWING}/main" xmlns:wp="{DRAWING}/wordprocessingDrawing" '
    f'xmlns:wps="{OFFICE}/word/2010/wordprocessingShape" xmlns:wpc="{OFFICE}/word/2010/wordprocessingCanvas" '
    f'xmlns:a14="{OFFICE}/drawing/2010/main" xmlns:dgm="{DRAWING}/diagram"'
)
DIAGRAM, PARAGRAPH, TABLE, NOTE = BlockKind.DIAGRAM, BlockKind.PARAGRAPH, BlockKind.TABLE, BlockKind.NOTE
FORMULA = "<m:oMath><m:f><m:num>{}</m:num><m:den>{}</m:den></m:f></m:oMath>".format(
    *(f"<m:r><m:t>{text}</m:t></m:r>" for text in "ab")
)


def xml(markup: str) -> Any:
    return parse_xml(markup.replace(">", f" {SPACES}>", 1) if "/>" not in markup[: markup.index(">") + 1] else markup)


def slide_blocks(build: Callable[[Any], None]) -> list[Block]:
    presentation = pptx.Presentation()
    slide = presentation.slides.add_slide(presentation.slide_layouts[5])
    slide.shapes.title.text = "題"
    build(slide.shapes)
    (page,) = parse_pptx(saved(presentation), 1000, 1 << 26, 10).pages
    return list(page.blocks[1:])


def add_box(shapes: Any, left: float, top: float, text: str) -> Any:
    box = shapes.add_shape(MSO_SHAPE.RECTANGLE, Pt(left), Pt(top), Pt(100), Pt(40))
    box.text_frame.text = text
    return box


def add_text(shapes: Any, left: float, top: float, text: str) -> None:
    shapes.add_textbox(Pt(left), Pt(top), Pt(80), Pt(16)).text_frame.text = text


def join(shapes: Any, start: Any, start_site: int, end: Any, end_site: int, *, head: str = "tailEnd") -> None:
    line = shapes.add_connector(MSO_CONNECTOR.STRAIGHT, 0, 0, 0, 0)
    line.begin_connect(start, start_site)
    line.end_connect(end, end_site)
    if head:
        line.line._get_or_add_ln().append(xml(f'<a:{head} type="triangle"></a:{head}>'))


def test_connectors_of_a_slide_join_shapes_into_a_diagram() -> None:
    def build(shapes: Any) -> None:
        user, server = add_box(shapes, 50, 150, "利用者"), add_box(shapes, 300, 150, "Web\nサーバ")
        group = shapes.add_group_shape().shapes
        database, copy = add_box(group, 300, 300, "DB"), add_box(group, 500, 300, "複製")
        join(shapes, user, 3, server, 1)
        join(shapes, server, 2, database, 0, head="headEnd")
        join(group, database, 3, copy, 1, head="")
        add_text(shapes, 190, 155, "HTTPS")
        add_text(shapes, 50, 450, "注: 概念図")
        add_box(shapes, 500, 450, "孤立")

    diagram, *others = slide_blocks(build)
    assert diagram.kind is DIAGRAM
    assert diagram.text.splitlines()[:4] == ["利用者", "Web サーバ", "DB", "複製"]
    assert set(diagram.text.splitlines()[4:]) == {
        "利用者 → Web サーバ: HTTPS",
        "DB → Web サーバ",
        "DB — 複製",
    }
    assert (diagram.section, diagram.box) == (("題",), (50.0, 150.0, 600.0, 340.0))
    assert shown(others) == [(PARAGRAPH, "注: 概念図"), (PARAGRAPH, "孤立")]


def test_connectors_of_a_slide_join_pictures_by_the_text_below_them() -> None:
    pixel = bytes.fromhex(
        "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d4944415478da636460f85f"
        "0f0002870180eb47ba920000000049454e44ae426082"
    )

    def build(shapes: Any) -> None:
        icons = [shapes.add_picture(io.BytesIO(pixel), Pt(left), Pt(200), Pt(60), Pt(60)) for left in (50, 350)]
        for icon, (left, name) in zip(icons, ((40, "関数"), (340, "保管庫")), strict=True):
            icon._element.nvPicPr.cNvPr.set("descr", "")
            add_text(shapes, left, 262, name)
        join(shapes, icons[0], 3, icons[1], 1)

    assert (DIAGRAM, "関数 → 保管庫") in shown(slide_blocks(build))


def test_charts_are_tables_of_their_values() -> None:
    def chart(shapes: Any, kind: Any, data: Any, top: float) -> Any:
        return shapes.add_chart(kind, Pt(50), Pt(top), Pt(300), Pt(100), data).chart

    def build(shapes: Any) -> None:
        data: Any = CategoryChartData(number_format="0.0%")  # type: ignore[no-untyped-call]
        data.categories = ["東京", "大阪"]
        data.add_series("2023", (0.1, 0.25))
        data.add_series("2024", (0.3, None))
        made = chart(shapes, XL_CHART_TYPE.COLUMN_CLUSTERED, data, 100)
        made.has_title = made.category_axis.has_title = True
        made.chart_title.text_frame.text = "地域別の比率"
        made.category_axis.axis_title.text_frame.text = "地域"
        levels: Any = CategoryChartData()  # type: ignore[no-untyped-call]
        for region, places in (("関東", ("東京", "横浜")), ("関西", ("大阪",))):
            category = levels.add_category(region)
            for place in places:
                category.add_sub_category(place)
        levels.add_series("件数", (1, 2, 3))
        chart(shapes, XL_CHART_TYPE.BAR_CLUSTERED, levels, 250)
        points: Any = XyChartData()  # type: ignore[no-untyped-call]
        series = points.add_series("測定")
        series.add_data_point(1.5, 2)
        series.add_data_point(2, 3.25)
        chart(shapes, XL_CHART_TYPE.XY_SCATTER, points, 400)

    blocks = slide_blocks(build)
    assert shown(blocks) == [
        (DIAGRAM, "地域別の比率\n地域"),
        (TABLE, "地域 | 2023 | 2024\n東京 | 10.0% | 30.0%\n大阪 | 25.0% | "),
        (TABLE, " | 件数\n関東 東京 | 1\n関東 横浜 | 2\n関西 大阪 | 3"),
        (TABLE, " | 測定\n1.5 | 2\n2 | 3.25"),
    ]
    assert [block.header_row_count for block in blocks[1:]] == [1, 1, 1]
    assert blocks[1].box == (50.0, 100.0, 350.0, 200.0)


def test_points_of_smart_art_stand_in_the_order_and_depth_of_their_connections() -> None:
    names = {"0": ("doc", ""), "1": ("node", "計画"), "2": ("node", "実施"), "3": ("node", "要件"), "4": ("pres", "")}
    points = "".join(
        f'<dgm:pt modelId="{name}" type="{kind}"><dgm:t><a:p><a:r><a:t>{text}</a:t></a:r></a:p></dgm:t></dgm:pt>'
        for name, (kind, text) in names.items()
    )
    joined = (("0", "2", 1), ("0", "1", 0), ("1", "3", 0), ("3", "1", 0))  # the last one closes a circle
    connections = "".join(f'<dgm:cxn srcId="{a}" destId="{b}" srcOrd="{order}"/>' for a, b, order in joined)
    part = f"<dgm:dataModel {SPACES}><dgm:ptLst>{points}</dgm:ptLst><dgm:cxnLst>{connections}</dgm:cxnLst>"
    archive = Archive(zipped({"data.xml": f"{part}</dgm:dataModel>"}), 1000, 1 << 26)
    assert shown(graphic_blocks(archive, "data.xml", ())) == [(DIAGRAM, "計画\n  要件\n実施")]


def test_connectors_of_a_drawing_canvas_in_a_document() -> None:
    def shape(number: int, left: int, inside: str, form: str = "rect") -> str:
        place = f'<a:xfrm><a:off x="{left}" y="0"/><a:ext cx="1000000" cy="0"/></a:xfrm><a:prstGeom prst="{form}"/>'
        end = "<a:ln><a:tailEnd type='arrow'/></a:ln>" if form != "rect" else ""
        properties = f"<wps:spPr>{place}{end}</wps:spPr>"
        joins = '<wps:cNvCnPr><a:stCxn id="2" idx="3"/><a:endCxn id="3" idx="1"/></wps:cNvCnPr>' if end else ""
        return f'<wps:wsp><wps:cNvPr id="{number}" name=""/>{joins}{properties}{inside}</wps:wsp>'

    def text(said: str) -> str:
        return f"<wps:txbx><w:txbxContent><w:p><w:r><w:t>{said}</w:t></w:r></w:p></w:txbxContent></wps:txbx>"

    canvas = (
        shape(2, 0, text("受付")) + shape(3, 2_000_000, text("審査")) + shape(4, 1_000_000, "", "straightConnector1")
    )
    drawing = f"<w:drawing><wp:inline><wpc:wpc>{canvas}</wpc:wpc></wp:inline></w:drawing>"
    choice = f"<mc:AlternateContent><mc:Choice Requires='wpc'>{drawing}</mc:Choice></mc:AlternateContent>"
    (page,) = read_docx(lambda document: document.add_paragraph("図")._p.append(xml(f"<w:r>{choice}</w:r>"))).pages
    assert shown(page.blocks) == [
        (PARAGRAPH, "図"),
        (DIAGRAM, "受付"),
        (DIAGRAM, "審査"),
        (DIAGRAM, "受付 → 審査"),
    ]


def test_formulas_of_documents_and_slides_are_read_in_one_line() -> None:
    def into_document(document: Any) -> None:
        paragraph = document.add_paragraph("速度 ")
        paragraph._p.append(xml(FORMULA))
        paragraph.add_run(" は10")
        paragraph.add_run("")
        paragraph.add_run("-3").font.superscript = True

    def into_slide(shapes: Any) -> None:
        box = add_box(shapes, 50, 200, "速度 ")
        choice = f"<mc:Choice Requires='a14'><a14:m>{FORMULA}</a14:m></mc:Choice><mc:Fallback><a:r><a:t>?</a:t></a:r>"
        box.text_frame.paragraphs[0]._p.append(
            xml(f"<mc:AlternateContent>{choice}</mc:Fallback></mc:AlternateContent>")
        )

    assert shown(read_docx(into_document).pages[0].blocks) == [(PARAGRAPH, "速度 a/b は10^-3")]
    assert shown(slide_blocks(into_slide)) == [(PARAGRAPH, "速度 a/b")]


def test_hidden_text_of_documents_is_kept_and_marked() -> None:
    def build(document: Any) -> None:
        paragraph = document.add_paragraph("前")
        for text in ("隠し", "文字"):
            paragraph.add_run(text).font.hidden = True
        paragraph.add_run("後")
        document.add_paragraph().add_run("全部").font.hidden = True
        style = document.styles.add_style("Secret", 1)
        style.font.hidden = True
        document.add_paragraph("様式で", style="Secret").add_run("見える").font.hidden = False
        table = document.add_table(rows=1, cols=2)
        table.cell(0, 0).text = "表"
        table.cell(0, 1).paragraphs[0].add_run("中").font.hidden = True

    assert shown(read_docx(build).pages[0].blocks) == [
        (PARAGRAPH, "前（非表示: 隠し文字）後"),
        (NOTE, "非表示: 全部"),
        (PARAGRAPH, "（非表示: 様式で）見える"),
        (TABLE, "表 | 非表示: 中"),
    ]


def test_struck_text_of_documents_and_slides_is_marked() -> None:
    def into_document(document: Any) -> None:
        paragraph = document.add_paragraph("旧")
        for text in ("価", "格"):
            paragraph.add_run(text).font.strike = True
        paragraph.add_run("新")

    def into_slide(shapes: Any) -> None:
        paragraph = add_box(shapes, 50, 200, "旧").text_frame.paragraphs[0]
        for text in ("価", "格"):
            run = paragraph.add_run()
            run.text = text
            run._r.get_or_add_rPr().set("strike", "sngStrike")

    assert shown(read_docx(into_document).pages[0].blocks) == [(PARAGRAPH, "旧~~価格~~新")]
    assert shown(slide_blocks(into_slide)) == [(PARAGRAPH, "旧~~価格~~")]


def merged_header(table: Any) -> None:
    for start, end, text in (((0, 0), (1, 0), "項目"), ((0, 1), (0, 2), "入力"), ((0, 3), (1, 3), "備考")):
        table.cell(*start).merge(table.cell(*end)).text = text
    for column, text in ((1, "必須"), (2, "桁数")):
        table.cell(1, column).text = text


def marked_header(table: Any) -> None:
    merged_header(table)
    table.rows[0]._tr.get_or_add_trPr().append(xml("<w:tblHeader></w:tblHeader>"))


def form(table: Any) -> None:
    merged_header(table)
    table.cell(1, 1).text = "03-1234"


def bold_rows(*rows: int) -> Callable[[Any], None]:
    def build(table: Any) -> None:
        table._tbl.tblPr.remove(table._tbl.tblPr.find("{*}tblLook"))
        for row in range(4):
            for column in range(1 if row == 0 else 0, 4):
                table.cell(row, column).paragraphs[0].add_run(f"名{row}{column}").bold = row in rows

    return build


def shaded_rows(*rows: int) -> Callable[[Any], None]:
    def build(table: Any) -> None:
        bold_rows()(table)
        for row in rows:
            for cell in table.rows[row].cells:
                cell._tc.get_or_add_tcPr().append(xml('<w:shd w:fill="D9E2F3"></w:shd>'))

    return build


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (merged_header, 2),
        (marked_header, 2),
        (form, 1),  # what stands below the first row is data
        (bold_rows(0), 1),
        (bold_rows(0, 1), 2),
        (bold_rows(0, 1, 2, 3), 0),  # nothing is set off
        (bold_rows(), 0),
        (bold_rows(2), 0),
        (shaded_rows(0, 1), 2),
    ],
)
def test_header_rows_of_word_tables(build: Callable[[Any], None], expected: int) -> None:
    def add(document: Any) -> None:
        table = document.add_table(rows=4, cols=4)
        for row in range(4):
            for column in range(4):
                table.cell(row, column).text = "" if build.__name__ == "build" else f"v{row}{column}"
        build(table)

    (block,) = read_docx(add).pages[0].blocks
    assert block.header_row_count == expected
