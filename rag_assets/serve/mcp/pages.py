"""Pages for agents: as lines of text in parts of a bounded size, and as resources with addresses.

Rows of a sheet begin with their number. An address is as in `rag-assets://pages/specs%2Ftoken.xlsx?page=2`.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from urllib.parse import parse_qs, quote, unquote

from rag_assets.contracts.errors import QueryError
from rag_assets.query.contents.contents import Contents, DocumentEntry
from rag_assets.query.contents.pages import PageBlock, PageContents
from rag_assets.serve.mcp.schemas import TextBlock
from rag_assets.text.cells import CELL_SIGN, Area, parse_area
from rag_assets.text.plain import one_line

_LINE_CHARS = 4000  # longer lines are given in pieces
PAGE_TEMPLATE = "rag-assets://pages/{document_id}{?page,part}"
_PAGES = "rag-assets://pages/"
_MOST = 1 << 31  # of a number in an address
_LISTED = 100  # pages of a part of the list
_DOCUMENTS = 50  # documents that are looked at for it
_PART_CHARS = 60_000
_CURSOR = re.compile(r"([0-9]{1,9}):(.*)", re.ASCII | re.DOTALL)


@dataclass(frozen=True)
class PageLine:
    """A line of a page, the block that it is of without its rows, and whether it is a row of column headers."""

    block: PageBlock
    text: str
    header: bool = False


@dataclass(frozen=True)
class PageText:
    """A page without its blocks, and all its lines in reading order."""

    page: PageContents
    lines: tuple[PageLine, ...]


@lru_cache(maxsize=4)
def page_lines(contents: Contents, document_id: str, page_number: int, area: Area | None = None) -> PageText | None:
    """A page as lines, see `lines_of`; None where there is no such page. It is kept for the parts that are read next.

    Raises:
        StoreError: A file is missing or damaged.
    """
    page = contents.page(document_id, page_number, row_limit=0)
    if page is None:
        return None
    blocks = contents.page_blocks(document_id, page_number)
    return PageText(replace(page, blocks=()), tuple(lines_of(blocks, area)))


def lines_of(blocks: Iterable[PageBlock], area: Area | None = None) -> Iterator[PageLine]:
    """The lines of a page in reading order.

    Args:
        blocks: All blocks with all rows; a long table in several parts, each with its headers.
        area: Cells that lines must meet; headers of their tables are kept. None for all.
    """
    begun_indexes: set[int] = set()
    for block in blocks:
        for line in _block_lines(block, area, first=block.block_index not in begun_indexes):
            begun_indexes.add(block.block_index)
            yield line


def part_of(lines: Sequence[PageLine], start: int, most_chars: int) -> tuple[list[TextBlock], int]:
    """A part of a page: lines from the one at `start` on, of about so many characters, at least one.

    Returns:
        The blocks of the part, and the line after its last. A table that began before begins with its headers again.
    """
    stop, chars = start, 0
    while stop < len(lines) and (stop == start or chars + len(lines[stop].text) <= most_chars):
        chars += len(lines[stop].text) + 1
        stop += 1
    lines_by_block: dict[int, list[PageLine]] = {}
    for line in lines[start:stop]:
        lines_by_block.setdefault(line.block.block_index, []).append(line)
    begun_indexes = {line.block.block_index for line in lines[:start]}
    blocks = []
    for index, own in lines_by_block.items():
        headers: list[PageLine] = []
        if index in begun_indexes and not own[0].header:
            headers = [line for line in lines if line.block.block_index == index and line.header]
        block = (headers or own)[0].block
        blocks.append(
            TextBlock(
                kind=block.kind,
                section=list(block.section),
                cell_range=block.cell_range,
                box=list(block.box) if block.box else None,
                continued=index in begun_indexes,
                text="\n".join(line.text for line in (*headers, *own)),
            )
        )
    return blocks, stop


def _block_lines(block: PageBlock, area: Area | None, *, first: bool) -> Iterator[PageLine]:
    """Lines of a block, or of a part of a table: headers stand in the first part that has any line."""
    bare = replace(block, rows=())
    if not block.rows:
        if block.text.strip() and _meets(block.cell_range, area):
            yield from (PageLine(bare, piece) for piece in _pieces(block.text))
        return
    overlaps = [_meets(row.cell_range or block.cell_range, area) for row in block.rows]
    if not any(overlaps):
        return
    for row, text, meets in zip(block.rows, _row_texts(block), overlaps, strict=True):
        if first if row.header else meets:
            yield from (PageLine(bare, piece, row.header) for piece in _pieces(text))


def _meets(cell_range: str | None, area: Area | None) -> bool:
    if area is None:
        return True
    own = parse_area(cell_range)
    return own is not None and own.meets(area)


def _row_texts(block: PageBlock) -> Iterator[str]:
    """Each row as a line; what spans rows of the body stands in each of them, so that every line is read by itself."""
    spans: dict[int, tuple[str, int]] = {}
    for row in block.rows:
        texts = [""] * block.column_count
        for column, (text, rows) in list(spans.items()):
            texts[column] = text
            if rows == 1:
                del spans[column]
            else:
                spans[column] = text, rows - 1
        for cell in row.cells:
            texts[cell.column_index] = one_line(cell.text)
            if cell.row_span > 1 and not row.header:
                spans[cell.column_index] = texts[cell.column_index], cell.row_span - 1
        text, area = CELL_SIGN.join(texts).rstrip(" |"), parse_area(row.cell_range)
        yield f"{area.top + 1}: {text}" if area else text


def _pieces(text: str) -> Iterator[str]:
    for start in range(0, len(text), _LINE_CHARS):
        yield text[start : start + _LINE_CHARS]


@dataclass(frozen=True)
class PageAddress:
    """A page, or a part of one."""

    document_id: str
    page_number: int = 1  # position in it, from 1
    part: int = 1  # the part of its text, from 1

    def __str__(self) -> str:
        address = f"{_PAGES}{quote(self.document_id, safe='')}?page={self.page_number}"
        return address if self.part == 1 else f"{address}&part={self.part}"


def parse_address(uri: str) -> PageAddress | None:
    """Read an address; None for anything else. Slashes and other characters of the id may also stand unescaped."""
    if not uri.startswith(_PAGES):
        return None
    document, _, query = uri.removeprefix(_PAGES).rpartition("?")
    values = parse_qs(query, keep_blank_values=True)
    if not document or not values or not values.keys() <= {"page", "part"}:
        document, values = uri.removeprefix(_PAGES), {}
    try:
        page, part = (int(values.get(name, ["1"])[-1]) for name in ("page", "part"))
    except ValueError:
        return None
    if not document or not 1 <= page < _MOST or not 1 <= part < _MOST:
        return None
    return PageAddress(unquote(document), page, part)


def list_pages(contents: Contents, cursor: str | None) -> tuple[list[tuple[DocumentEntry, int]], str | None]:
    """A part of the list of all pages, by document and number, and where the next part begins.

    Raises:
        QueryError: The cursor is none.
        StoreError: A file is missing or damaged.
    """
    match = _CURSOR.fullmatch(cursor if cursor is not None else "0:")
    if match is None:
        raise QueryError("the cursor is not one that a list gave")
    skip, after = int(match[1]), match[2] or None
    pages: list[tuple[DocumentEntry, int]] = []
    while True:
        part = contents.documents(limit=_DOCUMENTS, cursor=after)
        entries = [(entry, at) for entry in part.items for at in range(1, entry.page_count + 1)][skip:]
        room = _LISTED - len(pages)
        pages += entries[:room]
        if len(entries) > room:
            return pages, f"{skip + room}:{after or ''}"
        if part.next_cursor is None:
            return pages, None
        skip, after = 0, part.next_cursor
        if len(pages) == _LISTED:
            return pages, f"0:{after}"


def read_page_text(contents: Contents, uri: str) -> tuple[str, PageAddress | None]:
    """A part of the text of a page, and the address of the next part.

    Raises:
        QueryError: There is no such page or part.
        StoreError: A file is missing or damaged.
    """
    address = parse_address(uri)
    page = page_lines(contents, address.document_id, address.page_number) if address else None
    if address is None or page is None:
        raise QueryError("there is no such page; addresses are as in rag-assets://pages/specs%2Fa.xlsx?page=1")
    lines, start = page.lines, 0
    for _ in range(1, address.part):
        _, start = part_of(lines, start, _PART_CHARS)
    if start >= len(lines) and address.part > 1:
        raise QueryError("the page has no such part")
    blocks, stop = part_of(lines, start, _PART_CHARS)
    next_page = replace(address, part=address.part + 1) if stop < len(lines) else None
    return "\n\n".join(block.text for block in blocks), next_page
