"""Message Batches: against `llmock` where everything succeeds, and against a scripted server where it does not.

The scripted server (`scripted_batches`) keeps the account of what was answered and billed, outside the process that is
killed.
"""

import json
import logging
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import batch_client
import pytest
import sqlalchemy as sa
from forked import Child
from scripted_batches import (
    EVENTS,
    KEY,
    NAME,
    PAID,
    ScriptedBatches,
    answer_to,
    batch_model,
    error_body,
    no_fault,
    nothing_happens,
)
from scripted_provider import UNLIMITED, state_of

from rag_assets.contracts.errors import ModelError
from rag_assets.contracts.generation import Completion, Message, Outcome, Request, Tag, request_key
from rag_assets.contracts.ports import Session
from rag_assets.models.accounts.schema import BATCH_REQUESTS
from rag_assets.models.anthropic.model import AnthropicModel
from rag_assets.models.anthropic.open_batches import BatchEntry, BatchStore, cancel_batch, digits_of, key_digits
from rag_assets.models.providers import Keep


def ask(text: str, **changes: Any) -> Request:
    return replace(Request("prefix", (Message("user", text),), 100, Tag("documents", "summarize", text)), **changes)


def ignore(answers: Sequence[Completion]) -> None: ...


def take_all(session: Session) -> list[Completion]:
    taken = []
    while completion := session.take(wait=True):
        taken.append(completion)
    return taken


def run(provider: AnthropicModel, requests: list[Request], keep: Keep = ignore) -> dict[str, Completion]:
    with provider.open(keep, UNLIMITED) as session:
        for request in requests:
            session.submit(request)
        return {answer.request.messages[-1].text: answer for answer in take_all(session)}


@pytest.fixture
def server() -> Iterator[ScriptedBatches]:
    with ScriptedBatches() as running:
        yield running


def test_each_request_is_answered_and_kept(server: ScriptedBatches, tmp_path: Path) -> None:
    requests = [ask(f"text {number} 日本語 \ud800") for number in range(7)]
    kept: list[Completion] = []
    answers = run(batch_model(server.url, tmp_path, batch_requests=3), requests, kept.extend)
    assert set(answers) == {request.messages[-1].text for request in requests}
    assert {answer.request.tag for answer in answers.values()} == {request.tag for request in requests}
    for text, answer in answers.items():
        clean = text.replace("\ud800", "\ufffd")
        assert (answer.outcome, answer.text) == (Outcome.COMPLETED, answer_to(clean))
        assert answer.cost_usd == pytest.approx(PAID)
        assert answer.batch_id in server.batches
        assert not answer.stored
        assert 0 <= answer.seconds < 20
        assert abs(answer.called_at - time.time()) < 20
    assert Counter(answer.request for answer in kept) == Counter(requests)
    assert [len(batch.requests) for batch in server.batches.values()] == [3, 3, 1]
    assert BatchStore(state_of(tmp_path)).open_batches() == []


def test_custom_ids_fit_the_provider_and_name_the_request(server: ScriptedBatches, tmp_path: Path) -> None:
    run(batch_model(server.url, tmp_path), [ask("one"), ask("two")])
    (batch,) = server.batches.values()
    nonces = {custom_id.partition("-")[0] for custom_id in batch.requests}
    digits = {custom_id.partition("-")[2] for custom_id in batch.requests}
    assert len(nonces) == 1
    assert digits == {key_digits(request_key(f"anthropic:{NAME}", ask(text))) for text in ("one", "two")}
    assert all(0 < len(custom_id) <= 64 for custom_id in batch.requests)


def test_the_size_of_a_batch_is_bounded(server: ScriptedBatches, tmp_path: Path) -> None:
    run(batch_model(server.url, tmp_path, body_bytes=3_000), [ask(f"{number} " + "x" * 1_000) for number in range(6)])
    assert [len(batch.requests) for batch in server.batches.values()] == [2, 2, 2]


def test_a_question_asked_twice_is_paid_once(server: ScriptedBatches, tmp_path: Path) -> None:
    tags = [Tag("documents", "summarize", "a"), Tag("pages", "summarize", "b")]
    with batch_model(server.url, tmp_path).open(ignore, UNLIMITED) as session:
        for tag in tags:
            session.submit(ask("same", tag=tag))
        answers = take_all(session)
    assert [answer.request.tag for answer in answers] == tags
    assert [answer.stored for answer in answers] == [False, True]
    assert sum(answer.cost_usd for answer in answers) == pytest.approx(PAID)
    assert server.billed == {"same": 1}


def test_answers_that_lead_to_further_requests(server: ScriptedBatches, tmp_path: Path) -> None:
    with batch_model(server.url, tmp_path).open(ignore, UNLIMITED) as session:
        session.submit(ask("first"))
        first = session.take(wait=True)
        assert first
        session.submit(ask("second"))
        assert session.take(wait=False) is None, "a batch is not made before there is nothing else to wait for"
        second = session.take(wait=True)
        assert second
        assert session.take(wait=True) is None
    assert (first.text, second.text) == (answer_to("first"), answer_to("second"))


def test_taking_without_waiting_returns_what_has_come(tmp_path: Path) -> None:
    with (
        ScriptedBatches(seconds=0.3) as server,
        batch_model(server.url, tmp_path, batch_requests=1).open(ignore, UNLIMITED) as session,
    ):
        session.submit(ask("one"))
        assert session.take(wait=False) is None
        deadline = time.monotonic() + 10
        while (answer := session.take(wait=False)) is None:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert answer.text == answer_to("one")


def test_an_invalid_request_fails_and_is_not_sent_again(tmp_path: Path) -> None:
    kept: list[Completion] = []
    secret = "bad, a very secret sentence of a document"

    def outcome(text: str, before: int) -> str:
        return "invalid" if text.startswith("bad") else "succeeded"

    with ScriptedBatches(outcome) as server:
        answers = run(batch_model(server.url, tmp_path), [ask(secret), ask("good")], kept.extend)
        assert set(server.asked.values()) == {1}
    failed = answers[secret]
    assert failed.outcome is Outcome.FAILED
    assert failed.error == "anthropic: invalid_request_error", "what quotes the document is left out"
    assert answers["good"].outcome is Outcome.COMPLETED
    assert [answer.request.messages[-1].text for answer in kept] == ["good"], "failures are not kept"


@pytest.mark.parametrize("outcome", ["api_error", "overloaded", "expired", "canceled"])
@pytest.mark.parametrize("times", [1, 2, 3])
def test_what_was_not_billed_is_sent_again(tmp_path: Path, outcome: str, times: int) -> None:
    with ScriptedBatches(lambda text, before: outcome if text == "bad" and before < times else "succeeded") as server:
        answers = run(batch_model(server.url, tmp_path, attempts=3), [ask("bad"), ask("good")])
        assert server.asked == {"bad": min(3, times + 1), "good": 1}
    assert answers["good"].outcome is Outcome.COMPLETED
    assert answers["bad"].outcome is (Outcome.COMPLETED if times < 3 else Outcome.FAILED)
    if times == 3:
        assert (answers["bad"].error or "").startswith("not answered in 3 batches: ")


@contextmanager
def interrupted(server: ScriptedBatches, batches: int = 1) -> Iterator[None]:
    """Ctrl-C ends the block when it first looks at one of so many batches."""

    def interrupt(event: str, number: int) -> None:
        if event == "retrieve" and len(server.batches) == batches:
            server.on = nothing_happens
            os.kill(os.getpid(), signal.SIGINT)

    server.on = interrupt
    with pytest.raises(KeyboardInterrupt):
        yield


def interrupt_when_written(folder: Path) -> None:
    """Ctrl-C when the id of a batch is written down, after which nothing is done but wait."""
    while not BatchStore(state_of(folder)).ids():
        time.sleep(0.01)
    time.sleep(0.2)
    os.kill(os.getpid(), signal.SIGINT)


def test_attempts_are_counted_across_processes(tmp_path: Path) -> None:
    def outcome(text: str, before: int) -> str:
        return "expired"

    with ScriptedBatches(outcome) as server:
        provider = batch_model(server.url, tmp_path, attempts=3)
        for number in (1, 2):
            with provider.open(ignore, UNLIMITED) as session, interrupted(server, batches=number):
                session.submit(ask("bad"))
                session.take(wait=True)
        assert run(provider, [ask("bad")])["bad"].outcome is Outcome.FAILED
        assert server.asked == {"bad": 3}


@contextmanager
def single_calls(called: list[str], keep: Keep) -> Iterator[Session]:
    ready: list[Completion] = []

    class Calls:
        def submit(self, request: Request) -> None:
            called.append(request.messages[-1].text)
            ready.append(Completion(request, Outcome.COMPLETED, "called"))
            keep([ready[-1]])

        def take(self, *, wait: bool) -> Completion | None:
            del wait
            return ready.pop(0) if ready else None

        def cancel(self) -> None:
            ready.clear()

    yield Calls()


@pytest.mark.parametrize(("count", "batches"), [(2, 0), (3, 1)])
def test_few_requests_go_as_single_calls(server: ScriptedBatches, tmp_path: Path, count: int, batches: int) -> None:
    called: list[str] = []
    kept: list[Completion] = []
    provider = batch_model(server.url, tmp_path, batch="auto", open_calls=lambda keep, _: single_calls(called, keep))
    answers = run(provider, [ask(f"text {number}") for number in range(count)], kept.extend)
    assert len(answers) == len(kept) == count
    assert len(server.batches) == batches
    assert len(called) == (0 if batches else count)


def test_single_calls_go_on_once_chosen_but_for_batches_under_way(tmp_path: Path) -> None:
    called: list[str] = []
    with ScriptedBatches(seconds=0.3) as server:
        always = batch_model(server.url, tmp_path)
        with always.open(ignore, UNLIMITED) as session, interrupted(server):
            session.submit(ask("earlier"))
            session.submit(ask("never asked for again"))
            session.take(wait=True)
        provider = batch_model(
            server.url, tmp_path, batch="auto", open_calls=lambda keep, _: single_calls(called, keep)
        )
        kept: list[Completion] = []
        with provider.open(kept.extend, UNLIMITED) as session:
            session.submit(ask("now"))
            first = session.take(wait=True)
            session.submit(ask("earlier"))
            session.submit(ask("later"))
            rest = take_all(session)
    assert first
    assert first.text == "called"
    assert {answer.text for answer in rest} == {"called", answer_to("earlier")}
    assert called == ["now", "later"]
    assert {answer.request.messages[-1].text for answer in kept} == {"now", "later", "earlier", "never asked for again"}
    assert set(server.billed.values()) == {1}


def test_leaving_a_session_says_how_to_go_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with ScriptedBatches(seconds=60) as server, caplog.at_level(logging.WARNING):
        with batch_model(server.url, tmp_path, poll_seconds=30).open(ignore, UNLIMITED) as session:
            session.submit(ask("a secret document"))
            threading.Thread(target=interrupt_when_written, args=(tmp_path,)).start()
            with pytest.raises(KeyboardInterrupt):
                session.take(wait=True)
        (batch_id,) = server.batches
        assert [found.batch_id for found in BatchStore(state_of(tmp_path)).open_batches()] == [batch_id]
    assert batch_id in caplog.text
    assert "rag-assets batches" in caplog.text
    assert "secret" not in caplog.text


def test_a_batch_can_be_ended(tmp_path: Path) -> None:
    with ScriptedBatches(seconds=1.0) as server:
        provider = batch_model(server.url, tmp_path)
        with provider.open(ignore, UNLIMITED) as session, interrupted(server):
            session.submit(ask("one"))
            session.take(wait=True)
        (found,) = BatchStore(state_of(tmp_path)).open_batches()
        assert (found.requests, found.model_name) == (1, f"anthropic:{NAME}")
        assert found.batch_id

        def cancel(batch_id: str) -> str:
            return cancel_batch(state_of(tmp_path), batch_id, api_key=KEY, base_url=server.url, timeout_seconds=5)

        assert cancel(found.batch_id) == "canceling"
        assert run(provider, [ask("one")])["one"].outcome is Outcome.COMPLETED
        assert server.asked == {"one": 2}
        assert server.billed == {"one": 1}
        assert cancel(found.batch_id) == "ended"
        with pytest.raises(ModelError, match="msgbatch_elsewhere was not ended"):
            cancel("msgbatch_elsewhere")


def test_a_batch_that_the_account_does_not_have(server: ScriptedBatches, tmp_path: Path) -> None:
    provider = batch_model(server.url, tmp_path)
    store = BatchStore(state_of(tmp_path))
    with store.lock():
        digits = key_digits(request_key(provider.name, ask("one")))
        written = store.write(provider.name, server.url, [BatchEntry(digits, ask("one"), 1)], 0.0)
        store.write_id(written.nonce, "msgbatch_gone")
    with provider.open(ignore, UNLIMITED) as session:
        session.submit(ask("one"))
        session.submit(ask("two"))
        two = session.take(wait=True)
        assert two
        assert two.text == answer_to("two")
        with pytest.raises(ModelError, match="--cancel msgbatch_gone"):
            session.take(wait=True)
    assert server.asked == {"two": 1}
    cancelled = cancel_batch(state_of(tmp_path), "msgbatch_gone", api_key=KEY, base_url=server.url, timeout_seconds=5)
    assert cancelled == "forgotten"
    assert run(provider, [ask("one")])["one"].outcome is Outcome.COMPLETED


def failing(count: int, status: int, kind: str, method: str, suffix: str) -> Callable[[str, str], Any]:
    left = [count]

    def fail(asked: str, path: str) -> Any:
        if asked == method and path.endswith(suffix) and left[0]:
            left[0] -= 1
            return status, error_body(kind, "said by the server")
        return None

    return fail


@pytest.mark.parametrize(
    ("status", "kind", "method", "suffix"),
    [
        (429, "rate_limit_error", "POST", "/batches"),
        (529, "overloaded_error", "POST", "/batches"),
        (500, "api_error", "POST", "/batches"),
        (503, "api_error", "GET", "001"),
        (500, "api_error", "GET", "/results"),
    ],
)
def test_passing_faults_of_the_provider(
    server: ScriptedBatches, tmp_path: Path, status: int, kind: str, method: str, suffix: str
) -> None:
    server.fail = failing(2, status, kind, method, suffix)
    provider = batch_model(server.url, tmp_path, attempts=4, settle_seconds=0.05)
    assert run(provider, [ask("one")])["one"].outcome is Outcome.COMPLETED
    assert server.billed == {"one": 1}


@pytest.mark.parametrize(
    ("status", "kind", "left"),
    [
        (401, "authentication_error", 0),
        (400, "invalid_request_error", 0),
        (402, "billing_error", 0),
        (500, "api_error", 1),
    ],
)
def test_a_batch_that_is_not_made(server: ScriptedBatches, tmp_path: Path, status: int, kind: str, left: int) -> None:
    server.fail = failing(100, status, kind, "POST", "/batches")
    provider = batch_model(server.url, tmp_path, attempts=2, settle_seconds=0.05)
    with pytest.raises(ModelError, match=f"{status} {kind}: said by the server; a batch of 1 requests was not made"):
        run(provider, [ask("one")])
    assert len(BatchStore(state_of(tmp_path)).open_batches()) == left, "what may have been made is remembered"
    server.fail = no_fault
    assert run(provider, [ask("one")])["one"].outcome is Outcome.COMPLETED
    assert server.billed == {"one": 1}
    assert BatchStore(state_of(tmp_path)).open_batches() == []


def test_answers_under_way_can_be_taken_when_no_more_are_accepted(server: ScriptedBatches, tmp_path: Path) -> None:
    with batch_model(server.url, tmp_path).open(ignore, UNLIMITED) as session:
        session.submit(ask("one"))
        first = session.take(wait=True)
        server.fail = failing(100, 402, "billing_error", "POST", "/batches")
        session.submit(ask("two"))
        with pytest.raises(ModelError, match="billing_error"):
            session.take(wait=True)
    assert first


def test_an_unreachable_provider(tmp_path: Path) -> None:
    with ScriptedBatches() as server:
        url = server.url
    began = time.monotonic()
    with pytest.raises(ModelError, match="no connection to 127.0.0.1"):
        run(batch_model(url, tmp_path, attempts=50), [ask("one")])
    assert time.monotonic() - began < 15
    assert BatchStore(state_of(tmp_path)).open_batches() == [], "what was not sent need not be remembered"


@pytest.mark.parametrize("seconds", [0.0, 0.5])
def test_a_creation_that_was_not_confirmed_is_found_again(tmp_path: Path, seconds: float) -> None:
    """A batch of the same size by somebody else is not mistaken for it."""
    with ScriptedBatches(seconds=seconds) as server:
        elsewhere = batch_model(server.url, tmp_path / "elsewhere")
        run(elsewhere, [ask("somebody else's")])
        provider = batch_model(server.url, tmp_path / "here")
        kept: list[Completion] = []
        with pytest.raises(ModelError), provider.open(kept.extend, UNLIMITED) as session:
            session.submit(ask("one"))

            def lose(event: str, number: int) -> None:
                if event == "create_made":
                    raise ConnectionError

            server.on = lose
            server.fail = failing(100, 500, "api_error", "GET", "/batches")
            session.take(wait=True)
        server.on = nothing_happens
        server.fail = no_fault
        (found,) = BatchStore(state_of(tmp_path / "here")).open_batches()
        assert found.batch_id is None
        run(elsewhere, [ask("somebody else's, again")])
        assert run(provider, [ask("one")], kept.extend)["one"].text == answer_to("one")
        assert server.asked["one"] == 1
        assert [answer.request.messages[-1].text for answer in kept] == ["one"]


def test_results_that_can_never_be_read(server: ScriptedBatches, tmp_path: Path) -> None:
    server.fail = failing(100, 500, "api_error", "GET", "/results")
    with pytest.raises(ModelError, match="said by the server; batches continue at the provider"):
        run(batch_model(server.url, tmp_path, attempts=3), [ask("one")])
    assert len(BatchStore(state_of(tmp_path)).open_batches()) == 1


def test_two_creations_of_one_size_that_were_not_confirmed(server: ScriptedBatches, tmp_path: Path) -> None:
    provider, elsewhere = batch_model(server.url, tmp_path / "here"), batch_model(server.url, tmp_path / "elsewhere")
    store = BatchStore(state_of(tmp_path / "here"))
    for text in ("one", "two"):
        run(elsewhere, [ask(text)])
        made = list(server.batches.values())[-1]
        ((custom_id, params),) = made.requests.items()
        with store.lock():
            written = store.write(provider.name, server.url, [BatchEntry(digits_of(custom_id), ask(text), 1)], 0.0)
        # as if the process had died before it wrote down the id
        (renamed,) = written.attempts
        made.requests, made.outcomes, made.lines = {renamed: params}, {renamed: "succeeded"}, []
    answers = run(provider, [ask("two"), ask("one")])
    assert {answer.outcome for answer in answers.values()} == {Outcome.COMPLETED}
    assert server.asked == {"one": 1, "two": 1}


def test_a_batch_of_another_live_session_is_waited_for(tmp_path: Path) -> None:
    with ScriptedBatches(seconds=0.4) as server:
        provider = batch_model(server.url, tmp_path, batch_requests=2)
        with provider.open(ignore, UNLIMITED) as one, provider.open(ignore, UNLIMITED) as other:
            other.submit(ask("c"))  # has looked before the first session sends
            for text in ("a", "b"):
                one.submit(ask(text))
            for text in ("a", "b"):
                other.submit(ask(text))
            assert {answer.request.messages[-1].text for answer in take_all(one)} == {"a", "b"}
            assert {answer.request.messages[-1].text for answer in take_all(other)} == {"a", "b", "c"}
        assert server.asked == {"a": 1, "b": 1, "c": 1}


def test_written_requests_are_read_back_whole(tmp_path: Path) -> None:
    request = Request(
        "prefix\n\ud800",
        (Message("user", "質問"), Message("assistant", "a"), Message("user", "b\u2028c")),
        7,
        Tag("pages", "step", None, "p1"),
        system="s",
        schema='{"type": "object"}',
        temperature=0.5,
        seed=3,
        stop=("x", "\n"),
    )
    store = BatchStore(state_of(tmp_path))
    with store.lock():
        written = store.write("anthropic:m", "", [BatchEntry("ab", request, 2)], 0.0)
    store.remove(written.nonce)
    assert store.open_batches() == []
    ((custom_id, back),) = store.requests(written.nonce).items()  # of another process that still waits for it
    assert custom_id == f"{written.nonce}-ab"
    assert back == request
    assert back.tag == request.tag


def test_a_damaged_batch_is_named(server: ScriptedBatches, tmp_path: Path) -> None:
    provider = batch_model(server.url, tmp_path)
    store = BatchStore(state_of(tmp_path))
    digits = key_digits(request_key(provider.name, ask("one")))
    written = store.write(provider.name, server.url, [BatchEntry(digits, ask("one"), 1)], 0.0)
    with state_of(tmp_path).transaction() as connection:
        connection.execute(sa.update(BATCH_REQUESTS).values(request=b"none"))
    with pytest.raises(ModelError, match=f"batch {written.nonce} is damaged"):
        store.requests(written.nonce)


def test_temperature_takes_the_version_of_the_api_that_has_it(server: ScriptedBatches, tmp_path: Path) -> None:
    run(batch_model(server.url, tmp_path), [ask("one", temperature=0.5)])
    run(batch_model(server.url, tmp_path), [ask("two")])
    one, two = server.batches.values()
    assert [params["temperature"] for params in one.requests.values()] == [0.5]
    assert "temperature" not in next(iter(two.requests.values()))
    made = [headers for headers, path in zip(server.headers, server.paths, strict=True) if path.startswith("POST")]
    assert made[0]["anthropic-version"] == "2023-06-01"
    assert made[1]["anthropic-version"] > "2023-06-01"


def test_batches_against_llmock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from llmock.routers import anthropic, batch
    from llmock.testing import LLMockServer

    monkeypatch.setattr(batch, "_BATCH_DELAY", 0.2)
    with LLMockServer() as server:
        # Its address of the results repeats the prefix of the base address.
        path = "/anthropic/anthropic/v1/messages/batches/{batch_id}/results"
        server.app.add_api_route(path, anthropic.get_message_batch_results)
        kept: list[Completion] = []
        provider = batch_model(server.base_url("anthropic"), tmp_path, batch_requests=4)
        answers = run(provider, [ask(f"text {number}") for number in range(10)], kept.extend)
    assert len(answers) == len(kept) == 10
    assert {answer.outcome for answer in answers.values()} == {Outcome.COMPLETED}
    assert len({answer.batch_id for answer in answers.values()}) == 3
    assert all(answer.text and answer.usage.input_tokens and answer.cost_usd for answer in answers.values())
    assert BatchStore(state_of(tmp_path)).open_batches() == []


def kinds(seed: int, count: int) -> dict[str, str]:
    """3 % of the requests end in errors of mixed kinds at the first attempt, 1 % expire."""
    chance = random.Random(seed)
    texts = [f"document {number}" for number in range(count)]
    bad = chance.sample(texts, count * 4 // 100)
    mixed = ["api_error", "overloaded", "invalid", "expired"]
    return {text: mixed[index % 4] for index, text in enumerate(bad)}


def test_a_client_killed_at_five_moments_pays_each_answer_once(tmp_path: Path) -> None:
    count, batch_requests, seed = 10_000, 2_500, 20261121
    bad = kinds(seed, count)

    def outcome(text: str, before: int) -> str:
        kind = bad.get(text, "succeeded")
        return kind if before == 0 or kind == "invalid" else "succeeded"

    chance = random.Random(seed)
    moments = [
        ("create_made", chance.randint(1, 3)),  # between the creation and the writing of its id
        ("create_arrives", 1),
        ("results", chance.randint(1, 10)),
        ("retrieve", chance.randint(1, 4)),
        ("results", chance.randint(11, 25)),
    ]
    assert {event for event, _ in moments} < set(EVENTS)
    killed = []
    with ScriptedBatches(outcome, seconds=0.2) as server:
        for moment in [*moments, None]:
            server.counts.clear()
            process = Child(batch_client.ask, server.url, tmp_path, count, batch_requests)

            def strike(event: str, number: int, moment: Any = moment, process: Child = process) -> None:
                if (event, number) == moment:
                    killed.append(moment)
                    process.kill()
                    process.wait()

            server.on = strike
            assert (process.wait(60) == 0) is (moment is None)
    assert killed == moments, "every kill struck"

    invalid = {text for text, kind in bad.items() if kind == "invalid"}
    texts = {f"document {number}" for number in range(count)}
    assert +server.billed == dict.fromkeys(texts - invalid, 1), "every answer was paid for once"
    asked_again = {text for text, kind in bad.items() if kind != "invalid"}
    assert {text for text, times in server.asked.items() if times > 1} - invalid == asked_again
    lines = [json.loads(line) for line in (tmp_path / "kept.jsonl").read_text().splitlines()]
    kept = {line["text"]: line for line in lines}
    assert kept.keys() == texts - invalid, "what was kept is what was billed"
    assert all(line["answer"] == answer_to(text) for text, line in kept.items())
    assert sum(line["cost_usd"] for line in kept.values()) == pytest.approx(PAID * (count - len(invalid)))
    assert json.loads((tmp_path / "failed.jsonl").read_text()) == dict.fromkeys(invalid, "failed")
    assert BatchStore(state_of(tmp_path)).open_batches() == []
