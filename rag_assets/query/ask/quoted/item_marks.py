"""Marks of list items (`・`, `(1)`, `イ`, `2.`) and whether one counts on from another."""

import re
import unicodedata

from rag_assets.text.scripts import ITEM_LETTERS, KATAKANA_LETTERS

_BULLETS = "・•●○◦■□◆◇▪‣►▶➢✓*-"
ITEM = re.compile(
    rf"^(?:[{_BULLETS}]|[(（]?\d{{1,2}}[.)）．](?!\d)|[①-⑳]|[(（][{ITEM_LETTERS}一二三四五六七八九十]{{1,2}}[)）]"
    rf"|(?:[{KATAKANA_LETTERS}]|[一二三四五六七八九十]{{1,2}})[\s.．)）](?=\S)|[A-Za-z][.．)）](?!\w?[.．])"
    r"|(?:\d{1,2}|[一二三四五六七八九])[つ点]目)\s*"
)
_DIGITS = re.compile(r"\d+")
_KANJI_DIGITS = "一二三四五六七八九"
KANJI_NUMBERS = (  # from 1 to 99
    *_KANJI_DIGITS,
    *(f"{tens}十{ones}" for tens in ("", *_KANJI_DIGITS[1:]) for ones in ("", *_KANJI_DIGITS)),
)
_KANA_ORDER = tuple("アイウエオカキクケコサシスセソタチツテトナニヌネノハヒフヘホマミムメモヤユヨラリルレロワヲン")
_LETTERS = tuple("abcdefghijklmnopqrstuvwxyz")


def counts_on(item: str, line: str) -> bool:
    """Whether a line is the item after another one: with the same bullet, or the next number or letter in its form."""
    mark, next_mark = (match[0].strip() if (match := ITEM.match(text)) else "" for text in (item, line))
    if not mark or not next_mark:
        return False
    if mark[0] in _BULLETS:
        return next_mark == mark
    (form, number), (following_form, following_number) = (form_and_number(item_mark) for item_mark in (mark, next_mark))
    return form == following_form and following_number == number + 1


def is_first_item(line: str) -> bool:
    """Whether a line is an item with a bullet, or the first number or letter."""
    match = ITEM.match(line)
    mark = match[0].strip() if match else ""
    return bool(mark) and (mark[0] in _BULLETS or form_and_number(mark)[1] in {0, 1})


def form_and_number(mark: str) -> tuple[str, int]:
    """A mark with `#` for its number, or the first of its kind for its letter, and that: digits, kanji numerals, or the
    place of a letter.
    """
    plain = unicodedata.normalize("NFKC", mark)
    if digits := _DIGITS.search(plain):
        return plain.replace(digits[0], "#"), int(digits[0])
    body = plain.strip("().． 、")
    order = next((order for order in (KANJI_NUMBERS, _KANA_ORDER, _LETTERS) if body.lower() in order), ())
    return plain.replace(body, order[0] if order else "#"), order.index(body.lower()) if order else -1
