"""The client of the official SDK, kept open in a thread of its own, so that tests need no event loop."""

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from mcp import Client
from mcp.types import CallToolResult

_T = TypeVar("_T")
_SECONDS = 60


class Agent:
    """An open client.

    Args:
        client: The client.
        loop: Where it runs.
    """

    def __init__(self, client: Client, loop: asyncio.AbstractEventLoop) -> None:
        self.client = client
        self._loop = loop

    def wait(self, action: Coroutine[Any, Any, _T]) -> _T:
        """Run something of the client to its end."""
        return asyncio.run_coroutine_threadsafe(action, self._loop).result(_SECONDS)

    def call(self, tool: str, /, **arguments: Any) -> CallToolResult:
        """The result of a tool, whatever it is; the client holds structured results against the tool's schema."""
        return self.wait(self.client.call_tool(tool, arguments))

    def given(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """The structured result of a tool that succeeds."""
        result = self.call(tool, **arguments)
        assert not result.is_error, result.content
        found: dict[str, Any] = result.structured_content
        return found

    def refusal(self, tool: str, /, **arguments: Any) -> str:
        """What a tool that fails says of it."""
        result = self.call(tool, **arguments)
        assert result.is_error
        [content] = result.content
        assert content.type == "text"
        assert "Traceback" not in content.text
        assert "\n" not in content.text
        return content.text


@contextmanager
def connected(server: Any, mode: str = "auto") -> Iterator[Agent]:
    """A client of a server, over the transport that the server stands for."""
    ready, leave, loop = threading.Event(), asyncio.Event(), asyncio.new_event_loop()
    opened: list[Agent] = []
    failures: list[BaseException] = []

    async def hold() -> None:
        async with Client(server, mode=mode, read_timeout_seconds=_SECONDS) as client:
            opened.append(Agent(client, loop))
            ready.set()
            await leave.wait()

    def run() -> None:
        try:
            loop.run_until_complete(hold())
        except BaseException as error:  # noqa: BLE001 - told to the test below
            failures.append(error)
        finally:
            ready.set()
            loop.close()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert ready.wait(_SECONDS)
        if failures:
            raise failures[0]
        yield opened[0]
    finally:
        if not loop.is_closed():
            loop.call_soon_threadsafe(leave.set)
        thread.join(_SECONDS)
