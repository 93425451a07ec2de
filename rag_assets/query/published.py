"""The version that readers see, opened once for all who ask, and opened anew when another one is published.

What stays out: how a version is searched (`rag_assets.query.knowledge_base`) and read (`rag_assets.query.contents`).
"""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from rag_assets.contracts.errors import QueryError, RagAssetsError
from rag_assets.query.contents import Contents
from rag_assets.query.knowledge_base import KnowledgeBase
from rag_assets.store.lake import Lake
from rag_assets.store.snapshots import Snapshot, Snapshots

_log = logging.getLogger(__name__)


class NothingPublished(QueryError):  # noqa: N818 - what is the case
    """There is no version to read yet."""


@dataclass(frozen=True)
class OpenVersion:
    """A published version, ready to be asked. What it holds open is let go with the last reference to it.

    Attributes:
        snapshot: The version.
        base: For searching.
        contents: For reading.
    """

    snapshot: Snapshot
    base: KnowledgeBase
    contents: Contents


class Published:
    """Follows the published versions. Safe to use from several threads.

    Who holds a version goes on with it; who asks next gets the newest one. While one thread opens a new version, the
    others are given the one before.

    Args:
        lake: The stored tables.
        snapshots: The published versions.
        open_base: Opens a version for searching.
        check_seconds: Time between two looks at which version is published.
    """

    def __init__(
        self,
        lake: Lake,
        snapshots: Snapshots,
        open_base: Callable[[Snapshot], KnowledgeBase],
        check_seconds: float = 1.0,
    ) -> None:
        self.lake = lake
        self._snapshots = snapshots
        self._open_base = open_base
        self._check_seconds = check_seconds
        self._version: OpenVersion | None = None
        self._refused: tuple[Snapshot, RagAssetsError] | None = None
        self._looked = float("-inf")
        self._opening = threading.Lock()

    @property
    def problem(self) -> str | None:
        """Why the newest version cannot be opened, where it cannot; else None."""
        return str(self._refused[1]) if self._refused else None

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
            snapshot = self._snapshots.current()
            if snapshot is None:
                raise NothingPublished("nothing is indexed yet; run `rag-assets index FOLDER` first")
            if version is None or version.snapshot != snapshot:
                version = self._open(snapshot)
            self._version, self._refused = version, None
        except RagAssetsError as error:
            if version is None:
                raise NothingPublished(str(error)) from error
        self._looked = time.monotonic()
        return version

    def _open(self, snapshot: Snapshot) -> OpenVersion:
        if self._version is not None and self._refused is not None and self._refused[0] == snapshot:
            raise self._refused[1]
        try:
            opened = OpenVersion(snapshot, self._open_base(snapshot), Contents(self.lake, snapshot))
        except RagAssetsError as error:
            self._refused = snapshot, error
            _log.warning("version %d cannot be opened: %s", snapshot.number, type(error).__name__)
            raise
        _log.info("version %d is open", snapshot.number)
        return opened
