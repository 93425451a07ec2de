"""Whether quotes hold the number that a question is for: how many, a total, the most or least.

What stays out: numbers and rows that are told from whole tables (`table_rows`).
"""

import re
import unicodedata
from collections.abc import Sequence

from rag_assets.query.ask.tables.page_tables import IN_BRACKETS
from rag_assets.query.ask.tables.table_rows import COUNT_ASKED, OWN_COUNT, PEOPLE_ASKED
from rag_assets.text.cells import CELL_SIGN
from rag_assets.text.folding import fold_name
from rag_assets.text.language import is_japanese
from rag_assets.text.plain import is_total
from rag_assets.text.scripts import HAN, HIRAGANA, KATAKANA_AND_MARKS

_CIRCLED = re.compile("[①-⑳❶-❿]")  # which count lines
_NUMBER_OF_ROWS = re.compile(  # of what stands in rows, not of what one has, as 桁数
    r"(?P<noun>項目|カラム|列|フィールド|画面|機能|テーブル|ファイル|行|レコード)の?数?(?<=数)(?:は|を教えて(?:ください)?|(?:は|が)?(?:何|いくつ)(?:ですか)?)?[?？。]?$"
)
_SUM_IS_ASKED = re.compile(  # at its end, or as `いくら`
    rf"(?:合計|総計|総額)(?:金?額|費用?|[{HAN}]{{1,4}})?(?:は|を|が|って)?、?"
    rf"(?:(?:いくら|幾ら|何(?:万|千)?円|ど[のれ]くらい|教えて|知りたい)[{HIRAGANA}]*|(?:なの|なん)?ですか?|になりますか)?$"
)
_OF_TOTAL = re.compile("誰|だれ|どこ|いつ|場合|画面|方法|手順|理由")  # asked for, of a total
_MONEY_SAID = re.compile(r"[¥$€]\s?\d|[\d〇一二三四五六七八九十百千万億]\s?円")
_TOTAL_SAID = re.compile(
    r"(?:合\s?計|総計|総額|小計|(?<![集統設会時])計|\btotal|\bsum)[^|。\n]{0,24}(?:\|[^|\n]{0,8})?[\d〇一二三四五六七八九十百千万]"
    r"|(?:合\s?計|総計|総額|計|total)\s?\|",
    re.IGNORECASE,
)
_LEAST_SAMPLE = 2  # rows
_HOW_MANY = re.compile(r"\bhow many\b")
_FIGURE = re.compile(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|none|no)\b", re.IGNORECASE
)
_SAMPLED_SUM = re.compile("合計|総計|総額")
_SAMPLED_EXTREME = re.compile("一番|いちばん|最も|もっとも")
_ANY_UNIT = rf"(?![年月日時分秒章節条項号版頁第])(?:[{HAN}{KATAKANA_AND_MARKS}つ]|か所)"
_OTHER_FIGURE = r"[年月日時分秒週歳番章節条項号版頁第]|[ヶヵケカか箇]月|営業日|[百千万億]*\s?円"
_COUNTERS = "人名件個つ社台枚本冊点行基棟室席店箇"
_NO_WORD = rf"(?!(?!以[上下内]|程度|未満|前後)[{HAN}])"  # with it, as 件名
_NUMBERED_FIGURE = re.compile(  # as of `2010年`
    r"(?:^|(?<= \| )|(?<=\n))([^|:\n]*\d[^|:\n]*[^\W\d]): [\d.,]+(?=$|\n| \|)"
)


def are_sample(question: str, said: Sequence[str]) -> bool:
    """Whether the question is how many, for a sum, or the one with the most, and statements do not say it: they are a
    few rows of a table, or have no number of that unit.

    Args:
        question: The question.
        said: The statements, best first.
    """
    asked = IN_BRACKETS.sub("", fold_name(unicodedata.normalize("NFKC", question)).rstrip("?？。"))
    text = OWN_COUNT.sub(r"\1\2何件", re.sub("(?<=全部で)いくつ(?=です|$)", "何個", asked))
    plain = [unicodedata.normalize("NFKC", _CIRCLED.sub("・", sentence)) for sentence in said]
    rows = [line for sentence in plain for line in sentence.splitlines() if CELL_SIGN in line]
    count_match = COUNT_ASKED.search(text) or PEOPLE_ASKED.search(text)
    if count_match and re.search(rf"^[{HIRAGANA}?？。]*$|\bare there\b", text[count_match.end() :]):
        own_match = OWN_COUNT.search(asked)
        return not _says_number(text, count_match, plain, own_match[1] if own_match else "")
    if (number_match := _NUMBER_OF_ROWS.search(text)) and plain:
        noun = number_match["noun"]
        number = rf"{noun}(?:数|の数|は|が|:)[^|\n]{{0,12}}\d|\d\s?(?:{noun}|[件個つ])|総数: \d"
        return not any(re.search(number, fold_name(sentence)) for sentence in plain)
    if _SUM_IS_ASKED.search(text) and plain and not any(map(_TOTAL_SAID.search, plain)):
        return not any(_MONEY_SAID.search(sentence) for sentence in plain if CELL_SIGN not in sentence)
    if len(rows) < _LEAST_SAMPLE or CELL_SIGN not in plain[0]:
        return False
    if _HOW_MANY.search(text) and not _FIGURE.search(plain[0]):
        return True
    if _SAMPLED_SUM.search(text) and not _OF_TOTAL.search(text):
        parts = re.split(r" \| |\n", CELL_SIGN.join(plain))
        with_total = [row for row in rows if any(map(_names_total, re.findall(r"([^|:]+): ", row)))]
        values = [part.rpartition(": ")[2] for part in with_total[0].split(CELL_SIGN)] if len(with_total) == 1 else []
        is_named = any(len(value) > 1 and fold_name(value) in asked for value in values)  # the row, which has its own
        return not is_named and not any(_names_total(part.rpartition(": ")[2]) for part in parts)
    return _SAMPLED_EXTREME.search(text) is not None


def _names_total(cell: str) -> bool:
    return is_total(cell.strip()) and "平均" not in cell


def _says_number(text: str, count_match: re.Match[str], plain: Sequence[str], own_unit: str) -> bool:
    """Whether statements hold a number of what a question counts, beyond those that the question names."""
    unit = count_match["unit"]
    is_japanese_text = is_japanese(text)
    rows = [line for sentence in plain for line in sentence.splitlines() if CELL_SIGN in line]
    if not rows and not is_japanese_text:
        return True
    alike = "人名" if unit in {"人", "名"} else unit or "件"
    units = f"(?:[{alike}個つ]{f'|{re.escape(own_unit)}' if own_unit else ''})" if unit else _ANY_UNIT
    blank = r"\s?" if unit else ""
    figure = r"(?<![\d,.])(?<!最大)(?<!直近)(?<!上位)(?:\d[\d,]*|[〇一二三四五六七八九十百千万])"
    number = rf"{figure}{blank}{units}(?!ずつ|目|以[上下]|未満|まで|を?超)"
    number = number if unit else rf"^[^|]*{number}[^|]*$" if is_japanese_text else r"^[^|]*\d[^|]*$"
    counts = "" if unit in {"件", "行", "人", "名"} else "|数量"
    label_pattern = rf"(?:^|{re.escape(CELL_SIGN)})(?:[^|:]*(?:[{alike}]|の)数|総数{counts}|合?計): \W?\d"
    before = text[: count_match.start()]
    pattern = f"{label_pattern}|{_number_named(before)}"
    in_row, in_text = f"{number}|{pattern}", f"{_number_in_text(before, unit or '')}|{pattern}"
    labels = {fold_name(label) for sentence in plain for label in _NUMBERED_FIGURE.findall(sentence)}
    return any(label in text for label in labels) or any(
        match[0] not in text
        for sentence in plain
        for match in re.finditer(in_row if CELL_SIGN in sentence or not is_japanese_text else in_text, sentence)
    )


def _number_in_text(asked: str, unit: str) -> str:
    """Pattern of a number of things in a statement that is no row, of any unit (`12か所`, `最大10名`, `三部署`): no
    date, number of order or amount of money, and not `1件ずつ`.
    """
    counter = rf"[{_COUNTERS}{unit}]"
    nouns = re.findall(rf"[{HAN}{KATAKANA_AND_MARKS}]{{2,}}", asked)[-1:]
    named = "".join(f"|{re.escape(noun)}" for noun in nouns)
    one_by_one = rf"(?![1一]\s?[{HAN}{KATAKANA_AND_MARKS}つ]{{1,4}}ずつ)"
    digits = rf"(?<![\d,.A-Za-z第])\d[\d,]*[百千万億]*(?:\s{counter}{_NO_WORD}|(?!{_OTHER_FIGURE}){_ANY_UNIT})"
    words = rf"(?<![第統唯同])[〇一二三四五六七八九十百千万]+(?:{counter}{_NO_WORD}{named})"
    return rf"(?<!直近)(?<!上位){one_by_one}(?:{digits}|{words})(?!目)"


def _number_named(asked: str) -> str:
    """Pattern of a number that a row has for what is counted: below the last name before `何`, where this is one of a
    number, as 「社会増加数」 of 「社会増加数は何人」, or right behind what is told of it, as in 「停止525」.
    """
    names = re.findall(rf"[{HAN}{KATAKANA_AND_MARKS}]{{2,}}", asked)
    if not names:
        return "(?!)"
    below = (
        rf"{re.escape(names[-1])}[^|:\n]*: [\d.,]+(?=$|\n|{re.escape(CELL_SIGN)})"
        if names[-1][-1] in "数口計量"
        else "(?!)"
    )
    states = [name for name in dict.fromkeys(names[:-1]) if re.search(rf"{re.escape(name)}(?:に|し|され|中|済)", asked)]
    behind = [rf"{re.escape(name)}\d[\d,]*(?=$|[\s/|、。(（])" for name in states]
    return "|".join([below, *behind])
