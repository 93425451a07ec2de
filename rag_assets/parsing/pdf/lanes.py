"""Frames side by side on a PDF page, as the lanes of a flow chart: each is read on its own.

What stays out: columns and bands told by gaps (`pdf_lines`), ruled tables, whose cells share their rules (`pdf_grid`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rag_assets.contracts.content import Box
from rag_assets.parsing.pdf.runs import Run

_APART = 3.0
_LEAST_LINES = 3
_SAME_HEIGHT_SHARE = 0.8
_FIGURE_FILL = 0.55
_TRIED = 20


@dataclass(frozen=True, slots=True)
class Lane:
    """A part of a page.

    Attributes:
        runs: Its runs.
        is_figure: Whether it is a frame of scattered words, and no column of running text.
    """

    runs: list[Run]
    is_figure: bool = False


def part_lanes(runs: list[Run], frames: Sequence[Box]) -> Iterator[Lane]:
    """Part a page at frames side by side: what stands above them, each frame from the left, what stands below.

    Args:
        runs: Runs of the page.
        frames: Rectangles drawn on it, the largest first.

    Yields:
        The parts in reading order; the whole page where no frames stand side by side, with text in each and none
        between them.
    """
    lanes = _find_lanes(runs, frames)
    if not lanes:
        yield Lane(runs)
        return
    top, bottom = min(lane[1] for lane in lanes), max(lane[3] for lane in lanes)
    rest = [frame for frame in frames if frame not in lanes]
    yield from part_lanes([run for run in runs if run.middle[1] < top], rest)
    for lane in lanes:
        inside = [run for run in runs if _holds(lane, run)]
        yield Lane(inside, _is_scattered(inside, lane))
    yield from part_lanes([run for run in runs if run.middle[1] > bottom], rest)


def _find_lanes(runs: Sequence[Run], frames: Sequence[Box]) -> list[Box]:
    """Frames of one height that stand apart beside each other, from the left; none where text is outside of them."""
    for frame in frames[:_TRIED]:
        lanes = [frame]
        for other in frames:
            if _is_level(frame, other) and all(_is_apart(other, lane) for lane in lanes):
                lanes.append(other)
        if len(lanes) < 2:
            continue
        top, bottom = min(lane[1] for lane in lanes), max(lane[3] for lane in lanes)
        band = [run for run in runs if top <= run.middle[1] <= bottom]
        held = [[run for run in band if _holds(lane, run)] for lane in lanes]
        if sum(map(len, held)) == len(band) and all(_count_lines(inside) >= _LEAST_LINES for inside in held):
            return sorted(lanes)
    return []


def _is_level(one: Box, other: Box) -> bool:
    shared = min(one[3], other[3]) - max(one[1], other[1])
    return shared > _SAME_HEIGHT_SHARE * max(one[3] - one[1], other[3] - other[1])


def _is_apart(one: Box, other: Box) -> bool:
    return one[0] - other[2] > _APART or other[0] - one[2] > _APART


def _holds(frame: Box, run: Run) -> bool:
    x, y = run.middle
    return frame[0] <= x <= frame[2] and frame[1] <= y <= frame[3]


def _count_lines(runs: Sequence[Run]) -> int:
    return len({round(run.top / max(run.size, 1.0)) for run in runs})


def _is_scattered(runs: Sequence[Run], frame: Box) -> bool:
    """Whether lines fill their frame less than running text does."""
    return sum(run.right - run.left for run in runs) < _FIGURE_FILL * (frame[2] - frame[0]) * _count_lines(runs)
