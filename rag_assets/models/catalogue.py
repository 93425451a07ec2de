"""Prices and limits of language models: the built-in table, and one of the user's that is looked at first; what a call
costs by them, and the most that it may cost, which is known before it is made.
"""

import tomllib
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rag_assets.contracts.errors import SettingsError
from rag_assets.contracts.generation import Request, Usage
from rag_assets.text.tokens import estimate_tokens

_MILLION = 1_000_000
_GENEROUS = 1.25  # on top of an estimate that is rather too high already
_MESSAGE_TOKENS = 16  # what a provider puts around a message
_SCHEMA_TOKENS = 512  # what a provider says about a schema
_THINKING_TOKENS = 4096  # room for the thinking of a model that cannot be kept from it


@dataclass(frozen=True)
class Prices:
    """US dollars for a million tokens."""

    input: float = 0.0  # tokens read
    output: float = 0.0  # tokens written
    cache_read: float = 0.0  # tokens read from the provider's prompt cache
    cache_write: float = 0.0  # tokens read and written to the provider's prompt cache
    batch_factor: float = 1.0  # what a batch costs, as a share of these prices
    long_prompt_tokens: int = 0  # tokens read, in whatever way, above which a call costs more; 0 where the price is one
    long_prompt_factor: float = 1.0  # what such a call costs, all of it, as a multiple of these prices

    def cost_usd(self, usage: Usage, *, batch: bool = False) -> float:
        """Price of one call; the sum of several calls may be dearer, where long prompts are."""
        price = (
            usage.input_tokens * self.input
            + usage.output_tokens * self.output
            + usage.cache_read_tokens * self.cache_read
            + usage.cache_write_tokens * self.cache_write
        )
        prompt_tokens = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
        if 0 < self.long_prompt_tokens < prompt_tokens:
            price *= self.long_prompt_factor
        return price / _MILLION * (self.batch_factor if batch else 1.0)


class Thinking(StrEnum):
    """How a model is kept from thinking before it answers, which this package has no use for and tokens pay for."""

    OFF = "off"  # it does not unless asked
    DISABLED = "disabled"  # `thinking.type` of the request
    BETWEEN_TOOLS = "between_tools"  # `thinking.type` of the request
    ALWAYS = "always"  # it cannot be kept from it: least effort, and room for it


@dataclass(frozen=True)
class ModelFacts:
    """What is known of a model before it is called."""

    context_tokens: int = 8192  # tokens of prompt and answer together, at most
    output_tokens: int = 4096  # tokens of an answer at most
    prices: Prices = Prices()  # what it costs; nothing for local models
    cache_prefix_tokens: int = 0  # shortest prefix that the provider's prompt cache takes; 0 where it has none
    thinking: Thinking = Thinking.OFF  # how it is kept from thinking; used by `anthropic`

    def written_tokens(self, max_tokens: int) -> int:
        """Tokens that a call may write for an answer of so many: providers count thinking and answer together."""
        if self.thinking is not Thinking.ALWAYS:
            return max_tokens
        return max_tokens + min(_THINKING_TOKENS, max(0, self.output_tokens - max_tokens))


def upper_price_usd(request: Request, facts: ModelFacts, *, batch: bool = False) -> float:
    """The most that a call may cost: tokens read estimated generously, tokens written as many as are allowed."""
    prices = facts.prices
    if not (prices.input or prices.output or prices.cache_write):
        return 0.0
    texts = [request.system, *(message.text for message in request.messages)]
    tokens = _prefix_tokens(request.prefix) + sum(map(estimate_tokens, texts))
    tokens += _MESSAGE_TOKENS * (1 + len(texts))
    if request.schema is not None:
        tokens += _prefix_tokens(request.schema) + _SCHEMA_TOKENS
    prompt_tokens = min(tokens * _GENEROUS, facts.context_tokens)
    price = prompt_tokens * max(prices.input, prices.cache_write, prices.cache_read)
    price += facts.written_tokens(request.max_tokens) * prices.output
    if 0 < prices.long_prompt_tokens < prompt_tokens:
        price *= max(1.0, prices.long_prompt_factor)
    return price / _MILLION * (prices.batch_factor if batch else 1.0)


@lru_cache(maxsize=64)
def _prefix_tokens(text: str) -> int:
    return estimate_tokens(text)


class _Entry(BaseModel):
    """One table `[[model]]` of a catalogue file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    provider: str
    model: str = Field(description="Name, or a glob over names.")
    context_tokens: int = Field(ge=256)
    output_tokens: int = Field(ge=16)
    input_usd: float = Field(0.0, ge=0)
    output_usd: float = Field(0.0, ge=0)
    cache_read_usd: float = Field(0.0, ge=0)
    cache_write_usd: float = Field(0.0, ge=0)
    batch_factor: float = Field(1.0, gt=0, le=1)
    cache_prefix_tokens: int = Field(0, ge=0)
    long_prompt_tokens: int = Field(0, ge=0)
    long_prompt_factor: float = Field(1.0, gt=0)
    thinking: Thinking = Thinking.OFF


_PRICES = {  # fields of prices, in entries
    name: key for key in _Entry.model_fields if (name := key.removesuffix("_usd")) in Prices.__dataclass_fields__
}


class _Catalogue(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    model: tuple[_Entry, ...] = ()


def model_facts(provider: str, model: str, catalogue: Path | None = None) -> ModelFacts | None:
    """Facts on a model: the first entry that matches, of the user's file and then of the built-in one.

    Args:
        provider: `anthropic`, `openai` or `vllm`.
        model: Name of the model at its provider.
        catalogue: The user's TOML file of `[[model]]` tables, or None.

    Returns:
        None where no entry matches.

    Raises:
        SettingsError: The file cannot be read or holds something else.
    """
    built_in = _read(Path(str(files("rag_assets.models") / "catalogue.toml")))
    for entry in [*(_read(catalogue) if catalogue else ()), *built_in]:
        if entry.provider == provider and fnmatchcase(model, entry.model):
            values = entry.model_dump(exclude={"provider", "model"})
            return ModelFacts(prices=Prices(**{name: values.pop(key) for name, key in _PRICES.items()}), **values)
    return None


def known_facts(
    provider: str, model: str, catalogue: Path | None, context_tokens: int, served_tokens: Callable[[], int | None]
) -> ModelFacts:
    """Facts on a model, in any case: of the catalogue, else defaults.

    Args:
        provider: As for `model_facts`.
        model: As for `model_facts`.
        catalogue: As for `model_facts`.
        context_tokens: Tokens of prompt and answer together, as stated; 0 takes those of the catalogue.
        served_tokens: Tells them where neither says so; None where it cannot.
    """
    facts, length = model_facts(provider, model, catalogue), context_tokens
    if facts is None:
        facts, length = ModelFacts(), length or served_tokens() or 0
    if not length:
        return facts
    return replace(facts, context_tokens=length, output_tokens=min(facts.output_tokens, max(1, length // 2)))


@cache
def _read(path: Path) -> tuple[_Entry, ...]:
    try:
        return _Catalogue.model_validate(tomllib.loads(path.read_text("utf-8"))).model
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"{path}: not a readable TOML file: {error}") from error
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors())
        raise SettingsError(f"{path}: {problems}") from error
