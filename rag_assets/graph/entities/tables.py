"""The step that brings `entities`, `relationships` and `entity_merges` in step with the mentions.

Names are resolved, then mentions become one node for each entity and one edge for each pair. What a connector draws or
a model states counts by instances. What merely stands together counts by how much more often it does so than chance
would have it: by positive, normalised pointwise mutual information, discounted for what was seen only a few times.

Sources: Church and Hanks, "Word Association Norms, Mutual Information, and Lexicography", Computational Linguistics 16
(1990); Bouma, "Normalized (Pointwise) Mutual Information in Collocation Extraction", GSCL 2009; the discount
n / (n + 1) is the first factor of Pantel and Lin, "Discovering Word Senses from Text", KDD 2002, section 3. Pairs are
counted in both orders, so that a pair whose ends stand with nothing else has the value 1.

What is said of an entity ranks by how early it names it: a sentence that begins with a name is about it. Where the name
is not in it, by how often it is said. Its type is what most of its mentions say; `term`, which says nothing, only
where no other type has a third of them. None of this depends on what else is said, so that changes elsewhere leave it.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, astuple, dataclass
from itertools import count
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from rag_assets.contracts.fingerprint import code_fingerprint, digest
from rag_assets.contracts.ports import Embedder, LanguageModel
from rag_assets.contracts.tables import (
    ENTITIES,
    ENTITY_MENTIONS,
    ENTITY_MERGES,
    RELATIONSHIP_MENTIONS,
    RELATIONSHIPS,
    Table,
)
from rag_assets.enrich.written import table_inputs
from rag_assets.graph.entities.descriptions import MOST_NOTES, Description, Notes, describe
from rag_assets.graph.entities.resolution import (
    Declaration,
    Merge,
    NameFacts,
    ResolutionOptions,
    read_overrides,
    resolve_names,
)
from rag_assets.models.dialogue import Missing
from rag_assets.parsing.records import Record
from rag_assets.store.incremental import marked_stand_ins, settled
from rag_assets.store.lake import WHOLE, Lake

if TYPE_CHECKING:
    import duckdb

ENTITY_TABLES = (ENTITIES, RELATIONSHIPS, ENTITY_MERGES)

_ID_DIGITS = 16
_MOST_RECORDS = 9_999_999  # seven digits: short to cite, and of 10,000 records hardly any two share a digest
_RANK_DECIMALS = 12
_WEIGHT_DECIMALS = 3
_NOTE_CHARS = 300


@dataclass(frozen=True)
class EntityOptions:
    """How entities are made from mentions."""

    description_chars: int  # characters from which a description is shortened
    resolution: ResolutionOptions  # how names are compared
    merges_csv: Path | None = None  # file in which a person says which names are one, or None


def entity_id(name_key: str) -> str:
    """Id of the entity that stands under a folded name."""
    return digest(name_key)[:_ID_DIGITS]


def record_numbers(identities: Iterable[str]) -> dict[str, int]:
    """Numbers by which reports cite records: short digests of what they are, so that history makes no difference.

    Of two records with one digest, the one whose identity comes later has the next digest that is free.
    """
    numbers: dict[str, int] = {}
    used_numbers: set[int] = set()
    for identity in sorted(identities):
        attempts = (int(digest(identity, attempt), 16) % _MOST_RECORDS + 1 for attempt in count())
        numbers[identity] = next(number for number in attempts if number not in used_numbers)
        used_numbers.add(numbers[identity])
    return numbers


def wanted_entities(lake: Lake, options: EntityOptions, model_name: str, embedder_name: str) -> str:
    """What the entities are to be computed from: all mentions, the decisions of a person, code, settings and models.

    Raises:
        SettingsError: The file of decisions cannot be read.
    """
    overrides = read_overrides(options.merges_csv)
    code = code_fingerprint(f"{__name__}:update_entities")
    mentions = table_inputs(lake, (ENTITY_MENTIONS, RELATIONSHIP_MENTIONS))
    decisions = (tuple(sorted(overrides.merges.items())), tuple(sorted(overrides.apart)))
    facts = (options.description_chars, *astuple(options.resolution), model_name, embedder_name)
    return digest(code, mentions, decisions, *facts)


def update_entities(lake: Lake, model: LanguageModel, embedder: Embedder | None, options: EntityOptions) -> int:
    """Make the entities and relationships those of the stored mentions; nothing is written where nothing changed.

    A model that does not write leaves it to rules and to a choice of sentences; without an embedder, spelling variants
    are taken by rule alone.

    Returns:
        Tables that were written.

    Raises:
        ModelError: A model cannot be used any longer; nothing is written.
        SettingsError: The file of decisions cannot be read.
    """
    key = wanted_entities(lake, options, model.name, embedder.name if embedder else "")
    if all(settled(lake.inputs(table, WHOLE)) == {WHOLE: key} for table in ENTITY_TABLES):
        return 0
    import duckdb

    chars = options.description_chars
    with duckdb.connect() as connection:
        columns = ["document_id", "name", "name_key", "type", "description"]
        connection.register("mentions", lake.read(ENTITY_MENTIONS, columns=columns))
        columns = ["document_id", "source_key", "target_key", "kind", "description"]
        connection.register("related", lake.read(RELATIONSHIP_MENTIONS, columns=columns))
        merging, nodes, edges = Missing(), Missing(), Missing()
        merges = _resolve(connection, model, embedder, options, merging)
        _register_merges(connection, merges)
        names = dict(connection.execute("SELECT entity_id, min(head) FROM heads GROUP BY ALL").fetchall())
        entities, relationships = (
            connection.sql(query, params={"notes": MOST_NOTES}).to_arrow_table().to_pylist()
            for query in (_ENTITIES, _RELATIONSHIPS)
        )

    def pair(row: Record) -> tuple[str, str]:
        return f"{names[row['source_id']]} — {names[row['target_id']]}", "relationship"

    for row in relationships:
        row["weight"] = round(row["weight"], _WEIGHT_DECIMALS)
    relationships = [row for row in relationships if row["weight"] > 0]
    entities = _described(lake, ENTITIES, entities, itemgetter("name", "type"), model, chars, nodes)
    relationships = _described(lake, RELATIONSHIPS, relationships, pair, model, chars, edges)
    _ranked(entities, relationships)
    merge_rows = [{**asdict(merge), "rule": merge.rule.name.lower()} for merge in merges]
    tables = ((ENTITIES, entities, nodes), (RELATIONSHIPS, relationships, edges), (ENTITY_MERGES, merge_rows, merging))
    write_count = 0
    for table, rows, missing in tables:
        inputs = {WHOLE: marked_stand_ins(key, missing.causes, again=missing.again)}
        write_count += lake.write(table, WHOLE, pa.Table.from_pylist(rows, table.schema), inputs).written
    return write_count


_NAMES = """
    WITH names AS (
        SELECT name_key, name FROM mentions GROUP BY name_key, name
        QUALIFY row_number() OVER (PARTITION BY name_key ORDER BY count(*) DESC, name) = 1
    ), types AS (
        SELECT name_key, type FROM (
            SELECT name_key, type, count(*) AS votes, sum(count(*)) OVER (PARTITION BY name_key) AS total
            FROM mentions GROUP BY name_key, type
        )
        QUALIFY row_number() OVER (
            PARTITION BY name_key ORDER BY type <> 'term' AND 3 * votes >= total DESC, votes DESC, type
        ) = 1
    ), totals AS (
        SELECT name_key, count(*) AS count, coalesce(max(description), '') AS note FROM mentions GROUP BY ALL
    )
    SELECT name_key, name, type, totals.count, note
    FROM names JOIN types USING (name_key) JOIN totals USING (name_key)
    ORDER BY name_key
"""


def _resolve(
    connection: "duckdb.DuckDBPyConnection",
    model: LanguageModel,
    embedder: Embedder | None,
    options: EntityOptions,
    missing: Missing,
) -> list[Merge]:
    names = [
        NameFacts(key, name, kind, count, note[:_NOTE_CHARS])
        for key, name, kind, count, note in connection.execute(_NAMES).fetchall()
    ]
    rows = connection.execute(
        "SELECT DISTINCT source_key, target_key, description FROM related WHERE kind = 'alias' ORDER BY ALL"
    ).fetchall()
    return resolve_names(
        names,
        [Declaration(*row) for row in rows],
        read_overrides(options.merges_csv),
        options.resolution,
        embedder,
        model,
        missing,
    )


def _register_merges(connection: "duckdb.DuckDBPyConnection", merges: Sequence[Merge]) -> None:
    """Tables `heads` (name, the name that stands for its entity, its id) and `named` (mentions with these)."""
    heads = {merge.name_key: merge.merged_into for merge in merges}
    keys = [row[0] for row in connection.execute("SELECT DISTINCT name_key FROM mentions ORDER BY 1").fetchall()]
    key_heads = [heads.get(key, key) for key in keys]
    table = pa.table(
        {
            "name_key": pa.array(keys, pa.string()),
            "head": pa.array(key_heads, pa.string()),
            "entity_id": pa.array([entity_id(head) for head in key_heads], pa.string()),
        }
    )
    connection.register("heads", table)
    connection.execute("CREATE TEMP TABLE named AS SELECT * FROM mentions JOIN heads USING (name_key)")


_ENTITIES = """
    WITH spellings AS (
        SELECT entity_id, head, name_key, name FROM named GROUP BY entity_id, head, name_key, name
        QUALIFY row_number() OVER (PARTITION BY name_key ORDER BY count(*) DESC, name) = 1
    ), names AS (
        SELECT entity_id, head,
               coalesce(max(name) FILTER (name_key = head), min(name)) AS name,
               coalesce(list_sort(list(name) FILTER (name_key <> head)), []) AS aliases
        FROM spellings GROUP BY ALL
    ), types AS (
        SELECT entity_id, type FROM (
            SELECT entity_id, type, count(*) AS votes, sum(count(*)) OVER (PARTITION BY entity_id) AS total
            FROM named GROUP BY entity_id, type
        )
        QUALIFY row_number() OVER (
            PARTITION BY entity_id ORDER BY type <> 'term' AND 3 * votes >= total DESC, votes DESC, type
        ) = 1
    ), totals AS (
        SELECT entity_id, count(*) AS mention_count, count(DISTINCT document_id) AS document_count
        FROM named GROUP BY ALL
    ), ranked AS (
        SELECT entity_id, description,
               coalesce(min(nullif(strpos(description, name), 0)), 1000000 - count(*)) AS lead
        FROM named WHERE description <> '' GROUP BY entity_id, description
        QUALIFY row_number() OVER (PARTITION BY entity_id ORDER BY lead, description) <= $notes
    ), notes AS (
        SELECT entity_id, list(description ORDER BY lead, description) AS notes FROM ranked GROUP BY ALL
    )
    SELECT entity_id, names.head AS name_key, name, aliases, type, mention_count, document_count,
           coalesce(notes, []) AS notes
    FROM names JOIN types USING (entity_id) JOIN totals USING (entity_id) LEFT JOIN notes USING (entity_id)
    ORDER BY mention_count DESC, name_key
"""


_RELATIONSHIPS = """
    WITH ends AS (
        SELECT least(source.entity_id, target.entity_id) AS source_id,
               greatest(source.entity_id, target.entity_id) AS target_id,
               kind IN ('row', 'sentence') AS together, description
        FROM related
        JOIN heads source ON source.name_key = source_key
        JOIN heads target ON target.name_key = target_key
        WHERE kind <> 'alias' AND source.entity_id <> target.entity_id
    ), pairs AS (
        SELECT source_id, target_id, count(*) AS mention_count,
               count(*) FILTER (NOT together) AS stated, count(*) FILTER (together) AS joint
        FROM ends GROUP BY ALL
    ), marginal AS (
        SELECT entity_id, sum(joint) AS joint FROM (
            SELECT source_id AS entity_id, joint FROM pairs UNION ALL SELECT target_id, joint FROM pairs
        ) GROUP BY ALL
    ), whole AS (
        SELECT sum(joint) AS joint FROM pairs
    ), measured AS (
        SELECT pairs.*,
               CASE WHEN pairs.joint = 0 THEN 0.0
                    ELSE ln(2.0 * pairs.joint * whole.joint / (a.joint * b.joint))
                         / -ln(pairs.joint / (2.0 * whole.joint))
               END AS npmi
        FROM pairs
        JOIN marginal a ON a.entity_id = source_id
        JOIN marginal b ON b.entity_id = target_id
        CROSS JOIN whole
    ), ranked AS (
        SELECT source_id, target_id, description, count(*) AS count FROM ends WHERE description <> ''
        GROUP BY source_id, target_id, description
        QUALIFY row_number() OVER (PARTITION BY source_id, target_id ORDER BY count(*) DESC, description) <= $notes
    ), notes AS (
        SELECT source_id, target_id, list(description ORDER BY count DESC, description) AS notes
        FROM ranked GROUP BY ALL
    )
    SELECT source_id, target_id, mention_count, coalesce(notes, []) AS notes,
           stated + greatest(0.0, least(1.0, npmi)) * joint * joint / (joint + 1.0) AS weight
    FROM measured LEFT JOIN notes USING (source_id, target_id)
    WHERE stated > 0 OR npmi > 0
    ORDER BY mention_count DESC, source_id, target_id
"""


def _described(
    lake: Lake,
    table: Table,
    rows: list[Record],
    subject: Callable[[Record], tuple[str, str]],
    model: LanguageModel,
    chars: int,
    missing: Missing,
) -> list[Record]:
    """Rows of entities or relationships with number and description, made from their notes.

    `subject` gives name and type of what a row describes. A description of the version before is kept where it was made
    from the same.
    """

    def identity(row: Record) -> str:
        return " ".join(row[column] for column in table.key)

    before = lake.read(table, columns=[*table.key, "description", "content_sha256"]).to_pylist()
    old_descriptions = {identity(row): Description(row["description"], row["content_sha256"]) for row in before}
    notes = [Notes(identity(row), *subject(row), tuple(row.pop("notes")), table.name) for row in rows]
    descriptions = describe(notes, old_descriptions, model, chars, missing)
    numbers = record_numbers(note.identity for note in notes)
    for row, note in zip(rows, notes, strict=True):
        description = descriptions[note.identity]
        row["number"] = numbers[note.identity]
        row |= {"description": description.text, "content_sha256": description.content_sha256}
    return rows


def _ranked(entities: list[Record], relationships: list[Record]) -> None:
    """Add degrees and PageRank."""
    import igraph

    ids = sorted(row["entity_id"] for row in entities)
    place = {name: index for index, name in enumerate(ids)}
    edges = sorted((row["source_id"], row["target_id"], row["weight"]) for row in relationships)
    graph = igraph.Graph(n=len(ids), edges=[(place[source], place[target]) for source, target, _ in edges])
    ranks = graph.pagerank(weights=[weight for _, _, weight in edges] or None, directed=False) if ids else []
    degrees = graph.degree()
    for row in entities:
        index = place[row["entity_id"]]
        row |= {"degree": int(degrees[index]), "rank": round(float(ranks[index]), _RANK_DECIMALS)}
    for row in relationships:
        row["combined_degree"] = degrees[place[row["source_id"]]] + degrees[place[row["target_id"]]]
