"""Assets of the entity graph: mentions by shard; entities, communities, reports as a whole. Empty once it is off."""

from collections.abc import Iterator
from dataclasses import asdict

import dagster as dg

from rag_assets.contracts.tables import (
    BLOCKS,
    CHUNKS,
    CLAIMS,
    COMMUNITIES,
    COMMUNITY_MEMBERS,
    COMMUNITY_REPORTS,
    DOCUMENTS,
    ENTITIES,
    ENTITY_MENTIONS,
    ENTITY_MERGES,
    PAGES,
    RELATIONSHIP_MENTIONS,
    RELATIONSHIPS,
    Table,
)
from rag_assets.defs.io import StepFacts, materialized, model_facts, table_spec, whole_materialized
from rag_assets.defs.partitions import BACKFILL_POLICY, SHARD_PARTITIONS, shards_of_step
from rag_assets.defs.resources import HomeResource, Progress, retried
from rag_assets.graph.communities.picture import community_picture
from rag_assets.graph.communities.tables import communities_fingerprint, update_communities
from rag_assets.graph.entities.tables import entities_fingerprint, update_entities
from rag_assets.graph.exchange import level_metrics, top_entities_markdown
from rag_assets.graph.mentions.tables import mentions_fingerprint, update_mentions
from rag_assets.graph.reports.tables import reports_fingerprint, update_reports
from rag_assets.pipeline.home import Home
from rag_assets.store.incremental import clear_shard, clear_whole

_GROUP = "graph"
_MENTIONS: tuple[tuple[Table, tuple[str, ...]], ...] = (
    (ENTITY_MENTIONS, ("document_id", "page_number", "name", "type")),
    (RELATIONSHIP_MENTIONS, ("document_id", "source_key", "kind", "target_key")),
    (CLAIMS, ("document_id", "subject_key", "status", "description")),
)
_ENTITIES = (ENTITIES, RELATIONSHIPS, ENTITY_MERGES)
_COMMUNITIES = (COMMUNITIES, COMMUNITY_MEMBERS)
_DISSOLVED_SHOWN = 50
_OFF = {"switched_off": "graph.enabled"}


def graph_in_use(home: Home) -> bool:
    """Whether there are graph assets: it is switched on, or was, and what is stored of it is to be emptied."""
    stored = (*(table for table, _ in _MENTIONS), *_ENTITIES, *_COMMUNITIES, COMMUNITY_REPORTS)
    return home.settings.graph.enabled or any(home.lake.latest(table) for table in stored)


@dg.multi_asset(
    name="extract_mentions",
    specs=[
        table_spec(table, [DOCUMENTS.name, PAGES.name, BLOCKS.name, CHUNKS.name], _GROUP, mentions_fingerprint())
        for table, _ in _MENTIONS
    ],
    partitions_def=SHARD_PARTITIONS,
    backfill_policy=BACKFILL_POLICY,
)
def extract_mentions(
    context: dg.AssetExecutionContext, home: dg.ResourceParam[HomeResource], progress: dg.ResourceParam[Progress]
) -> Iterator[dg.MaterializeResult]:  # type: ignore[type-arg]
    """Takes names and relationships from the pages that changed."""
    base, run_id = home.open(), context.run.run_id
    tables = [table for table, _ in _MENTIONS]
    with retried():
        if base.settings.graph.enabled:
            model, options, types = base.language_model(run_id), base.options.mentions, base.entity_types
            bar = progress.step("extract mentions")
            with base.recognizer() as recognizer, model_facts(base, tables, run_id, shards_of_step(context)) as facts:
                update = update_mentions(base.lake, shards_of_step(context), model, options, types, bar, recognizer)
            report = update.report
            for table in tables:
                facts.run[table.name] |= {f"dropped: {reason}": count for reason, count in update.dropped.items()}
        else:
            report, facts = clear_shard(base.lake, tables, shards_of_step(context)), StepFacts(_OFF)
    for table, shown in _MENTIONS:
        yield materialized(context, base.lake, table, report, shown, {}, facts)


@dg.multi_asset(
    name="resolve_entities",
    specs=[
        table_spec(table, [ENTITY_MENTIONS.name, RELATIONSHIP_MENTIONS.name], _GROUP, entities_fingerprint())
        for table in _ENTITIES
    ],
    pool="lancedb_write",
)
def resolve_entities(
    context: dg.AssetExecutionContext, home: dg.ResourceParam[HomeResource]
) -> Iterator[dg.MaterializeResult]:  # type: ignore[type-arg]
    """Makes one entity of the names that mean one, and one relationship of its mentions."""
    base, facts = home.open(), StepFacts(_OFF)
    with retried():
        if base.settings.graph.enabled:
            model = base.language_model(context.run.run_id)
            with model_facts(base, _ENTITIES, context.run.run_id) as facts:
                update_entities(base.lake, model, base.embedder, base.options.entities)
        else:
            clear_whole(base.lake, _ENTITIES)
    preview = dg.MetadataValue.md(top_entities_markdown(base.lake, 20))
    yield from (whole_materialized(base.lake, table, facts, preview=preview) for table in _ENTITIES)


@dg.multi_asset(
    name="detect_communities",
    specs=[
        table_spec(table, [ENTITIES.name, RELATIONSHIPS.name], _GROUP, communities_fingerprint())
        for table in _COMMUNITIES
    ],
    pool="lancedb_write",
)
def detect_communities(home: dg.ResourceParam[HomeResource]) -> Iterator[dg.MaterializeResult]:  # type: ignore[type-arg]
    """Groups the entities level by level."""
    base = home.open()
    facts: dict[str, dg.MetadataValue] = {}
    with retried():
        if base.settings.graph.enabled:
            update = update_communities(base.lake, base.options.leiden)
            dissolved = [f"{each.community_id} -> {each.successor_id}" for each in update.dissolved[:_DISSOLVED_SHOWN]]
            facts = {
                "kept": dg.MetadataValue.int(update.kept_count),
                "new": dg.MetadataValue.int(len(update.new_ids)),
                "dissolved": dg.MetadataValue.json({"count": len(update.dissolved), "successors": dissolved}),
                "levels": dg.MetadataValue.json({"levels": [asdict(each) for each in level_metrics(base.lake)]}),
                "picture": dg.MetadataValue.md(community_picture(base.lake)),
            }
        else:
            clear_whole(base.lake, _COMMUNITIES)
    yield from (whole_materialized(base.lake, table, **facts) for table in _COMMUNITIES)


@dg.multi_asset(
    name="report_communities",
    specs=[
        table_spec(
            COMMUNITY_REPORTS, [COMMUNITIES.name, COMMUNITY_MEMBERS.name, CLAIMS.name], _GROUP, reports_fingerprint()
        )
    ],
    pool="lancedb_write",
)
def report_communities(
    context: dg.AssetExecutionContext, home: dg.ResourceParam[HomeResource], progress: dg.ResourceParam[Progress]
) -> dg.MaterializeResult:  # type: ignore[type-arg]
    """Writes a report on each community that changed, from the finest level to the coarsest."""
    base = home.open()
    with retried():
        if not base.settings.graph.enabled:
            clear_whole(base.lake, (COMMUNITY_REPORTS,))
            return whole_materialized(base.lake, COMMUNITY_REPORTS, StepFacts(_OFF))
        model = base.language_model(context.run.run_id)
        with model_facts(base, [COMMUNITY_REPORTS], context.run.run_id) as facts:
            update = update_reports(base.lake, model, base.options.reports, progress.step("report communities"))
    return whole_materialized(
        base.lake,
        COMMUNITY_REPORTS,
        facts,
        rewritten=dg.MetadataValue.int(update.rewritten),
        kept=dg.MetadataValue.int(update.kept),
        removed=dg.MetadataValue.int(update.removed),
        removed_references=dg.MetadataValue.int(update.removed_references),
    )
