"""Ranges of characters by script, for character classes of regular expressions: named once, so that a rule says which
of them it means.
"""

HIRAGANA = "\u3041-\u309f"
KATAKANA = "\u30a1-\u30fa\u30fc"  # letters and the mark of a long vowel
KATAKANA_AND_MARKS = "\u30a1-\u30fa\u30fc-\u30ff"  # with iteration marks
KANA = HIRAGANA + KATAKANA_AND_MARKS
KANJI = "々\u3400-\u4dbf\u4e00-\u9fff"
COMPATIBLE_HAN = "\uf900-\ufaff"
RARE_HAN = "\U00020000-\U0003134f"
HAN = KANJI + COMPATIBLE_HAN + RARE_HAN
NAME_HAN = f"{KANJI}{COMPATIBLE_HAN}〇〆ヶ"  # as names are written
SPACELESS = f"\u3005-\u3007\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff{COMPATIBLE_HAN}"  # words stand without blanks
