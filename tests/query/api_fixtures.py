"""A real server on the sample, and apps in this process with limits of their own."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import httpx
    from api_server import MakeClient, RunningServer
    from starlette.testclient import TestClient

    from rag_assets.pipeline.home import Home
    from rag_assets.serve.service import ServeOptions


@pytest.fixture(scope="session")
def server(sample_home: Path, tmp_path_factory: pytest.TempPathFactory) -> "Iterator[RunningServer]":
    """A server on the sample, without limits of requests; its knowledge base is not to be changed by tests."""
    from api_server import running

    log = tmp_path_factory.mktemp("server") / "log.jsonl"
    settings = {"RAG_SERVE__REQUESTS_PER_MINUTE": "0", "RAG_EVALUATION__FEEDBACK": "false"}
    with running(sample_home, log, **settings) as found:
        yield found


@pytest.fixture
def api(server: "RunningServer") -> "Iterator[httpx.Client]":
    """A client of the routes of that server."""
    import httpx

    with httpx.Client(base_url=f"{server.url}/api/v1", timeout=30) as client:
        yield client


@pytest.fixture
def sample(sample_home: Path) -> "Home":
    """The sample, not to be changed."""
    from rag_assets.pipeline.home import Home
    from rag_assets.pipeline.settings import load_settings

    return Home(load_settings(home=sample_home))


@pytest.fixture
def make_client() -> "Iterator[MakeClient]":
    """Makes clients of apps in this process."""
    from starlette.testclient import TestClient

    from rag_assets.cli.serving import serve_options, source_folders
    from rag_assets.pipeline.opening import published
    from rag_assets.serve.api.app import create_app

    apps = []

    def make(home: "Home", options: "ServeOptions | None" = None) -> "TestClient":
        app = create_app(published(home), options or serve_options(home, "127.0.0.1"), lambda: source_folders(home))
        apps.append(app)
        return TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False)

    yield make
    for app in apps:
        app.state.service.close()
