"""Text of Japanese fonts whose characters a PDF gives by the numbers of their glyphs, as 「䛾」 for 「の」.

Some programs write such numbers of a widespread family of Japanese fonts where the Unicode of the characters belongs,
for all of a font or for a part of it: 平成 stands as 「ᖹᡂ」, IoT as 「㻵㼛㼀」. The page looks right, its words cannot
be found. The numbers follow the Unicode of the characters in ranges: ideographs are those of code page 932 and of
JIS X 0213, one after the other. Numbers outside the ranges that are known stay as they are.

Source: worked out from files of both kinds; no table of a font was copied.
"""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Sequence
from functools import cache

_NUMBERS = (
    0x46B8,
    0x478A,
)  # of kana and punctuation, which tell a font of numbers: of these ideographs no text consists
_LEAST_NUMBERS = 3
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


def with_characters(codes: Sequence[int], font_of: Callable[[int], Hashable]) -> Sequence[int]:
    """The codes of a page's characters, with characters in place of the numbers of glyphs.

    Args:
        codes: Unicode as the file gives it.
        font_of: What tells the font of a place in them from others; asked for only where there may be numbers.
    """
    if sum(_NUMBERS[0] <= code <= _NUMBERS[1] for code in codes) < _LEAST_NUMBERS:
        return codes
    fonts = [font_of(place) for place in range(len(codes))]
    held: dict[Hashable, Counter[str]] = defaultdict(Counter)
    for code, font in zip(codes, fonts, strict=True):
        kinds = {"number": _NUMBERS, "odd": _ODD, "ideograph": _IDEOGRAPHS}
        held[font].update(kind for kind, (first, last) in kinds.items() if first <= code <= last)
    first = {
        font: _FIRST_NUMBER if counts["odd"] and not counts["ideograph"] else _FIRST_OF_PART
        for font, counts in held.items()
        if counts["number"] >= _LEAST_NUMBERS
    }
    return [
        _character(code) if font in first and code >= first[font] else code
        for code, font in zip(codes, fonts, strict=True)
    ]


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
