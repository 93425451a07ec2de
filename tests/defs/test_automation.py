"""The sensor and the schedule: what they request, when they wait, and what they do not."""

import json
from itertools import pairwise
from pathlib import Path

import dagster as dg
import pytest
from indexing import run_index

from rag_assets.defs.active_runs import active_runs
from rag_assets.defs.resources import HomeResource
from rag_assets.defs.runs import stated_settings
from rag_assets.defs.sensors import build_schedule, build_sensor
from rag_assets.home import Home
from rag_assets.store.lake import shard_of


@pytest.fixture
def resource(home: Home) -> HomeResource:
    return HomeResource(settings=stated_settings(home))


def test_the_sensor_requests_one_run_over_the_changed_shards(home: Home, resource: HomeResource) -> None:
    for name in ("a.md", "b.md"):
        (Path(home.settings.sources[0]) / name).write_text("# x\n\ntext", encoding="utf-8")
    with dg.DagsterInstance.ephemeral() as instance:
        result = build_sensor(60)(dg.build_sensor_context(instance=instance, resources={"home": resource}))
    assert isinstance(result, dg.SensorResult)
    [request] = result.run_requests or []
    shards = sorted({shard_of("specs/a.md"), shard_of("specs/b.md")})
    assert request.tags["dagster/asset_partition_range_start"] == shards[0]
    assert request.tags["dagster/asset_partition_range_end"] == shards[-1]
    assert request.tags["rag_assets/new"] == "2"


def test_nothing_changed_is_skipped(home: Home, resource: HomeResource) -> None:
    (Path(home.settings.sources[0]) / "a.md").write_text("text", encoding="utf-8")
    run_index(home)
    with dg.DagsterInstance.ephemeral() as instance:
        result = build_sensor(60)(dg.build_sensor_context(instance=instance, resources={"home": resource}))
        assert isinstance(result, dg.SensorResult)
        assert "nothing changed in 1 documents" in str(result.skip_reason)
        assert result.cursor == "{}"
        planned = build_schedule("0 * * * *")(
            dg.build_schedule_context(instance=instance, resources={"home": resource})
        )
        assert isinstance(planned, dg.SkipReason)


def test_a_state_that_fails_is_requested_again_after_a_growing_wait(
    home: Home, resource: HomeResource, monkeypatch: pytest.MonkeyPatch
) -> None:
    (Path(home.settings.sources[0]) / "a.md").write_text("text", encoding="utf-8")
    now = 1_000_000.0
    monkeypatch.setattr("rag_assets.defs.sensors.time.time", lambda: now)
    sensor, cursor, requested = build_sensor(60), None, []
    with dg.DagsterInstance.ephemeral() as instance:
        for _ in range(20):
            context = dg.build_sensor_context(instance=instance, resources={"home": resource}, cursor=cursor)
            result = sensor(context)
            if isinstance(result, dg.SensorResult):
                cursor = result.cursor
                [request] = result.run_requests or []
                requested.append((now, request.run_key))
            now += 60
    waits = [after[0] - before[0] for before, after in pairwise(requested)]
    assert waits == [60, 120, 240, 480]
    assert len({key for _, key in requested}) == len(requested)
    assert json.loads(cursor or "")["attempt"] == 5


def test_every_edit_of_a_file_is_requested_at_once(
    home: Home, resource: HomeResource, monkeypatch: pytest.MonkeyPatch
) -> None:
    sensor, cursor, requested = build_sensor(60), None, 0
    with dg.DagsterInstance.ephemeral() as instance:
        for edit in range(4):
            (Path(home.settings.sources[0]) / "a.md").write_text(f"text {edit}" * edit, encoding="utf-8")
            result = sensor(dg.build_sensor_context(instance=instance, resources={"home": resource}, cursor=cursor))
            assert isinstance(result, dg.SensorResult)
            cursor, requested = result.cursor, requested + len(result.run_requests or [])
    assert requested == 4


def test_a_run_of_the_ui_counts_as_active(home: Home, resource: HomeResource) -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        keys = frozenset({dg.AssetKey("chunks")})
        run = dg.DagsterRun(job_name="__ASSET_JOB", status=dg.DagsterRunStatus.STARTED, asset_selection=keys)
        instance.add_run(run)
        assert [each.run_id for each in active_runs(instance, home)] == [run.run_id]
