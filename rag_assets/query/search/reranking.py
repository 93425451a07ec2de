"""The first passages of a search, ordered anew by a model that reads query and passage together.

What stays out: the model (`rag_assets.models.embedding.sentence_transformers`), and how the passages are found.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from rag_assets.contracts.ports import Reranker
from rag_assets.query.results import Rescored, TraceRecorder
from rag_assets.query.search.index import Candidate, Index


@dataclass
class Reranking:
    """Orders the passages of one query; a passage is scored once, however often it is found.

    Attributes:
        reranker: The model.
        count: Passages that it reads, at most.
        query: The query.
        passages: The passages.
    """

    reranker: Reranker
    count: int
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
        read, rest = self._with_text(found[: self.count]), found[self.count :]
        if not read:
            return list(found)
        began = time.perf_counter()
        new = [candidate for candidate in read if candidate.key not in self._scores]
        if new:
            scores = self.reranker.rerank(self.query, [_text(candidate.shown or {}) for candidate in new])
            self._scores |= zip((candidate.key for candidate in new), scores.tolist(), strict=True)
        ordered = sorted(
            (replace(candidate, score=self._scores[candidate.key]) for candidate in read),
            key=lambda candidate: (-candidate.score, candidate.key),
        )
        before = {candidate.key: candidate.score for candidate in read}
        trace.add(
            "rerank",
            began,
            len(new),
            scores=tuple(Rescored(each.key, each.score, before[each.key]) for each in ordered),
        )
        shift = ordered[-1].score - read[-1].score
        return ordered + [replace(candidate, score=candidate.score + shift) for candidate in rest]

    def _with_text(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        rows = self.passages.shown([each.row_id for each in candidates if each.shown is None])
        return [each if each.shown is not None else replace(each, shown=rows[each.row_id]) for each in candidates]


def _text(row: Mapping[str, object]) -> str:
    """A passage with what tells where it stands."""
    return "\n".join(str(row[name]) for name in ("title", "page_name", "text") if row.get(name))
