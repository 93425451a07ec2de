"""What the small knowledge base of these tests holds, and an embedder that counts words."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rag_assets.contracts.ports import Embedder, EmbeddingKind, LanguageModel, Reranker, Rewriter
from rag_assets.contracts.tables import COMPUTED_COLUMNS, EMBEDDED_TEXT, VectorTable
from rag_assets.pipeline.options import StepOptions
from rag_assets.pipeline.settings import Settings
from rag_assets.query import HydeOptions, KnowledgeBase, QueryModels, QueryOptions, StoredTables
from rag_assets.store.lake import Lake
from rag_assets.store.vectors.store import VectorStore
from rag_assets.text.folding import search_terms

DIMENSION = 64


class BagOfWordsEmbedder:
    """Counts the hashed terms of a text: texts are near that share terms. No language model."""

    name = "bag-of-words"
    dimension = DIMENSION
    window_tokens = 512

    def __init__(self) -> None:
        self.calls: list[int] = []

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]

    def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> NDArray[np.float32]:  # noqa: ARG002  one side is like the other
        self.calls.append(len(texts))
        vectors = np.full((len(texts), DIMENSION), 1e-3, dtype=np.float32)
        for row, text in enumerate(texts):
            for term in search_terms(text).split():
                vectors[row, sha256(term.encode()).digest()[0] % DIMENSION] += 1
        unit: NDArray[np.float32] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return unit


_STEPS = StepOptions(Settings())
OPTIONS = QueryOptions(_STEPS.search_defaults, _STEPS.reader, _STEPS.global_answers, HydeOptions(), 50)


def make_base(
    store: VectorStore,
    embedder: Embedder,
    versions: Mapping[str, int],
    stored: StoredTables | None = None,
    *,
    model: LanguageModel | None = None,
    rewriter: Rewriter | None = None,
    reranker: Reranker | None = None,
    **options: Any,
) -> KnowledgeBase:
    """A knowledge base with the options of the settings, but for those given; without stored tables with empty ones."""
    stored = stored or StoredTables(Lake(Path("unwritten")), {})
    models = QueryModels(model, rewriter, reranker)
    return KnowledgeBase(store, embedder, versions, replace(OPTIONS, **options), stored, models)


def table(declaration: VectorTable, records: Sequence[Mapping[str, Any]]) -> pa.Table:
    given = [field for field in declaration.fields if field.name not in COMPUTED_COLUMNS]
    schema = pa.schema([*given, pa.field(EMBEDDED_TEXT, pa.string(), nullable=False)])
    return pa.Table.from_pylist([dict(record) for record in records], schema=schema)


def chunk(document_id: str, page: int, index: int, text: str, **changes: Any) -> dict[str, Any]:
    return {
        "chunk_id": f"{document_id}#{page}.{index}",
        "page_id": f"{document_id}#{page}",
        "document_id": document_id,
        "shard": "00",
        "page_number": page,
        "page_name": None,
        "folder": document_id.rpartition("/")[0],
        "format": document_id.rpartition(".")[2],
        "language": "ja" if any(character > "\u3000" for character in text) else "en",
        "modified_at": datetime(2024, 1, page, 12, tzinfo=UTC),
        "title": document_id,
        "beginning": text,
        "text": text,
        "cell_range": None,
        "box": None,
        EMBEDDED_TEXT: text,
        **changes,
    }


CHUNKS = [
    chunk("specs/token.xlsx", 1, 0, "顧客登録の画面で顧客名を入力する", page_name="画面", cell_range="B4:F20"),
    chunk("specs/token.xlsx", 1, 1, "エラーコード E0004 は重複を表す", page_name="画面", cell_range="B21:F30"),
    chunk("specs/token.xlsx", 2, 0, "clientName は必須項目", page_name="項目's 100%_定義", cell_range="A1:C9"),
    chunk("specs/old/plan.pdf", 3, 0, "The annual plan mentions token renewal", box=[1.0, 2.0, 3.0, 4.0]),
    chunk("notes/it's.md", 1, 0, "Renewal of the contract AND nothing else"),
    chunk("notes/税.txt", 1, 0, "税の納付"),
]


def summary(content_format: str, document_id: str, page: int | None, text: str) -> dict[str, Any]:
    subject = document_id if page is None else f"{document_id}#{page}"
    return {
        "summary_id": f"{content_format}:{subject}",
        "content_format": content_format,
        "document_id": document_id,
        "page_id": None if page is None else subject,
        "shard": "00",
        "folder": document_id.rpartition("/")[0],
        "format": document_id.rpartition(".")[2],
        "language": "en",
        "modified_at": datetime(2024, 1, page or 1, 12, tzinfo=UTC),
        "text": text,
        EMBEDDED_TEXT: text,
    }


SUMMARIES = [
    summary("file_summary", "specs/token.xlsx", None, "顧客登録の設計"),
    summary("file_summary", "specs/old/plan.pdf", None, "annual plan"),
    summary("page_summary", "specs/token.xlsx", 1, "顧客登録の画面"),
    summary("page_summary", "specs/token.xlsx", 2, "項目の定義"),
    summary("page_summary", "specs/old/plan.pdf", 3, "annual plan token"),
]

SPEC, PLAN, MEMO, TAX = "specs/token.xlsx", "specs/old/plan.pdf", "notes/it's.md", "notes/税.txt"
FACETS = {
    SPEC: ["kind=design", "area=customers"],
    PLAN: ["kind=plan", "area=contracts"],
    MEMO: ["kind=memo", "area=contracts"],
    TAX: ["kind=memo"],
}


def question(document_id: str, index: int, text: str, answer: str, *chunk_ids: str) -> dict[str, Any]:
    return {
        "qa_id": f"{document_id}#q{index}",
        "document_id": document_id,
        "shard": "00",
        "chunk_ids": list(chunk_ids),
        "page_ids": sorted({chunk_id.rpartition(".")[0] for chunk_id in chunk_ids}),
        "facets": FACETS[document_id],
        "folder": document_id.rpartition("/")[0],
        "format": document_id.rpartition(".")[2],
        "language": "ja" if any(character > "\u3000" for character in text) else "en",
        "modified_at": datetime(2024, 1, 1, 12, tzinfo=UTC),
        "title": document_id,
        "text": text,
        "answer": answer,
        EMBEDDED_TEXT: text,
    }


QUESTIONS = [
    question(SPEC, 0, "顧客登録の画面では何を入力しますか", "顧客名", f"{SPEC}#1.0"),
    question(SPEC, 1, "エラーコード E0004 は何を表しますか", "重複", f"{SPEC}#1.1"),
    question(SPEC, 2, "重複はどう表されますか", "E0004", f"{SPEC}#1.1", f"{SPEC}#2.0"),
    question(PLAN, 0, "What does the annual plan mention?", "token renewal", f"{PLAN}#3.0"),
    question(MEMO, 0, "What is renewed?", "the contract", f"{MEMO}#1.0"),
]
