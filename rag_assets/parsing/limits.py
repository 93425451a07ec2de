"""Limits within which one file is parsed, and how readers come by them deep inside a file.

Most readers get their limits as arguments. What is checked at the bottom of a recursion (how deep parts are nested, how
many cells spans may fill) would have to pass through every function on the way, so those ask `current_limits`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

# Readers call themselves for each level, a few frames a level; Python allows a thousand frames.
DEEPEST_NESTING = 250
_UNBOUNDED = 1 << 40


@dataclass(frozen=True, slots=True)
class ParsingLimits:
    """Limits within which one file is parsed; meanings as in `ParsingSettings`."""

    timeout_seconds: float  # wall time for one file, without text recognition
    memory_bytes: int  # memory that a parsing process may take
    file_bytes: int  # size of a file
    expanded_bytes: int  # size of a zip-based file, expanded
    archive_entries: int  # entries of a zip-based file
    cells: int  # cells of a sheet or table
    pages: int  # pages, sheets or slides of a file
    nesting_depth: int = DEEPEST_NESTING  # depth to which parts of a file are followed into each other
    ocr_seconds_per_page: float = 0.0  # wall time added for each page that needs text recognition
    ocr_seconds: float = 0.0  # wall time added for text recognition at most
    # whether Unstructured, where it is installed, reads formats that have no built-in reader. No limit, but like them a
    # setting that the content of a file depends on, and that holds for all files of a run
    unstructured: bool = True
    unstructured_formats: tuple[str, ...] = ()  # formats that it reads instead of the built-in reader

    def seconds(self, ocr_pages: int = 0) -> float:
        """Wall time for a file, of which some pages need text recognition."""
        return self.timeout_seconds + self.added_seconds(ocr_pages)

    def added_seconds(self, ocr_pages: int) -> float:
        """What text recognition of some pages adds to the wall time for a file."""
        return min(max(ocr_pages, 0) * self.ocr_seconds_per_page, self.ocr_seconds)

    def time_setting(self, ocr_pages: int) -> str:
        """The setting to raise where that time does not suffice."""
        is_bounded = ocr_pages * self.ocr_seconds_per_page > self.ocr_seconds
        return "parsing.ocr_seconds" if is_bounded else "parsing.ocr_seconds_per_page"


_NO_LIMITS = ParsingLimits(
    timeout_seconds=float("inf"),
    memory_bytes=_UNBOUNDED,
    file_bytes=_UNBOUNDED,
    expanded_bytes=_UNBOUNDED,
    archive_entries=_UNBOUNDED,
    cells=_UNBOUNDED,
    pages=_UNBOUNDED,
)
_current: ContextVar[ParsingLimits] = ContextVar("_current", default=_NO_LIMITS)


def current_limits() -> ParsingLimits:
    """Limits of the file that is being parsed; where a reader is called on its own, only what it can bear itself."""
    return _current.get()


def depth_limit() -> str:
    """The limit on nesting of the file that is being parsed, as messages name it."""
    return f"{current_limits().nesting_depth} levels (parsing.nesting_depth)"


@contextmanager
def limited(limits: ParsingLimits) -> Iterator[None]:
    """Parse within limits: `current_limits` returns them inside of the block."""
    token = _current.set(limits)
    try:
        yield
    finally:
        _current.reset(token)
