"""A page as it is shown to people: its blocks with positions, tables with spanning cells, and the passages on it.

Stored tables hold a merged value in each cell that it spans; here it is told back. What stays out: reading stored
tables (`rag_assets.query.contents.contents`), and markup.
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile
from operator import eq
from typing import Any

from rag_assets.text.cells import Area, parse_area

CELL_LIMIT = 100_000  # cells of one answer, at most
_PART_CELLS = 20_000  # of a long table that is given in parts
_WORDS = 4  # characters from which equal neighbours in the body of a table are one value, not several marks or numbers


@dataclass(frozen=True)
class Cell:
    """A cell of a table as shown.

    Attributes:
        text: Its text.
        column_index: Its first column, from 0.
        column_span: Columns that it spans.
        row_span: Rows that it spans.
        cell_range: Cells of the sheet that it covers, where they can be told; else None.
    """

    text: str
    column_index: int
    column_span: int = 1
    row_span: int = 1
    cell_range: str | None = None


@dataclass(frozen=True)
class Row:
    """A row of a table as shown.

    Attributes:
        row_index: Its place in the table, from 0.
        header: Whether it is a row of column headers.
        cells: Its cells, without those that a cell further left or above spans.
        cell_range: Cells of the sheet that it covers, or None.
        box: Left, top, right, bottom in points from the top left corner of the page, or None.
    """

    row_index: int
    header: bool
    cells: tuple[Cell, ...]
    cell_range: str | None
    box: tuple[float, ...] | None


@dataclass(frozen=True)
class PageBlock:
    """A part of a page.

    Attributes:
        block_id: The block.
        block_index: Its place on the page in reading order, from 0.
        kind: `heading`, `paragraph`, `list_item`, `table`, `note`, `diagram`, `header` or `caption`.
        text: Text as displayed; of a table that has rows empty, as its rows hold it.
        section: Headings above it, outermost first.
        cell_range: Cells of the sheet that it covers, or None.
        box: Left, top, right, bottom in points from the top left corner of the page, or None.
        header_row_count: Of a table: leading rows that are column headers.
        column_count: Of a table: its columns.
        row_count: Of a table: all its rows, those that are not given among them.
        rows: Of a table: the rows that are given.
    """

    block_id: str
    block_index: int
    kind: str
    text: str
    section: tuple[str, ...]
    cell_range: str | None
    box: tuple[float, ...] | None
    header_row_count: int
    column_count: int
    row_count: int
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class PassagePlace:
    """Where a passage of a page stands.

    Attributes:
        chunk_id: The passage.
        block_indexes: Blocks that it is taken from.
        cell_range: Cells of the sheet, or None.
        box: Left, top, right, bottom in points from the top left corner of the page, or None.
    """

    chunk_id: str
    block_indexes: tuple[int, ...]
    cell_range: str | None
    box: tuple[float, ...] | None


@dataclass(frozen=True)
class PageContents:
    """A page with all that it takes to show it.

    Attributes:
        document_id: The document.
        title: Title of the document.
        format: Format of the document.
        page_id: The page.
        page_number: Position in the document, from 1.
        page_count: Pages of the document.
        page_name: Name of the sheet or section, or None.
        kind: `sheet`, `page`, `slide`, `section` or `body`.
        hidden: Whether the file hides it.
        role: `cover`, `revision_history` or `contents`, or None.
        language: Main language, ISO 639-1.
        width_points: Width of the page in points, or None.
        height_points: Height of the page in points, or None.
        ocr_confidence: Of text read from a picture: confidence from 0 to 1; else None.
        summary: Its summary, or None.
        blocks: Its blocks in reading order.
        passages: Its passages, in order.
        complete: Whether every block and row is given.
    """

    document_id: str
    title: str
    format: str
    page_id: str
    page_number: int
    page_count: int
    page_name: str | None
    kind: str
    hidden: bool
    role: str | None
    language: str
    width_points: float | None
    height_points: float | None
    ocr_confidence: float | None
    summary: str | None
    blocks: tuple[PageBlock, ...]
    passages: tuple[PassagePlace, ...]
    complete: bool


def shown_blocks(
    rows: Sequence[Mapping[str, Any]], row_limit: int, focus: Area | None, cell_limit: int = CELL_LIMIT
) -> tuple[tuple[PageBlock, ...], bool]:
    """Blocks as they are shown.

    Args:
        rows: Rows of the table `blocks`, in reading order.
        row_limit: Table rows of the whole page that are given, at most, beside the headers of each table.
        focus: Cells of the sheet that are to be among those given; None for none.
        cell_limit: Cells that are given, at most, headers included; and as many again of the blocks in focus.

    Returns:
        The blocks, and whether all their rows are given.
    """
    rows_left, cells_left, complete, blocks = row_limit, {False: cell_limit, True: cell_limit}, True, []
    for row in rows:
        table_rows = row["rows"] or []
        area = parse_area(row["cell_range"])
        is_in_focus = focus is not None and (area is None or area.meets(focus))
        room = cells_left[is_in_focus] // max(_column_count(table_rows), 1)  # in rows
        headers = min(row["header_row_count"], len(table_rows))
        given_headers = min(headers, room)
        start, stop = _window(table_rows, headers, max(rows_left, 0), focus, room - given_headers)
        complete = complete and (given_headers, stop - start) == (headers, len(table_rows) - headers)
        rows_left -= stop - start
        cells_left[is_in_focus] -= (given_headers + stop - start) * _column_count(table_rows)
        blocks.append(_block(row, [*range(given_headers), *range(start, stop)]))
    return tuple(blocks), complete


def blocks_in_parts(rows: Sequence[Mapping[str, Any]], cell_limit: int = _PART_CELLS) -> Iterator[PageBlock]:
    """All blocks of a page, laid out one after another; a long table comes in several parts, each with its headers.

    Args:
        rows: Rows of the table `blocks`, in reading order.
        cell_limit: Cells of a part, about.
    """
    for row in rows:
        table_rows = row["rows"] or []
        headers = min(row["header_row_count"], len(table_rows))
        step = max(1, headers, cell_limit // max(_column_count(table_rows), 1))
        for start in range(headers, max(len(table_rows), headers + 1), step):
            yield _block(row, [*range(headers), *range(start, min(start + step, len(table_rows)))])


def as_box(value: Sequence[float] | None) -> tuple[float, ...] | None:
    """A stored box."""
    return tuple(value) if value is not None else None


def _window(
    rows: Sequence[Mapping[str, Any]], headers: int, limit: int, focus: Area | None, room: int
) -> tuple[int, int]:
    """First row of the body that is given, and the one after the last; for rows in focus beyond the limit."""
    count = len(rows)
    start, limit = headers, min(limit, room)
    if count - headers > limit and focus is not None:
        areas = (parse_area(row["cell_range"]) for row in rows)
        focus_places = [place for place, area in enumerate(areas) if place >= headers and area and area.meets(focus)]
        if focus_places:
            limit = max(limit, min(len(focus_places) + 2, 200, room))
            start = min(max(headers, focus_places[0] - (limit > 1)), max(headers, count - limit))
    return start, min(start + limit, count)


def _block(row: Mapping[str, Any], places: Sequence[int]) -> PageBlock:
    table_rows = row["rows"] or []
    given_rows = [table_rows[place] for place in places]
    headers = min(row["header_row_count"], len(table_rows))
    given_headers = sum(place < headers for place in places)
    cells = spanning_cells(
        [table_row["cells"] for table_row in given_rows],
        given_headers,
        [table_row["cell_range"] for table_row in given_rows],
    )
    return PageBlock(
        block_id=row["block_id"],
        block_index=row["block_index"],
        kind=row["kind"],
        text="" if table_rows else row["text"],
        section=tuple(row["section"] or ()),
        cell_range=row["cell_range"],
        box=as_box(row["box"]),
        header_row_count=headers,
        column_count=_column_count(table_rows),
        row_count=len(table_rows),
        rows=tuple(
            Row(place, place < headers, row_cells, table_row["cell_range"], as_box(table_row["box"]))
            for place, table_row, row_cells in zip(places, given_rows, cells, strict=True)
        ),
    )


def _column_count(rows: Sequence[Mapping[str, Any]]) -> int:
    return max((len(row["cells"]) for row in rows), default=0)


def spanning_cells(
    rows: Sequence[Sequence[str]], header_count: int, cell_ranges: Sequence[str | None]
) -> list[tuple[Cell, ...]]:
    """Cells of a table, with a merged value told back from the equal cells that stored tables hold for it.

    Among headers, equal neighbours are one cell. In the body, neighbours of a row are one cell where they hold words;
    numbers, marks and short words stand for themselves. Neighbours of a column are one cell in the leading columns
    only, as far as all columns before them agree: a group and its name.

    Args:
        rows: Texts of the cells of each row, headers first.
        header_count: Leading rows that are headers.
        cell_ranges: Cells of the sheet that each row covers, or None.

    Returns:
        For each row, its cells from left to right.
    """
    areas = [parse_area(cell_range) for cell_range in cell_ranges]
    # leading columns in which a row agrees with the one above
    alike = [0, *(sum(takewhile(bool, map(eq, above, below))) for above, below in pairwise(rows))]
    taken_places: set[tuple[int, int]] = set()
    shown_rows: list[tuple[Cell, ...]] = []
    for top, texts in enumerate(rows):
        row_cells = []
        for left, text in enumerate(texts):
            if (top, left) in taken_places:
                continue
            width = _width(texts, top, left, taken_places, header=top < header_count)
            height = _height(rows, alike, top, left, width, header_count)
            if (width, height) != (1, 1):
                taken_places |= {(top + down, left + right) for down in range(height) for right in range(width)}
            row_cells.append(Cell(text, left, width, height, _covered_area(areas, rows, top, left, width, height)))
        shown_rows.append(tuple(row_cells))
    return shown_rows


def _width(texts: Sequence[str], top: int, left: int, taken_places: Container[tuple[int, int]], *, header: bool) -> int:
    if not _is_one(texts[left], header=header):
        return 1
    end = left + 1
    while end < len(texts) and texts[end] == texts[left] and (top, end) not in taken_places:
        end += 1
    return end - left


def _height(
    rows: Sequence[Sequence[str]], alike: Sequence[int], top: int, left: int, width: int, header_count: int
) -> int:
    header = top < header_count
    text, last = rows[top][left], header_count if header else len(rows)
    if not _is_one(text, header=header):
        return 1

    def goes_on(place: int) -> bool:
        # in the body, columns further left must agree as well
        if not header and alike[place] < left:
            return False
        below = rows[place]
        # in the body, a wider run of the same words below is a merged cell of its own row
        wider = left + width < len(below) and below[left + width] == text
        return list(below[left : left + width]) == [text] * width and (header or not wider)

    height = 1
    while top + height < last and goes_on(top + height):
        height += 1
    return height


def _is_one(text: str, *, header: bool) -> bool:
    if header:
        return bool(text.strip())
    return len(text.strip()) >= _WORDS and any(character.isalpha() for character in text)


def _covered_area(
    areas: Sequence[Area | None], rows: Sequence[Sequence[str]], top: int, left: int, width: int, height: int
) -> str | None:
    """Cells of the sheet under a cell, where the rows have a column for each cell of their area."""
    first, last = areas[top], areas[top + height - 1]
    if first is None or last is None or first.right - first.left + 1 != len(rows[top]):
        return None
    return Area(first.top, first.left + left, last.bottom, first.left + left + width - 1).label
