"""Whether a question asks for several things: a list, all rows of a kind, steps, the values of each of several.

Some words say so (`一覧`, `それぞれ`, "all"). Of other questions a linear model tells by short runs of characters or,
of languages written with spaces, of words: 「主キーは何の組み合わせ」 asks for several, 「主キーは何番目」 does not.
`benchmarks/several_asked.py` says what it learned from, and what it gives on questions that it has not seen.
"""

import re
import unicodedata
import zlib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rag_assets.text.scripts import HAN, HIRAGANA, KATAKANA_AND_MARKS

FEATURES = 1 << 16
WEIGHTS = Path(__file__).with_suffix(".npz")
_RUN_CHARS = 4
_RUN_WORDS = 3
_END_CHARS = 14  # of a question, where its form stands
_MOST_CHARS = 500  # the last ones, which are read
_DIGITS = "二三四五六七八九"
NUMBER = rf"(?:\d{{1,2}}|[{_DIGITS}]?十[一{_DIGITS}]?|[{_DIGITS}])"
COUNTER = "(?:つ|個|点|件|種類?|名|人|社|本|枚|項目|箇所|か所)"
ALL = "とも(?!う|め|な[うっりるれ]|い[うえわ]|言|限)"  # 「三社とも」, neither 「三社ともう一社」 nor 「三人ともめた」
_SEVERAL_ASKED = re.compile(
    r"どれとどれ|何と何|一通り|ひと通り|一覧(?:$|[をに?？。]|[がで](?:ほし|欲し|見|知|教)|は[?？]?$)|全部(?!で(?:お?いくら|いくつ|何(?![がをと])|どのくらい|どれくらい))|すべて|全て|それぞれ|列挙|挙げて|どんな.{0,12}(?:あ(?:り|る)|含まれ)|に(?:は|って)?何が(?:あ(?:り|る)|含まれ)"
    rf"|(?:{NUMBER}{COUNTER}|両[方者]){ALL}"
    r"|\b(?:which|what) (?:(?:two|three|four|five|six|seven|eight|nine|ten|\d+) (?:\w+ ){0,2})?"
    r"(?!is\b|was\b|does\b|has\b|happens\b)\w*[^\Wsiu]s\b"
    r"|\b(?:which|what) (?:(?!is\b|was\b|does\b|has\b|happens\b)\w+ ){0,3}\w*[^\Wsiu]s"
    r" (?:do|does|did|are|were|can|must|may|should|will|have)\b"
    r"|\b(?:a|the|full) list of\b|(?:^|\bplease |\byou |\band )(?:list|name the)\b"
    r"|\ball\b|\bboth\b|\bcompare",
    re.IGNORECASE,
)
_UNSPACED = re.compile(f"[{HAN}{HIRAGANA}{KATAKANA_AND_MARKS}]")
_TOKEN = re.compile(r"[a-z']+|0+|[^\w\s]")


def asks_for_several(question: str) -> bool:
    """Whether a question asks for several things or a list."""
    question = question[-_MOST_CHARS:]
    return _SEVERAL_ASKED.search(question) is not None or _score(question) > 0


def features(question: str) -> NDArray[np.int64]:
    """The places of the weights that count for a question, each once: int64 of shape `(features,)`."""
    text = re.sub(r"\d+", "0", unicodedata.normalize("NFKC", question).lower().strip())
    runs = _character_runs(f"^{text}$") if _UNSPACED.search(text) else _word_runs(["^", *_TOKEN.findall(text), "$"])
    return np.array(sorted({zlib.crc32(run.encode()) % FEATURES for run in runs}), np.int64)


def _character_runs(text: str) -> Iterator[str]:
    for mark, part in (("", text), (">", text[-_END_CHARS:])):
        for length in range(1, _RUN_CHARS + 1):
            yield from (mark + part[at : at + length] for at in range(len(part) - length + 1))


def _word_runs(words: list[str]) -> Iterator[str]:
    """Words one after the other, and each with the last letter of the next two, which may tell a plural."""
    for length in range(1, _RUN_WORDS + 1):
        yield from (" ".join(words[at : at + length]) for at in range(len(words) - length + 1))
    for distance in (1, 2):
        yield from (
            f"{word}{' *' * distance}{later_word[-1]}"
            for word, later_word in zip(words, words[distance:], strict=False)
        )


@lru_cache(maxsize=256)
def _score(question: str) -> float:
    """The log odds that a question asks for several things."""
    weights, scale, bias = _model()
    feature_ids = features(question)
    return float(weights[feature_ids].sum() * scale / np.sqrt(len(feature_ids)) + bias)


@lru_cache(maxsize=1)
def _model() -> tuple[NDArray[np.int8], float, float]:
    with np.load(WEIGHTS) as arrays:
        return arrays["weights"], float(arrays["scale"]), float(arrays["bias"])
