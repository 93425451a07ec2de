"""Weights of mode `weighted`, learned from questions whose evidence is known, and boosted trees on top of them.

A linear model over the signals of the search, with weights of 0 or more, so that no signal speaks against a passage.
Its loss is the negative log share of the softmax over the candidates that a piece of evidence gets. What pulls it
towards the shipped weights is chosen by cross-validation over documents: the strongest pull within one standard error
of the best, and the shipped weights where nothing fits better by two; so ten questions change little or nothing.

Source: the listwise softmax of Z. Cao et al., Learning to rank: from pairwise approach to listwise approach, ICML 2007;
the choice within one standard error: T. Hastie, R. Tibshirani and J. Friedman, The elements of statistical learning,
section 7.10. Deviation: of several passages that hold a piece, their summed share counts. Soft targets (distillation of
the reranker) are the softmax of its scores, as the top one probabilities of Cao et al. A clicked passage is compared
with those above it that were not opened, and with nothing else.

Each tree is small and falls in no signal, so that no signal speaks against a passage. Boosting begins at the scores of
the shipped weights: without a tree they stand. The number of trees is chosen as the pull is: the fewest within one
standard error of the best, and none where nothing fits better by two.

Source: LambdaMART of C. Burges, From RankNet to LambdaRank to LambdaMART: an overview, Microsoft Research technical
report MSR-TR-2010-82, as LightGBM has it (G. Ke et al., LightGBM: a highly efficient gradient boosting decision tree,
NIPS 2017), with its monotone constraints. Deviation: a piece of evidence with its rivals is a query of its own.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize, minimize_scalar
from scipy.special import rel_entr, softmax

from rag_assets.contracts.errors import QueryError
from rag_assets.evaluation.evidence import Level
from rag_assets.query.search.grouping import Granularity
from rag_assets.query.search.ranking_weights import (
    SHIPPED,
    SIGNALS,
    BoostedWeights,
    Matrix,
    Scorer,
    Weights,
    lightgbm_module,
)
from rag_assets.training.adoption import Proof, prove, type_guards
from rag_assets.training.pairs import JudgedQuestion, Vector, document_folds, document_groups

if TYPE_CHECKING:
    from lightgbm import Booster

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
ROUNDS = (0, 5, 10, 20, 40, 80)  # trees, fewest first
# Small and slow, as some hundred questions tell little more than which signals matter where; not tuned on any set.
_PARAMETERS = {
    "objective": "lambdarank",
    "num_leaves": 4,
    "learning_rate": 0.1,
    "min_data_in_leaf": 20,
    "lambda_l2": 1.0,
    "max_bin": 63,
    "monotone_constraints": [1] * len(SIGNALS),
    "deterministic": True,
    "force_row_wise": True,
    "num_threads": 1,
    "seed": 0,
    "verbosity": -1,
}


@dataclass(frozen=True, eq=False)
class Terms:
    """Terms of the loss, one for each piece of evidence, each click and each question with soft targets."""

    signals: Matrix  # float64 of shape `(terms, rivals, signals)`
    is_there: NDArray[np.bool_]  # which rivals there are
    is_evidence: NDArray[np.bool_]  # which of them hold the piece, or were clicked
    target: Matrix  # share that each should get, float64 of shape `(terms, rivals)`; all 0 where evidence tells it
    weight: Vector  # of each term; those of one question add up to 1
    question: NDArray[np.intp]  # position of the question of each term

    def of(self, questions: Sequence[int]) -> "Terms":
        """The terms of some questions."""
        mask = np.isin(self.question, questions)
        parts = (self.signals, self.is_there, self.is_evidence, self.target, self.weight, self.question)
        return Terms(*(part[mask] for part in parts))  # type: ignore[arg-type]

    def losses(self, scores: Matrix) -> Vector:
        """Loss of each term, weighed.

        Args:
            scores: Of the rivals, float64 of shape `(terms, rivals)`, on the scale of a softmax.
        """
        return self._loss(scores)[0]

    def loss_and_slope(self, weights: Vector) -> tuple[float, Vector]:
        """Summed loss, and its derivative by each weight."""
        losses, shares = self._loss(self.signals @ weights)
        shares *= self.weight[:, None]
        return float(losses.sum()), shares.ravel() @ self.signals.reshape(shares.size, -1)

    def _loss(self, scores: Matrix) -> tuple[Vector, Matrix]:
        """Loss of each term, and by how much the share of each rival is above what it should be."""
        scores = np.where(self.is_there, scores, -np.inf)
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        evidence = shares * self.is_evidence
        total, evidence_share = shares.sum(axis=1), np.maximum(evidence.sum(axis=1), _LEAST_SHARE)
        shares /= total[:, None]
        is_soft = self.target.sum(axis=1) > 0
        hard = np.log(total / evidence_share)
        # the divergence of the shares from the target: 0 where they are equal
        soft = rel_entr(self.target, np.maximum(shares, _LEAST_SHARE)).sum(axis=1)
        target_shares = np.where(is_soft[:, None], self.target, evidence / evidence_share[:, None])
        return self.weight * np.where(is_soft, soft, hard), shares - target_shares


def terms_of(judged: Sequence[JudgedQuestion], level: Level) -> Terms:
    """The terms of questions at a level; evidence that the search does not find teaches nothing.

    Where a question has evidence and soft targets, each weighs a half.
    """
    shipped = SHIPPED[LEVELS[level]]
    rows: list[NDArray[np.intp]] = []
    targets: list[Vector] = []
    evidence: list[NDArray[np.bool_]] = []
    weight, question = [], []
    for position, judged_question in enumerate(judged):
        own: list[tuple[NDArray[np.intp], NDArray[np.bool_], Vector]] = []
        for own_rows, holds in (*_evidence(judged_question, level, shipped), *_clicks(judged_question)):
            own.append((own_rows, holds, np.zeros(len(own_rows))))
        share = 1 / len(own) if own else 0.0
        weights = [share] * len(own)
        if (read_rows := np.flatnonzero(~np.isnan(judged_question.taught))).size > 1:
            own.append((read_rows, np.zeros(len(read_rows), dtype=bool), softmax(judged_question.taught[read_rows])))
            weights = [*(0.5 * share for _ in weights), 0.5 if weights else 1.0]
        for own_rows, holds, target in own:
            rows.append(own_rows)
            evidence.append(holds)
            targets.append(target)
        weight += weights
        question += [position] * len(own)
    widest = max(map(len, rows), default=1)
    signals, target = np.zeros((len(rows), widest, len(SIGNALS))), np.zeros((len(rows), widest))
    is_there = np.zeros((len(rows), widest), dtype=bool)
    is_evidence = np.zeros_like(is_there)
    for number, own_rows in enumerate(rows):
        count = len(own_rows)
        signals[number, :count] = judged[question[number]].signals[own_rows]
        is_there[number, :count], is_evidence[number, :count] = True, evidence[number]
        target[number, :count] = targets[number]
    return Terms(signals, is_there, is_evidence, target, np.array(weight), np.array(question, dtype=np.intp))


def _evidence(
    judged: JudgedQuestion, level: Level, shipped: Weights
) -> list[tuple[NDArray[np.intp], NDArray[np.bool_]]]:
    """For each piece of evidence, rows of candidates that it is compared with, and which of them hold it."""
    pieces = [piece for piece in judged.holding(level) if piece.any() and not piece.all()]
    if not pieces:
        return []
    order = np.argsort(-shipped.scores(judged.signals), kind="stable")
    is_evidence = cast("NDArray[np.bool_]", np.logical_or.reduce(pieces))
    result = []
    for piece in pieces:
        rivals = [row for row in order if piece[row] or not is_evidence[row]]
        rows = np.array([row for rank, row in enumerate(rivals) if rank < _RIVALS or piece[row]][: 2 * _RIVALS])
        if piece[rows].any():
            result.append((rows, piece[rows]))
    return result


def _clicks(judged: JudgedQuestion) -> list[tuple[NDArray[np.intp], NDArray[np.bool_]]]:
    """For each click, the row of the passage and those that were passed over for it, and which is which."""
    keys = [key for _, _, key in judged.ids]
    result = []
    for clicked_key, skipped_keys in judged.clicks:
        rows = np.array([row for row, key in enumerate(keys) if key == clicked_key or key in skipped_keys])
        result.append((rows, np.array([keys[row] == clicked_key for row in rows])))
    return result


def fitted(terms: Terms, shipped: Vector, pulls: Sequence[float]) -> list[Vector]:
    """Weights that a pull towards the shipped ones leaves, for each pull; on the scale of a softmax over candidates."""
    scale = scale_of(terms, shipped)
    start, vectors = scale * shipped, []
    for pull in pulls:
        if math.isinf(pull) or not len(terms.weight):
            vectors.append(scale * shipped)
            continue

        def objective(weights: Vector, pull: float = pull) -> tuple[float, Vector]:
            loss, slope = terms.loss_and_slope(weights)
            change = weights / scale - shipped
            return loss + pull * float(change @ change), slope + 2 * pull * change / scale

        bounds = [(0.0, None)] * len(shipped)
        options = {"maxiter": _MOST_STEPS, "ftol": _TOLERANCE}
        result = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        start = np.asarray(result.x)
        vectors.append(start)
    return vectors


def scale_of(terms: Terms, shipped: Vector) -> float:
    """By how much the shipped weights are multiplied so that a softmax over candidates fits best."""
    if not len(terms.weight):
        return 1.0
    scores = terms.signals @ shipped
    best = minimize_scalar(
        lambda power: float(terms.losses(math.exp(power) * scores).sum()),
        bounds=(0.0, 5.0),
        method="bounded",
        options={"xatol": 0.05},
    )
    return math.exp(best.x)


def learned_weights(judged: Sequence[JudgedQuestion], level: Level) -> tuple[Weights, float]:
    """Weights for a level, and the pull that they were learned with; the shipped ones where nothing better is sure."""
    shipped, terms = SHIPPED[LEVELS[level]], terms_of(judged, level)

    def fit(learned_from: Terms, test_terms: Terms) -> list[Matrix]:
        return [test_terms.signals @ weights for weights in fitted(learned_from, shipped.vector(), PULLS)]

    column = chosen_strength(judged, terms, len(PULLS), fit)
    if not column:
        return shipped, math.inf
    weights = fitted(terms, shipped.vector(), PULLS[: column + 1])[column]
    scaled_weights = weights * (shipped.vector().sum() / weights.sum())
    return Weights(*(round(float(weight), 4) for weight in scaled_weights)), PULLS[column]


Fit: TypeAlias = Callable[[Terms, Terms], Sequence[Matrix]]


def chosen_strength(judged: Sequence[JudgedQuestion], terms: Terms, count: int, fit: Fit) -> int:
    """How much is learned: which of several strengths, from nothing to much, cross-validation over documents chooses.

    Args:
        judged: The questions.
        terms: Their terms.
        count: Strengths; the first is as shipped.
        fit: Scores of the rivals of the second terms by what the first teach, for each strength.

    Returns:
        Position of the strength; 0 where nothing better is sure, or there is too little to choose by.
    """
    if len(np.unique(terms.question)) < _LEAST_QUESTIONS:
        return 0
    folds = document_folds([question.documents for question in judged], _INNER_FOLDS)
    if len(folds) == 1:
        return 0
    losses = np.full((len(judged), count), np.nan)
    for held_out in folds:
        learned_from = np.setdiff1d(np.arange(len(judged)), held_out)
        test_terms = terms.of(held_out)
        for column, scores in enumerate(fit(terms.of([*learned_from]), test_terms)):
            own = np.bincount(test_terms.question, test_terms.losses(scores), len(judged))
            losses[test_terms.question, column] = own[test_terms.question]
    return strongest_pull(losses[~np.isnan(losses[:, 0])])


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


def learned_trees(judged: Sequence[JudgedQuestion], level: Level) -> tuple[Scorer, float]:
    """Shipped weights with trees on top for a level, and how many; the shipped ones where nothing better is sure.

    Args:
        judged: The questions; soft targets are not learned from.
        level: What is looked for.

    Raises:
        ModelError: LightGBM is not installed.
    """
    shipped = SHIPPED[LEVELS[level]]
    terms = terms_of(judged, level)
    column = chosen_strength(judged, terms, len(ROUNDS), lambda own, test_terms: _tree_scores(own, test_terms, level))
    if not column:
        return shipped, 0
    scale = scale_of(terms, shipped.vector())
    booster = _boosted(terms, scale * (terms.signals @ shipped.vector()), ROUNDS[column])
    return BoostedWeights(shipped, booster.model_to_string(), scale), ROUNDS[column]


def _tree_scores(learned_from: Terms, test_terms: Terms, level: Level) -> list[Matrix]:
    """Scores of the rivals of terms by the trees that other terms teach, for each number of rounds."""
    shipped = SHIPPED[LEVELS[level]].vector()
    scale = scale_of(learned_from, shipped)
    start = scale * (test_terms.signals @ shipped)
    if not len(learned_from.weight) or not len(test_terms.weight):
        return [start] * len(ROUNDS)
    booster = _boosted(learned_from, scale * (learned_from.signals @ shipped), max(ROUNDS))
    rows = test_terms.signals.reshape(-1, len(SIGNALS))
    # LightGBM takes 0 rounds for all of them
    tree_scores = [
        np.asarray(booster.predict(rows, raw_score=True, num_iteration=rounds)) for rounds in ROUNDS if rounds
    ]
    return [start, *(start + scores.reshape(start.shape) for scores in tree_scores)]


def _boosted(terms: Terms, start: Matrix, rounds: int) -> "Booster":
    """Trees on top of scores of rivals, each term being a query."""
    lightgbm = lightgbm_module()
    there = terms.is_there
    rows = lightgbm.Dataset(
        terms.signals[there],
        label=terms.is_evidence[there].astype(np.int32),
        weight=np.broadcast_to(terms.weight[:, None], there.shape)[there],
        group=there.sum(axis=1),
        init_score=start[there],
        feature_name=[*SIGNALS],
    )
    booster: Booster = lightgbm.train(_PARAMETERS, rows, num_boost_round=rounds)
    return booster


Learn: TypeAlias = Callable[[Sequence[JudgedQuestion], Level], tuple[Scorer, float]]


def held_out_weights(
    judged: Sequence[JudgedQuestion], level: Level, folds: Sequence[Sequence[int]], learn: Learn
) -> list[Scorer]:
    """For each question the weights that are learned from the documents of other folds."""
    scorers: list[Scorer] = [SHIPPED[LEVELS[level]]] * len(judged)
    for held_out in folds:
        rest = [question for position, question in enumerate(judged) if position not in set(held_out)]
        weights, _ = learn(rest, level)
        for position in held_out:
            scorers[position] = weights
    return scorers


@dataclass(frozen=True)
class RankingCandidate:
    """Weights that were learned, with what they prove."""

    weights: Mapping[str, Scorer]  # by granularity: as learned where that is better, else as in force
    proposed: Mapping[str, Scorer]  # by granularity, as learned
    proofs: Mapping[Level, Proof]  # by level, what was reached on questions not seen

    @property
    def proof(self) -> Proof:
        """The proof of the whole: of the levels that are better, the first; else of the first level."""
        main_proof = next(
            (proof for proof in self.proofs.values() if proof.is_better), next(iter(self.proofs.values()))
        )
        reasons = "; ".join(f"{level}: {proof.reason}" for level, proof in self.proofs.items())
        is_better = any(proof.is_better for proof in self.proofs.values())
        return replace(main_proof, is_better=is_better, reason=reasons, worse=())


def learn_ranking(
    judged: Sequence[JudgedQuestion], learn: Learn = learned_weights, in_force: Mapping[str, Scorer] = SHIPPED
) -> RankingCandidate:
    """Learn weights for passages, pages and documents, and prove each on held-out documents, against those in force.

    Those of a level at which nothing was judged stay as they are.

    What is in force may have been learned from the same questions, and is then measured too well: a candidate has to be
    better all the same.

    Args:
        judged: The questions.
        in_force: Weights in force, by granularity.
        learn: Learns the weights of a level, `learned_weights` or `learned_trees`.

    Raises:
        QueryError: No question can be measured, or all share documents, so that none can be held out.
    """
    folds = document_folds([question.documents for question in judged], FOLDS)
    if len(folds) == 1:
        cause = "all questions share documents" if len(judged) > 1 else "there is one question"
        raise QueryError(f"{cause}: none can be held out, so nothing is learned")
    weights: dict[str, Scorer] = {}
    proposals: dict[str, Scorer] = {}
    proofs: dict[Level, Proof] = {}
    levels = judged_levels(judged)
    for level, granularity in LEVELS.items():
        current = in_force[granularity]
        if level not in levels:
            weights[granularity] = proposals[granularity] = current
            continue
        proposals[granularity], _ = learn(judged, level)
        by_question = held_out_weights(judged, level, folds, learn)
        proofs[level] = proof_of(judged, level, [current] * len(judged), judged, by_question)
        weights[granularity] = proposals[granularity] if proofs[level].is_better else current
    return RankingCandidate(weights, proposals, proofs)


def judged_levels(judged: Sequence[JudgedQuestion]) -> list[Level]:
    """The levels at which some question can prove something.

    Raises:
        QueryError: There is none.
    """
    levels = [
        level for level in LEVELS if any(question.is_measured and any(question.ways[level]) for question in judged)
    ]
    if not levels:
        raise QueryError("no question can be measured: none has evidence that the collection holds")
    return levels


def proof_of(
    before: Sequence[JudgedQuestion],
    level: Level,
    weights: Sequence[Scorer],
    after: Sequence[JudgedQuestion],
    changed: Sequence[Scorer],
) -> Proof:
    """Whether questions are searched better, guarded by their types and by the rank of the first evidence.

    Args:
        before: The questions with what is found now.
        level: What is looked for.
        weights: Weights now, by question.
        after: The same questions with what is found by the candidate.
        changed: Weights of the candidate, by question.
    """
    positions = [position for position, question in enumerate(before) if question.is_measured]
    sides: list[dict[str, list[float]]] = []
    for judged, own in ((before, weights), (after, changed)):
        names = (MEASURE, FURTHER_MEASURE)
        sides.append({name: [judged[at].value(own[at], level, name, DEPTH) for at in positions] for name in names})
    guards = {
        f"{level} {FURTHER_MEASURE}": (sides[0][FURTHER_MEASURE], sides[1][FURTHER_MEASURE]),
        **type_guards([before[at].type for at in positions], sides[0][MEASURE], sides[1][MEASURE]),
    }
    groups = document_groups([before[at].documents for at in positions])
    return prove(f"{level} {MEASURE}", sides[0][MEASURE], sides[1][MEASURE], guards, groups)
