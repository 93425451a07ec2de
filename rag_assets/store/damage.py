"""Damage to stored tables, serving tables and published versions: finding it, taking it away, and what is left to do.

Files of the store are written once and never changed, so that checksums tell. What is damaged is moved to
`<home>/damaged/<time>/`, so that nothing is lost; the next run computes what is missing then. What stays out: what lies
beside the stores in a home (`rag_assets.pipeline.repair`), and computing anew, which is what indexing does by itself.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum, auto
from pathlib import Path
from typing import TYPE_CHECKING

from rag_assets.contracts.errors import StoreError
from rag_assets.contracts.tables import TABLES, VECTOR_TABLES, Table
from rag_assets.store.files import sealed, unsealed, write_atomically
from rag_assets.store.lake import Lake
from rag_assets.store.snapshots import Snapshot, Snapshots

if TYPE_CHECKING:
    from rag_assets.store.vectors.store import VectorStore

RECORD = "verified.json"
_DIGEST_BYTES = 16  # damage is found, not forgery
_Facts = tuple[int, int, int, int]
_HINT = "_versions/latest_version_hint.json"  # the only file of LanceDB that is written again


class Checksums:
    """Size and digest of the files below one folder, and when each was last found to agree with them. For one thread.

    A file is read only to be hashed where its size, times or place on the disk are not those under which it was found
    intact. What was found is kept in `<root>/verified.json`, which may be lost at any time: everything is read once
    then.

    Args:
        root: The folder; files are named by their paths below it.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._facts: dict[str, _Facts] = {}
        self._marks: dict[str, str] = {}
        self._changed = False
        self._record_facts = self._facts_of_record()
        with suppress(OSError, ValueError, KeyError, TypeError):
            for path, (mark, *facts) in unsealed((root / RECORD).read_bytes())["files"].items():
                self._marks[path], self._facts[path] = mark, (facts[0], facts[1], facts[2], facts[3])

    def known(self, below: str) -> list[str]:
        """Files that were found intact, whose paths begin with a text."""
        return [path for path, mark in self._marks.items() if mark and path.startswith(below)]

    def mark(self, path: str) -> str | None:
        """Size and digest of a file, where it was found intact."""
        return self._marks.get(path) or None

    def marks(self, paths: Iterable[str], published: Mapping[str, str]) -> dict[str, str]:
        """Size and digest of files, `size:digest`; of files that are known already, those under which they are, here or
        in published versions.

        Raises:
            StoreError: A file is gone, or is not what it was.
        """
        marks = {}
        for path in paths:
            mark = self._marks.get(path, published.get(path))
            if problem := self.problem(path, mark):
                raise StoreError(f"{self.root / path}: {problem}; run `rag-assets index`")
            marks[path] = self._marks[path]
        return marks

    def problem(
        self, path: str, mark: str | None = None, *, thorough: bool = False, unread: bool = False
    ) -> str | None:
        """What is wrong with a file; None where nothing is, which is noted.

        Args:
            path: The file.
            mark: Its size and digest; None for those under which it was first seen.
            thorough: Whether to read it, though it is as it was when it was found intact.
            unread: Whether to take the word of its size where it was never found intact here.
        """
        try:
            facts = _facts(self.root / path)
        except OSError:
            return "it is missing"
        known_mark = self._marks.get(path) or None
        mark = mark or known_mark
        if mark is not None and facts[0] != int(mark.partition(":")[0]):
            return "it is empty" if not facts[0] else "it has another size than when it was written"
        if mark is not None and known_mark == mark and self._facts[path] == facts and not thorough:
            return None
        if unread and known_mark is None:
            return None
        try:
            current_mark = mark_of(self.root / path)
        except OSError as error:
            return f"it cannot be read: {error.strerror}"
        if mark is not None and current_mark != mark:
            return "its content is not what was written"
        self._note(path, current_mark, facts)
        return None

    def adopt(self, paths: Iterable[str]) -> None:
        """Note files as they are now where only the number of their names changed, which says nothing of content."""
        for path in paths:
            with suppress(OSError):
                facts, before = _facts(self.root / path), self._facts.get(path)
                if before is not None and facts != before and _content_facts(facts) == _content_facts(before):
                    self._note(path, self._marks[path], facts)

    def forget(self, paths: Iterable[str]) -> None:
        """Forget files that are gone, or were set aside."""
        for path in list(paths):
            if path in self._marks:
                del self._marks[path], self._facts[path]
                self._changed = True

    def renew(self, paths: Iterable[str]) -> None:
        """Take whatever stands under a name at next sight as right: what stood there was damaged and taken away."""
        for path in paths:
            self._note(path, "", (0, 0, 0, 0))

    def forget_renewed(self) -> None:
        """Forget names under which nothing came to stand again."""
        self.forget([path for path, mark in self._marks.items() if not mark])

    def save(self, *, only_over_what_was_read: bool = False) -> None:
        """Write down what was found; nothing where nothing is new.

        Args:
            only_over_what_was_read: Whether to leave what another process has written meanwhile as it is.
        """
        if not self._changed or (only_over_what_was_read and self._facts_of_record() != self._record_facts):
            return
        files = {path: [mark, *self._facts[path]] for path, mark in self._marks.items()}
        write_atomically(self.root / RECORD, sealed({"files": files}, indent=None))
        self._changed, self._record_facts = False, self._facts_of_record()

    def _facts_of_record(self) -> _Facts | None:
        try:
            return _facts(self.root / RECORD)
        except OSError:
            return None

    def _note(self, path: str, mark: str, facts: _Facts) -> None:
        self._marks[path], self._facts[path], self._changed = mark, facts, True


def mark_of(path: Path) -> str:
    """Size and digest of a file, `size:digest`, the digest 128 bits of BLAKE2b.

    Raises:
        OSError: It cannot be read.
    """
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=_DIGEST_BYTES)).hexdigest()
        return f"{os.fstat(file.fileno()).st_size}:{digest}"


def _facts(path: Path) -> _Facts:
    """Size, times of the last change of content and of the file as such, and place on the disk."""
    status = path.stat()
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


def _content_facts(facts: _Facts) -> tuple[int, int, int]:
    return facts[0], facts[1], facts[3]


class DamageKind(StrEnum):
    """What is damaged."""

    POINTER = auto()
    MANIFEST = auto()
    ROWS = auto()
    EARLIER = auto()
    SERVING = auto()
    DERIVED = auto()
    SEALED = auto()
    PLACE = auto()
    LEARNED = auto()  # which a person mends
    OTHER = auto()


@dataclass(frozen=True)
class Damage:
    """Something that is damaged."""

    place: str  # the file or folder, by its path below the home
    cause: str
    remedy: str  # what becomes of it, or what to do
    kind: DamageKind = DamageKind.OTHER

    def __str__(self) -> str:
        return f"{self.place}: {self.cause}; {self.remedy}"


class Quarantine:
    """Where damaged files go."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._folder = root / "damaged" / datetime.now(UTC).strftime("%Y%m%dT%H%M%S%fZ")

    def take(self, place: str) -> Path | None:
        """Move a file or folder away; where it is now, or None where it is gone already."""
        source, target = self._root / place, self._folder / place
        if not source.exists():
            return None
        target.parent.mkdir(parents=True, exist_ok=True)
        while target.exists():  # a part of it was taken before
            target = target.with_name(f"{target.name}~")
        return source.rename(target)


class StoreDamage:
    """Finds damage in the stores of a home, and takes it away."""

    def __init__(self, lake: Lake, vectors: "Callable[[], VectorStore]", snapshots: Snapshots) -> None:
        self._lake, self._vectors, self._snapshots = lake, vectors, snapshots
        self._root = lake.root.parent
        self.checksums = Checksums(self._root)
        self._lost: dict[str, str] = {}  # mark of each damaged stored file, by path

    def find(self, *, thorough: bool = False) -> list[Damage]:
        """What is damaged. Needs no lock: what looks so only while another process writes is left out.

        Args:
            thorough: Whether to read everything; else only what looks changed since it was found intact.
        """
        damages = self._look(thorough=thorough)
        if damages:
            lasting_damages = set(self._look(thorough=thorough))
            damages = [damage for damage in damages if damage in lasting_damages]
        self._forget_deleted({damage.place for damage in damages})
        with suppress(OSError):  # who may only read finds them by their bytes the next time, too
            self.checksums.save(only_over_what_was_read=True)
        return damages

    def _look(self, *, thorough: bool) -> list[Damage]:
        """What is damaged, or is being written at this moment."""
        readable = self._snapshots.readable()
        marks = {path: mark for snapshot in readable for path, mark in snapshot.files.items()}
        problems = {
            path: problem
            for path, mark in marks.items()
            if (problem := self.checksums.problem(path, mark, thorough=thorough))
        }
        pruned_numbers = {snapshot.number for snapshot in readable} - {*self._snapshots.numbers()}  # pruned meanwhile
        if pruned_numbers:
            return self._look(thorough=thorough)
        damages = [*self._pointer_damage(readable), *self._published_damage(readable, problems)]
        damages += self._unpublished_rows(marks, thorough=thorough)
        damages += self._vector_damage(readable, {*marks}, thorough=thorough)
        return list(dict.fromkeys(damages))

    def set_aside(self, found: Sequence[Damage], aside: Quarantine) -> None:
        """Take away what is damaged, so that what is missing is computed by the next run."""
        files = {path: mark for snapshot in self._snapshots.readable() for path, mark in snapshot.files.items()}
        for damage in found:
            match damage.kind:
                case DamageKind.ROWS:
                    path = self._root / damage.place
                    self._lost[damage.place] = files.get(damage.place, "")
                    aside.take(damage.place)
                    self._lake.withdraw(path)
                case DamageKind.MANIFEST | DamageKind.EARLIER:
                    aside.take(damage.place)
                case DamageKind.SERVING:
                    self._begin_anew(damage.place, aside)
                case DamageKind.DERIVED:
                    aside.take(damage.place)
                    self.checksums.forget(self.checksums.known(f"{damage.place}/"))
                case DamageKind.POINTER if (self._root / damage.place).is_dir():
                    aside.take(damage.place)
            self.checksums.renew([damage.place])
        if (
            any(damage.kind is DamageKind.POINTER for damage in found)
            and (pointer := self._snapshots.pointer()) is not None
        ):
            self._snapshots.point_to(pointer)
        self._snapshots.finish()
        self.checksums.save()

    def settle(self, aside: Quarantine) -> list[str]:
        """After a run: give files that came out as they were their old names, and drop versions that stay broken.

        Returns:
            What was dropped, in words.
        """
        for place, mark in self._lost.items():
            self._restore(place, mark)
        messages = []
        newest = self._snapshots.newest()
        for snapshot in self._snapshots.readable():
            if snapshot != newest and any(self.checksums.problem(path, mark) for path, mark in snapshot.files.items()):
                place = self._place(self._snapshots.path(snapshot.number))
                aside.take(place)
                messages.append(f"snapshot {snapshot.number} cannot be made whole and is no longer kept")
        self._snapshots.finish()
        pointer, numbers = self._snapshots.pointer(), self._snapshots.numbers()
        if pointer is not None and numbers and pointer.number not in numbers:
            self._snapshots.roll_back(numbers[-1])
        self.checksums.save()
        return messages

    def note(self) -> None:
        """Note the files that are there now, so that later damage to them is noticed."""
        newest = self._snapshots.newest()
        published_marks = newest.files if newest else {}
        vectors = set(_vector_files(self._root))
        rows = {self._place(path) for table in TABLES.values() for path in self._lake.paths(table)}
        for path in sorted(vectors | rows):
            if self.checksums.mark(path) is None:
                self.checksums.problem(path, published_marks.get(path))
        self.checksums.forget_renewed()
        self.checksums.adopt(self.checksums.known(""))
        self.checksums.forget(path for path in self.checksums.known("vectors/") if path not in vectors)
        self.checksums.forget(path for path in self.checksums.known("lake/") if not (self._root / path).exists())
        self.checksums.save()

    def _place(self, path: Path) -> str:
        return path.relative_to(self._root).as_posix()

    def _forget_deleted(self, places: Set[str]) -> None:
        """Forget files that are gone without damage: no version names them, and later files may have their names."""
        named_paths = {path for snapshot in self._snapshots.readable() for path in snapshot.files}
        known_paths = {*self.checksums.known("lake/"), *self.checksums.known("vectors/")} - named_paths
        self.checksums.forget(
            path
            for path in known_paths
            if not (self._root / path).exists()
            and places.isdisjoint([path, *(parent.as_posix() for parent in Path(path).parents)])
        )

    def _pointer_damage(self, readable: Sequence[Snapshot]) -> Iterator[Damage]:
        file = self._snapshots.pointer_file
        place = self._place(file.path)
        problem = file.problem()
        if problem and self._snapshots.pointer() is not None:
            yield Damage(place, problem, "it is restored from its copy", DamageKind.POINTER)
        elif problem:
            remedy = "readers see the newest version; a rollback is to be made again"
            yield Damage(place, problem, remedy, DamageKind.POINTER)
        readable_numbers = {snapshot.number for snapshot in readable}
        pointer = self._snapshots.pointer()
        numbers = self._snapshots.numbers()
        missing_numbers = [] if pointer is None or pointer.number in numbers else [pointer.number]
        for number in [*numbers, *missing_numbers]:
            if number not in readable_numbers:
                cause = "it is missing" if number in missing_numbers else "it is damaged"
                remedy = f"snapshot {number} is no longer kept; what is stored is published anew"
                yield Damage(self._place(self._snapshots.path(number)), cause, remedy, DamageKind.MANIFEST)

    def _published_damage(self, readable: Sequence[Snapshot], problems: dict[str, str]) -> Iterator[Damage]:
        """Damage to files that manifests name, and to those that manifests without checksums need."""
        latest = {path for table in TABLES.values() for path in self._latest_places(table, readable)}
        newest_files = readable[-1].files if readable else {}
        serving = set()
        for path, problem in sorted(problems.items()):
            parts = path.split("/")
            if parts[0] == "lake":
                if path in latest:
                    yield Damage(path, problem, "its rows are computed anew", DamageKind.ROWS)
                else:
                    yield Damage(path, problem, "only earlier versions need it", DamageKind.EARLIER)
            elif not (self._root / "/".join(parts[:2])).exists():
                continue  # the folder is named
            elif path in newest_files:
                serving.add("/".join(parts[:2]))
                yield Damage(path, problem, f"{parts[1]} is written anew from the stored tables", DamageKind.EARLIER)
            else:
                yield Damage(path, problem, "only earlier versions need it", DamageKind.EARLIER)
        for place in sorted(serving):
            yield Damage(
                place, "files of it are damaged", "it is written anew from the stored tables", DamageKind.SERVING
            )

    def _latest_places(self, table: Table, readable: Sequence[Snapshot]) -> set[str]:
        """Files of a table that hold its latest rows, those that are missing included."""
        latest = self._lake.latest(table)
        newest = readable[-1].tables.get(table.name, {}) if readable else {}
        versions = {shard: max(latest.get(shard, 0), newest.get(shard, 0)) for shard in latest.keys() | newest.keys()}
        return {self._place(path) for path in self._lake.paths(table, versions)}

    def _unpublished_rows(self, marks: dict[str, str], *, thorough: bool) -> Iterator[Damage]:
        """Damage to the latest files that no manifest names: first sight tells what they are, if they can be read."""
        for table in TABLES.values():
            remedy = _remedy(table)
            if not table.published:
                yield from self._lost_shards(table)
            for path in self._lake.paths(table):
                place = self._place(path)
                if place in marks:
                    continue
                known_mark = self.checksums.mark(place)
                problem = self.checksums.problem(place, thorough=thorough) if known_mark else None
                if known_mark is None or thorough:
                    try:
                        self._lake.check(path)
                        self.checksums.problem(place)
                    except StoreError:
                        problem = problem or "it is empty or not readable as Parquet"
                if problem:
                    yield Damage(place, problem, remedy, DamageKind.ROWS)

    def _lost_shards(self, table: Table) -> Iterator[Damage]:
        """Shards of a table that no manifest names of which every file is gone."""
        shards = self._lake.latest(table)
        for place in self.checksums.known(f"lake/{table.name}/"):
            if Path(place).parent.name not in shards:
                yield Damage(place, "it is missing", _remedy(table), DamageKind.ROWS)

    def _vector_damage(
        self, readable: Sequence[Snapshot], named_paths: set[str], *, thorough: bool
    ) -> Iterator[Damage]:
        """Damage to files of LanceDB that no manifest names, and tables that cannot be opened."""
        present_paths, known_paths = set(_vector_files(self._root)), set(self.checksums.known("vectors/"))
        newest = readable[-1] if readable else None
        serving_folders = {f"{name}.lance" for name in newest.vector_tables} if newest else set()
        for folder in sorted({path.split("/")[1] for path in present_paths | known_paths} | serving_folders):
            name, place = folder.removesuffix(".lance"), f"vectors/{folder}"
            yield from self._hint_damage(place)
            cause, files = None, [path for path in sorted(known_paths - named_paths) if path.startswith(f"{place}/")]
            exists = (self._root / place).exists()
            if self._is_as_noted(place, files, present_paths, known_paths, thorough=thorough):
                continue
            try:
                version = self._vectors().version(name)
                is_moved = newest is None or newest.vector_tables.get(name) != version
                strangers = any(path.startswith(f"{place}/") for path in present_paths - known_paths - named_paths)
                if thorough or (is_moved and strangers):
                    self._vectors().scan(name)
            except StoreError:
                version, cause = 0, "it cannot be read" if exists else "it is missing"
            for path in files:
                problem = self.checksums.problem(path, thorough=thorough)
                is_needed = bool(problem and version) and self._vectors().needs(name, version, self._root / path)
                if problem and path in present_paths:
                    yield Damage(path, problem, "what needs it is written anew", DamageKind.EARLIER)
                cause = cause or ("files of it are damaged" if is_needed else None)
            if cause and (exists or folder in serving_folders):
                kind = DamageKind.SERVING if name in VECTOR_TABLES else DamageKind.DERIVED
                source = " from the stored tables" if kind is DamageKind.SERVING else ""
                yield Damage(place, cause, f"it is written anew{source}", kind)

    def _is_as_noted(
        self, place: str, files: Sequence[str], present_paths: set[str], known_paths: set[str], *, thorough: bool
    ) -> bool:
        """Whether a table consists of the files that were noted when it was found intact, so that it need not be
        opened.
        """
        table_paths = {path for path in present_paths if path.startswith(f"{place}/")}
        noted_paths = {path for path in known_paths if path.startswith(f"{place}/")}
        return (
            bool(table_paths)
            and table_paths == noted_paths
            and not any(self.checksums.problem(path, thorough=thorough) for path in files)
        )

    def _hint_damage(self, place: str) -> Iterator[Damage]:
        """LanceDB looks for the latest version from a hint on; one that leads astray hides versions."""
        path = self._root / place / _HINT
        if path.exists():
            names = (manifest.stem for manifest in path.parent.glob("*.manifest"))
            numbers = [int(stem) for stem in names if stem.isdigit()]
            latest = max(((1 << 64) - 1 - number if number >= 1 << 63 else number for number in numbers), default=0)
            with suppress(OSError, ValueError, KeyError, TypeError):
                if json.loads(path.read_bytes())["version"] == latest:
                    return
            yield Damage(
                f"{place}/{_HINT}", "it does not name the latest version", "it is not needed", DamageKind.EARLIER
            )

    def _begin_anew(self, place: str, aside: Quarantine) -> None:
        name = place.removeprefix("vectors/").removesuffix(".lance")
        known_paths = self.checksums.known(f"{place}/")
        if not self._vectors().begin_anew(name):
            aside.take(place)
            with suppress(StoreError):
                self._vectors().forget_states(name)
            self.checksums.forget(known_paths)
            for snapshot in self._snapshots.readable():  # numbers of versions begin again: none may be read under them
                self.checksums.renew(path for path in snapshot.files if path.startswith(f"{place}/"))

    def _restore(self, place: str, mark: str) -> None:
        """Give the latest file of a shard the name of a damaged one as well, where it came out the same."""
        path = self._root / place
        table, shard = TABLES[path.parent.parent.name], path.parent.name
        (latest,) = self._lake.paths(table, self._lake.latest(table, [shard])) or [path]
        if mark and not path.exists() and latest != path and mark_of(latest) == mark:
            with suppress(OSError):
                os.link(latest, path)
                self.checksums.adopt([self._place(latest)])


def _remedy(table: Table) -> str:
    if table.recorded:
        return "what it recorded of an evaluation is lost"
    return "its rows are computed anew" if table.published else "its records are read from stored answers"


def serving_as_noted(root: Path) -> bool:
    """Whether the serving tables of a home consist of the files that a run noted when it had published them."""
    noted_paths = set(Checksums(root).known("vectors/"))
    return bool(noted_paths) and noted_paths == set(_vector_files(root))


def _vector_files(root: Path) -> Iterator[str]:
    """Files of LanceDB that are written once, by their paths below the home."""
    for folder, _, names in os.walk(root / "vectors"):
        place = os.path.relpath(folder, root)
        if ".lance" in place and not place.endswith("/_transactions"):
            yield from (path for name in names if not (path := f"{place}/{name}").endswith(_HINT))


def intact_version(snapshots: Snapshots) -> tuple[Snapshot | None, str | None]:
    """The version that readers are to see: the current one, or where that is damaged, one that is intact.

    Files that were never found intact on this machine are judged by their size, so that reading waits for no hashing.
    Where no version is intact it is the current one: what of it is not damaged can be read.

    Returns:
        The version, None before the first publication, and what is wrong, else None.
    """
    checksums = Checksums(snapshots.root.parent)
    candidates, pointer = snapshots.candidates(), snapshots.pointer()
    problem: str | None = None
    if not candidates:
        return None, snapshots.lost()
    if pointer is None and (cause := snapshots.pointer_file.problem()):
        problem = f"{snapshots.pointer_file.path.name}, which names the version that readers see, is damaged ({cause})"
    elif pointer is not None and candidates[0].number != pointer.number:
        problem = f"the manifest of snapshot {pointer.number} is damaged or gone"
    for snapshot in candidates:
        causes = ((path, checksums.problem(path, mark, unread=True)) for path, mark in snapshot.files.items())
        first = next((f"{path}: {cause}" for path, cause in causes if cause), None)
        if first is None:
            message = f"{problem}: snapshot {snapshot.number} is read instead; run `rag-assets index`"
            return snapshot, problem and message
        problem = problem or f"snapshot {snapshot.number} is damaged ({first})"
    return candidates[0], f"{problem}, and no other is intact; run `rag-assets index`"
