"""The graph in other programs' forms, its metrics and its picture."""

import base64
import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import networkx as nx
import pytest
from graph_building import (
    entity_rows,
    groups_of_cliques,
    leiden_options,
    memberships,
    names_of,
    relationship_rows,
    silent,
    write_graph,
)

from rag_assets.contracts.tables import COMMUNITIES, COMMUNITY_MEMBERS, ENTITIES, RELATIONSHIPS, Table
from rag_assets.graph.communities.tables import load_communities, update_communities
from rag_assets.graph.exchange import (
    GraphFormat,
    community_picture,
    draw_communities,
    export_graph,
    level_metrics,
    load_graph,
    top_entities_markdown,
)
from rag_assets.graph.reports.tables import ReportOptions, update_reports
from rag_assets.models.language_models import ExtractiveModel
from rag_assets.store.lake import Lake

EDGES = groups_of_cliques(5, 5)
ODD = 'a | b <script>alert("x")</script> & `c`\x01'


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    found = Lake(tmp_path / "lake")
    names = names_of(EDGES) | {"alone"}
    entities = entity_rows(
        names, EDGES, name={"n00.0.0": ODD}, description={"alone": ODD}, aliases={"alone": ["x", "y"]}
    )
    write_graph(found, entities, relationship_rows(EDGES))
    update_communities(found, leiden_options(maximum_size=6))
    update_reports(found, ExtractiveModel(), ReportOptions(2000, 300, 2), silent)
    return found


def test_graphml_holds_the_graph(lake: Lake, tmp_path: Path) -> None:
    path = tmp_path / "graph.graphml"
    assert export_graph(lake, path, GraphFormat.GRAPHML) == (101, len(EDGES))
    graph = nx.read_graphml(path)
    assert set(graph.nodes) == names_of(EDGES) | {"alone"}
    assert graph.number_of_edges() == len(EDGES)
    assert graph.nodes["n00.0.0"]["name"] == ODD.replace("\x01", " ")
    assert graph.nodes["alone"]["aliases"] == "x\ny"
    assert graph.edges["n00.0.0", "n00.0.1"]["weight"] == 2.0
    for level, of_level in enumerate(memberships(load_communities(lake))):
        assert nx.get_node_attributes(graph, f"community_{level}") == of_level
    communities = json.loads(graph.graph["communities"])
    assert {each["community_id"] for each in communities} == {each.community_id for each in load_communities(lake)}


def test_json_holds_the_graph(lake: Lake, tmp_path: Path) -> None:
    path = tmp_path / "graph.json"
    export_graph(lake, path, GraphFormat.JSON)
    graph = nx.node_link_graph(json.loads(path.read_text("utf-8")), edges="edges")
    ours = load_graph(lake)
    assert dict(graph.nodes(data=True)) == dict(ours.nodes(data=True))
    assert nx.utils.edges_equal(graph.edges(data=True), ours.edges(data=True))
    assert graph.graph["communities"] == ours.graph["communities"]
    assert ours.nodes["n00.0.0"]["name"] == ODD


def test_an_earlier_version_can_be_exported(lake: Lake, tmp_path: Path) -> None:
    tables: tuple[Table, ...] = (ENTITIES, RELATIONSHIPS, COMMUNITIES, COMMUNITY_MEMBERS)
    versions = {table.name: lake.latest(table) for table in tables}
    write_graph(lake, entity_rows(["alone"], []), relationship_rows([]))
    update_communities(lake, leiden_options())
    assert export_graph(lake, tmp_path / "old.json", GraphFormat.JSON, versions) == (101, len(EDGES))
    assert export_graph(lake, tmp_path / "new.json", GraphFormat.JSON) == (1, 0)


def test_metrics_agree_with_networkx(lake: Lake) -> None:
    graph = load_graph(lake)
    metrics = level_metrics(lake)
    assert [each.level for each in metrics] == [0, 1]
    for each in metrics:
        groups: dict[str, set[str]] = {}
        for name, community in nx.get_node_attributes(graph, f"community_{each.level}").items():
            groups.setdefault(community, set()).add(name)
        assert each.modularity == pytest.approx(nx.community.modularity(graph, groups.values(), weight="weight"))
        assert each.community_count == len(groups)
    assert [(each.community_count, each.single_count, each.largest, each.median) for each in metrics] == [
        (6, 1, 20, 20.0),
        (21, 1, 5, 5.0),
    ]


def test_top_entities_as_a_table(lake: Lake) -> None:
    lines = top_entities_markdown(lake, 3).splitlines()
    assert len(lines) == 5
    ranks = lake.read(ENTITIES)["rank"].to_pylist()
    assert f"{max(ranks):.5f}" in lines[2]
    cells = {len(re.split(r"(?<!\\)\|", line)) for line in lines}
    assert cells == {9}
    assert "<script>" not in top_entities_markdown(lake, 100).replace("\\<", "")


def test_the_picture_shows_levels_and_sizes(lake: Lake) -> None:
    markdown = community_picture(lake)
    found = re.fullmatch(r"!\[communities\]\(data:image/svg\+xml;base64,([A-Za-z0-9+/=]+)\)", markdown)
    assert found is not None
    assert community_picture(lake) == markdown
    svg = ET.fromstring(base64.b64decode(found[1]))
    space = "{http://www.w3.org/2000/svg}"
    boxes = svg.findall(f"{space}rect")
    titles = [box.findtext(f"{space}title") or "" for box in boxes]
    assert sum("level 0, 20 entities" in title for title in titles) == 5
    assert sum("level 1, 5 entities" in title for title in titles) == 20
    assert b"<script" not in base64.b64decode(found[1])
    places = [tuple(float(box.attrib[name]) for name in ("x", "y", "width")) for box in boxes]
    for top in {y for _, y, _ in places}:
        row = sorted((x, width) for x, y, width in places if y == top)
        assert row[0][0] == 0.0
        assert [x for x, _ in row[1:]] == [pytest.approx(x + width, abs=0.11) for x, width in row[:-1]]
        assert sum(row[-1]) == pytest.approx(960, abs=0.11)


def test_the_largest_communities_are_shown(lake: Lake) -> None:
    communities = [each for each in load_communities(lake) if len(each.members) > 1]
    assert draw_communities(communities, {}, 2).count("level 0") == 2
    assert draw_communities([], {}, 2) == ""


def test_without_communities_a_sentence(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "empty")
    write_graph(lake, entity_rows(["alone"], []), relationship_rows([]))
    update_communities(lake, leiden_options())
    assert community_picture(lake) == "No community has more than one entity."
    assert level_metrics(lake)[0].modularity == 0.0
