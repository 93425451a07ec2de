"""Measuring a knowledge base by questions: what names of systems mean, its question set, and its records.

For the command `evaluate`, the Dagster asset and the gate. What stays out: measuring itself (`rag_assets.evaluation`).
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_assets.contracts.errors import QueryError, StoreError
from rag_assets.contracts.modes import (
    BASELINE_PREPARING,
    BASELINE_RETRIEVERS,
    GRAPH_MODES,
    MODES,
    check_mode,
)
from rag_assets.pipeline.opening import knowledge_base, published_snapshot
from rag_assets.text.plain import counted

if TYPE_CHECKING:
    from rag_assets.evaluation.evidence import Corpus
    from rag_assets.evaluation.judges.judgements import Progress
    from rag_assets.evaluation.questions import Question
    from rag_assets.evaluation.runs import Evaluation, System
    from rag_assets.evaluation.scores import Figure
    from rag_assets.pipeline.home import Home
    from rag_assets.store.snapshots import Snapshot

JOB, COMMAND, GATE = "job", "evaluate", "gate"  # what makes runs


def open_systems(home: "Home", names: Sequence[str]) -> "list[System]":
    """What names of modes mean, as `two_step:file`, `hybrid@3` or `all`, each once; versions are opened once.

    Raises:
        QueryError: Nothing is published, or a name means nothing.
        StoreError: There is no such version.
    """
    from rag_assets.evaluation.runs import System, parse_system

    all_names: list[str] = []
    for name in names:
        all_names.extend(_all_modes(home) if name == "all" else [name])
    specs = {name: parse_system(name) for name in all_names}
    for mode, _, _ in specs.values():
        _check_mode(mode)
    bases, systems = {}, []
    for name, (mode, summaries, number) in specs.items():
        if number not in bases:
            snapshot = published_snapshot(home) if number is None else home.snapshots.load(number)
            bases[number] = knowledge_base(home, snapshot), open_corpus(home, snapshot), snapshot.number
        base, corpus, version = bases[number]
        systems.append(System(name, base, corpus, mode, summaries, version))
    return systems


def open_corpus(home: "Home", snapshot: "Snapshot") -> "Corpus":
    """The documents of a version, as evidence names them."""
    from rag_assets.evaluation.evidence import Corpus
    from rag_assets.query import StoredTables

    return Corpus(StoredTables(home.lake, snapshot.tables))


def measured_modes(home: "Home") -> tuple[str, ...]:
    """The modes that the knowledge base is measured in where nobody names any."""
    return home.settings.evaluation.modes or (home.settings.search.ask_mode,)


def question_set(home: "Home") -> Path:
    """The question set of the settings.

    Raises:
        QueryError: There is none.
    """
    path = home.settings.evaluation.questions
    if path is None:
        raise QueryError(
            "no question set: name one, set evaluation.questions (RAG_EVALUATION__QUESTIONS), or draft one by "
            "`rag-assets questions new FILE`"
        )
    return path


def clicks_file(home: "Home") -> Path | None:
    """Where clicks on results go; None where the settings take no feedback."""
    return home.path / "evaluation" / "clicks.jsonl" if home.settings.evaluation.feedback else None


def feedback_file(home: "Home") -> Path | None:
    """Where draft questions from the web page go: to the question set, where drafts can be added to it; else a file of
    the home. None where none are taken.
    """
    if not home.settings.evaluation.feedback:
        return None
    path = home.settings.evaluation.questions
    return path if path is not None and path.suffix == ".jsonl" else home.path / "evaluation" / "feedback.jsonl"


def accepted_questions(path: Path, qrels: Path | None = None, *, drafts: bool = False) -> "list[Question]":
    """The questions of a set that a person has accepted.

    Raises:
        QueryError: It cannot be read, or there are none.
    """
    from rag_assets.evaluation.questions import read_questions

    questions = [question for question in read_questions(path, qrels) if drafts or not question.draft]
    if not questions:
        raise QueryError(
            f"{path}: all questions are drafts: accept them by `rag-assets questions accept`, or say --drafts"
        )
    return questions


def run_warnings(home: "Home", evaluation: "Evaluation", path: Path) -> list[str]:
    """What a reader of the figures has to know, in one line each."""
    from rag_assets.evaluation.records import recorded_runs
    from rag_assets.evaluation.scores import warnings

    lines = warnings(evaluation)
    own = home.settings.evaluation.questions
    if own is not None and own.absolute() == path.absolute():
        held_count = sum(
            row["made_by"] == GATE and row["version"] is None and row["question_set"] == path.name
            for row in recorded_runs(home.lake)
        )
        if held_count:
            lines.append(
                f"the gate held back {counted(held_count, 'version')} by this set, so it was used for choosing"
            )
    return lines


def gate_notes(home: "Home", since: datetime) -> list[str]:
    """What the gate found of the versions that were published since, in a line each."""
    current = home.snapshots.current()
    if current is None or home.settings.evaluation.questions is None:
        return []
    from rag_assets.evaluation.records import recorded_runs  # loads LanceDB, which an unchanged folder does not need

    runs = [row for row in recorded_runs(home.lake) if row["made_by"] == GATE and row["evaluated_at"] >= since]
    notes = runs[0]["warnings"] if runs and runs[0]["version"] == current.number else []
    return [f"accepted questions: {note}" for note in notes]


def held_back(home: "Home") -> "dict[str, Any] | None":
    """The row of `evaluation_runs` of the version that the gate held back and nothing was published since; None where
    there is none.
    """
    newest = home.snapshots.newest()
    if newest is None or home.settings.evaluation.questions is None:
        return None
    from rag_assets.evaluation.records import recorded_runs  # loads LanceDB, which a home without a set does not need

    try:
        rows = [row for row in recorded_runs(home.lake) if row["made_by"] == GATE]
    except StoreError:  # a damaged file, which is told elsewhere
        return None
    is_held = bool(rows) and rows[0]["version"] is None
    return rows[0] if is_held and rows[0]["evaluated_at"] > datetime.fromisoformat(newest.published_at) else None


def record(
    home: "Home",
    evaluation: "Evaluation",
    figures: "Sequence[Figure]",
    versions: Mapping[str, int | None],
    path: Path,
    made_by: str,
    warnings: Sequence[str] = (),
) -> str:
    """Record a run, show it to other programs as well, and give its id."""
    from rag_assets.evaluation.records import RunFacts, record_run

    name, embedder = path.resolve().name, home.embedder.name
    facts = RunFacts(made_by, name, versions, home.language_model_name, embedder, warnings)
    run_id = record_run(home.lake, evaluation, figures, facts)
    home.snapshots.settle()
    return run_id


def measure(home: "Home", progress: "Progress") -> str:
    """Ask the accepted questions of the knowledge base's set in its modes, answers included, and record the run;
    its id.

    Raises:
        QueryError: There is no question set, or nothing is published.
        ModelError: A model failed.
    """
    from rag_assets.evaluation.runs import RunOptions, evaluate
    from rag_assets.evaluation.scores import figures

    path = question_set(home)
    systems = open_systems(home, measured_modes(home))
    evaluation = evaluate(systems, accepted_questions(path), RunOptions(answers=True), progress)
    notes = run_warnings(home, evaluation, path)
    versions = {system.name: system.version for system in systems}
    return record(home, evaluation, figures(evaluation), versions, path, JOB, notes)


def _check_mode(mode: str) -> None:
    try:
        check_mode(mode)
    except QueryError as error:
        baselines = ", ".join((*BASELINE_RETRIEVERS, *(f"{preparation}+MODE" for preparation in BASELINE_PREPARING)))
        raise QueryError(f"{error}; to measure, also all, {baselines}") from error


def _all_modes(home: "Home") -> list[str]:
    """All modes that the published version can be searched by."""
    modes = [mode for mode in MODES if home.holds_graph or mode not in GRAPH_MODES]
    return [*modes, "two_step:file"]
