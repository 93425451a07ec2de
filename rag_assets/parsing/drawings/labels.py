"""Which text stands on which connector: the choice for all of them together that leaves the least distance.

What stays out: what can be a label at all, and how far it may lie from its connector (`excel_diagrams`).
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

_MAXIMUM_STEPS = 5_000_000  # of crowds that would take more, each text takes the nearest connector left, in turn
_NEVER = 1e12  # longer than any drawing, short enough to add lengths to it without loss


@dataclass(frozen=True, slots=True)
class Candidate:
    """A text near a connector.

    Attributes:
        distance: Between the two.
        reach: Distance up to which the text can belong to a connector.
        label: Number of the text.
        connector: Number of the connector.
    """

    distance: float
    reach: float
    label: int
    connector: int


def assign_labels(candidates: Sequence[Candidate]) -> dict[int, int]:
    """Connectors by label, at most one for each.

    The sum of distances is the least, where a label without a connector counts with its reach: of two arrows side by
    side each has its own text, and no far arrow takes a text so that another one finds a place.
    """
    assigned: dict[int, int] = {}
    left = _MAXIMUM_STEPS
    for crowd in sorted(_crowds(candidates), key=len):
        labels = len({candidate.label for candidate in crowd})
        connectors = len({candidate.connector for candidate in crowd})
        steps = labels * labels * (labels + connectors)
        assigned.update(_nearest_first(crowd) if steps > left else _least_sum(crowd))
        left -= min(steps, left)
    return assigned


def _crowds(candidates: Sequence[Candidate]) -> list[list[Candidate]]:
    """Candidates parted into sets that share neither a label nor a connector."""
    by_label: dict[int, list[Candidate]] = defaultdict(list)
    by_connector: dict[int, list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        by_label[candidate.label].append(candidate)
        by_connector[candidate.connector].append(candidate)
    crowds = []
    while by_label:
        waiting, crowd = [next(iter(by_label))], []
        while waiting:
            for candidate in by_label.pop(waiting.pop(), ()):
                crowd.append(candidate)
                waiting.extend(other.label for other in by_connector.pop(candidate.connector, ()))
        crowds.append(crowd)
    return crowds


def _nearest_first(crowd: Sequence[Candidate]) -> dict[int, int]:
    assigned: dict[int, int] = {}
    taken: set[int] = set()
    for candidate in sorted(crowd, key=lambda one: (one.distance, one.label, one.connector)):
        if candidate.label not in assigned and candidate.connector not in taken:
            assigned[candidate.label] = candidate.connector
            taken.add(candidate.connector)
    return assigned


def _least_sum(crowd: Sequence[Candidate]) -> dict[int, int]:
    labels = sorted({candidate.label for candidate in crowd})
    connectors = sorted({candidate.connector for candidate in crowd})
    rows = {label: row for row, label in enumerate(labels)}
    columns = {connector: column for column, connector in enumerate(connectors)}
    costs = [[_NEVER] * len(connectors) for _ in labels]
    free = [0.0] * len(labels)
    for candidate in crowd:
        row = rows[candidate.label]
        costs[row][columns[candidate.connector]] = candidate.distance
        free[row] = max(free[row], candidate.reach)
    chosen = _hungarian([cost + [free[row]] * len(labels) for row, cost in enumerate(costs)])
    return {labels[row]: connectors[column] for row, column in enumerate(chosen) if column < len(connectors)}


def _hungarian(costs: Sequence[Sequence[float]]) -> list[int]:
    """A column for each row, all different, with the least sum of costs; there are at least as many columns as rows.

    Source: H. W. Kuhn, "The Hungarian method for the assignment problem", 1955, in the form with shortest augmenting
    paths and potentials. Row and column 0 are the root of the search.
    """
    height, width = len(costs), len(costs[0])
    row_potentials, column_potentials = [0.0] * (height + 1), [0.0] * (width + 1)
    rows = [0] * (width + 1)
    for row in range(1, height + 1):
        rows[0], column = row, 0
        least, before, used = [inf] * (width + 1), [0] * (width + 1), [False] * (width + 1)
        while rows[column]:
            used[column] = True
            reached, step, following = rows[column], inf, 0
            for other in range(1, width + 1):
                if used[other]:
                    continue
                cost = costs[reached - 1][other - 1] - row_potentials[reached] - column_potentials[other]
                if cost < least[other]:
                    least[other], before[other] = cost, column
                if least[other] < step:
                    step, following = least[other], other
            for other in range(width + 1):
                if used[other]:
                    row_potentials[rows[other]] += step
                    column_potentials[other] -= step
                else:
                    least[other] -= step
            column = following
        while column:
            rows[column], column = rows[before[column]], before[column]
    chosen = [0] * height
    for column in range(1, width + 1):
        if rows[column]:
            chosen[rows[column] - 1] = column - 1
    return chosen
