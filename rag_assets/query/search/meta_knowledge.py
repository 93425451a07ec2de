"""Mode `meta_knowledge`: passages by the questions that they answer.

Meta knowledge makes several sub-queries of the query; each is searched in the question index, and the questions found
stand for the passages that their answers rest on. Passages are searched themselves as well (`hybrid`), because most of
them answer no stored question: their meaning, their words and the questions that lead to them have equal weight, of the
questions those that the query finds and those of all sub-queries together. Scores are scaled to 0…1 within each list.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from rag_assets.contracts.errors import QueryError
from rag_assets.query.filters import FACETS_COLUMN
from rag_assets.query.results import FoundQuestion, TraceRecorder
from rag_assets.query.search.fusion import comb_sum, min_max, ranked
from rag_assets.query.search.index import Candidate, Index, at_once, scored
from rag_assets.query.search.passages import both, search_both, search_hybrid
from rag_assets.query.search.request import Indexes, RetrievalRequest
from rag_assets.query.search.sub_queries import Planner, SubQuery
from rag_assets.store.queries import sql_literal

QUESTIONS = 50  # of each sub-query, at least
SHOWN_QUESTIONS = 5  # of a passage
_COLUMNS = ("qa_id", "chunk_ids", "text", "answer")


@dataclass
class MetaKnowledgeSearch:
    """The search for one query; it is planned once, however deep it has to look."""

    planner: Planner  # makes the sub-queries
    _plan: tuple[SubQuery, ...] | None = None

    def __call__(self, request: RetrievalRequest, indexes: Indexes, trace: TraceRecorder) -> list[Candidate]:
        """Passages by falling sum of the scaled scores, at most 3, each with the questions by which it was found."""
        questions, chunks = indexes.questions, indexes.chunks
        if questions is None or questions.row_count == 0:
            raise QueryError("mode meta_knowledge needs questions, and none are indexed")
        if self._plan is None:
            self._plan = self.planner.plan(request.text, request.embedding, request.filters, trace)
        lists = _search_questions(self._plan, questions, request, trace)
        began = time.perf_counter()
        rankings, found_questions = passages_of(self._plan, questions, lists)
        trace.add("map", began, len(found_questions), index=questions.name, version=questions.version)
        passages = chunks.having(sorted(found_questions), request.filters.to_sql(chunks.columns), trace)
        rankings = [{key: score for key, score in ranking.items() if key in passages} for ranking in rankings]
        found_directly = search_hybrid(request, indexes, trace)
        passages = {candidate.key: candidate for candidate in found_directly} | passages
        own = {candidate.key: candidate.score for candidate in found_directly}
        began = time.perf_counter()
        asked_scores, *widened_scores = (min_max(ranking) for ranking in rankings)
        by_questions = [asked_scores, _mean(widened_scores)] if widened_scores else [asked_scores]
        scores = comb_sum([own, _mean(by_questions)])
        merged_candidates = [
            replace(passages[key], score=score, questions=tuple(found_questions.get(key, ())[:SHOWN_QUESTIONS]))
            for key, score in ranked(scores)
        ]
        trace.add("fuse", began, len(merged_candidates), scores=scored(merged_candidates, [own, *by_questions]))
        return merged_candidates


def _mean(rankings: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {key: score / len(rankings) for key, score in comb_sum(rankings).items()}


def _search_questions(
    plan: Sequence[SubQuery], questions: Index, request: RetrievalRequest, trace: TraceRecorder
) -> list[list[Candidate]]:
    """Questions of each sub-query by falling score; sub-queries are searched at the same time."""
    depth = max(QUESTIONS, request.depth)
    condition = request.filters.to_sql(questions.columns)

    def search(sub_query: SubQuery, own: TraceRecorder) -> list[Candidate]:
        where = both(condition, within(sub_query.selections))
        began = time.perf_counter()
        candidates = search_both(questions, sub_query.text, sub_query.vector, where, depth, own)[:depth]
        texts, version = (sub_query.text,), questions.version
        own.add("sub_query", began, len(candidates), index=questions.name, version=version, where=where, texts=texts)
        return candidates

    return at_once([partial(search, sub_query) for sub_query in plan], trace)


def passages_of(
    plan: Sequence[SubQuery], questions: Index, found: Sequence[Sequence[Candidate]]
) -> tuple[list[dict[str, float]], dict[str, list[FoundQuestion]]]:
    """For each sub-query the score of each passage, which is that of its best question; and all questions by passage,
    each once, in order of the sub-queries and then by falling score.
    """
    rows = questions.values(sorted({candidate.row_id for ranking in found for candidate in ranking}), _COLUMNS)
    rankings: list[dict[str, float]] = []
    found_questions: dict[str, dict[str, FoundQuestion]] = {}
    for sub_query, ranking in zip(plan, found, strict=True):
        scores: dict[str, float] = {}
        for candidate in ranking:
            row = rows[candidate.row_id]
            question = FoundQuestion(candidate.key, str(row["text"]), str(row["answer"]), ())
            chunk_ids = row["chunk_ids"]
            for chunk_id in chunk_ids if isinstance(chunk_ids, list) else ():
                scores.setdefault(chunk_id, candidate.score)
                by_id = found_questions.setdefault(chunk_id, {})
                before = by_id.get(candidate.key, question)
                by_id[candidate.key] = replace(before, asked=(*before.asked, sub_query.text))
        rankings.append(scores)
    return rankings, {chunk_id: list(by_id.values()) for chunk_id, by_id in found_questions.items()}


def within(selections: Sequence[Sequence[str]]) -> str | None:
    """Condition that a question is of one of some selections."""
    conditions = [
        " AND ".join(f"array_has({FACETS_COLUMN}, {sql_literal(value)})" for value in values) for values in selections
    ]
    return f"({' OR '.join(f'({condition})' for condition in conditions)})" if conditions else None
