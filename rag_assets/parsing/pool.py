"""Many files parsed by a few processes; a file that hangs, crashes or eats memory costs itself only.

What stays out: what happens inside a parsing process (`worker`), how it is watched and ended (`processes.workers`), and
the reading of formats.
"""

import logging
import pickle
import signal
from collections.abc import Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice

from rag_assets.contracts.causes import FailureCause
from rag_assets.contracts.content import Failure, ParsedDocument
from rag_assets.parsing.limits import ParsingLimits
from rag_assets.parsing.worker import ANSWER_BYTES, CRASH_OUTPUT_BYTES, ParseJob, decode_answer
from rag_assets.processes.workers import WorkerEnded, WorkerOptions, Workers, processors

__all__ = ["ParseJob", "parse_files"]

logger = logging.getLogger(__name__)

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
    count = workers or processors()
    greeting = pickle.dumps((limits, passwords))
    options = WorkerOptions(greeting, limits.memory_bytes, ANSWER_BYTES + (1 << 20), CRASH_OUTPUT_BYTES)
    processes = Workers("rag_assets.parsing.worker", count, options)
    threads = ThreadPoolExecutor(count, "parsing")  # each waits for a process
    waiting, under_way = iter(jobs), dict[Future[ParsedDocument], ParseJob]()

    def hand_out() -> None:
        for job in islice(waiting, count - len(under_way)):
            under_way[threads.submit(_parse, processes, job, limits)] = job

    try:
        hand_out()
        while under_way:
            done, _ = wait(under_way, return_when=FIRST_COMPLETED)
            finished = [(under_way.pop(each), each.result()) for each in done]
            # Processes that came free get their next file before the caller takes its time over these.
            hand_out()
            yield from finished
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
    except WorkerEnded as ended:
        failure = _failure(ended, limits)
    except OSError as error:
        raise RuntimeError(f"a parsing process cannot start: {error}") from error
    except (pickle.UnpicklingError, AttributeError, LookupError, TypeError, ValueError) as error:
        failure = Failure(FailureCause.CRASHED, f"the parsing process died: its answer is damaged: {error}")
    else:
        for level, message in records:
            logger.log(level, "%s", message)
        return document
    return ParsedDocument(job.stated_format, failures=(failure,))


def _failure(ended: WorkerEnded, limits: ParsingLimits) -> Failure:
    """Why a process ended.

    Raises:
        RuntimeError: It never started.
    """
    if not ended.started and not ended.is_killed:
        said = f"not within {ended.seconds:.0f} seconds" if ended.is_late else _last_line(ended.output)
        raise RuntimeError(f"a parsing process cannot start: {said}") from ended
    if ended.is_killed:
        return Failure(FailureCause.CRASHED, "parsing was ended")
    if ended.resident_bytes:
        taken = f"parsing took {ended.resident_bytes} bytes of memory, limit {limits.memory_bytes}"
        return Failure(FailureCause.MEMORY, taken)
    if ended.is_late:
        return Failure(FailureCause.TIMEOUT, f"parsing took longer than {ended.seconds:g} seconds")
    logger.warning("parsing process ended with %s: %s", ended.status, _last_line(ended.output))
    if ended.status == -signal.SIGXCPU:
        return Failure(FailureCause.TIMEOUT, f"parsing took more than {2 * ended.seconds:g} seconds of processor time")
    near_limit = ended.data_bytes > limits.memory_bytes * _NEAR_LIMIT_SHARE
    if near_limit or any(words in ended.output for words in _OUT_OF_MEMORY_WORDS):
        return Failure(FailureCause.MEMORY, f"parsing ran out of memory, limit {limits.memory_bytes} bytes")
    return Failure(FailureCause.CRASHED, f"the parsing process died: {_described(ended)}")


def _described(ended: WorkerEnded) -> str:
    if ended.status is None:
        return f"its answer is damaged: {ended.__cause__}"
    return f"signal {signal.Signals(-ended.status).name}" if ended.status < 0 else f"exit status {ended.status}"


def _last_line(output: bytes) -> str:
    lines = output.decode(errors="replace").strip().splitlines()
    return lines[-1][:500] if lines else "no output"
