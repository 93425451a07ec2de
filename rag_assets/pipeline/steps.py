"""The steps of indexing, each declared once: assets, checks, plans, freshness and the steps to force follow from it.

A new table is its schema (`rag_assets.contracts.tables`), the function that fills it, and a step here. What stays out:
what a step does; algorithms are imported when a step runs, so that to know the steps costs nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from rag_assets.contracts.fingerprint import Code, code_of, digest
from rag_assets.contracts.tables import (
    BLOCKS,
    CHUNK_INDEX,
    CHUNKS,
    CLAIMS,
    COMMUNITIES,
    COMMUNITY_MEMBERS,
    COMMUNITY_REPORTS,
    DOCUMENT_FACETS,
    DOCUMENT_LINES,
    DOCUMENTS,
    ENTITIES,
    ENTITY_INDEX,
    ENTITY_MENTIONS,
    ENTITY_MERGES,
    FILE_SUMMARIES,
    META_KNOWLEDGE,
    MODEL_CALLS,
    PAGE_SUMMARIES,
    PAGES,
    PARSE_FAILURES,
    QUESTION_CLUSTERS,
    QUESTION_INDEX,
    RELATIONSHIP_MENTIONS,
    RELATIONSHIPS,
    REPORT_INDEX,
    SUMMARY_INDEX,
    SYNTHETIC_QA,
    Table,
    VectorTable,
)
from rag_assets.processes.workers import processors
from rag_assets.store.lake import Lake
from rag_assets.store.serving import SERVING, serving_code, serving_states

if TYPE_CHECKING:
    from rag_assets.contracts.ports import LanguageModel
    from rag_assets.graph.mentions.recognizers import Recognizer
    from rag_assets.pipeline.home import Home
    from rag_assets.store.incremental import StepReport

Progress = Callable[[int, int], None]
Keys = Mapping[str, str]


@dataclass(frozen=True)
class StepWork:
    """What a step works on."""

    home: "Home"  # the knowledge base: its settings and models
    lake: Lake  # its stored tables, or a copy of them
    shards: Sequence[str]  # shards to bring in step; a table that is made as a whole is brought in step as a whole
    model: "LanguageModel"
    progress: Progress  # told what is done and what there is in all
    recognizer: "Recognizer | None" = None  # what recognizes named entities; None for the one of the settings
    listing: Any = None  # what the sources hold; for parsing alone
    full_check: bool = False  # whether the bytes of every file are compared
    every_change: bool = False  # whether all that the sources changed is one change; else each file that moved is
    run_id: str | None = None  # Dagster run that asks; None outside a run


@dataclass
class StepOutcome:
    """What a step did, for people."""

    report: "StepReport | None" = None  # what it did shard by shard; None where its tables are made as a whole
    figures: dict[str, int] = field(default_factory=dict)  # numbers by name
    texts: dict[str, Callable[[], str]] = field(default_factory=dict)  # gives Markdown, by name
    data: dict[str, dict[str, Any]] = field(default_factory=dict)  # what is shown as JSON, by name
    counts: dict[str, int] = field(default_factory=dict)  # rows of each shard of a serving table
    dropped: Mapping[str, int] = field(default_factory=dict)  # items of answers that were not taken, by reason


@dataclass(frozen=True)
class TableDisplay:
    """What the UI shows of a table."""

    columns: tuple[str, ...] = ()  # columns of the preview; none for no preview
    lineage: Mapping[str, tuple[str, str]] = field(default_factory=dict)  # table and column that a column comes from


@dataclass(frozen=True)
class Step:
    """A step of indexing."""

    name: str  # what it is called, as in `summarize_pages`
    description: str  # what it does, in one sentence
    group: str  # its part of the pipeline
    update: Callable[[StepWork], StepOutcome]  # brings its tables in step
    # functions whose code its tables depend on, as in `rag_assets.parsing.parse:parse_bytes`; what these reach counts
    # as well
    code: tuple[str, ...]
    tables: tuple[Table, ...] = ()  # stored tables that it writes
    reads: tuple[Table, ...] = ()  # stored tables that it reads
    # settings that its tables depend on, as in `chunking.size_tokens`, and names of `FACTS`
    options: tuple[str, ...] = ()
    # what each document of a shard is to be computed from, or the table as a whole; None where only running the step
    # tells
    wanted: Callable[["Home", str], Keys] | None = None
    # those of its tables that are computed from something else, for the same documents
    keyed_apart: tuple[Table, ...] = ()
    sharded: bool = True  # whether its tables are split by documents; else they are made as a whole
    asks_model: bool = False  # whether a language model writes its tables
    graph: bool = False  # whether it is of the entity graph
    force: str = ""  # name under which people force it for chosen documents; empty where they cannot
    index: VectorTable | None = None  # serving table that it writes instead of stored ones
    asset: str = ""  # name of the asset of the serving table
    # shards that the step works on beside those of its run, so that a version shows one change as a whole
    further: Callable[[StepWork], set[str]] | None = None
    label: str = ""  # what its progress is called; its name where empty
    pool: str | None = None  # steps of one pool do not run at once
    shown: Mapping[str, TableDisplay] = field(default_factory=dict)  # what the UI shows of each table, by its name

    @property
    def assets(self) -> tuple[str, ...]:
        """Names of its assets."""
        return (self.asset,) if self.index else tuple(table.name for table in self.tables)

    def writer(self, home: "Home") -> str:
        """Name of the language model that writes its tables; `extractive` where none does."""
        if not self.asks_model:
            return "extractive"
        return home.graph_model_name if self.graph else home.language_model_name

    @property
    def its_code(self) -> Code:
        """What its tables depend on in code, prompts and libraries."""
        return code_of(*self.code)


def _parse(work: StepWork) -> StepOutcome:
    from rag_assets.parsing.documents import update_documents

    home = work.home
    return StepOutcome(
        update_documents(
            work.lake,
            work.listing,
            work.shards,
            home.options.parsing,
            worker_count(home.settings.parsing.workers),
            work.progress,
            home.options.passwords,
            full_check=work.full_check,
        )
    )


def worker_count(stated: int) -> int:
    """Processes to work with: as many as are stated, or where that is 0, as there are processors for this one."""
    return stated or processors()


def _shards_of_one_change(work: StepWork) -> set[str]:
    from rag_assets.sources.changes import shards_of_one_change

    return shards_of_one_change(work.lake, work.listing, work.shards, every=work.every_change)


def _chunk(work: StepWork) -> StepOutcome:
    from rag_assets.parsing.documents import update_chunks

    home, settings = work.home, work.home.settings.chunking
    sizes = (settings.size_tokens, settings.overlap_share)
    fingerprint = chunks_key(home)
    return StepOutcome(update_chunks(work.lake, work.shards, home.embedder, fingerprint, *sizes, work.progress))


def chunks_key(home: "Home") -> str:
    """Digest of the code and settings that chunks depend on."""
    from rag_assets.parsing.documents import chunking_fingerprint

    settings = home.settings.chunking
    return chunking_fingerprint(home.embedder.name, settings.size_tokens, settings.overlap_share)


def _summarize_pages(work: StepWork) -> StepOutcome:
    from rag_assets.enrich.summaries.tables import update_page_summaries

    lengths = work.home.options.summaries
    return StepOutcome(update_page_summaries(work.lake, work.shards, work.model, lengths, work.progress))


def _outdated_boilerplate(work: StepWork) -> set[str]:
    from rag_assets.enrich.summaries.boilerplate import update_document_lines

    update_document_lines(work.lake, work.shards)
    return shards_with_outdated_boilerplate(work.home)


def shards_with_outdated_boilerplate(home: "Home") -> set[str]:
    """Shards with extractive summaries or questions that were made when other lines counted as boilerplate."""
    if home.language_model_name != "extractive":
        return set()
    from rag_assets.enrich.summaries import boilerplate

    return boilerplate.shards_with_outdated_boilerplate(home.lake, home.settings.enrichment.boilerplate_documents)


def _summarize_files(work: StepWork) -> StepOutcome:
    from rag_assets.enrich.summaries.tables import update_file_summaries

    lengths = work.home.options.summaries
    return StepOutcome(update_file_summaries(work.lake, work.shards, work.model, lengths, work.progress))


def _classify(work: StepWork) -> StepOutcome:
    from rag_assets.enrich.facets.tables import update_facets
    from rag_assets.store.vectors.store import CachedEmbedder

    home, read_tokens = work.home, work.home.settings.enrichment.read_tokens
    embedder = CachedEmbedder(home.embedder, home.vectors) if work.lake is home.lake else home.embedder
    return StepOutcome(
        update_facets(work.lake, work.shards, work.model, embedder, home.options.taxonomy, read_tokens, work.progress)
    )


def _ask_questions(work: StepWork) -> StepOutcome:
    from rag_assets.enrich.questions.tables import update_questions

    rules = work.home.options.questions
    return StepOutcome(update_questions(work.lake, work.shards, work.model, rules, work.progress))


def _cluster_questions(work: StepWork) -> StepOutcome:
    from rag_assets.enrich.knowledge.clusters import redundancy_report, update_question_clusters

    home, distance = work.home, work.home.settings.enrichment.duplicate_distance
    embed = partial(home.vectors.embed, embedder=home.embedder)
    update = update_question_clusters(work.lake, embed, home.embedder.name, distance, work.progress)
    return StepOutcome(
        figures={"questions": update.question_count, "clusters": update.cluster_count},
        texts={"redundancy": partial(redundancy_report, work.lake)},
    )


def _summarize_knowledge(work: StepWork) -> StepOutcome:
    from rag_assets.enrich.knowledge.tables import update_meta_knowledge

    home = work.home
    update = update_meta_knowledge(work.lake, work.model, home.options.knowledge, home.options.taxonomy, work.progress)
    return StepOutcome(figures={"rewritten": update.rewritten, "kept": update.kept, "removed": update.removed})


def _extract_mentions(work: StepWork) -> StepOutcome:
    from rag_assets.graph.mentions.recognizers import SpacyRecognizer
    from rag_assets.graph.mentions.tables import update_mentions

    home = work.home
    workers = worker_count(home.settings.graph.workers)
    with nullcontext(work.recognizer) if work.recognizer else SpacyRecognizer(workers) as recognizer:
        options, types = home.options.mentions, home.options.entity_types
        update = update_mentions(work.lake, work.shards, work.model, options, types, work.progress, recognizer)
    return StepOutcome(update.report, dropped=update.dropped)


def _resolve_entities(work: StepWork) -> StepOutcome:
    from rag_assets.graph.entities.tables import update_entities
    from rag_assets.graph.exchange import top_entities_markdown

    update_entities(work.lake, work.model, work.home.embedder, work.home.options.entities)
    return StepOutcome(texts={"preview": partial(top_entities_markdown, work.lake, 20)})


def _detect_communities(work: StepWork) -> StepOutcome:
    from rag_assets.graph.communities.tables import update_communities
    from rag_assets.graph.exchange import community_picture, level_metrics

    update = update_communities(work.lake, work.home.options.leiden)
    successors = [
        f"{community.community_id} -> {community.successor_id}" for community in update.dissolved[:_DISSOLVED_SHOWN]
    ]
    return StepOutcome(
        figures={"kept": update.kept_count, "new": len(update.new_ids)},
        texts={"picture": partial(community_picture, work.lake)},
        data={
            "dissolved": {"count": len(update.dissolved), "successors": successors},
            "levels": {"levels": [asdict(metrics) for metrics in level_metrics(work.lake)]},
        },
    )


def _report_communities(work: StepWork) -> StepOutcome:
    from rag_assets.graph.reports.tables import update_reports

    update = update_reports(work.lake, work.model, work.home.options.reports, work.progress)
    names = ("rewritten", "kept", "removed", "removed_references")
    return StepOutcome(figures={name: getattr(update, name) for name in names})


def _record_model_calls(work: StepWork) -> StepOutcome:
    return StepOutcome(figures={"rows_added": work.home.ledger(work.run_id).compact()})


def _index(table: VectorTable, work: StepWork) -> StepOutcome:
    home, make_rows = work.home, SERVING[table.name][1]
    states = serving_states(work.lake, table.name, home.embedder.name)  # before the rows are read
    rows = {shard: make_rows(work.lake, shard) for shard in work.shards}
    result = home.vectors.sync(table, rows, home.embedder, work.progress, states)
    return StepOutcome(
        figures={
            "dagster/row_count": home.vectors.count(table.name),
            "rows_written": result.upserted,
            "rows_deleted": result.deleted,
            "rows_unchanged": result.unchanged,
            "texts_embedded": result.embedded,
            "lancedb_version": result.version,
        },
        counts={shard: data.num_rows for shard, data in rows.items()},
    )


def _wanted_chunks(home: "Home", shard: str) -> Keys:
    from rag_assets.parsing.documents import wanted_chunks

    return wanted_chunks(home.lake, shard, chunks_key(home))


def _wanted_page_summaries(home: "Home", shard: str) -> Keys:
    from rag_assets.enrich.summaries.tables import wanted_page_summaries

    return wanted_page_summaries(home.lake, shard, home.options.summaries, home.language_model_name)


def _wanted_file_summaries(home: "Home", shard: str) -> Keys:
    from rag_assets.enrich.summaries.tables import wanted_file_summaries

    return wanted_file_summaries(home.lake, shard, home.options.summaries, home.language_model_name)


def _wanted_facets(home: "Home", shard: str) -> Keys:
    from rag_assets.enrich.facets.tables import wanted_facets

    read_tokens, model = home.settings.enrichment.read_tokens, home.language_model_name
    return wanted_facets(home.lake, shard, home.options.taxonomy, read_tokens, model, home.embedder.name)


def _wanted_questions(home: "Home", shard: str) -> Keys:
    from rag_assets.enrich.questions.tables import wanted_questions

    return wanted_questions(home.lake, shard, home.options.questions, home.language_model_name)


def _wanted_mentions(home: "Home", shard: str) -> Keys:
    from rag_assets.graph.mentions.tables import wanted_mentions

    return wanted_mentions(home.lake, shard, home.options.mentions, home.options.entity_types, home.graph_model_name)


def _wanted_clusters(home: "Home", shard: str) -> Keys:
    from rag_assets.enrich.knowledge.clusters import wanted_clusters

    return {shard: wanted_clusters(home.lake, home.settings.enrichment.duplicate_distance, home.embedder.name)}


def _wanted_knowledge(home: "Home", shard: str) -> Keys:
    from rag_assets.enrich.knowledge.tables import wanted_knowledge

    return {shard: wanted_knowledge(home.lake, home.options.knowledge, home.language_model_name)}


def _wanted_entities(home: "Home", shard: str) -> Keys:
    from rag_assets.graph.entities.tables import wanted_entities

    return {shard: wanted_entities(home.lake, home.options.entities, home.graph_model_name, home.embedder.name)}


def _decisions(home: "Home") -> str:
    if home.settings.graph.merges_csv is None:
        return ""
    overrides = home.options.merges
    return digest(tuple(sorted(overrides.merges.items())), tuple(sorted(overrides.apart)))


def _readers(home: "Home") -> str:
    from rag_assets.parsing.parse import installed_readers

    return installed_readers(home.options.parsing)


# What steps depend on beside code and settings, under the name that people are told.
FACTS: Mapping[str, Callable[["Home"], str]] = {
    "the language model": lambda home: home.language_model_name,
    "the language model of the graph": lambda home: home.graph_model_name,
    "the embedder": lambda home: home.embedder.name,
    "enrichment.taxonomy": lambda home: home.options.taxonomy.digest,
    "graph.types_toml": lambda home: home.options.entity_types.digest,
    "graph.merges_csv": _decisions,
    "the packages by which Unstructured reads": _readers,
}


_DISSOLVED_SHOWN = 50
_TEXT_SHOWN = ("document_id", "language", "length_chars", "text")
_MODEL, _GRAPH_MODEL, _EMBEDDER = "the language model", "the language model of the graph", "the embedder"


def _serving(asset: str, table: VectorTable, subject: str) -> Step:
    reads, make_rows = SERVING[table.name]
    whole = not reads[0].sharded
    return Step(
        f"index_{table.name}",
        f"Embeds {subject} that changed and writes them to the serving table.",
        "serving",
        partial(_index, table),
        serving_code(make_rows),
        reads=reads,
        options=(_EMBEDDER,),
        sharded=not whole,
        graph=whole,
        index=table,
        asset=asset,
        label=f"embed {table.name}",
        pool="lancedb_write",
    )


_ENRICHING = (
    Step(
        "parse",
        "Reads the files of the sources that are new or changed into pages and blocks.",
        "parsing",
        _parse,
        ("rag_assets.parsing.documents:update_documents", "rag_assets.parsing.parse:parse_bytes"),
        (DOCUMENTS, PAGES, BLOCKS, PARSE_FAILURES),
        options=(
            *(f"parsing.{name}" for name in ("file_bytes", "expanded_bytes", "archive_entries", "cells", "pages")),
            "parsing.nesting_depth",
            "parsing.unstructured",
            "parsing.unstructured_formats",
            "the packages by which Unstructured reads",
        ),
        wanted=lambda home, shard: home.lake.inputs(BLOCKS, shard),
        keyed_apart=(DOCUMENTS,),
        force="parse",
        further=_shards_of_one_change,
        pool="parse",
        shown={
            DOCUMENTS.name: TableDisplay(("document_id", "format", "status", "title", "page_count")),
            PAGES.name: TableDisplay(
                ("page_id", "page_name", "length_chars", "text"), {"document_id": ("documents", "document_id")}
            ),
            BLOCKS.name: TableDisplay(("block_id", "kind", "cell_range", "text"), {"page_id": ("pages", "page_id")}),
            PARSE_FAILURES.name: TableDisplay(
                ("document_id", "page_number", "cause", "message"), {"document_id": ("documents", "document_id")}
            ),
        },
    ),
    Step(
        "chunk",
        "Cuts the pages into passages.",
        "parsing",
        _chunk,
        ("rag_assets.parsing.documents:update_chunks",),
        (CHUNKS,),
        (DOCUMENTS, PAGES, BLOCKS),
        ("chunking.size_tokens", "chunking.overlap_share", _EMBEDDER),
        _wanted_chunks,
        force="chunk",
        label="chunk (shards)",
        shown={
            CHUNKS.name: TableDisplay(
                ("chunk_id", "context", "cell_range", "text"),
                {"page_id": ("pages", "page_id"), "text": ("blocks", "text"), "context": ("documents", "title")},
            )
        },
    ),
    Step(
        "summarize_pages",
        "Summarizes each page: a little on its file, then what tells the page from others.",
        "enrichment",
        _summarize_pages,
        ("rag_assets.enrich.summaries.tables:update_page_summaries",),
        (PAGE_SUMMARIES, DOCUMENT_LINES),
        (DOCUMENTS, PAGES, BLOCKS),
        (
            *(f"enrichment.{name}" for name in ("page_file_chars", "page_summary_chars", "read_tokens")),
            "enrichment.boilerplate_documents",
            _MODEL,
        ),
        _wanted_page_summaries,
        keyed_apart=(DOCUMENT_LINES,),
        asks_model=True,
        force="summarize",
        further=_outdated_boilerplate,
        shown={
            DOCUMENT_LINES.name: TableDisplay(("document_id",)),
            PAGE_SUMMARIES.name: TableDisplay(
                _TEXT_SHOWN, {"page_id": ("pages", "page_id"), "text": ("blocks", "text")}
            ),
        },
    ),
    Step(
        "summarize_files",
        "Summarizes each document: from its text, or from the summaries of its pages where it is long.",
        "enrichment",
        _summarize_files,
        ("rag_assets.enrich.summaries.tables:update_file_summaries",),
        (FILE_SUMMARIES,),
        (DOCUMENTS, PAGES, BLOCKS, PAGE_SUMMARIES),
        ("enrichment.file_summary_chars", "enrichment.read_tokens", _MODEL),
        _wanted_file_summaries,
        asks_model=True,
        force="summarize",
        shown={
            FILE_SUMMARIES.name: TableDisplay(
                _TEXT_SHOWN, {"document_id": ("documents", "document_id"), "text": ("blocks", "text")}
            )
        },
    ),
    Step(
        "classify_documents",
        "Tells what kind of document each one is, by the facets of the taxonomy.",
        "enrichment",
        _classify,
        ("rag_assets.enrich.facets.tables:update_facets",),
        (DOCUMENT_FACETS,),
        (DOCUMENTS, PAGES, BLOCKS, FILE_SUMMARIES),
        ("enrichment.taxonomy", "enrichment.read_tokens", _MODEL, _EMBEDDER),
        _wanted_facets,
        asks_model=True,
        force="classify",
        label="classify",
        shown={DOCUMENT_FACETS.name: TableDisplay(("document_id", "facet", "value", "confidence"))},
    ),
    Step(
        "ask_questions",
        "Makes questions that each document answers, with the passages that their answers rest on.",
        "enrichment",
        _ask_questions,
        ("rag_assets.enrich.questions.tables:update_questions",),
        (SYNTHETIC_QA,),
        (CHUNKS, BLOCKS, DOCUMENT_FACETS, DOCUMENT_LINES),
        (
            *(f"enrichment.{name}" for name in ("questions_least", "questions_most", "question_tokens")),
            *(f"enrichment.{name}" for name in ("question_grade", "read_tokens", "boilerplate_documents")),
            _MODEL,
        ),
        _wanted_questions,
        asks_model=True,
        force="ask",
        shown={
            SYNTHETIC_QA.name: TableDisplay(
                ("document_id", "question", "answer", "grade"), {"chunk_ids": ("chunks", "chunk_id")}
            )
        },
    ),
    Step(
        "cluster_questions",
        "Finds questions that say nearly the same.",
        "enrichment",
        _cluster_questions,
        ("rag_assets.enrich.knowledge.clusters:update_question_clusters",),
        (QUESTION_CLUSTERS,),
        (SYNTHETIC_QA, DOCUMENT_FACETS),
        ("enrichment.duplicate_distance", _EMBEDDER),
        _wanted_clusters,
        sharded=False,
        pool="lancedb_write",
    ),
    Step(
        "summarize_knowledge",
        "Summarizes what the questions of each facet value, and of combinations in use, are about.",
        "enrichment",
        _summarize_knowledge,
        ("rag_assets.enrich.knowledge.tables:update_meta_knowledge",),
        (META_KNOWLEDGE,),
        (SYNTHETIC_QA, DOCUMENT_FACETS, QUESTION_CLUSTERS),
        (
            *(f"enrichment.knowledge_{name}" for name in ("documents", "questions", "combinations", "terms", "chars")),
            "enrichment.read_tokens",
            "enrichment.remove_duplicates",
            _MODEL,
        ),
        _wanted_knowledge,
        sharded=False,
        asks_model=True,
        pool="lancedb_write",
    ),
)
_GRAPH = (
    Step(
        "extract_mentions",
        "Takes names and relationships from the pages that changed.",
        "graph",
        _extract_mentions,
        ("rag_assets.graph.mentions.tables:update_mentions", "rag_assets.graph.mentions.recognizers:SpacyRecognizer"),
        (ENTITY_MENTIONS, RELATIONSHIP_MENTIONS, CLAIMS),
        (DOCUMENTS, PAGES, BLOCKS, CHUNKS),
        (
            *(f"graph.{name}" for name in ("window_tokens", "overlap_tokens", "gleanings", "claims", "types_toml")),
            _GRAPH_MODEL,
        ),
        _wanted_mentions,
        asks_model=True,
        graph=True,
        force="extract",
        shown={
            ENTITY_MENTIONS.name: TableDisplay(("document_id", "page_number", "name", "type")),
            RELATIONSHIP_MENTIONS.name: TableDisplay(("document_id", "source_key", "kind", "target_key")),
            CLAIMS.name: TableDisplay(("document_id", "subject_key", "status", "description")),
        },
    ),
    Step(
        "resolve_entities",
        "Makes one entity of the names that mean one, and one relationship of its mentions.",
        "graph",
        _resolve_entities,
        ("rag_assets.graph.entities.tables:update_entities",),
        (ENTITIES, RELATIONSHIPS, ENTITY_MERGES),
        (ENTITY_MENTIONS, RELATIONSHIP_MENTIONS),
        (
            *(f"graph.{name}" for name in ("description_chars", "merge_similarity", "merge_questions", "merges_csv")),
            _GRAPH_MODEL,
            _EMBEDDER,
        ),
        _wanted_entities,
        sharded=False,
        asks_model=True,
        graph=True,
        pool="lancedb_write",
    ),
    Step(
        "detect_communities",
        "Groups the entities level by level.",
        "graph",
        _detect_communities,
        ("rag_assets.graph.communities.tables:update_communities",),
        (COMMUNITIES, COMMUNITY_MEMBERS),
        (ENTITIES, RELATIONSHIPS),
        tuple(f"graph.{name}" for name in ("quality", "resolution", "community_size", "seed")),
        sharded=False,
        graph=True,
        pool="lancedb_write",
    ),
    Step(
        "report_communities",
        "Writes a report on each community that changed, from the finest level to the coarsest.",
        "graph",
        _report_communities,
        ("rag_assets.graph.reports.tables:update_reports",),
        (COMMUNITY_REPORTS,),
        (COMMUNITIES, COMMUNITY_MEMBERS, CLAIMS),
        ("graph.report_context_tokens", "graph.report_tokens", _GRAPH_MODEL),
        sharded=False,
        asks_model=True,
        graph=True,
        pool="lancedb_write",
    ),
)
_WRITTEN = tuple(step.tables[0] for step in (*_ENRICHING, *_GRAPH) if step.asks_model)

STEPS: tuple[Step, ...] = (
    *_ENRICHING,
    *_GRAPH,
    Step(
        "record_model_calls",
        "Moves the records of calls from the state database into the ledger.",
        "serving",
        _record_model_calls,
        (),
        (MODEL_CALLS,),
        _WRITTEN,
        sharded=False,
        pool="lancedb_write",
    ),
    _serving("chunk_index", CHUNK_INDEX, "passages"),
    _serving("summary_index", SUMMARY_INDEX, "summaries"),
    _serving("question_index", QUESTION_INDEX, "questions"),
    _serving("entity_index", ENTITY_INDEX, "entities"),
    _serving("report_index", REPORT_INDEX, "community reports"),
)

FORCED: Mapping[str, tuple[Table, ...]] = {
    name: tuple(table for step in STEPS if step.force == name for table in step.tables)
    for name in dict.fromkeys(step.force for step in STEPS if step.force)
}


def steps_in_use(home: "Home") -> tuple[Step, ...]:
    """The steps that the settings call for."""
    return tuple(step for step in STEPS if home.settings.graph.enabled or not step.graph)


def graph_in_use(home: "Home") -> bool:
    """Whether there are assets of the graph: it is switched on, or its stored tables are still to be emptied."""
    tables = (table for step in STEPS if step.graph for table in step.tables)
    return home.settings.graph.enabled or any(home.lake.latest(table) for table in tables)


def model_steps(home: "Home") -> tuple[Step, ...]:
    """The steps of indexing that ask a language model, and those between them, in their order."""
    asks_for_graph = home.graph_model_name != "extractive"
    return tuple(
        step for step in steps_in_use(home) if (asks_for_graph and step.tables if step.graph else step.asks_model)
    )
