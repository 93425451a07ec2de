"""The vector store against real LanceDB tables in a temporary folder."""

import multiprocessing
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from datetime import timedelta
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from rag_assets.contracts.errors import ModelError, SchemaError, StoreError
from rag_assets.contracts.ports import EmbeddingKind
from rag_assets.contracts.tables import VectorTable
from rag_assets.store.queries import sql_literal
from rag_assets.store.vectors.cache import embedding_key
from rag_assets.store.vectors.lance import retried
from rag_assets.store.vectors.store import VectorStore

TABLE = VectorTable(
    "notes",
    "Rows for these tests.",
    "note_id",
    (
        pa.field("note_id", pa.string(), nullable=False),
        pa.field("shard", pa.string(), nullable=False),
        pa.field("document_id", pa.string(), nullable=False),
        pa.field("text", pa.string(), nullable=False),
        pa.field("search_text", pa.string(), nullable=False),
        pa.field("row_sha256", pa.string(), nullable=False),
    ),
)
DIMENSION = 8


class HashEmbedder:
    """Vectors made of the SHA-256 of a text: no meaning, but one text always has one vector."""

    name = "hash"
    dimension = DIMENSION
    window_tokens = 512

    def __init__(self, fail_after: int | None = None) -> None:
        self.batches: list[int] = []
        self.fail_after = fail_after

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]

    def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> NDArray[np.float32]:
        if self.fail_after is not None and len(self.batches) >= self.fail_after:
            raise ModelError("out of order")
        self.batches.append(len(texts))
        digests = [np.frombuffer(sha256(f"{kind}{text}".encode()).digest()[:DIMENSION], np.uint8) for text in texts]
        vectors = np.array(digests, dtype=np.float32).reshape(-1, DIMENSION) + 1
        unit: NDArray[np.float32] = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
        return unit

    @property
    def texts(self) -> int:
        return sum(self.batches)


def rows(shard: str, texts: dict[str, str]) -> pa.Table:
    return pa.table(
        {
            "note_id": pa.array(list(texts), pa.string()),
            "shard": pa.array([shard] * len(texts), pa.string()),
            "document_id": pa.array([f"{shard}.txt"] * len(texts), pa.string()),
            "text": pa.array(list(texts.values()), pa.string()),
            "embedded_text": pa.array(list(texts.values()), pa.string()),
        }
    )


def content(store: VectorStore) -> list[tuple[str, ...]]:
    table = store.open(TABLE, DIMENSION).to_arrow()
    return sorted((row["note_id"], row["shard"], row["text"], str(row["vector"])) for row in table.to_pylist())


def test_a_shard_becomes_equal_to_its_rows(tmp_path: Path) -> None:
    store, embedder = VectorStore(tmp_path), HashEmbedder()
    first = store.sync(TABLE, {"00": rows("00", {"a": "one", "b": "two"}), "01": rows("01", {"c": "three"})}, embedder)
    assert (first.upserted, first.deleted, first.embedded) == (3, 0, 3)
    second = store.sync(TABLE, {"00": rows("00", {"b": "two, changed", "d": "four"})}, embedder)
    assert (second.upserted, second.deleted, second.unchanged, second.embedded) == (2, 1, 0, 2)
    fresh = VectorStore(tmp_path / "fresh")
    fresh.sync(
        TABLE, {"00": rows("00", {"d": "four", "b": "two, changed"}), "01": rows("01", {"c": "three"})}, embedder
    )
    assert content(store) == content(fresh)
    emptied = store.sync(TABLE, {"00": rows("00", {}), "01": rows("01", {})}, embedder)
    assert emptied.deleted == 3
    assert store.count("notes") == 0


def test_a_row_may_have_the_mean_vector_of_other_texts_which_costs_nothing_where_they_are_known(tmp_path: Path) -> None:
    store, embedder = VectorStore(tmp_path), HashEmbedder()
    known = store.embed(["one", "two"], embedder)
    averaged = pa.array([["one", "two"], ["two"], []], pa.list_(pa.dictionary(pa.int32(), pa.string())))
    given = rows("00", {"a": "A", "b": "B", "c": "C"}).append_column("averaged_texts", averaged)
    assert store.sync(TABLE, {"00": given}, embedder).embedded == 1, "a row without such texts has that of its own"
    stored = {row["note_id"]: row["vector"] for row in store.open(TABLE, DIMENSION).to_arrow().to_pylist()}
    mean = known.mean(axis=0)
    expected = {"a": mean / np.linalg.norm(mean), "b": known[1], "c": store.embed(["C"], embedder)[0]}
    assert all(np.allclose(stored[key], vector) for key, vector in expected.items())
    assert store.sync(TABLE, {"00": given}, embedder).upserted == 0


def test_nothing_changed_writes_nothing(tmp_path: Path) -> None:
    store, embedder = VectorStore(tmp_path), HashEmbedder()
    given = {"00": rows("00", {"a": "one", "b": "two"})}
    store.sync(TABLE, given, embedder)
    version = store.optimize(TABLE)
    files = sorted(tmp_path.rglob("*"))
    again = store.sync(TABLE, given, embedder)
    assert (again.upserted, again.deleted, again.unchanged, again.version) == (0, 0, 2, version)
    assert store.optimize(TABLE) == version
    assert sorted(tmp_path.rglob("*")) == files


def test_moved_restored_and_repeated_texts_are_not_embedded_again(tmp_path: Path) -> None:
    store, embedder = VectorStore(tmp_path), HashEmbedder()
    store.sync(TABLE, {"00": rows("00", {"a": "one", "b": "one", "c": "two"})}, embedder)
    assert embedder.texts == 2
    moved = store.sync(TABLE, {"00": rows("00", {}), "01": rows("01", {"x": "one", "y": "two"})}, embedder)
    assert (moved.embedded, moved.upserted, moved.deleted) == (0, 2, 3)
    store.optimize_cache(DIMENSION)
    assert store.sync(TABLE, {"00": rows("00", {"a": "one"})}, embedder).embedded == 0


def test_a_row_keeps_its_key_when_it_changes_shard(tmp_path: Path) -> None:
    store, embedder = VectorStore(tmp_path), HashEmbedder()
    store.sync(TABLE, {"00": rows("00", {"a": "one"})}, embedder)
    store.sync(TABLE, {"00": rows("00", {}), "01": rows("01", {"a": "one"})}, embedder)
    assert [row[:2] for row in content(store)] == [("a", "01")]


def test_an_interrupted_sync_loses_one_batch_at_most(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag_assets.store.vectors.cache.BATCH_TEXTS", 10)
    store = VectorStore(tmp_path)
    given = {"00": rows("00", {f"n{number}": f"text {number}" for number in range(35)})}
    with pytest.raises(ModelError):
        store.sync(TABLE, given, HashEmbedder(fail_after=2))
    seen: list[tuple[int, int]] = []
    resumed = store.sync(TABLE, given, HashEmbedder(), lambda done, total: seen.append((done, total)))
    assert (resumed.upserted, resumed.embedded) == (35, 15)
    assert seen[0] == (0, 35)
    assert seen[-1] == (35, 35)
    assert seen == sorted(seen)


@pytest.mark.parametrize(("seconds", "parts"), [(0.0, [32, 64, 4]), (9.0, [32, 32, 32, 4])])
def test_an_embedder_tells_how_far_it_is_every_few_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float, parts: list[int]
) -> None:
    class Clock:
        now = 0.0

        def monotonic(self) -> float:
            self.now += seconds
            return self.now

    monkeypatch.setattr("rag_assets.store.vectors.cache.time", Clock())
    embedder, seen = HashEmbedder(), [0]
    given = {"00": rows("00", {f"n{number}": f"text {number}" for number in range(100)})}
    store = VectorStore(tmp_path)
    store.sync(TABLE, given, embedder, lambda done, total: seen.append(done) if total == 100 else None)
    assert embedder.batches == parts
    assert [after - before for before, after in pairwise(dict.fromkeys(seen))] == parts
    vectors = store.embed([f"text {number}" for number in range(100)], embedder)
    assert np.array_equal(
        vectors, HashEmbedder().embed([f"text {number}" for number in range(100)], EmbeddingKind.PASSAGE)
    )


def test_another_embedder_name_replaces_every_vector(tmp_path: Path) -> None:
    store, embedder = VectorStore(tmp_path), HashEmbedder()
    store.sync(TABLE, {"00": rows("00", {"a": "one"})}, embedder)
    embedder.name = "other"
    assert store.sync(TABLE, {"00": rows("00", {"a": "one"})}, embedder).embedded == 1


def test_prune_drops_only_what_is_not_kept(tmp_path: Path) -> None:
    store, embedder = VectorStore(tmp_path), HashEmbedder()
    store.sync(TABLE, {"00": rows("00", {"a": "one", "b": "two"})}, embedder)
    assert store.prune(DIMENSION, {embedding_key("hash", EmbeddingKind.PASSAGE, "one")}) == 1
    embedder.batches.clear()
    store.sync(TABLE, {"01": rows("01", {"c": "one", "d": "two"})}, embedder)
    assert embedder.texts == 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (rows("00", {"a": "one"}).drop_columns(["text"]), "expected columns"),
        (rows("01", {"a": "one"}), "found rows of shards"),
        (pa.concat_tables([rows("00", {"a": "one"})] * 2), "share a note_id"),
        (rows("00", {"a": "one"}).set_column(3, "text", pa.array([None], pa.string())), "notes, shard 00"),
    ],
)
def test_rows_that_do_not_fit_are_refused(tmp_path: Path, given: pa.Table, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        VectorStore(tmp_path).sync(TABLE, {"00": given}, HashEmbedder())


def _write_shared_keys(folder: str) -> int:
    texts = {f"key {number}": f"text {number}" for number in range(20)}
    return VectorStore(folder).sync(TABLE, {"00": rows("00", texts)}, HashEmbedder()).upserted


def test_eight_writers_of_the_same_new_keys_make_no_duplicates(tmp_path: Path) -> None:
    VectorStore(tmp_path).open(TABLE, DIMENSION)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=context) as processes, ThreadPoolExecutor(6) as threads:
        writers = [processes.submit(_write_shared_keys, str(tmp_path)) for _ in range(2)]
        writers += [threads.submit(_write_shared_keys, str(tmp_path)) for _ in range(6)]
        for writer in writers:
            writer.result(60)
    keys = VectorStore(tmp_path).column("notes", "note_id").to_pylist()
    assert sorted(keys) == sorted({f"key {number}" for number in range(20)})


def test_optimize_beside_writers_loses_nothing(tmp_path: Path) -> None:
    store = VectorStore(tmp_path)
    store.sync(TABLE, {"ff": rows("ff", {"first": "row"})}, HashEmbedder())
    failures: list[BaseException] = []

    def write(shard: str) -> None:
        try:
            for number in range(6):
                VectorStore(tmp_path).sync(TABLE, {shard: rows(shard, {shard: f"text {number}"})}, HashEmbedder())
        except Exception as error:  # noqa: BLE001  a thread has no other way to report
            failures.append(error)

    threads = [threading.Thread(target=write, args=(f"0{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        store.optimize(TABLE)
    assert failures == []
    store.optimize(TABLE)
    texts = {row[0]: row[2] for row in content(store)}
    assert texts == {"first": "row"} | {f"0{number}": "text 5" for number in range(4)}


def test_conflicts_are_retried_and_other_errors_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag_assets.store.vectors.lance.time.sleep", lambda _seconds: None)
    calls: list[str] = []

    def action(message: str, failures: int) -> str:
        calls.append(message)
        if len(calls) <= failures:
            raise RuntimeError(message)
        return "done"

    assert retried(lambda: action("lance error: Retryable commit conflict for version 4", 3)) == "done"
    calls.clear()
    with pytest.raises(StoreError, match="other writers"):
        retried(lambda: action("Commit conflict", 100))
    calls.clear()
    with pytest.raises(StoreError, match="disk full"):
        retried(lambda: action("disk full", 100))
    assert len(calls) == 1


def test_a_pinned_reader_sees_its_version_while_a_writer_goes_on(tmp_path: Path) -> None:
    store, embedder = VectorStore(tmp_path), HashEmbedder()
    store.sync(TABLE, {"00": rows("00", {"a": "one", "b": "two"})}, embedder)
    published = store.optimize(TABLE)
    reader = VectorStore(tmp_path).open_at("notes", published)
    for number in range(5):
        store.sync(TABLE, {"00": rows("00", {"c": f"three {number}"})}, embedder)
        store.optimize(TABLE, keep_versions=[published], grace=timedelta(0))
    found = reader.search().select(["note_id"]).limit(None).to_arrow()["note_id"].to_pylist()
    assert sorted(found) == ["a", "b"]
    again = VectorStore(tmp_path).open_at("notes", published)
    assert sorted(again.to_arrow()["text"].to_pylist()) == ["one", "two"]
    assert store.column("notes", "note_id").to_pylist() == ["c"]


def test_versions_nobody_keeps_are_dropped(tmp_path: Path) -> None:
    store, embedder = VectorStore(tmp_path), HashEmbedder()
    store.sync(TABLE, {"00": rows("00", {"a": "one"})}, embedder)
    old = store.optimize(TABLE)
    store.sync(TABLE, {"00": rows("00", {"a": "two"})}, embedder)
    latest = store.optimize(TABLE, grace=timedelta(0))
    with pytest.raises(StoreError, match="notes: missing or damaged"):
        store.open_at("notes", old)
    assert store.open_at("notes", latest).count_rows() == 1


def test_a_missing_table_is_a_store_error(tmp_path: Path) -> None:
    store = VectorStore(tmp_path)
    for ask in (store.version, store.count):
        with pytest.raises(StoreError, match="notes: missing or damaged"):
            ask("notes")
    with pytest.raises(StoreError):
        store.open_at("notes", 1)
    assert not list(tmp_path.glob("*.lance"))


def test_a_vector_index_finds_what_comparing_all_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag_assets.store.vectors.lance._VECTOR_INDEX_ROWS", 300)
    store, embedder = VectorStore(tmp_path), HashEmbedder()
    store.sync(TABLE, {"00": rows("00", {f"n{number}": f"text {number}" for number in range(400)})}, embedder)
    store.optimize(TABLE)
    table: Any = store.open(TABLE, DIMENSION)
    assert "vector" in {column for index in table.list_indices() for column in index.columns}
    query = embedder.embed(["text 7"], EmbeddingKind.PASSAGE)[0]
    search = table.search(query, vector_column_name="vector").distance_type("dot").select(["note_id", "_distance"])
    assert search.limit(1).to_list()[0]["note_id"] == "n7"


def test_another_schema_starts_anew_and_leaves_pinned_readers_alone(tmp_path: Path) -> None:
    store, embedder = VectorStore(tmp_path), HashEmbedder()
    version = store.sync(TABLE, {"00": rows("00", {"a": "one"})}, embedder).version
    wider = VectorTable("notes", "With a column more.", "note_id", (*TABLE.fields, pa.field("title", pa.string())))
    assert store.open(wider, DIMENSION).count_rows() == 0
    assert store.open_at("notes", version).count_rows() == 1


@pytest.mark.parametrize("text", ["it's", "''", "a' OR '1'='1", 'say "x"', "back\\slash", "見積'書", "%_"])
def test_quotes_in_keys_are_only_text(tmp_path: Path, text: str) -> None:
    store, embedder = VectorStore(tmp_path), HashEmbedder()
    store.sync(TABLE, {"00": rows("00", {text: "one", "other": "two"})}, embedder)
    assert store.open(TABLE, DIMENSION).count_rows(f"note_id = {sql_literal(text)}") == 1
    store.sync(TABLE, {"00": rows("00", {"other": "two"})}, embedder)
    assert store.column("notes", "note_id").to_pylist() == ["other"]


def test_the_client_of_servers_is_loaded_when_it_is_asked_for() -> None:
    code = (
        "import sys, rag_assets.store.vectors.store\n"
        "assert 'lance_namespace_urllib3_client.api' not in sys.modules\n"
        "from lance_namespace_urllib3_client import ApiClient\n"
        "assert ApiClient.__module__ == 'lance_namespace_urllib3_client.api_client'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
