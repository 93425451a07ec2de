"""Cuts pages into passages that are searched.

A passage holds whole blocks where they fit, rows of a table under its header, or sentences of a long paragraph. It
never crosses a page, and carries the place that it was taken from.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise, takewhile
from typing import TypeAlias

from rag_assets.contracts.causes import BlockKind, PageKind
from rag_assets.contracts.content import Block, Box, Page, Row
from rag_assets.contracts.ports import Tokenizer
from rag_assets.parsing.flow import around
from rag_assets.parsing.names import Kind, kind_of
from rag_assets.text.cells import CELL_SIGN, cover
from rag_assets.text.language import cut, detect_language, split_sentences
from rag_assets.text.plain import announces, asks, is_total, one_line
from rag_assets.text.scripts import CJK

_CONTEXT_SHARE = 0.25  # of a passage, at most, for title, page name and section
_LINK_SUFFIX = re.compile(r" <[^<>\s]+:[^<>\s]+>")  # which a wide header goes without
_HEADER_SHARE = 0.35  # of a passage, at most, for a table header; wider tables name the column at each cell
_TOKEN_CHARS = 16  # that a token stands for at most where pieces are looked for
_HEADING_CHARS = 80
_LEAD_CHARS = 200  # of a paragraph that announces what follows it, or that asks
_LAST_CHARS = 80  # of it, in which it does
_MOST_LEADING = 3  # questions, or lines that stand as headings, one after the other; more are a list
_LEAST_ROOM = 0.25  # of a passage, at least, for the beginning of what a heading or question leads to
_SHORT_CHARS = 30  # of a cell that names something
_NAME_CELLS = 4  # of a row, at most, in which it may be named
_ROW_NAME_SHARE = 0.2  # of a passage, at most, for what the row is called
_LEAST_OF_GROUP = 2  # rows below a cell that heads them
_FEW = 0.2
_GROUP_CHARS = 80
_NO_GROUP = {Kind.NUMBER, Kind.DATE, Kind.MARK}
_ALONE = " |"  # behind a short cell that stands alone in its row, and heads those below it
_NUMBER = re.compile(r"[\d.,%\-+¥$/:()]*")
_WORD = re.compile(r"[^\W\d_〇]")
_LABEL_END = rf"(?:\s?[】）)\]．.:：、]|\s?$|\s(?=[|{CJK}]))"
_LABEL = rf"(?:\d{{1,3}}(?:[-－．.]\d{{1,3}})?{_LABEL_END}|[】）)\]．.:：])"
_ASKING = re.compile(rf"^[【（(\[]?(?:問い?|[質設]問|[QＱ]|Question)\s?{_LABEL}", re.IGNORECASE | re.MULTILINE)
_ANSWER = re.compile(rf"(?:^|\n|\| )(?:[【（(\[]?(?:[回解]?答え?|[AＡ]|Answer)\s?{_LABEL}|答え?\s)", re.IGNORECASE)
_HEADING_LINE = re.compile(  # that no reader told as a heading
    r"(?:[■◆▼]|第\s?[\d一二三四五六七八九十百]+\s?[編章節条]|\d{1,2}(?:[.．]\d{1,2})+[.．]?\s)[^。.．!！?？、，,:：…_|]*"
    r"|【[^】]+】|〔[^〕]+〕|[＜<][^＞>]+[＞>]|≪[^≫]+≫|《[^》]+》"
)
_HEADING_LINE_CHARS = 40


@dataclass(frozen=True)
class Chunk:
    """A passage of a page."""

    index: int  # position on the page, from 0
    heading: str | None  # innermost heading above it, or that it begins with, or None
    context: str  # title, page name and section, joined by ` › `
    text: str  # text as displayed
    language: str  # main language, ISO 639-1, or `und`
    cell_range: str | None  # cells covered, or None
    box: Box | None  # position on the page in points, or None
    block_indexes: tuple[int, ...]  # blocks that it is taken from, rising
    length_tokens: int  # tokens of context and text


_MergedCells: TypeAlias = list[tuple[int, str]]  # places and texts of the cells of a row


@dataclass(frozen=True)
class _Unit:
    """The smallest part that is kept whole, with the header that must stand above it, and the row that heads its group,
    which stands there too where a passage begins with it.
    """

    text: str
    block_index: int
    section: tuple[str, ...]
    header: str = ""
    is_heading: bool = False
    leads_on: bool = False
    in_table: bool = False
    cell_range: str | None = None
    box: Box | None = None
    tokens: int = 0
    header_tokens: int = 0
    group: str = ""
    group_tokens: int = 0


def chunk_page(
    page: Page, titles: Sequence[str], tokenizer: Tokenizer, size_tokens: int, overlap_share: float
) -> list[Chunk]:
    """Cut one page into passages.

    Args:
        page: The page. Running headers and footers are left out.
        titles: Names of the document, most general first; repeated ones are dropped.
        tokenizer: Measures lengths.
        size_tokens: Tokens of a passage at most, context included.
        overlap_share: Share of a passage that the next one repeats, in whole rows or sentences.

    Returns:
        The passages in reading order; none where the page has no text.
    """
    base = _distinct(titles if page.kind is PageKind.SECTION else [*titles, page.name or ""])  # headings stand apart
    context_limit = int(size_tokens * _CONTEXT_SHARE)
    contexts = _Contexts(base, tokenizer, context_limit)
    budget = size_tokens - context_limit
    units = _measure(_mark_leads(list(_page_units(page, tokenizer, budget))), tokenizer)

    def room(unit: _Unit) -> int:
        return size_tokens - contexts.get(unit.section)[1]

    units = list(_cut_to_room(units, tokenizer, budget, room))
    groups = _pack(units, budget, int(size_tokens * overlap_share), room)
    chunks = [_chunk(index, group, contexts.get(group[0].section)[0]) for index, group in enumerate(groups)]
    counts = tokenizer.count_tokens([f"{chunk.context}\n{chunk.text}" for chunk in chunks])
    return [replace(chunk, length_tokens=count) for chunk, count in zip(chunks, counts, strict=True)]


class _Contexts:
    """The context lines of sections."""

    def __init__(self, base: Sequence[str], tokenizer: Tokenizer, limit: int) -> None:
        self._base, self._tokenizer, self._limit = base, tokenizer, limit
        self._known: dict[tuple[str, ...], tuple[str, int]] = {}

    def get(self, section: tuple[str, ...]) -> tuple[str, int]:
        """The context line of a section, cut to its share of the passage, and its length in tokens."""
        if section not in self._known:
            parts = _distinct([*self._base, *section])
            text = " › ".join(parts)
            while (count := self._tokenizer.count_tokens([text])[0]) > self._limit:
                if len(parts) > max(1, len(self._base)):
                    parts = [*parts[: len(self._base)], *parts[len(self._base) + 1 :]]
                    text = " › ".join(parts)
                else:
                    text = text[: max(1, len(text) * self._limit // (count + 1))]
            self._known[section] = text, count
        return self._known[section]


def _distinct(parts: Iterable[str]) -> list[str]:
    """Parts in one line each, but for those that stand in one before."""
    distinct_parts: list[str] = []
    for part in map(one_line, parts):
        if part and not any(part in text for text in distinct_parts):
            distinct_parts.append(part)
    return distinct_parts


def _page_units(page: Page, tokenizer: Tokenizer, budget: int) -> Iterator[_Unit]:
    for index, block in enumerate(page.blocks):
        match block.kind:
            case BlockKind.HEADER:
                continue
            case BlockKind.TABLE if block.rows:
                yield from _table_units(index, block, tokenizer, budget)
            case _:
                yield from _text_units(index, block, tokenizer, budget)


def _text_units(index: int, block: Block, tokenizer: Tokenizer, budget: int) -> Iterator[_Unit]:
    text, is_heading = block.text.strip(), block.kind is BlockKind.HEADING
    unit = _Unit(text, index, block.section, is_heading=is_heading, cell_range=block.cell_range, box=block.box)
    if text and tokenizer.count_tokens([text])[0] <= budget:
        yield from (replace(unit, text=part) for part in ([text] if is_heading else _last_question_apart(text)))
    else:
        yield from (replace(unit, text=piece, is_heading=False) for piece in _sentences(text, tokenizer, budget))


def _last_question_apart(text: str) -> list[str]:
    """A text; of a long one that ends with a question in two parts, so that an answer can stand below that alone."""
    if len(text) <= _LEAD_CHARS or not asks(text):
        return [text]
    question = split_sentences(text)[-1]
    return [part for part in (text.removesuffix(question).rstrip(), question) if part]


def _sentences(text: str, tokenizer: Tokenizer, budget: int) -> Iterator[str]:
    """The sentences of a text, those that do not fit in pieces."""
    lines = [line for line in text.splitlines() if line.strip()]
    sentences = [sentence for line in lines for sentence in split_sentences(line)]
    counts = tokenizer.count_tokens(sentences)
    for sentence, count in zip(sentences, counts, strict=True):
        yield from [sentence] if count <= budget else _cut(sentence, tokenizer, budget)


def _cut(text: str, tokenizer: Tokenizer, budget: int) -> Iterator[str]:
    """Cut a text without sentence ends into long pieces that fit, where it may end."""
    begin = 0
    while begin < len(text):
        size = min(len(text) - begin, budget * _TOKEN_CHARS)
        piece = cut(text[begin : begin + size + 1], size, strictly=True)
        while size > 1 and (count := tokenizer.count_tokens([piece])[0]) > budget:
            size = max(1, min(size - 1, size * budget // count))
            piece = cut(text[begin : begin + size + 1], size, strictly=True)
        begin += max(1, len(piece))
        if piece := piece.strip():
            yield piece


def _table_units(index: int, block: Block, tokenizer: Tokenizer, budget: int) -> Iterator[_Unit]:
    header_rows, body = block.rows[: block.header_row_count], block.rows[block.header_row_count :]
    if not body:
        header_rows, body = (), header_rows
    columns = column_names(header_rows)
    if tokenizer.count_tokens([CELL_SIGN.join(columns)])[0] > budget * _HEADER_SHARE:
        columns = tuple(_LINK_SUFFIX.sub("", column) for column in columns)
    merged_rows = [_merged_cells(cells, columns) for cells in (columns, *(row.cells for row in body))]
    header, *lines = _lines(merged_rows, columns)
    groups = _groups([row.cells for row in body], lines)
    header_tokens = tokenizer.count_tokens([header])[0]
    if header_tokens > budget * _HEADER_SHARE:
        header, lines = "", [""] * len(lines)
    room = budget - (header_tokens if header else 0)
    texts = [_row_text(columns, cells, line) for cells, line in zip(merged_rows[1:], lines, strict=True)]
    group_tokens = dict(zip(groups, tokenizer.count_tokens(groups), strict=True))
    counts, groups_below = tokenizer.count_tokens(texts), [*groups[1:], ""]
    for row, text, group, count, group_below in zip(body, texts, groups, counts, groups_below, strict=True):
        if not text:
            continue
        is_wide = count > room
        unit = _Unit(
            text,
            index,
            block.section,
            header,
            leads_on=group_below == text,
            in_table=True,
            cell_range=row.cell_range,
            box=row.box or block.box,
            tokens=0 if is_wide else count,
            group=group if count + group_tokens[group] <= room else "",
        )
        yield from _wide_row(unit, columns, row, tokenizer, budget) if is_wide else [unit]


def _wide_row(unit: _Unit, columns: Sequence[str], row: Row, tokenizer: Tokenizer, budget: int) -> Iterator[_Unit]:
    """A row longer than a passage: cell by cell, each with the name of its column, every passage with what the row is
    called.
    """
    unit = replace(unit, header="")
    cells = _merged_cells(row.cells, columns)
    names = _row_names(columns, cells)
    counts = tokenizer.count_tokens(names)
    name, name_tokens = next(
        (pair for pair in zip(names, counts, strict=True) if pair[1] <= budget * _ROW_NAME_SHARE), ("", 0)
    )
    texts: list[str] = []
    tokens = 0
    for place, cell in cells:
        prefix = _label(columns, place)
        prefix_tokens = tokenizer.count_tokens([prefix])[0]
        half = (budget - name_tokens) // 2
        room = max(half, budget - name_tokens - prefix_tokens - 1)
        prefix = prefix if prefix_tokens < half else prefix[:20]
        for piece in _cut(cell, tokenizer, room):
            text = prefix + piece
            count = tokenizer.count_tokens([text])[0]
            if texts and tokens + count > budget:
                yield replace(unit, text="\n".join(texts))
                texts, tokens = [name] if name else [], name_tokens
            texts.append(text)
            tokens += count
    yield replace(unit, text="\n".join(texts))


def _label(columns: Sequence[str], place: int) -> str:
    return f"{columns[place]}: " if columns and columns[place] else ""


def _row_names(columns: Sequence[str], cells: Sequence[tuple[int, str]]) -> list[str]:
    """What a row may be called, the longest first: its short leading cells up to one with a word; none where all its
    cells are such.
    """
    leading = list(takewhile(lambda cell: len(cell[1]) <= _SHORT_CHARS, cells[:_NAME_CELLS]))
    if len(leading) == len(cells):
        return []
    lines = [f"{_label(columns, place)}{text}" for place, text in leading]
    ends = [end for end, (_, text) in enumerate(leading, 1) if _WORD.search(text)]
    return ["\n".join(lines[:end]) for end in reversed(ends)]


def column_names(header_rows: Sequence[Row]) -> tuple[str, ...]:
    """Names of the columns of a table: the cells of its header rows from top to bottom, joined by ` > `."""
    columns = zip(*(row.cells for row in header_rows), strict=True)
    return tuple(" > ".join(dict.fromkeys(filter(None, map(one_line, cells)))) for cells in columns)


def _lines(merged_rows: Sequence[_MergedCells], columns: Sequence[str]) -> list[str]:
    """Rows as text in which every cell stands at its place, so that cells of one column can be told.

    An empty cell, and one that a merged value spans, is an empty place between ` | `. Places at the end of a row, and
    those that are empty in all rows, are left out; a bar tells a row of one short cell, which heads those below it
    where columns have names, from a heading above a table.
    """
    texts_by_place = [dict(cells) for cells in merged_rows]
    used_places = sorted({place for row in texts_by_place for place in row})
    lines = [
        CELL_SIGN.join(row.get(place, "") for place in used_places if place <= max(row, default=-1))
        for row in texts_by_place
    ]
    if not columns or len(used_places) < 2:
        return lines

    def heads(line: str, row: Mapping[int, str]) -> bool:
        return list(row) == used_places[:1] and len(line) <= _SHORT_CHARS and not _NUMBER.fullmatch(line)

    return [f"{line}{_ALONE}" if heads(line, row) else line for line, row in zip(lines, texts_by_place, strict=True)]


def _groups(rows: Sequence[Sequence[str]], lines: Sequence[str]) -> list[str]:
    """For each row the line of the one that heads its group, or nothing.

    A short cell that stands alone heads the rows below it, where several rows follow nearly each such cell of a table
    that has several of them; without such cells, those of a row head the ones below it that begin with empty cells. A
    total belongs to no group.
    """
    lone_rows = [
        place
        for place, line in enumerate(lines)
        if line.endswith(_ALONE) and len({*map(one_line, rows[place])} - {""}) == 1
    ]
    short = sum(end - place <= _LEAST_OF_GROUP for place, end in pairwise([*lone_rows, len(rows)]))
    if not lone_rows:
        return _cells_above(rows)
    if len(lone_rows) < 2 or short > len(lone_rows) * _FEW:
        return [""] * len(rows)
    groups: list[str] = []
    group = ""
    for place, row in enumerate(rows):
        first = next(filter(None, map(one_line, row)), "")
        texts = {*map(one_line, row)} - {""}
        if place in lone_rows or len(texts) < 2 or is_total(first):
            group = lines[place] if place in lone_rows else ""
            groups.append("")
        else:
            groups.append(group)
    return groups


def _cells_above(rows: Sequence[Sequence[str]]) -> list[str]:
    """For each row that begins with empty cells those that stand above them, as a line; nothing where not most rows of
    a table do, or the first cells do not tell groups apart, as marks, dates and numbers of rows do not.
    """
    every = [[*map(one_line, row)] for row in rows]
    used_places = sorted({place for row in every for place, text in enumerate(row) if text})
    texts = [[row[place] if place < len(row) else "" for place in used_places] for row in every]
    names = [row[0] for row in texts if row and row[0]]
    below = sum(not row[0] for row in texts if any(row))
    if (
        len(names) < 2
        or below < len(names)
        or len({*names}) < len(names)
        or any(kind_of(name) in _NO_GROUP for name in names)
    ):
        return [""] * len(rows)
    groups: list[str] = []
    above = [""] * len(used_places)
    for row in texts:
        lead = next((place for place, text in enumerate(row) if text), 0)
        above = [*above[:lead], *row[lead:]]
        line = CELL_SIGN.join(above[:lead])
        is_group = all(above[:lead]) and not is_total(row[lead]) and len(line) <= _GROUP_CHARS
        groups.append((line if lead > 1 else f"{line}{_ALONE}") if lead and is_group else "")
    return groups


def _row_text(columns: Sequence[str], cells: _MergedCells, line: str) -> str:
    """A row as its line below the header; with the name of its column at each cell where that is shorter, as in sparse
    rows, or where there is no line.
    """
    if not columns:
        return line
    pairs = CELL_SIGN.join(f"{columns[place]}: {cell}" if columns[place] else cell for place, cell in cells)
    return pairs if not line or (len(pairs) < len(line) and not line.endswith(_ALONE)) else line


def _merged_cells(cells: Sequence[str], columns: Sequence[str]) -> _MergedCells:
    """Places of the cells with text, and their texts; of neighbours that hold the same words, as merged cells do, only
    the first, but for two short ones in columns of other names.
    """
    merged_cells: _MergedCells = []
    is_one = len({*map(one_line, cells)} - {""}) == 1
    for text, run in groupby(enumerate(map(one_line, cells)), key=lambda pair: pair[1]):
        places = [place for place, _ in run] if text else []
        names = {columns[place] for place in places} if columns else set()
        if len(text) >= 3 and not _NUMBER.fullmatch(text):
            are_two = len(places) == len(names) == 2 and len(text) <= _SHORT_CHARS and not is_one
            del places[2 if are_two else 1 :]
        merged_cells += [(place, text) for place in places]
    return merged_cells


def _measure(units: list[_Unit], tokenizer: Tokenizer) -> list[_Unit]:
    """Units with the tokens of their texts, where these are not known, and of what stands above them."""
    headers = sorted({text for unit in units for text in (unit.header, unit.group)})
    lengths = dict(zip(headers, tokenizer.count_tokens(headers), strict=True))
    counts = iter(tokenizer.count_tokens([unit.text for unit in units if not unit.tokens]))
    return [
        replace(
            unit,
            tokens=unit.tokens or next(counts),
            header_tokens=lengths[unit.header],
            group_tokens=lengths[unit.group],
        )
        for unit in units
    ]


def _pack(units: Sequence[_Unit], budget: int, overlap: int, room: Callable[[_Unit], int]) -> list[list[_Unit]]:
    """Fill passages with units in order; a heading, a question, and what announces a list stay with what follows them,
    and a new section starts a new passage once the current one is half full.
    """
    groups: list[list[_Unit]] = []
    group: list[_Unit] = []
    for unit in units:
        ends_section = bool(group) and unit.is_heading and not group[-1].is_heading and _length(group) > budget // 2
        if group and (ends_section or _length([*group, unit]) > room(group[0])):
            leading_units = _leading_on(group)
            body = group[: len(group) - len(leading_units)]
            groups.append(body)
            same_part = not leading_units and body[-1].section == unit.section
            group = leading_units or (_tail(body, overlap) if same_part else [])
            above: list[_Unit] = []
            while group and _length([*group, unit]) > room(group[0]):
                first = group.pop(0)
                above += [first] if leading_units else []  # the others stand in the passage before as well
            if above:
                groups.append(above)
        group.append(unit)
    if group:
        groups.append(group)
    return groups


def _mark_leads(units: Sequence[_Unit]) -> list[_Unit]:
    """Units, with those marked that lead on to what follows them: what announces a list, a question, the label of an
    answer, a short line that stands as a heading. More of the last three in a row are a list, and lead on to nothing.
    """
    runs: list[list[int]] = []
    for place in sorted(_questions(units)):
        if runs and runs[-1][-1] == place - 1:
            runs[-1].append(place)
        else:
            runs.append([place])
    leading_places = {
        place for run in runs if len({units[index].block_index for index in run}) <= _MOST_LEADING for place in run
    }
    return [
        replace(unit, leads_on=True) if place in leading_places or _announces(unit) else unit
        for place, unit in enumerate(units)
    ]


def _questions(units: Sequence[_Unit]) -> set[int]:
    """Places of questions, of labels of answers, and of lines that stand as headings.

    A question of several sentences begins at its label, as `問1．`. A row of a table is one where the next row answers
    it.
    """
    places: set[int] = set()
    begin = 0
    for place, (unit, next_unit) in enumerate(pairwise(units)):
        is_labelled = _is_labelled(unit.text)
        is_apart = unit.in_table or unit.block_index != units[begin].block_index
        if is_labelled or is_apart or _ANSWER.match(unit.text):
            begin = place
        if unit.is_heading or (unit.in_table and not _ANSWER.match(next_unit.text)):
            continue
        if is_labelled or (len(unit.text) <= _LEAD_CHARS and asks(unit.text)):
            parts = units[begin : place + 1]
            is_whole = _is_labelled(parts[0].text) and sum(len(part.text) for part in parts) <= 2 * _LEAD_CHARS
            places.update(range(begin if is_whole else place, place + 1))
        elif _ANSWER.fullmatch(unit.text) or _is_heading_line(unit):
            places.add(place)
    return places


def _announces(unit: _Unit) -> bool:
    return not unit.in_table and len(unit.text) <= _LEAD_CHARS and announces(unit.text[-_LAST_CHARS:])


def _is_labelled(text: str) -> bool:
    """Whether a text ends with a question that has a label, as `問1．`, and holds no answer to it."""
    labels = list(_ASKING.finditer(text))
    return bool(labels) and len(text) - labels[-1].start() <= _LEAD_CHARS and not _ANSWER.search(text, labels[-1].end())


def _is_heading_line(unit: _Unit) -> bool:
    return not unit.in_table and len(unit.text) <= _HEADING_LINE_CHARS and bool(_HEADING_LINE.fullmatch(unit.text))


def _cut_to_room(
    units: Sequence[_Unit], tokenizer: Tokenizer, budget: int, room: Callable[[_Unit], int]
) -> Iterator[_Unit]:
    """Units; a paragraph that has no room in a passage beside what leads on to it is cut into sentences."""
    leading_units: list[_Unit] = []
    for unit in units:
        left = room(leading_units[0]) - _length(leading_units) if leading_units else 0
        if unit.is_heading or unit.leads_on:
            leading_units.append(unit)
            yield unit
            continue
        if unit.in_table or not budget * _LEAST_ROOM <= left < unit.tokens:
            yield unit
        else:
            pieces = (replace(unit, text=piece, tokens=0) for piece in _sentences(unit.text, tokenizer, left))
            yield from _measure(list(pieces), tokenizer)
        leading_units = []


def _leading_on(group: Sequence[_Unit]) -> list[_Unit]:
    """Headings and what else leads on at the end of a group; none where it is nothing else."""
    leading_units = list(takewhile(lambda unit: unit.is_heading or unit.leads_on, reversed(group)))[::-1]
    return leading_units if len(leading_units) < len(group) else []


def _tail(group: Sequence[_Unit], overlap: int) -> list[_Unit]:
    """The last units, as many as the overlap allows; never all of them."""
    tail: list[_Unit] = []
    tokens = 0
    for unit in reversed(group[1:]):
        tokens += unit.tokens
        if unit.is_heading or tokens > overlap:
            break
        tail.insert(0, unit)
    return tail


def _parts(group: Sequence[_Unit]) -> list[list[_Unit]]:
    """The units in parts that stand under one header."""
    return [list(part) for _, part in groupby(group, key=lambda unit: (unit.block_index, unit.header))]


def _length(group: Sequence[_Unit]) -> int:
    above = group[0].group_tokens if group else 0
    return above + sum(part[0].header_tokens + sum(unit.tokens for unit in part) for part in _parts(group))


def _render(group: Sequence[_Unit]) -> str:
    """The text of a passage: what is in it line by line, an empty one between tables."""
    text = ""
    before: _Unit | None = None
    for part in _parts(group):
        first = part[0]
        lines = [first.header, group[0].group if first is group[0] else "", *(unit.text for unit in part)]
        are_two = before is not None and before.in_table and first.in_table and before.block_index != first.block_index
        text += ("\n\n" if are_two else "\n") * bool(text) + "\n".join(filter(None, lines))
        before = first
    return text


def _chunk(index: int, group: Sequence[_Unit], context: str) -> Chunk:
    text = _render(group)
    boxes = [unit.box for unit in group if unit.box]
    headings = [unit.text for unit in takewhile(lambda unit: unit.is_heading, group)]
    heading = headings[-1] if headings else group[0].section[-1] if group[0].section else ""
    return Chunk(
        index=index,
        heading=one_line(heading)[:_HEADING_CHARS] or None,
        context=context,
        text=text,
        language=detect_language(text),
        cell_range=cover([unit.cell_range for unit in group if unit.cell_range]),
        box=around(boxes) if boxes else None,
        block_indexes=tuple(sorted({unit.block_index for unit in group})),
        length_tokens=0,
    )
