"""Ruled tables of a PDF page: cells from the rules around them."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product

from rag_assets.contracts.content import Box
from rag_assets.parsing.flow import area_of
from rag_assets.parsing.pdf.rules import PageDrawing, Rule
from rag_assets.parsing.pdf.runs import OpenPage
from rag_assets.parsing.sets import Sets

_TOUCH = 3.0
_PRODUCT = 300_000
_BOXES = 60_000
_GIANT_HEIGHT = 0.4
_GIANT_WIDTH = 0.6
_CROOKED_SHARE = 0.3


@dataclass(frozen=True, slots=True)
class Grid:
    """A ruled area of a page.

    Attributes:
        xs: Left edges of its columns and the right edge of the last, ascending, in points.
        ys: Top edges of its rows and the bottom edge of the last, ascending.
        rooms: For each row and column the number of the cell that covers it.
        frames: Cells so large that they are rather a frame around the page.
    """

    xs: tuple[float, ...]
    ys: tuple[float, ...]
    rooms: tuple[tuple[int, ...], ...]
    frames: frozenset[int] = frozenset()

    @property
    def box(self) -> Box:
        """The whole area."""
        return self.xs[0], self.ys[0], self.xs[-1], self.ys[-1]

    def room_at(self, x: float, y: float) -> int:
        """Number of the cell at a place; -1 where none is."""
        row, column = bisect_right(self.ys, y) - 1, bisect_right(self.xs, x) - 1
        if not (0 <= row < len(self.ys) - 1 and 0 <= column < len(self.xs) - 1):
            return -1
        return self.rooms[row][column]


def find_grids(page: OpenPage, drawing: PageDrawing) -> list[Grid]:
    """Ruled areas with at least two rows and two columns, the smallest first.

    Cells are the areas that no rule parts, so that a table may be open at its sides, and a merged cell is one cell.

    A cell that fills most of the page is a frame around it and none.
    """
    if len(drawing.across) * len(drawing.down) > _PRODUCT:
        counts = f"{len(drawing.across)} rules across times {len(drawing.down)} down"
        page.note_cut(f"{counts}, limit {_PRODUCT}; its ruled tables are left as text")
        return []
    grids = (_grid(page, across, down) for across, down in _connected(drawing.across, drawing.down))
    return sorted(filter(None, grids), key=lambda grid: area_of(grid.box))


def _connected(across: Sequence[Rule], down: Sequence[Rule]) -> Iterator[tuple[list[Rule], list[Rule]]]:
    """Rules that touch each other, directly or through others."""
    sets = Sets(len(across) + len(down))
    for i, flat in enumerate(across):
        for j, steep in enumerate(down, start=len(across)):
            if (
                flat.begin - _TOUCH <= steep.at <= flat.end + _TOUCH
                and steep.begin - _TOUCH <= flat.at <= steep.end + _TOUCH
            ):
                sets.union(i, j)
    for members in sets.groups():
        if len(members) > 1:
            yield (
                [across[number] for number in members if number < len(across)],
                [down[number - len(across)] for number in members if number >= len(across)],
            )


def _grid(page: OpenPage, across: list[Rule], down: list[Rule]) -> Grid | None:
    across, down = [*across, *_missing_ends(across, down)], [*down, *_missing_ends(down, across)]
    ys, xs = (places_apart((rule.at for rule in rules), _TOUCH) for rules in (across, down))
    rows, columns = len(ys) - 1, len(xs) - 1
    if rows < 2 or columns < 2:
        return None
    if rows * columns > _BOXES:
        page.note_cut(f"a ruled table of {rows} times {columns} cells, limit {_BOXES}; it is left as text")
        return None
    rooms, areas = _merge_boxes(rows, columns, _walls(across, ys, xs), _walls(down, xs, ys))
    frames = set()
    crooked = 0
    width, height = page.size
    for number, (top, left, bottom, right, boxes) in enumerate(areas):
        if xs[right + 1] - xs[left] > _GIANT_WIDTH * width and ys[bottom + 1] - ys[top] > _GIANT_HEIGHT * height:
            frames.add(number)
        crooked += boxes != (bottom - top + 1) * (right - left + 1)
    if len(areas) < 4 or crooked > _CROOKED_SHARE * len(areas):
        return None
    return Grid(tuple(xs), tuple(ys), tuple(map(tuple, rooms)), frozenset(frames))


def _missing_ends(rules: list[Rule], crossing: list[Rule]) -> list[Rule]:
    """Rules that close a table which is open at a side: where at least two crossing rules end together beyond all."""
    if len(crossing) < 2:
        return []
    closing = []
    begin, end = min(rule.begin for rule in crossing), max(rule.end for rule in crossing)
    for edge, ends in ((begin, [rule.begin for rule in crossing]), (end, [rule.end for rule in crossing])):
        meeting = [rule.at for rule, place in zip(crossing, ends, strict=True) if abs(place - edge) <= _TOUCH]
        if len(meeting) > 1 and not any(abs(rule.at - edge) <= 2 * _TOUCH for rule in rules):
            closing.append(Rule(edge, min(meeting), max(meeting)))
    return closing


def places_apart(all_places: Iterable[float], least: float) -> list[float]:
    """The first of each group of places that are near each other, ascending; the next is farther than `least` away."""
    places: list[float] = []
    for at in sorted(all_places):
        if not places or at - places[-1] > least:
            places.append(at)
    return places


def _walls(rules: list[Rule], places: list[float], steps: list[float]) -> list[list[bool]]:
    """For each place and each step along it, whether a rule stands there."""
    walls = [[False] * (len(steps) - 1) for _ in places]
    middles = [(a + b) / 2 for a, b in pairwise(steps)]
    for rule in rules:
        place = min(range(len(places)), key=lambda index: abs(places[index] - rule.at))
        for index, middle in enumerate(middles):
            if rule.begin <= middle <= rule.end:
                walls[place][index] = True
    return walls


def _merge_boxes(
    rows: int, columns: int, below: list[list[bool]], beside: list[list[bool]]
) -> tuple[list[list[int]], list[tuple[int, int, int, int, int]]]:
    """Cells from boxes that no rule parts.

    Returns:
        The number of the cell at each row and column; of each cell its first row, first column, last row, last column
        and boxes.
    """
    sets = Sets(rows * columns)
    for row, column in product(range(rows), range(columns)):
        box = row * columns + column
        if row + 1 < rows and not below[row + 1][column]:
            sets.union(box, box + columns)
        if column + 1 < columns and not beside[column + 1][row]:
            sets.union(box, box + 1)
    rooms = [[0] * columns for _ in range(rows)]
    areas: list[tuple[int, int, int, int, int]] = []
    for number, boxes in enumerate(sets.groups()):
        ys, xs = zip(*(divmod(box, columns) for box in boxes), strict=True)
        for row, column in zip(ys, xs, strict=True):
            rooms[row][column] = number
        areas.append((min(ys), min(xs), max(ys), max(xs), len(boxes)))
    return rooms, areas
