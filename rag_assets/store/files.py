"""Writing files so that readers see all of one or what was there before, and a kill or a power cut leaves nothing torn.

What stays out: what stands in them.
"""

import errno
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock

# of file systems without links, or without one from here to there
NO_LINKS = frozenset({errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM, errno.ENOSYS, errno.EMLINK, errno.EXDEV})


def write_atomically(path: Path, content: bytes) -> None:
    """Write a small file so that readers see all of it or what was there before."""
    with written_aside(path) as temporary:
        _write_through(temporary, content)
        temporary.replace(path)
        sync_folder(path.parent)


def write_new(path: Path, content: bytes) -> None:
    """Write a small file as a whole, unless there is one of its name.

    Raises:
        FileExistsError: There is one.
    """
    with written_aside(path) as temporary:
        _write_through(temporary, content)
        commit_new(temporary, path)


@contextmanager
def written_aside(path: Path) -> Iterator[Path]:
    """A name beside a file to write it under; what is left of it afterwards is removed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{uuid.uuid4().hex}.tmp")
    try:
        yield aside
    finally:
        aside.unlink(missing_ok=True)


def _write_through(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def commit_new(aside: Path, path: Path) -> None:
    """Give a written file its name, and refuse to replace what another process wrote.

    A link does both at once. Where the file system has none (SMB, exFAT), look and rename under a lock, which the
    operating system frees when its holder dies.
    """
    try:
        os.link(aside, path)
    except FileExistsError:
        raise
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        with FileLock(path.with_name(".commit.lock")):
            if path.exists():
                raise FileExistsError(errno.EEXIST, "already written", str(path)) from error
            aside.replace(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder outlast a power cut, where the platform can."""
    with suppress(OSError):
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)
