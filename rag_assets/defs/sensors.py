"""The sensor and the schedule: both ask the same question and request one run over the shards that changed."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import dagster as dg
from pydantic import TypeAdapter, ValidationError

from rag_assets.contracts.errors import SourceError
from rag_assets.contracts.fingerprint import digest
from rag_assets.defs.checks import report_sources
from rag_assets.defs.job_runs import FULL_CHECK_TAG, INDEX_JOB, active_runs, drop_old_runs, shard_tags
from rag_assets.defs.resources import HomeResource
from rag_assets.pipeline.freshness import Stale, by_reason, changes_to_index, stale_steps
from rag_assets.sources.changes import Changes
from rag_assets.store.lake import SHARDS

_FIRST_WAIT_SECONDS = 60
_LONGEST_WAIT_SECONDS = 3600


@dataclass(frozen=True)
class _Attempt:
    """The last request for a run, which the sensor keeps as its cursor."""

    state: str = ""  # what was new, changed and gone
    attempt: int = 0  # how many times it was requested
    not_before: float = 0.0  # when it may be requested again, in seconds since the epoch


_CURSOR = TypeAdapter(_Attempt)


def build_sensor(interval_seconds: int) -> dg.SensorDefinition:
    """The sensor `changed_files`."""

    @dg.sensor(
        job=INDEX_JOB,
        minimum_interval_seconds=interval_seconds,
        description="Looks for new, changed and deleted files and requests one run over their shards. A state "
        "whose run failed is requested again after a growing wait.",
    )
    def changed_files(
        context: dg.SensorEvaluationContext, home: dg.ResourceParam[HomeResource]
    ) -> dg.SensorResult | dg.SkipReason:
        base = home.look()
        base.check_settings()
        listing, stale = base.listing(), stale_steps(base)
        changes = changes_to_index(base, listing, stale)
        report_sources(context.instance, changes.unreachable)
        if not changes.shards:
            _require_sources(changes)
            return dg.SensorResult(skip_reason=dg.SkipReason(_nothing(changes)), cursor="{}")
        if active_runs(context.instance, base):
            return dg.SkipReason(f"{len(changes.shards)} shards changed; a run of {INDEX_JOB.name} is still active")
        looked_at = (*changes.new, *changes.changed, *changes.touched)
        fingerprints = [f"{name} {listing.files[name].fingerprint}" for name in looked_at]
        state = digest(*fingerprints, "", *changes.gone, "", *changes.unfinished_shards)
        drop_old_runs(context.instance, base.settings.operation.kept_runs)  # here too: a run that fails drops none
        before = _last_attempt(context.cursor)
        attempt = before.attempt + 1 if before.state == state else 1
        if attempt > 1 and time.time() < before.not_before:
            return dg.SkipReason(f"{len(changes.shards)} shards changed; attempt {attempt} waits")
        wait = min(_LONGEST_WAIT_SECONDS, _FIRST_WAIT_SECONDS * 2 ** (attempt - 1))
        cursor = _CURSOR.dump_json(_Attempt(state, attempt, time.time() + wait)).decode()
        return dg.SensorResult(
            run_requests=[_request(changes, stale, f"{state}:{attempt}:{int(time.time())}")], cursor=cursor
        )

    return changed_files


def _last_attempt(cursor: str | None) -> _Attempt:
    """What a cursor says; nothing where a person wrote something else there."""
    try:
        return _CURSOR.validate_json(cursor or "{}")
    except ValidationError:
        return _Attempt()


def build_schedule(cron: str) -> dg.ScheduleDefinition:
    """The schedule `look_for_changes`."""

    @dg.schedule(
        job=INDEX_JOB,
        cron_schedule=cron,
        description="Looks for new, changed and deleted files and requests one run over their shards.",
    )
    def look_for_changes(
        context: dg.ScheduleEvaluationContext, home: dg.ResourceParam[HomeResource]
    ) -> dg.RunRequest | dg.SkipReason:
        base = home.look()
        base.check_settings()
        stale = stale_steps(base)
        changes = changes_to_index(base, base.listing(), stale)
        report_sources(context.instance, changes.unreachable)
        if not changes.shards:
            _require_sources(changes)
            return dg.SkipReason(_nothing(changes))
        return _request(changes, stale, None)

    return look_for_changes


def build_full_check(cron: str) -> dg.ScheduleDefinition:
    """The schedule `compare_all_files`."""

    @dg.schedule(
        job=INDEX_JOB,
        cron_schedule=cron,
        description="Compares the bytes of every file with what is stored, for changes that kept size and times.",
    )
    def compare_all_files() -> dg.RunRequest:
        return dg.RunRequest(tags={**shard_tags(SHARDS), FULL_CHECK_TAG: "true"})

    return compare_all_files


def _request(changes: Changes, stale: Sequence[Stale], run_key: str | None) -> dg.RunRequest:
    tags = {
        **shard_tags(changes.shards),
        "rag_assets/new": str(len(changes.new)),
        "rag_assets/changed": str(len(changes.changed)),
        "rag_assets/gone": str(len(changes.gone)),
    }
    if stale:
        tags["rag_assets/stale"] = "; ".join(f"{reason}: {', '.join(steps)}" for reason, steps in by_reason(stale))
    return dg.RunRequest(run_key=run_key, tags=tags)


def _nothing(changes: Changes) -> str:
    return f"nothing changed in {changes.unchanged + len(changes.failed)} documents"


def _require_sources(changes: Changes) -> None:
    """Let the tick fail where there is nothing to do because a source cannot be listed: skipping it looks all right."""
    if changes.unreachable:
        raise SourceError("; ".join(changes.unreachable.values()))
