"""The text layer of a PDF page as lines with positions, in reading order.

What stays out: what the lines are (`pdf`).
"""

import ctypes
import math
import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any

from rag_assets.parsing.content import Box
from rag_assets.parsing.flow import CJK, clean, is_cjk

_SAME_LINE_SHARE = 0.5
_RUN_GAP = 1.2
_WORD_GAP = 0.22
_GUTTER = 1.0
_COLUMN_FILL = 0.55
_COLUMN_LINES = 4
_BOLD_WEIGHT = 600
_FORCE_BOLD = 0x40000
_CHARACTERS = 500_000
_ROW_GAP = 1.5
_RADICALS = re.compile("[\u2e80-\u2fdf]")
_SYMBOLS = re.compile("[\uf000-\uf0ff]")
_BULLET_SYMBOLS = "\uf06c\uf06e\uf075\uf076\uf077\uf09f\uf0a7\uf0b7\uf0d8\uf0e8\uf0fc"
_LEADERS = re.compile(r"(?:[.．・…‥·] ?){5,}")
_SPACED = re.compile(f"(?<=[{CJK}]) (?=[{CJK}])")
_HYPHEN_MARKS = ("\x02", "\ufffe", "\u00ad")


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text.

    Attributes:
        text: Its text; a hyphen at its end that only parts a word is a soft hyphen.
        box: Place on the page in points from the top left corner.
        size: Height of its type in points.
        is_bold: Whether it is set in bold type.
        region: Number of the part of the page (column, band) that it stands in, in reading order.
        is_vertical: Whether it runs from top to bottom.
        is_row: Whether wide gaps or leader dots part it, as in a row of a table or a table of contents.
    """

    text: str
    box: Box
    size: float
    is_bold: bool
    region: int = 0
    is_vertical: bool = False
    is_row: bool = False


@dataclass(slots=True)
class _Run:
    """Characters that follow each other without a wide gap."""

    characters: list[str]
    left: float
    top: float
    right: float
    bottom: float
    size: float
    is_bold: bool
    is_vertical: bool = False

    @property
    def text(self) -> str:
        return "".join(self.characters)


def read_lines(raw: Any, page: Any, text_page: Any, size: tuple[float, float]) -> list[Line]:
    """Lines of a page in reading order.

    Args:
        raw: The module `pypdfium2.raw`.
        page: The page.
        text_page: Handle of its text layer.
        size: Width and height of the page as displayed, in points.

    Returns:
        Lines; empty where the page has no text layer.
    """
    runs = [run for run in _runs(raw, page, text_page) if run.text.strip() and _is_visible(run, size)]
    lines: list[Line] = []
    for region, part in enumerate(_in_reading_order(runs, 0)):
        vertical = sum(run.is_vertical for run in part) > len(part) / 2
        lines.extend(_vertical_lines(part, region) if vertical else _horizontal_lines(part, region))
    return [line for line in lines if line.text]


def _runs(raw: Any, page: Any, text_page: Any) -> Iterator[_Run]:
    """Runs in the order of the file: broken at line ends, wide gaps and jumps."""
    place = _placing(page)
    box = raw.FS_RECTF()
    run: _Run | None = None
    for index in range(min(raw.FPDFText_CountChars(text_page), _CHARACTERS)):
        code = raw.FPDFText_GetUnicode(text_page, index)
        character = chr(code)
        if code in (10, 13) and run:
            yield run
            run = None
        elif code == 32 and raw.FPDFText_IsGenerated(text_page, index) == 1:
            if run and not run.characters[-1].isspace():
                run.characters.append(" ")
        elif code not in (0, 10, 13) and raw.FPDFText_GetLooseCharBox(text_page, index, box):
            where = place(box.left, box.top, box.right, box.bottom)
            if run and _continues(run, where):
                _extend(run, character, where)
                if len(run.characters) < 4 and character.isalnum() and not run.characters[0].isalnum():
                    # A bullet or bracket in front may come from another font than the words behind it.
                    run.size, run.is_bold = _type_of(raw, text_page, index, where)
            else:
                if run:
                    yield run
                size, is_bold = _type_of(raw, text_page, index, where)
                run = (
                    None
                    if character.isspace()
                    else _Run([character], where[0], where[1], where[2], where[3], size, is_bold)
                )
    if run:
        yield run


def _extend(run: _Run, character: str, where: Box) -> None:
    left, top, right, bottom = where
    size = run.size
    if top >= run.bottom - (bottom - top) * 0.3 and right > left and not character.isspace():
        run.is_vertical = True
    if left - run.right > _WORD_GAP * size and not run.is_vertical and not run.characters[-1].isspace():
        run.characters.append(" ")
    run.characters.append(character)
    run.left = min(run.left, left)
    run.right = max(run.right, right)
    run.top = min(run.top, top)
    run.bottom = max(run.bottom, bottom)


def _continues(run: _Run, where: Box) -> bool:
    """Whether a character stands where the next one of a run would, across or down."""
    left, top, right, bottom = where
    if not run.is_vertical:
        overlap = (min(run.bottom, bottom)) - (max(run.top, top))
        own, others = bottom - top, run.bottom - run.top
        if overlap > _SAME_LINE_SHARE * (min(others, own)) and overlap > 0:
            return -1.0 < (left - run.right) / run.size < _RUN_GAP
        if len(run.characters) > 1 or not is_cjk(run.characters[0]):
            return False
    width = max(min(right - left, run.right - run.left), 0.1)
    across = min(right, run.right) - max(left, run.left)
    return across > 0.7 * width and -0.5 * run.size < top - run.bottom < 0.6 * run.size


def _type_of(raw: Any, text_page: Any, index: int, where: Box) -> tuple[float, bool]:
    """Size of a character's type in points (its font size, scaled as the text is), and whether it is bold."""
    height = max(where[3] - where[1], 0.1)
    matrix, flags = raw.FS_MATRIX(), ctypes.c_int()
    size = float(raw.FPDFText_GetFontSize(text_page, index))
    if raw.FPDFText_GetMatrix(text_page, index, matrix):
        size *= max(math.hypot(matrix.c, matrix.d), 1e-6)
    buffer = ctypes.create_string_buffer(128)
    length = raw.FPDFText_GetFontInfo(text_page, index, buffer, 128, flags)
    name = buffer.value.lower() if 0 < length <= 128 else b""
    is_bold = (
        raw.FPDFText_GetFontWeight(text_page, index) >= _BOLD_WEIGHT
        or any(word in name for word in (b"bold", b"heavy", b"black"))
        or bool(flags.value & _FORCE_BOLD)
    )
    return (size if 0.3 * height < size < 3 * height else height), is_bold


def _placing(page: Any) -> Callable[[float, float, float, float], Box]:
    """A function that turns a rectangle of the page's own space into points from the displayed top left corner."""
    left, bottom, right, top = page.get_bbox()
    turned: dict[int, Callable[[float, float, float, float], Box]] = {
        0: lambda x0, y1, x1, y0: (x0 - left, top - y1, x1 - left, top - y0),
        90: lambda x0, y1, x1, y0: (y0 - bottom, x0 - left, y1 - bottom, x1 - left),
        180: lambda x0, y1, x1, y0: (right - x1, y0 - bottom, right - x0, y1 - bottom),
        270: lambda x0, y1, x1, y0: (top - y1, right - x1, top - y0, right - x0),
    }
    return turned[page.get_rotation() % 360]


def _is_visible(run: _Run, size: tuple[float, float]) -> bool:
    return run.right > 0 and run.bottom > 0 and run.left < size[0] and run.top < size[1]


def _in_reading_order(runs: list[_Run], depth: int) -> Iterator[list[_Run]]:
    """Cut runs into regions: at a gutter between columns of prose where there is one, else at gaps between bands."""
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
        upper = [run for run in runs if (run.top + run.bottom) / 2 < cut]
        lower = [run for run in runs if (run.top + run.bottom) / 2 >= cut]
        if _has_columns(upper, typical) or _has_columns(lower, typical):
            yield from _in_reading_order(upper, depth + 1)
            yield from _in_reading_order(lower, depth + 1)
            return
    yield runs


def _find_gutter(runs: list[_Run], typical: float) -> float | None:
    """Middle of the widest vertical strip without text that has columns of prose on both sides."""
    spans = sorted((run.left, run.right) for run in runs)
    strips, reach = [], spans[0][1]
    for left, right in spans:
        if left - reach > _GUTTER * typical:
            strips.append((left - reach, (left + reach) / 2))
        reach = max(reach, right)
    for _, middle in sorted(strips, reverse=True):
        sides = [run for run in runs if run.left < middle], [run for run in runs if run.left >= middle]
        if all(_is_prose(side) for side in sides):
            return middle
    return None


def _is_prose(runs: list[_Run]) -> bool:
    """Whether runs fill a column as running text does: enough lines, most of them nearly as wide as the column."""
    width = max(run.right for run in runs) - min(run.left for run in runs)
    rows = len({round(run.top / max(run.size, 1.0)) for run in runs})
    if rows < _COLUMN_LINES or width < 8 * median(run.size for run in runs):
        return False
    wide = sum(run.right - run.left for run in runs) / rows
    return wide > _COLUMN_FILL * width and len(runs) <= 1.6 * rows


def _band_cuts(runs: list[_Run]) -> list[float]:
    """Heights between lines where the page may be parted, the widest gaps first, at most 12."""
    spans = sorted((run.top, run.bottom) for run in runs)
    gaps, reach = [], spans[0][1]
    for top, bottom in spans:
        if top - reach > 0:
            gaps.append((top - reach, (top + reach) / 2))
        reach = max(reach, bottom)
    return [middle for _, middle in sorted(gaps, reverse=True)[:12]]


def _has_columns(runs: list[_Run], typical: float) -> bool:
    return len(runs) >= 2 * _COLUMN_LINES and _find_gutter(runs, typical) is not None


def _horizontal_lines(runs: list[_Run], region: int) -> Iterator[Line]:
    rows: list[list[_Run]] = []
    for run in sorted(runs, key=lambda run: (run.top + run.bottom) / 2):
        row = rows[-1] if rows else None
        if row is not None and _shares_line(row, run):
            row.append(run)
        else:
            rows.append([run])
    for row in rows:
        yield _joined(sorted(row, key=lambda run: run.left), region)


def _shares_line(row: list[_Run], run: _Run) -> bool:
    top, bottom = max(item.top for item in row), min(item.bottom for item in row)
    overlap = min(bottom, run.bottom) - max(top, run.top)
    return overlap > _SAME_LINE_SHARE * max(min(run.bottom - run.top, bottom - top), 0.1)


def _vertical_lines(runs: list[_Run], region: int) -> Iterator[Line]:
    """Columns of vertical writing, from right to left."""
    for run in sorted(runs, key=lambda run: (-round(run.right / max(run.size, 1.0)), run.top)):
        yield _joined([run], region)


def _joined(row: list[_Run], region: int) -> Line:
    text, right, widest = "", row[0].left, 0.0
    for run in row:
        part = run.text
        gap = run.left - right
        widest = max(widest, gap / max(run.size, 1.0))
        touching = text and (is_cjk(text[-1]) or is_cjk(part[0])) and gap < 0.5 * run.size
        if text and not touching and gap > _WORD_GAP * run.size and not text.endswith(" "):
            text += " "
        text += part
        right = run.right
    box = (
        min(run.left for run in row),
        min(run.top for run in row),
        max(run.right for run in row),
        max(run.bottom for run in row),
    )
    longest = max(row, key=lambda run: len(run.characters))
    bold = sum(len(run.characters) for run in row if run.is_bold) > sum(len(run.characters) for run in row) * 0.7
    vertical = all(run.is_vertical for run in row)
    is_row = not vertical and (widest > _ROW_GAP or _LEADERS.search(text) is not None)
    return Line(_clean_line(text), box, longest.size, bold, region, vertical, is_row)


def _clean_line(text: str) -> str:
    """A line without control characters.

    Kangxi radicals, which some fonts give for ideographs, are made ideographs; characters of symbol fonts what they
    stand for or nothing; leader dots one ellipsis; ideographs set with spaces between them are set without.
    """
    ends_hyphenated = text.rstrip().endswith(_HYPHEN_MARKS)
    for mark in _HYPHEN_MARKS:
        text = text.replace(mark, "")
    text = _RADICALS.sub(lambda match: unicodedata.normalize("NFKC", match[0]), text)
    text = _LEADERS.sub(" … ", _SYMBOLS.sub(_plain_symbol, text))
    text = clean(unicodedata.normalize("NFC", text))
    spaced = len(_SPACED.findall(text))
    if spaced >= 3 and spaced > 0.6 * sum(map(is_cjk, text)):
        text = _SPACED.sub("", text)
    return text + "\u00ad" if ends_hyphenated and text else text


def _plain_symbol(match: re.Match[str]) -> str:
    """What a character of a symbol font stands for, where it is a bullet, a digit or a sign."""
    if match[0] in _BULLET_SYMBOLS:
        return "•"
    code = ord(match[0]) - 0xF000
    return chr(code) if 0x20 <= code <= 0x40 else ""
