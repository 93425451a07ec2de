"""Text that is told while it is written: by servers of the tests' own that fail as no real one can be made to, and by
real ones, with all that stands around a provider.
"""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from llama import LlamaServer
from scripted import Reply, ScriptedServer
from scripted_batches import error_body, message

from rag_assets.contracts.generation import Completion, Message, Outcome, Request, Tag, Usage
from rag_assets.models.anthropic.model import AnthropicCaller
from rag_assets.models.catalogue import ModelFacts, Prices
from rag_assets.models.openai.endpoint import Endpoint
from rag_assets.models.openai.model import OpenAICaller
from rag_assets.models.providers import CallError, CallProblem
from rag_assets.pipeline.home import Home
from rag_assets.pipeline.language_models import language_model
from rag_assets.pipeline.settings import load_settings

CHAT, MESSAGES = "/v1/chat/completions", "/v1/messages"
PRICES = Prices(1.0, 5.0)
SSE = {"content-type": "text/event-stream"}
USAGE = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer() as scripted:
        yield scripted


def ask(told: list[str], **changes: Any) -> Request:
    given: dict[str, Any] = {"prefix": "Be short.", "messages": (Message("user", "Say hello."),), "max_tokens": 20}
    return Request(**given | changes, tag=Tag("tests", "stream"), progress=told.append)


def call(caller_url: str, request: Request, *, anthropic: bool = False) -> Completion:
    async def once() -> Completion:
        caller: AnthropicCaller | OpenAICaller
        if anthropic:
            caller = AnthropicCaller("m", ModelFacts(8192, 2048, PRICES), "key", caller_url, 120.0)
        else:
            caller = OpenAICaller(Endpoint(f"{caller_url}/v1", "key", 120.0), "m", PRICES)
        try:
            return await caller.call(request)
        finally:
            await caller.close()

    return asyncio.run(once())


def events(*values: object, names: tuple[str, ...] = (), end: str = "") -> Reply:
    lines = [
        (f"event: {names[place]}\n" if names else "") + f"data: {json.dumps(value)}\n\n"
        for place, value in enumerate(values)
    ]
    return Reply(body=("".join(lines) + end).encode(), headers=SSE)


def piece(text: str | None = None, reason: str | None = None, **delta: object) -> dict[str, object]:
    content = {"content": text} if text is not None else {}
    return {
        "id": "1",
        "object": "chat.completion.chunk",
        "choices": [{"delta": content | delta, "finish_reason": reason}],
    }


def pieces(*texts: str, reason: str | None = "stop", usage: object = USAGE, **delta: object) -> Reply:
    values = [piece("", role="assistant"), *map(piece, texts), piece(None, reason, **delta)]
    tail = [{"id": "1", "object": "chat.completion.chunk", "choices": [], "usage": usage}] if usage else []
    return events(*values, *tail, end="data: [DONE]\n\n")


@pytest.mark.parametrize(
    ("reply", "outcome", "text"),
    [
        (pieces("Good ", "day."), Outcome.COMPLETED, "Good day."),
        (pieces("Good ", "day", reason="length"), Outcome.TRUNCATED, "Good day"),
        (pieces("Good", reason="content_filter"), Outcome.REFUSED, ""),
        (pieces(refusal="I cannot."), Outcome.REFUSED, ""),
        (pieces(), Outcome.EMPTY, ""),
    ],
)
def test_pieces_are_one_answer(server: ScriptedServer, reply: Reply, outcome: Outcome, text: str) -> None:
    server.replies(CHAT, reply)
    told: list[str] = []
    answer = call(server.url, ask(told))
    assert (answer.outcome, answer.text) == (outcome, text)
    assert answer.usage == Usage(100, 10)
    assert answer.cost_usd == pytest.approx(150 / 1e6)
    if text:
        assert told == ["Good ", text]
    sent = server.received[0].json
    assert (sent["stream"], sent["stream_options"]) == (True, {"include_usage": True})


def test_tokens_that_a_server_does_not_tell_are_estimated(server: ScriptedServer) -> None:
    server.replies(CHAT, pieces("Good day.", usage=None))
    answer = call(server.url, ask([]))
    assert answer.usage.input_tokens > 0
    assert answer.usage.output_tokens > 0
    assert answer.cost_usd > 0, "an answer that was paid for must not count as free"


@pytest.mark.parametrize(
    "first",
    [
        Reply(400, json={"error": {"message": "stream_options is unknown"}}),
        Reply(json={"choices": [{"finish_reason": "stop", "message": {"content": "Good day."}}], "usage": USAGE}),
    ],
    ids=["refused", "ignored"],
)
def test_a_server_that_cannot_stream_is_asked_for_the_whole(server: ScriptedServer, first: Reply) -> None:
    whole = {"choices": [{"finish_reason": "stop", "message": {"content": "Good day."}}], "usage": USAGE}
    server.replies(CHAT, first, Reply(json=whole))
    told: list[str] = []
    assert call(server.url, ask(told)).text == "Good day."
    assert told == []
    assert "stream" not in server.received[1].json


@pytest.mark.parametrize(
    "reply",
    [
        events(piece("Good ")),
        events(piece("Good "), {"error": {"message": "out of memory", "code": 500}}),
        events(piece("Good "), end="data: {broken\n\n"),
        pieces("Good", reason="error"),
    ],
    ids=["breaks off", "error", "no json", "gives up"],
)
def test_an_answer_that_breaks_off_is_none(server: ScriptedServer, reply: Reply) -> None:
    server.replies(CHAT, reply)
    with pytest.raises(CallError) as caught:
        call(server.url, ask([]))
    assert caught.value.problem is CallProblem.UNAVAILABLE
    assert "hello" not in str(caught.value)


def anthropic_events(text: str, *, ended: bool = True) -> Reply:
    opening = message("").model_dump(mode="json") | {"content": [], "stop_reason": None}
    values: list[dict[str, Any]] = [
        {"type": "message_start", "message": opening},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *(
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": part}}
            for part in text.split("|")
        ),
    ]
    if ended:
        values += [
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 7}},
            {"type": "message_stop"},
        ]
    return events(*values, names=tuple(str(each["type"]) for each in values))


def test_a_message_in_pieces(server: ScriptedServer) -> None:
    server.replies(MESSAGES, anthropic_events("Good |day."))
    told: list[str] = []
    answer = call(server.url, ask(told, temperature=0.0), anthropic=True)
    assert (answer.outcome, answer.text, told) == (Outcome.COMPLETED, "Good day.", ["Good ", "Good day."])
    assert answer.usage.output_tokens == 7
    assert server.received[0].json["stream"] is True
    assert server.received[0].json["temperature"] == 0.0


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (anthropic_events("Good ", ended=False), CallProblem.UNAVAILABLE),
        (
            Reply(529, json=error_body("overloaded_error", "busy").model_dump(mode="json")),
            CallProblem.OVERLOADED,
        ),
        (
            events(error_body("overloaded_error", "busy").model_dump(mode="json"), names=("error",)),
            CallProblem.OVERLOADED,
        ),
    ],
    ids=["breaks off", "overloaded", "overloaded later"],
)
def test_a_message_that_breaks_off_is_none(server: ScriptedServer, reply: Reply, problem: CallProblem) -> None:
    server.replies(MESSAGES, reply)
    with pytest.raises(CallError) as caught:
        call(server.url, ask([]), anthropic=True)
    assert caught.value.problem is problem


def test_a_real_server_tells_text_as_it_comes(small_llama_server: LlamaServer) -> None:
    """One by each interface of the server: some seconds."""
    for anthropic in (False, True):
        told: list[str] = []
        request = ask(told, max_tokens=12, temperature=0.0)
        answer = call(small_llama_server.url, request, anthropic=anthropic)
        assert len(told) > 3
        assert told[-1] == answer.text
        assert all(later.startswith(earlier) for earlier, later in pairwise(told))
        assert 3 < answer.usage.output_tokens <= 13  # it may end by itself: processors differ in the last digit
        assert answer.usage.input_tokens + answer.usage.cache_read_tokens > 10


def test_what_was_told_live_is_stored_and_written_down(small_llama_server: LlamaServer, tmp_path: Path) -> None:
    chosen = {"provider": "openai", "model": "small", "base_url": small_llama_server.openai_url}
    home = Home(load_settings(home=tmp_path, language_model=chosen))
    told: list[str] = []
    request = ask(told, max_tokens=8, temperature=0.0)
    (first,) = language_model(home).generate([request])
    (again,) = language_model(home).generate([replace(request, progress=lambda _: pytest.fail("told again"))])
    assert told[-1] == first.text == again.text
    assert (first.stored, again.stored) == (False, True)
    rows = home.ledger().rows(columns=["cache_hit", "output_tokens"]).to_pylist()
    assert sorted((row["cache_hit"], row["output_tokens"]) for row in rows) == [(False, 8), (True, 0)]
