"""What requests and responses of searches, answers and SQL look like. Stored contents are given as the values of
`rag_assets.query.contents.contents`.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from rag_assets.contracts.ports import Turn
from rag_assets.query.ask.report_levels import LevelChoice
from rag_assets.query.search.modes import MODES, PREPARING_MODES

MAX_QUERY_CHARS = 20_000
MODE_DESCRIPTION = (
    f"One of {', '.join(MODES)}; several with commas between, whose rankings are fused; or "
    f"{' or '.join(PREPARING_MODES)}, a plus sign and the mode or modes that find passages."
)
FILTER_DESCRIPTION = "`FIELD=VALUE` with document, folder, format, language, page_name, modified or facet.NAME."

QueryText = Annotated[str, Field(min_length=1, max_length=MAX_QUERY_CHARS)]
ModeName = Annotated[str, Field(max_length=128, description=MODE_DESCRIPTION)]
ResultCount = Annotated[int, Field(ge=1, le=1000, description="Results.")]
FilterText = Annotated[str, Field(max_length=2000)]
LevelNumber = Annotated[int, Field(ge=0, le=1000, description="Level of the community reports that are read.")]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TurnGiven(_Request):
    """An earlier question of the conversation."""

    question: str = Field(max_length=MAX_QUERY_CHARS, description="As asked.")
    answer: str = Field("", max_length=100_000, description="What was answered.")


class _Asking(_Request):
    mode: ModeName | None = Field(None, description="Where none is named, that of the settings.")
    k: ResultCount | None = Field(None, description="Where none is given, the number of the settings.")
    filters: list[FilterText] = Field([], max_length=100, description=FILTER_DESCRIPTION)
    summaries: Literal["page", "file"] = Field("page", description="Which summaries choose in `two_step`.")
    level: LevelNumber | None = None
    dynamic_level: bool | None = Field(None, description="Whether finer reports are read only where they are nearer.")
    history: list[TurnGiven] = Field([], max_length=50, description="The conversation before, the oldest turn first.")

    def levels(self, default: LevelChoice) -> LevelChoice:
        """Which community reports are read."""
        return LevelChoice(
            default.level if self.level is None else self.level,
            default.dynamic if self.dynamic_level is None else self.dynamic_level,
        )

    def turns(self) -> tuple[Turn, ...]:
        """The conversation before."""
        return tuple(Turn(turn.question, turn.answer) for turn in self.history)


class SearchRequest(_Asking):
    """A search."""

    query: QueryText
    granularity: Literal["chunk", "page", "document"] = Field("chunk", description="What a result is.")


class AskRequest(_Asking):
    """A question."""

    question: QueryText
    stream: bool = Field(False, description="Whether the answer comes as server-sent events while it is written.")


class SqlRequest(_Request):
    """A query."""

    query: str = Field(min_length=1, max_length=100_000, description="One SELECT statement of DuckDB.")
    row_limit: int | None = Field(None, ge=1, le=1_000_000, description="Rows, within what the settings allow.")


class _Response(BaseModel):
    model_config = ConfigDict(extra="allow")


class CitationGiven(_Response):
    """A place that a person can open."""

    label: str
    document_id: str
    page_number: int
    page_name: str | None
    cell_range: str | None
    box: list[float] | None = Field(description="Left, top, right, bottom in points from the top left corner.")


class HitGiven(_Response):
    """A result; in mode `meta_knowledge` with the questions by which it was found."""

    rank: int
    score: float
    document_id: str
    page_number: int
    page_name: str | None
    chunk_id: str
    title: str
    text: str
    citation: CitationGiven


class TraceGiven(_Response):
    """What was done."""

    steps: list[dict[str, JsonValue]]
    milliseconds: float


class SearchResponse(_Response):
    """The result of a search."""

    query: str
    mode: str
    granularity: str
    hits: list[HitGiven]
    trace: TraceGiven


class SentenceCitationGiven(_Response):
    """A source that a sentence rests on."""

    number: int
    quote: str
    supported: bool = Field(description="Whether the quoted words stand in the source and can carry the sentence.")


class SentenceGiven(_Response):
    """A sentence of an answer."""

    text: str
    supported: bool
    citations: list[SentenceCitationGiven]


class SourceGiven(HitGiven):
    """A numbered piece of evidence."""

    number: int


class AskResponse(_Response):
    """An answer with its sources."""

    question: str
    mode: str
    answered: bool
    answer: str
    sentences: list[SentenceGiven]
    sources: list[SourceGiven]
    trace: TraceGiven


class ModesResponse(BaseModel):
    """What `mode` may be, and what a request that names neither mode nor number gets."""

    default_mode: str = Field(description="Mode of a search that names none.")
    default_ask_mode: str = Field(description="Mode of a question that names none.")
    k: int = Field(description="Results of a request that names no number.")
    modes: list[str] = Field(description="All modes.")
    retrievers: list[str] = Field(description="Modes that may stand behind the plus sign.")
    preparing: dict[str, str] = Field(
        description="Modes that may stand before the plus sign, with the mode that finds passages where none is named."
    )


class StateResponse(BaseModel):
    """Whether the server is there."""

    status: Literal["alive", "ready"]
    snapshot: int | None = Field(None, description="Number of the version that is served.")
    problem: str | None = Field(None, description="Why a newer version cannot be served.")
