"""One knowledge base on disk: where its parts lie, and the one place where stores and models are built from settings.

```
<RAG_HOME>/
  lake/          stored tables, Parquet            (rag_assets.store.lake)
  vectors/       serving tables, LanceDB           (rag_assets.store.vectors.store)
  snapshots/     published versions                (rag_assets.store.snapshots)
  published/     their tables, for other programs  (rag_assets.store.published_tables)
  models/        the embedder, exported once; answers of language models, their journals, batches, limits and budget
  sources.json   sources named on the command line
  settings.json  settings that it was built with   (rag_assets.pipeline.stored_settings)
  verified.json  when files were last found intact (rag_assets.store.checksums)
  damaged/       what was taken away because it was damaged (rag_assets.store.damage)
```
"""

import logging
import math
import os
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from rag_assets.contracts.errors import QueryError, StoreError
from rag_assets.contracts.tables import (
    DOCUMENTS,
    ENTITIES,
    ENTITY_MENTIONS,
)
from rag_assets.pipeline.options import StepOptions
from rag_assets.pipeline.settings import Settings
from rag_assets.pipeline.stored_settings import (
    GRAPH_ENABLED,
    Contradiction,
    Values,
    contradiction_error,
    find_contradictions,
    read_stored,
    settings_in_force,
    store_settings,
)
from rag_assets.sources.changes import (
    Listing,
    forgotten_sources,
    list_sources,
    read_sources,
    stored_documents,
)
from rag_assets.sources.listing import Source
from rag_assets.store.lake import Lake
from rag_assets.store.published_tables import PublishedTables
from rag_assets.store.snapshots import Snapshot, Snapshots

if TYPE_CHECKING:
    import pyarrow as pa
    from filelock import FileLock

    from rag_assets.contracts.ports import Embedder, LanguageModel, Reranker, Rewriter
    from rag_assets.enrich.facets.taxonomy import Taxonomy
    from rag_assets.graph.entity_types import EntityTypes
    from rag_assets.models.accounts.answers import AnswerStore
    from rag_assets.models.accounts.ledger import Ledger
    from rag_assets.models.language_models import ModelChoice
    from rag_assets.query import HydeOptions, KnowledgeBase
    from rag_assets.store.vectors.store import VectorStore


_log = logging.getLogger(__name__)

Progress: TypeAlias = Callable[[int, int], None]
ModelStep: TypeAlias = Callable[[Lake, Sequence[str], Progress], object]


class Home:
    """A knowledge base and its settings.

    Args:
        settings: All settings; `settings.home` is its folder.

    Attributes:
        path: Its folder.
        stated: The settings as they were given.
        settings: The settings in force: what is not stated is as it was when the knowledge base was built.

    Raises:
        SettingsError: The stored settings are damaged.
    """

    def __init__(self, settings: Settings) -> None:
        self.stated = settings
        self.path = settings.home.expanduser().absolute()
        self.settings = settings_in_force(settings, self._built_with(), self.settings_path)
        self.options = StepOptions(self.settings)
        self._schemas_fit = False

    @property
    def settings_path(self) -> Path:
        """File of the settings that it was built with."""
        return self.path / "settings.json"

    def _built_with(self) -> Values:
        """The stored settings; where they are missing, what the stored tables tell of them."""
        stored = read_stored(self.settings_path)
        return ({"graph": {"enabled": True}} if self.holds_graph else {}) if stored is None else stored

    @property
    def holds_graph(self) -> bool:
        """Whether an entity graph is stored, whole or in part."""
        tables = (ENTITIES, ENTITY_MENTIONS)
        return any(self.lake.row_count(table, shard) for table in tables for shard in self.lake.latest(table))

    def contradictions(self) -> tuple[Contradiction, ...]:
        """Stated settings that would delete or compute anew what is stored; none before anything is."""
        if not self.lake.latest(DOCUMENTS):
            return ()
        found = find_contradictions(self.stated, self.settings, self._built_with())
        return tuple(each for each in found if each.setting != GRAPH_ENABLED or self.holds_graph)

    def check_settings(self) -> None:
        """Refuse settings that contradict what is stored, before anything is destroyed.

        Raises:
            SettingsError: They do; the message names both values and what to say if that is meant.
        """
        if found := self.contradictions():
            raise contradiction_error(found)

    def store_settings(self) -> None:
        """Store the settings in force as those that the knowledge base is built with."""
        store_settings(self.settings_path, self.settings)

    def without_graph(self) -> "Home":
        """The same knowledge base with the entity graph switched off."""
        graph = self.settings.graph.model_copy(update={"enabled": False})
        return Home(self.settings.model_copy(update={"graph": graph}))

    @cached_property
    def lake(self) -> Lake:
        """The stored tables."""
        return Lake(self.path / "lake")

    @cached_property
    def snapshots(self) -> Snapshots:
        """The published versions."""
        return Snapshots(self.path / "snapshots", PublishedTables(self.path / "published", self.lake))

    @cached_property
    def vectors(self) -> "VectorStore":
        """The serving tables."""
        from rag_assets.store.vectors.store import VectorStore

        return VectorStore(str(self.path / "vectors"))

    @cached_property
    def embedder(self) -> "Embedder":
        """The embedder that the settings name."""
        from rag_assets.models.embedding.embedders import load_embedder
        from rag_assets.models.openai.embedder import EmbeddingsRoute
        from rag_assets.models.openai.endpoint import Endpoint

        chosen = self.settings.embedding
        key = chosen.api_key.get_secret_value() if chosen.api_key else None
        route = EmbeddingsRoute(
            Endpoint(chosen.base_url, key), chosen.query_prefix, chosen.passage_prefix, chosen.window_tokens
        )
        return load_embedder(chosen.provider, chosen.model, chosen.threads, self.path / "models", route)

    @cached_property
    def cached_embedder(self) -> "Embedder":
        """The embedder, with vectors of passages taken from those at hand and kept with them."""
        from rag_assets.store.vectors.store import CachedEmbedder

        return CachedEmbedder(self.embedder, self.vectors)

    @cached_property
    def reranker(self) -> "Reranker | None":
        """The reranker that the settings name, if any."""
        if not self.settings.reranking.model:
            return None
        from rag_assets.models.embedding.cross_encoder import CrossEncoderReranker

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

    def listing(self, progress: Progress = lambda _done, _total: None, *, allow_empty: bool = False) -> Listing:
        """What the sources hold now.

        Args:
            progress: Told the number of files that were listed, as it grows; the total is 0.
            allow_empty: Believe a source that suddenly holds no file.
        """
        return list_sources(
            self.sources(),
            self.settings.source.include,
            self.settings.source.exclude,
            self.stored_counts(),
            allow_empty=allow_empty,
            forgotten=self.forgotten_sources(),
            excluded_paths=self.excluded_paths,
            progress=progress,
        )

    @cached_property
    def answers(self) -> "AnswerStore":
        """Answers of language models that were paid for."""
        from rag_assets.models.accounts.answers import AnswerStore

        return AnswerStore(self.path / "models" / "answers")

    def ledger(self, run_id: str | None = None) -> "Ledger":
        """Where calls of language models are written down.

        Args:
            run_id: Dagster run that asks; None outside a run.
        """
        from rag_assets.models.accounts.ledger import Ledger

        return Ledger(self.lake, self.answers, self.path / "models" / "journal", run_id)

    def forget_unusable_answers(self, documents: Sequence[str]) -> None:
        """Remove stored answers on some documents that were of no use, so that the next run asks for them again.

        Raises:
            StoreError: The ledger cannot be read.
        """
        if self.language_model_name != "extractive" and (keys := self.ledger().unusable_keys(documents)):
            self.answers.prune(None, None, keys=keys)

    def read_calls(self, columns: Sequence[str]) -> "pa.Table":
        """Columns of all calls of language models so far, with `call_id`.

        Raises:
            StoreError: They cannot be read.
        """
        return self.ledger().rows(columns=columns)

    @property
    def model_choice(self) -> "ModelChoice":
        """The language model that the settings name."""
        from rag_assets.models.language_models import ModelChoice
        from rag_assets.models.structured import Repeats

        chosen = self.settings.language_model
        return ModelChoice(
            chosen.provider,
            chosen.model,
            chosen.base_url,
            chosen.api_key.get_secret_value() if chosen.api_key else None,
            chosen.catalogue,
            chosen.context_tokens,
            chosen.temperature,
            chosen.concurrency,
            chosen.requests_per_minute,
            chosen.tokens_per_minute,
            chosen.attempts,
            chosen.timeout_seconds,
            chosen.batch,
            chosen.batch_from,
            chosen.batch_requests,
            chosen.batch_poll_seconds,
            outage_seconds=chosen.outage_seconds,
            repeats=Repeats(chosen.empty_repeats, chosen.refusal_repeats, chosen.broken_repeats, chosen.repeat_runs),
        )

    @property
    def language_model_name(self) -> str:
        """Name of the language model that the settings name; asks nobody."""
        return self.model_choice.name

    def check_language_model(self) -> None:
        """Find out before work begins whether the settings fit, and there is a server where they say so.

        Raises:
            SettingsError: A budget is set, but no price is known, or the provider does not take what a step asks.
            ModelError: Nobody listens at the address of the server.
        """
        from rag_assets.models.language_models import check_price, check_reachable

        chosen = self.settings.language_model
        self._check_schemas()
        if chosen.budget_usd is not None or chosen.run_budget_usd is not None:
            check_price(self.model_choice)
        check_reachable(self.model_choice)

    def _check_schemas(self) -> None:
        """Find out, once, whether the provider takes the schemas of all answers.

        Raises:
            SettingsError: It does not.
        """
        if self._schemas_fit or self.language_model_name == "extractive":
            return
        from rag_assets.models.language_models import check_schemas
        from rag_assets.pipeline.rehearsal import rehearsed_requests

        entity_types = self.entity_types if self.settings.graph.enabled else None
        check_schemas(self.model_choice, rehearsed_requests(self.options, self.taxonomy, entity_types))
        self._schemas_fit = True

    def language_model(self, run_id: str | None = None, patience_seconds: float = math.inf) -> "LanguageModel":
        """The language model that the settings name.

        Args:
            run_id: Dagster run that asks; None outside a run.
            patience_seconds: How long a provider that cannot answer is tried, at most.

        Raises:
            SettingsError: The settings do not fit, or the provider does not take what a step of a run asks.
        """
        if run_id is not None:
            self._check_schemas()
        from rag_assets.models.accounts.budget import Budget
        from rag_assets.models.anthropic.batch_files import BatchFiles
        from rag_assets.models.language_models import BATCHES_FOLDER, load_language_model
        from rag_assets.models.structured import NO_REPEATS

        chosen, ledger, folder = self.settings.language_model, self.ledger(run_id), self.path / "models"
        batches_usd = BatchFiles(folder / BATCHES_FOLDER).price_usd
        budget = Budget(folder / "budget", ledger, chosen.budget_usd, chosen.run_budget_usd, batches_usd)
        choice = replace(self.model_choice, patience_seconds=patience_seconds)
        if run_id is None:  # a person waits for the answer to a query
            choice = replace(choice, repeats=NO_REPEATS)
        return load_language_model(choice, folder, ledger, budget)

    @cached_property
    def taxonomy(self) -> "Taxonomy":
        """The facets that documents are classified by.

        Raises:
            SettingsError: There is no such taxonomy, or its file holds something else.
        """
        from rag_assets.enrich.facets.taxonomy import load_taxonomy

        return load_taxonomy(self.settings.enrichment.taxonomy)

    @cached_property
    def entity_types(self) -> "EntityTypes":
        """Types of entities.

        Raises:
            SettingsError: The file of types cannot be read.
        """
        from rag_assets.graph.entity_types import load_types

        return load_types(self.settings.graph.types_toml)

    def readable_snapshot(self) -> Snapshot | None:
        """The version that readers see, or one that is intact where that is damaged, which is said; None for none.

        Raises:
            StoreError: Versions were published, and none can be read any more.
        """
        from rag_assets.store.damage import intact_version

        snapshot, problem = intact_version(self.snapshots)
        if problem and snapshot is None:
            raise StoreError(f"{self.path}: {problem}")
        if problem:
            _log.warning("%s", problem)
        return snapshot

    def knowledge_base(
        self,
        snapshot: Snapshot | None = None,
        *,
        hyde: "HydeOptions | None" = None,
        rewriter: "Rewriter | None" = None,
    ) -> "KnowledgeBase":
        """The published version, for searching.

        Args:
            snapshot: A version; None for the one that readers see.
            hyde: How mode `hyde` searches; None for the settings.
            rewriter: Rewrites in mode `rewrite`; None for the language model, or rules without one.

        Raises:
            QueryError: Nothing is published yet, or it was indexed with another embedder.
        """
        from rag_assets.query import KnowledgeBase, QueryModels, QueryOptions, StoredTables

        snapshot = snapshot or self.readable_snapshot()
        if snapshot is None:
            raise QueryError(f"nothing is indexed in {self.path}; run `rag-assets index FOLDER` first")
        if snapshot.embedder != self.embedder.name:
            raise QueryError(
                f"{self.path} was indexed with {snapshot.embedder}, the settings name {self.embedder.name}; "
                "run `rag-assets index`"
            )
        options = QueryOptions(
            self.options.search_defaults,
            self.options.reader,
            self.options.global_answers,
            hyde or self._hyde_options(),
            self.settings.reranking.candidates,
        )
        models = QueryModels(self._query_model(), rewriter, self.reranker)
        stored = StoredTables(self.lake, snapshot.tables)
        return KnowledgeBase(self.vectors, self.embedder, snapshot.vector_tables, options, stored, models)

    def _hyde_options(self) -> "HydeOptions":
        from rag_assets.query import Fusion, Generator, HydeOptions

        chosen = self.settings.search
        models = [model for name in chosen.hyde_models if (model := self._query_model(name)) is not None]
        generators = tuple(Generator(model, seed) for model in models for seed in range(chosen.hyde_passages))
        return HydeOptions(generators, chosen.hyde_passages, Fusion(chosen.hyde_fusion))

    def _query_model(self, name: str = "") -> "LanguageModel | None":
        """A language model for queries, which uses no batches and little patience; None where it does not write.

        Args:
            name: Another model at the same provider; empty for the one that the settings name.
        """
        if self.language_model_name == "extractive":
            return None
        own = self.settings.language_model
        chosen = own.model_copy(update={"batch": "never", "model": name or own.model})
        home = Home(self.settings.model_copy(update={"language_model": chosen}))
        return home.language_model(patience_seconds=self.settings.search.model_patience_seconds)

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
