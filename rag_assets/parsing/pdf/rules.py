"""Drawn lines of a PDF page: the rules of tables, and the areas that are filled.

Read from pdfium's page objects, which are at hand, and not through pdfplumber, whose engine reads a whole page again at
a hundredth of the speed.
"""

import ctypes
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from pypdfium2 import raw

from rag_assets.contracts.content import Box
from rag_assets.parsing.flow import area_of
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

Matrix = tuple[float, float, float, float, float, float]
Shape = Literal["rule", "area", "frame"]
_IDENTITY: Matrix = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Rule:
    """A straight line across or down the page.

    Attributes:
        at: Its height on the page, or its distance from the left where it runs down, in points.
        begin: Where it begins, from the left or the top.
        end: Where it ends.
    """

    at: float
    begin: float
    end: float


@dataclass(frozen=True, slots=True)
class PageDrawing:
    """What is drawn on a page.

    Attributes:
        across: Rules from left to right, from the top.
        down: Rules from top to bottom, from the left.
        filled: Areas filled with another colour than white.
        frames: Rectangles that are drawn as such, with a line around.
    """

    across: tuple[Rule, ...] = ()
    down: tuple[Rule, ...] = ()
    filled: tuple[Box, ...] = ()
    frames: tuple[Box, ...] = ()


def read_drawing(page: OpenPage) -> PageDrawing:
    """Rules, filled areas and frames of a page; nothing where the page is drawn too finely to hold tables."""
    place = page.placing()
    flat: list[Rule] = []
    steep: list[Rule] = []
    areas: dict[Shape, list[Box]] = {"area": [], "frame": []}
    for in_own_space, shape in _paths(page):
        box = left, top, right, bottom = place(*in_own_space)
        if shape in areas:
            areas[shape].append(box)
        elif bottom - top <= right - left:
            flat.append(Rule((top + bottom) / 2, left, right))
        else:
            steep.append(Rule((left + right) / 2, top, bottom))
    across, down, filled = _joined(flat), _joined(steep), areas["area"]
    if len(across) + len(down) > _RULES:
        page.note_cut(f"{len(across) + len(down)} rules, limit {_RULES}; its ruled tables are left as text")
        return PageDrawing()
    if len(filled) > _RULES:
        page.note_cut(f"{len(filled)} coloured areas, limit {_RULES}; rows coloured by further ones count as plain")
    frames = sorted(set(areas["frame"]), key=area_of, reverse=True)[:_FRAMES]
    return PageDrawing(tuple(across), tuple(down), tuple(filled[:_RULES]), tuple(frames))


def _paths(page: OpenPage) -> Iterator[tuple[Box, Shape]]:
    """What is drawn, in the page's own space: each as left, bottom, right, top, and what it is."""
    deepest = current_limits().nesting_depth
    count = raw.FPDFPage_CountObjects(page.page)
    waiting: list[tuple[Any, Matrix, int]] = [
        (raw.FPDFPage_GetObject(page.page, index), _IDENTITY, 0) for index in range(count)
    ]
    is_too_deep = False
    objects = segments = 0
    while waiting and objects < _OBJECTS and segments < _SEGMENTS:
        shape, outer, depth = waiting.pop()
        objects += 1
        kind = raw.FPDFPageObj_GetType(shape)
        if kind == raw.FPDF_PAGEOBJ_PATH:
            count, is_filled, has_line = _drawn(shape)
            segments += count
            if count and segments <= _SEGMENTS:
                matrix = _times(_matrix(shape), outer)
                yield from _read_path(shape, count, matrix, is_filled=is_filled, has_line=has_line)
        elif kind == raw.FPDF_PAGEOBJ_FORM:
            if depth >= deepest:
                is_too_deep = True
                continue
            matrix = _times(_matrix(shape), outer)
            # One more than is read, so that those left out show below.
            count = min(raw.FPDFFormObj_CountObjects(shape), _OBJECTS + 1)
            waiting += [(raw.FPDFFormObj_GetObject(shape, index), matrix, depth + 1) for index in range(count)]
    if is_too_deep:
        page.note_cut(f"drawings nested deeper than {deepest} (parsing.nesting_depth); what is drawn there is left out")
    if waiting or segments > _SEGMENTS:
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
    for points, is_closed in _outlines(path, count, matrix):
        xs, ys = [x for x, _ in points], [y for _, y in points]
        box = (min(xs), min(ys), max(xs), max(ys))
        if min(box[2] - box[0], box[3] - box[1]) <= _THIN:
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


def _outlines(path: Any, count: int, matrix: Matrix) -> Iterator[tuple[list[tuple[float, float]], bool]]:
    """Straight outlines of a path, each as its points and whether it is closed; those with curves are left out."""
    a, b, c, d, e, f = matrix
    x, y = ctypes.c_float(), ctypes.c_float()
    points: list[tuple[float, float]] = []
    is_closed = is_curved = False
    for index in range(count):
        segment = raw.FPDFPath_GetPathSegment(path, index)
        kind = raw.FPDFPathSegment_GetType(segment)
        if kind == raw.FPDF_SEGMENT_MOVETO:
            if len(points) > 1 and not is_curved:
                yield points, is_closed
            points, is_closed, is_curved = [], False, False
        elif kind == raw.FPDF_SEGMENT_BEZIERTO:
            is_curved = True
        if raw.FPDFPathSegment_GetPoint(segment, x, y):
            points.append((a * x.value + c * y.value + e, b * x.value + d * y.value + f))
        is_closed = is_closed or bool(raw.FPDFPathSegment_GetClose(segment))
    if len(points) > 1 and not is_curved:
        yield points, is_closed


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
    known = raw.FPDFPageObj_GetFillColor(path, red, green, blue, alpha)
    return not known or alpha.value == 0 or min(red.value, green.value, blue.value) >= _WHITE


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


def _joined(rules: Iterable[Rule]) -> list[Rule]:
    """Rules at practically the same place are put at one; pieces that touch become one; stubs are dropped."""
    joined: list[Rule] = []
    group: list[Rule] = []
    for rule in sorted(rules, key=lambda rule: rule.at):
        if group and rule.at - group[0].at > _SNAP:
            joined += _join_pieces(group)
            group = []
        group.append(rule)
    if group:
        joined += _join_pieces(group)
    return joined


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
