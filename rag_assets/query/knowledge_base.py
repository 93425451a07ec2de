"""Searching one published version of a knowledge base.

What stays out: how passages are found, which is one module a mode, and which version is published.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from rag_assets.contracts.causes import SummaryFormat
from rag_assets.contracts.errors import QueryError
from rag_assets.contracts.ports import Embedder, EmbeddingKind, LanguageModel, Reranker, Rewriter, Turn
from rag_assets.contracts.tables import (
    CHUNK_INDEX,
    ENTITY_INDEX,
    QUESTION_INDEX,
    REPORT_INDEX,
    SUMMARY_INDEX,
    VectorTable,
)
from rag_assets.query.filters import NO_FILTERS, Filters
from rag_assets.query.fulltext import search_fulltext
from rag_assets.query.fusion import min_max
from rag_assets.query.graph_global import GlobalAnswer, GlobalOptions, GlobalSearch, global_answer
from rag_assets.query.graph_local import HOW_TO_INDEX, search_graph_local
from rag_assets.query.hybrid import search_hybrid
from rag_assets.query.hyde import HydeOptions, HydeSearch
from rag_assets.query.index import Candidate, Index
from rag_assets.query.knowledge import Knowledge
from rag_assets.query.meta_knowledge import MetaKnowledgeSearch
from rag_assets.query.passage_graph import PassageGraphs
from rag_assets.query.report_levels import LevelChoice, ReportTree, reports_to_read
from rag_assets.query.request import Indexes, Mode, Request, clean_text
from rag_assets.query.reranking import Reranking
from rag_assets.query.results import Citation, Hit, SearchResult, Trace, TraceRecorder
from rag_assets.query.rewriting import ModelRewriter, RewriteSearch
from rag_assets.query.rewriting_rules import RuleRewriter
from rag_assets.query.stored import StoredTables
from rag_assets.query.sub_queries import Planner, question_language
from rag_assets.query.two_step import search_two_step
from rag_assets.query.vector import search_vector
from rag_assets.store.vectors import VectorStore

MAX_K = 1000
_QUERY_BATCH = 256
_GROUP_DEPTH = 100  # passages looked at, at least, where results are pages or documents
_MAX_DEPTH = 20_000

_MODES: Mapping[str, Mode] = {
    "vector": search_vector,
    "fulltext": search_fulltext,
    "hybrid": search_hybrid,
    "two_step": search_two_step,
    "graph_local": search_graph_local,
}
_NEEDS_NO_VECTOR = frozenset({"fulltext"})
META_KNOWLEDGE_MODE = "meta_knowledge"
GRAPH_GLOBAL_MODE = "graph_global"
HYDE_MODE = "hyde"
REWRITE_MODE = "rewrite"
RETRIEVERS = (*_MODES, GRAPH_GLOBAL_MODE, META_KNOWLEDGE_MODE)
PREPARING_MODES = {HYDE_MODE: "vector", REWRITE_MODE: "hybrid"}  # with the mode that finds passages where none is named
MODES = (*RETRIEVERS, *PREPARING_MODES)
_NO_HYDE_OPTIONS = HydeOptions()
_SUMMARIES = {"file": SummaryFormat.FILE, "page": SummaryFormat.PAGE}


class Granularity(StrEnum):
    """What a result is."""

    CHUNK = "chunk"
    PAGE = "page"
    DOCUMENT = "document"


class KnowledgeBase:
    """One published version, for searching.

    Args:
        store: The vector store.
        embedder: The embedder that its vectors were made by.
        versions: For each serving table the version to read.
        reranker: Orders the first passages of every search anew, or None.
        rerank_candidates: Passages of a search that the reranker reads.
        stored: The stored tables of the same version; None where modes that read them are not wanted.
        model: Chooses facets and plans sub-queries in mode `meta_knowledge`, imagines passages in `hyde`, rewrites in
            `rewrite`; None, or one that does not write, leaves it to algorithms.
        levels: Which community reports are read where a question names none; None for those of all levels together.
        hyde: How mode `hyde` searches.
        rewriter: Rewrites in mode `rewrite`; None for the model, or rules without one.

    Raises:
        QueryError: The versions do not name the passages.
        StoreError: A table or version is gone.
    """

    def __init__(  # noqa: PLR0913 - functions take values, not the settings
        self,
        store: VectorStore,
        embedder: Embedder,
        versions: Mapping[str, int],
        reranker: Reranker | None = None,
        rerank_candidates: int = 0,
        stored: StoredTables | None = None,
        model: LanguageModel | None = None,
        levels: LevelChoice | None = None,
        *,
        hyde: HydeOptions = _NO_HYDE_OPTIONS,
        rewriter: Rewriter | None = None,
    ) -> None:
        if CHUNK_INDEX.name not in versions:
            raise QueryError("nothing is indexed yet")
        self._embedder = embedder
        self._reranker = reranker
        self._rerank_candidates = rerank_candidates if reranker else 0
        self._knowledge = Knowledge(stored) if stored is not None else None
        self._model = model
        self._levels = levels
        self._hyde = hyde
        written = ModelRewriter(model) if model is not None and model.generative else RuleRewriter()
        self._rewriter: Rewriter = rewriter or written
        self._planner = Planner(embedder, self._knowledge, model)

        def optional(table: VectorTable) -> Index | None:
            version = versions.get(table.name)
            return Index(store, table, version) if version is not None else None

        self._indexes = Indexes(
            chunks=Index(store, CHUNK_INDEX, versions[CHUNK_INDEX.name]),
            summaries=optional(SUMMARY_INDEX),
            questions=optional(QUESTION_INDEX),
            entities=optional(ENTITY_INDEX),
            reports=optional(REPORT_INDEX),
            graphs=PassageGraphs(stored) if stored is not None else None,
            report_tree=ReportTree(stored) if stored is not None else None,
        )

    def search(
        self,
        query: str,
        mode: str = "hybrid",
        k: int = 10,
        filters: Filters = NO_FILTERS,
        *,
        granularity: str = Granularity.CHUNK,
        summaries: str = "page",
        levels: LevelChoice | None = None,
        history: Sequence[Turn] = (),
    ) -> SearchResult:
        """Find passages, pages or documents.

        Args:
            query: Plain text of any content and length; nothing in it is query syntax.
            mode: One of `MODES`; or `hyde` or `rewrite`, a plus sign and the mode that finds passages, as in
                `rewrite+two_step`.
            k: Results wanted, 1 to 1000.
            filters: What passages must satisfy.
            granularity: What a result is: `chunk`, `page` or `document`.
            summaries: Which summaries choose in `two_step`: `page` or `file`.
            levels: Which community reports are searched in `graph_global`; those of the knowledge base where None.
            history: The conversation before the query, the oldest turn first; read by `rewrite`.

        Returns:
            At most `k` hits; equal scores stand by chunk id.

        Raises:
            QueryError: The query is empty, an argument is unknown or out of range, or nothing is indexed.
            ModelError: The embedder, the reranker or the language model failed.
            StoreError: A published file is gone.
        """
        self._check(query, mode, k, granularity, summaries)
        how = _How(mode, k, filters, granularity, summaries, levels or self._levels, tuple(history))
        trace = TraceRecorder()
        began = time.perf_counter()
        vector = None
        if mode not in _NEEDS_NO_VECTOR:
            vector = self._embedder.embed([clean_text(query)], EmbeddingKind.QUERY)[0]
            trace.add("embed", began, 1)
        return self._answer(query, vector, how, trace)

    def search_all(
        self,
        queries: Iterable[tuple[str, str]],
        mode: str = "hybrid",
        k: int = 10,
        filters: Filters = NO_FILTERS,
        *,
        granularity: str = Granularity.CHUNK,
        summaries: str = "page",
        levels: LevelChoice | None = None,
    ) -> Iterator[tuple[str, SearchResult]]:
        """Answer many queries; they are embedded in batches.

        Args:
            queries: Id and text of each.
            mode: As for `search`, like the other arguments.
            k: Results wanted for each.
            filters: What passages must satisfy.
            granularity: What a result is.
            summaries: Which summaries choose in `two_step`.
            levels: Which community reports are searched in `graph_global`.

        Yields:
            Id and result of each query, in the order given.

        Raises:
            QueryError: As for `search`; the message names the query.
            ModelError: The embedder, the reranker or the language model failed.
            StoreError: A published file is gone.
        """
        how = _How(mode, k, filters, granularity, summaries, levels or self._levels)
        for batch in _batches(queries, _QUERY_BATCH):
            for query_id, text in batch:
                try:
                    self._check(text, mode, k, granularity, summaries)
                except QueryError as error:
                    raise QueryError(f"query {query_id}: {error}") from error
            vectors: Sequence[NDArray[np.float32] | None] = [None] * len(batch)
            if mode not in _NEEDS_NO_VECTOR:
                vectors = list(self._embedder.embed([clean_text(text) for _, text in batch], EmbeddingKind.QUERY))
            for (query_id, text), vector in zip(batch, vectors, strict=True):
                trace = TraceRecorder()
                yield query_id, self._answer(text, vector, how, trace)

    def answer_globally(
        self, question: str, options: GlobalOptions, levels: LevelChoice | None = None
    ) -> tuple[GlobalAnswer, Trace]:
        """Answer a question about the whole from the community reports, by the language model.

        Args:
            question: Plain text.
            options: How reports are packed and answers limited.
            levels: Which reports are read; those of the knowledge base where None.

        Returns:
            The answer, and what was done.

        Raises:
            QueryError: The question is empty, there is no language model, no level is named, or there are no reports.
            ModelError: The embedder or the language model failed.
            StoreError: A published file is gone.
        """
        reports, tree, chosen = self._indexes.reports, self._indexes.report_tree, levels or self._levels
        if not clean_text(question).strip():
            raise QueryError("the query is empty")
        if self._model is None or not self._model.generative:
            raise QueryError("answers from community reports need a language model: set language_model.provider")
        if reports is None or tree is None or reports.row_count == 0:
            raise QueryError(f"answers from community reports need the entity graph: {HOW_TO_INDEX}")
        if chosen is None:
            raise QueryError("answers from community reports need the level of the reports, and none is named")
        trace = TraceRecorder()
        began = time.perf_counter()
        vector = self._embedder.embed([clean_text(question)], EmbeddingKind.QUERY)[0]
        trace.add("embed", began, 1)
        read = tree.reports(reports_to_read(vector, reports, tree, chosen, trace))
        began = time.perf_counter()
        answer = global_answer(clean_text(question), read, self._model, options, question_language(question))
        facts = f"unhelpful groups {answer.unhelpful}, failed {answer.failed}, answers left out {answer.left_out}"
        trace.add("answer", began, len(answer.partial_answers), texts=(f"reports {answer.read}", facts))
        return answer, trace.finish()

    def _check(self, query: str, mode: str, k: int, granularity: str, summaries: str) -> None:
        if not clean_text(query).strip():
            raise QueryError("the query is empty")
        _check_mode(mode)
        if not 1 <= k <= MAX_K:
            raise QueryError(f"k is {k}, expected 1 to {MAX_K}")
        if granularity not in list(Granularity):
            raise QueryError(f"unknown granularity {granularity!r}, expected one of {', '.join(Granularity)}")
        if summaries not in _SUMMARIES:
            raise QueryError(f"unknown summaries {summaries!r}, expected one of {', '.join(_SUMMARIES)}")
        if self._indexes.chunks.row_count == 0:
            raise QueryError("nothing is indexed yet: there are no passages to search")

    def _answer(
        self, query: str, vector: NDArray[np.float32] | None, how: "_How", trace: TraceRecorder
    ) -> SearchResult:
        k, granularity, filters = how.k, how.granularity, how.filters
        depth = max(self._rerank_candidates, k if granularity == Granularity.CHUNK else max(_GROUP_DEPTH, 4 * k))
        show_all = granularity == Granularity.CHUNK
        if filters.facet and self._knowledge is not None:
            filters = replace(filters, facet_documents=self._knowledge.documents(filters))
        request = Request(query, vector, depth, filters, _SUMMARIES[how.summaries], show_all)
        find = self._finder(query, how, trace)
        found = find(request)
        best = _grouped(found, granularity)
        # Where a few documents take all the places, look deeper until there are enough others or no more passages.
        while len(best) < k and len(found) >= request.depth and request.depth < min(self._row_count, _MAX_DEPTH):
            request = replace(request, depth=min(request.depth * 4, _MAX_DEPTH))
            found = find(request)
            best = _grouped(found, granularity)
        hits = self._hits(best[:k], trace)
        return SearchResult(query, how.mode, granularity, hits, trace.finish())

    def _finder(self, query: str, how: "_How", trace: TraceRecorder) -> Callable[[Request], list[Candidate]]:
        """Finds passages, and orders the first ones anew where there is a reranker."""
        search = self._mode(how)
        if self._reranker is None:
            return lambda request: search(request, self._indexes, trace)
        reranking = Reranking(self._reranker, self._rerank_candidates, clean_text(query), self._indexes.chunks)
        return lambda request: reranking.order(search(request, self._indexes, trace), trace)

    def _mode(self, how: "_How") -> Mode:
        """The mode for one query."""
        first, _, named = how.mode.partition("+")
        if first not in PREPARING_MODES:
            return self._retriever(first, how)
        retriever = named or PREPARING_MODES[first]
        if first == REWRITE_MODE:
            return RewriteSearch(self._embedder, self._rewriter, how.history, self._retriever(retriever, how))
        writers = self._hyde.with_model(self._model)
        return HydeSearch(self._embedder, writers, self._hyde, lambda: self._retriever(retriever, how))

    def _retriever(self, name: str, how: "_How") -> Mode:
        if name == META_KNOWLEDGE_MODE:
            return MetaKnowledgeSearch(self._planner)
        return GlobalSearch(how.levels) if name == GRAPH_GLOBAL_MODE else _MODES[name]

    @property
    def _row_count(self) -> int:
        return self._indexes.chunks.row_count

    def _hits(self, candidates: Sequence[Candidate], trace: TraceRecorder) -> tuple[Hit, ...]:
        began = time.perf_counter()
        chunks = self._indexes.chunks
        missing = [candidate.row_id for candidate in candidates if candidate.shown is None]
        rows = chunks.shown(missing)
        if missing:
            trace.add("fetch", began, len(rows), index=chunks.name, version=chunks.version)
        return tuple(
            _hit(rank, each, rows[each.row_id] if each.shown is None else each.shown)
            for rank, each in enumerate(candidates, start=1)
        )


@dataclass(frozen=True)
class _How:
    """What is asked of a search besides the query, see `KnowledgeBase.search`."""

    mode: str
    k: int
    filters: Filters
    granularity: str
    summaries: str
    levels: LevelChoice | None
    history: tuple[Turn, ...] = ()


def _check_mode(mode: str) -> None:
    first, plus, retriever = mode.partition("+")
    if first not in MODES:
        raise QueryError(f"unknown mode {mode!r}, expected one of {', '.join(MODES)}")
    if plus and (first not in PREPARING_MODES or retriever not in RETRIEVERS):
        before, after = " or ".join(PREPARING_MODES), ", ".join(RETRIEVERS)
        raise QueryError(f"unknown mode {mode!r}, expected {before} before the plus sign and one of {after} after it")


def _grouped(candidates: Sequence[Candidate], granularity: str) -> list[Candidate]:
    """Passages, pages or documents by falling score, each shown by its best passage; equal ones by its id.

    A page scores as its best passage: what is asked for stands in one place of it. A document scores as the sum of its
    passages' scores, scaled to 0…1 among all found, each at half the weight of the one before: the best passage decides
    first, and a document that says more of the same goes before one that shares a single passage's words.

    Source: the best passage: MaxP of Z. Dai and J. Callan, Deeper text understanding for IR with contextual neural
    language modeling, SIGIR 2019. The weights: rank-biased precision with persistence 1/2 of A. Moffat and J. Zobel,
    ACM TOIS 27(1), 2008, there for relevant documents of a ranking, here for passages of a document.
    """
    if granularity == Granularity.CHUNK:
        return list(candidates)
    groups: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        page = candidate.page_id or candidate.key
        groups.setdefault(page if granularity == Granularity.PAGE else candidate.document_id, []).append(candidate)
    if granularity == Granularity.PAGE:
        return [group[0] for group in groups.values()]
    scaled = min_max({candidate.key: candidate.score for candidate in candidates})
    best = [
        replace(group[0], score=sum(scaled[each.key] / 2**place for place, each in enumerate(group)))
        for group in groups.values()
    ]
    return sorted(best, key=lambda candidate: (-candidate.score, candidate.key))


def _hit(rank: int, candidate: Candidate, row: Mapping[str, object]) -> Hit:
    page_number, page_name, box = row["page_number"], row["page_name"], row["box"]
    assert isinstance(page_number, int)
    assert page_name is None or isinstance(page_name, str)
    citation = Citation(
        document_id=candidate.document_id,
        page_number=page_number,
        page_name=page_name,
        cell_range=str(row["cell_range"]) if row["cell_range"] is not None else None,
        box=tuple(float(edge) for edge in box) if isinstance(box, list) else None,
        format=str(row["format"]),
    )
    return Hit(
        rank=rank,
        score=candidate.score,
        document_id=candidate.document_id,
        page_id=candidate.page_id or "",
        page_number=page_number,
        page_name=page_name,
        chunk_id=candidate.key,
        text=str(row["text"]),
        title=str(row["title"]),
        citation=citation,
        questions=candidate.questions,
    )


def _batches(queries: Iterable[tuple[str, str]], size: int) -> Iterator[list[tuple[str, str]]]:
    batch: list[tuple[str, str]] = []
    for query in queries:
        batch.append(query)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch
