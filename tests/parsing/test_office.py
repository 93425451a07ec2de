import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import docx
import pptx
import pytest
from docx.enum.text import WD_BREAK
from docx.oxml import parse_xml
from golden import LIMITS
from office_building import RELATIONSHIPS, W, parts_of, read_docx, saved, shown, with_parts, zipped
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.util import Pt

from rag_assets.contracts.causes import BlockKind, FailureCause, PageKind
from rag_assets.contracts.errors import ParseError
from rag_assets.parsing.archive import Archive
from rag_assets.parsing.limits import limited
from rag_assets.parsing.markup.markdown import parse_markdown
from rag_assets.parsing.markup.reader import parse_html
from rag_assets.parsing.office.slides import parse_pptx
from rag_assets.parsing.office.styles import format_number
from rag_assets.parsing.office.word import parse_docx

HEADING, PARAGRAPH, LIST_ITEM = BlockKind.HEADING, BlockKind.PARAGRAPH, BlockKind.LIST_ITEM


def test_docx_headings_lists_and_sections() -> None:
    def build(document: Any) -> None:
        document.core_properties.title = "受注管理 基本設計書"
        document.add_heading("概要", 1)
        document.add_paragraph("本文です。")
        document.add_heading("目的", 2)
        document.add_paragraph("項目", style="List Bullet")
        document.add_heading("範囲", 1)
        document.add_paragraph("図1 構成", style="Caption")

    document = read_docx(build)
    (page,) = document.pages
    assert (document.title, page.kind) == ("受注管理 基本設計書", PageKind.BODY)
    assert [(block.kind, block.text, block.section) for block in page.blocks] == [
        (HEADING, "概要", ()),
        (PARAGRAPH, "本文です。", ("概要",)),
        (HEADING, "目的", ("概要",)),
        (LIST_ITEM, "項目", ("概要", "目的")),
        (HEADING, "範囲", ()),
        (BlockKind.CAPTION, "図1 構成", ("範囲",)),
    ]


def test_docx_chapters_of_rules_without_styles_are_headings() -> None:
    lines = [
        "就業規則",
        "第１章 総則",
        "（目的）",
        "第１条 この規則は、労働条件を定める。",
        "第2章　休暇",
        "第5条（年次休暇）",
        "14日とする。（注）",
    ]

    def build(document: Any) -> None:
        for line in lines:
            document.add_paragraph(line)

    blocks = read_docx(build).pages[0].blocks
    assert [block.text for block in blocks if block.kind is BlockKind.HEADING] == [
        "第１章 総則",
        "（目的）",
        "第2章 休暇",
        "第5条（年次休暇）",
    ]
    assert blocks[3].section == ("第１章 総則", "（目的）")
    assert blocks[-1].section == ("第2章 休暇", "第5条（年次休暇）")


def test_docx_with_styled_headings_has_no_others() -> None:
    def build(document: Any) -> None:
        document.add_heading("規則", 1)
        document.add_paragraph("第１章 総則")

    assert [block.kind for block in read_docx(build).pages[0].blocks] == [BlockKind.HEADING, BlockKind.PARAGRAPH]


def test_docx_tables_with_spans() -> None:
    def build(document: Any) -> None:
        table = document.add_table(rows=3, cols=3)
        for index, name in enumerate(("項目", "型", "説明")):
            table.cell(0, index).text = name
        table.cell(1, 0).merge(table.cell(2, 0)).text = "共通"
        table.cell(1, 1).merge(table.cell(1, 2)).text = "文字列"
        table.cell(2, 1).text = "数値"
        nested = table.cell(2, 2).add_table(rows=1, cols=2)
        nested.cell(0, 0).text, nested.cell(0, 1).text = "内", "側"

    (block,) = read_docx(build).pages[0].blocks
    assert [row.cells for row in block.rows] == [
        ("項目", "型", "説明"),
        ("共通", "文字列", "文字列"),
        ("共通", "数値", "内 側"),
    ]
    assert block.header_row_count == 1
    assert block.text == "項目 | 型 | 説明\n共通 | 文字列 | 文字列\n共通 | 数値 | 内 側"


def test_docx_pages_follow_breaks() -> None:
    def build(document: Any) -> None:
        document.add_paragraph("first")
        document.add_paragraph().add_run().add_break(WD_BREAK.PAGE)
        document.add_paragraph("second")

    pages = read_docx(build).pages
    assert [(page.number, page.kind, page.blocks[0].text) for page in pages] == [
        (1, PageKind.PAGE, "first"),
        (2, PageKind.PAGE, "second"),
    ]


def test_docx_text_that_hides() -> None:
    def build(document: Any) -> None:
        document.sections[0].header.paragraphs[0].text = "社外秘"
        paragraph = document.add_paragraph("本文")
        document.add_comment(paragraph.runs, text="確認すること", author="a")
        box = "<w:txbxContent><w:p><w:r><w:t>枠の中</w:t></w:r></w:p></w:txbxContent>"
        ruby = "<w:rt><w:r><w:t>よみ</w:t></w:r></w:rt><w:rubyBase><w:r><w:t>漢字</w:t></w:r></w:rubyBase>"
        for xml in (
            f'<w:r {W}><w:pict><v:shape xmlns:v="urn:schemas-microsoft-com:vml">{box}</v:shape></w:pict></w:r>',
            f"<w:del {W}><w:r><w:delText>消した</w:delText></w:r></w:del>",
            f"<w:ins {W}><w:r><w:t>足した</w:t></w:r></w:ins>",
            f"<w:r {W}><w:ruby>{ruby}</w:ruby></w:r>",
        ):
            paragraph._p.append(parse_xml(xml))
        document.element.body.insert(
            0, parse_xml(f"<w:sdt {W}><w:sdtContent><w:p><w:r><w:t>部品</w:t></w:r></w:p></w:sdtContent></w:sdt>")
        )

    assert shown(read_docx(build).pages[0].blocks) == [
        (BlockKind.HEADER, "社外秘"),
        (PARAGRAPH, "部品"),
        (PARAGRAPH, "本文足した漢字"),
        (PARAGRAPH, "よみ"),
        (BlockKind.DIAGRAM, "枠の中"),
        (BlockKind.NOTE, "確認すること"),
    ]


def test_docx_tracked_changes_are_read_as_accepted() -> None:
    run = "<w:r><w:t>{}</w:t></w:r>"
    row = "<w:tr><w:trPr><w:{}/></w:trPr><w:tc><w:p>{}</w:p></w:tc><w:tc><w:p/></w:tc></w:tr>"

    def build(document: Any) -> None:
        for xml in (
            f"<w:p><w:moveFrom>{run.format('前の所')}</w:moveFrom><w:moveTo>{run.format('後の所')}</w:moveTo></w:p>",
            f"<w:p><w:pPr><w:rPr><w:del/></w:rPr></w:pPr>{run.format('前半')}</w:p>",
            f"<w:p>{run.format('後半')}</w:p>",
            f"<w:tbl>{row.format('del', run.format('消した行'))}{row.format('ins', run.format('足した行'))}</w:tbl>",
            f"<w:p><w:pPr><w:rPr><w:del/></w:rPr></w:pPr>{run.format('終わり')}</w:p>",
        ):
            document.element.body.append(parse_xml(xml.replace(">", f" {W}>", 1)))

    texts = [text for _, text in shown(read_docx(build).pages[0].blocks)]
    assert texts == ["後の所", "前半後半", "足した行", "終わり"]


def test_docx_header_boxes_are_read_once() -> None:
    box = f"<w:txbxContent {W}><w:p><w:r><w:t>社外秘</w:t></w:r></w:p></w:txbxContent>"
    namespace = 'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'

    def build(document: Any) -> None:
        xml = f"<mc:Choice Requires='wps'>{box}</mc:Choice><mc:Fallback>{box}</mc:Fallback>"
        content = f"<w:r {W}><mc:AlternateContent {namespace}>{xml}</mc:AlternateContent></w:r>"
        document.sections[0].header.paragraphs[0]._p.append(parse_xml(content))
        document.add_paragraph("本文")

    assert shown(read_docx(build).pages[0].blocks) == [(BlockKind.HEADER, "社外秘"), (PARAGRAPH, "本文")]


MC = 'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'


def body_xml(*parts: str) -> Callable[[Any], None]:
    def build(document: Any) -> None:
        for part in parts:
            document.element.body.append(parse_xml(part.replace(">", f" {W} {MC}>", 1)))

    return build


def paragraph_xml(text: str, properties: str = "") -> str:
    return f"<w:p>{properties}<w:r><w:t>{text}</w:t></w:r></w:p>"


def alternatives(choice: str, fallback: str) -> str:
    return (
        f'<mc:AlternateContent><mc:Choice Requires="wps">{choice}</mc:Choice>'
        f"<mc:Fallback>{fallback}</mc:Fallback></mc:AlternateContent>"
    )


def test_docx_notes_with_a_page_break_are_read() -> None:
    document = docx.Document()
    document.add_paragraph("本文")
    notes = (
        f"<w:footnotes {W}><w:footnote w:id='1'><w:p><w:r><w:t>前</w:t><w:br w:type='page'/><w:t>後</w:t></w:r></w:p>"
    )
    relation = f'<Relationship Id="rIdNotes" Type="{RELATIONSHIPS}/footnotes" Target="footnotes.xml"/></Relationships>'
    data = saved(document)
    names = ("word/_rels/document.xml.rels", "word/document.xml")
    relations, body = (parts_of(data)[name].decode() for name in names)
    reference = "<w:r><w:footnoteReference w:id='1'/></w:r></w:p>"
    parts = {
        "word/_rels/document.xml.rels": relations.replace("</Relationships>", relation),
        "word/document.xml": body.replace("</w:p>", reference, 1),
        "word/footnotes.xml": f"{notes}</w:footnote></w:footnotes>",
    }
    (page,) = parse_docx(with_parts(data, parts), 1000, 1 << 26).pages
    assert shown(page.blocks) == [(PARAGRAPH, "本文"), (BlockKind.NOTE, "前後")]


def test_docx_alternatives_between_paragraphs_are_read_once() -> None:
    table = "<w:tbl><w:tr><w:tc>{}</w:tc><w:tc><w:p/></w:tc></w:tr></w:tbl>"
    both = alternatives(paragraph_xml("新しい形"), paragraph_xml("古い形"))
    run = "<w:r><w:t>{}</w:t></w:r>"
    build = body_xml(
        both,
        alternatives("", paragraph_xml("古い形")).replace('<mc:Choice Requires="wps"></mc:Choice>', ""),
        table.format(both),
        f"<w:p>{alternatives(run.format('文の中'), run.format('古い文'))}</w:p>",
    )
    assert [block.text for block in read_docx(build).pages[0].blocks] == ["新しい形", "古い形", "新しい形", "文の中"]


DELETED_MARK = "<w:pPr><w:rPr><w:del/></w:rPr></w:pPr>"


def test_docx_paragraphs_join_where_their_mark_was_deleted() -> None:
    halves = paragraph_xml("前半", DELETED_MARK) + paragraph_xml("後半") + paragraph_xml("次")
    cells = f"<w:tc>{halves}</w:tc><w:tc>{paragraph_xml('終わり', DELETED_MARK)}</w:tc>"
    build = body_xml(
        f"<w:tbl><w:tr>{cells}</w:tr></w:tbl>",
        paragraph_xml("表の前", DELETED_MARK),
        f"<w:tbl><w:tr>{cells}</w:tr></w:tbl>",
    )
    first, paragraph, second = read_docx(build).pages[0].blocks
    assert first.rows[0].cells == second.rows[0].cells == ("前半後半\n次", "終わり")
    assert (paragraph.kind, paragraph.text) == (PARAGRAPH, "表の前")


@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        ("<w:sdt><w:sdtContent>", "</w:sdtContent></w:sdt>"),
        ("<w:tbl><w:tr><w:tc>", "</w:tc></w:tr></w:tbl>"),
        ("<w:tbl><w:tr><w:tc><w:p/></w:tc><w:tc>", "</w:tc></w:tr></w:tbl>"),
        ("<w:p><w:r><w:pict><w:txbxContent>", "</w:txbxContent></w:pict></w:r></w:p>"),
    ],
)
def test_docx_that_is_nested_too_deep_is_said_to_be(opening: str, closing: str) -> None:
    build = body_xml(opening * 30 + paragraph_xml("底の文") + closing * 30, paragraph_xml("後"))
    with limited(replace(LIMITS, nesting_depth=20)):
        document = read_docx(build)
    (failure,) = document.failures
    assert (failure.cause, failure.page_number) == (FailureCause.TOO_LARGE, 1)
    assert failure.message.startswith("page 1, below the beginning: ")
    assert document.pages[0].blocks[-1].text == "後"
    whole = read_docx(build)
    assert not whole.failures
    assert any("底の文" in block.text for block in whole.pages[0].blocks)


def test_targets_of_docx_links_stand_behind_their_text() -> None:
    def link(part: Any, paragraph: Any, text: str, target: str) -> None:
        identity = part.relate_to(target, f"{RELATIONSHIPS}/hyperlink", is_external=True)
        xml = f'<w:hyperlink {W} xmlns:r="{RELATIONSHIPS}" r:id="{identity}"><w:r><w:t>{text}</w:t></w:r></w:hyperlink>'
        paragraph._p.append(parse_xml(xml))

    def build(document: Any) -> None:
        header = document.sections[0].header
        link(header.part, header.paragraphs[0], "社内", "https://example.jp/header")
        link(document.part, document.add_paragraph("詳細は"), "こちら", "https://example.jp/body")
        link(document.part, document.add_paragraph(), "https://example.jp", "https://example.jp/")

    assert [block.text for block in read_docx(build).pages[0].blocks] == [
        "社内 <https://example.jp/header>",
        "詳細はこちら <https://example.jp/body>",
        "https://example.jp",
    ]


def test_docx_symbols_of_ordinary_fonts_are_read() -> None:
    build = body_xml('<w:p><w:r><w:sym w:font="MS Mincho" w:char="2460"/><w:sym w:char="F0FE"/></w:r></w:p>')
    assert read_docx(build).pages[0].blocks[0].text == "①☑"


def test_docx_extended_symbols_are_read_once() -> None:
    namespace = "http://schemas.microsoft.com/office/word/2015/wordml/symex"
    symbols = (
        f'<s:symEx xmlns:s="{namespace}" s:font="Segoe UI Emoji" s:char="{code}"/>' for code in ("25A1", "1F600")
    )
    signs = "".join(map(alternatives, symbols, ("<w:t>□</w:t>", "<w:t>😀</w:t>")))
    assert read_docx(body_xml(f"<w:p><w:r>{signs}</w:r></w:p>")).pages[0].blocks[0].text == "□😀"


def test_docx_numbering_is_shown() -> None:
    def build(document: Any) -> None:
        numbering = document.part.numbering_part.element
        numbering.insert(
            0,
            parse_xml(
                f'<w:abstractNum {W} w:abstractNumId="77">'
                '<w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt w:val="decimal"/><w:lvlText w:val="第%1章"/></w:lvl>'
                '<w:lvl w:ilvl="1"><w:start w:val="1"/><w:numFmt w:val="decimal"/><w:lvlText w:val="%1.%2"/></w:lvl>'
                "</w:abstractNum>"
            ),
        )
        numbering.append(parse_xml(f'<w:num {W} w:numId="77"><w:abstractNumId w:val="77"/></w:num>'))
        for text, level in (("概要", 0), ("目的", 1), ("範囲", 1), ("方式", 0), ("構成", 1)):
            properties = document.add_paragraph(text)._p.get_or_add_pPr()
            properties.append(parse_xml(f'<w:numPr {W}><w:ilvl w:val="{level}"/><w:numId w:val="77"/></w:numPr>'))

    texts = [block.text for block in read_docx(build).pages[0].blocks]
    assert texts == ["第1章 概要", "1.1 目的", "1.2 範囲", "第2章 方式", "2.1 構成"]


@pytest.mark.parametrize(
    ("number", "number_format", "expected"),
    [
        (4, "lowerRoman", "iv"),
        (1994, "upperRoman", "MCMXCIV"),
        (28, "upperLetter", "BB"),
        (3, "decimalEnclosedCircle", "③"),
        (12, "decimalFullWidth", "１２"),
        (2, "aiueoFullWidth", "イ"),
        (3, "iroha", "ハ"),
        (21, "japaneseCounting", "二十一"),
        (10, "japaneseCounting", "十"),
        (7, "somethingElse", "7"),
        (999_999_999, "upperLetter", "999999999"),
        (999_999_999, "lowerRoman", "999999999"),
    ],
)
def test_number_formats(number: int, number_format: str, expected: str) -> None:
    assert format_number(number, number_format) == expected


def test_pptx_slides() -> None:
    presentation = pptx.Presentation()
    slide = presentation.slides.add_slide(presentation.slide_layouts[1])
    slide.shapes.title.text = "導入計画"
    slide.placeholders[1].text = "準備\n実施"
    low = slide.shapes.add_textbox(Pt(50), Pt(500), Pt(100), Pt(20))
    low.text_frame.text = "下の枠"
    table = slide.shapes.add_table(2, 2, Pt(50), Pt(400), Pt(200), Pt(40)).table
    for row, column, text in ((0, 0, "月"), (0, 1, "作業"), (1, 0, "四月")):
        table.cell(row, column).text = text
    slide.notes_slide.notes_text_frame.text = "話すこと"
    group = slide.shapes.add_group_shape()
    group.shapes.add_textbox(Pt(400), Pt(520), Pt(50), Pt(10)).text_frame.text = "組の中"
    second = presentation.slides.add_slide(presentation.slide_layouts[5])
    second._element.set("show", "0")
    data: Any = CategoryChartData()  # type: ignore[no-untyped-call]
    data.categories = ["東京", "大阪"]
    data.add_series("売上", (1, 2))
    second.shapes.add_chart(XL_CHART_TYPE.PIE, 0, 0, Pt(100), Pt(100), data)

    first_page, second_page = parse_pptx(saved(presentation), 1000, 1 << 26, 10).pages
    assert (first_page.kind, first_page.size, first_page.hidden) == (PageKind.SLIDE, (720.0, 540.0), False)
    assert shown(first_page.blocks) == [
        (HEADING, "導入計画"),
        (LIST_ITEM, "準備"),
        (LIST_ITEM, "実施"),
        (BlockKind.TABLE, "月 | 作業\n四月 | "),
        (PARAGRAPH, "下の枠"),
        (PARAGRAPH, "組の中"),
        (BlockKind.NOTE, "話すこと"),
    ]
    assert first_page.blocks[3].header_row_count == 1
    assert first_page.blocks[4].box == (50.0, 500.0, 150.0, 520.0)
    assert first_page.blocks[4].section == ("導入計画",)
    assert second_page.hidden
    assert "東京" in second_page.blocks[0].text
    assert "売上" in second_page.blocks[0].text


def test_cards_of_a_slide_are_read_one_after_the_other() -> None:
    presentation = pptx.Presentation()
    slide = presentation.slides.add_slide(presentation.slide_layouts[6])

    def add(left: float, top: float, right: float, bottom: float, text: str = "", *, drawn: bool = False) -> None:
        place = (Pt(left), Pt(top), Pt(right - left), Pt(bottom - top))
        shape = slide.shapes.add_shape(1, *place) if drawn else slide.shapes.add_textbox(*place)
        shape.text_frame.text = text

    add(40, 30, 680, 60, "役割は二つある")
    add(20, 20, 700, 520, drawn=True)  # a frame around all
    for left, role, may in ((40, "店舗管理者", "自店舗の商品"), (370, "本部管理者", "全店舗の商品")):
        add(left, 100, left + 310, 300, drawn=True)
        add(left, 100, left + 310, 130, role, drawn=True)
        add(left + 20, 140, left + 300, 170, may)
        add(left + 20, 290, left + 300, 302, f"{role}の注")
    (page,) = parse_pptx(saved(presentation), 1000, 1 << 26, 10).pages
    assert [block.text for block in page.blocks] == [
        "役割は二つある",
        *("店舗管理者", "自店舗の商品", "店舗管理者の注"),
        *("本部管理者", "全店舗の商品", "本部管理者の注"),
    ]


def test_pptx_slides_are_limited() -> None:
    presentation = pptx.Presentation()
    for _ in range(3):
        presentation.slides.add_slide(presentation.slide_layouts[6])
    with pytest.raises(ParseError) as caught:
        parse_pptx(saved(presentation), 1000, 1 << 26, 2)
    assert caught.value.cause is FailureCause.TOO_LARGE


def test_pptx_groups_nested_too_deep_are_said_to_be() -> None:
    presentation = pptx.Presentation()
    shapes_of_slide: Any = presentation.slides.add_slide(presentation.slide_layouts[6]).shapes
    shapes_of_slide.add_textbox(Pt(1), Pt(1), Pt(1), Pt(1)).text_frame.text = "上"
    group = shapes_of_slide
    for _ in range(30):
        group = group.add_group_shape().shapes
    group.add_textbox(Pt(1), Pt(1), Pt(1), Pt(1)).text_frame.text = "底"
    data = saved(presentation)
    with limited(replace(LIMITS, nesting_depth=20)):
        document = parse_pptx(data, 1000, 1 << 26, 10)
    assert [block.text for block in document.pages[0].blocks] == ["上"]
    (failure,) = document.failures
    assert (failure.cause, failure.page_number) == (FailureCause.TOO_LARGE, 1)
    assert len(parse_pptx(data, 1000, 1 << 26, 10).pages[0].blocks) == 2


def test_a_damaged_chart_is_a_failure_of_its_slide() -> None:
    presentation = pptx.Presentation()
    slide = presentation.slides.add_slide(presentation.slide_layouts[5])
    slide.shapes.title.text = "売上"
    data: Any = CategoryChartData()  # type: ignore[no-untyped-call]
    data.categories = ["東京"]
    data.add_series("売上", (1,))
    slide.shapes.add_chart(XL_CHART_TYPE.PIE, 0, 0, Pt(100), Pt(100), data)
    whole = saved(presentation)
    broken = {name: b"<broken" for name in parts_of(whole) if "charts/chart" in name and name.endswith(".xml")}
    document = parse_pptx(with_parts(whole, broken), 1000, 1 << 26, 10)
    assert [block.text for block in document.pages[0].blocks] == ["売上"]
    assert [(failure.cause, failure.page_number) for failure in document.failures] == [(FailureCause.MALFORMED, 1)]


MARKDOWN = """---
title: 手順書
---
# 準備

一行目
二行目 *強調*

- a
- b

| 列 | 値 |
|---|---|
| 甲 | 1 |

```
code
```
"""
HTML = """<html><head><title>設計書</title><style>a{}</style><script>var x=1</script></head><body><nav>メニュー</nav>
<h1>概要</h1><p>本文<b>太字</b>の
続き。<br>改行</p>素の文<div>枠<h2>詳細</h2><ul><li>甲<ul><li>乙</li></ul></li></ul></div>
<table><caption>表1</caption><tr><th>A</th><th colspan=2>B</th></tr><tr><td rowspan=2>1</td><td>2</td><td>3</td></tr>
<tr><td>x</td><td>y</td></tr></table><details><summary>要約</summary>中身</details><img src="http://example.com/a.png">
<table><tr><td><h3>割付</h3></td><td>右</td></tr></table></body></html>"""


@pytest.mark.parametrize("encoding", ["utf-8", "cp932", "utf-16"])
def test_html(encoding: str) -> None:
    document = parse_html(HTML.encode(encoding))
    (page,) = document.pages
    assert (document.title, page.kind) == ("設計書", PageKind.BODY)
    assert [(block.kind, block.text, block.section[-1:]) for block in page.blocks] == [
        (BlockKind.HEADER, "メニュー", ()),
        (HEADING, "概要", ()),
        (PARAGRAPH, "本文太字の続き。\n改行", ("概要",)),
        (PARAGRAPH, "素の文", ("概要",)),
        (PARAGRAPH, "枠", ("概要",)),
        (HEADING, "詳細", ("概要",)),
        (LIST_ITEM, "甲", ("詳細",)),
        (LIST_ITEM, "乙", ("詳細",)),
        (BlockKind.CAPTION, "表1", ("詳細",)),
        (BlockKind.TABLE, "A | B | B\n1 | 2 | 3\n1 | x | y", ("詳細",)),
        (PARAGRAPH, "要約", ("詳細",)),
        (PARAGRAPH, "中身", ("詳細",)),
        (HEADING, "割付", ("詳細",)),
        (PARAGRAPH, "右", ("割付",)),
    ]


def test_html_states_its_charset() -> None:
    data = '<meta charset="euc-jp"><p>売上の集計</p>'.encode("euc_jp")
    assert parse_html(data).pages[0].blocks[0].text == "売上の集計"


@pytest.mark.parametrize("opening", ["<div>", "<b>", "<table><tr><td>", "<ul><li>"])
@pytest.mark.parametrize("count", [300, 3000])
def test_html_that_is_nested_too_deep_is_said_to_be(opening: str, count: int) -> None:
    document = parse_html((f"<p>前</p>{opening * count}中").encode())
    assert document.pages[0].blocks[0].text == "前"
    assert {(failure.cause, failure.page_number) for failure in document.failures} == {(FailureCause.TOO_LARGE, 1)}


def test_html_behind_what_is_nested_too_deep_is_read() -> None:
    with limited(replace(LIMITS, nesting_depth=20)):
        document = parse_html(f"<p>前</p>{'<div>' * 30}中{'</div>' * 30}<p>後</p>".encode())
    assert [block.text for block in document.pages[0].blocks] == ["前", "後"]
    assert "parsing.nesting_depth" in document.failures[0].message


def test_pictures_of_html_are_read_by_their_alternative_text() -> None:
    markup = (
        '<p>前<img alt="錠前" src=x>後</p><p><img alt="構成図 1" src=x></p><p><img alt="" src=x></p>'
        '<figure><a href="https://example.jp/a"><picture><img alt="写真" src=x></picture></a>'
        "<figcaption>図1</figcaption></figure>"
        '<table><tr><th>印</th><th>名</th></tr><tr><td><img alt="済" src=x></td><td>a</td></tr></table>'
    )
    assert shown(parse_html(markup.encode()).pages[0].blocks) == [
        (PARAGRAPH, "前[図: 錠前]後"),
        (BlockKind.CAPTION, "図: 構成図 1"),
        (BlockKind.CAPTION, "図: 写真 <https://example.jp/a>"),
        (BlockKind.CAPTION, "図1"),
        (BlockKind.TABLE, "印 | 名\n[図: 済] | a"),
    ]


@pytest.mark.parametrize(
    ("link", "text"),
    [
        ('<a href="https://example.jp/a">資料</a>', "資料 <https://example.jp/a>"),
        ('<a href="https://example.jp/">example.jp</a>', "example.jp"),
        ('<a href="mailto:a@example.jp">連絡先</a>', "連絡先 <mailto:a@example.jp>"),
        ('<a href="../%E8%A8%AD%E8%A8%88.xlsx">設計書</a>', "設計書 <../設計.xlsx>"),
        ('<a href="#top">上へ</a><a href="next.html">次へ</a><a href="javascript:x()">x</a>', "上へ次へx"),
        ('<a name="x">目印</a>', "目印"),
    ],
)
def test_targets_of_html_links_stand_behind_their_text(link: str, text: str) -> None:
    markup = f"<h1>{link}</h1><p>{link}</p><table><tr><td>{link}</td><td>b</td></tr></table>"
    assert [block.text for block in parse_html(markup.encode()).pages[0].blocks] == [text, text, f"{text} | b"]


def test_markdown_keeps_pictures_and_links() -> None:
    text = "![構成図](a.png)\n\n詳細は[こちら](https://example.jp/表)。<https://example.jp/表>\n"
    assert shown(parse_markdown(text.encode()).pages[0].blocks) == [
        (BlockKind.CAPTION, "図: 構成図"),
        (PARAGRAPH, "詳細はこちら <https://example.jp/%E8%A1%A8>。https://example.jp/表"),
    ]


def test_headings_in_header_cells_are_column_names() -> None:
    head = "<tr><th><h2>項目</h2></th><th><h3>値</h3></th></tr>"
    for markup in (f"{head}<tr><td>a</td><td>1</td></tr>", f"<thead>{head}</thead><tr><td>a</td><td>1</td></tr>"):
        (block,) = parse_html(f"<table>{markup}</table>".encode()).pages[0].blocks
        assert [row.cells for row in block.rows] == [("項目", "値"), ("a", "1")]
        assert block.header_row_count == 1


def test_broken_lines_of_preformatted_text() -> None:
    assert parse_html(b"<pre>a<br>b</pre>").pages[0].blocks[0].text == "a\nb"


@pytest.mark.parametrize("mark", ["> ", "- "])
def test_markdown_that_is_nested_too_deep_is_said_to_be(mark: str) -> None:
    text = f"前\n\n{mark * 30}中\n\n後\n"
    with limited(replace(LIMITS, nesting_depth=20)):
        document = parse_markdown(text.encode())
    first, deep, last = (block.text for block in document.pages[0].blocks)
    assert (first, deep[-1], last) == ("前", "中", "後")
    (failure,) = document.failures
    assert (failure.cause, failure.page_number) == (FailureCause.TOO_LARGE, 1)
    assert failure.message.startswith("line 3: ")
    whole = parse_markdown(text.encode())
    assert ([block.text for block in whole.pages[0].blocks], whole.failures) == (["前", "中", "後"], ())


def test_nested_html_is_read() -> None:
    document = parse_html((f"{'<div>' * 200}中{'</div>' * 200}<p>後</p>").encode())
    assert [block.text for block in document.pages[0].blocks] == ["中", "後"]
    assert not document.failures


def test_markdown() -> None:
    document = parse_markdown(MARKDOWN.encode())
    assert document.title == "手順書"
    assert shown(document.pages[0].blocks) == [
        (BlockKind.NOTE, "title: 手順書"),
        (HEADING, "準備"),
        (PARAGRAPH, "一行目二行目 強調"),
        (LIST_ITEM, "a"),
        (LIST_ITEM, "b"),
        (BlockKind.TABLE, "列 | 値\n甲 | 1"),
        (PARAGRAPH, "code"),
    ]


@pytest.mark.parametrize("above", ["", f"<!-- {'x' * 5000} -->"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("read", [Archive.tree, lambda archive, part: list(archive.elements(part, ("si",)))])
def test_a_document_type_is_refused_wherever_it_stands(
    above: str, encoding: str, read: Callable[[Archive, str], object]
) -> None:
    document_type = '<!DOCTYPE sst [<!ENTITY a SYSTEM "file:///etc/hostname">]>'
    parts = {"bad.xml": f"{above}{document_type}<sst><si>&a;</si></sst>", "good.xml": f"{above}<sst><si>a</si></sst>"}
    head = f'<?xml version="1.0" encoding="{encoding}"?>'
    archive = Archive(zipped({name: f"{head}{text}".encode(encoding) for name, text in parts.items()}), 10, 1 << 20)
    assert read(archive, "good.xml") is not None
    with pytest.raises(ParseError, match=r"part bad\.xml carries a document type declaration") as caught:
        read(archive, "bad.xml")
    assert caught.value.cause is FailureCause.MALFORMED


def test_many_numbers_in_one_paragraph_do_not_slow_each_other() -> None:
    document, count = docx.Document(), 40_000
    runs = "<w:r><w:t>1</w:t></w:r>" * count
    document.add_paragraph()._p.append(parse_xml(f"<w:ins {W}>{runs}</w:ins>"))
    data, began = saved(document), time.process_time()
    (block,) = parse_docx(data, 1000, 1 << 26).pages[0].blocks
    assert block.text == "1" * count
    assert time.process_time() - began < 3
