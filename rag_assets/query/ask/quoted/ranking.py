"""How near statements come to answering a question: by the terms that they share with it, and as a model reads them.

What stays out: which of them are said (`rag_assets.query.ask.quoted.extracts`), and how sure the best one is
(`rag_assets.query.ask.quoted.sureness`).
"""

import math
import re
from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import replace
from operator import and_
from pathlib import PurePath

from rag_assets.contracts.ports import AnswerScorer, PlacedStatement
from rag_assets.query.ask.quoted.asked_sections import AskedSections
from rag_assets.query.ask.quoted.candidates import Candidate
from rag_assets.query.ask.quoted.said import ROW_CHARS, text_of, with_cells_unsaid
from rag_assets.query.ask.quoted.statements import Statement, StatementKind
from rag_assets.query.ask.quoted.sureness import READ_SURELY, coverage_of, is_foreign
from rag_assets.query.ask.quoted.wanted import (
    NUMBERED,
    TERM_WEIGHTS,
    AnswerTraits,
    WeightedQuestion,
    codes_named,
    quotes_explained,
    term_kind,
    terms_of,
    without_count,
)
from rag_assets.query.search.composite import Ask
from rag_assets.query.search.rewriting_rules import keywords
from rag_assets.text.language import is_asked_in_japanese
from rag_assets.text.plain import asks

TIED = 0.97  # of the best score, from which another statement may be said beyond that
READ_TOGETHER = 16  # statements that are read together with the question
_WIDE_ROWS_READ = 3  # of the best statements, those of which cells are read that they would be said without
_CELLS_READ = 24  # of all of these at most
_PLACE_CHARS = 80  # of the place of one
_CONTEXT_CHARS = 120  # of what it stands under, the last ones
_LOG_ODDS = 0.1  # weight of how surely one answers, by the model
_COVERED = 1.3  # weight of the question's words that the passage holds
_READ_UNSURELY = 1.0  # log odds below which the best statement gives way to one that is surely read
_READ_BETTER = 0.95  # of its score
_OWN = 1.3  # weight of terms that the title and place do not hold already, beyond that of all
_LISTED = 1.0  # weight of a term that stands in a list, and not in its beginning
_LEAD_CHARS = 40
_EACH = "それぞれ"  # of several that are compared, which asks one thing of each
_OFF = 0.85  # of a score, for a list where none is asked for, and what only repeats the question
_EXPLAINING = 0.6  # of a score, for what is said on how to fill in a form, and for contents, where others are asked for
_CONTENTS_ASKED = re.compile(  # or what a list of sections tells: steps, kinds
    r"どう|どのよう|どんな|手順|流れ|方法|進め|種類|目次|構成|章|内容|一覧|\b(?:how|steps?|process|contents?|cover|include|sections?|kinds?)\b",
    re.IGNORECASE,
)
_OPPOSITE = 0.7  # of a score, for what holds where the condition of the question does not
_NO_VALUE = 0.4  # of a score, for a statement without a number, date or address where one is asked for
_LINKED = 1.0  # added to the score of a connection that starts or ends at what the question names
_LANGUAGE_NAMED = re.compile(r"英[語文名訳]|[和日]文|日本語|和[名訳]|\b(?:japanese|english)\b", re.IGNORECASE)
ALIKE = 0.6  # Jaccard coefficient of the terms of statements that are like each other
_CONTEXT = 1.0  # weight of all terms of the context beside those of the question
_COMMON = 0.5  # weight that a term has in all statements, beside its rarity
_KEYED = 0.2  # added where a whole cell of a row is named in the question
_MOST_DEFINING = 3  # rows, which several passages and documents may have
_DEFINES = 0.3  # added where something is to be explained, and the statement says what it is
_DEFINES_QUOTED = 1.0  # where the question asks for nothing but a sign or word that it quotes, as of a legend
SAME_QUESTION = 0.6  # Dice coefficient of terms from which two questions ask the same
_NEGATED_CONDITION = re.compile(
    r"(?:[のがはしれえけめ]|でき)ない(?:場合|とき|時|者|もの|限り)"
    r"|\b(?:if|where|when)\b[^.;,]{0,40}(?:\bnot\b|n't\b)|\b(?:without|unless)\b",
    re.IGNORECASE,
)
NEGATION = re.compile(r"な[いしくけか]|ず(?:に|とも)|以外|未|\b(?:not?|never|without|unless)\b|n't\b", re.IGNORECASE)


def weighted_question(ask: Ask, candidates: Sequence[Candidate]) -> WeightedQuestion:
    """What is asked, with its terms weighed by their kind, and by how few of the statements hold them."""
    own, question = terms_of(keywords(without_count(ask.text))), ask.text
    terms = own | terms_of(ask.context)
    counts = Counter(term for candidate in candidates for term in (candidate.own | candidate.above) & terms)
    weights = {
        term: TERM_WEIGHTS[term_kind(term)] * (math.log((1 + len(candidates)) / (1 + counts[term])) + _COMMON)
        for term in sorted(terms)
    }
    of_own, of_context = (math.fsum(weights[term] for term in part) for part in (own, terms - own))
    scale = min(1.0, _CONTEXT * of_own / (of_context or 1.0)) if own else 1.0
    weights.update({term: weights[term] * scale for term in terms - own})
    total = sum(weights.values()) or 1.0
    traits = AnswerTraits.of(question.replace(_EACH, "") if ask.name else question, ask.earlier)
    text = f"{question} {ask.context}".strip()
    codes = codes_named(question if NUMBERED.search(question) else text)
    return WeightedQuestion(text, {term: weight / total for term, weight in weights.items()}, traits, codes)


def ranked(
    question: WeightedQuestion,
    candidates: Sequence[Candidate],
    sections: AskedSections,
    scorer: AnswerScorer | None,
) -> list[tuple[float, Candidate]]:
    """The candidates that share with the question, best first, with their scores: by words, and of the first ones by
    how surely they answer, too. None of those elsewhere than the question asks for.
    """
    sources = {candidate.source.number: candidate.source for candidate in candidates}
    coverage = {number: coverage_of(question.text, source) for number, source in sources.items()}
    defines_score = _DEFINES_QUOTED if quotes_explained(question.text) else _DEFINES
    foreign = {number for number, source in sources.items() if is_foreign(question.text, source)}
    scored_candidates = [
        (
            (_words_score(question, candidate, coverage[candidate.source.number]) + defines_score * candidate.defines)
            * (_EXPLAINING if _is_about_the_text(question, candidate, sections) else 1.0),
            candidate,
        )
        for candidate in _with_definitions(question, candidates)
        if candidate.statement.kind is not StatementKind.HEADING
        and not sections.is_elsewhere(*_place(candidate))
        and not _asks_the_same(question, candidate.statement)
        and (question.share(candidate.own | candidate.above) > 0 or candidate.source.number in foreign)
    ]
    best = sorted(scored_candidates, key=lambda pair: -pair[0])[:READ_TOGETHER]
    if scorer is None or not best:
        return best
    log_odds = scorer.score(question.text, [placed_statement(candidate, question) for _, candidate in best]).tolist()
    read_candidates = [
        (score, replace(candidate, log_odds=odds)) for (score, candidate), odds in zip(best, log_odds, strict=True)
    ]
    read_candidates = _with_answering_cells(question, read_candidates, scorer)
    best_log_odds = max(candidate.log_odds for _, candidate in read_candidates)
    rescored_candidates = [
        (score - _LOG_ODDS * (best_log_odds - candidate.log_odds), candidate) for score, candidate in read_candidates
    ]
    ranking = _own_language_first(question.text, sorted(rescored_candidates, key=lambda pair: -pair[0]))
    return _surely_read_first(_named_row_first(question, ranking))


def _with_definitions(question: WeightedQuestion, candidates: Sequence[Candidate]) -> Sequence[Candidate]:
    """Candidates, with which of them say what is to be explained; no rows where several have it in their first cell,
    as one of many values.
    """
    if not question.wanted.defined:
        return candidates
    defining = [question.wanted.defines(candidate.statement) for candidate in candidates]
    headed = [any(header for header, _ in candidate.statement.cells) for candidate in candidates]
    are_values = sum(map(and_, defining, headed)) > _MOST_DEFINING
    return [
        replace(candidate, defines=defines and not (is_headed and are_values))
        for candidate, defines, is_headed in zip(candidates, defining, headed, strict=True)
    ]


def _is_about_the_text(question: WeightedQuestion, candidate: Candidate, sections: AskedSections) -> bool:
    """Whether a candidate tells how a form is filled in, or what a page has sections of, and neither is asked for."""
    if sections.is_on_filling_in(*_place(candidate)):
        return True
    is_list = candidate.statement.kind is StatementKind.LIST and not question.wanted.several
    return is_list and not _CONTENTS_ASKED.search(question.text) and sections.is_of_contents(*_place(candidate))


def _with_answering_cells(
    question: WeightedQuestion, ranking: Sequence[tuple[float, Candidate]], scorer: AnswerScorer
) -> list[tuple[float, Candidate]]:
    """A ranking whose first wide rows are said with the cell, of those that would be left out, with which they answer
    most surely, where that is more surely than without it; of very wide ones not all such cells are read.
    """
    by_score = sorted(
        range(len(ranking)), key=lambda place: -_LOG_ODDS * ranking[place][1].log_odds - ranking[place][0]
    )
    forms = {place: with_cells_unsaid(ranking[place][1].statement, question) for place in by_score[:_WIDE_ROWS_READ]}
    most = _CELLS_READ // max(1, sum(map(bool, forms.values())))
    wide_rows = [(place, row) for place, rows in forms.items() for row in rows[:most]]
    placed = [placed_statement(replace(ranking[place][1], statement=row), question) for place, row in wide_rows]
    read_candidates = list(ranking)
    for (place, row), odds in zip(wide_rows, scorer.score(question.text, placed).tolist(), strict=True):
        score, candidate = read_candidates[place]
        if odds > candidate.log_odds:
            read_candidates[place] = (score, replace(candidate, statement=row, log_odds=odds))
    return read_candidates


def _asks_the_same(question: WeightedQuestion, statement: Statement) -> bool:
    """Whether a statement is a list of questions, as the contents of a FAQ, with the one that is asked."""
    lines = statement.lines[1:]
    return (
        bool(lines)
        and all(map(asks, lines))
        and any(
            asks(line) and dice(terms_of(keywords(line)), question.weights.keys()) >= SAME_QUESTION
            for line in statement.lines
        )
    )


def _own_language_first(question: str, ranking: list[tuple[float, Candidate]]) -> list[tuple[float, Candidate]]:
    """A ranking with what says the same on another page of the document as the best, as surely, and only the latter in
    words of another language than the question's, before it.
    """
    if _LANGUAGE_NAMED.search(question):
        return ranking
    (score, best), is_japanese_asked = ranking[0], is_asked_in_japanese(question)

    def is_in_another(terms: frozenset[str]) -> bool:
        return any(term.isascii() and term.isalpha() if is_japanese_asked else not term.isascii() for term in terms)

    for place, (other_score, other) in enumerate(ranking):
        if other_score < TIED * score:
            break
        is_beside = other.source.document_id == best.source.document_id and other.source.page_id != best.source.page_id
        is_alike = len(best.own & other.own) >= ALIKE * len(best.own | other.own)
        if is_beside and is_alike and is_in_another(best.own - other.own) and not is_in_another(other.own - best.own):
            return [(score, other), *ranking[:place], *ranking[place + 1 :]]
    return ranking


def _named_row_first(
    question: WeightedQuestion, ranking: list[tuple[float, Candidate]]
) -> list[tuple[float, Candidate]]:
    """A ranking with a row of the page of the best one, about as good and as surely, of which the question names a
    whole cell, as it names none of the best, before it.
    """
    (score, best), *rest = ranking
    if best.statement.kind is not StatementKind.ROW or question.keyed(best.statement):
        return ranking
    for place, (other_score, other) in enumerate(rest, start=1):
        if other_score < TIED * score:
            break
        is_beside = other.source.page_id == best.source.page_id and other.log_odds >= best.log_odds
        if is_beside and question.keyed(other.statement):
            return [(score, other), *ranking[:place], *ranking[place + 1 :]]
    return ranking


def _surely_read_first(ranking: list[tuple[float, Candidate]]) -> list[tuple[float, Candidate]]:
    """A ranking whose best candidate was read as one that hardly answers, with the first one about as good that surely
    does before it, and without those that hardly answer; which of two rows of a document is asked for words tell.
    """
    score, best = ranking[0]
    if best.log_odds >= _READ_UNSURELY:
        return ranking
    for place, (other_score, other) in enumerate(ranking):
        if other_score < _READ_BETTER * score:
            break
        are_rows = best.statement.kind is other.statement.kind is StatementKind.ROW
        is_beside_row = are_rows and best.source.document_id == other.source.document_id
        if other.log_odds >= READ_SURELY and not is_beside_row:
            rest = [pair for pair in ranking[:place] + ranking[place + 1 :] if pair[1].log_odds >= _READ_UNSURELY]
            return [(score, other), *rest]
    return ranking


def _place(candidate: Candidate) -> tuple[str, int, Statement]:
    return candidate.source.document_id, candidate.source.page_number, candidate.statement


def placed_statement(candidate: Candidate, question: WeightedQuestion) -> PlacedStatement:
    """A candidate as it is said, with where it stands."""
    source = candidate.source
    place = f"{PurePath(source.document_id).stem} {replace(source.citation, heading=None)}"
    context = candidate.statement.context[-_CONTEXT_CHARS:]
    return PlacedStatement(text_of(candidate.statement, question, ROW_CHARS), place[:_PLACE_CHARS], context)


def _words_score(question: WeightedQuestion, candidate: Candidate, coverage: float) -> float:
    """By the terms of the question that a candidate, and its passage, hold or stand under, as far as the candidate can
    answer at all.
    """
    own, statement = candidate.own, candidate.statement
    listed_only = frozenset[str]()
    if statement.kind is StatementKind.LIST:
        listed_only = own - (own := terms_of(statement.text[:_LEAD_CHARS]))
    score = question.share(own | candidate.above | candidate.named)
    score += _LISTED * question.share(listed_only - candidate.above - candidate.named)
    score += _OWN * question.share(candidate.own - candidate.named) + _KEYED * question.keyed(statement)
    if question.repeats(candidate.own, candidate.statement):
        score *= _OFF
    if statement.kind is StatementKind.LIST and not question.wanted.several:
        score *= _OFF
    if _NEGATED_CONDITION.search(statement.text) and not NEGATION.search(question.text):
        score *= _OPPOSITE
    score += _COVERED * coverage + _LINKED * question.leads(statement)
    return _NO_VALUE * score if question.wanted.lacks_value(statement) else score


def dice(terms: Set[str], other_terms: Set[str]) -> float:
    """The Dice coefficient of two sets of terms."""
    return 2 * len(terms & other_terms) / max(1, len(terms) + len(other_terms))
