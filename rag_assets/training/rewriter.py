"""Training a rewriter by reinforcement: warm-up on pseudo-labels, then REINFORCE with baseline (extra `train`).

Every random choice is drawn by a generator seeded for its step, and a checkpoint holds all else that a step depends on.
So training that was killed goes on to the same weights as training that was not, on the same machine and threads.

```
<folder>/
  curves.jsonl    a line a step: loss, reward, divergence, length; and a line a look at held-out questions
  checkpoint.pt   weights and optimizer at the last checkpoint
  warm/           the policy after the warm-up
  best-STEP/      the policy that did best on questions held out
  result.json     how it ended
```

What stays out: what a rewrite gains (`rag_assets.training.rewards`), and whether the rewriter is adopted.

Source: X. Ma, Y. Gong, P. He, H. Zhao and N. Duan, Query rewriting for retrieval-augmented large language models, EMNLP
2023; R. J. Williams, Simple statistical gradient-following algorithms for connectionist reinforcement learning, Machine
Learning 8, 1992. Deviations: one model writes keywords and sentences, asked for by the beginning of its prompt; the
weights kept are those that do best on questions held out. The source names a length penalty, but not its form; ours is
linear.
"""

import hashlib
import json
import random
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, astuple, dataclass, field, replace
from pathlib import Path
from typing import Any

from rag_assets.contracts.errors import ModelError, StoreError
from rag_assets.models.text_to_text import TextToText, training_library
from rag_assets.query.search.trained_rewriting import QueryForm, prompt_for
from rag_assets.store.files import write_atomically, written_aside
from rag_assets.text.plain import one_line


@dataclass(frozen=True)
class Penalties:
    """What is taken off the gain of a rewrite."""

    divergence: float  # for each nat by which the policy makes it likelier than the warmed-up policy does
    length: float  # for a rewrite that is empty, or twice the longest; in between it grows in a line
    shortest_tokens: int  # from here on no rewrite is too short
    longest_tokens: int  # up to here none is too long

    def of_length(self, tokens: int) -> float:
        """The penalty of a rewrite of so many tokens."""
        short = (self.shortest_tokens - tokens) / self.shortest_tokens
        long = (tokens - self.longest_tokens) / self.longest_tokens
        return self.length * max(0.0, short, long)

    def reward(self, gain: float, tokens: int, log_probability: float, warmed_up: float) -> float:
        """What a sampled rewrite is worth.

        Over samples of the policy the mean of `log_probability - warmed_up` is the Kullback-Leibler divergence of the
        policy from the warmed-up one.

        Args:
            gain: How much better it did than the question.
            tokens: Its length.
            log_probability: Natural logarithm of its probability under the policy.
            warmed_up: The same under the warmed-up policy.
        """
        return gain - self.divergence * (log_probability - warmed_up) - self.of_length(tokens)


def baseline_of(rewards: Sequence[float], window: int) -> float:
    """Mean reward of so many last steps; 0, what the question itself is worth, before the first."""
    last = rewards[-window:]
    return sum(last) / len(last) if last else 0.0


@dataclass(frozen=True)
class RewriterOptions:
    """How a rewriter is trained; the settings `rewriter_training` say what each is."""

    model: str
    learning_rate: float
    warm_up_learning_rate: float
    warm_up_epochs: int
    steps: int
    batch: int
    samples: int
    most_tokens: int
    baseline_steps: int
    penalties: Penalties
    accumulation: int
    precision: str
    device: str
    seed: int
    validation_steps: int
    patience: int
    checkpoint_steps: int
    threads: int


@dataclass(frozen=True)
class Item:
    """A question, and the index that it is rewritten for."""

    question: str
    form: QueryForm


@dataclass(frozen=True)
class RewriterData:
    """What a rewriter learns from."""

    training: Sequence[Item]  # questions that rewrites are sampled for
    validation: Sequence[Item]  # questions of other documents, by which the best weights are chosen and training ends
    labels: Sequence[tuple[Item, str]]  # pseudo-labels of training questions, for the warm-up
    objective: str = ""  # what gains are of; training for another one is another training


@dataclass(frozen=True)
class TrainedWeights:
    """What training came to."""

    folder: Path  # the policy, as a folder of transformers
    steps: int  # steps of reinforcement that were done
    best_step: int  # the step that the policy is of; 0 is the warmed-up policy
    warmed_up: float | None  # mean gain over validation questions of the warmed-up policy; None without such questions
    gain: float | None  # the same of the policy
    is_main_process: bool  # whether this process is the first of those that train together


Gain = Callable[[Item, str], float]
Progress = Callable[[int, int], None]


@dataclass
class _State:
    """Where training stands, but for weights and optimizer."""

    stage: str = "warm-up"
    step: int = 0
    rewards: list[float] = field(default_factory=list)
    warmed_up: float | None = None
    best: float | None = None
    best_step: int = 0
    looks_since: int = 0


def train_rewriter(
    data: RewriterData,
    gain: Gain,
    options: RewriterOptions,
    folder: Path,
    progress: Progress = lambda _done, _total: None,
    *,
    anew: bool = False,
) -> TrainedWeights:
    """Train a rewriter, or go on where training in this folder stopped.

    Started by `accelerate launch`, several processes train together, each on its part of every batch.

    Args:
        data: What it learns from.
        gain: How much better a search by a rewrite does than one by the question; the same for the same arguments.
        options: How it is trained.
        folder: What training leaves.
        progress: Told steps done and steps in all, those of the warm-up included.
        anew: Whether what stands there of other data or options is removed.

    Raises:
        ModelError: The extra is not installed, there is no such model, or a search failed.
        StoreError: There is nothing to learn from, or training of other data or options was stopped in this folder.
    """
    if not data.training:
        raise StoreError("train rewriter: there is no question to learn from")
    return _Training(data, gain, options, folder, progress, anew=anew).run()


def read_curves(folder: Path) -> list[dict[str, Any]]:
    """The lines of `curves.jsonl`; a last line that was not written to its end is left out."""
    path = folder / "curves.jsonl"
    lines = path.read_text("utf-8").split("\n")[:-1] if path.exists() else []
    return [json.loads(line) for line in lines]


class _Training:
    """One run of `train_rewriter`."""

    def __init__(
        self,
        data: RewriterData,
        gain: Gain,
        options: RewriterOptions,
        folder: Path,
        progress: Progress,
        *,
        anew: bool,
    ) -> None:
        self._torch, accelerate = training_library("torch"), training_library("accelerate")
        self._adafactor = training_library("transformers.optimization").Adafactor
        self._data, self._gain, self._options, self._progress = data, gain, options, progress
        try:
            self._accelerator = accelerate.Accelerator(mixed_precision=options.precision, cpu=options.device == "cpu")
        except ValueError as error:  # its state is the process's, and keeps the first precision and device
            raise ModelError(
                f"precision {options.precision}, device {options.device}: {one_line(str(error))[:200]}; "
                "train in a process of its own"
            ) from error
        self._folder, self._digest = folder, _digest(data, options)
        self._state = _State()
        self._checkpoint = self._read_checkpoint(anew=anew)
        if self._checkpoint is None and self._accelerator.is_main_process:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        self._accelerator.wait_for_everyone()
        self._warm_up_steps = -(-len(data.labels) // options.batch) * options.warm_up_epochs

    def run(self) -> TrainedWeights:
        """Warm-up, reinforcement, result."""
        policy = self._load(self._options.model)
        if self._checkpoint is not None:
            self._state = _State(**self._checkpoint["state"])
            policy.module.load_state_dict(self._checkpoint["weights"])
            self._cut_curves()
        if self._state.stage == "warm-up":
            self._train("warm-up", policy, self._warm_up_steps, self._options.warm_up_learning_rate, self._imitate)
            self._once(lambda: self._save_folder(policy, "warm"))
            self._state = _State("reinforce", warmed_up=(worth := self._validated(policy)), best=worth)
            self._once(lambda: self._save_folder(policy, self._best))
            self._look(0, worth)
            self._checkpoint = None
        reference = self._load(str(self._folder / "warm"))
        reference.module.requires_grad_(False)

        def reinforce(policy: TextToText, forward: Any, optimizer: Any) -> dict[str, float]:
            return self._reinforce(policy, forward, optimizer, reference)

        self._train("reinforce", policy, self._options.steps, self._options.learning_rate, reinforce)
        state = self._state
        result = {"steps": state.step, "best_step": state.best_step, "warmed_up": state.warmed_up, "gain": state.best}
        self._once(lambda: write_atomically(self._folder / "result.json", json.dumps(result).encode()))
        is_main: bool = self._accelerator.is_main_process
        self._once(self._remove_others)
        return TrainedWeights(
            self._folder / self._best, state.step, state.best_step, state.warmed_up, state.best, is_main
        )

    @property
    def _best(self) -> str:
        """Folder of the best policy so far; that of the checkpoint stays until the next one names another."""
        return f"best-{self._state.best_step}"

    def _remove_others(self) -> None:
        """Remove policies that were the best before, or after the checkpoint that training went on from."""
        for path in self._folder.glob("best-*"):
            if path.name != self._best:
                shutil.rmtree(path)

    def _load(self, name: str) -> TextToText:
        return TextToText(name, str(self._accelerator.device), self._options.threads)

    def _train(
        self,
        stage: str,
        policy: TextToText,
        steps: int,
        learning_rate: float,
        step: Callable[[TextToText, Any, Any], dict[str, float]],
    ) -> None:
        """Do the steps of a stage that are left."""
        optimizer = self._adafactor(
            policy.module.parameters(), lr=learning_rate, scale_parameter=False, relative_step=False, warmup_init=False
        )
        if self._checkpoint is not None:
            optimizer.load_state_dict(self._checkpoint["optimizer"])
        forward, optimizer = self._accelerator.prepare(policy.module, optimizer)
        if self._checkpoint is not None and self._checkpoint["scaler"] is not None:
            self._accelerator.scaler.load_state_dict(self._checkpoint["scaler"])
        self._checkpoint = None
        state, done_before = self._state, self._warm_up_steps if stage == "reinforce" else 0
        while state.step < steps and not (0 < self._options.patience <= state.looks_since):
            began = time.perf_counter()
            rank = self._accelerator.process_index
            self._torch.manual_seed(_seed(self._options.seed, stage, state.step, rank))
            figures = step(policy, forward, optimizer)
            state.step += 1
            seconds = round(time.perf_counter() - began, 3)
            self._write_curve({"stage": stage, "step": state.step, **figures, "seconds": seconds})
            if stage == "reinforce" and (state.step % self._options.validation_steps == 0 or state.step == steps):
                self._validate(policy)
            if state.step % self._options.checkpoint_steps == 0 or state.step == steps:
                self._once(lambda: self._save_checkpoint(policy, optimizer))
            self._progress(done_before + state.step, self._warm_up_steps + self._options.steps)

    def _imitate(self, policy: TextToText, forward: Any, optimizer: Any) -> dict[str, float]:
        """One step of the warm-up: make pseudo-labels likelier."""
        batch = self._batch(self._data.labels)
        loss = 0.0
        policy.module.train()
        for share in self._parts(batch, forward):
            prompts = [prompt_for(item.form, item.question, is_causal=policy.is_causal) for item, _ in share]
            targets = policy.targets([label for _, label in share], self._options.most_tokens)
            part = -policy.log_probabilities(prompts, targets, forward).sum() / len(batch)
            self._accelerator.backward(part)
            loss += float(part.detach())
        policy.module.eval()
        optimizer.step()
        optimizer.zero_grad()
        return {"loss": self._mean(loss)}

    def _reinforce(self, policy: TextToText, forward: Any, optimizer: Any, reference: TextToText) -> dict[str, float]:
        """One step of REINFORCE: make rewrites likelier that are worth more than the baseline."""
        options, state = self._options, self._state
        items = self._batch(self._data.training)
        with self._accelerator.autocast():
            samples = policy.write(
                [prompt_for(item.form, item.question, is_causal=policy.is_causal) for item in items],
                options.most_tokens,
                options.samples,
            )
        items = [item for item in items for _ in range(options.samples)]
        gains = [self._gain(item, text) for item, text in zip(items, samples.texts, strict=True)]
        baseline = baseline_of(state.rewards, options.baseline_steps)
        rewards: list[float] = []
        divergence = 0.0
        for share in self._parts(range(len(items)), forward):
            prompts = [
                prompt_for(items[index].form, items[index].question, is_causal=policy.is_causal) for index in share
            ]
            targets = samples.targets[list(share)]
            log_probabilities = policy.log_probabilities(prompts, targets, forward)
            with self._torch.no_grad(), self._accelerator.autocast():
                warmed_up = reference.log_probabilities(prompts, targets).tolist()
            ours = log_probabilities.detach().tolist()
            worth = [
                options.penalties.reward(gains[index], samples.lengths[index], mine, theirs)
                for index, mine, theirs in zip(share, ours, warmed_up, strict=True)
            ]
            advantages = self._torch.tensor([value - baseline for value in worth], device=log_probabilities.device)
            self._accelerator.backward(-(advantages * log_probabilities).sum() / len(items))
            rewards += worth
            divergence += sum(ours) - sum(warmed_up)
        optimizer.step()
        optimizer.zero_grad()
        figures = {
            "gain": self._mean(sum(gains) / len(items)),
            "reward": self._mean(sum(rewards) / len(items)),
            "baseline": baseline,
            "divergence": self._mean(divergence / len(items)),
            "tokens": self._mean(sum(samples.lengths) / len(items)),
        }
        state.rewards = [*state.rewards, figures["reward"]][-options.baseline_steps :]
        return figures

    def _batch(self, rows: Sequence[Any]) -> list[Any]:
        """This process's part of the step's rows; every row comes once an epoch, in an order of its own."""
        size, epochs = self._options.batch, {}
        batch = []
        for number in range(self._state.step * size, (self._state.step + 1) * size):
            epoch, at = divmod(number, len(rows))
            if epoch not in epochs:
                order = list(range(len(rows)))
                random.Random(_seed(self._options.seed, self._state.stage, epoch, -1)).shuffle(order)  # noqa: S311
                epochs[epoch] = order
            batch.append(rows[epochs[epoch][at]])
        return batch[self._accelerator.process_index :: self._accelerator.num_processes]

    def _parts(self, rows: Sequence[Any], forward: Any) -> Any:
        """The rows in as many parts as gradients are summed over; processes exchange gradients at the last only."""
        size = max(1, -(-len(rows) // self._options.accumulation))
        for start in range(0, len(rows), size):
            is_last = start + size >= len(rows)
            with nullcontext() if is_last else self._accelerator.no_sync(forward):
                yield rows[start : start + size]

    def _mean(self, value: float) -> float:
        """Mean over processes."""
        if self._accelerator.num_processes == 1:
            return value
        tensor = self._torch.tensor(value, device=self._accelerator.device)
        return float(self._accelerator.reduce(tensor, "mean"))

    def _validated(self, policy: TextToText) -> float | None:
        """Mean gain of the likeliest rewrites of held-out questions; None without any."""
        items, worth = self._data.validation, 0.0
        for start in range(0, len(items), self._options.batch):
            share = items[start : start + self._options.batch]
            prompts = [prompt_for(item.form, item.question, is_causal=policy.is_causal) for item in share]
            with self._accelerator.autocast():
                samples = policy.write(prompts, self._options.most_tokens)
            worth += sum(self._gain(item, text) for item, text in zip(share, samples.texts, strict=True))
        return worth / len(items) if items else None

    def _validate(self, policy: TextToText) -> None:
        """Look at held-out questions, and keep the weights where they do better; without any, the last weights."""
        state, worth = self._state, self._validated(policy)
        state.looks_since += worth is not None
        if worth is None or state.best is None or worth > state.best:
            state.best, state.best_step, state.looks_since = worth, state.step, 0
            self._once(lambda: self._save_folder(policy, self._best))
        self._look(state.step, worth)

    def _look(self, step: int, worth: float | None) -> None:
        if worth is not None:
            self._write_curve({"stage": "validation", "step": step, "gain": worth})

    def _once(self, action: Callable[[], None]) -> None:
        """Do something in one process, while the others wait."""
        if self._accelerator.is_main_process:
            action()
        self._accelerator.wait_for_everyone()

    def _save_folder(self, policy: TextToText, name: str) -> None:
        """Write the policy as a folder; one that was not written to its end has another name."""
        partial, final = self._folder / f"{name}.part", self._folder / name
        shutil.rmtree(partial, ignore_errors=True)
        policy.save(partial)
        shutil.rmtree(final, ignore_errors=True)
        partial.rename(final)

    def _save_checkpoint(self, policy: TextToText, optimizer: Any) -> None:
        scaler = self._accelerator.scaler
        content = {
            "digest": self._digest,
            "state": asdict(self._state),
            "weights": policy.module.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scaler": None if scaler is None else scaler.state_dict(),
        }
        with written_aside(self._folder / "checkpoint.pt") as aside:
            self._torch.save(content, aside)
            aside.replace(self._folder / "checkpoint.pt")
        self._remove_others()

    def _read_checkpoint(self, *, anew: bool) -> Mapping[str, Any] | None:
        """The last checkpoint, where it is of the same data and options."""
        path = self._folder / "checkpoint.pt"
        if not path.exists():
            return None
        checkpoint: Mapping[str, Any] = self._torch.load(path, map_location="cpu", weights_only=True)
        stage, step, best = (checkpoint["state"][name] for name in ("stage", "step", "best_step"))
        is_whole = stage == "warm-up" or (self._folder / f"best-{best}").is_dir()
        if checkpoint["digest"] == self._digest and is_whole:
            return checkpoint
        if anew:
            return None
        if not is_whole:
            raise StoreError(f"{self._folder}: the best weights so far are gone: begin again by --anew")
        raise StoreError(
            f"{self._folder}: training with other questions, model, reward or settings stopped at {stage} step {step}: "
            "go on with those, or begin again by --anew"
        )

    def _write_curve(self, figures: Mapping[str, Any]) -> None:
        if self._accelerator.is_main_process:
            with (self._folder / "curves.jsonl").open("a", encoding="utf-8") as file:
                file.write(f"{json.dumps(figures)}\n")

    def _cut_curves(self) -> None:
        """Take off the lines of steps after the checkpoint, which are done again."""
        if self._accelerator.is_main_process:
            state = self._state

            def stage_of(line: Mapping[str, Any]) -> str:
                return "warm-up" if line["stage"] == "warm-up" else "reinforce"

            lines = [
                line
                for line in read_curves(self._folder)
                if (line["step"] <= state.step if stage_of(line) == state.stage else stage_of(line) == "warm-up")
            ]
            text = "".join(f"{json.dumps(line)}\n" for line in lines)
            write_atomically(self._folder / "curves.jsonl", text.encode())


def _digest(data: RewriterData, options: RewriterOptions) -> str:
    """Tells training apart that would come to other weights; more or fewer steps go on with the same."""
    fixed_options = replace(options, steps=0, checkpoint_steps=0, patience=0)
    rows = map(repr, (*data.training, *data.validation, *data.labels))
    parts = [repr(astuple(fixed_options)), data.objective, *rows]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _seed(seed: int, stage: str, step: int, rank: int) -> int:
    """Seed of what is random in one step of one process."""
    return int.from_bytes(hashlib.sha256(f"{seed}:{stage}:{step}:{rank}".encode()).digest()[:7])
