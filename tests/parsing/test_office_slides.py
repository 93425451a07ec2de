from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pptx
import pytest
from office_building import saved, shown
from pptx.dml.color import RGBColor
from pptx.enum.shapes import MSO_CONNECTOR, MSO_SHAPE
from pptx.util import Pt

from rag_assets.contracts.causes import BlockKind
from rag_assets.contracts.content import Block
from rag_assets.parsing.office.slides import parse_pptx

HEADING, PARAGRAPH, TABLE = BlockKind.HEADING, BlockKind.PARAGRAPH, BlockKind.TABLE
DARK, LIGHT, WHITE = (26, 54, 93), (238, 238, 238), (255, 255, 255)


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


def test_the_number_of_a_chapter_may_be_larger_than_its_title() -> None:
    def build(shapes: Any) -> None:
        shapes.add_textbox(Pt(0), Pt(180), Pt(100), Pt(60)).text_frame.text = "2"
        shapes[0].text_frame.paragraphs[0].runs[0].font.size = Pt(60)
        add_text(shapes, 120, 200, "基本設計", size=32)
        add_text(shapes, 120, 260, "画面と帳票", size=14)

    assert shown(blocks_of_slide(build)) == [(HEADING, "基本設計"), (PARAGRAPH, "2"), (PARAGRAPH, "画面と帳票")]


@pytest.mark.parametrize(
    "texts",
    [
        [("売上", 20, 18), ("12", 200, 60), ("増加", 300, 12)],  # a number in the middle
        [("売上", 20, 18), ("120", 200, 60), ("増加", 300, 12)],
        [("売上", 20, 18), ("費用", 60, 18)],
        [("売上", 20, 12), ("費用", 60, 12), ("利益", 100, 18)],
        [("一行目\n二行目\n三行目", 20, 24), ("費用", 200, 12)],
        [("売上", 60, None), ("費用", 100, 24)],
        [("2024年度の売上高", 10, 14), ("120億円", 60, 60), ("前年より一割増えた", 160, 14)],
        [("お客様の声", 10, 18), ("とても助かった", 60, 32), ("製造業 A社", 140, 12)],
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


def test_text_whose_size_the_layout_states_may_be_the_largest() -> None:
    def build(shapes: Any) -> None:
        for place in (0, 1):
            shapes[place].text_frame.text = "2024年度の売上報告"
        shapes.title._element.getparent().remove(shapes.title._element)
        add_text(shapes, 620, 5, "社外秘", size=9)

    assert HEADING not in {block.kind for block in blocks_of_slide(build, layout=1)}


def test_text_at_the_foot_of_most_slides_is_running_text() -> None:
    presentation = pptx.Presentation()
    for number in range(4):
        shapes = presentation.slides.add_slide(presentation.slide_layouts[6]).shapes
        add_text(shapes, 40, 100, "会社概要")
        if number:
            add_text(shapes, 40, 505, "社外秘 2024")
            add_text(shapes, 600, 505, f"{number + 1}")
        add_text(shapes, 300, 505, f"注記{'あいうえ'[number]}")
    pages = parse_pptx(saved(presentation), 1000, 1 << 26, 10).pages
    running = [[block.text for block in page.blocks if block.kind is BlockKind.HEADER] for page in pages]
    assert running == [[], *(["社外秘 2024", f"{number}"] for number in (2, 3, 4))]


def test_amounts_at_the_foot_of_slides_are_text() -> None:
    presentation = pptx.Presentation()
    for number in range(4):
        shapes = presentation.slides.add_slide(presentation.slide_layouts[6]).shapes
        add_text(shapes, 40, 100, "売上の推移")
        add_text(shapes, 40, 505, f"合計: {number + 1}000円（税込）")
        add_text(shapes, 600, 505, f"p. {number + 3} / 9")
    pages = parse_pptx(saved(presentation), 1000, 1 << 26, 10).pages
    running = [[block.text for block in page.blocks if block.kind is BlockKind.HEADER] for page in pages]
    assert running == [[f"p. {number} / 9"] for number in (3, 4, 5, 6)]


BODY = "本日の会議で決めることを、順に説明する。"


@pytest.mark.parametrize(
    ("texts", "title"),
    [
        ([("目的", 20, 18), (BODY, 60, 18)], "目的"),
        ([("・目次", 20, 24), ("1. 背景\n2. 提案", 80, 24)], "・目次"),
        ([("目的", 20, 18), (BODY * 5, 60, 24)], None),
        ([("目的", 200, 18), (BODY, 260, 18)], None),
        ([("ここで決める。", 20, 18), (BODY, 60, 18)], None),
    ],
)
def test_a_line_at_the_head_of_a_slide_is_its_title_above_a_body(
    texts: list[tuple[str, int, int]], title: str | None
) -> None:
    def build(shapes: Any) -> None:
        for text, top, size in texts:
            for paragraph in add_text(shapes, 40, top, text).text_frame.paragraphs:
                paragraph.runs[0].font.size = Pt(size)

    assert [block.text for block in blocks_of_slide(build) if block.kind is HEADING] == [title] * (title is not None)


def test_a_line_beside_others_is_no_title() -> None:
    def build(shapes: Any) -> None:
        add_text(shapes, 40, 20, "左の欄", size=18)
        add_text(shapes, 400, 22, "右の欄", size=18)
        add_text(shapes, 40, 100, BODY, size=18)

    assert HEADING not in {block.kind for block in blocks_of_slide(build)}


def test_a_placeholder_at_the_head_of_a_slide_without_a_title_is_its_title() -> None:
    def build(shapes: Any) -> None:
        shapes.title._element.getparent().remove(shapes.title._element)
        shapes[0].text_frame.text = "交渉の戦略"
        shapes[0].left, shapes[0].top, shapes[0].width, shapes[0].height = Pt(40), Pt(10), Pt(600), Pt(40)
        shapes[1].text_frame.text = "相手の提案から協調性を求める"

    assert shown(blocks_of_slide(build, layout=3)) == [
        (HEADING, "交渉の戦略"),
        (BlockKind.LIST_ITEM, "相手の提案から協調性を求める"),
    ]


def test_a_slide_with_a_title_has_no_other_one() -> None:
    def build(shapes: Any) -> None:
        shapes.title.text = "題"
        add_text(shapes, 40, 5, "大きな字", size=60)

    assert shown(blocks_of_slide(build, layout=5)) == [(HEADING, "題"), (PARAGRAPH, "大きな字")]


@pytest.mark.parametrize("digits", [400, 5_000])
def test_numbers_of_any_length_in_attributes_are_read(digits: int) -> None:
    def build(shapes: Any) -> None:
        add_text(shapes, 40, 20, "題名", size=24)
        add_text(shapes, 40, 100, "本文", size=12)
        shapes[1].text_frame.paragraphs[0]._p.get_or_add_pPr().set("lvl", "1" * digits)
        shapes[1].text_frame.paragraphs[0].runs[0]._r.rPr.set("sz", "1" * digits)
        table = shapes.add_table(1, 2, Pt(20), Pt(200), Pt(400), Pt(100))
        table.table.cell(0, 0).text = "値"
        table.table.cell(0, 0)._tc.set("gridSpan", "1" * digits)
        for offset in table._element.iter("{*}off"):
            offset.set("x", "1" * digits)

    assert [block.text for block in blocks_of_slide(build)][:2] == ["題名", "本文"]


def table_of(rows: list[list[str]], change: Callable[[Any], None] | None = None, *, first_row: bool = False) -> Block:
    def build(shapes: Any) -> None:
        table = shapes.add_table(len(rows), len(rows[0]), Pt(20), Pt(20), Pt(400), Pt(100)).table
        table.first_row = first_row
        for row, texts in enumerate(rows):
            for column, text in enumerate(texts):
                table.cell(row, column).text = text
        if change is not None:
            change(table)

    (block,) = blocks_of_slide(build)
    assert block.kind is TABLE
    return block


@pytest.mark.parametrize(
    ("fills", "bold", "expected"),
    [
        ({0: DARK}, 0, 1),
        ({0: DARK, 2: LIGHT}, 0, 1),
        ({}, 1, 1),
        ({}, 0, 0),
        (dict.fromkeys(range(4), DARK), 0, 0),
        ({0: LIGHT, 2: LIGHT}, 0, 0),  # stripes
        ({0: WHITE}, 0, 0),
        ({}, 4, 0),
        ({0: DARK, 1: DARK, 2: LIGHT, 3: LIGHT}, 0, 0),  # groups
        ({0: DARK, 1: LIGHT, 2: LIGHT, 3: LIGHT}, 0, 1),
        ({0: DARK, 1: DARK}, 0, 0),
    ],
)
def test_rows_of_slide_tables_with_a_look_of_their_own_are_headers(
    fills: dict[int, tuple[int, int, int]], bold: int, expected: int
) -> None:
    def set_off(table: Any) -> None:
        for place, row in enumerate(table.rows):
            for cell in row.cells:
                if color := fills.get(place):
                    cell.fill.solid()
                    cell.fill.fore_color.rgb = RGBColor(*color)  # type: ignore[no-untyped-call]
                cell.text_frame.paragraphs[0].runs[0].font.bold = place < bold

    rows = [["版", "日付"], ["一", "四月"], ["二", "五月"], ["三", "六月"]]
    assert table_of(rows, set_off).header_row_count == expected


def test_a_marked_row_above_one_other_is_no_header() -> None:
    def mark(table: Any) -> None:
        for cell in table.rows[0].cells:
            cell.fill.solid()
            cell.fill.fore_color.rgb = RGBColor(*DARK)  # type: ignore[no-untyped-call]

    rows = [["重要", "本番環境"], ["通常", "検証環境"]]
    assert table_of(rows, mark).header_row_count == 0
    assert table_of([*rows, ["低", "開発環境"], ["無", "予備"]], mark).header_row_count == 1


@pytest.mark.parametrize("first_row", [True, False])
def test_names_below_names_of_slide_tables_are_headers(first_row: bool) -> None:
    def merge(table: Any) -> None:
        table.cell(0, 0).merge(table.cell(1, 0))
        table.cell(0, 1).merge(table.cell(0, 2))

    names = [["狙い", "利点", ""], ["", "効率", "低減"]]
    assert table_of([*names, ["調査", "高い", "低い"]], merge, first_row=first_row).header_row_count == 2
    assert table_of([*names, ["調査", "高い", "低い"]]).header_row_count == 0


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([["開発言語", "Python"], ["環境", "社内"], ["担当者", "山田"]], 0),
        ([["項目", "内容"], ["開発言語", "Python"], ["環境", "社内"]], 1),
        ([["料理名", "熱量"], ["天津飯", "八百"], ["焼き魚", "三百"]], 1),
    ],
)
def test_the_look_of_a_slide_table_makes_no_header_of_labels_and_values(rows: list[list[str]], expected: int) -> None:
    assert table_of(rows, first_row=True).header_row_count == expected


LONG = "既存の手順では担当者が一件ずつ目で見て確かめており、件数が増えると間に合わない"


@pytest.mark.parametrize(
    ("lower", "expected"),
    [
        ((LONG, LONG[::-1]), ["目的", LONG, "対象", LONG[::-1]]),
        (("削除", "詳細"), ["目的", "対象", "削除", "詳細"]),  # a grid of words
        ((LONG, ""), ["目的", "対象", LONG]),
    ],
)
def test_labels_side_by_side_are_read_with_the_texts_beneath_them(lower: tuple[str, str], expected: list[str]) -> None:
    def build(shapes: Any) -> None:
        add_text(shapes, 40, 100, expected[0])  # its shadow
        for left, label, text in zip((40, 380), ("目的", "対象"), lower, strict=True):
            add_text(shapes, left, 100, label)
            if text:
                add_text(shapes, left, 132, text)

    assert [block.text for block in blocks_of_slide(build)] == [expected[0], *expected]


@pytest.mark.parametrize("is_outlined", [True, False])
@pytest.mark.parametrize("is_long", [True, False])
@pytest.mark.parametrize("has_names", [True, False])
def test_tables_of_boxes_are_read_by_row(is_outlined: bool, is_long: bool, has_names: bool) -> None:
    good, bad = (LONG, LONG[::-1]) if is_long else ("良", "否")
    rows = [["項目", "現状", "課題"], *([name, f"{name}{good}", f"{name}{bad}"] for name in ("性能", "運用"))]
    rows = rows if has_names else [row[1:] for row in rows]

    def build(shapes: Any) -> None:
        for row, texts in enumerate(rows):
            for column, text in enumerate(texts):
                place = Pt(20 + 200 * column), Pt(60 + 60 * row), Pt(200), Pt(60)
                shapes.add_shape(MSO_SHAPE.RECTANGLE, *place).text_frame.text = text
        if is_outlined:
            shapes.add_shape(MSO_SHAPE.RECTANGLE, Pt(218), Pt(58), Pt(204), Pt(184))

    assert [block.text for block in blocks_of_slide(build)] == [text for row in rows for text in row]


def test_a_bullet_in_a_box_of_its_own_begins_the_text_beside_it() -> None:
    def build(shapes: Any) -> None:
        for top, text in ((100, "商品の登録"), (160, "注文の確認")):
            shapes.add_textbox(Pt(40), Pt(top), Pt(20), Pt(30)).text_frame.text = "●"
            add_text(shapes, 62, top + 4, text)
        for top, sign in ((220, "＋"), (280, "✓")):  # neither a bullet nor one beside a text
            shapes.add_textbox(Pt(40), Pt(top), Pt(20), Pt(30)).text_frame.text = sign
        add_text(shapes, 62, 220, "税")
        add_text(shapes, 200, 280, "合計")

    texts = [block.text for block in blocks_of_slide(build)]
    assert texts == ["● 商品の登録", "● 注文の確認", "＋", "税", "✓", "合計"]


@pytest.mark.parametrize(
    ("signs", "lines", "expected"),
    [
        ("✓☐✓", "要件\n設計\n試験", ["✓ 要件\n☐ 設計\n✓ 試験"]),
        ("●○", "実績\n計画", ["● 実績\n○ 計画"]),
        ("●○", "実績\n計画\n予測", ["●", "実績\n計画\n予測", "○"]),
        ("●", "実績\n計画", ["● 実績\n計画"]),
    ],
)
def test_bullets_beside_one_text_begin_its_lines(signs: str, lines: str, expected: list[str]) -> None:
    def build(shapes: Any) -> None:
        for place, sign in enumerate(signs):
            shapes.add_textbox(Pt(40), Pt(100 + 20 * place), Pt(15), Pt(18)).text_frame.text = sign
        shapes.add_textbox(Pt(60), Pt(98), Pt(300), Pt(62)).text_frame.text = lines

    assert [block.text for block in blocks_of_slide(build)] == expected


def test_the_bullet_of_a_title_begins_it() -> None:
    def build(shapes: Any) -> None:
        shapes.add_textbox(Pt(20), Pt(12), Pt(18), Pt(26)).text_frame.text = "※"
        add_text(shapes, 40, 10, "注意事項", size=28)
        add_text(shapes, 40, 80, "本文", size=12)

    title, text = blocks_of_slide(build)
    assert (title.kind, title.text, text.section) == (HEADING, "※ 注意事項", ("※ 注意事項",))


def flow_chart(shapes: Any, lane_names: tuple[str, str]) -> None:
    """Two frames, a name at the left end of each, and a step in each that a connector joins."""
    steps = []
    for top, name, text in zip((50, 200), lane_names, ("申請する", "承認する"), strict=True):
        shapes.add_shape(MSO_SHAPE.RECTANGLE, Pt(20), Pt(top), Pt(600), Pt(120))
        if name:
            shapes.add_textbox(Pt(30), Pt(top + 40), Pt(80), Pt(30)).text_frame.text = name
        step = shapes.add_shape(MSO_SHAPE.RECTANGLE, Pt(200), Pt(top + 30), Pt(120), Pt(60))
        step.text_frame.text = text
        steps.append(step)
    line = shapes.add_connector(MSO_CONNECTOR.STRAIGHT, 0, 0, 0, 0)
    line.begin_connect(steps[0], 2)
    line.end_connect(steps[1], 0)


@pytest.mark.parametrize(
    ("lane_names", "expected"),
    [
        (("社員", "上長"), "[社員] 申請する\n[上長] 承認する\n[社員] 申請する — [上長] 承認する"),
        (("", ""), "申請する\n承認する\n申請する — 承認する"),
    ],
)
def test_steps_of_a_flow_chart_begin_with_the_names_of_their_lanes(lane_names: tuple[str, str], expected: str) -> None:
    blocks = blocks_of_slide(lambda shapes: flow_chart(shapes, lane_names))
    assert [block.text for block in blocks if block.kind is BlockKind.DIAGRAM] == [expected]
    assert [block.text for block in blocks if block.kind is PARAGRAPH] == [name for name in lane_names if name]


@pytest.mark.parametrize(
    ("joins_names", "expected"),
    [(True, ["計画 — 実行", "実行 — 評価"]), (False, ["計画 目標 — 実行 手順", "実行 手順 — 評価 結果"])],
)
def test_panels_are_no_lanes_where_connectors_join_them_or_their_names(joins_names: bool, expected: list[str]) -> None:
    def build(shapes: Any) -> None:
        ends = []
        for place, (name, text) in enumerate((("計画", "目標"), ("実行", "手順"), ("評価", "結果"))):
            panel = shapes.add_shape(MSO_SHAPE.RECTANGLE, Pt(20), Pt(60 + 90 * place), Pt(600), Pt(60))
            box = shapes.add_shape(MSO_SHAPE.RECTANGLE, Pt(30), Pt(65 + 90 * place), Pt(100), Pt(50))
            box.text_frame.text = name
            add_text(shapes, 160, 75 + 90 * place, text)
            ends.append(box if joins_names else panel)
        for begin, end in pairwise(ends):
            line = shapes.add_connector(MSO_CONNECTOR.STRAIGHT, 0, 0, 0, 0)
            line.begin_connect(begin, 2)
            line.end_connect(end, 0)

    (diagram,) = (block for block in blocks_of_slide(build) if block.kind is BlockKind.DIAGRAM)
    assert diagram.text.splitlines()[-2:] == expected


@pytest.mark.parametrize("rotation", ["1" * 400, "1" * 5_000, "--5"])
def test_connectors_whose_turn_is_no_number_join_shapes(rotation: str) -> None:
    def build(shapes: Any) -> None:
        add_text(shapes, 40, 20, "甲")
        add_text(shapes, 40, 200, "乙")
        line = shapes.add_connector(MSO_CONNECTOR.ELBOW, 0, 0, Pt(5), Pt(5))
        line.begin_connect(shapes[0], 2)
        line.end_connect(shapes[1], 0)
        line._element.spPr.xfrm.set("rot", rotation)

    assert [block.text for block in blocks_of_slide(build)] == ["甲\n乙\n甲 — 乙"]
