"""A server from its start to its end, and the versions that it follows meanwhile."""

import gc
import json
import shutil
import signal
import threading
import weakref
from dataclasses import replace
from functools import partial
from pathlib import Path

import httpx
import pytest
from api_server import MakeClient, RunningServer, SlowBase, running
from starlette.testclient import TestClient

from rag_assets.contracts.errors import StoreError
from rag_assets.pipeline.home import Home
from rag_assets.pipeline.opening import knowledge_base, published
from rag_assets.pipeline.settings import load_settings
from rag_assets.query.published import NothingPublished, Published
from rag_assets.store.snapshots import Snapshot


@pytest.fixture
def moved(sample_home: Path, tmp_path: Path) -> Home:
    """A knowledge base whose versions a test may change."""
    folder = tmp_path / "home"
    shutil.copytree(sample_home, folder, symlinks=True)
    return Home(load_settings(home=folder))


def publish_again(home: Home) -> Snapshot:
    current = home.snapshots.current()
    assert current is not None
    return home.snapshots.publish(replace(current, number=home.snapshots.next_number(), pipeline="another"))


def test_it_says_where_it_is_in_one_line(server: RunningServer) -> None:
    assert server.line == f"{server.url}\n"
    assert server.url.startswith("http://127.0.0.1:")
    assert httpx.get(f"{server.url}/ready").status_code == 200


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_when_it_is_asked_to_and_lets_requests_end(moved: Home, tmp_path: Path, number: signal.Signals) -> None:
    with running(moved.path, tmp_path / "log.jsonl") as server:
        found: list[int] = []

        def ask() -> None:
            slow = {"query": "SELECT count(*) FROM range(300000000)"}
            found.append(httpx.post(f"{server.url}/api/v1/sql", json=slow, timeout=30).status_code)

        asking = threading.Thread(target=ask)
        asking.start()
        while httpx.get(f"{server.url}/metrics").text.find('rag_in_flight{kind="SQL"} 1.0') < 0:
            assert asking.is_alive()
        server.process.send_signal(number)
        assert server.process.wait(timeout=20) == 0
        asking.join()
        assert found[0] == 200


def test_an_address_in_use_is_told_in_one_line(server: RunningServer, moved: Home) -> None:
    from click.testing import CliRunner

    from rag_assets.cli import main

    port = server.url.rpartition(":")[2]
    result = CliRunner().invoke(main, ["--home", str(moved.path), "serve", "--port", port])
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    assert port in result.stderr


def test_it_follows_the_versions_that_are_published(moved: Home, make_client: MakeClient) -> None:
    client = make_client(moved)
    client.app.state.service.published._check_seconds = 0.0  # type: ignore[attr-defined]
    assert client.get("/api/v1/status").json()["snapshot"] == 1
    publish_again(moved)
    assert client.get("/api/v1/status").json()["snapshot"] == 2
    assert client.get("/api/v1/search", params={"q": "顧客"}).headers["x-snapshot"] == "2"
    assert client.post("/api/v1/sql", json={"query": "SELECT count(*) FROM documents"}).json()["rows"] == [[9]]
    moved.snapshots.roll_back(1)
    assert client.get("/api/v1/status").json()["snapshot"] == 1


def test_a_version_is_let_go_after_its_last_request(moved: Home) -> None:
    following = Published(moved.lake, moved.snapshots, partial(knowledge_base, moved), check_seconds=0)
    held = following.current()
    gone = weakref.ref(held.base)
    publish_again(moved)
    assert following.current().snapshot.number == 2
    gc.collect()
    assert gone() is not None
    assert held.base.search("顧客", "fulltext", 1).hits
    del held
    gc.collect()
    assert gone() is None


def test_a_new_version_that_cannot_be_opened_leaves_the_one_before(moved: Home) -> None:
    def opened(snapshot: Snapshot) -> object:
        if snapshot.number == 2:
            raise StoreError("a file is gone")
        return knowledge_base(moved, snapshot)

    following = Published(moved.lake, moved.snapshots, opened, check_seconds=0)  # type: ignore[arg-type]
    assert following.current().snapshot.number == 1
    publish_again(moved)
    assert following.current().snapshot.number == 1
    assert following.problem == "a file is gone"
    publish_again(moved)
    assert following.current().snapshot.number == 3
    assert following.problem is None


def test_others_are_not_held_up_while_a_version_is_opened(moved: Home) -> None:
    opening, go_on = threading.Event(), threading.Event()

    def opened(snapshot: Snapshot) -> object:
        if snapshot.number == 2:
            opening.set()
            assert go_on.wait(10)
        return knowledge_base(moved, snapshot)

    following = Published(moved.lake, moved.snapshots, opened, check_seconds=0)  # type: ignore[arg-type]
    following.current()
    publish_again(moved)
    thread = threading.Thread(target=following.current)
    thread.start()
    assert opening.wait(10)
    assert following.current().snapshot.number == 1
    go_on.set()
    thread.join()
    assert following.current().snapshot.number == 2


def test_an_index_of_another_embedder_is_not_served(moved: Home) -> None:
    current = moved.snapshots.current()
    assert current is not None
    moved.snapshots.publish(replace(current, number=2, embedder="another"))
    with pytest.raises(NothingPublished, match="another"):
        published(moved).current()


@pytest.fixture
def slow(moved: Home, make_client: MakeClient) -> tuple[TestClient, SlowBase]:
    client, base = make_client(moved), SlowBase()
    service = client.app.state.service  # type: ignore[attr-defined]
    service.published = Published(moved.lake, moved.snapshots, lambda _: base)
    return client, base


def test_an_error_after_the_first_event_is_an_event(slow: tuple[TestClient, SlowBase]) -> None:
    client, base = slow
    text = client.post("/api/v1/ask", json={"question": "fails", "stream": True}).text
    assert text.startswith("event: evidence\n")
    error = text.partition("event: error\ndata: ")[2].partition("\n")[0]
    assert json.loads(error) == {"status": 400, "detail": "nothing more"}
    assert base.closed.is_set()


def test_nothing_more_is_written_for_a_caller_who_is_gone(slow: tuple[TestClient, SlowBase]) -> None:
    import asyncio

    client, base = slow
    sent: list[bytes] = []

    async def leave_after_three() -> None:
        body = b'{"question": "x", "stream": true}'
        requests = iter([{"type": "http.request", "body": body, "more_body": False}])
        gone = asyncio.Event()

        async def receive() -> dict[str, object]:
            request = next(requests, None)
            if request is not None:
                return request
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: dict[str, object]) -> None:
            if message["type"] == "http.response.body":
                sent.append(bytes(message["body"]))  # type: ignore[call-overload]
                if len(sent) == 3:
                    gone.set()

        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST", "scheme": "http",
            "path": "/api/v1/ask", "raw_path": b"/api/v1/ask", "query_string": b"", "root_path": "",
            "headers": [(b"host", b"localhost"), (b"content-type", b"application/json")],
            "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80),
        }  # fmt: skip
        await asyncio.wait_for(client.app(scope, receive, send), 8)  # type: ignore[arg-type]
        await asyncio.to_thread(base.closed.wait, 5)

    asyncio.run(leave_after_three())
    assert base.closed.is_set()
    assert len(sent) < 500
