"""Clicks on results of the web page, as a file: a line of JSON each, which a person may delete.

A click keeps the question, what was opened, what stood above it, and when; nothing of who asked.
"""

import json
import logging
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from rag_assets.contracts.errors import QueryError
from rag_assets.store.files import Lock

MOST_BYTES = 100 << 20  # of the file: some 100,000 clicks
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Click:
    """A result that was opened."""

    question: str
    result: str  # passage that the result showed
    above: tuple[str, ...]  # passages of the results above it, the first first
    time: str  # when, ISO 8601 in UTC

    @property
    def rank(self) -> int:
        """From 1."""
        return len(self.above) + 1


def add_click(path: Path, click: Click) -> None:
    """Add a click to a file, which is made where there is none.

    Raises:
        QueryError: The file is full.
        OSError: It cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    line = json.dumps({**asdict(click), "rank": click.rank}, ensure_ascii=False)
    with Lock.of(path).hold():
        if path.exists() and path.stat().st_size > MOST_BYTES:
            raise QueryError(f"{path}: holds {MOST_BYTES >> 20} MB of clicks: remove some of them first")
        with path.open("ab+") as file:
            if file.tell():
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":  # a process ended within a line
                    file.write(b"\n")
            file.write(f"{line}\n".encode())


def read_clicks(path: Path) -> list[Click]:
    """The clicks of a file, in the order of the file; none where there is no file. Lines that are none are logged.

    Raises:
        QueryError: The file cannot be read.
    """
    try:
        lines = path.read_bytes().split(b"\n") if path.is_file() else []
    except OSError as error:
        raise QueryError(f"{path}: cannot be read: {error}") from error
    clicks = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            click = Click(str(row["question"]), str(row["result"]), tuple(map(str, row["above"])), str(row["time"]))
        except (ValueError, KeyError, TypeError):
            _log.warning("%s, line %d: is no click", path, number)
            continue
        clicks.append(click)
    return clicks
