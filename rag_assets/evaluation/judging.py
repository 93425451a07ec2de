"""Whether an answer is right, told by the words that a right one holds, without a language model.

What stays out: whether the passages were found (`rag_assets.evaluation.metrics`).
"""

import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache

from rag_assets.evaluation.evidence import Level, Target
from rag_assets.evaluation.questions import GLOBAL_TYPE, LIST_TYPE, Question
from rag_assets.query.ask.answers import Answer

ANSWER_CHARS = 600  # what a person reads of an answer; quoting everything is no answer
LONG_ANSWER_CHARS = 1_200
LONG_TYPES = frozenset({LIST_TYPE, GLOBAL_TYPE, "cross_document"})

ANSWER_MEASURES: Mapping[str, str] = {
    "correct": "right, or refused where the documents hold no answer",
    "right": "of the answerable: holds what a right answer holds",
    "wrong": "of the answerable: answered, but not right",
    "refused": "of the answerable: said not to be in the documents",
    "invented": "of the unanswerable: answered all the same",
    "cited passage": "of the answers to answerable ones: a citation leads to a passage that holds the evidence",
    "cited page": "the same, to its page",
}


def holds_answer(text: str, question: Question) -> bool:
    """Whether the beginning of a text holds one alternative of every group, case, width and white space aside.

    Numbers and words of Latin letters are found whole: 3 does not stand in 30, 1,300 or 3.5, nor `no` in `nothing`.
    """
    beginning = _folded(text[: LONG_ANSWER_CHARS if question.type in LONG_TYPES else ANSWER_CHARS])
    return all(any(_pattern(each).search(beginning) for each in group) for group in question.answer_contains)


def judge_answer(question: Question, answer: Answer, target: Target) -> dict[str, float]:
    """The measures of one answer, 0 or 1 each; nan where one says nothing of the question."""
    if not question.answerable:
        invented = float(answer.answered)
        values = dict.fromkeys(ANSWER_MEASURES, math.nan)
        return {**values, "correct": 1 - invented, "invented": invented}
    judged = bool(question.answer_contains)
    right = float(answer.answered and holds_answer(answer.text, question)) if judged else math.nan
    wrong = float(answer.answered and not right) if judged else math.nan
    return {
        "correct": right,
        "right": right,
        "wrong": wrong,
        "refused": float(not answer.answered),
        "invented": math.nan,
        "cited passage": _cites(question, answer, target, Level.PASSAGE),
        "cited page": _cites(question, answer, target, Level.PAGE),
    }


def _cites(question: Question, answer: Answer, target: Target, level: Level) -> float:
    """Whether a citation leads to a place that holds evidence; nan where there is nothing to lead to."""
    if not answer.answered or not question.searched:
        return math.nan
    ids: Sequence[set[str]] = [{each.chunk_id, each.page_id, each.document_id} for each in answer.cited()]
    wanted = target.ids(level)
    return float(any(not wanted.isdisjoint(each) for each in ids))


@cache
def _pattern(alternative: str) -> re.Pattern[str]:
    characters = "".join(_folded(alternative).split())
    before = after = ""
    if re.match("[0-9]", characters):  # what stands before the comma is the same number only before three digits
        before = r"(?<![0-9])(?<![0-9]\.)" + (r"(?<![0-9],)" if re.match("[0-9]{3}(?![0-9])", characters) else "")
    elif re.match("[a-z]", characters):
        before = "(?<![a-z])"
    if re.search("[0-9]$", characters):
        after = r"(?![0-9]|\.[0-9]|,[0-9]{3}(?![0-9]))"
    elif re.search("[a-z]$", characters):
        after = "(?=s?(?![a-z]))"  # or in the plural
    return re.compile(before + r"\s*".join(map(re.escape, characters)) + after)


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()
