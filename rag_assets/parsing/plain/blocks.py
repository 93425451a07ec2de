"""Headings, paragraphs and list items of text without markup."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from rag_assets.contracts.causes import BlockKind
from rag_assets.contracts.content import Block
from rag_assets.parsing.flow import Sections, clean

_NUMERAL = "[0-9０-９一二三四五六七八九十百]+"
_UNDERLINE = re.compile(r"^(={3,}|-{3,}|~{3,}|＝{3,})$")
_RULE = re.compile(r"^[\W_]{3,}$")
_NUMBERED = re.compile(
    rf"^(?P<chapter>第{_NUMERAL}[章編部])|^(?P<part>第{_NUMERAL}[節条項])"
    r"|^(?P<number>[0-9０-９]{1,2}([.．][0-9０-９]{1,2})*[.．]?)[ \t\u3000]|^(?P<mark>[■◆●□【])"
)
_ABOVE_BODY = re.compile(
    rf"^(?P<chapter>第{_NUMERAL}[章編部])(?:$|[ ：:（(「『【])|^(?P<part>第{_NUMERAL}節(?:$|[ ：:（(「『【])"
    rf"|第{_NUMERAL}条(?:の{_NUMERAL})? ?(?:[（(][^）)]+[）)])?$)"
    r"|^(?P<mark>[■◆][^、：:]{1,30}|【[^】]{1,30}】)$"
)
_NUMBER_ABOVE_BODY = re.compile(
    r"^(?P<number>[0-9０-９]{1,2}(?:[.．][0-9０-９]{1,2})+[.．]?|[0-9０-９]{1,2}[.．]) ?(?=[^\W\d])[^、，,：:]{1,30}$"
)
_LEADER = re.compile(r"…|‥|\.{3}|・{3}|(?:^| )\d+ ?(?:頁|ページ)?$")
_BULLET = re.compile(r"^(?:[-*+•‣▪◦○] |・(?!・))\s*(?=\S)")
_DIGITS = re.compile(r"[0-9０-９]+")
_HEADING_CHARS = 60
_SENTENCE_END = ("。", ".", "、", ",", "，", "．", "!", "?", "！", "？", ";", ":", "：")
_LAST_SIGNS = ("。", ".", "．", "！", "？", "!", "?")


def text_blocks(text: str, sections: Sections) -> Iterator[Block]:
    """Blocks of a text, whose paragraphs blank lines part.

    Args:
        text: The text.
        sections: Headings above it; those of the text are entered.

    Yields:
        Headings: a line alone that is numbered or marked as one, a line with another of `=` or `-` below, and the
        lines `第1章`, `第1節`, `第1条（…）`, `■…` and `【…】` above the first line of their body; a line as `1. 概要`
        only where sentences follow it. List items where every line of a paragraph has the mark of one; else paragraphs.
    """
    for paragraph in _paragraphs(text):
        for level, part in _parts(paragraph):
            lines = [line for line in part if not _RULE.match(line)]
            if level and lines:
                heading = "\n".join(lines)
                yield Block(BlockKind.HEADING, heading, sections.enter(level, heading))
            elif lines and all(map(_BULLET.match, lines)):
                yield from (Block(BlockKind.LIST_ITEM, _BULLET.sub("", line), sections.path) for line in lines)
            elif lines:
                yield Block(BlockKind.PARAGRAPH, "\n".join(lines), sections.path)


def _paragraphs(text: str) -> Iterator[list[str]]:
    lines: list[str] = []
    for line in text.split("\n"):
        stripped = clean(line)
        if stripped:
            lines.append(stripped)
            if len(lines) == 2 and _UNDERLINE.match(stripped):
                yield lines
                lines = []
        elif lines:
            yield lines
            lines = []
    if lines:
        yield lines


def _parts(lines: list[str]) -> Iterator[tuple[int, list[str]]]:
    """Headings with their levels, from 1, and what stands between them with 0.

    Heading lines that follow each other must go deeper line by line: else they are a table of contents or a list.
    """
    if level := _heading_level(lines):
        yield level, lines
        return
    levels = [_level_above_body(line) for line in lines]
    levels[0] = levels[0] or _number_above_body(lines)
    body: list[str] = []
    start = 0
    while start < len(lines):
        end = start + 1
        while levels[start] and end < len(lines) and levels[end]:
            end += 1
        if levels[start] and all(above < below for above, below in pairwise(levels[start:end])):
            if body:
                yield 0, body
            body = []
            yield from ((level, [line]) for level, line in zip(levels[start:end], lines[start:end], strict=True))
        else:
            body += lines[start:end]
        start = end
    if body:
        yield 0, body


def _heading_level(lines: Sequence[str]) -> int:
    """Level of the heading that a paragraph is, from 1; 0 where it is none."""
    if len(lines) == 2 and _UNDERLINE.match(lines[1]) and len(lines[0]) <= _HEADING_CHARS:
        return 1 if lines[1][0] in "=＝" else 2
    if len(lines) != 1 or len(lines[0]) > _HEADING_CHARS or lines[0].endswith(_SENTENCE_END):
        return 0
    match = _NUMBERED.match(lines[0])
    if match is None:
        return 0
    if match["number"]:
        return 2 + len(_DIGITS.findall(match["number"]))
    return 1 if match["chapter"] else 2 if match["part"] else 6


def _level_above_body(line: str) -> int:
    """Level of a line that is a heading although other lines follow it; 0 where it need not be one."""
    match = _ABOVE_BODY.match(line)
    if match is None or len(line) > _HEADING_CHARS or line.endswith(_SENTENCE_END) or _LEADER.search(line):
        return 0
    return 1 if match["chapter"] else 2 if match["part"] else 6


def _number_above_body(lines: Sequence[str]) -> int:
    """Level of the first line as a numbered heading: no other line is numbered, and sentences follow."""
    match = _NUMBER_ABOVE_BODY.match(lines[0])
    if match is None or lines[0].endswith(_SENTENCE_END) or _LEADER.search(lines[0]) or len(lines) < 2:
        return 0
    if lines[1][0].islower() or any(_NUMBERED.match(line) for line in lines[1:]):
        return 0
    has_sentences = any(line.endswith(_LAST_SIGNS) for line in lines[1:])
    return 2 + len(_DIGITS.findall(match["number"])) if has_sentences else 0
