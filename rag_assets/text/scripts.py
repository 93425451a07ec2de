"""Ranges of characters by script, for character classes of regular expressions: named once, so that a rule says which
of them it means. No other module writes a range of letters beyond ASCII. And the ideographs that radicals stand for.
"""

HIRAGANA = "\u3041-\u309f"
KATAKANA_LETTERS = "\u30a1-\u30fa"  # without the mark of a long vowel, which also stands for a dash
KATAKANA = f"{KATAKANA_LETTERS}ー"
KATAKANA_AND_MARKS = f"{KATAKANA_LETTERS}\u30fc-\u30ff"  # with iteration marks
HALF_WIDTH_KATAKANA = "\uff66-\uff9d"
KANA = HIRAGANA + KATAKANA_AND_MARKS
IDEOGRAPHS = "\u3400-\u4dbf\u4e00-\u9fff"
KANJI = f"々{IDEOGRAPHS}"  # with the mark that repeats one
COMPATIBLE_HAN = "\uf900-\ufaff"
RARE_HAN = "\U00020000-\U0003ffff"  # the planes that Unicode keeps for ideographs
HAN = KANJI + COMPATIBLE_HAN + RARE_HAN
NAME_HAN = f"{KANJI}{COMPATIBLE_HAN}〇〆ヶ"  # as names are written
SPACELESS = f"{KANA}・{HAN}〇〆"  # words stand without blanks
HANGUL = "\uac00-\ud7af"
HALF_AND_FULL_WIDTH = "\uff00-\uffef"
FULL_WIDTH_LETTERS = "Ａ-Ｚａ-ｚ"
# beside which a line is joined to the next without a blank: signs and punctuation, too, but no Korean
CJK = f"\u2e80-\u303f{SPACELESS}\u3100-\u312f\u31f0-\u31ff{HALF_AND_FULL_WIDTH}"
# as wide as an ideograph: Chinese, Japanese and Korean with their signs
WIDE = f"\u2e80-\u9fff{HANGUL}{COMPATIBLE_HAN}{HALF_AND_FULL_WIDTH}{RARE_HAN}"
LATIN_CAPITALS = "A-ZÀ-ÖØ-Þ"
LATIN = "A-Za-zÀ-ÖØ-öø-ɏḀ-ỿ"
GREEK = "\u0370-\u03ff"
CYRILLIC = "\u0400-\u052f"
HEBREW = "\u05d0-\u05ea"
THAI = "\u0e01-\u0e5b"
ITEM_LETTERS = f"a-zA-Z{KATAKANA_LETTERS}"  # that number items, as in (a) and (ア)
RADICALS = "\u2e80-\u2fdf"  # which some fonts and programs give for ideographs
_SUPPLEMENT = (
    "⺁厂⺂乛⺃乚⺄乙⺅亻⺆冂⺇𠘨⺈刀⺉刂⺊卜⺋㔾⺌小⺍小⺎兀⺏尣⺐尢⺑𡯂⺒巳⺓幺⺔彑⺕彐⺖忄⺗心⺘扌⺙攵"
    "⺛旡⺜日⺝月⺞歺⺠民⺡氵⺢氺⺣灬⺤爫⺥爫⺦丬⺧牛⺨犭⺩王⺪𤴔⺫目⺬示⺭礻⺮𥫗⺯糹⺰纟⺱罓⺲罒⺳㓁⺴冗"
    "⺵𦉫⺶羊⺷𦍌⺸𦍋⺹耂⺺肀⺻聿⺼肉⺽𦥑⺾艹⺿艹⻀艹⻁虎⻂衤⻃覀⻄西⻅见⻆角⻇𧢲⻈讠⻉贝⻊𧾷⻋车⻌辶⻍辶"
    "⻎辶⻏邑⻐钅⻑長⻒镸⻓长⻔门⻕𨸏⻖阝⻗雨⻘青⻙韦⻚页⻛风⻜飞⻝食⻞𩙿⻟飠⻠饣⻡𩠐⻢马⻣骨⻤鬼⻥鱼⻦鸟"
    "⻧卤⻨麦⻩黄⻪黾⻫斉⻬齐⻭歯⻮齿⻯竜⻰龙⻱龜⻲亀"
)
# Those that NFKC leaves as they are, each with the ideograph that looks the same.
# Source: Unicode Character Database 14.0, EquivalentUnifiedIdeograph.txt.
RADICAL_IDEOGRAPHS = dict(zip(_SUPPLEMENT[::2], _SUPPLEMENT[1::2], strict=True))
