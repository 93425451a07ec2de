"""Covers and tables of contents of Word documents and presentations."""

from collections.abc import Sequence
from typing import Any

import pptx
import pytest
from office_building import read_docx, saved

from rag_assets.contracts.causes import PageRole
from rag_assets.parsing.office.slides import parse_pptx


def roles_of_pages(*pages: Sequence[str]) -> list[PageRole | None]:
    """Roles of the pages of a Word document, from their lines."""

    def build(document: Any) -> None:
        for number, lines in enumerate(pages):
            if number:
                document.add_page_break()
            for line in lines:
                document.add_paragraph(line)

    return [page.role for page in read_docx(build).pages]


BODY = ["1. 目的", "本書は、要件を定めるものである。"]


def test_a_first_page_of_short_lines_is_a_cover() -> None:
    cover = ["要件定義書", "第1.0版", "2024年4月1日"]
    assert roles_of_pages(cover, BODY) == [PageRole.COVER, None]
    assert roles_of_pages(cover) == [None]
    assert roles_of_pages(BODY, cover) == [None, None]
    assert roles_of_pages([*cover, "機密とする。"], BODY) == [None, None]
    assert roles_of_pages([str(number) * 5 for number in range(20)], BODY) == [None, None]


def test_a_page_of_contents_is_one() -> None:
    entries = [f"{number}. 概要\t{number}" for number in range(1, 7)]
    assert roles_of_pages(entries, BODY, BODY, BODY) == [PageRole.CONTENTS, None, None, None]
    assert roles_of_pages(["表紙"], ["目　次", "1. 進捗\t3", "2. 品質\t3"], BODY)[1] is PageRole.CONTENTS
    assert roles_of_pages(BODY, ["目次", "本書は次の章からなる。"]) == [None, None]


def role_of_slide(title: str, lines: str, layout: int, before: int = 0) -> PageRole | None:
    """Role of a slide with a title and a text below."""
    presentation = pptx.Presentation()
    for number in range(before + 1):
        slide = presentation.slides.add_slide(presentation.slide_layouts[layout])
        slide.shapes.title.text, slide.placeholders[1].text = title, lines
        slide.notes_slide.notes_text_frame.text = f"{number}枚目の説明をする。"
    return parse_pptx(saved(presentation), 1000, 1 << 26, 100).pages[-1].role


TITLE, CONTENT = 0, 1  # layouts


@pytest.mark.parametrize(
    ("title", "lines", "role"),
    [
        ("目次", "背景\n提案\n評価", PageRole.CONTENTS),
        ("■ 本日の流れ（1/2）", "背景\n提案", PageRole.CONTENTS),
        ("Agenda", "Background\nProposal", PageRole.CONTENTS),
        ("目次", "背景について述べる。\n提案", None),
        ("概要", "背景\n提案", None),
        ("目次", "", None),
    ],
)
def test_slides_that_list_what_follows_are_contents(title: str, lines: str, role: PageRole | None) -> None:
    assert role_of_slide(title, lines, CONTENT) is role


def test_the_first_slide_is_a_cover_by_its_layout() -> None:
    assert role_of_slide("新製品の提案", "営業部\n2024年4月", TITLE) is PageRole.COVER
    assert role_of_slide("新製品の提案", "営業部\n2024年4月", TITLE, before=1) is None
    assert role_of_slide("新製品の提案", "営業部\n2024年4月", CONTENT) is None
    assert role_of_slide("新製品の提案", "この製品は売れる。", TITLE) is None
