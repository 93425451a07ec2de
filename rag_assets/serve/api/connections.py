"""Limits on connections before anything is known of the caller: how many are open, how large the head of a request is,
and how long a client may keep the server waiting.

Whoever sends half a request, sends it drop by drop, or does not read the response is cut off. Where all places are
taken, the connection that has kept the server waiting longest gives up its own. What stays out: bodies of requests,
which the guard reads (`rag_assets.serve.api.guard`).
"""

import asyncio
from dataclasses import dataclass
from typing import Any, ClassVar

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

_LOOK_SECONDS = 1.0
_CLOSING = b"connection: close\r\ncontent-length: 0\r\n\r\n"
_REFUSED = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 2\r\n" + _CLOSING
_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\n" + _CLOSING


@dataclass(frozen=True)
class ConnectionLimits:
    """What connections may take.

    Attributes:
        connections: Connections that are open at once.
        header_bytes: Size of the request line and headers together.
        header_seconds: Time in which they arrive.
        stall_seconds: Time for which a client may read nothing of a response.
    """

    connections: int
    header_bytes: int
    header_seconds: float
    stall_seconds: float = 30.0


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
        config: Config,
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
        start = head[: self._limits.header_bytes]
        return b"\r\n\r\n" not in start and b"\n\n" not in start

    def _make_room(self) -> bool:
        """Cut off the oldest other connection that serves no request."""
        for each in self._open:
            if each is not self and not each.serves:
                each.transport.abort()
                del self._open[each]
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
