"""Writing files so that readers see all of one or what was there before, and a kill or a power cut leaves nothing torn;
and small files that are written twice, with their own digests.

What stays out: what stands in them, and the digests of large files (`rag_assets.store.damage`).
"""

import errno
import hashlib
import json
import logging
import os
import re
import shutil
import socket
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from rag_assets.contracts.errors import StoreError

_log = logging.getLogger(__name__)
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_FULL_TEXT = re.compile("|".join([*(re.escape(os.strerror(code)) for code in sorted(_FULL)), "disk is full"]))
_LOCK_SECONDS = 60.0  # far longer than a small file takes to be written
ASIDE = ".tmp"  # how names end under which files and folders are written
_LEFTOVER_SECONDS = 3600.0  # what nobody has written to for so long is of a killed process
# of file systems without links, or without one from here to there
NO_LINKS = frozenset({errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM, errno.ENOSYS, errno.EMLINK, errno.EXDEV})
_DIGEST = "sha256"  # field of sealed JSON


def is_full(error: BaseException | None) -> bool:
    """Whether an error, or one that led to it, says that a disk is full or a quota used up.

    Libraries turn what the operating system says into errors of their own, which have its words but not its number.
    """
    while error is not None:
        if (isinstance(error, OSError) and error.errno in _FULL) or _FULL_TEXT.search(str(error)):
            return True
        error = error.__cause__ or error.__context__
    return False


class Lock:
    """A file that one process holds at a time, and one thread of it; freed by the operating system when it dies.

    Args:
        path: The file, which stays; its folder is made where missing.
        busy: What to say where another process holds it.
    """

    def __init__(self, path: Path, busy: str = "cannot go on") -> None:
        self._path, self._busy, self._lock = path, busy, FileLock(path)

    @classmethod
    def of(cls, path: Path) -> "Lock":
        """The lock of a file that is read and written anew."""
        return cls(path.with_name(f".{path.name}.lock"))

    def hold(self, wait_seconds: float = _LOCK_SECONDS) -> AbstractContextManager[object]:
        """Hold it from now until the end of the context; its holder may take it again.

        Raises:
            StoreError: Another holds it for all of that time, or it cannot be written.
        """
        try:
            lock = self._lock.acquire(timeout=wait_seconds)
        except Timeout as error:
            raise StoreError(f"{self._busy}: {self._path} is held by {self._holder()}") from error
        except OSError as error:
            raise StoreError(f"{self._path} cannot be written: {error.strerror or error}") from error
        with suppress(OSError):
            if not self._path.stat().st_size:  # file systems without locks have this in it already
                self._path.write_text(f"{os.getpid()}\n{socket.gethostname()}\n")
        return lock

    def _holder(self) -> str:
        with suppress(OSError, ValueError):
            process, host = self._path.read_text().splitlines()[:2]
            return f"process {process} on {host}"
        return "another process"


def write_atomically(path: Path, content: bytes) -> None:
    """Write a small file so that readers see all of it or what was there before."""
    with written_aside(path) as temporary:
        _write_through(temporary, content)
        if path.is_dir() and not path.is_symlink():  # nothing of ours: it stays beside the file
            path.rename(path.with_name(f"{path.name}.{uuid.uuid4().hex}.folder"))
        temporary.replace(path)
        sync_folder(path.parent)


def write_new(path: Path, content: bytes, mode: int = 0o666) -> None:
    """Write a small file as a whole, unless there is one of its name.

    Args:
        path: The file.
        content: What it holds.
        mode: Its permissions, before the umask takes some away.

    Raises:
        FileExistsError: There is one.
    """
    with written_aside(path) as temporary:
        _write_through(temporary, content, mode)
        commit_new(temporary, path)


@contextmanager
def written_aside(path: Path) -> Iterator[Path]:
    """A name beside a file or folder to write it under; what is left of it afterwards is removed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = _aside(path)
    try:
        yield aside
    finally:
        remove(aside)


def remove(path: Path) -> None:
    """Remove a file or folder; a folder is renamed first, so that nobody takes a part of it for the whole."""
    with suppress(FileNotFoundError):
        if path.is_symlink() or not path.is_dir():
            path.unlink()
            return
        aside = path if path.suffix == ASIDE else path.rename(_aside(path))
        shutil.rmtree(aside, ignore_errors=True)


def remove_leftovers(folder: Path) -> None:
    """Remove what killed processes left in a folder of what they wrote aside."""
    for path in folder.glob(f".*{ASIDE}"):
        with suppress(FileNotFoundError):
            if time.time() - path.lstat().st_mtime > _LEFTOVER_SECONDS:
                remove(path)


def _aside(path: Path) -> Path:
    return path.with_name(f".{uuid.uuid4().hex}{ASIDE}")


def _write_through(path: Path, content: bytes, mode: int = 0o666) -> None:
    with open(path, "wb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
        file.write(content)
    sync_file(path)


def sync_file(path: Path) -> None:
    """Make what a file holds outlast a power cut."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def commit_new(aside: Path, path: Path) -> None:
    """Give a written file its name, and refuse to replace what another process wrote.

    A link does both at once. Where the file system has none (SMB, exFAT), look and rename under a lock.
    """
    try:
        os.link(aside, path)
    except FileExistsError:
        raise
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        with Lock(path.with_name(".commit.lock")).hold():
            if path.exists():
                raise FileExistsError(errno.EEXIST, "already written", str(path)) from error
            aside.replace(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder outlast a power cut, where the platform can."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def sealed(value: Mapping[str, Any], indent: int | None = 1) -> bytes:
    """A value as JSON with its digest beside its fields."""
    return json.dumps({**value, _DIGEST: _digest(value)}, ensure_ascii=False, indent=indent, sort_keys=True).encode()


def unsealed(content: bytes) -> dict[str, Any]:
    """The value of `sealed`.

    Raises:
        ValueError: It was damaged, or has no digest.
    """
    value = json.loads(content)
    if not isinstance(value, dict) or value.pop(_DIGEST, None) != _digest(value):
        raise ValueError("it does not agree with its digest")
    return value


class SealedFile:
    """A small file that nothing else could give back: JSON with its own digest, written twice.

    `<name>` and `<name>.copy` hold the same. A file that does not agree with its digest counts as damaged and is read
    from its copy.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.copy = path.with_name(f"{path.name}.copy")

    def read(self) -> dict[str, Any] | None:
        """Its value; None where there is neither the file nor its copy.

        Raises:
            StoreError: Both are damaged, or the only one that is there.
        """
        value, problem = self._read_one(self.path)
        if value is not None:
            return value
        value, _ = self._read_one(self.copy)
        if value is None and problem is None and not self.copy.exists():
            return None
        if value is None:
            raise StoreError(f"{self.path}: {problem or 'it is missing'}, and so is its copy")
        _log.info("%s: %s; its copy is read", self.path, problem or "it is missing")
        return value

    def problem(self) -> str | None:
        """What is wrong with the file, though it can be read from its copy; None where nothing is."""
        value, problem = self._read_one(self.path)
        if value is None and (problem or self.copy.exists()):
            return problem or "it is missing"
        return "a folder stands in the place of its copy" if self.copy.is_dir() else None

    def write(self, value: Mapping[str, Any]) -> None:
        """Write it; the copy first, so that the file is never ahead of it."""
        content = sealed(value)
        write_atomically(self.copy, content)
        write_atomically(self.path, content)

    def _read_one(self, path: Path) -> tuple[dict[str, Any] | None, str | None]:
        """Value, or what is wrong; neither where there is no file."""
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None, None
        except IsADirectoryError:
            return None, "a folder stands in its place"
        except OSError as error:
            return None, f"it cannot be read: {error.strerror}"
        try:
            return unsealed(content), None
        except ValueError:
            return None, "it is empty" if not content else "it is damaged"


def _digest(value: Mapping[str, Any]) -> str:
    return hashlib.sha256(
        json.dumps(value, ensure_ascii=False, sort_keys=True).encode("utf-8", "surrogatepass")
    ).hexdigest()
