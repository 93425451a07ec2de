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
(`wanted`), how statements are ranked (`ranking`), how sure the best one is (`sureness`), how much of a list is said
(`lists`), and how statements are said (`said`).
"""

import math
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import NamedTuple

from rag_assets.contracts.ports import AnswerScorer
from rag_assets.query.ask.answers import Sentence, SentenceCitation, Source
from rag_assets.query.ask.quoted.asked_sections import AskedSections
from rag_assets.query.ask.quoted.candidates import WHICH_OF_ALL, Candidate, candidates_of, own_names, without_copies
from rag_assets.query.ask.quoted.lists import answering_part, is_of_list, stands_out, with_whole_list
from rag_assets.query.ask.quoted.page_sections import EDITION, PageBlocks, edition_above
from rag_assets.query.ask.quoted.passage_lines import STATEMENT_CHARS
from rag_assets.query.ask.quoted.ranking import ALIKE, SAME_QUESTION, TIED, dice, ranked, weighted_question
from rag_assets.query.ask.quoted.said import MOST_ANSWER_CHARS, sentence_of, text_of
from rag_assets.query.ask.quoted.spoken_of import SpokenOf, columns_of, holds_own_words
from rag_assets.query.ask.quoted.statements import StatementKind
from rag_assets.query.ask.quoted.sureness import READ_SURELY, SURE, SURE_BESIDE, holding_identifiers_first, sureness_of
from rag_assets.query.ask.quoted.wanted import NUMBERED, WeightedQuestion, number_counted, quotes_explained, terms_of
from rag_assets.query.ask.quotes import stands_in
from rag_assets.query.results import FoundQuestion
from rag_assets.query.search.composite import Ask
from rag_assets.query.search.rewriting_rules import asks_of_the_same, keywords
from rag_assets.text.cells import CELL_SIGN
from rag_assets.text.language import cut, is_japanese
from rag_assets.text.plain import announces, one_line, squeezed

OPENING = {"ja": "資料の記載:", "en": "From the documents:"}
NEAREST = {
    "ja": "質問への答えと言い切れる記載はありません。最も近い記載:",
    "en": "No passage surely answers the question. The nearest:",
}
_ONE_PART_UNSURE = {
    "ja": "「{part}」への答えとは言い切れません。",
    "en": "Whether “{part}” is answered is not sure.",
}
_PART_CHARS = 60  # of a part of a question that is told of
_MOST = 4  # statements
_MOST_OF_SEVERAL = 8  # where several things are asked for
_MOST_NEAR = 2  # of those that are only near to the question
_CHARS = 320  # of all that is said to a question for one thing
_MANY_CHARS = 800  # for several
_PARTS_CHARS = 560  # for the parts of a question that ask for one thing each
_TIED_CHARS = 240
_SHORT_CHARS = 80  # of a sentence that is said with the next one
_COMPLETING_CHARS = 120
_ALL_ASKED = re.compile(r"全部|すべて|全て|全員|一覧|それぞれ|各|列挙|挙げ|\b(?:all|every|each|list)\b", re.IGNORECASE)
_NEARLY = 0.68  # of the best score, from which another statement is said, too
_ALSO_READ = 2.0  # log odds from which another statement is said beside the best
_PROVISO = re.compile(r"ただし|但し|を除[くい]|以外|\b(?:except|unless|however|excluding)\b", re.IGNORECASE)
_LESS_READ = 2.0  # below those of the best, from which it is, where that is less
_SAME = 0.9  # share of its terms that another one holds, from which a statement says nothing new
_EDITION_ASKED = re.compile(  # or when a change was made
    r"(?:どの|何の?|いつの)(?:版|バージョン|リリース)|た(?:版|バージョン|リリース)(?:は|と|を|って)"
    r"|いつ[^。]{0,30}(?:変更|変わ|追加|足|修正|直|対応|導入|廃止|削除|改[定訂])[^。]{0,6}(?:した|された|った|ました)"
    r"|\b(?:in|since|from|with|as of) (?:which|what) (?:release|version)\b|\b(?:which|what) (?:release|version) \w+ed\b"
    r"|\bwhen (?:was|were|did)\b[^.?]{0,120}\b(?:add|chang|fix|introduc|correct|remov|updat|deprecat|support)",
    re.IGNORECASE,
)
_LEAST_JOINED = 2  # characters of a name
_JOINS = r"[」』\"]?(?:と|や|、|・|および|及び|,? and )[「『\"]?"
_NOT_TOGETHER = re.compile(r"どちら|どっち|以外|ほか|他の|除[いく]|比べ|\b(?:which|or|except|other|than)\b")
_SIBLING = 0.9  # of the best score, from which the like statement of another document is said, too
_MOST_WHOLE_CHARS = 600  # of all that the best statement is of, where one thing is asked for and it says one by itself
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


class Extracts(NamedTuple):
    """What sources state that answers a question."""

    sentences: tuple[Sentence, ...]  # statements, part by part, the best first
    answers: bool  # whether they may answer: not where they are only near to the question
    row: tuple[str, ...] = ()  # the cells of the first one, where it is a row of a table that a whole question asks for
    of_table: bool = False  # the first one has rows of a table, which a whole question asks for
    opening: str = ""  # that a part of the question may not be answered; empty for the usual words


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
            said = sentence_of(wanted_row, weighted_question(asks[0], candidates), names_document=False)
            return Extracts((said,), answers=True, row=tuple(value for _, value in wanted_row.statement.cells))
    choices: dict[tuple[str, str], tuple[Candidate, WeightedQuestion]] = {}
    ask_of: dict[tuple[str, str], Ask] = {}
    stored_answers: list[Sentence] = []
    sureness = []
    for ask in asks:
        question = weighted_question(ask, candidates)
        called = _named_in(ask.name, candidates)
        page_names = {
            (source.document_id, source.page_number): source.page_name or ""
            for source in (candidate.source for candidate in called)
        }
        ranking = ranked(question, called, AskedSections(question.text, page_names, blocks_of), scorer)
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
            first = _completed(answering_part(question, ranking, best[0], scorer))
            best = [first, *(candidate for candidate in best[1:] if not _is_said_by(first, candidate))]
        if is_sure and len(asks) < 2:
            best = _with_list(question, ranking, best, sources, blocks_of, beside)
            best = _with_rows_named_beside(question, best, candidates)
            best[0] = _with_edition(question, best[0], blocks_of)
        for candidate in best[: max(0, most)]:
            key = candidate.source.document_id, text_of(candidate.statement, question)
            choices.setdefault(key, (candidate, question))
            ask_of.setdefault(key, ask)
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
    is_sure = max(sureness, default=0.0) >= SURE and min(sureness) >= (SURE_BESIDE if len(asks) > 1 else SURE)
    if len(asks) > 1 and is_sure:
        sure_of = dict(zip(asks, (sure >= SURE for sure in sureness), strict=True))
        sure_first = sorted(zip(ask_of.values(), sentences, strict=True), key=lambda pair: not sure_of[pair[0]])
        return Extracts(
            (*stored_answers, *(each for _, each in sure_first)), answers=True, opening=_part_unsure(sure_of)
        )
    if len(asks) > 1 or stored_answers or not picks:
        return Extracts((*stored_answers, *sentences), is_sure)
    first_statement = picks[0].statement
    row = first_statement.cells if first_statement.kind is StatementKind.ROW else ()
    of_table = any(CELL_SIGN in line for line in first_statement.lines)
    return Extracts(tuple(sentences), is_sure, tuple(value for _, value in row), of_table)


def _part_unsure(sure_of: Mapping[Ask, bool]) -> str:
    """What stands above quotes of which those for a part of the question may not answer it; empty where all do."""
    language = "ja" if is_japanese(next(iter(sure_of)).text) else "en"
    unsure = next((one_line(ask.text).strip(" ?？。") for ask, is_sure in sure_of.items() if not is_sure), "")
    note = _ONE_PART_UNSURE[language].format(part=cut(unsure, _PART_CHARS))
    return f"{note}\n{OPENING[language]}" if unsure else ""


def quote_for(text: str, source: Source) -> str:
    """The statement of a source that shares most with a text; empty where none shares a term.

    Args:
        text: What is to be shown in the source.
        source: The source.
    """
    candidates = candidates_of(source)
    question = weighted_question(Ask(text), candidates)
    best = max(candidates, key=lambda candidate: question.share(candidate.own), default=None)
    return cut(best.statement.text, STATEMENT_CHARS) if best is not None and question.share(best.own) > 0 else ""


def listed(sentences: Sequence[Sentence], language: str, *, answered: bool, opening: str = "") -> str:
    """The text of the answer: what it is, and the quotes with the numbers of their sources, one an item."""
    openings = OPENING if answered else NEAREST
    numbers = [dict.fromkeys(f"[{citation.number}]" for citation in sentence.citations) for sentence in sentences]
    items = [f"- {sentence.text} {''.join(marks)}" for sentence, marks in zip(sentences, numbers, strict=True)]
    return "\n".join([opening or openings[language], *(item.replace("\n", "\n  ") for item in items)])


def _with_list(
    question: WeightedQuestion,
    ranking: Sequence[tuple[float, Candidate]],
    best: list[Candidate],
    sources: Sequence[Source],
    blocks_of: PageBlocks,
    beside: Callable[[Source], Sequence[Source]],
) -> list[Candidate]:
    """Candidates, the first with all of the list that it is of where that answers; where one thing is asked for, of a
    long one the part that was read as answering about as surely.
    """
    asks_for_all = _ALL_ASKED.search(question.text) is not None or number_counted(question.text) is not None
    if not is_of_list(question, best[0].statement) or (stands_out(ranking) and not asks_for_all):
        return best
    whole = with_whole_list(question, best, sources, blocks_of, beside)
    is_short = sum(map(len, whole[0].statement.lines)) <= _MOST_WHOLE_CHARS
    if is_short or asks_for_all or question.wanted.several:
        return whole
    part = answering_part(question, ranking, whole[0], None)
    if part is whole[0]:
        return whole if announces(best[0].statement.text) else best
    return [part, *(candidate for candidate in whole[1:] if not _is_said_by(part, candidate))]


def _with_edition(question: WeightedQuestion, candidate: Candidate, blocks_of: PageBlocks) -> Candidate:
    """A statement of a history with the version or date that it is of, where that is asked for and it has none."""
    statement, source = candidate.statement, candidate.source
    is_asked = statement.kind is not StatementKind.ROW and _EDITION_ASKED.search(question.text) is not None
    if not is_asked or EDITION.search(statement.text):
        return candidate
    said = statement.lines or (statement.text,)
    return replace(candidate, edition=edition_above(said, blocks_of(source.document_id, source.page_number)))


def _with_rows_named_beside(
    question: WeightedQuestion, best: Sequence[Candidate], candidates: Sequence[Candidate]
) -> list[Candidate]:
    """Candidates, behind the first, a row, others of its table that the question names with it, as 「AとBの…」; by
    the column that tells the rows apart.
    """
    first, *others = best
    text = unicodedata.normalize("NFKC", question.text).casefold()
    if first.statement.kind is not StatementKind.ROW or _NOT_TOGETHER.search(text):
        return [*best]
    headers = [header for header, _ in first.statement.cells]
    rows = [
        candidate
        for candidate in candidates
        if candidate.source.page_id == first.source.page_id
        and candidate.statement.kind is StatementKind.ROW
        and [header for header, _ in candidate.statement.cells] == headers
    ]
    cells = [[unicodedata.normalize("NFKC", value).casefold() for _, value in row.statement.cells] for row in rows]
    own = next((at for at, row in enumerate(rows) if row.statement == first.statement), None)
    for place in range(len(headers)) if own is not None else ():
        column = [row_cells[place] for row_cells in cells]
        named = [at for at, cell in enumerate(column) if len(cell) >= _LEAST_JOINED and cell in text]
        if own not in named or len({column[at] for at in named}) < len({rows[at].statement.text for at in named}):
            continue  # of no row alone
        added = [rows[at] for at in named if at != own and re.search(_joined(column[own], column[at]), text)]
        if added:
            return [first, *added, *(candidate for candidate in others if candidate not in added)]
    return [*best]


def _joined(name: str, other: str) -> str:
    """Pattern of two names that a question joins."""
    first, second = (rf"(?<![a-z\d]){re.escape(word)}(?![a-z\d])" for word in (name, other))
    return f"{first}{_JOINS}{second}|{second}{_JOINS}{first}"


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
    left = MOST_ANSWER_CHARS
    least_log_odds = _least_log_odds(question, ranking[0][1]) if ranking else 0.0
    if ranking and ranking[0][1].defines and quotes_explained(question.text):
        ranking = [pair for pair in ranking if pair[1].defines]
    for score, candidate in ranking:
        is_contrary = score >= _CONFLICTING * ranking[0][0] and _contradicts(question, candidate, best)
        if score < _NEARLY * ranking[0][0] and not is_contrary:
            continue
        is_sibling = is_contrary or (score >= _SIBLING * ranking[0][0] and _is_sibling(question, candidate, best))
        length = len(text_of(candidate.statement, question))
        new = is_sibling or not any(_repeats(candidate, better, several=question.wanted.several) for better in best)
        is_tied = score >= TIED * ranking[0][0]
        is_read = candidate.log_odds >= least_log_odds or _PROVISO.search(candidate.statement.text) is not None
        is_read = is_read or is_tied or is_sibling
        is_read = is_read and not (best and _is_unnamed_row(question, candidate, best[0]))
        if not best or (new and is_read and length <= (left if is_sibling else room + _TIED_CHARS * is_tied)):
            best.append(candidate)
            room -= length
            left -= length
    return best


def _is_unnamed_row(question: WeightedQuestion, candidate: Candidate, first: Candidate) -> bool:
    """Whether the first candidate is a row that the question names, and another one of its table is not named."""
    own, named = candidate.statement, first.statement
    headers = [[header for header, _ in statement.cells] for statement in (own, named)]
    are_rows = own.kind is named.kind is StatementKind.ROW and headers[0] == headers[1]
    is_one_asked = are_rows and first.source.page_id == candidate.source.page_id and not question.wanted.several
    return is_one_asked and question.keyed(own) < question.keyed(named)


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


def _is_sibling(question: WeightedQuestion, candidate: Candidate, best: Sequence[Candidate]) -> bool:
    """Whether another document says nearly what is said already, and the difference may be what is asked."""
    alike = [better for better in best if _alike(better, candidate) >= ALIKE]
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


def _stored_answers(question_terms: frozenset[str], sources: Sequence[Source]) -> list[Sentence]:
    """Answer of the stored question that asks the same, where there is one."""
    matches: list[tuple[float, int, Source, FoundQuestion]] = []
    for source in sources:
        for question in source.questions:
            terms = terms_of(keywords(question.question))
            alike = dice(question_terms, terms)
            if alike >= SAME_QUESTION and question.answer.strip():
                matches.append((-alike, source.number, source, question))
    if not matches:
        return []
    _, _, source, best = min(matches, key=lambda match: match[:2])
    answer = one_line(best.answer)
    quote = answer if stands_in(answer, source.whole_text) else quote_for(answer, source)
    citation = SentenceCitation(source.number, quote, stands_in(answer, source.whole_text))
    return [Sentence(f"{best.question} {answer}", (citation,))]
