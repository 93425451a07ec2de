"""What a mode of search is given."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rag_assets.contracts.causes import SummaryFormat
from rag_assets.contracts.errors import QueryError
from rag_assets.query.filters import Filters
from rag_assets.query.results import TraceRecorder
from rag_assets.query.search.index import Candidate, Index
from rag_assets.query.search.passage_graph import PassageGraphs
from rag_assets.query.search.report_levels import ReportTree
from rag_assets.query.search.reranking import Reranking


@dataclass(frozen=True)
class RetrievalRequest:
    """A query, ready to be searched."""

    text: str  # as asked
    vector: NDArray[np.float32] | None  # its embedding, or None in modes that need none
    depth: int  # passages to find
    filters: Filters  # what they must satisfy
    summaries: SummaryFormat  # which summaries choose the pages or files of two-step search
    # whether all passages found will be shown, so that what is shown of them is best read at once
    show_all: bool = False
    # facet values, each as `facet=value`, of the questions that `questions` searches; all where empty
    selections: tuple[tuple[str, ...], ...] = ()
    # the reranker with what it has read for the query, or None where none is configured
    reranking: Reranking | None = None

    @property
    def embedding(self) -> NDArray[np.float32]:
        """The embedding, in modes that need one."""
        if self.vector is None:
            raise QueryError("this mode needs the query's embedding")
        return self.vector


@dataclass(frozen=True)
class Indexes:
    """The serving tables of one published version."""

    chunks: Index  # passages
    graphs: PassageGraphs  # the graph of passages and entities
    report_tree: ReportTree  # the communities with reports
    summaries: Index | None = None  # summaries of files and pages, or None where there are none
    questions: Index | None = None  # questions that documents answer, or None where there are none
    entities: Index | None = None  # nodes of the entity graph, or None where there are none
    reports: Index | None = None  # reports on communities, or None where there are none


Mode = Callable[[RetrievalRequest, Indexes, TraceRecorder], list[Candidate]]
"""Finds passages within the filters, best first, with scores that fall in that order: documents are ranked by sums
(`grouping`). `Indexes.chunks` finds passages and gives their columns (`values`), `index.rescored` orders them anew;
what takes time is a step of the trace.

Raises `QueryError` where an index that it needs is missing, `ModelError` where the
embedder or its model failed, `BudgetError` where a call may cost more than the budget allows, and `StoreError`.
"""


def clean_text(text: str) -> str:
    """Text that every model can take: no lone surrogates, no NUL."""
    return text.encode("utf-8", "replace").decode().replace("\0", " ")
