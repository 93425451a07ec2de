"""The state database: kills at any moment, the same asked at once, and damage."""

import json
import math
import os
import random
import signal
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
import sqlalchemy as sa
from forked import Child
from scripted import Reply, ScriptedServer
from scripted_provider import ScriptedProvider, answered, make_ledger, request, state_of

from rag_assets.contracts.errors import SettingsError, StoreError
from rag_assets.contracts.generation import Message, Request, Tag, request_key
from rag_assets.models.accounts import database as module
from rag_assets.models.accounts.answers import STORED_OUTCOMES
from rag_assets.models.accounts.budget import Budget
from rag_assets.models.accounts.database import StateDatabase
from rag_assets.models.accounts.ledger import Entry, Ledger
from rag_assets.models.accounts.salvage import salvage
from rag_assets.models.accounts.schema import ANSWERS, META, OWNERS, RESERVATIONS, SPENDING
from rag_assets.models.language_models import ModelChoice, load_language_model
from rag_assets.pipeline.repair import database_problem
from rag_assets.store.lake import Lake

MODEL = ScriptedProvider.name
SERVER_ONLY = pytest.mark.skipif("RAG_STATE_URL" in os.environ, reason="a server is not a file")
CATALOGUE = """
[[model]]
provider = "openai"
model = "m"
context_tokens = 8192
output_tokens = 4096
input_usd = 1.0
output_usd = 5.0
"""
COST = (10 * 1.0 + 5 * 5.0) / 1e6


class CountingServer(ScriptedServer):
    """Answers chat completions after a moment, and counts those that it has served."""

    def __init__(self, seconds: float = 0.0) -> None:
        super().__init__()
        self.served: Counter[str] = Counter()
        self.seconds = seconds
        self.on_call: Callable[[], None] = lambda: None
        self._guard = threading.Lock()

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        body = json.loads(handler.rfile.read(int(handler.headers.get("content-length") or 0)) or b"{}")
        text = body["messages"][-1]["content"]
        with self._guard:
            self.served[text] += 1
        self.on_call()
        time.sleep(self.seconds)
        message = {"role": "assistant", "content": f"answer to {text}", "refusal": None}
        self._write(
            handler,
            Reply(
                json={
                    "id": "1",
                    "object": "chat.completion",
                    "created": 1,
                    "model": "m",
                    "choices": [{"index": 0, "finish_reason": "stop", "logprobs": None, "message": message}],
                    "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
                }
            ),
        )


def work(home: Path, url: str, seed: int, count: int) -> list[str]:
    """Ask some of so many questions; the answers."""
    (home / f"catalogue{os.getpid()}-{seed}.toml").write_text(CATALOGUE)
    choice = ModelChoice(
        provider="openai",
        model="m",
        base_url=f"{url}/v1",
        api_key="none",
        catalogue=home / f"catalogue{os.getpid()}-{seed}.toml",
        context_tokens=8192,
        temperature=None,
        concurrency=8,
        requests_per_minute=0,
        tokens_per_minute=0,
        attempts=3,
        timeout_seconds=20.0,
        batch="never",
        batch_from=100,
        batch_requests=100,
        batch_poll_seconds=1.0,
    )
    ledger = make_ledger(home, "run 1")
    model = load_language_model(choice, ledger, Budget(ledger, 10.0, 10.0))
    numbers = random.Random(seed).sample(range(count), count)
    asked = (Request("", (Message("user", f"q{number}"),), 100, Tag("a", "s", f"d{number}")) for number in numbers)
    found = list(model.generate(asked))
    assert all(each.outcome in STORED_OUTCOMES for each in found), {each.error for each in found}
    return sorted(each.text for each in found)


def start(home: Path, url: str, seed: int, count: int) -> Child:
    return Child(work, home, url, seed, count)


def settled(home: Path) -> list[dict[str, object]]:
    """Rows of calls that were made, once all dead processes are settled."""
    ledger = make_ledger(home)
    Budget(ledger).settle_dead()
    assert ledger.database.read(sa.select(RESERVATIONS)) == []
    return [row for row in ledger.rows().to_pylist() if not row["cache_hit"]]


def test_the_ledger_and_the_budget_have_every_call_that_a_server_served(tmp_path: Path) -> None:
    """Processes are killed while calls are under way: each is in the ledger, answered or unknown."""
    chance, count = random.Random(7), 60
    with CountingServer(0.02) as server:
        for kill in range(4):
            child, left = start(tmp_path, server.url, kill, count), [chance.randrange(3, 14)]

            def strike(child: Child = child, left: list[int] = left) -> None:
                left[0] -= 1
                if left[0] == 0:
                    child.kill()

            server.on_call = strike
            assert child.wait(120) == -signal.SIGKILL
        server.on_call = lambda: None
        assert start(tmp_path, server.url, 9, count).wait(120) == 0
        served = server.served
    rows = settled(tmp_path)
    made = Counter(f"q{str(row['document_id'])[1:]}" for row in rows)
    assert not served - made, "nothing that was served is missing"
    # A call is noted before it is sent: those of the moment of a kill may not have reached the server.
    assert (made - served).total() <= 4 * 8
    answered_rows = [row for row in rows if row["outcome"] == "completed"]
    unknown = [row for row in rows if row["outcome"] == "unknown"]
    assert len(answered_rows) == count
    assert unknown
    assert all(row["cost_usd"] == pytest.approx(COST) for row in answered_rows)
    assert all(float(str(row["cost_usd"])) >= COST for row in unknown), "at the most that it may have cost"
    ledger = make_ledger(tmp_path, "run 1")
    spent = math.fsum(float(str(row["cost_usd"])) for row in rows)
    assert ledger.spent_usd() == pytest.approx(spent)
    accounts = {row.account: row.spent_usd for row in ledger.database.read(sa.select(SPENDING))}
    assert list(accounts.values()) == pytest.approx([spent] * 2), "of the month and of the run"
    ledger.compact()
    assert ledger.spent_usd() == pytest.approx(spent)


def test_what_processes_ask_at_once_is_paid_for_once(tmp_path: Path) -> None:
    with CountingServer(0.1) as server:
        children = [start(tmp_path, server.url, seed, 40) for seed in range(3)]
        assert [child.wait(120) for child in children] == [0, 0, 0]
        assert server.served == {f"q{number}": 1 for number in range(40)}
    rows = make_ledger(tmp_path).rows()
    assert Counter(rows["cache_hit"].to_pylist()) == {False: 40, True: 80}


def test_threads_that_ask_the_same_pay_once(tmp_path: Path) -> None:
    with CountingServer(0.1) as server, ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda seed: work(tmp_path, server.url, seed, 10), range(4)))
        assert server.served.total() == 10
    assert all(texts == found[0] for texts in found)


def test_who_waits_for_a_process_that_dies_asks_itself(tmp_path: Path) -> None:
    with CountingServer(0.0) as server:
        held = threading.Event()

        def hold() -> None:
            held.set()
            time.sleep(0 if server.served.total() > 1 else 5)

        server.on_call = hold
        child = start(tmp_path, server.url, 0, 1)
        assert held.wait(60)
        with ThreadPoolExecutor(1) as thread:
            waiting = thread.submit(work, tmp_path, server.url, 0, 1)
            time.sleep(0.3)
            assert not waiting.done()
            assert server.served.total() == 1
            child.kill()
            child.wait()
            assert waiting.result(30) == ["answer to q0"]
    assert Counter(str(row["outcome"]) for row in settled(tmp_path)) == {"unknown": 1, "completed": 1}


def test_threads_that_have_ended_hold_no_connections(tmp_path: Path) -> None:
    """A server makes threads for each question that it asks a language model."""
    ledger = make_ledger(tmp_path)
    ledger.keep(MODEL, [Entry(answered(request(0)))])
    for _ in range(100):
        with ThreadPoolExecutor(1) as thread:
            assert thread.submit(ledger.answers.find, request_key(MODEL, request(0))).result(10) is not None


def die_with_a_lease(home: Path) -> None:
    with state_of(home).lease("x"):
        os.kill(os.getpid(), signal.SIGKILL)


def test_a_lease_of_a_process_that_died_is_taken_over(tmp_path: Path) -> None:
    assert Child(die_with_a_lease, tmp_path).wait() == -signal.SIGKILL
    order = []

    def hold() -> None:
        with state_of(tmp_path).lease("x"):
            order.append("second")

    with ThreadPoolExecutor(1) as thread:
        with state_of(tmp_path).lease("x"):
            waiting = thread.submit(hold)
            time.sleep(0.2)
            order.append("first")
        waiting.result(10)
    assert order == ["first", "second"]


def test_a_process_of_another_machine_lives_while_it_gives_signs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    budget, other = Budget(make_ledger(tmp_path), 1.0), Budget(make_ledger(tmp_path), 1.0)
    with budget.session():
        made = budget.reserve(MODEL, "key", request(0), 0.9)
        budget.send([made])
        monkeypatch.setattr(module, "_host", lambda: "elsewhere")
        other.settle_dead()
        assert len(state_of(tmp_path).read(sa.select(RESERVATIONS))) == 1
        with state_of(tmp_path).transaction() as connection:
            connection.execute(sa.update(OWNERS).values(seen_at=time.time() - 1000))
        other.settle_dead()
        assert state_of(tmp_path).read(sa.select(RESERVATIONS)) == []
    assert make_ledger(tmp_path).spent_usd() == 0.9


def owners(state: StateDatabase) -> list[float]:
    return [row.seen_at for row in state.read(sa.select(OWNERS))]


def test_a_process_that_was_taken_for_dead_is_seen_to_live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SIGN_SECONDS", 0.01)
    state = state_of(tmp_path)
    with state.presence():
        with state.transaction() as connection:
            connection.execute(sa.delete(OWNERS))
        deadline = time.monotonic() + 30
        while not owners(state):
            assert time.monotonic() < deadline
    assert owners(state) == []


def test_who_gives_a_sign_meanwhile_is_not_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    budget, state = Budget(make_ledger(tmp_path)), state_of(tmp_path)
    with state.presence():
        with state.transaction() as connection:
            connection.execute(sa.update(OWNERS).values(seen_at=1.0))

        def look(owner: object) -> bool:
            with state.transaction() as connection:
                connection.execute(sa.update(OWNERS).values(seen_at=2.0))
            return False

        monkeypatch.setattr("rag_assets.models.accounts.budget.is_alive", look)
        budget.settle_dead()
        assert owners(state) == [2.0]


@SERVER_ONLY
def test_errors_are_said_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "state.db"
    path.write_bytes(b"no database" * 1000)
    with pytest.raises(StoreError, match=r"state\.db: the state database is damaged; `rag-assets index`"):
        StateDatabase(path).read(sa.select(ANSWERS))
    path.unlink()
    with state_of(tmp_path).transaction() as connection:
        connection.execute(sa.update(META).values(value="99"))
    state_of(tmp_path).close()
    with pytest.raises(StoreError, match="another release"):
        state_of(tmp_path).read(sa.select(ANSWERS))
    for url, problem in (("mysql://x/y", "expected postgresql"), ("no url", "expected postgresql")):
        with pytest.raises(SettingsError, match=problem):
            StateDatabase(url)


@SERVER_ONLY
@pytest.mark.parametrize("is_open", [False, True])
def test_a_home_that_cannot_be_written_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_open: bool) -> None:
    """Permissions bind no administrator, whom tests may run as: what the system says of them is given here."""
    home = tmp_path / "50% of #1?"
    ledger = make_ledger(home)
    ledger.keep(MODEL, [Entry(answered(request(0)))])
    ledger.database.close()
    writer = sqlite3.connect(home / "state.db")
    if is_open:
        writer.execute("SELECT count(*) FROM answers").fetchall()
    assert (home / "state.db-wal").exists() == is_open
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert ledger.answers.find(request_key(MODEL, request(0))) is not None
    with pytest.raises(StoreError, match="cannot be written; look at its permissions"):
        ledger.answers.drop(["key"])
    ledger.database.close()
    writer.close()


@SERVER_ONLY
def test_a_file_that_was_moved_away_is_begun_anew(tmp_path: Path) -> None:
    ledger = make_ledger(tmp_path)
    ledger.keep(MODEL, [Entry(answered(request(0)))])
    for suffix in ("", "-wal", "-shm"):
        (tmp_path / f"state.db{suffix}").rename(tmp_path / f"old.db{suffix}")
    assert ledger.answers.find(request_key(MODEL, request(0))) is None
    ledger.keep(MODEL, [Entry(answered(request(1)))])
    assert ledger.answers.stats().entries == 1


@SERVER_ONLY
def test_a_file_that_is_moved_away_while_it_is_written_holds_nobody_up(tmp_path: Path) -> None:
    state = state_of(tmp_path)
    owner = state.owner
    with ThreadPoolExecutor(1) as thread:
        with state.transaction():
            for suffix in ("", "-wal", "-shm"):
                (tmp_path / f"state.db{suffix}").rename(tmp_path / f"old.db{suffix}")
            opening = thread.submit(state_of(tmp_path).check)
            while not (tmp_path / "state.db").exists():
                assert not opening.done()
            assert state.owner != owner
        opening.result(10)


@SERVER_ONLY
@pytest.mark.parametrize("page", [0, 1, 10, 40])
def test_what_can_be_read_of_a_damaged_database_is_saved(tmp_path: Path, page: int) -> None:
    ledger = make_ledger(tmp_path)
    ledger.keep(MODEL, [Entry(answered(request(number), "x" * 500)) for number in range(300)])
    ledger.database.close()
    path = tmp_path / "state.db"
    assert database_problem(path) is None
    with path.open("r+b") as file:
        file.seek(page * 4096)
        file.write(os.urandom(4096))
    assert database_problem(path) is not None
    saved = StateDatabase(tmp_path / "new.db")
    salvage(path, saved)
    if page:
        kept = Ledger(Lake(tmp_path / "lake"), saved)
        assert kept.answers.stats().entries >= 250
        assert kept.answers.stats().damaged == 0
        assert database_problem(tmp_path / "new.db") is None


@SERVER_ONLY
def test_answers_are_synced_soon_though_none_follows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag_assets.models.accounts.ledger._FLUSH_SECONDS", 0.05)
    monkeypatch.setattr("rag_assets.models.accounts.ledger._SYNC_SECONDS", 60.0)
    ledger, synced, fsync = make_ledger(tmp_path), threading.Semaphore(0), os.fsync

    def counted(opened: int) -> None:
        fsync(opened)
        synced.release()

    monkeypatch.setattr(os, "fsync", counted)
    for number in range(3):
        ledger.keep(MODEL, [Entry(answered(request(number)))])
        assert synced.acquire(timeout=10), number


@SERVER_ONLY
def test_a_database_that_is_locked_is_not_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, timeout=0))
    home = tmp_path / "50% of #1?"
    ledger = make_ledger(home)
    ledger.keep(MODEL, [Entry(answered(request(0)))])
    ledger.database.close()
    with closing(sqlite3.connect(home / "state.db")) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreError, match=r"cannot be read now \(database is locked\)"):
            database_problem(home / "state.db")
        other.rollback()
    assert database_problem(home / "state.db") is None
    saved = StateDatabase(tmp_path / "new.db")
    assert salvage(home / "state.db", saved) > 0
    with pytest.raises(StoreError, match="absent.db: cannot be opened"):
        salvage(tmp_path / "absent.db", saved)
