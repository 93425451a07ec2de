"""The protocol over standard input and output, and over HTTP on the app of the HTTP API.

Nothing else is written to standard output; the log goes to standard error. Over HTTP (streamable HTTP), the guard,
limits, threads and figures of the app hold.
"""

import asyncio
import signal
from contextlib import AbstractAsyncContextManager, suppress

from fastapi import FastAPI
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from rag_assets.contracts.errors import RagAssetsError
from rag_assets.serve.mcp.server import create_server
from rag_assets.serve.problems import Problem
from rag_assets.serve.service import Service
from rag_assets.serve.telemetry import log_to

PATH = "/mcp"
_SESSIONS = 1000
_IDLE_SECONDS = 30 * 60.0


def attach(app: FastAPI, service: Service) -> AbstractAsyncContextManager[None]:
    """Add the route of the protocol to the app of the HTTP API, and give what is to be open while it runs.

    The guard of the app checks tokens, names of the server and other sites.
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
    """Hands requests to the protocol, and names their route for the log and the figures of the guard."""

    route: Route

    def __init__(self, manager: StreamableHTTPSessionManager) -> None:
        self._manager = manager

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["route"] = self.route
        await self._manager.asgi_app(scope, receive, send)


def serve_stdio(service: Service) -> None:
    """Serve one client until it closes its side; the service is closed then."""
    log_to()
    # Control-C ends the process at once: Python's own handler would wait for the thread that reads the input
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        asyncio.run(_serve(service))
    finally:
        signal.signal(signal.SIGINT, before)
        service.close()


async def _serve(service: Service) -> None:
    server = create_server(service)
    async with stdio_server() as (incoming, outgoing):
        warming = asyncio.create_task(_warm_up(service))
        await server.run(incoming, outgoing, server.create_initialization_options())
        warming.cancel()


async def _warm_up(service: Service) -> None:
    with suppress(RagAssetsError, Problem):  # the first call tells of it
        await service.searching.run(service.warm_up)
