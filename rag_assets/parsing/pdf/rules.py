"""Drawn lines of a PDF page: rules, filled areas, and the grids of ruled tables, whose cells are what no rule parts.

They are read from pdfium's page objects, which are at hand, and not through pdfplumber, whose engine reads a whole page
again at a hundredth of the speed. What stays out: the text in the grids (`rag_assets.parsing.pdf.tables`).
"""

import ctypes
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from operator import sub
from typing import Any, Literal

from pypdfium2 import raw

from rag_assets.contracts.content import Box
from rag_assets.parsing.flow import area_of
from rag_assets.parsing.geometry import Sets
from rag_assets.parsing.limits import current_limits
from rag_assets.parsing.pdf.runs import OpenPage

_THIN = 3.0
_STRAIGHT = 1.0
_SNAP = 2.0
_JOIN_GAP = 3.0
_SHORTEST = 6.0
_OBJECTS = 30_000
_SEGMENTS = 40_000
_RULES = 1500
_FRAMES = 200
_WHITE = 250
_DOT = (1.5, 7.0)  # height and width, in points
_ROUND = 1.3  # width to height, or height to width, at most
_DOTS = 300
_BALLOON = (24.0, 10.0)  # width and height at least, in points
_BALLOON_SHARE = 0.4  # of the page at most
_BALLOON_POINTS = 150
_BALLOONS = 200
_POINTER = 2.0  # points that it sticks out at least
_CORNERS = 5  # of a rectangle, the last on the first

Matrix = tuple[float, float, float, float, float, float]
Shape = Literal["rule", "area", "frame", "dot", "balloon", "pointer"]
_IDENTITY: Matrix = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)

# Grids.
_TOUCH = 3.0
_PRODUCT = 300_000
_BOXES = 60_000
_GIANT_HEIGHT = 0.4
_GIANT_WIDTH = 0.6
_CROOKED_SHARE = 0.3


@dataclass(frozen=True, slots=True)
class Rule:
    """A straight line across or down the page."""

    at: float  # its height on the page, or its distance from the left where it runs down, in points
    begin: float  # where it begins, from the left or the top
    end: float  # where it ends


@dataclass(frozen=True, slots=True)
class Balloon:
    """A closed shape that is no rectangle: a speech balloon, a card with round corners, a shape of a flow chart."""

    body: Box  # where text stands in it: the shape without its pointer
    has_pointer: bool  # whether something sticks out of its body
    order: int  # number of the object of the page that draws it: what comes later lies upon it


@dataclass(frozen=True, slots=True)
class PageDrawing:
    """What is drawn on a page."""

    across: tuple[Rule, ...] = ()  # rules from left to right, from the top
    down: tuple[Rule, ...] = ()  # rules from top to bottom, from the left
    filled: tuple[Box, ...] = ()  # areas filled with another colour than white
    frames: tuple[Box, ...] = ()  # rectangles that are drawn as such, with a line around
    dots: tuple[Box, ...] = ()  # small circles, as browsers draw for the bullets of lists
    balloons: tuple[Balloon, ...] = ()  # closed shapes that are no rectangles, the lowest first


def read_drawing(page: OpenPage) -> PageDrawing:
    """Rules, filled areas and frames of a page; nothing where the page is drawn too finely to hold tables."""
    place = page.placing()
    flat: list[Rule] = []
    steep: list[Rule] = []
    areas: dict[Shape, list[Box]] = {"area": [], "frame": [], "dot": []}
    balloons: dict[tuple[int, ...], Balloon] = {}  # the uppermost of each place comes first
    largest = _BALLOON_SHARE * page.size[0] * page.size[1]
    for in_own_space, shape, order in _paths(page):
        box = left, top, right, bottom = place(*in_own_space)
        if shape in ("balloon", "pointer"):
            is_large = right - left >= _BALLOON[0] and bottom - top >= _BALLOON[1]
            place_of_both = tuple(map(round, box))  # of the shape and the line around it
            if is_large and area_of(box) <= largest:
                balloons.setdefault(place_of_both, Balloon(box, shape == "pointer", order))
        elif shape in areas:
            areas[shape].append(box)
        elif bottom - top <= right - left:
            flat.append(Rule((top + bottom) / 2, left, right))
        else:
            steep.append(Rule((left + right) / 2, top, bottom))
    across, down, filled_areas = _join_rules(flat), _join_rules(steep), areas["area"]
    if len(across) + len(down) > _RULES:
        page.note_cut(f"{len(across) + len(down)} rules, limit {_RULES}; its ruled tables are left as text")
        return PageDrawing()
    if len(filled_areas) > _RULES:
        page.note_cut(
            f"{len(filled_areas)} coloured areas, limit {_RULES}; rows coloured by further ones count as plain"
        )
    frames = sorted(set(areas["frame"]), key=area_of, reverse=True)[:_FRAMES]
    dots = sorted(set(areas["dot"])) if len(areas["dot"]) <= _DOTS else ()  # more are a chart
    upwards = sorted(balloons.values(), key=lambda balloon: balloon.order)[:_BALLOONS]
    return PageDrawing(
        tuple(across), tuple(down), tuple(filled_areas[:_RULES]), tuple(frames), tuple(dots), tuple(upwards)
    )


def _paths(page: OpenPage) -> Iterator[tuple[Box, Shape, int]]:
    """What is drawn, in the page's own space: each as left, bottom, right, top, what it is, and the number of the
    object of the page that draws it.
    """
    deepest = current_limits().nesting_depth
    count = raw.FPDFPage_CountObjects(page.page)
    stack: list[tuple[Any, Matrix, int, int]] = [
        (raw.FPDFPage_GetObject(page.page, index), _IDENTITY, 0, index) for index in range(count)
    ]
    is_too_deep = False
    objects = segments = 0
    while stack and objects < _OBJECTS and segments < _SEGMENTS:
        shape, outer, depth, order = stack.pop()
        objects += 1
        kind = raw.FPDFPageObj_GetType(shape)
        if kind == raw.FPDF_PAGEOBJ_PATH:
            count, is_filled, has_line = _drawn(shape)
            segments += count
            if count and segments <= _SEGMENTS:
                matrix = _times(_matrix(shape), outer)
                for box, kind_of_shape in _read_path(shape, count, matrix, is_filled=is_filled, has_line=has_line):
                    yield box, kind_of_shape, order
        elif kind == raw.FPDF_PAGEOBJ_FORM:
            if depth >= deepest:
                is_too_deep = True
                continue
            matrix = _times(_matrix(shape), outer)
            # One more than is read, so that those left out show below.
            count = min(raw.FPDFFormObj_CountObjects(shape), _OBJECTS + 1)
            stack += [(raw.FPDFFormObj_GetObject(shape, index), matrix, depth + 1, order) for index in range(count)]
    if is_too_deep:
        page.note_cut(f"drawings nested deeper than {deepest} (parsing.nesting_depth); what is drawn there is left out")
    if stack or segments > _SEGMENTS:
        limit = f"more than {_OBJECTS} objects or {_SEGMENTS} pieces of lines are drawn, the limit"
        page.note_cut(f"{limit}; tables ruled by the rest are left as text")


def _drawn(path: Any) -> tuple[int, bool, bool]:
    """Segments of a path, 0 where nothing of it shows; whether it is filled; whether a line is drawn along it."""
    fill, stroke = ctypes.c_int(), ctypes.c_int()
    count = int(raw.FPDFPath_CountSegments(path))
    if count < 2 or not raw.FPDFPath_GetDrawMode(path, fill, stroke) or not (fill.value or stroke.value):
        return 0, False, False
    return count, bool(fill.value), bool(stroke.value)


def _read_path(
    path: Any, count: int, matrix: Matrix, *, is_filled: bool, has_line: bool
) -> Iterator[tuple[Box, Shape]]:
    for points, is_closed, is_curved in _outlines(path, count, matrix):
        xs, ys = [x for x, _ in points], [y for _, y in points]
        box = (min(xs), min(ys), max(xs), max(ys))
        body = _body(points) if is_closed or is_filled else None
        if is_curved and _is_dot(box):
            yield box, "dot"
        elif body and max(map(abs, map(sub, body, box))) > _POINTER:
            yield body, "pointer"
        elif is_curved:
            if body:
                yield body, "balloon"
        elif min(box[2] - box[0], box[3] - box[1]) <= _THIN:
            if max(box[2] - box[0], box[3] - box[1]) > 0:
                yield box, "rule"
        elif _is_rectangle(points):
            if is_filled and not _is_white(path):
                yield box, "area"
            if has_line:
                if is_closed or is_filled or len(points) > 4:
                    yield box, "frame"
                yield from ((side, "rule") for side in _sides(points, is_closed=is_closed or is_filled))
        elif has_line:
            yield from ((side, "rule") for side in _sides(points, is_closed=is_closed))


def _body(points: list[tuple[float, float]]) -> Box | None:
    """The part of a shape between edges on which two points lie at least; None of a rectangle, and where none is."""
    if not _CORNERS < len(points) <= _BALLOON_POINTS or _is_rectangle(points):
        return None
    edges = []
    for places in zip(*points, strict=True):
        ordered_places = sorted(places)
        shared = [a for a, b in pairwise(ordered_places) if b - a <= _STRAIGHT]
        if not shared:
            return None
        edges.append((shared[0], max(b for a, b in pairwise(ordered_places) if b - a <= _STRAIGHT)))
    (left, right), (bottom, top) = edges
    return (left, bottom, right, top) if right > left and top > bottom else None


def _is_dot(box: Box) -> bool:
    width, height = box[2] - box[0], box[3] - box[1]
    return _DOT[0] <= min(width, height) and max(width, height) <= min(_DOT[1], _ROUND * min(width, height))


def _outlines(path: Any, count: int, matrix: Matrix) -> Iterator[tuple[list[tuple[float, float]], bool, bool]]:
    """Outlines of a path: the points of each, those that control curves too; whether it is closed; whether curved."""
    a, b, c, d, e, f = matrix
    x, y = ctypes.c_float(), ctypes.c_float()
    points: list[tuple[float, float]] = []
    is_closed = is_curved = False
    for index in range(count):
        segment = raw.FPDFPath_GetPathSegment(path, index)
        kind = raw.FPDFPathSegment_GetType(segment)
        if kind == raw.FPDF_SEGMENT_MOVETO:
            if len(points) > 1:
                yield points, is_closed, is_curved
            points, is_closed, is_curved = [], False, False
        elif kind == raw.FPDF_SEGMENT_BEZIERTO:
            is_curved = True
        if raw.FPDFPathSegment_GetPoint(segment, x, y):
            points.append((a * x.value + c * y.value + e, b * x.value + d * y.value + f))
        is_closed = is_closed or bool(raw.FPDFPathSegment_GetClose(segment))
    if len(points) > 1:
        yield points, is_closed, is_curved


def _is_rectangle(points: list[tuple[float, float]]) -> bool:
    if len(points) not in (4, 5):
        return False
    corners = points[:4]
    sides = zip(corners, corners[1:] + corners[:1], strict=True)
    return all(min(abs(x1 - x0), abs(y1 - y0)) <= _STRAIGHT for (x0, y0), (x1, y1) in sides)


def _sides(points: list[tuple[float, float]], *, is_closed: bool) -> Iterator[Box]:
    ends = [*points, points[0]] if is_closed else points
    for (x0, y0), (x1, y1) in pairwise(ends):
        if min(abs(x1 - x0), abs(y1 - y0)) <= _STRAIGHT:
            yield min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1)


def _is_white(path: Any) -> bool:
    red, green, blue, alpha = (ctypes.c_uint() for _ in range(4))
    has_colour = raw.FPDFPageObj_GetFillColor(path, red, green, blue, alpha)
    return not has_colour or alpha.value == 0 or min(red.value, green.value, blue.value) >= _WHITE


def _matrix(shape: Any) -> Matrix:
    matrix = raw.FS_MATRIX()
    if not raw.FPDFPageObj_GetMatrix(shape, matrix):
        return _IDENTITY
    return matrix.a, matrix.b, matrix.c, matrix.d, matrix.e, matrix.f


def _times(inner: Matrix, outer: Matrix) -> Matrix:
    """The matrix that applies `inner`, then `outer`."""
    if outer is _IDENTITY:
        return inner
    a, b, c, d, e, f = inner
    p, q, r, s, t, u = outer
    return a * p + b * r, a * q + b * s, c * p + d * r, c * q + d * s, e * p + f * r + t, e * q + f * s + u


def _join_rules(rules: Iterable[Rule]) -> list[Rule]:
    """Rules at practically the same place are put at one; pieces that touch become one; stubs are dropped."""
    joined_rules: list[Rule] = []
    group: list[Rule] = []
    for rule in sorted(rules, key=lambda rule: rule.at):
        if group and rule.at - group[0].at > _SNAP:
            joined_rules += _join_pieces(group)
            group = []
        group.append(rule)
    if group:
        joined_rules += _join_pieces(group)
    return joined_rules


def _join_pieces(group: list[Rule]) -> Iterator[Rule]:
    at = sum(rule.at for rule in group) / len(group)
    pieces = sorted((rule.begin, rule.end) for rule in group)
    begin, end = pieces[0]
    for start, stop in pieces[1:]:
        if start - end > _JOIN_GAP:
            if end - begin >= _SHORTEST:
                yield Rule(at, begin, end)
            begin, end = start, stop
        end = max(end, stop)
    if end - begin >= _SHORTEST:
        yield Rule(at, begin, end)


@dataclass(frozen=True, slots=True)
class Grid:
    """A ruled area of a page."""

    xs: tuple[float, ...]  # left edges of its columns and the right edge of the last, ascending, in points
    ys: tuple[float, ...]  # top edges of its rows and the bottom edge of the last, ascending
    rooms: tuple[tuple[int, ...], ...]  # for each row and column the number of the cell that covers it
    frames: frozenset[int] = frozenset()  # cells so large that they are rather a frame around the page

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
    crooked_count = 0
    width, height = page.size
    for number, (top, left, bottom, right, boxes) in enumerate(areas):
        if xs[right + 1] - xs[left] > _GIANT_WIDTH * width and ys[bottom + 1] - ys[top] > _GIANT_HEIGHT * height:
            frames.add(number)
        crooked_count += boxes != (bottom - top + 1) * (right - left + 1)
    if len(areas) < 4 or crooked_count > _CROOKED_SHARE * len(areas):
        return None
    return Grid(tuple(xs), tuple(ys), tuple(map(tuple, rooms)), frozenset(frames))


def _missing_ends(rules: list[Rule], crossing_rules: list[Rule]) -> list[Rule]:
    """Rules that close a table which is open at a side: where at least two crossing rules end together beyond all."""
    if len(crossing_rules) < 2:
        return []
    closing = []
    begin, end = min(rule.begin for rule in crossing_rules), max(rule.end for rule in crossing_rules)
    for edge, ends in ((begin, [rule.begin for rule in crossing_rules]), (end, [rule.end for rule in crossing_rules])):
        positions = [rule.at for rule, place in zip(crossing_rules, ends, strict=True) if abs(place - edge) <= _TOUCH]
        if len(positions) > 1 and not any(abs(rule.at - edge) <= 2 * _TOUCH for rule in rules):
            closing.append(Rule(edge, min(positions), max(positions)))
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
