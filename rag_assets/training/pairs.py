"""What is learned from: questions whose evidence is known, with what the default search finds for them.

Questions that share a document are never parted: folds are of documents, so that nothing leaks from what is learned
from into what is measured. What stays out: learning itself.
"""

import random
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from rag_assets.evaluation.drafts import draft_questions
from rag_assets.evaluation.evidence import Corpus, Level, Ways
from rag_assets.evaluation.metrics import measured
from rag_assets.evaluation.questions import Question, read_questions
from rag_assets.query.knowledge_base import KnowledgeBase
from rag_assets.query.search.ranking_weights import SIGNALS
from rag_assets.text.language import detect_language

Vector: TypeAlias = NDArray[np.float64]

_TESTING = "testing"
_FEEDBACK_TYPE = "feedback"
_WORDS, _MEANING, _GRAPH = (SIGNALS.index(name) for name in ("words", "meaning", "graph"))


@dataclass(frozen=True, eq=False)
class Judged:
    """A question with the passages that the default search looks at for it.

    Attributes:
        id: Id of the question.
        type: Its type; its language where it has none.
        documents: Documents that hold its evidence.
        ways: By level, the pieces of its full answers, as ids.
        ids: Document, page and passage of each candidate; candidates stand by passage.
        signals: float64 of shape `(candidates, signals)`.
        query: Vector of the question.
        passages: Vectors of the candidates, float32; empty where they are not needed.
        is_measured: Whether it may prove something; drafted questions may only be learned from.
    """

    id: str
    type: str
    documents: frozenset[str]
    ways: Mapping[Level, Ways]
    ids: tuple[tuple[str, str, str], ...]
    signals: Vector
    query: NDArray[np.float32] = field(default_factory=lambda: np.empty(0, np.float32))
    passages: NDArray[np.float32] = field(default_factory=lambda: np.empty((0, 0), np.float32))
    is_measured: bool = True

    def holding(self, level: Level) -> list[NDArray[np.bool_]]:
        """For each piece of evidence, which candidates hold it; of several full answers, all their pieces are one."""
        ways = self.ways[level]
        pieces = [piece.ids for piece in ways[0]] if len(ways) == 1 else []
        if len(ways) > 1:
            pieces = [frozenset[str]().union(*(piece.ids for way in ways for piece in way))]
        place = list(Level).index(level) + 1
        return [np.array([not ids.isdisjoint(each[:place]) for each in self.ids], dtype=bool) for ids in pieces if ids]

    @cached_property
    def _groups(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Document and page of each candidate, as numbers."""
        columns = ([each[place] for each in self.ids] for place in (0, 1))
        numbers = [np.unique(np.array(column, dtype=str), return_inverse=True)[1] for column in columns]
        return numbers[0], numbers[1]

    def ranked(self, weights: Vector, level: Level, k: int) -> list[tuple[str, ...]]:
        """Ids of the first results as the search ranks them (`rag_assets.query.search.grouping`)."""
        if not self.ids:
            return []
        scores = self.signals @ weights
        order = np.argsort(-scores, kind="stable")
        if level is Level.PASSAGE:
            return [self.ids[row] for row in order[:k]]
        groups = self._groups[0 if level is Level.DOCUMENT else 1]
        _, first = np.unique(groups[order], return_index=True)
        if level is Level.PAGE:
            return [self.ids[order[row]][:2] for row in np.sort(first)[:k]]
        span = float(np.ptp(scores))
        scaled = (scores - scores.min()) / span if span > 0 else np.ones_like(scores)
        totals, seen = np.zeros(len(first)), np.zeros(len(first))
        for row in order:
            totals[groups[row]] += scaled[row] / 2 ** seen[groups[row]]
            seen[groups[row]] += 1
        best = order[first]  # the best passage of each document
        ranked = sorted(range(len(first)), key=lambda group: (-totals[group], self.ids[best[group]][2]))
        return [self.ids[best[group]][:1] for group in ranked[:k]]

    def value(self, weights: Vector, level: Level, measure: str, k: int) -> float:
        """A measure of the ranking that weights give; nan where nothing is relevant."""
        return measured([measure], self.ranked(weights, level, k), self.ways[level])[measure]


def judged_questions(
    base: KnowledgeBase,
    corpus: Corpus,
    questions: Sequence[Question],
    progress: Callable[[int, int], None] = lambda _done, _total: None,
    *,
    vectors: bool = False,
    measured_ids: Iterable[str] | None = None,
) -> list[Judged]:
    """Questions with their candidates; those without evidence in the version are left out, and so are follow-ups.

    Args:
        base: The version, searched with the query map that is to be in force.
        corpus: Its documents.
        questions: What is asked; questions that are kept for testing are left out.
        progress: Told how many were asked.
        vectors: Whether the vectors of candidates are wanted.
        measured_ids: Questions that may prove something; None for all.

    Raises:
        ModelError: The embedder failed.
        StoreError: A published file is gone.
    """
    asked = [each for each in questions if each.searched and not each.history and each.purpose != _TESTING]
    targets = corpus.targets(asked)
    proving = None if measured_ids is None else set(measured_ids)
    found = []
    for number, question in enumerate(asked, start=1):
        target = targets[question.id]
        if documents := target.ids(Level.DOCUMENT):
            signals = base.ranking_signals(question.text)
            found.append(
                Judged(
                    question.id,
                    question.type or question.language or detect_language(question.text),
                    documents,
                    target.ways,
                    tuple((each.document_id, each.page_id or "", each.key) for each in signals.candidates),
                    signals.values,
                    signals.vector,
                    base.passage_vectors(signals.candidates) if vectors else np.empty((0, 0), np.float32),
                    proving is None or question.id in proving,
                )
            )
        progress(number, len(asked))
    return found


def further_questions(
    corpus: Corpus, accepted: Sequence[Question], drafts: int, feedback: Path | None
) -> list[Question]:
    """Questions that nobody has accepted, to learn from only: drafted from the documents, and thumbs up.

    Args:
        corpus: The documents.
        accepted: Questions that there are.
        drafts: Questions drafted from the documents, at most.
        feedback: File of thumbs on answers, or None.

    Raises:
        QueryError: The file cannot be read.
    """
    taken = {each.id for each in accepted}
    liked = read_questions(feedback) if feedback is not None and feedback.is_file() else []
    found = [each for each in liked if each.draft and each.type == _FEEDBACK_TYPE and each.id not in taken]
    return [*found, *(draft_questions(corpus, drafts, [*accepted, *liked]) if drafts else ())]


def document_folds(documents: Sequence[Collection[str]], count: int, seed: int = 0) -> list[list[int]]:
    """Positions of questions in folds of about the same size, questions that share a document in one.

    Args:
        documents: Of each question, the documents that hold its evidence.
        count: Folds, at most.
        seed: Which documents go together.
    """
    of_document: dict[str, int] = {}
    leader = list(range(len(documents)))

    def first(position: int) -> int:
        while leader[position] != position:
            position = leader[position]
        return position

    for position, named in enumerate(documents):
        for document in named:
            leader[first(position)] = first(of_document.setdefault(document, position))
    groups: dict[int, list[int]] = {}
    for position in range(len(documents)):
        groups.setdefault(first(position), []).append(position)
    shuffled = list(groups.values())
    random.Random(seed).shuffle(shuffled)  # noqa: S311 - no secret
    folds: list[list[int]] = [[] for _ in range(min(count, len(shuffled)))]
    for group in sorted(shuffled, key=len, reverse=True):
        min(folds, key=len).extend(group)
    return [sorted(fold) for fold in folds]
