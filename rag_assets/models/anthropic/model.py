"""Models of Anthropic, and of servers with the same interface, called one request at a time or in batches."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rag_assets.contracts.errors import ModelError
from rag_assets.contracts.generation import Completion, Request
from rag_assets.contracts.ports import Session
from rag_assets.models.anthropic.batches import BatchSession, OpenCalls
from rag_assets.models.anthropic.messages import (
    call_errors,
    completion_of,
    message_params,
    open_async_client,
    open_client,
    sampling,
    version_headers,
)
from rag_assets.models.anthropic.open_batches import BatchSettings, OpenBatches
from rag_assets.models.catalogue import ModelFacts
from rag_assets.models.providers import CallBudget, CallError, CallProblem, Keep

if TYPE_CHECKING:
    from anthropic import Anthropic
    from anthropic.types import Message

_COUNTING_THREADS = 8
_COUNTING_RETRIES = 5


class AnthropicCaller:
    """Calls a model once a request; see `Caller`.

    Raises:
        SettingsError: There is no key.
    """

    def __init__(
        self, model: str, facts: ModelFacts, api_key: str | None, base_url: str, timeout_seconds: float
    ) -> None:
        self._model = model
        self._facts = facts
        self._timeout_seconds = timeout_seconds
        self._client = open_async_client(api_key, base_url, timeout_seconds)

    async def call(self, request: Request) -> Completion:
        from anthropic.types import Message

        with call_errors(self._client, request):
            arguments: dict[str, Any] = {  # the type of the body allows a `stream` of its own
                **message_params(self._model, self._facts, request),
                "extra_body": sampling(request) or None,
                "extra_headers": version_headers(temperature=request.temperature is not None),
            }
            async with asyncio.timeout(self._timeout_seconds):
                if request.progress is not None:
                    message: Message = await self._stream(arguments, request.progress)
                else:
                    message = await self._client.messages.create(**arguments)
        if not isinstance(message, Message) or not isinstance(message.content, list):
            raise CallError(CallProblem.UNAVAILABLE, "anthropic: expected a message, found something else")
        return completion_of(request, message, self._facts.prices)

    async def _stream(self, arguments: dict[str, Any], progress: Callable[[str], None]) -> "Message":
        """A message that comes in pieces."""
        text, has_ended = "", False
        async with self._client.messages.stream(**arguments) as events:
            async for event in events:
                if event.type == "text":
                    text += event.text
                    progress(text)
                has_ended = has_ended or event.type == "message_stop"
            if not has_ended:
                raise CallError(CallProblem.UNAVAILABLE, "anthropic: its answer broke off")
            return await events.get_final_message()

    async def close(self) -> None:
        await self._client.close()


@dataclass(frozen=True, eq=False)
class AnthropicModel:
    """A model of Anthropic; see `Provider`."""

    name: str
    model: str
    facts: ModelFacts
    api_key: str | None = field(repr=False)
    base_url: str
    timeout_seconds: float
    batch: str  # when sessions use batches: `never`, `always` or `auto`
    batches: BatchSettings
    open_calls: OpenCalls

    def open(self, keep: Keep, budget: CallBudget) -> AbstractContextManager[Session]:
        if self.batch == "never":
            return self.open_calls(keep, budget)
        batches = OpenBatches(self._client, self.name, self.model, self.facts, self.batches)
        return BatchSession(batches, keep, budget, open_calls=self.open_calls if self.batch == "auto" else None)

    def count_tokens(self, requests: Sequence[Request]) -> list[int]:
        if not requests:
            return []
        with ThreadPoolExecutor(min(_COUNTING_THREADS, len(requests)), "count-tokens") as executor:
            return list(executor.map(self._count_tokens, requests))

    def _count_tokens(self, request: Request) -> int:
        from anthropic import omit

        params = message_params(self.model, self.facts, request)
        try:
            with call_errors(self._client, request):
                count = self._client.with_options(max_retries=_COUNTING_RETRIES).messages.count_tokens(
                    model=params["model"],
                    messages=params["messages"],
                    system=params.get("system", omit),
                    output_config=params.get("output_config", omit),
                    thinking=params.get("thinking", omit),
                )
        except CallError as error:
            raise ModelError(str(error)) from None
        return count.input_tokens

    @cached_property
    def _client(self) -> "Anthropic":
        return open_client(self.api_key, self.base_url, self.timeout_seconds)
