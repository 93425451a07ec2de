"""Who may ask, from where, how much: tokens, names of the server, other sites, limits."""

import asyncio
import shutil
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from api_server import TOKEN, MakeClient
from click.testing import CliRunner

from rag_assets.cli import main
from rag_assets.cli.serving import serve_options
from rag_assets.pipeline.home import Home
from rag_assets.pipeline.opening import published
from rag_assets.pipeline.settings import load_settings
from rag_assets.query.contents.contents import Contents, Health
from rag_assets.query.contents.page_images import PageImages
from rag_assets.serve.limits import ClientLimit, WorkerThreads
from rag_assets.serve.problems import Problem
from rag_assets.serve.service import ServeOptions, Service

DESIGN = "sample/設計書/システム機能設計書(Webサービス)_B10103_顧客登録.xlsx"
PROTECTED = [
    *("/api/v1/search?q=x", "/api/v1/documents", f"/api/v1/documents/{DESIGN}", f"/api/v1/pages/{DESIGN}/1"),
    *("/api/v1/entities", "/api/v1/communities", "/api/v1/reports", "/api/v1/status", "/api/v1/costs"),
    *("/api/v1/sql/tables", "/api/v1/openapi.json", "/api/v1/nothing", "/metrics"),
]


@pytest.fixture
def options(sample: Home) -> ServeOptions:
    return serve_options(sample, "127.0.0.1")


@pytest.mark.parametrize(
    "shown", [None, "", "Bearer", "Bearer ", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", f"Basic {TOKEN}", "Bearer é"]
)
def test_without_the_token_nothing_is_told(
    sample: Home, options: ServeOptions, make_client: MakeClient, shown: str | None
) -> None:
    client = make_client(sample, replace(options, token=TOKEN, requests_per_minute=0))
    for path in PROTECTED:
        response = client.get(path, headers=[] if shown is None else [(b"authorization", shown.encode())])
        assert response.status_code == 401
        assert response.headers["www-authenticate"].startswith("Bearer")
        assert set(response.json()) == {"type", "title", "status", "detail", "request_id", "errors"}
        assert "sample" not in response.text


def test_with_the_token_all_is_told_and_health_needs_none(
    sample: Home, options: ServeOptions, make_client: MakeClient
) -> None:
    client = make_client(sample, replace(options, token=TOKEN))
    for path in PROTECTED:
        assert client.get(path, headers={"authorization": f"Bearer {TOKEN}"}).status_code in {200, 404}
    assert client.get("/health").status_code == 200
    assert client.get("/ready").status_code == 200
    assert client.post("/api/v1/sql", json={"query": "SELECT 1"}).status_code == 401


def test_whether_it_is_ready_is_told_while_all_threads_read(
    sample: Home, options: ServeOptions, make_client: MakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = make_client(sample, options)
    begun, ended = threading.Semaphore(0), threading.Event()

    def slow(held: Contents) -> Health:
        begun.release()
        ended.wait(30)
        return health(held)

    health = Contents.health
    monkeypatch.setattr(Contents, "health", slow)
    readers = [threading.Thread(target=client.get, args=("/api/v1/status",)) for _ in range(4)]
    try:
        for each in readers:
            each.start()
        assert all(begun.acquire(timeout=10) for _ in readers)
        assert client.get("/ready").status_code == 200
        assert not ended.is_set()
    finally:
        ended.set()
        for each in readers:
            each.join()


def test_strangers_are_not_told_why_a_version_cannot_be_opened(
    sample_home: Path, tmp_path: Path, make_client: MakeClient, caplog: pytest.LogCaptureFixture
) -> None:
    shutil.copytree(sample_home, tmp_path / "home", symlinks=True)
    home = Home(load_settings(home=tmp_path / "home"))
    options = replace(serve_options(home, "127.0.0.1"), token=TOKEN)
    authorization = {"authorization": f"Bearer {TOKEN}"}
    client = make_client(home, options)
    client.app.state.service.published._check_seconds = 0.0  # type: ignore[attr-defined]
    assert client.get("/ready").json()["problem"] is None
    current = home.snapshots.current()
    assert current is not None
    home.snapshots.publish(replace(current, number=2))
    [manifest] = (tmp_path / "home").glob("snapshots/*2.json")
    manifest.write_text("{")
    for _ in range(2):
        state = client.get("/ready").json()
        assert state == {
            "status": "ready",
            "snapshot": 1,
            "problem": "a newer version cannot be opened; see the log",
        }
    assert "damaged manifest" in client.get("/ready", headers=authorization).json()["problem"]
    told = [record.getMessage() for record in caplog.records if "is read instead" in record.getMessage()]
    assert [str(manifest) in message for message in told] == [True]
    for path in (tmp_path / "home" / "snapshots").glob("*.json"):
        path.write_text("{")
    fresh = make_client(home, options)
    response = fresh.get("/ready")
    assert response.status_code == 503
    assert response.json()["detail"] == "there is no version to ask; see the log"
    assert str(tmp_path) not in response.text
    assert fresh.get("/ready", headers=authorization).json()["detail"]


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "example.org"])
def test_others_are_served_with_a_token_only(sample_home: Path, host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    result = CliRunner().invoke(main, ["--home", str(sample_home), "serve", "--host", host, "--port", "0"])
    assert result.exit_code == 1
    assert "RAG_API_TOKEN" in result.stderr
    assert result.stderr.count("\n") == 1
    for token in ("short", 20 * " "):
        monkeypatch.setenv("RAG_API_TOKEN", token)
        result = CliRunner().invoke(main, ["--home", str(sample_home), "serve", "--host", host, "--port", "0"])
        assert result.exit_code == 1
        assert "serve.token" in result.stderr
        assert "16 characters" in result.stderr
        assert "short" not in result.stderr


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "127.0.0.1:8080"}, 200),
        ({"host": "localhost"}, 200),
        ({"host": "[::1]:8080"}, 200),
        ({"host": "rag.example"}, 200),
        ({"host": "evil.example"}, 403),
        ({"host": "127.0.0.1.evil.example"}, 403),
        ({"host": ""}, 403),
        ({"host": "localhost:evil.example"}, 403),
        ({"host": "LocalHost.:8080"}, 200),
        ({"host": "localhost", "origin": "http://localhost"}, 200),
        ({"host": "localhost", "origin": "http://evil.example"}, 403),
        ({"host": "localhost", "origin": "null"}, 403),
        ({"host": "localhost", "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}, 403),
        ({"host": "localhost", "sec-fetch-site": "same-origin", "sec-fetch-mode": "cors"}, 200),
    ],
)
def test_other_sites_cannot_ask_through_a_browser(
    sample: Home, options: ServeOptions, make_client: MakeClient, headers: dict[str, str], status: int
) -> None:
    client = make_client(sample, replace(options, hosts=("rag.example",)))
    response = client.get("/api/v1/status", headers=headers)
    assert response.status_code == status
    assert "access-control-allow-origin" not in response.headers


def test_responses_forbid_what_pages_need_not(sample: Home, make_client: MakeClient) -> None:
    client = make_client(sample)
    for path in ("/api/v1/status", "/api/v1/nothing", "/", "/health"):
        headers = client.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
    assert client.get("/api/v1/status").headers["cache-control"] == "no-store"


def test_a_client_that_asks_too_often_is_told_when_to_come_back(
    sample: Home, options: ServeOptions, make_client: MakeClient
) -> None:
    client = make_client(sample, replace(options, requests_per_minute=30))
    statuses = [client.get("/api/v1/status").status_code for _ in range(8)]
    assert statuses[:5] == [200] * 5
    refused = client.get("/api/v1/status")
    assert refused.status_code == 429
    assert 1 <= int(refused.headers["retry-after"]) <= 2
    assert client.get("/health").status_code == 200


def test_a_rate_is_kept_over_time_and_by_client() -> None:
    now = [0.0]
    limit = ClientLimit(60, lambda: now[0])
    for _ in range(10):
        limit.check("a")
    with pytest.raises(Problem):
        limit.check("a")
    limit.check("b")
    now[0] = 3.0
    for _ in range(3):
        limit.check("a")
    with pytest.raises(Problem):
        limit.check("a")


@pytest.mark.parametrize("chunked", [False, True])
def test_a_request_that_is_too_large_is_refused(
    sample: Home,
    options: ServeOptions,
    make_client: MakeClient,
    chunked: bool,
) -> None:
    client = make_client(sample, replace(options, request_bytes=2000))
    body = b'{"query": "' + b"x" * 3000 + b'"}'
    content = iter([body[:1500], body[1500:]]) if chunked else body
    response = client.post("/api/v1/search", content=content, headers={"content-type": "application/json"})
    assert response.status_code == 413
    assert client.post("/api/v1/search", json={"query": "顧客"}).status_code == 200


def test_work_that_waits_too_long_in_line_is_sent_away() -> None:
    async def run() -> None:
        work, gate = WorkerThreads("things", workers=1, waiting=1), threading.Event()
        try:
            first, second = (asyncio.ensure_future(work.run(gate.wait)) for _ in range(2))
            await asyncio.sleep(0)
            with pytest.raises(Problem) as told:
                await work.run(gate.wait)
            assert (told.value.status, "Retry-After" in told.value.headers) == (503, True)
            gate.set()
            assert all(await asyncio.gather(first, second))
            await asyncio.sleep(0.05)
            assert await work.run(lambda: 3) == 3
        finally:
            gate.set()
            work.close()

    asyncio.run(run())


@pytest.mark.parametrize("kind", ["searching", "asking", "querying"])
def test_as_many_requests_of_each_kind_may_wait_as_the_setting_says(tmp_path: Path, kind: str) -> None:
    home = Home(load_settings(home=tmp_path))
    options = serve_options(home, "127.0.0.1")
    workers = {
        "searching": options.search_workers,
        "asking": options.ask_workers,
        "querying": options.sql_workers,
    }[kind]

    async def run() -> None:
        service, gate = Service(published(home), PageImages(dict), options), threading.Event()
        work: WorkerThreads = getattr(service, kind)
        try:
            taken = [asyncio.ensure_future(work.run(gate.wait)) for _ in range(workers + options.waiting)]
            await asyncio.sleep(0)
            with pytest.raises(Problem):
                await work.run(gate.wait)
            gate.set()
            assert all(await asyncio.gather(*taken))
        finally:
            gate.set()
            service.close()

    asyncio.run(run())
