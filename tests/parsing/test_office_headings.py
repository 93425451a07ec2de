"""Headings of Word documents that no style tells, and their numbers."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from docx.oxml import parse_xml
from docx.shared import Pt
from office_building import W, read_docx

from rag_assets.contracts.causes import BlockKind
from rag_assets.contracts.content import Block


def blocks_of(build: Callable[[Any], None]) -> Sequence[Block]:
    return read_docx(build).pages[0].blocks


def headings(blocks: Sequence[Block]) -> list[str]:
    """Headings, those above each before it."""
    return [" > ".join((*block.section, block.text)) for block in blocks if block.kind is BlockKind.HEADING]


def test_articles_without_chapters_are_headings() -> None:
    lines = [
        "利用規約",
        "第1条（適用）",
        "本規約は、利用者に適用する。",
        "第２条　定義",
        "第３条（料金）無料の期間",
        "第４条 利用者は、料金を支払う。",
        "第５条（解約）14日前に知らせる",
        "第６条の規定による。",
    ]

    def build(document: Any) -> None:
        for line in lines:
            document.add_paragraph(line)

    blocks = blocks_of(build)
    assert headings(blocks) == ["第1条（適用）", "第２条 定義", "第３条（料金）無料の期間"]
    assert blocks[2].section == ("第1条（適用）",)


def plain(*lines: str) -> Callable[[Any], None]:
    def build(document: Any) -> None:
        for line in lines:
            document.add_paragraph(line)

    return build


def test_articles_below_their_titles_are_no_headings() -> None:
    lines = [
        "（目的）",
        "第1条 この規程は目的を定める。",
        "第3条 削除",
        "（任期）",
        "第4条 任期2年",
        "第5条 委員の任期は2年",
    ]
    assert headings(blocks_of(plain(*lines))) == []
    assert headings(blocks_of(plain("第1章 総則", *lines))) == [
        "第1章 総則",
        "第1章 総則 > （目的）",
        "第1章 総則 > （任期）",
    ]


def test_articles_without_brackets_are_headings_where_most_are_written_so() -> None:
    assert headings(blocks_of(plain("第1条 削除", "第2条 目的", "第3条 会員は会費を払う。", "第4条 会費"))) == [
        "第2条 目的",
        "第4条 会費",
    ]
    assert headings(blocks_of(plain("第1条 目的を定める。", "第2条 定義を定める。", "第3条 会費年額1万円"))) == []


def test_what_follows_the_articles_ends_them() -> None:
    lines = ["第1条（目的）", "定める。", "附　則", "施行する。", "別表第1（第3条関係）", "10日", "様式第1号", "氏名"]
    ends = ["附則", "別表第1（第3条関係）", "様式第1号"]
    assert headings(blocks_of(plain(*lines))) == ["第1条（目的）", *ends]
    chapters = blocks_of(plain("第2章 休暇", "第1節 総則", *lines, "第1条（施行期日）", "別紙"))
    assert headings(chapters) == [
        "第2章 休暇",
        "第2章 休暇 > 第1節 総則",
        "第2章 休暇 > 第1節 総則 > 第1条（目的）",
        *ends,
        "様式第1号 > 第1条（施行期日）",
        "別紙",
    ]
    assert headings(blocks_of(plain("申請", "別紙", "様式第1号"))) == []


def test_articles_in_a_table_of_contents_are_no_headings() -> None:
    def build(document: Any) -> None:
        style = document.styles.add_style("toc 1", 1)
        document.add_paragraph("第1条（目的）", style=style)
        document.add_paragraph("第1条（目的）\t1")
        document.add_paragraph("第1条（目的）")

    assert headings(blocks_of(build)) == ["第1条（目的）"]


def test_an_article_that_is_quoted_below_a_styled_heading_is_none() -> None:
    def build(document: Any) -> None:
        document.add_heading("休暇", 1)
        document.add_paragraph("第20条（年次有給休暇）")
        document.add_paragraph("申請は総務課に行う。")

    assert headings(blocks_of(build)) == ["休暇"]


def test_articles_stand_below_styled_chapters() -> None:
    def build(document: Any) -> None:
        document.add_heading("会則", 1)
        document.add_heading("第1章 総則", 2)
        document.add_paragraph("第1条（名称）", style="List Bullet")
        document.add_paragraph("第2条（目的）")
        document.add_heading("第2章 会員", 2)
        document.add_paragraph("第3条（入会）")

    assert headings(blocks_of(build)) == [
        "会則",
        "会則 > 第1章 総則",
        "会則 > 第1章 総則 > 第1条（名称）",
        "会則 > 第1章 総則 > 第2条（目的）",
        "会則 > 第2章 会員",
        "会則 > 第2章 会員 > 第3条（入会）",
    ]


def test_the_title_of_an_article_on_its_first_line_is_a_heading() -> None:
    def build(document: Any) -> None:
        document.add_paragraph("第1条（目的）\n本契約は、制作に関して定める。")
        document.add_paragraph("第2条（期間）")

    assert [(block.kind, block.text, block.section) for block in blocks_of(build)] == [
        (BlockKind.HEADING, "第1条（目的）", ()),
        (BlockKind.PARAGRAPH, "本契約は、制作に関して定める。", ("第1条（目的）",)),
        (BlockKind.HEADING, "第2条（期間）", ()),
    ]


def lines_of(*lines: tuple[str, bool, float]) -> Callable[[Any], None]:
    """Paragraphs with their text, whether they are bold, and their size in points."""

    def build(document: Any) -> None:
        for text, is_bold, points in lines:
            run = document.add_paragraph().add_run(text)
            run.bold, run.font.size = is_bold, Pt(points)

    return build


BODY = ("本文はこの大きさで、太字ではない。文字の多くはこの見た目である。", False, 10.5)


def test_numbered_lines_that_are_bold_or_larger_are_headings() -> None:
    lines = [
        ("1. 背景", True, 10.5),
        BODY,
        ("1.1 目的", True, 10.5),
        ("1. 太字でない項目", False, 10.5),
        BODY,
        ("２．範囲", False, 14),
        ("２．１　対象", False, 12),
        ("8.5 月の売上", True, 10.5),
        ("3. これは太字の文である。", True, 10.5),
    ]
    assert headings(blocks_of(lines_of(*lines))) == [
        "1. 背景",
        "1. 背景 > 1.1 目的",
        "２．範囲",
        "２．範囲 > ２．１ 対象",
    ]


def test_two_numbered_lines_are_no_headings() -> None:
    assert headings(blocks_of(lines_of(("1. 背景", True, 10.5), BODY, ("2. 範囲", True, 10.5)))) == []


def test_numbers_in_bold_text_alone_are_no_headings() -> None:
    lines = [(f"{number}. 項目", True, 10.5) for number in (1, 2, 3)]
    assert headings(blocks_of(lines_of(*lines, ("どの行も太字である。" * 3, True, 10.5)))) == []


def test_lines_of_contents_are_no_headings() -> None:
    lines = [(f"{number}. 概要\t{number}", True, 12) for number in (1, 2, 3)]
    assert headings(blocks_of(lines_of(BODY, *lines))) == []


def test_numbered_lines_go_on_with_styled_headings() -> None:
    def build(document: Any) -> None:
        lines_of(("1. 目次", True, 12), BODY)(document)
        document.add_heading("1. 概要", 1)
        lines_of(("1.1 目的", True, 12), BODY, ("1. 手順", True, 12), ("1.2 範囲", True, 12))(document)
        document.add_heading("2. 方式", 1)
        lines_of(BODY, ("3. 構成", True, 12))(document)

    assert headings(blocks_of(build)) == [
        "1. 概要",
        "1. 概要 > 1.1 目的",
        "1. 概要 > 1.2 範囲",
        "2. 方式",
        "3. 構成",
    ]


def test_lines_in_looks_of_their_own_are_headings() -> None:
    lines = [
        ("要件定義書", True, 18),
        ("2024年4月", False, 14),
        BODY,
        ("概要", True, 14),
        ("目的", True, 10.5),
        BODY,
        ("対象", True, 10.5),
        BODY,
        ("期限：", True, 10.5),
        BODY,
        ("図1 構成", True, 14),
        BODY,
        ("詳細", True, 14),
        ("機能", True, 10.5),
        BODY,
        ("性能", True, 10.5),
        BODY,
    ]
    assert headings(blocks_of(lines_of(*lines))) == [
        "要件定義書",
        "要件定義書 > 概要",
        "要件定義書 > 概要 > 目的",
        "要件定義書 > 概要 > 対象",
        "要件定義書 > 詳細",
        "要件定義書 > 詳細 > 機能",
        "要件定義書 > 詳細 > 性能",
    ]


def test_lines_in_a_look_stand_below_styled_headings() -> None:
    def build(document: Any) -> None:
        lines_of(("設計書", True, 24), BODY)(document)
        document.add_heading("処理", 1)
        lines_of(("登録", True, 10.5), BODY, ("更新", True, 10.5))(document)
        document.add_table(1, 2)
        document.add_heading("画面", 1)
        lines_of(("一覧", True, 10.5), BODY)(document)

    assert headings(blocks_of(build)) == ["設計書", "処理", "処理 > 登録", "処理 > 更新", "画面", "画面 > 一覧"]


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param([("強調", True), ("他の強調", True), ("次の強調", True)] * 2, id="one below the other"),
        pytest.param([("概要", True), ("必ず読むこと。", True), ("目的", True)], id="sentences among them"),
        pytest.param([("概要", True), ("目的", True)], id="two of them"),
    ],
)
def test_emphasised_lines_are_no_headings(lines: Sequence[tuple[str, bool]]) -> None:
    looks = [(text, is_bold, 10.5) for text, is_bold in lines]
    between = [] if len(looks) > 3 else [BODY]
    assert headings(blocks_of(lines_of(BODY, *(line for look in looks for line in [look, *between])))) == []


def test_marked_lines_above_others_are_headings() -> None:
    lines = ["■日時", "10月3日", "■議題", "出席の確認", "■次回", "10月10日", "【注意】詳細は別紙"]
    assert headings(blocks_of(plain(*lines))) == ["■日時", "■議題", "■次回"]
    assert headings(blocks_of(plain("■日時", "■議題", "■次回", "以上"))) == []


def test_lines_with_numbers_that_count_up_are_headings_above_others() -> None:
    lines = ["１．趣旨", "趣旨の説明。", "２．事業の状況", "状況の説明。", "３．その他", "他の説明。"]
    assert headings(blocks_of(plain(*lines))) == ["１．趣旨", "２．事業の状況", "３．その他"]
    assert headings(blocks_of(plain("1. 趣旨", "2. 状況", "3. その他", "以上"))) == []
    assert headings(blocks_of(plain("5.0 秒", "説明", "2.5 秒", "説明", "1.7 秒", "説明"))) == []


def numbered(*levels: int, definitions: str = "", number: int = 77) -> list[str]:
    """Labelled paragraphs of a numbering, one for each level."""
    level = '<w:lvl w:ilvl="{}"><w:start w:val="1"/><w:numFmt w:val="decimal"/><w:lvlText w:val="{}"/></w:lvl>'
    counted = level.format(0, "%1") + level.format(1, "%1.%2")

    def build(document: Any) -> None:
        numbering = document.part.numbering_part.element
        for identifier, content in ((77, counted), (78, '<w:styleLink w:val="L"/>' + counted), (79, definitions)):
            numbering.insert(
                0, parse_xml(f'<w:abstractNum {W} w:abstractNumId="{identifier}">{content}</w:abstractNum>')
            )
            num = f'<w:num {W} w:numId="{identifier}"><w:abstractNumId w:val="{identifier}"/></w:num>'
            numbering.append(parse_xml(num))
        for depth in levels:
            properties = document.add_paragraph("章")._p.get_or_add_pPr()
            properties.append(parse_xml(f'<w:numPr {W}><w:ilvl w:val="{depth}"/><w:numId w:val="{number}"/></w:numPr>'))

    return [block.text for block in blocks_of(build)]


def test_a_level_above_the_first_one_used_counts_as_used() -> None:
    assert numbered(1, 1, 0, 1) == ["1.1 章", "1.2 章", "2 章", "2.1 章"]


def test_a_level_deeper_than_any_counts_as_the_deepest() -> None:
    assert numbered(0, 8, 500_000_000, 1) == ["1 章", "章", "章", "1.2 章"]


def test_a_numbering_that_names_a_style_has_the_levels_of_that_style() -> None:
    assert numbered(0, 1, definitions='<w:numStyleLink w:val="L"/>', number=79) == ["1 章", "1.1 章"]
    assert numbered(0, 1, definitions='<w:numStyleLink w:val="M"/>', number=79) == ["章", "章"]


def listed(*lines: tuple[str, bool, bool], style: str = "List Number") -> Callable[[Any], None]:
    """Lines with whether they are of a list and bold."""

    def build(document: Any) -> None:
        document.add_heading("設計", 1)
        for text, is_listed, is_bold in lines:
            document.add_paragraph(style=style if is_listed else None).add_run(text).bold = is_bold

    return build


TEXT = ("本文は太字ではない。文字の多くはこの見た目である。", False, False)


def test_bold_lines_that_word_counts_are_headings_above_text() -> None:
    lines = [("目的", True, True), TEXT, ("範囲", True, True), TEXT, ("方式", True, True), TEXT]
    assert headings(blocks_of(listed(*lines))) == ["設計", "設計 > 1. 目的", "設計 > 2. 範囲", "設計 > 3. 方式"]


@pytest.mark.parametrize("style", ["List Number", "List Bullet"])
def test_bold_items_of_a_list_are_no_headings(style: str) -> None:
    items = [("目的", True, True), ("範囲", True, True), ("方式", True, True), TEXT]
    assert headings(blocks_of(listed(*items, style=style))) == ["設計"]


def test_lines_with_bullets_are_no_headings() -> None:
    lines = [("目的", True, True), TEXT, ("範囲", True, True), TEXT, ("方式", True, True), TEXT]
    assert headings(blocks_of(listed(*lines, style="List Bullet"))) == ["設計"]


def tracked(text: str) -> Any:
    return parse_xml(f'<w:ins {W} w:id="1"><w:r><w:t>{text}</w:t></w:r></w:ins>')


def test_entries_of_an_index_are_no_text_of_a_heading() -> None:
    entry = f'<w:r {W}><w:rPr><w:b/></w:rPr><w:instrText> XE "{"見出し語" * 20}" </w:instrText></w:r>'

    def build(document: Any) -> None:
        for title in ("1. 概要", "2. 対象", "3. 方法"):
            lines_of((title, True, 10.5), BODY)(document)
            document.paragraphs[-2]._p.append(parse_xml(entry))

    assert headings(blocks_of(build)) == ["1. 概要", "2. 対象", "3. 方法"]


def test_items_that_were_inserted_stand_in_their_list() -> None:
    def build(document: Any) -> None:
        for title in ("申請", "承認", "提出"):
            document.add_paragraph(style="List Number").add_run(title).bold = True
            document.add_paragraph(style="List Number")._p.append(tracked("足された項目"))
            document.add_paragraph("本文である。この見た目の文字が多い。")

    assert headings(blocks_of(build)) == []


def test_numbers_that_were_inserted_count() -> None:
    def build(document: Any) -> None:
        for number in (1, 2, 3):
            lines_of(("概要", True, 10.5), BODY)(document)
            run = tracked(f"{number}. ")
            run[0].insert(0, parse_xml(f"<w:rPr {W}><w:b/></w:rPr>"))
            document.paragraphs[-2]._p.insert(0, run)

    assert headings(blocks_of(build)) == ["1. 概要", "2. 概要", "3. 概要"]
