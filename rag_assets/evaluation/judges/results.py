"""A run judged by a language model: its judgements as values beside all others, and what they say together.

What stays out: what judges are asked, and how tables are printed.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from rag_assets.contracts.errors import QueryError
from rag_assets.contracts.ports import LanguageModel
from rag_assets.evaluation.judges.calibration import Judge, JudgeCheck, LabelledPair, check_judge, order_and_repetition
from rag_assets.evaluation.judges.claims import THRESHOLDS, Claims, agreement, clusters_name, judge_claims
from rag_assets.evaluation.judges.faithfulness import Faithfulness, judge_faithfulness
from rag_assets.evaluation.judges.grading import METRICS, Grades, judge_grades
from rag_assets.evaluation.judges.material import Progress, no_progress
from rag_assets.evaluation.judges.preference import (
    CRITERIA,
    POINTS,
    REPETITIONS,
    TIE_POINTS,
    AnswerPair,
    Preference,
    judge_preferences,
)
from rag_assets.evaluation.runs import Evaluation, QuestionResult
from rag_assets.evaluation.statistics import Interval, bootstrap_interval, bootstrap_intervals, holm, wilcoxon
from rag_assets.evaluation.tables import TextTable, shown, shown_amount

MEASURES: Mapping[Judge, tuple[str, ...]] = {
    Judge.GRADING: METRICS,
    Judge.PREFERENCE: CRITERIA,
    Judge.CLAIMS: ("claims", *map(clusters_name, THRESHOLDS)),
    Judge.FAITHFULNESS: ("faithful", "cited"),
}
_LEAST_AGREEMENT = 0.8  # with labels; below it figures are marked as not to be believed
_MOST_BIAS = 10  # points of 100 by which the order of answers may count

Phase = Callable[[str], Progress]


@dataclass(frozen=True)
class JudgeOptions:
    """What a run is judged by.

    Attributes:
        judges: What the judge is asked for.
        labelled: Pairs by which it is checked.
        base: System that the others are compared with.
        repetitions: How often each order of two answers is shown.
    """

    judges: tuple[Judge, ...]
    labelled: Sequence[LabelledPair]
    base: str
    repetitions: int = REPETITIONS


@dataclass(frozen=True)
class Judgements:
    """What a judge said of a run.

    Attributes:
        model: Name of the judge.
        options: What it was asked for.
        checks: Whether it is to be believed, one for each thing that it was asked for.
        grades: By system and question.
        preferences: Of each system over the base, by question.
        claims: By system and question.
        faithfulness: By system and question.
    """

    model: str
    options: JudgeOptions
    checks: tuple[JudgeCheck, ...] = ()
    grades: Mapping[str, Mapping[str, Grades]] = field(default_factory=dict)
    preferences: Mapping[str, Mapping[str, Preference]] = field(default_factory=dict)
    claims: Mapping[str, Mapping[str, Claims]] = field(default_factory=dict)
    faithfulness: Mapping[str, Mapping[str, Faithfulness]] = field(default_factory=dict)


@dataclass(frozen=True)
class PreferenceFigure:
    """How often a system is preferred to the base by a criterion.

    Attributes:
        system: The system.
        base: What it is compared with.
        criterion: What by.
        points: Its points a question, of 100.
        p_wilcoxon: Of no preference, by the signed-rank test.
        p_holm: The same, by Holm for all systems and criteria together.
        wins: Questions with more than 50 points.
        losses: With less.
    """

    system: str
    base: str
    criterion: str
    points: Interval
    p_wilcoxon: float
    p_holm: float
    wins: int
    losses: int


@dataclass(frozen=True)
class ClaimsAgreement:
    """How often the claims prefer the answer that the pairwise judge prefers.

    Attributes:
        criterion: Of the pairwise judge.
        counted: What is counted, as in `claims`.
        share: Share of the pairs in which neither sees a tie.
    """

    criterion: str
    counted: str
    share: Interval


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
    others = [each for each in evaluation.systems if each != options.base]
    if Judge.PREFERENCE in options.judges and not others:
        raise QueryError(f"preference compares answers of two modes: there is only {options.base}")
    checks = tuple(check_judge(model, each, options.labelled, phase(f"checking {each}")) for each in options.judges)
    answers = {
        (system, question.id): material
        for system in evaluation.systems
        for question in evaluation.questions
        if (material := evaluation.results[system][question.id].material) is not None
    }
    answerable = {question.id for question in evaluation.questions if question.answerable}
    expected = {key: answer for key, answer in answers.items() if key[1] in answerable}
    results: dict[str, Any] = {}
    for judge in options.judges:
        progress = phase(f"judging {judge}")
        match judge:
            case Judge.GRADING:
                results["grades"] = _by_system(expected, judge_grades(model, [*expected.values()], progress))
            case Judge.CLAIMS:
                results["claims"] = _by_system(expected, judge_claims(model, [*expected.values()], progress))
            case Judge.FAITHFULNESS:
                given = {key: answer for key, answer in answers.items() if answer.answered}
                results["faithfulness"] = _by_system(given, judge_faithfulness(model, [*given.values()], progress))
            case Judge.PREFERENCE:
                pairs = {
                    key: AnswerPair(answer, expected[options.base, key[1]])
                    for key, answer in expected.items()
                    if key[0] in others
                }
                compared = judge_preferences(model, [*pairs.values()], options.repetitions, progress)
                results["preferences"] = _by_system(pairs, compared)
    return Judgements(model.name, options, checks, **results)


def _by_system(keys: Mapping[tuple[str, str], object], results: Sequence[Any]) -> dict[str, dict[str, Any]]:
    named: dict[str, dict[str, Any]] = {}
    for (system, question), result in zip(keys, results, strict=True):
        named.setdefault(system, {})[question] = result
    return named


def with_judgements(evaluation: Evaluation, judgements: Judgements) -> Evaluation:
    """The run with the judgements among its values, each judge as a level of its own, and reasons for people."""
    results = {
        system: {
            question: _with_judgements(result, dict(_values(judgements, system, question)))
            for question, result in of_system.items()
        }
        for system, of_system in evaluation.results.items()
    }
    judged = {judge.value: MEASURES[judge] for judge in Judge if judge in judgements.options.judges}
    return replace(evaluation, results=results, judged=judged)


def _with_judgements(
    result: QuestionResult, judged: Mapping[str, tuple[Mapping[str, float], tuple[str, ...]]]
) -> QuestionResult:
    values = {**result.values, **{judge: dict(values) for judge, (values, _) in judged.items()}}
    return replace(result, values=values, reasons={judge: reasons for judge, (_, reasons) in judged.items()})


def _values(
    judgements: Judgements, system: str, question: str
) -> Iterator[tuple[str, tuple[Mapping[str, float], tuple[str, ...]]]]:
    """By judge, values and reasons of one answer."""
    if grades := judgements.grades.get(system, {}).get(question):
        reasons = tuple(f"{name} {each.grade}: {each.justification}" for name, each in grades.grades.items())
        yield Judge.GRADING, ({name: float(each.grade) for name, each in grades.grades.items()}, reasons)
    if preference := judgements.preferences.get(system, {}).get(question):
        reasons = tuple(
            f"{each.criterion}, {POINTS[each.winner]:.0f} points{', shown second' if each.swapped else ''}: "
            f"{each.reason}"
            for each in preference.verdicts
        )
        yield Judge.PREFERENCE, ({name: preference.points(name) for name in CRITERIA}, reasons)
    claims = judgements.claims.get(system, {}).get(question)
    if claims and claims.claims is not None:
        clusters = {clusters_name(each): float(count) for each, count in claims.clusters().items()}
        yield Judge.CLAIMS, ({"claims": float(len(claims.claims)), **clusters}, claims.claims)
    if faithfulness := judgements.faithfulness.get(system, {}).get(question):
        reasons = tuple(
            f"{'supported' if each.supported else 'not supported'}: {each.text} ({each.reason})"
            for each in faithfulness.sentences
            if each.supported is not None
        )
        yield Judge.FAITHFULNESS, ({"faithful": faithfulness.faithful, "cited": faithfulness.cited}, reasons)


def preference_figures(judgements: Judgements) -> list[PreferenceFigure]:
    """Each system against the base, by criterion; Holm takes all as one family."""
    points: dict[tuple[str, str], list[float]] = {}
    for system, preferences in judgements.preferences.items():
        for criterion in CRITERIA:
            values = [each.points(criterion) for each in preferences.values()]
            if present := [value for value in values if not math.isnan(value)]:
                points[system, criterion] = present
    p_values = [wilcoxon(each, [TIE_POINTS] * len(each)) for each in points.values()]
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


def claims_agreement(judgements: Judgements) -> list[ClaimsAgreement]:
    """Claims and clusters against the pairwise judge; empty where not both were asked for."""
    base = judgements.claims.get(judgements.options.base, {})
    compared = [
        (preference, judgements.claims[system][question], base[question])
        for system, preferences in judgements.preferences.items()
        for question, preference in preferences.items()
        if system in judgements.claims
    ]
    if not compared:
        return []
    preferences, first, second = zip(*compared, strict=True)
    return [
        ClaimsAgreement(criterion, counted, bootstrap_interval(values))
        for (criterion, counted), values in agreement(preferences, first, second).items()
    ]


def judge_tables(judgements: Judgements) -> Iterator[TextTable]:
    """What the pairwise judge prefers, whether claims agree, and whether the judge is to be believed."""
    if rows := preference_figures(judgements):
        columns = ("mode", "criterion", "points of 100", "p Wilcoxon", "p Holm", "better / worse", "questions")
        cells = tuple(
            (
                *(each.system, each.criterion, shown_amount(each.points)),
                *(f"{each.p_wilcoxon:.3f}", f"{each.p_holm:.3f}"),
                *(f"{each.wins} / {each.losses}", str(each.points.count)),
            )
            for each in rows
        )
        yield TextTable(f"Preferred to {judgements.options.base}", columns, cells)
    if same := claims_agreement(judgements):
        names = ("criterion", "counted", "share", "pairs")
        pairs = ((each.criterion, each.counted, shown(each.share), str(each.share.count)) for each in same)
        yield TextTable("Claims prefer what the judge prefers", names, tuple(pairs))
    heads = ("judge", "agrees with labels", "points of what it is shown first", "says the same again", "missing")
    checks = tuple(
        (
            name,
            _cell(check.agreement, shown),
            _cell(check.shown_first, shown_amount),
            _cell(check.consistency, shown),
            _causes(check.missing),
        )
        for name, check in _checks(judgements)
    )
    yield TextTable(f"Is {judgements.model} to be believed?", heads, checks)


def _checks(judgements: Judgements) -> Iterator[tuple[str, JudgeCheck]]:
    """The checks by labelled pairs, and what the run itself tells of the judge."""
    for check in judgements.checks:
        yield check.judge.value, check
        lost = Counter(_missing(judgements, check.judge))
        shown_first = consistency = None
        if check.judge is Judge.PREFERENCE:
            asked = [each for of_system in judgements.preferences.values() for each in of_system.values()]
            shown_first, consistency = order_and_repetition(asked)
        if lost or shown_first is not None:
            yield f"{check.judge}, this run", JudgeCheck(check.judge, None, shown_first, consistency, dict(lost))


def _missing(judgements: Judgements, judge: Judge) -> list[str]:
    by_judge: Mapping[Judge, Mapping[str, Mapping[str, Any]]] = {
        Judge.GRADING: judgements.grades,
        Judge.PREFERENCE: judgements.preferences,
        Judge.CLAIMS: judgements.claims,
        Judge.FAITHFULNESS: judgements.faithfulness,
    }
    return [cause for results in by_judge[judge].values() for each in results.values() for cause in each.missing]


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
                f"{check.judge}: the answer shown first gets {check.shown_first.mean:.0f} of 100 points whatever it "
                "says; both orders are shown, so that the points are fair, but they differ less than the answers"
            )
        if lost := Counter(_missing(judgements, check.judge)):
            lines.append(f"{check.judge}: {lost.total()} judgements are missing and count as none: {_causes(lost)}")
    return lines


def judge_record(judgements: Judgements) -> dict[str, Any]:
    """Checks, preferences and agreement for JSON; values and reasons stand with the questions."""
    return {
        "model": judgements.model,
        "checks": [{"name": name, **asdict(check)} for name, check in _checks(judgements)],
        "preferences": [asdict(each) for each in preference_figures(judgements)],
        "claims_agreement": [asdict(each) for each in claims_agreement(judgements)],
    }


def _causes(missing: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {cause}" for cause, count in sorted(missing.items()))


def _cell(interval: Interval | None, form: Callable[[Interval], str]) -> str:
    return "" if interval is None else form(interval)
