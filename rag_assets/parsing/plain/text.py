"""Plain text, and the encodings of all formats that are text."""

import codecs
import re

from rag_assets.contracts.causes import PageKind
from rag_assets.contracts.content import Page, ParsedDocument
from rag_assets.contracts.formats import DocumentFormat
from rag_assets.parsing.flow import Sections
from rag_assets.parsing.plain.blocks import text_blocks

_SAMPLE_BYTES = 1 << 18
_JIS_NAMES = frozenset(
    ("iso-2022-jp", "iso2022-jp", "iso2022jp", "iso-2022-jp-ms", "csiso2022jp", "jis", "cp50220", "cp50221", "cp50222")
)
_CHARSETS = {
    **dict.fromkeys(("shift_jis", "shift-jis", "sjis", "x-sjis", "ms_kanji", "windows-31j", "cp943", "ms932"), "cp932"),
    **dict.fromkeys(("iso-8859-1", "latin1", "latin-1"), "cp1252"),
    "x-euc-jp": "euc_jp",
}
_READ_FOR_EACH_DAMAGE = 5  # characters beyond ASCII; fewer tell of another charset than the stated one
_LEGACY_ENCODINGS = ("cp932", "euc_jp", "iso2022_jp", "cp1252")
_JIS_ESCAPE = re.compile(rb"\x1b(\([BJI]|\$[@B]|\$\(D)")


def decode_text(data: bytes) -> str:
    """Decode the bytes of a text file.

    A byte order mark decides; else UTF-8 where it is valid; else UTF-16 where zero bytes tell it; else the one of
    CP932, EUC-JP, ISO-2022-JP and Windows-1252 that decodes without error and reads most plausibly.

    Returns:
        The text, without byte order mark, line ends as line feeds.
    """
    text = _decode_unicode(data)
    if text is None:
        text = _decode_jis(data) if data.isascii() else data.decode(_guess_legacy(data), errors="replace")
    return _line_ends(text)


def decode_stated(data: bytes, charset: str) -> str | None:
    """Decode by a charset that is stated beside the bytes.

    Args:
        data: The bytes.
        charset: Its name as stated, in the web or in a message.

    Returns:
        The text, line ends as line feeds; None where the charset is unknown, or where the bytes are not written in it.
    """
    name = charset.strip().strip("\"'").lower()
    if name in _JIS_NAMES:
        return _line_ends(_decode_jis(data)) if data.isascii() else None
    if b"\x1b$" in data and data.isascii():
        return None  # ISO-2022-JP under another name
    try:
        text = data.decode(_CHARSETS.get(name, name), "replace")
    except (LookupError, UnicodeError, ValueError):
        return None
    damage = text.count("\ufffd")
    read = sum(character > "\x7f" for character in text) - damage if damage else 0
    return None if damage * _READ_FOR_EACH_DAMAGE > read else _line_ends(text)


def _line_ends(text: str) -> str:
    return text.lstrip("\ufeff").replace("\r\n", "\n").replace("\r", "\n").removesuffix("\x1a")


def _decode_unicode(data: bytes) -> str | None:
    for mark, encoding in (
        (codecs.BOM_UTF8, "utf-8-sig"),
        (codecs.BOM_UTF32_LE, "utf-32"),
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
    ):
        if data.startswith(mark):
            return data.decode(encoding, errors="replace")
    if b"\x00" in data[:4096]:
        even, odd = data[:4096:2].count(0), data[1:4096:2].count(0)
        return data.decode("utf-16-le" if odd > even else "utf-16-be", errors="replace")
    if b"\x1b$" in data[:_SAMPLE_BYTES]:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        damage = data.decode("utf-8", errors="replace").count("\ufffd") if error.start > _SAMPLE_BYTES else len(data)
        return data.decode("utf-8", errors="replace") if damage < len(data) / 10_000 else None


def _decode_jis(data: bytes) -> str:
    """Decode ISO-2022-JP, with the characters that Windows adds to it, as in ① and ㈱, where there are any."""
    try:
        return data.decode("iso2022_jp")
    except UnicodeDecodeError:
        first, *parts = _JIS_ESCAPE.split(data)
    text = [first.decode("ascii", errors="replace")]
    for escape, part in zip(parts[::2], parts[1::2], strict=True):
        match escape:
            case b"(I":
                text.append(bytes(byte | 0x80 for byte in part).decode("cp932", errors="replace"))
            case b"$@" | b"$B" | b"$(D":
                text.append("\n".join(_decode_pairs(line, escape) for line in part.split(b"\n")))
            case _:
                text.append(part.decode("ascii", errors="replace"))
    return "".join(text)


def _decode_pairs(data: bytes, escape: bytes) -> str:
    """Decode characters of two bytes each: by way of EUC-JP those of JIS X 0212, by way of CP932 all others."""
    pairs = [(data[index], data[index + 1]) for index in range(0, len(data) - 1, 2)]
    if escape == b"$(D":
        return b"".join(bytes((0x8F, row | 0x80, cell | 0x80)) for row, cell in pairs).decode("euc_jp", "replace")
    moved = bytearray()
    for row, cell in pairs:
        moved.append(((row - 1) >> 1) + (0x71 if row < 0x5F else 0xB1) & 0xFF)
        moved.append(cell + ((0x20 if cell > 0x5F else 0x1F) if row & 1 else 0x7E) & 0xFF)
    return moved.decode("cp932", "replace")


def _guess_legacy(data: bytes) -> str:
    scores = {}
    for encoding in _LEGACY_ENCODINGS:
        decoder = codecs.getincrementaldecoder(encoding)()
        try:
            sample = decoder.decode(data[:_SAMPLE_BYTES], final=len(data) <= _SAMPLE_BYTES)
        except UnicodeDecodeError:
            continue
        scores[encoding] = _plausibility(sample, 0.5 if encoding == "euc_jp" else -0.6)
    return max(scores, key=lambda name: scores[name]) if scores else "cp932"


def _plausibility(text: str, half_width: float) -> float:
    """How much a decoded text looks like Japanese or Western prose; higher is better.

    Kana and ideographs count for it; symbols of Latin-1, control and private characters against it.

    Args:
        text: The text as decoded.
        half_width: What half-width katakana count: in CP932 they are what EUC-JP mostly becomes, in EUC-JP they take a
            lead byte of their own, which no other encoding has by chance.
    """
    score = 0.0
    for character in text:
        code = ord(character)
        if code < 0x80:
            continue
        if 0x3040 <= code <= 0x30FF or 0x3000 <= code <= 0x3002:
            score += 1.0
        elif 0x4E00 <= code <= 0x9FFF:
            score += 0.5
        elif 0xFF61 <= code <= 0xFF9F:
            score += half_width
        elif 0xC0 <= code <= 0x24F:
            score += 0.2
        elif 0x80 <= code <= 0x9F or 0xE000 <= code <= 0xF8FF:
            score -= 2.0
        else:
            score -= 0.1
    return score


def parse_text(data: bytes) -> ParsedDocument:
    """Parse plain text into headings, paragraphs and list items."""
    page = Page(1, PageKind.BODY, tuple(text_blocks(decode_text(data), Sections())))
    return ParsedDocument(DocumentFormat.TXT.value, None, (page,))
