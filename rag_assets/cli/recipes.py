"""`evaluate --recipe`: what a source compares, on the user's own documents, beside the figures that it published."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_assets.cli.console import print_json, print_table, say

if TYPE_CHECKING:
    from rag_assets.evaluation.questions import Question
    from rag_assets.evaluation.recipes import RecipeRun
    from rag_assets.evaluation.report import TextTable
    from rag_assets.pipeline.home import Home
    from rag_assets.pipeline.plan import Plan

RECIPES = ("two-step", "pr3", "hyde", "rewriting", "graphrag")


@dataclass(frozen=True)
class RecipeRequest:
    """What was asked on the command line.

    Attributes:
        answers: Whether questions are answered in any case.
        plan: Whether to stop after what calls would cost was said.
    """

    name: str
    path: Path
    questions: "list[Question]"
    html: Path | None
    answers: bool
    plan: bool
    as_json: bool


def run(home: "Home", asked: RecipeRequest) -> "RecipeRun | None":
    """Ask the conditions of a recipe, after what calls of language models will cost was said; None for a plan alone."""
    from rag_assets.cli.progress import progress_display
    from rag_assets.evaluation.recipes import recipe_gaps, run_recipe
    from rag_assets.pipeline.measuring import open_corpus
    from rag_assets.pipeline.opening import knowledge_base, published_snapshot
    from rag_assets.pipeline.plan import plan_questions

    snapshot = published_snapshot(home)
    corpus = open_corpus(home, snapshot)
    ask = partial(run_recipe, asked.name, corpus=corpus, questions=asked.questions, answers=asked.answers)
    if home.language_model_name != "extractive":
        with progress_display() as display:
            plans = plan_questions(home, partial(ask, progress=display.phase("counting calls")))
        for each in plans:
            _say_plan(each)
        if not plans:
            say("no calls of language models", err=True)
    elif asked.plan:
        say("no calls of language models: none is set", err=True)
    if asked.plan:
        for line in recipe_gaps(asked.name, knowledge_base(home, snapshot), corpus):
            say(line, err=True)
        return None
    with progress_display() as display:
        return ask(knowledge_base(home, snapshot), progress=display.phase("asking questions"))


def show(
    home: "Home",
    asked: RecipeRequest,
    done: "RecipeRun | None",
    notes: Sequence[str] = (),
    tables: "Sequence[TextTable]" = (),
    record: Mapping[str, Any] | None = None,
) -> None:
    """Print the source's table, or JSON, and write the page."""
    from rag_assets.evaluation.recipes import recipe_notes, recipe_record, recipe_tables
    from rag_assets.evaluation.report import as_record, report_page
    from rag_assets.pipeline.measuring import run_warnings

    if done is None:
        return
    lines = [*recipe_notes(done), *notes]
    if done.evaluation is not None:
        lines += run_warnings(home, done.evaluation, asked.path)
    if asked.html is not None and done.evaluation is not None:
        title = f"{asked.name}: {asked.path.name} on {home.path}"
        with asked.html.open("w", encoding="utf-8") as page:
            page.writelines(report_page(title, done.evaluation, done.figures, [], lines, tables, recipe_tables(done)))
    if asked.as_json:
        measured: Mapping[str, Any] = {"warnings": lines}
        if done.evaluation is not None:
            measured = as_record(done.evaluation, done.figures, [], lines, record)
        print_json({"recipe": recipe_record(done), **measured})
        return
    for table in (*recipe_tables(done), *tables):
        say(table.title, bold=True)
        print_table(table.columns, table.rows)
    say("brackets: 95 % intervals, which are too narrow where a star stands: fewer than 20 questions")
    for line in lines:
        say(f"note: {line}")


def _say_plan(made: "Plan") -> None:
    stored = sum(step.stored for step in made.steps)
    say(
        f"{made.model}: about {made.calls:,} calls, {stored:,} answers are stored; {made.tokens:,} tokens, "
        f"{made.cost_usd:.4f} USD{f' ({made.note})' if made.note else ''}",
        err=True,
    )
