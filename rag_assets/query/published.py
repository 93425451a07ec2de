"""The version that readers see, opened once for all who ask, and opened anew when another one is published."""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from rag_assets.contracts.errors import QueryError, RagAssetsError
from rag_assets.query.contents.contents import Contents, ReadCalls
from rag_assets.query.knowledge_base import KnowledgeBase
from rag_assets.store.damage import intact_version
from rag_assets.store.lake import Lake
from rag_assets.store.snapshots import Snapshot, Snapshots

_log = logging.getLogger(__name__)


class NothingPublished(QueryError):  # noqa: N818 - what is the case
    """There is no version to read yet."""


@dataclass(frozen=True)
class OpenVersion:
    """A published version, ready to be asked. What it holds open is let go with the last reference to it."""

    snapshot: Snapshot  # the version
    base: KnowledgeBase  # for searching
    contents: Contents  # for reading


class Published:
    """Follows the published versions. Safe to use from several threads.

    Who holds a version goes on with it; who asks next gets the newest one. While one thread opens a new version, the
    others are given the one before.

    Args:
        lake: The stored tables.
        snapshots: The published versions.
        open_base: Opens a version for searching.
        check_seconds: Time between two looks at which version is published.
        read_calls: Reads columns of all calls of language models, see `Contents`; None for those of the lake.

    Attributes:
        problem: Why the newest version is not what is open, where it is not; else None. May name files of this machine.
    """

    def __init__(
        self,
        lake: Lake,
        snapshots: Snapshots,
        open_base: Callable[[Snapshot], KnowledgeBase],
        check_seconds: float = 1.0,
        read_calls: ReadCalls | None = None,
    ) -> None:
        self.lake = lake
        self._snapshots = snapshots
        self._open_base = open_base
        self._check_seconds = check_seconds
        self._read_calls = read_calls
        self._version: OpenVersion | None = None
        self._wanted: Snapshot | None = None  # the version that was published when `_version` was opened
        self._refused: tuple[Snapshot, RagAssetsError] | None = None
        self.problem: str | None = None
        self._looked = float("-inf")
        self._suspected = False
        self._opening = threading.Lock()

    def suspect(self) -> None:
        """Look at the files of the version before the next one asks: something in it could not be read."""
        self._suspected, self._looked = True, float("-inf")

    def current(self) -> OpenVersion:
        """The version to ask now.

        Raises:
            NothingPublished: There is none yet, or the only one cannot be opened.
        """
        version = self._version
        if version is not None and time.monotonic() - self._looked < self._check_seconds:
            return version
        if not self._opening.acquire(blocking=version is None):
            assert version is not None
            return version
        try:
            return self._newest()
        finally:
            self._opening.release()

    def _newest(self) -> OpenVersion:
        version = self._version
        if version is not None and time.monotonic() - self._looked < self._check_seconds:
            return version
        try:
            current_snapshot = self._snapshots.current()
            if current_snapshot is None:
                loss = self._snapshots.lost()
                raise NothingPublished(loss or "nothing is indexed yet; run `rag-assets index FOLDER` first")
            unread = self._unread(current_snapshot)
            if version is None or current_snapshot != self._wanted or self._suspected:
                snapshot, damage = intact_version(self._snapshots)
                if version is None or version.snapshot != snapshot:
                    version = self._open(snapshot or current_snapshot)
                self._version, self._wanted, self._refused, self._suspected = version, current_snapshot, None, False
                self._note(damage or unread)
            elif unread:
                self._note(unread)
        except RagAssetsError as error:
            if str(error) != self.problem:
                _log.warning("the published version cannot be opened: %s", error)
            self.problem = str(error)
            if version is None:
                raise NothingPublished(str(error)) from error
        self._looked = time.monotonic()
        return version

    def _unread(self, current: Snapshot) -> str | None:
        """Why readers see another version than they should; None where they do not."""
        pointer = self._snapshots.pointer()
        if pointer is None or pointer.number == current.number:
            return None
        return f"{self._snapshots.path(pointer.number)}: damaged manifest; snapshot {current.number} is read instead"

    def _note(self, problem: str | None) -> None:
        if problem and problem != self.problem:
            _log.warning("%s", problem)
        self.problem = problem

    def _open(self, snapshot: Snapshot) -> OpenVersion:
        if self._version is not None and self._refused is not None and self._refused[0] == snapshot:
            raise self._refused[1]
        try:
            version = OpenVersion(snapshot, self._open_base(snapshot), Contents(self.lake, snapshot, self._read_calls))
        except RagAssetsError as error:
            self._refused = snapshot, error
            raise
        _log.info("version %d is open", snapshot.number)
        return version
