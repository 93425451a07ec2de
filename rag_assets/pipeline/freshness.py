"""Which stored rows were not computed from what the step before them stored last."""

from typing import TYPE_CHECKING

from rag_assets.contracts.tables import (
    BLOCKS,
    CHUNKS,
    CLAIMS,
    COMMUNITIES,
    COMMUNITY_MEMBERS,
    COMMUNITY_REPORTS,
    DOCUMENT_FACETS,
    DOCUMENTS,
    ENTITIES,
    ENTITY_MENTIONS,
    ENTITY_MERGES,
    FILE_SUMMARIES,
    META_KNOWLEDGE,
    PAGE_SUMMARIES,
    PAGES,
    PARSE_FAILURES,
    QUESTION_CLUSTERS,
    RELATIONSHIP_MENTIONS,
    RELATIONSHIPS,
    SYNTHETIC_QA,
)
from rag_assets.store.incremental import finished
from rag_assets.store.lake import WHOLE

if TYPE_CHECKING:
    from rag_assets.pipeline.home import Home


def unfinished_steps(home: "Home") -> list[str]:
    """Shards of tables whose rows were not computed from what the step before them stored last, in words."""
    from rag_assets.enrich.facets.tables import wanted_facets
    from rag_assets.enrich.questions.tables import wanted_questions
    from rag_assets.enrich.summaries.boilerplate import without_mark
    from rag_assets.enrich.summaries.tables import wanted_file_summaries, wanted_page_summaries
    from rag_assets.parsing.chunks import wanted_chunks
    from rag_assets.store.publish import unfinished_syncs

    lengths, model = home.options.summaries, home.language_model_name
    unfinished = []
    for shard in home.lake.latest(DOCUMENTS):
        parsed = home.lake.inputs(BLOCKS, shard)
        expected = {
            PAGES: parsed,
            PARSE_FAILURES: parsed,
            CHUNKS: wanted_chunks(home.lake, shard, home.chunking_fingerprint),
            PAGE_SUMMARIES: wanted_page_summaries(home.lake, shard, lengths, model),
            FILE_SUMMARIES: wanted_file_summaries(home.lake, shard, lengths, model),
            DOCUMENT_FACETS: wanted_facets(
                home.lake, shard, home.taxonomy, lengths.read_tokens, model, home.embedder.name
            ),
            SYNTHETIC_QA: wanted_questions(home.lake, shard, home.options.questions, model),
            **dict.fromkeys((ENTITY_MENTIONS, RELATIONSHIP_MENTIONS, CLAIMS), _wanted_mentions(home, shard)),
        }
        found = {table: finished(home.lake.inputs(table, shard)) for table in expected}
        for table in (PAGE_SUMMARIES, SYNTHETIC_QA):
            found[table] = {name: without_mark(key) for name, key in found[table].items()}
        unfinished += [f"{table.name}, shard {shard}" for table, keys in expected.items() if found[table] != keys]
        if home.lake.inputs(DOCUMENTS, shard).keys() != parsed.keys():
            unfinished.append(f"{DOCUMENTS.name}, shard {shard}")
    unfinished += _unfinished_knowledge(home)
    if home.settings.graph.enabled:
        unfinished += _unfinished_graph(home)
    return unfinished + unfinished_syncs(home.lake, home.vectors, home.embedder.name)


def _wanted_mentions(home: "Home", shard: str) -> dict[str, str]:
    """What the mentions of each document of a shard are to be computed from; nothing where the graph is off."""
    if not home.settings.graph.enabled:
        return {}
    from rag_assets.graph.mentions.tables import wanted_mentions

    return wanted_mentions(home.lake, shard, home.options.mentions, home.entity_types, home.language_model_name)


def _unfinished_knowledge(home: "Home") -> list[str]:
    from rag_assets.enrich.knowledge.clusters import wanted_clusters
    from rag_assets.enrich.knowledge.tables import wanted_knowledge

    distance = home.settings.enrichment.duplicate_distance
    expected = {
        QUESTION_CLUSTERS: wanted_clusters(home.lake, distance, home.embedder.name),
        META_KNOWLEDGE: wanted_knowledge(home.lake, home.options.knowledge, home.language_model_name),
    }
    found = {table: finished(home.lake.inputs(table, WHOLE)).get(WHOLE) for table in expected}
    return [table.name for table, wanted in expected.items() if found[table] not in {wanted, None}]


def _unfinished_graph(home: "Home") -> list[str]:
    from rag_assets.graph.entities.tables import wanted_entities

    wanted = wanted_entities(home.lake, home.options.entities, home.language_model_name, home.embedder.name)
    made = (ENTITIES, RELATIONSHIPS, ENTITY_MERGES)
    missing = [each.name for each in made if finished(home.lake.inputs(each, WHOLE)) != {WHOLE: wanted}]
    later = (COMMUNITIES, COMMUNITY_MEMBERS, COMMUNITY_REPORTS)
    return missing + [each.name for each in later if not home.lake.inputs(each, WHOLE)]
