"""Naming, moving and forgetting sources on the command line."""

import json
import os
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rag_assets.cli import main


@pytest.fixture
def root(tmp_path: Path, models_folder: Path) -> Path:
    """A folder with an empty home and the sources `a` and `b`."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "models").symlink_to(models_folder)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "note.md").write_text(f"# {name}\n\ntext of {name}", encoding="utf-8")
    return tmp_path


def run(root: Path, *arguments: str, sources: str | None = None) -> Result:
    return CliRunner().invoke(main, ["--home", str(root / "home"), *arguments], env={"RAG_SOURCES": sources})


def documents(root: Path) -> dict[str, str]:
    lines = run(root, "sql", "SELECT document_id, uri FROM documents ORDER BY 1", "--json").stdout.splitlines()
    return {row["document_id"]: row["uri"] for row in map(json.loads, lines)}


def test_documents_of_an_unset_source_stay_until_it_is_forgotten(root: Path) -> None:
    assert run(root, "index", sources=str(root / "a")).exit_code == 0
    result = run(root, "index", str(root / "b"))
    assert result.exit_code == 1
    assert "source a is not among the sources now; its documents are kept" in result.stderr
    assert documents(root).keys() == {"a/note.md", "b/note.md"}
    assert "take it out of the settings first" in run(root, "index", "--forget", "a", sources=str(root / "a")).stderr
    result = run(root, "index", "--forget", "a")
    assert result.exit_code == 0, result.output
    assert documents(root).keys() == {"b/note.md"}
    result = run(root, "index", sources=str(root / "a"))
    assert result.exit_code == 0, result.output
    assert documents(root).keys() == {"a/note.md", "b/note.md"}


def test_an_unset_source_does_not_make_room_for_another_of_its_name(root: Path) -> None:
    assert run(root, "index", sources=f"ok={root / 'a'}").exit_code == 0
    result = run(root, "index", f"ok={root / 'b'}")
    assert result.exit_code == 1
    assert f"source ok is {root / 'a'} already, not {root / 'b'}" in result.stderr
    assert documents(root) == {"ok/note.md": str(root / "a" / "note.md")}
    assert run(root, "index", f"ok={root / 'a'}").exit_code == 0
    assert run(root, "index", "--forget", "ok", f"ok={root / 'b'}").exit_code == 0
    assert documents(root) == {"ok/note.md": str(root / "b" / "note.md")}


def test_status_begins_with_a_source_that_is_gone_and_ends_with_1(root: Path) -> None:
    assert run(root, "index", str(root / "a")).exit_code == 0
    assert run(root, "status").exit_code == 0
    (root / "a").rename(root / "away")
    result = run(root, "status")
    assert result.exit_code == 1
    assert result.stdout.splitlines()[2] == f"          source a: no such folder: {root / 'a'}"
    told = run(root, "status", "--json")
    assert (told.exit_code, [*json.loads(told.stdout)["unreachable"]]) == (1, ["a"])


def test_a_source_moves(root: Path) -> None:
    assert run(root, "index", f"ok={root / 'a'}").exit_code == 0
    (root / "a").rename(root / "c:d=e")
    assert run(root, "index").exit_code == 1
    for place, forget in ((root / "c:d=e", ()), (root / "f", ("--forget", "ok"))):
        if not place.exists():
            shutil.copytree(root / "c:d=e", place)
        result = run(root, "index", *forget, f"ok={place}")
        assert result.exit_code == 0, result.output
        assert documents(root) == {"ok/note.md": str(place / "note.md")}
    assert f"NAME={root / 'b'}" in run(root, "index", f"ok={root / 'b'}", sources=f"ok={root / 'f'}").stderr


def test_a_folder_of_an_odd_name_is_indexed_again_and_again_and_forgotten(root: Path) -> None:
    for name in ("x=1", "a:b"):
        (root / "a").rename(root / name)
        assert run(root, "index", str(root / name)).exit_code == 0
        result = run(root, "index", "--json")
        assert result.exit_code == 0, result.output
        assert json.loads(result.stdout)["unchanged"] == 1
        assert run(root, "index", "--forget", name).exit_code == 0
        assert documents(root) == {}
        (root / name).rename(root / "a")


def test_a_run_names_what_it_did_not_read(root: Path) -> None:
    (root / "empty").mkdir()
    os.mkfifo(root / "a" / "pipe.md")
    shutil.copy(root / "a" / "note.md", root / "a" / "other.md")
    result = run(root, "index", str(root / "a"), str(root / "empty"))
    assert result.exit_code == 0, result.output
    assert "left out: a/pipe.md: a named pipe" in result.stderr
    assert f"source empty: no file in {root / 'empty'} to index; what counts: ** without" in result.stderr
    times = (root / "a" / "note.md").stat()
    (root / "a" / "note.md").write_text("# a\n\ntent of a", encoding="utf-8")
    os.utime(root / "a" / "note.md", ns=(times.st_atime_ns, times.st_mtime_ns))
    (root / "a" / "other.md").chmod(0o600)
    state = json.loads(run(root, "status", "--json").stdout)
    assert (state["touched"], state["changed"]) == (["a/note.md", "a/other.md"], [])
    summary = json.loads(run(root, "index", "--full-check", "--json").stdout)
    assert (summary["changed"], summary["read_in_part"], summary["no_longer_readable"]) == (["a/note.md"], [], [])
    assert "tent of a" in run(root, "search", "tent").stdout
