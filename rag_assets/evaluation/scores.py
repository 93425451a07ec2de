"""The figures of a run with their intervals: overall, by kind of question and document, and of two systems compared."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rag_assets.evaluation.evidence import Level, Target
from rag_assets.evaluation.judges.judgements import BEST, POINTS, Judge
from rag_assets.evaluation.judging import ANSWER_MEASURES
from rag_assets.evaluation.questions import Question
from rag_assets.evaluation.runs import ANSWER, Evaluation
from rag_assets.evaluation.statistics import (
    FEW,
    Comparison,
    Interval,
    Values,
    bootstrap_intervals,
    compare,
    questions_needed,
    spread_of,
    unseen_share,
    visible_difference,
)

SHORT_CHARS, LONG_CHARS = 10_000, 100_000  # of a document: some 5 pages, some 50
SMALL_DIFFERENCE = 0.05  # that people ask for when they compare modes
COARSE = 0.1  # difference that a set should be able to show
SEED = 20  # of the resampling
COST = "cost"  # what time, tokens and dollars stand under, beside the levels
ALL = "all"
_BOUNDS: Mapping[str, float] = {
    COST: math.inf,
    Judge.CLAIMS: math.inf,
    Judge.GRADING: float(BEST),
    Judge.PREFERENCE: POINTS[1],
}

Group = Callable[[Question, Target], str]

GROUPS: Mapping[str, Group] = {
    "type": lambda question, _target: question.type or "other",
    "language": lambda question, _target: question.language,
    "format": lambda _question, target: target.facts.format if target.facts else "none",
    "length": lambda _question, target: _length(target.facts.length_chars) if target.facts else "none",
}


@dataclass(frozen=True)
class Figure:
    """A mean over questions."""

    system: str
    level: str  # a level, `answer`, what a judge was asked for, or `cost`
    measure: str  # as in `R@5`, `right` or `milliseconds`
    dimension: str  # what questions are told apart by, as in `type`; `all` for all questions
    group: str  # which of them, as in `list`
    interval: Interval


@dataclass(frozen=True)
class Change:
    """A question on which two systems differ, with the value of each."""

    question: Question
    first: float
    second: float


@dataclass(frozen=True)
class ComparedSystems:
    """Two systems on the same questions."""

    first: str  # the one whose figures are the higher where differences are positive
    second: str  # the other
    comparisons: Mapping[str, Comparison]  # by level and measure, as in `passage R@5`
    # by the same, the questions on which they differ, the largest difference first
    changes: Mapping[str, tuple[Change, ...]]


def figures(evaluation: Evaluation) -> list[Figure]:
    """All figures of a run: overall and by `GROUPS`, for those questions of which a measure says something."""
    labels: list[tuple[str, str, str, str, str]] = []
    columns: list[Sequence[float] | Values] = []
    first = evaluation.targets[evaluation.systems[0]]
    places_by_group = {(ALL, ALL): list(range(len(evaluation.questions)))}
    for dimension, group_of in GROUPS.items():
        for place, question in enumerate(evaluation.questions):
            places_by_group.setdefault((dimension, group_of(question, first[question.id])), []).append(place)
    for system in evaluation.systems:
        measures = {measure: np.array(evaluation.values(system, *measure)) for measure in measures_of(evaluation)}
        for (dimension, group), places in places_by_group.items():
            for (level, measure), of_all in measures.items():
                values = of_all[places]
                if not np.isnan(values).all():
                    labels.append((system, level, measure, dimension, group))
                    columns.append(values)
            questions = [evaluation.questions[place] for place in places]
            for measure, amounts in _costs(evaluation, system, questions).items():
                if amounts:
                    labels.append((system, COST, measure, dimension, group))
                    columns.append(amounts)
    bounds = [_BOUNDS.get(level, 1.0) for _, level, *_ in labels]
    intervals = bootstrap_intervals(columns, seed=SEED, bounds=bounds) if columns else []
    return [Figure(*label, interval) for label, interval in zip(labels, intervals, strict=True)]


def measures_of(evaluation: Evaluation) -> list[tuple[str, str]]:
    """Levels and measures that a run holds."""
    measures: list[tuple[str, str]] = [
        (level.value, name) for level in evaluation.options.levels for name in evaluation.options.measures
    ]
    if evaluation.options.answers:
        measures += [(ANSWER, name) for name in ANSWER_MEASURES]
    return [*measures, *((judge, name) for judge, names in evaluation.judged.items() for name in names)]


def compared(evaluation: Evaluation, first: str, second: str, names: Sequence[str]) -> ComparedSystems:
    """Compare two systems of a run by levels and measures, as in `passage R@5`; those of a level are one family."""
    families: dict[str, dict[str, tuple[list[float], list[float]]]] = {}
    changes: dict[str, tuple[Change, ...]] = {}
    for name in names:
        level, _, measure = name.partition(" ")
        values = evaluation.values(first, level, measure), evaluation.values(second, level, measure)
        if not all(math.isnan(left - right) for left, right in zip(*values, strict=True)):
            families.setdefault(level, {})[name] = values
            question_changes = [
                Change(question, left, right)
                for question, left, right in zip(evaluation.questions, *values, strict=True)
                if abs(left - right) > 0  # not where one is nan
            ]
            changes[name] = tuple(
                sorted(question_changes, key=lambda change: (-abs(change.first - change.second), change.question.id))
            )
    comparisons = {
        name: comparison
        for level, pairs in families.items()
        for name, comparison in compare(pairs, SEED, _BOUNDS.get(level, 1.0)).items()
    }
    return ComparedSystems(first, second, comparisons, changes)


def warnings(evaluation: Evaluation) -> list[str]:
    """What a reader of the figures has to know, in one line each."""
    lines: list[str] = []
    level = evaluation.options.levels[-1] if evaluation.options.levels else None
    questions = [question for question in evaluation.questions if question.searched]
    for system in evaluation.systems[:1]:
        for unit in evaluation.options.levels:
            ids = [question.id for question in questions if evaluation.targets[system][question.id].missing[unit]]
            if ids:
                lines.append(
                    f"{len(ids)} of {len(questions)} questions: evidence is not indexed as a {unit}, and counts as not "
                    f"found: {', '.join(ids[:10])}{', …' if len(ids) > 10 else ''}"
                )
    measure = "R@5" if "R@5" in evaluation.options.measures else next(iter(evaluation.options.measures), None)
    if level is not None and measure is not None and len(questions) > 1:
        lines.extend(_power(evaluation, level, measure, questions))
    count = sum(question.purpose == "choosing" for question in evaluation.questions)
    if count:
        lines.append(
            f"{count} of {len(evaluation.questions)} questions were used for choosing: measure the choice by others"
        )
    drafts = sum(question.draft for question in evaluation.questions)
    if drafts:
        lines.append(f"{drafts} questions are drafts that nobody has accepted")
    for system, results in evaluation.results.items():
        failures = sum(result.reply is not None and result.reply.failure is not None for result in results.values())
        if failures:
            lines.append(f"{system}: the language model failed on {failures} questions; passages were quoted instead")
        if calls := sum(result.failed_calls for result in results.values()):
            lines.append(f"{system}: {calls} calls of the language model gave no answer; it was done without")
    return lines


def _power(evaluation: Evaluation, level: Level, measure: str, questions: Sequence[Question]) -> list[str]:
    """How small a difference between systems the set shows, by the spread of differences that is there."""
    of_systems = np.array([evaluation.values(system, level, measure, questions) for system in evaluation.systems])
    values = of_systems[~np.isnan(of_systems).any(axis=1)]  # of those that can be searched for the level
    if not len(values):
        return []
    if not np.ptp(values):
        missed_share = unseen_share(len(questions))
        statement = f"{level} {measure} is the same on all of {len(questions)} questions"
        return [f"the set is small: {statement}, which leaves room for {missed_share:.0%} of others where it is not"]
    # of one system: two that have nothing to do with each other differ by the spread of both
    spread = max((spread_of(values[0] - column) for column in values[1:]), default=math.sqrt(2) * spread_of(values[0]))
    visible, needed_count = visible_difference(len(questions), spread), questions_needed(SMALL_DIFFERENCE, spread)
    line = (
        f"{len(questions)} questions show differences of {visible:.2f} or more in {level} {measure}; "
        f"{SMALL_DIFFERENCE} needs about {needed_count:,}"
    )
    return [f"the set is small: {line}"] if visible > COARSE or len(questions) < FEW else [line]


def _costs(evaluation: Evaluation, system: str, questions: Sequence[Question]) -> dict[str, list[float]]:
    results = [evaluation.results[system][question.id] for question in questions]
    costs: dict[str, list[float]] = {}
    for result in results:
        for level, milliseconds in result.milliseconds.items():
            costs.setdefault(f"milliseconds {level}", []).append(milliseconds)
    if any(result.input_tokens or result.output_tokens for result in results):
        costs["input_tokens"] = [float(result.input_tokens) for result in results]
        costs["output_tokens"] = [float(result.output_tokens) for result in results]
        costs["cost_usd"] = [result.cost_usd for result in results]
    return costs


def _length(length: int) -> str:
    if length < SHORT_CHARS:
        return f"under {SHORT_CHARS:,} characters"
    return f"{LONG_CHARS:,} characters and more" if length >= LONG_CHARS else f"{SHORT_CHARS:,} to {LONG_CHARS:,}"
