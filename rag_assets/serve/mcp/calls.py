"""A call of a tool: whether the caller still waits, how far it is, and its result in parts that agents can take in."""

import re
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from rag_assets.contracts.errors import QueryError
from rag_assets.query.cancellation import Cancellation
from rag_assets.query.results import adapter_of

RESULT_CHARS = 40_000  # of a whole result as JSON, about

_T = TypeVar("_T")
_CURSOR = re.compile(r"([0-9]{1,12})\.([0-9]{1,12})", re.ASCII)
_REPORT_SECONDS = 1.0  # between two reports of progress


class Call:
    """Shared by the thread that works and the event loop that waits for it.

    Args:
        send: Tells the caller in one line how far it is; may be called from any thread.

    Attributes:
        cancellation: Gives the call up where the caller is gone.
    """

    def __init__(self, send: Callable[[str], None]) -> None:
        self._send = send
        self.cancellation = Cancellation()
        self._reported = float("-inf")

    def report(self, message: str) -> None:
        """Tell how far it is, at most once a second.

        Raises:
            Cancelled: The caller is gone.
        """
        self.cancellation.check()
        if time.monotonic() - self._reported >= _REPORT_SECONDS:
            self._reported = time.monotonic()
            self._send(message)


def fitting(items: Sequence[_T], most_chars: int) -> list[_T]:
    """The first items that there is room for, at least one where there is any."""
    first: list[_T] = []
    chars = 0
    for item in items:
        chars += len(adapter_of(type(item)).dump_json(item))
        if first and chars > most_chars:
            break
        first.append(item)
    return first


def cursor_at(snapshot: int, offset: int, end: int) -> str | None:
    """A cursor: a place in a result over one published version; None at its end."""
    return f"{snapshot}.{offset}" if offset < end else None


def offset_of(cursor: str | None, snapshot: int) -> int:
    """The place that a cursor names; 0 for none.

    Raises:
        QueryError: The cursor is none, or of another version.
    """
    if cursor is None:
        return 0
    match = _CURSOR.fullmatch(cursor)
    if match is None:
        raise QueryError("the cursor is not one that this tool gave")
    if int(match[1]) != snapshot:
        raise QueryError("a new version was published since that part; begin again without the cursor")
    return int(match[2])
