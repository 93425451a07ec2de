"""A language model for one query: its calls are written into the trace, and end when the query is given up."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rag_assets.contracts.errors import BudgetError, ModelError
from rag_assets.contracts.generation import Completion, Outcome, Request
from rag_assets.contracts.ports import LanguageModel, Session
from rag_assets.models.structured import DelegatingModel
from rag_assets.query.cancellation import Cancellation
from rag_assets.query.results import ModelCall, TraceRecorder


class WatchedModel(DelegatingModel):
    """See `LanguageModel`. Once the model as a whole has failed, further requests of the query fail at once.

    Args:
        inner: The model.
        trace: Told of every answer and failure.
        cancellation: Whether the query was given up; then sessions raise `Cancelled`.
    """

    def __init__(self, inner: LanguageModel, trace: TraceRecorder, cancellation: Cancellation) -> None:
        super().__init__(inner)
        self._trace = trace
        self.cancellation = cancellation
        self.failure: ModelError | None = None

    @contextmanager
    def session(self) -> Iterator[Session]:
        """Open a session that ends when the query is given up."""
        with super().session() as session, self.cancellation.ends(session):
            yield session

    def _around(self, session: Session) -> Session:
        return _WatchedSession(session, self)

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
            round(completion.seconds, 3),
        )
        self._trace.calls.append(call)


class _WatchedSession:
    def __init__(self, session: Session, model: WatchedModel) -> None:
        self._session = session
        self._model = model
        self._under_way: list[tuple[Request, float]] = []

    def submit(self, request: Request) -> None:
        self._model.cancellation.check()
        if self._model.failure is not None:
            raise self._model.failure
        self._under_way.append((request, time.monotonic()))
        try:
            self._session.submit(request)
        except BudgetError:
            self._under_way.pop()  # it was not sent
            raise
        except ModelError as error:
            self._note_failure(error, [self._under_way.pop()])
            raise

    def take(self, *, wait: bool) -> Completion | None:
        try:
            completion = self._session.take(wait=wait)
        except BudgetError:
            raise
        except ModelError as error:
            self._note_failure(error, self._under_way)
            self._under_way = []
            raise
        self._model.cancellation.check()
        if completion is not None:
            self._model.note(completion)
            answered_entry = next((entry for entry in self._under_way if entry[0] == completion.request), None)
            if answered_entry is not None:
                self._under_way.remove(answered_entry)
        return completion

    def cancel(self) -> None:
        self._session.cancel()

    def _note_failure(self, error: ModelError, requests: list[tuple[Request, float]]) -> None:
        """Note requests that the model as a whole failed to answer."""
        self._model.cancellation.check()
        self._model.failure = error
        now = time.monotonic()
        for request, began in requests:
            self._model.note(Completion(request, Outcome.FAILED, seconds=now - began))
