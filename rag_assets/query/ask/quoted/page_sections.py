"""What stands together on a page with a statement: its section, or the list or table that it is of.

A question for several things is answered by all of a list, which a passage may hold in part, or by all rows of a small
table, of which a statement is one. What a page consists of was told when its file was read.

What stays out: which statement it is (`rag_assets.query.ask.quoted.extracts`).
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise, zip_longest
from typing import Any, TypeAlias

from rag_assets.query.ask.quoted.item_marks import ITEM, counts_on, is_first_item
from rag_assets.query.ask.quoted.passage_lines import split_cells, together
from rag_assets.query.ask.quoted.wanted import codes_named, is_code, is_named
from rag_assets.text.cells import CELL_SIGN
from rag_assets.text.folding import FULL_DATE, fold_name
from rag_assets.text.plain import announces, is_total, one_line, squeezed

_HEADING = "heading"
_TABLE = "table"
_ITEM = "list_item"
_PARAGRAPH = "paragraph"
_BESIDE = frozenset({"header", "caption"})  # what is no part of the text
_NOTE = "note"
_MOST_MERGED = 8  # columns at the left of a table
_LEAST_LINES = 3
_LEAST_SECTIONS = 3  # whose headings count on
_LABEL_CHARS = 40  # of a line that names what stands below it
_LEAST_HELD = 0.5  # of the lines that stand together with others
_FEW_ROWS = 3  # that hold a cell by which a question names them, and whose passages are read
_LEAD_CHARS = 3  # of a cell, which are looked for first, as that is quick
_SECTION_CODE = re.compile(r"(?:[A-Za-z]{0,3}\d[\d.-]*[.)）:：]?|第\d+[章節条])\s+")
SHEET_NUMBER = re.compile(r"^\W*(?:\d+(?:[.-]\d+)*|[①-⑳])[.．)）_\s]*(?=\D)")
_ANY_SHEET = frozenset({"一覧", "項目", "データ", "リスト", "概要", "詳細", "全体", "list", "data", "summary"})
OF_TABLE = re.compile(r"テーブル|シート|画面|マスタ|tbl|(?<![a-z])mst|の?表|\b(?:table|sheet|tab|screen)\b")
_LETTER = re.compile(r"[^\W\d_]")
_ANNOUNCING_CHARS = 200  # of what stands above a list
EDITION = re.compile(  # of a history
    rf"(?:\b[vV]|[Vv]er(?:sion|\.)? ?)\d+(?:\.\d+)*|\[\d+(?:\.\d+)+|第\d+(?:\.\d+)?版|{FULL_DATE.pattern}"
)
_EDITION_LINE = re.compile(  # which begins with it, behind a mark or the name of what has it
    rf"[\W_]{{0,3}}(?:[A-Za-z]{{2,20}} )?(?:{EDITION.pattern})[^。:：]*$"
)
_EDITION_CHARS = 60


@dataclass(frozen=True)
class PageBlock:
    """A part of a page.

    Attributes:
        kind: As in `blocks.kind`.
        section: Headings above it, outermost first.
        text: Its lines; of a table, its rows.
        header_row_count: First rows of a table that name its columns.
    """

    kind: str
    section: tuple[str, ...]
    text: str
    header_row_count: int = 0

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "PageBlock":
        """A row of `blocks`, with the columns of `BLOCK_COLUMNS`."""
        return cls(row["kind"], tuple(row["section"] or ()), row["text"] or "", row["header_row_count"] or 0)

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """Its lines as statements have them, without empty ones."""
        return tuple(filter(None, map(_plain, self.text.splitlines())))

    @cached_property
    def header(self) -> str:
        """The row that names the columns; empty where none does, or several do."""
        return next(iter(self._header_lines), "") if self.header_row_count == 1 else ""

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of a table: the cells of its first rows from top to bottom, as passages have them.

        The name of a group, which the text has once, is that of all columns up to the next one.
        """
        columns: list[list[str]] = []
        for cells in zip_longest(*map(split_cells, self._header_lines), fillvalue=""):
            top = next((row for row, cell in enumerate(cells) if cell), 0)
            groups = columns[-1][:top] if columns else cells[:top]
            columns.append([*groups, *cells[top:]])
        names = tuple(" > ".join(dict.fromkeys(filter(None, cells))) for cells in columns)
        return names if any(names) else ()

    @cached_property
    def body_lines(self) -> tuple[str, ...]:
        """The rows of a table below the names of the columns, less those that repeat the names.

        A row that begins with empty cells comes also with what stands above the first of these, as passages have it
        where cells are merged; a total stands above none.
        """
        header_lines = set(self._header_lines)
        lines: list[str] = []
        above: list[str] = []
        for line in self.lines:
            if line in header_lines:
                continue
            cells = split_cells(line)
            lines.append(line)
            filled = next((place for place, cell in enumerate(cells) if cell), 0)
            if not any(map(is_total, above[:filled])):
                for place in range(min(filled, len(above), _MOST_MERGED)):
                    cells[place] = above[place]
                    lines.append(_plain(CELL_SIGN.join(cells)))
            above = cells
        return tuple(lines)

    @cached_property
    def _header_lines(self) -> list[str]:
        return [_plain(line) for line in self.text.splitlines()[: self.header_row_count]]

    @property
    def path(self) -> tuple[str, ...]:
        """The section that it is in, or heads."""
        inner = (self.text,) if self.kind == _HEADING else ()
        return tuple(map(one_line, (*self.section, *inner)))


BLOCK_COLUMNS = ("kind", "section", "text", "header_row_count")
PageBlocks: TypeAlias = Callable[[str, int], Sequence[PageBlock]]  # of a document, the blocks of a page in their order


def section_names(blocks: Sequence[PageBlock]) -> frozenset[str]:
    """What the sections of a page are called, without white space, each with its code and without."""
    headings = {heading for block in blocks for heading in block.path}
    return frozenset(squeezed(name) for heading in headings for name in (heading, _SECTION_CODE.sub("", heading)))


def header_rows(blocks: Sequence[PageBlock]) -> frozenset[str]:
    """The rows that name the columns of the tables of a page, where one row does."""
    return frozenset(filter(None, (block.header for block in blocks)))


def body_rows(blocks: Sequence[PageBlock]) -> dict[str, tuple[str, ...]]:
    """The rows of tables below the names of their columns, each with these names: none where its table has none. Rows
    of tables that differ in names are left out, and those that name columns elsewhere.
    """
    names: dict[str, tuple[str, ...]] = {}
    left_out = set(header_rows(blocks))
    for block in blocks:
        for line in block.body_lines if block.kind == _TABLE else ():
            if names.setdefault(line, block.columns) != block.columns:
                left_out.add(line)
    return {line: columns for line, columns in names.items() if line not in left_out}


def standing_together(
    said: Sequence[str], blocks: Sequence[PageBlock], most_chars: int, *, is_lead: bool
) -> Iterator[tuple[str, ...]]:
    """Lines that others are of, where they are neither too many nor too few for a list: all of the section; the list or
    table, with what stands directly above; the headings directly below theirs; of an item, those that count on from the
    first to the last of its form, with what announces them; and, of several lines, what follows them to the end of the
    list, table or section in which they end.

    Args:
        said: Lines of the page, one after the other; a single one may be part of one.
        blocks: The page.
        most_chars: Characters of all lines, with their ends.
        is_lead: Whether these lines head what follows, and nothing before them goes with it.

    Yields:
        Lines, most of the others among them.
    """
    blocks = _of_text(blocks)
    place = _place(list(filter(None, map(squeezed, said))), blocks)
    if place is None:
        return
    for first, last in (_section(blocks, place), _group(blocks, place)):
        lines = tuple(line for block in blocks[place if is_lead else first : last] for line in block.lines)
        if len(lines) >= _LEAST_LINES and _fits(lines, most_chars) and _hold(lines, said):
            yield lines
    lines = _outline(blocks, place)
    if len(lines) > _LEAST_LINES and _fits(lines, most_chars) and _hold(lines, said[:2]):
        yield lines
    lines = _counted(blocks, place)
    if len(lines) > _LEAST_LINES and _fits(lines, most_chars) and _hold(lines, said[:2]):
        yield lines
    if len(said) >= _LEAST_LINES and (lines := _ended(said, blocks[place:], most_chars)):
        yield lines


def edition_above(said: Sequence[str], blocks: Sequence[PageBlock]) -> str:
    """The nearest short line above lines of a page that begins with a version or a date, as those of a history do;
    empty where lines stand below fewer than two such.
    """
    lines = [line for block in _of_text(blocks) for line in block.lines]
    wanted = squeezed(said[0])
    place = next((place for place, line in enumerate(lines) if wanted in squeezed(line)), 0)
    plain = [unicodedata.normalize("NFKC", line) for line in lines]
    editions = [at for at, line in enumerate(plain) if len(line) <= _EDITION_CHARS and _EDITION_LINE.match(line)]
    above = max((at for at in editions if at < place), default=None)
    heading_count = sum(below - at > 1 for at, below in pairwise([*editions, len(lines)]))
    return lines[above] if above is not None and heading_count > 1 else ""


def numbered_sections(
    said: Sequence[str], others: Sequence[str], blocks: Sequence[PageBlock], most_chars: int
) -> tuple[str, ...]:
    """The sections whose headings count on from one to the first of their form, among them that of a line, with the
    heading above; their headings alone where all is too long.

    Args:
        said: Lines of the page, one after the other.
        others: Lines, of which at least half of the sections have one.
        blocks: The page.
        most_chars: Characters of all lines, with their ends.

    Returns:
        Nothing where there are fewer than three such sections, or `others` are of fewer.
    """
    blocks = _of_text(blocks)
    place = _place(list(filter(None, map(squeezed, said))), blocks)
    path = blocks[place].path if place is not None else ()
    headings = [at for at, block in enumerate(blocks) if block.kind == _HEADING and block.path[:-1] == path[:-1]]
    own = next((at for at, heading in enumerate(headings) if blocks[heading].path == path), None)
    if own is None:
        return ()
    names = [blocks[heading].lines[0] if blocks[heading].lines else "" for heading in headings]
    first = last = own
    while first and counts_on(names[first - 1], names[first]):
        first -= 1
    while last + 1 < len(names) and counts_on(names[last], names[last + 1]):
        last += 1
    run = headings[first : last + 1]
    sections = [blocks[slice(*_section(blocks, heading))] for heading in run]
    texts = [{squeezed(line) for block in section for line in block.lines} for section in sections]
    asked_count = sum(any(squeezed(line) in text for line in (*said, *others)) for text in texts)
    if len(run) < _LEAST_SECTIONS or not is_first_item(names[first]) or asked_count * 2 < len(run):
        return ()
    above = path[-2:-1]
    lines = (*above, *(line for section in sections for block in section for line in block.lines))
    return lines if _fits(lines, most_chars) else (*above, *names[first : last + 1])


def _fits(lines: Sequence[str], most_chars: int) -> bool:
    return sum(len(line) + 1 for line in lines) <= most_chars


def _of_text(blocks: Sequence[PageBlock]) -> list[PageBlock]:
    """Blocks without what is no part of the text: running headers, captions, and notes between other blocks."""
    parts = [block for block in blocks if block.kind not in _BESIDE]
    kinds = ["", *(block.kind for block in parts), ""]
    return [
        block
        for place, block in enumerate(parts, start=1)
        if block.kind != _NOTE or _NOTE in (kinds[place - 1], kinds[place + 1])
    ]


def _ended(said: Sequence[str], blocks: Sequence[PageBlock], most_chars: int) -> tuple[str, ...]:
    """Lines that begin a page with what follows them to the end of the list or table in which they end, else of the
    section; none where nothing follows, or too much.
    """
    last_line = squeezed(said[-1])
    at = next((at for at, block in enumerate(blocks) if last_line in map(squeezed, block.lines)), None)
    if at is None:
        return ()
    is_list = blocks[at].kind == _TABLE or _is_item(blocks[at])
    _, end = _group(blocks, at) if is_list else _section(blocks, at)
    lines = [line for block in blocks[at:end] for line in block.lines]
    rest = lines[[squeezed(line) for line in lines].index(last_line) + 1 :] if lines else []
    return (*said, *rest) if rest and _fits([*said, *rest], most_chars) else ()


def without_table_words(text: str) -> str:
    """A text, folded, without words for tables, which names have and questions leave out, or the other way round.

    Each part is folded by itself, as what stood before such a word ends one now: `ユーザ` of `ユーザーテーブル`.
    """
    return " ".join(fold_name(part) for part in OF_TABLE.split(fold_name(text))).strip()


def is_called_table(folded_text: str, spaced_text: str, name: str) -> bool:
    """Whether a question has a name with a word for tables behind it.

    Args:
        folded_text: The question, folded.
        spaced_text: The same `without_table_words`.
        name: Of a table, without these words as well.
    """
    call_pattern = rf"{re.escape(name)}ー?[」』\"”')）]*\s?(?:{OF_TABLE.pattern})"
    return is_named(spaced_text, name) and re.search(call_pattern, folded_text) is not None


def sheets_named(question: str, names: Mapping[int, str]) -> frozenset[int]:
    """The sheets that a question names, as `1 顧客` in 「顧客テーブルの…」; of several, those with the longest names.

    Args:
        question: The question.
        names: Of the sheets of a document, by their number.
    """
    spaced_text = without_table_words(question)
    plain = {key: without_table_words(SHEET_NUMBER.sub("", name)) for key, name in names.items()}
    named_sheets = {key: name for key, name in plain.items() if name not in _ANY_SHEET and is_named(spaced_text, name)}
    return frozenset(
        key
        for key, name in named_sheets.items()
        if not any(name != other_name and name in other_name for other_name in named_sheets.values())
    )


def passages_naming(question: str, passages: Mapping[str, str]) -> list[str]:
    """Passages of a page that hold rows of which a question names whole cells that few other rows have.

    Args:
        question: The question.
        passages: Texts of the passages of the page, by key.

    Returns:
        Keys, of the row with most such cells first; as many as may tell one thing.
    """
    folded_text, codes = fold_name(question), codes_named(question)
    lower_text = unicodedata.normalize("NFKC", question).casefold()

    @cache
    def is_asked(cell: str) -> bool:
        value = cell.rpartition(": ")[2]
        if not _LETTER.search(value):
            return is_code(value, codes)
        return value.casefold()[:_LEAD_CHARS] in lower_text and is_named(folded_text, fold_name(value))

    rows: dict[str, tuple[str, frozenset[str]]] = {}  # of each row the first passage, and the cells named
    for key, text in passages.items():
        for line in unicodedata.normalize("NFKC", text).splitlines():
            cells = split_cells(line)
            named_cells = (
                frozenset(cell for cell in cells if cell and is_asked(cell)) if len(cells) > 1 else frozenset()
            )
            if named_cells:
                rows.setdefault(line, (key, named_cells))
    common = Counter(cell for _, named_cells in rows.values() for cell in named_cells)
    rare_counts = {
        line: sum(common[cell] <= _FEW_ROWS for cell in named_cells) for line, (_, named_cells) in rows.items()
    }
    best = sorted((line for line in rows if rare_counts[line]), key=lambda line: -rare_counts[line])
    return list(dict.fromkeys(rows[line][0] for line in best[:_FEW_ROWS]))


def cells_of(line: str) -> frozenset[str]:
    """The cells of a row that hold something, without white space; of another line the line."""
    return frozenset(filter(None, map(squeezed, split_cells(line))))


def _hold(lines: Sequence[str], said_lines: Sequence[str]) -> bool:
    """Whether lines hold most of what is said; rows of a passage also have the cells merged over several."""
    text = squeezed("".join(lines))
    rows = [cells for cells in map(cells_of, lines) if cells]
    held_count = sum(squeezed(line) in text or any(cells <= cells_of(line) for cells in rows) for line in said_lines)
    return held_count >= _LEAST_HELD * len(said_lines)


def _plain(line: str) -> str:
    return together(one_line(line))


def _place(sought_lines: Sequence[str], blocks: Sequence[PageBlock]) -> int | None:
    """The block in which lines begin: where as many of them as anywhere stand one after the other, the first from the
    beginning of a line on; a single one may stand within a line.
    """
    lines = [(at, squeezed(line)) for at, block in enumerate(blocks) for line in block.lines]
    starts = [
        place for place, (_, line) in enumerate(lines) if sought_lines and line and sought_lines[0].startswith(line)
    ]
    sought_text = "".join(sought_lines)
    lengths = {place: _common_length(sought_text, lines, place) for place in starts}
    if lengths:
        return lines[max(lengths, key=lambda place: (lengths[place], -place))][0]
    return next((at for at, line in lines if any(sought_line in line for sought_line in sought_lines[:1])), None)


def _common_length(sought_text: str, lines: Sequence[tuple[int, str]], place: int) -> int:
    """Characters of a text with which the lines from a place on begin."""
    held_length = 0
    for _, line in lines[place:]:
        if not line or not sought_text.startswith(line, held_length):
            break
        held_length += len(line)
    return held_length


def _section(blocks: Sequence[PageBlock], place: int) -> tuple[int, int]:
    """The first block under the heading that a block is, or stands under, or the heading, and the end; none without."""
    path = blocks[place].path
    if not path:
        return place, place
    first, last = place, place + 1
    while first and blocks[place].kind != _HEADING and blocks[first - 1].path[: len(path)] == path:
        first -= 1
    while last < len(blocks) and blocks[last].path[: len(path)] == path:
        last += 1
    return first, last


def _outline(blocks: Sequence[PageBlock], place: int) -> tuple[str, ...]:
    """The heading that a block is, and those directly below it; none of other text."""
    if blocks[place].kind != _HEADING:
        return ()
    path = blocks[place].path
    first, last = _section(blocks, place)
    section = blocks[first + 1 : last]
    inner = [block for block in section if block.kind == _HEADING and block.path[:-1] == path]
    inner = inner or [block for block, below in pairwise(section) if _labels(block, below)]
    return (*blocks[place].lines, *(line for block in inner for line in block.lines))


def _labels(block: PageBlock, below: PageBlock) -> bool:
    """Whether a block is a short line with a colon that names what the text below it tells."""
    is_short = block.kind == _PARAGRAPH and len(block.lines) == 1 and len(block.text) <= _LABEL_CHARS
    is_text = below.kind == _PARAGRAPH and len(below.text) > _LABEL_CHARS
    return is_short and is_text and block.lines[0].endswith((":", "："))


def _counted(blocks: Sequence[PageBlock], place: int) -> tuple[str, ...]:
    """The lines of the items that count on to one and from it, in its form, with what announces the first of them, or
    of those that the block announces; they may stand within a longer list. None of an item that is the first.
    """
    items = [block.lines[0] if len(block.lines) == 1 else "" for block in blocks]
    is_lead = announces(items[place]) and any(map(ITEM.match, items[place + 1 : place + 2]))
    first = last = place + is_lead
    while not is_lead and first and counts_on(items[first - 1], items[first]):
        first -= 1
    while last + 1 < len(items) and counts_on(items[last], items[last + 1]):
        last += 1
    if first in {0, place} or not announces(items[first - 1]):
        return ()
    return tuple(items[first - 1 : last + 1])


def _group(blocks: Sequence[PageBlock], place: int) -> tuple[int, int]:
    """The first block of the table, or of the items of a list, that a block is or announces, with the line above, and
    the end; none of other text.
    """
    first = last = place
    if blocks[place].kind != _TABLE and not _is_item(blocks[place]) and place + 1 < len(blocks):
        last += 1
    if not _is_item(blocks[last]):
        announces = first == last and first and _announces(blocks[first - 1])
        return (first - bool(announces), last + 1) if blocks[last].kind == _TABLE else (place, place)
    while first and _is_item(blocks[first - 1]) and _is_item(blocks[first]):
        first -= 1
    while last + 1 < len(blocks) and _is_item(blocks[last + 1]):
        last += 1
    is_announced = first > 0 and _is_item(blocks[first]) and _announces(blocks[first - 1])
    return first - is_announced, last + 1


def _announces(block: PageBlock) -> bool:
    return block.kind != _TABLE and len(block.lines) == 1 and len(block.text) <= _ANNOUNCING_CHARS


def _is_item(block: PageBlock) -> bool:
    """Whether a block is an item of a list, by its kind or its mark."""
    is_marked = len(block.lines) == 1 and ITEM.match(block.lines[0]) is not None
    return block.kind == _ITEM or (block.kind not in {_TABLE, _HEADING} and is_marked)
