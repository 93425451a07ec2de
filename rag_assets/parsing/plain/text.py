"""Plain text: encodings of all formats that are text; headings, paragraphs and list items of text without markup."""

import codecs
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from rag_assets.contracts.causes import BlockKind, PageKind
from rag_assets.contracts.content import Block, Page, ParsedDocument
from rag_assets.contracts.formats import DocumentFormat
from rag_assets.parsing.flow import Sections, clean, is_cjk, join_lines
from rag_assets.text.scripts import HALF_WIDTH_KATAKANA, ITEM_LETTERS

_SAMPLE_BYTES = 1 << 18
_JIS_NAMES = frozenset(
    ("iso-2022-jp", "iso2022-jp", "iso2022jp", "iso-2022-jp-ms", "csiso2022jp", "jis", "cp50220", "cp50221", "cp50222")
)
_CHARSETS = {
    **dict.fromkeys(("shift_jis", "shift-jis", "sjis", "x-sjis", "ms_kanji", "windows-31j", "cp943", "ms932"), "cp932"),
    **dict.fromkeys(("iso-8859-1", "latin1", "latin-1"), "cp1252"),
    "x-euc-jp": "euc_jp",
}
_READ_FOR_EACH_DAMAGE = 5  # characters beyond ASCII; fewer tell of another charset than the stated one
_LEGACY_ENCODINGS = ("cp932", "euc_jp", "iso2022_jp", "cp1252")
_JIS_ESCAPE = re.compile(rb"\x1b(\([BJI]|\$[@B]|\$\(D)")

# Blocks of text without markup.
_NUMERAL = r"[\d一二三四五六七八九十百]+"
_UNDERLINE = re.compile(r"^(={3,}|-{3,}|~{3,}|＝{3,})$")
_RULE = re.compile(r"^[\W_]{3,}$")
_NUMBERED = re.compile(
    rf"^(?P<chapter>第{_NUMERAL}[章編部])|^(?P<part>第{_NUMERAL}[節条項])"
    r"|^(?P<number>\d{1,2}([.．]\d{1,2})*[.．]?)[ \t\u3000]|^(?P<mark>[■◆▼●□【＜])"
)
_ABOVE_BODY = re.compile(
    rf"^(?P<chapter>第{_NUMERAL}[章編部])(?:$|[ ：:（(「『【])|^(?P<part>第{_NUMERAL}節(?:$|[ ：:（(「『【])"
    rf"|第{_NUMERAL}条(?:の{_NUMERAL})? ?(?:[（(][^）)]+[）)])?$)"
    r"|^(?P<mark>[■◆▼][^、：:]{1,40}|【[^】]{1,30}】|＜[^＞]{1,30}＞)$"
)
_NUMBER_ABOVE_BODY = re.compile(
    r"^(?P<number>\d{1,2}(?:[.．]\d{1,2})+[.．]?|\d{1,2}[.．]) ?(?=[^\W\d])[^、，,：:]{1,30}$"
)
_LEADER = re.compile(r"…|‥|\.{3}|・{3}|_{4}|(?:^| )\d+ ?(?:頁|ページ)?$")
_BULLET = re.compile(r"^(?:[-*+•‣▪◦○] |・(?!・))\s*(?=\S)")
_DIGITS = re.compile(r"\d+")
_HEADING_CHARS = 60
_SENTENCE_END = ("。", ".", "、", ",", "，", "．", "!", "?", "！", "？", ";", ":", "：")
_FULL = 0.9  # of the width that a text is wrapped at, from which a line is broken for its length
_WRAPPED_COLUMNS = range(40, 141)  # widths that texts are wrapped at, an ideograph taking two columns
_LEAST_FULL_LINES = 3
_LEAST_FULL_SHARE = 0.2  # of the lines of paragraphs that have
_LEAST_COLUMNS = 20
_BEGINS = re.compile(  # a line of its own: an item, a number, a label
    rf"^(?:[\W_]|\d+[\s.．:：/)）-]|[（(]?[\d{ITEM_LETTERS}{HALF_WIDTH_KATAKANA}一二三四五六七八九十]{{1,2}}[)）.．]"
    r"|\S{1,20}[:：] ?\S)"
)
_LAST_SIGNS = ("。", ".", "．", "！", "？", "!", "?")


def decode_text(data: bytes) -> str:
    """Decode the bytes of a text file.

    A byte order mark decides; else UTF-8 where it is valid; else UTF-16 where zero bytes tell it; else the one of
    CP932, EUC-JP, ISO-2022-JP and Windows-1252 that decodes without error and reads most plausibly.

    Returns:
        The text, without byte order mark, line ends as line feeds.
    """
    text = _decode_unicode(data)
    if text is None:
        text = _decode_jis(data) if data.isascii() else data.decode(_guess_legacy(data), errors="replace")
    return _line_ends(text)


def decode_stated(data: bytes, charset: str) -> str | None:
    """Decode by a charset that is stated beside the bytes.

    Args:
        data: The bytes.
        charset: Its name as stated, in the web or in a message.

    Returns:
        The text, line ends as line feeds; None where the charset is unknown, or where the bytes are not written in it.
    """
    name = charset.strip().strip("\"'").lower()
    if name in _JIS_NAMES:
        return _line_ends(_decode_jis(data)) if data.isascii() else None
    if b"\x1b$" in data and data.isascii():
        return None  # ISO-2022-JP under another name
    try:
        text = data.decode(_CHARSETS.get(name, name), "replace")
    except (LookupError, UnicodeError, ValueError):
        return None
    damage = text.count("\ufffd")
    read_count = sum(character > "\x7f" for character in text) - damage if damage else 0
    return None if damage * _READ_FOR_EACH_DAMAGE > read_count else _line_ends(text)


def _line_ends(text: str) -> str:
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


def _decode_jis(data: bytes) -> str:
    """Decode ISO-2022-JP, with the characters that Windows adds to it, as in ① and ㈱, where there are any."""
    try:
        return data.decode("iso2022_jp")
    except UnicodeDecodeError:
        first, *parts = _JIS_ESCAPE.split(data)
    text = [first.decode("ascii", errors="replace")]
    for escape, part in zip(parts[::2], parts[1::2], strict=True):
        match escape:
            case b"(I":
                text.append(bytes(byte | 0x80 for byte in part).decode("cp932", errors="replace"))
            case b"$@" | b"$B" | b"$(D":
                text.append("\n".join(_decode_pairs(line, escape) for line in part.split(b"\n")))
            case _:
                text.append(part.decode("ascii", errors="replace"))
    return "".join(text)


def _decode_pairs(data: bytes, escape: bytes) -> str:
    """Decode characters of two bytes each: by way of EUC-JP those of JIS X 0212, by way of CP932 all others."""
    pairs = [(data[index], data[index + 1]) for index in range(0, len(data) - 1, 2)]
    if escape == b"$(D":
        return b"".join(bytes((0x8F, row | 0x80, cell | 0x80)) for row, cell in pairs).decode("euc_jp", "replace")
    shifted_bytes = bytearray()
    for row, cell in pairs:
        shifted_bytes.append(((row - 1) >> 1) + (0x71 if row < 0x5F else 0xB1) & 0xFF)
        shifted_bytes.append(cell + ((0x20 if cell > 0x5F else 0x1F) if row & 1 else 0x7E) & 0xFF)
    return shifted_bytes.decode("cp932", "replace")


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
    """Parse plain text into headings, paragraphs and list items."""
    page = Page(1, PageKind.BODY, tuple(text_blocks(decode_text(data), Sections())))
    return ParsedDocument(DocumentFormat.TXT.value, None, (page,))


def text_blocks(text: str, sections: Sections) -> Iterator[Block]:
    """Blocks of a text, whose paragraphs blank lines part.

    Args:
        text: The text.
        sections: Headings above it; those of the text are entered.

    Yields:
        Headings: a line alone that is numbered or marked as one, a line with another of `=` or `-` below, and the
        lines `第1章`, `第1節`, `第1条（…）`, `■…`, `【…】` and `＜…＞` above the first line of their body; a line as
        `1. 概要` only where sentences follow it. List items where every line of a paragraph has the mark of one; else
        paragraphs, whose lines are joined where the text is wrapped at a width.
    """
    paragraphs = list(_paragraphs(text))
    full = _full_columns(paragraphs)
    for paragraph in paragraphs:
        for level, part in _parts(paragraph):
            lines = [line for line in part if not _RULE.match(line)]
            if level and lines:
                heading = "\n".join(lines)
                yield Block(BlockKind.HEADING, heading, sections.enter(level, heading))
            elif lines and all(map(_BULLET.match, lines)):
                yield from (Block(BlockKind.LIST_ITEM, _BULLET.sub("", line), sections.path) for line in lines)
            elif lines:
                yield Block(BlockKind.PARAGRAPH, "\n".join(_unwrapped(lines, full)), sections.path)


def _paragraphs(text: str) -> Iterator[list[str]]:
    lines: list[str] = []
    for line in text.split("\n"):
        clean_line = clean(line)
        if clean_line:
            lines.append(clean_line)
            if len(lines) == 2 and _UNDERLINE.match(clean_line):
                yield lines
                lines = []
        elif lines:
            yield lines
            lines = []
    if lines:
        yield lines


def _columns(line: str) -> int:
    return len(line) if line.isascii() else sum(1 + (unicodedata.east_asian_width(sign) in "WFA") for sign in line)


def _full_columns(paragraphs: Sequence[Sequence[str]]) -> int:
    """Columns from which a line of a text is broken for its length; more than any has where no width is wrapped at."""
    widths = [
        width for lines in paragraphs if len(lines) > 1 for line in lines if (width := _columns(line)) >= _LEAST_COLUMNS
    ]
    counts = Counter(widths)
    near = {width: sum(counts[size] for size in range(int(_FULL * width), width + 1)) for width in _WRAPPED_COLUMNS}
    width = max(near, key=lambda candidate: (near[candidate], -candidate))
    is_wrapped = near[width] >= max(_LEAST_FULL_LINES, _LEAST_FULL_SHARE * len(widths))
    return int(_FULL * width) if is_wrapped else sys.maxsize


def _unwrapped(lines: Sequence[str], full: int) -> Iterator[str]:
    """Lines of a paragraph, those that were broken for their length with what goes on in the next."""
    parts: list[str] = []
    for line in lines:
        if parts and not (_columns(parts[-1]) >= full and _goes_on(parts[-1], line)):
            yield join_lines(parts)
            parts = []
        parts.append(line)
    yield join_lines(parts)


def _goes_on(line: str, after: str) -> bool:
    """Whether a sentence goes on from a full line to the next one."""
    if (
        line.endswith(("。", "！", "？", "!", "?", ":", "："))
        or _LEADER.search(line)
        or _LEADER.search(after)
        or (_BEGINS.match(after) and after[0] not in "「『（(")
    ):
        return False
    return is_cjk(line[-1]) or is_cjk(after[0]) or line[-1].isalnum() or line[-1] in ",-;'\")"


def _parts(lines: list[str]) -> Iterator[tuple[int, list[str]]]:
    """Headings with their levels, from 1, and what stands between them with 0.

    Heading lines that follow each other must go deeper line by line: else they are a table of contents or a list.
    """
    if level := _heading_level(lines):
        yield level, lines
        return
    levels = [_level_above_body(line) for line in lines]
    levels[0] = levels[0] or _number_above_body(lines)
    body: list[str] = []
    start = 0
    while start < len(lines):
        end = start + 1
        while levels[start] and end < len(lines) and levels[end]:
            end += 1
        if levels[start] and all(above < below for above, below in pairwise(levels[start:end])):
            if body:
                yield 0, body
            body = []
            yield from ((level, [line]) for level, line in zip(levels[start:end], lines[start:end], strict=True))
        else:
            body += lines[start:end]
        start = end
    if body:
        yield 0, body


def _heading_level(lines: Sequence[str]) -> int:
    """Level of the heading that a paragraph is, from 1; 0 where it is none."""
    if len(lines) == 2 and _UNDERLINE.match(lines[1]) and len(lines[0]) <= _HEADING_CHARS:
        return 1 if lines[1][0] in "=＝" else 2
    if len(lines) != 1 or len(lines[0]) > _HEADING_CHARS or lines[0].endswith(_SENTENCE_END):
        return 0
    match = _NUMBERED.match(lines[0])
    if match is None:
        return 0
    if match["number"]:
        return 2 + len(_DIGITS.findall(match["number"]))
    return 1 if match["chapter"] else 2 if match["part"] else 6


def _level_above_body(line: str) -> int:
    """Level of a line that is a heading although other lines follow it; 0 where it need not be one."""
    match = _ABOVE_BODY.match(line)
    if match is None or len(line) > _HEADING_CHARS or line.endswith(_SENTENCE_END) or _LEADER.search(line):
        return 0
    return 1 if match["chapter"] else 2 if match["part"] else 6


def _number_above_body(lines: Sequence[str]) -> int:
    """Level of the first line as a numbered heading: no other line is numbered, and sentences follow."""
    match = _NUMBER_ABOVE_BODY.match(lines[0])
    if match is None or lines[0].endswith(_SENTENCE_END) or _LEADER.search(lines[0]) or len(lines) < 2:
        return 0
    if lines[1][0].islower() or any(_NUMBERED.match(line) for line in lines[1:]):
        return 0
    has_sentences = any(line.endswith(_LAST_SIGNS) for line in lines[1:])
    return 2 + len(_DIGITS.findall(match["number"])) if has_sentences else 0
