"""Recorded evaluations as faces show them: runs, their figures and questions, and two systems side by side."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from rag_assets.contracts.errors import QueryError
from rag_assets.evaluation.records import Row, recorded_results, recorded_runs, recorded_scores, value_of
from rag_assets.evaluation.scores import ALL, GROUPS
from rag_assets.evaluation.statistics import compare
from rag_assets.query.results import adapter_of
from rag_assets.store.lake import Lake

MAIN = (("passage", "R@5"), ("answer", "correct"))  # by which runs and kinds of questions are told apart
_COMPARED = (*MAIN, ("page", "R@5"), ("document", "R@5"))
_LISTED_COLUMNS = ("system", "question_id", "position", "question", "type", "language", "scores", "outcome")
_SEED = 20
_T = TypeVar("_T")


@dataclass(frozen=True)
class RecordedFigure:
    """A mean over questions with its 95 % interval.

    Attributes:
        system: Whose it is.
        level: `document`, `page`, `passage`, `answer`, what a judge was asked for, or `cost`.
        measure: As in `R@5`.
        dimension: What questions are told apart by; `all` for all questions.
        group: Which of them.
        mean: The mean.
        low: Lower end.
        high: Upper end.
        count: Number of questions.
    """

    system: str
    level: str
    measure: str
    dimension: str
    group: str
    mean: float
    low: float
    high: float
    count: int


@dataclass(frozen=True)
class RecordedSystem:
    """A mode or version that a run measured.

    Attributes:
        system: Its name.
        mode: Mode of search.
        version: Number of the version; null of one that the gate held back.
        seconds: Time that its searches and answers took.
        cost_usd: Price in US dollars.
    """

    system: str
    mode: str
    version: int | None
    seconds: float
    cost_usd: float


@dataclass(frozen=True)
class RecordedRun:
    """A run.

    Attributes:
        run_id: Identifies it.
        evaluated_at: When it ended, ISO 8601, UTC.
        made_by: `evaluate`, `job` or `gate`.
        question_set: Name of the question set.
        question_count: Questions that were asked.
        choosing_count: Those of them that were used for choosing.
        answers: Whether questions were answered.
        language_model: Name of the language model.
        warnings: What a reader of the figures has to know.
        systems: What was measured.
        figures: Of all questions.
    """

    run_id: str
    evaluated_at: str
    made_by: str
    question_set: str
    question_count: int
    choosing_count: int
    answers: bool
    language_model: str
    warnings: tuple[str, ...]
    systems: tuple[RecordedSystem, ...]
    figures: tuple[RecordedFigure, ...]


@dataclass(frozen=True)
class RecordedValue:
    """How one question did in one system.

    Attributes:
        system: The system.
        value: By the main measure; null where it says nothing of the question.
        outcome: Of its answer; null where not judged.
    """

    system: str
    value: float | None
    outcome: str | None


@dataclass(frozen=True)
class RecordedQuestion:
    """A question of a run.

    Attributes:
        question_id: Its id.
        question: The question.
        type: Its kind.
        language: Its language.
        values: How it did, by system.
    """

    question_id: str
    question: str
    type: str
    language: str
    values: tuple[RecordedValue, ...]


@dataclass(frozen=True)
class RunDetails:
    """A run with its figures by kind of question and document, and its questions.

    Attributes:
        run: The run.
        level: Level of the main measure.
        measure: The main measure.
        figures: By kind, of the main measure and of right answers.
        questions: The questions, those that did worst first.
    """

    run: RecordedRun
    level: str
    measure: str
    figures: tuple[RecordedFigure, ...]
    questions: tuple[RecordedQuestion, ...]


@dataclass(frozen=True)
class ExpectedPlace:
    """Where an answer was expected.

    Attributes:
        document: The file.
        place: Sheet, page, heading or cells.
        quote: What stands there.
        alternative: Whether it is enough alone.
        indexed: Whether the version held it.
    """

    document: str
    place: str
    quote: str
    alternative: bool
    indexed: bool


@dataclass(frozen=True)
class ReachedPlace:
    """A result of a search.

    Attributes:
        chunk_id: The passage.
        page_id: Its page.
        document_id: Its document.
        place: Where it stands, for people.
        text: The beginning of its text.
        relevant: Whether it holds evidence.
    """

    chunk_id: str
    page_id: str
    document_id: str
    place: str
    text: str
    relevant: bool


@dataclass(frozen=True)
class RecordedScore:
    """A value of one question.

    Attributes:
        level: `document`, `page`, `passage`, `answer`, or what a judge was asked for.
        measure: As in `R@5`.
        value: The value.
    """

    level: str
    measure: str
    value: float


@dataclass(frozen=True)
class RecordedSide:
    """What one system made of a question.

    Attributes:
        system: The system.
        version: Number of the version; null of one that the gate held back.
        mode: How it was searched.
        results: First results, best first.
        scores: The values.
        outcome: Of its answer; null where not judged.
        answer: The answer; null where none was asked for.
        citations: Places that it cites.
        failure: Why the language model did not answer.
        milliseconds: Time of its searches and its answer.
    """

    system: str
    version: int | None
    mode: str
    results: tuple[ReachedPlace, ...]
    scores: tuple[RecordedScore, ...]
    outcome: str | None
    answer: str | None
    citations: tuple[str, ...]
    failure: str | None
    milliseconds: float


@dataclass(frozen=True)
class QuestionDetails:
    """A question of a run: what was expected, and what came.

    Attributes:
        question_id: Its id.
        question: The question.
        history: Questions before it.
        type: Its kind.
        language: Its language.
        answerable: Whether the documents were to hold an answer.
        expected: Evidence.
        answer_contains: Groups of alternatives that a right answer holds one of each.
        sides: What came, by system.
    """

    question_id: str
    question: str
    history: tuple[str, ...]
    type: str
    language: str
    answerable: bool
    expected: tuple[ExpectedPlace, ...]
    answer_contains: tuple[tuple[str, ...], ...]
    sides: tuple[RecordedSide, ...]


@dataclass(frozen=True)
class ChangedQuestion:
    """A question that two systems did differently on.

    Attributes:
        question_id: Its id.
        question: The question.
        measure: As in `passage R@5`.
        first: The first system's value.
        second: The second one's.
    """

    question_id: str
    question: str
    measure: str
    first: float
    second: float


@dataclass(frozen=True)
class RecordedDifference:
    """How much better the first of two systems is.

    Attributes:
        measure: As in `passage R@5`.
        difference: Mean of first minus second.
        low: Lower end of its 95 % interval.
        high: Upper end.
        p_holm: Of Wilcoxon's signed-rank test, by Holm for all measures here.
        wins: Questions on which the first is better.
        losses: Questions on which it is worse.
        count: Questions that both were asked.
    """

    measure: str
    difference: float
    low: float
    high: float
    p_holm: float
    wins: int
    losses: int
    count: int


@dataclass(frozen=True)
class RecordedComparison:
    """Two systems, of one run or of two, on the questions that both were asked.

    Attributes:
        differences: By measure.
        changes: Questions that they did differently on, the largest difference first.
    """

    differences: tuple[RecordedDifference, ...]
    changes: tuple[ChangedQuestion, ...]


def runs(lake: Lake, count: int) -> tuple[RecordedRun, ...]:
    """The last runs, the latest first, with their figures of all questions.

    Raises:
        StoreError: A file is damaged.
    """
    rows: dict[str, list[Row]] = defaultdict(list)
    for row in recorded_runs(lake):
        rows[row["run_id"]].append(row)
    chosen = dict(list(rows.items())[:count])
    figures: dict[str, list[RecordedFigure]] = defaultdict(list)
    for row in recorded_scores(lake, chosen, (ALL,)):
        figures[row["run_id"]].append(_figure(row))
    return tuple(_run(of_run, figures[run_id]) for run_id, of_run in chosen.items())


def run_details(lake: Lake, run_id: str) -> RunDetails | None:
    """A run with everything but what came of single questions; None where there is none.

    Raises:
        StoreError: A file is damaged.
    """
    rows = recorded_runs(lake, run_id)
    if not rows:
        return None
    figures = [_figure(row) for row in recorded_scores(lake, [run_id], (ALL, *GROUPS))]
    level, measure = _main(rows[0])
    by_kind = tuple(
        figure
        for figure in figures
        if figure.dimension != ALL and (figure.level, figure.measure) in {(level, measure), ("answer", "correct")}
    )
    run = _run(rows, [figure for figure in figures if figure.dimension == ALL])
    return RunDetails(run, level, measure, by_kind, _questions(lake, run_id, level, measure))


def question_details(lake: Lake, run_id: str, question_id: str) -> QuestionDetails | None:
    """A question of a run; None where there is none.

    Raises:
        StoreError: A file is damaged.
    """
    versions = {row["system"]: row["version"] for row in recorded_runs(lake, run_id)}
    rows = recorded_results(lake, run_id, question_id) if versions else []
    if not rows:
        return None
    sides = [_record(RecordedSide, row, version=versions[row["system"]]) for row in rows]
    return _record(QuestionDetails, rows[0], sides=sides)


def compare_recorded(lake: Lake, first: tuple[str, str], second: tuple[str, str]) -> RecordedComparison:
    """Compare two systems on the questions that both were asked.

    Args:
        lake: Where the tables are.
        first: Run and system.
        second: Another, of the same run or another.

    Raises:
        QueryError: One of them was not recorded, or they share no question.
        StoreError: A file is damaged.
    """
    one, other = _of_system(lake, *first), _of_system(lake, *second)
    shared = [key for key, row in one.items() if key in other and row["question"] == other[key]["question"]]
    if not shared:
        raise QueryError("the two were asked no question in common")
    pairs, changes = {}, []
    for level, measure in _COMPARED:
        name = f"{level} {measure}"
        values = [(key, value_of(one[key], level, measure), value_of(other[key], level, measure)) for key in shared]
        judged = [value for value in values if not math.isnan(value[1] - value[2])]
        if judged:
            pairs[name] = [before for _, before, _ in judged], [after for _, _, after in judged]
        changes += [
            ChangedQuestion(key, one[key]["question"], name, before, after)
            for key, before, after in judged
            if before != after
        ]
    differences = tuple(
        _record(
            RecordedDifference, {**vars(each), **vars(each.difference)}, measure=name, difference=each.difference.mean
        )
        for name, each in compare(pairs, _SEED).items()
    )
    changes.sort(key=lambda change: (-abs(change.first - change.second), change.measure, change.question_id))
    return RecordedComparison(differences, tuple(changes))


def _record(kind: type[_T], row: Mapping[str, object], **others: object) -> _T:
    """A row of a table, with values beside it, as a record that has some of its columns for fields."""
    record: _T = adapter_of(kind).validate_python({**row, **others})
    return record


def _figure(row: Row) -> RecordedFigure:
    return _record(RecordedFigure, row, group=row["group_name"], count=row["question_count"])


def _run(rows: Sequence[Row], figures: Sequence[RecordedFigure]) -> RecordedRun:
    evaluated_at = rows[0]["evaluated_at"].isoformat(timespec="seconds")
    return _record(RecordedRun, rows[0], evaluated_at=evaluated_at, systems=rows, figures=figures)


def _of_system(lake: Lake, run_id: str, system: str) -> Mapping[str, Row]:
    rows = recorded_results(lake, run_id, columns=("system", "question_id", "position", "question", "scores"))
    results = {row["question_id"]: row for row in rows if row["system"] == system}
    if not results:
        raise QueryError(f"run {run_id} did not measure {system}")
    return results


def _main(run: Row) -> tuple[str, str]:
    """Level and measure that questions of a run are told apart by."""
    levels, measures = run["levels"], run["measures"]
    if not levels or not measures:
        return "answer", "correct"
    return levels[-1], "R@5" if "R@5" in measures else measures[0]


def _questions(lake: Lake, run_id: str, level: str, measure: str) -> tuple[RecordedQuestion, ...]:
    """Questions by their worst value, those of equal values in the order of the set, those without a value last."""
    rows: dict[str, list[Row]] = defaultdict(list)
    for row in recorded_results(lake, run_id, columns=_LISTED_COLUMNS):
        value = value_of(row, level, measure)
        if math.isnan(value):  # it was not searched
            value = value_of(row, "answer", "correct")
        rows[row["question_id"]].append({**row, "value": None if math.isnan(value) else value})
    questions = [_record(RecordedQuestion, of_question[0], values=of_question) for of_question in rows.values()]
    return tuple(sorted(questions, key=_worst))


def _worst(question: RecordedQuestion) -> float:
    return min((each.value for each in question.values if each.value is not None), default=2.0)
