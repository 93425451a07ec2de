"""Routes of recorded evaluations, and of thumbs on answers and clicks on results."""

import pathlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Path, Query, Request
from starlette.responses import Response

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
from rag_assets.serve.feedback import ClickRequest, FeedbackRequest, add_feedback, record_click
from rag_assets.serve.problems import Problem
from rag_assets.serve.service import Service
from rag_assets.store.lake import Lake

RunId = Annotated[str, Path(pattern=r"^[0-9]{8}T[0-9]{6}Z-[0-9a-f]{8}$", description="As in the list of runs.")]
OtherRunId = Annotated[str, Query(pattern=r"^[0-9]{8}T[0-9]{6}Z-[0-9a-f]{8}$", description="The second run.")]
SystemName = Annotated[str, Query(max_length=200, description="What it measured, as in `hybrid`.")]


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

    async def recorded(kind: Any, find: Callable[[Lake], object | None], missing: str = "") -> Response:
        def action() -> Response:
            value = find(service.published.lake)
            if value is None:
                raise Problem(404, missing)
            return Response(json_bytes(value, kind), media_type="application/json")

        return await service.reading.run(action)

    async def written(path: pathlib.Path | None, write: Callable[[pathlib.Path], object]) -> Response:
        def action() -> Response:
            if path is None:
                raise Problem(403, "the server takes no feedback; see the setting evaluation.feedback")
            return Response(json_bytes(write(path)), media_type="application/json")

        return await service.reading.run(action)

    @router.get("/evaluations", response_model=tuple[RecordedRun, ...], summary="List runs, the latest first")
    async def evaluations(limit: Annotated[int, Query(ge=1, le=500, description="Runs, at most.")] = 50) -> Response:
        return await recorded(tuple[RecordedRun, ...], lambda lake: runs(lake, limit))

    @router.get("/evaluations/{run_id}", response_model=RunDetails, summary="Read a run with its questions")
    async def evaluation(run_id: RunId) -> Response:
        return await recorded(RunDetails, lambda lake: run_details(lake, run_id), "there is no such run")

    @router.get(
        "/evaluations/{run_id}/question",
        response_model=QuestionDetails,
        summary="Read what was expected of a question, and what came",
    )
    async def question(
        run_id: RunId,
        id: Annotated[str, Query(min_length=1, max_length=1000, description="Its id.")],  # noqa: A002
    ) -> Response:
        return await recorded(
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
        return await recorded(RecordedComparison, lambda lake: compare_recorded(lake, *pair))

    @router.get("/feedback", response_model=FeedbackState, summary="Whether thumbs on answers and clicks are taken")
    async def feedback_state() -> FeedbackState:
        return FeedbackState(service.options.feedback is not None)

    @router.post("/feedback", response_model=Feedback, summary="Make a draft question of an answer and a thumb")
    async def feedback(request: Request, asked: Annotated[FeedbackRequest, Body()]) -> Response:
        note(request, good=asked.good)
        return await written(service.options.feedback, lambda path: Feedback(add_feedback(path, asked)))

    @router.post("/clicks", response_model=RecordedClick, summary="Write down that a result was opened")
    async def clicks(request: Request, opened: Annotated[ClickRequest, Body()]) -> Response:
        note(request, rank=len(opened.above) + 1)
        return await written(service.options.clicks, lambda path: RecordedClick(record_click(path, opened).rank))

    return router
