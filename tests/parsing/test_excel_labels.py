"""Texts are given to connectors so that the sum of distances is the least."""

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from rag_assets.parsing.drawings.diagrams import assign_labels

DISTANCES = st.dictionaries(st.tuples(st.integers(0, 3), st.integers(0, 3)), st.integers(0, 9), max_size=12)
REACH = 9.0


def assign(distances: dict[tuple[int, int], int]) -> dict[int, int]:
    return assign_labels(distances, {label: REACH for label, _ in distances})


def total(distances: dict[tuple[int, int], int], assigned: dict[int, int]) -> float:
    """Sum of distances, with the reach for each label that is free."""
    labels = {label for label, _ in distances}
    return sum(distances[label, assigned[label]] if label in assigned else REACH for label in labels)


@given(DISTANCES)
def test_no_other_assignment_has_a_lesser_sum(distances: dict[tuple[int, int], int]) -> None:
    assigned = assign(distances)
    assert len(set(assigned.values())) == len(assigned)
    assert set(assigned.items()) <= set(distances)
    others = (
        {label: order[label] for label in range(4) if (label, order[label]) in distances}
        for order in permutations(range(4))
    )
    assert total(distances, assigned) == min(total(distances, other) for other in others)


def test_text_on_a_connector_stays_there_when_another_text_lies_near() -> None:
    assert assign({(0, 0): 0, (0, 1): 8, (1, 0): 5}) == {0: 0}


def test_great_crowds_are_assigned_together() -> None:
    distances = {(label, connector): abs(label - connector) for label in range(400) for connector in range(1, 401)}
    assigned = assign_labels(distances, dict.fromkeys(range(400), 1e3))
    assert sum(distances[pair] for pair in assigned.items()) == len(assigned) == 400
