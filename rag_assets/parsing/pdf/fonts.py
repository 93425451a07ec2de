"""What PDF files lack of Chinese, Japanese and Korean fonts: the extent of their characters, and their Unicode.

Extent. pdfium takes the extent of a character from its font. Where a font is not in the file and the machine has none
for the script, characters have no extent, and pdfium leaves those out that stand alone in their text object or run from
top to bottom. A stand-in gives every character the extent of its cell and nothing to be seen, so that the text layer is
whole on any machine.

Unicode. Some programs write the numbers of the glyphs of a widespread family of Japanese fonts where the Unicode of the
characters belongs, for all of a font or for a part of it: の stands as 「䛾」, 平成 as 「ᖹᡂ」, IoT as 「㻵㼛㼀」. The
page looks right, its words cannot be found. The numbers follow the Unicode of the characters in ranges: ideographs are
those of code page 932 and of JIS X 0213, one after the other. Numbers outside the ranges that are known stay as they
are. Source: worked out from files of both kinds; no table of a font was copied.

What stays out: reading of text (`rag_assets.parsing.pdf.runs`).
"""

import ctypes
import struct
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Sequence
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

# Numbers of glyphs.
_NUMBERS = (
    0x46B8,
    0x478A,
)  # of kana and punctuation, which tell a font of numbers: of these ideographs no text consists
_LEAST_NUMBERS = 3
_LATIN = 0xFF
_SHIFT_JIS_SIGNS = (0x8140, 0x8396)  # and kana, of which practically every Japanese page has some
_IDEOGRAPHS = (0x4E00, 0x9FFF)
_FIRST_NUMBER = 0x0B4D  # of an ideograph
_LAST_NUMBERED = 0x9AD8  # 高; what number later ones have is not known
_FIRST_OF_PART = 0x3130  # of the numbers in a font that has its other characters right
_ODD = (_FIRST_NUMBER, 0x1FFF)  # numbers of ideographs, and else letters of no script beside Japanese
_RANGES = (  # first number, first character, how many
    (0x3ECC, 0x20, 0x5F),  # ASCII
    (0x421C, 0x203B, 1),  # ※
    (0x46B8, 0x3001, 3),  # 、。〃
    (0x46BB, 0x3005, 3),  # 々〆〇
    (0x46BE, 0x3008, 10),  # brackets
    (0x46D1, 0x3041, 83),  # hiragana
    (0x472F, 0x30A1, 92),  # katakana, ・ and ー
    (0x47FD, 0xFF01, 0x5E),  # ASCII of full width
)
_STARTS = [number for number, _, _ in _RANGES]


@cache
def provide_stand_in() -> None:
    """Give pdfium the stand-in, for this process; fonts of the machine go before it."""
    from pypdfium2 import PdfSysfontBase

    font = ctypes.create_string_buffer(stand_in_font())
    handle, length = ctypes.addressof(font), len(font) - 1

    class StandIn(PdfSysfontBase):  # type: ignore[misc]
        held = font

        def MapFont(self, _: Any, *arguments: Any) -> Any:  # noqa: N802
            font_handle = super().MapFont(_, *arguments)
            return handle if not font_handle and arguments[2] in _CHARSETS else font_handle

        def GetFontData(self, _: Any, font_handle: int, table: int, buffer: Any, size: int) -> int:  # noqa: N802
            if font_handle != handle:
                return int(super().GetFontData(_, font_handle, table, buffer, size))
            if table == _TTC:
                return 0
            if buffer and size >= length:
                ctypes.memmove(buffer, font, length)
            return length

        def GetFaceName(self, _: Any, font_handle: int, buffer: Any, size: int) -> int:  # noqa: N802
            if font_handle != handle:
                return int(super().GetFaceName(_, font_handle, buffer, size))
            if buffer and size > len(_NAME):
                ctypes.memmove(buffer, _NAME + b"\0", len(_NAME) + 1)
            return len(_NAME) + 1

        def GetFontCharset(self, _: Any, font_handle: int) -> int:  # noqa: N802
            return 128 if font_handle == handle else int(super().GetFontCharset(_, font_handle))

        def DeleteFont(self, _: Any, font_handle: int) -> None:  # noqa: N802
            if font_handle != handle:
                super().DeleteFont(_, font_handle)

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
        b"hmtx": b"".join(struct.pack(">Hh", *metrics) for metrics in widths),
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


def with_characters(codes: Sequence[int], font_of: Callable[[int], Hashable]) -> Sequence[int]:
    """The codes of a page's characters, with characters in place of the numbers of glyphs and of codes of Shift_JIS.

    Args:
        codes: Unicode as the file gives it.
        font_of: What tells the font of a place in them from others; asked for only where there may be numbers.
    """
    if sum(_NUMBERS[0] <= code <= _NUMBERS[1] for code in codes) < _LEAST_NUMBERS:
        return _from_shift_jis(codes)
    fonts = [font_of(place) for place in range(len(codes))]
    kind_counts: dict[Hashable, Counter[str]] = defaultdict(Counter)
    for code, font in zip(codes, fonts, strict=True):
        kinds = {"number": _NUMBERS, "odd": _ODD, "ideograph": _IDEOGRAPHS}
        kind_counts[font].update(kind for kind, (first, last) in kinds.items() if first <= code <= last)
    first = {
        font: _FIRST_NUMBER if counts["odd"] and not counts["ideograph"] else _FIRST_OF_PART
        for font, counts in kind_counts.items()
        if counts["number"] >= _LEAST_NUMBERS
    }
    return [
        _character(code) if font in first and code >= first[font] else code
        for code, font in zip(codes, fonts, strict=True)
    ]


def _from_shift_jis(codes: Sequence[int]) -> Sequence[int]:
    """The codes of a page, with the characters where all beyond Latin are codes of Shift_JIS and several different ones
    are those of signs and kana: of the ideographs with the same codes alone no text consists.
    """
    wide_codes = {code for code in codes if code > _LATIN}
    if sum(_SHIFT_JIS_SIGNS[0] <= code <= _SHIFT_JIS_SIGNS[1] for code in wide_codes) < _LEAST_NUMBERS:
        return codes
    characters = {code: _shift_jis(code) for code in wide_codes}
    return [characters.get(code, code) for code in codes] if all(characters.values()) else codes


def _shift_jis(code: int) -> int:
    """The character that two bytes of Shift_JIS stand for; 0 where they stand for none."""
    try:
        text = code.to_bytes(2, "big").decode("cp932")
    except (OverflowError, UnicodeDecodeError):
        return 0
    return ord(text) if len(text) == 1 else 0


def _character(number: int) -> int:
    """The character of a glyph; the number itself where that is not known."""
    ideographs = _numbered_ideographs()
    if _FIRST_NUMBER <= number < _FIRST_NUMBER + len(ideographs):
        return ideographs[number - _FIRST_NUMBER]
    place = bisect_right(_STARTS, number) - 1
    if place < 0:
        return number
    first, character, count = _RANGES[place]
    return character + number - first if number - first < count else number


@cache
def _numbered_ideographs() -> tuple[int, ...]:
    """Ideographs in the order of their glyphs."""
    return tuple(code for code in range(_IDEOGRAPHS[0], _LAST_NUMBERED + 1) if _is_encoded(chr(code)))


def _is_encoded(character: str) -> bool:
    for encoding in ("cp932", "euc_jis_2004"):
        try:
            character.encode(encoding)
        except UnicodeEncodeError:
            continue
        return True
    return False
