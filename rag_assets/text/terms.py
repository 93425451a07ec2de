"""The terms of a text as the full-text index holds them, for Japanese and English mixed in one sentence.

Index and query are analysed by this one function, and the index splits at blanks only; so nothing in a query can be
taken for query syntax. What stays out: scoring, which is BM25 in LanceDB.

Text is put in NFKC and lower case. Of Chinese and Japanese characters overlapping pairs are terms, and each
ideograph besides: pairs need no dictionary, so that names and new words are found, and single ideographs let short
words match. Hiragana alone carries grammar and is left out as single characters. Words in other scripts are terms
as they stand, and compound identifiers (`clientName`, `client_name`) also in their parts, so that both the exact form
and the plain word are found, the exact form with more weight. Inflection is left to the vectors: there is no
stemming.

Source: characters and pairs: J. Savoy, Comparative study of monolingual and multilingual search models for use with
Asian languages, ACM TALIP 4(2), 2005, and R. Luk and K. Kwok, A comparison of Chinese document indexing strategies,
ACM TALIP 1(3), 2002.
"""

import re
import unicodedata
from collections.abc import Iterator
from enum import StrEnum
from itertools import islice

from rag_assets.text.scripts import HAN, KANA

QUERY_TERMS = 512
_WORD_CHARS = 64  # longer ones are data, not words; their beginning still finds them

_IDEOGRAPHS = f"{HAN}〆"
_RUN = re.compile(rf"(?P<cjk>[{_IDEOGRAPHS}{KANA}]+)|(?P<word>(?:(?![{_IDEOGRAPHS}{KANA}])\w)+)")
_IDEOGRAPH = re.compile(f"[{_IDEOGRAPHS}]")
_WIDE = re.compile(f"[{_IDEOGRAPHS}{KANA}]")
_IDENTIFIER = re.compile(r"_|(?=.{3}).*\d")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W_a-zA-Z0-9]+")
_COMPOUND = re.compile(r"_|[a-z][A-Z]")


class TermKind(StrEnum):
    """What a term of a query is, as far as can be told by its characters: how much it says differs."""

    IDENTIFIER = "identifier"  # letters with digits, long numbers, words joined by a line, as programs write them
    WORD = "word"
    PAIR = "pair"  # of Chinese and Japanese characters
    CHARACTER = "character"  # one of them


def search_terms(text: str) -> str:
    """The terms of a text in its order, parted by blanks."""
    return " ".join(_terms(text))


def query_terms(text: str) -> str:
    """The distinct terms of a query, parted by blanks; of very long ones the first `QUERY_TERMS`.

    Text far beyond what a person types (a pasted document) is cut, so that it costs no more than a long question.
    """
    return " ".join(islice(dict.fromkeys(_terms(text)), QUERY_TERMS))


def kind_of(term: str) -> TermKind:
    """The kind of a term of `query_terms`."""
    if _WIDE.match(term):
        return TermKind.CHARACTER if len(term) == 1 else TermKind.PAIR
    return TermKind.IDENTIFIER if _IDENTIFIER.search(term) else TermKind.WORD


def _terms(text: str) -> Iterator[str]:
    for match in _RUN.finditer(unicodedata.normalize("NFKC", text)):
        run = match.group()
        if match.lastgroup == "cjk":
            yield from _cjk_terms(run)
        else:
            yield from _word_terms(run.strip("_")[:_WORD_CHARS])


def _cjk_terms(run: str) -> Iterator[str]:
    if len(run) == 1:
        yield run
        return
    for index, character in enumerate(run):
        if _IDEOGRAPH.match(character):
            yield character
        if index + 1 < len(run):
            yield run[index : index + 2]


def _word_terms(word: str) -> Iterator[str]:
    if not word:
        return
    yield word.lower()
    if _COMPOUND.search(word):
        for part in _PART.findall(word):
            if len(part) > 1:
                yield part.lower()
