"""An answer without a language model: what the passages found state that answers the question, as it stands there.

Each statement of the passages is weighed by the terms of the question that it holds or stands under (headings, header,
title, place), identifiers and rare terms most; what it says itself counts beyond what its document is named. The best
are compared with the question by meaning, too, where there is an embedder. Of a question for one thing the best one is
said, with others that are nearly as good; of one for several, or for a list, more. A row is said with its header, of a
wide one the cells that the question names.

A statement is taken for an answer where it comes near enough, and the identifiers of the question stand in it or above
it. Where a question was found that documents answer and that asks the same, its stored answer comes first.

What stays out: how passages are found, and what a passage states (`rag_assets.query.ask.statements`).
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass

from rag_assets.query.ask.answers import Sentence, SentenceCitation, Source
from rag_assets.query.ask.quotes import stands_in
from rag_assets.query.ask.statements import STATEMENT_CHARS, Kind, Statement, cut, statements
from rag_assets.query.results import FoundQuestion
from rag_assets.query.search.rewriting_rules import keywords
from rag_assets.text.content_words import content_terms, content_words, held_share
from rag_assets.text.plain import one_line
from rag_assets.text.terms import TermKind, kind_of, query_terms

OPENING = {"ja": "資料の記載:", "en": "From the documents:"}
NEAREST = {
    "ja": "質問に答える記載は見当たりません。最も近い記載:",
    "en": "No passage seems to answer the question. The nearest:",
}

Similarity = Callable[[Sequence[str]], Sequence[float]]
"""How near texts are to the question by meaning: the cosine of each."""

_MOST = 4  # statements
_MOST_NEAR = 2  # of those that are only near to the question
_CHARS = 200  # of all that is said to a question for one thing
_MANY_CHARS = 560  # for several
_LIST_CHARS = 450
_ROW_CHARS = 240
_NEARLY = 0.7  # of the best score, from which another statement is said, too
_SAME = 0.9  # share of its terms that another one holds, from which a statement says nothing new
_COMPARED = 12  # statements that are compared by meaning
_MEANING = 0.5  # weight of a nearness by meaning that is `_NEARNESS` above that of the farthest compared
_NEARNESS = 0.12  # of cosines
_OWN = 0.5  # weight of terms that the title and place do not hold already, beyond that of all
_LISTED = 0.4  # weight of a term that stands in a list, and not in its beginning
_LEAD_CHARS = 40
_NEIGHBOUR = 0.25  # of the score of the statement beside it
_OFF = 0.7  # of a score, for a list where none is asked for, and what only repeats the question
_NO_FIGURE = 0.8  # for a statement without a figure where one is asked for
_RANK_DISCOUNT = 0.03  # of a score, for each place of the passage
_WEIGHTS = {TermKind.IDENTIFIER: 3.0, TermKind.WORD: 1.0, TermKind.PAIR: 0.5, TermKind.CHARACTER: 0.2}
_LIST_ASKED = 1.15  # of the score of a list where several things are asked for
_LEAST_NEW = 2  # terms beside those of the question that a statement holds
_COMMON = 0.5  # weight that a term has in all statements, beside its rarity
_HEADER = 1.5  # weight of a header beside its value, where cells of a wide row are chosen
_STEM_WEIGHT = 0.5  # of a single ideograph, mostly the stem of a verb
_SAME_QUESTION = 0.6  # Dice coefficient of terms from which two questions ask the same
_SURE = 0.72  # from which a statement is taken for an answer, see `_answers`
_LACKING = 0.5  # taken off where an identifier of the question stands nowhere in the passage
_FIGURE_ASKED = re.compile(
    "いくつ|いくら|何[件桁行個人回円%％日年月時分秒文字台]|桁数|どのくらい|どれくらい"
    "|how (?:many|much|long|old|far|often)",
    re.IGNORECASE,
)
_SEVERAL_ASKED = re.compile(
    r"どれとどれ|一覧|全部|すべて|全て|それぞれ|列挙|挙げて|どんな.{0,12}(?:あります|含まれ)|どの.{0,8}(?:ですか|対応)"
    r"|\b(?:which|what) \w+s\b|\blist\b|\ball\b|\bboth\b|\bcompare",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"\w*\d\w*")
_CELL = " | "
_NOTHING = re.compile(r"[-－‐ー―—\s]*")


@dataclass(frozen=True)
class _Candidate:
    """A statement of a source, with its terms, those it stands under, and those of title and place."""

    source: Source
    statement: Statement
    own: frozenset[str]
    above: frozenset[str]
    named: frozenset[str]


@dataclass(frozen=True)
class _Asked:
    """A question, with the weights of its terms, which sum to 1."""

    text: str
    weights: Mapping[str, float]
    several: bool
    figure: bool
    numbered: frozenset[str]

    def share(self, terms: Set[str]) -> float:
        """Share of the terms, by weight, that are among others."""
        return sum(weight for term, weight in self.weights.items() if term in terms)

    def repeats(self, candidate: "_Candidate") -> bool:
        """Whether a statement says hardly anything but what was asked."""
        return len(candidate.own - self.weights.keys()) < _LEAST_NEW

    def lacks_figure(self, text: str) -> bool:
        """Whether a figure is asked for, and a text has none beside those of the question."""
        return self.figure and not any(word not in self.numbered for word in _NUMBERED.findall(text))


def extracts(
    question: str, sources: Sequence[Source], similarity: Similarity | None = None
) -> tuple[tuple[Sentence, ...], bool]:
    """What the sources state that answers a question.

    Args:
        question: As asked.
        sources: Passages.
        similarity: How near texts are to the question by meaning; None where that is not known.

    Returns:
        Statements, the best first, and whether they may answer: not where they are only near to the question.
    """
    candidates = [each for source in sources for each in _candidates(source)]
    asked = _asked(question, candidates)
    ranked = _ranked(asked, candidates, similarity)
    answers = _stored_answers(frozenset(asked.weights), sources)
    sure = bool(answers) or (bool(ranked) and _answers(asked, ranked[0], sources, candidates))
    most = (_MOST if sure else _MOST_NEAR) - len(answers)
    said = _said(asked, ranked) or [each for each in candidates if each.source.rank == candidates[0].source.rank]
    return (*answers, *(_sentence(each, asked) for each in said[:most])), sure


def quote_for(text: str, source: Source) -> str:
    """The statement of a source that shares most with a text; empty where none shares a term.

    Args:
        text: What is to be shown in the source.
        source: The source.
    """
    candidates = _candidates(source)
    asked = _asked(text, candidates)
    best = max(candidates, key=lambda each: asked.share(each.own), default=None)
    return cut(best.statement.text) if best is not None and asked.share(best.own) > 0 else ""


def listed(sentences: Sequence[Sentence], language: str, *, answered: bool) -> str:
    """The text of the answer: what it is, and the quotes with the numbers of their sources, one a line."""
    opening = OPENING if answered else NEAREST
    lines = [f"- {each.text} {''.join(f'[{citation.number}]' for citation in each.citations)}" for each in sentences]
    return "\n".join([opening.get(language, opening["en"]), *lines])


def _candidates(source: Source) -> list[_Candidate]:
    named = _terms(f"{source.title} {source.citation}")
    return [
        _Candidate(source, each, _terms(each.text), _terms(each.context), named)
        for each in statements(source.whole_text)
    ]


def _asked(question: str, candidates: Sequence[_Candidate]) -> _Asked:
    terms = _terms(keywords(question))
    held = Counter(term for each in candidates for term in (each.own | each.above) & terms)
    weights = {
        term: _WEIGHTS[kind_of(term)] * (math.log((1 + len(candidates)) / (1 + held[term])) + _COMMON)
        for term in sorted(terms)
    }
    total = sum(weights.values()) or 1.0
    return _Asked(
        question,
        {term: weight / total for term, weight in weights.items()},
        bool(_SEVERAL_ASKED.search(question)),
        bool(_FIGURE_ASKED.search(question)),
        frozenset(_NUMBERED.findall(question)),
    )


def _ranked(
    asked: _Asked, candidates: Sequence[_Candidate], similarity: Similarity | None
) -> list[tuple[float, _Candidate]]:
    """The candidates that share with the question, best first, with their scores; first by words, then by meaning."""
    by_words = [_words_score(asked, each) for each in candidates]
    scored = [
        (_beside(asked, candidates, by_words, place), each)
        for place, each in enumerate(candidates)
        if each.statement.kind is not Kind.HEADING and asked.share(each.own | each.above) > 0
    ]
    best = sorted(scored, key=lambda pair: -pair[0])[:_COMPARED]
    if similarity is None or len(best) < 2:
        return best
    nearness = similarity([_compared(each.statement) for _, each in best])
    least = min(nearness)
    rescored = [
        (score + _MEANING * (near - least) / _NEARNESS, each)
        for (score, each), near in zip(best, nearness, strict=True)
    ]
    return sorted(rescored, key=lambda pair: -pair[0])


def _words_score(asked: _Asked, candidate: _Candidate) -> float:
    """By the terms of the question that a candidate holds or stands under."""
    own, statement = candidate.own, candidate.statement
    listed_only = frozenset[str]()
    if statement.kind is Kind.LIST:
        listed_only = own - (own := _terms(statement.text[:_LEAD_CHARS]))
    share = asked.share(own | candidate.above | candidate.named)
    share += _LISTED * asked.share(listed_only - candidate.above - candidate.named)
    share += _OWN * asked.share(candidate.own - candidate.named)
    return share * (1 - _RANK_DISCOUNT * min(10, candidate.source.rank - 1))


def _beside(asked: _Asked, candidates: Sequence[_Candidate], by_words: Sequence[float], place: int) -> float:
    """The score of a candidate by words, with that of its neighbours, as far as it can answer at all."""
    candidate, score = candidates[place], by_words[place]
    if candidate.statement.kind is not Kind.ROW:
        near = [
            by_words[other]
            for other in (place - 1, place + 1)
            if 0 <= other < len(candidates) and candidates[other].source is candidate.source
        ]
        score = max(score, (1 - _NEIGHBOUR) * score + _NEIGHBOUR * max(near, default=0.0))
    if asked.lacks_figure(candidate.statement.text):
        score *= _NO_FIGURE
    if asked.repeats(candidate):
        score *= _OFF
    if candidate.statement.kind is Kind.LIST:
        score *= _LIST_ASKED if asked.several else _OFF
    return score


def _compared(statement: Statement) -> str:
    return cut(f"{statement.context} {statement.text}".strip())


def _said(asked: _Asked, ranked: Sequence[tuple[float, _Candidate]]) -> list[_Candidate]:
    """The best candidate, and others nearly as good, as far as there is room and they say something new."""
    said: list[_Candidate] = []
    room = _MANY_CHARS if asked.several else _CHARS
    for score, each in ranked:
        if score < _NEARLY * ranked[0][0]:
            break
        length = len(_text(each.statement, asked))
        new = not any(
            len(each.own & other.own) >= _SAME * len(each.own)
            or (not asked.several and other.statement.text in each.statement.text)
            for other in said
        )
        if not said or (new and length <= room):
            said.append(each)
            room -= length
    return said


def _answers(
    asked: _Asked, best: tuple[float, _Candidate], sources: Sequence[Source], candidates: Sequence[_Candidate]
) -> bool:
    """Whether the best candidate is taken for an answer."""
    _, found = best
    passage = [each for each in candidates if each.source is found.source]
    held = found.named.union(*(each.own | each.above for each in passage))
    lacks = any(kind_of(term) == TermKind.IDENTIFIER and term not in held for term in asked.weights)
    covered = _covered(asked.text, sources, candidates)
    return covered + _OWN * asked.share(found.own - found.named) - _LACKING * lacks >= _SURE


def _covered(question: str, sources: Sequence[Source], quotes: Sequence[_Candidate]) -> float:
    """Share of a question's weighed content words in the passage that holds most of them."""
    words = list(dict.fromkeys(content_words(keywords(question))))
    held = Counter(term for quote in quotes for term in content_terms(quote.statement.text))
    shares = {}
    for word in words:
        rarity = sum(math.log((1 + len(quotes)) / (1 + held[term])) + 1 for term in word) / len(word)
        shares[word] = rarity * (_STEM_WEIGHT if len(word[0]) == 1 else 1)
    total = sum(shares.values()) or 1.0
    texts = [content_terms(f"{each.title}\n{each.citation}\n{each.whole_text}") for each in sources]
    return max((sum(shares[word] * held_share([word], terms) for word in words) / total for terms in texts), default=0)


def _sentence(candidate: _Candidate, asked: _Asked) -> Sentence:
    quote = cut(candidate.statement.text, _LIST_CHARS if candidate.statement.kind is Kind.LIST else STATEMENT_CHARS)
    citation = SentenceCitation(candidate.source.number, quote, stands_in(quote, candidate.source.whole_text))
    return Sentence(_text(candidate.statement, asked), (citation,))


def _text(statement: Statement, asked: _Asked) -> str:
    """A statement as it is said: a row with its header, and what goes on with `…`."""
    whole = _row(statement, asked) if statement.kind is Kind.ROW else statement.text
    part = cut(whole, _LIST_CHARS if statement.kind is Kind.LIST else STATEMENT_CHARS)
    return part if part == whole else f"{part}…"


def _row(statement: Statement, asked: _Asked) -> str:
    """The cells of a row with their headers; of a wide one those that share most with the question."""
    if not any(header for header, _ in statement.cells):
        return statement.text
    cells = [(header, value) for header, value in statement.cells if not _NOTHING.fullmatch(value)]
    said = [one_line(f"{header.rpartition(' > ')[2]}: {value}" if header else value) for header, value in cells]
    order = sorted(range(len(cells)), key=lambda place: (-_cell_share(asked, *cells[place]), place))
    chosen: set[int] = set()
    room = _ROW_CHARS
    for place in order:
        if not chosen or len(said[place]) <= room:
            chosen.add(place)
            room -= len(said[place]) + len(_CELL)
    return _CELL.join(said[place] for place in sorted(chosen))


def _cell_share(asked: _Asked, header: str, value: str) -> float:
    return _HEADER * asked.share(_terms(header)) + asked.share(_terms(value))


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


def _terms(text: str) -> frozenset[str]:
    return frozenset(query_terms(text).split())
