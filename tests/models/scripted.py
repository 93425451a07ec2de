"""A loopback HTTP server that gives prepared replies, for faults that no real server can be made to show."""

import json
import socket
import threading
import time
from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self


@dataclass(frozen=True)
class Reply:
    """What is answered.

    Attributes:
        status: Status.
        json: Body, as JSON.
        body: Body, where it is no JSON.
        headers: Further headers.
        drop: Whether the connection is closed without an answer.
        delay_seconds: Wait before answering.
        trickle_seconds: Wait before each byte of the body.
    """

    status: int = 200
    json: object = None
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    drop: bool = False
    delay_seconds: float = 0.0
    trickle_seconds: float = 0.0


@dataclass(frozen=True)
class Received:
    """A request that came."""

    path: str
    headers: Mapping[str, str]
    json: dict[str, Any]


class ScriptedServer:
    """Gives the replies of each route in order, the last one for ever; 404 where there are none.

    Attributes:
        url: Its address, without `/v1`.
        received: The requests that came.
    """

    def __init__(self) -> None:
        self.received: list[Received] = []
        self._replies: dict[str, deque[Reply]] = defaultdict(deque)
        self._lock = threading.Lock()
        self._ended = threading.Event()
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                owner._answer(self)

            def do_GET(self) -> None:
                owner._answer(self)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                del format, args

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def replies(self, path: str, *replies: Reply) -> None:
        """Prepare the replies of a route."""
        self._replies[path].extend(replies)

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        length = int(handler.headers.get("content-length") or 0)
        body = json.loads(handler.rfile.read(length)) if length else {}
        with self._lock:
            self.received.append(Received(handler.path, dict(handler.headers.items()), body))
            waiting = self._replies[handler.path]
            missing = Reply(404, json={"error": {"message": "no such route"}})
            reply = (waiting.popleft() if len(waiting) > 1 else waiting[0]) if waiting else missing
        self._ended.wait(reply.delay_seconds)
        if reply.drop:
            handler.close_connection = True
            handler.connection.shutdown(socket.SHUT_RDWR)
            return
        try:
            self._write(handler, reply)
        except OSError:
            handler.close_connection = True

    def _write(self, handler: BaseHTTPRequestHandler, reply: Reply) -> None:
        content = reply.body if reply.body is not None else json.dumps(reply.json).encode()
        handler.send_response(reply.status)
        for name, value in {"content-type": "application/json", **reply.headers}.items():
            handler.send_header(name, value)
        handler.send_header("content-length", str(len(content)))
        handler.end_headers()
        if not reply.trickle_seconds:
            handler.wfile.write(content)
            return
        for byte in content:
            if self._ended.is_set():
                return
            time.sleep(reply.trickle_seconds)
            handler.wfile.write(bytes([byte]))
            handler.wfile.flush()
