"""Models of sentence-transformers; those tests that run one need the extra and are skipped without it."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rag_assets.contracts.errors import ModelError
from rag_assets.contracts.ports import EmbeddingKind
from rag_assets.models.embedding.embedders import load_embedder
from rag_assets.models.embedding.sentence_transformers import SentenceTransformersEmbedder

TEXTS = ["alpha beta gamma", "beta", "", "gamma gamma alpha " * 100, "delta"]
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "alpha", "beta", "gamma", "delta", "query", "passage", ":"]


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT of two small layers with random weights, saved as sentence-transformers saves it."""
    sentence_transformers: Any = pytest.importorskip(
        "sentence_transformers", reason="the extra sentence-transformers is not installed"
    )
    transformers: Any = pytest.importorskip("transformers", reason="the extra sentence-transformers is not installed")
    torch: Any = pytest.importorskip("torch", reason="the extra sentence-transformers is not installed")
    bert: Path = tmp_path_factory.mktemp("bert")
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(WORDS), hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
        max_position_embeddings=48, initializer_range=1.0,
    )  # fmt: skip
    transformers.BertModel(config).save_pretrained(bert)
    vocabulary = {word: number for number, word in enumerate(WORDS)}
    transformers.BertTokenizer(vocab=vocabulary, model_max_length=48).save_pretrained(bert)
    model = sentence_transformers.SentenceTransformer(str(bert), device="cpu")
    folder: Path = tmp_path_factory.mktemp("models") / "plain"
    model.save(str(folder))
    return folder


@pytest.fixture(scope="session")
def e5_folder(model_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("named") / "multilingual-e5-small"
    folder.symlink_to(model_folder, target_is_directory=True)
    return folder


@pytest.fixture(scope="session")
def prompted_folder(model_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("prompted") / "model"
    for path in model_folder.rglob("*"):
        if path.is_file():
            copy = folder / path.relative_to(model_folder)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())
    settings = folder / "config_sentence_transformers.json"
    content = json.loads(settings.read_text(encoding="utf-8"))
    content["prompts"] = {"query": "query : ", "document": "passage : "}
    settings.write_text(json.dumps(content), encoding="utf-8")
    return folder


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    embedder = load_embedder("sentence-transformers", "some/model", 1, tmp_path)
    with pytest.raises(ModelError, match=r"pip install 'rag-assets\[sentence-transformers\]'"):
        embedder.embed(["text"], EmbeddingKind.QUERY)


def test_vectors_have_unit_length_and_keep_their_order(model_folder: Path) -> None:
    embedder = SentenceTransformersEmbedder(str(model_folder), threads=1)
    vectors = embedder.embed(TEXTS, EmbeddingKind.PASSAGE)
    assert vectors.shape == (len(TEXTS), embedder.dimension)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    for text, vector in zip(TEXTS, vectors, strict=True):
        np.testing.assert_array_equal(embedder.embed([text], EmbeddingKind.PASSAGE)[0], vector)
    assert embedder.embed([], EmbeddingKind.QUERY).shape == (0, embedder.dimension)


def test_a_plain_model_knows_no_prefix(model_folder: Path) -> None:
    embedder = SentenceTransformersEmbedder(str(model_folder))
    query, passage = (embedder.embed(["alpha"], kind) for kind in EmbeddingKind)
    np.testing.assert_array_equal(query, passage)
    assert embedder.window_tokens == 46


@pytest.mark.parametrize("fixture", ["e5_folder", "prompted_folder"])
def test_prefixes_are_honoured(fixture: str, model_folder: Path, request: pytest.FixtureRequest) -> None:
    prefixed = SentenceTransformersEmbedder(str(request.getfixturevalue(fixture)))
    plain = SentenceTransformersEmbedder(str(model_folder))
    for kind in EmbeddingKind:
        expected = plain.embed([f"{kind}: alpha"], kind)
        np.testing.assert_array_equal(prefixed.embed(["alpha"], kind), expected)
    assert prefixed.window_tokens == 44


def test_tokens_are_counted_beyond_the_window(model_folder: Path) -> None:
    embedder = SentenceTransformersEmbedder(str(model_folder))
    assert embedder.count_tokens(TEXTS) == [3, 1, 0, 300, 1]
    assert embedder.count_tokens([]) == []


def test_the_name_follows_the_files(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    weights = folder / "model.safetensors"
    weights.write_bytes(bytes(3_000_000))
    names = {SentenceTransformersEmbedder(str(folder)).name, SentenceTransformersEmbedder(str(folder)).name}
    weights.write_bytes(bytes(2_999_999) + b"1")
    names.add(SentenceTransformersEmbedder(str(folder)).name)
    assert len(names) == 2
    assert SentenceTransformersEmbedder("some/model@abc").name == "sentence-transformers/some/model@abc"


def test_a_folder_without_a_model_is_named(tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers", reason="the extra sentence-transformers is not installed")
    with pytest.raises(ModelError, match="sentence-transformers cannot load it"):
        SentenceTransformersEmbedder(str(tmp_path)).count_tokens(["x"])
