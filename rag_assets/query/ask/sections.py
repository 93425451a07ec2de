"""What stands together on a page with a statement: its section, or the list or table that it is of.

A question for several things is answered by all of a list, which a passage may hold in part, or by all rows of a small
table, of which a statement is one. What a page consists of was told when its file was read.

What stays out: which statement it is (`rag_assets.query.ask.extracts`).
"""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, TypeAlias

from rag_assets.query.ask.statements import ITEM, together
from rag_assets.text.plain import one_line

_HEADING = "heading"
_TABLE = "table"
_ITEM = "list_item"
_BESIDE = frozenset({"header", "caption"})  # what is no part of the text
_LEAST_LINES = 3


@dataclass(frozen=True)
class PageBlock:
    """A part of a page.

    Attributes:
        kind: As in `blocks.kind`.
        section: Headings above it, outermost first.
        lines: Its lines; of a table, its rows.
        has_header: Whether the first row of a table, and it alone, names the columns.
    """

    kind: str
    section: tuple[str, ...]
    lines: tuple[str, ...]
    has_header: bool = False

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "PageBlock":
        """A row of `blocks`, with the columns of `BLOCK_COLUMNS`."""
        lines = (together(one_line(line)) for line in (row["text"] or "").splitlines())
        return cls(row["kind"], tuple(row["section"] or ()), tuple(filter(None, lines)), row["header_row_count"] == 1)


BLOCK_COLUMNS = ("kind", "section", "text", "header_row_count")
PageBlocks: TypeAlias = Callable[[str, int], Sequence[PageBlock]]  # of a document, the blocks of a page in their order


def header_rows(blocks: Sequence[PageBlock]) -> frozenset[str]:
    """The rows that name the columns of the tables of a page."""
    return frozenset(each.lines[0] for each in blocks if each.has_header and each.lines)


def standing_together(
    said: Sequence[str], blocks: Sequence[PageBlock], most_chars: int, *, is_lead: bool
) -> tuple[str, ...]:
    """The lines of the section in which others stand; where these are too many, of their list or table, with what
    stands directly above.

    Args:
        said: Lines of the page, from the one that is sought on.
        blocks: The page.
        most_chars: Characters of all lines.
        is_lead: Whether these lines head what follows, and nothing before them goes with it.

    Returns:
        Lines, none where there are too many, or too few for a list.
    """
    blocks = [each for each in blocks if each.kind not in _BESIDE]
    place = _place(said, blocks)
    if place is None:
        return ()
    for first, last in (_section(blocks, place), _group(blocks, place)):
        run = blocks[place if is_lead else first : last]
        lines = tuple(line for each in run for line in each.lines)
        if len(lines) >= _LEAST_LINES and sum(map(len, lines)) <= most_chars:
            return lines
    return ()


def _place(said: Sequence[str], blocks: Sequence[PageBlock]) -> int | None:
    """The block in which lines begin: as many of them as stand there one after the other."""
    ends = list(accumulate(len(squeezed("".join(each.lines))) for each in blocks))
    text = squeezed("".join(line for each in blocks for line in each.lines))
    for count in range(len(said), 0, -1):
        if sought := squeezed("".join(said[:count])):
            at = text.find(sought)
            if at >= 0:
                return bisect_right(ends, at)
    return None


def _section(blocks: Sequence[PageBlock], place: int) -> tuple[int, int]:
    """The first block under the heading that a block is, or stands under, or the heading, and the end; none without."""
    block = blocks[place]
    path = (*block.section, *block.lines[:1]) if block.kind == _HEADING else block.section
    if not path:
        return place, place
    first, last = place, place + 1
    while first and blocks[first - 1].section[: len(path)] == path:
        first -= 1
    while last < len(blocks) and blocks[last].section[: len(path)] == path:
        last += 1
    is_headed = first > 0 and block.kind != _HEADING and blocks[first - 1].kind == _HEADING
    return first - is_headed, last


def _group(blocks: Sequence[PageBlock], place: int) -> tuple[int, int]:
    """The first block of the table, or of the items of a list, that a block is or announces, with the line above, and
    the end; none of other text.
    """
    first = last = place
    if blocks[place].kind != _TABLE and not _is_item(blocks[place]) and place + 1 < len(blocks):
        last += 1
    if _is_item(blocks[last]):
        while first and _is_item(blocks[first]):
            first -= 1
        while last + 1 < len(blocks) and _is_item(blocks[last + 1]):
            last += 1
    elif blocks[last].kind != _TABLE:
        return place, place
    elif first == last and first:
        first -= len(blocks[first - 1].lines) == 1
    return first, last + 1


def _is_item(block: PageBlock) -> bool:
    """Whether a block is an item of a list, by its kind or its mark."""
    is_marked = len(block.lines) == 1 and ITEM.match(block.lines[0]) is not None
    return block.kind == _ITEM or (block.kind not in {_TABLE, _HEADING} and is_marked)


def squeezed(text: str) -> str:
    """A text without white space."""
    return "".join(text.split())
