"""Searching one published version of a knowledge base."""

import copy
import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from rag_assets.contracts.causes import SummaryFormat
from rag_assets.contracts.errors import QueryError
from rag_assets.contracts.modes import (
    AUTO_MODE,
    GRAPH_GLOBAL_MODE,
    NEEDS_NO_VECTOR,
    REWRITE_MODE,
    check_mode,
    retriever_of,
)
from rag_assets.contracts.ports import AnswerScorer, Embedder, EmbeddingKind, LanguageModel, Reranker, Rewriter, Turn
from rag_assets.contracts.tables import (
    CHUNK_INDEX,
    ENTITY_INDEX,
    QUESTION_INDEX,
    REPORT_INDEX,
    SUMMARY_INDEX,
    VectorTable,
)
from rag_assets.query.ask.answers import Answer, Answered, AnswerEvent
from rag_assets.query.ask.asking import Asking
from rag_assets.query.ask.found import Found
from rag_assets.query.ask.quotes import COMPARES_LANGUAGES
from rag_assets.query.ask.written.reader import ReaderOptions
from rag_assets.query.cancellation import Cancellation
from rag_assets.query.filters import NO_FILTERS, Filters, check_filters
from rag_assets.query.results import Citation, Hit, SearchResult, TraceRecorder
from rag_assets.query.search.auto import choose_mode
from rag_assets.query.search.grouping import Granularity, grouped
from rag_assets.query.search.hyde import HydeOptions
from rag_assets.query.search.index import Candidate, Index
from rag_assets.query.search.knowledge import Knowledge
from rag_assets.query.search.modes import Modes, SearchParameters
from rag_assets.query.search.passage_graph import PassageGraphs
from rag_assets.query.search.passages import CANDIDATES
from rag_assets.query.search.ranking_weights import Ranking
from rag_assets.query.search.report_levels import LevelChoice, ReportTree
from rag_assets.query.search.request import Indexes, RetrievalRequest, clean_text
from rag_assets.query.search.reranking import Reranking
from rag_assets.query.search.rewriting import RewriteSearch
from rag_assets.query.search.rewriting_rules import with_history
from rag_assets.query.search.sub_queries import Planner
from rag_assets.query.search.trained_rewriting import TrainedModel
from rag_assets.query.search.weighing import RankingSignals, ranking_signals
from rag_assets.query.stored import StoredTables
from rag_assets.store.vectors.store import VectorStore

MAX_K = 1000
_QUERY_BATCH = 256
_GROUP_DEPTH = 100  # passages looked at, at least, where results are pages or documents
_MAX_DEPTH = 20_000
_SUMMARIES = {"file": SummaryFormat.FILE, "page": SummaryFormat.PAGE}


@dataclass(frozen=True)
class SearchDefaults:
    """What a search or a question is taken to ask where it does not say."""

    mode: str
    ask_mode: str
    k: int
    levels: LevelChoice


@dataclass(frozen=True)
class QueryOptions:
    """How a knowledge base searches and answers."""

    defaults: SearchDefaults  # what is taken where a search or a question does not say
    reader: ReaderOptions  # how answers are written
    reports: ReaderOptions  # how questions are answered from community reports
    hyde: HydeOptions  # how mode `hyde` searches
    rerank_candidates: int  # passages of a search that the reranker reads
    # how mode `weighted` ranks; as shipped, or as learned on the collection
    ranking: Ranking = field(default_factory=Ranking)


@dataclass(frozen=True)
class QueryModels:
    """The models that a knowledge base asks beside the embedder."""

    # writes answers, chooses facets and plans sub-queries in mode `meta_knowledge`, imagines passages in `hyde`,
    # rewrites in `rewrite`; None, or one that does not write, leaves it to algorithms
    language: LanguageModel | None = None
    # rewrites in mode `rewrite`; None for the trained model, the language model, or rules without either
    rewriter: Rewriter | None = None
    reranker: Reranker | None = None  # orders the first passages of every search anew, or None
    trained: TrainedModel | None = None  # a model trained to rewrite for this collection, or None
    # tells which statements answer, where no language model writes; None goes by words alone
    scorer: AnswerScorer | None = None


_NO_MODELS = QueryModels()


class KnowledgeBase:
    """One published version, for searching.

    Args:
        store: The vector store.
        embedder: The embedder that its vectors were made by.
        versions: For each serving table the version to read.
        options: How it searches and answers.
        stored: The stored tables of the same version.
        models: What it asks beside the embedder.

    Raises:
        QueryError: The versions do not name the passages.
        StoreError: A table or version is gone.
    """

    def __init__(
        self,
        store: VectorStore,
        embedder: Embedder,
        versions: Mapping[str, int],
        options: QueryOptions,
        stored: StoredTables,
        models: QueryModels = _NO_MODELS,
    ) -> None:
        if CHUNK_INDEX.name not in versions:
            raise QueryError("nothing is indexed yet")
        self._embedder = embedder
        self._options = options
        self._reranker = models.reranker
        self._scorer = models.scorer
        self._stored = stored
        self._knowledge = Knowledge(stored)
        planner = Planner(embedder, self._knowledge, models.language)
        self._modes = Modes(
            embedder, planner, options.hyde, models.language, models.rewriter, models.trained, options.ranking
        )

        def optional(table: VectorTable) -> Index | None:
            version = versions.get(table.name)
            return Index(store, table, version) if version is not None else None

        self._indexes = Indexes(
            chunks=Index(store, CHUNK_INDEX, versions[CHUNK_INDEX.name]),
            summaries=optional(SUMMARY_INDEX),
            questions=optional(QUESTION_INDEX),
            entities=optional(ENTITY_INDEX),
            reports=optional(REPORT_INDEX),
            graphs=PassageGraphs(stored),
            report_tree=ReportTree(stored),
        )

    @property
    def options(self) -> QueryOptions:
        """How it searches and answers."""
        return self._options

    @property
    def writer(self) -> LanguageModel | None:
        """The language model; None where there is none that writes."""
        model = self._modes.model
        return model if model is not None and model.generative else None

    @property
    def reranker(self) -> str:
        """Name of the reranker; empty without one."""
        return self._reranker.name if self._reranker is not None else ""

    @property
    def row_counts(self) -> dict[str, int]:
        """Rows by serving table, of those that the version has."""
        indexes = self._indexes
        tables = (indexes.chunks, indexes.summaries, indexes.questions, indexes.entities, indexes.reports)
        return {table.name: table.row_count for table in tables if table is not None}

    def variant(self, options: QueryOptions, rewriter: Rewriter | None = None) -> "KnowledgeBase":
        """The same version, which stays open, with other options, and another rewriter if one is given."""
        variant = copy.copy(self)
        rewriter = rewriter or self._modes.rewriter
        modes = replace(self._modes, hyde=options.hyde, rewriter=rewriter, ranking=options.ranking)
        vars(variant).update(_options=options, _modes=modes)
        return variant

    def search(  # noqa: PLR0913 - one argument a choice of the caller
        self,
        query: str,
        mode: str | None = None,
        k: int | None = None,
        filters: Filters = NO_FILTERS,
        *,
        granularity: str = Granularity.CHUNK,
        summaries: str = "page",
        levels: LevelChoice | None = None,
        history: Sequence[Turn] = (),
        cancellation: Cancellation | None = None,
    ) -> SearchResult:
        """Find passages, pages or documents.

        Args:
            query: Plain text of any content and length; nothing in it is query syntax.
            mode: One of `MODES`; several with commas between them, as in `hybrid,graph_local`, whose rankings are
                fused; or `hyde` or `rewrite`, a plus sign and the mode or modes that find passages, as in
                `rewrite+two_step`. `auto` chooses one. None for that of the settings.
            k: Results wanted, 1 to 1000; None for the number of the settings.
            filters: What passages must satisfy.
            granularity: What a result is: `chunk`, `page` or `document`.
            summaries: Which summaries choose in `two_step`: `page` or `file`.
            levels: Which community reports are searched in `graph_global`; None for those of the settings.
            history: The conversation before the query, the oldest turn first; read by `rewrite`
                and `auto`.
            cancellation: Gives the search up from another thread; None where nobody does.

        Returns:
            At most `k` hits; equal scores stand by chunk id. Their mode is the one that `auto` chose.

        Raises:
            QueryError: The query is empty, an argument is unknown or out of range, no document has any value of a
                filter, or nothing is indexed.
            Cancelled: It was given up.
            ModelError: The embedder, the reranker or the language model failed.
            StoreError: A published file is gone.
        """
        parameters = self._parameters(mode, k, filters, granularity, summaries, levels, history)
        self._check(query, parameters)
        trace = TraceRecorder()
        parameters = self._choose(query, parameters, trace)
        vector = self._embed(query, parameters.mode, trace)
        return self._result(query, vector, parameters, trace, cancellation or Cancellation())

    def search_all(
        self,
        queries: Iterable[tuple[str, str]],
        mode: str | None = None,
        k: int | None = None,
        filters: Filters = NO_FILTERS,
        *,
        granularity: str = Granularity.CHUNK,
        summaries: str = "page",
        levels: LevelChoice | None = None,
    ) -> Iterator[tuple[str, SearchResult]]:
        """Search for many queries, of which ids and texts are given, as `search` does; they are embedded in batches.

        Yields:
            Id and result of each query, in the order given.

        Raises:
            QueryError: As for `search`, like the other errors; the message names the query.
        """
        parameters = self._parameters(mode, k, filters, granularity, summaries, levels)
        waiting_queries = iter(queries)
        while batch := list(islice(waiting_queries, _QUERY_BATCH)):
            for query_id, text in batch:
                try:
                    self._check(text, parameters)
                except QueryError as error:
                    raise QueryError(f"query {query_id}: {error}") from error
            traces = [TraceRecorder() for _ in batch]
            choices = [self._choose(text, parameters, trace) for (_, text), trace in zip(batch, traces, strict=True)]
            vector_flags = [choice.mode not in NEEDS_NO_VECTOR for choice in choices]
            texts = [
                clean_text(text) for (_, text), needs_vector in zip(batch, vector_flags, strict=True) if needs_vector
            ]
            vectors = iter(self._embedder.embed(texts, EmbeddingKind.QUERY) if texts else ())
            for (query_id, text), own, needs_vector, trace in zip(batch, choices, vector_flags, traces, strict=True):
                yield query_id, self._result(text, next(vectors) if needs_vector else None, own, trace, Cancellation())

    def ranking_signals(self, query: str) -> RankingSignals:
        """All signals of mode `weighted` for a query, from which its weights are learned.

        Raises:
            ModelError: The embedder or the reranker failed.
            StoreError: A published file is gone.
        """
        vector = self._embedder.embed([clean_text(query)], EmbeddingKind.QUERY)[0]
        request = RetrievalRequest(
            *(query, vector, CANDIDATES, NO_FILTERS, SummaryFormat.PAGE), reranking=self._reranking(query)
        )
        return ranking_signals(request, self._indexes, self._options.ranking.query_map)

    def passage_vectors(self, candidates: Sequence[Candidate]) -> NDArray[np.float32]:
        """Vectors of passages that were found, one a row."""
        return self._indexes.chunks.vectors([candidate.row_id for candidate in candidates])

    def ask(
        self,
        question: str,
        mode: str | None = None,
        k: int | None = None,
        filters: Filters = NO_FILTERS,
        *,
        history: Sequence[Turn] = (),
        summaries: str = "page",
        levels: LevelChoice | None = None,
    ) -> Answer:
        """Answer a question from the documents.

        A language model writes the answer from the passages found, and always sees the question as asked; without one,
        the best passages are quoted. Every citation is checked.

        Args:
            question: Plain text of any content and length.
            mode: How passages are found, see `search`. With a language model, `graph_global` answers from community
                reports, and `text_map_reduce` has all passages read.
            k: Passages that the answer may rest on, 1 to 1000, as far as there is room for them.
            filters: What passages must satisfy.
            history: The conversation before the question, the oldest turn first. Where the question refers back,
                earlier questions are searched with it; `rewrite`, and with it `auto`, resolves them.
            summaries: Which summaries choose in `two_step`: `page` or `file`.
            levels: Which community reports are read in `graph_global`; None for those of the settings.

        Raises:
            QueryError: As for `search`.
            BudgetError: A call may cost more than the budget allows.
            ModelError: The embedder or the reranker failed. A language model that fails is left out and named in the
                answer; without what scores statements they are chosen by words.
            StoreError: A published file is gone.
        """
        mode = mode or self._options.defaults.ask_mode
        parameters = self._parameters(mode, k, filters, Granularity.CHUNK, summaries, levels, history)
        *_, last = self._events(question, parameters, Cancellation(), live=False)
        assert isinstance(last, Answered)
        return last.answer

    def ask_stream(
        self,
        question: str,
        mode: str | None = None,
        k: int | None = None,
        filters: Filters = NO_FILTERS,
        *,
        history: Sequence[Turn] = (),
        summaries: str = "page",
        levels: LevelChoice | None = None,
        cancellation: Cancellation | None = None,
    ) -> Generator[AnswerEvent, None, None]:
        """Answer a question as `ask` does, telling what is done as it is done. Closing the stream ends the writing.

        A cancellation gives the question up from another thread, also between two events.

        Yields:
            `EvidenceFound` once, `TextPiece` as text comes, in one piece where the provider gives it so, and last
            `Answered`.

        Raises:
            QueryError: As for `ask`, like the other errors; arguments are checked with the first event.
            Cancelled: It was given up.
        """
        mode = mode or self._options.defaults.ask_mode
        parameters = self._parameters(mode, k, filters, Granularity.CHUNK, summaries, levels, history)
        return self._events(question, parameters, cancellation or Cancellation(), live=True)

    def _events(
        self, question: str, parameters: SearchParameters, cancellation: Cancellation, *, live: bool
    ) -> Generator[AnswerEvent, None, None]:
        self._check(question, parameters)
        question = clean_text(question)
        trace = TraceRecorder()
        parameters = self._choose(question, parameters, trace, answers=True)
        resolves = parameters.mode.partition("+")[0] == REWRITE_MODE
        query = question if resolves else with_history(question, parameters.history)
        if query != question:
            trace.add("history", time.perf_counter(), 1, texts=(query,))
        vector = self._embed(query, parameters.mode, trace)
        modes = self._modes.watched(trace, cancellation)
        # the query holds what it refers to
        own_parameters = parameters if resolves else replace(parameters, history=())
        request, candidates = self._retrieve(query, vector, own_parameters, modes, trace)

        # what is asked further is made of the query, which is resolved: nothing is rewritten once more
        further_mode = ",".join(map(retriever_of, parameters.retriever.split(",")))

        def find(text: str, within: Filters = parameters.filters) -> tuple[Hit, ...]:
            limited = replace(parameters, mode=further_mode, filters=within, history=())
            _, passages = self._retrieve(text, self._embed(text, limited.mode, trace), limited, modes, trace)
            return self._hits(passages[: parameters.k], trace)

        def find_in(text: str, document_id: str) -> tuple[Hit, ...]:
            return find(text, replace(parameters.filters, document=(document_id,)))

        hits = self._hits(candidates[: parameters.k], trace)
        found = Found(
            *(question, parameters, request, hits, self._indexes, self._hits, self._stored, find, find_in), trace=trace
        )
        meaning = self._meaning if self._embedder.name.startswith(COMPARES_LANGUAGES) else None
        asking = Asking(modes.model, self._options.reader, self._options.reports, self._scorer, meaning)
        yield from asking.events(found, live=live)

    def _choose(
        self, query: str, parameters: SearchParameters, trace: TraceRecorder, *, answers: bool = False
    ) -> SearchParameters:
        """What is asked of a search, where `auto` is to choose."""
        if parameters.mode != AUTO_MODE:
            return parameters
        lacks_writer = answers and self.writer is None
        return choose_mode(clean_text(query), parameters, self._indexes, trace, lacks_writer=lacks_writer)

    def _embed(self, query: str, mode: str, trace: TraceRecorder) -> NDArray[np.float32] | None:
        if mode in NEEDS_NO_VECTOR:
            return None
        began = time.perf_counter()
        vector: NDArray[np.float32] = self._embedder.embed([clean_text(query)], EmbeddingKind.QUERY)[0]
        trace.add("embed", began, 1)
        return vector

    def _meaning(self, quote: str, sentence: str) -> float:
        """Cosine of two texts."""
        first, second = self._embedder.embed([quote, sentence], EmbeddingKind.PASSAGE)
        return float(first @ second)

    def _parameters(
        self,
        mode: str | None,
        k: int | None,
        filters: Filters,
        granularity: str,
        summaries: str,
        levels: LevelChoice | None,
        history: Sequence[Turn] = (),
    ) -> SearchParameters:
        defaults = self._options.defaults
        return SearchParameters(
            mode if mode is not None else defaults.mode,
            k if k is not None else defaults.k,
            filters,
            granularity,
            summaries,
            levels or defaults.levels,
            tuple(history),
        )

    def _check(self, query: str, parameters: SearchParameters) -> None:
        if not clean_text(query).strip():
            raise QueryError("the query is empty")
        check_mode(parameters.mode)
        if not 1 <= parameters.k <= MAX_K:
            raise QueryError(f"k is {parameters.k}, expected 1 to {MAX_K}")
        if parameters.granularity not in list(Granularity):
            raise QueryError(
                f"unknown granularity {parameters.granularity!r}, expected one of {', '.join(Granularity)}"
            )
        if parameters.summaries not in _SUMMARIES:
            raise QueryError(f"unknown summaries {parameters.summaries!r}, expected one of {', '.join(_SUMMARIES)}")
        if self._indexes.chunks.row_count == 0:
            raise QueryError("nothing is indexed yet: there are no passages to search")
        self._check_level(parameters)
        check_filters(parameters.filters, self._indexes.chunks.known, self._knowledge.values)

    def _check_level(self, parameters: SearchParameters) -> None:
        """Refuse a level that is asked for and finer than all reports; that of the settings may be."""
        level = parameters.levels.level
        if GRAPH_GLOBAL_MODE not in parameters.retriever.split(",") or level == self._options.defaults.levels.level:
            return
        levels = [community.level for community in self._indexes.report_tree.get()]
        if levels and level > max(levels):
            raise QueryError(f"level is {level}, expected 0 to {max(levels)}: there are no finer community reports")

    def _result(
        self,
        query: str,
        vector: NDArray[np.float32] | None,
        parameters: SearchParameters,
        trace: TraceRecorder,
        cancellation: Cancellation,
    ) -> SearchResult:
        _, best = self._retrieve(query, vector, parameters, self._modes.watched(trace, cancellation), trace)
        hits = self._hits(best[: parameters.k], trace)
        return SearchResult(query, parameters.mode, parameters.granularity, hits, trace.finish())

    def _retrieve(
        self,
        query: str,
        vector: NDArray[np.float32] | None,
        parameters: SearchParameters,
        modes: Modes,
        trace: TraceRecorder,
    ) -> tuple[RetrievalRequest, list[Candidate]]:
        """What was searched, and what came of it, best first."""
        k, granularity, filters = parameters.k, parameters.granularity, parameters.filters
        candidates = self._options.rerank_candidates if self._reranker else 0
        depth = max(candidates, k if granularity == Granularity.CHUNK else max(_GROUP_DEPTH, 4 * k))
        show_all = granularity == Granularity.CHUNK
        if filters.facet:
            filters = replace(filters, facet_documents=self._knowledge.documents(filters))
        reranking = self._reranking(query)
        request = RetrievalRequest(
            *(query, vector, depth, filters, _SUMMARIES[parameters.summaries], show_all), reranking=reranking
        )
        search, chunks = modes.search(parameters), self._indexes.chunks
        orders = reranking is not None and not modes.weighs_reranker(parameters)
        while True:
            passages = search(request, self._indexes, trace)
            passages = reranking.order(passages, trace) if reranking is not None and orders else passages
            best = grouped(passages, granularity)
            # Where a few documents take all the places, look deeper until there are enough others or no more passages.
            if len(best) >= k or len(passages) < request.depth or request.depth >= min(chunks.row_count, _MAX_DEPTH):
                break
            request = replace(request, depth=min(request.depth * 4, _MAX_DEPTH))
        return search.rewritten(request, trace) if isinstance(search, RewriteSearch) else request, best

    def _reranking(self, query: str) -> Reranking | None:
        """The reranker, to read passages for a query; None where none is configured."""
        if self._reranker is None:
            return None
        return Reranking(self._reranker, self._options.rerank_candidates, clean_text(query), self._indexes.chunks)

    def _hits(self, candidates: Sequence[Candidate], trace: TraceRecorder) -> tuple[Hit, ...]:
        passages = self._indexes.chunks.read(candidates, trace)
        return tuple(_hit(rank, passage) for rank, passage in enumerate(passages, start=1))


def _hit(rank: int, candidate: Candidate) -> Hit:
    assert candidate.shown is not None
    row = candidate.shown
    citation = Citation(
        document_id=candidate.document_id,
        page_number=row["page_number"],
        page_name=row["page_name"],
        cell_range=row["cell_range"],
        box=tuple(row["box"]) if row["box"] is not None else None,
        format=row["format"],
        chunk_id=candidate.key,
        heading=row["heading"],
    )
    return Hit(
        rank=rank,
        score=candidate.score,
        document_id=candidate.document_id,
        page_id=candidate.page_id or "",
        page_number=citation.page_number,
        page_name=citation.page_name,
        chunk_id=candidate.key,
        text=row["text"],
        title=row["title"],
        citation=citation,
        questions=candidate.questions,
        beginning=row["beginning"],
    )
