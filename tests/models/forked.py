"""Processes that tests kill or let race, forked from one that has loaded the package, which takes a second."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

FORKED = multiprocessing.get_context("forkserver")
FORKED.set_forkserver_preload(
    [
        "pytest",
        "rag_assets.models.anthropic.model",
        "rag_assets.models.language_models",
        "rag_assets.models.metered",
        "rag_assets.models.openai.model",
        "rag_assets.pipeline.repair",
        "rag_assets.store.lake",
    ]
)


class Child:
    """A process that calls a function with the environment of this one; several threads may wait for it.

    Args:
        function: Of a module.
        arguments: What it is called with.
    """

    def __init__(self, function: Callable[..., object], *arguments: Any) -> None:
        self._process = FORKED.Process(target=_call, args=(dict(os.environ), function, arguments))
        self._process.start()
        self._waiting = threading.Lock()  # its status can be read once

    def kill(self) -> None:
        pid = self._process.pid
        assert pid is not None
        with suppress(ProcessLookupError):  # it has ended
            os.kill(pid, signal.SIGKILL)

    def wait(self, seconds: float = 120) -> int:
        """Its exit status, once it has ended; negative for the signal that ended it."""
        with self._waiting:
            self._process.join(seconds)
            status = self._process.exitcode
        assert status is not None, "it goes on"
        return status


def _call(environment: Mapping[str, str], function: Callable[..., object], arguments: tuple[Any, ...]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    function(*arguments)
