"""A scripted Message Batches server: its replies are built by the client's own types, its outcomes decided here.

It keeps the account: which requests were answered, and so billed, and how often. A process that asks it can be killed
at chosen moments of a call.
"""

import itertools
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any

from anthropic.types import Message, TextBlock, Usage
from anthropic.types.messages import (
    MessageBatch,
    MessageBatchCanceledResult,
    MessageBatchErroredResult,
    MessageBatchExpiredResult,
    MessageBatchIndividualResponse,
    MessageBatchRequestCounts,
    MessageBatchSucceededResult,
)
from anthropic.types.shared import ErrorResponse
from pydantic import BaseModel
from scripted_provider import state_of

from rag_assets.contracts.ports import Session
from rag_assets.models.anthropic.batches import OpenCalls
from rag_assets.models.anthropic.model import AnthropicModel
from rag_assets.models.anthropic.open_batches import BatchSettings
from rag_assets.models.catalogue import ModelFacts, Prices
from rag_assets.models.providers import CallBudget, Keep

NAME, KEY = "claude-haiku-4-5", "sk-ant-secret"
FACTS = ModelFacts(200_000, 64_000, Prices(1.0, 5.0, 0.1, 1.25, 0.5), 4096)
PAID = (10 * 1.0 + 5 * 5.0) / 1e6 * 0.5  # what the server's answers cost in a batch

Outcome = str  # succeeded, invalid, api_error, overloaded, expired or canceled
EVENTS = ("create_arrives", "create_made", "retrieve", "list", "results")


def all_succeed(text: str, before: int) -> Outcome:
    """No request fails."""
    return "succeeded"


def nothing_happens(event: str, number: int) -> None:
    """No moment is special."""


def no_fault(method: str, path: str) -> tuple[int, BaseModel] | None:
    """No call fails."""
    return None


def answer_to(text: str) -> str:
    """What the model says to a text."""
    return f"answer to {text}"


def no_calls(keep: Keep, budget: CallBudget) -> AbstractContextManager[Session]:
    """Opens no session of single calls."""
    raise AssertionError(f"no single calls are expected for {keep} and {budget}")


def batch_model(
    url: str,
    folder: Path,
    *,
    batch: str = "always",
    open_calls: OpenCalls = no_calls,
    timeout_seconds: float = 5.0,
    **settings: Any,
) -> AnthropicModel:
    """A model of the server, whose batches under way are remembered in a folder."""
    defaults: dict[str, Any] = {
        "batch_from": 3,
        "batch_requests": 100,
        "poll_seconds": 0.02,
        "attempts": 3,
        "settle_seconds": 0.2,
    }
    batches = BatchSettings(state_of(folder), **{**defaults, **settings})
    name = f"anthropic:{NAME}"
    return AnthropicModel(
        name, NAME, FACTS, KEY, url, timeout_seconds, batch=batch, batches=batches, open_calls=open_calls
    )


@dataclass
class ScriptedBatch:
    """A batch on the server."""

    id: str
    requests: dict[str, dict[str, Any]]
    outcomes: dict[str, Outcome]
    created_at: datetime
    ends_at: float
    cancel_initiated_at: datetime | None = None
    lines: list[bytes] = field(default_factory=list)

    @property
    def ended(self) -> bool:
        return time.monotonic() >= self.ends_at


class ScriptedBatches:
    """The server, in a thread of its own.

    Args:
        outcome: Says how a request ends, by its text and how often it was asked before.
        seconds: Until a batch ends.
    """

    def __init__(self, outcome: Callable[[str, int], Outcome] | None = None, seconds: float = 0.0) -> None:
        self.outcome = outcome or all_succeed
        self.seconds = seconds
        self.batches: dict[str, ScriptedBatch] = {}
        self.asked: Counter[str] = Counter()
        self.billed: Counter[str] = Counter()
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.on: Callable[[str, int], None] = nothing_happens
        self.fail: Callable[[str, str], tuple[int, BaseModel] | None] = no_fault
        self.counts: Counter[str] = Counter()
        self._ids = itertools.count(1)
        self._lock = threading.Lock()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                server._answer(self, "GET")

            def do_POST(self) -> None:
                server._answer(self, "POST")

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                del format, args

        class Server(ThreadingHTTPServer):
            def handle_error(self, request: object, client_address: object) -> None: ...  # clients get killed

        self._http = Server(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def __enter__(self) -> "ScriptedBatches":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def _happens(self, event: str) -> None:
        with self._lock:
            self.counts[event] += 1
            number = self.counts[event]
        self.on(event, number)

    def _answer(self, handler: BaseHTTPRequestHandler, method: str) -> None:
        path = handler.path.partition("?")[0]
        self.headers.append(dict(handler.headers))
        self.paths.append(f"{method} {handler.path}")
        length = int(handler.headers.get("Content-Length", 0))
        if (method, path) == ("POST", "/v1/messages/batches"):
            self._happens("create_arrives")
        body = handler.rfile.read(length)
        if failure := self.fail(method, path):
            _reply(handler, failure[1], failure[0])
            return
        parts = path.split("/")
        match method, parts[4:]:
            case "POST", []:
                if len(body) == length:
                    _reply(handler, self._create(json.loads(body)["requests"]))
            case "GET", []:
                self._happens("list")
                self._list(handler)
            case _, [batch_id, *_] if batch_id not in self.batches:
                _reply(handler, error_body("not_found_error", "no such batch"), 404)
            case "GET", [batch_id]:
                self._happens("retrieve")
                _reply(handler, self._state(self.batches[batch_id]))
            case "POST", [batch_id, "cancel"]:
                _reply(handler, self._cancel(self.batches[batch_id]))
            case "GET", [batch_id, "results"]:
                self._results(handler, self.batches[batch_id])
            case _:
                _reply(handler, error_body("not_found_error", "no such page"), 404)

    def _create(self, requests: list[dict[str, Any]]) -> MessageBatch:
        with self._lock:
            by_id = {request["custom_id"]: request["params"] for request in requests}
            assert len(by_id) == len(requests)
            outcomes = {}
            for custom_id, params in by_id.items():
                text = params["messages"][-1]["content"]
                outcomes[custom_id] = self.outcome(text, self.asked[text])
                self.asked[text] += 1
                self.billed[text] += outcomes[custom_id] == "succeeded"
            batch_id = f"msgbatch_{next(self._ids):03d}"
            batch = ScriptedBatch(batch_id, by_id, outcomes, datetime.now(UTC), time.monotonic() + self.seconds)
            self.batches[batch_id] = batch
        self._happens("create_made")
        return self._state(batch)

    def _state(self, batch: ScriptedBatch) -> MessageBatch:
        counts = Counter(batch.outcomes.values()) if batch.ended else Counter(processing=len(batch.outcomes))
        errored = counts["invalid"] + counts["api_error"] + counts["overloaded"]
        return MessageBatch(
            id=batch.id,
            type="message_batch",
            created_at=batch.created_at,
            expires_at=batch.created_at + timedelta(days=1),
            ended_at=datetime.now(UTC) if batch.ended else None,
            cancel_initiated_at=batch.cancel_initiated_at,
            processing_status="ended" if batch.ended else "canceling" if batch.cancel_initiated_at else "in_progress",
            request_counts=MessageBatchRequestCounts(
                processing=counts["processing"],
                succeeded=counts["succeeded"],
                errored=errored,
                expired=counts["expired"],
                canceled=counts["canceled"],
            ),
            results_url=f"{self.url}/v1/messages/batches/{batch.id}/results" if batch.ended else None,
        )

    def _list(self, handler: BaseHTTPRequestHandler) -> None:
        states = [self._state(batch) for batch in reversed(self.batches.values())]
        query = dict(part.partition("=")[::2] for part in handler.path.partition("?")[2].split("&") if part)
        if after := query.get("after_id"):
            states = states[[state.id for state in states].index(after) + 1 :]
        page = states[: int(query.get("limit", "20"))]
        ids = [state.id for state in page]
        _send(
            handler,
            json.dumps(
                {
                    "data": [state.model_dump(mode="json") for state in page],
                    "has_more": len(states) > len(page),
                    "first_id": ids[0] if ids else None,
                    "last_id": ids[-1] if ids else None,
                }
            ).encode(),
        )

    def _cancel(self, batch: ScriptedBatch) -> MessageBatch:
        with self._lock:
            if not batch.ended:
                for custom_id, outcome in batch.outcomes.items():
                    text = batch.requests[custom_id]["messages"][-1]["content"]
                    self.billed[text] -= outcome == "succeeded"
                batch.outcomes = dict.fromkeys(batch.outcomes, "canceled")
                batch.cancel_initiated_at = datetime.now(UTC)
        return self._state(batch)

    def _results(self, handler: BaseHTTPRequestHandler, batch: ScriptedBatch) -> None:
        if not batch.lines:
            lines = [self._line(batch, custom_id) for custom_id in batch.outcomes]
            random.Random(batch.id).shuffle(lines)
            batch.lines = lines
        handler.send_response(200)
        handler.send_header("Content-Type", "application/x-jsonl")
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        for start in range(0, len(batch.lines), 250):
            chunk = b"".join(batch.lines[start : start + 250])
            handler.wfile.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
            handler.wfile.flush()
            self._happens("results")
        handler.wfile.write(b"0\r\n\r\n")

    def _line(self, batch: ScriptedBatch, custom_id: str) -> bytes:
        text = batch.requests[custom_id]["messages"][-1]["content"]
        result: Any
        match batch.outcomes[custom_id]:
            case "succeeded":
                result = MessageBatchSucceededResult(type="succeeded", message=message(answer_to(text)))
            case "invalid":
                result = MessageBatchErroredResult(
                    type="errored", error=error_body("invalid_request_error", f"max_tokens: too large, in: {text}")
                )
            case "api_error":
                result = MessageBatchErroredResult(type="errored", error=error_body("api_error", "internal error"))
            case "overloaded":
                result = MessageBatchErroredResult(type="errored", error=error_body("overloaded_error", "overloaded"))
            case "expired":
                result = MessageBatchExpiredResult(type="expired")
            case _:
                result = MessageBatchCanceledResult(type="canceled")
        item = MessageBatchIndividualResponse(custom_id=custom_id, result=result)
        return item.model_dump_json().encode() + b"\n"


def message(text: str, **changes: Any) -> Message:
    """An answer of the model: 10 tokens read, 5 written."""
    fields: dict[str, Any] = {
        "id": "msg_scripted",
        "type": "message",
        "role": "assistant",
        "model": "claude-haiku-4-5",
        "content": [TextBlock(type="text", text=text)] if text else [],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": Usage(input_tokens=10, output_tokens=5),
    }
    return Message.model_validate({**fields, **changes})


def error_body(kind: str, text: str) -> ErrorResponse:
    """The body of an error of the API."""
    return ErrorResponse.model_validate({"type": "error", "error": {"type": kind, "message": text}})


def _reply(handler: BaseHTTPRequestHandler, body: BaseModel, status: int = 200) -> None:
    _send(handler, body.model_dump_json().encode(), status)


def _send(handler: BaseHTTPRequestHandler, content: bytes, status: int = 200) -> None:
    handler.send_response(status)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(len(content)))
    handler.end_headers()
    handler.wfile.write(content)
