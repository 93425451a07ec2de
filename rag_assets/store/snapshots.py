"""Published versions: one manifest names the version of every table, and readers follow one pointer.

`<root>/<number>.json` is a manifest and is never changed. `<root>/CURRENT` is the pointer, replaced atomically: it has
the number that readers see and, after a rollback, the newest number that they were moved back from. A manifest that is
newer than both was written by a run that was killed before it moved the readers; who indexes next moves them
(`finish`). Any number of processes may publish at once: each gets a number of its own, and the one that comes late does
not move readers back. The stable place of other programs (`rag_assets.store.published_tables`) moves with
`CURRENT`, under one lock; where a process is killed in between, the next one that looks moves it on.
"""

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from rag_assets.contracts.errors import StoreError
from rag_assets.contracts.fingerprint import digest
from rag_assets.store.files import Lock, SealedFile, sealed, unsealed, write_new
from rag_assets.store.published_tables import PublishedTables

_FILE_NAME = re.compile(r"([0-9]{8,})\.json")
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Snapshot:
    """One published version."""

    number: int  # number of the snapshot, from 1
    published_at: str  # time of publishing, ISO 8601, UTC
    pipeline: str  # digest of the code and settings that computed it
    embedder: str  # name of the embedder of its vectors
    tables: Mapping[str, Mapping[str, int]]  # version of each shard, by table name and shard
    vector_tables: Mapping[str, int]  # version of each serving table
    row_counts: Mapping[str, int]  # rows by table name; serving tables are named `lancedb.<name>`
    # size and digest (`store.damage`) of every file that it consists of, by path below the home
    files: Mapping[str, str] = field(default_factory=dict)
    # code, options and libraries that it was computed with, by step and by what people call them
    steps: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    # folders below the home of what was learned on the collection, by what it is; the last one is in force, those
    # before were (`rag_assets.training.adoption`)
    learned: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def same_content(self, other: "Snapshot") -> bool:
        """Whether both name the same versions, with the same files."""
        return self.same_rows(other) and (self.vector_tables, self.files) == (other.vector_tables, other.files)

    def same_rows(self, other: "Snapshot") -> bool:
        """Whether both hold the same rows, though serving tables may have been written anew."""
        return (self.pipeline, self.embedder, self.tables) == (other.pipeline, other.embedder, other.tables)


@dataclass(frozen=True)
class Pointer:
    """Which version readers see."""

    number: int
    rolled_back_from: int | None = None  # after a rollback, the newest version at that time; else None

    @property
    def newest(self) -> int:
        """The newest version that it knows of."""
        return max(self.number, self.rolled_back_from or 0)


def facts_digest(steps: Mapping[str, Mapping[str, str]]) -> str:
    """Digest of what the tables of all steps depend on beside their input."""
    facts = ((step, *item) for step, step_facts in sorted(steps.items()) for item in sorted(step_facts.items()))
    return digest(*facts)


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
        matches = (_FILE_NAME.fullmatch(path.name) for path in self.root.glob("*.json"))
        return sorted(int(match[1]) for match in matches if match)

    def current(self) -> Snapshot | None:
        """The snapshot that readers see, or None before the first publication.

        Where its manifest or the pointer is damaged or gone, the newest one that can be read in its place.
        """
        snapshot = next(iter(self.candidates()), None)
        if snapshot is not None and self._tables is not None and not self._tables.shows(snapshot.number):
            with suppress(StoreError, OSError), self._pointer_lock.hold(0):  # a reader may not write here
                self._show(snapshot)
        return snapshot

    def candidates(self) -> list[Snapshot]:
        """The snapshots that readers may see, in the order in which they should: the current one, then earlier ones,
        newest first, then later ones.
        """
        pointer = self.pointer()
        readable = self.readable()
        if pointer is None:
            return readable[::-1]
        return sorted(
            readable, key=lambda snapshot: (snapshot.number > pointer.number, abs(snapshot.number - pointer.number))
        )

    def pointer(self) -> Pointer | None:
        """The pointer; None before the first publication, and where it is damaged."""
        try:
            value = self.pointer_file.read()
            return None if value is None else Pointer(value["snapshot"], value["rolled_back_from"])
        except (StoreError, KeyError) as error:
            _log.info("%s: damaged: readers see the newest version: %s", self.pointer_file.path, error)
            return None

    def lost(self) -> str | None:
        """That versions were published of which none can be read any more, in words; else None."""
        table_numbers = self._tables.numbers() if self._tables is not None else []
        traces = self.numbers() or self.pointer() or self.pointer_file.problem() or table_numbers
        if not traces or self.newest() is not None:
            return None
        return "the manifests of all published versions are damaged or gone; `rag-assets index` publishes anew"

    def unfinished(self) -> int | None:
        """Number of the version that a killed run has published without moving the readers to it; else None."""
        newest, pointer = self.newest(), self.pointer()
        if newest is None or (pointer is not None and newest.number <= pointer.newest):
            return None
        return newest.number

    def finish(self) -> int | None:
        """Move the readers to the version that a killed run has published, if there is one; returns its number."""
        number = self.unfinished()
        if number is not None:
            self.move_on(number)
        return number

    def newest(self) -> Snapshot | None:
        """The newest snapshot whose manifest can be read, whether readers see it or not."""
        return next(self._readable(), None)

    def readable(self) -> list[Snapshot]:
        """The snapshots that are kept and whose manifests can be read, rising."""
        return list(self._readable())[::-1]

    def _readable(self) -> Iterator[Snapshot]:
        for number in reversed(self.numbers()):
            try:
                yield self.load(number)
            except StoreError as error:
                _log.info("%s", error)

    def load(self, number: int) -> Snapshot:
        """A snapshot by number.

        Raises:
            StoreError: There is none of that number, or its manifest is damaged.
        """
        path = self.path(number)
        try:
            return _decode(path.read_bytes(), number)
        except FileNotFoundError as error:
            raise StoreError(f"no snapshot {number}; kept are {self.numbers()}") from error
        except (OSError, ValueError, TypeError) as error:
            raise StoreError(f"{path}: damaged manifest; run `rag-assets index`") from error

    def publish(self, snapshot: Snapshot, *, moves_rollback: bool = True) -> Snapshot:
        """Write the manifest and move the readers to it.

        Args:
            snapshot: What to publish.
            moves_rollback: Whether readers who were moved back move on; not where it holds no change.

        Returns:
            The snapshot as written: where another publisher took its number, it has the next one that is free.
        """
        while True:
            try:
                write_new(self.path(snapshot.number), sealed(asdict(snapshot)))
                break
            except FileExistsError:
                snapshot = replace(snapshot, number=self.next_number())
        self.move_on(snapshot.number, moves_rollback=moves_rollback)
        return snapshot

    def move_on(self, number: int, *, moves_rollback: bool = True) -> None:
        """Move the readers to a snapshot, unless they are at a later one or were moved back from it or a later one."""
        with self._pointer_lock.hold():
            pointer = self.pointer()
            if pointer is None or number > pointer.newest:
                stays = pointer is not None and pointer.rolled_back_from is not None and not moves_rollback
                self._point_to(replace(pointer, rolled_back_from=number) if pointer and stays else Pointer(number))

    def shown_damage(self) -> str | None:
        """Folder of the published tables that readers see, where files in it are missing or other ones; else None."""
        snapshot = next(iter(self.candidates()), None)
        if snapshot is None or self._tables is None or self._tables.is_whole(snapshot.number, snapshot.tables):
            return None
        return str(self._tables.root / str(snapshot.number))

    def settle(self) -> None:
        """Bring the published tables to what readers see, where a process was killed or the folder has moved.

        Raises:
            StoreError: They cannot be written.
        """
        snapshot = next(iter(self.candidates()), None)
        if snapshot is not None:
            with self._pointer_lock.hold():
                self._show(snapshot)

    def roll_back(self, number: int) -> Snapshot:
        """Move the readers to a kept snapshot, until the next change is published."""
        snapshot = self.load(number)
        with self._pointer_lock.hold():
            newest = max(self.numbers())
            self._point_to(Pointer(number, newest if newest > number else None))
        return snapshot

    def point_to(self, pointer: Pointer) -> None:
        """Write the pointer anew."""
        with self._pointer_lock.hold():
            self._point_to(pointer)

    def prune(self, kept: int) -> list[Snapshot]:
        """Remove all but the last snapshots and the current one; returns those that are kept."""
        current = self.current()
        numbers = self.numbers()
        keep = set(numbers[-kept:]) | ({current.number} if current else set())
        for number in numbers:
            if number not in keep:
                self.path(number).unlink(missing_ok=True)
        if self._tables is not None:  # those of the version before stay, for who is in the middle of reading them
            self._tables.prune(keep | set(numbers[-2:]))
        return [snapshot for snapshot in self.readable() if snapshot.number in keep]

    def next_number(self) -> int:
        """Number of the next snapshot; no number is given twice, though manifests may be lost."""
        pointer = self.pointer()
        return max([*self.numbers(), pointer.newest if pointer else 0]) + 1

    def path(self, number: int) -> Path:
        """Where the manifest of a snapshot is."""
        return self.root / f"{number:08d}.json"

    @property
    def pointer_file(self) -> SealedFile:
        """Where the pointer is."""
        return SealedFile(self.root / "CURRENT")

    @property
    def _pointer_lock(self) -> Lock:
        return Lock.of(self.root / "CURRENT")

    def _point_to(self, pointer: Pointer) -> None:
        snapshot = self.load(pointer.number)
        if self._tables is not None:
            self._tables.make(snapshot.number, snapshot.published_at, snapshot.tables)
        if self.pointer_file.problem() or self.pointer() != pointer:
            self.pointer_file.write({"snapshot": pointer.number, "rolled_back_from": pointer.rolled_back_from})
        self._show(snapshot)

    def _show(self, snapshot: Snapshot) -> None:
        if self._tables is not None:
            self._tables.make(snapshot.number, snapshot.published_at, snapshot.tables)
            if not self._tables.shows(snapshot.number):
                self._tables.show(snapshot.number)


def _decode(content: bytes, number: int) -> Snapshot:
    """Read a manifest.

    Raises:
        ValueError: It is damaged.
        TypeError: It is damaged.
    """
    snapshot = Snapshot(**unsealed(content))
    if snapshot.number != number:
        raise ValueError(f"it is of snapshot {snapshot.number}")
    return snapshot
