"""Which sources there are, which of their documents are kept, and what counts as changed."""

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from rag_assets.contracts.causes import FailureCause
from rag_assets.contracts.content import Failure, ParsedDocument
from rag_assets.contracts.errors import SettingsError
from rag_assets.contracts.tables import DOCUMENTS
from rag_assets.parsing.records import document_record, rows
from rag_assets.pipeline.home import Home
from rag_assets.pipeline.settings import load_settings
from rag_assets.sources.changes import (
    Changes,
    Listing,
    find_changes,
    forgotten_sources,
    list_sources,
    overlaps,
    read_sources,
    shards_of_one_change,
    update_sources,
)
from rag_assets.sources.listing import Source, SourceFile, parse_source, scan_source
from rag_assets.store.lake import Lake, shard_of


def folder(path: Path) -> Path:
    path.mkdir(parents=True)
    (path / "a.md").write_text("# a", encoding="utf-8")
    return path


def only_file(path: Path) -> SourceFile:
    [file] = scan_source(Source("specs", str(path)), ("**",), ()).files
    return file


def store(lake: Lake, file: SourceFile, sha256: str | None = "0" * 64) -> None:
    parsed = ParsedDocument("md", failures=() if sha256 else (Failure(FailureCause.UNREADABLE, "cannot be read"),))
    table = rows(DOCUMENTS.schema, [document_record(file, sha256, parsed)])
    lake.write(DOCUMENTS, shard_of(file.document_id), table, {file.document_id: "key"})


def compare(lake: Lake, *files: SourceFile) -> Changes:
    return find_changes(lake, Listing({file.document_id: file for file in files}))


def test_a_source_that_is_not_named_any_more_keeps_its_documents(tmp_path: Path) -> None:
    listing = list_sources([Source("b", str(folder(tmp_path / "b")))], ("**",), (), {"a": 3, "b": 1})
    assert listing.unreachable == {
        "a": "source a is not among the sources now; its documents are kept; `rag-assets index --forget a` removes them"
    }
    assert list(listing.files) == ["b/a.md"]


def test_a_forgotten_source_loses_its_documents(tmp_path: Path) -> None:
    lake, file = Lake(tmp_path / "lake"), only_file(folder(tmp_path / "specs"))
    store(lake, file)
    for forgotten, gone in (((), ()), (("specs",), (file.document_id,))):
        listing = list_sources([], ("**",), (), {"specs": 1}, forgotten=forgotten)
        assert find_changes(lake, listing).gone == gone


def test_forgetting_marks_what_was_registered_or_has_documents(tmp_path: Path) -> None:
    registry = tmp_path / "sources.json"
    update_sources(registry, [Source("a", "/a")], [], [], [])
    update_sources(registry, [], ["a", "b"], [], ["a", "b"])
    assert json.loads(registry.read_bytes())["sources"] == {"a": None, "b": None}
    assert read_sources([], registry) == ()
    assert forgotten_sources([], registry) == {"a", "b"}
    with pytest.raises(SettingsError, match="no registered source 'c'"):
        update_sources(registry, [], ["c"], [], ["a", "b"])


def test_a_forgotten_source_comes_back_when_it_is_named_again(tmp_path: Path) -> None:
    registry = tmp_path / "sources.json"
    update_sources(registry, [], ["a", "b"], [], ["a", "b"])
    update_sources(registry, [Source("a", "/a")], [], [], ["b"])
    assert [source.name for source in read_sources(["b=/b"], registry)] == ["a", "b"]
    assert forgotten_sources(["b=/b"], registry) == set()
    update_sources(registry, [], [], ["b=/b"], ["a", "b"])
    assert forgotten_sources([], registry) == set(), "unset again, it must keep its documents"


def test_a_mark_goes_with_the_documents(tmp_path: Path) -> None:
    registry = tmp_path / "sources.json"
    update_sources(registry, [], ["a"], [], ["a"])
    update_sources(registry, [], [], [], ["a"])
    assert forgotten_sources([], registry) == {"a"}
    update_sources(registry, [], [], [], [])
    assert forgotten_sources([], registry) == set()


def test_what_the_settings_name_cannot_be_forgotten(tmp_path: Path) -> None:
    registry = tmp_path / "sources.json"
    with pytest.raises(SettingsError, match="take it out of the settings first"):
        update_sources(registry, [], ["a"], ["a=/a"], ["a"])
    assert not registry.exists()


def test_a_source_of_the_command_line_replaces_a_registered_one_only(tmp_path: Path) -> None:
    registry = tmp_path / "sources.json"
    update_sources(registry, [Source("ok", "/old")], [], [], [])
    update_sources(registry, [Source("ok", "/new", is_named=True)], [], [], ["ok"])
    assert read_sources([], registry) == (Source("ok", "/new"),)
    update_sources(registry, [Source("ok", "/newer")], ["ok"], [], ["ok"])
    assert read_sources([], registry) == (Source("ok", "/newer"),)
    with pytest.raises(SettingsError, match="NAME=/newest"):
        update_sources(registry, [Source("ok", "/newest")], [], ["ok=/configured"], [])


def test_a_source_takes_the_place_of_another_only_where_that_is_meant(tmp_path: Path) -> None:
    registry, old, new = tmp_path / "sources.json", folder(tmp_path / "a/docs"), folder(tmp_path / "b/docs")
    update_sources(registry, [parse_source(str(old))], [], [], [])
    for text in (str(new), f"docs={new}"):
        with pytest.raises(SettingsError, match=f"docs is {old} already, not {new}; .*NAME={new}.*--forget docs docs="):
            update_sources(registry, [parse_source(text)], [], [], ["docs"])
    assert read_sources([], registry) == (Source("docs", str(old)),)
    (tmp_path / "link").symlink_to(old)
    update_sources(registry, [parse_source(f"docs={tmp_path / 'link'}")], [], [], ["docs"])
    shutil.rmtree(old)
    with pytest.raises(SettingsError, match=f"which is not there now; if it moved: `rag-assets index docs={new}`"):
        update_sources(registry, [parse_source(str(new))], [], [], ["docs"])
    update_sources(registry, [parse_source(f"docs={new}")], [], [], ["docs"])
    assert read_sources([], registry) == (Source("docs", str(new)),)
    with pytest.raises(SettingsError, match="docs is s3://bucket/docs already"):
        update_sources(tmp_path / "2", [Source("docs", "s3://bucket/docs")], [], [], [])
        update_sources(tmp_path / "2", [parse_source(f"docs={new}")], [], [], [])


def test_a_source_within_another_is_refused_and_a_known_one_is_named(tmp_path: Path) -> None:
    registry, outer, inner = tmp_path / "sources.json", folder(tmp_path / "n1"), folder(tmp_path / "n1/sub")
    (tmp_path / "link").symlink_to(inner)
    beside = folder(tmp_path / "n10")
    given = [parse_source(str(outer)), parse_source(str(beside))]
    for text in (str(inner), f"x={outer}", str(tmp_path / "link")):
        with pytest.raises(SettingsError, match=r"lies in source .*indexed twice; leave one out"):
            update_sources(registry, [*given, parse_source(text)], [], [], [])
    assert not registry.exists()
    update_sources(registry, given, [], [], [])
    with pytest.raises(SettingsError, match=f"source sub .{inner}. lies in source n1 .{outer}."):
        update_sources(registry, [parse_source(str(inner))], [], [], [])
    update_sources(registry, [parse_source(str(inner))], ["n1"], [], [])
    with pytest.raises(SettingsError, match="source sub .* lies in source n1"):
        update_sources(registry, [parse_source(str(outer))], [], [], [])
    known = read_sources([f"n1={outer}"], registry)
    assert [line[:30] for line in overlaps(known)] == ["source sub lies in source n1: "]
    update_sources(registry, [parse_source(str(inner))], [], [str(outer)], [])
    assert len(overlaps([Source("x", str(outer)), Source("y", str(outer))])) == 1


def test_a_folder_of_the_settings_is_the_registered_source_of_that_folder(tmp_path: Path) -> None:
    registry, files = tmp_path / "sources.json", folder(tmp_path / "files")
    (tmp_path / "link").symlink_to(files)
    update_sources(registry, [Source("docs", str(files))], [], [], [])
    for text in (str(files), str(tmp_path / "link"), f"docs={files}"):
        assert read_sources([text], registry) == (Source("docs", str(files)),)
    with pytest.raises(
        SettingsError, match="source x of the settings is source docs already: .* indexed twice; .*--forget docs"
    ):
        read_sources([f"x={files}"], registry)
    update_sources(registry, [], ["docs"], [str(files)], ["docs"])
    assert read_sources([str(files)], registry) == (Source("files", str(files)),)


def test_a_registered_source_that_the_settings_name_otherwise_can_be_dropped(tmp_path: Path) -> None:
    registry = tmp_path / "sources.json"
    update_sources(registry, [Source("ok", "/old")], [], [], [])
    with pytest.raises(SettingsError, match="NAME=/new, .*--forget ok"):
        read_sources(["ok=/new"], registry)
    update_sources(registry, [], ["ok"], ["ok=/new"], ["ok"])
    assert read_sources(["ok=/new"], registry) == (Source("ok", "/new"),)
    assert forgotten_sources(["ok=/new"], registry) == set()


@pytest.mark.parametrize("name", ["x=1", "a:b", "a=b:c=d", "仕様 1"])
def test_folders_of_any_name_are_registered(tmp_path: Path, name: str) -> None:
    source = parse_source(str(folder(tmp_path / name)))
    assert source == Source(name, str(tmp_path / name))
    update_sources(tmp_path / "sources.json", [source], [], [], [])
    assert read_sources([], tmp_path / "sources.json") == (source,)


def test_a_name_is_told_from_a_location(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder(tmp_path / "x=1")
    monkeypatch.chdir(tmp_path)
    assert parse_source("x=1") == Source("x=1", str(tmp_path / "x=1"))
    assert parse_source("y=x=1") == Source("y", str(tmp_path / "x=1"))
    assert parse_source(f"y={'x' * 300}").name == "y"


@pytest.mark.parametrize("text", [".=/new", "..=/new", "..=s3://bucket/new", "s3://bucket/.."])
def test_a_step_of_a_path_is_no_name(text: str) -> None:
    with pytest.raises(SettingsError, match="write NAME="):
        parse_source(text)


def test_a_folder_given_by_steps_is_named_after_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder(tmp_path / "specs" / "old"))
    assert (parse_source(".").name, parse_source("..").name) == ("old", "specs")


def test_a_moved_file_is_changed(tmp_path: Path) -> None:
    lake, file = Lake(tmp_path / "lake"), only_file(folder(tmp_path / "old" / "specs"))
    store(lake, file)
    assert compare(lake, file).changed == ()
    assert compare(lake, replace(file, uri="/new/specs/a.md")).changed == (file.document_id,)


@pytest.mark.parametrize("begun", ["old", "new"])
def test_both_names_of_a_moved_file_are_one_change(tmp_path: Path, begun: str) -> None:
    lake, file = Lake(tmp_path / "lake"), only_file(folder(tmp_path / "specs"))
    changed = replace(file, document_id="specs/changed.md", fingerprint="changed")
    store(lake, file)
    store(lake, replace(changed, fingerprint="as it was"))
    moved = replace(file, document_id="specs/moved.md")
    listing = Listing({each.document_id: each for each in (moved, changed)})
    shards = {"old": shard_of("specs/a.md"), "new": shard_of("specs/moved.md"), "other": shard_of("specs/changed.md")}
    assert len(set(shards.values())) == 3
    rest = {shards["old"], shards["new"]} - {shards[begun]}
    assert shards_of_one_change(lake, listing, [shards[begun]], every=False) == rest
    assert shards_of_one_change(lake, listing, [shards["other"]], every=False) == set()
    assert shards_of_one_change(lake, listing, [shards[begun]], every=True) == {*rest, shards["other"]}


def test_an_unreadable_file_is_tried_again_only_when_it_can_be_read(tmp_path: Path) -> None:
    lake, file = Lake(tmp_path / "lake"), only_file(folder(tmp_path / "specs"))
    store(lake, file, sha256=None)
    assert compare(lake, file).changed == (file.document_id,)
    for unreadable in (
        replace(file, path=str(tmp_path / "specs")),
        replace(file, local=False),
        replace(file, problem="no permission to read the file"),
    ):
        changes = compare(lake, unreadable)
        assert (changes.changed, changes.failed) == ((), (file.document_id,))
    assert compare(lake, replace(file, local=False, fingerprint="other")).changed == (file.document_id,)


def test_a_source_listed_in_part_removes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder(tmp_path / "specs")
    lake, file = Lake(tmp_path / "lake"), only_file(path)
    hidden = replace(file, document_id="specs/locked/b.md")
    store(lake, hidden)
    (path / "locked").mkdir()
    scandir = os.scandir

    def refuse(place: str | Path) -> object:
        if os.fspath(place).endswith("locked"):
            raise PermissionError(13, "Permission denied", place)
        return scandir(place)

    monkeypatch.setattr(os, "scandir", refuse)
    listing = list_sources([Source("specs", str(path))], ("**",), (), {"specs": 1})
    assert "specs/locked: Permission denied" in listing.unreachable["specs"]
    changes = find_changes(lake, listing)
    assert (changes.new, changes.gone) == (("specs/a.md",), ())


def test_a_home_does_not_index_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder(tmp_path / "specs")
    for name in ("rag", "dagster"):
        folder(path / name)
    monkeypatch.setenv("DAGSTER_HOME", str(path / "dagster"))
    home = Home(load_settings(home=path / "rag", sources=(str(path),)))
    assert list(home.listing().files) == ["specs/a.md"]
