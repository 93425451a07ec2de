"""A language model whose calls are written into the trace of one query.

What stays out: the ledger of all calls, which is kept around the provider (`rag_assets.models.metered`).
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from rag_assets.contracts.generation import Completion, Request
from rag_assets.contracts.ports import LanguageModel, Session
from rag_assets.query.results import ModelCall, TraceRecorder


class WatchedModel:
    """See `LanguageModel`.

    Args:
        inner: The model.
        trace: Told of every answer.
    """

    def __init__(self, inner: LanguageModel, trace: TraceRecorder) -> None:
        self._inner = inner
        self._trace = trace

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
        """Tokens of prompt and answer together, at most."""
        return self._inner.context_tokens

    @property
    def output_tokens(self) -> int:
        """Tokens of an answer at most."""
        return self._inner.output_tokens

    @contextmanager
    def _open(self) -> Iterator[Session]:
        with self._inner.session() as session:
            yield _WatchedSession(session, self)

    def session(self) -> AbstractContextManager[Session]:
        """Open a session, see `LanguageModel`."""
        return self._open()

    def generate(self, requests: Iterable[Request]) -> Iterator[Completion]:
        """Answer requests, see `LanguageModel`."""
        for completion in self._inner.generate(requests):
            self.note(completion)
            yield completion

    def count_tokens(self, requests: Sequence[Request]) -> list[int]:
        """Tokens of each request, see `LanguageModel`."""
        return self._inner.count_tokens(requests)

    def note(self, completion: Completion) -> None:
        """Write a call into the trace."""
        provider, _, model = self.name.partition(":")
        usage = completion.usage
        call = ModelCall(
            completion.request.tag.step,
            provider,
            model,
            completion.outcome.value,
            completion.stored,
            usage.input_tokens + usage.cache_write_tokens,
            usage.cache_read_tokens,
            usage.output_tokens,
            completion.cost_usd,
            completion.seconds,
        )
        self._trace.calls.append(call)


class _WatchedSession:
    def __init__(self, session: Session, model: WatchedModel) -> None:
        self._session = session
        self._model = model

    def submit(self, request: Request) -> None:
        self._session.submit(request)

    def take(self, *, wait: bool) -> Completion | None:
        completion = self._session.take(wait=wait)
        if completion is not None:
            self._model.note(completion)
        return completion
