"""Hierarchical Leiden: a weighted graph, divided into communities, these into smaller ones, and so on.

Works on arrays: nodes are numbers, what they stand for is not known here.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from heapq import heappop, heappush
from typing import Any

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

_NEGLIGIBLE = 2e-4  # gain of a round of Leiden, as a share of the weight, at which it ends
_ROUNDS = 10  # of parting what fell apart and moving nodes again
_FINER = 2.0  # how much finer each further attempt to split by CPM is


class Quality(StrEnum):
    """What a good partition is."""

    MODULARITY = "modularity"
    CPM = "cpm"


@dataclass(frozen=True)
class LeidenOptions:
    """How communities are found."""

    quality: Quality  # what is optimised: modularity, or the constant Potts model (CPM)
    # higher for more and smaller communities. Of modularity, 1 is its definition; of CPM, the share of weight that a
    # pair within a community must have at least, in the unit of the weights
    resolution: float
    maximum_size: int  # communities of more nodes are split further, as long as a split is better than none
    seed: int  # of the random order in which nodes are visited
    # connected components of more nodes are divided by joining communities, which leaves most of them as they were
    # after a small change; smaller ones by Leiden, which is slightly better
    joined_from: int
    # quality by which a partition by joining may fall behind the first round of Leiden, as a share of the weight that
    # is divided (of modularity: 0.01 is 0.01 modularity); beyond, Leiden goes on from there
    drift: float


@dataclass(frozen=True)
class Group:
    """A community."""

    level: int  # level at which it is split off, 0 for the coarsest
    parent: int | None  # position of the community of the level above among all groups; None at level 0
    nodes: Integers  # its nodes, rising
    edge_count: int  # edges between its nodes
    is_leaf: bool


@dataclass(frozen=True)
class Subgraph:
    """A part of a graph, with nodes numbered anew from 0."""

    nodes: Integers  # number of each node in the whole graph, rising
    source: Integers  # one end of each edge
    target: Integers  # its other end; never the same
    weight: Floats  # weights, greater than 0

    @cached_property
    def total(self) -> float:
        """Sum of the weights."""
        return float(self.weight.sum())

    @cached_property
    def strength(self) -> Floats:
        """Sum of the weights at each node."""
        count = len(self.nodes)
        ends, twice = np.concatenate([self.source, self.target]), np.concatenate([self.weight, self.weight])
        return np.bincount(ends, twice, count).astype(np.float64)

    def graph(self, edges: NDArray[np.bool_] | None = None) -> Any:
        """As an igraph graph, without weights; with some of the edges only."""
        import igraph

        source, target = (self.source, self.target) if edges is None else (self.source[edges], self.target[edges])
        return igraph.Graph(len(self.nodes), np.column_stack([source, target]))

    def components(self, labels: Integers | None = None) -> Integers:
        """Label of the connected component of each node; of the component within its community, given labels."""
        inside = None if labels is None else labels[self.source] == labels[self.target]
        return np.asarray(self.graph(inside).connected_components().membership, np.int64)

    def divide(self, labels: Integers) -> list["Subgraph"]:
        """One part for each label, in their order; edges between labels are left out.

        Args:
            labels: Label of each node, from 0, none left out.
        """
        if not len(labels):
            return []
        count = int(labels.max()) + 1
        order = np.argsort(labels, kind="stable")
        node_ends = np.cumsum(np.bincount(labels, minlength=count))
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        inside = np.flatnonzero(labels[self.source] == labels[self.target])
        inside = inside[np.argsort(labels[self.source[inside]], kind="stable")]
        edge_ends = np.cumsum(np.bincount(labels[self.source[inside]], minlength=count))
        parts = []
        for nodes, edges, end in zip(
            np.split(order, node_ends[:-1]), np.split(inside, edge_ends[:-1]), node_ends, strict=True
        ):
            first = end - len(nodes)
            source, target = place[self.source[edges]] - first, place[self.target[edges]] - first
            parts.append(Subgraph(self.nodes[nodes], source, target, self.weight[edges]))
        return parts


def find_groups(whole: Subgraph, options: LeidenOptions) -> list[Group]:
    """Divide a graph into communities, and each into smaller ones, until they are small or cannot be split.

    Connected components are divided one by one, with the resolution scaled so that the quality of all of them together
    is that of the whole graph; so what happens in one leaves the others as they are. A node without edges is a
    community by itself. Communities are connected. A split is one into at least two communities, of which one at
    least has more than one node.

    The best partitions of a graph are many and nearly equally good, and which one Leiden finds turns on the order in
    which it visits the nodes: after the smallest change, another. Components of more than `joined_from` nodes are
    therefore divided by joining communities in an order that rests on the weights between them alone, which leaves
    most of them as they were; then nodes are moved while that makes it better. Leiden goes on where that falls short.

    Source: V. A. Traag, L. Waltman, N. J. van Eck, "From Louvain to Leiden: guaranteeing well-connected communities"
    (2019), for Leiden; A. Clauset, M. E. J. Newman, C. Moore, "Finding community structure in very large networks"
    (2004), for joining; D. Edge et al., "From Local to Global: A GraphRAG Approach to Query-Focused Summarization"
    (2024), section 3.1.4, for the recursion. Deviation: the gain of joining two communities is divided by the
    geometric mean of their sizes, as L. Danon, A. Diaz-Guilera, A. Arenas, "Effect of size heterogeneity on community
    identification in complex networks" (2006) divide it by one of them, so that large ones do not swallow the rest.

    Returns:
        The communities, level by level, within a level by parent and then by first node. Every level, with the
        communities of higher levels that are not split, holds every node once.
    """
    groups: list[Group] = []
    parts: list[tuple[Subgraph, int | None, float, bool]] = []
    for component in whole.divide(whole.components()):
        scale = component.total / whole.total if options.quality is Quality.MODULARITY and whole.total else 1.0
        by_joining = len(component.nodes) > options.joined_from
        labels = _partition(component, options.resolution * scale, options, by_joining=by_joining)
        parts += ((part, None, options.resolution, by_joining) for part in component.divide(labels))
    parts.sort(key=lambda item: int(item[0].nodes[0]))
    level = 0
    while parts:
        next_parts: list[tuple[Subgraph, int | None, float, bool]] = []
        for part, parent, resolution, by_joining in parts:
            children, finer = _split(part, resolution, options, by_joining=by_joining)
            position = len(groups)
            groups.append(Group(level, parent, part.nodes, len(part.weight), is_leaf=not children))
            next_parts += ((child, position, finer, by_joining) for child in children)
        parts, level = next_parts, level + 1
    return groups


def quality_of(part: Subgraph, labels: Integers, quality: Quality, resolution: float) -> float:
    """Quality of a partition, in the unit of the weights: divided by their sum, the modularity."""
    internal = float(part.weight[labels[part.source] == labels[part.target]].sum())
    if quality is Quality.MODULARITY:
        strengths = np.bincount(labels, part.strength)
        return internal - resolution * float(strengths @ strengths) / (4 * part.total) if part.total else 0.0
    sizes = np.bincount(labels).astype(np.float64)
    return internal - resolution * float(sizes @ (sizes - 1)) / 2


def _split(
    part: Subgraph, resolution: float, options: LeidenOptions, *, by_joining: bool
) -> tuple[list[Subgraph], float]:
    """Communities of a community, none where it is small or cannot be split, and the resolution that split it."""
    if len(part.nodes) <= options.maximum_size:
        return [], resolution
    for finer in _resolutions(part, resolution, options):
        labels = _partition(part, finer, options, by_joining=by_joining)
        count = int(labels.max()) + 1
        if count == len(part.nodes):
            break
        if count > 1:
            return part.divide(labels), finer
    return [], resolution


def _resolutions(part: Subgraph, resolution: float, options: LeidenOptions) -> Iterator[float]:
    """Resolutions to try in turn: modularity judges a part by its own weights, CPM needs a finer one each time."""
    if options.quality is Quality.MODULARITY:
        yield resolution
        return
    heaviest = float(part.weight.max(initial=0.0))
    while 0 < resolution < heaviest:
        resolution *= _FINER
        yield resolution


def _partition(part: Subgraph, resolution: float, options: LeidenOptions, *, by_joining: bool) -> Integers:
    """Label of each node of a connected part, numbered by first node."""
    if _is_one_community(part, resolution, options.quality):
        return np.zeros(len(part.nodes), np.int64)
    leiden = _Leiden(part, resolution, options)
    if not by_joining:
        return leiden.run(None)
    labels = leiden.move(join_communities(part, resolution, options.quality))
    least_quality = quality_of(part, leiden.first_round(), options.quality, resolution) - options.drift * part.total
    if quality_of(part, labels, options.quality, resolution) >= least_quality:
        return labels
    result = leiden.run(labels)
    return result if quality_of(part, result, options.quality, resolution) >= least_quality else leiden.run(None)


def join_communities(part: Subgraph, resolution: float, quality: Quality) -> Integers:
    """Join communities, from single nodes on, as long as two are better as one; see `find_groups`.

    Joined first are those of the greatest gain for their sizes: strengths (modularity) or nodes (CPM). Ties go to the
    lower nodes.

    Returns:
        Label of each node, numbered by first node.
    """
    count = len(part.nodes)
    if quality is Quality.MODULARITY:
        sizes, factor = part.strength.tolist(), resolution / (2 * part.total) if part.total else 0.0
    else:
        sizes, factor = [1.0] * count, resolution
    between: list[dict[int, float]] = [{} for _ in range(count)]
    for source, target, weight in zip(part.source.tolist(), part.target.tolist(), part.weight.tolist(), strict=True):
        between[source][target] = between[target][source] = between[source].get(target, 0.0) + weight
    joins = [0] * count  # how often each community was joined with others; -1 where another one stands for it
    into = list(range(count))
    queue: list[tuple[float, int, int, int, int]] = []

    def offer(first: int, second: int) -> None:
        gain = between[first][second] - factor * sizes[first] * sizes[second]
        if gain > 0:
            priority = gain / math.sqrt(sizes[first] * sizes[second])
            low, high = min(first, second), max(first, second)
            heappush(queue, (-priority, low, high, joins[low], joins[high]))

    for first, neighbours in enumerate(between):
        for second in neighbours:
            if first < second:
                offer(first, second)
    while queue:
        _, low, high, *join_counts = heappop(queue)
        if join_counts != [joins[low], joins[high]]:
            continue
        larger, smaller = (low, high) if len(between[low]) >= len(between[high]) else (high, low)
        into[smaller], joins[smaller] = larger, -1
        joins[larger] += 1
        sizes[larger] += sizes[smaller]
        for neighbour, weight in between[smaller].items():
            del between[neighbour][smaller]
            if neighbour != larger:
                between[larger][neighbour] = between[neighbour][larger] = between[larger].get(neighbour, 0.0) + weight
        between[smaller] = {}
        for neighbour in between[larger]:
            offer(larger, neighbour)
    return _numbered(_ends(into))


def _ends(into: list[int]) -> Integers:
    """For each node, where following the list ends: at a node that leads to itself."""
    for node in range(len(into)):
        while into[into[node]] != into[node]:
            into[node] = into[into[node]]
    return np.array(into, np.int64)


def _is_one_community(part: Subgraph, resolution: float, quality: Quality) -> bool:
    """Whether joining any two connected communities of a part is certain to be no loss, so that one is the best.

    The gain of joining A and B is their weight less `resolution * K_A * K_B / 2m` (modularity, K the strengths) or
    `resolution * n_A * n_B` (CPM); the product is greatest for halves.
    """
    if not len(part.weight):
        return True
    lightest = float(part.weight.min())
    if quality is Quality.MODULARITY:
        return lightest >= resolution * part.total / 2
    return lightest >= resolution * len(part.nodes) ** 2 / 4


class _Leiden:
    """Leiden on one part."""

    def __init__(self, part: Subgraph, resolution: float, options: LeidenOptions) -> None:
        self._part = part
        self._resolution = resolution
        self._options = options
        self._graph = part.graph()

    def run(self, labels: Integers | None) -> Integers:
        """Leiden until it gains next to nothing, from given labels or from single nodes; then single nodes are moved
        until that gains nothing, so that a start from the result changes nothing.
        """
        optimiser, partition = self._begin(labels)
        gain = math.inf
        while gain > _NEGLIGIBLE * self._part.total:
            gain = optimiser.optimise_partition(partition, n_iterations=1)
        return self.move(np.asarray(partition.membership, np.int64))

    def first_round(self) -> Integers:
        """The first round of Leiden from single nodes, which is nearly as good as its end."""
        optimiser, partition = self._begin(None)
        optimiser.optimise_partition(partition, n_iterations=1)
        return np.asarray(partition.membership, np.int64)

    def move(self, labels: Integers) -> Integers:
        """Move nodes while that makes it better."""
        labels = _numbered(self._part.components(labels))
        for _ in range(_ROUNDS):
            optimiser, partition = self._begin(labels)
            optimiser.move_nodes(partition)
            # every community is connected: parting one that is not is always better
            new_labels = _numbered(self._part.components(np.asarray(partition.membership, np.int64)))
            if np.array_equal(new_labels, labels):
                break
            labels = new_labels
        return labels

    def _begin(self, labels: Integers | None) -> tuple[Any, Any]:
        import leidenalg

        of_quality = {
            Quality.MODULARITY: leidenalg.RBConfigurationVertexPartition,
            Quality.CPM: leidenalg.CPMVertexPartition,
        }
        partition = of_quality[self._options.quality](
            self._graph,
            initial_membership=None if labels is None else labels.tolist(),
            weights=self._part.weight.tolist(),
            resolution_parameter=self._resolution,
        )
        optimiser = leidenalg.Optimiser()
        optimiser.set_rng_seed(self._options.seed)
        return optimiser, partition


def _numbered(labels: Integers) -> Integers:
    """Labels from 0, in order of their first node."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty_like(first)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[inverse.ravel()].astype(np.int64)
