"""Tables of the entity graph: mentions, entities, relationships, communities and their reports."""

import pyarrow as pa

from rag_assets.contracts.table import (
    DOCUMENT_ID,
    ENTITY_ID,
    LANGUAGE,
    METHOD,
    PAGE_ID,
    PAGE_NUMBER,
    SHARD,
    TEXT,
    Table,
    column,
)

ENTITY_MENTIONS = Table(
    "entity_mentions",
    "One row for each place where a document names an entity.",
    ("document_id", "mention_index"),
    (
        DOCUMENT_ID,
        SHARD,
        column("mention_index", pa.int32(), "Position among the mentions of the document, from 0."),
        PAGE_ID,
        PAGE_NUMBER,
        column("chunk_id", TEXT, "Passage that holds the mention; null where none does.", nullable=True),
        column("window_index", pa.int32(), "Window of the page that was read, from 0."),
        column(
            "start_char", pa.int32(), "Where the name begins in the text of the page; null if not found.", nullable=True
        ),
        column("name", TEXT, "The name as written."),
        column("name_key", TEXT, "The name folded: NFKC, case, width and spacing; what names are compared by."),
        column("type", TEXT, "Type of the entity, as in `organization` or `identifier`."),
        column("description", TEXT, "What the place says of the entity; empty where nothing."),
        METHOD,
    ),
)

RELATIONSHIP_MENTIONS = Table(
    "relationship_mentions",
    "One row for each place where a document relates two entities.",
    ("document_id", "mention_index"),
    (
        DOCUMENT_ID,
        SHARD,
        column("mention_index", pa.int32(), "Position among the relationships of the document, from 0."),
        PAGE_ID,
        PAGE_NUMBER,
        column("chunk_id", TEXT, "Passage that holds the relationship; null where none does.", nullable=True),
        column("window_index", pa.int32(), "Window of the page that was read, from 0."),
        column("source_key", TEXT, "`name_key` of the entity it starts from."),
        column("target_key", TEXT, "`name_key` of the entity it leads to."),
        column(
            "kind",
            TEXT,
            "`stated` by a model, a drawn `connector`, together in a `row` or `sentence`; `alias` where the source is "
            "declared to be another name of the target, which is no edge.",
        ),
        column("strength", pa.float32(), "From 0 to 10, as the model judges it; 1 without a model."),
        column("description", TEXT, "How they are related; empty where only that they occur together is known."),
        METHOD,
    ),
)

CLAIMS = Table(
    "claims",
    "One row for each statement about an entity that could be checked, where their extraction is switched on.",
    ("document_id", "claim_index"),
    (
        DOCUMENT_ID,
        SHARD,
        column("claim_index", pa.int32(), "Position among the claims of the document, from 0."),
        PAGE_ID,
        PAGE_NUMBER,
        column("chunk_id", TEXT, "Passage that holds the claim; null where none does.", nullable=True),
        column("subject_key", TEXT, "`name_key` of the entity that it is about."),
        column("object_key", TEXT, "`name_key` of the entity that it also concerns; null for none.", nullable=True),
        column("type", TEXT, "Type of the claim."),
        column("status", TEXT, "`true`, `false` or `suspected`."),
        column("start_date", TEXT, "When it begins to hold, ISO 8601; null where not stated.", nullable=True),
        column("end_date", TEXT, "When it ceases to hold, ISO 8601; null where not stated.", nullable=True),
        column("description", TEXT, "The claim."),
        column("source_text", TEXT, "Words of the document that state it."),
        METHOD,
    ),
)

ENTITY_MERGES = Table(
    "entity_merges",
    "One row for each name that was taken for another name of an entity, with the reason.",
    ("name_key",),
    (
        column("name_key", TEXT, "The name, folded."),
        column("merged_into", TEXT, "`name_key` of the entity."),
        column(
            "rule", TEXT, "`declared` in a document, `similar` names and vectors, `model`, or `override` by a person."
        ),
        column("similarity", pa.float32(), "Cosine of the two names' vectors; null where not compared.", nullable=True),
        column("evidence", TEXT, "Where it is declared, or what confirmed it."),
    ),
    sharded=False,
)

ENTITIES = Table(
    "entities",
    "The nodes of the entity graph.",
    ("entity_id",),
    (
        ENTITY_ID,
        column("number", pa.int32(), "Number by which reports cite it: a short digest of `entity_id`."),
        column("name", TEXT, "Its most frequent name."),
        column("name_key", TEXT, "Its key: the folded name that the others were merged into."),
        column("type", TEXT, "Its most frequent type."),
        column("aliases", pa.list_(TEXT), "Other names, rising."),
        column("description", TEXT, "What its documents say of it."),
        column(
            "content_sha256",
            TEXT,
            "Digest of what the description was made from; rewritten only when it changes. Null where it is to be "
            "written again.",
            nullable=True,
        ),
        column("mention_count", pa.int32(), "Places that name it."),
        column("document_count", pa.int32(), "Documents that name it."),
        column("degree", pa.int32(), "Entities that it is related to."),
        column("rank", pa.float64(), "PageRank over the weighted graph."),
    ),
    sharded=False,
)

RELATIONSHIPS = Table(
    "relationships",
    "The edges of the entity graph, without direction.",
    ("source_id", "target_id"),
    (
        column("source_id", TEXT, "`entity_id` of one end, the smaller of the two."),
        column("target_id", TEXT, "`entity_id` of the other end."),
        column("number", pa.int32(), "Number by which reports cite it: a short digest of both ends."),
        column("description", TEXT, "How the two are related; empty where only that they occur together is known."),
        column(
            "content_sha256",
            TEXT,
            "Digest of what the description was made from; rewritten only when it changes. Null where it is to be "
            "written again.",
            nullable=True,
        ),
        column("weight", pa.float64(), "Instances of the relationship; of mere co-occurrence, weighed by PMI."),
        column("mention_count", pa.int32(), "Places that state it."),
        column("combined_degree", pa.int32(), "Sum of the degrees of both ends."),
    ),
    sharded=False,
)

COMMUNITIES = Table(
    "communities",
    "Groups of closely related entities, level by level; every level holds every entity once.",
    ("community_id",),
    (
        column("community_id", TEXT, "Identifies the community: a digest of its level and members."),
        column("level", pa.int32(), "0 for the coarsest level."),
        column("parent_id", TEXT, "Community of the level above that holds it; null at level 0.", nullable=True),
        column("size", pa.int32(), "Entities in it."),
        column("relationship_count", pa.int32(), "Relationships between its entities."),
        column("is_leaf", pa.bool_(), "Whether it is not split any further."),
    ),
    sharded=False,
)

COMMUNITY_MEMBERS = Table(
    "community_members",
    "Which entity is in which community; one row for each entity and level.",
    ("level", "entity_id"),
    (
        column("level", pa.int32(), "0 for the coarsest level."),
        ENTITY_ID,
        column("community_id", TEXT, "The community of the level that holds the entity."),
    ),
    sharded=False,
)

FINDING = pa.struct(
    [pa.field("summary", pa.string(), nullable=False), pa.field("explanation", pa.string(), nullable=False)]
)

COMMUNITY_REPORTS = Table(
    "community_reports",
    "A report on each community, with references to the records that it rests on.",
    ("community_id",),
    (
        column("community_id", TEXT, "The community."),
        column("level", pa.int32(), "Its level."),
        column("title", TEXT, "Short title with names from the community."),
        column("summary", TEXT, "What the community is about."),
        column("rating", pa.float32(), "Impact from 0 to 10."),
        column("rating_explanation", TEXT, "Why."),
        column("findings", pa.list_(FINDING), "Findings, most important first."),
        column("text", TEXT, "The whole report."),
        column("removed_references", pa.int32(), "References to records that do not exist, taken out of the text."),
        column("length_tokens", pa.int32(), "Tokens of `text`, estimated."),
        column("content_sha256", TEXT, "Digest of what the report was written from; rewritten only when it changes."),
        LANGUAGE,
        METHOD,
    ),
    sharded=False,
)
