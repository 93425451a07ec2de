"""Serving tables of the vector store, derived from the stored ones."""

import pyarrow as pa

from rag_assets.contracts.table import (
    CELL_RANGE,
    DOCUMENT_ID,
    ENTITY_ID,
    LANGUAGE,
    PAGE_BOX,
    PAGE_ID,
    PAGE_NAME,
    PAGE_NUMBER,
    SHARD,
    TEXT,
    VectorTable,
    column,
)

_SEARCH_TEXT = column(
    "search_text", TEXT, "Terms that the full-text index holds, parted by blanks, of context and text."
)

_ROW_SHA256 = column("row_sha256", TEXT, "SHA-256 over the other columns and the embedder's name: tells what changed.")

_FOLDER = column("folder", TEXT, "Source name and folders above the file, POSIX separators.")

_FORMAT = column("format", TEXT, "Format of the file.")

_MODIFIED_AT = column("modified_at", pa.timestamp("us", tz="UTC"), "Last change of the file, UTC.", nullable=True)

_TITLE = column("title", TEXT, "Title of the document.")

_WHOLE = column("shard", TEXT, "Always `all`: the table is made as a whole.")

CHUNK_INDEX = VectorTable(
    "chunks",
    "Serving copy of the chunks, with vectors and full-text index.",
    "chunk_id",
    (
        column("chunk_id", TEXT, "`page_id.chunk_index`."),
        PAGE_ID,
        DOCUMENT_ID,
        SHARD,
        PAGE_NUMBER,
        PAGE_NAME,
        _FOLDER,
        _FORMAT,
        LANGUAGE,
        _MODIFIED_AT,
        _TITLE,
        column("text", TEXT, "Text as displayed."),
        CELL_RANGE,
        PAGE_BOX,
        _SEARCH_TEXT,
        _ROW_SHA256,
    ),
)

SUMMARY_INDEX = VectorTable(
    "summaries",
    "Serving copy of the file and page summaries, with vectors and full-text index.",
    "summary_id",
    (
        column("summary_id", TEXT, "`content_format:document_id` or `content_format:page_id`."),
        column("content_format", TEXT, "`file_summary` or `page_summary`."),
        DOCUMENT_ID,
        column("page_id", TEXT, "Page that is summarised; null for file summaries.", nullable=True),
        SHARD,
        _FOLDER,
        _FORMAT,
        LANGUAGE,
        _MODIFIED_AT,
        column("text", TEXT, "The summary."),
        _SEARCH_TEXT,
        _ROW_SHA256,
    ),
)

QUESTION_INDEX = VectorTable(
    "questions",
    "Serving copy of the searched questions: only the question is embedded, its answer comes with it.",
    "qa_id",
    (
        column("qa_id", TEXT, "`document_id#q` and position: `specs/a.xlsx#q0`."),
        DOCUMENT_ID,
        SHARD,
        column("chunk_ids", pa.list_(TEXT), "Passages that the answer rests on."),
        column("page_ids", pa.list_(TEXT), "Pages of these passages."),
        column("facets", pa.list_(TEXT), "Facet values of the document, each as `facet=value`."),
        _FOLDER,
        _FORMAT,
        LANGUAGE,
        _MODIFIED_AT,
        _TITLE,
        column("text", TEXT, "The question."),
        column("answer", TEXT, "The answer."),
        _SEARCH_TEXT,
        _ROW_SHA256,
    ),
)

ENTITY_INDEX = VectorTable(
    "entities",
    "Serving copy of the entities, with mean vectors of the passages that name them.",
    "entity_id",
    (
        ENTITY_ID,
        _WHOLE,
        column("name", TEXT, "Its most frequent name."),
        column("type", TEXT, "Its most frequent type."),
        column("text", TEXT, "Name, other names and description."),
        _SEARCH_TEXT,
        _ROW_SHA256,
    ),
)

REPORT_INDEX = VectorTable(
    "reports",
    "Serving copy of the community reports, with vectors of title and summary.",
    "community_id",
    (
        column("community_id", TEXT, "The community."),
        _WHOLE,
        column("level", pa.int32(), "Its level."),
        column("title", TEXT, "Title of the report."),
        column("rating", pa.float32(), "Impact from 0 to 10."),
        LANGUAGE,
        column("text", TEXT, "The whole report."),
        _SEARCH_TEXT,
        _ROW_SHA256,
    ),
)
