"""Whether a judge is to be believed: what it says of labelled pairs of answers, easy and hard ones.

Every pair is judged twice, the pairwise judge in both orders. Judgements are stored as all others, so that a judge is
checked once for all runs. What stays out: what the judges are asked.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from rag_assets.contracts.errors import QueryError
from rag_assets.contracts.ports import LanguageModel
from rag_assets.evaluation.judges.judgements import (
    CRITERIA,
    METRICS,
    POINTS,
    SINGLE_JUDGES,
    AnswerPair,
    CitedSentence,
    Judge,
    JudgedAnswer,
    Preference,
    Progress,
    judge_preferences,
    no_progress,
)
from rag_assets.evaluation.questions import json_lines, validated
from rag_assets.evaluation.statistics import Interval, bootstrap_intervals

_TWICE = 2
_SEEDS = (None, 1)
_SAME_GRADE = 10  # grades that are no further apart say the same
_LABELLED = "labelled_pairs.jsonl"
_CHECKED: Mapping[Judge, tuple[str, ...]] = {  # what labels are of, for judges that read one answer at a time
    Judge.GRADING: METRICS,
    Judge.CLAIMS: ("claims",),
    Judge.FAITHFULNESS: ("faithful",),
}

Winner = Literal[0, 1, 2]
Label = Winner | tuple[bool, bool]


@dataclass(frozen=True)
class LabelledPair:
    """Two answers to a question, with what is right to say of them."""

    id: str
    question: str
    answers: tuple[str, str]
    # by criterion of the pairwise judge or metric of the grades: 1 where the first answer is better, 2 where the second
    # is, 0 where neither is
    better: Mapping[Annotated[str, Field(pattern=f"^({'|'.join((*CRITERIA, *METRICS))})$")], Winner] = field(
        default_factory=dict
    )
    passages: tuple[str, ...] = ()  # what the answers cite
    second_passages: tuple[str, ...] | None = None  # what the second one cites, where that is something else
    supported: tuple[bool, bool] | None = None  # whether each answer follows from what it cites
    more_claims: Winner | None = None  # which answer states more facts; 0 where both state as many

    def judged(self) -> tuple[JudgedAnswer, JudgedAnswer]:
        """Both answers as judges read them, each one sentence that cites all of its passages."""
        second_passages = self.passages if self.second_passages is None else self.second_passages
        first, second = (
            JudgedAnswer(self.question, text, True, passages, (CitedSentence(text, tuple(range(len(passages)))),))
            for text, passages in zip(self.answers, (self.passages, second_passages), strict=True)
        )
        return first, second


@dataclass(frozen=True)
class JudgeCheck:
    """How far a judge is to be believed."""

    judge: Judge  # what it was asked for
    agreement: Interval | None  # share of the labels that it agrees with; None where it said nothing of any
    # points of the answer that it was shown first, of 100: 50 where the order is nothing to it; None for judges that
    # read one answer at a time
    shown_first: Interval | None
    # share of judgements that are the same the second time; grades as far as they differ by 10 at most
    consistency: Interval | None
    missing: Mapping[str, int]  # judgements that did not come, by outcome


_PAIR: TypeAdapter[LabelledPair] = TypeAdapter(LabelledPair)


def labelled_pairs(path: Path | None = None) -> list[LabelledPair]:
    """Labelled pairs, as JSON Lines.

    Args:
        path: The file; None for the pairs that come with the package.

    Raises:
        QueryError: A line is no such pair; the message names it.
    """
    source = Path(str(files("rag_assets.evaluation.judges") / _LABELLED)) if path is None else path
    try:
        return [validated(_PAIR, record, source, number, "pair") for number, record in json_lines(source)]
    except (OSError, UnicodeError) as error:
        raise QueryError(f"{source}: cannot be read: {error}") from error


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
    labels = [_labels(judge, pair) for pair in pairs]
    named_pairs = [(pair, names) for pair, names in zip(pairs, labels, strict=True) if names]
    if judge is Judge.PREFERENCE:
        return _check_preference(model, named_pairs, progress)
    answers = [answer for pair, _ in named_pairs for answer in pair.judged()]
    first, second = (SINGLE_JUDGES[judge](model, answers, progress, seed) for seed in _SEEDS)
    tolerance = _SAME_GRADE if judge is Judge.GRADING else 0
    matches = [
        float(abs(difference) <= tolerance)
        for once, again in zip(first, second, strict=True)
        for name, value in once.values.items()
        if name in _CHECKED[judge] and not math.isnan(difference := value - again.values.get(name, math.nan))
    ]
    agreements = []
    for place, (_, names) in enumerate(named_pairs):
        left, right = first[2 * place].values, first[2 * place + 1].values
        for name, label in names.items():
            if not math.isnan(difference := left.get(name, math.nan) - right.get(name, math.nan)):
                if isinstance(label, tuple):
                    agreements += [float(left[name] == label[0]), float(right[name] == label[1])]
                else:
                    winner = 0 if abs(difference) <= tolerance else 1 if difference > 0 else 2
                    agreements.append(float(winner == label))
    missing = Counter(cause for judgement in (*first, *second) for cause in judgement.missing)
    return JudgeCheck(judge, _mean_interval(agreements), None, _mean_interval(matches), dict(missing))


def _labels(judge: Judge, pair: LabelledPair) -> dict[str, Label]:
    """Labels for a judge, by the measure that they say something of: which answer is better, or how each is."""
    match judge:
        case Judge.PREFERENCE:
            return {name: pair.better[name] for name in CRITERIA if name in pair.better}
        case Judge.GRADING:
            return {name: label for name, label in pair.better.items() if name in METRICS}
        case Judge.CLAIMS:
            return {} if pair.more_claims is None else {"claims": pair.more_claims}
        case Judge.FAITHFULNESS:
            return {} if pair.supported is None else {"faithful": pair.supported}


def _check_preference(
    model: LanguageModel, named_pairs: Sequence[tuple[LabelledPair, Mapping[str, Label]]], progress: Progress
) -> JudgeCheck:
    pairs = [AnswerPair(*pair.judged(), tuple(names)) for pair, names in named_pairs]
    preferences = judge_preferences(model, pairs, _TWICE, progress)
    agreements = [
        float(preference.majority(name) == label)
        for preference, (_, names) in zip(preferences, named_pairs, strict=True)
        for name, label in names.items()
        if not math.isnan(preference.points(name))
    ]
    missing = Counter(cause for preference in preferences for cause in preference.missing)
    shown_first, consistency = order_and_repetition(preferences)
    return JudgeCheck(Judge.PREFERENCE, _mean_interval(agreements), shown_first, consistency, dict(missing))


def order_and_repetition(preferences: Sequence[Preference]) -> tuple[Interval | None, Interval | None]:
    """Points of the answer that was shown first, and share of repetitions that say the same; see `JudgeCheck`."""
    return (
        _mean_interval([preference.shown_first() for preference in preferences], POINTS[1]),
        _mean_interval([preference.consistency() for preference in preferences]),
    )


def _mean_interval(values: Sequence[float], bound: float = 1.0) -> Interval | None:
    """The mean of values up to a bound, with its interval; None where all are nan."""
    return None if all(map(math.isnan, values)) else bootstrap_intervals([values], bounds=[bound])[0]
