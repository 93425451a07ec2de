"""Blocks of a sheet's cells: which cells make drawn tables; and of the texts around them headings, paragraphs, items of
lists and tables without lines.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence, Set
from dataclasses import replace
from itertools import accumulate, islice
from statistics import median
from typing import NamedTuple

from rag_assets.contracts.causes import BlockKind
from rag_assets.contracts.content import Block, Row
from rag_assets.parsing.excel.cells import SheetCells, Texts, block_area
from rag_assets.parsing.excel.layout.bands import Band, Box, begin_with_title, make_bands, split_bands, titles_names
from rag_assets.parsing.excel.layout.continuations import join_continuations
from rag_assets.parsing.excel.layout.figures import figure_tables
from rag_assets.parsing.excel.layout.rooms import TEXT_AREA_TEXTS, Floor, Room, find_rooms, with_missing_lines
from rag_assets.parsing.excel.layout.sections import CAPTION_CHARS, CAPTION_ROWS, is_title_line, is_unit, states_value
from rag_assets.parsing.excel.layout.tables import count_rows_above, count_titles, figure_rows, table_block
from rag_assets.parsing.excel.workbook import Look
from rag_assets.parsing.flow import row_text
from rag_assets.parsing.geometry import Sets
from rag_assets.parsing.names import is_attribute, is_generic, is_name, is_number, is_series, names_value
from rag_assets.text.cells import Area, parse_area
from rag_assets.text.scripts import ITEM_LETTERS

_GRAPH_PAPER_CHARS = 4.5
_GRAPH_PAPER_GAP = 10
_LEAST_ROWS = 4  # of a table, beside which a column may go along with them
_NAMED = 0.3  # share of the rows in which a column with a name has texts
_MARK_CHARS, _MARK_COLUMNS = 2, 2  # of signs beside a table
_NO_MARKS = frozenset("→⇒⇨➡←⇐⬅↔⇔↑↓⇑⇓⬆⬇▶◀►◄-‐–—―−－/／")  # arrows between boxes, and what stands for nothing
_HEADS = 4  # names of columns, from which what stands below them is of their table
_TRIED_ROWS = 5  # that may name the columns of a table below them
_SPACED_ROWS = 4  # of columns with several empty ones between them
_ALIGNED, _VALUES = 0.8, 0.8  # shares of the rows of numbers that words name, and of their texts that are numbers
_LARGE_ROWS = 2_000
_SAMPLE_ROWS = 500
_DEFAULT_WIDTH_CHARS = 8.4
_TITLE_POINTS = 14
_NAME = re.compile(r"[^\W\d_]{2}")

# Texts outside of drawn tables.
_NUMBERED = re.compile(
    r"(?:\d{1,3}(?:[.．]\d{1,3})+[.．]?|\d{1,3}[.．]|第[\d一二三四五六七八九十]{1,3}[章節部条項]|[（(]\d{1,3}(?:[-.]\d{1,3})*[)）]"
    r"|設?問\s?\d{1,3}(?:[-－]\d{1,2})?(?=[\s　.．:：、]))[\s　]*(?=\S)(?![\d,])"
)
_MARKED = re.compile(r"[■□●◆◇▼▽★【＜〈《]")
_REMARK = re.compile("≪[^≫]*(?:回答|単位|再掲)[^≫]*≫")
_LISTED = re.compile(rf"(?:[・※*•]|[-‐–][\s　]|[①-⑳]|[（(]?[0-9{ITEM_LETTERS}]{{1,2}}[)）.．](?!\d))[\s　]*\S")
_VERSION = re.compile(r"(?:第|ver|version|rev)?[\s.]*[\d.．]+\s*版?$", re.IGNORECASE)
_NOTES = ("※", "*", "注", "（注", "(注")
_SENTENCE_END = ("。", "．", "、", "，", ":", "：", ";")
_HEADING_CHARS = 60


def cell_blocks(cells: SheetCells) -> list[Block]:
    """Blocks made of a sheet's cells, without sections, in no particular order.

    The layout of a long list is taken from its first rows.
    """
    if len(cells.texts) <= _LARGE_ROWS:
        return _layout(cells)
    sample = dict(islice(cells.texts.items(), _SAMPLE_ROWS))
    last = max(sample)
    looks = {row: row_looks for row, row_looks in cells.looks.items() if row <= last}
    merges = tuple(area for area in cells.merges if area.bottom <= last)
    blocks = _layout(SheetCells(sample, looks, merges, cells.column_widths))
    for index, block in enumerate(blocks):
        if block.kind is BlockKind.TABLE and block_area(block).bottom == last and len(block.rows) > 1:
            lefts = _column_lefts(block, sample)
            if lefts is not None:
                blocks[index] = _continue_table(block, lefts, cells, last)
                return blocks
    return _layout(cells)


def _column_lefts(block: Block, texts: Texts) -> list[int] | None:
    """Sheet columns of a table's columns, taken from a row that fills them all; None where no row does."""
    width = len(block.rows[0].cells)
    for row in block.rows:
        area = parse_area(row.cell_range)
        if area is None:
            continue
        row_texts = {
            column: text for column, text in texts.get(area.top, {}).items() if area.left <= column <= area.right
        }
        if len(row_texts) == width and tuple(row_texts.values()) == row.cells:
            return sorted(row_texts)
    return None


def _continue_table(block: Block, lefts: list[int], cells: SheetCells, last: int) -> Block:
    """A table from the sample of a long list, continued over all rows below the sample."""
    area, rows, lines = block_area(block), list(block.rows), [block.text]
    left, right = lefts[0], area.right
    for number, texts in cells.texts.items():
        if number <= last:
            continue
        values = [""] * len(lefts)
        for column, text in texts.items():
            place = max(0, bisect_right(lefts, column) - 1)
            values[place] = f"{values[place]} {text}".strip()
            left, right = min(left, column), max(right, column)
        rows.append(Row(tuple(values), Area(number, min(left, area.left), number, right).label))
        lines.append(row_text(values))
    label = Area(area.top, min(left, area.left), max(cells.texts), right).label
    return replace(block, text="\n".join(lines), cell_range=label, rows=tuple(rows))


def _layout(cells: SheetCells) -> list[Block]:
    blocks = _blocks(cells)
    tables = figure_tables(blocks, cells)
    if not tables:
        return blocks
    floor = find_rooms(cells)
    merges = {(area.top, area.left): area for area in cells.merges}
    rest: Texts = {}
    boxes: list[list[Box]] = [[] for _ in tables]
    for row, texts in cells.texts.items():
        for column, text in texts.items():
            number = next((number for number, table in enumerate(tables) if table.area.holds(row, column)), None)
            if number is None:
                rest.setdefault(row, {})[column] = text
                continue
            box = _cell_box(cells, row, column, merges)
            room = floor.enclosing(row, column)
            if row <= tables[number].names and room and room.rectangular and len(room.texts) == 1:
                box = replace(box, area=room.area._replace(top=row))  # names of groups of columns in drawn cells
            boxes[number].append(box)
    figures = (table.block(table_boxes) for table, table_boxes in zip(tables, boxes, strict=True))
    return [*_blocks(replace(cells, texts=rest)), *(block for block in figures if block is not None)]


def _blocks(cells: SheetCells) -> list[Block]:
    floor = find_rooms(cells)
    groups: list[list[Box]] = []
    taken_places: set[tuple[int, int]] = set()
    released_places: set[tuple[int, int]] = set()
    for numbers in floor.tables:
        rooms = with_missing_lines([floor.rooms[number] for number in numbers], cells.texts)
        # A room with many texts is a page or an area with a layout of its own rather than a value.
        most = TEXT_AREA_TEXTS if len(rooms) > 1 else 2
        rooms = [room for room in rooms if len(room.texts) < most]
        if _is_column_of_wider(rooms, floor, cells.texts):
            released_places.update(position for room in rooms for position in room.texts)
        elif any(room.texts for room in rooms):
            taken_places.update(position for room in rooms for position in room.texts)
            groups.append([_room_box(cells, piece) for room in rooms for piece in _pieces(floor, room)])
    merges = {(area.top, area.left): area for area in cells.merges}
    free: dict[int, list[Box]] = {}
    boxes_by_room: dict[int, list[Box]] = {}
    for row, texts in cells.texts.items():
        for column in texts:
            if (row, column) not in taken_places:
                box = _cell_box(cells, row, column, merges)
                room = None if (row, column) in released_places else floor.room_at(row, column)
                (free if room is None else boxes_by_room).setdefault(row if room is None else room, []).append(box)
    blocks = [block for group in groups for block in _table_blocks(_adopt(group, free))]
    for boxes in boxes_by_room.values():
        blocks.extend(_outside_blocks(boxes, _GRAPH_PAPER_GAP))
    outside = [box for boxes in free.values() for box in boxes]
    tables = [block_area(block) for block in blocks if block.kind is BlockKind.TABLE]
    return join_continuations([*blocks, *_outside_blocks(outside, _gap_columns(cells), tables)], cells)


def _is_column_of_wider(rooms: Sequence[Room], floor: Floor, texts: Texts) -> bool:
    """Whether drawn cells are one column of a table whose others have no lines: one that touches it has texts in most
    of its rows, which are not notes.
    """
    rows = {row for room in rooms for row, _ in room.texts}
    columns = {column for room in rooms for column in (room.area.left, room.area.right)}
    if len(columns) != 1 or len(rows) < _LEAST_ROWS:
        return False
    column = columns.pop()
    for beside in (column - 1, column + 1):
        others = [texts[row][beside] for row in rows if beside in texts[row] and floor.room_at(row, beside) is None]
        if len(others) >= _ALIGNED * len(rows) and 2 * sum(text.startswith(_NOTES) for text in others) <= len(others):
            return True
    return False


def _adopt(boxes: list[Box], free: dict[int, list[Box]]) -> list[Box]:
    """Add to a table the texts that belong to it though its lines do not enclose them.

    These are texts within its area, in rows that touch it from below or above and stand in its columns (data without
    lines under names with lines, names above data with lines), and in columns that touch it and go along with its rows,
    as the names of the rows of an open table. What is added is taken out of `free`.
    """
    top, left, bottom, right = Area.around(box.area for box in boxes)
    lefts = {box.area.left for box in boxes}
    names = sorted((box for box in boxes if box.area.top == top and box.text), key=lambda box: box.area)
    added_boxes: list[Box] = []

    def take(row: int, least: int) -> bool:
        row_boxes = [box for box in free.get(row, ()) if left <= box.area.left <= right]
        if len(row_boxes) < least or (least and any(box.area.left not in lefts for box in row_boxes)):
            return False
        if row < top and _is_title_row(row_boxes, names):
            return False
        added_boxes.extend(row_boxes)
        free[row] = [box for box in free.get(row, ()) if not left <= box.area.left <= right]
        return True

    for row in range(top, bottom + 1):
        take(row, 0)
    if len(lefts) > 1:
        for mark in _marks_beside(Area(top, left, bottom, right), free):
            added_boxes.append(mark)
            free[mark.area.top].remove(mark)
        least = 1 if len({box.area.top for box in boxes}) == 1 else 2
        while take(bottom + 1, least):
            bottom = max(bottom + 1, *(box.area.bottom for box in added_boxes))
        take(top - 1, 2)
        added_boxes += _columns_beside(boxes + added_boxes, free)
    return boxes + added_boxes


def _columns_beside(boxes: Sequence[Box], free: dict[int, list[Box]]) -> list[Box]:
    """Texts of columns that touch a table and go along with its rows, taken out of `free`; on a side where more than
    the table has go on, they are of a table of their own.
    """
    tops = sorted({box.area.top for box in boxes if box.text})
    area = Area.around(box.area for box in boxes)
    width = len({box.area.left for box in boxes if box.text})
    near = [box for row in range(area.top, area.bottom + 1) for box in free.get(row, ())]
    added_boxes: list[Box] = []
    for step in (-1, 1):
        end, beside = area.left if step < 0 else area.right, []
        while column := [box for box in near if (box.area.right if step < 0 else box.area.left) == end + step]:
            around = Area.around(box.area for box in column)
            below = [box.text for box in free.get(area.bottom + 1, ()) if box.area.left == around.left]
            goes_on = around.bottom > area.bottom or any(_is_more_of(text, column) for text in below)
            if goes_on or not _goes_along(column, tops, is_right=step > 0):
                break
            beside.append(column)
            end = around.left if step < 0 else around.right
        if len(beside) <= width:
            added_boxes += [box for column in beside for box in column]
    for box in added_boxes:
        free[box.area.top].remove(box)
    return added_boxes


def _goes_along(column: Sequence[Box], tops: Sequence[int], *, is_right: bool) -> bool:
    """Whether texts of a column stand in most rows of a table; right of the table in fewer where one above them names
    it, and not where all are the same sign, which says nothing of a row.
    """
    rows = {row for box in column for row in range(box.area.top, box.area.bottom + 1)}
    is_named = is_right and any(box.area.top == tops[0] and is_name(box.text) for box in column)
    if len(tops) < _LEAST_ROWS or (is_right and not is_named and len({box.text for box in column}) == 1):
        return False
    return len(rows.intersection(tops)) >= (_NAMED if is_named else _ALIGNED) * len(tops)


def _is_more_of(text: str, column: Sequence[Box]) -> bool:
    """Whether a text below a column may be one more of its texts: no note, and no longer than they are."""
    return not text.startswith(_NOTES) and len(text) <= max(len(box.text) for box in column)


def _marks_beside(table: Area, free: dict[int, list[Box]]) -> list[Box]:
    """Signs in columns beside a table that hold nothing else, and what is above these in its first row; not where texts
    follow further out, of a key or of another table.
    """
    top, left, bottom, right = table
    columns: dict[int, list[Box]] = {}
    for row in range(top + 1, bottom + 1):
        for box in free.get(row, ()):
            columns.setdefault(box.area.left, []).append(box)
    marks = {
        column: boxes for column, boxes in columns.items() if all(_is_mark_beside(box, left, right) for box in boxes)
    }
    texts = [box for column, boxes in columns.items() if column not in marks for box in boxes]
    for column in list(marks):
        rows = {box.area.top for box in marks[column]}
        begin, end = (column - _MARK_COLUMNS, left - 1) if column < left else (right + 1, column + _MARK_COLUMNS)
        if any(box.area.top in rows and begin <= box.area.right and box.area.left <= end for box in texts):
            del marks[column]
    names = [box for box in free.get(top, ()) if box.area.left in marks]
    return [*names, *(box for boxes in marks.values() for box in boxes)]


def _is_mark_beside(box: Box, left: int, right: int) -> bool:
    """Whether a sign without letters and digits stands beside the columns of a table."""
    near = left - _MARK_COLUMNS <= box.area.left < left or right < box.area.left <= right + _MARK_COLUMNS
    is_sign = len(box.text) <= _MARK_CHARS and not any(map(str.isalnum, box.text))
    return near and is_sign and not _NO_MARKS.intersection(box.text)


def _table_blocks(boxes: Sequence[Box]) -> list[Block]:
    filled_boxes = [box for box in boxes if box.text]
    if len(filled_boxes) == 1:
        kind = BlockKind.HEADING if _is_heading(filled_boxes) else BlockKind.PARAGRAPH
        return [_line_block(kind, filled_boxes)]
    blocks: list[Block] = []
    for number, part in enumerate(_parts(make_bands(boxes))):
        if len(part) > 1 and not any(box.fill for box in part[0].boxes):
            line, below = part[0].text_boxes, part[1].text_boxes
            if _is_title_row(line, below):
                blocks.append(_line_block(BlockKind.HEADING, line))
                del part[0]
            elif len(line) == 1 < len(below) and (
                is_unit(line[0].text) or (number and len(part) > 2 and len(part[0].boxes) == 1)
            ):
                blocks.append(_line_block(BlockKind.PARAGRAPH, line))
                del part[0]
        title: tuple[str, ...] = ()
        while titles_names(part) or begin_with_title(part):
            block = _title_block(part.pop(0))
            blocks.append(block)
            title = (*title, block.text) if block.kind is BlockKind.CAPTION else title
        named_rows = figure_rows(part)
        is_named = named_rows is not None and named_rows[0] == 0
        if above := 0 if is_named else count_rows_above(part):
            form = table_block(part[:above])
            blocks.extend([] if form is None else [form])
            del part[:above]
        for _ in range(0 if is_named else count_titles(part)):
            if line := part.pop(0).text_boxes[:1]:
                blocks.append(_line_block(BlockKind.CAPTION, line))
                title = (*title, blocks[-1].text)
        titles = [box for band in part for box in band.text_boxes]
        if len(titles) == 1 and _is_heading(titles):
            blocks.append(_line_block(BlockKind.HEADING, titles))
        else:
            table = table_block(part)
            blocks.extend([] if table is None else [replace(table, section=title)])
    return blocks


def _parts(bands: list[Band]) -> list[list[Band]]:
    """Rows of tables that touch, table by table; the rows that name the columns of figures go with these."""
    named_rows = figure_rows(bands)
    if named_rows is None:
        return split_bands(bands)
    start, first = named_rows
    figures, *below = split_bands(bands[first:])
    return [*(split_bands(bands[:start]) if start else []), [*bands[start:first], *figures], *below]


def _title_block(band: Band) -> Block:
    block = _line_block(BlockKind.CAPTION, band.text_boxes)
    short = len(band.texts[0]) <= CAPTION_CHARS and "\n" not in band.texts[0]
    return block if short else replace(block, kind=BlockKind.PARAGRAPH)


def _pieces(floor: Floor, room: Room) -> list[Room]:
    """A room as one, or in parts where its first text stands in a bay of it, or several parts hold texts.

    Where a line was left out between a name and an empty place beside the name above, or between a title and the name
    of the first column below it, their room reaches around names that have lines of their own.
    """
    number = floor.room_at(*room.texts[0]) if room.texts and not room.rectangular else None
    if number is None:
        return [room]
    pieces = []
    for area in floor.parts(number):
        texts = tuple(position for position in room.texts if area.holds(*position))
        pieces.append(Room(area, area.cells, texts))
    first = next(piece.area for piece in pieces if room.texts[0] in piece.texts)
    if (first.left, first.right) != (room.area.left, room.area.right):
        return pieces
    return _head_of_rows(pieces) or (pieces if sum(bool(piece.texts) for piece in pieces) > 1 else [room])


def _head_of_rows(pieces: Sequence[Room]) -> list[Room]:
    """The name of a group of rows, which has a row of its own and goes on down the left of the others, as a room beside
    these, and the rest of its row; nothing where the pieces of a room are no such name.
    """
    first, *rest = pieces
    if not rest or any(piece.texts for piece in rest) or first.area.top < first.area.bottom:
        return []
    top, left, _, right = first.area
    end = min(piece.area.right for piece in rest)
    if any(piece.area.left != left for piece in rest) or any(column > end for _, column in first.texts):
        return []
    rooms = (Area(top, left, rest[-1].area.bottom, end), Area(top, end + 1, top, right))
    return [Room(area, area.cells, texts) for area, texts in zip(rooms, (first.texts, ()), strict=True)]


def _room_box(cells: SheetCells, room: Room) -> Box:
    lines: dict[int, list[str]] = {}
    for row, column in room.texts:
        lines.setdefault(row, []).append(cells.texts[row][column])
    corner = (room.area.top, room.area.left)
    look = cells.look(*(room.texts[0] if room.texts else corner))
    texts = [" ".join(line) for line in lines.values()]
    if len(set(texts)) == 1 and _NAME.search(texts[0]):  # a name that is written in each row of its room
        texts = texts[:1]
    text = "\n".join(texts)
    behind = cells.look(*corner).fill if room.rectangular else None
    return Box(room.area, text, look.fill or behind, _stands_out(look))


def _cell_box(cells: SheetCells, row: int, column: int, merges: dict[tuple[int, int], Area]) -> Box:
    look = cells.look(row, column)
    area = merges.get((row, column), Area(row, column, row, column))
    return Box(area, cells.texts[row][column], look.fill, _stands_out(look))


def _stands_out(look: Look) -> bool:
    return look.bold or look.size >= _TITLE_POINTS


def _gap_columns(cells: SheetCells) -> int:
    """Empty columns that texts of one line may have between them: many on graph paper, none elsewhere."""
    columns = {column for texts in cells.texts.values() for column in texts}
    widths = [cells.column_widths.get(column, _DEFAULT_WIDTH_CHARS) for column in columns]
    return _GRAPH_PAPER_GAP if widths and median(widths) < _GRAPH_PAPER_CHARS else 0


def _outside_blocks(boxes: Sequence[Box], gap_columns: int, tables: Iterable[Area] = ()) -> list[Block]:
    """Blocks from texts outside drawn tables.

    Args:
        boxes: Their boxes, all with text.
        gap_columns: Empty columns that two texts of one block may have between them.
        tables: Drawn tables: a text above one and a text above another are not of one line.
    """
    groups = _group_boxes(boxes, gap_columns, tables)
    if gap_columns == 0:
        groups = _with_labels(_join_spaced_columns(groups))
    return [block for group in groups for block in _group_blocks(group)]


class _Columns(NamedTuple):
    """Groups of boxes that are columns of one table, from right to left, and whether names of fields stand above."""

    groups: list[list[Box]]
    area: Area
    rows: frozenset[int]
    named: bool

    @classmethod
    def of(cls, group: list[Box]) -> "_Columns":
        area = Area.around(box.area for box in group)
        rows = frozenset(box.area.top for box in group)
        is_named = any(box.area.top == area.top and _names_field(box.text) for box in group)
        return cls([group], area, rows, is_named)

    def after(self, left: "_Columns") -> "_Columns":
        """These with one more to their left."""
        area = Area.around((left.area, self.area))
        return _Columns([*self.groups, *left.groups], area, self.rows, self.named or left.named)


def _join_spaced_columns(groups: list[list[Box]]) -> list[list[Box]]:
    """Join groups of the same rows that empty columns part, where one is a single column: one empty column, or, below
    names of fields, as many as a long text runs over. A title may stand above the first.
    """
    by_bottom: dict[int, list[_Columns]] = {}
    for group in reversed(groups):
        columns = _Columns.of(group)
        members = by_bottom.setdefault(columns.area.bottom, [])
        if members and _goes_on(columns, members[-1]):
            members[-1] = members[-1].after(columns)
        else:
            members.append(columns)
    joined_columns = [members for columns in by_bottom.values() for members in columns]
    return [[box for group in reversed(columns.groups) for box in group] for columns in reversed(joined_columns)]


def _goes_on(group: _Columns, right: _Columns) -> bool:
    """Whether a group of boxes goes on in others to its right that end in the same row."""
    left_area, right_area = group.area, right.area
    if right_area.bottom == right_area.top or (
        left_area.left < left_area.right and right_area.left < right_area.right and len(right.groups) == 1
    ):
        return False
    gap = right_area.left - left_area.right - 1
    if gap == 1 and left_area.top == right_area.top:
        return True
    group_rows = {row for row in group.rows if row >= right_area.top}
    names = right.named or any(box.area.top == right_area.top and _names_field(box.text) for box in group.groups[0])
    words = any(not is_number(box.text) for box in right.groups[-1] if box.area.top > right_area.top)
    return (
        0 < gap <= _GRAPH_PAPER_GAP and names and words and len(group_rows) >= _SPACED_ROWS and group_rows == right.rows
    )


def _names_field(text: str) -> bool:
    return is_attribute(text) or is_generic(text) or names_value(text)


def _with_labels(groups: list[list[Box]]) -> list[list[Box]]:
    """Join groups of numbers with the words to their left that name their rows, and with what stands between them; and
    what stands apart below names of columns with these.
    """
    areas = [Area.around(box.area for box in group) for group in groups]
    word_rows: list[set[int]] = []  # of each group the rows that hold words alone
    at_row: dict[int, list[int]] = {}
    for index, group in enumerate(groups):
        numbers = {box.area.top for box in group if is_number(box.text)}
        word_rows.append({box.area.top for box in group} - numbers)
        for row in word_rows[-1]:
            at_row.setdefault(row, []).append(index)
    sets = Sets(len(groups))
    for at in at_row.values():
        at.sort(key=lambda index: areas[index].right)
    for index, group in enumerate(groups):
        rows, left = _rows_of_numbers(group), areas[index].left
        near = at_row.get(rows[0], []) if rows else []
        reach = (left - _GRAPH_PAPER_GAP - 2, left - 1)
        first, last = (bisect_right(near, column, key=lambda neighbour: areas[neighbour].right) for column in reach)
        labels = (
            neighbour
            for neighbour in reversed(near[first:last])
            if len(word_rows[neighbour].intersection(rows)) >= _ALIGNED * len(rows)
        )
        if (label := next(labels, None)) is not None:
            sets.union(index, label)
    order = sorted(range(len(groups)), key=areas.__getitem__)
    for members in sets.groups():
        around = Area.around(areas[index] for index in members)
        boxes = [box for index in members for box in groups[index]]
        lefts: dict[int, set[int]] = {}
        for box in boxes:
            lefts.setdefault(box.area.top, set()).add(box.area.left)
        heads = max(lefts.values(), key=len)
        if len(members) < 2 and len(heads) < _HEADS:
            continue
        ends = (around.top - 1, around.bottom)
        first, last = (bisect_right(order, row, key=lambda index: areas[index].top) for row in ends)
        for index in order[first:last]:
            within = around.holds(*areas[index][:2]) and around.holds(*areas[index][2:])
            if within and (len(members) > 1 or heads.issuperset(box.area.left for box in groups[index])):
                sets.union(members[0], index)
    return [[box for index in members for box in groups[index]] for members in sets.groups()]


def _rows_of_numbers(group: Sequence[Box]) -> list[int]:
    """The rows of a group of numbers, which nothing in it names, below the names of its columns; none of others, and of
    one whose first column counts its rows.
    """
    top = min(box.area.top for box in group)
    rows = sorted({box.area.top for box in group if is_number(box.text)})
    below = [box for box in group if box.area.top > top or is_number(box.text)]
    numbers = sum(is_number(box.text) for box in below)
    if numbers < 2 or numbers < _VALUES * len(below):
        return []
    left = min(box.area.left for box in group)
    keys = [box.text for box in sorted(below, key=lambda box: box.area) if box.area.left == left]
    return [] if len(below) < len(group) and is_series(keys) else rows


class _Run(NamedTuple):
    """Boxes of a line that stand together, by number, and the table that the first of them stands above."""

    left: int
    right: int
    bottom: int
    number: int
    table: Area | None


def _group_boxes(boxes: Sequence[Box], gap_columns: int, tables: Iterable[Area] = ()) -> list[list[Box]]:
    """Group boxes that stand in the same or in touching rows, with few empty columns between them."""
    below: dict[int, list[Area]] = {}
    for table in sorted(tables, key=lambda table: table.left):
        for row in range(table.top - CAPTION_ROWS, table.top):
            below.setdefault(row, []).append(table)
    sets = Sets()
    all_members: list[list[Box]] = []
    above: list[_Run] = []
    for band in make_bands(boxes) if boxes else []:
        open_runs = sorted((run for run in above if run.bottom >= band.top - 1), key=lambda run: run.left)
        lefts = [run.left for run in open_runs]
        reach = list(accumulate((run.right for run in open_runs), max))
        tables_below = below.get(band.bottom, ())
        runs = []
        for members in _runs(band.starting, gap_columns, tables_below):
            area = Area.around(box.area for box in members)
            run = _Run(area.left, area.right, area.bottom, sets.add(), _table_below(members[0], tables_below))
            all_members.append(members)
            place = bisect_right(lefts, run.right + gap_columns)
            while place and reach[place - 1] >= run.left - gap_columns:
                place -= 1
                open_run = open_runs[place]
                if open_run.right >= run.left - gap_columns and not _apart(open_run.table, run.table):
                    sets.union(open_run.number, run.number)
            runs.append(run)
        above = [run for run in open_runs if run.bottom >= band.top] + runs
    return [[box for number in group for box in all_members[number]] for group in sets.groups()]


def _table_below(box: Box, tables: Sequence[Area]) -> Area | None:
    place = bisect_right(tables, box.area.left, key=lambda table: table.left) - 1
    return tables[place] if place >= 0 and box.area.left <= tables[place].right else None


def _apart(first: Area | None, second: Area | None) -> bool:
    """Whether two tables stand side by side."""
    return first is not None and second is not None and not first.shares_columns(second)


def _runs(boxes: Sequence[Box], gap_columns: int, below: Sequence[Area]) -> list[list[Box]]:
    runs: list[list[Box]] = []
    right = -1
    for box in boxes:
        is_parted = bool(runs and below) and _apart(_table_below(runs[-1][-1], below), _table_below(box, below))
        if runs and box.area.left - right - 1 <= gap_columns and not is_parted:
            runs[-1].append(box)
        else:
            runs.append([box])
        right = max(right, box.area.right) if len(runs[-1]) > 1 else box.area.right
    return runs


def _group_blocks(group: list[Box]) -> list[Block]:
    bands = make_bands(group)
    start = next((index for index, band in enumerate(bands) if len(band.starting) > 1), len(bands))
    if _is_marked_heading(bands[start : start + 2]):
        start += 1
    title: list[Block] = []
    above = bands[:start]
    if start + 1 < len(bands) and _is_title_row(bands[start].starting, bands[start + 1].starting):
        title = [_line_block(BlockKind.HEADING, bands[start].starting)]
        start += 1
    elif named_rows := figure_rows(bands[start:]):
        title = _lines(bands[start : start + named_rows[0]])
        start += named_rows[0]
    end = next((index for index in range(len(bands), start, -1) if not _is_note(bands[index - 1])), start)
    if not _is_table(bands[start:end]):
        named_at = _find_named(bands, start, end)
        named = None if named_at is None else table_block(bands[named_at:end], headers=1)
        return _lines(bands) if named is None else [*_lines(bands[:named_at]), named, *_lines(bands[end:])]
    tables = [block for part in _parts(bands[start:end]) for block in _unruled_blocks(part)]
    return [*_lines(above), *title, *tables, *_lines(bands[end:])]


def _is_marked_heading(bands: Sequence[Band]) -> bool:
    """Whether a row is a heading whose mark has a cell of its own, above a row that is no item with such a mark."""
    marks = [_MARKED.fullmatch(band.starting[0].text) for band in bands if band.starting]
    return bool(marks) and len(bands[0].starting) == 2 and [bool(mark) for mark in marks] in ([True], [True, False])


def _unruled_blocks(bands: list[Band]) -> list[Block]:
    """A table, and the text above it where the rows before the first full one hold one."""
    start = next((index for index, band in enumerate(bands) if len(band.starting) > 1), 0)
    if titles_names(bands[start:]):
        title = _title_block(bands[start])
        section = (title.text,) if title.kind is BlockKind.CAPTION else ()
        table = table_block(bands[start + 1 :])
        return [*_lines(bands[:start]), title] + ([] if table is None else [replace(table, section=section)])
    table = table_block(bands[start:])
    return _lines(bands) if table is None else [*_lines(bands[:start]), table]


def _is_title_row(boxes: Sequence[Box], below: Sequence[Box]) -> bool:
    """Whether a row above the names of columns is no part of the table: its title, and at the right end notes on it.

    Args:
        boxes: Boxes of the row that hold a text, left to right.
        below: Those of the row below.
    """
    if not 2 <= len(boxes) <= len(below) or not is_title_line([box.text for box in boxes]):
        return False
    names = [box.text for box in below]
    if len(boxes) == len(below) and not all(any(map(str.isalpha, text)) for text in (boxes[-1].text, *names)):
        return False  # as full as the row below, it may be the first of a list of words with dates
    title, note = boxes[0].area, boxes[-1].area
    if title.bottom >= below[0].area.top or note.right < below[-1].area.left:
        return False
    covered_count = sum(title.left <= box.area.left <= title.right for box in below)
    return title.left <= below[0].area.left or covered_count * 2 > len(below)


def _line_block(kind: BlockKind, boxes: Sequence[Box]) -> Block:
    """The block that the texts of a row make; notes beside a title hold for all that stands below, and go with it."""
    return Block(kind, " ".join(box.text for box in boxes), cell_range=Area.around(box.area for box in boxes).label)


def _is_note(band: Band) -> bool:
    return len(band.starting) == 1 and band.starting[0].text.startswith(_NOTES)


def _is_table(bands: list[Band]) -> bool:
    """Whether texts stand in columns: at least two rows and columns, and every other place taken."""
    if len(bands) < 2:
        return False
    lefts = {box.area.left for band in bands for box in band.starting}
    count = sum(len(band.starting) for band in bands)
    shared_count = len(set(bands[0].lefts) & {left for band in bands[1:] for left in band.lefts})
    is_filled = count >= 0.4 * len(lefts) * len(bands) or _names_columns(bands[0], lefts)
    return len(lefts) > 1 and shared_count > 1 and count >= 1.6 * len(bands) and is_filled


def _names_columns(band: Band, lefts: Set[int]) -> bool:
    """Whether a row has words above nearly all columns."""
    return len(band.starting) >= max(_HEADS, _ALIGNED * len(lefts)) and all(map(_is_word, band.texts))


def _find_named(bands: list[Band], start: int, end: int) -> int | None:
    """The first row behind `start` that names the columns of a table of all rows below it down to `end`."""
    lefts: set[int] = set()
    naming: list[int] = []
    for index in reversed(range(start + 1, end)):
        lefts.update(box.area.left for box in bands[index].starting)
        if end - index > _LEAST_ROWS and _names_columns(bands[index], lefts):
            naming.append(index)
    tried = islice(reversed(naming), _TRIED_ROWS)
    return next((index for index in tried if _is_table(bands[index:end])), None)


def _is_word(text: str) -> bool:
    return any(map(str.isalpha, text)) and not is_number(text)


def _lines(bands: list[Band]) -> list[Block]:
    """Headings, notes on units, and paragraphs of touching lines."""
    blocks: list[Block] = []
    open_lines: list[Band] = []
    for band in bands:
        if _is_heading(band.starting) or is_unit(_line(band)):
            blocks.extend(_paragraph(open_lines))
            open_lines = []
            kind = BlockKind.PARAGRAPH if is_unit(_line(band)) else BlockKind.HEADING
            blocks.append(_line_block(kind, band.starting))
        else:
            open_lines.append(band)
    return [*blocks, *_paragraph(open_lines)]


def _is_heading(boxes: Sequence[Box]) -> bool:
    """Whether a line of texts is a heading: short, one line, and numbered, marked or bold."""
    text = " ".join(box.text for box in boxes)
    if not boxes or len(text) > _HEADING_CHARS or "\n" in text or text.endswith(_SENTENCE_END) or len(boxes) > 2:
        return False
    if _NUMBERED.match(text) or _MARKED.match(text):
        return True
    if _VERSION.match(text) or _REMARK.fullmatch(text) or not any(sign.isalpha() for sign in text):
        return False
    return len(boxes) == 1 and boxes[0].bold and not _LISTED.match(text) and not states_value(text)


def _paragraph(bands: list[Band]) -> list[Block]:
    if not bands:
        return []
    lines = [_line(band) for band in bands]
    kind = BlockKind.LIST_ITEM if all(_LISTED.match(line) for line in lines) else BlockKind.PARAGRAPH
    label = Area.around(box.area for band in bands for box in band.starting).label
    return [Block(kind, "\n".join(lines), cell_range=label)]


def _line(band: Band) -> str:
    return " ".join(box.text for box in band.starting)
