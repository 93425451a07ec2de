"""From passages found to an answer: who writes it, from what, and what is done where nobody can.

```
passages ──► nothing found ──────────────────────────► not in the documents
    │
    ├──► asks for the files themselves ──────────────► their number, names     (inventory)
    ├──► no language model, or it failed
    │        ├──► asks which documents tell of it ───► their names        (documents_about)
    │        ├──► asks about documents as a whole ───► overview           (overview)
    │        ├──► asks for rows of a whole table ────► rows, their number (table_rows, row_sentences)
    │        ├──► names a table, and its fields ─────► fields             (table_fields)
    │        ├──► names what rows share with a quote ► rows, their number (rows_sharing)
    │        ├──► asks what kinds a column has ──────► its values         (column_values)
    │        └──► any other question ────────────────► quotes             (extracts)
    ├──► meta_knowledge: records of questions ───┐
    ├──► graph_local: passages and neighbourhood ├───► reader ──► checks   (reader, checking)
    ├──► any other mode: passages ───────────────┘
    ├──► graph_global: community reports ────────────► references led to passages  (graph_global, report_references)
    └──► text_map_reduce: all passages, group by group ──► reader ──► checks       (text_map_reduce)
```

What stays out: how passages are found (`rag_assets.query.search.modes`).
"""

import logging
import time
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import zip_longest
from pathlib import PurePath
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from rag_assets.contracts.errors import BudgetError, ModelError, QueryError
from rag_assets.contracts.generation import Completion, Request
from rag_assets.contracts.modes import (
    GRAPH_GLOBAL_MODE,
    GRAPH_LOCAL_MODE,
    META_KNOWLEDGE_MODE,
    QUESTIONS_MODE,
    TEXT_MAP_REDUCE_MODE,
)
from rag_assets.contracts.ports import AnswerScorer, LanguageModel
from rag_assets.contracts.tables import BLOCKS, CHUNKS, DOCUMENTS, PAGES
from rag_assets.query.ask.answers import (
    Answer,
    Answered,
    AnswerEvent,
    EvidenceFound,
    Sentence,
    Source,
    TextPiece,
    numbered_as_cited,
)
from rag_assets.query.ask.checking import NOT_FOUND, Draft, checked, drafts_of, foreign_language, marked, rendered
from rag_assets.query.ask.evidence import pack, position
from rag_assets.query.ask.extracts import NEAREST, extracts, listed
from rag_assets.query.ask.facts import PassagesOf
from rag_assets.query.ask.graph_global import GlobalAnswer, global_answer
from rag_assets.query.ask.inventory import InventoryAsked, inventory
from rag_assets.query.ask.local_context import PASSAGE_SHARE, local_context
from rag_assets.query.ask.markup import plain_sentences
from rag_assets.query.ask.overview import document_overview, opening, overview
from rag_assets.query.ask.quotes import Meaning
from rag_assets.query.ask.reader import (
    AskedQuestion,
    ReaderOptions,
    passages_request,
    questions_request,
    stream_answer,
    value_of,
)
from rag_assets.query.ask.report_levels import reports_to_read
from rag_assets.query.ask.report_references import cited_sentences, passages_of, referring_statements
from rag_assets.query.ask.row_sentences import told_rows
from rag_assets.query.ask.scope import scope_of
from rag_assets.query.ask.statements import heading_above, statements
from rag_assets.query.ask.table_rows import MOST_ROWS, RowsAsked, Selection, TableOfPage, are_sample
from rag_assets.query.ask.text_map_reduce import chosen_passages, read_all, reduce_request
from rag_assets.query.ask.wanted import AnswerTraits
from rag_assets.query.column_values import asks_for_kinds, things_of_list, values_of_column
from rag_assets.query.documents_about import documents_about, topic_of
from rag_assets.query.filters import NO_FILTERS
from rag_assets.query.named_document import named_document
from rag_assets.query.page_sections import BLOCK_COLUMNS, OF_TABLE, PageBlock, PageBlocks, passages_naming, sheets_named
from rag_assets.query.reading_failures import unread_files_named
from rag_assets.query.results import Hit, TraceRecorder
from rag_assets.query.rows_sharing import rows_sharing, rules_out
from rag_assets.query.search.auto import is_on_the_whole
from rag_assets.query.search.composite import Ask, parts_of
from rag_assets.query.search.graph_local import HOW_TO_INDEX, walk_from
from rag_assets.query.search.index import Candidate
from rag_assets.query.search.modes import SearchParameters
from rag_assets.query.search.passages import both
from rag_assets.query.search.request import Indexes, RetrievalRequest
from rag_assets.query.search.rewriting_rules import keywords, referred, refers_back, with_history
from rag_assets.query.stored import StoredTables
from rag_assets.query.table_fields import asks_for_fields, fields_named
from rag_assets.store.vectors.store import sql_in
from rag_assets.text.folding import fold_name
from rag_assets.text.language import prompt_language
from rag_assets.text.plain import one_line
from rag_assets.text.tokens import estimate_tokens

_CELL = " | "
_TABLES_OF = 6  # passages found, whose documents' tables a question for rows may mean
_MOST_TABLE_ROWS = 20_000  # of all these tables
_TABLE_COLUMNS = ("document_id", "page_number", "block_index", "section", "header_row_count", "rows")
_PAGES_OF_ROWS = 4  # pages with tables, of which rows are sought that the question names
_DOCUMENTS_OF_FIELDS = 4  # in which the table is looked for that a question names
_BESIDE = 30  # passages of a page that a list may go on in


class _Page(NamedTuple):
    """A page that holds a table."""

    document_id: str
    number: int
    name: str


_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Retrieval:
    """A question with the passages found for it.

    Attributes:
        question: As asked.
        parameters: How it was searched.
        request: The search, with the filters as they are applied, and as it was rewritten where it was.
        hits: The passages, best first.
    """

    question: str
    parameters: SearchParameters
    request: RetrievalRequest
    hits: tuple[Hit, ...]

    @property
    def language(self) -> str:
        """Of prompts, and of what is said without a model."""
        return prompt_language(self.question)

    @property
    def as_question(self) -> AskedQuestion:
        """The question with what is known of it, for those who read a whole collection."""
        search_text = self.request.text if self.request.text != self.question else ""
        return AskedQuestion(self.question, self.language, self.parameters.history, search_text)


@dataclass(frozen=True)
class _AnswerParts:
    """An answer before it is put together; no sentences where the documents do not say.

    Attributes:
        sentences: The answer.
        sources: What was given to answer it.
        removed: Citations that were taken out.
        near: Whether the sentences are only near to the question, and no answer.
        opening: What stands above them where no model wrote them; all that is said where there are none. Empty for
            that of quotes.
    """

    sentences: tuple[Sentence, ...]
    sources: tuple[Source, ...]
    removed: int = 0
    near: bool = False
    opening: str = ""


_Writing = Generator[TextPiece, None, _AnswerParts]


@dataclass(frozen=True)
class Asking:
    """Answers a question from what was found.

    Attributes:
        indexes: The serving tables.
        hits_of: Makes hits of candidates.
        stored: The stored tables.
        model: Who writes; None, or one that does not write, for quotes.
        reader: How answers are written.
        reports: How questions are answered from community reports.
        find: Finds passages for a part of the question.
        scorer: Tells how surely statements answer; None goes by words alone.
        meaning: Compares what a model wrote with a quote of another language; None where nothing can.
    """

    indexes: Indexes
    hits_of: Callable[[Sequence[Candidate], TraceRecorder], tuple[Hit, ...]]
    stored: StoredTables
    model: LanguageModel | None
    reader: ReaderOptions
    reports: ReaderOptions
    find: Callable[[str], tuple[Hit, ...]]
    scorer: AnswerScorer | None = None
    meaning: Meaning | None = None

    def events(self, retrieval: Retrieval, trace: TraceRecorder, *, live: bool) -> Iterator[AnswerEvent]:
        """What is told while a question is answered.

        Args:
            retrieval: The question and the passages.
            trace: Told what is done.
            live: Whether text is wanted while it is written.

        Yields:
            That passages were retrieval, pieces of the text if it is wanted, and last the answer.

        Raises:
            BudgetError: The answer may cost more than the budget allows.
            StoreError: A published file is gone.
        """
        yield EvidenceFound(retrieval.hits, trace.finish())
        pieces: list[str] = []
        failure = None
        model = self.model if self.model is not None and self.model.generative else None
        parts = self._of_files(retrieval, trace)
        if parts is not None:
            model = None  # the table of documents tells it
        elif model is not None:
            try:
                parts = yield from _recorded(self._writing(retrieval, model, trace, live=live), pieces)
            except BudgetError:
                raise
            except ModelError as error:
                model, failure = None, str(error)
                trace.add("answer", time.perf_counter(), 0, texts=(f"failed: {failure}",))
        if parts is None:
            parts = (
                self._documents_about(retrieval, trace)
                or self._overview(retrieval, trace)
                or self._from_table(retrieval, trace)
                or self._from_quotes(retrieval, trace)
            )
        answer = _answer(retrieval, parts, model, failure, trace)
        text = "".join(pieces)
        if live and answer.text != text and answer.text.startswith(text):
            yield TextPiece(answer.text[len(text) :])
        yield Answered(answer)

    def _writing(self, retrieval: Retrieval, model: LanguageModel, trace: TraceRecorder, *, live: bool) -> _Writing:
        if retrieval.parameters.retriever == GRAPH_GLOBAL_MODE:
            return self._from_reports(retrieval, model, trace)
        if retrieval.parameters.retriever == TEXT_MAP_REDUCE_MODE:
            return self._from_all(retrieval, model, trace, live=live)
        return self._from_passages(retrieval, model, trace, live=live)

    def _of_files(self, retrieval: Retrieval, trace: TraceRecorder) -> _AnswerParts | None:
        """What the collection holds: how many files, which ones; None where that is not asked."""
        question, history = retrieval.question, retrieval.parameters.history
        file_question = None if history and refers_back(question) else InventoryAsked.of(question)
        if file_question is None:
            return None
        began = time.perf_counter()
        passages_of, allowed = self._passages_of(retrieval, trace), self._allowed(retrieval, trace)
        facts = inventory(
            file_question, retrieval.language, self.stored, passages_of, allowed, retrieval.request.filters
        )
        if facts is None:
            return None
        trace.add("inventory", began, len(facts.sources))
        return _AnswerParts(plain_sentences(facts.sentences, facts.sources), facts.sources, opening=facts.text)

    def _allowed(self, retrieval: Retrieval, trace: TraceRecorder) -> Collection[str] | None:
        """The documents that filters let through; None for all."""
        where = retrieval.request.filters.to_sql(self.indexes.chunks.columns)
        return {candidate.document_id for candidate in self.indexes.chunks.listed(where, trace)} if where else None

    def _passages_of(self, retrieval: Retrieval, trace: TraceRecorder) -> PassagesOf:
        """The first passages of documents, and all of others, that filters let through."""
        chunks = self.indexes.chunks
        where = retrieval.request.filters.to_sql(chunks.columns)

        def passages(documents: Collection[str], whole_documents: Collection[str]) -> tuple[Hit, ...]:
            condition = both(sql_in("document_id", sorted({*documents, *whole_documents})), where)
            every = sorted(
                chunks.listed(condition, trace), key=lambda candidate: (candidate.document_id, _place(candidate))
            )
            first = {candidate.document_id: candidate.key for candidate in reversed(every)}
            candidates = [
                candidate
                for candidate in every
                if candidate.document_id in whole_documents or first[candidate.document_id] == candidate.key
            ]
            return self.hits_of(candidates, trace)

        return passages

    def _overview(self, retrieval: Retrieval, trace: TraceRecorder) -> _AnswerParts | None:
        """What documents are about as a whole; None where that is not asked, or nothing is known of them."""
        question, history = retrieval.question, retrieval.parameters.history
        began = time.perf_counter()
        allowed = self._allowed(retrieval, trace)
        full_question = with_history(question, history) if history and refers_back(question) else question
        passages_of = self._passages_of(retrieval, trace)
        document = named_document(full_question, self.stored, allowed)
        scope = None
        if document is None or not document.surely:
            unexplained_names = _unexplained(question, retrieval.hits)
            scope = scope_of(
                full_question, self.stored, allowed, whole=is_on_the_whole(question), unexplained=unexplained_names
            )
        if scope is not None:
            facts = overview(scope, retrieval.language, self.stored, passages_of)
        elif document is not None:
            facts = document_overview(document.row, retrieval.language, self.stored, passages_of)
        else:
            return None
        count = len(scope.rows) if scope is not None else 1
        trace.add("overview", began, count, texts=(f"documents {count}",))
        if not facts.sentences and not facts.text:
            return None
        sentences = plain_sentences(facts.sentences, facts.sources)
        return _AnswerParts(sentences, facts.sources, opening=facts.text or opening(retrieval.language))

    def _documents_about(self, retrieval: Retrieval, trace: TraceRecorder) -> _AnswerParts | None:
        """The documents that say something of a topic; None where that is not asked, or none does."""
        question, history = retrieval.question, retrieval.parameters.history
        topic = None if history and refers_back(question) else topic_of(question)
        if topic is None:
            return None
        began = time.perf_counter()
        allowed = self._allowed(retrieval, trace)
        rows = self.stored.read(DOCUMENTS, ("document_id", "title")).to_pylist()
        rows = [row for row in rows if allowed is None or row["document_id"] in allowed]
        passages_of = self._passages_of(retrieval, trace)
        facts = documents_about(topic, retrieval.language, rows, self.find(topic), passages_of)
        if facts is None:
            return None
        trace.add("documents", began, len(facts.sentences))
        return _AnswerParts(plain_sentences(facts.sentences, facts.sources), facts.sources, opening=facts.text)

    def _from_table(self, retrieval: Retrieval, trace: TraceRecorder) -> _AnswerParts | None:
        """Rows of a whole table that a question asks for, their number, or a sum; None where not one table does."""
        question, history = retrieval.question, retrieval.parameters.history
        if (history and refers_back(question)) or parts_of(question):
            return None
        row_question = RowsAsked.of(question)
        if row_question is None:
            return None
        began = time.perf_counter()
        of_tables = [hit for hit in retrieval.hits[:_TABLES_OF] if _CELL in hit.text or hit.citation.cell_range]
        first_hits = {hit.document_id: hit for hit in reversed(of_tables)}  # of each the first
        tables, unread = self._tables(first_hits)
        lists = [(page, listed) for page, table in tables if (listed := things_of_list(question, table)) is not None]
        if len(lists) == 1:
            page, listed = lists[0]
            return self._from_rows(retrieval, listed, page.document_id, page.number, trace, began)
        selections = [
            (page, selection) for page, table in tables if (selection := row_question.select(table)) is not None
        ]
        named_selections = [pair for pair in selections if row_question.names(pair[0].name)]
        selections = named_selections or selections
        if not selections:
            return None
        page, selection = max(selections, key=lambda pair: len(pair[1].rows))
        if not all(
            other_selection.rows
            and selection.covers(other_selection)
            and (other_selection.covers(selection) or beside.document_id == page.document_id)
            for beside, other_selection in selections
        ):
            return None
        if any(
            selection.may_go_on_in(rows, same_page=unread_page == page)
            for unread_page, rows in unread
            if unread_page.document_id == page.document_id
        ):
            return None
        return self._from_rows(retrieval, selection, page.document_id, page.number, trace, began)

    def _from_rows(
        self,
        retrieval: Retrieval,
        selection: Selection,
        document_id: str,
        number: int | None,
        trace: TraceRecorder,
        began: float,
    ) -> _AnswerParts | None:
        """Rows selected from a table, with passages of its page that hold them; None where these do not prove them."""
        of_page = pc.field("page_number") == number
        passages = self.stored.read(CHUNKS, ("chunk_id", "text"), [document_id], of_page).to_pylist()
        if not selection.is_proved_by(passage["text"] for passage in passages):
            return None
        sentences, ids = told_rows(selection, passages, retrieval.language)
        where = retrieval.request.filters.to_sql(self.indexes.chunks.columns)
        rows = self.indexes.chunks.having(ids, where, trace)
        hits = self.hits_of([rows[chunk_id] for chunk_id in ids if chunk_id in rows], trace)
        trace.add("rows", began, len(selection.rows))
        if not 0 < len(ids) == len(hits):
            return None
        sources = tuple(Source.of(number, hit, hit.text) for number, hit in enumerate(hits, 1))
        plain = plain_sentences(sentences, sources)
        return _AnswerParts(plain, _placed_by_quotes(plain, sources))

    def _tables(
        self, first_hits: Mapping[str, Hit]
    ) -> tuple[list[tuple[_Page, TableOfPage]], list[tuple[_Page, list[list[str]]]]]:
        """The tables with names of columns of documents, with the page that each is on, and the rows of those without
        names, none of very long ones.
        """
        columns = ("page_name", "page_number", "document_id")
        pages = self.stored.read(PAGES, columns, list(first_hits))
        names = {(row["document_id"], row["page_number"]): row["page_name"] or "" for row in pages.to_pylist()}
        blocks = self.stored.read(BLOCKS, _TABLE_COLUMNS, list(first_hits), pc.field("kind") == "table")
        is_short = _are_short(blocks)
        short = blocks.filter(is_short)
        tables: list[tuple[_Page, TableOfPage]] = []
        unread: list[tuple[_Page, list[list[str]]]] = []
        if (pc.sum(pc.list_value_length(short["rows"])).as_py() or 0) > _MOST_TABLE_ROWS:
            return tables, unread
        long = blocks.filter(pc.invert(is_short)).select(["document_id", "page_number"]).to_pylist()
        unread += [(_Page(row["document_id"], row["page_number"], ""), []) for row in long]
        for block in short.to_pylist():
            document_id, number = block["document_id"], block["page_number"]
            page = _Page(document_id, number, names.get((document_id, number), ""))
            hit = first_hits[document_id]
            if table := TableOfPage.of(block, (*_names_of(hit), page.name), hit.beginning):
                tables.append((page, table))
            elif not block["header_row_count"]:
                unread.append((page, [[one_line(cell or "") for cell in row["cells"]] for row in block["rows"] or ()]))
        return tables, unread

    def _from_quotes(self, retrieval: Retrieval, trace: TraceRecorder) -> _AnswerParts:
        """What the passages state that answers the question, part by part where it asks for several things."""
        parts = [(part, self.find(part.searched)) for part in parts_of(retrieval.question)]
        began = time.perf_counter()
        history = retrieval.parameters.history
        context = " ".join(referred(retrieval.question, history))
        earlier = history[-1].question if context else ""
        asked = f"{context}、{retrieval.question}".lstrip("、")  # as tables are asked; blanks are folded
        asks = [replace(part, context=f"{part.context} {context}".strip()) for part, _ in parts]
        hits = _in_turn(retrieval.hits, *(part_hits for _, part_hits in parts))
        hits = self._with_named_rows(retrieval, hits, trace)
        sources = pack(hits, self.reader.context_tokens, by_page=False)
        asks = asks or [Ask(retrieval.question, context, earlier=earlier)]
        blocks_of = self._blocks(sources)
        further: dict[str, tuple[Source, ...]] = {}  # passages of pages, beside those found

        def beside(source: Source) -> tuple[Source, ...]:
            if source.page_id not in further:
                number = len(sources) + sum(map(len, further.values()))
                further[source.page_id] = self._beside(retrieval, source, sources, number, trace)
            return further[source.page_id]

        try:
            sentences, answers, row = extracts(asks, sources, self.scorer, blocks_of, beside)
        except ModelError as error:
            _warn_once(str(error))
            trace.add("quote", began, 0, texts=(f"failed: {error}",))
            sentences, answers, row = extracts(asks, sources, blocks_of=blocks_of, beside=beside)
        cited = {citation.number for sentence in sentences for citation in sentence.citations}
        sources += tuple(source for others in further.values() for source in others if source.number in cited)
        trace.add("quote", began, len(sentences))
        if (fields := self._fields(retrieval, asked, sources, sentences, trace)) is not None:
            return fields
        if answers:
            first = sentences[0].citations[0].number
            source = next(source for source in sources if source.number == first)
            if (of_page := self._of_page(retrieval, asked, row, source, trace)) is not None:
                return of_page
        plain, sources = numbered_as_cited(plain_sentences(sentences, sources), sources)
        is_near = not answers or are_sample(retrieval.question, [sentence.text for sentence in plain])
        is_near = is_near or rules_out(retrieval.question, row)
        opening = self._unread_files(retrieval, NEAREST if plain else NOT_FOUND) if is_near or not plain else ""
        return _AnswerParts(plain, _placed_by_quotes(plain, sources), near=is_near, opening=opening)

    def _unread_files(self, retrieval: Retrieval, otherwise: Mapping[str, str]) -> str:
        """What is said before anything else where files that could not be read may hold the answer; else empty."""
        if retrieval.request.filters != NO_FILTERS:
            return ""
        unread = unread_files_named(retrieval.question, retrieval.language, self.stored)
        return f"{unread}\n{otherwise[retrieval.language]}" if unread else ""

    def _of_page(
        self, retrieval: Retrieval, asked: str, row: Sequence[str], source: Source, trace: TraceRecorder
    ) -> _AnswerParts | None:
        """What the tables of a page tell: the kinds of values of a column, or else the rows that share with the best
        one what the question names; None where neither is asked.
        """
        for_kinds = asks_for_kinds(asked)
        if not row and not for_kinds:
            return None
        began = time.perf_counter()
        page = self._tables_asked(asked, source)
        if page is None:
            return None
        number, tables, is_whole = page
        selection = values_of_column(asked, tables, are_whole=is_whole) if for_kinds else None
        if selection is None and row:
            of_page = row if number == source.page_number else ()
            selection = rows_sharing(asked, of_page, tables, are_whole=is_whole)
        if selection is None:
            return None
        return self._from_rows(retrieval, selection, source.document_id, number, trace, began)

    def _tables_asked(self, question: str, source: Source) -> tuple[int | None, list[TableOfPage], bool] | None:
        """The tables of the sheet that a question names, or else of the page of a passage, with its number and whether
        none of them goes on at another page; None where it names several sheets.
        """
        documents, number = [source.document_id], source.page_number
        is_of_sheet = source.citation.cell_range is not None  # which no page ends
        if is_of_sheet:
            pages = self.stored.read(PAGES, ("page_number", "page_name"), documents).to_pylist()
            sheet_numbers = sheets_named(question, {page["page_number"]: page["page_name"] or "" for page in pages})
            if sheet_numbers and number not in sheet_numbers:
                if len(sheet_numbers) > 1:
                    return None
                number = min(sheet_numbers)
        is_wanted = (pc.field("page_number") == number) & (pc.field("kind") == "table")
        blocks = self.stored.read(BLOCKS, _TABLE_COLUMNS, documents, is_wanted)
        short, names = blocks.filter(_are_short(blocks)).to_pylist(), (*_names_of(source), str(source.citation))
        tables = [table for block in short if (table := TableOfPage.of(block, names, named=False))]
        return number, tables, is_of_sheet

    def _fields(
        self,
        retrieval: Retrieval,
        asked: str,
        sources: Sequence[Source],
        sentences: Sequence[Sentence],
        trace: TraceRecorder,
    ) -> _AnswerParts | None:
        """The fields of a table that the question names; of documents that have one called so, of the only one with the
        question's word for tables in its name, or else of that of the best statement; None where there is none.
        """
        if not sources or not asks_for_fields(asked):
            return None
        began = time.perf_counter()
        number = sentences[0].citations[0].number if sentences else sources[0].number
        first = next(source for source in sources if source.number == number)
        by_document = {source.document_id: source for source in (first, *sources)}
        selections: list[tuple[Source, int, Selection]] = []
        for source in [*by_document.values()][:_DOCUMENTS_OF_FIELDS]:
            documents = [source.document_id]
            pages = self.stored.read(PAGES, ("page_number", "page_name"), documents).to_pylist()
            is_read = pc.field("kind").isin(["table", "heading"])
            blocks = self.stored.read(BLOCKS, (*_TABLE_COLUMNS, "kind", "text"), documents, is_read)
            fields = fields_named(
                asked,
                blocks.filter(_are_short(blocks)).to_pylist(),
                {page["page_number"]: page["page_name"] or "" for page in pages},
                _names_of(source),
                are_whole=source.citation.cell_range is not None,
            )
            selections += [(source, *fields)] if fields else []
        if len(selections) > 1:
            words = set(OF_TABLE.findall(fold_name(asked)))
            of_word = [
                found
                for found in selections
                if not words.isdisjoint(OF_TABLE.findall(fold_name(" ".join(_names_of(found[0])))))
            ]
            selections = of_word if len(of_word) == 1 else [found for found in selections if found[0] is first]
        if len(selections) != 1:
            return None
        (source, number, selection), *_ = selections
        return self._from_rows(retrieval, selection, source.document_id, number, trace, began)

    def _blocks(self, sources: Sequence[Source]) -> PageBlocks:
        """The parts of the pages of passages."""
        pages: dict[tuple[str, int], list[PageBlock]] = {}
        if sources:
            documents, numbers = {source.document_id for source in sources}, {source.page_number for source in sources}
            of_pages = pc.field("page_number").isin(sorted(numbers))
            columns = ("document_id", "page_number", *BLOCK_COLUMNS)
            for row in self.stored.read(BLOCKS, columns, sorted(documents), of_pages).to_pylist():
                pages.setdefault((row["document_id"], row["page_number"]), []).append(PageBlock.of(row))
        return lambda document_id, page_number: pages.get((document_id, page_number), ())

    def _with_named_rows(self, retrieval: Retrieval, hits: Sequence[Hit], trace: TraceRecorder) -> tuple[Hit, ...]:
        """Passages, each first one of a page with tables followed by those of it that hold rows which the question
        names, and were not found.
        """
        first = {hit.page_id: hit for hit in reversed(hits) if hit.page_id and _CELL in hit.text}
        pages = sorted(first.values(), key=lambda hit: hit.rank)[:_PAGES_OF_ROWS]
        if not pages:
            return tuple(hits)
        documents, numbers = ({getattr(hit, name) for hit in pages} for name in ("document_id", "page_number"))
        of_pages = pc.field("page_number").isin(sorted(numbers))
        texts: dict[str, dict[str, str]] = {hit.page_id: {} for hit in pages}
        for row in self.stored.read(CHUNKS, ("page_id", "chunk_id", "text"), sorted(documents), of_pages).to_pylist():
            if row["page_id"] in texts:
                texts[row["page_id"]][row["chunk_id"]] = row["text"]
        found_ids = {hit.chunk_id for hit in hits}
        named_keys = {page: passages_naming(retrieval.question, passages) for page, passages in texts.items()}
        page_of = {key: page for page, keys in named_keys.items() for key in keys if key not in found_ids}
        where = retrieval.request.filters.to_sql(self.indexes.chunks.columns)
        rows = self.indexes.chunks.having(list(page_of), where, trace)
        added_hits = {hit.chunk_id: hit for hit in self.hits_of([rows[key] for key in page_of if key in rows], trace)}
        after: dict[str, list[Hit]] = {}
        for key, page in page_of.items():
            if key in added_hits:
                after.setdefault(first[page].chunk_id, []).append(replace(added_hits[key], rank=first[page].rank))
        return tuple(passage for hit in hits for passage in (hit, *after.get(hit.chunk_id, ())))

    def _beside(
        self, retrieval: Retrieval, source: Source, sources: Sequence[Source], number: int, trace: TraceRecorder
    ) -> tuple[Source, ...]:
        """The passages of the page of one around it that were not found, numbered behind a number."""
        chunks = self.indexes.chunks
        where = both(sql_in("page_id", [source.page_id]), retrieval.request.filters.to_sql(chunks.columns))
        found_ids, place = {found.chunk_id for found in sources}, position(source.chunk_id)
        candidates = sorted(chunks.listed(where, trace), key=lambda candidate: abs(position(candidate.key) - place))
        near = [candidate for candidate in candidates[:_BESIDE] if candidate.key not in found_ids]
        hits = self.hits_of(sorted(near, key=lambda candidate: position(candidate.key)), trace)
        return tuple(Source.of(number + hit.rank, hit, hit.text) for hit in hits)

    def _from_passages(
        self, retrieval: Retrieval, model: LanguageModel, trace: TraceRecorder, *, live: bool
    ) -> _Writing:
        if not retrieval.hits:
            return _AnswerParts((), ())
        began = time.perf_counter()
        history, max_tokens = retrieval.parameters.history, self.reader.written_tokens(model)
        room = self.reader.room_tokens(model, AskedQuestion(retrieval.question, retrieval.language, history))
        mode = retrieval.parameters.retriever
        background = ""
        sources: tuple[Source, ...] = ()
        if mode == GRAPH_LOCAL_MODE:
            background, sources = self._neighbourhood(retrieval, room, trace)
        sources = sources or pack(retrieval.hits, room - _questions_tokens(retrieval.hits))
        trace.add("pack", began, len(sources), texts=(f"of {len(retrieval.hits)} passages",))
        if mode in {META_KNOWLEDGE_MODE, QUESTIONS_MODE}:
            queries = _sub_queries(retrieval.request.text, trace)
            request = questions_request(retrieval.question, sources, history, queries, max_tokens, retrieval.language)
        else:
            request = passages_request(retrieval.question, sources, history, background, max_tokens, retrieval.language)
        return (yield from self._read(model, retrieval.question, request, sources, trace, live=live))

    def _neighbourhood(self, retrieval: Retrieval, room: int, trace: TraceRecorder) -> tuple[str, tuple[Source, ...]]:
        """What the graph knows around the question, and the passages that there is room for beside it."""
        graph, walk = walk_from(retrieval.request, self.indexes, trace)
        context = local_context(self.stored, graph, walk, retrieval.hits, room)
        facts = (*context.reports, *context.entities, *context.relationships, *context.claims)
        return "\n".join(facts), pack(context.passages or retrieval.hits, round(PASSAGE_SHARE * room))

    def _from_all(self, retrieval: Retrieval, model: LanguageModel, trace: TraceRecorder, *, live: bool) -> _Writing:
        """Have all passages read, group by group."""
        chunks = self.indexes.chunks
        every = chunks.listed(retrieval.request.filters.to_sql(chunks.columns), trace)
        began = time.perf_counter()
        candidates = chosen_passages(every, self.reader)
        limit = f"{len(candidates)} of {len(every)} passages are read (search.map_reduce_chunks)"
        trace.add("choose", began, len(candidates), texts=(limit,) if len(candidates) < len(every) else ())
        hits = self.hits_of(candidates, trace)
        began = time.perf_counter()
        sources, findings = read_all(retrieval.as_question, hits, model, self.reader)
        facts = f"groups {findings.groups}, unhelpful {findings.unhelpful}, failed {len(findings.failures)}"
        trace.add("map", began, len(findings.drafts), texts=(facts, *dict.fromkeys(findings.failures)))
        if not findings.drafts and findings.failures:
            raise ModelError(findings.failures[0])
        if not findings.drafts:
            return _AnswerParts((), ())
        drafts, cited_sources = _renumbered(findings.drafts, sources)
        request, left_out = reduce_request(retrieval.as_question, drafts, model, self.reader)
        if left_out:
            trace.add("pack", time.perf_counter(), len(drafts) - left_out, texts=(f"findings left out {left_out}",))
        return (yield from self._read(model, retrieval.question, request, cited_sources, trace, live=live))

    def _from_reports(self, retrieval: Retrieval, model: LanguageModel, trace: TraceRecorder) -> _Writing:
        """Have the community reports of a level read, and lead their references to passages."""
        answer = self._answer_globally(retrieval, model, trace)
        if answer.text is None:
            if answer.failed or answer.partial_answers:
                raise ModelError("the community reports could not be read")
            return _AnswerParts((), ())
        began = time.perf_counter()
        cited_passages = passages_of(referring_statements(answer.text), self.stored, self.indexes.graphs.get())
        chunks = self.indexes.chunks
        wanted_ids = sorted({chunk_id for _, chunk_ids in cited_passages for chunk_id in chunk_ids})
        rows = chunks.having(wanted_ids, retrieval.request.filters.to_sql(chunks.columns), trace)
        hits = self.hits_of(list(rows.values()), trace)
        sources = {hit.chunk_id: Source.of(0, hit, hit.text) for hit in hits}
        sentences, cited_sources = cited_sentences(cited_passages, sources)
        trace.add("references", began, len(cited_sources))
        plain = plain_sentences(sentences, cited_sources)
        yield TextPiece(rendered(plain))
        return _AnswerParts(plain, cited_sources)

    def _answer_globally(self, retrieval: Retrieval, model: LanguageModel, trace: TraceRecorder) -> GlobalAnswer:
        reports, tree, levels = self.indexes.reports, self.indexes.report_tree, retrieval.parameters.levels
        if reports is None or reports.row_count == 0:
            raise QueryError(f"answers from community reports need the entity graph: {HOW_TO_INDEX}")
        report_texts = tree.reports(reports_to_read(retrieval.request.embedding, reports, tree, levels, trace))
        began = time.perf_counter()
        answer = global_answer(retrieval.as_question, report_texts, model, self.reports)
        facts = f"unhelpful groups {answer.unhelpful}, failed {answer.failed}, answers left out {answer.left_out}"
        trace.add("answer", began, len(answer.partial_answers), texts=(f"reports {answer.read}", facts))
        return answer

    def _read(
        self,
        model: LanguageModel,
        question: str,
        request: Request,
        sources: Sequence[Source],
        trace: TraceRecorder,
        *,
        live: bool,
    ) -> _Writing:
        """Have the reader answer, and check what it wrote."""
        began = time.perf_counter()
        completion: Completion | None = None
        for item in stream_answer(model, request, sources, live=live):
            if isinstance(item, str):
                yield TextPiece(item)
            else:
                completion = item
        value, failure = value_of(completion)
        if failure is not None:
            raise ModelError(failure)
        drafts = drafts_of(value) if value.get("answered") is True else []
        sentences, removed_count = checked(drafts, sources, self.meaning)
        if (language := foreign_language(question, sentences, sources)) is not None:
            raise ModelError(f"it answered in another language than the question's ({language})")
        doubtful = sum(not sentence.supported for sentence in sentences)
        facts = f"unsupported sentences {doubtful}, citations removed {removed_count}"
        trace.add("answer", began, len(sentences), texts=(facts,))
        return _AnswerParts(plain_sentences(sentences, sources), tuple(sources), removed_count)


@cache
def _warn_once(problem: str) -> None:
    """Say what hinders every question, once in a process."""
    _log.warning("statements are chosen by words alone: %s", problem)


def _place(passage: Candidate) -> tuple[int, int]:
    """Page of a passage, and its place there."""
    page = (passage.page_id or "").rpartition("#")[2]
    return int(page) if page.isdecimal() else 0, position(passage.key)


def _are_short(blocks: pa.Table) -> pa.ChunkedArray:
    """Which blocks are no tables too long to look at."""
    return pc.less_equal(pc.list_value_length(blocks["rows"]), MOST_ROWS)


def _names_of(passage: Hit | Source) -> tuple[str, ...]:
    """What the document of a passage and its folders are called."""
    return (passage.title or "", *PurePath(passage.document_id).with_suffix("").parts)


def _unexplained(question: str, hits: Sequence[Hit]) -> tuple[str, ...]:
    """The folded name of what a question wants to have explained, where it asks nothing else and no passage does."""
    traits, name = AnswerTraits.of(question), fold_name(keywords(question))
    if name not in traits.defined or any(
        traits.defines(statement) for hit in hits for statement in statements(hit.text)
    ):
        return ()
    return (name,)


def _placed_by_quotes(sentences: Sequence[Sentence], sources: Sequence[Source]) -> tuple[Source, ...]:
    """Sources, with the heading above what is first quoted of each where the passage has it within."""
    quotes = {
        citation.number: citation.quote for sentence in reversed(sentences) for citation in reversed(sentence.citations)
    }
    above = {source.number: heading_above(source.whole_text, quotes.get(source.number, "")) for source in sources}
    return tuple(
        replace(source, citation=replace(source.citation, heading=above[source.number]))
        if above[source.number]
        else source
        for source in sources
    )


def _in_turn(*rankings: Sequence[Hit]) -> tuple[Hit, ...]:
    """Passages of several rankings, the first of each, then the second, as many as the longest has."""
    hits = {hit.chunk_id: hit for at_place in zip_longest(*rankings) for hit in at_place if hit is not None}
    most = max(map(len, rankings))
    return tuple(replace(hit, rank=rank) for rank, hit in enumerate(list(hits.values())[:most], start=1))


def _recorded(writing: _Writing, pieces: list[str]) -> _Writing:
    """What is written, with the pieces of its text put into a list as they come."""
    while True:
        try:
            piece = next(writing)
        except StopIteration as end:
            parts: _AnswerParts = end.value
            return parts
        pieces.append(piece.text)
        yield piece


def _answer(
    retrieval: Retrieval, parts: _AnswerParts, model: LanguageModel | None, failure: str | None, trace: TraceRecorder
) -> Answer:
    language = retrieval.language
    if not parts.sentences:
        text = parts.opening or NOT_FOUND[language]
    elif model is None:
        text = listed(parts.sentences, language, answered=not parts.near, opening=parts.opening)
    elif retrieval.parameters.retriever == GRAPH_GLOBAL_MODE:
        text = rendered(parts.sentences)  # which sum up in words of their own
    else:
        text = marked(parts.sentences)
    return Answer(
        question=retrieval.question,
        mode=retrieval.parameters.mode,
        answered=bool(parts.sentences) and not parts.near,
        text=text,
        sentences=parts.sentences,
        sources=parts.sources,
        trace=trace.finish(),
        model=model.name if model is not None else None,
        removed_citations=parts.removed,
        failure=failure,
    )


def _renumbered(drafts: Sequence[Draft], sources: Sequence[Source]) -> tuple[list[Draft], tuple[Source, ...]]:
    """Drafts and the sources that they cite, numbered from 1 in order of their first citation."""
    by_number = {source.number: source for source in sources}
    cited_numbers = dict.fromkeys(number for draft in drafts for number, _ in draft.quotes if number in by_number)
    numbers = {old: new for new, old in enumerate(cited_numbers, start=1)}
    renumbered_drafts = [
        replace(draft, quotes=tuple((numbers[number], quote) for number, quote in draft.quotes if number in numbers))
        for draft in drafts
    ]
    return renumbered_drafts, tuple(replace(by_number[old], number=new) for old, new in numbers.items())


def _sub_queries(query: str, trace: TraceRecorder) -> list[str]:
    """The sub-queries that were searched besides the query."""
    sub_queries = [text for step in trace.steps if step.operation == "sub_query" for text in step.texts]
    return [text for text in dict.fromkeys(sub_queries) if text != query]


def _questions_tokens(hits: Sequence[Hit]) -> int:
    """Tokens of the questions and answers that go with passages."""
    return sum(estimate_tokens(f"{question.question}{question.answer}") for hit in hits for question in hit.questions)
