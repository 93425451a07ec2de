"""Assets made of all questions together: `question_clusters`, `meta_knowledge`."""

from functools import partial

import dagster as dg

from rag_assets.contracts.tables import DOCUMENT_FACETS, META_KNOWLEDGE, QUESTION_CLUSTERS, SYNTHETIC_QA
from rag_assets.defs.io import model_facts, table_spec, whole_materialized
from rag_assets.defs.resources import HomeResource, Progress, retried
from rag_assets.enrich.knowledge.cluster_picture import redundancy_picture
from rag_assets.enrich.knowledge.clusters import clusters_fingerprint, redundancy_report, update_question_clusters
from rag_assets.enrich.knowledge.tables import knowledge_fingerprint, update_meta_knowledge

_GROUP = "enrichment"


@dg.multi_asset(
    name="cluster_questions",
    specs=[
        table_spec(QUESTION_CLUSTERS, [SYNTHETIC_QA.name, DOCUMENT_FACETS.name], _GROUP, clusters_fingerprint()),
    ],
    pool="lancedb_write",
)
def cluster_questions(
    home: dg.ResourceParam[HomeResource], progress: dg.ResourceParam[Progress]
) -> dg.MaterializeResult:  # type: ignore[type-arg]
    """Finds questions that say nearly the same."""
    base = home.open()
    distance = base.settings.enrichment.duplicate_distance
    embed = partial(base.vectors.embed, embedder=base.embedder)
    with retried():
        update = update_question_clusters(
            base.lake, embed, base.embedder.name, distance, progress.step("cluster questions")
        )
    return whole_materialized(
        base.lake,
        QUESTION_CLUSTERS,
        questions=dg.MetadataValue.int(update.question_count),
        clusters=dg.MetadataValue.int(update.cluster_count),
        redundancy=dg.MetadataValue.md(redundancy_report(base.lake)),
        dendrogram=dg.MetadataValue.md(redundancy_picture(base.lake, embed, distance)),
    )


@dg.multi_asset(
    name="summarize_knowledge",
    specs=[
        table_spec(
            META_KNOWLEDGE,
            [SYNTHETIC_QA.name, DOCUMENT_FACETS.name, QUESTION_CLUSTERS.name],
            _GROUP,
            knowledge_fingerprint(),
        ),
    ],
    pool="lancedb_write",
)
def summarize_knowledge(
    context: dg.AssetExecutionContext, home: dg.ResourceParam[HomeResource], progress: dg.ResourceParam[Progress]
) -> dg.MaterializeResult:  # type: ignore[type-arg]
    """Summarizes what the questions of each facet value, and of combinations in use, are about."""
    base = home.open()
    model = base.language_model(context.run.run_id)
    with retried(), model_facts(base, [META_KNOWLEDGE], context.run.run_id) as facts:
        update = update_meta_knowledge(
            base.lake, model, base.options.knowledge, base.taxonomy, progress.step("summarize knowledge")
        )
    return whole_materialized(
        base.lake,
        META_KNOWLEDGE,
        facts,
        rewritten=dg.MetadataValue.int(update.rewritten),
        kept=dg.MetadataValue.int(update.kept),
        removed=dg.MetadataValue.int(update.removed),
    )
