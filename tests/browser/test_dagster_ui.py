"""The Dagster side as a user runs it: `rag-assets ui` on a folder, a browser on its pages, the sensor on its daemon.

The browser is Debian's Chromium; where it or Playwright is missing, the tests that need it are skipped.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from rag_assets.cli import main
from rag_assets.contracts.tables import CHUNKS, DOCUMENTS, TABLES
from rag_assets.defs.job_runs import shards_of_tags
from rag_assets.pipeline.steps import STEPS
from rag_assets.store.lake import Lake, shard_of
from rag_assets.store.snapshots import Snapshots

if TYPE_CHECKING:
    from playwright.sync_api import Page

SOURCE = "office"
FILES = {
    "holidays.md": "# Holidays\n\nThe office is closed on the third Friday of October for the lantern festival.\n",
    "prices.csv": "item,price\nteapot,1200\nlantern,300\n",
    "travel.txt": "Trips beyond the river need a form signed by the harbour master.\n",
    "notes.md": "# Notes\n\nThe coffee machine on the second floor leaks.\n",
}
INDEXES = {"chunk_index", "summary_index", "question_index"}
GRAPH = {table.name for step in STEPS if step.graph for table in step.tables}  # switched off
RECORDS = {name for name, table in TABLES.items() if table.recorded}  # there is no question set
ASSETS = {*TABLES, *INDEXES, "snapshot"} - GRAPH - RECORDS
TOKEN = "a token of the tests"
SHOWN = {"Authorization": f"Bearer {TOKEN}"}
STARTED_WITHIN, DONE_WITHIN = 120, 180
ARGUMENTS = (
    "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-component-update "
    "--disable-sync"
)


def document(name: str) -> str:
    return f"{SOURCE}/{name}"


@dataclass(frozen=True)
class Served:
    """A knowledge base with its UI and daemon running."""

    url: str
    home: Path
    source: Path
    environment: dict[str, str]
    log: Path

    def graphql(self, query: str, **variables: object) -> dict[str, Any]:
        body = json.dumps({"query": query, "variables": variables}).encode()
        request = urllib.request.Request(f"{self.url}/graphql", body, {"Content-Type": "application/json", **SHOWN})
        with urllib.request.urlopen(request, timeout=30) as response:
            answer = json.load(response)
        assert "errors" not in answer, answer
        data: dict[str, Any] = answer["data"]
        return data

    def runs(self) -> list[dict[str, Any]]:
        """Runs, the newest first."""
        query = "{runsOrError{... on Runs{results{runId status jobName tags{key value}}}}}"
        found = self.graphql(query)["runsOrError"]["results"]
        return [{**run, "tags": {tag["key"]: tag["value"] for tag in run["tags"]}} for run in found]

    def published(self) -> set[str]:
        """Documents of the published version."""
        snapshot = Snapshots(self.home / "snapshots").current()
        versions = snapshot.tables[DOCUMENTS.name] if snapshot else {}
        rows = Lake(self.home / "lake").read(DOCUMENTS, columns=["document_id"], versions=versions)
        return set(rows["document_id"].to_pylist())

    def search(self, text: str) -> dict[str, str]:
        """Text of the hits of `rag-assets search` by document."""
        done = CliRunner().invoke(main, ["--home", str(self.home), "search", text, "--json"], env=self.environment)
        assert done.exit_code == 0, done.output
        hits = json.loads(done.stdout)["hits"]
        return {hit["document_id"]: hit["text"] for hit in reversed(hits)}

    def diagnosis(self) -> str:
        """What a failure message should show: the runs, the errors of their steps and the end of the log."""
        query = """query($id: ID!) {logsForRun(runId: $id) {... on EventConnection {events {
            ... on ErrorEvent {error {message causes: errorChain {error {message}}}}}}}}"""
        runs = self.runs()
        for run in runs:
            if run["status"] == "FAILURE":
                run["errors"] = [
                    event["error"]
                    for event in self.graphql(query, id=run["runId"])["logsForRun"]["events"]
                    if event.get("error")
                ]
        return f"{json.dumps(runs, indent=1)}\n{self.log.read_text(errors='replace')[-6000:]}"


def rag_assets() -> str:
    return str(Path(sys.executable).with_name("rag-assets"))


def free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port: int = bound.getsockname()[1]
        return port


def wait_until(holds: Callable[[], bool], seconds: float, diagnosis: Callable[[], str]) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"not within {seconds} s\n{diagnosis()}"
        time.sleep(0.5)


def processes_of(home: Path) -> list[int]:
    """Processes that were started for a knowledge base, told by their environment."""
    marker, found = f"RAG_HOME={home}".encode(), []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if marker in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def stop(program: "subprocess.Popen[bytes]", home: Path) -> None:
    """Ask the program to end, then kill what is left of its group and whatever else was started for the home."""
    program.terminate()
    try:
        program.wait(timeout=30)
    except subprocess.TimeoutExpired:
        os.killpg(program.pid, signal.SIGKILL)
        program.wait()
    deadline = time.monotonic() + 10
    while processes_of(home) and time.monotonic() < deadline:
        time.sleep(0.2)
    for process in processes_of(home):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("ui")
    source, home = folder / SOURCE, folder / "home"
    source.mkdir()
    home.mkdir()
    for name, text in FILES.items():
        (source / name).write_text(text, encoding="utf-8")
    inherited = {
        name: value for name, value in os.environ.items() if name != "DAGSTER_HOME" and not name.startswith("RAG_")
    }
    environment = inherited | {
        "RAG_HOME": str(home),
        "RAG_SOURCES": f"{SOURCE}={source}",
        "RAG_GRAPH__ENABLED": "false",
        "RAG_OPERATION__SENSOR_SECONDS": "10",
        "RAG_PARSING__WORKERS": "1",
        "RAG_API_TOKEN": TOKEN,
        "PYTHONUNBUFFERED": "1",
    }
    port, log = free_port(), folder / "ui.log"
    with log.open("wb") as output:
        program = subprocess.Popen(
            [rag_assets(), "ui", "--port", str(port)],
            env=environment,
            cwd=folder,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    served = Served(f"http://127.0.0.1:{port}", home, source, environment, log)

    def answers() -> bool:
        assert program.poll() is None, log.read_text(errors="replace")
        try:
            request = urllib.request.Request(f"{served.url}/server_info", headers=SHOWN)
            with urllib.request.urlopen(request, timeout=5) as response:
                return bool(response.status == 200)
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return False

    try:
        wait_until(answers, STARTED_WITHIN, lambda: log.read_text(errors="replace"))
        yield served
    finally:
        stop(program, home)


@pytest.fixture
def page(served: Served) -> "Iterator[Page]":
    """A browser that has shown the token."""
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("Chromium is not installed (Debian: apt-get install chromium)")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=ARGUMENTS.split())
        page: Page = browser.new_page(viewport={"width": 1600, "height": 1000})
        page.set_default_timeout(60_000)
        page.add_init_script("localStorage.setItem('communityNux', '\"1\"')")  # no invitation to the community
        page.goto(served.url)
        page.get_by_label("Token").fill(TOKEN)
        page.get_by_role("button", name="Open").click()
        page.get_by_label("Token").wait_for(state="detached")
        yield page
        browser.close()


def open_graph(page: "Page", served: Served) -> None:
    """The asset graph from top to bottom with all groups expanded, so that it fits the window."""
    page.goto(f"{served.url}/asset-groups")
    page.locator("svg").get_by_text("parsing", exact=True).wait_for()
    for entry in ("Change graph to vertical orientation", "Expand all groups"):
        page.mouse.click(900, 200, button="right")
        page.get_by_role("menuitem", name=entry).click()
    page.locator("svg").get_by_text("documents", exact=True).wait_for()
    page.reload()


def text_until(page: "Page", pattern: str, seconds: float, served: Served) -> str:
    """Text of the page, once it matches a pattern."""
    deadline = time.monotonic() + seconds
    while not re.search(pattern, text := page.locator("body").inner_text()):
        assert time.monotonic() < deadline, f"not within {seconds} s: {pattern}\n{text}\n{served.diagnosis()}"
        page.wait_for_timeout(500)
    return text


def launch_backfill(page: "Page", shards: list[str]) -> str:
    """From the asset graph, materialize all assets over some partitions.

    Returns:
        The id of the backfill.
    """
    page.get_by_role("button", name="Materialize all").click()
    dialog = page.get_by_role("dialog").filter(has_text=f"Launch runs to materialize {len(ASSETS)} assets")
    dialog.get_by_text("Select a partition or create one").click()
    choice = page.get_by_placeholder("Filter partitions")
    for shard in shards:
        choice.fill(shard)
        page.get_by_role("menuitem").filter(has_text=re.compile(rf"^({shard})+$")).click()
    choice.press("Escape")
    dialog.get_by_text(f"{len(shards)} partitions", exact=True).wait_for()
    dialog.get_by_role("button", name="Launch backfill").click()
    created = re.search(r"Created backfill (\w+)", page.get_by_text("Created backfill").first.inner_text())
    assert created
    return created[1]


def test_the_asset_graph_shows_every_asset(page: "Page", served: Served) -> None:
    open_graph(page, served)
    for asset in sorted(ASSETS):
        shortened = rf"{asset[:8]}\w*…\w*{asset[-8:]}"  # the middle of a long name is left out
        page.locator("svg").get_by_text(re.compile(f"^({asset}|{shortened})$")).wait_for()


def test_a_backfill_of_two_shards_is_launched_and_seen_in_the_ui(page: "Page", served: Served) -> None:
    chosen = [document("holidays.md"), document("prices.csv")]
    shards = sorted(map(shard_of, chosen))
    assert int(shards[1], 16) - int(shards[0], 16) > 1, "neighbours would be one run"

    open_graph(page, served)
    backfill = launch_backfill(page, shards)
    page.set_viewport_size({"width": 1600, "height": 3000})  # rows that do not fit are left out of the page
    page.goto(f"{served.url}/runs/b/{backfill}")
    text = text_until(page, r"Status\n(Succeeded|Failed|Canceled)", DONE_WITHIN, served)
    assert "Status\nSucceeded" in text, served.diagnosis()
    assert text.count("100% completed") == len(ASSETS)
    page.goto(f"{served.url}/runs/b/{backfill}?tab=runs")
    runs = text_until(page, "Success", 30, served)
    assert "Failure" not in runs, served.diagnosis()

    for asset, previewed in (("documents", "office/holidays.md"), ("chunks", "The office is closed")):
        page.goto(f"{served.url}/assets/{asset}?view=partitions&partition={shard_of(chosen[0])}")
        text = text_until(page, rf"preview\s[\s\S]*{re.escape(previewed)}", 60, served)
        assert re.search(r"documents_computed\s+1\s", text)
        assert re.search(r"dagster/partition_row_count\s+1\s", text)

    lake = Lake(served.home / "lake")
    assert set(lake.read(DOCUMENTS, shards, ["document_id"])["document_id"].to_pylist()) >= set(chosen)
    assert set(lake.read(CHUNKS, shards, ["document_id"])["document_id"].to_pylist()) >= set(chosen)
    assert "lantern festival" in served.search("lantern festival")[chosen[0]]


@pytest.fixture
def sensor(served: Served) -> Iterator[str]:
    """The sensor `changed_files`, running."""
    name = "changed_files"
    code = {"repositoryLocationName": "rag_assets", "repositoryName": "__repository__"}
    started = served.graphql(
        "mutation($s: SensorSelector!) {startSensor(sensorSelector: $s) {... on Sensor{sensorState{id status}}}}",
        s={**code, "sensorName": name},
    )["startSensor"]["sensorState"]
    assert started["status"] == "RUNNING"
    yield name
    stopped = served.graphql(
        "mutation($id: String!) {stopSensor(id: $id) {... on StopSensorMutationResult{instigationState{status}}}}",
        id=started["id"],
    )
    assert stopped["stopSensor"]["instigationState"]["status"] == "STOPPED"


def test_the_sensor_indexes_a_new_file_and_removes_a_deleted_one(served: Served, sensor: str) -> None:
    new = document("census.txt")
    path = served.source / "census.txt"
    path.write_text("The zebra census takes place every quarter in Uppsala.\n", encoding="utf-8")
    wait_until(lambda: new in served.published(), DONE_WITHIN, served.diagnosis)
    assert "zebra census" in served.search("zebra census")[new]

    path.unlink()
    wait_until(lambda: new not in served.published(), DONE_WITHIN, served.diagnosis)
    assert served.published() == set(map(document, FILES))
    assert new not in served.search("zebra census")

    requested = [run for run in served.runs() if run["tags"].get("dagster/sensor_name") == sensor]
    assert len(requested) >= 2
    for run in requested:
        assert run["jobName"] == "index_sources"
        assert run["status"] in {"SUCCESS", "STARTED"}, served.diagnosis()
    for run in requested[:2]:
        assert shard_of(new) in (shards_of_tags(run["tags"]) or [])
