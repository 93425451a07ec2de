"""What must hold across stored and serving tables before a version may be published. Each function returns problems, in
plain words, or nothing.
"""

from collections.abc import Collection, Mapping

import duckdb
import pyarrow.parquet as pq

from rag_assets.contracts.tables import BLOCKS, CHUNKS, DOCUMENTS, PAGES, PARSE_FAILURES, Table
from rag_assets.store.lake import Lake

_SHOWN = 5

# table, its reference to another table, that table's key
REFERENCES: tuple[tuple[Table, str, Table], ...] = (
    (PAGES, "document_id", DOCUMENTS),
    (BLOCKS, "page_id", PAGES),
    (CHUNKS, "page_id", PAGES),
    (PARSE_FAILURES, "document_id", DOCUMENTS),
)


def schema_problems(lake: Lake, table: Table) -> list[str]:
    """Files whose columns are not those declared."""
    problems = []
    for path in lake.paths(table):
        found = pq.read_schema(path)
        if not found.equals(table.schema):
            problems.append(f"{path.parent.name}/{path.name}: expected {table.schema.names}, found {found.names}")
    return problems


def key_problems(lake: Lake, table: Table) -> list[str]:
    """Keys that stand more than once in a table, all shards taken together."""
    files = [str(path) for path in lake.paths(table)]
    if not files:
        return []
    key = ", ".join(table.key)
    query = f"SELECT {key}, count(*) FROM read_parquet($files) GROUP BY ALL HAVING count(*) > 1 LIMIT {_SHOWN}"  # noqa: S608 - declared names
    return [f"duplicate key {row[:-1]}: {row[-1]} rows" for row in _fetch(query, {"files": files})]


def reference_problems(lake: Lake, table: Table) -> list[str]:
    """Rows that refer to a row that is not there."""
    problems = []
    for child, column, parent in REFERENCES:
        files = {
            "child": [str(path) for path in lake.paths(child)],
            "parent": [str(path) for path in lake.paths(parent)],
        }
        if child is not table or not files["child"]:
            continue
        if not files["parent"]:
            problems.append(f"{table.name}: there are rows, but {parent.name} has none")
            continue
        query = f"""SELECT DISTINCT {column} FROM read_parquet($child) AS child
            ANTI JOIN read_parquet($parent) AS parent USING ({column}) ORDER BY 1 LIMIT {_SHOWN}"""  # noqa: S608 - declared names
        problems += [f"{column} {row[0]!r} is not in {parent.name}" for row in _fetch(query, files)]
    return problems


def serving_problems(expected: Mapping[str, Collection[str]], found: Collection[str]) -> list[str]:
    """Differences between the keys that a serving table should hold and those that it holds.

    Args:
        expected: Keys that should be there, by what they come from.
        found: Keys that are there.
    """
    wanted = {key for keys in expected.values() for key in keys}
    there = set(found)
    problems = []
    if missing := sorted(wanted - there):
        problems.append(f"{len(missing)} rows are not indexed, among them {missing[:_SHOWN]}")
    if surplus := sorted(there - wanted):
        problems.append(f"{len(surplus)} rows are indexed but no longer stored, among them {surplus[:_SHOWN]}")
    if len(there) != len(found):
        problems.append(f"{len(found) - len(there)} duplicate keys")
    return problems


def _fetch(query: str, parameters: Mapping[str, object]) -> list[tuple[object, ...]]:
    with duckdb.connect() as connection:
        return connection.execute(query, dict(parameters)).fetchall()
