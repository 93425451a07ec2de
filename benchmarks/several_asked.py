"""How the weights of `rag_assets/query/several_asked.npz` were learned, and what they give.

Reads questions with `question`, `set` and `several` (`questions/several.jsonl`): 2,100 that were written for this with
half of each kind and misleading wordings, and those of collections of documents, where the ones of the type `list` ask
for several things. A logistic regression, of which each collection in turn is left out and predicted; then all are
learned. Prints recall and precision of the left out, with and without the words that say so, and writes the weights.

    python -m benchmarks.several_asked benchmarks/questions/several.jsonl [rag_assets/query/several_asked.npz]
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

from rag_assets.query.several_asked import FEATURES, asks_for_several, features

WRITTEN = "written"
DECAY = 0.2
COLLECTION_WEIGHT = 2.0  # of a question that was asked of documents, against one written for this


def matrix(questions: Sequence[str]) -> csr_matrix:
    """The features of questions, each row of length 1: shape `(questions, FEATURES)`."""
    found = [features(each) for each in questions]
    rows = np.repeat(np.arange(len(found)), [len(each) for each in found])
    values = np.repeat([1 / np.sqrt(len(each)) for each in found], [len(each) for each in found])
    return csr_matrix((values, (rows, np.concatenate(found))), (len(found), FEATURES))


def fitted(read: csr_matrix, labels: NDArray[np.bool_], counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """The weights of the features, and last the bias: shape `(FEATURES + 1,)`."""
    signs = np.where(labels, 1.0, -1.0)

    def loss(weights: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        margins = signs * (read @ weights[:-1] + weights[-1])
        value = counts @ np.logaddexp(0, -margins) + DECAY / 2 * weights[:-1] @ weights[:-1]
        slopes = -counts * signs / (1 + np.exp(margins))
        return value, np.append(read.T @ slopes + DECAY * weights[:-1], slopes.sum())

    found = minimize(loss, np.zeros(FEATURES + 1), jac=True, method="L-BFGS-B", options={"maxiter": 100})
    return np.asarray(found.x, np.float64)


def main() -> None:
    """Learn, print what is given on collections left out, and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("questions", type=Path)
    parser.add_argument("weights", type=Path, nargs="?")
    arguments = parser.parse_args()
    rows = [json.loads(line) for line in arguments.questions.read_text("utf-8").splitlines()]
    texts = [row["question"] for row in rows]
    sets, labels = np.array([row["set"] for row in rows]), np.array([row["several"] for row in rows])
    counts = np.where(sets == WRITTEN, 1.0, COLLECTION_WEIGHT)
    read = matrix(texts)
    scores = np.zeros(len(rows))
    for name in sorted(set(sets) - {WRITTEN}):
        left_out = sets == name
        weights = fitted(read[~left_out], labels[~left_out], counts[~left_out])
        scores[left_out] = read[left_out] @ weights[:-1] + weights[-1]
        _report(name, labels[left_out], scores[left_out] > 0)
    asked = sets != WRITTEN
    _report("all left out", labels[asked], scores[asked] > 0)
    said = np.array([asks_for_several(text) for text in texts])
    print("with the words, and the weights that are there:", end=" ")
    _report("all", labels[asked], said[asked])
    if arguments.weights:
        weights = fitted(read, labels, counts)
        scale = float(np.abs(weights[:-1]).max() / 127)
        stored = np.round(weights[:-1] / scale).astype(np.int8)
        np.savez_compressed(arguments.weights, weights=stored, scale=scale, bias=weights[-1])


def _report(name: str, labels: NDArray[np.bool_], said: NDArray[np.bool_]) -> None:
    right = (labels & said).sum()
    recall, precision = right / max(1, labels.sum()), right / max(1, said.sum())
    print(f"{name}: {len(labels)} questions, recall {recall:.2f}, precision {precision:.2f}")


if __name__ == "__main__":
    main()
