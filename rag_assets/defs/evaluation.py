"""The assets of evaluations and their job: accepted questions are asked of the published version, and it is recorded.

They are no part of indexing: what is measured is what was published before.
"""

from collections.abc import Iterator

import dagster as dg

from rag_assets import __version__
from rag_assets.contracts.tables import EVALUATION_RESULTS, EVALUATION_RUNS, EVALUATION_SCORES
from rag_assets.defs.io import asset_spec
from rag_assets.defs.resources import HomeResource, Progress
from rag_assets.evaluation.recorded import history, history_markdown, history_picture
from rag_assets.pipeline.measuring import measure

EVALUATION_GROUP = "evaluation"
_TABLES = (EVALUATION_RUNS, EVALUATION_SCORES, EVALUATION_RESULTS)


@dg.multi_asset(
    specs=[asset_spec(table.name, table, ["snapshot"], EVALUATION_GROUP, __version__) for table in _TABLES],
    description="Asks the published version the accepted questions of `evaluation.questions` and records what came.",
)
def evaluation(
    home: dg.ResourceParam[HomeResource], progress: dg.ResourceParam[Progress]
) -> Iterator[dg.MaterializeResult]:  # type: ignore[type-arg]
    """One run over all questions and modes."""
    base = home.look()
    run_id = measure(base, progress.step("asking questions"))
    points = history(base.lake)
    facts: dict[str, dg.RawMetadataValue] = {
        "run_id": run_id,
        "history": dg.MetadataValue.md(history_markdown(points)),
        "picture": dg.MetadataValue.md(history_picture(points)),
    }
    warnings = next((point.run.warnings for point in points if point.run.run_id == run_id), ())
    facts["warnings"] = dg.MetadataValue.md("\n".join(f"- {line}" for line in warnings) or "none")
    for table in _TABLES:
        rows = base.lake.row_count(table, run_id)
        shown = facts if table is EVALUATION_RUNS else {"run_id": run_id}
        yield dg.MaterializeResult(table.name, metadata={"rows_added": rows, **shown})


EVALUATION_JOB = dg.define_asset_job(
    "evaluation",
    selection=dg.AssetSelection.groups(EVALUATION_GROUP),
    description="Measures the published version by the accepted questions; nothing is indexed or published.",
)
