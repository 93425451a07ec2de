"""Reading the entity graph of one published version for people: entities, relationships, communities, reports."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rag_assets.contracts.tables import (
    COMMUNITIES,
    COMMUNITY_MEMBERS,
    COMMUNITY_REPORTS,
    ENTITIES,
    ENTITY_MENTIONS,
    ENTITY_MERGES,
    RELATIONSHIPS,
    Table,
)
from rag_assets.query.contents.cursors import LIST_LIMIT, Listed, cut_ranked
from rag_assets.query.stored import StoredTables, once
from rag_assets.text.folding import fold_name

# What is given of communities, of one's entities and of the relationships between these, where no number is named.
COMMUNITY_LIMIT, MEMBER_LIMIT, EDGE_LIMIT = 200, 100, 500
_SHOWN_RELATIONSHIPS = 200
_SHOWN_PAGES = 200
_HEADLINE = ("title", "rating")  # of a report


@dataclass(frozen=True)
class EntityEntry:
    """An entity in a list.

    Attributes:
        entity_id: The entity.
        number: Number by which reports cite it.
        name: Its most frequent name.
        type: Its most frequent type.
        mention_count: Places that name it.
        document_count: Documents that name it.
        degree: Entities that it is related to.
        rank: PageRank over the weighted graph.
    """

    entity_id: str
    number: int
    name: str
    type: str
    mention_count: int
    document_count: int
    degree: int
    rank: float


@dataclass(frozen=True)
class Related:
    """An entity that another one is related to.

    Attributes:
        entity: The entity.
        number: Number by which reports cite the relationship.
        description: How they are related; empty where only that they occur together is known.
        weight: Weight of the relationship.
        mention_count: Places that state it.
    """

    entity: EntityEntry
    number: int
    description: str
    weight: float
    mention_count: int


@dataclass(frozen=True)
class NamingPage:
    """A page that names an entity.

    Attributes:
        document_id: The document.
        page_number: Position in the document, from 1.
        mention_count: Places on the page that name it.
        chunk_id: A passage that names it, or None.
    """

    document_id: str
    page_number: int
    mention_count: int
    chunk_id: str | None


@dataclass(frozen=True)
class CommunityEntry:
    """A community in a list or tree.

    Attributes:
        community_id: The community.
        level: 0 for the coarsest.
        parent_id: Community of the level above that holds it, or None.
        size: Entities in it.
        relationship_count: Relationships between them.
        is_leaf: Whether it is not split any further.
        title: Title of its report, or None.
        rating: Impact from 0 to 10 as its report says, or None.
    """

    community_id: str
    level: int
    parent_id: str | None
    size: int
    relationship_count: int
    is_leaf: bool
    title: str | None
    rating: float | None


@dataclass(frozen=True)
class EntityContents:
    """An entity with what it stands in.

    Attributes:
        entry: The entity as it is listed.
        aliases: Other names.
        description: What its documents say of it.
        relationships: Those of greatest weight.
        pages: Pages that name it, those that do so most first.
        page_count: All pages that name it.
        communities: The communities that hold it, the coarsest first.
    """

    entry: EntityEntry
    aliases: tuple[str, ...]
    description: str
    relationships: tuple[Related, ...]
    pages: tuple[NamingPage, ...]
    page_count: int
    communities: tuple[CommunityEntry, ...]


@dataclass(frozen=True)
class Finding:
    """A finding of a report.

    Attributes:
        summary: In one line.
        explanation: In full.
    """

    summary: str
    explanation: str


@dataclass(frozen=True)
class ReportEntry:
    """A report in a list.

    Attributes:
        community_id: The community.
        level: Its level.
        title: Title.
        summary: What the community is about.
        rating: Impact from 0 to 10.
        language: Language of the report.
    """

    community_id: str
    level: int
    title: str
    summary: str
    rating: float
    language: str


@dataclass(frozen=True)
class ReportContents:
    """A report.

    Attributes:
        entry: The report as it is listed.
        rating_explanation: Why it is rated so.
        findings: Most important first.
        text: The whole report.
        method: What wrote it.
    """

    entry: ReportEntry
    rating_explanation: str
    findings: tuple[Finding, ...]
    text: str
    method: str


@dataclass(frozen=True)
class Edge:
    """A relationship between two entities of a community.

    Attributes:
        source_id: One entity.
        target_id: The other one.
        weight: Weight of the relationship.
        description: How they are related; may be empty.
    """

    source_id: str
    target_id: str
    weight: float
    description: str


@dataclass(frozen=True)
class CommunityContents:
    """A community with what it holds.

    Attributes:
        entry: The community as it is listed.
        parts: The communities that it is split into.
        members: Entities of greatest rank.
        edges: Relationships between these, those of greatest weight.
        report: Its report, or None.
    """

    entry: CommunityEntry
    parts: tuple[CommunityEntry, ...]
    members: tuple[EntityEntry, ...]
    edges: tuple[Edge, ...]
    report: ReportContents | None


class GraphContents:
    """The entity graph of one published version, for people. All is empty where there is none.

    Every method raises `StoreError` where a file is missing or damaged, those of lists `QueryError` where the cursor is
    none that they gave.
    """

    def __init__(self, stored: StoredTables) -> None:
        self._stored = stored
        self._entities = once(lambda: _read_entities(stored))
        self._communities = once(self._read_communities)

    def entities(
        self, text: str = "", entity_type: str = "", limit: int = LIST_LIMIT, cursor: str | None = None
    ) -> Listed[EntityEntry]:
        """Entities of a type whose names hold a text: those it names, then those it begins, then others; by rank."""
        table = self._entities()
        mask = np.ones(table.num_rows, dtype=bool)
        if entity_type:
            mask &= pc.equal(table["type"], entity_type).to_numpy()
        if text.strip():
            folded_text = fold_name(text) or text.strip().casefold()
            classes = _name_classes(table["names"], folded_text)
            rows = np.flatnonzero(mask & (classes < 3))
            rows = rows[np.argsort(classes[rows], kind="stable")]
        else:
            rows = np.flatnonzero(mask)
        return cut_ranked(
            rows.tolist(), limit, cursor, lambda at: _entity_entries(table.take(pa.array(at, pa.int64())))
        )

    def entity(self, entity_id: str) -> EntityContents | None:
        """An entity; None where there is no such entity."""
        columns = ("entity_id", "name_key", "aliases", "description")
        rows = self._rows(ENTITIES, columns, pc.field("entity_id") == entity_id)
        if not rows:
            return None
        pages = self._naming_pages(rows[0]["name_key"])
        membership_rows = self._rows(COMMUNITY_MEMBERS, ("community_id",), pc.field("entity_id") == entity_id)
        communities = self._communities()
        own_communities = [
            communities[row["community_id"]] for row in membership_rows if row["community_id"] in communities
        ]
        return EntityContents(
            entry=self._entries_of([entity_id])[entity_id],
            aliases=tuple(rows[0]["aliases"]),
            description=rows[0]["description"],
            relationships=self._relationships(entity_id),
            pages=tuple(pages[:_SHOWN_PAGES]),
            page_count=len(pages),
            communities=tuple(sorted(own_communities, key=lambda community: community.level)),
        )

    def communities(
        self,
        level: int | None = None,
        parent_id: str | None = None,
        limit: int = COMMUNITY_LIMIT,
        cursor: str | None = None,
    ) -> Listed[CommunityEntry]:
        """Communities of a level, or those that a community is split into, by level, the largest first."""
        entries = [
            entry
            for entry in self._communities().values()
            if level in {None, entry.level} and parent_id in {None, entry.parent_id}
        ]
        return cut_ranked(range(len(entries)), limit, cursor, lambda at: [entries[place] for place in at])

    def levels(self) -> dict[int, int]:
        """Number of communities of each level."""
        return dict(sorted(Counter(entry.level for entry in self._communities().values()).items()))

    def community(
        self, community_id: str, member_limit: int = MEMBER_LIMIT, edge_limit: int = EDGE_LIMIT
    ) -> CommunityContents | None:
        """A community with its members of greatest rank and their relationships; None where there is none."""
        communities = self._communities()
        entry = communities.get(community_id)
        if entry is None:
            return None
        member_rows = self._rows(COMMUNITY_MEMBERS, ("entity_id",), pc.field("community_id") == community_id)
        entries = self._entries_of([row["entity_id"] for row in member_rows])
        members = sorted(entries.values(), key=lambda entry: (-entry.rank, entry.entity_id))[:member_limit]
        return CommunityContents(
            entry=entry,
            parts=tuple(part for part in communities.values() if part.parent_id == community_id),
            members=tuple(members),
            edges=self._edges([member.entity_id for member in members], edge_limit),
            report=self.report(community_id),
        )

    def reports(
        self, level: int | None = None, limit: int = LIST_LIMIT, cursor: str | None = None
    ) -> Listed[ReportEntry]:
        """Reports of a level, or all, those of greatest rating first."""
        where = None if level is None else pc.field("level") == level
        rows = self._rows(COMMUNITY_REPORTS, tuple(ReportEntry.__dataclass_fields__), where)
        rows.sort(key=lambda row: (-row["rating"], row["level"], row["community_id"]))
        return cut_ranked(range(len(rows)), limit, cursor, lambda at: [ReportEntry(**rows[place]) for place in at])

    def report(self, community_id: str) -> ReportContents | None:
        """The report on a community; None where there is none."""
        rest = ("rating_explanation", "findings", "text", "method")
        columns = (*ReportEntry.__dataclass_fields__, *rest)
        rows = self._rows(COMMUNITY_REPORTS, columns, pc.field("community_id") == community_id)
        if not rows:
            return None
        explanation, findings, text, method = (rows[0].pop(name) for name in rest)
        return ReportContents(
            ReportEntry(**rows[0]), explanation, tuple(Finding(**row) for row in findings or ()), text, method
        )

    def _rows(self, table: Table, columns: Sequence[str], where: pc.Expression | None = None) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self._stored.read(table, columns, where=where).to_pylist()
        return rows

    def _read_communities(self) -> dict[str, CommunityEntry]:
        """All communities by level, the largest first, with title and rating of their reports."""
        reports = {row.pop("community_id"): row for row in self._rows(COMMUNITY_REPORTS, ("community_id", *_HEADLINE))}
        rows = self._rows(COMMUNITIES, [name for name in CommunityEntry.__dataclass_fields__ if name not in _HEADLINE])
        rows.sort(key=lambda row: (row["level"], -row["size"], row["community_id"]))
        none = dict.fromkeys(_HEADLINE)
        return {row["community_id"]: CommunityEntry(**row, **reports.get(row["community_id"], none)) for row in rows}

    def _entries_of(self, ids: Sequence[str]) -> dict[str, EntityEntry]:
        table = self._entities()
        chosen_rows = table.filter(pc.is_in(table["entity_id"], pa.array(ids, pa.string())))
        return {entry.entity_id: entry for entry in _entity_entries(chosen_rows)}

    def _relationships(self, entity_id: str) -> tuple[Related, ...]:
        columns = ("source_id", "target_id", "number", "description", "weight", "mention_count")
        where = (pc.field("source_id") == entity_id) | (pc.field("target_id") == entity_id)
        rows = sorted(self._rows(RELATIONSHIPS, columns, where), key=lambda row: (-row["weight"], row["number"]))
        neighbours = [(row["target_id"] if row["source_id"] == entity_id else row["source_id"], row) for row in rows]
        shown_neighbours = neighbours[:_SHOWN_RELATIONSHIPS]
        entries = self._entries_of([neighbour_id for neighbour_id, _ in shown_neighbours])
        return tuple(
            Related(entries[neighbour_id], row["number"], row["description"], row["weight"], row["mention_count"])
            for neighbour_id, row in shown_neighbours
            if neighbour_id in entries
        )

    def _naming_pages(self, name_key: str) -> list[NamingPage]:
        merge_rows = self._rows(ENTITY_MERGES, ("name_key",), pc.field("merged_into") == name_key)
        names = pa.array([name_key, *(row["name_key"] for row in merge_rows)], pa.string())
        where = pc.field("name_key").isin(names)
        counts: dict[tuple[str, int], tuple[int, str | None]] = {}
        for row in self._rows(ENTITY_MENTIONS, ("document_id", "page_number", "chunk_id"), where):
            page = (row["document_id"], row["page_number"])
            count, chunk_id = counts.get(page, (0, None))
            counts[page] = (count + 1, chunk_id or row["chunk_id"])
        pages = [NamingPage(*page, *rest) for page, rest in counts.items()]
        return sorted(pages, key=lambda page: (-page.mention_count, page.document_id, page.page_number))

    def _edges(self, ids: Sequence[str], limit: int) -> tuple[Edge, ...]:
        id_array = pa.array(ids, pa.string())
        where = pc.field("source_id").isin(id_array) & pc.field("target_id").isin(id_array)
        rows = self._rows(RELATIONSHIPS, tuple(Edge.__dataclass_fields__), where)
        rows.sort(key=lambda row: (-row["weight"], row["source_id"], row["target_id"]))
        return tuple(Edge(**row) for row in rows[:limit])


def _entity_entries(rows: pa.Table) -> list[EntityEntry]:
    return [EntityEntry(**row) for row in rows.drop_columns(["names"]).to_pylist()]


def _read_entities(stored: StoredTables) -> pa.Table:
    """All entities by falling rank, with their folded names."""
    table = stored.read(ENTITIES, [*EntityEntry.__dataclass_fields__, "name_key", "aliases"])
    table = table.sort_by([("rank", "descending"), ("entity_id", "ascending")])
    pairs = zip(table["name_key"].to_pylist(), table["aliases"].to_pylist(), strict=True)
    names = ["\n".join(["", key, *map(fold_name, aliases), ""]) for key, aliases in pairs]
    return table.drop_columns(["name_key", "aliases"]).append_column("names", pa.array(names, pa.string()))


def _name_classes(names: pa.ChunkedArray, folded_text: str) -> np.ndarray[Any, np.dtype[np.int8]]:
    """For each entity: 0 where a name is the text, 1 where one begins with it, 2 where one holds it, else 3."""
    classes = np.full(len(names), 3, dtype=np.int8)
    for value, pattern in ((2, folded_text), (1, f"\n{folded_text}"), (0, f"\n{folded_text}\n")):
        classes[pc.match_substring(names, pattern).to_numpy(zero_copy_only=False).astype(bool)] = value
    return classes
