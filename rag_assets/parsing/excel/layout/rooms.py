"""Rooms of a sheet: what the drawn lines enclose, as the cells and tables that a reader sees.

Japanese design documents use the sheet as graph paper: a table cell is a box drawn around many narrow cells, merged or
not. A room is a set of cells connected without crossing a line. Rooms that touch the empty margin are outside; the
others are the visible cells, and rooms that share a line make up a table.

Where two colours meet side by side, a line counts as drawn: forms often leave it out between a name and its value.
"""

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median

from rag_assets.parsing.excel.cells import SheetCells, Texts
from rag_assets.parsing.excel.workbook import PLAIN, Look
from rag_assets.parsing.geometry import Sets
from rag_assets.parsing.names import is_count, is_number
from rag_assets.text.cells import Area

TEXT_AREA_TEXTS = 12  # of a room, from which it is a page or an area of its own rather than a value
_LEAST_LINES = 3  # of a column, or row, without lines in it
_ALIGNED, _VALUES = 0.8, 0.8  # shares of its texts that are in line with others, and that are numbers
_SHORT_CHARS = 40  # of texts that are no numbers, at the median
_VALUE_CHARS = 20  # of those beside rows that have lines
_NO_VALUE = ("。", "、", "，", ",", ".")
_SIGNS = re.compile("[→⇒⇨➡←↔⇔☐☑□■✓]+")  # between texts that go together

Run = tuple[int, int, int]
"""First column, last column and room of a stretch of a row without lines in it."""


@dataclass(frozen=True, slots=True)
class Room:
    """Cells connected without a line between them."""

    area: Area  # the smallest rectangle around them
    cells: int  # how many they are
    texts: tuple[tuple[int, int], ...]  # positions of its texts in reading order

    @property
    def rectangular(self) -> bool:
        """Whether the room fills its area."""
        return self.cells == self.area.cells


@dataclass(frozen=True, slots=True)
class Floor:
    """All rooms of a sheet."""

    rooms: dict[int, Room]  # enclosed rooms by number
    runs: dict[int, list[Run]]  # runs by row, left to right; runs outside carry numbers that are no rooms
    tables: tuple[tuple[int, ...], ...]  # numbers of the rooms of each table: rooms that share lines, in reading order

    def room_at(self, row: int, column: int) -> int | None:
        """Number of the enclosed room that holds a cell, or None."""
        runs = self.runs.get(row)
        if not runs:
            return None
        index = bisect_right(runs, (column, 1 << 30, 0)) - 1
        room = runs[index][2] if index >= 0 and column <= runs[index][1] else None
        return room if room in self.rooms else None

    def enclosing(self, row: int, column: int) -> Room | None:
        """The room that encloses a cell, or None."""
        number = self.room_at(row, column)
        return None if number is None else self.rooms[number]

    def parts(self, number: int) -> list[Area]:
        """The rectangles that make up a room, from top to bottom: rows in which it covers the same columns."""
        area = self.rooms[number].area
        parts: list[Area] = []
        above: dict[tuple[int, int], int] = {}
        for row in range(area.top, area.bottom + 1):
            spans = [(start, end) for start, end, room in self.runs[row] if room == number]
            if spans != list(above):
                above = {span: len(parts) + index for index, span in enumerate(spans)}
                parts.extend(Area(row, start, row, end) for start, end in spans)
            for index in above.values():
                parts[index] = parts[index]._replace(bottom=row)
        return parts


@dataclass(frozen=True, slots=True)
class _RowLines:
    """Lines of a row: columns with a line at their left; columns with a line above or below."""

    left: set[int]
    top: set[int]
    bottom: set[int]


def find_rooms(cells: SheetCells) -> Floor:
    """Find the rooms of a sheet.

    Cost grows with the number of bordered cells, not with the extent of the sheet.
    """
    bordered_rows = {row: looks for row, looks in cells.looks.items() if any(look.bordered for look in looks.values())}
    if not bordered_rows:
        return Floor({}, {}, ())
    first = min(min(looks) for looks in bordered_rows.values()) - 1
    last = max(max(looks) for looks in bordered_rows.values()) + 1
    lines = dict(_row_lines(cells, bordered_rows))
    sets = Sets()
    outside = sets.add()
    raw: dict[int, list[Run]] = {}
    neighbours: set[tuple[int, int]] = set()
    previous: list[Run] = []
    last_row: int | None = None
    for row in sorted(lines):
        runs = _cut(lines[row].left, first, last, sets)
        sets.union(outside, runs[0][2])
        sets.union(outside, runs[-1][2])
        above = lines.get(row - 1)
        if above is None:
            previous = [(first, last, outside)]
            _leave(raw, last_row, sets, outside, lines)
        _join(previous, runs, sorted(lines[row].top | (above.bottom if above else set())), sets, neighbours)
        neighbours.update((left[2], right[2]) for left, right in pairwise(runs))
        raw[row] = previous = runs
        last_row = row
    _leave(raw, last_row, sets, outside, lines)
    return _floor(cells, raw, sets, outside, neighbours)


def _leave(raw: dict[int, list[Run]], row: int | None, sets: Sets, outside: int, lines: dict[int, _RowLines]) -> None:
    """Join the runs of the last row before a gap with the outside where no line closes them."""
    if row is not None:
        runs = raw[row]
        _join(runs, [(runs[0][0], runs[-1][1], outside)], sorted(lines[row].bottom), sets, set())


def _row_lines(cells: SheetCells, bordered_rows: dict[int, dict[int, Look]]) -> Iterator[tuple[int, _RowLines]]:
    merges: dict[int, list[Area]] = defaultdict(list)
    rows = sorted(bordered_rows)
    for area in cells.merges:
        for row in rows[bisect_left(rows, area.top) : bisect_right(rows, area.bottom)]:
            merges[row].append(area)
    for row in rows:
        looks = bordered_rows[row]
        covers: dict[int, Area] = {}
        lines = _RowLines(set(), set(), set())
        for area in merges.get(row, ()):
            columns = range(area.left, min(area.right, max(looks)) + 1)
            covers.update(dict.fromkeys(columns, area))
            _draw(lines, cells.looks.get(area.top, {}).get(area.left, PLAIN), area, row, columns)
        for column, look in looks.items():
            cover = covers.get(column) or Area(row, column, row, column)
            edge = replace(
                look,
                left=column == cover.left and (look.left or look.fill != looks.get(column - 1, PLAIN).fill),
                right=column == cover.right and (look.right or (look.fill is not None and column + 1 not in looks)),
                top=look.top or _changes_colour(look, bordered_rows.get(row - 1, {}).get(column)),
            )
            _draw(lines, edge, cover, row, (column,))
        yield row, lines


def _changes_colour(look: Look, above: Look | None) -> bool:
    """Whether a cell between lines has another colour than the one above: the line between them was forgotten."""
    if above is None or look.fill == above.fill:
        return False
    return (look.left or look.right) and (above.left or above.right)


def _draw(lines: _RowLines, look: Look, area: Area, row: int, columns: Iterable[int]) -> None:
    """Note the lines that a look draws around an area, as far as they touch a row and columns of it."""
    if look.left:
        lines.left.add(area.left)
    if look.right:
        lines.left.add(area.right + 1)
    if look.top and row == area.top:
        lines.top.update(columns)
    if look.bottom and row == area.bottom:
        lines.bottom.update(columns)


def _cut(left: set[int], first: int, last: int, sets: Sets) -> list[Run]:
    starts = [first, *sorted(column for column in left if first < column <= last)]
    return [(start, end - 1, sets.add()) for start, end in zip(starts, [*starts[1:], last + 1], strict=True)]


def _join(
    above: list[Run], below: list[Run], lined_columns: list[int], sets: Sets, neighbours: set[tuple[int, int]]
) -> None:
    """Unite runs of two rows that no line parts all along; note those that a line parts."""
    upper = lower = 0
    while upper < len(above) and lower < len(below):
        start = max(above[upper][0], below[lower][0])
        end = min(above[upper][1], below[lower][1])
        if start <= end:
            count = bisect_right(lined_columns, end) - bisect_left(lined_columns, start)
            if count < end - start + 1:
                sets.union(above[upper][2], below[lower][2])
            else:
                neighbours.add((above[upper][2], below[lower][2]))
        if above[upper][1] <= below[lower][1]:
            upper += 1
        else:
            lower += 1


def _floor(
    cells: SheetCells, raw: dict[int, list[Run]], sets: Sets, outside: int, neighbours: set[tuple[int, int]]
) -> Floor:
    runs = {row: [(start, end, sets.find(room)) for start, end, room in row_runs] for row, row_runs in raw.items()}
    outside = sets.find(outside)
    extents: dict[int, list[int]] = {}
    for row, row_runs in runs.items():
        for start, end, room in row_runs:
            if room == outside:
                continue
            extent = extents.setdefault(room, [row, start, row, end, 0])
            extent[1], extent[2], extent[3] = min(extent[1], start), max(extent[2], row), max(extent[3], end)
            extent[4] += end - start + 1
    rooms = {room: Room(Area(*extent[:4]), extent[4], ()) for room, extent in extents.items()}
    texts = defaultdict(list)
    floor = Floor(rooms, runs, ())
    for row in runs:
        for column in cells.texts.get(row, ()):
            number = floor.room_at(row, column)
            if number is not None:
                texts[number].append((row, column))
    rooms = {number: Room(room.area, room.cells, tuple(texts.get(number, ()))) for number, room in rooms.items()}
    frames = {number for number, room in rooms.items() if _is_frame(room, number, runs)}
    rooms = {number: room for number, room in rooms.items() if number not in frames}
    pairs = {(sets.find(first), sets.find(second)) for first, second in neighbours}
    return Floor(rooms, runs, _tables(rooms, pairs))


def _is_frame(room: Room, number: int, runs: dict[int, list[Run]]) -> bool:
    """Whether a room is a frame around other rooms: all its four edges are its own, but not all inside it."""
    if room.rectangular:
        return False
    area = room.area
    for row in range(area.top, area.bottom + 1):
        inside = [run for run in runs[row] if run[2] == number]
        if not inside or inside[0][0] != area.left or inside[-1][1] != area.right:
            return False
        if row in {area.top, area.bottom} and inside[0] != (area.left, area.right, number):
            return False
    return True


def _tables(rooms: dict[int, Room], pairs: set[tuple[int, int]]) -> tuple[tuple[int, ...], ...]:
    numbers = list(rooms)
    order = {number: index for index, number in enumerate(numbers)}
    sets = Sets(len(rooms))
    for first, second in pairs:
        if first in order and second in order:
            sets.union(order[first], order[second])
    groups = ([numbers[index] for index in group] for group in sets.groups())
    tables = [tuple(sorted(group, key=lambda number: rooms[number].area)) for group in groups]
    return tuple(sorted(tables, key=lambda group: rooms[group[0]].area))


def with_missing_lines(rooms: Sequence[Room], texts: Texts) -> list[Room]:
    """The rooms of a table, parted where lines were left out between its rows or columns.

    Texts in line with those of other rooms tell: columns side by side that have a text in each of the same rows, one
    column beside rows that have their lines, and rows above each other with texts in the same columns.
    """
    strips: dict[tuple[int, int], list[Room]] = {}
    for room in rooms:
        strips.setdefault((room.area.top, room.area.bottom), []).append(room)
    ruled_rooms = []
    for strip in strips.values():
        rows = _rows_of_columns([room for room in strip if room.rectangular], texts)
        counted_rows = [] if rows else _counted_rows(strip, texts)
        for room in strip:
            heads = len(room.texts) == 1 and room.texts[0][0] in rows[:1]  # the name of a group of rows
            ruled_rooms += [room] if heads else _room_parts(room, rows or counted_rows)
    tops = Counter(room.area.top for room in ruled_rooms)
    left = min((room.area.left for room in ruled_rooms), default=0)
    beside = []
    for room in ruled_rooms:
        beside += _room_parts(room, _rows_beside(room, tops, texts, first=room.area.left == left))
    lefts = Counter(room.area.left for room in beside)
    stacks: dict[tuple[int, int], list[Room]] = {}
    for room in beside:
        stacks.setdefault((room.area.left, room.area.right), []).append(room)
    parted_rooms = []
    for stack in stacks.values():
        columns = _columns_of_rows(stack, texts)
        for room in stack:
            parted_rooms += _room_parts(room, columns or _columns_beside(room, lefts, texts), across=True)
    return sorted(parted_rooms, key=lambda room: room.area)


def _counted_rows(rooms: Sequence[Room], texts: Texts) -> list[int]:
    """The rows that texts of one of several rooms side by side count, one in each row; none where they do not."""
    columns = [room for room in rooms if room.rectangular and len(room.texts) >= TEXT_AREA_TEXTS and len(rooms) > 1]
    counts = (room for room in columns if is_count(_room_texts(room, texts)))
    rows = next(([row for row, _ in room.texts] for room in counts), [])
    return rows if len(set(rows)) == len(rows) else []


def _rows_of_columns(rooms: Sequence[Room], texts: Texts) -> list[int]:
    """The rows of rooms side by side that are columns of a table: most have one text in each of the same rows, and some
    hold numbers, or they are long, and their texts are short; none where the rooms are no such columns.
    """
    columns = {room: [row for row, _ in room.texts] for room in rooms if len(room.texts) >= _LEAST_LINES}
    columns = {room: rows for room, rows in columns.items() if len(set(rows)) == len(rows)}
    if len(columns) < 2:
        return []
    longest, second = sorted(map(set, columns.values()), key=len, reverse=True)[:2]
    if len(longest & second) < _ALIGNED * len(longest):
        return []
    column_texts = [_room_texts(room, texts) for room in columns]
    numbers = any(sum(map(is_number, column)) >= _VALUES * len(column) for column in column_texts)
    short = median(len(text) for column in column_texts for text in column) <= _SHORT_CHARS
    if not numbers and (len(longest) < TEXT_AREA_TEXTS or not short):
        return []
    return sorted(set().union(*columns.values()))


def _rows_beside(room: Room, tops: Mapping[int, int], texts: Texts, *, first: bool) -> list[int]:
    """The rows of a room whose texts are values, each beside the beginning of a row that has lines; words in the first
    column are rather the name of a group of rows.
    """
    rows = sorted({row for row, _ in room.texts})
    if len(rows) < 2 or not room.rectangular:
        return []
    room_texts = _room_texts(room, texts)
    if max(map(len, room_texts)) == 1 and any(map(str.isalpha, room_texts)):
        return []  # of a text that is set downwards
    if not all(map(is_number, room_texts)):
        short = median(map(len, room_texts)) <= _VALUE_CHARS and not any(
            text.endswith(_NO_VALUE) for text in room_texts
        )
        if first or len(rows) <= _LEAST_LINES or not short:
            return []
    aligned_count = sum(tops.get(row, 0) > 1 for row in rows[1:])
    return rows if aligned_count >= _ALIGNED * (len(rows) - 1) else []


def _columns_of_rows(rooms: Sequence[Room], texts: Texts) -> list[int]:
    """The columns of rooms above each other, each of one row, that have texts in the same columns; none of others."""
    rows = [{column for _, column in room.texts} for room in rooms if room.area.top == room.area.bottom and room.texts]
    counts = Counter(column for columns in rows for column in columns)
    columns = sorted(column for column, count in counts.items() if count * 2 > len(rows))
    if len(rows) < _LEAST_LINES or len(columns) < 2:
        return []
    if any(_SIGNS.fullmatch(text) for room in rooms for text in _room_texts(room, texts)):
        return []
    return columns if sum(counts[column] for column in columns) >= _ALIGNED * counts.total() else []


def _columns_beside(room: Room, lefts: Mapping[int, int], texts: Texts) -> list[int]:
    """The columns of a row whose texts stand where others of its table begin that have lines."""
    columns, room_texts = sorted({column for _, column in room.texts}), _room_texts(room, texts)
    if len(columns) < 2 or room.area.top < room.area.bottom or any(map(_SIGNS.fullmatch, room_texts)):
        return []
    if any(":" in text or "：" in text for text in room_texts):
        return []  # labels with their values, which head the rows below
    return columns if all(lefts.get(column, 0) > 1 for column in columns[1:]) else []


def _room_texts(room: Room, texts: Texts) -> list[str]:
    return [texts[row][column] for row, column in room.texts]


def _room_parts(room: Room, begins: Sequence[int], *, across: bool = False) -> list[Room]:
    """A room in parts that begin at some rows, or columns, but for the first part, which begins where the room does."""
    if not begins or not room.rectangular:
        return [room]
    top, left, bottom, right = room.area
    first, last = (left, right) if across else (top, bottom)
    ends = [*(place for place in begins[1:] if first < place <= last), last + 1]
    places: dict[int, list[tuple[int, int]]] = {}
    for place in room.texts:
        places.setdefault(bisect_right(ends, place[across]), []).append(place)
    parts = []
    for index, (begin, end) in enumerate(pairwise([first, *ends])):
        area = Area(top, begin, bottom, end - 1) if across else Area(begin, left, end - 1, right)
        parts.append(Room(area, area.cells, tuple(places.get(index, ()))))
    return parts
