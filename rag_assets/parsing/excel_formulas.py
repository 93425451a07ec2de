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
_MAXIMUM_CHARS = 8_192  # no more fits into a cell
_MAXIMUM_ROW, _MAXIMUM_COLUMN = 1 << 20, 1 << 14


class Formulas:
    """Collects the formulas of a sheet, the first 100,000.

    Attributes:
        found: Formulas by row and column from 0, with the sign of equality.
    """

    def __init__(self) -> None:
        self.found: dict[tuple[int, int], str] = {}
        self._shared: dict[str, tuple[str, int, int]] = {}

    def add(self, element: etree._Element, row: int, column: int) -> str:
        """Note the formula of a cell and return it; empty where the element states none."""
        text = " ".join((element.text or "").split())[:_MAXIMUM_CHARS]
        if element.get("t") == "shared":
            number = element.get("si") or ""
            if text:
                self._shared[number] = (text, row, column)
            elif number in self._shared:
                master, first_row, first_column = self._shared[number]
                text = shift(master, row - first_row, column - first_column)
        if not text or len(self.found) >= _MAXIMUM_FORMULAS:
            return ""
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
