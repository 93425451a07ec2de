"""Whether a judge is to be believed: what it says of labelled pairs of answers, easy and hard ones.

Every pair is judged twice, the pairwise judge in both orders. Judgements are stored as all others, so that a judge is
checked once for all runs. What stays out: what the judges are asked.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter, ValidationError

from rag_assets.contracts.errors import QueryError
from rag_assets.contracts.ports import LanguageModel
from rag_assets.evaluation.judges.claims import judge_claims
from rag_assets.evaluation.judges.faithfulness import judge_faithfulness
from rag_assets.evaluation.judges.grading import METRICS, judge_grades
from rag_assets.evaluation.judges.material import CitedSentence, JudgedAnswer, Progress, no_progress
from rag_assets.evaluation.judges.preference import CRITERIA, POINTS, AnswerPair, Preference, judge_preferences
from rag_assets.evaluation.statistics import Interval, bootstrap_intervals

_TWICE = 2
_SEEDS = (None, 1)
_SAME_GRADE = 10  # grades that are no further apart say the same
_LABELLED = "labelled_pairs.jsonl"

Winner = Literal[0, 1, 2]


class Judge(StrEnum):
    """What a judge is asked for."""

    GRADING = "grading"
    PREFERENCE = "preference"
    CLAIMS = "claims"
    FAITHFULNESS = "faithfulness"


@dataclass(frozen=True)
class LabelledPair:
    """Two answers to a question, with what is right to say of them.

    Attributes:
        id: Its name.
        question: What was asked.
        answers: Both answers.
        better: By criterion of the pairwise judge or metric of the grades: 1 where the first answer is better, 2 where
            the second is, 0 where neither is.
        passages: What the answers cite.
        second_passages: What the second one cites, where that is something else.
        supported: Whether each answer follows from what it cites.
        more_claims: Which answer states more facts; 0 where both state as many.
    """

    id: str
    question: str
    answers: tuple[str, str]
    better: Mapping[Annotated[str, Field(pattern=f"^({'|'.join((*CRITERIA, *METRICS))})$")], Winner] = field(
        default_factory=dict
    )
    passages: tuple[str, ...] = ()
    second_passages: tuple[str, ...] | None = None
    supported: tuple[bool, bool] | None = None
    more_claims: Winner | None = None

    def judged(self) -> tuple[JudgedAnswer, JudgedAnswer]:
        """Both answers as judges read them, each one sentence that cites all of its passages."""
        first, second = (
            JudgedAnswer(self.question, text, True, passages, (CitedSentence(text, tuple(range(len(passages)))),))
            for text, passages in zip(
                self.answers,
                (self.passages, self.passages if self.second_passages is None else self.second_passages),
                strict=True,
            )
        )
        return first, second


@dataclass(frozen=True)
class JudgeCheck:
    """How far a judge is to be believed.

    Attributes:
        judge: What it was asked for.
        agreement: Share of the labels that it agrees with; None where it said nothing of any.
        shown_first: Points of the answer that it was shown first, of 100: 50 where the order is nothing to it; None for
            judges that read one answer at a time.
        consistency: Share of judgements that are the same the second time; grades as far as they differ by 10 at most.
        missing: Judgements that did not come, by outcome.
    """

    judge: Judge
    agreement: Interval | None
    shown_first: Interval | None
    consistency: Interval | None
    missing: Mapping[str, int]


_PAIR: TypeAdapter[LabelledPair] = TypeAdapter(LabelledPair)


def labelled_pairs(path: Path | None = None) -> list[LabelledPair]:
    """Labelled pairs, as JSON Lines.

    Args:
        path: The file; None for the pairs that come with the package.

    Raises:
        QueryError: A line is no such pair; the message names it.
    """
    source = files("rag_assets.evaluation.judges") / _LABELLED if path is None else path
    pairs = []
    try:
        lines = source.read_text("utf-8").splitlines()
    except (OSError, UnicodeError) as error:
        raise QueryError(f"{source}: cannot be read: {error}") from error
    for number, line in enumerate(lines, start=1):
        try:
            pairs.append(_PAIR.validate_json(line))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = ".".join(map(str, first["loc"])) or "pair"
            raise QueryError(f"{source}, line {number}: {place}: {first['msg']}") from error
    return pairs


def check_judge(
    model: LanguageModel, judge: Judge, pairs: Sequence[LabelledPair], progress: Progress = no_progress
) -> JudgeCheck:
    """Compare what a judge says with the labels.

    Args:
        model: The judge.
        judge: What it is asked for.
        pairs: The pairs; those without a label for this judge are left out.
        progress: Told the number of calls that came back.

    Raises:
        ModelError: The model as a whole cannot be used.
    """
    if judge is Judge.PREFERENCE:
        return _check_preference(model, pairs, progress)
    chosen = [each for each in pairs if _labels(judge, each)]
    answers = [answer for pair in chosen for answer in pair.judged()]
    runs, lost = [], Counter[str]()
    for seed in _SEEDS:
        values, causes = _ASKED[judge](model, answers, progress, seed)
        runs.append(values)
        lost.update(causes)
    tolerance = _SAME_GRADE if judge is Judge.GRADING else 0
    same = [
        float(abs(value - again[name]) <= tolerance)
        for once, again in zip(*runs, strict=True)
        for name, value in once.items()
        if name in again
    ]
    agreed = []
    for place, pair in enumerate(chosen):
        first, second = runs[0][2 * place], runs[0][2 * place + 1]
        for name, label in _labels(judge, pair).items():
            if name in first and name in second:
                agreed.extend(_agreements(first[name], second[name], label, tolerance))
    return JudgeCheck(judge, mean_interval(agreed), None, mean_interval(same), dict(lost))


def mean_interval(values: Sequence[float], bound: float = 1.0) -> Interval | None:
    """The mean of values with its interval; None where all are nan.

    Args:
        values: Values.
        bound: The largest possible one.
    """
    return None if all(map(math.isnan, values)) else bootstrap_intervals([values], bounds=[bound])[0]


Label = Winner | tuple[bool, bool]
Values = list[dict[str, float]]


def _agreements(first: float, second: float, label: Label, tolerance: float) -> list[float]:
    """Whether values of two answers are as they are labelled: of the pair, or of each answer."""
    if isinstance(label, tuple):
        return [float(first == label[0]), float(second == label[1])]
    winner = 0 if abs(first - second) <= tolerance else 1 if first > second else 2
    return [float(winner == label)]


def _labels(judge: Judge, pair: LabelledPair) -> dict[str, Label]:
    """Labels for a judge that reads one answer at a time, by what they say something of."""
    match judge:
        case Judge.GRADING:
            return {name: label for name, label in pair.better.items() if name in METRICS}
        case Judge.CLAIMS:
            return {} if pair.more_claims is None else {"claims": pair.more_claims}
        case _:
            return {} if pair.supported is None else {"supported": pair.supported}


def _check_preference(model: LanguageModel, pairs: Sequence[LabelledPair], progress: Progress) -> JudgeCheck:
    labels = [{name: each.better[name] for name in CRITERIA if name in each.better} for each in pairs]
    asked = [AnswerPair(*pair.judged(), tuple(names)) for pair, names in zip(pairs, labels, strict=True) if names]
    preferences = judge_preferences(model, asked, _TWICE, progress)
    agreed = [
        float(preference.majority(name) == label)
        for preference, wanted in zip(preferences, filter(None, labels), strict=True)
        for name, label in wanted.items()
        if not math.isnan(preference.points(name))
    ]
    lost = Counter(cause for each in preferences for cause in each.missing)
    shown_first, consistency = order_and_repetition(preferences)
    return JudgeCheck(Judge.PREFERENCE, mean_interval(agreed), shown_first, consistency, dict(lost))


def order_and_repetition(preferences: Sequence[Preference]) -> tuple[Interval | None, Interval | None]:
    """Points of the answer that was shown first, and share of repetitions that say the same; see `JudgeCheck`."""
    return (
        mean_interval([each.shown_first() for each in preferences], POINTS[1]),
        mean_interval([each.consistency() for each in preferences]),
    )


def _grades(
    model: LanguageModel, answers: Sequence[JudgedAnswer], progress: Progress, seed: int | None
) -> tuple[Values, list[str]]:
    results = judge_grades(model, answers, progress, seed)
    values = [{name: float(each.grade) for name, each in result.grades.items()} for result in results]
    return values, [cause for each in results for cause in each.missing]


def _claims(
    model: LanguageModel, answers: Sequence[JudgedAnswer], progress: Progress, seed: int | None
) -> tuple[Values, list[str]]:
    results = judge_claims(model, answers, progress, seed)
    values: Values = [{} if each.claims is None else {"claims": float(len(each.claims))} for each in results]
    return values, [cause for each in results for cause in each.missing]


def _support(
    model: LanguageModel, answers: Sequence[JudgedAnswer], progress: Progress, seed: int | None
) -> tuple[Values, list[str]]:
    results = judge_faithfulness(model, answers, progress, seed)
    values: Values = [{} if math.isnan(each.faithful) else {"supported": each.faithful} for each in results]
    return values, [cause for each in results for cause in each.missing]


_ASKED: Mapping[
    Judge,
    Callable[[LanguageModel, Sequence[JudgedAnswer], Progress, int | None], tuple[Values, list[str]]],
] = {Judge.GRADING: _grades, Judge.CLAIMS: _claims, Judge.FAITHFULNESS: _support}
