"""The HTTP API as an application: routes under `/api/v1`, the web page at `/`, health and figures."""

import logging
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from rag_assets import __version__
from rag_assets.contracts.errors import RagAssetsError, StoreError
from rag_assets.query.contents.page_images import PageImages
from rag_assets.query.published import Published
from rag_assets.serve.api.contents_routes import contents_router
from rag_assets.serve.api.guard import Guard
from rag_assets.serve.api.openapi import describe
from rag_assets.serve.api.options import ApiOptions
from rag_assets.serve.api.problems import FieldProblem, Problem, of_error
from rag_assets.serve.api.schemas import StateResponse
from rag_assets.serve.api.search_routes import search_router
from rag_assets.serve.api.web import add_web_page
from rag_assets.serve.service import Service
from rag_assets.text.plain import message_of

_log = logging.getLogger(__name__)
API = "/api/v1"
_NO_ROOTS: dict[str, str] = {}


def create_app(
    published: Published,
    options: ApiOptions,
    source_folders: Callable[[], Mapping[str, str]] = lambda: _NO_ROOTS,
    on_ready: Callable[[str | None], None] = lambda _: None,
    more: Callable[[FastAPI, Service], AbstractAsyncContextManager[None]] | None = None,
) -> FastAPI:
    """The application.

    Args:
        published: The published versions.
        options: Limits and defaults.
        source_folders: Local folder of each source, by name, as it is now: pictures of PDF pages are drawn from there.
        on_ready: Told once when the first version is open, with None, or why there is none.
        more: Adds routes of another protocol; its context is open while the app runs.
    """
    service = Service(published, PageImages(source_folders), options)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        threading.Thread(target=_warm_up, args=(service, on_ready), name="warm-up", daemon=True).start()
        try:
            if further is None:
                yield
            else:
                async with further:
                    yield
        finally:
            service.close()

    app = FastAPI(
        title="rag_assets",
        version=__version__,
        description="Search, answers and stored contents of a published knowledge base.",
        docs_url=None,
        redoc_url=None,
        openapi_url=f"{API}/openapi.json",
        lifespan=lifespan,
        redirect_slashes=False,
    )
    app.state.service = service
    app.add_middleware(Guard, options=options, metrics=service.metrics)
    _add_handlers(app)
    _add_operation(app, service)
    app.include_router(search_router(service, API))
    app.include_router(contents_router(service, API))
    further = more(app, service) if more is not None else None
    add_web_page(app)
    describe(app, protected=options.token is not None)
    return app


def _warm_up(service: Service, on_ready: Callable[[str | None], None]) -> None:
    """Open the published version and search once, so that the first caller does not wait."""
    problem = None
    try:
        service.current().base.search("warm up", "hybrid", 1)
    except RagAssetsError as error:
        problem = str(error)
    except Exception:  # noqa: BLE001 - the server stays, and tells of it
        _log.exception("the first search failed")
        problem = "the first search failed; see the log"
    on_ready(problem)


def _add_handlers(app: FastAPI) -> None:
    def told(request: Request, problem: Problem) -> Response:
        return problem.response(request.scope["state"]["request_id"])

    async def of_problem(request: Request, error: Exception) -> Response:
        assert isinstance(error, Problem)
        return told(request, error)

    async def of_ours(request: Request, error: Exception) -> Response:
        assert isinstance(error, RagAssetsError)
        problem = of_error(error)
        if isinstance(error, StoreError):
            app.state.service.published.suspect()
        if isinstance(error, StoreError) or problem.status == 500:
            _log.error("%s: %s", type(error).__name__, error)
        app.state.service.metrics.errors.labels(type(error).__name__).inc()
        return told(request, problem)

    async def of_form(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        found = [
            FieldProblem(field=message_of(".".join(map(str, each["loc"])), 200), message=message_of(each["msg"], 200))
            for each in error.errors()[:100]
        ]
        detail = "; ".join(f"{each.field}: {each.message}" for each in found[:5])
        return told(request, Problem(422, detail, errors=tuple(found)))

    async def of_protocol(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return told(request, Problem(error.status_code, str(error.detail), dict(error.headers or {})))

    app.add_exception_handler(Problem, of_problem)
    app.add_exception_handler(RagAssetsError, of_ours)
    app.add_exception_handler(RequestValidationError, of_form)
    app.add_exception_handler(HTTPException, of_protocol)


def _add_operation(app: FastAPI, service: Service) -> None:
    @app.get("/health", response_model=StateResponse, tags=["operation"], summary="Whether the server runs")
    async def health() -> StateResponse:
        return StateResponse(status="alive")

    @app.get("/ready", response_model=StateResponse, tags=["operation"], summary="Whether questions can be answered")
    async def ready(request: Request) -> StateResponse:
        known = bool(request.scope["state"]["known"])

        def action() -> StateResponse:
            try:
                number = service.current().snapshot.number
            except RagAssetsError:
                if known:
                    raise
                raise Problem(503, "there is no version to ask; see the log", {"Retry-After": "10"}) from None
            problem = service.published.problem
            if problem is not None and not known:
                problem = "a newer version cannot be opened; see the log"
            return StateResponse(status="ready", snapshot=number, problem=problem)

        return await service.checking.run(action)

    @app.get("/metrics", response_class=Response, tags=["operation"], summary="Figures for Prometheus")
    async def metrics() -> Response:
        return Response(service.metrics.text(), media_type=service.metrics.content_type)


def app_service(app: FastAPI) -> Service:
    """What the routes of an app share."""
    found: Any = app.state.service
    assert isinstance(found, Service)
    return found
