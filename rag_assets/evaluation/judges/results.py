"""A run judged by a language model: its judgements as values beside all others, and what they say together.

What stays out: what judges are asked.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from rag_assets.contracts.errors import QueryError
from rag_assets.contracts.ports import LanguageModel
from rag_assets.evaluation.judges.calibration import JudgeCheck, LabelledPair, check_judge, order_and_repetition
from rag_assets.evaluation.judges.judgements import (
    CRITERIA,
    MEASURES,
    POINTS,
    REPETITIONS,
    SINGLE_JUDGES,
    TIE_POINTS,
    AnswerPair,
    Judge,
    Judgement,
    Preference,
    Progress,
    judge_preferences,
    no_progress,
)
from rag_assets.evaluation.report import TextTable, amount_text, cell, interval_text
from rag_assets.evaluation.runs import Evaluation, QuestionResult
from rag_assets.evaluation.statistics import Interval, bootstrap_interval, bootstrap_intervals, holm, wilcoxon

_LEAST_AGREEMENT = 0.8  # with labels; below it figures are marked as not to be believed
_MOST_BIAS = 10  # points of 100 by which the order of answers may count

Phase = Callable[[str], Progress]


@dataclass(frozen=True)
class JudgeOptions:
    """What a run is judged by."""

    judges: tuple[Judge, ...]
    labelled: Sequence[LabelledPair]  # pairs by which it is checked
    base: str  # system that the others are compared with
    repetitions: int = REPETITIONS  # how often each order of two answers is shown


@dataclass(frozen=True)
class Judgements:
    """What a judge said of a run."""

    model: str
    options: JudgeOptions
    checks: tuple[JudgeCheck, ...]  # whether it is to be believed, one for each thing that it was asked for
    # by what it was asked for, judgements of answers by system and question
    answers: Mapping[Judge, Mapping[tuple[str, str], Judgement]]
    # of each system over the base, by system and question; among `answers` as well
    preferences: Mapping[tuple[str, str], Preference]


@dataclass(frozen=True)
class PreferenceFigure:
    """How often a system is preferred to the base by a criterion."""

    system: str
    base: str  # what it is compared with
    criterion: str
    points: Interval  # its points a question, of 100
    p_wilcoxon: float  # of no preference, by the signed-rank test
    p_holm: float  # the same, by Holm for all systems and criteria together
    wins: int  # questions with more than 50 points
    losses: int  # with less


def judge_evaluation(
    model: LanguageModel, evaluation: Evaluation, options: JudgeOptions, phase: Phase = lambda _name: no_progress
) -> Judgements:
    """Judge the answers of a run, and check the judge.

    Answers to unanswerable questions are judged for faithfulness alone.

    Args:
        model: The judge.
        evaluation: The run; its answers were kept for judges (`RunOptions.judged`).
        options: What is judged.
        phase: Given the name of a piece of work, gives what is told its progress.

    Raises:
        QueryError: There is nothing to compare with.
        ModelError: The judge as a whole cannot be used. What it had said is stored.
    """
    if Judge.PREFERENCE in options.judges and all(system == options.base for system in evaluation.systems):
        raise QueryError(f"preference compares answers of two modes: there is only {options.base}")
    checks = tuple(check_judge(model, judge, options.labelled, phase(f"checking {judge}")) for judge in options.judges)
    all_answers = {
        (system, question.id): material
        for system in evaluation.systems
        for question in evaluation.questions
        if (material := evaluation.results[system][question.id].material) is not None
    }
    answerable = {question.id for question in evaluation.questions if question.answerable}
    expected_answers = {key: answer for key, answer in all_answers.items() if key[1] in answerable}
    actual_answers = {key: answer for key, answer in all_answers.items() if answer.answered}
    answers: dict[Judge, Mapping[tuple[str, str], Judgement]] = {}
    preferences: dict[tuple[str, str], Preference] = {}
    for judge in options.judges:
        progress = phase(f"judging {judge}")
        if judge is Judge.PREFERENCE:
            pairs = {
                (system, question): AnswerPair(answer, expected_answers[options.base, question])
                for (system, question), answer in expected_answers.items()
                if system != options.base
            }
            pair_preferences = judge_preferences(model, [*pairs.values()], options.repetitions, progress)
            preferences = dict(zip(pairs, pair_preferences, strict=True))
            answers[judge] = {key: preference.judgement() for key, preference in preferences.items()}
        else:
            judged_answers = actual_answers if judge is Judge.FAITHFULNESS else expected_answers
            judgements = SINGLE_JUDGES[judge](model, [*judged_answers.values()], progress, None)
            answers[judge] = dict(zip(judged_answers, judgements, strict=True))
    return Judgements(model.name, options, checks, answers, preferences)


def with_judgements(evaluation: Evaluation, judgements: Judgements) -> Evaluation:
    """The run with the judgements among its values, each judge as a level of its own, and reasons for people."""
    judges = [judge for judge in Judge if judge in judgements.options.judges]
    results: dict[str, dict[str, QuestionResult]] = {}
    for system, of_system in evaluation.results.items():
        results[system] = {}
        for question, result in of_system.items():
            values, reasons = dict(result.values), {}
            for judge in judges:
                judgement = judgements.answers[judge].get((system, question))
                if judgement and (judgement.values or judge is not Judge.CLAIMS):  # claims that did not come are none
                    values[judge.value] = dict(judgement.values)
                    reasons[judge.value] = judgement.reasons
            results[system][question] = replace(result, values=values, reasons=reasons)
    return replace(evaluation, results=results, judged={judge.value: MEASURES[judge] for judge in judges})


def preference_figures(judgements: Judgements) -> list[PreferenceFigure]:
    """Each system against the base, by criterion; Holm takes all as one family."""
    points: dict[tuple[str, str], list[float]] = {}
    for system in dict.fromkeys(system for system, _ in judgements.preferences):
        of_system = [preference for key, preference in judgements.preferences.items() if key[0] == system]
        for criterion in CRITERIA:
            values = [preference.points(criterion) for preference in of_system]
            if present := [value for value in values if not math.isnan(value)]:
                points[system, criterion] = present
    p_values = [wilcoxon(values, [TIE_POINTS] * len(values)) for values in points.values()]
    return [
        PreferenceFigure(
            system,
            judgements.options.base,
            criterion,
            bootstrap_intervals([values], bounds=[POINTS[1]])[0],
            p_value,
            p_holm,
            sum(value > TIE_POINTS for value in values),
            sum(value < TIE_POINTS for value in values),
        )
        for ((system, criterion), values), p_value, p_holm in zip(points.items(), p_values, holm(p_values), strict=True)
    ]


def claims_agreement(judgements: Judgements) -> dict[tuple[str, str], list[float]]:
    """Whether claims prefer the answer that the pairwise judge prefers: 1 or 0 a pair in which neither sees a tie.

    Returns:
        By criterion and what is counted, as in `claims` or `clusters 0.5`; empty where not both judges were asked.
    """
    claims = judgements.answers.get(Judge.CLAIMS, {})
    agreements: dict[tuple[str, str], list[float]] = defaultdict(list)
    for (system, question), preference in judgements.preferences.items() if claims else ():
        first, second = claims[system, question].values, claims[judgements.options.base, question].values
        for measure in MEASURES[Judge.CLAIMS] if first and second else ():
            criterion = "comprehensiveness" if measure == "claims" else "diversity"
            winner = preference.majority(criterion)
            if winner and first[measure] != second[measure]:
                agreements[criterion, measure].append(float((winner == 1) == (first[measure] > second[measure])))
    return agreements


def judge_tables(judgements: Judgements) -> Iterator[TextTable]:
    """What the pairwise judge prefers, whether claims agree, and whether the judge is to be believed."""
    if rows := preference_figures(judgements):
        columns = ("mode", "criterion", "points of 100", "p Wilcoxon", "p Holm", "better / worse", "questions")
        cells = tuple(
            (
                *(row.system, row.criterion, amount_text(row.points)),
                *(f"{row.p_wilcoxon:.3f}", f"{row.p_holm:.3f}"),
                *(f"{row.wins} / {row.losses}", str(row.points.count)),
            )
            for row in rows
        )
        yield TextTable(f"Preferred to {judgements.options.base}", columns, cells)
    if agreements := claims_agreement(judgements):
        pairs = tuple(
            (*key, interval_text(bootstrap_interval(values)), str(len(values))) for key, values in agreements.items()
        )
        yield TextTable("Claims prefer what the judge prefers", ("criterion", "counted", "share", "pairs"), pairs)
    heads = ("judge", "agrees with labels", "points of what it is shown first", "says the same again", "missing")
    checks = tuple(
        (
            name,
            cell(check.agreement, interval_text),
            cell(check.shown_first, amount_text),
            cell(check.consistency, interval_text),
            _causes(check.missing),
        )
        for name, check in _checks(judgements)
    )
    yield TextTable(f"Is {judgements.model} to be believed?", heads, checks)


def _checks(judgements: Judgements) -> Iterator[tuple[str, JudgeCheck]]:
    """The checks by labelled pairs, and what the run itself tells of the judge."""
    for check in judgements.checks:
        yield check.judge.value, check
        missing = _missing(judgements, check.judge)
        shown_first = consistency = None
        if check.judge is Judge.PREFERENCE:
            shown_first, consistency = order_and_repetition([*judgements.preferences.values()])
        if missing or shown_first is not None:
            yield f"{check.judge}, this run", JudgeCheck(check.judge, None, shown_first, consistency, dict(missing))


def _missing(judgements: Judgements, judge: Judge) -> Counter[str]:
    return Counter(cause for judgement in judgements.answers[judge].values() for cause in judgement.missing)


def judge_warnings(judgements: Judgements) -> list[str]:
    """What a reader of judged figures has to know, in one line each: who judged, and whether to believe it."""
    lines = []
    for check in judgements.checks:
        share = check.agreement.mean if check.agreement else 0.0
        agrees = f"agrees with {share:.0%} of the labels" if check.agreement else "judged none of the labelled pairs"
        doubt = "" if share >= _LEAST_AGREEMENT else ": do not rely on its figures"
        lines.append(f"{check.judge} by {judgements.model}, which {agrees}{doubt}")
        if check.shown_first is not None and abs(check.shown_first.mean - TIE_POINTS) > _MOST_BIAS:
            lines.append(
                f"{check.judge}: the answer shown first gets {check.shown_first.mean:.0f} of 100 points on average; "
                "showing both orders evens this out, but understates differences"
            )
        if missing := _missing(judgements, check.judge):
            causes = _causes(missing)
            lines.append(f"{check.judge}: {missing.total()} judgements are missing and count as none: {causes}")
    return lines


def judge_record(judgements: Judgements) -> dict[str, Any]:
    """Checks, preferences and agreement for JSON; values and reasons stand with the questions."""
    return {
        "model": judgements.model,
        "checks": [{"name": name, **asdict(check)} for name, check in _checks(judgements)],
        "preferences": [asdict(figure) for figure in preference_figures(judgements)],
        "claims_agreement": [
            {"criterion": criterion, "counted": measure, "share": asdict(bootstrap_interval(values))}
            for (criterion, measure), values in claims_agreement(judgements).items()
        ],
    }


def _causes(missing: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {cause}" for cause, count in sorted(missing.items()))
