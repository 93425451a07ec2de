"""Requests and answers of Anthropic's Messages API: what is sent, what comes back, and what its errors mean."""

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from rag_assets.contracts.errors import ModelError, SettingsError
from rag_assets.contracts.generation import Completion, Outcome, Request, Usage
from rag_assets.models.catalogue import ModelFacts, Prices, Thinking
from rag_assets.models.providers import (
    STATUS_PROBLEMS,
    CallError,
    CallProblem,
    retry_after_seconds,
    sendable,
    timeout_message,
    unreachable_message,
    without_keys,
)
from rag_assets.text.plain import one_line

if TYPE_CHECKING:
    from anthropic import Anthropic, APIStatusError, AsyncAnthropic
    from anthropic.types import Message, MessageParam, OutputConfigParam, TextBlockParam
    from anthropic.types.message_create_params import MessageCreateParamsNonStreaming

# The last version of the API that takes a temperature.
# Source: https://platform.claude.com/docs/en/api/versioning
_VERSION_OF_TEMPERATURE = "2023-06-01"
_ERROR_CHARS = 300
# A message of the provider that shares so many characters with the request may quote a document.
_QUOTED_CHARS = 24

_BY_TYPE = {
    "authentication_error": CallProblem.DENIED,
    "billing_error": CallProblem.DENIED,
    "permission_error": CallProblem.DENIED,
    "not_found_error": CallProblem.DENIED,
    "rate_limit_error": CallProblem.RATE_LIMITED,
    "overloaded_error": CallProblem.OVERLOADED,
    "api_error": CallProblem.UNAVAILABLE,
    "timeout_error": CallProblem.UNAVAILABLE,
    "invalid_request_error": CallProblem.REJECTED,
}


def open_client(api_key: str | None, base_url: str, timeout_seconds: float) -> "Anthropic":
    """A client that makes one attempt a call.

    Args:
        api_key: Key; None leaves it to the client's own environment variables and profiles.
        base_url: Address of the server; empty for the provider's.
        timeout_seconds: Seconds that an attempt may take.

    Raises:
        SettingsError: There is no key.
    """
    from anthropic import Anthropic

    client = Anthropic(
        api_key=_key(api_key, base_url), base_url=base_url or None, max_retries=0, timeout=timeout_seconds
    )
    _check_key(client)
    return client


def open_async_client(api_key: str | None, base_url: str, timeout_seconds: float) -> "AsyncAnthropic":
    """The same for one event loop, see `open_client`."""
    from anthropic import AsyncAnthropic, DefaultAsyncHttpxClient

    from rag_assets.models.http_pools import LIMITS, connection_pools

    client = AsyncAnthropic(
        api_key=_key(api_key, base_url),
        base_url=base_url or None,
        max_retries=0,
        timeout=timeout_seconds,
        http_client=DefaultAsyncHttpxClient(transport=connection_pools(), limits=LIMITS),
    )
    _check_key(client)
    return client


def check_reachable(api_key: str | None, base_url: str, seconds: float) -> None:
    """Find out whether a server listens; whatever it says within the seconds will do, and so will silence.

    Raises:
        ModelError: Nobody listens at the address.
        SettingsError: There is no key.
    """
    client = open_client(api_key, base_url, seconds)
    try:
        with call_errors(client):
            client.get("/v1/models", cast_to=object)
    except CallError as error:
        if error.problem is CallProblem.UNREACHABLE:
            raise ModelError(str(error)) from None


def message_params(model: str, facts: ModelFacts, request: Request) -> "MessageCreateParamsNonStreaming":
    """The body of a request, but for its temperature; lone surrogates are replaced."""
    params: MessageCreateParamsNonStreaming = {
        "model": model,
        "max_tokens": facts.written_tokens(request.max_tokens),
        "messages": _messages(request),
    }
    if system := _system(request, facts.cache_prefix_tokens):
        params["system"] = system
    if stop := [text for text in request.stop if text.strip()]:
        params["stop_sequences"] = stop
    output_config: OutputConfigParam = {}
    if request.schema is not None:
        output_config["format"] = {
            "type": "json_schema",
            "schema": _answer_schema(model, request.tag.step, request.schema),
        }
    if facts.thinking is Thinking.ALWAYS:
        output_config["effort"] = "low"
    elif facts.thinking is Thinking.DISABLED:
        params["thinking"] = {"type": "disabled"}
    elif facts.thinking is Thinking.BETWEEN_TOOLS:
        params["thinking"] = {"type": "between_tools"}
    if output_config:
        params["output_config"] = output_config
    return params


def _answer_schema(model: str, step: str, schema: str) -> dict[str, object]:
    """A JSON schema as the provider's models take it: bounds, which they reject, become part of the descriptions.

    Other models behind the same interface take bounds, and need them to come to an end.

    Raises:
        ModelError: The provider has no such schemas.
    """
    whole: dict[str, Any] = json.loads(schema)
    if not model.startswith("claude-"):
        return whole
    from anthropic import transform_schema

    try:
        return transform_schema(whole)
    except (ValueError, TypeError, AssertionError) as error:  # the last one on a type that it does not know
        line = one_line(error, _ERROR_CHARS)
        raise ModelError(f"anthropic:{model} cannot be asked for the answers of step {step}: {line}") from None


def sampling(request: Request) -> dict[str, object]:
    """The part of the body that the client's types no longer have; newer models reject it."""
    return {} if request.temperature is None else {"temperature": request.temperature}


def version_headers(*, temperature: bool) -> dict[str, str]:
    """Headers of a call: newer versions of the API reject a temperature whatever the model."""
    return {"anthropic-version": _VERSION_OF_TEMPERATURE} if temperature else {}


def completion_of(request: Request, message: "Message", prices: Prices, *, batch: bool = False) -> Completion:
    """What a message of the model says: the answer, without times and the id of a batch."""
    text = "".join(block.text for block in message.content if block.type == "text")
    for stop in request.stop:
        if not stop.strip():  # not taken by the provider
            text = text.partition(stop)[0]
    usage = Usage(
        message.usage.input_tokens,
        message.usage.output_tokens,
        message.usage.cache_read_input_tokens or 0,
        message.usage.cache_creation_input_tokens or 0,
    )
    cost_usd = prices.cost_usd(usage, batch=batch)
    match message.stop_reason:
        case "max_tokens" | "model_context_window_exceeded":
            return Completion(request, Outcome.TRUNCATED, text, usage, cost_usd)
        case "refusal":
            details = message.stop_details
            error = f"the model declined ({details.category})" if details and details.category else "the model declined"
            return Completion(request, Outcome.REFUSED, "", usage, cost_usd, error=error)
        case _:
            return Completion(request, Outcome.COMPLETED if text.strip() else Outcome.EMPTY, text, usage, cost_usd)


class UnsentError(CallError):
    """The call did not reach the provider."""


@contextmanager
def call_errors(
    client: "Anthropic | AsyncAnthropic", request: Request | None = None, transfer_seconds: float | None = None
) -> Iterator[None]:
    """Turn exceptions of the client into what they mean.

    Args:
        client: Its key is kept out of messages.
        request: What was asked; a message that quotes it is left out.
        transfer_seconds: Seconds that the call may take, where it is not the client's limit, which is a setting.

    Raises:
        CallError: The client or its HTTP layer raised.
    """
    import httpx2
    from anthropic import AnthropicError

    try:
        yield
    except (AnthropicError, httpx2.HTTPError, ValueError, TimeoutError) as error:
        # The exception may quote the request or the key, so it must not go along.
        limit = client.timeout if isinstance(client.timeout, int | float) else math.inf
        message = timeout_message(transfer_seconds, "") if transfer_seconds else timeout_message(limit)
        raise _call_error(error, request, client.api_key, f"anthropic: {message}") from None


def _call_error(error: Exception, request: Request | None, api_key: str | None, message: str) -> CallError:
    import httpx2
    from anthropic import APIConnectionError, APIStatusError, APITimeoutError

    cause = error.__cause__
    is_unsent = isinstance(cause, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout)
    match error:
        case APIStatusError():
            return _status_error(error, request, api_key)
        case APITimeoutError() | TimeoutError():
            return (UnsentError if is_unsent else CallError)(CallProblem.UNAVAILABLE, message)
        case APIConnectionError() if isinstance(cause, httpx2.ConnectError):
            line = f"anthropic: no connection to {error.request.url.host}: {unreachable_message(cause)}"
            return UnsentError(CallProblem.UNREACHABLE, line)
        case APIConnectionError():
            kind = f" ({type(cause).__name__})" if cause else ""
            line = f"anthropic: no connection to {error.request.url.host}{kind}"
            return (UnsentError if is_unsent else CallError)(CallProblem.UNAVAILABLE, line)
        case _:
            return CallError(CallProblem.UNAVAILABLE, f"anthropic: unreadable answer ({type(error).__name__})")


def problem_of(error_type: str) -> CallProblem:
    """What a type of error means; the provider names it in error bodies and in the results of a batch."""
    return _BY_TYPE.get(error_type, CallProblem.UNAVAILABLE)


def error_line(kind: str, message: str, request: Request | None = None, api_key: str | None = None) -> str:
    """One line on an error of the provider, without what it quotes of the request, and without the key."""
    line, kind = (without_keys(one_line(text), api_key) for text in (message, kind))
    line = one_line(line, _ERROR_CHARS)
    if not line or (request and _quotes(line, request)):
        return f"anthropic: {kind}"
    return f"anthropic: {kind}: {line}"


def _key(api_key: str | None, base_url: str) -> str | None:
    # A server of one's own may take any key, but the client wants one.
    return api_key or ("none" if base_url else None)


def _check_key(client: "Anthropic | AsyncAnthropic") -> None:
    if client.api_key is None and client.auth_token is None and client.credentials is None:
        raise SettingsError("language_model.api_key: expected a key in ANTHROPIC_API_KEY, found none")


def _messages(request: Request) -> "list[MessageParam]":
    turns = [{"role": message.role, "content": sendable(message.text)} for message in request.messages]
    return cast("list[MessageParam]", turns)


def _system(request: Request, cache_prefix_tokens: int) -> "list[TextBlockParam]":
    blocks: list[TextBlockParam] = []
    if request.prefix:
        prefix: TextBlockParam = {"type": "text", "text": sendable(request.prefix)}
        if 0 < cache_prefix_tokens <= _least_tokens(request.prefix):
            prefix["cache_control"] = {"type": "ephemeral"}
        blocks.append(prefix)
    if request.system:
        blocks.append({"type": "text", "text": sendable(request.system)})
    return blocks


def _least_tokens(text: str) -> int:
    """Tokens that a text surely has: a token holds up to some five letters of English, and hardly two of Japanese."""
    ascii_chars = sum(character.isascii() for character in text)
    return ascii_chars // 5 + (len(text) - ascii_chars) * 2 // 3


def _status_error(error: "APIStatusError", request: Request | None, api_key: str | None) -> CallError:
    status, kind = error.status_code, error.type
    default = CallProblem.REJECTED if 400 <= status < 500 else CallProblem.UNAVAILABLE
    problem = STATUS_PROBLEMS.get(status) or _BY_TYPE.get(kind or "", default)
    if problem == CallProblem.REJECTED and "credit balance" in (error.api_message or "").lower():
        problem = CallProblem.DENIED  # an empty account, which the API also reports as a bad request
    line = error_line(" ".join(filter(None, (str(status), kind))), error.api_message or "", request, api_key)
    if error.request_id:
        line += f" (request {error.request_id})"
    return CallError(problem, line, retry_after_seconds(error.response.headers))


def _quotes(line: str, request: Request) -> bool:
    texts = [request.prefix, request.system, *(message.text for message in request.messages)]
    whole = " ".join(one_line(text) for text in texts)
    return any(line[i : i + _QUOTED_CHARS] in whole for i in range(max(1, len(line) - _QUOTED_CHARS + 1)))
