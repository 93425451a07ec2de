"""A language model that is stuck, writes on and on, or takes no requests: callers who leave, an end that is asked for,
and how long an answer is waited for.
"""

import json
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count, islice
from pathlib import Path

import httpx
import pytest
from api_server import RunningServer, running

QUESTION = {"question": "トークンの有効期限は何分ですか", "mode": "hybrid"}
EVENTS = {"Accept": "text/event-stream"}
WORKERS = 4


class EndlessModel:
    """A server of a language model that writes a sentence for ever, says nothing at all, or has no room.

    Attributes:
        begun: Calls so far.
        open: Calls whose connection still stands.
        silent: Whether it says nothing.
        limited: Whether it says that there are too many requests.
    """

    def __init__(self) -> None:
        self.begun = self.open = 0
        self.silent = self.limited = False
        self.ended = threading.Event()
        self._lock = threading.Lock()
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["content-length"]))
                owner._count(1)
                try:
                    owner._write(self)
                except OSError:
                    self.close_connection = True
                finally:
                    owner._count(-1)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                del format, args

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def close(self) -> None:
        self.ended.set()
        self._server.shutdown()
        self._server.server_close()

    def _count(self, change: int) -> None:
        with self._lock:
            self.begun += max(0, change)
            self.open += change

    def _write(self, handler: BaseHTTPRequestHandler) -> None:
        if self.silent:
            handler.connection.settimeout(0.1)
            while not self.ended.is_set():
                try:
                    if not handler.connection.recv(1):
                        return
                except TimeoutError:
                    continue
        if self.limited:
            handler.send_error(429)
            return
        handler.send_response(200)
        handler.send_header("content-type", "text/event-stream")
        handler.end_headers()
        text = '{"answered": true, "sentences": [{"citations": [], "text": "'
        while not self.ended.wait(0.1):
            piece = {"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": None}
            chunk = {"id": "x", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": [piece]}
            handler.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
            text = "とても長い文"


@pytest.fixture(scope="module")
def endless() -> Iterator[EndlessModel]:
    found = EndlessModel()
    yield found
    found.close()


@pytest.fixture
def model(endless: EndlessModel) -> EndlessModel:
    """The model of all servers here, which nobody has called yet."""
    endless.begun = 0
    endless.silent = endless.limited = False
    return endless


@contextmanager
def serving(sample_home: Path, folder: Path, model: EndlessModel) -> Iterator[RunningServer]:
    """A server on a copy of the sample."""
    shutil.copytree(sample_home, folder / "home", symlinks=True)
    environment = {
        "RAG_LANGUAGE_MODEL__PROVIDER": "openai",
        "RAG_LANGUAGE_MODEL__MODEL": "m",
        "RAG_LANGUAGE_MODEL__BASE_URL": model.url,
        "RAG_LANGUAGE_MODEL__CONTEXT_TOKENS": "8192",
        "RAG_SEARCH__MODEL_PATIENCE_SECONDS": "3",
        "RAG_SERVE__REQUESTS_PER_MINUTE": "0",
        "RAG_SERVE__ASK_WORKERS": str(WORKERS),
    }
    with running(folder / "home", folder / "log.jsonl", **environment) as found:
        yield found


@pytest.fixture(scope="module")
def server(
    sample_home: Path, tmp_path_factory: pytest.TempPathFactory, endless: EndlessModel
) -> Iterator[RunningServer]:
    """A server of several tests, none of which ends it."""
    with serving(sample_home, tmp_path_factory.mktemp("server"), endless) as found:
        yield found


@pytest.fixture
def own_server(sample_home: Path, tmp_path: Path, model: EndlessModel) -> Iterator[RunningServer]:
    """A server that the test may end."""
    with serving(sample_home, tmp_path, model) as found:
        yield found


def until(condition: Callable[[], bool], seconds: float = 15.0) -> bool:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.1)
    return condition()


def in_flight(server: RunningServer, kind: str) -> float:
    text = httpx.get(f"{server.url}/metrics").text
    [line] = [line for line in text.splitlines() if line.startswith(f'rag_in_flight{{kind="{kind}"}}')]
    return float(line.split()[-1])


@pytest.mark.parametrize("silent", [True, False], ids=["silent", "writing"])
@pytest.mark.parametrize("headers", [EVENTS, {}], ids=["events", "whole"])
def test_callers_who_leave_end_the_writing_and_make_room(
    server: RunningServer, model: EndlessModel, headers: dict[str, str], *, silent: bool
) -> None:
    model.silent = silent
    left = []
    numbers = count(1)

    def asked() -> dict[str, str]:
        """A question of its own: who asks what another is asking waits for that answer."""
        return {**QUESTION, "question": f"{QUESTION['question']} ({next(numbers)})"}

    def ask_and_leave(seconds: float) -> None:
        timeout = httpx.Timeout(60, read=seconds)
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{server.url}/api/v1/ask", json=asked(), headers=headers, timeout=timeout)
        left.append(True)

    def read_a_little_and_leave() -> None:
        with httpx.stream("POST", f"{server.url}/api/v1/ask", json=asked(), headers=headers, timeout=60) as response:
            texts = (line for line in response.iter_lines() if line == "event: text")
            assert len(list(islice(texts, 40))) == 40
        left.append(True)

    first = read_a_little_and_leave if headers == EVENTS and not silent else partial(ask_and_leave, 6)
    threads = [threading.Thread(target=first) for _ in range(WORKERS)]
    for thread in threads:
        thread.start()
    assert until(lambda: model.open == WORKERS)
    threads += [threading.Thread(target=ask_and_leave, args=(1,)) for _ in range(WORKERS)]
    for thread in threads[WORKERS:]:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(left) == 2 * WORKERS
    assert until(lambda: model.open == 0), f"{model.open} calls go on for nobody"
    assert until(lambda: in_flight(server, "answers") == 0)
    assert model.begun == WORKERS, "those who left while they waited for their turn are not answered"
    model.silent = False
    with httpx.stream("POST", f"{server.url}/api/v1/ask", json=QUESTION, headers=EVENTS, timeout=30) as response:
        assert response.status_code == 200
        assert any(line == "event: text" for line in response.iter_lines())


def test_a_search_that_waits_for_the_model_ends_with_its_caller(server: RunningServer, model: EndlessModel) -> None:
    model.silent = True
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(
            f"{server.url}/api/v1/search",
            json={"query": "有効期限", "mode": "hyde"},
            timeout=httpx.Timeout(30, read=3),
        )
    assert model.begun > 0
    assert until(lambda: model.open == 0)
    assert until(lambda: in_flight(server, "search") == 0)


@pytest.mark.parametrize("stays", [True, False], ids=["waits", "left"])
def test_a_server_with_a_stuck_model_ends_when_it_is_asked_to(
    own_server: RunningServer, model: EndlessModel, *, stays: bool
) -> None:
    model.silent = True
    with ExitStack() as stack:
        response = stack.enter_context(
            httpx.stream("POST", f"{own_server.url}/api/v1/ask", json=QUESTION, headers=EVENTS, timeout=60)
        )
        assert response.status_code == 200
        assert until(lambda: model.open == 1)
        if not stays:
            stack.close()
        own_server.process.send_signal(signal.SIGTERM)
        assert own_server.process.wait(timeout=25) == 0


@pytest.mark.parametrize("mode", ["hybrid", "rewrite+hybrid", "hyde", "text_map_reduce"])
def test_where_the_model_takes_no_requests_passages_are_quoted_soon(
    server: RunningServer, model: EndlessModel, mode: str
) -> None:
    model.limited = True
    began = time.monotonic()
    answer = httpx.post(f"{server.url}/api/v1/ask", json={**QUESTION, "mode": mode}, timeout=60).json()
    assert time.monotonic() - began < 15
    assert "429" in answer["failure"]
    assert answer["sentences"]
    assert answer["model"] is None
    assert {call["outcome"] for call in answer["trace"]["calls"]} == {"failed"}
