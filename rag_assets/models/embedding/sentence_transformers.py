"""Any model that sentence-transformers can load, as an embedder or as a reranker (extra `sentence-transformers`)."""

import hashlib
import importlib
import re
import threading
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_assets.contracts.errors import ModelError
from rag_assets.contracts.ports import EmbeddingKind

# The published e5 models without an instruction: small, base and large, English and multilingual.
_E5_NAME = re.compile(r"(?:^|[/_-])e5-(?:small|base|large)(?!.*instruct)", re.IGNORECASE)
_PROMPT_NAMES = {
    EmbeddingKind.QUERY: ("query",),
    EmbeddingKind.PASSAGE: ("passage", "document", "corpus"),
}
_SAMPLE_BYTES = 1 << 20
_BATCH_PAIRS = 16
_PAIR_TOKENS = 512  # of query and passage; more only costs time with passages of some 256 tokens


class SentenceTransformersEmbedder:
    """A model of sentence-transformers. Safe to use from several threads, which take turns.

    Texts run one by one: a padded batch changes the last digits of its members' vectors. The digits may still differ
    between numbers of threads, processors and versions of torch.

    Args:
        model: Folder of a model, or its name on the hub; `NAME@REVISION` pins a revision.
        threads: Threads of torch in this process; 0 leaves them as they are.
    """

    def __init__(self, model: str, threads: int = 0) -> None:
        self._model_name = model
        self._threads = threads
        self._lock = threading.RLock()
        self._loaded: Any = None

    @cached_property
    def name(self) -> str:
        return f"sentence-transformers/{_label(self._model_name)}"

    @property
    def dimension(self) -> int:
        model = self._model
        # Renamed in sentence-transformers 6; the old name warns there.
        get_dimension = getattr(model, "get_embedding_dimension", None) or model.get_sentence_embedding_dimension
        dimension: int | None = get_dimension()
        if dimension is None:
            raise ModelError(f"{self._model_name}: the model does not state the length of its vectors")
        return dimension

    @cached_property
    def window_tokens(self) -> int:
        with self._lock:
            model = self._model
            prompts = [self._prompt(kind) for kind in EmbeddingKind]
            longest = max(self.count_tokens(prompts))
            return int((model.max_seq_length or 512) - model.tokenizer.num_special_tokens_to_add() - longest)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        if not texts:
            return []
        with self._lock:
            encoding = self._model.tokenizer(list(texts), add_special_tokens=False, verbose=False)
        return [len(ids) for ids in encoding["input_ids"]]

    def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> NDArray[np.float32]:
        if not texts:
            return np.empty((0, self.dimension), np.float32)
        with self._lock:
            try:
                vectors = self._model.encode(
                    list(texts),
                    prompt=self._prompt(kind),
                    batch_size=1,
                    normalize_embeddings=True,
                    show_progress_bar=False,
                )
            except RuntimeError as error:
                raise ModelError(f"{self._model_name}: texts could not be embedded: {error}") from error
        return np.asarray(vectors, np.float32)

    def _prompt(self, kind: EmbeddingKind) -> str:
        """The model's own prompt, else the prefix of the e5 models, else nothing."""
        for prompt_name in _PROMPT_NAMES[kind]:
            if prompt := self._model.prompts.get(prompt_name):
                return str(prompt)
        if _E5_NAME.search(Path(self._model_name).name):
            return f"{kind}: "
        return ""

    @property
    def _model(self) -> Any:
        with self._lock:
            if self._loaded is None:
                purpose = "embedder sentence-transformers"
                self._loaded, _ = _load("SentenceTransformer", self._model_name, self._threads, purpose)
            return self._loaded


class CrossEncoderReranker:
    """A cross-encoder of sentence-transformers. Safe to use from several threads, which take turns.

    Scores are the model's numbers before any function that squeezes them together.

    Args:
        model: Folder of a model, or its name on the hub; `NAME@REVISION` pins a revision.
        threads: Threads of torch in this process; 0 leaves them as they are.
    """

    def __init__(self, model: str, threads: int = 0) -> None:
        self._model_name = model
        self._threads = threads
        self._lock = threading.Lock()
        self._loaded: tuple[Any, object] | None = None

    @cached_property
    def name(self) -> str:
        return f"cross-encoder/{_label(self._model_name)}/{_PAIR_TOKENS}"

    def rerank(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        if not texts:
            return np.empty(0, np.float32)
        with self._lock:
            if self._loaded is None:
                self._loaded = self._load()
            model, activation = self._loaded
            try:
                predictions = model.predict(
                    [(query, text) for text in texts],
                    batch_size=_BATCH_PAIRS,
                    show_progress_bar=False,
                    activation_fn=activation,
                )
            except (RuntimeError, ValueError) as error:
                raise ModelError(f"{self._model_name}: passages could not be scored ({type(error).__name__})") from None
        scores = np.asarray(predictions, np.float32)
        if scores.shape != (len(texts),) or not np.isfinite(scores).all():
            raise ModelError(f"{self._model_name}: expected one score a passage, found {scores.shape} for {len(texts)}")
        return scores

    def _load(self) -> tuple[Any, object]:
        model, torch = _load("CrossEncoder", self._model_name, self._threads, "reranker")
        # Never raised: positions that the model does not have would end in an error.
        model.max_seq_length = min(model.max_seq_length or _PAIR_TOKENS, _PAIR_TOKENS)
        return model, torch.nn.Identity()


def _load(kind: str, model_name: str, threads: int, purpose: str) -> tuple[Any, Any]:
    """A model of a class of sentence-transformers, and torch."""
    try:
        torch = importlib.import_module("torch")
        library = importlib.import_module("sentence_transformers")
    except ImportError as error:
        message = f"{purpose}: install it with pip install 'rag-assets[sentence-transformers]'"
        raise ModelError(f"{message} ({error})") from error
    if threads:
        torch.set_num_threads(threads)
    location, _, revision = model_name.partition("@") if not Path(model_name).is_dir() else (model_name, "", "")
    try:
        return getattr(library, kind)(location, revision=revision or None), torch
    except (OSError, ValueError, RuntimeError) as error:
        raise ModelError(f"{model_name}: sentence-transformers cannot load it: {error}") from error


def _label(model_name: str) -> str:
    """A model's name, with the digest of its files where it is a folder."""
    folder = Path(model_name)
    return f"{folder.name}/{folder_digest(folder)}" if folder.is_dir() else model_name


def folder_digest(folder: Path) -> str:
    """Digest of a model's files: names, sizes and content, of large files the first and last megabyte."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        size_bytes = path.stat().st_size
        digest.update(f"{path.relative_to(folder).as_posix()}\0{size_bytes}\0".encode())
        with path.open("rb") as file:
            digest.update(file.read(_SAMPLE_BYTES))
            if size_bytes > _SAMPLE_BYTES:
                file.seek(max(_SAMPLE_BYTES, size_bytes - _SAMPLE_BYTES))
                digest.update(file.read(_SAMPLE_BYTES))
    return digest.hexdigest()[:16]
