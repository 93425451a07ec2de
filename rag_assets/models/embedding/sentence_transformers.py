"""Any model that sentence-transformers can load, as an embedder (extra `sentence-transformers`).

What stays out: the default embedder, which needs no torch (`embedders`).
"""

import hashlib
import importlib
import re
import threading
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Protocol

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


class _HubTokenizer(Protocol):
    def __call__(self, texts: list[str], *, add_special_tokens: bool, verbose: bool) -> dict[str, list[list[int]]]: ...

    def num_special_tokens_to_add(self) -> int: ...


class _Model(Protocol):
    prompts: dict[str, str]
    max_seq_length: int | None
    tokenizer: _HubTokenizer

    def encode(
        self,
        texts: list[str],
        *,
        prompt: str,
        batch_size: int,
        normalize_embeddings: bool,
        show_progress_bar: bool,
    ) -> NDArray[np.float32]: ...

    def get_sentence_embedding_dimension(self) -> int | None: ...


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
        self._loaded: _Model | None = None

    @cached_property
    def name(self) -> str:
        folder = Path(self._model_name)
        if folder.is_dir():
            return f"sentence-transformers/{folder.name}/{folder_digest(folder)}"
        return f"sentence-transformers/{self._model_name}"

    @property
    def dimension(self) -> int:
        model = self._model
        # Renamed in sentence-transformers 6; the old name warns there.
        stated = getattr(model, "get_embedding_dimension", None) or model.get_sentence_embedding_dimension
        dimension: int | None = stated()
        if dimension is None:
            raise ModelError(f"{self._model_name}: the model does not state the length of its vectors")
        return dimension

    @cached_property
    def window_tokens(self) -> int:
        with self._lock:
            model = self._model
            prompts = [self._prompt(kind) for kind in EmbeddingKind]
            longest = max(self.count_tokens(prompts))
            return (model.max_seq_length or 512) - model.tokenizer.num_special_tokens_to_add() - longest

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        if not texts:
            return []
        with self._lock:
            encoded = self._model.tokenizer(list(texts), add_special_tokens=False, verbose=False)
        return [len(ids) for ids in encoded["input_ids"]]

    def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> NDArray[np.float32]:
        """Embed texts; see `Embedder.embed`."""
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
                return prompt
        if _E5_NAME.search(Path(self._model_name).name):
            return f"{kind}: "
        return ""

    @property
    def _model(self) -> _Model:
        with self._lock:
            if self._loaded is None:
                self._loaded = _load(self._model_name, self._threads)
            return self._loaded


def _load(model_name: str, threads: int) -> _Model:
    try:
        torch = importlib.import_module("torch")
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        message = "embedder sentence-transformers: install it with pip install 'rag-assets[sentence-transformers]'"
        raise ModelError(f"{message} ({error})") from error
    if threads:
        torch.set_num_threads(threads)
    location, _, revision = model_name.partition("@") if not Path(model_name).is_dir() else (model_name, "", "")
    try:
        model: _Model = SentenceTransformer(location, revision=revision or None)
    except (OSError, ValueError, RuntimeError) as error:
        raise ModelError(f"{model_name}: sentence-transformers cannot load it: {error}") from error
    return model


def folder_digest(folder: Path) -> str:
    """Digest of a model's files: names, sizes and content, of large files the first and last megabyte."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        digest.update(f"{path.relative_to(folder).as_posix()}\0{path.stat().st_size}\0".encode())
        for sample in _samples(path):
            digest.update(sample)
    return digest.hexdigest()[:16]


def _samples(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield file.read(_SAMPLE_BYTES)
        if path.stat().st_size > _SAMPLE_BYTES:
            file.seek(max(_SAMPLE_BYTES, path.stat().st_size - _SAMPLE_BYTES))
            yield file.read(_SAMPLE_BYTES)
