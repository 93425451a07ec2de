"""Recorded evaluations as faces show them: runs, their figures and questions, two systems side by side, and the history
of a knowledge base as a table.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

from pydantic import BaseModel, ConfigDict, Field

from rag_assets.contracts.errors import QueryError
from rag_assets.evaluation.records import Record, recorded_results, recorded_runs, recorded_scores, value_of
from rag_assets.evaluation.report import interval_text
from rag_assets.evaluation.scores import ALL, GROUPS, SEED
from rag_assets.evaluation.statistics import Interval, compare
from rag_assets.store.lake import Lake
from rag_assets.text.plain import markdown_table

MAIN = (("passage", "R@5"), ("answer", "correct"))  # by which runs and kinds of questions are told apart
_COMPARED = (*MAIN, ("page", "R@5"), ("document", "R@5"))
_LISTED_COLUMNS = ("system", "question_id", "position", "question", "type", "language", "scores", "outcome")


class Recorded(BaseModel):
    """What is shown of a record; made from a row of a table that has more columns."""

    model_config = ConfigDict(frozen=True)


class RecordedFigure(Recorded):
    """A mean over questions with its 95 % interval."""

    system: str = Field(description="Whose it is.")
    level: str = Field(description="`document`, `page`, `passage`, `answer`, what a judge was asked for, or `cost`.")
    measure: str = Field(description="As in `R@5`.")
    dimension: str = Field(description="What questions are told apart by; `all` for all questions.")
    group: str = Field(description="Which of them.")
    mean: float = Field(description="The mean.")
    low: float = Field(description="Lower end.")
    high: float = Field(description="Upper end.")
    count: int = Field(description="Number of questions.")


class RecordedSystem(Recorded):
    """A mode or version that a run measured."""

    system: str = Field(description="Its name.")
    mode: str = Field(description="Mode of search.")
    version: int | None = Field(description="Number of the version; null of one that the gate held back.")
    seconds: float = Field(description="Time that its searches and answers took.")
    cost_usd: float = Field(description="Price in US dollars.")


class RecordedRun(Recorded):
    """A run."""

    run_id: str = Field(description="Identifies it.")
    evaluated_at: str = Field(description="When it ended, ISO 8601, UTC.")
    made_by: str = Field(description="`evaluate`, `job` or `gate`.")
    question_set: str = Field(description="Name of the question set.")
    question_count: int = Field(description="Questions that were asked.")
    choosing_count: int = Field(description="Those of them that were used for choosing.")
    answers: bool = Field(description="Whether questions were answered.")
    language_model: str = Field(description="Name of the language model.")
    warnings: tuple[str, ...] = Field(description="What a reader of the figures has to know.")
    systems: tuple[RecordedSystem, ...] = Field(description="What was measured.")
    figures: tuple[RecordedFigure, ...] = Field(description="Of all questions.")


class RecordedValue(Recorded):
    """How one question did in one system."""

    system: str = Field(description="The system.")
    value: float | None = Field(description="By the main measure; null where it says nothing of the question.")
    outcome: str | None = Field(description="Of its answer; null where not judged.")


class RecordedQuestion(Recorded):
    """A question of a run."""

    question_id: str = Field(description="Its id.")
    question: str = Field(description="The question.")
    type: str = Field(description="Its kind.")
    language: str = Field(description="Its language.")
    values: tuple[RecordedValue, ...] = Field(description="How it did, by system.")


class RunDetails(Recorded):
    """A run with its figures by kind of question and document, and its questions."""

    run: RecordedRun = Field(description="The run.")
    level: str = Field(description="Level of the main measure.")
    measure: str = Field(description="The main measure.")
    figures: tuple[RecordedFigure, ...] = Field(description="By kind, of the main measure and of right answers.")
    questions: tuple[RecordedQuestion, ...] = Field(description="The questions, those that did worst first.")


class ExpectedPlace(Recorded):
    """Where an answer was expected."""

    document: str = Field(description="The file.")
    place: str = Field(description="Sheet, page, heading or cells.")
    quote: str = Field(description="What stands there.")
    alternative: bool = Field(description="Whether it is enough alone.")
    indexed: bool = Field(description="Whether the version held it.")


class ReachedPlace(Recorded):
    """A result of a search."""

    chunk_id: str = Field(description="The passage.")
    page_id: str = Field(description="Its page.")
    document_id: str = Field(description="Its document.")
    place: str = Field(description="Where it stands, for people.")
    text: str = Field(description="The beginning of its text.")
    relevant: bool = Field(description="Whether it holds evidence.")


class RecordedScore(Recorded):
    """A value of one question."""

    level: str = Field(description="`document`, `page`, `passage`, `answer`, or what a judge was asked for.")
    measure: str = Field(description="As in `R@5`.")
    value: float = Field(description="The value.")


class RecordedSide(Recorded):
    """What one system made of a question."""

    system: str = Field(description="The system.")
    version: int | None = Field(description="Number of the version; null of one that the gate held back.")
    mode: str = Field(description="How it was searched.")
    results: tuple[ReachedPlace, ...] = Field(description="First results, best first.")
    scores: tuple[RecordedScore, ...] = Field(description="The values.")
    outcome: str | None = Field(description="Of its answer; null where not judged.")
    answer: str | None = Field(description="The answer; null where none was asked for.")
    citations: tuple[str, ...] = Field(description="Places that it cites.")
    failure: str | None = Field(description="Why the language model did not answer.")
    milliseconds: float = Field(description="Time of its searches and its answer.")


class QuestionDetails(Recorded):
    """A question of a run: what was expected, and what came."""

    question_id: str = Field(description="Its id.")
    question: str = Field(description="The question.")
    history: tuple[str, ...] = Field(description="Questions before it.")
    type: str = Field(description="Its kind.")
    language: str = Field(description="Its language.")
    answerable: bool = Field(description="Whether the documents were to hold an answer.")
    expected: tuple[ExpectedPlace, ...] = Field(description="Evidence.")
    answer_contains: tuple[tuple[str, ...], ...] = Field(
        description="Groups of alternatives that a right answer holds one of each."
    )
    sides: tuple[RecordedSide, ...] = Field(description="What came, by system.")


class ChangedQuestion(Recorded):
    """A question that two systems did differently on."""

    question_id: str = Field(description="Its id.")
    question: str = Field(description="The question.")
    measure: str = Field(description="As in `passage R@5`.")
    first: float = Field(description="The first system's value.")
    second: float = Field(description="The second one's.")


class RecordedDifference(Recorded):
    """How much better the first of two systems is."""

    measure: str = Field(description="As in `passage R@5`.")
    difference: float = Field(description="Mean of first minus second.")
    low: float = Field(description="Lower end of its 95 % interval.")
    high: float = Field(description="Upper end.")
    p_holm: float = Field(description="Of Wilcoxon's signed-rank test, by Holm for all measures here.")
    wins: int = Field(description="Questions on which the first is better.")
    losses: int = Field(description="Questions on which it is worse.")
    count: int = Field(description="Questions that both were asked.")


class RecordedComparison(Recorded):
    """Two systems, of one run or of two, on the questions that both were asked."""

    differences: tuple[RecordedDifference, ...] = Field(description="By measure.")
    changes: tuple[ChangedQuestion, ...] = Field(
        description="Questions that they did differently on, the largest difference first."
    )


def runs(lake: Lake, count: int) -> tuple[RecordedRun, ...]:
    """The last runs, the latest first, with their figures of all questions.

    Raises:
        StoreError: A file is damaged.
    """
    rows: dict[str, list[Record]] = defaultdict(list)
    for row in recorded_runs(lake):
        rows[row["run_id"]].append(row)
    run_rows = dict(list(rows.items())[:count])
    figures: dict[str, list[RecordedFigure]] = defaultdict(list)
    for row in recorded_scores(lake, run_rows, (ALL,)):
        figures[row["run_id"]].append(_figure(row))
    return tuple(_run(of_run, figures[run_id]) for run_id, of_run in run_rows.items())


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
    questions = _questions(lake, run_id, level, measure)
    return RunDetails(run=run, level=level, measure=measure, figures=by_kind, questions=questions)


def question_details(lake: Lake, run_id: str, question_id: str) -> QuestionDetails | None:
    """A question of a run; None where there is none.

    Raises:
        StoreError: A file is damaged.
    """
    versions = {row["system"]: row["version"] for row in recorded_runs(lake, run_id)}
    rows = recorded_results(lake, run_id, question_id) if versions else []
    if not rows:
        return None
    sides = [{**row, "version": versions[row["system"]]} for row in rows]
    return QuestionDetails.model_validate({**rows[0], "sides": sides})


def compare_recorded(lake: Lake, first: tuple[str, str], second: tuple[str, str]) -> RecordedComparison:
    """Compare two systems on the questions that both were asked.

    Raises:
        QueryError: One of them was not recorded, or they share no question.
        StoreError: A file is damaged.
    """
    first_rows, second_rows = _of_system(lake, *first), _of_system(lake, *second)
    keys = [
        key for key, row in first_rows.items() if key in second_rows and row["question"] == second_rows[key]["question"]
    ]
    if not keys:
        raise QueryError("the two were asked no question in common")
    pairs, changes = {}, []
    for level, measure in _COMPARED:
        name = f"{level} {measure}"
        values = [
            (key, value_of(first_rows[key], level, measure), value_of(second_rows[key], level, measure)) for key in keys
        ]
        judged_values = [value for value in values if not math.isnan(value[1] - value[2])]
        if judged_values:
            pairs[name] = [before for _, before, _ in judged_values], [after for _, _, after in judged_values]
        changes += [
            ChangedQuestion(
                question_id=key, question=first_rows[key]["question"], measure=name, first=before, second=after
            )
            for key, before, after in judged_values
            if before != after
        ]
    differences = tuple(
        RecordedDifference(
            measure=name,
            difference=comparison.difference.mean,
            low=comparison.difference.low,
            high=comparison.difference.high,
            p_holm=comparison.p_holm,
            wins=comparison.wins,
            losses=comparison.losses,
            count=comparison.difference.count,
        )
        for name, comparison in compare(pairs, SEED).items()
    )
    changes.sort(key=lambda change: (-abs(change.first - change.second), change.measure, change.question_id))
    return RecordedComparison(differences=differences, changes=tuple(changes))


def history_markdown(shown: Sequence[RecordedRun]) -> str:
    """A Markdown table of the systems of runs, in their order."""
    heads = ["evaluated", "version", "system", "made by", "set", "questions", *(" ".join(measure) for measure in MAIN)]
    rows = []
    for run in shown:
        texts = {
            (figure.system, figure.level, figure.measure): interval_text(
                Interval(figure.mean, figure.low, figure.high, figure.count)
            )
            for figure in run.figures
        }
        rows += [
            [
                run.evaluated_at,
                "held back" if entry.version is None else entry.version,
                entry.system,
                run.made_by,
                run.question_set,
                run.question_count,
                *(texts.get((entry.system, *measure), "") for measure in MAIN),
            ]
            for entry in run.systems
        ]
    return markdown_table(heads, rows)


def _figure(row: Record) -> RecordedFigure:
    return RecordedFigure.model_validate({**row, "group": row["group_name"], "count": row["question_count"]})


def _run(rows: Sequence[Record], figures: Sequence[RecordedFigure]) -> RecordedRun:
    evaluated_at = rows[0]["evaluated_at"].isoformat(timespec="seconds")
    return RecordedRun.model_validate({**rows[0], "evaluated_at": evaluated_at, "systems": rows, "figures": figures})


def _of_system(lake: Lake, run_id: str, system: str) -> Mapping[str, Record]:
    rows = recorded_results(lake, run_id, columns=("system", "question_id", "position", "question", "scores"))
    results = {row["question_id"]: row for row in rows if row["system"] == system}
    if not results:
        raise QueryError(f"run {run_id} did not measure {system}")
    return results


def _main(run: Record) -> tuple[str, str]:
    """Level and measure that questions of a run are told apart by."""
    levels, measures = run["levels"], run["measures"]
    if not levels or not measures:
        return "answer", "correct"
    return levels[-1], "R@5" if "R@5" in measures else measures[0]


def _questions(lake: Lake, run_id: str, level: str, measure: str) -> tuple[RecordedQuestion, ...]:
    """Questions by their worst value, those of equal values in the order of the set, those without a value last."""
    rows: dict[str, list[Record]] = defaultdict(list)
    for row in recorded_results(lake, run_id, columns=_LISTED_COLUMNS):
        value = value_of(row, level, measure)
        if math.isnan(value):  # it was not searched
            value = value_of(row, "answer", "correct")
        rows[row["question_id"]].append({**row, "value": None if math.isnan(value) else value})
    questions = [
        RecordedQuestion.model_validate({**question_rows[0], "values": question_rows})
        for question_rows in rows.values()
    ]
    return tuple(sorted(questions, key=_worst))


def _worst(question: RecordedQuestion) -> float:
    return min((value.value for value in question.values if value.value is not None), default=2.0)
