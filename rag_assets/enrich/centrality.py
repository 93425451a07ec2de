"""Ranks the sentences of a text by how central they are to it.

Source: Erkan and Radev, "LexRank: Graph-based Lexical Centrality as Salience in Text Summarization", JAIR 22
(2004), section 3.3 (continuous LexRank). Deviation: terms are character bigrams in Japanese and words elsewhere,
because bigrams need no dictionary.
"""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_TERMS = re.compile(r"[a-z0-9_]+|[^\W\da-z_]+")
_DAMPING = 0.85
_REDUNDANCY = 0.4  # cosine similarity above which a text adds nothing to one chosen already


def terms(text: str) -> list[str]:
    """Terms of a text: lower-case words and numbers, and character bigrams of runs of other letters."""
    found: list[str] = []
    for run in _TERMS.findall(unicodedata.normalize("NFKC", text).lower()):
        if run[0].isascii() or len(run) < 3:
            found.append(run)
        else:
            found += [run[index : index + 2] for index in range(len(run) - 1)]
    return found


def tf_idf(texts: Sequence[str]) -> NDArray[np.float64]:
    """Term weights of texts.

    Returns:
        Array of shape `(len(texts), terms)`; rows have unit length, or are zero where a text has no terms.
    """
    counts = [Counter(terms(text)) for text in texts]
    document_frequency = Counter(term for count in counts for term in count)
    column = {term: index for index, term in enumerate(sorted(document_frequency))}
    weights = np.zeros((len(texts), max(1, len(column))))
    for row, count in enumerate(counts):
        for term, frequency in count.items():
            weights[row, column[term]] = frequency * (math.log((1 + len(texts)) / (1 + document_frequency[term])) + 1)
    norms = np.linalg.norm(weights, axis=1, keepdims=True)
    return np.asarray(weights / np.where(norms > 0, norms, 1), dtype=np.float64)


def lexrank(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Centrality of texts.

    Args:
        weights: Term weights of shape `(texts, terms)`, rows of unit length.

    Returns:
        Stationary probabilities of shape `(texts,)`, sum 1.
    """
    count = len(weights)
    if count == 0:
        return np.zeros(0)
    similarity = weights @ weights.T
    sums = similarity.sum(axis=1, keepdims=True)
    transition = np.where(sums > 0, similarity / np.where(sums > 0, sums, 1), 1 / count)
    rank = np.full(count, 1 / count)
    for _ in range(100):
        following = (1 - _DAMPING) / count + _DAMPING * (rank @ transition)
        if np.abs(following - rank).sum() < 1e-9:
            return np.asarray(following, dtype=np.float64)
        rank = following
    return rank


def select_diverse(
    weights: NDArray[np.float64],
    scores: NDArray[np.float64],
    lengths: Sequence[int],
    budget: int,
) -> list[int]:
    """Choose central texts that fit a length, leaving out those too similar to one chosen already.

    Args:
        weights: Term weights of shape `(texts, terms)`, rows of unit length.
        scores: Centrality of shape `(texts,)`.
        lengths: Length of each text.
        budget: Sum of lengths at most.

    Returns:
        Indexes in order of choice: falling score, ties by position.
    """
    chosen: list[int] = []
    for index in sorted(range(len(scores)), key=lambda i: (-round(float(scores[i]), 12), i)):
        if lengths[index] > budget:
            continue
        if chosen and float((weights[chosen] @ weights[index]).max()) > _REDUNDANCY:
            continue
        chosen.append(index)
        budget -= lengths[index]
    return chosen
