"""Real servers for tests, in processes of their own."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from starlette.testclient import TestClient

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
