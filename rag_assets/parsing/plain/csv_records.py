"""Records of delimited text: the delimiter, quoted fields, and quotation marks that are never closed.

What stays out: encodings (`text`), headers and table blocks (`csv_tables`).

A quotation mark that is not closed makes every reader of CSV take the rest of the file for one field. Here it is a
character like others once one of these shows it: the file ends within the field, something else than a delimiter
follows the mark that closes it, or the lines that it would hold are records by themselves.
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from rag_assets.contracts.causes import FailureCause
from rag_assets.contracts.errors import ParseError
from rag_assets.parsing.flow import clean

_DELIMITERS = (",", "\t", ";", "|")
_SAMPLE_CHARS = 1 << 16
_SHARED_VALUES = 100_000
_QUOTED = re.compile(r'"((?:[^"]|"")*+)"')
_MANY_LINES = 10
_RECORD_SHARE = 0.9
_LINES_READ_AGAIN = 1_000_000  # a file can be made so that each of its lines opens a field up to its end


@dataclass(frozen=True, slots=True)
class Records:
    """What a delimited text holds.

    Attributes:
        cells: Records that are not empty, each with its number as a spreadsheet would count it.
        open_quotes: Numbers of the lines, from 1, on which a quotation mark is opened and never closed.
    """

    cells: list[tuple[int, list[str]]]
    open_quotes: list[int]


def read_records(text: str, delimiter: str, maximum_cells: int) -> Records:
    """Read all records.

    Args:
        text: The text, line ends as line feeds.
        delimiter: What parts the fields.
        maximum_cells: Cells of all records.

    Returns:
        The records. Of a field that is opened and never closed, the mark is kept as a character and its line is a
        record of its own.

    Raises:
        ParseError: TOO_LARGE where there are more cells.
    """
    found, cells = Records([], []), 0
    shared: dict[str, str] = {}
    csv.field_size_limit(max(len(text) + 1, 1 << 17))
    for number, record in enumerate(_records(text, delimiter, found.open_quotes), start=1):
        if any(value.strip() for value in record):
            found.cells.append((number, [_share(clean(value), shared) for value in record]))
            cells += len(record)
        if cells > maximum_cells:
            raise ParseError(FailureCause.TOO_LARGE, f"more than {maximum_cells} cells")
    return found


def find_delimiter(text: str, preferred: str) -> str:
    """The delimiter under which most rows of the beginning have one number of columns, more than one."""
    sample = text[:_SAMPLE_CHARS]
    if len(text) > _SAMPLE_CHARS:
        sample = sample[: sample.rfind("\n") + 1] or sample
    scores = {}
    for delimiter in _DELIMITERS:
        reader = csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter)
        try:
            widths = Counter(len(record) for record in reader if any(record))
        except csv.Error:
            continue
        width, count = widths.most_common(1)[0] if widths else (1, 0)
        share = count / max(1, widths.total())
        scores[delimiter] = (share > 0.5 and width > 1, delimiter == preferred and share > 0.8, share, width)
    best = max(scores, key=lambda delimiter: scores[delimiter], default=preferred)
    if scores and scores[best][0]:
        return best
    return max(_DELIMITERS, key=lambda delimiter: (sample.count(delimiter), delimiter == preferred))


class _Lines:
    """Lines with their ends, one at a time: a copy of a large text as a file or list takes several times its size."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.offset = 0
        self.number = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        start = self.offset
        if start >= len(self._text):
            raise StopIteration
        self.offset = self._text.find("\n", start) + 1 or len(self._text)
        self.number += 1
        return self._text[start : self.offset]

    def go_back(self, offset: int, number: int) -> None:
        self.offset, self.number = offset, number


def _records(text: str, delimiter: str, open_quotes: list[int]) -> Iterator[list[str]]:
    lines = _Lines(text)
    skips_spaces = delimiter != "\t"
    reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=skips_spaces, strict=True)
    width, read_again = 0, 0
    widths: Counter[int] = Counter()
    while lines.offset < len(text):
        offset, number = lines.offset, lines.number
        record = _next(reader) if read_again < _LINES_READ_AGAIN else None
        if record is None or _holds_records(record, text[offset : lines.offset], delimiter, width):
            read_again += lines.number - number
            lines.go_back(offset, number)
            record, is_open = _split(next(lines), delimiter, skips_spaces=skips_spaces)
            if is_open:
                open_quotes.append(lines.number)
            reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=skips_spaces, strict=True)
        widths[len(record)] += 1
        if widths[len(record)] > widths[width]:
            width = len(record)  # of most records so far: lines above a table are narrower
        yield record


def _next(reader: Iterator[list[str]]) -> list[str] | None:
    """The next record; None where its quotation marks do not fit."""
    try:
        return next(reader)
    except (csv.Error, StopIteration):
        return None


def _holds_records(record: list[str], source: str, delimiter: str, width: int) -> bool:
    """Whether a record has swallowed others: its lines have as many fields as most records before it."""
    count = source.count("\n", 0, -1) + 1
    if count == 1 or width < 2:
        return False
    whole = sum(line.count(delimiter) == width - 1 for line in source.splitlines())
    return whole >= count * _RECORD_SHARE if count >= _MANY_LINES else len(record) != width and whole == count


def _split(line: str, delimiter: str, *, skips_spaces: bool) -> tuple[list[str], bool]:
    """Fields of one line, and whether one of them opens with a quotation mark that the line does not close."""
    line = line.removesuffix("\n")
    fields, position, is_open = [], 0, False
    while True:
        if skips_spaces:
            while line.startswith(" ", position):
                position += 1
        quoted = _QUOTED.match(line, position)
        is_open = is_open or (quoted is None and line.startswith('"', position))
        begin = quoted.end() if quoted else position
        end = line.find(delimiter, begin)
        rest = line[begin:] if end == -1 else line[begin:end]
        fields.append(quoted[1].replace('""', '"') + rest if quoted else rest)
        if end == -1:
            return fields, is_open
        position = end + 1


def _share(value: str, shared: dict[str, str]) -> str:
    """One object for values that recur, as those of most columns do."""
    return shared.setdefault(value, value) if len(shared) < _SHARED_VALUES else shared.get(value, value)
