"""A small knowledge base in real LanceDB tables."""

from pathlib import Path

import pytest
from query_data import CHUNKS, SUMMARIES, BagOfWordsEmbedder, table

from rag_assets.contracts.tables import CHUNK_INDEX, SUMMARY_INDEX
from rag_assets.query import KnowledgeBase
from rag_assets.store.vectors import VectorStore


def build(folder: Path, embedder: BagOfWordsEmbedder) -> VectorStore:
    store = VectorStore(folder)
    store.sync(CHUNK_INDEX, {"00": table(CHUNK_INDEX, CHUNKS)}, embedder)
    store.sync(SUMMARY_INDEX, {"00": table(SUMMARY_INDEX, SUMMARIES)}, embedder)
    return store


@pytest.fixture(scope="session")
def embedder() -> BagOfWordsEmbedder:
    return BagOfWordsEmbedder()


@pytest.fixture
def store(tmp_path: Path, embedder: BagOfWordsEmbedder) -> VectorStore:
    """A store to write to."""
    return build(tmp_path, embedder)


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory, embedder: BagOfWordsEmbedder) -> KnowledgeBase:
    """A knowledge base to read from."""
    store = build(tmp_path_factory.mktemp("base"), embedder)
    versions = {each.name: store.optimize(each) for each in (CHUNK_INDEX, SUMMARY_INDEX)}
    return KnowledgeBase(store, embedder, versions)
