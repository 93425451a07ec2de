"""Runs the app: opens the address, serves until it is asked to stop, and lets requests under way end first."""

import logging
import signal
import socket
from collections.abc import Callable

import uvicorn
from fastapi import FastAPI
from starlette.types import ASGIApp

from rag_assets.serve.api.connections import ConnectionLimits, limited_protocol
from rag_assets.serve.telemetry import log_to

_log = logging.getLogger(__name__)
_GRACE_SECONDS = 10
_BACKLOG = 2048
_IDLE_SECONDS = 30  # that a connection is kept without a request


def open_socket(host: str, port: int) -> socket.socket:
    """Open an address.

    Args:
        host: Name or address of an interface.
        port: The port; 0 for any that is free.

    Raises:
        OSError: It cannot be had; the message names it.
    """
    try:
        [(family, kind, protocol, _, address), *_] = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        opened = socket.socket(family, kind, protocol)
    except OSError as error:
        raise OSError(f"cannot serve on {host}: {error.strerror or error}") from error
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind(address)
    except OSError as error:
        opened.close()
        raise OSError(f"cannot serve on {host} port {port}: {error.strerror or error}") from error
    return opened


def address_of(opened: socket.socket) -> str:
    """The address for people, as in `http://127.0.0.1:8080`."""
    host, port = opened.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def server_config(app: ASGIApp, limits: ConnectionLimits, proxies: str = "") -> uvicorn.Config:
    """How an app is served; the word of `proxies`, addresses or networks parted by commas, on callers is taken."""
    return uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=True,
        backlog=_BACKLOG,
        timeout_graceful_shutdown=_GRACE_SECONDS,
        timeout_keep_alive=_IDLE_SECONDS,
        http=limited_protocol(limits),
        h11_max_incomplete_event_size=limits.header_bytes,
        proxy_headers=bool(proxies.strip()),
        forwarded_allow_ips=proxies,
        ws="none",
    )


def serve_app(app: FastAPI, opened: socket.socket, limits: ConnectionLimits, proxies: str = "") -> None:
    """Serve until SIGINT or SIGTERM, see `server_config`."""
    log_to()
    config = server_config(app, limits, proxies)
    # uvicorn raises a signal again when it is done: it has had its effect, and the status is 0
    before = {number: signal.signal(number, lambda *_: None) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        uvicorn.Server(config).run(sockets=[opened])
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def announce(opened: socket.socket, say: Callable[[str], None], path: str = "") -> Callable[[str | None], None]:
    """What to do when the app is ready: say in one line where what people look for is, or why it is not ready."""
    address = address_of(opened) + path

    def ready(problem: str | None) -> None:
        opened.listen(_BACKLOG)  # who comes from now on waits until the server accepts
        say(address if problem is None else f"{address} ({problem})")

    return ready
