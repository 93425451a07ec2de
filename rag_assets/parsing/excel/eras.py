"""Dates with the year of a Japanese era, as number formats with `g` or `e` show them: `令和6年4月1日`, `R6.4.1`.

What stays out: other dates (`excel_formats`).
"""

import re
from collections.abc import Sequence
from datetime import datetime

ERA = re.compile(r"[ge]")
_TOKEN = re.compile(r"am/pm|([gymdhsea])\1*|.", re.IGNORECASE | re.DOTALL)
_STARTS = (
    (("R", "令", "令和"), (2019, 5, 1)),
    (("H", "平", "平成"), (1989, 1, 8)),
    (("S", "昭", "昭和"), (1926, 12, 25)),
    (("T", "大", "大正"), (1912, 7, 30)),
    (("M", "明", "明治"), (1868, 1, 25)),
)
_WEEKDAYS = "月火水木金土日"
_PRIVATE = 0xE000


def era_date(moment: datetime, pattern: str, literals: Sequence[str], *, first_year: bool = False) -> str:
    """A date as shown under a pattern with an era; empty for dates before the first one.

    Args:
        moment: The date.
        pattern: Number format with quoted and escaped text replaced by private characters.
        literals: What those characters stand for.
        first_year: Whether the first year of an era is told as `元年`.
    """
    day = (moment.year, moment.month, moment.day)
    names, start = next(((names, start) for names, start in _STARTS if day >= start), (None, day))
    if names is None:
        return ""
    year = moment.year - start[0] + 1
    pieces = []
    after_hours = False
    for match in _TOKEN.finditer(pattern):
        token = match[0].lower()
        match token[0]:
            case "g":
                piece = names[min(len(token), 3) - 1]
            case "e":
                named = first_year and year == 1 and restore(pattern[match.end() :], literals).startswith("年")
                piece = "元" if named else f"{year:0{len(token)}d}"
            case "m" if not after_hours:
                piece = f"{moment.month:0{min(len(token), 2)}d}"
            case "a" if len(token) > 2:
                piece = _WEEKDAYS[moment.weekday()] + ("曜日" if len(token) > 3 else "")
            case _:
                piece = _plain(token, moment) if token.isascii() and token.isalpha() else match[0]
        after_hours = token[0] == "h" or (after_hours and not token[0].isalpha())
        pieces.append(piece)
    return restore("".join(pieces).rstrip("@;"), literals).strip()


def _plain(token: str, moment: datetime) -> str:
    values = {"y": moment.year, "d": moment.day, "h": moment.hour, "m": moment.minute, "s": moment.second}
    return f"{values[token[0]]:0{len(token)}d}" if token[0] in values else ""


def restore(pattern: str, literals: Sequence[str]) -> str:
    """A pattern with the private characters replaced by what they stand for."""
    return "".join(
        literals[ord(sign) - _PRIVATE] if _PRIVATE <= ord(sign) < _PRIVATE + len(literals) else sign for sign in pattern
    )
