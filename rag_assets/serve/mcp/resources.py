"""Pages as resources: listed in parts, read by their address. Both run in threads."""

import re
from collections.abc import Iterator

from rag_assets.contracts.errors import QueryError
from rag_assets.query.contents.contents import Contents
from rag_assets.query.contents.documents import DocumentEntry
from rag_assets.serve.mcp.addresses import PageAddress, parse_address
from rag_assets.serve.mcp.page_lines import page_lines, part_of

_LISTED = 100  # pages of a part of the list
_DOCUMENTS = 50  # documents that are looked at for it
_PART_CHARS = 60_000
_CURSOR = re.compile(r"([0-9]{1,9}):(.*)", re.ASCII | re.DOTALL)

ListedPage = tuple[DocumentEntry, int]


def list_pages(contents: Contents, cursor: str | None) -> tuple[list[ListedPage], str | None]:
    """A part of the list of all pages, by document and number, and where the next part begins.

    Raises:
        QueryError: The cursor is none.
        StoreError: A file is missing or damaged.
    """
    found = _CURSOR.fullmatch(cursor if cursor is not None else "0:")
    if found is None:
        raise QueryError("the cursor is not one that a list gave")
    skipped, after = int(found[1]), found[2] or None
    pages: list[ListedPage] = []
    while True:
        part = contents.documents(limit=_DOCUMENTS, cursor=after)
        waiting = list(_pages(part.items))[skipped:]
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
    found = page_lines(contents, address.document_id, address.page_number) if address else None
    if address is None or found is None:
        raise QueryError("there is no such page; addresses are as in rag-assets://pages/specs%2Fa.xlsx?page=1")
    lines, start = found.lines, 0
    for _ in range(1, address.part):
        _, start = part_of(lines, start, _PART_CHARS)
    if start >= len(lines) and address.part > 1:
        raise QueryError("the page has no such part")
    blocks, stop = part_of(lines, start, _PART_CHARS)
    following = PageAddress(address.document_id, address.page_number, address.part + 1) if stop < len(lines) else None
    return "\n\n".join(block.text for block in blocks), following


def _pages(entries: tuple[DocumentEntry, ...]) -> Iterator[ListedPage]:
    for entry in entries:
        for number in range(1, entry.page_count + 1):
            yield entry, number
