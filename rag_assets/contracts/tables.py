"""Every table, declared once: pyarrow schema, key, and a description with unit for each column.

Writers cast to these schemas and refuse what does not fit; asset column schemas, checks, SQL views and the data-model
page are derived from them.
"""

from dataclasses import dataclass
from functools import cached_property, partial

import pyarrow as pa

TEXT = pa.string()

BOX = pa.list_(pa.float32(), 4)


@dataclass(frozen=True)
class Table:
    """A stored table."""

    name: str  # name of the table, of its asset and of its SQL view
    description: str  # one sentence for the UI and the data-model page
    key: tuple[str, ...]  # columns that identify a row; rows are stored in their order
    fields: tuple[pa.Field, ...]  # the columns. Each carries its description as field metadata
    sharded: bool = True  # whether rows are split by the hash of `document_id`
    published: bool = True  # whether published versions name it; else readers see it as it is now
    recorded: bool = False  # whether its rows are records that no step of indexing makes, a shard a run

    @cached_property
    def schema(self) -> pa.Schema:
        """The pyarrow schema, with descriptions."""
        return pa.schema(list(self.fields))

    def describe(self, column: str) -> str:
        """Description of a column."""
        metadata = self.schema.field(column).metadata or {}
        return str(metadata[b"description"], "utf-8")


def column(name: str, data_type: pa.DataType, description: str, *, nullable: bool = False) -> pa.Field:
    """A documented column."""
    return pa.field(name, data_type, nullable=nullable, metadata={"description": description})


EMBEDDED_TEXT = "embedded_text"  # column that writers give: what is embedded and analysed for full-text search
AVERAGED_TEXTS = "averaged_texts"  # column that writers may give: texts the mean of whose vectors is the vector

COMPUTED_COLUMNS = ("search_text", "row_sha256")  # columns that the vector store computes


@dataclass(frozen=True)
class VectorTable:
    """A serving table of the vector store, derived from stored tables; its vector column is added by the store."""

    name: str  # name of the LanceDB table
    description: str  # one sentence for the UI and the data-model page
    key: str  # the column that identifies a row
    fields: tuple[pa.Field, ...]  # the columns other than `vector`

    def schema(self, dimension: int) -> pa.Schema:
        """The pyarrow schema for vectors of a length; the key is declared as primary key, so that writers that race
        to insert one key cannot duplicate it.
        """
        fields = [
            field.with_metadata({**(field.metadata or {}), "lance-schema:unenforced-primary-key": "true"})
            if field.name == self.key
            else field
            for field in self.fields
        ]
        vector = column("vector", pa.list_(pa.float32(), dimension), "Embedding of unit length.")
        return pa.schema([*fields, vector])


DOCUMENT_ID = column("document_id", TEXT, "Source name and path below the source's root: POSIX separators, NFC.")
SHARD = column("shard", TEXT, "Hash shard of the document, two hexadecimal digits.")
PAGE_ID = column("page_id", TEXT, "`document_id#page_number`.")
PAGE_NUMBER = column("page_number", pa.int32(), "Position of the page, sheet or slide in its file, from 1.")
PAGE_NAME = column("page_name", TEXT, "Name of the sheet; null for pages without a name.", nullable=True)
HEADING = column(
    "heading", TEXT, "Innermost heading above the passage, or that it begins with; null where none is.", nullable=True
)
CELL_RANGE = column("cell_range", TEXT, "Cells covered, as in `B4:F20`; null outside spreadsheets.", nullable=True)
PAGE_BOX = column(
    "box",
    BOX,
    "Left, top, right, bottom in points from the top left corner of the page; null where the format has none.",
    nullable=True,
)
LANGUAGE = column("language", TEXT, "Main language, ISO 639-1 (`ja`, `en`); `und` where it cannot be told.")
METHOD = column("method", TEXT, "What wrote it: `extractive` or the name of the language model.")
ENTITY_ID = column("entity_id", TEXT, "Identifies the entity: digest of its key, 16 hexadecimal digits.")
DESCRIBED_FROM = column(
    "content_sha256",
    TEXT,
    "Digest of what the description was made from; rewritten only when it changes. Null where it is to be "
    "written again.",
    nullable=True,
)

# What files hold: documents, pages, blocks, passages and failures.

DOCUMENTS = Table(
    "documents",
    "One row for each file that the sources hold, with its state.",
    ("document_id",),
    (
        DOCUMENT_ID,
        SHARD,
        column("source_name", TEXT, "Name of the source."),
        column("uri", TEXT, "Where the file was read: a local path or a URI."),
        column("folder", TEXT, "Source name and folders above the file, POSIX separators."),
        column("file_name", TEXT, "Name of the file with its extension."),
        column("format", TEXT, "Format found in the bytes: `xlsx`, `xls`, `pdf`, `docx`, `pptx`, `html`, ..."),
        column("content_sha256", TEXT, "SHA-256 of the bytes, hexadecimal; null where unreadable.", nullable=True),
        column("size_bytes", pa.int64(), "Size of the file in bytes."),
        column("modified_at", pa.timestamp("us", tz="UTC"), "Last change of the file, UTC.", nullable=True),
        column(
            "fingerprint",
            TEXT,
            "Size, times of modification and of status change, and inode (or size and entity tag) of the file when it "
            "was looked at last.",
        ),
        column(
            "status",
            TEXT,
            "`parsed`; `failed`: nothing was read of it; `unreadable`: its file can no longer be read, and its rows "
            "are those of before.",
        ),
        column("title", TEXT, "Title stated in the file, else the file name without extension."),
        LANGUAGE,
        column("page_count", pa.int32(), "Pages, sheets or slides."),
        column("unread_page_count", pa.int32(), "Pages with failures of which nothing was read."),
        column("partly_read_page_count", pa.int32(), "Pages with failures of which something was read."),
        column("length_chars", pa.int64(), "Characters of text in all its pages."),
    ),
)

PAGES = Table(
    "pages",
    "One row for each page, sheet or slide, with its text.",
    ("document_id", "page_number"),
    (
        PAGE_ID,
        DOCUMENT_ID,
        SHARD,
        PAGE_NUMBER,
        PAGE_NAME,
        column("kind", TEXT, "`sheet`, `page`, `slide`, `section` or `body`."),
        column("hidden", pa.bool_(), "Whether the file hides the sheet or slide."),
        column(
            "role",
            TEXT,
            "`cover`, `revision_history` or `contents` for sheets and pages without content of their own; else null.",
            nullable=True,
        ),
        LANGUAGE,
        column("width_points", pa.float32(), "Width of the page in points; null without a size.", nullable=True),
        column("height_points", pa.float32(), "Height of the page in points; null without a size.", nullable=True),
        column(
            "ocr_confidence",
            pa.float32(),
            "Of a page whose text was read from a picture: mean confidence of its characters, 0 to 1; else null.",
            nullable=True,
        ),
        column("length_chars", pa.int64(), "Characters of `text`."),
        column("text", TEXT, "Text of the page in reading order, as displayed."),
    ),
)

TABLE_ROW = pa.struct([pa.field("cells", pa.list_(TEXT), nullable=False), ("cell_range", TEXT), ("box", BOX)])

CELL_FORMULA = pa.struct([pa.field(name, TEXT, nullable=False) for name in ("cell", "formula")])

BLOCKS = Table(
    "blocks",
    "One row for each heading, paragraph, table or other part of a page, with its position.",
    ("document_id", "page_number", "block_index"),
    (
        column("block_id", TEXT, "`page_id.block_index` with the prefix `b`: `specs/a.xlsx#1.b0`."),
        PAGE_ID,
        DOCUMENT_ID,
        SHARD,
        PAGE_NUMBER,
        column("block_index", pa.int32(), "Position on the page in reading order, from 0."),
        column(
            "kind",
            TEXT,
            "`heading`, `paragraph`, `list_item`, `table`, `note`, `diagram`, `header` or `caption`.",
        ),
        column("text", TEXT, "Text as displayed; of a table, its rows as lines with ` | ` between cells."),
        column(
            "section",
            pa.list_(pa.string()),
            "Headings above the block, outermost first; of a table, a note on its unit last.",
        ),
        CELL_RANGE,
        PAGE_BOX,
        column("header_row_count", pa.int32(), "Of a table: leading rows that are column headers; else 0."),
        column("rows", pa.list_(TABLE_ROW), "Of a table: its rows with their positions; else empty."),
        column(
            "formulas", pa.list_(CELL_FORMULA), "Formulas of its cells, whose last results `text` shows; else empty."
        ),
    ),
)

CHUNKS = Table(
    "chunks",
    "One row for each passage that is searched: whole blocks, table rows under their headers, or parts of long blocks; "
    "an empty line stands between two tables.",
    ("document_id", "page_number", "chunk_index"),
    (
        column("chunk_id", TEXT, "`page_id.chunk_index`."),
        PAGE_ID,
        DOCUMENT_ID,
        SHARD,
        PAGE_NUMBER,
        PAGE_NAME,
        HEADING,
        column("chunk_index", pa.int32(), "Position on the page, from 0."),
        column("context", TEXT, "Title, page name and section: what the passage is about, embedded before its text."),
        column("text", TEXT, "Text as displayed."),
        LANGUAGE,
        CELL_RANGE,
        PAGE_BOX,
        column("block_indexes", pa.list_(pa.int32()), "Blocks of the page that the passage is taken from."),
        column("length_tokens", pa.int32(), "Tokens of context and text, in tokens of the embedder."),
    ),
)

PARSE_FAILURES = Table(
    "parse_failures",
    "One row for each document, or part of one, that could not be parsed, with the cause.",
    ("document_id", "failure_index"),
    (
        DOCUMENT_ID,
        SHARD,
        column("failure_index", pa.int32(), "Position among the failures of the document, from 0."),
        column("page_number", pa.int32(), "Page that failed; null for the whole document.", nullable=True),
        column(
            "cause",
            TEXT,
            "`unreadable`, `unsupported_format`, `encrypted`, `malformed`, `too_large`, `timeout`, `memory`, "
            "`crashed`, `not_calculated` or `no_text`.",
        ),
        column("message", TEXT, "What was found, in one line."),
        column("traceback_id", TEXT, "Id of the traceback in the log; null where there is none.", nullable=True),
    ),
)

# What is made from documents: summaries, facets, questions and meta knowledge.

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

# The entity graph: mentions, entities, relationships, communities and their reports.

ENTITY_MENTIONS = Table(
    "entity_mentions",
    "One row for each place where a document names an entity.",
    ("document_id", "mention_index"),
    (
        DOCUMENT_ID,
        SHARD,
        column("mention_index", pa.int32(), "Position among the mentions of the document, from 0."),
        PAGE_ID,
        PAGE_NUMBER,
        column("chunk_id", TEXT, "Passage that holds the mention; null where none does.", nullable=True),
        column("window_index", pa.int32(), "Window of the page that was read, from 0."),
        column(
            "start_char", pa.int32(), "Where the name begins in the text of the page; null if not found.", nullable=True
        ),
        column("name", TEXT, "The name as written."),
        column("name_key", TEXT, "The name folded: NFKC, case, width and spacing; what names are compared by."),
        column("type", TEXT, "Type of the entity, as in `organization` or `identifier`."),
        column("description", TEXT, "What the place says of the entity; empty where nothing."),
        METHOD,
    ),
)

RELATIONSHIP_MENTIONS = Table(
    "relationship_mentions",
    "One row for each place where a document relates two entities.",
    ("document_id", "mention_index"),
    (
        DOCUMENT_ID,
        SHARD,
        column("mention_index", pa.int32(), "Position among the relationships of the document, from 0."),
        PAGE_ID,
        PAGE_NUMBER,
        column("chunk_id", TEXT, "Passage that holds the relationship; null where none does.", nullable=True),
        column("window_index", pa.int32(), "Window of the page that was read, from 0."),
        column("source_key", TEXT, "`name_key` of the entity it starts from."),
        column("target_key", TEXT, "`name_key` of the entity it leads to."),
        column(
            "kind",
            TEXT,
            "`stated` by a model, a drawn `connector`, together in a `row` or `sentence`; `alias` where the source is "
            "declared to be another name of the target, which is no edge.",
        ),
        column("strength", pa.float32(), "From 0 to 10, as the model judges it; 1 without a model."),
        column("description", TEXT, "How they are related; empty where only that they occur together is known."),
        METHOD,
    ),
)

CLAIMS = Table(
    "claims",
    "One row for each statement about an entity that could be checked, where their extraction is switched on.",
    ("document_id", "claim_index"),
    (
        DOCUMENT_ID,
        SHARD,
        column("claim_index", pa.int32(), "Position among the claims of the document, from 0."),
        PAGE_ID,
        PAGE_NUMBER,
        column("chunk_id", TEXT, "Passage that holds the claim; null where none does.", nullable=True),
        column("subject_key", TEXT, "`name_key` of the entity that it is about."),
        column("object_key", TEXT, "`name_key` of the entity that it also concerns; null for none.", nullable=True),
        column("type", TEXT, "Type of the claim."),
        column("status", TEXT, "`true`, `false` or `suspected`."),
        column("start_date", TEXT, "When it begins to hold, ISO 8601; null where not stated.", nullable=True),
        column("end_date", TEXT, "When it ceases to hold, ISO 8601; null where not stated.", nullable=True),
        column("description", TEXT, "The claim."),
        column("source_text", TEXT, "Words of the document that state it."),
        METHOD,
    ),
)

ENTITIES = Table(
    "entities",
    "The nodes of the entity graph.",
    ("entity_id",),
    (
        ENTITY_ID,
        column("number", pa.int32(), "Number by which reports cite it: a short digest of `entity_id`."),
        column("name", TEXT, "Its most frequent name."),
        column("name_key", TEXT, "Its key: the folded name that the others were merged into."),
        column("type", TEXT, "Its most frequent type."),
        column("aliases", pa.list_(TEXT), "Other names, rising."),
        column("description", TEXT, "What its documents say of it."),
        DESCRIBED_FROM,
        column("mention_count", pa.int32(), "Places that name it."),
        column("document_count", pa.int32(), "Documents that name it."),
        column("degree", pa.int32(), "Entities that it is related to."),
        column("rank", pa.float64(), "PageRank over the weighted graph."),
    ),
    sharded=False,
)

RELATIONSHIPS = Table(
    "relationships",
    "The edges of the entity graph, without direction.",
    ("source_id", "target_id"),
    (
        column("source_id", TEXT, "`entity_id` of one end, the smaller of the two."),
        column("target_id", TEXT, "`entity_id` of the other end."),
        column("number", pa.int32(), "Number by which reports cite it: a short digest of both ends."),
        column("description", TEXT, "How the two are related; empty where only that they occur together is known."),
        DESCRIBED_FROM,
        column("weight", pa.float64(), "Instances of the relationship; of mere co-occurrence, weighed by PMI."),
        column("mention_count", pa.int32(), "Places that state it."),
        column("combined_degree", pa.int32(), "Sum of the degrees of both ends."),
    ),
    sharded=False,
)

ENTITY_MERGES = Table(
    "entity_merges",
    "One row for each name that was taken for another name of an entity, with the reason.",
    ("name_key",),
    (
        column("name_key", TEXT, "The name, folded."),
        column("merged_into", TEXT, "`name_key` of the entity."),
        column(
            "rule", TEXT, "`declared` in a document, `similar` names and vectors, `model`, or `override` by a person."
        ),
        column("similarity", pa.float32(), "Cosine of the two names' vectors; null where not compared.", nullable=True),
        column("evidence", TEXT, "Where it is declared, or what confirmed it."),
    ),
    sharded=False,
)

COMMUNITIES = Table(
    "communities",
    "Groups of closely related entities, level by level; every level holds every entity once.",
    ("community_id",),
    (
        column("community_id", TEXT, "Identifies the community: a digest of its level and members."),
        column("level", pa.int32(), "0 for the coarsest level."),
        column("parent_id", TEXT, "Community of the level above that holds it; null at level 0.", nullable=True),
        column("size", pa.int32(), "Entities in it."),
        column("relationship_count", pa.int32(), "Relationships between its entities."),
        column("is_leaf", pa.bool_(), "Whether it is not split any further."),
    ),
    sharded=False,
)

COMMUNITY_MEMBERS = Table(
    "community_members",
    "Which entity is in which community; one row for each entity and level.",
    ("level", "entity_id"),
    (
        column("level", pa.int32(), "0 for the coarsest level."),
        ENTITY_ID,
        column("community_id", TEXT, "The community of the level that holds the entity."),
    ),
    sharded=False,
)

FINDING = pa.struct([pa.field(name, TEXT, nullable=False) for name in ("summary", "explanation")])

COMMUNITY_REPORTS = Table(
    "community_reports",
    "A report on each community, with references to the records that it rests on.",
    ("community_id",),
    (
        column("community_id", TEXT, "The community."),
        column("level", pa.int32(), "Its level."),
        column("title", TEXT, "Short title with names from the community."),
        column("summary", TEXT, "What the community is about."),
        column("rating", pa.float32(), "Impact from 0 to 10."),
        column("rating_explanation", TEXT, "Why."),
        column("findings", pa.list_(FINDING), "Findings, most important first."),
        column("text", TEXT, "The whole report."),
        column("removed_references", pa.int32(), "References to records that do not exist, taken out of the text."),
        column("length_tokens", pa.int32(), "Tokens of `text`, estimated."),
        column("content_sha256", TEXT, "Digest of what the report was written from; rewritten only when it changes."),
        LANGUAGE,
        METHOD,
    ),
    sharded=False,
)

# Calls of language models.

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

# Records of evaluations. Rows are added by every run and never computed anew, so published versions do not name them.

_recorded = partial(Table, sharded=False, published=False, recorded=True)
_TEXTS = pa.list_(TEXT)
_RUN_ID = column("run_id", TEXT, "Identifies the run: when it ended, UTC, and a random part.")
_SYSTEM = column("system", TEXT, "What was measured, as in `hybrid`, `two_step:file` or `hybrid@3`.")
_TOKENS = (
    column("input_tokens", pa.int64(), "Tokens that language models read."),
    column("output_tokens", pa.int64(), "Tokens that they wrote."),
    column("cost_usd", pa.float64(), "Price in US dollars."),
)

EVALUATION_RUNS = _recorded(
    "evaluation_runs",
    "One row for each run of an evaluation and each mode or version that it measured.",
    ("run_id", "system"),
    (
        _RUN_ID,
        _SYSTEM,
        column("evaluated_at", pa.timestamp("us", tz="UTC"), "When the run ended, UTC."),
        column("made_by", TEXT, "`evaluate` (the command), `job` (the Dagster job) or `gate` (before publishing)."),
        column("version", pa.int64(), "Version that was asked; null of one that the gate held back.", nullable=True),
        column("mode", TEXT, "Mode of search."),
        column("question_set", TEXT, "Name of the file or folder of the question set."),
        column("set_digest", TEXT, "Digest of the questions that were asked: equal digests, equal questions."),
        column("question_count", pa.int32(), "Questions that were asked."),
        column("choosing_count", pa.int32(), "Those of them that were used for choosing (`purpose`)."),
        column("levels", _TEXTS, "What was searched for: `document`, `page`, `passage`."),
        column("measures", _TEXTS, "Measures of rankings."),
        column("answers", pa.bool_(), "Whether questions were answered as well."),
        column("language_model", TEXT, "`extractive` or the name of the language model."),
        column("embedder", TEXT, "Name of the embedder."),
        column("release", TEXT, "Version of rag_assets."),
        column("seconds", pa.float64(), "Time that searches and answers took."),
        *_TOKENS,
        column("warnings", _TEXTS, "What a reader of the figures has to know."),
    ),
)

EVALUATION_SCORES = _recorded(
    "evaluation_scores",
    "Figures of evaluations: one row for each run, system, measure and group of questions, with its interval.",
    ("run_id", "system", "level", "measure", "dimension", "group_name"),
    (
        _RUN_ID,
        _SYSTEM,
        column(
            "level",
            TEXT,
            "`document`, `page`, `passage`, `answer`, a judge as `grading`, or `cost` (time, tokens, dollars).",
        ),
        column("measure", TEXT, "As in `R@5`, `correct` or `milliseconds passage`."),
        column("dimension", TEXT, "`type`, `language`, `format` or `length`; `all` for all questions."),
        column("group_name", TEXT, "Which of them, as in `list`; `all` for all questions."),
        column("mean", pa.float64(), "Mean over the questions."),
        column("low", pa.float64(), "Lower end of its 95 % interval."),
        column("high", pa.float64(), "Upper end of its 95 % interval."),
        column("question_count", pa.int32(), "Questions that it rests on."),
    ),
)

EVALUATION_RESULTS = _recorded(
    "evaluation_results",
    "What came of each question of an evaluation: one row for each run, system and question.",
    ("run_id", "system", "question_id"),
    (
        _RUN_ID,
        _SYSTEM,
        column("question_id", TEXT, "Id of the question in its set."),
        column("position", pa.int32(), "Its place in the set, from 1."),
        column("question", TEXT, "The question."),
        column("history", _TEXTS, "Questions that were asked before it."),
        column("type", TEXT, "Kind of question, in the words of the set."),
        column("language", TEXT, "Its language."),
        column("answerable", pa.bool_(), "Whether the documents are to hold an answer."),
        column(
            "expected",
            pa.list_(
                pa.struct(
                    {
                        **dict.fromkeys(("document", "place", "quote"), TEXT),
                        "alternative": pa.bool_(),
                        "indexed": pa.bool_(),
                    }
                )
            ),
            "Evidence; `indexed` where the version holds it at every level that was searched.",
        ),
        column("answer_contains", pa.list_(_TEXTS), "Groups of alternatives that a right answer holds one of each."),
        column("mode", TEXT, "How it was searched: the mode that `auto` chose."),
        column(
            "scores",
            pa.list_(pa.struct({"level": TEXT, "measure": TEXT, "value": pa.float64()})),
            "Its values; measures that say nothing of it are left out.",
        ),
        column(
            "results",
            pa.list_(
                pa.struct(
                    {
                        **dict.fromkeys(("chunk_id", "page_id", "document_id", "place", "text"), TEXT),
                        "relevant": pa.bool_(),
                    }
                )
            ),
            "The first 5 results of the finest level, best first, with the beginning of their text.",
        ),
        column(
            "outcome",
            TEXT,
            "`right`, `wrong` or `refused`; of what the documents do not answer `invented` or `correct`; null where "
            "not judged.",
            nullable=True,
        ),
        column("answer", TEXT, "What was answered; null where nothing was asked for.", nullable=True),
        column("citations", _TEXTS, "Places that the answer cites."),
        column("failure", TEXT, "Why the language model did not answer; else null.", nullable=True),
        column("milliseconds", pa.float64(), "Time of its searches and its answer."),
        *_TOKENS,
    ),
)

TABLES: dict[str, Table] = {table.name: table for table in list(globals().values()) if isinstance(table, Table)}

# Serving tables of the vector store, derived from the stored ones.

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
        HEADING,
        _FOLDER,
        _FORMAT,
        LANGUAGE,
        _MODIFIED_AT,
        _TITLE,
        column("beginning", TEXT, "How the document begins, in up to 200 characters: what it is, and of what."),
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

VECTOR_TABLES: dict[str, VectorTable] = {
    table.name: table for table in (CHUNK_INDEX, SUMMARY_INDEX, QUESTION_INDEX, ENTITY_INDEX, REPORT_INDEX)
}
