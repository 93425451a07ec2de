"""Cron expressions that Dagster takes, told without importing it, which takes seconds.

What stays out: when they come due, which is Dagster's.
"""

import re


def _field(value: str, *other_items: str) -> str:
    items = "|".join((rf"(\*|({value})(-({value}))?)(/0*[1-9]\d*)?", *other_items))
    return rf"({items})(,({items}))*"


_DAY = r"0*([1-9]|[12]\d|3[01])"
_WEEKDAY = "sun|mon|tue|wed|thu|fri|sat"
_OF_MONTH = rf"(([0-7]|({_WEEKDAY})(-({_WEEKDAY}))?)#[1-5]|l[0-7])"  # its second Monday, its last one
_FIELDS = {
    "minute": _field(r"0*[1-5]?\d"),
    "hour": _field(r"0*(1?\d|2[0-3])"),
    "day": rf"\?|{_field(_DAY, f'({_DAY}-)?l')}",  # the last one
    "month": _field("0*([1-9]|1[0-2])|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"),
    "weekday": rf"\?|{_field(f'0*[0-7]|{_WEEKDAY}')}|{_OF_MONTH}(,{_OF_MONTH})*",
}
_ALIASES = frozenset(("@hourly", "@daily", "@midnight", "@weekly", "@monthly", "@yearly", "@annually"))


def check_cron(expression: str) -> None:
    """Find out whether Dagster takes an expression.

    Raises:
        ValueError: It does not; the message names the field.
    """
    if expression.lower() in _ALIASES:
        return
    texts = expression.lower().split()
    if len(texts) != len(_FIELDS):
        raise ValueError(f"{expression!r}: expected the fields {', '.join(_FIELDS)}, as in '0 * * * *'")
    for text, (name, pattern) in zip(texts, _FIELDS.items(), strict=True):
        if not re.fullmatch(pattern, text, re.ASCII):
            raise ValueError(f"{expression!r}: {text!r} is no {name}")
    if re.fullmatch("3[01] 0*(2|feb)", " ".join(texts[2:4])):
        raise ValueError(f"{expression!r}: there is no such day")
