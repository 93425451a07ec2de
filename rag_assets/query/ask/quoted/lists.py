"""How much of a list is said: all that the best statement is of, or the part of a long list that answers.

What stays out: which statement is the best (`rag_assets.query.ask.quoted.extracts`), and what stands together on a page
(`rag_assets.query.ask.quoted.page_sections`).
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import accumulate, chain

from rag_assets.contracts.ports import AnswerScorer
from rag_assets.query.ask.answers import Source
from rag_assets.query.ask.quoted.candidates import Candidate
from rag_assets.query.ask.quoted.item_marks import ITEM
from rag_assets.query.ask.quoted.page_sections import (
    PageBlocks,
    cells_of,
    numbered_sections,
    section_names,
    standing_together,
)
from rag_assets.query.ask.quoted.passage_lines import split_cells, together, without_empty_rows
from rag_assets.query.ask.quoted.ranking import NEGATION, placed_statement
from rag_assets.query.ask.quoted.said import MOST_ANSWER_CHARS, WHOLE_CHARS
from rag_assets.query.ask.quoted.statements import RESTRICTS, Statement, StatementKind
from rag_assets.query.ask.quoted.wanted import WeightedQuestion, is_named, number_counted, terms_of
from rag_assets.text.cells import CELL_SIGN
from rag_assets.text.folding import fold_name
from rag_assets.text.plain import announces, one_line, squeezed

_STANDS_OUT = 0.9  # of the score of a row, below which those beside it are not asked for
_BEGINS_BEFORE = 2  # lines before the first of a list, of one that begins in another passage
_LONG_LIST = 200  # characters of one of which a part is said where that answers about as surely
_PART_SCORE = 0.7  # of its score
_PART_LOG_ODDS = 2.0  # below those of the list
_WINDOW_CHARS = 120  # of lines of one that are read together
_WINDOW_LINES = 12
_WINDOWS_READ = 16  # those that share most with the question
_LEAST_WHOLE = 2  # lines, of which the first announces the others
_SECTION = re.compile(r"(?P<outer>\d+(?:[.．]\d+)*)[.．](?P<last>\d+)[.．]?\s")


def answering_part(
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
    text = squeezed("".join(best.statement.lines) or best.statement.text)
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
        log_odds = scorer.score(question.text, [placed_statement(window, question) for window in windows]).tolist()
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
    if announces(lead) or NEGATION.search(lead):
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


def is_of_list(question: WeightedQuestion, best: Statement) -> bool:
    """Whether all that the best statement is of answers: several things are asked for, and not of the row that the
    question names, or it is a list, and no number is asked for.
    """
    is_named = question.keyed(best) or any(value.isdecimal() and value in question.weights for _, value in best.cells)
    is_lead = any(map(announces, best.lines or (best.text,)))
    is_lead = is_lead or any(ITEM.match(line) or CELL_SIGN in line for line in best.lines[1:])
    is_lead = is_lead and best.kind in {StatementKind.LIST, StatementKind.SENTENCE}
    return (question.wanted.several and not is_named) or (is_lead and not question.wanted.measured)


def stands_out(ranking: Sequence[tuple[float, Candidate]]) -> bool:
    """Whether the best candidate is a row whose score is well above those of the others of its page that were found."""
    (score, best), *rest = ranking
    others = [
        other
        for other, candidate in rest
        if candidate.source.page_id == best.source.page_id and best.statement.text not in candidate.statement.text
    ]
    return best.statement.kind is StatementKind.ROW and bool(others) and max(others) < _STANDS_OUT * score


def with_whole_list(
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
    if _ends_before_section(first):
        return list(best)
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
    room = MOST_ANSWER_CHARS - sum(map(len, lines))
    lengths = accumulate(len(candidate.statement.text) for candidate in rest)
    return [whole, *(candidate for candidate, length in zip(rest, lengths, strict=True) if length <= room)]


def _ends_before_section(candidate: Candidate) -> bool:
    """Whether a statement is a list with the line that announces it, and below it in its passage stands the number of
    the section that follows the one above (8.2 after 8.1).
    """
    lines, of_passage = candidate.statement.lines, _lines_of(candidate.source)
    if len(lines) <= _LEAST_WHOLE or not announces(lines[0]) or lines[-1] not in of_passage:
        return False
    last = len(of_passage) - 1 - of_passage[::-1].index(lines[-1])
    first = max(0, last + 1 - len(lines))
    above = next(filter(None, map(_SECTION.match, reversed(of_passage[: first + 1]))), None)
    below = next(map(_SECTION.match, of_passage[last + 1 : last + 2]), None)
    if above is None or below is None:
        return False
    return below["outer"] == above["outer"] and int(below["last"]) == int(above["last"]) + 1


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
