"""What a table is: pyarrow schema, key, and a description for each column; and the columns that many tables share."""

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
        published: Whether published versions name it; else readers see it as it is now.
        recorded: Whether its rows are records that no step of indexing makes, a shard a run.
    """

    name: str
    description: str
    key: tuple[str, ...]
    fields: tuple[pa.Field, ...]
    sharded: bool = True
    published: bool = True
    recorded: bool = False

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


DOCUMENT_ID = column("document_id", TEXT, "Source name and path below the source's root: POSIX separators, NFC.")

SHARD = column("shard", TEXT, "Hash shard of the document, two hexadecimal digits.")

PAGE_ID = column("page_id", TEXT, "`document_id#page_number`.")

PAGE_NUMBER = column("page_number", pa.int32(), "Position of the page, sheet or slide in its file, from 1.")

PAGE_NAME = column("page_name", TEXT, "Name of the sheet; null for pages without a name.", nullable=True)

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
