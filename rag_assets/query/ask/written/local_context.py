"""What a reader of mode `graph_local` is given: the neighbourhood of the query in the graph, packed by budget.

Half of the tokens are for passages, 15 % for reports, the rest for entities, relationships and claims.

Source: D. Edge and others, From local to global, 2024 (what a neighbourhood consists of); the shares are those of the
reference implementation's local search. Deviation: neighbours are ranked by the walk, not by vectors.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rag_assets.contracts.tables import (
    CLAIMS,
    COMMUNITY_MEMBERS,
    COMMUNITY_REPORTS,
    ENTITIES,
    RELATIONSHIPS,
    Table,
)
from rag_assets.query.results import Hit
from rag_assets.query.search.graph_local import Walk
from rag_assets.query.search.passage_graph import PassageGraph
from rag_assets.query.stored import StoredTables
from rag_assets.text.tokens import estimate_tokens

PASSAGE_SHARE = 0.5
REPORT_SHARE = 0.15
NEIGHBOURS = 10

Row = Mapping[str, Any]


@dataclass(frozen=True)
class LocalContext:
    """Records for a reader, each kind in order of weight."""

    entities: tuple[str, ...]  # lines of number, name, type and description
    relationships: tuple[str, ...]  # lines of number, both names and description
    claims: tuple[str, ...]  # lines of the number and name of the entity, status and claim
    reports: tuple[str, ...]
    passages: tuple[Hit, ...]  # passages, in the order found
    length_tokens: int  # tokens of all, estimated


def local_context(
    stored: StoredTables, graph: PassageGraph, walk: Walk, hits: Sequence[Hit], budget_tokens: int
) -> LocalContext:
    """Gather the neighbourhood that a walk reached and pack it to a budget of tokens, by estimate; hits are best first.

    Raises:
        StoreError: A file is missing or damaged.
    """
    entity_ids = [graph.entity_ids[position] for position in walk.nearest_entities(NEIGHBOURS)]
    order = {entity_id: place for place, entity_id in enumerate(entity_ids)}
    columns = ["entity_id", "number", "name", "type", "description"]
    entities = _rows_of(stored, ENTITIES, columns, "entity_id", entity_ids)
    entities.sort(key=lambda row: order[row["entity_id"]])
    numbers = {row["entity_id"]: row["number"] for row in entities}
    packing = _Packing(budget_tokens)
    reports = packing.take(_reports(stored, order), round(REPORT_SHARE * budget_tokens))
    passages = packing.take((hit.text for hit in hits), round(PASSAGE_SHARE * budget_tokens))
    rest = max(0, budget_tokens - round((REPORT_SHARE + PASSAGE_SHARE) * budget_tokens))
    lines = (f"{row['number']} | {row['name']} | {row['type']} | {row['description']}" for row in entities)
    entity_lines = packing.take(lines, rest // 2)
    relationship_lines = packing.take(_relationships(stored, graph, order), rest // 4)
    claims = packing.take(_claims(stored, graph, order, numbers), rest // 4)
    return LocalContext(entity_lines, relationship_lines, claims, reports, tuple(hits[: len(passages)]), packing.used)


class _Packing:
    """Takes texts while there is room."""

    def __init__(self, budget_tokens: int) -> None:
        self._budget = budget_tokens
        self.used = 0

    def take(self, texts: Iterable[str], tokens: int) -> tuple[str, ...]:
        """The first texts that fit a share of the budget."""
        room = min(tokens, self._budget - self.used)
        fitting_texts: list[str] = []
        for text in texts:
            length = estimate_tokens(text) + 1
            if length > room:
                break
            fitting_texts.append(text)
            room -= length
            self.used += length
        return tuple(fitting_texts)


def _rows_of(stored: StoredTables, table: Table, columns: Sequence[str], key: str, values: Iterable[str]) -> list[Row]:
    rows = stored.read(table, columns)
    matching_rows: list[Row] = rows.filter(
        pc.is_in(rows[key], value_set=pa.array(list(values), pa.string()))
    ).to_pylist()
    return matching_rows


def _relationships(stored: StoredTables, graph: PassageGraph, order: Mapping[str, int]) -> list[str]:
    """Those among the neighbours first, then by weight."""
    columns = ["source_id", "target_id", "number", "description", "weight"]
    relationships = {
        row["number"]: row for end in columns[:2] for row in _rows_of(stored, RELATIONSHIPS, columns, end, order)
    }
    ends = {number: [row["source_id"] in order, row["target_id"] in order] for number, row in relationships.items()}
    ranking = sorted(relationships.values(), key=lambda row: (-sum(ends[row["number"]]), -row["weight"], row["number"]))

    def name(entity_id: str) -> str:
        return graph.entity_names[graph.entity_positions[entity_id]]

    return [
        f"{row['number']} | {name(row['source_id'])} | {name(row['target_id'])} | {row['description']}"
        for row in ranking
    ]


def _claims(
    stored: StoredTables, graph: PassageGraph, order: Mapping[str, int], numbers: Mapping[str, int]
) -> list[str]:
    """Claims on the neighbours, in their order."""
    keys = {key: graph.entity_ids[place] for key, place in graph.names.items() if graph.entity_ids[place] in order}
    claims = _rows_of(stored, CLAIMS, ["subject_key", "status", "description"], "subject_key", keys)
    ranking = sorted(claims, key=lambda row: (order[keys[row["subject_key"]]], row["description"]))
    return [
        f"{numbers[keys[row['subject_key']]]} | {graph.entity_names[graph.entity_positions[keys[row['subject_key']]]]}"
        f" | {row['status']} | {row['description']}"
        for row in ranking
    ]


def _reports(stored: StoredTables, order: Mapping[str, int]) -> list[str]:
    """Reports on communities of the neighbours: those with most of them first, then the finest."""
    counts: dict[str, set[str]] = {}
    for row in _rows_of(stored, COMMUNITY_MEMBERS, ["entity_id", "community_id"], "entity_id", order):
        counts.setdefault(row["community_id"], set()).add(row["entity_id"])
    columns = ["community_id", "level", "rating", "text"]
    reports = _rows_of(stored, COMMUNITY_REPORTS, columns, "community_id", counts)
    ranking = sorted(
        reports, key=lambda row: (-len(counts[row["community_id"]]), -row["level"], -row["rating"], row["community_id"])
    )
    return [str(row["text"]) for row in ranking]
