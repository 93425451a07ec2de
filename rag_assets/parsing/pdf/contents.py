"""Pages of a PDF that are tables of contents, or lists of its tables and figures."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import pairwise

from rag_assets.contracts.causes import BlockKind
from rag_assets.contracts.content import Block

_ENTRIES = 5
_SHARE = 0.8  # of the lines of a page
_FARTHEST = 3  # times the pages of the document: it may be one of several files
_NUMBERS = 3  # that differ: rows of points or versions end with the same
_ENTRY = re.compile(r".*[^\W\d].*?[|\s]\s*(?:p\.?\s*)?(\d{1,3})(?:頁|ページ)?", re.IGNORECASE)


def is_contents(blocks: Sequence[Block], page_count: int) -> bool:
    """Whether practically all lines of a page end with numbers of pages, which do not fall.

    Args:
        blocks: Blocks of the page; running headers count for nothing.
        page_count: Pages of the document; numbers far above are prices or the like.
    """
    lines = [unicodedata.normalize("NFKC", line.replace("…", "|")) for line in _lines(blocks)]
    numbers = [int(entry[1]) for line in lines if (entry := _ENTRY.fullmatch(line))]
    if len(numbers) < max(_ENTRIES, _SHARE * len(lines)) or len(set(numbers)) < _NUMBERS:
        return False
    if page_count == 1 or numbers[-1] > _FARTHEST * page_count:
        return False
    return all(above <= below for above, below in pairwise(numbers))


def _lines(blocks: Sequence[Block]) -> Iterator[str]:
    for block in blocks:
        if block.kind is BlockKind.TABLE:
            yield from (" | ".join(row.cells).replace("\n", " ") for row in block.rows)
        elif block.kind is not BlockKind.HEADER:
            yield from block.text.split("\n")
