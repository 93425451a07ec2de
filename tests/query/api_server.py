"""Real servers for tests, in processes of their own, and a knowledge base that takes its time."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from starlette.testclient import TestClient

from rag_assets.contracts.errors import QueryError
from rag_assets.query import Answer, Answered, EvidenceFound, KnowledgeBase, TextPiece, Trace
from rag_assets.query.results import ModelCall

TOKEN = "a-token-of-the-tests"
MakeClient = Callable[..., TestClient]


@dataclass(frozen=True)
class RunningServer:
    """A server in a process of its own.

    Attributes:
        url: Where it is.
        line: What it printed.
        seconds: Time from its start until then.
        process: The process.
        log: File of its log.
    """

    url: str
    line: str
    seconds: float
    process: subprocess.Popen[str]
    log: Path

    def log_lines(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.log.read_text("utf-8").splitlines()]


@contextmanager
def running(
    home: Path, log: Path, *arguments: str, command: str = "serve", **environment: str
) -> Iterator[RunningServer]:
    began = time.perf_counter()
    with log.open("w", encoding="utf-8") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "rag_assets.cli", "--home", str(home), command, "--port", "0", *arguments],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env={**os.environ, **environment},
        )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line, log.read_text("utf-8")
        yield RunningServer(line.split()[0], line, time.perf_counter() - began, process, log)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout=20)
        finally:
            process.kill()
            process.stdout.close()


class SlowBase(KnowledgeBase):
    """Stands for a knowledge base whose model writes until nobody listens any more."""

    def __init__(self) -> None:
        self.begun, self.closed = threading.Event(), threading.Event()

    def ask_stream(self, question: str, *_rest: object, **_options: object) -> Iterator[object]:  # type: ignore[override]
        try:
            yield EvidenceFound((), Trace((), 0.0))
            if question == "fails":
                raise QueryError("nothing more")
            if question == "broken":
                call = ModelCall("answer_from_passages", "openai", "m", "failed", False, 100, 20, 7, 0.25, 1.0)
                yield Answered(Answer(question, "hybrid", True, "half \ud83d a sign", (), (), Trace((), 0.0, (call,))))
                return
            for _ in range(4000):
                self.begun.set()
                yield TextPiece("と")
                threading.Event().wait(0.005)
            yield Answered(Answer(question, "hybrid", False, "", (), (), Trace((), 0.0)))
        finally:
            self.closed.set()
