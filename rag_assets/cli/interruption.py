"""The end of a command on Ctrl-C or SIGTERM: one line, no traceback, exit status 130 or 143.

A signal raises `KeyboardInterrupt` in the main thread, so that what is under way ends in order. Where that takes too
long (a library does not return, or swallows the exception), or at a second signal, the process ends on the spot.
"""

import contextlib
import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import click

_GRACE_SECONDS = 15.0  # calls of a language model that are under way are given up within 6 seconds
_NOTED_SECONDS = 1.0  # the exception may come before the watch has noted the signal
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_SHOW_CURSOR = b"\x1b[?25h\r\x1b[K"


class _Watch:
    """Notes the first signal the moment it comes, whatever the main thread does; ends the process with a line later."""

    def __init__(self, line: str, interrupt: Callable[[], None] | None, grace_seconds: float) -> None:
        self.number = 0  # of the signal that came first
        self.noted = threading.Event()
        self._line, self._interrupt, self._grace_seconds = line, interrupt, grace_seconds
        self._line_is_due = threading.Lock()  # released never: whoever gets it prints the line
        self._error = os.dup(2)
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)
        self.previous_descriptor = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        threading.Thread(target=self._wait, name="interruption", daemon=True).start()

    def print_line(self) -> None:
        """Print the line, once."""
        if self._line_is_due.acquire(blocking=False):
            with contextlib.suppress(OSError):
                os.write(self._error, f"{self._line}\n".encode())

    def end(self) -> None:
        """Watch no longer."""
        signal.set_wakeup_fd(self.previous_descriptor)
        os.close(self._write)

    def _wait(self) -> None:
        while not self.noted.is_set():
            number = os.read(self._read, 1)
            if not number:
                os.close(self._read)
                os.close(self._error)
                return
            if number[0] in _SIGNALS:
                self.number = number[0]
                self.noted.set()
        if self._interrupt is not None:
            self._interrupt()
        select.select([self._read], [], [], self._grace_seconds)
        if os.isatty(self._error):
            os.write(self._error, _SHOW_CURSOR)
        self.print_line()
        os._exit(128 + self.number)


@contextlib.contextmanager
def interruptible(
    kept: str = "", *, interrupt: Callable[[], None] | None = None, grace_seconds: float = _GRACE_SECONDS
) -> Iterator[None]:
    """End the command with a line where a signal comes while the block runs.

    A SIGINT that is ignored, as in the background of a shell, stays ignored.

    Args:
        kept: What the command leaves, and how it goes on, for the line.
        interrupt: Makes what the main thread waits for raise an error; called from another thread. None where Python
            can raise one in the main thread.
        grace_seconds: How long the block may take to end before the process does.

    Raises:
        click.exceptions.Exit: A signal came.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers = {number: signal.getsignal(number) for number in _SIGNALS}
    hooks = sys.unraisablehook, threading.excepthook
    line = f"rag-assets: interrupted: {kept}" if kept else "rag-assets: interrupted"
    watch = _Watch(line, interrupt, grace_seconds)

    def unless_interrupted(hook: Any) -> Any:
        return lambda facts: None if watch.noted.is_set() else hook(facts)

    sys.unraisablehook, threading.excepthook = map(unless_interrupted, hooks)
    for number in _SIGNALS:
        if handlers[number] is not signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if interrupt is None else _disregard)
    try:
        yield
    except BaseException as error:
        if not (isinstance(error, KeyboardInterrupt) or watch.noted.is_set()):
            raise
        watch.noted.wait(_NOTED_SECONDS)
        for number in _SIGNALS:
            signal.signal(number, _disregard)  # the watch ends the process at the next one
        watch.print_line()
        raise click.exceptions.Exit(128 + (watch.number or signal.SIGINT)) from None
    finally:
        if not watch.noted.is_set():
            watch.end()
            for number, handler in handlers.items():
                signal.signal(number, handler)
            sys.unraisablehook, threading.excepthook = hooks


def _disregard(_number: int, _frame: FrameType | None) -> None:
    """The handler where the watch ends what is under way, or the process."""
