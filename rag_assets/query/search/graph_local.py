"""Mode `graph_local`: passages by a walk over the graph of passages and entities that starts at what the query names.

The walk starts at the entities whose names stand in the query, at those nearest to it by meaning and words, each by its
score over the number of passages that name it, and, with a small weight, at the passages nearest by meaning. So a
passage is found that shares no word with the query, but names what a passage names that does. Filters hold for
passages: for those at which walks start and those that are returned; walks pass through all others.

Source: HippoRAG, NeurIPS 2024 (specificity of nodes, section 2.3), and HippoRAG 2, ICML 2025 (passages among the seeds,
their weight 0.05, five entities, damping 0.5). Deviations: there is no language model, so that names in the query and
entities near to it take the place of filtered triples; an entity has the mean vector of the passages that name it, not
that of its name; only the nearest passages are seeds, not all.
"""

import re
import time
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from rag_assets.contracts.errors import QueryError
from rag_assets.query.results import TraceRecorder
from rag_assets.query.search.fusion import min_max, ranked
from rag_assets.query.search.index import Candidate, Index, at_once, best_first, scored
from rag_assets.query.search.passage_graph import PassageGraph, named_entities
from rag_assets.query.search.passages import CANDIDATES, search_both
from rag_assets.query.search.request import Indexes, RetrievalRequest

NEAREST = 5  # entities near to the query at which walks start
PASSAGE_WEIGHT = 0.05
HOW_TO_INDEX = "set RAG_GRAPH__ENABLED=true (graph.enabled) and run `rag-assets index`"
_LOOKED_UP = 100  # passages looked up at once, at least
_SHOWN = 10  # seeds and neighbours that the trace names
_FEW_PASSAGES = 3  # that name an entity from which a walk leads somewhere
_WORTH = ((1.0, 1.0), (0.5, 0.25))  # of a walk, by the share of the entities that are named by few passages
_QUERY_CHARS = 2000  # of a longer query the beginning is looked through for names

_JOINED = re.compile(
    r"との(?:関係|関連|つながり|違い)|の間の|両方|双方|どちらも|共通点"
    r"|\b(?:both|between)\b.+\band\b|\b(?:related\sto|relationship|in\scommon|the\ssame\s.+\sas)\b",
    re.IGNORECASE,
)
_RELATION = re.compile(
    r"の[^の、。]{1,20}の|(?:した|する|している|された|がある)[^、。]{1,15}の"
    # something of another thing, or a thing told by what it does
    r"|\b(?:of|whose|who|that|which|by|where|when)\s\S|\w['’]s?\s",
    re.IGNORECASE,
)
_FIRST_QUESTION_WORD = re.compile(
    r"^\W*(?:(?:in|at|on|by|for|of|from)\s)?(?:who|whose|what|which|where|when|why|how|that)\b(?:['’]s\b)?",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Walk:
    """Where a walk led."""

    entities: NDArray[np.float64]  # score of each entity
    passages: NDArray[np.float64]  # score of each passage

    def nearest_entities(self, count: int) -> list[int]:
        """Positions of the entities that walks reach most often, seeds included; equal ones by position."""
        return [int(position) for position in _best_places(self.entities, count)]


def walk_worth(query: str, graph: PassageGraph) -> float:
    """How much a walk tells beside words and meaning: 0 for nothing, up to 1.

    A query leads on that names two entities, joins things in words, or goes on from one by a relation ("the director of
    ..."). A walk from what many passages name leads everywhere: it is worth all where few passages name each of the
    entities, something where few name half of them, else nothing.
    """
    text = unicodedata.normalize("NFKC", query[:_QUERY_CHARS])
    entities = named_entities(graph, text)
    relation = _RELATION.search(_FIRST_QUESTION_WORD.sub("", text))
    if not entities or (len(entities) == 1 and relation is None and _JOINED.search(text) is None):
        return 0.0
    share = float(np.mean(graph.passage_counts[entities] <= _FEW_PASSAGES))
    return next((worth for least, worth in _WORTH if share >= least), 0.0)


def search_graph_local(request: RetrievalRequest, indexes: Indexes, trace: TraceRecorder) -> list[Candidate]:
    """Passages by falling share of the walk's steps."""
    graph, walk = walk_from(request, indexes, trace)
    return ranked_passages(graph, walk.passages, request, indexes, trace)


def ranked_passages(
    graph: PassageGraph,
    scores: NDArray[np.float64],
    request: RetrievalRequest,
    indexes: Indexes,
    trace: TraceRecorder,
    known: Mapping[str, Candidate] | None = None,
) -> list[Candidate]:
    """Passages by falling score, of which there is one for each of the graph; equal ones by id; none with score 0.

    Those of which a row is known, one that the filters let pass, are not looked up.
    """
    began = time.perf_counter()
    where = request.filters.to_sql(indexes.chunks.columns)
    candidates: list[Candidate] = []
    start, size = 0, max(2 * request.depth, _LOOKED_UP)
    while len(candidates) < request.depth and len(places := _best_places(scores, start + size)[start:]):
        chunk_scores = {graph.chunk_ids[place]: float(scores[place]) for place in places}
        rows = _rows([*chunk_scores], known or {}, indexes.chunks, where, trace)
        candidates += [row.with_score(chunk_scores[row.key]) for row in rows]
        start, size = start + size, size * 4
    best = best_first(candidates)[: request.depth]
    trace.add("rank", began, len(best), scores=scored(best))
    return best


def _best_places(scores: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """Places of the best scores above 0, by falling score; equal ones by place."""
    places = np.flatnonzero(scores > 0)
    if count < len(places):
        found_scores = scores[places]
        places = places[found_scores >= np.partition(found_scores, -count)[-count]]
    return places[np.argsort(-scores[places], kind="stable")][:count]


def _rows(
    keys: Sequence[str], known_rows: Mapping[str, Candidate], chunks: Index, where: str | None, trace: TraceRecorder
) -> list[Candidate]:
    """The rows of passages that satisfy a condition; those known do."""
    other_rows = chunks.having([key for key in keys if key not in known_rows], where, trace)
    return [*(known_rows[key] for key in keys if key in known_rows), *other_rows.values()]


def walk_from(request: RetrievalRequest, indexes: Indexes, trace: TraceRecorder) -> tuple[PassageGraph, Walk]:
    """Walk from what a query names.

    Raises:
        QueryError: No entities are indexed.
    """
    depth = max(CANDIDATES, request.depth)
    nearest = partial(indexes.chunks.nearest, request.embedding, request.filters.to_sql(indexes.chunks.columns), depth)
    searches = [partial(entities_near, request, indexes), nearest]
    entities, passages = at_once(searches, trace)
    graph = indexes.graphs.get()
    return graph, walk_between(request, graph, entities, passages, trace)


def entities_near(request: RetrievalRequest, indexes: Indexes, trace: TraceRecorder) -> list[Candidate]:
    """Entities by falling nearness to a query, by meaning and words.

    Raises:
        QueryError: No entities are indexed.
    """
    entities = indexes.entities
    if entities is None or entities.row_count == 0:
        raise QueryError(f"mode graph_local needs the entity graph, and no entities are indexed: {HOW_TO_INDEX}")
    return search_both(entities, request.text, request.embedding, None, CANDIDATES, trace)


def walk_between(
    request: RetrievalRequest,
    graph: PassageGraph,
    entities: Sequence[Candidate],
    passages: Sequence[Candidate],
    trace: TraceRecorder,
) -> Walk:
    """Walk from what a query names, the entities near to it and the passages nearest to it."""
    seeds = _seeds(request, entities, graph, trace)
    began = time.perf_counter()
    reset = np.zeros(len(graph.chunk_ids) + len(graph.entity_ids))
    nearest = {candidate.key: candidate.score for candidate in passages[:CANDIDATES]}  # however many are wanted
    for key, score in min_max(nearest).items():
        if key in graph.chunk_positions:
            reset[graph.chunk_positions[key]] = PASSAGE_WEIGHT * score
    for position, weight in seeds.items():
        reset[len(graph.chunk_ids) + position] = weight
    scores = graph.personalized_pagerank(reset) if reset.any() else reset
    walk = Walk(scores[len(graph.chunk_ids) :], scores[: len(graph.chunk_ids)])
    sizes = f"{len(graph.chunk_ids)} passages, {len(graph.entity_ids)} entities, {graph.edge_count} edges"
    names = [
        f"neighbour {graph.entity_names[entity]}" for entity in walk.nearest_entities(_SHOWN) if entity not in seeds
    ]
    trace.add("walk", began, int((walk.passages > 0).sum()), texts=(sizes, *names))
    return walk


def _seeds(
    request: RetrievalRequest, candidates: Sequence[Candidate], graph: PassageGraph, trace: TraceRecorder
) -> dict[int, float]:
    """Weight of each entity at which walks start, the heaviest first: score over passages that name it."""
    began = time.perf_counter()
    known_candidates = [candidate for candidate in candidates if candidate.key in graph.entity_positions][:NEAREST]
    scores = {graph.entity_positions[candidate.key]: candidate.score / 2 for candidate in known_candidates}
    scores |= dict.fromkeys(named_entities(graph, request.text[:_QUERY_CHARS]), 1.0)
    weights = {str(entity): score / max(1, int(graph.passage_counts[entity])) for entity, score in scores.items()}
    seeds = {int(position): weight for position, weight in ranked(weights) if weight > 0}
    heaviest = list(seeds.items())[:_SHOWN]
    texts = tuple(f"seed {graph.entity_names[position]} {weight:.3f}" for position, weight in heaviest)
    trace.add("seeds", began, len(seeds), texts=texts)
    return seeds
