"""The community tables: what they depend on, how much a change leaves as it was, and the step that writes them."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from graph_building import (
    Edge,
    adjusted_rand_index,
    cliques,
    entity_rows,
    leiden_options,
    memberships,
    names_of,
    relationship_rows,
    write_graph,
)

from rag_assets.contracts.errors import StoreError
from rag_assets.contracts.tables import COMMUNITIES, COMMUNITY_MEMBERS
from rag_assets.graph.communities.leiden import LeidenOptions
from rag_assets.graph.communities.tables import (
    Community,
    CommunityUpdate,
    detect_communities,
    load_communities,
    update_communities,
)
from rag_assets.store.lake import WHOLE, Lake


def detect(edges: list[Edge], options: LeidenOptions, extra: tuple[str, ...] = ()) -> list[Community]:
    entities = entity_rows(names_of(edges) | set(extra), edges)
    return detect_communities(entities, relationship_rows(edges), options)


def planted(seed: int, groups: int = 20, size: int = 20) -> list[Edge]:
    """Edges within groups, few between them; weights from 1 to 3."""
    rng = np.random.default_rng(seed)
    count = groups * size
    return [
        (f"e{b:04d}", f"e{a:04d}", float(rng.integers(1, 4)))
        for a in range(count)
        for b in range(a)
        if rng.random() < (0.35 if a // size == b // size else 0.004)
    ]


def test_rows_in_any_order_give_the_same() -> None:
    edges = planted(0, 6)
    entities, relationships = entity_rows(names_of(edges), edges), relationship_rows(edges)
    options = leiden_options()
    others, edges_backwards = (rows.take(list(range(rows.num_rows))[::-1]) for rows in (entities, relationships))
    assert detect_communities(others, edges_backwards, options) == detect_communities(entities, relationships, options)


def test_ids_tell_level_and_members() -> None:
    options = leiden_options(maximum_size=20)
    before = detect(cliques(6, 8), options)
    edges = [edge for edge in cliques(6, 8) if not edge[0].startswith("n03") and not edge[1].startswith("n03")]
    after = detect(edges + cliques(1, 8, "x")[:-1], options)
    old = {each.members: each.community_id for each in before}
    new = {each.members: each.community_id for each in after}
    assert {old[members] for members in old.keys() & new.keys()} == {
        new[members] for members in old.keys() & new.keys()
    }
    assert len(old.keys() & new.keys()) == 5
    assert not set(old.values()) & {new[members] for members in new.keys() - old.keys()}


@pytest.mark.parametrize("seed", range(3))
def test_a_change_in_one_place_changes_little(seed: int) -> None:
    options = leiden_options(maximum_size=8)
    edges = planted(seed)
    before = detect(edges, options)
    rng = np.random.default_rng(seed)
    place = {f"e{number:04d}" for number in range(60, 80)}  # 20 of 400, a third of whose relationships go
    kept = [edge for edge in edges if not place & set(edge[:2]) or rng.random() > 1 / 3]
    added = [(f"e{rng.integers(60, 80):04d}", f"f{index}", 2.0) for index in range(10)]
    after = detect(kept + added, options)
    agreement = [adjusted_rand_index(*each) for each in zip(memberships(before), memberships(after), strict=False)]
    assert min(agreement) >= 0.8


def rows_of(lake: Lake) -> Mapping[str, list[object]]:
    return {table.name: lake.read(table).to_pylist() for table in (COMMUNITIES, COMMUNITY_MEMBERS)}


def test_tables_hold_every_entity_at_every_level(tmp_path: Path) -> None:
    lake, edges = Lake(tmp_path), planted(1, 6)
    write_graph(lake, entity_rows(names_of(edges) | {"alone"}, edges), relationship_rows(edges))
    update = update_communities(lake, leiden_options(maximum_size=6))
    communities = {row["community_id"]: row for row in lake.read(COMMUNITIES).to_pylist()}
    members = lake.read(COMMUNITY_MEMBERS).to_pylist()
    depth = 1 + max(row["level"] for row in communities.values())
    assert depth == len(update.sizes) > 1
    for level in range(depth):
        assert sorted(row["entity_id"] for row in members if row["level"] == level) == sorted(
            names_of(edges) | {"alone"}
        )
    for row in members:
        community = communities[row["community_id"]]
        assert community["level"] == row["level"] or (community["level"] < row["level"] and community["is_leaf"])
    for row in communities.values():
        held = [each for each in members if each["community_id"] == row["community_id"]]
        assert row["size"] == len([each for each in held if each["level"] == row["level"]])
        assert (row["parent_id"] is None) == (row["level"] == 0)
        assert row["parent_id"] is None or communities[row["parent_id"]]["level"] == row["level"] - 1
    assert load_communities(lake) == sorted(
        detect(edges, leiden_options(maximum_size=6), extra=("alone",)),
        key=lambda each: (each.level, each.community_id),
    )


def test_no_file_is_written_where_nothing_changed(tmp_path: Path) -> None:
    lake, edges = Lake(tmp_path), cliques(4, 6)
    write_graph(lake, entity_rows(names_of(edges), edges), relationship_rows(edges))
    assert update_communities(lake, leiden_options()).written == 2
    rows = rows_of(lake)
    described = {name: f"{name} has another description now." for name in names_of(edges)}
    write_graph(lake, entity_rows(names_of(edges), edges, description=described), relationship_rows(edges))
    again = update_communities(lake, leiden_options())
    assert (again.written, again.new_ids, again.dissolved) == (0, (), ())
    assert again.kept_count == len(rows["communities"])
    assert rows_of(lake) == rows
    assert lake.latest(COMMUNITIES) == {WHOLE: 1}


def test_what_comes_back_has_its_id(tmp_path: Path) -> None:
    lake, options = Lake(tmp_path), leiden_options(maximum_size=20)

    def index(edges: list[Edge]) -> CommunityUpdate:
        write_graph(lake, entity_rows(names_of(edges), edges), relationship_rows(edges))
        return update_communities(lake, options)

    index(cliques(5, 8))
    first = rows_of(lake)
    dissolved = index(cliques(3, 8)).dissolved
    assert len(dissolved) == 2
    assert {each.successor_id for each in dissolved} == {None}
    assert len(index(cliques(5, 8)).new_ids) == 2
    assert rows_of(lake) == first


def test_dissolved_communities_name_who_took_them_in(tmp_path: Path) -> None:
    lake, options = Lake(tmp_path), leiden_options(maximum_size=100)
    edges = cliques(3, 6)
    write_graph(lake, entity_rows(names_of(edges), edges), relationship_rows(edges))
    update_communities(lake, options)
    before = {each.members[0][:3]: each.community_id for each in load_communities(lake)}
    joined = edges + [(f"n00.{a:02d}", f"n01.{b:02d}", 5.0) for a in range(6) for b in range(6)]
    pairs = {(min(a, b), max(a, b)): weight for a, b, weight in joined}
    edges = [(*pair, weight) for pair, weight in pairs.items()]
    write_graph(lake, entity_rows(names_of(edges), edges), relationship_rows(edges))
    gone = update_communities(lake, options).dissolved
    (taken_in_by,) = {each.successor_id for each in gone}
    assert {each.community_id for each in gone} == {before["n00"], before["n01"]}
    assert {(each.level, each.size) for each in gone} == {(0, 6)}
    assert taken_in_by == next(each.community_id for each in load_communities(lake) if len(each.members) == 12)


def test_a_relationship_needs_its_ends(tmp_path: Path) -> None:
    lake, edges = Lake(tmp_path), cliques(2, 4)
    write_graph(lake, entity_rows(names_of(edges) - {"n00.00"}, edges), relationship_rows(edges))
    with pytest.raises(StoreError, match="'n00.00'"):
        update_communities(lake, leiden_options())


def test_an_empty_graph_has_no_communities(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    write_graph(lake, entity_rows([], []), relationship_rows([]))
    assert update_communities(lake, leiden_options()).sizes == ()
    assert load_communities(lake) == []
