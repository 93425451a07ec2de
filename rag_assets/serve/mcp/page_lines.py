"""A page as lines of text for agents, in parts of a bounded size; rows of a sheet begin with their number.

What stays out: reading pages (`rag_assets.query.contents.contents`).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from rag_assets.query.contents.contents import Contents
from rag_assets.query.contents.pages import CellArea, PageBlock, PageContents, Row, parse_area
from rag_assets.serve.mcp.schemas import TextBlock
from rag_assets.text.plain import one_line

_LINE_CHARS = 4000  # longer lines are given in pieces


@dataclass(frozen=True)
class Line:
    """A line of a page.

    Attributes:
        block: The block that it is of, without its rows.
        text: Its text.
        header: Whether it is a row of column headers.
    """

    block: PageBlock
    text: str
    header: bool = False


@dataclass(frozen=True)
class PageLines:
    """A page and all its lines.

    Attributes:
        page: The page, without its blocks.
        lines: Its lines in reading order.
    """

    page: PageContents
    lines: tuple[Line, ...]


@lru_cache(maxsize=4)
def page_lines(
    contents: Contents, document_id: str, page_number: int, area: CellArea | None = None
) -> PageLines | None:
    """A page as lines, see `lines_of`; None where there is no such page. It is kept for the parts that are read next.

    Raises:
        StoreError: A file is missing or damaged.
    """
    page = contents.page(document_id, page_number, row_limit=0)
    if page is None:
        return None
    blocks = contents.page_blocks(document_id, page_number)
    return PageLines(replace(page, blocks=()), tuple(lines_of(blocks, area)))


def lines_of(blocks: Iterable[PageBlock], area: CellArea | None = None) -> Iterator[Line]:
    """The lines of a page in reading order.

    Args:
        blocks: All blocks with all rows; a long table in several parts, each with its headers.
        area: Cells that lines must meet; headers of their tables are kept. None for all.
    """
    begun: set[int] = set()
    for block in blocks:
        for line in _block_lines(block, area, first=block.block_index not in begun):
            begun.add(block.block_index)
            yield line


def part_of(lines: Sequence[Line], start: int, most_chars: int) -> tuple[list[TextBlock], int]:
    """A part of a page: lines of about so many characters, at least one.

    Args:
        lines: All lines.
        start: The first line of the part.
        most_chars: Characters of the part.

    Returns:
        The blocks of the part, and the line after its last. A table that began before begins with its headers again.
    """
    stop, chars = start, 0
    while stop < len(lines) and (stop == start or chars + len(lines[stop].text) <= most_chars):
        chars += len(lines[stop].text) + 1
        stop += 1
    grouped: dict[int, list[Line]] = {}
    for line in lines[start:stop]:
        grouped.setdefault(line.block.block_index, []).append(line)
    begun = {line.block.block_index for line in lines[:start]}
    blocks = []
    for index, own in grouped.items():
        headers = _headers(lines, index) if index in begun and not own[0].header else []
        blocks.append(_text_block([*headers, *own], continued=index in begun))
    return blocks, stop


def _headers(lines: Sequence[Line], block_index: int) -> list[Line]:
    return [line for line in lines if line.block.block_index == block_index and line.header]


def _text_block(lines: Sequence[Line], *, continued: bool) -> TextBlock:
    block = lines[0].block
    return TextBlock(
        kind=block.kind,
        section=list(block.section),
        cell_range=block.cell_range,
        box=list(block.box) if block.box else None,
        continued=continued,
        text="\n".join(line.text for line in lines),
    )


def _block_lines(block: PageBlock, area: CellArea | None, *, first: bool) -> Iterator[Line]:
    """Lines of a block, or of a part of a table: headers stand in the first part that has any line."""
    bare = replace(block, rows=())
    if not block.rows:
        if block.text.strip() and _meets(block.cell_range, area):
            yield from (Line(bare, piece) for piece in _pieces(block.text))
        return
    meeting = [_meets(row.cell_range or block.cell_range, area) for row in block.rows]
    if not any(meeting):
        return
    for row, text, meets in zip(block.rows, _row_texts(block), meeting, strict=True):
        if first if row.header else meets:
            yield from (Line(bare, piece, row.header) for piece in _pieces(text))


def _meets(cell_range: str | None, area: CellArea | None) -> bool:
    if area is None:
        return True
    own = parse_area(cell_range)
    return own is not None and own.meets(area)


def _row_texts(block: PageBlock) -> Iterator[str]:
    """Each row as a line; what spans rows of the body stands in each of them, so that every line is read by itself."""
    spanning: dict[int, tuple[str, int]] = {}
    for row in block.rows:
        texts = [""] * block.column_count
        for column, (text, rows) in list(spanning.items()):
            texts[column] = text
            if rows == 1:
                del spanning[column]
            else:
                spanning[column] = text, rows - 1
        for cell in row.cells:
            texts[cell.column_index] = one_line(cell.text)
            if cell.row_span > 1 and not row.header:
                spanning[cell.column_index] = texts[cell.column_index], cell.row_span - 1
        yield _numbered(row, " | ".join(texts).rstrip(" |"))


def _numbered(row: Row, text: str) -> str:
    area = parse_area(row.cell_range)
    return f"{area.top}: {text}" if area else text


def _pieces(text: str) -> Iterator[str]:
    for start in range(0, len(text), _LINE_CHARS):
        yield text[start : start + _LINE_CHARS]
