"""Tables of delimited text: where they begin, the lines above and below them, their headers.

Programs write titles, dates and conditions above a table, and tables below each other; spreadsheets fill such lines up
with empty fields. What stays out: encodings and files (`text`), records (`csv_records`).
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from rag_assets.contracts.causes import BlockKind, FailureCause
from rag_assets.contracts.content import Block, Row
from rag_assets.contracts.errors import ParseError
from rag_assets.parsing.excel.layout.names import is_period
from rag_assets.parsing.flow import Sections, table_block
from rag_assets.text.cells import cover, format_range

Record = tuple[int, list[str]]  # its number as a spreadsheet would count it, its fields

ROWS_PER_BLOCK = 1000
_SAMPLE_RECORDS = 1000
_LINES_ABOVE = 30
_TITLE_CHARS = 60
_LOOKED_AT_BELOW = 3
_NUMBER = re.compile(r"^[\s¥$€△▲(+-]*[\d０-９][\d０-９,.:/年月日%％)\s-]*$")
_NO_TITLE = re.compile(r"^[#;*/]|[:：=＝。.、,]|^[\W\d_]*$")


@dataclass(frozen=True, slots=True)
class _Part:
    """A table with the lines above it; either may be missing."""

    lines: Sequence[Record] = ()
    table: Sequence[Record] = field(default=())


def table_blocks(records: Sequence[Record], maximum_cells: int) -> list[Block]:
    """Blocks of the records of a file.

    Args:
        records: Those that are not empty, in order.
        maximum_cells: Cells of all tables, rows times columns.

    Returns:
        Tables of at most `ROWS_PER_BLOCK` rows, each under the header row; lines around them as paragraphs, and the
        first line above a table, where it can be a title, as the heading of what follows.

    Raises:
        ParseError: TOO_LARGE where the tables have more cells.
    """
    parts = list(_parts(records))
    widths = [max((len(cells) for _, cells in part.table), default=0) for part in parts]
    if sum(width * len(part.table) for width, part in zip(widths, parts, strict=True)) > maximum_cells:
        message = f"{len(records)} rows of {max(widths)} columns, limit {maximum_cells} cells"
        raise ParseError(FailureCause.TOO_LARGE, message)
    blocks, sections = list[Block](), Sections()
    for part, width in zip(parts, widths, strict=True):
        blocks.extend(_line_blocks(part.lines, sections, above=bool(part.table)))
        blocks.extend(_blocks(part.table, width, sections.path))
    return blocks


def _parts(records: Sequence[Record]) -> Iterator[_Part]:
    """Tables below each other: empty lines part them, their widths differ, and the lower has a header of its own."""
    gaps = [place for place in range(1, len(records)) if records[place][0] > records[place - 1][0] + 1]
    begin = _start_behind_gap(records, gaps) or _table_start(records)
    lines = records[:begin]
    gaps = [gap for gap in gaps if gap > begin]
    typical = _typical_width(records[begin : gaps[0] if gaps else len(records)])
    for gap, end in pairwise([*gaps, len(records)]):
        section = records[gap:end]
        offset = _table_start(section)
        own = _typical_width(section[offset:])
        if end - gap - offset < 2 or own == typical or not (own > 1 and _is_header(section, offset, own)):
            continue
        table_end = _end_without_lines(records, begin, gap, typical)
        yield _Part(lines, records[begin:table_end])
        lines, begin, typical = records[table_end : gap + offset], gap + offset, own
    table_end = _end_without_lines(records, begin, len(records), typical)
    yield _Part(lines, records[begin:table_end])
    if table_end < len(records):
        yield _Part(records[table_end:])


def _start_behind_gap(records: Sequence[Record], gaps: Sequence[int]) -> int:
    """Position of a header that an empty line parts from narrower lines of different widths above it; 0 for none."""
    start = next((gap for gap in gaps if _filled(records[gap][1]) > 1), 0)
    if not 0 < start <= _LINES_ABOVE or start + 1 >= len(records):
        return 0
    filled, widths = _filled(records[start][1]), [_filled(cells) for _, cells in records[:start]]
    are_lines = max(widths) < filled and (widths[0] == 1 or len(set(widths)) > 1)
    return start if are_lines and _is_header(records, start, filled) else 0


def _end_without_lines(records: Sequence[Record], begin: int, end: int, typical: int) -> int:
    """End of a table of several columns without the lines of one field below it, which an empty line parts from it."""
    place = end
    while typical > 2 and place > begin and _filled(records[place - 1][1]) == 1:
        place -= 1
        if records[place][0] > records[place - 1][0] + 1 and place > begin:
            end = place
    return end


def _table_start(records: Sequence[Record]) -> int:
    """Position of the first record of the table: lines above it fill at most half of its columns."""
    typical = _typical_width(records)
    for place, (_, cells) in enumerate(records[: _LINES_ABOVE + 1]):
        if _filled(cells) < 2 or _filled(cells) * 2 <= typical:
            continue
        if _are_names(records, place):
            return place
        if any(_filled(above) != 1 for _, above in records[:place]):
            return 0
        below = place + 1
        has_header_below = _filled(cells) == 2 < typical and place > 0 and below < len(records)
        return below if has_header_below and _is_header(records, below, typical) else place
    return 0


def _typical_width(records: Sequence[Record]) -> int:
    """The most frequent number of fields; where all records have one number, that up to the last that is not empty."""
    sample = [cells for _, cells in records[:_SAMPLE_RECORDS]]
    widths = Counter(map(len, sample))
    if len(widths) == 1:
        widths = Counter(map(_extent, sample))
    return max(widths, key=lambda width: (widths[width], width), default=0)


def _filled(cells: Sequence[str]) -> int:
    return sum(map(bool, cells))


def _extent(cells: Sequence[str]) -> int:
    return next((place for place in range(len(cells), 0, -1) if cells[place - 1]), 0)


def _line_blocks(lines: Sequence[Record], sections: Sections, *, above: bool) -> Iterator[Block]:
    for place, (number, cells) in enumerate(lines):
        filled = [cell for cell in cells if cell]
        text = f"{filled[0].rstrip(':：')}: {filled[1]}" if len(filled) == 2 else " | ".join(filled)
        cell_range = format_range(number, 1, number, max(1, _extent(cells)))
        is_title = (
            place == 0 and above and len(filled) == 1 and len(text) <= _TITLE_CHARS and not _NO_TITLE.search(text)
        )
        kind = BlockKind.HEADING if is_title else BlockKind.PARAGRAPH
        yield Block(kind, text, sections.enter(1, text) if is_title else sections.path, cell_range=cell_range)


def _blocks(records: Sequence[Record], width: int, section: tuple[str, ...]) -> Iterator[Block]:
    rows = [
        Row(tuple(cells) + ("",) * (width - len(cells)), format_range(number, 1, number, width))
        for number, cells in records
    ]
    header_row_count = int(len(rows) > 1 and _is_header(records, 0, _typical_width(records)))
    header, body = rows[:header_row_count], rows[header_row_count:]
    for start in range(0, max(len(body), 1), ROWS_PER_BLOCK):
        part = body[start : start + ROWS_PER_BLOCK]
        if shown := [*header, *part]:
            covered = (header if start == 0 else []) + part
            cell_range = cover([row.cell_range or "" for row in (covered[0], covered[-1])])
            yield table_block(shown, header_row_count, section, cell_range=cell_range)


def _is_header(records: Sequence[Record], place: int, typical: int) -> bool:
    """Whether a row names the columns: no empty cell but for a first one and those behind all, no value, no repeat."""
    cells = records[place][1]
    named = cells[: _extent(cells)]
    if len(named) > 2 and not named[0]:
        named = named[1:]
    if len(named) * 2 <= typical or not all(named) or not _are_names(records, place):
        return False
    return bool(named) and len(set(named)) == len(named)


def _are_names(records: Sequence[Record], place: int) -> bool:
    """Whether no cell of a row is a number; months and the like are names where none stand below them."""
    below = [cells for _, cells in records[place + 1 : place + 1 + _LOOKED_AT_BELOW]]
    return all(
        is_period(cell) and not any(is_period(under[column]) for under in below if column < len(under))
        for column, cell in enumerate(records[place][1])
        if _NUMBER.match(cell)
    )
