"""Work that may crash, take too long or too much memory, done in processes that can be ended: the two ends of a pipe.

`Workers` are some processes that answer requests; each runs `main` of a module, which takes two file descriptors, opens
them by `connect` and answers by `serve`. A process inherits no environment but what Python needs, so that it holds no
keys, and ends with its parent.

Not built on Pebble or concurrent.futures: neither watches memory, bounds answers, nor tells a kill for memory from a
crash.

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
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import IO, TypeVar

from rag_assets.contracts.errors import QueryError

_Answer = TypeVar("_Answer")

_START_SECONDS = 60.0
_WATCH_SECONDS = 0.1
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


class _Process:
    """One process, seen from its parent.

    Args:
        module: Module whose `main` it runs.
        options: What goes with it.

    Attributes:
        connection: The parent's end of its pipe.
    """

    def __init__(self, module: str, options: "WorkerOptions") -> None:
        self._scratch = tempfile.mkdtemp(prefix="rag-assets-")  # of the programs that it starts
        self.connection, child_connection = Pipe()
        lifeline, self._lifeline = os.pipe()
        command = _COMMAND.format(path=sys.path, module=module, descriptor=child_connection.fileno(), lifeline=lifeline)
        environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        self._output: IO[bytes] | None = None
        self._output_bytes = options.output_bytes
        if options.output_bytes:
            self._output = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - lives as long as the process
        output = subprocess.DEVNULL if self._output is None else self._output
        try:
            self._process = subprocess.Popen(  # noqa: S603 - this interpreter with a fixed program
                [sys.executable, "-W", "ignore", "-c", command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=(child_connection.fileno(), lifeline),
                env=environment | _SET | {"TMPDIR": self._scratch},
                start_new_session=True,  # an interrupt from the keyboard is for its parent
            )
        except OSError:
            self._forget()
            raise
        finally:
            child_connection.close()
            os.close(lifeline)
        if options.greeting:
            with suppress(OSError):  # where it has ended at once, reading from it says so
                self.connection.send_bytes(options.greeting)

    def status(self, wait_seconds: float = 0.0) -> int | None:
        """Its exit status, negative for a signal; None while it runs."""
        with suppress(subprocess.TimeoutExpired):
            return self._process.wait(wait_seconds)
        return None

    def output(self) -> bytes:
        """What it printed."""
        return os.pread(self._output.fileno(), self._output_bytes, 0) if self._output else b""

    def memory(self) -> tuple[int, int]:
        """Allocated private memory and resident memory in bytes; 0 where the system does not tell.

        The kernel's own limit is on the first; what is shared or mapped shows in the second alone.
        """
        return _memory(self._process.pid)

    def kill(self) -> None:
        """End it at once, with the programs that it has started; it holds nothing worth saving."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def close(self) -> None:
        """End it, and forget all of it."""
        self.kill()
        self._process.wait()
        self._forget()

    def _forget(self) -> None:
        shutil.rmtree(self._scratch, ignore_errors=True)
        self.connection.close()
        os.close(self._lifeline)
        if self._output:
            self._output.close()


def _memory(process: int | str) -> tuple[int, int]:
    try:
        fields = Path(f"/proc/{process}/statm").read_text("ascii").split()
    except OSError:
        return 0, 0
    page_bytes = os.sysconf("SC_PAGE_SIZE")
    return int(fields[5]) * page_bytes, int(fields[1]) * page_bytes


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


@dataclass(frozen=True)
class WorkerOptions:
    """What goes with the processes of one kind."""

    # the first message that each gets; none where it is empty. A command line can be read by others
    greeting: bytes = b""
    memory_bytes: int | None = None  # resident memory over which one is ended; None for what its own limits allow
    answer_bytes: int | None = None  # length of an answer
    output_bytes: int = 0  # how much is kept of what one prints


class WorkerEnded(QueryError):  # noqa: N818 - what happened
    """The worker was ended: too slow, or out of memory.

    Attributes:
        started: Whether it had started.
        seconds: What it had for the request, or to start.
        is_late: Whether it took longer.
        is_killed: Whether nobody waits for it any more.
        resident_bytes: Memory for which it was ended, resident; 0 where it was not.
        data_bytes: Private memory when it was looked at last.
        status: How it ended by itself, negative for a signal; None where it did not.
        output: What it printed.
    """

    started, is_late, is_killed = True, False, False
    seconds = 0.0
    resident_bytes = data_bytes = 0
    status: int | None = None
    output = b""


class _Worker:
    """One process that answers requests. For one thread at a time, but for `kill`."""

    def __init__(self, module: str, options: WorkerOptions) -> None:
        self._module, self._options = module, options
        self._process: _Process | None = None
        self._started = self._killed = False
        self._data_bytes = 0

    def ask(
        self, request: bytes, seconds: float, read: Callable[[bytes], _Answer], grant: Callable[[bytes], float]
    ) -> _Answer:
        """The answer to a request within some seconds, once the process has started. Arguments as for `Workers`.

        Raises:
            WorkerEnded: There is none within the time, or the process died.
        """
        if self._process is None or self._process.status() is not None:
            self.close()
            self._process, self._started, self._data_bytes = _Process(self._module, self._options), False, 0
        process = self._process
        try:
            if not self._started:
                self._receive(process, time.monotonic(), _START_SECONDS)
                self._started = True
            began_at = time.monotonic()
            process.connection.send_bytes(request)
            while (mark := self._receive(process, began_at, seconds)) == _WANTS:
                seconds = grant(self._receive(process, began_at, seconds))
            answer = read(self._receive(process, began_at, seconds))
        except (EOFError, OSError) as error:
            status = process.status(
                10.0 if isinstance(error, EOFError | ConnectionError) else 0.0
            )  # memory takes time to free
            reason = "it took more memory than it may" if (status or 0) < 0 else "the process failed"
            end = self._end(reason, seconds)
            end.status, end.output = status, process.output()
            self.close()
            raise end from error
        except BaseException:
            self.close()
            raise
        if mark == _LAST:
            self.close()
        return answer

    def _receive(self, process: _Process, began_at: float, seconds: float) -> bytes:
        if self._killed:
            raise self._end("it was ended", seconds)
        most = self._options.memory_bytes
        while True:
            left = max(began_at + seconds - time.monotonic(), 0.0)
            if process.connection.poll(left if most is None else min(left, _WATCH_SECONDS)):
                return process.connection.recv_bytes(self._options.answer_bytes)
            self._data_bytes, resident_bytes = process.memory()
            if most is not None and resident_bytes > most:
                end = self._end("it took more memory than it may", seconds)
                end.resident_bytes = resident_bytes
                raise end
            if not left:
                end = self._end("it took longer than it may", seconds)
                end.is_late = True
                raise end

    def _end(self, reason: str, seconds: float) -> WorkerEnded:
        end = WorkerEnded(reason)
        end.started, end.seconds, end.data_bytes = self._started, seconds, self._data_bytes
        end.is_killed = self._killed
        return end

    def kill(self) -> None:
        self._killed = True
        if (process := self._process) is not None:
            process.kill()

    def close(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.close()


_NO_OPTIONS = WorkerOptions()


class Workers:
    """Some processes of one kind; who asks waits for one that is free. Safe to use from several threads.

    Args:
        module: Module whose `main` they run; it calls `serve`.
        count: Processes, at most.
        options: What goes with each.
    """

    def __init__(self, module: str, count: int, options: WorkerOptions = _NO_OPTIONS) -> None:
        self._all = [_Worker(module, options) for _ in range(count)]
        self._free = list(self._all)
        self._condition = threading.Condition()
        self._closed = False

    def ask(self, request: bytes, seconds: float) -> bytes:
        """The answer to a request; as `ask_for`."""
        return self.ask_for(request, seconds, bytes)

    def ask_for(
        self,
        request: bytes,
        seconds: float,
        read: Callable[[bytes], _Answer],
        grant: Callable[[bytes], float] = lambda _: 0.0,
    ) -> _Answer:
        """What is read from the answer to a request; a process that sends what cannot be read is ended.

        Args:
            request: The request.
            seconds: What there is for it, once the process has started.
            read: Reads the answer; what it raises is raised.
            grant: Seconds for the request in all, told what the process said by `want_time`.

        Raises:
            WorkerEnded: There is none within the time, or the process died.
        """
        with self._condition:
            if not self._condition.wait_for(lambda: self._free or self._closed, timeout=seconds) or not self._free:
                raise WorkerEnded("others were asked first, and took all the time")
            worker = self._free.pop()
        try:
            return worker.ask(request, seconds, read, grant)
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


_MORE, _LAST, _WANTS = b"+", b".", b"?"  # before an answer, before the last one of this process, before `want_time`


def serve(
    connection: Connection, handle: Callable[[bytes], bytes], is_spent: Callable[[], bool] = lambda: False
) -> None:
    """Answer requests until there are no more: the worker's end.

    Args:
        connection: As `connect` gives it.
        handle: Answers a request.
        is_spent: Asked after each answer: whether another process shall answer the next one.
    """
    connection.send_bytes(b"")  # it has started
    with suppress(EOFError):
        while True:
            answer = handle(connection.recv_bytes())
            connection.send_bytes(_LAST if is_spent() else _MORE)
            connection.send_bytes(answer)
            del answer


def want_time(connection: Connection, reason: bytes) -> None:
    """Ask for more time for the request that is under way; the parent says how much."""
    connection.send_bytes(_WANTS)
    connection.send_bytes(reason)


def data_bytes() -> int:
    """Private memory that this process has allocated, in bytes; 0 where the system does not tell."""
    return _memory("self")[0]


def limit_memory(count: int) -> None:
    """Let this process take no more memory than now and a number of bytes, where the platform can."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        most = data_bytes() + count
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
