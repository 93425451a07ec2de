import logging
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import golden
import pytest

from rag_assets.contracts.causes import FailureCause
from rag_assets.contracts.content import ParsedDocument
from rag_assets.parsing import ocr
from rag_assets.parsing.limits import ParsingLimits
from rag_assets.parsing.pool import ParseJob, decode_answer, parse_files

LIMITS = replace(golden.LIMITS, timeout_seconds=20.0, memory_bytes=1 << 29, file_bytes=1 << 20)

# A PDF library that does what the bytes of the file say: what a parser with a defect does to its process.
BAD_LIBRARY = """
import os, signal, sys, time

class PdfiumError(RuntimeError):
    pass

raw = None

class PdfSysfontBase:
    def setup(self):
        pass

class PdfDocument:
    def __init__(self, data, password=None):
        order = data[5:].split()
        match order[0]:
            case b"hang":
                while True:
                    pass
            case b"sleep":
                time.sleep(600)
            case b"scan":
                frame = sys._getframe(1)
                while "ocr_time" not in frame.f_locals:
                    frame = frame.f_back
                frame.f_locals["ocr_time"].add_pages(int(order[1]))
                time.sleep(float(order[2]))
            case b"segfault":
                os.kill(os.getpid(), signal.SIGSEGV)
            case b"killed":
                os.kill(os.getpid(), signal.SIGKILL)
            case b"exit":
                os._exit(7)
            case b"eat":
                kept = []
                while True:
                    kept.append(b"x" * (1 << 24))
            case b"share":
                import mmap
                kept = mmap.mmap(-1, 1 << 30)
                for place in range(0, 1 << 30, 4096):
                    kept[place] = 1
                time.sleep(600)
            case b"raise":
                raise KeyError("lost")
            case b"print":
                print("x" * (1 << 20))
                os.write(1, b"x" * 1000)
            case b"do":
                exec(data[5:].decode().removeprefix("do "))
        raise PdfiumError("done")
"""


@pytest.fixture
def bad_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "library"
    folder.mkdir()
    (folder / "pypdfium2.py").write_text(BAD_LIBRARY)
    monkeypatch.syspath_prepend(str(folder))
    return folder


def jobs(folder: Path, *orders: str) -> list[ParseJob]:
    found = []
    for index, order in enumerate(orders):
        path = folder / (f"{index}.txt" if order == "fine" else f"{index}.pdf")
        path.write_text("fine" if order == "fine" else f"%PDF-{order}")
        found.append(ParseJob(f"source/{index}-{order.split()[0]}{path.suffix}", path))
    return found


def outcomes(found: list[ParseJob], limits: ParsingLimits, workers: int = 2) -> dict[str, ParsedDocument]:
    return {
        Path(job.document_id).stem: document for job, document in parse_files(found, workers=workers, limits=limits)
    }


def causes(found: dict[str, ParsedDocument]) -> dict[str, list[FailureCause]]:
    return {name: [failure.cause for failure in document.failures] for name, document in found.items()}


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def children(of: int | None = None) -> list[int]:
    """Parsing processes that a process has started, or this one."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == (of or os.getpid()) and b"rag_assets.parsing.pool" in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def limited(timeout_seconds: float) -> ParsingLimits:
    return replace(LIMITS, timeout_seconds=timeout_seconds)


def test_bad_files_cost_themselves_only(tmp_path: Path, bad_library: Path) -> None:
    found = jobs(
        tmp_path, "fine", "segfault", "fine", "killed", "exit", "eat", "share", "raise", "hang", "fine", "print", "fine"
    )
    assert causes(outcomes(found, limited(3.0))) == {
        "0-fine": [],
        "1-segfault": [FailureCause.CRASHED],
        "2-fine": [],
        "3-killed": [FailureCause.CRASHED],
        "4-exit": [FailureCause.CRASHED],
        "5-eat": [FailureCause.MEMORY],
        "6-share": [FailureCause.MEMORY],
        "7-raise": [FailureCause.MALFORMED],
        "8-hang": [FailureCause.TIMEOUT],
        "9-fine": [],
        "10-print": [FailureCause.MALFORMED],
        "11-fine": [],
    }
    assert not children()


def test_messages_say_what_happened(tmp_path: Path, bad_library: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        found = outcomes(jobs(tmp_path, "segfault", "exit", "raise", "hang"), limited(1.5))
    messages = {name: document.failures[0].message for name, document in found.items()}
    assert messages["0-segfault"] == "the parsing process died: signal SIGSEGV"
    assert messages["1-exit"] == "the parsing process died: exit status 7"
    assert messages["2-raise"] == "the parser failed with KeyError: 'lost'"
    assert messages["3-hang"] == "parsing took longer than 1.5 seconds"
    traceback_id = found["2-raise"].failures[0].traceback_id
    assert traceback_id
    assert f"traceback {traceback_id}" in caplog.text
    assert "KeyError: 'lost'" in caplog.text


REFUSED = {
    "parsing has no network": (
        "import socket; socket.create_connection(('127.0.0.1', 9))",
        "import socket; socket.socket()",
        "import socket; socket.getaddrinfo('localhost', 80)",
        "import socket; socket.gethostbyname('localhost')",
        "import socket; socket.gethostbyaddr('127.0.0.1')",
        "import socket; socket.getnameinfo(('127.0.0.1', 80), 0)",
    ),
    "parsing starts and ends no other processes": (
        "import subprocess; subprocess.run(['true'])",
        "import multiprocessing; multiprocessing.get_context('fork').Process(target=print).start()",
        "import multiprocessing; multiprocessing.get_context('spawn').Process(target=print).start()",
        "os.system('true')",
        "os.popen('true')",
        "os.fork()",
        "os.posix_spawn('/bin/true', ['true'], {})",
        "os.execv('/bin/true', ['true'])",
        "os.kill(os.getppid(), 9)",
        "os.kill(0, 9)",
    ),
    "parsing writes no files": (
        "open('@new', 'wb')",
        "open('@old', 'a')",
        "open('@old', 'r+')",
        "os.open('@old', os.O_RDWR)",
        "os.open('@', os.O_TMPFILE | os.O_WRONLY)",
        "import tempfile; tempfile.mkdtemp(dir='@')",
        "import tempfile; tempfile.NamedTemporaryFile(dir='@')",
        "import shutil; shutil.copyfile('@old', '@new')",
        "import sqlite3; sqlite3.connect('@new')",
        "os.remove('@old')",
        "os.rename('@old', '@new')",
        "os.replace('@old', '@new')",
        "os.link('@old', '@new')",
        "os.symlink('@old', '@new')",
        "os.truncate('@old', 0)",
        "os.mkdir('@new')",
        "os.rmdir('@empty')",
        "os.chmod('@old', 0o777)",
        "os.utime('@old', (0, 0))",
    ),
}


def test_a_parsing_process_reaches_nothing_outside(tmp_path: Path, bad_library: Path) -> None:
    """All in one process: none of these ends it, and nothing around it changes."""
    folder = tmp_path / "outside"
    (folder / "empty").mkdir(parents=True)
    (folder / "old").write_text("kept")
    state = (folder / "old").stat()
    orders = [(words, code.replace("@", f"{folder}/")) for words, codes in REFUSED.items() for code in codes]
    found = outcomes(jobs(tmp_path, *(f"do {code}" for _, code in orders)), LIMITS, workers=1)
    for (words, code), document in zip(orders, found.values(), strict=True):
        (failure,) = document.failures
        assert failure.message.startswith(f"the parser failed with PermissionError: {words}"), (code, failure)
    assert sorted(path.name for path in folder.iterdir()) == ["empty", "old"]
    assert (folder / "old").read_text() == "kept"
    assert ((folder / "old").stat().st_mode, (folder / "old").stat().st_mtime) == (state.st_mode, state.st_mtime)


def test_temporary_files_are_kept_in_memory(tmp_path: Path, bad_library: Path) -> None:
    code = "import tempfile; file = tempfile.TemporaryFile(); file.write(bytes(1 << 20)); raise KeyError(file.tell())"
    (document,) = outcomes(jobs(tmp_path, f"do {code}"), LIMITS).values()
    assert document.failures[0].message == "the parser failed with KeyError: 1048576"


needs_ocr = pytest.mark.skipif(not ocr.is_installed(), reason="the extra `ocr` is not installed")


@needs_ocr
def test_pages_that_need_ocr_extend_the_time_of_their_file(tmp_path: Path, bad_library: Path) -> None:
    limits = replace(limited(1.0), ocr_seconds_per_page=1.0, ocr_seconds=100.0)
    found = outcomes(jobs(tmp_path, "scan 3 2.0", "sleep", "scan 1 600"), limits)
    messages = {name: document.failures[0].message for name, document in found.items()}
    assert messages == {
        "0-scan": "the PDF cannot be opened: done",
        "1-sleep": "parsing took longer than 1 seconds",
        "2-scan": "parsing took longer than 2 seconds",
    }


@needs_ocr
def test_a_process_cannot_extend_its_time_beyond_the_settings(tmp_path: Path, bad_library: Path) -> None:
    limits = replace(limited(1.0), ocr_seconds_per_page=5.0, ocr_seconds=0.5)
    (document,) = outcomes(jobs(tmp_path, "scan 1000000 600"), limits).values()
    assert document.failures[0].message == "parsing took longer than 1.5 seconds"


def test_environment_of_the_parent_is_not_passed_on(
    tmp_path: Path, bad_library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")
    (bad_library / "pypdfium2.py").write_text("import os\nraise ValueError(sorted(os.environ))")
    found = outcomes(jobs(tmp_path, "x"), LIMITS)
    assert "ValueError" in found["0-x"].failures[0].message
    assert "ANTHROPIC_API_KEY" not in found["0-x"].failures[0].message


def test_two_thousand_files_stream(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("text")
    pulled = 0

    def endless() -> Iterator[ParseJob]:
        nonlocal pulled
        for number in range(2000):
            pulled += 1
            yield ParseJob(f"s/{number}.txt", path)

    seen = set()
    for job, document in parse_files(endless(), workers=2, limits=LIMITS):
        assert not document.failures
        seen.add(job.document_id)
        assert pulled - len(seen) <= 4
    assert len(seen) == 2000


def test_closing_ends_the_processes(tmp_path: Path, bad_library: Path, caplog: pytest.LogCaptureFixture) -> None:
    iterator = parse_files(jobs(tmp_path, "fine", "sleep", "fine", "fine"), workers=2, limits=LIMITS)
    assert next(iterator)[0].document_id == "source/0-fine.txt"
    assert len(children()) == 2
    iterator.close()
    assert not children()
    assert not caplog.records, "what was ended on purpose is no news"


def test_no_process_outlives_a_killed_parent(tmp_path: Path, bad_library: Path) -> None:
    (job,) = jobs(tmp_path, "sleep")
    # No `if __name__ == "__main__"`: the caller's script is not imported again.
    script = f"""
        import sys
        sys.path.insert(0, {str(bad_library)!r})
        from rag_assets.parsing.pool import ParseJob, parse_files
        from rag_assets.parsing.limits import ParsingLimits
        list(parse_files([ParseJob("a.pdf", {str(job.path)!r})], workers=1, limits={LIMITS!r}))
    """
    root = Path(__file__).parents[2]
    deadline = time.monotonic() + 20
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)], cwd=root) as parent:
        while not (workers := children(parent.pid)) and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(1.0)  # until it has begun with the file
        parent.kill()
    (worker,) = workers
    while is_running(worker) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_running(worker)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "large.txt").write_bytes(b"x" * (LIMITS.file_bytes + 1))
    (tmp_path / "changed.txt").write_text("new")
    found = [
        ParseJob("s/missing.txt", tmp_path / "missing.txt"),
        ParseJob("s/large.txt", tmp_path / "large.txt"),
        ParseJob("s/changed.txt", tmp_path / "changed.txt", "0" * 64),
        ParseJob("s/folder.txt", tmp_path),
    ]
    assert causes(outcomes(found, LIMITS, workers=1)) == {
        "missing": [FailureCause.UNREADABLE],
        "large": [FailureCause.TOO_LARGE],
        "changed": [FailureCause.UNREADABLE],
        "folder": [FailureCause.UNREADABLE],
    }


def test_a_process_that_cannot_start_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    with pytest.raises(RuntimeError, match="cannot start"):
        list(parse_files([ParseJob("a.txt", tmp_path / "a.txt")], workers=1, limits=LIMITS))


def test_answers_hold_only_the_types_of_content() -> None:
    import pickle

    with pytest.raises(pickle.UnpicklingError, match="a parsing process sent"):
        decode_answer(pickle.dumps((os.getcwd, [])))
    with pytest.raises(pickle.UnpicklingError, match="expected a ParsedDocument"):
        decode_answer(pickle.dumps(("text", [])))


def test_no_jobs_start_no_process() -> None:
    assert list(parse_files([], workers=2, limits=LIMITS)) == []
