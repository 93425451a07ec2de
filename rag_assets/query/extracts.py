"""An answer without a language model: the sentences and rows of the passages found that share most with the question,
quoted as they stand.

Terms of the question are weighed by how few sentences hold them (inverse document frequency over the sentences at
hand). Where a question was found that documents answer and that asks the same, its stored answer comes first.

What stays out: how passages are found.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rag_assets.query.answers import Sentence, SentenceCitation, Source
from rag_assets.query.quotes import stands_in
from rag_assets.query.results import FoundQuestion
from rag_assets.query.rewriting_rules import keywords
from rag_assets.store.terms import query_terms

OPENING = {"ja": "資料の記載:", "en": "From the documents:"}
NEAREST = {
    "ja": "質問の語を含む記載は見当たりません。最も近い記載:",
    "en": "No passage has the words of the question. The nearest:",
}

_MOST = 4  # quotes
_MOST_NEAR = 2  # quotes that are only near to the question
_MOST_CHARS = 700  # of all quotes
_QUOTE_CHARS = 300
_LEAST_SHARE = 0.6  # of the best quote's score, from which a further one is given
_SAME_QUESTION = 0.6  # Dice coefficient of terms from which two questions ask the same
_RANK_DISCOUNT = 0.05  # of a score, for each place of the passage
_HEADING_CHARS = 40
_HEADINGS_CHARS = 120  # of short lines that are put together
_SHARED = 0.2  # share of the question's weighed terms from which a quote is taken for an answer
_SENTENCE_END = re.compile(r"(?<=[。！？])|(?<=[.!?])\s+(?=[A-Z0-9\"“(])")
_ENDED = re.compile(r"[。！？.!?]$")
_WORD = re.compile(r"\w")
_CELL = " | "
_VALUE = re.compile(r"^\W*[\d.,]+\W*$|: ")


@dataclass(frozen=True)
class _Quote:
    """Words of a source that may be quoted, with the header of their table and the terms of both."""

    source: Source
    text: str
    header: str
    terms: frozenset[str]


def extracts(question: str, sources: Sequence[Source]) -> tuple[tuple[Sentence, ...], bool]:
    """What the sources say that is nearest to a question.

    Args:
        question: As asked.
        sources: Passages.

    Returns:
        Quotes, the best first, and whether they may answer: not where they hardly share a term with the question, as
        all that is known then is that they are near to it.
    """
    asked = _terms(keywords(question))
    quotes = [quote for source in sources for quote in _quotes(source)]
    weights = _weights(asked, quotes)
    scores = {quote: _score(quote, weights) for quote in quotes}
    chosen = _chosen(quotes, scores)
    if not chosen:
        best = min((source.hit.rank for source in sources), default=0)
        chosen = [quote for quote in quotes if quote.source.hit.rank == best]
    answers = _stored_answers(asked, sources)
    sure = bool(answers) or max(scores.values(), default=0.0) >= _SHARED
    most = _MOST if sure else _MOST_NEAR
    return (*answers, *(_sentence(quote) for quote in chosen[: most - len(answers)])), sure


def quote_for(text: str, source: Source) -> str:
    """The sentence or row of a source that shares most with a text; empty where none shares a term.

    Args:
        text: What is to be shown in the source.
        source: The source.
    """
    quotes = _quotes(source)
    weights = _weights(_terms(text), quotes)
    best = max(quotes, key=lambda quote: _score(quote, weights), default=None)
    return best.text if best is not None and _score(best, weights) > 0 else ""


def listed(sentences: Sequence[Sentence], language: str, *, answered: bool) -> str:
    """The text of the answer: what it is, and the quotes with the numbers of their sources, one a line."""
    opening = OPENING if answered else NEAREST
    lines = [f"- {each.text} {''.join(f'[{citation.number}]' for citation in each.citations)}" for each in sentences]
    return "\n".join([opening.get(language, opening["en"]), *lines])


def _chosen(quotes: Sequence[_Quote], scores: Mapping[_Quote, float]) -> list[_Quote]:
    ordered = sorted(quotes, key=lambda quote: -scores[quote])
    least = _LEAST_SHARE * scores[ordered[0]] if ordered else 0.0
    chosen: list[_Quote] = []
    room = _MOST_CHARS
    for quote in ordered:
        if scores[quote] <= 0 or scores[quote] < least or len(chosen) == _MOST:
            break
        if len(quote.text) <= room and not any(quote.terms <= each.terms for each in chosen):
            chosen.append(quote)
            room -= len(quote.text)
    return chosen


def _quotes(source: Source) -> list[_Quote]:
    found: dict[str, _Quote] = {}
    for text, header in _sentences(source.text):
        cut = text[:_QUOTE_CHARS].strip()
        if cut:
            found.setdefault(cut, _Quote(source, cut, header, _terms(f"{cut} {header}")))
    return list(found.values())


def _sentences(text: str) -> Iterator[tuple[str, str]]:
    """Sentences, and rows with the header of their table; short lines together, and a heading with what follows it."""
    short = header = ""
    for line in filter(_WORD.search, map(str.strip, text.splitlines())):
        if len(line) <= _HEADING_CHARS and _CELL not in line and not _ENDED.search(line):
            if len(short) + len(line) > _HEADINGS_CHARS:
                yield short, ""
                short = ""
            header = ""
            short = f"{short} {line}".strip()
            continue
        parts = [line] if _CELL in line else [part.strip() for part in _SENTENCE_END.split(line) if part.strip()]
        if len(short) > _HEADING_CHARS:
            yield short, ""
            short = ""
        yield f"{short} {parts[0]}".strip(), header if header.count(_CELL) == line.count(_CELL) else ""
        for part in parts[1:]:
            yield part, ""
        short = ""
        header = (header or _header(line)) if _CELL in line else ""
    if short:
        yield short, ""


def _header(row: str) -> str:
    """The first row of a table, where it may be its header: no cell of it is a number or a label with a value."""
    return "" if any(_VALUE.search(cell) for cell in row.split(_CELL)) or len(row) > _QUOTE_CHARS else row


def _weights(asked: frozenset[str], quotes: Sequence[_Quote]) -> dict[str, float]:
    """Weight of each term of a question; they sum to 1."""
    held = Counter(term for quote in quotes for term in quote.terms & asked)
    weights = {term: math.log((1 + len(quotes)) / (1 + held[term])) + 1 for term in asked}
    total = sum(weights.values()) or 1.0
    return {term: weight / total for term, weight in sorted(weights.items())}


def _score(quote: _Quote, weights: Mapping[str, float]) -> float:
    share = sum(weight for term, weight in weights.items() if term in quote.terms)
    return round(share * (1 - _RANK_DISCOUNT * min(10, quote.source.hit.rank - 1)), 9)


def _stored_answers(asked: frozenset[str], sources: Sequence[Source]) -> list[Sentence]:
    """Answer of the stored question that asks the same, where there is one."""
    found: list[tuple[float, int, Source, FoundQuestion]] = []
    for source in sources:
        for each in source.hit.questions:
            terms = _terms(keywords(each.question))
            alike = 2 * len(asked & terms) / max(1, len(asked) + len(terms))
            if alike >= _SAME_QUESTION and each.answer.strip():
                found.append((-alike, source.number, source, each))
    if not found:
        return []
    _, _, source, best = min(found, key=lambda each: each[:2])
    answer = " ".join(best.answer.split())
    quote = answer if stands_in(answer, source.hit.text) else quote_for(answer, source)
    citation = SentenceCitation(source.number, quote, stands_in(answer, source.hit.text))
    return [Sentence(f"{best.question} {answer}", (citation,))]


def _sentence(quote: _Quote) -> Sentence:
    text = " ".join(quote.text.split())
    citation = SentenceCitation(quote.source.number, text, stands_in(text, quote.source.hit.text))
    return Sentence(f"{text} ({quote.header})" if quote.header else text, (citation,))


def _terms(text: str) -> frozenset[str]:
    return frozenset(query_terms(text).split())
