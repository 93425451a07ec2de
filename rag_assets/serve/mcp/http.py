"""The protocol over HTTP (streamable HTTP), on the app of the HTTP API: its guard, limits, threads and figures hold."""

from contextlib import AbstractAsyncContextManager

from fastapi import FastAPI
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from rag_assets.serve.mcp.server import create_server
from rag_assets.serve.service import Service

PATH = "/mcp"
_SESSIONS = 1000
_IDLE_SECONDS = 30 * 60.0


def attach(app: FastAPI, service: Service) -> AbstractAsyncContextManager[None]:
    """Add the route of the protocol to the app.

    Args:
        app: The app of the HTTP API; its guard checks tokens, names of the server and other sites.
        service: What its routes share.

    Returns:
        What is to be open while the app runs.
    """
    manager = StreamableHTTPSessionManager(
        create_server(service),
        security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),  # the guard does it
        max_request_body_size=service.options.request_bytes,
        session_idle_timeout=_IDLE_SECONDS,
        max_sessions=_SESSIONS,
    )
    endpoint = _Endpoint(manager)
    endpoint.route = Route(PATH, endpoint)
    app.router.routes.append(endpoint.route)
    return manager.run()


class _Endpoint:
    """Hands requests to the protocol, and names their route for the log and the figures of the guard.

    Args:
        manager: Answers them.
    """

    route: Route

    def __init__(self, manager: StreamableHTTPSessionManager) -> None:
        self._manager = manager

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["route"] = self.route
        await self._manager.asgi_app(scope, receive, send)
