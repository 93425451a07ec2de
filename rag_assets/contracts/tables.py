"""Every stored table, declared once: pyarrow schema, key, and a description with unit for each field.

Writers cast to these schemas and refuse what does not fit; asset column schemas, checks, SQL views and the data-model
page are derived from them. What stays out: reading and writing, which is `rag_assets.store`.
"""

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

TEXT = pa.string()
BOX = pa.list_(pa.float32(), 4)


@dataclass(frozen=True)
class Table:
    """A stored table.

    Attributes:
        name: Name of the table, of its asset and of its SQL view.
        description: One sentence for the UI and the data-model page.
        key: Columns that identify a row; rows are stored in their order.
        fields: The columns. Each carries its description as field metadata.
        sharded: Whether rows are split by the hash of `document_id`.
    """

    name: str
    description: str
    key: tuple[str, ...]
    fields: tuple[pa.Field, ...]
    sharded: bool = True

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


_DOCUMENT_ID = column("document_id", TEXT, "Source name and path below the source's root: POSIX separators, NFC.")
_SHARD = column("shard", TEXT, "Hash shard of the document, two hexadecimal digits.")
_PAGE_ID = column("page_id", TEXT, "`document_id#page_number`.")
_PAGE_NUMBER = column("page_number", pa.int32(), "Position of the page, sheet or slide in its file, from 1.")
_PAGE_NAME = column("page_name", TEXT, "Name of the sheet; null for pages without a name.", nullable=True)
_CELL_RANGE = column("cell_range", TEXT, "Cells covered, as in `B4:F20`; null outside spreadsheets.", nullable=True)
_BOX = column(
    "box",
    BOX,
    "Left, top, right, bottom in points from the top left corner of the page; null where the format has none.",
    nullable=True,
)
_LANGUAGE = column("language", TEXT, "Main language, ISO 639-1 (`ja`, `en`); `und` where it cannot be told.")

DOCUMENTS = Table(
    "documents",
    "One row for each file that the sources hold, with its state.",
    ("document_id",),
    (
        _DOCUMENT_ID,
        _SHARD,
        column("source_name", TEXT, "Name of the source."),
        column("uri", TEXT, "Where the file was read: a local path or a URI."),
        column("folder", TEXT, "Source name and folders above the file, POSIX separators."),
        column("file_name", TEXT, "Name of the file with its extension."),
        column("format", TEXT, "Format found in the bytes: `xlsx`, `xls`, `pdf`, `docx`, `pptx`, `html`, ..."),
        column("content_sha256", TEXT, "SHA-256 of the bytes, hexadecimal; null where unreadable.", nullable=True),
        column("size_bytes", pa.int64(), "Size of the file in bytes."),
        column("modified_at", pa.timestamp("us", tz="UTC"), "Last change of the file, UTC.", nullable=True),
        column("fingerprint", TEXT, "Size and time of change (or entity tag) at which `content_sha256` was taken."),
        column("status", TEXT, "`parsed` or `failed`."),
        column("title", TEXT, "Title stated in the file, else the file name without extension."),
        _LANGUAGE,
        column("page_count", pa.int32(), "Pages, sheets or slides."),
        column("length_chars", pa.int64(), "Characters of text in all its pages."),
    ),
)

PAGES = Table(
    "pages",
    "One row for each page, sheet or slide, with its text.",
    ("document_id", "page_number"),
    (
        _PAGE_ID,
        _DOCUMENT_ID,
        _SHARD,
        _PAGE_NUMBER,
        _PAGE_NAME,
        column("kind", TEXT, "`sheet`, `page`, `slide` or `body`."),
        column("hidden", pa.bool_(), "Whether the file hides the sheet or slide."),
        column(
            "role",
            TEXT,
            "`cover`, `revision_history` or `contents` for sheets that hold no content of their own; else null.",
            nullable=True,
        ),
        _LANGUAGE,
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

TABLE_ROW = pa.struct(
    [
        pa.field("cells", pa.list_(pa.string()), nullable=False),
        pa.field("cell_range", pa.string()),
        pa.field("box", BOX),
    ]
)

CELL_FORMULA = pa.struct(
    [pa.field("cell", pa.string(), nullable=False), pa.field("formula", pa.string(), nullable=False)]
)

BLOCKS = Table(
    "blocks",
    "One row for each heading, paragraph, table or other part of a page, with its position.",
    ("document_id", "page_number", "block_index"),
    (
        column("block_id", TEXT, "`page_id.block_index` with the prefix `b`: `specs/a.xlsx#1.b0`."),
        _PAGE_ID,
        _DOCUMENT_ID,
        _SHARD,
        _PAGE_NUMBER,
        column("block_index", pa.int32(), "Position on the page in reading order, from 0."),
        column(
            "kind",
            TEXT,
            "`heading`, `paragraph`, `list_item`, `table`, `note`, `diagram`, `header` or `caption`.",
        ),
        column("text", TEXT, "Text as displayed; of a table, its rows as lines with ` | ` between cells."),
        column("section", pa.list_(pa.string()), "Headings above the block, outermost first."),
        _CELL_RANGE,
        _BOX,
        column("header_row_count", pa.int32(), "Of a table: leading rows that are column headers; else 0."),
        column("rows", pa.list_(TABLE_ROW), "Of a table: its rows with their positions; else empty."),
        column(
            "formulas", pa.list_(CELL_FORMULA), "Formulas of its cells, whose last results `text` shows; else empty."
        ),
    ),
)

CHUNKS = Table(
    "chunks",
    "One row for each passage that is searched: whole blocks, table rows under their headers, or parts of long blocks.",
    ("document_id", "page_number", "chunk_index"),
    (
        column("chunk_id", TEXT, "`page_id.chunk_index`."),
        _PAGE_ID,
        _DOCUMENT_ID,
        _SHARD,
        _PAGE_NUMBER,
        _PAGE_NAME,
        column("chunk_index", pa.int32(), "Position on the page, from 0."),
        column("context", TEXT, "Title, page name and section: what the passage is about, embedded before its text."),
        column("text", TEXT, "Text as displayed."),
        _LANGUAGE,
        _CELL_RANGE,
        _BOX,
        column("block_indexes", pa.list_(pa.int32()), "Blocks of the page that the passage is taken from."),
        column("length_tokens", pa.int32(), "Tokens of context and text, in tokens of the embedder."),
    ),
)

PARSE_FAILURES = Table(
    "parse_failures",
    "One row for each document, or part of one, that could not be parsed, with the cause.",
    ("document_id", "failure_index"),
    (
        _DOCUMENT_ID,
        _SHARD,
        column("failure_index", pa.int32(), "Position among the failures of the document, from 0."),
        column("page_number", pa.int32(), "Page that failed; null for the whole document.", nullable=True),
        column(
            "cause",
            TEXT,
            "`unreadable`, `unsupported_format`, `encrypted`, `malformed`, `too_large`, `timeout`, `memory`, "
            "`crashed` or `no_text`.",
        ),
        column("message", TEXT, "What was found, in one line."),
        column("traceback_id", TEXT, "Id of the traceback in the log; null where there is none.", nullable=True),
    ),
)

FILE_SUMMARIES = Table(
    "file_summaries",
    "A summary of each document.",
    ("document_id",),
    (
        _DOCUMENT_ID,
        _SHARD,
        _LANGUAGE,
        column("method", TEXT, "What wrote the summary: `extractive` or the name of the language model."),
        column("length_chars", pa.int32(), "Characters of `text`."),
        column("text", TEXT, "The summary."),
    ),
)

PAGE_SUMMARIES = Table(
    "page_summaries",
    "A summary of each page: a little on the file, then what the page holds.",
    ("document_id", "page_number"),
    (
        _PAGE_ID,
        _DOCUMENT_ID,
        _SHARD,
        _PAGE_NUMBER,
        _PAGE_NAME,
        _LANGUAGE,
        column("method", TEXT, "What wrote the summary: `extractive` or the name of the language model."),
        column("length_chars", pa.int32(), "Characters of `text`."),
        column("text", TEXT, "The summary."),
    ),
)

TABLES: dict[str, Table] = {
    table.name: table for table in (DOCUMENTS, PAGES, BLOCKS, CHUNKS, PARSE_FAILURES, FILE_SUMMARIES, PAGE_SUMMARIES)
}


EMBEDDED_TEXT = "embedded_text"  # column that writers give: what is embedded and analysed for full-text search
COMPUTED_COLUMNS = ("search_text", "row_sha256")  # columns that the vector store computes


@dataclass(frozen=True)
class VectorTable:
    """A serving table of the vector store, derived from stored tables; its vector column is added by the store.

    Attributes:
        name: Name of the LanceDB table.
        description: One sentence for the UI and the data-model page.
        key: The column that identifies a row.
        fields: The columns other than `vector`.
    """

    name: str
    description: str
    key: str
    fields: tuple[pa.Field, ...]

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


_SEARCH_TEXT = column(
    "search_text", TEXT, "Terms that the full-text index holds, parted by blanks, of context and text."
)
_ROW_SHA256 = column("row_sha256", TEXT, "SHA-256 over the other columns and the embedder's name: tells what changed.")
_FOLDER = column("folder", TEXT, "Source name and folders above the file, POSIX separators.")
_FORMAT = column("format", TEXT, "Format of the file.")
_MODIFIED_AT = column("modified_at", pa.timestamp("us", tz="UTC"), "Last change of the file, UTC.", nullable=True)
_TITLE = column("title", TEXT, "Title of the document.")

CHUNK_INDEX = VectorTable(
    "chunks",
    "Serving copy of the chunks, with vectors and full-text index.",
    "chunk_id",
    (
        column("chunk_id", TEXT, "`page_id.chunk_index`."),
        _PAGE_ID,
        _DOCUMENT_ID,
        _SHARD,
        _PAGE_NUMBER,
        _PAGE_NAME,
        _FOLDER,
        _FORMAT,
        _LANGUAGE,
        _MODIFIED_AT,
        _TITLE,
        column("text", TEXT, "Text as displayed."),
        _CELL_RANGE,
        _BOX,
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
        _DOCUMENT_ID,
        column("page_id", TEXT, "Page that is summarised; null for file summaries.", nullable=True),
        _SHARD,
        _FOLDER,
        _FORMAT,
        _LANGUAGE,
        _MODIFIED_AT,
        column("text", TEXT, "The summary."),
        _SEARCH_TEXT,
        _ROW_SHA256,
    ),
)

VECTOR_TABLES: dict[str, VectorTable] = {table.name: table for table in (CHUNK_INDEX, SUMMARY_INDEX)}
