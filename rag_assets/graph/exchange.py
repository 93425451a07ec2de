"""The entity graph for other programs and for people: NetworkX, GraphML and JSON, metrics of its communities, a table
of its first entities.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from rag_assets.contracts.tables import COMMUNITY_REPORTS, ENTITIES, RELATIONSHIPS
from rag_assets.graph.communities.tables import Community, by_level, load_communities
from rag_assets.store.files import write_atomically
from rag_assets.store.lake import Lake, Versions
from rag_assets.text.plain import markdown_table

if TYPE_CHECKING:
    import igraph
    import networkx as nx

_CONTROL = {code: " " for code in range(32) if code not in {9, 10, 13}} | {0xFFFE: " ", 0xFFFF: " "}
_CELL_CHARS = 120
_NOT_SHOWN = ["content_sha256"]  # tells what to compute, and nothing about the graph


class GraphFormat(StrEnum):
    """Formats that the graph can be written in."""

    GRAPHML = "graphml"
    JSON = "json"


@dataclass(frozen=True)
class LevelMetrics:
    """Figures on the communities of a level, with those that are carried down to it.

    Attributes:
        level: The level, 0 for the coarsest.
        median: Entities in the median community of more than one entity; 0 without any.
        modularity: Modularity of the level over the weighted graph, resolution 1; 0 without relationships.
    """

    level: int
    community_count: int
    single_count: int
    largest: int
    median: float
    modularity: float


def load_graph(lake: Lake, versions: Mapping[str, Versions] | None = None) -> "nx.Graph[str]":
    """The entity graph with its communities and reports.

    Without versions, the latest tables are read.

    Returns:
        A graph whose nodes are ids of entities, with the columns of `entities` (other names joined by line breaks) and
        `community_0`, `community_1`, ..., the community at each level; whose edges have the columns of
        `relationships`; and whose attribute `communities` is a list with the columns of `communities`, and title and
        rating of the report where there is one.
    """
    import networkx as nx

    def read(table_name: str) -> Versions | None:
        return None if versions is None else versions.get(table_name, {})

    graph: nx.Graph[str] = nx.Graph()
    for row in lake.read(ENTITIES, versions=read(ENTITIES.name)).drop_columns(_NOT_SHOWN).to_pylist():
        graph.add_node(row.pop("entity_id"), **{**row, "aliases": "\n".join(row["aliases"])})
    for row in lake.read(RELATIONSHIPS, versions=read(RELATIONSHIPS.name)).drop_columns(_NOT_SHOWN).to_pylist():
        graph.add_edge(row.pop("source_id"), row.pop("target_id"), **row)
    reports = lake.read(
        COMMUNITY_REPORTS, columns=["community_id", "title", "rating"], versions=read(COMMUNITY_REPORTS.name)
    )
    titles = {row["community_id"]: {"title": row["title"], "rating": row["rating"]} for row in reports.to_pylist()}
    communities = load_communities(lake, versions)
    for level, of_level in enumerate(by_level(communities)):
        for community in of_level:
            for name in community.members:
                if name in graph:
                    graph.nodes[name][f"community_{level}"] = community.community_id
    graph.graph["communities"] = []
    for community in communities:
        row = {name: getattr(community, name) for name in ("community_id", "level", "parent_id")}
        row |= {"size": len(community.members), **titles.get(community.community_id, {})}
        graph.graph["communities"].append(row)
    return graph


def export_graph(
    lake: Lake, path: Path, graph_format: GraphFormat, versions: Mapping[str, Versions] | None = None
) -> tuple[int, int]:
    """Write the entity graph to a file, as a whole or not at all, and give the numbers of its nodes and edges.

    GraphML holds the communities as attributes of the nodes, and what they are as a JSON text of the graph; characters
    that XML cannot hold become blanks.

    JSON is the node-link form of NetworkX, its edges under `edges`.
    """
    import networkx as nx

    graph = load_graph(lake, versions)
    match graph_format:
        case GraphFormat.GRAPHML:
            graph.graph["communities"] = json.dumps(graph.graph["communities"], ensure_ascii=False)
            content = "\n".join(nx.generate_graphml(_for_xml(graph), named_key_ids=True))
        case GraphFormat.JSON:
            content = json.dumps(nx.node_link_data(graph, edges="edges"), ensure_ascii=False, allow_nan=False)
    write_atomically(path.absolute(), content.encode())
    return graph.number_of_nodes(), graph.number_of_edges()


def level_metrics(lake: Lake) -> list[LevelMetrics]:
    """Figures on the stored communities of each level, from the coarsest."""
    import igraph

    rows = lake.read(RELATIONSHIPS, columns=["source_id", "target_id", "weight"])
    columns = (rows[name].to_pylist() for name in ("source_id", "target_id", "weight"))
    edges = [edge for edge in zip(*columns, strict=True) if edge[0] != edge[1] and edge[2] > 0]
    graph = igraph.Graph.TupleList(edges, weights=True)
    return [_metrics(level, of_level, graph) for level, of_level in enumerate(by_level(load_communities(lake)))]


def top_entities_markdown(lake: Lake, count: int = 20) -> str:
    """A Markdown table of the entities that rank highest."""
    columns = ["entity_id", "name", "type", "rank", "degree", "mention_count", "document_count", "description"]
    rows = lake.read(ENTITIES, columns=columns)
    order = [("rank", "descending"), ("entity_id", "ascending")]
    heads = ("name", "type", "rank", "degree", "mentions", "documents", "description")
    cells = (
        [f"{row[name]:.5f}" if name == "rank" else row[name] for name in columns[1:]]
        for row in rows.sort_by(order).slice(0, count).to_pylist()
    )
    return markdown_table(heads, cells, heads[2:6], _CELL_CHARS)


def _metrics(level: int, communities: Sequence[Community], graph: "igraph.Graph") -> LevelMetrics:
    holders = {name: index for index, each in enumerate(communities) for name in each.members}
    membership = [holders[name] for name in graph.vs["name"]] if graph.ecount() else []
    modularity = graph.modularity(membership, weights="weight") if membership else 0.0
    sizes = [len(each.members) for each in communities]
    several = [size for size in sizes if size > 1]
    middle = float(median(several)) if several else 0.0
    return LevelMetrics(level, len(sizes), len(sizes) - len(several), max(sizes, default=0), middle, modularity)


def _for_xml(graph: "nx.Graph[str]") -> "nx.Graph[str]":
    """The graph without what GraphML cannot hold: control characters and nulls."""
    for _, values in (*graph.nodes(data=True), *((None, each) for _, _, each in graph.edges(data=True))):
        for name, value in list(values.items()):
            if isinstance(value, str):
                values[name] = value.translate(_CONTROL)
            elif value is None:
                del values[name]
    graph.graph["communities"] = graph.graph["communities"].translate(_CONTROL)
    return graph
