"""Answers from what the collection holds: its files, the documents on a topic, documents as a whole.

What stays out: the files that there are (`inventory`), the documents that say something of a topic (`documents_about`),
which document or folder is meant (`named_document`, `scope`), and what is told of it (`overview`).
"""

import re
import time
from dataclasses import replace

from rag_assets.contracts.tables import DOCUMENTS
from rag_assets.query.ask.answers import AnswerParts, numbered_as_cited
from rag_assets.query.ask.found import Found
from rag_assets.query.ask.overviews.documents_about import documents_about, kind_of, topic_of
from rag_assets.query.ask.overviews.inventory import InventoryAsked, inventory, of_kind
from rag_assets.query.ask.overviews.named_document import named_document, without_size
from rag_assets.query.ask.overviews.overview import document_overview, overview
from rag_assets.query.ask.overviews.scope import scope_of
from rag_assets.query.search.auto import is_on_the_whole
from rag_assets.query.search.rewriting_rules import with_history

_QUOTES = re.compile("[「“]")


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
    hits = found.find(topic)
    if kind := kind_of(found.question):
        rows = of_kind(kind, rows)
        documents = {row["document_id"] for row in rows}
        hits = tuple(hit for hit in hits if hit.document_id in documents)
    parts = documents_about(topic, found.language, rows, hits, found.passages_of)
    if parts is not None:
        found.trace.add("documents", began, len(parts.sentences))
    return parts


def overview_answer(found: Found) -> AnswerParts | None:
    """What documents are about as a whole; None where that is not asked, or nothing is known of them."""
    question, most = without_size(found.question)
    allowed, began = found.allowed, time.perf_counter()
    full_question = with_history(question, found.parameters.history) if found.goes_on else question
    document = named_document(full_question, found.stored, allowed)
    scope = None
    if document is None or not document.surely:
        scope = scope_of(full_question, found.stored, allowed, whole=is_on_the_whole(question))
    if scope is not None:
        parts = overview(scope, found.language, found.stored, found.passages_of)
    elif document is not None:
        parts = document_overview(document.row, found.language, found.stored, found.passages_of)
    else:
        return None
    count = len(scope.rows) if scope is not None else 1
    found.trace.add("overview", began, count, texts=(f"documents {count}",))
    return _shortened(parts, most) if parts.sentences or parts.opening else None


def _shortened(parts: AnswerParts, most: int) -> AnswerParts:
    """At most so many sentences of an overview, those that quote before those that count and name; all for 0."""
    if not most or len(parts.sentences) <= most:
        return parts
    order = sorted(
        range(len(parts.sentences)), key=lambda place: (not _QUOTES.search(parts.sentences[place].text), place)
    )
    kept = [parts.sentences[place] for place in sorted(order[:most])]
    sentences, sources = numbered_as_cited(kept, parts.sources)
    return replace(parts, sentences=sentences, sources=sources)
