"""Parsed documents in a lake, and recognizers and models for tests of the entity graph."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scripted_model import Script

from rag_assets.contracts.causes import BlockKind, PageKind
from rag_assets.contracts.content import Block, Page, ParsedDocument
from rag_assets.contracts.generation import Completion, JsonValue, Outcome, Request
from rag_assets.contracts.ports import EmbeddingKind
from rag_assets.contracts.tables import BLOCKS, CHUNKS, DOCUMENTS, ENTITY_MENTIONS, PAGES, RELATIONSHIP_MENTIONS
from rag_assets.graph.entity_types import load_types
from rag_assets.graph.mentions.dialogues import MentionOptions
from rag_assets.graph.mentions.spans import Span
from rag_assets.parsing.chunking import chunk_page
from rag_assets.parsing.limits import ParsingLimits
from rag_assets.parsing.parse import parse_bytes
from rag_assets.parsing.records import Record, block_records, chunk_records, document_record, page_records, rows
from rag_assets.sources.listing import SourceFile
from rag_assets.store.lake import SHARDS, Lake, shard_of
from rag_assets.text.folding import fold_name
from rag_assets.text.tokens import estimate_tokens

SAMPLE = Path(__file__).parents[2] / "docs" / "sample"
LIMITS = ParsingLimits(60.0, 1 << 30, 1 << 29, 1 << 30, 20_000, 5_000_000, 10_000)
TYPES = load_types()
OPTIONS = MentionOptions(600, 100, gleanings=1, claims=False)


Mention = tuple[str, str, str]  # document, name, description
Relation = tuple[str, str, str, str, str]  # document, source, target, kind, description


def write_mentions(lake: Lake, mentions: list[Mention], relations: list[Relation], version: str = "1") -> None:
    """Make the mentions of a lake those given."""
    documents = sorted({mention[0] for mention in mentions})
    for shard in sorted({*map(shard_of, documents), *lake.latest(ENTITY_MENTIONS)}):
        inputs = {name: version + str(hash(str(mentions))) for name in documents if shard_of(name) == shard}
        common = {"shard": shard, "page_number": 1, "chunk_id": None, "window_index": 0, "method": "extractive"}
        rows = [
            {
                **common,
                "document_id": document,
                "page_id": f"{document}#1",
                "mention_index": index,
                "start_char": index,
                "name": name,
                "name_key": fold_name(name),
                "type": "term",
                "description": description,
            }
            for index, (document, name, description) in enumerate(mentions)
            if shard_of(document) == shard
        ]
        related = [
            {
                **common,
                "document_id": document,
                "page_id": f"{document}#1",
                "mention_index": index,
                "source_key": fold_name(source),
                "target_key": fold_name(target),
                "kind": kind,
                "strength": 1.0,
                "description": description,
            }
            for index, (document, source, target, kind, description) in enumerate(relations)
            if shard_of(document) == shard
        ]
        lake.write(ENTITY_MENTIONS, shard, pa.Table.from_pylist(rows, ENTITY_MENTIONS.schema), inputs)
        lake.write(RELATIONSHIP_MENTIONS, shard, pa.Table.from_pylist(related, RELATIONSHIP_MENTIONS.schema), inputs)


class NoRecognizer:
    """Recognizes nothing: for tests of rules."""

    def recognize(
        self, texts: Sequence[str], language: str, progress: Callable[[int], None] = lambda _: None
    ) -> list[tuple[Span, ...]]:
        assert language in {"ja", "en"}
        progress(len(texts))
        return [() for _ in texts]


@dataclass
class LikeEverything:
    """Finds all texts alike, and keeps what it was asked."""

    name: str = "alike"
    dimension: int = 4
    window_tokens: int = 512

    def __post_init__(self) -> None:
        self.embedded: list[str] = []

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(text) for text in texts]

    def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> NDArray[np.float32]:
        assert kind is EmbeddingKind.PASSAGE
        self.embedded += texts
        return np.full((len(texts), 4), 0.5, dtype=np.float32)


class LikeNothing(LikeEverything):
    """Finds no two texts alike."""

    def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> NDArray[np.float32]:
        assert kind is EmbeddingKind.PASSAGE
        return np.eye(len(texts), max(4, len(texts)), dtype=np.float32)


class EstimatingTokenizer:
    """Measures by estimate."""

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [estimate_tokens(text) for text in texts]


def text_document(*paragraphs: str, title: str = "") -> ParsedDocument:
    """A document of one page."""
    blocks = [Block(BlockKind.HEADING, title)] if title else []
    blocks += [Block(BlockKind.PARAGRAPH, text) for text in paragraphs]
    return ParsedDocument("txt", title or None, (Page(1, PageKind.BODY, tuple(blocks)),))


def sample_document(name: str) -> ParsedDocument:
    """A file of the sample folder."""
    path = SAMPLE / name
    return parse_bytes(path.read_bytes(), path.name, LIMITS)


def fill_lake(lake: Lake, documents: Mapping[str, ParsedDocument]) -> None:
    """Make the parsed tables of a lake those of some documents, by id."""
    for shard in SHARDS:
        inside = {name: parsed for name, parsed in sorted(documents.items()) if shard_of(name) == shard}
        inputs = {name: str(hash(repr(parsed.pages))) for name, parsed in inside.items()}
        if not inside and not lake.inputs(BLOCKS, shard):
            continue
        records: dict[str, list[Record]] = {table.name: [] for table in (DOCUMENTS, PAGES, BLOCKS, CHUNKS)}
        for name, parsed in inside.items():
            file, told = SourceFile(name, "test", name, name, 0, None, "", local=True), {"title": parsed.title or name}
            records[DOCUMENTS.name].append(document_record(file, None, parsed) | told | {"language": "ja"})
            records[PAGES.name] += page_records(name, parsed)
            records[BLOCKS.name] += block_records(name, parsed)
            for page in parsed.pages:
                chunks = chunk_page(page, [parsed.title or name], EstimatingTokenizer(), 256, 0.1)
                records[CHUNKS.name] += chunk_records(name, page, chunks)
        for table in (DOCUMENTS, PAGES, BLOCKS, CHUNKS):
            lake.write(table, shard, rows(table.schema, records[table.name]), inputs)


def entity(name: str, kind: str = "term", description: str = "") -> JsonValue:
    """An item of a model's answer."""
    return {"name": name, "type": kind, "description": description or f"{name} is described."}


def relationship(source: str, target: str, strength: float = 5) -> JsonValue:
    """An item of a model's answer."""
    return {"source": source, "target": target, "description": f"{source} → {target}", "strength": strength}


def graph_answer(
    entities: Sequence[JsonValue], relationships: Sequence[JsonValue] = (), claims: Sequence[JsonValue] | None = None
) -> JsonValue:
    """A model's answer on a window."""
    answer: dict[str, JsonValue] = {"entities": list(entities), "relationships": list(relationships)}
    if claims is not None:
        answer["claims"] = list(claims)
    return answer


def as_rows(table: pa.Table) -> list[str]:
    """Rows to compare, whatever their order."""
    return sorted(json.dumps(row, ensure_ascii=False, sort_keys=True, default=str) for row in table.to_pylist())


def answering(answers: Sequence[JsonValue]) -> Script:
    """A script that gives answers in order."""
    left = list(answers)

    def script(request: Request) -> JsonValue:
        return left.pop(0)

    return script


def failing(request: Request) -> Completion:
    """A script of a model that fails."""
    return Completion(request, Outcome.FAILED)


def always(answer: JsonValue) -> Script:
    """A script that gives one answer."""

    def script(request: Request) -> JsonValue:
        return answer

    return script
