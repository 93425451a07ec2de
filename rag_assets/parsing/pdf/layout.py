"""Headings, paragraphs, list items, tables and running headers of a PDF, from the lines of all its pages."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from rag_assets.contracts.causes import BlockKind
from rag_assets.contracts.content import Block
from rag_assets.parsing.flow import Sections, around, is_cjk, join_lines, letters
from rag_assets.parsing.pdf.lines import GOES_ON, GOING_ON, LABEL, LATIN_WORD, LIST_ITEM, Line, item_start
from rag_assets.parsing.pdf.running import PageLines, tell_apart
from rag_assets.parsing.pdf.runs import Bookmark
from rag_assets.parsing.pdf.tables import repeat_headers
from rag_assets.text.scripts import IDEOGRAPHS, KATAKANA_LETTERS

_HEADING_SIZE = 1.12
_HEADING_CHARS = 120
_HEADING_LINES = 3
_PARAGRAPH_GAP = 1.6
_FEWEST_LINES = 4  # of a part of a page that tell how far its lines are apart, where others do
_LINE_GAP = 0.8  # of the type, between lines of one paragraph
_HANGING_INDENT = 3  # times the size of the type
_BODY_CHARS = 200
_BOLD_SHARE = 0.8  # of the characters
_TITLE_NUMBER = re.compile(
    r"^(?:第|chapter|section|appendix|part|付録)?[0-9ivxlc一二三四五六七八九十a-z]{0,8}[章節部編条項]?$"
)
_DIGITS = re.compile(r"\d+")
_NUMBERED_HEADING = re.compile(
    r"^(?:第[\d一二三四五六七八九十百]+[章節条編部項]|(?:\d{1,2}[.．])+\d{0,2}\s*\D"
    r"|\d{1,2}\s+\D|(?:chapter|section|appendix|part)\s|付録|別紙|[ⅠⅡⅢⅣⅤⅥⅦⅧⅨⅩ][.．\s]|[■◆●【])",
    re.IGNORECASE,
)
_SECTION_NUMBER = re.compile(
    rf"(?:\d{{1,2}}[.．])+\d{{1,2}}[.．]?\s+(?:[{IDEOGRAPHS}{KATAKANA_LETTERS}]|[A-Z][a-z])"
)  # no amount
_ENDED_ROOM = 3  # times the size of the type that a line leaves free where it is ended, not broken
_MARGIN_STEP = 6  # points within which right edges are one
_MARGIN_LINES, _MARGIN_SHARE = 5, 0.25
_ARTICLE = re.compile(  # that no sentence names
    r"第\s?[\d一二三四五六七八九十百]+\s?条(?:の[\d一二三四五六七八九十]+)?(?:\s|[（(][^）)]{1,20}[）)])(?!の|に|を|及び|又は)"
)
_TITLE_ABOVE = re.compile("[（(][^（）()]{1,40}[）)]")  # of an article
_CLAUSE = re.compile(r"(\d{1,2})\s+[^\d\s]")
_ENDED = re.compile(r"[。.．!?！？」』:：;）)か\d]$")
_HEADING_ROOM = 6  # times the size of the type that a heading leaves free behind it
_REMARK = re.compile(r"[(（]|\W*$")  # or what has no letters
_DATED = re.compile(  # a line of its own
    rf"(?:(?:令和|平成|昭和)\s?(?:元|\d{{1,2}})|[12]\d{{3}})\s?年\s?\d{{1,2}}\s?月\s?\d{{1,2}}\s?日\s?[{IDEOGRAPHS}]{{0,4}}"
)
_IN_SENTENCE = re.compile("[、。，をはがにでへも]")
_IN_ITEM = re.compile("[:：、。]")  # an item with a label or a sentence, rather than a title
_CAPTION = re.compile(
    r"^(?:(?:table|fig(?:ure|\.)?)\s*[0-9A-Z]{1,3}[0-9.]*\s*[.:|—–-]"
    r"|別?[表図图]\s*\d+(?:[-－.．]\d+)*[\s.：:．　])",
    re.IGNORECASE,
)
_UNIT = "(?:(?:十|百|千|万|百万|千万|億|十億|百億|兆)?(?:円|ドル|ユーロ|人|名|件|戸|台|株|トン|㎡|ha)|[%％])"
_UNIT_NOTE = re.compile(
    rf"^(?:[(（\[［【〔<＜][^()（）]{{0,8}}単\s*位\s*(?:[:：;；／/は]|\s\S|{_UNIT})[^。]{{0,30}}"
    rf"|単\s*位\s*[:：][^。]{{1,30}}|[(（]{_UNIT}[)）]|\(?units?\s*[:：].{{1,40}}"
    r"|\((?:in )?(?:[\w.$¥€]+ )?(?:thousand|million|billion|trillion)s?\b(?: of [\w. ]{1,30})?(?:, .{1,40})?\))$",
    re.IGNORECASE,
)
_BULLETED = re.compile(r"^[・•○□▪▶►‣⁃➢✓※–—*-]")
_ANNOUNCING = (":", "：")
_SENTENCE_END = ("。", ".", "．", "!", "?", "！", "？", "」", "』", ":", "：", ";")


class Layout:
    """What can be told only from all pages together: body size, sizes of headings, running headers, open sections,
    tables that run on.

    Args:
        pages: The pages in order.
        outline: The bookmarks of the document, in order.
    """

    def __init__(self, pages: Sequence[PageLines], outline: Sequence[Bookmark] = ()) -> None:
        sizes = _sizes(pages)
        self._body = sizes.most_common(1)[0][0] if sizes else 0.0
        larger = sorted({size for size in sizes if size >= self._body * _HEADING_SIZE}, reverse=True)
        self._levels = {size: level for level, size in enumerate(larger, start=1)}
        self._sections = Sections()
        self._outline_depth = max((bookmark.level for bookmark in outline), default=0)
        self._bookmarks: dict[int, list[Bookmark]] = defaultdict(list)
        for bookmark in outline:
            self._bookmarks[bookmark.page_number].append(bookmark)
        self._pages = tell_apart(pages, self._body)
        self._margins = _Margins(pages)
        self._widths = [page.size[0] for page in pages]
        self._width = 0.0  # of the page that is read
        self._edge = 0.0  # where its longest line ends
        self._reaches: dict[tuple[int, int], float] = {}  # where it ends of those that begin at a place of a region
        self._is_bold = _is_bold(pages)  # then bold type tells nothing
        for page, body in zip(self._pages, repeat_headers([page.body for page in self._pages]), strict=True):
            page.body = [replace(line, is_bold=False) for line in body] if self._is_bold else body

    def blocks(self) -> Iterator[list[Block]]:
        """Blocks of each page in reading order."""
        for number, page in enumerate(self._pages, start=1):
            blocks = [Block(BlockKind.HEADER, line.text, box=line.box) for line in page.headers]
            self._width = self._widths[number - 1]
            blocks += self._body_blocks(page.body, self._bookmarks[number])
            blocks += [Block(BlockKind.HEADER, line.text, box=line.box) for line in page.footers]
            yield blocks

    def _body_blocks(self, lines: list[Line], bookmarks: list[Bookmark]) -> Iterator[Block]:
        starts, missing_bookmarks = _find_titles(lines, bookmarks)
        position = 0
        while position < len(lines):
            if position in starts:
                order, end = starts[position]
                bookmark = bookmarks[order]
                text = join_lines([line.text for line in lines[position:end]]).rstrip("\u00ad")
                self._enter(missing_bookmarks, order)
                above = self._sections.enter(bookmark.level, text)
                yield Block(BlockKind.HEADING, text, above, box=around(line.box for line in lines[position:end]))
            else:
                end = min((start for start in starts if start > position), default=len(lines))
                for group in self._paragraphs(lines[position:end]):
                    while missing_bookmarks and (missing_bookmarks[0][1].top or 0.0) <= group[0].box[1] + group[0].size:
                        self._enter(missing_bookmarks, missing_bookmarks[0][0] + 1)
                    yield self._block(group)
            position = end
        self._enter(missing_bookmarks, len(bookmarks))

    def _enter(self, missing_bookmarks: list[tuple[int, Bookmark]], order: int) -> None:
        """Begin the sections of bookmarks whose title is not on the page, up to a place in the outline."""
        while missing_bookmarks and missing_bookmarks[0][0] < order:
            _, bookmark = missing_bookmarks.pop(0)
            self._sections.enter(bookmark.level, bookmark.title)

    def _block(self, lines: list[Line]) -> Block:
        table = lines[0].table
        if table:
            text, headers = "\n".join(table.texts), table.header_row_count
            path = self._sections.path
            return Block(BlockKind.TABLE, text, path, box=table.box, header_row_count=headers, rows=table.rows)
        stays_in_lines = lines[0].is_row or lines[0].is_in_figure
        text = "\n".join(line.text for line in lines).replace("\u00ad", "-") if stays_in_lines else self._text(lines)
        box = around(line.box for line in lines)
        is_caption = len(lines) <= _HEADING_LINES and bool(_UNIT_NOTE.match(text) or _CAPTION.match(text))
        if is_caption:
            return Block(BlockKind.CAPTION, text, self._sections.path, box=box)
        if level := self._heading_level(lines, text):
            text = text.replace("\n", " ")
            section = self._sections.enter(level + self._outline_depth, text)
            return Block(BlockKind.HEADING, text, section, box=box)
        kind = BlockKind.LIST_ITEM if LIST_ITEM.match(text) and not stays_in_lines else BlockKind.PARAGRAPH
        return Block(kind, text, self._sections.path, box=box)

    def _text(self, lines: list[Line]) -> str:
        """Text of a paragraph; labels with what they stand for are lines of their own where those are short."""
        groups = [[lines[0]]]
        margin = self._margins.right(self._width, lines[0]) or self._edge
        right = max(self._width / 2, margin, *(line.box[2] for line in lines))
        for above, below in pairwise(lines):
            is_short = right - above.box[2] > 1.5 * above.size and not GOES_ON.search(above.text)
            if is_short and LABEL.match(below.text) and LABEL.match(lines[0].text):
                groups.append([])
            groups[-1].append(below)
        return "\n".join(join_lines([line.text for line in group]) for group in groups).rstrip("\u00ad")

    def _heading_level(self, lines: list[Line], text: str) -> int:
        """Level of the heading that lines are, from 1; 0 where they are none."""
        if len(text) > _HEADING_CHARS or len(lines) > _HEADING_LINES or not re.search(r"[^\W\d_]", text):
            return 0
        if lines[0].is_in_figure or lines[0].is_ruby:
            return 0
        if (lines[0].is_row and not _NUMBERED_HEADING.match(text)) or "…" in text or _BULLETED.match(text):
            return 0
        if level := self._levels.get(round(lines[0].size * 2) / 2, 0):
            return 0 if text.endswith(("。", "、")) else level
        is_numbered = _NUMBERED_HEADING.match(text) is not None
        if LABEL.match(text) and "、" in text:
            return 0  # a label in bold type, and what it stands for
        is_titled = self._is_bold and (is_numbered or not self._sections.path)
        is_bold = is_titled or all(line.is_bold for line in lines)
        if is_bold and len(lines) == 1 and not text.endswith(_SENTENCE_END):
            depth = len(_DIGITS.findall(text.split(maxsplit=1)[0])) if is_numbered else 4
            return len(self._levels) + max(depth, 1)
        return 0

    def _paragraphs(self, lines: list[Line]) -> Iterator[list[Line]]:
        paragraph: list[Line] = []
        counts = Counter(line.region for line in lines)
        pairs = [pair for pair in pairwise(lines) if min(counts[line.region] for line in pair) >= _FEWEST_LINES]
        gaps = [below.box[1] - above.box[3] for above, below in pairs or pairwise(lines)]
        inner = sorted(gap for gap in gaps if 0 <= gap < 3 * max(self._body, 1))
        spacing = inner[len(inner) // 4] if inner else 0.0  # inside paragraphs: the middle of the smaller half
        self._reaches.clear()
        for line in lines:
            if not (line.table or line.is_row or line.is_in_figure or line.is_ruby):
                place = line.region, round(line.box[0] / _MARGIN_STEP)
                self._reaches[place] = max(self._reaches.get(place, 0.0), line.box[2])
        edge = self._edge = max((line.box[2] for line in lines if not (line.table or line.is_row)), default=0.0)
        for line, below in zip(lines, [*(line.text for line in lines[1:]), ""], strict=True):
            is_title = _TITLE_ABOVE.fullmatch(line.text) and _ARTICLE.match(below)
            if paragraph and (is_title or self._begins_paragraph(paragraph, line, spacing, edge)):
                yield paragraph
                paragraph = []
            paragraph.append(line)
        yield paragraph

    def _begins_paragraph(self, paragraph: list[Line], line: Line, spacing: float, edge: float) -> bool:
        """Whether a line begins a new paragraph rather than going on with the one above.

        Args:
            paragraph: The lines so far.
            line: The next one.
            spacing: Usual distance of the lines of a paragraph on this page.
            edge: Where the longest line of the page ends.
        """
        last = paragraph[-1]
        if any(item.table or item.is_ruby or item.is_spread or _UNIT_NOTE.match(item.text) for item in (last, line)):
            return True
        if line.is_in_figure and line.region == last.region:
            return False
        has_other_size = abs(line.size - last.size) > 0.12 * max(last.size, 1.0)
        if (line.region, line.is_vertical) != (last.region, last.is_vertical) or has_other_size:
            return True
        margin = self._margins.right(self._width, last)
        runs_on = _runs_on(last, line, margin or (edge if GOING_ON.match(line.text) else 0.0))
        if line.is_bold != last.is_bold and not runs_on:
            return True  # else a word or a label in bold type in running text
        if line.is_vertical:
            return _begins_vertical(paragraph, line)
        gap = line.box[1] - last.box[3]
        is_apart = gap > spacing * _PARAGRAPH_GAP + 0.15 * line.size
        is_near = gap < _LINE_GAP * line.size and line.is_bold and runs_on
        if line.is_row != last.is_row or (is_apart and not is_near) or gap < -2 * line.size:
            return True
        if line.is_row:
            return False
        is_title = line.size >= self._body * _HEADING_SIZE or line.is_bold
        has_room = (margin or edge) - last.box[2] > 1.5 * line.size
        is_announced = last.text.endswith(_ANNOUNCING) and has_room and not line.text[0].islower()
        lefts = {round(item.box[0] / _MARGIN_STEP) for item in ((last, line) if _hangs(last, line) else (last,))}
        reach = max(self._reaches.get((last.region, left), 0.0) for left in lefts)
        return is_announced or _looks_like_beginning(paragraph, line, margin, reach, is_title=is_title)


class _Margins:
    """Where the lines of a column end, by the pages of one width."""

    def __init__(self, pages: Sequence[PageLines]) -> None:
        self._lines: dict[float, list[Line]] = defaultdict(list)
        for page in pages:
            for line in page.lines:
                if not (line.table or line.is_row or line.is_in_figure or line.is_vertical or line.is_ruby):
                    self._lines[page.size[0]].append(line)
        self._known: dict[tuple[float, int], float] = {}

    def right(self, width: float, line: Line) -> float:
        """Right edge, in points, that many of the lines share that begin no further to the right than a line; 0 where
        they share none.

        Args:
            width: Of the page.
            line: The line.
        """
        key = width, round(line.box[0] / _MARGIN_STEP)
        if key not in self._known:
            left = (key[1] + 0.5) * _MARGIN_STEP
            lines = [near_line for near_line in self._lines[width] if near_line.box[0] <= left < near_line.box[2]]
            ends = Counter(round(near_line.box[2] / _MARGIN_STEP) for near_line in lines)
            near = {end: sum(ends[end + step] for step in (-1, 0, 1)) for end in [*ends]}
            best = max(near, key=lambda end: (near[end], end), default=0)
            is_shared = near.get(best, 0) >= max(_MARGIN_LINES, _MARGIN_SHARE * len(lines))
            self._known[key] = (best - 1) * _MARGIN_STEP if is_shared else 0.0
        return self._known[key]


def _runs_on(last: Line, line: Line, margin: float) -> bool:
    """Whether a line goes on with the one above, which fills its column and ends no sentence.

    Args:
        last: The line above.
        line: The line.
        margin: Where lines of this column end, or 0.
    """
    word = LATIN_WORD.match(line.text)
    room = max(1.5, 0.6 * len(word[0]) + 1 if word else 0) * last.size
    is_full = 0 < margin - room <= last.box[2]
    if not is_full or last.text.endswith((*_SENTENCE_END, ")", "）")) or line.is_row or last.is_row:
        return False
    if last.is_bold and not line.is_bold and _is_title(last.text, line.text):
        return False
    begins = LIST_ITEM.match(line.text) or _NUMBERED_HEADING.match(line.text) or LABEL.match(line.text)
    return not begins and abs(line.box[0] - last.box[0]) < _HANGING_INDENT * line.size


def _is_title(text: str, below: str) -> bool:
    """Whether a bold line is a numbered title above a sentence that begins, rather than the beginning of an item."""
    is_numbered = _NUMBERED_HEADING.match(text) and text[0].isalnum()
    goes_on = GOES_ON.search(text) or GOING_ON.match(below) or below[0].islower()
    return bool(is_numbered and not goes_on and not _IN_ITEM.search(text))


def _looks_like_beginning(paragraph: list[Line], line: Line, margin: float, reach: float, *, is_title: bool) -> bool:
    """Whether a line at the usual distance begins a paragraph by its mark, its indent or the short line above; lines in
    the type of titles are broken where they read well.
    """
    last = paragraph[-1]
    room = max(line.box[2], *(item.box[2] for item in paragraph)) - last.box[2]  # behind the last line
    short = room > 1.5 * line.size
    hangs = _hangs(last, line)
    indent = 0.0 if hangs else line.box[0] - last.box[0]
    is_below_title = hangs and reach - last.box[2] > _HEADING_ROOM * line.size
    is_dated = _DATED.fullmatch(last.text) and not GOING_ON.match(line.text)
    if is_dated or (_DATED.fullmatch(line.text) and not GOES_ON.search(last.text)):
        return True
    if last.text.endswith("。") and _begins_clause(paragraph[0].text, line.text):
        return True
    below_section = len(paragraph) == 1 and _SECTION_NUMBER.match(last.text)
    has_mark = item_start(line) is not None or LIST_ITEM.match(line.text)
    if is_below_title or has_mark or (short and _NUMBERED_HEADING.match(line.text)):
        return True
    is_labelled = LABEL.match(line.text) and not line.text.endswith((":", "："))
    begins = _ARTICLE.match(line.text) or (is_labelled and LABEL.match(paragraph[0].text))
    ends_early = max(room, margin - last.box[2]) > 1.5 * line.size
    if begins and (_ENDED.search(last.text) or (ends_early and not GOES_ON.search(last.text))):
        return True
    if below_section and (
        _SECTION_NUMBER.match(line.text)
        or (room > _HEADING_ROOM * line.size and not GOES_ON.search(last.text) and not GOING_ON.match(line.text))
    ):
        return True
    if len(paragraph) > 1 and 0.8 * line.size < indent < 6 * line.size:
        return True
    is_japanese = is_cjk(last.text[-1]) or is_cjk(line.text[0])
    if is_japanese and not is_title and _is_ended(paragraph, line, room, margin, reach):
        return True
    first_word = next(iter(line.text.split(maxsplit=1)), "")
    would_have_fitted = not is_cjk(last.text[-1]) and room > (len(first_word) + 2) * 0.6 * line.size
    return short and (last.text.endswith(_SENTENCE_END) or indent > 0.8 * line.size or would_have_fitted)


def _hangs(last: Line, line: Line) -> bool:
    """Whether a line begins where the text of the item does that the one above begins with."""
    start = item_start(last)
    return start is not None and abs(line.box[0] - start) < 0.5 * line.size


def _begins_clause(first: str, text: str) -> bool:
    """Whether a line has the number of the next clause after the one, or the article, that a paragraph begins with."""
    clause, above = _CLAUSE.match(text), _CLAUSE.match(first)
    if not clause or not (above or _ARTICLE.match(first)):
        return False
    return int(clause[1]) == (int(above[1]) if above else 1) + 1


def _is_ended(paragraph: list[Line], line: Line, room: float, margin: float, reach: float) -> bool:
    """Whether the last line of a paragraph ends where the next one would have begun, had it been broken for want of
    room: Japanese is broken at any character.

    Args:
        paragraph: The lines so far.
        line: The next one.
        room: Behind the last one, to the longest of these, in points.
        margin: Where lines of this column end, or 0. Counts among names only: text flows around pictures.
        reach: Where the longest line of the page ends of those that begin where the last one does. Counts where the
            last one ends no sentence.
    """
    last = paragraph[-1]
    if GOES_ON.search(last.text) or GOING_ON.match(line.text):
        return False
    shift = line.box[0] - last.box[0], line.box[2] - last.box[2]
    is_full = 0 < margin < line.box[2] + line.size
    if abs(sum(shift)) < line.size < abs(shift[0]) and not is_full:
        return False  # both are centred
    are_names = not _IN_SENTENCE.search(last.text + line.text)
    word = LATIN_WORD.match(line.text)
    word_room = 0.6 * len(word[0]) + 1 if word else 0
    is_labelled = LABEL.match(line.text) and LABEL.match(paragraph[0].text)
    has_room = reach - last.box[2] > max(_HEADING_ROOM, word_room) * line.size
    if are_names and abs(shift[0]) < line.size and has_room and not is_labelled:
        return True
    if any(abs(neighbour.box[2] - last.box[2]) <= 0.5 * line.size for neighbour in (*paragraph[-2:-1], line)):
        return False  # broken at a narrow width
    if are_names and abs(shift[1]) > line.size:
        room = max(room, margin - last.box[2])
    if not (last.text.endswith(_SENTENCE_END) or _REMARK.match(line.text)):
        room = max(room, reach - last.box[2])  # a sentence that ends stands well before the next one
    return room > max(_ENDED_ROOM, word_room) * line.size


def _begins_vertical(paragraph: list[Line], line: Line) -> bool:
    """Whether a column of vertical writing begins a paragraph: set in, after a short one, or at a wide distance."""
    last = paragraph[-1]
    if last.box[0] - line.box[2] > 2.5 * line.size or line.box[0] > last.box[0]:
        return True
    top = min(line.box[1], *(item.box[1] for item in paragraph))
    bottom = max(line.box[3], *(item.box[3] for item in paragraph))
    is_set_in = 0.7 * line.size < line.box[1] - top < 4 * line.size
    is_short = bottom - last.box[3] > 1.5 * line.size
    return (is_set_in and last.box[1] - top < 0.7 * line.size) or (
        is_short and last.text.endswith(_SENTENCE_END) and len(paragraph) > 1
    )


def _sizes(pages: Sequence[PageLines]) -> Counter[float]:
    """Characters by size of type, outside tables where there is enough text outside them."""
    outside: Counter[float] = Counter()
    inside: Counter[float] = Counter()
    for page in pages:
        for line in (line for line in page.lines if not line.is_ruby):
            counter = inside if line.table or line.is_in_figure else outside
            length = sum(map(len, line.table.texts)) if line.table else len(line.text)
            counter[round(line.size * 2) / 2] += length
    return outside if outside.total() >= min(_BODY_CHARS, inside.total()) else outside + inside


def _is_bold(pages: Sequence[PageLines]) -> bool:
    """Whether practically all text of a document is in bold type; not of one of tables, whose titles are."""
    all_lines = [line for page in pages for line in page.lines]
    inside = sum(len(text) for line in all_lines if line.table for text in line.table.texts)
    lines = [line for line in all_lines if not (line.table or line.is_ruby)]
    outside = sum(len(line.text) for line in lines)
    return outside > inside and sum(len(line.text) for line in lines if line.is_bold) > _BOLD_SHARE * outside


def _find_titles(
    lines: Sequence[Line], bookmarks: Sequence[Bookmark]
) -> tuple[dict[int, tuple[int, int]], list[tuple[int, Bookmark]]]:
    """Find the titles of bookmarks among the lines of their page.

    Returns:
        For the first line of each title found the position of its bookmark and the line behind the title; and the
        bookmarks whose title is not found, with their positions.
    """
    starts: dict[int, tuple[int, int]] = {}
    missing_bookmarks: list[tuple[int, Bookmark]] = []
    begin = 0
    texts = [letters(line.text) for line in lines] if bookmarks else []
    for order, bookmark in enumerate(bookmarks):
        title = letters(bookmark.title)
        ends = ((start, _title_end(texts, start, title)) for start in range(begin, len(lines)))
        start, end = next(((start, end) for start, end in ends if end), (0, 0))
        if end and title:
            starts[start] = (order, end)
            begin = end
        else:
            missing_bookmarks.append((order, bookmark))
    return starts, missing_bookmarks


def _title_end(texts: Sequence[str], start: int, title: str) -> int:
    """The line behind a title that begins at a line; 0 where none does. A number may stand before the title."""
    text = ""
    for end in range(start, min(start + _HEADING_LINES, len(texts))):
        text += texts[end]
        if not texts[end]:
            return 0
        if text == title or (text.endswith(title) and _TITLE_NUMBER.match(text.removesuffix(title))):
            return end + 1
    return 0
