"""The published tables as DuckDB views, stored tables by name and queries of `sql/` on top; and which SQL is run over
them for strangers: one SELECT, by functions that only compute.

DuckDB itself opens no file and loads nothing; what strangers ask is looked at as a parsed statement before it is bound,
because a SELECT may also hold parts that change data, and call functions that change settings, read memory or tell of
the machine.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import duckdb

from rag_assets.contracts.errors import QueryError, StoreError
from rag_assets.contracts.tables import TABLES
from rag_assets.store.lake import Lake
from rag_assets.store.queries import read_queries, strip_comments
from rag_assets.store.snapshots import Snapshot
from rag_assets.text.plain import MESSAGE_CHARS, message_of

# what DuckDB's parser calls the parts of a query that only read; others write, as INSERT_QUERY_NODE
_READING_NODES = frozenset({"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"})
_WRITING_STATEMENTS = frozenset(
    {
        *(duckdb.StatementType.INSERT, duckdb.StatementType.UPDATE, duckdb.StatementType.DELETE),
        *(duckdb.StatementType.MERGE_INTO, duckdb.StatementType.ALTER, duckdb.StatementType.DROP),
    }
)
_SYSTEM_PREFIXES = ("duckdb_", "pg_", "pragma_", "sqlite_")
_LINE = re.compile(r"LINE \d+: .*")
_LINE_CHARS = 120  # of a line of the query that an error names; DuckDB shows some 80 of it
_NAME = re.compile(r"[^\W\d]\w*")

# Functions that the SQL of strangers may call: those that only compute from their arguments. What reads files,
# settings, sequences, memory, or tells of the machine, is not among them, nor is what DuckDB keeps for itself; a
# function that a later version adds is refused until it stands here.

# operators are functions as well
_OPERATORS = """
    != !__postfix !~~ !~~* % & && * ** + - ->> / // < <-> << <= <=> <@ = > >= >> @ @> ^ ^@ | || ~ ~~ ~~* ~~~
"""
# texts, patterns, encodings, hashes, identifiers
_TEXT = """
    aggregate ascii bar base64 bin binom char_length character_length chr concat concat_ws damerau_levenshtein
    decimal_division decode editdist3 encode ends_with format format_bytes formatreadabledecimalsize
    formatreadablesize from_base64 from_binary from_hex gen_random_uuid hamming hex ilike_escape instr isodow
    jaccard jaro_similarity jaro_winkler_similarity lcase left left_grapheme length_grapheme levenshtein like_escape
    lower lpad ltrim md5 md5_number md5_number_lower md5_number_upper mismatches nfc_normalize not_ilike_escape
    not_like_escape octet_length ord overlay parse_dirname parse_dirpath parse_filename parse_formatted_bytes
    parse_path path_join position prefix printf regexp_escape regexp_extract regexp_extract_all regexp_full_match
    regexp_matches regexp_replace regexp_split_to_array regexp_split_to_table repeat replace reverse right
    right_grapheme rpad rtrim sha1 sha256 split split_part starts_with str_split str_split_regex string_split
    string_split_regex strip_accents strlen strpos substr substring substring_grapheme suffix to_base
    to_base64 to_binary to_hex translate trim typeof ucase unbin unhex unicode upper url_decode url_encode uuid
    uuid_extract_version uuidv4 uuidv7
"""
# numbers and bits
_NUMBERS = """
    abs acos acosh add asin asinh atan atan2 atanh bit_count bit_length bit_position bitstring cbrt ceil ceiling cos
    cosh cot degrees divide equi_width_bins even exp factorial fdiv floor fmod gamma gcd geomean geometric_mean
    get_bit greatest greatest_common_divisor hash if isfinite isinf isnan lcm least least_common_multiple lgamma ln
    log log10 log2 mod multiply nextafter nullif pi pow power radians random round round_even roundbankers set_bit
    sign signbit sin sinh sqrt subtract tan tanh trunc wavg weighted_avg xor
"""
# dates and times
_TIMES = """
    age ago century current_date current_localtime current_localtimestamp date_add date_diff date_part date_sub
    date_trunc datediff datepart datesub datetrunc day dayname dayofmonth dayofweek dayofyear days_in_month decade
    epoch epoch_ms epoch_ns epoch_us era get_current_time get_current_timestamp hour isoyear julian last_day
    make_date make_time make_timestamp make_timestamp_ms make_timestamp_ns make_timestamptz microsecond millennium
    millisecond minute month monthname nanosecond now quarter second strftime strptime time_bucket timezone
    timezone_hour timezone_minute to_centuries to_days to_decades to_hours to_microseconds to_millennia
    to_milliseconds to_minutes to_months to_quarters to_seconds to_timestamp to_weeks to_years today
    transaction_timestamp try_strptime uuid_extract_timestamp week weekday weekofyear year yearweek
"""
# lists, structures, maps
_NESTED = """
    array_aggr array_aggregate array_append array_apply array_cat array_concat array_contains array_cosine_distance
    array_cosine_similarity array_cross_product array_distance array_distinct array_dot_product array_extract
    array_filter array_grade_up array_has array_has_all array_has_any array_indexof array_inner_product
    array_intersect array_length array_negative_dot_product array_negative_inner_product array_pop_back
    array_pop_front array_position array_prepend array_push_back array_push_front array_reduce array_resize
    array_reverse array_reverse_sort array_select array_slice array_sort array_to_string array_transform
    array_unique array_value array_where array_zip cardinality contains element_at enum_code enum_first enum_last
    enum_range enum_range_boundary flatten generate_series generate_subscripts grade_up len length list_aggr
    list_aggregate list_any_value list_append list_apply list_approx_count_distinct list_avg list_bit_and
    list_bit_or list_bit_xor list_bool_and list_bool_or list_cat list_concat list_contains list_cosine_distance
    list_cosine_similarity list_count list_distance list_distinct list_dot_product list_element list_entropy
    list_extract list_filter list_first list_grade_up list_has list_has_all list_has_any list_histogram list_indexof
    list_inner_product list_intersect list_kurtosis list_kurtosis_pop list_last list_mad list_max list_median
    list_min list_mode list_negative_dot_product list_negative_inner_product list_pack list_position list_prepend
    list_product list_reduce list_resize list_reverse list_reverse_sort list_select list_sem list_skewness
    list_slice list_sort list_stddev_pop list_stddev_samp list_string_agg list_sum list_transform list_unique
    list_value list_var_pop list_var_samp list_where list_zip map map_concat map_contains map_contains_entry
    map_contains_value map_entries map_extract map_extract_value map_from_entries map_keys map_values range row
    string_to_array struct_concat struct_contains struct_extract struct_extract_at struct_has struct_indexof
    struct_insert struct_keys struct_pack struct_position struct_update struct_values union_extract union_tag
    union_value unnest unpivot_list
"""
# JSON
_JSON = """
    array_to_json from_json from_json_strict json json_array json_array_length json_contains json_deep_merge
    json_exists json_extract json_extract_path json_extract_path_text json_extract_string json_group_array
    json_group_object json_group_structure json_insert json_keys json_merge_patch json_merge_patch_diff json_object
    json_pretty json_quote json_remove json_replace json_set json_strip_nulls json_structure json_transform
    json_transform_strict json_type json_valid json_value row_to_json to_json
"""
# aggregates
_AGGREGATES = """
    any_value approx_count_distinct approx_quantile approx_top_k arbitrary arg_max arg_max_null arg_max_nulls_last
    arg_min arg_min_null arg_min_nulls_last argmax argmin array_agg avg bit_and bit_or bit_xor bitstring_agg
    bool_and bool_or corr count count_if count_star countif covar_pop covar_samp entropy favg first fsum
    group_concat histogram histogram_exact kahan_sum kurtosis kurtosis_pop last list listagg lttb mad max max_by
    mean median min min_by mode product quantile quantile_cont quantile_disc regr_avgx regr_avgy regr_count
    regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy reservoir_quantile sem skewness stddev stddev_pop
    stddev_samp string_agg sum sumkahan var_pop var_samp variance
"""
# window functions
_WINDOWS = """
    cume_dist dense_rank fill first_value lag last_value lead nth_value ntile percent_rank rank rank_dense
    row_number
"""

_GROUPS = (_OPERATORS, _TEXT, _NUMBERS, _TIMES, _NESTED, _JSON, _AGGREGATES, _WINDOWS)
FUNCTIONS = frozenset(name for group in _GROUPS for name in group.split())
TABLE_FUNCTIONS = frozenset({"unnest", "range", "generate_series", "json_each", "json_tree"})


def open_database(
    lake: Lake, snapshot: Snapshot | None, settings: Mapping[str, str] = MappingProxyType({})
) -> duckdb.DuckDBPyConnection:
    """A DuckDB connection with a view for each stored table and each file of `sql/`.

    It reads the files of the snapshot and nothing else, and writes nothing: DuckDB itself may open no file and no
    network address and load no extension; the files are read for it. Tables that a query creates live in memory. Times
    are shown, cast and cut in UTC, wherever the machine stands.

    Args:
        lake: Where the stored tables are.
        snapshot: The version to read; None gives empty tables.
        settings: Further settings of DuckDB, as of memory and threads.

    Raises:
        StoreError: A view cannot be made.
    """
    versions = snapshot.tables if snapshot else {}
    files = {
        name: lake.dataset(table, versions.get(name, {}) if table.published else None) for name, table in TABLES.items()
    }
    spill = str(lake.root.with_name("duckdb"))
    safe_settings = {"enable_external_access": False, "python_enable_replacements": False}
    connection = duckdb.connect(config={**safe_settings, "temp_directory": spill, **settings})
    try:
        for name, dataset in files.items():
            connection.register(name, dataset)
        _make_views(connection)
    except duckdb.Error as error:
        connection.close()
        raise StoreError(f"SQL views: {error}") from error
    connection.execute("SET TimeZone = 'UTC'; SET lock_configuration = true")
    return connection


def view_columns() -> Mapping[str, Sequence[tuple[str, str]]]:
    """Names and types of the columns of each file of `sql/`, by its name."""
    with duckdb.connect() as connection:
        for table in TABLES.values():
            connection.register(table.name, table.schema.empty_table())
        _make_views(connection)
        return {
            name: [(column, kind) for column, kind, *_ in connection.execute(f"DESCRIBE {name}").fetchall()]
            for name in read_queries()
        }


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
    tree = json.loads(row[0])
    if statements[0].type == duckdb.StatementType.MULTI:
        raise QueryError("a PIVOT names its columns here, as in PIVOT documents ON format IN ('pdf', 'xlsx')")
    if statements[0].type != duckdb.StatementType.SELECT or tree.get("error"):
        raise QueryError("expected a SELECT statement; nothing else is run here")
    nodes = list(_nodes(tree))
    cte_names = _cte_names(nodes)
    for node in nodes:
        _check_node(node, tables, cte_names)


def _make_views(connection: duckdb.DuckDBPyConnection) -> None:
    for name, query in read_queries().items():
        connection.execute(f"CREATE VIEW {name} AS {strip_comments(query)}")


def writes(query: str) -> bool:
    """Whether a statement of a query is to change a table or view; no where it cannot be parsed."""
    try:
        return any(statement.type in _WRITING_STATEMENTS for statement in duckdb.extract_statements(query))
    except duckdb.Error:
        return False


def damaged_table(error: Exception) -> str | None:
    """Name of the table whose files could not be read; None where the query failed for another reason."""
    match = re.search(r"stream registered as '(\w+)' failed", str(error))
    return match[1] if match else None


def duckdb_message(error: Exception) -> str:
    """What DuckDB says of an error and the line it stands in, without the advice between; cut, as it may repeat a value
    of any length.
    """
    if table := damaged_table(error):
        return f"table {table}: a stored file is missing or damaged; `rag-assets index` makes it anew"
    message, _, detail = str(error).partition("\n\n")
    line = _LINE.match(detail)
    place = f" ({message_of(line[0], _LINE_CHARS)})" if line else ""
    return message_of(message, MESSAGE_CHARS - len(place)) + place


def _check_node(node: Mapping[str, Any], tables: Collection[str], cte_names: Collection[str]) -> None:
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
            if name not in tables and name not in cte_names:
                raise QueryError(f"there is no table {name}; see the list of tables")
        case "SHOW_REF":
            raise QueryError("expected a SELECT statement; columns are told by the list of tables")


def _cte_names(nodes: Collection[Mapping[str, Any]]) -> frozenset[str]:
    """Names that a query gives to its own parts."""
    names = set()
    for node in nodes:
        ctes = node.get("cte_map")
        for entry in ctes.get("map", ()) if isinstance(ctes, dict) else ():
            name = str(entry["key"]).lower()
            if not _NAME.fullmatch(name) or name.startswith(_SYSTEM_PREFIXES) or name.endswith("_schema"):
                raise QueryError(f"WITH {name}: expected a plain name that no system table has")
            names.add(name)
    return frozenset(names)


def _path(node: Mapping[str, Any]) -> list[str]:
    qualified_name = node.get("qualified_name")
    return list(qualified_name.get("path", ())) if isinstance(qualified_name, dict) else []


def _nodes(value: object) -> Iterator[Mapping[str, Any]]:
    """All objects of a parsed statement."""
    queue = [value]
    while queue:
        match queue.pop():
            case dict() as node:
                yield node
                queue += node.values()
            case list() as items:
                queue += items
            case _:
                pass
