"""What a provider of a language model must do. What stands around every provider (stored answers, ledger, budget) is
`rag_assets.models.metered`; retries and limits of providers that are called one request at a time are
`rag_assets.models.dispatch`.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from enum import StrEnum
from typing import Protocol

from rag_assets.contracts.generation import Completion, Request
from rag_assets.contracts.ports import Session
from rag_assets.models.catalogue import ModelFacts

Keep = Callable[[Completion], None]


class Provider(Protocol):
    """A language model as its provider offers it: nothing is stored, counted or limited by a budget.

    Attributes:
        name: Provider and model, as in `anthropic:claude-haiku-4-5`, with all that changes its answers.
        facts: Limits and prices.
    """

    @property
    def name(self) -> str: ...

    @property
    def facts(self) -> ModelFacts: ...

    def open(self, keep: Keep) -> AbstractContextManager[Session]:
        """Open a session.

        Args:
            keep: Called with each answer as it arrives, from any thread, before it can be taken, so that an answer that
                was paid for outlasts the process. Failures are not kept.
        """
        ...

    def count_tokens(self, requests: Sequence[Request]) -> list[int]:
        """Tokens of each request as the model reads it, system text included.

        Raises:
            ModelError: The model cannot be reached.
        """
        ...


class CallProblem(StrEnum):
    """Why an attempt at a call gave no answer."""

    RATE_LIMITED = "rate limited"  # 429: too many calls or tokens
    OVERLOADED = "overloaded"  # 529, 503: the provider has too much to do
    UNAVAILABLE = "unavailable"  # other 5xx, connection lost or refused, no answer in time
    REJECTED = "rejected"  # this request will never be answered: 400, 413, 422
    DENIED = "denied"  # no request will be answered: 401, 402, 403, 404


class CallError(Exception):
    """An attempt at a call gave no answer.

    Args:
        problem: Why.
        message: One line, without document text and keys.
        retry_after_seconds: When the provider asks to come back; None where it does not say.
    """

    def __init__(self, problem: CallProblem, message: str, retry_after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.problem = problem
        self.retry_after_seconds = retry_after_seconds


class Caller(Protocol):
    """A provider that answers one request a call. Built, used and closed within one event loop."""

    async def call(self, request: Request) -> Completion:
        """Make one attempt.

        Returns:
            The answer, its usage and price; `seconds` and `called_at` are set by the dispatcher.

        Raises:
            CallError: There is no answer.
        """
        ...

    async def close(self) -> None:
        """Close its connections."""
        ...
