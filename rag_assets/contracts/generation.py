"""What is asked of a language model, and what comes back. Who answers stands in `rag_assets.models`."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Literal

CALL_SECONDS = 120.0  # that one attempt may take, where no setting says otherwise

JsonValue = None | bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"]


def object_schema(properties: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """JSON schema of an object with these properties, all of them required, and no others."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def optional_schema(schema: JsonValue) -> JsonValue:
    """JSON schema of a value or null. A list of types would say it, too, but not to all providers."""
    return {"anyOf": [schema, {"type": "null"}]}


class Outcome(StrEnum):
    """How a request ended (`model_calls.outcome`)."""

    COMPLETED = "completed"
    TRUNCATED = "truncated"  # the answer reached the limit on its tokens
    REFUSED = "refused"  # the model declined
    EMPTY = "empty"  # the model ended without a word
    INVALID = "invalid"  # the answer breaks its schema, also after it was asked to mend it
    FAILED = "failed"  # no answer: the provider rejected this request, or never got it done
    UNKNOWN = "unknown"  # of a row of the ledger alone: a call whose process ended before its answer came
    REPEATED = "repeated"  # of a row of the ledger alone: a call was made because an earlier answer was of no use


@dataclass(frozen=True)
class Message:
    """One turn of a conversation."""

    role: Literal["user", "assistant"]
    text: str


@dataclass(frozen=True)
class Tag:
    """What a request is for; recorded in the ledger, never part of what the answer is keyed by."""

    asset: str  # table that the answer goes into
    step: str  # what is done, as in `summarize_page`; names the prompt
    document_id: str | None = None  # document that is read; None where there is more than one
    partition: str | None = None  # shard of the document; None where there is none


@dataclass(frozen=True)
class Request:
    """One call of a language model."""

    prefix: str  # system text that all requests of a step share; a provider may cache it
    messages: tuple[Message, ...]  # the conversation; the last turn is the user's
    max_tokens: int  # tokens of the answer at most
    tag: Tag = field(compare=False)  # what it is for
    system: str = ""  # system text after the prefix
    schema: str | None = None  # JSON schema of the answer, as JSON text; None for free text
    temperature: float | None = None  # of sampling; None leaves it to the provider
    seed: int | None = None  # of sampling, where the provider has one
    stop: tuple[str, ...] = ()  # texts at which the answer ends
    # how often the same was asked before, because the answers were of no use; the provider is not told
    attempt: int = 0
    # told the text written so far while it is being written, from any thread, by providers that can; after a failed
    # attempt it begins anew. Not told of answers that are stored, nor part of what they are keyed by
    progress: Callable[[str], None] | None = field(default=None, compare=False, repr=False)

    @cached_property
    def content_sha256(self) -> str:
        """SHA-256 over all that an answer depends on but the model, hexadecimal."""
        turns = [[message.role, message.text] for message in self.messages]
        facts: list[object] = [self.prefix, self.system, turns, self.max_tokens, self.schema]
        facts += [self.temperature, self.seed, self.stop, *([self.attempt] if self.attempt else [])]
        return hashlib.sha256(json.dumps(facts, ensure_ascii=False).encode("utf-8", "surrogatepass")).hexdigest()


def request_key(model_name: str, request: Request) -> str:
    """What an answer is stored under: SHA-256 over the model's name and the content of the request, hexadecimal."""
    return hashlib.sha256(f"{model_name}\n{request.content_sha256}".encode()).hexdigest()


@dataclass(frozen=True)
class Usage:
    """Tokens of a call."""

    input_tokens: int = 0  # read, but for those below
    output_tokens: int = 0  # written
    cache_read_tokens: int = 0  # read from the provider's prompt cache
    cache_write_tokens: int = 0  # read and written to the provider's prompt cache

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
        )


@dataclass(frozen=True)
class Completion:
    """The answer to a request."""

    request: Request  # what was asked
    outcome: Outcome  # how it ended
    text: str = ""  # the answer; what there is of it where it was cut off, else empty
    usage: Usage = Usage()  # tokens of the call
    cost_usd: float = 0.0  # price of the call in US dollars; 0 for local models and stored answers
    seconds: float = 0.0  # from sending to the last token; of a batch, until its results came
    called_at: float = 0.0  # when the answer came, seconds since 1970 UTC
    value: JsonValue = None  # the answer as JSON, where a schema was given and the answer satisfies it
    stored: bool = False  # whether the answer was paid for earlier and comes from the store of answers
    batch_id: str | None = None  # the provider's id of the batch that it was part of
    error: str | None = None  # why there is no answer, or what is wrong with it, in one line without document text
    # of a failure: whether the provider refused this very request, so that asking again is of no use
    rejected: bool = False
    repeatable: bool = False  # of an answer that is of no use: whether a later run may ask for another

    @property
    def fields(self) -> dict[str, JsonValue] | None:
        """The properties of an answer that is a whole JSON object; None where it is none."""
        return self.value if self.outcome is Outcome.COMPLETED and isinstance(self.value, dict) else None

    @property
    def usable(self) -> bool:
        """Whether it says something: what was cut off does where it is text, or holds items that are complete."""
        if self.outcome is Outcome.TRUNCATED:
            return self.request.schema is None or self.value is not None
        return self.outcome is Outcome.COMPLETED

    @property
    def may_pass(self) -> bool:
        """Whether there is no answer for reasons that may pass, so that a later run should ask again."""
        return self.repeatable or (self.outcome is Outcome.FAILED and not self.rejected)
