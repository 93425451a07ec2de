"""How sure it is that the best statement answers: by the words of the question that its passage holds, how surely a
model takes it for an answer, and what of the question, as identifiers and quoted words, stands nowhere in its document.

What stays out: which statement is the best (`rag_assets.query.ask.quoted.extracts`).
"""

import math
import re
import unicodedata
from collections.abc import Iterator, Sequence, Set

from rag_assets.query.ask.answers import Source
from rag_assets.query.ask.quoted.candidates import Candidate
from rag_assets.query.ask.quoted.item_marks import KANJI_NUMBERS
from rag_assets.query.ask.quoted.page_sections import OF_TABLE
from rag_assets.query.ask.quoted.passage_lines import together
from rag_assets.query.ask.quoted.statements import StatementKind
from rag_assets.query.ask.quoted.wanted import QUOTED, WeightedQuestion, term_kind, terms_held, terms_of, without_count
from rag_assets.query.search.rewriting_rules import keywords
from rag_assets.text.folding import TermKind, content_words, fold_name, is_wide, shares_held, years_otherwise
from rag_assets.text.language import is_asked_in_japanese, is_ideographic, is_japanese
from rag_assets.text.scripts import KATAKANA_AND_MARKS

_NUMBERED_NAME = re.compile(
    rf"第\s?(\d{{1,3}}|{'|'.join(sorted(KANJI_NUMBERS, key=len, reverse=True))})\s?([回版期次])"
)
_FISCAL_YEAR = re.compile(
    r"((?:(?:令和|平成|昭和)\s?(?:\d{1,2}|元)|(?<![A-Za-z\d])[RHS]\d{1,2}|(?<!\d)(?:19|20)\d\d)\s?年\s?度)"
)
_OTHER_YEARS = re.compile(
    r"(?:\d|元)\s?年?度?\s?[〜~～]\s?\D{0,2}\d{1,4}\s?年|\d\s?年度?\s?[-－–]\s?\D{0,2}\d{1,4}\s?年|[翌次来]年度?"
)
_ABBREVIATION = re.compile(r"(?<![A-Za-z0-9])[A-Z][A-Z0-9]{2,}(?![A-Za-z0-9])")
_LACKING_VALUE = 2.0  # taken off where the best statement has none
_HOLDING = 0.8  # of the best score, from which one counts that holds the identifiers which the best one lacks
_SURE_LOG_ODDS = 0.2  # weight of how surely the best statement answers
_SURE_KEYED = 0.4  # for a row of which a question for one thing names a whole cell
_SURE_LEAD = 0.5  # of the share by which the best score is above the next, beyond the usual one
_USUAL_LEAD = 0.1
_SURE_PART = 0.04  # instead of both, for a part of a question
_SURE_RANK = 0.35  # taken off by the logarithm of the rank of its passage
_FOREIGN_HELD = 0.2  # of a word that a passage of another language may hold in its own
SURE = 0.6  # from which a statement is taken for an answer, see `sureness_of`
# from which a statement is said as answering a part of a question, where that of another part is sure, and as not
# sure: of 605 questions of five collections and the 138 six that were refused became right with it, two wrong
SURE_BESIDE = 0.0
_HELD_SHARE = 0.7  # of the terms of quoted words that the passages of the document must hold
_LACKING_WORD = 0.8  # taken off where they do not, or share nothing with a long word in katakana, which names a thing
READ_SURELY = 3.0  # log odds by the model from which that does not count, as things have several names
_LABELLED_NUMBER = re.compile(r"(?:id|no|nr|code|fy(?=\d{4}))[._#]?(\d+)")
_LONG_WORD = re.compile(f"(?<![何{KATAKANA_AND_MARKS}])[{KATAKANA_AND_MARKS}]{{5,}}")  # no unit
_TABLE_IN_LATIN = re.compile(rf"(?<![A-Za-z\d_./-])[A-Za-z]{{3,}}(?=[」』]?(?:{OF_TABLE.pattern}))", re.IGNORECASE)
_ATTRIBUTE = "桁数|(?:データの?)?型(?![番式紙枠])|初期値|デフォルト値?|[論物]理名"
_NO_FIELD = (  # of no name
    "(?:[^のはがをにでと、。\\s「」『』]{0,18}(?:データ|項目|カラム|列|フィールド|属性|値|キー|引数|変数|パラメータ)"
    "|全て|すべて|全部|それぞれ|各々|[PF]K)[」』]?の"
    "|(?:the )?(?:(?:this|that|these|those|it|each|every|all|any|both)\\b"
    "|(?:(?:primary|foreign) )?(?:key|column|field|attribute|value|item|parameter)s? (?:in|of|on)\\b)"
)
_FIELD = re.compile(  # of which something is asked that documents tell of fields, without the kind of code or name
    rf"の[「『]?(?!{_NO_FIELD})(?P<ja>[^のはがをにでと、。\s「」『』]{{2,20}}?)"
    rf"(?:コード|ID|番号|名称?|区分|フラグ|日[付時]?)?[」』]?の(?:{_ATTRIBUTE})"
    rf"|\b(?:length|data type|default(?: value)?|number of digits) (?:of|for) (?!{_NO_FIELD})(?:the )?"
    r"(?P<en>[\w' -]{3,40}?)(?= (?:columns?|fields?|attributes?|in|of|on)\b)",
    re.IGNORECASE,
)
_HYPHEN = re.compile("[‐‑‒–—−－]")
_HYPHENATED = re.compile(r"(?<![\w-])([A-Z]{1,5})-0*(?!(?:19|20)\d\d\b)(\d{1,6})(?![\w-]|\.\d)", re.ASCII)
_LACKING = 2.0  # taken off where an identifier of the question stands nowhere in the passage
_WRITTEN_DATE = re.compile(r"(?<!\d)((?:19|20)\d\d)(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01]|)(?!\d)")  # in names of files


def sureness_of(
    question: WeightedQuestion,
    ranking: Sequence[tuple[float, Candidate]],
    candidates: Sequence[Candidate],
    *,
    is_part: bool,
) -> float:
    """How sure it is that the best of ranked candidates answers; from `SURE` it is taken for an answer.

    How it stands out does not count for a part of a question, which may ask for more than it says.
    """
    (score, best), *rest = ranking
    lead = 1 - rest[0][0] / score if rest and score > 0 else 0.0
    passage = [candidate for candidate in candidates if candidate.source.document_id == best.source.document_id]
    held_terms = _terms_of_document(best, passage)
    lacks = _lacks_identifier(question, best, held_terms)
    quotes = map(terms_of, QUOTED.findall(question.text))
    names = (pattern.findall(keywords(question.text)) for pattern in (_LONG_WORD, _TABLE_IN_LATIN))
    long_words = (terms_of(name) for found in names for name in found)
    lacks_word = any(len(terms & held_terms) < _HELD_SHARE * len(terms) for terms in quotes)
    lacks_word = lacks_word or any(terms.isdisjoint(held_terms) for terms in long_words)
    called = f"{best.source.document_id}\n{best.source.title}\n{best.source.beginning}"
    texts = dict.fromkeys(candidate.source.whole_text for candidate in passage)
    is_row = best.statement.kind is StatementKind.ROW
    lacks_field = is_row and _lacks_field(question.text, "\n".join(texts))
    lacks_word = lacks_word or lacks_field
    labels = " ".join(label for label, _ in best.statement.cells)
    lacks = lacks or (lacks_field and not re.search(_ATTRIBUTE, labels))
    places = dict.fromkeys(f"{candidate.source.citation}\n{candidate.statement.context}" for candidate in passage)
    lacks = lacks or _lacks_code(question.text, "\n".join((called, *texts, *places)))
    lacks = lacks or _is_of_another_number(question.text, "\n".join(texts), called)
    lacks = lacks or _is_of_another_year(question.text, best.source.whole_text, called)
    if in_another_language := is_foreign(question.text, best.source):  # where abbreviations are the same
        plain = unicodedata.normalize("NFKC", question.text)
        is_shouted = plain.isascii() and plain.isupper()
        abbreviations = set() if is_shouted else {name.lower() for name in _ABBREVIATION.findall(plain)}
        held = fold_name("\n".join((called, *texts)))
        lacks = lacks or (bool(abbreviations) and not any(name in held for name in abbreviations))
    coverage = coverage_of(question.text, best.source)
    lacks_word = lacks_word and best.log_odds < READ_SURELY and not in_another_language
    taken_off = (
        _LACKING * lacks + _LACKING_WORD * lacks_word + _LACKING_VALUE * question.wanted.lacks_value(best.statement)
    )
    says_little = question.wanted.several or question.repeats(best.own, best.statement)
    key_score = 0.0 if says_little else question.keyed(best.statement)
    distinction = _SURE_PART if is_part else _SURE_KEYED * key_score + _SURE_LEAD * max(0.0, lead - _USUAL_LEAD)
    return (
        coverage
        + _SURE_LOG_ODDS * best.log_odds
        - _SURE_RANK * math.log(max(1, best.source.rank))
        + (-taken_off if taken_off else distinction)
    )


def _terms_of_document(best: Candidate, passage: Sequence[Candidate]) -> frozenset[str]:
    """The terms that the name, the beginning and the passages found of a document hold."""
    held_terms = best.named.union(
        terms_held(best.source.beginning), *(candidate.own | candidate.above for candidate in passage)
    )
    return held_terms | {term.lstrip("0") for term in held_terms if term.isdecimal()}


def _lacks_identifier(question: WeightedQuestion, best: Candidate, held_terms: Set[str]) -> bool:
    """Whether an identifier of the question stands nowhere in a document, and is not of the series of one that does."""
    path = _WRITTEN_DATE.sub(r"\1 \2 \3", unicodedata.normalize("NFKC", best.source.document_id).lower())
    identifiers = [term for term in question.weights if term_kind(term) == TermKind.IDENTIFIER]
    known_identifiers = [
        term
        for term in identifiers
        if any(name in held_terms or _stands_within(name, path) for name in _names_of(term))
    ]
    return any(
        not any(identifier.startswith(term) for identifier in known_identifiers)
        for term in identifiers
        if term not in known_identifiers
    )


def holding_identifiers_first(
    question: WeightedQuestion, ranking: list[tuple[float, Candidate]], candidates: Sequence[Candidate]
) -> list[tuple[float, Candidate]]:
    """A ranking whose best candidate is of a document that lacks an identifier of the question, with those of the first
    document first that lacks none and is about as good.
    """
    for score, candidate in ranking:
        if score < _HOLDING * ranking[0][0]:
            break
        document = candidate.source.document_id
        passage = [other for other in candidates if other.source.document_id == document]
        if not _lacks_identifier(question, candidate, _terms_of_document(candidate, passage)):
            if candidate is ranking[0][1]:
                break
            of_document = [pair for pair in ranking if pair[1].source.document_id == document]
            return [*of_document, *(pair for pair in ranking if pair[1].source.document_id != document)]
    return ranking


def _lacks_field(question: str, text: str) -> bool:
    """Whether no word of a field of which something is asked stands in the text of a document."""
    match = _FIELD.search(unicodedata.normalize("NFKC", question))
    words = (match["ja"] or match["en"]).split() if match else []
    return bool(words) and not any(fold_name(word) in fold_name(text) for word in words)


def _lacks_code(question: str, text: str) -> bool:
    """Whether a code of capital letters and a number, as `ST-3`, stands nowhere in a text that has others of its
    letters, nor a range that may hold it.
    """
    plain = _HYPHEN.sub("-", unicodedata.normalize("NFKC", text)).casefold()
    for letters, number in _HYPHENATED.findall(_HYPHEN.sub("-", unicodedata.normalize("NFKC", question))):
        series = letters.casefold()
        numbers = re.findall(rf"(?<![a-z\d]){series}[-_\s]?0*(\d+)", plain)
        ranges = re.search(rf"(?<![a-z\d]){series}-\d+\s?(?:[〜~/]|から|to\b|-\s?{series})", plain)
        if numbers and number not in numbers and ranges is None:
            return True
    return False


def _is_of_another_number(question: str, text: str, called: str) -> bool:
    """Whether a document is called by another number of a series than the question names, as 「第8回」, and its text
    has the one asked for in no form.
    """
    asked, own = (set(_NUMBERED_NAME.findall(unicodedata.normalize("NFKC", part))) for part in (question, called))
    plain = unicodedata.normalize("NFKC", f"{called}\n{text}")
    for number, unit in asked:
        value = int(number) if number.isdecimal() else KANJI_NUMBERS.index(number) + 1
        kanji = KANJI_NUMBERS[value - 1] if 0 < value <= len(KANJI_NUMBERS) else number
        held = rf"(?<![\d.])0*{value}(?:\s?{unit}|\.0\b)|{kanji}\s?{unit}|(?:^|\| )0*{value}(?: \||$)"
        is_range = rf"\d\s?{unit}?\s?[〜~～から-]+\s?第?\s?\d+\s?{unit}"
        if any(unit == other for _, other in own) and not re.search(f"{held}|{is_range}", plain, re.MULTILINE):
            return True
    return False


def _is_of_another_year(question: str, text: str, called: str) -> bool:
    """Whether a document is called by another fiscal year than the question names, which stands in it in no form; not
    where either has a range of years, or the year after its own.
    """
    asked, own = _fiscal_years(question), _fiscal_years(called)
    plain = unicodedata.normalize("NFKC", f"{called}\n{text}")
    if not asked or not own or asked & own or _OTHER_YEARS.search(plain):
        return False
    forms = [form for year in asked for form in _forms_of_year(year)]
    return not re.search("|".join(forms), plain)


def _fiscal_years(text: str) -> set[int]:
    """Western years in which the fiscal years of a text begin: 2025 for `令和7年度`."""
    found = _FISCAL_YEAR.findall(unicodedata.normalize("NFKC", text))
    names = (name for year in found for name in ([year] if year[0].isdecimal() else years_otherwise(year)))
    return {int(name[:4]) for name in names}


def _forms_of_year(year: int) -> Iterator[str]:
    """Patterns of a year of either calendar, alone and with others."""
    yield rf"{year}|FY\s?'?{year % 100}(?!\d)"
    for name in years_otherwise(f"{year}年"):
        number = name[2:].removesuffix("年")
        kanji = KANJI_NUMBERS[int(number) - 1] if number.isdecimal() else number
        yield rf"(?:{name[:2]}|(?<![\d.]))\s?{number}\s?(?:年|[・、(（])"
        yield rf"{name[:2]}\s?(?:{number}(?!\d)|{kanji})|[RHS]{number}(?!\d)"


def _names_of(identifier: str) -> tuple[str, ...]:
    """An identifier, and of one that says what it numbers, as `id115` and `fy2018`, the number alone."""
    match = _LABELLED_NUMBER.fullmatch(identifier)
    return (identifier, match[1]) if match else (identifier,)


def _stands_within(identifier: str, path: str) -> bool:
    """Whether a path holds an identifier, also as part of a longer one: `money_nest` in `money_nest_app`, but neither
    `ab1` in `ab12` nor `1.2` in `1.2.3`.
    """
    before, after = (r"\d" if end.isdigit() else r"[^\W\d_]" for end in (identifier[0], identifier[-1]))
    alone = rf"(?<!{before})(?<!\d[.-]){re.escape(identifier)}(?!{after})(?![.-]\d)"
    return re.search(alone, path) is not None


def coverage_of(question: str, source: Source) -> float:
    """Share of a question's content words in a passage, or where its document begins, which says what it is of; rare
    ones count no more, as measured.
    """
    words = dict.fromkeys(content_words(keywords(without_count(question))))
    text = "\n".join((source.title, str(source.citation), source.whole_text, source.beginning))
    shares = shares_held(list(words), together("\n".join((text, *years_otherwise(text)))))
    if is_foreign(question, source):
        is_translated = is_wide if is_asked_in_japanese(question) else _is_plain
        shares = [
            max(share, _FOREIGN_HELD) if is_translated([word]) else share
            for word, share in zip(words, shares, strict=True)
        ]
    return sum(shares) / (len(words) or 1)


def is_foreign(question: str, source: Source) -> bool:
    """Whether a question is asked in another language than a passage is written in, so that they share few words."""
    if is_asked_in_japanese(question):
        return not is_japanese(f"{source.title} {source.beginning} {source.whole_text}")
    return is_ideographic(source.whole_text)


def _is_plain(words: list[tuple[str, ...]]) -> bool:
    """Whether words are of letters only, no names of fields or figures."""
    return all(term.isalpha() for word in words for term in word)
