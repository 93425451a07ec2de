"""Entities that tell documents from others: named by many of a group, and by few that are not of it.

What stays out: how entities are found (`rag_assets.graph`), and what else is told of documents
(`rag_assets.query.ask.overviews.overview`).
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from rag_assets.contracts.tables import DOCUMENTS, ENTITIES, ENTITY_MENTIONS
from rag_assets.query.stored import StoredTables

_MOST = 5  # names of a group
_MOST_CHARS = 30  # of a name
_LEAST_CHARS = 2
_LEAST_DOCUMENTS = 2  # that name it, of a group of more documents than these
_LEAST_SHARE = 0.1  # of the documents of a group
READ = 600  # documents that are read, at most, evenly spread
_WEIGHTS = {"identifier": 0.4, "person": 0.0, "place": 0.2, "organization": 0.3, "data_item": 0.6, "term": 0.8}
_WORD = re.compile(r"[A-Za-z][a-z]+")
_WORD_WEIGHT = 0.5  # of a single English word, which mostly is a label
_CODE = re.compile(r"[_/|>@=#\\\[\]]|^[A-Z]{1,2}$|\d{3}|^\W*\d|\.\w|^[A-Z]{1,3}\d|^[a-z]+[A-Z]|^[a-z-]+$")


def telling_entities(groups: Sequence[Collection[str]], stored: StoredTables) -> list[list[tuple[str, str]]]:
    """The names of entities that tell each group of documents from all others, the best first.

    Args:
        groups: Ids of the documents of each group.
        stored: The stored tables; without an entity graph there are no names.

    Returns:
        Of each group the names, each with the first document of the group that it stands in.

    Raises:
        StoreError: A published file is gone.
    """
    most = max(1, READ // max(1, len(groups)))
    samples = [evenly(sorted(group), most) for group in groups]
    every = {document for group in samples for document in group}
    mentions = stored.read(ENTITY_MENTIONS, ["document_id", "name_key"], every)
    total = stored.read(DOCUMENTS, ["document_id"]).num_rows
    count_rows = mentions.group_by(["document_id", "name_key"]).aggregate([([], "count_all")]).to_pylist()
    by_document: dict[str, Counter[str]] = defaultdict(Counter)
    for row in count_rows:
        by_document[row["document_id"]][row["name_key"]] = row["count_all"]
    entities = _entities({key for counts in by_document.values() for key in counts}, stored)
    return [
        _of_group(sample, len(group) / max(1, len(sample)), by_document, entities, total)
        for sample, group in zip(samples, groups, strict=True)
    ]


def evenly(texts: Sequence[str], most: int) -> Sequence[str]:
    """All of some texts, or so many that are evenly spread among them."""
    step = max(1.0, len(texts) / most)
    return [texts[int(place * step)] for place in range(min(len(texts), most))]


def _entities(keys: Iterable[str], stored: StoredTables) -> dict[str, tuple[str, float, int]]:
    """Name, weight and number of documents of the entities that have these keys and a name to be told."""
    condition = pc.field("name_key").isin(pa.array(sorted(keys), pa.string()))
    rows = stored.read(ENTITIES, ["name_key", "name", "type", "document_count"], where=condition).to_pylist()
    return {
        row["name_key"]: (
            row["name"],
            weight * (_WORD_WEIGHT if row["type"] == "term" and _WORD.fullmatch(row["name"]) else 1.0),
            row["document_count"],
        )
        for row in rows
        if (weight := _WEIGHTS.get(row["type"], 1.0))
        and _LEAST_CHARS <= len(row["name"]) <= _MOST_CHARS
        and not _CODE.search(row["name"])
    }


def _of_group(
    group: Sequence[str],
    scale: float,
    by_document: dict[str, Counter[str]],
    entities: dict[str, tuple[str, float, int]],
    total: int,
) -> list[tuple[str, str]]:
    """Names that tell a group, of whose documents each read one stands for some, with the first that has them."""
    holders: dict[str, list[str]] = defaultdict(list)
    for document in group:
        for key in by_document.get(document, ()):
            if key in entities:
                holders[key].append(document)
    least = max(_LEAST_DOCUMENTS, _LEAST_SHARE * len(group)) if len(group) > _LEAST_DOCUMENTS else 1

    def score(key: str) -> float:
        _, weight, documents = entities[key]
        count = min(scale * len(holders[key]), documents)
        mentions = sum(by_document[document][key] for document in holders[key])
        return weight * count * math.log(1 + total / documents) * math.sqrt(count / documents) * math.log(1 + mentions)

    best: list[tuple[str, str]] = []
    for key in sorted(
        (key for key, documents in holders.items() if len(documents) >= least), key=lambda key: (-score(key), key)
    ):
        name = entities[key][0]
        if not any(name in other_name or other_name in name for other_name, _ in best):
            best.append((name, holders[key][0]))
        if len(best) == _MOST:
            break
    return best
