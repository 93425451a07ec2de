"""Names by their form, in any text: identifiers, capitalised names, quoted terms, and known names found again."""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from rag_assets.contracts.formats import DocumentFormat
from rag_assets.graph.entity_types import IDENTIFIER, TERM
from rag_assets.graph.names import CODE, is_cell_reference, is_code, is_name, plain_words
from rag_assets.text.cells import CELL_SIGN
from rag_assets.text.folding import fold_name
from rag_assets.text.scripts import KANJI, KATAKANA, KATAKANA_LETTERS


@dataclass(frozen=True, slots=True)
class Span:
    """A name in a text."""

    start: int
    end: int
    type: str


_URL = re.compile(r"https?://[A-Za-z0-9\-._~:/?#@!$&'()*+,;=%]+")
_MAIL = re.compile(r"[A-Za-z0-9._%+\-]+@[A-Za-z0-9.\-]+\.[A-Za-z]{2,}")
_EDGE = r"(?<![A-Za-z0-9_./\\\-@])"
_END = r"(?![A-Za-z0-9_])"
# Names of sites end in .org, and fields of programs in .msg.
_DOCUMENTS = "|".join(kind for kind in DocumentFormat if kind not in {DocumentFormat.ORG, DocumentFormat.MSG})
_FORMS = (
    _URL,
    _MAIL,
    re.compile(_EDGE + rf"[\w\-]+\.(?:{_DOCUMENTS}|json|ya?ml|htm|jsp|java|sql|js|css|properties|jar|war|sh|bat|toml|"
               r"ini|log|zip)" + _END, re.ASCII),
    re.compile(_EDGE + r"[a-z][a-z0-9]+(?:\.[A-Za-z][A-Za-z0-9_]+){2,}" + _END),  # package or class
    re.compile(r"(?<![\w./\\:])/?(?:[\w{}\-]+/){2,}[\w{}\-.]*[\w}]", re.ASCII),  # path of an API or a file
    re.compile(r"(?<![\w./\\:])/[a-z][\w{}\-]+(?:/[\w{}\-]+)*", re.ASCII),
    re.compile(r"(?<![\w])[A-Za-z]:\\[\w\\.\-]+", re.ASCII),
    re.compile(_EDGE + r"[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+" + _END),  # snake case
    re.compile(_EDGE + r"[a-z]{2}[a-z0-9]*(?:[A-Z][a-z0-9]+)+[A-Z]*" + _END),  # camel case
    re.compile(_EDGE + r"(?:[A-Z][a-z0-9]+){2}(?:[A-Z][a-z0-9]+)+" + _END),
)  # fmt: skip
_HUMPS = re.compile(_EDGE + r"[A-Z][a-z0-9]+[A-Z][A-Za-z0-9]*" + _END)
_CHOICE = re.compile(r"[A-Z][a-z]+(?:/[A-Z][a-z]+)+")  # words, and no path
_CUT = re.compile(r"\.\s+[a-z]")  # goes on behind an address that a line has cut
_LAST_SIGNS = ".,:;?!)'="
_SHORTEST = 4
_LONGEST = 120

SYMBOL = re.compile(r"[A-Z](?:[a-z]|\d)")  # of a formula, as in `Nk` or `D1`
_JOINED_NAME = re.compile(r"(?:[A-Z][\w'’.-]+,? ){1,4}(?:and|&) [A-Z][\w'’.-]+(?: [A-Z][\w'’.-]+){0,3}")
_JOINED = re.compile(r" (?:and|or|to|from|on|with|versus|vs\.?) ")  # what two names run together by
_QUOTED = re.compile("「([^「」\n]{2,24})」")

_CAPITAL = r"(?:[A-Z][\w&'’\-]*[\w]|[A-Z]\.|[A-Z])"
_CAPITALISED = re.compile(
    rf"(?<![\w.])({_CAPITAL}(?: (?:(?:of|the|de|du|van|von|di|la|le|al|bin|&) ){{0,2}}{_CAPITAL})*)"
)
_NUMERAL = re.compile(r"[IVX]+\.")
_FIRST_WORDS = plain_words("openers_en")
_MONTHS = plain_words("calendar_en")
_SENTENCE_START = re.compile(r"(?:^|[.!?:;•·\n\"“”(\[|]|\d[.)]|[-–—*])\s*$")


def parted(span: Span, text: str, is_known: Callable[[str], bool]) -> list[Span]:
    """A recognized span of English text; two where it is two names joined, the first where it says one twice."""
    name = text[span.start : span.end]
    match = _JOINED.search(name)
    first, second = (name[: match.start()], name[match.end() :]) if match else (name, "")
    if second and is_known(first) and is_known(second):
        return [replace(span, end=span.start + len(first)), replace(span, start=span.end - len(second))]
    half = (len(name) - 1) // 2
    return [replace(span, end=span.start + half)] if name[:half] == name[half + 1 :] and name[half] == " " else [span]


def whole_cell(span: Span, text: str) -> Span:
    """A recognized span of a row, or its whole cell where that is one name joined by `and`, as of a firm or a state."""
    start = len(text[: span.start].rpartition(CELL_SIGN)[0] + CELL_SIGN) if CELL_SIGN in text[: span.start] else 0
    end = span.end + len(text[span.end :].partition(CELL_SIGN)[0])
    return replace(span, start=start, end=end) if _JOINED_NAME.fullmatch(text, start, end) else span


def identifiers(text: str, *, is_japanese: bool) -> Iterator[Span]:
    """Codes, paths, addresses, and names in the manner of programs.

    A name of two capitalised parts, as in `GitHub`, is a product's as often as a class's: in Japanese text it is a
    term, in English text it is left to other rules.
    """
    for form in _FORMS:
        for match in form.finditer(text):
            name = match[0].rstrip(_LAST_SIGNS)
            if not _SHORTEST <= len(name) <= _LONGEST or not is_name(name[-60:]):
                continue
            if not (_CUT.match(text, match.start() + len(name)) or _CHOICE.fullmatch(name)):
                yield Span(match.start(), match.start() + len(name), IDENTIFIER)
    if is_japanese:
        yield from (Span(*match.span(), TERM) for match in _HUMPS.finditer(text) if len(match[0]) >= _SHORTEST)
    codes = [match for match in CODE.finditer(text) if is_code(match[0])]
    cells = [match for match in codes if is_cell_reference(match[0])]
    if any(_beside_reference(text, *match.span()) for match in cells):  # then all of them are of cells
        codes = [match for match in codes if match not in cells]
    for match in codes:
        yield Span(match.start(), match.end(), IDENTIFIER)


def _beside_reference(text: str, start: int, end: int) -> bool:
    """Whether what stands beside it says that this is the reference of a spreadsheet cell."""
    around = {text[start - 1 : start], text[end : end + 1]}
    return bool(around & {":", "!", "："}) or text.startswith(("セル", "列", "行"), end)


def quoted_terms(text: str) -> Iterator[str]:
    """Names in Japanese quotation marks."""
    for match in _QUOTED.finditer(text):
        if is_name(match[1]):
            yield match[1]


def capitalised_names(text: str) -> Iterator[tuple[Span, bool]]:
    """Names by their capitals, in English text.

    Yields:
        Spans, and whether the place proves that the capitals are of a name: it does not at the start of a sentence,
        unless there is more than one capitalised word.
    """
    for match in _CAPITALISED.finditer(text):
        start, end = match.span(1)
        opens = bool(_SENTENCE_START.search(text[max(0, start - 12) : start]))
        words = text[start:end].split(" ")
        while words and (_is_common(words[0]) or (not start and _NUMERAL.fullmatch(words[0]))):
            start += len(words.pop(0)) + 1
            opens = False if words and not words[0][:1].isupper() else opens
        while words and (words[-1].lower() in _MONTHS or words[-1].lower() in {"i", "the", "of", "and", "for"}):
            end -= len(words.pop()) + 1
        if (
            len(words) > 1 and start and text[end : end + 1] == ":"
        ):  # a label follows, as in `Cashier: Ann Lee Register: 7`
            end -= len(words.pop()) + 1
        if not words or start >= end:
            continue
        name = text[start:end].removesuffix("'s").removesuffix("’s")
        if is_name(name) and name[:1].isupper():
            yield Span(start, start + len(name), TERM), not opens or len(words) > 1


_CONTRACTION = re.compile("['’](?:s|ll|ve|d|re|m|t)$")


def _is_common(word: str) -> bool:
    """Whether a word has its capital only because a sentence begins, or is a month or day."""
    lower_word = _CONTRACTION.sub("", word.lower())
    return lower_word in _FIRST_WORDS or lower_word.rstrip(".") in _MONTHS


class KnownNames:
    """Names to be found again in texts, by what they are folded to.

    A place counts only where the name stands for itself, not as a part of a longer compound: neither beside it nor
    within the same word are further letters, ideographs or katakana.
    """

    def __init__(self, types: Mapping[str, str]) -> None:
        self._types: dict[str, str] = {}
        for name, entity_type in sorted(types.items()):
            for form in {name, fold_name(name)}:
                if len(form) > 1:
                    self._types.setdefault(form.lower(), entity_type)
        self._by_start: dict[str, list[str]] = {}
        for form in self._types:
            self._by_start.setdefault(form[:2], []).append(form)
        for forms in self._by_start.values():
            forms.sort(key=lambda form: (-len(form), form))

    def find(self, text: str) -> Iterator[Span]:
        """Places of the names, from left to right, the longest at each place, without overlaps."""
        lower_text = text.lower()
        if len(lower_text) != len(text):
            lower_text = "".join(character.lower()[:1] for character in text)
        position = 0
        while position < len(lower_text) - 1:
            for form in self._by_start.get(lower_text[position : position + 2], ()):
                end = position + len(form)
                if lower_text.startswith(form, position):
                    end = _with_long_vowel(lower_text, end)
                    if stands_alone(text, position, end) and not _is_common_word(text, position, end):
                        yield Span(position, end, self._types[form])
                        position = end - 1
                        break
            position += 1


_SMALL_WORD = re.compile(r"[a-z]+")
_BETWEEN_WORDS = re.compile(r"[a-z][ ,]? $"), re.compile(r" [a-z]{2}")


def _is_common_word(text: str, start: int, end: int) -> bool:
    """Whether a word in small letters stands between others in an English sentence, where it names nothing."""
    before, after = _BETWEEN_WORDS
    has_neighbour = before.search(text[max(0, start - 3) : start]) or after.match(text, end)
    return bool(_SMALL_WORD.fullmatch(text, start, end) and has_neighbour)


_COMPOUND = re.compile(f"[A-Za-z0-9_{KATAKANA}{KANJI}]")
_LONG_VOWEL = re.compile(f"[{KATAKANA_LETTERS}]ー")
_HYPHENED = re.compile("[A-Za-z]-[A-Za-z]")
_BEFORE = frozenset("各同当本該全他")
_AFTER = frozenset("等側用毎別内外上中時後前間的様宛")


def stands_alone(text: str, start: int, end: int) -> bool:
    """Whether a stretch of a text is a word or compound of its own."""
    if _HYPHENED.match(text, max(0, start - 2), start + 1) or _HYPHENED.match(text, end - 1):
        return False
    if start and _joins(text[start - 1], text[start]):
        outer = text[start - 2] if start > 1 else " "
        if text[start - 1] not in _BEFORE or _COMPOUND.match(outer):
            return False
    if end < len(text) and _joins(text[end - 1], text[end]):
        outer = text[end + 1] if end + 1 < len(text) else " "
        if text[end] not in _AFTER or _COMPOUND.match(outer):
            return False
    return True


def _joins(first: str, second: str) -> bool:
    """Whether two neighbouring characters may belong to one compound."""
    return bool(_COMPOUND.match(first) and _COMPOUND.match(second))


def _with_long_vowel(text: str, end: int) -> int:
    """Behind a long-vowel mark that folding leaves out."""
    return end + 1 if _LONG_VOWEL.match(text, end - 1) else end


_DASHES = re.compile("[\u2010-\u2015\u2212\uff0d]")
_VOWEL_MARK = "ー"


class FoldedText:
    """A text in which names are looked for as names are compared."""

    def __init__(self, text: str) -> None:
        self.text = text
        characters: list[str] = []
        self._places: list[int] = []
        for place, character in enumerate(text):
            for letter in _fold(character):
                characters.append(letter)
                self._places.append(place)
        self._folded = "".join(characters)

    def find(self, name: str, start: int, end: int, *, words: bool = True) -> tuple[int, int] | None:
        """The first place of a name within a part of the text.

        Args:
            name: The name, as somebody else spells it.
            start: Where the part begins.
            end: Where it ends.
            words: Whether a name of Latin letters must not be a part of a longer word.

        Returns:
            Start and end in the text, or None.
        """
        folded_name = "".join(map(_fold, name))
        for form in dict.fromkeys((folded_name, folded_name.rstrip(_VOWEL_MARK))):
            position = self._folded.find(form, bisect_left(self._places, start)) if form else -1
            while position >= 0:
                first, last = self._places[position], self._places[position + len(form) - 1] + 1
                if last > end:
                    break
                if not words or self._is_word(first, last):
                    return first, last
                position = self._folded.find(form, position + 1)
        return None

    def _is_word(self, first: int, last: int) -> bool:
        before, after = self.text[first - 1 : first], self.text[last : last + 1]
        return not (
            (before and _is_latin(before) and _is_latin(self.text[first]))
            or (after and _is_latin(after) and _is_latin(self.text[last - 1]))
        )


def _fold(character: str) -> str:
    form = unicodedata.normalize("NFKD", character).casefold()  # composed and half-width marks become one
    return "".join("-" if _DASHES.match(letter) else letter for letter in form if not letter.isspace())


def _is_latin(character: str) -> bool:
    return character.isascii() and (character.isalnum() or character == "_")


def without_overlaps(spans: Iterable[Span]) -> list[Span]:
    """Of spans that overlap the longest, of those of one length the one given first; in order of position."""
    chosen_spans: list[Span] = []
    taken_places: set[int] = set()
    ranking = sorted(enumerate(spans), key=lambda item: (item[1].start - item[1].end, item[0]))
    for _, span in ranking:
        places = range(span.start, span.end)
        if taken_places.isdisjoint(places):
            taken_places.update(places)
            chosen_spans.append(span)
    return sorted(chosen_spans, key=lambda span: span.start)
