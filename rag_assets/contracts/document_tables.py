"""Tables of what files hold: documents, pages, blocks, passages and failures."""

import pyarrow as pa

from rag_assets.contracts.table import (
    BOX,
    CELL_RANGE,
    DOCUMENT_ID,
    LANGUAGE,
    PAGE_BOX,
    PAGE_ID,
    PAGE_NAME,
    PAGE_NUMBER,
    SHARD,
    TEXT,
    Table,
    column,
)

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
            "`cover`, `revision_history` or `contents` for sheets that hold no content of their own; else null.",
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
    "One row for each passage that is searched: whole blocks, table rows under their headers, or parts of long blocks.",
    ("document_id", "page_number", "chunk_index"),
    (
        column("chunk_id", TEXT, "`page_id.chunk_index`."),
        PAGE_ID,
        DOCUMENT_ID,
        SHARD,
        PAGE_NUMBER,
        PAGE_NAME,
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
