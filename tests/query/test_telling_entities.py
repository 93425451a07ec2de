"""Entities that tell groups of documents from each other."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from graph_data import record, write

from rag_assets.contracts.tables import DOCUMENTS, ENTITIES, ENTITY_MENTIONS
from rag_assets.query.ask.overviews.telling_entities import READ, telling_entities
from rag_assets.query.stored import StoredTables
from rag_assets.store.lake import Lake, shard_of
from rag_assets.text.folding import fold_name

FILES = [f"s/files/{number}.md" for number in range(6)]
BILLS = [f"s/bills/{number}.md" for number in range(6)]
TYPES = {"山田": "person", "B10103": "identifier", "order_id": "identifier", "OpenChain": "identifier"}


def stored(folder: Path, names: Mapping[str, Sequence[str]]) -> StoredTables:
    """The tables of documents that name entities."""
    lake = Lake(folder)
    write(lake, DOCUMENTS, [record(DOCUMENTS, document_id=each, shard=shard_of(each)) for each in names])
    mentions = [
        record(
            ENTITY_MENTIONS,
            document_id=document,
            shard=shard_of(document),
            mention_index=index,
            name=name,
            name_key=fold_name(name),
        )
        for document, listed in names.items()
        for index, name in enumerate(listed)
    ]
    write(lake, ENTITY_MENTIONS, mentions)
    every = sorted({name for listed in names.values() for name in listed})
    entities = [
        record(
            ENTITIES,
            entity_id=name,
            number=number,
            name=name,
            name_key=fold_name(name),
            type=TYPES.get(name, "term"),
            document_count=sum(name in listed for listed in names.values()),
        )
        for number, name in enumerate(every, start=1)
    ]
    write(lake, ENTITIES, entities)
    return StoredTables(lake, {each.name: lake.latest(each) for each in (DOCUMENTS, ENTITIES, ENTITY_MENTIONS)})


def test_what_many_of_a_group_and_few_others_name_comes_first(tmp_path: Path) -> None:
    names = {each: ["顧客", "アップロード"] for each in FILES} | {each: ["顧客", "請求書"] for each in BILLS}
    files, bills = telling_entities([FILES, BILLS], stored(tmp_path, names))
    assert files == [("アップロード", FILES[0]), ("顧客", FILES[0])]
    assert bills == [("請求書", BILLS[0]), ("顧客", BILLS[0])]


def test_codes_persons_and_parts_of_better_names_are_not_told(tmp_path: Path) -> None:
    names = {each: ["山田", "B10103", "order_id", "OpenChain", "請求書", "請求書の様式"] for each in BILLS}
    names |= {each: ["請求書の様式"] for each in FILES}
    [told] = telling_entities([BILLS], stored(tmp_path, names))
    assert [name for name, _ in told] == ["請求書", "OpenChain"]


def test_one_document_of_many_tells_nothing_of_them(tmp_path: Path) -> None:
    names = {each: ["請求書"] for each in BILLS} | {BILLS[0]: ["請求書", "遊覧船"]}
    tables = stored(tmp_path, names)
    assert telling_entities([BILLS, BILLS[:1]], tables) == [
        [("請求書", BILLS[0])],
        [("遊覧船", BILLS[0]), ("請求書", BILLS[0])],
    ]


def test_without_a_graph_there_are_none(tmp_path: Path) -> None:
    assert telling_entities([FILES, []], StoredTables(Lake(tmp_path), {})) == [[], []]


def test_of_many_documents_some_are_read(tmp_path: Path) -> None:
    many = [f"s/many/{number:04}.md" for number in range(2 * READ)]
    names = {each: ["請求書"] if place % 2 else ["遊覧船"] for place, each in enumerate(many)}
    [told] = telling_entities([many], stored(tmp_path, names))
    assert told == [("遊覧船", many[0])]  # every second one is read
