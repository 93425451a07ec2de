"""Long documents without pages become sections of readable length, cut where something begins."""

import time

import pytest
from golden import LIMITS
from office_building import saved

from rag_assets.contracts.causes import BlockKind, PageKind
from rag_assets.contracts.content import Block, Page
from rag_assets.parsing.parse import parse_bytes
from rag_assets.parsing.sections import divided
from rag_assets.query.results import Citation

TALK = ("The revenue of the cloud grew by a quarter.", "Costs fell because fewer servers were bought this year.")
PLANTS = ("Moss and ferns cover the shaded slope.", "The oak sheds its leaves when the nights grow cold.")


def _body(*blocks: Block) -> Page:
    return Page(1, PageKind.BODY, blocks)


def _paragraphs(sentences: tuple[str, ...], count: int) -> list[Block]:
    return [Block(BlockKind.PARAGRAPH, f"{' '.join(sentences * 3)} ({number})") for number in range(count)]


def _texts(*pages: Page) -> list[str]:
    return [block.text for page in pages for block in page.blocks]


def test_a_long_document_is_divided_and_nothing_is_lost() -> None:
    page = _body(*_paragraphs(TALK, 100))

    sections = divided(page)

    assert _texts(*sections) == _texts(page)
    assert [section.number for section in sections] == list(range(1, len(sections) + 1))
    assert {section.kind for section in sections} == {PageKind.SECTION}
    assert {section.name for section in sections} == {None}
    assert all(2_000 <= sum(map(len, _texts(section))) <= 6_000 for section in sections)


def test_a_short_document_stays_whole() -> None:
    page = _body(*_paragraphs(TALK, 20))

    assert divided(page) == (page,)


def test_a_japanese_character_counts_as_two() -> None:
    page = _body(
        *(Block(BlockKind.PARAGRAPH, "利用者の認証に失敗したときは、画面に理由を表示する。" * 4) for _ in range(60))
    )

    sections = divided(page)

    assert _texts(*sections) == _texts(page)
    assert all(1_000 <= sum(map(len, _texts(section))) <= 3_000 for section in sections)


def test_sections_begin_with_headings_and_have_their_names() -> None:
    blocks: list[Block] = []
    for chapter in ("Revenue", "Costs", "Outlook"):
        blocks += (Block(BlockKind.HEADING, chapter, section=(chapter,)), *_paragraphs(TALK, 15))

    sections = divided(_body(*blocks))

    assert [section.name for section in sections] == ["Revenue", "Costs", "Outlook"]
    assert all(section.blocks[0].kind is BlockKind.HEADING for section in sections)


def test_a_cut_falls_where_the_subject_changes() -> None:
    talk, plants = _paragraphs(TALK, 12), _paragraphs(PLANTS, 40)

    first, *_ = divided(_body(*talk, *plants))

    assert _texts(first) == [block.text for block in talk]


def test_a_speaker_begins_a_section_rather_than_stands_inside_it() -> None:
    blocks = _paragraphs(TALK, 40)
    spoken = [
        Block(BlockKind.PARAGRAPH, f"Amy Hood: {each.text}") if n % 9 == 0 else each for n, each in enumerate(blocks)
    ]

    sections = divided(_body(*spoken))

    assert len(sections) > 1
    assert all(section.blocks[0].text.startswith("Amy Hood:") for section in sections)


def test_one_paragraph_without_end_stays_whole() -> None:
    page = _body(Block(BlockKind.PARAGRAPH, "word " * 10_000))

    assert divided(page) == (page,)


def test_text_files_are_divided_and_tables_are_not() -> None:
    text = "\n\n".join(block.text for block in _paragraphs(TALK, 60)).encode()
    rows = "\n".join(["name,amount", *(f"item {number},{number * 7}" for number in range(2_000))]).encode()

    sections = parse_bytes(text, "minutes.txt", LIMITS).pages
    table = parse_bytes(rows, "items.csv", LIMITS).pages

    assert len(sections) > 2
    assert [page.kind for page in table] == [PageKind.BODY]


@pytest.mark.parametrize(
    ("format_", "label"),
    [("txt", "minutes › §3"), ("odt", "minutes › §3"), ("pdf", "minutes › p.3"), ("docx", "minutes › p.3")],
)
def test_citations_tell_sections_from_pages(format_: str, label: str) -> None:
    assert str(Citation("minutes", 3, None, None, None, format_)) == label


@pytest.mark.parametrize(("format_", "label"), [("txt", "minutes"), ("docx", "minutes"), ("odp", "minutes › p.1")])
def test_citations_number_the_first_page_of_what_has_pages(format_: str, label: str) -> None:
    assert str(Citation("minutes", 1, None, None, None, format_)) == label


@pytest.mark.parametrize(
    ("format_", "page_number", "page_name", "label"),
    [
        ("md", 1, None, "rules › Leave"),
        ("md", 3, "Travel", "rules › Leave"),
        ("docx", 1, None, "rules › Leave"),
        ("docx", 3, "Travel", "rules › Leave"),
        ("docx", 3, None, "rules › p.3 › Leave"),
        ("pdf", 3, None, "rules › p.3"),
        ("xlsx", 3, "Travel", "rules › Travel"),
    ],
)
def test_citations_of_running_text_name_the_heading_above_the_passage(
    format_: str, page_number: int, page_name: str | None, label: str
) -> None:
    assert str(Citation("rules", page_number, page_name, None, None, format_, heading="Leave")) == label


def test_dividing_takes_time_by_length() -> None:
    short, long = _body(*_paragraphs(TALK, 500)), _body(*_paragraphs(TALK, 5_000))

    began = time.perf_counter()
    divided(short)
    between = time.perf_counter()
    divided(long)
    took = time.perf_counter() - between

    assert took < 30 * max(between - began, 0.01)


def test_a_word_file_whose_breaks_do_not_tell_the_pages_is_divided() -> None:
    docx = pytest.importorskip("docx")
    document = docx.Document()
    document.add_paragraph("表紙")
    document.add_page_break()
    for number in range(60):
        document.add_paragraph(f"第{number}項 利用者の認証に失敗したときは、画面に理由を表示する。" * 4)
    data = saved(document)

    pages = parse_bytes(data, "rules.docx", LIMITS).pages

    assert {page.kind for page in pages} == {PageKind.SECTION}
    assert len(pages) > 2
    assert sum(text.startswith("第") for text in _texts(*pages)) == 60


def test_a_word_file_keeps_the_pages_that_its_breaks_tell() -> None:
    docx = pytest.importorskip("docx")
    document = docx.Document()
    for _ in range(2):
        document.add_paragraph("利用者の認証に失敗したときは、画面に理由を表示する。" * 40)
        document.add_page_break()
    grid = document.add_table(rows=2, cols=10)
    grid.rows[1].cells[0].merge(grid.rows[1].cells[9]).text = "結合した欄に長い説明を書く。" * 40
    data = saved(document)

    assert {page.kind for page in parse_bytes(data, "rules.docx", LIMITS).pages} == {PageKind.PAGE}
