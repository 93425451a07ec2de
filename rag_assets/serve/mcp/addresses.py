"""Addresses of pages as resources, as in `rag-assets://pages/specs%2Ftoken.xlsx?page=2`."""

from dataclasses import dataclass
from urllib.parse import parse_qs, quote, unquote

PAGE_TEMPLATE = "rag-assets://pages/{document_id}{?page,part}"
_PAGES = "rag-assets://pages/"
_MOST = 1 << 31


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
