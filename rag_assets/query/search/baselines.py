"""Searches of the sources as these describe them, without what the modes of this package add: for comparison.

`summary` and `summary_text` are one and two steps over summaries by similarity alone; `questions` searches nothing but
derived questions; `augment+MODE` and `plan+MODE` widen the query to several, which a mode searches at the same time.

Source: summaries: the article on several vectors for office documents; it does not say how many summaries its first
step takes: 4, as many as it judges. Questions and augmentation: L. Mombaerts et al., "Meta Knowledge for Retrieval
Augmented Large Language Models", KDD workshop 2024; it does not say how the results of several queries are put
together: by the best similarity to any.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from rag_assets.contracts.causes import SummaryFormat
from rag_assets.contracts.errors import QueryError
from rag_assets.query.filters import Filters
from rag_assets.query.results import FoundQuestion, TraceRecorder
from rag_assets.query.search.fusion import ranked
from rag_assets.query.search.index import Candidate, at_once, best_first, scored
from rag_assets.query.search.meta_knowledge import QUESTIONS, SHOWN_QUESTIONS, passages_of, within
from rag_assets.query.search.passages import both
from rag_assets.query.search.request import Indexes, Mode, RetrievalRequest
from rag_assets.query.search.sub_queries import SubQuery
from rag_assets.store.vectors.store import sql_in

_FIRST_STEP = 4  # summaries that choose the pages or files of the second step

Plan: TypeAlias = Callable[[str, NDArray[np.float32], Filters, TraceRecorder], Sequence[SubQuery]]


def search_summaries(request: RetrievalRequest, indexes: Indexes, trace: TraceRecorder) -> list[Candidate]:
    """Pages or files by falling cosine of their summaries, each by its first passage."""
    places = _nearest_summaries(request, indexes, request.depth, trace)
    column = _place_column(request)
    chunks = indexes.chunks
    where = both(sql_in(column, places), request.filters.to_sql(chunks.columns))
    first: dict[str, Candidate] = {}
    for candidate in sorted(
        chunks.listed(where, trace) if places else (), key=lambda candidate: (len(candidate.key), candidate.key)
    ):
        first.setdefault(str(getattr(candidate, column)), candidate)
    return [replace(first[place], score=score) for place, score in ranked(places) if place in first]


def search_summary_then_text(request: RetrievalRequest, indexes: Indexes, trace: TraceRecorder) -> list[Candidate]:
    """Passages of the pages or files whose summaries are nearest, by falling cosine."""
    places = _nearest_summaries(request, indexes, _FIRST_STEP, trace)
    chunks = indexes.chunks
    where = both(sql_in(_place_column(request), places), request.filters.to_sql(chunks.columns))
    return chunks.nearest(request.embedding, where, request.depth, trace, show=request.show_all) if places else []


def search_questions(request: RetrievalRequest, indexes: Indexes, trace: TraceRecorder) -> list[Candidate]:
    """Passages by falling cosine of the nearest question that they answer, with the questions found."""
    questions, chunks = indexes.questions, indexes.chunks
    if questions is None or questions.row_count == 0:
        raise QueryError("mode questions needs questions, and none are indexed")
    where = both(request.filters.to_sql(questions.columns), within(request.selections))
    candidates = questions.nearest(request.embedding, where, max(QUESTIONS, request.depth), trace)
    (scores,), found_questions = passages_of((SubQuery(request.text, request.embedding),), questions, [candidates])
    passages = chunks.having(sorted(found_questions), request.filters.to_sql(chunks.columns), trace)
    return [
        replace(passages[key], score=score, questions=tuple(found_questions[key][:SHOWN_QUESTIONS]))
        for key, score in ranked(scores)
        if key in passages
    ]


@dataclass
class AugmentedSearch:
    """The search for one query; it is widened once, however deep it has to look."""

    plan: Plan  # makes the sub-queries, of which the query is the first
    retriever: Callable[[], Mode]  # makes the mode that searches, one for each of them
    _searches: list[tuple[SubQuery, Mode]] | None = None

    def __call__(self, request: RetrievalRequest, indexes: Indexes, trace: TraceRecorder) -> list[Candidate]:
        """Passages by their best score for any sub-query, each with all questions by which it was found."""
        if self._searches is None:
            sub_queries = self.plan(request.text, request.embedding, request.filters, trace)
            self._searches = [(sub_query, self.retriever()) for sub_query in sub_queries]

        def search(sub_query: SubQuery, retriever: Mode, own: TraceRecorder) -> list[Candidate]:
            began = time.perf_counter()
            sub_request = replace(
                request, text=sub_query.text, vector=sub_query.vector, selections=sub_query.selections, show_all=False
            )
            candidates = retriever(sub_request, indexes, own)[: request.depth]
            own.add("sub_query", began, len(candidates), texts=(sub_query.text,))
            return candidates

        lists = at_once([partial(search, *arguments) for arguments in self._searches], trace)
        began = time.perf_counter()
        best: dict[str, Candidate] = {}
        for candidate in chain.from_iterable(lists):
            before = best.setdefault(candidate.key, candidate)
            best[candidate.key] = replace(
                before, score=max(before.score, candidate.score), questions=_join(before.questions, candidate.questions)
            )
        merged_candidates = best_first(best.values())
        own = [{candidate.key: candidate.score for candidate in candidates} for candidates in lists]
        trace.add("fuse", began, len(merged_candidates), scores=scored(merged_candidates, own))
        return merged_candidates


def _nearest_summaries(
    request: RetrievalRequest, indexes: Indexes, count: int, trace: TraceRecorder
) -> dict[str, float]:
    """The pages or files whose summaries are nearest, with the cosine."""
    summaries = indexes.summaries
    if summaries is None or summaries.row_count == 0:
        raise QueryError("modes summary and summary_text need summaries, and none are indexed")
    where = both(sql_in("content_format", [request.summaries]), request.filters.to_sql(summaries.columns))
    candidates = summaries.nearest(request.embedding, where, count, trace)
    return {str(getattr(candidate, _place_column(request))): candidate.score for candidate in candidates}


def _place_column(request: RetrievalRequest) -> str:
    return "document_id" if request.summaries is SummaryFormat.FILE else "page_id"


def _join(first: Sequence[FoundQuestion], second: Sequence[FoundQuestion]) -> tuple[FoundQuestion, ...]:
    """Questions of both, each once with the sub-queries of both."""
    questions = {question.qa_id: question for question in first}
    for question in second:
        before = questions.setdefault(question.qa_id, question)
        questions[question.qa_id] = replace(before, asked=tuple(dict.fromkeys((*before.asked, *question.asked))))
    return tuple(questions.values())[:SHOWN_QUESTIONS]
