"""A picture of the communities for the UI: circles within circles, one level within the other, as SVG.

Made of text, so that it needs no drawing library; names are shown on pointing at a circle.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

from rag_assets.contracts.tables import COMMUNITY_REPORTS, RELATIONSHIPS
from rag_assets.graph.communities.tables import Community, load_communities
from rag_assets.store.lake import Lake
from rag_assets.text.plain import markdown_picture, one_line, svg_text

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


def community_picture(lake: Lake) -> str:
    """A Markdown image of the graph of communities: the largest ones of level 0, with the levels below inside them.

    Areas stand for numbers of entities, shades for levels, lines for the weight between two communities.

    Communities of a single entity are not shown.

    Returns:
        Markdown with the SVG as a data URI; a sentence where there is nothing to show.
    """
    communities = [each for each in load_communities(lake) if len(each.members) > 1]
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
        (each for each in communities if each.level == 0), key=lambda each: (-len(each.members), each.members)
    )[:shown]
    if not roots:
        return ""
    children: dict[str | None, list[Community]] = defaultdict(list)
    for each in sorted(communities, key=lambda each: (-len(each.members), each.members)):
        children[each.parent_id].append(each)
    total = sum(len(each.members) for each in roots)
    radii = [
        max(_LEAST_RADIUS, math.sqrt(_SHARE * _WIDTH * _HEIGHT * len(each.members) / total / math.pi)) for each in roots
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
    told = f"{title} — level {community.level}, {len(community.members)} entities"
    colour = _COLOURS[min(community.level, len(_COLOURS) - 1)]
    head = f'<circle cx="{place[0]:.1f}" cy="{place[1]:.1f}" r="{radius:.1f}" fill="{colour}" stroke="#14558f"'
    circles = [f'{head} stroke-width="0.5"><title>{svg_text(told)}</title></circle>']
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
    holders = {name: index for index, each in enumerate(roots) for name in each.members}
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
            lacking = radii[first] + radii[second] + _MARGIN / 2 - distance
            if lacking > 0:
                step = lacking / (2 * distance)
                xs[first], ys[first] = xs[first] + step * (dx or 1e-6), ys[first] + step * dy
                xs[second], ys[second] = xs[second] - step * (dx or 1e-6), ys[second] - step * dy
    for index, radius in enumerate(radii):
        reach = radius + _MARGIN
        xs[index] = min(max(xs[index], reach), _WIDTH - reach)
        ys[index] = min(max(ys[index], reach), _HEIGHT - reach)
