"""Ctrl-C and SIGTERM while `rag-assets index` runs: one line, no traceback, and the next run goes on from there."""

import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from rag_assets.cli import main
from rag_assets.pipeline.freshness import unfinished_steps
from rag_assets.pipeline.home import Home

HEEDING = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"  # also in the background
COMMAND = [sys.executable, "-c", f"{HEEDING}; from rag_assets.cli import main; main()", "index"]
KEPT = "finished steps and model answers are kept; the next `rag-assets index` goes on from there"
LINE = f"rag-assets: interrupted: {KEPT}"


@contextmanager
def indexing(home: Home, more: Mapping[str, str] | None = None) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """A process of its own group, as on a terminal, and the lines that it has written so far."""
    environment = {**os.environ, "RAG_HOME": str(home.path), "RAG_SOURCES": home.settings.sources[0], **(more or {})}
    lines: list[str] = []
    process = subprocess.Popen(
        COMMAND,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    output = process.stdout
    assert output is not None
    reader = threading.Thread(target=lambda: lines.extend(iter(output.readline, "")))
    reader.start()
    try:
        yield process, lines
        process.wait(timeout=60)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        reader.join()
        output.close()


def await_true(process: subprocess.Popen[str], condition: Callable[[], bool]) -> None:
    while not condition():
        assert process.poll() is None, "it ended before the moment came"
        time.sleep(0.01)


def assert_ended_in_one_line(process: subprocess.Popen[str], lines: list[str], status: int = 130) -> None:
    output = "".join(lines)
    assert process.returncode == status, output
    assert lines[-1] == f"{LINE}\n", output
    assert output.count("interrupted") == 1
    for unwanted in ("Traceback", "Exception", "Error", "Aborted", "KeyboardInterrupt"):
        assert unwanted not in output


def parsers_of(process: subprocess.Popen[str]) -> list[int]:
    """Parsing processes that a process started."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == process.pid and b"parsing.pool" in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
        except OSError:  # it has ended
            continue
    return found


def write(home: Home, name: str, text: str) -> None:
    (Path(home.settings.sources[0]) / name).write_text(text, encoding="utf-8")


def test_ctrl_c_ends_in_one_line_at_any_moment(home: Home) -> None:
    write(home, "a.md", "# 料金表\n\n月額は 3000 円。\n")
    moments = ("starting", "loading Dagster", "(step 1 of", "embed questions")
    for moment in moments:
        with indexing(home) as (process, lines):
            await_true(process, lambda: any(moment in line for line in lines))  # noqa: B023 - called in this turn
            os.killpg(process.pid, signal.SIGINT)
        assert_ended_in_one_line(process, lines)
    finished = CliRunner().invoke(main, ["--home", str(home.path), "index", home.settings.sources[0]])
    assert finished.exit_code == 0, finished.output
    assert unfinished_steps(home) == []


@pytest.mark.parametrize(
    "module",
    ["rag_assets.cli", "click.core", "rag_assets.cli.indexing", "rag_assets.pipeline.home", "pydantic", "pyarrow"],
)
def test_ctrl_c_ends_in_one_line_while_the_command_is_loaded(tmp_path: Path, module: str) -> None:
    code = f"""if True:
        import os, signal, sys
        from rag_assets.__main__ import main

        class Interruption:
            def find_spec(self, name, path, target=None):
                if name == {module!r}:
                    os.kill(os.getpid(), signal.SIGINT)

        {HEEDING}
        sys.meta_path.insert(0, Interruption())
        main()
    """
    command = [sys.executable, "-c", code, "--home", str(tmp_path), "search", "price"]
    result = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stdout, result.stderr) == (130, "", "rag-assets: interrupted\n")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(*) FROM range(100000000000) a, range(1000)",
        "SELECT a.range, 'x' || b.range FROM range(100000000) a, range(1000) b",
    ],
    ids=["executed", "fetched"],
)
def test_ctrl_c_ends_a_query_at_once(tmp_path: Path, query: str) -> None:
    (tmp_path / "lake").mkdir()
    code = f"""if True:
        import os, signal, sys, threading, time
        from rag_assets.cli import main
        from rag_assets.serve.sql import database

        {HEEDING}
        open_database = database.open_database

        def interrupt():
            print(time.monotonic(), flush=True)
            os.kill(os.getpid(), signal.SIGINT)

        def opened(*arguments):
            threading.Timer(2, interrupt).start()
            return open_database(*arguments)

        database.open_database = opened
        sys.argv = ["rag-assets", "--home", {str(tmp_path)!r}, "sql", {query!r}]
        main()
    """
    (tmp_path / "command.py").write_text(code)  # of code that has no file DuckDB thinks that it is typed
    command = [sys.executable, str(tmp_path / "command.py")]
    result = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    seconds = time.monotonic() - float(result.stdout)
    assert (result.returncode, result.stderr) == (130, "rag-assets: interrupted\n")
    assert seconds < 5  # a second, where the machine does nothing else


def test_nothing_is_loaded_before_ctrl_c_is_heeded() -> None:
    code = "import sys, rag_assets.__main__; print([name for name in sys.modules if name.startswith('rag_assets')])"
    result = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60)
    assert result.stdout == "['rag_assets', 'rag_assets.__main__']\n"


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_while_files_are_parsed_ends_their_processes(home: Home, number: signal.Signals, status: int) -> None:
    rows = "".join(f"{row},値 {row},{row * 7}\n" for row in range(100_000))
    write(home, "large.csv", f"番号,名前,金額\n{rows}")
    with indexing(home) as (process, lines):
        await_true(process, lambda: bool(parsers_of(process)))
        parsers = parsers_of(process)
        os.killpg(process.pid, number)
    assert_ended_in_one_line(process, lines, status)
    deadline = time.monotonic() + 5  # a killed process is there until the system has taken it away
    while remaining := [pid for pid in parsers if Path(f"/proc/{pid}").exists()]:
        assert time.monotonic() < deadline, remaining
        time.sleep(0.05)


def test_a_signal_while_a_language_model_is_waited_for_ends_within_seconds(home: Home) -> None:
    write(home, "a.md", "# 料金表\n\n月額は 3000 円。\n")
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        connections: list[socket.socket] = []
        asked = threading.Event()

        def accept() -> None:
            """Take requests and never answer."""
            try:
                while True:
                    connection, _ = server.accept()
                    connections.append(connection)
                    if connection.recv(16).startswith(b"POST"):
                        asked.set()
            except OSError:  # the server is closed
                return

        threading.Thread(target=accept, daemon=True).start()
        model = {
            "RAG_LANGUAGE_MODEL__PROVIDER": "openai",
            "RAG_LANGUAGE_MODEL__MODEL": "m",
            "RAG_LANGUAGE_MODEL__BASE_URL": f"http://127.0.0.1:{server.getsockname()[1]}/v1",
            "RAG_LANGUAGE_MODEL__CONTEXT_TOKENS": "8192",
            "OPENAI_API_KEY": "none",
        }
        with indexing(home, model) as (process, lines):
            await_true(process, asked.is_set)
            os.killpg(process.pid, signal.SIGINT)
        for connection in connections:
            connection.close()
    assert_ended_in_one_line(process, lines)


def test_ctrl_c_in_a_terminal_ends_the_ui_without_tracebacks(home: Home) -> None:
    controller, terminal = os.openpty()
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "rag_assets", "--home", str(home.path), "ui", "--port", str(port)]
    logged_in = f"import os; os.login_tty(0); os.execv({sys.executable!r}, {command!r})"
    process = subprocess.Popen([sys.executable, "-c", logged_in], stdin=terminal, stdout=terminal, stderr=terminal)
    os.close(terminal)
    output, interrupted = b"", False
    try:
        while (has_more := select.select([controller], [], [], 0.5)[0]) or process.poll() is None:
            if not has_more:  # a code server that was still starting has the terminal open for longer than the command
                continue
            try:
                output += os.read(controller, 65_536)
            except OSError:  # nobody has the terminal open any more
                break
            if b"Dagster UI:" in output and not interrupted:
                interrupted = bool(os.write(controller, b"\x03"))
        assert process.wait(timeout=60) == 0
    finally:
        process.kill()
        os.close(controller)
    assert output.count(b"rag-assets: interrupted: the UI and the daemon are ending") == 1
    for unwanted in (b"Traceback", b"KeyboardInterrupt", b"Error", b"leaked"):
        assert unwanted not in output
