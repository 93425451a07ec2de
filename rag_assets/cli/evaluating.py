"""The commands `evaluate`, how good the knowledge base is, and `questions`, by which questions that is told."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rag_assets.cli.console import complain, open_home, print_json, print_table, say
from rag_assets.cli.progress import progress_display
from rag_assets.contracts.errors import ModelError, QueryError

if TYPE_CHECKING:
    from rag_assets.evaluation.evidence import Corpus
    from rag_assets.evaluation.judges.results import JudgeOptions
    from rag_assets.evaluation.questions import Question
    from rag_assets.evaluation.recipes import RecipeRun
    from rag_assets.evaluation.report import TextTable
    from rag_assets.evaluation.runs import Evaluation, System
    from rag_assets.evaluation.scores import ComparedSystems, Figure
    from rag_assets.pipeline.home import Home

RECIPES = ("two-step", "pr3", "hyde", "rewriting", "graphrag")
_LEVELS = ("document", "page", "passage")
_JUDGES = ("grading", "preference", "claims", "faithfulness")
_DIMENSIONS = ("type", "language", "format", "length")
_CHANGES_SHOWN = 5
_BRACKETS = "brackets: 95 % intervals, which are too narrow where a star stands: fewer than 20 questions"


@click.command()
@click.argument("named_set", metavar="[SET]", type=click.Path(path_type=Path, exists=True), required=False)
@click.option(
    "--mode",
    "modes",
    multiple=True,
    help="What to measure, repeatable: a mode, as two_step:file with its summaries, as hybrid@3 on version 3, "
    "or all [setting search.mode; without SET evaluation.modes].",
)
@click.option("--compare", nargs=2, metavar="A B", help="Compare two modes, or versions of them, question by question.")
@click.option("--qrels", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="TREC judgements of SET.")
@click.option("--level", "levels", type=click.Choice(_LEVELS), multiple=True, help="What to find [all].")
@click.option("--by", "dimensions", type=click.Choice(_DIMENSIONS), multiple=True, help="Tell questions apart [type].")
@click.option("--measure", "measures", multiple=True, help="Measure, as nDCG@20; the first is that of --by [R@5].")
@click.option("--answers", is_flag=True, help="Answer the questions as well, as `ask` does.")
@click.option(
    "--judge",
    "judges",
    type=click.Choice(_JUDGES),
    multiple=True,
    help="Have a language model judge the answers, repeatable; preference compares modes with A, or the first one.",
)
@click.option("--repetitions", type=click.IntRange(1, 50), default=5, show_default=True, help="Of preference.")
@click.option(
    "--labelled",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Labelled pairs that the judge is checked by [those of the package].",
)
@click.option("--yes", is_flag=True, help="Do not ask before the judge is called.")
@click.option("--drafts", is_flag=True, help="Ask draft questions, too.")
@click.option("--record/--no-record", default=None, help="Keep the run in the tables of evaluations [without SET].")
@click.option("--recipe", type=click.Choice(RECIPES), help="Compare what a source compares, beside its figures.")
@click.option("--plan", is_flag=True, help="With --recipe: say what calls of language models would cost, and stop.")
@click.option("--no-judge", is_flag=True, help="With --recipe: do without the judges of the source.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--html", type=click.Path(path_type=Path, dir_okay=False), help="Write a page with every question here.")
@click.option("--trec", type=click.Path(path_type=Path, file_okay=False), help="Write TREC runs and qrels here.")
@click.option("--beir", type=click.Path(path_type=Path, file_okay=False), help="Write the set as a BEIR folder here.")
@click.pass_context
def evaluate(
    context: click.Context,
    named_set: Path | None,
    modes: tuple[str, ...],
    compare: tuple[str, str] | None,
    qrels: Path | None,
    levels: tuple[str, ...],
    dimensions: tuple[str, ...],
    measures: tuple[str, ...],
    judges: tuple[str, ...],
    repetitions: int,
    labelled: Path | None,
    recipe: str | None,
    html: Path | None,
    trec: Path | None,
    beir: Path | None,
    *,
    answers: bool,
    yes: bool,
    drafts: bool,
    record: bool | None,
    plan: bool,
    no_judge: bool,
    as_json: bool,
) -> None:
    """Measure search and answers by the questions of SET; without SET, by those of the setting evaluation.questions.

    SET is JSON Lines, a folder in the form of BEIR, or CSV with the columns question, answer, document; see the docs.
    """
    from rag_assets.evaluation.evidence import Level
    from rag_assets.evaluation.report import as_record, headline_names, report_page
    from rag_assets.evaluation.runs import MEASURES, RunOptions
    from rag_assets.evaluation.runs import evaluate as run
    from rag_assets.evaluation.scores import compared, figures
    from rag_assets.pipeline import measuring

    home = open_home(context)
    question_set = named_set or measuring.question_set(home)
    questions = measuring.accepted_questions(question_set, qrels, drafts=drafts)
    if recipe is not None:
        if modes or compare or levels or dimensions or measures or trec or beir or record:
            raise click.UsageError(
                "--recipe names what is compared and measured: no modes, levels, measures or exports"
            )
        recipe_run = _run_recipe(home, recipe, questions, answers=answers, plan=plan)
        if recipe_run is not None:
            chosen_judges = None if no_judge else judges
            judged_recipe = _judged_recipe(home, recipe_run, chosen_judges, labelled, repetitions, asks=not yes)
            _show_recipe(context, home, question_set, recipe_run, judged_recipe, html, as_json=as_json)
        return
    if plan or no_judge:
        raise click.UsageError("--plan and --no-judge go with --recipe")
    usual = (home.settings.search.mode,) if named_set else measuring.measured_modes(home)
    chosen_levels = tuple(Level(level) for level in _LEVELS if level in levels) or tuple(Level)
    named_measures = tuple(dict.fromkeys((*measures, *MEASURES)))
    options = RunOptions(named_measures, chosen_levels, answers or bool(judges), bool(judges))
    systems = measuring.open_systems(home, [*modes, *(compare or ())] or usual)
    judging = None  # what a judge lacks is said before minutes are spent
    if judges:
        base = compare[0] if compare else systems[0].name
        if "preference" in judges and {system.name for system in systems} == {base}:
            raise click.UsageError("--judge preference compares modes: give --compare A B, or --mode several times")
        judging = _judge(home), _judge_options(judges, base, labelled, repetitions)
    with progress_display() as display:
        evaluation = run(systems, questions, options, display.phase("asking questions"))
    judged_run = _judged(*judging, evaluation, asks=not yes) if judging else _JudgedRun(evaluation)
    evaluation = judged_run.evaluation
    _export(evaluation, systems, trec, beir)
    all_figures = figures(evaluation)
    comparisons = [compared(evaluation, *compare, headline_names(evaluation))] if compare else []
    notes = [*measuring.run_warnings(home, evaluation, question_set), *judged_run.notes]
    if record or (record is None and named_set is None):
        versions = {system.name: system.version for system in systems}
        measuring.record(home, evaluation, all_figures, versions, question_set, measuring.COMMAND, notes)
    _write_page(
        html,
        report_page(
            f"{question_set.name} on {home.path}", evaluation, all_figures, comparisons, notes, judged_run.tables
        ),
    )
    if as_json:
        print_json(as_record(evaluation, all_figures, comparisons, notes, judged_run.record))
    else:
        _print_figures(evaluation, all_figures, dimensions or ("type",))
        _print_rest(judged_run.tables, comparisons, notes)
    _end_where_stopped(context, judged_run)


def _export(evaluation: "Evaluation", systems: "list[System]", trec: Path | None, beir: Path | None) -> None:
    """Write the run for other tools."""
    from rag_assets.evaluation.trec import write_beir, write_evaluation

    if trec is not None:
        write_evaluation(evaluation, trec)
    if beir is not None:
        write_beir(evaluation, systems[0].corpus.stored, beir)


def _write_page(path: Path | None, page: Iterable[str]) -> None:
    if path is not None:
        with path.open("w", encoding="utf-8") as file:
            file.writelines(page)


def _run_recipe(
    home: "Home", name: str, questions: "Sequence[Question]", *, answers: bool, plan: bool
) -> "RecipeRun | None":
    """Ask the conditions of a recipe, after what calls of language models will cost was said; None for a plan alone."""
    from rag_assets.evaluation.recipes import recipe_gaps, run_recipe
    from rag_assets.pipeline.measuring import open_corpus
    from rag_assets.pipeline.opening import knowledge_base, published_snapshot
    from rag_assets.pipeline.plan import plan_questions

    snapshot = published_snapshot(home)
    corpus = open_corpus(home, snapshot)
    ask = partial(run_recipe, name, corpus=corpus, questions=questions, answers=answers)
    if home.language_model_name != "extractive":
        with progress_display() as display:
            plans = plan_questions(home, partial(ask, progress=display.phase("counting calls")))
        for work in plans:
            count = sum(step.stored for step in work.steps)
            say(
                f"{work.model}: about {work.calls:,} calls, {count:,} answers are stored; {work.tokens:,} tokens, "
                f"{work.cost_usd:.4f} USD{f' ({work.note})' if work.note else ''}",
                err=True,
            )
        if not plans:
            say("no calls of language models", err=True)
    elif plan:
        say("no calls of language models: none is set", err=True)
    if plan:
        for line in recipe_gaps(name, knowledge_base(home, snapshot), corpus):
            say(line, err=True)
        return None
    with progress_display() as display:
        return ask(knowledge_base(home, snapshot), progress=display.phase("asking questions"))


def _judged_recipe(
    home: "Home",
    recipe_run: "RecipeRun",
    judges: tuple[str, ...] | None,
    labelled: Path | None,
    repetitions: int,
    *,
    asks: bool,
) -> "_JudgedRun | None":
    """What a recipe measured, judged as its source judges where a language model writes; None where nothing was.

    Args:
        home: The knowledge base.
        recipe_run: The recipe.
        judges: The judges; empty for those of the source, None for none.
        labelled: Labelled pairs that the judge is checked by; None for those of the package.
        repetitions: Of the judge of preference.
        asks: Whether to ask before the judge is called.
    """
    if recipe_run.evaluation is None:
        return None
    own = recipe_run.recipe.judges if recipe_run.is_written and judges is not None else ()
    if not (judges or own):
        return _JudgedRun(recipe_run.evaluation)
    options = _judge_options(judges or own, recipe_run.recipe.baseline, labelled, repetitions)
    return _judged(_judge(home), options, recipe_run.evaluation, asks=asks)


def _show_recipe(
    context: click.Context,
    home: "Home",
    question_set: Path,
    recipe_run: "RecipeRun",
    judged_run: "_JudgedRun | None",
    html: Path | None,
    *,
    as_json: bool,
) -> None:
    """Print the source's table, or JSON, and write the page; ends the command where the judge had to stop."""
    from rag_assets.evaluation.recipes import recipe_notes, recipe_record, recipe_tables
    from rag_assets.evaluation.report import as_record, report_page
    from rag_assets.pipeline.measuring import run_warnings

    lines, tables = recipe_notes(recipe_run), recipe_tables(recipe_run)
    record: dict[str, Any] = {"warnings": lines}
    if judged_run is not None:
        recipe_run = recipe_run.judged(judged_run.evaluation)
        lines = [*lines, *judged_run.notes, *run_warnings(home, judged_run.evaluation, question_set)]
        own_tables, record = (
            recipe_tables(recipe_run),
            as_record(judged_run.evaluation, recipe_run.figures, [], lines, judged_run.record),
        )
        tables = [*own_tables, *judged_run.tables]
        title = f"{recipe_run.name}: {question_set.name} on {home.path}"
        page = report_page(title, judged_run.evaluation, recipe_run.figures, [], lines, judged_run.tables, own_tables)
        _write_page(html, page)
    if as_json:
        print_json({"recipe": recipe_record(recipe_run), **record})
    else:
        _print_tables(tables)
        say(_BRACKETS)
        _print_notes(lines)
    if judged_run is not None:
        _end_where_stopped(context, judged_run)


def _judge_options(judges: Sequence[str], base: str, labelled: Path | None, repetitions: int) -> "JudgeOptions":
    """What judges are asked, those of preference against a mode named `base`."""
    from rag_assets.evaluation.judges.calibration import labelled_pairs
    from rag_assets.evaluation.judges.judgements import Judge
    from rag_assets.evaluation.judges.results import JudgeOptions

    chosen_judges = tuple(Judge(judge) for judge in _JUDGES if judge in judges)
    return JudgeOptions(chosen_judges, labelled_pairs(labelled), base, repetitions)


def _judge(home: "Home") -> "Home":
    """The knowledge base with the judge for its language model, which can be reached."""
    from rag_assets.pipeline.language_models import check_language_model, judge_home

    judge = judge_home(home)
    check_language_model(judge)
    return judge


@dataclass(frozen=True)
class _JudgedRun:
    """A run with what a judge said of it, if any."""

    evaluation: "Evaluation"  # the run, with judgements among its values
    notes: Sequence[str] = ()  # what a reader has to know of them
    tables: "Sequence[TextTable]" = ()  # what they say of the whole
    record: Mapping[str, Any] | None = None  # the same for JSON
    stopped: ModelError | None = None  # why the judge could not go on to the end, so that there are none


def _judged(judge: "Home", options: "JudgeOptions", evaluation: "Evaluation", *, asks: bool) -> _JudgedRun:
    """The run as the judge sees it, after what that costs was said."""
    from rag_assets.evaluation.judges.results import (
        judge_evaluation,
        judge_record,
        judge_tables,
        judge_warnings,
        with_judgements,
    )
    from rag_assets.pipeline.language_models import language_model
    from rag_assets.pipeline.plan import plan_calls

    plan = plan_calls(judge, lambda model: judge_evaluation(model, evaluation, options))
    read_tokens, written_tokens = (
        sum(getattr(step, name) for step in plan.steps) for name in ("input_tokens", "output_tokens")
    )
    say(
        f"judge {plan.model}: {plan.calls:,} calls to make, {sum(step.stored for step in plan.steps):,} stored; about "
        f"{read_tokens:,} tokens read, {written_tokens:,} written, {plan.cost_usd:.4f} USD",
        err=True,
    )
    if plan.note:
        say(plan.note, err=True)
    if asks and plan.calls and sys.stdin.isatty() and not click.confirm("Go on?", default=False, err=True):
        return _JudgedRun(evaluation)
    try:
        with progress_display() as display:
            judgements = judge_evaluation(language_model(judge, repeats=True), evaluation, options, display.phase)
    except ModelError as error:
        return _JudgedRun(evaluation, stopped=error)
    tables, notes = list(judge_tables(judgements)), judge_warnings(judgements)
    return _JudgedRun(with_judgements(evaluation, judgements), notes, tables, judge_record(judgements))


def _end_where_stopped(context: click.Context, judged_run: _JudgedRun) -> None:
    if judged_run.stopped is not None:
        complain(
            f"{judged_run.stopped}; nothing is judged, but what was paid for is stored: run the command again to go on"
        )
        context.exit(1)


def _print_figures(evaluation: "Evaluation", all_figures: "list[Figure]", dimensions: tuple[str, ...]) -> None:
    from rag_assets.evaluation.report import group_tables, meanings, overview_tables

    _print_tables(overview_tables(evaluation, all_figures))
    _print_tables(group_tables(evaluation, all_figures, dimensions))
    for line in meanings(evaluation):
        say(line)
    say(_BRACKETS)


def _print_rest(tables: "Iterable[TextTable]", comparisons: "Iterable[ComparedSystems]", notes: Iterable[str]) -> None:
    from rag_assets.evaluation.report import comparison_table

    _print_tables(tables)
    for comparison in comparisons:
        _print_tables([comparison_table(comparison)])
        for name in list(comparison.comparisons)[:1]:
            for change in comparison.changes[name][:_CHANGES_SHOWN]:
                say(
                    f"{change.question.id}: {name} {change.first:.2f} against {change.second:.2f}: "
                    f"{change.question.text}"
                )
    _print_notes(notes)


def _print_notes(notes: Iterable[str]) -> None:
    for note in notes:
        say(f"note: {note}")


def _print_tables(tables: "Iterable[TextTable]") -> None:
    for table in tables:
        say(table.title, bold=True)
        print_table(table.columns, table.rows)


@click.group("questions")
def question_sets() -> None:
    """Question sets that `evaluate` reads: drafted from the documents, accepted by a person."""


_SET = click.argument("question_set", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False))


@question_sets.command("new")
@_SET
@click.option("-n", "--count", type=click.IntRange(1, 10_000), default=50, show_default=True, help="Drafts at most.")
@click.option("--seed", type=int, default=0, show_default=True, help="Another number drafts others.")
@click.option(
    "--personas",
    type=click.IntRange(1, 50),
    nargs=3,
    metavar="K N M",
    help="Questions on the whole collection, by a language model: of K people with N tasks each, M a task.",
)
@click.pass_context
def questions_new(
    context: click.Context, question_set: Path, count: int, seed: int, personas: tuple[int, int, int] | None
) -> None:
    """Append questions to FILE that are drafted from the documents, marked as drafts."""
    if question_set.suffix.lower() == ".csv":
        raise click.UsageError(f"{question_set}: drafts are written as JSON Lines: name a .jsonl file")
    from rag_assets.evaluation.drafts import draft_questions
    from rag_assets.evaluation.questions import add_drafts, read_questions
    from rag_assets.pipeline.measuring import open_corpus
    from rag_assets.pipeline.opening import published_snapshot

    home = open_home(context)
    there = question_set.exists() and question_set.stat().st_size > 0
    taken = read_questions(question_set) if there else []
    corpus = open_corpus(home, published_snapshot(home))
    if personas is None:
        drafts = draft_questions(corpus, count, taken, seed)
    else:
        drafts = _persona_questions(home, corpus, personas, taken)
    add_drafts(question_set, drafts)
    say(f"{question_set}: {len(drafts)} drafts added; accept the good ones by `rag-assets questions accept`")


def _persona_questions(
    home: "Home", corpus: "Corpus", counts: tuple[int, int, int], taken: "list[Question]"
) -> "list[Question]":
    from rag_assets.evaluation.drafts import persona_questions
    from rag_assets.pipeline.language_models import check_language_model, language_model

    if home.language_model_name == "extractive":
        raise QueryError("--personas needs a language model: set RAG_LANGUAGE_MODEL__PROVIDER")
    check_language_model(home)
    model = language_model(home)
    say(f"{counts[0] * counts[1] + 1} calls of {model.name} at most")
    return persona_questions(corpus.stored, model, counts, taken)


@question_sets.command("accept")
@_SET
@click.argument("ids", metavar="[ID]...", nargs=-1)
@click.option("--all", "all_drafts", is_flag=True, help="All drafts.")
def questions_accept(question_set: Path, ids: tuple[str, ...], *, all_drafts: bool) -> None:
    """Accept drafts of FILE."""
    if bool(ids) == all_drafts:
        raise click.UsageError("give either ids or --all")
    from rag_assets.evaluation.questions import accept_questions

    say(f"{question_set}: {len(accept_questions(question_set, None if all_drafts else ids))} accepted")


@question_sets.command("check")
@_SET
@click.pass_context
def questions_check(context: click.Context, question_set: Path) -> None:
    """Name the questions of FILE whose evidence the documents no longer hold."""
    from rag_assets.evaluation.evidence import Level
    from rag_assets.evaluation.questions import read_questions
    from rag_assets.pipeline.measuring import open_corpus
    from rag_assets.pipeline.opening import published_snapshot

    home = open_home(context)
    questions = read_questions(question_set)
    targets = open_corpus(home, published_snapshot(home)).targets(questions)
    stale = [(question, evidence) for question in questions for evidence in targets[question.id].gone]
    for question, evidence in stale:
        subject = "the document" if evidence in targets[question.id].missing[Level.DOCUMENT] else "the quote"
        say(f"{question.id}: {subject} is gone: {evidence.document}{f': {evidence.quote}' if evidence.quote else ''}")
    names = {question.id for question, _ in stale}
    say(
        f"{len(questions)} questions, {sum(question.draft for question in questions)} of them drafts, "
        f"{len(names)} stale"
    )
    context.exit(1 if names else 0)


@click.command()
@click.option("--anyway", is_flag=True, help="Publish though accepted questions are answered worse.")
@click.pass_context
def publish(context: click.Context, *, anyway: bool) -> None:
    """Publish what is indexed but was held back because accepted questions were answered worse."""
    import getpass

    from rag_assets.defs.runs import publish_in_process
    from rag_assets.pipeline.measuring import gate_notes

    home, start_time = open_home(context, existing=True), datetime.now(UTC)
    with home.lock(), progress_display() as progress:
        publish_in_process(home, progress, getpass.getuser() if anyway else None)
    current = home.snapshots.current()
    say(f"readers see version {current.number if current else 'none'}")
    for note in gate_notes(home, start_time):
        say(note)
