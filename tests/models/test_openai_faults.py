"""What comes of each way in which a server of OpenAI's API can answer or fail; the server is the tests' own."""

import asyncio
import json
import logging
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from scripted import Reply, ScriptedServer

from rag_assets.contracts.errors import ModelError, SettingsError
from rag_assets.contracts.generation import Completion, Message, Outcome, Request, Tag, Usage
from rag_assets.models.catalogue import Prices
from rag_assets.models.openai.endpoint import Endpoint
from rag_assets.models.openai.model import OpenAICaller, OpenAIModel
from rag_assets.models.providers import TIMEOUT_SETTING, CallError, CallProblem
from rag_assets.pipeline.settings import load_settings

ROUTE = "/v1/chat/completions"
FREE = Prices()
KEY = "sk-very-secret"
DOCUMENT = "the confidential text of a document: 機密の設計書"
USAGE = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
OPEN_SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
CLOSED_SCHEMA = OPEN_SCHEMA | {"required": ["a"], "additionalProperties": False}


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer() as scripted:
        yield scripted


def ask(**facts: Any) -> Request:
    messages = (Message("user", DOCUMENT),)
    given: dict[str, Any] = {"prefix": "Shared.", "messages": messages, "max_tokens": 50, "tag": Tag("a", "s")}
    return Request(**given | facts)


def call(server: ScriptedServer, request: Request, prices: Prices = FREE, seconds: float = 30) -> Completion:
    async def once() -> Completion:
        caller = OpenAICaller(Endpoint(f"{server.url}/v1", KEY, seconds), "m", prices)
        try:
            return await caller.call(request)
        finally:
            await caller.close()

    return asyncio.run(once())


def said(text: str | None = "Yes.", reason: str | None = "stop", usage: object = USAGE, **message: object) -> Reply:
    choice = {"index": 0, "finish_reason": reason, "message": {"role": "assistant", "content": text} | message}
    return Reply(json={"id": "1", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage})


def failed(status: int, headers: dict[str, str] | None = None, **error: object) -> Reply:
    return Reply(status, json={"error": {"message": f"no: {DOCUMENT} {KEY}"} | error}, headers=headers or {})


@pytest.mark.parametrize(
    ("reply", "outcome", "text"),
    [
        (said(), Outcome.COMPLETED, "Yes."),
        (said("", "stop"), Outcome.EMPTY, ""),
        (said(" \n", "stop"), Outcome.EMPTY, ""),
        (said(None, "stop"), Outcome.EMPTY, ""),
        (said("Y", "length"), Outcome.TRUNCATED, "Y"),
        (said(None, "length"), Outcome.TRUNCATED, ""),
        (said("Y", "content_filter"), Outcome.REFUSED, ""),
        (said(None, "stop", refusal="I cannot."), Outcome.REFUSED, ""),
        (said("Yes.", None), Outcome.COMPLETED, "Yes."),
        (said("Yes.", "tool_calls"), Outcome.COMPLETED, "Yes."),
        (failed(400, code="content_filter"), Outcome.REFUSED, ""),
    ],
)
def test_how_an_answer_ended(server: ScriptedServer, reply: Reply, outcome: Outcome, text: str) -> None:
    server.replies(ROUTE, reply)
    answer = call(server, ask())
    assert (answer.outcome, answer.text) == (outcome, text)
    assert (answer.error is not None) == (outcome is Outcome.REFUSED)


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (USAGE, Usage(100, 10)),
        (USAGE | {"prompt_tokens_details": {"cached_tokens": 64}}, Usage(36, 10, 64)),
        (USAGE | {"prompt_tokens_details": {"cached_tokens": 64, "cache_write_tokens": 6}}, Usage(30, 10, 64, 6)),
        (USAGE | {"prompt_tokens_details": {"cached_tokens": None}}, Usage(100, 10)),
        ({"prompt_tokens": 5}, Usage(5)),
        (None, Usage()),
    ],
)
def test_tokens_and_their_price(server: ScriptedServer, usage: object, expected: Usage) -> None:
    server.replies(ROUTE, said(usage=usage))
    prices = Prices(1.0, 4.0, 0.1, 1.25)
    answer = call(server, ask(), prices)
    assert answer.usage == expected
    assert answer.cost_usd == prices.cost_usd(expected)


def test_what_is_sent(server: ScriptedServer) -> None:
    server.replies(ROUTE, said())
    turns = (Message("user", "a\ud800"), Message("assistant", "b"), Message("user", "c"))
    schema = json.dumps(CLOSED_SCHEMA)
    call(server, ask(messages=turns, system="Own.", schema=schema, temperature=0.5, seed=3, stop=("END",)))
    call(server, ask(prefix=""))
    full, bare = (received.json for received in server.received)
    assert full == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Shared.\n\nOwn."},
            {"role": "user", "content": "a\ufffd"},
            {"role": "assistant", "content": "b"},
            {"role": "user", "content": "c"},
        ],
        "max_completion_tokens": 50,
        "temperature": 0.5,
        "seed": 3,
        "stop": ["END"],
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "answer", "schema": CLOSED_SCHEMA, "strict": True},
        },
    }
    message = {"role": "user", "content": DOCUMENT}
    assert bare == {"model": "m", "messages": [message], "max_completion_tokens": 50}
    assert server.received[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        (CLOSED_SCHEMA, True),
        (OPEN_SCHEMA, False),
        (CLOSED_SCHEMA | {"properties": {"a": {"type": "array", "items": OPEN_SCHEMA}}}, False),
        (CLOSED_SCHEMA | {"properties": {"a": {"type": "array", "items": CLOSED_SCHEMA}}}, True),
        (CLOSED_SCHEMA | {"properties": {"a": {"type": "object"}}}, False),
    ],
)
def test_only_closed_schemas_are_strict(server: ScriptedServer, schema: object, strict: bool) -> None:
    server.replies(ROUTE, said())
    call(server, ask(schema=json.dumps(schema)))
    assert server.received[0].json["response_format"]["json_schema"]["strict"] is strict


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (failed(400), CallProblem.REJECTED),
        (failed(413), CallProblem.REJECTED),
        (failed(422), CallProblem.REJECTED),
        (failed(401), CallProblem.DENIED),
        (failed(402), CallProblem.DENIED),
        (failed(403), CallProblem.DENIED),
        (failed(404), CallProblem.DENIED),
        (failed(405), CallProblem.DENIED),
        (failed(408), CallProblem.UNAVAILABLE),
        (failed(409), CallProblem.UNAVAILABLE),
        (failed(429), CallProblem.RATE_LIMITED),
        (failed(429, code="insufficient_quota"), CallProblem.DENIED),
        (failed(429, type="insufficient_quota"), CallProblem.DENIED),
        (failed(500), CallProblem.UNAVAILABLE),
        (failed(500, message="Context size has been exceeded.", type="server_error"), CallProblem.FULL),
        (failed(502), CallProblem.UNAVAILABLE),
        (failed(503), CallProblem.OVERLOADED),
        (failed(529), CallProblem.OVERLOADED),
        (failed(500, code=500), CallProblem.UNAVAILABLE),
        (Reply(502, body=b"<html>bad gateway</html>", headers={"content-type": "text/html"}), CallProblem.UNAVAILABLE),
        (Reply(500, json={"error": "just words"}), CallProblem.UNAVAILABLE),
        (Reply(500, json=["a", "list"]), CallProblem.UNAVAILABLE),
        (Reply(drop=True), CallProblem.UNAVAILABLE),
        (Reply(body=b"{", headers={"content-type": "application/json"}), CallProblem.UNAVAILABLE),
        (Reply(body=b"hello", headers={"content-type": "text/plain"}), CallProblem.UNAVAILABLE),
        (Reply(json={}), CallProblem.UNAVAILABLE),
        (Reply(json=None), CallProblem.UNAVAILABLE),
        (Reply(json={"choices": []}), CallProblem.UNAVAILABLE),
        (Reply(json={"choices": [{"index": 0}]}), CallProblem.UNAVAILABLE),
        (Reply(json={"choices": ["words"]}), CallProblem.UNAVAILABLE),
        (said("Y", "abort"), CallProblem.UNAVAILABLE),
        (said("Y", "error"), CallProblem.UNAVAILABLE),
    ],
)
def test_failures_are_sorted_and_tell_no_secret(
    server: ScriptedServer, reply: Reply, problem: CallProblem, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.replies(ROUTE, reply)
    with pytest.raises(CallError) as raised:
        call(server, ask())
    assert raised.value.problem is problem
    assert raised.value.retry_after_seconds is None
    assert raised.value.__cause__ is None
    for text in (str(raised.value), caplog.text):
        assert KEY not in text
        assert "confidential" not in text
        assert "機密" not in text
    assert "\n" not in str(raised.value)
    assert len(server.received) == 1, "the dispatcher tries again, not the SDK"


@pytest.mark.parametrize("place", ["message", "code", "type"])
@pytest.mark.parametrize("status", [400, 429, 500])
def test_a_key_that_the_server_repeats_is_not_told(server: ScriptedServer, status: int, place: str) -> None:
    error = {"message": "Incorrect API key provided", place: f"Incorrect API key provided: {KEY}"}
    server.replies(ROUTE, Reply(status, json={"error": error}))
    with pytest.raises(CallError, match="Incorrect API key provided") as raised:
        call(server, ask())
    assert KEY not in str(raised.value)


def test_a_message_that_quotes_nothing_is_passed_on(server: ScriptedServer) -> None:
    message = "request (9000 tokens) exceeds\nthe available context size (8192 tokens)"
    server.replies(ROUTE, failed(400, message=message, type="exceed_context_size_error"))
    with pytest.raises(CallError, match=r"status 400 \(exceed_context_size_error\): request \(9000 tokens\) exc"):
        call(server, ask())


def test_a_quotation_in_escapes_is_noticed(server: ScriptedServer) -> None:
    server.replies(ROUTE, failed(400, message="cannot parse " + json.dumps("text of a document: 機密の設計書")))
    with pytest.raises(CallError, match="status 400$"):
        call(server, ask(messages=(Message("user", "これは機密の設計書であり、社外に出してはならない"),)))


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "-3"}, None),
    ],
)
def test_when_to_come_back(server: ScriptedServer, headers: dict[str, str], seconds: float | None) -> None:
    server.replies(ROUTE, failed(429, headers))
    with pytest.raises(CallError) as raised:
        call(server, ask())
    assert raised.value.retry_after_seconds == seconds


@pytest.mark.parametrize(("hours", "low", "high"), [(1, 3570, 3600), (-1, 0, 0)])
def test_when_to_come_back_may_be_a_date(server: ScriptedServer, hours: int, low: float, high: float) -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(hours=hours), usegmt=True)
    server.replies(ROUTE, failed(429, {"retry-after": date}))
    with pytest.raises(CallError) as raised:
        call(server, ask())
    assert raised.value.retry_after_seconds is not None
    assert low <= raised.value.retry_after_seconds <= high


@pytest.mark.parametrize("reply", [Reply(delay_seconds=30), said("trickle")])
def test_an_attempt_ends_in_time(server: ScriptedServer, reply: Reply) -> None:
    slow = Reply(json=reply.json, delay_seconds=reply.delay_seconds, trickle_seconds=0.1)
    server.replies(ROUTE, slow)
    with pytest.raises(CallError, match="no answer within 0.5 s$") as raised:
        call(server, ask(), seconds=0.5)
    assert raised.value.problem is CallProblem.UNAVAILABLE


def test_a_server_that_is_not_there(server: ScriptedServer) -> None:
    gone = ScriptedServer()
    gone._server.server_close()
    with pytest.raises(CallError, match="connection failed: is the server running") as raised:
        call(gone, ask())
    assert raised.value.problem is CallProblem.UNREACHABLE
    with pytest.raises(ModelError, match="connection failed: is the server running"):
        Endpoint(f"{gone.url}/v1").check(5.0)


@pytest.mark.parametrize("reply", [Reply(500, json={}), Reply(401, json={}), Reply(drop=True), Reply(delay_seconds=5)])
def test_a_server_that_listens_is_there_whatever_it_says(server: ScriptedServer, reply: Reply) -> None:
    server.replies("/v1/models", reply)
    Endpoint(f"{server.url}/v1", KEY).check(0.5)
    assert len(server.received) == 1


def test_an_answer_that_comes_too_late_names_the_setting(server: ScriptedServer) -> None:
    late = Endpoint(f"{server.url}/v1", KEY, 0.3, TIMEOUT_SETTING)
    server.replies("/v1/models", Reply(delay_seconds=5))
    with pytest.raises(ModelError, match=r"no answer within 0.3 s \(language_model.timeout_seconds\)"):
        _ = OpenAIModel(late, "", unopened).name


def unopened(*_: object, **__: object) -> Any:
    raise AssertionError("no session is opened")


def test_names_and_limits_need_no_server_where_they_are_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    catalogue = tmp_path / "models.toml"
    catalogue.write_text(
        '[[model]]\nprovider = "openai"\nmodel = "gpt-*"\ncontext_tokens = 1000\noutput_tokens = 800\ninput_usd = 2.0\n'
    )
    model = OpenAIModel(Endpoint(), "gpt-x", unopened, catalogue)
    assert (model.name, model.facts.context_tokens, model.facts.prices.input) == ("openai:gpt-x", 1000, 2.0)
    narrowed = OpenAIModel(Endpoint("http://Somewhere.example:80/v1/"), "gpt-x", unopened, catalogue, 500)
    assert (narrowed.name, narrowed.facts.context_tokens) == ("openai:gpt-x@Somewhere.example:80", 500)
    assert narrowed.facts.output_tokens == 250
    assert OpenAIModel(Endpoint(), "unheard-of", unopened).facts.context_tokens == 8192


def test_tokens_are_estimated_where_there_is_no_tokenizer(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "bpe_openai", None)
    server.replies("/v1/models", Reply(json={"data": [{"id": "m", "owned_by": "someone"}]}))
    for endpoint in (Endpoint(), Endpoint(f"{server.url}/v1")):
        japanese, english = OpenAIModel(endpoint, "m", unopened).count_tokens(
            [ask(messages=(Message("user", text),)) for text in ("設計書" * 100, "document " * 100)]
        )
        assert 200 <= japanese <= 350
        assert 100 <= english <= 130


@pytest.mark.parametrize("body", [{"data": []}, {}, ["a"], {"data": [{"id": None}]}])
def test_a_server_without_models_is_named(server: ScriptedServer, body: object) -> None:
    server.replies("/v1/models", Reply(json=body))
    with pytest.raises(ModelError, match="offers no model"):
        _ = OpenAIModel(Endpoint(f"{server.url}/v1"), "", unopened).name


def test_vllm_tells_its_context_and_counts_tokens(server: ScriptedServer) -> None:
    server.replies("/v1/models", Reply(json={"data": [{"id": "m", "owned_by": "vllm", "max_model_len": 4096}]}))
    server.replies("/tokenize", Reply(json={"count": 3, "tokens": [1, 2, 3]}))
    model = OpenAIModel(Endpoint(f"{server.url}/v1"), "", unopened)
    assert model.facts.context_tokens == 4096
    assert model.count_tokens([ask()]) == [3]
    assert server.received[-1].json["messages"][0] == {"role": "system", "content": "Shared."}


def test_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ModelError, match="OPENAI_API_KEY"):
        _ = Endpoint().key
    assert Endpoint("http://localhost:1/v1").key
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert Endpoint().key == KEY
    assert Endpoint(api_key="sk-own").key == "sk-own"
    assert "sk-own" not in repr(Endpoint(api_key="sk-own"))


@pytest.mark.parametrize("address", ["localhost:8000/v1", "ftp://host/v1", "http://", "http://host:port/v1"])
def test_an_address_must_be_one(address: str) -> None:
    with pytest.raises(SettingsError, match="base_url"):
        Endpoint(address)


@pytest.mark.parametrize("section", ["language_model", "embedding"])
def test_an_address_with_a_password_is_refused_without_repeating_it(section: str) -> None:
    with pytest.raises(SettingsError, match="user name or password") as raised:
        load_settings(**{section: {"base_url": "http://someone:hidden@localhost/v1"}})
    assert "hidden" not in str(raised.value)
