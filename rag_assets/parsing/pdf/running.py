"""What runs over the pages of a PDF beside its text: headers, footers, page numbers."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from rag_assets.parsing.pdf.lines import Line

_MARGIN_SHARE = 0.12
_REPEATED_PAGES = 3
_HEIGHT_PAGES = 4
_HEIGHT_SHARE = 0.6
# A page number at the outer end of a running line: on the left of left pages, on the right of right ones.
_OUTER_NUMBER = re.compile(r"^#[\s|｜—–-]+(?=\S)|(?<=\S)[\s|｜—–-]+#$")
_PARTED_NUMBER = re.compile(r"^\d+\s*[|｜—–]\s*(?=\S)|(?<=\S)\s*[|｜—–]\s*\d+$")
_DIGITS = re.compile(r"\d+")
_LETTER = re.compile(r"[^\W\d_]")
_YEARS = range(1900, 2101)
_CENTRED_SHARE = 0.05
_DASHES = "-‐‑–—―−ー─~〜|"
_GAP = 0.7  # of the size of the type
_WIDE = 1.3  # times the gap between lines of the text
_LINES_BEYOND = 2
_FORM = re.compile(
    r"(?P<left>[-‐‑–—―−ー─~〜|・·*_(\[<〔【{ ]*)(?P<word>第|page|pages|seite|pg|p|頁|ページ)?[.:| ]*"
    r"(?P<number>[0-9]{1,4}|[ivxlc]{1,6})"
    r"(?P<total> ?(?:/|of|von|sur) ?(?P<last>[0-9]{1,4}))? ?(?P<unit>\|? ?page|頁|ページ)?"
    r"(?P<right>[-‐‑–—―−ー─~〜|・·*_)\]>〕】} ]*)",
    re.IGNORECASE,
)
_ROMAN = re.compile(r"(x?c|x?l|l?x{0,3})(ix|iv|v?i{0,3})", re.IGNORECASE)
_ROMAN_VALUES = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100}


@dataclass(frozen=True, slots=True)
class PageLines:
    """Lines of a page with its size in points."""

    lines: list[Line]
    size: tuple[float, float]


@dataclass(slots=True)
class PageParts:
    """Lines of a page, told apart."""

    headers: list[Line] = field(default_factory=list)
    body: list[Line] = field(default_factory=list)
    footers: list[Line] = field(default_factory=list)


class PageNumber(NamedTuple):
    """A line in the form of a page number."""

    value: int  # the number
    last: int | None  # the number of the last page that stands with it, or None
    is_stated: bool  # whether its form tells that it is one, as of `- 3 -`, `Page 3` and `3ページ`


def page_number(text: str) -> PageNumber | None:
    """The page number that a line may be; None of a number with a sign, a unit or a currency, and of all other text."""
    match = _FORM.fullmatch(unicodedata.normalize("NFKC", text).strip())
    if match is None:
        return None
    left, right = match["left"].strip(), match["right"].strip()
    if bool(left) != bool(right):
        return None
    value = _value(match["number"])
    last = int(match["last"]) if match["last"] else None
    if value is None or (last is not None and not 0 < value <= last):
        return None
    return PageNumber(value, last, bool(match["word"] or match["unit"] or (left and left[-1] in _DASHES)))


def tell_apart(pages: Sequence[PageLines], body: float) -> list[PageParts]:
    """Part each page into what runs over all pages and its own lines; where no page has lines of its own, all are text.

    Args:
        pages: The pages in order.
        body: Size of the type of the text in points.
    """
    running_keys = _running_lines(pages, body)
    numbers = _counting_lines(pages) | _margin_numbers(pages, running_keys)
    parts = [_tell_page(page, running_keys, numbers, body) for page in pages]
    return parts if any(part.body for part in parts) else [PageParts(body=[*page.lines]) for page in pages]


def _tell_page(page: PageLines, running_keys: set[tuple[str, int]], numbers: set[int], body: float) -> PageParts:
    """Part a page, by keys of lines that run over all pages and identities of lines that are page numbers."""
    parts = PageParts()
    for line in page.lines:
        keys = _running_keys(line) if _is_small(line, page, body) else {_same_key(line)}
        recurs = _in_margin(line, page.size) and keys & running_keys
        if line.table or not (recurs or id(line) in numbers):
            parts.body.append(line)
        elif line.box[1] < page.size[1] / 2:
            parts.headers.append(line)
        else:
            parts.footers.append(line)
    return parts


def _margin_numbers(pages: Sequence[PageLines], running_keys: set[tuple[str, int]]) -> set[int]:
    """Identities of lines in the margins that are page numbers.

    They are those that rise with the pages, and of the others those apart from the text at the edge of their page:
    in the form of a page number; bare ones, other than years, only in the middle or where they count their page.
    """
    candidates: list[tuple[int, Line, PageNumber]] = []
    for position, page in enumerate(pages):
        in_margin = [line for line in page.lines if not line.table and _in_margin(line, page.size)]
        candidates += [(position, line, number) for line in in_margin if (number := page_number(line.text))]
    numbers = _rising(candidates)
    for position, line, number in candidates:
        page = pages[position]
        left, right = line.box[0], page.size[0] - line.box[2]
        is_centred = abs(left - right) <= 2 * _CENTRED_SHARE * page.size[0]
        is_stated = number.is_stated or number.last == len(pages)
        is_placed = is_stated or number.value == position + 1 or (is_centred and number.value not in _YEARS)
        if is_placed and _is_apart(line, page, running_keys, lines_beyond=_LINES_BEYOND if is_stated else 0):
            numbers.add(id(line))
    return numbers


def _rising(candidates: Sequence[tuple[int, Line, PageNumber]]) -> set[int]:
    """Identities of the numbers that rise by one from page to page, or at all on at least three pages at one height."""
    groups: dict[int, list[tuple[int, Line]]] = defaultdict(list)
    level: dict[int, list[tuple[int, Line, PageNumber]]] = defaultdict(list)
    for position, line, number in candidates:
        groups[number.value - position].append((position, line))
        level[_height(line)].append((position, line, number))
    lines = [line for group in groups.values() if len({position for position, _ in group}) > 1 for _, line in group]
    for group in level.values():
        rises = all(before[0] < behind[0] and before[2].value < behind[2].value for before, behind in pairwise(group))
        lines += [line for _, line, _ in group] if len(group) >= _REPEATED_PAGES and rises else []
    return {id(line) for line in lines}


def _is_apart(line: Line, page: PageLines, running_keys: set[tuple[str, int]], *, lines_beyond: int) -> bool:
    """Whether a gap parts a line from the text, and no more than some lines in the same margin lie beyond it."""
    is_top = line.box[1] < page.size[1] / 2
    other_lines = [other_line for other_line in page.lines if other_line is not line]
    beyond = [
        other_line
        for other_line in other_lines
        if (other_line.box[3] <= line.box[1] if is_top else other_line.box[1] >= line.box[3])
    ]
    inner = [other_line for other_line in other_lines if other_line not in beyond]
    gaps = (other_line.box[1] - line.box[3] if is_top else line.box[1] - other_line.box[3] for other_line in inner)
    strange = [other_line for other_line in beyond if not _running_keys(other_line) & running_keys]
    return len(strange) <= lines_beyond and all(gap >= _GAP * line.size for gap in gaps)


def _value(number: str) -> int | None:
    """Value of a number in digits or in Roman numerals; None for other letters."""
    if number.isdigit():
        return int(number)
    if not _ROMAN.fullmatch(number):
        return None
    values = [_ROMAN_VALUES[letter] for letter in number.lower()]
    return sum(-value if value < max(values[place:]) else value for place, value in enumerate(values))


def _counting_lines(pages: Sequence[PageLines]) -> set[int]:
    """Identities of the first and last lines of pages that are numbers rising by one from page to page, at one height.

    Pages with wide margins have them further inside than other running lines are looked for.
    """
    groups: dict[tuple[int, int], list[int]] = defaultdict(list)
    for position, page in enumerate(pages):
        ordered_lines = sorted((line for line in page.lines if not line.table), key=lambda line: line.box[1])
        for line in {id(line): line for line in (*ordered_lines[:1], *ordered_lines[-1:])}.values():
            number = page_number(line.text) if len(page.lines) > 1 else None
            if number is not None and _is_outermost(line, page):
                groups[number.value - position, _height(line)].append(id(line))
    return {line for lines in groups.values() if len(lines) >= _REPEATED_PAGES for line in lines}


def _is_outermost(line: Line, page: PageLines) -> bool:
    """Whether no line or table of a page reaches beyond a line."""
    other_lines = [other_line for other_line in page.lines if other_line is not line]
    return all(other_line.box[1] >= line.box[3] for other_line in other_lines) or all(
        other_line.box[3] <= line.box[1] for other_line in other_lines
    )


def _running_lines(pages: Sequence[PageLines], body: float) -> set[tuple[str, int]]:
    """Keys of what recurs at one height in the margins of pages.

    They are lines that say the same; those that say the same but for their digits, as headings do as well (`第1章`),
    in no larger or bolder type than the text; and heights at which lines in no larger or bolder type stand apart from
    the text on most pages, whatever they say (as the title of the chapter).
    """
    pages_of_key: dict[tuple[str, int], set[int]] = defaultdict(set)
    for number, page in enumerate(pages):
        in_margin = [line for line in page.lines if not line.table and _in_margin(line, page.size)]
        for line in in_margin:
            for key in {_same_key(line)} | ({_running_key(line)} if _is_small(line, page, body) else set()):
                pages_of_key[key].add(number)
        for line in _apart(page, in_margin):
            if line.size <= body * 1.05 and not line.is_bold:
                pages_of_key["", _height(line)].add(number)
    least = min(_REPEATED_PAGES, max(2, len(pages)))
    most = max(_HEIGHT_PAGES, _HEIGHT_SHARE * len(pages))
    return {key for key, numbers in pages_of_key.items() if len(numbers) >= (least if key[0] else most)}


def _apart(page: PageLines, in_margin: Sequence[Line]) -> Iterator[Line]:
    """The outermost lines of a page, where a gap wider than between lines of its text parts them from the next."""
    if len(page.lines) < 3 or not in_margin:
        return
    lines = sorted(page.lines, key=lambda line: line.box[1])
    gaps = sorted(gap for above, below in pairwise(lines) if (gap := below.box[1] - above.box[3]) > 0)
    usual = _WIDE * gaps[len(gaps) // 4] if gaps else 0.0
    first, second = lines[:2]
    if first in in_margin and second.box[1] - first.box[3] > max(first.size, usual):
        yield first
    before, last = sorted(page.lines, key=lambda line: line.box[3])[-2:]
    if last in in_margin and last.box[1] - before.box[3] > max(last.size, usual):
        yield last


def _is_small(line: Line, page: PageLines, body: float) -> bool:
    """Whether a line is in no larger or bolder type than the text, as headings are; none of them ends a page."""
    is_light = not line.is_bold or line.size < body * 0.95 or line.box[1] > page.size[1] / 2
    return is_light and line.size <= body * 1.05


def _running_keys(line: Line) -> set[tuple[str, int]]:
    return {_same_key(line), _running_key(line), ("", _height(line))}


def _same_key(line: Line) -> tuple[str, int]:
    """What a line says, but for a page number that a sign parts from it, with its height."""
    return _PARTED_NUMBER.sub("", line.text), _height(line)


def _running_key(line: Line) -> tuple[str, int]:
    """What a line says but for its numbers, with its height; figures alone must be the same to recur."""
    if not _LETTER.search(line.text):
        return line.text, _height(line)
    return _OUTER_NUMBER.sub("", _DIGITS.sub("#", line.text)), _height(line)


def _height(line: Line) -> int:
    """Where a line stands on its page, in steps of four points, within which lines stand at one height."""
    return round(line.box[1] / 4)


def _in_margin(line: Line, size: tuple[float, float]) -> bool:
    return line.box[3] < size[1] * _MARGIN_SHARE or line.box[1] > size[1] * (1 - _MARGIN_SHARE)
