"""Successive halving, with figures and a clock made up; and the command on a real knowledge base."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from rag_assets.cli.main import main
from rag_assets.contracts.errors import QueryError
from rag_assets.training.tuning import Asked, Candidate, Tuning, parted, tuned

EVERY = [*range(40)]


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def made_up(clock: Clock, values: dict[str, float], seconds: float = 1.0) -> list[Candidate]:
    def candidate(name: str, value: float) -> Candidate:
        def ask(position: int) -> Asked:
            clock.now += seconds
            return Asked((value, value), seconds)

        return Candidate(name, ask)

    return [candidate(name, value) for name, value in values.items()]


def run(values: dict[str, float], budget: float) -> tuple[Tuning, Clock]:
    clock = Clock()
    return tuned(made_up(clock, values), EVERY[:32], EVERY[32:], budget, clock), clock


def test_the_better_half_goes_on_and_the_default_always() -> None:
    made, clock = run({"default": 0.1, "a": 0.2, "b": 0.3, "c": 0.4}, 115)
    assert {each.name: each.rung for each in made.candidates} == {"default": 3, "a": 1, "b": 2, "c": 3}
    assert made.winner.name == "c"
    assert clock.now == 4 * 8 + 3 * 8 + 2 * 16 + 2 * 8
    assert made.differences["R@5"].difference.mean == pytest.approx(0.3)
    assert not made.ended


def test_where_time_is_left_for_all_questions_all_go_on() -> None:
    made, clock = run({"default": 0.1, "a": 0.2, "b": 0.3, "c": 0.4}, 1000)
    assert {len(each.results) for each in made.candidates[1:3]} == {32}
    assert made.winner.name == "c"
    assert clock.now == 4 * 32 + 2 * 8


def test_a_default_that_nothing_beats_stays() -> None:
    made, _ = run({"default": 0.5, "a": 0.2, "b": 0.3}, 1000)
    assert made.winner.name == "default"
    assert not made.differences


@pytest.mark.parametrize("budget", [5, 32, 60, 75, 100])
def test_the_budget_is_kept(budget: float) -> None:
    made, clock = run({"default": 0.1, "a": 0.2, "b": 0.3, "c": 0.4}, budget)
    assert clock.now <= budget
    assert made.ended


def test_the_last_comparison_has_its_time_set_aside() -> None:
    made, clock = run({"default": 0.1, "a": 0.2, "b": 0.3, "c": 0.4}, 80)
    assert made.ended == "the time of the budget ended after 16 of 32 questions that choose"
    assert made.winner.name == "c"
    assert "R@5" in made.differences
    assert clock.now == 4 * 8 + 3 * 8 + 2 * 8


def test_an_interrupt_leaves_what_is_known() -> None:
    clock = Clock()
    candidates = made_up(clock, {"default": 0.1, "a": 0.2})
    ask = candidates[1].ask

    def interrupted(position: int) -> Asked:
        if clock.now > 20:
            raise KeyboardInterrupt
        return ask(position)

    candidates[1].ask = interrupted
    made = tuned(candidates, EVERY[:32], EVERY[32:], 1000, clock)
    assert made.ended == "interrupted"
    assert made.winner.name == "a"


def test_questions_of_one_document_are_never_parted() -> None:
    documents = [{f"d{position // 4}"} for position in range(40)]
    choosing, held_out = parted(documents)
    assert sorted(choosing + held_out) == EVERY
    assert {position // 4 for position in choosing}.isdisjoint(position // 4 for position in held_out)
    with pytest.raises(QueryError, match="5 are needed"):
        parted(documents[:8])


def test_the_command_changes_nothing(sample_home: Path, tmp_path: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (sample_home / "snapshots").rglob("*")}
    documents = CliRunner().invoke(
        main, ["--home", str(sample_home), "sql", "--json", "SELECT document_id FROM documents"]
    )
    names = [row["document_id"] for row in json.loads(documents.stdout)]
    lines = [
        json.dumps({"id": f"q{at}", "question": f"What does {name} say?", "evidence": [{"document": name}]})
        for at, name in enumerate(names)
    ]
    (tmp_path / "set.jsonl").write_text("\n".join(lines), "utf-8")
    result = CliRunner().invoke(
        main, ["--home", str(sample_home), "tune", str(tmp_path / "set.jsonl"), "--budget", "10s", "--json"]
    )
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["candidates"][0]["rung"] >= 1
    assert any(row["candidate"].endswith("(default)") for row in told["candidates"])
    assert {path: path.stat().st_mtime_ns for path in (sample_home / "snapshots").rglob("*")} == before
