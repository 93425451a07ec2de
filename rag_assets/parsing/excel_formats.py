"""Cell values as a workbook shows them: number formats applied to stored numbers.

Dates are written ISO-like (`2019-09-10`, `2019-09-10 12:30`, `2019-09` for year and month) whatever their local
format, so that they can be found and compared; those with a Japanese era as shown, with the ISO date behind:
`令和1年9月10日 (2019-09-10)`. What stays out: reading cells.
"""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache

from rag_assets.parsing.excel_eras import ERA, era_date, restore

BUILT_IN_FORMATS = {
    0: "General", 1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 5: "#,##0", 6: "#,##0", 7: "#,##0.00", 8: "#,##0.00",
    9: "0%", 10: "0.00%", 11: "0.00E+00", 12: "General", 13: "General", 14: "yyyy-mm-dd", 15: "yyyy-mm-dd",
    16: "yyyy-mm-dd", 17: "yyyy-mm", 18: "h:mm", 19: "h:mm:ss", 20: "h:mm", 21: "h:mm:ss", 22: "yyyy-mm-dd h:mm",
    27: "yyyy-mm-dd", 28: "yyyy-mm-dd", 29: "yyyy-mm-dd", 30: "yyyy-mm-dd", 31: "yyyy-mm-dd", 32: "h:mm",
    33: "h:mm:ss", 34: "h:mm", 35: "h:mm:ss", 36: "yyyy-mm-dd", 37: "#,##0", 38: "#,##0", 39: "#,##0.00",
    40: "#,##0.00", 41: "#,##0", 42: "#,##0", 43: "#,##0.00", 44: "#,##0.00", 45: "mm:ss", 46: "[h]:mm:ss",
    47: "mm:ss", 48: "0.0E+0", 49: "@", 50: "yyyy-mm-dd", 51: "yyyy-mm-dd", 52: "yyyy-mm", 53: "yyyy-mm-dd",
    54: "yyyy-mm-dd", 55: "yyyy-mm", 56: "yyyy-mm-dd", 57: "yyyy-mm-dd", 58: "yyyy-mm-dd",
}  # fmt: skip

_TOKEN = re.compile(r'"([^"]*)"|\\(.)|_.|\*.|\[([^\]]*)\]|(.)', re.DOTALL)
_DIGITS = re.compile(r"[0#?][0#?,]*(?:\.[0#?]*)?(?:E[+-][0#?]+)?|\.[0#?]+")
_BASE_1900 = datetime(1899, 12, 30)  # noqa: DTZ001 - the dates of a workbook have no time zone
_BASE_1904 = datetime(1904, 1, 1)  # noqa: DTZ001
_FIRST_SERIAL_DATE = 61  # Excel counts a 29 February 1900 that never was


@dataclass(frozen=True, slots=True)
class _Section:
    """One of up to four parts of a format.

    Attributes:
        pattern: The format with quoted and escaped text replaced by private characters.
        literals: What those characters stand for.
        elapsed: Whether it shows hours, minutes or seconds beyond a day.
        is_date: Whether it shows a date or a time.
    """

    pattern: str
    literals: tuple[str, ...]
    elapsed: bool
    is_date: bool


def format_number(value: float, code: str, *, base_1904: bool = False) -> str:
    """A stored number as shown under a number format.

    Args:
        value: The stored number; for dates, days since the base of the workbook.
        code: Number format code, as in `#,##0.00`.
        base_1904: Whether day 0 is 1 January 1904.
    """
    sections = _sections(code)
    section = sections[0]
    if value < 0 and len(sections) > 1 and not section.is_date:
        section, value = sections[1], -value
    elif value == 0 and len(sections) > 2:
        section = sections[2]
    if section.is_date:
        return _format_date(value, section, base_1904=base_1904) or general(value)
    if "General" in section.pattern or "@" in section.pattern or "/" in section.pattern:
        return general(value)
    return _format_digits(value, section)


def general(value: float) -> str:
    """A number without a format: integers without a fraction, others in at most 15 significant digits."""
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    return f"{value:.15g}"


@lru_cache(maxsize=4096)
def _sections(code: str) -> tuple[_Section, ...]:
    parts: list[list[str]] = [[]]
    literals: list[str] = []
    elapsed = False
    for match in _TOKEN.finditer(code):
        quoted, escaped, bracketed, other = match.groups()
        if quoted is not None or escaped is not None:
            parts[-1].append(chr(0xE000 + len(literals)))
            literals.append(quoted if quoted is not None else escaped)
        elif bracketed is not None:
            if bracketed.lower().strip("hms") == "":
                elapsed = True
                parts[-1].append(bracketed)
            elif bracketed.startswith("$"):
                symbol = bracketed[1:].split("-")[0]
                parts[-1].append(chr(0xE000 + len(literals)))
                literals.append(symbol)
        elif other == ";":
            parts.append([])
        elif other is not None:
            parts[-1].append(other)
    return tuple(_section("".join(part), tuple(literals), elapsed=elapsed) for part in parts)


def _section(pattern: str, literals: tuple[str, ...], *, elapsed: bool) -> _Section:
    bare = pattern.replace("General", "")
    is_date = elapsed or (re.search(r"[ymdhsge]", bare.replace("E+", "").replace("E-", ""), re.IGNORECASE) is not None)
    return _Section(pattern, literals, elapsed, is_date and not re.search(r"[0#?]E[+-]", pattern))


def _format_date(value: float, section: _Section, *, base_1904: bool) -> str | None:
    pattern = section.pattern.lower()
    if section.elapsed:
        seconds = round(abs(value) * 86400)
        text = f"{seconds // 3600}:{seconds // 60 % 60:02d}"
        return ("-" if value < 0 else "") + (f"{text}:{seconds % 60:02d}" if "s" in pattern else text)
    if value < 0 or value > 2958466:
        return None
    moment = _moment(value, base_1904=base_1904)
    has_time = "h" in pattern or "s" in pattern
    has_date = "y" in pattern or "d" in pattern or "g" in pattern or "e" in pattern or not has_time
    time_format = "%H:%M:%S" if "s" in pattern else "%H:%M"
    if not has_date:
        return moment.strftime(time_format)
    months_only = "y" in pattern and "d" not in pattern and "m" in pattern and not has_time
    date = moment.strftime("%Y-%m" if months_only else "%Y-%m-%d")
    date = f"{date} {moment.strftime(time_format)}" if has_time else date
    shown = era_date(moment, section.pattern, section.literals) if ERA.search(pattern) else ""
    return f"{shown} ({date})" if shown else date


def _moment(value: float, *, base_1904: bool) -> datetime:
    base = _BASE_1904 if base_1904 else _BASE_1900
    if not base_1904 and value < _FIRST_SERIAL_DATE:
        base += timedelta(days=1)
    return base + timedelta(seconds=round(value * 86400))


def _format_digits(value: float, section: _Section) -> str:
    pattern = section.pattern
    match = _DIGITS.search(pattern)
    if match is None:
        return restore(pattern, section.literals).strip() or (general(value) if not pattern else "")
    mask = match.group()
    value *= 100 ** pattern.count("%")
    whole_mask, _, decimal_mask = mask.partition("E")[0].partition(".")
    if "E" in mask:
        number = f"{value:.{len(decimal_mask)}E}"
    else:
        trailing = len(whole_mask) - len(whole_mask.rstrip(","))
        number = _fixed(value / 1000**trailing, whole_mask.rstrip(","), decimal_mask)
    tail = re.sub(r"[0#?,.]", "", pattern[match.end() :])
    text = restore(pattern[: match.start()], section.literals) + number + restore(tail, section.literals)
    return text.strip()


def _fixed(value: float, whole_mask: str, decimal_mask: str) -> str:
    number = f"{abs(value):,.{len(decimal_mask)}f}" if "," in whole_mask else f"{abs(value):.{len(decimal_mask)}f}"
    whole, _, decimals = number.partition(".")
    optional = len(decimal_mask) - len(decimal_mask.rstrip("#?"))
    while optional and decimals.endswith("0"):
        decimals, optional = decimals[:-1], optional - 1
    whole = whole.zfill(whole_mask.count("0")) if "," not in whole_mask else whole
    if whole == "0" and "0" not in whole_mask and decimals:
        whole = ""
    text = f"{whole}.{decimals}" if decimals else whole
    return f"-{text}" if value < 0 and text.strip("0.,") else text
