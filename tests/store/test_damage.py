"""Damage to the stores: every kind of file, gone, emptied, cut or with one byte turned, is found and mended; what was
found intact is not read again.
"""

import os
import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from damages import DAMAGES
from stores import Base

from rag_assets.contracts.errors import StoreError
from rag_assets.contracts.tables import TABLES
from rag_assets.store.damage import RECORD, Checksums, Damage, Quarantine, StoreDamage, intact_version, mark_of
from rag_assets.store.snapshots import Snapshot, Snapshots
from rag_assets.store.vectors.lance import readable

TEXTS = {"00": {"a": "abc", "b": "bcd"}, "01": {"c": "cde"}}


def kind_of(place: str) -> str:
    """What files of one kind have in common in their names; serving tables without rows are of one kind."""
    for pattern, name in (
        (r"[0-9a-f]{8}-[0-9a-f-]{27}", "UUID"),
        (r"[01]{20,}[0-9a-f]+\.lance", "DATA.lance"),
        (r"(?<=/)\d+-UUID\.txn", "N-UUID.txn"),
        (r"(?<=/)\d+-\d+-\d+(?=\.(arrow|bin))", "DELETION"),
        (r"(?<=/)part_\d+", "part_N"),
        (r"\d{4,}", "N"),
        (r"(?<=/)[0-9a-f]{2}(?=/)", "SHARD"),
        (r"(chunks|questions|entities|reports)\.lance", "NO_ROWS.lance"),
    ):
        place = re.sub(pattern, name, place)
    return place


@pytest.fixture(scope="module")
def intact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Stores of two published versions, the second of which changed one shard and deleted a row."""
    base = Base(tmp_path_factory.mktemp("intact"))
    base.write("00", a="abc", b="before", d="gone")
    base.write("01", **TEXTS["01"])
    base.sync("00", "01")
    base.publish()
    base.write("00", **TEXTS["00"])
    base.sync("00")
    base.publish()
    StoreDamage(base.lake, base.open_vectors, base.snapshots).note()
    return base.root


def rows(base: Base, snapshot: Snapshot) -> dict[str, list[str]]:
    """All rows of a version, by table, read as readers do; serving rows have no order."""
    found = {n: base.lake.read(TABLES[n], versions=v).to_pylist() for n, v in snapshot.tables.items()}
    for name, version in snapshot.vector_tables.items():
        with readable(name):
            found[f"lancedb.{name}"] = base.vectors.open_at(name, version).to_arrow().to_pylist()
    return {name: sorted(map(str, each)) for name, each in found.items()}


def current(base: Base) -> Snapshot:
    snapshot = base.snapshots.current()
    assert snapshot is not None
    return snapshot


def index(base: Base) -> None:
    """What indexing does with what is missing."""
    stale = {name.rpartition(" ")[2] for name in base.unfinished()}
    for shard, texts in TEXTS.items():
        base.write(shard, **texts)
    base.sync(*sorted({*stale, *TEXTS}))
    base.publish()


def mend(base: Base) -> tuple[list[Damage], list[str]]:
    """What was found, and what could not be made whole."""
    damage, aside = StoreDamage(base.lake, base.open_vectors, base.snapshots), Quarantine(base.root)
    found = damage.find()
    if found:
        damage.set_aside(found, aside)
    index(base)
    dropped = damage.settle(aside)
    damage.note()
    return found, dropped


def kinds(root: Path) -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    for path in sorted(root.rglob("*")):
        place = path.relative_to(root).as_posix()
        if path.is_file() and not place.endswith(".lock"):
            found.setdefault(kind_of(place), []).append(path)
    return found


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda each: each.__name__)
def test_every_kind_of_file_is_mended(intact: Path, tmp_path: Path, damage: Callable[[Path], None]) -> None:
    expected = rows(Base(intact), current(Base(intact)))
    unmended = {}
    for kind, paths in kinds(intact).items():
        root = tmp_path / "home"
        shutil.copytree(intact, root)
        damage(root / paths[-1].relative_to(intact))
        try:
            assert mended_rows(root) == expected
            again = Base(root)
            assert StoreDamage(again.lake, again.open_vectors, again.snapshots).find(thorough=True) == []
        except (AssertionError, StoreError) as error:
            unmended[kind] = error
        shutil.rmtree(root)
    assert unmended == {}


def test_a_broken_index_is_found_where_nothing_tells_what_was_intact(intact: Path, tmp_path: Path) -> None:
    expected = rows(Base(intact), current(Base(intact)))
    indexed = {path.name: path for path in intact.glob("vectors/*.lance/_indices/*/*") if path.stat().st_size}
    assert len(indexed) > 4
    for path in indexed.values():
        root = tmp_path / "home"
        shutil.copytree(intact, root)
        (root / RECORD).unlink()
        max((root / "snapshots").glob("0*.json")).unlink()
        (root / path.relative_to(intact)).write_bytes(b"")
        assert mended_rows(root) == expected
        again = Base(root)
        for name in current(again).vector_tables:
            again.vectors.scan(name)
        shutil.rmtree(root)


def mended_rows(root: Path) -> dict[str, list[str]]:
    """All rows that readers see after indexing; before it, they see a version that can be read, or one line."""
    base = Base(root)
    with suppress(StoreError):
        version, _ = intact_version(base.snapshots)
        assert version is not None
        rows(base, version)
    mend(base)
    again = Base(root)
    return rows(again, current(again))


def test_nothing_is_damaged_where_nothing_was(intact: Path, tmp_path: Path) -> None:
    shutil.copytree(intact, tmp_path / "copy")
    base = Base(tmp_path / "copy")
    for thorough in (False, True):
        assert StoreDamage(base.lake, base.open_vectors, base.snapshots).find(thorough=thorough) == []
    (tmp_path / "copy" / RECORD).unlink()
    assert StoreDamage(base.lake, base.open_vectors, base.snapshots).find() == []


@pytest.mark.parametrize("folders", [("vectors", "snapshots"), ("lake", "snapshots"), ("lake", "vectors", "snapshots")])
def test_files_of_stores_that_are_gone_are_not_looked_for_in_new_ones(
    intact: Path, tmp_path: Path, folders: tuple[str, ...]
) -> None:
    expected = rows(Base(intact), current(Base(intact)))
    shutil.copytree(intact, tmp_path / "home")
    for folder in folders:
        shutil.rmtree(tmp_path / "home" / folder)
    mend(Base(tmp_path / "home"))
    again = Base(tmp_path / "home")
    assert rows(again, current(again)) == expected
    assert StoreDamage(again.lake, again.open_vectors, again.snapshots).find(thorough=True) == []


def test_what_is_published_while_damage_is_looked_for_is_none(
    intact: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(intact, tmp_path / "home")
    base, readable_snapshots = Base(tmp_path / "home"), Snapshots.readable

    def publishing(snapshots: Snapshots) -> list[Snapshot]:
        found = readable_snapshots(snapshots)
        monkeypatch.undo()
        base.write("00", a="new")
        base.sync("00")
        base.publish()
        return found

    monkeypatch.setattr(Snapshots, "readable", publishing)
    assert StoreDamage(base.lake, base.open_vectors, base.snapshots).find(thorough=True) == []
    assert base.snapshots.numbers() == [1, 2, 3]


BEFORE = b"trees and leaves"


@pytest.fixture
def known(tmp_path: Path) -> str:
    """Mark of the file `a`, which is known to be intact."""
    (tmp_path / "a").write_bytes(BEFORE)
    checksums = Checksums(tmp_path)
    (mark,) = checksums.marks(["a"], {}).values()
    checksums.save()
    return mark


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "it is missing"),
        (b"", "it is empty"),
        (BEFORE[:7], "it has another size than when it was written"),
        (b"T" + BEFORE[1:], "its content is not what was written"),
        (BEFORE, None),
    ],
)
def test_damage_is_found_and_named(tmp_path: Path, known: str, content: bytes | None, problem: str | None) -> None:
    if content is None:
        (tmp_path / "a").unlink()
    else:
        (tmp_path / "a").write_bytes(content)
    assert Checksums(tmp_path).problem("a", known) == problem
    assert Checksums(tmp_path).problem("a") == problem
    (tmp_path / RECORD).unlink()
    assert Checksums(tmp_path).problem("a", known) == problem
    if problem:
        with pytest.raises(StoreError, match=rf"a: {problem}; run `rag-assets index`"):
            Checksums(tmp_path).marks(["a"], {"a": known})


def test_a_record_that_was_damaged_counts_for_nothing(tmp_path: Path, known: str) -> None:
    record = (tmp_path / RECORD).read_bytes()
    assert Checksums(tmp_path).known("") == ["a"]
    (tmp_path / RECORD).write_bytes(record.replace(known.encode(), known.replace(":", ":0").encode()))
    assert Checksums(tmp_path).known("") == []


def test_what_another_process_wrote_down_meanwhile_stays(tmp_path: Path, known: str) -> None:
    first, second = Checksums(tmp_path), Checksums(tmp_path)
    for name, checksums in (("first", first), ("second", second)):
        (tmp_path / name).write_bytes(BEFORE)
        assert checksums.problem(name) is None
    second.save()
    first.save(only_over_what_was_read=True)
    again = Checksums(tmp_path)
    assert (again.mark("first"), again.mark("second")) == (None, known)
    first.save()
    assert Checksums(tmp_path).mark("first") == known


def test_another_name_of_a_file_is_no_reason_to_read_it_again(tmp_path: Path, known: str) -> None:
    os.link(tmp_path / "a", tmp_path / "b")
    checksums = Checksums(tmp_path)
    checksums.adopt(checksums.known(""))
    checksums.save()
    noted = (tmp_path / RECORD).read_bytes()
    assert Checksums(tmp_path).problem("a", known) is None
    assert (tmp_path / RECORD).read_bytes() == noted


def test_a_reader_takes_the_word_of_the_size_where_nothing_is_known(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(BEFORE)
    mark = mark_of(tmp_path / "a")
    (tmp_path / "a").write_bytes(b"T" + BEFORE[1:])
    assert Checksums(tmp_path).problem("a", mark, unread=True) is None
    assert Checksums(tmp_path).problem("a", mark) == "its content is not what was written"
