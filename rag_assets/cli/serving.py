"""Commands that serve the knowledge base to others: `serve`, `mcp`."""

import threading
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from typing import TYPE_CHECKING

import click

from rag_assets.cli.console import open_home, say

if TYPE_CHECKING:
    from fastapi import FastAPI

    from rag_assets.pipeline.home import Home
    from rag_assets.serve.service import ServeOptions, Service


@click.command()
@click.option("--host", help="Interface [setting serve.host].")
@click.option("--port", type=click.IntRange(0, 65535), help="Port [setting serve.port].")
@click.pass_context
def serve(context: click.Context, host: str | None, port: int | None) -> None:
    """Serve the HTTP API and the web page on this knowledge base."""
    serve_home(open_home(context), host, port)


@click.command()
@click.option("--http", is_flag=True, help="Serve by HTTP at /mcp, beside the HTTP API and the web page.")
@click.option("--host", help="With --http: interface [setting serve.host].")
@click.option("--port", type=click.IntRange(0, 65535), help="With --http: port [setting serve.port].")
@click.pass_context
def mcp(context: click.Context, host: str | None, port: int | None, *, http: bool) -> None:
    """Serve this knowledge base to agents over the Model Context Protocol, on standard input and output or by HTTP."""
    if not http and (host is not None or port is not None):
        raise click.UsageError("--host and --port go with --http", ctx=context)
    home = open_home(context)
    if http:
        from rag_assets.serve.mcp.server import PATH, attach

        serve_home(home, host, port, attach, PATH)
        return
    from rag_assets.pipeline.opening import published
    from rag_assets.query.contents.page_images import PageImages
    from rag_assets.serve.mcp.server import serve_stdio
    from rag_assets.serve.service import Service

    images = PageImages(lambda: source_folders(home))
    serve_stdio(Service(published(home), images, serve_options(home, "127.0.0.1")))


def serve_home(
    home: "Home",
    host: str | None,
    port: int | None,
    more: "Callable[[FastAPI, Service], AbstractAsyncContextManager[None]] | None" = None,
    path: str = "",
) -> None:
    """Serve until SIGINT or SIGTERM; when ready, print the address.

    Args:
        home: The knowledge base.
        host: Interface; None for that of the settings.
        port: Port; None for that of the settings.
        more: Adds routes of another protocol, see `create_app`.
        path: Where these routes are, printed with the address.

    Raises:
        SettingsError: The address can be reached from elsewhere, and there is no token.
        OSError: It cannot be had.
    """
    settings = home.settings.serve
    token = settings.token.get_secret_value() if settings.token else None
    address = host or settings.host
    from rag_assets.contracts.exposure import check_exposure

    check_exposure(address, token)
    threading.Thread(target=_load_models, args=(home,), name="load-models", daemon=True).start()
    from rag_assets.pipeline.opening import published
    from rag_assets.serve.api.app import create_app
    from rag_assets.serve.api.server import ConnectionLimits, announce, open_socket, serve_app

    with open_socket(address, settings.port if port is None else port) as listener:
        ready = announce(listener, say, path)
        app = create_app(published(home), serve_options(home, address), lambda: source_folders(home), ready, more)
        limits = ConnectionLimits(settings.connections, settings.header_bytes, settings.header_seconds)
        serve_app(app, listener, limits, settings.proxies)


def _load_models(home: "Home") -> None:
    """Load the models while other things are loaded: half of the time of a start."""
    from rag_assets.contracts.errors import RagAssetsError
    from rag_assets.contracts.ports import EmbeddingKind, PlacedStatement

    with suppress(RagAssetsError):  # the first search tells of it
        home.embedder.embed(["warm up"], EmbeddingKind.QUERY)
        if home.language_model_name == "extractive":  # else it is wanted only where the model that writes fails
            home.answer_scorer.score("warm up", [PlacedStatement("warm up")])


def serve_options(home: "Home", host: str) -> "ServeOptions":
    """Limits and defaults of the settings, for an address that is served."""
    from rag_assets.contracts.exposure import is_loopback
    from rag_assets.pipeline.measuring import clicks_file, feedback_file
    from rag_assets.pipeline.steps import worker_count
    from rag_assets.serve.service import ServeOptions
    from rag_assets.serve.sql.reader import SqlLimits

    settings = home.settings.serve
    return ServeOptions(
        token=settings.token.get_secret_value() if settings.token else None,
        loopback=is_loopback(host),
        hosts=settings.hosts,
        requests_per_minute=settings.requests_per_minute,
        request_bytes=settings.request_bytes,
        search_workers=worker_count(settings.search_workers),
        ask_workers=settings.ask_workers,
        sql_workers=settings.sql_workers,
        waiting=settings.waiting,
        sql=SqlLimits(settings.sql_seconds, settings.sql_rows, settings.sql_memory_bytes, settings.sql_result_bytes),
        defaults=home.options.search_defaults,
        feedback=feedback_file(home),
        clicks=clicks_file(home),
    )


def source_folders(home: "Home") -> dict[str, str]:
    """Local folder of each source, by name."""
    return {source.name: source.location for source in home.sources() if source.is_local}
