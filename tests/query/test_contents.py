"""What people are shown of a published version: tables with merged cells, long lists in parts, the entity graph."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from graph_data import fill_lake, stored_tables
from hypothesis import given
from hypothesis import strategies as st

from rag_assets.contracts.causes import FailureCause, PageKind
from rag_assets.contracts.content import Failure, Page, ParsedDocument
from rag_assets.contracts.errors import QueryError
from rag_assets.contracts.tables import DOCUMENTS, PARSE_FAILURES
from rag_assets.parsing.records import document_record, failure_records, rows
from rag_assets.query.contents.contents import Contents
from rag_assets.query.contents.graph import GraphContents
from rag_assets.query.contents.pages import (
    PageBlock,
    blocks_in_parts,
    shown_blocks,
    spanning_cells,
)
from rag_assets.sources.listing import SourceFile
from rag_assets.store.lake import Lake, shard_of
from rag_assets.store.snapshots import Snapshot
from rag_assets.text.cells import Area, parse_area

Spans = list[list[tuple[str, int, int]]]


def spans(rows: list[list[str]], headers: int) -> Spans:
    shown = spanning_cells(rows, headers, [None] * len(rows))
    return [[(cell.text, cell.column_span, cell.row_span) for cell in row] for row in shown]


def test_merged_headers_are_one_cell() -> None:
    rows = [["No.", "Access", "Access", "Note"], ["No.", "C", "R", "Note"], ["1", "○", "○", ""]]
    assert spans(rows, 2) == [
        [("No.", 1, 2), ("Access", 2, 1), ("Note", 1, 2)],
        [("C", 1, 1), ("R", 1, 1)],
        [("1", 1, 1), ("○", 1, 1), ("○", 1, 1), ("", 1, 1)],
    ]


def test_in_the_body_words_are_one_cell_and_numbers_and_marks_are_not() -> None:
    rows = [["h", "i", "j"], ["whole row", "whole row", "whole row"], ["100", "100", "100"], ["-", "-", "なし"]]
    assert spans(rows, 1)[1:] == [
        [("whole row", 3, 1)],
        [("100", 1, 1)] * 3,
        [("-", 1, 1), ("-", 1, 1), ("なし", 1, 1)],
    ]


def test_a_group_spans_rows_and_a_repeated_value_of_a_later_column_does_not() -> None:
    rows = [
        ["group", "name", "type"],
        ["Group A", "x", "VARCHAR"],
        ["Group A", "y", "VARCHAR"],
        ["Group B", "z", "VARCHAR"],
    ]
    assert spans(rows, 1)[1:] == [
        [("Group A", 1, 2), ("x", 1, 1), ("VARCHAR", 1, 1)],
        [("y", 1, 1), ("VARCHAR", 1, 1)],
        [("Group B", 1, 1), ("z", 1, 1), ("VARCHAR", 1, 1)],
    ]


def test_cells_are_named_where_rows_have_a_column_for_each() -> None:
    [first, second] = spanning_cells([["top", "top"], ["a", "b"]], 1, ["B4:C4", "B5:C5"])
    assert [cell.cell_range for cell in (*first, *second)] == ["B4:C4", "B5", "C5"]
    [boxes] = spanning_cells([["a", "b"]], 0, ["B4:Z4"])
    assert [cell.cell_range for cell in boxes] == [None, None]


def stored(rows: list[list[str]], block_index: int = 0, top: int = 1) -> dict[str, Any]:
    """A table as a row of `blocks`, with one row of headers."""
    last = len(rows[0]) + 1
    listed = [{"cells": cells, "cell_range": f"B{top + at}:{column(last)}{top + at}", "box": None}
              for at, cells in enumerate(rows)]  # fmt: skip
    return {
        "block_id": f"t{block_index}", "block_index": block_index, "kind": "table", "text": "", "section": [],
        "box": None, "cell_range": f"B{top}:{column(last)}{top + len(rows) - 1}", "header_row_count": 1,
        "rows": listed,
    }  # fmt: skip


def column(number: int) -> str:
    return Area(0, number - 1, 0, number - 1).label[:-1]


def cell_count(blocks: Sequence[PageBlock]) -> int:
    return sum(cell.column_span * cell.row_span for block in blocks for row in block.rows for cell in row.cells)


@pytest.mark.parametrize("text", ["same words", "x", "7", ""])
def test_a_row_of_all_columns_that_a_sheet_has_is_laid_out_at_once(text: str) -> None:
    rows = [["n", *[text] * 16_383] for _ in range(3)]
    began = time.process_time()
    shown = spanning_cells(rows, 1, [None] * 3)
    assert time.process_time() - began < 2
    assert sum(cell.column_span * cell.row_span for row in shown for cell in row) == 3 * 16_384


def test_an_answer_holds_so_many_cells_and_tells_that_there_are_more() -> None:
    rows = [[f"{top} {left}" for left in range(50)] for top in range(100)]
    [block], complete = shown_blocks([stored(rows)], 2000, None, 1000)
    assert (cell_count([block]), len(block.rows), block.row_count, complete) == (1000, 20, 100, False)
    [narrow], complete = shown_blocks([stored(rows)], 2000, None, 49)
    assert (narrow.rows, narrow.row_count, complete) == ((), 100, False)
    assert shown_blocks([stored(rows)], 2000, None, 5000)[1] is True


def test_rows_in_focus_have_room_of_their_own() -> None:
    rows = [[f"{top} {left}" for left in range(50)] for top in range(100)]
    tables = [stored(rows), stored(rows, 1, 201)]
    first, second = shown_blocks(tables, 2000, parse_area("D290"), 1000)[0]
    assert (len(first.rows), len(second.rows)) == (20, 20)
    assert second.rows[0].header
    assert any(row.cell_range == "B290:AY290" for row in second.rows)


def test_parts_of_a_long_table_make_up_the_table_and_each_has_its_headers() -> None:
    rows = [[f"{top} {left}" for left in range(5)] for top in range(24)]
    parts = list(blocks_in_parts([stored(rows)], 50))
    assert [[row.row_index for row in part.rows] for part in parts] == [
        [0, *range(1, 11)], [0, *range(11, 21)], [0, *range(21, 24)],
    ]  # fmt: skip
    assert [len(part.rows) for part in blocks_in_parts([stored(rows[:1])])] == [1]


tables = st.integers(1, 5).flatmap(
    lambda width: st.lists(
        st.lists(st.sampled_from(["", "x", "same words", "other words", "10"]), min_size=width, max_size=width),
        min_size=1,
        max_size=6,
    )
)


@given(tables, st.integers(0, 6))
def test_every_cell_is_shown_once_with_its_own_text(rows: list[list[str]], headers: int) -> None:
    seen: dict[tuple[int, int], str] = {}
    for top, row in enumerate(spanning_cells(rows, min(headers, len(rows)), [None] * len(rows))):
        for cell in row:
            for down in range(cell.row_span):
                for right in range(cell.column_span):
                    place = (top + down, cell.column_index + right)
                    assert place not in seen
                    seen[place] = cell.text
    assert seen == {(top, left): text for top, row in enumerate(rows) for left, text in enumerate(row)}


@pytest.mark.parametrize(
    ("text", "shown"),
    [("B4:F20", "B4:F20"), ("b4", "B4"), ("$AA$1:AB2", "AA1:AB2"), ("F20:B4", "B4:F20"), ("XFD1048576", "XFD1048576")],
)
def test_cells_are_read_as_they_are_written(text: str, shown: str) -> None:
    area = parse_area(text)
    assert area is not None
    assert area.label == shown


@pytest.mark.parametrize("text", [None, "", "4B", "B4:", "B4:F20:G1", "B" * 9 + "1", "\u0661B"])
def test_what_names_no_cells_is_none(text: str | None) -> None:
    assert parse_area(text) is None


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> GraphContents:
    lake = Lake(tmp_path_factory.mktemp("lake"))
    fill_lake(lake)
    return GraphContents(stored_tables(lake))


def test_entities_are_found_by_parts_of_names(graph: GraphContents) -> None:
    assert [each.name for each in graph.entities("ｋｏｖａｃｓ").items] == ["Mira Kovacs"]
    assert [each.name for each in graph.entities("harbor").items] == ["Silent Harbor"]
    assert graph.entities("nobody").total == 0
    assert graph.entities(entity_type="person").total == 4
    assert graph.entities(entity_type="place").total == 0


def test_a_long_list_is_given_in_parts(graph: GraphContents) -> None:
    names, cursor = [], None
    for _ in range(4):
        part = graph.entities(limit=1, cursor=cursor)
        names += [each.name for each in part.items]
        cursor = part.next_cursor
    assert cursor is None
    assert sorted(names) == ["Mira Kovacs", "Silent Harbor", "Vienna", "Zagreb"]
    with pytest.raises(QueryError, match="cursor"):
        graph.entities(cursor="nonsense!")


def test_an_entity_is_told_with_pages_of_all_its_names_and_what_it_is_related_to(graph: GraphContents) -> None:
    [entry] = graph.entities("mira").items
    entity = graph.entity(entry.entity_id)
    assert entity is not None
    assert [related.entity.name for related in entity.relationships] == ["Silent Harbor"]
    assert {page.document_id for page in entity.pages} == {"films/harbor.md", "people/kovacs.md"}
    assert [community.level for community in entity.communities] == [0, 1]
    assert graph.entity("nothing") is None


def test_a_community_is_told_with_members_edges_parts_and_report(graph: GraphContents) -> None:
    assert graph.levels()[0] == 1
    [whole] = graph.communities(level=0).items
    community = graph.community(whole.community_id)
    assert community is not None
    assert {member.name for member in community.members} == {"Mira Kovacs", "Silent Harbor", "Vienna", "Zagreb"}
    assert len(community.edges) == 2
    assert all(part.parent_id == whole.community_id for part in community.parts)
    assert community.report is not None
    assert community.report.entry.title == whole.title == "Films and cities"
    assert [report.level for report in graph.reports().items] == [0, 1]
    assert graph.reports(level=1).total == 1


def test_without_a_graph_all_is_empty(tmp_path: Path) -> None:
    graph = GraphContents(stored_tables(Lake(tmp_path)))
    assert graph.entities("x").total == graph.communities().total == graph.reports().total == 0
    assert (graph.entity("x"), graph.community("x"), graph.report("x")) == (None, None, None)
    assert not graph.levels()


def test_failed_documents_add_up_by_cause_and_those_read_in_part_are_counted_apart(tmp_path: Path) -> None:
    scans = [Failure(FailureCause.NO_TEXT, "a picture", number) for number in (1, 2)]
    pages = tuple(Page(number, PageKind.PAGE, ()) for number in (1, 2, 3))
    parsed = {
        "s/broken.pdf": ParsedDocument("pdf", failures=(Failure(FailureCause.MALFORMED, "no pages"),)),
        "s/locked.pdf": ParsedDocument("pdf", failures=(Failure(FailureCause.ENCRYPTED, "a password"), *scans)),
        "s/partly.pdf": ParsedDocument("pdf", None, pages, tuple(scans)),
        "s/whole.pdf": ParsedDocument("pdf", None, pages),
    }
    lake = Lake(tmp_path)
    for shard in {shard_of(name) for name in parsed}:
        described, failures = [], []
        for name in (name for name in parsed if shard_of(name) == shard):
            file = SourceFile(name, "s", name, name, 0, None, "", local=True)
            described.append(document_record(file, None, parsed[name]))
            failures += failure_records(name, parsed[name])
        inputs = {row["document_id"]: "" for row in described}
        lake.write(DOCUMENTS, shard, rows(DOCUMENTS.schema, described), inputs)
        lake.write(PARSE_FAILURES, shard, rows(PARSE_FAILURES.schema, failures), inputs)
    versions = {table.name: lake.latest(table) for table in (DOCUMENTS, PARSE_FAILURES)}
    state = Contents(lake, Snapshot(1, "", "", "", versions, {}, {})).health()
    assert (state.document_count, state.failed_count, state.partly_read_count) == (4, 2, 1)
    assert state.failed_by_cause == {"encrypted": 1, "malformed": 1}
    assert state.failures_by_cause == {"no_text": 4, "encrypted": 1, "malformed": 1}
