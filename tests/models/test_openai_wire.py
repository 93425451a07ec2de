"""OpenAI's own client against real llama.cpp servers, through the dispatcher."""

import json
import threading
from functools import partial
from typing import Any

import pytest
from llama import LlamaServer
from scripted_provider import UNLIMITED

from rag_assets.contracts.errors import ModelError
from rag_assets.contracts.generation import Completion, Message, Outcome, Request, Tag
from rag_assets.models.dispatch import ConcurrentSession, answers
from rag_assets.models.openai.endpoint import Endpoint
from rag_assets.models.openai.model import OpenAIModel
from rag_assets.models.providers import Keep

TAG = Tag("tests", "wire")
PREFIX = "You read documents and answer as asked."
ENTITIES = json.dumps({
    "type": "object",
    "properties": {
        "screen": {"type": "string", "maxLength": 20},
        "fields": {"type": "array", "items": {"type": "string", "maxLength": 12}, "maxItems": 3},
    },
    "required": ["screen", "fields"],
    "additionalProperties": False,
})  # fmt: skip


def ask(text: str, **facts: Any) -> Request:
    given: dict[str, Any] = {"prefix": PREFIX, "messages": (Message("user", text),), "max_tokens": 24, "tag": TAG}
    return Request(**given | facts)


def model_of(server: LlamaServer, name: str = "", concurrency: int = 4, **facts: Any) -> OpenAIModel:
    open_session = partial(ConcurrentSession, concurrency=concurrency, attempts=20, timeout_seconds=240.0)
    return OpenAIModel(Endpoint(server.openai_url, timeout_seconds=240.0), name, open_session, **facts)


def answered(model: OpenAIModel, *requests: Request, keep: Keep = lambda _: None) -> list[Any]:
    """Completions in the order of their requests."""
    with model.open(keep, UNLIMITED) as session:
        found = list(answers(session, requests))
    assert len(found) == len(requests)
    return sorted(found, key=lambda completion: requests.index(completion.request))


@pytest.fixture
def small(small_llama_server: LlamaServer) -> OpenAIModel:
    return model_of(small_llama_server)


def test_the_server_tells_its_model_and_context(small: OpenAIModel, small_llama_server: LlamaServer) -> None:
    host = small_llama_server.url.removeprefix("http://")
    assert small.name == f"openai:smollm2-135m-instruct@{host}"
    assert small.facts.context_tokens == small_llama_server.context_tokens
    assert model_of(small_llama_server, "any name").name == f"openai:any name@{host}"
    assert model_of(small_llama_server, "any name").facts.context_tokens == small_llama_server.context_tokens
    assert model_of(small_llama_server, context_tokens=2048).facts.context_tokens == 2048


def test_free_text_comes_with_its_tokens(small: OpenAIModel) -> None:
    request = ask("Say hello.", system="Be short.", temperature=0.0, seed=7)
    (first,) = answered(small, request)
    (again,) = answered(small, request)
    assert first.outcome in {Outcome.COMPLETED, Outcome.TRUNCATED}
    assert first.text == again.text != ""
    assert 0 < first.usage.output_tokens <= 24
    assert again.usage.cache_read_tokens > 0, "the server reads a prompt it has just read from its cache"
    counted = {completion.usage.input_tokens + completion.usage.cache_read_tokens for completion in (first, again)}
    assert counted == set(small.count_tokens([request]))
    assert first.cost_usd == 0
    assert first.seconds > 0


def test_an_answer_at_its_limit_is_truncated(small: OpenAIModel) -> None:
    schema = json.dumps({"enum": ["one two three four five six seven eight nine ten"]})
    (answer,) = answered(small, ask("Count.", schema=schema, max_tokens=5))
    assert answer.outcome is Outcome.TRUNCATED
    assert answer.usage.output_tokens == 5
    assert answer.text


def test_a_stop_text_ends_the_answer(small: OpenAIModel) -> None:
    schema = json.dumps({"enum": ["first STOP second"]})
    (whole,) = answered(small, ask("Go.", schema=schema))
    (cut,) = answered(small, ask("Go.", schema=schema, stop=("STOP",)))
    assert (whole.text, cut.text) == ('"first STOP second"', '"first ')


def test_a_request_over_the_context_fails_alone(small: OpenAIModel) -> None:
    good, bad = ask("Say hello."), ask("very long indeed " * 5000)
    kept: list[Completion] = []
    fine, failed = answered(small, good, bad, keep=kept.extend)
    assert fine.outcome in {Outcome.COMPLETED, Outcome.TRUNCATED}
    assert failed.outcome is Outcome.FAILED
    assert failed.error
    assert "status 400" in failed.error
    assert [completion.request for completion in kept] == [good]


def test_tokens_of_conversations_are_counted_by_the_server(small: OpenAIModel) -> None:
    turns = (Message("user", "One?"), Message("assistant", "One."), Message("user", "Two?"))
    short, long = ask("One?"), ask("", messages=turns)
    first, second = small.count_tokens([short, long])
    assert 0 < first < second
    assert small.count_tokens([]) == []


def test_characters_that_are_no_unicode_are_sent(small: OpenAIModel) -> None:
    (answer,) = answered(small, ask("half a character: \ud800, NUL: \0"))
    assert answer.outcome in {Outcome.COMPLETED, Outcome.TRUNCATED, Outcome.EMPTY}


def test_requests_outlive_a_restart_of_the_server(small_llama_server: LlamaServer) -> None:
    model = model_of(small_llama_server)
    requests = [ask(f"Write about the number {number}.", max_tokens=30) for number in range(8)]
    came = threading.Event()

    def crash() -> None:
        came.wait(60)
        small_llama_server.kill()
        small_llama_server.start()

    crashing = threading.Thread(target=crash)
    crashing.start()
    try:
        found = answered(model, *requests, keep=lambda _: came.set())
    finally:
        came.set()
        crashing.join()
    assert {completion.outcome for completion in found} <= {Outcome.COMPLETED, Outcome.TRUNCATED}
    assert [completion.request for completion in found] == requests


def test_a_server_that_is_away_is_named(small_llama_server: LlamaServer) -> None:
    small_llama_server.kill()
    try:
        with pytest.raises(ModelError, match=r"list of models: 127\.0\.0\.1:\d+: connection failed"):
            _ = model_of(small_llama_server).name
    finally:
        small_llama_server.start()


def test_japanese_json_satisfies_its_schema(llama_server: LlamaServer) -> None:
    model = model_of(llama_server)
    texts = [
        "顧客登録画面では、顧客名、住所、電話番号を入力する。",
        "受注照会画面には、受注番号と受注日と得意先コードが表示される。",
        "ログイン画面では、利用者IDとパスワードを入力する。",
        "在庫一覧画面には、品番、品名、数量が並ぶ。",
    ]
    question = "Name the screen and its fields in the words of the text, as JSON.\n\n"
    requests = [ask(question + text, schema=ENTITIES, max_tokens=90, temperature=0.0, seed=1) for text in texts]
    found = answered(model, *requests)
    for text, completion in zip(texts, found, strict=True):
        assert completion.outcome is Outcome.COMPLETED, completion
        value = json.loads(completion.text)
        assert value.keys() == {"screen", "fields"}
        assert len(value["screen"]) <= 20
        assert 1 <= len(value["fields"]) <= 3
        assert any(field in text for field in value["fields"]), value
        assert completion.usage.output_tokens > 0
