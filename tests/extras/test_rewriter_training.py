"""Training a rewriter with torch, on models made small; runs where it is installed (`make test-extras`)."""

import importlib.util
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from small_models import NOUNS, gain, noun_of, toy, toy_options

from rag_assets.contracts.errors import ModelError, StoreError
from rag_assets.models.text_to_text import TextToText, training_library
from rag_assets.query.search.rewriting_rules import RuleRewriter
from rag_assets.query.search.trained_rewriting import QueryForm, TrainedModel, TrainedRewriter, prompt_for
from rag_assets.training.rewriter import read_curves, train_rewriter

pytestmark = [
    pytest.mark.skipif(
        importlib.util.find_spec("transformers") is None or importlib.util.find_spec("torch") is None,
        reason="the extra `train` is there in the environment of `make test-extras` only",
    ),
    # What torch and transformers warn of is theirs.
    pytest.mark.filterwarnings("default"),
]


SCRIPT = """
import json, os, sys
from dataclasses import replace
from pathlib import Path
from small_models import gain, toy, toy_options
from rag_assets.training.rewriter import train_rewriter
at, folder = Path(sys.argv[1]), Path(sys.argv[2])
options = replace(toy_options(at, steps=int(sys.argv[3])), **json.loads(sys.argv[4]))
trained = train_rewriter(toy(at, makes_model=False)[0], gain, options, folder)
said = {"is_main": trained.is_main_process, "warmed_up": trained.warmed_up, "gain": trained.gain}
folder.with_suffix(f".{os.environ.get('RANK', '0')}.json").write_text(json.dumps(said))
"""


def elsewhere(tmp_path: Path, folder: Path, steps: int, processes: int = 0, **options: str) -> subprocess.Popen[bytes]:
    """Train the toy model of `tmp_path` in a process of its own, or in several; accelerate has one state a process."""
    (script := tmp_path / "train.py").write_text(SCRIPT)
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)] if processes else []
    path = os.pathsep.join([str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, *launch, str(script), str(tmp_path), str(folder), str(steps), json.dumps(options)]
    environment = {**os.environ, "PYTHONPATH": path, **({"ACCELERATE_USE_CPU": "true"} if processes else {})}
    return subprocess.Popen(command, env=environment)


def ended(process: subprocess.Popen[bytes], folder: Path) -> list[dict[str, Any]]:
    """What each process that trained wrote at its end."""
    assert process.wait(timeout=600) == 0
    return [json.loads(each.read_text()) for each in folder.parent.glob(f"{folder.name}.*.json")]


@pytest.mark.parametrize("is_causal", [False, True])
def test_probabilities_do_not_depend_on_the_batch(tmp_path: Path, is_causal: bool) -> None:
    """And those of all first tokens sum to one."""
    toy(tmp_path, is_causal=is_causal)
    model, torch = TextToText(str(tmp_path / "model")), training_library("torch")
    prompts = [prompt_for(QueryForm.KEYWORDS, text, is_causal=is_causal) for text in ("car", "where is the film today")]
    torch.manual_seed(1)
    written = model.write(prompts, 5, samples=2)
    assert len(written.texts) == 4
    doubled = [prompts[0], prompts[0], prompts[1], prompts[1]]
    with torch.no_grad():
        together = model.log_probabilities(doubled, written.targets).tolist()
        alone = [model.log_probabilities([doubled[at]], written.targets[at : at + 1]).item() for at in range(4)]
        vocabulary = torch.arange(len(model.tokenizer)).unsqueeze(1)
        first = model.log_probabilities([prompts[0]] * len(model.tokenizer), vocabulary).exp().sum().item()
    assert together == pytest.approx(alone, abs=1e-4)
    assert first == pytest.approx(1, abs=1e-4)


def test_reinforcement_adds_the_word_that_no_label_teaches(tmp_path: Path) -> None:
    """Above the policy that supervision alone makes; then served, with the frozen rewriter for the other form."""
    data, held_out = toy(tmp_path)
    trained = train_rewriter(data, gain, toy_options(tmp_path, steps=125), tmp_path / "run")
    assert trained.warmed_up is not None
    assert trained.gain is not None
    assert trained.warmed_up < 0.7
    assert trained.gain > trained.warmed_up + 0.2
    (trained.folder / "rewriter.json").write_text('{"forms": ["keywords"], "most_tokens": 6}')
    rewriter, rules = TrainedRewriter(TrainedModel.load(trained.folder), RuleRewriter()), RuleRewriter()
    served = [rewriter.rewrite(item.question, ()) for item in held_out]
    worth = [gain(item, rewrite.keywords) for item, rewrite in zip(held_out, served, strict=True)]
    assert sum(worth) / len(worth) > trained.warmed_up + 0.1
    assert served[0].sentences == rules.rewrite(held_out[0].question, ()).sentences


def test_over_five_seeds_reinforcement_is_above_supervision_and_chance(tmp_path: Path) -> None:
    """Gains over questions held out: of the reinforced policy, of supervised training of as many steps, of a word at
    random, and of the frozen rewriter, which knows half of the words.
    """
    reached: dict[str, list[float]] = {"reinforced": [], "supervised": [], "random": [], "frozen": []}
    for seed in range(5):
        folder = tmp_path / str(seed)
        data, held_out = toy(folder, seed=seed)
        options, chance = toy_options(folder, steps=125, seed=seed), random.Random(seed)
        reinforced = train_rewriter(data, gain, options, folder / "reinforced").folder
        epochs = options.warm_up_epochs + -(-125 // -(-len(data.labels) // options.batch))
        train_rewriter(data, gain, replace(options, warm_up_epochs=epochs, steps=0), folder / "supervised")
        known = {noun_of(item.question): label for item, label in data.labels}
        texts = {
            "frozen": [known.get(noun_of(each.question), "") for each in held_out],
            "random": [chance.choice(sorted(NOUNS.values())) for _ in held_out],
        }
        for name, place in (("reinforced", reinforced), ("supervised", folder / "supervised/warm")):
            model = TextToText(str(place))
            prompts = [prompt_for(each.form, each.question, is_causal=False) for each in held_out]
            texts[name] = model.likeliest(prompts, options.most_tokens)
        for name, rewrites in texts.items():
            worth = [gain(item, text) for item, text in zip(held_out, rewrites, strict=True)]
            reached[name].append(sum(worth) / len(worth))
    for name in ("supervised", "random", "frozen"):
        more = [ours - theirs for ours, theirs in zip(reached["reinforced"], reached[name], strict=True)]
        assert min(more) > 0, (name, reached)
        assert sum(more) / len(more) > 0.2, (name, reached)


def test_training_that_was_killed_comes_to_the_same_weights(tmp_path: Path) -> None:
    toy(tmp_path)
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    process = elsewhere(tmp_path, killed, 14)
    give_up = time.monotonic() + 300
    while not any(each["stage"] == "reinforce" and each["step"] >= 7 for each in read_curves(killed)):
        assert process.poll() is None
        assert time.monotonic() < give_up
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (killed / "result.json").exists()
    for folder in (killed, whole):
        ended(elsewhere(tmp_path, folder, 14), folder)
    torch = training_library("torch")
    ours, theirs = (torch.load(folder / "checkpoint.pt")["weights"] for folder in (killed, whole))
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    curves = [[{**each, "seconds": 0} for each in read_curves(folder)] for folder in (killed, whole)]
    assert curves[0] == curves[1]
    ours, theirs = (next(each.glob("best-*/model.safetensors")) for each in (killed, whole))
    assert ours.parent.name == theirs.parent.name
    assert ours.read_bytes() == theirs.read_bytes()


def test_weights_that_did_best_after_the_checkpoint_are_not_those_of_it(tmp_path: Path) -> None:
    """Training that stopped after a look without a checkpoint, and goes on to fewer steps, keeps what it reports."""
    data, _ = toy(tmp_path)
    options = replace(toy_options(tmp_path, steps=60), validation_steps=5, checkpoint_steps=20)
    stopped, whole = tmp_path / "stopped", tmp_path / "whole"

    def stop(_done: int, _total: int) -> None:
        best = [each for each in read_curves(stopped) if each["stage"] == "validation"]
        if any(each["step"] > 20 and each["gain"] > max(one["gain"] for one in best[:5]) for each in best):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_rewriter(data, gain, options, stopped, stop)
    shorter = replace(options, steps=21)
    ours, theirs = (train_rewriter(data, gain, shorter, folder) for folder in (stopped, whole))
    assert (ours.best_step, ours.gain) == (theirs.best_step, theirs.gain)
    assert (ours.folder / "model.safetensors").read_bytes() == (theirs.folder / "model.safetensors").read_bytes()
    shutil.rmtree(ours.folder)
    with pytest.raises(StoreError, match="the best weights so far are gone: begin again by --anew"):
        train_rewriter(data, gain, shorter, stopped)
    assert train_rewriter(data, gain, shorter, stopped, anew=True).gain == theirs.gain


def test_damaged_weights_are_named(tmp_path: Path) -> None:
    toy(tmp_path)
    (weights,) = tmp_path.rglob("model.safetensors")
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(ModelError, match="no model that transformers can load"):
        TextToText(str(weights.parent))


def test_training_that_was_stopped_is_removed_only_where_that_is_said(tmp_path: Path) -> None:
    data, _ = toy(tmp_path)
    options, folder = replace(toy_options(tmp_path, steps=2), checkpoint_steps=1), tmp_path / "run"
    train_rewriter(data, gain, options, folder)
    curves, other = read_curves(folder), replace(options, seed=options.seed + 1)
    with pytest.raises(StoreError, match="stopped at reinforce step 2: .* --anew"):
        train_rewriter(data, gain, other, folder)
    assert read_curves(folder) == curves
    with pytest.raises(StoreError, match=r"stopped at \w+ step 2: "):
        train_rewriter(replace(data, objective="MRR@10"), gain, options, folder)
    train_rewriter(data, gain, other, folder, anew=True)
    assert read_curves(folder) != curves


def test_parts_of_a_batch_add_up_to_the_batch(tmp_path: Path) -> None:
    data, _ = toy(tmp_path)
    options = replace(toy_options(tmp_path, steps=2), warm_up_epochs=1)
    runs = {parts: tmp_path / f"run{parts}" for parts in (1, 4)}
    for parts, folder in runs.items():
        train_rewriter(data, gain, replace(options, accumulation=parts), folder)
    first, second = (
        [each["loss"] for each in read_curves(folder) if each["stage"] == "warm-up"] for folder in runs.values()
    )
    assert len(first) > 1
    assert first == pytest.approx(second, rel=1e-3)


@pytest.mark.parametrize(("precision", "device"), [("bf16", "cpu"), ("no", "auto"), ("bf16", "auto"), ("fp16", "auto")])
def test_in_mixed_precision_and_on_a_gpu_it_learns_as_well(tmp_path: Path, precision: str, device: str) -> None:
    if device == "auto" and not training_library("torch").cuda.is_available():
        pytest.skip("there is no GPU")
    toy(tmp_path)
    folder = tmp_path / "run"
    (said,) = ended(elsewhere(tmp_path, folder, 250, precision=precision, device=device), folder)
    assert said["gain"] > said["warmed_up"] + 0.2


def test_another_precision_in_the_same_process_is_refused(tmp_path: Path) -> None:
    data, _ = toy(tmp_path)
    options = toy_options(tmp_path, steps=1)
    train_rewriter(data, gain, options, tmp_path / "run")
    with pytest.raises(ModelError, match="a process of its own"):
        train_rewriter(data, gain, replace(options, precision="bf16"), tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_several_processes_train_as_one(tmp_path: Path) -> None:
    """Each on its part of every batch: the warm-up, where nothing is sampled, comes to the same loss at every step."""
    toy(tmp_path)
    losses = []
    for processes in (1, 2):
        folder = tmp_path / f"run{processes}"
        said = ended(elsewhere(tmp_path, folder, 2, processes), folder)
        assert sorted(each["is_main"] for each in said) == [False, True][-processes:]
        curves = read_curves(folder)
        losses.append([each["loss"] for each in curves if each["stage"] == "warm-up"])
        assert [each["step"] for each in curves if each["stage"] == "reinforce"] == [1, 2]
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)
