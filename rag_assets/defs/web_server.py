"""The Dagster UI of a knowledge base behind a guard, as a program: `python -m rag_assets.defs.web_server FD`.

Dagster's web server asks nobody who they are, and starts runs for every page that a browser has open. Here stands what
is asked before. By which names a server may be called, and which pages are its own, is said in `contracts.exposure`.
"""

import asyncio
import hmac
import secrets
import signal
import socket
import sys
from urllib.parse import parse_qs

import click
import dagster as dg
import uvicorn
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import WorkspaceFileTarget
from dagster_webserver.app import create_app_from_workspace_process_context
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rag_assets.contracts.exposure import is_loopback, is_own_name, is_own_page, is_plain_path
from rag_assets.pipeline.instance import workspace_file
from rag_assets.pipeline.settings import load_settings
from rag_assets.serve.api.server import ConnectionLimits, address_of, limited_protocol
from rag_assets.serve.limits import ClientLimit, read_body
from rag_assets.serve.problems import Problem

_GRAPHQL = "/graphql"
_NO_LINKS = (_GRAPHQL, "/notebook")  # no pages that other sites may link to
_QUERY_TYPES = ("application/json", "application/graphql")  # which no page sends elsewhere without asking first
_WRONG_TOKENS_PER_MINUTE = 30  # of one client
_FORM_BYTES = 4096
_FORM_SECONDS = 5.0
_FORMS = 16  # that are read at once: nobody who sends one is known yet
_POLL_MILLISECONDS = 2000  # between two looks of the UI for new runs, as in `dagster-webserver`
_STATEMENT_MILLISECONDS, _RECYCLE_SECONDS, _OVERFLOW = 15_000, 3600, 20  # of database connections, as there
_GRACE_SECONDS = 5
_CLOSE = {"Connection": "close"}  # after a refusal
_SECURITY = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "SAMEORIGIN",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
_LOGIN = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>rag_assets</title>
<style>:root{color-scheme:light dark}body{font:16px system-ui;max-width:24em;margin:20vh auto;padding:0 1em}
input,button{font:inherit;padding:.4em;width:100%;box-sizing:border-box;margin-top:.5em}</style>
<main><h1>Dagster UI</h1><form method="post"><label for="token">Token (<code>RAG_API_TOKEN</code>)</label>
<input id="token" name="token" type="password" autocomplete="current-password" required autofocus>
<button>Open</button></form><p role="alert">PROBLEM</p></main></html>"""


class UiGuard:
    """The outermost layer of the UI, for pages, queries and WebSockets alike.

    Args:
        app: The UI.
        token: What must be shown: as `Authorization: Bearer TOKEN`, or once in the form that browsers are given; None
            where the address can only be reached from this machine.
        hosts: Names, beside those of this machine, under which the UI may be called.
        loopback: Whether the address can only be reached from this machine.
    """

    def __init__(self, app: ASGIApp, token: str | None, hosts: tuple[str, ...], *, loopback: bool) -> None:
        self._app = app
        self._token = token.encode() if token else None
        self._hosts, self._loopback = hosts, loopback
        self._session = secrets.token_urlsafe(32)  # what the cookie holds, until the server ends
        self._wrong_tokens = ClientLimit(_WRONG_TOKENS_PER_MINUTE)
        self._forms = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        try:
            self._check(scope)
            response = await self._admitted(scope, receive)
        except Problem as problem:
            response = PlainTextResponse(f"{problem.detail}\n", problem.status, problem.headers)
        if scope["type"] == "websocket":
            if response is None:
                await self._app(scope, receive, send)
            else:
                await send({"type": "websocket.close", "code": 1008})
            return
        await (response or self._app)(scope, receive, _secured(send))

    def _check(self, scope: Scope) -> None:
        """Refuse what other names and pages of other sites lead here.

        Raises:
            Problem: It is such a request.
        """
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if not is_plain_path(scope["path"]):
            raise Problem(400, "The path holds control characters.", _CLOSE)
        if not is_own_name(host, self._hosts, loopback=self._loopback):
            raise Problem(403, "The UI is not called by this name; see the setting serve.hosts.", _CLOSE)
        site = None if _is_link(scope, headers) else headers.get("sec-fetch-site")
        if not is_own_page(host, headers.get("origin"), site):
            raise Problem(403, "Pages of other sites may not ask here.", _CLOSE)
        if scope["type"] == "http" and scope["path"] == _GRAPHQL and _is_simple_query(scope, headers):
            raise Problem(415, f"Send queries by POST as {_QUERY_TYPES[0]}.", _CLOSE)

    async def _admitted(self, scope: Scope, receive: Receive) -> Response | None:
        """None for who may go on; what they are answered for others.

        Raises:
            Problem: Too many wrong tokens came from there.
        """
        if self._token is None:
            return None
        connection = HTTPConnection(scope)
        cookie = connection.cookies.get(_cookie_name(scope), "")
        if hmac.compare_digest(cookie.encode("utf-8", "replace"), self._session.encode()):
            return None
        kind, _, credentials = connection.headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            if self._is_token(scope, credentials.strip()):
                return None
        elif scope["type"] == "http" and connection.headers.get("content-type") == "application/x-www-form-urlencoded":
            if self._is_token(scope, await self._token_of_form(receive)):
                return self._opened(scope)
            return HTMLResponse(_LOGIN.replace("PROBLEM", "This is not the token."), 401)
        if "text/html" in connection.headers.get("accept", ""):
            return HTMLResponse(_LOGIN.replace("PROBLEM", ""), 401)
        refusal = "Send the header `Authorization: Bearer TOKEN`.\n"
        return PlainTextResponse(refusal, 401, {"WWW-Authenticate": 'Bearer realm="rag"'})

    async def _token_of_form(self, receive: Receive) -> str:
        if self._forms >= _FORMS:
            raise Problem(503, "Too many log in at once; try again.", _CLOSE)
        self._forms += 1
        try:
            async with asyncio.timeout(_FORM_SECONDS):
                too_large = Problem(413, f"Expected at most {_FORM_BYTES} bytes.", _CLOSE)
                form = await read_body(receive, _FORM_BYTES, too_large)
        except TimeoutError as error:
            raise Problem(408, f"Expected the form in {_FORM_SECONDS:g} seconds.", _CLOSE) from error
        finally:
            self._forms -= 1
        return parse_qs(form.decode("utf-8", "replace")).get("token", [""])[0]

    def _is_token(self, scope: Scope, credentials: str) -> bool:
        if self._token is not None and hmac.compare_digest(credentials.encode("utf-8", "replace"), self._token):
            return True
        self._wrong_tokens.check(scope["client"][0] if scope.get("client") else "")
        return False

    def _opened(self, scope: Scope) -> Response:
        path = "/" + scope.get("raw_path", b"/").decode("ascii", "replace").lstrip("/")  # never another server's
        query = scope["query_string"].decode("ascii", "replace")
        response = RedirectResponse(f"{path}?{query}" if query else path, 303)
        secure = scope["scheme"] == "https"
        response.set_cookie(_cookie_name(scope), self._session, secure=secure, httponly=True, samesite="strict")
        return response


def _cookie_name(scope: Scope) -> str:
    """Name of the cookie, which browsers send to all ports of a machine."""
    return f"rag_assets_ui_{scope['server'][1]}"


def _is_link(scope: Scope, headers: Headers) -> bool:
    """Whether a page of the UI is opened in a window of its own: links to it may stand anywhere."""
    return (
        scope["type"] == "http"
        and scope["method"] == "GET"
        and not scope["path"].startswith(_NO_LINKS)
        and headers.get("sec-fetch-mode") == "navigate"
        and headers.get("sec-fetch-dest") == "document"
    )


def _is_simple_query(scope: Scope, headers: Headers) -> bool:
    """Whether it is a query that pages, images and forms of other sites can send without asking first."""
    if scope["method"] == "POST":
        return not headers.get("content-type", "").startswith(_QUERY_TYPES)
    return "text/html" not in headers.get("accept", "")


def _secured(send: Send) -> Send:
    async def secure(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _SECURITY.items():
                headers.setdefault(name, value)
            headers.append("content-security-policy", "frame-ancestors 'self'; form-action 'self'")
        await send(message)

    return secure


def main() -> None:
    """Serve until SIGINT or SIGTERM on a socket that the parent process opened."""
    listener = socket.socket(fileno=int(sys.argv[1]))
    settings = load_settings().serve
    token = settings.token.get_secret_value() if settings.token else None
    limits = ConnectionLimits(settings.connections, settings.header_bytes, settings.header_seconds)
    loopback = is_loopback(listener.getsockname()[0])
    target = WorkspaceFileTarget([str(workspace_file())])
    with dg.DagsterInstance.get() as instance:
        instance.optimize_for_webserver(_STATEMENT_MILLISECONDS, _RECYCLE_SECONDS, _OVERFLOW)
        with WorkspaceProcessContext(instance, target, dg.__version__) as context:
            app = create_app_from_workspace_process_context(context, live_data_poll_rate=_POLL_MILLISECONDS)
            config = uvicorn.Config(
                UiGuard(app, token, settings.hosts, loopback=loopback),
                log_level="warning",
                server_header=False,
                forwarded_allow_ips=settings.proxies,
                http=limited_protocol(limits),
                h11_max_incomplete_event_size=limits.header_bytes,
                timeout_graceful_shutdown=_GRACE_SECONDS,
            )
            # uvicorn raises a signal again when it is done, which would leave the code server behind
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, lambda *_: None)
            listener.listen()  # who comes from now on waits
            click.echo(f"Dagster UI: {address_of(listener)}")
            uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
