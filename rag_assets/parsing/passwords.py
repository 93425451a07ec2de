"""Passwords of encrypted files, and how it is noted which were tried on a file without giving them away."""

import hmac
import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from rag_assets.store.files import write_new

_KEY_BYTES = 32
_NOTE_CHARS = 16


@dataclass(frozen=True)
class Passwords:
    """Passwords to try."""

    values: tuple[str, ...] = field(repr=False)  # tried in order on encrypted files
    # file of the key of their digests, which stands in no table: who has only tables cannot test a guess
    key_path: Path

    def notes(self) -> frozenset[str]:
        """What is noted of them with a file that they were tried on; makes the key where there is none."""
        if not self.values:
            return frozenset()
        if not self._key():
            self.key_path.unlink(missing_ok=True)  # was not written to its end
            with suppress(FileExistsError):
                write_new(self.key_path, os.urandom(_KEY_BYTES), mode=0o600)
        return self._digests(self._key())

    def has_others(self, tried: frozenset[str]) -> bool:
        """Whether there is one that is not among those that were tried; all are others where the key is lost."""
        if not self.values:
            return False
        key = self._key()
        return not key or not self._digests(key) <= tried

    def _digests(self, key: bytes) -> frozenset[str]:
        return frozenset(hmac.digest(key, password.encode(), "sha256").hex()[:_NOTE_CHARS] for password in self.values)

    def _key(self) -> bytes:
        """The key; empty where there is no whole one."""
        try:
            key = self.key_path.read_bytes()
        except FileNotFoundError:
            return b""
        return key if len(key) == _KEY_BYTES else b""


NO_PASSWORDS = Passwords((), Path())
