"""Damage to a home as a person meets it: `index` mends what is derived, `verify` names it, readers go on."""

import json
import logging
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from damages import DAMAGES, displace, empty, turn
from full_disks import fill, small_disk
from rights import read_only, without_override

from rag_assets import open_knowledge_base
from rag_assets.cli import main
from rag_assets.contracts.errors import StoreError
from rag_assets.contracts.generation import Completion, Message, Outcome, Request, Tag, Usage
from rag_assets.models.accounts.ledger import Entry
from rag_assets.pipeline.home import Home
from rag_assets.pipeline.settings import load_settings
from rag_assets.store.damage import RECORD
from rag_assets.store.snapshots import Pointer, Snapshots

# see tests/store/test_damage.py, tests/models and tests/test_stored_settings.py
ELSEWHERE = ("lake/", "vectors/", "snapshots/", "models/", "settings.json")
HARMLESS = (".lock", RECORD)


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


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda each: each.__name__)
def test_all_that_lies_beside_the_stores_is_mended(copied: Path, damage: Callable[[Path], None]) -> None:
    home = copied / "home"
    for place in places(home):
        if not place.endswith(".copy"):
            damage(home / place)
    shutil.rmtree(home / "vectors" / "chunks.lance")
    damage(next(home.glob("lake/pages/*/*.parquet")))
    named = run(copied, "verify", "--json")
    assert named.exit_code == 1
    told = {each["place"] for each in json.loads(named.stdout)}
    assert {"sources.json", "vectors/chunks.lance"} < told
    assert any(place.startswith("lake/pages/") for place in told)
    mended = run(copied, "index")
    if mended.exit_code:  # a configuration may be anybody's: it is named, not replaced
        last = mended.stderr.splitlines()[-1]
        assert "the Dagster instance cannot be used; is dagster.yaml damaged?" in last
        (home / "dagster_home" / "dagster.yaml").unlink()
        assert run(copied, "index").exit_code == 0
    assert "damaged: " in mended.stderr
    found = run(copied, "search", "有効期限", "--mode", "hybrid", "-k", "1", "--json")
    assert "3600" in json.loads(found.stdout)["hits"][0]["text"]
    again = run(copied, "verify")
    assert (again.exit_code, again.stdout) == (0, "nothing is damaged\n")


@pytest.mark.parametrize("command", ["index", "verify"])
def test_what_has_nothing_to_do_loads_neither_lancedb_nor_dagster(intact: Path, command: str) -> None:
    code = (
        "import sys; from rag_assets.cli import main; main(sys.argv[1:], standalone_mode=False)\n"
        "assert not {'lancedb', 'dagster', 'onnxruntime'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code, "--home", str(intact / "home"), command], check=True)


def test_verify_and_plan_go_on_beside_a_run_that_writes(copied: Path) -> None:
    with Home(load_settings(home=copied / "home")).lock():
        assert run(copied, "verify").output == "nothing is damaged\n"
        assert run(copied, "plan").exit_code == 0
        refused = run(copied, "verify", "--repair")
    assert (refused.exit_code, "another run is writing" in refused.stderr) == (1, True)


def test_verify_and_plan_go_on_where_the_home_may_only_be_read(copied: Path) -> None:
    without_override(_verify_and_plan, copied)


def _verify_and_plan(root: Path) -> None:
    with read_only(root / "home"):
        results = [run(root, "verify"), run(root, "plan")]
    assert [result.exit_code for result in results] == [0, 0], [result.output for result in results]
    assert results[0].output == "nothing is damaged\n"


def test_the_ui_says_in_one_line_that_the_home_may_only_be_read(copied: Path) -> None:
    without_override(_start_ui, copied)


def _start_ui(root: Path) -> None:
    with read_only(root / "home"):
        result = run(root, "ui", "--port", "1")
    folder = root / "home" / "dagster_home"
    assert (result.exit_code, result.output) == (
        1,
        f"rag-assets: {folder} cannot be written: the UI records runs there\n",
    )


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


def test_a_folder_in_place_of_the_pointer_is_named_and_mended(copied: Path) -> None:
    for name in ("CURRENT", "CURRENT.copy"):
        displace(copied / "home" / "snapshots" / name)
    named = json.loads(run(copied, "verify", "--json").stdout)
    assert [(each["place"], each["cause"]) for each in named] == [("snapshots/CURRENT", "a folder stands in its place")]
    assert run(copied, "index").exit_code == 0
    assert Snapshots(copied / "home" / "snapshots").pointer() == Pointer(1)
    assert run(copied, "verify").exit_code == 0


def test_readers_of_a_home_that_lost_all_manifests_are_told_so(copied: Path) -> None:
    for path in (copied / "home" / "snapshots").glob("*.json"):
        path.unlink()
    for arguments in (("search", "期限"), ("sql", "SELECT text FROM pages"), ("ask", "期限")):
        result = run(copied, *arguments)
        assert (result.exit_code, result.stdout) == (1, "")
        (line,) = result.stderr.splitlines()
        assert line.endswith("published versions are damaged or gone; `rag-assets index` publishes anew")
    with pytest.raises(StoreError, match="damaged or gone"):
        open_knowledge_base(copied / "home")
    shutil.rmtree(copied / "home" / "snapshots")
    assert "damaged or gone" in run(copied, "search", "期限").stderr
    assert run(copied, "index").exit_code == 0
    assert "3600" in run(copied, "search", "期限", "--mode", "fulltext").stdout


def test_the_same_damage_is_named_once(copied: Path, caplog: pytest.LogCaptureFixture) -> None:
    for name in ("CURRENT", "CURRENT.copy"):
        empty(copied / "home" / "snapshots" / name)
    shutil.rmtree(copied / "home" / "lake")
    for arguments, most_lines in ((("status",), 7), (("search", "期限"), 3), (("index",), 7)):
        caplog.clear()
        shown = run(copied, *arguments).stderr.splitlines()
        logged = [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]
        told = [line for line in (*shown, *logged) if "damaged" in line]
        assert 0 < len(told) <= most_lines, told
        assert len(set(told)) == len(told)
    assert run(copied, "verify").exit_code == 0


def test_vectors_that_are_gone_leave_nothing_that_looks_damaged(copied: Path) -> None:
    shutil.rmtree(copied / "home" / "vectors")
    assert run(copied, "index").exit_code == 0
    assert run(copied, "verify").stdout == "nothing is damaged\n"
    assert "damaged" not in run(copied, "index").stderr


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda each: each.__name__)
def test_what_was_done_to_the_exported_embedder_is_seen(
    copied: Path, models_folder: Path, damage: Callable[[Path], None]
) -> None:
    models = copied / "home" / "models"
    models.unlink()
    models.mkdir()
    exported = [path for path in sorted(models_folder.iterdir()) if path.suffix in {".onnx", ".json"}]
    for path in exported:
        for other in exported:
            if other != path:
                (models / other.name).hardlink_to(other)
        shutil.copy(path, models / path.name)
        damage(models / path.name)
        named = json.loads(run(copied, "verify", "--json").stdout)
        assert [each["place"].startswith("models/") for each in named] == [True] * len(named) != []
        shutil.rmtree(models)
        models.mkdir()


def test_a_damaged_model_that_scores_answers_is_exported_anew(copied: Path, models_folder: Path) -> None:
    models = copied / "home" / "models"
    models.unlink()
    shutil.copytree(models_folder, models)
    (damaged,) = models.glob("*-answers-*.onnx")
    good = damaged.read_bytes()
    damaged.write_bytes(good[: len(good) // 2])
    assert run(copied, "verify", "--repair").exit_code == 0
    assert damaged.read_bytes() == good
    assert json.loads(run(copied, "verify", "--json").stdout) == []


def test_a_full_disk_is_said_in_one_line_and_the_next_run_goes_on(copied: Path, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 40_000) as disk:
        shutil.copytree(copied / "home", disk / "home", symlinks=True)
        (tmp_path / "new").mkdir()
        (tmp_path / "new" / "late.md").write_text("The kestrel fee is 40.\n", encoding="utf-8")
        filler = fill(disk)
        for room in (0, 400_000):
            with filler.open("r+b") as file:
                file.truncate(filler.stat().st_size - room)
            refused = run(disk, "index", str(tmp_path / "new"))
            assert refused.exit_code == 1
            line = f"rag-assets: {disk / 'home'}: the disk is full; make room and run the command again"
            assert refused.stderr.splitlines()[-1].startswith(line)
            assert "Traceback" not in refused.stderr
        filler.unlink()
        assert run(disk, "index", str(tmp_path / "new")).exit_code == 0
        assert "kestrel" in run(disk, "search", "kestrel", "--mode", "fulltext").stdout


def test_commands_that_only_read_report_on_a_full_disk(
    copied: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (copied / "late").mkdir()
    (copied / "late" / "fee.md").write_text("The kestrel fee is 40.\n", encoding="utf-8")
    monkeypatch.setenv("RAG_SOURCES", str(copied / "late"))
    with small_disk(tmp_path / "disk", 40_000) as disk:
        shutil.copytree(copied / "home", disk / "home", symlinks=True)
        leave_log(disk / "home" / "dagster_home" / "history" / "runs" / "index.db")
        filler = fill(disk)
        status, verify = run(disk, "status", "--json"), run(disk, "verify", "--json")
        assert [status.exit_code, verify.exit_code] == [0, 0], status.output + verify.output
        assert (json.loads(status.stdout)["damaged"], json.loads(verify.stdout)) == ([], [])
        with monkeypatch.context() as model:
            model.setenv("RAG_LANGUAGE_MODEL__PROVIDER", "openai")
            model.setenv("RAG_LANGUAGE_MODEL__MODEL", "made-up")
            model.setenv("RAG_LANGUAGE_MODEL__BASE_URL", "http://127.0.0.1:9/v1")
            plan = run(disk, "plan", "--json")
        assert (plan.exit_code, json.loads(plan.stdout)["documents"]) == (0, 1), plan.output
        filler.unlink()
        assert run(disk, "index").exit_code == 0
        assert run(disk, "verify").stdout == "nothing is damaged\n"


def leave_log(database: Path) -> None:
    """What a process that was killed leaves: a log without which the database is torn, and no index of it."""
    copy = database.with_name("copy")
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("CREATE TABLE filled AS SELECT hex(randomblob(4000)) AS text FROM event_logs LIMIT 20")
        connection.execute("DROP TABLE filled")
        connection.commit()
        connection.execute("VACUUM")
        shutil.copy(database, copy)
        shutil.copy(f"{database}-wal", f"{copy}-wal")
    for suffix in ("", "-wal"):
        Path(f"{copy}{suffix}").replace(f"{database}{suffix}")
    Path(f"{database}-shm").unlink(missing_ok=True)


def test_published_tables_that_are_missing_are_named_beside_other_damage(copied: Path) -> None:
    for name in ("published", "vectors"):
        shutil.rmtree(copied / "home" / name)
    assert "published/1" in {each["place"] for each in json.loads(run(copied, "verify", "--json").stdout)}
    assert run(copied, "verify", "--repair").exit_code == 0
    assert run(copied, "verify").stdout == "nothing is damaged\n"


def test_a_damaged_state_database_is_set_aside_and_what_can_be_read_is_saved(copied: Path) -> None:
    home = Home(load_settings(home=copied / "home"))
    tag = Tag("page_summaries", "summarize_page", "specs/token.md")
    asked = [Request("p", (Message("user", f"q{number}"),), 100, tag) for number in range(300)]
    paid = [Completion(each, Outcome.COMPLETED, "x" * 500, Usage(20, 5), 0.25, 1.0, time.time()) for each in asked]
    home.ledger().keep("anthropic:m", [Entry(each) for each in paid])
    assert run(copied, "verify").exit_code == 0
    home.state.close()
    with (copied / "home" / "state.db").open("r+b") as file:
        file.seek(30 * 4096)
        file.write(b"\xa5" * 4096)
    named = json.loads(run(copied, "verify", "--json").stdout)
    assert "state.db" in {each["place"] for each in named}
    mended = run(copied, "index")
    assert mended.exit_code == 0, mended.output
    assert "state.db" in mended.stderr
    assert run(copied, "verify").exit_code == 0
    assert 250 <= home.answers.stats().entries < 300 or home.ledger().spent_usd() < 75
    assert list((copied / "home" / "damaged").glob("*/state.db"))
