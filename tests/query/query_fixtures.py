"""A small knowledge base in real LanceDB tables."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:  # every run of pytest loads this module: the fixtures import what they take
    from query_data import BagOfWordsEmbedder

    from rag_assets.query import KnowledgeBase
    from rag_assets.query.stored import StoredTables
    from rag_assets.store.vectors.store import VectorStore


def build(folder: Path, embedder: "BagOfWordsEmbedder") -> "VectorStore":
    from query_data import CHUNKS, QUESTIONS, SUMMARIES, table

    from rag_assets.contracts.tables import CHUNK_INDEX, QUESTION_INDEX, SUMMARY_INDEX
    from rag_assets.store.vectors.store import VectorStore

    store = VectorStore(folder)
    store.sync(CHUNK_INDEX, {"00": table(CHUNK_INDEX, CHUNKS)}, embedder)
    store.sync(SUMMARY_INDEX, {"00": table(SUMMARY_INDEX, SUMMARIES)}, embedder)
    store.sync(QUESTION_INDEX, {"00": table(QUESTION_INDEX, QUESTIONS)}, embedder)
    return store


def build_graph(
    folder: Path, store: "VectorStore", embedder: "BagOfWordsEmbedder"
) -> "tuple[StoredTables, dict[str, int]]":
    """Stored tables of an entity graph over the passages, and the versions of its serving tables."""
    from graph_data import fill_lake, index_graph, stored_tables
    from query_data import CHUNKS

    from rag_assets.store.lake import Lake

    lake = Lake(folder)
    names = {
        "specs/token.xlsx#1.0": ("顧客登録", "顧客名"),
        "specs/token.xlsx#1.1": ("E0004",),
        "specs/old/plan.pdf#3.0": ("annual plan", "token"),
    }
    fill_lake(lake, {row["chunk_id"]: row["text"] for row in CHUNKS}, names)
    return stored_tables(lake), index_graph(lake, store, embedder)


@pytest.fixture(scope="session")
def embedder() -> "BagOfWordsEmbedder":
    from query_data import BagOfWordsEmbedder

    return BagOfWordsEmbedder()


@pytest.fixture
def store(tmp_path: Path, embedder: "BagOfWordsEmbedder") -> "VectorStore":
    """A store to write to."""
    return build(tmp_path, embedder)


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory, embedder: "BagOfWordsEmbedder") -> "KnowledgeBase":
    """A knowledge base to read from."""
    from query_data import make_base

    from rag_assets.contracts.tables import CHUNK_INDEX, QUESTION_INDEX, SUMMARY_INDEX

    store = build(tmp_path_factory.mktemp("base"), embedder)
    versions = {each.name: store.optimize(each) for each in (CHUNK_INDEX, SUMMARY_INDEX, QUESTION_INDEX)}
    stored, graph = build_graph(tmp_path_factory.mktemp("lake"), store, embedder)
    return make_base(store, embedder, versions | graph, stored=stored)
