"""Work that may crash, take too long or too much memory, done in processes that can be ended: the two ends of a pipe.

`Process` is one such process: it runs `main` of a module, which takes two file descriptors, and speaks in messages of
bytes. `Workers` are some of them that answer requests, through `serve` at their end. A process inherits no environment
but what Python needs, so that it holds no keys, and ends with its parent.

Started as `python -c`, not through multiprocessing: nothing of the parent's `__main__` is imported again, so it works
from scripts, notebooks, pytest and Dagster steps alike. What stays out: what a process may not do (`confinement`).
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import IO

from rag_assets.contracts.errors import QueryError

START_SECONDS = 60.0
_COMMAND = "import sys; sys.path[:] = {path!r}; from {module} import main; main({descriptor}, {lifeline})"
_PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "VIRTUAL_ENV")
_SET = {
    "DO_NOT_TRACK": "true",
    "ORT_DISABLE_TELEMETRY": "1",
    "SCARF_NO_ANALYTICS": "true",
    "UNSTRUCTURED_DISABLE_NOTICE": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "PYTHONUTF8": "1",
    # memory that is reserved and not used counts as well
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_ARENA_MAX": "2",
}


def processors() -> int:
    """Processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Process:
    """One process, seen from its parent.

    Args:
        module: Module whose `main` it runs.
        output: File that takes what it prints; nothing is kept without.

    Attributes:
        connection: The parent's end of its pipe.
        pid: Its number, which is that of its group as well.
    """

    def __init__(self, module: str, output: IO[bytes] | None = None) -> None:
        self._scratch = tempfile.mkdtemp(prefix="rag-assets-")  # of the programs that it starts
        self.connection, theirs = Pipe()
        lifeline, self._lifeline = os.pipe()
        command = _COMMAND.format(path=sys.path, module=module, descriptor=theirs.fileno(), lifeline=lifeline)
        environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        printed = subprocess.DEVNULL if output is None else output
        try:
            self._process = subprocess.Popen(  # noqa: S603 - this interpreter with a fixed program
                [sys.executable, "-W", "ignore", "-c", command],
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=printed,
                pass_fds=(theirs.fileno(), lifeline),
                env=environment | _SET | {"TMPDIR": self._scratch},
                start_new_session=True,  # an interrupt from the keyboard is for its parent
            )
        finally:
            theirs.close()
            os.close(lifeline)
        self.pid = self._process.pid

    def status(self, wait_seconds: float = 0.0) -> int | None:
        """Its exit status, negative for a signal; None while it runs."""
        with suppress(subprocess.TimeoutExpired):
            return self._process.wait(wait_seconds)
        return None

    def kill(self) -> None:
        """End it at once, with the programs that it has started; it holds nothing worth saving."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)

    def close(self) -> None:
        """End it, and forget all of it."""
        self.kill()
        self._process.wait()
        shutil.rmtree(self._scratch, ignore_errors=True)
        self.connection.close()
        os.close(self._lifeline)


def connect(descriptor: int, lifeline: int) -> Connection:
    """The process's end of its pipe. From here on it ends when its parent does.

    Args:
        descriptor: File descriptor of the pipe.
        lifeline: File descriptor that is closed when the parent is gone.
    """
    threading.Thread(target=_die_with_parent, args=(lifeline,), daemon=True).start()
    return Connection(descriptor)


def _die_with_parent(lifeline: int) -> None:
    os.read(lifeline, 1)
    os.killpg(os.getpid(), signal.SIGKILL)  # with the programs that it has started


class WorkerEnded(QueryError):  # noqa: N818 - what happened
    """The worker was ended: too slow, or out of memory."""


class _Worker:
    """One process that answers requests. For one thread at a time, but for `kill`."""

    def __init__(self, module: str) -> None:
        self._module = module
        self._process: Process | None = None
        self._started = False

    def ask(self, request: bytes, seconds: float) -> bytes:
        """The answer to a request within some seconds, once the process has started.

        Raises:
            WorkerEnded: There is none within the time, or the process died.
        """
        if self._process is None or self._process.status() is not None:
            self.close()
            self._process, self._started = Process(self._module), False
        process = self._process
        try:
            if not self._started:
                self._receive(process, START_SECONDS)
                self._started = True
            deadline = time.monotonic() + seconds
            process.connection.send_bytes(request)
            answer = self._receive(process, deadline - time.monotonic())
        except (EOFError, OSError) as error:
            status = process.status(10.0)
            self.close()
            reason = "it took more memory than it may" if (status or 0) < 0 else "the process failed"
            raise WorkerEnded(reason) from error
        except BaseException:
            self.close()
            raise
        if answer[:1] == _LAST:
            self.close()
        return answer[1:]

    @staticmethod
    def _receive(process: Process, seconds: float) -> bytes:
        if not process.connection.poll(max(seconds, 0.0)):
            raise WorkerEnded("it took longer than it may")
        return process.connection.recv_bytes()

    def kill(self) -> None:
        if (process := self._process) is not None:
            process.kill()

    def close(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.close()


class Workers:
    """Some processes of one kind; who asks waits for one that is free. Safe to use from several threads.

    Args:
        module: Module whose `main` they run; it calls `serve`.
        count: Processes, at most.
    """

    def __init__(self, module: str, count: int) -> None:
        self._all = [_Worker(module) for _ in range(count)]
        self._free = list(self._all)
        self._condition = threading.Condition()
        self._closed = False

    def ask(self, request: bytes, seconds: float) -> bytes:
        """The answer to a request.

        Raises:
            WorkerEnded: There is none within the time, or the process died.
        """
        with self._condition:
            if not self._condition.wait_for(lambda: self._free or self._closed, timeout=seconds) or not self._free:
                raise WorkerEnded("others were asked first, and took all the time")
            worker = self._free.pop()
        try:
            return worker.ask(request, seconds)
        finally:
            self._give_back(worker)

    def _give_back(self, worker: _Worker) -> None:
        with self._condition:
            if self._closed:
                worker.close()
            else:
                self._free.append(worker)
            self._condition.notify()

    def kill(self) -> None:
        """End the processes at once; who waits for an answer gets none."""
        for worker in self._all:
            worker.kill()
        self.close()

    def close(self) -> None:
        """End the processes; those under way end with their request."""
        with self._condition:
            self._closed = True
            while self._free:
                self._free.pop().close()
            self._condition.notify_all()


_MORE, _LAST = b"+", b"."  # the first byte of an answer: whether it is the last one of this process


def serve(
    descriptor: int, lifeline: int, handle: Callable[[bytes], bytes], is_spent: Callable[[], bool] = lambda: False
) -> None:
    """Answer requests until there are no more: the worker's end.

    Args:
        descriptor: As `connect` takes it.
        lifeline: As `connect` takes it.
        handle: Answers a request.
        is_spent: Asked after each answer: whether another process shall answer the next one.
    """
    connection = connect(descriptor, lifeline)
    connection.send_bytes(b"")  # it has started
    with suppress(EOFError):
        while True:
            answer = handle(connection.recv_bytes())
            connection.send_bytes((_LAST if is_spent() else _MORE) + answer)


def limit_memory(count: int) -> None:
    """Let this process take no more memory than now and a number of bytes, where the platform can."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        pages = int(Path("/proc/self/statm").read_text("ascii").split()[5])  # those of data
        most = pages * resource.getpagesize() + count
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
