"""Mode `hybrid`: passages by meaning and by words together.

Each index gives its best candidates; scores are scaled to 0…1 within each list and added with equal weight. Scaled
scores keep how far apart candidates are, which ranks throw away; equal weights need no labels to tune.

Source: S. Bruch, S. Gai and A. Ingber, An analysis of fusion functions for hybrid retrieval, ACM TOIS 42(1), 2023:
a convex combination of min-max scaled scores beats reciprocal rank fusion and is robust to its weight. Deviation:
the lowest score of a list is taken for its minimum (not the theoretical one).
"""

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from rag_assets.contracts.tables import CHUNK_INDEX
from rag_assets.query.results import TraceRecorder
from rag_assets.query.search.fusion import comb_sum, min_max, ranked
from rag_assets.query.search.index import Candidate, Index, scored
from rag_assets.query.search.request import Indexes, Request

CANDIDATES = 100  # of each index, at least


def search_hybrid(request: Request, indexes: Indexes, trace: TraceRecorder) -> list[Candidate]:
    """Passages by falling sum of the scaled scores of both indexes, at most 2."""
    chunks = indexes.chunks
    depth = max(CANDIDATES, request.depth)
    return search_both(chunks, request.text, request.embedding, request.filters.to_sql(chunks.columns), depth, trace)


def search_both(
    index: Index, text: str, vector: NDArray[np.float32], where: str | None, depth: int, trace: TraceRecorder
) -> list[Candidate]:
    """Rows of a serving table by falling sum of the scaled scores of vectors and words.

    Args:
        index: The table.
        text: What is searched for.
        vector: Its embedding.
        where: Condition that rows must satisfy, or None.
        depth: Candidates of each kind.
        trace: Told what was done.
    """
    by_words = TraceRecorder()
    with ThreadPoolExecutor(1) as thread:
        matching = thread.submit(index.matching, text, where, depth, by_words)
        found = (index.nearest(vector, where, depth, trace), matching.result())
    trace.steps += by_words.steps
    began = time.perf_counter()
    candidates = {candidate.key: candidate for ranking in found for candidate in ranking}
    own = [{candidate.key: candidate.score for candidate in ranking} for ranking in found]
    fused = [replace(candidates[key], score=score) for key, score in ranked(comb_sum([min_max(each) for each in own]))]
    trace.add("fuse", began, len(fused), rescored=scored(fused, own) if index.name == CHUNK_INDEX.name else ())
    return fused
