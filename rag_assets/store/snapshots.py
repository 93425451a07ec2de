"""Published versions: one manifest names the version of every table, and readers follow one pointer.

`<root>/<number>.json` is a manifest and is never changed; `<root>/CURRENT` holds the number that readers see and is
replaced atomically. Any number of processes may publish at once: each gets a number of its own, and the one that comes
late does not move readers back. The stable place of other programs (`rag_assets.store.published_tables`) moves with
`CURRENT`, under one lock; where a process is killed in between, the next one that looks moves it on.
"""

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from filelock import FileLock

from rag_assets.contracts.errors import StoreError
from rag_assets.store.lake import write_atomically, write_new
from rag_assets.store.published_tables import PublishedTables

_FILE_NAME = re.compile(r"([0-9]{8,})\.json")


@dataclass(frozen=True)
class Snapshot:
    """One published version.

    Attributes:
        number: Number of the snapshot, from 1.
        published_at: Time of publishing, ISO 8601, UTC.
        pipeline: Digest of the code and settings that computed it.
        embedder: Name of the embedder of its vectors.
        tables: Version of each shard, by table name and shard.
        vector_tables: Version of each serving table.
        row_counts: Rows by table name; serving tables are named `lancedb.<name>`.
    """

    number: int
    published_at: str
    pipeline: str
    embedder: str
    tables: Mapping[str, Mapping[str, int]]
    vector_tables: Mapping[str, int]
    row_counts: Mapping[str, int]

    def same_content(self, other: "Snapshot") -> bool:
        """Whether both name the same versions."""
        return (self.pipeline, self.embedder, self.tables, self.vector_tables) == (
            other.pipeline,
            other.embedder,
            other.tables,
            other.vector_tables,
        )


class Snapshots:
    """The published versions below one folder.

    Args:
        root: Folder of the manifests; made at the first publication.
        tables: The published tables for other programs, which show what readers see; None for none.
    """

    def __init__(self, root: Path, tables: PublishedTables | None = None) -> None:
        self.root = root
        self._tables = tables

    def numbers(self) -> list[int]:
        """Numbers of the snapshots that are kept, rising."""
        found = (_FILE_NAME.fullmatch(path.name) for path in self.root.glob("*.json"))
        return sorted(int(match[1]) for match in found if match)

    def current(self) -> Snapshot | None:
        """The snapshot that readers see, or None before the first publication."""
        number = self._current_number()
        if number is None:
            return None
        snapshot = self.load(number)
        if self._tables is not None and not self._tables.shows(number):
            with suppress(StoreError, OSError), self._pointer_lock().acquire(timeout=0):  # a reader may not write here
                self._show(snapshot)
        return snapshot

    def load(self, number: int) -> Snapshot:
        """A snapshot by number.

        Raises:
            StoreError: There is none of that number, or its manifest is damaged.
        """
        path = self._path(number)
        try:
            return Snapshot(**json.loads(path.read_bytes()))
        except FileNotFoundError as error:
            raise StoreError(f"no snapshot {number}; kept are {self.numbers()}") from error
        except (ValueError, TypeError) as error:
            raise StoreError(f"{path}: damaged manifest: {error}") from error

    def publish(self, snapshot: Snapshot) -> Snapshot:
        """Write the manifest and move the readers to it.

        Returns:
            The snapshot as written: where another publisher took its number, it has the next one that is free.
        """
        while True:
            try:
                content = json.dumps(asdict(snapshot), indent=1, sort_keys=True).encode()
                write_new(self._path(snapshot.number), content)
                break
            except FileExistsError:
                snapshot = replace(snapshot, number=self.next_number())
        self.move_on(snapshot.number)
        return snapshot

    def move_on(self, number: int) -> None:
        """Move the readers to a snapshot, unless they are at a later one."""
        with self._pointer_lock():
            current = self._current_number()
            self._point_to(number if current is None else max(current, number))

    def settle(self) -> None:
        """Bring the published tables to what readers see, where a process was killed or the folder has moved.

        Raises:
            StoreError: They cannot be written.
        """
        number = self._current_number()
        if number is not None:
            with self._pointer_lock():
                self._show(self.load(self._current_number() or number))

    def roll_back(self, number: int) -> Snapshot:
        """Move the readers to a kept snapshot, until the next change is published."""
        snapshot = self.load(number)
        with self._pointer_lock():
            self._point_to(number)
        return snapshot

    def prune(self, kept: int) -> list[Snapshot]:
        """Remove all but the last snapshots and the current one; returns those that are kept."""
        current = self.current()
        numbers = self.numbers()
        keep = set(numbers[-kept:]) | ({current.number} if current else set())
        for number in numbers:
            if number not in keep:
                self._path(number).unlink(missing_ok=True)
        if self._tables is not None:  # those of the version before stay, for who is in the middle of reading them
            self._tables.prune(keep | set(numbers[-2:]))
        return [self.load(number) for number in sorted(keep)]

    def next_number(self) -> int:
        """Number of the next snapshot."""
        return max(self.numbers(), default=0) + 1

    def _path(self, number: int) -> Path:
        return self.root / f"{number:08d}.json"

    def _current_number(self) -> int | None:
        path = self.root / "CURRENT"
        try:
            return int(path.read_text())
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise StoreError(f"{path}: expected a snapshot number: {error}") from error

    def _pointer_lock(self) -> FileLock:
        return FileLock(self.root / ".CURRENT.lock")

    def _point_to(self, number: int) -> None:
        snapshot = self.load(number)
        if self._tables is not None:
            self._tables.make(number, snapshot.published_at, snapshot.tables)
        if self._current_number() != number:
            write_atomically(self.root / "CURRENT", str(number).encode())
        self._show(snapshot)

    def _show(self, snapshot: Snapshot) -> None:
        if self._tables is not None:
            self._tables.make(snapshot.number, snapshot.published_at, snapshot.tables)
            if not self._tables.shows(snapshot.number):
                self._tables.show(snapshot.number)
