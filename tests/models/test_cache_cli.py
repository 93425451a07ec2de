"""`rag-assets cache`: what is stored, and dropping it."""

import json
import time
from pathlib import Path

import pytest
import sqlalchemy as sa
from click.testing import CliRunner, Result
from scripted_provider import COST_USD, ScriptedProvider, answered, make_ledger, request, state_of

from rag_assets.cli import main
from rag_assets.contracts.generation import Outcome, request_key
from rag_assets.models.accounts.ledger import Entry
from rag_assets.models.accounts.schema import ANSWERS

OUTCOMES = (Outcome.COMPLETED, Outcome.COMPLETED, Outcome.REFUSED, Outcome.TRUNCATED)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with four stored answers, last used 0, 100, 200 and 300 days ago."""
    ledger = make_ledger(tmp_path)
    for number, outcome in enumerate(OUTCOMES):
        ledger.keep(ScriptedProvider.name, [Entry(answered(request(number), "x" * 1000, outcome))])
        with ledger.database.transaction() as connection:
            at = time.time() - number * 100 * 86_400
            key = request_key(ScriptedProvider.name, request(number))
            connection.execute(sa.update(ANSWERS).where(ANSWERS.c.request_key == key).values(used_at=at))
        ledger.compact()
    return tmp_path


def run(home: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["--home", str(home), "cache", *arguments])


def kept(home: Path) -> list[str]:
    groups = make_ledger(home).answers.stats().groups
    return sorted(group.outcome for group in groups for _ in range(group.entries))


def test_statistics(home: Path) -> None:
    result = run(home, "stats")
    assert result.exit_code == 0, result.output
    assert "scripted-1" in result.output
    assert "answers 4" in result.output
    found = json.loads(run(home, "stats", "--json").output)
    assert (found["entries"], found["damaged"], found["pending"]) == (4, 0, 0)
    assert {group["outcome"]: group["entries"] for group in found["groups"]} == {
        "completed": 2,
        "refused": 1,
        "truncated": 1,
    }
    assert sum(group["cost_usd"] for group in found["groups"]) == pytest.approx(4 * COST_USD)
    assert found["newest"].endswith("+00:00")


def test_damaged_entries_are_told(home: Path) -> None:
    with state_of(home).transaction() as connection:
        one = sa.select(sa.func.min(ANSWERS.c.request_key)).scalar_subquery()
        connection.execute(sa.update(ANSWERS).where(ANSWERS.c.request_key == one).values(checksum=1))
    assert "damaged 1" in run(home, "stats").output


def test_an_empty_store(tmp_path: Path) -> None:
    assert run(tmp_path / "none", "stats").output == "answers 0, 0 B\n"
    assert "dropped: 0 answers" in run(tmp_path / "none", "prune").output
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("options", "left"),
    [
        ((), ["completed", "completed", "refused", "truncated"]),
        (("--days", "250"), ["completed", "completed", "refused"]),
        (("--bytes", "2.5kB"), ["completed", "completed"]),
        (("--bytes", "1KiB"), ["completed"]),
        (("--bytes", "0"), []),
        (("--outcome", "refused", "--outcome", "truncated"), ["completed", "completed"]),
        (("--days", "250", "--outcome", "refused"), ["completed", "completed"]),
    ],
)
def test_pruning(home: Path, options: tuple[str, ...], left: list[str]) -> None:
    trial = json.loads(run(home, "prune", *options, "--dry-run", "--json").output)
    assert len(kept(home)) == 4
    result = run(home, "prune", *options)
    assert result.exit_code == 0, result.output
    assert f"dropped: {4 - len(left)} answers" in result.output
    assert kept(home) == left
    assert (trial["removed"], trial["kept"], trial["dry_run"]) == (4 - len(left), len(left), True)
    assert make_ledger(home).spent_usd() == pytest.approx(4 * COST_USD)


def test_the_settings_hold_where_nothing_is_said(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAG_LANGUAGE_MODEL__STORED_ANSWERS_DAYS", "150")
    assert "would be dropped: 2 answers" in run(home, "prune", "--dry-run").output
    monkeypatch.setenv("RAG_LANGUAGE_MODEL__STORED_ANSWERS_BYTES", "0")
    assert "dropped: 4 answers" in run(home, "prune").output


def test_what_is_pruned_is_in_the_ledger_first(tmp_path: Path) -> None:
    make_ledger(tmp_path).keep(ScriptedProvider.name, [Entry(answered(request(0)))])
    assert "dropped: 1 answers" in run(tmp_path, "prune", "--bytes", "0").output
    assert make_ledger(tmp_path).spent_usd() == pytest.approx(COST_USD)


@pytest.mark.parametrize("size", ["much", "5XB", "-1", "5ib"])
def test_sizes_that_are_none_are_refused(home: Path, size: str) -> None:
    result = run(home, "prune", "--bytes", size)
    assert result.exit_code == 2
    assert "expected a number of bytes" in result.output


def test_a_batch_that_is_not_known_needs_no_key(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["--home", str(tmp_path / "none"), "batches", "--cancel", "x"])
    expected = "rag-assets: no batch x is under way; `rag-assets batches` lists those that are\n"
    assert (result.exit_code, result.output) == (1, expected)
