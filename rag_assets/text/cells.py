"""Cells: what stands between them in a line of text; of a sheet, references in A1 notation, as `B4` and `B4:F20`, and
the areas that they name, from 0.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

MAXIMUM_ROWS, MAXIMUM_COLUMNS = 1 << 20, 1 << 14
CELL_SIGN = " | "  # between the cells of a row in the text of a page
_CELL = r"\$?([A-Za-z]{1,4})\$?([0-9]{1,9})"
_REFERENCE = re.compile(f"{_CELL}(?::{_CELL})?")


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

    def meets(self, other: "Area") -> bool:
        """Whether both have a cell in common."""
        return self.top <= other.bottom and other.top <= self.bottom and self.shares_columns(other)

    def shares_columns(self, other: "Area") -> bool:
        """Whether another area reaches into its columns."""
        return self.left <= other.right and other.left <= self.right


def cover(references: Iterable[str]) -> str | None:
    """Smallest range that covers all given ones, or None for none."""
    areas = [area for text in references if (area := parse_area(text))]
    return Area.around(areas).label if areas else None


def parse_area(reference: str | None) -> Area | None:
    """Read `B4` or `B4:F20`; None for anything else."""
    match = _REFERENCE.fullmatch((reference or "").strip())
    if match is None:
        return None
    columns = sorted(column_number(letters.upper()) - 1 for letters in (match[1], match[3] or match[1]))
    rows = sorted(int(number) - 1 for number in (match[2], match[4] or match[2]))
    return Area(rows[0], columns[0], rows[1], columns[1]) if rows[0] >= 0 else None


def parse_sheet_area(reference: str | None) -> Area | None:
    """Read `B4` or `B4:F20`; None where it is neither or lies outside a sheet."""
    area = parse_area(reference)
    return area if area is not None and area.bottom < MAXIMUM_ROWS and area.right < MAXIMUM_COLUMNS else None
