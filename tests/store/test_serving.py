"""Rows of the serving tables of the entity graph."""

from pathlib import Path

import pyarrow as pa
import pytest
from graph_data import fill_lake, index_graph
from query_data import BagOfWordsEmbedder

from rag_assets.contracts.tables import EMBEDDED_TEXT, ENTITIES, ENTITY_INDEX, REPORT_INDEX, VECTOR_TABLES
from rag_assets.store.integrity import indexing_problems
from rag_assets.store.lake import WHOLE, Lake
from rag_assets.store.serving import entity_rows, report_rows
from rag_assets.store.vectors.store import VectorStore


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(tmp_path / "lake")
    fill_lake(lake)
    return lake


def test_entities_are_found_by_all_their_names_and_their_description(lake: Lake) -> None:
    stored = lake.read(ENTITIES, [WHOLE])
    field = ENTITIES.schema.field("aliases")
    names = pa.array([["A. K.", "Kovács Mira"]] * len(stored), field.type)
    rows = stored.set_column(stored.schema.get_field_index("aliases"), field, names)
    lake.write(ENTITIES, WHOLE, rows, {WHOLE: "2"})
    (row,) = (each for each in entity_rows(lake, WHOLE).to_pylist() if each["name"] == "Mira Kovacs")
    assert row["text"] == row[EMBEDDED_TEXT] == "Mira Kovacs / A. K. / Kovács Mira\nA name."
    assert (row["entity_id"], row["type"], row["shard"]) == ("mira kovacs", "person", WHOLE)
    assert entity_rows(lake, "00").num_rows == 0


def test_reports_are_found_by_title_and_summary(lake: Lake) -> None:
    rows = report_rows(lake, WHOLE).to_pylist()
    assert [(row["community_id"], row["level"]) for row in rows] == [("c0", 0), ("c1", 1)]
    assert rows[1][EMBEDDED_TEXT] == "Silent Harbor\nA film and its director [Data: Entities (1, 2)]."
    assert rows[1]["text"].startswith("# Silent Harbor\n")
    assert report_rows(lake, "00").num_rows == 0


def test_what_is_served_is_what_is_stored(lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = VectorStore(tmp_path / "vectors")
    index_graph(lake, store, BagOfWordsEmbedder())
    for each in (ENTITY_INDEX, REPORT_INDEX):
        monkeypatch.setitem(VECTOR_TABLES, each.name, each)
        assert indexing_problems(lake, store, each.name) == []
    lake.write(ENTITIES, WHOLE, ENTITIES.schema.empty_table(), {WHOLE: "2"})
    (problem,) = indexing_problems(lake, store, ENTITY_INDEX.name)
    assert problem.startswith("4 rows are indexed but no longer stored")
