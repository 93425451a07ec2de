"""Small files that nothing else could give back: JSON with its own digest, written twice.

`<name>` and `<name>.copy` hold the same. A file that does not agree with its digest counts as damaged and is read from
its copy. What stays out: large files, whose digests stand elsewhere (`rag_assets.store.checksums`).
"""

import hashlib
import json
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rag_assets.contracts.errors import StoreError
from rag_assets.store.files import write_atomically

_DIGEST = "sha256"
_log = logging.getLogger(__name__)


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
    """One such file.

    Args:
        path: Where it is.
        earlier: Reads the form of earlier releases, which had neither digest nor copy; raises `ValueError` where the
            content is not of that form.
    """

    def __init__(self, path: Path, earlier: Callable[[bytes], dict[str, Any]]) -> None:
        self.path = path
        self.copy = path.with_name(f"{path.name}.copy")
        self._earlier = earlier

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
        for read in (unsealed, self._earlier):
            try:
                return read(content), None
            except (ValueError, TypeError):
                continue
        return None, "it is empty" if not content else "it is damaged"


def _digest(value: Mapping[str, Any]) -> str:
    return hashlib.sha256(
        json.dumps(value, ensure_ascii=False, sort_keys=True).encode("utf-8", "surrogatepass")
    ).hexdigest()
