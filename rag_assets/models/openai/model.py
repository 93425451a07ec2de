"""Language models behind OpenAI's chat completions: OpenAI's own, and servers such as llama.cpp and vLLM."""

import asyncio
import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from rag_assets.contracts.generation import Completion, JsonValue, Outcome, Request, Usage
from rag_assets.contracts.ports import Session
from rag_assets.models.attempts import Pacing
from rag_assets.models.catalogue import ModelFacts, Prices, known_facts
from rag_assets.models.openai.endpoint import Endpoint, ServerTokenizer, call_error, chat_messages
from rag_assets.models.providers import CallBudget, Caller, CallError, CallProblem, Keep
from rag_assets.text.tokens import estimate_tokens, mean_tokens

if TYPE_CHECKING:
    from openai.types import CompletionUsage
    from openai.types.chat import ChatCompletion, ChatCompletionChunk
    from openai.types.chat.completion_create_params import ResponseFormat

_MESSAGE_TOKENS = 4  # what a chat template puts around a message
_COUNTED_CHARS = 500_000  # at once; the tokenizer refuses a million
_NEWEST_ENCODING = "o200k_base"  # of models that the tokenizer's package does not know yet
_REFUSED_BY_FILTER = "content_filter"


OpenSession = Callable[[Callable[[], Caller], Keep, CallBudget], AbstractContextManager[Session]]


class OpenAIModel:
    """A model behind OpenAI's chat completions.

    Its limits are those of the catalogue, else what the server tells, else defaults.

    Args:
        endpoint: The server.
        model: Name of the model there; may be empty for a server of one's own: the first that it lists.
        open_session: Opens a session of single calls.
        catalogue: The user's file of prices and limits.
        context_tokens: Tokens of prompt and answer together; 0 takes those of the catalogue or the server.
        pacing: How long the server is waited for when it is asked for its limits.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        model: str,
        open_session: OpenSession,
        catalogue: Path | None = None,
        context_tokens: int = 0,
        pacing: Pacing | None = None,
    ) -> None:
        self._endpoint = endpoint
        self._open_session = open_session
        self._catalogue = catalogue
        self._context_tokens = context_tokens
        self._tokenizer = ServerTokenizer(endpoint, model, pacing)

    @property
    def name(self) -> str:
        host = f"@{self._endpoint.host}" if self._endpoint.host else ""
        return f"openai:{self._tokenizer.model}{host}"

    @cached_property
    def facts(self) -> ModelFacts:
        def served() -> int | None:
            return self._tokenizer.served.context_tokens if self._endpoint.base_url else None

        return known_facts("openai", self._tokenizer.model, self._catalogue, self._context_tokens, served)

    def open(self, keep: Keep, budget: CallBudget) -> AbstractContextManager[Session]:
        model, prices = self._tokenizer.model, self.facts.prices
        return self._open_session(lambda: OpenAICaller(self._endpoint, model, prices), keep, budget)

    def count_tokens(self, requests: Sequence[Request]) -> list[int]:
        """Tokens of each request: by the server's tokenizer, by OpenAI's for its own models (extra `openai-tokenizer`),
        else estimated from its characters.
        """
        if not requests:
            return []
        chats = [chat_messages(request) for request in requests]
        counts = self._tokenizer.count_chats(chats)
        if counts is not None:
            return counts
        count = mean_tokens if self._endpoint.base_url else _text_counter(self._tokenizer.model)
        return [round(sum(_MESSAGE_TOKENS + count(message["content"]) for message in chat)) for chat in chats]


class OpenAICaller:
    """One request a call, by OpenAI's SDK. Built, used and closed within one event loop; `ModelError` without a key.

    Tokens of the answer are limited by `max_completion_tokens`: OpenAI's newer models refuse the older `max_tokens`,
    and llama.cpp and vLLM take both.
    """

    def __init__(self, endpoint: Endpoint, model: str, prices: Prices) -> None:
        self._endpoint = endpoint
        self._place = endpoint.place
        self._client = endpoint.asynchronous_client()
        self._model = model
        self._prices = prices

    async def call(self, request: Request) -> Completion:
        """Make one attempt, see `Caller`."""
        import openai

        sent_texts = [message.text for message in request.messages]
        try:
            # The SDK's own limit is on each read and write, which a trickle of bytes never reaches.
            async with asyncio.timeout(self._endpoint.timeout_seconds):
                if request.progress is not None:
                    answer = await self._stream(request, request.progress)
                else:
                    answer = self._answer_parts(await self._create(request))
        except TimeoutError:
            raise CallError(CallProblem.UNAVAILABLE, f"{self._place}: {self._endpoint.timeout_message}") from None
        except (openai.APIError, ValueError) as error:
            if getattr(error, "code", None) == _REFUSED_BY_FILTER:
                return Completion(request, Outcome.REFUSED, error="refused by the provider's filter")
            # from None: what the SDK's errors carry may quote the document
            raise call_error(error, self._endpoint, sent_texts) from None
        return self._completion(request, answer)

    async def close(self) -> None:
        """Close its connections."""
        await self._client.close()

    async def _create(self, request: Request) -> "ChatCompletion":
        from openai.types.chat import ChatCompletion

        # Not `chat.completions.create`: it walks through the types of all parameters, a third of what a call costs.
        return await self._client.post("/chat/completions", body=self._body(request), cast_to=ChatCompletion)

    async def _stream(self, request: Request, progress: Callable[[str], None]) -> "_ServerAnswer":
        """An answer that comes in pieces; as a whole from a server that sends nothing that can be read as such."""
        import openai
        from openai.types.chat import ChatCompletionChunk

        body = self._body(request) | {"stream": True, "stream_options": {"include_usage": True}}
        try:
            stream = await self._client.post(
                "/chat/completions",
                body=body,
                cast_to=ChatCompletionChunk,
                stream=True,
                stream_cls=openai.AsyncStream[ChatCompletionChunk],
            )
        except (openai.BadRequestError, openai.UnprocessableEntityError):
            return self._answer_parts(await self._create(request))
        pieces = _Pieces()
        async with stream:
            async for chunk in stream:
                if pieces.add(chunk):
                    progress(pieces.text)
        if not pieces.any:
            return self._answer_parts(await self._create(request))
        if pieces.reason is None:
            raise CallError(CallProblem.UNAVAILABLE, f"{self._place}: its answer broke off")
        prompt = " ".join(message["content"] for message in chat_messages(request))
        estimate = Usage(estimate_tokens(prompt), estimate_tokens(pieces.text))
        usage = _usage(pieces.usage) if pieces.usage is not None else estimate
        return _ServerAnswer(pieces.reason, pieces.text, pieces.refused, usage)

    def _body(self, request: Request) -> dict[str, object]:
        options = {
            "response_format": None if request.schema is None else response_format(request.schema),
            "temperature": request.temperature,
            "seed": request.seed,
            "stop": list(request.stop) or None,
        }
        body: dict[str, object] = {
            "model": self._model,
            "messages": chat_messages(request),
            "max_completion_tokens": request.max_tokens,
        }
        return body | {name: value for name, value in options.items() if value is not None}

    def _answer_parts(self, answer: "ChatCompletion") -> "_ServerAnswer":
        # The SDK checks nothing: whatever a server says with status 200 arrives here.
        choices = getattr(answer, "choices", None)
        if not isinstance(choices, list) or not choices or getattr(choices[0], "message", None) is None:
            raise CallError(CallProblem.UNAVAILABLE, f"{self._place}: its answer is no chat completion")
        reason, message = getattr(choices[0], "finish_reason", None), choices[0].message
        return _ServerAnswer(reason, message.content or "", bool(message.refusal), _usage(answer.usage))

    def _completion(self, request: Request, answer: "_ServerAnswer") -> Completion:
        if not isinstance(answer.text, str) or answer.reason in {"abort", "error"}:
            raise CallError(CallProblem.UNAVAILABLE, f"{self._place}: it gave up on the answer")
        usage = answer.usage
        completion = Completion(request, Outcome.COMPLETED, answer.text, usage, self._prices.cost_usd(usage))
        if answer.reason == _REFUSED_BY_FILTER or answer.refused:
            is_filtered = answer.reason == _REFUSED_BY_FILTER
            reason = "refused by the provider's filter" if is_filtered else "the model declined"
            return replace(completion, outcome=Outcome.REFUSED, text="", error=reason)
        if answer.reason == "length":
            return replace(completion, outcome=Outcome.TRUNCATED)
        return completion if answer.text.strip() else replace(completion, outcome=Outcome.EMPTY, text="")


@dataclass(frozen=True)
class _ServerAnswer:
    """What a server says of an answer: why it ended, its text, whether the model declined, and its tokens."""

    reason: str | None
    text: str
    refused: bool
    usage: Usage


@dataclass
class _Pieces:
    """What has come so far of an answer in pieces."""

    text: str = ""
    reason: str | None = None
    refused: bool = False
    usage: "CompletionUsage | None" = None
    any: bool = False

    def add(self, chunk: "ChatCompletionChunk") -> bool:
        """Take a piece; whether it brought text. The SDK checks nothing of it."""
        self.usage = getattr(chunk, "usage", None) or self.usage
        choices = getattr(chunk, "choices", None)
        if not isinstance(choices, list) or not choices or getattr(choices[0], "delta", None) is None:
            return False
        self.any = True
        self.reason = getattr(choices[0], "finish_reason", None) or self.reason
        delta = choices[0].delta
        self.refused = self.refused or bool(getattr(delta, "refusal", None))
        content = getattr(delta, "content", None)
        if not isinstance(content, str) or not content:
            return False
        self.text += content
        return True


def response_format(schema: str) -> "ResponseFormat":
    """The JSON schema of an answer as servers take it, strict where OpenAI would not refuse it so."""
    content = json.loads(schema)
    return {
        "type": "json_schema",
        "json_schema": {"name": "answer", "schema": content, "strict": _is_closed(content)},
    }


def _text_counter(model: str) -> Callable[[str], float]:
    """Counts tokens as a model of OpenAI's does; from characters where its tokenizer is not installed."""
    try:
        import bpe_openai
    except ImportError:
        return mean_tokens
    try:
        encoding = bpe_openai.encoding_for_model(model)
    except bpe_openai.UnsupportedModelError:
        encoding = bpe_openai.get_encoding(_NEWEST_ENCODING)

    def count(text: str) -> int:
        parts = (text[start : start + _COUNTED_CHARS] for start in range(0, len(text), _COUNTED_CHARS))
        return sum(len(encoding.encode_ordinary(part)) for part in parts)

    return count


def _is_closed(schema: JsonValue) -> bool:
    """Whether every object of a schema allows and requires what it names, and that alone.

    OpenAI refuses any other schema in strict mode; llama.cpp and vLLM hold an answer to its schema in either.
    """
    if isinstance(schema, list):
        return all(map(_is_closed, schema))
    if not isinstance(schema, dict):
        return True
    properties = schema.get("properties")
    if isinstance(properties, dict) or schema.get("type") == "object":
        property_names = set(properties) if isinstance(properties, dict) else set()
        required = schema.get("required")
        required_names = {name for name in required if isinstance(name, str)} if isinstance(required, list) else set()
        if schema.get("additionalProperties") is not False or required_names != property_names:
            return False
    return all(map(_is_closed, schema.values()))


def _usage(usage: "CompletionUsage | None") -> Usage:
    """Tokens of a call; OpenAI counts cached ones among those read, here they stand apart."""
    details = getattr(usage, "prompt_tokens_details", None)
    cached_tokens, written_tokens = _count(details, "cached_tokens"), _count(details, "cache_write_tokens")
    prompt_tokens = _count(usage, "prompt_tokens")
    return Usage(
        max(0, prompt_tokens - cached_tokens - written_tokens),
        _count(usage, "completion_tokens"),
        cached_tokens,
        written_tokens,
    )


def _count(holder: object, name: str) -> int:
    value = getattr(holder, name, None)
    return value if isinstance(value, int) else 0
