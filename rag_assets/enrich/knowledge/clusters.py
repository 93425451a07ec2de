"""Which questions say nearly the same: clusters of searched questions within each facet value.

Complete linkage, cut at a distance: any two questions of a cluster are within it, so that a chain of small differences
does not make one cluster of different questions.

Memory is bounded. Below the cut, clusters never reach beyond the connected parts of the graph of pairs within the cut,
so that each part is clustered by itself, which changes nothing; pairs are looked at in blocks. A part of more than
5,000 different questions is taken apart: again and again the first question left with those nearest to it. Near
duplicates that come to stand in different blocks stay apart.

Source: M. Anderberg, "Cluster Analysis for Applications", 1973 (complete linkage); F. Murtagh and P. Contreras,
"Algorithms for Hierarchical Clustering: An Overview", WIREs Data Mining 2(1), 2012. Representatives are medoids:
L. Kaufman and P. Rousseeuw, "Finding Groups in Data", 1990, chapter 2.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rag_assets.contracts.fingerprint import code_fingerprint, digest
from rag_assets.contracts.tables import DOCUMENT_FACETS, QUESTION_CLUSTERS, SYNTHETIC_QA
from rag_assets.enrich.written import Progress, table_inputs
from rag_assets.parsing.records import Record, rows
from rag_assets.store.lake import WHOLE, Lake
from rag_assets.text.plain import markdown_table

Embed = Callable[[Sequence[str]], NDArray[np.float32]]

_BLOCK = 5000  # questions whose distances are held at once: 100 MB
_PAIRS = 4_000_000  # cosines held at once
_DECIMALS = 6


@dataclass(frozen=True)
class Cluster:
    """Questions that say nearly the same."""

    members: tuple[int, ...]  # positions, rising
    medoid: int  # the one nearest to all others; of equally near ones the first
    distances: tuple[float, ...]  # cosine distance of each member to the medoid


@dataclass(frozen=True)
class ClusterUpdate:
    """What the step did."""

    written: int
    question_count: int  # questions, each once for every facet value of its document
    cluster_count: int


def wanted_clusters(lake: Lake, cut_distance: float, embedder_name: str) -> str:
    """What the clusters are to be computed from: all questions and facet values."""
    code = code_fingerprint(f"{__name__}:update_question_clusters")
    return digest(code, cut_distance, embedder_name, table_inputs(lake, (SYNTHETIC_QA, DOCUMENT_FACETS)))


def update_question_clusters(
    lake: Lake, embed: Embed, embedder_name: str, cut_distance: float, progress: Progress
) -> ClusterUpdate:
    """Bring the clusters in step with the questions; nothing is written where nothing changed.

    Questions are embedded as passages, to vectors of unit length; those at hand are not embedded again.

    Raises:
        ModelError: The embedder failed; nothing is written.
    """
    key = wanted_clusters(lake, cut_distance, embedder_name)
    if lake.inputs(QUESTION_CLUSTERS, WHOLE) == {WHOLE: key}:
        representatives = lake.read(QUESTION_CLUSTERS, columns=["is_representative"])["is_representative"]
        return ClusterUpdate(0, len(representatives), sum(representatives.to_pylist()))
    values = _questions(lake)
    records: list[Record] = []
    cluster_count = 0
    for number, (value, questions) in enumerate(sorted(values.items()), start=1):
        clusters = cluster_texts([text for _, text in questions], embed, cut_distance)
        records += _records(value, [qa_id for qa_id, _ in questions], clusters)
        cluster_count += len(clusters)
        progress(number, len(values))
    is_written = lake.write(QUESTION_CLUSTERS, WHOLE, rows(QUESTION_CLUSTERS.schema, records), {WHOLE: key}).written
    return ClusterUpdate(int(is_written), len(records), cluster_count)


def cluster_texts(texts: Sequence[str], embed: Embed, cut_distance: float) -> list[Cluster]:
    """Clusters of texts.

    Args:
        texts: The texts; equal ones are one point of the clustering.
        embed: Gives their vectors.
        cut_distance: Cosine distance that two texts of one cluster have at most.

    Returns:
        Clusters in order of their first members.
    """
    positions: dict[str, list[int]] = defaultdict(list)
    for position, text in enumerate(texts):
        positions[text].append(position)
    distinct = list(positions)
    if not distinct:
        return []
    from scipy.spatial.distance import squareform

    vectors = embed(distinct).astype(np.float32, copy=False)
    clusters = []
    for group in _groups(vectors, cut_distance):
        for members in _complete_linkage(vectors, group, cut_distance):
            counts = np.array([len(positions[distinct[index]]) for index in members])
            distances = squareform(condensed_distances(vectors[members]))
            centre = int(np.argmin((distances * counts).sum(axis=1).round(_DECIMALS)))
            distance_of = {
                position: float(distances[centre, index])
                for index, member in enumerate(members)
                for position in positions[distinct[member]]
            }
            sorted_positions = tuple(sorted(distance_of))
            medoid = positions[distinct[members[centre]]][0]
            clusters.append(
                Cluster(sorted_positions, medoid, tuple(distance_of[position] for position in sorted_positions))
            )
    return sorted(clusters, key=lambda cluster: cluster.members)


def redundancy_report(lake: Lake) -> str:
    """Markdown table: questions, clusters and share of near duplicates of each facet value, the highest share first."""
    totals: dict[tuple[str, str], list[int]] = {}
    columns = ["facet", "value", "is_representative"]
    for row in lake.read(QUESTION_CLUSTERS, columns=columns).to_pylist():
        counts = totals.setdefault((row["facet"], row["value"]), [0, 0])
        counts[0] += 1
        counts[1] += row["is_representative"]
    if not totals:
        return "No questions are clustered."
    rows = (
        (facet, value, count, clusters, f"{1 - clusters / count:.1%}")
        for (facet, value), (count, clusters) in sorted(
            totals.items(), key=lambda item: (item[1][1] / item[1][0], -item[1][0], item[0])
        )
    )
    heads = ("facet", "value", "questions", "clusters", "near duplicates")
    return markdown_table(heads, rows, heads[2:])


def facet_values(lake: Lake) -> dict[str, list[str]]:
    """Facet values of each document, each as `facet=value`."""
    values: dict[str, list[str]] = defaultdict(list)
    for row in lake.read(DOCUMENT_FACETS, columns=["document_id", "facet", "value"]).to_pylist():
        values[row["document_id"]].append(f"{row['facet']}={row['value']}")
    return values


def _questions(lake: Lake) -> dict[str, list[tuple[str, str]]]:
    """Id and text of searched questions by facet value (`facet=value`), in order of ids."""
    values = facet_values(lake)
    questions: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for row in lake.read(SYNTHETIC_QA, columns=["qa_id", "document_id", "question", "indexed"]).to_pylist():
        for value in values.get(row["document_id"], ()) if row["indexed"] else ():
            questions[value].append((row["qa_id"], row["question"]))
    return {value: sorted(of_value) for value, of_value in questions.items()}


def _records(value: str, qa_ids: Sequence[str], clusters: Sequence[Cluster]) -> Iterator[Record]:
    facet, _, name = value.partition("=")
    for number, cluster in enumerate(clusters):
        for member, distance in zip(cluster.members, cluster.distances, strict=True):
            yield {
                "facet": facet,
                "value": name,
                "qa_id": qa_ids[member],
                "cluster": number,
                "is_representative": member == cluster.medoid,
                "distance": distance,
            }


def _groups(vectors: NDArray[np.float32], cut_distance: float) -> Iterator[NDArray[np.int64]]:
    """Positions of vectors that may share a cluster; at most `_BLOCK` in one."""
    labels = _parts(vectors, cut_distance)
    order = np.argsort(labels, kind="stable")
    for group in np.split(order, np.flatnonzero(np.diff(labels[order])) + 1):
        left = group
        while len(left) > _BLOCK:
            nearness = vectors[left] @ vectors[left[0]]
            nearest = np.argsort(-nearness.round(_DECIMALS), kind="stable")[:_BLOCK]
            yield np.sort(left[nearest])
            left = np.delete(left, nearest)
        yield left


def _parts(vectors: NDArray[np.float32], cut_distance: float) -> NDArray[np.int64]:
    """Number of the connected part of each vector, in the graph of pairs within a distance."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    count = len(vectors)
    labels = np.arange(count)
    step = max(1, _PAIRS // count)
    for start in range(0, count, step):
        near = vectors[start : start + step] @ vectors.T >= 1 - cut_distance - 10**-_DECIMALS
        first, second = np.nonzero(near)
        edges = (labels[first + start], labels[second])
        graph = coo_array((np.ones(len(first), dtype=np.int8), edges), shape=(count, count))
        _, parts = connected_components(graph, directed=False)
        labels = np.asarray(parts, dtype=np.int64)[labels]
    return labels


def _complete_linkage(
    vectors: NDArray[np.float32], group: NDArray[np.int64], cut_distance: float
) -> Iterator[list[int]]:
    """Clusters of some vectors, as positions, rising."""
    from scipy.cluster.hierarchy import fcluster, linkage

    if len(group) == 1:
        yield [int(group[0])]
        return
    tree = linkage(condensed_distances(vectors[group]), method="complete")
    clusters: Mapping[int, list[int]] = defaultdict(list)
    for position, number in zip(group.tolist(), fcluster(tree, cut_distance, criterion="distance"), strict=True):
        clusters[int(number)].append(position)
    yield from clusters.values()


def condensed_distances(vectors: NDArray[np.float32]) -> NDArray[np.float64]:
    """Cosine distances of all pairs of vectors, as SciPy takes them: row by row above the diagonal."""
    from scipy.spatial.distance import pdist

    return np.asarray(pdist(vectors, "cosine").round(_DECIMALS), dtype=np.float64)
