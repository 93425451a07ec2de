"""Every stored table, declared once: pyarrow schema, key, and a description with unit for each field.

Writers cast to these schemas and refuse what does not fit; asset column schemas, checks, SQL views and the data-model
page are derived from them. What stays out: reading and writing, which is `rag_assets.store`.
"""

import pyarrow as pa

from rag_assets.contracts.document_tables import (
    BLOCKS,
    CHUNKS,
    DOCUMENTS,
    PAGES,
    PARSE_FAILURES,
)
from rag_assets.contracts.enrichment_tables import (
    DOCUMENT_FACETS,
    DOCUMENT_LINES,
    FILE_SUMMARIES,
    META_KNOWLEDGE,
    PAGE_SUMMARIES,
    QUESTION_CLUSTERS,
    SYNTHETIC_QA,
)
from rag_assets.contracts.evaluation_tables import EVALUATION_RESULTS, EVALUATION_RUNS, EVALUATION_SCORES
from rag_assets.contracts.graph_tables import (
    CLAIMS,
    COMMUNITIES,
    COMMUNITY_MEMBERS,
    COMMUNITY_REPORTS,
    ENTITIES,
    ENTITY_MENTIONS,
    ENTITY_MERGES,
    RELATIONSHIP_MENTIONS,
    RELATIONSHIPS,
)
from rag_assets.contracts.serving_tables import CHUNK_INDEX, ENTITY_INDEX, QUESTION_INDEX, REPORT_INDEX, SUMMARY_INDEX
from rag_assets.contracts.table import (
    AVERAGED_TEXTS,
    COMPUTED_COLUMNS,
    EMBEDDED_TEXT,
    TEXT,
    Table,
    VectorTable,
    column,
)

MODEL_CALLS = Table(
    "model_calls",
    "The ledger: one row for each call of a language model, and for each answer that came from the store instead.",
    ("call_id",),
    (
        column("call_id", TEXT, "Identifies the call."),
        column("called_at", pa.timestamp("us", tz="UTC"), "When the answer came, UTC."),
        column("run_id", TEXT, "Dagster run that asked; null outside a run.", nullable=True),
        column("asset", TEXT, "Table that the answer went into."),
        column("step", TEXT, "What was done, as in `summarize_page`."),
        column("partition", TEXT, "Shard of the document; null where there is none.", nullable=True),
        column("document_id", TEXT, "Document that was read; null where there was more than one.", nullable=True),
        column("provider", TEXT, "`anthropic`, `openai` or `vllm`."),
        column("model", TEXT, "Name of the model at its provider."),
        column("request_key", TEXT, "What the answer is stored under, SHA-256, hexadecimal."),
        column(
            "outcome",
            TEXT,
            "`completed`, `truncated`, `refused`, `empty`, `failed`, `unknown` (its process ended before the answer "
            "came; the price is the most that it may have cost), and of rows that are no calls `invalid` (an "
            "answer broke its schema) or `repeated` (a call was made because the answer before was of no use).",
        ),
        column("cache_hit", pa.bool_(), "Whether the answer came from the store: no tokens, no cost."),
        column("input_tokens", pa.int64(), "Tokens read, but for those of the two columns that follow."),
        column("cache_read_tokens", pa.int64(), "Tokens read from the provider's prompt cache."),
        column("cache_write_tokens", pa.int64(), "Tokens read and written to the provider's prompt cache."),
        column("output_tokens", pa.int64(), "Tokens written."),
        column("cost_usd", pa.float64(), "Price in US dollars."),
        column("seconds", pa.float64(), "From sending to the last token; of a batch, until its results came."),
        column("batch_id", TEXT, "The provider's id of the batch; null outside a batch.", nullable=True),
        column("error", TEXT, "Why there is no answer, or what is wrong with it; else null.", nullable=True),
    ),
    sharded=False,
    published=False,
)

TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        DOCUMENTS,
        PAGES,
        BLOCKS,
        CHUNKS,
        PARSE_FAILURES,
        DOCUMENT_LINES,
        PAGE_SUMMARIES,
        FILE_SUMMARIES,
        DOCUMENT_FACETS,
        SYNTHETIC_QA,
        QUESTION_CLUSTERS,
        META_KNOWLEDGE,
        ENTITY_MENTIONS,
        RELATIONSHIP_MENTIONS,
        CLAIMS,
        ENTITIES,
        RELATIONSHIPS,
        ENTITY_MERGES,
        COMMUNITIES,
        COMMUNITY_MEMBERS,
        COMMUNITY_REPORTS,
        MODEL_CALLS,
        EVALUATION_RUNS,
        EVALUATION_SCORES,
        EVALUATION_RESULTS,
    )
}

VECTOR_TABLES: dict[str, VectorTable] = {
    table.name: table for table in (CHUNK_INDEX, SUMMARY_INDEX, QUESTION_INDEX, ENTITY_INDEX, REPORT_INDEX)
}

__all__ = [
    "AVERAGED_TEXTS",
    "BLOCKS",
    "CHUNKS",
    "CHUNK_INDEX",
    "CLAIMS",
    "COMMUNITIES",
    "COMMUNITY_MEMBERS",
    "COMMUNITY_REPORTS",
    "COMPUTED_COLUMNS",
    "DOCUMENTS",
    "DOCUMENT_FACETS",
    "DOCUMENT_LINES",
    "EMBEDDED_TEXT",
    "ENTITIES",
    "ENTITY_INDEX",
    "ENTITY_MENTIONS",
    "ENTITY_MERGES",
    "EVALUATION_RESULTS",
    "EVALUATION_RUNS",
    "EVALUATION_SCORES",
    "FILE_SUMMARIES",
    "META_KNOWLEDGE",
    "MODEL_CALLS",
    "PAGES",
    "PAGE_SUMMARIES",
    "PARSE_FAILURES",
    "QUESTION_CLUSTERS",
    "QUESTION_INDEX",
    "RELATIONSHIPS",
    "RELATIONSHIP_MENTIONS",
    "REPORT_INDEX",
    "SUMMARY_INDEX",
    "SYNTHETIC_QA",
    "TABLES",
    "TEXT",
    "VECTOR_TABLES",
    "Table",
    "VectorTable",
    "column",
]
