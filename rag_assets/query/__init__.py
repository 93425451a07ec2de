"""Search over a published knowledge base; knows nothing of Dagster."""

from rag_assets.query.filters import NO_FILTERS, Filters, parse_filters
from rag_assets.query.knowledge_base import MODES, Granularity, KnowledgeBase
from rag_assets.query.results import Citation, FoundQuestion, Hit, Rescored, SearchResult, Step, Trace
from rag_assets.query.stored import StoredTables

__all__ = [
    "MODES",
    "NO_FILTERS",
    "Citation",
    "Filters",
    "FoundQuestion",
    "Granularity",
    "Hit",
    "KnowledgeBase",
    "Rescored",
    "SearchResult",
    "Step",
    "StoredTables",
    "Trace",
    "parse_filters",
]
