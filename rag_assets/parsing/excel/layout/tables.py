"""Tables of a sheet: from boxes on the grid to logical rows and columns with their header rows.

What stays out: rows before their columns are known (`excel_bands`), which rows name columns (`excel_headers`), texts
outside tables (`excel_text`).
"""

from bisect import bisect_left, bisect_right
from itertools import pairwise

from rag_assets.contracts.causes import BlockKind
from rag_assets.contracts.content import Block, Row
from rag_assets.parsing.excel.cells import Area
from rag_assets.parsing.excel.layout.bands import Band
from rag_assets.parsing.excel.layout.forms import is_coloured_form
from rag_assets.parsing.excel.layout.headers import count_header_rows


def table_block(bands: list[Band]) -> Block | None:
    """A table from its rows; None where no box holds text.

    Rows and columns in which no text begins are left out. A value that spans several rows or columns stands in each of
    their cells, and once in the text. There too, empty cells keep their places, save in a form, where a value follows
    its name.
    """
    kept = [band for band in bands if any(box.text for box in band.starting)]
    if not kept:
        return None
    lefts = sorted({box.area.left for band in kept for box in band.slots})
    left = min(box.area.left for band in kept for box in band.boxes)
    right = max(box.area.right for band in kept for box in band.boxes)
    headers = count_header_rows(kept)
    paired = not headers and is_coloured_form(kept)
    rows, lines = [], []
    for index, band in enumerate(kept):
        end = kept[index + 1].top - 1 if index + 1 < len(kept) else band.bottom
        bottom = max(band.top, min(end, band.bottom))
        cells, line = _fill_row(band, lefts, kept[0].top)
        rows.append(Row(cells, Area(band.top, left, bottom, right).label))
        lines.append(_text_line([box.text for box in band.slots] if paired else line))
    rows[:headers] = _spread_groups(rows[:headers])
    bottom = max(band.bottom for band in kept)
    text = "\n".join(lines)
    label = Area(kept[0].top, left, bottom, right).label
    if len(lefts) == 1 and len(kept) == 1:
        return Block(BlockKind.PARAGRAPH, text, cell_range=label)
    return Block(BlockKind.TABLE, text, cell_range=label, header_row_count=headers, rows=tuple(rows))


def _spread_groups(headers: list[Row]) -> list[Row]:
    """Give the empty cells right of a group's name that name, where a row of names below goes on."""
    spread = []
    for row, below in pairwise(headers):
        cells = list(row.cells)
        for column in range(1, len(cells)):
            if not cells[column] and below.cells[column]:
                cells[column] = cells[column - 1]
        spread.append(Row(tuple(cells), row.cell_range))
    return [*spread, *headers[-1:]]


def _text_line(cells: list[str]) -> str:
    return " | ".join(cell.replace("\n", " ") for cell in cells).rstrip(" |")


def _fill_row(band: Band, lefts: list[int], first_row: int) -> tuple[tuple[str, ...], list[str]]:
    """The cells of a row by logical column, and those of its line of text, where spanned cells are empty.

    A box around another one, as that of a value below its name without a line between, leaves that one its columns.
    """
    cells = [""] * len(lefts)
    line = [""] * len(lefts)
    owners: list[list[Area]] = [[] for _ in lefts]
    for box in band.boxes:
        if not box.text:
            continue
        start, end = bisect_left(lefts, box.area.left), bisect_right(lefts, box.area.right)
        if start == end:
            start = max(0, start - 1)
        columns = range(start, max(end, start + 1))
        own = [column for column in columns if not any(_overlap(box.area, area) for area in owners[column])] or columns
        start = own[0]
        for column in own:
            cells[column] = f"{cells[column]} {box.text}".strip() if cells[column] else box.text
            owners[column].append(box.area)
        if box.area.top >= band.top or band.top == first_row:
            line[start] = f"{line[start]} {box.text}".strip()
    return tuple(cells), line


def _overlap(one: Area, other: Area) -> bool:
    rows = one.top <= other.bottom and other.top <= one.bottom
    return rows and one.left <= other.right and other.left <= one.right
