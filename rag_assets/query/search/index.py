"""One serving table at one version, as the modes of search ask it.

Candidates carry ids and scores; the columns that are shown are fetched for the few rows that are, or at once where all
candidates are shown.
"""

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rag_assets.contracts.errors import QueryError
from rag_assets.contracts.tables import CHUNK_INDEX, ENTITY_INDEX, VectorTable
from rag_assets.query.filters import texts_of
from rag_assets.query.results import TRACED, FoundQuestion, Rescored, TraceRecorder
from rag_assets.query.search.fusion import ranked
from rag_assets.store.vectors.lance import LanceVectorQueryBuilder, MatchQuery, readable
from rag_assets.store.vectors.store import VectorStore, sql_in
from rag_assets.text.folding import TermKind, kind_of, query_terms

_PROBES = 32  # partitions of vectors that are read, at least
_PARTITION_ROWS = 4096  # of an index, about
_ENTITY_PROBES = 16  # at least, and this share of the partitions; entities are many, and a few near ones are wanted
_ENTITY_SHARE = 1 / 7
_Given = ParamSpec("_Given")
_Read = TypeVar("_Read")
# Overlapping pairs and their characters stand for one word several times, an identifier only once, however rare it is.
# Whole numbers, see `_weighted_query`.
TERM_WEIGHTS = {TermKind.IDENTIFIER: 30, TermKind.WORD: 6, TermKind.PAIR: 3, TermKind.CHARACTER: 2}
SHOWN = ("page_number", "page_name", "heading", "format", "title", "beginning", "text", "cell_range", "box")


@dataclass(frozen=True)
class Candidate:
    """A row that was found."""

    key: str  # key of the row
    document_id: str  # its document; empty where rows belong to none
    page_id: str | None  # its page, or None
    row_id: int  # where LanceDB keeps it in this version
    score: float  # higher is better: cosine of the vectors, or BM25
    # the columns that are shown (`SHOWN`), where they were asked for
    shown: Mapping[str, Any] | None = field(default=None, compare=False)
    questions: tuple[FoundQuestion, ...] = field(default=(), compare=False)  # questions by which the passage was found

    def with_score(self, score: float) -> "Candidate":
        """The same row with another score; `replace` takes three times as long."""
        return Candidate(self.key, self.document_id, self.page_id, self.row_id, score, self.shown, self.questions)


def scored(found: Sequence[Candidate], lists: Sequence[Mapping[str, float]] = ()) -> tuple[Rescored, ...]:
    """Scores of the first passages for the trace, in the lists that were put into one, too; passages are best first."""
    return tuple(
        Rescored(candidate.key, candidate.score, lists=tuple(scores.get(candidate.key) for scores in lists))
        for candidate in found[:TRACED]
    )


def at_once(searches: Sequence[Callable[[TraceRecorder], _Read]], trace: TraceRecorder) -> list[_Read]:
    """Results of searches that run at the same time; their steps stand in the trace in the order given."""
    traces = [TraceRecorder() for _ in searches]
    if len(searches) == 1:
        results = [searches[0](traces[0])]
    else:
        with ThreadPoolExecutor(len(searches)) as threads:
            results = list(threads.map(lambda search, own: search(own), searches, traces))
    for own in traces:
        trace.steps += own.steps
    return results


def best_first(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Candidates by falling score; equal ones by key."""
    return sorted(candidates, key=lambda candidate: (-candidate.score, candidate.key))


def rescored(candidates: Iterable[Candidate], scores: Mapping[str, float]) -> list[Candidate]:
    """Candidates with other scores, by these; equal ones by key; of several with one key the first stands."""
    union: dict[str, Candidate] = {}
    for candidate in candidates:
        union.setdefault(candidate.key, candidate)
    return [union[key].with_score(score) for key, score in ranked(scores)]


def _readable(method: Callable[Concatenate["Index", _Given], _Read]) -> Callable[Concatenate["Index", _Given], _Read]:
    """Let a method of an index raise `StoreError` where files of its table are missing or damaged."""

    @wraps(method)
    def wrapper(index: "Index", /, *arguments: _Given.args, **keyword_arguments: _Given.kwargs) -> _Read:
        with readable(index.name):
            return method(index, *arguments, **keyword_arguments)

    return wrapper


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
        self.columns = frozenset(column.name for column in declaration.fields)
        self._key = declaration.key
        self._known: dict[str, frozenset[str]] = {}
        self._ids = [name for name in (declaration.key, "document_id", "page_id") if name in self.columns]

    @cached_property
    @_readable
    def row_count(self) -> int:
        """Rows of the table."""
        return int(self._table.count_rows())

    @cached_property
    def _probes(self) -> tuple[int, int]:
        """Partitions that are read, at least and at most; of 0 at most, LanceDB reads all."""
        if self.name != ENTITY_INDEX.name:
            return _PROBES, 0
        probes = max(_ENTITY_PROBES, round(_ENTITY_SHARE * self.row_count / _PARTITION_ROWS))
        return probes, probes

    @cached_property
    def dimension(self) -> int:
        """Length of the vectors."""
        return int(self._table.schema.field("vector").type.list_size)

    @_readable
    def nearest(
        self,
        vector: NDArray[np.float32],
        where: str | None,
        limit: int,
        trace: TraceRecorder,
        *,
        show: bool = False,
        exact: bool = False,
    ) -> list[Candidate]:
        """Rows by falling cosine of their vectors with a vector; equal ones by key; `exact` passes the vector index.

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
            .minimum_nprobes(self._probes[0])
            .maximum_nprobes(self._probes[1])
            .select([*self._ids, *(SHOWN if show else ()), "_distance"])
            .with_row_id(True)
            .limit(limit)
        )
        query = query.bypass_vector_index() if exact else query
        rows = (query.where(where) if where else query).to_arrow()
        candidates = self._candidates(rows, 1 - rows["_distance"].to_numpy())
        self._note("nearest", began, candidates, where, trace)
        return candidates

    @_readable
    def matching(
        self, text: str, where: str | None, limit: int, trace: TraceRecorder, *, show: bool = False
    ) -> list[Candidate]:
        """Rows by falling BM25 of their terms with those of a text, weighed by `TERM_WEIGHTS` and with 1 for a word;
        equal ones by key; none where no term is known.
        """
        began = time.perf_counter()
        terms, unit = _weighted_query(query_terms(text).split())
        candidates: list[Candidate] = []
        if terms:
            query = (
                self._table.search(MatchQuery(terms, "search_text"), query_type="fts")  # type: ignore[call-arg]
                .select([*self._ids, *(SHOWN if show else ()), "_score"])
                .with_row_id(True)
                .limit(limit)
            )
            rows = (query.where(where) if where else query).to_arrow()
            candidates = self._candidates(rows, rows["_score"].to_numpy() / unit)
        self._note("matching", began, candidates, where, trace)
        return candidates

    def listed(self, where: str | None, trace: TraceRecorder) -> list[Candidate]:
        """All rows that satisfy a condition, by key, with score 0."""
        return self._every_row("list", where, where, trace)

    @_readable
    def known(self, column: str) -> frozenset[str]:
        """The values of a column of texts or times, see `texts_of`."""
        if column not in self._known:
            self._known[column] = texts_of(self._table.search().select([column]).limit(None).to_arrow()[column])
        return self._known[column]

    def read(self, found: Sequence[Candidate], trace: TraceRecorder | None = None) -> list[Candidate]:
        """Rows with what is shown of them; a trace, where one is given, is told if some had to be fetched."""
        began = time.perf_counter()
        rows = self.values([candidate.row_id for candidate in found if candidate.shown is None], SHOWN)
        if rows and trace is not None:
            trace.add("fetch", began, len(rows), index=self.name, version=self.version)
        return [
            candidate if candidate.shown is not None else replace(candidate, shown=rows[candidate.row_id])
            for candidate in found
        ]

    @_readable
    def values(self, row_ids: Sequence[int], columns: Sequence[str]) -> dict[int, Mapping[str, Any]]:
        """Some columns of rows, by row id."""
        if not row_ids:
            return {}
        table = self._table.take_row_ids(list(row_ids)).select(list(columns)).with_row_id().to_arrow()
        return {row["_rowid"]: row for row in table.to_pylist()}

    @_readable
    def vectors(self, row_ids: Sequence[int]) -> NDArray[np.float32]:
        """Vectors of rows, float32 of shape `(len(row_ids), dimension)`, in the order given."""
        if not row_ids:
            return np.empty((0, self.dimension), dtype=np.float32)
        table = self._table.take_row_ids(list(row_ids)).select(["vector"]).with_row_id().to_arrow()
        rows = table["vector"].combine_chunks().flatten().to_numpy(zero_copy_only=False).reshape(-1, self.dimension)
        places = {row_id: place for place, row_id in enumerate(table["_rowid"].to_pylist())}
        vectors: NDArray[np.float32] = rows[[places[row_id] for row_id in row_ids]].astype(np.float32, copy=False)
        return vectors

    def having(self, keys: Sequence[str], where: str | None, trace: TraceRecorder) -> dict[str, Candidate]:
        """Rows of given keys that satisfy a condition, by key, with score 0."""
        if not keys:
            return {}
        condition = sql_in(self._key, keys)
        rows = self._every_row("lookup", f"{condition} AND {where}" if where else condition, where, trace)
        return {candidate.key: candidate for candidate in rows}

    @_readable
    def _every_row(
        self, operation: str, condition: str | None, where: str | None, trace: TraceRecorder
    ) -> list[Candidate]:
        began = time.perf_counter()
        query = self._table.search()
        query = query.where(condition) if condition else query
        rows = query.select(self._ids).with_row_id(True).limit(None).to_arrow()
        candidates = self._candidates(rows, np.zeros(rows.num_rows, dtype=np.float32))
        trace.add(operation, began, len(candidates), index=self.name, version=self.version, where=where)
        return candidates

    def _note(
        self, operation: str, began: float, candidates: Sequence[Candidate], where: str | None, trace: TraceRecorder
    ) -> None:
        scores = scored(candidates) if self.name == CHUNK_INDEX.name else ()
        trace.add(operation, began, len(candidates), index=self.name, version=self.version, where=where, scores=scores)

    def _candidates(self, rows: pa.Table, scores: NDArray[np.float32]) -> list[Candidate]:
        pages = rows["page_id"] if "page_id" in self.columns else pa.nulls(rows.num_rows)
        nowhere = pa.array([""] * rows.num_rows, pa.string())
        documents = rows["document_id"] if "document_id" in self.columns else nowhere
        columns = (column.to_pylist() for column in (rows[self._key], documents, pages, rows["_rowid"]))
        shown_rows = rows.select(SHOWN).to_pylist() if SHOWN[0] in rows.column_names else [None] * len(rows)
        return best_first(Candidate(*row) for row in zip(*columns, scores.tolist(), shown_rows, strict=True))


def _weighted_query(terms: Sequence[str]) -> tuple[str, float]:
    """Terms as a query, each as often as it weighs, and what a word then weighs.

    BM25 adds up the terms of a query, so that one that stands in it twice weighs twice. A query of one part is answered
    ten times as fast as one of several parts with weights, as LanceDB passes over what cannot be among the first. It
    parts terms at blanks and reads no query syntax.
    """
    kinds = [kind_of(term) for term in terms]
    divisor = math.gcd(*(TERM_WEIGHTS[kind] for kind in kinds))
    repeated_terms = (
        term for term, kind in zip(terms, kinds, strict=True) for _ in range(TERM_WEIGHTS[kind] // divisor)
    )
    return " ".join(repeated_terms), TERM_WEIGHTS[TermKind.WORD] / (divisor or 1)
