"""Where a published version holds the evidence of questions: its documents, pages and passages.

Texts are compared after NFKC without white space, and without the bars, quotes and commas that part cells.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from enum import StrEnum
from itertools import takewhile
from pathlib import PurePosixPath
from typing import TypeAlias

from rag_assets.contracts.tables import CHUNKS, DOCUMENTS, PAGES
from rag_assets.evaluation.metrics import Piece
from rag_assets.evaluation.questions import LIST_TYPE, Evidence, Question
from rag_assets.query.stored import StoredTables
from rag_assets.text.cells import parse_area

_LEAST_PART = 0.5  # of a quote that two passages share out, which one of them holds, at least
_NOT_COMPARED = re.compile(r"[\s|｜\",;]+")  # white space, and what parts cells
_PART = re.compile(r"(.+)#\d+(?:\.\d+)?", re.DOTALL)  # id of a page or passage
_NUMBERED = re.compile(r"(?:page|slide|sheet|p\.?|ページ|頁|スライド|シート)\s*(\d+)", re.IGNORECASE)


class Level(StrEnum):
    """What a search is asked for, and what is relevant."""

    DOCUMENT = "document"
    PAGE = "page"
    PASSAGE = "passage"


Ways: TypeAlias = tuple[tuple[Piece, ...], ...]


@dataclass(frozen=True)
class DocumentFacts:
    """What figures are told apart by: format and language of a file, and characters of text in all its pages."""

    format: str
    language: str
    length_chars: int


@dataclass(frozen=True)
class Target:
    """What a search for a question is to find."""

    ways: Mapping[Level, Ways]  # by level, the pieces of one full answer, or of several that do equally well
    missing: Mapping[Level, tuple[Evidence, ...]]  # by level, the evidence that the version does not hold
    gone: tuple[Evidence, ...] = ()  # the evidence whose document or quote is nowhere in the version
    facts: DocumentFacts | None = None  # of the document of the first evidence that there is; None where there is none

    def ids(self, level: Level) -> frozenset[str]:
        """All ids that hold any piece."""
        return frozenset[str]().union(*(piece.ids for way in self.ways[level] for piece in way))


@dataclass(frozen=True)
class _Passage:
    chunk_id: str
    text: str
    context: str
    cell_range: str | None


@dataclass(frozen=True)
class _Page:
    page_id: str
    number: int
    name: str
    text: str
    passages: list[_Passage] = field(default_factory=list)


@dataclass(frozen=True)
class _NamedEvidence:
    """What evidence names."""

    keys: tuple[str, ...]  # documents
    moved: bool = False  # whether they lie in another folder, so that only the quote tells that it is them
    part: str | None = None  # id of the page or passage that is named; None where the whole document is


def folded(text: str) -> str:
    """A text as texts are compared."""
    return _NOT_COMPARED.sub("", unicodedata.normalize("NFKC", text))


class Corpus:
    """The documents of a published version, as evidence names them.

    Raises:
        StoreError: A file is missing or damaged.
    """

    def __init__(self, stored: StoredTables) -> None:
        self.stored = stored
        self._facts: dict[str, DocumentFacts] = {}
        self._by_name: dict[str, list[str]] = defaultdict(list)
        self._by_stem: dict[str, list[str]] = defaultdict(list)
        self._by_word: dict[str, list[str]] = defaultdict(list)
        for row in stored.read(DOCUMENTS, ("document_id", "format", "language", "length_chars")).to_pylist():
            key = row["document_id"]
            self._facts[key] = DocumentFacts(row["format"], row["language"], row["length_chars"])
            self._by_name[PurePosixPath(key).name].append(key)
            self._by_stem[PurePosixPath(key).stem].append(key)
            self._by_word[spaceless(key)].append(key)

    def targets(self, questions: Iterable[Question]) -> dict[str, Target]:
        """What searches for questions are to find, by the question's id.

        Raises:
            StoreError: A file is missing or damaged.
        """
        all_questions = list(questions)
        names = {evidence.document for question in all_questions for evidence in question.evidence}
        documents = {name: self._documents(name) for name in names}
        placed_documents = {
            evidence.document
            for question in all_questions
            for evidence in question.evidence
            if evidence.place or evidence.quote
        }
        part_names = {name for name, document in documents.items() if document.part is not None}
        pages = self._pages({key for name in placed_documents | part_names for key in documents[name].keys})
        return {question.id: self._target(question, documents, pages) for question in all_questions}

    def _documents(self, name: str) -> _NamedEvidence:
        """Documents that a path or an id means: those whose path it ends with, or that end with it; else by the name
        alone.
        """
        name = unicodedata.normalize("NFC", name)
        if name in self._facts:
            return _NamedEvidence((name,))
        if keys := self._by_word.get(spaceless(name)):  # as files of TREC and BEIR write ids
            return _NamedEvidence(tuple(keys))
        if (match := _PART.fullmatch(name)) and (keys := self._by_word.get(spaceless(match[1]))):
            return _NamedEvidence(tuple(keys), part=spaceless(name))
        path = PurePosixPath(name)
        candidates = self._by_name.get(path.name, [])
        tail_lengths = {key: _shared_tail(path.parts, PurePosixPath(key).parts) for key in candidates}
        whole = [key for key, count in tail_lengths.items() if count >= min(len(path.parts), key.count("/"))]
        if not candidates:
            return _NamedEvidence(tuple(self._by_stem.get(name, ())))
        longest = max(tail_lengths[key] for key in whole or candidates)
        return _NamedEvidence(
            tuple(key for key in whole or candidates if tail_lengths[key] == longest), moved=not whole
        )

    def _pages(self, documents: Collection[str]) -> dict[str, list[_Page]]:
        """Pages of documents with their passages, in order."""
        pages: dict[str, list[_Page]] = defaultdict(list)
        by_id: dict[str, _Page] = {}
        columns = ("document_id", "page_id", "page_number", "page_name", "text")
        for row in self.stored.read(PAGES, columns, documents).to_pylist():
            page = _Page(row["page_id"], row["page_number"], folded(row["page_name"] or ""), folded(row["text"]))
            by_id[page.page_id] = page
            pages[row["document_id"]].append(page)
        columns = ("chunk_id", "page_id", "context", "text", "cell_range")
        for row in self.stored.read(CHUNKS, columns, documents).to_pylist():
            passage = _Passage(row["chunk_id"], folded(row["text"]), folded(row["context"]), row["cell_range"])
            by_id[row["page_id"]].passages.append(passage)
        return pages

    def _target(
        self, question: Question, documents: Mapping[str, _NamedEvidence], pages: Mapping[str, list[_Page]]
    ) -> Target:
        """Pieces of the evidence of one question."""
        places = {
            evidence: self._places(evidence, documents[evidence.document], pages) for evidence in question.evidence
        }
        gone = tuple(
            evidence
            for evidence in places
            if not places[evidence][Level.DOCUMENT]
            or (
                evidence.quote
                and not any(_quoting(evidence, pages.get(key, [])) for key in places[evidence][Level.DOCUMENT])
            )
        )
        missing = {level: tuple(evidence for evidence in places if not places[evidence][level]) for level in Level}
        required_group = [evidence for evidence in places if not evidence.alternative]
        alternatives = [[evidence] for evidence in places if evidence.alternative]
        ways = {
            level: tuple(
                way
                for group in (required_group, *alternatives)
                if (way := _pieces(group, {evidence: places[evidence][level] for evidence in group}, question.type))
            )
            for level in Level
        }
        first = next((key for evidence in places for key in sorted(places[evidence][Level.DOCUMENT])), None)
        return Target(ways, missing, gone, self._facts[first] if first else None)

    def _places(
        self, evidence: Evidence, documents: _NamedEvidence, pages: Mapping[str, list[_Page]]
    ) -> dict[Level, frozenset[str]]:
        """By level, the ids that hold one piece of evidence."""
        if documents.part is not None:
            return _part(documents.part, [page for key in documents.keys for page in pages.get(key, [])])
        quoting_pages = {key: _quoting(evidence, pages.get(key, [])) for key in documents.keys}
        keys = [key for key in documents.keys if quoting_pages[key]]
        if not keys and not documents.moved:
            keys = list(documents.keys)
        if not evidence.place and not evidence.quote:
            return dict.fromkeys(Level, frozenset(keys))
        chosen_pages = [page for key in keys for page in _placed(evidence, pages.get(key, []), quoting_pages[key])]
        on_pages = frozenset(page.page_id for page in chosen_pages)
        passages = frozenset(_passages(evidence, chosen_pages)) if evidence.quote else on_pages
        return {Level.DOCUMENT: frozenset(keys), Level.PAGE: on_pages, Level.PASSAGE: passages}


def _part(part: str, pages: Sequence[_Page]) -> dict[Level, frozenset[str]]:
    """By level, the ids that hold a page or passage; none where it is there no more."""
    for page in pages:
        within = [page.page_id, *(passage.chunk_id for passage in page.passages)]
        keys = [key for key in within if spaceless(key) == part]
        if keys:
            whole = frozenset({page.page_id.rpartition("#")[0]})
            return {Level.DOCUMENT: whole, Level.PAGE: frozenset({page.page_id}), Level.PASSAGE: frozenset(keys)}
    return dict.fromkeys(Level, frozenset())


def spaceless(identifier: str) -> str:
    """An id with `_` for white space, which files of TREC and BEIR cannot hold in it."""
    return "_".join(identifier.split())


def _shared_tail(first: Sequence[str], second: Sequence[str]) -> int:
    """Number of equal parts at the end of two paths."""
    pairs = zip(reversed(first), reversed(second), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _quoting(evidence: Evidence, pages: Sequence[_Page]) -> list[_Page]:
    """Pages that hold the quote, in their text or in a passage."""
    quote = folded(evidence.quote)
    if not quote:
        return []
    return [page for page in pages if quote in page.text or any(quote in passage.text for passage in page.passages)]


def _placed(evidence: Evidence, pages: Sequence[_Page], quoting_pages: Sequence[_Page]) -> Sequence[_Page]:
    """Pages that the evidence means: those it names, as far as they hold the quote; else those that hold it."""
    place = folded(evidence.place)
    named_pages = [page for page in pages if place and page.name == place]
    if not named_pages and (match := _NUMBERED.fullmatch(unicodedata.normalize("NFKC", evidence.place).strip())):
        named_pages = [page for page in pages if page.number == int(match[1])]
    return [page for page in named_pages if page in quoting_pages] or quoting_pages or named_pages


def _passages(evidence: Evidence, pages: Sequence[_Page]) -> set[str]:
    """Passages of pages that hold the quote; of a quote that passages share out, those that hold most of it."""
    quote = folded(evidence.quote)
    passages = [passage for page in pages for passage in page.passages]
    near = [passage for passage in passages if _overlaps(evidence.cells, passage.cell_range)]
    holders = [passage for passage in passages if quote in passage.text]
    if holders:
        return {passage.chunk_id for passage in holders if passage in near} or {passage.chunk_id for passage in holders}
    headed_passages = [passage for passage in passages if quote in passage.context + passage.text]
    if headed_passages:
        return {passage.chunk_id for passage in headed_passages}
    parts = [passage for passage in passages if _longest_part(quote, passage.text) >= _LEAST_PART]
    return {passage.chunk_id for passage in parts or ([] if evidence.kind else near)}


def _longest_part(quote: str, text: str) -> float:
    """Share of a quote that stands in a text in one piece."""
    return SequenceMatcher(None, text, quote, autojunk=False).find_longest_match().size / len(quote)


def _overlaps(cells: str, cell_range: str | None) -> bool:
    """Whether two areas of a sheet share a row and a column; not where one is unknown."""
    area, passage_area = parse_area(cells), parse_area(cell_range)
    return area is not None and passage_area is not None and area.meets(passage_area)


def _pieces(
    evidence: Sequence[Evidence], places: Mapping[Evidence, frozenset[str]], question_type: str
) -> tuple[Piece, ...]:
    """One piece for each evidence; what the same ids hold is one.

    Quotes of a list from one place are parts of one answer: where some ids hold them all, these are one piece.
    """
    grades: dict[frozenset[str], float] = {}
    lost_items = [item for item in evidence if not places[item]]
    of_place: dict[tuple[str, str], list[Evidence]] = defaultdict(list)
    for item in evidence:
        if places[item]:
            of_place[item.document, item.place].append(item)
    for group in of_place.values():
        together = frozenset[str].intersection(*(places[item] for item in group))
        whole = question_type == LIST_TYPE and together
        for ids in [together] if whole else [places[item] for item in group]:
            grades[ids] = max([grades.get(ids, 0.0), *(item.grade for item in group if ids <= places[item])])
    return (
        *(Piece(ids, grade) for ids, grade in grades.items()),
        *(Piece(frozenset(), item.grade) for item in lost_items),
    )
