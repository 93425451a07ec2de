"""Runs the app: opens the address, serves until it is asked to stop, and lets requests under way end first."""

import logging
import signal
import socket
from collections.abc import Callable

import uvicorn
from fastapi import FastAPI

from rag_assets.query.api.logs import log_to

_log = logging.getLogger(__name__)
_GRACE_SECONDS = 10
_BACKLOG = 2048


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


def serve_app(app: FastAPI, opened: socket.socket, proxies: str = "127.0.0.1") -> None:
    """Serve until SIGINT or SIGTERM.

    Args:
        app: The app.
        opened: Where it is served.
        proxies: Addresses of proxies whose word on the caller's address is taken, parted by commas.
    """
    log_to()
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=True,
        backlog=_BACKLOG,
        timeout_graceful_shutdown=_GRACE_SECONDS,
        timeout_keep_alive=30,
        h11_max_incomplete_event_size=64 << 10,
        forwarded_allow_ips=proxies,
        ws="none",
    )
    # uvicorn raises a signal again when it is done: it has had its effect, and the status is 0
    before = {number: signal.signal(number, lambda *_: None) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        uvicorn.Server(config).run(sockets=[opened])
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def announce(opened: socket.socket, say: Callable[[str], None], path: str = "") -> Callable[[str | None], None]:
    """What to do when the app is ready: say where it is, in one line.

    Args:
        opened: Where it is served.
        say: Says it.
        path: What people look for there.
    """
    address = address_of(opened) + path

    def ready(problem: str | None) -> None:
        say(address if problem is None else f"{address} ({problem})")

    return ready
