"""Connections for hundreds of calls at once: kept open, closed in the end, not used where there is a proxy."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anthropic
import httpx2
import openai
import pytest
from anthropic import AsyncAnthropic

from rag_assets.models.anthropic.messages import open_async_client
from rag_assets.models.http_pools import LIMITS, ConnectionPools, connection_pools
from rag_assets.models.openai.endpoint import Endpoint

CALLS = 256


class Server:
    """Answers every request of a round when all of them have come, and counts connections."""

    def __init__(self) -> None:
        self.opened = 0
        self.open = 0
        self.waiting = 0
        self.all_came = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.opened += 1
        self.open += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                lengths = [line.split(b":")[1] for line in head.lower().splitlines() if b"content-length" in line]
                await reader.readexactly(sum(map(int, lengths)))
                came = self.all_came
                self.waiting += 1
                if self.waiting == CALLS:
                    self.waiting, self.all_came = 0, asyncio.Event()
                    came.set()
                await came.wait()
                body = json.dumps({"object": "list", "data": []}).encode()
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n")
                writer.write(b"content-length: %d\r\n\r\n%b" % (len(body), body))
        except (asyncio.IncompleteReadError, ConnectionResetError):
            pass
        finally:
            self.open -= 1
            writer.close()


@asynccontextmanager
async def served() -> AsyncIterator[tuple[Server, str]]:
    server = Server()
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0, backlog=1024)
    async with listening:
        yield server, f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"


def openai_client(url: str) -> openai.AsyncOpenAI:
    return Endpoint(f"{url}/v1", "key", 10.0).asynchronous_client()


def anthropic_client(url: str) -> AsyncAnthropic:
    return open_async_client("key", url, 10.0)


@pytest.mark.parametrize("make", [openai_client, anthropic_client])
def test_a_client_keeps_hundreds_of_connections(make: Callable[[str], openai.AsyncOpenAI | AsyncAnthropic]) -> None:
    async def run() -> None:
        async with served() as (server, url):
            client = make(url)
            for _ in range(3):
                await asyncio.gather(*(client.get("/any", cast_to=object) for _ in range(CALLS)))
            # Round robin over the pools: a call now and then finds no idle connection in its pool.
            assert CALLS <= server.opened <= CALLS * 1.2
            await client.close()
            for _ in range(100):
                await asyncio.sleep(0.01)
                if not server.open:
                    break
            assert server.open == 0

    asyncio.run(run())


@pytest.mark.parametrize("make", [openai_client, anthropic_client])
def test_a_proxy_of_the_environment_is_used(
    make: Callable[[str], openai.AsyncOpenAI | AsyncAnthropic], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bytes] = []

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readline())
        writer.write(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n")
        writer.close()

    async def run() -> None:
        async with await asyncio.start_server(proxy, "127.0.0.1", 0) as listening:
            monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}")
            monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}")
            client = make("http://models.example")
            with pytest.raises((openai.PermissionDeniedError, anthropic.PermissionDeniedError)):
                await client.get("/any", cast_to=object)
            await client.close()

    asyncio.run(run())
    assert asked
    assert asked[0].startswith(b"GET http://models.example/")


def test_without_a_proxy_calls_are_spread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag_assets.models.http_pools.getproxies", dict)
    assert isinstance(connection_pools(), ConnectionPools)
    monkeypatch.setattr("rag_assets.models.http_pools.getproxies", lambda: {"https": "http://proxy:3128"})
    assert connection_pools() is None
    assert httpx2.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=30.0) == LIMITS
