"""The entity graph for other programs and for people: NetworkX, GraphML and JSON, metrics of its communities, a table
of its first entities, and a picture of its communities: boxes, each level below the one before, as SVG.

The picture is made of text, so that it needs no drawing library; names are shown on pointing at a box.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from rag_assets.contracts.tables import COMMUNITY_REPORTS, ENTITIES, RELATIONSHIPS
from rag_assets.graph.communities.tables import Community, by_level, load_communities
from rag_assets.store.files import write_atomically
from rag_assets.store.lake import Lake, Versions
from rag_assets.text.plain import markdown_picture, markdown_table, one_line, svg_text

if TYPE_CHECKING:
    import igraph
    import networkx as nx

_CONTROL = {code: " " for code in range(32) if code not in {9, 10, 13}} | {0xFFFE: " ", 0xFFFF: " "}
_CELL_CHARS = 120
_NOT_SHOWN = ["content_sha256"]  # tells what to compute, and nothing about the graph

# of the picture
_WIDTH = 960.0
_ROW = 44.0
_LEAST_WIDTH = 3.0  # of a box; narrower ones are left out, so that the picture stays small
_CHAR_WIDTH = 12.0
_LEAST_CHARS = 4  # of a name that is written in its box
_SHOWN = 40  # communities of level 0
_COLOURS = ("#dbe7f3", "#a9c8e6", "#6ba3d6", "#2f7cc0", "#14558f")


class GraphFormat(StrEnum):
    """Formats that the graph can be written in."""

    GRAPHML = "graphml"
    JSON = "json"


@dataclass(frozen=True)
class LevelMetrics:
    """Figures on the communities of a level, with those that are carried down to it."""

    level: int  # the level, 0 for the coarsest
    community_count: int
    single_count: int
    largest: int
    median: float  # entities in the median community of more than one entity; 0 without any
    modularity: float  # modularity of the level over the weighted graph, resolution 1; 0 without relationships


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

    def versions_of(table_name: str) -> Versions | None:
        return None if versions is None else versions.get(table_name, {})

    graph: nx.Graph[str] = nx.Graph()
    for row in lake.read(ENTITIES, versions=versions_of(ENTITIES.name)).drop_columns(_NOT_SHOWN).to_pylist():
        graph.add_node(row.pop("entity_id"), **{**row, "aliases": "\n".join(row["aliases"])})
    for row in lake.read(RELATIONSHIPS, versions=versions_of(RELATIONSHIPS.name)).drop_columns(_NOT_SHOWN).to_pylist():
        graph.add_edge(row.pop("source_id"), row.pop("target_id"), **row)
    reports = lake.read(
        COMMUNITY_REPORTS, columns=["community_id", "title", "rating"], versions=versions_of(COMMUNITY_REPORTS.name)
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
    holders = {name: index for index, community in enumerate(communities) for name in community.members}
    membership = [holders[name] for name in graph.vs["name"]] if graph.ecount() else []
    modularity = graph.modularity(membership, weights="weight") if membership else 0.0
    sizes = [len(community.members) for community in communities]
    several = [size for size in sizes if size > 1]
    middle = float(median(several)) if several else 0.0
    return LevelMetrics(level, len(sizes), len(sizes) - len(several), max(sizes, default=0), middle, modularity)


def _for_xml(graph: "nx.Graph[str]") -> "nx.Graph[str]":
    """The graph without what GraphML cannot hold: control characters and nulls."""
    for _, values in (*graph.nodes(data=True), *((None, data) for _, _, data in graph.edges(data=True))):
        for name, value in list(values.items()):
            if isinstance(value, str):
                values[name] = value.translate(_CONTROL)
            elif value is None:
                del values[name]
    graph.graph["communities"] = graph.graph["communities"].translate(_CONTROL)
    return graph


def community_picture(lake: Lake) -> str:
    """A Markdown image of the communities: the largest ones of level 0, and below each those that it is split into.

    Widths stand for numbers of entities, rows and shades for levels. Communities of a single entity are not shown.

    Returns:
        Markdown with the SVG as a data URI; a sentence where there is nothing to show.
    """
    communities = [community for community in load_communities(lake) if len(community.members) > 1]
    reports = lake.read(COMMUNITY_REPORTS, columns=["community_id", "title"])
    titles = dict(zip(reports["community_id"].to_pylist(), reports["title"].to_pylist(), strict=True))
    svg = draw_communities(communities, titles, _SHOWN)
    return markdown_picture("communities", svg) if svg else "No community has more than one entity."


def draw_communities(communities: Sequence[Community], titles: Mapping[str, str], shown: int) -> str:
    """The picture as SVG text; see `community_picture`.

    Titles of reports are by id of the community.

    Returns:
        The same text for the same arguments; empty without communities.
    """
    children: dict[str | None, list[Community]] = defaultdict(list)
    for community in sorted(communities, key=lambda community: (-len(community.members), community.members)):
        children[community.parent_id].append(community)
    children[None] = children[None][:shown]
    if not children[None]:
        return ""
    scale = _WIDTH / sum(len(root.members) for root in children[None])
    height = _ROW * (1 + max(community.level for community in communities))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH:.0f} {height:.0f}" font-family="sans-serif">',
        *_boxes(None, 0.0, scale, children, titles),
    ]
    return "\n".join([*parts, "</svg>"])


def _boxes(
    parent: str | None,
    left: float,
    scale: float,
    children: Mapping[str | None, Sequence[Community]],
    titles: Mapping[str, str],
) -> Iterator[str]:
    """Boxes of the communities that a community is split into, from the largest, and of those below them."""
    for community in children.get(parent, ()):
        width, top = scale * len(community.members), _ROW * community.level
        if width < _LEAST_WIDTH:
            return
        title = titles.get(community.community_id, community.community_id)
        tooltip = f"{title} — level {community.level}, {len(community.members)} entities"
        colour = _COLOURS[min(community.level, len(_COLOURS) - 1)]
        box = f'<rect x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{_ROW:.1f}" fill="{colour}"'
        yield f'{box} stroke="#ffffff"><title>{svg_text(tooltip)}</title></rect>'
        if (chars := int(width / _CHAR_WIDTH) - 1) >= _LEAST_CHARS:
            place = f'x="{left + _CHAR_WIDTH / 2:.1f}" y="{top + _ROW / 2:.1f}" font-size="11" pointer-events="none"'
            yield f"<text {place}>{svg_text(one_line(title, chars))}</text>"
        yield from _boxes(community.community_id, left, scale, children, titles)
        left += width
