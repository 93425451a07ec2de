"""The published tables as other programs read them: one version at a time, whatever happens to lake and readers."""

import errno
import os
import re
import shutil
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner

from rag_assets.cli import main
from rag_assets.contracts.tables import TABLES
from rag_assets.pipeline.home import Home
from rag_assets.pipeline.settings import load_settings
from rag_assets.serve.sql.database import open_database
from rag_assets.store.published_tables import PublishedTables
from rag_assets.store.queries import read_queries
from rag_assets.store.snapshots import Snapshots

OPERATIONS = Path(__file__).parents[2] / "docs" / "operations.md"
VIEWS = [*TABLES, *read_queries()]


def copied(sample_home: Path, folder: Path) -> Home:
    """A copy of the sample that a test may change."""
    shutil.copytree(sample_home, folder, symlinks=True)
    return Home(load_settings(home=folder))


def place(home: Home) -> Path:
    return home.path / "published" / "current"


def asked(path: Path, query: str) -> list[tuple[object, ...]]:
    with duckdb.connect(path / "rag_assets.duckdb", read_only=True) as connection:
        return connection.execute(query).fetchall()


def plain(value: object) -> object:
    """A value with arrays of fixed and of any length as lists alike."""
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return {name: plain(each) for name, each in value.items()} if isinstance(value, dict) else value


def publish_again(home: Home) -> int:
    """A further version of what is published."""
    current = home.snapshots.current()
    assert current is not None
    changed = type(current)(**{**vars(current), "number": home.snapshots.next_number(), "pipeline": "next"})
    return home.snapshots.publish(changed).number


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_holds_what_sql_says(sample_home: Path, name: str) -> None:
    home = Home(load_settings(home=sample_home))
    with open_database(home.lake, home.snapshots.current()) as connection:
        wanted = connection.execute(f"SELECT * FROM {name} ORDER BY ALL").fetchall()
    assert plain(asked(place(home), f"SELECT * FROM {name} ORDER BY ALL")) == plain(wanted)


def test_views_and_columns_say_what_they_hold(sample_home: Path) -> None:
    [(comment,)] = asked(
        place(Home(load_settings(home=sample_home))), "SELECT comment FROM duckdb_views() WHERE view_name = 'documents'"
    )
    assert comment == TABLES["documents"].description
    columns = asked(
        place(Home(load_settings(home=sample_home))),
        "SELECT column_name, comment FROM duckdb_columns() WHERE table_name = 'chunks'",
    )
    described = {field.name: TABLES["chunks"].describe(field.name) for field in TABLES["chunks"].fields}
    assert {name: comment for name, comment in columns} == described  # noqa: C416 - rows have no static length
    [(comment,)] = asked(
        place(Home(load_settings(home=sample_home))),
        "SELECT comment FROM duckdb_columns() WHERE table_name = 'table_cells' AND column_name = 'value'",
    )
    assert comment == "Text of the cell, as displayed."


def test_a_version_takes_no_space_of_its_own(sample_home: Path) -> None:
    home = Home(load_settings(home=sample_home))
    for name in ("documents", "chunks"):
        files = sorted((place(home) / name).iterdir())
        assert [file.stat().st_ino for file in files] == [path.stat().st_ino for path in home.lake.paths(TABLES[name])]


def test_nothing_published_anew_writes_nothing(sample_home: Path, tmp_path: Path) -> None:
    home = copied(sample_home, tmp_path / "home")
    home.snapshots.settle()
    before = {path: path.lstat().st_mtime_ns for path in place(home).parent.rglob("*")}
    current = home.snapshots.current()
    assert current is not None
    home.snapshots.move_on(current.number)
    home.snapshots.settle()
    assert {path: path.lstat().st_mtime_ns for path in place(home).parent.rglob("*")} == before


def test_a_rollback_moves_the_place(sample_home: Path, tmp_path: Path) -> None:
    home = copied(sample_home, tmp_path / "home")
    assert publish_again(home) == 2
    assert asked(place(home), "SELECT number FROM snapshot") == [(2,)]
    result = CliRunner().invoke(main, ["--home", str(home.path), "snapshots", "1"])
    assert result.exit_code == 0, result.output
    assert asked(place(home), "SELECT number FROM snapshot") == [(1,)]
    assert str(place(home).readlink()) == "1"


def test_a_query_goes_on_with_its_version_when_the_lake_forgets_it(sample_home: Path, tmp_path: Path) -> None:
    home = copied(sample_home, tmp_path / "home")
    home.snapshots.settle()  # a copy has no links
    with duckdb.connect(place(home) / "rag_assets.duckdb", read_only=True) as reader:
        before = reader.execute("SELECT count(*) FROM chunks").fetchall()
        publish_again(home)
        for path in home.lake.paths(TABLES["chunks"]):
            path.unlink()
        assert reader.execute("SELECT count(*) FROM chunks").fetchall() == before
        assert reader.execute("SELECT number FROM snapshot").fetchall() == [(1,)]


def test_folders_of_kept_versions_stay_and_older_ones_go(sample_home: Path, tmp_path: Path) -> None:
    home = copied(sample_home, tmp_path / "home")
    for _ in range(4):
        publish_again(home)
    home.snapshots.prune(3)
    folder = home.path / "published"
    assert sorted(entry.name for entry in folder.iterdir()) == ["3", "4", "5", "current"]
    home.snapshots.prune(1)
    assert sorted(entry.name for entry in folder.iterdir()) == ["4", "5", "current"]


def interrupted(calls: int, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a method of `PublishedTables` die on its n-th call from now."""
    method: Callable[..., None] = getattr(PublishedTables, name)
    left = [calls]

    def dying(*arguments: object) -> None:
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt
        method(*arguments)

    monkeypatch.setattr(PublishedTables, name, dying)


@pytest.mark.parametrize("method", ["_link", "show"])
@pytest.mark.parametrize("finish", ["reader", "writer"])
def test_a_process_killed_in_between_is_finished_by_the_next(
    sample_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, finish: str
) -> None:
    home = copied(sample_home, tmp_path / "home")
    home.snapshots.settle()
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        interrupted(7 if method == "_link" else 1, method, patched)
        publish_again(home)
    assert asked(place(home), "SELECT number FROM snapshot") == [(1,)]
    if finish == "writer":
        home.snapshots.move_on(2)
    seen = home.snapshots.current()
    assert seen is not None
    # killed before readers moved, they stay until a writer comes; killed after, the first reader moves the place on
    assert seen.number == (1 if (method, finish) == ("_link", "reader") else 2)
    assert asked(place(home), "SELECT number FROM snapshot") == [(seen.number,)]
    assert asked(place(home), "SELECT count(*) FROM documents") == [(9,)]


def test_a_place_that_was_removed_is_made_again(sample_home: Path, tmp_path: Path) -> None:
    home = copied(sample_home, tmp_path / "home")
    shutil.rmtree(home.path / "published")
    home.snapshots.current()
    assert asked(place(home), "SELECT count(*) FROM documents") == [(9,)]


@pytest.mark.parametrize("name", ["a*b", "[ab]", "it's so", "a?b#c d", "year=2024"])
@pytest.mark.parametrize("follow", [True, False])
def test_a_home_may_move_and_have_any_name(sample_home: Path, tmp_path: Path, name: str, follow: bool) -> None:
    shutil.copytree(sample_home, tmp_path / name, symlinks=not follow, ignore=shutil.ignore_patterns("models"))
    home = Home(load_settings(home=tmp_path / name))
    home.snapshots.settle()
    [(query,)] = asked(place(home), "SELECT sql FROM duckdb_views() WHERE view_name = 'documents'")
    assert str(home.path).replace("'", "''") in re.sub(r"\[([*?[])\]", r"\1", str(query))
    assert asked(place(home), "SELECT count(*) FROM documents") == [(9,)]
    assert len(asked(place(home), "DESCRIBE documents")) == len(TABLES["documents"].fields)


def test_an_index_run_mends_the_views_of_a_home_that_moved(sample_home: Path, tmp_path: Path) -> None:
    home = copied(sample_home, tmp_path / "moved")
    result = CliRunner().invoke(main, ["--home", str(home.path), "index"])
    assert result.exit_code == 0, result.output
    [(query,)] = asked(place(home), "SELECT sql FROM duckdb_views() WHERE view_name = 'documents'")
    assert str(home.path) in str(query)


def test_where_there_are_no_links_a_file_names_the_version(
    sample_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    home = copied(sample_home, tmp_path / "home")
    shutil.rmtree(home.path / "published")
    monkeypatch.setattr(os, "link", refuse)
    monkeypatch.setattr(os, "symlink", refuse)
    home.snapshots.settle()
    publish_again(home)
    assert place(home).read_text() == "2\n"
    assert asked(home.path / "published" / place(home).read_text().strip(), "SELECT count(*) FROM documents") == [(9,)]
    assert home.snapshots.current()
    home.snapshots.roll_back(1)
    assert place(home).read_text() == "1\n"


def test_readers_see_one_version_while_others_are_published(sample_home: Path, tmp_path: Path) -> None:
    home = copied(sample_home, tmp_path / "home")
    home.snapshots.settle()
    stop, seen, problems = threading.Event(), set[object](), list[BaseException]()

    def read() -> None:
        try:
            while not stop.is_set():
                seen.add(tuple(asked(place(home), "SELECT number, (SELECT count(*) FROM chunks) FROM snapshot")))
        except BaseException as error:  # noqa: BLE001 - whatever a reader meets
            problems.append(error)

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    writer = Home(home.settings)
    for _ in range(5):
        publish_again(writer)
        writer.snapshots.prune(2)
    stop.set()
    for thread in threads:
        thread.join()
    assert not problems
    assert len(seen) > 1


def test_a_home_without_a_version_has_no_place(tmp_path: Path) -> None:
    snapshots = Snapshots(
        tmp_path / "snapshots", PublishedTables(tmp_path / "published", Home(load_settings(home=tmp_path)).lake)
    )
    snapshots.settle()
    assert snapshots.current() is None
    assert list(tmp_path.iterdir()) == []


def recipes() -> list[tuple[str, str]]:
    """The blocks of code on reading the published tables: language and text."""
    section = (
        OPERATIONS.read_text("utf-8").partition("## Reading the tables from other programs")[2].partition("\n## ")[0]
    )
    return re.findall(r"```(sql|python)\n(.*?)```", section, re.DOTALL)


@pytest.mark.parametrize(("language", "recipe"), recipes())
def test_recipes_of_the_documentation_work(
    sample_home: Path, language: str, recipe: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / ".rag").symlink_to(sample_home)
    monkeypatch.chdir(tmp_path)
    if language == "sql":
        with duckdb.connect() as connection:
            assert connection.execute(recipe).fetchall()
        return
    for library in ("pandas", "polars"):
        if f"import {library}" in recipe:
            pytest.importorskip(library, reason=f"{library} is not installed: pip install 'rag-assets[dev]'")
    names: dict[str, object] = {}
    exec(recipe, names)
    assert names["count"] == 9


@pytest.mark.parametrize("damage", ["removed", "cut", "folder"])
def test_a_damaged_place_is_made_anew(sample_home: Path, tmp_path: Path, damage: str) -> None:
    home = copied(sample_home, tmp_path / "home")
    shown = place(home) / "chunks"
    before = asked(place(home), "SELECT count(*) FROM chunks")
    file = min(shown.iterdir())
    match damage:
        case "folder":
            shutil.rmtree(shown)
        case "removed":
            file.unlink()
        case _:
            content = file.read_bytes()
            file.unlink()
            file.write_bytes(content[:100])
    home.snapshots.settle()
    assert asked(place(home), "SELECT count(*) FROM chunks") == before
    assert [path.stat().st_nlink > 1 for path in shown.iterdir()].count(False) == 0


def test_a_version_from_before_a_table_is_not_damaged(
    sample_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = copied(sample_home, tmp_path / "home")
    monkeypatch.setitem(TABLES, "added", replace(TABLES["chunks"], name="added"))
    current = home.snapshots.current()
    assert current is not None
    tables = PublishedTables(home.path / "published", home.lake)
    assert tables.is_whole(current.number, current.tables)
    assert tables.is_whole(current.number, {**current.tables, "added": current.tables["chunks"]}) is False
