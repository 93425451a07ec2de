"""From passages found to an answer: who writes it, from what, and what is done where nobody can.

```
passages ──► nothing found ──────────────────────────► not in the documents
    │
    ├──► asks for the files themselves ──────────────► their number, names    overviews: inventory
    ├──► no language model, or it failed
    │        ├──► asks which documents tell of it ───► their names            overviews: documents_about
    │        ├──► asks about documents as a whole ───► overview               overviews: overview
    │        ├──► asks for the row beside one ───────► that row               tables: neighbours
    │        ├──► asks for rows of a whole table ────► rows, their number     tables: table_rows, row_sentences
    │        ├──► names a table, and its fields ─────► fields                 tables: table_fields
    │        ├──► names what rows share with a quote ► rows, their number     tables: rows_sharing
    │        ├──► asks what kinds a column has ──────► its values             tables: column_values
    │        └──► any other question ────────────────► quotes                 quoted: extracts
    ├──► meta_knowledge: records of questions ───┐
    ├──► graph_local: passages and neighbourhood ├───► reader ──► checks      written: reader, checking
    ├──► any other mode: passages ───────────────┘
    ├──► graph_global: community reports ────────────► references led to passages   written: graph_global, …
    └──► text_map_reduce: all passages, group by group ──► reader ──► checks  written: text_map_reduce
```

`answering.py` of each of these folders says in which order its modules are asked.

What stays out: how passages are found (`rag_assets.query.search.modes`).
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

from rag_assets.contracts.errors import BudgetError, ModelError
from rag_assets.contracts.modes import GRAPH_GLOBAL_MODE
from rag_assets.contracts.ports import AnswerScorer, LanguageModel
from rag_assets.query.ask.answers import NOT_FOUND, Answer, Answered, AnswerEvent, AnswerParts, EvidenceFound, TextPiece
from rag_assets.query.ask.found import Found
from rag_assets.query.ask.markup import plain_sentences
from rag_assets.query.ask.overviews.answering import documents_answer, files_answer, overview_answer
from rag_assets.query.ask.quoted.answering import quotes_answer
from rag_assets.query.ask.quoted.extracts import OPENING, listed
from rag_assets.query.ask.quoted.spoken_of import SpokenOf, tells_column, tells_own_words
from rag_assets.query.ask.quotes import Meaning
from rag_assets.query.ask.tables.answering import neighbour_answer, rows_answer
from rag_assets.query.ask.written.checking import marked, may_hold, rendered
from rag_assets.query.ask.written.reader import ReaderOptions
from rag_assets.query.ask.written.writing import Writer, Writing
from rag_assets.query.prompting import REMEMBERED_TURNS
from rag_assets.query.search.rewriting_rules import is_about_nothing, is_greeting, may_stand_alone, whole_question

_OTHER_WORD = "「{word}」は見当たらないため「{other}」で探しました。"  # only Japanese words have others


@dataclass(frozen=True)
class Asking:
    """Answers questions from what was found."""

    model: LanguageModel | None  # who writes; None, or one that does not write, for quotes
    reader: ReaderOptions  # how answers are written
    reports: ReaderOptions  # how questions are answered from community reports
    scorer: AnswerScorer | None = None  # tells how surely statements answer; None goes by words alone
    # compares what a model wrote with a quote of another language; None where nothing can
    meaning: Meaning | None = None

    def events(self, found: Found, *, live: bool) -> Iterator[AnswerEvent]:
        """What is told while a question is answered.

        Args:
            found: The question, with what was found.
            live: Whether text is wanted while it is written.

        Yields:
            That passages were found, pieces of the text if it is wanted, and last the answer.

        Raises:
            BudgetError: The answer may cost more than the budget allows.
            StoreError: A published file is gone.
        """
        yield EvidenceFound(found.hits, found.trace.finish())
        pieces: list[str] = []
        failure = None
        model = self.model if self.model is not None and self.model.generative else None
        parts = files_answer(found)
        if parts is not None:
            model = None  # the table of documents tells it
        elif model is not None:
            writer = Writer(found, model, self.reader, self.reports, self.meaning)
            try:
                parts = yield from _recorded(writer.write(live=live), pieces)
            except BudgetError:
                raise
            except ModelError as error:
                model, failure = None, str(error)
                found.trace.add("answer", time.perf_counter(), 0, texts=(f"failed: {failure}",))
        if parts is None:
            parts = self._told(found)
        answer = _answer(found, parts, model, failure)
        text = "".join(pieces)
        if live and answer.text != text and answer.text.startswith(text):
            yield TextPiece(answer.text[len(text) :])
        yield Answered(answer)

    def _told(self, found: Found) -> AnswerParts:
        """The answer without a language model."""
        history = found.parameters.history
        if is_greeting(found.question):
            return AnswerParts()
        if whole := whole_question(found.question, history):
            found = found.asking(whole, ())
        parts = self._answer_to(found)
        if parts.near and found.goes_on and may_stand_alone(found.question):
            alone = self._told(found.asking(found.question, ()))
            is_own = tells_own_words(found.question, alone) and not tells_column(found.question, alone)
            return alone if is_own and not alone.near else parts
        return self._in_words_found(found) or parts if parts.near and not parts.opening else parts

    def _answer_to(self, found: Found) -> AnswerParts:
        return (
            documents_answer(found)
            or overview_answer(found)
            or neighbour_answer(found)
            or rows_answer(found)
            or self._quoted(found)
        )

    def _in_words_found(self, found: Found) -> AnswerParts | None:
        """The answer to the question in words of the passages that mean the same as its own, which it begins with; None
        where it has no such words, or that is not surely answered either.
        """
        others = found.words_found()
        parts = self._answer_to(found.asking_in(others)) if others else AnswerParts()
        if parts.near or not parts.sentences:
            return None
        words = "、".join(_OTHER_WORD.format(word=word, other=other) for word, other in others.items())
        return replace(parts, opening=f"{words}\n{parts.opening or OPENING[found.language]}")

    def _quoted(self, found: Found) -> AnswerParts:
        parts = quotes_answer(found, self.scorer, self.reader.context_tokens, self._spoken_of(found))
        return replace(parts, near=parts.near or is_about_nothing(found.question, found.parameters.history))

    def _spoken_of(self, found: Found) -> SpokenOf | None:
        """What the question before was answered by, where this one cannot be understood without it."""
        history = found.parameters.history
        if not found.goes_on:
            return None
        return SpokenOf.of(self._told(found.asking(history[-1].question, history[-1 - REMEMBERED_TURNS : -1])))


def _recorded(writing: Writing, pieces: list[str]) -> Writing:
    """What is written, with the pieces of its text put into a list as they come."""
    while True:
        try:
            piece = next(writing)
        except StopIteration as end:
            parts: AnswerParts = end.value
            return parts
        pieces.append(piece.text)
        yield piece


def _answer(found: Found, parts: AnswerParts, model: LanguageModel | None, failure: str | None) -> Answer:
    language, sentences = found.language, plain_sentences(parts.sentences, parts.sources)
    is_near = parts.near
    if not sentences:
        text = parts.opening or NOT_FOUND[language]
    elif model is None:
        text = listed(sentences, language, answered=not parts.near, opening=parts.opening)
    elif found.parameters.retriever == GRAPH_GLOBAL_MODE:
        text = rendered(sentences)  # which sum up in words of their own
    else:
        text, is_near = marked(sentences), not any(map(may_hold, sentences))
    return Answer(
        question=found.question,
        mode=found.parameters.mode,
        answered=bool(sentences) and not is_near,
        text=text,
        sentences=sentences,
        sources=parts.sources,
        trace=found.trace.finish(),
        model=model.name if model is not None else None,
        removed_citations=parts.removed,
        failure=failure,
    )
