"""Thumbs on answers, which become draft questions of the question set.

What stays out: the set itself (`rag_assets.evaluation.questions`). A draft is asked once a person has accepted it.
"""

import logging
from pathlib import Path

from pydantic import Field

from rag_assets.contracts.errors import QueryError
from rag_assets.contracts.fingerprint import digest
from rag_assets.evaluation.questions import Evidence, Question, add_drafts
from rag_assets.serve.problems import Problem
from rag_assets.serve.requests import Form
from rag_assets.text.language import detect_language
from rag_assets.text.plain import one_line

_log = logging.getLogger(__name__)
FEEDBACK_TYPE = "feedback"
_VALUE_CHARS = 60  # of an answer that can be looked for as it stands
_NOTE_CHARS = 1_000


class CitedPlace(Form):
    """A place that an answer cites."""

    document_id: str = Field(min_length=1, max_length=4_000, description="The file.")
    page_number: int = Field(ge=1, le=1_000_000, description="Page, sheet or slide, from 1.")
    page_name: str | None = Field(None, max_length=500, description="Name of the sheet.")
    cell_range: str | None = Field(None, max_length=100, description="Cells, as in `B4:F20`.")
    quote: str = Field("", max_length=2_000, description="The words that the answer rests on.")


class FeedbackRequest(Form):
    """What a person thinks of an answer."""

    question: str = Field(min_length=1, max_length=2_000, pattern=r"\S", description="As asked.")
    good: bool = Field(description="Whether the answer is right, or right to say that there is none.")
    answered: bool = Field(True, description="Whether there was an answer.")
    answer: str = Field("", max_length=20_000, description="The answer.")
    citations: list[CitedPlace] = Field([], max_length=20, description="The places that it cites.")
    history: list[str] = Field([], max_length=20, description="Questions before it, the oldest first.")


def add_feedback(path: Path, asked: FeedbackRequest) -> str:
    """Add a draft question; one on the same question takes its place.

    Args:
        path: The question set.
        asked: What the person thinks.

    Returns:
        Id of the question.

    Raises:
        Problem: The file cannot be written, is damaged, or holds too many drafts.
    """
    draft = _draft(asked)
    try:
        add_drafts(path, [draft])
    except OSError as error:
        _log.error("%s: a draft question cannot be written: %s", path, error)
        raise Problem(503, "the server cannot write the question set; see the log") from error
    except QueryError as error:  # its message names a file of this machine
        _log.error("%s", error)
        raise Problem(503, "nothing can be added to the question set; see the log") from error
    return draft.id


def _draft(asked: FeedbackRequest) -> Question:
    history = tuple(one_line(each)[:2_000] for each in asked.history)
    answer = one_line(asked.answer)
    told = "right" if asked.good else "wrong"
    note = f"{told}: {answer}" if asked.answered else f"{told} to say that the documents do not hold it"
    holds = asked.good and asked.answered
    places = {
        Evidence(
            each.document_id, each.page_name or f"page {each.page_number}", one_line(each.quote), each.cell_range or ""
        )
        for each in asked.citations
    }
    return Question(
        f"{FEEDBACK_TYPE}-{digest(asked.question, *history)[:12]}",
        asked.question.strip(),
        detect_language(asked.question),
        FEEDBACK_TYPE,
        answerable=asked.answered or not asked.good,
        evidence=tuple(sorted(places, key=str)) if holds else (),
        answer_contains=((answer,),) if holds and 0 < len(answer) <= _VALUE_CHARS else (),
        history=history,
        note=note[:_NOTE_CHARS],
        draft=True,
    )
