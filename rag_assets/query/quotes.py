"""Whether words stand in a text, and which numbers and codes of a sentence its sources do not hold.

Words are compared in NFKC: width makes no difference, nor do spaces, line ends and punctuation between words. Letters,
digits, signs and the separators within a number do: a number is never found inside of a longer one.

What stays out: what is done about words that are not found (`rag_assets.query.reader`).
"""

import re
import unicodedata
from collections.abc import Sequence

_WIDE = "\u3005-\u3007\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003134f"
_NUMBER = r"\d+(?:[.,:/]\d+)*"
_LETTER = rf"(?![{_WIDE}\d_])\w"
_TOKEN = re.compile(rf"(?P<number>{_NUMBER})|(?P<wide>[{_WIDE}])|(?P<word>(?:{_LETTER})+)|(?P<sign>[%‰°$€£¥±])")
_DASHES = re.compile("[\u2010-\u2015\u2212]")
_GAP = r"(?:[^\w%‰°$€£¥±]|_)*"
_LONGEST = 1000  # characters; a longer quote is none
_CODE = re.compile(
    r"(?<![A-Za-z0-9])(?=[A-Za-z0-9_.-]*[0-9])(?=[A-Za-z0-9_.-]*[A-Za-z])[A-Za-z0-9]+(?:[_.-]+[A-Za-z0-9]+)*"
)
_PLAIN_NUMBER = re.compile(r"(?<![A-Za-z0-9])\d+(?:[.,]\d+)*(?![A-Za-z0-9])")
_WITH_UNIT = re.compile(r"(\d+(?:[.,]\d+)*)[^\W\d_]+")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")


def stands_in(quote: str, text: str) -> bool:
    """Whether words stand in a text, one after the other.

    Args:
        quote: The words; words without a letter, digit or sign stand nowhere.
        text: The text.
    """
    pattern = _pattern(quote)
    return pattern is not None and pattern.search(_plain(text)) is not None


def unfounded(sentence: str, sources: Sequence[str]) -> tuple[str, ...]:
    """Numbers and codes of a sentence that none of its sources holds, each once, in their order.

    A code is a word of letters and digits, as in `E0004`. Separators of thousands make no difference, and `9.2B` holds
    9.2, too.

    Args:
        sentence: The sentence.
        sources: Texts of its sources.
    """
    held = {fact.casefold() for source in sources for fact in _facts(source)}
    held |= {match[1] for fact in held if (match := _WITH_UNIT.fullmatch(fact))}
    return tuple(dict.fromkeys(fact for fact in _facts(sentence) if fact.casefold() not in held))


def _facts(text: str) -> list[str]:
    """Numbers and codes, in their order."""
    plain = _THOUSANDS.sub("", _plain(text))
    found = [*_CODE.finditer(plain), *_PLAIN_NUMBER.finditer(plain)]
    return [match.group() for match in sorted(found, key=lambda each: each.start())]


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
