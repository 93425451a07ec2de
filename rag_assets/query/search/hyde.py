"""Mode `hyde`: passages that resemble what language models imagine the answer to look like.

Each generator writes a hypothetical passage; it is embedded as a query and searched. Every generator's passage then
scores the union of what was found, and the scores are put into one. Without an answer of any generator, the query's
vector is moved towards the first passages that it finds itself (pseudo-relevance feedback, step `feedback`); its own
ranking and that of the moved vector are scaled and added, so that what is nearest to the query alone is not lost.

Source: hypothetical passages: L. Gao, X. Ma, J. Lin and J. Callan, Precise zero-shot dense retrieval without relevance
labels, ACL 2023. Several small generators, re-scoring of the union and fusion: HyDE with rank fusion of small models
over JQaRA, with its temperature, lengths and number of passages. Deviation: each search goes as deep as passages are
wanted. Feedback: J. Rocchio, Relevance feedback in information retrieval, 1971, with the weights 1 and 0.75 of
C. Manning, P. Raghavan and H. Schütze, Introduction to information retrieval, 2008, section 9.1.1; there is no passage
known to be irrelevant. Deviation: both rankings count alike, as passages of one embedder lie nearer to each other than
to any query, and their mean outweighs it.
"""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from rag_assets.contracts.errors import BudgetError, ModelError
from rag_assets.contracts.generation import Completion, Outcome, Request, Tag
from rag_assets.contracts.modes import RRF_K
from rag_assets.contracts.ports import Embedder, EmbeddingKind, LanguageModel
from rag_assets.query.prompting import fenced_query, prompted
from rag_assets.query.results import TraceRecorder
from rag_assets.query.search.fusion import borda, comb_mnz, comb_sum, min_max, reciprocal_rank
from rag_assets.query.search.index import Candidate, at_once, rescored, scored
from rag_assets.query.search.request import Indexes, Mode, RetrievalRequest, clean_text
from rag_assets.text.language import prompt_language

STEP = "hypothetical_passage"
TEMPERATURE = 0.2
PASSAGE_TOKENS = 256
FEEDBACK_WEIGHT = 0.75
FEEDBACK_CANDIDATES = 100  # of each ranking that feedback adds, at least

_WRITTEN = frozenset({Outcome.COMPLETED, Outcome.TRUNCATED})


class Fusion(StrEnum):
    """How the scores of several generators are put into one, see `rag_assets.query.search.fusion`."""

    COMB_SUM = "comb_sum"
    COMB_MNZ = "comb_mnz"
    BORDA = "borda"
    RRF = "rrf"


@dataclass(frozen=True)
class Generator:
    """Writes hypothetical passages."""

    model: LanguageModel
    seed: int | None = None  # of its sampling; tells generators of one model apart
    temperature: float = TEMPERATURE  # of its sampling

    @property
    def name(self) -> str:
        """Model and seed."""
        return self.model.name if self.seed is None else f"{self.model.name} seed {self.seed}"


@dataclass(frozen=True)
class HydeOptions:
    """How mode `hyde` searches."""

    generators: tuple[Generator, ...] = ()  # who writes; where empty, the model of the knowledge base, `passages` times
    passages: int = 1  # hypothetical passages of that model, each of its own seed
    fusion: Fusion = Fusion.COMB_SUM  # how their scores are put into one
    pool: int = 5  # passages found by each, at least; also those that feedback takes for relevant
    rrf_k: float = RRF_K  # constant of reciprocal rank fusion

    def with_model(self, model: LanguageModel | None) -> tuple[Generator, ...]:
        """Those who write, given the model of the knowledge base."""
        generators = self.generators
        if not generators and model is not None:
            generators = tuple(Generator(model, seed) for seed in range(self.passages))
        return tuple(generator for generator in generators if generator.model.generative)


@dataclass
class HydeSearch:
    """The search for one query; passages are imagined once, however deep it has to look."""

    embedder: Embedder  # the embedder of the passages
    generators: Sequence[Generator]  # who writes; none for feedback
    options: HydeOptions  # how passages are scored
    retriever: Callable[[], Mode]  # makes the mode that finds passages, one for each hypothetical passage
    _searches: list[tuple[str, NDArray[np.float32], Mode]] | None = None
    _feedback: tuple[Mode, NDArray[np.float32], Mode] | None = None

    def __call__(self, request: RetrievalRequest, indexes: Indexes, trace: TraceRecorder) -> list[Candidate]:
        """Passages by falling fused score; after feedback by that of both rankings, at most 2."""
        if self._searches is None:
            self._searches = self._imagine(request, trace)
        if not self._searches:
            return self._with_feedback(request, indexes, trace)
        pool = max(self.options.pool, request.depth)

        def search(text: str, vector: NDArray[np.float32], retriever: Mode, own: TraceRecorder) -> list[Candidate]:
            return retriever(replace(request, text=text, vector=vector, depth=pool), indexes, own)[:pool]

        lists = at_once([partial(search, *arguments) for arguments in self._searches], trace)
        began = time.perf_counter()
        union = {candidate.key: candidate for candidates in lists for candidate in candidates}
        keys = sorted(union)
        passages = indexes.chunks.vectors([union[key].row_id for key in keys])
        scores = scaled_similarities(np.stack([vector for _, vector, _ in self._searches]), passages)
        matrix = [dict(zip(keys, row, strict=True)) for row in scores.tolist()]
        own = [{candidate.key for candidate in candidates} for candidates in lists]
        scores_by_key = fused_scores(matrix, own, self.options.fusion, self.options.rrf_k)
        best = rescored(chain.from_iterable(lists), scores_by_key)
        trace.add("fuse", began, len(best), scores=scored(best, matrix), texts=(self.options.fusion.value,))
        return best

    def _imagine(self, request: RetrievalRequest, trace: TraceRecorder) -> list[tuple[str, NDArray[np.float32], Mode]]:
        """Hypothetical passages with their vectors and searches; those that failed are named in the trace."""
        if not self.generators:
            return []
        began = time.perf_counter()
        passages, failures = hypothetical_passages(clean_text(request.text), self.generators)
        trace.add("imagine", began, len(passages), texts=tuple(f"{name}: {text}" for name, text in passages))
        if failures:
            trace.add("left_out", began, len(failures), texts=tuple(f"{name}: {reason}" for name, reason in failures))
        if not passages:
            return []
        began = time.perf_counter()
        texts = [text for _, text in passages]
        vectors = self.embedder.embed(texts, EmbeddingKind.QUERY)
        trace.add("embed", began, len(texts))
        return [(text, vector, self.retriever()) for text, vector in zip(texts, vectors, strict=True)]

    def _with_feedback(self, request: RetrievalRequest, indexes: Indexes, trace: TraceRecorder) -> list[Candidate]:
        deep = replace(request, depth=max(FEEDBACK_CANDIDATES, request.depth), show_all=False)
        retriever = self._feedback[0] if self._feedback is not None else self.retriever()
        own = retriever(deep, indexes, trace)
        if self._feedback is None:
            began = time.perf_counter()
            first = own[: self.options.pool]
            vectors = indexes.chunks.vectors([candidate.row_id for candidate in first])
            reason = "no generator answered" if self.generators else "no language model"
            self._feedback = retriever, moved(request.embedding, vectors), self.retriever()
            trace.add("feedback", began, len(first), texts=(reason,))
        _, vector, other_mode = self._feedback
        lists = own, other_mode(replace(deep, vector=vector), indexes, trace)
        began = time.perf_counter()
        scores = [{candidate.key: candidate.score for candidate in candidates} for candidates in lists]
        sums = comb_sum([min_max(ranking) for ranking in scores])
        best = rescored(chain(*reversed(lists)), sums)
        trace.add("fuse", began, len(best), scores=scored(best, scores))
        return best


def hypothetical_passages(
    query: str, generators: Sequence[Generator]
) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """What generators write; different models are asked at the same time, and one model all at once.

    Returns:
        Name and text of those who wrote, and name and reason of those who did not, each in the order given.

    Raises:
        BudgetError: A call may cost more than the budget allows.
    """
    requests = [_request(query, generator) for generator in generators]
    models = {id(generator.model): generator.model for generator in generators}
    by_model: dict[int, list[Request]] = {}
    for generator, request in zip(generators, requests, strict=True):
        by_model.setdefault(id(generator.model), []).append(request)

    def ask(model: int) -> tuple[dict[str, Completion], str]:
        """Answers by request, and why there are no more."""
        answers: dict[str, Completion] = {}
        try:
            for completion in models[model].generate(list(dict.fromkeys(by_model[model]))):
                answers[completion.request.content_sha256] = completion
        except BudgetError:
            raise
        except ModelError as error:
            return answers, str(error)
        return answers, "no answer"

    with ThreadPoolExecutor(len(models)) as threads:
        by_model_answers = dict(zip(models, threads.map(ask, models), strict=True))
    passages, failures = [], []
    for generator, request in zip(generators, requests, strict=True):
        answers, reason = by_model_answers[id(generator.model)]
        completion = answers.get(request.content_sha256)
        if completion is None:
            failures.append((generator.name, reason))
        elif completion.outcome in _WRITTEN and (text := clean_text(completion.text).strip()):
            passages.append((generator.name, text))  # what there is of it where it reached the limit
        else:
            failures.append((generator.name, completion.error or completion.outcome.value))
    return passages, failures


def scaled_similarities(queries: NDArray[np.float32], passages: NDArray[np.float32]) -> NDArray[np.float64]:
    """How near each passage is to each query: 1 for the nearest pair of all, 0 for the furthest.

    Args:
        queries: Shape `(n, dimension)`.
        passages: Shape `(m, dimension)`.

    Returns:
        Float64 of shape `(n, m)`: 1 less the Euclidean distance of the vectors at unit length, scaled to 0…1 over all
        pairs; 1 everywhere where all distances are equal.
    """
    unit = _unit(passages)
    distances = np.stack([np.linalg.norm(unit - query, axis=1) for query in _unit(queries)])
    if distances.size == 0 or np.ptp(distances) == 0:
        return np.ones_like(distances)
    scores: NDArray[np.float64] = 1 - (distances - distances.min()) / np.ptp(distances)
    return scores


def fused_scores(
    matrix: Sequence[Mapping[str, float]], found: Sequence[Collection[str]], fusion: Fusion, rrf_k: float
) -> dict[str, float]:
    """Scores of several generators in one.

    Args:
        matrix: For each generator the score of every passage of the union.
        found: For each generator the passages that it found itself.
        fusion: How they are put into one.
        rrf_k: Constant of reciprocal rank fusion.
    """
    match fusion:
        case Fusion.COMB_SUM:
            return comb_sum(matrix)
        case Fusion.COMB_MNZ:
            return comb_mnz(matrix, found)
        case Fusion.BORDA:
            return borda(matrix)
        case Fusion.RRF:
            return reciprocal_rank(matrix, rrf_k)


def moved(query: NDArray[np.float32], passages: NDArray[np.float32]) -> NDArray[np.float32]:
    """A query's vector moved towards the mean of passages' vectors, at unit length; as it is without passages."""
    if len(passages) == 0:
        return query
    total = query + FEEDBACK_WEIGHT * _unit(passages).mean(axis=0)
    unit: NDArray[np.float32] = _unit(total[None, :])[0].astype(np.float32)
    return unit


def _unit(vectors: NDArray[np.floating]) -> NDArray[np.float64]:
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    unit: NDArray[np.float64] = vectors / np.where(lengths == 0, 1, lengths)
    return unit


def _request(query: str, generator: Generator) -> Request:
    request = prompted(Tag("search", STEP), prompt_language(query), PASSAGE_TOKENS, {}, {"query": fenced_query(query)})
    return replace(request, temperature=generator.temperature, seed=generator.seed)
