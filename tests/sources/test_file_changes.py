"""What happens to stored documents when files change unseen, change in their rights only, or can no longer be read."""

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from rights import without_override

from rag_assets.contracts.tables import BLOCKS, DOCUMENTS, PAGES, PARSE_FAILURES
from rag_assets.parsing import documents
from rag_assets.parsing.documents import update_documents
from rag_assets.parsing.records import document_failures, incomplete_documents
from rag_assets.pipeline.options import StepOptions
from rag_assets.pipeline.settings import load_settings
from rag_assets.sources.changes import Changes, Listing, find_changes, list_sources
from rag_assets.sources.listing import Source, SourceFile
from rag_assets.store.lake import SHARDS, Lake

ID = "specs/a.md"


def ignore(done: int, total: int) -> None:
    """No progress is shown."""


class Base:
    """A folder with one file, and the lake of its documents."""

    def __init__(self, path: Path) -> None:
        self.folder = path / "specs"
        self.folder.mkdir(exist_ok=True, parents=True)
        self.file = self.folder / "a.md"
        self.lake = Lake(path / "lake")
        self.limits = StepOptions(load_settings()).parsing

    def listing(self) -> Listing:
        return list_sources([Source("specs", str(self.folder))], ("**",), (), {})

    def changes(self, listing: Listing | None = None) -> Changes:
        return find_changes(self.lake, listing or self.listing())

    def index(self, listing: Listing | None = None, *, full_check: bool = False) -> tuple[int, int]:
        """Documents parsed and files written."""
        shards = sorted({*self.changes(listing).shards, *self.lake.latest(DOCUMENTS)}) if not full_check else SHARDS
        used = listing or self.listing()
        report = update_documents(self.lake, used, shards, self.limits, 1, ignore, full_check=full_check)
        return report.total().computed, report.total().written

    def write(self, text: str) -> None:
        """Write the file, keeping its times."""
        times = (self.file.stat().st_atime_ns, self.file.stat().st_mtime_ns) if self.file.exists() else (10**18, 10**18)
        self.file.write_text(text)
        os.utime(self.file, ns=times)

    def text(self) -> list[str]:
        texts: list[str] = self.lake.read(PAGES)["text"].to_pylist()
        return texts

    def document(self) -> dict[str, object]:
        [row] = self.lake.read(DOCUMENTS).to_pylist()
        return dict(row)


@pytest.fixture
def base(tmp_path: Path) -> Base:
    made = Base(tmp_path)
    made.write("one")
    made.index()
    return made


def changed_file(listing: Listing, **facts: object) -> Listing:
    files: Mapping[str, SourceFile] = {name: replace(file, **facts) for name, file in listing.files.items()}  # type: ignore[arg-type]
    return replace(listing, files=files)


def test_other_content_of_the_same_size_and_time_is_seen(base: Base) -> None:
    base.write("two")
    assert base.changes().touched == (ID,)
    assert base.index()[0] == 1
    assert base.text() == ["two"]
    assert base.changes().unchanged == 1


def test_a_file_put_in_place_of_another_is_seen(base: Base) -> None:
    other = base.folder.parent / "other.md"
    other.write_text("two")
    os.utime(other, ns=(10**18, 10**18))
    other.replace(base.file)
    base.index()
    assert base.text() == ["two"]


@pytest.mark.parametrize("touch", ["chmod", "rename", "copy", "utime"])
def test_a_touched_file_is_hashed_and_not_parsed(base: Base, touch: str) -> None:
    if touch == "chmod":
        base.file.chmod(0o600)
    elif touch == "rename":
        base.file.rename(base.folder / "b.md").rename(base.file)
    elif touch == "copy":
        base.write("one")
    else:
        os.utime(base.file, ns=(2 * 10**18, 2 * 10**18))
    changes = base.changes()
    assert (changes.touched, changes.changed) == (((), (ID,)) if touch == "utime" else ((ID,), ()))
    assert base.index() == (0, 1), "the new fingerprint only"
    assert base.changes().unchanged == 1
    assert base.index() == (0, 0)


def test_a_share_that_numbers_files_anew_costs_one_hash_a_file(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[str] = []
    read: Callable[..., object] = documents._read_content

    def counted(file: SourceFile, scratch: Path) -> object:
        hashed.append(file.document_id)
        return read(file, scratch)

    monkeypatch.setattr(documents, "_read_content", counted)
    facts = base.listing().files[ID].fingerprint.rpartition(":")[0]
    for number in range(3):
        listing = changed_file(base.listing(), fingerprint=f"{facts}:{number}")
        assert base.changes(listing).touched == ((ID,) if number == 0 else ())
        base.index(listing)
        assert hashed == [ID]
    base.write("two")
    base.index()
    assert base.text() == ["two"]


def test_a_full_check_reads_every_file_and_writes_nothing_where_nothing_changed(base: Base) -> None:
    assert base.index(full_check=True) == (0, 0)
    known = base.listing().files[ID].fingerprint
    base.write("two")
    listing = changed_file(base.listing(), fingerprint=known)  # as of a file system that tells nothing else
    assert base.index(listing) == (0, 0)
    update_documents(base.lake, listing, SHARDS, base.limits, 1, ignore)
    assert base.text() == ["one"]
    tagged = changed_file(listing, has_content_tag=True)
    assert base.index(tagged, full_check=True) == (0, 0), "told by its tag"
    assert base.index(listing, full_check=True)[0] == 1
    assert base.text() == ["two"]


def _lose_and_regain(path: Path) -> None:
    base = Base(path)
    base.write("one")
    base.index()
    blocks, modified_at = base.lake.read(BLOCKS).to_pylist(), base.document()["modified_at"]
    base.file.chmod(0)
    assert base.changes().changed == (ID,)
    assert base.index()[0] == 0
    assert base.lake.read(BLOCKS).to_pylist() == blocks, "still searched"
    assert (base.document()["status"], base.document()["modified_at"]) == ("unreadable", modified_at)
    [failure] = document_failures(base.lake)
    assert failure["cause"] == "unreadable"
    assert str(failure["message"]).startswith("no longer readable since 20")
    assert "no permission" in str(failure["message"])
    assert "kept as of 2001-09-09 01:46 UTC" in str(failure["message"])
    assert (base.changes().changed, base.changes().unchanged) == ((), 1)
    assert base.index(full_check=True) == (0, 0), "told once"
    base.file.chmod(0o600)
    assert base.changes().changed == (ID,)
    assert base.index()[0] == 0, "the bytes are those that were read"
    assert (base.document()["status"], document_failures(base.lake)) == ("parsed", [])
    assert base.changes().unchanged == 1


def _change_while_lost(path: Path) -> None:
    base = Base(path)
    base.write("one")
    base.index()
    base.file.write_text("three")
    base.file.chmod(0)
    base.index()
    assert base.text() == ["one"]
    base.limits = replace(base.limits, cells=7)  # computed anew by other limits
    update_documents(base.lake, base.listing(), SHARDS, base.limits, 1, ignore)
    assert base.text() == ["one"]
    base.file.chmod(0o600)
    assert base.index()[0] == 1
    assert base.text() == ["three"]
    base.file.unlink()
    assert base.changes().gone == (ID,)


def _never_read(path: Path) -> None:
    base = Base(path)
    base.write("one")
    base.file.chmod(0)
    base.index()
    assert base.document()["status"] == "failed"
    assert base.changes().failed == (ID,)
    base.file.chmod(0o600)
    assert base.index()[0] == 1
    assert (base.document()["status"], base.text()) == ("parsed", ["one"])


@pytest.mark.skipif(sys.platform != "linux", reason="gives up capabilities of Linux")
@pytest.mark.parametrize("act", [_lose_and_regain, _change_while_lost, _never_read])
def test_a_file_that_may_no_longer_be_read(act: Callable[[Path], None], tmp_path: Path) -> None:
    without_override(act, tmp_path)


def test_nothing_to_report_of_a_document_that_was_read(base: Base) -> None:
    assert incomplete_documents(base.lake) == []
    assert base.lake.read(PARSE_FAILURES).num_rows == 0


def test_what_lacked_a_package_is_tried_again_with_other_packages(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    (base.folder / "b.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    base.limits = replace(base.limits, unstructured_formats=("eml",))
    parsed: list[int] = []
    for packages in ("first", "first", "second", "second"):
        monkeypatch.setattr(documents, "installed_readers", lambda _, packages=packages: packages)
        report = update_documents(base.lake, base.listing(), SHARDS, base.limits, 1, ignore)
        parsed.append(report.total().computed)
    assert parsed == [2, 0, 1, 0], "both for the setting, then the one that lacks a package"


def test_a_limit_of_time_makes_nothing_stale_but_what_failed_by_it(base: Base) -> None:
    assert base.index() == (0, 0)
    base.limits = replace(base.limits, timeout_seconds=base.limits.timeout_seconds + 1, memory_bytes=1 << 31)
    assert base.index() == (0, 0)
    base.write("\n\n".join(f"part {number}" for number in range(20_000)))  # takes some tenths of a second
    base.limits = replace(base.limits, timeout_seconds=0.001)
    assert base.index()[0] == 1
    assert base.text() == []
    assert base.index()[0] == 0
    base.limits = replace(base.limits, timeout_seconds=30.0)
    assert documents.documents_to_retry(base.lake, base.limits) == {ID: "parsing.timeout_seconds raised"}
    assert base.index()[0] == 1
    assert "part 19999" in "".join(base.text())
    assert documents.documents_to_retry(base.lake, base.limits) == {}
