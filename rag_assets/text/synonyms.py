"""Words of the same meaning, by the groups of synonyms that the Sudachi dictionary gives for Japanese nouns.

The groups are known, not their members: a word is told to mean the same as another one where both are read.

Source: the synonym dictionary of K. Takaoka and others, Sudachi: a Japanese tokenizer for business, LREC 2018, as it
stands in sudachidict-core.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache

from sudachipy import Dictionary, Morpheme, SplitMode

from rag_assets.text.scripts import HAN, KANA

_JAPANESE_WORD = re.compile(f"[{KANA}{HAN}]{{2,}}")
_THINGS = ("普通名詞", "一般"), ("固有名詞", "一般")  # neither what is done (登録する) nor how something is (正常な)
_MOST_GROUPS = 2  # of a word that means one thing
_TEXT_CHARS = 4000


def in_words_of(question: str, texts: Sequence[str]) -> str:
    """A question with each noun that none of some texts holds replaced by the first one in them that means the same.

    Args:
        question: The question.
        texts: What was found for it, best first.

    Returns:
        The question as it is where nothing is replaced.
    """
    plain, plain_texts = (unicodedata.normalize("NFKC", question), [unicodedata.normalize("NFKC", t) for t in texts])
    missing = {
        word.surface(): frozenset(word.synonym_group_ids())
        for word in _nouns(plain[:_TEXT_CHARS])
        if word.part_of_speech()[1:3] in _THINGS
        and len(word.synonym_group_ids()) <= _MOST_GROUPS
        and not any(word.surface() in text for text in plain_texts)
    }
    if not missing:
        return question
    others: dict[str, str] = {}
    for text in plain_texts:
        for other in _nouns(text[:_TEXT_CHARS], parts=True):
            for word, groups in missing.items():
                if not groups.isdisjoint(other.synonym_group_ids()) and other.surface() not in plain:
                    others.setdefault(word, other.surface())
        if len(others) == len(missing):
            break
    for word, other in others.items():
        plain = plain.replace(word, other)
    return plain if others else question


def _nouns(text: str, *, parts: bool = False) -> Iterator[Morpheme]:
    """The Japanese nouns of a text that have synonyms; of compounds also their parts, if wanted."""
    for line in text.splitlines():
        for word in _dictionary().create(SplitMode.C).tokenize(line):
            pieces = [*word.split(SplitMode.A)] if parts else []
            for noun in (word, *(pieces if len(pieces) > 1 else ())):
                is_noun = noun.part_of_speech()[0] == "名詞" and _JAPANESE_WORD.fullmatch(noun.surface())
                if is_noun and noun.synonym_group_ids():
                    yield noun


@cache
def _dictionary() -> Dictionary:
    return Dictionary(dict="core")
