"""What callers send: the parts of requests that the HTTP API and agents' tools share, and the requests of the API."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from rag_assets.contracts.errors import QueryError
from rag_assets.contracts.modes import MODES, PREPARING_MODES, modes_lacking
from rag_assets.contracts.ports import Turn
from rag_assets.query.search.report_levels import LevelChoice

MAX_QUERY_CHARS = 20_000
FILTER_DESCRIPTION = "`FIELD=VALUE` with document, folder, format, language, page_name, modified or facet.NAME."
LIST_FORMS: Mapping[str, str] = {"filters": '["format=xlsx"]', "history": '[{"question": "…"}]'}
_MODE_DESCRIPTION = (
    f"One of {', '.join(MODES)}; several with commas between, whose rankings are fused; or "
    f"{' or '.join(PREPARING_MODES)}, a plus sign and the mode or modes that find passages."
)

QueryText = Annotated[str, Field(min_length=1, max_length=MAX_QUERY_CHARS)]
ModeName = Annotated[str, Field(max_length=128, description=_MODE_DESCRIPTION)]
ResultCount = Annotated[int, Field(ge=1, le=1000, description="Results.")]
FilterText = Annotated[str, Field(max_length=2000)]
LevelNumber = Annotated[
    int, Field(ge=0, le=1000, description="Of `graph_global`: level of the community reports that are read.")
]
SqlText = Annotated[str, Field(min_length=1, max_length=100_000)]


class Form(BaseModel):
    """A request, or a part of one; fields that it does not know are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class EarlierTurn(Form):
    """An earlier question of the conversation."""

    question: str = Field(max_length=MAX_QUERY_CHARS, description="As asked.")
    answer: str = Field("", max_length=100_000, description="What was answered.")


def turns_of(history: list[EarlierTurn]) -> tuple[Turn, ...]:
    """The conversation before a question."""
    return tuple(Turn(turn.question, turn.answer) for turn in history)


def check_options(
    mode: str, level: int | None, dynamic: bool | None = None, summaries: str | None = None, *, is_typed: bool = False
) -> None:
    """Refuse options of a request that its mode would leave out.

    Args:
        mode: The mode that is named, or else that of the settings.
        level: As given, like the others; None where it is not.
        dynamic: Whether the level is chosen community by community.
        summaries: Which summaries choose.
        is_typed: Whether options are called as on the command line, as `--level`.

    Raises:
        QueryError: One is of other modes.
    """
    for option, value in (("level", level), ("dynamic_level", dynamic), ("summaries", summaries)):
        if value is not None and (modes := modes_lacking(option, mode)):
            dashes, name = ("--", option.replace("_", "-")) if is_typed else ("", option)
            raise QueryError(f"{dashes}{name} goes with {dashes}mode {modes}, not with {mode}")


def levels_of(level: int | None, dynamic: bool | None, default: LevelChoice) -> LevelChoice:
    """The community reports that a caller names, or else the settings."""
    return LevelChoice(default.level if level is None else level, default.dynamic if dynamic is None else dynamic)


class _Question(Form):
    mode: ModeName | None = Field(None, description="Where none is named, that of the settings.")
    k: ResultCount | None = Field(None, description="Where none is given, the number of the settings.")
    filters: list[FilterText] = Field([], max_length=100, description=FILTER_DESCRIPTION)
    summaries: Literal["page", "file"] | None = Field(
        None, description="Of `two_step`: which summaries choose; where none are named, those of pages."
    )
    level: LevelNumber | None = None
    dynamic_level: bool | None = Field(
        None, description="Of `graph_global`: whether finer reports are read only where they are nearer."
    )
    history: list[EarlierTurn] = Field([], max_length=50, description="The conversation before, oldest turn first.")


class SearchRequest(_Question):
    """A search."""

    query: QueryText
    granularity: Literal["chunk", "page", "document"] = Field("chunk", description="What a result is.")


class AskRequest(_Question):
    """A question."""

    question: QueryText
    stream: bool = Field(False, description="Whether the answer comes as server-sent events while it is written.")


class SqlRequest(Form):
    """A query."""

    query: SqlText = Field(description="One SELECT statement of DuckDB.")
    row_limit: int | None = Field(None, ge=1, le=1_000_000, description="Rows, within what the settings allow.")
