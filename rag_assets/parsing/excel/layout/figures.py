"""Tables of figures as statistics are published: rows of numbers, their names at the left, behind spacer columns, in
groups that empty rows part, below names of columns that empty rows set apart. Lines, where there are any, part them at
random; here numbers that stand below each other tell what belongs together.

What is found replaces the blocks of a sheet only where these leave figures without names, of their rows or columns.
"""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from rag_assets.contracts.causes import BlockKind
from rag_assets.contracts.content import Block
from rag_assets.parsing.excel.cells import SheetCells, Texts, block_area
from rag_assets.parsing.excel.layout.bands import Box, make_bands
from rag_assets.parsing.excel.layout.sections import is_unit
from rag_assets.parsing.excel.layout.tables import table_block
from rag_assets.parsing.names import Kind, is_count, is_number, is_period, is_series, is_year, kind_of, plain
from rag_assets.text.cells import Area, parse_area

_LEAST_ROWS, _LEAST_FIGURES = 3, 8
_EMPTY_ROWS = 3  # between groups of rows, and between the names of columns and the figures
_EMPTY_HEADER_ROWS = 2  # between names of columns
_EMPTY_COLUMNS = 3
_HEADER_ROWS = 8
_NAME_CHARS, _LONG_NAME_CHARS = 40, 15  # of a column
_LOOKED_AT_ROWS = 60
_CODES = 2  # columns of numbers left of the names of rows
_ALMOST, _NAMED, _MOST, _SHARE, _SOME, _FEW = 0.9, 0.6, 0.5, 0.4, 0.3, 0.05
_FIGURES = frozenset({Kind.NUMBER, Kind.MARK})
_TOTAL = re.compile("総?[計数]|合計|総合計|全体|全国|(?:grand )?total", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class FigureTable:
    """A table of figures."""

    area: Area  # where it stands, with all names of rows and columns
    names: int  # the last row that names columns
    left: int  # the first column of figures

    def block(self, boxes: Sequence[Box]) -> Block | None:
        """The table, made of the boxes of its cells.

        What names the columns at its left goes into its last header row, wherever it stands. A name of rows that is
        written once holds for the rows below it up to the next one, and one of groups of columns for as many columns.
        """
        heads = [box for box in boxes if box.area.top <= self.names]
        beside = [box for box in heads if box.area.right < self.left]
        above = [box for box in heads if box.area.right >= self.left]
        body = [box for box in boxes if box.area.top > self.names]
        labels = [box for box in body if box.area.right < self.left]
        lowered = (box.area._replace(top=self.names, bottom=max(self.names, box.area.bottom)) for box in beside)
        bands = make_bands(
            [
                *(replace(box, area=area) for box, area in zip(beside, lowered, strict=True)),
                *_widen_groups(above, self.left),
                *_lengthen_labels(labels, {box.area.top for box in body if box.area.right >= self.left}),
                *(box for box in body if box.area.right >= self.left),
            ]
        )
        block = table_block(bands, headers=sum(band.top <= self.names for band in bands))
        return None if block is None else _with_group_column(block)

    def meets(self, block: Block) -> bool:
        """Whether the table has cells of a block."""
        return self.area.meets(block_area(block))


def _distinct(cells: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(filter(None, cells)))


def _widen_groups(heads: Sequence[Box], left: int) -> list[Box]:
    """Boxes above columns of figures, names of groups over all columns of theirs: where the names below come again and
    again, as often as there are groups, each of which stands somewhere above its own.
    """
    rows = [list(band.starting) for band in make_bands(heads)] if heads else []
    right = max((box.area.right for box in heads), default=left)
    for row, below in reversed(list(pairwise(rows))):
        groups = [place for place, box in enumerate(row) if box.area.left >= left]
        parts = [box for box in below if box.area.left >= left]
        size, rest = divmod(len(parts), max(1, len(groups)))
        names = [box.text for box in parts]
        if len(groups) < 2 or size < 2 or rest or names != names[:size] * len(groups):
            continue
        lefts = [*(box.area.left for box in parts[::size]), right + 1]
        wide = [
            row[place].area._replace(left=start, right=end - 1)
            for place, (start, end) in zip(groups, pairwise(lefts), strict=True)
        ]
        if all(area.shares_columns(row[place].area) for place, area in zip(groups, wide, strict=True)):
            for place, area in zip(groups, wide, strict=True):
                row[place] = replace(row[place], area=area)
    return [box for row in rows for box in row]


def _lengthen_labels(labels: Sequence[Box], figure_rows: Collection[int]) -> list[Box]:
    """Names of rows, each down to the last row of figures above the next text in its column or left of it; in columns
    that name more than half of the rows, over those alone that have a name of their own right of it.
    """
    rows = sorted(figure_rows)
    counts = Counter(box.area.left for box in labels if box.area.top in figure_rows)
    last_columns: dict[int, int] = {}  # of the names of each row
    for box in labels:
        last_columns[box.area.top] = max(box.area.left, last_columns.get(box.area.top, 0))
    boxes: list[Box] = []
    next_rows: dict[int, int] = {}  # of each column, the row of its text that stands next below
    for box in sorted(labels, key=lambda box: box.area[:2], reverse=True):
        area = box.area
        end = min((row for column, row in next_rows.items() if column <= area.left), default=rows[-1] + 1)
        below = rows[bisect_right(rows, area.bottom) : bisect_left(rows, end)]
        if counts[area.left] > _MOST * len(rows):
            unnamed = (place for place, row in enumerate(below) if last_columns.get(row, -1) <= area.left)
            below = below[: next(unnamed, None)]
        goes_on = below and area.top in figure_rows and kind_of(box.text) is not Kind.MARK
        # of several columns it keeps the first, beside the names of its rows
        boxes.append(replace(box, area=area._replace(bottom=below[-1], right=area.left)) if goes_on else box)
        next_rows[area.left] = area.top
    return boxes


def _with_group_column(block: Block) -> Block:
    """The table with one more column at its left, of the names of groups that stand in rows of their own."""
    headers, body = block.rows[: block.header_row_count], block.rows[block.header_row_count :]
    names = [texts[0] if len(texts := _distinct(row.cells)) == 1 and _is_word(texts[0]) else "" for row in body]
    if not any(name and not below for name, below in pairwise(names)):
        return block
    rows = [replace(row, cells=("", *row.cells)) for row in headers]
    group = ""
    for row, name in zip(body, names, strict=True):
        if name or _TOTAL.fullmatch(plain(row.cells[0])):
            group = name
        rows.append(replace(row, cells=("" if name else group, *row.cells)))
    return replace(block, rows=tuple(rows))


def figure_tables(blocks: Sequence[Block], cells: SheetCells) -> list[FigureTable]:
    """The tables of figures of a sheet that its blocks show without names, from top to bottom."""
    nameless = [block for block in blocks if _lacks_names(block)]
    if not nameless:
        return []
    spans = {(area.top, area.left): area for area in cells.merges}
    candidates: list[FigureTable] = []
    above = -1
    for rows in _groups(cells.texts):
        table = _table_of(rows, cells.texts, spans, above)
        above = rows[-1]
        candidates.extend([] if table is None else [table])
    tables = [table for table in candidates if any(map(table.meets, nameless))]
    while parted := [block for block in blocks if _is_parted(block, tables)]:
        tables = [table for table in tables if not any(map(table.meets, parted))]
    return tables


def _is_parted(block: Block, tables: Iterable[FigureTable]) -> bool:
    """Whether tables hold a part of another one, which goes on at their sides, or below, where notes may stand."""
    if block.kind is not BlockKind.TABLE:
        return False
    area = block_area(block)
    within = [table for table in tables if table.meets(block) and area.bottom > table.names]
    if any(area.left < table.area.left or area.right > table.area.right for table in within):
        return True
    first = min((table.area.top for table in within), default=area.bottom)
    for row in block.rows:
        place, texts = parse_area(row.cell_range), _distinct(row.cells)
        is_below = place is not None and place.top > first and not any(table.area.meets(place) for table in within)
        if is_below and (len(texts) > 1 or any(map(is_number, texts))):
            return True
    return False


def _lacks_names(block: Block) -> bool:
    """Whether a block holds figures, and most of its rows, or of the columns of figures, have no name."""
    if block.kind is not BlockKind.TABLE:
        words = block.text.split()
        return len(words) >= _LEAST_ROWS and all(kind_of(word) in _FIGURES for word in words[:_LOOKED_AT_ROWS])
    rows = [[cell for cell in row.cells if cell] for row in block.rows[block.header_row_count :][:_LOOKED_AT_ROWS]]
    kinds = [kind_of(cell) for cells in rows for cell in cells]
    if kinds.count(Kind.NUMBER) < max(_LEAST_FIGURES, _MOST * len(kinds)):
        return False
    row_names = sum(any(map(_is_word, cells)) or any(map(_is_dated, cells[:1])) for cells in rows)
    if not block.header_row_count or row_names < _NAMED * len(rows):
        return True
    heads = [row.cells for row in block.rows[: block.header_row_count]]
    columns = zip(*(row.cells for row in block.rows[block.header_row_count :][:_LOOKED_AT_ROWS]), strict=True)
    figures = [place for place, texts in enumerate(columns) if _are_figures([*filter(None, texts)], len(rows))]
    column_names = sum(any(cells[place] for cells in heads) for place in figures)
    return column_names < _NAMED * len(figures)


def _is_word(text: str) -> bool:
    return kind_of(text) not in _FIGURES


def _is_dated(text: str) -> bool:
    return is_period(text) or is_year(text)


def _groups(texts: Texts) -> Iterator[list[int]]:
    """Rows of figures that stand in the same columns, with few empty rows and names of groups of rows between."""
    groups: list[list[int]] = [[]]
    columns: set[int] = set()  # of figures, of the last group
    name_rows = 0  # since its last row
    for row, row_texts in texts.items():
        numbers = {column for column, text in row_texts.items() if kind_of(text) in _FIGURES}
        marks = sum(kind_of(text) is Kind.MARK for text in row_texts.values())
        lacks_figures = marks > 1 and len(numbers) - marks <= _CODES and numbers <= columns  # as `-` in each
        if not lacks_figures and not _holds_figures(list(row_texts.values())):
            name_rows += 1
            if sum(column in columns for column in row_texts) > 1:  # names of columns
                groups.append([])
                columns = set()
            continue
        rows = groups[-1]
        is_far = bool(rows) and row - rows[-1] - 1 - name_rows > _EMPTY_ROWS
        if is_far or (rows and len(numbers & columns) < _MOST * len(numbers)):
            groups.append([])
            columns = set()
        groups[-1].append(row)
        columns |= numbers
        name_rows = 0
    return (rows for rows in groups if len(rows) >= _LEAST_ROWS or (rows and _is_full([texts[row] for row in rows])))


def _is_full(rows: Sequence[Mapping[int, str]]) -> bool:
    """Whether each of few rows holds many figures, and little else."""
    counts = [sum(kind_of(text) is Kind.NUMBER for text in row.values()) for row in rows]
    return all(count >= max(_LEAST_FIGURES, _ALMOST * len(row)) for count, row in zip(counts, rows, strict=True))


def _holds_figures(texts: Sequence[str]) -> bool:
    """Whether a row is one of figures, and none of years that name columns."""
    numbers = [text for text in texts if kind_of(text) is Kind.NUMBER]
    marks = sum(kind_of(text) is Kind.MARK for text in texts)
    is_names = is_series(numbers) or (
        len(numbers) > 2 and (is_count(numbers) or all(is_year(text) for text in numbers))
    )
    return len(numbers) > 1 and len(numbers) + marks >= _SHARE * len(texts) and not is_names


def _table_of(
    rows: Sequence[int], texts: Texts, spans: Mapping[tuple[int, int], Area], above: int
) -> FigureTable | None:
    """The table that rows of figures make with the names of their rows, left of them, and of their columns, in the rows
    below `above`; None where most rows or columns have none.
    """
    columns: dict[int, list[str]] = {}
    for row in rows:
        for column, text in texts[row].items():
            columns.setdefault(column, []).append(text)
    figures = sorted(column for column, column_texts in columns.items() if _are_figures(column_texts, len(rows)))
    label = _last_label(columns, figures, len(rows))
    if label is None:
        return None
    left, right = _reach(sorted(columns), label)
    figures = [column for column in figures if label < column <= right]
    first_named = next((place for place, row in enumerate(rows) if _has_name(texts[row], left, label)), len(rows))
    if len(figures) < 2 or first_named > (1 - _NAMED) * len(rows):
        return None
    names = _names_above(rows[0], Area(above + 1, left, rows[-1], right), figures, texts, spans)
    if names is None:
        return None
    return FigureTable(Area(names[0], left, rows[-1], right), names[1], figures[0])


def _has_name(row_texts: Mapping[int, str], left: int, right: int) -> bool:
    return any(left <= column <= right and (_is_word(text) or _is_dated(text)) for column, text in row_texts.items())


def _are_figures(texts: Sequence[str], count: int) -> bool:
    figures = sum(kind_of(text) in _FIGURES for text in texts)
    return len(texts) >= _SOME * count and figures >= _NAMED * len(texts)


def _last_label(columns: Mapping[int, Sequence[str]], figures: Sequence[int], count: int) -> int | None:
    """The last of the columns at the left that name rows: of words, behind few codes; or one of years."""
    words = [
        column
        for column, texts in columns.items()
        if len(texts) >= _FEW * count and sum(map(_is_word, texts)) >= _MOST * len(texts)
    ]
    labels = [column for column in words if sum(figure < column for figure in figures) <= _CODES]
    if labels:
        return max(labels)
    if figures and sum(map(_is_dated, columns[figures[0]])) >= _NAMED * count:
        return figures[0]
    return None


def _reach(columns: Sequence[int], start: int) -> tuple[int, int]:
    """The first and the last of the columns around one between which few empty ones stand."""
    left = right = start
    for column in reversed([column for column in columns if column < start]):
        if left - column - 1 > _EMPTY_COLUMNS:
            break
        left = column
    for column in (column for column in columns if column > start):
        if column - right - 1 > _EMPTY_COLUMNS:
            break
        right = column
    return left, right


def _names_above(
    first: int, area: Area, figures: Sequence[int], texts: Texts, spans: Mapping[tuple[int, int], Area]
) -> tuple[int, int] | None:
    """The first and the last of the rows above `first` that name columns of figures; None where most have no name."""
    covered: set[int] = set()
    name_rows: list[int] = []
    empty = 0
    for row in range(first - 1, max(area.top, first - _HEADER_ROWS - _EMPTY_ROWS) - 1, -1):
        has_most = len(covered) >= _NAMED * len(figures)
        row_texts = {column: text for column, text in texts.get(row, {}).items() if area.left <= column <= area.right}
        boxes = [(spans.get((row, column), Area(row, column, row, column)), text) for column, text in row_texts.items()]
        over = [(box, text) for box, text in boxes if figures[0] <= box.right and box.left <= figures[-1]]
        if not over:
            empty += 1
            if empty > (_EMPTY_HEADER_ROWS if has_most else _EMPTY_ROWS):
                break
            continue
        if _holds_figures(list(row_texts.values())):
            break
        columns = {column for column in figures if any(box.left <= column <= box.right for box, _ in over)}
        if not _are_names(over, columns, figures, is_above=has_most):
            if has_most:
                break
            continue
        if not all(is_unit(text) or is_unit(f"({text})") for _, text in over):
            covered |= columns
        name_rows.append(row)
        empty = 0
    return (name_rows[-1], name_rows[0]) if len(covered) >= _NAMED * len(figures) else None


def _are_names(
    over: Sequence[tuple[Area, str]], columns: Collection[int], figures: Sequence[int], *, is_above: bool
) -> bool:
    """Whether texts over columns of figures name them, or, `is_above` such names, groups of them: no title and no note
    on the unit of all.
    """
    if any(len(text) > _NAME_CHARS or kind_of(text) is Kind.SENTENCE for _, text in over):
        return False
    if is_above and any(is_unit(text) for _, text in over):
        return False
    if len(over) > 1:
        touch = any(later.left - earlier.left < 2 for (earlier, _), (later, _) in pairwise(over))
        is_title = touch and any(len(text) > _LONG_NAME_CHARS for _, text in over)  # in several cells
        return not (is_above and is_title and len(columns) < _NAMED * len(figures))
    box, text = over[0]
    return len(columns) > 1 and box.left > figures[0] - _EMPTY_COLUMNS and not is_unit(text)
