"""What workbooks hold, read from their XML with the standard library alone: the measure of `benchmarks/parsing.py`.

Independent of the parser on purpose: no module of the package is imported, and nothing is shared with it.
"""

import posixpath
import re
import xml.etree.ElementTree as ET
import zipfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
DRAW = "{http://schemas.openxmlformats.org/drawingml/2006/spreadsheetDrawing}"
ART = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
RELATION_ID = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
UNIQUE_CHARS = 8


@dataclass(frozen=True)
class Truth:
    """What a workbook holds; all texts without white space.

    Attributes:
        cells: Texts of the cells that are not empty: strings, and numbers without a number format.
        shapes: Texts of the shapes that have one.
        connectors: Texts of the two shapes of each connector whose both ends are joined to shapes with text.
        unique: Texts that stand in one cell and nowhere else.
    """

    cells: tuple[str, ...]
    shapes: tuple[str, ...]
    connectors: tuple[tuple[str, str], ...]
    unique: tuple[str, ...]


def squeeze(text: str) -> str:
    """A text without white space and without what Excel writes for carriage returns."""
    return re.sub(r"\s+", "", text.replace("_x000D_", ""))


def read_truth(path: Path) -> Truth:
    """Read a workbook."""
    with zipfile.ZipFile(path) as archive:
        strings, general = _strings(archive), _general_styles(archive)
        cells: list[str] = []
        shapes: list[str] = []
        connectors: list[tuple[str, str]] = []
        names = []
        for name, part in _sheets(archive):
            names.append(squeeze(name))
            cells.extend(filter(None, map(squeeze, _cells(archive, part, strings, general))))
            for target in _targets(archive, part, "drawing"):
                found = _drawing(archive, target)
                shapes.extend(found[0])
                connectors.extend(found[1])
    everything = "\0".join([*cells, *shapes, *names])
    once = [text for text, count in Counter(cells).items() if count == 1 and len(text) >= UNIQUE_CHARS]
    return Truth(tuple(cells), tuple(shapes), tuple(connectors), tuple(t for t in once if everything.count(t) == 1))


def _strings(archive: zipfile.ZipFile) -> list[str]:
    if "xl/sharedStrings.xml" not in archive.namelist():
        return []
    return [_rich(item) for item in ET.fromstring(archive.read("xl/sharedStrings.xml"))]


def _rich(item: ET.Element) -> str:
    return "".join(text.text or "" for text in item.findall(f"{MAIN}t") + item.findall(f"{MAIN}r/{MAIN}t"))


def _general_styles(archive: zipfile.ZipFile) -> set[str]:
    formats = ET.fromstring(archive.read("xl/styles.xml")).find(f"{MAIN}cellXfs")
    found = enumerate(formats if formats is not None else ())
    return {"", *(str(number) for number, element in found if element.get("numFmtId", "0") == "0")}


def _sheets(archive: zipfile.ZipFile) -> Iterator[tuple[str, str]]:
    relations = ET.fromstring(archive.read("xl/_rels/workbook.xml.rels"))
    targets = {relation.get("Id"): relation.get("Target") or "" for relation in relations}
    for sheet in ET.fromstring(archive.read("xl/workbook.xml")).iter(f"{MAIN}sheet"):
        yield sheet.get("name") or "", posixpath.normpath(posixpath.join("/xl", targets[sheet.get(RELATION_ID)]))[1:]


def _targets(archive: zipfile.ZipFile, part: str, kind: str) -> Iterator[str]:
    folder, name = posixpath.split(part)
    rels = f"{folder}/_rels/{name}.rels"
    if rels in archive.namelist():
        for relation in ET.fromstring(archive.read(rels)):
            if (relation.get("Type") or "").endswith(f"/{kind}"):
                yield posixpath.normpath(posixpath.join(f"/{folder}", relation.get("Target") or ""))[1:]


def _cells(archive: zipfile.ZipFile, part: str, strings: list[str], general: set[str]) -> Iterator[str]:
    for cell in ET.fromstring(archive.read(part)).iter(f"{MAIN}c"):
        value = cell.findtext(f"{MAIN}v") or ""
        match cell.get("t", "n"):
            case "s" if value:
                yield strings[int(value)]
            case "str":
                yield value
            case "inlineStr":
                inline = cell.find(f"{MAIN}is")
                yield "" if inline is None else _rich(inline)
            case "n" if value and cell.get("s", "") in general and re.fullmatch(r"-?\d{1,15}", value):
                yield value


def _drawing(archive: zipfile.ZipFile, part: str) -> tuple[list[str], list[tuple[str, str]]]:
    texts: dict[str, str] = {}
    shapes: list[str] = []
    ends: list[tuple[str, str]] = []
    waiting = [ET.fromstring(archive.read(part))]
    while waiting:
        element = waiting.pop()
        if element.tag == f"{DRAW}sp":
            properties = element.find(f"{DRAW}nvSpPr/{DRAW}cNvPr")
            text = squeeze("".join(run.text or "" for run in element.iter(f"{ART}t")))
            if text:
                shapes.append(text)
                texts[(properties.get("id") if properties is not None else None) or ""] = text
        elif element.tag == f"{DRAW}cxnSp":
            start, end = (next(element.iter(f"{ART}{name}"), None) for name in ("stCxn", "endCxn"))
            if start is not None and end is not None:
                ends.append((start.get("id") or "", end.get("id") or ""))
        else:
            waiting.extend(child for child in element if child.tag != FALLBACK)
    return shapes, [(texts[start], texts[end]) for start, end in ends if start in texts and end in texts]
