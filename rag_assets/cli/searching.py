"""Commands that ask the knowledge base: `search`, `sql`."""

import json
import sys
from typing import TYPE_CHECKING, TextIO

import click

from rag_assets.cli.console import open_home, print_json, print_table, shortened

if TYPE_CHECKING:
    from rag_assets.query.results import SearchResult

RETRIEVERS = ("vector", "fulltext", "hybrid", "two_step", "meta_knowledge", "graph_local", "graph_global")
MODES = (*RETRIEVERS, "hyde", "rewrite")


@click.command()
@click.argument("text", required=False)
@click.option("--mode", type=click.Choice(MODES), help="How to search [setting search.mode].")
@click.option("--retriever", type=click.Choice(RETRIEVERS), help="Mode that finds passages for hyde and rewrite.")
@click.option("-k", type=click.IntRange(1, 1000), help="Number of results [setting search.k].")
@click.option("--filter", "filters", metavar="FIELD=VALUE", multiple=True, help="Keep only what matches; see the docs.")
@click.option(
    "--summaries",
    type=click.Choice(["page", "file"]),
    default="page",
    show_default=True,
    help="First step of two_step.",
)
@click.option("--level", type=click.IntRange(0), help="Reports that graph_global reads [setting search.global_level].")
@click.option(
    "--dynamic-level/--fixed-level",
    "dynamic",
    default=None,
    help="Whether it chooses finer reports only where they are nearer [setting search.global_dynamic].",
)
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
    from rag_assets.query import LevelChoice
    from rag_assets.query.filters import parse_filters
    from rag_assets.query.trec import read_queries, write_run

    home = open_home(context)
    chosen_mode, count = mode or home.settings.search.mode, k or home.settings.search.k
    if retriever is not None:
        chosen_mode = f"{chosen_mode}+{retriever}"
    conditions = parse_filters(filters)
    chosen = home.settings.search
    levels = LevelChoice(
        chosen.global_level if level is None else level, chosen.global_dynamic if dynamic is None else dynamic
    )
    base = home.knowledge_base()
    if queries is not None:
        results = base.search_all(
            read_queries(queries),
            chosen_mode,
            count,
            conditions,
            granularity=granularity,
            summaries=summaries,
            levels=levels,
        )
        write_run(results, run_file or sys.stdout)
        return
    result = base.search(
        text or "", chosen_mode, count, conditions, granularity=granularity, summaries=summaries, levels=levels
    )
    if as_json:
        print_json(result.to_json())
    else:
        _print_hits(result)


def _print_hits(result: "SearchResult") -> None:
    if not result.hits:
        click.echo("nothing found")
    for hit in result.hits:
        click.secho(f"{hit.rank}. {hit.citation}  ({hit.score:.3f})", bold=True)
        for line in shortened(hit.text).splitlines():
            click.echo(f"   {line}")


@click.command()
@click.argument("query", required=False)
@click.option("--file", "query_file", type=click.File("r", encoding="utf-8"), help="Read the query from a file.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
@click.pass_context
def sql(context: click.Context, query: str | None, query_file: TextIO | None, *, as_json: bool, as_csv: bool) -> None:
    """Run a DuckDB QUERY over the published tables and the views of sql/."""
    if (query is None) == (query_file is None):
        raise click.UsageError("give either QUERY or --file", ctx=context)
    if as_json and as_csv:
        raise click.UsageError("give either --json or --csv", ctx=context)
    import duckdb

    from rag_assets.store.sql import open_database

    home = open_home(context)
    with open_database(home.lake, home.snapshots.current()) as connection:
        try:
            cursor = connection.execute(query_file.read() if query_file else query or "")
            columns = [column[0] for column in cursor.description or []] if cursor else []
            rows = cursor.fetchall() if cursor else []
        except duckdb.Error as error:
            click.echo(f"rag-assets: {' '.join(str(error).split())}", err=True)
            context.exit(1)
    if as_json:
        for row in rows:
            click.echo(json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=False, default=str))
    elif as_csv:
        import csv

        writer = csv.writer(sys.stdout)
        writer.writerow(columns)
        writer.writerows(rows)
    else:
        print_table(columns, rows)
