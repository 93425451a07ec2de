"""The interfaces behind which models stand. Implementations live in `rag_assets.models`."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rag_assets.contracts.generation import Completion, Request


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


class Session(Protocol):
    """Requests under way at a language model, for work in which an answer leads to further requests."""

    def submit(self, request: Request) -> None:
        """Hand over a request; waits while as many are under way as the model takes at once.

        Raises:
            ModelError: The model takes no more (unreachable, no access, budget spent); those under way can still be
                taken.
        """
        ...

    def take(self, *, wait: bool) -> Completion | None:
        """The next answer.

        A request that fails by itself is a completion that says so.

        Returns:
            None where none has come (without waiting), or nothing is under way (waiting).

        Raises:
            ModelError: The model as a whole cannot be used, and every answer that had come has been taken.
        """
        ...

    def cancel(self) -> None:
        """Give up what is under way; may be called from any thread, while others submit or take.

        From then on nothing is waited for: `submit` raises `ModelError`, `take` gives what had come and then None. No
        answer that has come is lost.
        """
        ...


class LanguageModel(Protocol):
    """Writes texts.

    Attributes:
        name: Provider and model, as in `anthropic:claude-haiku-4-5`, with all that changes its answers. Answers of two
            models of one name are interchangeable; stored answers are keyed by it.
        generative: Whether it writes at all; False tells steps to use their algorithm without a model.
        context_tokens: Tokens of prompt and answer together, at most.
        output_tokens: Tokens of an answer at most.
    """

    @property
    def name(self) -> str: ...

    @property
    def generative(self) -> bool: ...

    @property
    def context_tokens(self) -> int: ...

    @property
    def output_tokens(self) -> int: ...

    def session(self) -> AbstractContextManager[Session]:
        """Open a session. Leaving it gives up what is under way, but loses no answer that has come."""
        ...

    def generate(self, requests: Iterable[Request]) -> Iterator[Completion]:
        """Answer requests, in whatever order the answers come.

        All requests of a step are handed over at once, so that concurrency, a batch interface or a GPU batch can be
        used. They are taken as they are needed, never all into memory.

        Raises:
            ModelError: The model as a whole cannot be used (unreachable, no access, budget spent). Answers that had
                come are yielded before; asking again goes on where it stopped.
        """
        ...

    def count_tokens(self, requests: Sequence[Request]) -> list[int]:
        """Tokens of each request as the model reads it, system text included.

        Raises:
            ModelError: The model cannot be reached.
        """
        ...


class Reranker(Protocol):
    """Scores passages for a query by reading both together.

    Attributes:
        name: Identifies the model.
    """

    @property
    def name(self) -> str: ...

    def rerank(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """Score texts; higher is better.

        Returns:
            float32 array of shape `(len(texts),)`, in the order given.

        Raises:
            ModelError: The model failed.
        """
        ...


@dataclass(frozen=True)
class PlacedStatement:
    """A statement of a document, with what it stands under."""

    text: str  # what is said
    place: str = ""  # names of the document and of the part of it
    context: str = ""  # headings, or names of columns, above it


class AnswerScorer(Protocol):
    """Tells how surely statements answer a question, by reading each together with the question."""

    def score(self, question: str, statements: Sequence[PlacedStatement]) -> NDArray[np.float32]:
        """Score statements.

        Returns:
            float32 array of shape `(len(statements),)`: the logarithm of how much likelier a statement is to answer
            than that none does.

        Raises:
            ModelError: The model failed.
        """
        ...


@dataclass(frozen=True)
class Turn:
    """An earlier question of a conversation."""

    question: str  # as asked
    answer: str = ""  # what was answered; may be empty


@dataclass(frozen=True)
class Rewrite:
    """What is searched for in place of a question."""

    keywords: str  # for full text; empty where there is nothing better than the question
    sentences: str  # for vectors; empty where there is nothing better than the question


class Rewriter(Protocol):
    """Turns a question into what is searched for.

    Attributes:
        name: Identifies the rewriter and all that changes what it writes.
    """

    @property
    def name(self) -> str: ...

    def rewrite(self, question: str, history: Sequence[Turn]) -> Rewrite:
        """Rewrite a question so that it can be searched without the conversation before it, the oldest turn first.

        Raises:
            ModelError: The model failed or gave no answer that can be used.
        """
        ...
