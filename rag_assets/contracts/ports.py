"""The interfaces behind which models stand. Implementations live in `rag_assets.models`."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class EmbeddingKind(StrEnum):
    """Which side of a search a text is on; asymmetric models prefix it accordingly."""

    QUERY = "query"
    PASSAGE = "passage"


class Tokenizer(Protocol):
    """Measures texts in tokens of an embedder."""

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text, without prefix and special tokens, not cut to the window."""
        ...


class Embedder(Tokenizer, Protocol):
    """Turns texts into vectors of one length.

    Attributes:
        name: Identifies model, weights and numerics. Vectors of two embedders of one name are interchangeable;
            stored vectors are keyed by it.
        dimension: Length of a vector.
        window_tokens: Tokens of a text that the model sees, prefix and special tokens taken off; the rest is cut.
    """

    @property
    def name(self) -> str: ...

    @property
    def dimension(self) -> int: ...

    @property
    def window_tokens(self) -> int: ...

    def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> NDArray[np.float32]:
        """Embed texts.

        Args:
            texts: Any number of texts of any length, empty ones included.
            kind: Whether they are queries or passages.

        Returns:
            float32 array of shape `(len(texts), dimension)`, rows of unit length, in the order given. The vector of a
            text does not depend on the texts beside it.

        Raises:
            ModelError: The model failed.
        """
        ...
