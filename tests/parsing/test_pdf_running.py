import pytest
from pdf_building import Piece, column, make_pdf

from rag_assets.contracts.causes import BlockKind
from rag_assets.parsing.pdf.reader import parse_pdf
from rag_assets.parsing.pdf.running import page_number

BODY = column(72, 200, ["First line of the body of the page.", "Second line of it."])
BOTTOM, TOP, CENTRE, RIGHT = 815.0, 30.0, 290.0, 515.0


def headers(*pages: list[Piece]) -> list[list[str]]:
    document = parse_pdf(make_pdf([*pages]), 10)
    return [[block.text for block in page.blocks if block.kind is BlockKind.HEADER] for page in document.pages]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- 1 -", (1, None, True)),
        ("― ３ ―", (3, None, True)),
        ("1/12", (1, 12, False)),
        ("Page 2 of 3", (2, 3, True)),
        ("第4頁", (4, None, True)),
        ("5 / 5 ページ", (5, 5, True)),
        ("p. 6", (6, None, True)),
        ("7", (7, None, False)),
        ("xiv", (14, None, False)),
        *((text, None) for text in ("12/4", "-350", "¥350", "350円", "35%", "1,234", "3.5", "civil", "1.", "Page", "")),
    ],
)
def test_forms_of_page_numbers(text: str, expected: tuple[int, int | None, bool] | None) -> None:
    assert page_number(text) == expected


@pytest.mark.parametrize("number", ["- 1 -", "1/1", "1", "Page 1 of 1", "- 15 -", "1 | Page"])
@pytest.mark.parametrize(("left", "top"), [(CENTRE, BOTTOM), (RIGHT, BOTTOM), (CENTRE, TOP), (RIGHT, TOP)])
def test_the_number_of_the_only_page_is_not_searched(number: str, left: float, top: float) -> None:
    assert headers([*BODY, (left, top, 9.0, number)]) == [[number]]


@pytest.mark.parametrize(
    "figure",
    [
        (RIGHT, BOTTOM, 10.0, "350"),  # it may be a total
        (CENTRE, BOTTOM, 10.0, "2024"),  # a year
        (RIGHT, BOTTOM, 10.0, "3/8"),  # of a file of one page
        (CENTRE, BOTTOM, 10.0, "-12"),
        (CENTRE, 400.0, 10.0, "1"),  # far from the edge
    ],
)
def test_a_figure_of_the_only_page_is_searched(figure: Piece) -> None:
    assert headers([*BODY, figure]) == [[]]


def test_a_number_right_below_the_text_belongs_to_it() -> None:
    text = column(72, 770, ["The sum of all the figures above is", "1"], 12)
    assert headers(BODY + text) == [[]]


def test_numbers_of_two_pages_rise() -> None:
    pages = [[*BODY, (RIGHT, BOTTOM, 9.0, str(number))] for number in (41, 42)]
    assert headers(*pages) == [["41"], ["42"]]
    figures = [[*BODY, (RIGHT, BOTTOM, 9.0, str(number))] for number in (410, 380)]
    assert headers(*figures) == [[], []]


def test_a_page_number_above_the_last_line_of_the_footer() -> None:
    footer = [(CENTRE, 800.0, 9.0, "- 1 -"), (72.0, 820.0, 8.0, "Copyright of the company")]
    assert headers([*BODY, *footer]) == [["- 1 -"]]


@pytest.mark.parametrize("name", ["第{}章", "事例{}", "Step {}", "Q{}. 質問", "{}月の実績", "{}. Results", "*Case {}"])
def test_numbered_lines_at_the_top_of_pages_are_headings_in_large_or_bold_type_and_headers_in_small(name: str) -> None:
    def pages(size: float) -> list[list[Piece]]:
        return [[(60.0, 60.0, size, name.format(number)), *BODY] for number in range(1, 6)]

    heading = 10.0 if name.startswith("*") else 18.0
    assert headers(*pages(heading)) == [[]] * 5
    assert headers(*pages(8.0)) == [[name.format(number)] for number in range(1, 6)]


def test_the_same_line_in_large_type_at_the_top_of_pages_runs_over_them() -> None:
    pages = [[(60.0, 60.0, 18.0, f"Report | {number}"), *BODY] for number in range(1, 4)]
    assert headers(*pages) == [["Report | 1"], ["Report | 2"], ["Report | 3"]]


def test_the_first_lines_of_pages_with_wide_lines_are_text() -> None:
    words = ["one", "two", "three", "four", "five", "six", "seven"]
    lines = [f"{word} line of a page that is set with wide lines" for word in words]
    pages = [
        [(72.0, 60.0 + 30 * place, 10.0, lines[(number + place) % 7]) for place in range(12)] for number in range(6)
    ]
    assert headers(*pages) == [[]] * 6
    titled = [[(72.0, 40.0, 10.0, lines[number]), *page[2:]] for number, page in enumerate(pages)]
    assert headers(*titled) == [[lines[number]] for number in range(6)]
