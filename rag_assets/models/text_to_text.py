"""Models that turn one text into another: sequence-to-sequence as T5, or causal.

`TextToText` is a model of transformers, for training (extra `train`). `ExportedTextToText` writes the likeliest texts
of such a model by onnxruntime.

```
<folder>/            a folder of transformers
  tokenizer.json
  onnx/              the exported model
```

What stays out: exporting (`rag_assets.models.text_to_text_export`), training, and what the texts are
(`rag_assets.query.search.trained_rewriting`).
"""

import importlib
import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_assets.contracts.errors import ModelError
from rag_assets.text.plain import one_line

MOST_PROMPT_TOKENS = 256
EXPORTED, ENCODER, DECODER, TOKENIZER = "onnx", "encoder.onnx", "decoder.onnx", "tokenizer.json"
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
class BatchOutput:
    """What a model wrote for a batch of prompts."""

    texts: list[str]  # one a prompt and sample, the samples of a prompt side by side; one line, marks left out
    targets: Tensor  # ids, shape `(texts, tokens)`; -100 after the end of a text, the mark of the end included before
    lengths: list[int]  # tokens of each text, its mark of the end included


class TextToText:
    """A model with its tokenizer, in float32, on one device.

    Args:
        name: Folder or hub name.
        device: As torch names it.
        threads: Of torch, in the whole process; 0 leaves it to torch.

    Attributes:
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
        except Exception as error:  # as of damaged weights, for which safetensors has a class of its own
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

    def write(self, prompts: Sequence[str], most_tokens: int, samples: int = 0) -> BatchOutput:
        """Write the likeliest text a prompt, token by token; or sample several from the model's distribution, by
        torch's generator.
        """
        encoding = self._encoded(prompts)
        sampling = {"do_sample": True, "top_k": 0, "top_p": 1.0, "temperature": 1.0, "num_return_sequences": samples}
        with self._torch.no_grad():
            ids = self.module.generate(
                **encoding, max_new_tokens=most_tokens, **(sampling if samples else {"do_sample": False})
            )
        ids = ids[:, encoding["input_ids"].shape[1] if self.is_causal else 1 :]
        ends = (ids == self.tokenizer.eos_token_id).long().cumsum(1)
        within = (ends - (ids == self.tokenizer.eos_token_id).long()) == 0
        texts = self.tokenizer.batch_decode(ids * within + self.tokenizer.pad_token_id * ~within, True)
        return BatchOutput(
            [_first_line(text) for text in texts], ids.masked_fill(~within, _IGNORED), within.sum(1).tolist()
        )

    def likeliest(self, prompts: Sequence[str], most_tokens: int) -> list[str]:
        """The likeliest text a prompt, token by token."""
        return self.write(prompts, most_tokens).texts

    def targets(self, texts: Sequence[str], most_tokens: int) -> Tensor:
        """Texts as `BatchOutput.targets` holds them."""
        end = [self.tokenizer.eos_token_id]
        rows = [
            [*self.tokenizer(text, add_special_tokens=False)["input_ids"][: most_tokens - 1], *end] for text in texts
        ]
        width = max(map(len, rows))
        padded_rows = [row + [_IGNORED] * (width - len(row)) for row in rows]
        return self._torch.tensor(padded_rows, device=self.module.device)

    def log_probabilities(self, prompts: Sequence[str], targets: Tensor, forward: Any = None) -> Tensor:
        """Natural logarithm of the probability of each text, float32, shape `(texts,)`.

        Args:
            prompts: One a text.
            targets: The texts, see `BatchOutput`.
            forward: Stands in for the model where it is wrapped, as for several GPUs.
        """
        forward, encoding = forward or self.module, self._encoded(prompts)
        inside = targets != _IGNORED
        ids = targets.masked_fill(~inside, self.tokenizer.pad_token_id)
        if self.is_causal:
            start = encoding["input_ids"].shape[1]
            mask = self._torch.cat([encoding["attention_mask"], inside.long()], dim=1)
            positions = {"position_ids": (mask.cumsum(1) - 1).clamp(min=0)} if self._takes_positions else {}
            whole = self._torch.cat([encoding["input_ids"], ids], dim=1)
            logits = forward(input_ids=whole, attention_mask=mask, **positions).logits[:, start - 1 : -1]
        else:
            logits = forward(**encoding, labels=targets).logits
        scores = logits.float().log_softmax(-1).gather(-1, ids.unsqueeze(-1)).squeeze(-1)
        return (scores * inside).sum(1)

    def _encoded(self, prompts: Sequence[str]) -> dict[str, Tensor]:
        self.tokenizer.padding_side = "left" if self.is_causal else "right"
        self.tokenizer.truncation_side = "right"
        encoding = self.tokenizer(
            list(prompts), return_tensors="pt", padding=True, truncation=True, max_length=MOST_PROMPT_TOKENS
        )
        names = ("input_ids", "attention_mask")
        return {name: encoding[name].to(self.module.device) for name in names}


class ExportedTextToText:
    """A model that `rag_assets.models.text_to_text_export` made, in onnxruntime.

    Args:
        folder: That of transformers.
        threads: Of a model; 0 leaves it to onnxruntime.

    Attributes:
        is_causal: Whether it continues the prompt, rather than decoding an encoded one.

    Raises:
        ModelError: There is no such model.
    """

    def __init__(self, folder: Path, threads: int = 0) -> None:
        import onnxruntime
        from tokenizers import Tokenizer

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = threads, 3
        # threads that wait for work in a loop take the processor from others: three times as long on a busy machine
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")

        def session(name: str) -> Any:
            path = folder / EXPORTED / name
            return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

        try:
            self._decoder = session(DECODER)
            facts = self._decoder.get_modelmeta().custom_metadata_map
            self._most_tokens, self._end, self._pad = (int(facts[key]) for key in ("most_tokens", "end_id", "pad_id"))
            self.is_causal = "start_id" not in facts
            self._start = None if self.is_causal else int(facts["start_id"])
            self._encoder: Any = None if self.is_causal else session(ENCODER)
            self._tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
        except Exception as error:  # both libraries raise what has no narrower class in common
            raise ModelError(f"{folder / EXPORTED}: no exported model: {one_line(str(error))[:300]}") from error
        self._value = onnxruntime.OrtValue.ortvalue_from_numpy
        self._past = [node for node in self._decoder.get_inputs() if node.name.startswith("past_")]
        self._outputs = [node.name for node in self._decoder.get_outputs()]
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(MOST_PROMPT_TOKENS)

    def likeliest(self, prompts: Sequence[str], most_tokens: int) -> list[str]:
        """The likeliest text a prompt, token by token, all prompts at once; at most as many tokens as exported for."""
        ids, mask = self._encoded(prompts)
        texts = len(ids)
        fixed_inputs = {} if self.is_causal else self._prompt(ids, mask)
        cache = {
            node.name: self._value(np.zeros((texts, node.shape[1], 0, node.shape[3]), np.float32))
            for node in self._past
        }
        if not self.is_causal:
            ids = np.full((texts, 1), self._start)
        rows, is_ended = np.empty((texts, 0), np.int64), np.zeros(texts, bool)
        while rows.shape[1] < min(most_tokens, self._most_tokens) and not is_ended.all():
            step = self._causal_step(mask, ids.shape[1]) if self.is_causal else {}
            feed = {"ids": self._value(ids), **step, **fixed_inputs, **cache}
            *present, choice = self._decoder.run_with_ort_values(self._outputs, feed)
            cache = dict(zip(cache, present, strict=True))
            ids = choice.numpy().reshape(-1, 1)
            rows, is_ended = np.hstack([rows, ids]), is_ended | (ids[:, 0] == self._end)
            mask = np.hstack([mask, np.ones_like(ids)])
        cut = [row[: row.index(self._end)] if self._end in row else row for row in rows.tolist()]
        return [_first_line(text) for text in self._tokenizer.decode_batch(cut)]

    def _encoded(self, prompts: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Ids of the tokens, and 1 where there is one, shape `(prompts, tokens)`; at the end for causal models."""
        rows = [encoding.ids for encoding in self._tokenizer.encode_batch(list(prompts))]
        width = max(map(len, rows))
        ids, mask = np.full((len(rows), width), self._pad), np.zeros((len(rows), width), np.int64)
        for at, row in enumerate(rows):
            place = slice(width - len(row), width) if self.is_causal else slice(len(row))
            ids[at, place], mask[at, place] = row, 1
        return ids, mask

    def _prompt(self, ids: NDArray[np.int64], mask: NDArray[np.int64]) -> dict[str, Any]:
        """What the decoder sees of encoded prompts."""
        hidden = self._value(_hidden(mask[:, None, None, :] == 1))
        names = [node.name for node in self._encoder.get_outputs()]
        encodings = self._encoder.run_with_ort_values(names, {"ids": self._value(ids), "mask": hidden})
        return {"mask": hidden, **dict(zip(names, encodings, strict=True))}

    def _causal_step(self, mask: NDArray[np.int64], tokens: int) -> dict[str, Any]:
        """Positions of the last tokens, and which tokens they see."""
        places = np.maximum(mask.cumsum(1) - 1, 0)[:, -tokens:]
        width = mask.shape[1]
        is_before = np.arange(width)[None, :] <= np.arange(width - tokens, width)[:, None]
        hidden = _hidden(is_before[None, None] & (mask[:, None, None, :] == 1))
        return {"positions": self._value(np.ascontiguousarray(places)), "mask": self._value(hidden)}


def _hidden(is_seen: NDArray[np.bool_]) -> NDArray[np.float32]:
    """What is added to logits of attention."""
    return np.where(is_seen, np.float32(0), np.float32(-1e9))


def open_text_to_text(folder: Path, threads: int = 0) -> TextToText | ExportedTextToText:
    """What serves a model: onnxruntime where it was exported, else torch.

    Raises:
        ModelError: It cannot be loaded.
    """
    return (
        ExportedTextToText(folder, threads)
        if (folder / EXPORTED).is_dir()
        else TextToText(str(folder), threads=threads)
    )


def _first_line(text: str) -> str:
    return one_line(text.strip().partition("\n")[0])
