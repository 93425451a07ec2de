"""sentence-transformers on real weights; runs where it is installed (`make test-extras`)."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from e5_folder import write_e5_folder

from rag_assets.cli import main
from rag_assets.contracts.ports import EmbeddingKind
from rag_assets.models.embedding import embedders
from rag_assets.models.embedding.e5_weights import Adapter, Precision, write_adapter
from rag_assets.models.embedding.embedders import E5Embedder
from rag_assets.models.embedding.sentence_transformers import SentenceTransformersEmbedder

pytestmark = [
    pytest.mark.skipif(
        importlib.util.find_spec("sentence_transformers") is None,
        reason="sentence-transformers is there in the environment of `make test-extras` only",
    ),
    # What torch and transformers warn of is theirs.
    pytest.mark.filterwarnings("default"),
]
TEXTS = [
    "トークンの有効期限は三十分です。期限を過ぎると再びログインします。",
    "The token expires after thirty minutes; after that people sign in again.",
    "注文番号は一意です。",
    "Pesticide imports of the United States were sold for two billion dollars.",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found: Path = tmp_path_factory.mktemp("weights") / "multilingual-e5-small"
    write_e5_folder(found)
    return found


def test_vectors_are_those_of_the_model(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against the same weights in float32 by ONNX, without the adapter, prefixes included."""
    write_adapter(tmp_path / "none.npz", Adapter({}))
    monkeypatch.setattr(embedders, "_RETRIEVAL", tmp_path / "none.npz")
    embedder = SentenceTransformersEmbedder(str(folder), threads=1)
    reference = E5Embedder(tmp_path, threads=1, precision=Precision.FLOAT32)
    assert embedder.count_tokens(TEXTS) == reference.count_tokens(TEXTS)
    for kind in EmbeddingKind:
        ours, theirs = embedder.embed(TEXTS, kind), reference.embed(TEXTS, kind)
        assert ((ours * theirs).sum(axis=1) > 0.9999).all()
    (query,) = embedder.embed(["When does a token expire?"], EmbeddingKind.QUERY)
    order = np.argsort(-(embedder.embed(TEXTS, EmbeddingKind.PASSAGE) @ query))
    assert set(order[:2]) == {0, 1}


def test_a_folder_is_indexed_and_searched(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = tmp_path / "files"
    files.mkdir()
    for number, text in enumerate(TEXTS):
        (files / f"{number}.txt").write_text(text, "utf-8")
    monkeypatch.setenv("RAG_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("RAG_EMBEDDING__PROVIDER", "sentence-transformers")
    monkeypatch.setenv("RAG_EMBEDDING__MODEL", str(folder))
    runner = CliRunner()
    indexed = runner.invoke(main, ["index", f"files={files}"])
    assert indexed.exit_code == 0, indexed.output
    for query, expected in (("when must I sign in again", {"0.txt", "1.txt"}), ("注文の番号は重複するか", {"2.txt"})):
        found = runner.invoke(main, ["search", query, "--mode", "vector", "-k", str(len(expected)), "--json"])
        assert found.exit_code == 0, found.output
        hits = json.loads(found.stdout)["hits"]
        assert {Path(hit["document_id"]).name for hit in hits} == expected
