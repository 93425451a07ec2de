"""Embedders behind OpenAI's embeddings route: OpenAI's own, and servers such as llama.cpp and vLLM."""

import base64
import hashlib
import json
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rag_assets.contracts.errors import ModelError
from rag_assets.contracts.ports import EmbeddingKind
from rag_assets.models.openai.endpoint import Endpoint, ServerTokenizer
from rag_assets.models.providers import sendable
from rag_assets.text.tokens import estimate_tokens

if TYPE_CHECKING:
    from openai import OpenAI

_BATCH_TEXTS = 32
_BATCHES = 4  # at once
_SPECIAL_TOKENS = 2
_CHARS_PER_TOKEN = 16  # more of a text than this times its window is not looked at
_BLANK = " "  # servers refuse empty texts


@dataclass(frozen=True)
class EmbeddingsRoute:
    """Where texts are embedded, and how they are prepared."""

    endpoint: Endpoint
    query_prefix: str  # text put before a query
    passage_prefix: str  # text put before a passage
    window_tokens: int  # tokens that the model sees, prefix and special tokens included


class OpenAIEmbedder:
    """A model behind OpenAI's embeddings route. Safe to use from several threads.

    Texts longer than the window are cut, by the server's tokenizer where it has one, else by an estimate that rather
    cuts too much. Whether the digits of a vector depend on the texts beside it is up to the server.

    Args:
        model: Name of the model there; may be empty for a server of one's own: the first that it lists.
        route: Where it is, and how texts are prepared.
    """

    def __init__(self, model: str, route: EmbeddingsRoute) -> None:
        self._endpoint = route.endpoint
        self._prefixes = {EmbeddingKind.QUERY: route.query_prefix, EmbeddingKind.PASSAGE: route.passage_prefix}
        self._window_tokens = route.window_tokens
        self._tokenizer = ServerTokenizer(route.endpoint, model)

    @cached_property
    def name(self) -> str:
        facts = json.dumps([*self._prefixes.values(), self._window_tokens])
        return f"openai/{self._tokenizer.model}@{self._endpoint.place}/{hashlib.sha256(facts.encode()).hexdigest()[:8]}"

    @cached_property
    def dimension(self) -> int:
        return len(self._rows(["dimension"])[0])

    @cached_property
    def window_tokens(self) -> int:
        longest = max(self.count_tokens([prefix for prefix in self._prefixes.values() if prefix]), default=0)
        return max(1, self._window_tokens - _SPECIAL_TOKENS - longest)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        if not texts:
            return []
        counts = self._tokenizer.count_texts(texts)
        return [estimate_tokens(text) for text in texts] if counts is None else counts

    def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> NDArray[np.float32]:
        if not texts:
            return np.empty((0, self.dimension), np.float32)
        prefix = self._prefixes[kind]
        vectors = self._rows([prefix + text or _BLANK for text in self._cut(texts)])
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not (np.isfinite(lengths) & (lengths > 0)).all():
            raise ModelError(f"{self._endpoint.place}: {self._tokenizer.model} gives vectors without length")
        unit_vectors: NDArray[np.float32] = vectors / lengths
        return unit_vectors

    def _cut(self, texts: Sequence[str]) -> Iterator[str]:
        """Texts that fit the window. A token is one byte at least, so that short ones need no tokenizer."""
        room = self.window_tokens
        texts = [sendable(text)[: room * _CHARS_PER_TOKEN] for text in texts]
        long_ones = [place for place, text in enumerate(texts) if len(text.encode()) > room]
        counts = dict(zip(long_ones, self.count_tokens([texts[place] for place in long_ones]), strict=True))
        for place, text in enumerate(texts):
            if counts.get(place, 0) <= room:
                yield text
            else:
                # Tokens grow with the text, but for one or two where a cut splits a word.
                ends = range(1, len(text) + 1)
                yield text[: bisect_right(ends, room, key=lambda end: self.count_tokens([text[:end]])[0])]

    def _rows(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of texts as the server gives them, in the order of the texts."""
        batches = [texts[start : start + _BATCH_TEXTS] for start in range(0, len(texts), _BATCH_TEXTS)]
        with (
            self._endpoint.client(doing="embedder", sent=texts) as client,
            ThreadPoolExecutor(min(_BATCHES, len(batches)), "embed") as executor,
        ):
            rows = [row for batch in executor.map(lambda batch: self._call(client, batch), batches) for row in batch]
        if len({row.shape for row in rows}) != 1 or rows[0].ndim != 1:
            raise ModelError(f"{self._endpoint.place}: {self._tokenizer.model} gives vectors of several lengths")
        return np.stack(rows)

    def _call(self, client: "OpenAI", texts: Sequence[str]) -> list[NDArray[np.float32]]:
        # Servers that do not know base64 send lists of numbers.
        body = {"model": self._tokenizer.model, "input": list(texts), "encoding_format": "base64"}
        answer = client.post("/embeddings", cast_to=object, body=body)
        data = answer.get("data") if isinstance(answer, dict) else None
        try:
            rows = {row["index"]: _vector(row["embedding"]) for row in data or ()}
        except (TypeError, KeyError, ValueError):
            rows = {}
        if rows.keys() != set(range(len(texts))):
            raise ModelError(
                f"{self._endpoint.place}: {self._tokenizer.model} gives {len(rows)} vectors for {len(texts)} texts"
            )
        return [rows[place] for place in range(len(texts))]


def _vector(data: str | list[float]) -> NDArray[np.float32]:
    return np.frombuffer(base64.b64decode(data), "<f4") if isinstance(data, str) else np.array(data, np.float32)
