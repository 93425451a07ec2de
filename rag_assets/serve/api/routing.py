"""What the routes share: threads that read and search while the caller waits, JSON, and a check of parameters."""

import asyncio
import json
from collections.abc import Callable
from typing import Any, TypeVar

from fastapi import Request
from fastapi.dependencies.utils import get_flat_params
from fastapi.params import Query
from fastapi.routing import APIRoute
from pydantic_core import PydanticSerializationError
from starlette.convertors import PathConvertor, register_url_convertor
from starlette.responses import Response

from rag_assets.query.cancellation import Cancellation
from rag_assets.query.contents.contents import Contents
from rag_assets.query.published import OpenVersion
from rag_assets.query.results import adapter_of
from rag_assets.serve.limits import WorkerThreads
from rag_assets.serve.problems import FieldProblem, Problem
from rag_assets.serve.service import Service

_T = TypeVar("_T")
LOOK_SECONDS = 0.5  # between two looks at whether the caller still waits


class _DocumentIds(PathConvertor):
    """Also of files with a line break in their name."""

    regex = "(?s:.*)"


register_url_convertor("id", _DocumentIds())


async def read(service: Service, kind: Any, find: Callable[[Contents], object | None], missing: str = "") -> Response:
    """Read from the published version, as JSON.

    Raises:
        Problem: There is none.
    """

    def action() -> Response:
        version = service.current()
        value = find(version.contents)
        if value is None:
            raise Problem(404, missing)
        return json_response(value, version, kind)

    return await service.reading.run(action)


async def while_waited(threads: WorkerThreads, request: Request, action: Callable[[Cancellation], _T]) -> _T:
    """Search or answer in a thread, as long as the caller waits.

    Raises:
        Problem: Too many wait, or the caller is gone.
    """
    cancellation = Cancellation()
    work = asyncio.ensure_future(threads.run(lambda: action(cancellation), cancellation))
    try:
        while not (await asyncio.wait({work}, timeout=LOOK_SECONDS))[0]:
            if await request.is_disconnected():
                raise Problem(503, "the caller is gone")
        return work.result()
    finally:
        work.cancel()


def version_header(version: OpenVersion) -> dict[str, str]:
    """Which version a response is of."""
    return {"X-Snapshot": str(version.snapshot.number)}


def json_bytes(value: Any, kind: Any = None) -> bytes:
    """A result as JSON; text that is no Unicode, as a model may write it, is mended."""
    adapter = adapter_of(kind or type(value))
    try:
        return adapter.dump_json(value, by_alias=True)
    except PydanticSerializationError:
        content = adapter.dump_python(value, mode="json", by_alias=True)
        return json.dumps(content, ensure_ascii=False).encode("utf-8", "replace")


def json_response(value: Any, version: OpenVersion, kind: Any = None) -> Response:
    """A response of JSON, see `json_bytes`."""
    return Response(json_bytes(value, kind), media_type="application/json", headers=version_header(version))


def note(request: Request, **facts: object) -> None:
    """Add facts to the log line of a request; never text of queries or documents."""
    request.scope["state"].setdefault("noted", {}).update(facts)


def check_parameters(request: Request) -> None:
    """Refuse a parameter in an address that its route does not know: it may be a filter that is spelt wrong.

    Raises:
        Problem: There is one.
    """
    route = request.scope["route"]
    assert isinstance(route, APIRoute)
    parameter_names = [field.alias for field in get_flat_params(route.dependant) if isinstance(field.field_info, Query)]
    unknown = [name for name in dict.fromkeys(request.query_params) if name not in parameter_names]
    if unknown:
        message = (
            f"unknown parameter, expected one of {', '.join(parameter_names)}"
            if parameter_names
            else "expected no parameters"
        )
        errors = tuple(FieldProblem(field=f"query.{name}"[:200], message=message) for name in unknown[:100])
        raise Problem(422, f"{errors[0].field}: {message}", errors=errors)
