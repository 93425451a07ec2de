"""The command `ask`."""

import json
from typing import TYPE_CHECKING, TextIO

import click

from rag_assets.cli.console import complain, open_home, print_json, say
from rag_assets.cli.search_options import chosen_levels, chosen_mode, search_options
from rag_assets.contracts.errors import QueryError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rag_assets.query import Answer, AnswerEvent, Turn


@click.command()
@click.argument("text")
@search_options
@click.option("--history", type=click.File("r", encoding="utf-8"), help="Earlier questions: JSON lines; see the docs.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def ask(
    context: click.Context,
    text: str,
    mode: str | None,
    retriever: str | None,
    k: int | None,
    filters: tuple[str, ...],
    summaries: str,
    level: int | None,
    history: TextIO | None,
    *,
    dynamic: bool | None,
    as_json: bool,
) -> None:
    """Answer the question TEXT from the published knowledge base, with citations.

    Without a language model, the passages that say most about it are quoted.
    """
    from rag_assets.pipeline.opening import knowledge_base
    from rag_assets.query.filters import parse_filters
    from rag_assets.query.results import to_json

    home = open_home(context)
    chosen = home.settings.search
    conditions = parse_filters(filters)
    turns = _turns(history) if history is not None else []
    events = knowledge_base(home).ask_stream(
        text,
        chosen_mode(mode, retriever, chosen.ask_mode),
        k or chosen.k,
        conditions,
        history=turns,
        summaries=summaries,
        levels=chosen_levels(level, dynamic, chosen),
    )
    answer = _followed(events, shown=not as_json)
    if as_json:
        print_json(to_json(answer))
    else:
        _print_sources(answer)


def _turns(file: TextIO) -> "list[Turn]":
    """Earlier questions and answers, one JSON object a line."""
    from rag_assets.query import Turn

    turns = []
    for number, line in enumerate(file, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise QueryError(f"{file.name}, line {number}: not JSON: {error}") from error
        question, answer = (row.get("question"), row.get("answer", "")) if isinstance(row, dict) else (None, None)
        if not isinstance(question, str) or not isinstance(answer, str):
            raise QueryError(f'{file.name}, line {number}: expected {{"question": …, "answer": …}}')
        turns.append(Turn(question, answer))
    return turns


def _followed(events: "Iterator[AnswerEvent]", *, shown: bool) -> "Answer":
    """The answer; its text is printed as it comes, and as a whole where the check changed it."""
    from rag_assets.query import Answered, TextPiece

    told = ""
    for event in events:
        if isinstance(event, TextPiece) and shown:
            say(event.text, lines=True, end="")
            told += event.text
        if isinstance(event, Answered):
            if shown and told != event.answer.text:
                say(f"{chr(10) if told else ''}{event.answer.text}", lines=True, end="")
            return event.answer
    raise QueryError("the question was not answered")


def _mode_of(answer: "Answer") -> str:
    """The mode, and whether `auto` chose it."""
    chosen = any(step.operation == "choose" for step in answer.trace.steps)
    return f"mode {answer.mode}{', chosen by auto' if chosen else ''}"


def _print_sources(answer: "Answer") -> None:
    say()
    cited = answer.cited()
    if cited:
        say()
    for source in cited:
        say(f"[{source.number}] {source.citation}", bold=True)
    say(_mode_of(answer), err=True)
    if answer.failure is not None:
        complain(f"the language model did not answer: {answer.failure}")
