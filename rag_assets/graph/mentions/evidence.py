"""What shows that a recognized name is of a narrow type: its form, and the words beside it.

Statistical recognizers find names well and mistake their types: products for companies, both for people. A type that
nothing shows is `term`, which any name may have. What the ending of a name shows is the matter of the list of types.
"""

import re

from rag_assets.graph.entity_types import PRODUCT, TERM
from rag_assets.graph.names import plain_words
from rag_assets.text.folding import fold_name
from rag_assets.text.scripts import HIRAGANA, KANJI, KATAKANA, LATIN_CAPITALS

_GIVEN_NAMES = plain_words("given_names_en")
_OPENERS = plain_words("openers_en")
_PLACES = frozenset(name.replace("_", " ") for name in plain_words("places_en"))

_PERSON_WORD = re.compile(rf"[{LATIN_CAPITALS}][\w'’.,]*(?:-[{LATIN_CAPITALS}][\w'’.]*)?|[a-z]{{1,3}}")
_INITIALS = re.compile(rf"(?:[A-Z]\. ?-?)+[{LATIN_CAPITALS}][\w'’-]*[a-z]")
_ROLE = (
    r"(?:CEO|CFO|CTO|COO|president|chair(?:man|woman|person)?|director|officer|manager|secretary|minister|senator|professor"
    r"|analyst|engineer|author|founder|editor|governor|mayor|actor|actress|singer|writer|player|coach|lawyer)"
)
_TITLE = re.compile(rf"(?:\b(?:Mr|Mrs|Ms|Dr|Prof|Sir|Dame|Lord|Lady)\.?|\b{_ROLE}),? $", re.IGNORECASE)
_OF_A_PERSON = re.compile(
    r",? (?:(?:\w+ )?(?:said|says|told|asked|wrote|writes|founded|leads|led|died|married|studied|retired)\b"
    rf"|(?:was|is) born\b|who\b|\((?:born\b|[^)]{{0,30}}\d{{4}} ?[–-]))"
    rf"|, (?:an? |the |our )?(?:[\w-]+ ){{0,4}}{_ROLE}\b"
)
_OF_NAMES = frozenset({"organization", "person", "place"})
_OFFICE = (
    r"(?:Universit(?:y|at|é|ät)|Department|Ministry|Bank|Institute|Bureau|Board|Office|Agency|Council|Federation|Association"
    r"|Society|Academy|College|School|Commission|Committee|Court)"
)
_BODY = re.compile(
    rf".*\b{_OFFICE} (?:of|for) \w|.+ (?:AG|SE|GmbH|S\.?A|N\.?V|B\.?V|Co|SpA|PLC|Oy|AB|Pty|Holdings?|& Sons)\.?$"
)
_EXAMPLES = re.compile(  # names of companies follow, and nothing else stands between
    r"\b(?:companies|customers|organi[sz]ations|brands|retailers|firms|banks|manufacturers|insurers|automakers)"
    rf",? (?:like|such as|including) (?:(?:[0-9{LATIN_CAPITALS}][\w&'’.-]*|and|or|of|the|to|[&–-])[, ]+)*$"
)
_OF_A_BODY = re.compile(r" (?:announced|acquired|hired|employs|agreed to|reported (?:a|revenue|sales|earnings|that))\b")
_JAPANESE_PERSON = re.compile(
    f"[{KANJI}]{{2,5}}|[{KANJI}]{{1,3}}[{HIRAGANA}{KATAKANA}]{{1,5}}|[{KATAKANA}]+(?:[・ =＝][{KATAKANA}]+)+"
    "|[A-Z][a-z]+(?: [A-Z][a-z.]+)+"
)
_ONE_SCRIPT = re.compile(f"[{KANJI}]+|[{KATAKANA}・]+|(?:[A-Z][a-z]+)(?: [A-Z][a-z]+)*")
_PRODUCT = re.compile(rf"[{KANJI}{KATAKANA}・]+|(?:[A-Z][\w]*)(?: [A-Z0-9][\w.]*)*")
_ABBREVIATION = re.compile(r"[A-Za-z]{1,5}")
_HONORIFIC = re.compile(r"\s?(?:さん|氏(?!名)|先生|教授|博士|首相|大統領|社長|監督|選手)")
_LEGAL_FORM = re.compile(
    "^(?:株式|有限|合同|合資)会社|^(?:一般|公益|独立|国立|地方|学校|医療|社会|特定|宗教).{0,6}法人|^（株）|^㈱|^NPO"
)
_RULE = re.compile(
    r"\b(?:Act|Directive|Regulation|Treaty|Convention|Code|Law)\b(?: \(?\w+\)?)? (?:of|on|for|No\.?|\d{4}/)"
)
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_MARKED = re.compile(r"\s?[®™]")


def _is_place(name: str) -> bool:
    """Whether an English name is one of a country, state or large city."""
    return fold_name(name).rstrip(".") in _PLACES


def english_type(kind: str, name: str, before: str, after: str) -> str:
    """The type that a recognizer gave a name of English text, where its form or the words around it show it.

    Args:
        kind: The type that was recognized.
        name: The name.
        before: Text before it.
        after: Text behind it.
    """
    if _MARKED.match(after):
        return PRODUCT
    if kind not in _OF_NAMES:
        return kind if _is_shown(kind, name, before, after) else TERM
    following = re.match(r", ([A-Z][\w.]*(?: [A-Z][\w.]*)?)", after)
    if _is_place(name) or (kind == "place" and name.isalpha() and following and _is_place(following[1])):
        return "place"
    if _is_person(kind, name, before, after):
        return "person"
    is_body = kind == "organization" and (_BODY.match(name) or _OF_A_BODY.match(after))
    return "organization" if is_body or _EXAMPLES.search(before) else TERM


def japanese_type(kind: str, name: str, before: str, after: str) -> str:
    """The same for Japanese text, where the recognizer has looked the name up in its dictionary."""
    if _LEGAL_FORM.search(name):
        return "organization"
    if kind == "person" or (kind == TERM and _HONORIFIC.match(after)):
        return "person" if _JAPANESE_PERSON.fullmatch(name) else TERM
    if kind == "place":
        return kind if _ONE_SCRIPT.fullmatch(name) else TERM
    if kind in {PRODUCT, "organization"}:
        return kind if _PRODUCT.fullmatch(name) and not _ABBREVIATION.fullmatch(name) else TERM
    return kind if _is_shown(kind, name, before, after) else TERM


def _is_person(kind: str, name: str, before: str, after: str) -> bool:
    words = name.split(" ")
    if not all(map(_PERSON_WORD.fullmatch, words)):
        return False
    if (_INITIALS.fullmatch(name) and before.strip() and fold_name(words[-1]) not in _OPENERS) or (
        kind == "person" and _TITLE.search(before)
    ):
        return True
    is_given = fold_name(words[0]) in _GIVEN_NAMES and not words[-1].isupper()
    return kind == "person" and bool(is_given or (len(words) > 1 and _OF_A_PERSON.match(after)))


def _is_shown(kind: str, name: str, before: str, after: str) -> bool:
    """Whether a product has a version, an event a year, a rule what it is of, and a work the marks of titles."""
    match kind:
        case "product_or_system":
            return any(map(str.isdigit, name))
        case "event":
            return bool(_YEAR.search(name))
        case "document":
            return bool(_RULE.search(name))
        case "work":
            return before.endswith("『") and after.startswith("』")
    return False
