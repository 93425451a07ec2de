"""Cell values as a workbook shows them: number formats applied to stored numbers.

Dates are written ISO-like (`2019-09-10`, `2019-09-10 12:30`, `2019-09` for year and month) whatever their local
format, so that they can be found and compared, with the weekday behind where the format has one: `2019-09-10 (火)`;
those with a Japanese era as shown, with the ISO date behind: `令和1年9月10日 (2019-09-10)`. So do numbers in Japanese
numerals, with the plain number behind: `百二十三 (123)`. A value whose format is not understood is shown plainly. So is
a zero or a number that a format hides, because it says something all the same.
"""

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

BUILT_IN_FORMATS = {
    0: "General", 1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 5: "#,##0", 6: "#,##0", 7: "#,##0.00", 8: "#,##0.00",
    9: "0%", 10: "0.00%", 11: "0.00E+00", 12: "# ?/?", 13: "# ??/??", 14: "yyyy-mm-dd", 15: "yyyy-mm-dd",
    16: "yyyy-mm-dd", 17: "yyyy-mm", 18: "h:mm", 19: "h:mm:ss", 20: "h:mm", 21: "h:mm:ss", 22: "yyyy-mm-dd h:mm",
    27: "yyyy-mm-dd", 28: "yyyy-mm-dd", 29: "yyyy-mm-dd", 30: "yyyy-mm-dd", 31: "yyyy-mm-dd", 32: "h:mm",
    33: "h:mm:ss", 34: "h:mm", 35: "h:mm:ss", 36: "yyyy-mm-dd", 37: "#,##0", 38: "#,##0", 39: "#,##0.00",
    40: "#,##0.00", 41: "#,##0", 42: "#,##0", 43: "#,##0.00", 44: "#,##0.00", 45: "mm:ss", 46: "[h]:mm:ss",
    47: "mm:ss", 48: "##0.0E+0", 49: "@", 50: "yyyy-mm-dd", 51: "yyyy-mm-dd", 52: "yyyy-mm", 53: "yyyy-mm-dd",
    54: "yyyy-mm-dd", 55: "yyyy-mm", 56: "yyyy-mm-dd", 57: "yyyy-mm-dd", 58: "yyyy-mm-dd",
}  # fmt: skip

_TOKEN = re.compile(r'"([^"]*)"|\\(.)|_.|\*.|\[([^\]]*)\]|(.)', re.DOTALL)
_CONDITION = re.compile(r"(<>|<=|>=|<|>|=)\s*([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:E[+-]?[0-9]+)?)\s*$", re.IGNORECASE)
_NUMERALS = re.compile(r"DBNum([1-3])", re.IGNORECASE)
_GENERAL = re.compile(r"general|G/標準", re.IGNORECASE)
_DATE = re.compile(r"[ymdhsg]|e(?![+-])|aaa", re.IGNORECASE)
_ELAPSED = re.compile(r"\[(h+|m+|s+)\]|h+|m+|s+(?:\.(0+))?", re.IGNORECASE)
_ERA = re.compile(r"[ge]")
_ERA_TOKEN = re.compile(r"am/pm|([gymdhsea])\1*|.", re.IGNORECASE | re.DOTALL)
_WEEKDAY = re.compile(r"aaaa?|dddd?")
_EXPONENT = re.compile(r"([0#?][0#?,]*)(?:\.([0#?]*))?E([+-])([0#?]+)", re.IGNORECASE)
_FRACTION = re.compile(r"(?:([0#?][0#?,]*)([^0#?/]+))?([0#?]+) ?/ ?([1-9][0-9]{0,8}|[0#?]{1,9})")
_ERAS = (
    (("R", "令", "令和"), (2019, 5, 1)),
    (("H", "平", "平成"), (1989, 1, 8)),
    (("S", "昭", "昭和"), (1926, 12, 25)),
    (("T", "大", "大正"), (1912, 7, 30)),
    (("M", "明", "明治"), (1868, 1, 25)),
)
# Japanese numerals by style: 1 for `一二三`, 2 for `壱弐参`, 3 for `１２３`.
_DIGITS = {1: "〇一二三四五六七八九", 2: "〇壱弐参四伍六七八九", 3: "０１２３４５６７８９"}
_SMALL_UNITS = {1: ("", "十", "百", "千"), 2: ("", "拾", "百", "阡"), 3: ("", "十", "百", "千")}
_LARGE_UNITS = {1: ("", "万", "億", "兆"), 2: ("", "萬", "億", "兆"), 3: ("", "万", "億", "兆")}
_GROUP = 4
_WHOLE_NUMBER = re.compile(r"(?<![\d.])[1-9]\d{0,15}(?!\d)", re.ASCII)
_DIGIT = re.compile(r"\d", re.ASCII)
_PLACEHOLDERS = "0#?"
_LONGEST_PATTERN = 255
_PRIVATE = 0xE000
_GANNEN = "x-gannen"
_UNIT_DIGITS = 16  # of whole numbers that are told with units, as in `百二十三`
_DATE_DIGITS = 2  # of years of an era, months and days
_WEEKDAYS = "月火水木金土日"
_ENGLISH_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_EXACT = Context(prec=2000, rounding=ROUND_HALF_UP, traps=[])
_BASE_1900 = datetime(1899, 12, 30)  # noqa: DTZ001 - the dates of a workbook have no time zone
_BASE_1904 = datetime(1904, 1, 1)  # noqa: DTZ001
_FIRST_SERIAL_DATE = 61  # Excel counts a 29 February 1900 that never was
_LAST_SERIAL_DATE = 2958466

_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class _Condition(NamedTuple):
    """For which numbers a section is."""

    sign: str
    limit: float

    def holds(self, value: float) -> bool:
        return _OPERATORS[self.sign](value, self.limit)

    @property
    def only_negative(self) -> bool:
        """Whether no number from 0 on meets it."""
        return (self.sign == "<" and self.limit <= 0) or (self.sign in {"<=", "="} and self.limit < 0)

    @property
    def all_others(self) -> bool:
        """Whether every number from 0 on meets it."""
        return (self.sign == ">=" and self.limit <= 0) or (self.sign in {">", "<>"} and self.limit < 0)


@dataclass(frozen=True, slots=True)
class _Section:
    """One of up to four parts of a format."""

    pattern: str  # the format with quoted and escaped text replaced by private characters, and `General` by `@`
    literals: tuple[str, ...]  # what those characters stand for
    is_date: bool  # whether it shows a date or a time
    elapsed: bool  # whether it shows hours, minutes or seconds beyond a day
    locale: str  # language of the names of days as stated, such as `411` and `ja-JP`; empty where it is not
    condition: _Condition | None  # for which numbers it is; None for those that the sections before it leave
    numerals: int = 0  # style of Japanese numerals, from 1 to 3; 0 for digits as usual
    unsigned: bool = False  # whether it is for negative numbers alone, so that their sign is what its literals say


class _Mask(NamedTuple):
    """Where the digits of a number go in a pattern."""

    whole: tuple[int, ...]  # positions of the digits before the decimal point
    decimals: tuple[int, ...]  # positions of the digits behind it
    point: int  # position of the decimal point; -1 for none
    commas: tuple[int, ...]  # positions of the commas, which are not shown
    grouped: bool  # whether thousands are separated
    shift: int  # the power of ten by which the number is multiplied


def format_number(value: float, code: str, *, base_1904: bool = False) -> str:
    """A stored number as shown under a number format.

    Args:
        value: The stored number; for dates, days since the base of the workbook.
        code: Number format code, as in `#,##0.00`.
        base_1904: Whether day 0 is 1 January 1904.
    """
    sections, _ = _format(code)
    section = next((part for part in sections if part.condition is None or part.condition.holds(value)), None)
    if section is None or not section.pattern:
        return general(value)
    if section.is_date:
        number = abs(value) if section.unsigned else value
        return _format_date(number, section, base_1904=base_1904) or general(value)
    digits = _format_pattern(abs(value), section.pattern)
    if digits is None:
        return general(value)
    signed = value < 0 and not section.unsigned and any(sign in "123456789" for sign in digits)
    if section.numerals:
        digits = _with_numerals(digits, section.numerals, _UNIT_DIGITS if "@" in section.pattern else 0)
    text = f"{'-' if signed else ''}{_restore(digits, section.literals).strip()}"
    return f"{text} ({general(value)})" if section.numerals else text


def format_text(text: str, code: str) -> str:
    """A text as shown under a number format, as in `@"様"`; unchanged where the format has no place for it."""
    if "@" not in code or code == "@" or not text:
        return text
    _, section = _format(code)
    if section is None or "@" not in section.pattern or section.is_date:
        return text
    return "".join(text if sign == "@" else _restore(sign, section.literals) for sign in section.pattern).strip()


def general(value: float) -> str:
    """A number without a format: integers without a fraction, others in at most 15 significant digits."""
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    return f"{value:.15g}"


@lru_cache(maxsize=4096)
def _format(code: str) -> tuple[tuple[_Section, ...], _Section | None]:
    """The sections of a format for numbers, and the one for text."""
    parts: list[list[re.Match[str]]] = [[]]
    for match in _TOKEN.finditer(code):
        if match[4] == ";":
            parts.append([])
        else:
            parts[-1].append(match)
    sections = tuple(map(_section, parts))
    numbers, text = sections[:3], sections[3] if len(sections) > 3 else None
    if text is None and "@" in sections[-1].pattern and not _GENERAL.search(code.rpartition(";")[2]):
        numbers, text = sections[:-1] or sections, sections[-1]
    return _with_conditions(numbers), text


def _section(tokens: list[re.Match[str]]) -> _Section:
    pieces: list[str] = []
    literals: list[str] = []
    locale = ""
    condition = None
    numerals = 0
    for match in tokens:
        quotation, escape, bracket, sign = match.groups()
        literal = quotation if quotation is not None else escape
        if bracket is not None:
            if bracket.startswith("$"):
                literal, _, locale_code = bracket[1:].partition("-")
                locale = locale_code or locale
            elif _ELAPSED.fullmatch(match[0]):
                pieces.append(match[0])
            elif stated_condition := _CONDITION.match(bracket):
                condition = _Condition(stated_condition[1], float(stated_condition[2]))
            elif style := _NUMERALS.fullmatch(bracket):
                numerals = int(style[1])
        if literal is not None:
            pieces.append(chr(_PRIVATE + len(literals)))
            literals.append(literal)
        pieces.append(sign or "")
    locale = locale.lower()
    numerals = numerals if not locale or _is_japanese(locale) else 0
    pattern = _GENERAL.sub("@", "".join(pieces)) or ("@" if numerals else "")
    is_date = _DATE.search(pattern) is not None
    elapsed = is_date and "[" in pattern and not re.search(r"[ydgea]", pattern, re.IGNORECASE)
    return _Section(pattern, tuple(literals), is_date, elapsed, locale, condition, numerals)


def _is_japanese(locale: str) -> bool:
    return locale.endswith("411") or locale.startswith("ja")


def _with_conditions(sections: tuple[_Section, ...]) -> tuple[_Section, ...]:
    """Sections with the conditions that they have where none are stated: positive; negative; zero."""
    defaults: tuple[_Condition | None, ...] = (None, None, None)
    if len(sections) == 2:
        defaults = (_Condition(">=", 0), None)
    elif len(sections) > 2:
        defaults = (_Condition(">", 0), _Condition("<", 0), None)
    conditioned_sections = []
    unsigned = False
    for section, default in zip(sections, defaults, strict=False):
        condition = section.condition or default
        negative = unsigned or (condition is not None and condition.only_negative)
        conditioned_sections.append(replace(section, condition=condition, unsigned=negative))
        unsigned = unsigned or (condition is not None and condition.all_others)
    return tuple(conditioned_sections)


def _format_date(value: float, section: _Section, *, base_1904: bool) -> str | None:
    pattern = section.pattern.lower()
    if value > _LAST_SERIAL_DATE or value < (-_LAST_SERIAL_DATE if section.elapsed else 0):
        return None
    if section.elapsed:
        return _format_elapsed(value, section)
    moment = _moment(value, base_1904=base_1904)
    has_time = "h" in pattern or "s" in pattern
    has_date = not has_time or any(sign in pattern for sign in ("y", "d", "g", "e", "aaa"))
    time_format = "%H:%M:%S" if "s" in pattern else "%H:%M"
    if not has_date:
        return moment.strftime(time_format)
    weekday = _weekday(moment, pattern, section.locale)
    months_only = "y" in pattern and "d" not in pattern and "m" in pattern and not has_time and not weekday
    date = moment.strftime("%Y-%m" if months_only else "%Y-%m-%d")
    date = f"{date} {moment.strftime(time_format)}" if has_time else date
    if _ERA.search(pattern):
        named_pattern = re.sub("ddd+", chr(_PRIVATE + len(section.literals)), section.pattern, flags=re.IGNORECASE)
        if era_date := _era_date(
            moment, named_pattern, (*section.literals, weekday), first_year=_GANNEN in section.locale
        ):
            era_date = _with_numerals(era_date, section.numerals, _DATE_DIGITS) if section.numerals else era_date
            return f"{era_date} ({date})"
    return f"{date} ({weekday})" if weekday else date


def _weekday(moment: datetime, pattern: str, locale: str) -> str:
    """The weekday as the pattern shows it; empty where it shows none, or in an unknown language."""
    match = _WEEKDAY.search(pattern)
    english = locale.endswith("09") or locale.startswith("en")
    if match is None or not (english or not locale or _is_japanese(locale)):
        return ""
    if english or (not locale and match[0][0] == "d"):
        name = _ENGLISH_WEEKDAYS[moment.weekday()]
        return name if len(match[0]) > 3 else name[:3]
    return _japanese_weekday(moment, len(match[0]))


def _japanese_weekday(moment: datetime, length: int) -> str:
    return _WEEKDAYS[moment.weekday()] + ("曜日" if length > 3 else "")


def _era_date(moment: datetime, pattern: str, literals: Sequence[str], *, first_year: bool) -> str:
    """A date as shown under a pattern with an era; empty for dates before the first one.

    Args:
        moment: The date.
        pattern: Number format with quoted and escaped text replaced by private characters.
        literals: What those characters stand for.
        first_year: Whether the first year of an era is told as `元年`.
    """
    day = (moment.year, moment.month, moment.day)
    names, start = next(((names, start) for names, start in _ERAS if day >= start), (None, day))
    if names is None:
        return ""
    year = moment.year - start[0] + 1
    plain = {"y": moment.year, "d": moment.day, "h": moment.hour, "m": moment.minute, "s": moment.second}
    pieces = []
    after_hours = False
    for match in _ERA_TOKEN.finditer(pattern):
        token = match[0].lower()
        match token[0]:
            case "g":
                piece = names[min(len(token), 3) - 1]
            case "e":
                is_gannen = first_year and year == 1 and _restore(pattern[match.end() :], literals).startswith("年")
                piece = "元" if is_gannen else f"{year:0{len(token)}d}"
            case "m" if not after_hours:
                piece = f"{moment.month:0{min(len(token), 2)}d}"
            case "a" if len(token) > 2:
                piece = _japanese_weekday(moment, len(token))
            case letter if letter in plain:
                piece = f"{plain[letter]:0{len(token)}d}"
            case letter:
                piece = "" if token.isascii() and token.isalpha() else match[0]
        after_hours = token[0] == "h" or (after_hours and not token[0].isalpha())
        pieces.append(piece)
    return _restore("".join(pieces).rstrip("@;"), literals).strip()


def _restore(pattern: str, literals: Sequence[str]) -> str:
    """A pattern with the private characters replaced by what they stand for."""
    return "".join(
        literals[ord(sign) - _PRIVATE] if _PRIVATE <= ord(sign) < _PRIVATE + len(literals) else sign for sign in pattern
    )


def _with_numerals(text: str, style: int, longest: int) -> str:
    """A text in Japanese numerals; whole numbers of up to `longest` digits get units, others go digit by digit."""
    units = _WHOLE_NUMBER.sub(lambda run: _spell(run[0], style) if len(run[0]) <= longest else run[0], text)
    return _DIGIT.sub(lambda digit: _DIGITS[style][int(digit[0])], units)


def _spell(digits: str, style: int) -> str:
    """A whole number with its units; the digit one before a unit below ten thousand is left out, save in style 2."""
    pieces: list[str] = []
    for large in reversed(range((len(digits) - 1) // _GROUP + 1)):
        group = digits[-_GROUP * (large + 1) : len(digits) - _GROUP * large]
        for place, digit in zip(reversed(range(len(group))), group, strict=True):
            if digit != "0":
                is_left_out = digit == "1" and place and style != 2
                pieces.append(("" if is_left_out else _DIGITS[style][int(digit)]) + _SMALL_UNITS[style][place])
        if group.strip("0"):
            pieces.append(_LARGE_UNITS[style][large])
    return "".join(pieces)


def _format_elapsed(value: float, section: _Section) -> str:
    places = max((len(match[2] or "") for match in _ELAPSED.finditer(section.pattern)), default=0)
    seconds = _rounded(_decimal(abs(value)) * 86400, min(places, 3))
    total = int(seconds)
    units = {"h": (total // 3600, 24), "m": (total // 60, 60), "s": (total, 60)}

    def elapsed_text(match: re.Match[str]) -> str:
        letters = match[1] or match[0].partition(".")[0]
        number, cycle = units[letters[0].lower()]
        digits = str(number if match[1] else number % cycle).zfill(len(letters))
        decimals = f"{seconds % 1:.3f}"[2:]
        return f"{digits}.{decimals[: len(match[2])]}" if match[2] else digits

    text = _restore(_ELAPSED.sub(elapsed_text, section.pattern), section.literals).strip()
    return f"-{text}" if value < 0 and seconds else text


def _moment(value: float, *, base_1904: bool) -> datetime:
    base = _BASE_1904 if base_1904 else _BASE_1900
    if not base_1904 and value < _FIRST_SERIAL_DATE:
        base += timedelta(days=1)
    return base + timedelta(seconds=round(value * 86400))


def _decimal(value: float) -> Decimal:
    """A number in the 15 significant digits that Excel keeps."""
    return Decimal(f"{value:.15g}")


def _rounded(number: Decimal, places: int) -> Decimal:
    """A number rounded to decimal places, half away from zero."""
    return number.quantize(Decimal(1).scaleb(-places), context=_EXACT)


def _format_pattern(value: float, pattern: str) -> str | None:
    """A number that is not negative in the places of a pattern; None where the pattern is not understood."""
    mask = _mask(pattern)
    if mask is not None:
        return _format_digits(_decimal(value), pattern, mask)
    if "@" in pattern:
        return None if re.search(r"[0#?%]", pattern) else pattern.replace("@", general(value))
    if not any(sign in _PLACEHOLDERS for sign in pattern):
        return pattern
    if len(pattern) > _LONGEST_PATTERN:
        return None
    if "/" in pattern:
        return _format_fraction(_decimal(value), pattern)
    return _format_exponent(_decimal(value), pattern)


@lru_cache(maxsize=4096)
def _mask(pattern: str) -> _Mask | None:
    """Where digits go; None for patterns of other kinds and those that are not understood."""
    point = pattern.find(".")
    places = [place for place, sign in enumerate(pattern) if sign in _PLACEHOLDERS]
    commas = tuple(place for place, sign in enumerate(pattern) if sign == ",")
    whole = tuple(place for place in places if point < 0 or place < point)
    decimals = tuple(place for place in places if 0 <= point < place)
    grouping = [place for place in commas if whole and place < whole[-1]]
    strays = [place for place in commas if not place or pattern[place - 1] not in f"{_PLACEHOLDERS},"]
    inside = [place for place in commas if decimals and point < place < decimals[-1]]
    is_unsupported = not places or len(pattern) > _LONGEST_PATTERN or re.search(r"[@/]|E[+-]", pattern, re.IGNORECASE)
    if is_unsupported or strays or inside or pattern.count(".") > 1:
        return None
    shift = 2 * pattern.count("%") - 3 * (len(commas) - len(grouping))
    return _Mask(whole, decimals, point, commas, bool(grouping), shift)


def _format_digits(value: Decimal, pattern: str, mask: _Mask) -> str | None:
    number = _rounded(value.scaleb(mask.shift), len(mask.decimals))
    whole, _, decimals = f"{number:f}".partition(".")
    texts = dict.fromkeys(mask.commas, "")
    decimal_count = len(decimals)
    while decimal_count and decimals[decimal_count - 1] == "0" and pattern[mask.decimals[decimal_count - 1]] != "0":
        decimal_count -= 1
    for index, place in enumerate(mask.decimals):
        texts[place] = decimals[index] if index < decimal_count else ""
    if mask.decimals and not decimal_count:
        texts[mask.point] = ""
    hidden = whole == "0" and (decimal_count or any(pattern[place] == "?" for place in mask.whole))
    zeros = next((len(mask.whole) - index for index, place in enumerate(mask.whole) if pattern[place] == "0"), 0)
    digits = ("" if hidden else whole).rjust(zeros, "0")
    if mask.whole:
        texts.update(_places(digits, mask))
    elif digits:
        texts[mask.point] = digits + texts.get(mask.point, ".")
    text = "".join(texts.get(place, sign) for place, sign in enumerate(pattern))
    return text if text.strip() else None


def _places(digits: str, mask: _Mask) -> dict[int, str]:
    """The digits before the point by place, from the last to the first, which takes what is left."""
    texts: dict[int, str] = {}
    offset = 0
    for place in reversed(mask.whole):
        left = len(digits) - offset
        take = left if place == mask.whole[0] else min(1, left)
        text = digits[left - take : left]
        if mask.grouped:
            text = "".join(
                f",{digit}"
                if (offset + len(text) - index) % 3 == 0 and offset + len(text) - index < len(digits)
                else digit
                for index, digit in enumerate(text)
            )
        texts[place] = text
        offset += take
    return texts


def _format_exponent(value: Decimal, pattern: str) -> str | None:
    match = _EXPONENT.search(pattern)
    if match is None or re.search(r"[0#?.,%]", pattern[: match.start()] + pattern[match.end() :]) or "," in match[1]:
        return None
    whole_mask, decimal_mask = match[1], match[2] or ""
    step = len(whole_mask)
    exponent = value.adjusted() // step * step if value else 0
    number = _rounded(value.scaleb(-exponent), len(decimal_mask))
    if number >= 10**step:
        exponent += step
        number = _rounded(value.scaleb(-exponent), len(decimal_mask))
    whole, _, decimals = f"{number:f}".partition(".")
    required_count = len(decimal_mask.rstrip("#?"))
    decimals = decimals[:required_count] + decimals[required_count:].rstrip("0")
    sign = "-" if exponent < 0 else "+" if match[3] == "+" else ""
    mantissa = whole.zfill(whole_mask.count("0")) + (f".{decimals}" if decimals else "")
    text = f"{mantissa}E{sign}{str(abs(exponent)).zfill(len(match[4]))}"
    return pattern[: match.start()] + text + pattern[match.end() :]


def _format_fraction(value: Decimal, pattern: str) -> str | None:
    match = _FRACTION.search(pattern)
    if match is None or re.search(r"[0#?.,%/]", pattern[: match.start()] + pattern[match.end() :]):
        return None
    whole_mask, between, _, below = match.groups()
    if below[0] in _PLACEHOLDERS:
        fraction = Fraction(value).limit_denominator(10 ** len(below) - 1)
        numerator, denominator = fraction.as_integer_ratio()
    else:
        denominator = int(below)
        numerator = int(_rounded(value * denominator, 0))
    if whole_mask is None:
        text = f"{numerator}/{denominator}"
    else:
        whole, numerator = divmod(numerator, denominator)
        pieces = [str(whole)] if whole or not numerator or "0" in whole_mask else []
        pieces += [f"{numerator}/{denominator}"] if numerator else []
        text = between.join(pieces)
    return pattern[: match.start()] + text + pattern[match.end() :]
