"""PDF: pages of headings, paragraphs and list items with their places, from the text layer.

What stays out: reading lines off a page (`pdf_lines`), pictures of text (a page without a text layer is a failure of
that page), and tables, whose rows come out as the lines of a paragraph.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from rag_assets.contracts.causes import BlockKind, FailureCause, PageKind
from rag_assets.contracts.errors import ParseError
from rag_assets.parsing.content import Block, Box, Failure, Page, ParsedDocument
from rag_assets.parsing.detect import DocumentFormat
from rag_assets.parsing.flow import Sections, is_cjk, join_lines, sensible_title
from rag_assets.parsing.pdf_lines import Line, read_lines

_MARGIN_SHARE = 0.12
_REPEATED_PAGES = 3
_HEADING_SIZE = 1.12
_HEADING_CHARS = 120
_HEADING_LINES = 3
_PARAGRAPH_GAP = 1.6
_ERROR_PASSWORD = 4
_ERROR_SECURITY = 5
_DIGITS = re.compile(r"[0-9０-９]+")
_PAGE_NUMBER = re.compile(
    r"^[\W_]*(?:page|p\.|頁)?\s*(?:[0-9０-９]{1,4}|[ivxlc]{1,6})(?:\s*(?:/|of|／)\s*[0-9０-９]{1,4})?[\W_]*$",
    re.IGNORECASE,
)
_LIST_ITEM = re.compile(
    r"^(?:[・•●○■□◆◇▪▶►‣⁃➢✓※–—*-]\s*\S|[(（][0-9０-９a-zA-Zア-ンｱ-ﾝ一二三四五六七八九十]{1,3}[)）]"
    r"|[0-9０-９]{1,2}[)）.．]\s*\D|[①-⑳㋐-㋾]|[a-z][)）.]\s|[ア-ン][)）]\s?)"
)
_NUMBERED_HEADING = re.compile(
    r"^(?:第[0-9０-９一二三四五六七八九十百]+[章節条編部項]|(?:[0-9０-９]{1,2}[.．])+[0-9０-９]{0,2}\s*\D"
    r"|[0-9０-９]{1,2}\s+\D|(?:chapter|section|appendix|part)\s|付録|別紙|[ⅠⅡⅢⅣⅤⅥⅦⅧⅨⅩ][.．\s]|[■◆●【])",
    re.IGNORECASE,
)
_BULLETED = re.compile(r"^[・•○□▪▶►‣⁃➢✓※–—*-]")
_SENTENCE_END = ("。", ".", "．", "!", "?", "！", "？", "」", "』", ":", "：", ";")


@dataclass(frozen=True, slots=True)
class _PageLines:
    """Lines of a page with its size."""

    lines: list[Line]
    size: tuple[float, float]


def parse_pdf(data: bytes, maximum_pages: int) -> ParsedDocument:
    """Parse a PDF.

    Args:
        data: The bytes of the file.
        maximum_pages: Pages of the file.

    Returns:
        A page for each page. A page without text layer, or that cannot be read, has no blocks and is a failure.

    Raises:
        ParseError: ENCRYPTED where a password is needed; MALFORMED where it cannot be opened; TOO_LARGE where it has
            too many pages.
    """
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        if getattr(error, "err_code", None) in (_ERROR_PASSWORD, _ERROR_SECURITY):
            raise ParseError(FailureCause.ENCRYPTED, "the PDF is encrypted: a password is needed") from error
        raise ParseError(FailureCause.MALFORMED, f"the PDF cannot be opened: {error}") from error
    try:
        count = len(document)
        if count > maximum_pages:
            raise ParseError(FailureCause.TOO_LARGE, f"{count} pages, limit {maximum_pages}")
        if count == 0:
            raise ParseError(FailureCause.MALFORMED, "the PDF has no pages")
        failures: list[Failure] = []
        pages = [_read_page(document, number, failures) for number in range(1, count + 1)]
        title = sensible_title(document.get_metadata_value("Title"))
    finally:
        document.close()
    layout = _Layout(pages)
    parsed = [
        Page(number, PageKind.PAGE, tuple(layout.blocks(page)), size=page.size if page.size[0] else None)
        for number, page in enumerate(pages, start=1)
    ]
    return ParsedDocument(DocumentFormat.PDF.value, title, tuple(parsed), tuple(failures))


def _read_page(document: Any, number: int, failures: list[Failure]) -> _PageLines:
    import pypdfium2
    import pypdfium2.raw

    try:
        page = document[number - 1]
        size = (float(page.get_width()), float(page.get_height()))
        text_page = page.get_textpage()
    except pypdfium2.PdfiumError as error:
        failures.append(Failure(FailureCause.MALFORMED, f"page {number} cannot be read: {error}", number))
        return _PageLines([], (0.0, 0.0))
    try:
        lines = read_lines(pypdfium2.raw, page, text_page.raw, size)
        is_blank = pypdfium2.raw.FPDFPage_CountObjects(page) == 0
    finally:
        text_page.close()
        page.close()
    if not lines and not is_blank:
        failures.append(Failure(FailureCause.NO_TEXT, f"page {number} has no text layer", number))
    return _PageLines(lines, size)


class _Layout:
    """What can be told only from all pages together: body size, sizes of headings, running headers, open sections."""

    def __init__(self, pages: Sequence[_PageLines]) -> None:
        self._several = len(pages) > 1
        self._running = _running_lines(pages)
        weights: Counter[float] = Counter()
        for page in pages:
            for line in page.lines:
                weights[round(line.size * 2) / 2] += len(line.text)
        self._body = weights.most_common(1)[0][0] if weights else 0.0
        larger = sorted({size for size in weights if size >= self._body * _HEADING_SIZE}, reverse=True)
        self._levels = {size: level for level, size in enumerate(larger, start=1)}
        self._sections = Sections()

    def blocks(self, page: _PageLines) -> Iterator[Block]:
        """Blocks of a page in reading order; pages must come in order, for sections run on over them."""
        body: list[Line] = []
        footers: list[Block] = []
        for line in page.lines:
            if not self._is_running(line, page.size):
                body.append(line)
            elif line.box[1] < page.size[1] / 2:
                yield Block(BlockKind.HEADER, line.text, box=line.box)
            else:
                footers.append(Block(BlockKind.HEADER, line.text, box=line.box))
        for lines in self._paragraphs(body):
            yield self._block(lines)
        yield from footers

    def _is_running(self, line: Line, size: tuple[float, float]) -> bool:
        if not _in_margin(line, size):
            return False
        return _running_key(line) in self._running or (self._several and bool(_PAGE_NUMBER.match(line.text)))

    def _block(self, lines: list[Line]) -> Block:
        if lines[0].is_row:
            text = "\n".join(line.text for line in lines).replace("\u00ad", "-")
        else:
            text = join_lines([line.text for line in lines]).rstrip("\u00ad")
        box = _union(lines)
        level = self._heading_level(lines, text)
        if level:
            return Block(BlockKind.HEADING, text, self._sections.enter(level, text), box=box)
        kind = BlockKind.LIST_ITEM if _LIST_ITEM.match(text) and not lines[0].is_row else BlockKind.PARAGRAPH
        return Block(kind, text, self._sections.path, box=box)

    def _heading_level(self, lines: list[Line], text: str) -> int:
        """Level of the heading that lines are, from 1; 0 where they are none."""
        if len(text) > _HEADING_CHARS or len(lines) > _HEADING_LINES or not re.search(r"[^\W\d_]", text):
            return 0
        if (lines[0].is_row and not _NUMBERED_HEADING.match(text)) or "…" in text or _BULLETED.match(text):
            return 0
        level = self._levels.get(round(lines[0].size * 2) / 2, 0)
        if level:
            return 0 if text.endswith(("。", "、")) else level
        numbered = _NUMBERED_HEADING.match(text) is not None
        if all(line.is_bold for line in lines) and len(lines) == 1 and not text.endswith(_SENTENCE_END):
            depth = len(_DIGITS.findall(text.split(maxsplit=1)[0])) if numbered else 4
            return len(self._levels) + max(depth, 1)
        return 0

    def _paragraphs(self, lines: list[Line]) -> Iterator[list[Line]]:
        paragraph: list[Line] = []
        gaps = [below.box[1] - above.box[3] for above, below in pairwise(lines)]
        spacing = _typical([gap for gap in gaps if 0 <= gap < 3 * max(self._body, 1)])
        for line in lines:
            if paragraph and self._begins_paragraph(paragraph, line, spacing):
                yield paragraph
                paragraph = []
            paragraph.append(line)
        if paragraph:
            yield paragraph

    def _begins_paragraph(self, paragraph: list[Line], line: Line, spacing: float) -> bool:
        """Whether a line begins a new paragraph rather than going on with the one above."""
        last = paragraph[-1]
        if (line.region, line.is_vertical, line.is_bold) != (last.region, last.is_vertical, last.is_bold):
            return True
        if abs(line.size - last.size) > 0.12 * max(last.size, 1.0):
            return True
        if line.is_vertical:
            return False
        gap = line.box[1] - last.box[3]
        if line.is_row != last.is_row or gap > spacing * _PARAGRAPH_GAP + 0.15 * line.size or gap < -2 * line.size:
            return True
        return not line.is_row and _looks_like_beginning(paragraph, line)


def _looks_like_beginning(paragraph: list[Line], line: Line) -> bool:
    """Whether a line at the usual distance begins a paragraph by its mark, its indent or the short line above."""
    last = paragraph[-1]
    short = _ends_short(paragraph, line)
    indent = line.box[0] - last.box[0]
    if _LIST_ITEM.match(line.text) or (short and _NUMBERED_HEADING.match(line.text)):
        return True
    if len(paragraph) > 1 and 0.8 * line.size < indent < 6 * line.size:
        return True
    spaced = not is_cjk(last.text[-1]) and _is_narrow(paragraph, line)
    return short and (last.text.endswith(_SENTENCE_END) or indent > 0.8 * line.size or spaced)


def _ends_short(paragraph: list[Line], line: Line) -> bool:
    """Whether the last line of a paragraph ends well before the widest of it and the next line."""
    right = max(line.box[2], *(item.box[2] for item in paragraph))
    return right - paragraph[-1].box[2] > 1.5 * line.size


def _is_narrow(paragraph: list[Line], line: Line) -> bool:
    """Whether the last line is so short that the next line's first word would have fitted behind it."""
    right = max(line.box[2], *(item.box[2] for item in paragraph))
    word = line.text.split(maxsplit=1)[0] if line.text.split() else ""
    return right - paragraph[-1].box[2] > (len(word) + 2) * 0.6 * line.size


def _running_lines(pages: Sequence[_PageLines]) -> set[tuple[str, int]]:
    """Lines that recur at one height in the margins of pages, digits aside."""
    seen: dict[tuple[str, int], set[int]] = defaultdict(set)
    for number, page in enumerate(pages):
        for line in page.lines:
            if _in_margin(line, page.size):
                seen[_running_key(line)].add(number)
    needed = min(_REPEATED_PAGES, max(2, len(pages)))
    return {key for key, numbers in seen.items() if len(numbers) >= needed}


def _running_key(line: Line) -> tuple[str, int]:
    return _DIGITS.sub("#", line.text), round(line.box[1] / 4)


def _in_margin(line: Line, size: tuple[float, float]) -> bool:
    return line.box[3] < size[1] * _MARGIN_SHARE or line.box[1] > size[1] * (1 - _MARGIN_SHARE)


def _union(lines: list[Line]) -> Box:
    return (
        min(line.box[0] for line in lines),
        min(line.box[1] for line in lines),
        max(line.box[2] for line in lines),
        max(line.box[3] for line in lines),
    )


def _typical(gaps: list[float]) -> float:
    """The middle one of the smaller half of gaps: the spacing inside paragraphs."""
    ordered = sorted(gaps)
    return ordered[len(ordered) // 4] if ordered else 0.0
