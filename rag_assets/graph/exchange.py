"""The entity graph for other programs and for people: NetworkX, GraphML and JSON, metrics of its communities, a table
of its first entities, and a picture of its communities: circles within circles, one level within the other, as SVG.

The picture is made of text, so that it needs no drawing library; names are shown on pointing at a circle.
"""

import json
import math
from collections import defaultdict
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
from rag_assets.text.plain import markdown_picture, markdown_table, one_line, svg_text

if TYPE_CHECKING:
    import igraph
    import networkx as nx

_CONTROL = {code: " " for code in range(32) if code not in {9, 10, 13}} | {0xFFFE: " ", 0xFFFF: " "}
_CELL_CHARS = 120
_NOT_SHOWN = ["content_sha256"]  # tells what to compute, and nothing about the graph

# of the picture
_WIDTH = 960.0
_HEIGHT = 640.0
_MARGIN = 24.0
_SHARE = 0.3  # of the area, covered by the circles of level 0
_LEAST_RADIUS = 5.0
_LEAST_ROOM = 4.0  # of a part; communities of more parts are drawn as one circle, so that the picture stays small
_LABELLED = 12
_SHOWN = 40  # communities of level 0
_LABEL_CHARS = 28
_ROUNDS = 120
_COLOURS = ("#dbe7f3", "#a9c8e6", "#6ba3d6", "#2f7cc0", "#14558f")


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
    """A Markdown image of the graph of communities: the largest ones of level 0, with the levels below inside them.

    Areas stand for numbers of entities, shades for levels, lines for the weight between two communities.

    Communities of a single entity are not shown.

    Returns:
        Markdown with the SVG as a data URI; a sentence where there is nothing to show.
    """
    communities = [community for community in load_communities(lake) if len(community.members) > 1]
    reports = lake.read(COMMUNITY_REPORTS, columns=["community_id", "title"])
    titles = dict(zip(reports["community_id"].to_pylist(), reports["title"].to_pylist(), strict=True))
    rows = lake.read(RELATIONSHIPS, columns=["source_id", "target_id", "weight"])
    edges = list(zip(*(rows[name].to_pylist() for name in rows.column_names), strict=True))
    svg = draw_communities(communities, edges, titles, _SHOWN)
    if not svg:
        return "No community has more than one entity."
    return markdown_picture("communities", svg)


def draw_communities(
    communities: Sequence[Community], edges: Sequence[tuple[str, str, float]], titles: Mapping[str, str], shown: int
) -> str:
    """The picture as SVG text; see `community_picture`.

    Titles of reports are by id of the community.

    Returns:
        The same text for the same arguments; empty without communities.
    """
    roots = sorted(
        (community for community in communities if community.level == 0),
        key=lambda community: (-len(community.members), community.members),
    )[:shown]
    if not roots:
        return ""
    children: dict[str | None, list[Community]] = defaultdict(list)
    for community in sorted(communities, key=lambda community: (-len(community.members), community.members)):
        children[community.parent_id].append(community)
    total = sum(len(community.members) for community in roots)
    radii = [
        max(_LEAST_RADIUS, math.sqrt(_SHARE * _WIDTH * _HEIGHT * len(community.members) / total / math.pi))
        for community in roots
    ]
    weights = _weights(roots, edges)
    places = _circle_places(radii, weights)
    heaviest = max(weights.values(), default=1.0)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH:.0f} {_HEIGHT:.0f}" font-family="sans-serif">',
        f'<rect width="{_WIDTH:.0f}" height="{_HEIGHT:.0f}" fill="#ffffff"/>',
    ]
    for (first, second), weight in sorted(weights.items()):
        (x1, y1), (x2, y2) = places[first], places[second]
        parts.append(
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#b8b8b8" '
            f'stroke-width="{0.5 + 4.5 * weight / heaviest:.1f}" stroke-opacity="0.6"/>'
        )
    for root, radius, place in zip(roots, radii, places, strict=True):
        parts += _circles(root, place, radius, children, titles)
    for root, radius, (x, y) in list(zip(roots, radii, places, strict=True))[:_LABELLED]:
        label = one_line(titles.get(root.community_id, ""), _LABEL_CHARS)
        parts.append(
            f'<text x="{x:.1f}" y="{y + radius + 11:.1f}" font-size="11" text-anchor="middle" fill="#222222" '
            f'stroke="#ffffff" stroke-width="3" paint-order="stroke">{svg_text(label)}</text>'
        )
    return "\n".join([*parts, "</svg>"])


def _circles(
    community: Community,
    place: tuple[float, float],
    radius: float,
    children: Mapping[str | None, Sequence[Community]],
    titles: Mapping[str, str],
) -> list[str]:
    """A community and, inside, those that it is split into: along a spiral, from the largest."""
    title = titles.get(community.community_id, community.community_id)
    tooltip = f"{title} — level {community.level}, {len(community.members)} entities"
    colour = _COLOURS[min(community.level, len(_COLOURS) - 1)]
    head = f'<circle cx="{place[0]:.1f}" cy="{place[1]:.1f}" r="{radius:.1f}" fill="{colour}" stroke="#14558f"'
    circles = [f'{head} stroke-width="0.5"><title>{svg_text(tooltip)}</title></circle>']
    inside = children.get(community.community_id, ())
    room = radius / math.sqrt(len(inside)) if inside else 0.0
    if room < _LEAST_ROOM:
        return circles
    largest = len(inside[0].members)
    for index, child in enumerate(inside):
        distance = (radius - 0.6 * room) * math.sqrt((index + 0.5) / len(inside)) if len(inside) > 1 else 0.0
        angle = index * math.pi * (3 - math.sqrt(5))
        spot = (place[0] + distance * math.cos(angle), place[1] + distance * math.sin(angle))
        size = 0.6 * room * math.sqrt(len(child.members) / largest)
        circles += _circles(child, spot, size, children, titles)
    return circles


def _weights(roots: Sequence[Community], edges: Sequence[tuple[str, str, float]]) -> dict[tuple[int, int], float]:
    """Weight between two communities, by their positions."""
    holders = {name: index for index, root in enumerate(roots) for name in root.members}
    weights: dict[tuple[int, int], float] = defaultdict(float)
    for source, target, weight in edges:
        first, second = holders.get(source), holders.get(target)
        if first is not None and second is not None and first != second:
            weights[min(first, second), max(first, second)] += weight
    return weights


def _circle_places(radii: Sequence[float], weights: Mapping[tuple[int, int], float]) -> list[tuple[float, float]]:
    """Places of circles that do not overlap, near those that they are tied to: along a spiral, then pulled together
    and pushed apart in turn.
    """
    spread = 0.48 * min(_WIDTH, _HEIGHT)
    xs, ys = [], []
    for index in range(len(radii)):
        angle = index * math.pi * (3 - math.sqrt(5))
        distance = spread * math.sqrt(index / len(radii))
        xs.append(_WIDTH / 2 + 1.5 * distance * math.cos(angle))
        ys.append(_HEIGHT / 2 + distance * math.sin(angle))
    heaviest = max(weights.values(), default=1.0)
    for turn in range(_ROUNDS):
        pull = 0.02 * (1 - turn / _ROUNDS)
        for (first, second), weight in sorted(weights.items()):
            share = pull * weight / heaviest
            dx, dy = xs[second] - xs[first], ys[second] - ys[first]
            xs[first], ys[first] = xs[first] + share * dx, ys[first] + share * dy
            xs[second], ys[second] = xs[second] - share * dx, ys[second] - share * dy
        _push_apart(xs, ys, radii)
    return list(zip(xs, ys, strict=True))


def _push_apart(xs: list[float], ys: list[float], radii: Sequence[float]) -> None:
    for first in range(len(radii)):
        for second in range(first):
            dx, dy = xs[first] - xs[second], ys[first] - ys[second]
            distance = math.hypot(dx, dy) or 1e-6
            overlap = radii[first] + radii[second] + _MARGIN / 2 - distance
            if overlap > 0:
                step = overlap / (2 * distance)
                xs[first], ys[first] = xs[first] + step * (dx or 1e-6), ys[first] + step * dy
                xs[second], ys[second] = xs[second] - step * (dx or 1e-6), ys[second] - step * dy
    for index, radius in enumerate(radii):
        reach = radius + _MARGIN
        xs[index] = min(max(xs[index], reach), _WIDTH - reach)
        ys[index] = min(max(ys[index], reach), _HEIGHT - reach)
