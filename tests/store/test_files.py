"""Locks: one process at a time, a bounded wait, and who is in the way."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from rag_assets.contracts.errors import StoreError
from rag_assets.store.files import Lock

HOLDER = """
import sys
from pathlib import Path
from rag_assets.store.files import Lock
with Lock(Path({path!r})).hold():
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_lock_names_its_file_and_its_holder_and_is_freed_with_it(tmp_path: Path) -> None:
    path = tmp_path / "new" / ".questions.jsonl.lock"
    command = [sys.executable, "-c", HOLDER.format(path=str(path))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        lock = Lock.of(tmp_path / "new" / "questions.jsonl")
        with pytest.raises(StoreError) as caught:
            lock.hold(0.2)
        assert str(caught.value) == f"cannot go on: {path} is held by process {holder.pid} on {socket.gethostname()}"
        holder.kill()
        holder.wait()
        with lock.hold(), lock.hold(0), pytest.raises(StoreError, match=f"busy: .* process {os.getpid()} on "):
            Lock(path, "busy").hold(0)
    with Lock(path).hold(0):
        pass


def test_a_lock_that_cannot_be_written_says_where(tmp_path: Path) -> None:
    (tmp_path / "taken.lock").mkdir()
    with pytest.raises(StoreError, match=r"taken\.lock cannot be written"):
        Lock(tmp_path / "taken.lock", "cannot index").hold(0.1)
