"""Which text says something of the names in it: running text, and what only looks like it.

Entries of a bibliography, text whose letters a PDF tore apart, courtesies of a conversation and lists of paths name
much and relate nothing.
"""

import re

from rag_assets.contracts.causes import BlockKind
from rag_assets.text.language import is_torn
from rag_assets.text.scripts import HIRAGANA

SHORTEST = 10  # characters of a sentence
_PARTICLE = re.compile(f"[がはをにでとのもへ](?=[^{HIRAGANA}]|$)|です|ます|する|した")
_CAPITALS_PROSE = re.compile(r"[a-z]{2,} [a-z]{2,}")
_ENTRY = re.compile(r"\s*\[\d{1,3}\]\s+\S")
_PUBLISHED = re.compile(r"\bvol\. ?\d|\bno\. ?\d+, |\bpp\. ?\d|\bin Proc(?:\.|eedings)|\barXiv[: ]|\bdoi[: ]|\bISBN\b")
_YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")
_SPOKEN = re.compile(r"[A-Z][A-Za-z.'’-]+(?: [A-Z][A-Za-z.'’-]*){0,3}(?:, [^:]{2,40})?: ")
_COURTESY = re.compile(
    r"\b(?:thanks(?! to)|thank you|good (?:morning|afternoon|evening)|hello|congrat\w*|your (?:line|next question)"
    r"|next question|go ahead)\b|^(?:hi|welcome)\b",
    re.IGNORECASE,
)
_COURTESY_WORDS = 16
_YES = re.compile(r"^(?:yes|yeah|yep|no|sure|perfect|absolutely|great|okay|right|exactly)\b", re.IGNORECASE)
_YES_WORDS = 5
_PATH = re.compile(r"(?<!\S)[\w.\-~<>{}*]*(?:/[\w.\-+~<>{}*%]+)+/?(?!\S)", re.ASCII)
_LEAST_PATHS = 3
_PATH_SHARE = 0.6  # of the characters


_LEADER = re.compile(r"(?:…|\.{3,}|(?: \.){3,})[\s.…]*\d+\s*$")
_SMALL = re.compile(r"(?<!\S)[(“\"]?[a-z][a-z'’-]*(?=[,.;:?!)”\"]*(?:\s|$))")
_KANA = re.compile(f"[{HIRAGANA}]")
_LEAST_SMALL, _SMALL_SHARE = 2, 0.3  # words in small letters of an English sentence
_JOINT = (
    r"(?:[\s®™)）]|['’]s\b)*(?:[,;/&+・、，；／＆]+(?: ?\b(?:and|or|nor|then|to)\b)?"
    r"|\b(?:and|or|nor|plus|versus|vs\.?|as well as)\b"
    r"|[とや]|および|及び|または|又は|もしくは|若しくは|並びに|ならびに)\s*(?:(?:the|an?|to|both|our|its|their)\s(?:own\s)?)?[\s(（「『“]*"
)
_ASIDE = re.compile(r"\s?[(（][^()（）]*[)）]")
_LIST_GAP = re.compile(rf"{_JOINT}(?:[\w'’&®™.\-]+(?: [\w'’&®™.\-]+){{0,3}}{_JOINT}){{0,3}}")


def is_prose(text: str, language: str, kind: BlockKind) -> bool:
    """Whether a line or cell is running text, which recognizers can read."""
    if is_torn(text):
        return False
    if language == "ja":
        return len(text) >= SHORTEST and len(_PARTICLE.findall(text)) >= 2
    return kind is not BlockKind.TABLE or bool(_CAPITALS_PROSE.search(text))


def is_reference(text: str) -> bool:
    """Whether a sentence is an entry of a bibliography."""
    quoted = "“" in text or '"' in text
    return bool(_ENTRY.match(text) or (quoted and _PUBLISHED.search(text) and _YEAR.search(text)))


def relates(text: str) -> bool:
    """Whether names that stand together in a sentence are related by it."""
    return not (is_torn(text) or is_reference(text) or _is_courtesy(text) or _is_path_list(text)) and is_running(text)


def is_running(text: str) -> bool:
    """Whether a text is a sentence, and no title, legend or entry of a contents list, whose words all have capitals."""
    if _LEADER.search(text):
        return False
    small = len(_SMALL.findall(text))
    return bool(_KANA.search(text)) or small >= max(_LEAST_SMALL, _SMALL_SHARE * len(text.split()))


def lists_on(gap: str) -> bool:
    """Whether the text between two names only goes on from one to the next of a list, over other items or none."""
    return _LIST_GAP.fullmatch(_ASIDE.sub("", gap)) is not None


def _is_courtesy(text: str) -> bool:
    """Whether somebody greets or thanks, and says nothing else."""
    said = _SPOKEN.sub("", text, count=1)
    count = len(said.split())
    return bool((count <= _COURTESY_WORDS and _COURTESY.search(said)) or (count <= _YES_WORDS and _YES.search(said)))


def _is_path_list(text: str) -> bool:
    paths = _PATH.findall(text)
    return len(paths) >= _LEAST_PATHS and sum(map(len, paths)) >= _PATH_SHARE * len("".join(text.split()))
