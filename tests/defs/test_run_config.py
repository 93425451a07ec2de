"""What whoever may launch a run can set of it: nothing that names a folder, an address or a key."""

from collections.abc import Iterator
from typing import Any

import dagster as dg
import pytest
from dagster._config import ConfigTypeKind

from rag_assets.defs.code_location import build_definitions
from rag_assets.defs.resources import HomeResource
from rag_assets.pipeline.home import Home

HARMLESS = {
    "execution.config.marker_to_close",  # of a file that Dagster no longer writes
    "execution.config.step_dependency_config.require_upstream_step_success",
    "execution.config.retries.enabled",
    "execution.config.retries.disabled",
    "loggers.console.config.log_level",
    "loggers.console.config.name",
}
REINDEX = {"ops.force_and_index.config.documents[]": "String", "ops.force_and_index.config.steps[]": "Step"}


def leaves(kind: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Places of a run config that hold a value, with its type."""
    if fields := getattr(kind, "fields", None):
        for name, each in fields.items():
            yield from leaves(each.config_type, f"{path}.{name}" if path else name)
    elif inner := getattr(kind, "inner_type", None):
        yield from leaves(inner, f"{path}[]")
    elif kind.kind not in {ConfigTypeKind.STRICT_SHAPE, ConfigTypeKind.PERMISSIVE_SHAPE}:
        yield path, kind.key


@pytest.mark.parametrize("name", ["index_sources", "reindex_documents", "__ASSET_JOB"])
def test_run_config_sets_no_resource_and_reads_no_environment(home: Home, name: str) -> None:
    definitions = build_definitions(HomeResource(home.settings))
    job = (
        definitions.resolve_job_def(name)
        if name != "__ASSET_JOB"
        else definitions.resolve_implicit_global_asset_job_def()
    )
    assert job.run_config_schema.config_type is not None
    found = dict(leaves(job.run_config_schema.config_type))
    ignored = {
        path for path, key in found.items() if path.startswith("ops.") and key == "Any"
    }  # ops that have no config
    assert found.keys() - ignored - HARMLESS == (REINDEX.keys() if name == "reindex_documents" else set())
    assert all(found[path] == key for path, key in REINDEX.items() if path in found)


@pytest.mark.parametrize(
    ("job", "config"),
    [
        ("index_sources", {"resources": {"home": {"config": {"settings": {"sources": ["/etc"]}}}}}),
        ("index_sources", {"resources": {"io_manager": {"config": {"base_dir": "/tmp/elsewhere"}}}}),
        ("reindex_documents", {"ops": {"force_and_index": {"config": {"documents": [{"env": "HOME"}]}}}}),
        ("reindex_documents", {"ops": {"force_and_index": {"config": {"documents": ["*"], "steps": ["publish"]}}}}),
    ],
)
def test_what_a_run_may_not_set_is_refused_before_it_starts(home: Home, job: str, config: dict[str, Any]) -> None:
    chosen = build_definitions(HomeResource(home.settings)).resolve_job_def(job)
    with pytest.raises(dg.DagsterInvalidConfigError):
        dg.validate_run_config(chosen, config)
