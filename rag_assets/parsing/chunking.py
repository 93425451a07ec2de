"""Cuts pages into passages that are searched.

A passage holds whole blocks where they fit, rows of a table under its header, or sentences of a long paragraph. It
never crosses a page, and carries the place that it was taken from. What stays out: the windows of the entity graph.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from rag_assets.contracts.causes import BlockKind, PageKind
from rag_assets.contracts.content import Block, Box, Page, Row
from rag_assets.contracts.ports import Tokenizer
from rag_assets.text.cells import cover
from rag_assets.text.language import detect_language, split_sentences
from rag_assets.text.plain import one_line

_CONTEXT_SHARE = 0.25  # of a passage, at most, for title, page name and section
_HEADER_SHARE = 0.35  # of a passage, at most, for a table header; wider tables name the column at each cell
_TOKEN_CHARS = 16  # that a token stands for at most where pieces are looked for
_NUMBER = re.compile(r"[\d.,%\-+¥$/:()]*")


@dataclass(frozen=True)
class Chunk:
    """A passage of a page.

    Attributes:
        index: Position on the page, from 0.
        context: Title, page name and section, joined by ` › `.
        text: Text as displayed.
        language: Main language, ISO 639-1, or `und`.
        cell_range: Cells covered, or None.
        box: Position on the page in points, or None.
        block_indexes: Blocks that it is taken from, rising.
        length_tokens: Tokens of context and text.
    """

    index: int
    context: str
    text: str
    language: str
    cell_range: str | None
    box: Box | None
    block_indexes: tuple[int, ...]
    length_tokens: int


@dataclass(frozen=True)
class _Unit:
    """The smallest part that is kept whole, with the header that must stand above it."""

    text: str
    block_index: int
    section: tuple[str, ...]
    header: str = ""
    is_heading: bool = False
    cell_range: str | None = None
    box: Box | None = None
    tokens: int = 0
    header_tokens: int = 0


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
    units = _measure(list(_page_units(page, tokenizer, budget)), tokenizer)
    groups = _pack(
        units,
        budget,
        int(size_tokens * overlap_share),
        lambda unit: budget + context_limit - contexts.tokens(unit.section),
    )
    chunks: list[Chunk] = []
    for group in groups:
        text = _render(group)
        if text.strip():
            chunks.append(_chunk(len(chunks), group, text, contexts.text(group[0].section)))
    counts = tokenizer.count_tokens([f"{chunk.context}\n{chunk.text}" for chunk in chunks])
    return [replace(chunk, length_tokens=count) for chunk, count in zip(chunks, counts, strict=True)]


class _Contexts:
    """The context line of a section, cut to its share of the passage, with its length."""

    def __init__(self, base: Sequence[str], tokenizer: Tokenizer, limit: int) -> None:
        self._base, self._tokenizer, self._limit = base, tokenizer, limit
        self._known: dict[tuple[str, ...], tuple[str, int]] = {}

    def text(self, section: tuple[str, ...]) -> str:
        return self._get(section)[0]

    def tokens(self, section: tuple[str, ...]) -> int:
        return self._get(section)[1]

    def _get(self, section: tuple[str, ...]) -> tuple[str, int]:
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
    kept: list[str] = []
    for part in (one_line(part) for part in parts):
        if part and not any(part == other or part in other for other in kept):
            kept.append(part)
    return kept


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
    unit = _Unit(
        block.text.strip(),
        index,
        block.section,
        is_heading=block.kind is BlockKind.HEADING,
        cell_range=block.cell_range,
        box=block.box,
    )
    if not unit.text:
        return
    if tokenizer.count_tokens([unit.text])[0] <= budget:
        yield unit
        return
    lines = [line for line in unit.text.splitlines() if line.strip()]
    sentences = [s for line in lines for s in split_sentences(line)]
    counts = tokenizer.count_tokens(sentences)
    for sentence, count in zip(sentences, counts, strict=True):
        for piece in [sentence] if count <= budget else _cut(sentence, tokenizer, budget):
            yield replace(unit, text=piece, is_heading=False)


def _cut(text: str, tokenizer: Tokenizer, budget: int) -> Iterator[str]:
    """Cut a text without sentence ends into long pieces that fit, at white space where there is some."""
    begin = 0
    while begin < len(text):
        size = min(len(text) - begin, budget * _TOKEN_CHARS)
        while size > 1 and (count := tokenizer.count_tokens([text[begin : begin + size]])[0]) > budget:
            size = max(1, min(size - 1, size * budget // count))
        end = begin + size
        if end < len(text) and (space := text.rfind(" ", begin + size // 2, end)) > 0:
            end = space + 1
        if piece := text[begin:end].strip():
            yield piece
        begin = end


def _table_units(index: int, block: Block, tokenizer: Tokenizer, budget: int) -> Iterator[_Unit]:
    header_rows, body = block.rows[: block.header_row_count], block.rows[block.header_row_count :]
    if not body:
        header_rows, body = (), header_rows
    columns = column_names(header_rows)
    header, *lines = _lines([columns, *(row.cells for row in body)])
    header_fits = tokenizer.count_tokens([header])[0] <= budget * _HEADER_SHARE
    texts = [_row_text(columns, row.cells, line if header_fits else "") for row, line in zip(body, lines, strict=True)]
    room = budget - (tokenizer.count_tokens([header])[0] if header_fits and header else 0)
    for row, text, count in zip(body, texts, tokenizer.count_tokens(texts), strict=True):
        if not text:
            continue
        unit = _Unit(
            text,
            index,
            block.section,
            header if header_fits else "",
            cell_range=row.cell_range,
            box=row.box or block.box,
        )
        if count <= room:
            yield unit
        else:
            yield from _wide_row(unit, columns, row, tokenizer, budget)


def _wide_row(unit: _Unit, columns: Sequence[str], row: Row, tokenizer: Tokenizer, budget: int) -> Iterator[_Unit]:
    """A row longer than a passage: cell by cell, each with the name of its column."""
    unit = replace(unit, header="")
    held: list[str] = []
    held_tokens = 0
    for place, cell in _merged(row.cells):
        prefix = f"{columns[place]}: " if columns and columns[place] else ""
        room = max(budget // 2, budget - tokenizer.count_tokens([prefix])[0] - 1)
        prefix = prefix if room < budget and tokenizer.count_tokens([prefix])[0] < budget // 2 else prefix[:20]
        for piece in _cut(cell, tokenizer, room):
            text = prefix + piece
            count = tokenizer.count_tokens([text])[0]
            if held and held_tokens + count > budget:
                yield replace(unit, text="\n".join(held))
                held, held_tokens = [], 0
            held.append(text)
            held_tokens += count
    if held:
        yield replace(unit, text="\n".join(held))


def column_names(header_rows: Sequence[Row]) -> tuple[str, ...]:
    """Names of the columns of a table: the cells of its header rows from top to bottom, joined by ` > `."""
    if not header_rows:
        return ()
    return tuple(
        " > ".join(_distinct_in_order(cells)) for cells in zip(*(row.cells for row in header_rows), strict=True)
    )


def _distinct_in_order(cells: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(text for text in (one_line(cell) for cell in cells) if text))


def _lines(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows as text in which every cell stands at its place, so that cells of one column can be told.

    An empty cell, and one that a merged value spans, is an empty place between ` | `. Places at the end of a row, and
    those that are empty in all rows, are left out.
    """
    placed = [dict(_merged(cells)) for cells in rows]
    used = sorted({place for row in placed for place in row})
    return [" | ".join(row.get(place, "") for place in used if place <= max(row, default=-1)) for row in placed]


def _row_text(columns: Sequence[str], cells: Sequence[str], line: str) -> str:
    """A row as its line below the header; with the name of its column at each cell where that is shorter, as in sparse
    rows, or where there is no line.
    """
    if not columns:
        return line
    pairs = " | ".join(f"{columns[place]}: {cell}" if columns[place] else cell for place, cell in _merged(cells))
    return pairs if not line or len(pairs) < len(line) else line


def _merged(cells: Sequence[str]) -> list[tuple[int, str]]:
    """Places of the cells with text, and their texts; of neighbours that hold the same words, as merged cells do, only
    the first.
    """
    kept: list[tuple[int, str]] = []
    last = ""
    for place, cell in enumerate(cells):
        text = one_line(cell)
        if text and (text != last or _NUMBER.fullmatch(text) or len(text) < 3):
            kept.append((place, text))
        last = text
    return kept


def _measure(units: list[_Unit], tokenizer: Tokenizer) -> list[_Unit]:
    headers = sorted({unit.header for unit in units})
    lengths = dict(zip(headers, tokenizer.count_tokens(headers), strict=True))
    counts = tokenizer.count_tokens([unit.text for unit in units])
    return [
        replace(unit, tokens=count, header_tokens=lengths[unit.header])
        for unit, count in zip(units, counts, strict=True)
    ]


def _pack(units: Sequence[_Unit], budget: int, overlap: int, room: Callable[[_Unit], int]) -> list[list[_Unit]]:
    """Fill passages with units in order; a heading stays with what follows it, a new section starts a new passage once
    the current one is half full.
    """
    groups: list[list[_Unit]] = []
    group: list[_Unit] = []
    for unit in units:
        if group and (_length([*group, unit]) > room(group[0]) or _section_break(group, unit, budget)):
            headings = _trailing_headings(group)
            body = group[: len(group) - len(headings)]
            if body:
                groups.append(body)
            same_part = not headings and body and body[-1].section == unit.section
            group = [*(_tail(body, overlap) if same_part else []), *headings]
            left: list[_Unit] = []
            while group and _length([*group, unit]) > room(group[0]):
                first = group.pop(0)
                left += [first] if first.is_heading else []  # the others stand in the passage before as well
            if left:
                groups.append(left)
        group.append(unit)
    if group:
        groups.append(group)
    return groups


def _section_break(group: Sequence[_Unit], unit: _Unit, budget: int) -> bool:
    return unit.is_heading and not group[-1].is_heading and _length(group) > budget // 2


def _trailing_headings(group: Sequence[_Unit]) -> list[_Unit]:
    count = 0
    while count < len(group) and group[-1 - count].is_heading:
        count += 1
    return list(group[len(group) - count :]) if count < len(group) else []


def _tail(group: Sequence[_Unit], overlap: int) -> list[_Unit]:
    kept: list[_Unit] = []
    used = 0
    for unit in reversed(group[1:]):
        used += unit.tokens
        if unit.is_heading or used > overlap:
            break
        kept.insert(0, unit)
    return kept


def _length(group: Sequence[_Unit]) -> int:
    headers = sum(
        unit.header_tokens
        for before, unit in zip([None, *group], group, strict=False)
        if before is None or before.header != unit.header or before.block_index != unit.block_index
    )
    return headers + sum(unit.tokens for unit in group)


def _render(group: Sequence[_Unit]) -> str:
    lines: list[str] = []
    before: _Unit | None = None
    for unit in group:
        if unit.header and (before is None or (before.block_index, before.header) != (unit.block_index, unit.header)):
            lines.append(unit.header)
        lines.append(unit.text)
        before = unit
    return "\n".join(lines)


def _chunk(index: int, group: Sequence[_Unit], text: str, context: str) -> Chunk:
    return Chunk(
        index=index,
        context=context,
        text=text,
        language=detect_language(text),
        cell_range=cover([unit.cell_range for unit in group if unit.cell_range]),
        box=_union([unit.box for unit in group if unit.box]),
        block_indexes=tuple(sorted({unit.block_index for unit in group})),
        length_tokens=0,
    )


def _union(boxes: Sequence[Box]) -> Box | None:
    if not boxes:
        return None
    left, top, right, bottom = zip(*boxes, strict=True)
    return min(left), min(top), max(right), max(bottom)
