"""The trained rewriter on a knowledge base: a job trains and proves it; adopted, it rewrites; undo goes back."""

import importlib.util
import random
from pathlib import Path

import dagster as dg
import pytest
from adopting import adopt
from click.testing import CliRunner
from small_models import write_small_model

from rag_assets.cli import main
from rag_assets.defs.code_location import build_definitions
from rag_assets.defs.questions import REWRITER_JOB
from rag_assets.defs.resources import HomeResource
from rag_assets.evaluation.questions import Evidence, Question, question_line
from rag_assets.pipeline.gate import Gate
from rag_assets.pipeline.home import Home
from rag_assets.pipeline.opening import knowledge_base, published_snapshot, trained_model
from rag_assets.pipeline.settings import load_settings
from rag_assets.training.adoption import REWRITER_MODEL, candidates

pytestmark = [
    pytest.mark.skipif(
        importlib.util.find_spec("transformers") is None or importlib.util.find_spec("torch") is None,
        reason="the extra `train` is there in the environment of `make test-extras` only",
    ),
    pytest.mark.filterwarnings("default"),
]

THINGS = ("token", "backup", "invoice", "holiday", "printer", "parking", "visitor", "password", "laptop", "canteen")
KINDS = ("rule", "limit", "owner", "price", "place", "color", "number", "period", "contact")
TRAINING = {
    "BATCH": "8", "SAMPLES": "4", "MOST_TOKENS": "5", "LEARNING_RATE": "0.001", "WARM_UP_LEARNING_RATE": "0.003",
    "WARM_UP_EPOCHS": "2", "STEPS": "4", "SHORTEST_TOKENS": "2", "LONGEST_TOKENS": "5", "VALIDATION_STEPS": "2",
    "FORMS": '["keywords"]', "LEVEL": "document", "REWARD": "MRR@10", "THREADS": "1", "DEVICE": "cpu",
}  # fmt: skip


@pytest.fixture
def asked(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """Notes with a question on each, enough of them to train on some and to prove it on others."""
    folder, path = Path(home.settings.sources[0]), tmp_path / "questions.jsonl"
    pairs = [(thing, kind) for thing in THINGS for kind in KINDS]
    random.Random(0).shuffle(pairs)
    questions = []
    for number, (thing, kind) in enumerate(pairs):
        text = f"The {thing} {kind} is {number}."
        (folder / f"{number}.md").write_text(f"{text}\n", encoding="utf-8")
        evidence = (Evidence(f"{number}.md", quote=text),)
        questions.append(Question(str(number), f"What is the {thing} {kind}?", "en", "notes", True, evidence))
    path.write_text("".join(f"{question_line(each)}\n" for each in questions), encoding="utf-8")
    texts = [*(each.text for each in questions), *THINGS, *KINDS, "keywords:"]
    write_small_model(tmp_path / "model", texts)
    monkeypatch.setenv("RAG_EVALUATION__QUESTIONS", str(path))
    monkeypatch.setenv("RAG_REWRITER_TRAINING__MODEL", str(tmp_path / "model"))
    for name, value in TRAINING.items():
        monkeypatch.setenv(f"RAG_REWRITER_TRAINING__{name}", value)
    result = CliRunner().invoke(main, ["--home", str(home.path), "index", str(folder)])
    assert result.exit_code == 0, result.output
    return Home(load_settings(home=home.path, sources=home.settings.sources))


def test_the_job_trains_and_proves_a_rewriter_that_can_be_adopted_and_undone(asked: Home) -> None:
    with dg.instance_for_test() as instance:
        job = build_definitions(HomeResource(asked.settings)).resolve_job_def(REWRITER_JOB.name)
        done = job.execute_in_process(instance=instance)
        (event,) = done.get_asset_materialization_events()
        assert instance.fetch_observations(dg.AssetKey(REWRITER_MODEL), limit=10).records
    metadata = event.step_materialization_data.materialization.metadata
    [(place, _)] = candidates(asked.path, REWRITER_MODEL)
    verdict = str(metadata["verdict"].value)
    assert verdict.startswith(f"kept in {place}, not in force: "), "four steps teach nothing"
    assert "not better beyond the interval" in verdict
    assert "- steps: 4" in str(metadata["learned"].value)
    assert trained_model(asked, published_snapshot(asked)) is None
    before = rewrites(asked)
    adopted = adopt(asked.snapshots, REWRITER_MODEL, place)
    assert trained_model(asked, published_snapshot(asked)) is not None
    assert rewrites(asked) != before
    gate = Gate(asked)
    gate.check(adopted, None)
    assert "document MRR@10 of mode rewrite" in str(gate.verdict)
    assert "on 27 questions that it was not learned from" in str(gate.verdict), "three of ten parts were held out"
    result = CliRunner().invoke(main, ["--home", str(asked.path), "train", "undo", "rewriter"])
    assert result.exit_code == 0, result.output
    assert trained_model(asked, published_snapshot(asked)) is None
    assert rewrites(asked) == before


def rewrites(home: Home) -> list[tuple[str, ...]]:
    """What is searched for questions, as the trace tells."""
    base = knowledge_base(home)
    traces = (base.search(f"What is the {thing} rule?", "rewrite", 3).trace for thing in THINGS)
    return [step.texts for trace in traces for step in trace.steps if step.operation == "rewrite"]
