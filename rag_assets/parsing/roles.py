"""Pages and slides that hold facts on their document, as covers and tables of contents do. Sheets: see `excel`."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import pairwise

from rag_assets.contracts.causes import BlockKind
from rag_assets.contracts.content import Block
from rag_assets.text.cells import CELL_SIGN

_ENTRIES = 5
_SHARE = 0.8  # of the lines of a page
_FARTHEST = 3  # times the pages of the document: it may be one of several files
_NUMBERS = 3  # that differ: rows of points or versions end with the same
_PAGE = re.compile(r"[|\s](?:p\.?\s*)?(\d{1,3})(?:頁|ページ)?$", re.IGNORECASE)
_PAGE_CHARS = 12
_LETTER = re.compile(r"[^\W\d]")
_BESIDE = {BlockKind.HEADER, BlockKind.NOTE}
_COVER_LINES, _COVER_LINE_CHARS = 15, 40
_AGENDA = re.compile(
    r"目次|もくじ|アジェンダ|agenda|(?:tableof)?contents|outline|(?:本日|今日|発表|講演|説明)の?(?:内容|流れ|アジェンダ)"
)
_ASIDE = re.compile(r"[\s・■□●◆【】<>「」]|^[\d.]+|\(.*\)$")
_ENTRY_CHARS = 40
_SENTENCE_ENDS = ("。", ".")
_NAMES_PAGES = re.compile(r"頁|ページ|\bp(?:age|ages|p)?\b", re.IGNORECASE)


def is_cover(blocks: Sequence[Block]) -> bool:
    """Whether a first page has few short lines alone, as a title, a date and names."""
    lines = list(_lines(blocks))
    is_short = 0 < len(lines) <= _COVER_LINES and all(len(line) <= _COVER_LINE_CHARS for line in lines)
    return is_short and not any(line.endswith(_SENTENCE_ENDS) for line in lines)


def is_agenda(blocks: Sequence[Block]) -> bool:
    """Whether a page or slide is a table of contents by its title, which short lines follow and no sentences."""
    title, *entries = list(_lines(blocks)) or [""]
    name = _ASIDE.sub("", unicodedata.normalize("NFKC", title)).casefold()
    has_table = any(block.rows for block in blocks)
    return _AGENDA.fullmatch(name) is not None and bool(entries) and not has_table and all(map(_is_entry, entries))


def _is_entry(line: str) -> bool:
    return len(line) <= _ENTRY_CHARS and not line.endswith(_SENTENCE_ENDS)


def is_contents(blocks: Sequence[Block], page_count: int) -> bool:
    """Whether practically all lines of a page end with numbers of pages, which do not fall.

    Args:
        blocks: Blocks of the page; running headers count for nothing.
        page_count: Pages of the document; numbers far above are prices or the like, as are those in a column that is
            named otherwise.
    """
    if any(map(_names_others, blocks)):
        return False
    lines = list(_lines(blocks))
    ends = [unicodedata.normalize("NFKC", line[-_PAGE_CHARS:].replace("…", "|")) for line in lines]
    pages = [_LETTER.search(line) and _PAGE.search(end) for line, end in zip(lines, ends, strict=True)]
    numbers = [int(page[1]) for page in pages if page]
    if len(numbers) < max(_ENTRIES, _SHARE * len(lines)) or len(set(numbers)) < _NUMBERS:
        return False
    if page_count == 1 or numbers[-1] > _FARTHEST * page_count:
        return False
    return all(above <= below for above, below in pairwise(numbers))


def _names_others(block: Block) -> bool:
    """Whether names of columns stand above a table, the last of them not that of pages."""
    names = list(filter(None, block.rows[block.header_row_count - 1].cells)) if block.header_row_count else []
    last = unicodedata.normalize("NFKC", names[-1]) if len(names) > 1 else ""
    return _LETTER.search(last) is not None and not (_PAGE.search(f" {last}") or _NAMES_PAGES.search(last))


def _lines(blocks: Sequence[Block]) -> Iterator[str]:
    for block in blocks:
        if block.kind is BlockKind.TABLE:
            yield from (CELL_SIGN.join(row.cells).replace("\n", " ") for row in block.rows)
        elif block.kind not in _BESIDE:
            yield from block.text.split("\n")
