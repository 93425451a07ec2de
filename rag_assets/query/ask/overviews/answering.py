"""Answers from what the collection holds: its files, the documents on a topic, documents as a whole.

What stays out: the files that there are (`inventory`), the documents that say something of a topic (`documents_about`),
which document or folder is meant (`named_document`, `scope`), and what is told of it (`overview`).
"""

import re
import time
import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

from rag_assets.contracts.tables import DOCUMENTS
from rag_assets.query.ask.answers import AnswerParts, numbered_as_cited
from rag_assets.query.ask.found import Found
from rag_assets.query.ask.overviews.documents_about import documents_about, kind_of, topic_of
from rag_assets.query.ask.overviews.inventory import InventoryAsked, inventory, of_kind
from rag_assets.query.ask.overviews.named_document import named_document, without_size
from rag_assets.query.ask.overviews.overview import document_overview, overview
from rag_assets.query.ask.overviews.scope import scope_of
from rag_assets.query.ask.quoted.statements import statements
from rag_assets.query.ask.quoted.wanted import AnswerTraits
from rag_assets.query.results import Hit
from rag_assets.query.search.auto import is_on_the_whole
from rag_assets.query.search.rewriting_rules import keywords, with_history
from rag_assets.text.folding import fold_name
from rag_assets.text.plain import asks

_QUOTES = re.compile("[「“]")
_LABEL = re.compile(r"^\s*(?:Q|問|質問)\s?\d*\s?[:.：．]\s*", re.IGNORECASE)
_IN_BRACKETS = re.compile(r"((?:[A-Za-z][\w-]*[ -]){1,7}[A-Za-z][\w-]*)\s?\(([A-Z]{2,8})\)")
_BEFORE_BRACKETS = re.compile(r"\b([A-Z]{2,8})\s?\(((?:[A-Za-z][\w-]*[ -]){1,7}[A-Za-z][\w-]*)\)")


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


def _unexplained(question: str, hits: Sequence[Hit]) -> tuple[str, ...]:
    """The folded name of what a question wants to have explained, where it asks nothing else and no passage does: by a
    statement, by a question that asks the same, or by what an abbreviation stands for.
    """
    traits, name = AnswerTraits.of(question), fold_name(keywords(question))
    if name not in traits.defined:
        return ()
    for hit in hits:
        if any(traits.defines(statement) for statement in statements(hit.text)):
            return ()
        lines = (unicodedata.normalize("NFKC", line) for line in hit.text.splitlines())
        if any(_asks_what_it_is(line, name) or _spells_out(line, name) for line in lines):
            return ()
    return (name,)


def _asks_what_it_is(line: str, name: str) -> bool:
    """Whether a line asks what is called by a folded name, as the questions of a document do."""
    return asks(line) and any(fold_name(keywords(_LABEL.sub("", line))) == name for _ in AnswerTraits.of(line).defined)


def _spells_out(line: str, name: str) -> bool:
    """Whether a line says what an abbreviation stands for: in brackets after words with its letters, or before them."""
    return any(
        fold_name(short) == name and fold_name("".join(word[0] for word in long.split()[-len(short) :])) == name
        for long, short in chain(_IN_BRACKETS.findall(line), (pair[::-1] for pair in _BEFORE_BRACKETS.findall(line)))
    )
