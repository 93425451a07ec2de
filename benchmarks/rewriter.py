"""The trained rewriter: whether reinforcement adds to supervised training, and what it does for real questions.

`small` trains a T5 of 0.1 million parameters, made here, five times with other seeds. Questions name things by one
word, documents by another: a rewrite must add the word that retrieval needs. The frozen rewriter knows the words of
half of the things, so that the warm-up can teach no others. Compared on questions not trained on: the question as
asked, a word drawn at random, the frozen rewriter, the warmed-up policy, as many supervised steps as the reinforced
policy had in all, and the reinforced policy.

`hotpotqa` trains SmolLM2-135M-Instruct on questions of HotpotQA over their 994 paragraphs by nDCG@10 of full text, and
measures questions held out before and after, with 95 % bootstrap intervals.

`speed` compares torch with the exported model, both forms of a rewrite at once: milliseconds by the clock and of
processors, and how often both write the same; `--alone` measures the exported model without torch in the process.
Without `--model` it is of the size of T5-small, its weights drawn at random.

`large` trains a model of the size of T5-large, its weights drawn at random, by the defaults of the settings for a few
steps: seconds a step, and memory of the GPU where there is one. Nothing is searched, and nothing can be learned.

Run with `python -m benchmarks.rewriter small --work FOLDER`, `hotpotqa --data FOLDER --model FOLDER --work FOLDER`,
`speed --work FOLDER [--model FOLDER]`, or `large --work FOLDER`.
"""

import argparse
import importlib
import json
import os
import random
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean, quantiles, stdev
from typing import Any

from benchmarks.retrieval import LOADERS, SEED
from rag_assets.evaluation.evidence import Level
from rag_assets.evaluation.questions import read_queries
from rag_assets.evaluation.statistics import Interval, bootstrap_interval, paired_bootstrap
from rag_assets.models.text_to_text import ExportedTextToText, TextToText
from rag_assets.models.text_to_text_export import export
from rag_assets.pipeline.learning import rewriter_options
from rag_assets.pipeline.measuring import open_corpus
from rag_assets.pipeline.opening import knowledge_base, published_snapshot
from rag_assets.pipeline.settings import RewriterTrainingSettings
from rag_assets.query.search.rewriting_rules import RuleRewriter
from rag_assets.query.search.trained_rewriting import QueryForm, prompt_for
from rag_assets.training.rewards import SearchReward, pseudo_labels
from rag_assets.training.rewriter import (
    Item,
    Penalties,
    RewriterData,
    RewriterOptions,
    read_curves,
    train_rewriter,
)

LENGTHS = (16, 32, 64)  # tokens; the last is the longest by default
WORDS = 32_097  # tokens of the models made here, but for marks: as many as T5's
SMALL = {"d_model": 512, "d_ff": 2048, "num_layers": 6, "num_heads": 8}
LARGE = {"d_model": 1024, "d_ff": 4096, "num_layers": 24, "num_heads": 16}


def rewrites(folder: Path, items: Sequence[Item], most_tokens: int) -> list[str]:
    """What a policy writes for items, a few at a time."""
    model = TextToText(str(folder))
    written: list[str] = []
    for start in range(0, len(items), 8):
        share = items[start : start + 8]
        prompts = [prompt_for(each.form, each.question, is_causal=model.is_causal) for each in share]
        written += model.write(prompts, most_tokens).texts
    return written


def small(work: Path, seeds: int, steps: int) -> None:
    """Train a small T5 with several seeds, and print the mean gain over questions held out, with its deviation."""
    made: Any = importlib.import_module("small_models")
    gains: dict[str, list[float]] = {}
    for seed in range(seeds):
        folder = work / f"seed{seed}"
        data, held_out = made.toy(folder, seed=seed)
        options = made.toy_options(folder, steps=steps, seed=seed)
        chance, words = random.Random(seed), sorted(made.NOUNS.values())
        trained = train_rewriter(data, made.gain, options, folder / "run")
        warm_up_steps = -(-len(data.labels) // options.batch)
        epochs = options.warm_up_epochs + -(-steps // warm_up_steps)
        supervised = replace(options, warm_up_epochs=epochs, steps=0)
        train_rewriter(data, made.gain, supervised, folder / "supervised")
        known = {item.question: label for item, label in data.labels}
        nouns = {made.noun_of(question): label for question, label in known.items()}
        texts = {
            "question as asked": [""] * len(held_out),
            "a word at random": [chance.choice(words) for _ in held_out],
            "frozen rewriter": [nouns.get(made.noun_of(each.question), "") for each in held_out],
            "warmed up": rewrites(folder / "run/warm", held_out, options.most_tokens),
            "supervised, as many steps": rewrites(folder / "supervised/warm", held_out, options.most_tokens),
            "reinforced": rewrites(trained.folder, held_out, options.most_tokens),
        }
        for name, written in texts.items():
            worth = fmean(made.gain(item, text) for item, text in zip(held_out, written, strict=True))
            gains.setdefault(name, []).append(worth)
        print({name: round(values[-1], 3) for name, values in gains.items()}, flush=True)
    for name, values in gains.items():
        deviation = stdev(values) if len(values) > 1 else 0.0
        print(f"{name:28}{fmean(values):.3f} ± {deviation:.3f}  (least {min(values):.3f})")


def hotpotqa(data: Path, model: Path, work: Path, options: argparse.Namespace) -> None:
    """Train on questions of HotpotQA, and print the measure of those held out before and after."""
    home, [task] = LOADERS["en_multihop/hotpotqa_100"](data, work)
    questions = task.questions
    snapshot = published_snapshot(home)
    base, corpus = knowledge_base(home, snapshot), open_corpus(home, snapshot)
    reward = SearchReward(base, corpus, questions, "nDCG@10", Level.DOCUMENT)
    items = [Item(each.text, QueryForm.KEYWORDS) for each in questions if reward.rewards(each)]
    random.Random(SEED).shuffle(items)
    training, validation, held_out = items[:45], items[45:60], items[60:]
    frozen = RuleRewriter()
    labels = pseudo_labels(training, frozen, reward)
    chosen = RewriterOptions(
        model=str(model),
        learning_rate=options.learning_rate,
        warm_up_learning_rate=options.learning_rate,
        warm_up_epochs=options.epochs,
        steps=options.steps,
        batch=options.batch,
        samples=options.samples,
        most_tokens=options.tokens,
        baseline_steps=100,
        penalties=Penalties(0.01, 0.1, 2, 48),
        accumulation=options.accumulation,
        precision="no",
        device="cpu",
        seed=0,
        validation_steps=15,
        patience=0,
        checkpoint_steps=5,
        threads=1,
    )
    began = time.perf_counter()
    trained = train_rewriter(RewriterData(training, validation, labels), reward.gain, chosen, work / "run")
    print(f"{len(labels)} pseudo-labels of {len(training)} questions; {time.perf_counter() - began:.0f} s")
    print(f"validation: {trained.warmed_up} warmed up, {trained.gain} best, at step {trained.best_step}")
    texts = {
        "question as asked": [""] * len(held_out),
        "frozen rewriter (rules)": [frozen.rewrite(each.question, ()).keywords for each in held_out],
        "SmolLM2 as it is": rewrites(model, held_out, options.tokens),
        "warmed up": rewrites(work / "run/warm", held_out, options.tokens),
        "reinforced": rewrites(trained.folder, held_out, options.tokens),
    }
    worth = {
        name: [reward.worth(item, text) for item, text in zip(held_out, written, strict=True)]
        for name, written in texts.items()
    }
    for name, values in worth.items():
        line = f"{name:26}{shown(bootstrap_interval(values, seed=SEED))}"
        for other in ("question as asked", "warmed up"):
            line += f"  against {other} {shown(paired_bootstrap(values, worth[other], seed=SEED).difference)}"
        print(line)
    steps = [line for line in read_curves(work / "run") if line["stage"] == "reinforce"]
    for part in (steps[:15], steps[-15:]):
        figures = {name: round(fmean(each[name] for each in part), 4) for name in ("gain", "divergence", "tokens")}
        print(f"training, steps {part[0]['step']} to {part[-1]['step']}: {json.dumps(figures)}")
    print(f"seconds a step: {fmean(each['seconds'] for each in steps):.1f}")
    for item, text in list(zip(held_out, texts["reinforced"], strict=True))[:5]:
        print(f"  {item.question} -> {text}")


def write_t5(folder: Path, shape: Mapping[str, int]) -> None:
    """Write a T5 of random weights with T5's size of vocabulary; its tokens are words."""
    torch: Any = importlib.import_module("torch")
    transformers: Any = importlib.import_module("transformers")
    made: Any = importlib.import_module("small_models")
    made.write_small_model(folder, [f"w{number}" for number in range(WORDS)])
    torch.manual_seed(SEED)
    config = transformers.T5Config(
        vocab_size=32_128, d_kv=64, decoder_start_token_id=0, pad_token_id=0, eos_token_id=1, **shape
    )
    module = transformers.T5ForConditionalGeneration(config)
    torch.nn.init.normal_(module.shared.weight, std=0.05)  # as usual, a random model writes one token again and again
    module.save_pretrained(folder)


def large(work: Path, steps: int, precision: str, parts: int) -> None:
    """Print what a step of a model of the size of T5-large takes, by the defaults of the settings."""
    torch: Any = importlib.import_module("torch")
    write_t5(work / "model", LARGE)
    usual, chance = rewriter_options(RewriterTrainingSettings()), random.Random(SEED)
    items = [Item(text, QueryForm.KEYWORDS) for text in random_questions(4 * usual.batch)]
    labels = [(item, " ".join(item.question.split()[:8])) for item in items]
    options = replace(
        usual, model=str(work / "model"), steps=steps, warm_up_epochs=1, precision=precision,
        accumulation=parts, validation_steps=steps, checkpoint_steps=steps,
    )  # fmt: skip
    train_rewriter(RewriterData(items, (), labels), lambda _item, _text: chance.random(), options, work / "run")
    curves = read_curves(work / "run")
    for stage in ("warm-up", "reinforce"):
        found = [each for each in curves if each["stage"] == stage][1:]
        seconds = sorted(each["seconds"] for each in found)
        tokens = fmean(each.get("tokens", 0) for each in found)
        middle = seconds[len(seconds) // 2]
        print(f"{stage}: {middle:.2f} s a step [{seconds[0]:.2f}, {seconds[-1]:.2f}], {tokens:.0f} tokens a rewrite")
    where = torch.cuda.get_device_name() if torch.cuda.is_available() else "processor"
    held = torch.cuda.max_memory_allocated() / 1e9 if torch.cuda.is_available() else 0
    print(f"{where}, {precision}, batch in {parts} parts: {held:.1f} GB at most")


def random_questions(count: int) -> list[str]:
    """Twelve words each."""
    chance = random.Random(SEED)
    return [" ".join(f"w{chance.randrange(WORDS)}" for _ in range(12)) for _ in range(count)]


def speed(work: Path, model: Path | None, questions: Sequence[str], runs: int, *, alone: bool) -> None:
    """Print what a rewrite takes in torch and exported, and the agreement of both; exported alone, without torch."""
    folder = work / "model"
    if not alone:
        shutil.rmtree(folder, ignore_errors=True)
        if model is None:
            write_t5(folder, SMALL)
        else:
            TextToText(str(model)).save(folder)
        export(folder, max(LENGTHS))
    for threads in (1, 2):
        exported = ExportedTextToText(folder, threads)
        models: dict[str, TextToText | ExportedTextToText] = {"exported": exported}
        if not alone:
            models = {"torch": TextToText(str(folder), threads=threads), **models}
        for length in LENGTHS:
            seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in models}
            same = words = 0
            for number in range(runs + 1):
                question = questions[number % len(questions)]
                prompts = [prompt_for(form, question, is_causal=exported.is_causal) for form in QueryForm]
                texts = []
                for name, each in models.items():
                    began, processor = time.perf_counter(), time.process_time()
                    texts.append(each.likeliest(prompts, length))
                    seconds[name].append((time.perf_counter() - began, time.process_time() - processor))
                for ours, theirs in zip(texts[0], texts[-1], strict=True):
                    same += ours == theirs
                    words += ours.split()[:1] == theirs.split()[:1]
            print(f"{threads} threads, {length} tokens, load {os.getloadavg()[0]:.1f}", end="")
            print("" if alone else f": same text {same}, first word {words} of {2 * runs + 2}")
            figures = {}
            for name, rows in seconds.items():
                clock, spent = (sorted(1000 * row[of] for row in rows[1:]) for of in (0, 1))
                (median, slow), (processor, most) = (
                    quantiles(each, n=20, method="inclusive")[9::9] for each in (clock, spent)
                )
                figures[name] = median, processor
                print(
                    f"  {name:10}clock {median:.0f}, p95 {slow:.0f}, least {clock[0]:.0f} ms; "
                    f"processor {processor:.0f}, p95 {most:.0f} ms"
                )
            if not alone:
                ratios = [torch / ours for torch, ours in zip(figures["torch"], figures["exported"], strict=True)]
                print(f"  torch takes {ratios[0]:.1f} times as long by the clock, {ratios[1]:.1f} times of processors")


def shown(figure: Interval) -> str:
    return f"{figure.mean:+.3f} [{figure.low:+.3f}, {figure.high:+.3f}]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True, dest="what")
    on_small = commands.add_parser("small")
    on_small.add_argument("--work", type=Path, required=True)
    on_small.add_argument("--seeds", type=int, default=5)
    on_small.add_argument("--steps", type=int, default=150)
    on_hotpotqa = commands.add_parser("hotpotqa")
    for name in ("data", "model", "work"):
        on_hotpotqa.add_argument(f"--{name}", type=Path, required=True)
    for name, usual in {"steps": 60, "batch": 4, "samples": 3, "tokens": 20, "epochs": 2, "accumulation": 1}.items():
        on_hotpotqa.add_argument(f"--{name}", type=int, default=usual)
    on_hotpotqa.add_argument("--learning-rate", type=float, default=1e-4)
    on_speed = commands.add_parser("speed")
    on_speed.add_argument("--work", type=Path, required=True)
    on_speed.add_argument("--model", type=Path)
    on_speed.add_argument("--queries", type=Path, help="as in BEIR; words of the random model without")
    on_speed.add_argument("--runs", type=int, default=40)
    on_speed.add_argument("--alone", action="store_true", help="only the model that an earlier run exported to --work")
    on_large = commands.add_parser("large")
    on_large.add_argument("--work", type=Path, required=True)
    on_large.add_argument("--steps", type=int, default=10)
    on_large.add_argument("--precision", default="bf16")
    on_large.add_argument("--accumulation", type=int, default=2)
    options = parser.parse_args()
    sys.path.append(str(Path(__file__).parents[1] / "tests/extras"))
    if options.what == "speed":
        found = [] if options.queries is None else [text for _, text in read_queries(options.queries)]
        questions = found or random_questions(options.runs)
        speed(options.work, options.model, questions, options.runs, alone=options.alone)
    elif options.what == "large":
        large(options.work, options.steps, options.precision, options.accumulation)
    elif options.what == "small":
        small(options.work, options.seeds, options.steps)
    else:
        hotpotqa(options.data, options.model, options.work, options)


if __name__ == "__main__":
    main()
