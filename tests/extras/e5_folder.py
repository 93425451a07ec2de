"""multilingual-e5-small as a folder of sentence-transformers, from the weights that the default embedder reads."""

import importlib
from pathlib import Path
from typing import Any

import numpy as np

from rag_assets.models.embedding.e5_export import export_tokenizer
from rag_assets.models.embedding.e5_weights import E5Weights, installed_path, read_weights

_BEGIN_ID, _PADDING_ID, _END_ID = 0, 1, 2
_POSITIONS = 512
_LAYER = {
    "attention.self.query": "q", "attention.self.key": "k", "attention.self.value": "v",
    "attention.output.dense": "ao", "attention.output.LayerNorm": "aln", "intermediate.dense": "fi",
    "output.dense": "fo", "output.LayerNorm": "oln",
}  # fmt: skip


def write_e5_folder(folder: Path) -> None:
    """Write model, tokenizer and pooling, some 470 MB."""
    transformers: Any = importlib.import_module("transformers")
    sentence_transformers: Any = importlib.import_module("sentence_transformers")
    modules: Any = importlib.import_module("sentence_transformers.sentence_transformer.modules")
    weights = read_weights(installed_path())
    state = _state(weights)
    config = transformers.BertConfig(
        vocab_size=len(state["embeddings.word_embeddings.weight"]), hidden_size=weights.hidden,
        num_hidden_layers=weights.layers, num_attention_heads=weights.heads, intermediate_size=weights.feed_forward,
        max_position_embeddings=_POSITIONS, layer_norm_eps=weights.epsilon,
        pad_token_id=_PADDING_ID,
    )  # fmt: skip
    bert = transformers.BertModel(config, add_pooling_layer=False)
    bert.load_state_dict(state, strict=True)
    plain = folder.with_name("bert")
    bert.save_pretrained(plain)
    _tokenizer(weights, plain / "tokenizer.json").save_pretrained(plain)
    parts = [modules.Transformer(str(plain)), modules.Pooling(weights.hidden, "mean"), modules.Normalize()]
    sentence_transformers.SentenceTransformer(modules=parts, device="cpu").save(str(folder))


def _state(weights: E5Weights) -> dict[str, Any]:
    """Tensors under their names in a BERT of transformers."""
    torch: Any = importlib.import_module("torch")
    found: dict[str, np.ndarray[Any, np.dtype[np.float32]]] = {
        "embeddings.word_embeddings.weight": weights.matrix("emb.word", weights.hidden).dequantized(),
        "embeddings.position_embeddings.weight": weights.vector("emb.pos").reshape(-1, weights.hidden),
        "embeddings.token_type_embeddings.weight": weights.vector("emb.type").reshape(-1, weights.hidden),
        "embeddings.LayerNorm.weight": weights.vector("emb.ln.w"),
        "embeddings.LayerNorm.bias": weights.vector("emb.ln.b"),
    }
    for layer in range(weights.layers):
        for theirs, ours in _LAYER.items():
            name, stored = f"encoder.layer.{layer}.{theirs}", f"l{layer}.{ours}"
            columns = weights.feed_forward if ours == "fo" else weights.hidden
            is_vector = ours.endswith("ln")
            found[f"{name}.weight"] = (
                weights.vector(f"{stored}.w") if is_vector else weights.matrix(f"{stored}.w", columns).dequantized()
            )
            found[f"{name}.bias"] = weights.vector(f"{stored}.b")
    return {name: torch.from_numpy(values.copy()) for name, values in found.items()}


def _tokenizer(weights: E5Weights, path: Path) -> Any:
    transformers: Any = importlib.import_module("transformers")
    from tokenizers import Tokenizer, processors

    export_tokenizer(weights.vocabulary, path)
    made = Tokenizer.from_file(str(path))
    marks = [("<s>", _BEGIN_ID), ("</s>", _END_ID)]
    made.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=marks)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, model_max_length=_POSITIONS, bos_token="<s>", eos_token="</s>", cls_token="<s>",
        sep_token="</s>", unk_token="<unk>", pad_token="<pad>",
    )  # fmt: skip
