"""What a parser returns: pages of blocks with positions. Plain values that cross process borders."""

from dataclasses import dataclass, field

from rag_assets.contracts.causes import BlockKind, FailureCause, PageKind, PageRole

Box = tuple[float, float, float, float]


def page_id_of(document_id: str, page_number: int) -> str:
    """Id of a page, sheet or slide, numbered from 1."""
    return f"{document_id}#{page_number}"


@dataclass(frozen=True, slots=True)
class Row:
    """A table row."""

    # text of each cell; every row of a table has as many cells as the table has columns. A merged value stands in each
    # cell that it spans
    cells: tuple[str, ...]
    cell_range: str | None = None  # spreadsheet cells covered, as in `B4:F4`, or None
    box: Box | None = None  # left, top, right, bottom in points from the top left corner of the page, or None


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula whose last result a spreadsheet shows."""

    cell: str  # the cell, as in `B4`
    formula: str  # the formula as the file states it, with the sign of equality


@dataclass(frozen=True, slots=True)
class Block:
    """A heading, paragraph, table or other part of a page."""

    kind: BlockKind  # what it is
    text: str  # text as displayed. Of a table: a line for each row, ` | ` between cells
    section: tuple[str, ...] = ()  # headings above the block, outermost first; of a table, a note on its unit last
    cell_range: str | None = None  # spreadsheet cells covered, or None
    box: Box | None = None  # position on the page in points, or None
    header_row_count: int = 0  # of a table: leading rows that are column headers
    rows: tuple[Row, ...] = ()  # of a table: its rows, headers first
    formulas: tuple[Formula, ...] = ()  # formulas of its cells; they are kept, not searched


@dataclass(frozen=True, slots=True)
class Page:
    """A page, sheet or slide; of a file without pages the whole, or a section where it is long."""

    number: int  # position in the file, from 1
    kind: PageKind  # what it is
    blocks: tuple[Block, ...]  # its blocks in reading order
    name: str | None = None  # name of the sheet, heading of the section, or None
    hidden: bool = False  # whether the file hides it
    size: tuple[float, float] | None = None  # width and height in points, or None
    # what the page is for, where it is no content: `cover`, `revision_history` or `contents`
    role: PageRole | None = None
    # of text read from a picture: mean confidence of its characters, from 0 to 1; else None
    ocr_confidence: float | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """A document, or one page of it, that could not be parsed."""

    cause: FailureCause  # why
    message: str  # what was found, in one line
    page_number: int | None = None  # the page, or None for the whole document
    traceback_id: str | None = None  # id under which the traceback was logged, or None


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """All that was read from one file."""

    format: str  # format found in the bytes, as in `xlsx`
    title: str | None = None  # title stated in the file, or None
    pages: tuple[Page, ...] = ()  # its pages in order; empty where the whole document failed
    failures: tuple[Failure, ...] = field(default=())  # what could not be read
