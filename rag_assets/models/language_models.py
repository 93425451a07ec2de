"""Builds the language model that the settings name, with all that stands around a provider."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from rag_assets.contracts.errors import ModelError, SettingsError
from rag_assets.contracts.generation import Completion, Request
from rag_assets.contracts.ports import LanguageModel, Session
from rag_assets.models.attempts import Pacing
from rag_assets.models.catalogue import ModelFacts, model_facts
from rag_assets.models.structured import NO_REPEATS, Repeats

if TYPE_CHECKING:
    from rag_assets.models.accounts.budget import Budget
    from rag_assets.models.accounts.database import StateDatabase
    from rag_assets.models.accounts.ledger import Ledger
    from rag_assets.models.providers import CallBudget, Caller, Keep, Provider

_CHECK_SECONDS = 5.0


@dataclass(frozen=True)
class ModelChoice:
    """Which language model, and how it is called; see the settings of the same names."""

    provider: str
    model: str
    base_url: str
    api_key: str | None
    catalogue: Path | None
    context_tokens: int
    temperature: float | None
    concurrency: int
    requests_per_minute: int
    tokens_per_minute: int
    attempts: int
    timeout_seconds: float
    batch: str
    batch_from: int
    batch_requests: int
    batch_poll_seconds: float
    patience_seconds: float = math.inf  # how long a provider that cannot answer is tried; see `Pacing.deadline`
    outage_seconds: float = Pacing.outage  # how long one that has answered in a run is waited for; see `Pacing.outage`
    repeats: Repeats = NO_REPEATS  # how often the same is asked again whose answer was of no use

    @property
    def name(self) -> str:
        """What stored answers are keyed by: provider, model, and host where it is not the provider's own."""
        if self.provider == "extractive":
            return self.provider
        host = urlsplit(self.base_url).netloc.rpartition("@")[2]
        return f"{self.provider}:{self.model}@{host}" if host else f"{self.provider}:{self.model}"

    @property
    def facts(self) -> ModelFacts | None:
        """Prices and limits that are known without asking anybody."""
        facts = model_facts(self.provider, self.model, self.catalogue)
        if facts is not None and self.context_tokens:
            facts = replace(facts, context_tokens=self.context_tokens)
        return facts


class ExtractiveModel:
    """The stand-in where no language model is configured; see `LanguageModel`.

    It writes nothing, so that steps use their own algorithms, and raises `ModelError` where it is asked.
    """

    name = "extractive"
    generative = False
    context_tokens = 0
    output_tokens = 0

    def session(self) -> AbstractContextManager[Session]:
        raise _refusal()

    def generate(self, requests: Iterable[Request]) -> Iterator[Completion]:  # noqa: ARG002 - of the protocol
        raise _refusal()

    def count_tokens(self, requests: Sequence[Request]) -> list[int]:  # noqa: ARG002 - of the protocol
        raise _refusal()


def _refusal() -> ModelError:
    return ModelError(
        "this needs a language model: set language_model.provider (RAG_LANGUAGE_MODEL__PROVIDER) to anthropic, "
        "openai or vllm"
    )


def load_language_model(choice: ModelChoice, ledger: "Ledger", budget: "Budget") -> LanguageModel:
    """Build a language model, with all that stands around its provider.

    Raises:
        SettingsError: The settings do not fit, or a package is missing.
    """
    if choice.provider == "extractive":
        return ExtractiveModel()
    from rag_assets.models.metered import MeteredModel
    from rag_assets.models.structured import StructuredModel

    if budget.limited:
        check_price(choice)
    metered_model = MeteredModel(load_provider(choice, ledger), ledger, budget)
    return StructuredModel(metered_model, choice.temperature, partial(ledger.note, metered_model.name), choice.repeats)


def check_price(choice: ModelChoice) -> None:
    """Raise a `SettingsError` where the price of a model is not known, as it must be with a budget."""
    if choice.facts is None and choice.provider not in {"extractive", "vllm"}:
        raise SettingsError(
            f"a budget needs the price of {choice.provider} model {choice.model!r}: state it in the file of "
            "language_model.catalogue, 0 for a server of your own"
        )


def check_reachable(choice: ModelChoice) -> None:
    """Find out before work begins whether a server listens at the address of the model.

    Raises:
        ModelError: None does.
        SettingsError: The settings do not fit.
    """
    try:
        if choice.provider == "anthropic":
            from rag_assets.models.anthropic import messages as anthropic_messages

            anthropic_messages.check_reachable(choice.api_key, choice.base_url, _CHECK_SECONDS)
        elif choice.provider == "openai":
            from rag_assets.models.openai.endpoint import Endpoint

            Endpoint(choice.base_url, choice.api_key).check(_CHECK_SECONDS)
    except ModelError as error:
        raise ModelError(f"language model {choice.model}: {error}") from None


def load_provider(choice: ModelChoice, ledger: "Ledger") -> "Provider":
    """The provider alone: nothing is stored, counted or limited by a budget."""
    pacing = Pacing(outage=choice.outage_seconds, deadline=choice.patience_seconds, known=ledger.has_answers)
    if choice.provider == "anthropic":
        from rag_assets.models.anthropic.model import AnthropicCaller, AnthropicModel
        from rag_assets.models.anthropic.open_batches import BatchSettings

        facts = choice.facts or ModelFacts(choice.context_tokens or ModelFacts().context_tokens)
        access = (choice.api_key, choice.base_url, choice.timeout_seconds)
        make_caller = partial(AnthropicCaller, choice.model, facts, *access)
        is_primed = bool(facts.cache_prefix_tokens)
        batches = BatchSettings(
            ledger.database, choice.batch_from, choice.batch_requests, choice.batch_poll_seconds, choice.attempts
        )
        return AnthropicModel(
            choice.name,
            choice.model,
            facts,
            *access,
            batch=choice.batch,
            batches=batches,
            open_calls=partial(open_session, choice, ledger.database, pacing, make_caller, prime_prefixes=is_primed),
        )
    if choice.provider == "openai":
        from rag_assets.models.openai.endpoint import Endpoint
        from rag_assets.models.openai.model import OpenAIModel
        from rag_assets.models.providers import TIMEOUT_SETTING

        endpoint = Endpoint(choice.base_url, choice.api_key, choice.timeout_seconds, TIMEOUT_SETTING)
        open_calls = partial(open_session, choice, ledger.database, pacing)
        return OpenAIModel(endpoint, choice.model, open_calls, choice.catalogue, choice.context_tokens, pacing)
    from rag_assets.models.vllm import VllmModel

    return VllmModel(choice.model, choice.catalogue, choice.context_tokens)


def open_session(
    choice: ModelChoice,
    database: "StateDatabase",
    pacing: Pacing,
    make_caller: "Callable[[], Caller]",
    keep: "Keep",
    budget: "CallBudget",
    *,
    prime_prefixes: bool = False,
) -> AbstractContextManager[Session]:
    """A session of single calls within the limits of the settings."""
    from rag_assets.models.dispatch import ConcurrentSession
    from rag_assets.models.rate_limit import RateLimit

    return ConcurrentSession(
        make_caller,
        keep,
        budget,
        name=choice.name,
        concurrency=choice.concurrency,
        attempts=choice.attempts,
        timeout_seconds=choice.timeout_seconds,
        rate_limit=RateLimit(database, choice.name, choice.requests_per_minute, choice.tokens_per_minute),
        prime_prefixes=prime_prefixes,
        pacing=pacing,
    )
