"""Tables of a sheet: from boxes on the grid to logical rows and columns with their header rows.

A box is a visible cell: a room between drawn lines, a merged range, or a plain cell. What stays out: finding rooms
(`excel_rooms`), texts outside tables (`excel_text`).
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from rag_assets.contracts.causes import BlockKind
from rag_assets.parsing.content import Block, Row
from rag_assets.parsing.excel_cells import Area

_MAXIMUM_HEADER_ROWS = 6


@dataclass(frozen=True, slots=True)
class Box:
    """A visible cell.

    Attributes:
        area: The cells it covers.
        text: Its text; empty where it holds none.
        fill: Colour behind it, or None.
        bold: Whether its text is bold or large.
    """

    area: Area
    text: str
    fill: str | None = None
    bold: bool = False


@dataclass(frozen=True, slots=True)
class Band:
    """A row of a table before its columns are known.

    Attributes:
        top: First sheet row.
        bottom: Last sheet row.
        boxes: Boxes in the row, left to right, those that began above included.
    """

    top: int
    bottom: int
    boxes: tuple[Box, ...]

    @property
    def starting(self) -> tuple[Box, ...]:
        """Boxes that begin in this row."""
        return tuple(box for box in self.boxes if box.area.top >= self.top)

    @property
    def slots(self) -> tuple[Box, ...]:
        """Boxes that begin here with a text, and empty ones without colour right of a coloured name."""
        return tuple(
            box
            for left, box in zip((None, *self.boxes), self.boxes, strict=False)
            if box.area.top >= self.top and (box.text or (not box.fill and left and left.fill and left.text))
        )

    @property
    def filled(self) -> bool:
        """Whether all boxes that begin here have a colour."""
        return bool(self.starting) and all(box.fill for box in self.starting)

    @property
    def lefts(self) -> tuple[int, ...]:
        """First columns of the boxes."""
        return tuple(box.area.left for box in self.boxes)


def make_bands(boxes: Sequence[Box]) -> list[Band]:
    """Arrange boxes into rows that begin wherever a box begins, ordered from top to bottom."""
    tops = sorted({box.area.top for box in boxes})
    rows: list[list[Box]] = [[] for _ in tops]
    for box in sorted(boxes, key=lambda box: (box.area.left, box.area.right)):
        for index in range(bisect_left(tops, box.area.top), bisect_right(tops, box.area.bottom)):
            rows[index].append(box)
    ends = [*(top - 1 for top in tops[1:]), max(box.area.bottom for box in boxes)]
    return [
        Band(top, min(end, max(box.area.bottom for box in row)), tuple(row))
        for top, end, row in zip(tops, ends, rows, strict=True)
    ]


def split_bands(bands: list[Band]) -> list[list[Band]]:
    """Part touching tables: a new one begins at a coloured row of column names below rows that are not coloured."""
    parts = [bands[:1]]
    for index in range(1, len(bands)):
        if _begins_table(bands, index, parts[-1]):
            parts.append([])
        parts[-1].append(bands[index])
    return parts


def _begins_table(bands: list[Band], index: int, part: list[Band]) -> bool:
    band, above = bands[index], bands[index - 1]
    if band.top > above.bottom + 1:
        return True
    if any(box.area.top < band.top for box in band.boxes):
        return False
    if not band.filled or above.filled:
        return _layout_changes(band, above, part)
    below = bands[index + 1] if index + 1 < len(bands) else None
    if below is None or below.filled:
        return len(band.boxes) > 1 and band.lefts != above.lefts
    return band.lefts != above.lefts and (len(band.boxes) > 1 or below.lefts != above.lefts)


def _layout_changes(band: Band, above: Band, part: list[Band]) -> bool:
    """Whether a form changes into another: names and values stand in other columns than above."""
    if band.filled or all(other.filled for other in part):
        return False
    return _is_form_row(band) != _is_form_row(above) and band.lefts != above.lefts


def _is_form_row(band: Band) -> bool:
    """Whether coloured names and plain values alternate."""
    fills = _fills(band)
    return len(fills) > 1 and all(fill == (index % 2 == 0) for index, fill in enumerate(fills))


def _fills(band: Band) -> tuple[bool, ...]:
    return tuple(bool(box.fill) for box in band.boxes)


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
    paired = not headers and _is_form(kept)
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


def count_header_rows(bands: list[Band]) -> int:
    """Leading rows that name columns: by colour, by boxes that span rows, or by plain words above values.

    Forms, whose names stand left of their values, have none.
    """
    if len(bands) < 2:
        return 0
    first = bands[0]
    fills = {box.fill for box in first.boxes}
    if None not in fills:
        count = next(
            (index for index, band in enumerate(bands) if not _continues_header(band, first, fills)), len(bands)
        )
        if count < len(bands):
            return min(count, _MAXIMUM_HEADER_ROWS)
    elif any(fills) and first.boxes[0].fill and _is_form(bands):
        return 0
    if len(first.boxes) < 2 and len(bands[1].boxes) < 2:
        return 1 if first.boxes[0].fill and not bands[1].boxes[0].fill else 0
    if not _names_columns(first):
        return 0
    bottom = max((box.area.bottom for box in first.boxes if box.text), default=first.bottom)
    spanned = sum(band.top <= bottom for band in bands)
    return spanned if spanned < min(len(bands), _MAXIMUM_HEADER_ROWS) else 1


def _continues_header(band: Band, first: Band, fills: set[str | None]) -> bool:
    """Whether a row has the colours of the first one and names columns; a lone text names a group of rows."""
    texts = sum(bool(box.text) for box in band.boxes)
    return all(box.fill in fills for box in band.boxes) and (texts > 1 or len(first.boxes) == 1 or band is first)


def _is_form(bands: list[Band]) -> bool:
    """Whether names with a colour stand left of values without one in most rows."""
    mixed = sum(bool(band.boxes[0].fill) and not all(_fills(band)) for band in bands)
    return mixed * 2 > len(bands)


def _names_columns(band: Band) -> bool:
    texts = [box.text for box in band.boxes if box.text]
    if len(texts) * 2 < len(band.boxes) or len(set(texts)) < len(texts):
        return False
    return all(len(text) <= 80 and not _is_number(text) for text in texts)


def _is_number(text: str) -> bool:
    return text.replace(",", "").replace(".", "").replace("-", "").replace("%", "").isdecimal()
