"""What a result is: a passage, or a page or document that scores by its passages."""

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum

from rag_assets.query.search.fusion import min_max
from rag_assets.query.search.index import Candidate, best_first


class Granularity(StrEnum):
    """What a result is."""

    CHUNK = "chunk"
    PAGE = "page"
    DOCUMENT = "document"


def target(candidate: Candidate, granularity: str) -> str:
    """Id of the passage, the page or the document that a passage stands for."""
    if granularity == Granularity.CHUNK:
        return candidate.key
    return (candidate.page_id or candidate.key) if granularity == Granularity.PAGE else candidate.document_id


def grouped(candidates: Sequence[Candidate], granularity: str) -> list[Candidate]:
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
        groups.setdefault(target(candidate, granularity), []).append(candidate)
    if granularity == Granularity.PAGE:
        return [group[0] for group in groups.values()]
    scaled_scores = min_max({candidate.key: candidate.score for candidate in candidates})
    best = [
        replace(group[0], score=sum(scaled_scores[candidate.key] * 0.5**place for place, candidate in enumerate(group)))
        for group in groups.values()
    ]
    return best_first(best)
