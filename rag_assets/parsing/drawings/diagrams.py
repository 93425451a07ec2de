"""Diagrams of a sheet as text: shapes in reading order, which ones connectors join, and what stands on the connectors.

An end of a connector that the file does not join to a shape is joined to the shape that it touches, or to the shape
whose line it touches, as in sequence diagrams, where messages run between the lines below the participants. A shape
without text is named by the text that stands on it or right below it, or else by the cells it lies on.

What stays out: reading drawings (`excel_drawings`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rag_assets.contracts.causes import BlockKind, FailureCause
from rag_assets.contracts.content import Block
from rag_assets.contracts.errors import ParseError
from rag_assets.parsing.drawings.drawings import Connector, Drawing, Shape, ShapeKind
from rag_assets.parsing.drawings.geometry import (
    Line,
    Point,
    contains,
    depth_inside,
    line_distance,
    line_gap,
    middle,
    outside_distance,
    size,
)
from rag_assets.parsing.drawings.labels import Candidate, assign_labels
from rag_assets.parsing.excel.cells import Area
from rag_assets.parsing.excel.layout.rooms import Sets

_CLUSTER_ROWS = 3
_NODE_CHARS = 80
_TOUCH = 120_000  # a third of a centimetre
_CAPTION = 2 * _TOUCH
_LABEL_CHARS = 80
_LABEL_REACH = 3 * _TOUCH
_CELLS_ROWS = 12
_GEOMETRY_MEMBERS = 1_000  # of larger drawings only what the file states is taken

Texts = Mapping[int, Mapping[int, str]]


@dataclass(frozen=True, slots=True)
class Edge:
    """Two shapes that a connector joins.

    Attributes:
        start: Index of the shape that it starts from.
        end: Index of the shape that it points to.
        sign: How it is written between their names.
        path: Points that it runs through.
    """

    start: int
    end: int
    sign: str
    path: Line


@dataclass(frozen=True, slots=True)
class Diagram:
    """Shapes that belong together.

    Attributes:
        members: Indexes of the shapes in reading order.
        labels: Indexes of those of all shapes that stand on its connectors.
        texts: Texts of the members that are not on connectors, without pictures.
        edges: What its connectors join, as in `利用者 → サーバ: 要求`.
    """

    members: tuple[int, ...]
    labels: tuple[int, ...]
    texts: tuple[str, ...]
    edges: tuple[str, ...]


def diagram_blocks(drawing: Drawing, texts: Texts) -> list[Block]:
    """Blocks of a drawing, without sections: a diagram for shapes that belong together, a caption for each picture.

    Args:
        drawing: The drawing.
        texts: Texts of the sheet's cells by row, then column, from 0.
    """
    shapes = drawing.shapes
    blocks = [_block(shapes, diagram) for diagram in find_diagrams(drawing, texts)]
    return [*blocks, *(_caption(shape) for shape in shapes if shape.kind is ShapeKind.PICTURE)]


def find_diagrams(drawing: Drawing, texts: Texts) -> list[Diagram]:
    """Diagrams of a drawing: shapes near each other from top to bottom, or joined by connectors.

    Args:
        drawing: The drawing.
        texts: Texts of the cells that it lies on, by row, then column, from 0; they name shapes without text.
    """
    shapes = drawing.shapes
    geometric = len(shapes) + len(drawing.connectors) <= _GEOMETRY_MEMBERS
    edges, lifelines = _join(drawing, geometric=geometric)
    joined = {index for edge in edges for index in (edge.start, edge.end)} if geometric else set(range(len(shapes)))
    names = _Names(shapes, lifelines, joined, texts)
    named = [edge for edge in edges if _is_named(edge, shapes, names)]
    labels = _labels(shapes, named, names) if geometric else {}
    on_edges = {id(edge): index for index, edge in labels.items()}
    found = (
        _diagram(shapes, members, [(edge, on_edges.get(id(edge))) for edge in own], names, labels)
        for members, own in _clusters(shapes, edges, named)
    )
    return [diagram for diagram in found if diagram.texts or diagram.edges]


def diagram_problems(drawing: Drawing) -> tuple[ParseError, ...]:
    """What had to be left out of a drawing and of its diagrams."""
    members = len(drawing.shapes) + len(drawing.connectors)
    open_ends = any(not (connector.start and connector.end) for connector in drawing.connectors)
    if members <= _GEOMETRY_MEMBERS or not open_ends:
        return drawing.problems
    message = f"drawing: {members} shapes and connectors, over {_GEOMETRY_MEMBERS} open ends are not joined by place"
    return (*drawing.problems, ParseError(FailureCause.TOO_LARGE, message))


def _is_named(edge: Edge, shapes: tuple[Shape, ...], names: "_Names") -> bool:
    """Whether both ends have a name, and not one that both take from the same text."""
    first, last = names.of(edge.start), names.of(edge.end)
    borrowed = not (shapes[edge.start].text and shapes[edge.end].text)
    return bool(first and last) and not (borrowed and first == last)


def _caption(shape: Shape) -> Block:
    return Block(BlockKind.CAPTION, f"図: {shape.text}" if shape.text else "図", cell_range=shape.area.label)


def _join(drawing: Drawing, *, geometric: bool) -> tuple[list[Edge], list[tuple[Line, int]]]:
    """Edges of a drawing, and the lines that hang on one shape only."""
    numbers: dict[str, int] = {}
    for index, shape in enumerate(drawing.shapes):
        numbers.setdefault(shape.identity, index)
    ends: list[tuple[int | None, int | None]] = []
    for connector in drawing.connectors:
        start, end = numbers.get(connector.start), numbers.get(connector.end)
        if geometric and connector.path:
            across = connector.sign != "—" and len(connector.path) == 2
            start = _touched(drawing.shapes, connector.path, 0, across=across) if start is None else start
            end = _touched(drawing.shapes, connector.path, -1, across=across) if end is None else end
        ends.append((start, end))
    lifelines = [
        (connector.path, start if start is not None else end)
        for connector, (start, end) in zip(drawing.connectors, ends, strict=True)
        if connector.sign == "—" and connector.path and (start is None) != (end is None)
    ]
    held = [(path, index) for path, index in lifelines if index is not None] if geometric else []
    edges = []
    for connector, (start, end) in zip(drawing.connectors, ends, strict=True):
        if connector.path and (connector.sign != "—" or (start is None) == (end is None)):
            start = _hung(held, connector.path[0]) if start is None else start  # noqa: PLW2901
            end = _hung(held, connector.path[-1]) if end is None else end  # noqa: PLW2901
        if start is not None and end is not None and start != end:
            edges.append(_edge(connector, start, end))
    return edges, held


def _edge(connector: Connector, start: int, end: int) -> Edge:
    first, last = (end, start) if connector.reverse else (start, end)
    return Edge(first, last, connector.sign, connector.path)


def _touched(shapes: tuple[Shape, ...], path: Line, place: int, *, across: bool) -> int | None:
    """The shape that an end of a line touches, one with outline or fill first; none that holds the other end too.

    A straight arrow across a shape, from side to side, runs behind it and touches others; a line without a head may
    well divide it.
    """
    point, other = path[place], path[-1 - place]
    found: list[tuple[bool, float, bool, float, int]] = []
    for index, shape in enumerate(shapes):
        if shape.box is None or shape.kind is ShapeKind.ART or outside_distance(point, shape.box) > _TOUCH:
            continue
        held = depth_inside(other, shape.box)
        if held > 0 or (held == 0 and across):
            continue
        bare = shape.kind is ShapeKind.TEXT
        found.append((bare, outside_distance(point, shape.box), not shape.text, size(shape.box), index))
    return min(found)[-1] if found else None


def _hung(lifelines: list[tuple[Line, int]], point: Point) -> int | None:
    """The shape on whose line a point lies."""
    found = min(((line_distance(point, line), index) for line, index in lifelines), default=None)
    return found[1] if found is not None and found[0] <= _TOUCH else None


class _Names:
    """What shapes are called: their text, or else what stands on them or below them."""

    def __init__(
        self, shapes: tuple[Shape, ...], lifelines: list[tuple[Line, int]], ends: set[int], texts: Texts
    ) -> None:
        self._shapes, self._lifelines, self._texts = shapes, lifelines, texts
        self._free = [
            shape
            for index, shape in enumerate(shapes)
            if shape.text and shape.box and index not in ends and shape.kind is not ShapeKind.ART
        ]
        self._known: dict[int, str] = {}

    def of(self, index: int) -> str:
        """Name of a shape; empty where nothing names it."""
        if index not in self._known:
            shape = self._shapes[index]
            self._known[index] = _short(shape.text or self._on(shape) or self._around(shape) or self._cells(shape.area))
        return self._known[index]

    def _on(self, shape: Shape) -> str:
        """Text of a free text box that stands on a shape, or of the participant whose line runs through it."""
        if shape.box is None:
            return ""
        inside = [other for other in self._free if other.box and contains(shape.box, other.box)]
        nodes = [other for other in inside if other.kind is ShapeKind.NODE]
        if nodes or len(inside) == 1:
            return " ".join(other.text for other in sorted(nodes or inside, key=lambda other: other.area)[:3])
        reach = min(shape.box[2] - shape.box[0], shape.box[3] - shape.box[1]) / 2
        near = [(line_distance(middle(shape.box), line), index) for line, index in self._lifelines]
        distance, index = min(near, default=(reach + 1, 0))
        return self._shapes[index].text if distance <= reach else ""

    def _around(self, shape: Shape) -> str:
        """Text of the smallest free text box around a shape, or of the one right below it."""
        if shape.box is None:
            return ""
        around = [(size(other.box), other.text) for other in self._free if other.box and contains(other.box, shape.box)]
        if around:
            return min(around)[1]
        foot = (middle(shape.box)[0], shape.box[3])
        below = [(outside_distance(foot, other.box), other.text) for other in self._free if other.box]
        distance, text = min(below, default=(_CAPTION + 1.0, ""))
        return text if distance <= _CAPTION else ""

    def _cells(self, area: Area) -> str:
        found = [
            text
            for row in range(area.top, min(area.bottom, area.top + _CELLS_ROWS) + 1)
            for column, text in self._texts.get(row, {}).items()
            if area.left <= column <= area.right
        ]
        return " ".join(found)


def _labels(shapes: tuple[Shape, ...], edges: list[Edge], names: _Names) -> dict[int, Edge]:
    """Text boxes that stand on a connector, by index, with their connector: at most one for each."""
    joined = {index for edge in edges for index in (edge.start, edge.end)}
    near: list[Candidate] = []
    for index, shape in enumerate(shapes):
        kept = shape.kind in {ShapeKind.NODE, ShapeKind.TEXT} and 0 < len(shape.text) <= _LABEL_CHARS
        if kept and index not in joined and shape.box is not None:
            reach = min((shape.box[3] - shape.box[1]) / 2, _LABEL_REACH) + _TOUCH / 2
            for place, edge in enumerate(edges):
                distance = line_distance(middle(shape.box), edge.path)
                beside = shape.kind is ShapeKind.TEXT and line_gap(shape.box, edge.path) <= _TOUCH / 2
                if (distance <= reach or beside) and _can_label(shapes, index, edge, names):
                    near.append(Candidate(distance, max(distance, reach), index, place))
    return {index: edges[place] for index, place in assign_labels(near).items()}


def _can_label(shapes: tuple[Shape, ...], index: int, edge: Edge, names: _Names) -> bool:
    """Whether a text box says something on a connector: it neither names an end nor is a frame around all of it."""
    text, box = _short(shapes[index].text), shapes[index].box
    if text in {names.of(edge.start), names.of(edge.end)} or box is None:
        return False
    if any(depth_inside(point, box) < 0 for point in edge.path):
        return True
    ends = (shapes[edge.start].box, shapes[edge.end].box)
    return all(end is not None and not contains(box, end) for end in ends)


def _clusters(shapes: tuple[Shape, ...], edges: list[Edge], named: list[Edge]) -> list[tuple[list[int], list[Edge]]]:
    """Group shapes that lie near each other from top to bottom, or that connectors join; indexes in reading order.

    With each group go the edges with two named ends that join one of it.

    A picture is among them only where a connector with two named ends joins it.
    """
    groups: list[list[int]] = []
    bottom = -_CLUSTER_ROWS
    joined = {index for edge in named for index in (edge.start, edge.end)}
    drawn = [index for index, shape in enumerate(shapes) if shape.kind is not ShapeKind.PICTURE or index in joined]
    for index in sorted(drawn, key=lambda index: shapes[index].area):
        area = shapes[index].area
        if not groups or area.top > bottom + _CLUSTER_ROWS:
            groups.append([])
        groups[-1].append(index)
        bottom = max(bottom, area.bottom)
    home = {index: number for number, group in enumerate(groups) for index in group}
    sets = Sets(len(groups))
    for edge in edges:
        if edge.start in home and edge.end in home:
            sets.union(home[edge.start], home[edge.end])
    merged: dict[int, tuple[list[int], list[Edge]]] = {}
    for number, group in enumerate(groups):
        merged.setdefault(sets.find(number), ([], []))[0].extend(group)
    for edge in named:
        for found in sorted({sets.find(home[end]) for end in (edge.start, edge.end) if end in home}):
            merged[found][1].append(edge)
    return list(merged.values())


def _diagram(
    shapes: tuple[Shape, ...],
    members: list[int],
    edges: list[tuple[Edge, int | None]],
    names: _Names,
    labels: Mapping[int, Edge],
) -> Diagram:
    said = [index for index in members if index not in labels and shapes[index].kind is not ShapeKind.PICTURE]
    found, lines = [], []
    for edge, label in edges:
        line = f"{names.of(edge.start)} {edge.sign} {names.of(edge.end)}"
        found.extend([] if label is None else [label])
        lines.append(line if label is None else f"{line}: {shapes[label].text}")
    texts = tuple(shapes[index].text for index in said if shapes[index].text)
    return Diagram(tuple(members), tuple(found), texts, tuple(lines))


def _block(shapes: tuple[Shape, ...], diagram: Diagram) -> Block:
    named = [index for index in diagram.members if shapes[index].text] or diagram.members
    area = _around(shapes[index].area for index in named)
    return Block(BlockKind.DIAGRAM, "\n".join((*diagram.texts, *diagram.edges)), cell_range=area.label)


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _NODE_CHARS else f"{text[:_NODE_CHARS]}…"


def _around(areas: Iterable[Area]) -> Area:
    tops, lefts, bottoms, rights = zip(*areas, strict=True)
    return Area(min(tops), min(lefts), max(bottoms), max(rights))
