"""The drawing of a sheet: its shapes, pictures and connectors with their places, those in groups included.

What stays out: what they mean together (`excel_diagrams`), the content of pictures, the look of shapes.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from lxml import etree

from rag_assets.contracts.errors import ParseError
from rag_assets.parsing.archive import Archive, Relation, local_name
from rag_assets.parsing.excel_cells import Area, clean_text
from rag_assets.parsing.excel_geometry import IDENTITY, Frame, Line, Rectangle, connector_path

_ANCHORS = {"twoCellAnchor", "oneCellAnchor", "absoluteAnchor"}
_LINES = ("line", "straightConnector", "bentConnector", "curvedConnector")
_MAXIMUM_DEPTH = 32
_MAXIMUM_MEMBERS = 20_000
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
    """

    area: Area
    identity: str
    text: str
    box: Rectangle | None = None
    kind: ShapeKind = ShapeKind.NODE


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
    """What a drawing holds, in its own order."""

    shapes: tuple[Shape, ...]
    connectors: tuple[Connector, ...]


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
    return Drawing(tuple(reader.shapes), tuple(reader.connectors))


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

    def collect(self, element: etree._Element, area: Area, frame: Frame, depth: int = 0) -> None:
        if len(self.shapes) + len(self.connectors) >= _MAXIMUM_MEMBERS:
            return
        match local_name(element):
            case "cxnSp":
                self.connectors.append(_connector(element, frame))
            case "sp" if _is_line(element):
                self.connectors.append(_connector(element, frame))
            case "sp":
                self._add(element, area, frame, _paragraphs(element), _kind(element))
            case "pic":
                self._add(element, area, frame, _alternative(element), ShapeKind.PICTURE)
            case "graphicFrame":
                self._add(element, area, frame, _frame_text(element, self.archive, self.relations))
            case "grpSp" if depth < _MAXIMUM_DEPTH:
                outer, inner = _rectangle(element, "off", "ext"), _rectangle(element, "chOff", "chExt")
                within = frame.within(outer, inner) if outer and inner else frame
                for child in _flat(element):
                    self.collect(child, _scaled(child, inner, area), within, depth + 1)

    def _add(
        self, element: etree._Element, area: Area, frame: Frame, text: str, kind: ShapeKind = ShapeKind.NODE
    ) -> None:
        self.shapes.append(Shape(area, _property(element, "id"), text, _box(element, frame), kind))


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
    left, top = frame.place(placed[0], placed[1])
    right, bottom = frame.place(placed[0] + placed[2], placed[1] + placed[3])
    return left, top, right, bottom


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


def _frame_text(element: etree._Element, archive: Archive, relations: dict[str, Relation]) -> str:
    """Titles and series of a chart, or the texts of a SmartArt graphic."""
    pieces: list[str] = []
    for reference in element.iter("{*}chart", "{*}relIds"):
        wanted = "dm" if local_name(reference) == "relIds" else "id"
        identity = next((str(value) for name, value in reference.attrib.items() if _ends(name, wanted)), "")
        relation = relations.get(identity)
        if relation is None or not archive.has(relation.target):
            continue
        try:
            root = archive.tree(relation.target)
        except ParseError:
            continue  # a chart that cannot be read takes nothing from the sheet's cells
        pieces.extend(filter(None, map(_paragraphs, root.iter("{*}rich", "{*}t") if wanted == "id" else [root])))
        pieces.extend(clean_text(value.text or "") for name in root.iter("{*}tx") for value in name.iter("{*}v"))
    return " ".join(dict.fromkeys(pieces))


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


def _is_line(element: etree._Element) -> bool:
    """Whether a shape is a line: drawn with an older tool, it is no connector in the file."""
    return _preset(element).startswith(_LINES) and not _paragraphs(element)


def _connector(element: etree._Element, frame: Frame) -> Connector:
    ends = {local_name(end): end.get("id") or "" for end in element.iter("{*}stCxn", "{*}endCxn")}
    heads = {
        local_name(head) for head in element.iter("{*}headEnd", "{*}tailEnd") if head.get("type") not in {None, "none"}
    }
    sign = "↔" if len(heads) == 2 else "→" if heads else "—"
    path: Line = ()
    placed, transform = _rectangle(element, "off", "ext"), _transform(element)
    if placed is not None and transform is not None and placed[2] + placed[3] > 0:
        points = connector_path(
            placed,
            _preset(element),
            flip_x=transform.get("flipH") in {"1", "true"},
            flip_y=transform.get("flipV") in {"1", "true"},
            rotation=transform.get("rot") or "0",
        )
        path = tuple(frame.place(*point) for point in points)
    return Connector(ends.get("stCxn", ""), ends.get("endCxn", ""), sign, heads == {"headEnd"}, path)
