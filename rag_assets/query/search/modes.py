"""The modes of search, and how a name such as `rewrite+two_step` or `hybrid,graph_local` becomes a search.

What stays out: the names (`rag_assets.contracts.modes`), the modes themselves, and which one `auto` chooses
(`rag_assets.query.search.auto`).
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from rag_assets.contracts.modes import (
    AUGMENT_MODE,
    BASELINE_PREPARING,
    FULLTEXT_MODE,
    GRAPH_GLOBAL_MODE,
    GRAPH_LOCAL_MODE,
    HYBRID_MODE,
    META_KNOWLEDGE_MODE,
    PREPARING_MODES,
    QUESTIONS_MODE,
    REWRITE_MODE,
    SUMMARY_MODE,
    SUMMARY_TEXT_MODE,
    TEXT_MAP_REDUCE_MODE,
    TWO_STEP_MODE,
    VECTOR_MODE,
    WEIGHTED_MODE,
    retriever_of,
)
from rag_assets.contracts.ports import Embedder, LanguageModel, Rewriter, Turn
from rag_assets.query.ask.written.graph_global import GlobalSearch
from rag_assets.query.ask.written.text_map_reduce import search_text_map_reduce
from rag_assets.query.cancellation import Cancellation
from rag_assets.query.filters import Filters
from rag_assets.query.results import TraceRecorder
from rag_assets.query.search.baselines import (
    AugmentedSearch,
    search_questions,
    search_summaries,
    search_summary_then_text,
)
from rag_assets.query.search.fusion import reciprocal_rank
from rag_assets.query.search.graph_local import search_graph_local
from rag_assets.query.search.grouping import grouped, target
from rag_assets.query.search.hyde import HydeOptions, HydeSearch
from rag_assets.query.search.index import Candidate, at_once, best_first, scored
from rag_assets.query.search.meta_knowledge import MetaKnowledgeSearch
from rag_assets.query.search.passages import (
    CANDIDATES,
    search_fulltext,
    search_hybrid,
    search_two_step,
    search_vector,
)
from rag_assets.query.search.ranking_weights import RERANKER, Ranking
from rag_assets.query.search.report_levels import LevelChoice
from rag_assets.query.search.request import Indexes, Mode, RetrievalRequest
from rag_assets.query.search.rewriting import ModelRewriter, RewriteSearch
from rag_assets.query.search.rewriting_rules import RuleRewriter
from rag_assets.query.search.sub_queries import Planner
from rag_assets.query.search.trained_rewriting import TrainedModel, TrainedRewriter
from rag_assets.query.search.watched_model import WatchedModel
from rag_assets.query.search.weighing import WeightedSearch

_MODES: Mapping[str, Mode] = {
    VECTOR_MODE: search_vector,
    FULLTEXT_MODE: search_fulltext,
    HYBRID_MODE: search_hybrid,
    TWO_STEP_MODE: search_two_step,
    GRAPH_LOCAL_MODE: search_graph_local,
    TEXT_MAP_REDUCE_MODE: search_text_map_reduce,
    QUESTIONS_MODE: search_questions,
    SUMMARY_MODE: search_summaries,
    SUMMARY_TEXT_MODE: search_summary_then_text,
}
_PREPARING = {**PREPARING_MODES, **BASELINE_PREPARING}


@dataclass(frozen=True)
class SearchParameters:
    """What is asked of a search besides the query, see `KnowledgeBase.search`."""

    mode: str
    k: int
    filters: Filters
    granularity: str
    summaries: str
    levels: LevelChoice
    history: tuple[Turn, ...] = ()

    @property
    def retriever(self) -> str:
        """The mode that finds passages; several with commas between them where they are fused."""
        return retriever_of(self.mode)


@dataclass(frozen=True)
class Modes:
    """Makes the search for one query."""

    embedder: Embedder  # the embedder of the passages
    planner: Planner  # makes sub-queries for `meta_knowledge`
    hyde: HydeOptions  # how `hyde` searches
    model: LanguageModel | None = None  # the language model, or None
    # rewrites in `rewrite`; None for the trained model, the language model, or rules without either
    rewriter: Rewriter | None = None
    trained: TrainedModel | None = None  # a model trained to rewrite, or None
    ranking: Ranking = field(default_factory=Ranking)  # how `weighted` ranks

    def watched(self, trace: TraceRecorder, cancellation: Cancellation) -> "Modes":
        """The same with language models whose calls are written into a trace, and end when they are given up."""
        models = {id(writer.model): writer.model for writer in self.hyde.generators}
        watched_models = {key: WatchedModel(model, trace, cancellation) for key, model in models.items()}
        generators = tuple(replace(writer, model=watched_models[id(writer.model)]) for writer in self.hyde.generators)
        model = WatchedModel(self.model, trace, cancellation) if self.model is not None else None
        hyde = replace(self.hyde, generators=generators)
        return replace(self, planner=self.planner.with_model(model), hyde=hyde, model=model)

    def weighs_reranker(self, parameters: SearchParameters) -> bool:
        """Whether the reranker's score counts in all that is found already, so that nothing is ordered by it again."""
        return (
            parameters.retriever == WEIGHTED_MODE and RERANKER in self.ranking.weights[parameters.granularity].signals
        )

    def search(self, parameters: SearchParameters) -> Mode:
        """The search that a mode names, any but `auto`; it may be asked again for more passages of the same query."""
        first, plus, retriever = parameters.mode.partition("+")
        return self._prepare(first, retriever, parameters) if plus else self._retriever(first, parameters)

    def _prepare(self, name: str, retriever: str, parameters: SearchParameters) -> Mode:
        """What goes before a retriever."""
        if name == REWRITE_MODE:
            rewriter, model = self.rewriter, self.model
            if rewriter is None:
                rewriter = ModelRewriter(model) if model is not None and model.generative else RuleRewriter()
                rewriter = TrainedRewriter(self.trained, rewriter) if self.trained is not None else rewriter
            search = self._retriever(retriever, parameters)
            return RewriteSearch(self.embedder, rewriter, parameters.history, search)
        if name in BASELINE_PREPARING:
            plan = self.planner.augmented if name == AUGMENT_MODE else self.planner.plan
            return AugmentedSearch(plan, lambda: self._retriever(retriever, parameters))
        writers = self.hyde.with_model(self.model)
        return HydeSearch(self.embedder, writers, self.hyde, lambda: self._retriever(retriever, parameters))

    def _retriever(self, names: str, parameters: SearchParameters) -> Mode:
        """One mode, or the fusion of several."""
        name, comma, _ = names.partition(",")
        if comma:
            parts = {part: self._retriever(part, parameters) for part in names.split(",")}
            return FusedSearch(parts, parameters.granularity)
        if name in _PREPARING:
            return self._prepare(name, _PREPARING[name], parameters)
        if name == WEIGHTED_MODE:
            return WeightedSearch(parameters.granularity, self.ranking)
        if name == META_KNOWLEDGE_MODE:
            return MetaKnowledgeSearch(self.planner)
        return GlobalSearch(parameters.levels) if name == GRAPH_GLOBAL_MODE else _MODES[name]


@dataclass(frozen=True)
class FusedSearch:
    """The fusion of modes by rank for one query, as in `hybrid,graph_local`.

    Scores of different modes mean different things; ranks can be added. What is ranked is what is asked for: where
    results are pages or documents, each mode ranks these by itself, by its own scores.

    Source: reciprocal rank fusion with k = 60 of G. Cormack, C. Clarke and S. Büttcher, SIGIR 2009.
    """

    parts: Mapping[str, Mode]  # the modes that are fused, by name
    granularity: str  # what a result is

    def __call__(self, request: RetrievalRequest, indexes: Indexes, trace: TraceRecorder) -> list[Candidate]:
        """Passages that any of the modes ranks among its best, by falling reciprocal rank; equal ones by id.

        Where results are pages or documents, the first passage of each has the score of its page or document, and
        others have 0.

        In the trace, the steps of each mode stand before a step `part` that names it.
        """
        depth = max(CANDIDATES, request.depth)
        part_request = replace(request, depth=depth, show_all=False)

        def search(name: str, own: TraceRecorder) -> list[Candidate]:
            began = time.perf_counter()
            candidates = self.parts[name](part_request, indexes, own)[:depth]
            own.add("part", began, len(candidates), scores=scored(candidates), texts=(name,))
            return candidates

        results = at_once([partial(search, name) for name in self.parts], trace)
        began = time.perf_counter()
        lists = [grouped(candidates, self.granularity) for candidates in results]
        rankings = [
            {target(candidate, self.granularity): candidate.score for candidate in candidates} for candidates in lists
        ]
        scores = reciprocal_rank(rankings)
        fused_candidates: dict[str, Candidate] = {}
        for candidate in (candidate for candidates in lists for candidate in candidates):
            result = target(candidate, self.granularity)
            first_candidate = fused_candidates.setdefault(result, replace(candidate, score=scores[result]))
            if candidate.questions and not first_candidate.questions:
                fused_candidates[result] = replace(first_candidate, questions=candidate.questions)
        best = best_first(fused_candidates.values())
        shown_keys = {candidate.key for candidate in best}
        other_candidates = {
            candidate.key: replace(candidate, score=0.0)
            for candidates in results
            for candidate in candidates
            if candidate.key not in shown_keys
        }
        by_passage = [
            {fused_candidates[result].key: score for result, score in ranking.items()} for ranking in rankings
        ]
        trace.add("fuse", began, len(best), scores=scored(best, by_passage), texts=tuple(self.parts))
        return [*best, *(other_candidates[key] for key in sorted(other_candidates))]
