"""Charts and SmartArt graphics of text documents and presentations.

What stays out: how they look, charts of workbooks, whose values stand in cells, and drawn shapes (`drawings`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lxml import etree

from rag_assets.contracts.causes import BlockKind
from rag_assets.contracts.content import Block, Box, Row
from rag_assets.parsing.archive import Archive, local_name
from rag_assets.parsing.excel.formats import format_number
from rag_assets.parsing.flow import clean, table_block
from rag_assets.parsing.office.styles import attribute, integer

_DEEPEST = 20
_INDENT = "  "


@dataclass(frozen=True, slots=True)
class _Series:
    """A series of a chart; categories and values by the number of the point."""

    name: str
    categories: tuple[tuple[int, str], ...]
    values: Mapping[int, str]


def graphic_blocks(archive: Archive, part: str, section: tuple[str, ...], box: Box | None = None) -> list[Block]:
    """Blocks of a chart or of a SmartArt graphic.

    Args:
        archive: The file.
        part: Name of the part that holds it.
        section: Headings above it.
        box: Place on the page in points.

    Returns:
        Of a chart its titles as a diagram, then tables of its values with a column for each series, as they are
        stored beside the chart. Of a SmartArt graphic a diagram, a line for each point, lower ones set in.

    Raises:
        ParseError: MALFORMED where its part is damaged.
    """
    if not archive.has(part):
        return []
    root = archive.tree(part)
    match local_name(root):
        case "chartSpace" if root.find("{*}chart/{*}plotArea") is not None:
            lines, tables = _chart(root)
        case "dataModel":
            lines, tables = list(_points(root)), []
        case _:
            lines, tables = list(_texts(root)), []
    blocks = [Block(BlockKind.DIAGRAM, "\n".join(lines), section, box=box)] if lines else []
    return [*blocks, *(table_block(rows, 1, section, box=box) for rows in tables)]


def _chart(root: etree._Element) -> tuple[list[str], list[list[Row]]]:
    """Titles of a chart, and a table for all series of the same categories."""
    titles = (_title(title) for title in root.iter("{*}title"))
    labels = (_title(label) for label in root.iter("{*}dLbl"))
    by_categories: dict[tuple[tuple[int, str], ...], list[_Series]] = {}
    for element in root.iterfind("{*}chart/{*}plotArea/*/{*}ser"):
        series = _series(element)
        by_categories.setdefault(series.categories, []).append(series)
    axes = [axis for axis in root.iterfind("{*}chart/{*}plotArea/*") if local_name(axis) in {"catAx", "dateAx"}]
    name = next((_title(title) for axis in axes for title in axis.iterfind("{*}title")), "")
    tables = [list(_rows(name, categories, group)) for categories, group in by_categories.items()]
    lines = list(dict.fromkeys(filter(None, (*titles, *labels))))
    return lines, [rows for rows in tables if len(rows) > 1 or any(rows[0].cells)]


def _title(element: etree._Element) -> str:
    return _line("".join(map(str, paragraph.itertext("{*}t"))) for paragraph in element.iterfind("{*}tx//{*}p"))


def _series(element: etree._Element) -> _Series:
    name = _line(value.text or "" for value in element.iterfind("{*}tx//{*}v"))
    children = {local_name(child): child for child in element}
    values = dict(_cached_points(children.get("val", children.get("yVal"))))
    categories = dict(_cached_points(children.get("cat", children.get("xVal"))))
    for number, bubble in _cached_points(children.get("bubbleSize")):
        values[number] = f"{values.get(number, '')} ({bubble})"
    labels = {number: categories.get(number, str(number + 1)) for number in sorted({*values, *categories})}
    return _Series(name, tuple(labels.items()), values)


def _cached_points(data: etree._Element | None) -> Iterator[tuple[int, str]]:
    """Numbers and texts of the points that a chart keeps beside its reference to cells; levels joined, outer first."""
    if data is None:
        return
    levels = list(data.iter("{*}lvl"))
    if not levels:
        code = next((element.text or "" for element in data.iter("{*}formatCode")), "")
        for point in data.iter("{*}pt"):
            yield integer(point, 0, "idx"), _point_text(point, code)
        return
    inner = {integer(point, 0, "idx"): _point_text(point, "") for point in levels[0].iterfind("{*}pt")}
    outer = [
        {integer(point, 0, "idx"): _point_text(point, "") for point in level.iterfind("{*}pt")}
        for level in reversed(levels[1:])
    ]
    current = [""] * len(outer)
    for number in sorted(inner):
        current = [level.get(number, text) for level, text in zip(outer, current, strict=True)]
        yield number, " ".join(filter(None, (*current, inner[number])))


def _point_text(point: etree._Element, code: str) -> str:
    """Value of a point as the chart shows it: a number under its format."""
    text = _line([point.findtext("{*}v") or ""])
    code = point.get("formatCode") or code
    try:
        return format_number(float(text), code) if code else text
    except (ValueError, OverflowError):
        return text


def _rows(name: str, categories: tuple[tuple[int, str], ...], group: list[_Series]) -> Iterator[Row]:
    yield Row((name, *(series.name for series in group)))
    for number, category in categories:
        yield Row((category, *(series.values.get(number, "") for series in group)))


def _points(root: etree._Element) -> Iterator[str]:
    """Texts of a SmartArt graphic from its root downwards, in the order of the connections, lower ones set in."""
    points = {point.get("modelId") or "": point for point in root.iterfind("{*}ptLst/{*}pt")}
    below: dict[str, list[tuple[int, str]]] = {}
    for connection in root.iterfind("{*}cxnLst/{*}cxn"):
        if connection.get("type", "parOf") == "parOf":
            place = integer(connection, 0, "srcOrd")
            below.setdefault(connection.get("srcId") or "", []).append((place, connection.get("destId") or ""))
    roots = [name for name, point in points.items() if point.get("type") == "doc"]
    stack = [(name, -1) for name in reversed([*roots, *points])]
    seen_names: set[str] = set()
    while stack:
        name, depth = stack.pop()
        if name in seen_names or name not in points:
            continue
        seen_names.add(name)
        paragraphs = points[name].iterfind("{*}t/{*}p")
        if text := _line("".join(map(str, paragraph.itertext("{*}t"))) for paragraph in paragraphs):
            yield _INDENT * min(max(depth, 0), _DEEPEST) + text
        stack += [(child, depth + 1) for _, child in sorted(below.get(name, ()), reverse=True)]


def _texts(root: etree._Element) -> Iterator[str]:
    """Texts of another kind of chart, each once."""
    lines = (
        _line(str(child.text or "") for child in element.iter("{*}t", "{*}v", "{*}pt"))
        for element in root.iter("{*}pt", "{*}title", "{*}tx", "{*}cat")
    )
    yield from dict.fromkeys(filter(None, lines))


def diagram_references(element: etree._Element) -> Iterator[str]:
    """Ids of the relationships to the charts and SmartArt graphics that an element shows."""
    for reference in element.iter("{*}relIds", "{*}chart"):
        yield attribute(reference, "dm") or attribute(reference, "id")


def _line(parts: Iterator[str] | list[str]) -> str:
    return clean(" ".join(part for part in parts if part.strip())).replace("\n", " ")
