"""Texts of a sheet that stand outside drawn tables: headings, paragraphs, list items and tables without lines."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple

from rag_assets.contracts.causes import BlockKind
from rag_assets.contracts.content import Block
from rag_assets.parsing.excel.cells import Area
from rag_assets.parsing.excel.layout.bands import Band, Box, make_bands, split_bands
from rag_assets.parsing.excel.layout.captions import CAPTION_ROWS, is_title_line, is_unit, states_value
from rag_assets.parsing.excel.layout.tables import table_block
from rag_assets.parsing.geometry import Sets
from rag_assets.text.scripts import ITEM_LETTERS

_NUMBERED = re.compile(
    r"(?:\d{1,3}(?:[.．]\d{1,3})+[.．]?|\d{1,3}[.．]|第[\d一二三四五六七八九十]{1,3}[章節部条項]|[（(]\d{1,3}(?:[-.]\d{1,3})*[)）])"
    r"[\s　]*(?=\S)(?![\d,])"
)
_MARKED = re.compile(r"[■□●◆◇▼▽★【＜〈《]")
_LISTED = re.compile(rf"(?:[・※*•]|[-‐–][\s　]|[①-⑳]|[（(]?[0-9{ITEM_LETTERS}]{{1,2}}[)）.．](?!\d))[\s　]*\S")
_VERSION = re.compile(r"(?:第|ver|version|rev)?[\s.]*[\d.．]+\s*版?$", re.IGNORECASE)
_SENTENCE_END = ("。", "．", "、", "，", ":", "：", ";")
_HEADING_CHARS = 60


def outside_blocks(boxes: Sequence[Box], gap_columns: int, tables: Iterable[Area] = ()) -> list[Block]:
    """Blocks from texts outside drawn tables.

    Args:
        boxes: Their boxes, all with text.
        gap_columns: Empty columns that two texts of one block may have between them.
        tables: Drawn tables: a text above one and a text above another are not of one line.
    """
    groups = group_boxes(boxes, gap_columns, tables)
    if gap_columns == 0:
        groups = _join_spaced_columns(groups)
    return [block for group in groups for block in _group_blocks(group)]


def _join_spaced_columns(groups: list[list[Box]]) -> list[list[Box]]:
    """Join groups that one empty column parts, where one is a single column and both cover the same rows."""
    by_rows: dict[tuple[int, int], list[tuple[Area, list[Box]]]] = {}
    for group in groups:
        area = Area.around(box.area for box in group)
        members = by_rows.setdefault((area.top, area.bottom), [])
        single = area.left == area.right or (members and members[-1][0].left == members[-1][0].right)
        if members and single and area.bottom > area.top and area.left - members[-1][0].right == 2:
            members[-1] = (area, members[-1][1] + group)
        else:
            members.append((area, group))
    return [group for members in by_rows.values() for _, group in members]


class _Run(NamedTuple):
    """Boxes of a line that stand together, by number, and the table that the first of them stands above."""

    left: int
    right: int
    bottom: int
    number: int
    table: Area | None


def group_boxes(boxes: Sequence[Box], gap_columns: int, tables: Iterable[Area] = ()) -> list[list[Box]]:
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
                other = open_runs[place]
                if other.right >= run.left - gap_columns and not _apart(other.table, run.table):
                    sets.union(other.number, run.number)
            runs.append(run)
        above = [run for run in open_runs if run.bottom >= band.top] + runs
    return [[box for number in group for box in all_members[number]] for group in sets.groups()]


def _table_below(box: Box, tables: Sequence[Area]) -> Area | None:
    place = bisect_right(tables, box.area.left, key=lambda table: table.left) - 1
    return tables[place] if place >= 0 and box.area.left <= tables[place].right else None


def _apart(one: Area | None, other: Area | None) -> bool:
    """Whether two tables stand side by side."""
    return one is not None and other is not None and not one.shares_columns(other)


def _runs(boxes: Sequence[Box], gap_columns: int, below: Sequence[Area]) -> list[list[Box]]:
    runs: list[list[Box]] = []
    right = -1
    for box in boxes:
        parted = bool(runs and below) and _apart(_table_below(runs[-1][-1], below), _table_below(box, below))
        if runs and box.area.left - right - 1 <= gap_columns and not parted:
            runs[-1].append(box)
        else:
            runs.append([box])
        right = max(right, box.area.right) if len(runs[-1]) > 1 else box.area.right
    return runs


def _group_blocks(group: list[Box]) -> list[Block]:
    bands = make_bands(group)
    start = next((index for index, band in enumerate(bands) if len(band.starting) > 1), len(bands))
    title: list[Block] = []
    above = bands[:start]
    if start + 1 < len(bands) and is_title_row(bands[start].starting, bands[start + 1].starting):
        title = [line_block(BlockKind.HEADING, bands[start].starting)]
        start += 1
    end = next((index for index in range(len(bands), start, -1) if not _is_note(bands[index - 1])), start)
    if not _is_table(bands[start:end]):
        return _lines(bands)
    tables = [block for part in split_bands(bands[start:end]) for block in _table_blocks(part)]
    return [*_lines(above), *title, *tables, *_lines(bands[end:])]


def _table_blocks(bands: list[Band]) -> list[Block]:
    """A table, and the text above it where the rows before the first full one hold one."""
    start = next((index for index, band in enumerate(bands) if len(band.starting) > 1), 0)
    table = table_block(bands[start:])
    return _lines(bands) if table is None else [*_lines(bands[:start]), table]


def is_title_row(boxes: Sequence[Box], below: Sequence[Box]) -> bool:
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
    covered = sum(title.left <= box.area.left <= title.right for box in below)
    return title.left <= below[0].area.left or covered * 2 > len(below)


def line_block(kind: BlockKind, boxes: Sequence[Box]) -> Block:
    """The block that the texts of a row make; notes beside a title hold for all that stands below, and go with it."""
    return Block(kind, " ".join(box.text for box in boxes), cell_range=Area.around(box.area for box in boxes).label)


def _is_note(band: Band) -> bool:
    return len(band.starting) == 1 and band.starting[0].text.startswith(("※", "*", "注", "（注", "(注"))


def _is_table(bands: list[Band]) -> bool:
    """Whether texts stand in columns: at least two rows and columns, and every other place taken."""
    if len(bands) < 2:
        return False
    lefts = {box.area.left for band in bands for box in band.starting}
    count = sum(len(band.starting) for band in bands)
    shared = len(set(bands[0].lefts) & {left for band in bands[1:] for left in band.lefts})
    return len(lefts) > 1 and shared > 1 and count >= 1.6 * len(bands) and count >= 0.4 * len(lefts) * len(bands)


def _lines(bands: list[Band]) -> list[Block]:
    """Headings, notes on units, and paragraphs of touching lines."""
    blocks: list[Block] = []
    open_lines: list[Band] = []
    for band in bands:
        if is_heading(band.starting) or is_unit(_line(band)):
            blocks.extend(_paragraph(open_lines))
            open_lines = []
            kind = BlockKind.PARAGRAPH if is_unit(_line(band)) else BlockKind.HEADING
            blocks.append(line_block(kind, band.starting))
        else:
            open_lines.append(band)
    return [*blocks, *_paragraph(open_lines)]


def is_heading(boxes: Sequence[Box]) -> bool:
    """Whether a line of texts is a heading: short, one line, and numbered, marked or bold."""
    text = " ".join(box.text for box in boxes)
    if not boxes or len(text) > _HEADING_CHARS or "\n" in text or text.endswith(_SENTENCE_END) or len(boxes) > 2:
        return False
    if _NUMBERED.match(text) or _MARKED.match(text):
        return True
    if _VERSION.match(text) or not any(sign.isalpha() for sign in text):
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
