"""Pages as resources: listed in parts, read by their address, as in `rag-assets://pages/specs%2Ftoken.xlsx?page=2`.

Both run in threads.
"""

import re
from dataclasses import dataclass
from urllib.parse import parse_qs, quote, unquote

from rag_assets.contracts.errors import QueryError
from rag_assets.query.contents.contents import Contents
from rag_assets.query.contents.documents import DocumentEntry
from rag_assets.serve.mcp.page_lines import page_lines, part_of

PAGE_TEMPLATE = "rag-assets://pages/{document_id}{?page,part}"
_PAGES = "rag-assets://pages/"
_MOST = 1 << 31  # of a number in an address
_LISTED = 100  # pages of a part of the list
_DOCUMENTS = 50  # documents that are looked at for it
_PART_CHARS = 60_000
_CURSOR = re.compile(r"([0-9]{1,9}):(.*)", re.ASCII | re.DOTALL)

ListedPage = tuple[DocumentEntry, int]


@dataclass(frozen=True)
class PageAddress:
    """A page, or a part of one.

    Attributes:
        document_id: The document.
        page_number: Position in it, from 1.
        part: The part of its text, from 1.
    """

    document_id: str
    page_number: int = 1
    part: int = 1

    def __str__(self) -> str:
        address = f"{_PAGES}{quote(self.document_id, safe='')}?page={self.page_number}"
        return address if self.part == 1 else f"{address}&part={self.part}"


def parse_address(uri: str) -> PageAddress | None:
    """Read an address; None for anything else. Slashes and other characters of the id may also stand unescaped."""
    if not uri.startswith(_PAGES):
        return None
    document, _, query = uri.removeprefix(_PAGES).rpartition("?")
    values = parse_qs(query, keep_blank_values=True)
    if not document or not values or not values.keys() <= {"page", "part"}:
        document, values = uri.removeprefix(_PAGES), {}
    try:
        page, part = (int(values.get(name, ["1"])[-1]) for name in ("page", "part"))
    except ValueError:
        return None
    if not document or not 1 <= page < _MOST or not 1 <= part < _MOST:
        return None
    return PageAddress(unquote(document), page, part)


def list_pages(contents: Contents, cursor: str | None) -> tuple[list[ListedPage], str | None]:
    """A part of the list of all pages, by document and number, and where the next part begins.

    Raises:
        QueryError: The cursor is none.
        StoreError: A file is missing or damaged.
    """
    match = _CURSOR.fullmatch(cursor if cursor is not None else "0:")
    if match is None:
        raise QueryError("the cursor is not one that a list gave")
    skipped, after = int(match[1]), match[2] or None
    pages: list[ListedPage] = []
    while True:
        part = contents.documents(limit=_DOCUMENTS, cursor=after)
        waiting = [(entry, at) for entry in part.items for at in range(1, entry.page_count + 1)][skipped:]
        room = _LISTED - len(pages)
        pages += waiting[:room]
        if len(waiting) > room:
            return pages, f"{skipped + room}:{after or ''}"
        if part.next_cursor is None:
            return pages, None
        skipped, after = 0, part.next_cursor
        if len(pages) == _LISTED:
            return pages, f"0:{after}"


def read_page_text(contents: Contents, uri: str) -> tuple[str, PageAddress | None]:
    """A part of the text of a page, and the address of the next part.

    Raises:
        QueryError: There is no such page or part.
        StoreError: A file is missing or damaged.
    """
    address = parse_address(uri)
    held = page_lines(contents, address.document_id, address.page_number) if address else None
    if address is None or held is None:
        raise QueryError("there is no such page; addresses are as in rag-assets://pages/specs%2Fa.xlsx?page=1")
    lines, start = held.lines, 0
    for _ in range(1, address.part):
        _, start = part_of(lines, start, _PART_CHARS)
    if start >= len(lines) and address.part > 1:
        raise QueryError("the page has no such part")
    blocks, stop = part_of(lines, start, _PART_CHARS)
    following = PageAddress(address.document_id, address.page_number, address.part + 1) if stop < len(lines) else None
    return "\n\n".join(block.text for block in blocks), following
