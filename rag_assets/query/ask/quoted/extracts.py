"""An answer without a language model: what the passages found state that answers the question, as it stands there.

Each statement of the passages is weighed by the terms of the question that it holds or stands under (headings, header,
title, place), identifiers and rare terms most; what it says itself counts beyond what its document is named, or calls
itself. The best are read together with the question by a model that tells how surely they answer. Of a question for
one thing the best one is said, with others that are nearly as good; of one for several, or for a list, more, and the
best one with all of the section, list or table that it is of. A row is said with its header, of a wide one the cells
that the question names. Of a passage in another language than the question's, words tell little.

A statement is taken for an answer where it comes near enough, its passage stands high among those found, and the
identifiers of the question stand in it or above it; of a question in parts, where that holds for each. Where a question
was found that documents answer and that asks the same, its stored answer comes first.

What stays out: how passages are found, what a passage states (`rag_assets.query.ask.quoted.statements`), and what a
question asks for (`rag_assets.query.ask.quoted.wanted`).
"""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import accumulate, groupby
from pathlib import PurePath
from typing import NamedTuple

from rag_assets.contracts.ports import AnswerScorer, PlacedStatement
from rag_assets.query.ask.answers import Sentence, SentenceCitation, Source
from rag_assets.query.ask.quoted.asked_sections import AskedSections
from rag_assets.query.ask.quoted.page_sections import (
    OF_TABLE,
    PageBlock,
    PageBlocks,
    body_rows,
    cells_of,
    header_rows,
    standing_together,
)
from rag_assets.query.ask.quoted.spoken_of import (
    SpokenOf,
    columns_of,
    holds_own_words,
)
from rag_assets.query.ask.quoted.statements import (
    ITEM,
    KANJI_NUMBERS,
    STATEMENT_CHARS,
    Statement,
    StatementKind,
    statements,
    together,
)
from rag_assets.query.ask.quoted.wanted import (
    FULL_DATE,
    NOTHING,
    NUMBERED,
    QUOTED,
    TERM_WEIGHTS,
    AnswerTraits,
    WeightedQuestion,
    codes_named,
    term_kind,
    terms_held,
    terms_of,
)
from rag_assets.query.ask.quotes import stands_in
from rag_assets.query.results import FoundQuestion
from rag_assets.query.search.composite import Ask
from rag_assets.query.search.rewriting_rules import asks_of_the_same, keywords
from rag_assets.text.folding import TermKind, content_words, fold_name, is_wide, shares_held, years_otherwise
from rag_assets.text.language import cut, is_asked_in_japanese, is_ideographic, is_japanese
from rag_assets.text.plain import announces, asks, one_line, squeezed
from rag_assets.text.scripts import KATAKANA_AND_MARKS

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
_LIST_CHARS = 450
_WHOLE_CHARS = 900  # of a section, list or table that is said whole
_ITEM_CHARS = (_WHOLE_CHARS, 160, 120, 80)  # of each item of a list that has more
_MOST_CHARS = dict.fromkeys(StatementKind, STATEMENT_CHARS) | {
    StatementKind.LIST: _LIST_CHARS,
    StatementKind.SENTENCE: 400,  # which a sentence of a contract takes to say what holds
}
_ROW_CHARS = 200
_ROW_OF_SEVERAL_CHARS = 500
_STANDS_OUT = 0.85  # of the score of a row, below which those beside it are not asked for
_ALL_ASKED = re.compile(r"全部|すべて|全て|全員|一覧|それぞれ|各|列挙|挙げ|\b(?:all|every|each|list)\b", re.IGNORECASE)
_NEARLY = 0.68  # of the best score, from which another statement is said, too
_UNREAD = -0.4  # how surely a statement answers that was not read: what words tell must be more then
_SAME = 0.9  # share of its terms that another one holds, from which a statement says nothing new
READ_TOGETHER = 16  # statements that are read together with the question
_PLACE_CHARS = 80  # of the place of one
_CONTEXT_CHARS = 120  # of what it stands under, the last ones
_LOG_ODDS = 0.1  # weight of how surely one answers, by the model
_COVERED = 1.3  # weight of the question's words that the passage holds
_OWN = 1.3  # weight of terms that the title and place do not hold already, beyond that of all
_LISTED = 1.0  # weight of a term that stands in a list, and not in its beginning
_LEAD_CHARS = 40
_EACH = "それぞれ"  # of several that are compared, which asks one thing of each
_NUMBERED_NAME = re.compile(
    rf"第\s?(\d{{1,3}}|{'|'.join(sorted(KANJI_NUMBERS, key=len, reverse=True))})\s?([回版期次])"
)
_OFF = 0.85  # of a score, for a list where none is asked for, and what only repeats the question
_ABBREVIATION = re.compile(r"(?<![A-Za-z0-9])[A-Z][A-Z0-9]{2,}(?![A-Za-z0-9])")
_EXPLAINING = 0.6  # of a score, for what is said on how to fill in a form, where its data are asked for
_OPPOSITE = 0.7  # of a score, for what holds where the condition of the question does not
_NO_VALUE = 0.4  # of a score, for a statement without a number, date or address where one is asked for
_LACKING_VALUE = 2.0  # taken off where the best statement has none
_LINKED = 1.0  # added to the score of a connection that starts or ends at what the question names
_HOLDING = 0.8  # of the best score, from which one counts that holds the identifiers which the best one lacks
_SIBLING = 0.9  # of the best score, from which the like statement of another document is said, too
_LANGUAGE_NAMED = re.compile(r"英[語文名訳]|[和日]文|日本語|和[名訳]|\b(?:japanese|english)\b", re.IGNORECASE)
_LONG_LIST = 200  # characters of one of which a part is said where that answers about as surely
_PART_SCORE = 0.7  # of its score
_PART_LOG_ODDS = 2.0  # below those of the list
_ALIKE = 0.6  # Jaccard coefficient of the terms of statements that are like each other
_CONTEXT = 1.0  # weight of all terms of the context beside those of the question
_COMMON = 0.5  # weight that a term has in all statements, beside its rarity
_KEYED = 0.2  # added where a whole cell of a row is named in the question
_SURE_LOG_ODDS = 0.2  # weight of how surely the best statement answers
_SURE_KEYED = 0.4  # for a row of which a question for one thing names a whole cell
_SURE_LEAD = 0.5  # of the share by which the best score is above the next, beyond the usual one
_USUAL_LEAD = 0.1
_SURE_PART = 0.04  # instead of both, for a part of a question
_SURE_RANK = 0.35  # taken off by the logarithm of the rank of its passage
_FOREIGN_HELD = 0.2  # of a word that a passage of another language may hold in its own
_SAME_QUESTION = 0.6  # Dice coefficient of terms from which two questions ask the same
_SURE = 0.6  # from which a statement is taken for an answer, see `_sureness`
_HELD_SHARE = 0.7  # of the terms of quoted words that the passages of the document must hold
_LACKING_WORD = 0.8  # taken off where they do not, or share nothing with a long word in katakana, which names a thing
_READ_SURELY = 3.0  # log odds by the model from which that does not count, as things have several names
_LABELLED_NUMBER = re.compile(r"(?:id|no|nr|code)[._#]?(\d+)")
_LONG_WORD = re.compile(f"(?<![何{KATAKANA_AND_MARKS}])[{KATAKANA_AND_MARKS}]{{5,}}")  # no unit
_TABLE_IN_LATIN = re.compile(rf"(?<![A-Za-z\d_./-])[A-Za-z]{{3,}}(?=[」』]?(?:{OF_TABLE.pattern}))", re.IGNORECASE)
_LACKING = 2.0  # taken off where an identifier of the question stands nowhere in the passage
_CALLED = 0.8  # of the terms of a name that a document's name must hold to be called by it
_WHICH_ASKED = re.compile(
    r"どの(?!よう|くらい|程度)|どれ|どこ|いつ|何版|\b(?:which|where|when|what (?:version|file|document))\b",
    re.IGNORECASE,
)
_WHICH_OF_ALL = re.compile(
    r"どの(?!よう|くらい|程度)|どれ|何版|\b(?:which|what (?:version|file|document))\b", re.IGNORECASE
)
_WHEN = re.compile(r"いつ|\bwhen\b", re.IGNORECASE)
_MEASURED = re.compile(  # a figure with its unit
    r"(\d+(?:[.,]\d+)*)\s?(営業日|か月|ヶ月|カ月|ヵ月|箇月|週間|時間|[年月日週時分秒回円%割人件歳]|(?:years?|months?|weeks?|days?|hours?|minutes?|times|yen|dollars|percent)\b)"
)
_CONFLICTING = 0.5  # of the best score, from which another document's other figures are said, too
_CONFLICTING_LOG_ODDS = 1.0  # below those of the best, as far as these are sure
_CONFLICTING_ALIKE = 0.3  # Jaccard coefficient of the terms of such statements
_WRITTEN_DATE = re.compile(r"(?<!\d)((?:19|20)\d\d)(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01]|)(?!\d)")  # in names of files
_NEGATED_CONDITION = re.compile(
    r"(?:[のがはしれえけめ]|でき)ない(?:場合|とき|時|者|もの|限り)"
    r"|\b(?:if|where|when)\b[^.;,]{0,40}(?:\bnot\b|n't\b)|\b(?:without|unless)\b",
    re.IGNORECASE,
)
_NEGATION = re.compile(r"な[いしくけか]|ず(?:に|とも)|以外|未|\b(?:not?|never|without|unless)\b|n't\b", re.IGNORECASE)
_OWN_NAME = re.compile(  # as in the title block of a document
    r"(?:(?:システム|アプリケーション|アプリ|プロジェクト|PJ|文書|ドキュメント|資料|製品|サービス|ツール|成果物)名称?"
    r"|\b(?:system|application|project|document|product|tool)(?: name| title))\s*[|:]\s*([^|\n]{2,60})",
    re.IGNORECASE,
)
_TITLE_CHARS = 60
_NO_TITLE = re.compile(r" \| |[。.:]$")
_CELL = " | "
_LETTER = re.compile(r"\w")
_SAYS_COPY = re.compile(  # behind the name of a file
    r"[\W_]*(?:の?コピー|copy|旧版?|old|bak|backup|バックアップ|\d{1,2}[)）])[\W\d_]*", re.IGNORECASE
)


class Extracts(NamedTuple):
    """What sources state that answers a question.

    Attributes:
        sentences: Statements, part by part, the best first.
        answers: Whether they may answer: not where they are only near to the question.
        row: The cells of the first one, where it is a row of a table that a whole question asks for.
    """

    sentences: tuple[Sentence, ...]
    answers: bool
    row: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Candidate:
    """A statement of a source, with its terms, those it stands under, and those of title and place; where it was read
    together with the question, how surely it answers.
    """

    source: Source
    statement: Statement
    own: frozenset[str]
    above: frozenset[str]
    named: frozenset[str]
    continued: tuple[tuple[Source, str], ...] = ()  # of a list, the lines that other passages hold
    log_odds: float = _UNREAD


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
    names = _own_names(sources)
    candidates = [
        candidate
        for source in _without_copies(sources, " ".join(ask.text for ask in asks))
        for candidate in _candidates(
            source, names[source.document_id], blocks_of(source.document_id, source.page_number)
        )
    ]
    if spoken_of is not None and len(asks) == 1:
        wanted_row, candidates = _of_table_spoken_of(asks[0], candidates, spoken_of)
        if wanted_row is not None:
            said = _sentence(wanted_row, _weighted_question(asks[0], candidates), names_document=False)
            return Extracts((said,), answers=True, row=tuple(value for _, value in wanted_row.statement.cells))
    choices: dict[tuple[str, str], tuple[_Candidate, WeightedQuestion]] = {}
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
        ranking = _holding_identifiers_first(question, ranking, candidates)
        if spoken_of is not None and asks_of_the_same(ask.text):
            # what was said to the question before shares most with it
            ranking.sort(key=lambda pair: not _holds_own_words(ask.text, pair[1]))
        answers = _stored_answers(frozenset(question.weights), sources)
        sureness.append(
            1.0 if answers else _sureness(question, ranking, candidates, is_part=len(asks) > 1) if ranking else 0.0
        )
        nearest = [candidate for candidate in candidates if candidate.source is candidates[0].source]
        stored_answers += answers
        is_sure = bool(ranking) and sureness[-1] >= _SURE
        of_several = max(_MOST, _MOST_OF_SEVERAL // len(asks))
        most = _MOST_NEAR if not is_sure else of_several if question.wanted.several else _MOST
        most -= len(answers)
        best = _best_candidates(question, ranking, len(asks)) or nearest
        if best and len(asks) < 2:
            first = _completed(_answering_part(question, ranking, best[0]))
            best = [first, *(candidate for candidate in best[1:] if not _is_said_by(first, candidate))]
        is_of_list = is_sure and len(asks) < 2 and _is_of_list(question, best[0].statement)
        if is_of_list and (_ALL_ASKED.search(question.text) or not _stands_out(ranking)):
            best = _with_whole_list(question, best, sources, blocks_of, beside)
        for candidate in best[: max(0, most)]:
            choices.setdefault(
                (candidate.source.document_id, _text(candidate.statement, question)), (candidate, question)
            )
    documents = {document for document, _ in choices}
    picks = [candidate for candidate, _ in choices.values()]
    likes = any(
        _is_sibling(question, picks[0], [candidate]) or _contradicts(question, candidate, picks[:1])
        for candidate, question in list(choices.values())[1:]
    )
    names_documents = len(documents) > 1 and (len(asks) > 1 or likes)
    sentences = [
        _sentence(candidate, question, names_document=names_documents) for candidate, question in choices.values()
    ]
    is_row = len(asks) < 2 and not stored_answers and bool(picks) and picks[0].statement.kind is StatementKind.ROW
    row = tuple(value for _, value in picks[0].statement.cells) if is_row else ()
    return Extracts((*stored_answers, *sentences), min(sureness, default=0.0) >= _SURE, row)


def quote_for(text: str, source: Source) -> str:
    """The statement of a source that shares most with a text; empty where none shares a term.

    Args:
        text: What is to be shown in the source.
        source: The source.
    """
    candidates = _candidates(source)
    question = _weighted_question(Ask(text), candidates)
    best = max(candidates, key=lambda candidate: question.share(candidate.own), default=None)
    return cut(best.statement.text, STATEMENT_CHARS) if best is not None and question.share(best.own) > 0 else ""


def listed(sentences: Sequence[Sentence], language: str, *, answered: bool, opening: str = "") -> str:
    """The text of the answer: what it is, and the quotes with the numbers of their sources, one an item."""
    openings = OPENING if answered else NEAREST
    numbers = [dict.fromkeys(f"[{citation.number}]" for citation in sentence.citations) for sentence in sentences]
    items = [f"- {sentence.text} {''.join(marks)}" for sentence, marks in zip(sentences, numbers, strict=True)]
    return "\n".join([opening or openings[language], *(item.replace("\n", "\n  ") for item in items)])


def _named_in(name: str, candidates: Sequence[_Candidate]) -> Sequence[_Candidate]:
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
    ask: Ask, candidates: Sequence[_Candidate], spoken_of: SpokenOf
) -> tuple[_Candidate | None, list[_Candidate]]:
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


def _holds_own_words(question: str, candidate: _Candidate) -> bool:
    statement = candidate.statement
    return holds_own_words(question, f"{statement.context} {statement.group} {statement.text}")


def _own_names(sources: Sequence[Source]) -> dict[str, frozenset[str]]:
    """By document, the terms of what it calls itself or its system: in its title block, or in its first line."""
    texts: dict[str, str] = {}
    for source in sources:
        first = next((line for line in map(one_line, source.beginning.splitlines()) if line), "")
        is_title = len(first) <= _TITLE_CHARS and not _NO_TITLE.search(first)
        names = _OWN_NAME.findall(unicodedata.normalize("NFKC", f"{source.beginning}\n{source.whole_text}"))
        texts[source.document_id] = " ".join(
            [texts.get(source.document_id, ""), *names, *([first] if is_title else [])]
        )
    return {document: terms_of(text) for document, text in texts.items()}


def _without_copies(sources: Sequence[Source], question: str) -> list[Source]:
    """Sources without those whose text another document has, too, of which the original is kept by its name, or else
    the first; all where a question asks which documents say it.
    """
    if _WHICH_OF_ALL.search(question):
        return list(sources)
    kept: dict[str, Source] = {}
    for source in sources:
        text = squeezed(source.whole_text)
        first = kept.setdefault(text, source)
        if first.document_id == source.document_id or _is_called(question, first.document_id):
            continue
        if _is_called(question, source.document_id) or _is_copy_of(first.document_id, source.document_id):
            kept[text] = replace(source, rank=first.rank)
    documents = {text: source.document_id for text, source in kept.items()}
    return [
        kept[text] if source.chunk_id == kept[text].chunk_id else source
        for source in sources
        if documents[text := squeezed(source.whole_text)] == source.document_id
    ]


def _is_copy_of(document: str, other: str) -> bool:
    """Whether a document is called as another one with a word behind it that says that it is a copy or an old one."""
    name, other_name = (PurePath(path).stem for path in (document, other))
    return name.startswith(other_name) and _SAYS_COPY.fullmatch(name[len(other_name) :]) is not None


def _is_called(question: str, document: str) -> bool:
    """Whether a question has the name of the file of a document."""
    return fold_name(PurePath(document).stem) in fold_name(question)


def _candidates(
    source: Source, names: frozenset[str] = frozenset(), blocks: Sequence[PageBlock] = ()
) -> list[_Candidate]:
    name_terms = terms_held(f"{source.title} {replace(source.citation, heading=None)}") | names
    return [
        _Candidate(
            source,
            statement,
            terms_held(f"{statement.group} {statement.text}"),
            terms_held(statement.context),
            name_terms,
        )
        for statement in statements(source.whole_text, header_rows(blocks), body_rows(blocks))
    ]


def _weighted_question(ask: Ask, candidates: Sequence[_Candidate]) -> WeightedQuestion:
    own, question = terms_of(keywords(ask.text)), ask.text
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
    candidates: Sequence[_Candidate],
    sections: AskedSections,
    scorer: AnswerScorer | None,
) -> list[tuple[float, _Candidate]]:
    """The candidates that share with the question, best first, with their scores: by words, and of the first ones by
    how surely they answer, too. None of those elsewhere than the question asks for.
    """
    sources = {candidate.source.number: candidate.source for candidate in candidates}
    coverage = {number: _coverage(question.text, source) for number, source in sources.items()}
    foreign = {number for number, source in sources.items() if _is_foreign(question.text, source)}
    scored_candidates = [
        (
            _words_score(question, candidate, coverage[candidate.source.number])
            * (_EXPLAINING if sections.is_on_filling_in(*_place(candidate)) else 1.0),
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
    best_log_odds = max(log_odds)
    rescored_candidates = [
        (score - _LOG_ODDS * (best_log_odds - odds), replace(candidate, log_odds=odds))
        for (score, candidate), odds in zip(best, log_odds, strict=True)
    ]
    return _own_language_first(question.text, sorted(rescored_candidates, key=lambda pair: -pair[0]))


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


def _own_language_first(question: str, ranking: list[tuple[float, _Candidate]]) -> list[tuple[float, _Candidate]]:
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


def _place(candidate: _Candidate) -> tuple[str, int, Statement]:
    return candidate.source.document_id, candidate.source.page_number, candidate.statement


def _placed_statement(candidate: _Candidate, question: WeightedQuestion) -> PlacedStatement:
    """A candidate as it is said, with where it stands."""
    source = candidate.source
    place = f"{PurePath(source.document_id).stem} {replace(source.citation, heading=None)}"
    context = candidate.statement.context[-_CONTEXT_CHARS:]
    return PlacedStatement(_text(candidate.statement, question, _ROW_CHARS), place[:_PLACE_CHARS], context)


def _words_score(question: WeightedQuestion, candidate: _Candidate, coverage: float) -> float:
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
    question: WeightedQuestion, ranking: Sequence[tuple[float, _Candidate]], parts: int
) -> list[_Candidate]:
    """The best candidate, and others nearly as good, as far as there is room and they say something new.

    What another document says in nearly the same words is new where it differs in a figure, or where is asked which;
    other figures of another document that surely answers are said even if they come less near.
    """
    best: list[_Candidate] = []
    room = (_MANY_CHARS if question.wanted.several else _PARTS_CHARS if parts > 1 else _CHARS) // parts
    left = _MOST_ANSWER_CHARS
    for score, candidate in ranking:
        is_contrary = score >= _CONFLICTING * ranking[0][0] and _contradicts(question, candidate, best)
        if score < _NEARLY * ranking[0][0] and not is_contrary:
            continue
        is_sibling = is_contrary or (score >= _SIBLING * ranking[0][0] and _is_sibling(question, candidate, best))
        length = len(_text(candidate.statement, question))
        new = is_sibling or not any(_repeats(candidate, better, several=question.wanted.several) for better in best)
        is_tied = score >= _TIED * ranking[0][0]
        if not best or (new and length <= (left if is_sibling else room + _TIED_CHARS * is_tied)):
            best.append(candidate)
            room -= length
            left -= length
    return best


def _repeats(candidate: _Candidate, better: _Candidate, *, several: bool) -> bool:
    """Whether a candidate says nothing new; of several things asked for, each row of a table is one."""
    own, better_statement = candidate.statement, better.statement
    headers = [[header for header, _ in statement.cells] for statement in (own, better_statement)]
    if several and headers[0] and headers[0] == headers[1] and candidate.source.page_id == better.source.page_id:
        return (own.group, own.text) == (better_statement.group, better_statement.text)
    alike = len(candidate.own & better.own) >= _SAME * len(candidate.own)
    return alike or (not several and better_statement.text in own.text)


def _answering_part(
    question: WeightedQuestion, ranking: Sequence[tuple[float, _Candidate]], best: _Candidate
) -> _Candidate:
    """Of a long list, where one thing is asked for, the sentence or row that answers about as surely; else the list."""
    if (
        question.wanted.several
        or best.statement.kind is not StatementKind.LIST
        or len(best.statement.text) <= _LONG_LIST
    ):
        return best
    text = squeezed(best.statement.text)
    for score, candidate in ranking[1:]:
        is_part = candidate.source.page_id == best.source.page_id and squeezed(candidate.statement.text) in text
        is_told = candidate.statement.kind in {StatementKind.SENTENCE, StatementKind.ROW}
        is_as_sure = score >= _PART_SCORE * ranking[0][0] and candidate.log_odds >= best.log_odds - _PART_LOG_ODDS
        if is_part and is_told and is_as_sure:
            return candidate
    return best


def _completed(candidate: _Candidate) -> _Candidate:
    """A short sentence with the one after it, in which what it says is often told."""
    statement = candidate.statement
    if len(statement.text) > _SHORT_CHARS or not 0 < len(statement.following) <= _COMPLETING_CHARS:
        return candidate
    text = f"{statement.text}{'' if is_japanese(statement.text) else ' '}{statement.following}"
    return replace(candidate, statement=replace(statement, text=text, following=""))


def _is_said_by(first: _Candidate, candidate: _Candidate) -> bool:
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


def _stands_out(ranking: Sequence[tuple[float, _Candidate]]) -> bool:
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
    best: Sequence[_Candidate],
    sources: Sequence[Source],
    blocks_of: PageBlocks,
    beside: Callable[[Source], Sequence[Source]],
) -> list[_Candidate]:
    """Candidates, the first with all of the section, list or table that it is of, as far as passages of the page hold
    it, the others as far as they are not of it and there is room.
    """
    first, *other_candidates = best
    source, known_lines = first.source, first.statement.lines or (first.statement.text,)
    blocks = blocks_of(source.document_id, source.page_number)
    is_lead = bool(first.statement.lines) and not (question.wanted.several and ITEM.match(known_lines[0]))
    of_page = [holder for holder in sources if holder.page_id == source.page_id]
    is_row = first.statement.kind is StatementKind.ROW  # which passages hold in several forms
    for lines in standing_together(known_lines, blocks, _WHOLE_CHARS, is_lead=is_lead):
        held_lines = _held_lines(lines, source, of_page)
        if len(held_lines) < len(lines):
            held_lines = _held_lines(lines, source, [*of_page, *beside(source)])
        held_text = squeezed("".join(line for _, line in held_lines))
        is_more = len(held_lines) > max(1, len(first.statement.lines))
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
    rest = [
        candidate
        for candidate in other_candidates
        if candidate.source.page_id != source.page_id or squeezed(candidate.statement.text) not in held_text
    ]
    room = _MOST_ANSWER_CHARS - sum(map(len, lines))
    lengths = accumulate(len(candidate.statement.text) for candidate in rest)
    return [whole, *(candidate for candidate, length in zip(rest, lengths, strict=True) if length <= room)]


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


def _is_sibling(question: WeightedQuestion, candidate: _Candidate, best: Sequence[_Candidate]) -> bool:
    """Whether another document says nearly what is said already, and the difference may be what is asked."""
    alike = [better for better in best if _alike(better, candidate) >= _ALIKE]
    if not alike or any(better.source.document_id == candidate.source.document_id for better in best):
        return False
    figures = {item.statement.text: {*NUMBERED.findall(item.statement.text)} for item in (*alike, candidate)}
    own = figures[candidate.statement.text]
    if any(not (own <= figures[better.statement.text] or figures[better.statement.text] <= own) for better in alike):
        return True
    is_said = any(squeezed(candidate.statement.text) in squeezed(better.statement.text) for better in best)
    return bool((_WHICH_OF_ALL if is_said else _WHICH_ASKED).search(question.text))


def _alike(first: _Candidate, second: _Candidate) -> float:
    """Jaccard coefficient of the terms of two statements."""
    return len(first.own & second.own) / (len(first.own | second.own) or 1)


def _contradicts(question: WeightedQuestion, candidate: _Candidate, best: Sequence[_Candidate]) -> bool:
    """Whether another document surely answers, too, with other figures of a unit than the best statement."""
    if not best or question.wanted.several or not (question.wanted.measured or _WHEN.search(question.text)):
        return False
    first, own = best[0], _measures(candidate.statement.text)
    if candidate.log_odds < max(_READ_SURELY, first.log_odds - _CONFLICTING_LOG_ODDS) or any(
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


def _sureness(
    question: WeightedQuestion,
    ranking: Sequence[tuple[float, _Candidate]],
    candidates: Sequence[_Candidate],
    *,
    is_part: bool,
) -> float:
    """How sure it is that the best of ranked candidates answers; from `_SURE` it is taken for an answer.

    How it stands out does not count for a part of a question, which may ask for more than it says.
    """
    (score, best), *rest = ranking
    lead = 1 - rest[0][0] / score if rest and score > 0 else 0.0
    passage = [candidate for candidate in candidates if candidate.source.document_id == best.source.document_id]
    held_terms = _terms_of_document(best, passage)
    lacks = _lacks_identifier(question, best, held_terms)
    quotes = map(terms_of, QUOTED.findall(question.text))
    names = (pattern.findall(keywords(question.text)) for pattern in (_LONG_WORD, _TABLE_IN_LATIN))
    long_words = (terms_of(name) for found in names for name in found)
    lacks_word = any(len(terms & held_terms) < _HELD_SHARE * len(terms) for terms in quotes)
    lacks_word = lacks_word or any(terms.isdisjoint(held_terms) for terms in long_words)
    called = f"{best.source.document_id}\n{best.source.title}\n{best.source.beginning}"
    texts = dict.fromkeys(candidate.source.whole_text for candidate in passage)
    lacks = lacks or _is_of_another_number(question.text, "\n".join(texts), called)
    if is_foreign := _is_foreign(question.text, best.source):  # where abbreviations are the same
        plain = unicodedata.normalize("NFKC", question.text)
        is_shouted = plain.isascii() and plain.isupper()
        abbreviations = set() if is_shouted else {name.lower() for name in _ABBREVIATION.findall(plain)}
        held = fold_name("\n".join((called, *texts)))
        lacks = lacks or (bool(abbreviations) and not any(name in held for name in abbreviations))
    coverage = _coverage(question.text, best.source)
    lacks_word = lacks_word and best.log_odds < _READ_SURELY and not is_foreign
    taken_off = (
        _LACKING * lacks + _LACKING_WORD * lacks_word + _LACKING_VALUE * question.wanted.lacks_value(best.statement)
    )
    says_little = question.wanted.several or question.repeats(best.own, best.statement)
    key_score = 0.0 if says_little else question.keyed(best.statement)
    distinction = _SURE_PART if is_part else _SURE_KEYED * key_score + _SURE_LEAD * max(0.0, lead - _USUAL_LEAD)
    return (
        coverage
        + _SURE_LOG_ODDS * best.log_odds
        - _SURE_RANK * math.log(max(1, best.source.rank))
        + (-taken_off if taken_off else distinction)
    )


def _terms_of_document(best: _Candidate, passage: Sequence[_Candidate]) -> frozenset[str]:
    """The terms that the name, the beginning and the passages found of a document hold."""
    held_terms = best.named.union(
        terms_held(best.source.beginning), *(candidate.own | candidate.above for candidate in passage)
    )
    return held_terms | {term.lstrip("0") for term in held_terms if term.isdecimal()}


def _lacks_identifier(question: WeightedQuestion, best: _Candidate, held_terms: Set[str]) -> bool:
    """Whether an identifier of the question stands nowhere in a document, and is not of the series of one that does."""
    path = _WRITTEN_DATE.sub(r"\1 \2 \3", unicodedata.normalize("NFKC", best.source.document_id).lower())
    identifiers = [term for term in question.weights if term_kind(term) == TermKind.IDENTIFIER]
    known_identifiers = [
        term
        for term in identifiers
        if any(name in held_terms or _stands_within(name, path) for name in _names_of(term))
    ]
    return any(
        not any(identifier.startswith(term) for identifier in known_identifiers)
        for term in identifiers
        if term not in known_identifiers
    )


def _holding_identifiers_first(
    question: WeightedQuestion, ranking: list[tuple[float, _Candidate]], candidates: Sequence[_Candidate]
) -> list[tuple[float, _Candidate]]:
    """A ranking whose best candidate is of a document that lacks an identifier of the question, with those of the first
    document first that lacks none and is about as good.
    """
    for score, candidate in ranking:
        if score < _HOLDING * ranking[0][0]:
            break
        document = candidate.source.document_id
        passage = [other for other in candidates if other.source.document_id == document]
        if not _lacks_identifier(question, candidate, _terms_of_document(candidate, passage)):
            if candidate is ranking[0][1]:
                break
            of_document = [pair for pair in ranking if pair[1].source.document_id == document]
            return [*of_document, *(pair for pair in ranking if pair[1].source.document_id != document)]
    return ranking


def _is_of_another_number(question: str, text: str, called: str) -> bool:
    """Whether a document is called by another number of a series than the question names, as 「第8回」, and its text
    has the one asked for in no form.
    """
    asked, own = (set(_NUMBERED_NAME.findall(unicodedata.normalize("NFKC", part))) for part in (question, called))
    plain = unicodedata.normalize("NFKC", f"{called}\n{text}")
    for number, unit in asked:
        value = int(number) if number.isdecimal() else KANJI_NUMBERS.index(number) + 1
        kanji = KANJI_NUMBERS[value - 1] if 0 < value <= len(KANJI_NUMBERS) else number
        held = rf"(?<![\d.])0*{value}(?:\s?{unit}|\.0\b)|{kanji}\s?{unit}|(?:^|\| )0*{value}(?: \||$)"
        is_range = rf"\d\s?{unit}?\s?[〜~～から-]+\s?第?\s?\d+\s?{unit}"
        if any(unit == other for _, other in own) and not re.search(f"{held}|{is_range}", plain, re.MULTILINE):
            return True
    return False


def _names_of(identifier: str) -> tuple[str, ...]:
    """An identifier, and of one that says what it numbers, as `id115`, the number alone."""
    match = _LABELLED_NUMBER.fullmatch(identifier)
    return (identifier, match[1]) if match else (identifier,)


def _stands_within(identifier: str, path: str) -> bool:
    """Whether a path holds an identifier, also as part of a longer one: `money_nest` in `money_nest_app`, but neither
    `ab1` in `ab12` nor `1.2` in `1.2.3`.
    """
    before, after = (r"\d" if end.isdigit() else r"[^\W\d_]" for end in (identifier[0], identifier[-1]))
    alone = rf"(?<!{before})(?<!\d[.-]){re.escape(identifier)}(?!{after})(?![.-]\d)"
    return re.search(alone, path) is not None


def _coverage(question: str, source: Source) -> float:
    """Share of a question's content words in a passage, or where its document begins, which says what it is of; rare
    ones count no more, as measured.
    """
    words = dict.fromkeys(content_words(keywords(question)))
    text = "\n".join((source.title, str(source.citation), source.whole_text, source.beginning))
    shares = shares_held(list(words), together("\n".join((text, *years_otherwise(text)))))
    if _is_foreign(question, source):
        is_translated = is_wide if is_asked_in_japanese(question) else _is_plain
        shares = [
            max(share, _FOREIGN_HELD) if is_translated([word]) else share
            for word, share in zip(words, shares, strict=True)
        ]
    return sum(shares) / (len(words) or 1)


def _is_foreign(question: str, source: Source) -> bool:
    """Whether a question is asked in another language than a passage is written in, so that they share few words."""
    if is_asked_in_japanese(question):
        return not is_japanese(f"{source.title} {source.beginning} {source.whole_text}")
    return is_ideographic(source.whole_text)


def _is_plain(words: list[tuple[str, ...]]) -> bool:
    """Whether words are of letters only, no names of fields or figures."""
    return all(term.isalpha() for word in words for term in word)


def _sentence(candidate: _Candidate, question: WeightedQuestion, *, names_document: bool) -> Sentence:
    """What is said of a candidate, after the name of its document where several are compared."""
    quote = cut(candidate.statement.text, _MOST_CHARS[candidate.statement.kind])
    citations = [SentenceCitation(candidate.source.number, quote, stands_in(quote, candidate.source.whole_text))]
    text = _text(candidate.statement, question)
    lacks = [value for _, value in candidate.statement.cells if one_line(value) not in text]
    if any(not NOTHING.fullmatch(value) and not asks(value) for value in lacks) and text[-1:] != "…":
        text += f"{_CELL}…"
    for source, items in groupby(candidate.continued, key=lambda pair: pair[0]):
        quote = cut(" ".join(item for _, item in items if item in text), STATEMENT_CHARS)
        citations += [SentenceCitation(source.number, quote, stands_in(quote, source.whole_text))] if quote else []
    return Sentence(
        f"{PurePath(candidate.source.document_id).stem}: {text}" if names_document else text, tuple(citations)
    )


def _text(statement: Statement, question: WeightedQuestion, row_chars: int | None = None) -> str:
    """A statement as it is said: a row with its header, a list line by line, and what goes on with `…`."""
    if statement.kind is StatementKind.LIST:
        is_wanted = statement.is_whole or question.wanted.several
        return _list(statement.lines, _WHOLE_CHARS if is_wanted else _LIST_CHARS)
    room = row_chars or (_ROW_OF_SEVERAL_CHARS if question.wanted.several else _ROW_CHARS)
    whole = _row(statement, question, room) if statement.kind is StatementKind.ROW else statement.text
    part = cut(whole, max(room, _MOST_CHARS[statement.kind]))
    return part if part == whole else f"{part}…"


def _list(lines: Sequence[str], room: int) -> str:
    """Lines, the long ones cut where all have room then; else as far as there is room."""
    most = next((most for most in _ITEM_CHARS if sum(min(len(line), most) + 1 for line in lines) <= room), None)
    if most is not None:
        return "\n".join(line if len(line) <= most else f"{cut(line, most, strictly=True)}…" for line in lines)
    parts: list[str] = []
    for line in lines:
        part = cut(line, room) if room > 0 else ""
        parts.append(part)
        room -= len(part) + 1
        if part != line:
            return "\n".join(filter(None, parts)) + "…"
    return "\n".join(parts)


def _row(statement: Statement, question: WeightedQuestion, room: int) -> str:
    """The cells of a row with their headers, behind what heads its group where that is asked for; of a wide one those
    that share most with the question.
    """
    group = f"{statement.group}{_CELL}" if question.share(terms_of(statement.group)) > 0 else ""
    if not any(header for header, _ in statement.cells):
        return f"{group}{statement.text}"
    cells = [(header, value) for header, value in statement.cells if not NOTHING.fullmatch(value)]
    columns = Counter(part for header, _ in statement.cells for part in {*header.split(" > ")})
    texts = [one_line(f"{_column(header, columns)}: {value}" if header else value) for header, value in cells]
    shares = _cell_shares(question, cells)
    order = sorted(range(len(cells)), key=lambda place: (-shares[place], len(texts[place])))
    chosen_places: set[int] = set()
    for place in order:
        if not chosen_places or len(texts[place]) <= room:
            chosen_places.add(place)
            room -= len(texts[place]) + len(_CELL)
    return f"{group}{_CELL.join(texts[place] for place in sorted(chosen_places))}"


def _column(header: str, columns: Mapping[str, int]) -> str:
    """The name of a column: the lowest part of its header that stands in no other one, as that of a part of the table
    does, with a mere sign below it, as `％` is; all of it where there is none.
    """
    parts = header.split(" > ")
    told_apart = (at for at, part in enumerate(parts) if columns[part] == 1 and _LETTER.search(part))
    place = max(told_apart, default=None)
    if place is None:
        return " ".join(parts)
    return " ".join([parts[place], *(part for part in parts[place + 1 :] if not _LETTER.search(part))])


def _cell_shares(question: WeightedQuestion, cells: Sequence[tuple[str, str]]) -> list[float]:
    """How much each cell of a row has to do with the question: by the terms that it holds, and by those of its header
    that no value of the row holds, as the question asks for their values; less by one that several headers have.
    """
    headers, values = ([terms_of(cell[part]) for cell in cells] for part in (0, 1))
    missing_terms = question.weights.keys() - frozenset[str]().union(*values)
    weights = {term: TERM_WEIGHTS[term_kind(term)] for term in missing_terms}
    total = math.fsum(weights.values()) or 1.0
    columns = Counter(term for header in headers for term in header)
    shares = []
    for (label, value), header, value_terms in zip(cells, headers, values, strict=True):
        is_asked = question.wanted.is_asked(label) or (
            question.wanted.date and FULL_DATE.search(unicodedata.normalize("NFKC", value))
        )
        header_share = math.fsum(weights[term] / columns[term] for term in header & missing_terms) / total
        shares.append(question.share(header) + question.share(value_terms) + header_share + bool(is_asked))
    return shares


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
