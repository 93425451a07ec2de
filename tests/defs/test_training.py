"""Training on a knowledge base: by command and by Dagster, what comes into force, and what a changed one does to it."""

import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import dagster as dg
import lightgbm
import numpy as np
import pytest
from adopting import adopt
from click.testing import CliRunner, Result
from filelock import FileLock
from numpy.typing import NDArray

from rag_assets.cli import main
from rag_assets.contracts.errors import ModelError, StoreError
from rag_assets.defs.code_location import build_definitions
from rag_assets.defs.questions import TRAINING_JOB
from rag_assets.defs.resources import HomeResource
from rag_assets.evaluation.clicks import Click, add_click
from rag_assets.evaluation.questions import Evidence, Question, question_line, read_questions
from rag_assets.evaluation.statistics import Interval
from rag_assets.pipeline import learning, opening
from rag_assets.pipeline.drift import without_worse
from rag_assets.pipeline.gate import Gate
from rag_assets.pipeline.home import Home
from rag_assets.pipeline.learning import train_candidate, training_folder
from rag_assets.pipeline.measuring import clicks_file
from rag_assets.pipeline.opening import knowledge_base
from rag_assets.pipeline.settings import load_settings
from rag_assets.query import KnowledgeBase
from rag_assets.query.search.ranking_weights import (
    MAP_ASSET,
    SHIPPED,
    SIGNALS,
    WEIGHTS_ASSET,
    BoostedWeights,
    QueryMap,
    Scorer,
    Weights,
    map_files,
    read_ranking,
    weights_files,
)
from rag_assets.query.search.trained_rewriting import FACTS_FILE, QueryForm, TrainedModel
from rag_assets.store.snapshots import Snapshot
from rag_assets.training.adoption import (
    REWRITER_MODEL,
    Basis,
    Proof,
    basis_of,
    candidates,
    store_candidate,
)

WORDS = ("token", "backup", "invoice", "holiday", "printer", "parking", "visitor", "password", "laptop", "canteen")
BETTER = Proof("passage R@5", Interval(0, 0, 0, 20), Interval(1, 1, 1, 20), Interval(1, 1, 1, 20), {}, True, "better")
MISLEADING = {granularity: Weights(words=0, meaning=0, names=1) for granularity in SHIPPED}


def run(home: Home, *arguments: object) -> Result:
    result = CliRunner().invoke(main, ["--home", str(home.path), *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory, models_folder: Path) -> Path:
    """A folder with a small knowledge base and a question on each of its documents, whose names mislead."""
    folder, questions = tmp_path_factory.mktemp("training"), []
    (folder / "specs").mkdir()
    (folder / "home").mkdir()
    (folder / "home" / "models").symlink_to(models_folder)
    for number, word in enumerate(WORDS):
        for kind in ("rule", "exception"):
            document, other = f"{word} {kind}.md", WORDS[(number + 1) % len(WORDS)]
            text = f"The {word} {kind} is number {number}."
            (folder / "specs" / f"{other} notes {kind}.md").write_text(f"# Notes\n\n{text}\n", encoding="utf-8")
            evidence = (Evidence(f"{other} notes {kind}.md", quote=text),)
            questions.append(Question(document, f"What is the {word} {kind}?", "en", kind, True, evidence))
    lines = "".join(f"{question_line(each)}\n" for each in questions)
    (folder / "questions.jsonl").write_text(lines, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAG_EVALUATION__QUESTIONS", str(folder / "questions.jsonl"))
        patch.setenv("RAG_SEARCH__ASK_MODE", "fulltext")
        result = CliRunner().invoke(main, ["--home", str(folder / "home"), "index", str(folder / "specs")])
    assert result.exit_code == 0, result.output
    return folder


@pytest.fixture
def asked(indexed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A copy of it, whose sources and questions are those of the first."""
    monkeypatch.setenv("RAG_EVALUATION__QUESTIONS", str(indexed / "questions.jsonl"))
    monkeypatch.setenv("RAG_SEARCH__ASK_MODE", "fulltext")
    shutil.copytree(indexed / "home", tmp_path / "home", symlinks=True)
    return Home(load_settings(home=tmp_path / "home", sources=(str(indexed / "specs"),)))


def signals_of(home: Home) -> tuple[str, ...]:
    """The signals that a search weighs now."""
    result = knowledge_base(home).search("the token rule", "weighted", 3)
    (fused,) = (step for step in result.trace.steps if step.operation == "fuse")
    return fused.texts


def test_what_is_learned_is_proven_adopted_undone_and_given_up_where_it_no_longer_helps(
    asked: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped = ("words", "meaning", "summary", "coverage")
    assert signals_of(asked) == shipped
    said = run(asked, "train", "ranking").output
    assert "learned from 20 questions" in said
    assert "not in force: passage: not better beyond the interval" in " ".join(said.split())
    assert "as shipped" in run(asked, "train", "status").output
    with dg.instance_for_test() as instance:
        job = build_definitions(HomeResource(asked.settings)).resolve_job_def(TRAINING_JOB.name)
        done = job.execute_in_process(instance=instance)
        trees = {"ops": {WEIGHTS_ASSET: {"config": {"model": "trees"}}}}
        with monkeypatch.context() as without:
            without.setitem(sys.modules, "lightgbm", None)
            with pytest.raises(ModelError, match="without the extra `trees`"):
                job.execute_in_process(trees, instance=instance)
        events = {each.asset_key.path[-1]: each for each in done.get_asset_materialization_events() if each.asset_key}
    metadata = events[WEIGHTS_ASSET].step_materialization_data.materialization.metadata
    assert events.keys() == {WEIGHTS_ASSET, "query_map"}
    assert len(str(metadata["proof"].value).splitlines()) == 5  # a row for each of three levels

    place = store_candidate(asked.path, WEIGHTS_ASSET, weights_files(MISLEADING), BETTER)
    adopted = adopt(asked.snapshots, WEIGHTS_ASSET, place)
    assert signals_of(asked) == ("names",)
    checked, note = gated(asked, adopted)
    assert checked.learned == {}
    assert "ranking_weights: for passages worse than those shipped, passage R@5 -" in note
    assert "on 20 questions, 0 of which it was not learned from: those shipped are in force again" in note
    said = run(asked, "train", "undo", "ranking").output
    assert f"version {adopted.number + 1}: the shipped one is in force" in said
    assert signals_of(asked) == shipped


def gated(home: Home, version: Snapshot) -> tuple[Snapshot, str]:
    """A version as the gate has it published, and what it says of it."""
    gate = Gate(home)
    checked = gate.check(version, None)
    assert gate.verdict is not None
    return checked, str(gate.verdict)


def adopted_weights(home: Home, weights: Mapping[str, Scorer], basis: Basis) -> tuple[Snapshot, str]:
    """A version with these weights in force, and their place."""
    place = store_candidate(home.path, WEIGHTS_ASSET, weights_files(weights), BETTER, basis)
    return adopt(home.snapshots, WEIGHTS_ASSET, place), place


def test_questions_on_one_document_tell_nothing_of_what_was_learned(asked: Home) -> None:
    passages, *_ = SHIPPED
    version, _ = adopted_weights(asked, {**SHIPPED, passages: MISLEADING[passages]}, Basis({"of old"}, {"gone/a.md"}))
    assert asked.settings.evaluation.questions is not None
    questions = read_questions(asked.settings.evaluation.questions)
    checked, _ = without_worse(asked, version, questions)
    assert WEIGHTS_ASSET not in checked.learned, "on twenty documents they are worse"
    for question in questions[:4]:
        checked, note = without_worse(asked, version, [replace(question, id=f"q{number}") for number in range(20)])
        assert checked == version
        assert "too few questions to tell: 20 that it was not learned from, on 1 document; 20 on 6 are needed" in note


def test_what_got_worse_goes_and_what_was_adopted_before_comes_back(asked: Home) -> None:
    passages, pages, documents = SHIPPED
    good = {**SHIPPED, passages: replace(SHIPPED[passages], words=1.2), pages: replace(SHIPPED[pages], words=1.2)}
    first, older = adopted_weights(asked, good, Basis({"of old"}, {"gone/a.md"}))
    checked, note = gated(asked, first)
    assert checked == first
    assert "ranking_weights: for passages passage R@5 +0.000" in note
    assert "on 20 questions that it was not learned from, for pages page R@5 +0.000" in note

    worse = {**good, passages: MISLEADING[passages]}
    learned_from = Basis({f"{word} {kind}.md" for word in WORDS for kind in ("rule", "exception")})
    version, newer = adopted_weights(asked, worse, learned_from)
    checked, note = gated(asked, version)
    assert checked.learned == {WEIGHTS_ASSET: (older,)}, "the older one is what is left of the newer one"
    search = asked.settings.search.model_copy(update={"ask_mode": "weighted"})
    gate = Gate(Home(asked.settings.model_copy(update={"search": search})))
    gate.check(version, version)
    assert str(gate.verdict).startswith("no change"), "both are measured without what is dropped"
    assert (
        f"20 questions, 0 of which it was not learned from: those of {older} are in force again, for pages no" in note
    )
    too_few = (
        "for pages no worse on 20 questions, 0 of which it was not learned from, on 0 documents: too few to tell more"
    )
    assert too_few in note

    better = {**worse, documents: replace(SHIPPED[documents], words=1.2)}
    version, newer = adopted_weights(asked, better, Basis({"of old"}, {"gone/b.md"}))
    checked, _ = gated(asked, version)
    *before, mixed = checked.learned[WEIGHTS_ASSET]
    assert before == [older]
    weights = read_ranking(asked.path / mixed, None, "").weights
    assert weights == {**better, passages: good[passages]}, "documents stay, passages go back"
    assert basis_of(asked.path, mixed) == Basis({"of old"}, {"gone/a.md", "gone/b.md"}, version.number, newer)
    assert gated(asked, checked)[0] == checked


def test_what_is_left_of_several_is_an_older_one_where_that_holds_the_same(asked: Home) -> None:
    passages, pages, _ = SHIPPED
    first = {**SHIPPED, passages: replace(SHIPPED[passages], words=1.2)}
    second = {**first, pages: MISLEADING[pages]}
    _, older = adopted_weights(asked, first, Basis())
    adopted_weights(asked, second, Basis())
    version, _ = adopted_weights(asked, {**second, passages: MISLEADING[passages]}, Basis())
    checked, _ = gated(asked, version)
    assert checked.learned == {WEIGHTS_ASSET: (older,)}, "nothing stands twice, and what was worse is not gone back to"


def test_a_query_map_that_got_worse_goes_back_to_the_one_before(asked: Home) -> None:
    dimension = asked.embedder.dimension
    random = np.random.default_rng(0)
    harmless = QueryMap(np.zeros((dimension, 1), np.float32), np.zeros((1, dimension), np.float32))
    noise = QueryMap(*(random.normal(size=size).astype(np.float32) for size in ((dimension, 32), (32, dimension))))
    places = [
        store_candidate(asked.path, MAP_ASSET, map_files(each, asked.embedder.name), BETTER, Basis())
        for each in (harmless, noise)
    ]
    for place in places:
        version = adopt(asked.snapshots, MAP_ASSET, place)
    by_meaning = {each: Weights(words=0.1, meaning=1) for each in SHIPPED}
    version, _ = adopted_weights(asked, by_meaning, Basis())
    checked, note = gated(asked, version)
    assert checked.learned[MAP_ASSET] == (places[0],)
    assert "query_map is worse than doing without: passage R@5 -" in note
    assert f"on 20 questions that it was not learned from; {places[0]} is in force again" in note


def test_a_rewriter_that_finds_less_than_the_one_without_training_goes(
    asked: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = {FACTS_FILE: json.dumps({"forms": [*QueryForm], "most_tokens": 8}).encode()}
    place = store_candidate(asked.path, REWRITER_MODEL, facts, BETTER, Basis())
    version = adopt(asked.snapshots, REWRITER_MODEL, place)
    checked, note = gated(asked, version)
    assert checked == version
    assert "rewriter_model cannot be used here, and so was not looked at: " in note
    assert "the rewriter without training is used instead" in run(asked, "train", "status").output
    monkeypatch.setattr(TrainedModel, "problem", lambda _: "")
    monkeypatch.setattr(TrainedModel, "write", lambda _, question: dict.fromkeys(QueryForm, question))
    checked, note = gated(asked, version)
    assert checked == version
    assert "rewriter_model: page nDCG@10 of mode rewrite " in note
    assert "on 20 questions that it was not learned from" in note
    monkeypatch.setattr(TrainedModel, "write", lambda *_: dict.fromkeys(QueryForm, "nothing of it"))
    checked, note = gated(asked, version)
    assert checked.learned == {}
    assert "rewriter_model is worse than doing without: page nDCG@10 of mode rewrite -" in note
    assert "it is out of force" in note


def test_a_candidate_that_was_kept_is_adopted_by_command_or_by_force(
    asked: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = store_candidate(asked.path, WEIGHTS_ASSET, weights_files(MISLEADING), replace(BETTER, is_better=False))
    command = ["--home", str(asked.path), "train", "adopt", "ranking"]
    refused = CliRunner().invoke(main, command)
    assert refused.exit_code == 1
    assert f"last candidate: {place}, learned 20" in refused.stdout
    assert "is not adopted: it is not proved better" in refused.stderr
    result = CliRunner().invoke(main, [*command, "--force"])
    assert result.exit_code == 0, result.output
    assert "adopted by --force, although it is not proved better" in result.stderr
    assert signals_of(asked) == ("names",)
    assert "adopted by --force on 20" in run(asked, "train", "status").stdout
    run(asked, "train", "undo", "ranking")
    store_candidate(asked.path, WEIGHTS_ASSET, weights_files(MISLEADING), BETTER)
    refused = CliRunner().invoke(main, command)
    assert refused.exit_code == 1
    assert [each for each, _ in candidates(asked.path, WEIGHTS_ASSET)] == [place], "looking stores nothing"
    said = " ".join(refused.stderr.split())
    assert "are others than those that it was proved on: ranking_weights: for passages worse than those shipped" in said
    harmless = {each: replace(weights, words=1.2) for each, weights in SHIPPED.items()}
    place = store_candidate(asked.path, WEIGHTS_ASSET, weights_files(harmless), BETTER)
    assert f"{place} is in force" in run(asked, *command[2:]).stdout
    monkeypatch.delenv("RAG_EVALUATION__QUESTIONS")
    store_candidate(asked.path, WEIGHTS_ASSET, weights_files(MISLEADING), BETTER, Basis(against=place))
    refused = CliRunner().invoke(main, command)
    assert "and there are no questions to look again" in " ".join(refused.stderr.split())


def test_what_is_in_force_and_cannot_be_used_here_is_not_replaced_by_what_was_compared_with_less(asked: Home) -> None:
    weights = {each: Weights(reranker=2.0) for each in SHIPPED}
    for name, files in ((WEIGHTS_ASSET, weights_files(weights, "gone")), (MAP_ASSET, {"map.npz": b"damaged"})):
        adopt(asked.snapshots, name, store_candidate(asked.path, name, files, BETTER))
    problems = {(): "with the reranker gone, the settings name none", ("--query-map",): "what was learned is damaged"}
    for arguments, problem in problems.items():
        failed = CliRunner().invoke(main, ["--home", str(asked.path), "train", "ranking", *arguments])
        assert failed.exit_code == 1
        said = " ".join(failed.stderr.split())
        assert "what is in force cannot be used:" in said
        assert problem in said
    damaged = CliRunner().invoke(main, ["--home", str(asked.path), "verify"])
    assert damaged.exit_code == 0, "its files are those that were stored"
    (asked.path / opening.published_snapshot(asked).learned[MAP_ASSET][-1] / "map.npz").unlink()
    damaged = CliRunner().invoke(main, ["--home", str(asked.path), "verify"])
    assert (damaged.exit_code, "train undo query-map" in damaged.output) == (1, True)
    repaired = CliRunner().invoke(main, ["--home", str(asked.path), "verify", "--repair"])
    assert (repaired.exit_code, "train undo query-map" in repaired.output) == (1, True), "nothing is indexed for it"
    run(asked, "train", "undo", "ranking")
    run(asked, "train", "ranking")


def test_a_query_map_is_proved_against_the_one_in_force(asked: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """The map in force leads astray, so that what is learned is better than it, though no better than none."""
    dimension, random = asked.embedder.dimension, np.random.default_rng(0)
    noise = QueryMap(*(random.normal(size=size).astype(np.float32) for size in ((dimension, 32), (32, dimension))))
    place = store_candidate(asked.path, MAP_ASSET, map_files(noise, asked.embedder.name), BETTER)
    adopt(asked.snapshots, MAP_ASSET, place)
    adopted_weights(asked, {each: Weights(words=0.1, meaning=1) for each in SHIPPED}, Basis())
    harmless = QueryMap(np.zeros((dimension, 1), np.float32), np.zeros((1, dimension), np.float32))
    monkeypatch.setattr("rag_assets.training.query_map.learned_map", lambda _: (harmless, 1.0))
    with asked.lock():
        said = " ".join(run(asked, "train", "ranking", "--query-map").output.split())
    assert "not in force (another run is writing to" in said
    said = " ".join(run(asked, "train", "ranking", "--query-map").output.split())
    assert "query_map: in force in version" in said
    assert "is in force already" in run(asked, "train", "ranking", "--query-map").output
    assert "proved beside other" not in run(asked, "train", "status").output
    assert basis_of(asked.path, candidates(asked.path, MAP_ASSET)[0][0]) is not None
    assert f'"against": "{place}"' in (asked.path / candidates(asked.path, MAP_ASSET)[0][0] / "proof.json").read_text()
    run(asked, "train", "undo", "ranking")
    assert "it was proved beside other ranking_weights than are in force now" in run(asked, "train", "status").output


def test_a_map_that_is_worse_beside_other_weights_goes_with_them_and_comes_back(asked: Home) -> None:
    """Beside the shipped weights words find everything; beside weights of meaning alone the map leads astray."""
    dimension, random = asked.embedder.dimension, np.random.default_rng(0)
    noise = QueryMap(*(random.normal(size=size).astype(np.float32) for size in ((dimension, 32), (32, dimension))))
    by_words = {each: Weights(words=1) for each in SHIPPED}
    version, words = adopted_weights(asked, by_words, Basis())
    basis = Basis(version=version.number, beside={WEIGHTS_ASSET: words})
    place = store_candidate(asked.path, MAP_ASSET, map_files(noise, asked.embedder.name), BETTER, basis)
    run(asked, "train", "adopt", "query-map")
    by_meaning = {each: Weights(words=0.1, meaning=1) for each in SHIPPED}
    meant = Basis(version=version.number, against=words)
    meaning = store_candidate(asked.path, WEIGHTS_ASSET, weights_files(by_meaning), BETTER, meant)

    said = " ".join(run(asked, "train", "adopt", "ranking").output.split())
    assert f"{meaning} is in force" in said
    assert "beside these weights query_map is worse than doing without: passage R@5 -" in said
    assert "it is out of force" in said
    assert opening.published_snapshot(asked).learned == {WEIGHTS_ASSET: [words, meaning]}
    run(asked, "train", "undo", "ranking")
    run(asked, "train", "adopt", "query-map")
    both = opening.published_snapshot(asked)
    assert both.learned == {WEIGHTS_ASSET: [words], MAP_ASSET: [place]}, "it was proved beside these"

    adopt(asked.snapshots, WEIGHTS_ASSET, meaning)
    adopt(asked.snapshots, WEIGHTS_ASSET, words)
    said = " ".join(run(asked, "train", "undo", "ranking").output.split())
    assert f"{meaning} is in force again beside these weights query_map is worse than doing without" in said
    assert opening.published_snapshot(asked).learned == {WEIGHTS_ASSET: [meaning]}


def test_a_map_that_cannot_be_looked_at_holds_no_weights_back(asked: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    dimension = asked.embedder.dimension
    harmless = QueryMap(np.zeros((dimension, 1), np.float32), np.zeros((1, dimension), np.float32))
    place = store_candidate(asked.path, MAP_ASSET, map_files(harmless, asked.embedder.name), BETTER, Basis())
    adopt(asked.snapshots, MAP_ASSET, place)
    _, weights = adopted_weights(asked, {each: Weights(words=1) for each in SHIPPED}, Basis())
    questions = asked.settings.evaluation.questions
    monkeypatch.delenv("RAG_EVALUATION__QUESTIONS")
    said = " ".join(run(asked, "train", "undo", "ranking").output.split())
    assert "the shipped one is in force beside these weights query_map: cannot be told: no question set" in said
    assert opening.published_snapshot(asked).learned == {MAP_ASSET: [place]}
    adopt(asked.snapshots, WEIGHTS_ASSET, weights)
    said = " ".join(run(asked, "train", "undo", "ranking", questions).output.split())
    assert "beside these weights query_map: passage R@5 +0.000" in said
    assert said.count("; it stays in force") == 1
    assert opening.published_snapshot(asked).learned == {MAP_ASSET: [place]}


def test_few_questions_bring_nothing_into_force_that_was_proved_on_other_rows(asked: Home, tmp_path: Path) -> None:
    harmless = {each: replace(weights, words=1.2) for each, weights in SHIPPED.items()}
    place = store_candidate(asked.path, WEIGHTS_ASSET, weights_files(harmless), BETTER)
    assert asked.settings.evaluation.questions is not None
    few = tmp_path / "few.jsonl"
    few.write_text(
        "".join(asked.settings.evaluation.questions.read_text("utf-8").splitlines(keepends=True)[:3]), "utf-8"
    )
    refused = CliRunner().invoke(main, ["--home", str(asked.path), "train", "adopt", "ranking", str(few)])
    assert refused.exit_code == 1
    said = " ".join(refused.stderr.split())
    assert f"{place} is not adopted: the rows of version 1 are others than those that it was proved on" in said
    assert "too few questions to tell: 0 that it was not learned from" in said


def test_the_status_of_a_candidate_is_the_proof_that_adopting_it_goes_by(asked: Home) -> None:
    dimension = asked.embedder.dimension
    harmless = QueryMap(np.zeros((dimension, 1), np.float32), np.zeros((1, dimension), np.float32))
    files = map_files(harmless, asked.embedder.name)
    version, weights = adopted_weights(asked, {each: Weights(words=1) for each in SHIPPED}, Basis())
    for place, reason in ((weights, "better beside these"), ("", "better beside the shipped ones")):
        basis = Basis(version=version.number, beside={WEIGHTS_ASSET: place})
        store_candidate(asked.path, MAP_ASSET, files, replace(BETTER, reason=reason), basis)
    assert "better beside these" in run(asked, "train", "status").output
    assert "better beside these" in run(asked, "train", "adopt", "query-map").output


def test_what_was_learned_is_kept_and_told_where_the_look_fails(asked: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    harmless = {each: replace(weights, words=1.2) for each, weights in SHIPPED.items()}
    trained = learning.Trained(WEIGHTS_ASSET, None, {}, "", None, {}, 20)

    def fail(_base: KnowledgeBase, _query: str) -> None:
        raise ModelError("the embedder is gone")

    monkeypatch.setattr(KnowledgeBase, "ranking_signals", fail)
    assert asked.settings.evaluation.questions is not None
    questions = read_questions(asked.settings.evaluation.questions)
    kept = learning._keep(asked, trained, weights_files(harmless), BETTER, Basis(), questions, adopts=True)
    assert kept.reason == f"kept in {kept.place}, not in force (the embedder is gone): better"


def test_one_rewriter_is_trained_at_a_time(asked: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = training_folder(asked)
    folder.parent.mkdir(exist_ok=True)
    with FileLock(folder.with_name(f"{folder.name}.lock")):
        with pytest.raises(StoreError, match="a rewriter is being trained on .* already"):
            train_candidate(asked, [])
        monkeypatch.setenv("RANK", "1")
        with pytest.raises(Exception) as raised:  # of processes that train together, only the first holds the lock
            train_candidate(asked, [])
    assert "already" not in str(raised.value)


class ScriptedReranker:
    """Finds a passage better the more words of the query it holds."""

    name = "scripted"

    def rerank(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        words = query.lower().strip("?").split()
        return np.array([sum(word in text.lower() for word in words) for text in texts], np.float32)


def test_trees_are_learned_kept_adopted_and_left_out_without_their_library(
    asked: Home, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    shipped = signals_of(asked)
    path = clicks_file(asked)
    assert path is not None
    hits = [each.chunk_id for each in knowledge_base(asked).search("parking number", "weighted", 3).hits]
    add_click(path, Click("parking number", hits[2], tuple(hits[:2]), "2026-11-01T00:00:00+00:00"))
    said = " ".join(run(asked, "train", "ranking", "--model", "trees", "--clicks").output.split())
    assert "learned from 21 questions" in said
    assert "not in force: passage: not better beyond the interval" in said

    values = np.random.default_rng(0).random((300, len(SIGNALS)))
    rows = lightgbm.Dataset(values, values[:, SIGNALS.index("names")], feature_name=[*SIGNALS])
    grown = lightgbm.train({"objective": "regression", "verbosity": -1, "num_threads": 1}, rows, 5).model_to_string()
    boosted = {each: BoostedWeights(weights, grown, 1.0) for each, weights in SHIPPED.items()}
    place = store_candidate(asked.path, WEIGHTS_ASSET, weights_files(boosted), BETTER)
    adopted = adopt(asked.snapshots, WEIGHTS_ASSET, place)
    assert "names" in signals_of(asked)
    assert Gate(asked).check(adopted, None).learned == {WEIGHTS_ASSET: (place,)}
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "lightgbm", None)
        caplog.clear()
        assert signals_of(asked) == shipped
        assert [each.message for each in caplog.records if "rag-assets[trees]" in each.message]
        said = " ".join(run(asked, "train", "status").stdout.split())
        assert f"ranking: {place} trees can be neither learned nor read without the extra `trees`" in said
        assert "the shipped weights are used instead" in said
        failed = CliRunner().invoke(main, ["--home", str(asked.path), "train", "ranking", "--model", "trees"])
        assert (failed.exit_code, "rag-assets[trees]" in failed.output) == (1, True)
    run(asked, "train", "undo", "ranking")
    assert signals_of(asked) == shipped


def test_the_reranker_is_distilled_and_weights_that_need_it_are_left_out_without_it(
    asked: Home, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    command = ["--home", str(asked.path), "train", "ranking", "--distill"]
    for wrong in (["--model", "trees"], ["--query-map"]):
        assert CliRunner().invoke(main, [*command, *wrong]).exit_code == 2
    failed = CliRunner().invoke(main, command)
    assert (failed.exit_code, "reranking.model" in failed.output) == (1, True)
    place = store_candidate(
        asked.path, WEIGHTS_ASSET, weights_files({each: Weights(reranker=2.0) for each in SHIPPED}, "scripted"), BETTER
    )
    adopt(asked.snapshots, WEIGHTS_ASSET, place)
    assert "reranker" not in signals_of(asked)
    assert "weights were learned with the reranker scripted, the settings name none" in caplog.text
    monkeypatch.setattr(opening, "reranker", lambda _: ScriptedReranker())
    monkeypatch.setenv("RAG_RERANKING__MODEL", "scripted")
    assert "reranker" in signals_of(asked)
    said = " ".join(run(asked, "train", "ranking", "--distill").output.split())
    assert "learned from 20 questions" in said
    [(kept, _)] = [each for each in candidates(asked.path, WEIGHTS_ASSET) if each[0] != place]
    assert "reranker" not in read_ranking(asked.path / kept, None, "").weights["chunk"].signals
