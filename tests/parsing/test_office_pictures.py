"""Alternative texts of pictures, and links of presentations."""

import base64
import io
from typing import Any

import docx
import openpyxl
import openpyxl.drawing.image
import pptx
import pytest
from docx.oxml import parse_xml
from golden import LIMITS
from office_building import W, saved, shown
from pptx.util import Pt

from rag_assets.contracts.causes import BlockKind, FailureCause
from rag_assets.contracts.content import Block
from rag_assets.parsing.excel.reader import parse_excel
from rag_assets.parsing.flow import picture_block
from rag_assets.parsing.office.slides import parse_pptx
from rag_assets.parsing.office.word import parse_docx

PIXEL = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII=")
CAPTION, LIST_ITEM, PARAGRAPH = BlockKind.CAPTION, BlockKind.LIST_ITEM, BlockKind.PARAGRAPH


def blocks(document: Any) -> tuple[Block, ...]:
    word, data = hasattr(document, "paragraphs"), saved(document)
    parsed = parse_docx(data, 1000, 1 << 26) if word else parse_pptx(data, 1000, 1 << 26, 100)
    (page,) = parsed.pages
    return page.blocks


def add_picture(place: Any, alternative: str) -> None:
    frame = place.add_picture(io.BytesIO(PIXEL))._inline
    frame.docPr.set("descr", alternative)
    frame.find(".//{*}cNvPr").set("descr", "C:\\\\pictures\\\\a.png")


def test_alternative_texts_of_docx_pictures_are_captions() -> None:
    document = docx.Document()
    document.add_heading("構成", 1)
    add_picture(document.add_paragraph("前の文").add_run(), "受注の流れ\n全体")
    add_picture(document.add_paragraph().add_run(), "")
    add_picture(document.add_paragraph().add_run(), "logo final.PNG")
    add_picture(document.add_table(rows=1, cols=2).cell(0, 1).paragraphs[0].add_run(), "表の中の図")
    assert shown(blocks(document)) == [
        (BlockKind.HEADING, "構成"),
        (PARAGRAPH, "前の文"),
        (CAPTION, "図: 受注の流れ 全体"),
        (CAPTION, "図: 表の中の図"),
    ]
    assert blocks(document)[2].section == ("構成",)


@pytest.mark.parametrize(
    ("stated", "is_said"),
    [
        ("テキスト が含まれている画像  自動的に生成された説明", False),
        ("グラフィカル ユーザー インターフェイス  AI 生成コンテンツは誤りを含む可能性があります。", False),
        ("A screenshot of a phone  Description automatically generated", False),
        ("建物 が含まれている画像  非常に高い精度で生成された説明", False),
        ("Text Automatically generated description", False),
        ("Picture 3", False),
        ("バッジ: チェックマーク 単色塗りつぶし", False),
        ("悲しそうな顔 (塗りつぶし)", False),
        ("画面の領域", False),
        ("https://example.jp/a.png?x=1", False),
        ("ログイン画面（枠線は赤）", True),
    ],
)
def test_what_a_program_guesses_of_a_picture_is_not_said(stated: str, *, is_said: bool) -> None:
    assert (picture_block(stated) is not None) is is_said


def test_alternative_texts_of_older_docx_pictures_and_of_groups() -> None:
    namespaces = (
        f'{W} xmlns:v="urn:schemas-microsoft-com:vml" xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" '
        'xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing" '
        'xmlns:p="http://schemas.openxmlformats.org/drawingml/2006/picture" '
        'xmlns:g="http://schemas.microsoft.com/office/word/2010/wordprocessingGroup"'
    )
    member = '<p:pic><p:nvPicPr><p:cNvPr id="{0}" name="x" descr="{1}"/></p:nvPicPr></p:pic>'
    document = docx.Document()
    document.add_paragraph()._p.append(
        parse_xml(
            f'<w:r {namespaces}><w:pict><v:shape alt="旧式の図"><v:imagedata/></v:shape></w:pict><w:drawing><wp:inline>'
            '<wp:docPr id="1" name="g" descr="群"/><a:graphic><a:graphicData><g:wgp>'
            f"{member.format(2, '左')}{member.format(3, '右')}"
            "</g:wgp></a:graphicData></a:graphic></wp:inline></w:drawing></w:r>"
        )
    )
    assert shown(blocks(document)) == [(CAPTION, "図: 旧式の図"), (CAPTION, "図: 左"), (CAPTION, "図: 右")]


def test_alternative_texts_of_pptx_pictures_are_captions_at_their_place() -> None:
    presentation = pptx.Presentation()
    slide = presentation.slides.add_slide(presentation.slide_layouts[6])
    for top, alternative in [(30, "構成図"), (200, ""), (300, "image1.jpeg")]:
        picture = slide.shapes.add_picture(io.BytesIO(PIXEL), Pt(10), Pt(top), Pt(40), Pt(50))
        picture._element.nvPicPr.cNvPr.set("descr", alternative)
    picture.click_action.hyperlink.address = "https://example.org/a"
    slide.shapes.add_textbox(Pt(10), Pt(100), Pt(90), Pt(20)).text_frame.text = "下の文"
    caption, text = blocks(presentation)
    assert (caption.kind, caption.text, caption.box) == (CAPTION, "図: 構成図", (10.0, 30.0, 50.0, 80.0))
    assert text.text == "下の文"


def test_targets_of_pptx_links_stand_behind_their_text() -> None:
    presentation = pptx.Presentation()
    slide = presentation.slides.add_slide(presentation.slide_layouts[1])
    slide.shapes.title.text = "参照"
    body = slide.placeholders[1].text_frame
    for text, address in [
        ("前 ", ""),
        ("設", "spec.xlsx"),
        ("計書", "spec.xlsx"),
        (" と ", ""),
        ("例", "file:///c:/a"),
    ]:
        run = body.paragraphs[0].add_run()
        run.text = text
        run.hyperlink.address = address or None
    box = slide.shapes.add_textbox(Pt(10), Pt(400), Pt(90), Pt(20))
    box.text_frame.text = "窓口"
    box.click_action.hyperlink.address = "https://example.org/desk"
    assert shown(blocks(presentation)) == [
        (BlockKind.HEADING, "参照"),
        (LIST_ITEM, "前 設計書 <spec.xlsx> と 例"),
        (PARAGRAPH, "窓口 <https://example.org/desk>"),
    ]


def test_a_slide_of_nothing_but_pictures_is_told_as_unread() -> None:
    presentation = pptx.Presentation()
    for text in ("", "下の文"):
        slide = presentation.slides.add_slide(presentation.slide_layouts[6])
        slide.shapes.add_picture(io.BytesIO(PIXEL), Pt(10), Pt(10), Pt(40), Pt(50))
        if text:
            slide.shapes.add_textbox(Pt(10), Pt(100), Pt(90), Pt(20)).text_frame.text = text
    presentation.slides.add_slide(presentation.slide_layouts[6])  # empty
    failures = parse_pptx(saved(presentation), 1000, 1 << 26, 100).failures
    assert [(failure.cause, failure.page_number, failure.message) for failure in failures] == [
        (FailureCause.NO_TEXT, 1, "slide 1: nothing but pictures, whose text is not read")
    ]


def test_a_sheet_of_nothing_but_pictures_is_told_as_unread() -> None:
    workbook = openpyxl.Workbook()
    workbook.active.title = "一覧"
    workbook.active["A1"] = "画面"
    workbook.create_sheet("画面").add_image(openpyxl.drawing.image.Image(io.BytesIO(PIXEL)), "B2")
    workbook.create_sheet("空")
    stream = io.BytesIO()
    workbook.save(stream)
    failures = parse_excel(stream.getvalue(), LIMITS).failures
    assert [(failure.cause, failure.page_number, failure.message) for failure in failures] == [
        (FailureCause.NO_TEXT, 2, 'sheet "画面": nothing but pictures, whose text is not read')
    ]
