"""Damage to a home as a whole: the stores, the sources that were named, the Dagster instance, what belongs to models.

`rag-assets index` begins with what looks changed since it was found intact, `rag-assets verify` reads everything. What
stays out: damage to the stores themselves (`rag_assets.store.damage`), and computing anew, which indexing does.
"""

import logging
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from rag_assets.contracts.errors import StoreError
from rag_assets.contracts.tables import MODEL_CALLS
from rag_assets.pipeline.home import MODELS
from rag_assets.pipeline.instance import dagster_folder
from rag_assets.pipeline.opening import LEARNED
from rag_assets.pipeline.stored_settings import settings_file
from rag_assets.sources.changes import registry_file
from rag_assets.store.damage import Damage, DamageKind, Quarantine, StoreDamage

if TYPE_CHECKING:
    from rag_assets.pipeline.home import Home

_ANSWER = "state.db, answer "  # begins the place of an answer in the state database
_CHECKED_BYTES = 1 << 28  # of a state database that is read as a whole whenever indexing begins; takes some 0.5 s
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_UNWRITABLE = {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN}
_LOG_HEADER_BYTES = 32  # of a log of SQLite, before its first entry
_log = logging.getLogger(__name__)
_HISTORY = ("runs.db", "runs/index.db")  # databases of a Dagster instance that are of no use without each other


class Repair:
    """Finds damage in a home, and mends it under the lock of the home."""

    def __init__(self, home: "Home") -> None:
        self._home = home
        self._aside = Quarantine(home.path)
        self._stores = StoreDamage(home.lake, lambda: home.vectors, home.snapshots)

    def find(self, *, thorough: bool = False) -> list[Damage]:
        """What is damaged.

        Args:
            thorough: Whether to read everything; else only what looks changed since it was found intact.
        """
        damages = [*self._sealed_damage(), *self._stores.find(thorough=thorough), *self._state_damage(thorough)]
        damages += self._instance_damage(thorough)
        if folder := self._home.snapshots.shown_damage():
            place, is_gone = self._place(Path(folder)), not Path(folder).exists()
            # links follow what they lead to
            if is_gone or not any(damage.place.startswith(("lake/", "snapshots/")) for damage in damages):
                cause, remedy = "files are missing or other ones", "it is made anew from the lake"
                damages.append(Damage(place, "it is missing" if is_gone else cause, remedy, DamageKind.PLACE))
        if thorough:
            damages += [*self._model_damage(), *self._learned_damage()]
        return damages

    def mend(self, found: Sequence[Damage]) -> None:
        """Restore what there are copies of, export models, and take away what is damaged; indexing computes it anew."""
        self._mend_sealed()
        elsewhere = {DamageKind.OTHER, DamageKind.PLACE, DamageKind.LEARNED}
        self._stores.set_aside([damage for damage in found if damage.kind not in elsewhere], self._aside)
        history = dagster_folder(self._home) / "history"
        for damage in found:
            path = self._home.path / damage.place
            if path == self._home.state_file:
                self._begin_state_anew(damage.place)
            elif damage.kind is DamageKind.OTHER:
                whole = path.is_relative_to(history) and path.relative_to(history).as_posix() in _HISTORY
                self._aside.take(str(history.relative_to(self._home.path)) if whole else damage.place)
        if any(damage.place.startswith(_ANSWER) for damage in found):
            self._home.answers.drop(self._home.answers.damaged())
        months = {
            Path(damage.place).parent.name for damage in found if damage.place.startswith(f"lake/{MODEL_CALLS.name}/")
        }
        for month in sorted(months):
            self._home.ledger().restore(month)
        if any(damage.place.startswith(f"{MODELS}/") for damage in found):
            from rag_assets.models.embedding.embedders import ensure_exports

            ensure_exports(self._home.path / MODELS)

    def settle(self) -> list[str]:
        """After indexing: drop earlier versions that stay broken; what was dropped, in words."""
        names = self._stores.settle(self._aside)
        self.note()
        return names

    def note(self) -> None:
        """Note the files that are there now, so that later damage to them is noticed."""
        self._stores.note()
        checksums = self._stores.checksums
        for path in self._databases():
            if path.is_relative_to(self._home.path):
                checksums.renew([self._place(path)])
                checksums.problem(self._place(path))
        checksums.save()

    def _learned_damage(self) -> Iterator[Damage]:
        """What was learned and is in force, but is not whole."""
        from rag_assets.training import adoption

        current = self._home.snapshots.current()
        for key, name in LEARNED.items():
            for place in current.learned.get(name, ())[-1:] if current is not None else ():
                try:
                    adoption.whole(self._home.path, place)
                except StoreError as error:
                    remedy = f"`rag-assets train undo {key}` goes back to what was in force before"
                    yield Damage(place, str(error), remedy, DamageKind.LEARNED)

    def _place(self, path: Path) -> str:
        return path.relative_to(self._home.path).as_posix()

    def _sealed_damage(self) -> Iterator[Damage]:
        registry = registry_file(self._home.registered_sources)
        if problem := registry.problem():
            try:
                registry.read()
                yield Damage("sources.json", problem, "it is restored from its copy", DamageKind.SEALED)
            except StoreError:
                remedy = "its copy is damaged as well: name its sources again, `rag-assets index LOCATION`"
                yield Damage("sources.json", problem, remedy, DamageKind.SEALED)
        if problem := settings_file(self._home.settings_path).problem():
            yield Damage("settings.json", problem, "it is restored from its copy", DamageKind.SEALED)

    def _mend_sealed(self) -> None:
        registry = registry_file(self._home.registered_sources)
        if registry.problem():
            try:
                registry.write(registry.read() or {"sources": {}})
            except StoreError:
                for path in (registry.path, registry.copy):
                    self._aside.take(self._place(path))
        stored_file = settings_file(self._home.settings_path)
        if stored_file.problem() and (values := stored_file.read()) is not None:
            stored_file.write(values)

    def _databases(self) -> list[Path]:
        folder = dagster_folder(self._home)
        return [path for name in ("history", "schedules") for path in sorted((folder / name).rglob("*.db"))]

    def _state_damage(self, thorough: bool) -> Iterator[Damage]:
        """Damage to the state database, which is never read but by SQLite: closing its file would end its locks."""
        path = self._home.state_file
        if path is None or not path.exists():
            return
        is_checked = thorough or path.stat().st_size <= _CHECKED_BYTES
        if is_checked and (problem := database_problem(path, thorough=thorough)):
            yield Damage(self._place(path), problem, "it is set aside and begun anew with what can be read of it")
            return
        if thorough:
            for key in self._home.answers.damaged():
                remedy = "the answer counts as absent: it is asked for, and paid for, again when it is needed"
                yield Damage(f"{_ANSWER}{key[:16]}", "its text is not what was written", remedy)

    def _begin_state_anew(self, place: str) -> None:
        from rag_assets.models.accounts.salvage import salvage

        self._home.state.close()
        paths = [self._aside.take(f"{place}{suffix}") for suffix in ("", "-wal", "-shm")]
        if paths[0] is not None:
            saved_count = salvage(paths[0], self._home.state)
            _log.warning("%s: begun anew; saved of the damaged one in %s: %d rows", place, paths[0], saved_count)

    def _instance_damage(self, thorough: bool) -> Iterator[Damage]:
        folder = dagster_folder(self._home)
        if not folder.is_relative_to(self._home.path):  # an instance of others' is theirs to look after
            return
        checksums = self._stores.checksums
        for path in self._databases():
            place = self._place(path)
            if checksums.mark(place) and not thorough and checksums.problem(place) is None:
                continue
            if problem := database_problem(path, thorough=False):
                yield Damage(place, problem, "it is set aside, and the history of runs begins anew")
        configuration = folder / "dagster.yaml"
        if configuration.is_dir() or (configuration.exists() and not configuration.stat().st_size):
            cause = "a folder stands in its place" if configuration.is_dir() else "it is empty"
            yield Damage(self._place(configuration), cause, "the one that comes with rag-assets takes its place")

    def _model_damage(self) -> Iterator[Damage]:
        """Damage to exported models, which is found by itself where they are used."""
        from rag_assets.models.embedding.embedders import damaged_exports

        folder = self._home.path / MODELS
        for path in damaged_exports(folder):
            yield Damage(self._place(path), "its content is not what was written", "it is exported anew")


def _has_log(path: Path) -> bool:
    """Whether the log beside a SQLite database holds anything; it is empty where a connection only read."""
    log = path.with_name(f"{path.name}-wal")
    return log.exists() and log.stat().st_size > _LOG_HEADER_BYTES


def _checked(path: Path, check: str) -> str:
    """What a check of SQLite says of a database, also where nothing can be written beside it.

    Raises:
        sqlite3.Error: It cannot be read, or is none.
    """
    uri = path.absolute().as_uri()
    unchanging = f"{uri}?immutable=1"  # nothing is made beside it, and what a log holds is not seen
    try:
        return _result(uri if os.access(path.parent, os.W_OK) or _has_log(path) else unchanging, check)
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF not in _UNWRITABLE:
            raise
        # on a full disk the index of the log cannot grow: SQLite has it in memory where it may not write it
        return _result(f"{uri}?mode=ro&readonly_shm=1" if _has_log(path) else unchanging, check)


def _result(uri: str, check: str) -> str:
    with closing(sqlite3.connect(uri, uri=True)) as connection:
        (result,) = connection.execute(f"PRAGMA {check}(1)").fetchone()
    return str(result)


def database_problem(path: Path, *, thorough: bool = True) -> str | None:
    """What is wrong with a SQLite database; None where nothing is.

    Args:
        path: Its file.
        thorough: Whether indexes are compared with their tables as well.

    Raises:
        StoreError: It cannot be looked at now: it is locked, its permissions forbid it, or the disk fails.
    """
    if path.is_dir():
        return "a folder stands in its place"
    if not path.stat().st_size:
        return "it is empty"
    check = "integrity_check" if thorough else "quick_check"
    try:
        result = _checked(path, check)
    except UnicodeDecodeError:
        return "it is not a readable database"
    except sqlite3.Error as error:
        code: int | None = getattr(error, "sqlite_errorcode", None)  # none: its text is none
        if code is None or code & 0xFF in _DAMAGED:  # the lowest byte, below what tells kinds of one error apart
            return "it is not a readable database"
        problem = f"cannot be read now ({error}); look at its permissions and disk, and try again"
        raise StoreError(f"{path}: {problem}") from error
    return None if result == "ok" else "it is a damaged database"
