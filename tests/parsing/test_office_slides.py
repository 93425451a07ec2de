from collections.abc import Callable
from typing import Any

import pptx
import pytest
from office_building import saved, shown
from pptx.enum.shapes import MSO_CONNECTOR
from pptx.util import Pt

from rag_assets.contracts.causes import BlockKind
from rag_assets.contracts.content import Block
from rag_assets.parsing.office.slides import parse_pptx

HEADING, PARAGRAPH, TABLE = BlockKind.HEADING, BlockKind.PARAGRAPH, BlockKind.TABLE


def add_text(shapes: Any, left: float, top: float, text: str, *, size: float | None = None) -> Any:
    box = shapes.add_textbox(Pt(left), Pt(top), Pt(300), Pt(30))
    box.text_frame.text = text
    if size:
        box.text_frame.paragraphs[0].runs[0].font.size = Pt(size)
    return box


def blocks_of_slide(build: Callable[[Any], None], layout: int = 6) -> list[Block]:
    presentation = pptx.Presentation()
    build(presentation.slides.add_slide(presentation.slide_layouts[layout]).shapes)
    (page,) = parse_pptx(saved(presentation), 1000, 1 << 26, 10).pages
    return list(page.blocks)


def test_the_topmost_and_largest_text_of_a_slide_is_its_title() -> None:
    def build(shapes: Any) -> None:
        add_text(shapes, 40, 20, "1.2", size=11)
        add_text(shapes, 40, 40, "業務の流れ", size=24)
        add_text(shapes, 40, 100, "受注する")

    assert [(block.kind, block.text, block.section) for block in blocks_of_slide(build)] == [
        (HEADING, "業務の流れ", ()),
        (PARAGRAPH, "1.2", ("業務の流れ",)),
        (PARAGRAPH, "受注する", ("業務の流れ",)),
    ]


@pytest.mark.parametrize(
    "texts",
    [
        [("売上", 20, 18), ("120", 200, 60), ("増加", 300, 12)],  # a number in the middle
        [("売上", 20, 18), ("費用", 60, 18)],
        [("売上", 20, 12), ("費用", 60, 12), ("利益", 100, 18)],
        [("一行目\n二行目\n三行目", 20, 24), ("費用", 200, 12)],
        [("売上", 60, None), ("費用", 100, 24)],
    ],
)
def test_slides_without_a_larger_text_above_the_others_have_no_title(texts: list[tuple[str, int, int | None]]) -> None:
    def build(shapes: Any) -> None:
        for text, top, size in texts:
            add_text(shapes, 40, top, text, size=size)
        if texts[0][2] is None:  # what a connector joins is no title
            line = shapes.add_connector(MSO_CONNECTOR.STRAIGHT, 0, 0, 0, 0)
            line.begin_connect(shapes[0], 3)
            line.end_connect(shapes[1], 1)

    assert HEADING not in {block.kind for block in blocks_of_slide(build)}


def test_a_slide_with_a_title_has_no_other_one() -> None:
    def build(shapes: Any) -> None:
        shapes.title.text = "題"
        add_text(shapes, 40, 5, "大きな字", size=60)

    assert shown(blocks_of_slide(build, layout=5)) == [(HEADING, "題"), (PARAGRAPH, "大きな字")]
