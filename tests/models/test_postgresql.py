"""The state database in PostgreSQL: what holds with SQLite holds there, also between processes."""

import os
import random
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import pytest
import sqlalchemy as sa
import test_answers
import test_anthropic_batches
import test_budget
import test_ledger
import test_metered
import test_state
from scripted_provider import ScriptedProvider, answered, make_ledger, request, state_of

from rag_assets.contracts.errors import StoreError
from rag_assets.models.accounts.answers import AnswerStore
from rag_assets.models.accounts.budget import Budget
from rag_assets.models.accounts.database import StateDatabase
from rag_assets.models.accounts.ledger import Ledger
from rag_assets.models.accounts.schema import RESERVATIONS, SPENDING
from rag_assets.pipeline.home import Home
from rag_assets.pipeline.language_models import check_language_model
from rag_assets.pipeline.settings import load_settings
from rag_assets.store.lake import Lake

MODEL = ScriptedProvider.name
PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
INITDB = shutil.which("initdb") or (str(PROGRAMS[-1]) if PROGRAMS else None)


@pytest.fixture(scope="module")
def server() -> Iterator[int]:
    """Port of a server of this test's own."""
    pytest.importorskip("psycopg", reason="the extra postgresql is not installed")
    if INITDB is None:
        pytest.skip("PostgreSQL is not installed (apt-get install postgresql)")
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = int(found.getsockname()[1])
    folder = Path(tempfile.mkdtemp(prefix="rag-assets-postgresql-"))
    as_user: list[str] = []
    if os.getuid() == 0:  # which PostgreSQL refuses to run as
        if subprocess.run(["id", "postgres"], capture_output=True, check=False).returncode:
            pytest.skip("there is no user postgres to run the server as")
        as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
        shutil.chown(folder, "postgres", "postgres")

    def run(program: str, *arguments: str) -> None:
        command = [*as_user, str(Path(INITDB or "").with_name(program)), "-D", str(folder / "data"), *arguments]
        # the server keeps what it is given as output
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    try:
        run("initdb", "-U", "rag", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C")
        options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c max_connections=200"
        run("pg_ctl", "-w", "-o", options, "-l", str(folder / "log"), "start")
        yield port
        run("pg_ctl", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def database(server: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home whose state is in a new database."""
    import psycopg

    name = f"rag_{random.randrange(1 << 40):x}"
    with psycopg.connect(f"postgresql://rag@127.0.0.1:{server}/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    monkeypatch.setenv("RAG_STATE_URL", f"postgresql://rag@127.0.0.1:{server}/{name}")
    yield tmp_path
    state_of(tmp_path).close()


@pytest.mark.parametrize(
    "check",
    [
        test_anthropic_batches.test_written_requests_are_read_back_whole,
        test_budget.test_a_call_that_may_cost_too_much_is_refused,
        test_budget.test_processes_share_a_budget,
        test_budget.test_what_a_killed_process_had_sent_stays_charged_and_shows_in_the_ledger,
        test_budget.test_the_same_is_asked_by_one_at_a_time,
        test_ledger.test_compacting_changes_no_row_and_no_sum,
        test_metered.test_processes_that_ask_the_same_at_once_agree,
        test_state.test_what_processes_ask_at_once_is_paid_for_once,
        test_state.test_who_waits_for_a_process_that_dies_asks_itself,
        test_state.test_a_lease_of_a_process_that_died_is_taken_over,
    ],
)
def test_what_holds_in_a_file_holds_on_a_server(database: Path, check: Callable[[Path], None]) -> None:
    check(database)
    assert not (database / "state.db").exists()


@pytest.mark.parametrize("text", ["表\udc80.xlsx", "a\0b"])
def test_odd_names_are_recorded(database: Path, text: str) -> None:
    test_ledger.test_odd_names_are_recorded(database, text)


def test_answers_are_found_and_pruned(database: Path) -> None:
    state = state_of(database)
    test_answers.test_what_is_put_is_found(state)
    test_answers.test_more_keys_than_a_query_takes_are_found(state)
    AnswerStore(state).prune(0, None)
    test_answers.test_pruning_drops_what_was_not_used_for_longest(state)
    assert make_ledger(database).answers.stats().entries == 2


def test_a_call_that_is_being_written_down_is_counted(database: Path) -> None:
    ledger, budget = make_ledger(database), Budget(make_ledger(database), 1.0)
    record = ledger._record(MODEL, answered(request(0)))
    with ThreadPoolExecutor(1) as thread, budget.session():
        with ledger.database.transaction() as connection:
            ledger.add(connection, [record])
            asked = thread.submit(budget.reserve, MODEL, "key", request(1), 0.1)
            with suppress(TimeoutError):  # it waits
                asked.result(0.5)
        assert asked.result(10)
    assert [row.spent_usd for row in ledger.database.read(sa.select(SPENDING))] == [record.cost_usd]


def test_a_server_that_does_not_answer_is_asked_once() -> None:
    """It takes connections and says nothing."""
    pytest.importorskip("psycopg", reason="the extra postgresql is not installed")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"postgresql://rag@127.0.0.1:{silent.getsockname()[1]}/rag?connect_timeout=2"
        with pytest.raises(StoreError, match="the database server does not answer"):
            StateDatabase(url).check()
        silent.settimeout(5)
        silent.accept()[0].close()
        silent.settimeout(0.1)
        with pytest.raises(TimeoutError):
            silent.accept()


def test_another_knowledge_base_is_refused(database: Path) -> None:
    """A copy of a home on another machine is the same knowledge base; a home of its own is another one."""
    url = os.environ["RAG_STATE_URL"]
    first, copied, other = (database / name for name in ("first", "copy", "other"))
    with closing(StateDatabase(url, identity=first / "state.id")) as state:
        ledger = Ledger(Lake(first / "lake"), state)
        assert Budget(ledger).reserve("openai:m", "key", request(0), 0.5)
    shutil.copytree(first, copied)
    with closing(StateDatabase(url, identity=copied / "state.id")) as state:
        assert len(state.read(sa.select(RESERVATIONS))) == 1
    with pytest.raises(
        StoreError, match=r"belongs to another knowledge base \(\w{32}\); set RAG_STATE_URL to a database of its own"
    ):
        StateDatabase(url, identity=other / "state.id").read(sa.select(RESERVATIONS))
    with pytest.raises(StoreError, match="belongs to another knowledge base"):
        check_language_model(Home(load_settings(home=other)))
    with closing(StateDatabase(url)) as state, state.transaction() as connection:
        connection.execute(sa.schema.CreateSchema("other"))
    with closing(StateDatabase(f"{url}?options=-csearch_path%3Dother", identity=other / "state.id")) as state:
        assert AnswerStore(state).stats().entries == 0
        assert Budget(Ledger(Lake(other / "lake"), state)).is_asked(["key"]) == set()
        assert state.read(sa.select(RESERVATIONS)) == []
