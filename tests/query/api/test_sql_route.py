"""SQL over HTTP: one SELECT over the published tables; attacks are refused, and none holds up the server."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from rag_assets.contracts.errors import QueryError
from rag_assets.contracts.tables import PAGES
from rag_assets.pipeline.home import Home
from rag_assets.pipeline.settings import load_settings
from rag_assets.serve.sql.reader import SqlLimits, SqlReader

ATTACKS = [
    "SELECT * FROM read_csv('{file}')",
    "SELECT * FROM read_text('{file}')",
    "SELECT * FROM read_parquet('{page}')",
    "SELECT * FROM parquet_metadata('{page}')",
    "SELECT * FROM '{file}'",
    "SELECT * FROM \"{page}\"",
    "SELECT * FROM glob('/*')",
    "WITH x AS (SELECT * FROM read_blob('{file}')) SELECT * FROM x",
    "SELECT (SELECT max(content) FROM read_text('{file}'))",
    "SELECT * FROM documents WHERE title IN (SELECT content FROM read_text('{file}'))",
    "ATTACH '{file}' AS other",
    "COPY documents TO '{file}.csv'",
    "COPY (SELECT 1) TO '{file}.parquet'",
    "EXPORT DATABASE '{file}'",
    "INSTALL httpfs",
    "LOAD httpfs",
    "PRAGMA database_list",
    "PRAGMA enable_external_access",
    "SET enable_external_access = true",
    "RESET memory_limit",
    "CALL pragma_version()",
    "CREATE TABLE mine AS SELECT 1",
    "INSERT INTO documents SELECT * FROM documents",
    "DELETE FROM documents",
    "DROP VIEW document_status",
    "EXPLAIN ANALYZE SELECT 1",
    "SELECT 1; SELECT 2",
    "SELECT 1; COPY documents TO '{file}'",
    "",
    "-- nothing",
    "SELECT getenv('PATH')",
    "SELECT 'PATH'.getenv()",
    "SELECT list_transform(['PATH'], lambda x: getenv(x))",
    "SELECT current_setting('temp_directory')",
    "SELECT * FROM duckdb_settings()",
    "SELECT * FROM duckdb_settings",
    "SELECT * FROM duckdb_secrets()",
    "SELECT * FROM pg_catalog.pg_settings",
    "SELECT * FROM (WITH duckdb_settings AS (SELECT 1) SELECT * FROM duckdb_settings), duckdb_settings",
    "WITH \"{file}\" AS (SELECT 1) SELECT * FROM (SELECT 1), \"{file}\"",
    "SELECT * FROM information_schema.tables",
    "SELECT * FROM query('SELECT * FROM duckdb_settings()')",
    "SELECT * FROM query_table('duckdb_settings')",
    "SELECT * FROM json_execute_serialized_sql(json_serialize_sql('SELECT getenv(''PATH'')'))",
    "SELECT * FROM enable_logging('QueryLog', storage := 'file', storage_config := {{'path': '{file}'}})",
    "SELECT * FROM arrow_scan(1, 2, 3)",
    "SELECT * FROM pandas_scan(1)",
    "SELECT write_log('x')",
    "SELECT system.main.getenv('PATH')",
    "SELECT * FROM temp.documents",
    "SHOW ALL TABLES",
    "DESCRIBE duckdb_settings",
    "SELECT sleep_ms(100000)",
    "WITH x AS (INSERT INTO documents SELECT * FROM documents RETURNING *) SELECT count(*) FROM x",
    "SELECT * FROM documents WHERE",
    "SELECT " + "(" * 3000 + "1" + ")" * 3000,
]  # fmt: skip


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_is_refused(api: httpx.Client, sample: Home, tmp_path: Path, attack: str) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("what,nobody\nmay,see\n", "utf-8")
    page = sample.lake.paths(PAGES)[0]
    query = attack.format(file=secret, page=page)
    response = api.post("/sql", json={"query": query} if query else {"query": " "})
    assert response.status_code == 400, response.text
    assert response.headers["content-type"] == "application/problem+json"
    assert "nobody" not in response.text
    assert os.environ["PATH"] not in response.text
    assert sorted(tmp_path.iterdir()) == [secret]


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT count(*) FROM documents", [[9]]),
        ("FROM documents SELECT format, count(*) GROUP BY ALL ORDER BY 2 DESC LIMIT 1", [["xlsx", 5]]),
        ("WITH d AS (SELECT page_count AS n FROM documents) SELECT sum(n)::INT FROM d", [[33]]),
        ("SELECT count(*) FROM document_status WHERE status = 'parsed' -- a view", [[9]]),
        ("SELECT unnest(range(3))", [[0], [1], [2]]),
        ("SELECT count(*) > 0 FROM blocks b JOIN pages p USING (page_id)", [[True]]),
        (
            "SELECT DATE '2024-01-31', 1.50::DECIMAL(5,2), [1, NULL], {'a': 'b'}, '\\xC3\\xA9'::BLOB, 'nan'::DOUBLE",
            [["2024-01-31", "1.50", [1, None], {"a": "b"}, "w6k=", "nan"]],
        ),
        (
            "SELECT TIMESTAMPTZ '2024-01-01 00:00:00+09', 9007199254740993, NULL",
            [["2023-12-31T15:00:00+00:00", "9007199254740993", None]],
        ),
    ],
)
def test_a_select_is_answered(api: httpx.Client, query: str, rows: list[list[object]]) -> None:
    response = api.post("/sql", json={"query": query})
    assert response.status_code == 200, response.text
    assert response.json()["rows"] == rows
    assert response.json()["complete"] is True


def test_more_rows_than_asked_for_are_told_of(api: httpx.Client) -> None:
    found = api.post("/sql", json={"query": "SELECT document_id, page_count FROM documents ORDER BY 1", "row_limit": 4})
    assert len(found.json()["rows"]) == 4
    assert found.json()["complete"] is False
    assert [set(column) for column in found.json()["columns"]] == [{"name", "type"}] * 2
    assert [column["type"] for column in found.json()["columns"]] == ["VARCHAR", "INTEGER"]
    endless = api.post("/sql", json={"query": "SELECT * FROM range(1000000000) a, range(1000000) b"})
    assert (len(endless.json()["rows"]), endless.json()["complete"]) == (1000, False)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT length(repeat('x', 2000000000))",
        "SELECT repeat('x', 20000000)",
    ],
)
def test_a_query_that_takes_too_much_memory_is_ended_and_the_next_one_answered(api: httpx.Client, query: str) -> None:
    response = api.post("/sql", json={"query": query})
    assert response.status_code == 400, response.text
    assert api.post("/sql", json={"query": "SELECT 1"}).json()["rows"] == [[1]]


def test_an_error_does_not_repeat_what_it_is_about_at_length(api: httpx.Client) -> None:
    long = api.post("/sql", json={"query": "SELECT CAST(repeat('x', 20000000) AS INTEGER)"})
    assert (long.status_code, len(long.json()["detail"])) == (400, 1000)
    unknown = api.post("/sql", json={"query": "SELECT 1", "y" * 100_000: 1})
    assert unknown.status_code == 422
    assert len(unknown.content) < 3000


@pytest.fixture(scope="module")
def hurried(sample_home: Path) -> Iterator[SqlReader]:
    """Runs queries that may take 0.2 seconds."""
    reader = SqlReader(Home(load_settings(home=sample_home)).lake, SqlLimits(0.2, 1000, 1 << 30, 16 << 20), workers=1)
    yield reader
    reader.close()


@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(*) FROM range(1000000000000)",
        "SELECT sum(a.range * b.range) FROM range(10000000) a, range(10000000) b",
        "WITH RECURSIVE r AS (SELECT 1 AS a UNION ALL SELECT a + 1 FROM r) SELECT count(*) FROM r",
        # this one does not heed interrupts, and is ended with its process
        "SELECT levenshtein(repeat('a', 200000), repeat('b', 200000))",
    ],
)
def test_a_query_that_takes_too_long_is_ended_and_the_next_one_answered(
    hurried: SqlReader, sample: Home, query: str
) -> None:
    snapshot = sample.snapshots.current()
    assert snapshot is not None
    began = time.perf_counter()
    with pytest.raises(QueryError, match="longer"):
        hurried.run(snapshot, query)
    assert time.perf_counter() - began < 30
    assert hurried.run(snapshot, "VALUES (1)").rows == ((1,),)


def test_tables_that_can_be_asked_are_told_with_their_columns(api: httpx.Client) -> None:
    tables = {table["name"]: table for table in api.get("/sql/tables").json()}
    assert {column["name"] for column in tables["pages"]["columns"]} >= {"page_id", "text"}
    assert all(column["type"] and column["description"] for table in tables.values() for column in table["columns"])
    for name in tables:
        given = api.post("/sql", json={"query": f"SELECT * FROM {name} LIMIT 0"}).json()["columns"]
        assert [column["name"] for column in given] == [column["name"] for column in tables[name]["columns"]]
