"""The protocol over standard input and output. Nothing else is written there; the log goes to standard error."""

import asyncio
import signal
from contextlib import suppress

from mcp.server.stdio import stdio_server

from rag_assets.contracts.errors import RagAssetsError
from rag_assets.serve.api.logs import log_to
from rag_assets.serve.api.problems import Problem
from rag_assets.serve.mcp.server import create_server
from rag_assets.serve.service import Service


def serve_stdio(service: Service) -> None:
    """Serve one client until it closes its side.

    Args:
        service: The published versions, limits and threads; closed at the end.
    """
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
    """Open the published version and search once, so that the first call does not wait."""
    with suppress(RagAssetsError, Problem):  # the first call tells of it
        await service.searching.run(lambda: service.current().base.search("warm up", "hybrid", 1))
