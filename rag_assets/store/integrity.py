"""What must hold across stored and serving tables before a version may be published. Each function returns problems, in
plain words, or nothing.
"""

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from rag_assets.contracts.errors import StoreError
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
    ENTITY_MERGES,
    FILE_SUMMARIES,
    PAGE_SUMMARIES,
    PAGES,
    PARSE_FAILURES,
    QUESTION_INDEX,
    RELATIONSHIP_MENTIONS,
    RELATIONSHIPS,
    REPORT_INDEX,
    SUMMARY_INDEX,
    SYNTHETIC_QA,
    TABLES,
    VECTOR_TABLES,
    Table,
)
from rag_assets.store.lake import Lake, Versions, readable
from rag_assets.store.vectors.store import VectorStore

if TYPE_CHECKING:
    import duckdb

_SHOWN = 5


@dataclass(frozen=True)
class Reference:
    """A column whose values must stand in a column of another table; where it is null, it refers to nothing."""

    child: Table  # table that refers
    column: str  # its column: a value, or a list of values
    parent: Table  # table that is referred to
    key: str = ""  # column of the parent; of the same name where empty
    alternative: Table | None = None  # table whose `key` may hold the value instead, or None
    values: str = ""  # SQL for the values that a row refers to, as a list, where they are more than the column as it is

    def query(self) -> str:
        """SQL for the first values that are not there, over `child`, `parent` and `alternative`."""
        is_list = self.values or pa.types.is_list(self.child.schema.field(self.column).type)
        value = f"unnest({self.values or self.column})" if is_list else self.column
        key = self.key or self.column.removesuffix("s" if is_list and not self.values else "")
        parents = f"SELECT {key} AS key FROM parent"  # noqa: S608 - declared names
        if self.alternative is not None:
            parents += f" UNION ALL SELECT {key} FROM alternative"  # noqa: S608 - declared names
        return f"""SELECT DISTINCT key FROM (SELECT {value} AS key FROM child)
            ANTI JOIN ({parents}) USING (key) WHERE key IS NOT NULL ORDER BY 1 LIMIT {_SHOWN}"""  # noqa: S608


def _cited(kind: str) -> str:
    """SQL for the numbers of the records of a kind that a report cites, as in `[Data: Entities (5, 7)]`."""
    references = r"regexp_extract_all(text, '\[Data: [^\]]*\]')"
    numbers = rf"regexp_extract_all(regexp_extract(each, '{kind} \(([^)]*)\)', 1), '\d+')"
    return f"flatten([{numbers} for each in {references}])::INTEGER[]"


def _name_reference(child: Table, column: str) -> Reference:
    """A folded name, which is an entity's own or was merged into one's."""
    return Reference(child, column, ENTITIES, "name_key", alternative=ENTITY_MERGES)


REFERENCES = (
    Reference(PAGES, "document_id", DOCUMENTS),
    Reference(BLOCKS, "page_id", PAGES),
    Reference(CHUNKS, "page_id", PAGES),
    Reference(PARSE_FAILURES, "document_id", DOCUMENTS),
    Reference(DOCUMENT_FACETS, "document_id", DOCUMENTS),
    Reference(SYNTHETIC_QA, "document_id", DOCUMENTS),
    Reference(SYNTHETIC_QA, "page_ids", PAGES),
    Reference(SYNTHETIC_QA, "chunk_ids", CHUNKS),
    *(
        Reference(child, column, parent)
        for child in (ENTITY_MENTIONS, RELATIONSHIP_MENTIONS, CLAIMS)
        for column, parent in (("document_id", DOCUMENTS), ("page_id", PAGES), ("chunk_id", CHUNKS))
    ),
    _name_reference(ENTITY_MENTIONS, "name_key"),
    _name_reference(RELATIONSHIP_MENTIONS, "source_key"),
    _name_reference(RELATIONSHIP_MENTIONS, "target_key"),
    _name_reference(CLAIMS, "subject_key"),
    _name_reference(CLAIMS, "object_key"),
    Reference(ENTITY_MERGES, "merged_into", ENTITIES, "name_key"),
    Reference(RELATIONSHIPS, "source_id", ENTITIES, "entity_id"),
    Reference(RELATIONSHIPS, "target_id", ENTITIES, "entity_id"),
    Reference(COMMUNITIES, "parent_id", COMMUNITIES, "community_id"),
    Reference(COMMUNITY_MEMBERS, "entity_id", ENTITIES),
    Reference(COMMUNITY_MEMBERS, "community_id", COMMUNITIES),
    Reference(COMMUNITY_REPORTS, "community_id", COMMUNITIES),
    Reference(COMMUNITY_REPORTS, "text", ENTITIES, "number", values=_cited("Entities")),
    Reference(COMMUNITY_REPORTS, "text", RELATIONSHIPS, "number", values=_cited("Relationships")),
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


def schema_problems(lake: Lake, table: Table, versions: Versions | None = None) -> list[str]:
    """Files whose columns are not those declared, among the latest or given versions."""
    problems = []
    for path in lake.paths(table, versions):
        with readable(path):
            schema = pq.read_schema(path)
        if not schema.equals(table.schema):
            problems.append(f"{path}: expected {table.schema.names}, found {schema.names}")
    return problems


def key_problems(lake: Lake, table: Table) -> list[str]:
    """Keys that stand more than once in a table."""
    key = ", ".join(table.key)
    query = f"SELECT {key}, count(*) FROM stored GROUP BY ALL HAVING count(*) > 1 LIMIT {_SHOWN}"  # noqa: S608 - declared names
    dataset = lake.dataset(table)
    return [f"duplicate key {row[:-1]}: {row[-1]} rows" for row in _fetch(query, stored=dataset)]


def reference_problems(lake: Lake, table: Table) -> list[str]:
    """Rows of a table that refer to a row that is not there."""
    problems = []
    for reference in REFERENCES:
        if reference.child is not table:
            continue
        tables = {"child": reference.child, "parent": reference.parent, "alternative": reference.alternative}
        files = {
            name: lake.dataset(related_table) for name, related_table in tables.items() if related_table is not None
        }
        missing_rows = _fetch(reference.query(), **files)
        label = reference.key if reference.values else reference.column
        problems += [f"{label} {row[0]!r} is not in {reference.parent.name}" for row in missing_rows]
    return problems


def indexing_problems(lake: Lake, vectors: VectorStore, name: str) -> list[str]:
    """Differences between what a serving table should hold and what it holds."""
    expected_keys: set[str] = set()
    for prefix, (table, key) in _SERVED[name].items():
        is_marked = "indexed" in table.schema.names
        rows = lake.read(table, columns=[key, "indexed"] if is_marked else [key])
        keys = rows.filter(rows["indexed"])[key] if is_marked else rows[key]
        expected_keys |= {f"{prefix}{value}" for value in keys.to_pylist()}
    indexed_keys = vectors.column(name, VECTOR_TABLES[name].key).to_pylist()
    distinct_keys = set(indexed_keys)
    problems = []
    if missing_keys := sorted(expected_keys - distinct_keys):
        problems.append(f"{len(missing_keys)} rows are not indexed, among them {missing_keys[:_SHOWN]}")
    if surplus := sorted(distinct_keys - expected_keys):
        problems.append(f"{len(surplus)} rows are indexed but no longer stored, among them {surplus[:_SHOWN]}")
    if len(distinct_keys) != len(indexed_keys):
        problems.append(f"{len(indexed_keys) - len(distinct_keys)} duplicate keys")
    return problems


def all_problems(lake: Lake, vectors: VectorStore) -> list[str]:
    """Everything that forbids publishing what is stored now."""
    structure = (schema_problems, key_problems, reference_problems)
    problems = [
        f"{table.name}: {problem}"
        for table in TABLES.values()
        if not table.recorded  # what was measured once forbids nothing
        for find in structure
        for problem in find(lake, table)
    ]
    return problems + [
        f"{name}: {problem}" for name in VECTOR_TABLES for problem in indexing_problems(lake, vectors, name)
    ]


def _fetch(query: str, **files: ds.Dataset) -> list[tuple[object, ...]]:
    import duckdb

    with _database().cursor() as connection:
        for name, dataset in files.items():
            connection.register(name, dataset)
        try:
            return connection.execute(query).fetchall()
        except (duckdb.Error, OSError, pa.ArrowException) as error:
            raise StoreError("a stored file cannot be read; `rag-assets index` makes it anew") from error


@cache
def _database() -> "duckdb.DuckDBPyConnection":
    """An empty database of this process: to make one costs more than most of the queries."""
    import duckdb

    return duckdb.connect()
