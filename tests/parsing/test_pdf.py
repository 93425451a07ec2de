import re
import subprocess
import sys
import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pypdfium2
import pytest
from golden import CORPUS, needs_corpus
from office_building import shown
from pdf_building import IMAGE, JAPANESE_FONT, Piece, column, grid, make_pdf, page, show

from rag_assets.contracts.causes import BlockKind, FailureCause, PageRole
from rag_assets.contracts.errors import ParseError
from rag_assets.parsing import ocr
from rag_assets.parsing.limits import current_limits, limited
from rag_assets.parsing.pdf import rules as pdf_rules
from rag_assets.parsing.pdf import runs as pdf_runs
from rag_assets.parsing.pdf.reader import parse_pdf

HEADING, PARAGRAPH, LIST_ITEM, HEADER = BlockKind.HEADING, BlockKind.PARAGRAPH, BlockKind.LIST_ITEM, BlockKind.HEADER


def test_japanese_lines_are_joined_without_spaces() -> None:
    page = [
        (72.0, 80.0, 18.0, "第一章　概要"),
        *column(72, 120, ["この文書は受注管理システムの構成を", "定めるものである。"]),
    ]
    (page_read,) = parse_pdf(make_pdf([page]), 10).pages
    assert shown(page_read.blocks) == [
        (HEADING, "第一章 概要"),
        (PARAGRAPH, "この文書は受注管理システムの構成を定めるものである。"),
    ]
    assert page_read.blocks[1].section == ("第一章 概要",)
    assert page_read.size == (595.0, 842.0)


def test_english_lines_are_joined_with_spaces_and_without_hyphens() -> None:
    lines = ["The quick brown fox jumps over the lazy dog and runs through the for-", "est until it meets the river."]
    (page,) = parse_pdf(make_pdf([column(72, 100, lines)]), 10).pages
    assert shown(page.blocks) == [
        (PARAGRAPH, "The quick brown fox jumps over the lazy dog and runs through the forest until it meets the river.")
    ]


def _with_gap(parts: tuple[str, str, str], gap: float) -> list[Piece]:
    """Japanese, Latin and Japanese text of 10 points in one line, gaps between them."""
    before, latin, after = parts
    left, width = 72 + 10 * len(before) + gap, 5.56 * len(latin)
    return [(72, 100, 10, before), (left, 100, 10, latin), (left + width + gap, 100, 10, after)]


@pytest.mark.parametrize(
    ("parts", "gap", "expected"),
    [
        (("入社後", "6", "ヶ月継続勤務した"), 2.5, "入社後6ヶ月継続勤務した"),
        (("自主財源は", "86", "千円である"), 4, "自主財源は86千円である"),  # widened to justify the line
        (("入社後", "6", "ヶ月継続勤務した"), 7, "入社後 6 ヶ月継続勤務した"),
        (("入社後", " 6 ", "ヶ月継続勤務した"), 2.5, "入社後 6 ヶ月継続勤務した"),  # spaces that the file has
        (("宛先は", "00@000", "である"), 7, "宛先は 00@000 である"),  # 2.4 behind the address
    ],
)
def test_the_gap_between_japanese_and_latin_that_programs_insert_is_no_space(
    parts: tuple[str, str, str], gap: float, expected: str
) -> None:
    (page,) = parse_pdf(make_pdf([_with_gap(parts, gap)]), 10).pages
    assert [block.text for block in page.blocks] == [expected]


@pytest.mark.parametrize(("gap", "expected"), [(2.5, "6ヶ月を超える"), (4, "6 ヶ月を超える")])
def test_what_may_be_the_number_of_an_item_is_set_apart_by_less(gap: float, expected: str) -> None:
    piece: list[Piece] = [(72, 100, 10, "6"), (77.56 + gap, 100, 10, "ヶ月を超える")]
    (page,) = parse_pdf(make_pdf([piece]), 10).pages
    assert [block.text for block in page.blocks] == [expected]


def test_boxes_are_in_points_from_the_top_left() -> None:
    (page,) = parse_pdf(make_pdf([[(100.0, 200.0, 20.0, "HHHH")]]), 10).pages
    left, top, right, bottom = page.blocks[0].box or (0, 0, 0, 0)
    assert left == pytest.approx(100, abs=2)
    assert right == pytest.approx(100 + 4 * 0.722 * 20, abs=3)
    assert top < 200 - 14 < 200 <= bottom < 210


@pytest.mark.parametrize(
    ("rotation", "expected"), [(0, (100, 200)), (90, (842 - 200, 100)), (180, (495, 642)), (270, (200, 495))]
)
def test_boxes_follow_the_rotation_of_the_page(rotation: int, expected: tuple[float, float]) -> None:
    """The corner of the text where its baseline begins, turned clockwise with the page."""
    data = make_pdf([[(100.0, 200.0, 10.0, "HHHH")]], extra=f"/Rotate {rotation}")
    (page,) = parse_pdf(data, 10).pages
    left, top, right, bottom = page.blocks[0].box or (0, 0, 0, 0)
    assert page.size == ((842.0, 595.0) if rotation % 180 else (595.0, 842.0))
    assert left - 5 <= expected[0] <= right + 5
    assert top - 5 <= expected[1] <= bottom + 5


def test_two_columns_are_read_one_after_the_other() -> None:
    left = [f"left column line {number} of running text here" for number in range(8)]
    right = [f"right column line {number} of running text too" for number in range(8)]
    page = [(72.0, 60.0, 16.0, "A title over both of the columns")]
    for number in range(8):
        page += column(72, 100 + 14 * number, [left[number]]) + column(320, 100 + 14 * number, [right[number]])
    (page_read,) = parse_pdf(make_pdf([page]), 10).pages
    assert shown(page_read.blocks) == [
        (HEADING, "A title over both of the columns"),
        (PARAGRAPH, " ".join(left)),
        (PARAGRAPH, " ".join(right)),
    ]


def test_three_columns_are_read_one_after_the_other() -> None:
    lines = [[f"column {number} line {line} of the text" for line in range(8)] for number in range(3)]
    page = [piece for number in range(3) for piece in column(50 + 170 * number, 100, lines[number])]
    (page_read,) = parse_pdf(make_pdf([page]), 10).pages
    assert [block.text for block in page_read.blocks] == [" ".join(part) for part in lines]


def side_by_side(lefts: Sequence[str], rights: Sequence[str]) -> list[Piece]:
    return [*column(72, 100, list(lefts)), *column(250, 100, list(rights))]


DATES = [
    "Wednesday, January 1, 2025",
    "Monday, May 26, 2025",
    "Friday, July 4, 2025",
    "Monday, September 1, 2025",
    "Friday, November 28, 2025",
    "Thursday, November 27, 2025",
]
DAYS = [
    "New Years Day",
    "Memorial Day",
    "Independence Day July 4th",
    "Labor Day in autumn",
    "The day after it",
    "Thanksgiving Day",
]
JAPANESE_DATES = [
    "令和７年１月１日（水）",
    "令和７年５月５日（月）",
    "令和７年８月11日（月）",
    "令和７年10月13日（月）",
    "令和７年11月３日（月）",
    "令和７年12月29日（月）",
]
JAPANESE_DAYS = [
    "元日のお休み",
    "こどもの日のお休み",
    "山の日のお休み",
    "スポーツの日のお休み",
    "文化の日のお休み",
    "年末のお休みの初日",
]
LABELS = [
    "Name of the employee:",
    "Department assigned:",
    "Supervisor in charge:",
    "Kind of contract:",
    "Hours of a week:",
    "Place of work:",
]


@pytest.mark.parametrize(
    ("lefts", "rights"),
    [
        (DATES, DAYS),
        (DAYS, DATES),
        (["Date of the holiday", *DATES], ["Name of holiday", *DAYS]),
        (JAPANESE_DATES, JAPANESE_DAYS),
        (
            LABELS,
            [
                "Mary Jones Smith",
                "Sales and marketing",
                "John Peter Miller",
                "Without an end",
                "Thirty five or less",
                "Berlin or Hamburg",
            ],
        ),
    ],
    ids=["dates first", "dates last", "a header", "Japanese dates", "labels"],
)
def test_lines_beside_dates_or_labels_are_rows(lefts: list[str], rights: list[str]) -> None:
    (page_read,) = parse_pdf(make_pdf([side_by_side(lefts, rights)]), 10).pages
    (block,) = page_read.blocks
    lines = [f"{left} {right}" for left, right in zip(lefts, rights, strict=True)]
    assert block.text.replace(" | ", " ").split("\n") == lines
    assert (block.kind is BlockKind.TABLE) == (rights[-1] != DATES[-1])  # the cells of which are long


@pytest.mark.parametrize(
    ("lefts", "rights"),
    [
        ([f"04-{number} Edit the customer" for number in range(1, 7)], DAYS),
        ([f"Step {number}: open the lid" for number in range(1, 7)], DAYS),
        (DATES, [date.replace("2025", "2026") for date in DATES]),
        (LABELS, [f"Number of the {thing}:" for thing in ("weeks", "days", "rooms", "doors", "cars", "keys")]),
        (
            ["Smith and Jones 2019", "Miller and others 2020", "Brown and White 2021", "Green and Black 2018"],
            [
                "The gate was built of red",
                "bricks which came from the",
                "river bank near the town, so",
                "that it was cheap to make.",
            ],
        ),
        (
            ["the first of May 2025 is", "a day on which we rest,", "and so are June 9, 2025", "and October 3, 2025;"],
            [
                "nobody works on a day",
                "like these, nor may anyone",
                "be asked to do so, unless",
                "the board wishes it.",
            ],
        ),
    ],
    ids=[
        "numbered list",
        "steps",
        "dates on both sides",
        "labels on both sides",
        "works beside prose",
        "prose with dates",
    ],
)
def test_lists_and_prose_side_by_side_are_columns(lefts: list[str], rights: list[str]) -> None:
    (page_read,) = parse_pdf(make_pdf([side_by_side(lefts, rights)]), 10).pages
    text = " ".join(block.text for block in page_read.blocks).replace("\n", " ")
    assert text == " ".join([*lefts, *rights])


def test_prose_beside_a_schedule_is_a_column_of_its_own() -> None:
    prose = [
        "The board met on the first day of",
        "the month and talked about all the",
        "plans that had been made for the",
        "next year, which were many and very",
        "long, so that nobody could read them",
        "before the lunch was served at noon.",
    ]
    pieces = [*column(40, 100, prose), *column(260, 100, DATES), *column(430, 100, DAYS)]
    (page_read,) = parse_pdf(make_pdf([pieces]), 10).pages
    assert page_read.blocks[0].text.replace("\n", " ") == " ".join(prose)
    rows = "\n".join(block.text for block in page_read.blocks[1:]).replace(" | ", " ").split("\n")
    assert rows == [f"{date} {day}" for date, day in zip(DATES, DAYS, strict=True)]


def test_rows_without_rules_are_a_table() -> None:
    page = [
        piece
        for number in range(8)
        for piece in (
            (72.0, 100.0 + 14 * number, 10.0, f"item{number}"),
            (300.0, 100.0 + 14 * number, 10.0, f"{number}.5"),
        )
    ]
    (page_read,) = parse_pdf(make_pdf([page]), 10).pages
    (table,) = page_read.blocks
    assert table.kind is BlockKind.TABLE
    assert table.text == "\n".join(f"item{number} | {number}.5" for number in range(8))
    assert [row.cells for row in table.rows] == [(f"item{number}", f"{number}.5") for number in range(8)]


VERTICAL = ["縦書きの文章は右から", "左へと行を進めるもの", "である。"]


def test_vertical_writing() -> None:
    page = [(500.0 - 20 * number, 100.0, 12.0, line) for number, line in enumerate(VERTICAL)]
    (page_read,) = parse_pdf(make_pdf([page], vertical=True), 10).pages
    assert shown(page_read.blocks) == [(PARAGRAPH, "".join(VERTICAL))]


@pytest.mark.parametrize("backwards", [False, True])
def test_vertical_writing_set_glyph_by_glyph(backwards: bool) -> None:
    """In the order of the file the columns may come from the left, and every glyph is a line of its own."""
    page = [
        (500.0 - 20 * number, 100.0 + 13 * place, 12.0, character)
        for number, line in enumerate(VERTICAL)
        for place, character in enumerate(line)
    ]
    (page_read,) = parse_pdf(make_pdf([page[::-1] if backwards else page]), 10).pages
    assert shown(page_read.blocks) == [(PARAGRAPH, "".join(VERTICAL))]


def test_text_of_fonts_that_neither_the_file_nor_the_machine_has_is_read(tmp_path: Path) -> None:
    """In a process of its own, where pdfium is told to look for fonts elsewhere."""
    vertical = [(500.0 - 20 * number, 100.0, 12.0, line) for number, line in enumerate(VERTICAL)]
    alone = [(100.0, 100.0, 12.0, "他の NMU: 10"), (172.0, 100.0, 12.0, "日"), (186.0, 100.0, 12.0, "以内")]
    paths = [tmp_path / "vertical.pdf", tmp_path / "alone.pdf"]
    paths[0].write_bytes(make_pdf([[(72.0, 72.0, 12.0, "Title")], vertical], vertical=True))
    paths[1].write_bytes(make_pdf([alone]))
    script = f"""
        import ctypes
        from pathlib import Path
        import pypdfium2
        from pypdfium2 import raw
        raw.FPDF_DestroyLibrary()
        folders = (ctypes.c_char_p * 2)(b"/nowhere", None)
        settings = raw.FPDF_LIBRARY_CONFIG(version=2)
        settings.m_pUserFontPaths = ctypes.cast(folders, type(settings.m_pUserFontPaths))
        raw.FPDF_InitLibraryWithConfig(settings)
        from rag_assets.parsing.pdf.reader import parse_pdf
        for path in {list(map(str, paths))!r}:
            document = parse_pdf(Path(path).read_bytes(), 10)
            print([block.text for page in document.pages for block in page.blocks], document.failures)
    """
    result = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True)
    expected = [["Title", "".join(VERTICAL)], ["他の NMU: 10 日以内"]]
    assert result.stdout.splitlines() == [f"{blocks} ()" for blocks in expected]


def test_widely_spaced_letters_are_not_vertical_writing() -> None:
    page = [
        (100.0 + 30 * place, 100.0 + 40 * number, 12.0, character)
        for number, line in enumerate(VERTICAL)
        for place, character in enumerate(line)
    ]
    (page_read,) = parse_pdf(make_pdf([page]), 10).pages
    assert re.sub(r"[\s|]", "", "".join(block.text for block in page_read.blocks)) == "".join(VERTICAL)


def test_tiers_of_vertical_writing_are_read_one_after_the_other() -> None:
    tiers = [[f"第{tier}段の{line}行目の文字列。" for line in range(5)] for tier in range(2)]
    page = [
        (500.0 - 20 * number, 100.0 + 300 * tier, 12.0, line)
        for tier in range(2)
        for number, line in enumerate(tiers[tier])
    ]
    (page_read,) = parse_pdf(make_pdf([page], vertical=True), 10).pages
    assert "".join(block.text for block in page_read.blocks) == "".join(map("".join, tiers))


def test_vertical_paragraphs_begin_set_in() -> None:
    lines = ["　最初の段落の文字が並ぶ", "ここまでが最初の段落。", "　次の段落が始まるのだ", "そして終わる。"]
    page = [(500.0 - 20 * number, 100.0, 12.0, line) for number, line in enumerate(lines)]
    (page_read,) = parse_pdf(make_pdf([page], vertical=True), 10).pages
    assert [block.text for block in page_read.blocks] == [
        "最初の段落の文字が並ぶここまでが最初の段落。",
        "次の段落が始まるのだそして終わる。",
    ]


def test_running_headers_and_page_numbers_are_headers() -> None:
    pages: list[list[Piece] | str] = [
        [
            (72.0, 40.0, 9.0, "Design of the system"),
            *column(72, 200, [f"Body {number} text."]),
            (290.0, 810.0, 9.0, f"{number}"),
        ]
        for number in range(1, 5)
    ]
    document = parse_pdf(make_pdf(pages), 10)
    assert [shown(page.blocks) for page in document.pages] == [
        [(HEADER, "Design of the system"), (PARAGRAPH, f"Body {number} text."), (HEADER, f"{number}")]
        for number in range(1, 5)
    ]


def test_headings_make_sections_over_pages() -> None:
    pages: list[list[Piece] | str] = [
        [
            (72.0, 100.0, 20.0, "Manual"),
            (72.0, 140.0, 14.0, "Install"),
            *column(72, 180, ["Body text of the first part."]),
        ],
        [
            *column(72, 180, ["More text, on the next page."]),
            (72.0, 240.0, 14.0, "Run"),
            *column(72, 280, ["Last text here."]),
        ],
    ]
    blocks = [block for page in parse_pdf(make_pdf(pages), 10).pages for block in page.blocks]
    assert [block.section for block in blocks] == [
        (),
        ("Manual",),
        ("Manual", "Install"),
        ("Manual", "Install"),
        ("Manual",),
        ("Manual", "Run"),
    ]


def test_list_items() -> None:
    texts = ["(1) first of all the points that are made", "(2) second point", "・第三の項目", "o 第四の項目"]
    page = column(72, 100, texts)
    (page_read,) = parse_pdf(make_pdf([page]), 10).pages
    assert [kind for kind, _ in shown(page_read.blocks)] == [LIST_ITEM] * 4


def test_letters_of_a_font_of_symbols_are_the_bullets_that_they_show() -> None:
    font = "/W << /Type /Font /Subtype /TrueType /BaseFont /ABCDEF+Wingdings-Regular /Encoding /WinAnsiEncoding >>"
    bullets = [f"BT /W 10 Tf 72 {742 - 14 * number} Td ({letter}) Tj ET" for number, letter in enumerate("lu")]
    texts = column(86, 100, ["lanterns, which are lit", "umbrellas, which are shut"])
    (read,) = parse_pdf(make_pdf([page(texts, "\n".join(bullets))], fonts=font), 10).pages
    assert shown(read.blocks) == [(LIST_ITEM, "• lanterns, which are lit"), (LIST_ITEM, "• umbrellas, which are shut")]


@pytest.mark.parametrize(("name", "sign"), [("ABCDEF+SymbolMT", "•"), ("SegoeUISymbol", "§")])
def test_a_sign_of_a_font_that_shows_it_stays(name: str, sign: str) -> None:
    font = f"/W << /Type /Font /Subtype /TrueType /BaseFont /{name} /Encoding /WinAnsiEncoding >>"
    texts = column(86, 100, ["the fifth part of the act"])
    (read,) = parse_pdf(make_pdf([page(texts, "BT /W 10 Tf 72 742 Td (\247) Tj ET")], fonts=font), 10).pages
    assert [block.text for block in read.blocks] == [f"{sign} the fifth part of the act"]


@pytest.mark.parametrize(
    ("ends", "role"),
    [
        (("p.1", "p.1", "P.3", "p.4", "p.5", "p.5"), PageRole.CONTENTS),
        (("5",) * 6, None),
        (("100", "120", "150", "180", "200", "300"), None),
    ],
)
def test_a_page_of_titles_with_numbers_of_pages_is_one_of_contents(
    ends: tuple[str, ...], role: PageRole | None
) -> None:
    titles = column(72, 100, [f"Question {letter}: what is to be done?" for letter in "ABCDEF"])
    numbers = [(500.0, 100.0 + 14 * number, 10.0, end) for number, end in enumerate(ends)]
    pages: list[list[Piece] | str] = [
        [(72.0, 60.0, 16.0, "Questions"), *titles, *numbers],
        column(72, 100, ["Answers"]),
    ]
    assert parse_pdf(make_pdf(pages), 10).pages[0].role is role


@pytest.mark.parametrize(("name", "role"), [("優先度", None), ("ページ", PageRole.CONTENTS), ("頁", PageRole.CONTENTS)])
def test_a_table_by_order_of_priority_is_no_page_of_contents(name: str, role: PageRole | None) -> None:
    rows = [("番号", "要件", name), *((f"R{number}", "検索する", str(1 + number // 3)) for number in range(9))]
    xs, ys = [70.0, 170.0, 370.0, 470.0], [100.0 + 20 * number for number in range(len(rows) + 1)]
    texts = [
        (x + 5, y + 14, 10.0, text) for y, row in zip(ys, rows, strict=False) for x, text in zip(xs, row, strict=False)
    ]
    read = parse_pdf(make_pdf([page(texts, grid(xs, ys)), column(72, 100, [PROSE])]), 10).pages
    assert read[0].role is role


def test_titles_of_chapters_in_the_margin_are_headers() -> None:
    """They change from page to page, but stand at one height, apart from the text."""
    pages: list[list[Piece] | str] = [
        [
            (72.0, 40.0, 9.0, title),
            *column(72, 120, [f"{title} begins with this line.", "It goes on with another one."]),
        ]
        for title in ("Preface", "Method", "Results", "Outlook", "Sources")
    ]
    kinds = [[kind for kind, _ in shown(page.blocks)] for page in parse_pdf(make_pdf(pages), 10).pages]
    assert kinds == [[HEADER, PARAGRAPH]] * 5


def test_bookmarks_are_headings_and_sections() -> None:
    outline = "<< /Title ({}) /Parent 9 0 R /Dest [{} 0 R /XYZ 0 {} 0] {} >>"
    more = (
        "<< /Type /Outlines /First 10 0 R /Last 11 0 R /Count 2 >>",
        outline.format("Preparing", 13, 800, "/Next 11 0 R /First 12 0 R /Last 12 0 R /Count 1"),
        outline.format("Cleaning", 15, 800, "/Prev 10 0 R"),
        outline.format("Not in the text", 13, 700, "").replace("/Parent 9", "/Parent 10"),
    )
    pages: list[list[Piece] | str] = [
        [
            *column(72, 80, ["1. Preparing"]),
            *column(72, 120, ["Read this before you begin."]),
            *column(72, 200, ["Then begin."]),
        ],
        [*column(72, 80, ["Before the part."]), *column(72, 120, ["2. Cleaning"]), *column(72, 160, ["Wipe it."])],
    ]
    document = parse_pdf(make_pdf(pages, catalog="/Outlines 9 0 R", more=more), 10)
    assert [(block.kind, block.text, block.section) for page in document.pages for block in page.blocks] == [
        (HEADING, "1. Preparing", ()),
        (PARAGRAPH, "Read this before you begin.", ("1. Preparing",)),
        (PARAGRAPH, "Then begin.", ("1. Preparing", "Not in the text")),
        (PARAGRAPH, "Before the part.", ("1. Preparing", "Not in the text")),
        (HEADING, "2. Cleaning", ()),
        (PARAGRAPH, "Wipe it.", ("2. Cleaning",)),
    ]


def test_a_cyclic_outline_ends() -> None:
    more = (
        "<< /Type /Outlines /First 10 0 R /Last 10 0 R >>",
        "<< /Title (Round) /Dest [11 0 R /Fit] /Next 10 0 R /First 10 0 R >>",
    )
    document = parse_pdf(make_pdf([column(72, 100, ["Text."])], catalog="/Outlines 9 0 R", more=more), 10)
    assert [block.text for block in document.pages[0].blocks] == ["Text."]


@pytest.mark.parametrize(
    ("text", "uri", "expected"),
    [
        ("the manual", "https://example.org/manual", "the manual <https://example.org/manual>"),
        ("https://example.org/manual", "https://example.org/manual", "https://example.org/manual"),
        ("example.org", "https://example.org/", "example.org"),
        ("the manual", "javascript:alert", "the manual"),
    ],
)
def test_targets_of_links_stand_behind_their_text(text: str, uri: str, expected: str) -> None:
    link = f"<< /Type /Annot /Subtype /Link /Rect [70 730 400 760] /A << /S /URI /URI ({uri}) >> >>"
    (page,) = parse_pdf(make_pdf([column(72, 100, [text])], extra=f"/Annots [{link}]"), 10).pages
    assert [block.text for block in page.blocks] == [expected]


def test_a_page_without_text_layer_is_a_failure_of_that_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ocr, "is_installed", lambda: False)
    document = parse_pdf(make_pdf([column(72, 100, ["text"]), IMAGE, ""]), 10)
    assert [len(page.blocks) for page in document.pages] == [1, 0, 0]
    (failure,) = document.failures
    assert (failure.cause, failure.page_number) == (FailureCause.NO_TEXT, 2)
    assert failure.message == "page 2 has no usable text layer: install rag-assets[ocr] to have it read"


def test_pages_are_limited() -> None:
    with pytest.raises(ParseError, match="3 pages, limit 2") as caught:
        parse_pdf(make_pdf(["", "", ""]), 2)
    assert caught.value.cause is FailureCause.TOO_LARGE


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Operating manual", "Operating manual"),
        ("Microsoft Word - a.doc", None),
        ("untitled", None),
        ("report.indd", None),
        ("", None),
        ("2023-01", None),
    ],
)
def test_titles(title: str, expected: str | None) -> None:
    assert parse_pdf(make_pdf([column(72, 100, ["text"])], info=f"/Title ({title})"), 10).title == expected


@needs_corpus
def test_no_text_of_the_corpus_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every character that pdfium extracts stands in some block, marks that stand for nothing aside."""
    monkeypatch.setattr(ocr, "is_installed", lambda: False)
    paths = sorted(CORPUS.glob("*_pdf/*.pdf")) + sorted(CORPUS.glob("encrypted_empty_password/*.pdf"))
    assert len(paths) > 20
    for path in paths:
        data = path.read_bytes()
        if len(data) > 400_000:
            continue
        wanted: Counter[str] = Counter()
        with pypdfium2.PdfDocument(data) as document:
            for page in document:
                text_page = page.get_textpage()
                wanted.update(re.sub(r"[\s.…\x00-\x1f\ufffe\uf000-\uf0ff]", "", text_page.get_text_range()))
                text_page.close()
                page.close()
        found = Counter("".join(block.text for page in parse_pdf(data, 1000).pages for block in page.blocks))
        lost = wanted - found
        assert lost.total() <= wanted.total() * 0.005, (path.name, lost)


@pytest.mark.parametrize(
    "note",
    [
        "（単位：百万円）",
        "(単位：千円)",
        "【単位：人】",
        "単位：円、％",
        "（百万円）",
        "(Unit: million yen)",
        "(Millions of yen)",
    ],
)
@pytest.mark.parametrize("size", [10.0, 13.0])
def test_a_unit_note_is_no_section(note: str, size: float) -> None:
    """Also where it is set in larger type than the text."""
    page = [
        (72.0, 80.0, 18.0, "連結貸借対照表"),
        *column(72, 120, ["この表は期末の財産の状況を示す。金額は切り捨てて示してあり、合計と一致しないことがある。"]),
        (420.0, 150.0, size, note),
        *column(72, 180, ["次の文章が続く。"]),
    ]
    (page_read,) = parse_pdf(make_pdf([page]), 10).pages
    assert (BlockKind.CAPTION, note) in shown(page_read.blocks)
    assert {block.section for block in page_read.blocks if block.kind is not HEADING} == {("連結貸借対照表",)}


@pytest.mark.parametrize("title", ["（１）単位制度について", "【単位認定試験】", "単位の取得"])
def test_headings_that_speak_of_units_stay_headings(title: str) -> None:
    page = [(72.0, 80.0, 18.0, title), *column(72, 120, ["この章では制度の概要と手続きの流れを述べる。"])]
    (page_read,) = parse_pdf(make_pdf([page]), 10).pages
    assert [block.kind for block in page_read.blocks] == [HEADING, PARAGRAPH]


def test_numbers_on_the_outer_edge_of_running_lines_differ() -> None:
    pages: list[list[Piece] | str] = [
        [*column(72, 200, [f"Body {number} text."]), (72.0, 810.0, 9.0, running)]
        for number, running in enumerate(("16—Sales And Usage", "Sales And Usage—17", "18—Sales And Usage"))
    ]
    kinds = [[kind for kind, _ in shown(page.blocks)] for page in parse_pdf(make_pdf(pages), 10).pages]
    assert kinds == [[PARAGRAPH, HEADER]] * 3


def test_lines_that_run_over_pages_with_nothing_else_are_text() -> None:
    pages: list[list[Piece] | str] = [[(72.0, 40.0, 10.0, f"scan page {number} secret words")] for number in (1, 2, 3)]
    read = parse_pdf(make_pdf(pages), 10).pages
    assert [shown(page.blocks) for page in read] == [[(PARAGRAPH, f"scan page {n} secret words")] for n in (1, 2, 3)]


def test_the_label_of_a_note_belongs_to_its_text() -> None:
    page = [
        (72.0, 100.0, 10.0, "SOURCE:"),
        (140.0, 100.0, 10.0, "Estimates of the agency, based on surveys and other"),
        *column(72, 114, ["publications of the year."]),
    ]
    (page_read,) = parse_pdf(make_pdf([page]), 10).pages
    assert shown(page_read.blocks) == [
        (PARAGRAPH, "SOURCE: Estimates of the agency, based on surveys and other publications of the year.")
    ]


def cut_messages(data: bytes) -> list[tuple[FailureCause, int | None, str]]:
    return [(failure.cause, failure.page_number, failure.message) for failure in parse_pdf(data, 10).failures]


GRID = page([(75.0, 114.0, 10.0, "text in a cell of the table")], grid([70.0, 270.0, 370.0], [100.0, 120.0, 140.0]))
COLOURED = "\n".join(f"0.5 g 70 {600 - 30 * number} 200 20 re f" for number in range(3))
REST = "pieces of lines are drawn, the limit; tables ruled by the rest are left as text"
LINKED = "<< /Type /Annot /Subtype /Link /Rect [70 730 400 760] /A << /S /URI /URI (https://example.org) >> >>"


@pytest.mark.parametrize(
    ("module", "name", "content", "words"),
    [
        (pdf_runs, "_CHARACTERS", GRID, "34 characters, limit 2; the rest is left out"),
        (pdf_rules, "_RULES", GRID, "6 rules, limit 2; its ruled tables are left as text"),
        (pdf_rules, "_RULES", COLOURED, "3 coloured areas, limit 2; rows coloured by further ones count as plain"),
        (pdf_rules, "_OBJECTS", GRID, f"more than 2 objects or 40000 {REST}"),
        (pdf_rules, "_SEGMENTS", GRID, f"more than 30000 objects or 2 {REST}"),
        (pdf_rules, "_PRODUCT", GRID, "3 rules across times 3 down, limit 2; its ruled tables are left as text"),
        (pdf_rules, "_BOXES", GRID, "a ruled table of 2 times 2 cells, limit 2; it is left as text"),
        (pdf_runs, "_LINKS", "", "more than 2 links, the limit; where the rest lead is left out"),
    ],
)  # fmt: skip
def test_what_a_limit_cuts_off_is_a_failure_of_its_page(
    module: ModuleType, name: str, content: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = show((72.0, 300.0, 10.0, "words"))
    data = make_pdf([text, f"{text}\n{content}"], extra=f"/Annots [{LINKED * 3}]" if name == "_LINKS" else "")
    assert cut_messages(data) == []
    monkeypatch.setattr(module, name, 2)
    message = (FailureCause.TOO_LARGE, 2, f"page 2: {words}")
    assert message in cut_messages(data)


def test_bookmarks_over_the_limit_are_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pdf_runs, "_BOOKMARKS", 1)
    more = (
        "<< /Type /Outlines /First 10 0 R /Last 11 0 R >>",
        "<< /Title (One) /Parent 9 0 R /Dest [12 0 R /Fit] /Next 11 0 R >>",
        "<< /Title (Two) /Parent 9 0 R /Dest [12 0 R /Fit] >>",
    )
    data = make_pdf([column(72, 100, ["Text."])], catalog="/Outlines 9 0 R", more=more)
    assert cut_messages(data) == [
        (FailureCause.TOO_LARGE, 1, "page 1: more than 1 bookmarks up to here, the limit; the rest are left out")
    ]


@pytest.mark.parametrize(("depth", "is_read"), [(5, True), (3, False)])
def test_drawings_are_read_to_the_depth_of_the_setting(depth: int, is_read: bool) -> None:
    """A grid inside of four forms, each in the one before."""
    drawing = grid([70.0, 270.0, 370.0], [100.0, 120.0, 140.0])
    form = (
        "<< /Type /XObject /Subtype /Form /BBox [0 0 595 842] /Resources << {} >> /Length {} >>\nstream\n{}\nendstream"
    )
    forms = [form.format(f"/XObject << /F {number} 0 R >>", 5, "/F Do") for number in (10, 11, 12)]
    more = (*forms, form.format("", len(drawing), drawing))
    cells = [(x, y, 10.0, f"{x:.0f}-{y:.0f}") for y in (114.0, 134.0) for x in (75.0, 275.0)]
    data = make_pdf([page(cells, "/F Do")], resources="/XObject << /F 9 0 R >>", more=more)
    with limited(replace(current_limits(), nesting_depth=depth)):
        document = parse_pdf(data, 10)
    assert bool(document.pages[0].blocks[0].rows) == is_read
    message = f"page 1: drawings nested deeper than {depth} (parsing.nesting_depth); what is drawn there is left out"
    assert [failure.message for failure in document.failures] == ([] if is_read else [message])


def test_many_gutters_cost_little_time() -> None:
    """A damaged file had the columns of its columns looked for, over and over, for minutes."""
    page = [piece for number in range(24) for piece in column(10 + 24 * number, 100, ["abc"] * 12, 4)]
    (page_read,) = parse_pdf(make_pdf([page]), 10).pages
    assert sum(block.text.count("abc") for block in page_read.blocks) == 24 * 12


def test_a_numbered_heading_in_the_type_of_the_text_stands_by_itself() -> None:
    lines = [
        "1.1 目的",
        "1.2 用語",
        "2.1 カードの種類",
        "カードは用途に応じて十種類にまとめる。カードの上部には名前を、",
        "下部には特徴を記す。",
        "2.2 利用者が入力した値を",
        "確かめる画面",
    ]
    (page_read,) = parse_pdf(make_pdf([column(72, 120, lines)]), 10).pages
    assert [block.text for block in page_read.blocks] == [
        "1.1 目的",
        "1.2 用語",
        "2.1 カードの種類",
        "カードは用途に応じて十種類にまとめる。カードの上部には名前を、下部には特徴を記す。",
        "2.2 利用者が入力した値を確かめる画面",
    ]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("2.5 GBのメモリを使う場合", "は設定を変える必要がある。そのときは管理者に連絡する。"),
        ("10.1 確認画面に表示され", "る項目の一覧と、その並び順を定める表を次に示すものとする。"),
        ("3.14 を円周率として用い", "るものとする。それより細かい値は、要求されるまで用いない。"),
    ],
)
def test_a_line_that_goes_on_is_no_heading(first: str, second: str) -> None:
    (page_read,) = parse_pdf(make_pdf([column(72, 120, [first, second])]), 10).pages
    assert [block.text for block in page_read.blocks] == [first + second]


PROSE = "本文は行の端まで書かれ、どの文字のところでも折り返されるものとし、続きは次の行に置く"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("スター型構成", f"遠隔地同士の通信が少ない場合に適する。{PROSE}"),
        ("改修の範囲を広げたこと", f"SD-WAN製品を用いる場合には機器ごとに設定する。{PROSE}"),
        ("【出典】", f"「津波浸水想定区域」は県が公開する図による。{PROSE}"),
    ],
)
def test_a_japanese_line_that_the_next_would_have_filled_ends_its_paragraph(first: str, second: str) -> None:
    (page_read,) = parse_pdf(make_pdf([column(72, 120, [first, second])]), 10).pages
    assert [block.text for block in page_read.blocks] == [first, second]


@pytest.mark.parametrize(
    "lines",
    [
        ["第１１条 委員は委員会の決定に基づいて任免され、その任期を一年とする。", "第１２条 委員会は役員を選ぶ。"],
        ["入力漏れ：二週間のあいだ原価の入力がない案件（担当者の名前つき）", "予算アラート：予算の九割を超えた案件"],
        ["第９条 委員会の会合にかかる費用は委員の負担とする。", "（雑則）", "第\u200b１０条 委員会の役員を選ぶ。"],
        ["第３条 会費は月の終わりまでに納めるものとする。", "２ 納めた会費は返さない。", "３ 会費の額は別に定める。"],
        ["Q: 契約書に回答の義務を書いておかなければならないのはどんな場合か", "A: 契約の雛形に入れてある"],
    ],
)
def test_articles_and_labels_begin_paragraphs(lines: list[str]) -> None:
    (page_read,) = parse_pdf(make_pdf([column(72, 120, lines)]), 10).pages
    assert [block.text for block in page_read.blocks] == [line.replace("\u200b", "") for line in lines]


def test_an_article_that_a_sentence_names_goes_on() -> None:
    lines = [f"{PROSE}ときは、規約の", "第十二条 の定めに従って扱うものとする。"]
    (page_read,) = parse_pdf(make_pdf([column(72, 120, lines)]), 10).pages
    assert len(page_read.blocks) == 1


def test_a_number_that_counts_no_clause_goes_on() -> None:
    lines = [f"第３条 {PROSE}ものとする。", "５ 万円を超える買い物は前もって届け出るものとする。"]
    (page_read,) = parse_pdf(make_pdf([column(72, 120, lines)]), 10).pages
    assert len(page_read.blocks) == 1


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("通信が多いときは、", f"専用の回線を引く。{PROSE}"),  # goes on
        ("入口のアドレスは管理者に聞き、手元に控える。なお画面は", f"https://example.org/{'path/' * 9}"),  # unbreakable
        ("参照先は次のとおり。入口", f"https://example.org/{'path/' * 4}"),
    ],
)
def test_a_japanese_line_broken_for_want_of_room_goes_on(first: str, second: str) -> None:
    (page_read,) = parse_pdf(make_pdf([column(72, 120, [first, second])]), 10).pages
    assert len(page_read.blocks) == 1


def test_a_line_that_ends_well_before_the_edge_of_its_column_is_not_joined_with_the_next() -> None:
    lines = ["対象は、練習の際の往復中のケガ", "年度途中の加入は手数料がかかります", "（ただし学生を除く）"]
    (page_read,) = parse_pdf(make_pdf([[*column(72, 100, [PROSE]), *column(72, 160, lines)]]), 10).pages
    assert [block.text for block in page_read.blocks] == [PROSE, lines[0], "".join(lines[1:])]


def test_a_date_is_a_line_of_its_own() -> None:
    lines = ["条例の一部を改正する条例", "令和４年３月４日提出", "高知県南国市長"]
    centred: list[Piece] = [(300 - 5 * len(line), 160 + 14 * row, 10, line) for row, line in enumerate(lines)]
    (page_read,) = parse_pdf(make_pdf([[*column(72, 100, [PROSE]), *centred]]), 10).pages
    assert [block.text for block in page_read.blocks] == [PROSE, *lines]
    sentence = ["この規則を施行する日は、", "令和４年３月４日", "とする。"]
    (page_read,) = parse_pdf(make_pdf([column(72, 160, sentence)]), 10).pages
    assert [block.text for block in page_read.blocks] == ["この規則を施行する日は、令和４年３月４日とする。"]


def test_bold_type_tells_nothing_where_all_of_a_document_has_it() -> None:
    font = JAPANESE_FONT.replace("Ryumin-Light", "Ryumin-Bold")
    fonts = (
        "<< /Type /Font /Subtype /Type0 /BaseFont /Ryumin-Bold /Encoding /UniJIS-UTF16-H /DescendantFonts [10 0 R] >>",
        f"{font} /DW 1000 /FontDescriptor 6 0 R >>",
    )
    rows = [
        (72, HEADING, "入団の案内"),
        (100, HEADING, "1．部費について"),
        (124, PARAGRAPH, "月額は別紙"),
        (138, PARAGRAPH, "申込書の提出先"),
        (152, PARAGRAPH, "毎月はじめに袋を配布します"),
        (176, HEADING, "2．保険について"),
        (200, PARAGRAPH, "全員加入を原則とする（年間）"),
    ]
    content = "\n".join(show((72, top, 10, text)) for top, _, text in rows).replace("/J ", "/K ")
    (page_read,) = parse_pdf(make_pdf([content], more=fonts, fonts="/K 9 0 R"), 10).pages
    assert shown(page_read.blocks) == [(kind, text) for _, kind, text in rows]


def test_centred_lines_are_one_title() -> None:
    lines = [
        (300 - 9 * len(text), 120 + 25 * number, 18, text)
        for number, text in enumerate(["熱利用検討ツール", "取扱説明書"])
    ]
    (page_read,) = parse_pdf(make_pdf([[*lines, *column(72, 300, [PROSE] * 3)]]), 10).pages
    assert page_read.blocks[0].text == "熱利用検討ツール取扱説明書"


def test_names_below_each_other_stand_alone_where_the_margin_shows_that_they_end() -> None:
    names = ["株式会社鈴木", "田中情報研究所株式会社", "ABC 株式会社", "一般財団法人全国地域協会", "佐藤"]
    pages: list[list[Piece] | str] = [column(72, 120, [PROSE] * 8), column(72, 120, names)]
    read = parse_pdf(make_pdf(pages), 10).pages
    assert [block.text for block in read[1].blocks] == names


def test_names_of_one_length_stand_alone_where_another_line_reaches_further() -> None:
    names = ["初期調査", "探索活動", "感染拡大"]
    texts = [*column(72, 100, [PROSE]), *column(72, 160, names), *column(300, 300, ["物流部門", "担当部長"])]
    (page_read,) = parse_pdf(make_pdf([texts]), 10).pages
    assert [block.text for block in page_read.blocks][1:] == [*names, "物流部門担当部長"]


def test_text_that_flows_around_a_picture_is_one_paragraph() -> None:
    narrow = ["共通の規則を定めて", "データを揃えると連", "携が容易になり利用", "が進む"]
    pages: list[list[Piece] | str] = [column(72, 120, [PROSE] * 8), column(72, 120, narrow)]
    read = parse_pdf(make_pdf(pages), 10).pages
    assert [block.text for block in read[1].blocks] == ["".join(narrow)]


@pytest.mark.parametrize("lengths", [(41, 26, 26, 26, 41), (26, 26, 41, 41), (41, 26, 26, 26)])
def test_text_is_broken_at_the_width_that_a_picture_leaves(lengths: tuple[int, ...]) -> None:
    text = "同社は昨年度に売上高一千億円を達成し海外展開計画を発表した東南アジア六か国で販売網構築を開始する方針だ" * 4
    lines = [text[sum(lengths[:n]) : sum(lengths[: n + 1])] for n in range(len(lengths))]
    (page_read,) = parse_pdf(make_pdf([column(72, 120, lines)]), 10).pages
    assert [block.text for block in page_read.blocks] == ["".join(lines)]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("令和六年度 地域経済活性化支援事業", "補助金交付申請手引"),
        ("公募要領", "令和六年度ものづくり事業費補助金"),
    ],
)
def test_a_title_of_two_lines_is_one_heading(first: str, second: str) -> None:
    pieces = [*column(72, 80, [first, second], 16), *column(72, 160, [PROSE] * 4)]
    (page_read,) = parse_pdf(make_pdf([pieces]), 10).pages
    assert page_read.blocks[0].kind is HEADING
    assert page_read.blocks[0].text == first + second


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (
            "本件は第八条（秘密の保持）、第九条（通知）そして次に挙げる条項及び",
            "第十条（損害の賠償）の定めに従って協議する。",
        ),
        ("Note: the following values hold for all of the machines that stand in the", "factory: they may differ."),
    ],
)
def test_articles_and_labels_within_sentences_go_on(first: str, second: str) -> None:
    (page_read,) = parse_pdf(make_pdf([column(72, 120, [first, second])]), 10).pages
    assert len(page_read.blocks) == 1


def test_short_labels_with_what_they_stand_for_stay_lines() -> None:
    lines = ["引数：なし", "返り値：なし", "使用する変数："]
    ((block,),) = [page.blocks for page in parse_pdf(make_pdf([column(72, 100, lines)]), 1).pages]
    assert (block.kind, block.text) == (BlockKind.PARAGRAPH, "\n".join(lines))


def test_a_bold_label_makes_no_bold_line_of_the_text_behind_it() -> None:
    prose = ["running text that fills the column from end to end of it"] * 6
    label = "BT /B 10 Tf 72 642 Td (Label: ) Tj /L 10 Tf (the text that explains it) Tj ET"
    title = "BT /B 10 Tf 72 622 Td (Title: all of it in bold) Tj ET"
    (page_read,) = parse_pdf(make_pdf([page(column(72, 100, prose), f"{label}\n{title}")]), 1).pages
    assert shown(page_read.blocks)[1:] == [
        (PARAGRAPH, "Label: the text that explains it"),
        (HEADING, "Title: all of it in bold"),
    ]


def test_a_line_that_announces_others_ends_its_paragraph_where_it_has_room() -> None:
    lines = ["分割したあとの領域はおおよそ次のようになる：", "いちばん左は橙色", "ほかは黄色"]
    (page_read,) = parse_pdf(make_pdf([[*column(72, 100, [PROSE]), *column(72, 160, lines)]]), 1).pages
    assert page_read.blocks[1].text == lines[0]


def test_labels_stay_lines_where_the_longest_line_of_the_page_has_room() -> None:
    lines = ["予算の警告：実行予算の九割を超えた案件の一覧を送る", "入金の遅延：入金予定日を過ぎた案件の一覧を送り直す"]
    (page_read,) = parse_pdf(make_pdf([[*column(72, 100, [PROSE]), *column(72, 160, lines)]]), 1).pages
    assert page_read.blocks[1].text == "\n".join(lines)


def test_a_bold_line_that_fills_the_column_and_runs_on_is_no_heading() -> None:
    prose = ["running text that fills the column from end to end"] * 6
    begun, rest = "Label: the text behind it fills the column as", "well and goes on in regular type."
    regular = [*column(72, 100, prose), (72.0, 214.0, 10.0, rest), *column(72, 270, prose)]
    bold = "\n".join(f"BT /B 10 Tf 72 {842 - top} Td ({text}) Tj ET" for top, text in ((200, begun), (250, "A title")))
    (page,) = parse_pdf(make_pdf(["\n".join([*map(show, regular), bold])]), 1).pages
    found = [(block.kind, block.text) for block in page.blocks]
    assert found[1:3] == [(BlockKind.PARAGRAPH, f"{begun} {rest}"), (BlockKind.HEADING, "A title")]


def test_a_numbered_title_that_fills_its_column_is_a_heading_above_a_sentence() -> None:
    prose = ["The methods that we used in the study are", "well known among those who work in this"] * 3
    titles = [f"{number} Methods and Choice of Subjects in" for number in (1, 2)]
    regular = [*column(60, 100, prose), *column(60, 198, prose), *column(60, 296, prose)]
    bold = "\n".join(
        f"BT /B 10 Tf 60 {842 - top} Td ({text}) Tj ET" for top, text in zip((184, 282), titles, strict=True)
    )
    (page,) = parse_pdf(make_pdf(["\n".join([*map(show, regular), bold])]), 1).pages
    found = [(block.kind, block.text) for block in page.blocks]
    text = (BlockKind.PARAGRAPH, " ".join(prose))
    assert found == [text, (BlockKind.HEADING, titles[0]), text, (BlockKind.HEADING, titles[1]), text]


def dot(left: float, top: float, size: float = 4) -> str:
    """A circle as browsers draw it: four curves."""
    y, radius = 842 - top - size / 2, size / 2
    x, pull = left + radius, 0.55 * size / 2
    curves = [
        (x - radius, y + pull, x - pull, y + radius, x, y + radius),
        (x + pull, y + radius, x + radius, y + pull, x + radius, y),
        (x + radius, y - pull, x + pull, y - radius, x, y - radius),
        (x - pull, y - radius, x - radius, y - pull, x - radius, y),
    ]
    return " ".join([f"{x - radius} {y} m", *(" ".join(map(str, curve)) + " c" for curve in curves), "h f"])


def test_bullets_that_the_page_draws_are_list_items() -> None:
    lines = ["売上管理シートの注文データは削除されません", "選択がクリアされます", "元に戻せません"]
    pieces = column(90, 100, ["注意事項"]) + column(100, 130, lines)
    drawing = "\n".join(dot(86, 130 - 5.5 + 14 * row) for row in range(len(lines)))
    (read,) = parse_pdf(make_pdf([page(pieces, drawing)]), 10).pages
    assert shown(read.blocks) == [(PARAGRAPH, "注意事項"), *((LIST_ITEM, f"• {line}") for line in lines)]


def test_drawn_dots_that_begin_no_line_are_no_bullets() -> None:
    """Leaders of a table of contents, a large circle, and a mark between words."""
    pieces = [
        (100.0, 100.0, 10.0, "第一章"),
        (200.0, 100.0, 10.0, "12"),
        (100.0, 140.0, 10.0, "図"),
        (128.0, 140.0, 10.0, "表"),
    ]
    leaders = [dot(140 + 6 * number, 95, 2) for number in range(10)]
    drawing = "\n".join([*leaders, dot(84, 131, 12), dot(118, 134.5)])
    (read,) = parse_pdf(make_pdf([page(pieces, drawing)]), 10).pages
    assert not any("•" in block.text for block in read.blocks)


def test_bullets_set_far_from_their_text_are_list_items() -> None:
    lines = ["the first of them fills the line and", "goes on", "the second of them"]
    bullets = [(60.0, 100.0), (60.0, 128.0)]
    content = "\n".join(map(show, column(96, 100, lines)))
    marks = "\n".join(f"BT /J 10 Tf {left} {842 - top} Td <2022> Tj ET" for left, top in bullets)
    (page,) = parse_pdf(make_pdf([f"{marks}\n{content}"]), 1).pages
    expected = [(BlockKind.LIST_ITEM, f"• {lines[0]} {lines[1]}"), (BlockKind.LIST_ITEM, f"• {lines[2]}")]
    assert [(block.kind, block.text) for block in page.blocks] == expected


def test_a_line_that_goes_on_in_kana_belongs_to_the_one_above_without_a_shared_margin() -> None:
    label = "BT /B 10 Tf 72 742 Td (Shift: a rather long label in bold) Tj ET"
    texts = [(235.0, 100.0, 10.0, "当番の表を配り"), (72.0, 114.0, 10.0, "ます。")]
    (page,) = parse_pdf(make_pdf(["\n".join([label, *map(show, texts)])]), 1).pages
    assert [(block.kind, block.text[-6:]) for block in page.blocks] == [(BlockKind.PARAGRAPH, "を配ります。")]


def test_a_clause_set_apart_from_its_number_goes_on_below() -> None:
    lines = [
        "Items for the agenda must be submitted in writing to the secretary no less than",
        "one week prior to the meeting. Failure to submit an item for the agenda in this way may lead",
        "to it being tabled.",
        "These officers shall be elected by ballot vote every two years in the month of",
        "They are to be paid to the treasurer by the end of the month of June every year.",
    ]
    page: list[Piece] = [
        (72, 100, 10, "Section 2."),
        (150, 100, 10, lines[0]),
        (72, 114, 10, lines[1]),
        (72, 128, 10, lines[2]),
        (72, 142, 10, "B."),
        (108, 142, 10, lines[3]),
        (108, 156, 10, "May."),
        (72, 170, 10, "C."),
        (108, 170, 10, "Dues"),
        (108, 184, 10, lines[4]),
    ]
    assert [text for _, text in shown(parse_pdf(make_pdf([page]), 10).pages[0].blocks)] == [
        " ".join(("Section 2.", *lines[:3])),
        f"B. {lines[3]} May.",
        "C. Dues",
        lines[4],
    ]


def test_what_is_wrong_with_a_file_does_not_depend_on_the_files_before_it() -> None:
    empty = make_pdf([])
    broken, locked = b"%PDF-1.4 broken", (Path(__file__).parents[1] / "data" / "pdf" / "password.pdf").read_bytes()
    problems: dict[bytes, set[str]] = {}
    for data in (empty, broken, empty, locked, empty, broken, locked):
        with pytest.raises(ParseError) as raised:
            parse_pdf(data, 10)
        problems.setdefault(data, set()).add(f"{raised.value.cause}: {raised.value}")
    assert problems == {
        empty: {"malformed: the PDF has no pages"},
        broken: {"malformed: the PDF cannot be opened: it is damaged"},
        locked: {"encrypted: the PDF is encrypted: a password is needed (RAG_PASSWORDS)"},
    }


def test_numbers_before_cells_are_no_items() -> None:
    rows = [("No.", "Name", "Fee"), ("1.", "Alice", "100"), ("2.", "Bob", ""), ("3.", "Carol", "90"), ("4.", "Dan", "")]
    page: list[Piece] = [
        (left, 100.0 + 14 * place, 10.0, text)
        for place, row in enumerate(rows)
        for left, text in zip((72, 120, 260), row, strict=True)
        if text
    ]
    (block,) = parse_pdf(make_pdf([page]), 10).pages[0].blocks
    assert block.text == "No. Name Fee\n1. Alice 100\n2. Bob\n3. Carol 90\n4. Dan"
