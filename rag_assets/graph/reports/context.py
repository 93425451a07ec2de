"""What a report on a community is written from: its entities, relationships and claims and the reports on its parts,
packed into a number of tokens; and how it refers to them, as in `[Data: Entities (5, 7); Relationships (23)]`.

Which records are packed depends on their prominence in the whole graph. How they are set out depends on nothing but
which ones they are: so a report stays what it is as long as its records do, whatever happens elsewhere.

References are written alike in reports of every language, so that programs find them.
"""

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from rag_assets.text.cells import CELL_SIGN
from rag_assets.text.plain import one_line
from rag_assets.text.tokens import cut_to_tokens, estimate_tokens

_COLUMNS = {
    "Entities": "number | name | type | description",
    "Relationships": "number | name | name | description",
    "Claims": "name (number of entity) | status | type | dates | description",
    "Reports": "",
}

ENTITIES = "Entities"
RELATIONSHIPS = "Relationships"

_MOST_IDS = 5
_MORE = "+more"
# also with the full-width signs that a model may put into Japanese text
REFERENCE = re.compile(r"(\s*)[\[［【]\s*data\s*[:：]([^\[\]［］【】]{0,2000})[\]］】]", re.IGNORECASE)
_RECORDS = re.compile(r"([^\W\d_]+)\s*[(（]([^()（）]*)[)）]")
_BETWEEN_IDS = re.compile(r"[\s,;，、；]+")


@dataclass(frozen=True)
class Records:
    """Records, by the numbers that reports cite."""

    entities: frozenset[int] = frozenset()
    relationships: frozenset[int] = frozenset()

    def __or__(self, other: "Records") -> "Records":
        return Records(self.entities | other.entities, self.relationships | other.relationships)


class _Line(ABC):
    """A record that is shown as one line of text."""

    @property
    @abstractmethod
    def line(self) -> str: ...

    @cached_property
    def length_tokens(self) -> int:
        """Tokens of the line, estimated."""
        return _length(self.line)


@dataclass(frozen=True)
class Entity(_Line):
    """An entity as reports show it."""

    entity_id: str
    number: int  # number by which it is cited
    name: str
    type: str
    description: str  # what the documents say of it; may be empty
    document_count: int = 1  # documents that name it
    mention_count: int = 1  # places that do

    @cached_property
    def line(self) -> str:
        return _line(str(self.number), self.name, self.type, self.description)


@dataclass(frozen=True)
class Relationship(_Line):
    """A relationship as reports show it."""

    number: int  # number by which it is cited
    source: Entity
    target: Entity
    description: str  # how they are related; may be empty
    combined_degree: int  # sum of the degrees of both ends in the whole graph
    mention_count: int = 1  # places that state it

    @cached_property
    def line(self) -> str:
        return _line(str(self.number), self.source.name, self.target.name, self.description)


@dataclass(frozen=True)
class Claim(_Line):
    """A claim as reports show it; it is cited by its entity."""

    entity: Entity
    status: str  # `true`, `false` or `suspected`
    type: str
    dates: str  # when it holds; may be empty
    description: str

    @cached_property
    def line(self) -> str:
        return _line(f"{self.entity.name} ({self.entity.number})", self.status, self.type, self.dates, self.description)


@dataclass(frozen=True)
class PartReport:
    """The report on a part of a community."""

    title: str
    summary: str
    text: str  # all of it, title and summary included

    @cached_property
    def length_tokens(self) -> int:
        """Tokens of the text, estimated."""
        return _length(self.text)


@dataclass(frozen=True)
class Elements:
    """The records of a community."""

    entities: Sequence[Entity]
    relationships: Sequence[Relationship]
    # claims by id of the entity that they are about, for all entities of the graph
    claims: Mapping[str, Sequence[Claim]]

    @cached_property
    def length_tokens(self) -> int:
        """Tokens of the lines of all records."""
        tokens = sum(entity.length_tokens for entity in self.entities)
        tokens += sum(edge.length_tokens for edge in self.relationships)
        return tokens + sum(claim.length_tokens for entity in self.entities for claim in self._claims_of(entity))

    @cached_property
    def prominent(self) -> list[Entity]:
        """Entities by falling number of relationships within the community, then by number."""
        degrees = _degrees(self.relationships)
        return sorted(self.entities, key=lambda entity: (-degrees[entity.entity_id], entity.number))

    def in_order(self, without: Collection[str] = ()) -> Iterator[Entity | Relationship | Claim]:
        """Records in the order in which they are packed.

        Relationships by falling combined degree (ties: rising number); of each, its first end, its other end, the
        relationship itself, then the claims about either end. Every record comes once. Entities without a
        relationship in the community come last.

        Entities with an id in `without` are left out, and so are the claims about them.
        """
        told_ids: set[str] = set(without)
        for edge in sorted(self.relationships, key=lambda edge: (-edge.combined_degree, edge.number)):
            ends = [end for end in (edge.source, edge.target) if end.entity_id not in told_ids]
            told_ids.update(end.entity_id for end in ends)
            yield from ends
            yield edge
            for end in ends:
                yield from self._claims_of(end)
        for entity in self.prominent:
            if entity.entity_id not in told_ids:
                yield entity
                yield from self._claims_of(entity)

    def _claims_of(self, entity: Entity) -> Sequence[Claim]:
        return self.claims.get(entity.entity_id, ())


@dataclass(frozen=True)
class SubCommunity:
    """A community that another one is split into."""

    elements: Elements
    report: PartReport | None  # the report on it; None where it has none


@dataclass(frozen=True)
class ReportContext:
    """Records and reports that fit a number of tokens."""

    entities: tuple[Entity, ...]  # entities, by falling number of these relationships, then by number
    # relationships, by falling sum of these numbers of their ends, then by number
    relationships: tuple[Relationship, ...]
    claims: tuple[Claim, ...]  # claims, in the order of the entities
    reports: tuple[PartReport, ...]  # reports on parts, by title

    @cached_property
    def text(self) -> str:
        """All of it as text."""
        sections = {
            "Entities": [entity.line for entity in self.entities],
            "Relationships": [edge.line for edge in self.relationships],
            "Claims": [claim.line for claim in self.claims],
            "Reports": [report.text for report in self.reports],
        }
        parts = [
            "\n".join(part for part in (f"-- {name} --", _COLUMNS[name], *lines) if part)
            for name, lines in sections.items()
            if lines
        ]
        return "\n\n".join(parts)

    @cached_property
    def records(self) -> Records:
        """The records that a report may cite: those that are packed, and those that the reports cite."""
        records = Records(
            frozenset(entity.number for entity in self.entities), frozenset(edge.number for edge in self.relationships)
        )
        for report in self.reports:
            records |= cited(report.text)
        return records


HEADING_TOKENS = sum(estimate_tokens(f"-- {name} --\n{columns}\n\n") for name, columns in _COLUMNS.items())


def pack_report(elements: Elements, parts: Sequence[SubCommunity], limit_tokens: int) -> ReportContext:
    """Pack what a report on a community is written from.

    Where all records fit, these. Else, of a community that is not split, as many as fit in the order of
    `Elements.in_order`. Of one that is: its parts, by falling tokens of their records (ties: as given), are replaced by
    their reports one after the other, until it fits; a relationship between two parts stays. If it does not fit even
    then, the reports that do come first in the same order, then records, those of the other parts among them, until the
    limit.

    Source: D. Edge et al., "From Local to Global: A GraphRAG Approach to Query-Focused Summarization" (2024), section
    3.1.5. Deviations: a report that is not shorter than the records is not taken; a record that is longer than the
    limit by itself is cut.

    Tokens are estimated; a leaf has no parts.
    """
    room = limit_tokens - HEADING_TOKENS
    packing = _Packing(room)
    if elements.length_tokens <= room or not parts:
        packing.fill(elements.in_order())
        return packing.context()
    length = elements.length_tokens
    replacements: list[tuple[SubCommunity, PartReport]] = []
    for part in sorted(parts, key=lambda part: -part.elements.length_tokens):
        if length <= room:
            break
        if part.report is not None and part.report.length_tokens < part.elements.length_tokens:
            length += part.report.length_tokens - part.elements.length_tokens
            replacements.append((part, part.report))
    reports: list[tuple[SubCommunity, PartReport]] = []
    left_tokens = room
    for part, report in replacements:
        if report.length_tokens <= left_tokens:
            reports.append((part, report))
            left_tokens -= report.length_tokens
    owner = {entity.entity_id: index for index, (part, _) in enumerate(reports) for entity in part.elements.entities}
    left = [
        edge
        for edge in elements.relationships
        if edge.source.entity_id not in owner or owner[edge.source.entity_id] != owner.get(edge.target.entity_id)
    ]
    packing.fill(report for _, report in reports)
    entities = [entity for entity in elements.entities if entity.entity_id not in owner]
    packing.fill(Elements(entities, left, elements.claims).in_order(without=owner))
    return packing.context()


class _Packing:
    """Takes records until one does not fit."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._items: list[Entity | Relationship | Claim | PartReport] = []
        self._full = False

    def fill(self, items: Iterable[Entity | Relationship | Claim | PartReport]) -> None:
        for item in items:
            if self._full:
                return
            self._take(item)

    def _take(self, item: Entity | Relationship | Claim | PartReport) -> None:
        if item.length_tokens > self._room:
            self._full = True
            if self._items or not isinstance(item, Entity):
                return
            item = replace(item, description=cut_to_tokens(item.description, max(1, self._room // 2)))
        self._room -= item.length_tokens
        self._items.append(item)

    def context(self) -> ReportContext:
        entities = [item for item in self._items if isinstance(item, Entity)]
        relationships = [item for item in self._items if isinstance(item, Relationship)]
        claims = [item for item in self._items if isinstance(item, Claim)]
        reports = [item for item in self._items if isinstance(item, PartReport)]
        degrees = _degrees(relationships)
        entities.sort(key=lambda entity: (-degrees[entity.entity_id], entity.number))
        place = {entity.entity_id: index for index, entity in enumerate(entities)}
        relationships.sort(
            key=lambda edge: (-degrees[edge.source.entity_id] - degrees[edge.target.entity_id], edge.number)
        )
        claims.sort(key=lambda claim: (place[claim.entity.entity_id], claim.line))
        reports.sort(key=lambda report: (report.title, report.text))
        return ReportContext(tuple(entities), tuple(relationships), tuple(claims), tuple(reports))


def _degrees(relationships: Sequence[Relationship]) -> Counter[str]:
    degrees: Counter[str] = Counter()
    for edge in relationships:
        degrees.update((edge.source.entity_id, edge.target.entity_id))
    return degrees


def _line(*cells: str) -> str:
    return CELL_SIGN.join(one_line(cell) for cell in cells)


def _length(text: str) -> int:
    return estimate_tokens(text) + 1


def reference(entities: Collection[int], relationships: Collection[int] = ()) -> str:
    """A reference to records, of each kind the first five in the order given; empty without any."""
    kinds = ((ENTITIES, entities), (RELATIONSHIPS, relationships))
    parts = [f"{kind} ({_listed(dict.fromkeys(numbers))})" for kind, numbers in kinds if numbers]
    return f"[Data: {'; '.join(parts)}]" if parts else ""


def cited(text: str) -> Records:
    """The records that a text refers to."""
    numbers: dict[str, set[int]] = {ENTITIES: set(), RELATIONSHIPS: set()}
    for match in REFERENCE.finditer(text):
        for kind, ids in _RECORDS.findall(match[2]):
            numbers.get(_kind(kind), set()).update(map(int, re.findall(r"\d{1,9}", ids)))
    return Records(frozenset(numbers[ENTITIES]), frozenset(numbers[RELATIONSHIPS]))


def check_references(text: str, existing: Records) -> tuple[str, int]:
    """Take out references to records that do not exist, and bring the others into one form.

    At most five ids of a kind are left; `+more` stands for the rest. A reference of which nothing is left goes as a
    whole.

    Returns:
        The text, and how many ids were taken out: of records that do not exist, of kinds that there are none of, and
        what is no number; a reference without any id counts as one.
    """
    removed_count = 0
    numbers_by_kind = {ENTITIES: existing.entities, RELATIONSHIPS: existing.relationships}

    def mend(match: re.Match[str]) -> str:
        nonlocal removed_count
        valid: dict[str, dict[int, None]] = {ENTITIES: {}, RELATIONSHIPS: {}}
        more_kinds: set[str] = set()
        has_id = False
        for name, ids in _RECORDS.findall(match[2]):
            kind = _kind(name)
            for item in filter(None, _BETWEEN_IDS.split(ids)):
                has_id = True
                if item.lower() == _MORE:
                    more_kinds.add(kind)
                elif item.isdecimal() and int(item) in numbers_by_kind.get(kind, frozenset()):
                    valid[kind][int(item)] = None
                else:
                    removed_count += 1
        removed_count += not has_id
        parts = [
            f"{kind} ({_listed(numbers, has_more=kind in more_kinds)})" for kind, numbers in valid.items() if numbers
        ]
        return f"{match[1]}[Data: {'; '.join(parts)}]" if parts else ""

    mended_text = REFERENCE.sub(mend, text)
    return mended_text, removed_count


def _kind(name: str) -> str:
    return name.strip().capitalize()


def _listed(numbers: Collection[int], *, has_more: bool = False) -> str:
    texts = list(map(str, numbers))[:_MOST_IDS]
    return ", ".join([*texts, _MORE] if has_more or len(numbers) > _MOST_IDS else texts)
