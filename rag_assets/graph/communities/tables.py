"""The step that brings `communities` and `community_members` in step with the entity graph.

Communities and their ids are a function of the graph: any sequence of changes gives those of a full rebuild.
"""

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass

import numpy as np
import pyarrow as pa

from rag_assets.contracts.errors import StoreError
from rag_assets.contracts.fingerprint import code_fingerprint, digest
from rag_assets.contracts.tables import COMMUNITIES, COMMUNITY_MEMBERS, ENTITIES, RELATIONSHIPS
from rag_assets.graph.communities.leiden import LeidenOptions, Subgraph, find_groups
from rag_assets.store.lake import WHOLE, Lake, Versions

_ID_DIGITS = 16


@dataclass(frozen=True)
class Community:
    """A community of entities."""

    community_id: str
    # level at which it is split off, 0 for the coarsest. Where it is not split, it stands for its entities at all finer
    # levels, too
    level: int
    parent_id: str | None  # community of the level above that holds it; None at level 0
    members: tuple[str, ...]  # ids of its entities, rising
    relationship_count: int  # relationships between its entities
    is_leaf: bool


@dataclass(frozen=True)
class DissolvedCommunity:
    """A community of the version before that is no more."""

    community_id: str
    level: int
    size: int  # entities that it had
    # community that now holds most of them at its level (or the finest); None where all are gone
    successor_id: str | None


@dataclass(frozen=True)
class CommunityUpdate:
    """What became of the communities."""

    written: int
    kept_count: int  # communities that there were before
    new_ids: tuple[str, ...]  # ids of new communities, by level
    dissolved: tuple[DissolvedCommunity, ...]  # communities that are no more, by level
    # communities and, among them, those of a single entity, for each level with what is carried down to it
    sizes: tuple[tuple[int, int], ...]


def update_communities(lake: Lake, options: LeidenOptions) -> CommunityUpdate:
    """Bring the communities in step with `entities` and `relationships`.

    Raises:
        StoreError: A relationship has an end that is no entity.
    """
    entities = lake.read(ENTITIES, columns=["entity_id"])
    relationships = lake.read(RELATIONSHIPS, columns=["source_id", "target_id", "weight"])
    code = code_fingerprint(f"{__name__}:update_communities")
    facts = (code, *astuple(options), rows_digest(entities), rows_digest(relationships))
    inputs = {WHOLE: digest(*facts)}
    tables = (COMMUNITIES, COMMUNITY_MEMBERS)
    previous = load_communities(lake)
    if all(lake.inputs(table, WHOLE) == inputs for table in tables):
        return CommunityUpdate(0, len(previous), (), (), _sizes(previous))
    communities = detect_communities(entities, relationships, options)
    counts = [
        lake.write(COMMUNITIES, WHOLE, _community_rows(communities), inputs).written,
        lake.write(COMMUNITY_MEMBERS, WHOLE, _member_rows(communities), inputs).written,
    ]
    previous_ids = {community.community_id for community in previous}
    new_ids = tuple(community.community_id for community in communities if community.community_id not in previous_ids)
    return CommunityUpdate(
        sum(counts), len(communities) - len(new_ids), new_ids, _dissolved(previous, communities), _sizes(communities)
    )


def load_communities(lake: Lake, published: Mapping[str, Versions] | None = None) -> list[Community]:
    """The stored communities, by level and id.

    Without published versions, the latest tables are read.
    """
    versions = [
        None if published is None else published.get(table.name, {}) for table in (COMMUNITIES, COMMUNITY_MEMBERS)
    ]
    members: dict[str, list[str]] = defaultdict(list)
    rows = lake.read(COMMUNITIES, versions=versions[0]).drop_columns(["size"]).to_pylist()
    levels = {row["community_id"]: row["level"] for row in rows}
    of_members = lake.read(COMMUNITY_MEMBERS, versions=versions[1])
    columns = (of_members[name].to_pylist() for name in ("level", "entity_id", "community_id"))
    for level, entity_id, community_id in zip(*columns, strict=True):
        if levels.get(community_id) == level:
            members[community_id].append(entity_id)
    communities = [Community(**row, members=tuple(of_row)) for row in rows if (of_row := members[row["community_id"]])]
    return sorted(communities, key=lambda community: (community.level, community.community_id))


def detect_communities(entities: pa.Table, relationships: pa.Table, options: LeidenOptions) -> list[Community]:
    """Find the communities of an entity graph.

    Args:
        entities: Rows of `entities`; of their columns, `entity_id` is read.
        relationships: Rows of `relationships`; `source_id`, `target_id` and `weight` are read. One without weight, or
            from an entity to itself, does not count.
        options: How.

    Returns:
        The communities, level by level. The same for the same arguments, whatever the order of the rows.

    Raises:
        StoreError: A relationship has an end that is no entity.
    """
    names = sorted(entities["entity_id"].to_pylist())
    groups = find_groups(_graph(names, relationships), options)
    members = [tuple(names[node] for node in group.nodes) for group in groups]
    ids = [digest(group.level, within)[:_ID_DIGITS] for group, within in zip(groups, members, strict=True)]
    return [
        Community(
            ids[position],
            group.level,
            None if group.parent is None else ids[group.parent],
            members[position],
            group.edge_count,
            group.is_leaf,
        )
        for position, group in enumerate(groups)
    ]


def by_level(communities: Sequence[Community]) -> list[list[Community]]:
    """For each level, the communities that its entities are in: those of the level, and those of higher levels that
    are not split.
    """
    levels: list[list[Community]] = [
        [] for _ in range(1 + max((community.level for community in communities), default=-1))
    ]
    for community in communities:
        last = len(levels) if community.is_leaf else community.level + 1
        for level in range(community.level, last):
            levels[level].append(community)
    return levels


def rows_digest(rows: pa.Table) -> str:
    """Digest of rows in their order: of texts and numbers, not of nested columns."""
    sha = hashlib.sha256()
    for name in rows.column_names:
        values = rows[name].to_pylist()
        sha.update(f"{name}\n{len(values)}\n".encode())
        sha.update("\x1e".join(map(str, values)).encode("utf-8", "surrogatepass"))
    return sha.hexdigest()


def _graph(names: Sequence[str], relationships: pa.Table) -> Subgraph:
    numbers = {name: number for number, name in enumerate(names)}
    try:
        source, target = (
            np.array([numbers[name] for name in relationships[column].to_pylist()], np.int64)
            for column in ("source_id", "target_id")
        )
    except KeyError as error:
        raise StoreError(f"relationships: expected ends among the entities, found {error.args[0]!r}") from error
    weight = relationships["weight"].to_numpy().astype(np.float64)
    order = np.lexsort((target, source))
    order = order[(source[order] != target[order]) & (weight[order] > 0)]
    return Subgraph(np.arange(len(names)), source[order], target[order], weight[order])


def _dissolved(previous: Sequence[Community], communities: Sequence[Community]) -> tuple[DissolvedCommunity, ...]:
    current_ids = {community.community_id for community in communities}
    levels = by_level(communities)
    holders = [{name: community.community_id for community in level for name in community.members} for level in levels]
    dissolutions = []
    for community in previous:
        if community.community_id in current_ids:
            continue
        overlaps: dict[str, int] = defaultdict(int)
        for name in community.members if holders else ():
            if (holder := holders[min(community.level, len(holders) - 1)].get(name)) is not None:
                overlaps[holder] += 1
        successor = min(overlaps, key=lambda name: (-overlaps[name], name), default=None)
        dissolutions.append(
            DissolvedCommunity(community.community_id, community.level, len(community.members), successor)
        )
    return tuple(sorted(dissolutions, key=lambda dissolution: (dissolution.level, dissolution.community_id)))


def _sizes(communities: Sequence[Community]) -> tuple[tuple[int, int], ...]:
    return tuple(
        (len(level), sum(len(community.members) == 1 for community in level)) for level in by_level(communities)
    )


def _community_rows(communities: Sequence[Community]) -> pa.Table:
    rows = [{**vars(community), "size": len(community.members)} for community in communities]
    return pa.Table.from_pylist(rows, COMMUNITIES.schema)


def _member_rows(communities: Sequence[Community]) -> pa.Table:
    levels: list[int] = []
    entity_ids: list[str] = []
    community_ids: list[str] = []
    for level, of_level in enumerate(by_level(communities)):
        for community in of_level:
            levels += [level] * len(community.members)
            entity_ids += community.members
            community_ids += [community.community_id] * len(community.members)
    columns = {"level": levels, "entity_id": entity_ids, "community_id": community_ids}
    return pa.table(columns, COMMUNITY_MEMBERS.schema)
