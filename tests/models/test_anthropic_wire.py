"""The Messages API of a real llama.cpp server: no reply is scripted."""

import asyncio
import json
import logging
from collections.abc import Sequence
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from llama import LlamaServer
from scripted_provider import UNLIMITED, state_of

from rag_assets.contracts.errors import ModelError
from rag_assets.contracts.generation import Completion, Message, Outcome, Request, Tag
from rag_assets.models.anthropic.model import AnthropicCaller, AnthropicModel
from rag_assets.models.anthropic.open_batches import BatchSettings, BatchStore
from rag_assets.models.catalogue import ModelFacts, Prices
from rag_assets.models.dispatch import ConcurrentSession, answers
from rag_assets.models.providers import CallBudget, CallError, CallProblem, Keep

FACTS = ModelFacts(8192, 2048, Prices(1.0, 5.0))
TAG = Tag("tests", "wire")
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "country": {"type": "string"}},
    "required": ["city", "country"],
    "additionalProperties": False,
}


def ask(text: str, max_tokens: int = 48, schema: str | None = None) -> Request:
    return Request("You answer briefly.", (Message("user", text),), max_tokens, TAG, schema=schema, temperature=0.0)


def provider(server: LlamaServer, folder: Path) -> AnthropicModel:
    def caller() -> AnthropicCaller:
        return AnthropicCaller(server.model, FACTS, None, server.url, 120.0)

    def open_calls(keep: Keep, budget: CallBudget) -> ConcurrentSession:
        return ConcurrentSession(caller, keep, budget, name=name, concurrency=2, attempts=3, timeout_seconds=120.0)

    name = f"anthropic:{server.model}"
    settings = BatchSettings(state_of(folder), 1, 1, 1.0, 1)
    return AnthropicModel(
        name, server.model, FACTS, None, server.url, 120.0, batch="never", batches=settings, open_calls=open_calls
    )


def answered(model: AnthropicModel, requests: Sequence[Request]) -> list[Completion]:
    kept: list[Completion] = []
    with model.open(kept.extend, UNLIMITED) as session:
        found = list(answers(session, requests))
    assert sorted(answer.text for answer in found) == sorted(answer.text for answer in kept)
    return sorted(found, key=lambda answer: requests.index(answer.request))


def test_free_text_with_usage(llama_server: LlamaServer, tmp_path: Path) -> None:
    requests = [
        ask("What is the capital of France? Answer in one word."),
        ask("Count from one to one hundred.", max_tokens=8),
    ]
    whole, cut = answered(provider(llama_server, tmp_path), requests)
    assert whole.outcome is Outcome.COMPLETED
    assert "Paris" in whole.text
    assert cut.outcome is Outcome.TRUNCATED
    assert cut.usage.output_tokens == 8
    read = whole.usage.input_tokens + whole.usage.cache_read_tokens
    assert 15 <= read <= 60
    assert whole.cost_usd == pytest.approx((whole.usage.input_tokens + 5 * whole.usage.output_tokens) / 1e6)
    assert whole.seconds > 0


def test_json_is_asked_for_and_checked_by_the_caller(llama_server: LlamaServer, tmp_path: Path) -> None:
    """The server ignores the format without a word, so the text says it too."""
    text = f"Name the capital of Japan as JSON of this schema, and nothing else: {json.dumps(SCHEMA)}"
    (answer,) = answered(provider(llama_server, tmp_path), [ask(text, schema=json.dumps(SCHEMA))])
    assert answer.outcome is Outcome.COMPLETED
    assert answer.value is None, "what the answer is worth is not for the provider to say"
    value = json.loads(answer.text.strip().removeprefix("```json").removesuffix("```"))
    Draft202012Validator(SCHEMA).validate(value)
    assert "Tokyo" in value["city"]


def test_tokens_are_those_that_the_model_reads(llama_server: LlamaServer, tmp_path: Path) -> None:
    model = provider(llama_server, tmp_path)
    requests = [ask("short", 1), ask("日本語の文章を数える。" * 10, 1)]
    counted = model.count_tokens(requests)
    found = answered(model, requests)
    assert counted[0] < counted[1]
    for count, answer in zip(counted, found, strict=True):
        assert count == pytest.approx(answer.usage.input_tokens + answer.usage.cache_read_tokens, abs=2)


def test_a_prompt_that_is_too_long_is_rejected_without_its_text(
    llama_server: LlamaServer, caplog: pytest.LogCaptureFixture
) -> None:
    async def once() -> None:
        caller = AnthropicCaller(llama_server.model, FACTS, None, llama_server.url, 120.0)
        try:
            await caller.call(ask("confidential " * 20_000, 1))
        finally:
            await caller.close()

    with caplog.at_level(logging.INFO), pytest.raises(CallError) as raised:
        asyncio.run(once())
    assert raised.value.problem is CallProblem.REJECTED
    assert "confidential" not in str(raised.value) + caplog.text


def test_a_server_without_batches_says_so(llama_server: LlamaServer, tmp_path: Path) -> None:
    settings = BatchSettings(state_of(tmp_path), 1, 10, 0.05, 2)
    model = AnthropicModel(
        f"anthropic:{llama_server.model}",
        llama_server.model,
        FACTS,
        None,
        llama_server.url,
        30.0,
        batch="always",
        batches=settings,
        open_calls=lambda keep, budget: pytest.fail(f"single calls for {keep} and {budget}"),
    )
    with model.open(lambda answers: pytest.fail(str(answers)), UNLIMITED) as session:
        session.submit(ask("one"))
        with pytest.raises(ModelError, match="404"):
            session.take(wait=True)
    assert BatchStore(state_of(tmp_path)).open_batches() == []
