"""What all commands share: the knowledge base they work on, and how they print."""

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rag_assets.home import Home

NAMES_SHOWN = 20


def open_home(context: click.Context) -> "Home":
    """The knowledge base that the options and settings name."""
    from rag_assets.home import Home
    from rag_assets.settings import load_settings

    home: Path | None = context.find_root().obj
    if home is not None:
        os.environ["RAG_HOME"] = str(home)
    return Home(load_settings())


class _Bars:
    """Progress bars on standard error, one for each step."""

    def __init__(self, progress: Any) -> None:
        self._progress = progress

    def step(self, name: str) -> Callable[[int, int], None]:
        """A bar that appears with its first report."""
        task: list[Any] = []

        def report(done: int, total: int) -> None:
            if not task:
                task.append(self._progress.add_task(name, total=total))
            self._progress.update(task[0], completed=done, total=total)

        return report


@contextmanager
def progress_bars(*, hidden: bool) -> "Iterator[_Bars]":
    """Progress bars on standard error while the block runs."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description:<24}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), disable=hidden) as progress:
        yield _Bars(progress)


def print_table(columns: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    """Print rows under their column names."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*("" if value is None else str(value) for value in row))
    console = Console(emoji=False, markup=False, highlight=False, width=None if sys.stdout.isatty() else 10_000)
    console.print(table)


def print_json(value: object) -> None:
    """Print a value as JSON."""
    click.echo(json.dumps(value, ensure_ascii=False, indent=2, default=str))


def shortened(text: str, lines: int = 6, width: int = 160) -> str:
    """The first lines of a text, each cut to a width."""
    kept = [line if len(line) <= width else line[: width - 1] + "…" for line in text.splitlines() if line.strip()]
    return "\n".join(kept[:lines] + ["…"] * (len(kept) > lines))


def utc(seconds: float) -> str:
    """A time in seconds since 1970 as ISO 8601, UTC."""
    from datetime import UTC, datetime

    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def size(count: float) -> str:
    """A number of bytes for people."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


class Size(click.ParamType[int]):
    """A number of bytes, also as `5GB` or `512 MiB`."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?\s*", str(value), re.IGNORECASE)
        if not found or (found[3] and not found[2]):
            self.fail(f"{value!r}: expected a number of bytes, as in 500MB or 5GB", param, ctx)
        return int(float(found[1]) * (1024 if found[3] else 1000) ** " kmgt".index(found[2].lower() or " "))
