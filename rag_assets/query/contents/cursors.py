"""Long lists in parts: each part says where the next one begins."""

import base64
import binascii
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from rag_assets.contracts.errors import QueryError

_T = TypeVar("_T")
LIST_LIMIT = 50  # of a list, where no number is named
_CHECK_BYTES = 4
_KEY, _PLACE = b"key", b"place"
_NOT_GIVEN = "the cursor is not one that this list gave; begin again without it"


@dataclass(frozen=True)
class Listed(Generic[_T]):
    """A part of a list.

    Attributes:
        items: What it holds.
        total: What the whole list holds.
        next_cursor: Where the next part begins; None at the end.
    """

    items: tuple[_T, ...]
    total: int
    next_cursor: str | None


def cut(keys: pa.ChunkedArray, limit: int, cursor: str | None, show: Callable[[pa.Array], Sequence[_T]]) -> Listed[_T]:
    """A part of a list that is ordered by a key, so that it goes on rightly where the list has changed meanwhile.

    Args:
        keys: Keys of all, rising.
        limit: How many to give, at most.
        cursor: Where to begin; None at the start.
        show: Gives those at some places.

    Raises:
        QueryError: The cursor is none.
    """
    start = 0
    if cursor is not None:
        last = _decode(cursor, _KEY)
        start = int(pc.sum(pc.less_equal(keys, last)).as_py() or 0)
    stop = min(start + limit, len(keys))
    items = tuple(show(pa.array(range(start, stop), pa.int64())))
    next_cursor = _encode(keys[stop - 1].as_py(), _KEY) if start < stop < len(keys) else None
    return Listed(items, len(keys), next_cursor)


def cut_ranked(
    ranked: Sequence[int], limit: int, cursor: str | None, show: Callable[[Sequence[int]], Sequence[_T]]
) -> Listed[_T]:
    """A part of a list of rows in an order of its own, see `cut`; its cursor is a place, as versions do not change.

    Raises:
        QueryError: The cursor is none.
    """
    start = 0
    if cursor is not None:
        text = _decode(cursor, _PLACE)
        if not (text.isascii() and text.isdigit() and len(text) < 12):
            raise QueryError(_NOT_GIVEN)
        start = int(text)
    stop = min(start + limit, len(ranked))
    return Listed(
        tuple(show(ranked[start:stop])),
        len(ranked),
        _encode(str(stop), _PLACE) if start < stop < len(ranked) else None,
    )


def _encode(text: str, kind: bytes) -> str:
    content = text.encode()
    return base64.urlsafe_b64encode(_check(content, kind) + content).decode().rstrip("=")


def _decode(cursor: str, kind: bytes) -> str:
    try:
        data = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        check, content = data[:_CHECK_BYTES], data[_CHECK_BYTES:]
        if check == _check(content, kind):
            return content.decode()
    except (ValueError, binascii.Error) as error:
        raise QueryError(_NOT_GIVEN) from error
    raise QueryError(_NOT_GIVEN)


def _check(content: bytes, kind: bytes) -> bytes:
    """Tells a cursor from any other text; no secret."""
    return hashlib.blake2b(content, digest_size=_CHECK_BYTES, person=kind).digest()
