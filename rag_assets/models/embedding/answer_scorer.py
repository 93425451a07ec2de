"""Tells how surely statements answer a question: multilingual-e5-small as a cross-encoder.

Question, statement and what the statement stands under are read together; the model's weights are those of the
embedder, changed by an adapter that comes with the package (`answers.npz`). It was trained to choose, among statements
of a document, those that answer, or none: softmax over the statements and a fixed score of 0 for none of them, so that
a score is the logarithm of how much likelier a statement is than that none answers.
[Benchmarks](../../../docs/benchmarks.md) say on what, and what it gives on documents it has not seen.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rag_assets.contracts.errors import ModelError
from rag_assets.contracts.ports import PlacedStatement
from rag_assets.models.embedding.e5_weights import Precision
from rag_assets.models.embedding.embedders import BEGIN_ID, END_ID, E5Embedder, ExportedModel, ensure_answer_files

_QUESTION_TOKENS = 64
_STATEMENT_TOKENS = 160
_PLACE_TOKENS = 32
_CONTEXT_TOKENS = 64


class E5AnswerScorer:
    """Scores statements in onnxruntime. Every one is a run of its own, so that its score depends on no other; several
    run at once. A model that cannot be opened is not tried again. Safe to use from several threads.

    Args:
        tokens: Reads texts into tokens.
        cache_folder: Folder of the exported model; it is written at first use, when missing.
        precision: Arithmetic of the matrix products.
    """

    def __init__(self, tokens: E5Embedder, cache_folder: Path, precision: Precision = Precision.INT8) -> None:
        self._tokens = tokens
        self._model = ExportedModel("answer scorer", lambda: ensure_answer_files(cache_folder, precision).model)
        self._problem: str | None = None

    def score(self, question: str, statements: Sequence[PlacedStatement]) -> NDArray[np.float32]:
        """How surely each statement answers; see `AnswerScorer.score`."""
        if not statements:
            return np.empty(0, np.float32)
        if self._problem is not None:  # else each question would write a model that the disk has no room for
            raise ModelError(self._problem)
        try:
            self._model.opened()
        except ModelError as error:
            self._problem = str(error)
            raise
        with ThreadPoolExecutor(self._tokens.threads, "score") as executor:
            runs = executor.map(self._model.run, self._inputs(question, statements))
            return np.concatenate(list(runs)).astype(np.float32)

    def _inputs(self, question: str, statements: Sequence[PlacedStatement]) -> Iterator[NDArray[np.int64]]:
        """Token ids of the question with each statement, shape `(1, tokens)`."""
        around = list(dict.fromkeys(part for statement in statements for part in (statement.place, statement.context)))
        prefix, question_ids, *statement_ids = self._tokens.content_ids(
            ["query:", question, *(statement.text for statement in statements)]
        )
        ids_of = dict(zip(around, self._tokens.content_ids(around), strict=True))
        for statement, ids in zip(statements, statement_ids, strict=True):
            yield input_ids(prefix, question_ids, ids, ids_of[statement.place], ids_of[statement.context])[None]


def input_ids(
    prefix: Sequence[int],
    question: Sequence[int],
    statement: Sequence[int],
    place: Sequence[int],
    context: Sequence[int],
) -> NDArray[np.int64]:
    """What the model reads of a question and a statement: int64 of shape `(tokens,)`, each part cut to its length.

    Args:
        prefix: Token ids of `query:`; the other arguments are ids, too.
        question: The question.
        statement: The statement.
        place: Where it stands.
        context: What it stands under.
    """
    question_ids, statement_ids = question[:_QUESTION_TOKENS], statement[:_STATEMENT_TOKENS]
    around = [*place[:_PLACE_TOKENS], *context[:_CONTEXT_TOKENS]]
    return np.array([BEGIN_ID, *prefix, *question_ids, END_ID, *statement_ids, END_ID, *around, END_ID], np.int64)


@lru_cache(maxsize=1)
def shared_scorer(tokens: E5Embedder, cache_folder: Path) -> E5AnswerScorer:
    """One scorer for all knowledge bases of this process."""
    return E5AnswerScorer(tokens, cache_folder)
