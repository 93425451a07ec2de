"""What every request passes first: its id, who asks and from where, how often, how much; and the log afterwards.

Written against ASGI itself, so that streams pass through it unbuffered.
"""

import asyncio
import hmac
import logging
import re
import time
import uuid
from dataclasses import dataclass
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rag_assets.contracts.exposure import is_own_name, is_own_page, is_plain_path
from rag_assets.serve.limits import ClientLimit, read_body
from rag_assets.serve.problems import Problem
from rag_assets.serve.service import ServeOptions
from rag_assets.serve.telemetry import REQUESTS, Metrics

_log = logging.getLogger(REQUESTS)
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_WITH_BODY = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_METHODS = _WITH_BODY | {"GET", "HEAD", "OPTIONS"}
_BODY_SECONDS = 30.0
_OF_DOCUMENT = re.compile(r"(/api/v1)?/(documents|pages)/[^\0]+")  # files may have any other character in their names
_SECURITY = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
        "font-src 'self'; manifest-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


def is_protected(path: str) -> bool:
    """Whether a path holds data: the API, the figures, and agents' protocol; not the files of the web page."""
    return path in {"/metrics", "/mcp"} or path.startswith(("/api/", "/mcp/"))


@dataclass
class _Passing:
    """A request on its way, since `began` by `time.perf_counter`; its status is 0 before the response starts."""

    request_id: str
    began: float
    status: int = 0


class Guard:
    """The outermost layer of the app; it counts every request."""

    def __init__(self, app: ASGIApp, options: ServeOptions, metrics: Metrics) -> None:
        self._app = app
        self._options = options
        self._metrics = metrics
        self._rate = ClientLimit(options.requests_per_minute)
        self._token = options.token.encode() if options.token else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        headers = Headers(scope=scope)
        request_id = headers.get("x-request-id", "")
        passing = _Passing(request_id if _REQUEST_ID.fullmatch(request_id) else uuid.uuid4().hex, time.perf_counter())
        scope.setdefault("state", {})["request_id"] = passing.request_id
        answer = self._answering(scope, send, passing)
        try:
            self._check(scope, headers)
            if scope["method"] in _WITH_BODY and is_protected(scope["path"]):  # nothing else reads one
                receive = await self._with_body(receive, headers)
            await self._app(scope, receive, answer)
        except Problem as problem:
            await problem.response(passing.request_id)(scope, receive, answer)
        except Exception as error:  # noqa: BLE001 - the last one who can answer
            _log.exception("request", extra={"request": {"request_id": passing.request_id, "event": "failed"}})
            self._metrics.errors.labels(type(error).__name__).inc()
            if passing.status == 0:
                response = Problem(500, "the request failed; see the log").response(passing.request_id)
                await response(scope, receive, answer)
        finally:
            self._note(scope, passing)

    def _check(self, scope: Scope, headers: Headers) -> None:
        if not is_own_name(headers.get("host", ""), self._options.hosts, loopback=self._options.loopback):
            raise Problem(403, "the server is not called by this name; see the setting serve.hosts")
        if not (is_plain_path(scope["path"]) or _OF_DOCUMENT.fullmatch(scope["path"])):
            raise Problem(400, "the path holds control characters")
        scope["state"]["known"] = self._token is None or self._shows(headers, self._token)
        if not is_protected(scope["path"]):
            return
        # what pages of other sites send is refused; links to the page itself may stand anywhere
        navigates = scope["method"] == "GET" and headers.get("sec-fetch-mode") == "navigate"
        site = None if navigates else headers.get("sec-fetch-site")
        if not is_own_page(headers.get("host", ""), headers.get("origin"), site):
            raise Problem(403, "pages of other sites may not ask here")
        self._rate.check(scope["client"][0] if scope.get("client") else "")
        if not scope["state"]["known"]:
            raise Problem(
                401, "send the header `Authorization: Bearer TOKEN`", {"WWW-Authenticate": 'Bearer realm="rag"'}
            )

    @staticmethod
    def _shows(headers: Headers, token: bytes) -> bool:
        kind, _, credentials = headers.get("authorization", "").partition(" ")
        right = hmac.compare_digest(credentials.strip().encode("utf-8", "replace"), token)
        return right and kind.lower() == "bearer"

    async def _with_body(self, receive: Receive, headers: Headers) -> Receive:
        """Read the body, as far as it is allowed to go, and give it back as if it came then."""
        limit = self._options.request_bytes
        too_large = Problem(413, f"expected at most {limit} bytes", {"Connection": "close"})
        length = headers.get("content-length", "0")
        if length.isdigit() and int(length) > limit:
            raise too_large
        try:
            async with asyncio.timeout(_BODY_SECONDS):
                body = await read_body(receive, limit, too_large)
        except TimeoutError as error:
            late = f"expected the whole request in {_BODY_SECONDS:g} seconds"
            raise Problem(408, late, {"Connection": "close"}) from error
        whole: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def again() -> Message:
            return whole.pop() if whole else await receive()

        return again

    def _answering(self, scope: Scope, send: Send, passing: _Passing) -> Send:
        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                passing.status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in _SECURITY.items():
                    headers.setdefault(name, value)
                headers["x-request-id"] = passing.request_id
                if is_protected(scope["path"]):
                    headers.setdefault("cache-control", "no-store")
            await send(message)

        return answer

    def _note(self, scope: Scope, passing: _Passing) -> None:
        seconds = time.perf_counter() - passing.began
        # the pattern, as in `/api/v1/documents/{document_id}`: the path itself names documents
        route = str(getattr(scope.get("route"), "path", None) or "other")
        method = scope["method"] if scope["method"] in _METHODS else "other"
        self._metrics.requests.labels(method, route, str(passing.status)).inc()
        self._metrics.request_seconds.labels(route).observe(seconds)
        facts: dict[str, Any] = {
            "event": "request",
            "request_id": passing.request_id,
            "method": method,
            "route": route,
            "status": passing.status,
            "milliseconds": round(seconds * 1000, 3),
            "client": scope["client"][0] if scope.get("client") else None,
            **scope["state"].get("noted", {}),
        }
        _log.info("request", extra={"request": facts})
