"""The HTTP API as an application: routes under `/api/v1`, the web page at `/`, health and figures."""

import logging
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, Response
from starlette.staticfiles import StaticFiles

from rag_assets import __version__
from rag_assets.contracts.errors import RagAssetsError
from rag_assets.contracts.validation import problem_text
from rag_assets.query.contents.page_images import PageImages
from rag_assets.query.published import Published
from rag_assets.query.results import describe_fields
from rag_assets.serve.api.contents_routes import contents_router
from rag_assets.serve.api.evaluation_routes import evaluation_router
from rag_assets.serve.api.guard import Guard
from rag_assets.serve.api.search_routes import search_router
from rag_assets.serve.problems import MEDIA_TYPE, FieldProblem, Problem, ProblemDetails
from rag_assets.serve.requests import LIST_FORMS
from rag_assets.serve.service import ServeOptions, Service
from rag_assets.text.plain import message_of

_log = logging.getLogger(__name__)
API = "/api/v1"
_WEB_FOLDER = Path(__file__).parents[1] / "web"
_VIEWS = (  # addresses under which the web page shows documents, pages and communities
    *("/", "/compare", "/documents", "/documents/{rest:id}", "/communities", "/communities/{rest:path}"),
    *("/pages/{rest:id}", "/evaluation", "/evaluation/{rest:path}"),
)
# after an update no part of the old page may meet a part of the new one
_ASK_AGAIN: Mapping[str, str] = MappingProxyType({"Cache-Control": "no-cache"})
_PROBLEMS = {  # that every operation may answer with
    "400": "The request cannot be answered as asked.",
    "401": "A token is needed.",
    "403": "The request is of another site, or the server is called by another name.",
    "404": "There is no such thing.",
    "408": "The request took too long to arrive.",
    "413": "The request is too large.",
    "422": "The request is not of the form expected.",
    "429": "Too many requests.",
    "502": "A model failed.",
    "503": "Not available now.",
}
_OPEN = frozenset({"/health", "/ready"})


@dataclass(frozen=True)
class Alive:
    """That the server runs; nothing is looked at for it."""

    status: Literal["alive"]


@dataclass(frozen=True)
class State:
    """Whether questions can be answered.

    Attributes:
        status: `ready`; else the status of the response is 503.
        snapshot: Number of the version that is served.
        problem: Why a newer version cannot be served.
    """

    status: Literal["ready"]
    snapshot: int | None = None
    problem: str | None = None


def create_app(
    published: Published,
    options: ServeOptions,
    source_folders: Callable[[], Mapping[str, str]],
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
    _add_handlers(app, service)
    _add_operation(app, service)
    app.include_router(search_router(service, API))
    app.include_router(contents_router(service, API))
    app.include_router(evaluation_router(service, API))
    further = more(app, service) if more is not None else None
    _add_web_page(app)
    description = cache(lambda: _describe(app, is_protected=options.token is not None))
    app.openapi = description  # type: ignore[method-assign]
    return app


def _warm_up(service: Service, on_ready: Callable[[str | None], None]) -> None:
    """Open the published version and search once, so that the first caller does not wait."""
    problem = None
    try:
        service.warm_up()
    except RagAssetsError as error:
        problem = str(error)
    except Exception:  # noqa: BLE001 - the server stays, and tells of it
        _log.exception("the first search failed")
        problem = "the first search failed; see the log"
    on_ready(problem)


def _add_handlers(app: FastAPI, service: Service) -> None:
    async def respond(request: Request, error: Exception) -> Response:
        match error:
            case Problem():
                problem = error
            case RagAssetsError():
                problem = service.problem_of(error)
            case RequestValidationError():
                is_json = "json" in request.headers.get("content-type", "")
                fields = [_field_problem(item, is_json=is_json) for item in error.errors()[:100]]
                detail = "; ".join(f"{field.field}: {field.message}" for field in fields[:5])
                problem = Problem(422, detail, errors=tuple(fields))
            case HTTPException():
                problem = Problem(error.status_code, str(error.detail), dict(error.headers or {}))
            case _:
                raise error
        return problem.response(request.scope["state"]["request_id"])

    for kind in (Problem, RagAssetsError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, respond)


def _field_problem(error: Mapping[str, Any], *, is_json: bool) -> FieldProblem:
    """What is wrong with a field of a request, or with its body, which was sent as JSON or as something else."""
    place, message = error["loc"], problem_text(error, LIST_FORMS)
    if error["type"] == "json_invalid":
        place, message = ("body",), f"not JSON, at character {place[-1]}: {error['ctx']['error']}"
    elif place == ("body",) and not is_json:
        message = "expected an object of JSON, sent with the header Content-Type: application/json"
    return FieldProblem(field=message_of(".".join(map(str, place)), 200), message=message_of(message, 200))


def _add_operation(app: FastAPI, service: Service) -> None:
    @app.get("/health", response_model=Alive, tags=["operation"], summary="Whether the server runs")
    async def health() -> Alive:
        return Alive("alive")

    @app.get("/ready", response_model=State, tags=["operation"], summary="Whether questions can be answered")
    async def ready(request: Request) -> State:
        is_known = bool(request.scope["state"]["known"])

        def action() -> State:
            try:
                number = service.current().snapshot.number
            except RagAssetsError:
                if is_known:
                    raise
                raise Problem(503, "there is no version to ask; see the log", {"Retry-After": "10"}) from None
            problem = service.published.problem
            if problem is not None and not is_known:
                problem = "a newer version cannot be opened; see the log"
            return State("ready", number, problem)

        return await service.checking.run(action)

    @app.get("/metrics", response_class=Response, tags=["operation"], summary="Figures for Prometheus")
    async def metrics() -> Response:
        return Response(service.metrics.text(), media_type=service.metrics.content_type)


class _Files(StaticFiles):
    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        response = super().file_response(*args, **kwargs)
        response.headers.update(_ASK_AGAIN)
        return response


def _add_web_page(app: FastAPI) -> None:
    """Serve the web page; everything else must have its route already."""

    async def view() -> Response:
        return FileResponse(_WEB_FOLDER / "index.html", headers=_ASK_AGAIN)

    for path in _VIEWS:
        app.add_api_route(path, view, methods=["GET", "HEAD"], include_in_schema=False)
    app.mount("/", _Files(directory=_WEB_FOLDER), name="web")


def _describe(app: FastAPI, *, is_protected: bool) -> dict[str, Any]:
    """The OpenAPI description, in which operations tell of problems and fields of what they hold."""
    schema = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
    components = schema.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    details = ProblemDetails.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas |= details.pop("$defs", {})
    schemas["ProblemDetails"] = details
    describe_fields(schemas)
    problem = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}}
    for path, operations in schema["paths"].items():
        for operation in operations.values():
            responses = {status: {"description": text, "content": problem} for status, text in _PROBLEMS.items()}
            operation["responses"] = {**operation["responses"], **responses}
            if is_protected and path not in _OPEN:
                operation["security"] = [{"token": []}]
    if is_protected:
        components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    return schema
