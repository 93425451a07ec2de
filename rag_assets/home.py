"""One knowledge base on disk: where its parts lie, and the one place where stores and models are built from settings.

```
<RAG_HOME>/
  lake/          stored tables, Parquet            (rag_assets.store.lake)
  vectors/       serving tables, LanceDB           (rag_assets.store.vectors)
  snapshots/     published versions                (rag_assets.store.snapshots)
  models/        the embedder, exported once; answers of language models, their journals, batches, limits and budget
  sources.json   sources named on the command line
```
"""

import os
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import astuple, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from rag_assets.contracts.errors import QueryError, StoreError
from rag_assets.contracts.fingerprint import digest
from rag_assets.contracts.tables import (
    BLOCKS,
    CHUNKS,
    DOCUMENTS,
    FILE_SUMMARIES,
    PAGE_SUMMARIES,
    PAGES,
    PARSE_FAILURES,
)
from rag_assets.settings import Settings
from rag_assets.sources.changes import (
    Changes,
    Listing,
    find_changes,
    forgotten_sources,
    list_sources,
    read_sources,
    stored_documents,
)
from rag_assets.sources.listing import Source
from rag_assets.store.incremental import StepReport, finished
from rag_assets.store.lake import Lake
from rag_assets.store.snapshots import Snapshots

if TYPE_CHECKING:
    from filelock import FileLock

    from rag_assets.contracts.ports import Embedder, LanguageModel, Reranker
    from rag_assets.enrich.summary_dialogues import SummaryLengths
    from rag_assets.models.answers import AnswerStore
    from rag_assets.models.language_models import ModelChoice
    from rag_assets.models.ledger import Ledger
    from rag_assets.parsing.parse import ParsingLimits
    from rag_assets.query import KnowledgeBase
    from rag_assets.store.vectors import VectorStore


ModelStep: TypeAlias = Callable[[Lake, Sequence[str], Callable[[int, int], None]], StepReport]


class Home:
    """A knowledge base and its settings.

    Args:
        settings: All settings; `settings.home` is its folder.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.path = settings.home.expanduser().absolute()

    @cached_property
    def lake(self) -> Lake:
        """The stored tables."""
        return Lake(self.path / "lake")

    @cached_property
    def snapshots(self) -> Snapshots:
        """The published versions."""
        return Snapshots(self.path / "snapshots")

    @cached_property
    def vectors(self) -> "VectorStore":
        """The serving tables."""
        from rag_assets.store.vectors import VectorStore

        return VectorStore(str(self.path / "vectors"))

    @cached_property
    def embedder(self) -> "Embedder":
        """The embedder that the settings name."""
        from rag_assets.models.embedders import load_embedder
        from rag_assets.models.openai_embedder import EmbeddingsRoute
        from rag_assets.models.openai_endpoint import Endpoint

        chosen = self.settings.embedding
        key = chosen.api_key.get_secret_value() if chosen.api_key else None
        route = EmbeddingsRoute(
            Endpoint(chosen.base_url, key), chosen.query_prefix, chosen.passage_prefix, chosen.window_tokens
        )
        return load_embedder(chosen.provider, chosen.model, chosen.threads, self.path / "models", route)

    @cached_property
    def reranker(self) -> "Reranker | None":
        """The reranker that the settings name, if any."""
        if not self.settings.reranking.model:
            return None
        from rag_assets.models.cross_encoder import CrossEncoderReranker

        return CrossEncoderReranker(self.settings.reranking.model, self.settings.embedding.threads)

    @property
    def registered_sources(self) -> Path:
        """File of the sources that were named on the command line."""
        return self.path / "sources.json"

    def sources(self) -> tuple[Source, ...]:
        """The sources of the settings and the registered ones."""
        return read_sources(self.settings.sources, self.registered_sources)

    def forgotten_sources(self) -> frozenset[str]:
        """Names of the sources whose documents the next run removes."""
        return forgotten_sources(self.settings.sources, self.registered_sources)

    def stored_counts(self) -> dict[str, int]:
        """Number of stored documents by source name."""
        return dict(Counter(str(state["source_name"]) for state in stored_documents(self.lake).values()))

    @property
    def excluded_paths(self) -> frozenset[str]:
        """Real paths of the folders that no source brings in: the home itself, and the Dagster instance."""
        folders = (str(self.path), os.environ.get("DAGSTER_HOME"))
        return frozenset(os.path.realpath(folder) for folder in folders if folder)

    def listing(self, *, allow_empty: bool = False) -> Listing:
        """What the sources hold now."""
        return list_sources(
            self.sources(),
            self.settings.source.include,
            self.settings.source.exclude,
            self.stored_counts(),
            allow_empty=allow_empty,
            forgotten=self.forgotten_sources(),
            excluded_paths=self.excluded_paths,
        )

    def changes(self, listing: Listing) -> Changes:
        """What an index run would do."""
        from rag_assets.store.publish import stale_syncs

        numbers = self.snapshots.numbers()
        newest = self.snapshots.load(numbers[-1]) if numbers else None
        found = find_changes(self.lake, listing, newest, self.pipeline)
        stale = {shard for _, shard in stale_syncs(self.lake, self.vectors, self.embedder.name)}
        return replace(found, unfinished_shards=tuple(sorted({*found.unfinished_shards, *stale})))

    @cached_property
    def pipeline(self) -> str:
        """Digest of the code and settings that stored tables depend on."""
        from rag_assets.enrich.summary_tables import summary_fingerprint
        from rag_assets.parsing.documents import parsing_fingerprint
        from rag_assets.store.serving import serving_fingerprint

        return digest(
            parsing_fingerprint(),
            *astuple(self.parsing_limits),
            self.chunking_fingerprint,
            summary_fingerprint(),
            *astuple(self.summary_lengths),
            self.language_model_name,
            serving_fingerprint(),
        )

    def unfinished_steps(self) -> list[str]:
        """Shards of tables whose rows were not computed from what the step before them stored last, in words."""
        from rag_assets.enrich.summary_tables import wanted_file_summaries, wanted_page_summaries
        from rag_assets.parsing.chunks import wanted_chunks
        from rag_assets.store.publish import unfinished_syncs

        lengths, model = self.summary_lengths, self.language_model_name
        unfinished = []
        for shard in self.lake.latest(DOCUMENTS):
            parsed = self.lake.inputs(BLOCKS, shard)
            expected = {
                PAGES: parsed,
                PARSE_FAILURES: parsed,
                CHUNKS: wanted_chunks(self.lake, shard, self.chunking_fingerprint),
                PAGE_SUMMARIES: wanted_page_summaries(self.lake, shard, lengths, model),
                FILE_SUMMARIES: wanted_file_summaries(self.lake, shard, lengths, model),
            }
            found = {table: finished(self.lake.inputs(table, shard)) for table in expected}
            unfinished += [f"{table.name}, shard {shard}" for table, keys in expected.items() if found[table] != keys]
            if self.lake.inputs(DOCUMENTS, shard).keys() != parsed.keys():
                unfinished.append(f"{DOCUMENTS.name}, shard {shard}")
        return unfinished + unfinished_syncs(self.lake, self.vectors, self.embedder.name)

    @property
    def summary_lengths(self) -> "SummaryLengths":
        """Lengths of summaries."""
        from rag_assets.enrich.summary_dialogues import SummaryLengths

        chosen = self.settings.enrichment
        return SummaryLengths(
            chosen.file_summary_chars, chosen.page_file_chars, chosen.page_summary_chars, chosen.read_tokens
        )

    @cached_property
    def answers(self) -> "AnswerStore":
        """Answers of language models that were paid for."""
        from rag_assets.models.answers import AnswerStore

        return AnswerStore(self.path / "models" / "answers")

    def ledger(self, run_id: str | None = None) -> "Ledger":
        """Where calls of language models are written down.

        Args:
            run_id: Dagster run that asks; None outside a run.
        """
        from rag_assets.models.ledger import Ledger

        return Ledger(self.lake, self.answers, self.path / "models" / "journal", run_id)

    @property
    def model_choice(self) -> "ModelChoice":
        """The language model that the settings name."""
        from rag_assets.models.language_models import ModelChoice

        chosen = self.settings.language_model
        return ModelChoice(
            chosen.provider,
            chosen.model,
            chosen.base_url,
            chosen.api_key.get_secret_value() if chosen.api_key else None,
            chosen.catalogue,
            chosen.context_tokens,
            chosen.concurrency,
            chosen.requests_per_minute,
            chosen.tokens_per_minute,
            chosen.attempts,
            chosen.timeout_seconds,
            chosen.batch,
            chosen.batch_from,
            chosen.batch_requests,
            chosen.batch_poll_seconds,
        )

    @property
    def language_model_name(self) -> str:
        """Name of the language model that the settings name; asks nobody."""
        return self.model_choice.name

    def language_model(self, run_id: str | None = None) -> "LanguageModel":
        """The language model that the settings name.

        Args:
            run_id: Dagster run that asks; None outside a run.
        """
        from rag_assets.models.budget import Budget
        from rag_assets.models.language_models import load_language_model

        chosen, ledger = self.settings.language_model, self.ledger(run_id)
        budget = Budget(self.path / "models" / "budget", ledger, chosen.budget_usd, chosen.run_budget_usd)
        return load_language_model(self.model_choice, self.path / "models", ledger, budget)

    def model_steps(self, model: "LanguageModel") -> dict[str, ModelStep]:
        """The steps of indexing that ask a language model, by their table and in their order."""
        from rag_assets.enrich.summary_tables import update_file_summaries, update_page_summaries

        lengths = self.summary_lengths
        return {
            PAGE_SUMMARIES.name: lambda lake, shards, progress: update_page_summaries(
                lake, shards, model, lengths, progress
            ),
            FILE_SUMMARIES.name: lambda lake, shards, progress: update_file_summaries(
                lake, shards, model, lengths, progress
            ),
        }

    @cached_property
    def chunking_fingerprint(self) -> str:
        """Digest of the code and settings that chunks depend on."""
        from rag_assets.parsing.chunks import chunking_fingerprint

        chunking = self.settings.chunking
        return chunking_fingerprint(self.embedder.name, chunking.size_tokens, chunking.overlap_share)

    @property
    def parsing_limits(self) -> "ParsingLimits":
        """Limits within which one file is parsed."""
        from rag_assets.parsing.parse import ParsingLimits

        chosen = self.settings.parsing
        return ParsingLimits(
            timeout_seconds=chosen.timeout_seconds,
            memory_bytes=chosen.memory_bytes,
            file_bytes=chosen.file_bytes,
            expanded_bytes=chosen.expanded_bytes,
            archive_entries=chosen.archive_entries,
            cells=chosen.cells,
            pages=chosen.pages,
            nesting_depth=chosen.nesting_depth,
            ocr_seconds_per_page=chosen.ocr_seconds_per_page,
            ocr_seconds=chosen.ocr_seconds,
            unstructured_formats=chosen.unstructured_formats,
        )

    @property
    def parsing_passwords(self) -> tuple[str, ...]:
        """Passwords to try on encrypted files."""
        return tuple(password.get_secret_value() for password in self.settings.parsing.passwords)

    @property
    def parsing_workers(self) -> int:
        """Parsing processes."""
        return self.settings.parsing.workers or len(os.sched_getaffinity(0))

    def knowledge_base(self) -> "KnowledgeBase":
        """The published version, for searching.

        Raises:
            QueryError: Nothing is published yet, or it was indexed with another embedder.
        """
        from rag_assets.query import KnowledgeBase

        snapshot = self.snapshots.current()
        if snapshot is None:
            raise QueryError(f"nothing is indexed in {self.path}; run `rag-assets index FOLDER` first")
        if snapshot.embedder != self.embedder.name:
            raise QueryError(
                f"{self.path} was indexed with {snapshot.embedder}, the settings name {self.embedder.name}; "
                "run `rag-assets index`"
            )
        candidates = self.settings.reranking.candidates
        return KnowledgeBase(self.vectors, self.embedder, snapshot.vector_tables, self.reranker, candidates)

    @cached_property
    def _file_lock(self) -> "FileLock":
        from filelock import FileLock

        return FileLock(self.path / "index.lock")

    def lock(self) -> AbstractContextManager[object]:
        """Held while indexing from the command line, so that two runs do not race; may be taken again by its holder.

        Raises:
            StoreError: Another process holds it.
        """
        from filelock import Timeout

        self.path.mkdir(parents=True, exist_ok=True)
        try:
            return self._file_lock.acquire(timeout=0)
        except Timeout as error:
            raise StoreError(f"another `rag-assets index` is running on {self.path}") from error
