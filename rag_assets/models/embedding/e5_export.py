"""Writes multilingual-e5-small, read from 4-bit weights, as an ONNX model and a tokenizer file.

It imports `onnx` and `tokenizers`, so import it where something is exported.

The graph takes one text at a time, without padding and so without a mask: quantized activations share one scale within
a run, hence texts that share a run would change one another's vectors. On one thread this costs nothing from about 100
tokens a text on (it was 8 % faster than runs of eight at 128 tokens, 4 % slower at 64, 22 % slower at 16).

Deviations from the published float32 model:

- Token embeddings keep the 4-bit blocks of the weight file, which loses nothing against that file.
- Matrix products are int8, weights per output column and activations per run, but for two that stay in 4-bit blocks.
  Weights take 7 of the 8 bits, so that the 16-bit sums of processors without VNNI cannot overflow and every processor
  computes the same integers.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

from rag_assets.contracts.errors import ModelError
from rag_assets.models.embedding.e5_weights import (
    BLOCK_WEIGHTS,
    Adapter,
    E5Weights,
    FourBitMatrix,
    Precision,
    UnigramTable,
)

_MICROSOFT = "com.microsoft"
_OPSET = 21
_IR_VERSION = 10
_WEIGHT_LIMIT = 63
# The activations of these reach far beyond those of the other layers, so one scale for a run loses most here: without
# blocks the distance to the float32 vectors (1 - cosine, mean of 30 passages) is .0033, with these two .0016, with the
# same product of all twelve layers .0010 at four fifths of the speed.
BLOCKWISE = frozenset({"l4.fo", "l5.fo"})


def export_model(weights: E5Weights, path: Path, precision: Precision, adapter: Adapter | None = None) -> None:
    """Write the ONNX model, or raise a `ModelError` where a tensor is missing from the weights.

    Its input is `input_ids`, int64 of shape `(1, tokens)`, special tokens included. Its output is `vector`, float32 of
    shape `(1, hidden)` and unit length: the mean over the last layer's tokens; with an adapter that has a head it is
    `score`, float32 of shape `(1, 1)`, the head's linear map of that mean.
    """
    if adapter is not None and (wrong := [name for name in adapter.products if f"{name}.w" not in weights.entries]):
        raise ModelError(f"adapter: the model has no matrices named {', '.join(wrong[:3])}")
    graph = _Graph(weights, precision, adapter)
    state = graph.embeddings()
    for layer in range(weights.layers):
        state = graph.layer(f"l{layer}.", state)
    axis = graph.constant("token_axis", np.array([1], np.int64))
    mean = graph.node("ReduceMean", [state, axis], "mean", keepdims=0)
    if adapter is None or adapter.head is None:
        output, columns = graph.node("LpNormalization", [mean], "vector", axis=1, p=2), weights.hidden
    else:
        head = [graph.constant("head", adapter.head[0][:, None]), graph.constant("head_bias", adapter.head[1])]
        output, columns = graph.node("Gemm", [mean, *head], "score"), 1
    onnx_graph = helper.make_graph(
        graph.nodes,
        "multilingual-e5-small",
        [helper.make_tensor_value_info("input_ids", onnx.TensorProto.INT64, [1, "tokens"])],
        [helper.make_tensor_value_info(output, onnx.TensorProto.FLOAT, [1, columns])],
        graph.constants,
    )
    opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid(_MICROSOFT, 1)]
    model = helper.make_model(onnx_graph, opset_imports=opsets, ir_version=_IR_VERSION)
    path.write_bytes(model.SerializeToString())


class _Graph:
    """The graph of a model under construction; a value is known by its name."""

    def __init__(self, weights: E5Weights, precision: Precision, adapter: Adapter | None = None) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self._weights = weights
        self._precision = precision
        self._adapter = adapter

    def constant(self, name: str, values: NDArray[np.generic]) -> str:
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def node(self, kind: str, inputs: Sequence[str], output: str, domain: str = "", **attributes: float) -> str:
        node = helper.make_node(kind, list(inputs), [output], name=output, domain=domain)
        node.attribute.extend(helper.make_attribute(key, value) for key, value in attributes.items())
        self.nodes.append(node)
        return output

    def embeddings(self) -> str:
        """Token, position and type embeddings, normalised."""
        weights = self._weights
        words = weights.matrix("emb.word", weights.hidden)
        # A nibble less 8 is its two's complement with the sign bit turned.
        signed = words.nibbles.reshape(-1, 2) ^ 8
        self.constants.append(
            onnx.TensorProto(
                name="word",
                data_type=onnx.TensorProto.INT4,
                dims=[len(words.nibbles), weights.hidden],
                raw_data=(signed[:, 0] | signed[:, 1] << 4).astype(np.uint8).tobytes(),
            )
        )
        scales = self.constant("word_scales", words.scales)
        tokens = self.node(
            "GatherBlockQuantized",
            ["word", "input_ids", scales],
            "word_vectors",
            _MICROSOFT,
            gather_axis=0,
            quantize_axis=1,
            block_size=BLOCK_WEIGHTS,
        )
        types = weights.vector("emb.type").reshape(-1, weights.hidden)
        positions = weights.vector("emb.pos").reshape(-1, weights.hidden) + types[0]
        first = self.constant("first", np.array([0], np.int64))
        length = self.node("Shape", ["input_ids"], "length", start=1, end=2)
        places = self.node("Slice", [self.constant("positions", positions), first, length], "position_vectors")
        return self._normalized("emb.ln", tokens, places)

    def layer(self, prefix: str, state: str) -> str:
        """Self-attention and feed-forward step, each added to its input and normalised."""
        names = [prefix + name for name in ("q", "k", "v")]
        projection = self._product(names, state, prefix + "qkv")
        self.nodes.append(helper.make_node("Split", [projection], names, axis=2, num_outputs=3, name=prefix + "split"))
        heads = self._weights.heads
        attention = self.node("MultiHeadAttention", names, prefix + "attention", _MICROSOFT, num_heads=heads)
        output = self._product([prefix + "ao"], attention, prefix + "attended")
        state = self._normalized(prefix + "aln", state, output)
        inner = self._product([prefix + "fi"], state, prefix + "inner")
        active = self.node("Gelu", [inner], prefix + "active", _MICROSOFT)
        outer = self._product([prefix + "fo"], active, prefix + "outer")
        return self._normalized(prefix + "oln", state, outer)

    def _normalized(self, name: str, state: str, update: str) -> str:
        """Layer normalisation of a sum."""
        weights = self._weights
        gain = self.constant(name + ".w", weights.vector(name + ".w"))
        shift = self.constant(name + ".b", weights.vector(name + ".b"))
        inputs, output = [state, update, gain, shift], name + ".normalized"
        return self.node("SkipLayerNormalization", inputs, output, _MICROSOFT, epsilon=weights.epsilon)

    def _product(self, names: Sequence[str], state: str, output: str) -> str:
        """Linear maps of one input, side by side."""
        weights = self._weights
        columns = weights.feed_forward if names[0].endswith("fo") else weights.hidden
        matrices = [weights.matrix(name + ".w", columns) for name in names]
        bias = self.constant(output + ".bias", np.concatenate([weights.vector(name + ".b") for name in names]))
        changes = [self._adapter.change(name) if self._adapter is not None else None for name in names]
        if self._precision is Precision.INT8 and names[0] in BLOCKWISE and changes[0] is None:
            return self._blockwise_product(matrices[0], state, bias, output)
        parts = [matrix.dequantized() for matrix in matrices]
        for place, change in enumerate(changes):
            if change is not None and change.shape != parts[place].shape:
                raise ModelError(f"adapter: {names[place]} has shape {change.shape}, the model {parts[place].shape}")
            parts[place] = parts[place] if change is None else parts[place] + change
        matrix = np.concatenate(parts).T
        if self._precision is Precision.FLOAT32:
            product = self.node("MatMul", [state, self.constant(output + ".weights", matrix)], output + ".product")
            return self.node("Add", [product, bias], output)
        scales = np.abs(matrix).max(axis=0) / _WEIGHT_LIMIT
        scales[scales == 0] = 1
        quantized = self.constant(output + ".weights", np.rint(matrix / scales).astype(np.int8))
        inputs = [state, quantized, self.constant(output + ".scales", scales), "", bias]
        return self.node("DynamicQuantizeMatMul", inputs, output, _MICROSOFT)

    def _blockwise_product(self, matrix: FourBitMatrix, state: str, bias: str, output: str) -> str:
        """A linear map by the 4-bit blocks as stored, activations in int8 with a scale for each block."""
        rows, blocks, _ = matrix.nibbles.shape
        packed_weights = self.constant(output + ".weights", matrix.nibbles[..., 0::2] | matrix.nibbles[..., 1::2] << 4)
        scales = self.constant(output + ".scales", matrix.scales.reshape(-1))
        return self.node(
            "MatMulNBits",
            [state, packed_weights, scales, "", "", bias],
            output,
            _MICROSOFT,
            K=blocks * BLOCK_WEIGHTS,
            N=rows,
            bits=4,
            block_size=BLOCK_WEIGHTS,
            accuracy_level=4,
        )


_REMOVED = r"[\x{0}-\x{8}\x{b}\x{e}-\x{1f}\x{7f}\x{8f}\x{9f}]"
_SPACES = r"[ \x{9}\x{a}\x{c}\x{d}\x{1680}\x{200b}-\x{200f}\x{2028}\x{2029}\x{2581}\x{feff}\x{fffd}]+"
_WAVE, _NONCHARACTER = "～", "\ufdd0"


def export_tokenizer(vocabulary: UnigramTable, path: Path) -> None:
    """Write the tokenizer: the unigram table behind the normalisation of XLM-RoBERTa.

    That normalisation is NFKC, but for the full-width tilde, which stays; some control characters go and runs of white
    space become one space. The engine in the wheel maps each character by itself, whereas the published model composes
    too: the two differ on decomposed and half-width voiced kana, where this follows the published model. White space at
    the end of a text goes, and neighbouring unknown characters are one token, as in the published model.
    """
    scored_pieces = list(zip(vocabulary.pieces, vocabulary.scores.tolist(), strict=True))
    tokenizer = Tokenizer(models.Unigram(scored_pieces, unk_id=vocabulary.unknown_id, byte_fallback=False))
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.Replace(Regex(_REMOVED), ""),
            normalizers.Replace(_WAVE, _NONCHARACTER),
            normalizers.NFKC(),
            normalizers.Replace(_NONCHARACTER, _WAVE),
            normalizers.Replace(Regex(_SPACES), " "),
            normalizers.Strip(left=True, right=True),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always", split=True)
    path.write_text(tokenizer.to_str(), encoding="utf-8")
