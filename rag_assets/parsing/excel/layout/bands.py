"""Rows of a table before its columns are known, and where one table ends and the next begins."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from rag_assets.parsing.names import is_attribute, is_name, is_number, is_series
from rag_assets.text.cells import Area
from rag_assets.text.plain import one_line

_WIDER, _LEAST_MORE = 2, 3  # times and texts by which a row has more columns than those above it
_ROWS_LIKEWISE = 2  # below it
_TITLE_CHARS = 40
_LOOKED_AT_ROWS = 100
_HALF, _MOST = 0.5, 0.6


@dataclass(frozen=True, slots=True)
class Box:
    """A visible cell: a room between drawn lines, a merged range, or a plain cell."""

    area: Area
    text: str  # its text; empty where it holds none
    fill: str | None = None  # colour behind it, or None
    bold: bool = False


@dataclass(frozen=True, slots=True)
class Band:
    """A row of a table before its columns are known."""

    top: int  # first sheet row
    bottom: int  # last sheet row
    boxes: tuple[Box, ...]  # boxes in the row, left to right, those that began above included

    @property
    def starting(self) -> tuple[Box, ...]:
        """Boxes that begin in this row."""
        return tuple(box for box in self.boxes if box.area.top >= self.top)

    @property
    def text_boxes(self) -> tuple[Box, ...]:
        """Boxes that begin in this row and hold a text."""
        return tuple(box for box in self.boxes if box.text and box.area.top >= self.top)

    @property
    def texts(self) -> list[str]:
        """Texts of the boxes that begin in this row."""
        return [box.text for box in self.text_boxes]

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
        return all(box.fill for box in self.starting)

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
    """Part touching tables: a new one begins at a row of column names that looks so, or that has other columns, and
    where the title that the rows begin with comes again.

    Lone texts above such a row, as its title, go with it.
    """
    parts = [bands[:1]]
    for index in range(1, len(bands)):
        again = _is_lone(bands[index]) and _is_lone(bands[0]) and bands[index].texts == bands[0].texts
        begins = again or _begins_table(bands, index, parts[-1]) or _names_other_columns(bands, index, parts[-1])
        if begins and not _are_titles(parts[-1], bands[index]):
            is_titled = not again and len(parts[-1]) > 2 and _is_title(*parts[-1][-2:]) and len(bands[index].texts) > 1
            parts.append([parts[-1].pop()] if is_titled else [])
        parts[-1].append(bands[index])
    return parts


def _is_lone(band: Band) -> bool:
    """Whether a row is one text over several columns."""
    return len(band.boxes) == len(band.text_boxes) == 1 and band.boxes[0].area.left < band.boxes[0].area.right


def _are_titles(rows: Sequence[Band], band: Band) -> bool:
    """Whether rows hold a text each over all columns of the row below them."""
    across = (band.boxes[0].area.left, band.boxes[-1].area.right)
    alike = all(_is_lone(row) and (row.boxes[0].area.left, row.boxes[0].area.right) == across for row in rows)
    return alike and len(band.boxes) > 1 and rows[-1].bottom + 1 == band.top


def _is_title(above: Band, band: Band) -> bool:
    """Whether a lone short text below a row of several names what stands below it."""
    texts = band.texts
    lone = len(texts) == len(band.boxes) == 1
    return lone and len(above.texts) > 1 and len(texts[0]) <= _TITLE_CHARS and is_name(texts[0])


def _names_other_columns(bands: Sequence[Band], index: int, part: Sequence[Band]) -> bool:
    """Whether a row in the middle of a table names the columns of another one below it.

    It looks as no row around it does, as the first row of the part or as one without a look of its own; or it has
    columns that the part has not, or lacks some for good, and its words are those that name columns.
    """
    band = bands[index]
    if index + 1 == len(bands) or any(box.area.top < band.top for box in band.boxes):
        return False
    texts, below = band.texts, bands[index + 1 : index + 1 + _LOOKED_AT_ROWS]
    if len(texts) < 2 or len(set(texts)) < len(texts) or len(texts) * 5 < len(below[0].texts) * 4:
        return False
    if (is_wider := _is_much_wider(band, part, below)) or not all(map(is_name, texts)):
        return is_wider
    above = part[-_LOOKED_AT_ROWS:]
    names = next((row for row in part if len(row.texts) > 1), None)
    if names is None or names is next(row for row in reversed(part) if len(row.texts) > 1):
        return False
    attributes = sum(map(is_attribute, texts)) / len(texts)
    last = above[-2] if len(above) > 1 and _is_title(*above[-2:]) else above[-1]
    if stands_out(band) and not (stands_out(last) or stands_out(below[0])):
        alike = stands_out(names) in {stands_out(band), ""}
        least = _MOST if band.lefts == names.lefts else _HALF
        changes = last.lefts != band.lefts == below[0].lefts and len(texts) == len(band.boxes)
        changes = changes and not _spans(band) <= _spans(names)
        if attributes > least or texts == names.texts or changes:
            return alike
        return alike and attributes > 0 and _breaks_numbers(band, last, below[0])
    if attributes < _MOST or len(texts) < 3:
        return False
    plain = not any(box.fill or box.bold for row in (*above, band, below[0]) for box in row.boxes)
    return plain and _has_other_columns(band, above, below)


def _is_much_wider(band: Band, part: Sequence[Band], below: Sequence[Band]) -> bool:
    """Whether a row of names has far more columns than any above it, as the rows below it do, while those above stand
    left of them, as in a title block above a table.
    """
    count = len(band.texts)
    if count < len(part[-1].texts) + _LEAST_MORE:  # as nearly all rows
        return False
    most = max(len(row.texts) for row in part)
    if any(map(is_number, band.texts)) or sum(map(is_name, band.texts)) < count * _MOST:
        return False
    if most < _WIDER or count < max(_WIDER * most, most + _LEAST_MORE):
        return False
    left = band.text_boxes[most].area.left
    if any(box.area.right >= left for row in part for box in row.text_boxes):
        return False
    return all(len(row.texts) >= count * _HALF for row in below[:_ROWS_LIKEWISE])


def _spans(band: Band) -> set[tuple[int, int]]:
    return {(box.area.left, box.area.right) for box in band.boxes}


def stands_out(band: Band) -> str:
    """How all texts that begin in a row are set off: by a colour, bold, or neither (empty)."""
    boxes = band.text_boxes
    if boxes and all(box.fill for box in boxes):
        return "fill"
    return "bold" if boxes and all(box.bold for box in boxes) else ""


def _breaks_numbers(band: Band, above: Band, below: Band) -> bool:
    """Whether a word stands between numbers of its column."""
    numbers = [{box.area.left for box in row.text_boxes if is_number(box.text)} for row in (above, below)]
    return any(box.area.left in numbers[0] & numbers[1] for box in band.text_boxes)


def _has_other_columns(band: Band, part: Sequence[Band], below: Sequence[Band]) -> bool:
    """Whether a row has a column right of all above, or lacks the last one, as do all rows below."""
    lefts = {box.area.left for box in band.text_boxes}
    above = {box.area.left for row in part for box in row.text_boxes}
    after = {box.area.left for row in below for box in row.text_boxes}
    if max(lefts) > max(above):
        return len(lefts & above) > 1 and max(lefts) in after
    return max(lefts) < max(above) and lefts <= above and max(after) <= max(lefts)


def _begins_table(bands: list[Band], index: int, part: list[Band]) -> bool:
    band, above = bands[index], bands[index - 1]
    if band.top > above.bottom + 1:
        return True
    if any(box.area.top < band.top for box in band.boxes):
        return False
    if not band.filled and not all(row.filled for row in part):
        # A form changes into another: names and values stand in other columns than above.
        changes = is_form_row(band) != is_form_row(above) and band.lefts != above.lefts
        return changes and not _is_within(band, above, part)
    if above.filled or _holds_values(band, part):
        return False
    below = bands[index + 1] if index + 1 < len(bands) else None
    if below is None or below.filled:
        return (len(band.boxes) > 1 and band.lefts != above.lefts) or _is_coloured_title(bands, index, part)
    return band.lefts != above.lefts and (len(band.boxes) > 1 or below.lefts != above.lefts)


def _is_within(band: Band, above: Band, part: Sequence[Band]) -> bool:
    """Whether two rows have no columns but those of the first row, which names many and is no row of a form."""
    names = part[0]
    columns = {box.area.left for box in names.text_boxes}
    return (
        len(columns) > 2
        and not is_form_row(names)
        and columns.issuperset(band.lefts)
        and columns.issuperset(above.lefts)
    )


def _holds_values(band: Band, part: Sequence[Band]) -> bool:
    """Whether a coloured row holds values as those above it: a number that counts no years or months, or a text of its
    column, and few names.
    """
    boxes = band.text_boxes
    if len(boxes) < 2 or sum(is_attribute(box.text) for box in boxes) >= _HALF * len(boxes):
        return False
    rows = [row for row in part[max(1, len(part) - _LOOKED_AT_ROWS) :] if not row.filled]
    above = {(box.area.left, box.text) for row in rows for box in row.text_boxes}
    numbers = [box.text for box in boxes if is_number(box.text)]
    counts = is_series(numbers) and all(map(str.isdecimal, numbers))
    return (bool(numbers) and not counts) or any((box.area.left, box.text) in above for box in boxes)


def _is_coloured_title(bands: Sequence[Band], index: int, part: Sequence[Band]) -> bool:
    """Whether a lone coloured box stands above coloured names of columns: of others than above, or in their colour."""
    if not titles_names(bands[index : index + 3]):
        return False
    names = next((band for band in part if band.filled and len(band.boxes) > 1), None)
    below = bands[index + 1]
    return below.lefts != bands[index - 1].lefts or (names is not None and names.boxes[0].fill == below.boxes[0].fill)


def titles_names(bands: Sequence[Band]) -> bool:
    """Whether rows begin with a lone coloured text and coloured names of columns, with a row of another look below."""
    if len(bands) < 3 or not (bands[0].filled and bands[1].filled) or bands[2].filled:
        return False
    texts, names = bands[0].texts, [one_line(text) for text in bands[1].texts]
    if not texts or any(len(text) > _TITLE_CHARS or "\n" in text for text in texts[:1]) or len(names) < 2:
        return False
    if len(bands[0].boxes) > 1 and not _is_title_of(bands[0], bands[1]):
        return False
    distinct = len(set(names)) == len(names) == len(bands[1].boxes)
    return distinct and all(is_name(name) or name.isalpha() for name in names)


def _is_title_of(band: Band, names: Band) -> bool:
    """Whether a row of cells holds few texts, side by side, in another colour than that of the names below it, and of
    fewer columns.
    """
    boxes = band.text_boxes
    areas = [box.area for box in boxes]
    if 2 * len(boxes) > len(names.text_boxes) or any(
        area.left < area.right or area.top < area.bottom for area in areas
    ):
        return False
    beside = all(later.left == earlier.right + 1 for earlier, later in pairwise(areas))
    return beside and {box.fill for box in boxes}.isdisjoint(box.fill for box in names.boxes)


def begin_with_title(bands: Sequence[Band]) -> bool:
    """Whether rows begin with a text over all columns, and no other row is such but one that goes on with it."""
    whole = Area.around(box.area for band in bands for box in band.boxes)

    def is_across(band: Band) -> bool:
        area = band.boxes[0].area
        return _is_lone(band) and (area.left, area.right) == (whole.left, whole.right) and area.bottom <= band.bottom

    if len(bands) < 2 or not is_across(bands[0]) or any(map(is_across, bands[2:])):
        return False
    return any(len(band.text_boxes) > 1 for band in bands[1:3])


def is_form_row(band: Band) -> bool:
    """Whether coloured names and plain values alternate."""
    fills = [bool(box.fill) for box in band.boxes]
    return len(fills) > 1 and fills == [index % 2 == 0 for index in range(len(fills))]
