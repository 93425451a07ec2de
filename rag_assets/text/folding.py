"""How names are folded for comparison, on both sides: as documents write them, and as a query does.

What stays out: what can be a name (`rag_assets.graph.names`), and the terms of full-text search
(`rag_assets.text.terms`).
"""

import re
import unicodedata
from functools import lru_cache

from rag_assets.text.plain import one_line
from rag_assets.text.scripts import KANA, KATAKANA, NAME_HAN

_DASHES = re.compile("[\u2010-\u2015\u2212\u207b\ufe63\uff0d]")
_WIDE_BLANK = re.compile(f"(?<=[{KANA}{NAME_HAN}]) +| +(?=[{KANA}{NAME_HAN}])")
_LETTER_HYPHEN = re.compile(r"(?<=[^\W\d_])-(?=[^\W\d_])")
_LAST_LONG_VOWEL = re.compile(f"(?<=[{KATAKANA}]{{3}})ー(?![{KATAKANA}])")
_QUOTES = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "･": "・"})
_EDGES = " \t\u3000、。,.;:・･!?！？「」『』【】〔〕《》〈〉\"'“”‘’*※◆■□●○◎▼▽△▲→←⇒|/"
_OPENED = {"(": ")", "（": "）", "[": "]", "［": "］", "<": ">", "＜": "＞", "{": "}"}


@lru_cache(maxsize=1 << 17)
def fold_name(name: str) -> str:
    """A name as names are compared: NFKC, lower case, blanks and hyphens made one, a last long-vowel mark left out.

    Blanks beside Japanese characters go, others are one each. A hyphen between letters is a blank (`e-mail`); one
    beside a digit stays, because it may be part of a code. The long-vowel mark goes at the end of a katakana word of
    four characters or more (サーバー), where usage varies; shorter words differ by it.

    Returns:
        The folded name; empty where nothing but punctuation is left. Folding twice changes nothing.
    """
    text = _DASHES.sub("-", unicodedata.normalize("NFKC", name).translate(_QUOTES)).casefold()
    text = one_line(unicodedata.normalize("NFKC", text))
    text = _WIDE_BLANK.sub("", _LETTER_HYPHEN.sub(" ", _stripped(text)))
    return _LAST_LONG_VOWEL.sub("", text)


def clean_name(name: str) -> str:
    """A name as it is shown: one line, without the brackets, bullets and punctuation around it."""
    text = one_line(name)
    return _WIDE_BLANK.sub("", _stripped(text))


def _stripped(text: str) -> str:
    before = None
    while before != text:
        before = text
        text = text.strip(_EDGES)
        if len(text) > 1 and _OPENED.get(text[0]) == text[-1] and text[0] in "(（":
            text = text[1:-1]
        for opening, closing in _OPENED.items():
            if text.endswith(closing) and opening not in text:
                text = text[:-1]
            if text.startswith(opening) and closing not in text:
                text = text[1:]
    return text
