"""Rows of the serving tables, made from stored tables: what search needs of a passage or a summary in one place."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

import pyarrow as pa

from rag_assets.contracts.causes import SummaryFormat
from rag_assets.contracts.fingerprint import code_fingerprint, digest
from rag_assets.contracts.tables import (
    AVERAGED_TEXTS,
    CHUNK_INDEX,
    CHUNKS,
    COMMUNITY_REPORTS,
    COMPUTED_COLUMNS,
    DOCUMENT_FACETS,
    DOCUMENTS,
    EMBEDDED_TEXT,
    ENTITIES,
    ENTITY_INDEX,
    ENTITY_MENTIONS,
    ENTITY_MERGES,
    FILE_SUMMARIES,
    PAGE_SUMMARIES,
    QUESTION_INDEX,
    REPORT_INDEX,
    SUMMARY_INDEX,
    SYNTHETIC_QA,
    TEXT,
    Table,
)
from rag_assets.store.lake import Lake

_SEARCH_TERMS = "rag_assets.text.folding:search_terms"  # gives the column that the store adds for full-text search

_BEGINNING_CHARS = 200
_SUMMARY_CHARS = 400  # of the summary of a report that are embedded
_AVERAGED_PASSAGES = 16  # of those that name an entity: more hardly move the mean, and memory is bounded
_AVERAGED = pa.list_(pa.dictionary(pa.int32(), pa.string()))  # a text is held once, however many entities it names
_FACTS = ["document_id", "folder", "format", "modified_at", "title"]


def chunk_rows(lake: Lake, shard: str) -> pa.Table:
    """Rows of the serving table `chunks` for a shard, without vectors."""
    facts = _facts(lake, shard)
    columns = [field.name for field in CHUNK_INDEX.fields if field.name in CHUNKS.schema.names]
    rows = lake.read(CHUNKS, [shard], [*columns, "context", "chunk_index"]).to_pylist()
    rows.sort(key=lambda row: (row["document_id"], row["page_number"], row["chunk_index"]))
    beginnings: dict[str, str] = {}
    records = []
    for row in rows:
        context, document_id = row.pop("context"), row["document_id"]
        beginning = beginnings.setdefault(document_id, row["text"][:_BEGINNING_CHARS])
        texts = {"beginning": beginning, EMBEDDED_TEXT: _passage(context, row["text"])}
        records.append({**row, **facts[document_id], **texts})
    return _table(records, CHUNK_INDEX.fields)


def summary_rows(lake: Lake, shard: str) -> pa.Table:
    """Rows of the serving table `summaries` for a shard, without vectors."""
    facts = _facts(lake, shard)
    records = []
    for content_format, row in _summaries(lake, shard):
        document = {name: value for name, value in facts[row["document_id"]].items() if name != "title"}
        subject = row.get("page_id") or row["document_id"]
        records.append(
            {
                **document,
                "summary_id": f"{content_format}:{subject}",
                "content_format": content_format,
                "document_id": row["document_id"],
                "page_id": row.get("page_id"),
                "shard": shard,
                "language": row["language"],
                "text": row["text"],
                EMBEDDED_TEXT: row["text"],
            }
        )
    return _table(records, SUMMARY_INDEX.fields)


def question_rows(lake: Lake, shard: str) -> pa.Table:
    """Rows of the serving table `questions` for a shard, without vectors: searched questions only."""
    facts = _facts(lake, shard)
    facets: dict[str, list[str]] = {}
    for row in lake.read(DOCUMENT_FACETS, [shard], ["document_id", "facet", "value"]).to_pylist():
        facets.setdefault(row["document_id"], []).append(f"{row['facet']}={row['value']}")
    copied_columns = ["qa_id", "document_id", "shard", "chunk_ids", "page_ids", "language", "answer"]
    records = [
        {
            **facts[row["document_id"]],
            **{name: row[name] for name in copied_columns},
            "facets": facets.get(row["document_id"], []),
            "text": row["question"],
            EMBEDDED_TEXT: row["question"],
        }
        for row in lake.read(SYNTHETIC_QA, [shard]).to_pylist()
        if row["indexed"]
    ]
    return _table(records, QUESTION_INDEX.fields)


def entity_rows(lake: Lake, shard: str) -> pa.Table:
    """Rows of the serving table `entities`, without vectors.

    The vector of an entity is the mean of those of passages that name it, which are made for the passages anyway; of
    an entity that no passage names, the vector of its own text. All rows are in the shard `WHOLE`.
    """
    records, averaged_texts = [], []
    passages_by_name = _passages_by_name(lake)
    columns = ["entity_id", "name", "name_key", "type", "aliases", "description"]
    for row in lake.read(ENTITIES, [shard], columns).to_pylist():
        names = " / ".join([row["name"], *row["aliases"]])
        text = f"{names}\n{row['description']}".strip()
        copied_fields = {name: row[name] for name in ("entity_id", "name", "type")}
        records.append({**copied_fields, "shard": shard, "text": text, EMBEDDED_TEXT: text})
        averaged_texts.append(passages_by_name.get(row["name_key"], []))
    return _table(records, ENTITY_INDEX.fields).append_column(AVERAGED_TEXTS, pa.array(averaged_texts, _AVERAGED))


def report_rows(lake: Lake, shard: str) -> pa.Table:
    """Rows of the serving table `reports`, without vectors: title and summary are embedded; all in shard `WHOLE`."""
    copied_columns = ["community_id", "level", "title", "rating", "language", "text"]
    records = [
        {
            **{name: row[name] for name in copied_columns},
            "shard": shard,
            EMBEDDED_TEXT: f"{row['title']}\n{row['summary'][:_SUMMARY_CHARS]}",
        }
        for row in lake.read(COMMUNITY_REPORTS, [shard], [*copied_columns, "summary"]).to_pylist()
    ]
    return _table(records, REPORT_INDEX.fields)


Maker = Callable[[Lake, str], pa.Table]

# serving table: the stored tables that its rows are made from, and what makes them
SERVING: Mapping[str, tuple[tuple[Table, ...], Maker]] = {
    CHUNK_INDEX.name: ((CHUNKS, DOCUMENTS), chunk_rows),
    SUMMARY_INDEX.name: ((FILE_SUMMARIES, PAGE_SUMMARIES, DOCUMENTS), summary_rows),
    QUESTION_INDEX.name: ((SYNTHETIC_QA, DOCUMENT_FACETS, DOCUMENTS), question_rows),
    ENTITY_INDEX.name: ((ENTITIES, ENTITY_MENTIONS, ENTITY_MERGES, CHUNKS), entity_rows),
    REPORT_INDEX.name: ((COMMUNITY_REPORTS,), report_rows),
}


def serving_code(make_rows: Maker) -> tuple[str, ...]:
    """Functions whose code the rows of a serving table depend on."""
    return f"{__name__}:{make_rows.__name__}", _SEARCH_TERMS


def serving_states(lake: Lake, name: str, embedder_name: str) -> dict[str, str]:
    """For each shard, a digest of all that the rows of a serving table are made from: files, code and embedder.

    Ask before making the rows: if a file is written in between, the digest tells that they may be out of date.
    """
    tables, make_rows = SERVING[name]
    latest = {table.name: lake.latest(table) for table in tables}
    code = code_fingerprint(*serving_code(make_rows))
    if not tables[0].sharded:
        inputs = [
            (table_name, *(fact for item in sorted(versions.items()) for fact in item))
            for table_name, versions in latest.items()
        ]
        return {shard: digest(embedder_name, code, *inputs) for shard in latest[tables[0].name]}
    shards = sorted({shard for versions in latest.values() for shard in versions})
    return {
        shard: digest(
            embedder_name, code, *((table_name, versions.get(shard)) for table_name, versions in latest.items())
        )
        for shard in shards
    }


def served_texts(lake: Lake) -> Iterator[str]:
    """Every text whose vector the serving tables hold."""
    for tables, make_rows in SERVING.values():
        alike = [table for table in tables if table.sharded == tables[0].sharded]
        for shard in sorted({shard for table in alike for shard in lake.latest(table)}):
            yield from make_rows(lake, shard)[EMBEDDED_TEXT].to_pylist()


def _passage(context: str, text: str) -> str:
    """What is embedded of a passage."""
    return f"{context}\n{text}"


def _passages_by_name(lake: Lake) -> Mapping[str, list[str]]:
    """For the key of each entity the texts of passages that name it, each once, in their order."""
    merges = lake.read(ENTITY_MERGES, columns=["name_key", "merged_into"])
    merge_targets = dict(zip(merges["name_key"].to_pylist(), merges["merged_into"].to_pylist(), strict=True))
    texts = {
        row["chunk_id"]: _passage(row["context"], row["text"])
        for row in lake.read(CHUNKS, columns=["chunk_id", "context", "text"]).to_pylist()
    }
    mentions = lake.read(ENTITY_MENTIONS, columns=["name_key", "chunk_id"])
    passages_by_name: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for name, chunk_id in zip(mentions["name_key"].to_pylist(), mentions["chunk_id"].to_pylist(), strict=True):
        passages = passages_by_name[merge_targets.get(name, name)]
        if chunk_id in texts and len(passages) < _AVERAGED_PASSAGES:
            passages[texts[chunk_id]] = None
    return {name: list(passages) for name, passages in passages_by_name.items()}


def _facts(lake: Lake, shard: str) -> Mapping[str, dict[str, object]]:
    return {row["document_id"]: row for row in lake.read(DOCUMENTS, [shard], _FACTS).to_pylist()}


def _summaries(lake: Lake, shard: str) -> Iterator[tuple[SummaryFormat, dict[str, str]]]:
    for content_format, table in ((SummaryFormat.FILE, FILE_SUMMARIES), (SummaryFormat.PAGE, PAGE_SUMMARIES)):
        for row in lake.read(table, [shard]).to_pylist():
            yield content_format, row


def _table(records: Sequence[Mapping[str, object]], fields: Sequence[pa.Field]) -> pa.Table:
    given_fields = [field for field in fields if field.name not in COMPUTED_COLUMNS]
    schema = pa.schema([*given_fields, pa.field(EMBEDDED_TEXT, TEXT, nullable=False)])
    return pa.Table.from_pylist(list(records), schema=schema)
