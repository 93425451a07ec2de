"""An answer without a language model: the sentences and rows of the passages found that share most with the question,
quoted as they stand.

Terms of the question are weighed by how few sentences hold them (inverse document frequency over the sentences at
hand). Quotes are taken for an answer where one passage, with its title and place, holds at least half of the question's
content words, by the same weights: a rare word that no passage holds counts most. Where a question was found that
documents answer and that asks the same, its stored answer comes first.

A quote that is too long is cut between cells, clauses or words, and its text goes on with `…`.

What stays out: how passages are found.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rag_assets.query.ask.answers import Sentence, SentenceCitation, Source
from rag_assets.query.ask.quotes import stands_in
from rag_assets.query.results import FoundQuestion
from rag_assets.query.search.rewriting_rules import keywords
from rag_assets.text.content_words import content_terms, content_words, held_share
from rag_assets.text.plain import one_line
from rag_assets.text.scripts import HIRAGANA, SPACELESS
from rag_assets.text.terms import query_terms

OPENING = {"ja": "資料の記載:", "en": "From the documents:"}
NEAREST = {
    "ja": "質問に答える記載は見当たりません。最も近い記載:",
    "en": "No passage seems to answer the question. The nearest:",
}

_MOST = 4  # quotes
_MOST_NEAR = 2  # quotes that are only near to the question
_MOST_CHARS = 700  # of all quotes
_QUOTE_CHARS = 300
_LONGEST_QUOTE_CHARS = 1000  # of text without any end
_LEAST_WORDS = 2  # content words of a quote
_PART_WORDS = 3  # content words of a sentence; a shorter one goes with the next, as "U.S." or "Table 6." does
_LEAST_HEADER_CELLS = 3  # the first row of a table of two columns is as often a label with its value
_LEAST_SHARE = 0.6  # of the best quote's score, from which a further one is given
_SAME_QUESTION = 0.6  # Dice coefficient of terms from which two questions ask the same
_RANK_DISCOUNT = 0.05  # of a score, for each place of the passage
_HEADING_CHARS = 40
_HEADINGS_CHARS = 120  # of short lines that are put together
_SHARED = 0.5  # share of the question's weighed content words from which a passage is taken to answer
_STEM_WEIGHT = 0.5  # of a single ideograph, mostly the stem of a verb
_SENTENCE_END = re.compile(r"(?<=[。！？])|(?<=[.!?])\s+(?=[A-Z0-9\"“(])")
_ENDED = re.compile(r"[。！？.!?]$")
_WORD = re.compile(r"\w")
_ENDS = (
    re.compile(r"(?= \| )|(?<=[。！？；])"),
    re.compile(r"(?<=[、，)）」』])|(?=\s)"),
    re.compile(f"(?<=[{HIRAGANA}])(?![{HIRAGANA}])"),
    re.compile(f"(?<=[{SPACELESS}])"),
)  # where a long quote may end, the best first; none is within a number or an identifier
_CELL = " | "
_VALUE = re.compile(r"^\W*\d[\d.,:/-]*\W*$|: |[☐☑]")


@dataclass(frozen=True)
class _Quote:
    """Words of a source that may be quoted, with their table's header, the terms of both, and whether they go on."""

    source: Source
    text: str
    header: str
    goes_on: bool
    terms: frozenset[str]


def extracts(question: str, sources: Sequence[Source]) -> tuple[tuple[Sentence, ...], bool]:
    """What the sources say that is nearest to a question.

    Args:
        question: As asked.
        sources: Passages.

    Returns:
        Quotes, the best first, and whether they may answer: not where the words that matter in the question stand in no
        passage, as all that is known then is that the quotes are near to it.
    """
    asked = _terms(keywords(question))
    quotes = [quote for source in sources for quote in _quotes(source)]
    weights = _weights(asked, quotes)
    scores = {quote: _score(quote, weights) for quote in quotes}
    chosen = _chosen(quotes, scores)
    if not chosen:
        best = min((source.rank for source in sources), default=0)
        chosen = [quote for quote in quotes if quote.source.rank == best]
    answers = _stored_answers(asked, sources)
    sure = bool(answers) or _covered(question, sources, quotes) >= _SHARED
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
    for text, header in _sentences(source.whole_text):
        whole = one_line(text)
        cut = _cut(whole)
        if len(cut) <= _LONGEST_QUOTE_CHARS and len(content_words(cut)) >= _LEAST_WORDS:
            found.setdefault(cut, _Quote(source, cut, header, cut != whole, _terms(f"{cut} {header}")))
    return list(found.values())


def _cut(text: str) -> str:
    """The beginning of a long text, to the last place where it may end; to the first one where that is far off."""
    if len(text) <= _QUOTE_CHARS:
        return text
    for pattern in _ENDS:
        ends = [match.start() for match in pattern.finditer(text, _QUOTE_CHARS // 2, _QUOTE_CHARS + 1)]
        if near := [end for end in ends if end <= _QUOTE_CHARS]:
            return text[: near[-1]].rstrip()
    ends = [match.start() for pattern in _ENDS if (match := pattern.search(text, _QUOTE_CHARS))]
    return text[: min(ends, default=len(text))].rstrip()


def _covered(question: str, sources: Sequence[Source], quotes: Sequence[_Quote]) -> float:
    """Share of a question's weighed content words in the passage that holds most of them."""
    words = list(dict.fromkeys(content_words(keywords(question))))
    held = Counter(term for quote in quotes for term in content_terms(quote.text))
    shares = {}
    for word in words:
        rarity = sum(math.log((1 + len(quotes)) / (1 + held[term])) + 1 for term in word) / len(word)
        shares[word] = rarity * (_STEM_WEIGHT if len(word[0]) == 1 else 1)
    total = sum(shares.values()) or 1.0
    texts = [content_terms(f"{each.title}\n{each.citation}\n{each.whole_text}") for each in sources]
    return max((sum(shares[word] * held_share([word], terms) for word in words) / total for terms in texts), default=0)


def _sentences(text: str) -> Iterator[tuple[str, str]]:
    """Sentences, and rows with the header of their table; short lines together, and a heading with what follows it."""
    short = header = ""
    widest = 0  # cells of the rows of this table so far: its first row may be a header, or a wider one below
    for line in filter(_WORD.search, map(str.strip, text.splitlines())):
        if len(line) <= _HEADING_CHARS and _CELL not in line and (_is_part(line) or not _ENDED.search(line)):
            if len(short) + len(line) > _HEADINGS_CHARS:
                yield short, ""
                short = ""
            header, widest = "", 0
            short = f"{short} {line}".strip()
            continue
        parts = [line] if _CELL in line else _parts(line)
        if len(short) > _HEADING_CHARS:
            yield short, ""
            short = ""
        yield f"{short} {parts[0]}".strip(), header if _heads(header, line) else ""
        for part in parts[1:]:
            yield part, ""
        short = ""
        cells = line.count(_CELL)
        if not cells or cells > widest:
            header, widest = _header(line), cells
    if short:
        yield short, ""


def _parts(line: str) -> list[str]:
    """The sentences of a line; very short ones together with the next."""
    parts: list[str] = []
    for part in filter(None, map(str.strip, _SENTENCE_END.split(line))):
        if parts and _is_part(parts[-1]):
            parts[-1] = f"{parts[-1]} {part}"
        else:
            parts.append(part)
    return parts


def _is_part(text: str) -> bool:
    """Whether a text is too short to say something by itself."""
    return len(content_words(text)) < _PART_WORDS


def _header(row: str) -> str:
    """The first row of a table, where it may be its header: no cell is a figure, a date, or a label with its value."""
    cells = row.split(_CELL)
    if len(cells) < _LEAST_HEADER_CELLS or len(row) > _QUOTE_CHARS or any(_VALUE.search(cell) for cell in cells):
        return ""
    return row


def _heads(header: str, row: str) -> bool:
    """Whether a row has the columns of a header; one that repeats a cell is one more line of labels and values."""
    above, below = header.split(_CELL), row.split(_CELL)
    repeated = any(upper.strip() == lower.strip() != "" for upper, lower in zip(above, below, strict=False))
    return len(above) == len(below) and not repeated


def _weights(asked: frozenset[str], quotes: Sequence[_Quote]) -> dict[str, float]:
    """Weight of each term of a question; they sum to 1."""
    held = Counter(term for quote in quotes for term in quote.terms & asked)
    weights = {term: math.log((1 + len(quotes)) / (1 + held[term])) + 1 for term in asked}
    total = sum(weights.values()) or 1.0
    return {term: weight / total for term, weight in sorted(weights.items())}


def _score(quote: _Quote, weights: Mapping[str, float]) -> float:
    share = sum(weight for term, weight in weights.items() if term in quote.terms)
    return round(share * (1 - _RANK_DISCOUNT * min(10, quote.source.rank - 1)), 9)


def _stored_answers(asked: frozenset[str], sources: Sequence[Source]) -> list[Sentence]:
    """Answer of the stored question that asks the same, where there is one."""
    found: list[tuple[float, int, Source, FoundQuestion]] = []
    for source in sources:
        for each in source.questions:
            terms = _terms(keywords(each.question))
            alike = 2 * len(asked & terms) / max(1, len(asked) + len(terms))
            if alike >= _SAME_QUESTION and each.answer.strip():
                found.append((-alike, source.number, source, each))
    if not found:
        return []
    _, _, source, best = min(found, key=lambda each: each[:2])
    answer = one_line(best.answer)
    quote = answer if stands_in(answer, source.whole_text) else quote_for(answer, source)
    citation = SentenceCitation(source.number, quote, stands_in(answer, source.whole_text))
    return [Sentence(f"{best.question} {answer}", (citation,))]


def _sentence(quote: _Quote) -> Sentence:
    citation = SentenceCitation(quote.source.number, quote.text, stands_in(quote.text, quote.source.whole_text))
    text = f"{quote.text}…" if quote.goes_on else quote.text
    return Sentence(f"{text} ({quote.header})" if quote.header else text, (citation,))


def _terms(text: str) -> frozenset[str]:
    return frozenset(query_terms(text).split())
