"""Cell references in A1 notation: `B4`, `B4:F20`. Rows and columns count from 1."""

import re
from collections.abc import Iterable

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
