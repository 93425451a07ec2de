"""Which SQL is run for strangers: one SELECT over the published tables, by functions that only compute.

DuckDB itself opens no file and loads nothing (`rag_assets.serve.sql.database`); this looks at the parsed statement
before it is bound, because a SELECT may also hold parts that change data, and call functions that change settings, read
memory or tell of the machine. What stays out: which functions only compute (`rag_assets.serve.sql.functions`).
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import duckdb

from rag_assets.contracts.errors import QueryError
from rag_assets.serve.sql.functions import FUNCTIONS, TABLE_FUNCTIONS
from rag_assets.text.plain import message_of

# what DuckDB's parser calls the parts of a query that only read; others write, as INSERT_QUERY_NODE
_READING_NODES = frozenset({"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"})
_SYSTEM_PREFIXES = ("duckdb_", "pg_", "pragma_", "sqlite_")
_NAME = re.compile(r"[^\W\d]\w*")


def check_select(connection: duckdb.DuckDBPyConnection, query: str, tables: Collection[str]) -> None:
    """Refuse what is not one SELECT over the tables.

    Args:
        connection: Parses the query.
        query: The query.
        tables: Tables and views that may be read, in lower case.

    Raises:
        QueryError: It is refused, or cannot be parsed.
    """
    try:
        statements = duckdb.extract_statements(query)
    except duckdb.Error as error:
        raise QueryError(duckdb_message(error)) from error
    if len(statements) != 1:
        raise QueryError(f"expected one SELECT statement, found {len(statements)}")
    [row] = connection.execute("SELECT json_serialize_sql(?)", [query]).fetchall()
    parsed = json.loads(row[0])
    if statements[0].type == duckdb.StatementType.MULTI:
        raise QueryError("a PIVOT names its columns here, as in PIVOT documents ON format IN ('pdf', 'xlsx')")
    if statements[0].type != duckdb.StatementType.SELECT or parsed.get("error"):
        raise QueryError("expected a SELECT statement; nothing else is run here")
    nodes = list(_nodes(parsed))
    named = _cte_names(nodes)
    for node in nodes:
        _check_node(node, tables, named)


def damaged_table(error: Exception) -> str | None:
    """Name of the table whose files could not be read; None where the query failed for another reason."""
    broken = re.search(r"stream registered as '(\w+)' failed", str(error))
    return broken[1] if broken else None


def duckdb_message(error: Exception) -> str:
    """What DuckDB says of an error, without the advice that follows; cut, as it may repeat a value of any length."""
    if table := damaged_table(error):
        return f"table {table}: a stored file is missing or damaged; `rag-assets index` makes it anew"
    return message_of(str(error).partition("\n\n")[0])


def _check_node(node: Mapping[str, Any], tables: Collection[str], named: Collection[str]) -> None:
    if "function_name" in node:
        name = str(node["function_name"]).lower()
        if name not in FUNCTIONS | TABLE_FUNCTIONS:
            raise QueryError(f"the function {name} is not available here")
        if len(_path(node)) > 1 or node.get("schema") or node.get("catalog"):
            raise QueryError(f"the function {name} is named with a schema: expected its name alone")
    match node.get("type"):
        case str(kind) if kind.endswith("_NODE") and kind not in _READING_NODES:
            raise QueryError("expected a SELECT statement; parts of it may not change data")
        case "TABLE_FUNCTION":
            name = str((node.get("function") or {}).get("function_name", "")).lower()
            if name not in TABLE_FUNCTIONS:
                raise QueryError(f"the table function {name} is not available here")
        case "BASE_TABLE":
            name = str(node.get("table_name", "")).lower()
            if len(_path(node)) > 1 or node.get("schema_name") or node.get("catalog_name"):
                raise QueryError("tables are named without catalog and schema")
            if name not in tables and name not in named:
                raise QueryError(f"there is no table {name}; see the list of tables")
        case "SHOW_REF":
            raise QueryError("expected a SELECT statement; columns are told by the list of tables")


def _cte_names(nodes: Collection[Mapping[str, Any]]) -> frozenset[str]:
    """Names that a query gives to its own parts."""
    names = set()
    for node in nodes:
        ctes = node.get("cte_map")
        for each in ctes.get("map", ()) if isinstance(ctes, dict) else ():
            name = str(each["key"]).lower()
            if not _NAME.fullmatch(name) or name.startswith(_SYSTEM_PREFIXES) or name.endswith("_schema"):
                raise QueryError(f"WITH {name}: expected a plain name that no system table has")
            names.add(name)
    return frozenset(names)


def _path(node: Mapping[str, Any]) -> list[str]:
    qualified = node.get("qualified_name")
    return list(qualified.get("path", ())) if isinstance(qualified, dict) else []


def _nodes(value: object) -> Iterator[Mapping[str, Any]]:
    """All objects of a parsed statement."""
    waiting = [value]
    while waiting:
        match waiting.pop():
            case dict() as node:
                yield node
                waiting += node.values()
            case list() as items:
                waiting += items
            case _:
                pass
