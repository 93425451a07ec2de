"""Facts about documents, put into sentences that cite passages.

What stays out: which facts (`rag_assets.query.ask.overviews.overview`, `rag_assets.query.ask.overviews.inventory`).
"""

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Sequence

from rag_assets.query.ask.answers import Sentence, SentenceCitation, Source
from rag_assets.query.ask.quotes import stands_in
from rag_assets.query.results import Hit
from rag_assets.text.folding import content_words
from rag_assets.text.language import cut
from rag_assets.text.plain import one_line

PassagesOf = Callable[[Collection[str], Collection[str]], Sequence[Hit]]
"""The first passages of documents, and all of others."""
Cited = tuple[Hit, str]
"""A passage and words of it that are cited."""

STATEMENT_CHARS = 110
CITED = 3  # documents that a count cites
_NAME_CHARS = 60  # of a name of a file or folder
_BRACKETS = str.maketrans("[]", "［］")
_BETWEEN = re.compile(r"[\W_]+")


class FactWriter:
    """Puts sentences together, each with passages that hold what it says, as long as there is room.

    What is to be cited is a passage with words of it; it has a number once a sentence that cites it fits.

    Args:
        hits: The passages that may be cited.
        room: Characters of all sentences.
    """

    def __init__(self, hits: Sequence[Hit], room: int) -> None:
        self.sentences: list[Sentence] = []
        self.sources: list[Source] = []
        self.room = room
        self.told: set[str] = set()
        self.hits: dict[str, list[tuple[Hit, str]]] = {}
        for hit in hits:
            self.hits.setdefault(hit.document_id, []).append((hit, squeezed(hit.text)))

    def tell(self, text: str, documents: Iterable[str]) -> bool:
        """Say what was counted, with the first words of some of the documents that were; False without room."""
        return self.add(text, [self.beginning(document) for document in documents])

    def beginning(self, document: str) -> Cited | None:
        """The first words of a document."""
        for hit, _ in self.hits.get(document, ()):
            for line in map(one_line, hit.text.splitlines()):
                quote = cut(line, STATEMENT_CHARS, strictly=True)
                if content_words(line) and stands_in(quote, hit.text):
                    return hit, quote
        return None

    def state(self, text: str) -> bool:
        """Say what no passage shows; False without room."""
        length = len(f"- {text}\n")
        if length > self.room:
            return False
        self.room -= length
        self.sentences.append(Sentence(text, ()))
        return True

    def add(self, text: str, cited: Sequence[Cited | None]) -> bool:
        """Add a sentence that fits and has something to cite; False where there is no room, or nothing to cite."""
        pairs = list(dict.fromkeys((hit.chunk_id, quote) for hit, quote in filter(None, cited)))
        hits = {hit.chunk_id: hit for hit, _ in filter(None, cited)}
        numbers = {source.chunk_id: source.number for source in self.sources}
        new = [chunk_id for chunk_id in dict.fromkeys(chunk_id for chunk_id, _ in pairs) if chunk_id not in numbers]
        numbers |= {chunk_id: len(self.sources) + place for place, chunk_id in enumerate(new, start=1)}
        marks = {f"[{numbers[chunk_id]}]" for chunk_id, _ in pairs}
        length = len(f"- {text} \n") + sum(map(len, marks))
        if not pairs or length > self.room:
            return False
        self.room -= length
        self.told |= {squeezed(quote) for _, quote in pairs}
        self.sources += [Source.of(numbers[chunk_id], hits[chunk_id], hits[chunk_id].text) for chunk_id in new]
        citations = (
            SentenceCitation(numbers[chunk_id], quote, stands_in(quote, hits[chunk_id].text))
            for chunk_id, quote in pairs
        )
        self.sentences.append(Sentence(text, tuple(citations)))
        return True


def plain_name(name: str, most_chars: int = _NAME_CHARS) -> str:
    """A name of a file or folder in one line, with no brackets that could be taken for the number of a source."""
    return one_line(name)[:most_chars].translate(_BRACKETS)


def joined(parts: Sequence[str], language: str) -> str:
    """Parts in a row, as a language has it."""
    return ("、" if language == "ja" else ", ").join(parts)


def counts_of(counted: Sequence[tuple[str, int]], language: str, most: int) -> str:
    """Names with how many there are of each, of more than so many the first ones."""
    return joined([f"{name} {count}" for name, count in counted[:most]] + ["…"] * (len(counted) > most), language)


def squeezed(text: str) -> str:
    """A text without what stands between words, as compared."""
    return _BETWEEN.sub("", unicodedata.normalize("NFKC", text))
