"""Publishing: numbers are taken once, readers never move back, and what is out of date is refused."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from full_disks import fill, small_disk
from stores import Base, rows_of

from rag_assets.contracts.errors import InconsistencyError, ModelError, StoreError
from rag_assets.contracts.tables import PARSE_FAILURES, SUMMARY_INDEX
from rag_assets.store.files import is_full
from rag_assets.store.publish import publish, stale_syncs
from rag_assets.store.serving import SERVING, serving_states
from rag_assets.store.snapshots import Pointer, Snapshot, Snapshots

EMPTY = Snapshot(1, "2026-11-21T00:00:00+00:00", "code", "letters", {}, {}, {})


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
    with pytest.raises(
        StoreError, match="summaries, shard 00 .rows are indexed from an older state. is unfinished; .*index"
    ):
        base.publish()
    assert base.snapshots.current() == before
    base.sync("00")
    assert base.unfinished() == []
    base.publish()
    assert base.served() == ["bcd", "changed"]


def test_problems_while_another_run_writes_are_its_own_and_tried_again(base: Base) -> None:
    base.write("00", a="abc")
    base.sync("00")
    rows = rows_of(PARSE_FAILURES, {"document_id": "gone", "shard": "00"})

    def another_run_writes() -> list[str]:
        base.lake.write(PARSE_FAILURES, "00", rows, {"gone": "1"})
        return []

    def published() -> Snapshot:
        steps = {"step": {"code": "code"}}
        return publish(base.lake, base.vectors, base.snapshots, steps, base.embedder, 3, another_run_writes)

    with pytest.raises(StoreError, match="another run is writing") as refused:
        published()
    assert not isinstance(refused.value, InconsistencyError)
    with pytest.raises(InconsistencyError, match="document_id 'gone' is not in documents"):
        published()


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
    assert stale_syncs(base.lake, base.vectors, "other")


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


def published(root: Path, count: int) -> Snapshots:
    snapshots = Snapshots(root)
    for number in range(1, count + 1):
        snapshots.publish(replace(EMPTY, number=number, pipeline=f"code {number}"))
    return snapshots


def test_only_a_roll_back_moves_readers_back(tmp_path: Path) -> None:
    snapshots = published(tmp_path, 3)
    snapshots.move_on(2)
    assert snapshots.pointer() == Pointer(3)
    snapshots.roll_back(1)
    assert snapshots.pointer() == Pointer(1, rolled_back_from=3)
    snapshots.roll_back(3)
    assert snapshots.pointer() == Pointer(3)


def test_readers_who_were_moved_back_stay_until_a_change_is_published(tmp_path: Path) -> None:
    snapshots = published(tmp_path, 3)
    snapshots.roll_back(1)
    snapshots.move_on(3)  # what is stored is what was published last
    assert (snapshots.pointer(), snapshots.unfinished(), snapshots.finish()) == (Pointer(1, 3), None, None)
    snapshots.publish(replace(EMPTY, number=4, pipeline="code 3"), moves_rollback=False)  # mended, not changed
    assert (snapshots.pointer(), snapshots.finish()) == (Pointer(1, 4), None)
    snapshots.publish(replace(EMPTY, number=5))
    assert snapshots.pointer() == Pointer(5)


def test_a_version_whose_run_was_killed_before_it_moved_the_readers_is_finished(tmp_path: Path) -> None:
    snapshots = published(tmp_path, 2)
    pointer = (tmp_path / "CURRENT").read_bytes()
    snapshots.publish(replace(EMPTY, number=3))
    for name in ("CURRENT", "CURRENT.copy"):
        (tmp_path / name).write_bytes(pointer)
    assert (snapshots.pointer(), snapshots.unfinished()) == (Pointer(2), 3)
    assert (snapshots.finish(), snapshots.pointer(), snapshots.unfinished()) == (3, Pointer(3), None)


@pytest.mark.parametrize("damage", [b"", b"{", b"null", b"2", b"\xff", None])
def test_a_damaged_pointer_is_read_from_its_copy_and_else_readers_see_the_newest_version(
    tmp_path: Path, damage: bytes | None
) -> None:
    snapshots = published(tmp_path, 3)
    snapshots.roll_back(2)
    for name, expected in (("CURRENT", 2), ("CURRENT.copy", 3)):
        (tmp_path / name).unlink() if damage is None else (tmp_path / name).write_bytes(damage)
        current = snapshots.current()
        assert current is not None
        assert current.number == expected
    assert snapshots.finish() == 3
    assert snapshots.pointer() == Pointer(3)


def test_a_damaged_manifest_hides_one_version_and_its_number_is_not_given_again(tmp_path: Path) -> None:
    snapshots = published(tmp_path, 3)
    content = snapshots.path(3).read_bytes()
    for at in range(0, len(content), 7):
        snapshots.path(3).write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        try:
            assert snapshots.load(3).pipeline == "code 3"
        except StoreError:
            current = snapshots.current()
            assert current is not None
            assert current.number == 2
    snapshots.path(3).unlink()
    assert snapshots.next_number() == 4
    assert [each.number for each in snapshots.candidates()] == [2, 1]
    assert [each.number for each in snapshots.prune(1)] == [2]


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


def test_a_full_disk_stops_publishing_and_nothing_is_torn(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 20_000) as disk:
        base = Base(disk / "home")
        base.write("00", a="abc")
        base.sync("00")
        first = base.publish()
        base.write("00", a="abc", b="bcd")
        base.sync("00")
        filler = fill(disk)
        with pytest.raises((OSError, StoreError)) as refused:
            base.publish()
        assert is_full(refused.value)
        assert base.snapshots.current() == first
        filler.unlink()
        base.publish()
        current = base.snapshots.current()
        assert current is not None
        assert current.number == 2
