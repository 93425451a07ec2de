"""A process to which the rights of files apply, whoever runs the tests."""

import ctypes
import multiprocessing
import os
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path


@contextmanager
def read_only(root: Path) -> Iterator[None]:
    """Nothing can be made or removed in a folder and those in it."""
    folders = [root, *(path for path in root.rglob("*") if path.is_dir() and not path.is_symlink())]
    for folder in folders:
        folder.chmod(0o555)
    try:
        yield
    finally:
        for folder in folders:
            folder.chmod(0o755)


def without_override(act: Callable[[Path], object], path: Path) -> None:
    """Run in a process to which the rights of files apply also where it is root, who may otherwise read everything."""
    parents, theirs = multiprocessing.get_context("fork").Pipe()
    process = multiprocessing.get_context("fork").Process(target=_drop_and_run, args=(act, path, theirs))
    process.start()
    process.join(120)
    assert parents.poll(), "the process ended without an answer"
    problem = parents.recv()
    assert problem is None, problem


def _drop_and_run(act: Callable[[Path], object], path: Path, answer: Connection) -> None:
    try:
        if os.geteuid() == 0:
            _drop_override()
        act(path)
        answer.send(None)
    except BaseException:  # noqa: BLE001 - told to the parent
        answer.send(traceback.format_exc())


def _drop_override() -> None:
    """Give up CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH, capabilities 1 and 2, for good."""
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in (1, 2):
        libc.prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    sets = (ctypes.c_uint32 * 6)()  # effective, permitted and inheritable, twice 32 bits of each
    assert libc.capget(header, sets) == 0
    for index in range(3):
        sets[index] &= ~0b110
    assert libc.capset(header, sets) == 0
