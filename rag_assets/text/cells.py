"""Cells of a sheet: references in A1 notation, as `B4` and `B4:F20`, whose rows and columns count from 1; and the areas
that they name, which count from 0.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

MAXIMUM_ROWS, MAXIMUM_COLUMNS = 1 << 20, 1 << 14
_CELL = re.compile(r"\$?([A-Za-z]{1,3})\$?([0-9]{1,7})$")
_REFERENCE = re.compile(r"([A-Z]+)([0-9]+)(?::([A-Z]+)([0-9]+))?")

CellBox = tuple[int, int, int, int]  # first row, first column, last row, last column


def column_letters(column: int) -> str:
    """Letters of a column: 1 is `A`, 27 is `AA`."""
    letters = ""
    while column:
        column, rest = divmod(column - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters


def column_number(letters: str) -> int:
    """Number of a column: `A` is 1, `AA` is 27."""
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - ord("A") + 1
    return number


def format_range(first_row: int, first_column: int, last_row: int, last_column: int) -> str:
    """A range in A1 notation; a single cell without colon."""
    first, last = f"{column_letters(first_column)}{first_row}", f"{column_letters(last_column)}{last_row}"
    return first if first == last else f"{first}:{last}"


def parse_range(text: str) -> CellBox:
    """First row, first column, last row, last column of a range.

    Raises:
        ValueError: The text is no range in A1 notation.
    """
    match = _REFERENCE.fullmatch(text)
    if match is None:
        raise ValueError(f"expected a cell range such as B4:F20, found {text!r}")
    first_column, first_row = column_number(match[1]), int(match[2])
    last_column, last_row = (column_number(match[3]), int(match[4])) if match[3] else (first_column, first_row)
    return first_row, first_column, last_row, last_column


def cover(ranges: Iterable[str]) -> str | None:
    """Smallest range that covers all given ones, or None for none."""
    boxes = [parse_range(text) for text in ranges]
    if not boxes:
        return None
    first_rows, first_columns, last_rows, last_columns = zip(*boxes, strict=True)
    return format_range(min(first_rows), min(first_columns), max(last_rows), max(last_columns))


class Area(NamedTuple):
    """A rectangle of cells, from 0, bounds included."""

    top: int
    left: int
    bottom: int
    right: int

    @classmethod
    def around(cls, areas: Iterable["Area"]) -> "Area":
        """The smallest area that covers all given ones, of which there is at least one."""
        tops, lefts, bottoms, rights = zip(*areas, strict=True)
        return cls(min(tops), min(lefts), max(bottoms), max(rights))

    @property
    def label(self) -> str:
        """The range as a workbook writes it: `B4:F20`, or `B4` for one cell."""
        return format_range(self.top + 1, self.left + 1, self.bottom + 1, self.right + 1)

    @property
    def cells(self) -> int:
        """How many cells it has."""
        return (self.bottom - self.top + 1) * (self.right - self.left + 1)

    def holds(self, row: int, column: int) -> bool:
        """Whether a cell lies in it."""
        return self.top <= row <= self.bottom and self.left <= column <= self.right

    def shares_columns(self, other: "Area") -> bool:
        """Whether another area reaches into its columns."""
        return self.left <= other.right and other.left <= self.right


def parse_area(reference: str) -> Area | None:
    """Read `B4` or `B4:F20`; None where it is neither or lies outside a sheet."""
    first, _, last = reference.strip().partition(":")
    start, end = parse_cell(first), parse_cell(last or first)
    if start is None or end is None:
        return None
    (top, bottom), (left, right) = sorted((start[0], end[0])), sorted((start[1], end[1]))
    return Area(top, left, bottom, right)


def parse_cell(reference: str) -> tuple[int, int] | None:
    """Row and column from 0 of a cell; None where the text names none or it lies outside a sheet."""
    match = _CELL.match(reference)
    if match is None:
        return None
    column, row = column_number(match.group(1).upper()), int(match.group(2))
    return (row - 1, column - 1) if 0 < row <= MAXIMUM_ROWS and column <= MAXIMUM_COLUMNS else None
