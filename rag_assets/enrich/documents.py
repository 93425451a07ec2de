"""Documents as enriching steps read them, and what language models are told of them and read of their pages."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from rag_assets.contracts.causes import BlockKind
from rag_assets.contracts.content import Page
from rag_assets.contracts.tables import DOCUMENTS
from rag_assets.models.prompts import fenced
from rag_assets.parsing.records import load_pages
from rag_assets.store.lake import Lake, shard_of
from rag_assets.text.tokens import cut_to_tokens

TITLE_TOKENS = 100


@dataclass(frozen=True)
class Subject:
    """A document, or a part of one, that a language model is asked about."""

    document_id: str  # its id; for the ledger, not for the model
    shard: str
    language: str
    title: str  # title that the file states, or an empty text. Not its name: a renamed file costs no call
    page_names: Sequence[str]  # names of its pages, or of those that are content; some may be empty

    @property
    def listed_pages(self) -> str:
        """Names of pages in one line; a dash where there are none."""
        return "、".join(filter(None, self.page_names)) or "-"

    @property
    def fenced_title(self) -> str:
        """The title as prompts hold it, cut to `TITLE_TOKENS`, between its tags; a dash where it has none."""
        return fenced(cut_to_tokens(self.title, TITLE_TOKENS) or "-", "title")

    def fenced_page_names(self, tokens: int) -> str:
        """The names of pages as prompts hold them, cut to so many tokens, between their tags."""
        return fenced(cut_to_tokens(self.listed_pages, tokens), "names")


@dataclass(frozen=True)
class Document:
    """A stored document with its title, main language and pages."""

    document_id: str
    title: str
    language: str
    pages: Sequence[Page]

    def subject(self, pages: Sequence[Page] | None = None) -> Subject:
        """What a language model is told, with the names of some pages, or of all."""
        names = [page.name or "" for page in (self.pages if pages is None else pages)]
        title = stated_title(self.document_id, self.title)
        return Subject(self.document_id, shard_of(self.document_id), self.language, title, names)


def load_documents(lake: Lake, shard: str, documents: Sequence[str]) -> list[Document]:
    """Some documents of a shard; one that is not stored is left out."""
    rows = lake.read(DOCUMENTS, [shard], ["document_id", "language"]).to_pylist()
    languages = {row["document_id"]: row["language"] for row in rows}
    return [
        Document(name, title, languages[name], pages)
        for name, (title, pages) in load_pages(lake, shard, documents).items()
    ]


def stated_title(document_id: str, title: str) -> str:
    """The title that a file states; empty where the title is the file's name."""
    return "" if title == PurePosixPath(document_id).stem else title


def body_text(page: Page) -> str:
    """What a model reads of a page: everything but running headers and footers."""
    return "\n".join(block.text for block in page.blocks if block.text and block.kind is not BlockKind.HEADER)
