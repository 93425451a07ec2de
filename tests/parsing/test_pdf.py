import re
from collections import Counter
from pathlib import Path

import pypdfium2
import pytest

from rag_assets.contracts.causes import BlockKind, FailureCause
from rag_assets.contracts.errors import ParseError
from rag_assets.parsing.content import Block
from rag_assets.parsing.pdf import parse_pdf

CORPUS = Path(__file__).parents[2].parent / "shared" / "data" / "parsing" / "files"
HEADING, PARAGRAPH, LIST_ITEM, HEADER = BlockKind.HEADING, BlockKind.PARAGRAPH, BlockKind.LIST_ITEM, BlockKind.HEADER

# A text on a page: left and top in points, size, text. Latin text is set in Helvetica, Japanese in Ryumin-Light.
Piece = tuple[float, float, float, str]
JAPANESE_FONT = (
    "<< /Type /Font /Subtype /CIDFontType0 /BaseFont /Ryumin-Light "
    "/CIDSystemInfo << /Registry (Adobe) /Ordering (Japan1) /Supplement 6 >>"
)
JAPANESE_DESCRIPTOR = (
    "<< /Type /FontDescriptor /FontName /Ryumin-Light /Flags 6 /FontBBox [0 -120 1000 880] /ItalicAngle 0"
)
IMAGE = "q 100 0 0 100 50 50 cm BI /W 1 /H 1 /BPC 8 /CS /G ID \x7f EI Q"


def make_pdf(pages: list[list[Piece] | str], *, extra: str = "", info: str = "", vertical: bool = False) -> bytes:
    """A PDF of A4 pages, each given by its texts or by its content stream."""
    encoding = "UniJIS-UTF16-V" if vertical else "UniJIS-UTF16-H"
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        "",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        f"<< /Type /Font /Subtype /Type0 /BaseFont /Ryumin-Light /Encoding /{encoding} /DescendantFonts [5 0 R] >>",
        f"{JAPANESE_FONT} /DW 1000 /FontDescriptor 6 0 R >>",
        f"{JAPANESE_DESCRIPTOR} /Ascent 880 /Descent -120 /CapHeight 700 /StemV 80 >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica-Bold >>",
        f"<< {info} >>",
    ]
    kids = []
    for page in pages:
        content = page if isinstance(page, str) else "\n".join(map(show, page))
        kids.append(f"{len(objects) + 1} 0 R")
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] {extra} /Contents {len(objects) + 2} 0 R "
            "/Resources << /Font << /L 3 0 R /J 4 0 R /B 7 0 R >> >> >>"
        )
        objects.append(f"<< /Length {len(content)} >>\nstream\n{content}\nendstream")
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} >>"
    body, offsets = "%PDF-1.7\n", []
    for number, text in enumerate(objects, start=1):
        offsets.append(len(body))
        body += f"{number} 0 obj\n{text}\nendobj\n"
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    size = len(objects) + 1
    trailer = f"trailer << /Size {size} /Root 1 0 R /Info 8 0 R >>\nstartxref\n{len(body)}\n%%EOF"
    return f"{body}xref\n0 {size}\n0000000000 65535 f \n{table}{trailer}".encode("latin-1")


def show(piece: Piece) -> str:
    left, top, size, text = piece
    japanese = any(ord(character) > 255 for character in text)
    shown = f"<{text.encode('utf-16-be').hex()}>" if japanese else "(" + re.sub(r"([()\\])", r"\\\1", text) + ")"
    font = "J" if japanese else "B" if text.startswith("*") else "L"
    return f"BT /{font} {size} Tf {left} {842 - top} Td {shown} Tj ET"


def column(left: float, top: float, lines: list[str], size: float = 10) -> list[Piece]:
    return [(left, top + 14 * number, size, line) for number, line in enumerate(lines)]


def texts(blocks: tuple[Block, ...]) -> list[tuple[BlockKind, str]]:
    return [(block.kind, block.text) for block in blocks]


def test_japanese_lines_are_joined_without_spaces() -> None:
    page = [
        (72.0, 80.0, 18.0, "第一章　概要"),
        *column(72, 120, ["この文書は受注管理システムの構成を", "定めるものである。"]),
    ]
    (page_read,) = parse_pdf(make_pdf([page]), 10).pages
    assert texts(page_read.blocks) == [
        (HEADING, "第一章 概要"),
        (PARAGRAPH, "この文書は受注管理システムの構成を定めるものである。"),
    ]
    assert page_read.blocks[1].section == ("第一章 概要",)
    assert page_read.size == (595.0, 842.0)


def test_english_lines_are_joined_with_spaces_and_without_hyphens() -> None:
    lines = ["The quick brown fox jumps over the lazy dog and runs through the for-", "est until it meets the river."]
    (page,) = parse_pdf(make_pdf([column(72, 100, lines)]), 10).pages
    assert texts(page.blocks) == [
        (PARAGRAPH, "The quick brown fox jumps over the lazy dog and runs through the forest until it meets the river.")
    ]


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
    assert texts(page_read.blocks) == [
        (HEADING, "A title over both of the columns"),
        (PARAGRAPH, " ".join(left)),
        (PARAGRAPH, " ".join(right)),
    ]


def test_rows_of_a_table_stay_rows() -> None:
    page = [
        piece
        for number in range(8)
        for piece in (
            (72.0, 100.0 + 14 * number, 10.0, f"item{number}"),
            (300.0, 100.0 + 14 * number, 10.0, f"{number}.5"),
        )
    ]
    (page_read,) = parse_pdf(make_pdf([page]), 10).pages
    assert [block.text for block in page_read.blocks] == ["\n".join(f"item{number} {number}.5" for number in range(8))]


def test_vertical_writing() -> None:
    lines = ["縦書きの文章は右から", "左へと行を進める。", "三行目である。"]
    page = [(500.0 - 20 * number, 100.0, 12.0, line) for number, line in enumerate(lines)]
    (page_read,) = parse_pdf(make_pdf([page], vertical=True), 10).pages
    assert "".join(block.text for block in page_read.blocks) == "".join(lines)


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
    assert [texts(page.blocks) for page in document.pages] == [
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
    page = column(72, 100, ["(1) first of all the points that are made", "(2) second point", "・第三の項目"])
    (page_read,) = parse_pdf(make_pdf([page]), 10).pages
    assert [kind for kind, _ in texts(page_read.blocks)] == [LIST_ITEM] * 3


def test_a_page_without_text_layer_is_a_failure_of_that_page() -> None:
    document = parse_pdf(make_pdf([column(72, 100, ["text"]), IMAGE, ""]), 10)
    assert [len(page.blocks) for page in document.pages] == [1, 0, 0]
    (failure,) = document.failures
    assert (failure.cause, failure.page_number) == (FailureCause.NO_TEXT, 2)
    assert failure.message == "page 2 has no text layer"


def test_pages_are_limited() -> None:
    with pytest.raises(ParseError, match="3 pages, limit 2") as caught:
        parse_pdf(make_pdf(["", "", ""]), 2)
    assert caught.value.cause is FailureCause.TOO_LARGE


def test_damaged_pdf() -> None:
    with pytest.raises(ParseError) as caught:
        parse_pdf(b"%PDF-1.4\nnothing", 10)
    assert caught.value.cause is FailureCause.MALFORMED


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


def test_no_text_of_the_corpus_is_lost() -> None:
    """Every character that pdfium extracts stands in some block, marks that stand for nothing aside."""
    if not CORPUS.is_dir():
        pytest.skip("the development set is not beside the checkout")
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
