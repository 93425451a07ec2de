"""Publishing: numbers are taken once, readers never move back, and what is out of date is refused."""

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from rag_assets.contracts.errors import ModelError, StoreError
from rag_assets.contracts.ports import EmbeddingKind
from rag_assets.contracts.tables import DOCUMENTS, FILE_SUMMARIES, SUMMARY_INDEX, VECTOR_TABLES, Table
from rag_assets.store.lake import Lake
from rag_assets.store.publish import publish, unfinished_syncs
from rag_assets.store.serving import SERVING, serving_states
from rag_assets.store.snapshots import Snapshot, Snapshots
from rag_assets.store.vectors import VectorStore

EMPTY = Snapshot(1, "2026-11-21T00:00:00+00:00", "code", "letters", {}, {}, {})


class LettersEmbedder:
    name = "letters"
    dimension = 8
    window_tokens = 512

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.fails = False

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(text) for text in texts]

    def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> NDArray[np.float32]:  # noqa: ARG002
        if self.fails:
            raise ModelError("out of order")
        self.asked += texts
        vectors = np.array([[text.count(chr(97 + n)) + 1 for n in range(8)] for text in texts], dtype=np.float32)
        unit: NDArray[np.float32] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return unit


class Base:
    """A lake with summaries only, and what is made from it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.lake, self.snapshots = Lake(root / "lake"), Snapshots(root / "snapshots")
        self.vectors, self.embedder = VectorStore(root / "vectors"), LettersEmbedder()

    def write(self, shard: str, **texts: str) -> None:
        inputs = dict(texts)
        for table in (DOCUMENTS, FILE_SUMMARIES):
            records = [_record(table, document_id=name, shard=shard, text=text) for name, text in texts.items()]
            rows = pa.Table.from_pylist([{n: r[n] for n in table.schema.names} for r in records], schema=table.schema)
            self.lake.write(table, shard, rows, inputs)

    def sync(self, *shards: str) -> None:
        for table in VECTOR_TABLES.values():
            states = serving_states(self.lake, table.name, self.embedder.name)
            rows = {shard: SERVING[table.name][1](self.lake, shard) for shard in shards}
            self.vectors.sync(table, rows, self.embedder, states=states)

    def publish(self) -> Snapshot:
        return publish(self.lake, self.vectors, self.snapshots, "code", self.embedder, 3, list)

    def served(self) -> list[str]:
        return sorted(self.vectors.column(SUMMARY_INDEX.name, "text").to_pylist())

    def unfinished(self) -> list[str]:
        return [each.partition(" (")[0] for each in unfinished_syncs(self.lake, self.vectors, self.embedder.name)]


def _record(table: Table, **given: object) -> dict[str, object]:
    record: dict[str, object] = {}
    for field in table.schema:
        if field.nullable:
            record[field.name] = None
        elif pa.types.is_string(field.type):
            record[field.name] = ""
        elif pa.types.is_list(field.type):
            record[field.name] = []
        else:
            record[field.name] = 0
    return record | given


@pytest.fixture
def base(tmp_path: Path) -> Base:
    return Base(tmp_path)


def test_what_is_in_step_is_published_once(base: Base) -> None:
    base.write("00", a="abc")
    base.sync("00")
    first = base.publish()
    base.sync("00")
    assert base.publish() == first
    assert base.snapshots.current() == first
    assert base.unfinished() == []


def test_text_that_changed_under_the_same_key_is_not_published_unindexed(base: Base) -> None:
    base.write("00", a="abc")
    base.write("01", b="bcd")
    base.sync("00", "01")
    before = base.publish()
    base.write("00", a="changed")
    assert base.unfinished() == [f"lancedb.{name}, shard 00" for name in ("chunks", "summaries", "questions")]
    with pytest.raises(StoreError, match="summaries, shard 00 .rows are indexed from an older state. is unfinished"):
        base.publish()
    assert base.snapshots.current() == before
    base.sync("00")
    assert base.unfinished() == []
    base.publish()
    assert base.served() == ["bcd", "changed"]


def test_rows_made_before_a_file_was_written_do_not_count_as_its(base: Base) -> None:
    base.write("00", a="abc")
    states = serving_states(base.lake, SUMMARY_INDEX.name, base.embedder.name)
    rows = SERVING[SUMMARY_INDEX.name][1](base.lake, "00")
    base.write("00", a="changed")
    base.vectors.sync(SUMMARY_INDEX, {"00": rows}, base.embedder, states=states)
    assert "lancedb.summaries, shard 00" in base.unfinished()


def test_a_sync_that_died_half_way_is_unfinished_though_settings_go_back(base: Base) -> None:
    base.write("00", a="abc")
    base.sync("00")
    base.embedder.name, base.embedder.fails = "other", True
    with pytest.raises(ModelError):
        base.sync("00")
    base.embedder.name, base.embedder.fails = "letters", False
    assert "lancedb.summaries, shard 00" in base.unfinished()
    base.sync("00")
    assert base.unfinished() == []


def test_another_embedder_makes_every_shard_unfinished(base: Base) -> None:
    base.write("00", a="abc")
    base.sync("00")
    assert unfinished_syncs(base.lake, base.vectors, "other")


def test_a_sync_that_says_nothing_of_its_source_leaves_no_record(base: Base) -> None:
    base.write("00", a="abc")
    base.sync("00")
    base.vectors.sync(SUMMARY_INDEX, {"00": SERVING[SUMMARY_INDEX.name][1](base.lake, "01")}, base.embedder)
    assert base.vectors.states(SUMMARY_INDEX.name) == {}
    assert base.vectors.states("chunks").keys() == {"00"}


def test_publishers_at_once_take_numbers_of_their_own(tmp_path: Path) -> None:
    def one(index: int) -> int:
        return Snapshots(tmp_path).publish(replace(EMPTY, pipeline=f"code {index}")).number

    with ThreadPoolExecutor(8) as threads:
        numbers = list(threads.map(one, range(16)))
    assert sorted(numbers) == list(range(1, 17))
    snapshots = Snapshots(tmp_path)
    assert {snapshots.load(n).pipeline for n in numbers} == {f"code {index}" for index in range(16)}
    assert all(snapshots.load(number).number == number for number in numbers)
    newest = snapshots.current()
    assert newest is not None
    assert newest.number == 16


def test_a_taken_number_is_left_as_it_is(tmp_path: Path) -> None:
    snapshots = Snapshots(tmp_path)
    snapshots.publish(EMPTY)
    late = snapshots.publish(replace(EMPTY, pipeline="late"))
    assert (late.number, snapshots.load(1).pipeline, snapshots.current()) == (2, "code", late)
    assert json.loads((tmp_path / "00000002.json").read_bytes())["number"] == 2


def test_only_a_roll_back_moves_readers_back(tmp_path: Path) -> None:
    snapshots = Snapshots(tmp_path)
    for number in (1, 2, 3):
        snapshots.publish(replace(EMPTY, number=number))
    snapshots.move_on(2)
    assert (tmp_path / "CURRENT").read_text() == "3"
    snapshots.roll_back(1)
    assert (tmp_path / "CURRENT").read_text() == "1"
    snapshots.move_on(3)
    assert (tmp_path / "CURRENT").read_text() == "3"


def test_stray_files_are_not_snapshots(tmp_path: Path) -> None:
    snapshots = Snapshots(tmp_path)
    snapshots.publish(EMPTY)
    for name in ("²²²²²²²².json", "2.json", "note.json"):
        (tmp_path / name).write_text("{}")
    assert snapshots.numbers() == [1]


def test_vectors_of_gone_texts_are_dropped_once_they_are_too_many(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag_assets.store.publish._SPARE_VECTORS", 5)
    for round_ in range(3):
        base.write("00", a=f"a{round_}", b=f"b{round_}")
        base.sync("00")
        base.publish()
    assert base.vectors.cached(8) == 2
    base.embedder.asked.clear()
    base.write("01", c="a2", d="b2")
    base.sync("01")
    assert base.embedder.asked == []


def test_a_few_vectors_of_gone_texts_are_kept(base: Base) -> None:
    for round_ in range(3):
        base.write("00", a=f"a{round_}", b=f"b{round_}")
        base.sync("00")
        base.publish()
    assert base.vectors.cached(8) == 6
