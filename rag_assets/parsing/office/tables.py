"""Rows and cells of Word tables, and which rows are headers."""

import re
from collections.abc import Callable, Iterator, Sequence

from lxml import etree

from rag_assets.parsing.archive import descend
from rag_assets.parsing.names import Kind, has_digit, is_attribute, is_generic, is_name, kind_of, names_value
from rag_assets.parsing.office.styles import attribute, integer, is_on, is_run_bold, value_of

_PLAIN_FILLS = {"", "auto", "FFFFFF", "ffffff"}
_MOST_HEADER_ROWS = 3
_NUMBER = re.compile(r"\d")


def header_row_count(rows: Sequence[etree._Element], *, has_styled_first: bool) -> int:
    """Leading rows of a table that name its columns.

    They are the rows marked to repeat as headers; else those that are set off from the others by bold type or shading
    alone, all in one look; else the first one where its texts name columns. Marks on nearly every row show nothing
    beyond the first. Where every cell of the first row spans columns or rows, so that names stand below names, the rows
    that it spans are header rows with it.

    Args:
        rows: All rows of the table.
        has_styled_first: Whether the style of the table gives the first row a look of its own.
    """
    marked_count = _leading_count(rows, lambda row: is_on(row.find("{*}trPr/{*}tblHeader")))
    if marked_count == len(rows) or marked_count > _MOST_HEADER_ROWS:
        marked_count = 1
    if marked_count or len(rows) < 2:
        return max(marked_count, _spanned(rows)) if marked_count else 0
    is_full = len(texts := _texts(rows[0])) > 1 and all(texts)
    first = _set_off(rows) or int(is_full and has_styled_first) or int(_names_columns(rows))
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


def _leading_count(rows: Sequence[etree._Element], holds: Callable[[etree._Element], bool]) -> int:
    return next((place for place, row in enumerate(rows) if not holds(row)), len(rows))


def _names_columns(rows: Sequence[etree._Element]) -> bool:
    """Whether the texts of the first row name the columns: those of two columns rather name the values beside them."""
    first, *below = map(_texts, rows)
    if len(first) < 2 or not all(first[1:]):
        return False
    corner, names = first[0], first[1:]
    labels = [row[0] for row in below if row and row[0]]
    columns = sum(width for _, width, _ in cells_of(rows[0]))
    if not corner:
        shapes = {_NUMBER.sub("0", text) for row in below for text in row}
        is_new = not all(_NUMBER.sub("0", name) in shapes for name in names)
        return is_new and columns > 2 and bool(labels) and Kind.SENTENCE not in map(kind_of, names)
    if is_generic(corner) and all(map(is_name, names)):
        return True
    if not all(map(_could_name, first)):
        return False
    are_numbered = bool(labels) and not has_digit(corner) and all(map(has_digit, labels))
    if are_numbered or any(map(names_value, names)) or _spanned(rows):
        return True
    alike = [row for row in below if len(row) == len(first)]
    if _are_fields(labels) and (columns == 2 or _are_fields([text for row in alike for text in row[2:3] if text])):
        return False
    if columns == 2:
        return _names_field(names[0]) or _stands_above_records(first, labels, [row[1] for row in alike])
    return sum(map(_names_field, first)) > 1 or any(
        _is_unlike(name, [row[place] for row in alike]) for place, name in enumerate(first)
    )


def _stands_above_records(first: Sequence[str], labels: Sequence[str], values: Sequence[str]) -> bool:
    """Whether two names stand above labels that name no fields: a field above them, or figures below the other name."""
    if len(labels) < 2 or any(map(_names_field, labels)):
        return False
    has_figures = bool(values) and all(map(has_digit, values)) and not any(map(has_digit, first))
    return is_attribute(first[0]) or has_figures


def _could_name(text: str) -> bool:
    kind = kind_of(text)
    is_word = is_name(text) or is_attribute(text) or kind is Kind.CODE
    return is_generic(text) or kind is Kind.PERIOD or (is_word and not has_digit(text))


def _names_field(text: str) -> bool:
    return is_attribute(text) and not has_digit(text)


def _are_fields(texts: Sequence[str]) -> bool:
    """Whether at least half of some texts are names of fields."""
    return 2 * sum(map(_names_field, texts)) >= max(len(texts), 1)


def _is_unlike(name: str, texts: Sequence[str]) -> bool:
    """Whether most of the texts below a name are of another kind, as numbers and sentences are, or twice as long."""
    filled_texts = list(filter(None, texts))
    unlike_texts = [text for text in filled_texts if kind_of(text) is not kind_of(name) or len(text) > 2 * len(name)]
    return 2 * len(unlike_texts) > len(filled_texts)


def _set_off(rows: Sequence[etree._Element]) -> int:
    """Leading rows in a look of their own, shaded or bold, that no row below them has; 0 where there are none.

    Where cells of a row span columns, the names below may have another look.
    """
    looks = [(_fills(row), _is_bold(row)) for row in rows]
    if not any(looks[0]):
        return 0
    alike = next((place for place, look in enumerate(looks) if look != looks[0]), len(rows))
    if alike == len(rows):
        return 0
    if looks[0] in looks[alike:]:
        return 1
    is_second = alike < len(rows) - 1 and any(looks[alike]) and looks[alike] not in looks[alike + 1 :]
    return alike + int(is_second and _stands_below(rows[alike - 1], rows[alike]))


def _stands_below(upper: etree._Element, lower: etree._Element) -> bool:
    """Whether a row has the names of columns that cells of the row above it span."""
    return any(width > 1 for _, width, _ in cells_of(upper)) and not any(map(has_digit, _texts(lower)))


def _fills(row: etree._Element) -> frozenset[str]:
    """Grounds of a row where each of at least two cells has one; cells that go on from above count with it."""
    fills = [attribute(cell.find("{*}tcPr/{*}shd"), "fill") for cell in descend(row, "tc")]
    return frozenset() if len(fills) < 2 or any(fill in _PLAIN_FILLS for fill in fills) else frozenset(fills)


def _is_bold(row: etree._Element) -> bool:
    """Whether all text of a row is bold, in at least two of its cells."""
    runs = [[run for run in cell.iter("{*}r") if _text(run)] for cell in descend(row, "tc")]
    filled_cells = [cell for cell in runs if cell]
    return len(filled_cells) > 1 and all(is_run_bold(run) for cell in filled_cells for run in cell)


def _spanned(rows: Sequence[etree._Element]) -> int:
    """Rows that the first row spans, as `spanned_rows` has it."""
    first = [(start, width) for start, width, cell in cells_of(rows[0]) if merge_of(cell) != "continue"]
    if all(width == 1 for _, width in first):
        return 0
    depths = _depths(rows, {start for start, _ in first})
    below = (
        [(_text(cell), width, 1) for _, width, cell in cells_of(row) if merge_of(cell) != "continue"]
        for row in rows[1 : max(depths.values()) + 1]
    )
    return spanned_rows([[("", width, depths[start]) for start, width in first], *below])


def _depths(rows: Sequence[etree._Element], columns: set[int]) -> dict[int, int]:
    """Rows from the first on that the cells which start at some columns span."""
    depths = dict.fromkeys(columns, 1)
    for depth, row in enumerate(rows[1:], start=2):
        columns = {start for start, _, cell in cells_of(row) if start in columns and merge_of(cell) == "continue"}
        if not columns:
            break
        depths.update(dict.fromkeys(columns, depth))
    return depths


def _texts(row: etree._Element) -> list[str]:
    return [_text(cell) for cell in descend(row, "tc")]


def _text(element: etree._Element) -> str:
    return "".join(map(str, element.itertext("{*}t"))).strip()
