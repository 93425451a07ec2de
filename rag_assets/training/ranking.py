"""Weights of mode `weighted`, learned from questions whose evidence is known.

A linear model over the signals of the search, with weights of 0 or more, so that no signal speaks against a passage.
Its loss is the negative log share of the softmax over the candidates that a piece of evidence gets. What pulls it
towards the shipped weights is chosen by cross-validation over documents: the strongest pull within one standard error
of the best, and the shipped weights where nothing fits better by two; so ten questions change little or nothing.

Source: the listwise softmax of Z. Cao et al., Learning to rank: from pairwise approach to listwise approach, ICML 2007;
the choice within one standard error: T. Hastie, R. Tibshirani and J. Friedman, The elements of statistical learning,
section 7.10. Deviation: of several passages that hold a piece, their summed share counts.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize, minimize_scalar

from rag_assets.contracts.errors import QueryError
from rag_assets.evaluation.evidence import Level
from rag_assets.query.search.grouping import Granularity
from rag_assets.query.search.ranking_weights import SHIPPED, Weights
from rag_assets.training.adoption import Proof, prove
from rag_assets.training.pairs import Judged, Vector, document_folds

MEASURE, FURTHER_MEASURE, DEPTH = "R@5", "MRR@10", 10
LEVELS: Mapping[Level, Granularity] = {
    Level.PASSAGE: Granularity.CHUNK,
    Level.PAGE: Granularity.PAGE,
    Level.DOCUMENT: Granularity.DOCUMENT,
}
PULLS = (math.inf, 300.0, 100.0, 30.0, 10.0)  # nats for the square of a change by 1, strongest first
FOLDS, _INNER_FOLDS = 5, 4
_RIVALS = 40  # candidates a piece of evidence is compared with: the best by the shipped weights
_SURE_ERRORS = 2.0  # standard errors by which held-out questions must fit better than by the shipped weights
_LEAST_QUESTIONS = 8  # below which there is nothing to choose a pull by
_MOST_STEPS = 30  # of the optimiser, of which it rarely needs as many
_TOLERANCE = 1e-6  # relative change of the loss at which the optimiser ends
_LEAST_SHARE = 1e-300  # of evidence, so that its logarithm is finite


@dataclass(frozen=True, eq=False)
class Terms:
    """Terms of the loss, one for each piece of evidence.

    Attributes:
        signals: float64 of shape `(terms, rivals, signals)`.
        is_there: Which rivals there are.
        is_evidence: Which of them hold the piece.
        weight: Of each term; those of one question add up to 1.
        question: Position of the question of each term.
    """

    signals: NDArray[np.float64]
    is_there: NDArray[np.bool_]
    is_evidence: NDArray[np.bool_]
    weight: Vector
    question: NDArray[np.intp]

    def of(self, questions: Sequence[int]) -> "Terms":
        """The terms of some questions."""
        chosen = np.isin(self.question, questions)
        parts = (self.signals, self.is_there, self.is_evidence, self.weight, self.question)
        return Terms(*(part[chosen] for part in parts))  # type: ignore[arg-type]

    def losses(self, weights: Vector) -> Vector:
        """Loss of each term, weighed."""
        return self._loss(weights)[0]

    def loss_and_slope(self, weights: Vector) -> tuple[float, Vector]:
        """Summed loss, and its derivative by each weight."""
        losses, shares = self._loss(weights)
        shares *= self.weight[:, None]
        return float(losses.sum()), shares.ravel() @ self.signals.reshape(shares.size, -1)

    def _loss(self, weights: Vector) -> tuple[Vector, NDArray[np.float64]]:
        """Loss of each term, and by how much the share of each rival is above what it should be."""
        scores = self.signals @ weights
        scores[~self.is_there] = -np.inf
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        evidence = shares * self.is_evidence
        total, held = shares.sum(axis=1), np.maximum(evidence.sum(axis=1), _LEAST_SHARE)
        return self.weight * np.log(total / held), shares / total[:, None] - evidence / held[:, None]


def terms_of(judged: Sequence[Judged], level: Level) -> Terms:
    """The terms of questions at a level; evidence that the search does not find teaches nothing."""
    shipped = SHIPPED[LEVELS[level]].vector()
    rows, evidence, weight, question = [], [], [], []
    for position, each in enumerate(judged):
        held = [piece for piece in each.holding(level) if piece.any() and not piece.all()]
        order = np.argsort(-(each.signals @ shipped), kind="stable") if held else ()
        any_held = np.logical_or.reduce(held) if held else None
        for piece in held:
            rivals = [row for row in order if piece[row] or not cast("NDArray[np.bool_]", any_held)[row]]
            chosen = [row for rank, row in enumerate(rivals) if rank < _RIVALS or piece[row]][: 2 * _RIVALS]
            if not piece[chosen].any():
                continue
            rows.append(each.signals[chosen])
            evidence.append(piece[chosen])
            weight.append(1 / len(held))
            question.append(position)
    widest = max(map(len, rows), default=1)
    signals = np.zeros((len(rows), widest, len(shipped)))
    is_there, is_evidence = np.zeros((2, len(rows), widest), dtype=bool)
    for number, (own, holds) in enumerate(zip(rows, evidence, strict=True)):
        signals[number, : len(own)], is_evidence[number, : len(own)] = own, holds
        is_there[number, : len(own)] = True
    return Terms(signals, is_there, is_evidence, np.array(weight), np.array(question, dtype=np.intp))


def fitted(terms: Terms, shipped: Vector, pulls: Sequence[float]) -> list[Vector]:
    """Weights that a pull towards the shipped ones leaves, for each pull; on the scale of a softmax over candidates."""
    scale = _scale(terms, shipped)
    start, found = scale * shipped, []
    for pull in pulls:
        if math.isinf(pull) or not len(terms.weight):
            found.append(scale * shipped)
            continue

        def objective(weights: Vector, pull: float = pull) -> tuple[float, Vector]:
            loss, slope = terms.loss_and_slope(weights)
            change = weights / scale - shipped
            return loss + pull * float(change @ change), slope + 2 * pull * change / scale

        bounds = [(0.0, None)] * len(shipped)
        options = {"maxiter": _MOST_STEPS, "ftol": _TOLERANCE}
        result = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        start = np.asarray(result.x)
        found.append(start)
    return found


def _scale(terms: Terms, shipped: Vector) -> float:
    """By how much the shipped weights are multiplied so that a softmax over candidates fits best."""
    if not len(terms.weight):
        return 1.0
    best = minimize_scalar(
        lambda power: float(terms.losses(math.exp(power) * shipped).sum()),
        bounds=(0.0, 5.0),
        method="bounded",
        options={"xatol": 0.05},
    )
    return math.exp(best.x)


def learned_weights(judged: Sequence[Judged], level: Level, terms: Terms | None = None) -> tuple[Weights, float]:
    """Weights for a level, and the pull that they were learned with; the shipped ones where nothing better is sure.

    Args:
        judged: The questions.
        level: What is looked for.
        terms: Their terms; None to make them.
    """
    shipped = SHIPPED[LEVELS[level]]
    terms = terms_of(judged, level) if terms is None else terms
    if len(np.unique(terms.question)) < _LEAST_QUESTIONS:
        return shipped, math.inf
    losses = np.full((len(judged), len(PULLS)), np.nan)
    folds = document_folds([each.documents for each in judged], _INNER_FOLDS)
    if len(folds) == 1:
        return shipped, math.inf
    for held_out in folds:
        learned_from = np.setdiff1d(np.arange(len(judged)), held_out)
        tested = terms.of(held_out)
        for column, weights in enumerate(fitted(terms.of([*learned_from]), shipped.vector(), PULLS)):
            own = np.bincount(tested.question, tested.losses(weights), len(judged))
            losses[tested.question, column] = own[tested.question]
    losses = losses[~np.isnan(losses[:, 0])]
    column = strongest_pull(losses)
    if math.isinf(PULLS[column]):
        return shipped, math.inf
    found = fitted(terms, shipped.vector(), PULLS[: column + 1])[column]
    scaled = found * (shipped.vector().sum() / found.sum())
    return Weights(*(round(float(each), 4) for each in scaled)), PULLS[column]


def strongest_pull(losses: NDArray[np.float64]) -> int:
    """Which pull is chosen: the strongest within one standard error of the best; the first, as shipped, where the best
    is not better than it by two.

    Args:
        losses: Of held-out questions, float64 of shape `(questions, pulls)`, the strongest pull first.
    """
    behind = losses - losses[:, [int(np.argmin(losses.mean(axis=0)))]]
    error = behind.std(axis=0, ddof=1) / math.sqrt(len(behind))
    if behind[:, 0].mean() <= _SURE_ERRORS * error[0]:
        return 0
    return 1 + int(np.argmax(behind[:, 1:].mean(axis=0) <= error[1:]))


def held_out_weights(judged: Sequence[Judged], level: Level, folds: Sequence[Sequence[int]]) -> list[Weights]:
    """For each question the weights that are learned from the documents of other folds."""
    found = [SHIPPED[LEVELS[level]]] * len(judged)
    for held_out in folds:
        others = [each for position, each in enumerate(judged) if position not in set(held_out)]
        weights, _ = learned_weights(others, level)
        for position in held_out:
            found[position] = weights
    return found


@dataclass(frozen=True)
class RankingCandidate:
    """Weights that were learned, with what they prove.

    Attributes:
        weights: By granularity: as learned where that is better, else as shipped.
        proposed: By granularity, as learned.
        proofs: By level, what was reached on questions not seen.
    """

    weights: Mapping[str, Weights]
    proposed: Mapping[str, Weights]
    proofs: Mapping[Level, Proof]

    @property
    def proof(self) -> Proof:
        """The proof of the whole: of the levels that are better, the first; else of the first level."""
        chosen = next((each for each in self.proofs.values() if each.is_better), self.proofs[Level.PASSAGE])
        reasons = "; ".join(f"{level}: {each.reason}" for level, each in self.proofs.items())
        return Proof(
            chosen.measure,
            chosen.before,
            chosen.after,
            chosen.difference,
            chosen.guards,
            any(each.is_better for each in self.proofs.values()),
            reasons,
        )


def learn_ranking(judged: Sequence[Judged]) -> RankingCandidate:
    """Learn weights for passages, pages and documents, and prove each on held-out documents, against the shipped ones.

    Raises:
        QueryError: No question can be measured, or all share documents, so that none can be held out.
    """
    folds = document_folds([each.documents for each in judged], FOLDS)
    if len(folds) == 1:
        raise QueryError(f"all {len(judged)} questions share documents: none can be held out, so nothing is learned")
    weights: dict[str, Weights] = {}
    proposed: dict[str, Weights] = {}
    proofs: dict[Level, Proof] = {}
    for level, granularity in LEVELS.items():
        shipped = SHIPPED[granularity]
        proposed[granularity], _ = learned_weights(judged, level)
        by_question = held_out_weights(judged, level, folds)
        proofs[level] = proof_of(
            judged, level, [shipped.vector()] * len(judged), judged, [each.vector() for each in by_question]
        )
        weights[granularity] = proposed[granularity] if proofs[level].is_better else shipped
    return RankingCandidate(weights, proposed, proofs)


def proof_of(
    before: Sequence[Judged],
    level: Level,
    weights: Sequence[Vector],
    after: Sequence[Judged],
    changed: Sequence[Vector],
) -> Proof:
    """Whether questions are searched better, guarded by their types and by the rank of the first evidence.

    Args:
        before: The questions with what is found now.
        level: What is looked for.
        weights: Weights now, by question.
        after: The same questions with what is found by the candidate.
        changed: Weights of the candidate, by question.
    """
    sides: list[dict[str, list[float]]] = []
    for judged, own in ((before, weights), (after, changed)):
        pairs = [(each, vector) for each, vector in zip(judged, own, strict=True) if each.is_measured]
        names = (MEASURE, FURTHER_MEASURE)
        sides.append({name: [each.value(vector, level, name, DEPTH) for each, vector in pairs] for name in names})
    types = [each.type for each in before if each.is_measured]
    guards = {f"{level} {FURTHER_MEASURE}": (sides[0][FURTHER_MEASURE], sides[1][FURTHER_MEASURE])}
    for kind in sorted(set(types)):
        positions = [position for position, each in enumerate(types) if each == kind]
        then, now = ([side[MEASURE][position] for position in positions] for side in sides)
        guards[f"type {kind}"] = then, now
    return prove(f"{level} {MEASURE}", sides[0][MEASURE], sides[1][MEASURE], guards)
