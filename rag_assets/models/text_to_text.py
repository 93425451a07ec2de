"""Models of transformers that turn one text into another: sequence-to-sequence as T5, or causal (extra `train`).

What stays out: what the texts are (`rag_assets.query.search.trained_rewriting`), and training.
"""

import importlib
import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_assets.contracts.errors import ModelError
from rag_assets.text.plain import one_line

MOST_PROMPT_TOKENS = 256
_IGNORED = -100  # as a target: transformers leave it out of losses

Tensor = Any  # of torch, which the base installation does not have


def training_library(name: str) -> Any:
    """A module of the extra `train`; `ModelError` where it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        library = name.partition(".")[0]
        message = f"{library} is not installed: install it with pip install 'rag-assets[train]'"
        raise ModelError(message) from error


@dataclass(frozen=True)
class Written:
    """What a model wrote for a batch of prompts.

    Attributes:
        texts: One a prompt and sample, the samples of a prompt side by side; one line, marks left out.
        targets: Ids, shape `(texts, tokens)`; -100 after the end of a text, the mark of the end included before.
        lengths: Tokens of each text, its mark of the end included.
    """

    texts: list[str]
    targets: Tensor
    lengths: list[int]


class TextToText:
    """A model with its tokenizer, in float32, on one device.

    Args:
        name: Folder or hub name.
        device: As torch names it.
        threads: Of torch, in the whole process; 0 leaves it to torch.

    Attributes:
        module: The model.
        tokenizer: Its tokenizer.
        is_causal: Whether it continues the prompt, rather than decoding an encoded one.

    Raises:
        ModelError: The extra is not installed, or there is no such model.
    """

    def __init__(self, name: str, device: str = "cpu", threads: int = 0) -> None:
        self._torch, transformers = training_library("torch"), training_library("transformers")
        training_library("transformers.utils.logging").disable_progress_bar()
        if threads:
            self._torch.set_num_threads(threads)
        try:
            config = transformers.AutoConfig.from_pretrained(name)
            self.is_causal = not config.is_encoder_decoder
            kind = transformers.AutoModelForCausalLM if self.is_causal else transformers.AutoModelForSeq2SeqLM
            self.tokenizer = transformers.AutoTokenizer.from_pretrained(name)
            self.module = kind.from_pretrained(name, dtype=self._torch.float32).to(device)
        except (OSError, ValueError, KeyError) as error:
            raise ModelError(f"{name}: no model that transformers can load: {one_line(str(error))[:300]}") from error
        if self.tokenizer.eos_token_id is None:
            raise ModelError(f"{name}: its tokenizer has no mark of the end of a text (eos_token)")
        if self.tokenizer.pad_token_id is None:
            self.tokenizer.pad_token = self.tokenizer.eos_token
        marks = {"eos_token_id": self.tokenizer.eos_token_id, "pad_token_id": self.tokenizer.pad_token_id}
        if not self.is_causal:
            start = config.decoder_start_token_id
            marks["decoder_start_token_id"] = self.tokenizer.pad_token_id if start is None else start
        # what a model's makers recommend (penalties, temperature) would make samples of another policy
        self.module.generation_config = transformers.GenerationConfig(**marks)
        self._takes_positions = "position_ids" in inspect.signature(self.module.forward).parameters
        self.module.eval()

    def save(self, folder: Path) -> None:
        """Write model and tokenizer as a folder of transformers."""
        self.module.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)

    def write(self, prompts: Sequence[str], most_tokens: int, samples: int = 0) -> Written:
        """Write the likeliest text a prompt, token by token; or sample several from the model's distribution, by
        torch's generator.
        """
        encoded = self._encoded(prompts)
        sampling = {"do_sample": True, "top_k": 0, "top_p": 1.0, "temperature": 1.0, "num_return_sequences": samples}
        with self._torch.no_grad():
            ids = self.module.generate(
                **encoded, max_new_tokens=most_tokens, **(sampling if samples else {"do_sample": False})
            )
        ids = ids[:, encoded["input_ids"].shape[1] if self.is_causal else 1 :]
        ended = (ids == self.tokenizer.eos_token_id).long().cumsum(1)
        within = (ended - (ids == self.tokenizer.eos_token_id).long()) == 0
        texts = self.tokenizer.batch_decode(ids * within + self.tokenizer.pad_token_id * ~within, True)
        lines = [one_line(text.strip().partition("\n")[0]) for text in texts]
        return Written(lines, ids.masked_fill(~within, _IGNORED), within.sum(1).tolist())

    def targets(self, texts: Sequence[str], most_tokens: int) -> Tensor:
        """Texts as `Written.targets` holds them."""
        end = [self.tokenizer.eos_token_id]
        rows = [
            [*self.tokenizer(text, add_special_tokens=False)["input_ids"][: most_tokens - 1], *end] for text in texts
        ]
        width = max(map(len, rows))
        filled = [row + [_IGNORED] * (width - len(row)) for row in rows]
        return self._torch.tensor(filled, device=self.module.device)

    def log_probabilities(self, prompts: Sequence[str], targets: Tensor, forward: Any = None) -> Tensor:
        """Natural logarithm of the probability of each text, float32, shape `(texts,)`.

        Args:
            prompts: One a text.
            targets: The texts, see `Written`.
            forward: Stands in for the model where it is wrapped, as for several GPUs.
        """
        forward, encoded = forward or self.module, self._encoded(prompts)
        inside = targets != _IGNORED
        ids = targets.masked_fill(~inside, self.tokenizer.pad_token_id)
        if self.is_causal:
            start = encoded["input_ids"].shape[1]
            mask = self._torch.cat([encoded["attention_mask"], inside.long()], dim=1)
            positions = {"position_ids": (mask.cumsum(1) - 1).clamp(min=0)} if self._takes_positions else {}
            whole = self._torch.cat([encoded["input_ids"], ids], dim=1)
            logits = forward(input_ids=whole, attention_mask=mask, **positions).logits[:, start - 1 : -1]
        else:
            logits = forward(**encoded, labels=targets).logits
        chosen = logits.float().log_softmax(-1).gather(-1, ids.unsqueeze(-1)).squeeze(-1)
        return (chosen * inside).sum(1)

    def _encoded(self, prompts: Sequence[str]) -> dict[str, Tensor]:
        self.tokenizer.padding_side = "left" if self.is_causal else "right"
        self.tokenizer.truncation_side = "right"
        encoded = self.tokenizer(
            list(prompts), return_tensors="pt", padding=True, truncation=True, max_length=MOST_PROMPT_TOKENS
        )
        names = ("input_ids", "attention_mask")
        return {name: encoded[name].to(self.module.device) for name in names}
