"""What pdfium gives of a PDF: the text layer of a page as runs, characters that follow each other, with their places;
and what the file says beside it, bookmarks as headings and targets of links.
"""

import ctypes
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count, pairwise
from statistics import median
from typing import Any

from pypdfium2 import PdfiumError, raw

from rag_assets.contracts.content import Box
from rag_assets.parsing.flow import LINK_SCHEMES, is_cjk, letters, sensible_title
from rag_assets.parsing.limits import current_limits
from rag_assets.parsing.pdf.fonts import with_characters
from rag_assets.text.scripts import CYRILLIC, GREEK, LATIN

RUBY_SHARE = 0.62
WORD_GAP = 0.22
IDEOGRAPH_GAP = 0.5
_LABEL_GAP = 0.34
_LABEL = re.compile(
    r"\W?\w{1,3}(?:[.．-]\w{1,2})*\W?"
)  # at the beginning of a line, which may be set apart from its text
_SPACED_OUT = re.compile(
    f"[{LATIN}{GREEK}{CYRILLIC}0-9()%]"
)  # by a quarter of the type, more where lines are justified
_ADDRESS = re.compile(r"(?:://|@)[!-~]+$")
_SAME_LINE_SHARE = 0.5
_RUN_GAP = 1.2
_BOLD_WEIGHT = 600
_FORCE_BOLD = 0x40000
_CHARACTERS = 500_000
_STACKED_RUNS = 6
_STACKED_SHARE = 0.3
_STACKED_PITCH = 0.9

_DESCENT = 0.12  # of the size of type, below the line
_LETTER_WIDTH = 0.5  # of it
_SLANT = 0.01  # of an upright character
_OFF_LINE = 0.7  # from which the lower edge of a box is not near the line of its character

_LABEL_END = 5  # characters: a colon, blanks, and the one behind them

# Bullets under letters, by what the names of fonts begin with.
_BULLETS = {b"wingdings": dict.fromkeys("lnpquvwØ§¨\x9f", "•") | {"ü": "✓"}, b"symbol": dict.fromkeys("§¨", "•")}

# Bookmarks and links.
_BOOKMARKS = 5000
_LINKS = 2000
_URI_CHARS = 500


@dataclass(frozen=True, slots=True)
class OpenPage:
    """A page of pypdfium2 while it is read."""

    document: Any
    number: int  # its number, from 1
    page: Any
    text_page: Any  # handle of its text layer
    size: tuple[float, float]  # width and height as displayed, in points
    note_cut: Callable[[str], None]  # told what is left out of it because a limit is reached

    def placing(self) -> Callable[[float, float, float, float], Box]:
        """A function that turns left, bottom, right and top in the page's own space into points from its top left."""
        left, bottom, right, top = self.page.get_bbox()
        rotations: dict[int, Callable[[float, float, float, float], Box]] = {
            0: lambda x0, y0, x1, y1: (x0 - left, top - y1, x1 - left, top - y0),
            90: lambda x0, y0, x1, y1: (y0 - bottom, x0 - left, y1 - bottom, x1 - left),
            180: lambda x0, y0, x1, y1: (right - x1, y0 - bottom, right - x0, y1 - bottom),
            270: lambda x0, y0, x1, y1: (top - y1, right - x1, top - y0, right - x0),
        }
        return rotations[self.page.get_rotation() % 360]


@dataclass(slots=True)
class Run:
    """Characters that follow each other without a wide gap."""

    characters: list[str]  # the characters; a space that stands for a gap is one of them
    starts: list[float]  # left edge of each character in points
    left: float  # left edge in points from the left of the page
    top: float  # top edge in points from the top of the page
    right: float
    bottom: float
    size: float  # height of the type in points
    is_bold: bool
    is_vertical: bool = False
    place: int = -1  # number of its first character in the text layer; -1 where that is not known

    @property
    def text(self) -> str:
        """The characters as one string."""
        return "".join(self.characters)

    @property
    def box(self) -> Box:
        """Its place on the page."""
        return self.left, self.top, self.right, self.bottom

    @property
    def middle(self) -> tuple[float, float]:
        """The middle of the run."""
        return (self.left + self.right) / 2, (self.top + self.bottom) / 2

    def reaches(self, area: Box) -> bool:
        """Whether the run stands at the height of an area, and lies in it at least in part."""
        left, top, right, bottom = area
        return top <= self.middle[1] <= bottom and self.right >= left and self.left <= right

    def middles(self) -> list[float]:
        """The middle of each character, in points from the left."""
        return [(start + end) / 2 for start, end in pairwise([*self.starts, self.right])]

    def cut(self, places: list[int]) -> "list[Run]":
        """Parts of a run between character indices; parts without text are left out."""
        parts = []
        for begin, end in zip([0, *places], [*places, len(self.characters)], strict=True):
            while begin < end and self.characters[begin].isspace():
                begin += 1  # noqa: PLW2901 - spaces at a cut belong to no part
            if begin == end:
                continue
            right = self.right if end == len(self.characters) else self.starts[end]
            starts = self.starts[begin:end]
            box = (starts[0], self.top, max(right, starts[0]), self.bottom)
            parts.append(Run(self.characters[begin:end], starts, *box, self.size, self.is_bold))
        return parts


def read_runs(page: OpenPage, note_cut: Callable[[str], None]) -> list[Run]:
    """Runs of a page that hold text and touch the page, in the order of the file; none where it has no text layer."""
    count = raw.FPDFText_CountChars(page.text_page)
    if count > _CHARACTERS:
        note_cut(f"{count} characters, limit {_CHARACTERS}; the rest is left out")
    width, height = page.size
    runs = _runs(page, min(count, _CHARACTERS))
    visible_runs = (run for run in runs if run.right > 0 and run.bottom > 0 and run.left < width and run.top < height)
    return _chain_stacked(list(visible_runs))


def _chain_stacked(runs: list[Run]) -> list[Run]:
    """Chain single ideographs that stand closer to the one below than to the one beside: vertical writing set glyph by
    glyph, which a text layer gives as one line for each glyph.
    """
    single = [run for run in runs if len(run.characters) == 1 and is_cjk(run.characters[0])]
    if len(single) < _STACKED_RUNS or len(single) < _STACKED_SHARE * len(runs):
        return runs
    columns: dict[int, list[Run]] = {}
    for run in sorted(single, key=lambda run: run.top):
        columns.setdefault(round(run.middle[0] / (0.5 * max(run.size, 1.0))), []).append(run)
    rows: dict[int, list[Run]] = {}
    for run in sorted(single, key=lambda run: run.left):
        rows.setdefault(round(run.middle[1] / (0.5 * max(run.size, 1.0))), []).append(run)
    down = [b.top - a.top for column in columns.values() for a, b in pairwise(column)]
    across = [b.left - a.left for row in rows.values() for a, b in pairwise(row)]
    if not down or (across and median(down) > _STACKED_PITCH * median(across)):
        return runs
    stacked_ids = {id(run) for run in single}
    chained_runs = [run for run in runs if id(run) not in stacked_ids]
    for column in columns.values():
        chain = column[0]
        chain.is_vertical = True
        for run in column[1:]:
            if run.top - chain.bottom < 0.8 * run.size:
                _extend(chain, run.characters[0], run.box)
            else:
                chained_runs.append(chain)
                chain = run
                chain.is_vertical = True
        chained_runs.append(chain)
    return chained_runs


def _runs(page: OpenPage, count: int) -> Iterator[Run]:
    """Runs in the order of the file: broken at line ends, wide gaps and jumps; none begins with white space."""
    text_page, place, box = page.text_page, page.placing(), raw.FS_RECTF()
    run: Run | None = None
    is_guessed = False  # whether the last character is a space that only the gap stands for
    codes = [raw.FPDFText_GetUnicode(text_page, index) for index in range(count)]
    for index, code in enumerate(with_characters(codes, partial(_font_of, text_page))):
        character = chr(code)
        if code in (10, 13) and run:
            yield run
            run = None
        elif code == 32 and raw.FPDFText_IsGenerated(text_page, index) == 1:
            if run and not run.characters[-1].isspace():
                run.characters.append(" ")
                run.starts.append(run.right)
                is_guessed = True
        elif code not in (0, 10, 13) and raw.FPDFText_GetLooseCharBox(text_page, index, box):
            area = place(box.left, box.bottom, box.right, box.top)
            is_next = run is not None and _continues(run, area)
            if run and (next_area := area if is_next else _drawn_behind(run, text_page, index, character, box, place)):
                area = next_area
                if is_guessed and is_tight(run.text.rstrip(), character, area[0] - run.right, run.size):
                    run.characters.pop()
                    run.starts.pop()
                _extend(run, character, area)
                if len(run.characters) < 4 and character.isalnum() and not run.characters[0].isalnum():
                    # A bullet or bracket in front may come from another font than the words behind it.
                    run.size, run.is_bold = _type_of(text_page, index, area)
                elif run.is_bold and "".join(run.characters[-_LABEL_END:-1]).rstrip().endswith((":", "：")):
                    run.is_bold = character.isspace() or _type_of(text_page, index, area)[1]  # else a bold label
            else:
                if run:
                    yield run
                size, is_bold = _type_of(text_page, index, area)
                character = _plain_bullet(text_page, index, character)
                run = None if character.isspace() else Run([character], [area[0]], *area, size, is_bold, place=index)
            is_guessed = False
    if run:
        yield run


def _drawn_behind(
    run: Run,
    text_page: Any,
    index: int,
    character: str,
    box: Any,
    place: Callable[[float, float, float, float], Box],
) -> Box | None:
    """Where a command of the page puts its first character, if it is upright, that is behind a run, and off the line of
    the box that pdfium gives: as that of a glyph which the file draws itself (of a Type 3 font) may be.
    """
    matrix, previous = raw.FS_MATRIX(), raw.FS_MATRIX()
    are_known = all(raw.FPDFText_GetMatrix(text_page, *pair) for pair in ((index, matrix), (index - 1, previous)))
    size = float(raw.FPDFText_GetFontSize(text_page, index)) * math.hypot(matrix.c, matrix.d)
    is_upright = matrix.a > 0 < matrix.d and max(abs(matrix.b), abs(matrix.c)) < _SLANT * matrix.d
    is_off = are_known and is_upright and abs(box.bottom - matrix.f) > _OFF_LINE * size
    is_vertical = abs((box.left + box.right) / 2 - matrix.e) < _DESCENT * size  # placed by its middle
    if not is_off or is_vertical or (matrix.e, matrix.f) == (previous.e, previous.f):
        return None
    right = matrix.e + (size if is_cjk(character) else _LETTER_WIDTH * size)
    area = place(matrix.e, matrix.f - _DESCENT * size, right, matrix.f + (1 - _DESCENT) * size)
    return area if _continues(run, area) else None


def _extend(run: Run, character: str, area: Box) -> None:
    left, top, right, bottom = area
    if top >= run.bottom - (bottom - top) * 0.3 and right > left and not character.isspace():
        run.is_vertical = True
    if (
        left - run.right > WORD_GAP * run.size
        and not run.is_vertical
        and not run.characters[-1].isspace()
        and not is_tight(run.text, character, left - run.right, run.size)
    ):
        run.characters.append(" ")
        run.starts.append(run.right)
    run.characters.append(character)
    run.starts.append(left)
    run.left = min(run.left, left)
    run.right = max(run.right, right)
    run.top = min(run.top, top)
    run.bottom = max(run.bottom, bottom)


def is_tight(before: str, after: str, gap: float, size: float) -> bool:
    """Whether the gap between two texts, one of them Japanese, is too narrow to stand for a space. Behind an address
    any gap is one: nothing else tells where it ends.

    Args:
        before: The text before the gap, not empty.
        after: The text or character behind it.
        gap: Its width in points.
        size: Height of the type in points.
    """
    is_japanese = is_cjk(before[-1]), is_cjk(after)
    if not any(is_japanese) or gap >= IDEOGRAPH_GAP * size:
        return False
    if all(is_japanese):
        return True
    if gap > _LABEL_GAP * size and (_LABEL.fullmatch(before) or not (before[-1] + after[0]).isalnum()):
        return False
    return any(map(_SPACED_OUT.match, (before[-1], after))) and not _ADDRESS.search(before)


def _continues(run: Run, area: Box) -> bool:
    """Whether a character stands where the next one of a run would, across or down."""
    left, top, right, bottom = area
    if not run.is_vertical:
        overlap = min(run.bottom, bottom) - max(run.top, top)
        if len(run.text.rstrip()) == 1 and is_cjk(run.characters[0]) and _is_beside(run, area):
            return False
        if overlap > max(0.0, _SAME_LINE_SHARE * min(run.bottom - run.top, bottom - top)):
            return -1.0 < (left - run.right) / run.size < _RUN_GAP
        if len(run.characters) > 1 or not is_cjk(run.characters[0]):
            return False
    width = max(min(right - left, run.right - run.left), 0.1)
    across = min(right, run.right) - max(left, run.left)
    return across > 0.7 * width and -0.5 * run.size < top - run.bottom < 0.6 * run.size


def _is_beside(run: Run, area: Box) -> bool:
    """Whether a small character stands at the right of a large one, within its height, as ruby of vertical writing."""
    left, top, right, bottom = area
    if right - left > RUBY_SHARE * (run.right - run.left) or bottom - top > RUBY_SHARE * (run.bottom - run.top):
        return False
    return left > run.right - 0.1 * run.size and bottom < run.bottom - 0.2 * run.size


def _type_of(text_page: Any, index: int, area: Box) -> tuple[float, bool]:
    """Size of a character's type in points (its font size, scaled as the text is), and whether it is bold."""
    height = max(area[3] - area[1], 0.1)
    matrix, flags = raw.FS_MATRIX(), ctypes.c_int()
    size = float(raw.FPDFText_GetFontSize(text_page, index))
    if raw.FPDFText_GetMatrix(text_page, index, matrix):
        size *= max(math.hypot(matrix.c, matrix.d), 1e-6)
    name = _font_name(text_page, index, flags)
    is_bold = (
        raw.FPDFText_GetFontWeight(text_page, index) >= _BOLD_WEIGHT
        or any(word in name for word in (b"bold", b"heavy", b"black"))
        or bool(flags.value & _FORCE_BOLD)
    )
    extent = max(height, area[2] - area[0])  # a letter of vertical writing lies on its side
    return (size if 0.3 * height < size < 3 * extent else height), is_bold


def _font_name(text_page: Any, index: int, flags: Any) -> bytes:
    """Name of a character's font in small letters."""
    buffer = ctypes.create_string_buffer(128)
    length = raw.FPDFText_GetFontInfo(text_page, index, buffer, 128, flags)
    return buffer.value.lower() if 0 < length <= 128 else b""


def _plain_bullet(text_page: Any, index: int, character: str) -> str:
    """A bullet in place of the letter that a font of symbols has it under; else the character."""
    for font, bullets in _BULLETS.items():
        if character in bullets and _font_name(text_page, index, ctypes.c_int()).rpartition(b"+")[2].startswith(font):
            return bullets[character]
    return character


def _font_of(text_page: Any, index: int) -> int:
    """What tells the font of a character from others: its address, 0 for a character that only stands for a gap."""
    text = raw.FPDFText_GetTextObject(text_page, index)
    return ctypes.cast(raw.FPDFTextObj_GetFont(text), ctypes.c_void_p).value or 0 if text else 0


@dataclass(frozen=True, slots=True)
class Bookmark:
    """An entry of the outline."""

    level: int  # depth, 1 the outermost
    title: str
    page_number: int  # page that it leads to, from 1
    top: float | None  # height on that page in points from the top, or None where it leads to the page as a whole


def read_outline(document: Any, note_cut: Callable[[int, str], None]) -> list[Bookmark]:
    """Bookmarks that lead to a page and have a title, in the order of the outline.

    Args:
        document: The document of pypdfium2; a damaged or cyclic outline is read as far as it goes.
        note_cut: Told the page from which on bookmarks are left out, and why.
    """
    bookmarks: list[Bookmark] = []
    try:
        for number, entry in enumerate(document.get_toc(max_depth=current_limits().nesting_depth)):
            if number >= _BOOKMARKS:
                message = f"more than {_BOOKMARKS} bookmarks up to here, the limit; the rest are left out"
                note_cut(bookmarks[-1].page_number if bookmarks else 1, message)
                break
            title = sensible_title(entry.get_title())
            target = entry.get_dest()
            index = target.get_index() if target else None
            if title and index is not None and 0 <= index < len(document):
                bookmarks.append(Bookmark(entry.level + 1, title, index + 1, _target_top(document, target, index)))
    except (PdfiumError, ValueError, UnicodeError, RecursionError):
        return bookmarks
    return bookmarks


def _target_top(document: Any, target: Any, index: int) -> float | None:
    """Height that a bookmark leads to; None where it gives none or the page is turned."""
    mode, place = target.get_view()
    if mode == raw.PDFDEST_VIEW_XYZ and len(place) > 1 and place[1]:
        _, height = document.get_page_size(index)
        return float(height - place[1])
    return None


def add_link_targets(page: OpenPage, runs: Sequence[Run]) -> None:
    """Put the target of each link behind its text, as ` <https://example.org>`, where the text is not the target."""
    place = page.placing()
    position, link, box = ctypes.c_int(0), raw.FPDF_LINK(), raw.FS_RECTF()
    groups: list[tuple[str, list[tuple[Run, int]]]] = []
    for number in count():
        if not raw.FPDFLink_Enumerate(page.page, position, link):
            break
        if number >= _LINKS:
            page.note_cut(f"more than {_LINKS} links, the limit; where the rest lead is left out")
            break
        uri = _target(page.document, link)
        if not uri or not raw.FPDFLink_GetAnnotRect(link, box):
            continue
        hits = _inside(runs, place(box.left, box.bottom, box.right, box.top))
        if groups and groups[-1][0] == uri:
            groups[-1][1].extend(hits)  # a link over several lines is several links
        else:
            groups.append((uri, hits))
    for uri, hits in groups:
        text = letters("".join(run.characters[index] for run, index in hits))
        if text not in letters(uri):  # no text is in all of them
            run, index = hits[-1]
            run.characters[index] += f" <{uri}>"


def _target(document: Any, link: Any) -> str | None:
    action = raw.FPDFLink_GetAction(link)
    if not action or raw.FPDFAction_GetType(action) != raw.PDFACTION_URI:
        return None
    length = raw.FPDFAction_GetURIPath(document, action, None, 0)
    if not 1 < length <= _URI_CHARS:
        return None
    buffer = ctypes.create_string_buffer(length)
    raw.FPDFAction_GetURIPath(document, action, buffer, length)
    uri = buffer.value.decode("utf-8", "replace").strip()
    return uri if uri.startswith(LINK_SCHEMES) and uri.isprintable() and " " not in uri else None


def _inside(runs: Sequence[Run], area: Box) -> list[tuple[Run, int]]:
    """Characters that lie in an area, from the top and the left: told by their middle, near their left edge where a gap
    follows them.
    """
    left, _, right, _ = area
    return [
        (run, index)
        for run in sorted(runs, key=lambda run: (round(run.top), run.left))
        if run.reaches(area)
        for index, (start, middle) in enumerate(zip(run.starts, run.middles(), strict=True))
        if left <= min(middle, start + run.size / 4) <= right and not run.characters[index].isspace()
    ]
