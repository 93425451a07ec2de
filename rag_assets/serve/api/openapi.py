"""The OpenAPI description: every operation tells of the problems that it may answer with, every field what it holds."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from rag_assets.query.results import describe_fields
from rag_assets.serve.problems import MEDIA_TYPE, ProblemDetails

_ALWAYS = {
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


def describe(app: FastAPI, *, protected: bool) -> None:
    """Make the description of an app.

    Args:
        app: The app.
        protected: Whether callers show a token.
    """

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _described(app, protected=protected)
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def _described(app: FastAPI, *, protected: bool) -> dict[str, Any]:
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
            told = {status: {"description": text, "content": problem} for status, text in _ALWAYS.items()}
            operation["responses"] = {**operation["responses"], **told}
            if protected and path not in _OPEN:
                operation["security"] = [{"token": []}]
    if protected:
        components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    return schema
