"""Damage to a home as a person meets it: `index` mends what is derived, `verify` names it, readers go on."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rag_assets.cli import main
from rag_assets.store.checksums import RECORD
from rag_assets.store.snapshots import Pointer, Snapshots

# see tests/store/test_damage.py, tests/models and tests/test_stored_settings.py
ELSEWHERE = ("lake/", "vectors/", "snapshots/", "models/", "settings.json")
HARMLESS = (".lock", RECORD)


def remove(path: Path) -> None:
    path.unlink()


def empty(path: Path) -> None:
    path.write_bytes(b"")


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def turn(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.fixture(scope="module")
def intact(tmp_path_factory: pytest.TempPathFactory, models_folder: Path) -> Path:
    """A folder with a home and its sources, two documents of one line."""
    root = tmp_path_factory.mktemp("intact")
    (root / "home").mkdir()
    (root / "home" / "models").symlink_to(models_folder)
    (root / "specs").mkdir()
    (root / "specs" / "token.md").write_text("トークンの有効期限は 3600 秒である。\n", encoding="utf-8")
    (root / "specs" / "prices.csv").write_text("item,price\nprobe,120\n", encoding="utf-8")
    assert run(root, "index", str(root / "specs")).exit_code == 0
    return root


@pytest.fixture
def copied(intact: Path, tmp_path: Path) -> Path:
    """A copy of it, whose sources are still those of the first."""
    shutil.copytree(intact / "home", tmp_path / "home", symlinks=True)
    return tmp_path


def run(root: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["--home", str(root / "home"), *arguments])


def places(home: Path) -> list[str]:
    found = (path.relative_to(home).as_posix() for path in sorted(home.rglob("*")) if path.is_file())
    return [place for place in found if not place.startswith(ELSEWHERE) and not place.endswith(HARMLESS)]


@pytest.mark.parametrize("damage", [remove, empty, cut, turn], ids=lambda each: each.__name__)
def test_all_that_lies_beside_the_stores_is_mended(copied: Path, damage: Callable[[Path], None]) -> None:
    home = copied / "home"
    for place in places(home):
        if not place.endswith(".copy"):
            damage(home / place)
    shutil.rmtree(home / "vectors" / "chunks.lance")
    damage(next(home.glob("lake/pages/*/*.parquet")))
    damage(home / "lake" / "shards.json")
    named = run(copied, "verify", "--json")
    assert named.exit_code == 1
    told = {each["place"] for each in json.loads(named.stdout)}
    assert {"sources.json", "lake/shards.json", "vectors/chunks.lance"} < told
    assert any(place.startswith("lake/pages/") for place in told)
    mended = run(copied, "index")
    if mended.exit_code:  # a configuration may be anybody's: it is named, not replaced
        last = mended.stderr.splitlines()[-1]
        assert "the Dagster instance cannot be used; is dagster.yaml damaged?" in last
        (home / "dagster_home" / "dagster.yaml").unlink()
        assert run(copied, "index").exit_code == 0
    assert "damaged: vectors/chunks.lance: it is missing; it is written anew from the stored tables" in mended.stderr
    found = run(copied, "search", "有効期限", "--mode", "hybrid", "-k", "1", "--json")
    assert "3600" in json.loads(found.stdout)["hits"][0]["text"]
    again = run(copied, "verify")
    assert (again.exit_code, again.stdout) == (0, "nothing is damaged\n")


def test_readers_meet_damage_in_plain_words(copied: Path) -> None:
    for path in (copied / "home").glob("vectors/chunks.lance/data/*"):
        empty(path)
    for path in (copied / "home").glob("lake/pages/*/*.parquet"):
        turn(path)
    for arguments in (("search", "期限", "--mode", "vector"), ("sql", "SELECT text FROM pages"), ("ask", "期限")):
        result = run(copied, *arguments)
        lines = [line for line in result.stderr.splitlines() if not line.startswith("mode ")]
        assert all("rag-assets index" in line for line in lines), lines
        assert result.exit_code == 0 or lines
    status = json.loads(run(copied, "status", "--json").stdout)
    assert any(each["place"].startswith("vectors/chunks.lance") for each in status["damaged"])
    assert run(copied, "verify", "--repair").exit_code == 0
    assert run(copied, "verify").exit_code == 0


def test_a_version_that_was_not_shown_is_and_a_rollback_stays(copied: Path) -> None:
    snapshots = Snapshots(copied / "home" / "snapshots")
    before = {path: path.read_bytes() for path in (snapshots.pointer_file.path, snapshots.pointer_file.copy)}
    first = snapshots.current()
    assert first is not None
    snapshots.publish(replace(first, number=2))
    for path, content in before.items():
        path.write_bytes(content)
    assert "2 was made by a run that was killed before it showed it" in run(copied, "status").stdout
    assert "snapshot 2 is what readers see now" in run(copied, "index").stderr
    assert run(copied, "snapshots", "1").exit_code == 0
    assert run(copied, "index").exit_code == 0
    assert snapshots.pointer() == Pointer(1, rolled_back_from=2)
    assert "rolled back from 2, until the next change is published" in run(copied, "status").stdout


def test_published_tables_that_miss_a_file_are_named_and_made_anew(copied: Path) -> None:
    place = copied / "home" / "published" / "current"
    next((place / "chunks").iterdir()).unlink()
    named = run(copied, "verify", "--json")
    assert (named.exit_code, [each["place"] for each in json.loads(named.stdout)]) == (1, ["published/1"])
    assert run(copied, "index").exit_code == 0
    assert list((place / "chunks").iterdir())
    assert run(copied, "verify").exit_code == 0
