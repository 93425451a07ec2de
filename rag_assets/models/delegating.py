"""A language model that delegates to another one, and does something to each request or answer that passes."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from rag_assets.contracts.generation import Completion, Request
from rag_assets.contracts.ports import LanguageModel, Session
from rag_assets.models.dispatch import answers


class DelegatingModel(ABC):
    """See `LanguageModel`; everything is that of the inner model, except what `_around` does."""

    def __init__(self, inner: LanguageModel) -> None:
        self._inner = inner

    @property
    def name(self) -> str:
        """Provider and model."""
        return self._inner.name

    @property
    def generative(self) -> bool:
        """Whether it writes at all."""
        return self._inner.generative

    @property
    def context_tokens(self) -> int:
        """Tokens of prompt and answer together, at most; a server may be asked for it."""
        return self._inner.context_tokens

    @property
    def output_tokens(self) -> int:
        """Tokens of an answer at most; a server may be asked for it."""
        return self._inner.output_tokens

    @abstractmethod
    def _around(self, session: Session) -> Session:
        """The session around one of the inner model."""

    @contextmanager
    def session(self) -> Iterator[Session]:
        with self._inner.session() as session:
            yield self._around(session)

    def generate(self, requests: Iterable[Request]) -> Iterator[Completion]:
        with self.session() as session:
            yield from answers(session, requests)

    def count_tokens(self, requests: Sequence[Request]) -> list[int]:
        return self._inner.count_tokens(requests)
