"""Entities and relationships of a document without a language model.

Names come from recognizers of named entities, from their form (identifiers, capitals), and from their place (keys of
tables, headings, ends of connectors, quotation marks); a name that its place gave is found again in the whole document.
Names are related that a connector joins, that stand in one row, or in one sentence. How much standing together is worth
is known only over all documents: see `rag_assets.graph.entities.tables`.
"""

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from rag_assets.contracts.causes import BlockKind
from rag_assets.contracts.content import Page
from rag_assets.graph.entity_types import IDENTIFIER, PRODUCT, TERM, EntityTypes
from rag_assets.graph.mentions.pages import (
    PROSE_KINDS,
    SHORTEST_SENTENCE,
    Prose,
    Unit,
    content_pages,
    is_reference,
    is_running,
    lists_on,
    page_language,
    page_prose,
    page_units,
    relates,
    unit_sentences,
)
from rag_assets.graph.mentions.recognizers import Recognizer, tidy_span
from rag_assets.graph.mentions.spans import (
    SYMBOL,
    KnownNames,
    Span,
    capitalised_names,
    identifiers,
    parted,
    whole_cell,
    without_overlaps,
)
from rag_assets.graph.mentions.structure import Structure, read_structure, row_text
from rag_assets.graph.names import declared_aliases, is_code, is_name
from rag_assets.parsing.records import page_text
from rag_assets.text.folding import clean_name, fold_name
from rag_assets.text.language import is_japanese, is_torn, split_sentences
from rag_assets.text.plain import one_line
from rag_assets.text.scripts import LATIN

METHOD = "extractive"

_DESCRIPTION_CHARS = 500
_ROW_NAMES = 8
_SENTENCE_NAMES = 8
_NEIGHBOURS = 3
_FAR = (120, 60)  # characters between two names of an English and of a Japanese sentence that it is about, at most
_SMALL_LETTERS = re.compile(r"(?<![\w'’&-])[a-z]{2,}")
_CELL = " / "  # the same in a description
_FIRST_NAME = re.compile(f"[{LATIN}'.-]+")
_SPEAKER = re.compile(r"([A-Z][A-Z'\-]+(?: [A-Z]\.)?(?: [A-Z][A-Z'\-]+){1,2}):(?:\s|$)")
_SHOWN_BY_ENDING = frozenset({PRODUCT, "organization", "person", "work", "event", "document", TERM})
_SHOWN_BY_PLACE = frozenset({"organization", "person", "place", PRODUCT})
_SHOWN_SHARE = 10  # of so many mentions of a name one that shows its type is enough
_LEGAL_FORM = re.compile(r",? (?:inc|corp|corporation|ltd|limited|co|llc|plc|gmbh|ag|se)\.?$|^株式会社|株式会社$")


class RelationshipKind(StrEnum):
    """How two names were related (`relationship_mentions.kind`)."""

    STATED = "stated"  # by a language model
    CONNECTOR = "connector"  # drawn in a diagram
    ROW = "row"  # together in a row of a table
    SENTENCE = "sentence"  # together in a sentence
    ALIAS = "alias"  # declared to be two names of one thing; resolution reads it, it is no edge


@dataclass(frozen=True, slots=True)
class Mention:
    """A place where a page names an entity."""

    page_number: int
    start: int | None  # where the name begins in the text of the page; None where it is not found there
    block_index: int | None  # the block; None where it is not known
    place: str  # text of the sentence or row, to tell passages of one block apart
    name: str
    type: str
    description: str  # what the place says of it

    @property
    def key(self) -> str:
        """The folded name."""
        return fold_name(self.name)


@dataclass(frozen=True, slots=True)
class RelationshipMention:
    """A place where a page relates two entities."""

    page_number: int
    start: int  # where the sentence or row begins in the text of the page
    block_index: int | None  # the block; None where it is not known
    place: str
    source: str  # folded name that it starts from
    target: str  # folded name that it leads to
    kind: RelationshipKind
    strength: float  # from 0 to 10; 1 without a model
    description: str  # how, in words; empty where only that they occur together is known


@dataclass(frozen=True)
class Extraction:
    """What a document names and relates."""

    mentions: tuple[Mention, ...]  # in order of page and position
    relationships: tuple[RelationshipMention, ...]  # in order of page and position; both ends are among the mentions


class Extractor:
    """Finds names and relationships.

    A type that is not among the entity types counts as `term`.
    """

    def __init__(self, recognizer: Recognizer, types: EntityTypes) -> None:
        self._recognizer = recognizer
        self._types = types

    def extract(
        self, documents: Sequence[Sequence[Page]], progress: Callable[[int, int], None] = lambda _done, _total: None
    ) -> list[Extraction]:
        """Entities and relationships of documents; what one gives does not depend on the others.

        Args:
            documents: Pages of each.
            progress: Told texts in which names were recognized, which takes nearly all of the time, and texts in all.
        """
        contents = [content_pages(pages) for pages in documents]
        languages = [{page.number: page_language(page) for page in pages} for pages in contents]
        prose = [
            [part for page in pages for part in page_prose(page, by_page[page.number])]
            for pages, by_page in zip(contents, languages, strict=True)
        ]
        entities: dict[str, dict[str, tuple[Span, ...]]] = {}
        read_count, total = 0, sum(map(len, prose))
        for language in sorted({part.language for parts in prose for part in parts}):
            texts = [part.text for parts in prose for part in parts if part.language == language]

            def report(count: int, before: int = read_count) -> None:
                progress(before + count, total)

            entities[language] = dict(zip(texts, self._recognizer.recognize(texts, language, report), strict=True))
            read_count += len(texts)
        return [
            self._document(pages, by_page, _recognized_spans(parts, entities))
            for pages, by_page, parts in zip(contents, languages, prose, strict=True)
        ]

    def _document(
        self, pages: Sequence[Page], languages: Mapping[int, str], spans_by_page: Mapping[int, list[Span]]
    ) -> Extraction:
        structure = read_structure(pages, self._types)
        known_names = KnownNames(structure.types)
        proven = _proven_names(pages, languages)
        common = _common_words(pages, languages)

        def is_known(name: str) -> bool:
            return fold_name(name) in proven or self._types.of_name(name) is not None

        mentions: list[Mention] = []
        relationships: list[RelationshipMention] = []
        for page in pages:
            language = languages[page.number]
            spans = list(_spans_by_unit(page, language, spans_by_page.get(page.number, [])))
            sentences = unit_sentences([unit for unit, _ in spans], page, language)
            for (unit, of_unit), sentence in zip(spans, sentences, strict=True):
                kind = page.blocks[unit.block_index].kind
                entities = [span for span in of_unit if not sentence.cuts(span)]
                if kind is BlockKind.TABLE:  # a cell is no sentence that would show what a name is of
                    entities = [replace(whole_cell(span, unit.text), type=TERM) for span in entities]
                elif language == "en":
                    entities = [part for span in entities for part in parted(span, unit.text, is_known)]
                    entities = list(_confirmed(entities, unit.text, common))
                if is_reference(sentence.text):  # of its titles and journals, words would be names
                    entities = [span for span in entities if span.type == "person"]
                own = [*known_names.find(unit.text), *identifiers(unit.text, is_japanese=language == "ja"), *entities]
                if language == "en" and kind not in {BlockKind.TABLE, BlockKind.DIAGRAM}:
                    if (match := _SPEAKER.match(unit.text)) and is_running(unit.text[match.end() :]):
                        own.append(Span(0, match.end(1), "person"))
                    if not (is_reference(sentence.text) or is_torn(unit.text)):
                        own += _capitals(unit.text, proven, common, own)
                unit_mentions = self._mentions(page, unit, sentence.text, without_overlaps(own), structure)
                mentions += unit_mentions
                relationships += _relationships(page, unit, sentence.text, unit_mentions, structure)
        return _closed(mentions, relationships)

    def _mentions(
        self, page: Page, unit: Unit, sentence: str, spans: Sequence[Span], structure: Structure
    ) -> list[Mention]:
        """Names of a unit, each once, in order of position; column headers are passed over."""
        kind = page.blocks[unit.block_index].kind
        if kind is BlockKind.TABLE and unit.line < page.blocks[unit.block_index].header_row_count:
            return []
        row = structure.rows.get((page.number, unit.block_index, unit.line))
        mentions: dict[str, Mention] = {}
        for span in spans:
            name = clean_name(unit.text[span.start : span.end])
            key = fold_name(name)
            if key in mentions or key in structure.labels or not (is_name(name) or len(name) > 60):
                continue
            description = ""
            if row is not None:
                description = row.description if key in map(fold_name, row.names) else ""
            elif (
                kind in PROSE_KINDS and len(sentence) >= max(SHORTEST_SENTENCE, 2 * len(name) + 1) and relates(sentence)
            ):
                description = sentence
            mentions[key] = Mention(
                page.number,
                unit.start + span.start,
                unit.block_index,
                unit.text,
                name,
                self._type(name, span.type),
                one_line(description, _DESCRIPTION_CHARS),
            )
        return list(mentions.values())

    def _type(self, name: str, default: str) -> str:
        kind = self._types.of_name(name) or (IDENTIFIER if is_code(name) else default)
        if kind in _SHOWN_BY_ENDING and not (kind == "work" and name.isascii()):
            kind = self._types.of_ending(name) or kind
        return kind if kind in self._types.names else TERM


def _common_words(pages: Sequence[Page], languages: Mapping[int, str]) -> frozenset[str]:
    """Words that English pages of a document write in small letters: a capital does not make a name of them."""
    texts = (page_text(page) for page in pages if languages[page.number] == "en")
    return frozenset(word for text in texts for word in _SMALL_LETTERS.findall(text))


def _is_common(name: str, common: frozenset[str]) -> bool:
    """Whether a document writes every word of a name in small letters, too, in the singular or plural."""
    words = name.lower().split()
    return all(word in common or f"{word}s" in common or word.removesuffix("s") in common for word in words)


def _capitals(text: str, proven: set[str], common: frozenset[str], own_spans: Sequence[Span]) -> list[Span]:
    """Names by their capitals, where nothing else is found and some place in the document proves them to be names."""
    return [
        span
        for span, sure in capitalised_names(text)
        if ((sure and is_running(text)) or fold_name(text[span.start : span.end]) in proven)
        and not SYMBOL.fullmatch(text[span.start : span.end])
        and (" " in text[span.start : span.end] or not _is_common(text[span.start : span.end], common))
        and not any(span.start < own.end and own.start < span.end for own in own_spans)
    ]


def _recognized_spans(
    prose: Sequence[Prose], entities: Mapping[str, Mapping[str, Sequence[Span]]]
) -> dict[int, list[Span]]:
    """Named entities by page, as spans of the page's text, of what recognizers found by language and text."""
    spans: dict[int, list[Span]] = defaultdict(list)
    for part in prose:
        for entity in entities[part.language][part.text]:
            if span := tidy_span(part.text, entity, part.language):
                place = (part.start + span.start, part.start + span.end)
                spans[part.page_number].append(Span(*place, span.type))
    return spans


def _confirmed(spans: Sequence[Span], text: str, common: frozenset[str]) -> Iterator[Span]:
    """Recognized spans of English text: words that the document writes in small letters as well are of no type, and a
    single one of them is no name.
    """
    for span in spans:
        name = text[span.start : span.end]
        if not _is_common(name, common):
            yield span
        elif " " in name:
            yield replace(span, type=TERM)


def _proven_names(pages: Sequence[Page], languages: Mapping[int, str]) -> set[str]:
    """Folded names whose capitals are those of a name somewhere in the document."""
    return {
        fold_name(sentence[span.start : span.end])
        for page in pages
        if languages[page.number] == "en"
        for block in page.blocks
        if block.kind not in {BlockKind.TABLE, BlockKind.DIAGRAM, BlockKind.HEADER}
        for sentence in split_sentences(block.text, "en")
        if is_running(sentence)
        for span, sure in capitalised_names(sentence)
        if sure
    }


def _spans_by_unit(page: Page, language: str, page_spans: Sequence[Span]) -> Iterator[tuple[Unit, list[Span]]]:
    """Units of a page with the recognized spans in them, relative to the unit."""
    sorted_spans = sorted(page_spans, key=lambda span: (span.start, span.end))
    starts = [span.start for span in sorted_spans]
    for unit in page_units(page, language):
        spans = sorted_spans[bisect_left(starts, unit.start) : bisect_left(starts, unit.end)]
        yield (
            unit,
            [Span(span.start - unit.start, span.end - unit.start, span.type) for span in spans if span.end <= unit.end],
        )


def _about(text: str, source: str, target: str) -> str:
    """What a sentence or row says of two names: all of it, or of a long one the cells and sentences that name them.

    Of such a cell or sentence that is long itself, what stands beside the name.
    """
    if len(text) <= _DESCRIPTION_CHARS:
        return one_line(text)
    room, chosen_parts = _DESCRIPTION_CHARS, dict[int, str]()
    parts = [part for cell in text.split(_CELL) for part in split_sentences(cell)]
    keys = [[key for key in (source, target) if key in fold_name(part)] for part in parts]
    for index in sorted(range(len(parts)), key=lambda index: -len(keys[index])):
        if keys[index] and (part := _beside(parts[index], keys[index], room // 2)) and len(part) + len(_CELL) <= room:
            chosen_parts[index] = part
            room -= len(part) + len(_CELL)
    return one_line(_CELL.join(chosen_parts[index] for index in sorted(chosen_parts))) or one_line(
        text, _DESCRIPTION_CHARS
    )


def _beside(text: str, keys: Sequence[str], room: int) -> str:
    """A text, or of a long one what stands beside names that it holds."""
    if len(text) <= room:
        return text
    share, excerpts = room // len(keys), []
    for key in keys:
        start = max(0, text.casefold().find(key) - share // 4)
        excerpts.append(f"{'…' * (start > 0)}{text[start : start + share - 2]}…")
    return " ".join(excerpts)


def _relationships(
    page: Page, unit: Unit, sentence: str, mentions: Sequence[Mention], structure: Structure
) -> Iterator[RelationshipMention]:
    """Relationships of a unit, each with the sentence, row or connector that it comes from.

    The key of a row is related to the other names in it: as many pairs as names, not as pairs of names.
    """
    place = (page.number, unit.block_index, unit.line)
    kind = page.blocks[unit.block_index].kind
    row = structure.rows.get(place)
    keys = [mention.key for mention in mentions]
    pairs = [
        (fold_name(alias.alias), fold_name(alias.full), RelationshipKind.ALIAS, alias.evidence)
        for alias in declared_aliases(unit.text)
    ]
    if edge := structure.edges.get(place):
        source, target = fold_name(edge.source[0]), fold_name(edge.target[0])
        pairs.append((source, target, RelationshipKind.CONNECTOR, one_line(edge.text, _DESCRIPTION_CHARS)))
        ends = (edge.source, edge.target)
        pairs += [(fold_name(end[0]), fold_name(end[1]), RelationshipKind.ROW, "") for end in ends if len(end) > 1]
    elif kind in {BlockKind.TABLE, BlockKind.DIAGRAM, BlockKind.HEADING}:
        row_keys = list(dict.fromkeys([*(fold_name(name) for name in row.names), *keys] if row else keys))
        shown_keys = set(keys)  # of merged cells that span rows, both names show in the first row only
        partners = [partner for partner in row_keys[1:] if {row_keys[0], partner} & shown_keys]
        pairs += [(row_keys[0], partner, RelationshipKind.ROW, "") for partner in partners[:_ROW_NAMES]]
    elif relates(sentence):
        pairs += [(first, second, RelationshipKind.SENTENCE, "") for first, second in _sentence_pairs(unit, mentions)]
    if not pairs:
        return
    of_row = row_text(page.blocks[unit.block_index], unit.line)
    texts = {fold_name(text): text for text in (row.text if row else "", of_row, sentence) if text}
    position = (page.number, unit.start, unit.block_index, unit.text)
    for source, target, relationship_kind, description in pairs:
        text = next(
            (text for folded_text, text in texts.items() if source in folded_text and target in folded_text), ""
        )
        if source != target and (description or text):  # else the row shows only one of them
            yield RelationshipMention(
                *position, source, target, relationship_kind, 1.0, description or _about(text, source, target)
            )


def _sentence_pairs(unit: Unit, mentions: Sequence[Mention]) -> Iterator[tuple[str, str]]:
    """Names of a sentence that it may relate: near to each other, not side by side in a list, and not who speaks."""
    speaker = _SPEAKER.match(unit.text)
    candidates = [mention for mention in mentions if not (speaker and mention.start == unit.start)][:_SENTENCE_NAMES]
    starts = [(mention.start or 0) - unit.start for mention in candidates]
    ends = [start + len(mention.name) for start, mention in zip(starts, candidates, strict=True)]
    list_gaps = [lists_on(unit.text[end:start]) for end, start in zip(ends, starts[1:], strict=False)]
    far = _FAR[is_japanese(unit.text)]
    for index, first in enumerate(candidates):
        for second in range(index + 1, min(index + 1 + _NEIGHBOURS, len(candidates))):
            if not all(list_gaps[index:second]) and starts[second] - ends[index] <= far:
                yield first.key, candidates[second].key


def _closed(mentions: Sequence[Mention], relationships: Sequence[RelationshipMention]) -> Extraction:
    """Mentions and relationships whose ends are mentioned; names that an alias is declared for are mentioned by it."""
    keys = {mention.key for mention in mentions}
    additions: list[Mention] = []
    for relationship in relationships:
        if relationship.kind is RelationshipKind.ALIAS:
            additions += [mention for mention in _declared(relationship) if mention.key not in keys]
            keys |= {mention.key for mention in additions}
    edges = [edge for edge in relationships if edge.source in keys and edge.target in keys]
    all_mentions = sorted(
        [*mentions, *additions], key=lambda mention: (mention.page_number, mention.start or 0, mention.key)
    )
    all_mentions = _with_shown_types(all_mentions)
    first_names = {
        mention.key for mention in all_mentions if mention.type == "person" and _FIRST_NAME.fullmatch(mention.key)
    }
    return Extraction(
        tuple(all_mentions),
        tuple(
            edge
            for edge in edges
            if edge.kind is not RelationshipKind.SENTENCE or first_names.isdisjoint({edge.source, edge.target})
        ),
    )


def _with_shown_types(mentions: Sequence[Mention]) -> list[Mention]:
    """Mentions with the types that other places of the document show.

    A name that one place in ten shows to be of a type is of it wherever nothing shows another. So is a company without
    its legal form, and a word of a person's name that stands for itself.
    """
    votes: dict[str, Counter[str]] = defaultdict(Counter)
    for mention in mentions:
        votes[mention.key][mention.type] += 1
    kinds = {}
    for key, types in votes.items():
        (kind, count), *_ = sorted(types.items(), key=lambda item: (item[0] == TERM, -item[1], item[0]))
        if kind in _SHOWN_BY_PLACE and _SHOWN_SHARE * count >= types.total():
            kinds[key] = kind
    parts = {_LEGAL_FORM.sub("", key): kind for key, kind in kinds.items() if kind == "organization"}
    names = [key.split() for key, kind in kinds.items() if kind == "person" and " " in key]
    parts |= {word: "person" for words in names if len(words) <= 3 for word in words if len(word) > 2}
    kinds = parts | kinds
    return [
        replace(mention, type=kinds[mention.key]) if mention.type == TERM and mention.key in kinds else mention
        for mention in mentions
    ]


def _declared(relationship: RelationshipMention) -> Iterator[Mention]:
    for alias in declared_aliases(relationship.place):
        keys = {fold_name(alias.full), fold_name(alias.alias)}
        if keys == {relationship.source, relationship.target}:
            for name in (alias.full, alias.alias):
                place = max(0, relationship.place.find(name, max(0, alias.start)))
                yield Mention(
                    relationship.page_number,
                    relationship.start + place,
                    relationship.block_index,
                    relationship.place,
                    name,
                    "term",
                    one_line(relationship.place, _DESCRIPTION_CHARS),
                )
