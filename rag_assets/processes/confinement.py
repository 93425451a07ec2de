"""What a parsing process may not do: network, other processes, changes to files. Refused in one place.

What stays out: limits of time and memory (`workers`, `parsing.pool`); which programs convert files
(`parsing.conversion`).

Python tells an audit hook before it does any of these, whichever library asks. Native code that a damaged file has
taken over is not held back by it; that takes a container around the whole program.
"""

import io
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import Any, NoReturn

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_OUTPUT = 2
_PROCESSES = frozenset(
    ("os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.startfile", "os.system", "pty.spawn",
     "subprocess.Popen")
)  # fmt: skip
_CHANGES = frozenset(
    ("os.chflags", "os.chmod", "os.chown", "os.link", "os.mkdir", "os.remove", "os.removexattr", "os.rename",
     "os.rmdir", "os.setxattr", "os.symlink", "os.truncate", "os.utime", "sqlite3.connect")
)  # fmt: skip

_running: list[str] = []  # the program that `run_program` is about to start


def confine() -> None:
    """From here on, raise PermissionError for whatever reaches beyond this process; it cannot be undone."""
    import _posixsubprocess

    sys.dont_write_bytecode = True
    # msoffcrypto takes its buffers from here.
    vars(tempfile)["TemporaryFile"] = _memory_file
    # Unstructured asks for its name alone; it would be looked for by writing.
    tempfile.tempdir = os.sep
    # multiprocessing starts processes with it, and it alone is not audited.
    vars(_posixsubprocess)["fork_exec"] = _refuse_process
    sys.addaudithook(_refuse)


def run_program(command: Sequence[str], data: bytes) -> subprocess.CompletedProcess[bytes]:
    """Run a program of ours, the one way to do so in a confined process; it inherits the limits of time and memory.

    Args:
        command: The program by its full path, and its arguments; nothing of them comes from a file that is parsed.
        data: Its standard input.

    Returns:
        Its status, standard output and standard error.
    """
    _running.append(command[0])
    try:
        return subprocess.run(command, input=data, capture_output=True, check=False)  # noqa: S603 - see `command`
    finally:
        _running.remove(command[0])


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open":
        path, _, flags = arguments
        # A number is a file that is open already.
        if flags & _WRITING and not isinstance(path, int) and path not in (os.devnull, os.fsencode(os.devnull)):
            raise PermissionError("parsing writes no files: open")
    elif event.startswith("socket."):
        raise PermissionError(f"parsing has no network: {event}")
    elif event == "subprocess.Popen" and arguments[0] in _running:
        return
    elif event in _PROCESSES or (event in {"os.kill", "os.killpg"} and arguments[0] != os.getpid()):
        raise PermissionError(f"parsing starts and ends no other processes: {event}")
    elif event in _CHANGES and not (event == "os.truncate" and arguments[0] == _OUTPUT):
        raise PermissionError(f"parsing writes no files: {event}")


def _memory_file(*arguments: object, **options: object) -> io.BytesIO:
    del arguments, options
    return io.BytesIO()


def _refuse_process(*arguments: object) -> NoReturn:
    del arguments
    raise PermissionError("parsing starts and ends no other processes: fork_exec")
