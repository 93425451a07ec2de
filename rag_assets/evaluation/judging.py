"""Whether an answer is right, told by the words that a right one holds, without a language model."""

import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise

from rag_assets.evaluation.evidence import Level, Target
from rag_assets.evaluation.questions import GLOBAL_TYPE, LIST_TYPE, Question
from rag_assets.query.ask.answers import Answer
from rag_assets.text.scripts import CYRILLIC, GREEK, LATIN

_LETTERS = f"{LATIN}{GREEK}{CYRILLIC}"  # of scripts that part words by blanks
_CIRCLED = re.compile("[\u2460-\u2473\u3251-\u325f\u32b1-\u32bf]")  # numbers of items, as in ①2段階
_DATE = re.compile("(?:19|20)[0-9]{2}(?:年|([-/])(?:0?[1-9]|1[0-2])\\1[0-9])")
_PARTS = re.compile(r"[0-9]+(?:\.[0-9]+)*|\S")
_GROUPED = re.compile(r"(?<![0-9.,])[0-9]{1,3}(?:,[0-9]{3}|(?: [0-9]{3}))+(?![0-9])")
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
_OUTCOMES = ("right", "wrong", "refused", "invented", "correct")


def holds_answer(text: str, question: Question) -> bool:
    """Whether the beginning of a text holds one alternative of every group, case, width and white space aside.

    Numbers, and words of Latin, Greek and Cyrillic letters, are found whole: 3 does not stand in 30, 1,300, 3.5 or -3,
    nor `no` in `nothing`, but 2 stands in ①2, and a date behind the number of its item. Numbers are the same with and
    without marks of thousands, words with the s of the plural.
    """
    return share_held(text, question) >= 1


def share_held(text: str, question: Question) -> float:
    """Share of the groups of a right answer that the beginning of a text holds, see `holds_answer`; 1 where the
    question has none.
    """
    beginning = _folded(text[: LONG_ANSWER_CHARS if question.type in LONG_TYPES else ANSWER_CHARS])
    hits = [any(_pattern(alternative).search(beginning) for alternative in group) for group in question.answer_contains]
    return sum(hits) / len(hits) if hits else 1.0


def judge_answer(question: Question, answer: Answer, target: Target) -> dict[str, float]:
    """The measures of one answer, 0 or 1 each; nan where one says nothing of the question."""
    if not question.answerable:
        invented = float(answer.answered)
        values = dict.fromkeys(ANSWER_MEASURES, math.nan)
        return {**values, "correct": 1 - invented, "invented": invented}
    is_judged = bool(question.answer_contains)
    right = float(answer.answered and holds_answer(answer.text, question)) if is_judged else math.nan
    wrong = float(answer.answered and not right) if is_judged else math.nan
    return {
        "correct": right,
        "right": right,
        "wrong": wrong,
        "refused": float(not answer.answered),
        "invented": math.nan,
        "cited passage": _cites(question, answer, target, Level.PASSAGE),
        "cited page": _cites(question, answer, target, Level.PAGE),
    }


def outcome_of(values: Mapping[str, float]) -> str | None:
    """What became of an answer, by its measures; None where nothing is judged. A right refusal is `correct`."""
    return next((name for name in _OUTCOMES if values.get(name) == 1), None)


def _cites(question: Question, answer: Answer, target: Target, level: Level) -> float:
    """Whether a citation leads to a place that holds evidence; nan where there is nothing to lead to."""
    if not answer.answered or not question.searched:
        return math.nan
    ids: Sequence[set[str]] = [{source.chunk_id, source.page_id, source.document_id} for source in answer.cited()]
    wanted_ids = target.ids(level)
    return float(any(not wanted_ids.isdisjoint(source_ids) for source_ids in ids))


@cache
def _pattern(alternative: str) -> re.Pattern[str]:
    text = _GROUPED.sub(lambda match: re.sub("[, ]", "", match[0]), _folded(alternative).strip())
    parts = _PARTS.findall(text)
    gaps = [r"\s+" if one[-1:].isdecimal() and two[:1].isdecimal() else r"\s*" for one, two in pairwise(parts)]
    pattern = "".join(_part(part) + gap for part, gap in zip(parts, [*gaps, ""], strict=True))
    return re.compile(_edge_before(text) + pattern + _edge_after(text))


def _part(part: str) -> str:
    """A number, with marks of thousands or without, or a character."""
    if not part[0].isdecimal():
        return re.escape(part)
    whole, *rest = part.split(".")
    groups = [whole[max(0, end - 3) : end] for end in range(len(whole), 0, -3)]
    return r"\.".join(["[, ]?".join(reversed(groups)), *rest])


def _edge_before(text: str) -> str:
    """What must not stand before a number or a word, which would be another with it."""
    if re.match("[0-9]", text):  # what stands before the comma is the same number only before three digits
        if _DATE.match(text):  # behind the number of an item, as in 3.2025年7月1日
            return r"(?<![0-9])"
        comma = r"(?<![0-9],)" if re.match("[0-9]{3}(?![0-9])", text) else ""
        return rf"(?<![0-9▲△])(?<![0-9]\.)(?<!(?<!\w)-){comma}"
    if re.match("-[0-9]", text):
        return r"(?<!\w)"
    return f"(?<![{_LETTERS}])" if re.match(f"[{_LETTERS}]", text) else ""


def _edge_after(text: str) -> str:
    """What must not stand after it."""
    if re.search("[0-9]$", text):
        zeros = r"(?:\.0+)?" if "." not in text else ""  # $260.00 is 260
        return rf"{zeros}(?![0-9]|\.[0-9]|,[0-9]{{3}}(?![0-9]))"
    if re.search("[a-z]{3}$", text):
        return f"(?=s?(?![{_LETTERS}]))"  # or in the plural
    return f"(?![{_LETTERS}])" if re.search(f"[{_LETTERS}]$", text) else ""


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", _CIRCLED.sub(r" \g<0> ", text)).casefold().replace("\u2212", "-")
