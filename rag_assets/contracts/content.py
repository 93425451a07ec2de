"""What a parser returns: pages of blocks with positions. Plain values that cross process borders."""

from dataclasses import dataclass, field

from rag_assets.contracts.causes import BlockKind, FailureCause, PageKind, PageRole

Box = tuple[float, float, float, float]


def page_id_of(document_id: str, page_number: int) -> str:
    """Id of a page, sheet or slide, numbered from 1."""
    return f"{document_id}#{page_number}"


@dataclass(frozen=True, slots=True)
class Row:
    """A table row.

    Attributes:
        cells: Text of each cell; every row of a table has as many cells as the table has columns. A merged value
            stands in each cell that it spans.
        cell_range: Spreadsheet cells covered, as in `B4:F4`, or None.
        box: Left, top, right, bottom in points from the top left corner of the page, or None.
    """

    cells: tuple[str, ...]
    cell_range: str | None = None
    box: Box | None = None


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula whose last result a spreadsheet shows.

    Attributes:
        cell: The cell, as in `B4`.
        formula: The formula as the file states it, with the sign of equality.
    """

    cell: str
    formula: str


@dataclass(frozen=True, slots=True)
class Block:
    """A heading, paragraph, table or other part of a page.

    Attributes:
        kind: What it is.
        text: Text as displayed. Of a table: a line for each row, ` | ` between cells.
        section: Headings above the block, outermost first; of a table, a note on its unit last.
        cell_range: Spreadsheet cells covered, or None.
        box: Position on the page in points, or None.
        header_row_count: Of a table: leading rows that are column headers.
        rows: Of a table: its rows, headers first.
        formulas: Formulas of its cells; they are kept, not searched.
    """

    kind: BlockKind
    text: str
    section: tuple[str, ...] = ()
    cell_range: str | None = None
    box: Box | None = None
    header_row_count: int = 0
    rows: tuple[Row, ...] = ()
    formulas: tuple[Formula, ...] = ()


@dataclass(frozen=True, slots=True)
class Page:
    """A page, sheet or slide; of a file without pages the whole, or a section where it is long.

    Attributes:
        number: Position in the file, from 1.
        kind: What it is.
        blocks: Its blocks in reading order.
        name: Name of the sheet, heading of the section, or None.
        hidden: Whether the file hides it.
        size: Width and height in points, or None.
        role: What the page is for, where it is no content: `cover`, `revision_history` or `contents`.
        ocr_confidence: Of text read from a picture: mean confidence of its characters, from 0 to 1; else None.
    """

    number: int
    kind: PageKind
    blocks: tuple[Block, ...]
    name: str | None = None
    hidden: bool = False
    size: tuple[float, float] | None = None
    role: PageRole | None = None
    ocr_confidence: float | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """A document, or one page of it, that could not be parsed.

    Attributes:
        cause: Why.
        message: What was found, in one line.
        page_number: The page, or None for the whole document.
        traceback_id: Id under which the traceback was logged, or None.
    """

    cause: FailureCause
    message: str
    page_number: int | None = None
    traceback_id: str | None = None


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """All that was read from one file.

    Attributes:
        format: Format found in the bytes, as in `xlsx`.
        title: Title stated in the file, or None.
        pages: Its pages in order; empty where the whole document failed.
        failures: What could not be read.
    """

    format: str
    title: str | None = None
    pages: tuple[Page, ...] = ()
    failures: tuple[Failure, ...] = field(default=())
