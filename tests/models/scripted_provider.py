"""A provider of the tests' own that answers by a script and bills to a file, which outlasts a killed process."""

import fcntl
import json
import os
import random
import signal
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path

from sqlalchemy import event
from sqlalchemy.engine import Connection, Engine

from rag_assets.contracts.errors import ModelError
from rag_assets.contracts.generation import Completion, Message, Outcome, Request, Tag, Usage, request_key
from rag_assets.contracts.ports import Session
from rag_assets.models.accounts.budget import Budget
from rag_assets.models.accounts.database import StateDatabase
from rag_assets.models.accounts.ledger import Ledger
from rag_assets.models.catalogue import ModelFacts, Prices
from rag_assets.models.metered import MeteredModel
from rag_assets.models.providers import CallBudget, Keep
from rag_assets.store.lake import Lake

COST_USD = 0.0005
SECRET = "入札価格は非公開"
Script = Callable[[Request], Completion]


def request(number: int, *, document_id: str = "specs/a.xlsx", max_tokens: int = 100) -> Request:
    """A request whose prompt holds a secret."""
    messages = (Message("user", f"{SECRET} {number}"),)
    return Request(f"prefix {SECRET}", messages, max_tokens, Tag("page_summaries", "summarize_page", document_id, "0a"))


def answered(asked: Request, text: str | None = None, outcome: Outcome = Outcome.COMPLETED) -> Completion:
    """A paid answer."""
    said = f"answer to {asked.messages[-1].text.removeprefix(SECRET)}" if text is None else text
    return Completion(asked, outcome, said, Usage(10, 5, 2, 1), COST_USD, 0.5, time.time())


class Unlimited:
    """A `CallBudget` that is never empty."""

    def reserve(self, request: Request, *, batch: bool = False) -> None: ...

    def send(self, requests: Iterable[Request]) -> None: ...

    def release(self, requests: Iterable[Request]) -> None: ...


UNLIMITED = Unlimited()


class ScriptedProvider:
    """Answers what the script says; each answer is kept when it is asked for, or when it is taken.

    Attributes:
        asked: Digests of the requests that were sent.
        keeps: What the sessions that were opened were given to keep answers with.
        calls_left: Calls after which the provider refuses all; None for no limit.
        forgetful: Whether it does not keep what it should.
    """

    name = "anthropic:scripted-1"
    facts = ModelFacts(8192, 4096, Prices(1.0, 5.0, 0.1, 1.25, 0.5))

    def __init__(self, script: Script = answered, *, at_once: int = 4, keep_at_submit: bool = False) -> None:
        self.script = script
        self.at_once = at_once
        self.keep_at_submit = keep_at_submit
        self.asked: list[str] = []
        self.keeps: list[Keep] = []
        self.calls_left: int | None = None
        self.forgetful = False

    @contextmanager
    def _open(self, keep: Keep, budget: CallBudget) -> Iterator[Session]:
        self.keeps.append(keep)
        yield _ScriptedSession(self, keep, budget)

    def open(self, keep: Keep, budget: CallBudget = UNLIMITED) -> AbstractContextManager[Session]:
        return self._open(keep, budget)

    def count_tokens(self, requests: Sequence[Request]) -> list[int]:
        return [len(each.prefix) for each in requests]


class _ScriptedSession:
    def __init__(self, provider: ScriptedProvider, keep: Keep, budget: CallBudget) -> None:
        self._provider, self._keep, self._budget = provider, keep, budget
        self._under_way: deque[Completion] = deque()
        self._done: deque[Completion] = deque()

    def submit(self, request: Request) -> None:
        self._budget.reserve(request)
        provider = self._provider
        if provider.calls_left is not None and len(provider.asked) >= provider.calls_left:
            raise ModelError("scripted: no more calls")
        provider.asked.append(request.content_sha256)
        completion = provider.script(request)
        self._under_way.append(completion)
        if provider.keep_at_submit:
            self._finish()
        while len(self._under_way) >= provider.at_once:
            self._finish()

    def take(self, *, wait: bool) -> Completion | None:
        if wait and not self._done and self._under_way:
            self._finish()
        return self._done.popleft() if self._done else None

    def cancel(self) -> None:
        """Nothing is ever under way."""

    def _finish(self) -> None:
        completion = self._under_way.popleft()
        if completion.outcome is not Outcome.FAILED and not self._provider.forgetful:
            self._keep([completion])
        self._done.append(completion)


class BilledProvider(ScriptedProvider):
    """Bills each call to a file before it answers.

    Args:
        folder: Of the bill, and of batches that are open.
        batches: Whether an answer stays to be had, unbilled, until it was kept, as results of a batch do.
    """

    def __init__(self, folder: Path, *, batches: bool) -> None:
        super().__init__(self._answer)
        self._folder = folder
        self._batches = batches
        folder.mkdir(parents=True, exist_ok=True)

    def _answer(self, asked: Request) -> Completion:
        key = request_key(self.name, asked)
        path = self._folder / f"{key}.batch"
        if self._batches and path.exists():
            batch_id = path.read_text()
        else:
            batch_id = f"batch-{os.getpid()}-{time.time_ns()}"
            with (self._folder / "bill.lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                line = json.dumps({"key": key, "cost_usd": COST_USD}) + "\n"
                with (self._folder / "bill.jsonl").open("a") as bill:
                    bill.write(line)
                if self._batches:
                    path.write_text(batch_id)
        paid = answered(asked, text=f"said in {batch_id}")
        return replace(paid, batch_id=batch_id) if self._batches else paid

    def open(self, keep: Keep, budget: CallBudget = UNLIMITED) -> AbstractContextManager[Session]:
        def keep_and_forget(completions: Sequence[Completion]) -> None:
            keep(completions)
            for each in completions:
                (self._folder / f"{request_key(self.name, each.request)}.batch").unlink(missing_ok=True)

        return super().open(keep_and_forget if self._batches else keep, budget)


def billed(folder: Path) -> list[str]:
    """Keys of the calls that were billed."""
    path = folder / "bill.jsonl"
    return [json.loads(line)["key"] for line in path.read_text().splitlines()] if path.exists() else []


def state_of(home: Path) -> StateDatabase:
    """The state database of a home: that of the environment, or its own file."""
    return StateDatabase(os.environ.get("RAG_STATE_URL") or home / "state.db")


def make_ledger(home: Path, run_id: str | None = None) -> Ledger:
    """The ledger of a home."""
    return Ledger(Lake(home / "lake"), state_of(home), run_id)


def work(home: Path, seed: int, *, batches: bool = False, prunes: bool = False, killed_at: int = 0) -> None:
    """Ask a metered model for random work, and write down what it says; or die at a given moment."""
    if killed_at:
        kill_at(killed_at)
    chance = random.Random(seed)
    ledger = make_ledger(home, f"run {seed}")
    budget = Budget(ledger, 1000.0, 1000.0)
    model = MeteredModel(BilledProvider(home / "provider", batches=batches), ledger, budget)
    texts = {}
    for _ in range(4):
        numbers = chance.choices(range(12), k=10)
        for completion in model.generate(request(number) for number in numbers):
            texts[completion.request.content_sha256] = completion.text
        if chance.random() < 0.5:
            ledger.compact()
        if prunes and chance.random() < 0.5:
            ledger.answers.prune(2000, None)
    said_by(home, seed).write_text(json.dumps(texts), "utf-8")


def said_by(home: Path, seed: int) -> Path:
    """File of what was said to the process that worked with a seed."""
    return home / f"said-{seed}.json"


def kill_at(count: int) -> None:
    """Have this process killed at the given moment: before a statement of the database or a commit, or after one."""
    left = [count]

    def strike(*_: object) -> None:
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def commit(self: Connection) -> None:
        strike()
        committed(self)
        strike()

    committed = Connection.commit
    Connection.commit = commit  # type: ignore[method-assign]
    event.listen(Engine, "before_cursor_execute", strike)
