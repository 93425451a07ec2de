"""Routes that search and answer."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Body, Depends, Query, Request
from pydantic import Field
from starlette.responses import Response

from rag_assets.contracts.modes import MODES, PREPARING_MODES, RETRIEVERS, SEARCH_MODES
from rag_assets.query.ask.answers import Answer, Answered
from rag_assets.query.cancellation import Cancellation
from rag_assets.query.filters import parse_filters
from rag_assets.query.results import SearchResult
from rag_assets.serve.api.events import answer_events, events_of, wants_events
from rag_assets.serve.api.routing import check_parameters, json_response, note, while_waited
from rag_assets.serve.requests import (
    FILTER_DESCRIPTION,
    AskRequest,
    LevelNumber,
    ModeName,
    ResultCount,
    SearchRequest,
    check_options,
    levels_of,
    turns_of,
)
from rag_assets.serve.service import Service

_ADDRESS_CHARS = 2000  # of a query in an address; longer ones go by POST


@dataclass(frozen=True)
class ModeChoice:
    """What `mode` may be, and what a request that names neither mode nor number gets.

    Attributes:
        default_mode: Mode of a search that names none.
        default_ask_mode: Mode of a question that names none.
        k: Results of a request that names no number.
        modes: All modes.
        retrievers: Modes that may stand behind the plus sign.
        preparing: Modes that may stand before the plus sign, with the mode that finds passages where none is named.
        labels: What to call each mode, by language: `en` and `ja`.
    """

    default_mode: str
    default_ask_mode: str
    k: int
    modes: tuple[str, ...]
    retrievers: tuple[str, ...]
    preparing: Mapping[str, str]
    labels: Mapping[str, Mapping[str, str]]


def search_router(service: Service, prefix: str) -> APIRouter:
    """The routes, whose paths begin with the prefix."""
    router = APIRouter(prefix=prefix, tags=["search"], dependencies=[Depends(check_parameters)])
    defaults = service.options.defaults

    async def results(request: Request, asked: SearchRequest) -> Response:
        mode = asked.mode or defaults.mode
        note(request, mode=mode[:64])

        def action(cancellation: Cancellation) -> Response:
            version = service.current()
            check_options(mode, asked.level, asked.dynamic_level, asked.summaries)
            with service.timed(mode, "search"):
                result = version.base.search(
                    asked.query,
                    mode,
                    asked.k or defaults.k,
                    parse_filters(asked.filters),
                    granularity=asked.granularity,
                    summaries=asked.summaries or "page",
                    levels=levels_of(asked.level, asked.dynamic_level, defaults.levels),
                    history=turns_of(asked.history),
                    cancellation=cancellation,
                )
            return json_response(result, version)

        return await while_waited(service.searching, request, action)

    @router.post("/search", response_model=SearchResult, summary="Find passages, pages or documents")
    async def search(request: Request, asked: Annotated[SearchRequest, Body()]) -> Response:
        return await results(request, asked)

    @router.get("/search", response_model=SearchResult, summary="Find passages, pages or documents")
    async def search_by_address(request: Request, asked: Annotated[SearchRequest, Depends(_from_address)]) -> Response:
        return await results(request, asked)

    @router.post(
        "/ask",
        response_model=Answer,
        summary="Answer a question from the documents",
        responses={
            200: {
                "content": {"text/event-stream": {"schema": {"type": "string"}}},
                "description": "The answer; or, where `Accept: text/event-stream` or `stream` asks for it, the events "
                "`evidence`, `text`, `answer` and `error` as they come.",
            }
        },
    )
    async def ask(request: Request, asked: Annotated[AskRequest, Body()]) -> Response:
        mode = asked.mode or defaults.ask_mode
        note(request, mode=mode[:64])
        if asked.stream or wants_events(request):
            return await answer_events(request, service, asked, mode)

        def action(cancellation: Cancellation) -> Response:
            version = service.current()
            *_, last = events_of(service, version, asked, mode, cancellation)
            assert isinstance(last, Answered)
            return json_response(last.answer, version)

        return await while_waited(service.asking, request, action)

    @router.get("/modes", response_model=ModeChoice, summary="List the modes")
    async def modes() -> ModeChoice:
        labels = {mode.name: mode.label for mode in SEARCH_MODES}
        return ModeChoice(defaults.mode, defaults.ask_mode, defaults.k, MODES, RETRIEVERS, PREPARING_MODES, labels)

    return router


def _from_address(
    query: Annotated[str, Query(alias="q", min_length=1, max_length=_ADDRESS_CHARS)],
    mode: Annotated[ModeName | None, Query()] = None,
    k: Annotated[ResultCount | None, Query()] = None,
    filters: Annotated[
        list[Annotated[str, Field(max_length=500)]],
        Query(alias="filter", max_length=20, description=FILTER_DESCRIPTION),
    ] = [],  # noqa: B006 - FastAPI copies it
    granularity: Annotated[str, Query(pattern="^(chunk|page|document)$")] = "chunk",
    summaries: Annotated[str | None, Query(pattern="^(page|file)$")] = None,
    level: Annotated[LevelNumber | None, Query()] = None,
    *,
    dynamic_level: Annotated[bool | None, Query()] = None,
) -> SearchRequest:
    return SearchRequest.model_validate(
        {
            "query": query,
            "mode": mode,
            "k": k,
            "filters": filters,
            "granularity": granularity,
            "summaries": summaries,
            "level": level,
            "dynamic_level": dynamic_level,
        }
    )
