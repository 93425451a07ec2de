"""Who may open the Dagster UI: requests, WebSockets and pages of other sites against the real web server.

The browser is Debian's Chromium; where it or Playwright is missing, the tests that need it are skipped.
"""

import http.client
import http.server
import json
import select
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.parse
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rag_assets.contracts.errors import SettingsError
from rag_assets.pipeline.home import Home
from rag_assets.pipeline.instance import instance_environment, serve_ui
from rag_assets.pipeline.settings import load_settings
from rag_assets.serve.api.server import open_socket

if TYPE_CHECKING:
    from playwright.sync_api import Page

TOKEN = "a token of the tests"
STARTED_WITHIN = 180  # seconds
CODE = {"repositoryLocationName": "rag_assets", "repositoryName": "__repository__"}
LAUNCH = (
    'mutation{launchRun(executionParams:{selector:{repositoryLocationName:"rag_assets",'
    'repositoryName:"__repository__",jobName:"reindex_documents"},'
    'runConfigData:"{ops: {force_and_index: {config: {documents: [x]}}}}"}){__typename}}'
)
RUNS = "{runsOrError{... on Runs{results{runId}}}}"
JSON = {"Content-Type": "application/json"}
PLAIN = {"Content-Type": "text/plain"}
UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Protocol": "graphql-ws",
}
ARGUMENTS = "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-sync"


@dataclass(frozen=True)
class Server:
    """The web server of the UI, without the daemon."""

    port: int
    token: str | None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def asked(
        self, method: str, path: str, headers: dict[str, str] | None = None, body: str | None = None
    ) -> tuple[int, dict[str, str], str]:
        """Status, headers and text of an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            if response.status == 101:
                return 101, {}, ""
            return response.status, {k.lower(): v for k, v in response.getheaders()}, response.read().decode()
        finally:
            connection.close()

    def known(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}

    def run_ids(self) -> list[str]:
        status, _, text = self.asked("POST", "/graphql", {**JSON, **self.known()}, json.dumps({"query": RUNS}))
        assert status == 200, text
        return [run["runId"] for run in json.loads(text)["data"]["runsOrError"]["results"]]


@contextmanager
def serving(folder: Path, token: str | None) -> Iterator[Server]:
    folder.mkdir()
    home = Home(load_settings(home=folder))
    environment = instance_environment(home) | ({"RAG_API_TOKEN": token} if token else {})
    with open_socket("127.0.0.1", 0) as opened:
        command = [sys.executable, "-m", "rag_assets.defs.web_server", str(opened.fileno())]
        log = folder / "log"
        with log.open("wb") as output:
            program = subprocess.Popen(
                command, env=environment, pass_fds=[opened.fileno()], stdout=output, stderr=output
            )
        try:
            deadline = time.monotonic() + STARTED_WITHIN
            while b"Dagster UI: http" not in log.read_bytes():
                assert program.poll() is None, log.read_text()
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(0.1)
            yield Server(opened.getsockname()[1], token)
        finally:
            program.terminate()
            program.wait(timeout=60)


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str | None], Server]]:
    """Servers without a token and with one, each started when it is first asked for."""
    folder = tmp_path_factory.mktemp("guard")
    with ExitStack() as stack:
        started: dict[str | None, Server] = {}

        def start(token: str | None) -> Server:
            if token not in started:
                started[token] = stack.enter_context(serving(folder / str(len(started)), token))
            return started[token]

        yield start


@pytest.fixture
def server(servers: Callable[[str | None], Server]) -> Server:
    return servers(None)


@pytest.fixture
def locked(servers: Callable[[str | None], Server]) -> Server:
    return servers(TOKEN)


def foreign(server: Server) -> dict[str, dict[str, str]]:
    """Headers of what must be refused, by what is wrong."""
    own = f"127.0.0.1:{server.port}"
    return {
        "another name": {"Host": f"evil.example:{server.port}"},
        "another name, own origin": {"Host": "evil.example", "Origin": "http://evil.example"},
        "page of another site": {"Host": own, "Origin": "http://evil.example"},
        "page of another port": {"Host": own, "Origin": "http://127.0.0.1:1"},
        "page without an origin": {"Host": own, "Origin": "null"},
        "from another site": {"Host": own, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
        "from another port": {"Host": own, "Sec-Fetch-Site": "same-site"},
        "in a frame": {
            "Host": own,
            "Sec-Fetch-Site": "cross-site",
            "Sec-Fetch-Mode": "navigate",
            "Sec-Fetch-Dest": "iframe",
        },
    }


def test_other_names_and_pages_of_other_sites_are_refused(server: Server) -> None:
    before = server.run_ids()
    query = "/graphql?" + urllib.parse.urlencode({"query": LAUNCH})
    for reason, headers in foreign(server).items():
        for method, path, more, body in (
            ("POST", query, PLAIN, ""),
            ("POST", "/graphql", JSON, json.dumps({"query": LAUNCH})),
            ("GET", query, {}, None),
            ("GET", "/", {}, None),
            ("GET", "/logs/x/y.out", {}, None),
            ("POST", "/report_asset_materialization/documents", PLAIN, ""),
            ("GET", "/graphql", UPGRADE, None),
        ):
            assert server.asked(method, path, {**more, **headers}, body)[0] == 403, (reason, method, path)
    assert server.run_ids() == before


def test_queries_that_no_page_needs_to_ask_for_are_refused_from_anywhere(server: Server) -> None:
    before = server.run_ids()
    query = "/graphql?" + urllib.parse.urlencode({"query": LAUNCH})
    assert server.asked("POST", query, PLAIN, "")[0] == 415
    assert server.asked("POST", query)[0] == 415
    assert server.asked("GET", query)[0] == 415
    other = query.replace("/graphql", "/graphql%0a")
    for headers in ({"Accept": "image/*"}, PLAIN):
        assert server.asked("GET", other, headers)[0] == 400
        assert server.asked("POST", other, headers, "")[0] == 400
    assert server.run_ids() == before


def test_half_sent_requests_are_cut_off(server: Server) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as client:
        client.sendall(b"GET /runs HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ")
        assert client.recv(1) == b""


def test_the_ui_itself_and_links_to_it_are_served(server: Server) -> None:
    own = {"Origin": server.url, "Sec-Fetch-Site": "same-origin"}
    assert server.asked("POST", "/graphql", {**JSON, **own}, json.dumps({"query": "{version}"}))[0] == 200
    assert server.asked("GET", "/graphql", {**UPGRADE, "Origin": server.url})[0] == 101
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    status, headers, _ = server.asked("GET", "/runs", link)
    assert (status, headers["x-frame-options"]) == (200, "SAMEORIGIN")
    assert "frame-ancestors 'self'" in headers["content-security-policy"]
    for name in ("localhost", "[::1]", "127.0.0.1"):
        assert server.asked("GET", "/server_info", {"Host": f"{name}:{server.port}"})[0] == 200


def test_run_config_that_names_other_sources_is_refused(server: Server) -> None:
    before = server.run_ids()
    config = {"resources": {"home": {"config": {"settings": {"sources": ["/etc"]}}}}}
    selector = {**CODE, "jobName": "index_sources"}
    query = "mutation($p: ExecutionParams!){launchRun(executionParams:$p){__typename}}"
    variables = {"p": {"selector": selector, "runConfigData": config}}
    body = json.dumps({"query": query, "variables": variables})
    answer = json.loads(server.asked("POST", "/graphql", JSON, body)[2])
    assert answer["data"]["launchRun"]["__typename"] == "RunConfigValidationInvalid"
    assert server.run_ids() == before


def test_a_token_opens_the_ui_once_for_a_browser_and_each_time_for_a_program(locked: Server) -> None:
    body, form = json.dumps({"query": "{version}"}), {"Content-Type": "application/x-www-form-urlencoded"}
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Cookie": f"rag_assets_ui_{locked.port}=wrong"}):
        assert locked.asked("POST", "/graphql", {**JSON, **headers}, body)[0] == 401
        assert locked.asked("GET", "/graphql", {**UPGRADE, **headers})[0] == 403
        assert locked.asked("GET", "/logs/x/y.out", headers)[0] == 401
    assert locked.asked("POST", "/graphql", {**JSON, **locked.known()}, body)[0] == 200
    assert locked.asked("GET", "/graphql", {**UPGRADE, **locked.known()})[0] == 101

    status, _, text = locked.asked("GET", "/runs", {"Accept": "text/html"})
    assert (status, 'type="password"' in text) == (401, True)
    assert locked.asked("POST", "/runs", form, "token=wrong")[0] == 401
    right = urllib.parse.urlencode({"token": TOKEN})
    assert locked.asked("POST", "/runs", {**form, "Origin": "http://evil.example"}, right)[0] == 403
    assert locked.asked("POST", "/runs", form, "token=" + "x" * 5000)[0] == 413
    status, headers, _ = locked.asked("POST", "//evil.example/runs?view=a", form, right)
    assert (status, headers["location"]) == (303, "/evil.example/runs?view=a")
    cookie = headers["set-cookie"]
    assert TOKEN not in cookie
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    shown = {"Cookie": cookie.partition(";")[0]}
    assert locked.asked("POST", "/graphql", {**JSON, **shown}, body)[0] == 200
    assert locked.asked("GET", "/graphql", {**UPGRADE, **shown, "Origin": "http://evil.example"})[0] == 403
    answers = {locked.asked("POST", "/runs", form, "token=wrong")[0] for _ in range(10)}
    assert answers == {401, 429}


def test_forms_that_drip_keep_nobody_out(locked: Server) -> None:
    head = (
        f"POST / HTTP/1.1\r\nHost: 127.0.0.1:{locked.port}\r\n"
        "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 4000\r\n\r\nt"
    )
    with ExitStack() as stack:
        opened = [stack.enter_context(socket.create_connection(("127.0.0.1", locked.port))) for _ in range(40)]
        for each in opened:
            each.settimeout(60)
            each.sendall(head.encode())
        answers = []
        until = time.monotonic() + 60
        while opened and time.monotonic() < until:
            readable, _, _ = select.select(opened, [], [], 0.5)
            for each in readable:
                with suppress(ConnectionError):
                    answers.append(each.recv(4096)[9:12])
                opened.remove(each)
            for each in opened:
                with suppress(ConnectionError):
                    each.sendall(b"o")
        assert not opened
    assert Counter(answers) == {b"503": 24, b"408": 16}
    assert locked.asked("POST", "/graphql", {**JSON, **locked.known()}, json.dumps({"query": "{version}"}))[0] == 200


def test_an_address_that_others_reach_needs_a_token(home: Home) -> None:
    with pytest.raises(SettingsError, match="RAG_API_TOKEN"):
        serve_ui(home, "0.0.0.0", 0, lambda: None)


@pytest.fixture
def elsewhere() -> Iterator[str]:
    """Address of a page of another site."""

    class Empty(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>elsewhere</title><body></body>")

        def log_message(self, *_: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Empty) as site:
        threading.Thread(target=site.serve_forever, daemon=True).start()
        yield f"http://localhost:{site.server_address[1]}"
        site.shutdown()


@pytest.fixture
def page() -> "Iterator[Page]":
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("Chromium is not installed (Debian: apt-get install chromium)")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=ARGUMENTS.split())
        page: Page = browser.new_page()
        page.set_default_timeout(60_000)
        yield page
        browser.close()


ATTACK = """async ([url, query, json]) => {
  const tell = (promise) => promise.then((value) => value, () => "refused");
  const socket = new Promise((resolve) => {
    const opened = new WebSocket(url.replace("http", "ws") + "/graphql", "graphql-ws");
    opened.onopen = () => resolve("open");
    opened.onerror = () => resolve("refused");
  });
  const image = new Promise((resolve) => {
    const shown = document.body.appendChild(new Image());
    shown.onload = () => resolve("loaded");
    shown.onerror = () => resolve("refused");
    shown.src = url + "/favicon.png";
  });
  const frame = new Promise((resolve) => {
    const shown = document.body.appendChild(document.createElement("iframe"));
    shown.onload = () => resolve("loaded");
    shown.src = url + "/";
  });
  await tell(fetch(url + "/graphql?query=" + encodeURIComponent(query), {method: "POST", mode: "no-cors", body: ""}));
  await tell(fetch(url + "/graphql?query=" + encodeURIComponent(query), {mode: "no-cors"}));
  await tell(fetch(url + "/graphql", {method: "POST", mode: "no-cors", body: json}));
  const read = await tell(fetch(url + "/server_info").then((response) => response.text()));
  const sent = await tell(fetch(url + "/graphql",
    {method: "POST", headers: {"Content-Type": "application/json"}, credentials: "include", body: json}));
  await frame;
  return {socket: await socket, image: await image, read, sent};
}"""


FORM = """(to) => {
  const form = document.body.appendChild(document.createElement("form"));
  Object.assign(form, {method: "post", action: to, enctype: "text/plain"});
  form.submit();
}"""


@pytest.mark.parametrize("token", [None, TOKEN])
def test_a_page_of_another_site_starts_and_reads_nothing(
    servers: Callable[[str | None], Server], token: str | None, elsewhere: str, page: "Page"
) -> None:
    server = servers(token)
    before = server.run_ids()
    page.goto(server.url)
    if token:
        page.get_by_label("Token").fill(token)
        page.get_by_role("button", name="Open").click()
    page.get_by_text("reindex_documents").or_(page.get_by_text("Timeline")).first.wait_for()  # the UI itself works
    page.goto(elsewhere)
    outcome = page.evaluate(ATTACK, [server.url, LAUNCH, json.dumps({"query": LAUNCH})])
    assert outcome == dict.fromkeys(("socket", "image", "read", "sent"), "refused")
    address = f"{server.url}/graphql?query={urllib.parse.quote(LAUNCH)}"
    page.evaluate("(to) => { location.href = to }", address)  # a link that leads there
    page.wait_for_url(f"{server.url}/**")
    assert "Pages of other sites may not ask here." in page.content()
    page.goto(elsewhere)
    page.evaluate(FORM, address)
    page.wait_for_url(f"{server.url}/**")
    assert "Pages of other sites may not ask here." in page.content()
    assert server.run_ids() == before
