"""Whether words stand in a text, whether they can carry a sentence, and which figures of it no source holds.

Words are compared in NFKC: width makes no difference, nor do spaces, line ends and punctuation between words. Letters,
digits, signs and the separators within a number do: a number is never found inside of a longer one.

Words carry a sentence, as far as can be told by words, where they are more than a word or hold all its figures, and
share with it. Nobody can tell so whether they say the same: a denial shares all words with what it denies. Between
languages they are compared by meaning, which sees another statement on the same matter, and no denial: of 30 true
translations 90 % carry their sentence, of 60 other statements on the same matter 2 %.

What stays out: what is done about words that are not found (`rag_assets.query.ask.written.reader`).
"""

import re
import unicodedata
from collections.abc import Callable, Sequence

from rag_assets.text.folding import content_terms, content_words, held_share, is_wide
from rag_assets.text.scripts import HANGUL, SPACELESS

_WIDE = f"{SPACELESS}{HANGUL}"
_NUMBER = r"\d+(?:[.,:/]\d+)*"
_LETTER = rf"(?![{_WIDE}\d_])\w"
_TOKEN = re.compile(rf"(?P<number>{_NUMBER})|(?P<wide>(?=\w)[{_WIDE}])|(?P<word>(?:{_LETTER})+)|(?P<sign>[%‰°$€£¥±])")
_DASHES = re.compile("[\u2010-\u2015\u2212]")
_BLANKS = re.compile(r"(?:[^\w%‰°$€£¥±.,:/]|_)+")  # what may stand between words, less what may stand in a number
_GAP = "[ .,:/]*"
_LONGEST = 1000  # characters; a longer quote is none
COMPARES_LANGUAGES = "multilingual-e5-small"  # how the names of embedders begin whose cosines these are
# in 30 pairs of a Japanese and an English sentence: .59 to .81 (median .74) where they say the same; .38 to .70 (.58)
# in 60 where they state different things on one matter; .31 to .67 (.49) elsewhere
_SAME_MEANING = 0.68
_OTHER_MEANING = 0.58
_LEAST_WORDS = 2  # of a quote, or one word of
_LEAST_TERMS = 3  # so many parts
_LEAST_SHARE = 0.25  # of the words of a quote or of its sentence, whichever has fewer, that the other holds
_CODE = re.compile(
    r"(?<![A-Za-z0-9])(?=[A-Za-z0-9_.-]*[0-9])(?=[A-Za-z0-9_.-]*[A-Za-z])[A-Za-z0-9]+(?:[_.-]+[A-Za-z0-9]+)*"
)
_PLAIN_NUMBER = re.compile(r"(?<![A-Za-z0-9])\d+(?:[.,]\d+)*(?![A-Za-z0-9])")
_WITH_UNIT = re.compile(r"(\d+(?:[.,]\d+)*)[^\W\d_]+")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")

Meaning = Callable[[str, str], float]
"""Cosine of two texts, by an embedder whose name begins with `COMPARES_LANGUAGES`."""


def stands_in(quote: str, text: str) -> bool:
    """Whether words stand in a text, one after the other.

    Args:
        quote: The words; words without a letter, digit or sign stand nowhere.
        text: The text.
    """
    pattern = _pattern(quote)
    return pattern is not None and pattern.search(_BLANKS.sub(" ", _plain(text))) is not None


def carries(quote: str, sentence: str, meaning: Meaning | None = None) -> bool | None:
    """Whether words can carry a sentence: they mean something by themselves, and are about the same.

    Args:
        quote: The words.
        sentence: The sentence. One without content words, as "Yes.", is carried by all words that mean something.
        meaning: Compares texts of two languages.

    Returns:
        None where nobody can tell: between languages, without `meaning` or where that is undecided.
    """
    quote_words, sentence_words = content_words(quote), content_words(sentence)
    figures = _facts(sentence)
    holds_figures = bool(figures) and not unfounded(sentence, [quote])
    if len(quote_words) < _LEAST_WORDS and sum(map(len, quote_words)) < _LEAST_TERMS and not holds_figures:
        return False
    shares = (held_share(quote_words, content_terms(sentence)), held_share(sentence_words, content_terms(quote)))
    if is_wide(quote_words) == is_wide(sentence_words):
        return not sentence_words or max(shares) >= _LEAST_SHARE
    if figures and not any(shares):
        return False
    alike = meaning(quote, sentence) if meaning is not None else _OTHER_MEANING
    if alike < _OTHER_MEANING:
        return False
    return True if meaning is not None and (alike >= _SAME_MEANING or holds_figures) else None


def unfounded(sentence: str, sources: Sequence[str]) -> tuple[str, ...]:
    """Numbers and codes of a sentence that none of its sources holds, each once, in their order.

    A code is a word of letters and digits, as in `E0004`. Separators of thousands make no difference, and `9.2B` holds
    9.2, too.

    Args:
        sentence: The sentence.
        sources: Texts of its sources.
    """
    source_facts = {fact.casefold() for source in sources for fact in _facts(source)}
    source_facts |= {match[1] for fact in source_facts if (match := _WITH_UNIT.fullmatch(fact))}
    return tuple(dict.fromkeys(fact for fact in _facts(sentence) if fact.casefold() not in source_facts))


def _facts(text: str) -> list[str]:
    """Numbers and codes, in their order."""
    plain = _THOUSANDS.sub("", _plain(text))
    matches = [*_CODE.finditer(plain), *_PLAIN_NUMBER.finditer(plain)]
    return [match.group() for match in sorted(matches, key=lambda match: match.start())]


def _plain(text: str) -> str:
    return _DASHES.sub("-", unicodedata.normalize("NFKC", text))


def _pattern(quote: str) -> re.Pattern[str] | None:
    tokens = list(_TOKEN.finditer(_plain(quote)))
    if not tokens or len(quote) > _LONGEST:
        return None
    parts = []
    for place, token in enumerate(tokens):
        text = re.escape(token.group())
        if token.lastgroup == "number":
            text = rf"(?<!\d)(?<!\d[.,]){text}(?!\d)(?![.,]\d)"
        elif token.lastgroup == "word":
            before = rf"(?<!{_LETTER})" if place == 0 else ""
            after = rf"(?!{_LETTER})" if place == len(tokens) - 1 else ""
            text = before + text + after
        parts.append(text)
    return re.compile(_GAP.join(parts))
