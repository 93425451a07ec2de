"""Low-rank changes of multilingual-e5-small, trained on the weights that the embedder reads, which stay as they are.

`answer_scorer` and `retrieval_adapter` train with it, and have their commands from here. It needs torch.

Reference: Hu et al., LoRA: Low-Rank Adaptation of Large Language Models, 2021.
"""

import argparse
import importlib
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_assets.models.embedding.e5_export import BLOCKWISE
from rag_assets.models.embedding.e5_weights import Adapter, E5Weights, installed_path, read_weights

RANK = 32
DECAY = 0.01
_PARTS = 2  # in which texts are read, by their length: each is padded to its longest
_WARM_UP, _LEAST_RATE = 0.06, 0.03  # shares of the steps, and of the rate


class LowRankModel:
    """The model with what is learned of it.

    Args:
        seed: Of the beginnings and of the order of examples.
        head: Whether a linear map of the mean vector to one number is learned, too.

    Attributes:
        chance: Draws of this training.
        learned: Tensors by name.
    """

    def __init__(self, seed: int = 0, *, head: bool = False) -> None:
        self.torch: Any = importlib.import_module("torch")
        self.device = "cuda" if self.torch.cuda.is_available() else "cpu"
        self.chance = np.random.default_rng(seed)
        self.torch.manual_seed(seed)
        weights: E5Weights = read_weights(installed_path())
        self._shape = weights
        self._fixed = {
            name: self._tensor(weights.vector(name)) for name, entry in weights.entries.items() if entry.kind == 0
        }
        self._names = [
            f"l{layer}.{part}" for layer in range(weights.layers) for part in ("q", "k", "v", "ao", "fi", "fo")
        ]
        columns = {name: weights.feed_forward if name.endswith("fo") else weights.hidden for name in self._names}
        self._fixed |= {
            f"{name}.w": self._tensor(weights.matrix(f"{name}.w", columns[name]).dequantized()) for name in self._names
        }
        self._words = self._tensor(weights.matrix("emb.word", weights.hidden).dequantized())
        learned: dict[str, Any] = {}
        if head:
            learned = {"head": self.torch.randn(weights.hidden) * 0.02, "bias": self.torch.zeros(1)}
        for name in set(self._names) - BLOCKWISE:
            learned[f"{name}.down"] = self.torch.randn(RANK, columns[name]) / columns[name] ** 0.5
            learned[f"{name}.up"] = self.torch.zeros(len(self._fixed[f"{name}.w"]), RANK)
        self.learned = {name: each.to(self.device).requires_grad_() for name, each in sorted(learned.items())}

    def means(self, sequences: Sequence[NDArray[np.int64]], drop: float = 0.0, parts: int = _PARTS) -> Any:
        """Means over the last layer's tokens, a float32 tensor of shape `(len(sequences), hidden)`.

        Args:
            sequences: Token ids of each text, special tokens included.
            drop: Share of what is dropped.
            parts: In how many runs they are read.
        """
        torch, matrices = self.torch, self._matrices()
        order = np.argsort([len(each) for each in sequences], kind="stable")
        read = []
        for part in filter(len, np.array_split(order, parts)):
            lengths = torch.tensor([len(sequences[each]) for each in part], device=self.device)
            ids = np.zeros((len(part), int(lengths.max())), np.int64)
            for row, each in enumerate(part):
                ids[row, : len(sequences[each])] = sequences[each]
            mask = torch.arange(ids.shape[1], device=self.device)[None] < lengths[:, None]
            read.append(self._forward(matrices, torch.from_numpy(ids).to(self.device), mask, drop))
        places = np.empty(len(order), np.int64)
        places[order] = np.arange(len(order))
        return torch.cat(read)[torch.from_numpy(places).to(self.device)]

    def fit(
        self, examples: Sequence[int], rate: float, epochs: float, batch: int, loss_of: Callable[[list[int]], Any]
    ) -> None:
        """Learn from examples, in an order by chance, with AdamW; the rate rises and then falls.

        Args:
            examples: What the loss is asked for.
            rate: The highest one.
            epochs: How often each is seen.
            batch: Examples of a step.
            loss_of: The loss of a batch, a tensor without dimensions.
        """
        torch, learned = self.torch, list(self.learned.values())
        optimizer = torch.optim.AdamW(learned, lr=rate, weight_decay=DECAY, betas=(0.9, 0.98))
        steps, began = max(1, int(len(examples) * epochs / batch)), time.monotonic()
        order: list[int] = []
        for step in range(steps):
            if len(order) < batch:
                order += self.chance.permutation(np.array(examples)).tolist()
            taken, order = order[:batch], order[batch:]
            factor = min(1.0, (step + 1) / max(1.0, _WARM_UP * steps)) * max(_LEAST_RATE, 1 - step / steps)
            for group in optimizer.param_groups:
                group["lr"] = rate * factor
            loss = loss_of(taken)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(learned, 1.0)
            optimizer.step()
            if step % 50 == 0:
                print(f"step {step} of {steps}, loss {loss.item():.3f}, {time.monotonic() - began:.0f} s", flush=True)

    def adapter(self) -> Adapter:
        """What was learned."""
        arrays = {name: each.detach().cpu().numpy().astype(np.float32) for name, each in self.learned.items()}
        names = [name.removesuffix(".up") for name in arrays if name.endswith(".up")]
        products = {name: (arrays[f"{name}.up"], arrays[f"{name}.down"]) for name in names}
        return Adapter(products, (arrays["head"], arrays["bias"]) if "head" in arrays else None)

    def state(self) -> dict[str, Any]:
        """A copy of what was learned."""
        return {name: each.detach().clone() for name, each in self.learned.items()}

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a state."""
        with self.torch.no_grad():
            for name, each in self.learned.items():
                each.copy_(state[name])

    def _matrices(self) -> dict[str, Any]:
        """Each matrix with what is added to it, in the type that products are computed in."""
        kind = self.torch.bfloat16 if self.device == "cuda" else self.torch.float32
        matrices = {}
        for name in self._names:
            matrix = self._fixed[f"{name}.w"]
            if name not in BLOCKWISE:
                matrix = matrix + self.learned[f"{name}.up"] @ self.learned[f"{name}.down"]
            matrices[name] = matrix.to(kind)
        return matrices

    def _forward(self, matrices: dict[str, Any], ids: Any, mask: Any, drop: float) -> Any:
        functional, shape, fixed = self.torch.nn.functional, self._shape, self._fixed

        def product(name: str, state: Any) -> Any:
            matrix = matrices[name]
            return functional.linear(state.to(matrix.dtype), matrix, fixed[f"{name}.b"].to(matrix.dtype))

        positions = fixed["emb.pos"].view(-1, shape.hidden) + fixed["emb.type"].view(-1, shape.hidden)[0]
        state = self._normalized(self._words[ids] + positions[: ids.shape[1]], "emb.ln")
        heads = (*ids.shape, shape.heads, shape.hidden // shape.heads)
        for layer in range(shape.layers):
            name = f"l{layer}."
            q, k, v = (product(f"{name}{part}", state).view(heads).transpose(1, 2) for part in "qkv")
            mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None, None, :])
            mixed = mixed.transpose(1, 2).reshape(*ids.shape, shape.hidden)
            attended = functional.dropout(product(f"{name}ao", mixed).float(), drop)
            state = self._normalized(state + attended, f"{name}aln")
            inner = functional.gelu(product(f"{name}fi", state))
            outer = functional.dropout(product(f"{name}fo", inner).float(), drop)
            state = self._normalized(state + outer, f"{name}oln")
        weight = mask[..., None].float()
        return (state * weight).sum(1) / weight.sum(1)

    def _normalized(self, state: Any, name: str) -> Any:
        norm, fixed = self.torch.nn.functional.layer_norm, self._fixed
        return norm(state.float(), (self._shape.hidden,), fixed[f"{name}.w"], fixed[f"{name}.b"], self._shape.epsilon)

    def _tensor(self, values: NDArray[np.float32]) -> Any:
        return self.torch.tensor(np.asarray(values, np.float32), device=self.device)


def run_training(
    description: str,
    gather: Callable[[argparse.Namespace], None],
    train: Callable[[Path, Path, int], None],
    folders: Sequence[str] = (),
) -> None:
    """The commands `gather` and `train` of a training program.

    Args:
        description: Of the program.
        gather: Writes `pack` of what `squad`, `cross`, `questions` and the folders name.
        train: Trains on a pack, and writes an adapter; of each source it uses at most so many, 0 for all.
        folders: Further options of `gather`, repeatable.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    gathering = commands.add_parser("gather")
    for option in ("--squad", "--cross", "--questions"):
        gathering.add_argument(option, action="append", default=[])
    for option in folders:
        gathering.add_argument(option, action="append", default=[], type=Path)
    gathering.add_argument("--models", type=Path, default=Path(".models"), help="folder of the exported tokenizer")
    gathering.add_argument("pack", type=Path)
    training = commands.add_parser("train")
    training.add_argument("pack", type=Path)
    training.add_argument("output", type=Path)
    training.add_argument("--limit", type=int, default=0)
    arguments = parser.parse_args()
    if arguments.command == "gather":
        gather(arguments)
    else:
        train(arguments.pack, arguments.output, arguments.limit)
