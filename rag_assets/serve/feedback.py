"""What people show to be good: thumbs on answers, which become draft questions of the question set; clicks on results.

What stays out: the set itself (`rag_assets.evaluation.questions`), and the file of clicks
(`rag_assets.evaluation.clicks`). A draft is asked once a person has accepted it.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from pydantic import Field

from rag_assets.contracts.errors import QueryError, StoreError
from rag_assets.contracts.fingerprint import digest
from rag_assets.evaluation.clicks import Click, add_click
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


_PassageId = Annotated[str, Field(min_length=1, max_length=5_000)]


class ClickRequest(Form):
    """A result of a search that a person opened."""

    question: str = Field(min_length=1, max_length=2_000, pattern=r"\S", description="As asked.")
    result: _PassageId = Field(description="The result's `chunk_id`.")
    above: list[_PassageId] = Field([], max_length=100, description="`chunk_id` of the results above it, best first.")


def record_click(path: Path, opened: ClickRequest) -> Click:
    """Write down that a result was opened.

    Raises:
        Problem: The file cannot be written, or is full.
    """
    now = datetime.now(UTC).isoformat(timespec="seconds")
    click = Click(opened.question.strip(), opened.result, tuple(opened.above), now)
    with _written("the clicks"):
        add_click(path, click)
    return click


@contextmanager
def _written(what: str) -> Iterator[None]:
    """Errors of writing a file, told to callers without the names of this machine that their messages hold."""
    try:
        yield
    except OSError as error:
        _log.error("%s cannot be written: %s", what, error)
        raise Problem(503, f"the server cannot write {what}; see the log") from error
    except (QueryError, StoreError) as error:
        _log.error("%s", error)
        raise Problem(503, f"nothing can be added to {what}; see the log") from error


def add_feedback(path: Path, asked: FeedbackRequest) -> str:
    """Add a draft question and give its id; one on the same question takes its place.

    Raises:
        Problem: The file cannot be written, is damaged, or holds too many drafts.
    """
    draft = _draft(asked)
    with _written("the question set"):
        add_drafts(path, [draft])
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
