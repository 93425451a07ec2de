"""The trained rewriter on a knowledge base: the Dagster job trains, proves and adopts it, and one command goes back."""

import importlib.util
import random
from pathlib import Path

import dagster as dg
import pytest
from click.testing import CliRunner
from small_models import write_small_model

from rag_assets.cli import main
from rag_assets.defs.code_location import build_definitions
from rag_assets.defs.resources import HomeResource
from rag_assets.defs.rewriter import REWRITER_JOB
from rag_assets.evaluation.questions import Evidence, Question, question_line
from rag_assets.pipeline.home import Home
from rag_assets.pipeline.opening import knowledge_base, published_snapshot
from rag_assets.pipeline.settings import load_settings
from rag_assets.training.adoption import REWRITER_MODEL

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
    "WARM_UP_EPOCHS": "40", "STEPS": "60", "SHORTEST_TOKENS": "2", "LONGEST_TOKENS": "5", "VALIDATION_STEPS": "15",
    "FORMS": '["keywords"]', "LEVEL": "document", "REWARD": "MRR@10", "THREADS": "1", "DEVICE": "cpu",
}  # fmt: skip


@pytest.fixture
def asked(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """Official notes, and drafts that repeat the words of the question more often: a rewrite must say `official`."""
    folder, path = Path(home.settings.sources[0]), tmp_path / "questions.jsonl"
    pairs = [(thing, kind) for thing in THINGS for kind in KINDS]
    random.Random(0).shuffle(pairs)
    questions = []
    for number, (thing, kind) in enumerate(pairs):
        text = f"Official: the {thing} {kind} is {number}."
        (folder / f"{number}a.md").write_text(f"{text}\n", encoding="utf-8")
        draft = f"What is the {thing} {kind}? The {thing} {kind}, the {thing} {kind}."
        (folder / f"{number}b.md").write_text(f"{draft}\n", encoding="utf-8")
        evidence = (Evidence(f"{number}a.md", quote=text),)
        questions.append(Question(str(number), f"What is the {thing} {kind}?", "en", "notes", True, evidence))
    path.write_text("".join(f"{question_line(each)}\n" for each in questions), encoding="utf-8")
    texts = [*(each.text for each in questions), *THINGS, *KINDS, "official", "keywords:"]
    write_small_model(tmp_path / "model", texts)
    monkeypatch.setenv("RAG_EVALUATION__QUESTIONS", str(path))
    monkeypatch.setenv("RAG_REWRITER_TRAINING__MODEL", str(tmp_path / "model"))
    for name, value in TRAINING.items():
        monkeypatch.setenv(f"RAG_REWRITER_TRAINING__{name}", value)
    result = CliRunner().invoke(main, ["--home", str(home.path), "index", str(folder)])
    assert result.exit_code == 0, result.output
    return Home(load_settings(home=home.path, sources=home.settings.sources))


def keywords(home: Home) -> str:
    """What the rewriter in force makes of a question."""
    result = knowledge_base(home).search("What is the token rule?", "rewrite", 3)
    (rewritten,) = (step for step in result.trace.steps if step.operation == "rewrite")
    return " ".join(rewritten.texts).casefold()


def test_the_job_adopts_a_rewriter_that_proves_better_and_undo_goes_back(asked: Home) -> None:
    before = keywords(asked)
    with dg.instance_for_test() as instance:
        job = build_definitions(HomeResource(asked.settings)).resolve_job_def(REWRITER_JOB.name)
        done = job.execute_in_process(instance=instance)
        (event,) = done.get_asset_materialization_events()
        observed = instance.get_event_records(dg.EventRecordsFilter(dg.DagsterEventType.ASSET_OBSERVATION))
    metadata = event.step_materialization_data.materialization.metadata
    assert metadata["adopted"].value is True, metadata["reason"].value
    assert str(metadata["curve"].value).startswith("![curve](data:image/svg+xml;base64,")
    assert observed
    after = keywords(asked)
    assert "official" not in before
    assert "official" in after
    result = CliRunner().invoke(main, ["--home", str(asked.path), "train", "undo", "rewriter"])
    assert result.exit_code == 0, result.output
    assert keywords(asked) == before
    assert not published_snapshot(asked).learned.get(REWRITER_MODEL)
