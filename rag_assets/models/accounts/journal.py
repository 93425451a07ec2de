"""Records of calls that no stored answer carries: failures, and answers that came from the store.

`<folder>/<id>.jsonl` holds one record a line and is only ever appended to, by one process. `<folder>/<id>.lock` is held
while it is; the operating system frees it when its holder dies. A last line without an end was being written when its
process was killed, and is no record. What stays out: the table that records get into
(`rag_assets.models.accounts.ledger`).
"""

import itertools
import json
import logging
import os
import threading
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from filelock import FileLock, Timeout

from rag_assets.models.accounts.calls import CallRecord, record_from

_FLUSH_SECONDS = 1.0
_FLUSH_RECORDS = 2000
_ID_DIGITS = 32
_FREE = '"cost_usd": 0.0,'
_LOG = logging.getLogger(__name__)


class Journal:
    """Appends records of this process; for any number of threads.

    Args:
        folder: Folder of the journal files; made with the first record.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._guard = threading.RLock()
        self._prefix = uuid.uuid4().hex
        self._numbers = itertools.count()
        self._waiting: list[CallRecord] = []
        self._timer: threading.Timer | None = None
        self._file: int | None = None
        self._lock: FileLock | None = None

    def next_id(self) -> str:
        """A `call_id` that no other call has, in any process."""
        return f"{self._prefix}-{os.getpid()}-{next(self._numbers)}"

    def append(self, record: CallRecord, *, durable: bool = False) -> None:
        """Take a record; it is in the file within a second or so.

        Args:
            record: The record.
            durable: Whether it is on the disk when this returns, as it must be where something was paid.

        Raises:
            OSError: The file cannot be written.
        """
        with self._guard:
            self._waiting.append(record)
            if durable or len(self._waiting) >= _FLUSH_RECORDS:
                self._write(durable=durable)
            elif self._timer is None:
                self._timer = threading.Timer(_FLUSH_SECONDS, self._flush_in_time)
                self._timer.daemon = True
                self._timer.start()

    def flush(self) -> None:
        """Write what waits.

        Raises:
            OSError: The file cannot be written.
        """
        with self._guard:
            self._write(durable=False)

    def seal(self) -> None:
        """Write what waits and end the file; further records go to another one."""
        with self._guard:
            try:
                self._write(durable=False)
            finally:
                self._close()

    def _flush_in_time(self) -> None:
        with self._guard:
            self._timer = None
            try:
                self._write(durable=False)
            except OSError as error:
                _LOG.warning("%s: records of calls wait to be written: %s", self.folder, error)

    def _write(self, *, durable: bool) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._waiting:
            return
        lines = "".join(f"{record.to_json()}\n" for record in self._waiting)
        try:
            opened = self._open()
            view = memoryview(lines.encode("utf-8", "surrogatepass"))
            while view:
                view = view[os.write(opened, view) :]
            if durable:
                os.fsync(opened)
        except OSError:
            self._close()  # its last line may be torn; what is written twice has one `call_id`
            raise
        self._waiting.clear()

    def _open(self) -> int:
        if self._file is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            path = self.folder / f"{uuid.uuid4().hex}.jsonl"
            lock = FileLock(_lock_of(path), thread_local=False)
            lock.acquire()
            self._lock = lock
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o666)
        return self._file

    def _close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
        if self._lock is not None:
            self._lock.release()
            self._lock = None


def journal_files(folder: Path) -> list[Path]:
    """The journal files of all processes, in order of name."""
    return sorted(folder.glob("*.jsonl"))


def read_journal(path: Path, *, paid: bool = False) -> Iterator[CallRecord]:
    """Records of a journal file; none where it has gone.

    Args:
        path: The file.
        paid: Whether only calls that cost something are wanted.
    """
    with suppress(FileNotFoundError), path.open("rb") as lines:
        for line in lines:
            if not line.endswith(b"\n"):
                return
            text = line.decode("utf-8", "surrogatepass")
            if paid and _FREE in text:
                continue
            try:
                yield record_from(json.loads(text))
            except (ValueError, KeyError, TypeError) as error:
                _LOG.warning("%s: a line is left out: %s", path, error)


def damaged_journals(folder: Path) -> list[Path]:
    """Journal files with a whole line that is no record."""

    def is_record(line: bytes) -> bool:
        try:
            record_from(json.loads(line.decode("utf-8", "surrogatepass")))
        except (ValueError, KeyError, TypeError):
            return False
        return True

    lines = ((path, line) for path in journal_files(folder) for line in path.read_bytes().split(b"\n")[:-1])
    return list(dict.fromkeys(path for path, line in lines if not is_record(line)))


def remove_if_ended(path: Path, size_bytes: int) -> None:
    """Remove a journal file that nobody writes to any longer, and to which nothing was added since it was read.

    Args:
        path: The file.
        size_bytes: Its size when it was read, at least.
    """
    lock = FileLock(_lock_of(path), thread_local=False)
    with suppress(Timeout, FileNotFoundError), lock.acquire(timeout=0):
        if path.stat().st_size == size_bytes:
            path.unlink()
            _lock_of(path).unlink(missing_ok=True)


def remove_stray_locks(folder: Path) -> None:
    """Remove lock files of processes that were killed before they wrote a record."""
    for path in folder.glob("*.lock"):
        if len(path.stem) == _ID_DIGITS and not path.with_suffix(".jsonl").exists():
            with suppress(Timeout), FileLock(path, thread_local=False).acquire(timeout=0):
                if not path.with_suffix(".jsonl").exists():
                    path.unlink(missing_ok=True)


def _lock_of(path: Path) -> Path:
    return path.with_suffix(".lock")
