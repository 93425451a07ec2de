"""Small entity graphs as stored tables, and the adjusted Rand index."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import comb
from typing import Any

import numpy as np
import pyarrow as pa

from rag_assets.contracts.tables import CLAIMS, ENTITIES, RELATIONSHIPS
from rag_assets.graph.communities.leiden import LeidenOptions, Quality, Subgraph
from rag_assets.graph.communities.tables import Community, by_level
from rag_assets.store.lake import WHOLE, Lake, shard_of

Edge = tuple[str, str, float]


def leiden_options(**values: Any) -> LeidenOptions:
    defaults = {
        "quality": Quality.MODULARITY,
        "resolution": 1.0,
        "maximum_size": 10,
        "seed": 0,
        "joined_from": 300,
        "drift": 0.02,
    }
    return LeidenOptions(**{**defaults, **values})


def part_of(node_count: int, edges: Iterable[tuple[int, int, float]]) -> Subgraph:
    rows = sorted((min(a, b), max(a, b), weight) for a, b, weight in edges)
    return Subgraph(
        np.arange(node_count),
        np.array([row[0] for row in rows], np.int64),
        np.array([row[1] for row in rows], np.int64),
        np.array([row[2] for row in rows], np.float64),
    )


def entity_rows(names: Iterable[str], edges: Sequence[Edge], **columns: Mapping[str, Any]) -> pa.Table:
    """Rows of `entities`, the id of each being its name; numbers follow the alphabet unless given."""
    degrees = Counter(end for edge in edges for end in edge[:2])
    records = []
    for number, name in enumerate(sorted(names), start=1):
        record = {
            "entity_id": name,
            "number": number,
            "name": name,
            "name_key": name.lower(),
            "type": "name",
            "aliases": [],
            "description": f"{name} is described here as one of the things that the documents deal with.",
            "content_sha256": "",
            "mention_count": 1,
            "document_count": 1,
            "degree": degrees[name],
            "rank": float(degrees[name]),
        }
        records.append(record | {column: values[name] for column, values in columns.items() if name in values})
    return pa.Table.from_pylist(records, ENTITIES.schema)


def relationship_rows(edges: Sequence[Edge], descriptions: Mapping[tuple[str, str], str] | None = None) -> pa.Table:
    """Rows of `relationships`, numbered from 1 in the order given."""
    degrees = Counter(end for edge in edges for end in edge[:2])
    records = [
        {
            "source_id": min(source, target),
            "target_id": max(source, target),
            "number": number,
            "description": (descriptions or {}).get((source, target), ""),
            "content_sha256": "",
            "weight": weight,
            "mention_count": 1,
            "combined_degree": degrees[source] + degrees[target],
        }
        for number, (source, target, weight) in enumerate(edges, start=1)
    ]
    return pa.Table.from_pylist(records, RELATIONSHIPS.schema)


def claim_rows(claims: Sequence[tuple[str, str]]) -> pa.Table:
    """Rows of `claims`: key of the subject, and description."""
    records = [
        {
            "document_id": "a.txt",
            "shard": shard_of("a.txt"),
            "claim_index": index,
            "page_id": "a.txt#1",
            "page_number": 1,
            "chunk_id": None,
            "subject_key": subject,
            "object_key": None,
            "type": "plan",
            "status": "suspected",
            "start_date": "2025-04-01",
            "end_date": None,
            "description": description,
            "source_text": description,
            "method": "scripted",
        }
        for index, (subject, description) in enumerate(claims)
    ]
    return pa.Table.from_pylist(records, CLAIMS.schema)


def write_graph(lake: Lake, entities: pa.Table, relationships: pa.Table) -> None:
    lake.write(ENTITIES, WHOLE, entities, {WHOLE: "entities"})
    lake.write(RELATIONSHIPS, WHOLE, relationships, {WHOLE: "relationships"})


def cliques(count: int, size: int, prefix: str = "n") -> list[Edge]:
    """Cliques in a ring, each tied to the next by one edge of little weight."""
    edges: list[Edge] = []
    for clique in range(count):
        names = [f"{prefix}{clique:02d}.{member:02d}" for member in range(size)]
        edges += [(names[a], names[b], 2.0) for a in range(size) for b in range(a + 1, size)]
        edges.append((names[0], f"{prefix}{(clique + 1) % count:02d}.{size - 1:02d}", 0.5))
    return edges


def groups_of_cliques(groups: int, size: int, prefix: str = "n") -> list[Edge]:
    """Groups of four cliques: two levels, by modularity. Cliques of a group are tied member by member, groups by one
    edge; names are `n<group>.<clique>.<member>`.
    """
    edges: list[Edge] = []
    for group in range(groups):
        names = [[f"{prefix}{group:02d}.{clique}.{member}" for member in range(size)] for clique in range(4)]
        edges += [(names[c][a], names[c][b], 2.0) for c in range(4) for a in range(size) for b in range(a + 1, size)]
        edges += [(names[c][a], names[d][a], 1.0) for c in range(4) for d in range(c + 1, 4) for a in range(size)]
        edges.append((names[0][0], f"{prefix}{(group + 1) % groups:02d}.3.{size - 1}", 0.5))
    return edges


def names_of(edges: Iterable[Edge]) -> set[str]:
    return {end for edge in edges for end in edge[:2]}


def memberships(communities: Sequence[Community]) -> list[dict[str, str]]:
    """Community of each entity, level by level."""
    return [{name: each.community_id for each in level for name in each.members} for level in by_level(communities)]


def adjusted_rand_index(first: Mapping[str, object], second: Mapping[str, object]) -> float:
    """Agreement of two partitions on the names that both hold (Hubert and Arabie, 1985): 1 equal, 0 by chance."""
    names = sorted(first.keys() & second.keys())
    pairs = Counter((first[name], second[name]) for name in names)
    rows, columns = Counter(first[name] for name in names), Counter(second[name] for name in names)
    same = sum(comb(each, 2) for each in pairs.values())
    of_rows, of_columns = (sum(comb(each, 2) for each in counts.values()) for counts in (rows, columns))
    expected = of_rows * of_columns / comb(len(names), 2)
    greatest = (of_rows + of_columns) / 2
    return 1.0 if greatest == expected else (same - expected) / (greatest - expected)


def silent(done: int, total: int) -> None:
    """Progress that nobody sees."""
    assert 0 < done <= total
