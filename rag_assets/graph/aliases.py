"""Names that a text declares to be other names: `以下「…」という`, `X（以下、Yと略す）`, `X (Y)` with Y an acronym."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from rag_assets.graph.names import is_acronym_of, is_name
from rag_assets.text.folding import clean_name, fold_name
from rag_assets.text.plain import one_line
from rag_assets.text.scripts import HIRAGANA

_FULL = r"(?P<full>[^\s、。，．,.;；:：「」『』()（）\n]{2,40})"
_BEGIN = r"以下[、,\s]*(?:単に)?"
_CALLED = r"と(?:いう|略す|呼ぶ|称する|記す|表記する|する|略記する)"
_QUOTED = r"[「『\"](?P<alias>[^」』\"\n]{1,30})[」』\"]"
_BARE = r"(?P<alias>[^「」『』()（）\n、。]{1,30}?)"
_ENGLISH_WORDS = r"(?:the |hereinafter |hereafter |referred to as |also known as |\"|“|')+"
_DECLARED = (
    re.compile(rf"{_FULL}\s*[(（]\s*{_BEGIN}{_QUOTED}(?:{_CALLED}。?)?\s*[)）]"),
    re.compile(rf"{_FULL}\s*[(（]\s*{_BEGIN}{_BARE}(?:{_CALLED})?。?\s*[)）]"),
    re.compile(rf"{_FULL}を[、,\s]*{_BEGIN}{_QUOTED}と(?:いう|略|呼|称|記|表記|する)"),
    re.compile(
        rf"[「『](?P<full>[^」』\n]{{2,40}})[」』]\s*[(（]\s*{_BEGIN}[「『]?{_BARE}[」』]?(?:{_CALLED})?。?\s*[)）]"
    ),
    re.compile(
        rf"(?P<full>[A-Z][\w&'.\-]*(?: [\w&'.\-]+){{0,7}}) "
        rf"\({_ENGLISH_WORDS}(?P<alias>[A-Z][\w&.\- ]{{0,30}}?)[\"”']?\)"
    ),
)
_ACRONYM = re.compile(r"(?P<full>[A-Za-z][\w'\-]*(?:[ \-][\w'\-]+){1,9}) ?[(（](?P<alias>[A-Z]{2,8})s?[)）]")
_EXPANDED = re.compile(r"(?P<alias>\b[A-Z]{2,8}) ?[(（](?P<full>[A-Za-z][\w'\-]*(?:[ \-][\w'\-]+){1,9})[)）]")
_LEADING = re.compile(
    rf"^.*(?:である|という|における|のうち|による|された|する|した|には|では|は|が|を|に|と|で|も|や)(?=[^{HIRAGANA}])"
)
_ARTICLES = re.compile(r"^(?:the|a|an)\s+", re.IGNORECASE)
_DEICTIC = re.compile("^(?:本|当|同|該|該当|前|後|上|下|左|右|新|旧|甲|乙|丙|丁|これ|それ|弊|貴|御).{0,6}$")


@dataclass(frozen=True, slots=True)
class Alias:
    """A declaration that one name stands for another.

    Attributes:
        start: Where the name in full begins in the text.
        evidence: The words that declare it.
    """

    full: str
    alias: str
    start: int
    evidence: str


def declared_aliases(text: str) -> Iterator[Alias]:
    """Declarations in a text.

    Names that only point (本システム, 当社, 甲) are left out: they mean another thing in each document.
    """
    seen: set[tuple[str, str]] = set()
    for form in (*_DECLARED, _ACRONYM, _EXPANDED):
        for match in form.finditer(text):
            alias = clean_name(match["alias"])
            full = _full_name(match["full"], alias if form in {_ACRONYM, _EXPANDED} else "")
            key = (fold_name(full), fold_name(alias))
            usable = bool(full) and is_name(full) and is_name(alias) and not _DEICTIC.match(alias)
            if usable and key[0] != key[1] and key not in seen:
                seen.add(key)
                start = text.find(full, match.start("full"))
                yield Alias(full, alias, start, one_line(match[0]))


def _full_name(text: str, acronym: str) -> str:
    """The name in full, without the words before it."""
    if not acronym:
        return clean_name(_ARTICLES.sub("", _LEADING.sub("", text)))
    words = text.split(" ")
    endings = (" ".join(words[first:]) for first in range(len(words) - 1, -1, -1))
    return next((ending for ending in endings if is_acronym_of(acronym, ending)), "")
