"""Many files parsed by a few processes; a file that hangs, crashes or eats memory costs itself only.

What stays out: what happens inside a parsing process (`worker`) and the reading of formats.

Not built on Pebble or concurrent.futures: neither watches memory, bounds answers, nor tells a kill for memory from a
crash.
"""

import contextlib
import logging
import os
import pickle
import signal
import tempfile
import time
from collections.abc import Generator, Iterable, Iterator
from multiprocessing.connection import wait
from pathlib import Path

from rag_assets.contracts.causes import FailureCause
from rag_assets.contracts.content import Failure, ParsedDocument
from rag_assets.parsing.limits import ParsingLimits
from rag_assets.parsing.worker import ANSWER_BYTES, CRASH_OUTPUT_BYTES, OCR_PAGES, ParseJob, decode_answer
from rag_assets.processes.workers import START_SECONDS, Process

__all__ = ["ParseJob", "parse_files"]

logger = logging.getLogger(__name__)

_WATCH_SECONDS = 0.1
_RECYCLED_SHARE = 0.5
_NEAR_LIMIT_SHARE = 0.7
_OUT_OF_MEMORY_WORDS = (b"MemoryError", b"memory allocation of", b"bad_alloc", b"ut of memory")


def parse_files(
    jobs: Iterable[ParseJob], *, workers: int, limits: ParsingLimits, passwords: tuple[str, ...] = ()
) -> Generator[tuple[ParseJob, ParsedDocument]]:
    """Parse files in worker processes.

    Args:
        jobs: The files; taken one by one as processes come free, so any number may follow.
        workers: Processes; 0 takes the number of processors.
        limits: Limits for every file.
        passwords: Tried in order on encrypted files.

    Yields:
        Each job with its document, as they finish. Processes live until the iteration ends or is closed.

    Raises:
        RuntimeError: A worker process cannot be started.
    """
    waiting = iter(jobs)
    pool = _Pool(workers or os.cpu_count() or 1, limits, passwords)
    try:
        pool.hand_out(waiting)
        while pool.is_busy:
            finished = pool.collect()
            # Processes that came free get their next file before the caller takes its time over these.
            pool.hand_out(waiting)
            yield from finished
    finally:
        pool.stop()


class _Pool:
    """The processes, started as they are needed."""

    def __init__(self, size: int, limits: ParsingLimits, passwords: tuple[str, ...]) -> None:
        self._size = size
        self._limits = limits
        self._passwords = passwords
        self._workers: list[_Worker] = []

    @property
    def is_busy(self) -> bool:
        return any(worker.job for worker in self._workers)

    def hand_out(self, waiting: Iterator[ParseJob]) -> None:
        """Give a file to each free process, as long as there are any.

        Raises:
            RuntimeError: A process cannot be started.
        """
        while sum(worker.job is not None for worker in self._workers) < self._size:
            job = next(waiting, None)
            if job is None:
                return
            free = next((worker for worker in self._workers if worker.job is None), None)
            if free is not None and free.give(job):
                continue
            if free is not None:
                self._dismiss(free)
            self._workers.append(_Worker(self._limits, self._passwords))
            if not self._workers[-1].give(job):
                raise RuntimeError("a parsing process cannot start: it ended at once")

    def collect(self) -> list[tuple[ParseJob, ParsedDocument]]:
        """Wait until files are finished, one way or another."""
        finished: list[tuple[ParseJob, ParsedDocument]] = []
        while not finished:
            busy = [worker for worker in self._workers if worker.job]
            ready = wait([worker.connection for worker in busy], _WATCH_SECONDS)
            for worker in busy:
                job = worker.job
                document = worker.receive() if worker.connection in ready else worker.watch()
                if job and document:
                    finished.append((job, document))
                if not worker.is_usable:
                    self._dismiss(worker)
        return finished

    def stop(self) -> None:
        for worker in list(self._workers):
            self._dismiss(worker)

    def _dismiss(self, worker: "_Worker") -> None:
        self._workers.remove(worker)
        worker.stop()


class _Worker:
    """One process with its pipe, seen from the parent.

    Attributes:
        connection: The parent's end of the pipe of jobs and answers.
        job: The file that it is parsing, or None.
        is_usable: Whether it can take another file.
    """

    def __init__(self, limits: ParsingLimits, passwords: tuple[str, ...]) -> None:
        self._limits = limits
        self.job: ParseJob | None = None
        self.is_usable = True
        self._is_started = False
        self._begun = time.monotonic()
        self._seconds = START_SECONDS
        self._data_bytes = 0
        self._output = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - lives as long as the process
        self._process = Process("rag_assets.parsing.worker", self._output)
        self.connection = self._process.connection
        with contextlib.suppress(OSError):  # where it has ended at once, `give` says so
            self.connection.send_bytes(pickle.dumps((limits, passwords)))

    def give(self, job: ParseJob) -> bool:
        """Send a file; False where the process has died meanwhile."""
        if self._process.status() is not None:
            return False
        try:
            self.connection.send_bytes(pickle.dumps(job))
        except OSError:
            return False
        self.job = job
        if self._is_started:
            self._begin()
        return True

    def receive(self) -> ParsedDocument | None:
        """Read what the process sent; None where it has started, or says how many pages need text recognition.

        Raises:
            RuntimeError: The process died before it could take a file.
        """
        try:
            answer = self.connection.recv_bytes(ANSWER_BYTES + (1 << 20))
            if not self._is_started:
                self._is_started = True
                self._begin()
                return None
            if answer.startswith(OCR_PAGES):
                self._seconds = self._limits.seconds(int(answer.removeprefix(OCR_PAGES)))
                return None
            document, records = decode_answer(answer)
        except (EOFError, OSError, pickle.UnpicklingError, AttributeError, TypeError, ValueError) as error:
            return self._dead(error)
        for level, message in records:
            logger.log(level, "%s", message)
        self.job = None
        self._read_memory()
        self.is_usable = self._data_bytes < self._limits.memory_bytes * _RECYCLED_SHARE
        return document

    def watch(self) -> ParsedDocument | None:
        """Kill the process where it is over its time or its memory.

        Raises:
            RuntimeError: The process does not start.
        """
        resident_bytes = self._read_memory()
        if resident_bytes > self._limits.memory_bytes:
            message = f"parsing took {resident_bytes} bytes of memory, limit {self._limits.memory_bytes}"
            return self._fail(FailureCause.MEMORY, message)
        if time.monotonic() <= self._begun + self._seconds:
            return None
        if not self._is_started:
            raise RuntimeError(f"a parsing process did not start within {START_SECONDS:.0f} seconds")
        return self._fail(FailureCause.TIMEOUT, f"parsing took longer than {self._seconds:g} seconds")

    def _begin(self) -> None:
        """Count the time of a file from now."""
        self._begun = time.monotonic()
        self._seconds = self._limits.seconds()

    def stop(self) -> None:
        """End the process at once; it holds nothing worth saving."""
        self._process.close()
        self._output.close()

    def _dead(self, error: Exception) -> ParsedDocument:
        """Say why the process died."""
        status = self._process.status(1.0)
        output = os.pread(self._output.fileno(), CRASH_OUTPUT_BYTES, 0)
        if not self._is_started:
            raise RuntimeError(f"a parsing process cannot start: {_last_line(output)}") from error
        logger.warning("parsing process ended with %s: %s", status, _last_line(output))
        if status == -signal.SIGXCPU:
            message = f"parsing took more than {2 * self._seconds:g} seconds of processor time"
            return self._fail(FailureCause.TIMEOUT, message)
        near_limit = self._data_bytes > self._limits.memory_bytes * _NEAR_LIMIT_SHARE
        if near_limit or any(words in output for words in _OUT_OF_MEMORY_WORDS):
            return self._fail(
                FailureCause.MEMORY, f"parsing ran out of memory, limit {self._limits.memory_bytes} bytes"
            )
        return self._fail(FailureCause.CRASHED, f"the parsing process died: {_describe(status, error)}")

    def _fail(self, cause: FailureCause, message: str) -> ParsedDocument:
        self.is_usable = False
        name = self.job.stated_format if self.job else "unknown"
        self.job = None
        return ParsedDocument(name, failures=(Failure(cause, message),))

    def _read_memory(self) -> int:
        """Resident memory in bytes, 0 where the system does not tell; notes the allocated one.

        The kernel's own limit (`worker`) is on allocated private memory; what is shared or mapped shows only here.
        """
        try:
            fields = Path(f"/proc/{self._process.pid}/statm").read_text().split()
        except OSError:
            return 0
        page_bytes = os.sysconf("SC_PAGE_SIZE")
        self._data_bytes = int(fields[5]) * page_bytes
        return int(fields[1]) * page_bytes


def _describe(status: int | None, error: Exception) -> str:
    if status is None:
        return f"its answer is damaged: {error}"
    return f"signal {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"


def _last_line(output: bytes) -> str:
    lines = output.decode(errors="replace").strip().splitlines()
    return lines[-1][:500] if lines else "no output"
