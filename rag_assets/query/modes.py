"""The modes of search by name, and how a name such as `rewrite+two_step` becomes a search.

What stays out: the modes themselves, one module each.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from rag_assets.contracts.errors import QueryError
from rag_assets.contracts.ports import Embedder, LanguageModel, Rewriter, Turn
from rag_assets.query.filters import Filters
from rag_assets.query.fulltext import search_fulltext
from rag_assets.query.graph_global import GlobalSearch
from rag_assets.query.graph_local import search_graph_local
from rag_assets.query.hybrid import search_hybrid
from rag_assets.query.hyde import HydeOptions, HydeSearch
from rag_assets.query.meta_knowledge import MetaKnowledgeSearch
from rag_assets.query.report_levels import LevelChoice
from rag_assets.query.request import Mode
from rag_assets.query.results import TraceRecorder
from rag_assets.query.rewriting import ModelRewriter, RewriteSearch
from rag_assets.query.rewriting_rules import RuleRewriter
from rag_assets.query.sub_queries import Planner
from rag_assets.query.text_map_reduce import search_text_map_reduce
from rag_assets.query.two_step import search_two_step
from rag_assets.query.vector import search_vector
from rag_assets.query.watched_model import WatchedModel

META_KNOWLEDGE_MODE = "meta_knowledge"
GRAPH_LOCAL_MODE = "graph_local"
GRAPH_GLOBAL_MODE = "graph_global"
TEXT_MAP_REDUCE_MODE = "text_map_reduce"
HYDE_MODE = "hyde"
REWRITE_MODE = "rewrite"

_MODES: Mapping[str, Mode] = {
    "vector": search_vector,
    "fulltext": search_fulltext,
    "hybrid": search_hybrid,
    "two_step": search_two_step,
    GRAPH_LOCAL_MODE: search_graph_local,
    TEXT_MAP_REDUCE_MODE: search_text_map_reduce,
}
RETRIEVERS = (*_MODES, GRAPH_GLOBAL_MODE, META_KNOWLEDGE_MODE)
PREPARING_MODES = {HYDE_MODE: "vector", REWRITE_MODE: "hybrid"}  # with the mode that finds passages where none is named
MODES = (*RETRIEVERS, *PREPARING_MODES)
NEEDS_NO_VECTOR = frozenset({"fulltext"})


@dataclass(frozen=True)
class How:
    """What is asked of a search besides the query, see `KnowledgeBase.search`."""

    mode: str
    k: int
    filters: Filters
    granularity: str
    summaries: str
    levels: LevelChoice | None
    history: tuple[Turn, ...] = ()

    @property
    def retriever(self) -> str:
        """The mode that finds passages."""
        first, _, named = self.mode.partition("+")
        return named or PREPARING_MODES.get(first, first)


def check_mode(mode: str) -> None:
    """Find out whether there is such a mode.

    Raises:
        QueryError: There is not.
    """
    first, plus, retriever = mode.partition("+")
    if first not in MODES:
        raise QueryError(f"unknown mode {mode!r}, expected one of {', '.join(MODES)}")
    if plus and (first not in PREPARING_MODES or retriever not in RETRIEVERS):
        before, after = " or ".join(PREPARING_MODES), ", ".join(RETRIEVERS)
        raise QueryError(f"unknown mode {mode!r}, expected {before} before the plus sign and one of {after} after it")


@dataclass(frozen=True)
class Modes:
    """Makes the search for one query.

    Attributes:
        embedder: The embedder of the passages.
        planner: Makes sub-queries for `meta_knowledge`.
        hyde: How `hyde` searches.
        model: The language model, or None.
        rewriter: Rewrites in `rewrite`; None for the model, or rules without one.
    """

    embedder: Embedder
    planner: Planner
    hyde: HydeOptions
    model: LanguageModel | None = None
    rewriter: Rewriter | None = None

    def watched(self, trace: TraceRecorder) -> "Modes":
        """The same with language models whose calls are written into a trace."""
        models = {id(each.model): each.model for each in self.hyde.generators}
        watched = {key: WatchedModel(model, trace) for key, model in models.items()}
        generators = tuple(replace(each, model=watched[id(each.model)]) for each in self.hyde.generators)
        model = WatchedModel(self.model, trace) if self.model is not None else None
        hyde = replace(self.hyde, generators=generators)
        return replace(self, planner=self.planner.with_model(model), hyde=hyde, model=model)

    def search(self, how: How) -> Mode:
        """The search that a mode names; it may be asked again for more passages of the same query."""
        first = how.mode.partition("+")[0]
        if first not in PREPARING_MODES:
            return self._retriever(first, how)
        if first == REWRITE_MODE:
            retriever = self._retriever(how.retriever, how)
            return RewriteSearch(self.embedder, self._rewriter(), how.history, retriever)
        writers = self.hyde.with_model(self.model)
        return HydeSearch(self.embedder, writers, self.hyde, lambda: self._retriever(how.retriever, how))

    def _rewriter(self) -> Rewriter:
        if self.rewriter is not None:
            return self.rewriter
        return ModelRewriter(self.model) if self.model is not None and self.model.generative else RuleRewriter()

    def _retriever(self, name: str, how: How) -> Mode:
        if name == META_KNOWLEDGE_MODE:
            return MetaKnowledgeSearch(self.planner)
        return GlobalSearch(how.levels) if name == GRAPH_GLOBAL_MODE else _MODES[name]
