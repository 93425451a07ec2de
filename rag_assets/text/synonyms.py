"""Words of the same meaning, by the groups of synonyms that the Sudachi dictionary gives for Japanese nouns.

The groups are known, not their members: a word is told to mean the same as another one where both are read. They hold
related words, too (利益, 収益), so that whoever uses one for the other says so.

Source: the synonym dictionary of K. Takaoka and others, Sudachi: a Japanese tokenizer for business, LREC 2018, as it
stands in sudachidict-core.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from sudachipy import Dictionary, Morpheme, SplitMode

from rag_assets.text.scripts import HAN, KANA

_JAPANESE_WORD = re.compile(f"[{KANA}{HAN}]{{2,}}")
_THING = "普通名詞", "一般"  # neither a name, nor what is done (登録する), nor how something is (正常な)
_MOST_GROUPS = 2  # words of more have many meanings: 時間外手当 is in seven
_TEXT_CHARS = 4000  # of a text in NFKC that are read; the tokenizer takes up to 49,149 bytes at once
_QUESTION_CHARS = 1000  # of a question, or a line of one; some characters are 54 bytes in NFKC
_QUOTED = re.compile('「[^「」]*」|『[^『』]*』|["“”][^"“”]*["“”]')


def words_found(question: str, texts: Sequence[str]) -> dict[str, str]:
    """For nouns of a question that none of some texts holds the first word in these that means the same.

    Args:
        question: The question; what it quotes stays as it is.
        texts: What was found for it, best first.

    Returns:
        The other words, by those of the question as they stand in it.
    """
    plain_texts = [unicodedata.normalize("NFKC", text) for text in texts]
    missing = {
        word.surface(): groups
        for word in _words(_QUOTED.sub(" ", question)[:_QUESTION_CHARS])
        if word.part_of_speech()[1:3] == _THING
        and (groups := _groups(word))
        and not any(word.surface() in text for text in plain_texts)
    }
    others: dict[str, str] = {}
    for text in plain_texts if missing else ():
        for other in _words(text[:_TEXT_CHARS], parts=True):
            for word, groups in missing.items():
                if not groups.isdisjoint(_groups(other)) and other.surface() not in question:
                    others.setdefault(word, other.surface())
    return others


def in_other_words(question: str, others: Mapping[str, str]) -> str:
    """A question with words of it replaced by others, but for parts of longer words and what it quotes."""
    pieces = _QUOTED.split(question)
    quotes = [*_QUOTED.findall(question), ""]
    said = ("".join(_replaced(piece, others)) + quote for piece, quote in zip(pieces, quotes, strict=True))
    return "".join(said)


def _replaced(text: str, others: Mapping[str, str]) -> Iterator[str]:
    for line in text.splitlines(keepends=True):
        for word in _dictionary().create(SplitMode.C).tokenize(line[:_QUESTION_CHARS]):
            yield others.get(word.surface(), word.surface())
        yield line[_QUESTION_CHARS:]


def _words(text: str, *, parts: bool = False) -> Iterator[Morpheme]:
    """The Japanese nouns of a text that have synonyms, but for those behind a prefix (非社員); of compounds also their
    parts, if wanted.
    """
    for line in text.splitlines():
        is_prefixed = False
        for word in _dictionary().create(SplitMode.C).tokenize(line):
            if is_prefixed or word.part_of_speech()[0] == "接頭辞":
                is_prefixed = not is_prefixed
                continue
            pieces = [*word.split(SplitMode.A)] if parts else []
            for noun in (word, *(pieces if len(pieces) > 1 else ())):
                is_noun = noun.part_of_speech()[0] == "名詞" and _JAPANESE_WORD.fullmatch(noun.surface())
                if is_noun and noun.synonym_group_ids():
                    yield noun


def _groups(word: Morpheme) -> frozenset[int]:
    """The groups of a word; none of one of many meanings."""
    groups = word.synonym_group_ids()
    return frozenset(groups if len(groups) <= _MOST_GROUPS else ())


@cache
def _dictionary() -> Dictionary:
    return Dictionary(dict="core")
