"""Points, rectangles and lines of a drawing: where connectors run, and how far things lie from each other; and disjoint
sets, which tell what touches each other, directly or through others.

All lengths are in the units of the drawing (English Metric Units, 914,400 to an inch), downwards and to the right.
"""

import math
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from rag_assets.parsing.flow import area_of

Point = tuple[float, float]
Rectangle = tuple[float, float, float, float]
Line = tuple[Point, ...]

_ROTATION = re.compile(r"-?[0-9]{1,9}")
_ROTATION_UNITS = 60_000  # to a degree
_MIDDLE = 0.5


@dataclass(frozen=True, slots=True)
class Frame:
    """How the coordinates inside a group map to those of the drawing: `drawing = offset + scale * group`."""

    scale_x: float = 1.0
    scale_y: float = 1.0
    offset_x: float = 0.0
    offset_y: float = 0.0

    def place(self, x: float, y: float) -> Point:
        """A point of the group in the drawing."""
        return self.offset_x + self.scale_x * x, self.offset_y + self.scale_y * y

    def within(self, outer: Rectangle, inner: Rectangle, *, flip_x: bool = False, flip_y: bool = False) -> "Frame":
        """The frame of a group inside this one.

        Args:
            outer: Left, top, width and height of the group here.
            inner: The same rectangle in the coordinates of the group's members.
            flip_x: Whether the group exchanges left and right.
            flip_y: Whether the group exchanges top and bottom.
        """
        if inner[2] <= 0 or inner[3] <= 0:
            return self
        scale_x, scale_y = outer[2] / inner[2], outer[3] / inner[3]
        left, top = outer[0], outer[1]
        if flip_x:
            left, scale_x = left + outer[2], -scale_x
        if flip_y:
            top, scale_y = top + outer[3], -scale_y
        offset = self.place(left - inner[0] * scale_x, top - inner[1] * scale_y)
        return Frame(self.scale_x * scale_x, self.scale_y * scale_y, *offset)


IDENTITY = Frame()


def connector_path(
    placed: Rectangle, preset: str, bends: Sequence[float], *, flip_x: bool, flip_y: bool, rotation: str
) -> Line:
    """Points of a connector from start to end; curves run along the bent line of the same form.

    Args:
        placed: Left, top, width and height before it is turned.
        preset: Name of its form, as in `bentConnector3`.
        bends: Where it bends, as shares of width and height in turn; in the middle where not given.
        flip_x: Whether left and right are exchanged.
        flip_y: Whether top and bottom are exchanged.
        rotation: Turn clockwise around its middle, in 60,000ths of a degree.
    """
    left, top, width, height = placed
    points = _unturned(width, height, preset, bends)
    turn = math.radians(int(rotation) / _ROTATION_UNITS) if _ROTATION.fullmatch(rotation) else 0.0
    cosine, sine = math.cos(turn), math.sin(turn)
    placed_points = []
    for x, y in points:
        right = (width - x if flip_x else x) - width / 2
        down = (height - y if flip_y else y) - height / 2
        placed_points.append(
            (left + width / 2 + right * cosine - down * sine, top + height / 2 + right * sine + down * cosine)
        )
    return tuple(placed_points)


def _unturned(width: float, height: float, preset: str, bends: Sequence[float]) -> Line:
    """Points from the top left to the bottom right corner, first to the right.

    Source: ECMA-376 Part 1, the preset shapes `straightConnector1` to `bentConnector5`.
    """
    if not preset.startswith(("bent", "curved")):
        return (0, 0), (width, height)
    count = int(preset[-1]) - 2 if preset[-1] in "2345" else 1
    shares = [bends[index] if index < len(bends) else _MIDDLE for index in range(count)]
    points = [(0.0, 0.0)]
    for index, share in enumerate(shares):
        x, y = points[-1]
        points.append((x, height * share) if index % 2 else (width * share, y))
    x, y = points[-1]
    points.append((x, height) if count % 2 else (width, y))
    return (*points, (width, height))


def outside_distance(point: Point, box: Rectangle) -> float:
    """Distance of a point from a rectangle; 0 inside."""
    return math.hypot(max(box[0] - point[0], 0, point[0] - box[2]), max(box[1] - point[1], 0, point[1] - box[3]))


def depth_inside(point: Point, box: Rectangle) -> float:
    """Distance of a point inside a rectangle from its nearest side; negative outside."""
    return min(point[0] - box[0], box[2] - point[0], point[1] - box[1], box[3] - point[1])


def line_distance(point: Point, line: Line) -> float:
    """Distance of a point from a line through points; infinite without any."""
    return min((_segment_distance(point, first, last) for first, last in pairwise(line)), default=math.inf)


def line_gap(box: Rectangle, line: Line) -> float:
    """Distance of a rectangle from a line through points that does not cross it; infinite without any."""
    left, top, right, bottom = box
    corners = ((left, top), (right, top), (right, bottom), (left, bottom))
    ends = min((outside_distance(point, box) for point in line), default=math.inf)
    return min(ends, *(line_distance(corner, line) for corner in corners))


def _segment_distance(point: Point, first: Point, last: Point) -> float:
    width, height = last[0] - first[0], last[1] - first[1]
    length = width * width + height * height
    share = ((point[0] - first[0]) * width + (point[1] - first[1]) * height) / length if length else 0.0
    share = min(max(share, 0.0), 1.0)
    return math.hypot(point[0] - first[0] - share * width, point[1] - first[1] - share * height)


def middle(box: Rectangle) -> Point:
    """The middle of a rectangle."""
    return (box[0] + box[2]) / 2, (box[1] + box[3]) / 2


def contains(box: Rectangle, other: Rectangle) -> bool:
    """Whether the middle of a rectangle lies in another that is at least as large."""
    return outside_distance(middle(other), box) == 0 and area_of(box) >= area_of(other)


class Sets:
    """Disjoint sets of numbers from 0 on, each named by its lowest number."""

    def __init__(self, count: int = 0) -> None:
        self._parents = list(range(count))

    def add(self) -> int:
        """A set of a new number."""
        self._parents.append(len(self._parents))
        return len(self._parents) - 1

    def find(self, number: int) -> int:
        """Name of the set that holds a number."""
        parents = self._parents
        while parents[number] != number:
            parents[number] = parents[parents[number]]
            number = parents[number]
        return number

    def union(self, first: int, second: int) -> None:
        """Make one set of the sets that hold two numbers."""
        first, second = self.find(first), self.find(second)
        if first != second:
            self._parents[max(first, second)] = min(first, second)

    def groups(self) -> list[list[int]]:
        """The numbers of each set, rising; the sets in the order of their names."""
        groups: dict[int, list[int]] = defaultdict(list)
        for number in range(len(self._parents)):
            groups[self.find(number)].append(number)
        return list(groups.values())
