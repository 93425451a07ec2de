"""The jobs: indexing what changed, and reindexing chosen documents."""

from collections.abc import Callable

import dagster as dg

from rag_assets.defs.partitions import shard_tags
from rag_assets.defs.resources import HomeResource
from rag_assets.pipeline.language_models import forget_unusable_answers
from rag_assets.pipeline.reindex import force_documents
from rag_assets.pipeline.steps import FORCED

REINDEX_JOB_NAME = "reindex_documents"
INDEX_JOB = dg.define_asset_job(
    "index_sources",
    selection=dg.AssetSelection.all()
    - dg.AssetSelection.groups("evaluation", "training"),  # that measures what is published
    description="Brings the knowledge base in step with its sources. Shards in which nothing changed cost nothing.",
)


_STEP = dg.Enum("Step", [dg.EnumValue(name) for name in FORCED])
# plain strings: those of `dg.Config` may also name a variable of the environment, whose value a message would show
_REINDEX_CONFIG = {
    "documents": dg.Field([str], description="Document ids or globs, as in `specs/**/*.xlsx`."),
    "steps": dg.Field(
        [_STEP],
        default_value=list(FORCED),
        description="Steps to force for them; later steps follow by themselves.",
    ),
}


def build_reindex_job(index_job: Callable[[HomeResource], dg.JobDefinition]) -> dg.JobDefinition:
    """The job that computes chosen documents anew.

    Args:
        index_job: Resolves the job that indexes a knowledge base.
    """

    @dg.op(
        config_schema=_REINDEX_CONFIG,
        description="Forgets what the chosen documents were computed from and runs `index_sources` over their shards.",
    )
    def force_and_index(context: dg.OpExecutionContext, home: dg.ResourceParam[HomeResource]) -> list[str]:
        """Returns the ids of the documents."""
        forced = force_documents(home.open().lake, context.op_config["documents"], context.op_config["steps"])
        forget_unusable_answers(home.open(), forced.documents)
        context.log.info("%d documents in %d shards", len(forced.documents), len(forced.shards))
        if forced.shards:
            index_job(home).execute_in_process(instance=context.instance, tags=shard_tags(forced.shards))
        return list(forced.documents)

    @dg.job(
        name=REINDEX_JOB_NAME,
        description="Computes chosen documents anew, whether they changed or not, and publishes the result.",
    )
    def reindex() -> None:
        """One op; see its config."""
        force_and_index()

    return reindex
