"""A hand-made knowledge base with an entity graph: two passages that only a name joins, among some that share words."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
from query_data import BagOfWordsEmbedder, chunk, make_base, table

from rag_assets.contracts.ports import LanguageModel
from rag_assets.contracts.tables import (
    CHUNK_INDEX,
    CHUNKS,
    CLAIMS,
    COMMUNITIES,
    COMMUNITY_MEMBERS,
    COMMUNITY_REPORTS,
    ENTITIES,
    ENTITY_INDEX,
    ENTITY_MENTIONS,
    ENTITY_MERGES,
    RELATIONSHIPS,
    REPORT_INDEX,
    Table,
)
from rag_assets.query import KnowledgeBase
from rag_assets.query.stored import StoredTables
from rag_assets.store.lake import WHOLE, Lake, shard_of
from rag_assets.store.serving import entity_rows, report_rows
from rag_assets.store.vectors.store import VectorStore
from rag_assets.text.folding import fold_name

QUESTION = "Where was the director of Silent Harbor born?"
FILM, PERSON = "films/harbor.md", "people/kovacs.md"
TEXTS = {
    FILM: "Silent Harbor is a film directed by Mira Kovacs.",
    PERSON: "Mira Kovacs comes from Zagreb and studied in Vienna.",
    "people/a.md": "The director was born where the harbor was silent and nobody came to see it at all.",
    "people/b.md": "Where was he born? The director of another harbor was born here in the winter.",
    "people/c.md": "The born director of the company was silent about what the papers had told of her.",
    "people/d.md": "Where the director was born is silent of record, and so is the street.",
    "people/e.md": "Of the harbor where the silent director was seen there is no picture left.",
}
TWO_STEPS = {f"{place}.md": f"The harbor of {place} was silent, says the director." for place in "abcdefg"} | {
    FILM: TEXTS[FILM],
    PERSON: "Mira Kovacs was born in Zagreb and studied in Vienna.",
}  # where the second passage alone says the last part of the question
NAMES = {FILM: ("Silent Harbor", "Mira Kovacs"), PERSON: ("Kovács Mira", "Zagreb", "Vienna")}
PLAIN: dict[str, Any] = {"string": "", "int": 0, "float": 0.0, "list": []}


def record(declaration: Table, **values: Any) -> dict[str, Any]:
    """A row with plain values in the columns that are not given."""
    row: dict[str, Any] = {}
    for field in declaration.fields:
        kind = "list" if pa.types.is_list(field.type) else "string" if pa.types.is_string(field.type) else "int"
        row[field.name] = None if field.nullable else False if pa.types.is_boolean(field.type) else PLAIN[kind]
    return row | values


def write(lake: Lake, declaration: Table, records: Sequence[Mapping[str, Any]]) -> None:
    """Make the rows of a table those given."""
    shards: dict[str, list[Mapping[str, Any]]] = {}
    for each in records:
        shards.setdefault(each["shard"] if declaration.sharded else WHOLE, []).append(each)
    for shard, rows in shards.items():
        lake.write(
            declaration, shard, pa.Table.from_pylist([dict(row) for row in rows], declaration.schema), {"x": "1"}
        )


def fill_lake(
    lake: Lake, texts: Mapping[str, str] | None = None, names: Mapping[str, Sequence[str]] | None = None
) -> None:
    """Make the tables of the graph those of some passages, by chunk id, and the names in them."""
    texts = texts or {f"{name}#1.0": text for name, text in TEXTS.items()}
    names = names or {f"{name}#1.0": listed for name, listed in NAMES.items()}
    identified = {name: fold_name(name) for listed in names.values() for name in listed if name != "Kovács Mira"}
    write(
        lake,
        CHUNKS,
        [
            record(CHUNKS, **_place(chunk_id), page_number=index, text=text)
            for index, (chunk_id, text) in enumerate(texts.items())
        ],
    )
    mentioned = [(chunk_id, name) for chunk_id, listed in names.items() for name in listed]
    mentions = [
        record(ENTITY_MENTIONS, **_place(chunk_id), mention_index=index, name=name, name_key=fold_name(name))
        for index, (chunk_id, name) in enumerate(mentioned)
    ]
    write(lake, ENTITY_MENTIONS, mentions)
    merge = {"name_key": fold_name("Kovács Mira"), "merged_into": fold_name("Mira Kovacs"), "rule": "override"}
    write(lake, ENTITY_MERGES, [record(ENTITY_MERGES, **merge)])
    write(
        lake,
        ENTITIES,
        [
            record(
                ENTITIES, entity_id=key, number=number, name=name, name_key=key, type="person", description="A name."
            )
            for number, (name, key) in enumerate(identified.items(), start=1)
        ],
    )
    pairs = (("mira kovacs", "silent harbor", 1.0), ("vienna", "zagreb", 0.5))
    edges = [{"source_id": source, "target_id": target, "weight": weight} for source, target, weight in pairs]
    held = [edge for edge in edges if edge["source_id"] in identified.values()]
    write(
        lake,
        RELATIONSHIPS,
        [record(RELATIONSHIPS, **edge, number=number, description="So.") for number, edge in enumerate(held, start=1)],
    )
    claim = {"document_id": PERSON, "shard": shard_of(PERSON), "subject_key": fold_name("Kovács Mira")}
    write(lake, CLAIMS, [record(CLAIMS, **claim, description="She studied in Vienna.", status="true")])
    write_communities(lake, list(identified.values()))


def _place(chunk_id: str) -> dict[str, Any]:
    document_id = chunk_id.rpartition("#")[0]
    return {"document_id": document_id, "shard": shard_of(document_id), "chunk_id": chunk_id}


def write_communities(lake: Lake, entity_ids: Sequence[str]) -> None:
    """One community of all, split into two of which one has a report of its own."""
    halves = {"c1": entity_ids[:2], "c2": entity_ids[2:]}
    communities = [record(COMMUNITIES, community_id="c0", level=0, size=len(entity_ids))]
    members = [record(COMMUNITY_MEMBERS, level=0, entity_id=each, community_id="c0") for each in entity_ids]
    for name, inside in halves.items():
        communities.append(record(COMMUNITIES, community_id=name, level=1, parent_id="c0", size=len(inside)))
        members += [record(COMMUNITY_MEMBERS, level=1, entity_id=each, community_id=name) for each in inside]
    write(lake, COMMUNITIES, communities)
    write(lake, COMMUNITY_MEMBERS, members)
    write(
        lake,
        COMMUNITY_REPORTS,
        [
            report("c0", 0, "Films and cities", "All of it [Data: Entities (1, 3)]."),
            report("c1", 1, "Silent Harbor", "A film and its director [Data: Entities (1, 2)]."),
        ],
    )


def report(community_id: str, level: int, title: str, summary: str) -> dict[str, Any]:
    """A report."""
    text = f"# {title}\n\n{summary}"
    facts = {"community_id": community_id, "level": level, "title": title, "summary": summary, "text": text}
    return record(COMMUNITY_REPORTS, **facts, rating=5.0, language="en", length_tokens=len(text) // 4)


def stored_tables(lake: Lake) -> StoredTables:
    """The stored tables as they are."""
    tables = (
        CHUNKS,
        CLAIMS,
        COMMUNITIES,
        COMMUNITY_MEMBERS,
        COMMUNITY_REPORTS,
        ENTITIES,
        ENTITY_MENTIONS,
        ENTITY_MERGES,
        RELATIONSHIPS,
    )
    return StoredTables(lake, {each.name: lake.latest(each) for each in tables})


def index_graph(lake: Lake, store: VectorStore, embedder: BagOfWordsEmbedder) -> dict[str, int]:
    """Write the serving tables of the graph; returns their versions."""
    store.sync(ENTITY_INDEX, {WHOLE: entity_rows(lake, WHOLE)}, embedder)
    store.sync(REPORT_INDEX, {WHOLE: report_rows(lake, WHOLE)}, embedder)
    return {each.name: store.optimize(each) for each in (ENTITY_INDEX, REPORT_INDEX)}


def graph_base(
    folder: Path,
    embedder: BagOfWordsEmbedder,
    model: LanguageModel | None = None,
    texts: Mapping[str, str] = MappingProxyType(TEXTS),
) -> KnowledgeBase:
    """The knowledge base; its names are those of the film and the person, whatever the texts."""
    lake, store = Lake(folder / "lake"), VectorStore(folder / "vectors")
    fill_lake(lake, {f"{name}#1.0": text for name, text in texts.items()})
    chunks = [chunk(name, 1, 0, text, shard="00") for name, text in texts.items()]
    store.sync(CHUNK_INDEX, {"00": table(CHUNK_INDEX, chunks)}, embedder)
    versions = {CHUNK_INDEX.name: store.optimize(CHUNK_INDEX), **index_graph(lake, store, embedder)}
    return make_base(store, embedder, versions, stored=stored_tables(lake), model=model)
