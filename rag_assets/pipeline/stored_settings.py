"""The settings that a knowledge base was built with, stored in `<RAG_HOME>/settings.json`.

They decide which tables there are and which vectors they hold. A run that writes stores them. One that nobody states
has the stored value, whatever its default is, so that a run without an environment variable destroys nothing that an
earlier run built. One that is stated otherwise is a contradiction where it would delete or compute everything anew:
somebody has to accept it first.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from rag_assets.contracts.errors import SettingsError, StoreError
from rag_assets.contracts.tables import DOCUMENTS, ENTITIES, ENTITY_MENTIONS
from rag_assets.enrich.facets.taxonomy import is_shipped
from rag_assets.pipeline.settings import ChunkingSettings, EmbeddingSettings, GraphSettings, Settings
from rag_assets.store.files import SealedFile
from rag_assets.store.lake import Lake

Values = Mapping[str, Mapping[str, Any]]  # by section and name, as in JSON

GRAPH_ENABLED = "graph.enabled"
_STORED: Mapping[str, frozenset[str]] = {
    "embedding": frozenset(EmbeddingSettings.model_fields) - {"threads", "api_key"},
    "chunking": frozenset(ChunkingSettings.model_fields),
    "enrichment": frozenset({"taxonomy"}),
    "graph": frozenset(GraphSettings.model_fields) - {"workers"},
}
_CONSEQUENCES = {
    "embedding": "embeds everything anew",
    "chunking": "cuts and embeds everything anew",
    "enrichment": "classifies every document anew",
}
_ACCEPT = "`rag-assets index --accept-settings` does that"


@dataclass(frozen=True)
class Contradiction:
    """A stated setting that would delete or compute anew what was built with another value."""

    setting: str  # the setting, as in `graph.enabled`
    stored: str  # value that the knowledge base was built with, as JSON
    stated: str  # value that is stated now, as JSON
    consequence: str  # what indexing with the stated value does
    remedy: str  # how a person says that it is meant

    @property
    def difference(self) -> str:
        """Both values, and what indexing with the stated one does."""
        return f"{self.setting} is {self.stated}, built with {self.stored}: that {self.consequence}"

    @property
    def accepted_by_option(self) -> bool:
        """Whether `--accept-settings` is enough; deleting wants a word of its own."""
        return self.setting != GRAPH_ENABLED


def contradiction_error(contradictions: tuple[Contradiction, ...]) -> SettingsError:
    """The error of a run that would act on contradictions which nobody accepted."""
    remedies = "; ".join(dict.fromkeys(contradiction.remedy for contradiction in contradictions))
    differences = "; ".join(contradiction.difference for contradiction in contradictions)
    return SettingsError(f"{differences}. {remedies}; take the setting out to go on as before")


def read_stored(path: Path) -> Values | None:
    """The stored settings; None where there are none.

    Raises:
        SettingsError: The file is damaged.
    """
    try:
        return settings_file(path).read()
    except StoreError as error:
        raise SettingsError(
            f"{error}; remove both, state the settings that the knowledge base was built with, unless they are the "
            "defaults, and run `rag-assets index`"
        ) from error


def settings_file(path: Path) -> SealedFile:
    """The file of the stored settings and its copy."""
    return SealedFile(path)


def store_settings(path: Path, settings: Settings) -> None:
    """Store the settings in force; nothing is written where they are stored already."""
    values = _values(settings)
    if read_stored(path) != values or settings_file(path).problem():
        settings_file(path).write(values)


def holds_graph(lake: Lake) -> bool:
    """Whether an entity graph is stored, whole or in part."""
    tables = (ENTITIES, ENTITY_MENTIONS)
    return any(lake.row_count(table, shard) for table in tables for shard in lake.latest(table))


def _built_with(path: Path, lake: Lake) -> Values:
    """The stored settings; where they are missing, what the stored tables tell of them."""
    stored_values = read_stored(path)
    if stored_values is None:
        return {"graph": {"enabled": holds_graph(lake)}} if lake.latest(DOCUMENTS) else {}
    return stored_values


def settings_in_force(stated: Settings, path: Path, lake: Lake) -> Settings:
    """The stated settings, with stored values for what is not stated.

    Args:
        stated: What environment, file and arguments say.
        path: File of the stored settings.
        lake: Tells of them where they are missing.

    Raises:
        SettingsError: The stored settings are damaged, a value is out of range, or does not go with a stated one.
    """
    stored_values = _built_with(path, lake)
    updates: dict[str, BaseModel] = {}
    for section, names in _STORED.items():
        section_settings: BaseModel = getattr(stated, section)
        given_names, before = section_settings.model_fields_set, stored_values.get(section, {})
        if (
            section == "embedding"
            and "provider" in given_names
            and section_settings.model_dump()["provider"] != before.get("provider")
        ):
            continue  # model and address belong to the provider
        additions = {name: before[name] for name in names - given_names if name in before}
        if additions:
            updates[section] = _with_values(section_settings, additions, section, path)
    return stated.model_copy(update=updates)


def find_contradictions(stated: Settings, in_force: Settings, path: Path, lake: Lake) -> tuple[Contradiction, ...]:
    """Stated settings that would delete or compute anew what is stored, by name; none before anything is.

    Args:
        stated: What environment, file and arguments say.
        in_force: These, with stored values for what is not stated.
        path: File of the settings that the knowledge base was built with.
        lake: Its tables.
    """
    if not lake.latest(DOCUMENTS):
        return ()
    contradictions, stored_values = [], _built_with(path, lake)
    now = _values(in_force)
    for section, consequence in _CONSEQUENCES.items():
        before, given_names = stored_values.get(section, {}), getattr(stated, section).model_fields_set
        for name in sorted(given_names & before.keys() & now[section].keys()):
            if before[name] != now[section][name]:
                values = (_shown(before[name]), _shown(now[section][name]))
                contradictions.append(Contradiction(f"{section}.{name}", *values, consequence, _ACCEPT))
    if stored_values.get("graph", {}).get("enabled") and not in_force.graph.enabled and holds_graph(lake):
        remedy = "`rag-assets graph drop` does that"
        contradictions.append(Contradiction(GRAPH_ENABLED, "true", "false", "deletes the entity graph", remedy))
    return tuple(sorted(contradictions, key=lambda contradiction: contradiction.setting))


def _with_values(settings: BaseModel, additions: Mapping[str, Any], section: str, path: Path) -> BaseModel:
    values = {name: getattr(settings, name) for name in settings.model_fields_set}
    try:
        return type(settings).model_validate({**values, **additions})
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join([section, *map(str, problem["loc"])])
        raise SettingsError(f"{path}, with the settings stated now: {place}: {problem['msg']}") from error


def _values(settings: Settings) -> dict[str, dict[str, Any]]:
    """The settings to store, as JSON values; paths are absolute, so that they hold in any folder."""
    values: dict[str, dict[str, Any]] = {
        section: getattr(settings, section).model_dump(mode="json", include=set(names))
        for section, names in _STORED.items()
    }
    for section, name in _paths(settings):
        value = values[section][name]
        if value and Path(value).exists():
            values[section][name] = str(Path(value).resolve())
    return values


def _paths(settings: Settings) -> Iterator[tuple[str, str]]:
    """Section and name of the settings whose value may be a path, and is no name of something else."""
    yield from (("graph", "types_toml"), ("graph", "merges_csv"))
    if settings.embedding.provider == "sentence-transformers":
        yield "embedding", "model"
    if not is_shipped(settings.enrichment.taxonomy):
        yield "enrichment", "taxonomy"


def _shown(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
