"""Which SELECT statements are run for strangers."""

import duckdb
import pytest

from rag_assets.contracts.errors import QueryError
from rag_assets.serve.sql.database import FUNCTIONS, TABLE_FUNCTIONS, check_select, duckdb_message

SYNTAX = frozenset({"!__postfix", "count_star", "unnest"})  # what only the parser names


@pytest.fixture(scope="module")
def connection() -> duckdb.DuckDBPyConnection:
    opened = duckdb.connect()
    opened.execute("CREATE TABLE documents (format VARCHAR, page_count INTEGER, modified_at TIMESTAMP)")
    return opened


def check(connection: duckdb.DuckDBPyConnection, query: str) -> None:
    check_select(connection, query, ["documents"])


@pytest.mark.parametrize(
    "query",
    [
        "SELECT format, count(*), sum(page_count) FILTER (page_count > 1) FROM documents GROUP BY ALL",
        "SELECT row_number() OVER (ORDER BY page_count), lag(format) OVER () FROM documents",
        "SELECT coalesce(format, 'x') || upper(format), format LIKE 'a%', format ILIKE 'a' ESCAPE '!' FROM documents",
        "SELECT extract(year FROM modified_at), date_trunc('day', modified_at), now() - INTERVAL 1 DAY FROM documents",
        "SELECT [x + 1 FOR x IN range(3) IF x > 0], {'a': 1}.a, MAP {'k': 2}, list_filter([1], lambda x: x > 0)",
        "SELECT json_extract_string('{}', '$.a'), '{}'::JSON ->> 'a', regexp_matches('a', 'b'), 5 // 2 % 3, 3!",
        "SELECT * FROM range(3), unnest([1, 2]) AS t(x), json_each('[1]')",
        "SELECT max_by(format, page_count), string_agg(format, ','), quantile_cont(page_count, 0.5) FROM documents",
        "WITH pages AS (SELECT 1 AS n) SELECT * FROM pages",
        "PIVOT documents ON format IN ('pdf', 'xlsx') USING sum(page_count)",
        "SELECT * FROM documents PIVOT (count(*) FOR format IN ('pdf'))",
        "UNPIVOT documents ON page_count INTO NAME name VALUE value",
        "FROM documents",
        "VALUES (1)",
    ],
)
def test_what_only_computes_is_run(connection: duckdb.DuckDBPyConnection, query: str) -> None:
    check(connection, query)
    connection.sql(query)


@pytest.mark.parametrize(
    ("query", "told"),
    [
        *(
            (f"SELECT {call}", "is not available here")
            for call in (
                *("getenv('HOME')", "current_setting('threads')", "getvariable('x')", "nextval('s')", "setseed(0.5)"),
                *("write_log('x')", "sleep_ms(1)", "current_query()", "pg_size_pretty(1)", "version()", "stats(1)"),
                *("has_table_privilege('x', 'y')", "json_serialize_plan('SELECT 1')", "of_a_later_version(1)"),
            )
        ),
        ("SELECT * FROM read_text('/etc/passwd')", "is not available here"),
        ("SELECT * FROM duckdb_settings()", "is not available here"),
        ("SELECT * FROM query('SELECT 1')", "is not available here"),
        ("PIVOT (SELECT getenv('HOME') AS x) ON x IN ('a')", "is not available here"),
        ("PIVOT documents ON format IN ('a') USING count(getenv('HOME'))", "is not available here"),
        ("PIVOT duckdb_settings ON name IN ('threads')", "there is no table duckdb_settings"),
        ("PIVOT documents ON format USING count(*)", "a PIVOT names its columns here"),
        ("CREATE TABLE t AS SELECT 1", "expected a SELECT statement"),
        ("DESCRIBE documents", "expected a SELECT statement"),
        *(
            (query, "may not change data")
            for query in (
                "WITH x AS (INSERT INTO documents VALUES ('a', 1, now()) RETURNING *) SELECT * FROM x",
                "WITH x AS (INSERT INTO documents SELECT * FROM documents) SELECT 1",
                "WITH x AS MATERIALIZED (UPDATE documents SET format = 'a' RETURNING format) FROM x",
                "WITH x AS (DELETE FROM documents RETURNING *), y AS (SELECT * FROM x) SELECT * FROM y",
                "WITH x AS (COPY documents TO 'file.csv') SELECT 1",
                "SELECT 1 UNION (WITH x AS (DELETE FROM documents RETURNING 1) SELECT * FROM x)",
                "SELECT 1 WHERE 'a' IN (WITH x AS (DELETE FROM documents RETURNING *) SELECT format FROM x)",
                "PIVOT (WITH x AS (DELETE FROM documents RETURNING *) FROM x) ON format IN ('a') USING count(*)",
            )
        ),
        ("PREPARE p AS DELETE FROM documents", "expected a SELECT statement"),
        ("CREATE MACRO m() AS TABLE SELECT 1", "expected a SELECT statement"),
        ("MERGE INTO documents USING (SELECT 1) AS s ON true WHEN MATCHED THEN DELETE", "expected a SELECT statement"),
    ],
)
def test_what_does_more_is_refused(connection: duckdb.DuckDBPyConnection, query: str, told: str) -> None:
    with pytest.raises(QueryError, match=told):
        check(connection, query)


def test_errors_are_short_whatever_they_repeat(connection: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(duckdb.Error) as raised:
        connection.execute("SELECT CAST(repeat('x', 100000) || chr(27) AS INTEGER)")
    assert len(str(raised.value)) > 100_000
    told = duckdb_message(raised.value)
    assert len(told) == 1000
    assert told.endswith("… (LINE 1: SELECT CAST(repeat('x', 100000) || chr(27) AS INTEGER))")


def test_functions_are_known_to_the_installed_version_and_change_nothing(connection: duckdb.DuckDBPyConnection) -> None:
    rows = connection.execute("SELECT lower(function_name), function_type, has_side_effects FROM duckdb_functions()")
    kinds: dict[str, set[str]] = {}
    lively = set()
    for name, kind, side_effects in rows.fetchall():
        kinds.setdefault(name, set()).add(kind)
        if side_effects:
            lively.add(name)
    computing = {name for name, of in kinds.items() if of & {"scalar", "aggregate", "macro", "window"}}
    assert computing | SYNTAX >= FUNCTIONS
    assert {name for name, of in kinds.items() if "table" in of} | SYNTAX >= TABLE_FUNCTIONS
    assert lively & FUNCTIONS == {"random", "uuid", "uuidv4", "uuidv7", "gen_random_uuid"}
    outside = ("__", "pg_", "has_", "inet_", "read_", "duckdb_", "pragma_", "current_")
    assert {name for name in FUNCTIONS if name.startswith(outside)} == {
        *("current_date", "current_localtime", "current_localtimestamp")
    }
