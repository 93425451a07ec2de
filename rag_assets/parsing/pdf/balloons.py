"""Text of a page that stands in balloons and cards drawn upon it, apart from the text beside them.

What stays out: frames with right angles side by side (`rag_assets.parsing.pdf.lines`), tables.
"""

import ctypes
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pypdfium2 import raw

from rag_assets.contracts.content import Box
from rag_assets.parsing.pdf.lines import Line, part_page
from rag_assets.parsing.pdf.rules import Balloon, PageDrawing
from rag_assets.parsing.pdf.runs import OpenPage, Run

_FEWEST_CHARACTERS = 4
_SHARED_HEIGHT = 0.5
_PARAGRAPH_GAP = 0.8  # of the type
_LINE_STEP = 1.8  # of the type: what is higher holds more than one line


def take_balloons(
    page: OpenPage, runs: list[Run], drawing: PageDrawing
) -> tuple[list[Run], list[tuple[Box, list[Run]]]]:
    """The text of balloons and cards that stands beside other text of its column, whose lines it would run into.

    One line in a shape without a pointer belongs to what is beside it, as a button does, or a name in a sentence.

    Returns:
        The runs that stand in none, and the bodies of balloons from the top with their runs.
    """
    if not drawing.balloons:
        return runs, []
    orders = _Orders(page)
    contents = _contents(runs, drawing.balloons, orders)
    filled = [balloon for balloon, inside in contents if _is_text(balloon, inside)]
    if not filled:
        return runs, []
    parts = [part for part, _ in part_page(runs, drawing.frames)]
    taken = [
        (balloon.body, inside)
        for balloon, inside in _contents(runs, filled, orders)
        if _has_text_beside(balloon.body, inside, parts)
    ]
    taken_ids = {id(run) for _, inside in taken for run in inside}
    outside = [run for run in runs if id(run) not in taken_ids]
    return outside, sorted(taken, key=lambda part: part[0][1::-1])


def insert_lines(lines: list[Line], body: Box, inside: Sequence[Line]) -> list[Line]:
    """The lines of a page with those of a balloon behind the paragraph that it stands beside, or the one above it."""
    _, top, _, bottom = body
    beside = [number for number, line in enumerate(lines, 1) if line.box[1] < bottom and line.box[3] > top]
    above = [number for number, line in enumerate(lines, 1) if line.box[3] <= top]
    place = max(beside or above, default=0)
    while 0 < place < len(lines) and _runs_on(lines[place - 1], lines[place]):
        place += 1
    first_region = max((line.region for line in lines), default=0) + 1
    own_lines = [replace(line, region=first_region + line.region) for line in inside]
    return [*lines[:place], *own_lines, *lines[place:]]


def _runs_on(line: Line, below: Line) -> bool:
    gap = below.box[1] - line.box[3]
    return line.region == below.region and not below.table and abs(gap) < _PARAGRAPH_GAP * line.size


class _Orders:
    """When the text of runs is drawn on a page: numbers of its objects."""

    def __init__(self, page: OpenPage) -> None:
        count = raw.FPDFPage_CountObjects(page.page)
        shapes = {order: raw.FPDFPage_GetObject(page.page, order) for order in range(count)}
        self._orders = {
            _address(shape): order
            for order, shape in shapes.items()
            if raw.FPDFPageObj_GetType(shape) == raw.FPDF_PAGEOBJ_TEXT
        }
        self._text_page = page.text_page

    def of(self, run: Run) -> float:
        """Number of the object that begins a run, -1 of a run without one; what a form draws lies above all."""
        if run.place < 0:
            return -1
        return self._orders.get(_address(raw.FPDFText_GetTextObject(self._text_page, run.place)), math.inf)


def _address(shape: Any) -> int:
    return ctypes.cast(shape, ctypes.c_void_p).value or 0


def _contents(runs: Sequence[Run], balloons: Sequence[Balloon], orders: _Orders) -> list[tuple[Balloon, list[Run]]]:
    """Balloons with the runs that are written on them and not on one above; what one lies upon is not in it."""
    contents: dict[int, list[Run]] = defaultdict(list)
    for run in runs:
        x, y = run.middle
        around = [
            number
            for number, balloon in enumerate(balloons)
            if balloon.body[0] <= x <= balloon.body[2] and balloon.body[1] <= y <= balloon.body[3]
        ]
        order = orders.of(run) if around else 0
        below = [number for number in around if balloons[number].order < order]
        if below:
            contents[below[-1]].append(run)
    return [(balloons[number], inside) for number, inside in sorted(contents.items())]


def _is_text(balloon: Balloon, inside: Sequence[Run]) -> bool:
    height = max(run.bottom for run in inside) - min(run.top for run in inside)
    has_lines = balloon.has_pointer or height > _LINE_STEP * max(run.size for run in inside)
    return has_lines and sum(len(run.text) for run in inside) >= _FEWEST_CHARACTERS


def _has_text_beside(body: Box, inside: Sequence[Run], parts: Sequence[Sequence[Run]]) -> bool:
    """Whether a run outside of a balloon stands at the height of one inside, in the same part of the page."""
    inside_ids = {id(run) for run in inside}
    _, top, _, bottom = body
    for part in parts:
        own = [run for run in part if id(run) in inside_ids]
        near = [run for run in part if own and run.bottom > top and run.top < bottom and id(run) not in inside_ids]
        if any(_are_level(run, other_run) for run in own for other_run in near):
            return True
    return False


def _are_level(run: Run, other_run: Run) -> bool:
    shared = min(run.bottom, other_run.bottom) - max(run.top, other_run.top)
    return shared > _SHARED_HEIGHT * min(run.bottom - run.top, other_run.bottom - other_run.top)
