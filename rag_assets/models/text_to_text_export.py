"""Writes a model of transformers as ONNX, for `ExportedTextToText`: T5 and mT5, Llama and Qwen2.

It imports `onnx` and needs the extra `train`, so import it where something is exported. Other architectures are served
by torch.

```
encoder.onnx   tokens of the prompts -> keys and values that the decoder attends to (sequence-to-sequence only)
decoder.onnx   tokens, keys and values so far -> the likeliest next token, keys and values
*.data         their weights
```

Weights of matrix products and token embeddings are int8 in blocks along the input, each with its own scale; so are
activations, whose rows do not share a scale, hence texts of a batch do not change one another. Where several heads
share keys and values, the maps that make these are repeated, one for each head.
"""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from rag_assets.contracts.errors import ModelError
from rag_assets.models.text_to_text import DECODER, ENCODER, EXPORTED, MOST_PROMPT_TOKENS, TOKENIZER, TextToText

_MICROSOFT = "com.microsoft"
_OPSET = 21
_IR_VERSION = 10
_BLOCKS = (64, 32, 16)  # inputs of a block: the largest that divides the width; 64 and 32 differ little in speed
_MIDDLE = 128  # what stands for 0 among unsigned bytes
_SEQUENCE_TO_SEQUENCE = ("T5ForConditionalGeneration", "MT5ForConditionalGeneration")
_CAUSAL = ("LlamaForCausalLM", "Qwen2ForCausalLM")
_ACTIVATIONS: Mapping[str, tuple[str, str, dict[str, float]]] = {  # node, domain, attributes
    "relu": ("Relu", "", {}),
    "gelu": ("Gelu", _MICROSOFT, {}),
    "gelu_new": ("FastGelu", _MICROSOFT, {}),
    "silu": ("QuickGelu", _MICROSOFT, {"alpha": 1.0}),
}
_FLOAT, _INT = TensorProto.FLOAT, TensorProto.INT64


def export(folder: Path, most_tokens: int, *, is_quantized: bool = True) -> None:
    """Export a folder of transformers, into a folder below it.

    Args:
        folder: The model with its tokenizer.
        most_tokens: Tokens of a text at most.
        is_quantized: Whether weights are int8; else float32, to compare with.

    Raises:
        ModelError: Only torch can serve it: its architecture is another, or it has no tokenizer file.
    """
    target = folder / EXPORTED
    shutil.rmtree(target, ignore_errors=True)
    if not (folder / TOKENIZER).exists():
        raise ModelError(f"{folder}: there is no {TOKENIZER}, so it cannot be exported")
    model = TextToText(str(folder))
    config, name = model.module.config, type(model.module).__name__
    tokenizer, start = model.tokenizer, model.module.generation_config.decoder_start_token_id
    facts = {"most_tokens": most_tokens, "end_id": tokenizer.eos_token_id, "pad_id": tokenizer.pad_token_id}

    def graph() -> _Graph:
        return _Graph(model.module.state_dict(), is_quantized=is_quantized)

    partial = folder / f"{EXPORTED}.part"
    partial.mkdir(exist_ok=True)
    try:
        if name in _SEQUENCE_TO_SEQUENCE and config.dense_act_fn in _ACTIVATIONS:
            _encoder(graph(), model.module).save(partial / ENCODER, {})
            _decoder(graph(), model.module, most_tokens).save(partial / DECODER, {**facts, "start_id": start})
        elif name in _CAUSAL and config.hidden_act == "silu" and config.rope_parameters["rope_type"] == "default":
            _causal_decoder(graph(), model.module, most_tokens).save(partial / DECODER, facts)
        else:
            raise ModelError(f"{folder}: {name} of this kind cannot be exported")
        partial.rename(target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


class _Graph:
    """The graph of a model under construction; a value is known by its name."""

    def __init__(self, weights: Mapping[str, Any], *, is_quantized: bool) -> None:
        self._weights, self._is_quantized = weights, is_quantized
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[str, onnx.TensorProto] = {}
        self._inputs: list[onnx.ValueInfoProto] = []
        self._outputs: list[onnx.ValueInfoProto] = []

    def input(self, name: str, kind: int, shape: Sequence[int | str]) -> str:
        self._inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return name

    def output(self, name: str, kind: int, shape: Sequence[int | str]) -> None:
        self._outputs.append(helper.make_tensor_value_info(name, kind, shape))

    def constant(self, name: str, values: NDArray[np.generic]) -> str:
        if name not in self._constants:
            self._constants[name] = numpy_helper.from_array(np.ascontiguousarray(values), name)
        return name

    def node(
        self, kind: str, inputs: Sequence[str], outputs: Sequence[str], domain: str = "", **attributes: Any
    ) -> str:
        """The first of the outputs."""
        node = helper.make_node(kind, list(inputs), list(outputs), name=outputs[0], domain=domain)
        node.attribute.extend(helper.make_attribute(key, value) for key, value in attributes.items())
        self._nodes.append(node)
        return outputs[0]

    def weights(self, name: str) -> NDArray[np.float32]:
        values: NDArray[np.float32] = self._weights[name].float().cpu().numpy()
        return values

    def is_same(self, name: str, other_name: str) -> bool:
        """Whether two names stand for one tensor."""
        return bool(self._weights[name].data_ptr() == self._weights[other_name].data_ptr())

    def embedded(self, name: str, ids: str) -> str:
        """Embeddings of tokens, shape `(texts, tokens, width)`."""
        matrix = self.weights(name)
        if not self._is_quantized:
            return self.node("Gather", [self.constant(f"{name}.rows", matrix), ids], ["embedding"])
        quantized, scales, _ = self._quantized(name, matrix)
        rows = self.node("Gather", [quantized, ids], ["embedding_bytes"])
        sizes = self.node("Gather", [scales, ids], ["embedding_scales"])
        sizes = self.node("Unsqueeze", [sizes, self.constant("last", np.array([-1]))], ["embedding_sizes"])
        numbers = self.node("Cast", [rows], ["embedding_numbers"], to=_FLOAT)
        middle = self.constant("middle", np.array(_MIDDLE, np.float32))
        centred = self.node("Sub", [numbers, middle], ["embedding_centred"])
        scaled = self.node("Mul", [centred, sizes], ["embedding_scaled"])
        shape = self.constant("embedding_shape", np.array([0, 0, matrix.shape[1]]))
        return self.node("Reshape", [scaled, shape], ["embedding"])

    def product(self, name: str, matrix: NDArray[np.float32], state: str, bias: NDArray[np.float32] | None) -> str:
        """A linear map; the matrix has a row an output."""
        if not self._is_quantized:
            outputs = self.node("MatMul", [state, self.constant(name, matrix.T)], [f"{name}.product"])
            zero = np.zeros(len(matrix), np.float32) if bias is None else bias
            return self.node("Add", [outputs, self.constant(f"{name}.bias", zero)], [f"{name}.moved"])
        quantized, scales, block = self._quantized(name, matrix)
        bias_inputs = [] if bias is None else ["", "", self.constant(f"{name}.bias", bias)]
        rows, columns = matrix.shape
        return self.node(
            "MatMulNBits", [state, quantized, scales, *bias_inputs], [f"{name}.product"], _MICROSOFT,
            K=columns, N=rows, bits=8, block_size=block, accuracy_level=4,
        )  # fmt: skip

    def linear(
        self, prefix: str, names: Sequence[str], state: str, repeats: Mapping[str, tuple[int, int]] | None = None
    ) -> str:
        """Linear maps of one input, side by side.

        Args:
            prefix: What the names of all begin with.
            names: Of the maps.
            state: Their input.
            repeats: Width of the heads of a map whose outputs serve several heads each, and of how many, by name.
        """
        matrices, biases = [], []
        for name in names:
            matrix = self.weights(f"{prefix}{name}.weight")
            key = f"{prefix}{name}.bias"
            bias = self.weights(key) if key in self._weights else np.zeros(len(matrix), np.float32)
            width, count = (repeats or {}).get(name, (1, 1))
            matrices.append(_repeated(matrix, width, count))
            biases.append(_repeated(bias, width, count))
        bias = np.concatenate(biases)
        key = f"{prefix}{'+'.join(names)}"
        return self.product(key, np.concatenate(matrices), state, bias if bias.any() else None)

    def split(self, state: str, names: Sequence[str]) -> list[str]:
        """Equal parts of the last axis."""
        self.node("Split", [state], names, axis=-1, num_outputs=len(names))
        return list(names)

    def normalized(self, name: str, state: str, epsilon: float, update: str | None = None) -> tuple[str, str]:
        """Root mean square normalisation of a state, or of a sum of two; and that sum."""
        scale, output = self.constant(name, self.weights(name)), f"{name}.normalized"
        if update is None:
            node = self.node("SimplifiedLayerNormalization", [state, scale], [output], epsilon=epsilon, axis=-1)
            return node, state
        total = f"{name}.sum"
        outputs = [output, "", "", total]
        self.node("SkipSimplifiedLayerNormalization", [state, update, scale], outputs, _MICROSOFT, epsilon=epsilon)
        return output, total

    def active(self, kind: str, state: str) -> str:
        node, domain, attributes = _ACTIVATIONS[kind]
        return self.node(node, [state], [f"{state}.active"], domain, **attributes)

    def cached(self, layer: int, heads: int, width: int) -> tuple[list[str], list[str]]:
        """Names of keys and values of the tokens so far, and of those with the next ones."""
        past, present = ([f"{tense}_{kind}_{layer}" for kind in ("key", "value")] for tense in ("past", "present"))
        for name in past:
            self.input(name, _FLOAT, ["texts", heads, "past", width])
        for name in present:
            self.output(name, _FLOAT, ["texts", heads, "all", width])
        return past, present

    def likeliest(self, name: str, state: str) -> None:
        """The token whose logit is greatest."""
        self.node("ArgMax", [self.product(name, self.weights(name), state, None)], ["next_ids"], axis=-1, keepdims=0)

    def save(self, path: Path, facts: Mapping[str, int]) -> None:
        graph = helper.make_graph(self._nodes, path.stem, self._inputs, self._outputs, list(self._constants.values()))
        opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid(_MICROSOFT, 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION)
        helper.set_model_props(model, {name: str(value) for name, value in facts.items()})
        # a file of protocol buffers holds 2 GB at most
        onnx.save_model(model, path, save_as_external_data=True, location=f"{path.stem}.data", size_threshold=1024)

    def _quantized(self, name: str, matrix: NDArray[np.float32]) -> tuple[str, str, int]:
        """A matrix in blocks along its rows: names of its bytes and scales, and the width of a block."""
        rows, columns = matrix.shape
        block = next((width for width in _BLOCKS if columns % width == 0), 0)
        if not block:
            raise ModelError(f"{name}: its width {columns} is no multiple of {_BLOCKS[-1]}, so it cannot be exported")
        if name not in self._constants:
            blocks = matrix.reshape(rows, -1, block)
            scales = np.abs(blocks).max(axis=-1) / (_MIDDLE - 1)
            scales[scales == 0] = 1
            self.constant(name, (np.rint(blocks / scales[..., None]) + _MIDDLE).astype(np.uint8))
            self.constant(f"{name}.scales", scales.astype(np.float32))
        return name, f"{name}.scales", block


def _repeated(values: NDArray[np.float32], width: int, count: int) -> NDArray[np.float32]:
    """Rows in groups of a width, each group so many times in a row."""
    return (
        values
        if count == 1
        else np.repeat(values.reshape(-1, width, *values.shape[1:]), count, axis=0).reshape(-1, *values.shape[1:])
    )


def _encoder(graph: _Graph, module: Any) -> _Graph:
    """What reads the prompts.

    Inputs are `ids`, int64 of shape `(texts, tokens)`, and `mask`, float32 of shape `(texts, 1, 1, tokens)`, which is
    added to logits of attention. Outputs are keys and values for each layer of the decoder, shape `(texts, heads,
    tokens, width)`.
    """
    config = module.config
    ids, mask = graph.input("ids", _INT, ["texts", "tokens"]), graph.input("mask", _FLOAT, ["texts", 1, 1, "tokens"])
    state, update = graph.embedded("shared.weight", ids), None
    places = _relative(module.encoder, MOST_PROMPT_TOKENS, MOST_PROMPT_TOKENS, 0)
    length = graph.node("Shape", [ids], ["length"], start=1, end=2)
    lengths = graph.node("Concat", [length, length], ["lengths"], axis=0)
    begin, axes = graph.constant("begin", np.array([0, 0])), graph.constant("axes", np.array([2, 3]))
    near = graph.node("Slice", [graph.constant("places", places), begin, lengths, axes], ["near"])
    bias = graph.node("Add", [near, mask], ["bias"])
    for layer in range(config.num_layers):
        prefix = f"encoder.block.{layer}.layer."
        normal, state = graph.normalized(f"{prefix}0.layer_norm.weight", state, config.layer_norm_epsilon, update)
        whole = graph.linear(f"{prefix}0.SelfAttention.", "qkv", normal)
        parts = graph.split(whole, [f"{prefix}{name}" for name in "qkv"])
        update = _attention(graph, f"{prefix}0.SelfAttention.", [*parts, "", "", bias], config.num_heads)
        state, update = _feed_forward(graph, f"{prefix}1.", state, update, config)
    name = "encoder.final_layer_norm.weight"
    encoder_output, _ = graph.normalized(name, state, config.layer_norm_epsilon, update)
    shape = graph.constant("heads", np.array([0, 0, config.num_heads, config.d_kv]))
    for layer in range(config.num_decoder_layers):
        prefix = f"decoder.block.{layer}.layer.1.EncDecAttention."
        names = [f"{prefix}{name}" for name in "kv"]
        for part, kind in zip(
            graph.split(graph.linear(prefix, "kv", encoder_output), names), ("key", "value"), strict=True
        ):
            heads = graph.node("Reshape", [part, shape], [f"{part}.heads"])
            output = graph.node("Transpose", [heads], [f"prompt_{kind}_{layer}"], perm=[0, 2, 1, 3])
            graph.output(output, _FLOAT, ["texts", config.num_heads, "tokens", config.d_kv])
    return graph


def _decoder(graph: _Graph, module: Any, most_tokens: int) -> _Graph:
    """What writes the texts.

    Inputs are `ids`, int64 of shape `(texts, 1)`, `mask` and outputs of the encoder, and the cache. Outputs are the
    cache and `next_ids`, int64 of shape `(texts, 1)`.
    """
    config = module.config
    ids, mask = graph.input("ids", _INT, ["texts", 1]), graph.input("mask", _FLOAT, ["texts", 1, 1, "tokens"])
    state, update = graph.embedded("shared.weight", ids), None
    # seen from the last of the tokens, so that its end is what is seen from an earlier one
    places = graph.constant("places", _relative(module.decoder, 1, most_tokens, most_tokens - 1))
    past = graph.node("Shape", ["past_key_0"], ["past_length"], start=2, end=3)
    last = graph.constant("last", np.array([-1]))
    begin = graph.node("Sub", [last, past], ["begin"])
    bias = graph.node("Slice", [places, begin, graph.constant("end", np.array([most_tokens])), last], ["bias"])
    for layer in range(config.num_decoder_layers):
        prefix = f"decoder.block.{layer}.layer."
        normal, state = graph.normalized(f"{prefix}0.layer_norm.weight", state, config.layer_norm_epsilon, update)
        whole = graph.linear(f"{prefix}0.SelfAttention.", "qkv", normal)
        parts = graph.split(whole, [f"{prefix}{name}" for name in "qkv"])
        before, after = graph.cached(layer, config.num_heads, config.d_kv)
        inputs = [*parts, "", "", bias, *before]
        update = _attention(graph, f"{prefix}0.SelfAttention.", inputs, config.num_heads, after)
        normal, state = graph.normalized(f"{prefix}1.layer_norm.weight", state, config.layer_norm_epsilon, update)
        prompt = [f"prompt_{kind}_{layer}" for kind in ("key", "value")]
        for name in prompt:
            graph.input(name, _FLOAT, ["texts", config.num_heads, "tokens", config.d_kv])
        query = graph.linear(f"{prefix}1.EncDecAttention.", "q", normal)
        update = _attention(graph, f"{prefix}1.EncDecAttention.", [query, *prompt, "", "", mask], config.num_heads)
        state, update = _feed_forward(graph, f"{prefix}2.", state, update, config)
    normal, _ = graph.normalized("decoder.final_layer_norm.weight", state, config.layer_norm_epsilon, update)
    is_tied = graph.is_same("shared.weight", "lm_head.weight")
    graph.likeliest("shared.weight" if is_tied else "lm_head.weight", normal)
    graph.output("next_ids", _INT, ["texts", 1])
    return graph


def _relative(stack: Any, queries: int, keys: int, past: int) -> NDArray[np.float32]:
    """What is added to logits of attention by how far apart tokens are, shape `(1, heads, queries, keys)`."""
    bias = stack.block[0].layer[0].SelfAttention.compute_bias(queries, keys, past_seen_tokens=past)
    values: NDArray[np.float32] = bias.detach().float().numpy()
    return values


def _attention(graph: _Graph, prefix: str, inputs: Sequence[str], heads: int, caches: Sequence[str] = ()) -> str:
    """Attention of T5, which does not scale logits."""
    outputs = [f"{prefix}mixed", *caches]
    attention = graph.node("MultiHeadAttention", inputs, outputs, _MICROSOFT, num_heads=heads, scale=1.0)
    return graph.linear(prefix, "o", attention)


def _feed_forward(graph: _Graph, prefix: str, state: str, update: str, config: Any) -> tuple[str, str]:
    """The feed-forward step of T5: its input, and what is to be added to it."""
    normal, state = graph.normalized(f"{prefix}layer_norm.weight", state, config.layer_norm_epsilon, update)
    dense, kind = f"{prefix}DenseReluDense.", config.dense_act_fn
    if config.is_gated_act:
        gate, inner = graph.split(graph.linear(dense, ["wi_0", "wi_1"], normal), [f"{dense}gate", f"{dense}inner"])
        inner = graph.node("Mul", [graph.active(kind, gate), inner], [f"{dense}gated"])
    else:
        inner = graph.active(kind, graph.linear(dense, ["wi"], normal))
    return state, graph.linear(dense, ["wo"], inner)


def _causal_decoder(graph: _Graph, module: Any, most_tokens: int) -> _Graph:
    """What reads the prompts and writes the texts.

    Inputs are `ids` and `positions`, int64 of shape `(texts, tokens)`, `mask`, float32 of shape `(texts, 1, tokens,
    all)`, which is added to logits of attention, and the cache. Outputs are the cache and `next_ids`, int64 of shape
    `(texts,)`.
    """
    config = module.config
    heads, epsilon = config.num_attention_heads, config.rms_norm_eps
    width = getattr(config, "head_dim", None) or config.hidden_size // heads
    repeats = dict.fromkeys(("k_proj", "v_proj"), (width, heads // config.num_key_value_heads))
    ids, positions = (graph.input(name, _INT, ["texts", "tokens"]) for name in ("ids", "positions"))
    mask = graph.input("mask", _FLOAT, ["texts", 1, "tokens", "all"])
    state, update = graph.embedded("model.embed_tokens.weight", ids), None
    frequencies = config.rope_parameters["rope_theta"] ** -(np.arange(0, width, 2) / width)
    angles = np.arange(MOST_PROMPT_TOKENS + most_tokens)[:, None] * frequencies
    turns = [
        graph.constant(name, values.astype(np.float32))
        for name, values in {"cosines": np.cos(angles), "sines": np.sin(angles)}.items()
    ]
    for layer in range(config.num_hidden_layers):
        prefix = f"model.layers.{layer}."
        normal, state = graph.normalized(f"{prefix}input_layernorm.weight", state, epsilon, update)
        whole = graph.linear(f"{prefix}self_attn.", ["q_proj", "k_proj", "v_proj"], normal, repeats)
        *rotary_parts, value = graph.split(whole, [f"{prefix}{name}" for name in "qkv"])
        query, key = (
            graph.node("RotaryEmbedding", [part, positions, *turns], [f"{part}.turned"], _MICROSOFT)
            for part in rotary_parts
        )
        before, after = graph.cached(layer, heads, width)
        inputs, outputs = [query, key, value, "", "", mask, *before], [f"{prefix}mixed", *after]
        attention = graph.node("MultiHeadAttention", inputs, outputs, _MICROSOFT, num_heads=heads)
        update = graph.linear(f"{prefix}self_attn.", ["o_proj"], attention)
        normal, state = graph.normalized(f"{prefix}post_attention_layernorm.weight", state, epsilon, update)
        projections = graph.linear(f"{prefix}mlp.", ["gate_proj", "up_proj"], normal)
        gate, inner = graph.split(projections, [f"{prefix}gate", f"{prefix}inner"])
        inner = graph.node("Mul", [graph.active("silu", gate), inner], [f"{prefix}gated"])
        update = graph.linear(f"{prefix}mlp.", ["down_proj"], inner)
    normal, _ = graph.normalized("model.norm.weight", state, epsilon, update)
    final = graph.node("Gather", [normal, graph.constant("final", np.array(-1))], ["final_state"], axis=1)
    is_tied = graph.is_same("model.embed_tokens.weight", "lm_head.weight")
    graph.likeliest("model.embed_tokens.weight" if is_tied else "lm_head.weight", final)
    graph.output("next_ids", _INT, ["texts"])
    return graph
