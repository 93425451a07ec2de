"""Any cross-encoder that sentence-transformers can load, as a reranker (extra `sentence-transformers`).

What stays out: which results are ordered anew (`rag_assets.query.search.reranking`).
"""

import importlib
import threading
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rag_assets.contracts.errors import ModelError
from rag_assets.models.embedding.sentence_transformers import folder_digest

_BATCH_PAIRS = 16
_MAX_TOKENS = 512  # of a pair; more only costs time with passages of some 256 tokens


class _Model(Protocol):
    def predict(
        self,
        inputs: list[tuple[str, str]],
        *,
        batch_size: int,
        show_progress_bar: bool,
        activation_fn: object,
    ) -> NDArray[np.float32]: ...


class CrossEncoderReranker:
    """A cross-encoder of sentence-transformers. Safe to use from several threads, which take turns.

    Scores are the model's numbers before any function that squeezes them together.

    Args:
        model: Folder of a model, or its name on the hub; `NAME@REVISION` pins a revision.
        threads: Threads of torch in this process; 0 leaves them as they are.
        max_tokens: Tokens of query and passage together that the model sees, at most.
    """

    def __init__(self, model: str, threads: int = 0, max_tokens: int = _MAX_TOKENS) -> None:
        self._model_name = model
        self._threads = threads
        self._max_tokens = max_tokens
        self._lock = threading.Lock()
        self._loaded: tuple[_Model, object] | None = None

    @cached_property
    def name(self) -> str:
        folder = Path(self._model_name)
        label = f"{folder.name}/{folder_digest(folder)}" if folder.is_dir() else self._model_name
        return f"cross-encoder/{label}/{self._max_tokens}"

    def rerank(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """Score texts; see `Reranker.rerank`."""
        if not texts:
            return np.empty(0, np.float32)
        with self._lock:
            if self._loaded is None:
                self._loaded = _load(self._model_name, self._threads, self._max_tokens)
            model, activation = self._loaded
            try:
                scores = model.predict(
                    [(query, text) for text in texts],
                    batch_size=_BATCH_PAIRS,
                    show_progress_bar=False,
                    activation_fn=activation,
                )
            except (RuntimeError, ValueError) as error:
                raise ModelError(f"{self._model_name}: passages could not be scored ({type(error).__name__})") from None
        found = np.asarray(scores, np.float32)
        if found.shape != (len(texts),) or not np.isfinite(found).all():
            raise ModelError(f"{self._model_name}: expected one score a passage, found {found.shape} for {len(texts)}")
        return found


def _load(model_name: str, threads: int, max_tokens: int) -> tuple[_Model, object]:
    try:
        torch = importlib.import_module("torch")
        library = importlib.import_module("sentence_transformers")
    except ImportError as error:
        message = "reranker: install it with pip install 'rag-assets[sentence-transformers]'"
        raise ModelError(f"{message} ({error})") from error
    if threads:
        torch.set_num_threads(threads)
    location, _, revision = model_name.partition("@") if not Path(model_name).is_dir() else (model_name, "", "")
    try:
        model: Any = library.CrossEncoder(location, revision=revision or None)
        # Never raised: positions that the model does not have would end in an error.
        model.max_seq_length = min(model.max_seq_length or max_tokens, max_tokens)
    except (OSError, ValueError, RuntimeError) as error:
        raise ModelError(f"{model_name}: sentence-transformers cannot load it: {error}") from error
    return model, torch.nn.Identity()
