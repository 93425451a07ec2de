"""Grades from 0 to 100, each with a justification, by six metrics: two of what was found, four of the answer.

Source: L. Mombaerts and others, Meta knowledge for retrieval augmented large language models, 2024 (PR3), evaluation
metrics. One call grades one answer by all metrics; where no passages are known, by the last four.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rag_assets.contracts.generation import Completion, JsonValue, Request, object_schema
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
    numbered,
    room_tokens,
    value_of,
)
from rag_assets.text.plain import one_line
from rag_assets.text.tokens import cut_to_tokens

STEP = "judge_grades"
RETRIEVAL_METRICS = ("recall", "precision")
ANSWER_METRICS = ("specificity", "breadth", "depth", "relevancy")
METRICS = (*RETRIEVAL_METRICS, *ANSWER_METRICS)
BEST = 100
_NOTHING = "-"


@dataclass(frozen=True)
class Grade:
    """What a judge thinks of an answer by one metric.

    Attributes:
        grade: From 0 to 100.
        justification: Why.
    """

    grade: int
    justification: str


@dataclass(frozen=True)
class Grades:
    """What a judge thinks of an answer.

    Attributes:
        grades: By metric; empty where there is no judgement.
        missing: Outcome of the call, where it gave none.
    """

    grades: Mapping[str, Grade]
    missing: tuple[str, ...] = ()


def judge_grades(
    model: LanguageModel,
    answers: Sequence[JudgedAnswer],
    progress: Progress = no_progress,
    seed: int | None = None,
) -> list[Grades]:
    """Grade answers, each by itself.

    Args:
        model: The judge.
        answers: What is graded.
        progress: Told the number of calls that came back.
        seed: Number of the repetition; None for a first grading.

    Raises:
        ModelError: See `judged`.
    """
    requests = [grades_request(model, each, seed) for each in answers]
    return [_grades(each) for each in judged(model, requests, progress)]


def grades_request(model: LanguageModel, answer: JudgedAnswer, seed: int | None = None) -> Request:
    """Ask for the grades of one answer."""
    metrics = METRICS if answer.passages else ANSWER_METRICS
    grade: JsonValue = {"type": "integer", "minimum": 0, "maximum": BEST}
    item = object_schema({"justification": REASON, "grade": grade})
    most_tokens = answer_tokens(model, len(metrics) * REASON_TOKENS)
    room = room_tokens(model, most_tokens)
    written = cut_to_tokens(answer.text, room // 2)
    found = numbered(answer.passages, range(1, len(answer.passages) + 1), room // 2) or _NOTHING
    parts = {"passages": found, "answer": written}
    return judge_request(STEP, answer.question, parts, dict.fromkeys(metrics, item), most_tokens, seed)


def _grades(completion: Completion) -> Grades:
    grades = {}
    for metric, item in value_of(completion).items():
        if isinstance(item, dict) and isinstance(item["grade"], int):
            grades[metric] = Grade(item["grade"], one_line(item["justification"]))
    return Grades(grades, missing([completion]))
