"""Rows and cells of Word tables, and which rows are headers."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from lxml import etree

from rag_assets.parsing.archive import descend
from rag_assets.parsing.office.styles import attribute, integer, is_on, value_of

_FIRST_ROW = 0x20
_PLAIN_FILLS = {"", "auto", "FFFFFF", "ffffff"}
_MOST_HEADER_ROWS = 3
_NUMBER = re.compile(r"\d")


def header_row_count(table: etree._Element, rows: Sequence[etree._Element]) -> int:
    """Leading rows of a table that name its columns.

    They are the rows marked to repeat as headers; else those that are set off from the others by bold type or shading
    alone, all in one look; else one where the look of the table sets off the first row and it is full. Marks on nearly
    every row show nothing beyond the first. Where every cell of the first row spans columns or rows, so that names
    stand below names, the rows that it spans are header rows with it.
    """
    marked = _leading(rows, lambda row: is_on(row.find("{*}trPr/{*}tblHeader")))
    if marked == len(rows) or marked > _MOST_HEADER_ROWS:
        marked = 1
    if marked or len(rows) < 2:
        return max(marked, _spanned(rows)) if marked else 0
    cells = list(descend(rows[0], "tc"))
    is_full = len(cells) > 1 and all(map(_text, cells))
    first = _set_off(rows) or int(is_full and _sets_off_first(table))
    return max(first, _spanned(rows)) if first else 0


def spanned_rows(placed: Sequence[Sequence[tuple[str, int, int]]]) -> int:
    """Rows that the first row spans where all of its cells span rows or columns; 0 where not, or where they hold data.

    Names below names are words, and a body is left below them.

    Args:
        placed: For each row its own cells as (text, columns spanned, rows spanned).
    """
    depths = {rows for _, _, rows in placed[0] if rows > 1}
    across = [columns for _, columns, rows in placed[0] if rows == 1]
    if len(depths) != 1 or not across or 1 in across or (depth := max(depths)) >= len(placed):
        return 0
    below = [text for row in placed[1:depth] for text, _, _ in row]
    return 0 if any(not text or _NUMBER.search(text) for text in below) else depth


def undeleted_rows(table: etree._Element) -> list[etree._Element]:
    """Rows of a table but for those that were deleted under change tracking."""
    return [row for row in descend(table, "tr") if row.find("{*}trPr/{*}del") is None]


def columns_before(row: etree._Element) -> int:
    """Columns that a row leaves empty before its first cell."""
    return integer(row.find("{*}trPr/{*}gridBefore"), 0)


def cells_of(row: etree._Element) -> Iterator[tuple[int, int, etree._Element]]:
    """Cells of a row, each behind the column at which it starts and the columns that it spans."""
    column = columns_before(row)
    for cell in descend(row, "tc"):
        width = max(1, integer(cell.find("{*}tcPr/{*}gridSpan"), 1))
        yield column, width, cell
        column += width


def merge_of(cell: etree._Element) -> str:
    """`restart` where a cell spans rows, `continue` where it goes on from above, empty for others."""
    merge = cell.find("{*}tcPr/{*}vMerge")
    return "" if merge is None else value_of(merge) or "continue"


def _leading(rows: Sequence[etree._Element], holds: Callable[[etree._Element], bool]) -> int:
    return next((place for place, row in enumerate(rows) if not holds(row)), len(rows))


def _sets_off_first(table: etree._Element) -> bool:
    look = table.find("{*}tblPr/{*}tblLook")
    if attribute(look, "firstRow") in ("1", "true"):
        return True
    with suppress(ValueError):
        return int(value_of(look), 16) & _FIRST_ROW != 0
    return False


def _set_off(rows: Sequence[etree._Element]) -> int:
    """Leading rows in one look of their own, shaded or bold, that no row below them has; 0 where there are none."""
    looks = [(_fills(row), _is_bold(row)) for row in rows]
    if not any(looks[0]):
        return 0
    alike = next((place for place, look in enumerate(looks) if look != looks[0]), len(rows))
    if alike == len(rows):
        return 0
    return 1 if looks[0] in looks[alike:] else alike


def _fills(row: etree._Element) -> frozenset[str]:
    """Grounds of a row where each of at least two cells has one; cells that go on from above count with it."""
    fills = [attribute(cell.find("{*}tcPr/{*}shd"), "fill") for cell in descend(row, "tc")]
    return frozenset() if len(fills) < 2 or any(fill in _PLAIN_FILLS for fill in fills) else frozenset(fills)


def _is_bold(row: etree._Element) -> bool:
    """Whether all text of a row is bold, in at least two of its cells."""
    runs = [[run for run in cell.iter("{*}r") if _text(run)] for cell in descend(row, "tc")]
    filled = [cell for cell in runs if cell]
    return len(filled) > 1 and all(_is_bold_run(run) for cell in filled for run in cell)


def _is_bold_run(run: etree._Element) -> bool:
    return is_on(run.find("{*}rPr/{*}b"), default=value_of(run.find("{*}rPr/{*}rStyle")) == "Strong")


def _spanned(rows: Sequence[etree._Element]) -> int:
    """Rows that the first row spans, as `spanned_rows` has it."""
    placed = []
    for place, row in enumerate(rows):
        cells = [(start, width, cell) for start, width, cell in cells_of(row) if merge_of(cell) != "continue"]
        placed.append([(_text(cell), width, 1 if place else _depth(rows, start)) for start, width, cell in cells])
    return spanned_rows(placed)


def _depth(rows: Sequence[etree._Element], column: int) -> int:
    """Rows from the first on that a cell spans."""

    def goes_on(row: etree._Element) -> bool:
        return any(start == column and merge_of(cell) == "continue" for start, _, cell in cells_of(row))

    return 1 + _leading(rows[1:], goes_on)


def _text(element: etree._Element) -> str:
    return "".join(map(str, element.itertext("{*}t"))).strip()
