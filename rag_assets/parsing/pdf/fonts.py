"""A stand-in for fonts of Chinese, Japanese and Korean that neither a PDF file nor the machine has.

pdfium takes the extent of a character from its font. Where a font is not in the file and the machine has none for the
script, characters have no extent, and pdfium leaves those out that stand alone in their text object or run from top to
bottom. The stand-in gives every character the extent of its cell and nothing to be seen, so that the text layer is
whole on any machine.

What stays out: reading of text (`rag_assets.parsing.pdf.runs`).
"""

import ctypes
import struct
from functools import cache
from typing import Any

_NAME = b"RagAssetsStandIn"
_CHARSETS = {128, 129, 130, 134, 136}  # of `FPDF_SYSFONTINFO`: Shift_JIS, Hangul, Johab, GB 2312 and Big5
_TTC = 0x74746366  # table `ttcf`, which only collections of fonts have
_UNITS = 1000  # per em
_ASCENT, _DESCENT = 880, -120
_HALF, _FULL = 1, 2  # glyphs
_BOXES = {_HALF: (30, -100, 470, 780), _FULL: (60, -80, 940, 800)}  # left, bottom, right and top
_HALF_WIDTH = ((0x20, 0x2FF), (0xFF61, 0xFFDC), (0xFFE8, 0xFFEE))


@cache
def provide_stand_in() -> None:
    """Give pdfium the stand-in, for this process; fonts of the machine go before it."""
    from pypdfium2 import PdfSysfontBase

    font = ctypes.create_string_buffer(stand_in_font())
    handle, length = ctypes.addressof(font), len(font) - 1

    class StandIn(PdfSysfontBase):  # type: ignore[misc]
        held = font

        def MapFont(self, _: Any, *wanted: Any) -> Any:  # noqa: N802
            found = super().MapFont(_, *wanted)
            return handle if not found and wanted[2] in _CHARSETS else found

        def GetFontData(self, _: Any, found: int, table: int, buffer: Any, size: int) -> int:  # noqa: N802
            if found != handle:
                return int(super().GetFontData(_, found, table, buffer, size))
            if table == _TTC:
                return 0
            if buffer and size >= length:
                ctypes.memmove(buffer, font, length)
            return length

        def GetFaceName(self, _: Any, found: int, buffer: Any, size: int) -> int:  # noqa: N802
            if found != handle:
                return int(super().GetFaceName(_, found, buffer, size))
            if buffer and size > len(_NAME):
                ctypes.memmove(buffer, _NAME + b"\0", len(_NAME) + 1)
            return len(_NAME) + 1

        def GetFontCharset(self, _: Any, found: int) -> int:  # noqa: N802
            return 128 if found == handle else int(super().GetFontCharset(_, found))

        def DeleteFont(self, _: Any, found: int) -> None:  # noqa: N802
            if found != handle:
                super().DeleteFont(_, found)

    StandIn().setup()


def stand_in_font() -> bytes:
    """A TrueType font of two glyphs: one of half an em for Latin letters and half-width forms, one for all others.

    Source: OpenType specification 1.9, `cmap` subtable format 13 (many-to-one range mappings).
    """
    glyphs = [b"", *(_stroke(*_BOXES[glyph]) for glyph in (_HALF, _FULL))]
    offsets = [sum(map(len, glyphs[:place])) for place in range(len(glyphs) + 1)]
    widths = ((_UNITS, 0), (_UNITS // 2, _BOXES[_HALF][0]), (_UNITS, _BOXES[_FULL][0]))
    tables = {
        b"cmap": _character_map(),
        b"glyf": b"".join(glyphs),
        b"head": struct.pack(
            ">IIIIHHQQhhhhHHhhh",
            *(0x10000, 0x10000, 0, 0x5F0F3CF5, 0, _UNITS, 0, 0, 0, _DESCENT, _UNITS, _ASCENT, 0, 8, 2, 1, 0),
        ),
        b"hhea": struct.pack(">IhhhHhhhhhhhhhhhH", 0x10000, _ASCENT, _DESCENT, 0, _UNITS, *[0] * 11, len(glyphs)),
        b"hmtx": b"".join(struct.pack(">Hh", *each) for each in widths),
        b"loca": b"".join(struct.pack(">I", offset) for offset in offsets),
        b"maxp": struct.pack(">IH13H", 0x10000, len(glyphs), 4, 1, 0, 0, 2, *[0] * 8),
    }
    start = 12 + 16 * len(tables)
    directory, body = struct.pack(">IHHHH", 0x10000, len(tables), 64, 2, 16 * len(tables) - 64), b""
    for tag, table in tables.items():
        directory += tag + struct.pack(">III", 0, start + len(body), len(table))
        body += table + b"\0" * (-len(table) % 4)
    return directory + body


def _stroke(left: int, bottom: int, right: int, top: int) -> bytes:
    """A glyph that goes from corner to corner and back: of that extent, without an area."""
    return struct.pack(
        ">hhhhhHH2B4h", 1, left, bottom, right, top, 1, 0, 1, 1, left, right - left, bottom, top - bottom
    )


def _character_map() -> bytes:
    """Which glyph a character has."""
    groups, begin = [], 0
    for first, last in (*_HALF_WIDTH, (0x110000, 0)):
        if begin < first:
            groups.append((begin, first - 1, _FULL))
        if last:
            groups.append((first, last, _HALF))
        begin = last + 1
    body = b"".join(struct.pack(">III", *group) for group in groups)
    return struct.pack(">HHHHIHHIII", 0, 1, 3, 10, 12, 13, 0, 16 + len(body), 0, len(groups)) + body
