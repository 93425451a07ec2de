"""What the question before was answered by, which a question that cannot be understood without it goes on to ask of.

What stays out: whether a question goes on (`rag_assets.query.search.rewriting_rules`).
"""

import re
import unicodedata
from collections.abc import Set
from dataclasses import dataclass

from rag_assets.query.ask.answers import AnswerParts
from rag_assets.query.ask.quoted.passage_lines import STATEMENT_CHARS
from rag_assets.query.ask.quoted.statements import Statement, StatementKind
from rag_assets.query.ask.quoted.wanted import NOTHING, AnswerTraits
from rag_assets.query.search.rewriting_rules import keywords
from rag_assets.text.cells import CELL_SIGN
from rag_assets.text.folding import content_words, fold_name, shares_held
from rag_assets.text.language import cut
from rag_assets.text.plain import one_line
from rag_assets.text.scripts import KANJI, KATAKANA

_WORD = re.compile(f"[{KANJI}{KATAKANA}A-Za-z0-9_-]{{2,}}")
_ASKED = re.compile(rf"何[{KANJI}]{{0,2}}|いつ|どこ|誰|いく[つら]|どの|どれ")
_POINTS_BACK = re.compile(r"\b(?:for|of|in|with) (?:that|this|the same) [a-z]+|\bones?\b")
_SHARED_COLUMNS = 0.6  # of the row with fewer cells, from which two are of one table
_OF_COLUMNS = "日名者"  # ends of what columns are called, which may be left out
_HELD = 0.6  # of the words of a question that its answer holds


@dataclass(frozen=True)
class SpokenOf:
    """What an answer spoke of."""

    document_id: str  # the document of its first statement
    quote: str  # that statement, as its citation has it

    @classmethod
    def of(cls, parts: AnswerParts) -> "SpokenOf | None":
        """What the first statement of an answer spoke of; None where nothing was found."""
        if parts.near or not parts.sentences or not parts.sentences[0].citations:
            return None
        first = parts.sentences[0].citations[0]
        documents = {source.number: source.document_id for source in parts.sources}
        return cls(documents[first.number], first.quote)

    def is_its_row(self, statement: Statement) -> bool:
        """Whether a statement is the row that was spoken of."""
        return statement.kind is StatementKind.ROW and cut(statement.text, STATEMENT_CHARS) == self.quote

    def has_asked_column(self, question: str, statement: Statement) -> bool:
        """Whether a statement is the row that was spoken of, and all that a question names are its columns."""
        if not self.is_its_row(statement):
            return False
        words, traits = own_words(question), AnswerTraits.of(question)
        cells = [(fold_name(header.rpartition(" > ")[2]), value) for header, value in statement.cells]
        named = [
            [value for header, value in cells if len(header) > 1 and _is_called(header, word)]
            for word in map(fold_name, words)
        ]
        values = [value for values in named for value in values if not NOTHING.fullmatch(value)]
        return bool(words) and all(named) and bool(values) and not traits.lacks_value(statement)

    def goes_on_in(self, question: str, parts: AnswerParts) -> bool:
        """Whether an answer from the same document is one to what a question asks: it holds what the question names
        by itself; or, where that is nothing, it is the row that was spoken of, or the question asks for a measure.
        """
        if parts.near or not parts.sentences:
            return False
        words = own_words(question)
        is_row = self.is_told_by(parts)
        if not words:
            return is_row or AnswerTraits.of(question).measured
        return (is_row and tells_column(question, parts)) or tells_own_words(question, parts)

    def is_told_by(self, parts: AnswerParts) -> bool:
        """Whether an answer begins with the row that was spoken of."""
        quotes = [citation.quote for sentence in parts.sentences[:1] for citation in sentence.citations[:1]]
        return quotes == [self.quote] and CELL_SIGN in self.quote

    def is_row_unnamed(self, question: str, columns: Set[str], statement: Statement) -> bool:
        """Whether a statement is another row of the table than was spoken of, and the question names nothing of it.

        Args:
            question: The question.
            columns: Of the row that was spoken of.
            statement: The statement, of the same page.
        """
        if self.is_its_row(statement) or not shares_columns(columns, statement):
            return False
        text, quote = fold_name(" ".join(value for _, value in statement.cells)), fold_name(self.quote)
        return not any(word in text and word not in quote for word in map(fold_name, own_words(question)))


def columns_of(statement: Statement) -> frozenset[str]:
    """The headers of the cells of a row; empty for what has none."""
    return frozenset(header for header, _ in statement.cells if header)


def shares_columns(columns: Set[str], statement: Statement) -> bool:
    """Whether a statement is a row of a table with these columns, some of whose cells may be empty."""
    if statement.kind is not StatementKind.ROW:
        return False
    own = columns_of(statement)
    return len(columns & own) >= _SHARED_COLUMNS * min(len(columns), len(own)) > 0


def holds_own_words(question: str, text: str) -> bool:
    """Whether a text holds most of what a question names by itself."""
    words = content_words(" ".join(own_words(question)))
    return sum(shares_held(words, one_line(text))) >= _HELD * len(words)


def tells_own_words(question: str, parts: AnswerParts) -> bool:
    """Whether the first statement of an answer, or its place, holds most of what a question names by itself."""
    place = str(parts.sources[0].citation) if parts.sources else ""
    return bool(parts.sentences) and holds_own_words(question, f"{parts.sentences[0].text} {place}")


def tells_column(question: str, parts: AnswerParts) -> bool:
    """Whether all that a question names are headers of the row that an answer begins with."""
    row = parts.sentences[0].text if parts.sentences else ""
    named = [cell.partition(": ")[0] for cell in row.split(CELL_SIGN) if ": " in cell]
    headers = [fold_name(header.rpartition(" > ")[2]) for header in named]
    return all(any(_is_called(header, word) for header in headers) for word in map(fold_name, own_words(question)))


def _is_called(header: str, word: str) -> bool:
    """Whether a column may be meant by a word: 「購入日時」 by 「購入日」, and 「担当」 by 「担当者」."""
    return word in header or (word[-1] in _OF_COLUMNS and word[:-1] == header)


def own_words(question: str) -> list[str]:
    """What a question names by itself, less what it only asks with."""
    text = _POINTS_BACK.sub(" ", unicodedata.normalize("NFKC", question))
    return _WORD.findall(_ASKED.sub(" ", keywords(text)))
