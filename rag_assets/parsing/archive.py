"""The containers of Office documents.

The zip container of an Office Open XML file: size checks before expansion, part names, hardened XML parsing; and ways
through the elements of its parts: alternatives, content controls.

The compound file of an encrypted document or an old workbook: opened where Excel opens it without asking or a given
password fits, else refused. What stays out: guessing passwords.
"""

import logging
import posixpath
import struct
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import IO, Any
from urllib.parse import unquote
from xml.parsers.expat import ExpatError

from lxml import etree

from rag_assets.contracts.causes import FailureCause
from rag_assets.contracts.errors import ParseError

_RATIO_CHECKED_FROM_BYTES = 64 << 20
_MAXIMUM_RATIO = 400
_PROLOGUE_BYTES = 4096
_PROPERTIES = "docProps/core.xml"
_HARDENED: dict[str, Any] = {
    "resolve_entities": False,
    "no_network": True,
    "load_dtd": False,
    "huge_tree": False,
    "remove_comments": True,
}
_DAMAGE = (zipfile.BadZipFile, zlib.error, NotImplementedError, EOFError, RuntimeError, OSError, ValueError)
_COMPOUND_DAMAGE = (OSError, ValueError, KeyError, IndexError, TypeError, AttributeError, struct.error, AssertionError,
                    NotImplementedError, OverflowError, ExpatError)  # fmt: skip
_DEFAULT_PASSWORD = "VelvetSweatshop"  # noqa: S105 - published: Excel tries it before it asks for one

# It writes passwords and keys into its debugging messages.
logging.getLogger("msoffcrypto").setLevel(logging.WARNING)
TRANSPARENT = {"sdt", "sdtContent", "ins", "moveTo", "smartTag", "customXml", "hyperlink", "fldSimple", "dir", "bdo"}


@dataclass(frozen=True, slots=True)
class Relation:
    """A relationship of a part to another part of the archive."""

    kind: str  # last segment of the relationship type, as in `worksheet` or `drawing`
    target: str  # normalised part name of the target


class Archive:
    """A checked zip archive whose parts are found whatever the case and slashes of their names.

    Args:
        data: The bytes of the file.
        maximum_entries: Entries of the archive.
        maximum_bytes: Expanded size of all entries in bytes.

    Raises:
        ParseError: MALFORMED where the bytes are no readable archive; TOO_LARGE where it is over a limit;
            ENCRYPTED where its entries are.
    """

    def __init__(self, data: bytes, maximum_entries: int, maximum_bytes: int) -> None:
        try:
            self._zip = zipfile.ZipFile(BytesIO(data))
        except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError) as error:
            raise ParseError(FailureCause.MALFORMED, f"no readable zip archive: {error}") from error
        entries = self._zip.infolist()
        if len(entries) > maximum_entries:
            raise ParseError(FailureCause.TOO_LARGE, f"{len(entries)} archive entries, limit {maximum_entries}")
        size = sum(entry.file_size for entry in entries)
        if size > maximum_bytes:
            raise ParseError(FailureCause.TOO_LARGE, f"{size} bytes expanded, limit {maximum_bytes}")
        if size > _RATIO_CHECKED_FROM_BYTES and size > _MAXIMUM_RATIO * max(len(data), 1):
            raise ParseError(FailureCause.TOO_LARGE, f"{len(data)} bytes expand to {size} bytes")
        if any(entry.flag_bits & 1 for entry in entries):
            raise ParseError(FailureCause.ENCRYPTED, "the archive is encrypted: its entries cannot be read")
        self._entries = {_key(entry.filename): entry for entry in entries if not entry.is_dir()}

    def _entry(self, part: str) -> zipfile.ZipInfo:
        entry = self._entries.get(_key(part))
        if entry is None:
            raise ParseError(FailureCause.MALFORMED, f"part {part} is missing")
        return entry

    def has(self, part: str) -> bool:
        """Whether the archive holds a part."""
        return _key(part) in self._entries

    def read(self, part: str) -> bytes:
        """The bytes of a part.

        Raises:
            ParseError: MALFORMED where the part is missing or damaged.
        """
        try:
            return self._zip.read(self._entry(part))
        except _DAMAGE as error:
            raise ParseError(FailureCause.MALFORMED, f"part {part} is damaged: {error}") from error

    def tree(self, part: str) -> etree._Element:
        """Root element of an XML part.

        Raises:
            ParseError: MALFORMED where the part is missing, damaged, no XML, or carries a document type.
        """
        data = self.read(part)
        _refuse_document_type(part, data)
        try:
            root = etree.fromstring(data, etree.XMLParser(**_HARDENED))
        except (etree.XMLSyntaxError, ValueError) as error:
            raise ParseError(FailureCause.MALFORMED, f"part {part}: {error}") from error
        _refuse_stated_type(part, root)
        return root

    def main_part(self, usual: str) -> str:
        """Name of the part that the archive's root names as its document, else the usual one."""
        targets = (relation.target for relation in self.relations("").values() if relation.kind == "officeDocument")
        return next((part for part in targets if self.has(part)), usual)

    def stated_title(self) -> str:
        """The title in the core properties; empty where there is none. A file whose properties are damaged is whole."""
        try:
            return (self.tree(_PROPERTIES).findtext("{*}title") or "") if self.has(_PROPERTIES) else ""
        except ParseError:
            return ""

    def elements(self, part: str, names: tuple[str, ...]) -> Iterator[etree._Element]:
        """Elements with certain local names, each complete, in document order; each is emptied after use.

        Raises:
            ParseError: MALFORMED where the part is missing, damaged, no XML, or carries a document type.
        """
        entry = self._entry(part)
        try:
            with self._zip.open(entry) as stream:
                _refuse_document_type(part, stream.read(_PROLOGUE_BYTES))
            with self._zip.open(entry) as stream:
                yield from _stream(part, stream, names)
        except etree.XMLSyntaxError as error:
            raise ParseError(FailureCause.MALFORMED, f"part {part}: {error}") from error
        except _DAMAGE as error:
            raise ParseError(FailureCause.MALFORMED, f"part {part} is damaged: {error}") from error

    def relations(self, part: str) -> dict[str, Relation]:
        """Relationships of a part by their ids; external ones are left out."""
        relations = {}
        for element in self._relation_elements(part):
            target = unquote(element.get("Target", "").replace("\\", "/"))
            if target and element.get("TargetMode") != "External":
                kind = element.get("Type", "").rsplit("/", 1)[-1]
                path = target.lstrip("/") if target.startswith("/") else posixpath.join(posixpath.dirname(part), target)
                relations[element.get("Id", "")] = Relation(kind, posixpath.normpath(path))
        return relations

    def external_targets(self, part: str) -> dict[str, str]:
        """What a part refers to outside the archive, by the ids of the relationships; nothing of it is ever opened."""
        return {
            element.get("Id", ""): element.get("Target", "")
            for element in self._relation_elements(part)
            if element.get("TargetMode") == "External"
        }

    def _relation_elements(self, part: str) -> list[etree._Element]:
        folder, name = posixpath.split(part)
        rels = posixpath.join(folder, "_rels", f"{name}.rels")
        return [element for element in self.tree(rels) if isinstance(element.tag, str)] if self.has(rels) else []


def _stream(part: str, stream: IO[bytes], names: tuple[str, ...]) -> Iterator[etree._Element]:
    tags = tuple(f"{{*}}{name}" for name in names)
    events = etree.iterparse(stream, events=("end",), tag=tags, **_HARDENED)
    for place, (_, element) in enumerate(events):
        if place == 0:
            _refuse_stated_type(part, element)
        yield element
        element.clear()
        parent = element.getparent()
        while parent is not None and element.getprevious() is not None:
            del parent[0]


def local_name(element: etree._Element) -> str:
    """Name of an element without its namespace; empty for comments and instructions."""
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def _key(part: str) -> str:
    return part.replace("\\", "/").lstrip("/").lower()


def _refuse_document_type(part: str, data: bytes) -> None:
    """Refuse a document type at the beginning of a part, before a parser reads it."""
    head = data[:_PROLOGUE_BYTES].replace(b"\x00", b"")  # of UTF-16 the plain letters are left
    if b"<!DOCTYPE" in head or b"<!ENTITY" in head:
        raise ParseError(FailureCause.MALFORMED, f"part {part} carries a document type declaration")


def _refuse_stated_type(part: str, element: etree._Element) -> None:
    """Refuse a document type wherever it stood: what its entities stand for would be missing."""
    if element.getroottree().docinfo.internalDTD is not None:
        raise ParseError(FailureCause.MALFORMED, f"part {part} carries a document type declaration")


def alternative(element: etree._Element) -> etree._Element:
    """What to read of `mc:AlternateContent`: the first choice, else the fallback; never both, as they say the same.

    Returns:
        The part to read; the element itself where it holds neither.
    """
    for name in ("{*}Choice", "{*}Fallback"):
        if (choice := element.find(name)) is not None:
            return choice
    return element


def paragraphs(element: etree._Element) -> Iterator[etree._Element]:
    """Paragraphs at any depth, without those that only repeat others for other programs."""
    for paragraph in element.iter("{*}p"):
        choices = paragraph.iterancestors("{*}Choice", "{*}Fallback")
        if all((parent := choice.getparent()) is None or alternative(parent) is choice for choice in choices):
            yield paragraph


def descend(element: etree._Element, *names: str) -> Iterator[etree._Element]:
    """Children of some names, those inside content controls and the like included."""
    for child in element:
        name = local_name(child)
        if name in names:
            yield child
        elif name == "AlternateContent":
            yield from descend(alternative(child), *names)
        elif name in TRANSPARENT:
            yield from descend(child, *names)


def open_container(data: bytes, passwords: Sequence[str]) -> bytes:
    """The workbook inside a compound file: decrypted where needed, the same bytes where nothing is encrypted.

    Args:
        data: The compound file.
        passwords: Tried in order where it is encrypted.

    Raises:
        ParseError: ENCRYPTED where a password is needed; MALFORMED where the container cannot be read;
            UNSUPPORTED_FORMAT where it holds no workbook.
    """
    import olefile

    try:
        with olefile.OleFileIO(BytesIO(data)) as container:
            encrypted_package = container.exists("EncryptionInfo")
            old_workbook = container.exists("Workbook") or container.exists("Book")
    except _COMPOUND_DAMAGE as error:
        raise ParseError(FailureCause.MALFORMED, f"workbook: no readable compound file: {error}") from error
    if not encrypted_package and not old_workbook:
        raise ParseError(FailureCause.UNSUPPORTED_FORMAT, "compound file without a workbook")
    return decrypt_package(data, "workbook", passwords, certain=encrypted_package)


def decrypt_package(data: bytes, name: str, passwords: Sequence[str], *, certain: bool = True) -> bytes:
    """The Office document inside an encrypted container.

    Args:
        data: The compound file that holds it.
        name: What the document is called in messages.
        passwords: Tried in order.
        certain: Whether it is known to be encrypted; else a file that cannot be told to be so stays as it is.

    Raises:
        ParseError: ENCRYPTED where none fits; the message holds no password.
    """
    from msoffcrypto import OfficeFile
    from msoffcrypto.exceptions import DecryptionError, FileFormatError, InvalidKeyError
    from msoffcrypto.exceptions import ParseError as CryptoParseError

    try:
        workbook = OfficeFile(BytesIO(data))
        if not workbook.is_encrypted():
            return data
    except (DecryptionError, FileFormatError, CryptoParseError, *_COMPOUND_DAMAGE):
        if not certain:
            return data  # its reader will name what is wrong
        raise ParseError(FailureCause.ENCRYPTED, f"the {name} is encrypted in a way that cannot be read") from None
    for password in (_DEFAULT_PASSWORD, *passwords):
        output = BytesIO()
        try:
            workbook.load_key(password=password)
            workbook.decrypt(output)
        except (DecryptionError, InvalidKeyError, FileFormatError, CryptoParseError, *_COMPOUND_DAMAGE):
            continue
        return output.getvalue()
    reason = "none of the passwords given fits" if passwords else "a password is needed (RAG_PASSWORDS)"
    raise ParseError(FailureCause.ENCRYPTED, f"the {name} is encrypted: {reason}")
