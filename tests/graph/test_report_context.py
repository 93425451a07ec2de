"""Packing, against examples worked by hand: tokens are counted by hand through descriptions of a known length; and
references: their form, and what is taken out of them.
"""

import re
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_assets.graph.reports import context as report_context
from rag_assets.graph.reports.context import (
    HEADING_TOKENS,
    Claim,
    Elements,
    Entity,
    PartReport,
    Records,
    Relationship,
    ReportContext,
    SubCommunity,
    check_references,
    cited,
    pack_report,
    reference,
)

# A community drawn by hand; beside each entity stands its degree in the whole graph, which has more:
#
#   relationship 1 joins a (9) and b (2): combined degree 11
#   relationship 2 joins a (9) and c (4): 13
#   relationship 3 joins c (4) and d (3): 7
#   relationship 4 joins d (3) and e (4): 7
#
# Order: edge 2 (13): a, c, 2, claims on a; edge 1 (11): b, 1; edge 3 (7, lower number): d, 3; edge 4 (7): e, 4.
A, B, C, D, E = (Entity(name, number, name, "t", "") for number, name in enumerate("abcde", start=1))
EDGES = (
    Relationship(1, A, B, "", 11),
    Relationship(2, A, C, "", 13),
    Relationship(3, C, D, "", 7),
    Relationship(4, D, E, "", 7),
)
CLAIM = Claim(A, "true", "plan", "2025", "it grows")
LEAF = Elements((A, B, C, D, E), EDGES, {"a": (CLAIM,)})
ORDER = (A, C, EDGES[1], CLAIM, B, EDGES[0], D, EDGES[2], E, EDGES[3])


def estimate_tokens(text: str) -> int:
    letters = sum(map(len, re.findall(r"[A-Za-z]+", text)))
    return int(letters * 0.3 + (len(text) - letters) * 0.5 + 0.999)


@pytest.fixture(autouse=True)
def plain_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    """The examples were worked out by hand with half a token for each figure and sign."""

    monkeypatch.setattr(report_context, "estimate_tokens", estimate_tokens)


def packed(context: ReportContext) -> set[str]:
    return {
        *(each.name for each in context.entities),
        *(str(each.number) for each in context.relationships),
        *("claim" for _ in context.claims),
        *(each.title for each in context.reports),
    }


def test_lines_have_the_tokens_that_the_examples_count() -> None:
    # "1 | a | t | " is 12 characters: 2 letters of 0.3 tokens, 10 others of 0.5, rounded up, and a line end: 7
    assert A.line == "1 | a | t | "
    assert {each.length_tokens for each in (A, B, C, D, E)} == {7}
    assert {each.length_tokens for each in EDGES} == {7}
    # "a (1) | true | plan | 2025 | it grows": 37 characters, 16 letters, 21 others: 4.8 + 10.5, rounded up, and 1
    assert CLAIM.length_tokens == 17
    assert LEAF.length_tokens == 9 * 7 + 17


def test_the_order_is_that_of_the_worked_example() -> None:
    assert tuple(LEAF.in_order()) == ORDER


@pytest.mark.parametrize(
    ("room", "expected"),
    [
        (80, "a c 2 claim b 1 d 3 e 4"),
        (79, "a c 2 claim b 1 d 3 e"),  # the last relationship does not fit
        (72, "a c 2 claim b 1 d 3"),
        (38, "a c 2 claim"),
        (37, "a c 2"),  # nothing after what does not fit, though an entity would
        (21, "a c 2"),
        (20, "a c"),
        (7, "a"),
    ],
)
def test_a_leaf_is_packed_up_to_the_limit(room: int, expected: str) -> None:
    context = pack_report(LEAF, [], room + HEADING_TOKENS)
    assert packed(context) == set(expected.split())
    assert estimate_tokens(context.text) <= room + HEADING_TOKENS


def test_text_is_set_out_by_relationships_within_it() -> None:
    assert pack_report(LEAF, [], 1000).text == (
        "-- Entities --\n"
        "number | name | type | description\n"
        "1 | a | t | \n"
        "3 | c | t | \n"
        "4 | d | t | \n"
        "2 | b | t | \n"
        "5 | e | t | \n"
        "\n"
        "-- Relationships --\n"
        "number | name | name | description\n"
        "2 | a | c | \n"
        "3 | c | d | \n"
        "1 | a | b | \n"
        "4 | d | e | \n"
        "\n"
        "-- Claims --\n"
        "name (number of entity) | status | type | dates | description\n"
        "a (1) | true | plan | 2025 | it grows"
    )


def test_prominence_elsewhere_does_not_change_the_text() -> None:
    risen = [Relationship(e.number, e.source, e.target, e.description, 50 - e.combined_degree) for e in EDGES]
    assert pack_report(Elements(LEAF.entities, risen, LEAF.claims), [], 1000).text == pack_report(LEAF, [], 1000).text


# A community split into x (entities 1 to 4), y (5 and 6) and z (7); x and y are tied by relationship 20.
#   records: x 4 entities + 3 relationships = 49 tokens; y 2 + 1 = 21; z 1 entity = 7; between x and y 8
#   reports: x 18 tokens, y 10, z none
X = [Entity(f"x{n}", n, "x", "t", "") for n in range(1, 5)]
Y = [Entity(f"y{n}", n, "y", "t", "") for n in (5, 6)]
Z = [Entity("z7", 7, "z", "t", "")]
X_EDGES = [Relationship(n, X[0], X[n], "", 9) for n in (1, 2, 3)]
Y_EDGES = [Relationship(4, Y[0], Y[1], "", 4)]
BETWEEN = Relationship(20, X[0], Y[0], "", 11)
X_REPORT = PartReport("X", "s", "X " + "[Data: Entities (1, 2); Relationships (3)]")
Y_REPORT = PartReport("Y", "s", "Y [Data: Entities (5)]")
PARTS = (
    SubCommunity(Elements(Y, Y_EDGES, {}), Y_REPORT),
    SubCommunity(Elements(X, X_EDGES, {}), X_REPORT),
    SubCommunity(Elements(Z, [], {}), None),
)
WHOLE = Elements([*X, *Y, *Z], [*X_EDGES, *Y_EDGES, BETWEEN], {})


def test_the_parts_have_the_tokens_that_the_examples_count() -> None:
    assert [part.elements.length_tokens for part in PARTS] == [21, 49, 7]
    assert (X_REPORT.length_tokens, Y_REPORT.length_tokens, BETWEEN.length_tokens) == (18, 10, 8)
    assert WHOLE.length_tokens == 85


@pytest.mark.parametrize(
    ("room", "entities", "relationships", "reports"),
    [
        (85, {1, 2, 3, 4, 5, 6, 7}, {1, 2, 3, 4, 20}, set()),
        (84, {5, 6, 7}, {4, 20}, {"X"}),  # 85 - 49 + 18 = 54
        (54, {5, 6, 7}, {4, 20}, {"X"}),
        (53, {7}, {20}, {"X", "Y"}),  # 54 - 21 + 10 = 43
        (43, {7}, {20}, {"X", "Y"}),
        (42, set(), {20}, {"X", "Y"}),  # does not fit: reports first, then records until the limit
        (35, set(), set(), {"X", "Y"}),
        (27, {5}, set(), {"X"}),  # the report on y has no room beside that on x, one of its records has
        (17, {1}, set(), {"Y"}),  # nor has the report on x alone
        (9, {1}, set(), set()),
    ],
)
def test_parts_are_replaced_by_their_reports(
    room: int, entities: set[int], relationships: set[int], reports: set[str]
) -> None:
    context = pack_report(WHOLE, PARTS, room + HEADING_TOKENS)
    assert {each.number for each in context.entities} == entities
    assert {each.number for each in context.relationships} == relationships
    assert {each.title for each in context.reports} == reports
    assert estimate_tokens(context.text) <= room + HEADING_TOKENS


def test_records_cited_in_reports_exist_too() -> None:
    context = pack_report(WHOLE, PARTS, 54 + HEADING_TOKENS)
    assert context.records == Records(frozenset({1, 2, 5, 6, 7}), frozenset({3, 4, 20}))


def test_a_report_that_is_not_shorter_is_not_taken() -> None:
    long = PartReport("Y", "s", "Y " * 40)
    context = pack_report(WHOLE, [SubCommunity(PARTS[0].elements, long), *PARTS[1:]], 53 + HEADING_TOKENS)
    assert {each.title for each in context.reports} == {"X"}
    assert {each.number for each in context.entities} >= {5}


def test_a_record_longer_than_the_limit_is_cut() -> None:
    long = Entity("a", 1, "a", "t", "word " * 500)
    context = pack_report(Elements([long, B], [Relationship(1, long, B, "", 3)], {}), [], 100)
    assert context.text.startswith("-- Entities --\nnumber | name | type | description\n1 | a | t | word word")
    assert estimate_tokens(context.text) <= 100


@st.composite
def communities(draw: st.DrawFn) -> tuple[Elements, Sequence[SubCommunity]]:
    count = draw(st.integers(2, 12))
    text = st.text("あa 1", max_size=30)
    entities = [Entity(f"e{n}", n, draw(text), "t", draw(text)) for n in range(count)]
    edges = [
        Relationship(n, entities[a], entities[b], draw(text), draw(st.integers(2, 30)))
        for n, (a, b) in enumerate(
            sorted(draw(st.sets(st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)), max_size=20)))
        )
        if a < b
    ]
    cut = draw(st.integers(1, count - 1))
    parts = []
    for inside in (entities[:cut], entities[cut:]):
        names = {each.entity_id for each in inside}
        inner = [edge for edge in edges if {edge.source.entity_id, edge.target.entity_id} <= names]
        report = PartReport("r", "s", draw(text)) if draw(st.booleans()) else None
        parts.append(SubCommunity(Elements(inside, inner, {}), report))
    return Elements(entities, edges, {}), parts


@settings(deadline=None)
@given(communities(), st.integers(HEADING_TOKENS + 20, 500), st.booleans())
def test_whatever_is_packed_fits(community: tuple[Elements, Sequence[SubCommunity]], limit: int, leaf: bool) -> None:
    elements, parts = community
    context = pack_report(elements, [] if leaf else parts, limit)
    assert estimate_tokens(context.text) <= limit
    names = {each.entity_id for each in context.entities}
    if leaf:
        assert all({e.source.entity_id, e.target.entity_id} <= names for e in context.relationships)
    if elements.length_tokens <= limit - HEADING_TOKENS:
        assert len(context.entities) == len(elements.entities)
        assert len(context.relationships) == len(elements.relationships)


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
