"""Windows: the stretches of a page that entities are taken from, about 600 tokens each with 100 of the one before.

Windows are cut at the ends of lines and sentences. What stays out: the passages that are searched
(`rag_assets.parsing.chunking`).

Source: Edge et al., "From Local to Global: A Graph RAG Approach to Query-Focused Summarization" (2024), section 3.1.1.
Deviation: a window never crosses a page, so that each name has a page; tokens are estimated, so that windows do not
depend on the tokenizer of a model.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rag_assets.contracts.causes import BlockKind
from rag_assets.contracts.content import Block, Page
from rag_assets.text.language import split_sentences
from rag_assets.text.tokens import estimate_tokens


@dataclass(frozen=True, slots=True)
class Unit:
    """The smallest place that names are found in together: a sentence, a row of a table, a line of a diagram.

    Attributes:
        start: Where it begins in the text of the page.
        line: Its line in the block, from 0; of a table, its row.
    """

    text: str
    start: int
    block_index: int
    line: int

    @property
    def end(self) -> int:
        """Where it ends in the text of the page."""
        return self.start + len(self.text)


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of a page.

    Attributes:
        index: Position on the page, from 0.
        start: Where it begins in the text of the page.
        fresh: Where what the window before does not hold begins.
        header: Column headers of a table that began before the window; empty where it starts with none.
        header_start: Where these stand in the text of the page.
    """

    index: int
    start: int
    fresh: int
    end: int
    header: str = ""
    header_start: int = 0


def placed_blocks(page: Page) -> Iterator[tuple[int, int, Block]]:
    """Index, start in the text of the page, and block, of the blocks that have text."""
    start = 0
    for index, block in enumerate(page.blocks):
        if block.text:
            yield index, start, block
            start += len(block.text) + 1


def page_units(page: Page, language: str) -> list[Unit]:
    """Units of a page in reading order; running headers and footers are left out."""
    units: list[Unit] = []
    for index, start, block in placed_blocks(page):
        if block.kind is not BlockKind.HEADER:
            units += _block_units(block, index, start, language)
    return units


def _block_units(block: Block, index: int, start: int, language: str) -> list[Unit]:
    units: list[Unit] = []
    whole = block.kind in {BlockKind.TABLE, BlockKind.DIAGRAM, BlockKind.HEADING}
    for number, line in enumerate(block.text.split("\n")):
        position = 0
        for sentence in [line] if whole else split_sentences(line, language):
            found = line.find(sentence, position)
            if sentence.strip() and found >= 0:
                units.append(Unit(sentence, start + found, index, number))
                position = found + len(sentence)
        start += len(line) + 1
    return units


def page_windows(page: Page, units: Sequence[Unit], size_tokens: int, overlap_tokens: int) -> list[Window]:
    """Cut a page into windows.

    Tokens are estimated; the overlap holds whole units.

    Returns:
        Windows in reading order, which together hold every unit; none where there is no unit. A unit longer than a
        window is cut.
    """
    pieces = [piece for unit in units for piece in _pieces(unit, size_tokens)]
    tokens = [estimate_tokens(piece.text) + 1 for piece in pieces]
    windows: list[Window] = []
    first, fresh = 0, 0
    while fresh < len(pieces):
        last, room = first, size_tokens
        while last < len(pieces) and (tokens[last] <= room or last == fresh):
            room -= tokens[last]
            last += 1
        header = _header(page, pieces[first])
        start = pieces[first].start
        windows.append(Window(len(windows), start, pieces[fresh].start, pieces[last - 1].end, *header))
        fresh, first, kept = last, last, overlap_tokens
        while fresh < len(pieces) and first > 0 and tokens[first - 1] <= kept:
            if tokens[first - 1] + sum(tokens[first:fresh]) + tokens[fresh] > size_tokens:
                break
            first -= 1
            kept -= tokens[first]
    return windows


def window_text(window: Window, text: str) -> str:
    """What a model reads of a window."""
    body = text[window.start : window.end]
    return f"{window.header}\n{body}" if window.header else body


def window_of(windows: Sequence[Window], position: int) -> int:
    """Index of the first window that holds a position of the page: each position counts in one window only."""
    following = bisect_right(windows, position, key=lambda window: window.end)
    return windows[following].index if following < len(windows) else max(0, len(windows) - 1)


def _header(page: Page, piece: Unit) -> tuple[str, int]:
    """Header lines of the table that a piece is a row of, with where they stand."""
    block = page.blocks[piece.block_index]
    if block.kind is not BlockKind.TABLE or not 0 < block.header_row_count <= piece.line:
        return "", 0
    lines = block.text.split("\n")[: block.header_row_count]
    return "\n".join(lines), next(start for index, start, _ in placed_blocks(page) if index == piece.block_index)


def _pieces(unit: Unit, size_tokens: int) -> list[Unit]:
    if estimate_tokens(unit.text) < size_tokens:
        return [unit]
    chars = max(1, int((size_tokens - 1) / 1.2))
    return [
        Unit(unit.text[start : start + chars], unit.start + start, unit.block_index, unit.line)
        for start in range(0, len(unit.text), chars)
    ]
