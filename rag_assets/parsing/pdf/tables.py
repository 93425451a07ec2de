"""Tables of a PDF page: the text in ruled cells, rows of headers, tables that run on over pages."""

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from operator import and_
from statistics import median

from rag_assets.contracts.content import Box, Row
from rag_assets.parsing.flow import row_text, rows_above_figures
from rag_assets.parsing.pdf.cells import COUNTED, bands_of, cell_text, is_number, split_band, widths_of
from rag_assets.parsing.pdf.lines import Line, PageTable, lines_of
from rag_assets.parsing.pdf.rules import Grid
from rag_assets.parsing.pdf.runs import Run

_FILLED_SHARE = 0.25
_PAIRED_SHARE = 0.5
_HEADER_ROWS = 4
_FIGURE_ROWS = 4
_FIGURE_SHARE = 0.9
_CENTRED_CELLS = 2
_FEW_CELLS = 4
_NOTE_SIZE = 0.9
_EDGE_TOLERANCE = 4.0
_ALIGNED_TOLERANCE = 2.0
_OPEN_SHARE = 0.5
_CROSSING_SHARE = 0.2
_FRAME_LINES = 5
_EVEN_ROWS, _EVEN_COLUMNS = 4, 4
_ITEM_NUMBER = re.compile(r"^\d+(?:[.-]\d+)+\.?$")
_AMOUNT = re.compile(r"\d[\d,.]*\s*(?P<unit>[^\W\d_]{1,3}|[%％])")
_FEWEST_AMOUNTS = 2
_NAME_CHARS = 40  # of the name of a column


def take_tables(runs: list[Run], grids: Sequence[Grid], filled: Sequence[Box]) -> tuple[list[PageTable], list[Run]]:
    """Tables of the ruled areas that hold text.

    Args:
        runs: Runs of the page.
        grids: Ruled areas, the smallest first: text in an area inside another belongs to the inner one.
        filled: Areas of the page that are filled with a colour.

    Returns:
        The tables from the top, and the runs that stand in none.
    """
    tables = []
    for ruled_grid in (part for grid in grids for part in _without_title(grid)):
        rooms, outside = _into_rooms(runs, ruled_grid)
        grid, open_rooms = _open_columns(ruled_grid, rooms)
        if open_rooms:
            rooms, outside = _into_rooms(runs, grid, open_rooms)
        for frame in grid.frames:
            outside += rooms.pop(frame, [])
        if _is_filled(grid, rooms):
            table = _table(grid, rooms, filled, open_rooms)
            if table is not None:
                tables.append(table)
                runs = outside
    return sorted(tables, key=lambda table: (table.box[1], table.box[0])), runs


def _is_filled(grid: Grid, rooms: Collection[int]) -> bool:
    """Whether enough cells hold text, of all or, as in an account of many columns, two that begin in most rows."""
    new_rooms = (set(row).difference(above) for above, row in pairwise(((), *grid.rooms)))
    paired_count = sum(len(row_rooms.intersection(rooms)) > 1 for row_rooms in new_rooms)
    cells = {room for row in grid.rooms for room in row}
    return len(rooms) >= max(2, _FILLED_SHARE * len(cells)) or paired_count >= _PAIRED_SHARE * len(grid.rooms)


def _without_title(grid: Grid) -> list[Grid]:
    """A grid, parted below a block of rows at its top whose columns cross those that all rows below keep to.

    A header that groups columns joins them and crosses none; nor do rules a few points beside those below. A single row
    is the header of what is below it.
    """
    edges = [frozenset(n for n, (a, b) in enumerate(pairwise(row), 1) if a != b) for row in grid.rooms]
    for top in range(2, len(edges) // 2):
        below = edges[top]
        crosses = any(_apart(grid, above, below) and _apart(grid, below, above) for above in edges[:top])
        is_whole = edges[top - 1] != below and not set(grid.rooms[top - 1]) & set(grid.rooms[top])
        is_even = len(edges) - top >= _EVEN_ROWS and len(below) + 1 >= _EVEN_COLUMNS
        if crosses and is_whole and is_even and all(row == below for row in edges[top:]):
            return [
                Grid(grid.xs, grid.ys[begin : end + 1], grid.rooms[begin:end], grid.frames)
                for begin, end in ((0, top), (top, len(edges)))
            ]
    return [grid]


def _apart(grid: Grid, edges: frozenset[int], other_edges: frozenset[int]) -> bool:
    """Whether one of some edges of columns is near none of others."""
    return any(
        all(abs(grid.xs[edge] - grid.xs[other_edge]) > _EDGE_TOLERANCE for other_edge in other_edges) for edge in edges
    )


def _into_rooms(
    runs: Iterable[Run], grid: Grid, open_rooms: frozenset[int] = frozenset()
) -> tuple[dict[int, list[Run]], list[Run]]:
    """Runs by the cell that they stand in, cut where they reach over a rule, and the runs outside.

    In cells that no rule parts from the next, a run belongs where it begins.
    """
    rooms: dict[int, list[Run]] = {}
    rest = []
    for run in runs:
        if not run.reaches(grid.box):
            rest.append(run)
            continue
        start = grid.room_at(run.left + 1, run.middle[1])
        if start in open_rooms and grid.room_at(run.right - 1, run.middle[1]) in open_rooms:
            rooms.setdefault(start, []).append(run)
            continue
        for part in [run] if run.is_vertical else _cut_at_rooms(run, grid):
            room = grid.room_at(*part.middle)
            if room < 0:
                rest.append(part)
            else:
                rooms.setdefault(room, []).append(part)
    return rooms, rest


def _open_columns(grid: Grid, rooms: dict[int, list[Run]]) -> tuple[Grid, frozenset[int]]:
    """Part cells that span columns where their text keeps to the columns: rows whose columns only the header rules.

    A cell of many lines over all columns that cannot be parted is text inside a frame, and no cell.

    Returns:
        The grid with such cells parted, and the numbers of the new cells.
    """
    cells = [list(row) for row in grid.rooms]
    fresh = max(map(max, cells)) + 1
    first = fresh
    frames = set(grid.frames)
    for room, runs in rooms.items():
        columns = sorted({column for row in grid.rooms for column, cell in enumerate(row) if cell == room})
        if len(columns) == len(grid.xs) - 1 and len({round(run.top) for run in runs}) > _FRAME_LINES:
            frames.add(room)
        inner = [grid.xs[column] for column in columns[1:]]
        crossing_count = sum(any(run.left + 2 < x < run.right - 2 for x in inner) for run in runs)
        if not inner or crossing_count > _CROSSING_SHARE * len(runs):
            continue
        used_columns = {bisect_right(inner, run.left + 1) for run in runs}
        is_heading = room in grid.rooms[0] and len(list(lines_of(runs))) == 1
        if len(used_columns) < (len(columns) if is_heading else max(2, _OPEN_SHARE * len(columns))):
            continue
        if is_heading and all(len(run.text.strip()) == 1 for run in runs):
            continue  # one word with room between its letters
        frames.discard(room)
        for row in cells:
            for column in columns:
                if row[column] == room:
                    row[column] = fresh + column - columns[0]
        fresh += columns[-1] - columns[0] + 1
    parted_grid = Grid(grid.xs, grid.ys, tuple(map(tuple, cells)), frozenset(frames))
    return parted_grid, frozenset(range(first, fresh))


def _cut_at_rooms(run: Run, grid: Grid) -> list[Run]:
    y = run.middle[1]
    if grid.room_at(run.left + 1, y) == grid.room_at(run.right - 1, y):
        return [run]
    inside = [grid.room_at(middle, y) for middle in run.middles()]
    return run.cut([index for index in range(1, len(inside)) if inside[index] != inside[index - 1]])


def _table(
    grid: Grid, rooms: dict[int, list[Run]], filled_areas: Sequence[Box], open_rooms: frozenset[int]
) -> PageTable | None:
    lines = {room: list(lines_of(runs)) for room, runs in rooms.items()}
    widths = widths_of(grid)
    texts = {room: cell_text(room_lines, widths[room]).replace("\u00ad", "-") for room, room_lines in lines.items()}
    cells: list[list[str]] = []
    shown_rows: list[list[str]] = []
    boxes: list[Box] = []
    ids: list[tuple[int, ...]] = []
    seen_rooms: set[int] = set()
    for band in bands_of(grid):
        split_rows = split_band(grid, band, lines, widths, open_rooms)
        for box, row, row_shown in split_rows:
            cells.append(row)
            shown_rows.append(row_shown)
            ids.append((-1,) * len(row))
            boxes.append(box)
        for number in () if split_rows else band:
            row_rooms = grid.rooms[number]
            cells.append([texts.get(room, "") for room in row_rooms])
            shown_rows.append(
                [
                    "" if room in seen_rooms or room in row_rooms[:column] else texts.get(room, "")
                    for column, room in enumerate(row_rooms)
                ]
            )
            seen_rooms.update(row_rooms)
            ids.append(row_rooms)
            boxes.append((grid.xs[0], grid.ys[number], grid.xs[-1], grid.ys[number + 1]))
    filled_rows = [index for index, row in enumerate(shown_rows) if any(row) or len(set(cells[index])) > 1]
    columns = [column for column in range(len(grid.xs) - 1) if any(row[column] for row in shown_rows)]
    if len(filled_rows) < 2 or len(columns) < 2:
        return None
    rows = [[cells[index][column] for column in columns] for index in filled_rows]
    bold = [_is_bold(lines, ids[index]) for index in filled_rows]
    shaded = [_is_shaded(boxes[index], filled_areas) for index in filled_rows]
    # What all rows share sets none apart; of two rows of two cells, one that looks otherwise may be either.
    marks = [marks for marks in (bold, shaded) if not all(marks) or len(rows) * len(columns) <= _FEW_CELLS]
    marked = [any(row_marks) for row_marks in zip(*marks, strict=True)] or [False] * len(rows)
    if not any(marked):
        marked[0] = _is_centred(grid, lines, [ids[index] for index in filled_rows])
    return PageTable(
        tuple(Row(tuple(row), box=boxes[index]) for row, index in zip(rows, filled_rows, strict=True)),
        tuple(row_text([shown_rows[index][column] for column in columns]) for index in filled_rows),
        count_headers(rows, marked, [tuple(ids[index][column] for column in columns) for index in filled_rows]),
        (*(grid.xs[column] for column in columns), grid.xs[-1]),
        grid.box,
        median(run.size for room in rooms.values() for run in room),
    )


def _is_bold(lines: dict[int, list[Line]], rooms: Iterable[int]) -> bool:
    texts = [line for room in set(rooms) for line in lines.get(room, ())]
    return bool(texts) and all(line.is_bold for line in texts)


def _is_shaded(row: Box, filled_areas: Sequence[Box]) -> bool:
    """Whether most of a row's width is filled with a colour."""
    middle = (row[1] + row[3]) / 2
    width = sum(
        max(0.0, min(row[2], area[2]) - max(row[0], area[0])) for area in filled_areas if area[1] <= middle <= area[3]
    )
    return width > 0.6 * (row[2] - row[0])


def _is_centred(grid: Grid, lines: dict[int, list[Line]], rows: Sequence[tuple[int, ...]]) -> bool:
    """Whether the cells of the first row are centred, above a column at least whose others begin at its left edge."""
    stands_out = False
    for column, room in enumerate(rows[0]):
        room_lines = lines.get(room, [])
        left, right = grid.xs[column], grid.xs[column + 1]
        if rows[0].count(room) > 1 or any(
            abs(line.box[0] - left - right + line.box[2]) > line.size for line in room_lines
        ):
            return False
        begins = [lines[row[column]][0].box[0] for row in rows[1:] if lines.get(row[column])]
        if room_lines and len(begins) >= _CENTRED_CELLS:
            near = sum(
                begin < room_lines[0].box[0] - 2 * room_lines[0].size and begin < min(begins) + 2 for begin in begins
            )
            stands_out |= near >= _FIGURE_SHARE * len(begins)
    return stands_out


def count_headers(rows: Sequence[Sequence[str]], marked: Sequence[bool], rooms: Sequence[tuple[int, ...]]) -> int:
    """Rows at the top of a table that are headers of its columns, with titles of the whole of it above them.

    A title is a row of one text; one that looks like others further down is the title of a part, and no header.

    Args:
        rows: Cells of each row.
        marked: For each row whether it is bold or coloured, or centred above others that are not.
        rooms: For each row the numbers of its cells, equal where a cell spans; empty where nothing spans.
    """
    lone = list(map(_is_lone, rows))
    titles = lone.index(False) if False in lone[: _HEADER_ROWS + 1] else 0
    below = 0
    if titles and any(is_number(cell) for row in rows[titles:] for cell in row[1:]):
        below = _count_names(rows[titles:], marked[titles:], rooms[titles:])
    count = titles + below if below else _count_names(rows, marked, rooms)
    is_part = count <= titles and any(map(and_, lone[titles:], marked[titles:]))
    return max(0 if is_part else count, rows_above_figures(rows))


def _count_names(rows: Sequence[Sequence[str]], marked: Sequence[bool], rooms: Sequence[tuple[int, ...]]) -> int:
    """Rows at the top of a table that name its columns.

    Rows set apart in bold type or by colour, where the others are not, to the first that is full, and full rows of
    names below it above figures; else rows above the first that holds numbers; else the first row where it names
    columns of figures or, of three columns and more, where it is full and no figure stands in it among those of its
    column. A cell that spans rows or columns takes the rows along that it reaches over.
    """
    count = 0
    leading_count = next((number for number, is_marked in enumerate(marked) if not is_marked), len(rows))
    numeric = next((number for number, row in enumerate(rows) if _has_numbers(row)), len(rows))
    if 0 < leading_count < len(rows) and leading_count <= _HEADER_ROWS:
        full = list(map(_is_full, rows, rooms or [()] * len(rows)))
        is_account = sum(map(_has_numbers, rows[leading_count:])) * 2 > len(rows) - leading_count
        names = [
            is_account and is_full and not any(map(is_number, row)) for is_full, row in zip(full, rows, strict=True)
        ]
        ends = (n for n in range(1, leading_count) if (full[n - 1] and not names[n]) or _is_listed(rows[n]))
        count = next(ends, leading_count)
    elif 0 < numeric < len(rows) and numeric <= _HEADER_ROWS and _is_label_row(rows[numeric - 1]):
        full = list(map(_is_full, rows[:numeric], rooms or [()] * len(rows)))
        count = next((number for number, is_full in enumerate(full, 1) if is_full), numeric)
    elif numeric == 0 and _names_periods(rows):
        count = 1
    elif len(rows) > _FIGURE_ROWS and (figures := _figure_columns(rows)):
        count = int(_is_label_row(rows[0]) and not any(is_number(rows[0][column]) for column in figures))
    elif len(rows[0]) > 2 and _names_columns(rows):
        count = 1
    while rooms and 0 < count < min(len(rows), _HEADER_ROWS + 1):
        last = rooms[count - 1]
        reaches = any(room >= 0 and room in rooms[count] for room in last[1:] or last)
        reaches |= last[0] == rooms[count][0] >= 0 and all(marked[: count + 1]) and not all(marked[: count + 2])
        groups = count == 1 and leading_count <= count and _is_parted(last, *rows[:2])
        if not (reaches or groups) or (_holds_values(rows[count]) and not _names_amounts(rows[count:])):
            break
        count += 1
    return count if count < len(rows) else 0


def _names_columns(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first row is full, its corner aside where rows below have names there, and unlike those below it."""
    first, *rest = rows
    is_named = len(rest) > 1 and sum(bool(row[0]) for row in rest) * 2 > len(rest)
    if not (all(first[1:]) and (first[0] or (is_named and _is_full(first[1:])))) or _has_numbers(first):
        return False
    return not any(is_number(cell) and any(is_number(row[n]) for row in rest) for n, cell in enumerate(first))


def _is_parted(rooms: tuple[int, ...], names: Sequence[str], below: Sequence[str]) -> bool:
    """Whether different texts stand below a cell that spans columns.

    Args:
        rooms: Numbers of the cells of a row.
        names: Their texts.
        below: Texts of the next row.
    """
    texts_by_room: dict[int, set[str]] = {}
    for room, name, text in zip(rooms, names, below, strict=True):
        if room >= 0 and name and text:
            texts_by_room.setdefault(room, set()).add(text)
    return any(len(texts) > 1 for texts in texts_by_room.values())


def _has_numbers(row: Sequence[str]) -> bool:
    """Whether a row holds figures beside its first cell, years aside."""
    cells = [cell for cell in row[1:] if cell]
    return sum(map(is_number, cells)) * 2 > len(cells) > 0


def _names_periods(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first row names years, months or the like above rows of figures."""
    first, *rest = rows
    periods = sum(COUNTED.fullmatch(cell) is not None for cell in first[1:])
    if is_number(first[0]) or periods < min(2, len(first) - 1) or sum(map(_has_numbers, rest)) * 2 < len(rest):
        return False
    return all(COUNTED.fullmatch(cell) or not is_number(cell) for cell in first[1:])


def _is_lone(row: Sequence[str]) -> bool:
    """Whether a row is one text, from the first cell on, as a title."""
    return bool(row[0]) and len({cell for cell in row if cell}) == 1


def _is_full(row: Sequence[str], rooms: Sequence[int] = ()) -> bool:
    """Whether every cell has a text of its own; the numbers of the cells, where given, tell which are one."""
    return all(row) and len(row) in (len(set(row)), len(set(rooms)))


def _holds_values(row: Sequence[str]) -> bool:
    """Whether a cell is a figure, which 1月 or 1st are not, a number of a list, or longer than the name of a column."""
    return _is_listed(row) or any(is_number(cell) and not COUNTED.fullmatch(cell) for cell in row)


def _names_amounts(rows: Sequence[Sequence[str]]) -> bool:
    """Whether all figures of the first row are amounts of one unit, as 1,000円 and 2,000円, which none below has."""
    first, *rest = rows
    figures = [column for column, cell in enumerate(first) if is_number(cell)]
    amounts = [match for column in figures if (match := _AMOUNT.fullmatch(first[column]))]
    units = {match["unit"] for match in amounts}
    if len(amounts) < len(figures) or len({match[0] for match in amounts}) < _FEWEST_AMOUNTS or len(units) > 1:
        return False
    below = [row[column] for row in rest for column in figures if row[column]]
    return sum(map(is_number, below)) * 2 > len(below) and not any(cell.endswith(tuple(units)) for cell in below)


def _is_listed(row: Sequence[str]) -> bool:
    return any(_ITEM_NUMBER.match(cell) or len(cell) > _NAME_CHARS for cell in row)


def _figure_columns(rows: Sequence[Sequence[str]]) -> list[int]:
    """Columns that hold figures in practically every row below the first."""
    if len(rows) < _HEADER_ROWS:
        return []
    least = _FIGURE_SHARE * (len(rows) - 1)
    return [n for n in range(len(rows[0])) if sum(is_number(row[n]) for row in rows[1:]) >= least]


def _is_label_row(row: Sequence[str]) -> bool:
    return sum(bool(cell) for cell in row) * 2 >= len(row)


def repeat_headers(pages: list[list[Line]]) -> list[list[Line]]:
    """Give a table that begins a page the header of the table that ends the page before, where their columns agree.

    Footnotes, which are set in smaller type, may stand below the table that ends a page.

    Args:
        pages: Lines of each page without running headers and footers, in reading order.

    Returns:
        The same with the tables replaced.
    """
    result: list[list[Line]] = []
    for lines in pages:
        above = _last_table(result[-1]) if result else None
        below = lines[0].table if lines else None
        if above and below and above.header_row_count and _agree(above, below):
            lines = [replace(lines[0], table=_with_header(above, below)), *lines[1:]]  # noqa: PLW2901
        result.append(lines)
    return result


def _last_table(lines: Sequence[Line]) -> PageTable | None:
    """The table that ends a page, footnotes aside."""
    behind: list[Line] = []
    for line in reversed(lines):
        if line.table:
            is_last = all(note.size < _NOTE_SIZE * line.table.size and note.box[1] > line.box[3] for note in behind)
            return line.table if is_last else None
        behind.append(line)
    return None


def _agree(first: PageTable, second: PageTable) -> bool:
    """Whether the columns of two tables stand below each other, and the second begins with no title of its own.

    Those without rules do as far as their texts tell.
    """
    if len(first.edges) != len(second.edges) or first.is_ruled != second.is_ruled:
        return False
    titles = first.rows[0].cells, second.rows[0].cells
    if second.header_row_count > 1 and _is_lone(titles[1]) and titles[0] != titles[1]:
        return False
    if first.is_ruled:
        return all(abs(a - b) <= _EDGE_TOLERANCE for a, b in zip(first.edges, second.edges, strict=True))
    apart = (abs(a - b) for a, b in zip(first.edges[:-1], second.edges[:-1], strict=True))
    return max(apart) <= _ALIGNED_TOLERANCE * first.size


def _with_header(above: PageTable, below: PageTable) -> PageTable:
    count = above.header_row_count
    header = tuple(replace(row, box=None) for row in above.rows[:count])
    if [row.cells for row in below.rows[:count]] == [row.cells for row in header]:
        return replace(below, header_row_count=count)
    return replace(below, rows=header + below.rows, texts=above.texts[:count] + below.texts, header_row_count=count)
