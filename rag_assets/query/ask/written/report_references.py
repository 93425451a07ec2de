"""Citations of an answer that was made from community reports: its references to records, led to passages.

A reference such as `[Data: Entities (5, 7); Relationships (23)]` grounds the text before it, back to the reference
or the line end before. Of the passages that name a record (of a relationship, both its ends), those that share
most with the text are cited, with their sentence that does.

Nobody quoted these sentences to ground the text, so that it is the text's own words that decide: it is supported where
the cited passages hold half of its content words and figures. That tells whether it is about what stands there, not
whether it is true of it; a text in another language than the passages is hardly ever supported.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from rag_assets.contracts.tables import ENTITIES, RELATIONSHIPS
from rag_assets.graph.reports.context import REFERENCE, Records, cited
from rag_assets.query.ask.answers import Sentence, SentenceCitation, Source
from rag_assets.query.ask.quoted.extracts import quote_for
from rag_assets.query.ask.quotes import stands_in, unfounded
from rag_assets.query.search.passage_graph import PassageGraph
from rag_assets.query.stored import StoredTables
from rag_assets.text.folding import content_terms, content_words, held_share

_PASSAGES = 2  # of a statement
_CANDIDATES = 30  # passages of a statement that are looked at
_HELD = 0.5  # share of a statement's content words that the cited passages hold together, from which it is supported
_OWN = 0.25  # share that a passage holds by itself, from which it supports


@dataclass(frozen=True)
class ReferringStatement:
    """A part of an answer with the reference behind it."""

    text: str  # the text, reference included
    said: str  # the text alone
    records: Records = field(default_factory=Records)  # what it refers to


def referring_statements(text: str) -> list[ReferringStatement]:
    """An answer, part by part; parts without a reference stand for themselves."""
    statements: list[ReferringStatement] = []
    for line in filter(None, map(str.strip, text.splitlines())):
        start = 0
        for match in REFERENCE.finditer(line):
            part = line[start : match.start()].strip()
            if not part.strip(" .。、,;") and statements:
                statements[-1] = _with_reference(statements[-1], match)
            else:
                statements.append(_with_reference(ReferringStatement(part, part), match))
            start = match.end()
        rest = line[start:].strip()
        if rest.strip(" .。、,;"):
            statements.append(ReferringStatement(rest, rest))
    return statements


def passages_of(
    found: Sequence[ReferringStatement], stored: StoredTables, graph: PassageGraph
) -> list[tuple[ReferringStatement, tuple[str, ...]]]:
    """The passages that each statement may rest on, those that name most of its records first.

    Raises:
        StoreError: A file is missing or damaged.
    """
    entities = {row["number"]: row["entity_id"] for row in stored.read(ENTITIES, ["number", "entity_id"]).to_pylist()}
    columns = ["number", "source_id", "target_id"]
    ends = {
        row["number"]: (row["source_id"], row["target_id"]) for row in stored.read(RELATIONSHIPS, columns).to_pylist()
    }
    return [(statement, _passages(statement, entities, ends, graph)) for statement in found]


def cited_sentences(
    found: Sequence[tuple[ReferringStatement, tuple[str, ...]]], sources: Mapping[str, Source]
) -> tuple[tuple[Sentence, ...], tuple[Source, ...]]:
    """Statements, each with passages that it may rest on, as sentences with citations; sources are by chunk id.

    Returns:
        The sentences, and the sources that they cite, numbered from 1 in order of their first citation.
    """
    numbered_sources: dict[str, Source] = {}
    terms = {chunk_id: content_terms(source.whole_text) for chunk_id, source in sources.items()}
    sentences = []
    for statement, chunk_ids in found:
        words = content_words(statement.said)
        shares = {chunk_id: held_share(words, terms[chunk_id]) for chunk_id in chunk_ids if chunk_id in sources}
        nearest = sorted(shares, key=lambda chunk_id: -shares[chunk_id])[:_PASSAGES]
        is_grounded = held_share(words, frozenset().union(*(terms[chunk_id] for chunk_id in nearest))) >= _HELD
        citations, texts = [], []
        for chunk_id in nearest:
            source = sources[chunk_id]
            number = numbered_sources.setdefault(chunk_id, replace(source, number=len(numbered_sources) + 1)).number
            quote = quote_for(statement.said, source)
            is_supported = is_grounded and shares[chunk_id] >= _OWN and stands_in(quote, source.whole_text)
            citations.append(SentenceCitation(number, quote, is_supported))
            texts.append(f"{source.title}\n{source.citation}\n{source.whole_text}")
        sentences.append(Sentence(statement.text, tuple(citations), unfounded(statement.said, texts)))
    return tuple(sentences), tuple(numbered_sources.values())


def _with_reference(statement: ReferringStatement, reference: re.Match[str]) -> ReferringStatement:
    """A statement with a further reference behind it."""
    reference_text = reference[0].lstrip()
    return ReferringStatement(
        f"{statement.text} {reference_text}", statement.said, statement.records | cited(reference_text)
    )


def _passages(
    statement: ReferringStatement,
    entities: Mapping[int, str],
    ends: Mapping[int, tuple[str, str]],
    graph: PassageGraph,
) -> tuple[str, ...]:
    counts = np.zeros(len(graph.chunk_ids))
    for number in statement.records.entities & entities.keys():
        counts += _mentions(entities[number], graph)
    for number in statement.records.relationships & ends.keys():
        source, target = (_mentions(end, graph) for end in ends[number])
        counts += 2 * source * target if (source * target).any() else source + target
    order = np.argsort(-counts, kind="stable")[:_CANDIDATES]
    return tuple(graph.chunk_ids[place] for place in order if counts[place] > 0)


def _mentions(entity_id: str, graph: PassageGraph) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    """1 for each passage that names an entity, else 0."""
    passages = len(graph.chunk_ids)
    mentions = np.zeros(passages)
    if (position := graph.entity_positions.get(entity_id)) is not None:
        column = np.zeros(graph.adjacency.shape[0])
        column[passages + position] = 1.0
        mentions[(graph.adjacency @ column)[:passages] > 0] = 1.0
    return mentions
