"""Encrypted workbooks: opened where Excel opens them without asking, refused otherwise.

What stays out: guessing passwords.
"""

import struct
from io import BytesIO

import olefile
from msoffcrypto import OfficeFile
from msoffcrypto.exceptions import DecryptionError, FileFormatError, InvalidKeyError
from msoffcrypto.exceptions import ParseError as CryptoParseError

from rag_assets.contracts.causes import FailureCause
from rag_assets.contracts.errors import ParseError

_DEFAULT_PASSWORD = "VelvetSweatshop"  # noqa: S105 - published: Excel tries it before it asks for one
_DAMAGE = (OSError, ValueError, KeyError, IndexError, TypeError, AttributeError, struct.error, AssertionError,
           NotImplementedError, OverflowError)  # fmt: skip


def open_container(data: bytes) -> bytes:
    """The workbook inside a compound file: decrypted where needed, the same bytes where nothing is encrypted.

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
    return _decrypt(data, certain=encrypted_package)


def _decrypt(data: bytes, *, certain: bool) -> bytes:
    try:
        workbook = OfficeFile(BytesIO(data))
        if not workbook.is_encrypted():
            return data
    except (FileFormatError, CryptoParseError, *_DAMAGE):
        if not certain:
            return data  # its reader will name what is wrong
        raise ParseError(FailureCause.ENCRYPTED, "workbook: encrypted, its encryption cannot be read") from None
    output = BytesIO()
    try:
        workbook.load_key(password=_DEFAULT_PASSWORD)
        workbook.decrypt(output)
    except (DecryptionError, InvalidKeyError, FileFormatError, CryptoParseError, *_DAMAGE) as error:
        raise ParseError(FailureCause.ENCRYPTED, "workbook: a password is needed") from error
    return output.getvalue()
