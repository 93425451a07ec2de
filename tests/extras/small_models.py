"""Models of transformers made small, with vocabularies of whole words, and something for them to learn.

Questions name eight things by one word, documents by another: a rewrite must add the word that retrieval needs. Labels
teach it for four of the things, so that the other words can only be discovered.
"""

import importlib
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rag_assets.query.search.trained_rewriting import QueryForm
from rag_assets.training.rewriter import Item, Penalties, RewriterData, RewriterOptions

NOUNS = {
    "car": "automobile", "doctor": "physician", "film": "movie", "gift": "present",
    "house": "residence", "shop": "store", "ship": "vessel", "teacher": "instructor",
}  # fmt: skip
OPENINGS = (
    *("where is the", "who looks after the", "when was the", "how large is the", "tell me about the"),
    "what does the",
)
ENDINGS = ("today", "in town", "built", "here")
_LABELLED = 4  # things whose word labels teach


def write_small_model(folder: Path, texts: Iterable[str], *, is_causal: bool = False, seed: int = 0) -> None:
    """Write a T5, or a Llama, of random weights as a folder of transformers, some 0.1 million parameters.

    Args:
        folder: Where.
        texts: Its vocabulary is their words, split at blanks.
        is_causal: Whether it is a Llama.
        seed: Of the weights.
    """
    torch: Any = importlib.import_module("torch")
    transformers: Any = importlib.import_module("transformers")
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    words = sorted({word for text in texts for word in text.split()})
    ids = {word: number for number, word in enumerate(["<pad>", "</s>", "<unk>", *words])}
    made: Any = Tokenizer(models.WordLevel(ids, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    if not is_causal:
        made.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    )
    torch.manual_seed(seed)
    marks = {"pad_token_id": 0, "eos_token_id": 1}
    if is_causal:
        config = transformers.LlamaConfig(
            vocab_size=len(ids), hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=4, max_position_embeddings=128, bos_token_id=None, **marks,
        )  # fmt: skip
        model = transformers.LlamaForCausalLM(config)
    else:
        config = transformers.T5Config(
            vocab_size=len(ids), d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4, dropout_rate=0.0,
            decoder_start_token_id=0, **marks,
        )  # fmt: skip
        model = transformers.T5ForConditionalGeneration(config)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def noun_of(question: str) -> str:
    """The thing that a question names."""
    return next(word for word in question.split() if word in NOUNS)


def gain(item: Item, text: str) -> float:
    """Reciprocal of the number of documents that a rewrite names, where the right one is among them."""
    named = {word for word in text.split() if word in NOUNS.values()}
    return 1 / len(named) if NOUNS[noun_of(item.question)] in named else 0.0


def toy(
    folder: Path, *, seed: int = 0, is_causal: bool = False, makes_model: bool = True
) -> tuple[RewriterData, list[Item]]:
    """Write a model to `folder/model`; what it learns from, and questions held out."""
    questions = [f"{opening} {noun} {ending}" for opening in OPENINGS for noun in NOUNS for ending in ENDINGS]
    if makes_model:
        vocabulary = [*questions, *NOUNS.values(), "keywords:", "Question:", "Search"]
        write_small_model(folder / "model", vocabulary, is_causal=is_causal, seed=seed)
    random.Random(1).shuffle(questions)
    items = [Item(question, QueryForm.KEYWORDS) for question in questions]
    training, validation, held_out = items[:110], items[110:140], items[140:]
    labelled = list(NOUNS)[:_LABELLED]
    nouns = ((item, noun_of(item.question)) for item in training)
    labels = [(item, f"{noun} {NOUNS[noun]}") for item, noun in nouns if noun in labelled]
    return RewriterData(training, validation, labels), held_out


def toy_options(folder: Path, *, steps: int, seed: int = 0) -> RewriterOptions:
    """How it is trained."""
    return RewriterOptions(
        model=str(folder / "model"), learning_rate=1e-3, warm_up_learning_rate=3e-3, warm_up_epochs=4, steps=steps,
        batch=16, samples=5, most_tokens=6, baseline_steps=100, penalties=Penalties(0.01, 0.1, 2, 4), accumulation=1,
        precision="no", device="cpu", seed=seed, validation_steps=25, patience=0, checkpoint_steps=5, threads=1,
    )  # fmt: skip
