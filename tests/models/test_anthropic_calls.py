"""Single calls of the Messages API against a scripted server: its replies are built by the client's own types."""

import asyncio
import json
import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from anthropic.types import MessageTokensCount
from scripted import Reply, ScriptedServer
from scripted_batches import error_body, message
from scripted_provider import UNLIMITED, state_of

from rag_assets.contracts.errors import ModelError, SettingsError
from rag_assets.contracts.generation import Completion, Message, Outcome, Request, Tag, Usage
from rag_assets.models.anthropic.messages import UnsentError, check_reachable, message_params
from rag_assets.models.anthropic.model import AnthropicCaller, AnthropicModel
from rag_assets.models.anthropic.open_batches import BatchSettings
from rag_assets.models.catalogue import ModelFacts, Prices, Thinking
from rag_assets.models.providers import CallError, CallProblem

NAME = "claude-haiku-4-5"
KEY = "sk-ant-secret-key"
FACTS = ModelFacts(200_000, 64_000, Prices(1.0, 5.0, 0.1, 1.25, 0.5), 1024)
SECRET = "The merger of Alpha and Beta will be announced on the fifth of May."
ASK = Request("Summarise.", (Message("user", SECRET),), 100, Tag("documents", "summarize"))
PATH = "/v1/messages"
LATE = "no answer within 0.7 s (language_model.timeout_seconds)"


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer() as running:
        yield running


def call(url: str, request: Request = ASK, facts: ModelFacts = FACTS, timeout_seconds: float = 5.0) -> Completion:
    async def once() -> Completion:
        caller = AnthropicCaller(NAME, facts, KEY, url, timeout_seconds)
        try:
            return await caller.call(request)
        finally:
            await caller.close()

    return asyncio.run(once())


def said(text: str = "An answer.", **changes: Any) -> Reply:
    return Reply(json=message(text, **changes).model_dump(mode="json"))


def failed(status: int, kind: str = "api_error", text: str = "said by the server", **headers: str) -> Reply:
    body = error_body("api_error", text).model_dump(mode="json")
    body["error"]["type"] = kind
    return Reply(status, json=body, headers=headers)


@pytest.mark.parametrize(
    ("stop_reason", "text", "outcome"),
    [
        ("end_turn", "An answer.", Outcome.COMPLETED),
        ("stop_sequence", "An answer.", Outcome.COMPLETED),
        ("end_turn", "", Outcome.EMPTY),
        ("end_turn", " \n", Outcome.EMPTY),
        ("stop_sequence", "", Outcome.EMPTY),
        ("max_tokens", "An ans", Outcome.TRUNCATED),
        ("max_tokens", "", Outcome.TRUNCATED),
        ("model_context_window_exceeded", "An ans", Outcome.TRUNCATED),
        ("refusal", "I will", Outcome.REFUSED),
        ("a_reason_to_come", "An answer.", Outcome.COMPLETED),
    ],
)
def test_stop_reasons(server: ScriptedServer, stop_reason: str, text: str, outcome: Outcome) -> None:
    body = message(text).model_dump(mode="json") | {"stop_reason": stop_reason}
    server.replies(PATH, Reply(json=body))
    answer = call(server.url)
    assert answer.request == ASK
    assert answer.outcome is outcome
    assert answer.text == ("" if outcome is Outcome.REFUSED else text)
    assert answer.batch_id is None
    assert not answer.stored


def test_why_the_model_declined(server: ScriptedServer) -> None:
    details = {"type": "refusal", "category": "bio", "explanation": SECRET}
    server.replies(PATH, said("", stop_reason="refusal", stop_details=details))
    assert call(server.url).error == "the model declined (bio)"


def test_thinking_is_no_part_of_the_answer(server: ScriptedServer) -> None:
    content = [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "one, "},
        {"type": "text", "text": "two"},
    ]
    server.replies(PATH, said("", content=content))
    assert call(server.url).text == "one, two"


def test_usage_and_price(server: ScriptedServer) -> None:
    usage = {
        "input_tokens": 1000,
        "output_tokens": 200,
        "cache_read_input_tokens": 5000,
        "cache_creation_input_tokens": 400,
    }
    server.replies(PATH, said(usage=usage))
    answer = call(server.url)
    assert answer.usage == Usage(1000, 200, 5000, 400)
    assert answer.cost_usd == pytest.approx((1000 * 1.0 + 200 * 5.0 + 5000 * 0.1 + 400 * 1.25) / 1e6)


@pytest.mark.parametrize(
    ("status", "kind", "problem"),
    [
        (400, "invalid_request_error", CallProblem.REJECTED),
        (401, "authentication_error", CallProblem.DENIED),
        (402, "billing_error", CallProblem.DENIED),
        (403, "permission_error", CallProblem.DENIED),
        (404, "not_found_error", CallProblem.DENIED),
        (408, "timeout_error", CallProblem.UNAVAILABLE),
        (409, "conflict_error", CallProblem.UNAVAILABLE),
        (413, "request_too_large", CallProblem.REJECTED),
        (418, "a_kind_to_come", CallProblem.REJECTED),
        (422, "invalid_request_error", CallProblem.REJECTED),
        (429, "rate_limit_error", CallProblem.RATE_LIMITED),
        (499, "a_kind_to_come", CallProblem.REJECTED),
        (500, "api_error", CallProblem.UNAVAILABLE),
        (500, "overloaded_error", CallProblem.OVERLOADED),
        (502, "a_kind_to_come", CallProblem.UNAVAILABLE),
        (503, "api_error", CallProblem.OVERLOADED),
        (504, "timeout_error", CallProblem.UNAVAILABLE),
        (529, "overloaded_error", CallProblem.OVERLOADED),
    ],
)
def test_errors(server: ScriptedServer, status: int, kind: str, problem: CallProblem) -> None:
    server.replies(PATH, failed(status, kind, **{"request-id": "req_1"}))
    with pytest.raises(CallError) as raised:
        call(server.url)
    assert raised.value.problem is problem
    assert str(raised.value) == f"anthropic: {status} {kind}: said by the server (request req_1)"
    assert len(server.received) == 1, "one attempt"


def test_an_empty_account_is_denied_though_the_status_is_that_of_a_bad_request(server: ScriptedServer) -> None:
    server.replies(PATH, failed(400, "invalid_request_error", "Your credit balance is too low to access the API."))
    with pytest.raises(CallError) as raised:
        call(server.url)
    assert raised.value.problem is CallProblem.DENIED


def test_when_to_come_back(server: ScriptedServer) -> None:
    server.replies(PATH, failed(429, "rate_limit_error", **{"retry-after": "7"}))
    with pytest.raises(CallError) as raised:
        call(server.url)
    assert raised.value.retry_after_seconds == 7.0


@pytest.mark.parametrize(
    ("reply", "line"),
    [
        (Reply(drop=True), "no connection to 127.0.0.1"),
        (Reply(body=b"<html>", headers={"content-type": "text/html"}), "expected a message, found something else"),
        (Reply(body=b"{", headers={"content-type": "application/json"}), "unreadable answer (JSONDecodeError)"),
        (Reply(body=b"[]", headers={"content-type": "application/json"}), "expected a message, found something else"),
        (Reply(json={"type": "message"}), "expected a message, found something else"),
        (Reply(502, body=b"<html>bad gateway</html>", headers={"content-type": "text/html"}), "anthropic: 502"),
        (Reply(json={}, delay_seconds=3), LATE),
        (
            Reply(json=message("long").model_dump(mode="json"), trickle_seconds=0.1),
            LATE,
        ),
    ],
    ids=["dropped", "html", "broken json", "list", "no content", "bad gateway", "late", "trickling"],
)
def test_answers_that_are_none(server: ScriptedServer, reply: Reply, line: str) -> None:
    server.replies(PATH, reply)
    with pytest.raises(CallError) as raised:
        call(server.url, timeout_seconds=0.7)
    assert raised.value.problem is CallProblem.UNAVAILABLE
    assert line in str(raised.value)


def test_nobody_there() -> None:
    with ScriptedServer() as server:
        url = server.url
    with pytest.raises(UnsentError) as raised:
        call(url)
    assert raised.value.problem is CallProblem.UNREACHABLE
    assert str(raised.value).startswith("anthropic: no connection to 127.0.0.1: is the server running? (")
    with pytest.raises(ModelError, match="is the server running"):
        check_reachable(KEY, url, 5.0)


def test_a_server_that_listens_is_there_whatever_it_says(server: ScriptedServer) -> None:
    server.replies("/v1/models", failed(401, "authentication_error"))
    check_reachable(KEY, server.url, 5.0)
    assert [received.path for received in server.received] == ["/v1/models"]


@pytest.mark.parametrize(
    "text",
    [
        f"messages.0: cannot take {SECRET}",
        f"messages.0: cannot take\n  {SECRET.replace(' ', chr(10))}",
        f"invalid key {KEY}",
    ],
)
def test_errors_hold_neither_documents_nor_the_key(
    server: ScriptedServer, caplog: pytest.LogCaptureFixture, text: str
) -> None:
    server.replies(PATH, failed(400, "invalid_request_error", text))
    with caplog.at_level(logging.DEBUG), pytest.raises(CallError) as raised:
        call(server.url)
    chain: list[BaseException | None] = [raised.value, raised.value.__cause__]
    shown = f"{chain} {caplog.text}"
    assert raised.value.__suppress_context__
    assert KEY not in shown
    assert "merger" not in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_key_that_no_header_can_hold(server: ScriptedServer) -> None:
    async def once() -> None:
        caller = AnthropicCaller(NAME, FACTS, "sk-鍵\n", server.url, 5.0)
        try:
            await caller.call(ASK)
        finally:
            await caller.close()

    with pytest.raises(CallError) as raised:
        asyncio.run(once())
    assert "sk-" not in str(raised.value)


def test_no_key_at_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with pytest.raises(SettingsError, match="ANTHROPIC_API_KEY"):
        AnthropicCaller(NAME, FACTS, None, "", 5.0)


def test_what_is_sent(server: ScriptedServer) -> None:
    turns = (Message("user", "question"), Message("assistant", "answer \ud800"), Message("user", "次は？"))
    request = replace(ASK, messages=turns, system="and briefly", stop=("END", "\n\n"), temperature=0.2)
    server.replies(PATH, said("one\n\ntwo"))
    answer = call(server.url, request)
    (received,) = server.received
    assert received.json == {
        "model": NAME,
        "max_tokens": 100,
        "system": [{"type": "text", "text": "Summarise."}, {"type": "text", "text": "and briefly"}],
        "messages": [
            {"role": "user", "content": "question"},
            {"role": "assistant", "content": "answer \ufffd"},
            {"role": "user", "content": "次は？"},
        ],
        "stop_sequences": ["END"],
        "temperature": 0.2,
    }
    headers = {name.lower(): value for name, value in received.headers.items()}
    assert headers["anthropic-version"] == "2023-06-01", "the last version that takes a temperature"
    assert KEY in headers.get("authorization", headers.get("x-api-key", ""))
    assert answer.text == "one", "a stop text that the provider does not take is found in the answer"


def test_without_a_temperature_the_version_is_the_clients(server: ScriptedServer) -> None:
    server.replies(PATH, said())
    call(server.url)
    headers = {name.lower(): value for name, value in server.received[0].headers.items()}
    assert headers["anthropic-version"] > "2023-06-01"
    assert "temperature" not in server.received[0].json


@pytest.mark.parametrize(
    ("prefix", "cache_prefix_tokens", "cached"),
    [
        ("word " * 1024, 1024, True),
        ("word " * 1000, 1024, False),
        ("日本語" * 512, 1024, True),
        ("日本語" * 500, 1024, False),
        ("word " * 2000, 0, False),
    ],
)
def test_the_prefix_is_cached_where_it_is_long_enough(prefix: str, cache_prefix_tokens: int, cached: bool) -> None:
    facts = replace(FACTS, cache_prefix_tokens=cache_prefix_tokens)
    params = message_params(NAME, facts, replace(ASK, prefix=prefix, system="x" * 50_000))
    assert not isinstance(params["system"], str)
    first, second = params["system"]
    assert first.get("cache_control") == ({"type": "ephemeral"} if cached else None)
    assert first["text"] == prefix
    assert "cache_control" not in second


def test_no_system_text_at_all() -> None:
    assert "system" not in message_params(NAME, FACTS, replace(ASK, prefix=""))
    assert message_params(NAME, FACTS, replace(ASK, prefix="", system="s"))["system"] == [{"type": "text", "text": "s"}]


SCHEMA = {
    "type": "object",
    "properties": {"names": {"type": "array", "items": {"type": "string", "maxLength": 80}, "maxItems": 9}},
    "required": ["names"],
}


def test_bounds_of_a_schema_are_described_to_the_providers_models() -> None:
    """They reject bounds; other servers behind the same interface need them."""
    request = replace(ASK, schema=json.dumps(SCHEMA))
    ours, theirs = (message_params(name, FACTS, request)["output_config"]["format"] for name in (NAME, "qwen"))
    assert theirs == {"type": "json_schema", "schema": SCHEMA}
    assert ours
    assert ours["type"] == "json_schema"
    assert ours["schema"] == {
        "type": "object",
        "additionalProperties": False,
        "required": ["names"],
        "properties": {
            "names": {
                "type": "array",
                "items": {"type": "string", "description": "{maxLength: 80}"},
                "description": "{maxItems: 9}",
            }
        },
    }


@pytest.mark.parametrize(
    ("thinking", "expected"),
    [
        (Thinking.OFF, {"max_tokens": 100}),
        (Thinking.DISABLED, {"max_tokens": 100, "thinking": {"type": "disabled"}}),
        (Thinking.BETWEEN_TOOLS, {"max_tokens": 100, "thinking": {"type": "between_tools"}}),
        (Thinking.ALWAYS, {"max_tokens": 4196, "output_config": {"effort": "low"}}),
    ],
)
def test_models_are_kept_from_thinking(thinking: Thinking, expected: dict[str, object]) -> None:
    params = message_params(NAME, replace(FACTS, thinking=thinking), ASK)
    assert {key: params.get(key) for key in ("max_tokens", "thinking", "output_config") if key in params} == expected


def test_room_for_thinking_stays_within_what_the_model_writes() -> None:
    facts = replace(FACTS, output_tokens=1000, thinking=Thinking.ALWAYS)
    assert message_params(NAME, facts, ASK)["max_tokens"] == 1000
    assert message_params(NAME, facts, replace(ASK, max_tokens=5000))["max_tokens"] == 5000


def provider(url: str, folder: Path, **changes: Any) -> AnthropicModel:
    settings: dict[str, Any] = {"batch": "never", "batches": BatchSettings(state_of(folder), 1, 1, 1.0, 1)}
    settings["open_calls"] = lambda keep, _: keep
    return AnthropicModel("anthropic:haiku@here", NAME, FACTS, KEY, url, 5.0, **{**settings, **changes})


def test_without_batches_a_session_is_one_of_single_calls(tmp_path: Path) -> None:
    opened = object()
    keeps: list[object] = []

    def open_calls(keep: object, budget: object) -> object:
        keeps.append(keep)
        return opened

    model = provider("http://127.0.0.1:9", tmp_path, open_calls=open_calls)
    assert model.open(print, UNLIMITED) is opened
    assert keeps == [print]
    assert model.name == "anthropic:haiku@here"
    assert model.facts == FACTS


def test_tokens_are_counted_in_order(server: ScriptedServer, tmp_path: Path) -> None:
    counts = [Reply(json=MessageTokensCount(input_tokens=7).model_dump())]
    server.replies("/v1/messages/count_tokens", *counts)
    requests = [replace(ASK, system=f"s{number}", schema=json.dumps(SCHEMA)) for number in range(30)]
    model = provider(server.url, tmp_path)
    assert model.count_tokens([]) == []
    assert model.count_tokens(requests) == [7] * 30
    sent = sorted(received.json["system"][1]["text"] for received in server.received)
    assert sent == sorted(f"s{number}" for number in range(30))
    assert set(server.received[0].json) == {"model", "messages", "system", "output_config"}


def test_counting_is_tried_again(server: ScriptedServer, tmp_path: Path) -> None:
    path = "/v1/messages/count_tokens"
    server.replies(path, failed(429, "rate_limit_error", **{"retry-after-ms": "10"}))
    server.replies(path, Reply(json=MessageTokensCount(input_tokens=7).model_dump()))
    assert provider(server.url, tmp_path).count_tokens([ASK]) == [7]


def test_counting_that_fails(server: ScriptedServer, tmp_path: Path) -> None:
    server.replies("/v1/messages/count_tokens", failed(401, "authentication_error"))
    with pytest.raises(ModelError, match="401 authentication_error"):
        provider(server.url, tmp_path).count_tokens([ASK, ASK])
