import subprocess
import sys
import textwrap

import pytest


def confined(before: str, after: str) -> str:
    """Last line that a process prints which runs some code, confines itself, and runs some more."""
    script = f"""
        from rag_assets.processes.confinement import confine
        {before}
        confine()
        try:
            {after}
        except Exception as error:
            print(type(error).__name__, error, sep=": ")
        else:
            print("done")
    """
    result = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True)
    return result.stdout.splitlines()[-1]


@pytest.mark.parametrize(
    ("call", "event"),
    [
        ("sendto(b'x', '/nowhere')", "socket.sendto"),
        ("sendmsg([b'x'], [], 0, '/nowhere')", "socket.sendmsg"),
        ("connect('/nowhere')", "socket.connect"),
        ("bind('/nowhere')", "socket.bind"),
    ],
)
def test_sockets_that_are_open_already_send_nothing(call: str, event: str) -> None:
    before = "import socket; one, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)"
    assert confined(before, f"one.{call}") == f"PermissionError: parsing has no network: {event}"


@pytest.mark.parametrize("code", ["import os; os.fork()", "import _posixsubprocess; _posixsubprocess.fork_exec()"])
def test_no_process_is_started(code: str) -> None:
    assert confined("pass", code).startswith("PermissionError: parsing starts and ends no other processes")


@pytest.mark.parametrize("call", ["TemporaryDirectory", "NamedTemporaryFile", "mkstemp"])
def test_no_temporary_file_is_made(call: str) -> None:
    assert confined("import tempfile", f"tempfile.{call}()").startswith("PermissionError: parsing writes no files")


@pytest.mark.parametrize(
    "code",
    [
        "open(__import__('os').devnull, 'wb').write(b'x')",
        "open(1, 'w', closefd=False).write(chr(10))",
        "import sys; open(sys.executable, 'rb').read(1)",
        "import os; os.kill(os.getpid(), 0)",
        "import colorsys, graphlib",
        "import tempfile; tempfile.gettempdir()",
    ],
)
def test_what_stays_inside_goes_on(code: str) -> None:
    assert confined("pass", code) == "done"
