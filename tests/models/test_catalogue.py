"""The built-in table of models, and the user's before it."""

from pathlib import Path
from typing import get_args

import pytest
from anthropic.types import ModelParam

from rag_assets.contracts.errors import SettingsError
from rag_assets.contracts.generation import Usage
from rag_assets.models.catalogue import Prices, Thinking, model_facts

NAMED = [name for part in get_args(ModelParam) for name in get_args(part)]
ENTRY = """
[[model]]
provider = "openai"
model = "{model}"
context_tokens = {context_tokens}
output_tokens = 512
input_usd = 2.5
"""


@pytest.fixture
def user_file(tmp_path: Path) -> Path:
    return tmp_path / "models.toml"


@pytest.mark.parametrize("model", [name for name in NAMED if "mythos" not in name])
def test_every_model_on_sale_that_the_client_names_is_listed(model: str) -> None:
    facts = model_facts("anthropic", model)
    assert facts
    prices = facts.prices
    assert 200_000 <= facts.context_tokens <= 1_000_000
    assert facts.output_tokens in {64_000, 128_000}
    assert prices.output == pytest.approx(5 * prices.input)
    assert prices.cache_write == pytest.approx(1.25 * prices.input), "a cache write of five minutes"
    assert 0.02 * prices.input <= prices.cache_read <= 0.1 * prices.input
    assert prices.batch_factor == 0.5
    assert facts.cache_prefix_tokens in {512, 1024, 2048, 4096}


def test_names_of_models_are_not_taken_for_those_of_others() -> None:
    haiku, new_haiku = model_facts("anthropic", "claude-haiku-4-5"), model_facts("anthropic", "claude-haiku-5-5")
    assert haiku
    assert new_haiku
    assert (haiku.prices.input, new_haiku.prices.input) == (1.0, 0.1)
    assert model_facts("anthropic", "claude-haiku-4-5-20251001") == haiku
    assert (haiku.thinking, new_haiku.thinking) == (Thinking.OFF, Thinking.DISABLED)
    assert model_facts("anthropic", "claude-sonnet-9") is None
    assert model_facts("openai", "claude-haiku-4-5") is None


def test_the_users_file_comes_first(user_file: Path) -> None:
    user_file.write_text(
        ENTRY.format(model="gpt-special", context_tokens=1000)
        + ENTRY.format(model="gpt-*", context_tokens=2000)
        + ENTRY.format(model="claude-haiku-4-5", context_tokens=3000).replace("openai", "anthropic")
    )
    facts = [model_facts("openai", name, user_file) for name in ("gpt-special", "gpt-other", "o1")]
    assert [found and found.context_tokens for found in facts] == [1000, 2000, None]
    mine, built_in = (model_facts("anthropic", "claude-haiku-4-5", file) for file in (user_file, None))
    assert mine
    assert built_in
    assert (mine.context_tokens, built_in.context_tokens) == (3000, 200_000)
    assert model_facts("anthropic", "claude-opus-5-5", user_file) == model_facts("anthropic", "claude-opus-5-5")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (ENTRY.format(model="m", context_tokens=1000) + "colour = 1", "model.0.colour: Extra inputs are not permitted"),
        (ENTRY.format(model="m", context_tokens=1), "model.0.context_tokens: Input should be greater than or equal"),
        ('[[model]]\nprovider = "openai"', "model.0.model: Field required"),
        ("[[models]]", "models: Extra inputs are not permitted"),
        ("[[model", "not a readable TOML file"),
    ],
)
def test_bad_files_are_named(user_file: Path, content: str, message: str) -> None:
    user_file.write_text(content)
    with pytest.raises(SettingsError) as raised:
        model_facts("openai", "m", user_file)
    assert str(user_file) in str(raised.value)
    assert message in str(raised.value)


def test_a_file_that_cannot_be_read_is_named(user_file: Path) -> None:
    with pytest.raises(SettingsError, match=r"models\.toml: not a readable TOML file"):
        model_facts("openai", "m", user_file)
    user_file.write_bytes(b"\xff\xfe")
    with pytest.raises(SettingsError, match=r"models\.toml: not a readable TOML file"):
        model_facts("openai", "m", user_file)


def test_price_of_a_call() -> None:
    prices = Prices(input=3.0, output=15.0, cache_read=0.3, cache_write=3.75, batch_factor=0.5)
    usage = Usage(input_tokens=1000, output_tokens=200, cache_read_tokens=5000, cache_write_tokens=400)
    worked_by_hand = 0.003 + 0.003 + 0.0015 + 0.0015
    assert prices.cost_usd(usage) == pytest.approx(worked_by_hand)
    assert prices.cost_usd(usage, batch=True) == pytest.approx(worked_by_hand / 2)


@pytest.mark.parametrize(("cached", "factor"), [(0, 1), (40_000, 1), (40_001, 5)])
def test_long_prompts_may_cost_more(cached: int, factor: int) -> None:
    """All that is read counts towards the length, and the whole call costs more."""
    facts = model_facts("anthropic", "claude-haiku-5-5")
    assert facts
    usage = Usage(input_tokens=60_000, output_tokens=1_000, cache_read_tokens=cached)
    short = (60_000 * 0.1 + 1_000 * 0.5 + cached * 0.01) / 1e6
    assert facts.prices.cost_usd(usage) == pytest.approx(short * factor)
