"""Answers as quotes: what the passages found state, with rows of their pages that the question names, part by part.

What stays out: which statements answer (`extracts`), and what whole tables tell (`rag_assets.query.ask.tables`).
"""

import logging
import re
import time
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache

import pyarrow.compute as pc

from rag_assets.contracts.errors import ModelError
from rag_assets.contracts.ports import AnswerScorer
from rag_assets.contracts.tables import CHUNKS
from rag_assets.query.ask.answers import NOT_FOUND, AnswerParts, Source, numbered_as_cited
from rag_assets.query.ask.evidence import pack, placed_by_quotes
from rag_assets.query.ask.found import Found, in_turn
from rag_assets.query.ask.overviews.reading_failures import unread_files_named
from rag_assets.query.ask.quoted.extracts import NEAREST, extracts
from rag_assets.query.ask.quoted.page_sections import passages_naming
from rag_assets.query.ask.quoted.spoken_of import SpokenOf
from rag_assets.query.ask.quoted.wanted import quotes_explained
from rag_assets.query.ask.tables.answering import fields_answer, is_denied, page_answer
from rag_assets.query.ask.tables.neighbours import NeighbourAsked
from rag_assets.query.ask.tables.rows_sharing import rules_out
from rag_assets.query.ask.tables.samples import are_sample
from rag_assets.query.filters import NO_FILTERS
from rag_assets.query.results import Hit
from rag_assets.query.search.composite import Ask, parts_of
from rag_assets.query.search.rewriting_rules import asks_of_the_same, referred, with_history
from rag_assets.text.cells import CELL_SIGN

_TOPIC = re.compile("(?!その|この|それ|これ)[^、。は]{1,12}は")  # that a question names by itself
_OPEN, _CLOSED = '[「『"]?', '[」』"]?'
_DOCUMENTS_OF_LEGEND = 2  # of the first passages
_PASSAGES_OF_LEGEND = 2
_PAGES_OF_ROWS = 4  # pages with tables, of which rows are sought that the question names

_log = logging.getLogger(__name__)


def quotes_answer(
    found: Found, scorer: AnswerScorer | None, context_tokens: int, spoken_of: SpokenOf | None = None
) -> AnswerParts:
    """What the passages state that answers the question, part by part where it asks for several things.

    Where they lead to a table that answers as a whole, that is told instead. Where the question goes on to ask of what
    one document said, this document answers, if it does; if not, no other one does where nothing else is named.

    Args:
        found: The question, with what was found.
        scorer: Tells how surely statements answer; None goes by words alone.
        context_tokens: Of the passages that are read, at most.
        spoken_of: What the question before was answered by.
    """
    parts = [(part, found.find(part.searched)) for part in parts_of(found.question)]
    if spoken_of is None or parts:
        return _quoted(found, found.hits, parts, scorer, context_tokens)
    query = with_history(found.question, found.parameters.history)
    hits = found.find_in(query, spoken_of.document_id)
    of_same = _quoted(found, hits, (), scorer, context_tokens, spoken_of)
    if spoken_of.goes_on_in(found.question, of_same):
        return of_same
    of_all = _quoted(found, found.hits, (), scorer, context_tokens)
    is_of_own_topic = _TOPIC.match(found.question) is not None and spoken_of.is_told_by(of_all)
    if of_all.near or not (asks_of_the_same(found.question) or is_of_own_topic):
        return of_all
    is_of_same = of_all.sources[0].document_id == spoken_of.document_id
    return of_all if is_of_same and spoken_of.goes_on_in(found.question, of_all) else replace(of_same, near=True)


def _quoted(
    found: Found,
    best_hits: Sequence[Hit],
    parts: Sequence[tuple[Ask, Sequence[Hit]]],
    scorer: AnswerScorer | None,
    context_tokens: int,
    spoken_of: SpokenOf | None = None,
) -> AnswerParts:
    began = time.perf_counter()
    history = found.parameters.history
    context = " ".join(referred(found.question, history))
    earlier = history[-1].question if context else ""
    asked = f"{context}、{found.question}".lstrip("、")  # as tables are asked; blanks are folded
    asks = [replace(part, context=f"{part.context} {context}".strip()) for part, _ in parts]
    hits = in_turn(best_hits, *(part_hits for _, part_hits in parts))
    hits = _with_named_rows(found, _with_legend(found, hits))
    sources = pack(hits, context_tokens, by_page=False)
    asks = asks or [Ask(found.question, context, earlier=earlier)]
    blocks_of = found.blocks(sources)
    further: dict[str, tuple[Source, ...]] = {}  # passages of pages, beside those found

    def beside(source: Source) -> tuple[Source, ...]:
        if source.page_id not in further:
            number = len(sources) + sum(map(len, further.values()))
            further[source.page_id] = found.beside(source, sources, number)
        return further[source.page_id]

    try:
        sentences, answers, row, of_table, opening = extracts(asks, sources, scorer, blocks_of, beside, spoken_of)
    except ModelError as error:
        _warn_once(str(error))
        found.trace.add("quote", began, 0, texts=(f"failed: {error}",))
        sentences, answers, row, of_table, opening = extracts(asks, sources, None, blocks_of, beside, spoken_of)
    cited = {citation.number for sentence in sentences for citation in sentence.citations}
    sources += tuple(source for others in further.values() for source in others if source.number in cited)
    found.trace.add("quote", began, len(sentences))
    if (fields := fields_answer(found, asked, sources, sentences)) is not None:
        return fields
    neighbour = NeighbourAsked.of(found.question)
    if answers:
        first = sentences[0].citations[0].number
        source = next(source for source in sources if source.number == first)
        if neighbour is None and (of_page := page_answer(found, asked, row, source, of_table=of_table)) is not None:
            return of_page
        answers = not is_denied(found, asked, row, source)
    sentences, sources = numbered_as_cited(sentences, sources)
    said = [sentence.text for sentence in sentences]
    is_near = (
        not answers
        or are_sample(found.question, said)
        or (neighbour is not None and not neighbour.is_told_by(said))
        or rules_out(found.question, row)
    )
    if is_near or not sentences:
        opening = _unread_files(found, NEAREST if sentences else NOT_FOUND)
    return AnswerParts(sentences, placed_by_quotes(sentences, sources), opening, is_near)


def _with_legend(found: Found, hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Passages, behind the first those of the first documents that say what a sign or word stands for which the
    question quotes and wants to have explained (`MA: mandatory if applicable`), as far as they were not found.
    """
    names = quotes_explained(found.question)
    if not names or not hits:
        return tuple(hits)
    documents = list(dict.fromkeys(hit.document_id for hit in hits))[:_DOCUMENTS_OF_LEGEND]
    words = "|".join(re.escape(unicodedata.normalize("NFKC", name)) for name in names)
    explains = re.compile(rf"(?:^|[\s(「『・]){_OPEN}(?:{words}){_CLOSED}\s?[:=]|^(?:{words}) \|", re.MULTILINE)
    found_ids = {hit.chunk_id for hit in hits}
    keys = [
        row["chunk_id"]
        for row in found.stored.read(CHUNKS, ("chunk_id", "text"), documents).to_pylist()
        if row["chunk_id"] not in found_ids and explains.search(unicodedata.normalize("NFKC", row["text"]))
    ]
    legend = (replace(hit, rank=hits[0].rank) for hit in found.having(keys[:_PASSAGES_OF_LEGEND]))
    return (hits[0], *legend, *hits[1:])


def _with_named_rows(found: Found, hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Passages, each first one of a page with tables followed by those of it that hold rows which the question names,
    and were not found.
    """
    first = {hit.page_id: hit for hit in reversed(hits) if hit.page_id and CELL_SIGN in hit.text}
    pages = sorted(first.values(), key=lambda hit: hit.rank)[:_PAGES_OF_ROWS]
    if not pages:
        return tuple(hits)
    documents, numbers = ({getattr(hit, name) for hit in pages} for name in ("document_id", "page_number"))
    of_pages = pc.field("page_number").isin(sorted(numbers))
    texts: dict[str, dict[str, str]] = {hit.page_id: {} for hit in pages}
    for row in found.stored.read(CHUNKS, ("page_id", "chunk_id", "text"), sorted(documents), of_pages).to_pylist():
        if row["page_id"] in texts:
            texts[row["page_id"]][row["chunk_id"]] = row["text"]
    found_ids = {hit.chunk_id for hit in hits}
    named_keys = {page: passages_naming(found.question, passages) for page, passages in texts.items()}
    page_of = {key: page for page, keys in named_keys.items() for key in keys if key not in found_ids}
    after: dict[str, list[Hit]] = {}
    for hit in found.having(page_of):
        beside = first[page_of[hit.chunk_id]]
        after.setdefault(beside.chunk_id, []).append(replace(hit, rank=beside.rank))
    return tuple(passage for hit in hits for passage in (hit, *after.get(hit.chunk_id, ())))


def _unread_files(found: Found, otherwise: Mapping[str, str]) -> str:
    """What is said before anything else where files that could not be read may hold the answer; else empty."""
    if found.request.filters != NO_FILTERS:
        return ""
    unread = unread_files_named(found.question, found.language, found.stored)
    return f"{unread}\n{otherwise[found.language]}" if unread else ""


@cache
def _warn_once(problem: str) -> None:
    """Say what hinders every question, once in a process."""
    _log.warning("statements are chosen by words alone: %s", problem)
