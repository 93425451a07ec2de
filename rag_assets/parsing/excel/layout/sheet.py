"""Blocks of a sheet's cells: which cells make tables, and which are texts around them."""

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from statistics import median

from rag_assets.contracts.causes import BlockKind
from rag_assets.contracts.content import Block, Row
from rag_assets.parsing.excel.cells import Area, SheetCells, Texts, block_area, parse_area
from rag_assets.parsing.excel.layout.bands import Box, make_bands, split_bands, titles_names
from rag_assets.parsing.excel.layout.captions import is_unit
from rag_assets.parsing.excel.layout.rooms import Floor, Room, find_rooms
from rag_assets.parsing.excel.layout.tables import table_block, text_line
from rag_assets.parsing.excel.layout.text import is_heading, is_title_row, line_block, outside_blocks
from rag_assets.parsing.excel.workbook import Look

_GRAPH_PAPER_CHARS = 4.5
_GRAPH_PAPER_GAP = 10
_TEXT_AREA_TEXTS = 12
_LARGE_ROWS = 2_000
_SAMPLE_ROWS = 500
_DEFAULT_WIDTH_CHARS = 8.4
_TITLE_POINTS = 14
_NAME = re.compile(r"[^\W\d_]{2}")


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
        area = parse_area(row.cell_range or "")
        if area is None:
            continue
        shown = {column: text for column, text in texts.get(area.top, {}).items() if area.left <= column <= area.right}
        if len(shown) == width and tuple(shown.values()) == row.cells:
            return sorted(shown)
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
        lines.append(text_line(values))
    label = Area(area.top, min(left, area.left), max(cells.texts), right).label
    return replace(block, text="\n".join(lines), cell_range=label, rows=tuple(rows))


def _layout(cells: SheetCells) -> list[Block]:
    floor = find_rooms(cells)
    groups: list[list[Box]] = []
    taken: set[tuple[int, int]] = set()
    for numbers in floor.tables:
        rooms = [floor.rooms[number] for number in numbers]
        # A room with many texts is a page or an area with a layout of its own rather than a value.
        most = _TEXT_AREA_TEXTS if len(rooms) > 1 else 2
        rooms = [room for room in rooms if len(room.texts) < most]
        if any(room.texts for room in rooms):
            taken.update(position for room in rooms for position in room.texts)
            groups.append([_room_box(cells, piece) for room in rooms for piece in _pieces(floor, room)])
    merges = {(area.top, area.left): area for area in cells.merges}
    free: dict[int, list[Box]] = {}
    enclosed: dict[int, list[Box]] = {}
    for row, texts in cells.texts.items():
        for column in texts:
            if (row, column) not in taken:
                box = _cell_box(cells, row, column, merges)
                room = floor.room_at(row, column)
                (free if room is None else enclosed).setdefault(row if room is None else room, []).append(box)
    blocks = [block for group in groups for block in _table_blocks(adopt(group, free))]
    for boxes in enclosed.values():
        blocks.extend(outside_blocks(boxes, _GRAPH_PAPER_GAP))
    outside = [box for boxes in free.values() for box in boxes]
    tables = [block_area(block) for block in blocks if block.kind is BlockKind.TABLE]
    return [*blocks, *outside_blocks(outside, _gap_columns(cells), tables)]


def adopt(boxes: list[Box], free: dict[int, list[Box]]) -> list[Box]:
    """Add to a table the texts that belong to it though its lines do not enclose them.

    These are texts within its area, and in rows that touch it from below or above and stand in its columns: data
    without lines under names with lines, names above data with lines. What is added is taken out of `free`.
    """
    top, left, bottom, right = Area.around(box.area for box in boxes)
    lefts = {box.area.left for box in boxes}
    names = sorted((box for box in boxes if box.area.top == top and box.text), key=lambda box: box.area)
    added: list[Box] = []

    def take(row: int, least: int) -> bool:
        row_boxes = [box for box in free.get(row, ()) if left <= box.area.left <= right]
        if len(row_boxes) < least or (least and any(box.area.left not in lefts for box in row_boxes)):
            return False
        if row < top and is_title_row(row_boxes, names):
            return False
        added.extend(row_boxes)
        free[row] = [box for box in free.get(row, ()) if not left <= box.area.left <= right]
        return True

    for row in range(top, bottom + 1):
        take(row, 0)
    if len(lefts) > 1:
        least = 1 if len({box.area.top for box in boxes}) == 1 else 2
        while take(bottom + 1, least):
            bottom = max(bottom + 1, *(box.area.bottom for box in added))
        take(top - 1, 2)
    return boxes + added


def _table_blocks(boxes: Sequence[Box]) -> list[Block]:
    filled = [box for box in boxes if box.text]
    if len(filled) == 1:
        kind = BlockKind.HEADING if is_heading(filled) else BlockKind.PARAGRAPH
        return [line_block(kind, filled)]
    blocks: list[Block] = []
    for number, part in enumerate(split_bands(make_bands(boxes))):
        if len(part) > 1 and not any(box.fill for box in part[0].boxes):
            line, below = part[0].text_boxes, part[1].text_boxes
            if is_title_row(line, below):
                blocks.append(line_block(BlockKind.HEADING, line))
                del part[0]
            elif len(line) == 1 < len(below) and (
                is_unit(line[0].text) or (number and len(part) > 2 and len(part[0].boxes) == 1)
            ):
                blocks.append(line_block(BlockKind.PARAGRAPH, line))
                del part[0]
        title: tuple[str, ...] = ()
        if titles_names(part):
            blocks.append(line_block(BlockKind.CAPTION, part.pop(0).boxes))
            title = (blocks[-1].text,)
        titles = [box for band in part for box in band.text_boxes]
        if len(titles) == 1 and is_heading(titles):
            blocks.append(line_block(BlockKind.HEADING, titles))
        else:
            table = table_block(part)
            blocks.extend([] if table is None else [replace(table, section=title)])
    return blocks


def _pieces(floor: Floor, room: Room) -> list[Room]:
    """A room as one, or in parts where its first text stands in a bay of it.

    Where a line was left out between a name and an empty place beside the name above, their room reaches around names
    that have lines of their own.
    """
    number = floor.room_at(*room.texts[0]) if room.texts and not room.rectangular else None
    if number is None:
        return [room]
    pieces = []
    for area in floor.parts(number):
        texts = tuple(position for position in room.texts if area.holds(*position))
        if room.texts[0] in texts and (area.left, area.right) == (room.area.left, room.area.right):
            return [room]
        pieces.append(Room(area, area.cells, texts))
    return pieces


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
