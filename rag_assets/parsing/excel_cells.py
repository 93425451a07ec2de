"""The cells of a worksheet: texts as shown, merged ranges, borders and fills, read from sheet XML.

What stays out: what the cells mean together (`excel_tables`), drawings and comments (`excel_drawings`).
"""

import re
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from lxml import etree

from rag_assets.contracts.causes import FailureCause
from rag_assets.contracts.errors import ParseError
from rag_assets.parsing.excel_archive import Archive, local_name
from rag_assets.parsing.excel_formats import BUILT_IN_FORMATS, format_number

T = TypeVar("T")

_REFERENCE = re.compile(r"\$?([A-Za-z]{1,3})\$?([0-9]{1,7})$")
_ESCAPE = re.compile(r"_x([0-9A-Fa-f]{4})_")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff\ud800-\udfff]")
_MAXIMUM_ROW = 1 << 20
_MAXIMUM_COLUMN = 1 << 14
_CELLS_WITH_LOOKS = 500_000
_CELL_CHARS = 32_767  # no more fits into a cell
MAXIMUM_CHARS = 30_000_000


class Area(NamedTuple):
    """A rectangle of cells, from 0, bounds included."""

    top: int
    left: int
    bottom: int
    right: int

    @property
    def label(self) -> str:
        """The range as a workbook writes it: `B4:F20`, or `B4` for one cell."""
        first = f"{column_label(self.left)}{self.top + 1}"
        last = f"{column_label(self.right)}{self.bottom + 1}"
        return first if first == last else f"{first}:{last}"


@dataclass(frozen=True, slots=True)
class Look:
    """How a cell is drawn and how its number is shown.

    Attributes:
        left: Whether a line is drawn on that side; likewise `right`, `top` and `bottom`.
        fill: Colour behind the text, or None.
        bold: Whether the text is bold.
        size: Height of the text in points.
        code: Number format code.
    """

    left: bool = False
    right: bool = False
    top: bool = False
    bottom: bool = False
    fill: str | None = None
    bold: bool = False
    size: float = 11.0
    code: str = "General"

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
class SheetCells:
    """What a sheet holds in its cells.

    Attributes:
        texts: Text of each cell that is not empty, by row, then column, both from 0 and ascending.
        looks: Looks of cells with text, border or fill, by row, then column; of a large sheet, of its first rows only.
        merges: Merged ranges, none of which overlap.
        column_widths: Widths of columns in characters, where stated.
    """

    texts: dict[int, dict[int, str]]
    looks: dict[int, dict[int, Look]] = field(default_factory=dict)
    merges: tuple[Area, ...] = ()
    column_widths: dict[int, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Styles:
    """Looks by the style numbers that cells carry.

    Attributes:
        looks: Looks in the order of the style table.
        base_1904: Whether dates count from 1 January 1904.
    """

    looks: tuple[Look, ...]
    base_1904: bool = False


def column_label(column: int) -> str:
    """Letters of a column counted from 0."""
    letters = ""
    column += 1
    while column:
        column, rest = divmod(column - 1, 26)
        letters = chr(65 + rest) + letters
    return letters


def parse_area(reference: str) -> Area | None:
    """Read `B4` or `B4:F20`; None where it is neither or lies outside a sheet."""
    first, _, last = reference.strip().partition(":")
    start, end = _parse_cell(first), _parse_cell(last or first)
    if start is None or end is None:
        return None
    (top, bottom), (left, right) = sorted((start[0], end[0])), sorted((start[1], end[1]))
    return Area(top, left, bottom, right)


def _parse_cell(reference: str) -> tuple[int, int] | None:
    match = _REFERENCE.match(reference)
    if match is None:
        return None
    column = 0
    for letter in match.group(1).upper():
        column = column * 26 + ord(letter) - 64
    row = int(match.group(2))
    return (row - 1, column - 1) if 0 < row <= _MAXIMUM_ROW and column <= _MAXIMUM_COLUMN else None


def clean_text(text: str) -> str:
    """A cell's text with line ends as newlines, escapes such as `_x000D_` resolved, and without control characters."""
    if "_x" in text:
        text = _ESCAPE.sub(lambda match: chr(int(match.group(1), 16)), text)
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not text.isprintable():
        text = _CONTROL.sub("", text)
    return text.strip()[:_CELL_CHARS]


def rich_text(element: etree._Element) -> str:
    """Text of a shared or inline string: its runs joined, phonetic guides left out."""
    pieces = []
    for child in element:
        name = local_name(child)
        if name == "t":
            pieces.append(child.text or "")
        elif name == "r":
            pieces.extend(run.text or "" for run in child if local_name(run) == "t")
    return clean_text("".join(pieces))


def read_shared_strings(archive: Archive, part: str, maximum: int) -> list[str]:
    """The shared strings of a workbook in order.

    Raises:
        ParseError: TOO_LARGE where there are more than `maximum`.
    """
    strings: list[str] = []
    for element in archive.elements(part, ("si",)):
        if len(strings) >= maximum:
            raise ParseError(FailureCause.TOO_LARGE, f"workbook: more than {maximum} shared strings")
        strings.append(rich_text(element))
    return strings


def read_styles(archive: Archive, part: str, *, base_1904: bool) -> Styles:
    """The style table of a workbook."""
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
        bold, size = _at(fonts, element.get("fontId"), (False, 11.0))
        left, right, top, bottom = _at(borders, element.get("borderId"), (False, False, False, False))
        fill = _at(fills, element.get("fillId"), None)
        number = element.get("numFmtId") or "0"
        code = codes.get(int(number), "General") if number.isdecimal() else "General"
        looks.append(Look(left, right, top, bottom, fill, bold, size, code))
    return Styles(tuple(looks), base_1904)


def _at(values: list[T], number: str | None, default: T) -> T:
    return values[int(number)] if number and number.isdecimal() and int(number) < len(values) else default


def _font(element: etree._Element) -> tuple[bool, float]:
    bold, size = False, 11.0
    for child in element:
        match local_name(child):
            case "b":
                bold = child.get("val") not in {"0", "false"}
            case "sz":
                size = to_float(child.get("val")) or 11.0
    return bold, size


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


def to_float(text: str | None) -> float | None:
    """A finite number, or None."""
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if abs(number) < 1e308 else None


class _SheetReader:
    """Collects what a sheet's XML holds. Its methods run once for each cell: they are written for speed."""

    def __init__(self, strings: list[str], styles: Styles, maximum_cells: int) -> None:
        self.strings = strings
        self.base_1904 = styles.base_1904
        self.looks_by_number = {str(number): look for number, look in enumerate(styles.looks)}
        self.maximum_cells = maximum_cells
        self.columns: dict[str, int] = {}
        self.texts: dict[int, dict[int, str]] = {}
        self.looks: dict[int, dict[int, Look]] = {}
        self.cells = 0
        self.length_chars = 0
        self.row = -1

    def read_row(self, element: etree._Element) -> None:
        number = element.get("r") or ""
        self.row = int(number) - 1 if number.isdecimal() and 0 < int(number) <= _MAXIMUM_ROW else self.row + 1
        self.cells += len(element)
        if self.cells > self.maximum_cells:
            raise ParseError(FailureCause.TOO_LARGE, f"more than {self.maximum_cells} cells")
        column = -1
        looks: dict[int, Look] = {}
        texts: dict[int, str] = {}
        for cell in element:
            column = self._column(cell.get("r", ""), column + 1)
            look = self.looks_by_number.get(cell.get("s", "0"), PLAIN)
            text = self._text(cell, look.code) if len(cell) else ""
            if text:
                texts[column] = text
                self.length_chars += len(text)
            if look.drawn or (text and look is not PLAIN):
                looks[column] = look
        self._keep(texts, looks)

    def _keep(self, texts: dict[int, str], looks: dict[int, Look]) -> None:
        if self.length_chars > MAXIMUM_CHARS:
            raise ParseError(FailureCause.TOO_LARGE, f"more than {MAXIMUM_CHARS} characters of text")
        if texts:
            self.texts.setdefault(self.row, {}).update(texts)
        if looks and self.cells <= _CELLS_WITH_LOOKS:
            self.looks.setdefault(self.row, {}).update(looks)

    def _column(self, reference: str, following: int) -> int:
        letters = reference.rstrip("0123456789")
        column = self.columns.get(letters)
        if column is None:
            position = _parse_cell(f"{letters}1")
            if position is None:
                return following
            column = self.columns[letters] = position[1]
        return column

    def _text(self, cell: etree._Element, code: str) -> str:
        for child in cell:
            tag = child.tag
            if tag[-2:] == "}v":  # type: ignore[index,unused-ignore]
                value = child.text
                return self._shown(cell.get("t", "n"), value, code) if value else ""
            if tag[-3:] == "}is":  # type: ignore[index,unused-ignore]
                return rich_text(child)
        return ""

    def _shown(self, kind: str, value: str, code: str) -> str:
        match kind:
            case "s":
                text = self.strings[int(value)] if value.isdecimal() and int(value) < len(self.strings) else ""
            case "b":
                text = "TRUE" if value.strip() in {"1", "true"} else "FALSE"
            case "n" if (number := to_float(value)) is not None:
                text = format_number(number, code, base_1904=self.base_1904)
            case "d":
                text = clean_text(value.replace("T00:00:00", "").replace("T", " "))
            case _:
                text = clean_text(value)
        return text


def read_sheet(archive: Archive, part: str, strings: list[str], styles: Styles, maximum_cells: int) -> SheetCells:
    """The cells of a worksheet part.

    Args:
        archive: The workbook.
        part: Name of the sheet's part.
        strings: Shared strings of the workbook.
        styles: Styles of the workbook.
        maximum_cells: Cells that the part may state.

    Raises:
        ParseError: MALFORMED where the part cannot be read; TOO_LARGE where it is over the limit.
    """
    reader = _SheetReader(strings, styles, maximum_cells)
    merges: list[Area] = []
    widths: dict[int, float] = {}
    for element in archive.elements(part, ("row", "mergeCell", "col")):
        match local_name(element):
            case "row":
                reader.read_row(element)
            case "mergeCell":
                area = parse_area(element.get("ref") or "")
                if area is not None and area[:2] != area[2:]:
                    merges.append(area)
            case _:
                _read_width(element, widths)
    return SheetCells(ascending(reader.texts), reader.looks, disjoint(merges), widths)


def ascending(texts: dict[int, dict[int, str]]) -> dict[int, dict[int, str]]:
    """The same texts with rows and columns in ascending order, whatever the order in which they were stored."""
    return {row: dict(sorted(texts[row].items())) for row in sorted(texts)}


def _read_width(element: etree._Element, widths: dict[int, float]) -> None:
    first, last, width = (to_float(element.get(name)) for name in ("min", "max", "width"))
    if first is not None and last is not None and width is not None:
        for column in range(max(0, int(first) - 1), min(int(last), int(first) + 400, _MAXIMUM_COLUMN)):
            widths[column] = width


def disjoint(areas: list[Area]) -> tuple[Area, ...]:
    """Areas in reading order without those that overlap an earlier one."""
    kept: list[Area] = []
    active: list[Area] = []
    for area in sorted(set(areas)):
        active = [other for other in active if other.bottom >= area.top]
        if not any(other.left <= area.right and area.left <= other.right for other in active):
            kept.append(area)
            active.append(area)
    return tuple(kept)
