"""Hierarchical Leiden against independent implementations, and what every result must satisfy."""

from collections.abc import Sequence
from itertools import pairwise

import igraph
import leidenalg
import networkx as nx
import numpy as np
import pytest
from graph_building import adjusted_rand_index, leiden_options, part_of
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_assets.graph.communities.leiden import (
    Group,
    Integers,
    LeidenOptions,
    Quality,
    Subgraph,
    find_groups,
    join_communities,
    quality_of,
)

UNKNOWN = -1


def labels_by_level(groups: Sequence[Group], node_count: int) -> list[Integers]:
    """Position of the group of each node at each level, with what is carried down; fails if one has two or none."""
    levels = []
    for level in range(1 + max((group.level for group in groups), default=-1)):
        labels = np.full(node_count, UNKNOWN, np.int64)
        for position, group in enumerate(groups):
            if group.level == level or (group.level < level and group.is_leaf):
                assert (labels[group.nodes] == UNKNOWN).all()
                labels[group.nodes] = position
        assert (labels != UNKNOWN).all()
        levels.append(labels)
    return levels


def from_networkx(graph: "nx.Graph[object]") -> Subgraph:
    numbered = nx.convert_node_labels_to_integers(graph, ordering="sorted")
    edges = [(a, b, float(values.get("weight", 1))) for a, b, values in numbered.edges(data=True)]
    return part_of(numbered.number_of_nodes(), edges)


def as_sets(labels: Integers) -> list[set[int]]:
    return [set(np.flatnonzero(labels == label).tolist()) for label in np.unique(labels)]


STANDARD = {"karate": nx.karate_club_graph, "les_miserables": nx.les_miserables_graph}


@pytest.mark.parametrize("name", STANDARD)
def test_level_0_is_as_good_as_leidenalg_and_better_than_louvain(name: str) -> None:
    graph = nx.convert_node_labels_to_integers(STANDARD[name](), ordering="sorted")
    part = from_networkx(graph)
    labels = labels_by_level(find_groups(part, leiden_options()), len(part.nodes))[0]
    ours = nx.community.modularity(graph, as_sets(labels), weight="weight")
    independent = igraph.Graph(len(part.nodes), list(zip(part.source.tolist(), part.target.tolist(), strict=True)))
    best = max(
        independent.modularity(
            leidenalg.find_partition(
                independent,
                leidenalg.ModularityVertexPartition,
                weights=part.weight.tolist(),
                n_iterations=-1,
                seed=seed,
            ).membership,
            weights=part.weight.tolist(),
        )
        for seed in range(10)
    )
    louvain = nx.community.modularity(graph, nx.community.louvain_communities(graph, seed=0), weight="weight")
    assert ours >= best - 0.005
    assert ours >= louvain - 0.005
    assert quality_of(part, labels, Quality.MODULARITY, 1.0) / part.total == pytest.approx(ours)
    assert independent.modularity(labels.tolist(), weights=part.weight.tolist()) == pytest.approx(ours)


def test_modularity_of_karate_club_is_the_known_optimum() -> None:
    graph = nx.karate_club_graph()
    part = part_of(34, [(a, b, 1.0) for a, b in graph.edges])
    labels = labels_by_level(find_groups(part, leiden_options()), 34)[0]
    # the optimum of the unweighted graph: Brandes et al., "On Modularity Clustering" (2008)
    assert quality_of(part, labels, Quality.MODULARITY, 1.0) / part.total == pytest.approx(0.4198, abs=5e-5)


@pytest.mark.parametrize(
    ("quality", "resolution"), [(Quality.MODULARITY, 1.0), (Quality.CPM, 0.1)], ids=["modularity", "cpm"]
)
def test_planted_communities_are_found(quality: Quality, resolution: float) -> None:
    graph = nx.planted_partition_graph(8, 25, 0.5, 0.01, seed=1)
    part = from_networkx(graph)
    options = leiden_options(quality=quality, resolution=resolution, maximum_size=30)
    labels = labels_by_level(find_groups(part, options), 200)[0]
    planted = {str(node): node // 25 for node in range(200)}
    found = {str(node): int(label) for node, label in enumerate(labels)}
    assert adjusted_rand_index(planted, found) > 0.99


def test_planted_hierarchy_is_found() -> None:
    rng = np.random.default_rng(0)
    chance = {True: 0.95, False: 0.15}
    edges = [
        (a, b, 1.0)
        for a in range(240)
        for b in range(a)
        if rng.random() < (chance[a // 12 == b // 12] if a // 60 == b // 60 else 0.004)
    ]
    levels = labels_by_level(find_groups(part_of(240, edges), leiden_options(maximum_size=15)), 240)
    for level, size in ((0, 60), (1, 12)):
        planted = {str(node): node // size for node in range(240)}
        found = {str(node): int(label) for node, label in enumerate(levels[level])}
        assert adjusted_rand_index(planted, found) > 0.97


def test_components_are_divided_as_the_whole_graph_would_be() -> None:
    graph = nx.disjoint_union(nx.les_miserables_graph(), nx.path_graph(3))
    part = from_networkx(graph)
    labels = labels_by_level(find_groups(part, leiden_options()), len(part.nodes))[0]
    whole = igraph.Graph(len(part.nodes), list(zip(part.source.tolist(), part.target.tolist(), strict=True)))
    together = leidenalg.find_partition(
        whole, leidenalg.ModularityVertexPartition, weights=part.weight.tolist(), n_iterations=-1, seed=0
    )
    assert quality_of(part, labels, Quality.MODULARITY, 1.0) / part.total >= (
        whole.modularity(together.membership, weights=part.weight.tolist()) - 0.005
    )
    assert len(set(labels[-3:].tolist())) == 1


def test_what_happens_in_one_component_leaves_others_alone() -> None:
    first = [(a, b, 1.0) for a, b in nx.karate_club_graph().edges]
    second = [(a + 34, b + 34, w) for a, b, w in first]
    changed = [edge for edge in second if edge[:2] != (34, 35)]
    same = labels_by_level(find_groups(part_of(68, first + second), leiden_options()), 68)
    other = labels_by_level(find_groups(part_of(68, first + changed), leiden_options()), 68)
    assert as_sets(same[0][:34]) == as_sets(other[0][:34])


def test_isolated_nodes_are_communities_by_themselves() -> None:
    groups = find_groups(part_of(5, [(0, 1, 1.0)]), leiden_options(maximum_size=1))
    assert sorted(group.nodes.tolist() for group in groups if group.level == 0) == [[0, 1], [2], [3], [4]]
    assert all(group.is_leaf for group in groups)


def test_nothing_gives_nothing() -> None:
    assert find_groups(part_of(0, []), leiden_options()) == []


def test_a_clique_cannot_be_split() -> None:
    edges = [(a, b, 1.0) for a in range(20) for b in range(a)]
    (group,) = find_groups(part_of(20, edges), leiden_options(maximum_size=5))
    assert (group.edge_count, group.is_leaf) == (190, True)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, list[tuple[int, int, float]]]:
    count = draw(st.integers(1, 40))
    node = st.integers(0, count - 1)
    pairs = draw(st.sets(st.tuples(node, node).filter(lambda pair: pair[0] < pair[1]), max_size=100))
    return count, [(*pair, draw(st.sampled_from([0.25, 1.0, 3.0]))) for pair in sorted(pairs)]


qualities = st.sampled_from(
    [
        leiden_options(maximum_size=4),
        leiden_options(maximum_size=1, resolution=1.7),
        leiden_options(maximum_size=2, joined_from=0),
        leiden_options(quality=Quality.CPM, resolution=0.2, maximum_size=3),
    ]
)


@settings(deadline=None)
@given(graphs(), qualities)
def test_every_level_is_a_refined_partition(
    graph: tuple[int, list[tuple[int, int, float]]], options: LeidenOptions
) -> None:
    count, edges = graph
    whole = part_of(count, edges)
    groups = find_groups(whole, options)
    network = nx.Graph()
    network.add_nodes_from(range(count))
    network.add_edges_from((a, b) for a, b, _ in edges)
    levels = labels_by_level(groups, count)
    for above, below in pairwise(levels):
        for members in as_sets(below):
            assert len({int(above[node]) for node in members}) == 1
    for position, group in enumerate(groups):
        inner = network.subgraph(group.nodes.tolist())
        assert nx.is_connected(inner)
        assert group.edge_count == inner.number_of_edges()
        children = [each for each in groups if each.parent == position]
        assert group.is_leaf is not bool(children)
        if children:
            assert len(group.nodes) > options.maximum_size
            assert {each.level for each in children} == {group.level + 1}
            assert sorted(node for each in children for node in each.nodes.tolist()) == group.nodes.tolist()


@settings(deadline=None)
@given(graphs(), qualities)
def test_a_large_leaf_is_one_that_cannot_be_split(
    graph: tuple[int, list[tuple[int, int, float]]], options: LeidenOptions
) -> None:
    count, edges = graph
    for group in find_groups(part_of(count, edges), options):
        if not group.is_leaf or len(group.nodes) <= options.maximum_size or options.quality is Quality.CPM:
            continue
        place = {node: index for index, node in enumerate(group.nodes.tolist())}
        inner = [(place[a], place[b], w) for a, b, w in edges if a in place and b in place]
        independent = igraph.Graph(len(place), [edge[:2] for edge in inner])
        found = leidenalg.find_partition(
            independent,
            leidenalg.RBConfigurationVertexPartition,
            weights=[edge[2] for edge in inner],
            n_iterations=-1,
            seed=options.seed,
            resolution_parameter=options.resolution,
        )
        assert len(found) in {1, len(place)} or _equally_good(part_of(len(place), inner), found.membership, options)


def _equally_good(part: Subgraph, membership: list[int], options: LeidenOptions) -> bool:
    whole = np.zeros(len(part.nodes), np.int64)
    split = quality_of(part, np.asarray(membership), options.quality, options.resolution)
    none = quality_of(part, whole, options.quality, options.resolution)
    alone = quality_of(part, np.arange(len(part.nodes)), options.quality, options.resolution)
    return split - max(none, alone) <= 2e-4 * part.total


@settings(deadline=None)
@given(graphs(), qualities)
def test_joining_stops_where_no_two_communities_are_better_as_one(
    graph: tuple[int, list[tuple[int, int, float]]], options: LeidenOptions
) -> None:
    count, edges = graph
    part = part_of(count, edges)
    labels = join_communities(part, options.resolution, options.quality)
    best = quality_of(part, labels, options.quality, options.resolution)
    assert best >= quality_of(part, np.arange(count), options.quality, options.resolution) - 1e-9
    for first, second in {(int(labels[a]), int(labels[b])) for a, b, _ in edges}:
        joined = np.where(labels == second, first, labels)
        assert quality_of(part, joined, options.quality, options.resolution) <= best + 1e-9


def test_joining_that_falls_short_is_mended() -> None:
    part = from_networkx(nx.planted_partition_graph(6, 20, 0.6, 0.01, seed=3))
    labels = labels_by_level(find_groups(part, leiden_options(joined_from=0, drift=0.0)), 120)[0]
    independent = igraph.Graph(120, list(zip(part.source.tolist(), part.target.tolist(), strict=True)))
    found = leidenalg.find_partition(independent, leidenalg.ModularityVertexPartition, n_iterations=1, seed=0)
    of_labels, of_first = (
        quality_of(part, np.asarray(each), Quality.MODULARITY, 1.0) for each in (labels, found.membership)
    )
    assert of_labels >= of_first - 1e-6 * part.total
