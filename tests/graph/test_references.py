"""References of reports: their form, and what is taken out of them."""

import pytest

from rag_assets.graph.reports.references import Records, check_references, cited, reference

EXISTING = Records(frozenset(range(1, 20)), frozenset({23, 24}))


@pytest.mark.parametrize(
    ("entities", "relationships", "expected"),
    [
        ([5, 7], [23], "[Data: Entities (5, 7); Relationships (23)]"),
        ([], [23], "[Data: Relationships (23)]"),
        ([3, 1, 3, 2], [], "[Data: Entities (3, 1, 2)]"),
        ([1, 2, 3, 4, 5], [], "[Data: Entities (1, 2, 3, 4, 5)]"),
        ([1, 2, 3, 4, 5, 6], [], "[Data: Entities (1, 2, 3, 4, 5, +more)]"),
        ([], [], ""),
    ],
)
def test_written(entities: list[int], relationships: list[int], expected: str) -> None:
    assert reference(entities, relationships) == expected


@pytest.mark.parametrize(
    ("text", "expected", "removed"),
    [
        ("A [Data: Entities (5, 7); Relationships (23)].", "A [Data: Entities (5, 7); Relationships (23)].", 0),
        ("A [Data: Entities (5, 99); Relationships (77, 24)].", "A [Data: Entities (5); Relationships (24)].", 2),
        ("A [Data: Entities (99)]. B", "A. B", 1),
        ("A [Data: Entities (99)] B", "A B", 1),
        ("A [Data: Entities (1, 2, 3, 4, 5, 6, 7)].", "A [Data: Entities (1, 2, 3, 4, 5, +more)].", 0),
        ("A [Data: Entities (1, 2, +more)].", "A [Data: Entities (1, 2, +more)].", 0),
        ("A [Data: Entities (+more)].", "A.", 0),
        ("A [Data: Entities (5, 5)].", "A [Data: Entities (5)].", 0),
        ("A [Data: Sources (3); Entities (5)].", "A [Data: Entities (5)].", 1),
        ("A [Data: entities 5].", "A.", 1),
        ("A [data: Entities (five, -3)].", "A.", 2),
        (
            "「A」［Data：Entities（５、７）；Relationships（23）］。",
            "「A」[Data: Entities (5, 7); Relationships (23)]。",
            0,
        ),
        ("list[0] and [see (5)] stay", "list[0] and [see (5)] stay", 0),
        ("", "", 0),
    ],
)
def test_checked(text: str, expected: str, removed: int) -> None:
    assert check_references(text, EXISTING) == (expected, removed)
    assert check_references(expected, EXISTING) == (expected, 0)


def test_cited() -> None:
    text = "A [Data: Entities (5, 7, +more)] B [Data: Relationships (23); Entities (8); Reports (2)]"
    assert cited(text) == Records(frozenset({5, 7, 8}), frozenset({23}))
