"""The cells of a worksheet: texts as shown, merged ranges, borders and fills, read from sheet XML.

What stays out: what the cells mean together (`excel_tables`), drawings and comments (`excel_drawings`).
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from lxml import etree

from rag_assets.contracts.causes import FailureCause
from rag_assets.contracts.errors import ParseError
from rag_assets.parsing.archive import Archive, local_name
from rag_assets.parsing.excel.formats import format_number, format_text
from rag_assets.parsing.excel.formulas import Formulas, read_link
from rag_assets.parsing.excel.links import LinkReader
from rag_assets.parsing.excel.margins import margin_texts
from rag_assets.parsing.excel.styles import PLAIN, Look, Styles, to_float
from rag_assets.text.cells import column_number, format_range

_REFERENCE = re.compile(r"\$?([A-Za-z]{1,3})\$?([0-9]{1,7})$")
_ESCAPE = re.compile(r"_x([0-9A-Fa-f]{4})_")
_ELEMENTS = ("row", "mergeCell", "col", "hyperlink", "dataValidation", "control", "headerFooter")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff\ud800-\udfff]")
_MAXIMUM_ROW = 1 << 20
_MAXIMUM_COLUMN = 1 << 14
_CELLS_WITH_LOOKS = 500_000
_UNCALCULATED = "（未計算）"
_ZEROS = {"0", "0.0"}
_MAXIMUM_CHOICES = 1_000
MAXIMUM_CHARS = 30_000_000
STRUCK = "~~"  # before and after a text with a line through it, as in Markdown


class Area(NamedTuple):
    """A rectangle of cells, from 0, bounds included."""

    top: int
    left: int
    bottom: int
    right: int

    @property
    def label(self) -> str:
        """The range as a workbook writes it: `B4:F20`, or `B4` for one cell."""
        return format_range(self.top + 1, self.left + 1, self.bottom + 1, self.right + 1)


@dataclass(frozen=True, slots=True)
class SheetCells:
    """What a sheet holds in its cells.

    Attributes:
        texts: Text of each cell that is not empty, by row, then column, both from 0 and ascending; of a merged
            range that of its first cell alone, as it is shown.
        looks: Looks of cells with text, border or fill, by row, then column; of a large sheet, of its first rows only.
        merges: Merged ranges, none of which overlap.
        column_widths: Widths of columns in characters, where stated.
        formulas: Formulas by row and column, as the workbook writes them, with the sign of equality.
        choices: Formulas of the lists that cells choose their value from, with the ranges of these cells.
        hidden_rows: Rows with text that the sheet hides.
        hidden_columns: Columns with text that the sheet hides.
        controls: Ids of the relationships to the properties of controls, by the number of the control.
        margins: Texts printed above and below each page of the sheet.
        problems: What had to be left out, and formulas without a result.
    """

    texts: dict[int, dict[int, str]]
    looks: dict[int, dict[int, Look]] = field(default_factory=dict)
    merges: tuple[Area, ...] = ()
    column_widths: dict[int, float] = field(default_factory=dict)
    formulas: dict[tuple[int, int], str] = field(default_factory=dict)
    choices: tuple[tuple[str, tuple[Area, ...]], ...] = ()
    hidden_rows: tuple[int, ...] = ()
    hidden_columns: tuple[int, ...] = ()
    controls: dict[str, str] = field(default_factory=dict)
    margins: tuple[str, ...] = ()
    problems: tuple[ParseError, ...] = ()


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
    column, row = column_number(match.group(1).upper()), int(match.group(2))
    return (row - 1, column - 1) if 0 < row <= _MAXIMUM_ROW and column <= _MAXIMUM_COLUMN else None


def clean_text(text: str) -> str:
    """A cell's text with line ends as newlines, escapes such as `_x000D_` resolved, and without control characters."""
    if "_x" in text:
        text = _ESCAPE.sub(lambda match: chr(int(match.group(1), 16)), text)
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not text.isprintable():
        text = _CONTROL.sub("", text)
    return text.strip()


def rich_text(element: etree._Element) -> str:
    """Text of a shared or inline string: its runs joined, phonetic guides left out, struck runs between `~~`."""
    pieces: list[str] = []
    struck = False
    for child in element:
        name = local_name(child)
        if name == "t":
            pieces.append(child.text or "")
        elif name == "r":
            text, is_struck = _run(child)
            if is_struck != struck and text:
                pieces.append(STRUCK)
                struck = is_struck
            pieces.append(text)
    return clean_text("".join([*pieces, STRUCK] if struck else pieces))


def _run(element: etree._Element) -> tuple[str, bool]:
    """Text of a run, and whether a line runs through it."""
    text, struck = "", False
    for child in element:
        name = local_name(child)
        if name == "t":
            text += child.text or ""
        elif name == "rPr":
            struck = any(local_name(each) == "strike" and each.get("val") not in {"0", "false"} for each in child)
    return text, struck


def strike(text: str) -> str:
    """A text with a line through it; one that says so of its runs stays as it is."""
    return text if STRUCK in text else f"{STRUCK}{text}{STRUCK}"


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


class _SheetReader:
    """Collects what a sheet's XML holds. Its methods run once for each cell: they are written for speed."""

    def __init__(self, strings: list[str], styles: Styles, maximum_cells: int) -> None:
        self.strings = strings
        self.base_1904 = styles.base_1904
        self.zeros_stand_in = styles.zeros_stand_in
        self.looks_by_number = {str(number): look for number, look in enumerate(styles.looks)}
        self.maximum_cells = maximum_cells
        self.columns: dict[str, int] = {}
        self.formulas = Formulas()
        self.hidden_rows: list[int] = []
        self.texts: dict[int, dict[int, str]] = {}
        self.looks: dict[int, dict[int, Look]] = {}
        self.cells = 0
        self.length_chars = 0
        self.row = -1
        self.uncalculated: list[Area] = []

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
            text = self._text(cell, look.code, column) if len(cell) else ""
            if text:
                text = strike(text) if look.struck else text
                texts[column] = text
                self.length_chars += len(text)
            if look.drawn or (text and look is not PLAIN):
                looks[column] = look
        self._keep(texts, looks)
        if texts and element.get("hidden") in {"1", "true"}:
            self.hidden_rows.append(self.row)

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

    def _text(self, cell: etree._Element, code: str, column: int) -> str:
        formula = ""
        for child in cell:
            tag = child.tag
            if tag[-2:] == "}v":  # type: ignore[index,unused-ignore]
                value, kind = child.text, cell.get("t", "n")
                if value and not (formula and value in _ZEROS and kind == "n" and self.zeros_stand_in):
                    text = self._shown(kind, value, code)
                    return _with_target(text, read_link(formula)[1]) if formula else text
                if kind == "str" or not formula:
                    return ""  # the result is an empty text
            elif tag[-2:] == "}f":  # type: ignore[index,unused-ignore]
                formula = self.formulas.add(child, self.row, column)
            elif tag[-3:] == "}is":  # type: ignore[index,unused-ignore]
                return format_text(rich_text(child), code)
        return self._unfinished(formula, column) if formula else ""

    def _unfinished(self, formula: str, column: int) -> str:
        """What stands for a formula of which no result is stored: a link as it would be shown, else the formula."""
        text, target = map(clean_text, read_link(formula))
        if text:
            return _with_target(text, target)
        self.uncalculated.append(Area(self.row, column, self.row, column))
        return clean_text(formula) + _UNCALCULATED

    def _shown(self, kind: str, value: str, code: str) -> str:
        match kind:
            case "s":
                known = value.isdecimal() and int(value) < len(self.strings)
                text = format_text(self.strings[int(value)], code) if known else ""
            case "str":
                text = format_text(clean_text(value), code)
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
    columns = _Columns()
    choices = _Choices()
    links = LinkReader(archive, part)
    controls: dict[str, str] = {}
    margins: tuple[str, ...] = ()
    for element in archive.elements(part, _ELEMENTS):
        match local_name(element):
            case "row":
                reader.read_row(element)
            case "mergeCell":
                area = parse_area(element.get("ref") or "")
                if area is not None and area[:2] != area[2:]:
                    merges.append(area)
            case "col":
                columns.read(element)
            case "hyperlink":
                links.add(element)
            case "headerFooter":
                margins = margin_texts(element)
            case "control":
                identity = next((str(value) for name, value in element.attrib.items() if str(name).endswith("}id")), "")
                controls[element.get("shapeId") or ""] = identity
            case _:
                choices.read(element)
    texts, merged = ascending(reader.texts), disjoint(merges)
    covered = take_covered(texts, merged)
    _append_links(texts, links.found)
    left_out = (
        (reader.formulas.left_out, "formulas"),
        (links.left_out, "links"),
        (choices.left_out, "lists of values"),
    )
    return SheetCells(
        texts,
        reader.looks,
        merged,
        columns.widths,
        {place: formula for place, formula in reader.formulas.found.items() if place not in covered},
        tuple((formula, tuple(areas)) for formula, areas in choices.found.items()),
        tuple(sorted(row for row in reader.hidden_rows if row in texts)),
        tuple(sorted({column for row in texts.values() for column in row if column in columns.hidden})),
        controls,
        margins,
        (
            *(ParseError(FailureCause.TOO_LARGE, f"{count} {what} left out") for count, what in left_out if count),
            *_without_result([cell for cell in reader.uncalculated if cell[:2] not in covered]),
        ),
    )


def _without_result(cells: list[Area]) -> list[ParseError]:
    if not cells:
        return []
    message = f"{len(cells)} formulas without a stored result, the first in {min(cells).label}"
    return [ParseError(FailureCause.NOT_CALCULATED, message)]


def ascending(texts: dict[int, dict[int, str]]) -> dict[int, dict[int, str]]:
    """The same texts with rows and columns in ascending order, whatever the order in which they were stored."""
    return {row: dict(sorted(texts[row].items())) for row in sorted(texts)}


def take_covered(texts: dict[int, dict[int, str]], merges: Sequence[Area]) -> set[tuple[int, int]]:
    """Take out the texts that merged ranges cover: a range shows its first cell, whatever is stored in the others.

    Args:
        texts: Texts by row, then column, both ascending; changed.
        merges: Merged ranges.

    Returns:
        Rows and columns of what was taken out.
    """
    rows = list(texts)
    covered: set[tuple[int, int]] = set()
    for area in merges:
        for row in rows[bisect_left(rows, area.top) : bisect_right(rows, area.bottom)]:
            found = texts[row]
            columns = range(area.left, area.right + 1)
            within = [column for column in (columns if len(columns) < len(found) else found) if column in columns]
            covered.update((row, column) for column in within if column in found and (row, column) != area[:2])
    for row, column in covered:
        del texts[row][column]
        if not texts[row]:
            del texts[row]
    return covered


class _Columns:
    """Widths of columns, and which are hidden."""

    def __init__(self) -> None:
        self.widths: dict[int, float] = {}
        self.hidden: set[int] = set()

    def read(self, element: etree._Element) -> None:
        first, last, width = (to_float(element.get(name)) for name in ("min", "max", "width"))
        if first is None or last is None:
            return
        if element.get("hidden") in {"1", "true"}:
            self.hidden.update(range(max(0, int(first) - 1), min(int(last), _MAXIMUM_COLUMN)))
        if width is not None:
            for column in range(max(0, int(first) - 1), min(int(last), int(first) + 400, _MAXIMUM_COLUMN)):
                self.widths[column] = width


class _Choices:
    """Lists that cells choose their value from: ranges of these cells by the formula of the list."""

    def __init__(self) -> None:
        self.found: dict[str, list[Area]] = {}
        self.left_out = 0

    def read(self, element: etree._Element) -> None:
        """Note the list of a data validation; newer ones carry formula and ranges as elements."""
        if element.get("type") != "list":
            return
        formulas = ("".join(map(str, child.itertext())) for child in element if local_name(child) == "formula1")
        formula = next(formulas, "").strip()
        newer = (child.text or "" for child in element if local_name(child) == "sqref")
        ranges = next(newer, element.get("sqref") or "")
        areas = [area for reference in ranges.split() if (area := parse_area(reference)) is not None]
        if not formula or not areas:
            return
        if formula not in self.found and len(self.found) >= _MAXIMUM_CHOICES:
            self.left_out += 1
        else:
            self.found.setdefault(formula, []).extend(areas)


def _append_links(texts: dict[int, dict[int, str]], links: list[tuple[str, str]]) -> None:
    """Write the target of each link behind the text of its first cell that has one, unless it stands there already."""
    rows_by_column: dict[int, list[int]] = {}
    for row, found in texts.items() if links else ():
        for column in found:
            rows_by_column.setdefault(column, []).append(row)
    columns = sorted(rows_by_column)
    for target, reference in links:
        area = parse_area(reference)
        if area is None:
            continue
        places = []
        for column in columns[bisect_left(columns, area.left) : bisect_right(columns, area.right)]:
            rows = rows_by_column[column]
            index = bisect_left(rows, area.top)
            if index < len(rows) and rows[index] <= area.bottom:
                places.append((rows[index], column))
        if places:
            row, column = min(places)
            texts[row][column] = _with_target(texts[row][column], target)


def _with_target(text: str, target: str) -> str:
    """A text with the target of its link behind, unless it stands there already or lies inside the workbook."""
    named = not target or target.startswith("#") or target.removeprefix("mailto:").rstrip("/") in text
    return text if named else f"{text} <{target}>"


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
