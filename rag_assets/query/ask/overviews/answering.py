"""Answers from what the collection holds: its files, the documents on a topic, documents as a whole.

What stays out: the files that there are (`inventory`), the documents that say something of a topic (`documents_about`),
which document or folder is meant (`named_document`, `scope`), and what is told of it (`overview`).
"""

import time
from collections.abc import Sequence

from rag_assets.contracts.tables import DOCUMENTS
from rag_assets.query.ask.answers import AnswerParts
from rag_assets.query.ask.found import Found
from rag_assets.query.ask.overviews.documents_about import documents_about, topic_of
from rag_assets.query.ask.overviews.inventory import InventoryAsked, inventory
from rag_assets.query.ask.overviews.named_document import named_document
from rag_assets.query.ask.overviews.overview import document_overview, overview
from rag_assets.query.ask.overviews.scope import scope_of
from rag_assets.query.ask.quoted.statements import statements
from rag_assets.query.ask.quoted.wanted import AnswerTraits
from rag_assets.query.results import Hit
from rag_assets.query.search.auto import is_on_the_whole
from rag_assets.query.search.rewriting_rules import keywords, with_history
from rag_assets.text.folding import fold_name


def files_answer(found: Found) -> AnswerParts | None:
    """What the collection holds: how many files, which ones; None where that is not asked."""
    file_question = None if found.goes_on else InventoryAsked.of(found.question)
    if file_question is None:
        return None
    began = time.perf_counter()
    parts = inventory(
        file_question, found.language, found.stored, found.passages_of, found.allowed, found.request.filters
    )
    if parts is not None:
        found.trace.add("inventory", began, len(parts.sources))
    return parts


def documents_answer(found: Found) -> AnswerParts | None:
    """The documents that say something of a topic; None where that is not asked, or none does."""
    topic = None if found.goes_on else topic_of(found.question)
    if topic is None:
        return None
    began = time.perf_counter()
    rows = found.stored.read(DOCUMENTS, ("document_id", "title")).to_pylist()
    rows = [row for row in rows if found.allowed is None or row["document_id"] in found.allowed]
    parts = documents_about(topic, found.language, rows, found.find(topic), found.passages_of)
    if parts is not None:
        found.trace.add("documents", began, len(parts.sentences))
    return parts


def overview_answer(found: Found) -> AnswerParts | None:
    """What documents are about as a whole; None where that is not asked, or nothing is known of them."""
    question, allowed = found.question, found.allowed
    began = time.perf_counter()
    full_question = with_history(question, found.parameters.history) if found.goes_on else question
    document = named_document(full_question, found.stored, allowed)
    scope = None
    if document is None or not document.surely:
        unexplained_names = _unexplained(question, found.hits)
        scope = scope_of(
            full_question, found.stored, allowed, whole=is_on_the_whole(question), unexplained=unexplained_names
        )
    if scope is not None:
        parts = overview(scope, found.language, found.stored, found.passages_of)
    elif document is not None:
        parts = document_overview(document.row, found.language, found.stored, found.passages_of)
    else:
        return None
    count = len(scope.rows) if scope is not None else 1
    found.trace.add("overview", began, count, texts=(f"documents {count}",))
    return parts if parts.sentences or parts.opening else None


def _unexplained(question: str, hits: Sequence[Hit]) -> tuple[str, ...]:
    """The folded name of what a question wants to have explained, where it asks nothing else and no passage does."""
    traits, name = AnswerTraits.of(question), fold_name(keywords(question))
    if name not in traits.defined or any(
        traits.defines(statement) for hit in hits for statement in statements(hit.text)
    ):
        return ()
    return (name,)
