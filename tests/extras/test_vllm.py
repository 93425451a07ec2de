"""vLLM in this process, and as a server; runs where it is installed (`make test-vllm`)."""

import asyncio
import gc
import importlib.util
import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from unittest.mock import Mock

import pytest

from rag_assets.contracts.generation import Completion, Message, Outcome, Request, Tag
from rag_assets.models.catalogue import ModelFacts, Prices
from rag_assets.models.openai.endpoint import Endpoint
from rag_assets.models.openai.model import OpenAICaller, OpenAIModel
from rag_assets.models.vllm import VllmModel

FOLDER = os.environ.get("RAG_TEST_VLLM_MODEL", "")  # read before the fixture that clears the environment
pytestmark = [
    pytest.mark.skipif(
        importlib.util.find_spec("vllm") is None or not FOLDER,
        reason="vllm and weights for it are there in the environment of `make test-vllm` only",
    ),
    # What vLLM and torch warn of is theirs.
    pytest.mark.filterwarnings("default"),
]
CONTEXT_TOKENS = 1024
SCHEMA = json.dumps({
    "type": "object",
    "properties": {
        "word": {"type": "string", "maxLength": 8},
        "colours": {"type": "array", "items": {"enum": ["red", "blue", "赤"]}, "minItems": 1, "maxItems": 2},
    },
    "required": ["word", "colours"],
    "additionalProperties": False,
})  # fmt: skip


def ask(text: str, **facts: Any) -> Request:
    given: dict[str, Any] = {
        "prefix": "You answer in a few words. " * 50,  # more than a block of the prompt cache
        "messages": (Message("user", text),),
        "max_tokens": 12,
        "tag": Tag("tests", "vllm"),
        "temperature": 0.0,
    }
    return Request(**given | facts)


def check_value(text: str) -> None:
    value = json.loads(text)
    assert value.keys() == {"word", "colours"}
    assert len(value["word"]) <= 8
    assert set(value["colours"]) <= {"red", "blue", "赤"}


@pytest.fixture(scope="module")
def model() -> Iterator[VllmModel]:
    loaded = VllmModel(FOLDER, context_tokens=CONTEXT_TOKENS, engine={"enforce_eager": True}, batch_requests=6)
    yield loaded
    # vLLM has no way to close an engine but to forget it.
    loaded._engine._loaded = None
    gc.collect()


@dataclass(frozen=True)
class Server:
    url: str
    process: subprocess.Popen[bytes]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    port = 18431
    log = tmp_path_factory.mktemp("vllm") / "server.log"
    command = [
        sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", FOLDER, "--host", "127.0.0.1",
        "--port", str(port), "--served-model-name", "smol", "--enforce-eager", "--max-model-len", str(CONTEXT_TOKENS),
        "--enable-prefix-caching", "--enable-prompt-tokens-details",
        "--structured-outputs-config", '{"backend": "guidance", "disable_any_whitespace": true}',
    ]  # fmt: skip
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        give_up = time.monotonic() + 400
        while not healthy(f"http://127.0.0.1:{port}/health"):
            assert process.poll() is None, log.read_text(errors="replace")[-3000:]
            assert time.monotonic() < give_up, log.read_text(errors="replace")[-3000:]
            time.sleep(1)
        yield Server(f"http://127.0.0.1:{port}", process)
    finally:
        process.terminate()
        process.wait(60)


def healthy(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def taken(model: VllmModel, requests: list[Request], kept: list[Completion]) -> list[Completion]:
    found = []
    with model.open(kept.extend, Mock()) as session:
        for request in requests:
            session.submit(request)
        while (completion := session.take(wait=True)) is not None:
            found.append(completion)
    return found


def test_batches_in_this_process(model: VllmModel) -> None:
    assert model.name == f"vllm:{FOLDER}"
    assert model.facts.context_tokens == CONTEXT_TOKENS
    texts = [ask(f"Say the number {number}.", seed=1) for number in range(6)]
    shaped = [ask(f"Choose colours, {number}.", schema=SCHEMA, max_tokens=60) for number in range(3)]
    too_long = ask("hello " * 2000)
    kept: list[Completion] = []
    found = taken(model, [*texts, *shaped, too_long], kept)
    assert sorted(map(id, (each.request for each in found))) == sorted(map(id, [*texts, *shaped, too_long]))
    by_request = {id(completion.request): completion for completion in found}
    for request in texts:
        completion = by_request[id(request)]
        assert completion.outcome in {Outcome.COMPLETED, Outcome.TRUNCATED}
        assert completion.text
        assert 0 < completion.usage.output_tokens <= 12
        read = completion.usage.input_tokens + completion.usage.cache_read_tokens
        assert [read] == model.count_tokens([request])
        assert completion.seconds > 0
    for request in shaped:
        assert by_request[id(request)].outcome is Outcome.COMPLETED, by_request[id(request)]
        check_value(by_request[id(request)].text)
    failed = by_request[id(too_long)]
    assert failed.outcome is Outcome.FAILED
    assert "context length" in (failed.error or "")
    assert len(kept) == 9
    (again,) = taken(model, [texts[0]], [])
    assert again.text == by_request[id(texts[0])].text
    assert again.usage.cache_read_tokens > 0


def test_a_stop_text_and_a_limit(model: VllmModel) -> None:
    schema = json.dumps({"enum": ["first STOP second"]})
    cut, short = taken(
        model, [ask("Go.", schema=schema, stop=("STOP",)), ask("Count to one hundred.", max_tokens=3)], []
    )
    assert cut.text == '"first '
    assert short.outcome is Outcome.TRUNCATED


def test_the_server_of_openai_calls(server: Server) -> None:
    def unopened(*_: object, **__: object) -> Any:
        raise AssertionError

    provider = OpenAIModel(Endpoint(f"{server.url}/v1"), "", unopened)
    assert provider.name.startswith("openai:smol@")
    assert provider.facts.context_tokens == CONTEXT_TOKENS
    free, shaped = ask("Say hello."), ask("Choose colours.", schema=SCHEMA, max_tokens=60)

    async def calls() -> list[Completion]:
        caller = OpenAICaller(Endpoint(f"{server.url}/v1"), "smol", Prices())
        try:
            first = await asyncio.gather(caller.call(free), caller.call(shaped))
            return [*first, await caller.call(free)]
        finally:
            await caller.close()

    text, value, again = asyncio.run(calls())
    assert text.outcome in {Outcome.COMPLETED, Outcome.TRUNCATED}
    assert text.text and again.text  # not equal: a cached beginning changes the last digits, and they the words
    check_value(value.text)
    assert again.usage.cache_read_tokens > 0
    assert [text.usage.input_tokens + text.usage.cache_read_tokens] == provider.count_tokens([free])


def test_the_server_of_anthropic_calls(server: Server) -> None:
    from rag_assets.models.anthropic.model import AnthropicCaller

    free, shaped = ask("Say hello."), ask("Choose colours.", schema=SCHEMA, max_tokens=60)

    async def calls() -> list[Completion]:
        caller = AnthropicCaller("smol", ModelFacts(), "none", server.url, 120.0)
        try:
            return list(await asyncio.gather(caller.call(free), caller.call(shaped)))
        finally:
            await caller.close()

    text, value = asyncio.run(calls())
    assert text.outcome in {Outcome.COMPLETED, Outcome.TRUNCATED}
    assert text.usage.output_tokens > 0
    check_value(value.text)
