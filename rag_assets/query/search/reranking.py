"""The first passages of a search, read by a model together with the query: ordered anew by it, or with its score as a
signal of mode `weighted`.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from rag_assets.contracts.ports import Reranker
from rag_assets.query.results import Rescored, TraceRecorder
from rag_assets.query.search.index import Candidate, Index, best_first


@dataclass
class Reranking:
    """Orders the passages of one query; a passage is scored once, however often it is found."""

    reranker: Reranker  # the model
    count: int  # passages that it reads, at most
    query: str
    passages: Index
    _scores: dict[str, float] = field(default_factory=dict)

    def order(self, found: Sequence[Candidate], trace: TraceRecorder) -> list[Candidate]:
        """Candidates by falling score of the model; equal ones by key.

        Those that it does not read stand below, in the order given; their scores are shifted so that they go on where
        the others end.

        Raises:
            ModelError: The model failed.
        """
        rest = found[self.count :]
        ordered_passages = self._rerank(found, trace)
        if not ordered_passages:
            return list(found)
        shift = ordered_passages[-1].score - found[len(ordered_passages) - 1].score
        return ordered_passages + [replace(candidate, score=candidate.score + shift) for candidate in rest]

    def scores(self, found: Sequence[Candidate], trace: TraceRecorder) -> dict[str, float]:
        """Scores of the model for the candidates that it reads, by key, best first.

        Raises:
            ModelError: The model failed.
        """
        return {candidate.key: candidate.score for candidate in self._rerank(found, trace)}

    def _rerank(self, candidates: Sequence[Candidate], trace: TraceRecorder) -> list[Candidate]:
        """The candidates that the model reads, with what is shown of them, by falling score of the model, then key."""
        passages = self.passages.read(candidates[: self.count])
        if not passages:
            return []
        began = time.perf_counter()
        new = [candidate for candidate in passages if candidate.key not in self._scores]
        if new:
            scores = self.reranker.rerank(self.query, [_text(candidate.shown or {}) for candidate in new])
            self._scores |= zip((candidate.key for candidate in new), scores.tolist(), strict=True)
        ordered_passages = best_first(replace(candidate, score=self._scores[candidate.key]) for candidate in passages)
        before = {candidate.key: candidate.score for candidate in passages}
        rescored_passages = tuple(
            Rescored(passage.key, passage.score, before[passage.key]) for passage in ordered_passages
        )
        trace.add("rerank", began, len(new), scores=rescored_passages)
        return ordered_passages


def _text(row: Mapping[str, object]) -> str:
    """A passage with what tells where it stands."""
    return "\n".join(str(row[name]) for name in ("title", "page_name", "text") if row.get(name))
