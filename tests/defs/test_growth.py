"""The home over many runs: what a run leaves is bounded, and the UI still knows when each shard was made last."""

import sqlite3
from pathlib import Path

import dagster as dg
import pytest

from rag_assets.cli.progress import ProgressDisplay
from rag_assets.defs.runs import index_in_process
from rag_assets.pipeline.freshness import changes_to_index
from rag_assets.pipeline.home import Home
from rag_assets.pipeline.settings import load_settings
from rag_assets.store.lake import shard_of

KEPT_RUNS = 1
OPERATION = {"kept_runs": KEPT_RUNS, "kept_snapshots": 2, "version_grace_seconds": 0}


def size(folder: Path) -> int:
    """Bytes of all files, without vectors kept by content, of which 10,000 may be of texts that are gone."""
    files = (path for path in folder.rglob("*") if path.is_file() and "embeddings_" not in str(path))
    return sum(path.stat().st_size for path in files)


def index(home: Home) -> None:
    changes = changes_to_index(home, home.listing())
    index_in_process(home, changes.shards, ProgressDisplay(lambda _line: None, announce=False))


@pytest.mark.parametrize("count", [7, pytest.param(100, marks=pytest.mark.slow)])
def test_many_runs_leave_a_home_of_bounded_size(home: Home, count: int) -> None:
    bounded = Home(load_settings(home=home.path, sources=home.settings.sources, operation=OPERATION))
    folder = Path(home.settings.sources[0])
    sizes: list[dict[str, int]] = []
    (folder / "stays.md").write_text("# 受付\n\n受付番号は 12 桁。\n", encoding="utf-8")
    index(bounded)
    for number in range(count):
        (folder / "changes.md").write_text(f"# 料金表\n\n月額は {number} 円。\n", encoding="utf-8")
        index(bounded)
        sizes.append({name: size(home.path / name) for name in ("dagster_home", "vectors", "lake", "snapshots")})
    settled = sizes[KEPT_RUNS + 2]
    for name, bytes_now in sizes[-1].items():
        assert bytes_now < 1.5 * settled[name], (name, [each[name] for each in sizes])
    with sqlite3.connect(home.path / "dagster_home" / "history" / "runs" / "index.db") as results:
        (checked,) = results.execute("SELECT COUNT(DISTINCT run_id) FROM asset_check_executions").fetchone()
    assert checked == KEPT_RUNS + 2
    with dg.DagsterInstance.from_config(str(home.path / "dagster_home")) as instance:
        runs = {run.run_id for run in instance.get_runs()}
        shards = {shard_of("specs/stays.md"), shard_of("specs/changes.md")}
        assert instance.get_materialized_partitions(dg.AssetKey("documents")) == shards
    assert (
        len(runs) == KEPT_RUNS + 2
    )  # the last one, which dropped the others, and that of `stays.md`, the last of its shard
    databases = {path.stem for path in (home.path / "dagster_home" / "history" / "runs").glob("*.db")}
    assert databases == {*runs, "index"}
