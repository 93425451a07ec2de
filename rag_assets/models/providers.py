"""What a provider of a language model must do, and what providers have in common: kinds of errors, texts of messages.

Stored answers, ledger and budget stand around every provider (`metered`), retries and limits around those that are
called one request at a time (`dispatch`).
"""

import math
import os
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import Protocol

from rag_assets.contracts.generation import Completion, Request
from rag_assets.contracts.ports import Session
from rag_assets.models.catalogue import ModelFacts
from rag_assets.text.plain import one_line

Keep = Callable[[Sequence[Completion]], None]

_KEY_VARIABLES = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")
_KEY_CHARS = 8  # what is shorter guards nothing, and may be part of any word
_LONE_SURROGATES = re.compile("[\ud800-\udfff]")


class CallBudget(Protocol):
    """What the calls of a session may cost. For the thread that uses the session."""

    def reserve(self, request: Request, *, batch: bool = False) -> None:
        """Set aside the most that a call may cost, in a batch or alone, in place of what was for its request before.

        Raises:
            BudgetError: There is not enough left; what was set aside before still is.
            ClaimedError: Another process or thread asks the same, and nothing was set aside for it before.
        """
        ...

    def send(self, requests: Iterable[Request]) -> None:
        """Take note that calls are being sent, which the provider may charge for from now on; for any thread."""
        ...

    def release(self, requests: Iterable[Request]) -> None:
        """Set nothing aside any longer: what these calls may cost is written down with the batch that they are in."""
        ...


class ClaimedError(Exception):
    """The same request is being asked, or has just been answered, elsewhere: its answer is worth waiting for.

    Args:
        request: Which one. `Session.take` raises it of a request that was submitted before, and goes on when it is
            called again; nothing more comes of that request.
    """

    def __init__(self, request: Request) -> None:
        super().__init__()
        self.request = request


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

    def open(self, keep: Keep, budget: CallBudget) -> AbstractContextManager[Session]:
        """Open a session.

        Args:
            keep: Called with answers as they arrive, from any thread, before they can be taken, so that what was paid
                for outlasts the process; those that arrive together are kept together. Failures are not kept.
            budget: Asked before a call is made. Where it refuses, `submit` raises, or `take` once there is nothing
                else to take.
        """
        ...

    def count_tokens(self, requests: Sequence[Request]) -> list[int]:
        """Tokens of each request as the model reads it, system text included.

        Raises:
            ModelError: The model cannot be reached.
        """
        ...


TIMEOUT_SETTING = "language_model.timeout_seconds"


def timeout_message(seconds: float, setting: str = TIMEOUT_SETTING) -> str:
    """What is said where no answer came in so many seconds, by a setting if any."""
    return f"no answer within {seconds:g} s" + (f" ({setting})" if setting else "")


def unreachable_message(error: BaseException) -> str:
    """What is said where no connection could be made, of which nothing was sent."""
    return f"is the server running? ({one_line(error) or type(error).__name__})"


def without_keys(text: str, *keys: str | None) -> str:
    """A text without the keys that were sent, or stand in the environment: servers repeat those that they refuse."""
    secrets = {*filter(None, keys), *(os.environ.get(name, "") for name in _KEY_VARIABLES)}
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _KEY_CHARS:
            text = text.replace(secret, "…")
    return text


def sendable(text: str) -> str:
    """Text that can be written as UTF-8: lone surrogates become U+FFFD."""
    return text if text.isascii() else _LONE_SURROGATES.sub("\ufffd", text)


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """When a provider asks to come back, from its headers; None where it does not say."""
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        try:
            seconds = float(headers.get(name, "")) / unit
        except ValueError:
            continue
        if 0 <= seconds < math.inf:
            return seconds
    try:
        return max(0.0, parsedate_to_datetime(headers.get("retry-after", "")).timestamp() - time.time())
    except ValueError:
        return None


class CallProblem(StrEnum):
    """Why an attempt at a call gave no answer."""

    RATE_LIMITED = "rate limited"  # 429: too many calls or tokens
    OVERLOADED = "overloaded"  # 529, 503: the provider has too much to do
    FULL = "full"  # what calls share for their context has no room for this one beside the others
    UNAVAILABLE = "unavailable"  # other 5xx, connection lost, no answer in time
    UNREACHABLE = "unreachable"  # nobody listens at its address: connection refused, no such host
    REJECTED = "rejected"  # this request will never be answered: 400, 413, 422
    DENIED = "denied"  # no request will be answered: 401, 402, 403, 404


STATUS_PROBLEMS = {
    401: CallProblem.DENIED,
    402: CallProblem.DENIED,
    403: CallProblem.DENIED,
    404: CallProblem.DENIED,
    408: CallProblem.UNAVAILABLE,
    409: CallProblem.UNAVAILABLE,
    429: CallProblem.RATE_LIMITED,
    503: CallProblem.OVERLOADED,
    529: CallProblem.OVERLOADED,
}


class CallError(Exception):
    """An attempt at a call gave no answer.

    Args:
        problem: Why.
        message: One line, without document text and keys.
        retry_after_seconds: When the provider asks to come back; None where it does not say.
    """

    def __init__(self, problem: CallProblem, message: str, retry_after_seconds: float | None = None) -> None:
        super().__init__(without_keys(message))
        self.problem = problem
        self.retry_after_seconds = retry_after_seconds


class Caller(Protocol):
    """A provider that answers one request a call. Built, used and closed within one event loop."""

    async def call(self, request: Request) -> Completion:
        """Make one attempt: the answer, its usage and price, without `seconds` and `called_at`.

        Raises:
            CallError: There is no answer.
        """
        ...

    async def close(self) -> None:
        """Close its connections."""
        ...
