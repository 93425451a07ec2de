"""Cross-encoders of sentence-transformers; those tests that run one need the extra and are skipped without it."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from query_data import BagOfWordsEmbedder, chunk, make_base, table

from rag_assets.contracts.errors import ModelError
from rag_assets.contracts.tables import CHUNK_INDEX
from rag_assets.evaluation.evidence import Level
from rag_assets.evaluation.questions import Question
from rag_assets.models.embedding.sentence_transformers import CrossEncoderReranker
from rag_assets.pipeline.home import Home
from rag_assets.pipeline.opening import reranker
from rag_assets.pipeline.settings import load_settings
from rag_assets.query.search.ranking_weights import SHIPPED, Ranking
from rag_assets.store.vectors.store import VectorStore
from rag_assets.training.pairs import distilled, unjudged_questions
from rag_assets.training.ranking import terms_of

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "alpha", "beta", "gamma", "delta"]
TEXTS = ["alpha beta", "gamma", "", "delta " * 500, "beta"]


def save(folder: Path, labels: int) -> Path:
    """A BERT of two small layers with random weights that scores pairs."""
    pytest.importorskip("sentence_transformers", reason="the extra sentence-transformers is not installed")
    transformers: Any = pytest.importorskip("transformers", reason="the extra sentence-transformers is not installed")
    torch: Any = pytest.importorskip("torch", reason="the extra sentence-transformers is not installed")
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(WORDS), hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
        max_position_embeddings=48, initializer_range=1.0, num_labels=labels,
    )  # fmt: skip
    transformers.BertForSequenceClassification(config).save_pretrained(folder)
    vocabulary = {word: number for number, word in enumerate(WORDS)}
    transformers.BertTokenizer(vocab=vocabulary, model_max_length=48).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("crossencoder"), 1)


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    reranker = CrossEncoderReranker("some/model")
    assert reranker.name == "cross-encoder/some/model/512"
    assert reranker.rerank("query", []).shape == (0,)
    with pytest.raises(ModelError, match=r"pip install 'rag-assets\[sentence-transformers\]'"):
        reranker.rerank("query", ["text"])


def test_settings_choose_it(tmp_path: Path) -> None:
    assert reranker(Home(load_settings(home=tmp_path))) is None
    found = reranker(Home(load_settings(home=tmp_path, reranking={"model": "some/model"})))
    assert isinstance(found, CrossEncoderReranker)


def test_the_name_follows_the_files(tmp_path: Path) -> None:
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(b"1")
    names = {CrossEncoderReranker(str(tmp_path)).name}
    weights.write_bytes(b"2")
    names.add(CrossEncoderReranker(str(tmp_path)).name)
    assert len(names) == 2


def test_scores_are_the_numbers_of_the_model(model_folder: Path) -> None:
    transformers: Any = pytest.importorskip("transformers", reason="the extra sentence-transformers is not installed")
    torch: Any = pytest.importorskip("torch", reason="the extra sentence-transformers is not installed")
    scores = CrossEncoderReranker(str(model_folder), threads=1).rerank("alpha", TEXTS)
    assert scores.shape == (len(TEXTS),)
    assert scores.dtype == np.float32
    model = transformers.BertForSequenceClassification.from_pretrained(model_folder).eval()
    tokenizer = transformers.BertTokenizer.from_pretrained(model_folder)
    for text, score in zip(TEXTS, scores, strict=True):
        with torch.no_grad():
            logits = model(**tokenizer([("alpha", text)], return_tensors="pt", truncation=True, max_length=48)).logits
        assert score == pytest.approx(float(logits), abs=1e-4)


def test_its_scores_are_a_signal_of_the_search_and_teach_weights(model_folder: Path, tmp_path: Path) -> None:
    embedder, model = BagOfWordsEmbedder(), CrossEncoderReranker(str(model_folder), threads=1)
    rows = [chunk(f"notes/{number}.md", 1, 0, f"alpha {word}") for number, word in enumerate(WORDS[5:])]
    store = VectorStore(tmp_path)
    store.sync(CHUNK_INDEX, {"00": table(CHUNK_INDEX, rows)}, embedder)
    weights = {each: replace(SHIPPED[each], reranker=1000.0) for each in SHIPPED}
    versions = {CHUNK_INDEX.name: store.optimize(CHUNK_INDEX)}
    base = make_base(store, embedder, versions, reranker=model, ranking=Ranking(weights))
    result = base.search("alpha", "weighted", 4)
    assert [step.operation for step in result.trace.steps].count("rerank") == 1
    (read,) = (step for step in result.trace.steps if step.operation == "rerank")
    raw = {each.chunk_id: each.after for each in read.scores}
    assert result.hits[0].chunk_id == max(raw, key=raw.__getitem__)
    signals = base.ranking_signals("alpha")
    assert dict(zip((each.key for each in signals.candidates), signals.read, strict=True)) == pytest.approx(raw)
    [judged] = distilled(unjudged_questions(base, [Question("q", "alpha")]))
    terms = terms_of([judged], Level.PASSAGE)
    assert terms.target[0].argmax() == np.nanargmax(judged.taught)
    assert terms.target.sum() == pytest.approx(1)


def test_a_model_of_several_labels_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="one score a passage"):
        CrossEncoderReranker(str(save(tmp_path, 3))).rerank("alpha", TEXTS)


def test_a_folder_without_a_model_is_named(tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers", reason="the extra sentence-transformers is not installed")
    with pytest.raises(ModelError, match="cannot load it"):
        CrossEncoderReranker(str(tmp_path)).rerank("alpha", TEXTS)
