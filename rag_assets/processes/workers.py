"""Work that may take too long or too much memory, done in processes that can be ended: the two ends of a pipe.

A worker is a module that calls `serve`; it is started when first asked, answers one request after another, and is
killed where an answer takes too long. It inherits no environment but what Python needs, so that it holds no keys.
"""

import os
import select
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from rag_assets.contracts.errors import QueryError

_LENGTH = struct.Struct(">Q")
_HEAD = struct.Struct(">Q?")  # of an answer: its length, and whether it is the last one of this process
_START_SECONDS = 60.0
_PASSED_ON = ("PATH", "PYTHONPATH", "LANG", "LC_ALL", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "SYSTEMROOT", "VIRTUAL_ENV")

# memory that is reserved and not used counts as well
_FRUGAL = {"ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "2", "OMP_NUM_THREADS": "1"}


class WorkerEnded(QueryError):  # noqa: N818 - what happened
    """The worker was ended: too slow, or out of memory."""


class Worker:
    """One process. For one thread at a time.

    Args:
        module: Module to run; it calls `serve`.
    """

    def __init__(self, module: str) -> None:
        self._module = module
        self._process: subprocess.Popen[bytes] | None = None
        self._started = False

    def ask(self, request: bytes, seconds: float) -> bytes:
        """The answer to a request.

        Args:
            request: What the module understands.
            seconds: Time for it, once the process has started.

        Raises:
            WorkerEnded: There is none within the time, or the process died.
        """
        process = self._running()
        try:
            self._await_start(process)
            deadline = time.monotonic() + seconds
            assert process.stdin is not None
            process.stdin.write(_LENGTH.pack(len(request)) + request)
            process.stdin.flush()
            length, is_last = _HEAD.unpack(self._read(process, _HEAD.size, deadline))
            answer = self._read(process, length, deadline)
        except OSError as error:
            ended = _ended(process)
            self.close()
            raise ended from error
        except BaseException:
            self.close()
            raise
        if is_last:
            self.close()
        return answer

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            for pipe in (process.stdin, process.stdout):
                with suppress(OSError):
                    assert pipe is not None
                    pipe.close()
            process.wait()

    def _await_start(self, process: subprocess.Popen[bytes]) -> None:
        if not self._started:
            self._read(process, _HEAD.size, time.monotonic() + _START_SECONDS)
            self._started = True

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self.close()
            environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ} | _FRUGAL
            self._started = False
            self._process = subprocess.Popen(  # noqa: S603 - a module of this package
                [sys.executable, "-m", self._module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
                start_new_session=True,  # an interrupt from the keyboard is for its parent
            )
        return self._process

    @staticmethod
    def _read(process: subprocess.Popen[bytes], count: int, deadline: float) -> bytes:
        assert process.stdout is not None
        found = bytearray()
        while len(found) < count:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([process.stdout], [], [], left)[0]:
                raise WorkerEnded("it took longer than it may")
            part = os.read(process.stdout.fileno(), min(count - len(found), 1 << 20))
            if not part:
                raise _ended(process)
            found += part
        return bytes(found)


def _ended(process: subprocess.Popen[bytes]) -> WorkerEnded:
    """Why a process is no more."""
    status = process.wait(timeout=10)
    return WorkerEnded("it took more memory than it may" if status < 0 else "the process failed")


class Workers:
    """Some processes of one kind; who asks waits for one that is free. Safe to use from several threads.

    Args:
        module: Module to run; it calls `serve`.
        count: Processes, at most.
    """

    def __init__(self, module: str, count: int) -> None:
        self._free = [Worker(module) for _ in range(count)]
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

    def _give_back(self, worker: Worker) -> None:
        with self._condition:
            if self._closed:
                worker.close()
            else:
                self._free.append(worker)
            self._condition.notify()

    def close(self) -> None:
        """End the processes; those under way end with their request."""
        with self._condition:
            self._closed = True
            while self._free:
                self._free.pop().close()
            self._condition.notify_all()


def serve(handle: Callable[[bytes], bytes], is_spent: Callable[[], bool] = lambda: False) -> None:
    """Answer requests until there are no more: the worker's end. What is printed goes nowhere.

    Args:
        handle: Answers a request.
        is_spent: Asked after each answer: whether another process shall answer the next one.
    """
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    requests = sys.stdin.buffer
    answers.write(_HEAD.pack(0, False))  # it has started
    answers.flush()
    while head := requests.read(_LENGTH.size):
        (length,) = _LENGTH.unpack(head)
        answer = handle(requests.read(length))
        answers.write(_HEAD.pack(len(answer), is_spent()) + answer)
        answers.flush()


def limit_memory(count: int) -> None:
    """Let this process take no more memory than now and a number of bytes, where the platform can."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        pages = int(Path("/proc/self/statm").read_text("ascii").split()[5])  # those of data
        most = pages * resource.getpagesize() + count
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
