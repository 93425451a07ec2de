"""What a file is, told from its bytes; the extension decides only between text formats and names damaged files."""

import io
import re
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import PurePosixPath

from rag_assets.contracts.formats import DocumentFormat, Pages, Reader


@dataclass(frozen=True, slots=True)
class Detection:
    """What a file is."""

    # short name for `documents.format`: a member of `DocumentFormat`, or the name of another format, as in `png`;
    # `unknown` where the bytes tell nothing
    name: str
    format: DocumentFormat | None  # the format, or None where there is no parser for it
    encrypted: bool = False  # whether the file is an Office document inside an encrypted container
    description: str = ""  # words for a message, as in `a PNG image`


_BUILT_IN = [document_format for document_format in DocumentFormat if Reader.BUILT_IN in document_format.reader]
_EXTENSIONS = {
    f".{extension}": document_format for document_format in _BUILT_IN for extension in document_format.extensions
}
_TEXT_FORMATS = {document_format for document_format in _BUILT_IN if document_format.is_text}

OLE_MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ZIP_MAGIC = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
_OTHER_MAGIC: tuple[tuple[bytes, str, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "png", "a PNG image"),
    (b"\xff\xd8\xff", "jpeg", "a JPEG image"),
    (b"GIF8", "gif", "a GIF image"),
    (b"BM", "bmp", "a BMP image"),
    (b"II*\x00", "tiff", "a TIFF image"),
    (b"MM\x00*", "tiff", "a TIFF image"),
    (b"\xd7\xcd\xc6\x9a", "wmf", "a WMF image"),
    (b"MZ", "exe", "a Windows program"),
    (b"\x7fELF", "elf", "a Linux program"),
    (b"\xca\xfe\xba\xbe", "class", "a Java class or a macOS program"),
    (b"\xcf\xfa\xed\xfe", "macho", "a macOS program"),
    (b"\x1f\x8b", "gz", "a gzip archive"),
    (b"BZh", "bz2", "a bzip2 archive"),
    (b"\xfd7zXZ\x00", "xz", "an xz archive"),
    (b"7z\xbc\xaf\x27\x1c", "7z", "a 7-Zip archive"),
    (b"Rar!\x1a\x07", "rar", "a RAR archive"),
    (b"SQLite format 3\x00", "sqlite", "an SQLite database"),
    (b"PAR1", "parquet", "a Parquet file"),
    (b"OggS", "ogg", "an Ogg audio or video file"),
    (b"ID3", "mp3", "an MP3 audio file"),
    (b"\x00\x00\x01\x00", "ico", "an icon"),
    (b"8BPS", "psd", "a Photoshop image"),
    (b"{\\rtf", "rtf", "a Rich Text document"),
    (b"%!PS", "ps", "a PostScript document"),
)
_PRINTABLE_MAGIC = {b"BM", b"MZ", b"BZh", b"PAR1", b"ID3", b"GIF8", b"OggS", b"8BPS"}

_CONTENT_TYPES: tuple[tuple[bytes, DocumentFormat], ...] = (
    (b"ms-excel.sheet.binary.macroEnabled.main", DocumentFormat.XLSB),
    (b"ms-excel.sheet.macroEnabled.main+xml", DocumentFormat.XLSM),
    (b"ms-excel.template.macroEnabled.main+xml", DocumentFormat.XLSM),
    (b"spreadsheetml.sheet.main+xml", DocumentFormat.XLSX),
    (b"spreadsheetml.template.main+xml", DocumentFormat.XLSX),
    (b"wordprocessingml.document.main+xml", DocumentFormat.DOCX),
    (b"wordprocessingml.template.main+xml", DocumentFormat.DOCX),
    (b"ms-word.document.macroEnabled.main+xml", DocumentFormat.DOCX),
    (b"ms-word.template.macroEnabledTemplate.main+xml", DocumentFormat.DOCX),
    (b"presentationml.presentation.main+xml", DocumentFormat.PPTX),
    (b"presentationml.slideshow.main+xml", DocumentFormat.PPTX),
    (b"presentationml.template.main+xml", DocumentFormat.PPTX),
    (b"ms-powerpoint.presentation.macroEnabled.main+xml", DocumentFormat.PPTX),
    (b"ms-powerpoint.slideshow.macroEnabled.main+xml", DocumentFormat.PPTX),
)
_ZIP_PARTS: tuple[tuple[bytes, DocumentFormat], ...] = (
    (b"xl/workbook.bin", DocumentFormat.XLSB),
    (b"xl/", DocumentFormat.XLSX),
    (b"word/", DocumentFormat.DOCX),
    (b"ppt/", DocumentFormat.PPTX),
)
_ZIP_MIME_TYPES: tuple[tuple[bytes, str, str], ...] = (
    (b"opendocument.text", "odt", "an OpenDocument text"),
    (b"opendocument.presentation", "odp", "an OpenDocument presentation"),
    (b"epub+zip", "epub", "an EPUB book"),
)
_OLE_STREAMS: tuple[tuple[str, str], ...] = (
    ("EncryptedPackage", "encrypted"),
    ("Workbook", "xls"),
    ("Book", "xls"),
    ("WordDocument", "doc"),
    ("PowerPoint Document", "ppt"),
    ("VisioDocument", "vsd"),
    ("__properties_version1.0", "msg"),
)
_OLE_NAMES = {
    "doc": "a legacy Word document (.doc)",
    "ppt": "a legacy PowerPoint presentation (.ppt)",
    "vsd": "a legacy Visio drawing (.vsd)",
}
_HTML_START = re.compile(
    rb"(?:<\?xml[^>]*+>|<!--.*?-->|\s)*+<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE | re.DOTALL
)
_XML_START = re.compile(rb"\s*<\?xml\b")
_CONTENT_TYPES_BYTES = 1 << 20
_OVERRIDE = re.compile(rb"<(?:\w+:)?Override\b[^>]*>")
_MAIL_HEADER = re.compile(rb"([!-9;-~]+):|[ \t]")
_MAIL_ROUTES = {b"to", b"cc", b"bcc", b"received", b"return-path", b"delivered-to"}
_MAIL_FACTS = {b"date", b"subject", b"message-id", b"mime-version"}


def detect_format(data: bytes, file_name: str) -> Detection:
    """Tell the format of a file.

    Args:
        data: All bytes of the file.
        file_name: Its name; the extension decides between text formats, and what a damaged file was meant to be.

    Returns:
        What the file is. Never raises for any bytes.
    """
    extension = PurePosixPath(file_name.replace("\\", "/")).suffix.lower()
    named_format = _EXTENSIONS.get(extension)
    if not data:
        return _supported(named_format or DocumentFormat.TXT)
    if data.startswith(OLE_MAGIC):
        return _detect_ole(data, named_format)
    if data.startswith(_ZIP_MAGIC):
        return _detect_zip(data, named_format)
    if b"%PDF-" in data[:1024]:
        return _supported(DocumentFormat.PDF)
    textual = _looks_textual(data)
    if detection := _detect_magic(data, textual=textual):
        return detection
    if textual:
        return _detect_text(data, named_format)
    return _supported(named_format) if named_format else _unsupported("unknown", "of no known format")


def _looks_textual(data: bytes) -> bool:
    """Whether the first bytes can be text in some encoding: no control bytes, or UTF-16."""
    head = data[:4096]
    if head.startswith((b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf")):
        return True
    if b"\x00" in head:
        encoding = "utf-16-be" if head[::2].count(0) > head[1::2].count(0) else "utf-16-le"
        text = head.decode(encoding, errors="replace")
        return sum(not (character.isprintable() or character.isspace()) for character in text) <= len(text) * 0.01
    controls = sum(head.count(byte) for byte in range(32) if byte not in b"\t\n\r\x0b\x0c\x1b\x1a")
    return controls <= len(head) * 0.01


def _supported(document_format: DocumentFormat) -> Detection:
    return Detection(document_format.value, document_format)


def _unsupported(name: str, description: str) -> Detection:
    return Detection(name, None, description=description)


def _detect_magic(data: bytes, *, textual: bool) -> Detection | None:
    for magic, name, description in _OTHER_MAGIC:
        if data.startswith(magic) and not (textual and magic in _PRINTABLE_MAGIC):
            return _unsupported(name, description)
    if data[4:8] == b"ftyp":
        return _unsupported("mp4", "an MP4 or HEIF media file")
    if data[:4] == b"RIFF" and data[8:12] in (b"WEBP", b"WAVE", b"AVI "):
        return _unsupported(data[8:12].decode().strip().lower(), "a RIFF media file")
    return None


def _detect_text(data: bytes, named_format: DocumentFormat | None) -> Detection:
    head = data[:8192].replace(b"\x00", b"").lstrip(b"\xef\xbb\xbf\xff\xfe")
    if named_format in _TEXT_FORMATS - {DocumentFormat.TXT}:
        return _supported(named_format)
    if _HTML_START.match(head):
        return _supported(DocumentFormat.HTML)
    if named_format is DocumentFormat.EML or (named_format is None and _is_mail(head)):
        return _supported(DocumentFormat.EML)
    if head[:256].lower().startswith(b"mime-version:") or b"content-type: multipart/related" in head[:1024].lower():
        return _unsupported("mhtml", "a web archive (MHTML)")
    if _XML_START.match(head) and named_format is not DocumentFormat.TXT:
        return _unsupported("xml", "an Excel 2003 XML workbook" if b"Excel.Sheet" in head else "an XML file")
    if (
        named_format is not None
        and named_format.pages is Pages.SHEETS
        and re.search(rb"[\t,;]", head.strip().partition(b"\n")[0])
    ):
        # Many programs write delimited text under the name of a workbook.
        return _supported(DocumentFormat.TSV if head.count(b"\t") > head.count(b",") else DocumentFormat.CSV)
    if named_format is not None and named_format not in _TEXT_FORMATS:
        return _supported(named_format)
    return _supported(DocumentFormat.TXT)


def _is_mail(head: bytes) -> bool:
    """Whether a text begins with the headers of a message: who sent it to whom or by which way, and facts about it.

    Saved web pages (MHTML) have such headers as well, but were sent to nobody.
    """
    names: set[bytes] = set()
    for line in head.splitlines():
        if not line.strip():
            break
        match = _MAIL_HEADER.match(line)
        if match is None:
            return False
        names.add((match[1] or b"").lower())
    return b"from" in names and bool(names & _MAIL_ROUTES) and bool(names & _MAIL_FACTS)


def _detect_zip(data: bytes, named_format: DocumentFormat | None) -> Detection:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = b"\n".join(info.filename.replace("\\", "/").encode() for info in archive.infolist())
            types = _read_entry(archive, "[Content_Types].xml")
            mime_type = _read_entry(archive, "mimetype")
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError, EOFError):
        names, types, mime_type = data, b"", b""
    parts = b"".join(_OVERRIDE.findall(types))  # a type by extension may be of no part at all
    for content_types in (parts.lower(), types.lower()):
        for marker, document_format in _CONTENT_TYPES:
            if marker.lower() in content_types:
                return _supported(document_format)
    if b"opendocument.spreadsheet" in mime_type:
        return _supported(DocumentFormat.ODS)
    for marker, name, description in _ZIP_MIME_TYPES:
        if marker in mime_type:
            return _unsupported(name, description)
    for marker, document_format in _ZIP_PARTS:
        if marker in names:
            return _supported(document_format)
    if named_format and named_format not in _TEXT_FORMATS and names is data:
        return _supported(named_format)
    return _unsupported("zip", "a zip archive that is no Office document")


def _read_entry(archive: zipfile.ZipFile, name: str) -> bytes:
    """The first bytes of an entry; nothing where it is missing or damaged."""
    try:
        with archive.open(name) as entry:
            return entry.read(_CONTENT_TYPES_BYTES)
    except (KeyError, RuntimeError, zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError):
        return b""


def _detect_ole(data: bytes, named_format: DocumentFormat | None) -> Detection:
    kinds = [kind for name, kind in _OLE_STREAMS if _has_stream(data, name)]
    if "msg" in kinds and _is_message(data, named_format, kinds):
        return _supported(DocumentFormat.MSG)
    if "encrypted" in kinds:
        document_format = named_format if named_format and named_format not in _TEXT_FORMATS else DocumentFormat.XLSX
        return Detection(document_format.value, document_format, encrypted=True)
    ole_kind = next((kind for kind in kinds if kind in _OLE_NAMES), None)
    if ole_kind is not None and not (named_format is DocumentFormat.XLS and "xls" in kinds):
        return _unsupported(ole_kind, _OLE_NAMES[ole_kind])
    if named_format is DocumentFormat.XLS or "xls" in kinds:
        return _supported(DocumentFormat.XLS)
    return _unsupported("ole", "an OLE container of no known kind")


def _is_message(data: bytes, named_format: DocumentFormat | None, kinds: list[str]) -> bool:
    """Whether a container is a message, rather than a document in which a message is embedded, or the reverse."""
    import olefile

    try:
        with olefile.OleFileIO(io.BytesIO(data)) as container:
            return bool(container.exists("__properties_version1.0"))
    except Exception:  # noqa: BLE001 - the container is damaged, in any of many ways: its reader will say how
        return named_format is DocumentFormat.MSG or kinds == ["msg"]


def _has_stream(data: bytes, name: str) -> bool:
    """Whether a directory entry of this name stands at a place where directory entries can stand.

    The directory is searched for rather than walked: its chains are what damaged files have wrong.
    """
    needle = name.encode("utf-16-le") + b"\x00\x00"
    length = len(needle).to_bytes(2, "little")
    position = data.find(needle)
    while position != -1:
        if position % 128 == 0 and data[position + 64 : position + 66] == length:
            return True
        position = data.find(needle, position + 1)
    return False
