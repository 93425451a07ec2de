"""Many files parsed by a few processes; a file that hangs, crashes or eats memory costs itself only.

Both ends of the pipe stand here: `parse_files` hands out files and tells why a process ended; `main` is the process,
which parses within hard limits of the kernel. What stays out: how a process is watched over time and memory and ended
(`processes.workers`), what it may not do (`processes.confinement`), and the reading of formats.
"""

import contextlib
import gc
import hashlib
import io
import logging
import os
import pickle
import resource
import signal
import sys
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any

from rag_assets.contracts.causes import BlockKind, FailureCause, PageKind, PageRole
from rag_assets.contracts.content import Block, Failure, Formula, Page, ParsedDocument, Row
from rag_assets.parsing.limits import ParsingLimits
from rag_assets.parsing.parse import failed, parse_bytes
from rag_assets.processes.confinement import confine
from rag_assets.processes.workers import (
    WorkerEnded,
    WorkerOptions,
    Workers,
    connect,
    data_bytes,
    processors,
    serve,
    want_time,
)

logger = logging.getLogger(__name__)

_NEAR_LIMIT_SHARE = 0.7
_OUT_OF_MEMORY_WORDS = (b"MemoryError", b"memory allocation of", b"bad_alloc", b"ut of memory")

# Within the process.
_ANSWER_BYTES = 256 << 20
_CRASH_OUTPUT_BYTES = 1 << 16
_RECYCLED_SHARE = 0.5  # of the memory that it may take, from which on another process takes the next file
_CPU_GRACE_SECONDS = 5
_LOG_RECORDS = 20
_COLLECTION_THRESHOLDS = (100_000, 50, 100)
_LOG_CHARS = 8000
_WORDS = (BlockKind, FailureCause, PageKind, PageRole)
_ANSWER_TYPES = {
    (value.__module__, value.__qualname__): value
    for value in (Block, Failure, Formula, Page, ParsedDocument, Row, *_WORDS)
}


@dataclass(frozen=True, slots=True)
class ParseJob:
    """A file to parse."""

    document_id: str  # identifier of the document
    path: Path | str  # where its bytes lie on this machine
    content_sha256: str | None = None  # SHA-256 that the bytes must have, hexadecimal; None where it is not known

    @property
    def file_name(self) -> str:
        """Name that carries the extension: the path may be that of a temporary copy."""
        return self.document_id if PurePosixPath(self.document_id).suffix else Path(self.path).name

    @property
    def stated_format(self) -> str:
        """Format by the extension, for files whose bytes were not looked at."""
        return PurePosixPath(self.file_name).suffix.lstrip(".").lower() or "unknown"


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
    count = workers or processors()
    greeting = pickle.dumps((limits, passwords))
    options = WorkerOptions(greeting, limits.memory_bytes, _ANSWER_BYTES + (1 << 20), _CRASH_OUTPUT_BYTES)
    processes = Workers(__name__, count, options)
    threads = ThreadPoolExecutor(count, "parsing")  # each waits for a process
    waiting_jobs, running_jobs = iter(jobs), dict[Future[ParsedDocument], ParseJob]()

    def hand_out() -> None:
        for job in islice(waiting_jobs, count - len(running_jobs)):
            running_jobs[threads.submit(_parse, processes, job, limits)] = job

    try:
        hand_out()
        while running_jobs:
            done_futures, _ = wait(running_jobs, return_when=FIRST_COMPLETED)
            results = [(running_jobs.pop(future), future.result()) for future in done_futures]
            # Processes that came free get their next file before the caller takes its time over these.
            hand_out()
            yield from results
    finally:
        processes.kill()
        threads.shutdown()


def _parse(processes: Workers, job: ParseJob, limits: ParsingLimits) -> ParsedDocument:
    """Have a file parsed; whatever becomes of the process is a failure of the file.

    Raises:
        RuntimeError: The process cannot be started.
    """
    try:
        document, records = processes.ask_for(
            pickle.dumps(job), limits.seconds(), decode_answer, lambda ocr_pages: limits.seconds(int(ocr_pages))
        )
    except WorkerEnded as end:
        failure = _failure(end, limits)
    except OSError as error:
        raise RuntimeError(f"a parsing process cannot start: {error}") from error
    except (pickle.UnpicklingError, AttributeError, LookupError, TypeError, ValueError) as error:
        failure = Failure(FailureCause.CRASHED, f"the parsing process died: its answer is damaged: {error}")
    else:
        for level, message in records:
            logger.log(level, "%s", message)
        return document
    return ParsedDocument(job.stated_format, failures=(failure,))


def _failure(end: WorkerEnded, limits: ParsingLimits) -> Failure:
    """Why a process ended.

    Raises:
        RuntimeError: It never started.
    """
    if not end.started and not end.is_killed:
        reason = f"not within {end.seconds:.0f} seconds" if end.is_late else _last_line(end.output)
        raise RuntimeError(f"a parsing process cannot start: {reason}") from end
    if end.is_killed:
        return Failure(FailureCause.CRASHED, "parsing was ended")
    if end.resident_bytes:
        message = f"parsing took {end.resident_bytes} bytes of memory, limit {limits.memory_bytes}"
        return Failure(FailureCause.MEMORY, message)
    if end.is_late:
        return Failure(FailureCause.TIMEOUT, f"parsing took longer than {end.seconds:g} seconds")
    logger.warning("parsing process ended with %s: %s", end.status, _last_line(end.output))
    if end.status == -signal.SIGXCPU:
        return Failure(FailureCause.TIMEOUT, f"parsing took more than {2 * end.seconds:g} seconds of processor time")
    near_limit = end.data_bytes > limits.memory_bytes * _NEAR_LIMIT_SHARE
    if near_limit or any(words in end.output for words in _OUT_OF_MEMORY_WORDS):
        return Failure(FailureCause.MEMORY, f"parsing ran out of memory, limit {limits.memory_bytes} bytes")
    return Failure(FailureCause.CRASHED, f"the parsing process died: {_exit_text(end)}")


def _exit_text(end: WorkerEnded) -> str:
    if end.status is None:
        return f"its answer is damaged: {end.__cause__}"
    return f"signal {signal.Signals(-end.status).name}" if end.status < 0 else f"exit status {end.status}"


def _last_line(output: bytes) -> str:
    lines = output.decode(errors="replace").strip().splitlines()
    return lines[-1][:500] if lines else "no output"


def main(descriptor: int, lifeline: int) -> None:
    """Answer jobs until there are no more, as a process of `Workers` whose greeting holds limits and passwords."""
    connection = connect(descriptor, lifeline)
    limits, passwords = pickle.loads(connection.recv_bytes())  # noqa: S301 - sent by the parent
    _limit_process(limits.memory_bytes)
    # A document is many small values and no cycles: looking for garbage every 700 of them takes half the time.
    gc.set_threshold(*_COLLECTION_THRESHOLDS)
    records = _collect_log_records()
    confine()

    def announce(ocr_pages: int) -> None:
        """Ask for the time that text recognition takes; the parent counts it by the same limits."""
        want_time(connection, str(ocr_pages).encode())
        _limit_processor_time(limits.seconds(ocr_pages))

    def answer(request: bytes) -> bytes:
        job: ParseJob = pickle.loads(request)  # noqa: S301 - sent by the parent
        _limit_processor_time(limits.seconds())
        _forget_output()
        records.clear()
        return _encode_answer(_parse_job(job, limits, passwords, announce), records)

    serve(connection, answer, lambda: data_bytes() >= limits.memory_bytes * _RECYCLED_SHARE)


def _parse_job(
    job: ParseJob,
    limits: ParsingLimits,
    passwords: Sequence[str],
    announce: Callable[[int], None],
) -> ParsedDocument:
    """Read and parse one file; whatever is wrong with it becomes a failure. Arguments as for `parse_bytes`."""
    path = Path(job.path)
    name = job.stated_format
    try:
        size = path.stat().st_size
        if size > limits.file_bytes:
            return failed(name, FailureCause.TOO_LARGE, f"{size} bytes, limit {limits.file_bytes}")
        data = path.read_bytes()
    except OSError as error:
        return failed(name, FailureCause.UNREADABLE, f"the file cannot be read: {error.strerror or error}")
    except MemoryError:
        return failed(name, FailureCause.MEMORY, "memory ran out while the file was read")
    if job.content_sha256 and hashlib.sha256(data).hexdigest() != job.content_sha256:
        return failed(name, FailureCause.UNREADABLE, "the file changed after it was listed")
    return parse_bytes(data, job.file_name, limits, passwords, announce)


def decode_answer(answer: bytes) -> tuple[ParsedDocument, list[tuple[int, str]]]:
    """Document and log records of an answer; only the types of `content` are accepted from a parsing process.

    Raises:
        pickle.UnpicklingError: The answer holds anything else.
    """
    document, records = _AnswerUnpickler(io.BytesIO(answer)).load()
    if not isinstance(document, ParsedDocument):
        raise pickle.UnpicklingError(f"expected a ParsedDocument, found {type(document).__name__}")
    return document, records


class _AnswerUnpickler(pickle.Unpickler):
    def find_class(self, module_name: str, global_name: str) -> Any:
        if (module_name, global_name) in _ANSWER_TYPES:
            return _ANSWER_TYPES[module_name, global_name]
        raise pickle.UnpicklingError(f"a parsing process sent a {module_name}.{global_name}")


def _encode_answer(document: ParsedDocument, records: list[tuple[int, str]]) -> bytes:
    try:
        answer = _pickle(document, records)
    except MemoryError:
        answer = b""
    if 0 < len(answer) <= _ANSWER_BYTES:
        return answer
    message = f"the text takes {len(answer)} bytes, limit {_ANSWER_BYTES}" if answer else "memory ran out"
    cause = FailureCause.TOO_LARGE if answer else FailureCause.MEMORY
    return _pickle(failed(document.format, cause, message), records)


def _pickle(document: ParsedDocument, records: list[tuple[int, str]]) -> bytes:
    """Pickle with words as calls of their type: by default Python 3.11 writes them as `getattr`, which is refused."""
    buffer = io.BytesIO()
    pickler = pickle.Pickler(buffer, protocol=pickle.HIGHEST_PROTOCOL)
    pickler.dispatch_table = dict.fromkeys(_WORDS, lambda word: (type(word), (word.value,)))
    pickler.dump((document, records))
    return buffer.getvalue()


def _limit_process(memory_bytes: int) -> None:
    """Limits of the kernel: no core, no file beyond the crash output, no more private memory than allowed.

    RLIMIT_DATA counts private writable memory alone; RLIMIT_AS would count every mapped library as well.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (_CRASH_OUTPUT_BYTES, hard))  # programs that convert files take more
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))


def _limit_processor_time(timeout_seconds: float) -> None:
    """Have the kernel end this process should the parent not come to it: twice the time in processor seconds.

    Where the parent is gone while one call holds the interpreter, as a regular expression may for ever, nothing else
    does: the thread at the lifeline has no turn.
    """
    usage = resource.getrusage(resource.RUSAGE_SELF)
    seconds = int(usage.ru_utime + usage.ru_stime + 2 * timeout_seconds) + _CPU_GRACE_SECONDS
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, hard))


def _forget_output() -> None:
    """Empty the file that takes standard output and error, so that what stands there is about the current file."""
    sys.stdout.flush()
    with contextlib.suppress(OSError):
        os.ftruncate(2, 0)
        os.lseek(2, 0, os.SEEK_SET)


class _RecordHandler(logging.Handler):
    """Keeps the first log records of a file, to be logged by the parent."""

    def __init__(self, records: list[tuple[int, str]]) -> None:
        super().__init__(logging.WARNING)
        self._records = records
        self.setFormatter(logging.Formatter("%(name)s: %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        if len(self._records) < _LOG_RECORDS:
            self._records.append((record.levelno, self.format(record)[:_LOG_CHARS]))


def _collect_log_records() -> list[tuple[int, str]]:
    """Send the package's own log records to the parent and drop those of other libraries."""
    records: list[tuple[int, str]] = []
    package = logging.getLogger("rag_assets")
    package.addHandler(_RecordHandler(records))
    package.propagate = False
    logging.getLogger().addHandler(logging.NullHandler())
    return records
