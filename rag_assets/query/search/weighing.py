"""Mode `weighted`: passages by one score of all that speaks for them, each signal counted once.

| signal | of | passages | pages | documents |
| --- | --- | --- | --- | --- |
| words | BM25 of the passage, with title and headings; identifiers weigh most | 1 | 1 | 1 |
| meaning | cosine of the passage | 0.5 | 0.5 | 0.5 |
| page | the two above, of all passages of its page | 0.2 | 0.3 | |
| names | words of the document's path, rare ones most | | | 0.5 |
| summary | cosine of the page's summary | | | 0.3 |

Each signal is 1 for the best candidate. Words are divided by the best score, so that a passage which holds the one rare
word of a query stands far before those that do not; meaning is scaled between the best and the hundredth, as cosines
of one query differ little. What a document is about stands in its name and its summaries, what a passage says does not:
so these two weigh where documents are looked for.

Source: adding scaled scores: S. Bruch, S. Gai and A. Ingber, An analysis of fusion functions for hybrid retrieval, ACM
TOIS 42(1), 2023. The weights were chosen over the development sets together; docs/benchmarks.md has the figures.
"""

import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain

from rag_assets.contracts.causes import SummaryFormat
from rag_assets.query.results import TraceRecorder
from rag_assets.query.search.fusion import comb_sum
from rag_assets.query.search.grouping import Granularity
from rag_assets.query.search.index import TERM_WEIGHTS, Candidate, at_once, rescored, scored
from rag_assets.query.search.passages import CANDIDATES, both
from rag_assets.query.search.request import Indexes, RetrievalRequest
from rag_assets.query.search.rewriting_rules import keywords
from rag_assets.store.vectors.store import sql_in
from rag_assets.text.terms import kind_of, query_terms, search_terms

_PLACE_DISCOUNT = 0.5  # of a page's further passages, each against the one before
_NAME_TERM_COST = 0.02  # by which each term of a name makes the others weigh less: long paths hold more words


@dataclass(frozen=True)
class _Weights:
    """Weight of each signal; 1 for words."""

    meaning: float = 0.5
    page: float = 0.0
    names: float = 0.0
    summary: float = 0.0


_WEIGHTS: Mapping[str, _Weights] = {
    Granularity.CHUNK: _Weights(page=0.2),
    Granularity.PAGE: _Weights(page=0.3),
    Granularity.DOCUMENT: _Weights(names=0.5, summary=0.3),
}


class WeightedSearch:
    """The search for one query.

    Args:
        granularity: What a result is.
    """

    def __init__(self, granularity: str) -> None:
        self._weights = _WEIGHTS[granularity]

    def __call__(self, request: RetrievalRequest, indexes: Indexes, trace: TraceRecorder) -> list[Candidate]:
        """Passages that share words or meaning with the query, by falling score; equal ones by id.

        In the trace, the lists of the fusion are words, meaning, page, names and summaries, as far as they weigh.

        Raises:
            StoreError: A published file is gone.
        """
        weights, chunks, summaries = self._weights, indexes.chunks, indexes.summaries
        asked = keywords(request.text) or request.text
        depth = max(CANDIDATES, request.depth)
        where = request.filters.to_sql(chunks.columns)
        searches = [
            partial(chunks.matching, asked, where, depth),
            partial(chunks.nearest, request.embedding, where, depth),
        ]
        if weights.summary and summaries is not None and summaries.row_count:
            of_pages = sql_in("content_format", [SummaryFormat.PAGE])
            where = both(of_pages, request.filters.to_sql(summaries.columns))
            searches.append(partial(summaries.nearest, request.embedding, where, CANDIDATES))
        matching, nearest, *summarized = at_once(searches, trace)
        began = time.perf_counter()
        found = list({each.key: each for each in chain(matching, nearest)}.values())
        signals = [_by_best(matching), _times(weights.meaning, _by_place(nearest))]
        if weights.page:
            signals.append(_times(weights.page, _page_scores(found, comb_sum(signals))))
        if weights.names:
            signals.append(_times(weights.names, _name_scores(asked, found)))
        for ranking in summarized:
            of_page = {each.page_id: score for each, score in zip(ranking, _by_place(ranking).values(), strict=True)}
            signals.append({each.key: weights.summary * of_page.get(each.page_id, 0.0) for each in found})
        fused = rescored(found, comb_sum(signals))
        trace.add("fuse", began, len(fused), scores=scored(fused, signals))
        return fused


def _times(weight: float, scores: Mapping[str, float]) -> dict[str, float]:
    return {key: weight * score for key, score in scores.items()}


def _by_best(found: Sequence[Candidate]) -> dict[str, float]:
    """Scores as shares of the best."""
    best = max((each.score for each in found), default=0.0)
    return {each.key: each.score / best if best > 0 else 0.0 for each in found}


def _by_place(found: Sequence[Candidate]) -> dict[str, float]:
    """Scores from 0, that of the candidate at place `CANDIDATES` or the last, up to 1; in the order given."""
    if not found:
        return {}
    best, least = found[0].score, found[:CANDIDATES][-1].score
    span = best - least
    return {each.key: max(0.0, (each.score - least) / span) if span > 0 else 1.0 for each in found}


def _page_scores(found: Sequence[Candidate], own: Mapping[str, float]) -> dict[str, float]:
    """For each passage the sum of the scores of its page's, each further one at half the weight, by the best page's."""
    scores: dict[str, float] = {}
    held: Counter[str] = Counter()
    for each in sorted(found, key=lambda each: (-own[each.key], each.key)):
        page = each.page_id or each.key
        scores[page] = scores.get(page, 0.0) + own[each.key] * _PLACE_DISCOUNT ** held[page]
        held[page] += 1
    best = max(scores.values(), default=0.0) or 1.0
    return {each.key: scores[each.page_id or each.key] / best for each in found}


def _name_scores(asked: str, found: Sequence[Candidate]) -> dict[str, float]:
    """For each passage what the path of its document shares with the query, by the best document's.

    A term weighs by its kind and by how few of the documents found have it in their paths, as in BM25.
    """
    documents = {each.document_id for each in found}
    names = {each: set(search_terms(each.partition("/")[2]).split()) for each in documents}
    terms = query_terms(asked).split()
    held = Counter(term for name in names.values() for term in name.intersection(terms))
    weights = {
        term: TERM_WEIGHTS[kind_of(term)] * math.log1p((len(names) - held[term] + 0.5) / (held[term] + 0.5))
        for term in terms
        if term in held
    }
    scores = {
        document: sum(weights[term] for term in terms if term in name) / (1 + _NAME_TERM_COST * len(name))
        for document, name in names.items()
    }
    best = max(scores.values(), default=0.0) or 1.0
    return {each.key: scores[each.document_id] / best for each in found}
