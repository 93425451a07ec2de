"""Boosted trees on the signals of mode `weighted`, on top of the shipped weights, learned from the same questions.

Each tree is small and falls in no signal, so that no signal speaks against a passage. Boosting begins at the scores of
the shipped weights: without a tree they stand. The number of trees is chosen by cross-validation over documents as the
pull of `rag_assets.training.ranking` is: the fewest within one standard error of the best, and none where nothing fits
better by two.

Source: LambdaMART of C. Burges, From RankNet to LambdaRank to LambdaMART: an overview, Microsoft Research technical
report MSR-TR-2010-82, as LightGBM has it (G. Ke et al., LightGBM: a highly efficient gradient boosting decision tree,
NIPS 2017), with its monotone constraints. Deviation: a piece of evidence with its rivals is a query of its own.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from rag_assets.evaluation.evidence import Level
from rag_assets.query.search.ranking_weights import (
    SHIPPED,
    SIGNALS,
    BoostedWeights,
    Matrix,
    Scorer,
    lightgbm_module,
)
from rag_assets.training.pairs import JudgedQuestion
from rag_assets.training.ranking import LEVELS, Terms, chosen_strength, scale_of, terms_of

if TYPE_CHECKING:
    from lightgbm import Booster

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
    column = chosen_strength(judged, terms, len(ROUNDS), lambda own, tested: _fit(own, tested, level))
    if not column:
        return shipped, 0
    scale = scale_of(terms, shipped.vector())
    booster = _boosted(terms, scale * (terms.signals @ shipped.vector()), ROUNDS[column])
    return BoostedWeights(shipped, booster.model_to_string(), scale), ROUNDS[column]


def _fit(learned_from: Terms, tested: Terms, level: Level) -> list[Matrix]:
    """Scores of the rivals of terms by the trees that other terms teach, for each number of rounds."""
    shipped = SHIPPED[LEVELS[level]].vector()
    scale = scale_of(learned_from, shipped)
    begun = scale * (tested.signals @ shipped)
    if not len(learned_from.weight) or not len(tested.weight):
        return [begun] * len(ROUNDS)
    booster = _boosted(learned_from, scale * (learned_from.signals @ shipped), max(ROUNDS))
    rows = tested.signals.reshape(-1, len(SIGNALS))
    # LightGBM takes 0 rounds for all of them
    grown = [np.asarray(booster.predict(rows, raw_score=True, num_iteration=each)) for each in ROUNDS if each]
    return [begun, *(begun + each.reshape(begun.shape) for each in grown)]


def _boosted(terms: Terms, begun: Matrix, rounds: int) -> "Booster":
    """Trees on top of scores of rivals, each term being a query."""
    lightgbm = lightgbm_module()
    there = terms.is_there
    rows = lightgbm.Dataset(
        terms.signals[there],
        label=terms.is_evidence[there].astype(np.int32),
        weight=np.broadcast_to(terms.weight[:, None], there.shape)[there],
        group=there.sum(axis=1),
        init_score=begun[there],
        feature_name=[*SIGNALS],
    )
    booster: Booster = lightgbm.train(_PARAMETERS, rows, num_boost_round=rounds)
    return booster
