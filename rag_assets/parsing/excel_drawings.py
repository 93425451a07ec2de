"""Drawings and comments of a sheet: text of shapes in reading order, and which shapes connectors join.

What stays out: pictures, whose text would need optical character recognition; the look of shapes.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lxml import etree

from rag_assets.contracts.causes import BlockKind
from rag_assets.contracts.errors import ParseError
from rag_assets.parsing.content import Block
from rag_assets.parsing.excel_archive import Archive, Relation, local_name
from rag_assets.parsing.excel_cells import Area, clean_text, parse_area, rich_text

_ANCHORS = {"twoCellAnchor", "oneCellAnchor", "absoluteAnchor"}
_CLUSTER_ROWS = 3
_NODE_CHARS = 60
_MAXIMUM_DEPTH = 32
_LAST_ROW, _LAST_COLUMN = (1 << 20) - 1, (1 << 14) - 1


@dataclass(frozen=True, slots=True)
class Shape:
    """A shape with text.

    Attributes:
        area: Cells it lies on; of a shape within a group, scaled from the group's.
        identity: Its number in the drawing.
        text: Its text in one line.
    """

    area: Area
    identity: str
    text: str


@dataclass(frozen=True, slots=True)
class Connector:
    """A line between shapes.

    Attributes:
        start: Number of the shape where it starts.
        end: Number of the shape where it ends.
        sign: How the line is written between the texts of the two.
        reverse: Whether only its start has an arrow head.
    """

    start: str
    end: str
    sign: str
    reverse: bool


def drawing_blocks(archive: Archive, sheet_part: str) -> list[Block]:
    """Blocks of the drawings and comments of a sheet, without sections.

    Raises:
        ParseError: MALFORMED where a drawing or comments part cannot be read.
    """
    blocks: list[Block] = []
    relations = [relation for relation in archive.relations(sheet_part).values() if archive.has(relation.target)]
    for relation in relations:
        if relation.kind == "drawing":
            blocks.extend(_diagrams(archive, relation.target))
    return [*blocks, *_notes(archive, relations)]


def _diagrams(archive: Archive, part: str) -> list[Block]:
    reader = _DrawingReader(archive, archive.relations(part))
    for anchor in _flat(archive.tree(part)):
        if local_name(anchor) in _ANCHORS:
            area = _anchor_area(anchor)
            for element in _flat(anchor):
                reader.collect(element, area)
    return [_diagram(members, reader.connectors) for members in _clusters(reader.shapes, reader.connectors)]


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

    def collect(self, element: etree._Element, area: Area, depth: int = 0) -> None:
        match local_name(element):
            case "sp":
                self.shapes.append(Shape(area, _identity(element), _paragraphs(element)))
            case "cxnSp":
                connector = _connector(element)
                if connector is not None:
                    self.connectors.append(connector)
            case "graphicFrame":
                text = _frame_text(element, self.archive, self.relations)
                self.shapes.append(Shape(area, _identity(element), text))
            case "grpSp" if depth < _MAXIMUM_DEPTH:
                frame = _rectangle(element, "chOff", "chExt")
                for child in _flat(element):
                    self.collect(child, _scaled(child, frame, area), depth + 1)


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


def _rectangle(element: etree._Element, offset: str, extent: str) -> tuple[int, int, int, int] | None:
    """Left, top, width and height of a shape or of a group's inner space, in its own units."""
    for properties in element:
        if local_name(properties) not in {"spPr", "grpSpPr", "xfrm"}:
            continue
        found = {local_name(child): child for child in properties.iter() if isinstance(child.tag, str)}
        if offset not in found or extent not in found:
            return None
        values = [found[offset].get("x"), found[offset].get("y"), found[extent].get("cx"), found[extent].get("cy")]
        numbers = [int(value) for value in values if value and value.lstrip("-").isdecimal()]
        return (numbers[0], numbers[1], numbers[2], numbers[3]) if len(numbers) == 4 else None
    return None


def _scaled(child: etree._Element, frame: tuple[int, int, int, int] | None, area: Area) -> Area:
    """Cells of a group's member: its share of the group's space, taken of the group's cells."""
    box = _rectangle(child, "off", "ext")
    if box is None or frame is None or frame[2] <= 0 or frame[3] <= 0:
        return area
    rows, columns = area.bottom - area.top + 1, area.right - area.left + 1

    def place(offset: int, size: int, cells: int) -> int:
        return min(max(int(offset / size * cells), 0), cells - 1)

    left, top = box[0] - frame[0], box[1] - frame[1]
    return Area(
        area.top + place(top, frame[3], rows),
        area.left + place(left, frame[2], columns),
        area.top + place(max(top + box[3] - 1, top), frame[3], rows),
        area.left + place(max(left + box[2] - 1, left), frame[2], columns),
    )


def _identity(element: etree._Element) -> str:
    return next((child.get("id") or "" for child in element.iter("{*}cNvPr")), "")


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


def _connector(element: etree._Element) -> Connector | None:
    ends = {local_name(end): end.get("id") or "" for end in element.iter("{*}stCxn", "{*}endCxn")}
    if len(ends) < 2:
        return None
    heads = {
        local_name(head) for head in element.iter("{*}headEnd", "{*}tailEnd") if head.get("type") not in {None, "none"}
    }
    sign = "↔" if len(heads) == 2 else "→" if heads else "—"
    return Connector(ends["stCxn"], ends["endCxn"], sign, heads == {"headEnd"})


def _clusters(shapes: list[Shape], connectors: list[Connector]) -> list[list[Shape]]:
    """Group shapes that lie near each other from top to bottom, or that connectors join; only those with text."""
    groups: list[list[Shape]] = []
    bottom = -_CLUSTER_ROWS
    for shape in sorted(shapes, key=lambda shape: shape.area):
        if not groups or shape.area.top > bottom + _CLUSTER_ROWS:
            groups.append([])
        groups[-1].append(shape)
        bottom = max(bottom, shape.area.bottom)
    home = {shape.identity: index for index, group in enumerate(groups) for shape in group}
    target = list(range(len(groups)))
    for connector in connectors:
        ends = sorted(target[home[end]] for end in (connector.start, connector.end) if end in home)
        if len(ends) == 2 and ends[0] != ends[1]:
            target = [ends[0] if value == ends[1] else value for value in target]
    merged: dict[int, list[Shape]] = defaultdict(list)
    for index, group in enumerate(groups):
        merged[target[index]].extend(shape for shape in group if shape.text)
    return [group for group in merged.values() if group]


def _diagram(shapes: list[Shape], connectors: list[Connector]) -> Block:
    nodes = {shape.identity: shape.text for shape in shapes}
    lines = [shape.text for shape in shapes]
    for connector in connectors:
        if connector.start not in nodes or connector.end not in nodes:
            continue
        first, last = _short(nodes[connector.start]), _short(nodes[connector.end])
        if connector.reverse:
            first, last = last, first
        lines.append(f"{first} {connector.sign} {last}")
    return Block(BlockKind.DIAGRAM, "\n".join(lines), cell_range=_around(shape.area for shape in shapes).label)


def _short(text: str) -> str:
    return text if len(text) <= _NODE_CHARS else f"{text[:_NODE_CHARS]}…"


def _around(areas: Iterable[Area]) -> Area:
    tops, lefts, bottoms, rights = zip(*areas, strict=True)
    return Area(min(tops), min(lefts), max(bottoms), max(rights))


def _notes(archive: Archive, relations: list[Relation]) -> list[Block]:
    """Comments by cell; threaded ones take the place of the notice that stands for them in older comments."""
    texts: dict[str, str] = {}
    for relation in relations:
        if relation.kind == "comments":
            for comment in archive.tree(relation.target).iter("{*}comment"):
                body = next((child for child in comment if local_name(child) == "text"), None)
                texts[comment.get("ref") or ""] = rich_text(body) if body is not None else ""
    for relation in relations:
        if relation.kind == "threadedComment":
            texts.update(_threads(archive, relation.target))
    found = [(parse_area(reference), text) for reference, text in texts.items()]
    return [Block(BlockKind.NOTE, text, cell_range=area.label) for area, text in found if text and area is not None]


def _threads(archive: Archive, part: str) -> dict[str, str]:
    threads: dict[str, list[str]] = defaultdict(list)
    for comment in archive.tree(part).iter("{*}threadedComment"):
        text = next((child.text or "" for child in comment if local_name(child) == "text"), "")
        threads[comment.get("ref") or ""].append(clean_text(text))
    return {reference: "\n".join(filter(None, texts)) for reference, texts in threads.items()}
