"""A version that answers accepted questions worse is not published, unless a person says so."""

import json
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from indexing import copy_into, names_of_one_shard

from rag_assets.cli import main
from rag_assets.contracts.errors import QueryError
from rag_assets.contracts.ports import Embedder, EmbeddingKind
from rag_assets.contracts.tables import CHUNKS
from rag_assets.evaluation.questions import Evidence, Question, question_line
from rag_assets.evaluation.records import recorded_results, recorded_runs, value_of
from rag_assets.models.embedding import embedders
from rag_assets.pipeline import gate as gate_module
from rag_assets.pipeline.gate import Gate, GateVerdict
from rag_assets.pipeline.home import Home
from rag_assets.pipeline.measuring import gate_notes
from rag_assets.pipeline.opening import knowledge_base
from rag_assets.pipeline.settings import load_settings
from rag_assets.store.snapshots import Snapshot

if TYPE_CHECKING:
    from numpy.typing import NDArray

FACTS = {
    "token": ("How long is a token valid?", "A token is valid for 30 minutes.", "30 minutes"),
    "password": ("How long must a password be?", "A password must have 14 characters.", "14 characters"),
    "backup": ("When is the backup taken?", "The backup is taken at 3 a.m.", "3 a.m."),
    "customer": ("顧客番号は何桁ですか？", "顧客番号は12桁です。", "12桁"),
    "invoice": ("請求書はいつ発行されますか？", "請求書は毎月5日に発行します。", "5日"),
}
CATALOGUE = """
[[model]]
provider = "openai"
model = "m"
context_tokens = 8192
output_tokens = 4096
input_usd = 2.5
output_usd = 10.0
"""
TOKEN_WORSE = "token (passage R@5 1.00 before, 0.00 now): How long is a token valid?"
COPIES = 6  # more than the first 5 results, by which questions are judged


def write_facts(folder: Path, path: Path) -> None:
    """Write the documents into a folder, and a set of questions on them."""
    for name, (_, text, _) in FACTS.items():
        (folder / f"{name}.md").write_text(f"# {name}\n\n{text}\n", encoding="utf-8")
    questions = [
        Question(name, asked, evidence=(Evidence(f"{name}.md", quote=text),), answer_contains=((answer,),))
        for name, (asked, text, answer) in FACTS.items()
    ]
    drafts = [Question("draft", "Is this asked?", draft=True)]
    path.write_text("".join(f"{question_line(each)}\n" for each in [*questions, *drafts]), encoding="utf-8")


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory, models_folder: Path) -> Path:
    """Home of a knowledge base whose first version was measured, its questions beside it; not to be changed."""
    folder = tmp_path_factory.mktemp("gate")
    (folder / "specs").mkdir()
    (folder / "home").mkdir()
    (folder / "home" / "models").symlink_to(models_folder)
    write_facts(folder / "specs", folder / "questions.jsonl")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAG_EVALUATION__QUESTIONS", str(folder / "questions.jsonl"))
        patch.setenv("RAG_SEARCH__ASK_MODE", "hybrid")
        result = CliRunner().invoke(main, ["--home", str(folder / "home"), "index", str(folder / "specs")])
        assert result.exit_code == 0, result.output
    return folder / "home"


@pytest.fixture
def measured(home: Home, indexed: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A knowledge base with a gate, whose first version is published."""
    monkeypatch.setenv("RAG_EVALUATION__QUESTIONS", str(indexed.parent / "questions.jsonl"))
    monkeypatch.setenv("RAG_SEARCH__ASK_MODE", "hybrid")
    return copy_into(home, indexed, indexed.parent / "specs")


def run(home: Home, *arguments: object) -> Result:
    return CliRunner().invoke(main, ["--home", str(home.path), *map(str, arguments)])


def current(home: Home) -> int:
    snapshot = home.snapshots.current()
    assert snapshot is not None
    return snapshot.number


def check_descriptions(home: Home) -> list[tuple[bool, str]]:
    """Results of the check, the latest first."""
    key = dg.AssetCheckKey(dg.AssetKey("snapshot"), "accepted_questions")
    with dg.DagsterInstance.from_config(str(home.path / "dagster_home")) as instance:
        records = instance.event_log_storage.get_asset_check_execution_history(key, limit=10)
        events = [record.event.dagster_event for record in records if record.event is not None]
    found = [event.asset_check_evaluation_data for event in events if event is not None]
    return [(each.passed, each.description or "") for each in found]


def test_a_worse_version_is_held_back_until_a_person_publishes_it(measured: Home) -> None:
    folder = Path(measured.settings.sources[0])
    assert current(measured) == 1
    assert check_descriptions(measured) == [(True, "there are no figures of the version before")]
    for name, (asked, _, _) in FACTS.items():
        for number, copy in enumerate(names_of_one_shard(f"{name}-{{}}.md", COPIES)):
            text = f"# {name} {number}\n\n{asked} {asked} {number}\n"
            (folder / copy).write_text(text, encoding="utf-8")
    refused = run(measured, "index", "--forget", "specs", folder)
    assert refused.exit_code == 1
    assert "nothing is published, readers keep version 1: worse on every question: passage R@5 -1.000" in refused.stderr
    assert TOKEN_WORSE in refused.stderr
    assert "answer correct 1.00 before, 0.00 now" in refused.stderr, refused.stderr
    assert "`rag-assets publish --anyway`" in refused.stderr
    assert current(measured) == 1
    assert len(knowledge_base(measured).search("token", "hybrid", 50).hits) == len(FACTS)
    passed, description = check_descriptions(measured)[0]
    assert not passed
    assert "token (passage R@5" in description
    status = run(measured, "status")
    assert (
        "a newer version was held back by the questions of questions.jsonl: `rag-assets publish` says" in status.stdout
    )
    assert "`rag-assets publish --anyway` publishes it" in status.stdout
    held = json.loads(run(measured, "status", "--json").stdout)["held_back"]
    assert held["question_set"] == "questions.jsonl"
    assert TOKEN_WORSE in held["reasons"][0]
    published = run(measured, "publish", "--anyway")
    assert published.exit_code == 0, published.output
    assert "held back" not in run(measured, "status").stdout
    assert json.loads(run(measured, "status", "--json").stdout)["held_back"] is None
    assert published.stdout.startswith("readers see version 2\naccepted questions: published anyway by ")
    assert TOKEN_WORSE in published.stdout
    passed, description = check_descriptions(measured)[0]
    assert not passed
    assert description.startswith("published anyway by ")
    runs = recorded_runs(measured.lake)
    assert [row["version"] for row in runs] == [2, None, 1]
    results = recorded_results(measured.lake, runs[0]["run_id"])
    assert {value_of(row, "passage", "R@5") for row in results} == {0.0}
    measured_again = run(measured, "evaluate", "--mode", "hybrid", "--level", "passage")
    assert "the gate held back 1 version by this set, so it was used for choosing" in measured_again.output


def test_what_is_worse_within_the_interval_is_said_and_stands_beside_the_version_before(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, path = Path(home.settings.sources[0]), tmp_path / "questions.jsonl"
    write_facts(folder, path)
    assert run(home, "index", folder).exit_code == 0
    monkeypatch.setenv("RAG_EVALUATION__QUESTIONS", str(path))
    monkeypatch.setenv("RAG_SEARCH__ASK_MODE", "fulltext")
    asked = FACTS["token"][0]
    for number, copy in enumerate(names_of_one_shard("token-{}.md", COPIES)):
        (folder / copy).write_text(f"# {number}\n\n{asked} {asked} {number}\n", encoding="utf-8")
    indexed = run(home, "index", folder)
    assert indexed.exit_code == 0, indexed.output
    assert current(home) == 2
    summary = (
        "worse within the interval: passage R@5 -0.200 [-0.800, +0.000] on 5 questions, which show changes from 1.00 on"
    )
    assert summary in indexed.stdout
    assert f"; worse: {TOKEN_WORSE}" in indexed.stdout
    rows = run(home, "sql", "--json", "SELECT * FROM evaluation_version_changes WHERE level = 'passage'")
    changes = {(row["question_id"], row["measure"]): row for row in map(json.loads, rows.stdout.splitlines())}
    change = changes["token", "R@5"]
    assert [change[name] for name in ("version_before", "version", "value_before", "value")] == [1, 2, 1.0, 0.0]
    assert [row["version"] for row in recorded_runs(home.lake)] == [2, 1]


def test_a_question_whose_document_is_gone_holds_nothing_back(measured: Home) -> None:
    folder = Path(measured.settings.sources[0])
    for name in list(FACTS)[1:]:
        (folder / f"{name}.md").unlink()
    indexed = run(measured, "index", "--forget", "specs", folder)
    assert indexed.exit_code == 0, indexed.output
    assert current(measured) == 2
    passed, description = check_descriptions(measured)[0]
    assert passed
    assert description.startswith("no change: passage R@5 +0.000 [-0.975, +0.975] on 1 question, which shows changes")
    gone = "not asked, as the document or quote is gone: 4 of 5 questions: password (password.md), backup (backup.md), "
    assert gone in description
    assert description.endswith("customer (customer.md) and 1 more")


class Noise:
    """An embedder whose vectors tell nothing of the texts."""

    name = "noise"

    def __init__(self, measured: Embedder) -> None:
        self.dimension, self.window_tokens = measured.dimension, measured.window_tokens
        self.count_tokens = measured.count_tokens

    def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> "NDArray[np.float32]":
        seeds = [zlib.crc32(f"{kind} {text}".encode()) for text in texts]
        drawn = [np.random.default_rng(seed).normal(size=self.dimension) for seed in seeds]
        unit = [each / np.linalg.norm(each) for each in drawn]
        return np.asarray(unit, np.float32).reshape(len(texts), self.dimension)


def test_a_version_of_an_embedder_of_noise_is_not_published(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, path = Path(home.settings.sources[0]), tmp_path / "questions.jsonl"
    write_facts(folder, path)
    for number, other in enumerate(names_of_one_shard("other-{}.md", 40)):
        (folder / other).write_text(f"The {number}th lamp hangs in corridor {number}.\n", encoding="utf-8")
    monkeypatch.setenv("RAG_EVALUATION__QUESTIONS", str(path))
    monkeypatch.setenv("RAG_SEARCH__ASK_MODE", "vector")
    indexed = run(home, "index", folder)
    assert indexed.exit_code == 0, indexed.output
    with monkeypatch.context() as worse:
        real = embedders.load_embedder
        worse.setattr(embedders, "load_embedder", lambda *arguments: Noise(real(*arguments)))
        refused = run(home, "index")
    assert refused.exit_code == 1, refused.output
    assert "nothing is published, readers keep version 1: worse beyond the interval: passage R@5 -" in refused.stderr
    assert "(passage R@5 1.00 before, 0.00 now, " in refused.stderr
    assert current(home) == 1
    hits = knowledge_base(Home(load_settings(home=home.path))).search("How long is a token valid?", "vector", 1).hits
    assert FACTS["token"][1] in hits[0].text


def test_a_version_of_passages_that_are_too_short_is_not_published(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, path, questions = Path(home.settings.sources[0]), tmp_path / "questions.jsonl", []
    subjects = ("vault", "crane", "chapel", "quarry", "lagoon")
    for number, (name, file) in enumerate(zip(subjects, names_of_one_shard("{}.md", 5), strict=True)):
        praise = (
            f"The {name} is old, and people like the {name} for the view that the {name} has over the bay and hills.\n"
        )
        fact = f"On all days but holidays it opens at {number + 5}:40 in the morning and is closed again at nightfall."
        (folder / file).write_text(f"# Notes\n\n{praise * 8}{fact}\n", encoding="utf-8")
        questions.append(Question(name, f"When is the {name} open?", evidence=(Evidence(file, quote=fact),)))
    path.write_text("".join(f"{question_line(each)}\n" for each in questions), encoding="utf-8")
    monkeypatch.setenv("RAG_EVALUATION__QUESTIONS", str(path))
    monkeypatch.setenv("RAG_SEARCH__ASK_MODE", "fulltext")
    indexed = run(home, "index", folder)
    assert indexed.exit_code == 0, indexed.output
    monkeypatch.setenv("RAG_CHUNKING__SIZE_TOKENS", "32")
    refused = run(home, "index", "--accept-settings")
    assert refused.exit_code == 1, refused.output
    assert "nothing is published, readers keep version 1: worse on every question: passage R@5 -" in refused.stderr
    assert "vault (passage R@5 1.00 before, " in refused.stderr
    assert current(home) == 1


def opened(path: Path, **settings: object) -> tuple[Home, Snapshot]:
    chosen = {"ask_mode": "fulltext", "model_patience_seconds": 0.1}
    evaluation = {"questions": path.parent / "questions.jsonl"}
    home = Home(load_settings(**{"home": path, "search": chosen, "evaluation": evaluation, **settings}))
    snapshot = home.snapshots.current()
    assert snapshot is not None
    return home, snapshot


def checked(home: Home, candidate: Snapshot, before: Snapshot, overridden_by: str | None = None) -> GateVerdict | None:
    gate = Gate(home, overridden_by)
    gate.check(candidate, before)
    return gate.verdict


def without_files(snapshot: Snapshot) -> Snapshot:
    """A version whose files are gone."""
    return replace(snapshot, tables={name: dict.fromkeys(each, 99) for name, each in snapshot.tables.items()})


def with_other_columns(home: Home, snapshot: Snapshot) -> Snapshot:
    """A version whose passages have other columns."""
    versions = snapshot.tables[CHUNKS.name]
    for path in home.lake.paths(CHUNKS, versions):
        rows = pq.read_table(path)
        pq.write_table(rows.append_column("further", pa.nulls(rows.num_rows)), path.with_name("00000098.parquet"))
    return replace(snapshot, tables={**snapshot.tables, CHUNKS.name: dict.fromkeys(versions, 98)})


def test_a_version_that_cannot_be_read_any_more_is_compared_by_what_was_kept_with_it(indexed: Path) -> None:
    home, snapshot = opened(indexed)
    for before in (without_files(snapshot), with_other_columns(home, snapshot)):
        verdict = checked(home, snapshot, before)
        assert verdict is not None
        assert "no change: passage R@5 +0.000 [-0.522, +0.522] on 5 questions" in verdict.note
    for path in indexed.glob("lake/*/*/00000098.parquet"):
        path.unlink()


def test_who_publishes_anyway_is_not_stopped_by_what_cannot_be_measured(indexed: Path) -> None:
    home, snapshot = opened(indexed, search={"ask_mode": "graph_global"})
    with pytest.raises(QueryError):
        checked(home, snapshot, snapshot)
    gate = Gate(home, "me")
    gate.keep(gate.check(snapshot, snapshot))
    assert gate.verdict is None
    assert gate.summary.startswith("published anyway by me: not measured: ")
    row = recorded_runs(home.lake)[0]
    assert (row["version"], row["question_count"], row["warnings"]) == (snapshot.number, 0, [gate.summary])
    assert gate_notes(home, row["evaluated_at"]) == [f"accepted questions: {gate.summary}"]


def test_questions_without_evidence_that_is_left_are_named(indexed: Path, tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    gone = Question("lost", "When?", evidence=(Evidence("lost.md"),))
    path.write_text(f"{question_line(gone)}\n", encoding="utf-8")
    home, snapshot = opened(indexed, evaluation={"questions": path})
    verdict = checked(home, snapshot, snapshot)
    assert verdict is not None
    assert str(verdict) == "not asked, as the document or quote is gone: 1 of 1 question: lost (lost.md)"


def test_all_of_a_few_questions_answered_worse_hold_a_version_back() -> None:
    """The interval of so few goes beyond nought."""
    questions = [Question(name, "?") for name in "abcd"]
    before = gate_module._Measurement({"passage R@5": dict.fromkeys("abcd", 1.0)})
    after = gate_module._Measurement({"passage R@5": dict.fromkeys("abcd", 0.0)})
    verdict = gate_module._verdict(questions, before, after)
    assert verdict.held
    assert verdict.note.startswith("worse on every question: passage R@5 -1.000 [-1.000, +0.205] on 4 questions")


@pytest.mark.parametrize(
    ("limit", "words"), [({}, "127.0.0.1"), ({"budget_usd": 0}, "the budget for")], ids=["outage", "budget"]
)
def test_answers_that_the_model_did_not_write_hold_nothing_back(
    indexed: Path, tmp_path: Path, limit: dict[str, object], words: str
) -> None:
    catalogue = tmp_path / "models.toml"
    catalogue.write_text(CATALOGUE, encoding="utf-8")
    model = {"provider": "openai", "model": "m", "base_url": "http://127.0.0.1:9/v1", "catalogue": catalogue}
    home, snapshot = opened(indexed, language_model={**model, "attempts": 1, **limit})
    verdict = checked(home, snapshot, without_files(snapshot))
    assert verdict is not None
    assert verdict.scores["answer correct"] == {}
    assert len(verdict.scores["passage R@5"]) == len(FACTS)
    assert "not compared: 5 answers: " in verdict.note
    assert words in verdict.note
