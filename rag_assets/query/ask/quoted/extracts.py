"""An answer without a language model: what the passages found state that answers the question, as it stands there.

Each statement of the passages is weighed by the terms of the question that it holds or stands under (headings, header,
title, place), identifiers and rare terms most; what it says itself counts beyond what its document is named, or calls
itself. The best are read together with the question by a model that tells how surely they answer. Of a question for
one thing the best one is said, with others that are nearly as good; of one for several, or for a list, more, and the
best one with all of the section, list or table that it is of. A row is said with its header, of a wide one the cells
that the question names and the one that the model reads as answering. Of a passage in another language than the
question's, words tell little.

A statement is taken for an answer where it comes near enough, its passage stands high among those found, and the
identifiers of the question stand in it or above it; of a question in parts, where that holds for each, or for one and
nearly for those that other documents answer. Where a question was found that documents answer and that asks the same,
its stored answer comes first.

What stays out: how passages are found, what a passage states (`candidates`, `statements`), what a question asks for
(`wanted`), how sure the best statement is (`sureness`), and how statements are said (`said`).
"""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace
from itertools import accumulate, chain
from pathlib import PurePath
from typing import NamedTuple

from rag_assets.contracts.ports import AnswerScorer, PlacedStatement
from rag_assets.query.ask.answers import Sentence, SentenceCitation, Source
from rag_assets.query.ask.quoted.asked_sections import AskedSections
from rag_assets.query.ask.quoted.candidates import WHICH_OF_ALL, Candidate, candidates_of, own_names, without_copies
from rag_assets.query.ask.quoted.page_sections import (
    PageBlocks,
    cells_of,
    numbered_sections,
    section_names,
    standing_together,
)
from rag_assets.query.ask.quoted.said import ROW_CHARS, WHOLE_CHARS, sentence_of, text_of, with_cells_unsaid
from rag_assets.query.ask.quoted.spoken_of import SpokenOf, columns_of, holds_own_words
from rag_assets.query.ask.quoted.statements import (
    ITEM,
    RESTRICTS,
    STATEMENT_CHARS,
    Statement,
    StatementKind,
    split_cells,
    together,
    without_empty_rows,
)
from rag_assets.query.ask.quoted.sureness import (
    READ_SURELY,
    SURE,
    SURE_BESIDE,
    coverage_of,
    holding_identifiers_first,
    is_foreign,
    sureness_of,
)
from rag_assets.query.ask.quoted.wanted import (
    NUMBERED,
    TERM_WEIGHTS,
    AnswerTraits,
    WeightedQuestion,
    codes_named,
    is_named,
    number_counted,
    term_kind,
    terms_of,
    without_count,
)
from rag_assets.query.ask.quotes import stands_in
from rag_assets.query.results import FoundQuestion
from rag_assets.query.search.composite import Ask
from rag_assets.query.search.rewriting_rules import asks_of_the_same, keywords
from rag_assets.text.folding import fold_name
from rag_assets.text.language import cut, is_asked_in_japanese, is_japanese
from rag_assets.text.plain import announces, asks, one_line, squeezed

OPENING = {"ja": "資料の記載:", "en": "From the documents:"}
NEAREST = {
    "ja": "質問への答えと言い切れる記載はありません。最も近い記載:",
    "en": "No passage surely answers the question. The nearest:",
}
_MOST = 4  # statements
_MOST_OF_SEVERAL = 8  # where several things are asked for
_MOST_NEAR = 2  # of those that are only near to the question
_CHARS = 320  # of all that is said to a question for one thing
_MANY_CHARS = 800  # for several
_PARTS_CHARS = 560  # for the parts of a question that ask for one thing each
_MOST_ANSWER_CHARS = 1_100  # with what other documents say in nearly the same words
_TIED = 0.97  # of the best score, from which another statement may be said beyond that
_TIED_CHARS = 240
_SHORT_CHARS = 80  # of a sentence that is said with the next one
_COMPLETING_CHARS = 120
_STANDS_OUT = 0.85  # of the score of a row, below which those beside it are not asked for
_BEGINS_BEFORE = 2  # lines before the first of a list, of one that begins in another passage
_ALL_ASKED = re.compile(r"全部|すべて|全て|全員|一覧|それぞれ|各|列挙|挙げ|\b(?:all|every|each|list)\b", re.IGNORECASE)
_NEARLY = 0.68  # of the best score, from which another statement is said, too
_ALSO_READ = 2.0  # log odds from which another statement is said beside the best
_PROVISO = re.compile(r"ただし|但し|を除[くい]|以外|\b(?:except|unless|however|excluding)\b", re.IGNORECASE)
_LESS_READ = 2.0  # below those of the best, from which it is, where that is less
_SAME = 0.9  # share of its terms that another one holds, from which a statement says nothing new
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
_SIBLING = 0.9  # of the best score, from which the like statement of another document is said, too
_LANGUAGE_NAMED = re.compile(r"英[語文名訳]|[和日]文|日本語|和[名訳]|\b(?:japanese|english)\b", re.IGNORECASE)
_LONG_LIST = 200  # characters of one of which a part is said where that answers about as surely
_MOST_WHOLE_CHARS = 600  # of all that the best statement is of, where one thing is asked for and it says one by itself
_PART_SCORE = 0.7  # of its score
_PART_LOG_ODDS = 2.0  # below those of the list
_WINDOW_CHARS = 120  # of lines of one that are read together
_WINDOW_LINES = 12
_WINDOWS_READ = 16  # those that share most with the question
_ALIKE = 0.6  # Jaccard coefficient of the terms of statements that are like each other
_CONTEXT = 1.0  # weight of all terms of the context beside those of the question
_COMMON = 0.5  # weight that a term has in all statements, beside its rarity
_KEYED = 0.2  # added where a whole cell of a row is named in the question
_SAME_QUESTION = 0.6  # Dice coefficient of terms from which two questions ask the same
_CALLED = 0.8  # of the terms of a name that a document's name must hold to be called by it
_WHICH_ASKED = re.compile(
    r"どの(?!よう|くらい|程度)|どれ|どこ|いつ|何版|\b(?:which|where|when|what (?:version|file|document))\b",
    re.IGNORECASE,
)
_WHEN = re.compile(r"いつ|\bwhen\b", re.IGNORECASE)
_MEASURED = re.compile(  # a figure with its unit
    r"(\d+(?:[.,]\d+)*)\s?(営業日|か月|ヶ月|カ月|ヵ月|箇月|週間|時間|[年月日週時分秒回円%割人件歳]|(?:years?|months?|weeks?|days?|hours?|minutes?|times|yen|dollars|percent)\b)"
)
_CONFLICTING = 0.5  # of the best score, from which another document's other figures are said, too
_CONFLICTING_LOG_ODDS = 1.0  # below those of the best, as far as these are sure
_CONFLICTING_ALIKE = 0.3  # Jaccard coefficient of the terms of such statements
_NEGATED_CONDITION = re.compile(
    r"(?:[のがはしれえけめ]|でき)ない(?:場合|とき|時|者|もの|限り)"
    r"|\b(?:if|where|when)\b[^.;,]{0,40}(?:\bnot\b|n't\b)|\b(?:without|unless)\b",
    re.IGNORECASE,
)
_NEGATION = re.compile(r"な[いしくけか]|ず(?:に|とも)|以外|未|\b(?:not?|never|without|unless)\b|n't\b", re.IGNORECASE)
_CELL = " | "


class Extracts(NamedTuple):
    """What sources state that answers a question."""

    sentences: tuple[Sentence, ...]  # statements, part by part, the best first
    answers: bool  # whether they may answer: not where they are only near to the question
    row: tuple[str, ...] = ()  # the cells of the first one, where it is a row of a table that a whole question asks for


def extracts(
    asks: Sequence[Ask],
    sources: Sequence[Source],
    scorer: AnswerScorer | None = None,
    blocks_of: PageBlocks = lambda *_: (),
    beside: Callable[[Source], Sequence[Source]] = lambda _: (),
    spoken_of: SpokenOf | None = None,
) -> Extracts:
    """What the sources state that answers a question.

    Args:
        asks: The question; of one that asks for several things, each of its parts.
        sources: Passages.
        scorer: Tells how surely statements answer; None goes by words alone.
        blocks_of: What the pages of the passages consist of; nothing where that is not known.
        beside: Further passages of the page of one, which may hold the rest of a list.
        spoken_of: What the question goes on to ask of: its row answers where a column of it is asked for.
    """
    names = own_names(sources)
    candidates = [
        candidate
        for source in without_copies(sources, " ".join(ask.text for ask in asks))
        for candidate in candidates_of(
            source, names[source.document_id], blocks_of(source.document_id, source.page_number)
        )
    ]
    if spoken_of is not None and len(asks) == 1:
        wanted_row, candidates = _of_table_spoken_of(asks[0], candidates, spoken_of)
        if wanted_row is not None:
            said = sentence_of(wanted_row, _weighted_question(asks[0], candidates), names_document=False)
            return Extracts((said,), answers=True, row=tuple(value for _, value in wanted_row.statement.cells))
    choices: dict[tuple[str, str], tuple[Candidate, WeightedQuestion]] = {}
    stored_answers: list[Sentence] = []
    sureness = []
    for ask in asks:
        question = _weighted_question(ask, candidates)
        called = _named_in(ask.name, candidates)
        page_names = {
            (source.document_id, source.page_number): source.page_name or ""
            for source in (candidate.source for candidate in called)
        }
        ranking = _ranking(question, called, AskedSections(question.text, page_names, blocks_of), scorer)
        ranking = holding_identifiers_first(question, ranking, candidates)
        if spoken_of is not None and asks_of_the_same(ask.text):
            # what was said to the question before shares most with it
            ranking.sort(key=lambda pair: not _holds_own_words(ask.text, pair[1]))
        answers = _stored_answers(frozenset(question.weights), sources)
        sureness.append(
            1.0 if answers else sureness_of(question, ranking, candidates, is_part=len(asks) > 1) if ranking else 0.0
        )
        nearest = [candidate for candidate in candidates if candidate.source is candidates[0].source]
        stored_answers += answers
        is_sure = bool(ranking) and sureness[-1] >= SURE
        of_several = max(_MOST, _MOST_OF_SEVERAL // len(asks))
        most = _MOST_NEAR if not is_sure else of_several if question.wanted.several else _MOST
        most -= len(answers)
        best = _best_candidates(question, ranking, len(asks)) or nearest
        if best and len(asks) < 2:
            first = _completed(_answering_part(question, ranking, best[0], scorer))
            best = [first, *(candidate for candidate in best[1:] if not _is_said_by(first, candidate))]
        is_of_list = is_sure and len(asks) < 2 and _is_of_list(question, best[0].statement)
        asks_for_all = _ALL_ASKED.search(question.text) or number_counted(question.text) is not None
        if is_of_list and (asks_for_all or not _stands_out(ranking)):
            whole = _with_whole_list(question, best, sources, blocks_of, beside)
            is_short = sum(map(len, whole[0].statement.lines)) <= _MOST_WHOLE_CHARS
            is_needed = asks_for_all or question.wanted.several or announces(best[0].statement.text)
            best = whole if is_short or is_needed else best
        for candidate in best[: max(0, most)]:
            choices.setdefault(
                (candidate.source.document_id, text_of(candidate.statement, question)), (candidate, question)
            )
    documents = {document for document, _ in choices}
    picks = [candidate for candidate, _ in choices.values()]
    likes = any(
        _is_sibling(question, picks[0], [candidate]) or _contradicts(question, candidate, picks[:1])
        for candidate, question in list(choices.values())[1:]
    )
    names_documents = len(documents) > 1 and (len(asks) > 1 or likes)
    sentences = [
        sentence_of(candidate, question, names_document=names_documents) for candidate, question in choices.values()
    ]
    is_row = len(asks) < 2 and not stored_answers and bool(picks) and picks[0].statement.kind is StatementKind.ROW
    row = tuple(value for _, value in picks[0].statement.cells) if is_row else ()
    least = SURE_BESIDE if len(documents) > 1 and len(asks) > 1 else SURE
    is_sure = max(sureness, default=0.0) >= SURE and min(sureness) >= least
    return Extracts((*stored_answers, *sentences), is_sure, row)


def quote_for(text: str, source: Source) -> str:
    """The statement of a source that shares most with a text; empty where none shares a term.

    Args:
        text: What is to be shown in the source.
        source: The source.
    """
    candidates = candidates_of(source)
    question = _weighted_question(Ask(text), candidates)
    best = max(candidates, key=lambda candidate: question.share(candidate.own), default=None)
    return cut(best.statement.text, STATEMENT_CHARS) if best is not None and question.share(best.own) > 0 else ""


def listed(sentences: Sequence[Sentence], language: str, *, answered: bool, opening: str = "") -> str:
    """The text of the answer: what it is, and the quotes with the numbers of their sources, one an item."""
    openings = OPENING if answered else NEAREST
    numbers = [dict.fromkeys(f"[{citation.number}]" for citation in sentence.citations) for sentence in sentences]
    items = [f"- {sentence.text} {''.join(marks)}" for sentence, marks in zip(sentences, numbers, strict=True)]
    return "\n".join([opening or openings[language], *(item.replace("\n", "\n  ") for item in items)])


def _named_in(name: str, candidates: Sequence[Candidate]) -> Sequence[Candidate]:
    """The candidates of documents that are called by a name; all where none is."""
    terms = terms_of(name)
    name_counts = {
        candidate.source.document_id: len(
            terms & terms_of(f"{candidate.source.title} {PurePath(candidate.source.document_id).stem}")
        )
        for candidate in candidates
    }
    named_candidates = [
        candidate for candidate in candidates if name_counts[candidate.source.document_id] >= _CALLED * len(terms) > 0
    ]
    return named_candidates or candidates


def _of_table_spoken_of(
    ask: Ask, candidates: Sequence[Candidate], spoken_of: SpokenOf
) -> tuple[Candidate | None, list[Candidate]]:
    """The row spoken of, where a question goes on to ask for another column of it; and the candidates without rows of
    the table that it does not mean.
    """
    spoken = next((candidate for candidate in candidates if spoken_of.is_its_row(candidate.statement)), None)
    if spoken is None:
        return None, list(candidates)
    columns = columns_of(spoken.statement)
    if spoken_of.has_asked_column(ask.text, spoken.statement):
        return spoken, list(candidates)
    return None, [
        candidate
        for candidate in candidates
        if candidate.source.page_id != spoken.source.page_id
        or not spoken_of.is_row_unnamed(ask.text, columns, candidate.statement)
    ]


def _holds_own_words(question: str, candidate: Candidate) -> bool:
    statement = candidate.statement
    return holds_own_words(question, f"{statement.context} {statement.group} {statement.text}")


def _weighted_question(ask: Ask, candidates: Sequence[Candidate]) -> WeightedQuestion:
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


def _ranking(
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
    foreign = {number for number, source in sources.items() if is_foreign(question.text, source)}
    scored_candidates = [
        (
            _words_score(question, candidate, coverage[candidate.source.number])
            * (_EXPLAINING if _is_about_the_text(question, candidate, sections) else 1.0),
            candidate,
        )
        for candidate in candidates
        if candidate.statement.kind is not StatementKind.HEADING
        and not sections.is_elsewhere(*_place(candidate))
        and not _asks_the_same(question, candidate.statement)
        and (question.share(candidate.own | candidate.above) > 0 or candidate.source.number in foreign)
    ]
    best = sorted(scored_candidates, key=lambda pair: -pair[0])[:READ_TOGETHER]
    if scorer is None or not best:
        return best
    log_odds = scorer.score(question.text, [_placed_statement(candidate, question) for _, candidate in best]).tolist()
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
    placed = [_placed_statement(replace(ranking[place][1], statement=row), question) for place, row in wide_rows]
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
            asks(line) and _dice(terms_of(keywords(line)), question.weights.keys()) >= _SAME_QUESTION
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
        if other_score < _TIED * score:
            break
        is_beside = other.source.document_id == best.source.document_id and other.source.page_id != best.source.page_id
        is_alike = len(best.own & other.own) >= _ALIKE * len(best.own | other.own)
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
        if other_score < _TIED * score:
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


def _placed_statement(candidate: Candidate, question: WeightedQuestion) -> PlacedStatement:
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
    if _NEGATED_CONDITION.search(statement.text) and not _NEGATION.search(question.text):
        score *= _OPPOSITE
    score += _COVERED * coverage + _LINKED * question.leads(statement)
    return _NO_VALUE * score if question.wanted.lacks_value(statement) else score


def _best_candidates(
    question: WeightedQuestion, ranking: Sequence[tuple[float, Candidate]], parts: int
) -> list[Candidate]:
    """The best candidate, and others nearly as good, as far as there is room, they say something new and are not read
    as answering far less surely.

    What another document says in nearly the same words is new where it differs in a figure, or where is asked which;
    other figures of another document that surely answers are said even if they come less near.
    """
    best: list[Candidate] = []
    room = (_MANY_CHARS if question.wanted.several else _PARTS_CHARS if parts > 1 else _CHARS) // parts
    left = _MOST_ANSWER_CHARS
    least_log_odds = _least_log_odds(question, ranking[0][1]) if ranking else 0.0
    for score, candidate in ranking:
        is_contrary = score >= _CONFLICTING * ranking[0][0] and _contradicts(question, candidate, best)
        if score < _NEARLY * ranking[0][0] and not is_contrary:
            continue
        is_sibling = is_contrary or (score >= _SIBLING * ranking[0][0] and _is_sibling(question, candidate, best))
        length = len(text_of(candidate.statement, question))
        new = is_sibling or not any(_repeats(candidate, better, several=question.wanted.several) for better in best)
        is_tied = score >= _TIED * ranking[0][0]
        is_read = candidate.log_odds >= least_log_odds or _PROVISO.search(candidate.statement.text) is not None
        is_read = is_read or is_tied or is_sibling
        if not best or (new and is_read and length <= (left if is_sibling else room + _TIED_CHARS * is_tied)):
            best.append(candidate)
            room -= length
            left -= length
    return best


def _least_log_odds(question: WeightedQuestion, first: Candidate) -> float:
    """Log odds from which another statement is said beside the first one: any, where that only announces what follows,
    or several are asked for.
    """
    needs_more = question.wanted.several or announces(first.statement.text)
    return -math.inf if needs_more else min(_ALSO_READ, first.log_odds - _LESS_READ)


def _repeats(candidate: Candidate, better: Candidate, *, several: bool) -> bool:
    """Whether a candidate says nothing new; of several things asked for, each row of a table is one."""
    own, better_statement = candidate.statement, better.statement
    headers = [[header for header, _ in statement.cells] for statement in (own, better_statement)]
    if several and headers[0] and headers[0] == headers[1] and candidate.source.page_id == better.source.page_id:
        return (own.group, own.text) == (better_statement.group, better_statement.text)
    alike = len(candidate.own & better.own) >= _SAME * len(candidate.own)
    return alike or (not several and better_statement.text in own.text)


def _answering_part(
    question: WeightedQuestion,
    ranking: Sequence[tuple[float, Candidate]],
    best: Candidate,
    scorer: AnswerScorer | None,
) -> Candidate:
    """Of a long list, where one thing is asked for, the sentence or row that answers most surely, if about as surely as
    the list, or lines that answer more surely than all of it; else the list.
    """
    asks_for_more = question.wanted.several or question.wanted.link
    is_long = best.statement.kind is StatementKind.LIST and len(best.statement.text) > _LONG_LIST
    if asks_for_more or not is_long:
        return best
    text = squeezed(best.statement.text)
    parts = [
        candidate
        for score, candidate in ranking[1:]
        if candidate.source.page_id == best.source.page_id
        and candidate.statement.kind in {StatementKind.SENTENCE, StatementKind.ROW}
        and score >= _PART_SCORE * ranking[0][0]
        and candidate.log_odds >= best.log_odds - _PART_LOG_ODDS
        and squeezed(candidate.statement.text) in text
    ]
    if scorer is not None:
        windows = [replace(best, statement=statement) for statement in _windows(best.statement)]
        windows = sorted(windows, key=lambda window: -question.share(terms_of(window.statement.text)))[:_WINDOWS_READ]
        log_odds = scorer.score(question.text, [_placed_statement(window, question) for window in windows]).tolist()
        parts += [
            replace(window, log_odds=odds)
            for window, odds in zip(windows, log_odds, strict=True)
            if odds >= best.log_odds
        ]
    return max(parts, key=lambda candidate: candidate.log_odds, default=best)


def _windows(listed: Statement) -> list[Statement]:
    """The lines of a list from each on, as many as are short together, with what restricts the last one; they stand
    under the first one. None without the line that announces them, or that says of what the list is not.
    """
    lead, *lines = listed.lines
    windows: list[Statement] = []
    context = f"{listed.context} {lead}".strip()
    if announces(lead) or _NEGATION.search(lead):
        return windows
    for place, line in enumerate(lines):
        lengths = accumulate(map(len, lines[place : place + _WINDOW_LINES]))
        end = place + max(1, sum(length <= _WINDOW_CHARS for length in lengths))
        while end < len(lines) and RESTRICTS.match(ITEM.sub("", lines[end])):
            end += 1
        text = "\n".join(lines[place:end])
        windows.append(Statement(text, StatementKind.SENTENCE, context, group=listed.group))
        if announces(line):
            break
    return windows


def _completed(candidate: Candidate) -> Candidate:
    """A sentence that restricts the one before it together with that one, a short one with the one after it, in which
    what it says is often told.
    """
    statement = candidate.statement
    blank = "" if is_japanese(statement.text) else " "
    text = statement.text
    if 0 < len(statement.preceding) <= STATEMENT_CHARS - len(text):
        text = f"{statement.preceding}{blank}{text}"
    if len(text) <= _SHORT_CHARS and 0 < len(statement.following) <= _COMPLETING_CHARS:
        text = f"{text}{blank}{statement.following}"
    return replace(candidate, statement=replace(statement, text=text, following="", preceding=""))


def _is_said_by(first: Candidate, candidate: Candidate) -> bool:
    is_there = (candidate.source.document_id, candidate.statement.group) == (
        first.source.document_id,
        first.statement.group,
    )
    return is_there and candidate.statement.text in first.statement.text


def _is_of_list(question: WeightedQuestion, best: Statement) -> bool:
    """Whether all that the best statement is of answers: several things are asked for, and not of the row that the
    question names, or it is a list, and no number is asked for.
    """
    is_named = question.keyed(best) or any(value.isdecimal() and value in question.weights for _, value in best.cells)
    is_lead = any(map(announces, best.lines or (best.text,)))
    is_lead = is_lead or any(ITEM.match(line) or _CELL in line for line in best.lines[1:])
    is_lead = is_lead and best.kind in {StatementKind.LIST, StatementKind.SENTENCE}
    return (question.wanted.several and not is_named) or (is_lead and not question.wanted.measured)


def _stands_out(ranking: Sequence[tuple[float, Candidate]]) -> bool:
    """Whether the best candidate is a row whose score is well above those of the others of its page that were found."""
    (score, best), *rest = ranking
    others = [
        other
        for other, candidate in rest
        if candidate.source.page_id == best.source.page_id and best.statement.text not in candidate.statement.text
    ]
    return best.statement.kind is StatementKind.ROW and bool(others) and max(others) < _STANDS_OUT * score


def _with_whole_list(
    question: WeightedQuestion,
    best: Sequence[Candidate],
    sources: Sequence[Source],
    blocks_of: PageBlocks,
    beside: Callable[[Source], Sequence[Source]],
) -> list[Candidate]:
    """Candidates, the first with all of the section, list or table that it is of, as far as passages of the page hold
    it, the others as far as they are not of it and there is room.
    """
    first, *other_candidates = best
    source, known_lines = first.source, first.statement.lines or (first.statement.text,)
    blocks = blocks_of(source.document_id, source.page_number)
    is_lead = bool(first.statement.lines) and not (question.wanted.several and ITEM.match(known_lines[0]))
    of_page = [holder for holder in sources if holder.page_id == source.page_id]
    is_row = first.statement.kind is StatementKind.ROW  # which passages hold in several forms
    beside_lines = [
        candidate.statement.lines[0] if candidate.statement.lines else candidate.statement.text
        for candidate in other_candidates
        if candidate.source.page_id == source.page_id
    ]
    is_asked_alone = is_named(fold_name(question.text), fold_name(ITEM.sub("", known_lines[0])))
    sections = () if is_asked_alone else numbered_sections(known_lines, beside_lines, blocks, WHOLE_CHARS)
    wholes = chain(
        filter(None, [sections]),
        standing_together(known_lines, blocks, WHOLE_CHARS, is_lead=is_lead),
    )
    names = section_names(blocks)
    for lines in map(without_empty_rows, wholes):
        if lines and names.issuperset(map(squeezed, lines)) and not question.share(terms_of(lines[0])):
            continue  # sections of what the question does not name
        held_lines = _held_lines(lines, source, of_page)
        if len(held_lines) < len(lines):
            held_lines = _held_lines(lines, source, [*of_page, *beside(source)])
        held_text = squeezed("".join(line for _, line in held_lines))
        known = [place for place, (_, line) in enumerate(held_lines) if squeezed(line) == squeezed(known_lines[0])]
        is_more = len(held_lines) > max(1, len(first.statement.lines)) or max(known, default=0) >= _BEGINS_BEFORE
        if is_more and (is_row or squeezed(known_lines[0]) in held_text):
            break
    else:
        return list(best)
    lines = tuple(line for _, line in held_lines)
    whole = replace(
        first,
        statement=replace(first.statement, kind=StatementKind.LIST, lines=lines, cells=(), group="", is_whole=True),
        continued=tuple((holder, line) for holder, line in held_lines if holder is not source),
    )
    if (number := number_counted(question.text)) is not None and _count_of_items(lines) == number:
        return [whole]
    rest = [
        candidate
        for candidate in other_candidates
        if candidate.source.page_id != source.page_id or squeezed(candidate.statement.text) not in held_text
    ]
    room = _MOST_ANSWER_CHARS - sum(map(len, lines))
    lengths = accumulate(len(candidate.statement.text) for candidate in rest)
    return [whole, *(candidate for candidate, length in zip(rest, lengths, strict=True) if length <= room)]


def _count_of_items(lines: Sequence[str]) -> int:
    """How many things lines name: rows below the widest one that comes first, which names the columns, or items."""
    widths = [len(split_cells(line)) for line in lines]
    if max(widths) > 1:
        return len(lines) - widths.index(max(widths)) - 1
    return sum(ITEM.match(line) is not None for line in lines[announces(lines[0]) :])


def _held_lines(lines: Sequence[str], source: Source, sources: Sequence[Source]) -> list[tuple[Source, str]]:
    """Lines as passages have them, with the one that holds each as far as any does: word for word before with further
    cells, a source before that of the line above, and this before others. Lines of empty cells are left out.
    """
    of_page = {holder.number: [(line, _cells_and_values(line)) for line in _lines_of(holder)] for holder in sources}
    held_lines: list[tuple[Source, str]] = []
    for wanted_line, cells in ((line, cells) for line in lines if (cells := cells_of(line))):
        preferred_sources = (source, *(last for last, _ in held_lines[-1:]), *sources)
        matches = [
            (holder, line)
            for holder in preferred_sources
            for line, line_cells in of_page[holder.number]
            if cells <= line_cells
        ]
        if not matches:
            break
        held_lines.append(next((match for match in matches if match[1] == wanted_line), matches[0]))
    return held_lines


def _cells_and_values(line: str) -> frozenset[str]:
    """The cells of a row, and what stands behind their labels."""
    cells = cells_of(line)
    return cells.union(cell.partition(":")[2] for cell in cells)


def _lines_of(source: Source) -> list[str]:
    return [together(line) for line in map(one_line, source.whole_text.splitlines()) if line]


def _is_sibling(question: WeightedQuestion, candidate: Candidate, best: Sequence[Candidate]) -> bool:
    """Whether another document says nearly what is said already, and the difference may be what is asked."""
    alike = [better for better in best if _alike(better, candidate) >= _ALIKE]
    if not alike or any(better.source.document_id == candidate.source.document_id for better in best):
        return False
    figures = {item.statement.text: {*NUMBERED.findall(item.statement.text)} for item in (*alike, candidate)}
    own = figures[candidate.statement.text]
    if any(not (own <= figures[better.statement.text] or figures[better.statement.text] <= own) for better in alike):
        return True
    is_said = any(squeezed(candidate.statement.text) in squeezed(better.statement.text) for better in best)
    return bool((WHICH_OF_ALL if is_said else _WHICH_ASKED).search(question.text))


def _alike(first: Candidate, second: Candidate) -> float:
    """Jaccard coefficient of the terms of two statements."""
    return len(first.own & second.own) / (len(first.own | second.own) or 1)


def _contradicts(question: WeightedQuestion, candidate: Candidate, best: Sequence[Candidate]) -> bool:
    """Whether another document surely answers, too, with other figures of a unit than the best statement."""
    if not best or question.wanted.several or not (question.wanted.measured or _WHEN.search(question.text)):
        return False
    first, own = best[0], _measures(candidate.statement.text)
    if candidate.log_odds < max(READ_SURELY, first.log_odds - _CONFLICTING_LOG_ODDS) or any(
        better.source.document_id == candidate.source.document_id
        or not _other_figures(own, _measures(better.statement.text))
        for better in best
    ):
        return False
    return _alike(first, candidate) >= _CONFLICTING_ALIKE


def _measures(text: str) -> dict[str, set[str]]:
    """The figures of a text by their units."""
    figures: dict[str, set[str]] = {}
    for figure, unit in _MEASURED.findall(unicodedata.normalize("NFKC", text)):
        figures.setdefault(unit, set()).add(figure.replace(",", ""))
    return figures


def _other_figures(first: Mapping[str, set[str]], second: Mapping[str, set[str]]) -> bool:
    """Whether of a unit that both have, each has a figure that the other has not."""
    return any(first[unit] - second[unit] and second[unit] - first[unit] for unit in first.keys() & second.keys())


def _dice(terms: Set[str], other_terms: Set[str]) -> float:
    """The Dice coefficient of two sets of terms."""
    return 2 * len(terms & other_terms) / max(1, len(terms) + len(other_terms))


def _stored_answers(question_terms: frozenset[str], sources: Sequence[Source]) -> list[Sentence]:
    """Answer of the stored question that asks the same, where there is one."""
    matches: list[tuple[float, int, Source, FoundQuestion]] = []
    for source in sources:
        for question in source.questions:
            terms = terms_of(keywords(question.question))
            alike = _dice(question_terms, terms)
            if alike >= _SAME_QUESTION and question.answer.strip():
                matches.append((-alike, source.number, source, question))
    if not matches:
        return []
    _, _, source, best = min(matches, key=lambda match: match[:2])
    answer = one_line(best.answer)
    quote = answer if stands_in(answer, source.whole_text) else quote_for(answer, source)
    citation = SentenceCitation(source.number, quote, stands_in(answer, source.whole_text))
    return [Sentence(f"{best.question} {answer}", (citation,))]
