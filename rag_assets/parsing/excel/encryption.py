"""Encrypted Office documents: opened where Excel opens them without asking or a given password fits, else refused.

What stays out: guessing passwords.
"""

import logging
import struct
from collections.abc import Sequence
from io import BytesIO
from xml.parsers.expat import ExpatError

import olefile
from msoffcrypto import OfficeFile
from msoffcrypto.exceptions import DecryptionError, FileFormatError, InvalidKeyError
from msoffcrypto.exceptions import ParseError as CryptoParseError

from rag_assets.contracts.causes import FailureCause
from rag_assets.contracts.errors import ParseError

# It writes passwords and keys into its debugging messages.
logging.getLogger("msoffcrypto").setLevel(logging.WARNING)

_DEFAULT_PASSWORD = "VelvetSweatshop"  # noqa: S105 - published: Excel tries it before it asks for one
_DAMAGE = (OSError, ValueError, KeyError, IndexError, TypeError, AttributeError, struct.error, AssertionError,
           NotImplementedError, OverflowError, ExpatError)  # fmt: skip


def open_container(data: bytes, passwords: Sequence[str] = ()) -> bytes:
    """The workbook inside a compound file: decrypted where needed, the same bytes where nothing is encrypted.

    Args:
        data: The compound file.
        passwords: Tried in order where it is encrypted.

    Raises:
        ParseError: ENCRYPTED where a password is needed; MALFORMED where the container cannot be read;
            UNSUPPORTED_FORMAT where it holds no workbook.
    """
    try:
        with olefile.OleFileIO(BytesIO(data)) as container:
            encrypted_package = container.exists("EncryptionInfo")
            old_workbook = container.exists("Workbook") or container.exists("Book")
    except _DAMAGE as error:
        raise ParseError(FailureCause.MALFORMED, f"workbook: no readable compound file: {error}") from error
    if not encrypted_package and not old_workbook:
        raise ParseError(FailureCause.UNSUPPORTED_FORMAT, "compound file without a workbook")
    return _decrypt(data, "workbook", passwords, certain=encrypted_package)


def decrypt_package(data: bytes, name: str, passwords: Sequence[str]) -> bytes:
    """The Office Open XML document inside an encrypted package.

    Args:
        data: The compound file that holds the package.
        name: What the document is called in messages.
        passwords: Tried in order.

    Raises:
        ParseError: ENCRYPTED where none fits; the message holds no password.
    """
    return _decrypt(data, name, passwords, certain=True)


def _decrypt(data: bytes, name: str, passwords: Sequence[str], *, certain: bool) -> bytes:
    try:
        workbook = OfficeFile(BytesIO(data))
        if not workbook.is_encrypted():
            return data
    except (DecryptionError, FileFormatError, CryptoParseError, *_DAMAGE):
        if not certain:
            return data  # its reader will name what is wrong
        raise ParseError(FailureCause.ENCRYPTED, f"{name}: encrypted, its encryption cannot be read") from None
    for password in (_DEFAULT_PASSWORD, *passwords):
        output = BytesIO()
        try:
            workbook.load_key(password=password)
            workbook.decrypt(output)
        except (DecryptionError, InvalidKeyError, FileFormatError, CryptoParseError, *_DAMAGE):
            continue
        return output.getvalue()
    tried = "none of the passwords given fits" if passwords else "a password is needed (RAG_PASSWORDS)"
    raise ParseError(FailureCause.ENCRYPTED, f"{name}: encrypted: {tried}")
