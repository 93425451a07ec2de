"""Fixtures that several test modules share."""

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from rag_assets.cli import main
from rag_assets.pipeline.home import Home
from rag_assets.pipeline.settings import load_settings

pytest_plugins = ["query_fixtures", "api_fixtures", "llama"]

PROJECT = Path(__file__).parents[1]
SHARED_DATA = PROJECT.parent / "shared" / "data"


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse connections to anything but this machine."""
    connect = socket.socket.connect

    def refuse(self: socket.socket, address: tuple[str, int] | str | bytes) -> None:
        if isinstance(address, tuple) and address[0] not in {"127.0.0.1", "::1", "localhost"}:
            raise AssertionError(f"a test connects to {address}")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.fixture(autouse=True)
def interruptible() -> None:
    """Control-C ends what it is meant to end where the tests were started in the background, too."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Settings of the person who runs the tests do not reach them, nor those of one test the next."""
    before = dict(os.environ)
    for name in before:
        if name.startswith("RAG_") or name == "DAGSTER_HOME":
            monkeypatch.delenv(name)
    yield
    for name in os.environ.keys() - before.keys():
        del os.environ[name]


@pytest.fixture(scope="session")
def models_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the exported embedder, made once for all tests."""
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="session")
def sample_home(tmp_path_factory: pytest.TempPathFactory, models_folder: Path) -> Path:
    """Home of a knowledge base on the sample folder, indexed by the command line; not to be changed by tests."""
    folder = tmp_path_factory.mktemp("sample")
    (folder / "models").symlink_to(models_folder)
    result = CliRunner().invoke(main, ["--home", str(folder), "index", f"sample={PROJECT / 'docs' / 'sample'}"])
    assert result.exit_code == 0, result.output
    return folder


@pytest.fixture
def home(tmp_path: Path, models_folder: Path) -> Home:
    """A knowledge base on the folder `tmp_path/specs`, with the real embedder."""
    (tmp_path / "specs").mkdir()
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "models").symlink_to(models_folder)
    return Home(load_settings(home=tmp_path / "home", sources=(str(tmp_path / "specs"),)))
