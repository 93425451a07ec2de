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
from collections.abc import Iterable, Sequence
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
_PIPE_CELLS = 120  # width of rows where there is no terminal
_LEAST_CELLS = 16  # of a column that is cut
_BETWEEN = "   "  # columns
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
    line = printable(text) if lines else printable_line(text)
    click.secho(line + end, nl=False, bold=bold or None, err=err)


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


def open_home(context: click.Context, *, existing: bool = False) -> "Home":
    """The knowledge base that the options and settings name.

    Args:
        context: Of the command.
        existing: Whether it is refused that there is none yet; else one may begin there.

    Raises:
        QueryError: There is none yet.
    """
    from rag_assets.pipeline.home import Home
    from rag_assets.pipeline.settings import load_settings

    home_path: Path | None = context.find_root().obj
    if home_path is not None:
        os.environ["RAG_HOME"] = str(home_path)
    home = Home(load_settings())
    context.find_root().meta[_HOME] = home.path
    if existing:
        check_exists(home)
    return home


def check_exists(home: "Home") -> None:
    """Refuse to tell of a knowledge base that there is not.

    Raises:
        QueryError: There is none; the message says where it was looked for.
    """
    if not home.exists:
        raise QueryError(
            f"there is no knowledge base in {home.path}; name another by --home or RAG_HOME, or run `rag-assets index "
            "FOLDER` first"
        )


def full_disk(context: click.Context, error: Exception) -> str | None:
    """Which folder is full and what to do, where an error comes of that; else None."""
    from rag_assets.store.files import is_full

    path: Path | None = context.find_root().meta.get(_HOME)
    if path is None:
        return None
    room = {folder: shutil.disk_usage(folder).free for folder in (path, Path(tempfile.gettempdir())) if folder.is_dir()}
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


def print_rows(columns: Sequence[str], rows: Iterable[Iterable[object]]) -> None:
    """Print rows of any values in the width of the terminal, or of `_PIPE_CELLS` without one; long texts are cut.

    They are a table, or, where its columns would be too narrow to be read, a line for each value.
    """
    from rich.cells import cell_len

    if not columns:  # of a statement that gives no rows
        return
    names = [printable_line(column) for column in columns]
    texts = [[printable_line(_plain(value)) for value in row] for row in rows]
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else _PIPE_CELLS
    widths = [max(map(cell_len, column)) for column in zip(names, *texts, strict=True)]
    fitted_widths = _fitting(widths, width - len(_BETWEEN) * (len(widths) - 1) - 2)
    if any(cell_width < min(want, _LEAST_CELLS) for want, cell_width in zip(widths, fitted_widths, strict=True)):
        label = min(max(map(cell_len, names)), width // 3)
        room = width - label - len(_BETWEEN)
        if not texts:
            say(f"no rows of {', '.join(names)}")
        for number, row in enumerate(texts, start=1):
            say(f"row {number}", bold=True)
            for name, text in zip(names, row, strict=True):
                label_text = _cut(name, label)
                say(f"{label_text}{' ' * (label - cell_len(label_text))}{_BETWEEN}{_cut(text, room)}")
        is_cut = any(cell_len(text) > room for row in texts for text in row)
    else:
        cut = [
            [_cut(text, cell_width) for text, cell_width in zip(row, fitted_widths, strict=True)]
            for row in (names, *texts)
        ]
        _print_fitted(cut, fitted_widths)
        is_cut = fitted_widths != widths
    if is_cut:
        say("… stands for the rest of a text: --json and --csv print all of it", err=True)


def _print_fitted(lines: Sequence[Sequence[str]], widths: Sequence[int]) -> None:
    """Print cells that fit into columns as `print_table` does, the names first: for many rows Rich takes minutes."""
    from rich.cells import cell_len

    edge, total = " ", sum(widths) + len(_BETWEEN) * (len(widths) - 1)
    blank, rule = edge + " " * total + edge, edge + "─" * total + edge
    for number, cells in enumerate(lines):
        padded = (text + " " * (width - cell_len(text)) for text, width in zip(cells, widths, strict=True))
        line = edge + _BETWEEN.join(padded) + edge
        if number:
            say(line)
        else:
            say(blank)
            say(line, bold=True)
            say(rule)
    say(blank)


def _cut(text: str, most_cells: int) -> str:
    """A text in at most some columns of a terminal; a longer one ends in an ellipsis."""
    from rich.cells import cell_len, set_cell_size

    return text if cell_len(text) <= most_cells else f"{set_cell_size(text, most_cells - 1).rstrip()}…"


def _fitting(widths: Sequence[int], room: int) -> list[int]:
    """Widths of columns that fit into some room: those that need more than an equal share of it are equally wide."""
    fitted_widths = [0] * len(widths)
    for before, place in enumerate(sorted(range(len(widths)), key=widths.__getitem__)):
        fitted_widths[place] = max(1, min(widths[place], (room - sum(fitted_widths)) // (len(widths) - before)))
    return fitted_widths


def _plain(value: object) -> str:
    """A value of DuckDB for people: what lists and structs hold stands between commas."""
    if value is None:
        return ""
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_plain(item)}" for name, item in value.items())
    if isinstance(value, list | tuple):
        return ("; " if any(isinstance(item, dict | list | tuple) for item in value) else ", ").join(map(_plain, value))
    return str(value)


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
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    for row in (columns, *rows):
        writer.writerow(row if raw else [_cell(value) for value in row])
        click.echo(buffer.getvalue(), nl=False, color=True)  # else it takes out what it thinks is colour
        buffer.seek(0)
        buffer.truncate()


def _cell(value: object) -> object:
    if value is None or isinstance(value, int | float | Decimal):
        return value
    text = printable(_FORMULA.sub(r"\1'\2", str(value)))
    return f"'{text}" if str(value).startswith(_CONTROL) else text


class Text(click.ParamType[str]):
    """A text in UTF-8, also where the locale knows ASCII only."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value)
        try:
            if re.search("[\ud800-\udfff]", text):  # stand for bytes that the locale has no characters for
                text = os.fsencode(text).decode()
        except UnicodeError:
            self.fail(f"{printable_line(text)}: expected text in UTF-8", param, ctx)
        return text


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
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?\s*", str(value), re.IGNORECASE)
        if not match or (match[3] and not match[2]):
            self.fail(f"{value!r}: expected a number of bytes, as in 500MB or 5GB", param, ctx)
        return int(float(match[1]) * (1024 if match[3] else 1000) ** " kmgt".index(match[2].lower() or " "))
