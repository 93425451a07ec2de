"""Rank fusion of modes, as in `hybrid,graph_local`: each ranks passages by itself, and ranks are put into one.

Scores of different modes mean different things; ranks can be added. What is ranked is what is asked for: where results
are pages or documents, each mode ranks these by itself, by its own scores.

Source: reciprocal rank fusion with k = 60 of G. Cormack, C. Clarke and S. Büttcher, SIGIR 2009.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from rag_assets.query.results import TraceRecorder
from rag_assets.query.search.fusion import reciprocal_rank
from rag_assets.query.search.grouping import grouped, target
from rag_assets.query.search.index import Candidate, at_once, best_first, scored
from rag_assets.query.search.passages import CANDIDATES
from rag_assets.query.search.request import Indexes, Mode, RetrievalRequest


@dataclass(frozen=True)
class FusedSearch:
    """The search for one query."""

    parts: Mapping[str, Mode]  # the modes that are fused, by name
    granularity: str  # what a result is

    def __call__(self, request: RetrievalRequest, indexes: Indexes, trace: TraceRecorder) -> list[Candidate]:
        """Passages that any of the modes ranks among its best, by falling reciprocal rank; equal ones by id.

        Where results are pages or documents, the first passage of each has the score of its page or document, and
        others have 0.

        In the trace, the steps of each mode stand before a step `part` that names it.
        """
        depth = max(CANDIDATES, request.depth)
        part_request = replace(request, depth=depth, show_all=False)

        def search(name: str, own: TraceRecorder) -> list[Candidate]:
            began = time.perf_counter()
            candidates = self.parts[name](part_request, indexes, own)[:depth]
            own.add("part", began, len(candidates), scores=scored(candidates), texts=(name,))
            return candidates

        results = at_once([partial(search, name) for name in self.parts], trace)
        began = time.perf_counter()
        lists = [grouped(candidates, self.granularity) for candidates in results]
        rankings = [
            {target(candidate, self.granularity): candidate.score for candidate in candidates} for candidates in lists
        ]
        scores = reciprocal_rank(rankings)
        fused_candidates: dict[str, Candidate] = {}
        for candidate in (candidate for candidates in lists for candidate in candidates):
            result = target(candidate, self.granularity)
            first_candidate = fused_candidates.setdefault(result, replace(candidate, score=scores[result]))
            if candidate.questions and not first_candidate.questions:
                fused_candidates[result] = replace(first_candidate, questions=candidate.questions)
        best = best_first(fused_candidates.values())
        shown_keys = {candidate.key for candidate in best}
        other_candidates = {
            candidate.key: replace(candidate, score=0.0)
            for candidates in results
            for candidate in candidates
            if candidate.key not in shown_keys
        }
        by_passage = [
            {fused_candidates[result].key: score for result, score in ranking.items()} for ranking in rankings
        ]
        trace.add("fuse", began, len(best), scores=scored(best, by_passage), texts=tuple(self.parts))
        return [*best, *(other_candidates[key] for key in sorted(other_candidates))]
