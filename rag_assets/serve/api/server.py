"""Runs the app: opens the address, serves until it is asked to stop, and lets requests under way end first.

Limits on connections hold before anything is known of the caller: how many are open, how large the head of a request
is, and how long a client may keep the server waiting. Whoever sends half a request, sends it drop by drop, or does not
read the response is cut off. Where all places are taken, the connection that has kept the server waiting longest gives
up its own. What stays out: bodies of requests, which the guard reads (`rag_assets.serve.api.guard`).
"""

import asyncio
import re
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

import h11
import uvicorn
from fastapi import FastAPI
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from rag_assets.serve.telemetry import log_to_stderr

_GRACE_SECONDS = 10
_BACKLOG = 2048
_IDLE_SECONDS = 30  # that a connection is kept without a request
_HEAD_END = re.compile(rb"\n\r?\n")
_LOOK_SECONDS = 1.0
_CLOSING = b"connection: close\r\ncontent-length: 0\r\n\r\n"
_REFUSED = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 2\r\n" + _CLOSING
_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\n" + _CLOSING


@dataclass(frozen=True)
class ConnectionLimits:
    """What connections may take."""

    connections: int  # connections that are open at once
    header_bytes: int  # size of the request line and headers together
    header_seconds: float  # time in which they arrive
    stall_seconds: float = 30.0  # time for which a client may read nothing of a response


def limited_protocol(limits: ConnectionLimits) -> type[asyncio.Protocol]:
    """The protocol for one server, whose connections share the limits."""

    class Limited(_Connection):
        _limits = limits
        _open: ClassVar[dict[_Connection, None]] = {}

    return Limited


class _Connection(H11Protocol):
    """A connection. h11 bounds the head of a request and what else it keeps; this bounds time and number."""

    _limits: ClassVar[ConnectionLimits]
    _open: ClassVar[dict["_Connection", None]]  # in the order in which they were opened

    def __init__(
        self,
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._owes_since: float | None = self.loop.time()  # since when the client owes the head of a request
        self._unread_bytes = 0
        self._read_at = self.loop.time()
        self._look: asyncio.TimerHandle | None = None

    @property
    def serves(self) -> bool:
        """Whether a response is under way."""
        return self.cycle is not None and not self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._open[self] = None
        if len(self._open) > self._limits.connections and not self._make_room():
            transport.write(_REFUSED)
            transport.close()
        self._look_again()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.conn.their_state is h11.IDLE and self._is_too_large(data):
            self.transport.write(_TOO_LARGE)
            self.transport.close()
            return
        before = self.cycle
        super().data_received(data)
        if self.cycle is not before:
            self._owes_since = None
        elif not self.serves and self._owes_since is None:
            self._owes_since = self.loop.time()

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        self._forget()
        super().handle_websocket_upgrade(event)

    def send_400_response(self, msg: str) -> None:
        if self.conn.our_state not in {h11.IDLE, h11.SEND_RESPONSE}:  # a response is under way
            self.transport.abort()
        elif len(self.conn.trailing_data[0]) > self._limits.header_bytes:
            self.transport.write(_TOO_LARGE)
            self.transport.close()
        else:
            super().send_400_response(msg)

    def _forget(self) -> None:
        self._open.pop(self, None)
        if self._look is not None:
            self._look.cancel()

    def _is_too_large(self, data: bytes) -> bool:
        """Whether the head of a request goes beyond its limit with these bytes: h11 takes one whose end has come."""
        head = self.conn.trailing_data[0] + data
        if len(head) <= self._limits.header_bytes:
            return False
        return _HEAD_END.search(head[: self._limits.header_bytes]) is None

    def _make_room(self) -> bool:
        """Cut off the oldest other connection that serves no request."""
        for connection in self._open:
            if connection is not self and not connection.serves:
                connection.transport.abort()
                del self._open[connection]
                return True
        return False

    def _look_again(self) -> None:
        """Cut the connection off where the client has kept it waiting for too long."""
        now = self.loop.time()
        unread = self.transport.get_write_buffer_size()
        if unread != self._unread_bytes or not unread:
            self._unread_bytes, self._read_at = unread, now
        late = self._owes_since is not None and now - self._owes_since > self._limits.header_seconds
        if late or now - self._read_at > self._limits.stall_seconds:
            self.transport.abort()
        else:
            self._look = self.loop.call_later(_LOOK_SECONDS, self._look_again)


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
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise OSError(f"cannot serve on {host}: {error.strerror or error}") from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        listener.close()
        raise OSError(f"cannot serve on {host} port {port}: {error.strerror or error}") from error
    return listener


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
    log_to_stderr()
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
        with suppress(OSError):  # it was closed: the server ends
            opened.listen(_BACKLOG)  # who comes from now on waits until the server accepts
        say(address if problem is None else f"{address} ({problem})")

    return ready
