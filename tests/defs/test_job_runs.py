"""Runs whose process died: they are ended, also in a home that was copied, and those of other homes are left alone."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import dagster as dg
import pytest

from rag_assets.defs import job_runs as module
from rag_assets.defs.job_runs import IN_PROCESS_TAG, INDEX_JOB, active_runs
from rag_assets.pipeline.home import Home
from rag_assets.pipeline.instance import dagster_folder


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        yield instance


@dg.job(name=INDEX_JOB.name)
def index_job() -> None: ...


def started_run(instance: dg.DagsterInstance, home: str) -> str:
    """Id of a run inside `rag-assets index` of a home, recorded as started."""

    return instance.create_run_for_job(
        index_job, status=dg.DagsterRunStatus.STARTED, tags={IN_PROCESS_TAG: home}
    ).run_id


def active_ids(instance: dg.DagsterInstance, home: Home) -> list[str]:
    return [run.run_id for run in active_runs(instance, home)]


def test_a_dead_run_is_ended_also_under_the_path_that_the_home_was_copied_from(
    home: Home, instance: dg.DagsterInstance
) -> None:
    assert dagster_folder(home).is_relative_to(home.path)
    runs = [started_run(instance, path) for path in (str(home.path), "/before/it/was/copied")]
    assert active_ids(instance, home) == []
    for run_id in runs:
        run = instance.get_run_by_id(run_id)
        assert run is not None
        assert run.status is dg.DagsterRunStatus.FAILURE


def test_a_run_is_alive_while_its_process_holds_the_lock(home: Home, instance: dg.DagsterInstance) -> None:
    run_id = started_run(instance, str(home.path))
    with Home(home.settings).lock():
        assert active_ids(instance, home) == [run_id]


def test_a_run_that_was_created_and_never_started_is_ended(
    home: Home, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    created = instance.create_run_for_job(index_job).run_id
    assert active_ids(instance, home) == [created]
    monkeypatch.setattr(module, "_START", timedelta(0))
    assert active_ids(instance, home) == []
    run = instance.get_run_by_id(created)
    assert run is not None
    assert run.status is dg.DagsterRunStatus.FAILURE


def test_runs_of_other_homes_in_a_shared_instance_are_left_alone(
    home: Home, instance: dg.DagsterInstance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "shared"))
    others, _ = started_run(instance, "/another/home"), started_run(instance, str(home.path))
    assert active_ids(instance, home) == [others]
