"""Results in parts, none of them larger than agents can take in."""

import re
from collections.abc import Sequence
from typing import TypeVar

from pydantic import BaseModel

from rag_assets.contracts.errors import QueryError

RESULT_CHARS = 40_000  # of a whole result as JSON, about

_T = TypeVar("_T", bound=BaseModel)
_CURSOR = re.compile(r"([0-9]{1,12})\.([0-9]{1,12})", re.ASCII)


def fitting(items: Sequence[_T], most_chars: int) -> list[_T]:
    """The first items that there is room for, at least one where there is any."""
    given: list[_T] = []
    chars = 0
    for item in items:
        chars += len(item.model_dump_json())
        if given and chars > most_chars:
            break
        given.append(item)
    return given


def written_cursor(snapshot: int, offset: int) -> str:
    """A cursor: a place in a result over one published version."""
    return f"{snapshot}.{offset}"


def offset_of(cursor: str | None, snapshot: int) -> int:
    """The place that a cursor names; 0 for none.

    Raises:
        QueryError: The cursor is none, or of another version.
    """
    if cursor is None:
        return 0
    found = _CURSOR.fullmatch(cursor)
    if found is None:
        raise QueryError("the cursor is not one that this tool gave")
    if int(found[1]) != snapshot:
        raise QueryError("a new version was published since that part; begin again without the cursor")
    return int(found[2])
