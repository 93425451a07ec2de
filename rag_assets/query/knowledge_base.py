"""Searching one published version of a knowledge base.

What stays out: how passages are found, which is one module a mode, and which version is published.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from rag_assets.contracts.causes import SummaryFormat
from rag_assets.contracts.errors import QueryError
from rag_assets.contracts.ports import Embedder, EmbeddingKind, LanguageModel, Reranker
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
from rag_assets.query.graph_global import search_graph_global
from rag_assets.query.graph_local import search_graph_local
from rag_assets.query.hybrid import search_hybrid
from rag_assets.query.index import Candidate, Index
from rag_assets.query.knowledge import Knowledge
from rag_assets.query.meta_knowledge import MetaKnowledgeSearch
from rag_assets.query.passage_graph import PassageGraphs
from rag_assets.query.request import Indexes, Request
from rag_assets.query.reranking import Reranking
from rag_assets.query.results import Citation, Hit, SearchResult, TraceRecorder
from rag_assets.query.stored import StoredTables
from rag_assets.query.sub_queries import Planner
from rag_assets.query.two_step import search_two_step
from rag_assets.query.vector import search_vector
from rag_assets.store.vectors import VectorStore

MAX_K = 1000
_QUERY_BATCH = 256
_GROUP_DEPTH = 100  # passages looked at, at least, where results are pages or documents
_MAX_DEPTH = 20_000

Mode = Callable[[Request, Indexes, TraceRecorder], list[Candidate]]
_MODES: Mapping[str, Mode] = {
    "vector": search_vector,
    "fulltext": search_fulltext,
    "hybrid": search_hybrid,
    "two_step": search_two_step,
    "graph_local": search_graph_local,
    "graph_global": search_graph_global,
}
_NEEDS_NO_VECTOR = frozenset({"fulltext"})
META_KNOWLEDGE_MODE = "meta_knowledge"
MODES = (*_MODES, META_KNOWLEDGE_MODE)
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
        model: Chooses facets and plans sub-queries in mode `meta_knowledge`; None, or one that does not write, leaves
            it to similarity and key terms.

    Raises:
        QueryError: The versions do not name the passages.
        StoreError: A table or version is gone.
    """

    def __init__(
        self,
        store: VectorStore,
        embedder: Embedder,
        versions: Mapping[str, int],
        reranker: Reranker | None = None,
        rerank_candidates: int = 0,
        stored: StoredTables | None = None,
        model: LanguageModel | None = None,
    ) -> None:
        if CHUNK_INDEX.name not in versions:
            raise QueryError("nothing is indexed yet")
        self._embedder = embedder
        self._reranker = reranker
        self._rerank_candidates = rerank_candidates if reranker else 0
        self._knowledge = Knowledge(stored) if stored is not None else None
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
    ) -> SearchResult:
        """Find passages, pages or documents.

        Args:
            query: Plain text of any content and length; nothing in it is query syntax.
            mode: One of `MODES`.
            k: Results wanted, 1 to 1000.
            filters: What passages must satisfy.
            granularity: What a result is: `chunk`, `page` or `document`.
            summaries: Which summaries choose in `two_step`: `page` or `file`.

        Returns:
            At most `k` hits; equal scores stand by chunk id.

        Raises:
            QueryError: The query is empty, an argument is unknown or out of range, or nothing is indexed.
            ModelError: The embedder, the reranker or the language model failed.
            StoreError: A published file is gone.
        """
        self._check(query, mode, k, granularity, summaries)
        trace = TraceRecorder()
        began = time.perf_counter()
        vector = None
        if mode not in _NEEDS_NO_VECTOR:
            vector = self._embedder.embed([_clean(query)], EmbeddingKind.QUERY)[0]
            trace.add("embed", began, 1)
        return self._answer(query, vector, mode, k, filters, granularity, summaries, trace)

    def search_all(
        self,
        queries: Iterable[tuple[str, str]],
        mode: str = "hybrid",
        k: int = 10,
        filters: Filters = NO_FILTERS,
        *,
        granularity: str = Granularity.CHUNK,
        summaries: str = "page",
    ) -> Iterator[tuple[str, SearchResult]]:
        """Answer many queries; they are embedded in batches.

        Args:
            queries: Id and text of each.
            mode: As for `search`, like the other arguments.
            k: Results wanted for each.
            filters: What passages must satisfy.
            granularity: What a result is.
            summaries: Which summaries choose in `two_step`.

        Yields:
            Id and result of each query, in the order given.

        Raises:
            QueryError: As for `search`; the message names the query.
            ModelError: The embedder, the reranker or the language model failed.
            StoreError: A published file is gone.
        """
        for batch in _batches(queries, _QUERY_BATCH):
            for query_id, text in batch:
                try:
                    self._check(text, mode, k, granularity, summaries)
                except QueryError as error:
                    raise QueryError(f"query {query_id}: {error}") from error
            vectors: Sequence[NDArray[np.float32] | None] = [None] * len(batch)
            if mode not in _NEEDS_NO_VECTOR:
                vectors = list(self._embedder.embed([_clean(text) for _, text in batch], EmbeddingKind.QUERY))
            for (query_id, text), vector in zip(batch, vectors, strict=True):
                trace = TraceRecorder()
                yield query_id, self._answer(text, vector, mode, k, filters, granularity, summaries, trace)

    def _check(self, query: str, mode: str, k: int, granularity: str, summaries: str) -> None:
        if not _clean(query).strip():
            raise QueryError("the query is empty")
        if mode not in MODES:
            raise QueryError(f"unknown mode {mode!r}, expected one of {', '.join(MODES)}")
        if not 1 <= k <= MAX_K:
            raise QueryError(f"k is {k}, expected 1 to {MAX_K}")
        if granularity not in list(Granularity):
            raise QueryError(f"unknown granularity {granularity!r}, expected one of {', '.join(Granularity)}")
        if summaries not in _SUMMARIES:
            raise QueryError(f"unknown summaries {summaries!r}, expected one of {', '.join(_SUMMARIES)}")
        if self._indexes.chunks.row_count == 0:
            raise QueryError("nothing is indexed yet: there are no passages to search")

    def _answer(
        self,
        query: str,
        vector: NDArray[np.float32] | None,
        mode: str,
        k: int,
        filters: Filters,
        granularity: str,
        summaries: str,
        trace: TraceRecorder,
    ) -> SearchResult:
        depth = max(self._rerank_candidates, k if granularity == Granularity.CHUNK else max(_GROUP_DEPTH, 4 * k))
        show_all = granularity == Granularity.CHUNK
        if filters.facet and self._knowledge is not None:
            filters = replace(filters, facet_documents=self._knowledge.documents(filters))
        request = Request(query, vector, depth, filters, _SUMMARIES[summaries], show_all)
        find = self._finder(mode, query, trace)
        found = find(request)
        best = _grouped(found, granularity)
        # Where a few documents take all the places, look deeper until there are enough others or no more passages.
        while len(best) < k and len(found) >= request.depth and request.depth < min(self._row_count, _MAX_DEPTH):
            request = replace(request, depth=min(request.depth * 4, _MAX_DEPTH))
            found = find(request)
            best = _grouped(found, granularity)
        hits = self._hits(best[:k], trace)
        return SearchResult(query, mode, granularity, hits, trace.finish())

    def _finder(self, mode: str, query: str, trace: TraceRecorder) -> Callable[[Request], list[Candidate]]:
        """Finds passages, and orders the first ones anew where there is a reranker."""
        search = MetaKnowledgeSearch(self._planner) if mode == META_KNOWLEDGE_MODE else _MODES[mode]
        if self._reranker is None:
            return lambda request: search(request, self._indexes, trace)
        reranking = Reranking(self._reranker, self._rerank_candidates, _clean(query), self._indexes.chunks)
        return lambda request: reranking.order(search(request, self._indexes, trace), trace)

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


def _clean(text: str) -> str:
    """Text that every embedder can take: no lone surrogates, no NUL."""
    return text.encode("utf-8", "replace").decode().replace("\0", " ")


def _batches(queries: Iterable[tuple[str, str]], size: int) -> Iterator[list[tuple[str, str]]]:
    batch: list[tuple[str, str]] = []
    for query in queries:
        batch.append(query)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch
