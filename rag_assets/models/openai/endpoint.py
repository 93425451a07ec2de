"""A server that speaks OpenAI's API: its clients, its errors, what it tells of its models, its tokenizer, if any, and
the messages of a chat. What is asked of it stands in `model` and `embedder`.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from rag_assets.contracts.errors import AwayError, ModelError, SettingsError
from rag_assets.contracts.generation import CALL_SECONDS, Request
from rag_assets.models.attempts import Pacing, until_answered
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
    from openai import APIError, AsyncOpenAI, OpenAI

Item = TypeVar("Item")

_OPENAI_URL = "https://api.openai.com/v1"
_KEY_VARIABLE = "OPENAI_API_KEY"
_NO_KEY = "none"  # the SDK insists on one; servers without keys ignore it
_ESCAPED = re.compile(r"\\u([0-9a-fA-F]{4})")
_FOREIGN = re.compile(r"[^\x00-\x7f]{2,}")
_QUOTED_CHARS = 12  # a run of characters this long that stands in what was sent counts as quoted from it
_MESSAGE_CHARS = 300
_TOKENIZER_CALLS = 8  # at once
_RETRIES = 5  # of short calls, by the SDK
_FULL_CONTEXT = re.compile(
    r"context\b.*\bexceed|exceed.*\bcontext\b", re.IGNORECASE
)  # llama.cpp, with slots that share
_STATUS_PROBLEMS = STATUS_PROBLEMS | {405: CallProblem.DENIED}
_AWAY = frozenset({CallProblem.UNREACHABLE, CallProblem.OVERLOADED, CallProblem.UNAVAILABLE})
# These come with 429, but waiting does not help.
_NO_MONEY = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"})


class ServerKind(StrEnum):
    """What answers at an address, as far as it tells."""

    LLAMA_CPP = "llama.cpp"
    VLLM = "vLLM"
    OTHER = "other"


@dataclass(frozen=True)
class ServedModel:
    """A model that a server offers: its name there, and tokens of prompt and answer together, where the server
    tells.
    """

    name: str
    kind: ServerKind
    context_tokens: int | None


@dataclass(frozen=True)
class Endpoint:
    """Where an API is, and how it is reached.

    Args:
        base_url: Address up to `/v1`; empty for OpenAI's own.
        api_key: Key; None takes `OPENAI_API_KEY`. An address of one's own needs none.
        timeout_seconds: Seconds that an attempt at a call may take.
        timeout_setting: The setting that says so, for messages; empty where none does.

    Raises:
        SettingsError: The address is none.
    """

    base_url: str = ""
    api_key: str | None = field(default=None, repr=False)
    timeout_seconds: float = CALL_SECONDS
    timeout_setting: str = ""

    def __post_init__(self) -> None:
        if self.base_url and not self.host:
            raise SettingsError("base_url: expected an address such as http://localhost:8000/v1")

    @cached_property
    def host(self) -> str:
        """Host and port of the address as it is written; empty for OpenAI's own."""
        try:
            parts = urlsplit(self.base_url)
            valid = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
        except ValueError:
            return ""
        return parts.netloc.rpartition("@")[2] if valid else ""

    @property
    def place(self) -> str:
        """The host, for messages."""
        return self.host or "api.openai.com"

    @property
    def timeout_message(self) -> str:
        """What is said where no answer came in time."""
        return timeout_message(self.timeout_seconds, self.timeout_setting)

    @property
    def root(self) -> str:
        """The address without `/v1`, where routes that are not OpenAI's lie."""
        return self.base_url.rstrip("/").removesuffix("/v1")

    @property
    def key(self) -> str:
        """The key that is sent; `ModelError` where there is none, and OpenAI's own address needs one."""
        key = (self.api_key or os.environ.get(_KEY_VARIABLE) or (_NO_KEY if self.base_url else "")).strip()
        if not key:
            raise ModelError(f"{self.place}: no key: set {_KEY_VARIABLE}, or base_url for a server of your own")
        return key

    def asynchronous_client(self) -> "AsyncOpenAI":
        """A client that makes one attempt a call. It belongs to the running event loop and must be closed there."""
        import openai

        from rag_assets.models.http_pools import LIMITS, connection_pools

        return openai.AsyncOpenAI(
            api_key=self.key,
            base_url=self._url,
            timeout=self.timeout_seconds,
            max_retries=0,
            http_client=openai.DefaultAsyncHttpxClient(transport=connection_pools(), limits=LIMITS),
        )

    @contextmanager
    def client(self, *, doing: str, sent: Sequence[str] = (), retries: int = _RETRIES) -> Iterator["OpenAI"]:
        """A client whose calls are tried again after 408, 409, 429 and 5xx; closed in the end.

        Args:
            doing: What is done, for messages.
            sent: Texts that no message may quote.
            retries: Further attempts at a call.

        Raises:
            AwayError: The server does not answer at the moment.
            ModelError: A call failed.
        """
        import openai

        with openai.OpenAI(
            api_key=self.key, base_url=self._url, timeout=self.timeout_seconds, max_retries=retries
        ) as client:
            try:
                yield client
            except (openai.APIError, ValueError) as error:
                problem = call_error(error, self, sent)
                error_type = AwayError if problem.problem in _AWAY else ModelError
                raise error_type(f"{doing}: {problem}") from None

    def check(self, seconds: float) -> None:
        """Raise a `ModelError` where nobody listens; whatever a server says in so many seconds will do, and so
        will silence.
        """
        import openai

        with openai.OpenAI(api_key=self.key, base_url=self._url, timeout=seconds, max_retries=0) as client:
            try:
                client.get("/models", cast_to=object)
            except (openai.APIError, ValueError) as error:
                problem = call_error(error, self, ())
                if problem.problem is CallProblem.UNREACHABLE:
                    raise ModelError(str(problem)) from None

    @property
    def _url(self) -> str:
        # Never left to the SDK: OPENAI_BASE_URL would send requests elsewhere than the model's name says.
        return self.base_url or _OPENAI_URL


class ServerTokenizer:
    """What a server tells of a model, and its tokenizer; methods raise `ModelError` where the server cannot be reached.

    Args:
        endpoint: The server.
        model: Name of the model there; empty takes the first that the server lists.
        pacing: How long it is waited for.
    """

    def __init__(self, endpoint: Endpoint, model: str = "", pacing: Pacing | None = None) -> None:
        self._endpoint = endpoint
        self._model = model
        self._pacing = pacing or Pacing()

    @property
    def model(self) -> str:
        """Name of the model there; `ModelError` where it was not given, and the server cannot be asked."""
        return self._model or self.served.name

    @cached_property
    def served(self) -> ServedModel:
        """The model, as the server describes it; `ModelError` where it offers none."""
        return until_answered(self._ask_served, self._pacing, self._endpoint.place)

    def _ask_served(self) -> ServedModel:
        with self._endpoint.client(doing="list of models", retries=1) as client:
            listing = self._model_list(client)
            entries = [_mapping(entry) for entry in listing] if isinstance(listing, list) else []
            matches = [entry for entry in entries if entry.get("id") == self._model]
            entry = (matches or [{"id": self._model}] if self._model else entries)[:1]
            if not entry or not isinstance(name := entry[0].get("id"), str):
                raise ModelError(f"{self._endpoint.place}: offers no model; name one in the setting `model`")
            # A server that answers to any name lists its one model under another.
            facts = entry[0] if matches or not self._model else next(iter(entries), {}) if len(entries) == 1 else {}
            if isinstance(length := facts.get("max_model_len"), int):
                return ServedModel(name, ServerKind.VLLM, length)
            if facts.get("owned_by") == "llamacpp":
                properties = _mapping(client.get(f"{self._endpoint.root}/props", cast_to=object))
                length = _mapping(properties.get("default_generation_settings")).get("n_ctx")
                return ServedModel(name, ServerKind.LLAMA_CPP, length if isinstance(length, int) else None)
            return ServedModel(name, ServerKind.OTHER, None)

    def _model_list(self, client: "OpenAI") -> object:
        """What the server lists; nothing where it has no such route and the name of the model is known."""
        import openai

        try:
            return _mapping(client.get("/models", cast_to=object)).get("data")
        except openai.NotFoundError:
            if self._model:
                return None
            raise

    def count_chats(self, chats: Sequence[Sequence[Mapping[str, str]]]) -> list[int] | None:
        """Tokens of each list of messages with what opens the answer; None where the server has no tokenizer."""

        def count(client: "OpenAI", chat: Sequence[Mapping[str, str]]) -> int:
            if self.served.kind is ServerKind.VLLM:
                return self._tokens(client, {"model": self.served.name, "messages": list(chat)})
            prompt = _mapping(self._post(client, "apply-template", {"messages": list(chat)})).get("prompt")
            return self._tokens(client, {"content": prompt, "add_special": True, "parse_special": True})

        return self._token_counts(count, chats, [message["content"] for chat in chats for message in chat])

    def count_texts(self, texts: Sequence[str]) -> list[int] | None:
        """Tokens of each text, without special tokens; None where the server has no tokenizer."""

        def count(client: "OpenAI", text: str) -> int:
            if self.served.kind is ServerKind.VLLM:
                body: dict[str, object] = {"model": self.served.name, "prompt": text, "add_special_tokens": False}
            else:
                body = {"content": text, "add_special": False, "parse_special": False}
            return self._tokens(client, body)

        return self._token_counts(count, [sendable(text) for text in texts], texts)

    def _token_counts(
        self, count: Callable[["OpenAI", Item], int], items: Sequence[Item], sent_texts: Sequence[str]
    ) -> list[int] | None:
        if not self._endpoint.base_url or self.served.kind is ServerKind.OTHER:
            return None
        with (
            self._endpoint.client(doing="tokenizer", sent=sent_texts) as client,
            ThreadPoolExecutor(_TOKENIZER_CALLS, "tokenize") as executor,
        ):
            return list(executor.map(lambda item: count(client, item), items))

    def _tokens(self, client: "OpenAI", body: dict[str, object]) -> int:
        tokens = _mapping(self._post(client, "tokenize", body)).get("tokens")
        if not isinstance(tokens, list):
            raise ModelError(f"{self._endpoint.place}: its tokenizer gives no tokens")
        return len(tokens)

    def _post(self, client: "OpenAI", route: str, body: dict[str, object]) -> object:
        return client.post(f"{self._endpoint.root}/{route}", cast_to=object, body=body)


def call_error(error: "APIError | ValueError", endpoint: Endpoint, sent: Sequence[str]) -> CallError:
    """What an error of the SDK means, in words that quote nothing that was sent; a `ValueError` is an answer that
    is no JSON.
    """
    import httpx2
    import openai

    place = endpoint.place
    if isinstance(error, openai.APITimeoutError):
        return CallError(CallProblem.UNAVAILABLE, f"{place}: {endpoint.timeout_message}")
    if isinstance(error, openai.APIConnectionError):
        if isinstance(error.__cause__, httpx2.ConnectError):
            return CallError(
                CallProblem.UNREACHABLE, f"{place}: connection failed: {unreachable_message(error.__cause__)}"
            )
        cause = type(error.__cause__).__name__ if error.__cause__ else "no connection"
        return CallError(CallProblem.UNAVAILABLE, f"{place}: connection failed ({cause})")
    if not isinstance(error, openai.APIStatusError):
        return CallError(CallProblem.UNAVAILABLE, f"{place}: its answer cannot be read")
    status = error.status_code
    default = CallProblem.UNAVAILABLE if status >= 500 else CallProblem.REJECTED
    problem = _STATUS_PROBLEMS.get(status, default)
    if status == 500 and _FULL_CONTEXT.search(error.message):
        problem = CallProblem.FULL
    if _NO_MONEY & {error.code, error.type}:
        problem = CallProblem.DENIED
    body = _mapping(error.body)
    message = body.get("message") if "message" in body else _mapping(body.get("error")).get("message")
    message = (
        unquoted(without_keys(message, endpoint.api_key), sent)
        if isinstance(message, str) and status not in {401, 403}
        else ""
    )
    code = without_keys(
        (error.code if error.code and not error.code.isdecimal() else error.type) or "", endpoint.api_key
    )
    words = f"{place}: status {status}" + (f" ({one_line(code)[:60]})" if code else "")
    return CallError(problem, f"{words}: {message}" if message else words, retry_after_seconds(error.response.headers))


def chat_messages(request: Request) -> list[dict[str, str]]:
    """The conversation, opened by a system message. What requests share comes first, for caches of beginnings."""
    system = "\n\n".join(part for part in (request.prefix, request.system) if part)
    opening = [{"role": "system", "content": sendable(system)}] if system else []
    return opening + [{"role": turn.role, "content": sendable(turn.text)} for turn in request.messages]


def unquoted(message: str, sent: Sequence[str]) -> str:
    """What a server or library says, in one line, or nothing where it quotes what was sent."""
    line = one_line(_ESCAPED.sub(lambda match: chr(int(match[1], 16)), message))[:_MESSAGE_CHARS]
    texts = [one_line(text) for text in sent]
    pieces = set(_FOREIGN.findall(line))
    pieces |= {line[start : start + _QUOTED_CHARS] for start in range(max(1, len(line) - _QUOTED_CHARS + 1))}
    return "" if any(piece in text for text in texts for piece in pieces) else line


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}
