"""Formulas of a sheet as text; those that cells share are written out for each.

What stays out: calculating anything.
"""

import re

from lxml import etree

from rag_assets.parsing.cells import column_letters, column_number

_REFERENCE = re.compile(
    r"""(?P<quoted>"(?:[^"]|"")*"|'(?:[^']|'')*'|\[[^\]]*\])"""
    r"""|(?<![\w.$])(?P<fixed_column>\$?)(?P<column>[A-Za-z]{1,3})(?P<fixed_row>\$?)(?P<row>\d{1,7})(?![\w(.!])"""
)
_MAXIMUM_FORMULAS = 100_000
_MAXIMUM_CHARS = 30_000_000
_MAXIMUM_ROW, _MAXIMUM_COLUMN = 1 << 20, 1 << 14


class Formulas:
    """Collects the formulas of a sheet, as many as there is room for.

    Attributes:
        found: Formulas by row and column from 0, with the sign of equality.
        left_out: How many there was no room for.
    """

    def __init__(self) -> None:
        self.found: dict[tuple[int, int], str] = {}
        self.left_out = 0
        self._length_chars = 0
        self._shared: dict[str, tuple[str, int, int]] = {}

    def add(self, element: etree._Element, row: int, column: int) -> str:
        """Note the formula of a cell and return it; empty where the element states none or it is left out."""
        text, rows, columns = " ".join((element.text or "").split()), 0, 0
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
        if len(self.found) >= _MAXIMUM_FORMULAS or self._length_chars > _MAXIMUM_CHARS:
            self.left_out += 1
            return ""
        text = shift(text, rows, columns) if rows or columns else text
        formula = self.found[row, column] = f"={text}"
        return formula


def shift(formula: str, rows: int, columns: int) -> str:
    """A formula as it stands some rows below and some columns right of where it was written."""

    def move(match: re.Match[str]) -> str:
        if match["quoted"]:
            return match[0]
        column, row = column_number(match["column"].upper()), int(match["row"])
        column = column if match["fixed_column"] else column + columns
        row = row if match["fixed_row"] else row + rows
        if not (0 < row <= _MAXIMUM_ROW and 0 < column <= _MAXIMUM_COLUMN):
            return "#REF!"
        return f"{match['fixed_column']}{column_letters(column)}{match['fixed_row']}{row}"

    return _REFERENCE.sub(move, formula)
