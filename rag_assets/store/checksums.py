"""Size and digest of stored files, and when each was last found to agree with them.

Files of the store are written once and never changed, so that a file is read only to be hashed where its size, times or
place on the disk are not those under which it was found intact. What was found is kept in `<root>/verified.json`, which
may be lost at any time: everything is read once then.
"""

import hashlib
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from rag_assets.contracts.errors import StoreError
from rag_assets.store.files import sealed, unsealed, write_atomically

RECORD = "verified.json"
_DIGEST_BYTES = 16  # damage is found, not forgery
_Facts = tuple[int, int, int, int]


class Checksums:
    """Checksums of the files below one folder. For one thread.

    Args:
        root: The folder; files are named by their paths below it.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._facts: dict[str, _Facts] = {}
        self._marks: dict[str, str] = {}
        self._changed = False
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
        found = {}
        for path in paths:
            mark = self._marks.get(path, published.get(path))
            if problem := self.problem(path, mark):
                raise StoreError(f"{self.root / path}: {problem}; run `rag-assets index`")
            found[path] = self._marks[path]
        return found

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
        known = self._marks.get(path) or None
        mark = mark or known
        if mark is not None and facts[0] != int(mark.partition(":")[0]):
            return "it is empty" if not facts[0] else "it has another size than when it was written"
        if mark is not None and known == mark and self._facts[path] == facts and not thorough:
            return None
        if unread and known is None:
            return None
        try:
            found = mark_of(self.root / path)
        except OSError as error:
            return f"it cannot be read: {error.strerror}"
        if mark is not None and found != mark:
            return "its content is not what was written"
        self._note(path, found, facts)
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

    def save(self) -> None:
        """Write down what was found; nothing where nothing is new."""
        if self._changed:
            files = {path: [mark, *self._facts[path]] for path, mark in self._marks.items()}
            write_atomically(self.root / RECORD, sealed({"files": files}, indent=None))
            self._changed = False

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
    found = path.stat()
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino


def _content_facts(facts: _Facts) -> tuple[int, int, int]:
    return facts[0], facts[1], facts[3]
