"""Cells of a grid on a PDF page: the text of each, and the rows that stand in ruled rows without a rule between them.

What stays out: which runs stand in a cell, and what the rows are together (`rag_assets.parsing.pdf.tables`).
"""

import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from operator import or_
from statistics import median

from rag_assets.contracts.content import Box
from rag_assets.parsing.flow import is_cjk, join_lines
from rag_assets.parsing.pdf.lines import GOES_ON, GOING_ON, LABEL, LATIN_WORD, LIST_ITEM, Line
from rag_assets.parsing.pdf.rules import Grid, places_apart

_FIGURE_SHARE = 0.9
_SPLIT_LINES = 3
_SPLIT_SHARE = 0.7
_MERGED_LINES = 2  # heights of a row for each line of a name that spans it, at least
_NAME_STEP = 1.7  # of the type, between lines of one name
# Room behind a line that is ended, in sizes of the type.
_ITEM_ROOM = 2
_LINE_ROOM = 3
_CELL_ROOM = 6
_CELL_SHARE = 0.25
_PADDING = 12.0  # of a cell, on both sides together, in points
_NUMBER = re.compile(r"^[\s(（△▲＋+\-−–―$¥￥€£~≦≧<>]*\d[\d,，.．:/\s]*[%％)）\w]{0,3}$|^[-−–―*]$")
COUNTED = re.compile(r"第?\s*\d+\s*(?:月|回目?|年度?|期|日|週|次|号|組|班|[Qq]|st|nd|rd|th)")  # in names of columns
_YEAR = re.compile(r"^(?:19|20)\d\d(?:[/-]\d{2,4})?$")


def widths_of(grid: Grid) -> dict[int, float]:
    """Width of each cell in points."""
    sides: dict[int, tuple[float, float]] = {}
    for row in grid.rooms:
        for room, left, right in zip(row, grid.xs, grid.xs[1:], strict=False):
            begin, end = sides.get(room, (left, right))
            sides[room] = min(begin, left), max(end, right)
    return {room: right - left for room, (left, right) in sides.items()}


def cell_text(lines: Sequence[Line], width: float) -> str:
    """Text of a cell; what stands in lines of its own there, rather than being broken for want of room, does so here.

    Args:
        lines: Its lines.
        width: Of the cell in points.
    """
    if not lines:
        return ""
    groups = [[lines[0]]]
    widest = max(line.box[2] - line.box[0] for line in lines)
    for above, below in pairwise(lines):
        if _is_ended(above, below, widest, width):
            groups.append([])
        groups[-1].append(below)
    return "\n".join(join_lines([line.text for line in group]) for group in groups)


def _is_ended(above: Line, below: Line, widest: float, width: float) -> bool:
    """Whether a line of a cell ends where more would have fitted.

    Args:
        above: The line.
        below: The next one.
        widest: Width of the widest line of the cell.
        width: Of the cell.
    """
    if above.is_vertical or below.is_vertical or above.text.endswith("\u00ad"):
        return False
    if _names_amount(above.text) and _names_amount(below.text):
        return True
    length, size = above.box[2] - above.box[0], above.size
    if width - length > _ITEM_ROOM * size and (LIST_ITEM.match(below.text) or LABEL.match(below.text)):
        return True
    if GOES_ON.search(above.text) or (GOING_ON.match(below.text) and not above.text[-1].isdecimal()):
        return False
    word = LATIN_WORD.match(below.text)
    least = max(_LINE_ROOM, 0.6 * len(word[0]) + 1 if word else 0) * size
    return widest - length > least or width - _PADDING - length > max(_CELL_ROOM * size, least, _CELL_SHARE * width)


def _names_amount(text: str) -> bool:
    """Whether a line is a Japanese name and an amount, spaces between."""
    name, _, amount = text.rpartition(" ")
    name = name.rstrip(" △▲−-")
    return bool(name) and is_cjk(name[-1]) and is_number(amount)


def bands_of(grid: Grid) -> list[range]:
    """Rows that cells which span rows hold together, from the top; a row without such cells is one of its own."""
    bands: list[range] = []
    for number, row in enumerate(grid.rooms):
        if bands and set(row) & set(grid.rooms[number - 1]):
            bands[-1] = range(bands[-1].start, number + 1)
        else:
            bands.append(range(number, number + 1))
    return bands


def split_band(
    grid: Grid, band: range, lines: dict[int, list[Line]], widths: dict[int, float], open_rooms: frozenset[int]
) -> list[tuple[Box, list[str], list[str]]]:
    """Rows inside ruled rows whose cells hold lines side by side at the same heights; none where they do not.

    Returns:
        Of each row its place, its cells, and its cells as displayed.
    """
    rows = [grid.rooms[number] for number in band]
    filled_lines = {room: lines[room] for row in rows for room in row if lines.get(room)}
    if len(filled_lines) < 2:
        return []
    heights = _heights(filled_lines)
    if len(heights) < 2:
        return []
    spans = _spans(grid, band)
    texts = _at_heights(filled_lines, heights)
    wrapped_rooms = {room for room, room_lines in filled_lines.items() if _is_wrapped(room_lines, widths[room])}
    is_broken = any(
        2 * len(room_lines) >= len(heights) and _is_broken(room_lines) for room_lines in filled_lines.values()
    )
    if is_broken and not open_rooms.issuperset(filled_lines):
        return []
    figures = {
        room
        for room, room_lines in filled_lines.items()
        if sum(is_number(line.text) for line in room_lines) > _SPLIT_SHARE * len(room_lines)
    }
    lists = _lists_figures(filled_lines, wrapped_rooms, figures, texts, _SPLIT_LINES if len(rows) == 1 else 2)
    paired_rooms = _paired_rooms(spans, filled_lines, figures, texts)
    if lists and len(rows) > 1 and not paired_rooms:
        lists = _is_listed_over_rows(
            grid, spans, filled_lines, figures, [_row_at(grid, band, at) for at in heights], texts
        )
    is_listed = lists or open_rooms.issuperset(filled_lines)
    if not is_listed and not _lists_names(grid, band, filled_lines, widths, texts):
        return []
    merged_texts: dict[int, str] = {}
    if lists or len(rows) > 1:
        names = {room: room_lines for room, room_lines in filled_lines.items() if room not in paired_rooms}
        merged_texts = _merged_texts(grid, spans, names, widths, figures, heights)
    listed_rooms = {room: room_lines for room, room_lines in filled_lines.items() if room not in merged_texts}
    heights = _heights(listed_rooms)
    texts = _at_heights(listed_rooms, heights)
    between = [(a + b) / 2 for a, b in pairwise(heights)]
    for room, text in merged_texts.items():
        texts[bisect_right(between, _middle(filled_lines[room][0]))][room] = text
    edges = [grid.ys[band.start], *between, grid.ys[band.stop]]
    split_rows = []
    for index, at in enumerate(texts):
        row = grid.rooms[_row_at(grid, band, heights[index])]
        shown_row = ["" if room in row[:column] else at.get(room, "") for column, room in enumerate(row)]
        box = (grid.xs[0], edges[index], grid.xs[-1], edges[index + 1])
        split_rows.append((box, [merged_texts.get(room) or at.get(room, "") for room in row], shown_row))
    return split_rows


def _heights(lines: dict[int, list[Line]]) -> list[float]:
    """Heights at which lines of cells stand, from the top."""
    size = median(line.size for room_lines in lines.values() for line in room_lines)
    return places_apart((_middle(line) for room_lines in lines.values() for line in room_lines), 0.5 * size)


def _at_heights(lines: dict[int, list[Line]], heights: Sequence[float]) -> list[dict[int, str]]:
    """Texts of the cells at each height."""
    between = [(a + b) / 2 for a, b in pairwise(heights)]
    texts: list[dict[int, str]] = [{} for _ in heights]
    for room, room_lines in lines.items():
        for line in room_lines:
            at = texts[bisect_right(between, _middle(line))]
            at[room] = (at.get(room, "") + " " + line.text.replace("\u00ad", "-")).strip()
    return texts


def _row_at(grid: Grid, band: range, height: float) -> int:
    return max(band.start, min(bisect_right(grid.ys, height) - 1, band.stop - 1))


def _spans(grid: Grid, band: range) -> dict[int, tuple[int, int]]:
    """First row of each cell of some rows, and the row behind its last."""
    spans: dict[int, tuple[int, int]] = {}
    for number in band:
        for room in grid.rooms[number]:
            spans[room] = spans.get(room, (number, 0))[0], number + 1
    return spans


def _paired_rooms(
    spans: dict[int, tuple[int, int]],
    lines: dict[int, list[Line]],
    figures: set[int],
    texts: Sequence[dict[int, str]],
) -> set[int]:
    """Cells that span rows, with a line beside each of several figures in a cell of the same rows, as in the half of a
    balance sheet whose other half has more parts.

    Args:
        spans: Rows of each cell.
        lines: Lines of each cell that has any.
        figures: Cells of figures.
        texts: Texts of the cells at each height.
    """
    paired_rooms = set()
    for figure in figures:
        top, bottom = spans[figure]
        if bottom - top < 2 or len(lines[figure]) < 2:
            continue
        beside = [set(at) for at in texts if figure in at]
        paired_rooms |= {room for room in set.intersection(*beside) - {figure} if spans[room] == (top, bottom)}
    return paired_rooms


def _is_listed_over_rows(
    grid: Grid,
    spans: dict[int, tuple[int, int]],
    lines: dict[int, list[Line]],
    figures: set[int],
    numbers: Sequence[int],
    texts: Sequence[dict[int, str]],
) -> bool:
    """Whether a cell that spans rows has a line beside practically all figures of a column there, which the rules of
    the rows do not part: a line in each of some rows, or more lines than rows.

    Args:
        grid: The grid.
        spans: Rows of each cell.
        lines: Lines of each cell that has any.
        figures: Cells of figures.
        numbers: Row of each height.
        texts: Texts of the cells at each height.
    """
    columns = []
    for column in range(len(grid.xs) - 1):
        figure_rooms = figures.intersection(row[column] for row in grid.rooms[numbers[0] : numbers[-1] + 1])
        columns.append(
            [(number, at) for number, at in zip(numbers, texts, strict=True) if not figure_rooms.isdisjoint(at)]
        )
    for room in (room for room, room_lines in lines.items() if len(room_lines) > 1):
        top, bottom = spans[room]
        row_numbers = {number for number, at in zip(numbers, texts, strict=True) if room in at}
        is_list = len(lines[room]) > bottom - top or len(lines[room]) == len(row_numbers)
        for column_figures in columns if bottom - top > 1 and is_list else ():
            beside = [room in at for number, at in column_figures if top <= number < bottom]
            if sum(beside) > 1 and sum(beside) >= _FIGURE_SHARE * len(beside):
                return True
    return False


def _merged_texts(
    grid: Grid,
    spans: dict[int, tuple[int, int]],
    lines: dict[int, list[Line]],
    widths: dict[int, float],
    figures: set[int],
    heights: Sequence[float],
) -> dict[int, str]:
    """Texts of cells that belong to all rows inside theirs: in the middle of cells that span rows, at their top before
    all figures, or a line before all figures in the middle of one ruled row's lines.

    Args:
        grid: The grid.
        spans: Rows of each cell.
        lines: Lines of each cell that has any.
        widths: Width of each cell.
        figures: Cells of figures.
        heights: Heights of lines.
    """
    merged_texts = {}
    for room, room_lines in lines.items():
        top, bottom = spans[room]
        if (
            _MERGED_LINES * len(room_lines) > len(heights)
            or not _is_name(room_lines)
            or (bottom - top < 2 and len(room_lines) > 1)
        ):
            continue
        above, below = room_lines[0].box[1] - grid.ys[top], grid.ys[bottom] - room_lines[-1].box[3]
        is_first = not any(set(row[: row.index(room)]) & figures for row in grid.rooms[top:bottom])
        if bottom - top < 2:
            is_merged = (
                is_first and abs(_middle(room_lines[0]) - (heights[0] + heights[-1]) / 2) < room_lines[0].size / 2
            )
        else:
            is_merged = abs(above - below) < 2 * room_lines[0].size or (is_first and above < room_lines[0].size)
        if is_merged:
            merged_texts[room] = cell_text(room_lines, widths[room]).replace("\u00ad", "-")
    return merged_texts


def _is_name(lines: Sequence[Line]) -> bool:
    """Whether the lines of a cell are one text, which is no figure, periods aside."""
    is_near = all(_middle(below) - _middle(above) < _NAME_STEP * above.size for above, below in pairwise(lines))
    return is_near and not any(is_number(line.text) and not COUNTED.fullmatch(line.text) for line in lines)


def _lists_names(
    grid: Grid, band: range, lines: dict[int, list[Line]], widths: dict[int, float], texts: Sequence[dict[int, str]]
) -> bool:
    """Whether cells that span rows hold a name for each of them, at the height of what else the row holds, and of a
    figure for one at least.
    """
    if len(texts) > len(band):
        return False
    spans = _spans(grid, band)
    names = set()
    for room, room_lines in lines.items():
        top, bottom = spans[room]
        if len(room_lines) == 1:
            continue
        heights = zip(room_lines, grid.ys[top:], grid.ys[top + 1 :], strict=False)
        in_rows = len(room_lines) == bottom - top and all(begin < _middle(line) < end for line, begin, end in heights)
        if not in_rows or cell_text(room_lines, widths[room]).count("\n") + 1 < len(room_lines):
            return False
        names.add(room)
    return any(names & set(at) and any(map(is_number, at.values())) for at in texts)


def _middle(line: Line) -> float:
    return (line.box[1] + line.box[3]) / 2


def _lists_figures(
    lines: dict[int, list[Line]],
    wrapped_rooms: set[int],
    figures: set[int],
    texts: Sequence[dict[int, str]],
    fewest: int,
) -> bool:
    """Whether a cell lists figures that stand beside short lines of other cells, as in an account.

    Args:
        lines: Lines of each cell that has any.
        wrapped_rooms: Cells of running text.
        figures: Cells of figures.
        texts: Texts of the cells at each height.
        fewest: Figures of such a cell at least.
    """
    if any(len(lines[room]) >= _SPLIT_LINES for room in wrapped_rooms - figures):
        return False
    if not any(len(lines[room]) >= fewest for room in figures):
        return False
    beside = [at for at in texts for room in at if room in figures]
    return sum(len(at) > 1 for at in beside) >= _FIGURE_SHARE * len(beside)


def _is_broken(lines: Sequence[Line]) -> bool:
    """Whether all lines of a cell go on with the ones above, as those of a sentence do."""
    breaks = [bool(GOES_ON.search(above.text)) for above, _ in pairwise(lines)]
    continuations = [bool(GOING_ON.match(below.text)) for below in lines[1:]]
    return any(breaks) and all(map(or_, breaks, continuations))


def _is_wrapped(lines: list[Line], width: float) -> bool:
    """Whether lines fill a cell of some width as running text does."""
    return sum(line.box[2] - line.box[0] > 0.8 * width for line in lines) > len(lines) / 2


def is_number(cell: str) -> bool:
    """Whether a cell holds a figure, years aside."""
    return _NUMBER.match(cell) is not None and not _YEAR.match(cell)
