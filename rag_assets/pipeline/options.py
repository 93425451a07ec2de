"""The options of each step, made from the settings; a step takes its own values and knows no settings."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from rag_assets.contracts.errors import SettingsError
from rag_assets.pipeline.settings import Settings

if TYPE_CHECKING:
    from rag_assets.enrich.facets.taxonomy import Taxonomy
    from rag_assets.enrich.knowledge.tables import KnowledgeOptions
    from rag_assets.enrich.questions.tables import QuestionRules
    from rag_assets.enrich.summaries.tables import SummaryOptions
    from rag_assets.graph.communities.leiden import LeidenOptions
    from rag_assets.graph.entities.resolution import Overrides
    from rag_assets.graph.entities.tables import EntityOptions
    from rag_assets.graph.entity_types import EntityTypes
    from rag_assets.graph.mentions.dialogues import MentionOptions
    from rag_assets.graph.reports.tables import ReportOptions
    from rag_assets.models.language_models import ModelChoice
    from rag_assets.models.openai.embedder import EmbeddingsRoute
    from rag_assets.parsing.limits import ParsingLimits
    from rag_assets.parsing.passwords import Passwords
    from rag_assets.query import ReaderOptions, SearchDefaults

_REPORTED_ENTITIES = 4  # of a community; what is known of a smaller one stands in the report on the one that holds it


class StepOptions:
    """Options of the steps."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def check_files(self) -> None:
        """Read the files that settings name, before they are stored.

        Raises:
            SettingsError: One cannot be read; the message names the setting.
        """
        _ = self.taxonomy
        if self._settings.graph.enabled:
            _ = self.entity_types, self.merges

    @contextmanager
    def _reading(self, section: str, name: str) -> Iterator[None]:
        """Name the setting in what is wrong with its file, and say how to take it out where it is stored."""
        settings: BaseModel = getattr(self._settings, section)
        value, default = getattr(settings, name), type(settings).model_fields[name].default
        try:
            yield
        except SettingsError as error:
            problem = f"there is no file {value}" if isinstance(error.__cause__, FileNotFoundError) else error
            variable = f"RAG_{section}__{name}".upper()
            raise SettingsError(
                f"{section}.{name}: {problem}; correct it or take it out; "
                f"`{variable}={default or ''} rag-assets index` takes out a stored one"
            ) from error

    @property
    def parsing(self) -> "ParsingLimits":
        """Limits within which one file is parsed."""
        from rag_assets.parsing.limits import ParsingLimits

        return ParsingLimits(**_values(self._settings.parsing, ParsingLimits))

    @property
    def passwords(self) -> "Passwords":
        """What is tried on encrypted files."""
        from rag_assets.parsing.passwords import Passwords

        values = (password.get_secret_value() for password in self._settings.parsing.passwords)
        return Passwords(tuple(values), self._settings.home.expanduser() / "passwords.key")

    @property
    def summaries(self) -> "SummaryOptions":
        """How summaries are made."""
        from rag_assets.enrich.summaries.tables import SummaryOptions

        settings = self._settings.enrichment
        return SummaryOptions(
            settings.file_summary_chars,
            settings.page_file_chars,
            settings.page_summary_chars,
            settings.read_tokens,
            settings.boilerplate_documents,
        )

    @property
    def questions(self) -> "QuestionRules":
        """How questions are made."""
        from rag_assets.enrich.questions.extraction import QuestionCounts
        from rag_assets.enrich.questions.tables import QuestionRules

        settings = self._settings.enrichment
        counts = QuestionCounts(settings.questions_least, settings.questions_most, settings.question_tokens)
        return QuestionRules(counts, settings.question_grade, settings.read_tokens, settings.boilerplate_documents)

    @cached_property
    def taxonomy(self) -> "Taxonomy":
        """The facets that documents are classified by; SettingsError where their file cannot be read."""
        from rag_assets.enrich.facets.taxonomy import load_taxonomy

        with self._reading("enrichment", "taxonomy"):
            return load_taxonomy(self._settings.enrichment.taxonomy)

    @cached_property
    def entity_types(self) -> "EntityTypes":
        """Types of entities; SettingsError where their file cannot be read."""
        from rag_assets.graph.entity_types import load_types

        with self._reading("graph", "types_toml"):
            return load_types(self._settings.graph.types_toml)

    @property
    def merges(self) -> "Overrides":
        """Which names a person says are one; SettingsError where their file cannot be read."""
        from rag_assets.graph.entities.resolution import read_overrides

        with self._reading("graph", "merges_csv"):
            return read_overrides(self._settings.graph.merges_csv)

    @property
    def knowledge(self) -> "KnowledgeOptions":
        """How the questions of a facet value are summarised."""
        from rag_assets.enrich.knowledge.tables import KnowledgeOptions

        settings = self._settings.enrichment
        return KnowledgeOptions(
            settings.knowledge_documents,
            settings.knowledge_questions,
            settings.knowledge_combinations,
            settings.knowledge_terms,
            settings.knowledge_chars,
            settings.read_tokens,
            settings.remove_duplicates,
        )

    @property
    def mentions(self) -> "MentionOptions":
        """How entities are taken from pages."""
        from rag_assets.graph.mentions.dialogues import MentionOptions

        settings = self._settings.graph
        return MentionOptions(settings.window_tokens, settings.overlap_tokens, settings.gleanings, settings.claims)

    @property
    def entities(self) -> "EntityOptions":
        """How entities are made from mentions."""
        from rag_assets.graph.entities.resolution import ResolutionOptions
        from rag_assets.graph.entities.tables import EntityOptions

        settings = self._settings.graph
        resolution = ResolutionOptions(settings.merge_similarity, settings.merge_questions)
        return EntityOptions(settings.description_chars, resolution, settings.merges_csv)

    @property
    def leiden(self) -> "LeidenOptions":
        """How communities are found."""
        from rag_assets.graph.communities.leiden import LeidenOptions, Quality

        settings = self._settings.graph
        return LeidenOptions(
            Quality(settings.quality),
            settings.resolution,
            settings.community_size,
            settings.seed,
            joined_from=300,
            drift=0.02,
        )

    @property
    def reports(self) -> "ReportOptions":
        """How community reports are written."""
        from rag_assets.graph.reports.tables import ReportOptions

        settings = self._settings.graph
        return ReportOptions(settings.report_context_tokens, settings.report_tokens, _REPORTED_ENTITIES)

    @property
    def reader(self) -> "ReaderOptions":
        """How questions are answered from passages."""
        from rag_assets.query import ReaderOptions

        settings = self._settings.search
        return ReaderOptions(
            settings.answer_context_tokens, settings.answer_tokens, settings.map_reduce_chunks, settings.global_seed
        )

    @property
    def global_answers(self) -> "ReaderOptions":
        """How questions are answered from community reports."""
        settings = self._settings.search
        return replace(
            self.reader, context_tokens=settings.global_context_tokens, answer_tokens=settings.global_answer_tokens
        )

    @property
    def search_defaults(self) -> "SearchDefaults":
        """What is taken where a search or a question does not say."""
        from rag_assets.query import LevelChoice, SearchDefaults

        settings = self._settings.search
        levels = LevelChoice(settings.global_level, settings.global_dynamic)
        return SearchDefaults(settings.mode, settings.ask_mode, settings.k, levels)

    @property
    def embeddings_route(self) -> "EmbeddingsRoute":
        """How an embedder behind a server is asked."""
        from rag_assets.models.openai.embedder import EmbeddingsRoute
        from rag_assets.models.openai.endpoint import Endpoint

        settings = self._settings.embedding
        endpoint = Endpoint(settings.base_url, settings.api_key.get_secret_value() if settings.api_key else None)
        return EmbeddingsRoute(endpoint, settings.query_prefix, settings.passage_prefix, settings.window_tokens)

    @property
    def language_model(self) -> "ModelChoice":
        """The language model, and how it is called."""
        from rag_assets.models.language_models import ModelChoice
        from rag_assets.models.structured import Repeats

        settings = self._settings.language_model
        repeats = Repeats(
            settings.empty_repeats, settings.refusal_repeats, settings.broken_repeats, settings.repeat_runs
        )
        key = settings.api_key.get_secret_value() if settings.api_key else None
        return ModelChoice(**{**_values(settings, ModelChoice), "api_key": key}, repeats=repeats)


def _values(section: BaseModel, options: type[Any]) -> dict[str, Any]:
    """The settings of a section that options have by the same names."""
    names = (field.name for field in fields(options))
    return {name: getattr(section, name) for name in names if name in type(section).model_fields}
