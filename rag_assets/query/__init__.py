"""Search over a published knowledge base; knows nothing of Dagster."""

from rag_assets.contracts.ports import Rewrite, Rewriter, Turn
from rag_assets.query.filters import NO_FILTERS, Filters, parse_filters
from rag_assets.query.graph_global import GlobalAnswer, GlobalOptions
from rag_assets.query.hyde import Fusion, Generator, HydeOptions
from rag_assets.query.knowledge_base import MODES, RETRIEVERS, Granularity, KnowledgeBase
from rag_assets.query.report_levels import LevelChoice
from rag_assets.query.results import Citation, FoundQuestion, Hit, Rescored, SearchResult, Step, Trace
from rag_assets.query.stored import StoredTables

__all__ = [
    "MODES",
    "NO_FILTERS",
    "RETRIEVERS",
    "Citation",
    "Filters",
    "FoundQuestion",
    "Fusion",
    "Generator",
    "GlobalAnswer",
    "GlobalOptions",
    "Granularity",
    "Hit",
    "HydeOptions",
    "KnowledgeBase",
    "LevelChoice",
    "Rescored",
    "Rewrite",
    "Rewriter",
    "SearchResult",
    "Step",
    "StoredTables",
    "Trace",
    "Turn",
    "parse_filters",
]
