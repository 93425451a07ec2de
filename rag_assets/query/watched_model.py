"""A language model whose calls are written into the trace of one query.

What stays out: the ledger of all calls, which is kept around the provider (`rag_assets.models.metered`).
"""

from rag_assets.contracts.generation import Completion, Request
from rag_assets.contracts.ports import LanguageModel, Session
from rag_assets.models.wrapped import WrappedModel
from rag_assets.query.results import ModelCall, TraceRecorder


class WatchedModel(WrappedModel):
    """See `LanguageModel`.

    Args:
        inner: The model.
        trace: Told of every answer.
    """

    def __init__(self, inner: LanguageModel, trace: TraceRecorder) -> None:
        super().__init__(inner)
        self._trace = trace

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
