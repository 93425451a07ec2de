"""Diagrams of a sheet as text: shapes in reading order, which ones connectors join, and what stands on the connectors.

An end of a connector that the file does not join to a shape is joined to the shape that it touches, or to the shape
whose line it touches, as in sequence diagrams, where messages run between the lines below the participants. A shape
without text is named by the text that stands on it, by its caption, or else by the cells it lies on; one without name,
as the sign for an end, is left out of what connectors join. A caption is text without fill and outline right below a
shape, or right beside or around a smaller one; it names no other shape, and is no heading, note or legend.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rag_assets.contracts.causes import BlockKind, FailureCause
from rag_assets.contracts.content import Block
from rag_assets.contracts.errors import ParseError
from rag_assets.parsing.drawings.drawings import Drawing, Shape, ShapeKind
from rag_assets.parsing.flow import area_of, picture_block
from rag_assets.parsing.geometry import (
    Line,
    Point,
    Rectangle,
    Sets,
    contains,
    depth_inside,
    line_distance,
    line_gap,
    middle,
    outside_distance,
)
from rag_assets.text.cells import Area
from rag_assets.text.plain import one_line

_CLUSTER_ROWS = 3
_NODE_CHARS = 81
_TOUCH = 120_000  # a third of a centimetre
_LABEL_CHARS = 80
_NO_NAME = re.compile(  # a heading, a note, a legend, a sentence
    r"[\W_]*(?:凡\s*例|注(?:記|意|釈)?(?:$|[\W\d])|備\s*考|補\s*足|legend\b|notes?(?:$|[\W\d]))|[■◆●▼※【]|.*。$",
    re.IGNORECASE,
)
_LABEL_REACH = 3 * _TOUCH
_CELLS_ROWS = 12
_GEOMETRY_MEMBERS = 1_000  # of larger drawings only what the file states is taken

Texts = Mapping[int, Mapping[int, str]]
"""Texts of cells by row, then column, from 0."""
Lifelines = Sequence[tuple[Line, int]]
"""Lines that hang on one shape only, with its index."""


@dataclass(frozen=True, slots=True)
class _Edge:
    """Two shapes, by index, that a connector joins, and how it is written between their names."""

    start: int
    end: int
    sign: str
    path: Line


@dataclass(frozen=True, slots=True)
class Diagram:
    """Shapes that belong together."""

    members: tuple[int, ...]  # indexes of the shapes in reading order
    labels: tuple[int, ...]  # indexes of those of all shapes that stand on its connectors
    texts: tuple[str, ...]  # texts of the members that are not on connectors, without pictures
    edges: tuple[str, ...]  # what its connectors join, as in `利用者 → サーバ: 要求`


def diagram_blocks(drawing: Drawing, texts: Texts) -> list[Block]:
    """Blocks of a drawing, without sections: a diagram for shapes that belong together, captions of pictures."""
    shapes, blocks = drawing.shapes, []
    for diagram in find_diagrams(drawing, texts):
        members = [index for index in diagram.members if shapes[index].text] or diagram.members
        area = Area.around(shapes[index].area for index in members)
        blocks.append(Block(BlockKind.DIAGRAM, "\n".join((*diagram.texts, *diagram.edges)), cell_range=area.label))
    captions = ((shape, picture_block(shape.text)) for shape in shapes if shape.kind is ShapeKind.PICTURE)
    return [*blocks, *(replace(caption, cell_range=shape.area.label) for shape, caption in captions if caption)]


def diagram_problems(drawing: Drawing) -> tuple[ParseError, ...]:
    """What had to be left out of a drawing and of its diagrams."""
    open_ends = any(not (connector.start and connector.end) for connector in drawing.connectors)
    if not open_ends or _has_geometry(drawing):
        return drawing.problems
    members = len(drawing.shapes) + len(drawing.connectors)
    message = f"drawing: {members} shapes and connectors, over {_GEOMETRY_MEMBERS} open ends are not joined by place"
    return (*drawing.problems, ParseError(FailureCause.TOO_LARGE, message))


def _has_geometry(drawing: Drawing) -> bool:
    return len(drawing.shapes) + len(drawing.connectors) <= _GEOMETRY_MEMBERS


def find_diagrams(drawing: Drawing, texts: Texts) -> list[Diagram]:
    """Diagrams of a drawing: shapes near each other from top to bottom, or joined by connectors.

    Args:
        drawing: The drawing.
        texts: Texts of the cells that it lies on; they name shapes without text.
    """
    shapes = drawing.shapes
    edges, lifelines = _join(drawing)
    names = _names(drawing, edges, lifelines, texts)
    named_edges = [edge for edge in edges if _is_named(edge, shapes, names)]
    labels = _labels(shapes, named_edges, names) if _has_geometry(drawing) else {}
    labels_by_edge = {place: index for index, place in labels.items()}
    diagrams = []
    for members, places in _clusters(shapes, edges, named_edges):
        lines, on_lines = [], []
        for place in places:
            edge, label = named_edges[place], labels_by_edge.get(place)
            line = f"{names[edge.start]} {edge.sign} {names[edge.end]}"
            lines.append(line if label is None else f"{line}: {shapes[label].text}")
            on_lines += [] if label is None else [label]
        nodes = [index for index in members if index not in labels and shapes[index].kind is not ShapeKind.PICTURE]
        own_texts = tuple(shapes[index].text for index in nodes if shapes[index].text)
        if own_texts or lines:
            diagrams.append(Diagram(tuple(members), tuple(on_lines), own_texts, tuple(lines)))
    return diagrams


def _is_named(edge: _Edge, shapes: Sequence[Shape], names: Mapping[int, str]) -> bool:
    """Whether both ends have a name, and not one that both take from the same text."""
    first, last = names[edge.start], names[edge.end]
    is_borrowed = not (shapes[edge.start].text and shapes[edge.end].text)
    return bool(first and last) and not (is_borrowed and first == last)


def _join(drawing: Drawing) -> tuple[list[_Edge], list[tuple[Line, int]]]:
    """Edges of a drawing, and its lifelines."""
    geometric = _has_geometry(drawing)
    numbers: dict[str, int] = {}
    for index, shape in enumerate(drawing.shapes):
        numbers.setdefault(shape.identity, index)
    lifelines: list[tuple[Line, int]] = []
    ends: list[tuple[int | None, int | None]] = []
    for connector in drawing.connectors:
        start, end, path = numbers.get(connector.start), numbers.get(connector.end), connector.path
        if geometric and path:
            across = connector.sign != "—" and len(path) == 2
            start = _shape_at(drawing.shapes, path[0], path[-1], across=across) if start is None else start
            end = _shape_at(drawing.shapes, path[-1], path[0], across=across) if end is None else end
            joined_ends = [index for index in (start, end) if index is not None]
            if connector.sign == "—" and len(joined_ends) == 1:
                lifelines.append((path, joined_ends[0]))
        ends.append((start, end))
    edges = []
    for connector, (start, end) in zip(drawing.connectors, ends, strict=True):
        path = connector.path
        if path and (connector.sign != "—" or (start is None) == (end is None)):
            start = _lifeline_at(lifelines, path[0]) if start is None else start  # noqa: PLW2901
            end = _lifeline_at(lifelines, path[-1]) if end is None else end  # noqa: PLW2901
        if start is not None and end is not None and start != end:
            first, last = (end, start) if connector.reverse else (start, end)
            edges.append(_Edge(first, last, connector.sign, path))
    return edges, lifelines


def _shape_at(shapes: Sequence[Shape], point: Point, other_end: Point, *, across: bool) -> int | None:
    """The shape that an end of a line touches, one with outline or fill first; none that holds the other end too.

    A straight arrow across a shape, from side to side, runs behind it and touches others; a line without a head may
    well divide it.
    """
    candidates: list[tuple[bool, float, bool, float, int]] = []
    for index, shape in enumerate(shapes):
        if shape.box is None or shape.kind is ShapeKind.ART or outside_distance(point, shape.box) > _TOUCH:
            continue
        depth = depth_inside(other_end, shape.box)
        if depth < 0 or (depth == 0 and not across):
            bare = shape.kind is ShapeKind.TEXT
            candidates.append((bare, outside_distance(point, shape.box), not shape.text, area_of(shape.box), index))
    return min(candidates)[-1] if candidates else None


def _lifeline_at(lifelines: Lifelines, point: Point) -> int | None:
    """The shape on whose line a point lies."""
    distance, index = min(((line_distance(point, line), index) for line, index in lifelines), default=(_TOUCH + 1.0, 0))
    return index if distance <= _TOUCH else None


def _names(drawing: Drawing, edges: Sequence[_Edge], lifelines: Lifelines, texts: Texts) -> dict[int, str]:
    """What the shapes at the ends of connectors, by index, are called; empty without any name."""
    shapes = drawing.shapes
    paths: dict[int, list[Line]] = {}
    for edge in edges:
        for index in (edge.start, edge.end):
            paths.setdefault(index, []).append(edge.path)
    free = {
        index: shape.box
        for index, shape in enumerate(shapes if _has_geometry(drawing) else ())
        if shape.text and shape.box and index not in paths and shape.kind is not ShapeKind.ART
    }
    texts_by_shape = {index: [index] if shapes[index].text else [] for index in paths}
    for index, own_texts in texts_by_shape.items():
        if not own_texts and (box := shapes[index].box) is not None:
            own_texts.extend(_texts_on(shapes, box, lifelines, free))
    taken_texts = {text for own_texts in texts_by_shape.values() for text in own_texts}
    nameless_paths = {index: paths[index] for index, own_texts in texts_by_shape.items() if not own_texts}
    unused_texts = {text: place for text, place in free.items() if text not in taken_texts}
    texts_by_shape |= {index: [text] for index, text in _captions(shapes, nameless_paths, unused_texts).items()}
    names = {index: " ".join(shapes[text].text for text in own_texts) for index, own_texts in texts_by_shape.items()}
    return {
        index: one_line(name or _cell_texts(shapes[index].area, texts), _NODE_CHARS) for index, name in names.items()
    }


def _texts_on(
    shapes: Sequence[Shape], box: Rectangle, lifelines: Lifelines, free: Mapping[int, Rectangle]
) -> list[int]:
    """Shapes with text that stand on a place, or the participant whose line runs through it, by index."""
    inside = [index for index, place in free.items() if contains(box, place)]
    nodes = [index for index in inside if shapes[index].kind is ShapeKind.NODE]
    if nodes or len(inside) == 1:
        return sorted(nodes or inside, key=lambda index: shapes[index].area)[:3]
    reach = min(box[2] - box[0], box[3] - box[1]) / 2
    near = ((line_distance(middle(box), line), index) for line, index in lifelines)
    distance, index = min(near, default=(reach + 1, 0))
    return [index] if distance <= reach and shapes[index].text else []


def _captions(
    shapes: Sequence[Shape], paths: Mapping[int, Sequence[Line]], free: Mapping[int, Rectangle]
) -> dict[int, int]:
    """Captions of shapes, both by index: texts that touch them, at most one for each, and each of one shape.

    Args:
        shapes: All shapes.
        paths: Shapes without a name, by index, with the connectors that end there.
        free: Texts, by index, that name nothing else, with their places.
    """
    distances: dict[tuple[int, int], float] = {}
    for text, place in free.items():
        caption = one_line(shapes[text].text)
        if not shapes[text].is_bare or len(caption) > _LABEL_CHARS or _NO_NAME.match(caption):
            continue
        for index, lines in paths.items():
            box = shapes[index].box
            if box is None or _is_label(place, shapes[index], box, lines):
                continue
            if (distance := _caption_distance(box, place)) <= _TOUCH:
                distances[text, index] = distance
    reaches = dict.fromkeys((text for text, _ in distances), float(_TOUCH))
    return {index: text for text, index in assign_labels(distances, reaches).items()}


def _is_label(place: Rectangle, shape: Shape, box: Rectangle, lines: Sequence[Line]) -> bool:
    """Whether a text stands on a connector of a shape and is no caption of it: of a sign for a decision, with several
    connectors, or of a box larger than the text.
    """
    may_be = shape.kind is not ShapeKind.PICTURE and (len(lines) > 1 or area_of(box) > area_of(place))
    return may_be and any(line_distance(middle(place), line) <= _label_reach(place) for line in lines)


def _caption_distance(box: Rectangle, place: Rectangle) -> float:
    """Distance of a text below the middle of a shape, or beside, above or around one smaller than itself, from the
    middle of a side; infinite where it stands elsewhere.
    """
    x, y = middle(box)
    is_in_line = place[0] <= x <= place[2]
    if area_of(box) <= area_of(place) and (is_in_line or place[1] <= y <= place[3]):
        sides = [(x, box[3]), (x, box[1]), (box[0], y), (box[2], y)]
    elif is_in_line and place[1] >= y and not contains(box, place):
        sides = [(x, box[3])]
    else:
        return math.inf
    return min(outside_distance(side, place) for side in sides)


def _cell_texts(area: Area, texts: Texts) -> str:
    """Texts of the cells that a shape lies on."""
    rows = range(area.top, min(area.bottom, area.top + _CELLS_ROWS) + 1)
    cells = ((row, column, cell) for row in rows for column, cell in texts.get(row, {}).items())
    return " ".join(cell for row, column, cell in cells if area.holds(row, column))


def _labels(shapes: Sequence[Shape], edges: Sequence[_Edge], names: Mapping[int, str]) -> dict[int, int]:
    """Text boxes that stand on a connector, by index, with the place of its edge: at most one for each."""
    ends = {index for edge in edges for index in (edge.start, edge.end)}
    distances: dict[tuple[int, int], float] = {}
    reaches: dict[int, float] = {}
    for index, shape in enumerate(shapes):
        is_text = shape.kind in {ShapeKind.NODE, ShapeKind.TEXT} and 0 < len(shape.text) <= _LABEL_CHARS
        if not is_text or index in ends or shape.box is None:
            continue
        reaches[index] = reach = _label_reach(shape.box)
        for place, edge in enumerate(edges):
            distance = line_distance(middle(shape.box), edge.path)
            beside = shape.kind is ShapeKind.TEXT and line_gap(shape.box, edge.path) <= _TOUCH / 2
            if (distance <= reach or beside) and _can_label(shapes, shape.text, shape.box, edge, names):
                distances[index, place] = distance
                reaches[index] = max(reaches[index], distance)
    return assign_labels(distances, reaches)


def _label_reach(box: Rectangle) -> float:
    """How far from the middle of a text the connector runs, at most, that it stands on."""
    return min((box[3] - box[1]) / 2, _LABEL_REACH) + _TOUCH / 2


def _can_label(shapes: Sequence[Shape], text: str, box: Rectangle, edge: _Edge, names: Mapping[int, str]) -> bool:
    """Whether a text box says something on a connector: it neither names an end nor is a frame around all of it."""
    if one_line(text) in {names[edge.start], names[edge.end]}:
        return False
    if any(depth_inside(point, box) < 0 for point in edge.path):
        return True
    ends = (shapes[edge.start].box, shapes[edge.end].box)
    return all(end is not None and not contains(box, end) for end in ends)


def assign_labels(distances: Mapping[tuple[int, int], float], reaches: Mapping[int, float]) -> dict[int, int]:
    """Which text stands on which connector: connectors by label, at most one for each.

    The sum of distances is the least, where a label without a connector counts with its reach: of two arrows side by
    side each has its own text, and no far arrow takes a text so that another one finds a place.

    Args:
        distances: Distances by label and connector, of those that can belong together.
        reaches: Distances up to which labels can belong to a connector; at least those above.
    """
    if not distances:
        return {}
    import numpy as np  # both are slow to load, and few drawings have labels
    from scipy.optimize import linear_sum_assignment

    labels, connectors = (sorted(set(numbers)) for numbers in zip(*distances, strict=True))
    rows = {label: row for row, label in enumerate(labels)}
    columns = {connector: column for column, connector in enumerate(connectors)}
    costs = np.full((len(labels), len(connectors) + len(labels)), np.inf)
    costs[:, len(connectors) :] = [[reaches[label]] for label in labels]
    for (label, connector), distance in distances.items():
        costs[rows[label], columns[connector]] = distance
    pairs = zip(labels, linear_sum_assignment(costs)[1], strict=True)
    return {label: connectors[column] for label, column in pairs if column < len(connectors)}


def _clusters(
    shapes: Sequence[Shape], edges: Sequence[_Edge], named_edges: Sequence[_Edge]
) -> list[tuple[list[int], list[int]]]:
    """Group shapes that lie near each other from top to bottom, or that connectors join; indexes in reading order.

    With each group go the places, among edges with two named ends, of those that join one of it. A picture is in a
    group only where such an edge joins it.
    """
    groups: list[list[int]] = []
    bottom = -_CLUSTER_ROWS
    ends = {index for edge in named_edges for index in (edge.start, edge.end)}
    drawn_shapes = [index for index, shape in enumerate(shapes) if shape.kind is not ShapeKind.PICTURE or index in ends]
    for index in sorted(drawn_shapes, key=lambda index: shapes[index].area):
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
    clusters: dict[int, tuple[list[int], list[int]]] = {}
    for number, group in enumerate(groups):
        clusters.setdefault(sets.find(number), ([], []))[0].extend(group)
    for place, edge in enumerate(named_edges):
        for number in sorted({sets.find(home[end]) for end in (edge.start, edge.end) if end in home}):
            clusters[number][1].append(place)
    return list(clusters.values())
