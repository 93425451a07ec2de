"""How text is folded for comparison, on both sides, as documents write it and as a query does: names, the terms of the
full-text index, and the words that carry what a text says. Japanese and English may be mixed in one sentence.

Names are put in NFKC and lower case, with blanks and hyphens made one (`fold_name`).

Terms of full-text search (`search_terms`, `query_terms`). Index and query are analysed by one function, and the index
splits at blanks only; so nothing in a query can be taken for query syntax. Text is put in NFKC and lower case. Of
Chinese and Japanese characters overlapping pairs are terms, and each ideograph besides: pairs need no dictionary, so
that names and new words are found, and single ideographs let short words match. Hiragana alone carries grammar and is
left out as single characters. Words in other scripts are terms as they stand, and compound identifiers (`clientName`,
`client_name`) also in their parts, so that both the exact form and the plain word are found, the exact form with more
weight. A date with its year, in figures or as in 2024年4月1日 and 令和6年4月1日, is a term besides, in one form.
Inflection is left to the vectors: there is no stemming.

Words that carry what a text says (`content_words`), without particles, articles, auxiliaries and endings. Of Japanese
and Chinese, runs of ideographs are words, compared by their overlapping pairs of characters, and runs of katakana, by
threes, so that a compound shares with its parts. Hiragana is left out. Other words are compared by their first letters,
so that inflection makes no difference; identifiers by their parts; numbers and codes only as a whole. Single letters
are no words.

What stays out: what can be a name (`rag_assets.graph.names`), and scoring, which is BM25 in LanceDB.

Source: characters and pairs: J. Savoy, Comparative study of monolingual and multilingual search models for use with
Asian languages, ACM TALIP 4(2), 2005, and R. Luk and K. Kwok, A comparison of Chinese document indexing strategies,
ACM TALIP 1(3), 2002. Words by their first five letters: F. Can and others, Information retrieval on Turkish texts,
JASIST 59(3), 2008, where this comes near to stemming by a dictionary.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence, Set
from enum import StrEnum
from functools import lru_cache
from itertools import islice

from rag_assets.text.plain import one_line
from rag_assets.text.scripts import HAN, KANA, KATAKANA, KATAKANA_AND_MARKS, NAME_HAN

# Names.
_DASHES = re.compile("[\u2010-\u2015\u2212\u207b\ufe63\uff0d]")
_WIDE_BLANK = re.compile(f"(?<=[{KANA}{NAME_HAN}]) +| +(?=[{KANA}{NAME_HAN}])")
_LETTER_HYPHEN = re.compile(r"(?<=[^\W\d_])-(?=[^\W\d_])")
_LAST_LONG_VOWEL = re.compile(f"(?<=[{KATAKANA}]{{3}})ー(?![{KATAKANA}])")
_QUOTES = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "･": "・"})
_EDGES = " \t\u3000、。,.;:・･!?！？「」『』【】〔〕《》〈〉\"'“”‘’*※◆■□●○◎▼▽△▲→←⇒|/"
_OPENED = {"(": ")", "（": "）", "[": "]", "［": "］", "<": ">", "＜": "＞", "{": "}"}

# Terms of the full-text index.
QUERY_TERMS = 512
_QUERY_CHARS = 8 * QUERY_TERMS
_WORD_CHARS = 64  # longer ones are data, not words; their beginning still finds them
_IDEOGRAPHS = f"{HAN}〆"
_COUNTED = re.compile(  # no code, as IP1 of IP1個
    rf"(?<![A-Za-z\d_.-])([A-Za-z]{{2,16}})(?=\d{{1,3}}[個台本件つ枚人名回社](?![{HAN}{KATAKANA}]))"
)
_RUN = re.compile(rf"(?P<cjk>[{_IDEOGRAPHS}{KANA}]+)|(?P<word>[^\W{_IDEOGRAPHS}{KANA}]+)")
_IDEOGRAPH = re.compile(f"[{_IDEOGRAPHS}]")
_WIDE = re.compile(f"[{_IDEOGRAPHS}{KANA}]")
_IDENTIFIER = re.compile(r"_|(?=.{3}).*\d")
_TERM_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W_a-zA-Z0-9]+")
_COMPOUND = re.compile(r"_|[a-z][A-Z]")

# Years, by the names and letters of eras, the last year of the Western calendar before each, and the years that it had.
_ERAS = {"明治": (1867, 45), "大正": (1911, 15), "昭和": (1925, 64), "平成": (1988, 31), "令和": (2018, 99)}
_ERA_LETTERS = {"S": "昭和", "H": "平成", "R": "令和"}
_ERA_YEAR = re.compile(
    r"(?P<era>明治|大正|昭和|平成|令和)(?P<year>\d{1,2}|元)年|(?<![\w-])(?P<letter>[SHR])(?P<number>\d{1,2})(?=年度|年\d{1,2}月)"
)
_WESTERN_YEAR = re.compile(r"(?<!\d)(?:18|19|20)\d\d(?=年)")
_MONTH, _DAY = "1[0-2]|0?[1-9]", "3[01]|[12]\\d|0?[1-9]"
FULL_DATE = re.compile(  # the year, of an era behind its name, then month and day; figures with one sign between them
    rf"(?<!\d)(?:((?:19|20)\d\d)|({'|'.join(_ERAS)}) ?(\d{{1,2}}|元)) ?年 ?({_MONTH}) ?月 ?({_DAY}) ?日"
    rf"|(?<![A-Za-z\d])(?<!\d\.)((?:19|20)\d\d)(?P<sign>[./-])({_MONTH})(?P=sign)({_DAY})(?!\d|,\d|(?P=sign)\d)"
    rf"|(?<![A-Za-z\d])([{''.join(_ERA_LETTERS)}])(\d{{1,2}})(?P<mark>[./])({_MONTH})(?P=mark)({_DAY})(?!\d|,\d|(?P=mark)\d)"
)
_SIGNS = frozenset("./-")
_DATE_IN_FIGURES = re.compile(r"(?<!\d)((?:19|20)\d\d)(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])(?!\d)")

# Words that carry what a text says.
_OTHER = rf"[^\W_{HAN}{KANA}]"
_WORD = re.compile(
    rf"(?P<number>(?<!{_OTHER})\d+(?:[.,:/]\d+)*(?!{_OTHER}))"
    rf"|(?P<ideographs>[{HAN}]+)|(?P<katakana>[{KATAKANA_AND_MARKS}]+)|(?P<letters>{_OTHER}+)"
)
_WIDE_CHARACTER = re.compile(f"[{HAN}{KATAKANA_AND_MARKS}]")
_NARROW_WORD = re.compile(
    rf"(?P<number>(?<!{_OTHER})\d+(?:[.,:/]\d+)*(?!{_OTHER}))"
    rf"|(?P<katakana>(?<![{KATAKANA_AND_MARKS}])[{KATAKANA_AND_MARKS}]{{2}}(?![{KATAKANA_AND_MARKS}]))|(?P<letters>{_OTHER}+)"
)
_AS_IT_STANDS = re.compile(f"[{HAN}]{{1,2}}|[{KATAKANA_AND_MARKS}]|[{KATAKANA_AND_MARKS}]{{3}}")
_WORD_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_ASKED_CHARACTERS = "何誰幾"
_ASKED = re.compile(f"[{_ASKED_CHARACTERS}]")
_COMPARED = 5  # letters of a word
_EMPTY = frozenset(
    re.findall(
        "[a-z]+",
        "a an the and or but nor so if then than as of to in on at for with by from about into over under out up down "
        "per via not no yes me my you your we us our they them their he him his she her it its this that these those "
        "there here what which who whom whose when where why how is are was were be been being am do does did done "
        "can could would should will shall may might must have has had get please tell each any some all also very "
        "more most much many such other own same both only just stand mean",
    )
)


@lru_cache(maxsize=1 << 17)
def fold_name(name: str) -> str:
    """A name as names are compared: NFKC, lower case, blanks and hyphens made one, a last long-vowel mark left out.

    Blanks beside Japanese characters go, others are one each. A hyphen between letters is a blank (`e-mail`); one
    beside a digit stays, because it may be part of a code. The long-vowel mark goes at the end of a katakana word of
    four characters or more (サーバー), where usage varies; shorter words differ by it.

    Returns:
        The folded name; empty where nothing but punctuation is left. Folding twice changes nothing.
    """
    text = _DASHES.sub("-", unicodedata.normalize("NFKC", name).translate(_QUOTES)).casefold()
    text = one_line(unicodedata.normalize("NFKC", text))
    text = _WIDE_BLANK.sub("", _LETTER_HYPHEN.sub(" ", _stripped(text)))
    return _LAST_LONG_VOWEL.sub("", text)


def clean_name(name: str) -> str:
    """A name as it is shown: one line, without the brackets, bullets and punctuation around it."""
    text = one_line(name)
    return _WIDE_BLANK.sub("", _stripped(text))


def _stripped(text: str) -> str:
    before = None
    while before != text:
        before = text
        text = text.strip(_EDGES)
        if len(text) > 1 and _OPENED.get(text[0]) == text[-1] and text[0] in "(（":
            text = text[1:-1]
        for opening, closing in _OPENED.items():
            if text.endswith(closing) and opening not in text:
                text = text[:-1]
            if text.startswith(opening) and closing not in text:
                text = text[1:]
    return text


class TermKind(StrEnum):
    """What a term of a query is, as far as can be told by its characters: how much it says differs."""

    IDENTIFIER = "identifier"  # letters with digits, long numbers, words joined by a line, as programs write them
    WORD = "word"
    PAIR = "pair"  # of Chinese and Japanese characters
    CHARACTER = "character"  # one of them


def search_terms(text: str) -> str:
    """The terms of a text, parted by blanks: its dates, then all in their order."""
    return " ".join(_terms(text))


def query_terms(text: str) -> str:
    """The distinct terms of a query, parted by blanks; of very long ones the first `QUERY_TERMS`.

    Text far beyond what a person types (a pasted document) is cut, so that it costs no more than a long question.
    """
    plain = _COUNTED.sub(r"\1 ", unicodedata.normalize("NFKC", text[:_QUERY_CHARS]))
    return " ".join(islice(dict.fromkeys(_terms(plain)), QUERY_TERMS))


def kind_of(term: str) -> TermKind:
    """The kind of a term of `query_terms`."""
    if _WIDE.match(term):
        return TermKind.CHARACTER if len(term) == 1 else TermKind.PAIR
    return TermKind.IDENTIFIER if _IDENTIFIER.search(term) else TermKind.WORD


def _terms(text: str) -> Iterator[str]:
    plain = unicodedata.normalize("NFKC", text)
    yield from _dates(plain)
    for match in _RUN.finditer(plain):
        run = match.group()
        if match.lastgroup == "cjk":
            yield from _cjk_terms(run)
        else:
            yield from _word_terms(run.strip("_")[:_WORD_CHARS])


def _dates(plain: str) -> Iterator[str]:
    """The dates of a text, each as `2024/04/01`."""
    yield from filter(None, map(_date, FULL_DATE.finditer(plain)))
    yield from map("/".join, _DATE_IN_FIGURES.findall(plain))


def _date(match: re.Match[str]) -> str:
    """A date as `2024/04/01`; empty where its era had no such year."""
    *year, month, day = (part for part in match.groups() if part and part not in _SIGNS)
    western = int(year[0]) if len(year) == 1 else _western_year(_ERA_LETTERS.get(year[0], year[0]), year[1])
    return f"{western}/{int(month):02}/{int(day):02}" if western else ""


def _western_year(era: str, year: str) -> int:
    """The Western year of one of an era; 0 where the era had none such."""
    before, count = _ERAS[era]
    number = 1 if year == "元" else int(year)
    return before + number if 0 < number <= count else 0


def _cjk_terms(run: str) -> Iterator[str]:
    if len(run) == 1:
        yield run
        return
    for index, character in enumerate(run):
        if _IDEOGRAPH.match(character):
            yield character
        if index + 1 < len(run):
            yield run[index : index + 2]


def _word_terms(word: str) -> Iterator[str]:
    if not word:
        return
    yield word.lower()
    if _COMPOUND.search(word):
        for part in _TERM_PART.findall(word):
            if len(part) > 1:
                yield part.lower()


def years_otherwise(text: str) -> list[str]:
    """The years of a text in the other calendar, Western or of Japanese eras: `2026年` for `令和8年` and `R8年度`,
    `平成31年` and `令和元年` for `2019年`.
    """
    plain = unicodedata.normalize("NFKC", text)
    western_years = (
        _western_year(match["era"] or _ERA_LETTERS[match["letter"]], match["year"] or match["number"])
        for match in _ERA_YEAR.finditer(plain)
    )
    years = [f"{year}年" for year in western_years if year]
    for match in _WESTERN_YEAR.finditer(plain):
        for era, (before, count) in _ERAS.items():
            if 0 < (year := int(match[0]) - before) <= count:
                years.append(f"{era}{'元' if year == 1 else year}年")
    return years


def content_words(text: str) -> list[tuple[str, ...]]:
    """The words that carry what a text says, in their order, each as the terms by which it is compared; a date is one.

    Of very long ones, which are data, those of their beginning.
    """
    plain = FULL_DATE.sub(lambda match: f" {_date(match) or match[0]} ", _plain(text))
    words = (word for match in _WORD.finditer(plain) for word in _words(match.lastgroup, match.group()))
    return [word[:_WORD_CHARS] for word in words]


def content_terms(text: str) -> frozenset[str]:
    """All terms of a text, and each ideograph by itself, as which a short word is compared."""
    plain = _plain(text)
    terms = {character for character in set(plain) if _is_wide(character)}
    terms.difference_update(_ASKED_CHARACTERS)
    terms.update(_dates(plain))
    for match in _WORD.finditer(plain):
        for word in _words(match.lastgroup, match.group()):
            terms.update(word)
    return frozenset(terms)


def is_wide(words: list[tuple[str, ...]]) -> bool:
    """Whether any of the words is Japanese or Chinese."""
    return any(_is_wide(word[0]) for word in words)


def held_share(words: list[tuple[str, ...]], terms: Set[str]) -> float:
    """Share of words that a text holds, by its terms; of a word that is held in part, that part. 0 without words."""
    return sum(sum(term in terms for term in word) / len(word) for word in words) / max(1, len(words))


def shares_held(words: Sequence[tuple[str, ...]], text: str) -> list[float]:
    """Of each word the share that a text holds, as `held_share` by its `content_terms`, without all of these."""
    plain = _plain(text)
    narrow: frozenset[str] | None = None
    shares = []
    for word in words:
        count = 0
        for term in word:
            if _is_sought_as_it_stands(term):
                count += term in plain
            else:
                narrow = _narrow_terms(plain) if narrow is None else narrow
                count += term in narrow
        shares.append(count / len(word))
    return shares


def _narrow_terms(plain: str) -> frozenset[str]:
    """The terms of a text but for pairs of ideographs and threes of katakana."""
    terms = set(_dates(plain))
    for match in _NARROW_WORD.finditer(plain):
        for word in _words(match.lastgroup, match.group()):
            terms.update(word)
    return frozenset(terms)


@lru_cache(maxsize=1 << 14)
def _is_sought_as_it_stands(term: str) -> bool:
    """Whether a term is in `content_terms` of a text wherever it stands in it: parts of a run of any length are."""
    return _AS_IT_STANDS.fullmatch(term) is not None


def _plain(text: str) -> str:
    return _THOUSANDS.sub("", unicodedata.normalize("NFKC", text))


@lru_cache(maxsize=1 << 16)  # the same words come again and again
def _words(kind: str | None, run: str) -> tuple[tuple[str, ...], ...]:
    """The words of a run of characters of a kind, a group of `_WORD`."""
    match kind:
        case "number":
            return ((run,),)
        case "ideographs":
            return tuple(_parts(piece, 2) for piece in _ASKED.split(run) if piece)
        case "katakana":
            return (_parts(run, 3),)
        case _:
            return tuple(_letters(run))


def _letters(word: str) -> list[tuple[str, ...]]:
    """An identifier in its parts, a code as a whole; nothing of empty words."""
    if any(character.isdigit() for character in word):
        return [(word.casefold(),)]
    parts = [part.casefold() for part in _WORD_PART.findall(word)]
    return [(_singular(part)[:_COMPARED],) for part in parts if len(part) > 1 and part not in _EMPTY]


def _singular(word: str) -> str:
    """A word without the s of the plural; others than English words lose theirs wherever they stand, too."""
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def _parts(run: str, length: int) -> tuple[str, ...]:
    return tuple(run[place : place + length] for place in range(max(1, len(run) - length + 1)))


@lru_cache(maxsize=1 << 14)
def _is_wide(term: str) -> bool:
    return _WIDE_CHARACTER.match(term) is not None
