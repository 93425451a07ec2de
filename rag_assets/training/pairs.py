"""What is learned from: questions whose evidence is known, with what the default search finds for them.

Questions that share a document are never parted: folds are of documents, so that nothing leaks from what is learned
from into what is measured. What stays out: learning itself.
"""

import random
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from rag_assets.contracts.errors import QueryError
from rag_assets.contracts.tables import CHUNKS
from rag_assets.evaluation.clicks import Click
from rag_assets.evaluation.drafts import draft_questions
from rag_assets.evaluation.evidence import Corpus, Level, Target, Ways
from rag_assets.evaluation.metrics import measured
from rag_assets.evaluation.questions import Question, read_questions
from rag_assets.query.knowledge_base import KnowledgeBase
from rag_assets.query.search.index import Candidate
from rag_assets.query.search.ranking_weights import RERANKER, SIGNALS, Scorer
from rag_assets.text.language import detect_language
from rag_assets.text.plain import one_line

Vector: TypeAlias = NDArray[np.float64]

_TESTING = "testing"
_FINE = (Level.PAGE, Level.PASSAGE)
_FEEDBACK_TYPE = "feedback"
_LEAST_GROUPS = 5  # of documents: two for each of two parts that are held out, one for the rest


@dataclass(frozen=True, eq=False)
class JudgedQuestion:
    """A question with the passages that the default search looks at for it."""

    id: str  # id of the question
    type: str  # its type; its language where it has none
    documents: frozenset[str]  # documents that hold its evidence
    ways: Mapping[Level, Ways]  # by level, the pieces of its full answers, as ids
    ids: tuple[tuple[str, str, str], ...]  # document, page and passage of each candidate; candidates stand by passage
    signals: Vector  # float64 of shape `(candidates, signals)`
    query: NDArray[np.float32] = field(default_factory=lambda: np.empty(0, np.float32))  # vector of the question
    # vectors of the candidates, float32; empty where they are not needed
    passages: NDArray[np.float32] = field(default_factory=lambda: np.empty((0, 0), np.float32))
    is_measured: bool = True  # whether it may prove something; drafted questions may only be learned from
    # the reranker's own scores of the candidates, nan where it reads none; empty where none orders results
    read: Vector = field(default_factory=lambda: np.empty(0))
    # the same as soft targets that scores are to imitate; empty where none are
    taught: Vector = field(default_factory=lambda: np.empty(0))
    # passages that were opened, each with those that stood above it and were not
    clicks: tuple[tuple[str, frozenset[str]], ...] = ()

    def holding(self, level: Level) -> list[NDArray[np.bool_]]:
        """For each piece of evidence, which candidates hold it; of several full answers, all their pieces are one."""
        ways = self.ways[level]
        pieces = [piece.ids for piece in ways[0]] if len(ways) == 1 else []
        if len(ways) > 1:
            pieces = [frozenset[str]().union(*(piece.ids for way in ways for piece in way))]
        place = list(Level).index(level) + 1
        return [
            np.array([not ids.isdisjoint(row_ids[:place]) for row_ids in self.ids], dtype=bool) for ids in pieces if ids
        ]

    @cached_property
    def _groups(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Document and page of each candidate, as numbers."""
        columns = ([row_ids[place] for row_ids in self.ids] for place in (0, 1))
        numbers = [np.unique(np.array(column, dtype=str), return_inverse=True)[1] for column in columns]
        return numbers[0], numbers[1]

    def scores(self, scorer: Scorer) -> Vector:
        """Scores of the candidates as the search gives them, by the reranker where it orders what the scorer finds.

        Whichever the first passages of the scorer are, the reranker has read those that are first as shipped: these
        stand above the others.
        """
        own = scorer.scores(self.signals)
        if not len(self.read) or RERANKER in scorer.signals:
            return own
        rest = np.isnan(self.read)
        highest = max(own[~rest].min(), own[rest].max(initial=-np.inf))
        return np.where(rest, own - highest + np.nanmin(self.read), self.read)

    def ranked(self, scorer: Scorer, level: Level, k: int) -> list[tuple[str, ...]]:
        """Ids of the first results as the search ranks them (`rag_assets.query.search.grouping`)."""
        if not self.ids:
            return []
        scores = self.scores(scorer)
        order = np.argsort(-scores, kind="stable")
        if level is Level.PASSAGE:
            return [self.ids[row] for row in order[:k]]
        groups = self._groups[0 if level is Level.DOCUMENT else 1]
        _, first = np.unique(groups[order], return_index=True)
        if level is Level.PAGE:
            return [self.ids[order[row]][:2] for row in np.sort(first)[:k]]
        span = float(np.ptp(scores))
        scaled_scores = (scores - scores.min()) / span if span > 0 else np.ones_like(scores)
        totals, seen_counts = np.zeros(len(first)), np.zeros(len(first))
        for row in order:
            totals[groups[row]] += scaled_scores[row] / 2 ** seen_counts[groups[row]]
            seen_counts[groups[row]] += 1
        best = order[first]  # the best passage of each document
        ranking = sorted(range(len(first)), key=lambda group: (-totals[group], self.ids[best[group]][2]))
        return [self.ids[best[group]][:1] for group in ranking[:k]]

    def value(self, scorer: Scorer, level: Level, measure: str, k: int) -> float:
        """A measure of the ranking that a scorer gives; nan where nothing is relevant."""
        return measured([measure], self.ranked(scorer, level, k), self.ways[level])[measure]


def judged_questions(
    base: KnowledgeBase,
    corpus: Corpus,
    questions: Sequence[Question],
    progress: Callable[[int, int], None] = lambda _done, _total: None,
    *,
    vectors: bool = False,
    measured_ids: Iterable[str] | None = None,
) -> list[JudgedQuestion]:
    """Questions with their candidates; those without evidence in the version are left out, and so are follow-ups.

    Args:
        base: The version, searched with the query map that is to be in force.
        corpus: Its documents.
        questions: What is asked; questions that are kept for testing are left out.
        progress: Told how many were asked.
        vectors: Whether the vectors of candidates are wanted.
        measured_ids: Questions that may prove something; None for all.

    Raises:
        ModelError: The embedder or the reranker failed.
        StoreError: A published file is gone.
    """
    usable_questions = [
        question
        for question in questions
        if question.searched and not question.history and question.purpose != _TESTING
    ]
    targets = corpus.targets(usable_questions)
    proof_ids = None if measured_ids is None else set(measured_ids)
    unjudged_ids, result = unjudged_below(usable_questions, targets, corpus), []
    for number, question in enumerate(usable_questions, start=1):
        target = targets[question.id]
        if documents := target.ids(Level.DOCUMENT):
            candidates, signals = _asked(base, question.text)
            passages = base.passage_vectors(candidates) if vectors else np.empty((0, 0), np.float32)
            is_measured = proof_ids is None or question.id in proof_ids
            kind = question.type or question.language or detect_language(question.text)
            result.append(
                replace(
                    signals,
                    id=question.id,
                    type=kind,
                    documents=documents,
                    ways={**target.ways, **dict.fromkeys(_FINE, ())} if question.id in unjudged_ids else target.ways,
                    passages=passages,
                    is_measured=is_measured,
                )
            )
        progress(number, len(usable_questions))
    return result


def unjudged_below(questions: Sequence[Question], targets: Mapping[str, Target], corpus: Corpus) -> set[str]:
    """Ids of questions of which documents were judged, and no page or passage.

    A document that is named alone stands for each of its pages and passages; it names one only where it has no other.
    """
    coarse = {
        question.id: targets[question.id].ids(Level.DOCUMENT)
        for question in questions
        if not any(piece.place or piece.quote or piece.cells for piece in question.evidence)
    }
    coarse = {
        question_id: documents
        for question_id, documents in coarse.items()
        if targets[question_id].ids(Level.PASSAGE) == documents
    }
    documents = frozenset[str]().union(*coarse.values())
    rows = corpus.stored.read(CHUNKS, ("document_id",), documents).to_pylist() if documents else []
    passages = Counter(row["document_id"] for row in rows)
    return {
        question_id
        for question_id, documents in coarse.items()
        if any(passages[document] > 1 for document in documents)
    }


def clicked_questions(
    base: KnowledgeBase, clicks: Sequence[Click], accepted: Sequence[Question]
) -> list[JudgedQuestion]:
    """Questions whose results were opened, with what was opened from below others that were not.

    That a result was opened says little, as the first are opened most; that it was, and those above it were not, which
    were seen as well, says that it is better than they. Questions that are accepted are left out, so that none is
    measured by what was learned from it; so are clicks on first results, and passages that are not found any more.

    Args:
        base: The version.
        clicks: What was opened.
        accepted: The questions that prove something.

    Raises:
        ModelError: As for `judged_questions`, like `StoreError`.

    Source: T. Joachims, Optimizing search engines using clickthrough data, KDD 2002, section 3 ("click > skip above").
    Deviation: clicks of all who asked the same are taken together.
    """
    taken_texts = {_folded(question.text) for question in accepted}
    by_question: dict[str, list[Click]] = {}
    for click in clicks:
        if _folded(click.question) not in taken_texts:
            by_question.setdefault(_folded(click.question), []).append(click)
    click_questions = []
    for own in by_question.values():
        opened_results = {click.result for click in own}
        pairs = [(click.result, frozenset(click.above) - opened_results) for click in own]
        if not any(skipped_keys for _, skipped_keys in pairs):
            continue
        candidates, signals = _asked(base, own[0].question)
        there = {candidate.key: candidate.document_id for candidate in candidates}
        known_pairs = tuple((result, skipped_keys & there.keys()) for result, skipped_keys in pairs if result in there)
        if useful := tuple(pair for pair in known_pairs if pair[1]):
            documents = frozenset(there[result] for result, _ in useful)
            click_questions.append(replace(signals, id=f"click-{own[0].question}", documents=documents, clicks=useful))
    return click_questions


def unjudged_questions(base: KnowledgeBase, questions: Sequence[Question]) -> list[JudgedQuestion]:
    """Questions that name no evidence, with what the reranker says of their candidates; for distillation only.

    Each belongs to the document that the reranker finds best.

    Raises:
        ModelError: As for `judged_questions`, like `StoreError`.
    """
    result = []
    for question in questions:
        if question.answerable and not question.evidence and not question.history and question.purpose != _TESTING:
            candidates, signals = _asked(base, question.text)
            if not np.isnan(signals.read).all():
                best = candidates[int(np.nanargmax(signals.read))].document_id
                result.append(replace(signals, id=question.id, documents=frozenset({best})))
    return result


def distilled(judged: Sequence[JudgedQuestion]) -> list[JudgedQuestion]:
    """Questions whose scores are to imitate the reranker, which neither scores nor orders what is found for them."""
    columns = np.array([name != RERANKER for name in SIGNALS])
    none = np.empty(0)
    return [
        replace(question, signals=question.signals * columns, read=none, taught=question.read) for question in judged
    ]


def _asked(base: KnowledgeBase, text: str) -> tuple[Sequence[Candidate], JudgedQuestion]:
    """What is found for a question, and what is known without its evidence, from which nothing can be proven."""
    signals = base.ranking_signals(text)
    ids = tuple((candidate.document_id, candidate.page_id or "", candidate.key) for candidate in signals.candidates)
    ways: dict[Level, Ways] = dict.fromkeys(Level, ())
    no_ids = frozenset[str]()
    judged = JudgedQuestion(
        "", "", no_ids, ways, ids, signals.values, signals.vector, is_measured=False, read=signals.read
    )
    return signals.candidates, judged


def _folded(question: str) -> str:
    return one_line(question).casefold()


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
    taken_ids = {question.id for question in accepted}
    feedback_questions = read_questions(feedback) if feedback is not None and feedback.is_file() else []
    new_questions = [
        question
        for question in feedback_questions
        if question.draft and question.type == _FEEDBACK_TYPE and question.id not in taken_ids
    ]
    return [*new_questions, *(draft_questions(corpus, drafts, [*accepted, *feedback_questions]) if drafts else ())]


def document_groups(documents: Sequence[Collection[str]]) -> list[int]:
    """A number for each question, the same for those that share a document, also by way of others.

    Args:
        documents: Of each question, the documents that hold its evidence.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    edges = [(position, document) for position, own_documents in enumerate(documents) for document in own_documents]
    nodes = {document: len(documents) + number for number, document in enumerate({document for _, document in edges})}
    rows, columns = [position for position, _ in edges], [nodes[document] for _, document in edges]
    size = len(documents) + len(nodes)
    graph = coo_array((np.ones(len(edges)), (rows, columns)), shape=(size, size))
    groups: list[int] = connected_components(graph, directed=False)[1][: len(documents)].tolist()
    return groups


def document_folds(documents: Sequence[Collection[str]], count: int, seed: int = 0) -> list[list[int]]:
    """Positions of questions in folds of about the same size, questions that share a document in one.

    Args:
        documents: Of each question, the documents that hold its evidence.
        count: Folds, at most.
        seed: Which documents go together.
    """
    groups: dict[int, list[int]] = {}
    for position, number in enumerate(document_groups(documents)):
        groups.setdefault(number, []).append(position)
    group_list = list(groups.values())
    random.Random(seed).shuffle(group_list)  # noqa: S311 - no secret
    folds: list[list[int]] = [[] for _ in range(min(count, len(group_list)))]
    for group in sorted(group_list, key=len, reverse=True):
        min(folds, key=len).extend(group)
    return [sorted(fold) for fold in folds]


def held_out_parts(
    documents: Sequence[Collection[str]], shares: Sequence[float], shuffler: random.Random, task: str
) -> list[list[int]]:
    """Positions of questions by part, the rest last; questions that share a document stay together.

    Args:
        documents: Of each question, the documents that hold its evidence.
        shares: Of the questions, about as many as each part is to hold; it has two groups of documents or more.
        shuffler: Which groups of documents go together.
        task: What the questions are parted for, as in `tune`.

    Raises:
        QueryError: The questions cannot be parted.
    """
    groups = document_folds(documents, len(documents))
    if len(groups) < _LEAST_GROUPS:
        raise QueryError(
            f"{task}: the evidence of {len(documents)} questions is in {len(groups)} groups of documents, "
            f"{_LEAST_GROUPS} are needed: add questions on other documents"
        )
    shuffler.shuffle(groups)  # they stand by size
    parts = []
    for share in shares:
        places = set(_nearest_sum([len(group) for group in groups], share * len(documents)))
        parts.append([group for at, group in enumerate(groups) if at in places])
        groups = [group for at, group in enumerate(groups) if at not in places]
    return [sorted(position for group in part for position in group) for part in (*parts, groups)]


def _nearest_sum(sizes: Sequence[int], wanted: float) -> list[int]:
    """Places of those sizes, two or more but not all, whose sum is nearest to a number; the smaller of equally near."""
    single, several = [0], [0]  # as bits, the sums of one of the first sizes, and of more than one
    for size in sizes:
        several.append(several[-1] | (single[-1] | several[-1]) << size)
        single.append(single[-1] | 1 << size)
    total = min((size for size in range(sum(sizes)) if several[-1] >> size & 1), key=lambda size: abs(size - wanted))
    positions, sums = [], several
    for at in reversed(range(len(sizes))):
        if total and not sums[at] >> total & 1:  # no sum of those before it
            positions.append(at)
            total -= sizes[at]
            sums = several if several[at] >> total & 1 else single
    return positions
