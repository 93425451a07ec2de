"""What all commands share: the knowledge base they work on, and how they print.

Everything that a command prints goes through here: names of files, text of documents and answers of models may hold
characters that steer the terminal or forge lines, and are shown with these as escapes.
"""

import csv
import io
import logging
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from rag_assets.contracts.errors import QueryError
from rag_assets.text.plain import json_text, message_of, printable, printable_line

if TYPE_CHECKING:
    from rag_assets.pipeline.home import Home

NAMES_SHOWN = 20
_HOME = "rag_assets.home"  # in the memory of a command's context
_ERROR_CHARS = 4000
_SQLITE_FAILED, _ROOM_BYTES = "disk I/O error", 1 << 20  # all that it says where its shared memory cannot grow
_SIGN = "[=+@\\-\u2212\uff1d\uff0b\uff20\uff0d\ufe66\ufe62\ufe6b\ufe63]"  # also as minus sign, full-width and small
_NUMBER = r"[+-]?[0-9][0-9,]*(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?%?"
# where a spreadsheet begins a cell: at the start, and within it for one that parts cells elsewhere than at commas
_FORMULA = re.compile(rf"(^|[;\t\r\n])([^\S;\t\r\n]*)(?={_SIGN})(?!{_NUMBER}[^\S;\t\r\n]*(?:[;\t\r\n]|\Z))")
_CONTROL = ("\t", "\r", "\n")  # some take what stands behind it for the start of the cell


def say(text: str = "", *, lines: bool = False, end: str = "\n", bold: bool = False, err: bool = False) -> None:
    """Print text.

    Args:
        text: The text; shown without what steers a terminal.
        lines: Whether it may have several lines. Else line breaks in it are shown as escapes, so that a name or a
            message cannot pass for a line of its own.
        end: What follows.
        bold: Whether it is set off.
        err: Whether it goes to standard error.
    """
    shown = printable(text) if lines else printable_line(text)
    click.secho(shown + end, nl=False, bold=bold or None, err=err)


def complain(error: object) -> None:
    """Print what is wrong, in one line on standard error."""
    say(f"rag-assets: {message_of(error, _ERROR_CHARS)}", err=True)


class _Printable(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


def log_printably() -> None:
    """Show what libraries and this package log, and warnings, without what steers a terminal."""
    logging.captureWarnings(capture=True)
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(_Printable())


def open_home(context: click.Context) -> "Home":
    """The knowledge base that the options and settings name."""
    from rag_assets.pipeline.home import Home
    from rag_assets.pipeline.settings import load_settings

    named: Path | None = context.find_root().obj
    if named is not None:
        os.environ["RAG_HOME"] = str(named)
    home = Home(load_settings())
    context.find_root().meta[_HOME] = home.path
    return home


def full_disk(context: click.Context, error: Exception) -> str | None:
    """Which folder is full and what to do, where an error comes of that; else None."""
    from rag_assets.store.files import is_full

    path: Path | None = context.find_root().meta.get(_HOME)
    if path is None:
        return None
    room = {each: shutil.disk_usage(each).free for each in (path, Path(tempfile.gettempdir())) if each.is_dir()}
    full = min(room, key=room.__getitem__)
    if not (is_full(error) or (_SQLITE_FAILED in str(error) and room[full] < _ROOM_BYTES)):
        return None
    return f"{full}: the disk is full; make room and run the command again: what was finished is kept"


def print_table(columns: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    """Print rows under their column names."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(printable_line(column), overflow="fold")
    for row in rows:
        table.add_row(*("" if value is None else printable_line(str(value)) for value in row))
    console = Console(emoji=False, markup=False, highlight=False, width=None if sys.stdout.isatty() else 10_000)
    console.print(table)


def print_json(value: object, *, indent: int | None = 2) -> None:
    """Print a value as JSON; what steers a terminal is an escape of JSON, so that nothing is lost."""
    click.echo(json_text(value, indent=indent))


def print_csv(columns: Iterable[str], rows: Iterable[Iterable[object]], *, raw: bool) -> None:
    """Print rows as CSV.

    Args:
        columns: Names of the columns.
        rows: The rows.
        raw: Whether texts are printed as they are. Else one that a spreadsheet would read as a formula gets an
            apostrophe before it, and what steers a terminal is shown as escapes.
    """
    written = io.StringIO()
    writer = csv.writer(written)
    for row in (columns, *rows):
        writer.writerow(row if raw else [_cell(value) for value in row])
        click.echo(written.getvalue(), nl=False, color=True)  # else it takes out what it thinks is colour
        written.seek(0)
        written.truncate()


def _cell(value: object) -> object:
    if value is None or isinstance(value, int | float | Decimal):
        return value
    text = printable(_FORMULA.sub(r"\1'\2", str(value)))
    return f"'{text}" if str(value).startswith(_CONTROL) else text


@dataclass(frozen=True)
class NamedText:
    """What a text file holds, and its name."""

    name: str
    text: str


class TextFile(click.ParamType[NamedText]):
    """A file of UTF-8 text, or `-` for standard input."""

    name = "filename"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> NamedText:
        if isinstance(value, NamedText):
            return value
        try:
            with click.open_file(str(value), encoding="utf-8-sig") as file:
                return NamedText(str(value), file.read())
        except OSError as error:
            self.fail(f"{value!r}: {error.strerror or error}", param, ctx)
        except UnicodeDecodeError as error:
            raise QueryError(f"{value}: expected a text file in UTF-8: {error.reason}, byte {error.start}") from error

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        del ctx, param
        return [CompletionItem(incomplete, type="file")]


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
