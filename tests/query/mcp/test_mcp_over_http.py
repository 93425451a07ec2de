"""The SDK's client against the real server over streamable HTTP: who may ask, and which version answers."""

import shutil
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
from api_server import TOKEN, RunningServer, running
from click.testing import CliRunner
from mcp.client.streamable_http import streamable_http_client
from mcp_client import connected

from rag_assets.cli import main
from rag_assets.pipeline.home import Home
from rag_assets.pipeline.settings import load_settings

AUTHORIZATION = {"authorization": f"Bearer {TOKEN}"}
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
ACCEPT = {"accept": "application/json, text/event-stream"}


@pytest.fixture(scope="module")
def moved(sample_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A knowledge base whose versions a test may change."""
    folder = tmp_path_factory.mktemp("mcp") / "home"
    shutil.copytree(sample_home, folder, symlinks=True)
    return Home(load_settings(home=folder))


@pytest.fixture(scope="module")
def agents(moved: Home, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server that asks for a token."""
    log = tmp_path_factory.mktemp("server") / "log.jsonl"
    with running(moved.path, log, "--http", command="mcp", RAG_API_TOKEN=TOKEN) as found:
        yield found


@asynccontextmanager
async def with_token(server: RunningServer) -> AsyncIterator[Any]:
    async with (
        httpx2.AsyncClient(headers=AUTHORIZATION, timeout=30) as client,
        streamable_http_client(server.url, http_client=client) as streams,
    ):
        yield streams


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_both_forms_of_the_protocol_are_spoken(agents: RunningServer, mode: str) -> None:
    assert agents.url.endswith("/mcp")
    with connected(with_token(agents), mode) as agent:
        assert len(agent.wait(agent.client.list_tools()).tools) == 8
        [passage] = agent.given("search", query="return policy", limit=1)["passages"]
        assert passage["citation"].endswith("RECEIPT-2024-TXN-98765_retail_purchase.pdf › p.1")
        assert "unknown mode" in agent.refusal("search", query="x", mode="magic")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"authorization": "Bearer another-token-of-nobody"}, 401),
        ({**AUTHORIZATION, "host": "evil.example"}, 403),
        ({**AUTHORIZATION, "origin": "http://evil.example"}, 403),
        (AUTHORIZATION, 400),  # no session and no version of the protocol
    ],
)
def test_others_are_turned_away(agents: RunningServer, headers: dict[str, str], status: int) -> None:
    response = httpx.post(agents.url, json=LIST, headers={**ACCEPT, **headers})
    assert response.status_code == status
    assert "search" not in response.text


def test_others_are_served_with_a_token_only(sample_home: Path) -> None:
    result = CliRunner().invoke(main, ["--home", str(sample_home), "mcp", "--http", "--host", "0.0.0.0"])
    assert result.exit_code == 1
    assert "RAG_API_TOKEN" in result.stderr
    result = CliRunner().invoke(main, ["--home", str(sample_home), "mcp", "--port", "1"])
    assert result.exit_code == 2
    assert "--http" in result.stderr


def test_calls_stand_in_the_log_and_the_figures(agents: RunningServer) -> None:
    with connected(with_token(agents)) as agent:
        agent.given("search", query="顧客登録", mode="fulltext")
    figures = httpx.get(agents.url.removesuffix("/mcp") + "/metrics", headers=AUTHORIZATION).text
    assert 'rag_requests_total{method="POST",route="/mcp",status="200"}' in figures
    assert 'rag_search_seconds_count{kind="search",mode="fulltext"}' in figures
    assert {"search"} == {line["tool"] for line in agents.log_lines() if line.get("event") == "tool"}
    assert "顧客" not in agents.log.read_text("utf-8")


def test_a_new_version_is_followed_and_cursors_of_the_old_one_are_refused(moved: Home, agents: RunningServer) -> None:
    with connected(with_token(agents)) as agent:
        part = agent.given("sql", query="SELECT page_id FROM pages ORDER BY 1", limit=5)
        assert part["snapshot"] == 1
        current = moved.snapshots.current()
        assert current is not None
        moved.snapshots.publish(replace(current, number=moved.snapshots.next_number(), pipeline="another"))
        deadline = time.monotonic() + 30
        while agent.given("list_documents", limit=1)["snapshot"] != 2:
            assert time.monotonic() < deadline
            time.sleep(0.2)
        query = {"query": "SELECT page_id FROM pages ORDER BY 1", "limit": 5}
        assert "a new version was published" in agent.refusal("sql", **query, cursor=part["next_cursor"])
        assert agent.given("search", query="顧客", limit=1)["snapshot"] == 2
