"""Cells of PowerPoint tables, and which rows are headers. Their texts stand in `slides`."""

from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile

from lxml import etree

from rag_assets.parsing.archive import local_name
from rag_assets.parsing.names import is_attribute, is_generic, names_value
from rag_assets.parsing.office.styles import attribute, integer
from rag_assets.parsing.office.tables import spanned_rows

_PlacedCell = tuple[str, int, int]

_FILLS = {"solidFill", "gradFill", "pattFill", "blipFill"}
_PLAIN_FILLS = {"FFFFFF", "ffffff", "bg1", "white"}
_MOST_SPANNED = 1000


def cells_of_row(row: etree._Element) -> list[etree._Element]:
    """Cells of a row but for those that another one is merged over."""
    return [cell for cell in row.iterfind("{*}tc") if not (_is_on(cell, "hMerge") or _is_on(cell, "vMerge"))]


def columns_and_rows(cell: etree._Element) -> tuple[int, int]:
    """Columns and rows that a cell spans."""
    return _span(cell, "gridSpan"), _span(cell, "rowSpan")


def slide_header_rows(table: etree._Element, placed: Sequence[Sequence[_PlacedCell]]) -> int:
    """Leading rows of a table that name its columns.

    They are the rows set off from all others by a fill of their own or by bold type; else the first where the look of
    the table sets it off, unless labels and values begin there. Where every cell of the first row spans columns or
    rows, so that names stand below names, the rows that it spans are header rows with it.

    Args:
        table: The table.
        placed: For each of its rows the cells as (text, columns spanned, rows spanned).
    """
    rows = list(table.iterfind("{*}tr"))
    if len(rows) < 2:
        return 0
    set_off = _set_off(rows, _fill) or _set_off(rows, _boldness)
    is_marked = _is_on(table.find("{*}tblPr"), "firstRow") and not _begins_with_value(placed)
    return max(set_off, int(is_marked), spanned_rows(placed))


def _set_off(rows: Sequence[etree._Element], look: Callable[[etree._Element], str]) -> int:
    """Leading rows whose cells with text all have one look, where no other row of several cells has it; else 0.

    They are fewer than the other rows. Several rows of one look above others that have looks as well are a group.
    """
    least = min(2, len(list(rows[0])))
    looks = [{look(cell) for cell in cells} if len(cells := _filled(row)) >= least else {""} for row in rows]
    first = looks[0]
    if len(first) != 1 or first == {""}:
        return 0
    count = len(list(takewhile(lambda row_look: row_look == first, looks)))
    rest = looks[count:]
    is_banded = count > 1 and {""} not in rest
    return 0 if count >= len(rest) or first in rest or is_banded else count


def _filled(row: etree._Element) -> list[etree._Element]:
    return [cell for cell in cells_of_row(row) if any(True for _ in _runs(cell))]


def _fill(cell: etree._Element) -> str:
    """The ground of a cell as its XML has it; empty for none and for white."""
    properties = cell.find("{*}tcPr")
    for fill in () if properties is None else properties:
        if local_name(fill) in _FILLS and not any(attribute(part, "val") in _PLAIN_FILLS for part in fill):
            return etree.tostring(fill, encoding="unicode", with_tail=False)
    return ""


def _boldness(cell: etree._Element) -> str:
    return "bold" if all(_is_on(run.find("{*}rPr"), "b") for run in _runs(cell)) else ""


def _runs(cell: etree._Element) -> Iterator[etree._Element]:
    """Runs of a cell that show text."""
    return (run for run in cell.iter("{*}r", "{*}fld") if "".join(map(str, run.itertext("{*}t"))).strip())


def _begins_with_value(placed_cells: Sequence[Sequence[_PlacedCell]]) -> bool:
    """Whether a table of two columns names fields in its first one, and its first row does not name columns."""
    labels = [row[0][0] for row in placed_cells if len(row) == 2]
    if len(labels) < len(placed_cells) or not is_attribute(labels[0]) or is_generic(labels[0]):
        return False
    second = placed_cells[0][1][0]
    if not second or is_attribute(second) or names_value(second):
        return False
    return 2 * sum(map(is_attribute, labels[1:])) >= len(labels) - 1


def _span(cell: etree._Element, name: str) -> int:
    return max(1, min(integer(cell, 1, name), _MOST_SPANNED))


def _is_on(element: etree._Element | None, name: str) -> bool:
    return attribute(element, name) in ("1", "true")
