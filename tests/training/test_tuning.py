"""Successive halving, with figures and a clock made up; and the command on a real knowledge base."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from rag_assets.cli.main import main
from rag_assets.contracts.errors import QueryError
from rag_assets.evaluation.questions import Evidence, Question, question_line
from rag_assets.pipeline.home import Home
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


def test_the_command_tries_modes_and_passages_and_changes_nothing(home: Home, tmp_path: Path) -> None:
    folder, lines = Path(home.settings.sources[0]), []
    for at, name in enumerate(("token", "backup", "invoice", "holiday", "printer", "parking")):
        text = f"The {name} rule is number {at}."
        (folder / f"{name}.md").write_text(f"{text}\n", encoding="utf-8")
        lines.append(
            Question(name, f"What is the {name} rule?", "en", "rule", True, (Evidence(f"{name}.md", quote=text),))
        )
    path = tmp_path / "set.jsonl"
    path.write_text("".join(f"{question_line(each)}\n" for each in lines), "utf-8")
    CliRunner().invoke(main, ["--home", str(home.path), "index", str(folder)])
    before = {each: each.stat().st_mtime_ns for each in home.path.rglob("*") if each.is_file()}
    arguments = ["--home", str(home.path), "tune", str(path), "--budget", "5m", "--passage-tokens", "48", "--json"]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    rows = {row["candidate"]: row for row in told["candidates"]}
    assert told["notes"][0].startswith("passages of 48 tokens: indexing took")
    assert told["notes"][1].startswith(f"only {told['held_out']} questions are held out")
    assert rows.keys() > {"auto (default)", "vector", "rewrite+weighted", "passages of 48 tokens"}
    assert all(row["questions"] == told["choosing"] and row["R@5"]["mean"] == 1 for row in rows.values())
    assert {each: each.stat().st_mtime_ns for each in home.path.rglob("*") if each.is_file()} == before
