"""One serving table at one version, as the modes of search ask it.

Candidates carry ids and scores; the columns that are shown are fetched for the few rows that are, or at once where all
candidates are shown.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import cast

import numpy as np
import pyarrow as pa
from lancedb.query import LanceVectorQueryBuilder, MatchQuery
from numpy.typing import NDArray

from rag_assets.contracts.errors import QueryError
from rag_assets.contracts.tables import VectorTable
from rag_assets.query.results import TraceRecorder
from rag_assets.store.terms import query_terms
from rag_assets.store.vectors import VectorStore

_PROBES = 32
SHOWN = ("page_number", "page_name", "format", "title", "text", "cell_range", "box")


@dataclass(frozen=True)
class Candidate:
    """A row that was found.

    Attributes:
        key: Key of the row.
        document_id: Its document.
        page_id: Its page, or None.
        row_id: Where LanceDB keeps it in this version.
        score: Higher is better: cosine of the vectors, or BM25.
        shown: The columns that are shown (`SHOWN`), where they were asked for.
    """

    key: str
    document_id: str
    page_id: str | None
    row_id: int
    score: float
    shown: Mapping[str, object] | None = field(default=None, compare=False)


class Index:
    """A serving table at a version.

    Args:
        store: The vector store.
        declaration: Declaration of the table.
        version: The version that is read, whatever is written meanwhile.
    """

    def __init__(self, store: VectorStore, declaration: VectorTable, version: int) -> None:
        self._table = store.open_at(declaration.name, version)
        self.name = declaration.name
        self.version = version
        self.columns = frozenset(each.name for each in declaration.fields)
        self._key = declaration.key
        self._ids = [declaration.key, "document_id", "page_id"]

    @cached_property
    def row_count(self) -> int:
        """Rows of the table."""
        return int(self._table.count_rows())

    @cached_property
    def dimension(self) -> int:
        """Length of the vectors."""
        return int(self._table.schema.field("vector").type.list_size)

    def nearest(
        self, vector: NDArray[np.float32], where: str | None, limit: int, trace: TraceRecorder, *, show: bool = False
    ) -> list[Candidate]:
        """Rows by falling cosine of their vectors with a vector; equal ones by key.

        Raises:
            QueryError: The vector has another length than those stored.
        """
        if vector.shape != (self.dimension,):
            raise QueryError(
                f"the embedder makes vectors of length {vector.shape[-1]}, the table {self.name} holds {self.dimension}"
            )
        began = time.perf_counter()
        query = (
            cast(
                "LanceVectorQueryBuilder", self._table.search(vector, vector_column_name="vector", query_type="vector")
            )
            .distance_type("dot")
            .minimum_nprobes(_PROBES)
            .maximum_nprobes(0)
            .select([*self._ids, *(SHOWN if show else ()), "_distance"])
            .with_row_id(True)
            .limit(limit)
        )
        rows = (query.where(where) if where else query).to_arrow()
        found = self._candidates(rows, 1 - rows["_distance"].to_numpy())
        trace.add("nearest", began, len(found), index=self.name, version=self.version, where=where)
        return found

    def matching(
        self, text: str, where: str | None, limit: int, trace: TraceRecorder, *, show: bool = False
    ) -> list[Candidate]:
        """Rows by falling BM25 of their terms with those of a text; equal ones by key; none where no term is known."""
        began = time.perf_counter()
        terms = query_terms(text)
        found: list[Candidate] = []
        if terms:
            query = (
                self._table.search(_match(terms), query_type="fts")
                .select([*self._ids, *(SHOWN if show else ()), "_score"])
                .with_row_id(True)
                .limit(limit)
            )
            rows = (query.where(where) if where else query).to_arrow()
            found = self._candidates(rows, rows["_score"].to_numpy())
        trace.add("matching", began, len(found), index=self.name, version=self.version, where=where)
        return found

    def shown(self, row_ids: Sequence[int]) -> dict[int, Mapping[str, object]]:
        """The columns that are shown, by row id."""
        if not row_ids:
            return {}
        table = self._table.take_row_ids(list(row_ids)).select(list(SHOWN)).with_row_id().to_arrow()
        return {row["_rowid"]: row for row in table.to_pylist()}

    def _candidates(self, rows: pa.Table, scores: NDArray[np.float32]) -> list[Candidate]:
        columns = (rows[name].to_pylist() for name in (*self._ids, "_rowid"))
        shown = rows.select(SHOWN).to_pylist() if SHOWN[0] in rows.column_names else [None] * len(rows)
        found = [Candidate(*row) for row in zip(*columns, scores.tolist(), shown, strict=True)]
        found.sort(key=lambda candidate: (-candidate.score, candidate.key))
        return found


def _match(terms: str) -> MatchQuery:
    """Any of the terms; the index parts them at blanks, so that no syntax is read into them."""
    return MatchQuery(terms, "search_text")  # type: ignore[call-arg]
