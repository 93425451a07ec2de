"""Sections of a long document that has no pages, each of a length that one reads at once and a page of its own.

A cut falls between two blocks, where the next heading is an outer one, a speaker begins, or the words before and behind
have least in common; and rather near the length wished for than far from it.

Source of the comparison of words: M. Hearst, TextTiling: Segmenting text into multi-paragraph subtopic passages,
Computational Linguistics 23(1), 1997. Deviation: blocks are compared, not runs of words, and lengths are bounded.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise

from rag_assets.contracts.causes import BlockKind, PageKind
from rag_assets.contracts.content import Block, Page
from rag_assets.text.scripts import SPACELESS

_LONG = 10_000  # letters from which a document is divided; a Japanese character counts as two
_SHEET = 6_000  # letters that no sheet of paper holds
_WISHED = 4_000
_LEAST, _MOST = 2_000, 6_000
_COMPARED = 800  # letters before and behind a place whose words are compared
_NAME_CHARS = 80
_SPEAKER = re.compile(r"[^\s:：。、]{1,20}(?: [^\s:：]{1,20}){0,2}[:：]")
_WIDE = re.compile(f"[{SPACELESS}]")
_WORD = re.compile(rf"(?=([{SPACELESS}]{{2}}))|([^\W{SPACELESS}]{{3,}})")  # two Japanese characters are one
_DISTANCE_COST = 0.5
_SPEAKER_GAIN = 0.2
_LIST_COST = 0.3
_HEADING_GAIN = 1.0
_LEVEL_COST = 0.1
_AFTER_HEADING_COST = 3.0


def divided(page: Page) -> tuple[Page, ...]:
    """The whole of a document as sections; the page itself where it is short, or nothing in it can be parted.

    Args:
        page: The only page of the document, of kind `body`.

    Returns:
        Pages of kind `section`, numbered from 1, with all blocks in their order. Each has the name of the heading that
        it begins with or stands under, or none.
    """
    lengths = [len(block.text) + len(_WIDE.findall(block.text)) for block in page.blocks]
    if sum(lengths) < _LONG:
        return (page,)
    cuts = _Cuts(page.blocks, [0, *accumulate(lengths)]).find()
    if not cuts:
        return (page,)
    parts = [page.blocks[start:end] for start, end in pairwise([0, *cuts, len(page.blocks)])]
    return tuple(
        replace(page, number=number, kind=PageKind.SECTION, blocks=part, name=_name(part[0]))
        for number, part in enumerate(parts, start=1)
    )


def tell_pages(pages: Sequence[Sequence[Block]]) -> bool:
    """Whether page breaks tell the pages: on average, no more letters stand between them than a sheet holds."""
    texts = (text for page in pages for block in page for text in _texts(block))
    return sum(len(text) + len(_WIDE.findall(text)) for text in texts) < _SHEET * len(pages)


def _texts(block: Block) -> Iterable[str]:
    """The texts of a block, a merged value once in a row, without what stands beside the text."""
    if block.kind is BlockKind.NOTE:
        return ()
    return [cell for row in block.rows for cell in dict.fromkeys(row.cells)] if block.rows else [block.text]


def _name(first: Block) -> str | None:
    if first.kind is BlockKind.HEADING:
        return first.text.replace("\n", " ")[:_NAME_CHARS]
    return first.section[-1][:_NAME_CHARS] if first.section else None


class _Cuts:
    """Looks for places to cut at.

    Args:
        blocks: All blocks.
        ends: Letters before each block, and of all.
    """

    def __init__(self, blocks: Sequence[Block], ends: Sequence[int]) -> None:
        self._blocks, self._ends = blocks, ends
        self._terms: dict[int, Counter[str]] = {}

    def find(self) -> list[int]:
        """Positions of the blocks that sections begin with, but for the first."""
        cuts: list[int] = []
        start, count = 0, len(self._blocks)
        while self._ends[count] - self._ends[start] > _MOST:
            places = self._places(start)
            if not places:
                break
            start = min(places, key=lambda place: (self._cost(start, place), place))
            cuts.append(start)
            self._terms.clear()
        return cuts

    def _places(self, start: int) -> list[int]:
        """Where the section that begins at a block may end: at a bearable length, else at the next block at all."""
        places: list[int] = []
        for place in range(start + 1, len(self._blocks)):
            length, rest = self._ends[place] - self._ends[start], self._ends[-1] - self._ends[place]
            if (length > _MOST and places) or rest < _LEAST:
                break
            if length >= _LEAST:
                places.append(place)
        return places

    def _cost(self, start: int, place: int) -> float:
        block, before = self._blocks[place], self._blocks[place - 1]
        cost = _DISTANCE_COST * abs(self._ends[place] - self._ends[start] - _WISHED) / _WISHED
        if before.kind is BlockKind.HEADING:
            cost += _AFTER_HEADING_COST
        if block.kind is BlockKind.HEADING:
            return cost - _HEADING_GAIN + _LEVEL_COST * len(block.section)
        if block.kind is BlockKind.LIST_ITEM is before.kind:
            cost += _LIST_COST
        if _SPEAKER.match(block.text):
            cost -= _SPEAKER_GAIN
        return cost + self._likeness(place)

    def _likeness(self, place: int) -> float:
        """Cosine of the words before a block and from it on."""
        before, behind = Counter[str](), Counter[str]()
        for at in reversed(range(place)):
            before += self._terms_of(at)
            if self._ends[place] - self._ends[at] >= _COMPARED:
                break
        for at in range(place, len(self._blocks)):
            behind += self._terms_of(at)
            if self._ends[at + 1] - self._ends[place] >= _COMPARED:
                break
        product = sum(count * behind[term] for term, count in before.items())
        norms = sum(count**2 for count in before.values()) * sum(count**2 for count in behind.values())
        return product / math.sqrt(norms) if norms else 0.0

    def _terms_of(self, at: int) -> Counter[str]:
        if at not in self._terms:
            words = _WORD.findall(self._blocks[at].text[:_COMPARED].casefold())
            self._terms[at] = Counter(pair or word for pair, word in words)
        return self._terms[at]
