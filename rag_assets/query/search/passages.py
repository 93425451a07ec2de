"""Modes that search passages: `vector` by meaning, `fulltext` by words, `hybrid` by both, `two_step` by summaries.

`hybrid`: each index gives its best candidates; scores are scaled to 0…1 within each list and added with equal weight.
Scaled scores keep how far apart candidates are, which ranks throw away; equal weights need no labels to tune.

Source: S. Bruch, S. Gai and A. Ingber, An analysis of fusion functions for hybrid retrieval, ACM TOIS 42(1), 2023:
a convex combination of min-max scaled scores beats reciprocal rank fusion and is robust to its weight. Deviation:
the lowest score of a list is taken for its minimum (not the theoretical one).

`two_step`: summaries choose the files or pages, then their passages are searched, each step by meaning and by words:
several vectors for one document, as in LangChain's MultiVectorRetriever (summaries). What the first step found counts
in the second: a passage has the sum of its own score and that of the summary which led to it, so that meaning and words
of both have equal weight.
"""

import time
from functools import partial
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from rag_assets.contracts.causes import SummaryFormat
from rag_assets.contracts.errors import QueryError
from rag_assets.contracts.tables import CHUNK_INDEX
from rag_assets.query.results import TraceRecorder
from rag_assets.query.search.fusion import comb_sum, min_max
from rag_assets.query.search.index import Candidate, Index, at_once, rescored, scored
from rag_assets.query.search.request import Indexes, RetrievalRequest
from rag_assets.store.vectors.store import sql_in

CANDIDATES = 100  # of each index, at least
CHOSEN = {SummaryFormat.FILE: 10, SummaryFormat.PAGE: 30}  # files and pages of `two_step`


def search_vector(request: RetrievalRequest, indexes: Indexes, trace: TraceRecorder) -> list[Candidate]:
    """Passages by falling cosine."""
    chunks = indexes.chunks
    return chunks.nearest(
        request.embedding, request.filters.to_sql(chunks.columns), request.depth, trace, show=request.show_all
    )


def search_fulltext(request: RetrievalRequest, indexes: Indexes, trace: TraceRecorder) -> list[Candidate]:
    """Passages by falling BM25; those that share no term are left out."""
    chunks = indexes.chunks
    return chunks.matching(
        request.text, request.filters.to_sql(chunks.columns), request.depth, trace, show=request.show_all
    )


def search_hybrid(request: RetrievalRequest, indexes: Indexes, trace: TraceRecorder) -> list[Candidate]:
    """Passages by falling sum of the scaled scores of both indexes, at most 2."""
    chunks = indexes.chunks
    depth = max(CANDIDATES, request.depth)
    return search_both(chunks, request.text, request.embedding, request.filters.to_sql(chunks.columns), depth, trace)


def search_both(
    index: Index, text: str, vector: NDArray[np.float32], where: str | None, depth: int, trace: TraceRecorder
) -> list[Candidate]:
    """Rows of a table by falling sum of the scaled scores of vectors and words, `depth` candidates of each kind."""
    rankings = at_once(
        [partial(index.nearest, vector, where, depth), partial(index.matching, text, where, depth)], trace
    )
    began = time.perf_counter()
    own = [{candidate.key: candidate.score for candidate in ranking} for ranking in rankings]
    candidates = rescored(chain(*reversed(rankings)), comb_sum([min_max(scores) for scores in own]))
    trace.add("fuse", began, len(candidates), scores=scored(candidates, own) if index.name == CHUNK_INDEX.name else ())
    return candidates


def search_two_step(request: RetrievalRequest, indexes: Indexes, trace: TraceRecorder) -> list[Candidate]:
    """Passages by falling sum of the scores of summary and passage, at most 4."""
    summaries, chunks = indexes.summaries, indexes.chunks
    if summaries is None or summaries.row_count == 0:
        raise QueryError("mode two_step needs summaries, and none are indexed")
    condition = both(sql_in("content_format", [request.summaries]), request.filters.to_sql(summaries.columns))
    chosen_summaries = search_both(summaries, request.text, request.embedding, condition, CANDIDATES, trace)
    chosen_summaries = chosen_summaries[: CHOSEN[request.summaries]]
    if not chosen_summaries:
        return []
    by_file = request.summaries is SummaryFormat.FILE
    places = {summary.document_id if by_file else summary.page_id or "": summary.score for summary in chosen_summaries}
    where = both(sql_in("document_id" if by_file else "page_id", places), request.filters.to_sql(chunks.columns))
    depth = max(CANDIDATES, request.depth)
    passages = search_both(chunks, request.text, request.embedding, where, depth, trace)
    began = time.perf_counter()
    own = {candidate.key: candidate.score for candidate in passages}
    summary_scores = {
        candidate.key: places[candidate.document_id if by_file else candidate.page_id or ""] for candidate in passages
    }
    candidates = rescored(passages, comb_sum([own, summary_scores]))
    trace.add("fuse", began, len(candidates), scores=scored(candidates, [own, summary_scores]))
    return candidates


def both(condition: str | None, other: str | None) -> str | None:
    """SQL of two conditions together, of those that there are; None where there is none."""
    return " AND ".join(filter(None, (condition, other))) or None
