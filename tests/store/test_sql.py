"""Every file of sql/ runs, on a knowledge base and on an empty one, and says what it does."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from rag_assets.contracts.errors import StoreError
from rag_assets.contracts.tables import TABLES
from rag_assets.pipeline.home import Home
from rag_assets.pipeline.settings import load_settings
from rag_assets.serve.sql.database import open_database, view_columns
from rag_assets.store.lake import Lake
from rag_assets.store.queries import describe_column, purpose_of, read_queries

VIEWS = read_queries()
# on a sample without failures, language model, entity graph and evaluations
EMPTY = {
    *("failures_by_cause", "model_costs", "cost_by_document", "model_failures"),
    *("evaluation_history", "evaluation_values", "evaluation_version_changes"),
    *("entity_pages", "co_mentions", "community_tree", "reports_by_rating", "orphan_entities"),
}


@pytest.fixture(scope="module")
def database(sample_home: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    home = Home(load_settings(home=sample_home))
    with open_database(home.lake, home.snapshots.current()) as connection:
        yield connection


def rows(database: duckdb.DuckDBPyConnection, query: str) -> list[dict[str, object]]:
    found = database.execute(query)
    names = [column[0] for column in found.description or []]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_runs_on_an_empty_knowledge_base(tmp_path: Path, name: str) -> None:
    with open_database(Lake(tmp_path), None) as database:
        found = database.execute(f"SELECT * FROM {name}").fetchall()
    assert len(found) == (1 if name == "knowledge_base_size" else 0)


def test_every_file_starts_with_what_it_does() -> None:
    assert len(VIEWS) >= 5
    for name, query in VIEWS.items():
        assert query.startswith("-- "), name


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_says_what_its_columns_hold(name: str) -> None:
    described = {column: describe_column(VIEWS[name], column) for column, _ in view_columns()[name]}
    assert all(described.values()), described
    head = VIEWS[name].partition("\nSELECT")[0].partition("\nWITH")[0]
    assert set(re.findall(r"^-- (\w+): ", head, re.MULTILINE)) <= set(described), "comments on columns it has not"
    assert purpose_of(VIEWS[name]).endswith(".")


def test_document_status_has_a_row_for_each_document(database: duckdb.DuckDBPyConnection) -> None:
    found = rows(database, "SELECT * FROM document_status")
    assert len(found) == 9
    assert {row["status"] for row in found} == {"parsed"}
    [design] = [row for row in found if "B10103" in str(row["file_name"])]
    assert (design["format"], design["language"], design["folder"]) == ("xlsx", "ja", "sample/設計書")
    assert int(str(design["chunk_count"])) > 5


def test_page_texts_hold_text_and_summary(database: duckdb.DuckDBPyConnection) -> None:
    found = rows(database, "SELECT * FROM page_texts WHERE text LIKE '%重複登録エラー%'")
    assert found
    assert all(row["page_name"] and row["summary"] for row in found)


def test_size_counts_sources_and_all(database: duckdb.DuckDBPyConnection) -> None:
    sample, everything = rows(database, "SELECT * FROM knowledge_base_size")
    assert (sample["source_name"], everything["source_name"]) == ("sample", "(all)")
    assert sample["document_count"] == everything["document_count"] == 9
    [chunks] = rows(database, "SELECT count(*) AS n FROM chunks")
    assert everything["chunk_count"] == chunks["n"]


def test_largest_tables_name_their_columns_and_place(database: duckdb.DuckDBPyConnection) -> None:
    found = rows(database, "SELECT * FROM largest_tables")
    areas = [int(str(row["row_count"])) * int(str(row["column_count"])) for row in found]
    assert areas == sorted(areas, reverse=True)
    assert any("項目名" in str(row["header_cells"]) and ":" in str(row["cell_range"]) for row in found)


def test_cells_of_tables_stand_with_the_name_of_their_column(database: duckdb.DuckDBPyConnection) -> None:
    named = "SELECT * FROM table_cells WHERE column_name LIKE '%項目名%'"
    found = rows(database, f"{named} ORDER BY block_id, row_number")
    assert found
    assert all(row["value"] and row["column_name"] != row["value"] for row in found)
    [first] = rows(database, f"SELECT * FROM blocks WHERE block_id = '{found[0]['block_id']}'")
    body: Any = first["rows"]
    assert (
        body[int(str(found[0]["row_number"])) - 1]["cells"][int(str(found[0]["column_number"])) - 1]
        == found[0]["value"]
    )


def test_rows_of_tables_stand_on_rows_of_their_sheet(database: duckdb.DuckDBPyConnection) -> None:
    found = rows(database, "SELECT DISTINCT row_cell_range, sheet_row FROM table_cells")
    assert any(row["row_cell_range"] == "C8:AJ8" and row["sheet_row"] == 8 for row in found)
    assert all((row["sheet_row"] is None) == (row["row_cell_range"] is None) for row in found)


def test_failures_are_counted_by_cause(database: duckdb.DuckDBPyConnection) -> None:
    whole = rows(database, "SELECT count(*) AS n FROM parse_failures")
    counted = rows(database, "SELECT sum(failure_count)::BIGINT AS n FROM failures_by_cause")
    assert (counted[0]["n"] or 0) == whole[0]["n"]


def files(folder: Path) -> dict[Path, tuple[int, int]]:
    return {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    "query",
    [
        "COPY (SELECT 1 AS x) TO '{page}'",
        "COPY (SELECT 1 AS x) TO '{lake}/new.parquet'",
        "ATTACH '{lake}/evil.db' AS evil",
        "EXPORT DATABASE '{lake}/all'",
        "SELECT 1; COPY documents TO '{lake}/new.csv'",
        "SET enable_external_access = true",
        "SET allowed_directories = ['{lake}']",
        "SET temp_directory = '{lake}/spill'",
        "INSTALL httpfs",
        "SELECT * FROM read_text('{home}/snapshots/CURRENT')",
        "SELECT * FROM '{page}'",
        "SELECT * FROM read_parquet('{page}')",
        "SELECT * FROM glob('{lake}/*')",
        "SELECT * FROM hidden_frame",
    ],
)
def test_a_query_reads_the_published_tables_only_and_writes_nothing(sample_home: Path, query: str) -> None:
    home = Home(load_settings(home=sample_home))
    hidden_frame = home.lake.read(TABLES["pages"])
    before = files(sample_home)
    places = {"home": home.path, "lake": home.lake.root, "page": home.lake.paths(TABLES["pages"])[0]}
    with open_database(home.lake, home.snapshots.current()) as connection, pytest.raises(duckdb.Error):
        connection.execute(query.format(**places)).fetchall()
    assert files(sample_home) == before
    assert hidden_frame.num_rows


def test_tables_made_by_a_query_live_in_memory(sample_home: Path) -> None:
    home = Home(load_settings(home=sample_home))
    before = files(sample_home)
    with open_database(home.lake, home.snapshots.current()) as connection:
        connection.execute("CREATE TABLE mine AS SELECT * FROM documents; DROP VIEW document_status")
        assert (
            connection.execute("SELECT count(*) FROM mine").fetchall()
            == connection.execute("SELECT count(*) FROM documents").fetchall()
        )
    assert files(sample_home) == before


def test_columns_and_conditions_are_left_to_the_files(database: duckdb.DuckDBPyConnection) -> None:
    [(_, plan)] = database.execute("EXPLAIN SELECT page_name FROM pages WHERE shard = '00'").fetchall()
    assert "page_name" in plan
    assert "document_id" not in plan
    assert "Filters" in plan


@pytest.mark.parametrize("name", ["a*b", "[ab]", 'it\'s "so"', "a?b#c d", "{x} %41"])
def test_views_work_in_a_home_of_any_name(sample_home: Path, tmp_path: Path, name: str) -> None:
    moved = shutil.copytree(sample_home, tmp_path / name)
    home = Home(load_settings(home=moved))
    with open_database(home.lake, home.snapshots.current()) as connection:
        for view in VIEWS:
            assert connection.execute(f"SELECT * FROM {view}").fetchall() or view in EMPTY
    home.lake.paths(TABLES["pages"])[0].unlink()
    with pytest.raises(StoreError, match="pages"):
        open_database(home.lake, home.snapshots.current())
