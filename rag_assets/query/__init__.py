"""Search over a published knowledge base, and answers from it; knows nothing of Dagster."""

from rag_assets.contracts.modes import MODES, RETRIEVERS
from rag_assets.contracts.ports import Rewrite, Rewriter, Turn
from rag_assets.query.ask.answers import (
    Answer,
    Answered,
    AnswerEvent,
    EvidenceFound,
    Sentence,
    SentenceCitation,
    Source,
    TextPiece,
)
from rag_assets.query.ask.written.reader import ReaderOptions
from rag_assets.query.filters import NO_FILTERS, Filters, parse_filters
from rag_assets.query.knowledge_base import KnowledgeBase, QueryModels, QueryOptions, SearchDefaults
from rag_assets.query.results import Citation, FoundQuestion, Hit, ModelCall, Rescored, SearchResult, Step, Trace
from rag_assets.query.search.grouping import Granularity
from rag_assets.query.search.hyde import Fusion, Generator, HydeOptions
from rag_assets.query.search.report_levels import LevelChoice
from rag_assets.query.stored import StoredTables

__all__ = [
    "MODES",
    "NO_FILTERS",
    "RETRIEVERS",
    "Answer",
    "AnswerEvent",
    "Answered",
    "Citation",
    "EvidenceFound",
    "Filters",
    "FoundQuestion",
    "Fusion",
    "Generator",
    "Granularity",
    "Hit",
    "HydeOptions",
    "KnowledgeBase",
    "LevelChoice",
    "ModelCall",
    "QueryModels",
    "QueryOptions",
    "ReaderOptions",
    "Rescored",
    "Rewrite",
    "Rewriter",
    "SearchDefaults",
    "SearchResult",
    "Sentence",
    "SentenceCitation",
    "Source",
    "Step",
    "StoredTables",
    "TextPiece",
    "Trace",
    "Turn",
    "parse_filters",
]
