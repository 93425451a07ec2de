"""The sensor and the schedule: what they request, when they wait, and what they do not."""

import json
from itertools import pairwise
from pathlib import Path

import dagster as dg
import pytest
from indexing import published, run_index, run_tags

from rag_assets.contracts.errors import SourceError
from rag_assets.contracts.tables import DOCUMENTS, PAGE_SUMMARIES
from rag_assets.defs.code_location import build_definitions
from rag_assets.defs.job_runs import INDEX_JOB, active_runs, shard_tags, shards_of_tags
from rag_assets.defs.resources import HomeResource
from rag_assets.defs.sensors import build_schedule, build_sensor
from rag_assets.pipeline.freshness import Stale, changes_to_index
from rag_assets.pipeline.home import Home
from rag_assets.pipeline.steps import shards_with_outdated_boilerplate
from rag_assets.store.lake import SHARDS, shard_of


@pytest.fixture
def resource(home: Home) -> HomeResource:
    return HomeResource(home.settings)


def evaluations(instance: dg.DagsterInstance, key: dg.AssetCheckKey) -> list[tuple[bool, str | None]]:
    """Results of a check, the newest first."""
    records = instance.event_log_storage.get_asset_check_execution_history(key, limit=10)
    found = [record.event.dagster_event for record in records if record.event]
    return [
        (event.asset_check_evaluation_data.passed, event.asset_check_evaluation_data.description)
        for event in found
        if event is not None
    ]


def index_run(home: Home, instance: dg.DagsterInstance) -> list[tuple[dg.AssetCheckKey, bool]]:
    """Run the index job over what changed; checks that failed."""
    fresh = Home(home.settings)
    tags = shard_tags(changes_to_index(fresh, fresh.listing()).shards)
    job = build_definitions(HomeResource(home.settings)).resolve_job_def(INDEX_JOB.name)
    config = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
    result = job.execute_in_process(instance=instance, tags=tags, run_config=config)
    assert result.success
    return [(each.asset_check_key, each.passed) for each in result.get_asset_check_evaluations() if not each.passed]


def test_the_sensor_requests_one_run_over_the_changed_shards(home: Home, resource: HomeResource) -> None:
    for name in ("a.md", "b.md"):
        (Path(home.settings.sources[0]) / name).write_text("# x\n\ntext", encoding="utf-8")
    with dg.DagsterInstance.ephemeral() as instance:
        result = build_sensor(60)(dg.build_sensor_context(instance=instance, resources={"home": resource}))
    assert isinstance(result, dg.SensorResult)
    [request] = result.run_requests or []
    shards = sorted({shard_of("specs/a.md"), shard_of("specs/b.md")})
    assert shards_of_tags(request.tags) == shards
    assert request.tags["rag_assets/new"] == "2"


def test_a_run_says_what_is_stale_and_why(home: Home, resource: HomeResource, monkeypatch: pytest.MonkeyPatch) -> None:
    (Path(home.settings.sources[0]) / "a.md").write_text("# x\n\ntext", encoding="utf-8")
    run_index(home)
    stale = [Stale(step, "code changed", (shard_of("specs/a.md"),)) for step in ("chunk", "index_chunks")]
    monkeypatch.setattr("rag_assets.defs.sensors.stale_steps", lambda _: stale)
    with dg.instance_for_test() as instance:
        planned = build_schedule("0 * * * *")(
            dg.build_schedule_context(instance=instance, resources={"home": resource})
        )
    assert isinstance(planned, dg.RunRequest)
    assert planned.tags["rag_assets/stale"] == "code changed: chunk, index_chunks"


def test_nothing_changed_is_skipped(home: Home, resource: HomeResource) -> None:
    (Path(home.settings.sources[0]) / "a.md").write_text("text", encoding="utf-8")
    (Path(home.settings.sources[0]) / "broken.pdf").write_bytes(b"%PDF-1.7 broken")
    run_index(home)
    with dg.instance_for_test() as instance:
        result = build_sensor(60)(dg.build_sensor_context(instance=instance, resources={"home": resource}))
        assert isinstance(result, dg.SensorResult)
        assert "nothing changed in 2 documents" in str(result.skip_reason)
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


@pytest.mark.parametrize("cursor", ["not json", "[]", '{"state": 1}', '{"attempt": "x"}', "\x1b]0;x\x07"])
def test_a_cursor_that_a_person_broke_is_none(home: Home, resource: HomeResource, cursor: str) -> None:
    (Path(home.settings.sources[0]) / "a.md").write_text("text", encoding="utf-8")
    with dg.DagsterInstance.ephemeral() as instance:
        result = build_sensor(60)(
            dg.build_sensor_context(instance=instance, resources={"home": resource}, cursor=cursor)
        )
    assert isinstance(result, dg.SensorResult)
    assert result.run_requests


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


def shards_apart(*taken: str) -> str:
    """Name of a file in a shard of its own."""
    used = {shard_of(f"specs/{name}") for name in taken}
    return next(f"{n}.md" for n in range(1000) if shard_of(f"specs/{n}.md") not in used)


@pytest.mark.parametrize("requested", ["new", "old", "other"])
def test_a_file_renamed_between_request_and_run_has_one_name(
    home: Home, resource: HomeResource, requested: str
) -> None:
    root = Path(home.settings.sources[0])
    old = "a.md"
    new = shards_apart(old)
    other = shards_apart(old, new)
    (root / old).write_text("# one\n\nsome text", encoding="utf-8")
    (root / other).write_text("# two\n\nother text", encoding="utf-8")
    run_index(home)
    touched = {"new": new, "old": old, "other": other}[requested]
    (root / touched).write_text("# three\n\nfurther text", encoding="utf-8")
    with dg.DagsterInstance.ephemeral() as instance:
        result = build_sensor(60)(dg.build_sensor_context(instance=instance, resources={"home": resource}))
    assert isinstance(result, dg.SensorResult)
    [request] = result.run_requests or []
    assert request.tags["dagster/asset_partition_range_start"] == request.tags["dagster/asset_partition_range_end"]
    (root / old).rename(root / new)
    run_tags(home, request.tags)
    assert {row["file_name"] for row in published(home)["documents"]} == {new, other}
    assert {row["document_id"] for row in published(home)["lancedb.chunks"]} == {f"specs/{new}", f"specs/{other}"}
    assert home.snapshots.numbers() == [1, 2]
    assert run_index(home).shards == ()


def test_a_backfill_takes_on_the_other_name_of_a_file_and_nothing_else(home: Home) -> None:
    root = Path(home.settings.sources[0])
    old = "a.md"
    new = shards_apart(old)
    other = shards_apart(old, new)
    for name in (old, other):
        (root / name).write_text(f"# {name}\n\nsome text", encoding="utf-8")
    run_index(home)
    (root / old).rename(root / new)
    (root / other).write_text("# changed\n\nfurther text", encoding="utf-8")
    run_tags(home, {**shard_tags((shard_of(f"specs/{new}"),)), "dagster/backfill": "one"})
    texts = {row["document_id"]: row["text"].split()[-3] for row in published(home)["pages"]}
    assert texts == {f"specs/{new}": old, f"specs/{other}": other}
    assert run_index(home).changed == (f"specs/{other}",)


def test_three_edits_make_three_versions(home: Home) -> None:
    root = Path(home.settings.sources[0])
    form = "# Form\n\n| Item | Value of the item |\n| --- | --- |\n"
    least = home.settings.enrichment.boilerplate_documents
    for n in range(least - 1):
        (root / f"{n}.md").write_text(f"{form}| name | customer {n} |\n", encoding="utf-8")
    run_index(home)
    before = home.lake.latest(PAGE_SUMMARIES)
    for n in range(least - 1, least + 2):  # the first of them makes the lines of the form boilerplate
        (root / f"{n}.md").write_text(f"{form}| name | customer {n} |\n", encoding="utf-8")
        assert run_index(home).new == (f"specs/{n}.md",)
        assert not shards_with_outdated_boilerplate(home)
        assert run_index(home).shards == ()
    assert home.lake.latest(PAGE_SUMMARIES)[shard_of("specs/0.md")] > before[shard_of("specs/0.md")]
    assert home.snapshots.numbers() == [1, 2, 3, 4]


def test_a_run_with_nothing_to_do_publishes_nothing(home: Home) -> None:
    (Path(home.settings.sources[0]) / "a.md").write_text("# one\n\nsome text", encoding="utf-8")
    run_index(home)
    before = home.snapshots.current()
    for shards in (SHARDS, SHARDS[:1]):
        run_tags(home, shard_tags(shards))
        assert home.snapshots.current() == before
    assert home.snapshots.numbers() == [1]


def test_a_run_of_the_ui_counts_as_active(home: Home, resource: HomeResource) -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        keys = frozenset({dg.AssetKey("chunks")})
        run = dg.DagsterRun(job_name="__ASSET_JOB", status=dg.DagsterRunStatus.STARTED, asset_selection=keys)
        instance.add_run(run)
        assert [each.run_id for each in active_runs(instance, home)] == [run.run_id]


def test_a_source_that_disappears_fails_the_tick_and_the_check_until_it_is_back(home: Home, tmp_path: Path) -> None:
    (tmp_path / "specs" / "a.md").write_text("text", encoding="utf-8")
    (tmp_path / "more").mkdir()
    home = Home(home.settings.model_copy(update={"sources": (str(tmp_path / "specs"), str(tmp_path / "more"))}))
    (tmp_path / "more" / "b.md").write_text("text", encoding="utf-8")
    run_index(home)
    resource = HomeResource(home.settings)
    key = dg.AssetCheckKey(dg.AssetKey(DOCUMENTS.name), "sources_reachable")

    with dg.instance_for_test() as instance:

        def looked() -> object:
            context = dg.build_sensor_context(instance=instance, resources={"home": resource})
            return build_sensor(60)(context)

        def scheduled() -> object:
            context = dg.build_schedule_context(instance=instance, resources={"home": resource})
            return build_schedule("0 * * * *")(context)

        (tmp_path / "more").rename(tmp_path / "elsewhere")
        for look in (looked, scheduled, looked):
            with pytest.raises(SourceError, match="more"):
                look()
        [(passed, description)] = evaluations(instance, key)
        assert not passed
        assert "more" in (description or "")

        (tmp_path / "specs" / "c.md").write_text("text", encoding="utf-8")
        result = looked()
        assert isinstance(result, dg.SensorResult), "what changed elsewhere is indexed all the same"
        assert result.run_requests
        assert isinstance(scheduled(), dg.RunRequest)
        assert index_run(home, instance) == [(key, False)]

        (tmp_path / "elsewhere").rename(tmp_path / "more")
        assert isinstance(scheduled(), dg.SkipReason)
        assert [passed for passed, _ in evaluations(instance, key)] == [True, False, False]
        assert isinstance(looked(), dg.SensorResult)
        assert len(evaluations(instance, key)) == 3
