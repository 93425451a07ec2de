"""Processes that recognize named entities, for much text at once.

The models hold the interpreter while they read, so that threads gain nothing. Processes are started as `python -c`, not
through multiprocessing, which would import the caller's `__main__` again; they speak JSON lines over their pipes and
end when these are closed.

What stays out: what is recognized, and by which models (`rag_assets.graph.mentions.recognizers`).
"""

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from rag_assets.contracts.errors import ModelError

_BATCH_TEXTS = 64
_COMMAND = (
    "import sys; sys.path[:] = {path!r}; from rag_assets.graph.mentions.recognizers import serve; serve({answers})"
)
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

Found = tuple[tuple[int, int, str], ...]  # start, end, type


class RecognizerProcesses:
    """Some processes, which load a model with the first text of its language.

    Args:
        count: How many.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._processes: list[_Process] = []

    def recognize(self, texts: Sequence[str], language: str) -> list[Found]:
        """Named entities of texts, each read by whichever process is free.

        Args:
            texts: Any texts.
            language: Language of all of them.

        Raises:
            ModelError: A process ended.
        """
        while len(self._processes) < self._count:
            self._processes.append(_Process())
        found: list[Found] = [()] * len(texts)
        waiting = iter(range(0, len(texts), _BATCH_TEXTS))
        lock = threading.Lock()

        def work(process: "_Process") -> None:
            while True:
                with lock:
                    start = next(waiting, None)
                if start is None:
                    return
                batch = slice(start, start + _BATCH_TEXTS)
                found[batch] = process.ask(texts[batch], language)

        with ThreadPoolExecutor(self._count) as threads:
            try:
                for done in [threads.submit(work, process) for process in self._processes]:
                    done.result()
            except BaseException:
                self.close()  # or the threads, which wait for answers, would go on to the last text
                raise
        return found

    def close(self) -> None:
        """End the processes."""
        for process in self._processes:
            process.stop()
        self._processes = []


class _Process:
    """One process."""

    def __init__(self) -> None:
        answers, theirs = os.pipe()
        try:
            self._process = subprocess.Popen(  # noqa: S603 - this interpreter with a fixed program
                [sys.executable, "-W", "ignore", "-c", _COMMAND.format(path=sys.path, answers=theirs)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs,),
                env={**os.environ, **_ONE_THREAD},
                start_new_session=True,
            )
        finally:
            os.close(theirs)
        self._answers = os.fdopen(answers, encoding="utf-8")

    def ask(self, texts: Sequence[str], language: str) -> list[Found]:
        assert self._process.stdin is not None
        line = ""
        with contextlib.suppress(OSError, ValueError):  # it has ended, or was stopped
            self._process.stdin.write(json.dumps([language, list(texts)]).encode() + b"\n")
            self._process.stdin.flush()
            line = self._answers.readline()
        if not line.endswith("\n"):
            status = self._process.poll()
            raise ModelError(f"a process that names entities ended (status {status}); fewer need less: graph.workers")
        return [tuple((start, end, kind) for start, end, kind in each) for each in json.loads(line)]

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        self._answers.close()
