"""The ledger: each call once, whatever is killed, read twice or written at once; nothing written for nothing."""

import time
from collections.abc import Callable
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa
from scripted_provider import COST_USD, ScriptedProvider, answered, make_ledger, request

from rag_assets.contracts.errors import StoreError
from rag_assets.contracts.generation import Completion, Outcome
from rag_assets.contracts.tables import MODEL_CALLS
from rag_assets.models.accounts.ledger import Entry, Ledger, month_account
from rag_assets.models.accounts.schema import CALLS, SPENDING, CallRecord, call_rows, month_of
from rag_assets.store.lake import Lake

MODEL = ScriptedProvider.name
NOVEMBER = datetime(2026, 11, 1, tzinfo=UTC)


def at(day: str) -> float:
    return datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp()


def paid(number: int, *, when: float | None = None, batch_id: str | None = None) -> Completion:
    made = answered(request(number))
    return Completion(
        made.request, made.outcome, made.text, made.usage, made.cost_usd, 0.5, when or time.time(), batch_id=batch_id
    )


def failed(number: int, cost_usd: float = 0.0) -> Completion:
    outcome = Outcome.INVALID if cost_usd else Outcome.FAILED
    return Completion(request(number), outcome, cost_usd=cost_usd, called_at=time.time(), error="refused: 400")


def hit(number: int) -> Completion:
    return Completion(request(number), Outcome.COMPLETED, "text", called_at=time.time(), stored=True)


def filled(home: Path) -> Ledger:
    """Three paid calls, two answers from the store, one failure."""
    ledger = make_ledger(home, "run 1")
    for number in range(3):
        ledger.keep(MODEL, [Entry(paid(number))])
    for number in range(2):
        ledger.note(MODEL, hit(number), stored=True)
    ledger.keep(MODEL, [Entry(failed(9))])
    return ledger


def waiting(ledger: Ledger) -> int:
    return len(ledger.database.read(sa.select(CALLS.c.call_id).where(~CALLS.c.in_table)))


def versions(home: Path) -> dict[str, int]:
    return Lake(home / "lake").latest(MODEL_CALLS)


def test_a_record_has_the_columns_of_the_table() -> None:
    assert [field.name for field in fields(CallRecord)] == MODEL_CALLS.schema.names


def test_rows_say_what_was_asked_and_what_it_cost(tmp_path: Path) -> None:
    rows = {row["outcome"]: row for row in filled(tmp_path).rows().to_pylist() if not row["cache_hit"]}
    assert (
        rows["completed"].items()
        >= {
            "run_id": "run 1",
            "asset": "page_summaries",
            "step": "summarize_page",
            "partition": "0a",
            "document_id": "specs/a.xlsx",
            "provider": "anthropic",
            "model": "scripted-1",
            "input_tokens": 10,
            "output_tokens": 5,
            "cache_read_tokens": 2,
            "cache_write_tokens": 1,
            "cost_usd": COST_USD,
            "seconds": 0.5,
            "error": None,
        }.items()
    )
    assert rows["failed"]["error"] == "refused: 400"
    assert abs(rows["completed"]["called_at"].timestamp() - time.time()) < 60


def test_compacting_changes_no_row_and_no_sum(tmp_path: Path) -> None:
    ledger = filled(tmp_path)
    before = ledger.rows()
    assert before.num_rows == 6
    assert ledger.spent_usd() == pytest.approx(3 * COST_USD)
    assert ledger.compact() == 6
    assert ledger.rows().equals(before)
    assert Lake(tmp_path / "lake").read(MODEL_CALLS).sort_by("call_id").equals(before)
    assert make_ledger(tmp_path).spent_usd() == pytest.approx(3 * COST_USD)
    assert ledger.answers.stats().pending == 0
    assert waiting(ledger) == 0


def test_nothing_new_writes_nothing(tmp_path: Path) -> None:
    assert make_ledger(tmp_path).compact() == 0
    assert list(tmp_path.iterdir()) == []
    ledger = filled(tmp_path)
    ledger.compact()
    before = versions(tmp_path)
    assert ledger.compact() == 0
    assert versions(tmp_path) == before == {month_of(time.time()): 1}
    ledger.note(MODEL, hit(1), stored=True)
    assert ledger.compact() == 1
    assert versions(tmp_path) == {month_of(time.time()): 2}


def test_calls_go_to_the_shard_of_their_month(tmp_path: Path) -> None:
    ledger = make_ledger(tmp_path)
    for number, day in enumerate(["2026-10-31T23:59:59.999", "2026-11-01T00:00:00", "2026-12-01T00:00:00"]):
        ledger.keep(MODEL, [Entry(paid(number, when=at(day)))])
    for _ in range(2):
        assert ledger.spent_usd() == pytest.approx(3 * COST_USD)
        assert ledger.spent_usd(NOVEMBER) == pytest.approx(2 * COST_USD)
        assert ledger.spent_usd(datetime(2027, 1, 1, tzinfo=UTC)) == 0
        ledger.compact()
    assert versions(tmp_path) == {"2026-10": 1, "2026-11": 1, "2026-12": 1}


def test_a_run_knows_its_own_sum(tmp_path: Path) -> None:
    for number, run_id in enumerate(["run 1", "run 2", "run 2", None]):
        make_ledger(tmp_path, run_id).keep(MODEL, [Entry(paid(number))])
    ledger = make_ledger(tmp_path)
    for _ in range(2):
        assert ledger.spent_usd(run_id="run 2") == pytest.approx(2 * COST_USD)
        assert ledger.spent_usd() == pytest.approx(4 * COST_USD)
        ledger.compact()


@pytest.mark.parametrize("day", ["2026-11-15T12:00:00", "2026-11-30T23:59:59"])
@pytest.mark.parametrize("compacted", [False, True])
def test_a_result_of_a_batch_that_is_read_twice_was_paid_once(tmp_path: Path, day: str, compacted: bool) -> None:
    first, second = make_ledger(tmp_path), make_ledger(tmp_path)
    first.keep(MODEL, [Entry(paid(0, when=at(day), batch_id="batch"))])
    if compacted:
        first.compact()
    second.keep(MODEL, [Entry(paid(0, when=at(day) + 1, batch_id="batch"))])
    assert second.rows().num_rows == 1
    second.compact()
    assert second.spent_usd() == pytest.approx(COST_USD)
    assert second.rows().num_rows == 1


def test_a_call_that_is_written_down_twice_is_charged_once(tmp_path: Path) -> None:
    ledger = make_ledger(tmp_path)
    record = ledger._record(MODEL, paid(0, when=time.time(), batch_id="batch"))
    account = {"account": month_account(record.called_at), "spent_usd": 0.0, "changed_at": time.time()}
    with ledger.database.transaction() as connection:
        connection.execute(sa.insert(SPENDING), account)
    for _ in range(2):
        with ledger.database.transaction() as connection:
            ledger.add(connection, [record])
    assert [row.spent_usd for row in ledger.database.read(sa.select(SPENDING))] == [record.cost_usd]


def test_one_request_paid_for_by_two_processes_shows_twice(tmp_path: Path) -> None:
    for text in ("first", "second"):
        (kept,) = make_ledger(tmp_path).keep(MODEL, [Entry(answered(request(0), text))])
        assert kept is not None
        assert kept.text == "first"
    ledger = make_ledger(tmp_path)
    ledger.compact()
    assert ledger.spent_usd() == pytest.approx(2 * COST_USD)


def test_a_failure_that_cost_something_counts_at_once(tmp_path: Path) -> None:
    make_ledger(tmp_path).keep(MODEL, [Entry(failed(0, cost_usd=0.75))])
    ledger = make_ledger(tmp_path)
    assert ledger.spent_usd() == 0.75
    ledger.compact()
    assert ledger.spent_usd() == 0.75


@pytest.mark.parametrize("where", ["write", "_let_go"])
def test_compacting_that_ends_anywhere_is_taken_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    ledger = filled(tmp_path)
    before = ledger.rows()

    def fail(*arguments: object) -> None:
        raise OSError("killed")

    with monkeypatch.context() as patched:
        patched.setattr(Lake if where == "write" else Ledger, where, fail)
        with pytest.raises(OSError, match="killed"):
            ledger.compact()
    assert make_ledger(tmp_path).rows().equals(before)
    assert make_ledger(tmp_path).spent_usd() == pytest.approx(3 * COST_USD)
    again = make_ledger(tmp_path)
    again.compact()
    assert again.rows().equals(before)
    assert waiting(again) == 0
    assert sum(versions(tmp_path).values()) == 1


def test_large_ledgers_are_compacted_in_slices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = filled(tmp_path)
    before = ledger.rows()
    monkeypatch.setattr("rag_assets.models.accounts.ledger._SLICE", 2)
    assert ledger.compact() == 6
    assert ledger.rows().equals(before)


def test_a_record_that_cannot_be_written_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = make_ledger(tmp_path)
    ledger.note(MODEL, hit(0), stored=True)

    def fail(*arguments: object) -> None:
        raise StoreError("no space")

    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "add", fail)
        with pytest.raises(StoreError, match="no space"):
            ledger.flush()
    ledger.note(MODEL, hit(1), stored=True)
    assert ledger.compact() == 2


def test_hits_are_written_within_seconds(tmp_path: Path) -> None:
    ledger = make_ledger(tmp_path)
    ledger.note(MODEL, hit(0), stored=True)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if waiting(make_ledger(tmp_path)):
            break
        time.sleep(0.05)
    else:
        pytest.fail("nothing was written")


def test_a_month_of_another_release_is_not_overwritten(tmp_path: Path) -> None:
    ledger = filled(tmp_path)
    folder = tmp_path / "lake" / MODEL_CALLS.name / month_of(time.time())
    folder.mkdir(parents=True)
    pq.write_table(pa.table({"call_id": ["old"]}), folder / "00000001.parquet")
    with pytest.raises(StoreError, match="another release"):
        ledger.compact()
    assert ledger.answers.stats().pending == 3


@pytest.mark.parametrize("text", ["表\udc80.xlsx", 'quote" and \\ and \n'])
def test_odd_names_are_recorded(tmp_path: Path, text: str) -> None:
    ledger = make_ledger(tmp_path)
    ledger.keep(MODEL, [Entry(answered(request(0, document_id=text)))])
    ledger.keep(MODEL, [Entry(Completion(request(1, document_id=text), Outcome.FAILED, error=text))])
    ledger.compact()
    expected = text.encode("utf-8", "replace").decode().replace("\0", "?")
    assert ledger.rows()["document_id"].to_pylist() == [expected] * 2


def test_rows_are_those_that_were_recorded() -> None:
    maker: Callable[[str], CallRecord] = lambda call_id: CallRecord(  # noqa: E731
        call_id, 1.5, None, "a", "s", None, None, "p", "m", "k", "failed", False, 1, 2, 3, 4, 0.5, 0.25, None, "e"
    )
    rows = call_rows([maker("b"), maker("a")])
    assert rows.schema.equals(MODEL_CALLS.schema)
    assert rows["call_id"].to_pylist() == ["b", "a"]
    assert rows["called_at"][0].as_py() == datetime(1970, 1, 1, 0, 0, 1, 500_000, UTC)


def test_answers_that_broke_their_schema_are_known_by_their_keys(tmp_path: Path) -> None:
    ledger = filled(tmp_path)
    ledger.note(MODEL, failed(1, cost_usd=0.1))
    keys = set(ledger.rows().filter(pc.equal(ledger.rows()["outcome"], "invalid"))["request_key"].to_pylist())
    assert ledger.invalid_keys() == keys
    assert len(keys) == 1
    ledger.compact()
    assert ledger.invalid_keys() == keys
