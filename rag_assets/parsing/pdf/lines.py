"""Lines of a PDF page in reading order, from the runs of its text layer."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median

from rag_assets.contracts.content import Box, Row
from rag_assets.parsing.flow import around, clean, is_cjk
from rag_assets.parsing.pdf.runs import IDEOGRAPH_GAP, RUBY_SHARE, WORD_GAP, Run, is_tight
from rag_assets.parsing.pdf.spread import join_spread
from rag_assets.text.scripts import CJK, HALF_WIDTH_KATAKANA, HIRAGANA, ITEM_LETTERS, KATAKANA, KATAKANA_LETTERS

_SAME_LINE_SHARE = 0.5
_GUTTER = 1.0
_STRIPS = 8
_COLUMN_FILL = 0.55
_COLUMN_LINES = 4
_RUNNING_SHARE = 0.25  # at most, of the lines beside keys: that go on from the one above, as prose does
_KEYED_SHARE = 0.75  # of the lines at a gutter: pairs of one kind; the others are a title, a header, a note
_FIGURES_SHARE = 0.5  # at most, of the lines beside dates or numbers: that hold figures too
_ROW_GAP = 1.5
_PART_GAP = 1.0
_CELL_GAP = 0.8
_TIER_COLUMNS = 3
_TIER_HEIGHT = 6
_APART = 3.0
_LEAST_LINES = 3
_SAME_HEIGHT_SHARE = 0.8
_FIGURE_FILL = 0.55
_TRIED = 20
_KANA = re.compile(rf"[\s{HIRAGANA}{KATAKANA}・]+")
_BULLET = re.compile("[・•●○■□◆◇▪▫▶►‣⁃➢✓※⚫◼–—\uf000-\uf0ff]")
_SYMBOLS = re.compile("[\uf000-\uf0ff]")
_BULLET_SYMBOLS = "\uf06c\uf06e\uf075\uf076\uf077\uf09f\uf0a7\uf0a8\uf0b7\uf0d8\uf0e8\uf0fc"
_LEADERS = re.compile(r"(?:[.．・…‥·] ?){5,}")
_SPACED = re.compile(f"(?<=[{CJK}]) (?=[{CJK}])")
# A drawn bullet, in sizes of the type: its height at most, how far it is from its line, how far its middle is from it.
_DOT_SIZE, _DOT_GAP, _DOT_SHIFT = 0.7, 2.5, 0.4
_CELL_SIZES = 12  # of the type: width of what may be the cell of a table without lines
_ITEM_MARK = re.compile(
    rf"[(（]?(?:\d{{1,2}}|[{ITEM_LETTERS}]|[ivx]{{1,4}}|[一二三四五六七八九十]{{1,3}})[)）.．]|(?:Section|Article)\s\d{{1,2}}[.:]?"
    r"|第\s?[\d一二三四五六七八九十百]+\s?[条項]",
    re.IGNORECASE,
)
_NOTE_LABEL = re.compile(r"(?:sources?|notes?|出典|出所|資料)\s*[:：]", re.IGNORECASE)
LIST_ITEM = re.compile(
    rf"^(?:[・･•●○⚫■□◆◇▪▶►‣⁃➢✓※–—*-]\s*\S|[(（][\d{ITEM_LETTERS}{HALF_WIDTH_KATAKANA}一二三四五六七八九十]{{1,3}}[)）]"
    rf"|\d{{1,2}}[)）.．]\s*\D|[①-⑳㋐-㋾]|[a-z][)）.]\s|o\s+[{CJK}]|[{KATAKANA_LETTERS}][)）]\s?)"
)
LABEL = re.compile(r"[^\s:：、。「」]{1,15}(?: ?[：]| ?:(?!\S))(?:\s?\S|$)")
LATIN_WORD = re.compile(f"[^\\s{CJK}]+")
GOES_ON = re.compile(
    "(?:[、，,をはがにでもやて]|(?<!も)の|(?<!こ)と|[よおあなた]り|及び|又は|並びに|若しくは|および|または)$"
)
GOING_ON = re.compile(f"[{HIRAGANA}]")  # with an ending or a particle
_FIGURE = re.compile(r"\d+")
_WORD = re.compile(r"[^\W\d_]+")
_NUMBERED = re.compile(r"\W*\d{1,3}(?:[.-]\d{1,3})*\D*")  # an item of a list, or a title
_COLONS = (":", "：")
_HYPHEN_MARKS = ("\x02", "\ufffe", "\u00ad")
_ZERO_WIDTH = "\u200b"


@dataclass(frozen=True, slots=True)
class PageTable:
    """A table on a page."""

    rows: tuple[Row, ...]  # its rows; a merged value stands in each cell that it spans
    texts: tuple[str, ...]  # text of each row as displayed; a merged value stands once
    header_row_count: int  # leading rows that are column headers
    edges: tuple[float, ...]  # left edges of its columns and the right edge of the last, in points
    box: Box  # place on the page in points from the top left corner
    size: float  # height of its type in points
    is_ruled: bool = True  # whether rules part its columns; else the edges between them lie anywhere where no text is


@dataclass(frozen=True, slots=True)
class LinePart:
    """Text of a line between two wide gaps, with its left and right edge in points."""

    left: float
    right: float
    text: str


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text, or a table."""

    text: str  # its text; a hyphen at its end that only parts a word is a soft hyphen
    box: Box  # place on the page in points from the top left corner
    size: float  # height of its type in points
    is_bold: bool
    region: int = 0  # number of the part of the page (column, band) that it stands in, in reading order
    is_vertical: bool = False
    is_row: bool = False  # whether wide gaps or leader dots part it, as in a row of a table or a table of contents
    parts: tuple[LinePart, ...] = ()  # what wide gaps part it into, from left to right; empty where none does
    # what gaps part it into that are wider than those between words, as the cells of close columns
    cells: tuple[LinePart, ...] = ()
    table: PageTable | None = None  # the table that stands here instead of text, or None
    is_in_figure: bool = False  # whether it stands in a drawn frame of scattered words, as in a chart
    is_ruby: bool = False  # whether it says how words on the page are read
    is_spread: bool = False  # whether it is one word whose letters are set apart, as a title or label is


def order_lines(runs: Sequence[Run], tables: Sequence[PageTable] = (), frames: Sequence[Box] = ()) -> list[Line]:
    """Lines of a page in reading order.

    Args:
        runs: The runs of the page outside its tables.
        tables: Its tables; each becomes a line.
        frames: Rectangles drawn on it, the largest first; frames side by side are read one after the other.
    """
    typical = median(run.size for run in runs) if runs else 10.0
    pieces = [(piece, table) for table in tables for piece in _slices(table, typical)]
    owner = {id(piece): table for piece, table in pieces}
    lines: list[Line] = []
    placed_ids: set[int] = set()
    all_runs = [*runs, *(piece for piece, _ in pieces)]
    for region, (part, is_in_figure) in enumerate(part_page(all_runs, frames)):
        text = [run for run in part if id(run) not in owner]
        part_tables = {
            id(table): table for run in part if (table := owner.get(id(run))) and id(table) not in placed_ids
        }
        placed_ids.update(part_tables)
        part_lines = list(lines_of(text, region))
        if is_in_figure:
            part_lines = [replace(line, is_in_figure=True) for line in part_lines]
        for table in sorted(part_tables.values(), key=lambda table: (table.box[1], table.box[0])):
            above = [
                number for number, line in enumerate(part_lines, 1) if line.box[1] < table.box[1] or line.is_vertical
            ]
            part_lines.insert(max(above, default=0), Line("", table.box, table.size, False, region, table=table))
        lines += part_lines
    return lines


def part_page(runs: list[Run], frames: Sequence[Box]) -> Iterator[tuple[list[Run], bool]]:
    """Runs of a page by its parts (lanes, columns, bands) in reading order, each with whether it is in a figure."""
    for lane, is_figure in _part_lanes(runs, frames):
        for part in _in_reading_order(lane, 0):
            yield part, is_figure


def _part_lanes(runs: list[Run], frames: Sequence[Box]) -> Iterator[tuple[list[Run], bool]]:
    """Part a page at frames side by side, as the lanes of a flow chart: each is read on its own.

    Args:
        runs: Runs of the page.
        frames: Rectangles drawn on it, the largest first.

    Yields:
        What stands above them, each frame from the left, what stands below; the whole page where no frames stand side
        by side, with text in each and none between them. With each part whether it is a frame of scattered words.
    """
    lanes = _find_lanes(runs, frames)
    if not lanes:
        yield runs, False
        return
    _, top, _, bottom = around(lanes)
    rest = [frame for frame in frames if frame not in lanes]
    yield from _part_lanes([run for run in runs if run.middle[1] < top], rest)
    for lane in lanes:
        inside = [run for run in runs if _holds(lane, run)]
        # Lines of words that belong to no running text fill their frame less than that does.
        filled_width = sum(run.right - run.left for run in inside)
        yield inside, filled_width < _FIGURE_FILL * (lane[2] - lane[0]) * _count_lines(inside)
    yield from _part_lanes([run for run in runs if run.middle[1] > bottom], rest)


def _find_lanes(runs: Sequence[Run], frames: Sequence[Box]) -> list[Box]:
    """Frames of one height that stand apart beside each other, from the left; none where text is outside of them."""
    for frame in frames[:_TRIED]:
        lanes = [frame]
        for neighbour in frames:
            if _are_level(frame, neighbour) and all(_is_beside(neighbour, lane) for lane in lanes):
                lanes.append(neighbour)
        if len(lanes) < 2:
            continue
        _, top, _, bottom = around(lanes)
        band = [run for run in runs if top <= run.middle[1] <= bottom]
        parts = [[run for run in band if _holds(lane, run)] for lane in lanes]
        if sum(map(len, parts)) == len(band) and all(_count_lines(part) >= _LEAST_LINES for part in parts):
            return sorted(lanes)
    return []


def _are_level(first: Box, second: Box) -> bool:
    shared_height = min(first[3], second[3]) - max(first[1], second[1])
    return shared_height > _SAME_HEIGHT_SHARE * max(first[3] - first[1], second[3] - second[1])


def _is_beside(first: Box, second: Box) -> bool:
    return first[0] - second[2] > _APART or second[0] - first[2] > _APART


def _holds(frame: Box, run: Run) -> bool:
    x, y = run.middle
    return frame[0] <= x <= frame[2] and frame[1] <= y <= frame[3]


def _count_lines(runs: Sequence[Run]) -> int:
    return len({round(run.top / max(run.size, 1.0)) for run in runs})


def lines_of(runs: Sequence[Run], region: int = 0) -> Iterator[Line]:
    """Lines of one part of a page: from the top, or from the right where most of it is vertical writing."""
    if _is_vertical(runs):
        lines = list(_vertical_lines(runs, region))
    else:
        lines = list(_horizontal_lines([run for run in runs if not run.is_vertical], region))
        aside = [run for run in runs if run.is_vertical]
        if aside:
            lines = sorted([*lines, *_vertical_lines(aside, region)], key=lambda line: line.box[1])
    return (line for line in lines if line.text)


def add_bullets(runs: Sequence[Run], dots: Sequence[Box]) -> None:
    """Put a bullet before the runs that a drawn dot stands before, at the beginning of their line.

    Args:
        runs: The runs of the page; they are changed.
        dots: Small circles drawn on it, from the left.
    """
    for left, top, right, bottom in dots:
        middle = (top + bottom) / 2
        level_runs = [
            run for run in runs if not run.is_vertical and abs(run.middle[1] - middle) < _DOT_SHIFT * run.size
        ]
        behind = min((run for run in level_runs if run.left >= right), key=lambda run: run.left, default=None)
        if behind is None or bottom - top > _DOT_SIZE * behind.size or behind.left - right > _DOT_GAP * behind.size:
            continue
        near = left - _DOT_GAP * behind.size
        are_before = (run.right > near and run.left < right for run in level_runs)
        is_leader = any(near < dot[0] < left and abs((dot[1] + dot[3]) / 2 - middle) < bottom - top for dot in dots)
        if not any(are_before) and not is_leader and not LIST_ITEM.match(behind.text):
            behind.characters[:0], behind.starts[:0], behind.left = ["•", " "], [left, right], left


def _slices(table: PageTable, typical: float) -> list[Run]:
    """Stand-ins for a table among the runs: one for each line of text that would fit in its place."""
    left, top, right, bottom = table.box
    count = max(1, min(60, int((bottom - top) / (1.2 * max(typical, 1.0)))))
    step = (bottom - top) / count
    return [
        Run(["\ufffc"], [left], left, top + step * number, right, top + step * (number + 1), typical, False)
        for number in range(count)
    ]


def _is_vertical(runs: Sequence[Run]) -> bool:
    return _count_characters(run for run in runs if run.is_vertical) > _count_characters(runs) / 2


def _count_characters(runs: Iterable[Run]) -> int:
    return sum(len(run.characters) for run in runs)


def _in_reading_order(runs: list[Run], depth: int) -> Iterator[list[Run]]:
    """Cut runs into regions: at a gutter between columns of prose where there is one, else at gaps between bands."""
    if _is_vertical(runs):
        yield from _tiers(runs)
        return
    if len(runs) < 2 * _COLUMN_LINES or depth > 20:
        if runs:
            yield runs
        return
    typical = median(run.size for run in runs)
    gutter = _find_gutter(runs, typical)
    if gutter is not None:
        yield from _in_reading_order([run for run in runs if run.left < gutter], depth + 1)
        yield from _in_reading_order([run for run in runs if run.left >= gutter], depth + 1)
        return
    for cut in _band_cuts(runs):
        upper = [run for run in runs if run.middle[1] < cut]
        lower = [run for run in runs if run.middle[1] >= cut]
        if _is_parted(upper, typical) or _is_parted(lower, typical):
            yield from _in_reading_order(upper, depth + 1)
            yield from _in_reading_order(lower, depth + 1)
            return
    yield runs


def _tiers(runs: list[Run]) -> Iterator[list[Run]]:
    """Tiers of vertical writing from the top: cut at strips without text between enough columns on both sides, and
    between columns and lines that run across.
    """
    typical = _base_size(runs)
    for cut in _band_cuts(runs, typical):
        sides = [run for run in runs if run.middle[1] < cut], [run for run in runs if run.middle[1] >= cut]
        if all(_is_tier(side, typical) or _is_level(side) for side in sides):
            for side in sides:
                yield from (_tiers(side) if _is_vertical(side) else _in_reading_order(side, 0))
            return
    yield runs


def _is_level(runs: list[Run]) -> bool:
    """Whether runs are lines that run across, or a page number."""
    if any(run.is_vertical for run in runs):
        return False
    across = _count_characters(run for run in runs if len(run.characters) > 1)
    return across * 2 > _count_characters(runs) or all(run.text.isdecimal() for run in runs)


def _is_tier(runs: list[Run], typical: float) -> bool:
    vertical = [run for run in runs if run.is_vertical]
    columns = {round(run.middle[0] / max(typical, 1.0)) for run in vertical}
    if len(columns) < _TIER_COLUMNS:
        return False
    height = max(run.bottom for run in vertical) - min(run.top for run in vertical)
    return height > _TIER_HEIGHT * typical


def _find_gutter(runs: list[Run], typical: float, *, nested: bool = True, between_keys: bool = False) -> float | None:
    """Middle of the widest vertical strip without text that has columns of prose on both sides; where keys stand level
    with the lines of the other side there is none, unless these count, too.
    """
    for middle in gap_middles(((run.left, run.right) for run in runs), _GUTTER * typical)[:_STRIPS]:
        sides = [run for run in runs if run.left < middle], [run for run in runs if run.left >= middle]
        if all(_is_prose(side) or (nested and _is_parted(side, typical, nested=False)) for side in sides) and (
            between_keys or not _are_keyed(runs, middle)
        ):
            return middle
    return None


def _are_keyed(runs: list[Run], middle: float) -> bool:
    """Whether practically all lines on one side of a strip are keys of those level with them on the other: of one form
    with figures, as dates are, beside lines mostly without any; or labels before a colon on the left.

    Columns of prose and lists side by side stand level as well: their lines have no form in common, or figures and
    colons are on both sides.
    """
    rows = _rows_of(runs)
    sides = ([[run for run in row if (run.left < middle) == is_left] for is_left in (True, False)] for row in rows)
    texts = [
        [clean(" ".join(run.text for run in sorted(side, key=lambda run: run.left))) for side in row] for row in sides
    ]
    pairs = [(left, right) for left, right in texts if left and right]
    least = _KEYED_SHARE * len(rows)
    if len(pairs) < least:
        return False
    lefts, rights = zip(*pairs, strict=True)
    labels = sum(left.endswith(_COLONS) and not right.endswith(_COLONS) for left, right in pairs)
    return (labels >= least and not _runs_on(rights)) or any(
        _count_keys(keys) >= least
        and sum(map(bool, map(_FIGURE.search, names))) <= _FIGURES_SHARE * len(names)
        and not _runs_on(names)
        for keys, names in ((lefts, rights), (rights, lefts))
    )


def _runs_on(texts: Sequence[str]) -> bool:
    """Whether lines are those of a text: several begin in small letters, or end as those do that go on."""
    return sum(text[:1].islower() or GOES_ON.search(text) is not None for text in texts) > _RUNNING_SHARE * len(texts)


def _count_keys(texts: Sequence[str]) -> int:
    """How many texts have one form of several figures, or with one at its end; items of numbered lists have none."""
    forms = Counter(_form(text) for text in texts if not (_NUMBERED.fullmatch(text) or LIST_ITEM.match(text)))
    return max((count for form, count in forms.items() if form.count("0") > 1 or form.endswith("0")), default=0)


def _form(text: str) -> str:
    """A text with `0` for each figure and `a` for each word."""
    return _FIGURE.sub("0", _WORD.sub("a", text))


def _is_parted(runs: list[Run], typical: float, *, nested: bool = True) -> bool:
    """Whether runs are several columns of prose themselves; as a side of a gutter, which nests none, also keys and what
    stands level with them.
    """
    if len(runs) < 2 * _COLUMN_LINES:
        return False
    return _find_gutter(runs, typical, nested=nested, between_keys=not nested) is not None


def _is_prose(runs: list[Run]) -> bool:
    """Whether runs fill a column as running text does: enough lines, most of them nearly as wide as the column."""
    width = max(run.right for run in runs) - min(run.left for run in runs)
    rows = _count_lines(runs)
    if rows < _COLUMN_LINES or width < 8 * median(run.size for run in runs):
        return False
    wide = sum(run.right - run.left for run in runs) / rows
    return wide > _COLUMN_FILL * width and len(runs) <= 1.6 * rows


def _band_cuts(runs: list[Run], least: float = 0.0) -> list[float]:
    """Heights between lines where the page may be parted, the widest gaps first, at most 12."""
    return gap_middles(((run.top, run.bottom) for run in runs), least)[:12]


def gap_middles(spans: Iterable[tuple[float, float]], least: float) -> list[float]:
    """Middles of the gaps that spans leave between them, wider than the least, the widest first."""
    ordered_spans = sorted(spans)
    gaps, reach = [], ordered_spans[0][1]
    for begin, end in ordered_spans:
        if begin - reach > least:
            gaps.append((begin - reach, (begin + reach) / 2))
        reach = max(reach, end)
    return [middle for _, middle in sorted(gaps, reverse=True)]


def _horizontal_lines(runs: Sequence[Run], region: int) -> Iterator[Line]:
    """Lines from the top; ruby, kana set small right above the words that they are read as, comes last, as one line."""
    rows = _rows_of(runs)
    typical = _base_size(runs) if runs else 0.0
    ruby: list[Line] = []
    for row, below in pairwise([*rows, []]):
        ordered_runs = sorted(row, key=lambda run: run.left)
        joined_runs = join_spread(ordered_runs)
        line = _line_of_runs(joined_runs, region)
        if len(joined_runs) == 1 and joined_runs is not ordered_runs and line.text.isalpha():
            line = replace(line, is_spread=True)
        if _is_ruby(line, row, below, typical):
            ruby.append(line)
        else:
            yield line
    if ruby:
        yield _ruby_line(ruby)


def _rows_of(runs: Sequence[Run]) -> list[list[Run]]:
    """Runs by the line that they stand on, from the top."""
    rows: list[list[Run]] = []
    for run in sorted(runs, key=lambda run: run.middle[1]):
        if rows and _shares_line(rows[-1], run):
            rows[-1].append(run)
        else:
            rows.append([run])
    return rows


def _is_ruby(line: Line, row: Sequence[Run], below: Sequence[Run], typical: float) -> bool:
    limit = RUBY_SHARE * typical
    if not below or not _KANA.fullmatch(line.text) or any(run.size >= limit for run in row):
        return False
    return any(run.size >= limit for run in below) and min(run.top for run in below) - line.box[3] < 0.4 * typical


def _ruby_line(lines: Sequence[Line]) -> Line:
    """Lines of ruby as one, with spaces between."""
    text = " ".join(line.text for line in lines)
    return replace(
        lines[0], text=text, box=around(line.box for line in lines), is_row=False, parts=(), cells=(), is_ruby=True
    )


def _shares_line(row: list[Run], run: Run) -> bool:
    top, bottom = max(item.top for item in row), min(item.bottom for item in row)
    overlap = min(bottom, run.bottom) - max(top, run.top)
    return overlap > _SAME_LINE_SHARE * max(min(run.bottom - run.top, bottom - top), 0.1)


def _vertical_lines(runs: Sequence[Run], region: int) -> Iterator[Line]:
    """Columns of vertical writing from right to left; digits set across in a column belong to it; ruby comes last,
    as one line.
    """
    typical = _base_size(runs)
    columns: list[list[Run]] = []
    for run in sorted(runs, key=lambda run: -run.middle[0]):
        is_ruby = run.size < RUBY_SHARE * typical
        column = columns[-1] if columns else None
        if column and abs(column[0].middle[0] - run.middle[0]) < 0.5 * typical and not is_ruby:
            column.append(run)
        else:
            columns.append([run])
    ruby: list[Line] = []
    for column in columns:
        line = _line_of_runs(sorted(column, key=lambda run: run.top), region, is_vertical=True)
        if column[0].size < RUBY_SHARE * typical:
            ruby.append(line)
        else:
            yield line
    if ruby:
        yield _ruby_line(ruby)


def _base_size(runs: Sequence[Run]) -> float:
    """Size of the type that covers most of the paper: where much of it has ruby, most characters are of that."""
    areas: dict[float, float] = {}
    for run in runs:
        areas[run.size] = areas.get(run.size, 0.0) + len(run.characters) * run.size**2
    return max(areas, key=lambda size: areas[size])


def _line_of_runs(row: list[Run], region: int, *, is_vertical: bool = False) -> Line:
    text, end, widest = "", row[0].top if is_vertical else row[0].left, 0.0
    parts: list[LinePart] = []
    for run in row:
        part = run.text.strip() if is_vertical else run.text  # its spaces stand for the way to ruby and back
        gap = (run.top if is_vertical else run.left) - end
        widest = max(widest, gap / max(run.size, 1.0))
        is_touching = text and (is_cjk(text[-1]) or is_cjk(part[0])) and gap < IDEOGRAPH_GAP * run.size
        space = "" if is_touching or gap <= WORD_GAP * run.size else " "
        if text and not text.endswith(" "):
            text += space
        text += part
        if parts and gap <= _PART_GAP * run.size:
            parts[-1] = LinePart(parts[-1].left, run.right, parts[-1].text + space + part)
        else:
            parts.append(LinePart(run.left, run.right, part))
        end = run.bottom if is_vertical else run.right
    longest = max(row, key=lambda run: len(run.characters))
    bold = _count_characters(run for run in row if run.is_bold) > _count_characters(row) * 0.7
    has_leaders = _LEADERS.search(text) is not None
    is_row = not is_vertical and (widest > _ROW_GAP or has_leaders)
    if len(parts) == 2 and _NOTE_LABEL.fullmatch(parts[0].text.strip()):
        is_row, parts = False, []  # the label of a note, set apart from its text
    elif len(parts) == 2 and not has_leaders and _begins_item(parts, longest.size):
        is_row = False
    clean_parts = (
        () if has_leaders or len(parts) < 2 else tuple(LinePart(p.left, p.right, _clean_line(p.text)) for p in parts)
    )
    cells = tuple(_cells(row)) if clean_parts and not is_vertical else ()
    box = around(run.box for run in row)
    return Line(_clean_line(text), box, longest.size, bold, region, is_vertical, is_row, clean_parts, cells)


def _begins_item(parts: Sequence[LinePart], size: float) -> bool:
    """Whether two parts of a line are a bullet and its text, or the number or letter of a clause and its text, which is
    longer than a cell.
    """
    mark, text = (part.text.strip() for part in parts)
    is_long = parts[1].right - parts[1].left > _CELL_SIZES * size
    return bool(text) and bool(_BULLET.fullmatch(mark) or (is_long and _ITEM_MARK.fullmatch(mark)))


def item_start(line: Line) -> float | None:
    """Where the text of an item begins behind its mark; None of a line that has no mark set apart."""
    has_mark = len(line.parts) == 2 and not line.is_row and _begins_item(line.parts, line.size)
    return line.parts[1].left if has_mark else None


def _cells(row: Sequence[Run]) -> Iterator[LinePart]:
    """Parts of a line between gaps wider than those between words, also where such a gap lies within a run."""
    left, right, text = row[0].left, row[0].left, ""
    for run in row:
        wide = _CELL_GAP * run.size
        gaps = pairwise(zip(run.characters, run.starts, strict=True))
        places = [n for n, ((sign, begin), (_, end)) in enumerate(gaps) if sign.isspace() and end - begin > wide]
        for piece in run.cut(places):
            if text and piece.left - right > wide:
                yield LinePart(left, right, _clean_line(text))
                left, text = piece.left, ""
            elif text and (gap := piece.left - right) > WORD_GAP * run.size:
                text += "" if is_tight(text, piece.text, gap, run.size) else " "
            text += piece.text
            right = piece.right
    yield LinePart(left, right, _clean_line(text))


def _clean_line(text: str) -> str:
    """A line as `clean` has it.

    Characters of symbol fonts are made what they stand for or nothing; leader dots one ellipsis; ideographs set with
    spaces between them are set without.
    """
    ends_hyphenated = text.rstrip().endswith(_HYPHEN_MARKS)
    for mark in (*_HYPHEN_MARKS, _ZERO_WIDTH):
        text = text.replace(mark, "")
    text = _LEADERS.sub(" … ", _SYMBOLS.sub(_plain_symbol, text))
    text = clean(text)
    spaced_count = len(_SPACED.findall(text))
    if spaced_count >= 3 and spaced_count > 0.6 * sum(map(is_cjk, text)):
        text = _SPACED.sub("", text)
    return text + "\u00ad" if ends_hyphenated and text else text


def _plain_symbol(match: re.Match[str]) -> str:
    """What a character of a symbol font stands for, where it is a bullet, a digit or a sign."""
    if match[0] in _BULLET_SYMBOLS:
        return "•"
    code = ord(match[0]) - 0xF000
    return chr(code) if 0x20 <= code <= 0x40 else ""
