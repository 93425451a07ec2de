"""The lake: schemas are enforced, versions are never overwritten, a crash leaves nothing behind."""

import errno
import os
import stat
import time
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rag_assets.contracts.errors import SchemaError, StoreError
from rag_assets.contracts.tables import FILE_SUMMARIES, PAGES, PARSE_FAILURES
from rag_assets.store.files import write_atomically
from rag_assets.store.incremental import StepReport, invalidate_documents, update_shard
from rag_assets.store.integrity import key_problems, reference_problems
from rag_assets.store.lake import SHARD_COUNT, Lake, shard_of


def summaries(shard: str, **texts: str) -> pa.Table:
    records = [
        {
            "document_id": name,
            "shard": shard,
            "language": "ja",
            "method": "extractive",
            "length_chars": len(text),
            "text": text,
        }
        for name, text in texts.items()
    ]
    return pa.Table.from_pylist(records, schema=FILE_SUMMARIES.schema)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake")


def test_rows_come_back_in_key_order_whatever_order_they_were_given_in(lake: Lake) -> None:
    lake.write(FILE_SUMMARIES, "0a", summaries("0a", b="二", a="一"), {"a": "1", "b": "1"})
    assert lake.read(FILE_SUMMARIES)["document_id"].to_pylist() == ["a", "b"]
    assert lake.inputs(FILE_SUMMARIES, "0a") == {"a": "1", "b": "1"}


def test_writing_the_same_rows_and_inputs_makes_no_file(lake: Lake) -> None:
    first = lake.write(FILE_SUMMARIES, "0a", summaries("0a", a="一"), {"a": "1"})
    again = lake.write(FILE_SUMMARIES, "0a", summaries("0a", a="一"), {"a": "1"})
    assert (first.written, again.written) == (True, False)
    assert lake.latest(FILE_SUMMARIES) == {"0a": 1}
    changed_inputs = lake.write(FILE_SUMMARIES, "0a", summaries("0a", a="一"), {"a": "2"})
    assert changed_inputs.written
    assert lake.latest(FILE_SUMMARIES) == {"0a": 2}


def test_an_older_version_is_readable_after_a_newer_one_was_written(lake: Lake) -> None:
    lake.write(FILE_SUMMARIES, "0a", summaries("0a", a="old"), {"a": "1"})
    before = lake.latest(FILE_SUMMARIES)
    lake.write(FILE_SUMMARIES, "0a", summaries("0a", a="new"), {"a": "2"})
    assert lake.read(FILE_SUMMARIES, versions=before)["text"].to_pylist() == ["old"]
    assert lake.read(FILE_SUMMARIES)["text"].to_pylist() == ["new"]
    lake.prune(FILE_SUMMARIES, [before])
    assert lake.read(FILE_SUMMARIES, versions=before)["text"].to_pylist() == ["old"]
    lake.prune(FILE_SUMMARIES, [])
    with pytest.raises(StoreError, match="00000001.parquet"):
        lake.read(FILE_SUMMARIES, versions=before)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (summaries("0b", a="x"), "rows of another shard"),
        (pa.concat_tables([summaries("0a", a="x"), summaries("0a", a="y")]), "duplicate key"),
        (summaries("0a", a="x").drop_columns("text"), "expected columns"),
        (summaries("0a", a="x").set_column(5, "text", pa.array([None], pa.string())), "non-nullable"),
        (summaries("0a", a="x").set_column(4, "length_chars", pa.array(["many"])), "length_chars|Failed to parse"),
    ],
    ids=["shard", "key", "columns", "null", "type"],
)
def test_rows_that_do_not_fit_are_refused(lake: Lake, rows: pa.Table, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        lake.write(FILE_SUMMARIES, "0a", rows, {"a": "1"})
    assert lake.latest(FILE_SUMMARIES) == {}


def test_of_two_writers_of_one_version_the_second_is_refused(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    other = Lake(lake.root)
    lake.write(FILE_SUMMARIES, "0a", summaries("0a", a="first"), {"a": "1"})
    write_table = pq.write_table

    def racing(table: pa.Table, path: Path, **options: str) -> None:
        monkeypatch.setattr(pq, "write_table", write_table)
        other.write(FILE_SUMMARIES, "0a", summaries("0a", a="other"), {"a": "2"})
        write_table(table, path, **options)

    monkeypatch.setattr(pq, "write_table", racing)
    with pytest.raises(StoreError, match="another process"):
        lake.write(FILE_SUMMARIES, "0a", summaries("0a", a="mine"), {"a": "3"})
    assert lake.read(FILE_SUMMARIES)["text"].to_pylist() == ["other"]
    assert not list(lake.root.rglob("*.tmp"))


def test_a_damaged_file_is_named(lake: Lake) -> None:
    lake.write(FILE_SUMMARIES, "0a", summaries("0a", a="x"), {"a": "1"})
    [path] = lake.paths(FILE_SUMMARIES)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(StoreError, match="00000001.parquet"):
        lake.read(FILE_SUMMARIES)


def test_shards_are_spread_and_stable() -> None:
    names = [f"仕様/{number}.xlsx" for number in range(6400)]
    counts = [sum(shard_of(name) == f"{shard:02x}" for name in names) for shard in range(SHARD_COUNT)]
    assert min(counts) > 60
    assert shard_of("specs/api/token.xlsx") == shard_of("specs/api/token.xlsx") == "14"


def test_only_changed_documents_are_computed_and_gone_ones_dropped(lake: Lake) -> None:
    asked: list[list[str]] = []

    def step(**wanted: str) -> StepReport:
        report = StepReport()

        def compute(documents: object) -> dict[str, pa.Table]:
            names = list(documents)  # type: ignore[call-overload]
            asked.append(names)
            return {FILE_SUMMARIES.name: summaries("0a", **{name: f"{name} of {wanted[name]}" for name in names})}

        update_shard(lake, [FILE_SUMMARIES], "0a", wanted, compute, report)
        return report

    step(a="1", b="1", c="1")
    report = step(a="1", b="2", d="1")
    assert asked == [["a", "b", "c"], ["b", "d"]]
    assert (report.total().computed, report.total().kept, report.total().removed) == (2, 1, 1)
    assert lake.read(FILE_SUMMARIES)["text"].to_pylist() == ["a of 1", "b of 2", "d of 1"]
    report = step(a="1", b="2", d="1")
    assert len(asked) == 2
    assert report.total().written == 0
    invalidate_documents(lake, [FILE_SUMMARIES], "0a", ["a"])
    step(a="1", b="2", d="1")
    assert asked[-1] == ["a"]


def test_a_file_with_other_columns_is_computed_anew(lake: Lake) -> None:
    other = replace(FILE_SUMMARIES, fields=FILE_SUMMARIES.fields[:-1])
    lake.write(other, "0a", summaries("0a", a="x").drop_columns("text"), {"a": "1"})
    assert lake.inputs(FILE_SUMMARIES, "0a") == {}
    assert lake.read(FILE_SUMMARIES).num_rows == 0
    lake.write(FILE_SUMMARIES, "0a", summaries("0a", a="new"), {"a": "1"})
    assert lake.read(FILE_SUMMARIES)["text"].to_pylist() == ["new"]


def test_temporary_files_of_running_writers_stay(lake: Lake) -> None:
    lake.write(FILE_SUMMARIES, "0a", summaries("0a", a="x"), {"a": "1"})
    folder = lake.paths(FILE_SUMMARIES)[0].parent
    running, killed = folder / ".1.tmp", folder / ".2.tmp"
    for path in (running, killed):
        path.write_bytes(b"half")
    long_ago = time.time() - 2 * 3600
    os.utime(killed, (long_ago, long_ago))
    lake.prune(FILE_SUMMARIES, [])
    assert running.exists()
    assert not killed.exists()


def test_names_are_on_the_disk_before_a_write_counts(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[Path] = []
    fsync = os.fsync

    def watched(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            synced.append(Path(f"/proc/self/fd/{descriptor}").readlink())
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", watched)
    lake.write(FILE_SUMMARIES, "0a", summaries("0a", a="x"), {"a": "1"})
    write_atomically(lake.root / "note", b"x")
    assert synced == [lake.root / FILE_SUMMARIES.name / "0a", lake.root]


def test_without_hard_links_a_version_is_still_written_once(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise OSError(errno.ENOTSUP, "not supported")

    monkeypatch.setattr(os, "link", refused)
    test_of_two_writers_of_one_version_the_second_is_refused(lake, monkeypatch)
    lake.write(FILE_SUMMARIES, "0a", summaries("0a", a="next"), {"a": "4"})
    assert lake.latest(FILE_SUMMARIES) == {"0a": 3}


def test_a_failing_disk_is_not_taken_for_missing_links(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr(os, "link", full)
    with pytest.raises(OSError, match="no space left"):
        lake.write(FILE_SUMMARIES, "0a", summaries("0a", a="x"), {"a": "1"})
    assert lake.latest(FILE_SUMMARIES) == {}


@pytest.mark.parametrize("name", ["x.parquet", "1.parquet", "00000009.parquet.bak", ".parquet", "²²²²²²²².parquet"])
def test_stray_files_are_not_versions(lake: Lake, name: str) -> None:
    lake.write(FILE_SUMMARIES, "0a", summaries("0a", a="x"), {"a": "1"})
    (lake.paths(FILE_SUMMARIES)[0].parent / name).write_bytes(b"stray")
    assert lake.latest(FILE_SUMMARIES) == {"0a": 1}
    assert lake.read(FILE_SUMMARIES)["text"].to_pylist() == ["x"]


@pytest.mark.parametrize("name", ["plain", "a*b", "[ab]", 'it\'s "so"', "a?b#c", "{x} %41"])
def test_checks_work_in_a_home_of_any_name(tmp_path: Path, name: str) -> None:
    lake = Lake(tmp_path / name / "lake")
    for shard in ("0a", "0b"):
        lake.write(FILE_SUMMARIES, shard, summaries(shard, same="x"), {"same": "1"})
    assert key_problems(lake, FILE_SUMMARIES) == ["duplicate key ('same',): 2 rows"]
    failure: dict[str, object] = dict.fromkeys(PARSE_FAILURES.schema.names)
    failure |= {"document_id": "lost.md", "shard": "0a", "failure_index": 0, "cause": "encrypted", "message": "m"}
    rows = pa.Table.from_pylist([failure], schema=PARSE_FAILURES.schema)
    lake.write(PARSE_FAILURES, "0a", rows, {"lost.md": "1"})
    assert reference_problems(lake, PARSE_FAILURES) == ["document_id 'lost.md' is not in documents"]
    assert reference_problems(lake, PAGES) == []
