"""What the model layer costs beside the model: time over the unavoidable, stored answers a second, memory of a queue.

A server on this machine, a process of its own, answers OpenAI's chat completions and Anthropic's messages after a fixed
time, 2 seconds where nothing else is said, which is what a language model takes for a summary. Every measurement is a
process of its own and goes through all that stands around a model: stored answers on the disk, ledger, budget where
named, retries, window, shared limits, the providers' own SDKs. Run `python benchmarks/model_layer.py`; `--json` prints
the figures alone.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TypeVar

from rag_assets.contracts.generation import Completion, Message, Outcome, Request, Tag, Usage
from rag_assets.contracts.ports import LanguageModel, Session
from rag_assets.models.accounts.budget import Budget
from rag_assets.models.accounts.database import StateDatabase
from rag_assets.models.accounts.ledger import Ledger
from rag_assets.models.attempts import Pacing
from rag_assets.models.catalogue import ModelFacts
from rag_assets.models.dispatch import ConcurrentSession, answers
from rag_assets.models.language_models import ModelChoice, load_language_model, open_session
from rag_assets.models.metered import MeteredModel
from rag_assets.models.providers import CallBudget, Keep
from rag_assets.store.lake import Lake

TAG = Tag("page_summaries", "summarize_page", "specs/orders.xlsx")
PAGE = "受注番号、顧客名、数量、単価、金額を入力し、登録ボタンを押下する。" * 30
SUMMARY = "受注登録画面の入力項目と登録時の検査を説明する。" * 8
SPAWN = multiprocessing.get_context("spawn")
Found = TypeVar("Found")

OPENAI_ANSWER = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1_800_000_000,
    "model": "fixed",
    "choices": [
        {
            "index": 0,
            "finish_reason": "stop",
            "logprobs": None,
            "message": {"role": "assistant", "content": SUMMARY, "refusal": None},
        }
    ],
    "usage": {"prompt_tokens": 1200, "completion_tokens": 180, "total_tokens": 1380},
}
ANTHROPIC_ANSWER = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "fixed",
    "content": [{"type": "text", "text": SUMMARY}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 1200, "output_tokens": 180},
}


CATALOGUE = """
[[model]]
provider = "{kind}"
model = "fixed"
context_tokens = 8192
output_tokens = 4096
input_usd = 1.0
output_usd = 5.0
"""


class FixedLatency(asyncio.Protocol):
    """HTTP/1.1 with connections that stay open, as little of it as the SDKs need."""

    def __init__(self, latency_seconds: float) -> None:
        self._latency_seconds = latency_seconds
        self._received = bytearray()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        while (end := self._received.find(b"\r\n\r\n")) >= 0:
            head = bytes(self._received[:end])
            at = head.lower().find(b"content-length:")
            length = int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
            if len(self._received) < end + 4 + length:
                return
            del self._received[: end + 4 + length]
            answer = RESPONSES[b"/messages" in head.split(b"\r\n", 1)[0]]
            asyncio.get_running_loop().call_later(self._latency_seconds, self._answer, answer)

    def _answer(self, answer: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(answer)


def _response(content: object) -> bytes:
    body = json.dumps(content, ensure_ascii=False).encode()
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)


RESPONSES = (_response(OPENAI_ANSWER), _response(ANTHROPIC_ANSWER))


def serve(latency_seconds: float, connection: Connection) -> None:
    """Serve until the process is ended; sends its port first."""

    async def run() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: FixedLatency(latency_seconds), "127.0.0.1", 0, backlog=1024)
        connection.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())


@contextmanager
def server(latency_seconds: float) -> Iterator[int]:
    """Port of a server that answers after a fixed time."""
    near, far = SPAWN.Pipe()
    process = SPAWN.Process(target=serve, args=(latency_seconds, far), daemon=True)
    process.start()
    try:
        yield near.recv()
    finally:
        process.terminate()
        process.join()


class RawCaller:
    """Calls the server with no SDK between: what the layer costs by itself."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def call(self, request: Request) -> Completion:
        """Make one attempt."""
        reader, writer = self._idle.pop() if self._idle else await asyncio.open_connection("127.0.0.1", self._port)
        body = json.dumps({"messages": [message.text for message in request.messages]}).encode()
        writer.write(b"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body))
        head = await reader.readuntil(b"\r\n\r\n")
        content = json.loads(await reader.readexactly(int(head.rsplit(b": ", 1)[1])))
        self._idle.append((reader, writer))
        usage = Usage(content["usage"]["prompt_tokens"], content["usage"]["completion_tokens"])
        return Completion(request, Outcome.COMPLETED, content["choices"][0]["message"]["content"], usage)

    async def close(self) -> None:
        """Close its connections."""
        for _, writer in self._idle:
            writer.close()
            await writer.wait_closed()


class Unlimited:
    """A budget that is never empty."""

    def reserve(self, request: Request, *, batch: bool = False) -> None: ...

    def send(self, requests: Iterable[Request]) -> None: ...

    def release(self, requests: Iterable[Request]) -> None: ...


class InstantCaller:
    """Answers at once: what the layer costs where the model costs nothing."""

    async def call(self, request: Request) -> Completion:
        """Make one attempt."""
        return Completion(request, Outcome.COMPLETED, SUMMARY, Usage(1200, 180))

    async def close(self) -> None:
        """Has no connections."""


class CallerProvider:
    """A provider around a caller of this benchmark."""

    def __init__(
        self, choice: ModelChoice, database: StateDatabase, make_caller: Callable[[], RawCaller | InstantCaller]
    ) -> None:
        self.name = choice.name
        self.facts = ModelFacts()
        self._choice = choice
        self._database = database
        self._make_caller = make_caller

    def open(self, keep: Keep, budget: CallBudget) -> AbstractContextManager[Session]:
        """Open a session."""
        return open_session(self._choice, self._database, Pacing(), self._make_caller, keep, budget)

    def count_tokens(self, requests: Sequence[Request]) -> list[int]:
        """Never asked here."""
        raise NotImplementedError


def make_model(kind: str, port: int, concurrency: int, folder: Path, *, budget: bool) -> LanguageModel:
    """A model with all that stands around it."""
    base_url = {"openai": f"http://127.0.0.1:{port}/v1", "anthropic": f"http://127.0.0.1:{port}"}.get(kind, "")
    catalogue = folder / "catalogue.toml"
    catalogue.write_text(CATALOGUE.format(kind=kind))
    choice = ModelChoice(
        provider=kind,
        model="fixed",
        base_url=base_url,
        api_key="none",
        catalogue=catalogue,
        context_tokens=8192,
        temperature=None,
        concurrency=concurrency,
        requests_per_minute=0,
        tokens_per_minute=0,
        attempts=6,
        timeout_seconds=120.0,
        batch="never",
        batch_from=100,
        batch_requests=10_000,
        batch_poll_seconds=30.0,
    )
    database = StateDatabase(folder / "state.db")
    ledger = Ledger(Lake(folder / "lake"), database)
    limit = Budget(ledger, 1e9 if budget else None)
    if kind in {"openai", "anthropic"}:
        return load_language_model(choice, ledger, limit)
    make_caller = (lambda: RawCaller(port)) if kind == "raw" else InstantCaller
    return MeteredModel(CallerProvider(choice, database, make_caller), ledger, limit)


def requests(count: int, first: int = 0) -> Iterator[Request]:
    """Pages to summarize, made as they are asked for."""
    for number in range(first, first + count):
        yield Request("", (Message("user", f"{number} {PAGE}"),), 300, TAG, system="Summarize the page.")


@dataclass(frozen=True)
class Timing:
    """One pass of requests.

    Attributes:
        caller: What calls the server.
        concurrency: Calls under way at once.
        requests: Number of requests.
        budget: Whether there is a budget, which each call is reserved from.
        start_seconds: What the first call takes besides: imports, connection.
        seconds: Wall time.
        ratio: Wall time to what the server takes at that concurrency.
        middle_ratio: The same of the middle half of the answers, without the first connections and the last stragglers.
        cpu_milliseconds: Of this process, a request.
        slowest_seconds: 99th percentile of the time of a call, as the completions state it.
    """

    caller: str
    concurrency: int
    requests: int
    budget: bool
    start_seconds: float
    seconds: float
    ratio: float
    middle_ratio: float
    cpu_milliseconds: float
    slowest_seconds: float


def time_calls(
    kind: str, port: int, latency_seconds: float, concurrency: int, count: int, budget: bool, folder: Path
) -> Timing:
    """Time a first call, then a pass of others in a session of its own, its connections included."""
    model = make_model(kind, port, concurrency, folder, budget=budget)
    began = time.perf_counter()
    list(model.generate(requests(1)))
    start = time.perf_counter() - began - latency_seconds
    cpu, began = time.process_time(), time.perf_counter()
    taken, came = [], []
    for found in model.generate(requests(count, 1)):
        if found.outcome is Outcome.COMPLETED:
            taken.append(found.seconds)
            came.append(found.called_at)
    seconds = time.perf_counter() - began
    if len(taken) != count:
        raise RuntimeError(f"{kind}: expected {count} answers, found {len(taken)}")
    return Timing(
        kind,
        concurrency,
        count,
        budget,
        start,
        seconds,
        seconds / (count * latency_seconds / concurrency),
        _middle_seconds(sorted(came)[::concurrency]) / latency_seconds,
        (time.process_time() - cpu) / count * 1000,
        statistics.quantiles(taken, n=100)[98],
    )


def _middle_seconds(rounds: Sequence[float]) -> float:
    """Mean time between the first answers of two rounds, in the middle half of the rounds."""
    first, last = len(rounds) // 4, 3 * len(rounds) // 4
    return (rounds[last] - rounds[first]) / (last - first)


@dataclass(frozen=True)
class Storing:
    """Requests whose model takes no time, asked twice.

    Attributes:
        requests: Number of requests.
        first_per_second: Answers a second that are called for, stored on the disk and written down.
        again_per_second: Answers a second that are stored already.
        peak_bytes: Peak memory of the process.
    """

    requests: int
    first_per_second: float
    again_per_second: float
    peak_bytes: int


def time_storing(count: int, folder: Path) -> Storing:
    """Time the layer alone, with the disk."""
    rates = []
    for _ in range(2):
        model = make_model("instant", 0, 64, folder, budget=False)
        began = time.perf_counter()
        found = sum(1 for _ in model.generate(requests(count)))
        rates.append(found / (time.perf_counter() - began))
    return Storing(count, rates[0], rates[1], _peak_bytes())


@dataclass(frozen=True)
class Queue:
    """Requests through the dispatcher alone, with a model that takes no time.

    Attributes:
        requests: Number of requests.
        per_second: Answers a second.
        peak_bytes: Peak memory of the process.
    """

    requests: int
    per_second: float
    peak_bytes: int


def time_queue(count: int, folder: Path) -> Queue:
    """Time the dispatcher alone."""
    del folder
    began = time.perf_counter()
    session = ConcurrentSession(
        InstantCaller, lambda _: None, Unlimited(), concurrency=256, attempts=6, timeout_seconds=120
    )
    with session as opened:
        found = sum(1 for _ in answers(opened, requests(count)))
    return Queue(count, found / (time.perf_counter() - began), _peak_bytes())


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _send(connection: Connection, measure: Callable[..., object], arguments: tuple[object, ...]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        connection.send(measure(*arguments, Path(folder)))


def apart(measure: Callable[..., Found], *arguments: object) -> Found:
    """Measure in a process and a folder of its own."""
    near, far = SPAWN.Pipe()
    process = SPAWN.Process(target=_send, args=(far, measure, arguments))
    process.start()
    far.close()
    found: Found = near.recv()
    process.join()
    return found


def print_timings(latency_seconds: float, timings: Sequence[Timing]) -> None:
    print(f"\nThe model takes {latency_seconds:g} s; target: at most 1.05 times that\n")
    print("| | at once | calls | seconds | ratio | in the middle | CPU ms a call | 99th percentile of a call | start |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for each in timings:
        name = f"{each.caller}, with a budget" if each.budget else each.caller
        print(
            f"| {name} | {each.concurrency} | {each.requests:,} | {each.seconds:.1f} | {each.ratio:.3f} "
            f"| {each.middle_ratio:.3f} | {each.cpu_milliseconds:.2f} | {each.slowest_seconds:.3f} s "
            f"| {each.start_seconds:.1f} s |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--latency", type=float, default=2.0, help="Seconds that the model takes.")
    parser.add_argument("--rounds", type=int, default=20, help="Calls one after the other in each place.")
    parser.add_argument("--concurrency", type=int, nargs="*", default=[8, 64, 256])
    parser.add_argument("--callers", nargs="*", default=["raw", "openai", "anthropic"])
    parser.add_argument("--stored", type=int, nargs="*", default=[2_000, 10_000], help="Answers stored and found.")
    parser.add_argument("--queued", type=int, nargs="*", default=[10_000, 100_000], help="Requests in line.")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    timings = []
    with server(arguments.latency) as port:
        cases = [(caller, concurrency, False) for caller in arguments.callers for concurrency in arguments.concurrency]
        cases += [(arguments.callers[-1], most, True) for most in sorted(arguments.concurrency)[-1:]]
        for caller, concurrency, budget in cases:
            count = concurrency * arguments.rounds
            timings.append(apart(time_calls, caller, port, arguments.latency, concurrency, count, budget))
    storings = [apart(time_storing, count) for count in arguments.stored]
    queues = [apart(time_queue, count) for count in arguments.queued]
    if arguments.json:
        facts = {
            "processors": os.cpu_count(),
            "latency_seconds": arguments.latency,
            "timings": [asdict(each) for each in timings],
            "storings": [asdict(each) for each in storings],
            "queues": [asdict(each) for each in queues],
        }
        print(json.dumps(facts))
        return
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}")
    print_timings(arguments.latency, timings)
    print("\n| | requests | first, a second | again, a second | peak memory |\n| --- | --- | --- | --- | --- |")
    for stored in storings:
        print(
            f"| called, stored, found | {stored.requests:,} | {stored.first_per_second:,.0f} "
            f"| {stored.again_per_second:,.0f} | {stored.peak_bytes / 2**20:.0f} MiB |"
        )
    for queued in queues:
        print(
            f"| dispatcher alone | {queued.requests:,} | {queued.per_second:,.0f} | "
            f"| {queued.peak_bytes / 2**20:.0f} MiB |"
        )


if __name__ == "__main__":
    main()
