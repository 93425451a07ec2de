"""Which of two answers to a question is better by a criterion, shown in both orders, several times.

Source: D. Edge and others, From local to global: a GraphRAG approach to query-focused summarization, 2024, section 3.3
and appendix G: 100 points to the winner, 50 for a tie, 0 to the loser, mean over five repetitions. Here each repetition
shows both orders, so that a judge who prefers what stands first prefers neither. Answers of the same words are a tie
that nobody is asked for.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from rag_assets.contracts.generation import JsonValue, Request
from rag_assets.contracts.ports import LanguageModel
from rag_assets.evaluation.judges.material import (
    REASON,
    REASON_TOKENS,
    JudgedAnswer,
    Progress,
    answer_tokens,
    judge_request,
    judged,
    missing,
    no_progress,
    room_tokens,
    value_of,
)
from rag_assets.text.plain import one_line
from rag_assets.text.tokens import cut_to_tokens

STEP = "judge_preference"
CRITERIA = ("comprehensiveness", "diversity", "empowerment", "directness")
REPETITIONS = 5
POINTS = {1: 100.0, 0: 50.0, 2: 0.0}  # of the first answer, by winner
TIE_POINTS = POINTS[0]
_WINNER: JsonValue = {"type": "integer", "enum": [0, 1, 2]}


@dataclass(frozen=True)
class AnswerPair:
    """Two answers to one question.

    Attributes:
        first: One.
        second: The other.
        criteria: What they are compared by.
    """

    first: JudgedAnswer
    second: JudgedAnswer
    criteria: tuple[str, ...] = CRITERIA

    @property
    def is_same(self) -> bool:
        """Whether both say the same words."""
        return self.first.text.split() == self.second.text.split()


@dataclass(frozen=True)
class Verdict:
    """What a judge says of a pair once.

    Attributes:
        criterion: What it was asked for.
        repetition: From 0.
        swapped: Whether the second answer was shown first.
        winner: 1 for the first answer of the pair, 2 for the second, 0 for a tie.
        reason: Why.
    """

    criterion: str
    repetition: int
    swapped: bool
    winner: int
    reason: str


@dataclass(frozen=True)
class Preference:
    """What a judge says of a pair.

    Attributes:
        pair: The pair.
        verdicts: Those that came; none where both answers say the same words.
        missing: Outcomes of the calls that gave none.
    """

    pair: AnswerPair
    verdicts: tuple[Verdict, ...]
    missing: tuple[str, ...] = ()

    def points(self, criterion: str) -> float:
        """Points of the first answer, 0 to 100; nan where there is no verdict."""
        if self.pair.is_same:
            return TIE_POINTS
        return _mean([POINTS[each.winner] for each in self.verdicts if each.criterion == criterion])

    def majority(self, criterion: str) -> int:
        """The answer that more than half of the verdicts prefer, 1 or 2; 0 where neither is."""
        winners = [each.winner for each in self.verdicts if each.criterion == criterion]
        winner, count = Counter(winners).most_common(1)[0] if winners else (0, 0)
        return winner if 2 * count > len(winners) else 0

    def shown_first(self) -> float:
        """Points of the answer that was shown first, where both orders were judged; fair is 50, nan for none."""
        orders: dict[tuple[str, int], list[float]] = defaultdict(list)
        for each in self.verdicts:
            points = POINTS[each.winner]
            orders[each.criterion, each.repetition].append(POINTS[1] - points if each.swapped else points)
        return _mean([points for both in orders.values() if len(both) == 2 for points in both])

    def consistency(self) -> float:
        """Chance that two repetitions of the same question in the same order name the same winner; nan for none."""
        repeated: dict[tuple[str, bool], list[int]] = defaultdict(list)
        for each in self.verdicts:
            repeated[each.criterion, each.swapped].append(each.winner)
        return _mean(
            [
                sum(count * (count - 1) for count in Counter(winners).values()) / (len(winners) * (len(winners) - 1))
                for winners in repeated.values()
                if len(winners) > 1
            ]
        )


def judge_preferences(
    model: LanguageModel,
    pairs: Sequence[AnswerPair],
    repetitions: int = REPETITIONS,
    progress: Progress = no_progress,
) -> list[Preference]:
    """Compare the answers of pairs by each of their criteria.

    Args:
        model: The judge.
        pairs: The pairs.
        repetitions: How often each order is shown.
        progress: Told the number of calls that came back.

    Raises:
        ModelError: See `judged`.
    """
    shown = [
        (place, criterion, repetition, swapped)
        for place, pair in enumerate(pairs)
        if not pair.is_same
        for criterion in pair.criteria
        for repetition in range(repetitions)
        for swapped in (False, True)
    ]
    requests = [
        preference_request(model, pairs[place], criterion, repetition, swapped=swapped)
        for place, criterion, repetition, swapped in shown
    ]
    verdicts: dict[int, list[Verdict]] = defaultdict(list)
    lost: dict[int, list[str]] = defaultdict(list)
    completions = judged(model, requests, progress)
    for (place, criterion, repetition, swapped), completion in zip(shown, completions, strict=True):
        value = value_of(completion)
        lost[place].extend(missing([completion]))
        if isinstance(winner := value.get("winner"), int):
            named = 3 - winner if swapped and winner else winner
            verdicts[place].append(Verdict(criterion, repetition, swapped, named, one_line(value["reason"])))
    return [Preference(pair, tuple(verdicts[place]), tuple(lost[place])) for place, pair in enumerate(pairs)]


def preference_request(
    model: LanguageModel, pair: AnswerPair, criterion: str, repetition: int, *, swapped: bool
) -> Request:
    """Ask which answer of a pair is better by a criterion."""
    most_tokens = answer_tokens(model, REASON_TOKENS)
    room = room_tokens(model, most_tokens) // 2
    first, second = (cut_to_tokens(each.text, room) for each in (pair.first, pair.second))
    parts = {"answer1": second, "answer2": first} if swapped else {"answer1": first, "answer2": second}
    properties: dict[str, JsonValue] = {"reason": REASON, "winner": _WINNER}
    question = pair.first.question
    return judge_request(STEP, question, parts, properties, most_tokens, repetition, criterion=criterion)


def _mean(values: Sequence[float]) -> float:
    return fmean(values) if values else float("nan")
