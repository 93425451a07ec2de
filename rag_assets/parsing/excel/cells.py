"""The cells of a worksheet, read from sheet XML: texts as shown, merged ranges, borders and fills, links, lists; and
its formulas as text, shared ones written out for each cell. No formula is calculated.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

from lxml import etree

from rag_assets.contracts.causes import FailureCause
from rag_assets.contracts.content import Block
from rag_assets.contracts.errors import ParseError
from rag_assets.parsing.archive import local_name
from rag_assets.parsing.excel.formats import format_number, format_text
from rag_assets.parsing.excel.workbook import PLAIN, Look, Workbook, clean_text, rich_text, strike, to_float
from rag_assets.parsing.office.styles import attribute
from rag_assets.text.cells import (
    MAXIMUM_COLUMNS,
    MAXIMUM_ROWS,
    Area,
    column_letters,
    column_number,
    parse_area,
    parse_sheet_area,
)
from rag_assets.text.plain import one_line

_ELEMENTS = ("row", "mergeCell", "col", "hyperlink", "dataValidation", "control", "headerFooter")
_TRUE = {"1", "true"}
_CELLS_WITH_LOOKS = 500_000
_COLUMNS_WITH_WIDTHS = 400  # of one statement, which often holds for all columns to the last
_UNCALCULATED = "（未計算）"
_ZEROS = {"0", "0.0"}
_MAXIMUM_CHOICES = 1_000
_LINK_CHARS = 2_083  # no more fits into a link
_MAXIMUM_LINKS = 65_530  # no more fit on a sheet
MAXIMUM_CHARS = 30_000_000

# Formulas.
_FORMULA_REFERENCE = re.compile(
    r"""(?P<quoted>"(?:[^"]|"")*"|'(?:[^']|'')*'|\[[^\]]*\])"""
    r"""|(?<![\w.$])(?P<fixed_column>\$?)(?P<column>[A-Za-z]{1,3})(?P<fixed_row>\$?)(?P<row>\d{1,7})(?![\w(.!])"""
)
_LINK = re.compile(r"=\s*HYPERLINK\s*\((.*)\)\s*", re.IGNORECASE | re.DOTALL)
_PIECE = re.compile(r""""(?:[^"]|"")*"|'(?:[^']|'')*'|[(){},]|[^"'(){},]+|["']""")
_LITERAL = re.compile(r'"((?:[^"]|"")*)"')
_LINK_FORMULA_CHARS = 8_192  # no more fit into a formula
_MAXIMUM_FORMULAS = 100_000
_FORMULA_CHARS = 30_000_000

Texts = dict[int, dict[int, str]]
"""Texts of cells by row, then column, from 0."""


@dataclass(frozen=True, slots=True)
class SheetCells:
    """What a sheet holds in its cells."""

    # text of each cell that is not empty, rows and columns ascending; of a merged range that of its first cell alone,
    # as it is shown
    texts: Texts
    # looks of cells with text, border or fill, by row, then column; of a large sheet, of its first rows only
    looks: dict[int, dict[int, Look]] = field(default_factory=dict)
    merges: tuple[Area, ...] = ()  # merged ranges, none of which overlap
    column_widths: dict[int, float] = field(default_factory=dict)  # widths of columns in characters, where stated
    # formulas by row and column, as the workbook writes them, with the sign of equality
    formulas: dict[tuple[int, int], str] = field(default_factory=dict)
    # ranges of the cells that choose their value from a list, by the formula of the list
    choices: dict[str, list[Area]] = field(default_factory=dict)
    hidden_rows: tuple[int, ...] = ()  # rows with text that the sheet hides, ascending
    hidden_columns: tuple[int, ...] = ()  # columns with text that the sheet hides, ascending
    # ids of the relationships to the properties of controls, by the number of the control
    controls: dict[str, str] = field(default_factory=dict)
    # names and codes of what is printed above and below each page, as in (`oddHeader`, `&C社外秘`)
    margins: tuple[tuple[str, str], ...] = ()
    problems: tuple[ParseError, ...] = ()  # what had to be left out, and formulas without a result

    def look(self, row: int, column: int) -> Look:
        """Look of a cell."""
        return self.looks.get(row, {}).get(column, PLAIN)


def block_area(block: Block) -> Area:
    """The cells that a block stands in; the first cell for a block without a place."""
    return parse_area(block.cell_range) or Area(0, 0, 0, 0)


class _SheetReader:
    """Collects what a sheet's XML holds. Methods that run once for each cell are written for speed."""

    def __init__(self, workbook: Workbook, part: str, maximum_cells: int) -> None:
        self.workbook = workbook
        self.looks_by_number = {str(number): look for number, look in enumerate(workbook.looks)}
        self.targets = workbook.archive.external_targets(part)
        self.maximum_cells = maximum_cells
        self.column_numbers: dict[str, int] = {}
        self.row = -1
        self.cells = 0
        self.length_chars = 0
        self.texts: Texts = {}
        self.looks: dict[int, dict[int, Look]] = {}
        self.formulas = _Formulas()
        self.uncalculated: list[Area] = []
        self.hidden_rows: list[int] = []
        self.hidden_columns: set[int] = set()
        self.widths: dict[int, float] = {}
        self.links: list[tuple[str, str]] = []
        self.links_left_out = 0
        self.choices: dict[str, list[Area]] = {}
        self.choices_left_out = 0

    def read_row(self, element: etree._Element) -> None:
        number = element.get("r") or ""
        self.row = int(number) - 1 if number.isdecimal() and 0 < int(number) <= MAXIMUM_ROWS else self.row + 1
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
        if self.length_chars > MAXIMUM_CHARS:
            raise ParseError(FailureCause.TOO_LARGE, f"more than {MAXIMUM_CHARS} characters of text")
        if texts:
            self.texts.setdefault(self.row, {}).update(texts)
            if element.get("hidden") in _TRUE:
                self.hidden_rows.append(self.row)
        if looks and self.cells <= _CELLS_WITH_LOOKS:
            self.looks.setdefault(self.row, {}).update(looks)

    def _column(self, reference: str, next_column: int) -> int:
        letters = reference.rstrip("0123456789")
        column = self.column_numbers.get(letters)
        if column is None:
            area = parse_sheet_area(f"{letters}1")
            if area is None:
                return next_column
            column = self.column_numbers[letters] = area.left
        return column

    def _text(self, cell: etree._Element, code: str, column: int) -> str:
        formula = ""
        for child in cell:
            tag = child.tag
            if tag[-2:] == "}v":  # type: ignore[index,unused-ignore]
                value, kind = child.text, cell.get("t", "n")
                if value and not (formula and value in _ZEROS and kind == "n" and self.workbook.zeros_stand_in):
                    text = self._cell_text(kind, value, code)
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

    def _cell_text(self, kind: str, value: str, code: str) -> str:
        match kind:
            case "s":
                strings = self.workbook.strings
                is_index = value.isdecimal() and int(value) < len(strings)
                text = format_text(strings[int(value)], code) if is_index else ""
            case "str":
                text = format_text(clean_text(value), code)
            case "b":
                text = "TRUE" if value.strip() in {"1", "true"} else "FALSE"
            case "n" if (number := to_float(value)) is not None:
                text = format_number(number, code, base_1904=self.workbook.base_1904)
            case "d":
                text = clean_text(value.replace("T00:00:00", "").replace("T", " "))
            case _:
                text = clean_text(value)
        return text

    def read_columns(self, element: etree._Element) -> None:
        first, last, width = (to_float(element.get(name)) for name in ("min", "max", "width"))
        if first is None or last is None:
            return
        start, end = max(0, int(first) - 1), min(int(last), MAXIMUM_COLUMNS)
        if element.get("hidden") in _TRUE:
            self.hidden_columns.update(range(start, end))
        if width is not None:
            self.widths.update(dict.fromkeys(range(start, min(end, int(first) + _COLUMNS_WITH_WIDTHS)), width))

    def read_choices(self, element: etree._Element) -> None:
        """Note the list of a data validation; newer ones carry formula and ranges as elements."""
        if element.get("type") != "list":
            return
        parts = {local_name(child): "".join(map(str, child.itertext())) for child in reversed(element)}
        formula = parts.get("formula1", "").strip()
        ranges = parts.get("sqref", element.get("sqref") or "")
        areas = [area for reference in ranges.split() if (area := parse_sheet_area(reference)) is not None]
        if not formula or not areas:
            return
        if formula not in self.choices and len(self.choices) >= _MAXIMUM_CHOICES:
            self.choices_left_out += 1
        else:
            self.choices.setdefault(formula, []).extend(areas)

    def read_link(self, element: etree._Element) -> None:
        """Note a link that leads out of the workbook; those inside say nothing that the text does not."""
        target = self.targets.get(attribute(element, "id"), "")
        target = "".join(sign for sign in target if sign.isprintable()).strip()
        if not target or target.startswith("#"):
            return
        if len(target) > _LINK_CHARS or len(self.links) >= _MAXIMUM_LINKS:
            self.links_left_out += 1
        else:
            self.links.append((target, element.get("ref") or ""))

    def problems(self, covered_places: set[tuple[int, int]]) -> tuple[ParseError, ...]:
        """What was left out, and formulas without a result, those in covered cells apart."""
        omissions = (
            (self.formulas.left_out, "formulas"),
            (self.links_left_out, "links"),
            (self.choices_left_out, "lists of values"),
        )
        problems = [
            ParseError(FailureCause.TOO_LARGE, f"{count} {noun} left out") for count, noun in omissions if count
        ]
        cells = [cell for cell in self.uncalculated if cell[:2] not in covered_places]
        if cells:
            message = f"{len(cells)} formulas without a stored result, the first in {min(cells).label}"
            problems.append(ParseError(FailureCause.NOT_CALCULATED, message))
        return tuple(problems)


def read_sheet(workbook: Workbook, part: str, maximum_cells: int) -> SheetCells:
    """The cells of a worksheet part.

    Raises:
        ParseError: MALFORMED where the part cannot be read; TOO_LARGE where it is over the limit.
    """
    reader = _SheetReader(workbook, part, maximum_cells)
    merges: list[Area] = []
    controls: dict[str, str] = {}
    margins: tuple[tuple[str, str], ...] = ()
    for element in workbook.archive.elements(part, _ELEMENTS):
        match local_name(element):
            case "row":
                reader.read_row(element)
            case "mergeCell":
                area = parse_sheet_area(element.get("ref"))
                if area is not None and area.cells > 1:
                    merges.append(area)
            case "col":
                reader.read_columns(element)
            case "hyperlink":
                reader.read_link(element)
            case "headerFooter":
                margins = tuple((local_name(child), child.text or "") for child in element)
            case "control":
                controls[element.get("shapeId") or ""] = attribute(element, "id")
            case _:
                reader.read_choices(element)
    texts, merged_areas = ascending(reader.texts), disjoint(merges)
    covered_places = take_covered(texts, merged_areas)
    _append_links(texts, reader.links)
    return SheetCells(
        texts,
        reader.looks,
        merged_areas,
        reader.widths,
        {place: formula for place, formula in reader.formulas.by_cell.items() if place not in covered_places},
        reader.choices,
        tuple(sorted(row for row in reader.hidden_rows if row in texts)),
        tuple(sorted({column for row in texts.values() for column in row if column in reader.hidden_columns})),
        controls,
        margins,
        reader.problems(covered_places),
    )


def ascending(texts: Texts) -> Texts:
    """The same texts with rows and columns in ascending order, whatever the order in which they were stored."""
    return {row: dict(sorted(texts[row].items())) for row in sorted(texts)}


def take_covered(texts: Texts, merges: Sequence[Area]) -> set[tuple[int, int]]:
    """Take out the texts that merged ranges cover: a range shows its first cell, whatever is stored in the others.

    Args:
        texts: Texts by row, then column, both ascending; changed.
        merges: Merged ranges.

    Returns:
        Rows and columns of what was taken out.
    """
    rows = list(texts)
    covered_places: set[tuple[int, int]] = set()
    for area in merges:
        for row in rows[bisect_left(rows, area.top) : bisect_right(rows, area.bottom)]:
            row_texts = texts[row]
            columns = range(area.left, area.right + 1)
            near = columns if len(columns) < len(row_texts) else row_texts
            within = (column for column in near if column in columns and column in row_texts)
            covered_places.update((row, column) for column in within if (row, column) != area[:2])
    for row, column in covered_places:
        del texts[row][column]
        if not texts[row]:
            del texts[row]
    return covered_places


def _append_links(texts: Texts, links: list[tuple[str, str]]) -> None:
    """Write the target of each link behind the text of its first cell that has one, unless it stands there already."""
    rows_by_column: dict[int, list[int]] = {}
    for row, row_texts in texts.items() if links else ():
        for column in row_texts:
            rows_by_column.setdefault(column, []).append(row)
    columns = sorted(rows_by_column)
    for target, reference in links:
        area = parse_sheet_area(reference)
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
    is_named = not target or target.startswith("#") or target.removeprefix("mailto:").rstrip("/") in text
    return text if is_named else f"{text} <{target}>"


def disjoint(areas: list[Area]) -> tuple[Area, ...]:
    """Areas in reading order without those that overlap an earlier one."""
    separate_areas: list[Area] = []
    active: list[Area] = []
    for area in sorted(set(areas)):
        active = [neighbour for neighbour in active if neighbour.bottom >= area.top]
        if not any(neighbour.shares_columns(area) for neighbour in active):
            separate_areas.append(area)
            active.append(area)
    return tuple(separate_areas)


class _Formulas:
    """Collects the formulas of a sheet, as many as there is room for.

    Attributes:
        by_cell: Formulas by row and column from 0, with the sign of equality.
        left_out: How many there was no room for.
    """

    def __init__(self) -> None:
        self.by_cell: dict[tuple[int, int], str] = {}
        self.left_out = 0
        self._length_chars = 0
        self._shared: dict[str, tuple[str, int, int]] = {}

    def add(self, element: etree._Element, row: int, column: int) -> str:
        """Note the formula of a cell and return it; empty where the element states none or it is left out."""
        text, rows, columns = one_line(element.text or ""), 0, 0
        if element.get("t") == "shared":
            number = element.get("si") or ""
            if text:
                self._shared[number] = (text, row, column)
            elif number in self._shared:
                text, first_row, first_column = self._shared[number]
                rows, columns = row - first_row, column - first_column
        if not text:
            return ""
        self._length_chars += len(text)
        if len(self.by_cell) >= _MAXIMUM_FORMULAS or self._length_chars > _FORMULA_CHARS:
            self.left_out += 1
            return ""
        formula = self.by_cell[row, column] = f"={shift(text, rows, columns) if rows or columns else text}"
        return formula


def read_link(formula: str) -> tuple[str, str]:
    """Text and target of a formula that is nothing but a link, as in `=HYPERLINK("https://example.jp", "手順書")`.

    Returns:
        Text, which is the target where the formula names no other, and target; each empty where it is to be calculated
        or the formula is no link.
    """
    match = _LINK.fullmatch(formula) if len(formula) <= _LINK_FORMULA_CHARS else None
    arguments = _split(match[1]) if match else []
    if not 1 <= len(arguments) <= 2:
        return "", ""
    target, text = _literal(arguments[0]), _literal(arguments[-1])
    return text, target


def _split(text: str) -> list[str]:
    """Arguments of a function; none where its closing bracket stands before the end of the text."""
    arguments, depth = [""], 0
    for piece in _PIECE.findall(text):
        depth += (piece in "({") - (piece in ")}")
        if depth < 0:
            return []
        if piece == "," and not depth:
            arguments.append("")
        else:
            arguments[-1] += piece
    return arguments


def _literal(argument: str) -> str:
    match = _LITERAL.fullmatch(argument.strip())
    return match[1].replace('""', '"').strip() if match else ""


def shift(formula: str, rows: int, columns: int) -> str:
    """A formula as it stands some rows below and some columns right of where it was written."""

    def move(match: re.Match[str]) -> str:
        if match["quoted"]:
            return match[0]
        column, row = column_number(match["column"].upper()), int(match["row"])
        column = column if match["fixed_column"] else column + columns
        row = row if match["fixed_row"] else row + rows
        if not (0 < row <= MAXIMUM_ROWS and 0 < column <= MAXIMUM_COLUMNS):
            return "#REF!"
        return f"{match['fixed_column']}{column_letters(column)}{match['fixed_row']}{row}"

    return _FORMULA_REFERENCE.sub(move, formula)
