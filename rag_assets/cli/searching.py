"""Commands that ask the knowledge base: `search`, `sql`."""

from typing import TYPE_CHECKING, TextIO

import click

from rag_assets.cli.console import complain, open_home, print_csv, print_json, print_json_line, print_table, say
from rag_assets.cli.search_options import chosen_levels, chosen_mode, search_options

if TYPE_CHECKING:
    from rag_assets.query.results import SearchResult

_LINES, _LINE_CHARS = 6, 160  # of a hit


@click.command()
@click.argument("text", required=False)
@search_options
@click.option("--granularity", type=click.Choice(["chunk", "page", "document"]), default="chunk", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--queries", type=click.File("r", encoding="utf-8"), help="BEIR queries (JSON lines with _id and text).")
@click.option("--run", "run_file", type=click.File("w", encoding="utf-8"), help="Write a TREC run of --queries here.")
@click.pass_context
def search(
    context: click.Context,
    text: str | None,
    mode: str | None,
    retriever: str | None,
    k: int | None,
    filters: tuple[str, ...],
    summaries: str,
    level: int | None,
    granularity: str,
    queries: TextIO | None,
    run_file: TextIO | None,
    *,
    dynamic: bool | None,
    as_json: bool,
) -> None:
    """Search the published knowledge base for TEXT, or for every query of a file."""
    if (text is None) == (queries is None):
        raise click.UsageError("give either TEXT or --queries", ctx=context)
    if run_file is not None and queries is None:
        raise click.UsageError("--run goes with --queries", ctx=context)
    from rag_assets.evaluation.questions import read_queries
    from rag_assets.evaluation.trec import run_lines
    from rag_assets.pipeline.opening import knowledge_base
    from rag_assets.query.filters import parse_filters
    from rag_assets.query.results import to_json

    home = open_home(context)
    chosen = home.settings.search
    search_mode, count = chosen_mode(mode, retriever, chosen.mode), k or chosen.k
    conditions = parse_filters(filters)
    levels = chosen_levels(level, dynamic, chosen)
    base = knowledge_base(home)
    if queries is not None:
        results = base.search_all(
            read_queries(queries),
            search_mode,
            count,
            conditions,
            granularity=granularity,
            summaries=summaries,
            levels=levels,
        )
        for line in run_lines(results):
            if run_file is None:
                say(line)
            else:
                run_file.write(f"{line}\n")
        return
    result = base.search(
        text or "", search_mode, count, conditions, granularity=granularity, summaries=summaries, levels=levels
    )
    if as_json:
        print_json(to_json(result))
    else:
        _print_hits(result)


def _print_hits(result: "SearchResult") -> None:
    if not result.hits:
        say("nothing found")
    for hit in result.hits:
        say(f"{hit.rank}. {hit.citation}  ({hit.score:.3f})", bold=True)
        lines = [line for line in hit.text.splitlines() if line.strip()]
        for line in lines[:_LINES]:
            say(f"   {line if len(line) <= _LINE_CHARS else line[: _LINE_CHARS - 1] + '…'}")
        if len(lines) > _LINES:
            say("   …")


@click.command()
@click.argument("query", required=False)
@click.option("--file", "query_file", type=click.File("r", encoding="utf-8"), help="Read the query from a file.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV; texts like formulas get an apostrophe before them.")
@click.option("--raw", is_flag=True, help="With --csv: texts as they are, formulas and control characters, too.")
@click.pass_context
def sql(
    context: click.Context,
    query: str | None,
    query_file: TextIO | None,
    *,
    as_json: bool,
    as_csv: bool,
    raw: bool,
) -> None:
    """Run a DuckDB QUERY over the published tables and the views of sql/."""
    if (query is None) == (query_file is None):
        raise click.UsageError("give either QUERY or --file", ctx=context)
    if as_json and as_csv:
        raise click.UsageError("give either --json or --csv", ctx=context)
    if raw and not as_csv:
        raise click.UsageError("--raw goes with --csv", ctx=context)
    import duckdb

    from rag_assets.pipeline.opening import readable_snapshot
    from rag_assets.serve.sql.database import open_database
    from rag_assets.serve.sql.rules import duckdb_message

    home = open_home(context)
    with open_database(home.lake, readable_snapshot(home)) as connection:
        try:
            cursor = connection.execute(query_file.read() if query_file else query or "")
            columns = [column[0] for column in cursor.description or []] if cursor else []
            rows = cursor.fetchall() if cursor else []
        except duckdb.Error as error:
            complain(duckdb_message(error))
            context.exit(1)
    if as_json:
        for row in rows:
            print_json_line(dict(zip(columns, row, strict=True)))
    elif as_csv:
        print_csv(columns, rows, raw=raw)
    else:
        print_table(columns, rows)
