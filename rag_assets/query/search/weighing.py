"""Mode `weighted`: passages by one score of all that speaks for them, each signal counted once.

| signal | of | passages | pages | documents |
| --- | --- | --- | --- | --- |
| words | BM25 of the passage, with title and headings; identifiers weigh most | 1 | 1 | 1 |
| meaning | cosine of the passage | 1.25 | 1 | 1 |
| page | the two above, of all passages of its page | | 0.3 | |
| names | words of the document's path, rare ones most | | | 0.75 |
| summary | cosine of the page's summary | 0.5 | | 0.5 |
| coverage | words of the query that the passage and its place hold | 1 | | |
| graph | place in a walk over the entity graph, times what it is worth for the query | 5 | 5 | 12 |

`identifiers`, `document`, `agreement` and `reranker` (`rag_assets.query.search.ranking_weights`) weigh nothing as
shipped: what they are worth is learned on a collection, and so may the weights above (`rag_assets.training.ranking`).

Each signal is 1 for the best candidate. Words are divided by the best score, so that a passage which holds the one rare
word of a query stands far before those that do not; meaning is scaled between the best and the hundredth, as cosines of
one query differ little. The walk finds passages that neither words nor meaning do; its scores fall steeply, so that its
places count, and it outweighs all else where it is worth something: where the query names entities that a walk leads on
from (`walk_worth`), and the first passages that it leads to hold words of the query which the best of the others lacks,
as the second passage of a question in two steps does. For coverage the first passages by the other signals are read:
BM25 weighs what is rare in the whole collection, so that a passage which repeats the name of the system that is asked
about stands before the one that says what is asked of it; among the first passages that name is common, and weighs
little. What a document is about stands in its name, what a passage says does not: so names weigh where documents are
looked for.

Source: adding scaled scores: S. Bruch, S. Gai and A. Ingber, An analysis of fusion functions for hybrid retrieval, ACM
TOIS 42(1), 2023. The weights were chosen over the development sets together; docs/benchmarks.md has the figures.
"""

import heapq
import math
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from rag_assets.contracts.causes import SummaryFormat
from rag_assets.query.results import TRACED, TraceRecorder
from rag_assets.query.search.fusion import comb_sum, min_max
from rag_assets.query.search.graph_local import entities_near, ranked_passages, walk_between, walk_worth
from rag_assets.query.search.grouping import Granularity
from rag_assets.query.search.index import TERM_WEIGHTS, Candidate, at_once, rescored, scored
from rag_assets.query.search.passage_graph import PassageGraph
from rag_assets.query.search.passages import CANDIDATES, both
from rag_assets.query.search.ranking_weights import (
    COVERAGE,
    RERANKER,
    SHIPPED,
    SIGNALS,
    QueryMap,
    Ranking,
    Scorer,
    Weights,
)
from rag_assets.query.search.request import Indexes, RetrievalRequest
from rag_assets.query.search.rewriting_rules import keywords
from rag_assets.store.vectors.store import sql_in
from rag_assets.text.folding import TermKind, content_words, kind_of, query_terms, search_terms, shares_held

_PLACE_DISCOUNT = 0.5  # of further passages of a page or document, each against the one before
_NAME_TERM_COST = 0.02  # by which each term of a name makes the others weigh less: long paths hold more words


_READ = 15  # passages whose words are compared with the query's
_STEM_WEIGHT = 0.5  # of a single ideograph, mostly the stem of a verb
_OWN_MEANING = 0.5  # of meaning against words, in what page and document sum up
_WALK_READ = 5  # passages of the walk, and of those found by words and meaning, whose words are compared
_LITTLE_BEYOND, _MUCH_BEYOND = 0.1, 0.25  # of the query's words that the best passage lacks and one of the walk's holds
_WALK_PLACES = 5  # by which the worth of a passage of the walk falls to a third

_Scores = Mapping[str, float]  # by passage


class WeightedSearch:
    """The search for one query.

    Args:
        granularity: What a result is.
        ranking: The weights, and the map of query vectors.
    """

    def __init__(self, granularity: str, ranking: Ranking) -> None:
        self._scorer = ranking.weights[granularity]
        self._query_map = ranking.query_map

    def __call__(self, request: RetrievalRequest, indexes: Indexes, trace: TraceRecorder) -> list[Candidate]:
        """Passages that share words or meaning with the query, or that its graph leads to, by falling score, then id.

        In the trace, the lists of the fusion are what each signal that counts adds to the score, named in its texts.

        Raises:
            ModelError: The reranker failed, whose score counts.
            StoreError: A published file is gone.
        """
        scorer = self._scorer
        candidates, signals = _signals(_map_query(request, self._query_map), indexes, trace, scorer.signals)
        if COVERAGE in scorer.signals:
            first = indexes.chunks.read(_best_candidates(scorer, candidates, signals), trace)
            candidates = [*{candidate.key: candidate for candidate in (*candidates, *first)}.values()]
            signals[COVERAGE] = _coverage(request.text, first)
        scores, lists = _score(scorer, candidates, signals)
        began = time.perf_counter()
        if RERANKER in scorer.signals and request.reranking is not None:
            signals[RERANKER] = min_max(request.reranking.scores(rescored(candidates, scores), trace))
            scores, lists = _score(scorer, candidates, signals)
        fused_candidates = rescored(candidates, scores)
        trace.add(
            "fuse", began, len(fused_candidates), scores=scored(fused_candidates, [*lists.values()]), texts=tuple(lists)
        )
        return fused_candidates


def _score(
    scorer: Scorer, candidates: Sequence[Candidate], signals: Mapping[str, _Scores]
) -> tuple[_Scores, Mapping[str, _Scores]]:
    """Scores of passages, and what each signal that counts adds to them; with trees, of the first `TRACED` only."""
    signal_names = [name for name in signals if name in scorer.signals]
    if isinstance(scorer, Weights):
        weights = dict(zip(SIGNALS, scorer.vector().tolist(), strict=True))
        lists = {name: _times(weights[name], signals[name]) for name in signal_names}
        return comb_sum([*lists.values()]), lists
    values = _values(candidates, signals)
    scores = scorer.scores(values)
    first = sorted(range(len(candidates)), key=lambda row: (-scores[row], candidates[row].key))[:TRACED]
    contributions = dict(zip(SIGNALS, scorer.contributions(values[first]).T.tolist(), strict=True))
    keys = [candidates[row].key for row in first]
    lists = {name: dict(zip(keys, contributions[name], strict=True)) for name in SIGNALS if name in scorer.signals}
    return dict(zip((candidate.key for candidate in candidates), scores.tolist(), strict=True)), lists


def _values(candidates: Sequence[Candidate], signals: Mapping[str, _Scores]) -> NDArray[np.float64]:
    """Signals of passages, float64 of shape `(passages, signals)`, in the order of `SIGNALS`."""
    columns = [[signals.get(name, {}).get(candidate.key, 0.0) for candidate in candidates] for name in SIGNALS]
    return np.array(columns, dtype=np.float64).T


@dataclass(frozen=True, eq=False)
class RankingSignals:
    """What weights are learned from: all signals of one query."""

    vector: NDArray[np.float32]  # of the query, as embedded
    candidates: tuple[Candidate, ...]  # passages, by id
    values: NDArray[np.float64]  # float64 of shape `(passages, signals)`, in the order of `SIGNALS`
    # the reranker's own scores, float64 of shape `(passages,)`, nan where it reads none; empty without one
    read: NDArray[np.float64]


def ranking_signals(request: RetrievalRequest, indexes: Indexes, query_map: QueryMap | None) -> RankingSignals:
    """All signals of the passages that mode `weighted` ranks; the first by the shipped weights are read, and by the
    reranker.

    Raises:
        ModelError: The reranker failed.
        StoreError: A published file is gone.
    """
    trace = TraceRecorder()
    scorer = SHIPPED[Granularity.CHUNK]
    candidates, signals = _signals(_map_query(request, query_map), indexes, trace, SIGNALS)
    signals[COVERAGE] = _coverage(
        request.text, indexes.chunks.read(_best_candidates(scorer, candidates, signals), trace)
    )
    passages = tuple(sorted(candidates, key=lambda candidate: candidate.key))
    reranker_scores = np.empty(0)
    if request.reranking is not None:
        scores, _ = _score(scorer, candidates, signals)
        own = request.reranking.scores(rescored(candidates, scores), trace)
        signals[RERANKER] = min_max(own)
        reranker_scores = np.array([own.get(passage.key, math.nan) for passage in passages])
    return RankingSignals(request.embedding, passages, _values(passages, signals), reranker_scores)


def _map_query(request: RetrievalRequest, query_map: QueryMap | None) -> RetrievalRequest:
    return request if query_map is None else replace(request, vector=query_map.mapped(request.embedding))


def _signals(
    request: RetrievalRequest, indexes: Indexes, trace: TraceRecorder, signal_names: Collection[str]
) -> tuple[list[Candidate], dict[str, _Scores]]:
    """Passages that any signal finds, and the signals that are wanted and can be told."""
    chunks, summaries = indexes.chunks, indexes.summaries
    query_text = keywords(request.text) or request.text
    depth = max(CANDIDATES, request.depth)
    where = request.filters.to_sql(chunks.columns)
    searches: dict[str, Callable[[TraceRecorder], list[Candidate]]] = {
        "words": partial(chunks.matching, query_text, where, depth),
        "meaning": partial(chunks.nearest, request.embedding, where, depth),
    }
    if "summary" in signal_names and summaries is not None and summaries.row_count:
        of_pages = sql_in("content_format", [SummaryFormat.PAGE])
        within = both(of_pages, request.filters.to_sql(summaries.columns))
        searches["summary"] = partial(summaries.nearest, request.embedding, within, CANDIDATES)
    identifiers = [term for term in query_terms(query_text).split() if kind_of(term) is TermKind.IDENTIFIER]
    if "identifiers" in signal_names and identifiers:
        searches["identifiers"] = partial(chunks.matching, " ".join(identifiers), where, depth)
    graph, worth = None, 0.0
    if "graph" in signal_names and indexes.entities is not None and indexes.entities.row_count:
        graph = indexes.graphs.get()
        worth = walk_worth(request.text, graph)
    if worth:
        searches["entities"] = partial(entities_near, request, indexes)
    rankings = dict(zip(searches, at_once([*searches.values()], trace), strict=True))
    word_matches, nearest = rankings["words"], rankings["meaning"]
    walked_passages: list[Candidate] = []
    if graph is not None and worth:
        walked_passages = _walk(request, indexes, graph, rankings["entities"], nearest, word_matches, trace)
    candidates = [*{candidate.key: candidate for candidate in chain(word_matches, nearest, walked_passages)}.values()]
    words, meaning = _by_best(word_matches), _by_place(nearest)
    own = {candidate.key: 0.0 for candidate in candidates} | comb_sum([words, _times(_OWN_MEANING, meaning)])
    signals: dict[str, _Scores] = {"words": words, "meaning": meaning}
    if "page" in signal_names:
        signals["page"] = _group_scores(candidates, own, lambda candidate: candidate.page_id or candidate.key)
    if "names" in signal_names:
        signals["names"] = _name_scores(query_text, candidates)
    if "summary" in rankings:
        ranking = rankings["summary"]
        of_page = {summary.page_id: score for summary, score in zip(ranking, _by_place(ranking).values(), strict=True)}
        signals["summary"] = {candidate.key: of_page.get(candidate.page_id, 0.0) for candidate in candidates}
    if "document" in signal_names:
        signals["document"] = _group_scores(candidates, own, lambda candidate: candidate.document_id)
    if "agreement" in signal_names:
        signals["agreement"] = {key: min(score, meaning[key]) for key, score in words.items() if key in meaning}
    shares = _by_best(rankings.get("identifiers", ()))
    signals["identifiers"] = {
        candidate.key: shares[candidate.key] for candidate in candidates if candidate.key in shares
    }
    if walked_passages:
        first = heapq.nsmallest(_WALK_READ, candidates, key=lambda candidate: (-own[candidate.key], candidate.key))
        read_passages = chunks.read([*first, *walked_passages[:_WALK_READ]], trace)
        candidates = [*{candidate.key: candidate for candidate in (*candidates, *read_passages)}.values()]
        worth *= _said_beyond(request.text, read_passages[: len(first)], read_passages[len(first) :])
        signals["graph"] = {
            passage.key: worth * math.exp(-at / _WALK_PLACES) for at, passage in enumerate(walked_passages)
        }
    return candidates, signals


def _walk(
    request: RetrievalRequest,
    indexes: Indexes,
    graph: PassageGraph,
    entities: Sequence[Candidate],
    nearest: Sequence[Candidate],
    word_matches: Sequence[Candidate],
    trace: TraceRecorder,
) -> list[Candidate]:
    """Passages to which a walk leads from entities and from the nearest passages."""
    walk = walk_between(request, graph, entities, nearest, trace)
    known_candidates = {candidate.key: candidate for candidate in chain(word_matches, nearest)}
    return ranked_passages(graph, walk.passages, replace(request, depth=CANDIDATES), indexes, trace, known_candidates)


def _best_candidates(
    scorer: Scorer, candidates: Sequence[Candidate], signals: Mapping[str, _Scores]
) -> list[Candidate]:
    """The passages that are read, best first; equal ones by key."""
    values = scorer.scores(_values(candidates, signals)).tolist()
    scores = dict(zip((candidate.key for candidate in candidates), values, strict=True))
    return heapq.nsmallest(_READ, candidates, key=lambda candidate: (-scores[candidate.key], candidate.key))


def _coverage(question: str, passages: Sequence[Candidate]) -> _Scores:
    """For each passage how many of a question's words it, its place and the beginning of its document hold, by the best
    passage.

    Each counts once, and a compound in part; those that few of these passages hold weigh most, so that what all say of
    the system or the document that is asked about does not tell them apart.
    """
    word_shares, short = _word_shares(question, passages)
    scores = word_shares @ (short * np.maximum(0.0, np.log((len(passages) + 1) / (word_shares.sum(axis=0) + 0.5))))
    best = float(scores.max(initial=0.0)) or 1.0
    return {passage.key: score / best for passage, score in zip(passages, scores.tolist(), strict=True)}


def _said_beyond(question: str, found_passages: Sequence[Candidate], walked_passages: Sequence[Candidate]) -> float:
    """What a walk is worth beside the passages that words and meaning find: 0 where none that it leads to holds more
    than a few words of the question which that of these lacks that holds most, 1 where one holds many, or none is
    found.
    """
    word_shares, weights = _word_shares(question, [*found_passages, *walked_passages])
    found_shares, walked_shares = word_shares[: len(found_passages)], word_shares[len(found_passages) :]
    if not len(found_shares) or not len(walked_shares):
        return 1.0
    best = found_shares[np.argmax(found_shares @ weights)]
    beyond = float((np.maximum(0.0, walked_shares - best) @ weights).max()) / (weights.sum() or 1.0)
    return min(1.0, max(0.0, beyond - _LITTLE_BEYOND) / (_MUCH_BEYOND - _LITTLE_BEYOND))


def _word_shares(question: str, passages: Sequence[Candidate]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Shares of a question's words that passages with their places hold, float64 of shape `(passages, words)`, and the
    weights of the words.
    """
    words = list(dict.fromkeys(content_words(keywords(question))))
    word_shares = np.zeros((len(passages), len(words)))
    for row, passage in enumerate(passages):
        shown_values = passage.shown or {}
        texts = (shown_values.get(name) for name in ("title", "page_name", "heading", "text", "beginning"))
        word_shares[row] = shares_held(words, "\n".join([passage.document_id, *filter(None, texts)]))
    return word_shares, np.array([_STEM_WEIGHT if len(word[0]) == 1 else 1.0 for word in words])


def _times(weight: float, scores: Mapping[str, float]) -> dict[str, float]:
    return {key: weight * score for key, score in scores.items()}


def _by_best(candidates: Sequence[Candidate]) -> dict[str, float]:
    """Scores as shares of the best."""
    best = max((candidate.score for candidate in candidates), default=0.0)
    return {candidate.key: candidate.score / best if best > 0 else 0.0 for candidate in candidates}


def _by_place(candidates: Sequence[Candidate]) -> dict[str, float]:
    """Scores from 0, that of the candidate at place `CANDIDATES` or the last, up to 1; in the order given."""
    if not candidates:
        return {}
    best, least = candidates[0].score, candidates[:CANDIDATES][-1].score
    span = best - least
    return {candidate.key: max(0.0, (candidate.score - least) / span) if span > 0 else 1.0 for candidate in candidates}


def _group_scores(
    candidates: Sequence[Candidate], own: Mapping[str, float], group_of: Callable[[Candidate], str]
) -> dict[str, float]:
    """For each passage the sum of the scores of its page's or document's, each further one at half the weight, by the
    best page's or document's.
    """
    scores: dict[str, float] = {}
    counts: Counter[str] = Counter()
    for candidate in sorted(candidates, key=lambda candidate: (-own[candidate.key], candidate.key)):
        group = group_of(candidate)
        scores[group] = scores.get(group, 0.0) + own[candidate.key] * _PLACE_DISCOUNT ** counts[group]
        counts[group] += 1
    best = max(scores.values(), default=0.0) or 1.0
    return {candidate.key: scores[group_of(candidate)] / best for candidate in candidates}


def _name_scores(query_text: str, candidates: Sequence[Candidate]) -> dict[str, float]:
    """For each passage what the path of its document shares with the query, by the best document's.

    A term weighs by its kind and by how few of the documents found have it in their paths, as in BM25.
    """
    documents = {candidate.document_id for candidate in candidates}
    names = {document_id: set(search_terms(document_id.partition("/")[2]).split()) for document_id in documents}
    terms = query_terms(query_text).split()
    document_counts = Counter(term for name in names.values() for term in name.intersection(terms))
    weights = {
        term: TERM_WEIGHTS[kind_of(term)]
        * math.log1p((len(names) - document_counts[term] + 0.5) / (document_counts[term] + 0.5))
        for term in terms
        if term in document_counts
    }
    scores = {
        document: sum(weights[term] for term in terms if term in name) / (1 + _NAME_TERM_COST * len(name))
        for document, name in names.items()
    }
    best = max(scores.values(), default=0.0) or 1.0
    return {candidate.key: scores[candidate.document_id] / best for candidate in candidates}
