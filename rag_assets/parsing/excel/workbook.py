"""What the sheets of an Office Open XML workbook share: their list, strings, styles, names and people."""

import re
from dataclasses import dataclass
from typing import TypeVar

from lxml import etree

from rag_assets.contracts.causes import FailureCause
from rag_assets.contracts.errors import ParseError
from rag_assets.parsing.archive import Archive, local_name
from rag_assets.parsing.excel.formats import BUILT_IN_FORMATS
from rag_assets.parsing.flow import composed, sensible_title
from rag_assets.parsing.office.styles import attribute, is_on

_ESCAPE = re.compile(r"_x([0-9A-Fa-f]{4})_")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff\ud800-\udfff]")
_FONT_POINTS = 11.0
STRUCK = "~~"  # before and after a text with a line through it, as in Markdown

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Look:
    """How a cell is drawn and how its number is shown."""

    left: bool = False  # whether a line is drawn on that side; likewise `right`, `top` and `bottom`
    right: bool = False
    top: bool = False
    bottom: bool = False
    fill: str | None = None  # colour behind the text, or None
    bold: bool = False
    size: float = _FONT_POINTS  # height of the text in points
    code: str = "General"  # number format code
    struck: bool = False  # whether a line runs through the text

    @property
    def drawn(self) -> bool:
        """Whether the cell can be seen without text: by a line or a colour."""
        return self.left or self.right or self.top or self.bottom or self.fill is not None

    @property
    def bordered(self) -> bool:
        """Whether any side has a line."""
        return self.left or self.right or self.top or self.bottom


PLAIN = Look()


@dataclass(frozen=True, slots=True)
class SheetEntry:
    """A sheet as the workbook lists it."""

    name: str
    hidden: bool
    part: str | None  # name of its part, or None where the workbook has none for it
    kind: str  # `worksheet`, `chartsheet`, `dialogsheet` or another kind of part


@dataclass(frozen=True, slots=True)
class Workbook:
    """What the sheets of a workbook share."""

    archive: Archive
    sheets: tuple[SheetEntry, ...]  # its sheets in order
    strings: list[str]
    looks: tuple[Look, ...]  # looks of cells by their style numbers
    title: str | None  # title stated in its properties, or None
    names: dict[str, str]  # what the defined names of the workbook stand for
    people: dict[str, str]  # names of those who take part in threads of comments, by their ids
    base_1904: bool  # whether dates count from 1 January 1904
    zeros_stand_in: bool  # whether the workbook is to be calculated when it is opened: some programs store 0 until then


def open_workbook(archive: Archive, maximum_strings: int) -> Workbook:
    """Read what a workbook's sheets share.

    Raises:
        ParseError: UNSUPPORTED_FORMAT where the archive holds no workbook; MALFORMED where it cannot be read;
            TOO_LARGE where it has too many shared strings.
    """
    part = archive.main_part("xl/workbook.xml")
    if not archive.has(part):
        raise ParseError(FailureCause.UNSUPPORTED_FORMAT, "archive without a workbook")
    root = archive.tree(part)
    if local_name(root) != "workbook":
        raise ParseError(FailureCause.UNSUPPORTED_FORMAT, f"archive holds {part}, no workbook")
    relations = archive.relations(part)
    parts = {relation.kind: relation.target for relation in relations.values() if archive.has(relation.target)}
    sheets = []
    for sheet in root.iterfind("{*}sheets/{*}sheet"):
        relation = relations.get(attribute(sheet, "id"))
        hidden = sheet.get("state", "visible") != "visible"
        target, kind = (relation.target, relation.kind) if relation else (None, "")
        sheets.append(SheetEntry(sheet.get("name", ""), hidden, target, kind))
    return Workbook(
        archive,
        tuple(sheets),
        _read_strings(archive, parts["sharedStrings"], maximum_strings) if "sharedStrings" in parts else [],
        _read_looks(archive, parts["styles"]) if "styles" in parts else (),
        sensible_title(archive.stated_title()),
        {element.get("name") or "": element.text or "" for element in root.iter("{*}definedName")},
        _people(archive, parts["person"]) if "person" in parts else {},
        base_1904=any(element.get("date1904") in {"1", "true"} for element in root.iterfind("{*}workbookPr")),
        zeros_stand_in=any(element.get("fullCalcOnLoad") in {"1", "true"} for element in root.iterfind("{*}calcPr")),
    )


def _people(archive: Archive, part: str) -> dict[str, str]:
    try:
        root = archive.tree(part)
    except ParseError:
        return {}  # without their authors comments are whole
    return {person.get("id") or "": person.get("displayName") or "" for person in root.iter("{*}person")}


def clean_text(text: str) -> str:
    """A cell's text as `composed`, with line ends as newlines, escapes such as `_x000D_` resolved, and without control
    characters.
    """
    if "_x" in text:
        text = _ESCAPE.sub(lambda match: chr(int(match.group(1), 16)), text)
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not text.isprintable():
        text = _CONTROL.sub("", text)
    return composed(text.strip())


def rich_text(element: etree._Element) -> str:
    """Text of a shared or inline string: its runs joined, phonetic guides left out, struck runs between `~~`."""
    pieces: list[str] = []
    is_struck = False
    for child in element:
        name = local_name(child)
        if name == "t":
            pieces.append(child.text or "")
        elif name == "r":
            text = "".join(piece.text or "" for piece in child.iterfind("{*}t"))
            if text and is_on(child.find("{*}rPr/{*}strike")) != is_struck:
                pieces.append(STRUCK)
                is_struck = not is_struck
            pieces.append(text)
    return clean_text("".join([*pieces, STRUCK] if is_struck else pieces))


def strike(text: str) -> str:
    """A text with a line through it; one that says so of its runs stays as it is."""
    return text if STRUCK in text else f"{STRUCK}{text}{STRUCK}"


def _read_strings(archive: Archive, part: str, maximum: int) -> list[str]:
    strings: list[str] = []
    for element in archive.elements(part, ("si",)):
        if len(strings) >= maximum:
            raise ParseError(FailureCause.TOO_LARGE, f"workbook: more than {maximum} shared strings")
        strings.append(rich_text(element))
    return strings


def to_float(text: str | None) -> float | None:
    """A finite number, or None."""
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if abs(number) < 1e308 else None


def _read_looks(archive: Archive, part: str) -> tuple[Look, ...]:
    groups = {local_name(group): list(group) for group in archive.tree(part)}
    codes = dict(BUILT_IN_FORMATS)
    for element in groups.get("numFmts", []):
        number = element.get("numFmtId") or ""
        if number.isdecimal():
            codes[int(number)] = element.get("formatCode") or "General"
    fonts = [_font(element) for element in groups.get("fonts", [])]
    fills = [_fill(element) for element in groups.get("fills", [])]
    borders = [_border(element) for element in groups.get("borders", [])]
    looks = []
    for element in groups.get("cellXfs", []):
        bold, size, struck = _at(fonts, element.get("fontId"), (False, _FONT_POINTS, False))
        borders_drawn = _at(borders, element.get("borderId"), (False, False, False, False))
        fill = _at(fills, element.get("fillId"), None)
        number = element.get("numFmtId") or "0"
        code = codes.get(int(number), "General") if number.isdecimal() else "General"
        looks.append(Look(*borders_drawn, fill, bold, size, code, struck))
    return tuple(looks)


def _at(values: list[T], number: str | None, default: T) -> T:
    return values[int(number)] if number and number.isdecimal() and int(number) < len(values) else default


def _font(element: etree._Element) -> tuple[bool, float, bool]:
    size = element.find("{*}sz")
    points = to_float(size.get("val")) if size is not None else None
    return is_on(element.find("{*}b")), points or _FONT_POINTS, is_on(element.find("{*}strike"))


def _fill(element: etree._Element) -> str | None:
    for pattern in element:
        if local_name(pattern) == "gradientFill":
            return "gradient"
        if pattern.get("patternType") in {None, "none"}:
            continue
        for colour in pattern:
            if local_name(colour) == "fgColor":
                key = "|".join(f"{name!s}={value!s}" for name, value in sorted(colour.items()))
                return None if key in {"rgb=FFFFFFFF", "theme=0", "indexed=9"} else key
        return pattern.get("patternType")
    return None


def _border(element: etree._Element) -> tuple[bool, bool, bool, bool]:
    sides = {local_name(side) for side in element if side.get("style") not in {None, "none"}}
    return bool(sides & {"left", "start"}), bool(sides & {"right", "end"}), "top" in sides, "bottom" in sides
