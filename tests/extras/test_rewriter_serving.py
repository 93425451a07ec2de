"""Serving a trained rewriter: an exported model writes what torch writes; one that earns it is adopted, and undone."""

import importlib
import importlib.util
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from small_models import write_small_model

from rag_assets.cli import main
from rag_assets.contracts.errors import ModelError
from rag_assets.evaluation.questions import Evidence, Question, question_line
from rag_assets.models.text_to_text import EXPORTED, ExportedTextToText, TextToText, open_text_to_text
from rag_assets.models.text_to_text_export import export
from rag_assets.pipeline.home import Home

pytestmark = [
    pytest.mark.skipif(
        importlib.util.find_spec("transformers") is None or importlib.util.find_spec("torch") is None,
        reason="the extra `train` is there in the environment of `make test-extras` only",
    ),
    pytest.mark.filterwarnings("default"),
]

WORDS = [f"w{number}" for number in range(300)]
MARKS = {"vocab_size": 304, "pad_token_id": 0, "eos_token_id": 1}
T5 = {"d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": 2, "num_heads": 6, "decoder_start_token_id": 0, **MARKS}
CAUSAL = {
    "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 512, "bos_token_id": None, **MARKS,
}  # fmt: skip
GATED = {**T5, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}


def write_model(folder: Path, kind: str, config: dict[str, Any]) -> None:
    """A model whose random weights differ enough that it writes other tokens for other prompts."""
    torch: Any = importlib.import_module("torch")
    transformers: Any = importlib.import_module("transformers")
    write_small_model(folder, WORDS, is_causal="num_heads" not in config)
    torch.manual_seed(0)
    module = next(
        getattr(transformers, name)
        for name in (f"{kind}ForConditionalGeneration", f"{kind}ForCausalLM", f"{kind}LMHeadModel")
        if hasattr(transformers, name)
    )(getattr(transformers, f"{kind}Config")(**config))
    for name, weights in module.named_parameters():
        if weights.dim() == 2 or "bias" in name:
            torch.nn.init.normal_(weights, std=0.5 if "attention_bias" in name else 0.15)
    module.save_pretrained(folder)


@pytest.mark.parametrize(
    ("kind", "config"),
    [
        ("T5", T5),
        ("T5", GATED),
        ("MT5", T5),
        ("Llama", CAUSAL),
        ("Llama", {**CAUSAL, "num_key_value_heads": 4, "attention_bias": True}),
    ],
)
def test_an_exported_model_writes_what_torch_writes(tmp_path: Path, kind: str, config: dict[str, Any]) -> None:
    """Token by token in float32, for prompts of different length together and one that is cut."""
    write_model(tmp_path, kind, config)
    export(tmp_path, 24, is_quantized=False)
    chance = random.Random(0)
    prompts = [" ".join(chance.choices(WORDS, k=chance.randrange(1, 40))) for _ in range(29)]
    prompts.append(" ".join(chance.choices(WORDS, k=400)))
    ours, theirs = ExportedTextToText(tmp_path, 1), TextToText(str(tmp_path), threads=1)
    assert ours.is_causal == theirs.is_causal
    written = theirs.likeliest(prompts, 20)
    assert ours.likeliest(prompts, 20) == written
    assert len(set(written)) > 25, "a model that writes the same always would prove nothing"
    assert [text for prompt in prompts for text in ours.likeliest([prompt], 20)] == written
    export(tmp_path, 24)
    first = [text.split()[:1] for text in ExportedTextToText(tmp_path, 1).likeliest(prompts, 20)]
    assert sum(ours == text.split()[:1] for ours, text in zip(first, written, strict=True)) >= 15


def test_what_cannot_be_exported_is_served_by_torch(tmp_path: Path) -> None:
    config = {"n_embd": 64, "n_layer": 2, "n_head": 4, "bos_token_id": 1, **MARKS}
    write_model(tmp_path, "GPT2", config)
    with pytest.raises(ModelError, match="GPT2LMHeadModel of this kind cannot be exported"):
        export(tmp_path, 24)
    assert not list(tmp_path.glob(f"{EXPORTED}*"))
    assert isinstance(open_text_to_text(tmp_path), TextToText)


CODES = {"car": "zurvexo", "shop": "pelmira", "ship": "tagrond", "film": "yoskalt", "house": "quembri"}
KINDS = ("rule", "limit", "owner", "price", "color", "period", "contact", "place")
OPENINGS = ("what is the", "tell me the", "please show the")
TRAINING = {
    "BATCH": "16", "SAMPLES": "10", "MOST_TOKENS": "6", "LEARNING_RATE": "0.002", "WARM_UP_LEARNING_RATE": "0.003",
    "WARM_UP_EPOCHS": "20", "STEPS": "600", "SHORTEST_TOKENS": "2", "LONGEST_TOKENS": "5", "VALIDATION_STEPS": "20",
    "PATIENCE": "0", "FORMS": '["keywords"]', "LEVEL": "document", "REWARD": "MRR@10", "THREADS": "1",
    "DEVICE": "cpu",
}  # fmt: skip


def test_a_rewriter_that_earns_it_is_adopted_served_without_torch_and_undone(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Documents name things by names that neither rules nor vectors know: they can only be learned."""
    folder, path = Path(home.settings.sources[0]), tmp_path / "questions.jsonl"
    questions: list[Question] = []
    for thing, code in CODES.items():
        for kind in KINDS:
            name, text = f"{len(questions)}.md", f"{code} {kind}"
            (folder / name).write_text(f"{text}\n", encoding="utf-8")
            evidence = (Evidence(name, quote=text),)
            asked = [f"{opening} {thing} {kind}" for opening in OPENINGS]
            questions += [Question(each, each, "en", "notes", True, evidence) for each in asked]
    path.write_text("".join(f"{question_line(each)}\n" for each in questions), encoding="utf-8")
    asked = [each.text for each in questions]
    write_small_model(tmp_path / "model", [*asked, *CODES.values(), "keywords:"])
    for name, value in TRAINING.items():
        monkeypatch.setenv(f"RAG_REWRITER_TRAINING__{name}", value)

    def command(*arguments: str) -> str:
        result = CliRunner().invoke(main, ["--home", str(home.path), *arguments])
        assert result.exit_code == 0, result.output
        return result.output

    command("index", str(folder))
    before = rewrites(home.path, asked)
    assert not any("trained:" in rewriter for rewriter, _ in before)
    output = command("train", "rewriter", str(path), "--model", str(tmp_path / "model"))
    assert "nothing is worse beyond its interval" in output
    assert "in force since version" in output
    (adopted,) = (home.path / "learned/rewriter_model").iterdir()
    assert (adopted / EXPORTED).is_dir()
    after = rewrites(home.path, asked)
    assert all(rewriter.startswith(f"rewriter: trained:{adopted.name}") for rewriter, _ in after)
    named = [
        CODES[question.split()[-2]] in keywords.split() for question, (_, keywords) in zip(asked, after, strict=True)
    ]
    assert sum(named) > len(named) / 3, "no frozen rewriter knows such a name"
    command("train", "undo", "rewriter")
    assert rewrites(home.path, asked) == before


def rewrites(home: Path, questions: list[str]) -> list[tuple[str, str]]:
    """Rewriter and keywords of questions, as the trace tells; asked in a process that cannot import torch."""
    code = """
import json, sys
sys.modules["torch"] = sys.modules["transformers"] = None
from rag_assets.pipeline.opening import open_knowledge_base
base = open_knowledge_base(sys.argv[1])
steps = [step for text in json.load(sys.stdin) for step in base.search(text, "rewrite", 1).trace.steps]
print(json.dumps([step.texts[:2] for step in steps if step.operation == "rewrite"]))
"""
    command = [sys.executable, "-c", code, str(home)]
    done = subprocess.run(
        command, input=json.dumps(questions), capture_output=True, text=True, check=False, env=os.environ
    )
    assert done.returncode == 0, done.stderr
    return [(rewriter, keywords) for rewriter, keywords in json.loads(done.stdout)]
