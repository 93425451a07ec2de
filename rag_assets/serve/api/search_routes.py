"""Routes that search and answer."""

from typing import Annotated

from fastapi import APIRouter, Body, Depends, Query, Request
from pydantic import Field
from starlette.responses import Response

from rag_assets.query.cancellation import Cancellation
from rag_assets.query.filters import parse_filters
from rag_assets.query.search.modes import MODES, PREPARING_MODES, RETRIEVERS
from rag_assets.serve.api.events import answer_events, answered, wants_events
from rag_assets.serve.api.parameters import check_parameters
from rag_assets.serve.api.schemas import (
    FILTER_DESCRIPTION,
    AskRequest,
    AskResponse,
    LevelNumber,
    ModeName,
    ModesResponse,
    ResultCount,
    SearchRequest,
    SearchResponse,
)
from rag_assets.serve.service import Service, Timed, json_response, note

_ADDRESS_CHARS = 2000  # of a query in an address; longer ones go by POST


def search_router(service: Service, prefix: str) -> APIRouter:
    """The routes.

    Args:
        service: What they share.
        prefix: What their paths begin with.
    """
    router = APIRouter(prefix=prefix, tags=["search"], dependencies=[Depends(check_parameters)])

    async def found(request: Request, asked: SearchRequest) -> Response:
        mode = asked.mode or service.options.mode
        note(request, mode=mode[:64])

        def action(cancellation: Cancellation) -> Response:
            version = service.current()
            with Timed(service.metrics, mode, "search"):
                result = version.base.search(
                    asked.query,
                    mode,
                    asked.k or service.options.k,
                    parse_filters(asked.filters),
                    granularity=asked.granularity,
                    summaries=asked.summaries,
                    levels=asked.levels(service.options.levels),
                    history=asked.turns(),
                    cancellation=cancellation,
                )
            return json_response(result.to_json(), version)

        return await service.search(request, action)

    @router.post("/search", response_model=SearchResponse, summary="Find passages, pages or documents")
    async def search(request: Request, asked: Annotated[SearchRequest, Body()]) -> Response:
        return await found(request, asked)

    @router.get("/search", response_model=SearchResponse, summary="Find passages, pages or documents")
    async def search_by_address(request: Request, asked: Annotated[SearchRequest, Depends(_from_address)]) -> Response:
        return await found(request, asked)

    @router.post(
        "/ask",
        response_model=AskResponse,
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
        mode = asked.mode or service.options.ask_mode
        note(request, mode=mode[:64])
        if asked.stream or wants_events(request):
            return await answer_events(request, service, asked, mode)
        return await answered(request, service, asked, mode)

    @router.get("/modes", response_model=ModesResponse, summary="List the modes")
    async def modes() -> ModesResponse:
        return ModesResponse(
            default_mode=service.options.mode,
            default_ask_mode=service.options.ask_mode,
            k=service.options.k,
            modes=list(MODES),
            retrievers=list(RETRIEVERS),
            preparing=PREPARING_MODES,
        )

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
    summaries: Annotated[str, Query(pattern="^(page|file)$")] = "page",
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
