"""Runs the index job as the sensor, the schedule and the command line do, on an instance in memory."""

import atexit
import shutil
from collections.abc import Mapping
from contextlib import ExitStack
from functools import cache
from itertools import count, islice
from pathlib import Path
from typing import Any

import dagster as dg

from rag_assets.contracts.tables import TABLES, VECTOR_TABLES
from rag_assets.defs.code_location import build_definitions
from rag_assets.defs.job_runs import INDEX_JOB, shard_tags
from rag_assets.defs.resources import HomeResource
from rag_assets.pipeline.freshness import changes_to_index
from rag_assets.pipeline.home import Home
from rag_assets.pipeline.settings import load_settings
from rag_assets.sources.changes import Changes
from rag_assets.store.lake import SHARDS, shard_of

Rows = dict[str, list[dict[str, Any]]]


def run_index(home: Home, *, succeeds: bool = True) -> Changes:
    """Index what changed; returns what had changed."""
    fresh = Home(home.settings)
    changes = changes_to_index(fresh, fresh.listing())
    if changes.shards:
        run_tags(home, shard_tags(changes.shards), succeeds=succeeds)
    return changes


def run_tags(home: Home, tags: Mapping[str, str], *, succeeds: bool = True) -> None:
    """Run the job with the tags of a request."""
    job = build_definitions(home=HomeResource(home.settings)).resolve_job_def(INDEX_JOB.name)
    result = job.execute_in_process(
        instance=_instance(),
        tags=dict(tags),
        raise_on_error=False,
        run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
    )
    errors = [str(event.event_specific_data) for event in result.all_events if event.is_failure]
    assert result.success is succeeds, errors


@cache
def _instance() -> dg.DagsterInstance:
    """One for all runs of this process: to make its databases takes a tenth of a run."""
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(dg.DagsterInstance.ephemeral())


def names_of_one_shard(pattern: str, number: int, shard: str = SHARDS[0]) -> list[str]:
    """Names of so many files of a folder `specs` that share a shard: each further shard of a run takes 0.15 s."""
    names = map(pattern.format, count())
    return list(islice((name for name in names if shard_of(f"specs/{name}") == shard), number))


def copy_into(home: Home, other: Path, sources: Path) -> Home:
    """Make an empty knowledge base a copy of another, with its documents, that may be changed."""
    shutil.rmtree(home.path)
    shutil.copytree(other, home.path, symlinks=True)
    shutil.copytree(sources, home.settings.sources[0], dirs_exist_ok=True)
    return Home(home.settings)


def rebuilt(home: Home, folder: Path) -> Home:
    """A second knowledge base, indexed from nothing on the same sources."""
    folder.mkdir()
    (folder / "models").symlink_to((home.path / "models").resolve())
    graph = {"enabled": home.settings.graph.enabled}
    other = Home(load_settings(home=folder, sources=home.settings.sources, graph=graph))
    run_index(other)
    return other


def published(home: Home) -> Rows:
    """All rows that readers see, by table, in order of their keys."""
    snapshot = home.snapshots.current()
    assert snapshot is not None
    rows: Rows = {}
    for name, table in TABLES.items():
        if not table.published:
            continue
        stored = home.lake.read(table, versions=snapshot.tables[name])
        rows[name] = sorted(stored.to_pylist(), key=lambda row: [row[column] for column in table.key])
    for name, vector_table in VECTOR_TABLES.items():
        served = home.vectors.open_at(name, snapshot.vector_tables[name]).to_arrow()
        rows[f"lancedb.{name}"] = sorted(served.to_pylist(), key=lambda row: str(row[vector_table.key]))
    return rows
