"""Texts are given to connectors so that the sum of distances is the least."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assets.parsing.drawings import labels as excel_labels
from rag_assets.parsing.drawings.labels import Candidate, assign_labels

DISTANCES = st.dictionaries(st.tuples(st.integers(0, 3), st.integers(0, 3)), st.integers(0, 9), max_size=12)
REACH = 9.0


def candidates(distances: dict[tuple[int, int], int]) -> list[Candidate]:
    return [Candidate(float(distance), REACH, *pair) for pair, distance in distances.items()]


def total(distances: dict[tuple[int, int], int], assigned: dict[int, int]) -> float:
    """Sum of distances, with the reach for each label that is free."""
    labels = {label for label, _ in distances}
    return sum(distances[label, assigned[label]] if label in assigned else REACH for label in labels)


@given(DISTANCES)
def test_no_other_assignment_has_a_lesser_sum(distances: dict[tuple[int, int], int]) -> None:
    assigned = assign_labels(candidates(distances))
    assert len(set(assigned.values())) == len(assigned)
    assert set(assigned.items()) <= set(distances)
    others = (
        {label: order[label] for label in range(4) if (label, order[label]) in distances}
        for order in permutations(range(4))
    )
    assert total(distances, assigned) == min(total(distances, other) for other in others)


def test_text_on_a_connector_stays_there_when_another_text_lies_near() -> None:
    assert assign_labels(candidates({(0, 0): 0, (0, 1): 8, (1, 0): 5})) == {0: 0}


def test_great_crowds_are_assigned_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(excel_labels, "_MAXIMUM_STEPS", 0)
    assert assign_labels(candidates({(0, 0): 2, (1, 0): 1, (1, 1): 3})) == {1: 0}
