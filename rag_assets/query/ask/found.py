"""A question with the passages found for it, and what else its filters let an answer be made of."""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import zip_longest

import pyarrow.compute as pc

from rag_assets.contracts.ports import Turn
from rag_assets.contracts.tables import BLOCKS
from rag_assets.query.ask.answers import Source
from rag_assets.query.ask.evidence import position
from rag_assets.query.ask.facts import PassagesOf
from rag_assets.query.ask.quoted.page_sections import BLOCK_COLUMNS, PageBlock, PageBlocks
from rag_assets.query.results import Hit, TraceRecorder
from rag_assets.query.search.index import Candidate
from rag_assets.query.search.modes import SearchParameters
from rag_assets.query.search.passages import both
from rag_assets.query.search.request import Indexes, RetrievalRequest
from rag_assets.query.search.rewriting_rules import refers_back, with_history
from rag_assets.query.stored import StoredTables
from rag_assets.store.vectors.store import sql_in
from rag_assets.text.language import prompt_language
from rag_assets.text.synonyms import in_other_words, words_found

_BESIDE = 30  # passages of a page that a list may go on in


@dataclass(frozen=True)
class Found:
    """A question, the passages found for it, and how more is found."""

    question: str  # as asked
    parameters: SearchParameters  # how it was searched
    request: RetrievalRequest  # the search, with the filters as they are applied, and as it was rewritten where it was
    hits: tuple[Hit, ...]  # the passages, best first
    indexes: Indexes  # the serving tables
    hits_of: Callable[[Sequence[Candidate], TraceRecorder], tuple[Hit, ...]]  # makes hits of candidates
    stored: StoredTables  # the stored tables
    find: Callable[[str], tuple[Hit, ...]]  # finds passages for a part of the question
    find_in: Callable[[str, str], tuple[Hit, ...]]  # finds passages of one document
    trace: TraceRecorder  # told what is done

    @property
    def language(self) -> str:
        """Of prompts, and of what is said without a model."""
        return prompt_language(self.question)

    @property
    def goes_on(self) -> bool:
        """Whether the question cannot be understood without those before it."""
        return bool(self.parameters.history) and refers_back(self.question)

    def asking(self, question: str, history: Sequence[Turn]) -> "Found":
        """Another question, with the conversation before it, and the passages found for it."""
        hits = self.find(with_history(question, history))
        parameters = replace(self.parameters, history=tuple(history))
        return replace(self, question=question, parameters=parameters, hits=hits)

    def words_found(self) -> dict[str, str]:
        """For words of the question that no passage found has others there that mean the same."""
        places = (f"{hit.document_id}\n{hit.title}\n{hit.citation}\n{hit.beginning}\n{hit.text}" for hit in self.hits)
        began = time.perf_counter()
        others = words_found(self.question, list(places))
        if others:
            pairs = tuple(f"{word}: {other}" for word, other in others.items())
            self.trace.add("synonyms", began, len(others), texts=pairs)
        return others

    def asking_in(self, others: Mapping[str, str]) -> "Found":
        """The question with other words, and what is found for it so beside what was."""
        found = self.asking(in_other_words(self.question, others), self.parameters.history)
        return replace(found, hits=in_turn(found.hits, self.hits))

    @property
    def where(self) -> str | None:
        """The filters as a condition on passages; None without any."""
        return self.request.filters.to_sql(self.indexes.chunks.columns)

    def listed(self, condition: str | None = None) -> list[Candidate]:
        """All passages that filters let through, of those that satisfy a condition."""
        return self.indexes.chunks.listed(both(condition, self.where), self.trace)

    def having(self, ids: Collection[str]) -> tuple[Hit, ...]:
        """Passages by their ids, in this order, but for those that filters leave out."""
        rows = self.indexes.chunks.having(list(ids), self.where, self.trace)
        return self.hits_of([rows[chunk_id] for chunk_id in ids if chunk_id in rows], self.trace)

    @cached_property
    def allowed(self) -> Collection[str] | None:
        """The documents that filters let through; None for all."""
        return {candidate.document_id for candidate in self.listed()} if self.where else None

    @property
    def passages_of(self) -> PassagesOf:
        """The first passages of documents, and all of others, that filters let through."""

        def passages(documents: Collection[str], whole_documents: Collection[str]) -> tuple[Hit, ...]:
            every = sorted(
                self.listed(sql_in("document_id", sorted({*documents, *whole_documents}))),
                key=lambda candidate: (candidate.document_id, _place(candidate)),
            )
            first = {candidate.document_id: candidate.key for candidate in reversed(every)}
            candidates = [
                candidate
                for candidate in every
                if candidate.document_id in whole_documents or first[candidate.document_id] == candidate.key
            ]
            return self.hits_of(candidates, self.trace)

        return passages

    def blocks(self, sources: Sequence[Source]) -> PageBlocks:
        """The parts of the pages of passages."""
        pages: dict[tuple[str, int], list[PageBlock]] = {}
        if sources:
            documents, numbers = {source.document_id for source in sources}, {source.page_number for source in sources}
            of_pages = pc.field("page_number").isin(sorted(numbers))
            columns = ("document_id", "page_number", *BLOCK_COLUMNS)
            for row in self.stored.read(BLOCKS, columns, sorted(documents), of_pages).to_pylist():
                pages.setdefault((row["document_id"], row["page_number"]), []).append(PageBlock.of(row))
        return lambda document_id, page_number: pages.get((document_id, page_number), ())

    def beside(self, source: Source, sources: Sequence[Source], number: int) -> tuple[Source, ...]:
        """The passages of the page of one around it that were not found, numbered behind a number."""
        found_ids, place = {found.chunk_id for found in sources}, position(source.chunk_id)
        candidates = sorted(
            self.listed(sql_in("page_id", [source.page_id])),
            key=lambda candidate: abs(position(candidate.key) - place),
        )
        near = [candidate for candidate in candidates[:_BESIDE] if candidate.key not in found_ids]
        hits = self.hits_of(sorted(near, key=lambda candidate: position(candidate.key)), self.trace)
        return tuple(Source.of(number + hit.rank, hit, hit.text) for hit in hits)


def in_turn(*rankings: Sequence[Hit]) -> tuple[Hit, ...]:
    """Passages of several rankings, the first of each, then the second, as many as the longest has."""
    hits = {hit.chunk_id: hit for at_place in zip_longest(*rankings) for hit in at_place if hit is not None}
    most = max(map(len, rankings))
    return tuple(replace(hit, rank=rank) for rank, hit in enumerate(list(hits.values())[:most], start=1))


def _place(passage: Candidate) -> tuple[int, int]:
    """Page of a passage, and its place there."""
    page = (passage.page_id or "").rpartition("#")[2]
    return int(page) if page.isdecimal() else 0, position(passage.key)
