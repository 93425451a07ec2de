"""Names: what cannot be one, what keeps two of them apart, and which of them a text declares to be names of one thing:
`以下「…」という`, `X（以下、Yと略す）`, `X (Y)` with Y an acronym.
"""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files

from rag_assets.text.folding import clean_name, fold_name
from rag_assets.text.plain import one_line
from rag_assets.text.scripts import HIRAGANA, KANA, NAME_HAN


@cache
def _lists() -> dict[str, str]:
    return tomllib.loads((files("rag_assets") / "graph" / "plain_words.toml").read_text("utf-8"))


def plain_words(name: str) -> frozenset[str]:
    """Words, in lower case, of a list in `plain_words.toml`: no names, whatever the documents are about."""
    return frozenset(_lists()[name].split())


LONGEST_CHARS = 60
_LONGEST_WIDE_CHARS = 32
_LONGEST_WORDS = 8

_WIDE = re.compile(f"[{KANA}{NAME_HAN}]")

_NUMBER_WORDS = (
    r"[\d.,:/+\-~%°#*=×±()\s年月日時分秒件個回桁行列章節項版第号本枚歳円万億兆千百以上下未満約度目まで〜～①-⑳]+"
    r"|[\d\s]*(?:st|nd|rd|th|pt|px|mm|cm|km|kg|kb|mb|gb|tb|dpi|usd|jpy)"
)
_NUMBER = re.compile(_NUMBER_WORDS, re.IGNORECASE)
_MONTHS = "jan|feb|mar|apr|may|jun|jul|aug|sep|sept|oct|nov|dec"
_LONG_MONTHS = "january|february|march|april|june|july|august|september|october|november|december"
_DAYS = "mon|tue|wed|thu|fri|sat|sun|monday|tuesday|wednesday|thursday|friday|saturday|sunday"
_DATE_WORDS = re.compile(
    rf"(?:(?:{_MONTHS}|{_LONG_MONTHS}|{_DAYS}|q[1-4]|h[12]|[cf]y|ad|bc|am|pm|today|yesterday|tomorrow|\d+(?:st|nd|rd|th)?)"
    r"[\s,.\-/]*)+",
    re.IGNORECASE,
)
_QUARTER = re.compile(r"(?:[cf]y|q|h)\d{1,4}(?:[cf]y|q|h)?\d{0,4}", re.IGNORECASE)
_ERA = re.compile("(?:明治|大正|昭和|平成|令和)(?:[0-9〇一二三四五六七八九十元]+年?.*)?")
_TEMPLATE = re.compile(
    r"[\[［<＜{].*[\]］>＞}]|.*[\[［<＜{][^\[\]]*[\]］>＞}].*[\[［<＜{].*|[xX〇○●◯*＊ＸAＡ9０9\-_/.:,\s]+|(.)\1{2,}|(.)\2+\s.*"
)
_NOT_A_NAME = re.compile(  # a contraction, what has been cut, one name twice, a sum, a pointer
    r".*-|(?:when|if|how|why|what|where|who|while|because|whether) .*|\S.* (?:via|of|for|by|and|or|the|from)"
    r"|.*['’](?:ll|m|ve|re|d|t)(?:\s.*)?|(\S.*) \1|(?:sub|grand )totals?(?:\s.*)?|totals? (?:\(|of\b).*|合計|小計"
    r"|総計|総合計|(?:section|appendix|annex|chapter|figure|fig\.?|table|page|article|clause|paragraph|step|note|exhibit"
    r"|proposition|theorem|lemma|definition|equation|algorithm|example)"
    r"s? (?:\d[\d.\-]*[a-z]?|[a-z]|[ivxlc]+)(?:-[a-z])?"
    r"|(?:上記|下記|左記|別紙|別途|同上)(?:を?参照)?|all rights reserved"
)
_KANJI_DIGITS = "〇一二三四五六七八九十百千"
_NUMBERED_PART = f"(?:第?[\\d{_KANJI_DIGITS}①-⑳⑴-⒇]++(?:条|項|号|章|節|編|款|目|部)?+|[イロハニホヘトチリヌ⒜-⒵])"
_POINTER = re.compile(  # to an article of a law or a part of the text, where it is not said of which
    f"(?:(?:同|前|次|本|各|当該)?(?:法|令|規則|告示|省令|政令|附則|別表|別紙|様式|[条項号])?{_NUMBERED_PART}(?:の?{_NUMBERED_PART})*+)++"
    "(?:関係)?|(?:同|前|次|本|各)[条項号章節]|(?:本|当|当該|同|各|貴|弊)(?:報告書|書類?|資料|文書|規則|規程|法律?|制度|社|行|局|省|庁|会|市"
    "|市町村|各?市区町村|都道府県|機構|システム|サービス|機能|画面|契約|案件|事業|要領|要綱|基準|手順|内)"
)
_LETTER = re.compile(r"[^\W\d_]")
_CLAUSE = re.compile(
    f"[☐☑☒→←⇒↔※「」『』【】|、]|[をがはも](?![{HIRAGANA}]{{0,2}}$)|[。？！?!]|して|する|した|され|れる|ない|こと|ため|とき|場合|など|です|ます|である"
    "|という|となる|これまで|ところ|もの(?:$|の)|^係る|及び(?!.*(?:法|法律|令|規則)$)|および|又は|または|ならびに|について|における|によ"
)
_VERB_END = re.compile("[るたいうくすつぬむぐぶだにでとへてか]$")
_HIRAGANA_NAME = re.compile(f"[{HIRAGANA}]+")
_STOPS = plain_words("labels_en") | plain_words("labels_ja") | plain_words("demonyms_en")

_DIGIT_TOKEN = re.compile(r"[a-z]*\d[a-z0-9]*(?:[._\-]\d+)*")
_KANJI_NUMBER = re.compile(f"[{_KANJI_DIGITS}]+")
_SINGLE_LETTER = re.compile(r"(?<![a-z0-9'])[a-z](?![a-z0-9'])")
_ROMAN = re.compile(r"(?<![a-z0-9])(?=[ivx]+(?![a-z0-9]))(?:x{0,3})(?:ix|iv|v?i{0,3})(?![a-z0-9])")

_ACRONYM = re.compile("[A-Z]{2,8}")
_SMALL_WORDS = frozenset({"a", "an", "and", "for", "in", "of", "on", "the", "to", "with"})

CODE = re.compile(
    r"(?<![A-Za-z0-9_./\-])"
    r"(?=[A-Z0-9_\-]{0,40}\d)(?=[A-Z0-9_\-]{0,40}[A-Z])"
    r"[A-Z][A-Z0-9]*(?:[_\-][A-Z0-9]+)*"
    r"(?![A-Za-z0-9_]|[-/:.][A-Za-z0-9])"
)
_WORD = re.compile(r"(?=[A-Z]*[AEIOUY])[A-Z]{4,}-[1-9]\d?")  # with a number, as a storm or a mission has
_KEY = re.compile(r"(?=.*\d)(?=.*[A-Z])[A-Z0-9]+(?:[_\-][A-Z0-9]+)*")
_CELL_REFERENCE = re.compile(r"[A-Z]{1,3}[1-9]\d{0,3}")


@lru_cache(maxsize=1 << 17)
def is_name(text: str) -> bool:
    """Whether a text can be the name of something: short, no number or date, no placeholder, no clause, no label."""
    key = fold_name(text)
    if not _LETTER.search(key) or len(key) > LONGEST_CHARS or key in _STOPS:
        return False
    if _NUMBER.fullmatch(key) or _DATE_WORDS.fullmatch(key) or _QUARTER.fullmatch(key) or _ERA.fullmatch(key):
        return False
    if _TEMPLATE.fullmatch(clean_name(text)) or _TEMPLATE.fullmatch(key) or key[0] in "[<{" or _POINTER.fullmatch(key):
        return False
    if _NOT_A_NAME.fullmatch(key):
        return False
    wide = len(_WIDE.findall(key))
    if any(key.count(opening) != key.count(closing) for opening, closing in ("()", "[]", "{}")):
        return False
    if not wide:
        return len(key) >= 2 and not _CLAUSE.search(key) and len(key.split()) <= _LONGEST_WORDS
    if len(key) < 2 or wide > _LONGEST_WIDE_CHARS or _CLAUSE.search(key):
        return False
    return not (_VERB_END.search(key) or (_HIRAGANA_NAME.fullmatch(key) and len(key) < 3))


def is_code(text: str) -> bool:
    """Whether a text is a code such as `E0004` or `W11AA01`: four capitals and digits or more, two of them digits."""
    digits = sum(character.isdigit() for character in text)
    long_enough = digits >= 2 and len(text) >= 4
    return (
        bool(CODE.fullmatch(text)) and long_enough and not (_QUARTER.fullmatch(text.lower()) or _WORD.fullmatch(text))
    )


def is_key(text: str) -> bool:
    """Whether a text in a naming column is a code, where one may also begin with a figure, as in `41AA`."""
    return is_code(text) or (len(text) >= 3 and bool(_KEY.fullmatch(text)))


def is_cell_reference(text: str) -> bool:
    """Whether a text may be the reference of a spreadsheet cell, as in `AC48`."""
    return bool(_CELL_REFERENCE.fullmatch(text))


@lru_cache(maxsize=1 << 17)
def distinguishing_marks(key: str) -> tuple[str, ...]:
    """What tells names of one pattern apart: figures with the letters on them, numerals, single letters, in order.

    Names with different marks never are one (`E0004` and `E0005`, `v1` and `v2`, 第1章 and 第2章, チームA and チームB).
    """
    marks = [(match.start(), match[0]) for match in _DIGIT_TOKEN.finditer(key)]
    rest = _DIGIT_TOKEN.sub(lambda match: " " * len(match[0]), key)
    marks += [(match.start(), match[0]) for match in _SINGLE_LETTER.finditer(rest)]
    marks += [(match.start(), f"roman {match[0]}") for match in _ROMAN.finditer(rest) if match[0]]
    marks += [(match.start(), f"kanji {match[0]}") for match in _KANJI_NUMBER.finditer(rest)]
    return tuple(mark for _, mark in sorted(set(marks)))


def may_be_one(first: str, second: str) -> bool:
    """Whether nothing in two folded names says that they are of different things."""
    return distinguishing_marks(first) == distinguishing_marks(second)


def is_part_of_name(shorter: str, longer: str) -> bool:
    """Whether a person's name is only part of another: a surname or a given name says too little to tell a person."""
    words, longer_words = set(shorter.split()), set(longer.split())
    if words < longer_words:
        return True
    if _WIDE.search(shorter):
        return len(shorter) < len(longer) and (longer.startswith(shorter) or longer.endswith(shorter))
    return False


def is_acronym_of(short: str, long: str) -> bool:
    """Whether a short name is made of the first letters of the words of a longer one; small words may be passed over.

    As in `SSO` of `single sign-on`.
    """
    if not _ACRONYM.fullmatch(short):
        return False
    words = [word for word in re.split(r"[\W_]+", long.casefold()) if word]
    large = [word for word in words if word not in _SMALL_WORDS]
    return any("".join(word[0] for word in choice) == short.casefold() for choice in (words, large))


_FULL = r"(?P<full>[^\s、。，．,.;；:：「」『』()（）\n]{2,40})"
_BEGIN = r"以下[、,\s]*(?:単に)?"
_CALLED = r"と(?:いう|略す|呼ぶ|称する|記す|表記する|する|略記する)"
_QUOTED = r"[「『\"](?P<alias>[^」』\"\n]{1,30})[」』\"]"
_BARE = r"(?P<alias>[^「」『』()（）\n、。]{1,30}?)"
_ENGLISH_WORDS = r"(?:the |hereinafter |hereafter |referred to as |also known as |\"|“|')+"
_DECLARED = (
    re.compile(rf"{_FULL}\s*[(（]\s*{_BEGIN}{_QUOTED}(?:{_CALLED}。?)?\s*[)）]"),
    re.compile(rf"{_FULL}\s*[(（]\s*{_BEGIN}{_BARE}(?:{_CALLED})?。?\s*[)）]"),
    re.compile(rf"{_FULL}を[、,\s]*{_BEGIN}{_QUOTED}と(?:いう|略|呼|称|記|表記|する)"),
    re.compile(
        rf"[「『](?P<full>[^」』\n]{{2,40}})[」』]\s*[(（]\s*{_BEGIN}[「『]?{_BARE}[」』]?(?:{_CALLED})?。?\s*[)）]"
    ),
    re.compile(
        rf"(?P<full>[A-Z][\w&'.\-]*(?: [\w&'.\-]+){{0,7}}) "
        rf"\({_ENGLISH_WORDS}(?P<alias>[A-Z][\w&.\- ]{{0,30}}?)[\"”']?\)"
    ),
)
_WITH_ACRONYM = re.compile(r"(?P<full>[A-Za-z][\w'\-]*(?:[ \-][\w'\-]+){1,9}) ?[(（](?P<alias>[A-Z]{2,8})s?[)）]")
_EXPANDED = re.compile(r"(?P<alias>\b[A-Z]{2,8}) ?[(（](?P<full>[A-Za-z][\w'\-]*(?:[ \-][\w'\-]+){1,9})[)）]")
_LEADING = re.compile(
    rf"^.*(?:である|という|における|のうち|による|された|する|した|には|では|は|が|を|に|と|で|も|や)(?=[^{HIRAGANA}])"
)
_ARTICLES = re.compile(r"^(?:the|a|an)\s+", re.IGNORECASE)
_DEICTIC = re.compile("^(?:本|当|同|該|該当|前|後|上|下|左|右|新|旧|甲|乙|丙|丁|これ|それ|弊|貴|御).{0,6}$")


@dataclass(frozen=True, slots=True)
class Alias:
    """A declaration that one name stands for another."""

    full: str
    alias: str
    start: int  # where the name in full begins in the text
    evidence: str  # the words that declare it


def declared_aliases(text: str) -> Iterator[Alias]:
    """Declarations in a text.

    Names that only point (本システム, 当社, 甲) are left out: they mean another thing in each document.
    """
    seen_keys: set[tuple[str, str]] = set()
    for form in (*_DECLARED, _WITH_ACRONYM, _EXPANDED):
        for match in form.finditer(text):
            alias = clean_name(match["alias"])
            full = _full_name(match["full"], alias if form in {_WITH_ACRONYM, _EXPANDED} else "")
            key = (fold_name(full), fold_name(alias))
            usable = bool(full) and is_name(full) and is_name(alias) and not _DEICTIC.match(alias)
            if usable and key[0] != key[1] and key not in seen_keys:
                seen_keys.add(key)
                start = text.find(full, match.start("full"))
                yield Alias(full, alias, start, one_line(match[0]))


def _full_name(text: str, acronym: str) -> str:
    """The name in full, without the words before it."""
    if not acronym:
        return clean_name(_ARTICLES.sub("", _LEADING.sub("", text)))
    words = text.split(" ")
    endings = (" ".join(words[first:]) for first in range(len(words) - 1, -1, -1))
    return next((ending for ending in endings if is_acronym_of(acronym, ending)), "")
