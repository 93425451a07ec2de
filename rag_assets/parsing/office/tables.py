"""Header rows of Word tables.

What stays out: the text of cells and the grid (`word`).
"""

import re
from collections.abc import Callable, Iterator, Sequence

from lxml import etree

from rag_assets.parsing.office.styles import attribute, integer
from rag_assets.parsing.office.tree import descend

_OFF = ("0", "false", "off")
_FIRST_ROW = 0x20
_PLAIN_FILLS = {"", "auto", "FFFFFF", "ffffff"}
_NUMBER = re.compile(r"[\d０-９]")


def header_row_count(table: etree._Element, rows: Sequence[etree._Element]) -> int:
    """Leading rows of a table that name its columns.

    They are the rows marked to repeat as headers; else those that are set off from the others by bold type or shading
    alone; else one where the look of the table sets off the first row and it is full. Where every cell of the first
    row spans columns or rows, so that names stand below names, the rows that it spans are header rows with it.
    """
    marked = _leading(rows, _is_marked)
    if marked or len(rows) < 2:
        return max(marked, _spanned(rows)) if marked else 0
    set_off = next(filter(None, (_leading(rows, is_set_off) for is_set_off in (_is_shaded, _is_bold))), 0)
    if set_off == len(rows):
        set_off = 0
    cells = list(descend(rows[0], "tc"))
    is_full = len(cells) > 1 and all(map(_text, cells))
    first = set_off or int(is_full and _sets_off_first(table))
    return max(first, _spanned(rows)) if first else 0


def _leading(rows: Sequence[etree._Element], holds: Callable[[etree._Element], bool]) -> int:
    return next((place for place, row in enumerate(rows) if not holds(row)), len(rows))


def _is_marked(row: etree._Element) -> bool:
    mark = row.find("{*}trPr/{*}tblHeader")
    return mark is not None and attribute(mark, "val") not in _OFF


def _sets_off_first(table: etree._Element) -> bool:
    look = table.find("{*}tblPr/{*}tblLook")
    if look is None:
        return False
    return attribute(look, "firstRow") in ("1", "true") or _hexadecimal(attribute(look, "val")) & _FIRST_ROW != 0


def _is_shaded(row: etree._Element) -> bool:
    """Whether all of at least two cells have a ground of their own; cells that go on from above count with it."""
    fills = [
        "" if (shading := cell.find("{*}tcPr/{*}shd")) is None else attribute(shading, "fill")
        for cell in descend(row, "tc")
    ]
    return len(fills) > 1 and not any(fill in _PLAIN_FILLS for fill in fills)


def _is_bold(row: etree._Element) -> bool:
    """Whether all text of a row is bold, in at least two of its cells."""
    runs = [[run for run in cell.iter("{*}r") if _text(run)] for cell in descend(row, "tc")]
    filled = [cell for cell in runs if cell]
    return len(filled) > 1 and all(_is_bold_run(run) for cell in filled for run in cell)


def _is_bold_run(run: etree._Element) -> bool:
    bold = run.find("{*}rPr/{*}b")
    if bold is not None:
        return attribute(bold, "val") not in _OFF
    style = run.find("{*}rPr/{*}rStyle")
    return style is not None and attribute(style, "val") == "Strong"


def _spanned(rows: Sequence[etree._Element]) -> int:
    """Rows that the first row spans where all of its cells span rows or columns; 0 where not, or where they hold data.

    Names below names are words, and a body is left below them.
    """
    columns = list(_columns(rows[0]))
    down = [start for start, _, cell in columns if _merge(cell) == "restart"]
    across = [start for start, width, cell in columns if width > 1 and _merge(cell) != "restart"]
    if not down or not across or len(down) + len(across) < len(columns):
        return 0
    depths = {_depth(rows, start) for start in down}
    depth = max(depths)
    if len(depths) > 1 or depth >= len(rows):
        return 0
    below = [cell for row in rows[1:depth] for _, _, cell in _columns(row) if _merge(cell) != "continue"]
    return 0 if any(not _text(cell) or _NUMBER.search(_text(cell)) for cell in below) else depth


def _depth(rows: Sequence[etree._Element], column: int) -> int:
    """Rows from the first on that a cell spans."""
    depth = 1
    for row in rows[1:]:
        if not any(start == column and _merge(cell) == "continue" for start, _, cell in _columns(row)):
            break
        depth += 1
    return depth


def _columns(row: etree._Element) -> Iterator[tuple[int, int, etree._Element]]:
    """Cells of a row with the columns at which they start and that they span."""
    column = integer(row.find("{*}trPr/{*}gridBefore"), 0)
    for cell in descend(row, "tc"):
        width = max(1, integer(cell.find("{*}tcPr/{*}gridSpan"), 1))
        yield column, width, cell
        column += width


def _merge(cell: etree._Element) -> str:
    merge = cell.find("{*}tcPr/{*}vMerge")
    return "" if merge is None else attribute(merge, "val") or "continue"


def _text(element: etree._Element) -> str:
    return "".join(map(str, element.itertext("{*}t"))).strip()


def _hexadecimal(value: str) -> int:
    try:
        return int(value, 16)
    except ValueError:
        return 0
