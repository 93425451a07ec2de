"""The command line `rag-assets`.

Heavy libraries are imported by the command that needs them, so that help is instant.
"""

import json
import os
import sys
from collections.abc import Callable, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from rag_assets import __version__
from rag_assets.contracts.errors import RagAssetsError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rag_assets.home import Home
    from rag_assets.query.results import SearchResult
    from rag_assets.sources.changes import Changes

MODES = ("vector", "fulltext", "hybrid", "two_step")
_NAMES_SHOWN = 20


class _Commands(click.Group):
    """Turns expected errors into one line on standard error and exit status 1."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(1)
        except (RagAssetsError, OSError, UnicodeError) as error:
            click.echo(f"rag-assets: {' '.join(str(error).split())}", err=True)
            ctx.exit(1)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="rag-assets")
@click.option("--home", type=click.Path(path_type=Path), help="Folder of the knowledge base [RAG_HOME, else .rag].")
@click.pass_context
def main(context: click.Context, home: Path | None) -> None:
    """Keep a knowledge base in step with folders of Excel, PDF and office files, and search it."""
    context.obj = home


def _open(context: click.Context) -> "Home":
    from rag_assets.home import Home
    from rag_assets.settings import load_settings

    home: Path | None = context.find_root().obj
    if home is not None:
        os.environ["RAG_HOME"] = str(home)
    return Home(load_settings())


@main.command()
@click.argument("sources", nargs=-1, metavar="[SOURCE]...")
@click.option("--forget", metavar="NAME", multiple=True, help="Take out a source named earlier, with its documents.")
@click.option("--force", metavar="GLOB", multiple=True, help="Compute documents anew, as in 'specs/**/*.xlsx'.")
@click.option("--allow-empty", is_flag=True, help="Believe a source that suddenly holds no file.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
@click.pass_context
def index(
    context: click.Context,
    sources: tuple[str, ...],
    forget: tuple[str, ...],
    force: tuple[str, ...],
    *,
    allow_empty: bool,
    as_json: bool,
) -> None:
    """Bring the knowledge base in step with its sources.

    A SOURCE is a folder or an fsspec URI, as LOCATION or NAME=LOCATION. It is remembered, so that later runs, the
    schedule and the sensor index it too. Without SOURCE, all known sources are indexed.
    """
    from rag_assets.sources.changes import update_sources
    from rag_assets.sources.listing import list_source, parse_source

    home = _open(context)
    with home.lock():
        given = [parse_source(text) for text in sources]
        for source in given:
            list_source(source, home.settings.source.include, home.settings.source.exclude, home.excluded_paths)
        update_sources(home.registered_sources, given, forget, home.settings.sources, home.stored_counts())
        if not home.sources() and not home.forgotten_sources():
            raise click.UsageError("no source: name a folder, or set RAG_SOURCES", ctx=context)
        if force:
            from rag_assets.reindex import STEPS, force_documents

            force_documents(home.lake, force, list(STEPS))
        _index(context, home, allow_empty=allow_empty, as_json=as_json)


def _index(context: click.Context, home: "Home", *, allow_empty: bool, as_json: bool) -> None:
    import time

    started = time.monotonic()
    changes = home.changes(home.listing(allow_empty=allow_empty))
    if shards := _shards_to_index(home, changes):
        from rag_assets.defs.runs import index_in_process

        with _progress(hidden=as_json) as progress:
            index_in_process(home, shards, progress, allow_empty=allow_empty)
    _print_index_summary(home, changes, time.monotonic() - started, as_json=as_json)
    for problem in changes.unreachable.values():
        click.echo(f"rag-assets: {problem}", err=True)
    if changes.unreachable:
        context.exit(1)


def _shards_to_index(home: "Home", changes: "Changes") -> tuple[str, ...]:
    """The shards that changed, and those of encrypted documents where there are passwords to try."""
    if not home.settings.parsing.passwords:
        return changes.shards
    from rag_assets.parsing.documents import encrypted_documents
    from rag_assets.store.lake import shard_of

    return tuple(sorted({*changes.shards, *map(shard_of, encrypted_documents(home.lake))}))


class _Bars:
    """Progress bars on standard error, one for each step."""

    def __init__(self, progress: Any) -> None:
        self._progress = progress

    def step(self, name: str) -> Callable[[int, int], None]:
        """A bar that appears with its first report."""
        task: list[Any] = []

        def report(done: int, total: int) -> None:
            if not task:
                task.append(self._progress.add_task(name, total=total))
            self._progress.update(task[0], completed=done, total=total)

        return report


@contextmanager
def _progress(*, hidden: bool) -> "Iterator[_Bars]":
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description:<24}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), disable=hidden) as progress:
        yield _Bars(progress)


def _print_index_summary(home: "Home", changes: "Changes", seconds: float, *, as_json: bool) -> None:
    snapshot = home.snapshots.current()
    counts = dict(snapshot.row_counts) if snapshot else {}
    failed = _failures(home)
    if as_json:
        summary = {
            "new": list(changes.new),
            "changed": list(changes.changed),
            "gone": list(changes.gone),
            "unchanged": changes.unchanged,
            "failed": failed,
            "shards": list(changes.shards),
            "snapshot": snapshot.number if snapshot else None,
            "rows": counts,
            "seconds": round(seconds, 3),
        }
        _print_json(summary)
        return
    _print_table(
        ["new", "changed", "gone", "failed", "documents", "pages", "chunks", "snapshot", "seconds"],
        [
            [
                len(changes.new),
                len(changes.changed),
                len(changes.gone),
                len(failed),
                *(counts.get(name, 0) for name in ("documents", "pages", "chunks")),
                snapshot.number if snapshot else "-",
                f"{seconds:.1f}",
            ]
        ],
    )
    _print_failures(failed)


def _failures(home: "Home") -> list[dict[str, object]]:
    from rag_assets.contracts.tables import PARSE_FAILURES

    columns = ["document_id", "page_number", "cause", "message"]
    rows: list[dict[str, object]] = home.lake.read(PARSE_FAILURES, columns=columns).to_pylist()
    return [row for row in rows if row["page_number"] is None]


def _print_failures(failed: list[dict[str, object]]) -> None:
    for row in failed[:_NAMES_SHOWN]:
        click.echo(f"  not indexed: {row['document_id']}: {row['cause']}: {row['message']}")
    if len(failed) > _NAMES_SHOWN:
        click.echo(f"  and {len(failed) - _NAMES_SHOWN} more; see the table parse_failures")


@main.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def status(context: click.Context, *, as_json: bool) -> None:
    """What is new, changed, gone and failed, without doing anything about it."""
    home = _open(context)
    changes = home.changes(home.listing())
    snapshot = home.snapshots.current()
    failed = [row for row in _failures(home) if row["document_id"] not in changes.gone]
    if as_json:
        facts = {
            "home": str(home.path),
            "sources": {source.name: source.location for source in home.sources()},
            "new": list(changes.new),
            "changed": list(changes.changed),
            "gone": list(changes.gone),
            "unchanged": changes.unchanged,
            "failed": failed,
            "unfinished_shards": list(changes.unfinished_shards),
            "unreachable": dict(changes.unreachable),
            "snapshot": snapshot.number if snapshot else None,
            "published_at": snapshot.published_at if snapshot else None,
            "rows": dict(snapshot.row_counts) if snapshot else {},
        }
        _print_json(facts)
        return
    click.echo(f"home      {home.path}")
    for source in home.sources():
        click.echo(f"source    {source.name} = {source.location}")
    click.echo(f"snapshot  {f'{snapshot.number}, published {snapshot.published_at}' if snapshot else 'none'}")
    _print_table(
        ["new", "changed", "gone", "failed", "unchanged", "shards to index"],
        [
            [
                len(changes.new),
                len(changes.changed),
                len(changes.gone),
                len(failed),
                changes.unchanged,
                len(changes.shards),
            ]
        ],
    )
    for label, names in (("new", changes.new), ("changed", changes.changed), ("gone", changes.gone)):
        for name in names[:_NAMES_SHOWN]:
            click.echo(f"  {label}: {name}")
        if len(names) > _NAMES_SHOWN:
            click.echo(f"  and {len(names) - _NAMES_SHOWN} more {label}")
    _print_failures(failed)
    for problem in changes.unreachable.values():
        click.echo(f"  {problem}")


@main.command()
@click.argument("text", required=False)
@click.option("--mode", type=click.Choice(MODES), help="How to search [setting search.mode].")
@click.option("-k", type=click.IntRange(1, 1000), help="Number of results [setting search.k].")
@click.option("--filter", "filters", metavar="FIELD=VALUE", multiple=True, help="Keep only what matches; see the docs.")
@click.option(
    "--summaries",
    type=click.Choice(["page", "file"]),
    default="page",
    show_default=True,
    help="First step of two_step.",
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
    k: int | None,
    filters: tuple[str, ...],
    summaries: str,
    granularity: str,
    queries: TextIO | None,
    run_file: TextIO | None,
    *,
    as_json: bool,
) -> None:
    """Search the published knowledge base for TEXT, or for every query of a file."""
    if (text is None) == (queries is None):
        raise click.UsageError("give either TEXT or --queries", ctx=context)
    if run_file is not None and queries is None:
        raise click.UsageError("--run goes with --queries", ctx=context)
    from rag_assets.query.filters import parse_filters
    from rag_assets.query.trec import read_queries, write_run

    home = _open(context)
    chosen_mode, count = mode or home.settings.search.mode, k or home.settings.search.k
    conditions = parse_filters(filters)
    base = home.knowledge_base()
    if queries is not None:
        results = base.search_all(
            read_queries(queries), chosen_mode, count, conditions, granularity=granularity, summaries=summaries
        )
        write_run(results, run_file or sys.stdout)
        return
    result = base.search(text or "", chosen_mode, count, conditions, granularity=granularity, summaries=summaries)
    if as_json:
        _print_json(result.to_json())
    else:
        _print_hits(result)


def _print_hits(result: "SearchResult") -> None:
    if not result.hits:
        click.echo("nothing found")
    for hit in result.hits:
        click.secho(f"{hit.rank}. {hit.citation}  ({hit.score:.3f})", bold=True)
        for line in _shortened(hit.text).splitlines():
            click.echo(f"   {line}")


def _shortened(text: str, lines: int = 6, width: int = 160) -> str:
    kept = [line if len(line) <= width else line[: width - 1] + "…" for line in text.splitlines() if line.strip()]
    return "\n".join(kept[:lines] + ["…"] * (len(kept) > lines))


@main.command()
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

    home = _open(context)
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
        _print_table(columns, rows)


@main.command()
@click.argument("number", type=int, required=False)
@click.pass_context
def snapshots(context: click.Context, number: int | None) -> None:
    """List the published versions, or make readers see version NUMBER again."""
    home = _open(context)
    if number is not None:
        home.snapshots.roll_back(number)
    current = home.snapshots.current()
    kept = [home.snapshots.load(each) for each in home.snapshots.numbers()]
    _print_table(
        ["snapshot", "published at", "documents", "chunks", "current"],
        [
            [
                s.number,
                s.published_at,
                s.row_counts["documents"],
                s.row_counts["chunks"],
                "*" if current and s.number == current.number else "",
            ]
            for s in kept
        ],
    )


@main.command()
@click.option("--port", type=click.IntRange(1, 65535), default=3000, show_default=True)
@click.option("--host", default="127.0.0.1", show_default=True)
@click.pass_context
def ui(context: click.Context, port: int, host: str) -> None:
    """Start the Dagster UI and daemon on this knowledge base."""
    from rag_assets.instance import serve_ui

    context.exit(serve_ui(_open(context), host, port))


def _print_table(columns: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*("" if value is None else str(value) for value in row))
    console = Console(emoji=False, markup=False, highlight=False, width=None if sys.stdout.isatty() else 10_000)
    console.print(table)


def _print_json(value: object) -> None:
    click.echo(json.dumps(value, ensure_ascii=False, indent=2, default=str))


if __name__ == "__main__":
    main()
