"""Delimited text (CSV, TSV): the delimiter, records, quotation marks that are never closed, tables and their headers.

A quotation mark that is not closed makes every reader of CSV take the rest of the file for one field. Here it is a
character like others once one of these shows it: the file ends within the field, something else than a delimiter
follows the mark that closes it, or the lines that it would hold are records by themselves.

Programs write titles, dates and conditions above a table, and tables below each other; spreadsheets fill such lines up
with empty fields.
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise, zip_longest

from rag_assets.contracts.causes import BlockKind, FailureCause, PageKind
from rag_assets.contracts.content import Block, Failure, Page, ParsedDocument, Row
from rag_assets.contracts.errors import ParseError
from rag_assets.contracts.formats import DocumentFormat
from rag_assets.parsing.flow import Sections, clean, table_block
from rag_assets.parsing.names import is_period
from rag_assets.parsing.plain.text import decode_text
from rag_assets.text.cells import CELL_SIGN, cover, format_range

Record = tuple[int, list[str]]  # its number as a spreadsheet would count it, its fields

_SAMPLE_RECORDS = 1000
_LINES_ABOVE = 30
_TITLE_CHARS = 60
_LOOKED_AT_BELOW = 3
_NUMBER = re.compile(r"^[\s¥$€△▲(+-]*\d[\d,.:/年月日%％)\s-]*$")
_NO_TITLE = re.compile(r"^[#;*/]|[:：=＝。.、,]|^[\W\d_]*$")
_DELIMITERS = (",", "\t", ";", "|")
_SAMPLE_CHARS = 1 << 16
_SHARED_VALUES = 100_000
_QUOTED = re.compile(r'"((?:[^"]|"")*+)"')
_MANY_LINES = 10
_RECORD_SHARE = 0.9
_LINES_READ_AGAIN = 1_000_000  # a file can be made so that each of its lines opens a field up to its end
_NAMED_LINES = 10
_STATED_DELIMITER = re.compile(r"sep=([^\n\"])\n", re.IGNORECASE)  # as Excel writes and reads it


def parse_delimited(data: bytes, document_format: DocumentFormat, maximum_cells: int) -> ParsedDocument:
    """Parse CSV or TSV into tables, each under its header row, and the lines around them.

    Args:
        data: The bytes of the file.
        document_format: CSV or TSV; the delimiter is read from the text either way.
        maximum_cells: Cells of the tables, rows times columns.

    Returns:
        One page. A quotation mark that is never closed is a failure of the page, without any row lost.

    Raises:
        ParseError: TOO_LARGE where they have more cells.
    """
    text = decode_text(data)
    preferred = "\t" if document_format is DocumentFormat.TSV else ","
    match = _STATED_DELIMITER.match(text)
    text = text[match.end() :] if match else text
    delimiter = match[1] if match else _find_delimiter(text, preferred)
    records, open_quotes = _read_records(text, delimiter, maximum_cells)
    del text
    page = Page(1, PageKind.BODY, tuple(_table_blocks(records, maximum_cells)))
    failures = _open_quotes([line + bool(match) for line in open_quotes])
    return ParsedDocument(document_format.value, None, (page,), failures)


def _open_quotes(lines: list[int]) -> tuple[Failure, ...]:
    if not lines:
        return ()
    more = f" and {len(lines) - _NAMED_LINES} more" if len(lines) > _NAMED_LINES else ""
    places = ", ".join(map(str, lines[:_NAMED_LINES]))
    problem = "a quotation mark is opened and never closed; it is read as a character"
    return (Failure(FailureCause.MALFORMED, f"line{'s' if lines[1:] else ''} {places}{more}: {problem}", 1),)


def _read_records(text: str, delimiter: str, maximum_cells: int) -> tuple[list[Record], list[int]]:
    """Records that are not empty, and numbers of the lines, from 1, on which a quotation mark is never closed.

    Such a mark is kept as a character, and its line is a record of its own.

    Raises:
        ParseError: TOO_LARGE where there are more cells.
    """
    records: list[Record] = []
    open_quotes: list[int] = []
    cells = 0
    values: dict[str, str] = {}
    csv.field_size_limit(max(len(text) + 1, 1 << 17))
    for number, record in enumerate(_records(text, delimiter, open_quotes), start=1):
        if any(value.strip() for value in record):
            records.append((number, [_share(clean(value), values) for value in record]))
            cells += len(record)
        if cells > maximum_cells:
            raise ParseError(FailureCause.TOO_LARGE, f"more than {maximum_cells} cells")
    return records, open_quotes


def _find_delimiter(text: str, preferred: str) -> str:
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


def _records(text: str, delimiter: str, open_quotes: list[int]) -> Iterator[list[str]]:
    lines = _Lines(text)
    skips_spaces = delimiter != "\t"
    reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=skips_spaces, strict=True)
    width, reread_count = 0, 0
    widths: Counter[int] = Counter()
    while lines.offset < len(text):
        offset, number = lines.offset, lines.number
        record = _next(reader) if reread_count < _LINES_READ_AGAIN else None
        if record is None or _holds_records(record, text[offset : lines.offset], delimiter, width):
            reread_count += lines.number - number
            lines.offset, lines.number = offset, number
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
    whole_count = sum(line.count(delimiter) == width - 1 for line in source.splitlines())
    return (
        whole_count >= count * _RECORD_SHARE if count >= _MANY_LINES else len(record) != width and whole_count == count
    )


def _split(line: str, delimiter: str, *, skips_spaces: bool) -> tuple[list[str], bool]:
    """Fields of one line, and whether one of them opens with a quotation mark that the line does not close."""
    line = line.removesuffix("\n")
    fields, position, is_open = [], 0, False
    while True:
        if skips_spaces:
            while line.startswith(" ", position):
                position += 1
        quotation = _QUOTED.match(line, position)
        is_open = is_open or (quotation is None and line.startswith('"', position))
        begin = quotation.end() if quotation else position
        end = line.find(delimiter, begin)
        rest = line[begin:] if end == -1 else line[begin:end]
        fields.append(quotation[1].replace('""', '"') + rest if quotation else rest)
        if end == -1:
            return fields, is_open
        position = end + 1


def _share(value: str, values: dict[str, str]) -> str:
    """One object for values that recur, as those of most columns do."""
    return values.setdefault(value, value) if len(values) < _SHARED_VALUES else values.get(value, value)


def _table_blocks(records: Sequence[Record], maximum_cells: int) -> list[Block]:
    """Blocks of the records of a file.

    Each table is one block, however long, with its header row; lines around them are paragraphs, and the first line
    above a table, where it can be a title, is the heading of what follows.

    Raises:
        ParseError: TOO_LARGE where the tables have more cells.
    """
    parts = list(_parts(records))
    widths = [max((len(cells) for _, cells in table), default=0) for _, table in parts]
    if sum(width * len(table) for width, (_, table) in zip(widths, parts, strict=True)) > maximum_cells:
        message = f"{len(records)} rows of {max(widths)} columns, limit {maximum_cells} cells"
        raise ParseError(FailureCause.TOO_LARGE, message)
    blocks, sections = list[Block](), Sections()
    for (lines, table), width in zip(parts, widths, strict=True):
        blocks.extend(_line_blocks(lines, sections, above=bool(table)))
        if table:
            blocks.append(_block(table, width, sections.path))
    return blocks


def _parts(records: Sequence[Record]) -> Iterator[tuple[Sequence[Record], Sequence[Record]]]:
    """Tables, each behind the lines above it; either may be missing.

    Tables stand below each other where empty lines part them, their widths differ, and the lower has a header of its
    own.
    """
    gaps = [place for place in range(1, len(records)) if records[place][0] > records[place - 1][0] + 1]
    begin = _start_behind_gap(records, gaps) or _table_start(records)
    lines = records[:begin]
    gaps = [gap for gap in gaps if gap > begin]
    typical = _typical_width(records[begin : gaps[0] if gaps else len(records)])
    for gap, end in pairwise([*gaps, len(records)]):
        section = records[gap:end]
        offset = _table_start(section)
        width = _typical_width(section[offset:])
        if end - gap - offset < 2 or width == typical or not (width > 1 and _is_header(section, offset, width)):
            continue
        table_end = _end_without_lines(records, begin, gap, typical)
        yield lines, records[begin:table_end]
        lines, begin, typical = records[table_end : gap + offset], gap + offset, width
    table_end = _end_without_lines(records, begin, len(records), typical)
    yield lines, records[begin:table_end]
    if table_end < len(records):
        yield records[table_end:], ()


def _start_behind_gap(records: Sequence[Record], gaps: Sequence[int]) -> int:
    """Position of a header that an empty line parts from narrower lines of different widths above it; 0 for none."""
    start = next((gap for gap in gaps if _filled_count(records[gap][1]) > 1), 0)
    if not 0 < start <= _LINES_ABOVE or start + 1 >= len(records):
        return 0
    width, widths = _filled_count(records[start][1]), [_filled_count(cells) for _, cells in records[:start]]
    are_lines = max(widths) < width and (widths[0] == 1 or len(set(widths)) > 1)
    return start if are_lines and _is_header(records, start, width) else 0


def _end_without_lines(records: Sequence[Record], begin: int, end: int, typical: int) -> int:
    """End of a table of several columns without the lines of one field below it, which an empty line parts from it."""
    place = end
    while typical > 2 and place > begin and _filled_count(records[place - 1][1]) == 1:
        place -= 1
        if records[place][0] > records[place - 1][0] + 1 and place > begin:
            end = place
    return end


def _table_start(records: Sequence[Record]) -> int:
    """Position of the first record of the table: lines above it fill at most half of its columns."""
    typical = _typical_width(records)
    for place, (_, cells) in enumerate(records[: _LINES_ABOVE + 1]):
        if _filled_count(cells) < 2 or _filled_count(cells) * 2 <= typical:
            continue
        if _are_names(records, place):
            return place
        if any(_filled_count(above) != 1 for _, above in records[:place]):
            return 0
        below = place + 1
        has_header_below = _filled_count(cells) == 2 < typical and place > 0 and below < len(records)
        return below if has_header_below and _is_header(records, below, typical) else place
    return 0


def _typical_width(records: Sequence[Record]) -> int:
    """The most frequent number of fields; where all records have one number, that up to the last that is not empty."""
    sample = [cells for _, cells in records[:_SAMPLE_RECORDS]]
    widths = Counter(map(len, sample))
    if len(widths) == 1:
        widths = Counter(map(_extent, sample))
    return max(widths, key=lambda width: (widths[width], width), default=0)


def _filled_count(cells: Sequence[str]) -> int:
    return sum(map(bool, cells))


def _extent(cells: Sequence[str]) -> int:
    return next((place for place in range(len(cells), 0, -1) if cells[place - 1]), 0)


def _line_blocks(lines: Sequence[Record], sections: Sections, *, above: bool) -> Iterator[Block]:
    for place, (number, cells) in enumerate(lines):
        texts = [cell for cell in cells if cell]
        text = f"{texts[0].rstrip(':：')}: {texts[1]}" if len(texts) == 2 else CELL_SIGN.join(texts)
        cell_range = format_range(number, 1, number, max(1, _extent(cells)))
        is_first_alone = place == 0 and above and len(texts) == 1
        if is_first_alone and len(text) <= _TITLE_CHARS and not _NO_TITLE.search(text):
            yield Block(BlockKind.HEADING, text, sections.enter(1, text), cell_range=cell_range)
        else:
            yield Block(BlockKind.PARAGRAPH, text, sections.path, cell_range=cell_range)


def _block(records: Sequence[Record], width: int, section: tuple[str, ...]) -> Block:
    rows = [
        Row(tuple(cells) + ("",) * (width - len(cells)), format_range(number, 1, number, width))
        for number, cells in records
    ]
    if groups := _group_names(records):
        rows[0] = replace(rows[0], cells=groups + rows[0].cells[len(groups) :])
    header_row_count = 2 if groups else int(len(rows) > 1 and _is_header(records, 0, _typical_width(records)))
    cell_range = cover([row.cell_range or "" for row in (rows[0], rows[-1])])
    return table_block(rows, header_row_count, section, cell_range=cell_range)


def _group_names(records: Sequence[Record]) -> tuple[str, ...]:
    """The first row where it names groups of columns, as a spreadsheet writes merged cells, each in all its columns;
    empty where it does not: each group has columns of the same names in the row below, and figures follow.
    """
    if len(records) < 3 or records[1][1][0] or not (_are_names(records, 0) and _are_names(records, 1)):
        return ()
    above, names, first = (cells[: max(_extent(records[0][1]), _extent(records[1][1]))] for _, cells in records[:3])
    groups: list[str] = []
    for group, name in zip_longest(above, names, fillvalue=""):
        groups.append(group or (groups[-1] if name and groups else ""))
    columns = [(group, name) for group, name in zip_longest(groups, names, fillvalue="") if name]
    parts = [tuple(name for group, name in columns if group == own) for own in dict.fromkeys(dict(columns))]
    figures = [value for value, name in zip(first, names, strict=False) if name]
    are_figures = 2 * sum(bool(_NUMBER.match(value)) for value in figures) >= len(figures)
    is_read = "" not in dict(columns) and len(parts) > 1 and len(parts[0]) > 1 and len(set(parts)) == 1
    return tuple(groups) if is_read and are_figures and len(set(parts[0])) == len(parts[0]) else ()


def _is_header(records: Sequence[Record], place: int, typical: int) -> bool:
    """Whether a row names the columns: no empty cell but for a first one and those behind all, no value, no repeat."""
    cells = records[place][1]
    names = cells[: _extent(cells)]
    if len(names) > 2 and not names[0]:
        names = names[1:]
    if len(names) * 2 <= typical or not all(names) or not _are_names(records, place):
        return False
    return len(set(names)) == len(names)


def _are_names(records: Sequence[Record], place: int) -> bool:
    """Whether no cell of a row is a number; months and the like are names where none stand below them."""
    below = [cells for _, cells in records[place + 1 : place + 1 + _LOOKED_AT_BELOW]]
    return all(
        is_period(cell) and not any(is_period(under[column]) for under in below if column < len(under))
        for column, cell in enumerate(records[place][1])
        if _NUMBER.match(cell)
    )
