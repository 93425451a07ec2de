"""Tables of what is made from documents: summaries, facets, questions and meta knowledge."""

import pyarrow as pa

from rag_assets.contracts.table import (
    DOCUMENT_ID,
    LANGUAGE,
    METHOD,
    PAGE_ID,
    PAGE_NAME,
    PAGE_NUMBER,
    SHARD,
    TEXT,
    Table,
    column,
)

DOCUMENT_LINES = Table(
    "document_lines",
    "The lines of each document as digests, from which those that many documents share are told.",
    ("document_id",),
    (
        DOCUMENT_ID,
        SHARD,
        column("line_keys", pa.list_(pa.int64()), "Digests of its headings, column names, sentences and table rows."),
    ),
)

FILE_SUMMARIES = Table(
    "file_summaries",
    "A summary of each document.",
    ("document_id",),
    (
        DOCUMENT_ID,
        SHARD,
        LANGUAGE,
        column("method", TEXT, "What wrote the summary: `extractive` or the name of the language model."),
        column("length_chars", pa.int32(), "Characters of `text`."),
        column("text", TEXT, "The summary."),
    ),
)

PAGE_SUMMARIES = Table(
    "page_summaries",
    "A summary of each page: a little on the file, then what the page holds; of a cover, revision history or table of "
    "contents, which of them it is.",
    ("document_id", "page_number"),
    (
        PAGE_ID,
        DOCUMENT_ID,
        SHARD,
        PAGE_NUMBER,
        PAGE_NAME,
        LANGUAGE,
        column("method", TEXT, "What wrote the summary: `extractive` or the name of the language model."),
        column("length_chars", pa.int32(), "Characters of `text`."),
        column("text", TEXT, "The summary."),
    ),
)

DOCUMENT_FACETS = Table(
    "document_facets",
    "What kind of document each one is: its values in the facets of the taxonomy.",
    ("document_id", "facet", "value"),
    (
        DOCUMENT_ID,
        SHARD,
        column("facet", TEXT, "Facet of the taxonomy, as in `document_type`."),
        column("value", TEXT, "Value of the facet, as in `api_specification`."),
        column("confidence", pa.float32(), "How sure, from 0 to 1."),
        column("evidence", TEXT, "Words of the document that speak for it; empty where none can be quoted."),
        METHOD,
    ),
)

SYNTHETIC_QA = Table(
    "synthetic_qa",
    "Questions that each document answers, with their answers and the passages that these rest on.",
    ("document_id", "qa_index"),
    (
        column("qa_id", TEXT, "`document_id#q` and `qa_index`: `specs/a.xlsx#q0`."),
        DOCUMENT_ID,
        SHARD,
        column("qa_index", pa.int32(), "Position among the questions of the document, from 0."),
        column("question", TEXT, "The question, as a person would ask it."),
        column("answer", TEXT, "The answer, from the document alone."),
        column("chunk_ids", pa.list_(TEXT), "Passages that the answer rests on, at least one."),
        column("page_ids", pa.list_(TEXT), "Pages of these passages."),
        column("grade", pa.float32(), "How good question and answer are, from 0 to 100."),
        column("indexed", pa.bool_(), "Whether the question is searched: its grade reaches the threshold."),
        LANGUAGE,
        METHOD,
    ),
)

QUESTION_CLUSTERS = Table(
    "question_clusters",
    "Which questions say nearly the same: clusters of searched questions within each facet value.",
    ("facet", "value", "qa_id"),
    (
        column("facet", TEXT, "Facet of the taxonomy."),
        column("value", TEXT, "Value of the facet."),
        column("qa_id", TEXT, "The question."),
        column("cluster", pa.int32(), "Number of the cluster within the facet value, from 0."),
        column("is_representative", pa.bool_(), "Whether it stands for its cluster: the one nearest to its middle."),
        column("distance", pa.float32(), "Cosine distance to the representative."),
    ),
    sharded=False,
)

META_KNOWLEDGE = Table(
    "meta_knowledge",
    "For each facet value, and each combination in use, a summary of what its questions and answers are about.",
    ("selection",),
    (
        column("selection", TEXT, "The facet values, as in `department=sales & document_type=report`."),
        column("facets", pa.list_(TEXT), "The facet values, each as `facet=value`, rising."),
        column("question_count", pa.int32(), "Questions that it is made from."),
        column("document_count", pa.int32(), "Documents that they are of."),
        column("key_terms", pa.list_(TEXT), "Terms that set these questions apart from the others, best first."),
        column("text", TEXT, "The summary."),
        column("content_sha256", TEXT, "Digest of the questions and answers; rewritten only when it changes."),
        LANGUAGE,
        METHOD,
    ),
    sharded=False,
)
