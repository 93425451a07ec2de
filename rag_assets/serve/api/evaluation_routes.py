"""Routes of recorded evaluations, and of what people show to be good: thumbs on answers, which become draft questions,
and clicks on results.

What stays out: the set itself (`rag_assets.evaluation.questions`), and the file of clicks
(`rag_assets.evaluation.clicks`). A draft is asked once a person has accepted it.
"""

import logging
import pathlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Path, Query, Request
from pydantic import Field
from starlette.responses import Response

from rag_assets.contracts.errors import QueryError, StoreError
from rag_assets.contracts.fingerprint import digest
from rag_assets.evaluation.clicks import Click, add_click
from rag_assets.evaluation.questions import Evidence, Question, add_drafts
from rag_assets.evaluation.recorded import (
    QuestionDetails,
    RecordedComparison,
    RecordedRun,
    RunDetails,
    compare_recorded,
    question_details,
    run_details,
    runs,
)
from rag_assets.serve.api.routing import check_parameters, json_bytes, note
from rag_assets.serve.problems import Problem
from rag_assets.serve.requests import Form
from rag_assets.serve.service import Service
from rag_assets.store.lake import Lake
from rag_assets.text.language import detect_language
from rag_assets.text.plain import one_line

_log = logging.getLogger(__name__)
_FEEDBACK_TYPE = "feedback"
_VALUE_CHARS = 60  # of an answer that can be looked for as it stands
_NOTE_CHARS = 1_000

RunId = Annotated[str, Path(pattern=r"^[0-9]{8}T[0-9]{6}Z-[0-9a-f]{8}$", description="As in the list of runs.")]
OtherRunId = Annotated[str, Query(pattern=r"^[0-9]{8}T[0-9]{6}Z-[0-9a-f]{8}$", description="The second run.")]
SystemName = Annotated[str, Query(max_length=200, description="What it measured, as in `hybrid`.")]


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


@dataclass(frozen=True)
class FeedbackState:
    """What becomes of thumbs and clicks.

    Attributes:
        enabled: Whether they are taken.
    """

    enabled: bool


@dataclass(frozen=True)
class Feedback:
    """A draft question that a thumb became.

    Attributes:
        question_id: Its id in the question set.
    """

    question_id: str


@dataclass(frozen=True)
class RecordedClick:
    """A click that was written down.

    Attributes:
        rank: Of the result, from 1.
    """

    rank: int


def evaluation_router(service: Service, prefix: str) -> APIRouter:
    """The routes, whose paths begin with the prefix."""
    router = APIRouter(prefix=prefix, tags=["evaluation"], dependencies=[Depends(check_parameters)])

    async def recorded_response(kind: Any, find: Callable[[Lake], object | None], message: str = "") -> Response:
        def action() -> Response:
            value = find(service.published.lake)
            if value is None:
                raise Problem(404, message)
            return Response(json_bytes(value, kind), media_type="application/json")

        return await service.reading.run(action)

    async def written_response(
        subject: str, path: pathlib.Path | None, write: Callable[[pathlib.Path], object]
    ) -> Response:
        def action() -> Response:
            if path is None:
                raise Problem(403, "the server takes no feedback; see the setting evaluation.feedback")
            try:
                value = write(path)
            # callers are told without the names of this machine that messages hold
            except OSError as error:
                _log.error("%s cannot be written: %s", subject, error)
                raise Problem(503, f"the server cannot write {subject}; see the log") from error
            except (QueryError, StoreError) as error:
                _log.error("%s", error)
                raise Problem(503, f"nothing can be added to {subject}; see the log") from error
            return Response(json_bytes(value), media_type="application/json")

        return await service.reading.run(action)

    @router.get("/evaluations", response_model=tuple[RecordedRun, ...], summary="List runs, the latest first")
    async def evaluations(limit: Annotated[int, Query(ge=1, le=500, description="Runs, at most.")] = 50) -> Response:
        return await recorded_response(tuple[RecordedRun, ...], lambda lake: runs(lake, limit))

    @router.get("/evaluations/{run_id}", response_model=RunDetails, summary="Read a run with its questions")
    async def evaluation(run_id: RunId) -> Response:
        return await recorded_response(RunDetails, lambda lake: run_details(lake, run_id), "there is no such run")

    @router.get(
        "/evaluations/{run_id}/question",
        response_model=QuestionDetails,
        summary="Read what was expected of a question, and what came",
    )
    async def question(
        run_id: RunId,
        id: Annotated[str, Query(min_length=1, max_length=1000, description="Its id.")],  # noqa: A002
    ) -> Response:
        return await recorded_response(
            QuestionDetails, lambda lake: question_details(lake, run_id, id), "there is no such question in this run"
        )

    @router.get(
        "/evaluations/{run_id}/comparison",
        response_model=RecordedComparison,
        summary="Compare two modes or versions, of one run or of two",
    )
    async def comparison(
        run_id: RunId, system: SystemName, other_run: OtherRunId, other_system: SystemName
    ) -> Response:
        pair = (run_id, system), (other_run, other_system)
        return await recorded_response(RecordedComparison, lambda lake: compare_recorded(lake, *pair))

    @router.get("/feedback", response_model=FeedbackState, summary="Whether thumbs on answers and clicks are taken")
    async def feedback_state() -> FeedbackState:
        return FeedbackState(service.options.feedback is not None)

    @router.post("/feedback", response_model=Feedback, summary="Make a draft question of an answer and a thumb")
    async def feedback(request: Request, asked: Annotated[FeedbackRequest, Body()]) -> Response:
        note(request, good=asked.good)

        def write(path: pathlib.Path) -> Feedback:
            draft = _draft(asked)
            add_drafts(path, [draft])  # it takes the place of one on the same question
            return Feedback(draft.id)

        return await written_response("the question set", service.options.feedback, write)

    @router.post("/clicks", response_model=RecordedClick, summary="Write down that a result was opened")
    async def clicks(request: Request, opened: Annotated[ClickRequest, Body()]) -> Response:
        note(request, rank=len(opened.above) + 1)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        click = Click(opened.question.strip(), opened.result, tuple(opened.above), now)

        def write(path: pathlib.Path) -> RecordedClick:
            add_click(path, click)
            return RecordedClick(click.rank)

        return await written_response("the clicks", service.options.clicks, write)

    return router


def _draft(asked: FeedbackRequest) -> Question:
    history = tuple(one_line(turn)[:2_000] for turn in asked.history)
    answer = one_line(asked.answer)
    verdict = "right" if asked.good else "wrong"
    note = f"{verdict}: {answer}" if asked.answered else f"{verdict} to say that the documents do not hold it"
    holds = asked.good and asked.answered
    places = {
        Evidence(
            citation.document_id,
            citation.page_name or f"page {citation.page_number}",
            one_line(citation.quote),
            citation.cell_range or "",
        )
        for citation in asked.citations
    }
    return Question(
        f"{_FEEDBACK_TYPE}-{digest(asked.question, *history)[:12]}",
        asked.question.strip(),
        detect_language(asked.question),
        _FEEDBACK_TYPE,
        answerable=asked.answered or not asked.good,
        evidence=tuple(sorted(places, key=str)) if holds else (),
        answer_contains=((answer,),) if holds and 0 < len(answer) <= _VALUE_CHARS else (),
        history=history,
        note=note[:_NOTE_CHARS],
        draft=True,
    )
