"""A disk that is really full: a file system in memory of a given size."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(path: Path, kilobytes: int) -> Iterator[Path]:
    """A folder that holds so much and no more; skips the test where nothing may be mounted."""
    path.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(path)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("a small file system cannot be mounted here: needs root on Linux")
    try:
        yield path
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)


def fill(folder: Path) -> Path:
    """Take all the room that is left on the disk of a folder, with a file."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (1 << 16, 1):
            try:
                while True:
                    file.write(b"0" * size)
            except OSError:
                continue
    return filler
