"""Numbers in Japanese numerals, as number formats with `[DBNum1]` to `[DBNum3]` show them: `百二十三`, `壱百弐拾参`.

What stays out: reading number formats (`excel_formats`).
"""

import re

_DIGITS = {1: "〇一二三四五六七八九", 2: "〇壱弐参四伍六七八九", 3: "０１２３４５６７８９"}
_SMALL = {1: ("", "十", "百", "千"), 2: ("", "拾", "百", "阡"), 3: ("", "十", "百", "千")}
_LARGE = {1: ("", "万", "億", "兆"), 2: ("", "萬", "億", "兆"), 3: ("", "万", "億", "兆")}
_GROUP = 4
_RUN = re.compile(r"(?<![\d.])[1-9]\d{0,15}(?!\d)", re.ASCII)
_DIGIT = re.compile(r"\d", re.ASCII)


def with_numerals(text: str, style: int, longest: int) -> str:
    """A text with other digits.

    Args:
        text: The text.
        style: 1 for `一二三`, 2 for `壱弐参`, 3 for `１２３`.
        longest: Up to how many digits whole numbers get units, as in `百二十三`; longer ones are told digit by digit.
    """
    units = _RUN.sub(lambda run: _read(run[0], style) if len(run[0]) <= longest else run[0], text)
    return _DIGIT.sub(lambda digit: _DIGITS[style][int(digit[0])], units)


def _read(digits: str, style: int) -> str:
    """A whole number with its units; the digit one before a unit below ten thousand is left out, save in style 2."""
    pieces: list[str] = []
    for large in reversed(range((len(digits) - 1) // _GROUP + 1)):
        group = digits[-_GROUP * (large + 1) : len(digits) - _GROUP * large]
        for place, digit in zip(reversed(range(len(group))), group, strict=True):
            if digit != "0":
                left_out = digit == "1" and place and style != 2
                pieces.append(("" if left_out else _DIGITS[style][int(digit)]) + _SMALL[style][place])
        if group.strip("0"):
            pieces.append(_LARGE[style][large])
    return "".join(pieces)
