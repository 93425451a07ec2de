"""What must hold across stored and serving tables before a version may be published. Each function returns problems, in
plain words, or nothing.
"""

from collections.abc import Collection, Mapping

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from rag_assets.contracts.tables import (
    BLOCKS,
    CHUNK_INDEX,
    CHUNKS,
    CLAIMS,
    COMMUNITIES,
    COMMUNITY_MEMBERS,
    COMMUNITY_REPORTS,
    DOCUMENT_FACETS,
    DOCUMENTS,
    ENTITIES,
    ENTITY_INDEX,
    ENTITY_MENTIONS,
    FILE_SUMMARIES,
    PAGE_SUMMARIES,
    PAGES,
    PARSE_FAILURES,
    QUESTION_INDEX,
    RELATIONSHIP_MENTIONS,
    REPORT_INDEX,
    SUMMARY_INDEX,
    SYNTHETIC_QA,
    TABLES,
    VECTOR_TABLES,
    Table,
)
from rag_assets.store.lake import Lake
from rag_assets.store.vectors import VectorStore

_SHOWN = 5

# table, its reference to another table, that table's key
REFERENCES: tuple[tuple[Table, str, Table], ...] = (
    (PAGES, "document_id", DOCUMENTS),
    (BLOCKS, "page_id", PAGES),
    (CHUNKS, "page_id", PAGES),
    (PARSE_FAILURES, "document_id", DOCUMENTS),
    (DOCUMENT_FACETS, "document_id", DOCUMENTS),
    (SYNTHETIC_QA, "document_id", DOCUMENTS),
    (SYNTHETIC_QA, "page_ids", PAGES),
    (SYNTHETIC_QA, "chunk_ids", CHUNKS),
    (ENTITY_MENTIONS, "document_id", DOCUMENTS),
    (RELATIONSHIP_MENTIONS, "document_id", DOCUMENTS),
    (CLAIMS, "document_id", DOCUMENTS),
    (COMMUNITY_MEMBERS, "entity_id", ENTITIES),
    (COMMUNITY_MEMBERS, "community_id", COMMUNITIES),
    (COMMUNITY_REPORTS, "community_id", COMMUNITIES),
)

# serving table: by prefix of its keys, the stored table and column that they come from; of `indexed` rows, where it has
# such a column
_SERVED: dict[str, dict[str, tuple[Table, str]]] = {
    CHUNK_INDEX.name: {"": (CHUNKS, "chunk_id")},
    SUMMARY_INDEX.name: {
        "file_summary:": (FILE_SUMMARIES, "document_id"),
        "page_summary:": (PAGE_SUMMARIES, "page_id"),
    },
    QUESTION_INDEX.name: {"": (SYNTHETIC_QA, "qa_id")},
    ENTITY_INDEX.name: {"": (ENTITIES, "entity_id")},
    REPORT_INDEX.name: {"": (COMMUNITY_REPORTS, "community_id")},
}


def schema_problems(lake: Lake, table: Table, shards: Collection[str] | None = None) -> list[str]:
    """Files whose columns are not those declared."""
    problems = []
    for path in lake.paths(table, _versions(lake, table, shards)):
        found = pq.read_schema(path)
        if not found.equals(table.schema):
            problems.append(f"{path}: expected {table.schema.names}, found {found.names}")
    return problems


def key_problems(lake: Lake, table: Table, shards: Collection[str] | None = None) -> list[str]:
    """Keys that stand more than once in some shards of a table, or in all, taken together."""
    key = ", ".join(table.key)
    query = f"SELECT {key}, count(*) FROM stored GROUP BY ALL HAVING count(*) > 1 LIMIT {_SHOWN}"  # noqa: S608 - declared names
    stored = lake.dataset(table, _versions(lake, table, shards))
    return [f"duplicate key {row[:-1]}: {row[-1]} rows" for row in _fetch(query, stored=stored)]


def reference_problems(lake: Lake, table: Table, shards: Collection[str] | None = None) -> list[str]:
    """Rows that refer to a row that is not there."""
    problems = []
    for child, column, parent in REFERENCES:
        if child is not table:
            continue
        listed = pa.types.is_list(child.schema.field(column).type)
        key = column.removesuffix("s") if listed else column
        value = f"unnest({column})" if listed else column
        query = f"""SELECT DISTINCT {key} FROM (SELECT {value} AS {key} FROM child)
            ANTI JOIN parent USING ({key}) ORDER BY 1 LIMIT {_SHOWN}"""  # noqa: S608 - declared names
        files = {
            name: lake.dataset(each, _versions(lake, each, shards))
            for name, each in (("child", child), ("parent", parent))
        }
        problems += [f"{key} {row[0]!r} is not in {parent.name}" for row in _fetch(query, **files)]
    return problems


def indexing_problems(lake: Lake, vectors: VectorStore, name: str, shards: Collection[str] | None = None) -> list[str]:
    """Differences between what a serving table should hold of some shards, or of all, and what it holds."""
    expected: dict[str, list[str]] = {}
    for prefix, (table, key) in _SERVED[name].items():
        marked = "indexed" in table.schema.names
        rows = lake.read(table, shards, [key, "indexed"] if marked else [key])
        keys = rows.filter(rows["indexed"])[key] if marked else rows[key]
        expected[table.name] = [f"{prefix}{each}" for each in keys.to_pylist()]
    return serving_problems(expected, vectors.column(name, VECTOR_TABLES[name].key, shards=shards).to_pylist())


def all_problems(lake: Lake, vectors: VectorStore) -> list[str]:
    """Everything that forbids publishing what is stored now."""
    structure = (schema_problems, key_problems, reference_problems)
    problems = [
        f"{table.name}: {each}" for table in TABLES.values() for find in structure for each in find(lake, table)
    ]
    return problems + [f"{name}: {each}" for name in VECTOR_TABLES for each in indexing_problems(lake, vectors, name)]


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


def _versions(lake: Lake, table: Table, shards: Collection[str] | None) -> dict[str, int]:
    return {shard: version for shard, version in lake.latest(table).items() if shards is None or shard in shards}


def _fetch(query: str, **files: ds.Dataset) -> list[tuple[object, ...]]:
    with duckdb.connect() as connection:
        for name, dataset in files.items():
            connection.register(name, dataset)
        return connection.execute(query).fetchall()
