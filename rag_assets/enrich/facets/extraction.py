"""Which values of a taxonomy a document has, without a language model: by embeddings and by words.

For a document `d` and a value `v` of a facet with values `V`:

- `c(v)` is the cosine of the vectors of `d` (title, summary, headings, beginning) and of the value's label and
  description, less the mean cosine of `v` with the values of all facets. Embedders may give any two texts a
  high cosine, and some descriptions are near everything: what counts is how much nearer than usual.
- `s(v) = c(v) - mean of c over V`.
- `w(v)`: of each word of the value (label and terms) that the document holds, the weight of the best place that it
  stands in (`_PLACE_WEIGHTS`), together `1 - product of (1 - weight)`. The name of a system (顧客管理システム) tells
  what it is for, not what the document is: a word that stands in such names alone weighs as in the body. A word that
  stands in the body alone, and in one line of many, is none.
- `logit(v) = s(v) / _TEMPERATURE + _WORD_WEIGHT * w(v)`; "none of them" has the logit `_NONE_LOGIT`.
- The confidence is the softmax over `V` and "none of them". Values from `_THRESHOLDS` on are kept, by the best place
  of their words; the best of a required facet with a word in title or heading is kept from that of titles on. A value
  that no line of the document speaks for is left out: such a line holds a word of it, or several of its description.

Constants were set by eye on office documents. A row depends on its document, the taxonomy and the embedder alone.
"""

import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from rag_assets.contracts.causes import BlockKind
from rag_assets.contracts.content import Page
from rag_assets.contracts.ports import Embedder, EmbeddingKind
from rag_assets.enrich.facets.taxonomy import Facet, Taxonomy, Value
from rag_assets.enrich.questions.texts import sentences
from rag_assets.text.plain import one_line
from rag_assets.text.scripts import KANJI, KATAKANA

METHOD = "extractive"

_TEMPERATURE = 0.024
_WORD_WEIGHT = 4.0
_NONE_LOGIT = 1.5
_THRESHOLDS = {"title": 0.2, "heading": 0.25, "body": 0.35}  # of what the body alone says, a third was wrong below .35
_PLACE_WEIGHTS = {"title": 0.9, "heading": 0.5, "body": 0.2}
_BODY_CHARS = 6000
_VECTOR_CHARS = 400  # of headings, and of the beginning of the text
_LINES = 400
_EVIDENCE_CHARS = 120
_FEW_LINES = 20  # in which a word counts that stands there once
_TOLD = 2  # lines of a longer text that must hold it
_QUOTED_WORDS = 2  # of a description that a line shares to speak for the value

_WORD = re.compile(rf"[a-z]{{4,}}|[{KATAKANA}{KANJI}]{{2,}}")
_SYSTEM_NAME = re.compile(rf"[{KATAKANA}{KANJI}]+?(?<!サブ)(?=システム)|(?:[a-z]+ ){{1,2}}(?=systems?\b)")


@dataclass(frozen=True)
class Profile:
    """What a document is classified by."""

    title: str
    summary: str  # its summary; may be empty
    headings: tuple[str, ...]  # its headings and the names of its pages
    lines: tuple[str, ...]  # sentences and table rows of its beginning
    language: str


@dataclass(frozen=True)
class Assignment:
    """A value that a document has."""

    facet: str
    value: str
    confidence: float  # how sure, from 0 to 1
    evidence: str  # words of the document that speak for it, or an empty text


def profile(title: str, summary: str, pages: Sequence[Page], language: str) -> Profile:
    """What a document is classified by."""
    headings: list[str] = []
    lines: list[str] = []
    for page in (page for page in pages if page.role is None):
        headings.append(page.name or "")
        for block in page.blocks:
            match block.kind:
                case BlockKind.HEADER:
                    continue
                case BlockKind.HEADING:
                    headings.append(block.text)
                case BlockKind.TABLE if block.rows:
                    lines += [" ".join(dict.fromkeys(filter(None, row.cells))) for row in block.rows[:_LINES]]
                case _:
                    lines += sentences(block.text)
            if len(lines) > _LINES:
                break
    if not any(map(str.strip, lines)):  # nothing but cover sheets and the like
        lines = [line for page in pages for block in page.blocks for line in block.text.splitlines()]
    return Profile(title, summary, _distinct(headings), _distinct(lines)[:_LINES], language)


class Classifier:
    """Classifies documents by a taxonomy; its values are embedded once."""

    def __init__(self, taxonomy: Taxonomy, embedder: Embedder) -> None:
        self._taxonomy, self._embedder = taxonomy, embedder
        self._values: dict[str, NDArray[np.float64]] = {}

    def classify(self, documents: Sequence[Profile]) -> list[list[Assignment]]:
        """The values that documents have.

        Returns:
            For each document its values: facets in the order of the taxonomy, values by falling confidence.

        Raises:
            ModelError: The embedder failed.
        """
        vectors = self._embed([_text(document) for document in documents])
        return [self._assignments(document, vector) for document, vector in zip(documents, vectors, strict=True)]

    def _assignments(self, document: Profile, vector: NDArray[np.float64]) -> list[Assignment]:
        values = self._value_vectors("ja" if document.language == "ja" else "en")
        bias = (values @ values.T - np.eye(len(values))).sum(axis=1) / max(1, len(values) - 1)
        nearness = values @ vector - bias
        places = _Places(document)
        assignments: list[Assignment] = []
        start = 0
        for facet in self._taxonomy.facets:
            scores = nearness[start : start + len(facet.values)]
            start += len(facet.values)
            assignments += _facet_assignments(facet, document.language, scores - scores.mean(), places)
        return assignments

    def _value_vectors(self, language: str) -> NDArray[np.float64]:
        if language not in self._values:
            values = [value for facet in self._taxonomy.facets for value in facet.values]
            self._values[language] = self._embed([f"{v.label(language)}: {v.description(language)}" for v in values])
        return self._values[language]

    def _embed(self, texts: Sequence[str]) -> NDArray[np.float64]:
        return self._embedder.embed(texts, EmbeddingKind.PASSAGE).astype(np.float64)


def confidences(nearness: Sequence[float], words: Sequence[float]) -> list[float]:
    """How sure it is that a document has each value of a facet.

    Args:
        nearness: `s(v)` of each value, see the top of the module.
        words: `w(v)` of each value.

    Returns:
        Softmax over the values and "none of them", which is left out: the sum is below 1.
    """
    logits = [s / _TEMPERATURE + _WORD_WEIGHT * w for s, w in zip(nearness, words, strict=True)]
    top = max([_NONE_LOGIT, *logits])
    weights = [math.exp(logit - top) for logit in logits]
    total = sum(weights) + math.exp(_NONE_LOGIT - top)
    return [weight / total for weight in weights]


def _facet_assignments(
    facet: Facet, language: str, nearness: NDArray[np.float64], places: "_Places"
) -> Iterable[Assignment]:
    matches = [places.matches(value) for value in facet.values]
    words = [1 - math.prod(1 - weight for weight, _ in match.values()) for match in matches]
    sure = confidences(nearness.tolist(), words)
    evidence = [
        places.evidence(match, f"{value.label(language)} {value.description(language)}")
        for match, value in zip(matches, facet.values, strict=True)
    ]
    order = sorted((i for i in range(len(sure)) if evidence[i]), key=lambda index: (-sure[index], index))
    best = [max((weight for weight, _ in match.values()), default=0.0) for match in matches]
    least = [
        next((_THRESHOLDS[place] for place, own in _PLACE_WEIGHTS.items() if weight >= own), _THRESHOLDS["body"])
        for weight in best
    ]
    indexes = [i for i in order if sure[i] >= least[i]][: facet.most_values]
    if facet.required and not indexes:
        candidates = (i for i in order[:1] if best[i] >= _PLACE_WEIGHTS["heading"])
        indexes = [i for i in candidates if sure[i] >= _THRESHOLDS["title"]]
    for index in indexes:
        yield Assignment(facet.name, facet.values[index].name, round(sure[index], 4), evidence[index])


class _Places:
    """The places of a document in which words of values may stand."""

    def __init__(self, document: Profile) -> None:
        title = folded(document.title)
        self._title = document.title
        self._named = _SYSTEM_NAME.sub("", title)
        self._headings = [(line, folded(line)) for line in document.headings]
        self._outline = [(line, _SYSTEM_NAME.sub("", text)) for line, text in self._headings]
        self._lines: list[tuple[str, str]] = []
        room = _BODY_CHARS
        for line in document.lines:
            self._lines.append((line, folded(line)))
            room -= len(line)
            if room <= 0:
                break
        self._told = _TOLD if len(self._lines) > _FEW_LINES else 1
        self._lines += [*self._headings, (document.title, title)]
        self._text = "\n".join([title, *(text for _, text in (*self._headings, *self._lines))])

    def matches(self, value: Value) -> dict[str, tuple[float, str]]:
        """Words of a value that the document holds: weight of the best place, and the line there."""
        hits: dict[str, tuple[float, str]] = {}
        words = {folded(label) for _, label in value.labels} | {folded(term) for term in value.terms}
        for word in sorted(word for word in words if word and word in self._text):
            stands_in = _finder(word)
            line = next((line for line, text in self._outline if stands_in(text)), None)
            if stands_in(self._named):
                hits[word] = _PLACE_WEIGHTS["title"], line or self._title
            elif line is not None:
                hits[word] = _PLACE_WEIGHTS["heading"], line
            elif len(lines := [line for line, text in self._lines if stands_in(text)]) >= self._told:
                hits[word] = _PLACE_WEIGHTS["body"], lines[0]
        # a word within another that also stands there says nothing new: 設計書 in 画面設計書
        return {
            word: hit for word, hit in hits.items() if not any(word != longer and word in longer for longer in hits)
        }

    def evidence(self, match: dict[str, tuple[float, str]], description: str) -> str:
        """The line of the document that speaks most for a value: one that holds a word of it, else the one that shares
        most words with its description; empty where none shares several.
        """
        if match:
            return _cut(max(match.values(), key=lambda hit: hit[0])[1])
        description_words = set(_WORD.findall(folded(description)))
        counts = [(len(description_words.intersection(_WORD.findall(text))), line) for line, text in self._lines]
        count, best = max(counts, key=lambda pair: pair[0])
        return _cut(best) if count >= _QUOTED_WORDS else ""


def folded(text: str) -> str:
    """A text as it is compared: NFKC, lower case, runs of white space as one blank."""
    return one_line(unicodedata.normalize("NFKC", text).lower())


@lru_cache(maxsize=4096)
def _finder(word: str) -> Callable[[str], object]:
    """Finds a word: one in ASCII as a whole word, in its plural, too, any other anywhere."""
    pattern = re.escape(word)
    return re.compile(rf"(?<![a-z0-9]){pattern}s?(?![a-z0-9])" if word.isascii() else pattern).search


def _text(document: Profile) -> str:
    """What of a document is embedded."""
    headings = _fit(document.headings, _VECTOR_CHARS, "、" if document.language == "ja" else "; ")
    beginning = "" if document.summary else _fit(document.lines, _VECTOR_CHARS, "\n")
    return "\n".join(part for part in (document.title, document.summary, headings, beginning) if part)


def _fit(parts: Iterable[str], chars: int, separator: str) -> str:
    text = ""
    for part in parts:
        longer = f"{text}{separator}{part}" if text else part
        if len(longer) > chars:
            break
        text = longer
    return text


def _cut(line: str) -> str:
    return line if len(line) <= _EVIDENCE_CHARS else line[:_EVIDENCE_CHARS].rstrip()


def _distinct(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(line for line in (one_line(text) for text in texts) if line))
