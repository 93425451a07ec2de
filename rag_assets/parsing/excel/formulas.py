"""Formulas of a sheet as text, shared ones written out for each cell, and links among them. None is calculated."""

import re

from lxml import etree

from rag_assets.text.cells import column_letters, column_number
from rag_assets.text.plain import one_line

_REFERENCE = re.compile(
    r"""(?P<quoted>"(?:[^"]|"")*"|'(?:[^']|'')*'|\[[^\]]*\])"""
    r"""|(?<![\w.$])(?P<fixed_column>\$?)(?P<column>[A-Za-z]{1,3})(?P<fixed_row>\$?)(?P<row>\d{1,7})(?![\w(.!])"""
)
_LINK = re.compile(r"=\s*HYPERLINK\s*\((.*)\)\s*", re.IGNORECASE | re.DOTALL)
_PIECE = re.compile(r""""(?:[^"]|"")*"|'(?:[^']|'')*'|[(){},]|[^"'(){},]+|["']""")
_LITERAL = re.compile(r'"((?:[^"]|"")*)"')
_LINK_CHARS = 8_192  # no more fit into a formula
_MAXIMUM_FORMULAS = 100_000
_MAXIMUM_CHARS = 30_000_000
MAXIMUM_ROWS, MAXIMUM_COLUMNS = 1 << 20, 1 << 14


class Formulas:
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
        if len(self.by_cell) >= _MAXIMUM_FORMULAS or self._length_chars > _MAXIMUM_CHARS:
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
    match = _LINK.fullmatch(formula) if len(formula) <= _LINK_CHARS else None
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

    return _REFERENCE.sub(move, formula)
