"""Stored answers: what was paid for once is not asked again, whichever process or machine asks.

```
<folder>/<2 digits>/<key>.json                  the answer to a request, and the ledger's record of the call
<folder>/pending/<2 digits>/<key>-<id>.json     the same file under a second name, until the ledger has the record
```

An answer is written and synced once, under its pending name, and then linked to its own. So answer and record are one
file, which a kill cannot part; a second payment for one key stays behind as a pending file of its own; and the ledger
reads what is pending, and no more. An answer whose writer was killed before the link is found under its pending name.

An entry is `{"sha256":"...","entry":{...}}` with the digest of the inner object; what does not match it counts as
absent. Its modification time is when it was last used, to the day. What stays out: prompts and keys.
"""

import errno
import hashlib
import json
import logging
import os
import re
import time
import uuid
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray

from rag_assets.contracts.generation import Outcome
from rag_assets.models.accounts.calls import CallRecord, record_from
from rag_assets.store.files import sync_folder, write_new

STORED_OUTCOMES = frozenset({Outcome.COMPLETED, Outcome.TRUNCATED, Outcome.REFUSED, Outcome.EMPTY})

_HEAD, _MIDDLE, _TAIL = b'{"sha256":"', b'","entry":', b"}"
_BODY = len(_HEAD) + 64 + len(_MIDDLE)
_NAME = re.compile(r"([0-9a-f]{64})\.json")
_DIGITS = tuple(f"{number:02x}" for number in range(256))
_DAY_SECONDS = 86_400.0
_TORN_SECONDS = 3600.0  # a pending file that is still incomplete after so long is of a killed process
_READ_BYTES = 1 << 16
_FREE, _PENDING, _DROPPED = range(3)  # what pruning may do with an entry
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class StoredAnswer:
    """An answer that was paid for.

    Attributes:
        text: The answer.
        record: The ledger's record of the call that paid for it.
    """

    text: str
    record: CallRecord


@dataclass(frozen=True)
class AnswerGroup:
    """Stored answers that have provider, model, step and outcome in common."""

    provider: str
    model: str
    step: str
    outcome: str
    entries: int
    bytes: int
    cost_usd: float


@dataclass(frozen=True)
class AnswerStats:
    """What an answer store holds.

    Attributes:
        entries: Readable answers.
        bytes: Their size.
        damaged: Entries that cannot be read; the next answer to their request replaces them.
        pending: Answers whose record is not in the ledger's table yet.
        oldest: When the first of them was paid for, seconds since 1970 UTC; None where there are none.
        newest: When the last of them was paid for.
        groups: Sums by provider, model, step and outcome, in their order.
    """

    entries: int
    bytes: int
    damaged: int
    pending: int
    oldest: float | None
    newest: float | None
    groups: tuple[AnswerGroup, ...]


@dataclass(frozen=True)
class PruneReport:
    """What pruning removed, or would remove.

    Attributes:
        removed: Entries removed.
        removed_bytes: Their size.
        kept: Entries that stay.
        kept_bytes: Their size.
    """

    removed: int
    removed_bytes: int
    kept: int
    kept_bytes: int


class AnswerStore:
    """Paid answers by key. Any number of threads, processes and machines may use one folder at once.

    Args:
        folder: Where they lie; made with the first answer.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._root = str(folder)

    def find(self, key: str, *, touch: bool = True) -> StoredAnswer | None:
        """The stored answer to a request, or None.

        Args:
            key: `request_key` of the request.
            touch: Whether this counts as use.
        """
        found = _read(f"{self._root}/{key[:2]}/{key}.json", key, touch=touch)
        return found or self._rescue(key)

    def put(self, answer: StoredAnswer) -> StoredAnswer:
        """Store an answer and the record of its call; both outlast the process and a power cut.

        Returns:
            The answer that is stored under the key now: that of whoever came first.

        Raises:
            OSError: It cannot be written.
        """
        key = answer.record.request_key
        content = _encode(answer)
        pending = self.folder / "pending" / key[:2] / f"{key}-{uuid.uuid4().hex}.json"
        _write_through(pending, content)
        path = self._path(key)
        return answer if self._link(pending, path, content) else _read(str(path), key, touch=False) or answer

    def pending(self) -> Iterator[Path]:
        """Files of the payments that the ledger's table may not have yet."""
        for digits in _DIGITS:
            for name in _names(self.folder / "pending" / digits):
                yield self.folder / "pending" / digits / name

    def pending_record(self, path: Path) -> CallRecord | None:
        """Record of a pending payment; None where the file has gone, or is not complete."""
        found = _read(str(path), path.name[:64], touch=False)
        return found.record if found else None

    def release(self, paths: Collection[Path]) -> None:
        """Take note that the ledger's table has the records of pending files, each of which was read.

        Raises:
            OSError: An answer has no name of its own yet, and cannot be given one.
        """
        for path in paths:
            self._link(path, self._path(path.name[:64]), None)
        for folder in {self._path(path.name[:64]).parent for path in paths}:
            sync_folder(folder)
        sync_folder(self.folder)
        for path in paths:
            path.unlink(missing_ok=True)

    def discard_torn(self, path: Path) -> None:
        """Remove a pending file that is not complete, unless it may still be being written."""
        with suppress(FileNotFoundError):
            if time.time() - path.stat().st_mtime > _TORN_SECONDS:
                _LOG.warning("%s: an incomplete answer of a killed process is removed", path)
                path.unlink()

    def damaged(self) -> list[Path]:
        """Entries that cannot be read; reads every entry."""
        paths = (self._path(key) for digits in _DIGITS for key, _, _ in self._entries(digits))
        return [path for path in paths if _read(str(path), path.stem, touch=False) is None and path.exists()]

    def records(self, month: str) -> Iterator[CallRecord]:
        """Records of the calls of a month whose answers are stored; reads every entry."""
        for digits in _DIGITS:
            for key, _, _ in self._entries(digits):
                found = _read(str(self._path(key)), key, touch=False)
                if found and found.record.month == month:
                    yield found.record

    def stats(self) -> AnswerStats:
        """What is stored; reads every entry."""
        sums: dict[tuple[str, str, str, str], list[float]] = {}
        damaged, times = 0, [float("inf"), float("-inf")]
        for digits in _DIGITS:
            for key, _, size in self._entries(digits):
                found = _read(str(self._path(key)), key, touch=False)
                if found is None:
                    damaged += 1
                    continue
                record = found.record
                group = sums.setdefault((record.provider, record.model, record.step, record.outcome), [0, 0, 0.0])
                group[0] += 1
                group[1] += size
                group[2] += record.cost_usd
                times = [min(times[0], record.called_at), max(times[1], record.called_at)]
        groups = tuple(AnswerGroup(*names, int(s[0]), int(s[1]), s[2]) for names, s in sorted(sums.items()))
        return AnswerStats(
            entries=sum(group.entries for group in groups),
            bytes=sum(group.bytes for group in groups),
            damaged=damaged,
            pending=sum(1 for _ in self.pending()),
            oldest=times[0] if groups else None,
            newest=times[1] if groups else None,
            groups=groups,
        )

    def prune(
        self,
        max_bytes: int | None,
        max_days: float | None,
        outcomes: Collection[str] = (),
        keys: Collection[str] = frozenset(),
        *,
        dry_run: bool = False,
    ) -> PruneReport:
        """Remove answers, those first that were not used for longest; never one whose record is pending.

        Others may read and write meanwhile: an answer that was used since it was looked at stays, and one that is
        removed while it is asked for is asked of the model again.

        Args:
            max_bytes: Bytes to keep; None for no limit.
            max_days: Days without use after which an answer goes; None for no limit.
            outcomes: Outcomes whose answers go whatever their age, so that they are asked for again.
            keys: Answers that go likewise.
            dry_run: Only tell.
        """
        if dry_run:
            return self._prune(max_bytes, max_days, outcomes, keys, dry_run=True)
        if not self.folder.is_dir():
            return PruneReport(0, 0, 0, 0)
        with FileLock(self.folder / ".prune.lock", thread_local=False):
            return self._prune(max_bytes, max_days, outcomes, keys, dry_run=False)

    def _prune(
        self,
        max_bytes: int | None,
        max_days: float | None,
        outcomes: Collection[str],
        dropped: Collection[str],
        *,
        dry_run: bool,
    ) -> PruneReport:
        keys, used, sizes, marks = self._inventory(outcomes, dropped)
        order = np.argsort(used, kind="stable")
        gone = np.zeros(len(keys), dtype=bool)
        if outcomes or dropped:
            gone |= marks == _DROPPED
        if max_days is not None:
            gone |= used < time.time() - max_days * _DAY_SECONDS
        gone &= marks != _PENDING
        if max_bytes is not None:
            excess = int(sizes[~gone].sum()) - max_bytes
            candidates = order[(~gone & (marks != _PENDING))[order]]
            before = np.cumsum(sizes[candidates]) - sizes[candidates]
            gone[candidates[before < excess]] = True
        removed = removed_bytes = 0
        for index in np.flatnonzero(gone):  # folder by folder, which disks like better than by age
            if dry_run or self._remove(keys[index].decode(), used[index]):
                removed += 1
                removed_bytes += int(sizes[index])
        return PruneReport(removed, removed_bytes, len(keys) - removed, int(sizes.sum()) - removed_bytes)

    def _inventory(
        self, outcomes: Collection[str], dropped: Collection[str]
    ) -> tuple[NDArray[np.bytes_], NDArray[np.float64], NDArray[np.int64], NDArray[np.int8]]:
        """Keys, times of last use, sizes and marks of all entries; some 90 bytes each in memory."""
        keys: list[NDArray[np.bytes_]] = [np.empty(0, "S64")]
        used, sizes, marks = [np.empty(0)], [np.empty(0, np.int64)], [np.empty(0, np.int8)]
        for digits in _DIGITS:
            waiting = {name[:64] for name in _names(self.folder / "pending" / digits)}
            entries = list(self._entries(digits))
            keys.append(np.array([key for key, _, _ in entries], dtype="S64"))
            used.append(np.array([at for _, at, _ in entries], dtype=np.float64))
            sizes.append(np.array([size for _, _, size in entries], dtype=np.int64))
            marks.append(
                np.array([self._mark(key, waiting, outcomes, dropped) for key, _, _ in entries], dtype=np.int8)
            )
        return np.concatenate(keys), np.concatenate(used), np.concatenate(sizes), np.concatenate(marks)

    def _mark(self, key: str, waiting: Collection[str], outcomes: Collection[str], dropped: Collection[str]) -> int:
        if key in waiting:
            return _PENDING
        if key in dropped:
            return _DROPPED
        if not outcomes:
            return _FREE
        found = _read(str(self._path(key)), key, touch=False)
        return _DROPPED if found and found.record.outcome in outcomes else _FREE

    def _remove(self, key: str, used: float) -> bool:
        """Remove an entry, unless it was used, replaced or removed since it was looked at."""
        path = self._path(key)
        with suppress(FileNotFoundError):
            if path.stat().st_mtime == used:
                path.unlink()
                return True
        return False

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.json"

    def _entries(self, digits: str) -> Iterator[tuple[str, float, int]]:
        """Key, time of last use and size of each entry of a folder."""
        with suppress(FileNotFoundError, NotADirectoryError), os.scandir(self.folder / digits) as found:
            for entry in found:
                if match := _NAME.fullmatch(entry.name):
                    with suppress(FileNotFoundError):
                        facts = entry.stat()
                        yield match[1], facts.st_mtime, facts.st_size

    def _link(self, pending: Path, path: Path, content: bytes | None) -> bool:
        """Give a pending answer its own name, unless there is a readable one of that name.

        Returns:
            Whether the entry is now this answer; False also where the pending name has gone, as the ledger links it
            before it takes it away.
        """
        for _ in range(100):
            try:
                _link(pending, path, content)
            except FileNotFoundError:
                if not pending.exists():
                    return False
                path.parent.mkdir(parents=True, exist_ok=True)
            except FileExistsError:
                if _is_same(pending, path) or _read(str(path), path.stem, touch=False) is not None:
                    return False
                _set_aside(path)
            else:
                return True
        raise OSError(errno.EBUSY, "other processes keep replacing it", str(path))

    def _rescue(self, key: str) -> StoredAnswer | None:
        """An answer whose writer has not linked it yet, or was killed before it could."""
        folder = self.folder / "pending" / key[:2]
        for name in sorted(name for name in _names(folder) if name.startswith(key)):
            if found := _read(str(folder / name), key, touch=False):
                with suppress(OSError):
                    self._link(folder / name, self._path(key), None)
                return found
        return None


def _encode(answer: StoredAnswer) -> bytes:
    body = f'{{"text":{json.dumps(answer.text, ensure_ascii=False)},"call":{answer.record.to_json()}}}'
    entry = body.encode("utf-8", "surrogatepass")
    return _HEAD + hashlib.sha256(entry).hexdigest().encode() + _MIDDLE + entry + _TAIL


def _decode(content: bytes, key: str) -> StoredAnswer:
    """Read an entry.

    Raises:
        ValueError: It is torn, was edited, or is of another key.
    """
    entry = content[_BODY : -len(_TAIL)]
    if content[:_BODY] != _HEAD + hashlib.sha256(entry).hexdigest().encode() + _MIDDLE or content[-1:] != _TAIL:
        raise ValueError("it does not match its digest")
    value = json.loads(entry)
    record = record_from(value["call"])
    if record.request_key != key or not isinstance(value["text"], str):
        raise ValueError("it is the answer to another request")
    return StoredAnswer(value["text"], record)


def _read(path: str, key: str, *, touch: bool) -> StoredAnswer | None:
    try:
        opened = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        content = os.read(opened, _READ_BYTES)
        while len(content) >= _READ_BYTES and (more := os.read(opened, 1 << 20)):
            content += more
        if touch and (now := time.time()) - os.fstat(opened).st_mtime > _DAY_SECONDS:
            with suppress(OSError):
                os.utime(path, (now, now))
    finally:
        os.close(opened)
    try:
        return _decode(content, key)
    except (ValueError, KeyError, TypeError) as error:
        if f"{os.sep}pending{os.sep}" not in path:
            _LOG.warning("%s: a damaged answer counts as absent: %s", path, error)
        return None


def _write_through(path: Path, content: bytes) -> None:
    """Write a file in place and to the disk; what is incomplete shows by its digest."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    try:
        opened = os.open(path, flags, 0o666)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        sync_folder(path.parent.parent)
        opened = os.open(path, flags, 0o666)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(opened, view) :]
        os.fsync(opened)
    except OSError:
        path.unlink(missing_ok=True)
        raise
    finally:
        os.close(opened)
    sync_folder(path.parent)


def _link(pending: Path, path: Path, content: bytes | None) -> None:
    """Link a pending file to its own name, or write it a second time where the file system has no links."""
    try:
        os.link(pending, path)
    except (FileExistsError, FileNotFoundError):
        raise
    except OSError:
        write_new(path, pending.read_bytes() if content is None else content)


def _is_same(first: Path, second: Path) -> bool:
    with suppress(FileNotFoundError):
        return first.samefile(second)
    return False


def _set_aside(path: Path) -> None:
    """Take a damaged entry out of the way; another process may do so as well."""
    with suppress(FileNotFoundError):
        path.unlink()


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208 - names are all that is needed
    except (FileNotFoundError, NotADirectoryError):
        return []
