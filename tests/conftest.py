"""Fixtures that several test modules share."""

import gc
import os
import shutil
import signal
import socket
import time
from collections.abc import Generator, Iterator, Set
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from filelock import FileLock
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:  # every run of pytest loads this module: the fixtures import what they take
    from rag_assets.evaluation.evidence import Corpus
    from rag_assets.pipeline.home import Home

gc.set_threshold(20_000)  # as the commands do; see also `pytest_collection_finish`

pytest_plugins = ["query_fixtures", "api_fixtures", "llama"]

# how fast examples are made is a matter of the machine, and of what else it does
settings.register_profile("shared_machine", suppress_health_check=[HealthCheck.too_slow], deadline=None)
settings.load_profile("shared_machine")

PROJECT = Path(__file__).parents[1]
SHARED_DATA = PROJECT.parent / "shared" / "data"


WHOLE_FOLDERS = {"browser", "defs", "vllm"}
WHOLE_FIXTURES = {"cache_folder", "guarded", "intact", "llama_server", "sample_home", "small_llama_server", "workbooks"}
TESTS = Path(__file__).parent
LONG_TESTS = TESTS / "long_tests.txt"
LONG_SECONDS = 0.2  # of processor time, of a test and the processes it starts: the 3,100 below it take some 40 s
GRAPH_ENABLED = "RAG_GRAPH__ENABLED"
os.environ[GRAPH_ENABLED] = "false"  # for fixtures of several tests, which are made before those of one
LONG_WAIT_SECONDS = 0.5  # by the clock: what waits takes as long on a fast machine
_began = pytest.StashKey[tuple[float, float]]()
_longest: dict[str, float] = {}


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--quick` leaves out what takes a Dagster run, a browser or a language model, and what is recorded as long."""
    parser.addoption("--quick", action="store_true", help="without Dagster runs, browsers, language models, long tests")
    parser.addoption("--record-long", action="store_true", help=f"add what is long to {LONG_TESTS.name}")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Modules that have no quick test are not even imported."""
    if config.getoption("--quick") and collection_path.name.startswith("test_") and _is_whole_module(collection_path):
        return True
    return None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests that take longest come first, so that no process waits for another in the end."""
    items.sort(key=lambda item: not _is_whole(item))
    if config.getoption("--quick"):
        long = set(_recorded())
        left_out = [item for item in items if _is_whole(item) or _function(item.nodeid) in long]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]


def pytest_collection_finish() -> None:
    """What has been loaded by now stays: it is not looked through for garbage again and again."""
    gc.collect()
    gc.freeze()


def _is_whole(item: pytest.Item) -> bool:
    """Whether a test takes a whole product: its module runs commands or Dagster, or it uses what does."""
    return not WHOLE_FIXTURES.isdisjoint(getattr(item, "fixturenames", ())) or _is_whole_module(item.path)


def _is_whole_module(path: Path) -> bool:
    return path.relative_to(TESTS).parts[0] in WHOLE_FOLDERS or _runs_commands(path)


def _function(test: str) -> str:
    return test.partition("[")[0]


def _recorded() -> list[str]:
    return LONG_TESTS.read_text("utf-8").split() if LONG_TESTS.exists() else []


def _processor_seconds() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    item.stash[_began] = _processor_seconds(), time.monotonic()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Reports say what a test took, to the process that collects them, too."""
    report = yield
    if call.when == "teardown":
        processor, clock = item.stash[_began]
        took = {"processor": _processor_seconds() - processor, "clock": time.monotonic() - clock}
        report.user_properties.append(("took_seconds", took))
    return report


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    took = dict(report.user_properties).get("took_seconds")
    if isinstance(took, dict) and (took["processor"] > LONG_SECONDS or took["clock"] > LONG_WAIT_SECONDS):
        name = _function(report.nodeid)
        _longest[name] = max(took["clock"], _longest.get(name, 0.0))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Name the long tests among the quick ones, or record them; what is no longer there is dropped."""
    if not config.getoption("--quick"):
        return
    if config.getoption("--record-long"):
        names = sorted({*filter(_is_there, _recorded()), *_longest})
        LONG_TESTS.write_text("".join(f"{name}\n" for name in names), "utf-8")
    elif longest := sorted(_longest.items(), key=lambda entry: -entry[1])[:5]:
        terminalreporter.section("long for `make quick`; `make long-tests` records them")
        for name, seconds in longest:
            terminalreporter.line(f"{seconds:5.1f} s  {name}")


def _is_there(name: str) -> bool:
    path, _, function = name.partition("::")
    file = TESTS.parent / path
    return file.exists() and f"def {function}(" in file.read_text("utf-8")


@cache
def _runs_commands(path: Path) -> bool:
    text = path.read_text("utf-8")
    return "rag_assets.cli" in text or "rag_assets.defs" in text


class _Environment:
    """A plugin of the whole session, as hooks of a conftest do not see fixtures of the session."""

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[object]) -> Generator[None, object, object]:
        """What a fixture of several tests leaves in the environment reaches no other: `index` names an instance."""
        before = set(os.environ)
        try:
            return (yield)
        finally:
            if fixturedef.scope != "function":
                _forget(before)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(_Environment())


def _forget(before: Set[str]) -> None:
    for name in os.environ.keys() - before:
        del os.environ[name]


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
def clean_environment(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[None]:
    """Settings of the person who runs the tests do not reach them, nor those of one test the next.

    The sample has its entity graph, as by default; others are made without, which saves time.
    """
    before = dict(os.environ)
    for name in before:
        if name.startswith("RAG_") or name == "DAGSTER_HOME":
            monkeypatch.delenv(name)
    if "sample_home" not in request.fixturenames:
        monkeypatch.setenv(GRAPH_ENABLED, "false")
    yield
    _forget(before.keys())


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all processes of one run of the tests share."""
    folder = tmp_path_factory.getbasetemp()
    return folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder


@pytest.fixture(scope="session")
def models_folder(shared_folder: Path) -> Path:
    """Folder of the exported embedder, made once for all tests."""
    folder = shared_folder / "models"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def sample_home(shared_folder: Path, models_folder: Path) -> Path:
    """Home of a knowledge base on the sample folder, indexed by the command line; not to be changed by tests."""
    from click.testing import CliRunner

    from rag_assets.cli import main

    folder, indexed = shared_folder / "sample", shared_folder / "sample-indexed"
    with FileLock(shared_folder / "sample.lock"):
        if not indexed.exists():
            shutil.rmtree(folder, ignore_errors=True)  # what another process left unfinished
            folder.mkdir()
            (folder / "models").symlink_to(models_folder)
            arguments = ["--home", str(folder), "index", f"sample={PROJECT / 'docs' / 'sample'}"]
            result = CliRunner().invoke(main, arguments, env={GRAPH_ENABLED: None})
            assert result.exit_code == 0, result.output
            indexed.touch()
    return folder


@pytest.fixture(scope="session")
def corpus(sample_home: Path) -> "Corpus":
    """The published version of the sample, as evidence names its places."""
    from rag_assets.evaluation.evidence import Corpus
    from rag_assets.pipeline.home import Home
    from rag_assets.pipeline.opening import readable_snapshot
    from rag_assets.pipeline.settings import load_settings
    from rag_assets.query import StoredTables

    home = Home(load_settings(home=sample_home))
    snapshot = readable_snapshot(home)
    assert snapshot is not None
    return Corpus(StoredTables(home.lake, snapshot.tables))


@pytest.fixture
def home(tmp_path: Path, models_folder: Path) -> "Home":
    """A knowledge base on the folder `tmp_path/specs`, with the real embedder."""
    from rag_assets.pipeline.home import Home
    from rag_assets.pipeline.settings import load_settings

    (tmp_path / "specs").mkdir()
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "models").symlink_to(models_folder)
    return Home(load_settings(home=tmp_path / "home", sources=(str(tmp_path / "specs"),)))
