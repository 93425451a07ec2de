"""One knowledge base on disk: its places, its settings, and the stores and models that every step shares.

What is published is opened in `rag_assets.pipeline.opening`, language models in `rag_assets.pipeline.language_models`.

```
<RAG_HOME>/
  lake/          stored tables, Parquet            (rag_assets.store.lake)
  vectors/       serving tables, LanceDB           (rag_assets.store.vectors.store)
  snapshots/     published versions                (rag_assets.store.snapshots)
  published/     their tables, for other programs  (rag_assets.store.published_tables)
  learned/       what was learned on the collection (rag_assets.training.adoption)
  models/        the embedder and what scores answers, exported once
  state.db       answers and calls of language models, batches, rates, budget (rag_assets.models.accounts.database)
  state.id       names it to the PostgreSQL database that takes the place of state.db
  sources.json   sources named on the command line
  passwords.key  of the digests of passwords that were tried (rag_assets.parsing.passwords)
  settings.json  settings that it was built with   (rag_assets.pipeline.stored_settings)
  evaluation/    clicks on the web page; its draft questions where there is no question set (rag_assets.evaluation)
  verified.json  when files were last found intact (rag_assets.store.damage)
  damaged/       what was taken away because it was damaged (rag_assets.store.damage)
```
"""

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel

from rag_assets.pipeline.options import StepOptions
from rag_assets.pipeline.settings import Settings
from rag_assets.pipeline.stored_settings import (
    Contradiction,
    contradiction_error,
    find_contradictions,
    holds_graph,
    settings_in_force,
    store_settings,
)
from rag_assets.sources.changes import Listing, forgotten_sources, list_sources, read_sources, stored_counts
from rag_assets.sources.listing import Source
from rag_assets.store.files import Lock
from rag_assets.store.lake import Lake
from rag_assets.store.published_tables import PublishedTables
from rag_assets.store.snapshots import Snapshots

if TYPE_CHECKING:
    from rag_assets.contracts.ports import AnswerScorer, Embedder
    from rag_assets.models.accounts.answers import AnswerStore
    from rag_assets.models.accounts.database import StateDatabase
    from rag_assets.models.accounts.ledger import Ledger
    from rag_assets.store.vectors.store import VectorStore

_STATE_FILE = "state.db"
_MARKS = ("lake", "snapshots", "vectors", _STATE_FILE, "state.id")  # what else tells a knowledge base
MODELS = "models"  # folder of exported models


class Home:
    """A knowledge base and its settings.

    Attributes:
        path: Its folder, `settings.home`.
        stated: The settings as they were given.
        settings: The settings in force: what is not stated is as it was when the knowledge base was built.
        settings_path: File of the settings that it was built with.
        registered_sources: File of the sources that were named on the command line.

    Raises:
        SettingsError: The stored settings are damaged.
    """

    def __init__(self, settings: Settings) -> None:
        self.stated = settings
        self.path = settings.home.expanduser().absolute()
        self.settings_path, self.registered_sources = self.path / "settings.json", self.path / "sources.json"
        self._lock = Lock(self.path / "index.lock", f"another run is writing to {self.path}")
        self.lake = Lake(self.path / "lake")
        self.snapshots = Snapshots(self.path / "snapshots", PublishedTables(self.path / "published", self.lake))
        self.settings = settings_in_force(settings, self.settings_path, self.lake)
        self.options = StepOptions(self.settings)

    @property
    def exists(self) -> bool:
        """Whether there is a knowledge base in the folder, be it one of which nothing is published yet."""
        marks = (self.settings_path, self.registered_sources, *(self.path / name for name in _MARKS))
        return any(mark.exists() for mark in marks)

    @property
    def holds_graph(self) -> bool:
        """Whether an entity graph is stored, whole or in part."""
        return holds_graph(self.lake)

    def contradictions(self) -> tuple[Contradiction, ...]:
        """Stated settings that would delete or compute anew what is stored; none before anything is."""
        return find_contradictions(self.stated, self.settings, self.settings_path, self.lake)

    def check_settings(self) -> None:
        """Refuse, by a SettingsError, settings that contradict what is stored, before anything is destroyed."""
        if contradictions := self.contradictions():
            raise contradiction_error(contradictions)

    def store_settings(self) -> None:
        """Store the settings in force as those that the knowledge base is built with.

        Raises:
            SettingsError: A file that they name cannot be read; nothing is stored.
        """
        self.options.check_files()
        store_settings(self.settings_path, self.settings)

    def having(self, section: str, **values: object) -> "Home":
        """The same knowledge base with other settings of a section, as they are: nothing is validated."""
        section_settings: BaseModel = getattr(self.settings, section)
        return Home(self.settings.model_copy(update={section: section_settings.model_copy(update=values)}))

    @cached_property
    def vectors(self) -> "VectorStore":
        """The serving tables."""
        from rag_assets.store.vectors.store import VectorStore

        return VectorStore(str(self.path / "vectors"))

    @cached_property
    def embedder(self) -> "Embedder":
        """The embedder that the settings name."""
        from rag_assets.models.embedding.embedders import load_embedder

        settings, route = self.settings.embedding, self.options.embeddings_route
        return load_embedder(settings.provider, settings.model, settings.threads, self.path / MODELS, route)

    @property
    def answer_scorer(self) -> "AnswerScorer":
        """Tells which statements answer a question, whatever the embedder; the model is read at first use."""
        from rag_assets.models.embedding.answer_scorer import shared_scorer
        from rag_assets.models.embedding.embedders import shared_e5

        folder = (self.path / MODELS).resolve()
        return shared_scorer(shared_e5(folder, self.settings.embedding.threads), folder)

    def sources(self) -> tuple[Source, ...]:
        """The sources of the settings and the registered ones."""
        return read_sources(self.settings.sources, self.registered_sources)

    @property
    def excluded_paths(self) -> frozenset[str]:
        """Real paths of the folders that no source brings in: the home itself, and the Dagster instance."""
        folders = (str(self.path), os.environ.get("DAGSTER_HOME"))
        return frozenset(os.path.realpath(folder) for folder in folders if folder)

    def listing(
        self, progress: Callable[[int, int], None] = lambda _done, _total: None, *, allow_empty: bool = False
    ) -> Listing:
        """What the sources hold now.

        Args:
            progress: Told the number of files that were listed, as it grows; the total is 0.
            allow_empty: Believe a source that suddenly holds no file.
        """
        settings = self.settings.source
        return list_sources(
            self.sources(),
            settings.include,
            settings.exclude,
            stored_counts(self.lake),
            allow_empty=allow_empty,
            forgotten=forgotten_sources(self.settings.sources, self.registered_sources),
            excluded_paths=self.excluded_paths,
            progress=progress,
        )

    @cached_property
    def answers(self) -> "AnswerStore":
        """Answers of language models that were paid for."""
        from rag_assets.models.accounts.answers import AnswerStore

        return AnswerStore(self.state)

    @property
    def state_file(self) -> Path | None:
        """File of the state database; None where it is on a server."""
        return self.path / _STATE_FILE if self.settings.state_url is None else None

    @cached_property
    def state(self) -> "StateDatabase":
        """What the processes that call language models share."""
        from rag_assets.models.accounts.database import StateDatabase

        url = self.settings.state_url
        location = self.path / _STATE_FILE if url is None else url.get_secret_value()
        return StateDatabase(location, self.path / "state.id")

    def ledger(self, run_id: str | None = None) -> "Ledger":
        """Where calls of language models are written down, by a Dagster run or outside one."""
        from rag_assets.models.accounts.ledger import Ledger

        return Ledger(self.lake, self.state, run_id)

    @property
    def language_model_name(self) -> str:
        """Name of the language model that the settings name; asks nobody."""
        return self.options.language_model.name

    @property
    def graph_model_name(self) -> str:
        """Name of the language model that writes the entity graph; `extractive` where none does."""
        graph = self.settings.graph
        return self.language_model_name if graph.enabled and graph.language_model else "extractive"

    def lock(self) -> AbstractContextManager[object]:
        """Held by one process while it indexes; may be taken again by its holder. StoreError where another holds it."""
        return self._lock.hold(0)
