"""Tables without rules: lines whose parts stand under each other in columns."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise

from rag_assets.contracts.content import Box, Row
from rag_assets.parsing.flow import around, row_text
from rag_assets.parsing.pdf.cells import is_number
from rag_assets.parsing.pdf.lines import Line, LinePart, PageTable
from rag_assets.parsing.pdf.rules import Rule
from rag_assets.parsing.pdf.tables import count_headers
from rag_assets.text.scripts import ITEM_LETTERS

_ROWS = 3
_LINE_DISTANCE = 1.6
_FULL_SHARE = 0.75
_FILLED_SHARE = 0.8
_CLOSE_ROWS = 4
_CLOSE_STRIP = 0.5
_COLLISION_SHARE = 0.15
_CELL_CHARS = 40
_SECOND_CHARS = 24
_ALIGNED = 0.3
_CENTRED_SHARE = 0.75
_AMOUNT = re.compile(r"[¥￥$€]?\s?[-−△▲(]?[¥￥$€]?(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+\.\d\d)\)?円?")
_ROWS_OF_AMOUNTS = 2  # a single one may be a scale
_MARK = re.compile(rf"^(?:[^\w\s]{{1,2}}|[(（]?[\d{ITEM_LETTERS}]{{1,3}}[)）.．])$")


def take_aligned(lines: list[Line], rules: Sequence[Rule]) -> list[Line]:
    """Lines of a page with those that make a table replaced by it.

    Args:
        lines: Lines in reading order.
        rules: Rules across the page; one below the first rows of a table sets its header apart.
    """
    result: list[Line] = []
    for group in _groups(lines):
        table = _table(group, rules) if len(group) >= _ROWS else None
        if table is None:
            result += group
        else:
            result.append(Line("", table.box, group[0].size, False, group[0].region, table=table))
    return result


def _groups(lines: Sequence[Line]) -> Iterator[list[Line]]:
    """Runs of lines that may be a table: parted ones, with at most one other between two of them."""
    group: list[Line] = []
    pending_lines: list[Line] = []
    for line in lines:
        follows = bool(group) and _follows((pending_lines or group)[-1], line)
        if len(line.parts) > 1 and (follows or not group):
            group += [*pending_lines, line]
            pending_lines = []
        elif follows and not pending_lines:
            pending_lines = [line]
        else:
            if group:
                yield group
            for pending_line in pending_lines:
                yield [pending_line]
            group, pending_lines = ([line], []) if len(line.parts) > 1 else ([], [])
            if not group:
                yield [line]
    if group:
        yield group
    for pending_line in pending_lines:
        yield [pending_line]


def _follows(above: Line, below: Line) -> bool:
    if above.region != below.region or below.is_vertical or below.table:
        return False
    return -below.size < below.box[1] - above.box[3] < _LINE_DISTANCE * below.size


def _table(group: list[Line], rules: Sequence[Rule]) -> PageTable | None:
    """The table that lines make, with close columns told apart where enough lines part them all."""
    wide = [_parts(line) for line in group]
    columns = _columns(wide, 0.0)
    close = [line.cells or _parts(line) for line in group]
    close_columns = _columns(close, _CLOSE_STRIP * group[0].size)
    if len(group) >= _CLOSE_ROWS and len(close_columns) > max(2, len(columns)):
        table = _table_of(group, close, close_columns, rules)
        if table is not None and _is_full(table):
            return table
    return _table_of(group, wide, columns, rules)


def _is_full(table: PageTable) -> bool:
    """Whether most rows have a text of their own in each column: gaps that words leave by chance part off others."""
    flags = [[bool(cell) and cell != left for left, cell in pairwise(("", *row.cells))] for row in table.rows]
    return min(map(sum, zip(*flags, strict=True))) >= _FULL_SHARE * len(flags)


def _table_of(
    group: list[Line],
    parts: Sequence[Sequence[LinePart]],
    columns: Sequence[tuple[float, float]],
    rules: Sequence[Rule],
) -> PageTable | None:
    if len(columns) < 2:
        return None
    cells = [[""] * len(columns) for _ in group]
    shown_rows = [[""] * len(columns) for _ in group]
    collisions = 0
    for row, line_parts in enumerate(parts):
        for part in line_parts:
            first, last = _span(columns, part.left, part.right)
            collisions += bool(cells[row][first])
            shown_rows[row][first] = (shown_rows[row][first] + " " + part.text).strip()
            for column in range(first, last + 1):
                cells[row][column] = (cells[row][column] + " " + part.text).strip()
    if not _is_tabular(cells, group, collisions) or _is_centred(cells, columns, parts, group, rules):
        return None
    box = around(line.box for line in group)
    headers = _rows_above_rule(group, cells, rules, box) or count_headers(cells, [line.is_bold for line in group], ())
    edges = (box[0], *((a[1] + b[0]) / 2 for a, b in pairwise(columns)), box[2])
    rows = tuple(Row(tuple(row), box=line.box) for row, line in zip(cells, group, strict=True))
    return PageTable(rows, tuple(map(row_text, shown_rows)), headers, edges, box, group[0].size, is_ruled=False)


def _parts(line: Line) -> tuple[LinePart, ...]:
    return line.parts or (LinePart(line.box[0], line.box[2], line.text),)


def _columns(parts: Sequence[Sequence[LinePart]], strip: float) -> list[tuple[float, float]]:
    """Columns as left and right edge, from the lines that have nearly as many parts as any.

    Args:
        parts: What each line is parted into.
        strip: Width of the strip without text between two columns at least.
    """
    most = max(map(len, parts))
    full = [line_parts for line_parts in parts if len(line_parts) >= _FULL_SHARE * most]
    columns: list[tuple[float, float]] = []
    for left, right in sorted((part.left, part.right) for line_parts in full for part in line_parts):
        if columns and left < columns[-1][1] + strip:
            columns[-1] = (columns[-1][0], max(columns[-1][1], right))
        else:
            columns.append((left, right))
    return columns


def _span(columns: Sequence[tuple[float, float]], left: float, right: float) -> tuple[int, int]:
    """First and last column that a part stands in; the nearest where it stands between."""
    touched_columns = [number for number, (begin, end) in enumerate(columns) if min(end, right) - max(begin, left) > 0]
    if touched_columns:
        return touched_columns[0], touched_columns[-1]
    middle = (left + right) / 2
    nearest = min(range(len(columns)), key=lambda number: abs(sum(columns[number]) / 2 - middle))
    return nearest, nearest


def _is_tabular(cells: Sequence[Sequence[str]], group: Sequence[Line], collisions: int) -> bool:
    """Whether parted lines are a table: columns well filled, cells short, the first one more than marks of a list."""
    parted_rows = [row for row, line in zip(cells, group, strict=True) if len(line.parts) > 1]
    filled_rows = [row for row in parted_rows if sum(map(bool, row)) > 1]
    texts = [cell for row in parted_rows for cell in row if cell]
    if (
        len(parted_rows) < _ROWS
        or len(filled_rows) < _FILLED_SHARE * len(parted_rows)
        or 2 * len(parted_rows) <= len(group)
    ):
        return False
    if collisions > _COLLISION_SHARE * len(texts) or sum(map(len, texts)) > _CELL_CHARS * len(texts):
        return False
    if sum(bool(_MARK.match(row[0])) for row in parted_rows) > len(parted_rows) / 2:
        return False
    # Most cells of a table are filled; a page of scattered words is none.
    if 2 * len(texts) < len(parted_rows) * len(cells[0]):
        return False
    if len(cells[0]) == 2:
        return sum(len(row[1]) <= _SECOND_CHARS for row in parted_rows) * 2 > len(parted_rows)
    return True


def _is_centred(
    cells: Sequence[Sequence[str]],
    columns: Sequence[tuple[float, float]],
    parts: Sequence[Sequence[LinePart]],
    group: Sequence[Line],
    rules: Sequence[Rule],
) -> bool:
    """Whether words are centred below each other in all columns, as in charts and on title pages.

    The cells of a table's column mostly begin or end below each other; where they do not, it is told by figures or by
    a rule below its header.
    """
    values = [cell for row in cells for cell in row[1:] if cell]
    if sum(map(is_number, values)) * 2 >= len(values):
        return False
    top, bottom = group[0].box[1], group[-1].box[3]
    left, right = columns[0][0], columns[-1][1]
    if any(top < rule.at < bottom and rule.begin < right and rule.end > left for rule in rules):
        return False
    tolerance = _ALIGNED * group[0].size
    for number in range(len(columns)):
        inside = [
            (part.left, part.right)
            for line_parts in parts
            for part in line_parts
            if _span(columns, part.left, part.right) == (number, number)
        ]
        edges = max(_share([begin for begin, _ in inside], tolerance), _share([end for _, end in inside], tolerance))
        if edges > _CENTRED_SHARE or _share([(begin + end) / 2 for begin, end in inside], tolerance) < _CENTRED_SHARE:
            return False
    return True


def _share(places: Sequence[float], tolerance: float) -> float:
    """Largest share of places that lie within a tolerance of one of them."""
    ordered_places = sorted(places)
    close = (
        bisect_right(ordered_places, place + tolerance) - bisect_left(ordered_places, place - tolerance)
        for place in ordered_places
    )
    return max(close, default=0) / max(len(ordered_places), 1)


def _rows_above_rule(group: Sequence[Line], cells: Sequence[Sequence[str]], rules: Sequence[Rule], box: Box) -> int:
    """Rows above the first rule inside a table; 0 where none is near its top, or it is below amounts, as above their
    total.
    """
    inside = [
        rule.at
        for rule in rules
        if min(rule.end, box[2]) - max(rule.begin, box[0]) > 0.6 * (box[2] - box[0])
        and group[0].box[3] - 2 < rule.at < group[-1].box[1]
    ]
    count = sum((line.box[1] + line.box[3]) / 2 < min(inside, default=0.0) for line in group)
    amounts = sum(any(map(_AMOUNT.fullmatch, row)) for row in cells[:count])
    return count if count <= max(1, len(group) // 3) and amounts < _ROWS_OF_AMOUNTS else 0
