"""What was recorded of a knowledge base over its versions, as a table and a picture for people."""

from collections.abc import Sequence
from dataclasses import dataclass

from rag_assets.evaluation.recorded import MAIN, RecordedRun, RecordedSystem, runs
from rag_assets.evaluation.statistics import Interval
from rag_assets.evaluation.tables import interval_text
from rag_assets.store.lake import Lake
from rag_assets.text.plain import markdown_picture, markdown_table, svg_text

_RUNS_SHOWN = 30
_WIDTH, _HEIGHT, _MARGIN = 640.0, 220.0, 36.0
_COLOURS = ("#0969da", "#bf8700")


@dataclass(frozen=True)
class Point:
    """A system of a run with its figures by `MAIN`; None for those that were not measured."""

    run: RecordedRun
    system: RecordedSystem
    figures: tuple[Interval | None, ...]


def history(lake: Lake, count: int = _RUNS_SHOWN) -> list[Point]:
    """The systems of the last runs, the latest first.

    Raises:
        StoreError: A file is damaged.
    """
    points = []
    for run in runs(lake, count):
        found = {
            (each.system, each.level, each.measure): Interval(each.mean, each.low, each.high, each.count)
            for each in run.figures
        }
        points += [Point(run, each, tuple(found.get((each.system, *one)) for one in MAIN)) for each in run.systems]
    return points


def history_markdown(points: Sequence[Point]) -> str:
    """A Markdown table, the latest run first."""
    heads = ["evaluated", "version", "system", "made by", "set", "questions", *(" ".join(each) for each in MAIN)]
    rows = [
        [
            point.run.evaluated_at,
            _version(point.system),
            point.system.system,
            point.run.made_by,
            point.run.question_set,
            point.run.question_count,
            *("" if each is None else interval_text(each) for each in point.figures),
        ]
        for point in points
    ]
    return markdown_table(heads, rows) if points else "nothing was evaluated yet"


def history_picture(points: Sequence[Point]) -> str:
    """A Markdown image of the main figures with their intervals, the latest run on the right."""
    ordered = list(reversed(points))
    step = (_WIDTH - 2 * _MARGIN) / max(1, len(ordered))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}">',
        '<g font-family="sans-serif" font-size="10" fill="#57606a">',
        f'<rect width="{_WIDTH:g}" height="{_HEIGHT:g}" fill="#ffffff"/>',
    ]
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = _y(share)
        parts.append(f'<path d="M{_MARGIN:g} {y:.1f}H{_WIDTH - _MARGIN:g}" stroke="#d0d7de"/>')
        parts.append(f'<text x="{_MARGIN - 4:g}" y="{y + 3:.1f}" text-anchor="end">{share:g}</text>')
    for place, point in enumerate(ordered):
        middle = _MARGIN + (place + 0.5) * step
        for number, figure in enumerate(point.figures):
            if figure is not None:
                x, label = (
                    middle + 5 * number - 2.5,
                    f"{' '.join(MAIN[number])} {interval_text(figure)}, {point.system.system}",
                )
                parts.append(
                    f'<g stroke="{_COLOURS[number]}" fill="{_COLOURS[number]}"><title>{svg_text(label)}</title>'
                    f'<path d="M{x:.1f} {_y(figure.low):.1f}V{_y(figure.high):.1f}"/>'
                    f'<circle cx="{x:.1f}" cy="{_y(figure.mean):.1f}" r="3"/></g>'
                )
        label = svg_text(_version(point.system))
        parts.append(f'<text x="{middle:.1f}" y="{_HEIGHT - 18:g}" text-anchor="middle">{label}</text>')
    for number, measure in enumerate(MAIN):
        x, label = _MARGIN + 130 * number, " ".join(measure)
        parts.append(f'<text x="{x:g}" y="12" fill="{_COLOURS[number]}">● {label}</text>')
    svg = "".join([*parts, "</g></svg>"])
    return markdown_picture("history", svg)


def _y(share: float) -> float:
    return _HEIGHT - _MARGIN - share * (_HEIGHT - 2 * _MARGIN + 12)


def _version(system: RecordedSystem) -> str:
    return "held back" if system.version is None else str(system.version)
