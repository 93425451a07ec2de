"""Errors as callers are told them: problem details (RFC 9457), one form for all."""

import json
from collections.abc import Mapping
from types import MappingProxyType

from pydantic import BaseModel, Field
from starlette.responses import Response

from rag_assets.text.plain import message_of

MEDIA_TYPE = "application/problem+json"
_TITLES = {
    400: "The request cannot be answered as asked",
    401: "A token is needed",
    403: "Refused",
    404: "Not found",
    405: "Method not allowed",
    408: "The request took too long to arrive",
    413: "The request is too large",
    422: "The request is not of the form expected",
    429: "Too many requests",
    500: "Something went wrong here",
    502: "A model failed",
    503: "Not available now",
}


class FieldProblem(BaseModel):
    """What is wrong with one part of a request."""

    field: str = Field(description="The part, as in `query.k` or `body.filters.0`.")
    message: str = Field(description="What was expected.")


class ProblemDetails(BaseModel):
    """An error."""

    type: str = Field(description="Always `about:blank`: the status says what kind it is.")
    title: str = Field(description="What kind of error it is.")
    status: int = Field(description="The HTTP status.")
    detail: str = Field(description="What is wrong, in one line.")
    request_id: str = Field(description="Under which the request stands in the log.")
    errors: list[FieldProblem] = Field(default=[], description="What is wrong with parts of the request.")


class Problem(Exception):  # noqa: N818 - RFC 9457 names it so
    """An error to be told to the caller."""

    def __init__(
        self,
        status: int,
        detail: str,
        headers: Mapping[str, str] = MappingProxyType({}),
        errors: tuple[FieldProblem, ...] = (),
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = message_of(detail)
        self.headers = dict(headers)
        self.errors = errors

    def response(self, request_id: str) -> Response:
        """The response: its problem details."""
        details = ProblemDetails(
            type="about:blank",
            title=_TITLES.get(self.status, "Error"),
            status=self.status,
            detail=self.detail,
            request_id=request_id,
            errors=list(self.errors),
        )
        content = json.dumps(details.model_dump(mode="json"), ensure_ascii=False).encode("utf-8", "replace")
        return Response(content, self.status, self.headers, MEDIA_TYPE)
