"""The drawing of a sheet: its shapes, pictures and connectors with their places, those in groups included.

What stays out: what they mean together (`excel_diagrams`), the content of pictures, the look of shapes.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import takewhile

from lxml import etree

from rag_assets.contracts.causes import FailureCause
from rag_assets.contracts.errors import ParseError
from rag_assets.parsing.archive import Archive, Relation, local_name
from rag_assets.parsing.drawings.geometry import IDENTITY, Frame, Line, Rectangle, connector_path
from rag_assets.parsing.excel.cells import Area, clean_text
from rag_assets.parsing.limits import current_limits

_ANCHORS = {"twoCellAnchor", "oneCellAnchor", "absoluteAnchor"}
_LINES = ("line", "straightConnector", "bentConnector", "curvedConnector")
_MAXIMUM_MEMBERS = 20_000
_CONTROL_IDENTITY = re.compile(r"_s(\d+)$")
_GUIDE = re.compile(r"val (-?\d{1,9})")
_WHOLE = 100_000  # shares are stated in these parts
_ART_SIZE = 4_000  # hundredths of a point
_LAST_ROW, _LAST_COLUMN = (1 << 20) - 1, (1 << 14) - 1


class ShapeKind(StrEnum):
    """What a shape can be in a diagram."""

    NODE = "node"
    TEXT = "text"  # text alone, without fill and outline
    ART = "art"  # text as a picture, such as a watermark
    PICTURE = "picture"


@dataclass(frozen=True, slots=True)
class Shape:
    """A shape, chart, graphic or picture.

    Attributes:
        area: Cells it lies on; of a shape within a group, scaled from the group's.
        identity: Its number in the drawing.
        text: Its text in one line; of a picture, its alternative text.
        box: Its place in the drawing's units; None where the drawing does not tell.
        kind: What it can be in a diagram.
        control: Number of the control that it stands for; empty for other shapes.
    """

    area: Area
    identity: str
    text: str
    box: Rectangle | None = None
    kind: ShapeKind = ShapeKind.NODE
    control: str = ""


@dataclass(frozen=True, slots=True)
class Connector:
    """A line between shapes.

    Attributes:
        start: Number of the shape where it starts; empty where the drawing does not tell.
        end: Number of the shape where it ends; likewise.
        sign: How the line is written between the texts of the two.
        reverse: Whether only its start has an arrow head.
        path: Points that it runs through, from its start to its end; empty where the drawing does not tell.
    """

    start: str
    end: str
    sign: str
    reverse: bool
    path: Line = ()


@dataclass(frozen=True, slots=True)
class Drawing:
    """What a drawing holds, in its own order.

    Attributes:
        shapes: Shapes, charts, graphics and pictures.
        connectors: Lines between them.
        problems: What had to be left out.
    """

    shapes: tuple[Shape, ...]
    connectors: tuple[Connector, ...]
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
            area = _anchor_area(anchor)
            for element in _flat(anchor):
                reader.collect(element, area, IDENTITY)
    return Drawing(tuple(reader.shapes), tuple(reader.connectors), tuple(reader.problems.values()))


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
    for element in _flat(parent):
        reader.collect(element, Area(0, 0, 0, 0), IDENTITY)
    return Drawing(tuple(reader.shapes), tuple(reader.connectors), tuple(reader.problems.values()))


def control_number(identity: str) -> str:
    """Number of a control in an identity such as `_x0000_s1025`; empty where it has none."""
    match = _CONTROL_IDENTITY.search(identity)
    return match[1] if match else ""


def _flat(parent: etree._Element) -> Iterator[etree._Element]:
    """Children, with the preferred choice in place of alternative contents."""
    for child in parent:
        if local_name(child) != "AlternateContent":
            yield child
            continue
        choice = next((branch for branch in child if local_name(branch) == "Choice"), None)
        yield from child[-1] if choice is None and len(child) else (choice if choice is not None else ())


class _DrawingReader:
    """Collects the shapes and connectors of a drawing, those in groups included."""

    def __init__(self, archive: Archive, relations: dict[str, Relation]) -> None:
        self.archive = archive
        self.relations = relations
        self.shapes: list[Shape] = []
        self.connectors: list[Connector] = []
        self.problems: dict[str, ParseError] = {}
        self._deepest = current_limits().nesting_depth

    def collect(self, element: etree._Element, area: Area, frame: Frame, depth: int = 0) -> None:
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
                self._add(element, area, frame, _alternative(element), ShapeKind.PICTURE)
            case "graphicFrame":
                self._add(element, area, frame, self._frame_text(element))
            case "grpSp" | "wgp" if depth >= self._deepest:
                self._leave_out(
                    f"drawing: groups nested deeper than {self._deepest} (parsing.nesting_depth) are left out"
                )
            case "grpSp" | "wgp":
                outer, inner = _rectangle(element, "off", "ext"), _rectangle(element, "chOff", "chExt")
                flip_x, flip_y = _flips(element)
                within = frame.within(outer, inner, flip_x=flip_x, flip_y=flip_y) if outer and inner else frame
                for child in _flat(element):
                    self.collect(child, _scaled(child, inner, area), within, depth + 1)

    def _add(
        self, element: etree._Element, area: Area, frame: Frame, text: str, kind: ShapeKind = ShapeKind.NODE
    ) -> None:
        control = next((control_number(part.get("spid") or "") for part in element.iter("{*}compatExt")), "")
        self.shapes.append(Shape(area, _property(element, "id"), text, _box(element, frame), kind, control))

    def _frame_text(self, element: etree._Element) -> str:
        """Titles and series of a chart, or the texts of a SmartArt graphic."""
        pieces: list[str] = []
        for reference in element.iter("{*}chart", "{*}relIds"):
            wanted = "dm" if local_name(reference) == "relIds" else "id"
            identity = next((str(value) for name, value in reference.attrib.items() if _ends(name, wanted)), "")
            relation = self.relations.get(identity)
            if relation is None or not self.archive.has(relation.target):
                continue
            try:
                root = self.archive.tree(relation.target)
            except ParseError as error:
                self.problems[str(error)] = error  # it takes nothing from the sheet's cells
                continue
            pieces.extend(filter(None, map(_paragraphs, root.iter("{*}rich", "{*}t") if wanted == "id" else [root])))
            pieces.extend(clean_text(value.text or "") for name in root.iter("{*}tx") for value in name.iter("{*}v"))
        return " ".join(dict.fromkeys(pieces))

    def _leave_out(self, message: str) -> None:
        self.problems[message] = ParseError(FailureCause.TOO_LARGE, message)


def _anchor_area(anchor: etree._Element) -> Area:
    corners = {local_name(child): child for child in anchor if local_name(child) in {"from", "to"}}
    first = _corner(corners.get("from"))
    last = _corner(corners.get("to")) if "to" in corners else first
    return Area(first[0], first[1], max(first[0], last[0]), max(first[1], last[1]))


def _corner(element: etree._Element | None) -> tuple[int, int]:
    values = {local_name(child): child.text or "" for child in element} if element is not None else {}
    row, column = (values.get(name, "").strip() for name in ("row", "col"))
    return (
        min(int(row), _LAST_ROW) if row.isdecimal() else 0,
        min(int(column), _LAST_COLUMN) if column.isdecimal() else 0,
    )


def _transform(element: etree._Element) -> etree._Element | None:
    """The element that places a shape: its `xfrm`."""
    for properties in element:
        name = local_name(properties)
        if name == "xfrm":
            return properties
        if name in {"spPr", "grpSpPr"}:
            return next((child for child in properties if local_name(child) == "xfrm"), None)
    return None


def _flips(element: etree._Element) -> tuple[bool, bool]:
    """Whether a shape or group exchanges left and right, and top and bottom."""
    transform = _transform(element)
    if transform is None:
        return False, False
    return transform.get("flipH") in {"1", "true"}, transform.get("flipV") in {"1", "true"}


def _rectangle(element: etree._Element, offset: str, extent: str) -> Rectangle | None:
    """Left, top, width and height of a shape or of a group's inner space, in its own units."""
    transform = _transform(element)
    if transform is None:
        return None
    found = {local_name(child): child for child in transform}
    if offset not in found or extent not in found:
        return None
    values = [found[offset].get("x"), found[offset].get("y"), found[extent].get("cx"), found[extent].get("cy")]
    numbers = [int(value) for value in values if value and len(value) < 20 and value.lstrip("-").isdecimal()]
    return (numbers[0], numbers[1], numbers[2], numbers[3]) if len(numbers) == 4 else None


def _box(element: etree._Element, frame: Frame) -> Rectangle | None:
    """Left, top, right and bottom of a shape in the drawing's units; None without a size."""
    placed = _rectangle(element, "off", "ext")
    if placed is None or (placed[2] <= 0 and placed[3] <= 0):
        return None
    one, other = frame.place(placed[0], placed[1]), frame.place(placed[0] + placed[2], placed[1] + placed[3])
    return min(one[0], other[0]), min(one[1], other[1]), max(one[0], other[0]), max(one[1], other[1])


def _scaled(child: etree._Element, frame: Rectangle | None, area: Area) -> Area:
    """Cells of a group's member: its share of the group's space, taken of the group's cells."""
    box = _rectangle(child, "off", "ext")
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


def _property(element: etree._Element, name: str) -> str:
    return next((child.get(name) or "" for child in element.iter("{*}cNvPr")), "")


def _alternative(element: etree._Element) -> str:
    """Alternative text of a picture: its description, else its title."""
    return " ".join(clean_text(_property(element, "descr") or _property(element, "title")).split())


def _paragraphs(element: etree._Element) -> str:
    """Text of a shape: its paragraphs in one line."""
    lines = []
    for paragraph in element.iter("{*}p"):
        runs = ("".join(map(str, run.itertext("{*}t"))) for run in paragraph if local_name(run) in {"r", "fld"})
        lines.append(clean_text("".join(runs)))
    return " ".join(line for line in lines if line)


def _ends(name: object, wanted: str) -> bool:
    return str(name).rpartition("}")[2] == wanted


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


def _preset(element: etree._Element) -> str:
    return next((str(child.get("prst") or "") for child in element.iter("{*}prstGeom")), "")


def _bends(element: etree._Element) -> list[float]:
    """Where a connector bends, as shares of its width and height; up to the first that the drawing does not state."""
    guides = {guide.get("name"): _GUIDE.fullmatch(guide.get("fmla") or "") for guide in element.iter("{*}gd")}
    found = list(takewhile(bool, (guides.get(f"adj{number}") for number in (1, 2, 3))))
    return [int(match[1]) / _WHOLE for match in found if match]


def _is_line(element: etree._Element) -> bool:
    """Whether a shape is a line: in text documents, or drawn with an older tool, it has no name of its own for it."""
    return element.find("{*}cNvCnPr") is not None or (_preset(element).startswith(_LINES) and not _paragraphs(element))


def _connector(element: etree._Element, frame: Frame) -> Connector:
    ends = {local_name(end): end.get("id") or "" for end in element.iter("{*}stCxn", "{*}endCxn")}
    heads = {
        local_name(head) for head in element.iter("{*}headEnd", "{*}tailEnd") if head.get("type") not in {None, "none"}
    }
    sign = "↔" if len(heads) == 2 else "→" if heads else "—"
    path: Line = ()
    placed, transform = _rectangle(element, "off", "ext"), _transform(element)
    if placed is not None and transform is not None and placed[2] + placed[3] > 0:
        flip_x, flip_y = _flips(element)
        rotation = transform.get("rot") or "0"
        points = connector_path(
            placed, _preset(element), _bends(element), flip_x=flip_x, flip_y=flip_y, rotation=rotation
        )
        path = tuple(frame.place(*point) for point in points)
    return Connector(ends.get("stCxn", ""), ends.get("endCxn", ""), sign, heads == {"headEnd"}, path)
