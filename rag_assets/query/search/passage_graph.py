"""The graph of passages and entities of one published version, and Personalized PageRank over it.

Nodes are passages and entities. A passage and an entity that it names are joined by an edge that weighs 1 + ln(times
named), times the entity's inverse document frequency over passages, which is 1 for an entity that one passage names;
related entities are joined by the weight of their relationship. Edges have no direction.

Source: the graph and the walk: B. Gutiérrez and others, HippoRAG, NeurIPS 2024, and From RAG to Memory (HippoRAG 2),
ICML 2025. PageRank by following walks outwards while they matter: R. Andersen, F. Chung and K. Lang, Local graph
partitioning using PageRank vectors, FOCS 2006. Deviations: all nodes of a step are followed at once, and what arrives
at a node in one step is followed or left, by one threshold for all nodes, instead of gathered until it is worth
following by the node's degree; edges to passages weigh by TF-IDF, not 1; entities of similar names are one node
(`entity_merges`), not joined by edges.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rag_assets.contracts.tables import CHUNKS, ENTITIES, ENTITY_MENTIONS, ENTITY_MERGES, RELATIONSHIPS
from rag_assets.query.stored import StoredTables, once
from rag_assets.text.folding import fold_name
from rag_assets.text.scripts import KATAKANA, WIDE

if TYPE_CHECKING:
    from scipy.sparse import csr_array

DAMPING = 0.5
LEAST_VISITS = 1e-6  # share of the walks that must arrive at a node in one step to be followed on
_TOLERANCE = 1e-10  # share of the walks that are no longer followed
_WITHIN_WORD = re.compile(rf"[{KATAKANA}・]{{2}}|[^\W_{WIDE}]{{2}}")
_BLANK = " "


@dataclass(frozen=True, eq=False)
class PassageGraph:
    """Passages and entities; passages are the first nodes, entities follow."""

    chunk_ids: Sequence[str]  # the passages
    entity_ids: Sequence[str]  # the entities
    entity_names: Sequence[str]  # name of each entity
    names: dict[str, int]  # for each folded name, merged ones included, the position of its entity
    passage_counts: NDArray[np.int64]  # for each entity, the passages that name it
    adjacency: "csr_array"  # weights of the edges, symmetric, over all nodes

    @cached_property
    def chunk_positions(self) -> dict[str, int]:
        """Position of each passage."""
        return {chunk_id: position for position, chunk_id in enumerate(self.chunk_ids)}

    @cached_property
    def entity_positions(self) -> dict[str, int]:
        """Position of each entity among the entities."""
        return {entity_id: position for position, entity_id in enumerate(self.entity_ids)}

    @property
    def edge_count(self) -> int:
        """Edges."""
        return int(self.adjacency.nnz) // 2

    @cached_property
    def longest_name(self) -> int:
        """Characters of the longest folded name."""
        return max(map(len, self.names), default=0)

    @cached_property
    def _inverse_strengths(self) -> NDArray[np.float64]:
        """One by the sum of the weights of each node's edges; 0 of a node without edges."""
        strengths: NDArray[np.float64] = np.asarray(self.adjacency.sum(axis=1), dtype=np.float64).ravel()
        inverse = np.zeros_like(strengths)
        inverse[strengths > 0] = 1 / strengths[strengths > 0]
        return inverse

    def personalized_pagerank(
        self, reset: NDArray[np.float64], damping: float = DAMPING, least: float = LEAST_VISITS
    ) -> NDArray[np.float64]:
        """How often a walk is at each node that follows edges by their weight and now and then starts anew.

        A walk that stands at a node without edges starts anew. Walks are followed step by step from where they start,
        and no further from nodes at which hardly any of them arrive: edges are read near the start only, though each
        step passes once over all nodes.

        Args:
            reset: For each node how often walks start there; not negative, not all 0.
            damping: Probability of following an edge, below 1.
            least: Share of the walks that must arrive at a node in one step to be followed on from there; those below
                it count for that node alone. 0 for exact probabilities.

        Returns:
            Probabilities of the nodes, in their order; they sum to 1.
        """
        count = len(self._inverse_strengths)
        begins, neighbours, weights = self.adjacency.indptr, self.adjacency.indices, self.adjacency.data
        visits: NDArray[np.float64] = reset / reset.sum()
        nodes = np.flatnonzero(reset)
        arrivals = visits[nodes]
        while arrivals.sum() > _TOLERANCE:
            first, degrees = begins[nodes], begins[nodes + 1] - begins[nodes]
            edges = np.arange(degrees.sum()) + np.repeat(first - np.cumsum(degrees) + degrees, degrees)
            shares = np.repeat(damping * arrivals * self._inverse_strengths[nodes], degrees) * weights[edges]
            new_arrivals = np.bincount(neighbours[edges], shares, minlength=count).astype(np.float64, copy=False)
            visits += new_arrivals
            nodes = np.flatnonzero(new_arrivals > least)
            arrivals = new_arrivals[nodes]
        visits /= visits.sum()
        return visits


def build_passage_graph(stored: StoredTables) -> PassageGraph:
    """Build the graph from the stored tables of a version.

    Raises:
        StoreError: A file is missing or damaged.
    """
    from scipy.sparse import block_array, coo_array

    chunk_ids = stored.read(CHUNKS, ["chunk_id"])["chunk_id"].combine_chunks()
    entities = stored.read(ENTITIES, ["entity_id", "name", "name_key"]).combine_chunks()
    names = _names(stored, entities)
    mentions = _mention_counts(stored, chunk_ids, names, len(entities))
    passage_counts = np.bincount(mentions.indices, minlength=len(entities))
    frequency = np.log1p(len(chunk_ids) / np.maximum(passage_counts, 1)) / max(np.log1p(len(chunk_ids)), 1e-9)
    mentions.data = (1 + np.log(mentions.data)) * frequency[mentions.indices]
    relationships = stored.read(RELATIONSHIPS, ["source_id", "target_id", "weight"])
    ends = [_positions(relationships[name], entities["entity_id"]) for name in ("source_id", "target_id")]
    weights = relationships["weight"].to_numpy()
    upper = coo_array((weights, (ends[0], ends[1])), shape=(len(entities), len(entities)))
    empty_block = coo_array((len(chunk_ids), len(chunk_ids)), dtype=np.float64)
    adjacency = block_array([[empty_block, mentions], [mentions.T, upper + upper.T]], format="csr")
    return PassageGraph(
        chunk_ids.to_pylist(),
        entities["entity_id"].to_pylist(),
        entities["name"].to_pylist(),
        names,
        passage_counts,
        adjacency,
    )


def _names(stored: StoredTables, entities: pa.Table) -> dict[str, int]:
    """Position of the entity of each folded name."""
    names = {key: position for position, key in enumerate(entities["name_key"].to_pylist())}
    merges = stored.read(ENTITY_MERGES, ["name_key", "merged_into"])
    pairs = zip(merges["name_key"].to_pylist(), merges["merged_into"].to_pylist(), strict=True)
    return names | {key: names[into] for key, into in pairs if into in names}


def _mention_counts(stored: StoredTables, chunk_ids: pa.Array, names: dict[str, int], entity_count: int) -> "csr_array":
    """How often each passage names each entity."""
    from scipy.sparse import coo_array

    mentions = stored.read(ENTITY_MENTIONS, ["chunk_id", "name_key"])
    keys = pa.array(list(names), pa.string())
    entity_of = np.append(np.fromiter(names.values(), dtype=np.int64, count=len(names)), -1)  # -1: no such name
    passages = _positions(mentions["chunk_id"], chunk_ids)
    entities = entity_of[_positions(mentions["name_key"], keys)]
    mask = (passages >= 0) & (entities >= 0)
    ones = np.ones(int(mask.sum()))
    counts = coo_array((ones, (passages[mask], entities[mask])), shape=(len(chunk_ids), entity_count)).tocsr()
    counts.sum_duplicates()
    return counts


def _positions(values: pa.ChunkedArray, among: pa.Array | pa.ChunkedArray) -> NDArray[np.int64]:
    """Where each value stands among others; -1 for null and what is not there."""
    value_set = among.combine_chunks() if isinstance(among, pa.ChunkedArray) else among
    indexes = pc.fill_null(pc.index_in(values, value_set=value_set, skip_nulls=True), -1)
    positions: NDArray[np.int64] = indexes.to_numpy().astype(np.int64)
    return positions


class PassageGraphs:
    """The graph of one published version.

    Attributes:
        get: Gives the graph, which is built when it is first asked for. May be asked by several threads.
    """

    def __init__(self, stored: StoredTables) -> None:
        self.stored = stored
        self.get = once(lambda: build_passage_graph(stored))


def named_entities(graph: PassageGraph, text: str) -> list[int]:
    """Entities whose whole name stands in a text: of names that overlap the longest, the first of equals.

    A name that documents write with capitals is not meant by the same word in small letters (`Borders`, "borders"),
    unless the text has no capitals at all.

    Returns:
        Positions of entities, each once, in the order of the text.
    """
    folded_text = fold_name(text)
    written_text = unicodedata.normalize("NFKC", text)
    positions: dict[int, None] = {}
    start = 0
    while start < len(folded_text):
        end = _name_end(graph, folded_text, start)
        if end:
            position = graph.names[folded_text[start:end]]
            if not _stands_small(folded_text[start:end], graph.entity_names[position], written_text):
                positions[position] = None
        start = end or start + 1
    return list(positions)


def _stands_small(key: str, name: str, written_text: str) -> bool:
    """Whether a text that has capitals writes a name, that has some, in small letters."""
    if written_text == written_text.lower() or name == name.lower():
        return False
    places = [place[0] for place in re.finditer(re.escape(key), written_text, re.IGNORECASE)]
    return bool(places) and all(place == place.lower() for place in places)


def _name_end(graph: PassageGraph, folded_text: str, start: int) -> int:
    """End of the longest name that begins at a place; 0 where none does."""
    if folded_text[start] == _BLANK or not _is_boundary(folded_text, start):
        return 0
    for end in range(min(len(folded_text), start + graph.longest_name), start + 1, -1):
        if folded_text[start:end] in graph.names and _is_boundary(folded_text, end):
            return end
    return 0


def _is_boundary(text: str, place: int) -> bool:
    """Whether a name may begin or end at a place: not within a word of letters and digits, or of katakana."""
    return not (place > 0 and _WITHIN_WORD.match(text, place - 1))
