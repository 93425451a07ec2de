"""Reading one published version for people: documents with their state, pages, failures, costs, and the entity graph.

Every value is plain and frozen; one object may be asked by several threads. What belongs to a document is read from the
one shard that holds it. What stays out: searching (`rag_assets.query.knowledge_base`), how a page is laid out
(`rag_assets.query.contents.pages`), reading the graph (`rag_assets.query.contents.graph`), and any protocol.
"""

import threading
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rag_assets.contracts.causes import DocumentStatus
from rag_assets.contracts.tables import (
    BLOCKS,
    CHUNKS,
    DOCUMENT_FACETS,
    DOCUMENTS,
    FILE_SUMMARIES,
    MODEL_CALLS,
    PAGE_SUMMARIES,
    PAGES,
    PARSE_FAILURES,
    SYNTHETIC_QA,
    Table,
)
from rag_assets.query.contents.cursors import LIST_LIMIT, Listed, cut
from rag_assets.query.contents.graph import GraphContents
from rag_assets.query.contents.pages import (
    PageBlock,
    PageContents,
    PassagePlace,
    as_box,
    blocks_in_parts,
    shown_blocks,
)
from rag_assets.query.filters import check_known, texts_of
from rag_assets.query.stored import StoredTables, once
from rag_assets.store.lake import Lake
from rag_assets.store.snapshots import Snapshot
from rag_assets.text.cells import parse_area

ROW_LIMIT = 2000  # rows of the tables of a page that are given where no number is named

_LISTED = (
    *("document_id", "folder", "file_name", "title", "format", "language", "status"),
    *("page_count", "length_chars", "size_bytes", "modified_at"),
)
_PAGE_COLUMNS = (
    *("page_id", "page_number", "page_name", "kind", "hidden", "role", "language"),
    *("width_points", "height_points", "ocr_confidence"),
)
_BLOCK_COLUMNS = (
    *("block_id", "block_index", "kind", "text", "section"),
    *("cell_range", "box", "header_row_count", "rows"),
)
_INPUT_TOKENS = ("input_tokens", "cache_read_tokens", "cache_write_tokens")
ReadCalls = Callable[[Sequence[str]], pa.Table]


@dataclass(frozen=True)
class DocumentEntry:
    """A document in a list.

    Attributes:
        document_id: The document.
        folder: Source name and folders above the file.
        file_name: Name of the file.
        title: Title stated in the file, else the file name.
        format: Format found in the bytes.
        language: Main language, ISO 639-1.
        status: `parsed`, `failed` or `unreadable`.
        page_count: Pages, sheets or slides.
        length_chars: Characters of text.
        size_bytes: Size of the file.
        modified_at: Last change of the file, UTC, or None.
        failure_count: Parts of it, or the whole, that could not be parsed.
        failure_cause: Cause of the first failure, or None.
        cost_usd: What language models cost for it so far, in US dollars.
    """

    document_id: str
    folder: str
    file_name: str
    title: str
    format: str
    language: str
    status: str
    page_count: int
    length_chars: int
    size_bytes: int
    modified_at: datetime | None
    failure_count: int
    failure_cause: str | None
    cost_usd: float


@dataclass(frozen=True)
class PageEntry:
    """A page in a list.

    Attributes:
        page_number: Position in the document, from 1.
        page_id: The page.
        page_name: Name of the sheet or section, or None.
        kind: `sheet`, `page`, `slide`, `section` or `body`.
        hidden: Whether the file hides it.
        role: `cover`, `revision_history` or `contents`, or None.
        length_chars: Characters of text.
        summary: Its summary, or None.
    """

    page_number: int
    page_id: str
    page_name: str | None
    kind: str
    hidden: bool
    role: str | None
    length_chars: int
    summary: str | None


@dataclass(frozen=True)
class Failure:
    """A document, or a part of one, that could not be parsed.

    Attributes:
        page_number: The page; None for the whole document.
        cause: As in `encrypted`.
        message: What was found.
    """

    page_number: int | None
    cause: str
    message: str


@dataclass(frozen=True)
class Facet:
    """What kind of document one is.

    Attributes:
        facet: The facet, as in `document_type`.
        value: Its value.
        confidence: From 0 to 1.
        evidence: Words of the document that speak for it.
    """

    facet: str
    value: str
    confidence: float
    evidence: str


@dataclass(frozen=True)
class Cost:
    """What one step of language models cost.

    Attributes:
        step: What was done, as in `summarize_page`.
        model: The model.
        calls: Calls that were made.
        stored_answers: Answers that came from the store instead.
        input_tokens: Tokens read, those of prompt caches among them.
        output_tokens: Tokens written.
        cost_usd: Price in US dollars.
    """

    step: str
    model: str
    calls: int
    stored_answers: int
    input_tokens: int
    output_tokens: int
    cost_usd: float


@dataclass(frozen=True)
class DocumentContents:
    """A document with what is known of it.

    Attributes:
        entry: The document as it is listed.
        summary: Its summary, or None.
        pages: Its pages, in order.
        failures: What could not be parsed.
        facets: What kind of document it is.
        costs: What language models cost for it, by step.
        chunk_count: Passages.
        question_count: Questions that it answers and that are searched.
    """

    entry: DocumentEntry
    summary: str | None
    pages: tuple[PageEntry, ...]
    failures: tuple[Failure, ...]
    facets: tuple[Facet, ...]
    costs: tuple[Cost, ...]
    chunk_count: int
    question_count: int


@dataclass(frozen=True)
class DocumentFilter:
    """Which documents are listed; empty fields ask for nothing."""

    text: str = ""  # words that the id or the title holds, all of them, whatever their case and width
    folder: str = ""  # a folder; what lies below it is in it
    format: str = ""
    status: str = ""  # `parsed`, `failed` or `unreadable`


@dataclass(frozen=True)
class Health:
    """The state of a published version.

    Attributes:
        snapshot: Its number.
        published_at: Time of publishing, ISO 8601, UTC.
        embedder: Embedder of its vectors.
        document_count: Documents.
        failed_count: Documents that could not be parsed.
        failed_by_cause: These by the cause of their first failure.
        partly_read_count: Documents of which parts could not be read.
        page_count: Pages.
        chunk_count: Passages.
        documents_by_format: Documents by format.
        failures_by_cause: Failures by cause: those of parts of documents too, and several of a document.
        row_counts: Rows by table; serving tables are named `lancedb.<name>`.
        graph: Whether it has an entity graph.
        cost_usd: What language models cost so far, in US dollars.
    """

    snapshot: int
    published_at: str
    embedder: str
    document_count: int
    failed_count: int
    failed_by_cause: Mapping[str, int]
    partly_read_count: int
    page_count: int
    chunk_count: int
    documents_by_format: Mapping[str, int]
    failures_by_cause: Mapping[str, int]
    row_counts: Mapping[str, int]
    graph: bool
    cost_usd: float


ALL_DOCUMENTS = DocumentFilter()


class Contents:
    """What one published version holds, for people.

    Every method raises `StoreError` where a file is missing or damaged.

    Args:
        lake: The stored tables.
        snapshot: The version to read.
        read_calls: Reads columns of all calls of language models, those among them that are not in the lake yet; None
            for those of the lake.
    """

    def __init__(self, lake: Lake, snapshot: Snapshot, read_calls: ReadCalls | None = None) -> None:
        self.snapshot = snapshot
        self._stored = stored = StoredTables(lake, snapshot.tables)
        self.graph = GraphContents(stored)
        self._lake = lake
        self._read_calls = read_calls or (lambda columns: lake.read(MODEL_CALLS, columns=columns))
        self._catalogue = once(lambda: _read_catalogue(stored))
        self._lock = threading.Lock()
        self._ledger: tuple[Mapping[str, int], Mapping[str, float]] | None = None  # version, and costs by document

    def documents(
        self, wanted: DocumentFilter = ALL_DOCUMENTS, limit: int = LIST_LIMIT, cursor: str | None = None
    ) -> Listed[DocumentEntry]:
        """Documents by id, from where the list before this one said to go on.

        Raises:
            QueryError: The cursor is none, or no document has the folder or the format.
        """
        catalogue = self._catalogue()
        for name, value in (("folder", wanted.folder), ("format", wanted.format)):
            if value and catalogue.num_rows:
                check_known(name, [value], texts_of(catalogue[name]))
        for condition in _conditions(wanted):
            catalogue = catalogue.filter(condition)
        costs = self._costs_by_document()
        return cut(catalogue["document_id"], limit, cursor, lambda at: _entries(catalogue.take(at), costs))

    def document(self, document_id: str) -> DocumentContents | None:
        """A document with its pages, failures, facets and costs; None where there is no such document."""
        document_id = unicodedata.normalize("NFC", document_id)
        rows = self._of(DOCUMENTS, document_id, _LISTED)
        if not rows:
            return None
        failures = self._of(PARSE_FAILURES, document_id, ("failure_index", "page_number", "cause", "message"))
        costs = self.costs(document_id)
        entry = DocumentEntry(
            **rows[0],
            failure_count=len(failures),
            failure_cause=failures[0]["cause"] if failures else None,
            cost_usd=sum((cost.cost_usd for cost in costs), 0.0),
        )
        summaries = self._of(FILE_SUMMARIES, document_id, ("text",))
        summary_rows = self._of(PAGE_SUMMARIES, document_id, ("page_number", "text"))
        page_summaries = {row["page_number"]: row["text"] for row in summary_rows}
        columns = ("page_number", "page_id", "page_name", "kind", "hidden", "role", "length_chars")
        pages = self._of(PAGES, document_id, columns)
        facets = self._of(DOCUMENT_FACETS, document_id, ("facet", "value", "confidence", "evidence"))
        index_flags = [row["indexed"] for row in self._of(SYNTHETIC_QA, document_id, ("indexed",))]
        return DocumentContents(
            entry=entry,
            summary=summaries[0]["text"] if summaries else None,
            pages=tuple(PageEntry(**row, summary=page_summaries.get(row["page_number"])) for row in pages),
            failures=tuple(Failure(row["page_number"], row["cause"], row["message"]) for row in failures),
            facets=tuple(Facet(**row) for row in facets),
            costs=costs,
            chunk_count=len(self._of(CHUNKS, document_id, ("chunk_id",))),
            question_count=sum(index_flags),
        )

    def page(
        self, document_id: str, page_number: int, *, row_limit: int = ROW_LIMIT, focus: str | None = None
    ) -> PageContents | None:
        """A page with its blocks; None where there is no such page.

        Args:
            document_id: The document.
            page_number: Position in it, from 1.
            row_limit: Rows of tables that are given, at most, beside their headers; wide tables are cut before, see
                `shown_blocks`.
            focus: Cells, as in `B4:F20`, that are to be among the rows given.
        """
        document_id = unicodedata.normalize("NFC", document_id)
        documents = self._of(DOCUMENTS, document_id, ("title", "format", "page_count"))
        of_page = pc.field("page_number") == page_number
        pages = self._of(PAGES, document_id, _PAGE_COLUMNS, of_page)
        if not documents or not pages:
            return None
        blocks = self._of(BLOCKS, document_id, _BLOCK_COLUMNS, of_page)
        passages = self._of(CHUNKS, document_id, ("chunk_id", "block_indexes", "cell_range", "box"), of_page)
        summaries = self._of(PAGE_SUMMARIES, document_id, ("text",), of_page)
        page_blocks, complete = shown_blocks(blocks, row_limit, parse_area(focus))
        return PageContents(
            document_id=document_id,
            **documents[0],
            **pages[0],
            summary=summaries[0]["text"] if summaries else None,
            blocks=page_blocks,
            passages=tuple(
                PassagePlace(row["chunk_id"], tuple(row["block_indexes"]), row["cell_range"], as_box(row["box"]))
                for row in passages
            ),
            complete=complete,
        )

    def page_blocks(self, document_id: str, page_number: int) -> Iterator[PageBlock]:
        """All blocks of a page with all rows, long tables in parts, see `blocks_in_parts`; none without such a page."""
        of_page = pc.field("page_number") == page_number
        return blocks_in_parts(self._of(BLOCKS, document_id, _BLOCK_COLUMNS, of_page))

    def place(self, document_id: str) -> Mapping[str, Any] | None:
        """Where the file of a document was read: `uri`, `source_name`, `content_sha256`, `format`.

        None where there is no such document. Not for people: it names folders of the machine.
        """
        columns = ("uri", "source_name", "content_sha256", "format")
        rows = self._of(DOCUMENTS, document_id, columns)
        return rows[0] if rows else None

    def costs(self, document_id: str | None = None) -> tuple[Cost, ...]:
        """What language models cost so far, by step and model, the dearest first.

        Args:
            document_id: The document; None for all calls, those of queries among them.
        """
        columns = ("step", "model", "cache_hit", *_INPUT_TOKENS, "output_tokens", "cost_usd")
        if document_id is None:
            calls = self._read_calls(columns)
        else:  # all in the lake: the run that indexed the document has brought them there
            calls = self._lake.read(MODEL_CALLS, columns=columns, where=pc.field("document_id") == document_id)
        sums = [(name, "sum") for name in (*_INPUT_TOKENS, "output_tokens", "cost_usd")]
        cache_hits = pc.cast(calls["cache_hit"], pa.int64())
        groups = calls.drop_columns("cache_hit").append_column("cache_hit", cache_hits).group_by(["step", "model"])
        costs = [
            Cost(
                step=row["step"],
                model=row["model"],
                calls=row["count_all"] - row["cache_hit_sum"],
                stored_answers=row["cache_hit_sum"],
                input_tokens=sum(row[f"{name}_sum"] for name in _INPUT_TOKENS),
                output_tokens=row["output_tokens_sum"],
                cost_usd=row["cost_usd_sum"],
            )
            for row in groups.aggregate([*sums, ("cache_hit", "sum"), ([], "count_all")]).to_pylist()
        ]
        return tuple(sorted(costs, key=lambda cost: (-cost.cost_usd, cost.step, cost.model)))

    def health(self) -> Health:
        """The state of the version."""
        catalogue = self._catalogue()
        is_failed = pc.equal(catalogue["status"], DocumentStatus.FAILED)
        failed = catalogue.filter(is_failed)
        partly_read = catalogue.filter(pc.and_(pc.invert(is_failed), pc.greater(catalogue["failure_count"], 0)))
        causes = self._stored.read(PARSE_FAILURES, ("cause",))["cause"]
        counts = self.snapshot.row_counts
        return Health(
            snapshot=self.snapshot.number,
            published_at=self.snapshot.published_at,
            embedder=self.snapshot.embedder,
            document_count=catalogue.num_rows,
            failed_count=failed.num_rows,
            failed_by_cause=_counts(failed["failure_cause"]),
            partly_read_count=partly_read.num_rows,
            page_count=counts.get(PAGES.name, 0),
            chunk_count=counts.get(CHUNKS.name, 0),
            documents_by_format=_counts(catalogue["format"]),
            failures_by_cause=_counts(causes),
            row_counts=dict(counts),
            graph=counts.get("entities", 0) > 0,
            cost_usd=sum((cost.cost_usd for cost in self.costs()), 0.0),
        )

    def _of(
        self, table: Table, document_id: str, columns: Sequence[str], where: pc.Expression | None = None
    ) -> list[dict[str, Any]]:
        """Rows of a document, in key order, from the one shard that holds it."""
        document_id = unicodedata.normalize("NFC", document_id)
        rows: list[dict[str, Any]] = self._stored.read(table, columns, [document_id], where).to_pylist()
        return rows

    def _costs_by_document(self) -> Mapping[str, float]:
        """Costs by document, read anew where the ledger has grown."""
        version = self._lake.latest(MODEL_CALLS)
        with self._lock:
            if self._ledger is None or self._ledger[0] != version:
                calls = self._lake.read(MODEL_CALLS, columns=("document_id", "cost_usd"), versions=version)
                totals = calls.group_by("document_id").aggregate([("cost_usd", "sum")]).to_pydict()
                self._ledger = (version, dict(zip(totals["document_id"], totals["cost_usd_sum"], strict=True)))
            return self._ledger[1]


def _read_catalogue(stored: StoredTables) -> pa.Table:
    """All documents by id, with their failures and what is looked for in them."""
    documents = stored.read(DOCUMENTS, _LISTED)
    failure_groups = stored.read(PARSE_FAILURES, ("document_id", "cause")).group_by("document_id", use_threads=False)
    failures = failure_groups.aggregate([("cause", "first"), ([], "count_all")])
    failures = failures.rename_columns(["document_id", "failure_cause", "failure_count"])
    catalogue = documents.join(failures, "document_id").sort_by("document_id")
    search_texts = pc.binary_join_element_wise(catalogue["document_id"], catalogue["title"], "\n")
    counts = pc.fill_null(catalogue["failure_count"], 0)
    catalogue = catalogue.set_column(catalogue.column_names.index("failure_count"), "failure_count", counts)
    return catalogue.append_column("searched", pc.utf8_lower(pc.utf8_normalize(search_texts, "NFKC")))


def _conditions(document_filter: DocumentFilter) -> Iterable[pc.Expression]:
    for word in unicodedata.normalize("NFKC", document_filter.text).lower().split():
        yield pc.match_substring(pc.field("searched"), word)
    if document_filter.folder:
        folder = unicodedata.normalize("NFC", document_filter.folder).rstrip("/")
        inside = pc.starts_with(pc.field("folder"), f"{folder}/")
        yield (pc.field("folder") == folder) | inside
    if document_filter.format:
        yield pc.field("format") == document_filter.format.strip().lower()
    if document_filter.status:
        yield pc.field("status") == document_filter.status


def _entries(rows: pa.Table, costs: Mapping[str, float]) -> list[DocumentEntry]:
    return [
        DocumentEntry(**row, cost_usd=costs.get(row["document_id"], 0.0))
        for row in rows.drop_columns(["searched"]).to_pylist()
    ]


def _counts(values: pa.ChunkedArray) -> dict[str, int]:
    counts = {entry["values"]: entry["counts"] for entry in pc.value_counts(values).to_pylist()}
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
