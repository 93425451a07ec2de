"""The drawing of a sheet: its shapes, pictures and connectors with their places, those in groups included.

What they mean together is told by `diagrams`.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import takewhile
from typing import NamedTuple

from lxml import etree

from rag_assets.contracts.causes import FailureCause
from rag_assets.contracts.errors import ParseError
from rag_assets.parsing.archive import Archive, Relation, alternative, local_name
from rag_assets.parsing.excel.workbook import clean_text
from rag_assets.parsing.geometry import IDENTITY, Frame, Line, Rectangle, connector_path
from rag_assets.parsing.limits import current_limits
from rag_assets.parsing.office.styles import attribute
from rag_assets.text.cells import MAXIMUM_COLUMNS, MAXIMUM_ROWS, Area
from rag_assets.text.plain import one_line

_ANCHORS = {"twoCellAnchor", "oneCellAnchor", "absoluteAnchor"}
LINES = ("line", "straightConnector", "bentConnector", "curvedConnector")
_MAXIMUM_MEMBERS = 20_000
_CONTROL_IDENTITY = re.compile(r"_s(\d+)$")
_GUIDE = re.compile(r"val (-?\d{1,9})")
_WHOLE = 100_000  # shares are stated in these parts
_ART_SIZE = 4_000  # hundredths of a point


class ShapeKind(StrEnum):
    """What a shape can be in a diagram."""

    NODE = "node"
    TEXT = "text"  # text alone, without fill and outline
    ART = "art"  # text as a picture, such as a watermark
    PICTURE = "picture"


@dataclass(frozen=True, slots=True)
class Shape:
    """A shape, chart, graphic or picture."""

    area: Area  # cells it lies on; of a shape within a group, scaled from the group's
    identity: str  # its number in the drawing
    text: str  # its text in one line; of a picture, its alternative text
    box: Rectangle | None = None  # its place in the drawing's units; None where the drawing does not tell
    kind: ShapeKind = ShapeKind.NODE  # what it can be in a diagram
    control: str = ""  # number of the control that it stands for; empty for other shapes
    is_bare: bool = False  # whether it has neither fill nor outline, stated or by its style


@dataclass(frozen=True, slots=True)
class Connector:
    """A line between shapes."""

    start: str  # number of the shape where it starts; empty where the drawing does not tell
    end: str  # number of the shape where it ends; likewise
    sign: str  # how the line is written between the texts of the two
    reverse: bool  # whether only its start has an arrow head
    path: Line = ()  # points that it runs through, from its start to its end; empty where the drawing does not tell


@dataclass(frozen=True, slots=True)
class Drawing:
    """What a drawing holds, in its own order."""

    shapes: tuple[Shape, ...]  # shapes, charts, graphics and pictures
    connectors: tuple[Connector, ...]  # lines between them
    problems: tuple[ParseError, ...] = ()

    def without_controls(self, numbers: Collection[str]) -> "Drawing":
        """The drawing without the shapes that stand for some controls."""
        return replace(self, shapes=tuple(shape for shape in self.shapes if shape.control not in numbers))


def read_drawing(archive: Archive, part: str) -> Drawing:
    """Read a drawing.

    Raises:
        ParseError: MALFORMED where the part cannot be read.
    """
    reader = _DrawingReader(archive, archive.relations(part))
    for anchor in _flat(archive.tree(part)):
        if local_name(anchor) in _ANCHORS:
            reader.collect_all(anchor, _anchor_area(anchor))
    return reader.drawing()


def read_shapes(archive: Archive, relations: dict[str, Relation], parent: etree._Element) -> Drawing:
    """Shapes and connectors within a slide's tree of shapes, or within a group or canvas of a text document.

    Args:
        archive: The file.
        relations: Parts that the part refers to, by the ids of the relationships.
        parent: The element that holds them.

    Returns:
        The drawing; its shapes lie on no cells, so that all areas are the first cell.
    """
    reader = _DrawingReader(archive, relations)
    reader.collect_all(parent, Area(0, 0, 0, 0))
    return reader.drawing()


def control_number(identity: str) -> str:
    """Number of a control in an identity such as `_x0000_s1025`; empty where it has none."""
    match = _CONTROL_IDENTITY.search(identity)
    return match[1] if match else ""


def _flat(parent: etree._Element) -> Iterator[etree._Element]:
    """Children, with the preferred choice in place of alternative contents."""
    for child in parent:
        yield from alternative(child) if local_name(child) == "AlternateContent" else (child,)


class _DrawingReader:
    """Collects the shapes and connectors of a drawing, those in groups included."""

    def __init__(self, archive: Archive, relations: dict[str, Relation]) -> None:
        self.archive = archive
        self.relations = relations
        self.shapes: list[Shape] = []
        self.connectors: list[Connector] = []
        self.problems: dict[str, ParseError] = {}
        self._deepest = current_limits().nesting_depth

    def drawing(self) -> Drawing:
        return Drawing(tuple(self.shapes), tuple(self.connectors), tuple(self.problems.values()))

    def collect_all(self, parent: etree._Element, area: Area) -> None:
        for element in _flat(parent):
            self._collect(element, area, IDENTITY, 0)

    def _collect(self, element: etree._Element, area: Area, frame: Frame, depth: int) -> None:
        if len(self.shapes) + len(self.connectors) >= _MAXIMUM_MEMBERS:
            self._leave_out(f"drawing: more than {_MAXIMUM_MEMBERS} shapes and connectors, the others are left out")
            return
        match local_name(element):
            case "cxnSp":
                self.connectors.append(_connector(element, frame))
            case "sp" | "wsp" if _is_line(element):
                self.connectors.append(_connector(element, frame))
            case "sp" | "wsp":
                self._add(element, area, frame, _paragraphs(element), _kind(element))
            case "pic":
                description = property_of(element, "descr") or property_of(element, "title")
                self._add(element, area, frame, one_line(clean_text(description)), ShapeKind.PICTURE)
            case "graphicFrame":
                self._add(element, area, frame, self._frame_text(element), ShapeKind.NODE)
            case "grpSp" | "wgp" if depth >= self._deepest:
                self._leave_out(
                    f"drawing: groups nested deeper than {self._deepest} (parsing.nesting_depth) are left out"
                )
            case "grpSp" | "wgp":
                inner_frame, inner = group_frame(element, frame), _place(element).inner
                for child in _flat(element):
                    self._collect(child, _scaled(child, inner, area), inner_frame, depth + 1)

    def _add(self, element: etree._Element, area: Area, frame: Frame, text: str, kind: ShapeKind) -> None:
        control = next((control_number(part.get("spid") or "") for part in element.iter("{*}compatExt")), "")
        identity, box = property_of(element, "id"), box_of(element, frame)
        self.shapes.append(Shape(area, identity, text, box, kind, control, _is_bare(element)))

    def _frame_text(self, element: etree._Element) -> str:
        """Titles and series of a chart, or the texts of a SmartArt graphic."""
        pieces: list[str] = []
        for reference in element.iter("{*}chart", "{*}relIds"):
            is_chart = local_name(reference) == "chart"
            relation = self.relations.get(attribute(reference, "id" if is_chart else "dm"))
            if relation is None or not self.archive.has(relation.target):
                continue
            try:
                root = self.archive.tree(relation.target)
            except ParseError as error:
                self.problems[str(error)] = error  # it takes nothing from the sheet's cells
                continue
            pieces.extend(filter(None, map(_paragraphs, root.iter("{*}rich", "{*}t") if is_chart else [root])))
            pieces.extend(clean_text(value.text or "") for name in root.iter("{*}tx") for value in name.iter("{*}v"))
        return " ".join(dict.fromkeys(pieces))

    def _leave_out(self, message: str) -> None:
        self.problems[message] = ParseError(FailureCause.TOO_LARGE, message)


def _anchor_area(anchor: etree._Element) -> Area:
    first = _corner(anchor.find("{*}from"))
    end = anchor.find("{*}to")
    last = first if end is None else _corner(end)
    return Area(*first, max(first[0], last[0]), max(first[1], last[1]))


def _corner(element: etree._Element | None) -> tuple[int, int]:
    """Row and column of a corner of an anchor."""
    if element is None:
        return 0, 0
    row, column = ((element.findtext(f"{{*}}{name}") or "").strip() for name in ("row", "col"))
    return (
        min(int(row), MAXIMUM_ROWS - 1) if row.isdecimal() else 0,
        min(int(column), MAXIMUM_COLUMNS - 1) if column.isdecimal() else 0,
    )


class _Place(NamedTuple):
    """Where a shape or group lies, as left, top, width and height in the units of what it lies in."""

    outer: Rectangle | None = None  # the shape before it is turned; None where the drawing does not tell
    # of a group, the same rectangle in the units of its members; None where the drawing does not tell
    inner: Rectangle | None = None
    flip_x: bool = False  # whether left and right are exchanged
    flip_y: bool = False  # whether top and bottom are exchanged
    rotation: str = "0"  # turn clockwise, in 60,000ths of a degree


def _place(element: etree._Element) -> _Place:
    holder = next((child for child in element if local_name(child) in {"xfrm", "spPr", "grpSpPr"}), None)
    transform = holder if holder is None or local_name(holder) == "xfrm" else holder.find("{*}xfrm")
    if transform is None:
        return _Place()
    flip_x, flip_y = (transform.get(name) in {"1", "true"} for name in ("flipH", "flipV"))
    outer, inner = _rectangle(transform, "off", "ext"), _rectangle(transform, "chOff", "chExt")
    return _Place(outer, inner, flip_x, flip_y, transform.get("rot") or "0")


def _rectangle(transform: etree._Element, offset: str, extent: str) -> Rectangle | None:
    corner, size = transform.find(f"{{*}}{offset}"), transform.find(f"{{*}}{extent}")
    if corner is None or size is None:
        return None
    values = (corner.get("x"), corner.get("y"), size.get("cx"), size.get("cy"))
    numbers = [int(value) for value in values if value and len(value) < 20 and value.lstrip("-").isdecimal()]
    return (numbers[0], numbers[1], numbers[2], numbers[3]) if len(numbers) == 4 else None


def group_frame(group: etree._Element, frame: Frame) -> Frame:
    """The frame of a group within that of what it lies in."""
    outer, inner, flip_x, flip_y, _ = _place(group)
    return frame.within(outer, inner, flip_x=flip_x, flip_y=flip_y) if outer and inner else frame


def box_of(element: etree._Element, frame: Frame) -> Rectangle | None:
    """Left, top, right and bottom of a shape in the drawing's units; None without a size."""
    outer = _place(element).outer
    if outer is None or (outer[2] <= 0 and outer[3] <= 0):
        return None
    start, end = frame.place(outer[0], outer[1]), frame.place(outer[0] + outer[2], outer[1] + outer[3])
    return min(start[0], end[0]), min(start[1], end[1]), max(start[0], end[0]), max(start[1], end[1])


def _scaled(child: etree._Element, frame: Rectangle | None, area: Area) -> Area:
    """Cells of a group's member: its share of the group's space, taken of the group's cells."""
    box = _place(child).outer
    if box is None or frame is None or frame[2] <= 0 or frame[3] <= 0:
        return area
    rows, columns = area.bottom - area.top + 1, area.right - area.left + 1

    def place(offset: float, size: float, cells: int) -> int:
        return min(max(int(offset / size * cells), 0), cells - 1)

    left, top = box[0] - frame[0], box[1] - frame[1]
    return Area(
        area.top + place(top, frame[3], rows),
        area.left + place(left, frame[2], columns),
        area.top + place(max(top + box[3] - 1, top), frame[3], rows),
        area.left + place(max(left + box[2] - 1, left), frame[2], columns),
    )


def property_of(element: etree._Element, name: str) -> str:
    """A property of a shape that is no look, as its `id` or its alternative text; empty where it states none."""
    return next((child.get(name) or "" for child in element.iter("{*}cNvPr")), "")


def _paragraphs(element: etree._Element) -> str:
    """Text of a shape: its paragraphs in one line."""
    lines = []
    for paragraph in element.iter("{*}p"):
        runs = ("".join(map(str, run.itertext("{*}t"))) for run in paragraph if local_name(run) in {"r", "fld"})
        lines.append(clean_text("".join(runs)))
    return " ".join(line for line in lines if line)


def _kind(element: etree._Element) -> ShapeKind:
    if any(warp.get("prst") != "textNoShape" for warp in element.iter("{*}prstTxWarp")):
        return ShapeKind.ART
    looks = element.find("{*}spPr")
    if looks is None or looks.find("{*}noFill") is None:
        return ShapeKind.NODE
    sizes = [run.get("sz") or "" for run in element.iter("{*}rPr")]
    if any(size.isdecimal() and int(size) >= _ART_SIZE for size in sizes):
        return ShapeKind.ART
    return ShapeKind.NODE if looks.find("{*}ln/{*}noFill") is None else ShapeKind.TEXT


def _is_bare(element: etree._Element) -> bool:
    looks = element.find("{*}spPr")
    if looks is None or looks.find("{*}noFill") is None:
        return False
    outline = looks.find("{*}ln")
    return element.find("{*}style") is None if outline is None else outline.find("{*}noFill") is not None


def _preset(element: etree._Element) -> str:
    return next((str(child.get("prst") or "") for child in element.iter("{*}prstGeom")), "")


def _bends(element: etree._Element) -> list[float]:
    """Where a connector bends, as shares of its width and height; up to the first that the drawing does not state."""
    guides = {guide.get("name"): _GUIDE.fullmatch(guide.get("fmla") or "") for guide in element.iter("{*}gd")}
    matches = takewhile(bool, (guides.get(f"adj{number}") for number in (1, 2, 3)))
    return [int(match[1]) / _WHOLE for match in matches if match]


def _is_line(element: etree._Element) -> bool:
    """Whether a shape is a line: in text documents, or drawn with an older tool, it has no name of its own for it."""
    return element.find("{*}cNvCnPr") is not None or (_preset(element).startswith(LINES) and not _paragraphs(element))


def _connector(element: etree._Element, frame: Frame) -> Connector:
    ends = {local_name(end): end.get("id") or "" for end in element.iter("{*}stCxn", "{*}endCxn")}
    heads = {
        local_name(head) for head in element.iter("{*}headEnd", "{*}tailEnd") if head.get("type") not in {None, "none"}
    }
    sign = "↔" if len(heads) == 2 else "→" if heads else "—"
    path: Line = ()
    outer, _, flip_x, flip_y, rotation = _place(element)
    if outer is not None and outer[2] + outer[3] > 0:
        points = connector_path(
            outer, _preset(element), _bends(element), flip_x=flip_x, flip_y=flip_y, rotation=rotation
        )
        path = tuple(frame.place(*point) for point in points)
    return Connector(ends.get("stCxn", ""), ends.get("endCxn", ""), sign, heads == {"headEnd"}, path)
