"""The words of a text that carry what it says, made comparable: no particles, articles, auxiliaries or endings.

Of Japanese and Chinese, runs of ideographs are words, compared by their overlapping pairs of characters, and runs of
katakana, by threes, so that a compound shares with its parts. Hiragana carries grammar and is left out. Other words are
compared by their first letters, so that inflection makes no difference; identifiers by their parts; numbers and codes
only as a whole. Single letters are no words.

Source: words by their first five letters: F. Can and others, Information retrieval on Turkish texts, JASIST 59(3),
2008, where this comes near to stemming by a dictionary.
"""

import re
import unicodedata
from collections.abc import Set
from functools import lru_cache

from rag_assets.text.scripts import HAN, KANA, KATAKANA_AND_MARKS

_OTHER = rf"(?:(?![{HAN}{KANA}_])\w)"
_WORD = re.compile(
    rf"(?P<number>(?<!{_OTHER})\d+(?:[.,:/]\d+)*(?!{_OTHER}))"
    rf"|(?P<ideographs>[{HAN}]+)|(?P<katakana>[{KATAKANA_AND_MARKS}]+)|(?P<letters>{_OTHER}+)"
)
_WIDE_CHARACTER = re.compile(f"[{HAN}{KATAKANA_AND_MARKS}]")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_ASKED_CHARACTERS = "何誰幾"
_ASKED = re.compile(f"[{_ASKED_CHARACTERS}]")
_COMPARED = 5  # letters of a word
_EMPTY = frozenset(
    re.findall(
        "[a-z]+",
        "a an the and or but nor so if then than as of to in on at for with by from about into over under out up down "
        "per via not no yes me my you your we us our they them their he him his she her it its this that these those "
        "there here what which who whom whose when where why how is are was were be been being am do does did done "
        "can could would should will shall may might must have has had get please tell each any some all also very "
        "more most much many such other own same both only just stand mean",
    )
)


def content_words(text: str) -> list[tuple[str, ...]]:
    """The words that carry what a text says, in their order, each as the terms by which it is compared."""
    return [word for matched in _WORD.finditer(_plain(text)) for word in _words(matched.lastgroup, matched.group())]


def content_terms(text: str) -> frozenset[str]:
    """All terms of a text, and each ideograph by itself, as which a short word is compared."""
    plain = _plain(text)
    terms = {character for character in set(plain) if _is_wide(character)}
    terms.difference_update(_ASKED_CHARACTERS)
    for matched in _WORD.finditer(plain):
        for word in _words(matched.lastgroup, matched.group()):
            terms.update(word)
    return frozenset(terms)


def is_wide(words: list[tuple[str, ...]]) -> bool:
    """Whether any of the words is Japanese or Chinese."""
    return any(_is_wide(word[0]) for word in words)


def held_share(words: list[tuple[str, ...]], terms: Set[str]) -> float:
    """Share of words that a text holds, by its terms; of a word that is held in part, that part. 0 without words."""
    return sum(sum(term in terms for term in word) / len(word) for word in words) / max(1, len(words))


def _plain(text: str) -> str:
    return _THOUSANDS.sub("", unicodedata.normalize("NFKC", text))


@lru_cache(maxsize=1 << 16)  # the same words come again and again
def _words(kind: str | None, run: str) -> tuple[tuple[str, ...], ...]:
    """The words of a run of characters of a kind, a group of `_WORD`."""
    match kind:
        case "number":
            return ((run,),)
        case "ideographs":
            return tuple(_parts(each, 2) for each in _ASKED.split(run) if each)
        case "katakana":
            return (_parts(run, 3),)
        case _:
            return tuple(_letters(run))


def _letters(word: str) -> list[tuple[str, ...]]:
    """An identifier in its parts, a code as a whole; nothing of empty words."""
    if any(character.isdigit() for character in word):
        return [(word.casefold(),)]
    parts = [part.casefold() for part in _PART.findall(word)]
    return [(_singular(part)[:_COMPARED],) for part in parts if len(part) > 1 and part not in _EMPTY]


def _singular(word: str) -> str:
    """A word without the s of the plural; others than English words lose theirs wherever they stand, too."""
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def _parts(run: str, length: int) -> tuple[str, ...]:
    return tuple(run[place : place + length] for place in range(max(1, len(run) - length + 1)))


@lru_cache(maxsize=1 << 14)
def _is_wide(term: str) -> bool:
    return _WIDE_CHARACTER.match(term) is not None
