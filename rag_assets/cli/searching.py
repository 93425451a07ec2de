"""Commands that ask the knowledge base: `search`, `ask`, `sql`."""

import re
from collections.abc import Callable, Sequence
from io import StringIO
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

import click
from click.shell_completion import CompletionItem

from rag_assets.cli.console import (
    NamedText,
    Text,
    TextFile,
    complain,
    open_home,
    print_csv,
    print_json,
    print_rows,
    say,
)
from rag_assets.cli.interruption import interruptible
from rag_assets.contracts.errors import QueryError
from rag_assets.contracts.modes import MODES, PREPARING_MODES, RETRIEVERS
from rag_assets.text.plain import json_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rag_assets.pipeline.home import Home
    from rag_assets.query import Answer, AnswerEvent, Turn
    from rag_assets.query.results import SearchResult

Command = TypeVar("Command", bound=Callable[..., Any])
_LINES, _LINE_CHARS = 6, 160  # of a hit
_INTERRUPT_SECONDS = 0.5  # that a query has to end by itself


class _ModeNames(click.ParamType[str]):
    """One mode, or several with commas between them, and for some of them a plus sign before."""

    name = "mode"

    def __init__(self, names: tuple[str, ...], preparing: tuple[str, ...] = ()) -> None:
        self._names = names
        self._preparing = preparing

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:  # noqa: ARG002
        """All names."""
        return f"[{'|'.join(self._names)}][,…]"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The names as given, where there are such modes."""
        first, _, after = value.partition("+")  # before which one of some names may stand
        for name in (after if first in self._preparing and after else value).split(","):
            if name not in self._names:
                self.fail(f"unknown mode {name!r}, expected one of {', '.join(self._names)}", param, ctx)
        return value

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002
        """Modes that may stand where the cursor is."""
        prefix = re.split("[,+]", incomplete)[-1]
        before = incomplete.removesuffix(prefix)
        return [CompletionItem(f"{before}{name}") for name in self._names if name.startswith(prefix)]


_SUMMARIES = "page"  # where none are named
_OPTIONS = (  # that `search` and `ask` share
    click.option(
        "--mode",
        type=_ModeNames(MODES, tuple(PREPARING_MODES)),
        help="How to search; several with commas between are fused, hyde+ or rewrite+ goes before "
        "[setting search.mode, of ask search.ask_mode].",
    ),
    click.option(
        "--retriever", type=_ModeNames(RETRIEVERS), help="Mode, or modes, that find passages for hyde and rewrite."
    ),
    click.option("-k", type=click.IntRange(1, 1000), help="Number of results [setting search.k]."),
    click.option(
        "--filter", "filters", metavar="FIELD=VALUE", multiple=True, help="Keep only what matches; see the docs."
    ),
    click.option(
        "--summaries",
        type=click.Choice(["page", "file"]),
        help=f"First step of two_step [{_SUMMARIES}].",
    ),
    click.option(
        "--level", type=click.IntRange(0), help="Reports that graph_global reads [setting search.global_level]."
    ),
    click.option(
        "--dynamic-level/--fixed-level",
        "dynamic",
        default=None,
        help="Whether it chooses finer reports only where they are nearer [setting search.global_dynamic].",
    ),
)


def _search_options(command: Command) -> Command:
    """The options of a search, in this order."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def _arguments(
    home: "Home",
    usual: str,
    *,
    mode: str | None,
    retriever: str | None,
    k: int | None,
    filters: tuple[str, ...],
    summaries: str | None,
    level: int | None,
    dynamic: bool | None,
) -> dict[str, Any]:
    """What options say of a search, or else the settings, of which `usual` is the mode.

    Raises:
        UsageError: An option means nothing in the mode.
    """
    from rag_assets.query.filters import parse_filters
    from rag_assets.serve.requests import check_options, levels_of

    defaults, mode = home.options.search_defaults, mode or usual
    if retriever is not None:
        if mode not in PREPARING_MODES:
            raise click.UsageError(f"--retriever goes with --mode {' or '.join(PREPARING_MODES)}, not with {mode}")
        mode = f"{mode}+{retriever}"
    conditions = parse_filters(filters)
    try:
        check_options(mode, level, dynamic, summaries, is_typed=True)
    except QueryError as error:
        raise click.UsageError(str(error)) from error
    levels = levels_of(level, dynamic, defaults.levels)
    return {
        "mode": mode,
        "k": k or defaults.k,
        "filters": conditions,
        "summaries": summaries or _SUMMARIES,
        "levels": levels,
    }


@click.command()
@click.argument("text", type=Text(), required=False)
@_search_options
@click.option("--granularity", type=click.Choice(["chunk", "page", "document"]), default="chunk", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--queries", type=TextFile(), help="BEIR queries (JSON lines with _id and text).")
@click.option("--run", "run_file", type=click.File("w", encoding="utf-8"), help="Write a TREC run of --queries here.")
@click.pass_context
def search(
    context: click.Context,
    /,
    text: str | None,
    granularity: str,
    queries: NamedText | None,
    run_file: TextIO | None,
    *,
    as_json: bool,
    **options: Any,
) -> None:
    """Search the published knowledge base for TEXT, or for every query of a file."""
    if (text is None) == (queries is None):
        raise click.UsageError("give either TEXT or --queries", ctx=context)
    if run_file is not None and queries is None:
        raise click.UsageError("--run goes with --queries", ctx=context)
    from rag_assets.evaluation.questions import read_queries
    from rag_assets.evaluation.trec import run_lines
    from rag_assets.pipeline.opening import knowledge_base
    from rag_assets.query.results import to_json

    home = open_home(context)
    arguments = _arguments(home, home.options.search_defaults.mode, **options)
    base = knowledge_base(home)
    if queries is not None:
        entries = read_queries(StringIO(queries.text), queries.name)
        for line in run_lines(base.search_all(entries, granularity=granularity, **arguments)):
            if run_file is None:
                say(line)
            else:
                run_file.write(f"{line}\n")
        return
    result = base.search(text or "", granularity=granularity, **arguments)
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
        first = _most_telling(lines, result.query)
        shown_lines = [
            line if len(line) <= _LINE_CHARS else f"{line[: _LINE_CHARS - 1]}…"
            for line in lines[first : first + _LINES]
        ]
        for line in (["…"] if first else []) + shown_lines + (["…"] if first + _LINES < len(lines) else []):
            say(f"   {line}")


def _most_telling(lines: Sequence[str], query: str) -> int:
    """The first of the lines shown: those that hold most of the terms of a query."""
    from rag_assets.text.folding import content_terms

    terms = content_terms(query)
    line_terms = [terms & content_terms(line) for line in lines]
    places = range(max(1, len(lines) - _LINES + 1))
    return max(places, key=lambda place: (len(set().union(*line_terms[place : place + _LINES])), -place))


@click.command()
@click.argument("text", type=Text())
@_search_options
@click.option("--history", type=TextFile(), help="Earlier questions: JSON lines; see the docs.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def ask(context: click.Context, /, text: str, history: NamedText | None, *, as_json: bool, **options: Any) -> None:
    """Answer the question TEXT from the published knowledge base, with citations.

    Without a language model, the passages that say most about it are quoted.
    """
    from rag_assets.pipeline.opening import knowledge_base
    from rag_assets.query.results import to_json

    home = open_home(context)
    turns = _turns(history) if history is not None else []
    arguments = _arguments(home, home.options.search_defaults.ask_mode, **options)
    events = knowledge_base(home).ask_stream(text, history=turns, **arguments)
    answer = _followed(events, is_shown=not as_json)
    if as_json:
        print_json(to_json(answer))
    else:
        _print_sources(answer)


def _turns(file: NamedText) -> "list[Turn]":
    """Earlier questions and answers, one JSON object a line."""
    from rag_assets.evaluation.questions import json_lines
    from rag_assets.query import Turn

    turns = []
    for number, row in json_lines(StringIO(file.text), file.name):
        question, answer = row.get("question"), row.get("answer", "")
        if not isinstance(question, str) or not isinstance(answer, str):
            raise QueryError(f'{file.name}, line {number}: expected {{"question": …, "answer": …}}')
        turns.append(Turn(question, answer))
    return turns


def _followed(events: "Iterator[AnswerEvent]", *, is_shown: bool) -> "Answer":
    """The answer; its text is printed as it comes, and as a whole where the check changed it."""
    from rag_assets.query import Answered, TextPiece

    told_text = ""
    for event in events:
        if isinstance(event, TextPiece) and is_shown:
            say(event.text, lines=True, end="")
            told_text += event.text
        if isinstance(event, Answered):
            if is_shown and told_text != event.answer.text:
                say(f"{chr(10) if told_text else ''}{event.answer.text}", lines=True, end="")
            return event.answer
    raise QueryError("the question was not answered")


def _print_sources(answer: "Answer") -> None:
    say()
    sources = answer.cited()
    if sources:
        say()
    for source in sources:
        say(f"[{source.number}] {source.citation}", bold=True)
    is_chosen = any(step.operation == "choose" for step in answer.trace.steps)
    say(f"mode {answer.mode}{', chosen by auto' if is_chosen else ''}", err=True)
    if answer.failure is not None:
        complain(f"the language model did not answer: {answer.failure}")


@click.command()
@click.argument("query", type=Text(), required=False)
@click.option("--file", "query_file", type=TextFile(), help="Read the query from a file.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV; texts like formulas get an apostrophe before them.")
@click.option("--raw", is_flag=True, help="With --csv: texts as they are, formulas and control characters, too.")
@click.pass_context
def sql(
    context: click.Context,
    query: str | None,
    query_file: NamedText | None,
    *,
    as_json: bool,
    as_csv: bool,
    raw: bool,
) -> None:
    """Run a DuckDB QUERY over the published tables and the views of sql/.

    Long texts are cut to the width of the terminal, or to 120 columns without one; --json and --csv print all of them.
    """
    if (query is None) == (query_file is None):
        raise click.UsageError("give either QUERY or --file", ctx=context)
    if as_json and as_csv:
        raise click.UsageError("give either --json or --csv", ctx=context)
    if raw and not as_csv:
        raise click.UsageError("--raw goes with --csv", ctx=context)
    import duckdb

    from rag_assets.pipeline.opening import readable_snapshot
    from rag_assets.serve.sql.database import duckdb_message, open_database, writes
    from rag_assets.serve.sql.worker import as_json as json_value

    home = open_home(context, existing=True)
    text = query_file.text if query_file else query or ""
    with open_database(home.lake, readable_snapshot(home)) as connection:
        try:
            if not (count := len(duckdb.extract_statements(text))):
                raise QueryError(f"{query_file.name if query_file else 'QUERY'}: no statement of SQL")
            if count > 1:
                complain(f"{count} statements: only what the last one gives is shown")
            # DuckDB heeds no signal itself while it reads the tables
            with interruptible(interrupt=connection.interrupt, grace_seconds=_INTERRUPT_SECONDS):
                cursor = connection.execute(text)
                columns = [column[0] for column in cursor.description or []] if cursor else []
                rows = cursor.fetchall() if cursor else []
        except duckdb.Error as error:
            complain(duckdb_message(error) + ("; SQL only reads the tables and views" if writes(text) else ""))
            context.exit(1)
    if as_json:
        for row in rows:
            print_json(dict(zip(columns, map(json_value, row), strict=True)), indent=None)
    elif as_csv:
        nested = (list, tuple, dict)
        cells = [
            [json_text(json_value(value)) if isinstance(value, nested) else value for value in row] for row in rows
        ]
        print_csv(columns, cells, raw=raw)
    else:
        print_rows(columns, rows)
