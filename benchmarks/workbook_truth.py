"""What workbooks hold, read from their XML with the standard library alone: the measure of `benchmarks/parsing.py`.

Independent of the parser on purpose: no module of the package is imported, and nothing is shared with it. Numbers are
compared under the plainest formats alone; how many cells that leaves out is counted.
"""

import posixpath
import re
import xml.etree.ElementTree as ET
import zipfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
DRAW = "{http://schemas.openxmlformats.org/drawingml/2006/spreadsheetDrawing}"
ART = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
RELATION_ID = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
UNIQUE_CHARS = 8
GENERAL_CHARS = 10  # of a number that is shown as it is stored
PLAIN_FORMATS = {"1": "0", "2": "0.00", "3": "#,##0", "4": "#,##0.00", "9": "0%", "10": "0.00%"}  # by id


@dataclass(frozen=True)
class Truth:
    """What a workbook holds; all texts without white space.

    Attributes:
        cells: Texts of the cells that are not empty: strings, truth values, errors, and numbers without a number format
            or with one of `PLAIN_FORMATS`.
        left_out: How many cells are not among them: dates, numbers under other formats, and long fractions.
        shapes: Texts of the shapes that have one.
        connectors: Texts of the two shapes of each connector whose both ends are joined to shapes with text.
        unique: Texts that stand in one cell and nowhere else.
    """

    cells: tuple[str, ...]
    left_out: int
    shapes: tuple[str, ...]
    connectors: tuple[tuple[str, str], ...]
    unique: tuple[str, ...]


def squeeze(text: str) -> str:
    """A text without white space and without what Excel writes for carriage returns."""
    return re.sub(r"\s+", "", text.replace("_x000D_", ""))


def read_truth(path: Path) -> Truth:
    """Read a workbook."""
    with zipfile.ZipFile(path) as archive:
        strings, formats = _strings(archive), _formats(archive)
        cells: list[str] = []
        left_out = 0
        shapes: list[str] = []
        connectors: list[tuple[str, str]] = []
        names = []
        for name, part in _sheets(archive):
            names.append(squeeze(name))
            found = list(_cells(archive, part, strings, formats))
            left_out += found.count(None)
            cells.extend(text for value in found if value is not None and (text := squeeze(value)))
            for target in _targets(archive, part, "drawing"):
                drawn = _drawing(archive, target)
                shapes.extend(drawn[0])
                connectors.extend(drawn[1])
    everything = "\0".join([*cells, *shapes, *names])
    once = [text for text, count in Counter(cells).items() if count == 1 and len(text) >= UNIQUE_CHARS]
    unique = tuple(text for text in once if everything.count(text) == 1)
    return Truth(tuple(cells), left_out, tuple(shapes), tuple(connectors), unique)


def _strings(archive: zipfile.ZipFile) -> list[str]:
    if "xl/sharedStrings.xml" not in archive.namelist():
        return []
    return [_rich(item) for item in ET.fromstring(archive.read("xl/sharedStrings.xml"))]


def _rich(item: ET.Element) -> str:
    return "".join(text.text or "" for text in item.findall(f"{MAIN}t") + item.findall(f"{MAIN}r/{MAIN}t"))


def _formats(archive: zipfile.ZipFile) -> dict[str, str]:
    """Plain number formats by the number of the style; other styles are not in it."""
    root = ET.fromstring(archive.read("xl/styles.xml"))
    formats = dict(PLAIN_FORMATS)
    for element in root.iter(f"{MAIN}numFmt"):
        code = element.get("formatCode") or ""
        formats[element.get("numFmtId") or ""] = code
    styles = root.find(f"{MAIN}cellXfs")
    by_style = {"": "General"}
    for number, element in enumerate(styles if styles is not None else ()):
        identity = element.get("numFmtId", "0")
        code = "General" if identity == "0" else formats.get(identity, "")
        if code == "General" or code in PLAIN_FORMATS.values() or re.fullmatch("0+", code):
            by_style[str(number)] = code
    return by_style


def _number(value: str, code: str | None) -> str | None:
    """A number as a workbook shows it, or None where that takes more than is done here."""
    if code is None:
        return None
    if code == "General":
        plain = re.fullmatch(r"-?\d{1,15}", value) or (
            len(value) <= GENERAL_CHARS and re.fullmatch(r"-?\d+\.\d+", value)
        )
        return value if plain else None
    number = Decimal(value).scaleb(2 if code.endswith("%") else 0)
    places = code.rstrip("%").partition(".")[2]
    rounded = number.quantize(Decimal(1).scaleb(-len(places)), rounding=ROUND_HALF_UP)
    text = f"{rounded:{',' if ',' in code else ''}f}{'%' if code.endswith('%') else ''}"
    return text.zfill(len(code)) if set(code) == {"0"} else text


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


def _cells(archive: zipfile.ZipFile, part: str, strings: list[str], formats: dict[str, str]) -> Iterator[str | None]:
    """Texts of cells; None for a value whose text is not known here."""
    for cell in ET.fromstring(archive.read(part)).iter(f"{MAIN}c"):
        value = cell.findtext(f"{MAIN}v") or ""
        match cell.get("t", "n"):
            case "s" if value:
                yield strings[int(value)]
            case "str" | "e":
                yield value
            case "b" if value:
                yield "TRUE" if value == "1" else "FALSE"
            case "inlineStr":
                inline = cell.find(f"{MAIN}is")
                yield "" if inline is None else _rich(inline)
            case "n" if value:
                yield _number(value, formats.get(cell.get("s", "")))
            case _ if value:
                yield None


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
