"""What connections may take before anything is known of the caller."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
import uvicorn
from api_server import TOKEN, RunningServer, running
from starlette.types import ASGIApp, Receive, Scope, Send

from rag_assets.serve.api.server import ConnectionLimits, open_socket, server_config

LIMITS = ConnectionLimits(connections=512, header_bytes=64 << 10, header_seconds=10.0)
BEGUN = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server with a token, on a knowledge base of which nothing is published yet."""
    folder = tmp_path_factory.mktemp("guarded")
    limits = {"RAG_SERVE__HEADER_SECONDS": "2", "RAG_SERVE__CONNECTIONS": "350"}
    with running(folder / "home", folder / "log.jsonl", RAG_API_TOKEN=TOKEN, **limits) as server:
        yield server


@contextmanager
def served(app: ASGIApp, limits: ConnectionLimits, proxies: str = "") -> Iterator[int]:
    """Port of an app that is served in this process."""
    with open_socket("127.0.0.1", 0) as opened:
        server = uvicorn.Server(server_config(app, limits, proxies))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [opened]})
        thread.start()
        try:
            while not server.started:
                time.sleep(0.01)
            yield opened.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join()


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=10)


def is_cut_off(client: socket.socket) -> bool:
    try:
        while client.recv(1 << 16):
            pass
    except ConnectionResetError:
        return True
    return True


def peak_bytes(process: int) -> int:
    [line] = [line for line in Path(f"/proc/{process}/status").read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) << 10


def test_headers_without_end_are_refused_and_take_no_memory(guarded: RunningServer) -> None:
    before, sent = peak_bytes(guarded.process.pid), 0
    with connected(httpx.URL(guarded.url).port or 0) as client:
        client.sendall(BEGUN)
        with pytest.raises(ConnectionError):
            while sent < 302_000_000:
                sent += client.send(b"x" * (1 << 16))
    assert sent < 16_000_000  # what the buffers of the system take
    assert peak_bytes(guarded.process.pid) - before < 8_000_000
    long = httpx.get(f"{guarded.url}/health", headers={"x-long": "x" * 400_000})
    assert long.status_code == 431
    assert httpx.get(f"{guarded.url}/health", headers={"x-long": "x" * 60_000}).status_code == 200


def test_half_sent_requests_are_cut_off_while_honest_ones_are_answered(guarded: RunningServer) -> None:
    port = httpx.URL(guarded.url).port or 0
    with ExitStack() as opened:
        began = time.monotonic()
        slow = [opened.enter_context(connected(port)) for _ in range(300)]
        for client in slow[:200]:  # the others say nothing at all
            client.sendall(BEGUN)
        assert httpx.get(f"{guarded.url}/health").status_code == 200
        for client in slow[:100]:
            client.sendall(b"x")
        assert all(is_cut_off(client) for client in slow)
        assert time.monotonic() - began < 20


def test_beyond_the_number_of_connections_the_oldest_that_waits_gives_way(guarded: RunningServer) -> None:
    port = httpx.URL(guarded.url).port or 0
    with ExitStack() as opened:
        waiting = [opened.enter_context(connected(port)) for _ in range(360)]
        assert httpx.get(f"{guarded.url}/health").status_code == 200
        assert all(is_cut_off(client) for client in waiting[:10])
        waiting[-1].sendall(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        assert waiting[-1].recv(1 << 16).startswith(b"HTTP/1.1 200")


def test_who_sends_a_body_without_a_token_is_answered_and_cut_off(guarded: RunningServer) -> None:
    with connected(httpx.URL(guarded.url).port or 0) as client:
        client.sendall(b"POST /api/v1/search HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n{")
        assert client.recv(1 << 16).startswith(b"HTTP/1.1 401")
        client.sendall(b" ")
        began = time.monotonic()
        assert is_cut_off(client)
        assert time.monotonic() - began < 20


def test_a_body_that_nobody_reads_is_not_waited_for(guarded: RunningServer) -> None:
    with connected(httpx.URL(guarded.url).port or 0) as client:
        began = time.monotonic()
        client.sendall(b"POST /nope HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\nab")
        assert client.recv(1 << 16).startswith(b"HTTP/1.1 40")
        assert time.monotonic() - began < 10


def test_a_long_head_that_comes_at_once_is_refused(guarded: RunningServer) -> None:
    with connected(httpx.URL(guarded.url).port or 0) as client:
        client.sendall(BEGUN + b"x" * 100_000 + b"\r\n\r\n")
        assert client.recv(1 << 16).startswith(b"HTTP/1.1 431")


@pytest.mark.parametrize("answered_before", [False, True])
def test_a_long_head_whose_end_comes_later_is_refused(guarded: RunningServer, answered_before: bool) -> None:
    with connected(httpx.URL(guarded.url).port or 0) as client:
        if answered_before:
            client.sendall(BEGUN + b"\r\n\r\n")
            answer = b""
            while not answer.endswith(b"}"):
                answer += client.recv(1 << 16)
            assert answer.startswith(b"HTTP/1.1 200")
        client.sendall(BEGUN + b"x" * 60_000)
        time.sleep(0.3)  # the server has read it
        client.sendall(b"x" * 40_000 + b"\r\n\r\n")
        assert client.recv(1 << 16).startswith(b"HTTP/1.1 431")


@pytest.mark.parametrize(
    "path",
    [
        *("/mcp%0a", "/metrics%0A", "/api/v1/documents%0a", "/%00", "/mcp%7f"),
        *("/api/v1/documents/a%00", "/pages/a%00/1", "/api/v1/entities/a%0a", "/%0a/api/v1/documents/a", "/mcp/%0a"),
    ],
)
def test_paths_that_routes_read_otherwise_than_the_guard_are_refused(guarded: RunningServer, path: str) -> None:
    for method in ("GET", "POST"):
        assert httpx.request(method, f"{guarded.url}{path}", json={}).status_code == 400


@pytest.mark.parametrize(
    ("request_bytes", "answer"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", b"HTTP/1.1 400"),
        (b"nonsense\r\n\r\n", b"HTTP/1.1 400"),
        (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", b"HTTP/1.1 400"),
    ],
)
def test_what_is_no_http_is_refused(guarded: RunningServer, request_bytes: bytes, answer: bytes) -> None:
    with connected(httpx.URL(guarded.url).port or 0) as client:
        client.sendall(request_bytes)
        found = client.recv(1 << 16)
        assert found.startswith((answer, b"HTTP/1.1 403"))
        assert is_cut_off(client)


def test_who_does_not_read_the_response_is_cut_off() -> None:
    ended = threading.Event()

    async def endless(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(10_000):
            await send({"type": "http.response.body", "body": b"x" * (1 << 16), "more_body": True})
        ended.set()

    with served(endless, replace(LIMITS, stall_seconds=0.5)) as port, connected(port) as client:
        client.sendall(BEGUN + b"\r\n\r\n")
        assert ended.wait(10), "the app is not let go"


@pytest.mark.parametrize(("proxies", "expected"), [("", "127.0.0.1"), ("127.0.0.1", "203.0.113.9")])
def test_who_asks_is_told_by_proxies_that_are_named_only(proxies: str, expected: str) -> None:
    async def tell(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": scope["client"][0].encode()})

    with served(tell, LIMITS, proxies) as port:
        response = httpx.get(f"http://127.0.0.1:{port}", headers={"x-forwarded-for": "203.0.113.9"})
    assert response.text == expected
