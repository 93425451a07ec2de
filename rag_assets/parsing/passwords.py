"""Passwords of encrypted files, and how it is noted which were tried on a file without giving them away."""

import hashlib
import os
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from rag_assets.store.files import write_new

_SALT_BYTES = 16
_DIGEST_BYTES = 4  # too few to tell a guess that is right from the many that only look so
_WORK = {"n": 2**14, "r": 8, "p": 1}  # some 50 ms a password, which a guess costs as well


@dataclass(frozen=True)
class Passwords:
    """Passwords to try.

    Attributes:
        values: Tried in order on encrypted files.
        salt_path: File of the salt of their digests, made with the first that is taken.
    """

    values: tuple[str, ...] = field(repr=False)
    salt_path: Path

    @cached_property
    def digests(self) -> frozenset[str]:
        """What is noted of them with a file that they were tried on."""
        return frozenset(
            hashlib.scrypt(each.encode(), salt=self._salt, dklen=_DIGEST_BYTES, **_WORK).hex() for each in self.values
        )

    @cached_property
    def _salt(self) -> bytes:
        if not self.salt_path.exists():
            with suppress(FileExistsError):
                write_new(self.salt_path, os.urandom(_SALT_BYTES))
        return self.salt_path.read_bytes()

    def has_others(self, tried: frozenset[str]) -> bool:
        """Whether there is one whose digest is not among those of passwords that were tried."""
        return bool(self.values) and (not tried or not self.digests <= tried)


NO_PASSWORDS = Passwords((), Path())
