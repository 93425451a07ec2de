"""Questions with made-up signals, whose evidence follows from them."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from rag_assets.evaluation.evidence import Level
from rag_assets.evaluation.metrics import Piece
from rag_assets.query.search.ranking_weights import SIGNALS
from rag_assets.training.pairs import JudgedQuestion

CANDIDATES = 30
NAMES, WORDS = SIGNALS.index("names"), SIGNALS.index("words")


def made_up(count: int, telling: Mapping[int, float], seed: int = 0, documents: int = 10_000) -> list[JudgedQuestion]:
    """Questions whose evidence is the candidate that some signals, at these weights, put first, but for noise."""
    random = np.random.default_rng(seed)
    found = []
    for number in range(count):
        signals = random.random((CANDIDATES, len(SIGNALS)))
        score = sum(weight * signals[:, place] for place, weight in telling.items())
        best = int(np.argmax(score + random.gumbel(0, 0.05, CANDIDATES)))
        found.append(with_evidence(number, signals, best, random, documents))
    return found


def with_evidence(
    number: int, signals: NDArray[np.float64], best: int, random: np.random.Generator, documents: int = 10_000
) -> JudgedQuestion:
    """A question whose evidence is one of its candidates."""
    ids = tuple((f"d{row}", f"d{row}#1", f"d{row}#1.{number:03}") for row in range(CANDIDATES))
    ways = {level: ((Piece(frozenset({ids[best][place]})),),) for place, level in enumerate(Level)}
    return JudgedQuestion(f"q{number}", "fact", frozenset({f"d{random.integers(documents)}"}), ways, ids, signals)
