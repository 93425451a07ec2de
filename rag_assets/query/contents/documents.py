"""Documents, their pages, failures and costs, as they are given to people: plain frozen values."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime


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
    """Which documents are listed; empty fields ask for nothing.

    Attributes:
        text: Words that the id or the title holds, all of them, whatever their case and width.
        folder: A folder; what lies below it is in it.
        format: A format.
        status: `parsed`, `failed` or `unreadable`.
    """

    text: str = ""
    folder: str = ""
    format: str = ""
    status: str = ""


@dataclass(frozen=True)
class Health:
    """The state of a published version.

    Attributes:
        snapshot: Its number.
        published_at: Time of publishing, ISO 8601, UTC.
        embedder: Embedder of its vectors.
        document_count: Documents.
        failed_count: Documents that could not be parsed.
        page_count: Pages.
        chunk_count: Passages.
        documents_by_format: Documents by format.
        failures_by_cause: Failures, those of parts of documents among them, by cause.
        row_counts: Rows by table; serving tables are named `lancedb.<name>`.
        graph: Whether it has an entity graph.
        cost_usd: What language models cost so far, in US dollars.
    """

    snapshot: int
    published_at: str
    embedder: str
    document_count: int
    failed_count: int
    page_count: int
    chunk_count: int
    documents_by_format: Mapping[str, int]
    failures_by_cause: Mapping[str, int]
    row_counts: Mapping[str, int]
    graph: bool
    cost_usd: float
