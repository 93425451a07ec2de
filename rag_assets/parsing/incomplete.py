"""What of the stored documents was not read: whole documents, pages, parts of pages."""

from dataclasses import dataclass

from rag_assets.contracts.causes import DocumentStatus
from rag_assets.contracts.tables import DOCUMENTS, PARSE_FAILURES
from rag_assets.store.lake import Lake


@dataclass(frozen=True)
class IncompleteDocument:
    """A document of which pages, or parts of pages, were not read.

    Attributes:
        unread_page_count: Pages of which nothing was read.
        partly_read_page_count: Pages of which a part was not read.
        causes: Why, each cause once.
    """

    document_id: str
    page_count: int
    unread_page_count: int
    partly_read_page_count: int
    causes: tuple[str, ...]

    @property
    def unread_share(self) -> float:
        """Share of its pages that are unread, 0 to 1."""
        return min(1.0, self.unread_page_count / max(1, self.page_count))

    def __str__(self) -> str:
        """The document with what is not read of it, as in `a.pdf: 2 of 3 pages unread (67 %): no_text`."""
        unread = f"{self.unread_page_count} of {self.page_count} pages unread ({self.unread_share:.0%})"
        partly = f"{self.partly_read_page_count} of {self.page_count} pages read in part"
        counts = (unread if self.unread_page_count else "", partly if self.partly_read_page_count else "")
        return f"{self.document_id}: {', '.join(filter(None, counts))}: {', '.join(self.causes)}"


def incomplete_documents(lake: Lake) -> list[IncompleteDocument]:
    """Stored documents with pages that were not read, or not in full, most of them unread first."""
    causes: dict[str, set[str]] = {}
    for row in lake.read(PARSE_FAILURES, columns=["document_id", "page_number", "cause"]).to_pylist():
        if row["page_number"] is not None:
            causes.setdefault(row["document_id"], set()).add(row["cause"])
    columns = ["document_id", "page_count", "unread_page_count", "partly_read_page_count"]
    documents = [
        IncompleteDocument(**row, causes=tuple(sorted(causes[row["document_id"]])))
        for row in lake.read(DOCUMENTS, columns=columns).to_pylist()
        if row["document_id"] in causes
    ]
    return sorted(documents, key=lambda document: (-document.unread_share, document.document_id))


def document_failures(lake: Lake) -> list[dict[str, object]]:
    """Failures of whole documents in order of id, each with the `status` of its document."""
    columns = ["document_id", "page_number", "cause", "message"]
    rows: list[dict[str, object]] = lake.read(PARSE_FAILURES, columns=columns).to_pylist()
    documents = lake.read(DOCUMENTS, columns=["document_id", "status"]).to_pydict()
    status = dict(zip(documents["document_id"], documents["status"], strict=True))
    whole = (row for row in rows if row["page_number"] is None)
    return [{**row, "status": status.get(row["document_id"], DocumentStatus.FAILED)} for row in whole]
