"""Plain text and delimited text: encodings, paragraphs and headings, CSV and TSV as tables.

What stays out: HTML and Markdown, which are `markup`, although they are decoded with `decode_text`.
"""

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Iterator

from rag_assets.contracts.causes import BlockKind, FailureCause, PageKind
from rag_assets.contracts.errors import ParseError
from rag_assets.parsing.cells import cover, format_range
from rag_assets.parsing.content import Block, Page, ParsedDocument, Row
from rag_assets.parsing.detect import DocumentFormat
from rag_assets.parsing.flow import Sections, clean, table_block

ROWS_PER_BLOCK = 1000
_SAMPLE_CHARS = 1 << 16
_SHARED_VALUES = 100_000
_SAMPLE_BYTES = 1 << 18
_DELIMITERS = (",", "\t", ";", "|")
_STATED_DELIMITER = re.compile(r"sep=([^\n\"])\n", re.IGNORECASE)  # as Excel writes and reads it
_LEGACY_ENCODINGS = ("cp932", "euc_jp", "iso2022_jp", "cp1252")
_NUMBER = re.compile(r"^[\s¥$€△▲(+-]*[\d０-９][\d０-９,.:/年月日%％)\s-]*$")
_UNDERLINE = re.compile(r"^(={3,}|-{3,}|~{3,}|＝{3,})$")
_RULE = re.compile(r"^[\W_]{3,}$")
_NUMBERED = re.compile(
    r"^(?P<chapter>第[0-9０-９一二三四五六七八九十百]+[章編部])|^(?P<part>第[0-9０-９一二三四五六七八九十百]+[節条項])"
    r"|^(?P<number>[0-9０-９]{1,2}([.．][0-9０-９]{1,2})*[.．]?)[ \t\u3000]|^(?P<mark>[■◆●□【])"
)
_HEADING_CHARS = 60
_SENTENCE_END = ("。", ".", "、", ",", "，", "．", "!", "?", "！", "？", ";", ":", "：")


def decode_text(data: bytes) -> str:
    """Decode the bytes of a text file.

    A byte order mark decides; else UTF-8 where it is valid; else UTF-16 where zero bytes tell it; else the one of
    CP932, EUC-JP, ISO-2022-JP and Windows-1252 that decodes without error and reads most plausibly.

    Returns:
        The text, without byte order mark, line ends as line feeds.
    """
    text = _decode_unicode(data)
    if text is None:
        text = data.decode(_guess_legacy(data), errors="replace")
    return text.lstrip("\ufeff").replace("\r\n", "\n").replace("\r", "\n").removesuffix("\x1a")


def _decode_unicode(data: bytes) -> str | None:
    for mark, encoding in (
        (codecs.BOM_UTF8, "utf-8-sig"),
        (codecs.BOM_UTF32_LE, "utf-32"),
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
    ):
        if data.startswith(mark):
            return data.decode(encoding, errors="replace")
    if b"\x00" in data[:4096]:
        even, odd = data[:4096:2].count(0), data[1:4096:2].count(0)
        return data.decode("utf-16-le" if odd > even else "utf-16-be", errors="replace")
    if b"\x1b$" in data[:_SAMPLE_BYTES]:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        damage = data.decode("utf-8", errors="replace").count("\ufffd") if error.start > _SAMPLE_BYTES else len(data)
        return data.decode("utf-8", errors="replace") if damage < len(data) / 10_000 else None


def _guess_legacy(data: bytes) -> str:
    scores = {}
    for encoding in _LEGACY_ENCODINGS:
        decoder = codecs.getincrementaldecoder(encoding)()
        try:
            sample = decoder.decode(data[:_SAMPLE_BYTES], final=len(data) <= _SAMPLE_BYTES)
        except UnicodeDecodeError:
            continue
        scores[encoding] = _plausibility(sample, 0.5 if encoding == "euc_jp" else -0.6)
    return max(scores, key=lambda name: scores[name]) if scores else "cp932"


def _plausibility(text: str, half_width: float) -> float:
    """How much a decoded text looks like Japanese or Western prose; higher is better.

    Kana and ideographs count for it; symbols of Latin-1, control and private characters against it.

    Args:
        text: The text as decoded.
        half_width: What half-width katakana count: in CP932 they are what EUC-JP mostly becomes, in EUC-JP they take a
            lead byte of their own, which no other encoding has by chance.
    """
    score = 0.0
    for character in text:
        code = ord(character)
        if code < 0x80:
            continue
        if 0x3040 <= code <= 0x30FF or 0x3000 <= code <= 0x3002:
            score += 1.0
        elif 0x4E00 <= code <= 0x9FFF:
            score += 0.5
        elif 0xFF61 <= code <= 0xFF9F:
            score += half_width
        elif 0xC0 <= code <= 0x24F:
            score += 0.2
        elif 0x80 <= code <= 0x9F or 0xE000 <= code <= 0xF8FF:
            score -= 2.0
        else:
            score -= 0.1
    return score


def parse_text(data: bytes) -> ParsedDocument:
    """Parse plain text into paragraphs and headings, which blank lines separate."""
    sections = Sections()
    blocks = [_text_block(lines, sections) for lines in _paragraphs(decode_text(data))]
    page = Page(1, PageKind.BODY, tuple(block for block in blocks if block.text))
    return ParsedDocument(DocumentFormat.TXT.value, None, (page,))


def _paragraphs(text: str) -> Iterator[list[str]]:
    lines: list[str] = []
    for line in text.split("\n"):
        stripped = clean(line)
        if stripped:
            lines.append(stripped)
            if len(lines) == 2 and _UNDERLINE.match(stripped):
                yield lines
                lines = []
        elif lines:
            yield lines
            lines = []
    if lines:
        yield lines


def _text_block(lines: list[str], sections: Sections) -> Block:
    level = _heading_level(lines)
    text = "\n".join(line for line in lines if not _RULE.match(line))
    if level and text:
        return Block(BlockKind.HEADING, text, sections.enter(level, text))
    return Block(BlockKind.PARAGRAPH, text, sections.path)


def _heading_level(lines: list[str]) -> int:
    """Level of the heading that a paragraph is, from 1; 0 where it is none."""
    if len(lines) == 2 and _UNDERLINE.match(lines[1]) and len(lines[0]) <= _HEADING_CHARS:
        return 1 if lines[1][0] in "=＝" else 2
    if len(lines) != 1 or len(lines[0]) > _HEADING_CHARS or lines[0].endswith(_SENTENCE_END):
        return 0
    match = _NUMBERED.match(lines[0])
    if match is None:
        return 0
    if match["number"]:
        return 2 + len(re.findall(r"[0-9０-９]+", match["number"]))
    return 1 if match["chapter"] else 2 if match["part"] else 6


def parse_delimited(data: bytes, document_format: DocumentFormat, maximum_cells: int) -> ParsedDocument:
    """Parse CSV or TSV into tables of at most `ROWS_PER_BLOCK` rows, each under the header row.

    Args:
        data: The bytes of the file.
        document_format: CSV or TSV; the delimiter is read from the text either way.
        maximum_cells: Cells of the table, rows times columns.

    Raises:
        ParseError: TOO_LARGE where the table has more cells.
    """
    text = decode_text(data)
    preferred = "\t" if document_format is DocumentFormat.TSV else ","
    stated = _STATED_DELIMITER.match(text)
    text = text[stated.end() :] if stated else text
    records = _read_records(text, stated[1] if stated else _sniff_delimiter(text, preferred), maximum_cells)
    width = max((len(cells) for _, cells in records), default=0)
    if width * len(records) > maximum_cells:
        raise ParseError(FailureCause.TOO_LARGE, f"{len(records)} rows of {width} columns, limit {maximum_cells} cells")
    rows = [
        Row(tuple(cells) + ("",) * (width - len(cells)), format_range(number, 1, number, width))
        for number, cells in records
    ]
    del text, records
    header_row_count = _header_row_count(rows)
    header, body = rows[:header_row_count], rows[header_row_count:]
    blocks = []
    for start in range(0, max(len(body), 1), ROWS_PER_BLOCK):
        part = body[start : start + ROWS_PER_BLOCK]
        if shown := [*header, *part]:
            covered = (header if start == 0 else []) + part
            cell_range = cover([row.cell_range or "" for row in (covered[0], covered[-1])])
            blocks.append(table_block(shown, header_row_count, cell_range=cell_range))
    return ParsedDocument(document_format.value, None, (Page(1, PageKind.BODY, tuple(blocks)),))


def _read_records(text: str, delimiter: str, maximum_cells: int) -> list[tuple[int, list[str]]]:
    """Non-empty records with their row numbers, as a spreadsheet would number them."""
    records, cells = [], 0
    shared: dict[str, str] = {}
    csv.field_size_limit(max(len(text) + 1, 1 << 17))
    reader = csv.reader(_lines(text), delimiter=delimiter, skipinitialspace=delimiter != "\t")
    try:
        for number, record in enumerate(reader, start=1):
            if any(value.strip() for value in record):
                values = map(clean, record)
                records.append((number, [_share(value, shared) for value in values]))
                cells += len(record)
            if cells > maximum_cells:
                raise ParseError(FailureCause.TOO_LARGE, f"more than {maximum_cells} cells")
    except csv.Error as error:
        raise ParseError(FailureCause.MALFORMED, f"row {len(records) + 1}: {error}") from error
    return records


def _lines(text: str) -> Iterator[str]:
    """Lines with their ends, one at a time: a copy of a large text as a file or list takes several times its size."""
    start = 0
    while start < len(text):
        end = text.find("\n", start) + 1 or len(text)
        yield text[start:end]
        start = end


def _share(value: str, shared: dict[str, str]) -> str:
    """One object for values that recur, as those of most columns do."""
    return shared.setdefault(value, value) if len(shared) < _SHARED_VALUES else shared.get(value, value)


def _sniff_delimiter(text: str, preferred: str) -> str:
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


def _header_row_count(rows: list[Row]) -> int:
    """1 where the first row names the columns: no empty cell, no number, nothing twice."""
    if len(rows) < 2:
        return 0
    first = rows[0].cells
    named = all(cell and not _NUMBER.match(cell) for cell in first) and len(set(first)) == len(first)
    return int(named)
