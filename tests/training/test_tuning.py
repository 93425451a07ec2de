"""Successive halving, with figures and a clock made up; and the command on a real knowledge base."""

import json
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from rag_assets.cli.main import main
from rag_assets.contracts.errors import QueryError
from rag_assets.evaluation.evidence import Level
from rag_assets.evaluation.questions import Evidence, Question, question_line, read_questions
from rag_assets.evaluation.runs import System
from rag_assets.pipeline import opening, tuning
from rag_assets.pipeline.home import Home
from rag_assets.pipeline.measuring import open_corpus
from rag_assets.pipeline.opening import knowledge_base, published_snapshot
from rag_assets.pipeline.settings import load_settings
from rag_assets.pipeline.stored_settings import read_stored
from rag_assets.query.search.ranking_weights import MAP_ASSET, SHIPPED, WEIGHTS_ASSET, Weights, weights_files
from rag_assets.text.plain import counted
from rag_assets.training.adoption import prove, store_candidate
from rag_assets.training.pairs import JudgedQuestion, judged_questions
from rag_assets.training.ranking import LEVELS, judged_levels
from rag_assets.training.tuning import Configuration, QuestionOutcome, Tuning, parted, tuned

EVERY = [*range(40)]


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def made_up(clock: Clock, values: dict[str, float], seconds: float = 1.0) -> list[Configuration]:
    def candidate(name: str, value: float) -> Configuration:
        def ask(position: int) -> QuestionOutcome:
            clock.now += seconds
            return QuestionOutcome((value, value), seconds)

        return Configuration(name, ask)

    return [candidate(name, value) for name, value in values.items()]


def run(values: dict[str, float], budget: float) -> tuple[Tuning, Clock]:
    clock = Clock()
    return tuned(made_up(clock, values), EVERY[:32], EVERY[32:], budget, clock), clock


def test_the_better_half_goes_on_and_the_default_always() -> None:
    made, clock = run({"default": 0.1, "a": 0.2, "b": 0.3, "c": 0.4}, 115)
    assert {each.name: each.rung for each in made.candidates} == {"default": 3, "a": 1, "b": 2, "c": 3}
    assert made.winner is made.candidates[3]
    assert clock.now == 4 * 8 + 3 * 8 + 2 * 16 + 2 * 8
    assert made.differences["R@5"].difference.mean == pytest.approx(0.3)
    assert not made.ended


def test_where_time_is_left_for_all_questions_all_go_on() -> None:
    made, clock = run({"default": 0.1, "a": 0.2, "b": 0.3, "c": 0.4}, 1000)
    assert {len(each.results) for each in made.candidates[1:3]} == {32}
    assert made.winner is made.candidates[3]
    assert clock.now == 4 * 32 + 2 * 8


def test_a_default_that_nothing_beats_stays() -> None:
    made, _ = run({"default": 0.5, "a": 0.2, "b": 0.3}, 1000)
    assert made.winner is made.candidates[0]
    assert not made.differences


def test_values_in_another_order_are_no_better() -> None:
    def valued(name: str, values: tuple[float, ...], seconds: float) -> Configuration:
        return Configuration(name, lambda position: QuestionOutcome((1.0, values[position % len(values)]), seconds))

    default, other = valued("default", (0.3, 0.2, 0.1), 0.1), valued("other", (0.1, 0.2, 0.3), 0.2)
    assert 0.1 + 0.2 + 0.3 != 0.3 + 0.2 + 0.1
    made = tuned([default, other], EVERY[:3], EVERY[3:], 1000, Clock())
    assert made.winner is default


@pytest.mark.parametrize("budget", [5, 32, 60, 75, 100])
def test_the_budget_is_kept(budget: float) -> None:
    made, clock = run({"default": 0.1, "a": 0.2, "b": 0.3, "c": 0.4}, budget)
    assert clock.now <= budget
    assert made.ended


def test_the_last_comparison_has_its_time_set_aside() -> None:
    made, clock = run({"default": 0.1, "a": 0.2, "b": 0.3, "c": 0.4}, 80)
    assert made.ended == "the time of the budget ended after 16 of 32 questions that choose"
    assert made.winner is made.candidates[3]
    assert "R@5" in made.differences
    assert clock.now == 4 * 8 + 3 * 8 + 2 * 8


def test_without_the_last_comparison_there_is_no_winner() -> None:
    made, _ = run({"default": 0.1, "a": 0.2}, 2 * 8 + 2)
    assert made.ended
    assert made.candidates[1].means(made.choosing) == (0.2, 0.2)
    assert made.winner is None


def failing(candidate: Configuration, first: int) -> Configuration:
    """Cannot answer any more after so many questions."""

    def ask(position: int) -> QuestionOutcome:
        if len(candidate.results) >= first:
            raise QueryError("none are indexed")
        return answered(position)

    answered, candidate.ask = candidate.ask, ask
    return candidate


@pytest.mark.parametrize("first", [0, 5, 12, 32])
def test_what_cannot_search_is_left_out(first: int) -> None:
    clock = Clock()
    candidates = made_up(clock, {"default": 0.1, "a": 0.2, "b": 0.3})
    failing(candidates[2], first)
    made = tuned(candidates, EVERY[:32], EVERY[32:], 1000, clock)
    assert candidates[2].failure == "none are indexed"
    assert made.winner is candidates[1]
    assert made.differences["R@5"].difference.mean == pytest.approx(0.1)
    assert clock.now == 2 * 40 + first


def test_a_default_that_cannot_search_ends_it() -> None:
    clock = Clock()
    candidates = made_up(clock, {"default": 0.1, "a": 0.2})
    with pytest.raises(QueryError, match="default: none are indexed"):
        tuned([failing(candidates[0], 0), candidates[1]], EVERY[:32], EVERY[32:], 1000, clock)
    candidates = made_up(clock, {"default": 0.1, "a": 0.2})
    made = tuned([failing(candidates[0], 20), candidates[1]], EVERY[:32], EVERY[32:], 1000, clock)
    assert made.ended == "default: none are indexed"
    assert made.winner is None


def test_an_interrupt_leaves_what_is_known() -> None:
    clock = Clock()
    candidates = made_up(clock, {"default": 0.1, "a": 0.2})
    ask = candidates[1].ask

    def interrupted(position: int) -> QuestionOutcome:
        if clock.now > 20:
            raise KeyboardInterrupt
        return ask(position)

    candidates[1].ask = interrupted
    made = tuned(candidates, EVERY[:32], EVERY[32:], 1000, clock)
    assert made.ended == "interrupted"
    assert made.winner is None
    assert len(candidates[1].results) == 10


@pytest.mark.parametrize(
    ("sizes", "held_out"),
    [
        ([1] * 40, 16),
        ([60, 30, 10, 8, 6], 46),  # of 114, two fifths are 45.6
        ([96, 5, 5, 4, 4], 18),
        ([7, 7, 7, 7, 7], 14),
        ([40, 15, 15, 15, 15], 45),  # never one document alone: 40, or 45 or 30 of several
    ],
)
def test_the_share_held_out_is_as_near_to_two_fifths_as_documents_allow(sizes: list[int], held_out: int) -> None:
    documents = [{f"d{at}"} for at, size in enumerate(sizes) for _ in range(size)]
    parts = parted(documents)
    assert parts == parted(documents)
    assert len(parts[1]) == held_out
    assert sorted(parts[0] + parts[1]) == [*range(len(documents))]


def test_questions_of_one_document_are_never_parted() -> None:
    documents = [{f"d{position // 4}"} for position in range(40)]
    choosing, held_out = parted(documents)
    assert sorted(choosing + held_out) == EVERY
    assert {position // 4 for position in choosing}.isdisjoint(position // 4 for position in held_out)
    with pytest.raises(QueryError, match="5 are needed"):
        parted(documents[:8])


def index(home: Path, folder: Path) -> Path:
    """Six documents with a question each; the question set."""
    lines = []
    for at, name in enumerate(("token", "backup", "invoice", "holiday", "printer", "parking")):
        text = f"The {name} rule is number {at}."
        (folder / f"{name}.md").write_text(f"{text}\n", encoding="utf-8")
        lines.append(
            Question(name, f"What is the {name} rule?", "en", "rule", True, (Evidence(f"{name}.md", quote=text),))
        )
    path = folder.parent / "set.jsonl"
    path.write_text("".join(f"{question_line(each)}\n" for each in lines), "utf-8")
    assert CliRunner().invoke(main, ["--home", str(home), "index", str(folder)]).exit_code == 0
    return path


@pytest.fixture(scope="module")
def intact(tmp_path_factory: pytest.TempPathFactory, models_folder: Path) -> Path:
    """A folder with such a knowledge base."""
    folder = tmp_path_factory.mktemp("tuning")
    (folder / "specs").mkdir()
    (folder / "home").mkdir()
    (folder / "home" / "models").symlink_to(models_folder)
    index(folder / "home", folder / "specs")
    return folder


@pytest.fixture
def indexed(intact: Path, tmp_path: Path) -> tuple[Home, Path]:
    """A copy of it, whose sources are those of the first, and its question set."""
    shutil.copytree(intact / "home", tmp_path / "home", symlinks=True)
    path = Path(shutil.copy2(intact / "set.jsonl", tmp_path))
    return Home(load_settings(home=tmp_path / "home", sources=(str(intact / "specs"),))), path


def test_the_command_tries_modes_and_passages_and_changes_nothing(
    indexed: tuple[Home, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    home, path = indexed
    monkeypatch.setattr(tuning, "_TRIED", (*tuning._TRIED, "graph_local"))
    before = {each: each.stat().st_mtime_ns for each in home.path.rglob("*") if each.is_file()}
    arguments = ["--home", str(home.path), "tune", str(path), "--budget", "5m", "--passage-tokens", "48", "--json"]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    rows = {row["candidate"]: row for row in told["candidates"]}
    starts = (
        "learned weights: not tried: ",
        "learned trees: not tried: ",
        "passages of 48 tokens: indexing took",
        "graph_local: left out: question ",
        f"only {told['held_out']} questions are held out",
    )
    assert all(note.startswith(start) for note, start in zip(told["notes"], starts, strict=True))
    assert rows.keys() > {"auto (default)", "vector", "rewrite+weighted", "passages of 48 tokens"}
    assert "graph_local" not in rows
    assert all(row["questions"] == told["choosing"] and row["R@5"]["mean"] == 1 for row in rows.values())
    assert {each: each.stat().st_mtime_ns for each in home.path.rglob("*") if each.is_file()} == before


def test_where_evidence_names_documents_alone_documents_are_searched_for(indexed: tuple[Home, Path]) -> None:
    home, path = indexed
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    for line in lines:
        line["evidence"] = [{"document": each["document"]} for each in line["evidence"]]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")
    result = CliRunner().invoke(main, ["--home", str(home.path), "tune", str(path), "--budget", "1m"])
    assert result.exit_code == 0, result.output
    assert "documents are searched for" in result.stdout


def test_where_evidence_names_documents_alone_their_pages_and_passages_prove_nothing(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(home.settings.sources[0])
    path = index(home.path, folder)
    by_quotes = read_questions(path)
    named = [replace(each, evidence=(Evidence(each.evidence[0].document),)) for each in by_quotes]

    def levels() -> list[list[Level]]:
        snapshot = published_snapshot(home)
        base, corpus = knowledge_base(home, snapshot), open_corpus(home, snapshot)
        return [judged_levels(judged_questions(base, corpus, each)) for each in (by_quotes, named)]

    assert levels() == [[*LEVELS], [*LEVELS]]  # each document is one passage
    monkeypatch.setenv("RAG_CHUNKING__SIZE_TOKENS", "48")
    for each in by_quotes:
        more = "\n\n".join(f"Note {number} says more of the matter." for number in range(30))
        file = folder / each.evidence[0].document
        file.write_text(f"{file.read_text('utf-8')}\n{more}\n", "utf-8")
    assert CliRunner().invoke(main, ["--home", str(home.path), "index", "--accept-settings"]).exit_code == 0
    assert levels() == [[*LEVELS], [Level.DOCUMENT]]


def test_other_passages_differ_in_their_size_alone(home: Home, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RAG_CHUNKING__OVERLAP_SHARE", "0.25")
    monkeypatch.setenv("RAG_ENRICHMENT__TAXONOMY", "papers")
    path = index(home.path, Path(home.settings.sources[0]))
    monkeypatch.delenv("RAG_CHUNKING__OVERLAP_SHARE")
    monkeypatch.delenv("RAG_ENRICHMENT__TAXONOMY")
    monkeypatch.setenv("RAG_LANGUAGE_MODEL__PROVIDER", "anthropic")
    monkeypatch.setenv("RAG_LANGUAGE_MODEL__MODEL", "claude-haiku-4-5")
    given: dict[str, str] = {}

    def late(command: list[str], *, env: dict[str, str], timeout: float, **_options: object) -> None:
        given.update(env)
        raise subprocess.TimeoutExpired(command, timeout)

    monkeypatch.setattr(subprocess, "run", late)
    opened = Home(load_settings(home=home.path))
    plan = tuning.planned_tuning(
        opened, path, tuning.TuningBudget(time.monotonic() + 120), (48, 64), tmp_path / "scratch"
    )
    assert [note.partition(": ")[0] for note in plan.notes[3:]] == ["passages of 48 tokens", "passages of 64 tokens"]
    assert "s, what was left of half of the time" in plan.notes[3]
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    other, stored = Home(load_settings(home=tmp_path / "scratch" / "64")), read_stored(home.settings_path)
    assert stored is not None
    assert stored["chunking"]["overlap_share"] == 0.25
    assert other.settings.chunking.size_tokens == 64
    assert other.settings.language_model.provider == "extractive"
    assert read_stored(other.settings_path) == {**stored, "chunking": {**stored["chunking"], "size_tokens": 64}}


def test_what_is_in_force_is_part_of_the_default_and_too_few_questions_teach_nothing(
    indexed: tuple[Home, Path], tmp_path: Path
) -> None:
    home, path = indexed
    current = home.snapshots.current()
    assert current is not None
    proof = prove("passage R@5", [0.0, 1.0] * 20, [1.0] * 40, {})
    place = store_candidate(home.path, WEIGHTS_ASSET, weights_files(SHIPPED), proof)
    learned = {WEIGHTS_ASSET: (place,), MAP_ASSET: ("learned/query_map/0123",)}
    home.snapshots.publish(replace(current, number=home.snapshots.next_number(), learned=learned))
    budget = tuning.TuningBudget(time.monotonic() + 120)
    plan = tuning.planned_tuning(home, path, budget, (), tmp_path)
    assert plan.notes[0].startswith("in force, but not used here: query_map: learned/query_map/0123 cannot be read")
    assert plan.notes[1].startswith(
        "part of the default: ranking_weights; if learned from these questions, its figures are in sample"
    )
    taught = f"{counted(len(plan.choosing), 'question')} teach none that are surely better than the shipped weights"
    assert plan.notes[2:] == [f"learned {each}: not tried: {taught}" for each in ("weights", "trees")]
    adoptions = {each.name: each.adoption for each in plan.candidates}
    assert adoptions["fulltext"] == "export RAG_SEARCH__MODE=fulltext"
    assert "learned weights" not in adoptions
    late = tuning.planned_tuning(home, path, replace(budget, deadline=time.monotonic()), (), tmp_path)
    assert late.notes[2] == "learned weights: not tried: asking the questions that choose took half of the time"


NAMES = [
    f"{first}{second}"
    for first in ("bor", "dal", "fin", "gam", "hul", "kep")
    for second in ("an", "et", "is", "ow", "ux", "yl")
]


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory, models_folder: Path) -> Path:
    """A folder with a knowledge base whose documents hold the names of twenty others, and a question on each by its own
    name, which the folder alone tells.
    """
    folder = tmp_path_factory.mktemp("named")
    (folder / "specs").mkdir()
    (folder / "home").mkdir()
    (folder / "home" / "models").symlink_to(models_folder)
    questions = []
    for at, name in enumerate(NAMES):
        others = " ".join(NAMES[(at + step) % len(NAMES)] for step in range(1, 21))
        (folder / "specs" / name).mkdir()
        (folder / "specs" / name / "notes.md").write_text(f"See {others}.\n", encoding="utf-8")
        questions.append(Question(name, f"What of {name}?", "en", "name", True, (Evidence(f"{name}/notes.md"),)))
    (folder / "set.jsonl").write_text("".join(f"{question_line(each)}\n" for each in questions), "utf-8")
    result = CliRunner().invoke(main, ["--home", str(folder / "home"), "index", str(folder / "specs")])
    assert result.exit_code == 0, result.output
    return folder


def test_learned_weights_that_win_are_adopted_by_the_line_that_is_printed(
    named: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(named / "home", tmp_path / "home", symlinks=True)
    monkeypatch.setattr(tuning, "_TRIED", ("weighted", "vector"))
    command = ["--home", str(tmp_path / "home"), "tune", str(named / "set.jsonl"), "--budget", "5m"]
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 0, result.output
    rows = {line.split("  ")[0].strip(): line.split() for line in result.stdout.splitlines()}
    assert rows["learned weights"][4] == "1.000"
    assert rows["auto (default)"][4] == "0.000"
    assert "learned trees: not tried: 22 questions teach none that are surely better" in result.stderr
    asked = re.findall(r"asking questions: (\d+) of (\d+)", result.stderr)  # a busy machine tells more between
    assert [total for done, total in asked if done == total][:2] == ["32", "56"]
    assert "winner: learned weights" in result.stdout
    assert "R@5 on questions held out, winner less default: +1.000" in result.stdout
    adopting = result.stdout.partition("nothing was adopted; to adopt it: rag-assets ")[2]
    arguments = shlex.split(adopting, comments=True)
    assert arguments == [*command[:2], "train", "ranking", command[3]]
    result = CliRunner().invoke(main, arguments)
    assert "ranking_weights: in force in version 2" in result.stdout
    plan = tuning.planned_tuning(
        Home(load_settings(home=tmp_path / "home", search={"mode": "vector"})),
        named / "set.jsonl",
        tuning.TuningBudget(time.monotonic() + 300),
        (),
        tmp_path,
    )
    (learned,) = (each for each in plan.candidates if each.name == "learned weights")
    assert learned.adoption.startswith("export RAG_SEARCH__MODE=weighted && rag-assets --home ")


def test_no_question_is_searched_by_weights_that_its_document_taught(named: Path) -> None:
    home = Home(load_settings(home=named / "home"))
    snapshot = opening.published_snapshot(home)
    system = System("learned weights", opening.knowledge_base(home, snapshot), open_corpus(home, snapshot), "weighted")
    questions = read_questions(named / "set.jsonl")
    choosing, held_out = parted([{each.evidence[0].document} for each in questions])
    taught: dict[float, list[str]] = {}

    def learn(judged: Sequence[JudgedQuestion], _level: Level) -> tuple[Weights, float]:
        weights = Weights(words=2.0 + len(taught))
        taught[weights.words] = [each.id for each in judged]
        return weights, 0.0

    judged = tuning._signals(system.base, system.corpus, [questions[at] for at in choosing], time.monotonic() + 60)
    systems = tuning._learned(system, judged, choosing, len(questions), Level.DOCUMENT, learn)
    by = [taught[each.base.options.ranking.weights["document"].weights.words] for each in systems]
    everyone = {questions[at].id for at in choosing}
    for at in choosing:
        assert questions[at].id not in by[at]
        assert everyone.issuperset(by[at])
        assert len(by[at]) >= len(everyone) * 3 // 4
    assert all(everyone == set(by[at]) for at in held_out)
