"""The options of each step, made from the settings; a step takes its own values and knows no settings."""

from dataclasses import fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from rag_assets.pipeline.settings import Settings

if TYPE_CHECKING:
    from rag_assets.enrich.facets.taxonomy import Taxonomy
    from rag_assets.enrich.knowledge.tables import KnowledgeOptions
    from rag_assets.enrich.questions.tables import QuestionRules
    from rag_assets.enrich.summaries.tables import SummaryOptions
    from rag_assets.graph.communities.leiden import LeidenOptions
    from rag_assets.graph.entities.tables import EntityOptions
    from rag_assets.graph.entity_types import EntityTypes
    from rag_assets.graph.mentions.dialogues import MentionOptions
    from rag_assets.graph.reports.tables import ReportOptions
    from rag_assets.models.language_models import ModelChoice
    from rag_assets.models.openai.embedder import EmbeddingsRoute
    from rag_assets.parsing.limits import ParsingLimits
    from rag_assets.parsing.passwords import Passwords
    from rag_assets.query import GlobalOptions, ReaderOptions, SearchDefaults

_REPORTED_ENTITIES = 4  # of a community; what is known of a smaller one stands in the report on the one that holds it


class StepOptions:
    """Options of the steps."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    @property
    def parsing(self) -> "ParsingLimits":
        """Limits within which one file is parsed."""
        from rag_assets.parsing.limits import ParsingLimits

        return ParsingLimits(**_values(self._settings.parsing, ParsingLimits))

    @property
    def passwords(self) -> "Passwords":
        """What is tried on encrypted files."""
        from rag_assets.parsing.passwords import Passwords

        values = (each.get_secret_value() for each in self._settings.parsing.passwords)
        return Passwords(tuple(values), self._settings.home.expanduser() / "passwords.key")

    @property
    def summaries(self) -> "SummaryOptions":
        """How summaries are made."""
        from rag_assets.enrich.summaries.tables import SummaryOptions

        chosen = self._settings.enrichment
        return SummaryOptions(
            chosen.file_summary_chars,
            chosen.page_file_chars,
            chosen.page_summary_chars,
            chosen.read_tokens,
            chosen.boilerplate_documents,
        )

    @property
    def questions(self) -> "QuestionRules":
        """How questions are made."""
        from rag_assets.enrich.questions.extraction import QuestionCounts
        from rag_assets.enrich.questions.tables import QuestionRules

        chosen = self._settings.enrichment
        counts = QuestionCounts(chosen.questions_least, chosen.questions_most, chosen.question_tokens)
        return QuestionRules(counts, chosen.question_grade, chosen.read_tokens, chosen.boilerplate_documents)

    @cached_property
    def taxonomy(self) -> "Taxonomy":
        """The facets that documents are classified by; SettingsError where their file cannot be read."""
        from rag_assets.enrich.facets.taxonomy import load_taxonomy

        return load_taxonomy(self._settings.enrichment.taxonomy)

    @cached_property
    def entity_types(self) -> "EntityTypes":
        """Types of entities; SettingsError where their file cannot be read."""
        from rag_assets.graph.entity_types import load_types

        return load_types(self._settings.graph.types_toml)

    @property
    def knowledge(self) -> "KnowledgeOptions":
        """How the questions of a facet value are summarised."""
        from rag_assets.enrich.knowledge.tables import KnowledgeOptions

        chosen = self._settings.enrichment
        return KnowledgeOptions(
            chosen.knowledge_documents,
            chosen.knowledge_questions,
            chosen.knowledge_combinations,
            chosen.knowledge_terms,
            chosen.knowledge_chars,
            chosen.read_tokens,
            chosen.remove_duplicates,
        )

    @property
    def mentions(self) -> "MentionOptions":
        """How entities are taken from pages."""
        from rag_assets.graph.mentions.dialogues import MentionOptions

        chosen = self._settings.graph
        return MentionOptions(chosen.window_tokens, chosen.overlap_tokens, chosen.gleanings, chosen.claims)

    @property
    def entities(self) -> "EntityOptions":
        """How entities are made from mentions."""
        from rag_assets.graph.entities.resolution import ResolutionOptions
        from rag_assets.graph.entities.tables import EntityOptions

        chosen = self._settings.graph
        resolution = ResolutionOptions(chosen.merge_similarity, chosen.merge_questions)
        return EntityOptions(chosen.description_chars, resolution, chosen.merges_csv)

    @property
    def leiden(self) -> "LeidenOptions":
        """How communities are found."""
        from rag_assets.graph.communities.leiden import LeidenOptions, Quality

        chosen = self._settings.graph
        return LeidenOptions(
            Quality(chosen.quality), chosen.resolution, chosen.community_size, chosen.seed, joined_from=300, drift=0.02
        )

    @property
    def reports(self) -> "ReportOptions":
        """How community reports are written."""
        from rag_assets.graph.reports.tables import ReportOptions

        chosen = self._settings.graph
        return ReportOptions(chosen.report_context_tokens, chosen.report_tokens, _REPORTED_ENTITIES)

    @property
    def reader(self) -> "ReaderOptions":
        """How questions are answered from passages."""
        from rag_assets.query import ReaderOptions

        chosen = self._settings.search
        return ReaderOptions(
            chosen.answer_context_tokens, chosen.answer_tokens, chosen.map_reduce_chunks, chosen.global_seed
        )

    @property
    def global_answers(self) -> "GlobalOptions":
        """How questions are answered from community reports."""
        from rag_assets.query import GlobalOptions

        chosen = self._settings.search
        return GlobalOptions(chosen.global_context_tokens, chosen.global_answer_tokens, chosen.global_seed)

    @property
    def search_defaults(self) -> "SearchDefaults":
        """What is taken where a search or a question does not say."""
        from rag_assets.query import LevelChoice, SearchDefaults

        chosen = self._settings.search
        levels = LevelChoice(chosen.global_level, chosen.global_dynamic)
        return SearchDefaults(chosen.mode, chosen.ask_mode, chosen.k, levels)

    @property
    def embeddings_route(self) -> "EmbeddingsRoute":
        """How an embedder behind a server is asked."""
        from rag_assets.models.openai.embedder import EmbeddingsRoute
        from rag_assets.models.openai.endpoint import Endpoint

        chosen = self._settings.embedding
        endpoint = Endpoint(chosen.base_url, chosen.api_key.get_secret_value() if chosen.api_key else None)
        return EmbeddingsRoute(endpoint, chosen.query_prefix, chosen.passage_prefix, chosen.window_tokens)

    @property
    def language_model(self) -> "ModelChoice":
        """The language model, and how it is called."""
        from rag_assets.models.language_models import ModelChoice
        from rag_assets.models.structured import Repeats

        chosen = self._settings.language_model
        repeats = Repeats(chosen.empty_repeats, chosen.refusal_repeats, chosen.broken_repeats, chosen.repeat_runs)
        key = chosen.api_key.get_secret_value() if chosen.api_key else None
        return ModelChoice(**{**_values(chosen, ModelChoice), "api_key": key}, repeats=repeats)


def _values(section: BaseModel, options: type[Any]) -> dict[str, Any]:
    """The settings of a section that options have by the same names."""
    named = (each.name for each in fields(options))
    return {name: getattr(section, name) for name in named if name in type(section).model_fields}
