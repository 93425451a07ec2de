"""Reading order of a sheet's blocks, and the headings above each."""

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from rag_assets.contracts.causes import BlockKind
from rag_assets.contracts.content import Block
from rag_assets.parsing.excel.cells import block_area
from rag_assets.parsing.excel.layout.captions import attach_captions

_NUMBER = re.compile(r"(\d{1,3}(?:[.．]\d{1,3})*)[.．]?")
_SUBNUMBER = re.compile(r"[-.]\d")
_CONTENTS = {"目次", "目 次", "目　次", "contents", "table of contents"}


class _Heading(NamedTuple):
    """An open heading: its kind, its depth within the kind, its first column and its text."""

    kind: str
    depth: int
    left: int
    text: str


def arrange(blocks: Iterable[Block]) -> tuple[Block, ...]:
    """Put blocks into reading order and give each the headings above it, outermost first, then notes of its own.

    A heading does not stand above blocks that lie wholly to its left.
    """
    ordered = _demote_contents(attach_captions(_in_order(list(blocks))))
    stack: list[_Heading] = []
    arranged = []
    for block in ordered:
        area = block_area(block)
        heading = _Heading(*heading_level(block.text), area.left, block.text)
        if block.kind is BlockKind.HEADING:
            _close(stack, heading)
        section = tuple(entry.text for entry in stack if entry.left <= area.right)
        arranged.append(replace(block, section=(*section, *block.section)))
        if block.kind is BlockKind.HEADING:
            stack.append(heading)
    return tuple(_demote_empty(arranged))


def heading_level(text: str) -> tuple[str, int]:
    """Kind of a heading and its depth within the kind: `2.3.1. x` is (`number`, 3)."""
    match = _NUMBER.match(text)
    if match:
        return "number", match.group(1).replace("．", ".").count(".") + 1
    if text[:1] in "(（":
        return "bracket", 1 + len(_SUBNUMBER.findall(text.partition(")")[0].partition("）")[0]))
    return ("plain" if text[:1].isalnum() else text[:1]), 1


def _close(stack: list[_Heading], heading: _Heading) -> None:
    """Drop open headings that do not stand above a new one.

    Of the same kind stay those of lesser depth, with what stands above them; where none of the kind is open, those that
    begin at the same column or left of it.
    """
    peers = [index for index, entry in enumerate(stack) if entry.kind == heading.kind]
    above = [index for index in peers if stack[index].depth < heading.depth]
    if above:
        del stack[above[-1] + 1 :]
    elif peers:
        del stack[peers[0] :]
    else:
        while stack and stack[-1].left > heading.left:
            stack.pop()


def _demote_empty(blocks: list[Block]) -> list[Block]:
    """Make paragraphs of headings without a number that stand above nothing."""
    demoted: list[Block] = []
    open_texts: set[str] = set()
    for block in reversed(blocks):
        empty = block.kind is BlockKind.HEADING and block.text not in open_texts and not _is_numbered(block)
        demoted.append(replace(block, kind=BlockKind.PARAGRAPH) if empty else block)
        open_texts.update(block.section)
    return demoted[::-1]


def _in_order(blocks: list[Block]) -> list[Block]:
    """Blocks from top to bottom, then left to right; a diagram follows a heading that stands over its upper third."""
    tops = [block_area(block).top for block in blocks if block.kind is BlockKind.HEADING]

    def position(block: Block) -> tuple[int, int]:
        area = block_area(block)
        if block.kind is BlockKind.DIAGRAM:
            third = area.top + (area.bottom - area.top) // 3
            if rows := [top for top in tops if area.top <= top <= third]:
                return max(rows), area.right + 1
        return area.top, area.left

    return sorted(blocks, key=position)


def _demote_contents(blocks: list[Block]) -> list[Block]:
    """Make list items of numbered headings that only list what follows elsewhere, as in a table of contents."""
    text = [block for block in blocks if block.kind not in {BlockKind.DIAGRAM, BlockKind.NOTE}]
    numbered = [block for block in text if _is_numbered(block)]
    bare = sum(_is_bare(text, index) for index in range(len(text)))
    titled = any(block.text.strip().lower() in _CONTENTS for block in text[:3])
    if not titled and (bare < 3 or bare * 2 < len(numbered)):
        return blocks
    return [replace(block, kind=BlockKind.LIST_ITEM) if _is_numbered(block) else block for block in blocks]


def _is_numbered(block: Block) -> bool:
    return block.kind is BlockKind.HEADING and heading_level(block.text)[0] == "number"


def _is_bare(blocks: list[Block], index: int) -> bool:
    """Whether nothing but headings follows a numbered heading, up to one that is not below it."""
    if not _is_numbered(blocks[index]):
        return False
    depth = heading_level(blocks[index].text)[1]
    for block in blocks[index + 1 :]:
        if block.kind is not BlockKind.HEADING:
            return False
        kind, other_depth = heading_level(block.text)
        if kind == "number" and other_depth <= depth:
            return True
    return True
