"""The style table of a workbook: how cells are drawn and how their numbers are shown.

What stays out: number formats themselves (`excel_formats`), and which cell has which style (`excel_cells`).
"""

from dataclasses import dataclass
from typing import TypeVar

from lxml import etree

from rag_assets.parsing.archive import Archive, local_name
from rag_assets.parsing.excel.formats import BUILT_IN_FORMATS

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Look:
    """How a cell is drawn and how its number is shown.

    Attributes:
        left: Whether a line is drawn on that side; likewise `right`, `top` and `bottom`.
        fill: Colour behind the text, or None.
        bold: Whether the text is bold.
        size: Height of the text in points.
        code: Number format code.
        struck: Whether a line runs through the text.
    """

    left: bool = False
    right: bool = False
    top: bool = False
    bottom: bool = False
    fill: str | None = None
    bold: bool = False
    size: float = 11.0
    code: str = "General"
    struck: bool = False

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
class Styles:
    """Looks by the style numbers that cells carry.

    Attributes:
        looks: Looks in the order of the style table.
        base_1904: Whether dates count from 1 January 1904.
        zeros_stand_in: Whether the workbook is to be calculated when it is opened: some programs store 0 until then.
    """

    looks: tuple[Look, ...]
    base_1904: bool = False
    zeros_stand_in: bool = False


def to_float(text: str | None) -> float | None:
    """A finite number, or None."""
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if abs(number) < 1e308 else None


def read_looks(archive: Archive, part: str) -> tuple[Look, ...]:
    """The looks in the style table of a workbook."""
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
        bold, size, struck = _at(fonts, element.get("fontId"), (False, 11.0, False))
        left, right, top, bottom = _at(borders, element.get("borderId"), (False, False, False, False))
        fill = _at(fills, element.get("fillId"), None)
        number = element.get("numFmtId") or "0"
        code = codes.get(int(number), "General") if number.isdecimal() else "General"
        looks.append(Look(left, right, top, bottom, fill, bold, size, code, struck))
    return tuple(looks)


def _at(values: list[T], number: str | None, default: T) -> T:
    return values[int(number)] if number and number.isdecimal() and int(number) < len(values) else default


def _font(element: etree._Element) -> tuple[bool, float, bool]:
    bold, size, struck = False, 11.0, False
    for child in element:
        match local_name(child):
            case "b":
                bold = child.get("val") not in {"0", "false"}
            case "strike":
                struck = child.get("val") not in {"0", "false"}
            case "sz":
                size = to_float(child.get("val")) or 11.0
    return bold, size, struck


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
