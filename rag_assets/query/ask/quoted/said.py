"""Statements as they are said: rows with the names of their columns, lists line by line, and what goes on with `…`.

What stays out: which are said (`rag_assets.query.ask.quoted.extracts`).
"""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import PurePath

from rag_assets.query.ask.answers import Sentence, SentenceCitation
from rag_assets.query.ask.quoted.candidates import Candidate
from rag_assets.query.ask.quoted.passage_lines import STATEMENT_CHARS
from rag_assets.query.ask.quoted.statements import Statement, StatementKind
from rag_assets.query.ask.quoted.wanted import NOTHING, TERM_WEIGHTS, WeightedQuestion, term_kind, terms_of
from rag_assets.query.ask.quotes import stands_in
from rag_assets.text.cells import CELL_SIGN
from rag_assets.text.folding import FULL_DATE
from rag_assets.text.language import cut
from rag_assets.text.plain import asks, one_line

_LIST_CHARS = 450
WHOLE_CHARS = 900  # of a section, list or table that is said whole
MOST_ANSWER_CHARS = 1_100  # of all that is said, with what other documents say in nearly the same words
_ITEM_CHARS = (WHOLE_CHARS, 160, 120, 80)  # of each item of a list that has more
_MOST_CHARS = dict.fromkeys(StatementKind, STATEMENT_CHARS) | {
    StatementKind.LIST: _LIST_CHARS,
    StatementKind.SENTENCE: 400,  # which a sentence of a contract takes to say what holds
}
ROW_CHARS = 200
_ROW_OF_SEVERAL_CHARS = 500
_LETTER = re.compile(r"\w")


def sentence_of(candidate: Candidate, question: WeightedQuestion, *, names_document: bool) -> Sentence:
    """What is said of a candidate, after the name of its document where several are compared."""
    quote = cut(candidate.statement.text, _MOST_CHARS[candidate.statement.kind])
    citations = [SentenceCitation(candidate.source.number, quote, stands_in(quote, candidate.source.whole_text))]
    text = text_of(candidate.statement, question)
    lacks = [value for _, value in candidate.statement.cells if one_line(value) not in text]
    if any(not NOTHING.fullmatch(value) and not asks(value) for value in lacks) and text[-1:] != "…":
        text += f"{CELL_SIGN}…"
    text = f"{candidate.edition}: {text}" if candidate.edition else text
    for source, items in groupby(candidate.continued, key=lambda pair: pair[0]):
        quote = cut(" ".join(item for _, item in items if item in text), STATEMENT_CHARS)
        citations += [SentenceCitation(source.number, quote, stands_in(quote, source.whole_text))] if quote else []
    return Sentence(
        f"{PurePath(candidate.source.document_id).stem}: {text}" if names_document else text, tuple(citations)
    )


def text_of(statement: Statement, question: WeightedQuestion, row_chars: int | None = None) -> str:
    """A statement as it is said: a row with its header, a list line by line, and what goes on with `…`."""
    if statement.kind is StatementKind.LIST:
        is_wanted = statement.is_whole or question.wanted.several
        return _list(statement.lines, WHOLE_CHARS if is_wanted else _LIST_CHARS)
    room = row_chars or (_ROW_OF_SEVERAL_CHARS if question.wanted.several else ROW_CHARS)
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
    that share most with the question, the first of them also beside the one that is known to answer.
    """
    group = f"{statement.group}{CELL_SIGN}" if question.share(terms_of(statement.group)) > 0 else ""
    if not any(header for header, _ in statement.cells):
        return f"{group}{statement.text}"
    texts = _chosen_cells(statement, question, room)
    return f"{group}{CELL_SIGN.join(texts[place] for place in sorted(texts))}"


def _chosen_cells(statement: Statement, question: WeightedQuestion, room: int) -> dict[int, str]:
    """The cells of a row that are said, by their places."""
    filled = [place for place, (_, value) in enumerate(statement.cells) if not NOTHING.fullmatch(value)]
    cells = [statement.cells[place] for place in filled]
    columns = Counter(part for header, _ in statement.cells for part in {*header.split(" > ")})
    texts = {
        place: one_line(f"{_column(header, columns)}: {value}" if header else value)
        for place, (header, value) in zip(filled, cells, strict=True)
    }
    shares = dict(zip(filled, _cell_shares(question, cells), strict=True))
    order = sorted(filled, key=lambda place: (-shares[place], len(texts[place])))
    chosen: dict[int, str] = {}
    if (answering := statement.answering) is not None and order[0] != answering:
        most = max(room, _MOST_CHARS[StatementKind.ROW])
        name = _cut(texts[order[0]], max(most // 3, most - len(texts[answering]) - len(CELL_SIGN)))
        chosen = {order[0]: name, answering: _cut(texts[answering], most - len(name) - len(CELL_SIGN))}
        room -= sum(len(text) + len(CELL_SIGN) for text in chosen.values())
    for place in order:
        if place not in chosen and (not chosen or len(texts[place]) <= room):
            chosen[place] = texts[place]
            room -= len(texts[place]) + len(CELL_SIGN)
    return chosen


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{cut(text, most - 1)}…"


def with_cells_unsaid(statement: Statement, question: WeightedQuestion) -> list[Statement]:
    """A wide row once for each cell that is left out as it is said, with that cell as the one that answers; first those
    that share most with the question.
    """
    if statement.kind is not StatementKind.ROW or not any(header for header, _ in statement.cells):
        return []
    said = _chosen_cells(statement, question, _ROW_OF_SEVERAL_CHARS if question.wanted.several else ROW_CHARS)
    unsaid = [
        place for place, (_, value) in enumerate(statement.cells) if place not in said and not NOTHING.fullmatch(value)
    ]
    shares = dict(zip(unsaid, _cell_shares(question, [statement.cells[place] for place in unsaid]), strict=True))
    return [replace(statement, answering=place) for place in sorted(unsaid, key=lambda place: -shares[place])]


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
