"""Texts that a sheet prints above and below each of its pages.

What stays out: page numbers, dates, names of file and sheet, which are filled in when it is printed, and pictures.
"""

import re

from lxml import etree

from rag_assets.parsing.archive import local_name

_PAGE = re.compile(
    r"(?:page|seite|p\.|ページ|頁|第)?[\s\-‐–―(（]*&P(?:[+-]\d+)?(?:\s*(?:/|／|of|von|-)\s*&N)?[\s\-‐–―)）]*(?:ページ|頁)?",
    re.IGNORECASE,
)
_SECTION = re.compile(r"&([LCR])", re.IGNORECASE)
_CODE = re.compile(r'&(?:"[^"]*"|K(?:[0-9A-F]{6}|\d{2}[+-]\d{3})|\d{1,3}|[A-Z])', re.IGNORECASE)
_LITERAL = "\0"
_MAXIMUM_CHARS = 2_000


def margin_texts(element: etree._Element) -> tuple[str, ...]:
    """Headers, then footers; each once, its left, middle and right parts joined by ` | `."""
    texts: dict[str, str] = {}
    for child in element:
        name = local_name(child).lower()
        texts[name] = f"{texts.get(name, '')}{child.text or ''}"
    ordered = [text for place in ("header", "footer") for name, text in texts.items() if name.endswith(place)]
    return tuple(dict.fromkeys(filter(None, map(_plain, ordered))))


def _plain(codes: str) -> str:
    codes = codes[:_MAXIMUM_CHARS].replace("&&", _LITERAL)
    parts = [" ".join(_CODE.sub("", _PAGE.sub("", part)).split()) for part in _SECTION.split(codes)[::2]]
    kept = [part.replace(_LITERAL, "&") for part in parts if any(map(str.isalnum, part))]
    return " | ".join(kept)
