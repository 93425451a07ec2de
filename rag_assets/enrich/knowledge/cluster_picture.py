"""A picture of how near the questions of a facet value are, for the UI: a dendrogram as SVG.

Made of text, so that it needs no drawing library. Complete linkage, as the clusters are made.
"""

import base64
from collections.abc import Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

from rag_assets.contracts.tables import QUESTION_CLUSTERS, SYNTHETIC_QA
from rag_assets.enrich.knowledge.clusters import Embed, condensed_distances
from rag_assets.store.lake import Lake
from rag_assets.text.plain import one_line

_WIDTH = 960.0
_TREE = 420.0  # width of the tree; labels stand right of it
_ROW = 16.0
_MARGIN = 24.0
_LABEL_CHARS = 44
_SHOWN = 40  # questions


def redundancy_picture(lake: Lake, embed: Embed, cut_distance: float) -> str:
    """A Markdown image of the tree of the facet value with most near duplicates.

    Shown are its largest clusters, whole as far as there is room, so that the picture tells what counts as one and how
    far the next are.

    The tree is drawn with a line where it is cut.

    Returns:
        Markdown with the SVG as a data URI; a sentence where there is nothing to show.
    """
    by_value: dict[tuple[str, str], dict[int, list[str]]] = {}
    for row in lake.read(QUESTION_CLUSTERS, columns=["facet", "value", "qa_id", "cluster"]).to_pylist():
        clusters = by_value.setdefault((row["facet"], row["value"]), {})
        clusters.setdefault(row["cluster"], []).append(row["qa_id"])
    repeated = {value: sum(map(len, found.values())) - len(found) for value, found in by_value.items()}
    if not repeated or max(sum(map(len, found.values())) for found in by_value.values()) < 2:
        return "There are too few questions to compare."
    chosen = min(repeated, key=lambda value: (-repeated[value], value))
    ordered = sorted(by_value[chosen].values(), key=lambda members: (-len(members), members))
    qa_ids = [qa_id for members in ordered for qa_id in sorted(members)][:_SHOWN]
    if len(qa_ids) < 2:
        return "There are too few questions to compare."
    columns = lake.read(SYNTHETIC_QA, columns=["qa_id", "question"])
    texts = dict(zip(columns["qa_id"].to_pylist(), columns["question"].to_pylist(), strict=True))
    labels = [texts.get(qa_id, qa_id) for qa_id in qa_ids]
    svg = draw_dendrogram(embed(labels), labels, cut_distance, f"{chosen[0]}={chosen[1]}")
    return f"![questions](data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()})"


def draw_dendrogram(vectors: NDArray[np.float32], labels: Sequence[str], cut_distance: float, title: str) -> str:
    """The tree as SVG text: distance from left (far) to right (equal), one leaf a line.

    There are at least two vectors, of unit length; a line is drawn at the cut.
    """
    from scipy.cluster.hierarchy import dendrogram, linkage

    tree = dendrogram(linkage(condensed_distances(vectors), method="complete"), no_plot=True)
    farthest = max(cut_distance, *(max(distances) for distances in tree["dcoord"])) or 1.0
    height = 2 * _MARGIN + _ROW * len(labels)

    def x(distance: float) -> float:
        return _MARGIN + _TREE * (1 - distance / farthest)

    def y(place: float) -> float:  # SciPy puts leaves at 5, 15, 25, ...
        return _MARGIN + _ROW * (place / 10 + 0.5)

    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH:.0f} {height:.0f}" width="{_WIDTH:.0f}"'
    cut, bottom = x(cut_distance), height - _MARGIN / 2
    parts = [
        f'{head} height="{height:.0f}" font-family="sans-serif">',
        f'<rect width="{_WIDTH:.0f}" height="{height:.0f}" fill="#ffffff"/>',
        f'<text x="{_MARGIN:.0f}" y="16" font-size="13" fill="#222222">{_escaped(title)}</text>',
        f'<line x1="{cut:.1f}" y1="{_MARGIN:.1f}" x2="{cut:.1f}" y2="{bottom:.1f}" stroke="#c0392b"/>',
        f'<text x="{cut + 4:.1f}" y="{height - 6:.1f}" font-size="10" fill="#c0392b">{cut_distance:g}</text>',
    ]
    for places, distances in zip(tree["icoord"], tree["dcoord"], strict=True):
        points = " ".join(f"{x(far):.1f},{y(place):.1f}" for place, far in zip(places, distances, strict=True))
        colour = "#14558f" if max(distances) <= cut_distance else "#8a8a8a"
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.2"/>')
    for place, leaf in enumerate(tree["leaves"]):
        label = labels[leaf]
        parts.append(
            f'<text x="{_MARGIN + _TREE + 6:.1f}" y="{y(10 * place + 5) + 4:.1f}" font-size="11" fill="#222222">'
            f"{_escaped(one_line(label, _LABEL_CHARS))}<title>{_escaped(label)}</title></text>"
        )
    return "\n".join([*parts, "</svg>"])


def _escaped(text: str) -> str:
    return escape("".join(character if character.isprintable() else " " for character in text))
